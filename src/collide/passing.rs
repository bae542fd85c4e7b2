//! Cloth that passes through itself, because its scene turns self-collision off for it.
//!
//! Features of such a cloth are not tested against each other, by detection, certification and
//! audits alike. They are tested against other cloth and against bodies.

use crate::heap_bytes::counts_heap;

/// The cloth of each vertex that belongs to cloth which passes through itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passing {
    /// The number of the cloth of each vertex, or [`COLLIDES`]; empty where all cloth collides.
    of: Vec<u32>,
}

counts_heap!(Passing: of);

/// Stands for the cloth of a vertex that collides with all cloth.
const COLLIDES: u32 = u32::MAX;

impl Passing {
    /// All cloth collides with itself.
    pub const NONE: &'static Self = &Self { of: Vec::new() };

    /// Vertices whose cloths these are, of which some pass through themselves.
    #[must_use]
    pub fn new(cloth_of_vertex: &[u32], passes: impl Fn(u32) -> bool) -> Self {
        let of: Vec<u32> = (cloth_of_vertex.iter())
            .map(|&cloth| if passes(cloth) { cloth } else { COLLIDES })
            .collect();
        if of.iter().all(|&cloth| cloth == COLLIDES) {
            Self::default()
        } else {
            Self { of }
        }
    }

    /// Whether all cloth collides with itself.
    #[inline]
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.of.is_empty()
    }

    /// Whether features at two vertices pass through each other. Vertices that it does not know,
    /// such as those of bodies, collide.
    #[inline]
    #[must_use]
    pub fn lets(&self, v: u32, w: u32) -> bool {
        !self.is_none() && self.cloth(v).is_some() && self.cloth(v) == self.cloth(w)
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
        let lets = |v, w| passing.lets(v, w);
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
}
