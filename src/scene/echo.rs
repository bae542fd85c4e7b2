//! A scene back as text, every option written out.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use glam::DVec3;
use weft_io::Show as _;
use weft_runtime::Interval;

use super::{
    Axis, Balance, BendingModel, Body, Cloth, ClothSource, Held, Keyframe, Material, MembraneModel,
    Motion, Output, Pin, Scene, Shape, Slide, Surface, Time, Turn,
};

impl Scene {
    /// All effective options, defaults and overrides included, as TOML that parses back to an equal
    /// scene (but for `path`, `sha256` and `set_in_vain`, which tell of a text).
    ///
    /// Mesh paths are written as they were resolved: a relative one is relative to the working
    /// directory, so parse it with no path or from there. A path that is not UTF-8 is written with
    /// replacement characters.
    pub fn echo(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = write_scene(&mut text, self, false);
        text
    }

    /// The part of [`Self::echo`] on which the trajectory depends: equal for scenes that differ in title,
    /// end, balance, output, culling and the folders of meshes only.
    pub fn echo_of_trajectory(&self) -> String {
        let mut scene = self.clone();
        let bare = |path: &mut PathBuf| {
            if let Some(name) = path.file_name() {
                *path = PathBuf::from(name);
            }
        };
        for cloth in &mut scene.cloths {
            if let ClothSource::File { path, .. } = &mut cloth.source {
                bare(path);
            }
        }
        for body in &mut scene.bodies {
            if let Shape::Mesh { path, .. } = &mut body.shape {
                bare(path);
            }
        }
        let mut text = String::new();
        let _ = write_scene(&mut text, &scene, true);
        text
    }
}

fn write_scene(out: &mut String, scene: &Scene, of_trajectory: bool) -> std::fmt::Result {
    // What does not bear on the trajectory is left out, not neutral: what is neutral may change.
    if !of_trajectory {
        writeln!(out, "title = {}", quoted(&scene.title))?;
        writeln!(out, "name = {}", quoted(&scene.name))?;
    }
    writeln!(out, "gravity = {} # m/s2", vector(scene.gravity))?;

    writeln!(out, "\n[air]")?;
    writeln!(out, "wind = {} # m/s", vector(scene.air.wind))?;
    writeln!(out, "density = \"{:?} kg/m3\"", scene.air.density)?;

    writeln!(out, "\n[time]")?;
    writeln!(out, "step = \"{:?} s\"", scene.time.step)?;
    if !of_trajectory {
        writeln!(out, "end = \"{:?} s\"", scene.time.end)?;
    }
    if let Some(shortest) = scene.time.shortest {
        writeln!(out, "shortest = \"{shortest:?} s\"")?;
    }
    // Set to its default it would be warned of, where steps are not cut. Checkpoints know it as a line.
    let time = &scene.time;
    if of_trajectory
        || time.shortest.is_some()
        || time.strain_change != Time::default().strain_change
    {
        writeln!(out, "strain_change = {:?}", time.strain_change)?;
    }
    for cloth in &scene.cloths {
        write_cloth(out, cloth)?;
    }
    for body in &scene.bodies {
        write_body(out, body)?;
    }
    let contact = &scene.contact;
    writeln!(out, "\n[contact]")?;
    writeln!(out, "thickness = \"{:?} m\"", contact.thickness)?;
    writeln!(out, "self_collision = {}", contact.self_collision)?;
    writeln!(out, "self_friction = {:?}", contact.self_friction)?;
    if !of_trajectory {
        writeln!(out, "culling = \"{}\"", contact.culling.name())?;
    }
    writeln!(out, "iterations = {}", contact.iterations)?;
    if let Some(change) = contact.strain_change {
        writeln!(out, "strain_change = {change:?}")?;
    }

    writeln!(out, "\n[solver]")?;
    writeln!(out, "tolerance = {:?}", scene.solver.tolerance)?;
    writeln!(out, "max_iterations = {}", scene.solver.max_iterations)?;
    let preconditioner = scene.solver.preconditioner.name();
    writeln!(out, "preconditioner = \"{preconditioner}\"")?;
    let integrator = scene.solver.integrator.name();
    writeln!(out, "integrator = \"{integrator}\"")?;
    writeln!(out, "newton = {}", scene.solver.newton)?;
    writeln!(
        out,
        "newton_tolerance = {:?}",
        scene.solver.newton_tolerance
    )?;

    writeln!(out, "\n[partition]")?;
    if let Some(patches) = scene.partition.patches {
        writeln!(out, "patches = {patches}")?;
    }

    if of_trajectory {
        return Ok(());
    }
    write_balance(out, &scene.balance)?;
    write_output(out, &scene.output)
}

