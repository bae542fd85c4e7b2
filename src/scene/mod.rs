//! A scene: everything a run depends on, parsed once into checked types.
//!
//! In: one TOML file and the overrides of the command line. Out: a [`Scene`], in which all lengths
//! are in m, times in s, masses in kg, angles in rad, and nothing needs checking again. All
//! problems are reported at once, each with file, line, key and the nearest right name
//! ([`SceneError`]).
//!
//! ```
//! use weftwork::scene::Scene;
//!
//! let text = r#"
//!     [[cloth]]
//!     grid = { size = "1 m", vertices = 20 }
//!     material = { density = "0.15 kg/m2", stretch = "1000 N/m", bending = "1e-5 N m" }
//! "#;
//! let overrides = [("time.step".to_owned(), "2 ms".to_owned())];
//! let scene = Scene::parse(text, None, &overrides)?;
//! assert_eq!(scene.time.step, 0.002);
//! assert_eq!(scene.cloths[0].name, "cloth0");
//!
//! let error = Scene::parse(&text.replace("bending", "bendng"), None, &[]).unwrap_err();
//! assert!(error.to_string().contains("did you mean `bending`?"));
//! # Ok::<(), weftwork::scene::SceneError>(())
//! ```
//!
//! Each table of a scene has one list of its keys. Reading, the echo of a scene ([`Scene::echo`]),
//! warnings of keys without effect ([`Scene::idle_keys`]), the tables of the book
//! ([`mod@reference`]) and the schema for editors ([`schema`]) follow from it. To add a key, add a
//! field and its entry in the list, and run `cargo run --example scene_keys`. The page of the book
//! is also the documentation of [`load`]. Meshes are read and built by [`crate::mesh`], which has
//! its own checks.

mod body;
pub mod built_in;
mod cloth;
pub mod defaults;
mod detail;
mod document;
mod duplicate;
mod echo;
mod error;
mod fabrics;
mod form;
mod idle;
mod in_time;
mod key;
pub mod load;
mod material;
mod motion;
mod nearest;
mod objects;
mod output;
mod pin;
mod quantity;
mod reader;
pub mod reference;
pub mod schema;
mod seam;
mod sections;
#[cfg(test)]
mod tests;
mod wind;

use std::path::PathBuf;

use glam::{DMat3, DVec3};
use weft_runtime::Policy;

use crate::physics::air::Air;

pub use error::{Location, Problem, SceneError};
pub use fabrics::Fabric;
pub use in_time::InTime;
pub use motion::{Interpolation, Keyframe, Motion, Turn};
pub use output::{Colours, Format, Output, Pieces};
use quantity::Number;
pub use quantity::parse_time;
pub use seam::{Border, GridEdge, Seam, SeamSide};
pub use wind::WindInTime;

/// A checked scene.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// Names the run: the key `name`, or the stem of the file; letters, digits, `-` and `_`.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// The file it came from, if any.
    pub path: Option<PathBuf>,
    /// SHA-256 of the scene text in hexadecimal, without overrides.
    pub sha256: String,
    /// Time step and end.
    pub time: Time,
    /// Acceleration in m/s².
    pub gravity: InTime<DVec3>,
    /// The air, for cloths that have drag coefficients.
    pub air: AirInTime,
    /// The cloths, at least one.
    pub cloths: Vec<Cloth>,
    /// Bodies the cloths collide with.
    pub bodies: Vec<Body>,
    /// Borders of cloth that are sewn together.
    pub seams: Vec<Seam>,
    /// Limits on the state in which the scene may start.
    pub start: Start,
    /// Contact parameters.
    pub contact: ContactParameters,
    /// Parameters of the linear solve.
    pub solver: Solver,
    /// Parameters of the partition.
    pub partition: Partition,
    /// How ranks share the collision tests.
    pub balance: Balance,
    /// The files that are written.
    pub output: Output,
    /// A sentence for each key that the text sets in vain to its default, or beside others that
    /// take its place.
    pub set_in_vain: Vec<String>,
}

/// Time step and end of the simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Time {
    /// Length of a step in s.
    pub step: f64,
    /// End of the simulation in s; it is reached in [`steps`](Self::steps) steps.
    pub end: f64,
    /// Shortest part in s into which a step that fails is cut; no step is cut if absent.
    pub shortest: Option<f64>,
    /// Relative change of length that an edge of the cloth may undergo in a part of a step; with
    /// [`shortest`](Self::shortest), one that changes more has failed.
    pub strain_change: f64,
}

