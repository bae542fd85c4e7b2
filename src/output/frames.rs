//! The frames of a run: a `.vtp` of the cloth per frame, or one of each rank, bodies beside it, and
//! one collection over all.
//!
//! Bodies at rest are written once and named by every frame; bodies that move are written with each
//! frame. Order on disk: files first, the collection last, so that it never names a missing file.

use std::io;
use std::path::{Path, PathBuf};

use crate::mesh::{FileMesh, TriMesh, write_obj_of_file};

use super::pieces::{PieceArrays, write_pvtp};
use super::{Collection, DataArray, OutputError, PolyData, RunDirectory, write_vtp};

/// Writes `frames/*.vtp` and `frames.pvd`.
#[derive(Clone, Debug)]
pub struct FrameSeries {
    run: RunDirectory,
    collection: Collection,
    /// Files of the bodies at rest.
    still: Vec<String>,
}

/// One frame to write.
#[derive(Clone, Debug)]
pub struct Frame<'a> {
    /// Steps done.
    pub step: u64,
    /// Simulated time in s.
    pub time: f64,
    /// The cloth; its `time` is set by [`FrameSeries::write`].
    pub cloth: PolyData<'a>,
    /// Name and present shape of every body that moves, always the same ones in the same order.
    pub moving: &'a [(&'a str, &'a TriMesh)],
}

impl FrameSeries {
    /// Name of the collection.
    pub const COLLECTION: &'static str = "frames.pvd";

    /// Starts a series: writes the bodies at rest, name and shape each.
    ///
    /// # Errors
    /// As [`write_vtp`].
    pub fn create(run: &RunDirectory, still: &[(&str, &TriMesh)]) -> Result<Self, OutputError> {
        let mut series = Self {
            run: run.clone(),
            collection: Collection::default(),
            still: Vec::new(),
        };
        for (number, (name, mesh)) in still.iter().enumerate() {
            let file = still_file(number, name);
            write_vtp(run, &file, &body(mesh, None))?;
            series.still.push(file);
        }
        Ok(series)
    }

    /// Writes the mesh of a cloth, the `number`-th of those, as its file has it, at its place at
    /// time 0. Positions that exports read again are the same to the bit.
    ///
    /// # Errors
    /// [`OutputError::Write`].
    pub(crate) fn write_mesh(
        run: &RunDirectory,
        number: usize,
        name: &str,
        file: &FileMesh,
    ) -> Result<(), OutputError> {
        let positions = file.of_file(&file.mesh.positions);
        let fill = |out: &mut dyn io::Write| write_obj_of_file(name, file, &positions, out);
        run.write(&mesh_file(number, name), fill).map(drop)
    }

    /// Continues the series of an earlier run after `time` in s; its later frames are forgotten,
    /// and so are those whose files are gone. If the collection itself is gone, a new one begins.
    ///
    /// # Errors
    /// As [`Self::create`] and [`Collection::read`].
    pub fn resume(
        run: &RunDirectory,
        still: &[(&str, &TriMesh)],
        time: f64,
    ) -> Result<Self, OutputError> {
        let created = Self::create(run, still)?;
        let collection = Collection::read(&run.file(Self::COLLECTION))?;
        let mut collection = collection.unwrap_or_default();
        collection.truncate_after(time);
        collection.keep_existing(run);
        Ok(Self {
            collection,
            ..created
        })
    }

    /// Writes a frame and then the collection that names it.
    ///
    /// # Errors
    /// As [`write_vtp`].
    pub fn write(&mut self, frame: Frame<'_>) -> Result<(), OutputError> {
        let Frame {
            step,
            time,
            cloth,
            moving,
        } = frame;
        let file = cloth_file(step);
        write_vtp(
            &self.run,
            &file,
            &PolyData {
                time: Some(time),
                ..cloth
            },
        )?;
        self.close(step, time, file, moving)?;
        // One of another run's part, of the same step.
        self.run.remove(&pieces_file(step))
    }

    /// Completes a frame whose pieces all ranks have written: writes the file that names them, the
    /// bodies that move, as [`Frame::moving`], and then the collection.
    ///
    /// # Errors
    /// [`OutputError::Inconsistent`] if pieces have different arrays; as [`write_vtp`].
    pub(crate) fn complete_pieces(
        &mut self,
        step: u64,
        time: f64,
        pieces: &[PieceArrays],
        moving: &[(&str, &TriMesh)],
    ) -> Result<(), OutputError> {
        let file = write_pvtp(&self.run, step, pieces)?;
        self.close(step, time, file, moving)?;
        // One of another run's part, of the same step.
        self.run.remove(&cloth_file(step))
    }

    /// Writes the bodies of a frame whose cloth is in a file, and the collection.
    fn close(
        &mut self,
        step: u64,
        time: f64,
        file: String,
        moving: &[(&str, &TriMesh)],
    ) -> Result<(), OutputError> {
        let mut files = vec![file];
        for (number, (name, mesh)) in moving.iter().enumerate() {
            let file = moving_file(number, name, step);
            write_vtp(&self.run, &file, &body(mesh, Some(time)))?;
            files.push(file);
        }
        for (part, file) in files.iter().chain(&self.still).enumerate() {
            self.collection.add(time, part, file.as_str());
        }
        self.collection.write(&self.run, Self::COLLECTION)
    }

    /// Number of frames in the collection.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.collection.frames()
    }
}

/// The file of the cloth after this number of steps, where it is in one.
pub(crate) fn cloth_file(step: u64) -> String {
    format!("frames/cloth.{step:06}.vtp")
}