fn write_balance(out: &mut String, balance: &Balance) -> std::fmt::Result {
    writeln!(out, "\n[balance]")?;
    if let Some(ranks) = balance.ranks {
        writeln!(out, "ranks = {ranks}")?;
    }
    let policy = &balance.policy;
    let seconds = |time: Duration| time.as_secs_f64();
    writeln!(out, "seed = {}", balance.seed)?;
    match policy.interval {
        Interval::Fixed(time) => writeln!(out, "split_interval = \"{:?} s\"", seconds(time))?,
        Interval::Adaptive => writeln!(out, "policy = \"adaptive\"")?,
    }
    writeln!(out, "steal = {}", policy.steal)?;
    writeln!(out, "split = \"{}\"", policy.split.name())?;
    writeln!(out, "victims = \"{}\"", policy.victims.name())?;
    writeln!(out, "low_water = {}", policy.low_water)?;
    writeln!(out, "split_on_request = {}", policy.split_on_request)?;
    let timeout = seconds(policy.steal_timeout);
    writeln!(out, "steal_timeout = \"{timeout:?} s\"")?;
    writeln!(out, "forecast = {}", policy.forecast)
}

fn write_output(out: &mut String, output: &Output) -> std::fmt::Result {
    writeln!(out, "\n[output]")?;
    writeln!(out, "interval = \"{:?} s\"", output.interval)?;
    writeln!(out, "frames = {}", output.frames)?;
    writeln!(out, "pictures = {}", output.pictures)?;
    writeln!(out, "checkpoints = {}", output.checkpoints)?;
    let interval = output.checkpoint_interval;
    writeln!(out, "checkpoint_interval = \"{interval:?} s\"")?;
    writeln!(out, "size = {:?}", output.picture_size)?;
    if let Some(camera) = output.camera {
        writeln!(out, "camera = {} # m", vector(camera))?;
    }
    if let Some(look_at) = output.look_at {
        writeln!(out, "look_at = {} # m", vector(look_at))?;
    }
    Ok(())
}

fn write_cloth(out: &mut String, cloth: &Cloth) -> std::fmt::Result {
    writeln!(out, "\n[[cloth]]")?;
    writeln!(out, "name = {}", quoted(&cloth.name))?;
    match &cloth.source {
        ClothSource::Grid {
            size,
            vertices,
            center,
            rotation,
        } => {
            let [x, y] = size;
            writeln!(
                out,
                "grid = {{ size = [\"{x:?} m\", \"{y:?} m\"], vertices = {vertices:?} }}"
            )?;
            writeln!(out, "center = {} # m", vector(*center))?;
            writeln!(out, "rotation = {} # rad", vector(*rotation))?;
        }
        ClothSource::Shirt {
            height,
            vertices,
            center,
            rotation,
        } => {
            writeln!(
                out,
                "shirt = {{ height = \"{height:?} m\", vertices = {vertices} }}"
            )?;
            writeln!(out, "center = {} # m", vector(*center))?;
            writeln!(out, "rotation = {} # rad", vector(*rotation))?;
        }
        ClothSource::File {
            path,
            scale,
            mirror,
            rotation,
            translation,
        } => {
            writeln!(out, "mesh = {}", quoted(&path.to_string_lossy()))?;
            writeln!(out, "scale = {scale:?}")?;
            write_mirror(out, *mirror)?;
            writeln!(out, "rotation = {} # rad", vector(*rotation))?;
            writeln!(out, "translation = {} # m", vector(*translation))?;
        }
    }
    writeln!(out, "velocity = {} # m/s", vector(cloth.velocity))?;
    if !cloth.pins.is_empty() {
        writeln!(out, "pins = [ # m")?;
        for pin in &cloth.pins {
            write_pin(out, pin)?;
        }
        writeln!(out, "]")?;
    }
    if let Some(weave) = cloth.weave {
        writeln!(out, "weave = {}", vector(weave))?;
    }
    write_material(out, &cloth.material)
}

