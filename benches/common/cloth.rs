//! The system that solvers are compared on: a step of 10 ms of a sheet of 1 m held at two corners,
//! rippled and in motion.

use std::f64::consts::PI;

use glam::{DMat3, DVec3, EulerRot};
use weftwork::scene::Scene;
use weftwork::step::{Simulation, World};

/// A step of a rippled sheet with this many vertices along a side.
pub(crate) fn cloth(side: u32) -> World {
    let text = format!(
        r#"
        time = {{ step = "10 ms", end = "1 s" }}
        [[cloth]]
        grid = {{ size = "1 m", vertices = {side} }}
        pins = [{{ nearest = [-0.5, -0.5, 0] }}, {{ nearest = [0.5, -0.5, 0] }}]
        [cloth.material]
        density = "0.15 kg/m2"
        stretch = "1000 N/m"
        poisson = 0.3
        bending = "1e-5 N m"
        damping_stiffness = "1 ms"
        [contact]
        self_collision = false
        [solver]
        preconditioner = "multilevel"
        "#
    );
    let scene = Scene::parse(&text, None, &[]).expect("a scene");
    World::build(&scene).expect("a sheet")
}

/// Bends a sheet to ripples along x without stretching it, then strains it a little and turns it,
/// so that all entries of the blocks fill; and sets it in motion.
pub(crate) fn ripple(simulation: &mut Simulation<'_>) {
    const STEPS: usize = 10_000;
    let slope = |u: f64| 0.6 * (6.0 * PI * u).sin();
    let mut bent = vec![(0.0, 0.0)];
    for i in 0..STEPS {
        let (x, z) = bent[i];
        let angle = slope((i as f64 + 0.5) / STEPS as f64);
        bent.push((
            x + angle.cos() / STEPS as f64,
            z + angle.sin() / STEPS as f64,
        ));
    }
    let turn = DMat3::from_euler(EulerRot::XYZ, 0.5, -0.4, 0.3);
    let (positions, velocities) = simulation.state_mut();
    for (x, v) in positions.iter_mut().zip(velocities) {
        let (u, w) = (x.x + 0.5, x.y + 0.5);
        let at = (u * STEPS as f64).clamp(0.0, STEPS as f64 - 1.0);
        let (before, after) = (bent[at as usize], bent[at as usize + 1]);
        let share = at.fract();
        let along = before.0 + share * (after.0 - before.0);
        let up = before.1 + share * (after.1 - before.1);
        let strained = DVec3::new(
            along + 0.003 * (4.0 * PI * w).sin() * (PI * u).sin(),
            w + 0.003 * (2.0 * PI * u + 0.3).sin(),
            up,
        );
        *x = turn * strained;
        *v = turn
            * DVec3::new(
                0.2 * (2.0 * PI * w).sin(),
                0.1 * (2.0 * PI * u).cos(),
                -0.5 * u * w,
            );
    }
}
