//! Cloth that starts through cloth, in whole simulations.

use std::collections::BTreeSet;
use std::f64::consts::FRAC_PI_2;
use std::fmt::Write as _;

use tempfile::TempDir;
use weft_runtime::ScopeOptions;
use weft_runtime::comm::Comm;
use weft_runtime::comm::solo::Solo;
use weft_runtime::comm::threads::launch;

use super::*;
use crate::collide::audit::crossings;
use crate::mesh::{TriMesh, grid};
use crate::output::StateHash;
use crate::run::hash_of_replica;
use crate::scene::Scene;
use crate::step::Simulation;

const MATERIAL: &str =
    "material = { density = 0.15, stretch = 1000, bending = 1e-5, damping_stiffness = 0.002 }\n";

/// A scene of meshes and of other text.
struct Made {
    folder: TempDir,
    text: String,
}

impl Made {
    fn new(more: &str) -> Self {
        let text = format!(
            "time = {{ step = 0.002, end = 1 }}\ngravity = [0, 0, 0]\npartition.patches = 16\n\
             start.crossings = \"keep\"\n{more}\n"
        );
        Self {
            folder: tempfile::tempdir().unwrap(),
            text,
        }
    }

    fn mesh(mut self, name: &str, mesh: &TriMesh) -> Self {
        let mut obj = String::new();
        for p in &mesh.positions {
            writeln!(obj, "v {} {} {}", p.x, p.y, p.z).unwrap();
        }
        for [a, b, c] in &mesh.triangles {
            writeln!(obj, "f {} {} {}", a + 1, b + 1, c + 1).unwrap();
        }
        let path = self.folder.path().join(name).with_extension("obj");
        std::fs::write(&path, obj).unwrap();
        writeln!(
            self.text,
            "[[cloth]]\nname = \"{name}\"\nmesh = {path:?}\n{MATERIAL}"
        )
        .unwrap();
        self
    }

    /// A square sheet of this many vertices along a side, 1 cm apart.
    fn sheet(mut self, name: &str, side: usize, center: [f64; 3], turn: [f64; 3]) -> Self {
        let length = 0.01 * (side - 1) as f64;
        writeln!(
            self.text,
            "[[cloth]]\nname = \"{name}\"\ngrid = {{ size = {length}, vertices = {side} }}\n\
             center = {center:?}\nrotation = {turn:?}\n{MATERIAL}"
        )
        .unwrap();
        self
    }

    fn text(mut self, text: &str) -> Self {
        self.text += text;
        self
    }

    fn world(&self) -> World {
        World::build(&Scene::parse(&self.text, None, &[]).unwrap()).unwrap()
    }
}

/// A sheet with two tips through the one below it.
fn tips() -> Made {
    let mut above = grid([0.19; 2], [20; 2], DVec3::Z * 0.01, DVec3::ZERO).unwrap();
    for p in &mut above.positions {
        for tip in [-0.045, 0.045] {
            let away = (*p - DVec3::new(tip, 0.0, p.z)).length();
            p.z -= 0.03 * (1.0 - away / 0.03).max(0.0);
        }
    }
    Made::new("")
        .sheet("below", 20, [0.0013, 0.0017, 0.0], [0.0; 3])
        .mesh("above", &above)
}

/// An upright sheet whose lower part is below a level one; the curve in which they cross ends at
/// borders.
fn crossed() -> Made {
    Made::new("")
        .sheet("level", 16, [0.0013, 0.0017, 0.0], [0.0; 3])
        .sheet("upright", 16, [0.02, 0.0, 0.0421], [FRAC_PI_2, 0.1, 0.2])
}

/// Sheets that slit each other like cards.
fn slit() -> Made {
    Made::new("")
        .sheet("level", 12, [-0.0373, 0.0017, 0.0], [0.0; 3])
        .sheet("upright", 12, [0.035, 0.0, 0.0013], [FRAC_PI_2, 0.0, 0.0])
}

