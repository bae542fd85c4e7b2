//! `weft refine`: finer frames of a run, for rendering, that keep free of crossings.
//!
//! In: the directory of a run with frames ([`Recorded`]). Out: the directory of a run with some of
//! these frames, whose triangles are split into four one to three times and smoothed, and with the
//! same bodies. It has the layout of a run's, so that it can be viewed, audited and exported.
//!
//! Subdivision with collision detection follows [Bri03, §3.2]: the split leaves the surface as it
//! is, new vertices then go towards a smooth surface, and stop where they would collide.
//!
//! | file | does |
//! |---|---|
//! | `split` | splits triangles into four |
//! | `smooth` | finds where the middles of edges go |
//! | `levels` | refines a frame: splits, smooths and certifies |
//! | `carry` | carries over arrays and texture coordinates |
//!
//! * \[Bri03\] Bridson: Computational aspects of dynamic surfaces, thesis, Stanford 2003.

mod carry;
mod error;
mod levels;
mod smooth;
mod split;

#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;
use std::path::Path;

use glam::DVec3;

pub use self::error::RefineError;
pub use self::levels::{LevelCounts, Levels, Moment, Smoothed, Solid, Subject};
use crate::export::Recorded;
use crate::mesh::{MAX_TRIANGLES, MAX_VERTICES, TriMesh};
use crate::output::{
    ClothRecord, Destination, Frame, FrameSeries, FramesRecord, MachineRecord, OutputError,
    PolyData, ProgramRecord, RefinedRecord, RunDirectory, RunRecord, mesh_file,
};
use crate::parallel;
use crate::run::{FEATURES, Stop};

/// The most levels.
pub const MOST_LEVELS: u32 = 3;

/// How a run is refined.
#[derive(Clone, Debug)]
pub struct RefineOptions {
    /// How many times triangles are split into four.
    pub levels: u32,
    /// The numbers of the frames, from 0 on; those of the run that it does not have are left out.
    pub frames: RangeInclusive<usize>,
    /// Takes the first of these, and every n-th after it for this n.
    pub every: usize,
    /// Threads, which share the work on a frame.
    pub threads: usize,
    /// Whether the run in the output directory may be replaced.
    pub overwrite: bool,
    /// The command line, for the record.
    pub command: Vec<String>,
    /// Asks to stop after a frame.
    pub stop: Stop,
}

/// A frame that was refined, for those who watch.
#[derive(Clone, Debug, PartialEq)]
pub struct RefinedFrame {
    /// Steps done.
    pub step: u64,
    /// The simulated time in s.
    pub time: f64,
    /// The numbers of its levels.
    pub levels: Vec<LevelCounts>,
}

/// A run that was refined.
#[derive(Debug)]
pub struct Refined {
    /// The directory of the frames.
    pub directory: RunDirectory,
    /// The record of what was done.
    pub record: RefinedRecord,
    /// The reason why it stopped before its last frame, if it did.
    pub stopped: Option<String>,
    /// Sentences on what the run does not tell.
    pub notes: Vec<String>,
}

/// Refines frames of a run into a directory. A frame appears there once all of it is done.
///
/// # Errors
/// [`RefineError`]: frames that cannot be read, a directory that is not free, files that cannot be
/// written, too many vertices, no such frames.
pub fn refine(
    run: &Path,
    out: &Path,
    options: &RefineOptions,
    see: &mut (dyn FnMut(&RefinedFrame) + Send),
) -> Result<Refined, RefineError> {
    let recorded = Recorded::open(run)?;
    let frames = chosen(&recorded, options)?;
    refuse_same(run, out)?;
    let source = RunRecord::read(run)?;
    if (source.frames.as_ref()).is_some_and(|frames| !frames.sewn.is_empty()) {
        return Err(RefineError::Sewn);
    }
    let first = recorded.arrays(frames[0])?;
    refuse_large(&recorded, options.levels)?;
    let destination = Destination::look(out)?;
    let directory = match options.overwrite {
        true => destination.overwrite(),
        false => destination.create(),
    }?;
    let job = Job {
        recorded: &recorded,
        source: &source,
        directory: &directory,
        options,
    };
    let work = || job.run(&frames, &first.mesh, see);
    let (record, stopped) = parallel::on_threads(options.threads, work)??;
    let notes = job.notes();
    Ok(Refined {
        directory,
        record,
        stopped,
        notes,
    })
}

/// The numbers of the frames that are asked for.
fn chosen(run: &Recorded, options: &RefineOptions) -> Result<Vec<usize>, RefineError> {
    let count = run.frames().len();
    let asked = options.frames.clone().take_while(|&frame| frame < count);
    let frames: Vec<usize> = asked.step_by(options.every.max(1)).collect();
    if frames.is_empty() {
        let asked = options.frames.clone();
        return Err(RefineError::NoFrames { asked, count });
    }
    Ok(frames)
}

