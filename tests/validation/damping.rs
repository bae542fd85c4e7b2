//! Damping of each mode: a sheet that moves slowly from rest loses, in a short step, the energy `dt
//! · β · 2 W(v)` to the damping of the mode it moves in and nothing to the others; `W(v)` is the
//! elastic energy of the displacement `v`.
//!
//! Source: stiffness-proportional (Kelvin-Voigt) damping, power `vᵀ β K v`, e.g. Clough & Penzien,
//! Dynamics of Structures, § 12.

use glam::DVec3;
use weft_runtime::ScopeOptions;
use weft_runtime::comm::solo::Solo;
use weftwork::step::Simulation;

use super::curve::{Axis, Curve, Series, percent, worst};
use super::rig::Rig;

/// Stretching along the warp, shearing, bending: velocity fields in m/s.
type Mode = (&'static str, fn(DVec3) -> DVec3);

const MODES: [Mode; 3] = [
    ("stretch", |p| DVec3::X * (1e-4 * p.x)),
    ("shear", |p| DVec3::new(p.y, p.x, 0.0) * 1e-4),
    ("bending", |p| DVec3::Z * (1e-2 * p.x * p.x)),
];

const MODELS: [&str; 3] = [
    "stretch = [1000, 400]\nshear = 50\nbending = 1e-3",
    "stretch = 1000\nbending = 1e-3\nbending_model = \"dihedral\"",
    "stretch = 1000\nbending = 1e-3",
];

/// Energy lost in a step by motion in a mode with a damping of 1 ms in another or the same, over
/// what is known.
fn loss(material: &str, mode: usize, damped: usize) -> f64 {
    let step = 1e-6;
    let beta = |k: usize| if k == damped { 1e-3 } else { 0.0 };
    let material = format!(
        "density = 0.15\n{material}\ndamping_stretch = {}\ndamping_shear = {}\ndamping_bending = {}",
        beta(0),
        beta(1),
        beta(2)
    );
    let world = Rig::new("grid = { size = 1, vertices = 9 }", material)
        .step(step)
        .world();
    let model = world.model();
    let field = MODES[mode].1;
    let moved: Vec<DVec3> = model.start().iter().map(|&p| p + field(p)).collect();
    let elastic = if mode == 2 {
        // This is of bending alone: displaced so far, the sheet is stretched too.
        let at = |v: [u32; 4]| v.map(|v| moved[v as usize]);
        let quadratic = model.quadratic();
        let hinges = quadratic.hinges.iter().map(|h| h.energy(at(h.vertices)));
        let folds = model.folds().iter().map(|f| f.energy(at(f.vertices)));
        hinges.sum::<f64>() + folds.sum::<f64>()
    } else {
        model.elastic_energy(&moved).unwrap()
    };
    let mut comm = Solo::new();
    let mut s = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
    let rest = model.start().to_vec();
    for (v, &p) in s.state_mut().1.iter_mut().zip(&rest) {
        *v = field(p);
    }
    let kinetic = |v: &[DVec3]| -> f64 {
        let terms = model.masses().iter().zip(v);
        terms.map(|(m, v)| 0.5 * m * v.length_squared()).sum()
    };
    let before = kinetic(s.velocities());
    s.advance(&mut comm).unwrap();
    (before - kinetic(s.velocities())) / (step * 1e-3 * 2.0 * elastic)
}

pub fn curves() -> Vec<Curve> {
    let points: Vec<[f64; 2]> = (0..3).map(|k| [k as f64, loss(MODELS[0], k, k)]).collect();
    let pairs: Vec<(f64, f64)> = points.iter().map(|p| (p[1], 1.0)).collect();
    vec![Curve {
        title: "Power lost to the damping of each mode".into(),
        x: Axis::linear("mode: 0 stretching, 1 shearing, 2 bending"),
        y: Axis::linear("energy lost over β vᵀKv dt"),
        found: format!("power within {}", percent(worst(pairs))),
        series: vec![
            Series::known("Kelvin-Voigt", [[0.0, 1.0], [2.0, 1.0]]),
            Series::measured("woven sheet", points),
        ],
    }]
}

#[test]
fn each_mode_has_its_own_damping() {
    for material in MODELS {
        for (mode, (name, _)) in MODES.iter().enumerate() {
            for (damped, (other, _)) in MODES.iter().enumerate() {
                let found = loss(material, mode, damped);
                let expected = f64::from(u8::from(mode == damped));
                assert!(
                    (found - expected).abs() < 1e-2,
                    "{material}: {name} damped by that of {other}: {found}"
                );
            }
        }
    }
}
