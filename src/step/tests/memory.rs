//! The memory that ranks hold, counted part by part.

use weft_partition::Quality;

use super::*;
use crate::step::{MemoryPart, SET_UP, total};

const SHEET: &str = "pins = [{ nearest = [-0.5, -0.5, 0] }]";

/// The parts of each rank after a few steps.
fn after_steps(world: &World, ranks: usize, steps: usize) -> Vec<Vec<MemoryPart>> {
    let scope = ScopeOptions::from(&world.scene().balance);
    let body = |comm: &mut dyn Comm| {
        let mut simulation = Simulation::new(world, &*comm, &scope).unwrap();
        for _ in 0..steps {
            simulation.advance(comm).unwrap();
        }
        simulation.memory()
    };
    launch(ranks, body).unwrap()
}

fn bytes_of(parts: &[MemoryPart], name: &str) -> f64 {
    parts.iter().find(|part| part.part == name).unwrap().bytes as f64
}

fn foreseen(world: &World, ranks: usize) -> Vec<Vec<MemoryPart>> {
    let scope = ScopeOptions::from(&world.scene().balance);
    let of_ranks = world.memory_of_ranks(ranks, &scope).unwrap();
    of_ranks.into_iter().map(|rank| rank.parts).collect()
}

#[test]
fn memory_after_a_step_is_foreseen_before_it() {
    let thin = "[contact]\nthickness = \"2 mm\"";
    let plain = format!(
        "{thin}\ncertify = false\nself_collision = false\n[solver]\npreconditioner = \"patch-ssor\""
    );
    for (rest, ranks) in [(thin, 1), (thin, 3), (&plain, 2)] {
        let world = world(&sheet(70, SHEET, rest));
        let before = foreseen(&world, ranks);
        let after = after_steps(&world, ranks, 1);
        assert_eq!(before.len(), ranks);
        for (before, after) in before.iter().zip(&after) {
            let (before_bytes, after_bytes) = (total(before) as f64, total(after) as f64);
            let ratio = before_bytes / after_bytes;
            // Ranks that steal tests of patches of others hold more volumes.
            assert!(
                (0.9..1.1).contains(&ratio),
                "{rest}, {ranks} ranks: {ratio}, {before:?} foreseen, {after:?}"
            );
        }
    }
}

#[test]
fn more_ranks_divide_what_belongs_to_the_rows_and_nothing_else() {
    let world = world(&sheet(130, SHEET, "[contact]\nthickness = \"2 mm\""));
    let one = foreseen(&world, 1).remove(0);
    for ranks in [4, 16] {
        let many = foreseen(&world, ranks);
        let ownership = Ownership::new(world.tree(), ranks).unwrap();
        let quality = Quality::of_ranks(&world.graphs().matrix, &ownership).unwrap();
        let halo: usize = quality.halo.iter().sum();
        let share = halo as f64 / world.graphs().matrix.vertex_count() as f64;
        // Assembly is left out: each thread has a room of its own for it.
        for part in ["matrix", "vectors of the solve", "preconditioner"] {
            let all: f64 = many.iter().map(|parts| bytes_of(parts, part)).sum();
            let grown = all / bytes_of(&one, part);
            assert!(
                (0.95..1.05 + 2.0 * share).contains(&grown),
                "{part} on {ranks} ranks: {grown}, halo {share}"
            );
        }
    }
    let on_patches = foreseen(&world, 32);
    // Only three of them are looked at.
    assert_eq!(on_patches.len(), 3);
    for parts in &on_patches {
        let share = 32.0 * bytes_of(parts, "matrix") / bytes_of(&one, "matrix");
        assert!((0.8..1.4).contains(&share), "{share}");
    }
}

#[test]
fn memory_of_more_ranks_than_patches_is_refused() {
    let world = world(&sheet(20, SHEET, ""));
    let ranks = world.tree().patch_count() + 1;
    let scope = ScopeOptions::from(&world.scene().balance);
    assert!(matches!(
        world.memory_of_ranks(ranks, &scope),
        Err(StepError::Partition(_))
    ));
}

#[test]
fn ranks_go_on_when_their_set_up_is_freed_and_no_other_can_be_set_up() {
    let text = sheet(30, SHEET, "[contact]\nthickness = \"5 mm\"");
    let (freed, kept) = (world(&text), world(&text));
    let positions = |world: &World, frees: bool| {
        let mut comm = Solo::new();
        let mut simulation = Simulation::new(world, &comm, &ScopeOptions::default()).unwrap();
        if frees {
            assert!(bytes_of(&world.memory(), SET_UP) > 0.0);
            world.release();
            assert_eq!(bytes_of(&world.memory(), SET_UP), 0.0);
        }
        for _ in 0..3 {
            simulation.advance(&mut comm).unwrap();
        }
        simulation.positions().to_vec()
    };
    assert_eq!(positions(&freed, true), positions(&kept, false));
    let again = Simulation::new(&freed, &Solo::new(), &ScopeOptions::default());
    assert!(matches!(again, Err(StepError::Released)));
}
