//! The cost of a steal over MPI between two ranks, against a bare ping-pong of the same bytes, by
//! turns in one process. It is measured from the request's being sent to the answer's being read,
//! and with all that follows; and the parts of it that writing and reading the request, the answer
//! and the task take.
//!
//!     mpirun -n 2 target/release/deps/steal-…
//!
//! Rank 0 has one task, which is split for every request; rank 1 has what it gets.
//! `runtime/benches/tasks.rs` measures the same where ranks are threads.

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench reads the clock and says what it saw"
)]

#[path = "../../benches/common/feeder.rs"]
mod feeder;
mod turns;

use std::hint::black_box;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use weft_mpi::{Mpi, Options};
use weft_runtime::comm::{Collectives as _, Comm, CommError, Rank};
use weft_runtime::trace::What;
use weft_runtime::{Registry, ScopeOptions, scope, wire};

use feeder::Feeder;
use turns::{Turns, bare};

const ROUNDS: usize = 61;
const STEALS: u32 = 500;
/// Room for the events of a rank's trace.
const EVENTS: usize = 100_000;

/// Shaped as what a thief sends and gets, which the runtime keeps to itself.
#[derive(Serialize, Deserialize)]
enum Message {
    Request(Option<u32>),
    Answer(Vec<Bundle>),
}

#[derive(Serialize, Deserialize)]
struct Bundle {
    path: Vec<Option<u32>>,
    home: u32,
    lease: u64,
    tasks: Vec<(u16, Result<Vec<u8>, String>)>,
}

/// Microseconds to write and read a request, its answer, and the task in it.
fn serialisation() -> f64 {
    const TIMES: u32 = 2000;
    let begin = Instant::now();
    for _ in 0..TIMES {
        let request = wire::encode(&Message::Request(Some(1))).expect("it can be written");
        black_box(wire::decode::<Message>(black_box(&request))).expect("it can be read");
        let task = wire::encode(black_box(&Feeder(1))).expect("it can be written");
        let answer = Message::Answer(vec![Bundle {
            path: vec![Some(1)],
            home: 0,
            lease: 0,
            tasks: vec![(0, Ok(task))],
        }]);
        let answer = wire::encode(&answer).expect("it can be written");
        let answer = wire::decode::<Message>(black_box(&answer)).expect("it can be read");
        if let Message::Answer(bundles) = answer {
            for (_, task) in bundles.into_iter().flat_map(|bundle| bundle.tasks) {
                let task = task.expect("it did not fail");
                black_box(wire::decode::<Feeder>(&task)).expect("it can be read");
            }
        }
    }
    begin.elapsed().as_secs_f64() / f64::from(TIMES) * 1e6
}

/// The times of a steal, in microseconds.
struct Steal {
    round_trip: f64,
    in_all: f64,
    /// Bytes of all messages, of both ranks.
    bytes: usize,
}

fn main() {
    let options = Options::from_env().expect("the environment has an idle policy that there is");
    let mut mpi = Mpi::start(options).expect("MPI can be started");
    if mpi.size() == 2 {
        mpi.run(|comm| measure(comm).expect("both ranks stay"));
    }
}

fn measure(comm: &mut dyn Comm) -> Result<(), CommError> {
    let (mut answered, mut all) = (Turns::default(), Turns::default());
    let mut with_wire = Turns::default();
    let mut bytes = 0;
    for _ in 0..ROUNDS {
        let steal = steals(comm);
        // Each rank knows its own bytes and times: the thief's times count, and half of all bytes
        // each way.
        let told = comm.allgather((steal.bytes as u64).to_le_bytes().to_vec())?;
        let counts = told.iter().filter_map(|b| b.first_chunk());
        bytes = counts
            .map(|&b| u64::from_le_bytes(b) as usize)
            .sum::<usize>();
        let each_way = (bytes / 2 / STEALS as usize).max(1);
        comm.barrier()?;
        let bare = bare(&mut vec![1; each_way], STEALS);
        answered.add(steal.round_trip, bare);
        all.add(steal.in_all, bare);
        with_wire.add(steal.round_trip, bare + serialisation());
    }
    if comm.rank() == Rank(1) {
        println!("a steal moves {} bytes", bytes / STEALS as usize);
        println!("steal us, bare us, quartiles of the ratio:");
        println!("  {answered}  from request to answer");
        println!("  {with_wire}  the same, bare with what writing and reading take");
        println!("  {all}  with the task run, its result home and the next request made");
    }
    Ok(())
}

/// Measures a number of steals, one after the other.
fn steals(comm: &mut dyn Comm) -> Steal {
    let options = ScopeOptions {
        trace: Some(EVENTS),
        ..ScopeOptions::default()
    };
    let registry = Registry::new().with::<Feeder>();
    let (_, report) = scope(comm, &registry, &(), &options, |s| {
        let group = s.group();
        if s.rank() == Rank(0) {
            s.fork(&group, Feeder(u64::from(STEALS)))?;
        }
        while s.join(&group)?.is_some() {}
        Ok(())
    })
    .expect("tasks that do not fail");
    let (mut asked, mut waited, mut answers) = (0, 0, 0_u32);
    for event in report.trace.iter().flat_map(|trace| &trace.events) {
        match event.what {
            What::Asked { .. } => asked = event.at,
            What::Answered { tasks, .. } if tasks > 0 => {
                waited += event.at - asked;
                answers += 1;
            }
            _ => {}
        }
    }
    Steal {
        round_trip: waited as f64 * 1e-3 / f64::from(answers.max(1)),
        in_all: report.elapsed.as_secs_f64() * 1e6 / report.served.max(1) as f64,
        bytes: report.bytes as usize,
    }
}
