//! A sweep: every point of a plan is measured once, kept in a file of its own, and never done
//! again.
//!
//! A point's file names what it was measured of; if that has changed the point is done anew. So a
//! sweep that was stopped goes on where it was, and one whose plan has grown does what is new.
//! Points are independent of each other and share the cores of this machine.

use std::collections::HashMap;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use thiserror::Error;
use weft_io::{Show as _, read_regular};

use crate::PHASES;
use crate::bounds::bounds;
use crate::directory::{self, DirectoryError};
use crate::layout::{Layout, LayoutError};
use crate::plan::{Plan, PlanError, Point};
use crate::record::{Record, RecordError};
use crate::replay::{ReplayError, replay};
use crate::synthetic::{CopiesError, copied_header, copied_step, numbered};
use crate::warm_up::warmed_up;

/// Changes when what is in the file of a point means something else.
const FORMAT: u32 = 2;

/// The measurements of a point; times in ns, sums over the steps. Values that are not known are
/// absent, not 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Steps.
    pub steps: u32,
    /// The slowest rank's time of each phase.
    pub phases: [f64; PHASES.len()],
    /// Whole steps, the slowest rank's time.
    pub whole: f64,
    /// The time that all ranks computed in each phase; the rest of their time they talked or
    /// waited.
    pub computed: Option<[f64; PHASES.len()]>,
    /// The lower bounds of its times.
    pub least: Option<Least>,
    /// The computing time in the collision phase of the rank that computed most there.
    pub heaviest: Option<f64>,
    /// Collision tests.
    pub tests: Option<u64>,
    /// Tasks, splits, requests for tasks, requests that brought some, tasks that moved.
    pub balance: [Option<u64>; 5],
    /// Messages and bytes of the collision phase's scope.
    pub traffic: Option<[u64; 2]>,
}

impl Measured {
    /// Adds what a step took, in ns: the slowest rank's time of each phase, and of the whole step.
    pub fn add_step(&mut self, phases: [u64; PHASES.len()], whole: u64) {
        self.steps += 1;
        self.whole += whole as f64;
        for (sum, time) in self.phases.iter_mut().zip(phases) {
            *sum += time as f64;
        }
    }
}

/// The lower bounds, by a record, on the times of any schedule; in ns, sums over the steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Least {
    /// The time that all ranks together compute in each phase.
    pub computed: [f64; PHASES.len()],
    /// Least times of the collision phase: work over ranks, longest piece, latency.
    pub collide: [f64; 3],
}

/// The label of something that points are measured of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The name in tables.
    pub name: String,
    /// The name of all sources that are the same scene, divided into patches in different ways.
    pub family: String,
    /// The title of the scene.
    pub title: String,
    /// The number of patches, and so the largest number of ranks. A sweep asks before it measures.
    pub patches: usize,
}

/// Something that points are measured of.
pub trait Source: Sync {
    /// Its label.
    fn label(&self) -> &Label;
    /// A text that differs from those of other sources, and changes when the source changes.
    fn digest(&self) -> String;
    /// Measures a point.
    ///
    /// # Errors
    /// It cannot be.
    fn measure(&self, point: &Point, plan: &Plan) -> Result<Measured, SweepError>;
}

/// A point that is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Done {
    format: u32,
    source: String,
    /// The point.
    pub point: Point,
    /// The measurements of the point.
    pub measured: Measured,
}

/// How far a sweep is.
#[derive(Clone, Debug)]
pub struct Progress<'a> {
    /// The point that was done last.
    pub last: &'a Point,
    /// Points done, those found done included.
    pub done: usize,
    /// All points.
    pub total: usize,
    /// About how long the rest will take.
    pub left: Duration,
}

