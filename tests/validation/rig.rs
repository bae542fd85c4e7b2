//! Helpers for validation cases: cloth without collisions on one rank, led to rest.
//!
//! Rest is found by implicit Euler with long steps, whose numerical damping takes all motion away.

use std::io::BufWriter;

use glam::{DQuat, DVec3};
use weft_runtime::ScopeOptions;
use weft_runtime::comm::solo::Solo;
use weftwork::mesh::{TriMesh, grid, write_obj};
use weftwork::scene::Scene;
use weftwork::step::{Simulation, World};

/// A cloth alone in the world.
#[derive(Clone)]
pub struct Rig {
    /// Lines of the cloth's table before its material: shape, pins.
    pub cloth: String,
    /// Lines of its material.
    pub material: String,
    /// The gravity in m/s².
    pub gravity: DVec3,
    /// The time step in s.
    pub step: f64,
    /// The largest principal strain the cloth bears; one that it does not come to unless said.
    pub limit: f64,
    /// Further lines on contacts and on the solver.
    pub contact: String,
    pub solver: String,
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
            limit: 10.0,
            contact: String::new(),
            solver: String::new(),
            rest: String::new(),
        }
    }

    pub fn gravity(self, gravity: DVec3) -> Self {
        Self { gravity, ..self }
    }

    pub fn step(self, step: f64) -> Self {
        Self { step, ..self }
    }

    pub fn limit(self, limit: f64) -> Self {
        Self { limit, ..self }
    }

    pub fn contact(self, contact: impl Into<String>) -> Self {
        Self {
            contact: contact.into(),
            ..self
        }
    }

    pub fn solver(self, solver: impl Into<String>) -> Self {
        Self {
            solver: solver.into(),
            ..self
        }
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
             time = {{ step = {step:?}, end = {end:?} }}\n\
             [contact]\nself_collision = false\n{contact}\n\
             [solver]\ntolerance = 1e-10\nmax_iterations = 100000\n{solver}\n\
             [[cloth]]\n{cloth}\n[cloth.material]\nstrain_limit = {limit:?}\n{material}\n{rest}\n",
            step = self.step,
            limit = self.limit,
            contact = self.contact,
            solver = self.solver,
            end = 1e6 * self.step,
            cloth = self.cloth,
            material = self.material,
            rest = self.rest,
        );
        let scene = Scene::parse(&text, None, &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
        World::build(&scene).unwrap_or_else(|e| panic!("{e}\n{text}"))
    }

    /// The world with this mesh as its cloth; `cloth` are the other lines of its table.
    pub fn world_of(&self, mesh: &TriMesh) -> World {
        let file = tempfile::Builder::new().suffix(".obj").tempfile().unwrap();
        write_obj(mesh, &mut BufWriter::new(file.as_file())).unwrap();
        let path = file.path().to_str().unwrap();
        let cloth = format!("mesh = '{path}'\n{}", self.cloth);
        let rig = Self {
            cloth,
            ..self.clone()
        };
        rig.world()
    }
}

/// Positions at rest in the numbering of the world's model, starting from `start` of the rest
/// positions.
///
/// Rest is when nothing is faster than `slow` in m/s.
pub fn settle(world: &World, start: impl Fn(DVec3) -> DVec3, slow: f64) -> Vec<DVec3> {
    let mut comm = Solo::new();
    let mut s = Simulation::new(world, &comm, &ScopeOptions::default()).unwrap();
    for x in s.state_mut().0 {
        *x = start(*x);
    }
    let mut fastest = 0.0;
    for _ in 0..MOST_STEPS {
        s.advance(&mut comm).unwrap();
        fastest = s
            .velocities()
            .iter()
            .map(|v| v.length())
            .fold(0.0, f64::max);
        if fastest < slow {
            return s.positions().to_vec();
        }
    }
    panic!("still as fast as {fastest} m/s after {MOST_STEPS} steps");
}

