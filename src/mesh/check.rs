//! Checks of a mesh before anything is computed with it.
//!
//! A cloth is a surface: every edge has one or two triangles, neighbours face the same side, no
//! triangle is without area, no vertex without triangle. Several pieces, holes and vertices where
//! two fans touch are allowed. A body must further be closed and face outwards (but for a plane),
//! and may have vertices in no triangle. Crossing triangles are not looked for here.

use glam::DVec3;

use super::{Fault, FaultKind, MeshError, TriMesh};
use crate::sorted_rows::sorted;

/// Refuses what is not a cloth.
///
/// # Errors
/// [`MeshError::Faulty`] with all faults and the first few elements of each.
pub fn check_cloth(mesh: &TriMesh) -> Result<(), MeshError> {
    let mut faults = Faults::default();
    elements(mesh, &mut faults);
    faults.stop_if_any()?;
    let edges = EdgeUse::sorted(mesh);
    manifold(mesh, &edges, &mut faults);
    loose_vertices(mesh, &mut faults);
    faults.stop_if_any()
}

/// Refuses what is not a body; `closed` is false for a plane only.
///
/// # Errors
/// [`MeshError::Faulty`] with all faults and the first few elements of each.
pub fn check_body(mesh: &TriMesh, closed: bool) -> Result<(), MeshError> {
    let mut faults = Faults::default();
    elements(mesh, &mut faults);
    faults.stop_if_any()?;
    let edges = EdgeUse::sorted(mesh);
    manifold(mesh, &edges, &mut faults);
    if closed {
        for group in edges.chunk_by(|a, b| a.edge == b.edge) {
            if let [edge] = group {
                faults.add(FaultKind::OpenEdge, || describe_edge(mesh, edge.edge));
            }
        }
        faults.stop_if_any()?;
        if mesh.volume() <= 0.0 {
            let count = mesh.triangles.len();
            let fault = Fault {
                kind: FaultKind::InsideOut,
                count,
                examples: Vec::new(),
            };
            return Err(MeshError::Faulty(vec![fault]));
        }
    }
    faults.stop_if_any()
}

/// Refuses a cloth too fine for all of its pairs of features to push each other: all edges must be
/// longer than `thickness` in m.
///
/// A grid is checked with its scene; this is for meshes from files, after [`check_cloth`].
///
/// # Errors
/// [`MeshError::Faulty`] with the number of short edges and the first few.
pub fn check_spacing(mesh: &TriMesh, thickness: f64) -> Result<(), MeshError> {
    let mut faults = Faults::default();
    for edge in mesh.edges() {
        let [a, b] = edge.map(|vertex| mesh.positions[vertex as usize]);
        if a.distance(b) <= thickness {
            faults.add(FaultKind::ShortEdge, || describe_edge(mesh, edge));
        }
    }
    faults.stop_if_any()
}

/// Refuses a thickness in m that is more than the size of the cloth.
///
/// # Errors
/// [`MeshError::TooThick`] with both.
pub fn check_thickness(mesh: &TriMesh, thickness: f64) -> Result<(), MeshError> {
    let size = (mesh.bounds()).map_or(0.0, |[least, most]| least.distance(most));
    if thickness > size {
        return Err(MeshError::TooThick { thickness, size });
    }
    Ok(())
}

/// Faults found so far, in the order of their first element.
#[derive(Default)]
struct Faults(Vec<Fault>);

impl Faults {
    /// Counts one element; it is described only if it is among the first few.
    fn add(&mut self, kind: FaultKind, describe: impl FnOnce() -> String) {
        let index = self
            .0
            .iter()
            .position(|fault| fault.kind == kind)
            .unwrap_or_else(|| {
                self.0.push(Fault {
                    kind,
                    count: 0,
                    examples: Vec::new(),
                });
                self.0.len() - 1
            });
        let fault = &mut self.0[index];
        fault.count += 1;
        if fault.examples.len() < MOST_EXAMPLES {
            fault.examples.push(describe());
        }
    }

    fn stop_if_any(&mut self) -> Result<(), MeshError> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(MeshError::Faulty(std::mem::take(&mut self.0)))
        }
    }
}

/// One side of one triangle.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct EdgeUse {
    /// Smaller vertex first.
    edge: [u32; 2],
    /// Whether the triangle runs from the smaller to the greater vertex.
    forward: bool,
}

