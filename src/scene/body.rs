//! The keys of a `[[body]]`.

use std::path::{Path, PathBuf};

use glam::DVec3;

use super::form::{Amount, Direction, OneOf, Text, Vector, words};
use super::in_time::Changing;
use super::key::{Changes, Key, Nested, Value, note_missing, read_keys, write_lines};
use super::motion;
use super::objects::{Surroundings, file, file_that_is_there, motion_of, name, prim};
use super::quantity::Dimension;
use super::reader::{Range, Table};
use super::{
    Axis, Body, Deformation, InTime, Placement, Sequence, Shape, Surface, Units, Up, defaults,
};
use crate::mesh::files_of;

/// The shapes of bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Sphere,
    Plane,
    Box,
    Capsule,
    Mesh,
}

impl Kind {
    const ALL: [Self; 5] = [
        Self::Sphere,
        Self::Plane,
        Self::Box,
        Self::Capsule,
        Self::Mesh,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Sphere => "sphere",
            Self::Plane => "plane",
            Self::Box => "box",
            Self::Capsule => "capsule",
            Self::Mesh => "mesh",
        }
    }
}

/// The surface of a shape in collision tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MadeOf {
    Triangles,
    Formula,
    Distance,
}

impl MadeOf {
    const ALL: [Self; 3] = [Self::Triangles, Self::Formula, Self::Distance];

    fn name(self) -> &'static str {
        match self {
            Self::Triangles => "triangles",
            Self::Formula => "analytic",
            Self::Distance => "distance",
        }
    }
}

words!(Kind, MadeOf);

/// The values of the keys of a body.
pub(super) struct BodyKeys {
    name: Option<String>,
    kind: Option<Kind>,
    center: DVec3,
    size: DVec3,
    from: DVec3,
    to: DVec3,
    radius: f64,
    point: DVec3,
    normal: DVec3,
    extent: f64,
    mesh: Option<String>,
    sequence: Option<String>,
    rate: Option<f64>,
    animation: Option<String>,
    prim: Option<String>,
    units: Option<Units>,
    up: Option<Up>,
    scale: f64,
    mirror: Option<Axis>,
    rotation: DVec3,
    translation: DVec3,
    made_of: MadeOf,
    cell: Option<f64>,
    edge: Option<f64>,
    thickness: Option<f64>,
    friction: InTime<f64>,
    velocity: Option<DVec3>,
}

impl Default for BodyKeys {
    fn default() -> Self {
        Self {
            name: None,
            kind: None,
            center: DVec3::NAN,
            size: DVec3::NAN,
            from: DVec3::NAN,
            to: DVec3::NAN,
            radius: f64::NAN,
            point: DVec3::ZERO,
            normal: DVec3::Z,
            extent: defaults::PLANE_EXTENT,
            mesh: None,
            sequence: None,
            rate: None,
            animation: None,
            prim: None,
            units: None,
            up: None,
            scale: 1.0,
            mirror: None,
            rotation: DVec3::ZERO,
            translation: DVec3::ZERO,
            made_of: MadeOf::Triangles,
            cell: None,
            edge: None,
            thickness: None,
            friction: InTime::constant(defaults::BODY_FRICTION),
            velocity: None,
        }
    }
}

impl BodyKeys {
    /// Whether it has one of these shapes.
    fn is(&self, kinds: &[Kind]) -> bool {
        self.kind.is_some_and(|kind| kinds.contains(&kind))
    }
}

type Of<F> = Value<BodyKeys, F>;

const POINT: Vector = Vector(Dimension::LENGTH, Range::Any);