impl Time {
    /// The number of steps until the end is reached, or passed if no step ends there. An error of
    /// rounding adds no step.
    #[must_use]
    pub fn steps(&self) -> u64 {
        (self.end / self.step - 1e-6).ceil() as u64
    }

    /// A sentence on where steps end that do not end at [`end`](Self::end).
    #[must_use]
    pub fn overshoot(&self) -> Option<String> {
        let (steps, last) = (self.steps(), self.steps() as f64 * self.step);
        // A difference that is not shown, or that is due to rounding, does not count.
        let shown = format!("{last:.9e}").parse().unwrap_or(last);
        let beyond = last - self.end > 1e-6 * self.step;
        beyond.then(|| {
            format!(
                "the end, {} s, is no multiple of time.step, {} s: the last of {steps} steps ends at {} s",
                Number(self.end),
                Number(self.step),
                Number(shown)
            )
        })
    }
}

/// One piece of cloth.
#[derive(Clone, Debug, PartialEq)]
pub struct Cloth {
    /// Its name in messages and files.
    pub name: String,
    /// The source of its mesh.
    pub source: ClothSource,
    /// Its shape at rest, if it is not that of its mesh.
    pub rest: Option<RestSource>,
    /// The material of the cloth.
    pub material: Material,
    /// Direction of its warp in the mesh's own axes, before any rotation; a unit vector. If absent,
    /// that of
    /// [`crate::mesh::warp`].
    pub weave: Option<DVec3>,
    /// Initial velocity in m/s.
    pub velocity: DVec3,
    /// Whether the velocities of vertices that its file has are added to that; if absent, they are
    /// not, and a warning tells that there are some.
    pub velocities: Option<bool>,
    /// The pressure in Pa by which the air inside exceeds that outside; 0 unless it is closed.
    pub pressure: f64,
    /// Its thickness in m, if it is not that of all.
    pub thickness: Option<f64>,
    /// Coulomb's coefficient of its friction; that of what it meets if absent.
    pub friction: Option<f64>,
    /// Whether it collides with itself, where cloth collides with cloth.
    pub self_collision: bool,
    /// Vertices that are held.
    pub pins: Vec<Pin>,
    /// The groups of its file that seams name.
    pub sewn_groups: Vec<String>,
}

/// The source of a cloth's shape at rest, where it is not the mesh that it starts as.
#[derive(Clone, Debug, PartialEq)]
pub enum RestSource {
    /// A mesh file with the vertices and faces of the mesh, placed as that; relative paths were
    /// resolved against the scene's folder.
    File(PathBuf),
    /// The texture coordinates of the mesh, laid flat, with the lengths in m of a unit of u and of
    /// v.
    Texture([f64; 2]),
}

/// The source of a cloth's mesh.
#[derive(Clone, Debug, PartialEq)]
pub enum ClothSource {
    /// A flat rectangle in a plane `z = const`, herringbone diagonals.
    Grid {
        /// Side lengths in m along x and y.
        size: [f64; 2],
        /// Vertices along x and y, at least 2 each.
        vertices: [usize; 2],
        /// Its centre in m.
        center: DVec3,
        /// Rotation about x, y, z in rad, applied in this order about the centre.
        rotation: DVec3,
    },
    /// A shirt, upright, its front towards -y; see [`crate::mesh::shirt`].
    Shirt {
        /// The height from hem to shoulder in m.
        height: f64,
        /// Vertices along that.
        vertices: usize,
        /// The middle of its plane in m.
        center: DVec3,
        /// Rotation about x, y, z in rad, applied in this order about the middle.
        rotation: DVec3,
    },
    /// A mesh file.
    File {
        /// The file; relative paths were resolved against the scene's folder.
        path: PathBuf,
        /// The part of a USD file that is meant, if not all.
        prim: Option<String>,
        /// How its coordinates become those of the scene.
        placement: Placement,
        /// Vertices nearer to each other than this become one, in m in the scene, if there is one.
        weld: Option<f64>,
    },
}

/// How the coordinates of a mesh file become those of the scene: they are mirrored, turned upright,
/// scaled, rotated and moved, in this order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placement {
    /// The unit of coordinates, if it is not that of the format.
    pub units: Option<Units>,
    /// The axis that points upwards, if it is not that of the format.
    pub up: Option<Up>,
    /// Factor on coordinates.
    pub scale: f64,
    /// Axis across which it is mirrored.
    pub mirror: Option<Axis>,
    /// Rotation about x, y, z in rad, applied in this order about the origin.
    pub rotation: DVec3,
    /// Translation in m, applied last.
    pub translation: DVec3,
}

