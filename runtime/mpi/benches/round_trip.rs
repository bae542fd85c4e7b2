//! Round trips of `Comm` over MPI between two ranks, and of bare MPI: blocking sends and receives
//! of one warm buffer, in the same process, by turns of some milliseconds. Prints for each length
//! "BYTES COMM BARE" and the quartiles of the ratio of each two turns, times in microseconds and
//! medians. `compare.sh` sets beside it what the same ping-pong takes in C, `round_trip.c`. With
//! one rank it does nothing.

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench reads the clock and says what it saw"
)]

mod turns;

use std::time::Instant;

use weft_mpi::{Mpi, Options};
use weft_runtime::comm::{Collectives as _, Comm, CommError, Rank, Tag};

use turns::{Turns, bare};

const ROUNDS: usize = 61;
const LENGTHS_AND_TRIPS: [(usize, u32); 4] = [(8, 1000), (1024, 600), (65_536, 60), (1 << 20, 6)];

fn main() {
    let options = Options::from_env().expect("compare.sh sets it well");
    let mut mpi = Mpi::start(options).expect("MPI can be started");
    if mpi.size() == 2 {
        mpi.run(|comm| measure(comm).expect("both ranks stay"));
    }
}

fn measure(comm: &mut dyn Comm) -> Result<(), CommError> {
    let first = comm.rank() == Rank(0);
    for (length, trips) in LENGTHS_AND_TRIPS {
        let mut turns = Turns::default();
        let mut bytes = vec![1_u8; length];
        let mut warm = vec![1_u8; length];
        for _ in 0..ROUNDS {
            comm.barrier()?;
            let ours = ping_pong(comm, &mut bytes, trips)?;
            comm.barrier()?;
            turns.add(ours, bare(&mut warm, trips));
        }
        if first {
            println!("{length} {turns}");
        }
    }
    Ok(())
}

/// Microseconds of a round trip. The message that came goes back: no copy is made for the bench.
fn ping_pong(comm: &mut dyn Comm, bytes: &mut Vec<u8>, trips: u32) -> Result<f64, CommError> {
    let (me, peer) = (comm.rank(), Rank(1 - comm.rank().0));
    let begin = Instant::now();
    for _ in 0..trips {
        if me == Rank(0) {
            comm.send(peer, Tag(1), std::mem::take(bytes))?;
            *bytes = comm.recv_from(peer, Tag(1))?;
        } else {
            let came = comm.recv_from(peer, Tag(1))?;
            comm.send(peer, Tag(1), came)?;
        }
    }
    Ok(begin.elapsed().as_secs_f64() / f64::from(trips) * 1e6)
}