impl EdgeUse {
    fn sorted(mesh: &TriMesh) -> Vec<Self> {
        let uses = || {
            let sides = mesh.triangles.iter();
            let sides = sides.flat_map(|&[a, b, c]| [(a, b), (b, c), (c, a)]);
            sides.map(|(a, b)| Self {
                edge: [a.min(b), a.max(b)],
                forward: a < b,
            })
        };
        sorted(uses, |side| side.edge[0])
    }
}

/// Checks the vertices and the triangles on their own.
fn elements(mesh: &TriMesh, faults: &mut Faults) {
    if mesh.triangles.is_empty() {
        faults.0.push(Fault {
            kind: FaultKind::Empty,
            count: 1,
            examples: Vec::new(),
        });
    }
    for (number, position) in mesh.positions.iter().enumerate() {
        if !position.is_finite() || position.abs().max_element() > LARGEST {
            faults.add(FaultKind::NotFinite, || {
                format!("vertex {number} at {}", Point(*position, DIGITS))
            });
        }
    }
    for (number, &triangle) in mesh.triangles.iter().enumerate() {
        let [a, b, c] = triangle;
        if triangle
            .iter()
            .any(|&vertex| vertex as usize >= mesh.positions.len())
        {
            faults.add(FaultKind::IndexOutOfRange, || {
                let count = mesh.positions.len();
                format!("triangle {number} (vertices {a}, {b}, {c} of {count})")
            });
        } else if a == b || b == c || c == a {
            faults.add(FaultKind::RepeatedVertex, || describe(mesh, number));
        } else {
            let [a, b, c] = mesh.corners(triangle);
            let double_area = (b - a).cross(c - a).length();
            let longest = [a.distance(b), b.distance(c), c.distance(a)]
                .into_iter()
                .fold(0.0, f64::max);
            // False for NaN, which is another fault.
            if double_area <= FLATTEST * longest * longest {
                faults.add(FaultKind::NoArea, || describe(mesh, number));
            }
        }
    }
    duplicates(mesh, faults);
}

fn duplicates(mesh: &TriMesh, faults: &mut Faults) {
    let all = || {
        (0_u32..).zip(&mesh.triangles).map(|(number, triangle)| {
            let mut triangle = *triangle;
            triangle.sort_unstable();
            (triangle, number)
        })
    };
    // A mesh with faults may name vertices that it has not, too many for a row each.
    let sorted = if faults.0.is_empty() {
        sorted(all, |item| item.0[0])
    } else {
        let mut sorted: Vec<_> = all().collect();
        sorted.sort_unstable();
        sorted
    };
    for pair in sorted.windows(2) {
        let (first, second) = (&pair[0], &pair[1]);
        if first.0 == second.0 {
            faults.add(FaultKind::DuplicateTriangle, || {
                format!(
                    "triangles {} and {} (vertices {:?})",
                    first.1, second.1, first.0
                )
            });
        }
    }
}

fn manifold(mesh: &TriMesh, edges: &[EdgeUse], faults: &mut Faults) {
    for group in edges.chunk_by(|a, b| a.edge == b.edge) {
        match group {
            [_] => {}
            [a, b] if a.forward != b.forward => {}
            [a, _] => faults.add(FaultKind::InconsistentOrientation, || {
                describe_edge(mesh, a.edge)
            }),
            _ => faults.add(FaultKind::NonManifoldEdge, || {
                format!(
                    "{} in {} triangles",
                    describe_edge(mesh, group[0].edge),
                    group.len()
                )
            }),
        }
    }
}

fn loose_vertices(mesh: &TriMesh, faults: &mut Faults) {
    let mut used = vec![false; mesh.positions.len()];
    for &vertex in mesh.triangles.iter().flatten() {
        used[vertex as usize] = true;
    }
    for (number, position) in mesh.positions.iter().enumerate() {
        if !used[number] {
            let describe = || format!("vertex {number} at {}", Point(*position, DIGITS));
            faults.add(FaultKind::LooseVertex, describe);
        }
    }
}

fn describe(mesh: &TriMesh, number: usize) -> String {
    let triangle = mesh.triangles[number];
    let [a, b, c] = triangle;
    let [p, q, r] = mesh.corners(triangle);
    let digits = digits_for(p.distance(q).max(q.distance(r)).max(r.distance(p)));
    let [p, q, r] = [p, q, r].map(|corner| Point(corner, digits));
    format!("triangle {number} (vertices {a}, {b}, {c} at {p}, {q}, {r})")
}

fn describe_edge(mesh: &TriMesh, [a, b]: [u32; 2]) -> String {
    let [p, q] = [a, b].map(|vertex| mesh.positions[vertex as usize]);
    let digits = digits_for(p.distance(q));
    let [p, q] = [p, q].map(|end| Point(end, digits));
    format!("edge {a}-{b} from {p} to {q}")
}

