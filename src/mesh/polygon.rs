//! Polygons of mesh files cut into triangles.
//!
//! Ears are cut off, the one with the shortest cut first: a quadrilateral is cut along its shorter
//! diagonal, polygons that are not convex stay inside their outline.

use glam::DVec2;
use glam::DVec3;

/// Appends the triangles of a polygon, which keep its orientation.
///
/// A triangle is passed on as it is. Corners index `positions`, must be in range, and their
/// positions finite. `name` says how messages call a vertex.
///
/// # Errors
/// A reason, for fewer than 3 or more than [`MOST_CORNERS`] corners, a vertex that is a corner
/// twice, and for a polygon whose outline crosses itself or has no area.
pub(super) fn triangulate(
    corners: &[u32],
    positions: &[DVec3],
    name: impl Fn(u32) -> String,
    triangles: &mut Vec<[u32; 3]>,
) -> Result<(), String> {
    if corners.len() < 3 {
        return Err(format!("a face with {} corners", corners.len()));
    }
    if corners.len() > MOST_CORNERS {
        return Err(too_many_corners());
    }
    let is_repeated = |&(k, corner): &(usize, &u32)| corners[..k].contains(corner);
    if let Some((_, &corner)) = corners.iter().enumerate().find(is_repeated) {
        return Err(format!("a face that has {} twice", name(corner)));
    }
    if let &[a, b, c] = corners {
        triangles.push([a, b, c]);
        return Ok(());
    }
    let place = |corner: u32| positions[corner as usize];
    let size = unit(corners, place);
    let flat = flatten(corners, |corner| place(corner) / size);
    let flat = flat.ok_or("a face with more than three corners and no area")?;
    let mut left: Vec<usize> = (0..corners.len()).collect();
    let mut ears: Vec<Ear> = Vec::with_capacity(left.len());
    for k in 0..left.len() {
        ears.push(Ear::at(neighbours(&left, k), &left, &flat));
    }
    while left.len() > 3 {
        let ear = (0..left.len())
            .filter(|&k| ears[k].can_be_cut())
            .map(|k| {
                let [before, _, after] = neighbours(&left, k);
                (
                    (place(corners[before]) / size).distance_squared(place(corners[after]) / size),
                    k,
                )
            })
            .min_by(|a, b| a.0.total_cmp(&b.0));
        let Some((_, k)) = ear else {
            return Err(CROSSES.to_owned());
        };
        triangles.push(neighbours(&left, k).map(|index| corners[index]));
        let gone = left.remove(k);
        ears.remove(k);
        let count = left.len();
        let beside = [(k + count - 1) % count, k % count];
        for (at, ear) in ears.iter_mut().enumerate() {
            let corner = neighbours(&left, at);
            if beside.contains(&at) {
                *ear = Ear::at(corner, &left, &flat);
            } else {
                ear.forget(gone, corner, &flat);
            }
        }
    }
    let last = [left[0], left[1], left[2]];
    if side(flat[last[0]], flat[last[1]], flat[last[2]]) < 0.0 {
        return Err(CROSSES.to_owned());
    }
    triangles.push(last.map(|index| corners[index]));
    Ok(())
}

const CROSSES: &str = "a face whose outline crosses itself";

/// The message for a face with more corners than are cut.
pub(super) fn too_many_corners() -> String {
    format!("a face with more than {MOST_CORNERS} corners")
}

/// A corner that is left, with those before and after it.
fn neighbours(left: &[usize], k: usize) -> [usize; 3] {
    let count = left.len();
    [
        left[(k + count - 1) % count],
        left[k],
        left[(k + 1) % count],
    ]
}

/// The facts that decide whether a corner can be cut off.
struct Ear {
    is_convex: bool,
    /// Other corners in its triangle. They are counted, so that those that are cut off need not be
    /// looked for again: cutting takes the second power of the corners in time, not the third.
    inside: usize,
}

impl Ear {
    fn at(corner: [usize; 3], left: &[usize], flat: &[DVec2]) -> Self {
        let [a, b, c] = corner.map(|k| flat[k]);
        let is_convex = side(a, b, c) > 0.0;
        let others = left.iter().filter(|k| !corner.contains(k));
        Self {
            is_convex,
            inside: others.filter(|&&k| is_in(flat[k], [a, b, c])).count(),
        }
    }

    /// Another corner is gone, which was not beside this one.
    fn forget(&mut self, gone: usize, corner: [usize; 3], flat: &[DVec2]) {
        self.inside -= usize::from(is_in(flat[gone], corner.map(|k| flat[k])));
    }

    fn can_be_cut(&self) -> bool {
        self.is_convex && self.inside == 0
    }
}

/// Whether a point is not outside of a triangle that is counter-clockwise.
fn is_in(p: DVec2, [a, b, c]: [DVec2; 3]) -> bool {
    !(side(a, b, p) < 0.0 || side(b, c, p) < 0.0 || side(c, a, p) < 0.0)
}

/// A length to measure with: one, unless products of the corners' coordinates would be out of
/// range.
fn unit(corners: &[u32], place: impl Fn(u32) -> DVec3) -> f64 {
    let largest = corners
        .iter()
        .map(|&corner| place(corner).abs().max_element());
    let largest = largest.fold(0.0, f64::max);
    match largest {
        _ if (TINY..HUGE).contains(&largest) => 1.0,
        largest => largest.max(f64::MIN_POSITIVE),
    }
}

