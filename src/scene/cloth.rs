//! The keys of a `[[cloth]]`.

use std::path::PathBuf;

use glam::DVec3;

use super::form::{
    AlongXAndY, Amount, Count, Counts, Direction, Flag, OneOf, Text, Vector, plain, words,
};
use super::key::{Changes, Key, Nested, Value, note_missing, read_keys, write_inline, write_lines};
use super::load::MOST_VERTICES;
use super::material::{self, material};
use super::objects::{Surroundings, Thickness, file, name, prim};
use super::pin::{pin, write_pins};
use super::quantity::Dimension;
use super::reader::{Range, Table};
use super::{Axis, Cloth, ClothSource, Material, Pin, Placement, RestSource, Units, Up, defaults};

words!(Axis, Units, Up);

/// The key that says where a cloth's mesh comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Grid,
    Shirt,
    Mesh,
}

/// The values of the keys of a cloth.
pub(super) struct ClothKeys {
    source: Option<Source>,
    name: Option<String>,
    grid: Option<GridKeys>,
    shirt: Option<ShirtKeys>,
    mesh: Option<String>,
    prim: Option<String>,
    rest: Option<String>,
    rest_texture: Option<[f64; 2]>,
    units: Option<Units>,
    up: Option<Up>,
    scale: f64,
    mirror: Option<Axis>,
    weld: Option<f64>,
    center: DVec3,
    rotation: DVec3,
    translation: DVec3,
    velocity: DVec3,
    velocities: Option<bool>,
    pressure: f64,
    thickness: Option<f64>,
    friction: Option<f64>,
    self_collision: bool,
    pins: Vec<Pin>,
    weave: Option<DVec3>,
}

impl Default for ClothKeys {
    fn default() -> Self {
        Self {
            source: None,
            name: None,
            grid: None,
            shirt: None,
            mesh: None,
            prim: None,
            rest: None,
            rest_texture: None,
            units: None,
            up: None,
            scale: 1.0,
            mirror: None,
            weld: None,
            center: DVec3::ZERO,
            rotation: DVec3::ZERO,
            translation: DVec3::ZERO,
            velocity: DVec3::ZERO,
            velocities: None,
            pressure: 0.0,
            thickness: None,
            friction: None,
            self_collision: true,
            pins: Vec::new(),
            weave: None,
        }
    }
}

impl ClothKeys {
    /// Whether it is made of one of these, for all that is known.
    fn may_be(&self, sources: &[Source]) -> bool {
        self.source.is_none_or(|source| sources.contains(&source))
    }

    /// Its thickness, if all pairs of features within it push.
    fn own_thickness(&self, surroundings: &Surroundings<'_>) -> Option<Thickness> {
        let collides = self.self_collision;
        collides.then(|| surroundings.thickness_of(self.thickness))?
    }
}

type Of<F> = Value<ClothKeys, F>;

