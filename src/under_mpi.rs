//! `weft run` where every rank is an MPI process.
//!
//! Every rank reads the scene and builds the world for itself; they agree on whether that went well, and that
//! it was the same, before the first step. Rank 0 writes and speaks.

use std::env;
use std::time::Instant;

use sha2::{Digest as _, Sha256};
use weft_io::{Printable, Show as _};
use weft_mpi::{Cores, Idle, Mpi, Options, WEFT_MPI_IDLE, roomy};
use weft_runtime::comm::{Collectives as _, CommError, Rank};
use weftwork::run::{Driver, note_failure, run_rank};
use weftwork::step::World;

use crate::cli::RunArguments;
use crate::launcher::Launcher;
use crate::{Failure, announcement, conclude, prepare, run_options, say, stopping, tell};

impl From<Failure> for weft_mpi::Failure {
    fn from(failure: Failure) -> Self {
        Self {
            code: failure.code,
            message: Printable(failure.message).to_string(),
            echo: false,
        }
    }
}

/// Runs this rank's part of a scene.
pub(crate) fn run_scene(
    arguments: &RunArguments,
    launcher: Option<&Launcher>,
    began: Instant,
) -> Result<(), Failure> {
    let stop = stopping(arguments, began)?;
    let mut mpi = start(arguments)?;
    check_launcher(&mpi, launcher)?;
    if let Some(ranks) = arguments.ranks.filter(|&ranks| ranks != mpi.size()) {
        let message = format!(
            "--ranks {ranks}, but the launcher started {}; leave out --ranks under mpirun and srun",
            mpi.size()
        );
        return Err(Failure { code: 2, message });
    }
    let world = prepare(arguments).and_then(|scene| {
        World::build(&scene).map_err(|error| Failure {
            code: 3,
            message: error.to_string(),
        })
    });
    let world = mpi
        .agree(world.map_err(Into::into))
        .map_err(Failure::said)?;
    let same = compare(&mut mpi, arguments, &world);
    mpi.agree(same.map_err(Into::into)).map_err(Failure::said)?;
    // Without the numbers of cores a rank waits as if it had to share them, and nobody is warned.
    let cores = mpi.cores().unwrap_or_default();
    if arguments.idle.is_none() && env::var_os(WEFT_MPI_IDLE).is_none() {
        let idle = default_idle(&mpi, &cores, arguments);
        mpi.set_idle(idle);
    }
    if mpi.idle() == Idle::SLEEP {
        // Of other ranks of its node a process does not see the threads.
        weftwork::team::share_cores();
    }

    let mut options = run_options(arguments, world.scene(), mpi.size(), Driver::Mpi, stop);
    options.hosts = mpi.hosts().to_vec();
    options.mpi = Some(weft_mpi::library());
    let first = mpi.rank() == Rank(0);
    if first && !arguments.quiet {
        // If nobody reads, the run is still worth its files; the end tells.
        drop(say(announcement(world.scene(), &options)));
        drop(say(machine(&mpi)));
    }
    if first && let Some(warning) = crowded(&mpi, &cores, arguments) {
        tell("warning: ", warning);
    }
    let summary = mpi.job(
        |comm| {
            run_rank(&world, &options, comm).map_err(|error| weft_mpi::Failure {
                code: error.exit_code(),
                message: Printable(&error).to_string(),
                echo: error.is_echo(),
            })
        },
        |failure| {
            // If the record cannot be written either, the message has to do.
            drop(note_failure(&options.out, failure.code, &failure.message));
        },
    );
    summary.map_or(Ok(()), |summary| conclude(&summary, &options))
}

/// What `weft info` says of MPI.
pub(crate) fn info() -> String {
    let library = weft_mpi::library();
    match Mpi::start(Options::default()) {
        Ok(mpi) => format!("{library}, thread level {}", mpi.thread_level(),),
        Err(error) => format!("{library}: {error}"),
    }
}

