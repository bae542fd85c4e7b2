//! Cloth that slides over a body: friction as a whole follows Coulomb's law in every step.

use super::*;

/// A ball of 25 cm, with a friction of 0.05, flips a curtain on two pins, and pushes at 2 m/s. The
/// curtain is taut, and its vertices slide along the ball now this way and now that; some stick at
/// the start of each step. They must not hold the curtain as strongly as that takes.
#[test]
fn friction_on_a_taut_sheet_stays_within_coulombs_law() {
    const FRICTION: f64 = 0.05;
    const CENTER: DVec3 = DVec3::new(0.0, 0.0, 0.27);
    const VELOCITY: DVec3 = DVec3::new(2.0, 0.0, 0.5 / 0.6);
    let world = world(&format!(
        "time = {{ step = \"2 ms\", end = 1 }}\npartition.patches = 8\n\
         [[cloth]]\ngrid = {{ size = [1.3, 0.8], vertices = [52, 32] }}\n\
         rotation = [\"90 deg\", 0, \"90 deg\"]\ncenter = [0.4, 0, 0.52]\n\
         pins = [{{ nearest = [0.4, -0.65, 0.92] }}, {{ nearest = [0.4, 0.65, 0.92] }}]\n\
         material = {{ density = 0.15, stretch = 1000, bending = 1e-5, \
         damping_stiffness = \"2 ms\", strain_limit = 0.06 }}\n\
         [[body]]\nshape = \"sphere\"\nsurface = \"analytic\"\ncenter = [0, 0, {}]\n\
         radius = 0.25\nfriction = {FRICTION}\n\
         motion = {{ keyframes = [{{ time = 0 }}, {{ time = 0.6, translation = [1.2, 0, 0.5] }}] }}\n\
         [contact]\nthickness = \"4 mm\"\n",
        CENTER.z
    ));
    let mut comm = Solo::new();
    let mut simulation = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
    let (mut compared, mut worst) = (0, 0.0_f64);
    for step in 1..=110 {
        simulation.advance(&mut comm).unwrap();
        let forces = simulation
            .gather_contact_forces(&mut comm)
            .unwrap()
            .unwrap();
        let center = CENTER + VELOCITY * (2e-3 * f64::from(step));
        let (mut pushes, mut friction) = (0.0, 0.0);
        for (force, x) in forces.iter().zip(simulation.positions()) {
            let normal = (*x - center).normalize();
            let push = force.dot(normal);
            pushes += push.max(0.0);
            friction += (*force - normal * push).length();
        }
        // Where the ball hardly touches, impulses of landing vertices are all there is.
        if pushes > 0.1 {
            compared += 1;
            worst = worst.max(friction / pushes);
        }
    }
    assert!(compared > 50, "the ball pushes in {compared} steps");
    assert!(worst < 3.0 * FRICTION, "friction is {worst} of the pushes");
}