/// A strip that is bent over and goes through itself.
fn fold() -> Made {
    let mut strip = grid([0.4, 0.08], [41, 9], DVec3::ZERO, DVec3::ZERO).unwrap();
    for p in &mut strip.positions {
        let (s, radius) = (p.x + 0.2 - 0.12, 0.0413);
        if s > 0.0 {
            let angle = (s / radius).min(FRAC_PI_2 * 3.0);
            let left = s - angle * radius;
            p.x = -0.08 + radius * angle.sin();
            p.z = radius * (1.0 - angle.cos()) - left;
        }
        p.x += 0.0013 * p.y;
        p.y *= if p.z < 0.0 { 0.8 } else { 1.0 };
    }
    Made::new("").mesh("strip", &strip)
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
struct Ran {
    /// The pairs that crossed at the start.
    pairs: usize,
    /// The time in s after which all is free.
    free_after: Option<f64>,
    /// The kept vertices after each step.
    sizes: Vec<usize>,
    hash: StateHash,
    x: Vec<DVec3>,
}

/// Takes steps, and looks at each state: nothing crosses that is not kept, and what is kept only
/// becomes less.
fn run(world: &World, comm: &mut dyn Comm, count: u64) -> Ran {
    steps(world, comm, (count, false))
}

/// Takes this number of steps, or some more than it takes to be free.
fn steps(world: &World, comm: &mut dyn Comm, (count, until_free): (u64, bool)) -> Ran {
    let mut simulation = Simulation::new(world, comm, &ScopeOptions::default()).unwrap();
    let old = world.tree().new_to_old();
    let triangles = world.model().triangles();
    let mut ran = Ran {
        pairs: crossings(world.model().start(), triangles).len(),
        free_after: None,
        sizes: Vec::new(),
        hash: hash_of_replica(world, &simulation),
        x: Vec::new(),
    };
    let beside = |kept: &[[u32; 2]]| -> BTreeSet<[u32; 2]> {
        kept.iter().map(|[v, of]| [*v, of >> 1]).collect()
    };
    let mut before = beside(&simulation.kept());
    assert!(ran.pairs == 0 || !before.is_empty());
    for _ in 0..count {
        let certified = simulation.advance(comm).unwrap().certified;
        let kept = beside(&simulation.kept());
        assert!(kept.is_subset(&before), "step {}", simulation.step());
        let vertices: BTreeSet<u32> = kept.iter().map(|[v, _]| *v).collect();
        assert_eq!(certified.kept, vertices.len() as u64);
        for (edge, face) in crossings(simulation.positions(), triangles) {
            let is_kept = kept.iter().any(|&[v, of]| {
                edge.iter().any(|&e| old[e as usize] == v)
                    && (triangles[face as usize].iter())
                        .any(|&c| kept.contains(&[old[c as usize], of ^ 1]))
            });
            assert!(is_kept, "step {}: {edge:?} {face}", simulation.step());
        }
        if kept.is_empty() && ran.free_after.is_none() {
            ran.free_after = Some(simulation.time());
        }
        ran.sizes.push(vertices.len());
        before = kept;
        let after = ran.free_after.map(|time| time + 0.02);
        if until_free && after.is_some_and(|after| simulation.time() > after) {
            break;
        }
    }
    assert_eq!(
        crossings(simulation.positions(), triangles).is_empty(),
        ran.free_after.is_some()
    );
    ran.hash = hash_of_replica(world, &simulation);
    ran.x = world.original_order(simulation.positions());
    ran
}

fn is_free_within_a_second(made: &Made, what: &str) -> Ran {
    let world = made.world();
    let ran = steps(&world, &mut Solo::new(), (500, true));
    let free = ran.free_after.is_some_and(|time| time <= 1.0);
    assert!(
        ran.pairs > 0 && free,
        "{what}: {} pairs, {:?}, {:?}",
        ran.pairs,
        ran.free_after,
        ran.sizes
    );
    ran
}

#[test]
fn tips_through_a_sheet_are_free_within_a_second() {
    let ran = is_free_within_a_second(&tips(), "tips");
    // The sheet with the tips is above the other one, all of it near to where it was.
    let (below, above) = ran.x.split_at(400);
    let mean = |x: &[DVec3]| x.iter().sum::<DVec3>().z / x.len() as f64;
    assert!(mean(above) > mean(below));
    assert!(ran.x.iter().all(|x| x.length() < 0.5), "{:?}", ran.x);
}

#[test]
fn sheets_that_cross_from_border_to_border_are_free_within_a_second() {
    is_free_within_a_second(&crossed(), "crossed");
}

#[test]
fn sheets_that_slit_each_other_are_free_within_a_second() {
    is_free_within_a_second(&slit(), "slit");
}

#[test]
fn a_strip_through_itself_is_free_within_a_second() {
    is_free_within_a_second(&fold(), "fold");
}

/// A sheet that lies beside what is pulled apart, and is pushed by it, is never crossed.
#[test]
fn a_third_sheet_is_never_crossed() {
    let near = crossed().sheet("third", 16, [0.02, 0.0, 0.15], [0.05, 0.0, 0.0]);
    let near = near.sheet("fourth", 16, [0.0, 0.0, -0.045], [0.0; 3]);
    let ran = is_free_within_a_second(&near, "with others");
    let alone = is_free_within_a_second(&crossed(), "alone");
    assert_eq!(ran.pairs, alone.pairs);
    // A sheet that is far away stays, but for what the solve leaves.
    let far = crossed().sheet("far", 16, [0.0, 0.0, -5.0], [0.0; 3]);
    let world = far.world();
    let ran = run(&world, &mut Solo::new(), 30);
    let rest = world.original_order(world.model().start());
    let moved = ran
        .x
        .iter()
        .zip(&rest)
        .skip(512)
        .map(|(x, rest)| x.distance(*rest));
    assert!(moved.fold(0.0, f64::max) < 1e-6);
}

#[test]
fn ranks_and_resumed_runs_end_with_one_state() {
    let world = slit().world();
    let whole = run(&world, &mut Solo::new(), 14);
    assert!(whole.sizes[4] > 0, "free before it is resumed");
    for ranks in [2, 3, 5, 16] {
        for of_rank in launch(ranks, |comm| run(&world, comm, 14)).unwrap() {
            assert!(of_rank == whole, "{ranks} ranks");
        }
    }
    let mut comm = Solo::new();
    let options = ScopeOptions::default();
    let mut first = Simulation::new(&world, &comm, &options).unwrap();
    for _ in 0..5 {
        first.advance(&mut comm).unwrap();
    }
    let saved = first.gather_state(&mut comm).unwrap().unwrap();
    assert_eq!(saved.kept, first.kept());
    for ranks in [1, 3] {
        let ends = launch(ranks, |comm| {
            let mut again = Simulation::new(&world, comm, &options).unwrap();
            again.restore(&saved).unwrap();
            for _ in 5..14 {
                again.advance(comm).unwrap();
            }
            hash_of_replica(&world, &again)
        });
        assert!(
            ends.unwrap().iter().all(|end| *end == whole.hash),
            "{ranks}"
        );
    }
}

#[test]
fn all_integrators_pull_apart() {
    for solver in [
        "solver.integrator = \"bdf2\"",
        "solver.integrator = \"newmark\"",
    ] {
        let mut made = tips();
        made.text = format!("{solver}\n{}", made.text);
        is_free_within_a_second(&made, solver);
    }
}

#[test]
fn pulling_tangles_apart_keeps_momentum() {
    let world = crossed().world();
    let mut comm = Solo::new();
    let mut simulation = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
    for _ in 0..20 {
        simulation.advance(&mut comm).unwrap();
        let v = simulation.velocities().iter();
        let momentum: DVec3 = v.zip(world.model().masses()).map(|(v, m)| *v * *m).sum();
        // Solves leave a residual; what is given to either side is a million times as much.
        assert!(momentum.length() < 1e-9, "{momentum}");
    }
}

#[test]
fn cloth_that_starts_in_a_body_is_refused_all_the_same() {
    let made = Made::new("")
        .sheet("sheet", 20, [0.0013, 0.0017, 0.0], [0.0; 3])
        .text("[[body]]\nshape = \"sphere\"\ncenter = [0, 0, -0.04]\nradius = 0.05\n");
    let scene = Scene::parse(&made.text, None, &[]).unwrap();
    let told = World::build(&scene).unwrap_err().to_string();
    assert!(
        told.contains("inside body") && told.contains("move one"),
        "{told}"
    );
}

/// The default refuses, and names the key that would keep.
#[test]
fn cloth_that_starts_through_cloth_is_refused_unless_it_is_kept() {
    let text = crossed().text.replace("start.crossings = \"keep\"", "");
    let told = World::build(&Scene::parse(&text, None, &[]).unwrap())
        .unwrap_err()
        .to_string();
    assert!(told.contains("start.crossings = \"keep\""), "{told}");
    let bad = crossed().text.replace("\"keep\"", "\"kepe\"");
    let told = Scene::parse(&bad, None, &[]).unwrap_err().to_string();
    assert!(
        told.contains("start.crossings") && told.contains("keep"),
        "{told}"
    );
}

#[test]
fn scenes_that_keep_nothing_are_as_they_were() {
    let text = |key: &str| {
        format!(
            "time = {{ step = 0.002, end = 1 }}\npartition.patches = 4\n{key}\n[[cloth]]\n\
             grid = {{ size = 0.2, vertices = 12 }}\n{MATERIAL}"
        )
    };
    let end = |key| {
        let world = World::build(&Scene::parse(&text(key), None, &[]).unwrap()).unwrap();
        run(&world, &mut Solo::new(), 10).hash
    };
    assert_eq!(end("start.crossings = \"keep\""), end(""));
}
