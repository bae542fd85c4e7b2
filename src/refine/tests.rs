//! Refined frames: nothing crosses, distances at most halve, and the shape is kept, whatever lies
//! how close.

use std::f64::consts::TAU;

use glam::DVec3;
use proptest::prelude::*;
use weft_judge::{Judge, Piece, State};

use super::*;
use crate::collide::audit::crossings;
use crate::collide::bodies::Analytic;
use crate::collide::{BodyMotion, Surface, on_segments, on_triangle};
use crate::mesh::{cuboid, icosphere};
use crate::parallel;

/// Cloth in pieces.
#[derive(Clone, Debug, Default)]
struct Cloth {
    x: Vec<DVec3>,
    triangles: Vec<[u32; 3]>,
    sizes: Vec<usize>,
}

impl Cloth {
    fn add(&mut self, mesh: &TriMesh) {
        let first = self.x.len() as u32;
        self.x.extend_from_slice(&mesh.positions);
        let corners = mesh.triangles.iter().map(|t| t.map(|v| first + v));
        self.triangles.extend(corners);
        self.sizes.push(mesh.positions.len());
    }

    /// A sheet of squares with sides of 1, each vertex placed by its row and column.
    fn add_sheet(&mut self, [rows, columns]: [usize; 2], at: impl Fn(f64, f64) -> DVec3) {
        let mut mesh = TriMesh::default();
        for i in 0..rows {
            let row = (0..columns).map(|j| at(i as f64, j as f64));
            mesh.positions.extend(row);
        }
        for i in 0..rows - 1 {
            for j in 0..columns - 1 {
                let a = (i * columns + j) as u32;
                let (b, c, d) = (a + 1, a + columns as u32, a + columns as u32 + 1);
                mesh.triangles.extend(match (i + j) % 2 {
                    0 => [[a, c, d], [a, d, b]],
                    _ => [[a, c, b], [c, d, b]],
                });
            }
        }
        self.add(&mesh);
    }

    fn levels(&self, solids: &[Solid], count: u32) -> Levels {
        let subject = Subject {
            triangles: &self.triangles,
            positions: &self.x,
            sizes: &self.sizes,
            passing: &vec![false; self.sizes.len()],
            solids,
        };
        Levels::new(&subject, count)
    }

    /// Refines the cloth beside bodies; the result is the finest triangles too.
    fn refined(&self, solids: &[Solid], count: u32) -> (Smoothed, Vec<[u32; 3]>) {
        let levels = self.levels(solids, count);
        let places: Vec<Option<Vec<DVec3>>> = (solids.iter())
            .map(|solid| match solid {
                Solid::Formula(..) => None,
                Solid::Triangles(mesh) => Some(mesh.positions.clone()),
            })
            .collect();
        let smoothed = levels.refine(&Moment {
            time: 0.0,
            cloth: &self.x,
            solids: &places,
        });
        (smoothed, levels.triangles().to_vec())
    }

    /// The surface that the first level begins with: middles of edges on their edges.
    fn split(&self) -> Vec<DVec3> {
        self.levels(&[], 1).between(&self.x, levels::middle)
    }
}

/// Sheets above each other, a gap apart where they are closest, with waves that differ.
fn stack(gaps: &[f64], waves: &[[f64; 3]]) -> Cloth {
    let mut cloth = Cloth::default();
    let wave = |[height, length, phase]: [f64; 3], i: f64, j: f64| {
        height * (TAU * i / length + phase).sin() * (0.3 * j + phase).cos()
    };
    let mut floor = vec![f64::NEG_INFINITY; 7 * 6];
    for (&gap, &of) in gaps.iter().zip(waves) {
        let own: Vec<f64> = (0..42)
            .map(|k| wave(of, (k / 6) as f64, (k % 6) as f64))
            .collect();
        // The lift that leaves the gap where the two come closest, at vertices of one grid.
        let lift = floor.iter().zip(&own).map(|(low, z)| low - z);
        let lift = lift.fold(f64::NEG_INFINITY, f64::max);
        let lift = if lift.is_finite() { lift + gap } else { 0.0 };
        let z: Vec<f64> = own.iter().map(|z| z + lift).collect();
        cloth.add_sheet([7, 6], |i, j| {
            DVec3::new(i, j, z[i as usize * 6 + j as usize])
        });
        floor = z;
    }
    cloth
}