/// The file that names the pieces of the cloth after this number of steps.
pub(crate) fn pieces_file(step: u64) -> String {
    format!("frames/cloth.{step:06}.pvtp")
}

/// The file of a rank's piece of the cloth after this number of steps.
pub(crate) fn piece_file(rank: u32, step: u64) -> String {
    format!("frames/piece-{rank:05}.{step:06}.vtp")
}

/// The number of steps after which a file of `frames` has the cloth, or names its pieces; `None`
/// for other files.
#[must_use]
pub fn step_of_cloth(name: &str) -> Option<u64> {
    let stem = name.strip_prefix("cloth.")?;
    let digits = (stem.strip_suffix(".vtp")).or_else(|| stem.strip_suffix(".pvtp"))?;
    let plain = digits.bytes().all(|digit| digit.is_ascii_digit());
    digits.parse().ok().filter(|_| plain)
}

/// The path of the cloth of a run after this number of steps: that of its file, unless there is
/// only one that names its pieces.
#[must_use]
pub fn path_of_cloth(run: &Path, step: u64) -> PathBuf {
    let (whole, pieces) = (run.join(cloth_file(step)), run.join(pieces_file(step)));
    if !whole.exists() && pieces.exists() {
        pieces
    } else {
        whole
    }
}

/// The file of a body at rest, the `number`-th of those.
pub(crate) fn still_file(number: usize, name: &str) -> String {
    format!("frames/still-{number}-{}.vtp", file_stem(name))
}

/// The file of a body that moves, the `number`-th of those, after this number of steps.
pub(crate) fn moving_file(number: usize, name: &str, step: u64) -> String {
    format!("frames/moving-{number}-{}.{step:06}.vtp", file_stem(name))
}

fn body(mesh: &TriMesh, time: Option<f64>) -> PolyData<'_> {
    let none = Vec::<DataArray<'_>>::new;
    PolyData {
        points: &mesh.positions,
        triangles: &mesh.triangles,
        point_arrays: none(),
        cell_arrays: none(),
        time,
    }
}

/// The file of the mesh of a cloth, the `number`-th of those.
pub(crate) fn mesh_file(number: usize, name: &str) -> String {
    format!("meshes/{number}-{}.obj", file_stem(name))
}

/// A name as part of a file name: letters, digits, `-` and `_` stay, the rest becomes `_`.
fn file_stem(name: &str) -> String {
    let keep = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    name.chars()
        .take(40)
        .map(|letter| if keep(letter) { letter } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use glam::DVec3;

    use super::*;

    fn triangle(x: f64) -> TriMesh {
        TriMesh {
            positions: vec![DVec3::X * x, DVec3::Y, DVec3::Z],
            triangles: vec![[0, 1, 2]],
        }
    }

    fn write(series: &mut FrameSeries, step: u64) -> Result<(), OutputError> {
        let (cloth, ball) = (triangle(2.0), triangle(3.0));
        #[expect(clippy::cast_precision_loss, reason = "a handful of steps")]
        let time = step as f64 * 0.5;
        let moving = [("ball", &ball)];
        series.write(Frame {
            step,
            time,
            cloth: body(&cloth, None),
            moving: &moving,
        })
    }

    #[test]
    fn every_file_in_the_collection_exists() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        let floor = triangle(1.0);
        let mut series = FrameSeries::create(&run, &[("../floor", &floor)]).unwrap();
        for step in [0, 7] {
            write(&mut series, step).unwrap();
        }
        assert_eq!(series.frames(), 2);
        let collection = fs::read_to_string(run.file("frames.pvd")).unwrap();
        let files: Vec<&str> = collection
            .split("file=\"")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap())
            .collect();
        assert_eq!(
            files,
            [
                "frames/cloth.000000.vtp",
                "frames/moving-0-ball.000000.vtp",
                "frames/still-0-___floor.vtp",
                "frames/cloth.000007.vtp",
                "frames/moving-0-ball.000007.vtp",
                "frames/still-0-___floor.vtp",
            ]
        );
        for file in files {
            assert!(run.file(file).is_file(), "{file} is missing");
        }
    }

    #[test]
    fn resumed_series_forgets_what_came_later() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        let mut series = FrameSeries::create(&run, &[]).unwrap();
        for step in 0..4 {
            write(&mut series, step).unwrap();
        }
        let mut resumed = FrameSeries::resume(&run, &[], 1.0).unwrap();
        assert_eq!(resumed.frames(), 3);
        write(&mut resumed, 3).unwrap();
        assert_eq!(resumed.collection, series.collection);
        fs::remove_file(run.file("frames/cloth.000001.vtp")).unwrap();
        let resumed = FrameSeries::resume(&run, &[], 1.0).unwrap();
        assert_eq!(resumed.frames(), 2);
        fs::remove_file(run.file("frames.pvd")).unwrap();
        let resumed = FrameSeries::resume(&run, &[], 1.0).unwrap();
        assert_eq!(resumed.frames(), 0);
    }

    /// A frame that fails is not in the collection, and the collection of before is intact.
    #[test]
    fn failed_frame_is_not_in_the_collection() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        let mut series = FrameSeries::create(&run, &[]).unwrap();
        write(&mut series, 1).unwrap();
        let before = fs::read(run.file("frames.pvd")).unwrap();
        fs::create_dir(run.file("frames/cloth.000002.vtp")).unwrap();
        let error = write(&mut series, 2).unwrap_err();
        assert!(error.to_string().contains("cloth.000002.vtp"), "{error}");
        assert_eq!(fs::read(run.file("frames.pvd")).unwrap(), before);
        assert_eq!(series.frames(), 1);
    }
}
