//! Writes scenes that are hard to keep free of crossings, with their meshes, for `weft certify`.
//!
//! `cargo run --example certified_scenes FOLDER`. Most are scenes of papers on robust collisions,
//! of 500 to 3,000 vertices and cut short to what is hard about them. Steps are the caller's
//! (`--set time.step=…`).
//!
//! * Selle, Su, Irving, Fedkiw: Robust high-resolution cloth using parallelism, history-based
//!   collisions, and accurate friction (2009): twister, curtain, spinning ball, leaves, wardrobe.
//! * Li, Kaufman, Jiang: Codimensional incremental potential contact (2021): reef knot, twisted
//!   cylinder, funnel, table cloth, stack.

use std::error::Error;
use std::f64::consts::{FRAC_PI_2, PI, TAU};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

type Point = [f64; 3];

/// The folder that is written to.
struct Folder(PathBuf);

impl Folder {
    /// Writes a scene, behind keys that all of them share.
    fn scene(&self, name: &str, end: f64, text: &str, contact: &str) -> Result<(), Box<dyn Error>> {
        let all = format!(
            "time = {{ step = \"2 ms\", end = {end} }}\n{text}\n[contact]\ncertify = true\n{contact}\n\
             [solver]\ntolerance = 5e-3\n\n[output]\npictures = false\nframes = false\n"
        );
        Ok(fs::write(self.0.join(name).with_extension("toml"), all)?)
    }

    /// Writes a mesh.
    fn mesh(
        &self,
        name: &str,
        points: &[Point],
        faces: &[[usize; 3]],
    ) -> Result<(), Box<dyn Error>> {
        let mut text = String::new();
        for [x, y, z] in points {
            writeln!(text, "v {x} {y} {z}")?;
        }
        for face in faces {
            let [a, b, c] = face.map(|v| v + 1);
            writeln!(text, "f {a} {b} {c}")?;
        }
        Ok(fs::write(self.0.join(name).with_extension("obj"), text)?)
    }
}

/// The triangles of a grid of vertices, row after row, whose rows may close to a ring.
fn grid(rows: usize, columns: usize, is_ring: bool) -> Vec<[usize; 3]> {
    let mut faces = Vec::new();
    for row in 0..rows - usize::from(!is_ring) {
        for column in 0..columns - 1 {
            let (a, d) = (row * columns + column, row * columns + column + 1);
            let b = (row + 1) % rows * columns + column;
            let c = b + 1;
            faces.extend(if (row + column) % 2 == 0 {
                [[a, b, c], [a, c, d]]
            } else {
                [[a, b, d], [b, c, d]]
            });
        }
    }
    faces
}

/// A material: its strain limit, and further keys.
fn material(limit: f64, more: &str) -> String {
    format!(
        "material = {{ density = 0.15, stretch = 1000, bending = 1e-5, damping_stiffness = \"2 ms\", \
         strain_limit = {limit}{more} }}\n"
    )
}

fn contact(thickness: &str, friction: f64) -> String {
    format!("thickness = \"{thickness}\"\nself_friction = {friction}\n")
}

/// A strip over a cylinder that spins about the vertical; its hems slide on rails, so that the legs
/// are wound about each other.
fn twister(to: &Folder) -> Result<(), Box<dyn Error>> {
    let (radius, length, width) = (0.041, 1.0, 0.2);
    let (rows, columns) = (84, 17);
    let mut points = Vec::new();
    for row in 0..rows {
        let s = length * (row as f64 / (rows - 1) as f64 - 0.5);
        let leg = s.abs() - radius * FRAC_PI_2;
        let [x, z] = if leg < 0.0 {
            [radius * (s / radius).sin(), radius * (s / radius).cos()]
        } else {
            [s.signum() * radius, -leg]
        };
        for column in 0..columns {
            points.push([x, width * (column as f64 / (columns - 1) as f64 - 0.5), z]);
        }
    }
    let low = points.iter().map(|p| p[2]).fold(0.0, f64::min);
    to.mesh("twister", &points, &grid(rows, columns, false))?;
    let hems = format!(
        "pins = [{{ min = [-1, -1, {}], max = [1, 1, {}], rail = [0, 0, 1] }}]\n",
        low - 1e-3,
        low + 1e-3
    );
    for (name, pins, more, turn) in [
        ("twister", hems.as_str(), "", -540.0),
        ("twister-drag", "", ", drag_normal = 20", -1080.0),
    ] {
        let text = format!(
            "[[cloth]]\nname = \"strip\"\nmesh = \"twister.obj\"\n{pins}{}\
             [[body]]\nname = \"cylinder\"\nshape = \"capsule\"\nfrom = [0, -0.2, 0]\nto = [0, 0.2, 0]\n\
             radius = 0.035\nedge = 0.01\nfriction = 1\n\
             motion = {{ center = [0, 0, 0], keyframes = [{{ time = 0.1 }}, {{ time = 1.6, turn = [0, 0, \"{turn} deg\"] }}] }}\n",
            material(0.06, more)
        );
        to.scene(name, 1.6, &text, &contact("4 mm", 0.3))?;
    }
    Ok(())
}

