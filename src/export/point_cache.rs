//! Point caches: positions of the vertices of a mesh over time, in 32 bits, without the mesh. They
//! belong to the mesh in the file of the same stem beside them, which has the vertices and faces of
//! the file that the cloth came from.
//!
//! `.pc2`: the letters `POINTCACHE2` and a zero byte; version 1, number of points (whole numbers of
//! 32 bits); first frame, frames between samples (floats of 32 bits); number of samples; then the
//! points of each sample. All little-endian. It has no times: samples are evenly spaced.
//!
//! `.mdd`: number of frames, number of points (whole numbers of 32 bits); the time of each frame in
//! s; then the points of each frame (floats of 32 bits). All big-endian.

use std::io::{self, Write};
use std::ops::Range;

use glam::DVec3;

use super::sequence::Unchanging;
use super::{Job, Recorded, RecordedCloth, reading};
use crate::output::OutputError;
use crate::scene::Format;

/// The files of a run's caches.
pub(super) fn files(run: &Recorded, format: Format) -> Vec<String> {
    let cloths = run.cloths().iter();
    cloths
        .map(|cloth| format!("{}.{}", cloth.name, format.name()))
        .collect()
}

/// The files of the meshes that caches belong to.
pub(super) fn meshes(run: &Recorded) -> Vec<String> {
    run.cloths().iter().map(mesh_file).collect()
}

fn mesh_file(cloth: &RecordedCloth) -> String {
    format!("{}.obj", cloth.name)
}

/// Writes the mesh of each cloth as it is in the first frame.
pub(super) fn write_meshes(job: &Job<'_>) -> Result<(), OutputError> {
    for cloth in job.run.cloths() {
        job.target.write(&mesh_file(cloth), |out| {
            let mut positions = reading(job.run.positions(cloth, 0))?;
            job.axes.all(&mut positions);
            Unchanging::of(&cloth.name, &cloth.file, Format::Obj)?.write(&positions, out)
        })?;
    }
    Ok(())
}

/// Writes a `.pc2` for each cloth; sentences say what it cannot hold.
pub(super) fn write_pc2(job: &Job<'_>) -> Result<Vec<String>, OutputError> {
    let run = job.run;
    let (frames, spacing) = (run.frames(), run.spacing());
    let start = frames[0].time;
    let mut notes = Vec::new();
    let mut late: f64 = 0.0;
    let mut samples = frames.len();
    for (index, frame) in frames.iter().enumerate() {
        let after = frame.time - (start + index as f64 * spacing);
        let is_last = index + 1 == frames.len();
        if is_last && index > 0 && after < -1e-6 * spacing {
            samples = index;
            notes.push(format!(
                "pc2: the frame at {} s, where the run ends, is left out, for samples are {spacing} s apart; mdd and usd have it",
                frame.time
            ));
        } else if after.abs() > 0.5 * spacing {
            return Err(OutputError::Inconsistent {
                path: files(run, Format::Pc2).swap_remove(0).into(),
                what: format!(
                    "samples of pc2 are evenly spaced, and the run's frames are not: the one at {} s is not near {} s; take mdd or \
                     usd, which have times",
                    frame.time,
                    start + index as f64 * spacing
                ),
            });
        } else {
            late = late.max(after);
        }
    }
    if late > 1e-6 * spacing {
        notes.push(format!(
            "pc2: samples are {spacing} s apart, and frames are written where steps end, up to {late:.3e} s later; take a time.step that divides output.interval"
        ));
    }
    for cloth in run.cloths() {
        job.target.write(&format!("{}.pc2", cloth.name), |out| {
            out.write_all(&pc2_header(cloth.file.vertices(), samples)?)?;
            write_samples(job, cloth, 0..samples, f32::to_le_bytes, out)
        })?;
    }
    Ok(notes)
}

/// Writes an `.mdd` for each cloth.
pub(super) fn write_mdd(job: &Job<'_>) -> Result<(), OutputError> {
    let run = job.run;
    for cloth in run.cloths() {
        job.target.write(&format!("{}.mdd", cloth.name), |out| {
            let times: Vec<f64> = run.frames().iter().map(|frame| frame.time).collect();
            out.write_all(&mdd_header(cloth.file.vertices(), &times)?)?;
            write_samples(job, cloth, 0..times.len(), f32::to_be_bytes, out)
        })?;
    }
    Ok(())
}

/// The first bytes of a `.pc2`.
pub(super) fn pc2_header(points: usize, samples: usize) -> io::Result<Vec<u8>> {
    let mut header = b"POINTCACHE2\0".to_vec();
    header.extend(1_i32.to_le_bytes());
    header.extend(count(points)?.to_le_bytes());
    header.extend(0_f32.to_le_bytes());
    header.extend(1_f32.to_le_bytes());
    header.extend(count(samples)?.to_le_bytes());
    Ok(header)
}

/// The first bytes of an `.mdd`.
pub(super) fn mdd_header(points: usize, times: &[f64]) -> io::Result<Vec<u8>> {
    let mut header = count(times.len())?.to_be_bytes().to_vec();
    header.extend(count(points)?.to_be_bytes());
    #[expect(clippy::cast_possible_truncation, reason = "the format has 32 bits")]
    header.extend(times.iter().flat_map(|&time| (time as f32).to_be_bytes()));
    Ok(header)
}

fn count(number: usize) -> io::Result<i32> {
    i32::try_from(number)
        .map_err(|_| io::Error::other("a point cache has fewer than 2³¹ points and samples"))
}

/// Writes the points of some frames, a piece of a frame at a time: memory that is used again need
/// not be made by the system.
fn write_samples(
    job: &Job<'_>,
    cloth: &RecordedCloth,
    frames: Range<usize>,
    bytes: impl Fn(f32) -> [u8; 4],
    out: &mut dyn Write,
) -> io::Result<()> {
    for frame in frames {
        let mut pieces = reading(job.run.pieces(cloth, frame))?;
        while let Some(mut positions) = reading(pieces.next())? {
            job.axes.all(&mut positions);
            let points = points(&positions, &bytes);
            out.write_all(points.as_flattened())?;
        }
    }
    Ok(())
}

/// Points as floats of 32 bits.
pub(super) fn points(points: &[DVec3], bytes: impl Fn(f32) -> [u8; 4]) -> Vec<[u8; 4]> {
    let numbers: &[f64] = bytemuck::cast_slice(points);
    #[expect(clippy::cast_possible_truncation, reason = "the formats have 32 bits")]
    let floats = numbers.iter().map(|&x| bytes(x as f32));
    floats.collect()
}
