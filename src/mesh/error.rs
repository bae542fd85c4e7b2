//! Errors of meshes, with numbers and coordinates.

use std::fmt;
use std::path::PathBuf;

use thiserror::Error;
use weft_io::Show as _;

/// The reason why a mesh was refused. The command ends with exit code 3 on any of these.
///
/// Each says all it knows when displayed; there is no chain of sources to print.
#[derive(Debug, Error)]
pub enum MeshError {
    /// A cloth or body of the scene, or its file, and what is wrong with its mesh.
    #[error("{object}: {reason}")]
    Object {
        /// The object, such as "cloth `sheet`" or a path.
        object: String,
        /// The problem.
        reason: Box<Self>,
    },
    /// The file cannot be read.
    #[error("cannot read {}: {reason}", path.shown())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        reason: std::io::Error,
    },
    /// The file is not what its name says.
    #[error("{}{}: {message}", path.shown(), Behind(*place))]
    Format {
        /// The file.
        path: PathBuf,
        /// The place in it, unless it is the whole of it.
        place: Option<FilePlace>,
        /// The problem.
        message: String,
    },
    /// A mesh of more elements than fit.
    #[error(
        "{what} would have {count} vertices; the most are {most}: take longer edges or fewer vertices"
    )]
    TooLarge {
        /// The mesh that was asked for.
        what: String,
        /// How many vertices that is, about.
        count: f64,
        /// How many there may be.
        most: usize,
    },
    /// A thickness that is larger than all of the cloth, as one in another unit is.
    #[error(
        "a thickness of {thickness} m is more than its size, {size:.3} m; a number without a unit is in m: take a smaller thickness, such as \"1 mm\""
    )]
    TooThick {
        /// The thickness in m.
        thickness: f64,
        /// The diagonal of the cloth's bounding box in m.
        size: f64,
    },
    /// The mesh is read and cannot be used. Numbers count from 0, as do those of every other
    /// message, whatever the file does.
    #[error("the mesh cannot be used (vertices and triangles are counted from 0):{}", Listed(.0))]
    Faulty(Vec<Fault>),
}

/// All elements of a mesh that have one and the same fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The problem with them.
    pub kind: FaultKind,
    /// How many they are.
    pub count: usize,
    /// The first few, with vertex numbers from 0 and coordinates in m.
    pub examples: Vec<String>,
}

/// The faults that an element can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The mesh has no triangles.
    Empty,
    /// A triangle names a vertex that does not exist.
    IndexOutOfRange,
    /// A coordinate is NaN, infinite or too large to compute with.
    NotFinite,
    /// A triangle names a vertex twice.
    RepeatedVertex,
    /// The corners of a triangle lie on a line.
    NoArea,
    /// Two triangles have the same vertices.
    DuplicateTriangle,
    /// The edge belongs to more than two triangles.
    NonManifoldEdge,
    /// Two neighbours run along their edge in the same direction: they face opposite sides.
    InconsistentOrientation,
    /// A vertex is in no triangle: nothing would hold it.
    LooseVertex,
    /// An edge of a body belongs to one triangle only: the body has a hole.
    OpenEdge,
    /// An edge of a cloth that collides with itself is not longer than the contact thickness.
    ShortEdge,
    /// The triangles of a closed body face inwards.
    InsideOut,
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "no triangles",
            Self::IndexOutOfRange => "triangles with a vertex that does not exist",
            Self::NotFinite => "vertices whose coordinates are not finite numbers below 10¹² m",
            Self::RepeatedVertex => "triangles with a vertex twice",
            Self::NoArea => "triangles without area",
            Self::DuplicateTriangle => "triangles with the same vertices as another",
            Self::NonManifoldEdge => "edges with more than two triangles (non-manifold)",
            Self::InconsistentOrientation => "edges whose two triangles face opposite sides",
            Self::LooseVertex => "vertices in no triangle",
            Self::OpenEdge => "open edges, where a body must be closed",
            Self::ShortEdge => {
                "edges not longer than the contact thickness, so that neighbours would \
                 push each other (take a smaller contact.thickness, a smaller thickness of this cloth, a coarser mesh, \
                 contact.pairs = \"closest\", or self_collision = false for this cloth)"
            }
            Self::InsideOut => "triangles that face inwards: the body is inside out",
        })
    }
}

struct Listed<'a>(&'a [Fault]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fault in self.0 {
            match fault.kind {
                FaultKind::Empty => write!(f, "\n  {}", fault.kind)?,
                _ => write!(f, "\n  {} {}", fault.count, fault.kind)?,
            }
            for (index, example) in fault.examples.iter().enumerate() {
                write!(f, "{} {example}", if index == 0 { ":" } else { ";" })?;
            }
            if fault.count > fault.examples.len() && !fault.examples.is_empty() {
                write!(f, "; ...")?;
            }
        }
        Ok(())
    }
}

/// A place in a mesh file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilePlace {
    /// A line of text, counted from 1.
    Line(usize),
    /// A byte, counted from 0, of a file that has no lines.
    Byte(usize),
}

/// A place as it stands behind the name of its file: `:12`, or `, byte 84`.
struct Behind(Option<FilePlace>);

impl fmt::Display for Behind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => Ok(()),
            Some(FilePlace::Line(line)) => write!(f, ":{line}"),
            Some(FilePlace::Byte(byte)) => write!(f, ", byte {byte}"),
        }
    }
}
