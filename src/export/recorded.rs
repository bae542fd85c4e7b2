//! A run with frames, as it lies on the disk. It may be one that still goes on.

use std::path::{Path, PathBuf};

use glam::DVec3;

use crate::mesh::{FileMesh, TriMesh, Wanted, join_equal, read_mesh_file};
use crate::output::{
    Collection, FrameArrays, FrameFile, FrameSeries, OutputError, RunRecord, ViewRecord, is_own,
    moving_file, read_frame, step_of_cloth, still_file,
};

/// The frames of a run.
#[derive(Debug)]
pub struct Recorded {
    directory: PathBuf,
    name: String,
    spacing: f64,
    frames: Vec<RecordedFrame>,
    cloths: Vec<RecordedCloth>,
    bodies: Vec<RecordedBody>,
    notes: Vec<String>,
    view: Option<ViewRecord>,
}

/// A frame of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedFrame {
    /// Steps done.
    pub step: u64,
    /// The simulated time in s.
    pub time: f64,
    path: PathBuf,
}

/// A cloth of a run.
#[derive(Clone, Debug)]
pub struct RecordedCloth {
    /// Its name.
    pub name: String,
    /// Its faces and texture as its file has them.
    pub file: FileMesh,
    /// Its first vertex in frames.
    first: usize,
    /// How many vertices it has there.
    vertices: usize,
}

/// A body of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedBody {
    /// Its name.
    pub name: String,
    /// Whether it moves.
    pub moves: bool,
    /// Whether pictures show it with flat faces.
    pub flat: bool,
    /// Its number among those that move, or among those that do not.
    number: usize,
}

impl Recorded {
    /// Opens the directory of a run.
    ///
    /// # Errors
    /// [`OutputError::Read`], [`OutputError::Malformed`] if there are no frames of a run, or if its
    /// files do not fit together.
    pub fn open(directory: &Path) -> Result<Self, OutputError> {
        let record = RunRecord::read(directory)?;
        let collection = directory.join(FrameSeries::COLLECTION);
        let of_run = Collection::read(&collection)?;
        let mut frames = Vec::new();
        for (time, files) in of_run.iter().flat_map(Collection::files) {
            let step =
                |name: &str| step_of_cloth(name.strip_prefix("frames/")?).filter(|_| is_own(name));
            let file = files.iter().find_map(|name| Some((step(name)?, *name)));
            let Some((step, name)) = file else {
                let what = format!("its frame at {time} s has no cloth");
                return Err(malformed(&collection, &what));
            };
            frames.push(RecordedFrame {
                step,
                time,
                path: directory.join(name),
            });
        }
        let Some(first) = frames.first() else {
            let what = "the run has no frames to export: run it with output.frames = true";
            return Err(malformed(&collection, what));
        };
        let mut first_file = FrameFile::open(&first.path)?;
        let mut notes = Vec::new();
        let mut cloths = Vec::new();
        let mut before = 0;
        for cloth in record.frames.iter().flat_map(|frames| &frames.cloths) {
            let path = directory.join(&cloth.mesh);
            if !is_own(&cloth.mesh) {
                return Err(malformed(&path, "a run writes no mesh of that name"));
            }
            let mut file = read_mesh_file(&path, None, &Wanted::default())
                .map_err(|error| malformed(&path, &error.to_string()))?;
            if cloth.joined {
                let (left, joined) = join_equal(&file.mesh.positions);
                let corners = file.mesh.triangles.as_flattened_mut();
                corners.iter_mut().for_each(|v| *v = joined[*v as usize]);
                file.joined = Some(joined);
                file.mesh.positions = left;
            }
            if file.mesh.positions.len() != cloth.vertices {
                let what = "it has another number of vertices than the run's frames";
                return Err(malformed(&path, what));
            }
            cloths.push(RecordedCloth {
                name: cloth.name.clone(),
                file,
                first: before,
                vertices: cloth.vertices,
            });
            before += cloth.vertices;
        }
        if record.frames.is_none() {
            // Runs of earlier programs: all cloth is one mesh of triangles.
            notes.push(
                "the run is of an earlier weft, which kept neither faces nor texture coordinates of files: its cloth is one mesh of \
                 triangles"
                    .to_owned(),
            );
            let vertices = first_file.points();
            cloths.push(RecordedCloth {
                name: "cloth".to_owned(),
                file: FileMesh::of_triangles(TriMesh {
                    positions: first_file.positions(0..vertices)?,
                    triangles: first_file.triangles()?,
                }),
                first: 0,
                vertices,
            });
            before = vertices;
        }
        if before != first_file.points() {
            return Err(malformed(&first.path, OTHER_VERTICES));
        }
        let (mut still, mut moving) = (0, 0);
        let bodies = record.bodies.iter().flatten().map(|body| {
            let moves = !body.is_still();
            let next = if moves { &mut moving } else { &mut still };
            *next += 1;
            RecordedBody {
                name: body.name.clone(),
                moves,
                flat: body.flat,
                number: *next - 1,
            }
        });
        let bodies = bodies.collect();
        let spacing = match &record.frames {
            // At most one frame a step is written.
            Some(frames) => frames.interval_s.max(frames.step_s),
            None => match &frames[..] {
                [first, second, ..] => second.time - first.time,
                _ => 0.0,
            },
        };
        let is_time = spacing.is_finite() && spacing > 0.0;
        Ok(Self {
            directory: directory.to_owned(),
            name: record.scene.name,
            spacing: if is_time { spacing } else { FILM },
            frames,
            cloths,
            bodies,
            notes,
            view: record.frames.and_then(|frames| frames.view),
        })
    }

    /// The name of the scene.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The directory of the run.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The file of the cloth in a frame.
    pub(crate) fn path(&self, frame: usize) -> &Path {
        &self.frames[frame].path
    }

