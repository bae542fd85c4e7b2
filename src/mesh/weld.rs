//! Vertices of a mesh that lie close together become one.
//!
//! Programs export a seam as two rows of vertices at one place, or a hair apart, because both sides
//! have texture coordinates of their own; the simulation would see two pieces of cloth. In: a mesh
//! where its scene puts it, and a distance. Out: the mesh with fewer vertices, and which vertex of
//! it each vertex of the file became ([`FileMesh::joined`]).
//!
//! Vertices nearer to each other than the distance become one, and so do those that a chain of such
//! pairs connects, however long the chain is. The one vertex is at the middle of the box around
//! them. That depends neither on the order of vertices nor on that of pairs.

use std::collections::HashMap;

use glam::DVec3;

use super::{FileMesh, TriMesh, join_equal};
use crate::disjoint_sets::DisjointSets;

/// The most cells along a coordinate: up to here their numbers are exact.
const MOST_CELLS: f64 = (1_u64 << 50) as f64;

/// Joins the vertices of a mesh that are nearer to each other than a distance (m). Nothing is done
/// to a mesh with coordinates that are no numbers, which checks refuse.
///
/// # Errors
/// A sentence on a face with two corners that would be one vertex, or on a distance that is below
/// what coordinates resolve.
pub(super) fn weld(file: &mut FileMesh, distance: f64) -> Result<(), String> {
    let positions = &file.mesh.positions;
    if !positions.iter().all(|x| x.is_finite()) {
        return Ok(());
    }
    let farthest = positions.iter().map(|x| x.abs().max_element());
    let farthest = farthest.fold(0.0, f64::max);
    if 2.0 * farthest / distance > MOST_CELLS {
        return Err(format!(
            "`weld` is {distance} m, which coordinates of up to {farthest} m do not resolve; take a larger one"
        ));
    }
    let mut sets = near(positions, distance);
    let of_set: Vec<u32> = (0..positions.len() as u32).map(|v| sets.least(v)).collect();
    let centers = centers(positions, &of_set);
    let each: Vec<DVec3> = of_set.iter().map(|&set| centers[set as usize]).collect();
    // Also sets that happen to have one centre.
    let (left, welded) = join_equal(&each);
    if left.len() == positions.len() {
        file.welded = Some(0);
        return Ok(());
    }
    let joined = match &file.joined {
        Some(joined) => joined.iter().map(|&v| welded[v as usize]).collect(),
        None => welded.clone(),
    };
    refuse_narrow(file, &joined, distance)?;
    for group in &mut file.groups {
        let vertices = &mut group.vertices;
        vertices.iter_mut().for_each(|v| *v = welded[*v as usize]);
        vertices.sort_unstable();
        vertices.dedup();
    }
    if let Some(velocities) = &mut file.velocities {
        let mut of_left = vec![[DVec3::INFINITY, DVec3::NEG_INFINITY]; left.len()];
        for (&v, velocity) in welded.iter().zip(velocities.iter()) {
            let [low, high] = &mut of_left[v as usize];
            (*low, *high) = (low.min(*velocity), high.max(*velocity));
        }
        *velocities = of_left.into_iter().map(middle).collect();
    }
    let corners = file.mesh.triangles.as_flattened_mut();
    corners.iter_mut().for_each(|v| *v = welded[*v as usize]);
    file.welded = Some(positions.len() - left.len());
    file.mesh.positions = left;
    file.joined = Some(joined);
    Ok(())
}

/// Gives a mesh the vertices that another one with the same vertices in its file was given by
/// [`weld`].
///
/// # Errors
/// A sentence: it has other vertices, or some that were joined are too far apart in it.
pub(super) fn weld_alike(
    file: &FileMesh,
    joined: &[u32],
    distance: f64,
) -> Result<TriMesh, String> {
    let all = file.of_file(&file.mesh.positions);
    if all.len() != joined.len() {
        return Err(format!(
            "it has {} vertices, and the cloth's mesh has {}",
            all.len(),
            joined.len()
        ));
    }
    let count = joined.iter().max().map_or(0, |most| *most as usize + 1);
    let mut boxes = vec![[DVec3::INFINITY, DVec3::NEG_INFINITY]; count];
    let mut members = vec![0_usize; count];
    for (&v, x) in joined.iter().zip(&all) {
        let [low, high] = &mut boxes[v as usize];
        (*low, *high) = (low.min(*x), high.max(*x));
        members[v as usize] += 1;
    }
    for (number, &v) in joined.iter().enumerate() {
        let [low, high] = boxes[v as usize];
        // As far apart as a chain may be.
        let most = distance * (members[v as usize] - 1) as f64;
        if members[v as usize] > 1 && low.distance(high) > most {
            return Err(format!(
                "`weld` joins vertex {number} (counted from 0) with others in the cloth's mesh, which are up to {} m apart here; a seam that \
                 is open at rest needs `rest_texture`",
                low.distance(high)
            ));
        }
    }
    // The vertex that each vertex of this mesh becomes.
    let mut becomes = vec![u32::MAX; file.mesh.positions.len()];
    for (number, &v) in joined.iter().enumerate() {
        let own = file
            .joined
            .as_ref()
            .map_or(number, |own| own[number] as usize);
        if ![u32::MAX, v].contains(&becomes[own]) {
            return Err(format!(
                "its vertex {number} (counted from 0) is at the place of another one, and the two are not joined in the cloth's mesh"
            ));
        }
        becomes[own] = v;
    }
    Ok(TriMesh {
        positions: boxes.into_iter().map(middle).collect(),
        triangles: (file.mesh.triangles.iter())
            .map(|t| t.map(|v| becomes[v as usize]))
            .collect(),
    })
}

