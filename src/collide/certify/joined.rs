//! Cloth before bodies: positions and triangles that lie in two arrays each and are numbered as in
//! one.
//!
//! Cloth is by far the larger part, and its arrays are there in any case. So none is copied to put
//! what bodies have behind it.

use std::ops::Index;

use glam::DVec3;

use crate::collide::passing::Passing;
use crate::collide::surface::{Face, Surface};

/// The positions of vertices, in m: those of cloth, and after them those of bodies.
#[derive(Clone, Copy, Debug, Default)]
pub struct Positions<'a> {
    cloth: &'a [DVec3],
    bodies: &'a [DVec3],
}

impl<'a> Positions<'a> {
    /// The positions of cloth (m), and after them those of bodies (m).
    #[must_use]
    pub fn new(cloth: &'a [DVec3], bodies: &'a [DVec3]) -> Self {
        Self { cloth, bodies }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cloth.len() + self.bodies.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them in their order.
    pub fn iter(&self) -> impl Iterator<Item = &'a DVec3> + Clone {
        self.cloth.iter().chain(self.bodies)
    }

    /// A copy of all of them.
    #[must_use]
    pub fn to_vec(&self) -> Vec<DVec3> {
        [self.cloth, self.bodies].concat()
    }
}

impl<'a> From<&'a [DVec3]> for Positions<'a> {
    fn from(all: &'a [DVec3]) -> Self {
        Self::new(all, &[])
    }
}

impl<'a> From<&'a Vec<DVec3>> for Positions<'a> {
    fn from(all: &'a Vec<DVec3>) -> Self {
        Self::new(all, &[])
    }
}

/// The position of a vertex.
///
/// # Panics
/// If there are fewer.
impl Index<usize> for Positions<'_> {
    type Output = DVec3;

    #[inline(always)]
    fn index(&self, at: usize) -> &DVec3 {
        match self.cloth.get(at) {
            Some(position) => position,
            None => &self.bodies[at - self.cloth.len()],
        }
    }
}

/// The triangles of cloth, and after them those of bodies, whose vertices come after those of
/// cloth.
#[derive(Clone, Copy, Debug)]
pub struct Triangles<'a> {
    cloth: &'a Surface,
    bodies: Option<&'a Surface>,
}

impl<'a> From<&'a Surface> for Triangles<'a> {
    fn from(cloth: &'a Surface) -> Self {
        let bodies = None;
        Self { cloth, bodies }
    }
}

impl<'a> Triangles<'a> {
    pub(super) fn new(cloth: &'a Surface, bodies: &'a Surface) -> Self {
        let bodies = Some(bodies);
        Self { cloth, bodies }
    }

    /// The triangles of cloth.
    #[must_use]
    pub fn cloth(&self) -> &'a Surface {
        self.cloth
    }

    /// The corners of the triangles of bodies.
    #[must_use]
    pub fn of_bodies(&self) -> &'a [[u32; 3]] {
        self.bodies.map_or(&[], Surface::triangles)
    }

    /// How many triangles there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.cloth.triangles().len() + self.of_bodies().len()
    }

    /// The corners of all triangles in their order.
    pub fn iter(&self) -> impl Iterator<Item = [u32; 3]> + 'a {
        let all = self.cloth.triangles().iter().chain(self.of_bodies());
        all.copied()
    }

    /// The corners of a triangle.
    ///
    /// # Panics
    /// If there are fewer triangles.
    #[inline]
    #[must_use]
    pub fn corners(&self, triangle: u32) -> [u32; 3] {
        let (cloth, at) = (self.cloth.triangles(), triangle as usize);
        match cloth.get(at) {
            Some(corners) => *corners,
            None => self.of_bodies()[at - cloth.len()],
        }
    }

    /// A triangle with the features that it owns.
    #[inline]
    pub(in crate::collide) fn face(&self, triangle: u32) -> Face {
        let cloth = self.cloth.triangles().len() as u32;
        match self.bodies {
            Some(bodies) if triangle >= cloth => bodies.face(triangle - cloth),
            _ => self.cloth.face(triangle),
        }
    }

    /// The cloth that passes through itself.
    #[inline]
    #[must_use]
    pub fn passing(&self) -> &'a Passing {
        self.cloth.passing()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_arrays_are_numbered_as_one() {
        let triangles = [[0, 1, 2], [2, 1, 3], [4, 5, 6], [6, 5, 7]];
        let all = Surface::new(&triangles, 8);
        let (cloth, bodies) = (
            Surface::new(&triangles[..2], 4),
            Surface::new(&triangles[2..], 8),
        );
        let joined = Triangles::new(&cloth, &bodies);
        assert_eq!(joined.count(), 4);
        assert!(joined.iter().eq(triangles));
        for t in 0..4 {
            assert_eq!(joined.corners(t), triangles[t as usize]);
            assert_eq!(joined.face(t), all.face(t));
        }
        let x: Vec<DVec3> = (0..5).map(|k| DVec3::splat(f64::from(k))).collect();
        let (one, two) = x.split_at(3);
        let joined = Positions::new(one, two);
        assert!(joined.len() == 5 && !joined.is_empty());
        assert!((0..5).all(|k| joined[k] == x[k]));
        assert!(joined.iter().eq(&x) && joined.to_vec() == x);
    }
}
