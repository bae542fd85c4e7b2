//! Closed surfaces made of triangles: sphere, box and capsule, all facing outwards.

use std::collections::HashMap;
use std::f64::consts::{FRAC_PI_2, PI, TAU};

use glam::DVec3;

use super::grid::cell;
use super::{MeshError, TriMesh, bounded, subdivisions};

/// A sphere: an icosahedron whose faces are cut into `n²` triangles and pushed out to the radius.
///
/// `n` is the least for which no edge is certain to be longer than `edge`; all lengths in m.
/// Vertices lie on the sphere, so facets lie inside it, by at most about `edge² / (6 radius)`.
///
/// # Errors
/// [`MeshError::TooLarge`] for more than [`super::MAX_VERTICES`] vertices.
pub fn icosphere(center: DVec3, radius: f64, edge: f64) -> Result<TriMesh, MeshError> {
    const WHAT: &str = "the sphere";
    // Pushed out, a length grows at most as a face's centre does: from its distance to the radius.
    let n = subdivisions(
        WHAT,
        radius * ICOSAHEDRON_EDGE / ICOSAHEDRON_INRADIUS,
        edge,
        1,
    )?;
    bounded(WHAT, 10 * u64::from(n) * u64::from(n) + 2)?;

    let corners = icosahedron();
    let on_sphere = |direction: DVec3| center + direction.normalize() * radius;
    let mut positions: Vec<DVec3> = corners.iter().map(|&corner| on_sphere(corner)).collect();
    let mut triangles = Vec::with_capacity(20 * n as usize * n as usize);
    // First of the n - 1 vertices inside each edge, counted from its smaller corner.
    let mut inside_edges: HashMap<(u32, u32), u32> = HashMap::new();
    for face in ICOSAHEDRON_FACES {
        let [a, b, c] = face.map(|corner| corners[corner as usize]);
        let mut starts = [0; 3];
        for (side, start) in starts.iter_mut().enumerate() {
            let (from, to) = (face[side], face[(side + 1) % 3]);
            let (low, high) = (from.min(to), from.max(to));
            *start = *inside_edges.entry((low, high)).or_insert_with(|| {
                let first = index(positions.len());
                let (low, high) = (corners[low as usize], corners[high as usize]);
                positions
                    .extend((1..n).map(|k| on_sphere(low.lerp(high, f64::from(k) / f64::from(n)))));
                first
            });
        }
        // Vertex on a side, k steps from the side's first corner.
        let on_side = |side: usize, k: u32| {
            let (from, to) = (face[side], face[(side + 1) % 3]);
            starts[side] + if from < to { k - 1 } else { n - 1 - k }
        };
        // Rows parallel to a-b, from it to c: row j has n - j + 1 vertices.
        let inner = index(positions.len());
        for j in 1..n {
            for i in 1..n - j {
                let (u, v) = (f64::from(i) / f64::from(n), f64::from(j) / f64::from(n));
                positions.push(on_sphere(a + (b - a) * u + (c - a) * v));
            }
        }
        let vertex = |i: u32, j: u32| match (i, j) {
            (0, 0) => face[0],
            (i, 0) if i == n => face[1],
            (0, j) if j == n => face[2],
            (i, 0) => on_side(0, i),
            (0, j) => on_side(2, n - j),
            (i, j) if i + j == n => on_side(1, j),
            // Rows 1..j hold n - 2, n - 3, ... inner vertices.
            (i, j) => inner + (j - 1) * (n - 1) - j * (j - 1) / 2 + i - 1,
        };
        for j in 0..n {
            for i in 0..n - j {
                triangles.push([vertex(i, j), vertex(i + 1, j), vertex(i, j + 1)]);
                if i + j + 1 < n {
                    triangles.push([vertex(i + 1, j), vertex(i + 1, j + 1), vertex(i, j + 1)]);
                }
            }
        }
    }
    Ok(TriMesh {
        positions,
        triangles,
    })
}