/// The middle of a box.
fn middle([low, high]: [DVec3; 2]) -> DVec3 {
    if low == high { low } else { 0.5 * (low + high) }
}

/// The middle of the box around each set, at the number of the set.
fn centers(positions: &[DVec3], of_set: &[u32]) -> Vec<DVec3> {
    let mut boxes = vec![[DVec3::INFINITY, DVec3::NEG_INFINITY]; positions.len()];
    for (&set, x) in of_set.iter().zip(positions) {
        let [low, high] = &mut boxes[set as usize];
        (*low, *high) = (low.min(*x), high.max(*x));
    }
    boxes.into_iter().map(middle).collect()
}

/// Unites positions that are nearer to each other than a distance.
///
/// They are sorted into cells half as long as the distance. All within a cell are near each other,
/// and whatever else is near is at most two cells away.
fn near(positions: &[DVec3], distance: f64) -> DisjointSets {
    let mut sets = DisjointSets::new(positions.len());
    let cell_of = |x: &DVec3| (*x * (2.0 / distance)).floor().to_array().map(|c| c as i64);
    let mut cells: HashMap<[i64; 3], Vec<u32>> = HashMap::new();
    for (number, x) in (0..).zip(positions) {
        let cell = cells.entry(cell_of(x)).or_default();
        if let Some(&first) = cell.first() {
            sets.unite(first, number);
        }
        cell.push(number);
    }
    for (number, x) in (0..).zip(positions) {
        let [i, j, k] = cell_of(x);
        for at in 0..125 {
            let other = [i + at % 5 - 2, j + at / 5 % 5 - 2, k + at / 25 - 2];
            let Some(others) = cells.get(&other) else {
                continue;
            };
            // All of a cell are in one set, so that one near vertex of it is enough.
            if sets.least(others[0]) != sets.least(number) {
                let is_near = |v: &&u32| positions[**v as usize].distance(*x) < distance;
                if let Some(&v) = others.iter().find(is_near) {
                    sets.unite(number, v);
                }
            }
        }
    }
    sets
}

