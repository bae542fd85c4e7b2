//! Cloth as collisions meet it at their worst, by formulas: hung over a ball, and crumpled into
//! many layers.
//!
//! Both are images of a square sheet of 2 m and of its motion in one step, the same on every
//! machine that has IEEE arithmetic and the same sine. *Draped*: over a geodesic ball, nowhere
//! touching it, 0.1 to 0.9 of a cell away, about to fall on it. *Crumpled*: folded into eight
//! layers, these rolled up and the roll bent; layers lie 0.12 to 0.92 of a cell apart, and as all
//! that follows the folding maps space one to one, none crosses another.

use std::f64::consts::{PI, TAU};

use glam::DVec3;
use weftwork::mesh::{TriMesh, grid, icosphere};

/// Side of the sheet in m.
const SIDE: f64 = 2.0;
/// Radius of the ball in m.
const RADIUS: f64 = 0.6;
/// Layers of the crumpled sheet before it is rolled.
const LAYERS: f64 = 8.0;

/// A sheet in motion.
pub(crate) struct Cloth {
    /// Flat, with its triangles.
    pub(crate) rest: TriMesh,
    /// Positions at the start of the step in m.
    pub(crate) x: Vec<DVec3>,
    /// And at its end.
    pub(crate) end: Vec<DVec3>,
    /// Distance of neighbours at rest in m.
    pub(crate) cell: f64,
}

impl Cloth {
    /// Hung over the ball, with this many vertices along a side; in a step it falls by half a cell.
    pub(crate) fn draped(side: usize) -> Self {
        let fall = DVec3::new(0.1, 0.05, -0.5);
        Self::shaped(side, |p, cell| {
            let x = hang(p, cell);
            (x, x + fall * cell)
        })
    }

    /// Crumpled; in a step what bends the roll moves on, by about a third of a cell.
    pub(crate) fn crumpled(side: usize) -> Self {
        Self::shaped(side, |p, cell| {
            let rolled = roll(fold(p, cell), cell);
            (bend(rolled, 0.0), bend(rolled, 12.0 * cell))
        })
    }

    fn shaped(side: usize, shape: impl Fn(DVec3, f64) -> (DVec3, DVec3)) -> Self {
        let rest = grid([SIDE; 2], [side; 2], DVec3::ZERO, DVec3::ZERO).expect("a grid");
        let cell = SIDE / (side - 1) as f64;
        let (x, end) = rest.positions.iter().map(|&p| shape(p, cell)).unzip();
        Self { rest, x, end, cell }
    }
}

/// The ball, its icosahedron's faces cut into `n²` triangles.
pub(crate) fn ball(n: u32) -> TriMesh {
    // The least length that asks for no more than n cuts; the centres of faces are what pushing out
    // stretches most.
    let (edge, inradius) = (1.051_462_224_238_267_2, 0.794_654_472_291_766_1);
    let length = RADIUS * edge / inradius / f64::from(n);
    let ball = icosphere(DVec3::ZERO, RADIUS, length * (1.0 + 1e-9)).expect("a ball");
    assert_eq!(ball.triangles.len(), 20 * (n * n) as usize);
    ball
}

/// Lays the sheet over the upper part of the ball; what is farther out hangs down in nine folds.
fn hang(p: DVec3, cell: f64) -> DVec3 {
    /// The angle from the top of the ball, in radians, at which the cloth begins to hang.
    const BRIM: f64 = 80.0 * PI / 180.0;
    let ripple = (14.0 * p.x + 0.3).sin() * (17.0 * p.y + 1.1).sin();
    let height = RADIUS + cell * (0.5 + 0.4 * ripple);
    let (way, around) = (p.x.hypot(p.y), p.y.atan2(p.x));
    let down = (way / RADIUS).min(BRIM);
    let below = (way - BRIM * RADIUS).max(0.0);
    let folds = 1.0 + 0.2 * (3.0 * below).tanh() * (1.0 + (9.0 * around).cos());
    let out = height * down.sin() * folds + 0.25 * below;
    DVec3::new(
        out * around.cos(),
        out * around.sin(),
        height * down.cos() - 0.9 * below,
    )
}

/// Thickness of the folded stack in m, measured between the mean heights of its outer layers.
fn stack(cell: f64) -> f64 {
    (LAYERS - 1.0) * cell
}

/// Folds the sheet along x: straight legs, one cell apart, joined by half circles; then presses the
/// stack unevenly.
fn fold(p: DVec3, cell: f64) -> DVec3 {
    let (radius, turn) = (0.5 * cell, 0.5 * PI * cell);
    let leg = (SIDE - (LAYERS - 1.0) * turn) / LAYERS;
    let (s, y) = (p.x + 0.5 * SIDE, p.y + 0.5 * SIDE);
    let layer = (s / (leg + turn)).floor().min(LAYERS - 1.0);
    let along = s - layer * (leg + turn);
    let angle = ((along - leg) / radius).max(0.0);
    let forth = along.min(leg) + radius * angle.sin();
    let x = if layer % 2.0 == 0.0 {
        forth
    } else {
        leg - forth
    };
    let z = layer * cell + radius * (1.0 - angle.cos()) - 0.5 * stack(cell);
    // Between 0.12 and 0.92, the same along every vertical: the order of layers stays.
    let press = 0.52 + 0.4 * (23.0 * x).sin() * (11.0 * y + 0.7).sin();
    DVec3::new(x, y, z * press)
}

/// Rolls the stack up along y, on a spiral of Archimedes whose turns leave room for it.
fn roll(p: DVec3, cell: f64) -> DVec3 {
    let pitch = stack(cell) + 1.2 * cell;
    let (start, growth) = (1.5 * pitch + 0.02, pitch / TAU);
    // The angle after the length y, that of a circle whose radius grows with the angle.
    let angle = ((start * start + 2.0 * growth * p.y).sqrt() - start) / growth;
    let out = start + growth * angle + p.z;
    DVec3::new(p.x, out * angle.cos(), out * angle.sin())
}

/// Bends space, by so little that no two points meet.
fn bend(p: DVec3, time: f64) -> DVec3 {
    let by = DVec3::new(
        (9.0 * p.y + time).sin(),
        (11.0 * p.z + 0.4).sin(),
        (7.0 * p.x + 1.3 + time).sin(),
    );
    p + by * (0.02 + 0.004 * time)
}
