//! Sampled distances against formulas, against samples everywhere, and along ways.

use std::sync::LazyLock;

use glam::DVec3;
use proptest::prelude::*;

use super::*;
use crate::collide::bodies::collider::Analytic;
use crate::mesh::{cuboid, icosphere};

const CELL: f64 = 0.02;
const REACH: f64 = 0.03;
const HALF: DVec3 = DVec3::new(0.2, 0.15, 0.1);
const CENTER: DVec3 = DVec3::new(0.3, -0.2, 0.05);

static BOX: LazyLock<(Enclosed, DistanceField)> =
    LazyLock::new(|| sampled(&cuboid(CENTER, 2.0 * HALF, 0.05).unwrap(), CELL, REACH));
static BALL: LazyLock<(Enclosed, DistanceField)> =
    LazyLock::new(|| sampled(&icosphere(DVec3::ZERO, 0.1, 0.01).unwrap(), 0.005, 0.006));

fn sampled(mesh: &TriMesh, cell: f64, reach: f64) -> (Enclosed, DistanceField) {
    let enclosed = Enclosed::new(mesh);
    let field = DistanceField::new(&enclosed, cell, reach);
    (enclosed, field)
}

/// The distance is within the bound where there are samples, which is where contacts ask; elsewhere
/// it is on its side and no more than it is.
fn is_right(field: &DistanceField, p: DVec3, exact: f64, reach: f64) -> Result<(), TestCaseError> {
    match field.read(p) {
        Reading::Sampled(found) => {
            // Samples say no more than that.
            let exact = exact.clamp(-field.layout.most, field.layout.most);
            prop_assert!(
                (found - exact).abs() <= field.bound(),
                "{} not {}",
                found,
                exact
            );
        }
        Reading::Beyond(least) => {
            prop_assert!(exact.abs() >= least.abs(), "{} not {}", least, exact);
            prop_assert!(least.abs() > reach, "{} within reach", least);
            prop_assert!(exact.signum() == least.signum());
        }
    }
    prop_assert!(field.least_within(p, 0.01) <= field.distance(p) - 0.01);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_distance_from_a_box_is_that_of_its_formula(
        x in -0.5..0.5f64, y in -0.5..0.5f64, z in -0.5..0.5f64,
    ) {
        let formula = Analytic::Box { center: CENTER, half: HALF, axes: None };
        let p = CENTER + DVec3::new(x, y, z);
        is_right(&BOX.1, p, formula.distance(p).0, REACH)?;
    }

    #[test]
    fn the_distance_from_a_ball_is_that_of_its_mesh(
        x in -0.2..0.2f64, y in -0.2..0.2f64, z in -0.2..0.2f64,
    ) {
        let p = DVec3::new(x, y, z);
        is_right(&BALL.1, p, BALL.0.gap(p), 0.006)?;
        let normal = BALL.1.normal(p);
        if let Reading::Sampled(found) = BALL.1.read(p) && found.abs() < 0.006 {
            prop_assert!(normal.dot(p.normalize()) > 0.98, "{} at {}", normal, p);
        }
    }

    /// A way is clear as far as it is said to be, and stops where the distance is too small.
    #[test]
    fn a_way_is_clear_up_to_where_it_comes_too_near(
        from in prop::array::uniform3(-0.4..0.4f64), to in prop::array::uniform3(-0.4..0.4f64),
        least in 0.0..0.03f64,
    ) {
        let field = &BOX.1;
        let way = [from, to].map(|p| CENTER + DVec3::from_array(p));
        let share = field.clear(way, least);
        for k in 0..=500 {
            let here = share * f64::from(k) / 500.0;
            let distance = field.distance(along(way, here));
            prop_assert!(distance >= least - field.margin() || share == 0.0, "{} of {}", here, share);
        }
        prop_assert_eq!(field.is_clear(way, least), share >= 1.0 && field.distance(way[1]) >= least);
        if share < 1.0 {
            let distance = field.distance(along(way, share));
            prop_assert!(distance < least + 1e-2 * CELL, "{} stops at {}", share, distance);
        }
        let near = field.first_within(way, least);
        prop_assert_eq!(near.is_some(), share < 1.0);
    }

    #[test]
    fn coefficients_are_those_of_the_polynomial(
        corners in prop::array::uniform8(-1.0..1.0f64), from in prop::array::uniform3(0.0..1.0f64),
        to in prop::array::uniform3(0.0..1.0f64), s in 0.0..1.0f64,
    ) {
        let way = [from, to].map(DVec3::from_array);
        let [a, b, c, d] = coefficients(&corners, way);
        let r = 1.0 - s;
        let by_bernstein =
            a * r * r * r + 3.0 * (b * r * r * s + c * r * s * s) + d * s * s * s;
        let exact = trilinear(&corners, way[0].lerp(way[1], s));
        prop_assert!((by_bernstein - exact).abs() < 1e-14, "{} {}", by_bernstein, exact);
    }
}