/// The keys of a body, in the order in which they are read and echoed.
pub(super) const KEYS: &[Key<BodyKeys>] = &[
    Key::new(
        "name",
        &Of {
            form: Text,
            get: |body| body.name.clone(),
            set: |body, name| body.name = Some(name),
        },
        "Its name in messages and files, as of cloths.",
    )
    .unset("`body0`, `body1`, ..."),
    Key::new(
        "shape",
        &Of {
            form: OneOf::<Kind>::NEW,
            get: |body| body.kind,
            set: |body, kind| body.kind = Some(kind),
        },
        "Its shape. Spheres, planes and capsules are turned by what places them.",
    )
    .required("shape = \"sphere\""),
    Key::new(
        "center",
        &Of {
            form: POINT,
            get: |body| Some(body.center),
            set: |body, center| body.center = center,
        },
        "Its centre.",
    )
    .required("center = [0, 0, 0.2]")
    .only("`\"sphere\"`, `\"box\"`", |body| {
        body.is(&[Kind::Sphere, Kind::Box])
    }),
    Key::new(
        "size",
        &Of {
            form: Vector(Dimension::LENGTH, Range::Positive),
            get: |body| Some(body.size),
            set: |body, size| body.size = size,
        },
        "The lengths of its sides.",
    )
    .required("size = [0.2, 0.2, 0.2]")
    .only("`\"box\"`", |body| body.is(&[Kind::Box])),
    Key::new(
        "from",
        &Of {
            form: POINT,
            get: |body| Some(body.from),
            set: |body, from| body.from = from,
        },
        "One end of the segment that it is around.",
    )
    .required("from = [0, 0, 0.2]")
    .only("`\"capsule\"`", |body| body.is(&[Kind::Capsule])),
    Key::new(
        "to",
        &Of {
            form: POINT,
            get: |body| Some(body.to),
            set: |body, to| body.to = to,
        },
        "The other end of the segment.",
    )
    .required("to = [0.5, 0, 0.2]")
    .only("`\"capsule\"`", |body| body.is(&[Kind::Capsule])),
    Key::new(
        "radius",
        &Of {
            form: Amount(Dimension::LENGTH, Range::Positive),
            get: |body| Some(body.radius),
            set: |body, radius| body.radius = radius,
        },
        "Its radius.",
    )
    .required("radius = \"0.2 m\"")
    .only("`\"sphere\"`, `\"capsule\"`", |body| {
        body.is(&[Kind::Sphere, Kind::Capsule])
    }),
    Key::new(
        "point",
        &Of {
            form: POINT,
            get: |body| Some(body.point),
            set: |body, point| body.point = point,
        },
        "A point of the plane; it is the middle of the square of triangles.",
    )
    .only("`\"plane\"`", |body| body.is(&[Kind::Plane])),
    Key::new(
        "normal",
        &Of {
            form: Direction {
                example: "[0, 0, 1]",
            },
            get: |body| Some(body.normal),
            set: |body, normal| body.normal = normal,
        },
        "The normal of the plane, towards the cloth.",
    )
    .only("`\"plane\"`", |body| body.is(&[Kind::Plane])),
    Key::new(
        "extent",
        &Of {
            form: Amount(Dimension::LENGTH, Range::Positive),
            get: |body| Some(body.extent),
            set: |body, extent| body.extent = extent,
        },
        "The side of the square of triangles. An analytic plane has no end.",
    )
    .only("`\"plane\"`", |body| body.is(&[Kind::Plane])),
    Key::new(
        "mesh",
        &Of {
            form: Text,
            get: |body| body.mesh.clone(),
            set: |body, mesh| body.mesh = Some(mesh),
        },
        "A file `.obj`, `.ply`, `.stl`, `.glb`, `.gltf`, `.usd`, `.usda`, `.usdc` or `.usdz`, relative to the \
         scene's folder: [what is read](#mesh-files). A mesh that is [closed](#closed-bodies) has an inside, any other has two sides.",
    )
    .unset("that of the first file of `sequence`; without one it is needed")
    .only("`\"mesh\"`", |body| body.is(&[Kind::Mesh])),
    Key::new(
        "sequence",
        &Of {
            form: Text,
            get: |body| body.sequence.clone(),
            set: |body, sequence| body.sequence = Some(sequence),
        },
        "The samples that the mesh [deforms](#bodies-that-deform) by: numbered files `.obj` or `.ply` with a `*` for \
         the number, as `\"body.*.obj\"`, a point cache `.pc2` or `.mdd` of the mesh, or a figure `.glb` or `.gltf` that \
         keyframes of its file move.",
    )
    .unset("it keeps its shape")
    .only("`\"mesh\"`", |body| body.is(&[Kind::Mesh])),
    Key::new(
        "rate",
        &Of {
            form: Amount(Dimension::RATE, Range::Positive),
            get: |body| body.rate,
            set: |body, rate| body.rate = Some(rate),
        },
        "How many files of the sequence, or frames of a `.pc2`, there are in a second, or samples of a figure's \
         animation. An `.mdd` says when its samples are.",
    )
    .unset("120 for a figure; a sequence of files and a `.pc2` need it")
    .only("`\"mesh\"`", |body| body.is(&[Kind::Mesh])),
    Key::new(
        "animation",
        &Of {
            form: Text,
            get: |body| body.animation.clone(),
            set: |body, animation| body.animation = Some(animation),
        },
        "The name of the animation of a figure, if its file has several. One without a name is called by its number, \
         `\"0\"`, `\"1\"`, ...",
    )
    .unset("the only one of the file")
    .only("`\"mesh\"`", |body| body.is(&[Kind::Mesh])),
    Key::new(
        "prim",
        &Of {
            form: Text,
            get: |body| body.prim.clone(),
            set: |body, prim| body.prim = Some(prim),
        },
        "The part of a USD file that is meant, by its path or name: the meshes of that prim and of \
         those below it.",
    )
    .unset("all meshes")
    .only("`\"mesh\"`", |body| body.is(&[Kind::Mesh])),
    Key::new(
        "units",
        &Of {
            form: OneOf::<Units>::NEW,
            get: |body| body.units,
            set: |body, units| body.units = Some(units),
        },
        "The unit of the file's coordinates.",
    )
    .unset("m, of USD as the file says")
    .only("`\"mesh\"`", |body| body.is(&[Kind::Mesh])),
    Key::new(
        "up",
        &Of {
            form: OneOf::<Up>::NEW,
            get: |body| body.up,
            set: |body, up| body.up = Some(up),
        },
        "The axis of the file that points upwards; it becomes z.",
    )
    .unset("z, of glTF y, of USD as the file says")
    .only("`\"mesh\"`", |body| body.is(&[Kind::Mesh])),
    Key::new(
        "scale",
        &Of {
            form: Amount(Dimension::NUMBER, Range::Positive),
            get: |body| Some(body.scale),
            set: |body, scale| body.scale = scale,
        },
        "A factor on the coordinates of the file; [what else is done to them](#mesh-files).",
    )
    .only("`\"mesh\"`", |body| body.is(&[Kind::Mesh])),
    Key::new(
        "mirror",
        &Of {
            form: OneOf::<Axis>::NEW,
            get: |body| body.mirror,
            set: |body, axis| body.mirror = Some(axis),
        },
        "This coordinate changes its sign, as of cloths.",
    )
    .unset("none")
    .only("`\"mesh\"`", |body| body.is(&[Kind::Mesh])),
    Key::new(
        "rotation",
        &Of {
            form: Vector(Dimension::ANGLE, Range::Any),
            get: |body| Some(body.rotation),
            set: |body, rotation| body.rotation = rotation,
        },
        "The angles about x, y, z by which it is rotated, in this order: a box about its centre, a \
         mesh about the file's origin.",
    )
    .only("`\"box\"`, `\"mesh\"`", |body| {
        body.is(&[Kind::Box, Kind::Mesh])
    }),
    Key::new(
        "translation",
        &Of {
            form: POINT,
            get: |body| Some(body.translation),
            set: |body, translation| body.translation = translation,
        },
        "By how much it is moved, after its rotation.",
    )
    .only("`\"mesh\"`", |body| body.is(&[Kind::Mesh])),
    Key::new(
        "surface",
        &Of {
            form: OneOf::<MadeOf>::NEW,
            get: |body| Some(body.made_of),
            set: |body, made_of| body.made_of = made_of,
        },
        "Which shape collision tests take for it. A mesh has no analytic surface; no other shape has a \
         sampled [distance](#distance-bodies).",
    ),
    Key::new(
        "cell",
        &Of {
            form: Amount(Dimension::LENGTH, Range::Positive),
            get: |body| body.cell,
            set: |body, cell| body.cell = Some(cell),
        },
        "The side of the cells in which its [distance](#distance-bodies) is sampled, with `surface = \"distance\"`.",
    )
    .unset("the least distance that cloth keeps from it, between 1/512 and 1/32 of its longest side")
    .only("`\"mesh\"`", |body| body.is(&[Kind::Mesh])),
    Key::new(
        "edge",
        &Of {
            form: Amount(Dimension::LENGTH, Range::Positive),
            get: |body| body.edge,
            set: |body, edge| body.edge = Some(edge),
        },
        "The length of the triangles' edges. A mesh has those of its file.",
    )
    .unset("radius / 8, extent / 32, longest side / 8")
    .only("all but `\"mesh\"`", |body| !body.is(&[Kind::Mesh])),
    Key::new(
        "thickness",
        &Of {
            form: Amount(Dimension::LENGTH, Range::Positive),
            get: |body| body.thickness,
            set: |body, thickness| body.thickness = Some(thickness),
        },
        "Its thickness in contact: cloth keeps half of it and half of its own as its \
         [distance](#thickness-and-friction-of-pairs).",
    )
    .unset("`contact.thickness`"),
    Key::new(
        "friction",
        &Of {
            form: Changing(Amount(Dimension::NUMBER, Range::NonNegative)),
            get: |body| Some(body.friction.clone()),
            set: |body, friction| body.friction = friction,
        },
        "Coulomb's coefficient of its friction with cloth. With a cloth that has its own, the pair has \
         the [geometric mean](#thickness-and-friction-of-pairs).",
    )
    .changes(Changes::Onwards),
    Key::new(
        "velocity",
        &Of {
            form: Vector(Dimension::SPEED, Range::Any),
            get: |body| body.velocity,
            set: |body, velocity| body.velocity = Some(velocity),
        },
        "Its constant velocity.",
    )
    .unset("0"),
    Key::new(
        "motion",
        &Nested {
            what: "a table",
            // It has a header of its own.
            write: |_: &BodyKeys| None,
        },
        "How it moves and turns, instead of `velocity`: [its keys](#motion).",
    )
    .unset("none"),
];