/// Digits behind the point that tell the ends of a length in m apart.
fn digits_for(length: f64) -> usize {
    let tells = |digits: &usize| length * 10_f64.powi(*digits as i32) >= 100.0;
    // A vector without length has no direction.
    let most = if length > 0.0 { MOST_DIGITS } else { DIGITS };
    (DIGITS..most).find(tells).unwrap_or(most)
}

/// Coordinates as `(0.1, 0, 2)`, with this many digits behind the point.
struct Point(DVec3, usize);

impl std::fmt::Display for Point {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let short = |x: f64| format!("{x:.*}", self.1).parse().unwrap_or(x);
        let [x, y, z] = self
            .0
            .to_array()
            .map(|x| if x.abs() < 1e6 { short(x) } else { x });
        write!(f, "({x:?}, {y:?}, {z:?})")
    }
}

/// Elements shown of each fault.
const MOST_EXAMPLES: usize = 3;

/// Digits behind the point that are enough to find a place in most meshes, and short enough to
/// read.
const DIGITS: usize = 6;

/// Digits behind the point that are ever shown.
const MOST_DIGITS: usize = 18;

/// Largest coordinate in m.
pub(super) const LARGEST: f64 = 1e12;

/// Height over longest side at which a triangle counts as a line.
pub(super) const FLATTEST: f64 = 1e-8;

#[cfg(test)]
mod tests {
    use super::super::{cuboid, grid};
    use super::*;

    /// A square of two triangles.
    fn square() -> TriMesh {
        grid([1.0, 1.0], [2, 2], DVec3::ZERO, DVec3::ZERO).unwrap()
    }

    #[track_caller]
    fn kinds(result: Result<(), MeshError>) -> Vec<FaultKind> {
        match result {
            Ok(()) => Vec::new(),
            Err(MeshError::Faulty(faults)) => faults.iter().map(|fault| fault.kind).collect(),
            Err(other) => panic!("{other}"),
        }
    }

    #[track_caller]
    fn refused(mesh: &TriMesh, expected: &[FaultKind]) -> String {
        assert_eq!(kinds(check_cloth(mesh)), expected);
        check_cloth(mesh).unwrap_err().to_string()
    }

    #[test]
    fn a_thickness_in_another_unit_is_refused() {
        assert!(check_thickness(&square(), 1.4).is_ok());
        let told = check_thickness(&square(), 1.5).unwrap_err().to_string();
        let words = "a thickness of 1.5 m is more than its size, 1.414 m";
        assert!(told.starts_with(words), "{told}");
    }

    #[test]
    fn a_square_is_a_cloth_but_no_body() {
        assert_eq!(kinds(check_cloth(&square())), []);
        assert_eq!(kinds(check_body(&square(), false)), []);
        assert_eq!(kinds(check_body(&square(), true)), [FaultKind::OpenEdge]);
    }

