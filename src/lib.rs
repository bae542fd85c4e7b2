//! Cloth on distributed memory.
//!
//! A [`scene`] is text. A [`step::World`] is built of it, and a [`step::Simulation`] is one rank's
//! part of its motion. The caller decides what ranks are: one, threads, virtual ranks, or MPI
//! processes ([`weft_runtime::comm`]). The command `weft` does the same and writes files
//! ([`run`]).
//!
//! ```
//! use weft_runtime::ScopeOptions;
//! use weft_runtime::comm::{Comm, solo::Solo};
//! use weftwork::scene::Scene;
//! use weftwork::step::{Simulation, World};
//!
//! let scene = Scene::parse(
//!     r#"
//!     time = { step = "2 ms", end = "1 s" }
//!     [[cloth]]
//!     grid = { size = "1 m", vertices = 12 }
//!     pins = [{ nearest = [-0.5, -0.5, 0] }]
//!     material = { density = "0.15 kg/m2", stretch = "1000 N/m", bending = "1e-5 N m" }
//!     "#,
//!     None,
//!     &[],
//! )?;
//! let world = World::build(&scene)?;
//! let mut comm = Solo::new();
//! let mut simulation = Simulation::new(&world, &comm, &ScopeOptions::default())?;
//! let start = simulation.positions().to_vec();
//! simulation.advance(&mut comm)?;
//!
//! // Vertices are numbered by patches; the tree knows their numbers in the scene.
//! let number = |vertex: u32| world.tree().old_to_new()[vertex as usize] as usize;
//! let moved = |vertex: u32| simulation.positions()[number(vertex)] - start[number(vertex)];
//! // The pinned corner stays. The other end has fallen for one implicit step: g dt², and no part
//! // of the cloth that it feels yet is held.
//! assert_eq!(moved(0).length(), 0.0);
//! let free = -9.81 * 0.002 * 0.002;
//! assert!((moved(143).z - free).abs() < 1e-3 * free.abs());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The interface for other programs is the modules [`scene`], [`mesh`], [`step`], [`run`] and
//! [`output`], and [`collide`] and [`solve`] for parts of a step; the other modules are public for
//! the command, the tests and the benches of this project, and are no part of it.
//!
//! `examples/drape.rs` goes on to a whole run on several ranks. Doctests of [`collide`],
//! [`collide::ccd`] and [`solve`] show a collision query, a certified pair and a solved system.

mod archive;
pub mod build_identity;
pub mod certify;
pub mod collide;
pub mod diagnostics;
mod disjoint_sets;
mod equal_runs;
pub mod export;
mod heap_bytes;
pub mod memory;
pub mod mesh;
pub mod output;
mod parallel;
pub mod physics;
pub mod refine;
pub mod run;
pub mod scene;
mod set_up_only;
mod simd;
pub mod solve;
mod sorted_rows;
mod sparse;
pub mod step;
pub mod team;