/// Blocks hold what a whole grid would, and all of it within reach of the surface.
#[test]
fn blocks_have_all_samples_of_a_whole_grid_near_the_surface() {
    let (enclosed, field) = &*BALL;
    let layout = &field.layout;
    let row = layout.side as usize + 1;
    let mut count = [0; 2];
    for (number, &place) in field.places.iter().enumerate() {
        let first = layout.first_cell(number);
        for at in all_below(layout.side + 1) {
            let p = layout.node(std::array::from_fn(|k| first[k] + at[k]));
            let exact = enclosed.gap(p);
            let most = layout.most;
            if place == NONE {
                count[0] += 1;
                assert!(exact.abs() > layout.band, "{p} is {exact} from the surface");
                assert!(exact.abs() >= f64::from(field.far[number].abs()));
                continue;
            }
            count[1] += 1;
            let [x, y, z] = at.map(|at| at as usize);
            let sample = field.block(place as usize)[(z * row + y) * row + x];
            let told = exact.clamp(-most, most) as f32;
            assert_eq!(sample.to_bits(), told.to_bits(), "{p}");
        }
    }
    assert!(count.iter().all(|count| *count > 10_000), "{count:?}");
}

/// A ball of curvature 1/R has an error of h²/(4 R) in the middle of a cell, and an error of its
/// facets besides.
#[test]
fn the_error_that_is_found_is_that_of_the_curvature() {
    let (_, field) = sampled(&icosphere(DVec3::ZERO, 0.1, 0.002).unwrap(), 0.01, 0.006);
    let known = 0.01 * 0.01 / (4.0 * 0.1);
    assert!(
        (0.8 * known..1.6 * known).contains(&field.error()),
        "{} {known}",
        field.error()
    );
    assert!(field.error() < field.bound());
    // At the edges of a box it is a share of a cell.
    assert!((0.05 * CELL..BOX.1.bound()).contains(&BOX.1.error()));
}

/// With cells of n to a side, memory grows no faster than n^2.25.
#[test]
fn memory_grows_as_the_surface_and_a_little_more() {
    let mesh = icosphere(DVec3::ZERO, 0.1, 0.02).unwrap();
    let bytes = [30.0, 60.0, 120.0].map(|n| {
        let (_, field) = sampled(&mesh, 0.2 / n, 0.2 / n);
        let expected = DistanceField::expected(&mesh, 0.2 / n, 0.2 / n);
        let found = field.sampling();
        assert_eq!(expected.blocks, found.blocks as f64);
        let ratio = expected.bytes / found.bytes as f64;
        assert!((0.7..1.5).contains(&ratio), "{n}: {ratio}");
        found.bytes as f64
    });
    for pair in bytes.array_windows() {
        let [few, many] = *pair;
        let power = (many / few).log2();
        assert!(power < 2.25, "{power}");
    }
}

#[test]
fn samples_are_the_same_on_any_number_of_threads() {
    let mesh = icosphere(DVec3::ZERO, 0.1, 0.02).unwrap();
    let on = |threads| parallel::on_threads(threads, || sampled(&mesh, 0.005, 0.006).1).unwrap();
    assert!(on(1).has_the_bits_of(&on(2)));
}