/// Refuses to write into the directory that is read.
fn refuse_same(run: &Path, out: &Path) -> Result<(), RefineError> {
    let real = |path: &Path| path.canonicalize().ok();
    match (real(run), real(out)) {
        (Some(a), Some(b)) if a == b => Err(RefineError::SameDirectory(out.to_owned())),
        _ => Ok(()),
    }
}

/// Refuses what no program of ours could read again.
fn refuse_large(run: &Recorded, levels: u32) -> Result<(), RefineError> {
    let (mut vertices, mut triangles) = (0_u64, 0_u64);
    for cloth in run.cloths() {
        let mesh = &cloth.file.mesh;
        // A split adds a vertex for each edge; then each edge is two, and a triangle adds three.
        let mut counts = [
            mesh.positions.len(),
            mesh.edges().len(),
            mesh.triangles.len(),
        ];
        for _ in 0..levels {
            let [v, e, f] = counts;
            counts = [v + e, 2 * e + 3 * f, 4 * f];
        }
        vertices += counts[0] as u64;
        triangles += counts[2] as u64;
    }
    if vertices > MAX_VERTICES as u64 || triangles > MAX_TRIANGLES as u64 {
        return Err(RefineError::TooLarge {
            levels,
            vertices,
            triangles,
        });
    }
    Ok(())
}

/// A refinement under way.
struct Job<'a> {
    recorded: &'a Recorded,
    source: &'a RunRecord,
    directory: &'a RunDirectory,
    options: &'a RefineOptions,
}