/// The keys of a cloth, in the order in which they are read and echoed.
pub(super) const KEYS: &[Key<ClothKeys>] = &[
    Key::new(
        "name",
        &Of {
            form: Text,
            get: |cloth| cloth.name.clone(),
            set: |cloth, name| cloth.name = Some(name),
        },
        "Its name in messages and files: 1 to 64 letters, digits, `-` or `_`, a letter first.",
    )
    .unset("`cloth0`, `cloth1`, ..."),
    Key::new(
        "grid",
        &Nested {
            what: "a table",
            write: |cloth: &ClothKeys| {
                let grid = cloth.grid.as_ref()?;
                Some(plain(write_inline(GRID_KEYS, grid)))
            },
        },
        "A flat rectangle. A cloth has this, `shirt` or `mesh`.",
    )
    .required("grid = { size = \"1 m\", vertices = 100 }"),
    Key::new(
        "shirt",
        &Nested {
            what: "a table",
            write: |cloth: &ClothKeys| {
                let shirt = cloth.shirt.as_ref()?;
                Some(plain(write_inline(SHIRT_KEYS, shirt)))
            },
        },
        "A shirt, front and back sewn together, upright, its front towards -y.",
    )
    .unset("see `grid`"),
    Key::new(
        "mesh",
        &Of {
            form: Text,
            get: |cloth| cloth.mesh.clone(),
            set: |cloth, mesh| cloth.mesh = Some(mesh),
        },
        "A file `.obj`, `.ply`, `.stl`, `.glb`, `.gltf`, `.usd`, `.usda`, `.usdc` or `.usdz`, relative to the \
         scene's folder: [what is read](#mesh-files).",
    )
    .unset("see `grid`"),
    Key::new(
        "prim",
        &Of {
            form: Text,
            get: |cloth| cloth.prim.clone(),
            set: |cloth, prim| cloth.prim = Some(prim),
        },
        "The part of a USD file that is meant, by its path or name: the meshes of that prim and of \
         those below it.",
    )
    .unset("all meshes")
    .only("`mesh`", |cloth| cloth.may_be(&[Source::Mesh])),
    Key::new(
        "rest",
        &Of {
            form: Text,
            get: |cloth| cloth.rest.clone(),
            set: |cloth, rest| cloth.rest = Some(rest),
        },
        "A file with the vertices and faces of `mesh` in the shape that the cloth has [at \
         rest](#rest-shapes).",
    )
    .unset("that of `mesh`")
    .only("`mesh`", |cloth| cloth.may_be(&[Source::Mesh])),
    Key::new(
        "rest_texture",
        &Of {
            form: AlongXAndY(Dimension::LENGTH, Range::Positive),
            get: |cloth| cloth.rest_texture,
            set: |cloth, unit| cloth.rest_texture = Some(unit),
        },
        "The length of a unit of the texture coordinates, which are then the flat shape that the cloth \
         has [at rest](#rest-shapes), instead of `rest`.",
    )
    .unset("see `rest`")
    .only("`mesh`", |cloth| cloth.may_be(&[Source::Mesh])),
    Key::new(
        "units",
        &Of {
            form: OneOf::<Units>::NEW,
            get: |cloth| cloth.units,
            set: |cloth, units| cloth.units = Some(units),
        },
        "The unit of the file's coordinates.",
    )
    .unset("m, of USD as the file says")
    .only("`mesh`", |cloth| cloth.may_be(&[Source::Mesh])),
    Key::new(
        "up",
        &Of {
            form: OneOf::<Up>::NEW,
            get: |cloth| cloth.up,
            set: |cloth, up| cloth.up = Some(up),
        },
        "The axis of the file that points upwards; it becomes z.",
    )
    .unset("z, of glTF y, of USD as the file says")
    .only("`mesh`", |cloth| cloth.may_be(&[Source::Mesh])),
    Key::new(
        "scale",
        &Of {
            form: Amount(Dimension::NUMBER, Range::Positive),
            get: |cloth| Some(cloth.scale),
            set: |cloth, scale| cloth.scale = scale,
        },
        "A factor on the coordinates of the file.",
    )
    .only("`mesh`", |cloth| cloth.may_be(&[Source::Mesh])),
    Key::new(
        "mirror",
        &Of {
            form: OneOf::<Axis>::NEW,
            get: |cloth| cloth.mirror,
            set: |cloth, axis| cloth.mirror = Some(axis),
        },
        "This coordinate changes its sign before any rotation, and triangles are turned over: what \
         was their front stays it.",
    )
    .unset("none")
    .only("`mesh`", |cloth| cloth.may_be(&[Source::Mesh])),
    Key::new(
        "weld",
        &Of {
            form: Amount(Dimension::LENGTH, Range::Positive),
            get: |cloth| cloth.weld,
            set: |cloth, distance| cloth.weld = Some(distance),
        },
        "Vertices of the file that are nearer to each other than this, where the scene puts them, \
         become [one vertex](#mesh-files): seams that were exported as two rows of vertices are closed.",
    )
    .unset("none do; in STL and glTF, those that are equal")
    .only("`mesh`", |cloth| cloth.may_be(&[Source::Mesh])),
    Key::new(
        "center",
        &Of {
            form: Vector(Dimension::LENGTH, Range::Any),
            get: |cloth| Some(cloth.center),
            set: |cloth, center| cloth.center = center,
        },
        "Where the middle of the cloth is, about which it is rotated.",
    )
    .only("`grid`, `shirt`", |cloth| {
        cloth.may_be(&[Source::Grid, Source::Shirt])
    }),
    Key::new(
        "rotation",
        &Of {
            form: Vector(Dimension::ANGLE, Range::Any),
            get: |cloth| Some(cloth.rotation),
            set: |cloth, rotation| cloth.rotation = rotation,
        },
        "The angles about x, y, z by which it is rotated, in this order.",
    ),
    Key::new(
        "translation",
        &Of {
            form: Vector(Dimension::LENGTH, Range::Any),
            get: |cloth| Some(cloth.translation),
            set: |cloth, translation| cloth.translation = translation,
        },
        "The vector by which it is moved, after its rotation about the origin.",
    )
    .only("`mesh`", |cloth| cloth.may_be(&[Source::Mesh])),
    Key::new(
        "velocity",
        &Of {
            form: Vector(Dimension::SPEED, Range::Any),
            get: |cloth| Some(cloth.velocity),
            set: |cloth, velocity| cloth.velocity = velocity,
        },
        "The velocity with which it starts.",
    ),
    Key::new(
        "velocities",
        &Of {
            form: Flag,
            get: |cloth| cloth.velocities,
            set: |cloth, are_taken| cloth.velocities = Some(are_taken),
        },
        "Whether vertices start with the [velocities](#mesh-files) that the file has, to which \
         `velocity` is added.",
    )
    .unset("they do not, with a warning if the file has some")
    .only("`mesh`", |cloth| cloth.may_be(&[Source::Mesh])),
    Key::new(
        "pressure",
        &Of {
            form: Amount(Dimension::PRESSURE, Range::Any),
            get: |cloth| Some(cloth.pressure),
            set: |cloth, pressure| cloth.pressure = pressure,
        },
        "The pressure inside a closed mesh beyond that outside; its triangles must face \
         outwards.",
    )
    .changes(Changes::Onwards)
    .only("`mesh`", |cloth| cloth.may_be(&[Source::Mesh])),
    Key::new(
        "thickness",
        &Of {
            form: Amount(Dimension::LENGTH, Range::Positive),
            get: |cloth| cloth.thickness,
            set: |cloth, thickness| cloth.thickness = Some(thickness),
        },
        "Its thickness in contact. Two cloths, and a cloth and a body, keep half of each as their \
         [distance](#thickness-and-friction-of-pairs).",
    )
    .unset("`contact.thickness`"),
    Key::new(
        "friction",
        &Of {
            form: Amount(Dimension::NUMBER, Range::NonNegative),
            get: |cloth| cloth.friction,
            set: |cloth, friction| cloth.friction = Some(friction),
        },
        "Coulomb's coefficient of its friction. A pair has the [geometric \
         mean](#thickness-and-friction-of-pairs) of both sides.",
    )
    .changes(Changes::Onwards)
    .unset("that of the body that it meets, `contact.self_friction` on cloth"),
    Key::new(
        "self_collision",
        &Of {
            form: Flag,
            get: |cloth| Some(cloth.self_collision),
            set: |cloth, collides| cloth.self_collision = collides,
        },
        "Whether it collides with itself. Cloth that does not passes through itself, and collides \
         with other cloth and with bodies. Audits and certification look at no pairs within it.",
    ),
    Key::new(
        "pins",
        &Nested {
            what: "an array of tables",
            write: |cloth: &ClothKeys| write_pins(&cloth.pins),
        },
        "The [pins](#pins) that hold its vertices.",
    )
    .unset("none"),
    Key::new(
        "weave",
        &Of {
            form: Direction {
                example: "[1, 0, 0]",
            },
            get: |cloth| cloth.weave,
            set: |cloth, weave| cloth.weave = Some(weave),
        },
        "The direction of the warp in the mesh's own axes, before `mirror`, `up` and `rotation`. Each \
         triangle takes the part in its plane, and over seams the warp goes straight on.",
    )
    .unset("x of grids and files, upwards in a shirt"),
    Key::new(
        "material",
        &Nested {
            what: "a table",
            // It has a header of its own.
            write: |_: &ClothKeys| None,
        },
        "The material of the cloth.",
    )
    .required(
        "material = { density = \"0.15 kg/m2\", stretch = \"1000 N/m\", bending = \"1e-5 N m\" }",
    ),
];

