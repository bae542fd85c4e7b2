//! `weft run` where every rank is an MPI process.
//!
//! Before the first step ranks make sure, in this order, that they run the same build, were given
//! the same options, that each has read the scene and built the world for itself, and that these
//! are the same. Rank 0 writes and speaks.

use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;
use std::time::Instant;

use weft_io::{Printable, Show as _};
use weft_mpi::{Cores, Idle, Mpi, Options, StartError, WEFT_MPI_IDLE, roomy};
use weft_runtime::comm::Rank;
use weftwork::build_identity::BuildIdentity;
use weftwork::memory::{self, Limit, Ranks};
use weftwork::output::Event;
use weftwork::run::{AgreedRun, Driver, Given, RunError, compare, note_failure};
use weftwork::step::Mapping;

use crate::cli::{AuditChoice, RunArguments};
use crate::commands::memory_limit;
use crate::launcher::Launcher;
use crate::{
    Failure, announce, check_options, conclude, prepare, run_options, say, stopping, tell,
};

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
    let able = stopping(arguments, began)
        .and_then(|stop| Ok((stop, mpi_options(arguments)?, this_build()?)));
    let (stop, options, build) = able.map_err(|failure| refuse(failure, launcher))?;
    let mut mpi =
        Mpi::start_together(Ok((&build, options))).map_err(|error| of_start(error, launcher))?;
    if mpi.size() == 1 {
        check_launcher(&mpi, launcher)?;
    }
    let given = given(arguments);
    let same = mpi.run(|comm| compare(&given, comm));
    same.map_err(|error| said_by_first(&mpi, &error))?;
    let own = mpi.host();
    let here = mpi.hosts().iter().filter(|host| *host == own).count();
    let ranks = Ranks::process(mpi.size(), here);
    let world = check_launcher(&mpi, launcher)
        .and_then(|()| check_ranks(&mpi, arguments))
        .and_then(|()| check_options(arguments))
        .and_then(|()| prepare(arguments, ranks))
        .and_then(|scene| {
            let limit = memory_limit(arguments.memory)?;
            let mapping = Mapping {
                map: weft_mpi::map_file,
                process: (mpi.hosts().iter())
                    .take(mpi.rank().index())
                    .filter(|host| *host == own)
                    .count(),
                processes: here,
            };
            let threads = arguments.threads.into();
            let world = memory::build_mapped(&scene, threads, ranks, limit, mapping);
            world.map_err(|error| Failure {
                code: error.exit_code(),
                message: error.to_string(),
            })
        });
    let world = mpi
        .agree(world.map_err(Into::into))
        .map_err(Failure::said)?;
    // Without the numbers of cores a rank waits as if it had to share them, and nobody is warned.
    let cores = mpi.cores().unwrap_or_default();
    if arguments.idle.is_none() && env::var_os(WEFT_MPI_IDLE).is_none() {
        let idle = default_idle(&mpi, &cores, arguments);
        mpi.set_idle(idle);
    }
    if mpi.idle() == Idle::SLEEP {
        // A process does not see the threads of other ranks of its node.
        weftwork::team::share_cores();
    }

    let mut options = run_options(
        arguments,
        world.scene(),
        mpi.size(),
        Driver::Mpi,
        (Limit::Any, stop),
    );
    options.hosts = mpi.hosts().to_vec();
    options.mpi = Some(weft_mpi::library());
    let agreed = mpi.run(|comm| AgreedRun::of(&world, &options, comm));
    let agreed = agreed.map_err(|error| said_by_first(&mpi, &error))?;
    // Nothing else is made of this world.
    let agreed = agreed.releasing();
    let first = mpi.rank() == Rank(0);
    if first {
        announce(world.scene(), &options);
        if !arguments.quiet && !arguments.json {
            // If nobody reads, the run is still worth its files; the end tells.
            drop(say(machine(&mpi)));
        }
    }
    if first && let Some(warning) = crowded(&mpi, &cores, arguments) {
        if arguments.json {
            let message = warning.to_string();
            Event::Warning { message }.print();
        } else {
            tell("warning: ", warning);
        }
    }
    let summary = mpi.job(
        |comm| {
            agreed.take_part(comm).map_err(|error| weft_mpi::Failure {
                code: error.exit_code(),
                message: Printable(&error).to_string(),
                echo: error.is_echo(),
            })
        },
        |failure| {
            // If the record cannot be written either, the message has to do.
            drop(note_failure(&options, failure.code, &failure.message));
        },
    );
    summary.map_or(Ok(()), |summary| conclude(&summary, &options))
}

/// The lines of `weft info` on MPI.
pub(crate) fn info() -> String {
    let library = weft_mpi::library();
    match Mpi::start(Options::default()) {
        Ok(mpi) => format!("{library}, thread level {}", mpi.thread_level(),),
        Err(error) => format!("{library}: {error}"),
    }
}

fn mpi_options(arguments: &RunArguments) -> Result<Options, Failure> {
    let usage = |message: String| Failure { code: 2, message };
    let mut options = Options::from_env().map_err(|error| usage(error.to_string()))?;
    if let Some(name) = &arguments.idle {
        options.idle = name.parse().map_err(|e| usage(format!("--idle: {e}")))?;
    }
    Ok(options)
}