impl Job<'_> {
    fn notes(&self) -> Vec<String> {
        let mut notes = self.recorded.notes().to_vec();
        if self.source.bodies.is_none() {
            notes.push(
                "the run does not say which bodies it has, because an earlier weft wrote it: refined cloth may enter them"
                    .to_owned(),
            );
        }
        notes
    }

    /// Refines the frames; the record says at the end how that went.
    fn run(
        &self,
        frames: &[usize],
        first: &TriMesh,
        see: &mut (dyn FnMut(&RefinedFrame) + Send),
    ) -> Result<(RefinedRecord, Option<String>), RefineError> {
        let levels = self.levels(first, frames[0])?;
        let mut record = self.record(&levels);
        record.write(self.directory)?;
        let done = self.frames(frames, (&levels, first), see);
        match &done {
            Ok((done, stopped)) => {
                record.refined = Some(done.clone());
                record.stopped.clone_from(stopped);
                record.exit = Some(0);
                record.write(self.directory)?;
            }
            Err(error) => {
                record.fail(error.exit_code(), error.to_string());
                // If that cannot be written either, the message has to do.
                drop(record.write(self.directory));
            }
        }
        done
    }

    fn frames(
        &self,
        frames: &[usize],
        (levels, first): (&Levels, &TriMesh),
        see: &mut (dyn FnMut(&RefinedFrame) + Send),
    ) -> Result<(RefinedRecord, Option<String>), RefineError> {
        for (number, cloth) in self.recorded.cloths().iter().enumerate() {
            let fine = carry::mesh(&cloth.file, self.options.levels);
            FrameSeries::write_mesh(self.directory, number, &cloth.name, &fine)?;
        }
        let still = self.bodies(frames[0], false)?;
        let still: Vec<(&str, &TriMesh)> = still.iter().map(|(name, mesh)| (*name, mesh)).collect();
        let mut series = FrameSeries::create(self.directory, &still)?;
        let mut done = RefinedRecord {
            from: self.recorded.directory().to_string_lossy().into_owned(),
            levels: self.options.levels,
            ..RefinedRecord::default()
        };
        for (at, &frame) in frames.iter().enumerate() {
            if at > 0
                && let Some(cause) = self.options.stop.cause()
            {
                return Ok((done, Some(cause.to_string())));
            }
            let seen = self.frame(levels, first, frame, &mut series)?;
            done.frames += 1;
            for level in &seen.levels {
                done.new += level.new;
                done.moved += level.moved;
                done.cut += level.cut;
            }
            see(&seen);
        }
        Ok((done, None))
    }

    /// The levels of all frames.
    fn levels(&self, first: &TriMesh, frame: usize) -> Result<Levels, RefineError> {
        let cloths = self.recorded.cloths();
        let sizes: Vec<usize> = (cloths.iter())
            .map(|cloth| cloth.file.mesh.positions.len())
            .collect();
        let of_frames = self.source.frames.as_ref();
        let passes = |number: usize| {
            let cloth = of_frames.and_then(|frames| frames.cloths.get(number));
            cloth.is_some_and(|cloth| cloth.passes_itself)
        };
        let passing: Vec<bool> = (0..cloths.len()).map(passes).collect();
        let mut solids = Vec::new();
        for (number, body) in self.source.bodies.iter().flatten().enumerate() {
            solids.push(match body.formula {
                Some(formula) => Solid::Formula(formula, body.way()),
                None => {
                    let body = &self.recorded.bodies()[number];
                    Solid::Triangles(self.recorded.body(body, frame)?.mesh)
                }
            });
        }
        let subject = Subject {
            triangles: &first.triangles,
            positions: &first.positions,
            sizes: &sizes,
            passing: &passing,
            solids: &solids,
        };
        Ok(Levels::new(&subject, self.options.levels))
    }

    /// The record of the refined run, before it is done.
    fn record(&self, levels: &Levels) -> RunRecord {
        let machine = MachineRecord {
            ranks: 1,
            threads: u32::try_from(self.options.threads).unwrap_or(u32::MAX),
            comm: "solo".to_owned(),
            ..MachineRecord::default()
        };
        let source = self.source;
        let mut record = RunRecord::new(
            ProgramRecord::this(FEATURES),
            machine,
            self.options.command.clone(),
            source.scene.clone(),
            source.seed,
        );
        record.bodies.clone_from(&source.bodies);
        record.warnings.clone_from(&source.warnings);
        let of_frames = source.frames.clone().unwrap_or_default();
        let sizes = levels.sizes();
        let cloths = self.recorded.cloths().iter().zip(&sizes).enumerate();
        let cloths = cloths.map(|(number, (cloth, &vertices))| ClothRecord {
            name: cloth.name.clone(),
            vertices,
            mesh: mesh_file(number, &cloth.name),
            joined: false,
            passes_itself: (of_frames.cloths.get(number)).is_some_and(|cloth| cloth.passes_itself),
        });
        record.frames = Some(FramesRecord {
            interval_s: self.recorded.spacing() * self.options.every.max(1) as f64,
            step_s: of_frames.step_s,
            cloths: cloths.collect(),
            view: of_frames.view,
            sewn: Vec::new(),
        });
        record
    }

    /// The bodies in a frame, those that move or those that do not.
    fn bodies(&self, frame: usize, moves: bool) -> Result<Vec<(&str, TriMesh)>, OutputError> {
        let bodies = self.recorded.bodies().iter();
        bodies
            .filter(|body| body.moves == moves)
            .map(|body| Ok((body.name.as_str(), self.recorded.body(body, frame)?.mesh)))
            .collect()
    }

    /// Refines and writes a frame.
    fn frame(
        &self,
        levels: &Levels,
        first: &TriMesh,
        frame: usize,
        series: &mut FrameSeries,
    ) -> Result<RefinedFrame, RefineError> {
        let path = self.recorded.path(frame);
        let malformed = |what: String| OutputError::Malformed {
            path: path.to_owned(),
            what,
        };
        let arrays = self.recorded.arrays(frame)?;
        if arrays.mesh.triangles != first.triangles {
            let what = "its triangles are not those of the first frame".to_owned();
            return Err(malformed(what).into());
        }
        let moving = self.bodies(frame, true)?;
        let of = &self.recorded.frames()[frame];
        let mut solids = Vec::new();
        for (number, body) in self.source.bodies.iter().flatten().enumerate() {
            solids.push(match body.formula {
                Some(_) => None,
                None => Some(self.triangles_of(number, frame, levels)?),
            });
        }
        let smoothed = levels.refine(&Moment {
            time: arrays.time.unwrap_or(of.time),
            cloth: &arrays.mesh.positions,
            solids: &solids,
        });
        let carried = carry::Carried::new(levels, &arrays, &smoothed.positions, &smoothed.shares);
        let carried = carried.map_err(malformed)?;
        let moving: Vec<(&str, &TriMesh)> =
            (moving.iter()).map(|(name, mesh)| (*name, mesh)).collect();
        series.write(Frame {
            step: of.step,
            time: of.time,
            cloth: PolyData {
                points: &smoothed.positions,
                triangles: levels.triangles(),
                point_arrays: carried.of_vertices(),
                cell_arrays: carried.of_triangles(),
                time: None,
            },
            moving: &moving,
        })?;
        Ok(RefinedFrame {
            step: of.step,
            time: of.time,
            levels: smoothed.levels,
        })
    }

    /// The vertices of a body of triangles in a frame.
    fn triangles_of(
        &self,
        number: usize,
        frame: usize,
        levels: &Levels,
    ) -> Result<Vec<DVec3>, OutputError> {
        let body = &self.recorded.bodies()[number];
        let mesh = self.recorded.body(body, frame)?.mesh;
        if levels.is_body(number, &mesh) {
            return Ok(mesh.positions);
        }
        let name = &body.name;
        Err(OutputError::Malformed {
            path: self.recorded.path(frame).to_owned(),
            what: format!("body `{name}` has other triangles in it than in the first frame"),
        })
    }
}
