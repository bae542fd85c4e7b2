//! A balloon: a sphere of cloth with a pressure `p` inside, `p = 2 T/r` with the tension `T`, the
//! force per width as it is.
//!
//! Cloth that is stretched by `e` in all directions bears `E h e/(1 − ν)` per width at rest, which
//! has become `1 + e` times as wide: `p r₀ (1 + e)² = 2 E h e/(1 − ν)`.
//!
//! Source: Young and Laplace; plane stress, e.g. Timoshenko & Goodier, § 11.

use glam::DVec3;
use weft_runtime::ScopeOptions;
use weft_runtime::comm::solo::Solo;
use weftwork::mesh::{TriMesh, icosphere};
use weftwork::scene::Scene;
use weftwork::step::{Simulation, World};

use super::rig::Rig;

const RADIUS: f64 = 0.1;
const STRETCH: f64 = 1000.0;
const POISSON: f64 = 0.3;

fn rig(pressure: f64) -> Rig {
    let material = format!(
        "density = 0.15\nstretch = {STRETCH}\npoisson = {POISSON}\nbending = 1e-6\ndamping_stiffness = \"10 ms\""
    );
    let cloth = format!("pressure = {pressure}\nvelocity = [0.5, 0, 0]");
    Rig::new(cloth, material).step(0.005)
}

fn volume(world: &World, positions: &[DVec3]) -> f64 {
    let mesh = TriMesh {
        positions: positions.to_vec(),
        triangles: world.model().triangles().to_vec(),
    };
    mesh.volume()
}

#[test]
fn a_balloon_grows_until_its_tension_bears_the_pressure() {
    let ball = icosphere(DVec3::ZERO, RADIUS, 0.015).unwrap();
    for strain in [0.02, 0.1] {
        let tension = STRETCH * strain / (1.0 - POISSON);
        let pressure = 2.0 * tension / (RADIUS * (1.0_f64 + strain).powi(2));
        let world = rig(pressure).world_of(&ball);
        let mut comm = Solo::new();
        let mut s = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
        let before = volume(&world, s.positions());
        for _ in 0..200 {
            s.advance(&mut comm).unwrap();
        }
        let grown = (volume(&world, s.positions()) / before).cbrt() - 1.0;
        assert!((grown / strain - 1.0).abs() < 0.01, "{strain}: {grown}");
        // It is pushed nowhere.
        let terms = world.model().masses().iter().zip(s.velocities());
        let momentum: DVec3 = terms.map(|(m, v)| *v * *m).sum();
        let mass: f64 = world.model().masses().iter().sum();
        let drift = momentum / mass - DVec3::X * 0.5;
        assert!(drift.length() < 1e-8, "{drift}");
    }
}

#[test]
fn only_what_is_closed_holds_a_pressure() {
    let open = "[[cloth]]\npressure = \"100 Pa\"\ngrid = { size = 0.2, vertices = 5 }\n\
                material = { density = 0.15, stretch = 1000, bending = 1e-5 }\n\
                [time]\nstep = 0.005\nend = 1";
    let error = Scene::parse(open, None, &[]).unwrap_err().to_string();
    assert!(error.contains("pressure"), "{error}");
    let mut ball = icosphere(DVec3::ZERO, RADIUS, 0.05).unwrap();
    ball.triangles.pop();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ball.obj");
    let mut file = std::fs::File::create(&path).unwrap();
    weftwork::mesh::write_obj(&ball, &mut file).unwrap();
    let text = format!(
        "time = {{ step = 0.005, end = 1 }}\n[[cloth]]\nname = \"ball\"\npressure = \"100 Pa\"\nmesh = '{}'\n\
         material = {{ density = 0.15, stretch = 1000, bending = 1e-5 }}\n",
        path.to_str().unwrap()
    );
    let scene = Scene::parse(&text, None, &[]).unwrap();
    let error = World::build(&scene).unwrap_err().to_string();
    assert!(
        error.contains("`ball` has a `pressure`") && error.contains("open edges"),
        "{error}"
    );
}