/// Asks the judge, which shares no code with certification, about a state.
fn is_free_of_crossings(x: &[DVec3], triangles: &[[u32; 3]]) -> bool {
    is_clean(&[x], triangles) && crossings(x, triangles).is_empty()
}

/// Asks the judge about states and the straight ways between them.
fn is_clean(states: &[&[DVec3]], triangles: &[[u32; 3]]) -> bool {
    let x = states[0];
    let piece = Piece {
        name: "cloth".to_owned(),
        is_body: false,
        vertices: 0..x.len() as u32,
        passes_itself: false,
        sewn: Vec::new(),
    };
    let surface = weft_judge::Surface::new(vec![piece], triangles.to_vec()).unwrap();
    let mut judge = Judge::new(surface);
    for (time, x) in states.iter().enumerate() {
        let state = State {
            time: time as f64,
            positions: x.iter().map(DVec3::to_array).collect(),
            squeezed: Vec::new(),
            kept: Vec::new(),
        };
        judge.judge(state).unwrap();
    }
    judge.verdict().is_clean()
}

/// The distances of all pairs of features that share no vertex, by brute force.
fn distances(x: &[DVec3], surface: &Surface) -> Vec<f64> {
    let mut all = Vec::new();
    let at = |v: u32| x[v as usize];
    for v in 0..x.len() as u32 {
        for t in surface.triangles().iter().filter(|t| !t.contains(&v)) {
            let [a, b, c] = t.map(at);
            let [p, q, r] = on_triangle(at(v), a, b, c);
            all.push(at(v).distance(a * p + b * q + c * r));
        }
    }
    for (k, e) in surface.edges().iter().enumerate() {
        for f in &surface.edges()[k + 1..] {
            if !e.iter().any(|v| f.contains(v)) {
                let ([a, b], [c, d]) = (e.map(at), f.map(at));
                let (s, t) = on_segments(a, b, c, d);
                all.push(a.lerp(b, s).distance(c.lerp(d, t)));
            }
        }
    }
    all
}

/// Whether all distances are at least half of what they were.
fn halve_at_most(before: &[DVec3], after: &[DVec3], triangles: &[[u32; 3]]) -> bool {
    let surface = Surface::new(triangles, before.len());
    let (before, after) = (distances(before, &surface), distances(after, &surface));
    let mut both = before.iter().zip(&after);
    both.all(|(before, after)| *after >= 0.5 * before * (1.0 - 1e-9))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Layers with gaps far below what they wave, of which some would cross if they were smoothed.
    #[test]
    fn stacks_cross_nothing_and_distances_at_most_halve_in_a_level(
        gaps in prop::collection::vec(-7.0..-1.0_f64, 3),
        waves in prop::collection::vec([0.0..0.8, 3.0..7.0, 0.0..TAU], 3),
    ) {
        let gaps: Vec<f64> = gaps.iter().map(|digits| 10_f64.powf(*digits)).collect();
        let waves: Vec<[f64; 3]> = waves.clone();
        let cloth = stack(&gaps, &waves);
        prop_assert!(is_free_of_crossings(&cloth.x, &cloth.triangles));
        let (once, triangles) = cloth.refined(&[], 1);
        prop_assert!(is_free_of_crossings(&once.positions, &triangles));
        prop_assert!(is_clean(&[&cloth.split(), &once.positions], &triangles));
        prop_assert!(halve_at_most(&cloth.split(), &once.positions, &triangles));
        let (twice, triangles) = cloth.refined(&[], 2);
        prop_assert!(is_free_of_crossings(&twice.positions, &triangles));
    }
}