/// The results of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// Name and title of each source.
    pub sources: Vec<(String, String)>,
    /// Family and number of patches of each source.
    pub cuts: Vec<(String, usize)>,
    /// The measurements of one rank, for each source; there are several where no two runs take the
    /// same time, and points are repeated.
    pub alone: Vec<Vec<Measured>>,
    /// All points, in the order of the plan.
    pub points: Vec<Done>,
    /// Points that had been done before.
    pub found: usize,
    /// Points that were done of something that has changed since, and were done again.
    pub stale: usize,
    /// Points whose file could not be understood, and that were done again.
    pub damaged: usize,
}

/// The reason why a sweep ended early. Points that are done stay done.
#[derive(Debug, Error)]
pub enum SweepError {
    /// The plan makes no sense.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Too many ranks.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// Copies of a record that there cannot be.
    #[error(transparent)]
    Copies(#[from] CopiesError),
    /// A record cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A replay failed.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The output directory, before anything is measured.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// A file of a point.
    #[error("{}: {source}", path.shown())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A run of the scene failed.
    #[error("{what}")]
    Run {
        /// The message of the run.
        what: String,
        /// Its exit code.
        code: u8,
    },
    /// Somebody asked.
    #[error("the study was stopped; what is done stays done")]
    Stopped,
}

impl SweepError {
    /// The exit code of the command.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Plan(_) | Self::Layout(_) | Self::Copies(_) => 2,
            Self::Record(_) | Self::Io { .. } | Self::Directory(_) => 5,
            Self::Replay(ReplayError::Launch(_)) => 2,
            Self::Replay(_) | Self::Stopped => 101,
            Self::Run { code, .. } => *code,
        }
    }
}

/// Tests of this many patches take a replay about as long as a rank does.
const PATCHES_AS_A_RANK: f64 = 8.0;