fn start(arguments: &RunArguments) -> Result<Mpi, Failure> {
    let usage = |message: String| Failure { code: 2, message };
    let mut options = Options::from_env().map_err(|error| usage(error.to_string()))?;
    if let Some(name) = &arguments.idle {
        options.idle = name.parse().map_err(|e| usage(format!("--idle: {e}")))?;
    }
    Mpi::start(options).map_err(|error| usage(error.to_string()))
}

/// A launcher of another MPI starts processes that do not find each other.
fn check_launcher(mpi: &Mpi, launcher: Option<&Launcher>) -> Result<(), Failure> {
    let Some(Launcher {
        variable,
        size: Some(started),
        ..
    }) = launcher
    else {
        return Ok(());
    };
    if *started == mpi.size() {
        return Ok(());
    }
    Err(Failure {
        code: 2,
        message: format!(
            "the launcher started {started} processes ({variable}), but they do not find each other: MPI \
             counts {}. This weft was built with {}; start it with that MPI's mpirun, or with srun and the \
             --mpi it needs (`srun --mpi=list`), or build it again with the MPI of the launcher",
            mpi.size(),
            weft_mpi::library()
        ),
    })
}

/// Makes sure that every rank has read the same.
fn compare(mpi: &mut Mpi, arguments: &RunArguments, world: &World) -> Result<(), Failure> {
    let scene = world.scene();
    let text = format!("{}{}", scene.echo(), world.digest());
    let own = Sha256::digest(text.as_bytes()).to_vec();
    let first = mpi
        .run(|comm| comm.broadcast(Rank(0), own.clone()))
        .map_err(|error: CommError| Failure {
            code: 101,
            message: error.to_string(),
        })?;
    if first == own {
        return Ok(());
    }
    Err(Failure {
        code: 3,
        message: format!(
            "{}: this rank has read another scene than rank 0, or other files that it names; put them where \
             all hosts see the same",
            arguments.scene.shown()
        ),
    })
}

/// What the ranks run on.
fn machine(mpi: &Mpi) -> String {
    let mut hosts: Vec<(&str, usize)> = Vec::new();
    for host in mpi.hosts() {
        match hosts.iter_mut().find(|(name, _)| name == host) {
            Some((_, ranks)) => *ranks += 1,
            None => hosts.push((host, 1)),
        }
    }
    const NAMED: usize = 8;
    let mut names: Vec<String> = hosts
        .iter()
        .take(NAMED)
        .map(|(name, ranks)| format!("{name} ({ranks})"))
        .collect();
    if hosts.len() > NAMED {
        names.push(format!("and {} more", hosts.len() - NAMED));
    }
    format!(
        "ranks on {}\n{}, thread level {}, idle ranks {}\n",
        names.join(", "),
        weft_mpi::library(),
        mpi.thread_level(),
        mpi.options().idle,
    )
}

/// Ranks that have a core for each of their threads never sleep; on a node with fewer cores, they make room.
fn default_idle(mpi: &Mpi, cores: &[Cores], arguments: &RunArguments) -> Idle {
    let threads = u32::from(arguments.threads) + u32::from(arguments.progress_thread);
    if roomy(mpi.rank().index(), mpi.nodes(), cores, threads) {
        Idle::YIELD
    } else {
        Idle::SLEEP
    }
}

/// A rank that is bound to fewer cores than it has workers. The thread for messages shares theirs, if it must.
fn crowded(mpi: &Mpi, cores: &[Cores], arguments: &RunArguments) -> Option<String> {
    let workers = u32::from(arguments.threads);
    let counts = cores.iter().map(Cores::count);
    let (rank, cores) = counts.enumerate().find(|&(_, cores)| cores < workers)?;
    let host = mpi.hosts().get(rank).map_or("", String::as_str);
    Some(format!(
        "rank {rank} on {host} has {workers} workers but may use {cores} of the cores: bind ranks to more \
         (mpirun --map-by slot:PE={workers}, srun --cpus-per-task={workers}), or take fewer --threads"
    ))
}