/// A ripple under a flat sheet that touches its crests but for a hair: smooth crests would pass
/// through.
#[test]
fn crests_that_would_pass_through_the_next_layer_stop_before_it() {
    let mut cloth = Cloth::default();
    let crest = |i: f64| 0.5 * (TAU * i / 4.0).cos();
    cloth.add_sheet([9, 5], |i, j| DVec3::new(i + 0.5, j, crest(i + 0.5)));
    let highest = cloth.x.iter().map(|x| x.z).fold(0.0, f64::max);
    cloth.add_sheet([9, 5], |i, j| DVec3::new(i + 0.5, j, highest + 1e-4));
    let alone = Cloth {
        x: cloth.x[..45].to_vec(),
        triangles: cloth.triangles[..64].to_vec(),
        sizes: vec![45],
    };
    let (free, _) = alone.refined(&[], 2);
    let top = free.positions.iter().map(|x| x.z).fold(0.0, f64::max);
    assert!(top > highest + 0.05, "the crest is round: {top}");
    assert!(free.levels.iter().all(|level| level.cut == 0), "{free:?}");
    let (smoothed, triangles) = cloth.refined(&[], 2);
    assert!(is_free_of_crossings(&smoothed.positions, &triangles));
    assert!(smoothed.levels.iter().all(|level| level.cut > 0));
    assert!(smoothed.levels.iter().all(|level| level.cut < level.moved));
    // The flat sheet stays where it is, and the least gap is at least a fourth.
    let lower = smoothed.positions.len() / 2;
    let top = smoothed.positions[..lower]
        .iter()
        .map(|x| x.z)
        .fold(0.0, f64::max);
    assert!(top > highest && top <= highest + 0.75e-4 + 1e-12, "{top}");
    // Most of it is as smooth as it would be alone.
    let same = |v: &usize| smoothed.shares[*v] == 1.0;
    let of_lower: Vec<usize> = (0..lower).filter(same).collect();
    assert!(of_lower.len() > lower / 2);
}

/// Layers of one strip that is folded, a thousandth of an edge apart.
#[test]
fn a_folded_strip_keeps_its_layers_apart() {
    // Rows of a layer, and one more at the fold. Layers then have their diagonals above each other.
    const ROWS: usize = 6;
    let mut cloth = Cloth::default();
    cloth.add_sheet([4 * (ROWS + 1) - 1, 5], |i, j| {
        let (layer, row) = (i as usize / (ROWS + 1), i as usize % (ROWS + 1));
        let (along, above) = match row {
            ROWS => (ROWS as f64 - 0.6, 0.5),
            _ => (row as f64, 0.0),
        };
        let x = match layer % 2 {
            0 => along,
            _ => ROWS as f64 - 1.0 - along,
        };
        let wave = 0.4 * (0.9 * x).sin() * (0.7 * j).cos();
        DVec3::new(x, j, 1e-3 * (layer as f64 + above) + wave)
    });
    assert!(is_free_of_crossings(&cloth.x, &cloth.triangles));
    let (once, triangles) = cloth.refined(&[], 1);
    assert!(halve_at_most(&cloth.split(), &once.positions, &triangles));
    let (smoothed, triangles) = cloth.refined(&[], 2);
    assert!(is_free_of_crossings(&smoothed.positions, &triangles));
    let moved: u64 = smoothed.levels.iter().map(|level| level.moved).sum();
    let cut: u64 = smoothed.levels.iter().map(|level| level.cut).sum();
    assert!(cut > 0 && cut < moved, "{cut} of {moved}");
}

#[test]
fn vertices_of_the_frame_stay_where_they_are_and_a_plane_stays_a_plane() {
    let mut cloth = Cloth::default();
    let tilt = |x: f64, y: f64| DVec3::new(x, y, 0.3 * x - 0.2 * y + 1.0);
    cloth.add_sheet([6, 5], |i, j| {
        tilt(i + 0.2 * (i * j).sin(), j + 0.1 * (3.0 * i).cos())
    });
    cloth.add_sheet([6, 5], |i, j| DVec3::new(i, j, 9.0 + (i * j).sin()));
    let (smoothed, triangles) = cloth.refined(&[], 2);
    let levels = cloth.levels(&[], 2);
    let [flat, _] = levels.sizes()[..] else {
        panic!()
    };
    assert_eq!(smoothed.positions[..30], cloth.x[..30]);
    assert_eq!(smoothed.positions[flat..flat + 30], cloth.x[30..]);
    for x in &smoothed.positions[..flat] {
        assert!((tilt(x.x, x.y) - *x).length() < 1e-13, "{x}");
    }
    assert_eq!(triangles.len(), 16 * cloth.triangles.len());
    assert!(
        smoothed.positions[flat..]
            .iter()
            .zip(&cloth.x)
            .any(|(a, b)| a != b)
    );
}

