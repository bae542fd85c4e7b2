//! What exams share: cloth without collisions on one rank, led to rest.
//!
//! Rest is found by implicit Euler with long steps, whose numerical damping takes all motion away.

use std::io::BufWriter;

use glam::DVec3;
use weft_runtime::ScopeOptions;
use weft_runtime::comm::solo::Solo;
use weftwork::mesh::{TriMesh, write_obj};
use weftwork::scene::Scene;
use weftwork::step::{Simulation, World};

/// A cloth alone in the world.
pub struct Rig {
    /// Lines of the cloth's table before its material: shape, pins.
    pub cloth: String,
    /// Lines of its material.
    pub material: String,
    /// In m/s².
    pub gravity: DVec3,
    /// In s.
    pub step: f64,
    /// Lines after the cloth.
    pub rest: String,
}

impl Rig {
    /// A cloth without gravity, in steps of 1 s.
    pub fn new(cloth: impl Into<String>, material: impl Into<String>) -> Self {
        Self {
            cloth: cloth.into(),
            material: material.into(),
            gravity: DVec3::ZERO,
            step: 1.0,
            rest: String::new(),
        }
    }

    pub fn gravity(self, gravity: DVec3) -> Self {
        Self { gravity, ..self }
    }

    pub fn step(self, step: f64) -> Self {
        Self { step, ..self }
    }

    pub fn rest(self, rest: impl Into<String>) -> Self {
        Self {
            rest: rest.into(),
            ..self
        }
    }

    pub fn world(&self) -> World {
        let [x, y, z] = self.gravity.to_array();
        let text = format!(
            "gravity = [{x}, {y}, {z}]\n\
             time = {{ step = {step:?}, end = 1e6 }}\n\
             [contact]\nself_collision = false\n\
             [solver]\ntolerance = 1e-10\nmax_iterations = 100000\n\
             [[cloth]]\n{cloth}\n[cloth.material]\nstrain_limit = 10\n{material}\n{rest}\n",
            step = self.step,
            cloth = self.cloth,
            material = self.material,
            rest = self.rest,
        );
        let scene = Scene::parse(&text, None, &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
        World::build(&scene).unwrap_or_else(|e| panic!("{e}\n{text}"))
    }

    /// The same with this mesh as its cloth; `cloth` are the other lines of its table.
    pub fn world_of(&self, mesh: &TriMesh) -> World {
        let file = tempfile::Builder::new().suffix(".obj").tempfile().unwrap();
        write_obj(mesh, &mut BufWriter::new(file.as_file())).unwrap();
        let path = file.path().to_str().unwrap();
        let cloth = format!("mesh = '{path}'\n{}", self.cloth);
        let rig = Self {
            cloth,
            material: self.material.clone(),
            rest: self.rest.clone(),
            ..*self
        };
        rig.world()
    }
}

/// Positions at rest in the numbering of the world's model, starting from `start` of the rest positions.
///
/// Rest is when nothing is faster than `slow` in m/s.
pub fn settle(world: &World, start: impl Fn(DVec3) -> DVec3, slow: f64) -> Vec<DVec3> {
    let mut comm = Solo::new();
    let mut s = Simulation::new(world, &comm, &ScopeOptions::default()).unwrap();
    for x in s.state_mut().0 {
        *x = start(*x);
    }
    for _ in 0..MOST_STEPS {
        s.advance(&mut comm).unwrap();
        let fastest = s
            .velocities()
            .iter()
            .map(|v| v.length())
            .fold(0.0, f64::max);
        if fastest < slow {
            return s.positions().to_vec();
        }
    }
    panic!("does not come to rest within {MOST_STEPS} steps");
}

/// The vertices of a model whose rest position suits.
pub fn vertices(world: &World, suits: impl Fn(DVec3) -> bool) -> Vec<usize> {
    let rest = world.model().rest();
    (0..rest.len()).filter(|&v| suits(rest[v])).collect()
}

/// The mean over some vertices.
pub fn mean(vertices: &[usize], value: impl Fn(usize) -> f64) -> f64 {
    vertices.iter().map(|&v| value(v)).sum::<f64>() / vertices.len() as f64
}

/// Elastic forces of the membrane on all vertices in N.
pub fn forces(world: &World, x: &[DVec3]) -> Vec<DVec3> {
    let model = world.model();
    let mut forces = vec![DVec3::ZERO; x.len()];
    for (t, element) in model.triangles().iter().zip(model.membranes()) {
        let deformation = element.deform(t.map(|v| x[v as usize])).unwrap();
        for (&v, force) in t.iter().zip(element.forces(&deformation)) {
            forces[v as usize] += force;
        }
    }
    forces
}

const MOST_STEPS: usize = 5000;