    /// A frame with all of its arrays.
    ///
    /// # Errors
    /// As [`Self::positions`].
    pub(crate) fn arrays(&self, frame: usize) -> Result<FrameArrays, OutputError> {
        let path = self.path(frame);
        let arrays = read_frame(path)?;
        let all: usize = self.cloths.iter().map(|cloth| cloth.vertices).sum();
        if arrays.mesh.positions.len() == all {
            Ok(arrays)
        } else {
            Err(malformed(path, OTHER_VERTICES))
        }
    }

    /// The time between frames in s; the last one may come earlier.
    #[must_use]
    pub(crate) fn spacing(&self) -> f64 {
        self.spacing
    }

    /// The frames, by time. There is at least one.
    #[must_use]
    pub fn frames(&self) -> &[RecordedFrame] {
        &self.frames
    }

    /// The cloths. There is at least one.
    #[must_use]
    pub fn cloths(&self) -> &[RecordedCloth] {
        &self.cloths
    }

    /// The bodies, in the order of the scene.
    #[must_use]
    pub fn bodies(&self) -> &[RecordedBody] {
        &self.bodies
    }

    /// Sentences on what the run does not tell.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// How pictures of the run look; `None` if an earlier program has made it.
    pub(super) fn view(&self) -> Option<&ViewRecord> {
        self.view.as_ref()
    }

    /// The triangles of a cloth in a frame, in m. Vertices of its file that are at one place may be
    /// one vertex.
    ///
    /// # Errors
    /// [`OutputError::Read`], [`OutputError::Malformed`].
    pub(super) fn mesh(&self, of: &RecordedCloth, frame: usize) -> Result<TriMesh, OutputError> {
        let mut file = self.open_frame(frame)?;
        Ok(TriMesh {
            positions: file.positions(of.first..of.first + of.vertices)?,
            triangles: of.file.mesh.triangles.clone(),
        })
    }

    /// Positions of the vertices of a cloth's file in a frame, in m.
    ///
    /// # Errors
    /// [`OutputError::Read`], [`OutputError::Malformed`].
    pub fn positions(&self, of: &RecordedCloth, frame: usize) -> Result<Vec<DVec3>, OutputError> {
        let mut file = self.open_frame(frame)?;
        Ok(expanded(
            of,
            file.positions(of.first..of.first + of.vertices)?,
        ))
    }

    /// Positions of the vertices of a cloth's file in a frame, some at a time, in m.
    ///
    /// # Errors
    /// As [`Self::positions`].
    pub(super) fn pieces<'r>(
        &self,
        of: &'r RecordedCloth,
        frame: usize,
    ) -> Result<Pieces<'r>, OutputError> {
        Ok(Pieces {
            file: self.open_frame(frame)?,
            of,
            taken: 0,
        })
    }

    /// Velocities of the vertices of a cloth's file in a frame, in m/s.
    ///
    /// # Errors
    /// As [`Self::positions`].
    pub fn velocities(&self, of: &RecordedCloth, frame: usize) -> Result<Vec<DVec3>, OutputError> {
        let mut file = self.open_frame(frame)?;
        Ok(expanded(
            of,
            file.velocities(of.first..of.first + of.vertices)?,
        ))
    }

    fn open_frame(&self, frame: usize) -> Result<FrameFile, OutputError> {
        let path = &self.frames[frame].path;
        let file = FrameFile::open(path)?;
        let all: usize = self.cloths.iter().map(|cloth| cloth.vertices).sum();
        if file.points() == all {
            Ok(file)
        } else {
            Err(malformed(path, OTHER_VERTICES))
        }
    }

    /// A body in a frame, in m; one at rest is the same in all.
    ///
    /// # Errors
    /// As [`Self::positions`].
    pub fn body(&self, of: &RecordedBody, frame: usize) -> Result<FileMesh, OutputError> {
        let name = if of.moves {
            moving_file(of.number, &of.name, self.frames[frame].step)
        } else {
            still_file(of.number, &of.name)
        };
        let mut file = FrameFile::open(&self.directory.join(name))?;
        Ok(FileMesh::of_triangles(TriMesh {
            positions: file.positions(0..file.points())?,
            triangles: file.triangles()?,
        }))
    }
}

/// The positions of a cloth in a frame, some at a time.
pub(super) struct Pieces<'r> {
    file: FrameFile,
    of: &'r RecordedCloth,
    taken: usize,
}

impl Pieces<'_> {
    /// The positions that come next.
    pub(super) fn next(&mut self) -> Result<Option<Vec<DVec3>>, OutputError> {
        let all = self.of.vertices;
        if self.taken == all {
            return Ok(None);
        }
        // Vertices that were joined come apart again in any order.
        let end = match self.of.file.joined {
            Some(_) => all,
            None => all.min(self.taken + PIECE),
        };
        let first = self.of.first;
        let positions = self.file.positions(first + self.taken..first + end)?;
        self.taken = end;
        Ok(Some(expanded(self.of, positions)))
    }
}

/// Vertices of a piece: few enough for their memory to be used again.
const PIECE: usize = 4096;

/// Values of the vertices of a cloth's file.
fn expanded(cloth: &RecordedCloth, values: Vec<DVec3>) -> Vec<DVec3> {
    match cloth.file.joined {
        Some(_) => cloth.file.of_file(&values),
        None => values,
    }
}

/// The fault of a frame that does not fit the run's meshes.
const OTHER_VERTICES: &str = "it has another number of vertices than the run's meshes";

fn malformed(path: &Path, what: &str) -> OutputError {
    OutputError::Malformed {
        path: path.to_owned(),
        what: what.to_owned(),
    }
}

/// The time between frames in s if nothing tells it.
const FILM: f64 = 0.04;