/// The vertices of a model whose rest position suits.
pub fn vertices(world: &World, suits: impl Fn(DVec3) -> bool) -> Vec<usize> {
    let rest = world.model().start();
    (0..rest.len()).filter(|&v| suits(rest[v])).collect()
}

/// The mean over some vertices.
pub fn mean(vertices: &[usize], value: impl Fn(usize) -> f64) -> f64 {
    vertices.iter().map(|&v| value(v)).sum::<f64>() / vertices.len() as f64
}

/// Elastic forces on all vertices in N.
pub fn forces(world: &World, x: &[DVec3]) -> Vec<DVec3> {
    world.model().elastic_forces(x).unwrap()
}

const MOST_STEPS: usize = 10_000;

/// Meshes of a square of 1 m from the origin on, with this many cells along x: by what they are.
pub fn meshes(cells: usize) -> [(&'static str, TriMesh); 6] {
    [
        ("checkerboard", checkerboard([1.0; 2], [cells; 2])),
        ("both diagonals", crossed([1.0; 2], [2 * cells / 3; 2])),
        ("herringbone", herringbone([1.0; 2], [cells; 2])),
        ("irregular", irregular([1.0; 2], [cells; 2])),
        ("equilateral", equilateral([1.0; 2], cells)),
        ("parallel diagonals", parallel([1.0; 2], [cells; 2])),
    ]
}

/// A flat rectangle from the origin on, of squares halved by diagonals that alternate.
pub fn herringbone(size: [f64; 2], cells: [usize; 2]) -> TriMesh {
    let centre = DVec3::new(0.5 * size[0], 0.5 * size[1], 0.0);
    grid(size, cells.map(|n| n + 1), centre, DVec3::ZERO).unwrap()
}

/// A grid whose diagonals alternate along rows and columns: four triangles meet at every other
/// vertex, eight at the rest.
pub fn checkerboard(size: [f64; 2], cells: [usize; 2]) -> TriMesh {
    let mut mesh = parallel(size, cells);
    for k in (0..cells[0] * cells[1]).filter(|k| (k % cells[0] + k / cells[0]) % 2 == 1) {
        let [[a, b, d], [_, _, c]] = [mesh.triangles[2 * k], mesh.triangles[2 * k + 1]];
        mesh.triangles[2 * k] = [a, b, c];
        mesh.triangles[2 * k + 1] = [b, d, c];
    }
    mesh
}

/// Squares that both diagonals cut into four.
pub fn crossed(size: [f64; 2], cells: [usize; 2]) -> TriMesh {
    let mut mesh = parallel(size, cells);
    for k in 0..cells[0] * cells[1] {
        let [[a, b, d], [_, _, c]] = [mesh.triangles[2 * k], mesh.triangles[2 * k + 1]];
        let centre = mesh.positions.len() as u32;
        let ends = [a, d].map(|v| mesh.positions[v as usize]);
        mesh.positions.push(0.5 * (ends[0] + ends[1]));
        mesh.triangles[2 * k] = [a, b, centre];
        mesh.triangles[2 * k + 1] = [b, d, centre];
        mesh.triangles.extend([[d, c, centre], [c, a, centre]]);
    }
    mesh
}

/// A grid whose diagonals are parallel.
pub fn parallel(size: [f64; 2], cells: [usize; 2]) -> TriMesh {
    let mut mesh = herringbone(size, cells);
    for j in 0..cells[1] {
        for i in 0..cells[0] {
            let a = (j * (cells[0] + 1) + i) as u32;
            let up = cells[0] as u32 + 1;
            let (b, c, d) = (a + 1, a + up, a + up + 1);
            let first = 2 * (j * cells[0] + i);
            mesh.triangles[first] = [a, b, d];
            mesh.triangles[first + 1] = [a, d, c];
        }
    }
    mesh
}

/// A flat rectangle from the origin on, with herringbone diagonals and inner vertices moved by up
/// to a third of a cell, always alike.
pub fn irregular(size: [f64; 2], cells: [usize; 2]) -> TriMesh {
    let mut mesh = herringbone(size, cells);
    let cell = DVec3::new(size[0] / cells[0] as f64, size[1] / cells[1] as f64, 0.0);
    let row = cells[0] + 1;
    for (v, p) in mesh.positions.iter_mut().enumerate() {
        let inside = (1..cells[0]).contains(&(v % row)) && (1..cells[1]).contains(&(v / row));
        if inside {
            let t = v as f64;
            *p += cell * DVec3::new((7.0 * t).sin(), (11.0 * t).sin(), 0.0) * 0.3;
        }
    }
    mesh
}

/// A flat rectangle of equilateral triangles with `cells` along x, rows along x.
pub fn equilateral(size: [f64; 2], cells: usize) -> TriMesh {
    let edge = size[0] / cells as f64;
    let rows = (size[1] / (edge * 0.75f64.sqrt())).round() as usize;
    let height = edge * 0.75f64.sqrt();
    let mut mesh = TriMesh::default();
    for j in 0..=rows {
        for i in 0..=cells {
            let shift = if j % 2 == 0 { 0.0 } else { 0.5 };
            mesh.positions.push(DVec3::new(
                (i as f64 + shift) * edge,
                j as f64 * height,
                0.0,
            ));
        }
    }
    let at = |i: usize, j: usize| (j * (cells + 1) + i) as u32;
    for j in 0..rows {
        for i in 0..cells {
            let [a, b, c, d] = [at(i, j), at(i + 1, j), at(i, j + 1), at(i + 1, j + 1)];
            if j % 2 == 0 {
                mesh.triangles.extend([[a, b, c], [b, d, c]]);
            } else {
                mesh.triangles.extend([[a, b, d], [a, d, c]]);
            }
        }
    }
    mesh
}

/// Strain `[ε_xx, ε_yy, γ_xy]` put on a whole irregular sheet of 1 m by 1 m, and the stress in N/m
/// with which its border answers: of the sides towards x and y, `[σ_xx, σ_yy, σ_xy]`. Also the
/// largest force inside, in N.
///
/// `material` are the lines of its table, `weave` the angle of the warp to x in rad.
pub fn homogeneous(material: &str, weave: f64, strain: [f64; 3]) -> ([f64; 3], f64) {
    let (sin, cos) = weave.sin_cos();
    let rig = Rig::new(format!("weave = [{cos:?}, {sin:?}, 0]"), material);
    let world = rig.world_of(&irregular([1.0, 1.0], [6, 6]));
    let [along, across, shear] = strain;
    // A symmetric stretch, turned out of the plane and moved: the corotational law sees no turn.
    let turn = DQuat::from_euler(glam::EulerRot::XYZ, 0.3, 0.8, -0.4);
    let stretch = |p: DVec3| {
        DVec3::new(
            p.x * (1.0 + along) + 0.5 * shear * p.y,
            p.y * (1.0 + across) + 0.5 * shear * p.x,
            0.0,
        )
    };
    let rest = world.model().start();
    let x: Vec<DVec3> = rest
        .iter()
        .map(|&p| turn * stretch(p) + DVec3::ONE)
        .collect();
    let forces: Vec<DVec3> = forces(&world, &x)
        .iter()
        .map(|&f| turn.inverse() * f)
        .collect();
    // The border's forces beyond a cut through the middle; those of the sides that the cut meets
    // cancel.
    let beyond = |axis: fn(DVec3) -> f64| -> DVec3 {
        vertices(&world, |p| axis(p) > 0.5)
            .iter()
            .map(|&v| forces[v])
            .sum()
    };
    let (right, upper) = (-beyond(|p| p.x), -beyond(|p| p.y));
    let inside = |p: DVec3| p.x > 1e-6 && p.y > 1e-6 && p.x < 1.0 - 1e-6 && p.y < 1.0 - 1e-6;
    let free = vertices(&world, inside);
    let largest = free.iter().map(|&v| forces[v].length()).fold(0.0, f64::max);
    ([right.x, upper.y, 0.5 * (right.y + upper.x)], largest)
}
