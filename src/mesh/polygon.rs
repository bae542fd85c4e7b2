//! Polygons of mesh files cut into triangles.
//!
//! Ears are cut off, the one with the shortest cut first: a quadrilateral is cut along its shorter
//! diagonal, polygons that are not convex stay inside their outline.

use glam::DVec2;
use glam::DVec3;

/// Appends the triangles of a polygon, which keep its orientation.
///
/// A triangle is passed on as it is. Corners index `positions` and must be in range.
///
/// # Errors
/// A reason, for fewer than 3 or more than [`MOST_CORNERS`] corners, and for a polygon whose outline
/// crosses itself or has no area.
pub(super) fn triangulate(
    corners: &[u32],
    positions: &[DVec3],
    triangles: &mut Vec<[u32; 3]>,
) -> Result<(), String> {
    match corners {
        [] | [_] | [_, _] => return Err(format!("a face with {} corners", corners.len())),
        &[a, b, c] => {
            triangles.push([a, b, c]);
            return Ok(());
        }
        _ if corners.len() > MOST_CORNERS => {
            let count = corners.len();
            return Err(format!(
                "a face with {count} corners; the most are {MOST_CORNERS}"
            ));
        }
        _ => {}
    }
    let place = |corner: u32| positions[corner as usize];
    let flat = flatten(corners, place).ok_or("a face with more than three corners and no area")?;
    let mut left: Vec<usize> = (0..corners.len()).collect();
    while left.len() > 3 {
        let count = left.len();
        let neighbours = |k: usize| {
            [
                left[(k + count - 1) % count],
                left[k],
                left[(k + 1) % count],
            ]
        };
        let ear = (0..count)
            .filter(|&k| is_ear(neighbours(k), &left, &flat))
            .map(|k| {
                let [before, _, after] = neighbours(k);
                (
                    place(corners[before]).distance_squared(place(corners[after])),
                    k,
                )
            })
            .min_by(|a, b| a.0.total_cmp(&b.0));
        let Some((_, k)) = ear else {
            return Err("a face whose outline crosses itself".to_owned());
        };
        triangles.push(neighbours(k).map(|index| corners[index]));
        left.remove(k);
    }
    let last = [left[0], left[1], left[2]];
    if side(flat[last[0]], flat[last[1]], flat[last[2]]) < 0.0 {
        return Err("a face whose outline crosses itself".to_owned());
    }
    triangles.push(last.map(|index| corners[index]));
    Ok(())
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

/// Whether the corner in the middle is convex and no other corner lies in its triangle.
fn is_ear([before, corner, after]: [usize; 3], left: &[usize], flat: &[DVec2]) -> bool {
    let [a, b, c] = [flat[before], flat[corner], flat[after]];
    if side(a, b, c) <= 0.0 {
        return false;
    }
    left.iter()
        .filter(|&&k| k != before && k != corner && k != after)
        .all(|&k| {
            let p = flat[k];
            side(a, b, p) < 0.0 || side(b, c, p) < 0.0 || side(c, a, p) < 0.0
        })
}

/// Twice the area of a, b, c: positive if counter-clockwise.
fn side(a: DVec2, b: DVec2, c: DVec2) -> f64 {
    (b - a).perp_dot(c - a)
}

/// Corners of a face: cutting ears takes the third power of this in time.
const MOST_CORNERS: usize = 128;

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use proptest::prelude::*;

    use super::super::TriMesh;
    use super::*;

    fn cut(positions: &[DVec3]) -> Result<TriMesh, String> {
        let corners: Vec<u32> = (0..positions.len() as u32).collect();
        let mut triangles = Vec::new();
        triangulate(&corners, positions, &mut triangles)?;
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
    fn what_is_no_polygon_is_refused() {
        assert_eq!(
            cut(&points(&[[0.0, 0.0], [1.0, 0.0]])).unwrap_err(),
            "a face with 2 corners"
        );
        let line = points(&[[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0]]);
        assert!(cut(&line).unwrap_err().contains("no area"));
        let bow = points(&[[0.0, 0.0], [4.0, 0.0], [0.0, 2.0], [3.0, 2.0]]);
        assert!(cut(&bow).unwrap_err().contains("crosses itself"));
        let many = vec![DVec3::ZERO; MOST_CORNERS + 1];
        assert!(cut(&many).unwrap_err().contains("the most are"));
        let nan = vec![DVec3::NAN; 5];
        assert!(cut(&nan).is_err());
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