/// The corners in the plane across their mean normal (Newell's), or nothing if there is none.
fn flatten(corners: &[u32], place: impl Fn(u32) -> DVec3) -> Option<Vec<DVec2>> {
    let origin = place(corners[0]);
    let points: Vec<DVec3> = corners
        .iter()
        .map(|&corner| place(corner) - origin)
        .collect();
    let next = |k: usize| points[(k + 1) % points.len()];
    let normal: DVec3 = points
        .iter()
        .enumerate()
        .map(|(k, point)| point.cross(next(k)))
        .sum();
    let normal = normal.try_normalize()?;
    let (u, v) = normal.any_orthonormal_pair();
    Some(
        points
            .iter()
            .map(|point| DVec2::new(point.dot(u), point.dot(v)))
            .collect(),
    )
}

/// Twice the area of a, b, c: positive if counter-clockwise.
fn side(a: DVec2, b: DVec2, c: DVec2) -> f64 {
    (b - a).perp_dot(c - a)
}

/// Lengths beyond which products of four are out of range.
const TINY: f64 = 1e-60;
const HUGE: f64 = 1e60;

/// Corners of a face.
pub(super) const MOST_CORNERS: usize = 128;

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use proptest::prelude::*;

    use super::super::TriMesh;
    use super::*;

    fn cut(positions: &[DVec3]) -> Result<TriMesh, String> {
        let corners: Vec<u32> = (0..positions.len() as u32).collect();
        let mut triangles = Vec::new();
        triangulate(
            &corners,
            positions,
            |k| format!("corner {k}"),
            &mut triangles,
        )?;
        Ok(TriMesh {
            positions: positions.to_vec(),
            triangles,
        })
    }

    fn points(xy: &[[f64; 2]]) -> Vec<DVec3> {
        xy.iter().map(|&[x, y]| DVec3::new(x, y, 0.0)).collect()
    }

    #[test]
    fn a_quadrilateral_is_cut_along_its_shorter_diagonal() {
        let kite = points(&[[0.0, 0.0], [1.0, -3.0], [2.0, 0.0], [1.0, 3.0]]);
        assert_eq!(cut(&kite).unwrap().edges().len(), 5);
        assert!(cut(&kite).unwrap().edges().contains(&[0, 2]));
    }

    #[test]
    fn a_polygon_that_is_not_convex_stays_inside_its_outline() {
        // An L of area 3.
        let mesh = cut(&points(&[
            [0.0, 0.0],
            [2.0, 0.0],
            [2.0, 1.0],
            [1.0, 1.0],
            [1.0, 2.0],
            [0.0, 2.0],
        ]))
        .unwrap();
        assert_eq!(mesh.triangles.len(), 4);
        assert!((mesh.area() - 3.0).abs() < 1e-12);
    }

    #[test]
    fn outlines_that_are_no_polygon_are_refused() {
        assert_eq!(
            cut(&points(&[[0.0, 0.0], [1.0, 0.0]])).unwrap_err(),
            "a face with 2 corners"
        );
        let line = points(&[[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0]]);
        assert!(cut(&line).unwrap_err().contains("no area"));
        let bow = points(&[[0.0, 0.0], [4.0, 0.0], [0.0, 2.0], [3.0, 2.0]]);
        assert!(cut(&bow).unwrap_err().contains("crosses itself"));
        let many = vec![DVec3::ZERO; MOST_CORNERS + 1];
        assert_eq!(cut(&many).unwrap_err(), "a face with more than 128 corners");
        let nan = vec![DVec3::NAN; 5];
        assert!(cut(&nan).is_err());
        let mut triangles = Vec::new();
        let twice = triangulate(
            &[0, 1, 2, 1],
            &[DVec3::ZERO; 3],
            |k| format!("`{k}`"),
            &mut triangles,
        );
        assert_eq!(twice.unwrap_err(), "a face that has `1` twice");
        assert!(triangles.is_empty());
    }

    #[test]
    fn polygons_of_any_size_are_cut_alike() {
        let shape = [[0.0, 0.0], [3.0, -0.5], [2.0, 1.0], [1.0, 0.5], [0.5, 2.0]];
        let known = cut(&points(&shape)).unwrap().triangles;
        for size in [1e-200, 1e-90, 1e90, 1e200] {
            let scaled = shape.map(|[x, y]| [x * size, y * size]);
            assert_eq!(cut(&points(&scaled)).unwrap().triangles, known, "{size}");
        }
    }

    proptest! {
        #[test]
        fn stars_keep_their_area_and_orientation(
            radii in proptest::collection::vec(0.2f64..2.0, 4..24),
        ) {
            let count = radii.len();
            let corners: Vec<DVec3> = radii
                .iter()
                .enumerate()
                .map(|(k, r)| {
                    let angle = TAU * k as f64 / count as f64;
                    DVec3::new(r * angle.cos(), 0.0, -r * angle.sin())
                })
                .collect();
            let area: f64 = (0..count)
                .map(|k| corners[k].cross(corners[(k + 1) % count]).y / 2.0)
                .sum();
            let mesh = cut(&corners).unwrap();
            prop_assert_eq!(mesh.triangles.len(), count - 2);
            prop_assert!((mesh.area() - area).abs() < 1e-9);
            for &triangle in &mesh.triangles {
                let [a, b, c] = mesh.corners(triangle);
                prop_assert!((b - a).cross(c - a).y > -1e-12);
            }
        }
    }
}