/// Measures all points of a plan that are not done yet, on this many threads; `progress` hears of
/// each, and says whether to go on.
///
/// # Errors
/// The first thing that went wrong; [`SweepError::Stopped`] if `progress` breaks off.
#[expect(
    clippy::disallowed_methods,
    reason = "a driver reads the clock, for the time left"
)]
pub fn sweep(
    plan: &Plan,
    sources: &[&dyn Source],
    out: &Path,
    threads: usize,
    progress: &(dyn Fn(&Progress<'_>) -> ControlFlow<()> + Sync),
) -> Result<Results, SweepError> {
    plan.check()?;
    for source in sources {
        for &ranks in &plan.ranks {
            LayoutError::check(source.label().patches, ranks)?;
        }
    }
    let families: Vec<&str> = sources
        .iter()
        .map(|source| source.label().family.as_str())
        .collect();
    directory::prepare(out, &families)?;
    let folder = out.join(directory::POINTS);
    let points = plan.points(sources.len());
    // One rank, for whom no policy and no network matters, is what all are compared with.
    let repeats = if plan.real { plan.repeat } else { 1 };
    let alone = (0..sources.len()).flat_map(|record| {
        (0..repeats).map(move |repeat| Point {
            record,
            network: plan.networks[0].clone(),
            policy: "static".to_owned(),
            ranks: 1,
            repeat,
        })
    });
    let mut all: Vec<Point> = alone.collect();
    let alone = all.len();
    // No point is measured twice, for it is among these or a name stands twice in the plan.
    let mut places: HashMap<Point, usize> = all.iter().cloned().zip(0..).collect();
    let of_plan: Vec<usize> = points
        .into_iter()
        .map(|point| {
            *places.entry(point).or_insert_with_key(|point| {
                all.push(point.clone());
                all.len() - 1
            })
        })
        .collect();
    let digests: Vec<String> = sources.iter().map(|source| source.digest()).collect();
    let key = |point: &Point| {
        let kind = if plan.collide_only {
            "collide"
        } else {
            "whole"
        };
        let ready = if plan.ready_free { " ready free" } else { "" };
        format!(
            "{} {kind} slower {}{ready}",
            digests[point.record], plan.slower
        )
    };
    let (mut stale, mut damaged) = (0, 0);
    let kept: Vec<Option<Done>> = all
        .iter()
        .map(|point| {
            let same = |done: &Done| {
                done.format == FORMAT && done.source == key(point) && done.point == *point
            };
            Ok(match read(&folder, point)? {
                Found::Nothing => None,
                Found::Damaged => {
                    damaged += 1;
                    None
                }
                Found::Done(done) if same(&done) => Some(*done),
                Found::Done(_) => {
                    stale += 1;
                    None
                }
            })
        })
        .collect::<Result<_, SweepError>>()?;
    let found = kept.iter().flatten().count();
    // The work of ranks, and the cost of tests, whichever rank makes them; with copies there are as
    // many more.
    let weight = |point: &Point| {
        let tests = sources[point.record].label().patches as f64 / PATCHES_AS_A_RANK;
        point.ranks as f64 + tests
    };
    let todo: Vec<usize> = (0..all.len()).filter(|&at| kept[at].is_none()).collect();
    let ahead: f64 = todo.iter().map(|&at| weight(&all[at])).sum();
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let state = Mutex::new((kept, None::<SweepError>, 0.0_f64));
    let began = Instant::now();
    let work = || {
        while !failed.load(Ordering::Relaxed)
            && let Some(&at) = todo.get(next.fetch_add(1, Ordering::Relaxed))
        {
            let point = &all[at];
            let outcome = sources[point.record]
                .measure(point, plan)
                .and_then(|measured| {
                    let done = Done {
                        format: FORMAT,
                        source: key(point),
                        point: point.clone(),
                        measured,
                    };
                    write(&folder, &done).map(|()| done)
                });
            let Ok(mut state) = state.lock() else { return };
            match outcome {
                Ok(done) => {
                    state.0[at] = Some(done);
                    state.2 += weight(point);
                    let rest = (ahead - state.2).max(0.0) / state.2;
                    let done = state.0.iter().flatten().count();
                    let asked = progress(&Progress {
                        last: point,
                        done,
                        total: all.len(),
                        left: began.elapsed().mul_f64(rest),
                    });
                    // Nothing is left to stop after the last one.
                    if asked.is_break() && done < all.len() {
                        failed.store(true, Ordering::Relaxed);
                        state.1.get_or_insert(SweepError::Stopped);
                    }
                }
                Err(error) => {
                    failed.store(true, Ordering::Relaxed);
                    state.1.get_or_insert(error);
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.min(todo.len()).max(1) {
            scope.spawn(work);
        }
        work();
    });
    let (kept, error, _) = state
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(error) = error {
        return Err(error);
    }
    // All of them are there: there was no error.
    let done: Vec<Done> = kept.into_iter().flatten().collect();
    let alone = done[..alone].chunks(repeats as usize);
    let alone = alone.map(|of| of.iter().map(|done| done.measured.clone()).collect());
    let name = |source: &&dyn Source| {
        let Label { name, title, .. } = source.label();
        (name.clone(), title.clone())
    };
    Ok(Results {
        sources: sources.iter().map(name).collect(),
        cuts: (sources.iter())
            .map(|source| (source.label().family.clone(), source.label().patches))
            .collect(),
        alone: alone.collect(),
        points: of_plan.into_iter().map(|at| done[at].clone()).collect(),
        found,
        stale,
        damaged,
    })
}

/// Largest file of a point in bytes; they have some thousand.
const LARGEST_POINT: u64 = 16 << 20;

/// The state in which a point's file is.
enum Found {
    Nothing,
    Damaged,
    Done(Box<Done>),
}

fn read(folder: &Path, point: &Point) -> Result<Found, SweepError> {
    let path = folder.join(point.name() + ".json");
    match read_regular(&path, LARGEST_POINT) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes)
            .map_or(Found::Damaged, |done| Found::Done(Box::new(done)))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Found::Nothing),
        Err(source) => Err(SweepError::Io { path, source }),
    }
}

/// Writes a point's file under another name and renames it: it is whole or absent.
fn write(folder: &Path, done: &Done) -> Result<(), SweepError> {
    let path = folder.join(done.point.name() + ".json");
    let write = || {
        let text = serde_json::to_vec_pretty(done).map_err(std::io::Error::other)?;
        let mut partial = weft_io::temporary_beside(&path)?;
        partial.write_all(&text)?;
        partial.persist(&path).map_err(|error| error.error)
    };
    match write() {
        Ok(_) => Ok(()),
        Err(source) => Err(SweepError::Io { path, source }),
    }
}

/// A record as a source: points are replays.
#[derive(Debug)]
pub struct Replayed {
    path: PathBuf,
    /// The label, with the patches of all copies.
    label: Label,
    digest: String,
    /// The vertices of one copy.
    vertices: u64,
    numbered: usize,
    copies: u32,
}

impl Replayed {
    /// Opens a record.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        let record = Record::open(path)?;
        Ok(Self {
            path: path.to_owned(),
            label: Label {
                name: record.header().scene.clone(),
                family: record.header().scene.clone(),
                title: record.header().title.shown().to_string(),
                patches: record.header().patches.len(),
            },
            digest: record.digest().to_owned(),
            vertices: record.header().vertices(),
            numbered: numbered(record.header()),
            copies: 1,
        })
    }

    /// The record in a number of copies, a power of two; see [`crate::synthetic`].
    ///
    /// # Errors
    /// There cannot be this many.
    pub fn copied(mut self, copies: u32) -> Result<Self, CopiesError> {
        let label = &mut self.label;
        let of_one = label.patches / self.copies as usize;
        CopiesError::check(of_one, copies)?;
        CopiesError::check_vertices(self.vertices, copies)?;
        CopiesError::check_numbers(self.numbered, copies)?;
        if copies > 1 {
            for name in [&mut label.name, &mut label.family] {
                *name += &format!("-x{copies}");
            }
        }
        label.patches = of_one * copies as usize;
        self.copies = copies;
        Ok(self)
    }

    /// The record under another name in tables.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.label.name);
        self
    }
}