    #[test]
    fn each_fault_is_told_by_name_number_and_coordinates() {
        assert_eq!(
            refused(&TriMesh::default(), &[FaultKind::Empty]),
            "the mesh cannot be used (vertices and triangles are counted from 0):\n  no triangles"
        );

        let mut mesh = square();
        mesh.triangles.push([0, 1, 9]);
        assert_eq!(
            refused(&mesh, &[FaultKind::IndexOutOfRange]),
            "the mesh cannot be used (vertices and triangles are counted from 0):\n  1 triangles with a vertex that does not exist: \
             triangle 2 (vertices 0, 1, 9 of 4)"
        );

        let mut mesh = square();
        mesh.positions[3].x = f64::NAN;
        mesh.positions[2].x = f64::INFINITY;
        assert_eq!(
            refused(&mesh, &[FaultKind::NotFinite]),
            "the mesh cannot be used (vertices and triangles are counted from 0):\n  2 vertices whose coordinates are not finite numbers below 10¹² m: \
             vertex 2 at (inf, 0.5, 0.0); vertex 3 at (NaN, 0.5, 0.0)"
        );

        let mut mesh = square();
        mesh.triangles.push([1, 1, 2]);
        assert_eq!(
            refused(&mesh, &[FaultKind::RepeatedVertex]),
            "the mesh cannot be used (vertices and triangles are counted from 0):\n  1 triangles with a vertex twice: triangle 2 (vertices \
             1, 1, 2 at (0.5, -0.5, 0.0), (0.5, -0.5, 0.0), (-0.5, 0.5, 0.0))"
        );

        let mut mesh = square();
        mesh.positions[3] = DVec3::new(0.5, -0.5, 1e-12);
        assert!(
            refused(&mesh, &[FaultKind::NoArea]).contains("1 triangles without area: triangle 0")
        );

        let mut mesh = square();
        mesh.triangles.push([3, 0, 1]);
        assert_eq!(
            refused(&mesh, &[FaultKind::DuplicateTriangle]),
            "the mesh cannot be used (vertices and triangles are counted from 0):\n  1 triangles with the same vertices as another: \
             triangles 0 and 2 (vertices [0, 1, 3])"
        );

        let mut mesh = square();
        mesh.positions.push(DVec3::Z);
        mesh.triangles.push([0, 3, 4]);
        assert_eq!(
            refused(&mesh, &[FaultKind::NonManifoldEdge]),
            "the mesh cannot be used (vertices and triangles are counted from 0):\n  1 edges with more than two triangles (non-manifold): \
             edge 0-3 from (-0.5, -0.5, 0.0) to (0.5, 0.5, 0.0) in 3 triangles"
        );

        let mut mesh = square();
        mesh.triangles[1].swap(0, 1);
        assert_eq!(
            refused(&mesh, &[FaultKind::InconsistentOrientation]),
            "the mesh cannot be used (vertices and triangles are counted from 0):\n  1 edges whose two triangles face opposite sides: \
             edge 0-3 from (-0.5, -0.5, 0.0) to (0.5, 0.5, 0.0)"
        );

        let mut mesh = square();
        mesh.positions.push(DVec3::Z);
        assert_eq!(
            refused(&mesh, &[FaultKind::LooseVertex]),
            "the mesh cannot be used (vertices and triangles are counted from 0):\n  1 vertices in no triangle: vertex 4 at (0.0, 0.0, 1.0)"
        );
    }

    #[test]
    fn a_cloth_finer_than_the_contact_thickness_cannot_collide_with_itself() {
        assert_eq!(kinds(check_spacing(&square(), 0.999)), []);
        let error = check_spacing(&square(), 1.0).unwrap_err().to_string();
        assert!(
            error.contains("\n  4 edges not longer than the contact thickness"),
            "{error}"
        );
    }

    #[test]
    fn ends_of_tiny_edges_are_told_apart() {
        let mut tiny = square();
        tiny.positions.iter_mut().for_each(|p| *p *= 2e-7);
        let error = check_spacing(&tiny, 1.0).unwrap_err().to_string();
        assert!(
            error.contains("edge 0-1 from (-1e-7, -1e-7, 0.0) to (1e-7, -1e-7, 0.0)"),
            "{error}"
        );
        // Away from the origin too, with no more digits than that takes.
        tiny.positions.iter_mut().for_each(|p| p.x += 1.0);
        let error = check_spacing(&tiny, 1.0).unwrap_err().to_string();
        assert!(
            error.contains("from (0.9999999, -1e-7, 0.0) to (1.0000001, -1e-7, 0.0)"),
            "{error}"
        );
    }

    #[test]
    fn all_faults_are_told_with_the_first_few_examples() {
        let mut mesh = square();
        mesh.triangles.extend([[7, 8, 9]; 10]);
        mesh.triangles.push([2, 2, 2]);
        let message = refused(
            &mesh,
            &[
                FaultKind::IndexOutOfRange,
                FaultKind::RepeatedVertex,
                FaultKind::DuplicateTriangle,
            ],
        );
        let expected = "10 triangles with a vertex that does not exist: triangle 2 (vertices 7, 8, \
                        9 of 4); triangle 3 (vertices 7, 8, 9 of 4); triangle 4 (vertices 7, 8, 9 \
                        of 4); ...";
        assert!(message.contains(expected), "{message}");
    }

    #[test]
    fn a_body_must_be_closed_and_face_outwards() {
        let mut mesh = cuboid(DVec3::ZERO, DVec3::ONE, 0.5).unwrap();
        assert_eq!(kinds(check_body(&mesh, true)), []);
        mesh.positions.push(DVec3::ZERO);
        assert_eq!(
            kinds(check_body(&mesh, true)),
            [],
            "loose vertices do no harm in a body"
        );
        let removed = mesh.triangles.pop().unwrap();
        assert_eq!(kinds(check_body(&mesh, true)), [FaultKind::OpenEdge]);
        mesh.triangles.push(removed);
        mesh.triangles
            .iter_mut()
            .for_each(|triangle| triangle.swap(0, 1));
        assert_eq!(kinds(check_body(&mesh, true)), [FaultKind::InsideOut]);
    }
}