/// The values of the keys of `grid`.
pub(super) struct GridKeys {
    size: [f64; 2],
    vertices: [u64; 2],
}

impl Default for GridKeys {
    fn default() -> Self {
        Self {
            size: [f64::NAN; 2],
            vertices: [2; 2],
        }
    }
}

/// The keys of `grid`, in the order in which they are read and echoed.
pub(super) const GRID_KEYS: &[Key<GridKeys>] = &[
    Key::new(
        "size",
        &Value {
            form: AlongXAndY(Dimension::LENGTH, Range::Positive),
            get: |grid: &GridKeys| Some(grid.size),
            set: |grid, size| grid.size = size,
        },
        "The lengths of its sides.",
    )
    .required("size = [\"1 m\", \"1 m\"]"),
    Key::new(
        "vertices",
        &Value {
            form: Counts(2, MOST_VERTICES),
            get: |grid: &GridKeys| Some(grid.vertices),
            set: |grid, vertices| grid.vertices = vertices,
        },
        "The vertices along its sides.",
    )
    .required("vertices = [100, 100]"),
];

/// The values of the keys of `shirt`.
pub(super) struct ShirtKeys {
    height: f64,
    vertices: u64,
}

impl Default for ShirtKeys {
    fn default() -> Self {
        Self {
            height: f64::NAN,
            vertices: defaults::LEAST_SHIRT as u64,
        }
    }
}