/// Reads one `[[body]]`; `None` if it has no known shape.
pub(super) fn body(
    table: &Table<'_>,
    index: usize,
    surroundings: &Surroundings<'_>,
) -> Option<Body> {
    let said = read_keys(table, KEYS, BodyKeys::default());
    let default = format!("body{index}");
    let name = name(table, said.name.as_deref(), &default, surroundings);
    let Some(kind) = said.kind else {
        if !table.has("shape") {
            note_missing(table, KEYS, &said);
        }
        // Without a shape nothing is known of the other keys: they are not called unknown.
        table.ignore_rest();
        return None;
    };
    note_missing(table, KEYS, &said);
    let deformation = deformation(kind, &said, table, surroundings);
    let first = deformation.as_ref().and_then(|it| match &it.sequence {
        Sequence::Files { files, .. } => files.first().cloned(),
        Sequence::Figure { path, .. } => Some(path.clone()),
        Sequence::Cache(_) => None,
    });
    let (shape, edge) = shape(kind, &said, first, table, surroundings);
    let motion = motion_of(
        table,
        "body",
        said.velocity,
        middle(&shape),
        surroundings.step,
    );
    Some(Body {
        name,
        surface: surface(kind, &said, table, edge),
        shape,
        thickness: said.thickness,
        friction: said.friction,
        velocity: said.velocity.unwrap_or(DVec3::ZERO),
        motion,
        deformation,
    })
}

