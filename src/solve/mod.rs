//! The partitioned linear solve of an implicit step, with the same bits on any number of ranks.
//!
//! In: rows of a symmetric positive definite matrix, split over ranks as the patch tree says, a
//! right-hand side, and directions in which vertices are constrained. Out: the velocity change of
//! the owned vertices, and the force that the constraints exert. [TB06 §4.1] describes the
//! partitioned solve, [BW98 §5] the constraints inside the conjugate gradients, \[AB03\] why that
//! converges.
//!
//! | module | holds |
//! |---|---|
//! | [`halo`] | [`Halo`], the exchange of border values |
//! | [`reduction`] | [`Reduction`], sums over all vertices in an order that no ownership changes |
//! | [`block_matrix`] | [`BlockMatrix`], rows of 3x3 blocks and scalars, and their product |
//! | `symmetric_copy` | a symmetric single-precision copy of a large matrix, and its product |
//! | [`filter`] | [`Filter`], the constrained directions |
//! | [`block_jacobi`] | [`BlockJacobi`], inverted diagonal blocks |
//! | `single_blocks` | those blocks in single precision, which iterations read |
//! | `vector_kernels` | loops over vectors between two products, in SIMD lanes |
//! | `patch_ssor` | symmetric Gauss-Seidel within patches |
//! | `coarse` | a direct solve for the rigid motions of aggregates |
//! | [`preconditioner`] | [`Preconditioner`], which of them there are |
//! | [`cg`] | [`ModifiedCg`], the solve itself |
//! | `prefiltered` | [`Prefiltered`], the system for solvers that know no constraints |
//! | [`outcome`] | [`System`] and [`Tolerance`] in, [`Outcome`] or [`SolveError`] out |
//!
//! Vectors are of the *owned* vertices, or of those followed by the *halo*, what is read of other
//! ranks: see [`weft_partition::HaloPlan`]. Vertices are numbered as in the patch tree throughout.
//!
//! Not here: what the matrix means (`physics`), who is constrained and why (`step`).
//!
//! Three masses of 2 kg in a chain, of which the first is held, in one step of springs:
//!
//! ```
//! use glam::{DMat3, DVec3};
//! use weft_partition::{Graph, HaloPlan, Ownership, PatchOptions, PatchTree};
//! use weft_runtime::comm::{Comm, Tag, solo::Solo};
//! use weftwork::solve::{
//!     BlockMatrix, Filter, ModifiedCg, Pattern, Preconditioner, System, Tolerance,
//! };
//!
//! let edges = [(0, 1), (1, 2)];
//! let graph = |edges: &[(u32, u32)]| Graph::from_edges(3, edges.to_vec());
//! let tree = PatchTree::build(&graph(&edges)?, &PatchOptions::default())?;
//! let near = graph(&edges)?.renumbered(&tree)?;
//! let ownership = Ownership::new(&tree, 1)?;
//! let plan = HaloPlan::new(&near, &ownership, 0)?;
//! let far = graph(&[])?;
//! let mut matrix = BlockMatrix::new(Pattern::new(&plan, &near, &far)?);
//! let number = |vertex: u32| tree.old_to_new()[vertex as usize];
//! for row in 0..3 {
//!     let diagonal = matrix.pattern().diagonal_slot(row);
//!     matrix.add_block(diagonal, &(2.0 * DMat3::IDENTITY));
//!     for &other in near.neighbours(row as u32) {
//!         let slot = matrix.pattern().block_slot(row, other).expect("a neighbour");
//!         matrix.add_block(slot, &-DMat3::IDENTITY);
//!         matrix.add_block(diagonal, &DMat3::IDENTITY);
//!     }
//! }
//! let mut filter = Filter::new(3);
//! filter.fix(number(0) as usize, DVec3::ZERO);
//! let mut rhs = vec![DVec3::ZERO; 3];
//! rhs[number(2) as usize] = DVec3::Z;
//!
//! let partition = (&plan, &tree, &ownership);
//! let mut cg = ModifiedCg::new(partition, Preconditioner::block_jacobi(), Tag(1));
//! let positions = [0.0, 1.0, 2.0].map(|x| x * DVec3::X);
//! let system = System { matrix: &matrix, rhs: &rhs, filter: &filter, positions: &positions };
//! let tolerance = Tolerance { relative: 1e-12, absolute: 0.0, max_iterations: 10 };
//! let mut change = vec![DVec3::ZERO; 3];
//! cg.solve(&mut Solo::new(), &system, &tolerance, &mut change)?;
//!
//! // 4 a - b = 0 and 3 b - a = 1.
//! for (vertex, exact) in [(0, 0.0), (1, 1.0 / 11.0), (2, 4.0 / 11.0)] {
//!     let found = change[number(vertex) as usize];
//!     assert!((found - exact * DVec3::Z).length() < 1e-12);
//! }
//! // The held mass is pulled along by the spring.
//! assert!((cg.constraint_force()[number(0) as usize].z + 1.0 / 11.0).abs() < 1e-12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! * \[AB03\] Ascher, Boxerman: On the modified conjugate gradient method in cloth simulation.
//! * \[BW98\] Baraff, Witkin: Large steps in cloth simulation.
//! * \[TB06\] Thomaszewski, Blochinger: Parallel simulation of cloth on distributed memory
//!   architectures.

pub mod block_jacobi;
pub mod block_matrix;
pub mod cg;
mod coarse;
pub(crate) mod fault;
pub mod filter;
pub mod halo;
pub mod outcome;
mod pages;
mod patch_ssor;
pub mod preconditioner;
mod prefiltered;
pub mod reduction;
mod single_blocks;
mod symmetric_copy;
#[cfg(test)]
mod testing;
mod vector_kernels;

pub use block_jacobi::BlockJacobi;
pub use block_matrix::{
    BlockMatrix, BlockSlot, MatrixRows, Pattern, PatternError, Rows, ScalarSlot,
};
pub use cg::ModifiedCg;
pub use coarse::coarse_columns;
pub use filter::Filter;
pub use halo::Halo;
pub use outcome::{Criterion, End, Outcome, SolveError, System, Tolerance};
pub use preconditioner::{Multilevel, Preconditioner, Smoother, aggregate_options};
pub use prefiltered::Prefiltered;
pub use reduction::Reduction;
pub use symmetric_copy::is_rounded;
