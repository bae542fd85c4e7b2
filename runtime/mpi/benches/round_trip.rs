//! Round trips of `Comm` over MPI between two ranks. Prints "BYTES MICROSECONDS" for each length, the median of
//! rounds, as `round_trip.c` does for bare MPI; `compare.sh` runs both by turns. With one rank it does nothing.

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench reads the clock and says what it saw"
)]

use std::time::Instant;

use weft_mpi::{Mpi, Options};
use weft_runtime::comm::{Collectives as _, Comm, CommError, Rank, Tag};

const ROUNDS: usize = 21;
const LENGTHS_AND_TRIPS: [(usize, u32); 4] =
    [(8, 4000), (1024, 2000), (65_536, 300), (1 << 20, 40)];

fn main() {
    let options = Options::from_env().expect("compare.sh sets it well");
    let mut mpi = Mpi::start(options).expect("MPI can be started");
    if mpi.size() == 2 {
        mpi.run(|comm| measure(comm).expect("both ranks stay"));
    }
}

fn measure(comm: &mut dyn Comm) -> Result<(), CommError> {
    let (me, peer) = (comm.rank(), Rank(1 - comm.rank().0));
    for (length, trips) in LENGTHS_AND_TRIPS {
        let mut took = Vec::new();
        let mut bytes = vec![1_u8; length];
        for _ in 0..ROUNDS {
            comm.barrier()?;
            let begin = Instant::now();
            for _ in 0..trips {
                // What came is what goes back: no copy is made for the bench.
                if me == Rank(0) {
                    comm.send(peer, Tag(1), bytes)?;
                    bytes = comm.recv_from(peer, Tag(1))?;
                } else {
                    bytes = comm.recv_from(peer, Tag(1))?;
                    comm.send(peer, Tag(1), bytes)?;
                    bytes = Vec::new();
                }
            }
            took.push(begin.elapsed().as_secs_f64() / f64::from(trips) * 1e6);
        }
        took.sort_by(f64::total_cmp);
        if me == Rank(0) {
            println!("{length} {:.3}", took[ROUNDS / 2]);
        }
    }
    Ok(())
}
