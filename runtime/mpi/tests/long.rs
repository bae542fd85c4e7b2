//! A message of more bytes than 31 bits can count, there and checked; `tests/mpi.sh` at the root of
//! the project runs it where there is memory for it.
//!
//!     mpirun -n 2 target/debug/deps/long-… BYTES
//!
//! Two ranks take a little more than this many bytes each.

#![allow(clippy::print_stdout, reason = "a test says how it goes")]

use std::process::ExitCode;

use weft_mpi::{Mpi, Options};
use weft_runtime::comm::{Collectives as _, Comm, CommError, Rank, Tag};

const TAG: Tag = Tag(1);

fn main() -> ExitCode {
    let Some(length) = std::env::args().nth(1) else {
        println!("long: run by tests/mpi.sh");
        return ExitCode::SUCCESS;
    };
    let length: usize = length.parse().expect("the argument is a number of bytes");
    let options = Options::from_env().expect("the environment is as tests/mpi.sh sets it");
    let mut mpi = Mpi::start(options).expect("MPI can be started");
    assert_eq!(mpi.size(), 2, "run it on two ranks");
    mpi.run(|comm| check(comm, length).expect("both ranks stay"));
    if mpi.rank() == Rank(0) {
        println!("passed: {length} bytes in one message");
    }
    ExitCode::SUCCESS
}

/// Rank 0 sends the long one between two short ones; rank 1 gets all three, as they were and in
/// order.
fn check(comm: &mut dyn Comm, length: usize) -> Result<(), CommError> {
    if comm.rank() == Rank(0) {
        let mut bytes = vec![0; length];
        for (at, word) in bytes.chunks_mut(8).enumerate() {
            word.copy_from_slice(&expected(at)[..word.len()]);
        }
        comm.send(Rank(1), TAG, vec![1])?;
        comm.send(Rank(1), TAG, bytes)?;
        comm.send(Rank(1), TAG, vec![2])?;
    } else {
        assert_eq!(comm.recv_from(Rank(0), TAG)?, [1]);
        let bytes = comm.recv_from(Rank(0), TAG)?;
        assert_eq!(bytes.len(), length);
        for (at, word) in bytes.chunks(8).enumerate() {
            assert!(word == &expected(at)[..word.len()], "word {at} is wrong");
        }
        assert_eq!(comm.recv_from(Rank(0), TAG)?, [2]);
    }
    comm.barrier()
}

/// The word at that place: no two are alike.
fn expected(at: usize) -> [u8; 8] {
    (at as u64)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .to_le_bytes()
}