/// A wrinkle of four vertices a wave keeps its height and its place.
#[test]
fn wrinkles_keep_their_height_and_come_closer_to_what_they_are_of() {
    let wave = |x: f64| 0.3 * (TAU * x / 8.0).sin();
    let mut cloth = Cloth::default();
    cloth.add_sheet([25, 4], |i, j| DVec3::new(i, j, wave(i)));
    let (smoothed, _) = cloth.refined(&[], 3);
    let heights = |x: &[DVec3]| {
        let z = x.iter().map(|x| x.z);
        [z.clone().fold(0.0, f64::min), z.fold(0.0, f64::max)]
    };
    let ([low, high], [lowest, highest]) = (heights(&cloth.x), heights(&smoothed.positions));
    assert!(lowest <= low && highest >= high);
    assert!(highest < 1.02 * high && lowest > 1.02 * low);
    // Away from the border, where normals are of one side.
    let error = |x: &[DVec3]| {
        let inside = x.iter().filter(|x| (2.0..22.0).contains(&x.x));
        inside.map(|x| (x.z - wave(x.x)).abs()).fold(0.0, f64::max)
    };
    let linear = cloth.levels(&[], 3).between(&cloth.x, levels::middle);
    assert!(error(&smoothed.positions) < 0.2 * error(&linear));
}

#[test]
fn a_ball_of_cloth_comes_closer_to_the_sphere_and_stays_closed() {
    let mut cloth = Cloth::default();
    cloth.add(&icosphere(DVec3::ZERO, 1.0, 0.7).unwrap());
    let mut worst: Vec<f64> = Vec::new();
    for count in 0..=3 {
        let (smoothed, triangles) = cloth.refined(&[], count);
        let volume = TriMesh {
            positions: smoothed.positions.clone(),
            triangles: triangles.clone(),
        }
        .volume();
        let surface = Surface::new(&triangles, smoothed.positions.len());
        let (v, e, f) = (
            smoothed.positions.len(),
            surface.edges().len(),
            triangles.len(),
        );
        assert_eq!(v + f - e, 2, "Euler");
        let sphere = TAU * 2.0 / 3.0;
        worst.push((sphere - volume).abs() / sphere);
        let off = smoothed.positions.iter().map(|x| (x.length() - 1.0).abs());
        assert!(off.fold(0.0, f64::max) < 0.01);
    }
    assert!(
        worst.windows(2).all(|pair| pair[1] < 0.6 * pair[0]),
        "{worst:?}"
    );
    assert!(worst[3] < 0.1 * worst[0], "{worst:?}");
}

/// Cloth over a ball, over a box, and over a plane, which the smooth surface would enter.
#[test]
fn cloth_enters_no_body() {
    let ball = Analytic::Sphere {
        center: DVec3::new(4.0, 3.0, -3.0),
        radius: 3.0,
    };
    let plane = Analytic::Plane {
        point: DVec3::ZERO,
        normal: DVec3::Z,
    };
    let capsule = Analytic::Capsule {
        from: DVec3::new(0.0, 3.0, -1.0),
        to: DVec3::new(8.0, 3.0, -1.0),
        radius: 1.0,
    };
    let block = Analytic::Box {
        center: DVec3::new(4.0, 3.0, -1.0),
        half: DVec3::new(3.3, 2.7, 1.0),
        axes: None,
    };
    let mesh = cuboid(DVec3::new(4.0, 3.0, -1.0), DVec3::new(6.6, 5.4, 2.0), 1.0).unwrap();
    let still = || BodyMotion::constant(DVec3::ZERO);
    let solids = [
        Solid::Formula(ball, still()),
        Solid::Formula(plane, still()),
        Solid::Formula(capsule, still()),
        Solid::Formula(block, still()),
        Solid::Triangles(mesh),
    ];
    // Troughs whose vertices are just above the height of zero.
    let mut cloth = Cloth::default();
    cloth.add_sheet([9, 7], |i, j| {
        DVec3::new(
            i,
            j,
            0.3 + 1e-3 - 0.3 * (TAU * (i + 0.5) / 4.0).cos() / (TAU / 8.0).cos(),
        )
    });
    let (free, _) = cloth.refined(&[], 2);
    let lowest = |smoothed: &Smoothed| smoothed.positions.iter().map(|x| x.z).fold(1.0, f64::min);
    assert!(lowest(&free) < -0.02, "{}", lowest(&free));
    for (number, solid) in solids.iter().enumerate() {
        let (smoothed, triangles) = cloth.refined(std::slice::from_ref(solid), 2);
        let cut: u64 = smoothed.levels.iter().map(|level| level.cut).sum();
        assert!(cut > 0, "{number}");
        // All points of all faces, as far as a fine grid over them tells.
        let inside = triangles.iter().flat_map(|t| {
            let [a, b, c] = t.map(|v| smoothed.positions[v as usize]);
            (0..=4).flat_map(move |p| {
                (0..=4 - p).map(move |q| {
                    let [p, q] = [f64::from(p), f64::from(q)].map(|w| 0.25 * w);
                    a + (b - a) * p + (c - a) * q
                })
            })
        });
        let depth = |x: DVec3| match solid {
            Solid::Formula(formula, _) => formula.distance(x).0,
            Solid::Triangles(_) => block.distance(x).0,
        };
        let least = inside.map(depth).fold(f64::INFINITY, f64::min);
        assert!(least > 0.0, "{number}: {least}");
    }
}