/// A curtain on two pins, and a ball that gathers it to a clump and goes through that.
fn curtain(to: &Folder) -> Result<(), Box<dyn Error>> {
    let text = format!(
        "[[cloth]]\nname = \"curtain\"\ngrid = {{ size = [1.3, 0.8], vertices = [52, 32] }}\n\
         rotation = [\"90 deg\", 0, \"90 deg\"]\ncenter = [0.4, 0, 0.52]\n\
         pins = [{{ nearest = [0.4, -0.65, 0.92] }}, {{ nearest = [0.4, 0.65, 0.92] }}]\n{}\
         [[body]]\nname = \"ball\"\nshape = \"sphere\"\ncenter = [0, 0, 0.27]\nradius = 0.25\nedge = 0.03\nfriction = 0.05\n\
         motion = {{ keyframes = [{{ time = 0 }}, {{ time = 0.6, translation = [1.2, 0, 0.5] }}, {{ time = 0.8, translation = [1.2, 0, 0] }}, \
         {{ time = 1.6, translation = [-1, 0, 0] }}] }}\n{}",
        material(0.06, ""),
        floor(4.0, 0.3)
    );
    to.scene("curtain-ball", 1.4, &text, &contact("4 mm", 0.5))
}

fn floor(extent: f64, friction: f64) -> String {
    format!(
        "[[body]]\nname = \"floor\"\nshape = \"plane\"\nextent = {extent}\nedge = 0.2\nfriction = {friction}\n"
    )
}

/// A panel that falls on a ball that begins to spin and winds it up.
fn spinning_ball(to: &Folder) -> Result<(), Box<dyn Error>> {
    let text = format!(
        "[[cloth]]\nname = \"panel\"\ngrid = {{ size = 1.6, vertices = 48 }}\ncenter = [0, 0, 0.56]\n{}\
         [[body]]\nname = \"ball\"\nshape = \"sphere\"\ncenter = [0, 0, 0.3]\nradius = 0.25\nedge = 0.03\nfriction = 1\n\
         motion = {{ keyframes = [{{ time = 0.4 }}, {{ time = 2.4, turn = [0, 0, \"-720 deg\"] }}] }}\n{}",
        material(0.06, ""),
        floor(3.0, 0.1)
    );
    to.scene("spinning-ball", 1.5, &text, &contact("4 mm", 0.1))
}

/// Ten sheets, each turned against the one below it: with their lowest at a height, and held at
/// corners or not.
fn sheets(lowest: f64, are_pinned: bool) -> String {
    let mut text = String::new();
    for k in 0..10 {
        let (z, angle) = (lowest + 0.05 * f64::from(k), 9.0 * f64::from(k));
        let (sine, cosine) = angle.to_radians().sin_cos();
        let corner = |[x, y]: [f64; 2]| {
            format!(
                "{{ nearest = [{}, {}, {z}] }}",
                cosine * x - sine * y,
                sine * x + cosine * y
            )
        };
        let corners = [[-0.4, -0.4], [0.4, -0.4], [0.4, 0.4], [-0.4, 0.4]]
            .map(corner)
            .join(", ");
        let pins = if are_pinned {
            format!("pins = [{corners}]\n")
        } else {
            String::new()
        };
        let _ = write!(
            text,
            "[[cloth]]\nname = \"sheet{k}\"\ngrid = {{ size = 0.8, vertices = 15 }}\ncenter = [0, 0, {z}]\n\
             rotation = [0, 0, \"{angle} deg\"]\n{pins}{}",
            material(0.05, "")
        );
    }
    text
}