impl Default for Placement {
    fn default() -> Self {
        Self {
            units: None,
            up: None,
            scale: 1.0,
            mirror: None,
            rotation: DVec3::ZERO,
            translation: DVec3::ZERO,
        }
    }
}

/// A unit of the coordinates of files, by the name that scenes give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Units {
    /// Metres.
    Metres,
    /// Centimetres.
    Centimetres,
    /// Millimetres.
    Millimetres,
    /// Inches.
    Inches,
    /// Feet.
    Feet,
}

impl Units {
    /// All values of the type.
    pub const ALL: [Self; 5] = [
        Self::Metres,
        Self::Centimetres,
        Self::Millimetres,
        Self::Inches,
        Self::Feet,
    ];

    /// The name in scenes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Metres => "m",
            Self::Centimetres => "cm",
            Self::Millimetres => "mm",
            Self::Inches => "in",
            Self::Feet => "ft",
        }
    }

    /// Its length in m.
    #[must_use]
    pub fn metres(self) -> f64 {
        match self {
            Self::Metres => 1.0,
            Self::Centimetres => 0.01,
            Self::Millimetres => 0.001,
            Self::Inches => 0.0254,
            Self::Feet => 0.3048,
        }
    }
}

/// The axis of a file that points upwards, by the name that scenes give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Up {
    /// The second, with the third towards the viewer: Maya, Houdini, CLO, glTF.
    Y,
    /// The third, as in scenes.
    Z,
}

impl Up {
    /// All values of the type.
    pub const ALL: [Self; 2] = [Self::Y, Self::Z];

    /// The name in scenes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Y => "y",
            Self::Z => "z",
        }
    }

    /// A vector of a file in the axes of scenes, in which z points upwards.
    #[must_use]
    pub(crate) fn to_scene(self, v: DVec3) -> DVec3 {
        match self {
            // No zero gets a sign.
            Self::Y => DVec3::new(v.x, 0.0 - v.z, v.y),
            Self::Z => v,
        }
    }

    /// A vector of a scene in the axes of a file.
    #[must_use]
    pub(crate) fn to_file(self, v: DVec3) -> DVec3 {
        match self {
            Self::Y => DVec3::new(v.x, v.z, 0.0 - v.y),
            Self::Z => v,
        }
    }
}

/// Properties of a cloth, per area or per width. Where there are two, they are along warp and weft.
#[derive(Clone, Debug, PartialEq)]
pub struct Material {
    /// Areal density in kg/m².
    pub density: f64,
    /// The model of the resistance to stretching and shearing.
    pub membrane: MembraneModel,
    /// Membrane stiffness (Young's modulus times thickness) in N/m.
    pub stretch: [f64; 2],
    /// Shear stiffness (modulus times thickness) in N/m; if absent, that of
    /// [`Self::shear_modulus`].
    pub shear: Option<f64>,
    /// Poisson's ratio in the plane, in [0, 0.5): contraction along the weft of cloth pulled along
    /// its warp.
    pub poisson: f64,
    /// The model of the resistance to bending.
    pub bending_model: BendingModel,
    /// Bending rigidity in N m.
    pub bending: [f64; 2],
    /// Bending rigidity at 45° to warp and weft in N m; if absent, Huber's (see
    /// [`crate::physics::rigidity`]).
    pub bending_bias: Option<f64>,
    /// Whether each hinge has its own prefactor, found from the mesh.
    pub bending_fit: bool,
    /// Radius of curvature in m at which bending springs have the rigidity.
    pub bending_radius: f64,
    /// Mass-proportional damping in 1/s.
    pub damping_mass: f64,
    /// Stiffness-proportional damping of stretching, shearing, bending, in s.
    pub damping: [f64; 3],
    /// Largest strain that the cloth bears, dimensionless; infinite without a limit.
    pub strain_limit: f64,
    /// Largest shortening that the cloth bears in its plane, as a share of its length; infinite
    /// without a limit.
    pub compression_limit: f64,
    /// Drag coefficients in the air, of motion along the normal and in the plane.
    pub drag: [InTime<f64>; 2],
    /// The factor of the resistance to stretching and shearing.
    pub stretch_factor: InTime<f64>,
    /// The factor of the resistance to bending.
    pub bending_factor: InTime<f64>,
}

impl Material {
    /// Whether the air ever drags at the cloth.
    #[must_use]
    pub(crate) fn has_drag(&self) -> bool {
        let mut values = self.drag.iter().flat_map(InTime::values);
        values.any(|coefficient| coefficient != 0.0)
    }