/// The keys of `shirt`, in the order in which they are read and echoed.
pub(super) const SHIRT_KEYS: &[Key<ShirtKeys>] = &[
    Key::new(
        "height",
        &Value {
            form: Amount(Dimension::LENGTH, Range::Positive),
            get: |shirt: &ShirtKeys| Some(shirt.height),
            set: |shirt, height| shirt.height = height,
        },
        "Its length from hem to shoulder.",
    )
    .required("height = \"0.7 m\""),
    Key::new(
        "vertices",
        &Value {
            // As many in all as a grid may have.
            form: Count(defaults::LEAST_SHIRT as u64, (MOST_VERTICES / 3).isqrt()),
            get: |shirt: &ShirtKeys| Some(shirt.vertices),
            set: |shirt, vertices| shirt.vertices = vertices,
        },
        "The vertices from hem to shoulder.",
    )
    .required("vertices = 80"),
];

/// Reads one `[[cloth]]`.
pub(super) fn cloth(table: &Table<'_>, index: usize, surroundings: &Surroundings<'_>) -> Cloth {
    let sources: Vec<(&str, Source)> = [
        ("grid", Source::Grid),
        ("shirt", Source::Shirt),
        ("mesh", Source::Mesh),
    ]
    .into_iter()
    .filter(|(key, _)| table.has(key))
    .collect();
    if let [(first, _), .., (last, _)] = sources[..] {
        table.note(last, format!("a cloth has `{first}` or `{last}`, not both"));
    }
    let said = ClothKeys {
        source: sources.last().map(|&(_, source)| source),
        ..ClothKeys::default()
    };
    let said = read_keys(table, KEYS, said);
    if !said.self_collision && !surroundings.self_collision {
        let why =
            "contact.self_collision is off, so that no cloth collides with cloth: leave it out";
        table.note_idle("self_collision", why);
    }
    let name = name(
        table,
        said.name.as_deref(),
        &format!("cloth{index}"),
        surroundings,
    );
    let source = match said.source {
        Some(Source::Grid) => grid(table, &said, surroundings),
        Some(Source::Shirt) => shirt(table, &said, surroundings),
        Some(Source::Mesh) | None => ClothSource::File {
            path: match &said.mesh {
                Some(mesh) => file(table, "mesh", mesh, surroundings.folder),
                None => PathBuf::new(),
            },
            prim: prim(table, said.mesh.as_deref(), said.prim.clone()),
            placement: Placement {
                units: said.units,
                up: said.up,
                scale: said.scale,
                mirror: said.mirror,
                rotation: said.rotation,
                translation: said.translation,
            },
            weld: said.weld,
        },
    };
    for key in KEYS {
        if let Some(example) = key.example
            && !table.has(key.name)
            && (key.name != "grid" || said.source.is_none())
        {
            table.note_missing(key.name, example);
        }
    }
    let rest = match (&said.rest, said.rest_texture) {
        (Some(_), Some(_)) => {
            table.note(
                "rest_texture",
                "a cloth has one shape at rest: that of `rest`, or its texture coordinates by `rest_texture`",
            );
            None
        }
        (Some(rest), None) => Some(RestSource::File(file(
            table,
            "rest",
            rest,
            surroundings.folder,
        ))),
        (None, unit) => unit.map(RestSource::Texture),
    };
    let pins = table.tables("pins", MOST_PINS, |_, table| {
        pin(table, surroundings.step, said.may_be(&[Source::Mesh]))
    });
    Cloth {
        name,
        source,
        rest,
        material: if table.has("material") {
            table.table("material", material)
        } else {
            Material::COTTON
        },
        weave: said.weave,
        velocity: said.velocity,
        velocities: said.velocities,
        pressure: said.pressure,
        thickness: said.thickness,
        friction: said.friction,
        self_collision: said.self_collision,
        pins,
        sewn_groups: Vec::new(),
    }
}