/// A stack of sheets that a ball hits from above at 5 m/s: on a floor, free, and held at corners.
fn stack(to: &Folder) -> Result<(), Box<dyn Error>> {
    let top = 0.05 + 0.45 + 0.2 + 0.1;
    let ball = |down: f64| {
        format!(
            "[[body]]\nname = \"ball\"\nshape = \"sphere\"\ncenter = [0, 0, {top}]\nradius = 0.2\nedge = 0.03\nfriction = 0.5\n\
             motion = {{ keyframes = [{{ time = 0 }}, {{ time = {}, translation = [0, 0, -{down}] }}] }}\n",
            down / 5.0
        )
    };
    let text = |are_pinned: bool, down: f64| sheets(0.05, are_pinned) + &ball(down);
    let on_floor = text(false, top - 0.2 - 0.07) + &floor(2.0, 0.5);
    to.scene("stack-floor", 0.25, &on_floor, &contact("4 mm", 0.5))?;
    to.scene("stack-free", 0.25, &text(false, 1.2), &contact("4 mm", 0.5))?;
    to.scene(
        "stack-pinned",
        0.2,
        &text(true, top - 0.2 - 0.32),
        &contact("4 mm", 0.5),
    )
}

/// A polyline with points at equal distances, about as far apart as asked.
fn resampled(line: &[Point], apart: f64) -> Vec<Point> {
    let gap = |a: &Point, b: &Point| (0..3).map(|k| (a[k] - b[k]).powi(2)).sum::<f64>().sqrt();
    let mut lengths = vec![0.0];
    for pair in line.windows(2) {
        lengths.push(lengths[lengths.len() - 1] + gap(&pair[0], &pair[1]));
    }
    let whole = lengths[lengths.len() - 1];
    let count = (whole / apart).round();
    let at = |k: usize| {
        let s = whole * k as f64 / count;
        let i = lengths.partition_point(|l| *l < s).clamp(1, line.len() - 1);
        let t = (s - lengths[i - 1]) / (lengths[i] - lengths[i - 1]);
        std::array::from_fn(|k| line[i - 1][k] + t * (line[i][k] - line[i - 1][k]))
    };
    (0..=count as usize).map(at).collect()
}

/// A reef knot of two ribbons on edge, whose ends are pulled.
fn reef_knot(to: &Folder) -> Result<(), Box<dyn Error>> {
    let (width, columns, rise, crossing) = (0.02, 6, 0.032, 0.12);
    // One strand, from its far end to the middle of the bight.
    let mut strand: Vec<[f64; 2]> = Vec::new();
    for k in 0..2000 {
        let x = -0.45 + (crossing - 0.03 + 0.45) * f64::from(k) / 2000.0;
        let u = ((x + 0.5 * crossing) / crossing).clamp(0.0, 1.0);
        strand.push([x, 0.02 + 0.035 * u * u * (3.0 - 2.0 * u)]);
    }
    for k in 0..=1000 {
        let angle = FRAC_PI_2 * (1.0 - f64::from(k) / 1000.0);
        strand.push([crossing - 0.03 + 0.06 * angle.cos(), 0.055 * angle.sin()]);
    }
    let back = strand.iter().rev().skip(1).map(|[x, y]| [*x, -y]);
    let loop_: Vec<[f64; 2]> = strand.iter().copied().chain(back).collect();
    let mut text = String::from("gravity = [0, 0, 0]\n");
    for (name, side) in [("left", -1.0), ("right", 1.0)] {
        // The second lies under the bight of the first, over its strands, under its legs.
        let height = |x: f64| match side < 0.0 {
            true => 0.0,
            false if x.abs() < 0.105 => rise * (PI * x / 0.105).cos(),
            false => -rise,
        };
        let line: Vec<Point> = loop_
            .iter()
            .map(|[x, y]| [-side * x, *y, height(x * -side)])
            .collect();
        let line = resampled(&line, width / (columns - 1) as f64);
        let rows = line.len();
        let mut points = Vec::new();
        for row in 0..rows {
            let (before, after) = (line[row.saturating_sub(1)], line[(row + 1).min(rows - 1)]);
            let along: Point = std::array::from_fn(|k| after[k] - before[k]);
            let squared: f64 = along.iter().map(|a| a * a).sum();
            // The vertical, less its part along the line.
            let up: Point =
                std::array::from_fn(|k| f64::from(k == 2) - along[k] * along[2] / squared);
            let length = up.iter().map(|u| u * u).sum::<f64>().sqrt();
            for column in 0..columns {
                let w = width * (column as f64 / (columns - 1) as f64 - 0.5) / length;
                points.push(std::array::from_fn(|k| line[row][k] + w * up[k]));
            }
        }
        to.mesh(name, &points, &grid(rows, columns, false))?;
        let (near, far) = (0.44 * side, 0.46 * side);
        let _ = write!(
            text,
            "[[cloth]]\nname = \"{name}\"\nmesh = \"{name}.obj\"\n\
             pins = [{{ min = [{}, -1, -1], max = [{}, 1, 1], motion = {{ keyframes = [{{ time = 0 }}, {{ time = 1, translation = [{}, 0, 0] }}] }} }}]\n{}",
            near.min(far),
            near.max(far),
            0.16 * side,
            material(0.1, "")
        );
    }
    to.scene("reef-knot", 0.8, &text, &contact("1.2 mm", 0.02))
}