    /// Whether the plane has no directions: then the law of an isotropic sheet is used.
    #[must_use]
    pub(crate) fn is_isotropic(&self) -> bool {
        let [warp, weft] = self.stretch;
        let [stretch, shear, _] = self.damping;
        warp == weft && self.shear.is_none() && stretch == shear
    }

    /// Whether bending has no directions.
    #[must_use]
    pub(crate) fn bends_alike(&self) -> bool {
        let [warp, weft] = self.bending;
        warp == weft && self.bending_bias.is_none_or(|bias| bias == warp)
    }

    /// Shear modulus times thickness in N/m: as given, or `√(E₁E₂) / 2(1 + √(ν₁₂ν₂₁))`, which is
    /// that of an isotropic sheet for equal moduli (Huber's rule).
    #[must_use]
    pub fn shear_modulus(&self) -> f64 {
        let [warp, weft] = self.stretch;
        self.shear.unwrap_or_else(|| {
            0.5 * (warp * weft).sqrt() / (1.0 + self.poisson * (weft / warp).sqrt())
        })
    }
}

/// The models of the resistance to stretching and shearing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MembraneModel {
    /// Corotational linear finite elements.
    FiniteElements,
    /// Springs along edges.
    Springs,
}

impl MembraneModel {
    /// All values of the type.
    pub const ALL: [Self; 2] = [Self::FiniteElements, Self::Springs];

    /// The name in scenes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::FiniteElements => "finite-elements",
            Self::Springs => "springs",
        }
    }
}

/// The models of the resistance to bending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BendingModel {
    /// A quadratic form of positions, for cloth that is flat at rest.
    Quadratic,
    /// A model by angles between triangles; the angles of the mesh are at rest.
    Dihedral,
    /// Springs across edges.
    Springs,
}

impl BendingModel {
    /// All values of the type.
    pub const ALL: [Self; 3] = [Self::Quadratic, Self::Dihedral, Self::Springs];

    /// The name in scenes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Quadratic => "quadratic",
            Self::Dihedral => "dihedral",
            Self::Springs => "springs",
        }
    }
}

/// The air around cloth.
#[derive(Clone, Debug, PartialEq)]
pub struct AirInTime {
    /// Its velocity.
    pub wind: WindInTime,
    /// Its density in kg/m³.
    pub density: InTime<f64>,
}

impl AirInTime {
    /// The air at a time in s.
    #[must_use]
    pub fn at(&self, time: f64) -> Air {
        Air {
            wind: self.wind.at(time),
            density: self.density.at(time),
        }
    }
}

/// Vertices that are held, in all directions or in some, and where they are taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Pin {
    /// The vertices that are held.
    pub held: Held,
    /// The directions in which they may go on their own.
    pub slide: Slide,
    /// Constant velocity in m/s with which they are taken along; zero for a pin at rest, or one
    /// with a motion.
    pub velocity: DVec3,
    /// How they are taken along, if not with a velocity. At time 0 they are where the cloth starts.
    pub motion: Option<Motion>,
    /// The name of the body that they follow, if they do: velocity and motion are then those of the
    /// body.
    pub follow: Option<String>,
    /// The time in s from which they are held; `None` for the start.
    pub from: Option<f64>,
    /// The time in s at which they are let go; `None` if they never are.
    pub until: Option<f64>,
}

impl Pin {
    /// Holds vertices where they are.
    #[must_use]
    pub fn still(held: Held) -> Self {
        Self {
            held,
            slide: Slide::Nowhere,
            velocity: DVec3::ZERO,
            motion: None,
            follow: None,
            from: None,
            until: None,
        }
    }

    /// The times in s, of the starts of substeps, from which and until which it holds its vertices:
    /// a substep that begins at such a time to rounding is one of what comes then.
    #[must_use]
    pub(crate) fn holding(&self) -> [f64; 2] {
        let time = |time: Option<f64>, never: f64| time.map_or(never, |time| time - AT_THAT_TIME);
        [
            time(self.from, f64::NEG_INFINITY),
            time(self.until, f64::INFINITY),
        ]
    }

    /// Whether it does the same to its vertices as another one.
    #[must_use]
    pub(crate) fn does_as(&self, other: &Self) -> bool {
        let moves_alike = match (&self.motion, &other.motion) {
            (None, None) => true,
            (Some(own), Some(other)) => own.moves_as(other),
            _ => false,
        };
        self.velocity == other.velocity
            && moves_alike
            && self.follow == other.follow
            && (self.from, self.until) == (other.from, other.until)
            && self.slide.free() == other.slide.free()
    }

