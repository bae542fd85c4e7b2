//! The suite that every driver has to pass, and thread groups, on as many ranks as `mpirun` starts.
//!
//!     mpirun -n 4 target/debug/deps/conformance-…  [part of a name]

#![allow(clippy::print_stdout, reason = "a test says how it goes")]

#[path = "../../../tests/conformance/cases.rs"]
mod cases;
mod groups;

use weft_mpi::{Mpi, Options};
use weft_runtime::comm::{Collectives, Comm, Rank};

fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let options = Options::from_env().expect("the environment is as tests/mpi.sh sets it");
    let mut mpi = Mpi::start(options).expect("MPI can be started");
    let first = mpi.rank() == Rank(0);
    let (ranks, nodes) = (mpi.size(), mpi.nodes().iter().max().map_or(0, |n| n + 1));
    if first {
        let library = weft_mpi::library();
        let level = mpi.thread_level();
        println!("{ranks} ranks on {nodes} nodes, {library}, {level}, {options:?}");
    }
    let mut passed = 0;
    for (name, case) in cases::CASES.into_iter().chain(groups::CASES) {
        if name.contains(&wanted) {
            if first {
                println!("  {name}");
            }
            mpi.run(case);
            passed += 1;
        }
    }
    // Jobs that leave messages lying about do not disturb the next.
    for round in 0..5 {
        mpi.run(|comm| litter(comm, round));
    }
    if first {
        println!("passed {passed} cases on {ranks} ranks");
    }
}

/// Messages of all lengths that nobody asks for, and one that somebody does.
fn litter(comm: &mut dyn Comm, round: u8) {
    let tag = weft_runtime::comm::Tag(1);
    for to in (0..comm.size() as u32).map(Rank) {
        for length in [0, 10, 4000, 100_000, 1_000_000] {
            let bytes = vec![round; length];
            comm.send(to, tag, bytes).expect("the rank exists");
        }
    }
    let told = comm.allgather(vec![round]).expect("all take part");
    assert!(told.iter().all(|one| *one == [round]), "{told:?}");
}