/// A tube whose ends turn against each other and come nearer.
fn cylinder(to: &Folder) -> Result<(), Box<dyn Error>> {
    let (around, along) = (48, 40);
    let mut points = Vec::new();
    for row in 0..around {
        let (sine, cosine) = (TAU * row as f64 / around as f64).sin_cos();
        for column in 0..along {
            let x = column as f64 / (along - 1) as f64 - 0.5;
            points.push([0.8 * x, 0.2 * cosine, 0.2 * sine]);
        }
    }
    to.mesh("tube", &points, &grid(around, along, true))?;
    let pin = |x: f64, turn: f64, way: f64| {
        format!(
            "{{ min = [{}, -1, -1], max = [{}, 1, 1], motion = {{ center = [{x}, 0, 0], keyframes = [{{ time = 0 }}, \
             {{ time = 2, turn = [\"{turn} deg\", 0, 0], translation = [{way}, 0, 0] }}] }} }}",
            x - 1e-3,
            x + 1e-3
        )
    };
    let text = format!(
        "gravity = [0, 0, 0]\n[[cloth]]\nname = \"tube\"\nmesh = \"tube.obj\"\npins = [{}, {}]\n{}",
        pin(-0.4, 360.0, 0.02),
        pin(0.4, -360.0, -0.02),
        material(1.0, "")
    );
    to.scene("twisted-cylinder", 1.8, &text, &contact("3 mm", 0.1))
}

/// Three sheets that a tetrahedron pushes through a funnel.
fn funnel(to: &Folder) -> Result<(), Box<dyn Error>> {
    let sides = 40;
    let mut inside: Vec<[f64; 2]> = Vec::new();
    for k in 0..10 {
        inside.push([0.35 - 0.025 * f64::from(k), -0.025 * f64::from(k)]);
    }
    for k in 0..=8 {
        inside.push([0.1, -0.25 - 0.025 * f64::from(k)]);
    }
    let outside = inside.iter().rev().map(|[r, z]| [r + 0.012, *z]);
    let profile: Vec<[f64; 2]> = inside.iter().copied().chain(outside).collect();
    let mut points = Vec::new();
    for [r, z] in &profile {
        for side in 0..sides {
            let (sine, cosine) = (TAU * side as f64 / sides as f64).sin_cos();
            points.push([r * cosine, r * sine, *z]);
        }
    }
    let mut faces = Vec::new();
    for ring in 0..profile.len() {
        for side in 0..sides {
            let next = (ring + 1) % profile.len();
            let [a, b] = [side, (side + 1) % sides].map(|s| ring * sides + s);
            let [d, c] = [side, (side + 1) % sides].map(|s| next * sides + s);
            // Outwards, as the profile goes down inside and up outside.
            faces.extend([[a, b, c], [a, c, d]]);
        }
    }
    to.mesh("funnel", &points, &oriented(&points, faces))?;
    let corner = |k: f64| {
        [
            0.085 * (TAU * k / 3.0).cos(),
            0.085 * (TAU * k / 3.0).sin(),
            0.12,
        ]
    };
    let points = [corner(0.0), corner(1.0), corner(2.0), [0.0, 0.0, -0.06]];
    let faces = vec![[0, 1, 2], [0, 3, 1], [1, 3, 2], [2, 3, 0]];
    to.mesh("tetrahedron", &points, &oriented(&points, faces))?;
    let mut text = String::new();
    for (k, (height, angle)) in [(0.05, 0), (0.1, 45), (0.15, 90)].into_iter().enumerate() {
        let _ = write!(
            text,
            "[[cloth]]\nname = \"sheet{k}\"\ngrid = {{ size = 0.5, vertices = 26 }}\ncenter = [0.01, 0.005, {height}]\n\
             rotation = [0, 0, \"{angle} deg\"]\n{}",
            material(0.06, "")
        );
    }
    text += "[[body]]\nname = \"funnel\"\nshape = \"mesh\"\nmesh = \"funnel.obj\"\nfriction = 0.4\n\
             [[body]]\nname = \"tetrahedron\"\nshape = \"mesh\"\nmesh = \"tetrahedron.obj\"\ntranslation = [0, 0, 0.25]\nfriction = 0.4\n\
             motion = { keyframes = [{ time = 0.2 }, { time = 1.2, translation = [0, 0, -0.6] }] }\n";
    to.scene("funnel", 1.1, &text, &contact("3 mm", 0.4))
}