    /// Whether it stays where it was.
    #[must_use]
    pub(crate) fn is_still(&self) -> bool {
        self.velocity == DVec3::ZERO && self.motion.is_none()
    }
}

/// Seconds by which the start of a substep may be off by rounding.
const AT_THAT_TIME: f64 = 1e-9;

/// The vertices of a pin.
#[derive(Clone, Debug, PartialEq)]
pub enum Held {
    /// The vertex nearest to this point of the initial shape, in m.
    Nearest(DVec3),
    /// All vertices of the initial shape inside this box, in m.
    Box {
        /// Lower corner.
        min: DVec3,
        /// Upper corner.
        max: DVec3,
    },
    /// All vertices of a group of the cloth's file.
    Group(String),
    /// The vertices of these numbers, from 0, as the cloth's file or its grid has them.
    Vertices(Vec<u64>),
    /// All vertices of the initial shape that are near the surface of a body at the start. The pin
    /// follows that body.
    Near {
        /// The name of the body.
        body: String,
        /// The largest distance in m.
        within: f64,
    },
}

impl Held {
    /// The middle of it, in m; not a number for groups, numbers and what is near a body, for the
    /// scene does not know their vertices.
    #[must_use]
    pub fn middle(&self) -> DVec3 {
        match *self {
            Self::Nearest(point) => point,
            Self::Box { min, max } => min.midpoint(max),
            Self::Group(_) | Self::Vertices(_) | Self::Near { .. } => DVec3::NAN,
        }
    }
}

/// The directions in which held vertices may go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Slide {
    /// They may go nowhere.
    Nowhere,
    /// Along a line with this direction, of unit length.
    Rail(DVec3),
    /// They may go in a plane with this normal, of unit length.
    Plane(DVec3),
}

impl Slide {
    /// The orthogonal projection onto the directions that are free.
    #[must_use]
    pub fn free(self) -> DMat3 {
        let along = |n: DVec3| DMat3::from_cols(n * n.x, n * n.y, n * n.z);
        match self {
            Self::Nowhere => DMat3::ZERO,
            Self::Rail(direction) => along(direction),
            Self::Plane(normal) => DMat3::IDENTITY - along(normal),
        }
    }

    /// Its line or plane turned.
    #[must_use]
    pub fn turned(self, turn: impl Fn(DVec3) -> DVec3) -> Self {
        match self {
            Self::Nowhere => Self::Nowhere,
            Self::Rail(direction) => Self::Rail(turn(direction)),
            Self::Plane(normal) => Self::Plane(turn(normal)),
        }
    }
}

/// Something the cloth collides with.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// Its name in messages and files.
    pub name: String,
    /// Its shape where it is placed.
    pub shape: Shape,
    /// Whether the shape is used as it is or as triangles.
    pub surface: Surface,
    /// Its thickness in m, if it is not that of all.
    pub thickness: Option<f64>,
    /// Coulomb's coefficient of friction with cloth.
    pub friction: InTime<f64>,
    /// Constant velocity in m/s; zero for a body at rest, or one with a motion.
    pub velocity: DVec3,
    /// The path of the body, if it does not keep its velocity.
    pub motion: Option<Motion>,
    /// How its mesh deforms, if it does.
    pub deformation: Option<Deformation>,
}

impl Body {
    /// Whether it stays where it was placed, as it is.
    #[must_use]
    pub(crate) fn is_still(&self) -> bool {
        self.velocity == DVec3::ZERO && self.motion.is_none() && self.deformation.is_none()
    }
}

/// How the mesh of a body deforms: its vertices go straight from sample to sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Deformation {
    /// Where the samples are.
    pub sequence: Sequence,
    /// The samples, or frames of a cache, in a second; none for files that have times, and for the
    /// default of figures.
    pub rate: Option<f64>,
}

/// The samples of a mesh that deforms.
#[derive(Clone, Debug, PartialEq)]
pub enum Sequence {
    /// Mesh files that are numbered, one for each sample.
    Files {
        /// The path with a `*` for the number; it was resolved against the scene's folder.
        pattern: PathBuf,
        /// The files, in the order of their numbers.
        files: Vec<PathBuf>,
    },
    /// A point cache, `.pc2` or `.mdd`; its path was resolved against the scene's folder.
    Cache(PathBuf),
    /// A figure of glTF that an animation of its file moves.
    Figure {
        /// The path; it was resolved against the scene's folder.
        path: PathBuf,
        /// The name of the animation; none for the only one.
        animation: Option<String>,
    },
}

impl Sequence {
    /// The path, as a scene says it.
    #[must_use]
    pub fn path(&self) -> &std::path::Path {
        match self {
            Self::Files { pattern, .. } => pattern,
            Self::Cache(path) | Self::Figure { path, .. } => path,
        }
    }
}

