//! Frames of a run in formats that other programs read.
//!
//! In: the directory of a run with frames ([`Recorded`]). Out: files of each [`Format`], in the
//! run's own directory or in a folder that somebody names ([`Target`]). A frame at a time is in
//! memory, of that one cloth or body, and each file appears complete or not at all.
//!
//! | module | writes |
//! |---|---|
//! | `usd` | one `.usda` of all cloths and bodies, over time |
//! | `point_cache` | a `.pc2` or `.mdd` for the mesh of each cloth, and that mesh |
//! | `sequence` | an OBJ or PLY of each cloth and body for each frame |
//! | `glb` | one frame as glTF Binary |
//! | `animation` | all frames as an APNG |
//! | `recorded` | nothing: it reads runs |
//!
//! Vertices and faces are those of the file that a cloth came from, in its order.

mod animation;
mod glb;
mod point_cache;
mod recorded;
mod sequence;
mod text;
mod usd;

use std::io::{self, Write};

use glam::DVec3;

pub use self::recorded::{Recorded, RecordedBody, RecordedCloth, RecordedFrame};
use crate::output::{ExportFolder, OutputError, RunDirectory};
use crate::scene::{Format, Units, Up};

/// The formats of an export, and its units and axes.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportOptions {
    /// The formats.
    pub formats: Vec<Format>,
    /// The unit of lengths in the files; glTF is in m whatever this is.
    pub units: Units,
    /// The axis that points upwards in the files; in glTF it is y whatever this is.
    pub up: Up,
    /// The step of the frame that glTF holds, if not the last one.
    pub step: Option<u64>,
}

impl ExportOptions {
    /// Asks for some formats, in m and with z upwards, as scenes are.
    #[must_use]
    pub fn of(formats: &[Format]) -> Self {
        Self {
            formats: formats.to_vec(),
            units: Units::Metres,
            up: Up::Z,
            step: None,
        }
    }
}

/// The place for the files.
#[derive(Clone, Debug)]
pub enum Target {
    /// The folder `exports` in the directory of the run, as files of its own.
    Run(RunDirectory),
    /// A folder that somebody has named.
    Folder(ExportFolder),
}

impl Target {
    fn begin(&self, names: &[String]) -> Result<(), OutputError> {
        match self {
            Self::Run(_) => Ok(()),
            Self::Folder(folder) => folder.begin(names),
        }
    }

    fn write(
        &self,
        name: &str,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), OutputError> {
        match self {
            Self::Run(run) => run.write(&format!("exports/{name}"), fill).map(drop),
            Self::Folder(folder) => folder.write(name, fill),
        }
    }
}

/// The files that were exported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// The files, by their names in the folder.
    pub files: Vec<String>,
    /// Sentences on what the formats cannot hold of this run.
    pub notes: Vec<String>,
}

/// Exports the frames of a run. Nothing is written unless every file has a place.
///
/// # Errors
/// [`OutputError`] with the file: a frame that cannot be read, a file that is there already or
/// cannot be written, or frames that a format cannot hold.
pub fn export(
    run: &Recorded,
    options: &ExportOptions,
    target: &Target,
) -> Result<Exported, OutputError> {
    let mut formats = options.formats.clone();
    formats.sort_unstable();
    formats.dedup();
    formats.retain(|format| *format != Format::Vtp);
    if formats.is_empty() {
        return Ok(Exported::default());
    }
    let mut exported = Exported::default();
    exported.notes.extend(run.notes().iter().cloned());
    let axes = Axes {
        factor: 1.0 / options.units.metres(),
        up: options.up,
    };
    let job = Job {
        run,
        axes,
        units: options.units,
        target,
    };
    let caches = [Format::Pc2, Format::Mdd];
    let caches: Vec<Format> = caches.into_iter().filter(|f| formats.contains(f)).collect();
    for format in &formats {
        exported.files.extend(match format {
            Format::Vtp => Vec::new(),
            Format::Usd => vec![usd::file(run)],
            Format::Pc2 | Format::Mdd => point_cache::files(run, *format),
            Format::Obj | Format::Ply => sequence::files(run, *format),
            Format::Glb => vec![glb::file(run)],
            Format::Apng => vec![animation::file(run)],
        });
    }
    if !caches.is_empty() {
        exported.files.extend(point_cache::meshes(run));
    }
    target.begin(&exported.files)?;
    for format in &formats {
        match format {
            Format::Vtp => {}
            Format::Usd => usd::write(&job)?,
            Format::Pc2 => exported.notes.extend(point_cache::write_pc2(&job)?),
            Format::Mdd => point_cache::write_mdd(&job)?,
            Format::Obj | Format::Ply => sequence::write(&job, *format)?,
            Format::Glb => glb::write(&job, options.step)?,
            Format::Apng => animation::write(&job)?,
        }
    }
    if !caches.is_empty() {
        point_cache::write_meshes(&job)?;
    }
    exported.notes.extend(rounding(&formats, run)?);
    Ok(exported)
}

/// A sentence on what numbers of 32 bits lose, if any of these formats has such.
fn rounding(formats: &[Format], run: &Recorded) -> Result<Option<String>, OutputError> {
    let whole = [Format::Vtp, Format::Obj, Format::Ply, Format::Apng];
    let short = |format: &&Format| !whole.contains(format);
    let named: Vec<&str> = formats.iter().filter(short).map(|f| f.name()).collect();
    if named.is_empty() {
        return Ok(None);
    }
    let mut farthest: f64 = 0.0;
    for index in [0, run.frames().len().saturating_sub(1)] {
        for cloth in run.cloths() {
            for p in run.positions(cloth, index)? {
                farthest = farthest.max(p.abs().max_element());
            }
        }
    }
    let lost = 0.5 * f64::from(f32::EPSILON) * farthest;
    Ok(Some(format!(
        "positions in {} have 32 bits and are rounded by up to {:.1e} m here: certified gaps between layers are less than that at \
         times, so touching layers may cross in these files; .vtp, .obj and .ply hold all digits",
        named.join(", "),
        lost
    )))
}

/// An export under way.
struct Job<'a> {
    run: &'a Recorded,
    axes: Axes,
    units: Units,
    target: &'a Target,
}

/// How vectors of the run become those of a file.
#[derive(Clone, Copy, Debug)]
struct Axes {
    /// Units of the file in a metre.
    factor: f64,
    up: Up,
}

impl Axes {
    /// The axes of glTF.
    const GLTF: Self = Self {
        factor: 1.0,
        up: Up::Y,
    };

    fn of(self, v: DVec3) -> DVec3 {
        let turned = self.up.to_file(v);
        if self.factor == 1.0 {
            turned
        } else {
            self.factor * turned
        }
    }

    fn all(self, vectors: &mut [DVec3]) {
        if self.factor != 1.0 || self.up != Up::Z {
            vectors.iter_mut().for_each(|v| *v = self.of(*v));
        }
    }
}

/// Turns an error of reading into one of writing that keeps its name, for data that are read to be
/// written.
fn reading<T>(read: Result<T, OutputError>) -> io::Result<T> {
    read.map_err(io::Error::other)
}

#[cfg(test)]
mod tests;