fn write_pin(out: &mut String, pin: &Pin) -> std::fmt::Result {
    match pin.held {
        Held::Nearest(point) => write!(out, "    {{ nearest = {}", vector(point))?,
        Held::Box { min, max } => {
            write!(out, "    {{ min = {}, max = {}", vector(min), vector(max))?;
        }
    }
    match pin.slide {
        Slide::Nowhere => {}
        Slide::Rail(direction) => write!(out, ", rail = {}", vector(direction))?,
        Slide::Plane(normal) => write!(out, ", plane = {}", vector(normal))?,
    }
    match &pin.motion {
        None if pin.velocity == DVec3::ZERO => {}
        None => write!(out, ", velocity = {}", vector(pin.velocity))?,
        Some(motion) => {
            // A table in a line: only lists break it.
            let [center, interpolation, repeat] = motion_keys(motion);
            write!(
                out,
                ", motion = {{ {center}, {interpolation}, {repeat}, keyframes = ["
            )?;
            writeln!(out)?;
            for keyframe in &motion.keyframes {
                writeln!(out, "        {},", keyframe_table(keyframe))?;
            }
            write!(out, "    ] }}")?;
        }
    }
    writeln!(out, " }},")
}

fn write_material(out: &mut String, material: &Material) -> std::fmt::Result {
    let pair = |[warp, weft]: [f64; 2], unit: &str| {
        if warp == weft {
            format!("\"{warp:?} {unit}\"")
        } else {
            format!("[\"{warp:?} {unit}\", \"{weft:?} {unit}\"]")
        }
    };
    writeln!(out, "[cloth.material]")?;
    writeln!(out, "density = \"{:?} kg/m2\"", material.density)?;
    writeln!(out, "model = \"{}\"", material.membrane.name())?;
    writeln!(out, "stretch = {}", pair(material.stretch, "N/m"))?;
    if let Some(shear) = material.shear {
        writeln!(out, "shear = \"{shear:?} N/m\"")?;
    }
    // Springs have the ratio of their mesh.
    if material.membrane == MembraneModel::FiniteElements {
        writeln!(out, "poisson = {:?}", material.poisson)?;
    }
    let bending = material.bending_model;
    writeln!(out, "bending_model = \"{}\"", bending.name())?;
    writeln!(out, "bending = {}", pair(material.bending, "N m"))?;
    if let Some(bias) = material.bending_bias {
        writeln!(out, "bending_bias = \"{bias:?} N m\"")?;
    }
    writeln!(out, "bending_fit = {}", material.bending_fit)?;
    if bending == BendingModel::Springs {
        writeln!(out, "bending_radius = \"{:?} m\"", material.bending_radius)?;
    }
    writeln!(out, "damping_mass = \"{:?} 1/s\"", material.damping_mass)?;
    let [stretch, shear, bending] = material.damping;
    if [shear, bending] == [stretch; 2] {
        writeln!(out, "damping_stiffness = \"{stretch:?} s\"")?;
    } else {
        writeln!(out, "damping_stretch = \"{stretch:?} s\"")?;
        if material.membrane == MembraneModel::FiniteElements {
            writeln!(out, "damping_shear = \"{shear:?} s\"")?;
        }
        writeln!(out, "damping_bending = \"{bending:?} s\"")?;
    }
    let [normal, tangential] = material.drag;
    writeln!(out, "drag_normal = {normal:?}")?;
    writeln!(out, "drag_tangential = {tangential:?}")?;
    writeln!(out, "strain_limit = {:?}", material.strain_limit)
}