/// An axis of coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// The first.
    X,
    /// The second.
    Y,
    /// The third.
    Z,
}

impl Axis {
    /// All values of the type.
    pub const ALL: [Self; 3] = [Self::X, Self::Y, Self::Z];

    /// The name in scenes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::X => "x",
            Self::Y => "y",
            Self::Z => "z",
        }
    }
}

/// The shape of a body.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// A ball.
    Sphere {
        /// Centre in m.
        center: DVec3,
        /// Radius in m.
        radius: f64,
    },
    /// A half space; as triangles, a square around `point`.
    Plane {
        /// A point of the surface in m.
        point: DVec3,
        /// Unit vector out of the solid.
        normal: DVec3,
        /// Side of the square that stands for it as triangles and in pictures, in m.
        extent: f64,
    },
    /// A box.
    Box {
        /// Centre in m.
        center: DVec3,
        /// Side lengths in m.
        size: DVec3,
        /// Rotation about x, y, z in rad, applied in this order about the centre.
        rotation: DVec3,
    },
    /// All points within `radius` of a segment.
    Capsule {
        /// One end of the segment in m.
        from: DVec3,
        /// The other end in m.
        to: DVec3,
        /// Radius in m.
        radius: f64,
    },
    /// A closed triangle mesh from a file.
    Mesh {
        /// The file; relative paths were resolved against the scene's folder.
        path: PathBuf,
        /// The part of a USD file that is meant, if not all.
        prim: Option<String>,
        /// How its coordinates become those of the scene.
        placement: Placement,
    },
}

impl Shape {
    /// Whether its faces are flat, as those of planes and boxes are.
    #[must_use]
    pub fn is_flat(&self) -> bool {
        matches!(self, Self::Plane { .. } | Self::Box { .. })
    }
}

/// How a body's shape is represented in collision tests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Surface {
    /// A test by the body's signed distance.
    Analytic,
    /// A test by the signed distance from its mesh, sampled on a grid.
    Distance {
        /// The side of a cell of the grid in m, if the scene says it.
        cell: Option<f64>,
    },
    /// A test with triangles about this long, BVH against BVH.
    Triangles {
        /// Edge length aimed at in m; 0 for [`Shape::Mesh`], whose triangles are used as they are.
        edge: f64,
    },
}

impl Scene {
    /// Whether cloth may start through cloth, to be pulled apart by certified steps.
    #[must_use]
    pub(crate) fn keeps_crossings(&self) -> bool {
        self.start.crossings == Crossings::Keep && self.contact.certify
    }

    /// The length in s of a substep of a step that is not cut.
    #[must_use]
    pub fn substep(&self) -> f64 {
        match self.contact.pipeline {
            Pipeline::Search => self.time.step,
            Pipeline::History => self.time.step / f64::from(self.contact.substeps.of_step()),
        }
    }

    /// The thickness in m of a cloth or body, which may have its own.
    #[must_use]
    pub fn thickness(&self, own: Option<f64>) -> f64 {
        own.unwrap_or(self.contact.thickness)
    }
}

/// Limits on the state in which a scene may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// The treatment of cloth that starts through cloth.
    pub crossings: Crossings,
}

/// The ways to treat cloth that starts through cloth, by the names that scenes give them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossings {
    /// The scene is refused.
    Refuse,
    /// The start is accepted: crossings are listed, and pulled apart.
    Keep,
}

impl Crossings {
    /// All values of the type.
    pub const ALL: [Self; 2] = [Self::Refuse, Self::Keep];

    /// The name in scenes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Keep => "keep",
        }
    }
}

/// Contact parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContactParameters {
    /// Thickness in m of the cloths and bodies that have none of their own. A pair keeps the sum of
    /// half of each.
    pub thickness: f64,
    /// Whether cloth collides with cloth.
    pub self_collision: bool,
    /// Coulomb's coefficient of friction of cloth on cloth, of cloths that have none of their own.
    pub self_friction: f64,
    /// The tests of cloth against itself that are left out.
    pub culling: Culling,
    /// The pairs of features of cloth that push each other.
    pub pairs: ContactPairs,
    /// How impulses between layers are found.
    pub response: Response,
    /// A pass ends when no constraint asks for more than this share of the least distance to keep
    /// within a step, be it to push more or less.
    pub tolerance: f64,
    /// Most rounds of impulses in a pass; a pass ends earlier when all rows are satisfied.
    pub iterations: u32,
    /// Relative change of length in a step beyond which impulses damp an edge of the cloth; none if
    /// absent.
    pub strain_change: Option<f64>,
    /// Whether displacements are cut where cloth would cross cloth or bodies.
    pub certify: bool,
    /// The treatment of cloth to which bodies leave no room.
    pub squeezed: Squeezed,
    /// The way in which a step answers contacts, and when.
    pub pipeline: Pipeline,
    /// The number of substeps of a step of [`Pipeline::History`].
    pub substeps: Substeps,
    /// The stiffness in N/m of the springs by which pairs of features of cloth that are too close
    /// push each other apart, with [`Pipeline::History`].
    pub repulsion: f64,
    /// How pairs of features know on which side of each other they belong, with
    /// [`Pipeline::History`].
    pub sides: Sides,
}