/// A box with sides along the axes, `size` long, in cells with sides of at most `edge`; in m.
///
/// # Errors
/// [`MeshError::TooLarge`] for more than [`super::MAX_VERTICES`] vertices.
pub fn cuboid(center: DVec3, size: DVec3, edge: f64) -> Result<TriMesh, MeshError> {
    const WHAT: &str = "the box";
    let mut cells = [0; 3];
    for (axis, count) in cells.iter_mut().enumerate() {
        *count = subdivisions(WHAT, size[axis], edge, 1)?;
    }
    let [x, y, z] = cells.map(u64::from);
    bounded(WHAT, 2 * (x * y + y * z + z * x) + 2)?;

    let mut mesh = TriMesh::default();
    let mut numbers: HashMap<[u32; 3], u32> = HashMap::new();
    for axis in 0..3 {
        // Axes in cyclic order: u times v points along `axis`.
        let (u, v) = ((axis + 1) % 3, (axis + 2) % 3);
        for high in [false, true] {
            for j in 0..cells[v] {
                for i in 0..cells[u] {
                    let mut corner = |di: u32, dj: u32| {
                        let mut lattice = [0; 3];
                        lattice[axis] = if high { cells[axis] } else { 0 };
                        lattice[u] = i + di;
                        lattice[v] = j + dj;
                        *numbers.entry(lattice).or_insert_with(|| {
                            let fraction = |k: usize| f64::from(lattice[k]) / f64::from(cells[k]);
                            let fractions = DVec3::new(fraction(0), fraction(1), fraction(2));
                            mesh.positions.push(center + (fractions - 0.5) * size);
                            index(mesh.positions.len() - 1)
                        })
                    };
                    let corners = [corner(0, 0), corner(1, 0), corner(0, 1), corner(1, 1)];
                    for triangle in cell(corners, i % 2 == 0) {
                        let [a, b, c] = triangle;
                        mesh.triangles.push(if high { triangle } else { [a, c, b] });
                    }
                }
            }
        }
    }
    Ok(mesh)
}

/// All points within `radius` of the segment `from`-`to`, in triangles with sides of about `edge`;
/// all lengths in m.
///
/// Rings of vertices around the axis and one vertex at each pole; cells of rings at most `edge`
/// high and wide. `from` and `to` may be equal: a sphere, with its axis along z.
///
/// # Errors
/// [`MeshError::TooLarge`] for more than [`super::MAX_VERTICES`] vertices.
pub fn capsule(from: DVec3, to: DVec3, radius: f64, edge: f64) -> Result<TriMesh, MeshError> {
    const WHAT: &str = "the capsule";
    let length = from.distance(to);
    let axis = (to - from).try_normalize().unwrap_or(DVec3::Z);
    let (u, v) = axis.any_orthonormal_pair();
    let around = subdivisions(WHAT, TAU * radius, edge, 6)?;
    let cap = subdivisions(WHAT, FRAC_PI_2 * radius, edge, 2)?;
    let middle = if length > 0.0 {
        subdivisions(WHAT, length, edge, 1)?
    } else {
        0
    };
    let rows = 2 * u64::from(cap) - 1 + u64::from(middle);
    bounded(WHAT, rows.saturating_mul(u64::from(around)) + 2)?;

    // (centre of the ring, distance along the axis from it, ring radius), from pole to pole.
    let latitude = |k: u32| PI / 2.0 * f64::from(k) / f64::from(cap);
    let mut rings = Vec::new();
    for k in 1..=cap {
        let (sine, cosine) = libm::sincos(latitude(k));
        rings.push((from, -radius * cosine, radius * sine));
    }
    for k in 1..=middle {
        rings.push((from.lerp(to, f64::from(k) / f64::from(middle)), 0.0, radius));
    }
    for k in (1..cap).rev() {
        let (sine, cosine) = libm::sincos(latitude(k));
        rings.push((to, radius * cosine, radius * sine));
    }

    let mut mesh = TriMesh::default();
    mesh.positions.push(from - axis * radius);
    for (ring_center, height, ring_radius) in &rings {
        for i in 0..around {
            let angle = TAU * f64::from(i) / f64::from(around);
            let (sine, cosine) = libm::sincos(angle);
            let outward = u * cosine + v * sine;
            mesh.positions
                .push(*ring_center + axis * *height + outward * *ring_radius);
        }
    }
    let top = index(mesh.positions.len());
    mesh.positions.push(to + axis * radius);
    let rings = index(rings.len());
    let vertex = |i: u32, ring: u32| 1 + ring * around + i % around;
    for i in 0..around {
        mesh.triangles.push([0, vertex(i + 1, 0), vertex(i, 0)]);
        for ring in 0..rings - 1 {
            let corners = [
                vertex(i, ring),
                vertex(i + 1, ring),
                vertex(i, ring + 1),
                vertex(i + 1, ring + 1),
            ];
            mesh.triangles.extend(cell(corners, i % 2 == 0));
        }
        mesh.triangles
            .push([top, vertex(i, rings - 1), vertex(i + 1, rings - 1)]);
    }
    Ok(mesh)
}