fn write_body(out: &mut String, body: &Body) -> std::fmt::Result {
    writeln!(out, "\n[[body]]")?;
    writeln!(out, "name = {}", quoted(&body.name))?;
    match &body.shape {
        Shape::Sphere { center, radius } => {
            writeln!(out, "shape = \"sphere\"")?;
            writeln!(out, "center = {} # m", vector(*center))?;
            writeln!(out, "radius = \"{radius:?} m\"")?;
        }
        Shape::Plane {
            point,
            normal,
            extent,
        } => {
            writeln!(out, "shape = \"plane\"")?;
            writeln!(out, "point = {} # m", vector(*point))?;
            writeln!(out, "normal = {}", vector(*normal))?;
            writeln!(out, "extent = \"{extent:?} m\"")?;
        }
        Shape::Box {
            center,
            size,
            rotation,
        } => {
            writeln!(out, "shape = \"box\"")?;
            writeln!(out, "center = {} # m", vector(*center))?;
            writeln!(out, "size = {} # m", vector(*size))?;
            writeln!(out, "rotation = {} # rad", vector(*rotation))?;
        }
        Shape::Capsule { from, to, radius } => {
            writeln!(out, "shape = \"capsule\"")?;
            writeln!(out, "from = {} # m", vector(*from))?;
            writeln!(out, "to = {} # m", vector(*to))?;
            writeln!(out, "radius = \"{radius:?} m\"")?;
        }
        Shape::Mesh {
            path,
            scale,
            mirror,
            rotation,
            translation,
        } => {
            writeln!(out, "shape = \"mesh\"")?;
            writeln!(out, "mesh = {}", quoted(&path.to_string_lossy()))?;
            writeln!(out, "scale = {scale:?}")?;
            write_mirror(out, *mirror)?;
            writeln!(out, "rotation = {} # rad", vector(*rotation))?;
            writeln!(out, "translation = {} # m", vector(*translation))?;
        }
    }
    match (&body.shape, body.surface) {
        (_, Surface::Analytic) => writeln!(out, "surface = \"analytic\"")?,
        (Shape::Mesh { .. }, Surface::Triangles { .. }) => {
            writeln!(out, "surface = \"triangles\"")?;
        }
        (_, Surface::Triangles { edge }) => {
            writeln!(out, "surface = \"triangles\"")?;
            writeln!(out, "edge = \"{edge:?} m\"")?;
        }
    }
    writeln!(out, "friction = {:?}", body.friction)?;
    match &body.motion {
        None => writeln!(out, "velocity = {} # m/s", vector(body.velocity)),
        Some(motion) => write_motion(out, motion),
    }
}

fn write_motion(out: &mut String, motion: &Motion) -> std::fmt::Result {
    let [center, interpolation, repeat] = motion_keys(motion);
    writeln!(out, "[body.motion]")?;
    writeln!(out, "{center} # m")?;
    writeln!(out, "{interpolation}\n{repeat}")?;
    writeln!(out, "keyframes = [ # s, m, rad")?;
    for keyframe in &motion.keyframes {
        writeln!(out, "    {},", keyframe_table(keyframe))?;
    }
    writeln!(out, "]")
}

/// All but keyframes.
fn motion_keys(motion: &Motion) -> [String; 3] {
    [
        format!("center = {}", vector(motion.center)),
        format!("interpolation = \"{}\"", motion.interpolation.name()),
        format!("repeat = {}", motion.repeat),
    ]
}

fn keyframe_table(keyframe: &Keyframe) -> String {
    let (key, angles) = match keyframe.turn {
        Turn::To(angles) => ("rotation", angles),
        Turn::By(angles) => ("turn", angles),
    };
    format!(
        "{{ time = {:?}, translation = {}, {key} = {} }}",
        keyframe.time,
        vector(keyframe.translation),
        vector(angles)
    )
}

fn write_mirror(out: &mut String, mirror: Option<Axis>) -> std::fmt::Result {
    match mirror {
        Some(axis) => writeln!(out, "mirror = \"{}\"", axis.name()),
        None => Ok(()),
    }
}

/// `{:?}` writes the shortest digits that read back to the same bits.
fn vector(v: DVec3) -> String {
    format!("[{:?}, {:?}, {:?}]", v.x, v.y, v.z)
}

/// A TOML text with its quotes. What is not safe to show is written in ASCII, with TOML's own escapes: it is read again as it was.
fn quoted(text: &str) -> String {
    if text.shown().to_string() == text {
        return toml::Value::from(text).to_string();
    }
    let letters = text.chars().map(|letter| match letter {
        '"' | '\\' => format!("\\{letter}"),
        ' '..='~' => letter.to_string(),
        _ => format!("\\U{:08X}", u32::from(letter)),
    });
    format!("\"{}\"", letters.collect::<String>())
}