/// How a mesh deforms, if it does.
fn deformation(
    kind: Kind,
    said: &BodyKeys,
    table: &Table<'_>,
    surroundings: &Surroundings<'_>,
) -> Option<Deformation> {
    if kind != Kind::Mesh {
        return None;
    }
    let Some(text) = &said.sequence else {
        if said.rate.is_some() {
            table.note("rate", "is of a `sequence`, and the body has none");
        }
        if said.animation.is_some() {
            table.note("animation", "is of a `sequence`, and the body has none");
        }
        return None;
    };
    let path = surroundings
        .folder
        .map_or_else(|| text.into(), |folder| folder.join(text));
    let ending = path.extension().and_then(|ending| ending.to_str());
    let ending = ending.unwrap_or_default().to_ascii_lowercase();
    let sequence = match &ending[..] {
        "obj" | "ply" => {
            let files = files_of(&path).unwrap_or_else(|error| {
                table.note("sequence", error.0);
                Vec::new()
            });
            Sequence::Files {
                pattern: path,
                files,
            }
        }
        "pc2" | "mdd" => {
            file_that_is_there(table, "sequence", &path);
            Sequence::Cache(path)
        }
        "glb" | "gltf" => {
            file_that_is_there(table, "sequence", &path);
            let animation = said.animation.clone();
            Sequence::Figure { path, animation }
        }
        _ => {
            let message = "wants numbered files .obj or .ply, such as \"body.*.obj\", a point cache .pc2 or .mdd, or a figure .glb or \
                           .gltf";
            table.note("sequence", message);
            return None;
        }
    };
    match (said.rate, &ending[..]) {
        (None, "mdd") | (Some(_), "obj" | "ply" | "pc2") | (_, "glb" | "gltf") => {}
        (Some(_), _) => table.note("rate", "an .mdd says when its samples are; leave it out"),
        (None, _) => table.note_missing("rate", "rate = 25"),
    }
    if said.animation.is_some() && !matches!(sequence, Sequence::Figure { .. }) {
        let message = "is of a figure .glb or .gltf, and the `sequence` is none; leave it out";
        table.note("animation", message);
    }
    Some(Deformation {
        sequence,
        rate: said.rate,
    })
}