impl ContactParameters {
    /// Whether all pairs of features of cloth that come within reach push each other, neighbours of
    /// one sheet too.
    #[must_use]
    pub fn pushes_all_pairs(&self) -> bool {
        self.self_collision
            && (self.pairs == ContactPairs::All || self.pipeline == Pipeline::History)
    }
}

/// The ways in which a step can answer contacts, and when, by the names that scenes give them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pipeline {
    /// Contacts are found in every substep, and each substep is certified.
    Search,
    /// Pairs of features are found once for all substeps of a step, which then push by what they
    /// know of each other; the step is certified as a whole [Selle et al. 2009, §3].
    History,
}

impl Pipeline {
    /// All values of the type.
    pub const ALL: [Self; 2] = [Self::Search, Self::History];

    /// The name in scenes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Search => "2006",
            Self::History => "2009",
        }
    }
}

/// The number of substeps of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Substeps {
    /// This number.
    Fixed(u32),
    /// A step has [`Substeps::MOST`], and it is certified after as many of them as goes well.
    Adaptive,
}

impl Substeps {
    /// The most there are.
    pub const MOST: u32 = 16;
    /// The word for [`Substeps::Adaptive`] in scenes.
    pub const ADAPTIVE: &'static str = "adaptive";

    /// How many substeps a step has.
    #[must_use]
    pub fn of_step(self) -> u32 {
        match self {
            Self::Fixed(count) => count,
            Self::Adaptive => Self::MOST,
        }
    }
}

/// How pairs of features of cloth know on which side of each other they belong, by the names that
/// scenes give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sides {
    /// A pair that looks as if it were on the wrong side is on it if its features have crossed an
    /// odd number of times since the step began.
    Parity,
    /// A pair that looks as if it were on the wrong side is on it [Selle et al. 2009, §5].
    Paper,
    /// Nothing tells sides: each feature is taken to be where it belongs.
    None,
}

impl Sides {
    /// All values of the type.
    pub const ALL: [Self; 3] = [Self::Parity, Self::Paper, Self::None];

    /// The name in scenes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Parity => "parity",
            Self::Paper => "paper",
            Self::None => "none",
        }
    }
}

/// The pairs of features of cloth that push each other where they come within reach, by the names
/// that scenes give them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContactPairs {
    /// All.
    All,
    /// Pairs at local minima of the distance between the surfaces around them.
    Closest,
}

impl ContactPairs {
    /// All there are.
    pub const ALL: [Self; 2] = [Self::All, Self::Closest];

    /// The name in scenes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Closest => "closest",
            Self::All => "all",
        }
    }
}

/// How impulses of contacts and of strain are found, by the names that scenes give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// All at once, in rounds: a projected Jacobi with momentum.
    Jacobi,
    /// One after the other, in sweeps: a projected Gauss-Seidel by colours.
    GaussSeidel,
    /// Some sweeps, then rounds.
    Both,
}

impl Response {
    /// All values of the type.
    pub const ALL: [Self; 3] = [Self::Jacobi, Self::GaussSeidel, Self::Both];

    /// The name in scenes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Jacobi => "jacobi",
            Self::GaussSeidel => "gauss-seidel",
            Self::Both => "both",
        }
    }
}

/// The ways to treat cloth to which bodies leave no room, by the names that scenes give them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Squeezed {
    /// The body of the higher number lets it through, and it is led out when there is room.
    Give,
    /// The run stops.
    Stop,
}

impl Squeezed {
    /// All values of the type.
    pub const ALL: [Self; 2] = [Self::Give, Self::Stop];

    /// The name in scenes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Give => "give",
            Self::Stop => "stop",
        }
    }
}

/// The tests of cloth against itself that are left out, by the names that scenes give them. The
/// contacts are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Culling {
    /// Tests within pieces that are shown to be too smooth to touch themselves.
    Smooth,
    /// No tests.
    None,
}

