//! Ranks that fail, one way for each name; `tests/mpi.sh` at the root of the project looks at what
//! comes of it.
//!
//!     mpirun -n 3 target/debug/deps/failures-… panic-on-a-thread 1
//!
//! Ranks that do not fail would go on for a minute: the script's time limit is shorter.

#![allow(clippy::print_stdout, reason = "a test says how it goes")]

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weft_mpi::{Failure, Mpi, Options, StartError};
use weft_runtime::comm::{Collectives as _, Comm, CommError, Rank, Tag};
use weft_runtime::{Context, Registry, ScopeOptions, Step, Task, scope};

const A_MINUTE: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, name, rank] = &arguments[..] else {
        println!("failures: run by tests/mpi.sh");
        return ExitCode::SUCCESS;
    };
    // Before MPI has started a rank knows no other.
    let program = match name.as_str() {
        "program" => Some(Ok((rank.as_str(), Options::default()))),
        "unable" => Some(Err(failure(5, "cannot read the program"))),
        _ => None,
    };
    if let Some(own) = program {
        return start_together(own);
    }
    let bad = Rank(rank.parse().expect("the second argument is a rank"));
    let mut mpi = Mpi::start(Options::default()).expect("MPI can be started");
    let me = mpi.rank();
    if name == "no-file" {
        let outcome = if me == bad {
            Err(failure(3, "cannot read scene.toml"))
        } else {
            Ok(())
        };
        return match mpi.agree(outcome) {
            Ok(()) => ExitCode::SUCCESS,
            Err(code) => ExitCode::from(code),
        };
    }
    let body = |comm: &mut dyn Comm| -> Result<(), Failure> {
        comm.barrier().map_err(of_comm)?;
        match name.as_str() {
            "error" if me == bad => return Err(failure(4, "step 7 is not finite")),
            // As an error in what all ranks compute alike.
            "error-on-all" => return Err(failure(4, "step 7 is not finite")),
            "error-while-others-compute" if me == bad => {
                return Err(failure(5, "the disk is full"));
            }
            "error-while-others-compute" => pause(A_MINUTE),
            "panic" => assert!(me != bad, "lost the thread"),
            "panic-on-a-thread" if me == bad => {
                in_thread(|| panic!("lost the thread"));
            }
            "panic-on-a-thread-of-a-busy-rank" if me == bad => {
                in_thread(|| panic!("lost the thread"));
                pause(A_MINUTE);
            }
            "left-without-a-word" if me == bad => std::process::exit(9),
            "absent-from-a-scope" if me == bad => return Ok(()),
            "absent-from-a-scope" => return work_together(comm),
            _ => {}
        }
        // The rank waits for a message that never comes.
        let from = Rank((me.0 + 1) % comm.size() as u32);
        loop {
            comm.wait(A_MINUTE).map_err(of_comm)?;
            if comm.try_recv(Tag(1)).map_err(of_comm)?.is_some() {
                return Err(failure(1, &format!("rank {} woke up", from.0)));
            }
        }
    };
    mpi.job(body, |failure| {
        println!("recorded {}: {}", failure.code, failure.message);
    });
    ExitCode::SUCCESS
}

/// Starts ranks that say which program they are, or that they cannot take part.
fn start_together(own: Result<(&str, Options), Failure>) -> ExitCode {
    let mut mpi = match Mpi::start_together(own) {
        Ok(mpi) => mpi,
        Err(StartError::Refused {
            code,
            message,
            speaks,
            ranks,
        }) => {
            if speaks {
                eprintln!("error: {ranks} ranks: {message}");
            } else {
                let_another_speak();
            }
            return ExitCode::from(code);
        }
        Err(error) => panic!("{error}"),
    };
    let met = mpi.run(|comm| comm.allgather(vec![1]));
    println!("met {}", met.expect("all have come").len());
    ExitCode::SUCCESS
}

/// Launchers end a job as soon as one of its processes has failed: the one that says why comes
/// first.
#[expect(clippy::disallowed_methods, reason = "the end of a process")]
fn let_another_speak() {
    thread::sleep(Duration::from_millis(300));
}

/// A task that nobody forks.
#[derive(Serialize, Deserialize)]
struct Nothing;

impl Task<()> for Nothing {
    const NAME: &'static str = "nothing";
    type Output = ();

    fn run(&mut self, _env: &(), _cx: &mut Context<'_, (), ()>) -> Step<()> {
        Step::Done(())
    }
}

fn work_together(comm: &mut dyn Comm) -> Result<(), Failure> {
    let registry = Registry::new().with::<Nothing>();
    scope(comm, &registry, &(), &ScopeOptions::default(), |s| {
        let group = s.group::<()>();
        while s.join(&group)?.is_some() {}
        Ok(())
    })
    .map(drop)
    .map_err(|error| failure(4, &error.to_string()))
}

fn failure(code: u8, message: &str) -> Failure {
    Failure {
        code,
        message: message.to_owned(),
        echo: false,
    }
}

fn of_comm(error: CommError) -> Failure {
    Failure {
        echo: true,
        ..failure(101, &error.to_string())
    }
}

fn in_thread(work: impl FnOnce() + Send + 'static) {
    let named = thread::Builder::new().name("spinner".to_owned());
    named.spawn(work).expect("one more thread can be had");
}

#[expect(clippy::disallowed_methods, reason = "stands for work")]
fn pause(time: Duration) {
    thread::sleep(time);
}