fn grid(table: &Table<'_>, owner: &ClothKeys, surroundings: &Surroundings<'_>) -> ClothSource {
    let GridKeys { size, vertices } = table.table("grid", |grid| {
        let said = read_keys(grid, GRID_KEYS, GridKeys::default());
        note_missing(grid, GRID_KEYS, &said);
        let total = said.vertices[0].saturating_mul(said.vertices[1]);
        if total > MOST_VERTICES {
            grid.note(
                "vertices",
                format!("{total} vertices; the most are {MOST_VERTICES}"),
            );
        } else if let Some(thickness) = owner.own_thickness(surroundings) {
            too_fine(grid, said.size, said.vertices, thickness);
        }
        said
    });
    ClothSource::Grid {
        size,
        vertices: vertices.map(|count| usize::try_from(count).unwrap_or(usize::MAX)),
        center: owner.center,
        rotation: owner.rotation,
    }
}

fn shirt(table: &Table<'_>, owner: &ClothKeys, surroundings: &Surroundings<'_>) -> ClothSource {
    let ShirtKeys { height, vertices } = table.table("shirt", |shirt| {
        let said = read_keys(shirt, SHIRT_KEYS, ShirtKeys::default());
        note_missing(shirt, SHIRT_KEYS, &said);
        if let Some(thickness) = owner.own_thickness(surroundings) {
            too_fine(shirt, [said.height; 2], [said.vertices; 2], thickness);
        }
        said
    });
    ClothSource::Shirt {
        height,
        vertices: usize::try_from(vertices).unwrap_or(usize::MAX),
        center: owner.center,
        rotation: owner.rotation,
    }
}