/// A vertex of the frame inside a body does not lead others in, and cloth that already crosses
/// cloth stays as it is there, while the rest is smoothed.
#[test]
fn crossings_of_the_frame_stay_as_they_are() {
    let mut cloth = Cloth::default();
    cloth.add_sheet([7, 6], |i, j| DVec3::new(i, j, 0.3 * i.sin() * j.cos()));
    cloth.add_sheet([3, 3], |i, j| {
        DVec3::new(1.2 + 0.1 * i, 2.0 * j, 0.7 * i - 0.5)
    });
    assert!(!crossings(&cloth.x, &cloth.triangles).is_empty());
    let ball = Analytic::Sphere {
        center: DVec3::new(5.0, 4.0, 0.0),
        radius: 0.9,
    };
    let solid = Solid::Formula(ball, BodyMotion::constant(DVec3::ZERO));
    let (smoothed, triangles) = cloth.refined(&[solid], 1);
    let before = crossings(&cloth.split(), &triangles);
    assert_eq!(crossings(&smoothed.positions, &triangles), before);
    let [level] = smoothed.levels[..] else {
        panic!()
    };
    assert!(level.cut > 0 && level.cut < level.moved, "{level:?}");
    let inside = |x: &[DVec3]| {
        let all = x.iter().enumerate();
        let inside = all.filter(|(_, x)| ball.distance(**x).0 < 0.0);
        inside.map(|(v, _)| v).collect::<Vec<_>>()
    };
    let (was, is) = (inside(&cloth.split()), inside(&smoothed.positions));
    assert!(!is.is_empty() && is.iter().all(|v| was.contains(v)));
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let waves = [[0.7, 4.0, 0.3], [0.6, 5.0, 1.0], [0.5, 3.5, 2.0]];
    let cloth = stack(&[1e-5, 1e-4, 1e-3], &waves);
    let alone = cloth.refined(&[], 2);
    for threads in [2, 3] {
        let shared = parallel::on_threads(threads, || cloth.refined(&[], 2)).unwrap();
        assert_eq!(shared, alone);
    }
}

/// Cloth that passes through itself is smoothed as if it were alone, and keeps off other cloth.
#[test]
fn cloth_that_passes_through_itself_is_not_kept_apart() {
    let mut cloth = Cloth::default();
    cloth.add_sheet([9, 5], |i, j| {
        DVec3::new(i, j, 0.5 * (TAU * (i + 0.5) / 4.0).cos())
    });
    let first = cloth.x.len() as u32;
    let mut twice = cloth.clone();
    let lifted = cloth.x.iter().map(|x| *x + DVec3::new(2.0, 0.0, 0.72));
    twice.x.extend(lifted);
    let second = cloth.triangles.iter().map(|t| t.map(|v| v + first));
    twice.triangles.extend(second);
    twice.sizes = vec![twice.x.len()];
    let counts = [true, false].map(|passes| {
        let subject = Subject {
            triangles: &twice.triangles,
            positions: &twice.x,
            sizes: &twice.sizes,
            passing: &[passes],
            solids: &[],
        };
        let moment = Moment {
            time: 0.0,
            cloth: &twice.x,
            solids: &[],
        };
        Levels::new(&subject, 1).refine(&moment).levels[0].cut
    });
    assert_eq!(counts[0], 0);
    assert!(counts[1] > 0);
}