/// Refuses faces of which two corners would be one vertex. `joined` is for vertices of the file.
fn refuse_narrow(file: &FileMesh, joined: &[u32], distance: f64) -> Result<(), String> {
    for (number, face) in file.faces.iter().enumerate() {
        for (k, &a) in face.iter().enumerate() {
            let same = |b: &&u32| joined[**b as usize] == joined[a as usize];
            if let Some(&b) = face[k + 1..].iter().find(same) {
                return Err(format!(
                    "face {number} has vertices {a} and {b} (all counted from 0), which `weld` = {distance} m would join, so that the face \
                     has no area; take a smaller `weld`, or mend the mesh"
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Faces, Group, Texture, check_cloth};
    use super::*;

    /// Two squares beside each other whose common side is there twice, a hair apart.
    fn seam(hair: f64) -> FileMesh {
        let x = [0.0, 1.0, 1.0 + hair, 2.0];
        let positions = x
            .iter()
            .flat_map(|&x| [DVec3::new(x, 0.0, 0.0), DVec3::new(x, 1.0, 0.0)]);
        let triangles = vec![[0, 2, 1], [2, 3, 1], [4, 6, 5], [6, 7, 5]];
        FileMesh {
            texture: Some(Texture {
                coordinates: (0..8).map(|k| [f64::from(k), 0.5]).collect(),
                corners: triangles.as_flattened().to_vec(),
            }),
            velocities: Some((0..8).map(|k| DVec3::X * f64::from(k)).collect()),
            groups: vec![Group {
                name: "seam".to_owned(),
                vertices: vec![2, 3, 4, 5],
            }],
            ..FileMesh::of_triangles(TriMesh {
                positions: positions.collect(),
                triangles,
            })
        }
    }

    #[test]
    fn a_seam_becomes_one_row_of_vertices_and_all_else_of_the_file_follows() {
        let mut file = seam(1e-5);
        weld(&mut file, 1e-4).unwrap();
        assert_eq!(file.welded, Some(2));
        assert_eq!(file.joined, Some(vec![0, 1, 2, 3, 2, 3, 4, 5]));
        assert_eq!(
            file.mesh.triangles,
            [[0, 2, 1], [2, 3, 1], [2, 4, 3], [4, 5, 3]]
        );
        assert!((file.mesh.positions[2].x - 1.000005).abs() < 1e-15);
        assert_eq!(file.groups[0].vertices, [2, 3]);
        assert_eq!(file.velocities.as_ref().unwrap()[2], DVec3::X * 3.0);
        check_cloth(&file.mesh).unwrap();
        // Each corner keeps its own texture coordinates.
        let of = file.texture_of_triangles().unwrap();
        assert_eq!(of[2].map(|[u, _]| u), [4.0, 6.0, 5.0]);
        assert_eq!(of[1].map(|[u, _]| u), [2.0, 3.0, 1.0]);
        // Exports have the vertices of the file, and a run that is read again the same mesh.
        let again = join_equal(&file.of_file(&file.mesh.positions));
        assert_eq!(
            again,
            (file.mesh.positions.clone(), file.joined.clone().unwrap())
        );
        // A smaller distance leaves the file as it is.
        let mut apart = seam(1e-5);
        weld(&mut apart, 1e-5).unwrap();
        let same = FileMesh {
            welded: Some(0),
            ..seam(1e-5)
        };
        assert_eq!(apart, same);
    }

    #[test]
    fn faces_that_would_have_no_area_and_distances_below_rounding_are_refused() {
        let error = weld(&mut seam(1e-5), 1.1).unwrap_err();
        assert!(error.contains("face 0 has vertices 0 and 2"), "{error}");
        // Corners of a face that are in no triangle together count too.
        let mut file = FileMesh {
            faces: Faces::default(),
            ..seam(1.0)
        };
        file.faces.push(&[0, 2, 6, 7, 5, 4]);
        file.mesh.positions[4] = file.mesh.positions[2] + DVec3::Y * 1e-6;
        let error = weld(&mut file, 1e-5).unwrap_err();
        assert!(error.contains("vertices 2 and 4"), "{error}");
        let error = weld(&mut seam(1e-5), 1e-300).unwrap_err();
        assert!(error.contains("do not resolve"), "{error}");
    }

    #[test]
    fn a_mesh_at_rest_is_welded_as_the_one_at_the_start() {
        let mut start = seam(1e-5);
        weld(&mut start, 1e-4).unwrap();
        let joined = start.joined.unwrap();
        let at_rest = |move_by: f64| {
            let mut file = seam(2e-5);
            for x in &mut file.mesh.positions[4..] {
                x.x += move_by;
            }
            weld_alike(&file, &joined, 1e-4)
        };
        let mesh = at_rest(0.0).unwrap();
        assert_eq!(mesh.triangles, start.mesh.triangles);
        assert!((mesh.positions[2].x - 1.00001).abs() < 1e-15);
        let error = at_rest(0.5).unwrap_err();
        assert!(
            error.contains("joins vertex 2") && error.contains("rest_texture"),
            "{error}"
        );
        let error = weld_alike(&seam(0.0), &joined[1..], 1e-4).unwrap_err();
        assert!(error.contains("8 vertices"), "{error}");
    }

    proptest! {
        /// Vertices are one exactly if a chain of near pairs connects them, in whatever order they
        /// come.
        #[test]
        fn chains_of_near_vertices_become_one_whatever_their_order(
            points in prop::collection::vec(prop::array::uniform3(-1.0..1.0_f64), 1..40),
            distance in 0.05..0.6_f64,
            turn in 0..40_usize,
        ) {
            let x: Vec<DVec3> = points.iter().map(|p| DVec3::from_array(*p)).collect();
            let mesh = |positions: &[DVec3]| {
                let mut file = FileMesh::of_triangles(TriMesh {
                    positions: positions.to_vec(),
                    triangles: Vec::new(),
                });
                weld(&mut file, distance).unwrap();
                let own = (0..positions.len() as u32).collect();
                (file.mesh.positions, file.joined.unwrap_or(own))
            };
            let (left, joined) = mesh(&x);
            // Chains, by looking at all pairs again and again.
            let mut least: Vec<usize> = (0..x.len()).collect();
            for _ in 0..x.len() {
                for a in 0..x.len() {
                    for b in 0..x.len() {
                        if x[a].distance(x[b]) < distance {
                            let both = least[a].min(least[b]);
                            (least[a], least[b]) = (both, both);
                        }
                    }
                }
            }
            for a in 0..x.len() {
                for b in 0..x.len() {
                    prop_assert_eq!(joined[a] == joined[b], least[a] == least[b]);
                }
            }
            let mut turned = x.clone();
            turned.rotate_left(turn % x.len());
            turned.reverse();
            let (other, _) = mesh(&turned);
            let bits = |all: &[DVec3]| {
                let mut all: Vec<[u64; 3]> = all.iter().map(|x| x.to_array().map(f64::to_bits)).collect();
                all.sort_unstable();
                all
            };
            prop_assert_eq!(bits(&left), bits(&other));
        }
    }
}