/// Long triangles, thin ones, and a mesh that overlaps itself: what is asked for has the bits of
/// what is found before, in whatever order blocks are asked.
#[test]
fn samples_that_are_asked_for_are_those_that_are_found_before() {
    let mut thin = cuboid(CENTER, 2.0 * HALF, 0.5).unwrap();
    let first = thin.positions.len() as u32;
    let ball = icosphere(CENTER, 0.12, 0.03).unwrap();
    let turned = ball.triangles.iter().map(|t| t.map(|v| v + first));
    thin.triangles.extend(turned);
    thin.positions.extend(ball.positions);
    for p in &mut thin.positions {
        *p = DVec3::new(p.x + 0.3 * p.y, p.y - 0.2 * p.z, p.z + 0.1 * p.x);
    }
    let (enclosed, field) = sampled(&thin, 0.01, 0.015);
    let asked = DistanceField::when_asked(Arc::new(enclosed), 0.01, 0.015);
    assert!(asked.heap_bytes() * 4 < field.heap_bytes());
    let middle = CENTER + DVec3::new(0.0, 0.13, 0.0);
    assert_eq!(
        asked.distance(middle).to_bits(),
        field.distance(middle).to_bits()
    );
    assert!(asked.has_the_bits_of(&field));
}

impl DistanceField {
    pub(crate) fn has_the_bits_of(&self, other: &Self) -> bool {
        let all = |field: &Self| -> Vec<u32> {
            let blocks = (0..field.sampled_blocks()).flat_map(|place| field.block(place).to_vec());
            blocks.map(f32::to_bits).collect()
        };
        self.layout == other.layout
            && self.far == other.far
            && self.places == other.places
            && all(self) == all(other)
    }
}

/// The held distance has a slope of √3 or less also where blocks without samples begin.
#[test]
fn the_held_distance_is_continuous() {
    let field = &BOX.1;
    let step = 1e-3;
    for k in 0..40_000 {
        let t = f64::from(k);
        let way = DVec3::new((7.1 * t).sin(), (3.3 * t).sin(), (1.7 * t).sin());
        let p = CENTER + 0.5 * way;
        let q = p + step * DVec3::new((0.3 * t).cos(), (0.7 * t).sin(), (1.1 * t).cos());
        let [one, two] = [p, q].map(|p| field.held(p));
        let most = SLOPE * p.distance(q) + 1e-12;
        assert!(
            (one.value - two.value).abs() <= most,
            "{p}: {one:?} {two:?}"
        );
        if p.distance(q) < one.free {
            assert_eq!(one.value, two.value);
        }
    }
}

/// A grid too fine to be numbered says so, and places that are none are answered.
#[test]
fn too_many_cells_and_places_that_are_none_do_no_harm() {
    let mesh = icosphere(DVec3::ZERO, 0.1, 0.02).unwrap();
    for (cell, fits) in [(1e-3, true), (1e-7, false), (1e-300, false)] {
        let expected = DistanceField::expected(&mesh, cell, 0.006);
        assert_eq!(expected.can_be_numbered(), fits, "{cell}");
    }
    let field = &BALL.1;
    for odd in [DVec3::NAN, DVec3::INFINITY, DVec3::splat(1e300)] {
        assert_eq!(field.clear([DVec3::splat(0.5), odd], 0.001), 0.0, "{odd}");
        assert!(field.normal(odd).is_finite());
    }
}

/// A way through a body whose ends are both far from it is found.
#[test]
fn a_way_through_the_body_is_not_clear() {
    let field = &BALL.1;
    let way = [DVec3::new(-2.0, 0.01, 0.02), DVec3::new(3.0, -0.01, 0.02)];
    let near = field.first_within(way, 0.006).unwrap();
    assert!((near.distance - 0.006).abs() < 1e-5 && near.point.x < 0.0);
    assert!(near.normal.dot(near.point.normalize()) > 0.99);
    let beside = [DVec3::new(-2.0, 0.11, 0.02), DVec3::new(3.0, 0.11, 0.02)];
    assert_eq!(field.first_within(beside, 0.006), None);
}
