//! The reason why a scene cannot be simulated.

use std::fmt;

use rayon::ThreadPoolBuildError;
use thiserror::Error;
use weft_io::Show as _;
use weft_partition::PartitionError;

use super::prepared::PreparedError;
use super::seams::SeamError;
use crate::collide::bodies::SampleError;
use crate::mesh::MeshError;
use crate::physics::PhysicsError;

/// The reason why a scene cannot be simulated.
#[derive(Debug, Error)]
pub enum WorldError {
    /// A mesh is bad.
    #[error(transparent)]
    Mesh(#[from] MeshError),
    /// A cloth has no physics.
    #[error(transparent)]
    Physics(#[from] PhysicsError),
    /// The mesh cannot be cut.
    #[error(transparent)]
    Partition(#[from] PartitionError),
    /// A prepared cut is not taken.
    #[error(transparent)]
    Prepared(#[from] PreparedError),
    /// The system does not give the threads for the set-up.
    #[error("the threads of the set-up: {0}; ask for fewer with --threads or --ranks")]
    Threads(#[from] ThreadPoolBuildError),
    /// It needs more memory than there is.
    #[error("{0}")]
    Memory(String),
    /// The samples of a body that deforms can no longer be read.
    #[error("body `{body}`: {source}")]
    Sample {
        /// The body's name.
        body: String,
        /// Why.
        source: SampleError,
    },
    /// Two borders cannot be sewn together.
    #[error("seam `{seam}`: {source}")]
    Seam {
        /// The seam's name.
        seam: String,
        /// Why.
        source: SeamError,
    },
    /// A pin that slides follows a body that deforms.
    #[error(
        "pin {pin} of cloth `{cloth}` slides and follows body `{body}`, which deforms and so has no one rail or plane; leave out its \
         `rail` or `plane`, or let it follow a body that keeps its shape"
    )]
    SlidesOnDeforming {
        /// The cloth's name.
        cloth: String,
        /// The pin's place in the list, from 0.
        pin: usize,
        /// The body's name.
        body: String,
    },
    /// A cloth with a pressure inside is not closed.
    #[error(
        "cloth `{cloth}` has a `pressure`, for which its mesh must be closed and face outwards; close it, turn its triangles, or leave \
         `pressure` out: {source}"
    )]
    Pressure {
        /// The cloth's name.
        cloth: String,
        /// The faults of its mesh.
        source: MeshError,
    },
    /// A pin holds nothing.
    #[error("pin {pin} of cloth `{cloth}` holds no vertex; {remedy}")]
    EmptyPin {
        /// The cloth's name.
        cloth: String,
        /// The pin's place in the list, from 0.
        pin: usize,
        /// The way to give it one.
        remedy: &'static str,
    },
    /// A pin holds what is near a body, and nothing is.
    #[error(
        "pin {pin} of cloth `{cloth}` holds no vertex: none starts within {within:.4} m of body `{body}`, {}",
        Nearest(nearest)
    )]
    NothingNear {
        /// The cloth's name.
        cloth: String,
        /// The pin's place in the list, from 0.
        pin: usize,
        /// The body's name.
        body: String,
        /// The distance that was asked for, in m.
        within: f64,
        /// The vertex that is nearest to the body, and its distance in m; `None` if all lie beside
        /// it.
        nearest: Option<(usize, f64)>,
    },
    /// A pin names a group that is not in the file.
    #[error(
        "pin {pin} of cloth `{cloth}` holds group `{}`, and its file has {}",
        group.shown(),
        Names(there)
    )]
    NoGroup {
        /// The cloth's name.
        cloth: String,
        /// The pin's place in the list, from 0.
        pin: usize,
        /// The name that was asked for.
        group: String,
        /// The names of the groups that the file has.
        there: Vec<String>,
    },
    /// A pin names a vertex that is not there.
    #[error(
        "pin {pin} of cloth `{cloth}` holds vertex {vertex}, and there are {there}, counted from 0"
    )]
    NoVertex {
        /// The cloth's name.
        cloth: String,
        /// The pin's place in the list, from 0.
        pin: usize,
        /// The number that was asked for.
        vertex: u64,
        /// Vertices of the cloth's file.
        there: usize,
    },
    /// A vertex cannot do what two pins want.
    #[error(
        "pins {pins:?} of cloth `{cloth}` both hold vertex {vertex}, and differ; move one of their boxes, or have both slide and move alike"
    )]
    PinsDiffer {
        /// The cloth's name.
        cloth: String,
        /// The places of both in the list, from 0.
        pins: [usize; 2],
        /// The vertex's index in that cloth's mesh.
        vertex: usize,
    },
    /// Cloth starts where a body is.
    #[error(
        "vertex {vertex} of cloth `{cloth}` starts {depth:.4} m inside body `{body}`; move one of them"
    )]
    StartsInside {
        /// The cloth's name.
        cloth: String,
        /// The vertex's index in that cloth's mesh.
        vertex: usize,
        /// The body's name.
        body: String,
        /// How deep it is, in m.
        depth: f64,
    },
    /// A body that is to be met by its distance is not closed.
    #[error(
        "body `{body}` has surface = \"distance\", for which its mesh must be closed, and it has {found}; close it, or take surface = \
         \"triangles\""
    )]
    OpenDistance {
        /// The body's name.
        body: String,
        /// The defects of its mesh.
        found: String,
    },
    /// The cells of a body are too large for it.
    #[error(
        "the cells of body `{body}`, of {cell:.3e} m, are too large for it: its shortest side is {shortest:.3e} m; take a `cell` of {most:.3e} m \
         or less, or surface = \"triangles\""
    )]
    CoarseCells {
        /// The body's name.
        body: String,
        /// The side of a cell in m.
        cell: f64,
        /// The shortest side of the box around its mesh, in m.
        shortest: f64,
        /// The largest cell that is taken, in m.
        most: f64,
    },
    /// The cells of a body are more than can be numbered.
    #[error(
        "the cells of body `{body}`, of {cell:.3e} m, are too small for it: its longest side is {longest:.3e} m; take a `cell` of {usual:.3e} m \
         or so"
    )]
    FineCells {
        /// The body's name.
        body: String,
        /// The side of a cell in m.
        cell: f64,
        /// The longest side of the box around its mesh, in m.
        longest: f64,
        /// A cell that would do, in m.
        usual: f64,
    },
    /// Cloth and a body start through each other's faces.
    #[error(
        "cloth `{cloth}` starts across the surface of body `{body}`: {pairs} pairs of an edge and a triangle cross; move one of them"
    )]
    StartsAcross {
        /// The cloth's name.
        cloth: String,
        /// The body's name.
        body: String,
        /// How many pairs cross.
        pairs: usize,
    },
    /// A thickness is lost in the rounding of positions.
    #[error(
        "the {key} of {of}, {thickness:.3e} m, is lost in the rounding of coordinates of {farthest:.3e} m; \
         set {key} to at least {least:.3e} m, or move the scene to the origin"
    )]
    LostThickness {
        /// The cloth or body, with its name.
        of: String,
        /// The key that says it.
        key: &'static str,
        /// The thickness in m.
        thickness: f64,
        /// The largest coordinate in m.
        farthest: f64,
        /// The least thickness that is not lost, in m.
        least: f64,
    },
    /// Cloth starts where cloth is.
    #[error(
        "an edge of cloth `{edge}` and a triangle of cloth `{triangle}` cross at the start, and {others} \
         other pairs; move them apart, set start.crossings = \"keep\" to have them pulled apart, or set \
         contact.self_collision = false"
    )]
    StartsCrossing {
        /// The name of the cloth whose edge it is.
        edge: String,
        /// The name of the cloth whose triangle it is.
        triangle: String,
        /// How many other pairs cross.
        others: usize,
    },
}

/// The vertex that is nearest to a body, for a message.
struct Nearest<'a>(&'a Option<(usize, f64)>);

impl fmt::Display for Nearest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some((vertex, distance)) => write!(
                f,
                "and the nearest one, vertex {vertex}, is {distance:.4} m away; make near.within at least that, or move one of them"
            ),
            None => f.write_str("and none lies over it; move one of them"),
        }
    }
}

/// The names of groups for a message.
pub(super) struct Names<'a>(pub(super) &'a [String]);

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// The most that are named.
        const NAMED: usize = 8;
        if self.0.is_empty() {
            return f.write_str("no groups: `g` and `o` of OBJ, numbers of vertices of PLY, meshes and attributes of glTF, and prims and subsets of USD are groups");
        }
        f.write_str("these: ")?;
        for (index, name) in self.0.iter().take(NAMED).enumerate() {
            write!(
                f,
                "{}`{}`",
                if index == 0 { "" } else { ", " },
                name.shown()
            )?;
        }
        match self.0.len().saturating_sub(NAMED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

impl WorldError {
    /// The exit code of the command: 4 if the machine is at fault, 3 if the scene is.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Threads(_) => 4,
            _ => 3,
        }
    }
}