/// The build that ranks must have in common.
fn this_build() -> Result<String, Failure> {
    let build = BuildIdentity::of_this_process().map_err(|error| Failure {
        code: 5,
        message: error.to_string(),
    })?;
    Ok(build.to_string())
}

/// Ends the job where this process cannot even start MPI as it should: the others, which wait for
/// it there, hear why. Where it is the first it speaks itself, and the launcher ends the others.
pub(crate) fn refuse(failure: Failure, launcher: Option<&Launcher>) -> Failure {
    let several = launcher.is_some_and(|launcher| launcher.size != Some(1));
    if !several || launcher.is_none_or(Launcher::is_first) {
        return failure;
    }
    let code = failure.code;
    match Mpi::start_together(Err(failure.into())) {
        Ok(_) => Failure::said(code),
        Err(error) => of_start(error, launcher),
    }
}

/// Says why MPI cannot be used, if this rank is the one to do so.
fn of_start(error: StartError, launcher: Option<&Launcher>) -> Failure {
    let message = error.to_string();
    let StartError::Refused {
        code,
        speaks,
        ranks,
        ..
    } = error
    else {
        return Failure { code: 2, message };
    };
    let started = launcher.and_then(|launcher| launcher.size);
    if started.is_some_and(|started| started != ranks) {
        // Processes that have not found each other all think that they speak.
        return Failure { code, message };
    }
    if speaks {
        tell("error: ", &message);
    }
    Failure::said(code)
}

/// Says what all ranks have found alike, on the first of them.
fn said_by_first(mpi: &Mpi, error: &RunError) -> Failure {
    if mpi.rank() == Rank(0) {
        tell("error: ", error);
    }
    Failure::said(error.exit_code())
}

/// The parts of the command line that must be alike on all ranks.
fn given(arguments: &RunArguments) -> Vec<Given> {
    let RunArguments {
        // The scene's contents are compared, wherever the file lies.
        scene: _,
        // Each rank compares these with what the launcher has started.
        ranks: _,
        comm: _,
        network: _,
        threads,
        progress_thread,
        steps,
        until,
        out,
        resume,
        overwrite,
        max_hours,
        trace,
        record,
        audit,
        overrides,
        no_steal,
        policy,
        split,
        victims,
        seed,
        // Hosts may have other numbers of cores, and other memory.
        idle: _,
        memory: _,
        // The first rank alone speaks.
        quiet: _,
        json: _,
    } = arguments;
    // An option whose value stands behind an equals sign, if there is one.
    let with = |name: &str, value: Option<Option<String>>| {
        let said = value.map(|value| match value {
            Some(value) => format!("{name}={value}"),
            None => name.to_owned(),
        });
        Given::said(name, said)
    };
    let path = |path: &PathBuf| path.shown().to_string();
    let mut all = vec![
        Given::option("--threads", Some(threads)),
        Given::flag("--progress-thread", *progress_thread),
        Given::option("--steps", steps.as_ref()),
        Given::option("--until", until.as_ref()),
        Given::option("--out", out.as_ref().map(path)),
        with(
            "--resume",
            (resume.as_ref()).map(|from| from.as_ref().map(path)),
        ),
        Given::flag("--overwrite", *overwrite),
        Given::option(
            "--max-hours",
            max_hours.map(|time| time.as_secs_f64() / 3600.0),
        ),
        with("--trace", trace.map(|steps| Some(steps.to_string()))),
        with(
            "--record",
            record.map(|steps| steps.map(|steps| steps.to_string())),
        ),
        with(
            "--audit",
            audit.map(|choice| match choice {
                AuditChoice::Count => None,
                AuditChoice::Strict => Some("strict".to_owned()),
            }),
        ),
        Given::flag("--no-steal", *no_steal),
        Given::option("--policy", policy.as_ref()),
        Given::option("--split", split.as_ref()),
        Given::option("--victims", victims.as_ref()),
        Given::option("--seed", seed.as_ref()),
    ];
    // The last one for a key counts.
    let last: BTreeMap<&str, &str> = overrides
        .iter()
        .map(|(key, value)| (&key[..], &value[..]))
        .collect();
    all.extend(last.into_iter().map(|(key, value)| {
        let name = format!("--set {key}");
        Given::said(&name, Some(format!("{name}={value}")))
    }));
    all
}

fn check_ranks(mpi: &Mpi, arguments: &RunArguments) -> Result<(), Failure> {
    match arguments.ranks.filter(|&ranks| ranks != mpi.size()) {
        None => Ok(()),
        Some(ranks) => Err(Failure {
            code: 2,
            message: format!(
                "--ranks {ranks}, but the launcher started {}; leave out --ranks under mpirun and srun",
                mpi.size()
            ),
        }),
    }
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

/// A description of the machine that the ranks run on.
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

/// Ranks that have a core for each of their threads never sleep; on a node with fewer cores, they
/// make room.
fn default_idle(mpi: &Mpi, cores: &[Cores], arguments: &RunArguments) -> Idle {
    let threads = u32::from(arguments.threads) + u32::from(arguments.progress_thread);
    if roomy(mpi.rank().index(), mpi.nodes(), cores, threads) {
        Idle::YIELD
    } else {
        Idle::SLEEP
    }
}

/// A rank that is bound to fewer cores than it has workers. The thread for messages shares theirs,
/// if it must.
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
