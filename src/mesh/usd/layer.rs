//! A USD layer, whichever way it is written, as far as it is read: its prims, and the attributes of
//! them that say what a mesh is and where it stands.

use std::collections::BTreeMap;

use super::super::file_problem::Problem;

/// A layer.
#[derive(Debug, Default)]
pub(super) struct Layer {
    /// The prims, each behind the one that it is in.
    pub(super) prims: Vec<Prim>,
    /// The length of a unit in m, if it is said.
    pub(super) metres: Option<f64>,
    /// The axis that points upwards, if it is said.
    pub(super) up: Option<String>,
    /// Whether other layers are below this one.
    pub(super) has_sublayers: bool,
}

/// A prim.
#[derive(Debug, Default)]
pub(super) struct Prim {
    /// Its name.
    pub(super) name: String,
    /// The prim that it is in, unless it is at the top.
    pub(super) parent: Option<usize>,
    /// Its place among those beside it, or a later one.
    pub(super) place: usize,
    /// Its type, such as `Mesh`; empty if it has none.
    pub(super) kind: String,
    /// Whether it is there: defined, and not switched off.
    pub(super) is_defined: bool,
    /// The kind of composition, such as `references`, by which it takes something from elsewhere,
    /// if it does.
    pub(super) arc: Option<&'static str>,
    /// The attributes of [`ATTRIBUTES`] that it has.
    pub(super) attributes: BTreeMap<String, Attribute>,
}

/// An attribute.
#[derive(Debug, Default)]
pub(super) struct Attribute {
    /// Its value, or the first one in time if it has only such.
    pub(super) value: Value,
    /// How a primvar is laid over the mesh.
    pub(super) interpolation: Option<String>,
}

/// A value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Value {
    /// None, or one of a type that is not read.
    #[default]
    None,
    /// Whole numbers.
    Whole(Vec<i32>),
    /// Numbers, those of a vector or matrix one after the other.
    Numbers {
        /// How many are one element.
        each: usize,
        /// The numbers.
        numbers: Vec<f64>,
    },
    /// Words, of which a value that is no array has one.
    Words(Vec<String>),
}

/// The kind of item of which values of a type consist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    /// Whole numbers.
    Whole,
    /// Numbers, as many as are given.
    Numbers(usize),
    /// Words.
    Word,
    /// Something that is not read.
    Other,
}

impl Element {
    /// The element of a type, by its name in text without `[]`.
    pub(super) fn of(name: &str) -> Self {
        match name {
            "int" => Self::Whole,
            "token" | "string" => Self::Word,
            "half" | "float" | "double" => Self::Numbers(1),
            "half2" | "float2" | "double2" | "texCoord2h" | "texCoord2f" | "texCoord2d" => {
                Self::Numbers(2)
            }
            "half3" | "float3" | "double3" | "point3h" | "point3f" | "point3d" | "vector3h"
            | "vector3f" | "vector3d" => Self::Numbers(3),
            "quath" | "quatf" | "quatd" => Self::Numbers(4),
            "matrix4d" => Self::Numbers(16),
            _ => Self::Other,
        }
    }
}

/// Whether an attribute of this name is read.
pub(super) fn is_read(name: &str) -> bool {
    ATTRIBUTES.contains(&name) || name.starts_with("xformOp:")
}

/// The attributes that are read, beside operations of transforms.
const ATTRIBUTES: [&str; 12] = [
    "elementType",
    "faceVertexCounts",
    "faceVertexIndices",
    "holeIndices",
    "indices",
    "orientation",
    "points",
    "primvars:UVMap",
    "primvars:UVMap:indices",
    "primvars:st",
    "primvars:st:indices",
    "xformOpOrder",
];

impl Layer {
    /// Adds a prim.
    ///
    /// # Errors
    /// There are too many, or too deep.
    pub(super) fn add(&mut self, prim: Prim, depth: usize) -> Result<usize, Problem> {
        if self.prims.len() >= MOST_PRIMS {
            return Err(Problem::new(format!("it has more than {MOST_PRIMS} prims")));
        }
        if depth > DEEPEST {
            return Err(Problem::new(format!(
                "its prims are more than {DEEPEST} deep within each other"
            )));
        }
        self.prims.push(prim);
        Ok(self.prims.len() - 1)
    }

    /// The places of a prim and of those that it is in, from the top on: what comes first in the
    /// layer is less.
    pub(super) fn places(&self, prim: usize) -> Vec<usize> {
        let mut places = Vec::new();
        let mut at = Some(prim);
        while let Some(prim) = at {
            places.push(self.prims[prim].place);
            at = self.prims[prim].parent;
        }
        places.reverse();
        places
    }

    /// The path of a prim.
    pub(super) fn path(&self, prim: usize) -> String {
        let mut names = Vec::new();
        let mut at = Some(prim);
        while let Some(prim) = at {
            names.push(self.prims[prim].name.as_str());
            at = self.prims[prim].parent;
        }
        let names = names.iter().rev().map(|name| format!("/{name}"));
        names.collect()
    }
}

/// Prims of a layer.
pub(super) const MOST_PRIMS: usize = 1_000_000;

/// Prims within each other.
pub(super) const DEEPEST: usize = 256;