/// Faces turned over if they do not look outwards.
fn oriented(points: &[Point], faces: Vec<[usize; 3]>) -> Vec<[usize; 3]> {
    let volume: f64 = faces
        .iter()
        .map(|f| {
            let [[a, b, c], [d, e, g], [h, i, j]] = f.map(|v| points[v]);
            a * (e * j - g * i) - b * (d * j - g * h) + c * (d * i - e * h)
        })
        .sum();
    let turned = |[a, b, c]: [usize; 3]| if volume < 0.0 { [a, c, b] } else { [a, b, c] };
    faces.into_iter().map(turned).collect()
}

/// A cloth that is pulled away between a table and four boxes that stand still above it.
fn table_cloth(to: &Folder) -> Result<(), Box<dyn Error>> {
    for speed in [1.0, 4.0, 8.0] {
        let end = 0.05 + 1.0 / speed;
        let mut text = format!(
            "[[cloth]]\nname = \"tablecloth\"\ngrid = {{ size = [1.0, 0.7], vertices = [50, 36] }}\ncenter = [0, 0, 0.0045]\n\
             pins = [{{ min = [0.499, -1, -1], max = [0.501, 1, 1], motion = {{ keyframes = [{{ time = 0.05 }}, \
             {{ time = {end}, translation = [1, 0, 0] }}] }} }}]\n{}",
            material(0.06, "")
        );
        text += "[[body]]\nname = \"table\"\nshape = \"box\"\ncenter = [0, 0, -0.05]\nsize = [0.9, 0.6, 0.1]\nedge = 0.05\nfriction = 0.2\n";
        for (k, [x, y]) in [[-0.2, -0.15], [-0.2, 0.15], [0.1, -0.15], [0.1, 0.15]]
            .iter()
            .enumerate()
        {
            let _ = write!(
                text,
                "[[body]]\nname = \"dish{k}\"\nshape = \"box\"\ncenter = [{x}, {y}, 0.029]\nsize = [0.14, 0.14, 0.04]\n\
                 rotation = [0, 0, \"{} deg\"]\nedge = 0.03\nfriction = 0.2\n",
                17 * k
            );
        }
        text += "[[body]]\nname = \"floor\"\nshape = \"plane\"\npoint = [0, 0, -0.5]\nextent = 5\nedge = 0.2\nfriction = 0.3\n";
        to.scene(
            &format!("table-cloth-{speed}"),
            end + 0.1,
            &text,
            &contact("4 mm", 0.2),
        )?;
    }
    Ok(())
}

