//! How large a mesh is, in one line: what a person looks at who has mistaken centimetres for
//! metres.

use std::fmt;

use glam::DVec3;

use super::TriMesh;
use crate::disjoint_sets::DisjointSets;
use crate::heap_bytes::owns_no_heap;

/// The sizes of a mesh.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sizes {
    /// The sides of the box around its triangles along the axes, in m.
    pub extent: DVec3,
    /// Vertices, with those in no triangle.
    pub vertices: usize,
    /// Triangles.
    pub triangles: usize,
    /// Length of the shortest edge in m.
    pub shortest: f64,
    /// Length of the longest edge in m.
    pub longest: f64,
    /// Borders: rows of edges with one triangle that hang together.
    pub borders: usize,
    /// Pieces that share no vertex.
    pub pieces: usize,
}

owns_no_heap!(Sizes);

impl Sizes {
    /// Measures a mesh.
    ///
    /// # Panics
    /// If an index is out of range: only for meshes that were checked or generated.
    #[must_use]
    pub fn of(mesh: &TriMesh) -> Self {
        Self::of_triangles(&mesh.positions, &mesh.triangles)
    }

    /// Measures triangles over positions.
    ///
    /// # Panics
    /// As [`Self::of`].
    #[must_use]
    pub(crate) fn of_triangles(positions: &[DVec3], triangles: &[[u32; 3]]) -> Self {
        let x = |v: u32| positions[v as usize];
        let corners = || triangles.iter().flatten().map(|&v| x(v));
        let low = corners().fold(DVec3::INFINITY, DVec3::min);
        let high = corners().fold(DVec3::NEG_INFINITY, DVec3::max);
        let sides = triangles
            .iter()
            .flat_map(|&[a, b, c]| [[a, b], [b, c], [c, a]]);
        let mut sides: Vec<[u32; 2]> = sides.map(|[a, b]| [a.min(b), a.max(b)]).collect();
        sides.sort_unstable();
        let edges = || sides.chunk_by(|a, b| a == b);
        let lengths = || edges().map(|edge| x(edge[0][0]).distance(x(edge[0][1])));
        let border = edges().filter(|edge| edge.len() == 1);
        let vertices = positions.len();
        let nothing = triangles.is_empty();
        Self {
            extent: if nothing { DVec3::ZERO } else { high - low },
            vertices,
            triangles: triangles.len(),
            shortest: lengths().reduce(f64::min).unwrap_or_default(),
            longest: lengths().fold(0.0, f64::max),
            borders: groups(vertices, border.map(|edge| edge[0])),
            pieces: groups(vertices, edges().map(|edge| edge[0])),
        }
    }

    /// The largest of the sides of its box, in m.
    #[must_use]
    pub fn length(&self) -> f64 {
        self.extent.max_element()
    }
}

/// The number of groups that edges fall into which share no vertex.
fn groups(vertices: usize, edges: impl Iterator<Item = [u32; 2]>) -> usize {
    let mut sets = DisjointSets::new(vertices);
    let mut groups = 0;
    let mut seen = vec![false; vertices];
    for [a, b] in edges {
        for end in [a, b] {
            groups += usize::from(!std::mem::replace(&mut seen[end as usize], true));
        }
        groups -= usize::from(sets.least(a) != sets.least(b));
        sets.unite(a, b);
    }
    groups
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.extent.to_array().map(short);
        let (factor, unit) = if self.longest < 1.0 {
            (1e3, "mm")
        } else {
            (1.0, "m")
        };
        let [shortest, longest] = [self.shortest, self.longest].map(|l| short(factor * l));
        write!(
            f,
            "{x} x {y} x {z} m, {} vertices, {} triangles, edges of {shortest} to {longest} {unit}, {}, {}",
            self.vertices,
            self.triangles,
            match self.borders {
                0 => "closed".to_owned(),
                count => counted(count, "border"),
            },
            counted(self.pieces, "piece"),
        )
    }
}

/// A count with its noun, in words.
fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Four digits of a number.
fn short(x: f64) -> f64 {
    format!("{x:.3e}").parse().unwrap_or(x)
}

/// A mass in kg, or g if it is less than one.
#[must_use]
pub fn mass(kg: f64) -> String {
    if kg < 1.0 {
        format!("{} g", short(1e3 * kg))
    } else {
        format!("{} kg", short(kg))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{cuboid, grid, shirt};
    use super::*;

    #[test]
    fn a_sheet_is_measured_and_told_in_a_line() {
        let sheet = grid([0.4, 0.2], [9, 5], DVec3::X, DVec3::ZERO).unwrap();
        let sizes = Sizes::of(&sheet);
        assert!((sizes.extent - DVec3::new(0.4, 0.2, 0.0)).length() < 1e-15);
        assert_eq!((sizes.vertices, sizes.triangles), (45, 64));
        assert!(
            (sizes.shortest - 0.05).abs() < 1e-15
                && (sizes.longest - 0.005f64.sqrt()).abs() < 1e-15
        );
        assert_eq!((sizes.borders, sizes.pieces), (1, 1));
        assert_eq!(
            sizes.to_string(),
            "0.4 x 0.2 x 0 m, 45 vertices, 64 triangles, edges of 50 to 70.71 mm, 1 border, 1 piece"
        );
        assert_eq!([mass(0.012), mass(1.5)], ["12 g", "1.5 kg"]);
    }

    #[test]
    fn borders_and_pieces_are_those_of_triangles() {
        // Hem, neck and two sleeves.
        let shirt = Sizes::of(&shirt(0.7, 20, DVec3::ZERO, DVec3::ZERO).unwrap());
        assert_eq!((shirt.borders, shirt.pieces), (4, 1));
        let mut cube = cuboid(DVec3::ZERO, DVec3::ONE, 0.5).unwrap();
        let beside: Vec<DVec3> = cube.positions.iter().map(|p| *p + 3.0 * DVec3::X).collect();
        let n = cube.positions.len() as u32;
        let triangles: Vec<[u32; 3]> = cube.triangles.iter().map(|t| t.map(|v| v + n)).collect();
        cube.positions.extend(beside);
        cube.triangles.extend(triangles);
        // In no triangle.
        cube.positions.push(DVec3::splat(100.0));
        let sizes = Sizes::of(&cube);
        assert_eq!((sizes.borders, sizes.pieces, sizes.length()), (0, 2, 4.0));
        assert!(
            sizes
                .to_string()
                .ends_with("edges of 500 to 707.1 mm, closed, 2 pieces")
        );
        assert_eq!(Sizes::of(&TriMesh::default()), Sizes::default());
    }
}