impl Source for Replayed {
    fn label(&self) -> &Label {
        &self.label
    }

    fn digest(&self) -> String {
        format!("replay {} x{}", self.digest, self.copies)
    }

    fn measure(&self, point: &Point, plan: &Plan) -> Result<Measured, SweepError> {
        let mut record = Record::open(&self.path)?;
        let header = copied_header(record.header(), self.copies);
        let layout = Layout::new(&header, point.ranks)?;
        let machine = plan.machine(point)?;
        let prices = plan.priced(&record.end().prices);
        let of = (&header, &layout);
        let mut left = warmed_up(&mut record, self.copies, of, (&prices, &machine))?;
        let mut all = Measured::default();
        let (mut least, mut heaviest, mut tests) = (Least::default(), 0.0, 0);
        let (mut balance, mut traffic) = ([0; 5], [0; 2]);
        for index in 0..record.steps() {
            let step = copied_step(&mut record, index, self.copies)?;
            let (times, _) = replay(&header, &layout, &step, &prices, &machine, &left)?;
            let bounds = bounds(
                &header,
                &layout,
                &step,
                &prices,
                (&machine.policy, &machine.network),
                &left,
            );
            for phase in 0..PHASES.len() {
                least.computed[phase] += times.computed[phase] as f64;
            }
            let bounds = [bounds.work, bounds.longest, bounds.latency];
            for (sum, bound) in least.collide.iter_mut().zip(bounds) {
                *sum += bound;
            }
            let [requests, served] = times.requests;
            let counts = [times.tasks, times.splits, requests, served, times.moved];
            for (sum, count) in balance.iter_mut().zip(counts) {
                *sum += count;
            }
            for (sum, count) in traffic.iter_mut().zip(times.traffic) {
                *sum += count;
            }
            all.add_step(times.phases, times.whole);
            heaviest += times.heaviest as f64;
            tests += times.tests;
            left = times.left;
        }
        all.computed = Some(least.computed);
        all.least = Some(least);
        all.heaviest = Some(heaviest);
        all.tests = Some(tests);
        all.balance = balance.map(Some);
        all.traffic = Some(traffic);
        Ok(all)
    }
}