/// Sheets in any position that fall on each other between four walls.
fn leaves(to: &Folder) -> Result<(), Box<dyn Error>> {
    let mut text = String::from("air = { wind = [1.5, 0.5, 0] }\n");
    let mut seed = 65_539_u64;
    // A generator that is the same everywhere: numbers from -60 to 60.
    let mut angle = || {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as f64 / (1u64 << 31) as f64 * 120.0 - 60.0
    };
    for k in 0..25 {
        let (i, layer) = (k % 4, k / 4);
        let [x, y] = if k == 24 {
            [0.0, 0.0]
        } else {
            [f64::from(i % 2) * 0.5 - 0.25, f64::from(i / 2) * 0.5 - 0.25]
        };
        let (z, [a, b, c]) = (0.35 + 0.5 * f64::from(layer), [angle(), angle(), angle()]);
        let _ = write!(
            text,
            "[[cloth]]\nname = \"leaf{k}\"\ngrid = {{ size = 0.34, vertices = 10 }}\ncenter = [{x}, {y}, {z}]\n\
             rotation = [\"{a:.3} deg\", \"{b:.3} deg\", \"{c:.3} deg\"]\nvelocity = [0, 0, -2]\n{}",
            material(0.06, ", drag_normal = 1, drag_tangential = 0.05")
        );
    }
    for (k, ([x, y], [w, d])) in [
        ([0.65, 0.0], [0.1, 1.4]),
        ([-0.65, 0.0], [0.1, 1.4]),
        ([0.0, 0.65], [1.4, 0.1]),
        ([0.0, -0.65], [1.4, 0.1]),
    ]
    .into_iter()
    .enumerate()
    {
        let _ = write!(
            text,
            "[[body]]\nname = \"wall{k}\"\nshape = \"box\"\ncenter = [{x}, {y}, 0.3]\nsize = [{w}, {d}, 0.6]\nedge = 0.1\nfriction = 0.3\n"
        );
    }
    to.scene(
        "leaves",
        1.2,
        &(text + &floor(2.0, 0.3)),
        &contact("4 mm", 0.3),
    )
}

/// A panel on a rough box that sinks out of a slippery one.
fn wardrobe(to: &Folder) -> Result<(), Box<dyn Error>> {
    let block = |name: &str, height: f64, size: [f64; 3], friction: f64, motion: &str| {
        format!(
            "[[body]]\nname = \"{name}\"\nshape = \"box\"\ncenter = [0, 0, {height}]\nsize = {size:?}\nedge = 0.08\nfriction = {friction}\n{motion}"
        )
    };
    let text = format!(
        "[[cloth]]\nname = \"panel\"\ngrid = {{ size = [0.9, 1.5], vertices = [34, 56] }}\ncenter = [0, -0.2, 0.82]\n{}{}{}{}",
        material(0.06, ", drag_normal = 0.5"),
        block("slippery", 0.4, [0.6, 0.4, 0.792], 0.02, ""),
        block(
            "rough",
            0.405,
            [0.61, 0.41, 0.8],
            0.8,
            "motion = { keyframes = [{ time = 0.6 }, { time = 0.75, translation = [0, 0, -0.02] }, { time = 1, translation = [0, 0, -0.9] }] }\n"
        ),
        floor(4.0, 0.4)
    );
    to.scene("wardrobe", 1.4, &text, &contact("4 mm", 0.3))
}

/// The profile of a strip that is bent to a U: flaps up to a height, half a circle below.
fn bent(to: &Folder) -> Result<(), Box<dyn Error>> {
    let (radius, height, columns) = (0.1, 0.3, 21);
    let length = PI * radius + 2.0 * height;
    let rows = (length / 0.013).round() as usize;
    let mut points = Vec::new();
    for row in 0..rows {
        let s = length * row as f64 / (rows - 1) as f64;
        let angle = (s - height) / radius;
        let [x, z] = if s < height {
            [-radius, height - s]
        } else if angle > PI {
            [radius, s - height - PI * radius]
        } else {
            [-radius * angle.cos(), -radius * angle.sin()]
        };
        for column in 0..columns {
            points.push([x, 0.26 * (column as f64 / (columns - 1) as f64 - 0.5), z]);
        }
    }
    to.mesh("bent", &points, &grid(rows, columns, false))
}