/// Whether a file is one of figures that are animated.
fn is_figure(sequence: &str) -> bool {
    let ending = Path::new(sequence).extension();
    ending.is_some_and(|ending| {
        ["glb", "gltf"]
            .iter()
            .any(|known| ending.eq_ignore_ascii_case(known))
    })
}

/// The point about which a body turns unless its motion says otherwise.
fn middle(shape: &Shape) -> DVec3 {
    match shape {
        Shape::Sphere { center, .. } | Shape::Box { center, .. } => *center,
        Shape::Plane { point, .. } => *point,
        Shape::Capsule { from, to, .. } => from.midpoint(*to),
        Shape::Mesh { placement, .. } => placement.translation,
    }
}

/// The shape and the default length of its triangles' edges. `first` is the first file of a
/// sequence, if that has meshes.
fn shape(
    kind: Kind,
    said: &BodyKeys,
    first: Option<PathBuf>,
    table: &Table<'_>,
    surroundings: &Surroundings<'_>,
) -> (Shape, f64) {
    let &BodyKeys {
        center,
        size,
        from,
        to,
        radius,
        point,
        normal,
        extent,
        units,
        up,
        scale,
        mirror,
        rotation,
        translation,
        ..
    } = said;
    match kind {
        Kind::Sphere => (
            Shape::Sphere { center, radius },
            radius / defaults::EDGES_PER_RADIUS,
        ),
        Kind::Plane => {
            let shape = Shape::Plane {
                point,
                normal,
                extent,
            };
            (shape, extent / defaults::EDGES_PER_PLANE)
        }
        Kind::Box => {
            let shape = Shape::Box {
                center,
                size,
                rotation,
            };
            (shape, size.max_element() / defaults::EDGES_PER_RADIUS)
        }
        Kind::Capsule => {
            if from.distance(to) < radius * LEAST_CAPSULE {
                table.note(
                    "to",
                    "is where `from` is; a capsule without length is a sphere",
                );
            }
            (
                Shape::Capsule { from, to, radius },
                radius / defaults::EDGES_PER_RADIUS,
            )
        }
        Kind::Mesh => {
            let path = said.mesh.as_ref();
            let path = path.map(|mesh| file(table, "mesh", mesh, surroundings.folder));
            let has_mesh = |sequence: &str| sequence.contains('*') || is_figure(sequence);
            if path.is_none() && !said.sequence.as_deref().is_some_and(has_mesh) {
                table.note_missing("mesh", "mesh = \"shirt.obj\"");
            }
            let path = path.or(first);
            let shape = Shape::Mesh {
                path: path.unwrap_or_default(),
                prim: prim(table, said.mesh.as_deref(), said.prim.clone()),
                placement: Placement {
                    units,
                    up,
                    scale,
                    mirror,
                    rotation,
                    translation,
                },
            };
            (shape, 0.0)
        }
    }
}

