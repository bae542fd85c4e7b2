//! Drapes a cloth over a ball with the library, on ranks that are threads, and prints where it is.
//!
//! A scene is text, a world is built of it, and each rank advances its part. All ranks know all
//! positions after a step, so any of them can print. The digits are the same on any number of
//! ranks: that is what the library promises, and the second sample shows it.
//!
//! Sample runs:
//! ```text
//! $ drape
//! 0.1 s: from -0.0515 to -0.0053 m, 0 vertices in the ball
//! 0.2 s: from -0.2035 to -0.0055 m, 0 vertices in the ball
//! 0.3 s: from -0.4411 to -0.0053 m, 0 vertices in the ball
//! 0.4 s: from -0.5275 to -0.0051 m, 0 vertices in the ball
//! $ drape 3
//! 0.1 s: from -0.0515 to -0.0053 m, 0 vertices in the ball
//! 0.2 s: from -0.2035 to -0.0055 m, 0 vertices in the ball
//! 0.3 s: from -0.4411 to -0.0053 m, 0 vertices in the ball
//! 0.4 s: from -0.5275 to -0.0051 m, 0 vertices in the ball
//! ```

#![allow(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;

use clap::Parser;
use glam::DVec3;
use weft_runtime::ScopeOptions;
use weft_runtime::comm::{Comm, Rank, threads};
use weftwork::scene::Scene;
use weftwork::step::{Simulation, StepError, World};

/// A square of 1 m falls on a ball of 0.3 m whose top is 1 cm below it.
const SCENE: &str = r#"
    time = { step = "5 ms", end = "0.4 s" }

    [[cloth]]
    grid = { size = "1 m", vertices = 25 }
    material = { density = "0.15 kg/m2", stretch = "1000 N/m", bending = "1e-5 N m" }

    [[body]]
    shape = "sphere"
    center = [0, 0, "-31 cm"]
    radius = "30 cm"
"#;
/// Steps between two lines.
const EVERY: u64 = 20;

/// Drapes a cloth over a ball.
#[derive(Parser)]
struct Arguments {
    /// Ranks.
    #[arg(default_value_t = 1)]
    ranks: usize,
}

/// One rank's part.
fn drape(world: &World, comm: &mut dyn Comm) -> Result<(), StepError> {
    let mut simulation = Simulation::new(world, comm, &ScopeOptions::default())?;
    while simulation.step() < world.scene().time.steps() {
        simulation.advance(comm)?;
        if comm.rank() == Rank(0) && simulation.step().is_multiple_of(EVERY) {
            let heights = simulation.positions().iter().map(|x| x.z);
            let (lowest, highest) = (
                heights.clone().fold(f64::MAX, f64::min),
                heights.fold(f64::MIN, f64::max),
            );
            let inside = |x: &&DVec3| (**x - DVec3::new(0.0, 0.0, -0.31)).length() < 0.3;
            let inside = simulation.positions().iter().filter(inside).count();
            println!(
                "{:.1} s: from {lowest:.4} to {highest:.4} m, {inside} vertices in the ball",
                simulation.time()
            );
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let world = World::build(&Scene::parse(SCENE, None, &[])?)?;
    let outcomes = threads::launch(arguments.ranks, |comm| drape(&world, comm))?;
    outcomes.into_iter().collect::<Result<(), _>>()?;
    Ok(())
}