impl Culling {
    /// All values of the type.
    pub const ALL: [Self; 2] = [Self::Smooth, Self::None];

    /// The name in scenes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Smooth => "smooth",
            Self::None => "none",
        }
    }
}

/// How motion is integrated and solved for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Solver {
    /// Residual, relative to the right-hand side, at which the solve stops.
    pub tolerance: f64,
    /// The velocity in m/s that the residual of a solve may always stand for, in the root of the
    /// mean square by mass, if it is said.
    pub velocity_tolerance: Option<f64>,
    /// Iterations after which the run stops with an error.
    pub max_iterations: u32,
    /// The preconditioner, with which the solve takes fewer iterations.
    pub preconditioner: Preconditioner,
    /// The time integration.
    pub integrator: Integrator,
    /// Most linear systems that are solved for one step of an implicit method; 1: linearised once.
    pub newton: u32,
    /// Residual of the equations of motion, relative to that of the first linear system, at which
    /// more of them are not needed.
    pub newton_tolerance: f64,
}

/// Time integrations, by the names that scenes give them; [`crate::step`] has the formulas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integrator {
    /// Implicit Euler: first order, damps.
    Euler,
    /// Backward differences over two steps: second order, implicit.
    Bdf2,
    /// Semi-implicit Newmark: elasticity explicit, damping implicit, two solves [Selle et al.
    /// 2009].
    Newmark,
    /// Central differences: elasticity explicit, damping implicit, one solve [Bridson 2003, §1.5].
    Central,
}

impl Integrator {
    /// All values of the type.
    pub const ALL: [Self; 4] = [Self::Euler, Self::Bdf2, Self::Newmark, Self::Central];

    /// The name in scenes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Euler => "euler",
            Self::Bdf2 => "bdf2",
            Self::Newmark => "newmark",
            Self::Central => "central",
        }
    }

    /// Whether elastic forces are those at the end of the step, so that steps may be longer than
    /// the time in which a wave crosses a triangle.
    #[must_use]
    pub(crate) fn is_implicit(self) -> bool {
        matches!(self, Self::Euler | Self::Bdf2)
    }
}

/// Preconditioners of the linear solve, by the names that scenes give them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preconditioner {
    /// Each vertex on its own.
    BlockJacobi,
    /// Symmetric Gauss-Seidel within each patch.
    PatchSsor,
    /// Each vertex on its own, and rigid motions of small groups of vertices.
    Multilevel,
}

impl Preconditioner {
    /// All values of the type.
    pub const ALL: [Self; 3] = [Self::BlockJacobi, Self::PatchSsor, Self::Multilevel];

    /// The name in scenes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::BlockJacobi => "block-jacobi",
            Self::PatchSsor => "patch-ssor",
            Self::Multilevel => "multilevel",
        }
    }
}

/// Parameters of the partition.
#[derive(Clone, Debug, PartialEq)]
pub struct Partition {
    /// Number of patches, a power of two; chosen from the mesh if absent.
    pub patches: Option<usize>,
    /// The file of a prepared cut.
    pub file: Option<PathBuf>,
    /// The vertices whose state a rank has.
    pub state: RankState,
}

/// The vertices whose state a rank has, by the names that scenes give them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankState {
    /// All vertices, or, where there are many ranks and vertices, those that tests read.
    Auto,
    /// All vertices.
    Replicated,
    /// Its own, and those that its tests read.
    Subscribed,
}

impl RankState {
    /// All values of the type.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Replicated, Self::Subscribed];

    /// The name in scenes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Replicated => "replicated",
            Self::Subscribed => "subscribed",
        }
    }

    /// Whether each of this many ranks is sent the state of what its tests read, and no more, for
    /// cloth of this many vertices.
    #[must_use]
    pub fn subscribes(self, ranks: usize, vertices: usize) -> bool {
        /// The state of all vertices takes little time and memory on fewer ranks.
        const MANY_RANKS: usize = 16;
        /// And that of fewer vertices does on any number of them.
        const MANY_VERTICES: usize = 500_000;
        match self {
            Self::Auto => ranks >= MANY_RANKS && vertices >= MANY_VERTICES,
            Self::Replicated => false,
            Self::Subscribed => ranks > 1,
        }
    }
}

/// How ranks share the collision tests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Balance {
    /// Ranks used when the command line does not say.
    pub ranks: Option<usize>,
    /// Seed of the choice of victims.
    pub seed: u64,
    /// The rules by which ranks give work to each other.
    pub policy: Policy,
}