fn surface(kind: Kind, said: &BodyKeys, table: &Table<'_>, default_edge: f64) -> Surface {
    let analytic = said.made_of == MadeOf::Formula;
    if said.cell.is_some() && said.made_of != MadeOf::Distance {
        table.note(
            "cell",
            "is of surface = \"distance\", and the body has another",
        );
    }
    if said.made_of == MadeOf::Distance {
        if kind != Kind::Mesh {
            table.note(
                "surface",
                "samples the distance from a mesh; other shapes have a formula, take \"analytic\"",
            );
        }
        return Surface::Distance { cell: said.cell };
    }
    if kind == Kind::Mesh {
        if analytic {
            table.note(
                "surface",
                "a mesh has no analytic surface; take \"triangles\"",
            );
        }
        return Surface::Triangles { edge: 0.0 };
    }
    if analytic {
        if said.edge.is_some() {
            table.note(
                "edge",
                "an analytic surface has no edges; take surface = \"triangles\"",
            );
        }
        return Surface::Analytic;
    }
    Surface::Triangles {
        edge: said.edge.unwrap_or(default_edge),
    }
}

/// Writes a body.
pub(super) fn write_body(out: &mut String, body: &Body) {
    out.push_str("\n[[body]]\n");
    write_lines(out, KEYS, &BodyKeys::from(body));
    if let Some(motion) = &body.motion {
        out.push_str("[body.motion]\n");
        write_lines(out, motion::KEYS, motion);
    }
}

impl From<&Body> for BodyKeys {
    fn from(body: &Body) -> Self {
        let mut said = Self {
            name: Some(body.name.clone()),
            thickness: body.thickness,
            friction: body.friction.clone(),
            velocity: body.motion.is_none().then_some(body.velocity),
            ..Self::default()
        };
        if let Some(Deformation { sequence, rate }) = &body.deformation {
            said.sequence = Some(sequence.path().to_string_lossy().into_owned());
            said.rate = *rate;
            if let Sequence::Figure { animation, .. } = sequence {
                said.animation.clone_from(animation);
            }
        }
        let kind = match &body.shape {
            &Shape::Sphere { center, radius } => {
                (said.center, said.radius) = (center, radius);
                Kind::Sphere
            }
            &Shape::Plane {
                point,
                normal,
                extent,
            } => {
                (said.point, said.normal, said.extent) = (point, normal, extent);
                Kind::Plane
            }
            &Shape::Box {
                center,
                size,
                rotation,
            } => {
                (said.center, said.size, said.rotation) = (center, size, rotation);
                Kind::Box
            }
            &Shape::Capsule { from, to, radius } => {
                (said.from, said.to, said.radius) = (from, to, radius);
                Kind::Capsule
            }
            Shape::Mesh {
                path,
                prim,
                placement,
            } => {
                said.mesh = Some(path.to_string_lossy().into_owned());
                said.prim.clone_from(prim);
                (said.units, said.up) = (placement.units, placement.up);
                (said.scale, said.mirror) = (placement.scale, placement.mirror);
                said.rotation = placement.rotation;
                said.translation = placement.translation;
                Kind::Mesh
            }
        };
        said.kind = Some(kind);
        match body.surface {
            Surface::Analytic => said.made_of = MadeOf::Formula,
            Surface::Distance { cell } => {
                said.made_of = MadeOf::Distance;
                said.cell = cell;
            }
            Surface::Triangles { .. } if kind == Kind::Mesh => {}
            Surface::Triangles { edge } => said.edge = Some(edge),
        }
        said
    }
}

/// Length of a capsule's segment in radii below which it is a sphere.
const LEAST_CAPSULE: f64 = 1e-6;
