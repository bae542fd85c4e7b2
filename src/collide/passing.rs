//! Pairs of features of cloth that are not tested against each other, by detection, certification
//! and audits alike.
//!
//! There are two kinds. A cloth passes through itself where its scene turns self-collision off for
//! it; its features are tested against other cloth and against bodies. Features at two vertices
//! that a seam sews together are neighbours, as features that share a vertex are: the pairs that
//! are left out are those of the mesh in which the two vertices are one.

use std::borrow::Cow;

use crate::archive::{Array, archives};
use crate::heap_bytes::counts_heap;

/// The pairs of vertices of cloth whose features pass through each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passing {
    /// The number of the cloth of each vertex, or [`COLLIDES`]; empty where all cloth collides.
    of: Array<u32>,
    /// Pairs of vertices that are sewn together, in both orders, ascending.
    sewn: Array<[u32; 2]>,
    /// One bit for each vertex up to the last one that is sewn: whether it is.
    is_sewn: Array<u64>,
}

counts_heap!(Passing: of, sewn, is_sewn);
archives!(Passing: of, sewn, is_sewn);

/// Stands for the cloth of a vertex that collides with all cloth.
const COLLIDES: u32 = u32::MAX;

impl Passing {
    /// All cloth collides with itself.
    pub const NONE: &'static Self = &Self {
        of: Cow::Borrowed(&[]),
        sewn: Cow::Borrowed(&[]),
        is_sewn: Cow::Borrowed(&[]),
    };

    /// Vertices whose cloths these are, of which some pass through themselves.
    #[must_use]
    pub fn new(cloth_of_vertex: &[u32], passes: impl Fn(u32) -> bool) -> Self {
        let of: Vec<u32> = (cloth_of_vertex.iter())
            .map(|&cloth| if passes(cloth) { cloth } else { COLLIDES })
            .collect();
        if of.iter().all(|&cloth| cloth == COLLIDES) {
            Self::default()
        } else {
            Self {
                of: of.into(),
                ..Self::default()
            }
        }
    }

    /// Adds pairs of vertices that are sewn together.
    #[must_use]
    pub fn sewn(mut self, pairs: impl IntoIterator<Item = [u32; 2]>) -> Self {
        let mut sewn = self.sewn.into_owned();
        for [v, w] in pairs {
            sewn.extend([[v, w], [w, v]]);
        }
        sewn.sort_unstable();
        sewn.dedup();
        let last = sewn.last().map_or(0, |[v, _]| *v as usize + 1);
        let mut is_sewn = vec![0_u64; last.div_ceil(64)];
        for [v, _] in &sewn {
            is_sewn[*v as usize / 64] |= 1 << (v % 64);
        }
        self.sewn = sewn.into();
        self.is_sewn = is_sewn.into();
        self
    }

    /// Whether all features of cloth are tested that share no vertex.
    #[inline]
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.of.is_empty() && self.sewn.is_empty()
    }

    /// Whether two features with these vertices pass through each other. Vertices that it does not
    /// know, such as those of bodies, collide.
    #[inline]
    #[must_use]
    pub fn lets(&self, one: &[u32], other: &[u32]) -> bool {
        if self.is_none() {
            return false;
        }
        // All vertices of a feature are of one cloth.
        let cloths = [one.first(), other.last()].map(|v| v.and_then(|&v| self.cloth(v)));
        if cloths[0].is_some() && cloths[0] == cloths[1] {
            return true;
        }
        one.iter()
            .any(|&v| self.is_sewn(v) && other.iter().any(|&w| self.are_sewn(v, w)))
    }

    /// Whether any vertex is sewn to this one.
    #[inline]
    fn is_sewn(&self, v: u32) -> bool {
        let bits = self.is_sewn.get(v as usize / 64);
        bits.is_some_and(|bits| bits >> (v % 64) & 1 == 1)
    }

    fn are_sewn(&self, v: u32, w: u32) -> bool {
        self.is_sewn(w) && self.sewn.binary_search(&[v, w]).is_ok()
    }

    /// The cloth that all of these vertices belong to, if it passes through itself.
    pub(in crate::collide) fn cloth_of_all(&self, vertices: &[u32]) -> Option<u32> {
        let (&first, others) = vertices.split_first()?;
        let cloth = self.cloth(first)?;
        let alike = others.iter().all(|&v| self.cloth(v) == Some(cloth));
        alike.then_some(cloth)
    }

    fn cloth(&self, vertex: u32) -> Option<u32> {
        let cloth = self.of.get(vertex as usize);
        cloth.copied().filter(|&cloth| cloth != COLLIDES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_one_cloth_that_passes_through_itself_are_let_through() {
        let passing = Passing::new(&[0, 0, 1, 1, 2, 2], |cloth| cloth != 1);
        let lets = |v: u32, w: u32| passing.lets(&[v], &[w]);
        assert!(lets(0, 1) && lets(4, 5));
        assert!(!lets(2, 3) && !lets(0, 4) && !lets(0, 2));
        // Number 6 is of a body.
        assert!(!lets(6, 6) && !lets(0, 6));
        assert_eq!(passing.cloth_of_all(&[0, 1]), Some(0));
        assert_eq!(passing.cloth_of_all(&[0, 4]), None);
        assert_eq!(passing.cloth_of_all(&[2, 3]), None);
        assert_eq!(passing.cloth_of_all(&[]), None);
        assert_eq!(Passing::new(&[0, 1], |_| false), *Passing::NONE);
    }

    #[test]
    fn features_at_vertices_that_are_sewn_together_are_let_through() {
        let passing = Passing::default().sewn([[70, 3], [3, 5]]);
        assert!(passing.lets(&[1, 2, 3], &[9, 70]) && passing.lets(&[70], &[3, 9, 8]));
        assert!(passing.lets(&[5], &[3]) && passing.lets(&[3], &[5]));
        // Two that are sewn to a third are not sewn to each other.
        assert!(!passing.lets(&[5], &[70]) && !passing.lets(&[1, 2], &[3, 5]));
        assert!(!passing.lets(&[3], &[3]) && !passing.lets(&[900], &[3]));
        assert!(!passing.is_none());
        assert_eq!(Passing::default().sewn([]), *Passing::NONE);
        let both = Passing::new(&[0, 0, 1, 1, 2, 2], |cloth| cloth == 0).sewn([[1, 4]]);
        assert!(both.lets(&[0], &[1]) && both.lets(&[1], &[4]) && !both.lets(&[0], &[4]));
        assert_eq!(both.cloth_of_all(&[0, 1]), Some(0));
    }
}