/// A count of vertices, which [`bounded`] keeps far below 2³².
fn index(count: usize) -> u32 {
    u32::try_from(count).expect("bounded by MAX_VERTICES")
}

/// The corners of an icosahedron, at distance 1.
fn icosahedron() -> [DVec3; 12] {
    let t = f64::midpoint(1.0, 5f64.sqrt());
    [
        [-1.0, t, 0.0],
        [1.0, t, 0.0],
        [-1.0, -t, 0.0],
        [1.0, -t, 0.0],
        [0.0, -1.0, t],
        [0.0, 1.0, t],
        [0.0, -1.0, -t],
        [0.0, 1.0, -t],
        [t, 0.0, -1.0],
        [t, 0.0, 1.0],
        [-t, 0.0, -1.0],
        [-t, 0.0, 1.0],
    ]
    .map(|corner| DVec3::from_array(corner).normalize())
}

#[rustfmt::skip]
const ICOSAHEDRON_FACES: [[u32; 3]; 20] = [
    [0, 11, 5], [0, 5, 1], [0, 1, 7], [0, 7, 10], [0, 10, 11],
    [1, 5, 9], [5, 11, 4], [11, 10, 2], [10, 7, 6], [7, 1, 8],
    [3, 9, 4], [3, 4, 2], [3, 2, 6], [3, 6, 8], [3, 8, 9],
    [4, 9, 5], [2, 4, 11], [6, 2, 10], [8, 6, 7], [9, 8, 1],
];

/// Edge of an icosahedron with corners at distance 1.
const ICOSAHEDRON_EDGE: f64 = 1.051_462_224_238_267_2;