/// Cloth that meets cloth fast: sheets, ribbons on edge, flaps of one cloth, boxes that clap it.
fn fast(to: &Folder) -> Result<(), Box<dyn Error>> {
    bent(to)?;
    let none = "gravity = [0, 0, 0]\n";
    for speed in [5.0, 10.0, 20.0, 100.0] {
        let half = speed / 2.0;
        let sheet = |name: &str, vertices: u32, center: &str, turn: u32, velocity: f64| {
            format!(
                "[[cloth]]\nname = \"{name}\"\ngrid = {{ size = 0.4, vertices = {vertices} }}\ncenter = {center}\n\
                 rotation = [0, 0, \"{turn} deg\"]\nvelocity = [0, 0, {velocity}]\n{}",
                material(0.06, "")
            )
        };
        let text = format!(
            "{none}{}{}",
            sheet("upper", 27, "[0, 0, 0.05]", 0, -half),
            sheet("lower", 25, "[0.03, 0.02, -0.05]", 17, half)
        );
        to.scene(
            &format!("slam-{speed}"),
            0.1 / speed + 0.05,
            &text,
            &contact("4 mm", 0.3),
        )?;
    }
    for speed in [5.0, 10.0, 20.0] {
        let half = speed / 2.0;
        let text = format!(
            "{none}[[cloth]]\nname = \"upper\"\ngrid = {{ size = [0.4, 0.008], vertices = [161, 4] }}\nrotation = [\"90 deg\", 0, 0]\n\
             center = [0.0007, 0, 0.03]\nvelocity = [0, 0, -{half}]\n{0}\
             [[cloth]]\nname = \"lower\"\ngrid = {{ size = [0.4, 0.008], vertices = [161, 4] }}\nrotation = [\"90 deg\", 0, \"90 deg\"]\n\
             center = [0, 0.0009, -0.03]\nvelocity = [0, 0, {half}]\n{0}",
            material(0.06, "")
        );
        to.scene(
            &format!("ribbons-{speed}"),
            0.06 / speed + 0.04,
            &text,
            &contact("1.5 mm", 0.3),
        )?;
        let stop = 0.02 + 0.19 / speed;
        let flap = |side: f64| {
            format!(
                "{{ min = [{}, -1, 0.299], max = [{}, 1, 0.301], motion = {{ keyframes = [{{ time = 0.02 }}, {{ time = {stop}, translation = [{}, 0, 0] }}] }} }}",
                side.min(0.0),
                side.max(0.0),
                -0.095 * side
            )
        };
        let text = format!(
            "{none}[[cloth]]\nname = \"flaps\"\nmesh = \"bent.obj\"\npins = [{}, {}]\n{}",
            flap(-1.0),
            flap(1.0),
            material(0.06, "")
        );
        to.scene(
            &format!("flaps-{speed}"),
            stop + 0.05,
            &text,
            &contact("4 mm", 0.3),
        )?;
        let stop = 0.02 + 0.196 / speed;
        let clapper = |name: &str, side: f64| {
            format!(
                "[[body]]\nname = \"{name}\"\nshape = \"box\"\ncenter = [{}, 0, 0.17]\nsize = [0.05, 0.34, 0.27]\nedge = 0.04\nfriction = 0.3\n\
                 motion = {{ keyframes = [{{ time = 0.02 }}, {{ time = {stop}, translation = [{}, 0, 0] }}] }}\n",
                0.131 * side,
                -0.098 * side
            )
        };
        let text = format!(
            "{none}[[cloth]]\nname = \"flaps\"\nmesh = \"bent.obj\"\n{}{}{}",
            material(0.06, ""),
            clapper("left", -1.0),
            clapper("right", 1.0)
        );
        to.scene(
            &format!("clap-{speed}"),
            stop + 0.05,
            &text,
            &contact("4 mm", 0.3),
        )?;
    }
    Ok(())
}

/// Ten layers that fly at 20 m/s onto a sheet that is held; with everything moving besides, too.
fn layers(to: &Folder) -> Result<(), Box<dyn Error>> {
    for (name, besides) in [("layers", 0.0), ("layers-moving", 10.0)] {
        let mut text = String::from("gravity = [0, 0, 0]\n");
        for k in 0..11 {
            let (pins, velocity) = match k {
                0 => (
                    format!(
                        "pins = [{{ min = [-1, -1, -1], max = [1, 1, 1], velocity = [{besides}, 0, 0] }}]\n"
                    ),
                    0.0,
                ),
                _ => (String::new(), -20.0),
            };
            let _ = write!(
                text,
                "[[cloth]]\nname = \"layer{k}\"\ngrid = {{ size = 0.2, vertices = 14 }}\ncenter = [0, 0, {}]\n\
                 rotation = [0, 0, \"{} deg\"]\nvelocity = [{besides}, 0, {velocity}]\n{pins}{}",
                0.012 * f64::from(k),
                9 * k,
                material(0.06, "")
            );
        }
        to.scene(name, 0.04, &text, &contact("4 mm", 0.3))?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os()
        .nth(1)
        .ok_or("name the folder to write to")?;
    let folder = Path::new(&folder).to_owned();
    fs::create_dir_all(&folder)?;
    let to = Folder(folder);
    let all = [
        twister,
        curtain,
        spinning_ball,
        stack,
        reef_knot,
        cylinder,
        funnel,
        table_cloth,
        leaves,
        wardrobe,
        fast,
        layers,
    ];
    all.iter().try_for_each(|write| write(&to))
}