/// Notes cells that are not larger than the thickness of the cloth, where all pairs push:
/// neighbours would push each other.
fn too_fine(grid: &Table<'_>, size: [f64; 2], vertices: [u64; 2], thickness: Thickness) {
    let Thickness { key, thickness } = thickness;
    for axis in 0..2 {
        #[expect(clippy::cast_precision_loss, reason = "at most MOST_VERTICES")]
        let cells = (vertices[axis] - 1) as f64;
        let cell = size[axis] / cells;
        if cell <= thickness {
            let message = format!(
                "cells of {:.3} mm {}are not larger than {key}, {:.3} mm, so \
                 that neighbours would push each other; take fewer vertices, a smaller {key}, \
                 contact.pairs = \"closest\", or self_collision = false for this cloth",
                cell * 1e3,
                if size[0] == size[1] {
                    ""
                } else {
                    ["along x ", "along y "][axis]
                },
                thickness * 1e3,
            );
            grid.note("vertices", message);
            return;
        }
    }
}

/// Writes a cloth.
pub(super) fn write_cloth(out: &mut String, cloth: &Cloth) {
    out.push_str("\n[[cloth]]\n");
    write_lines(out, KEYS, &ClothKeys::from(cloth));
    out.push_str("[cloth.material]\n");
    write_lines(out, material::KEYS, &cloth.material);
}

impl From<&Cloth> for ClothKeys {
    fn from(cloth: &Cloth) -> Self {
        let said = Self {
            name: Some(cloth.name.clone()),
            velocity: cloth.velocity,
            velocities: cloth.velocities,
            pressure: cloth.pressure,
            thickness: cloth.thickness,
            friction: cloth.friction,
            self_collision: cloth.self_collision,
            pins: cloth.pins.clone(),
            weave: cloth.weave,
            ..Self::default()
        };
        let said = match &cloth.rest {
            None => said,
            Some(RestSource::File(path)) => Self {
                rest: Some(path.to_string_lossy().into_owned()),
                ..said
            },
            Some(RestSource::Texture(unit)) => Self {
                rest_texture: Some(*unit),
                ..said
            },
        };
        match &cloth.source {
            &ClothSource::Grid {
                size,
                vertices,
                center,
                rotation,
            } => Self {
                source: Some(Source::Grid),
                grid: Some(GridKeys {
                    size,
                    vertices: vertices.map(|count| count as u64),
                }),
                center,
                rotation,
                ..said
            },
            &ClothSource::Shirt {
                height,
                vertices,
                center,
                rotation,
            } => Self {
                source: Some(Source::Shirt),
                shirt: Some(ShirtKeys {
                    height,
                    vertices: vertices as u64,
                }),
                center,
                rotation,
                ..said
            },
            ClothSource::File {
                path,
                prim,
                placement,
                weld,
            } => Self {
                source: Some(Source::Mesh),
                mesh: Some(path.to_string_lossy().into_owned()),
                prim: prim.clone(),
                units: placement.units,
                up: placement.up,
                scale: placement.scale,
                mirror: placement.mirror,
                weld: *weld,
                rotation: placement.rotation,
                translation: placement.translation,
                ..said
            },
        }
    }
}

/// The number of vertices of a cloth that is generated, or a little more; 0 for a file.
pub(super) fn generated_vertices(cloth: &Cloth) -> u64 {
    match &cloth.source {
        ClothSource::Grid {
            vertices: [x, y], ..
        } => (*x as u64).saturating_mul(*y as u64),
        ClothSource::Shirt { vertices, .. } => {
            let along = *vertices as u64;
            along.saturating_mul(along).saturating_mul(3)
        }
        ClothSource::File { .. } => 0,
    }
}

/// Pins of one cloth.
const MOST_PINS: usize = 100_000;