/// Distance of its faces from its centre.
const ICOSAHEDRON_INRADIUS: f64 = 0.794_654_472_291_766_1;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::check_body;
    use super::*;

    /// Closed, facing outwards, without holes or handles.
    fn assert_ball(mesh: &TriMesh) {
        check_body(mesh, true).unwrap();
        assert_eq!(
            mesh.positions.len() + mesh.triangles.len(),
            mesh.edges().len() + 2
        );
        assert!(mesh.volume() > 0.0);
    }

    fn longest_edge(mesh: &TriMesh) -> f64 {
        let length =
            |[a, b]: [u32; 2]| mesh.positions[a as usize].distance(mesh.positions[b as usize]);
        mesh.edges().into_iter().map(length).fold(0.0, f64::max)
    }

    #[test]
    fn the_constants_of_the_icosahedron_are_right() {
        let corners = icosahedron();
        for face in ICOSAHEDRON_FACES {
            let [a, b, c] = face.map(|corner| corners[corner as usize]);
            assert!((a.distance(b) - ICOSAHEDRON_EDGE).abs() < 1e-15);
            assert!(((a + b + c).length() / 3.0 - ICOSAHEDRON_INRADIUS).abs() < 1e-15);
        }
    }

    #[test]
    fn spheres_converge_to_the_sphere_quadratically() {
        let error = |edge: f64| {
            let mesh = icosphere(DVec3::X, 0.2, edge).unwrap();
            assert_ball(&mesh);
            let exact = 4.0 / 3.0 * PI * 0.2f64.powi(3);
            1.0 - mesh.volume() / exact
        };
        let ratio = error(0.04) / error(0.02);
        assert!((3.3..4.8).contains(&ratio), "{ratio}");
    }

    #[test]
    fn absurd_edges_are_refused_without_taking_memory() {
        for edge in [1e-12, 1e-5, 0.0, -1.0, f64::NAN] {
            let too_large = |result: Result<TriMesh, MeshError>| {
                assert!(matches!(result, Err(MeshError::TooLarge { .. })), "{edge}");
            };
            too_large(icosphere(DVec3::ZERO, 1.0, edge));
            too_large(cuboid(DVec3::ZERO, DVec3::ONE, edge));
            too_large(capsule(DVec3::ZERO, DVec3::X, 1.0, edge));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn spheres_are_balls_with_edges_as_short_as_asked(
            radius in 0.01f64..5.0,
            edges in 0.2f64..25.0,
            center in [-5.0f64..5.0, -5.0..5.0, -5.0..5.0],
        ) {
            let center = DVec3::from_array(center);
            let mesh = icosphere(center, radius, radius / edges).unwrap();
            assert_ball(&mesh);
            prop_assert!(longest_edge(&mesh) <= (radius / edges).max(radius * 1.0515));
            for &position in &mesh.positions {
                prop_assert!((position.distance(center) - radius).abs() < 1e-13 * (1.0 + radius));
            }
            for &triangle in &mesh.triangles {
                let [a, b, c] = mesh.corners(triangle);
                prop_assert!((b - a).cross(c - a).dot(a - center) > 0.0);
            }
        }

        #[test]
        fn boxes_have_their_volume_and_area(
            size in [0.1f64..3.0, 0.1..3.0, 0.1..3.0],
            edge in 0.1f64..4.0,
        ) {
            let size = DVec3::from_array(size);
            let mesh = cuboid(DVec3::new(1.0, 2.0, 3.0), size, edge).unwrap();
            assert_ball(&mesh);
            let volume = size.x * size.y * size.z;
            let area = 2.0 * (size.x * size.y + size.y * size.z + size.z * size.x);
            prop_assert!((mesh.volume() - volume).abs() < 1e-12 * (1.0 + volume));
            prop_assert!((mesh.area() - area).abs() < 1e-12 * (1.0 + area));
            prop_assert!(longest_edge(&mesh) <= edge * 1.4143);
        }

        #[test]
        fn capsules_are_balls_around_their_segment(
            to in [-2.0f64..2.0, -2.0..2.0, -2.0..2.0],
            radius in 0.05f64..1.0,
            edge in 0.05f64..1.0,
        ) {
            let (from, to) = (DVec3::new(0.5, 0.5, 0.5), DVec3::from_array(to));
            let mesh = capsule(from, to, radius, edge).unwrap();
            assert_ball(&mesh);
            for &position in &mesh.positions {
                let along = to - from;
                let t = (position - from).dot(along) / along.length_squared().max(1e-300);
                let distance = position.distance(from.lerp(to, t.clamp(0.0, 1.0)));
                prop_assert!((distance - radius).abs() < 1e-9);
            }
            let length = from.distance(to);
            let exact = PI * radius * radius * (length + 4.0 / 3.0 * radius);
            prop_assert!(mesh.volume() <= exact * (1.0 + 1e-12));
            if edge < radius / 2.0 {
                prop_assert!(mesh.volume() > 0.9 * exact);
            }
        }
    }

    #[test]
    fn a_capsule_without_length_is_a_sphere() {
        let mesh = capsule(DVec3::ONE, DVec3::ONE, 0.5, 0.1).unwrap();
        assert_ball(&mesh);
        assert!((mesh.volume() - PI / 6.0).abs() < 0.02);
    }
}
