//! The samples of a mesh that deforms: a numbered sequence of mesh files, a point cache, or a
//! figure of glTF that is animated.
//!
//! All samples are read once when the scene is made ready, one after the other, so that faults of
//! all of them come up before the first step. They are hashed on the way, and then
//! forgotten: a run holds no more of them than it needs at a time, and reads the others when their
//! time comes. A figure is held as its file has it, and each sample is computed from it.
//!
//! A point cache has no faces. They are those of the mesh that it was made for, whose vertices it
//! has in their order; its formats are described where they are written (`export::point_cache`).

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use glam::DVec3;
use sha2::{Digest as _, Sha256};
use weft_io::{Show as _, open_regular};

use super::build::{place, read_placed};
use super::check::LARGEST;
use super::glb::AnimatedFigure;
use super::read::read_figure;
use super::{FileAxes, FileMesh, MAX_VERTICES, MeshError, TriMesh, Wanted};
use crate::heap_bytes::HeapBytes;
use crate::scene::{Deformation, Placement, Sequence, defaults};

/// The fewest samples that a body may have: one alone is a mesh that keeps its shape.
const FEWEST_SAMPLES: usize = 2;
/// The most samples that a body may have.
pub const MOST_SAMPLES: usize = 1_000_000;

/// A share of the time between two samples of a figure by which a sample and the end of the
/// animation are not told apart: keyframes have times of 32 bits.
const SAME_SAMPLE: f64 = 1e-3;

/// The samples of a mesh, each of which can be read at any time.
#[derive(Clone, Debug)]
pub struct Samples {
    source: Source,
    placement: Placement,
    /// The mesh with its triangles, and what else its file says.
    mesh: FileMesh,
    /// The time of each sample in s, ascending.
    times: Vec<f64>,
    digest: [u8; 32],
}

/// The names of its files are left out.
impl HeapBytes for Samples {
    fn heap_bytes(&self) -> usize {
        let Self {
            source,
            placement: _,
            mesh,
            times,
            digest: _,
        } = self;
        let figure = match source {
            Source::Files(_) | Source::Cache(_) => 0,
            Source::Figure { figure, .. } => figure.heap_bytes(),
        };
        mesh.heap_bytes() + times.heap_bytes() + figure
    }
}

#[derive(Clone, Debug)]
enum Source {
    Files(Vec<PathBuf>),
    Cache(PointCache),
    Figure {
        path: PathBuf,
        figure: Box<AnimatedFigure>,
        axes: FileAxes,
    },
}

/// The header of a point cache.
#[derive(Clone, Debug)]
struct PointCache {
    path: PathBuf,
    points: usize,
    /// Where the first sample begins, in bytes.
    first: u64,
    big_endian: bool,
}

impl Samples {
    /// Reads all samples once. `mesh` is the mesh of the scene's file, where it is placed.
    ///
    /// # Errors
    /// A sample cannot be read, or is not one of this mesh: the file, or the sample, is named.
    pub fn open(
        deformation: &Deformation,
        mesh: FileMesh,
        placement: &Placement,
    ) -> Result<Self, MeshError> {
        let (source, times) = match &deformation.sequence {
            Sequence::Files { files, .. } => {
                let rate = deformation.rate.unwrap_or(1.0);
                let times = (0..files.len()).map(|index| index as f64 / rate);
                (Source::Files(files.clone()), times.collect())
            }
            Sequence::Cache(path) => {
                let (cache, times) = PointCache::open(path, deformation.rate, mesh.vertices())?;
                (Source::Cache(cache), times)
            }
            Sequence::Figure { path, animation } => {
                let rate = deformation.rate.unwrap_or(defaults::FIGURE_RATE);
                open_figure(path, animation.as_deref(), rate, &mesh.mesh, placement)?
            }
        };
        let mut samples = Self {
            source,
            placement: *placement,
            mesh,
            times,
            digest: [0; 32],
        };
        let mut hasher = Sha256::new();
        hasher.update(bytemuck::cast_slice::<f64, u8>(&samples.times));
        for index in 0..samples.times.len() {
            hasher.update(bytemuck::cast_slice::<DVec3, u8>(&samples.read(index)?));
        }
        samples.digest = hasher.finalize().into();
        Ok(samples)
    }

    /// The time of each sample in s, ascending; at least one.
    #[must_use]
    pub fn times(&self) -> &[f64] {
        &self.times
    }

    /// The SHA-256 of all samples and their times.
    #[must_use]
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// Reads the positions in m of the mesh's vertices in a sample.
    ///
    /// # Errors
    /// It cannot be read, or is no longer a sample of this mesh.
    pub fn read(&self, index: usize) -> Result<Vec<DVec3>, MeshError> {
        let (path, positions) = match &self.source {
            Source::Files(files) => {
                let path = &files[index];
                (path, self.read_file(path)?)
            }
            Source::Cache(cache) => (&cache.path, self.read_cached(cache, index)?),
            Source::Figure { path, figure, axes } => {
                let mut mesh = TriMesh {
                    positions: figure.at(self.times[index]),
                    triangles: Vec::new(),
                };
                place(&mut mesh, &self.placement, *axes);
                (path, mesh.positions)
            }
        };
        let is_bad = |p: &DVec3| !(p.is_finite() && p.abs().max_element() <= LARGEST);
        if let Some(vertex) = positions.iter().position(is_bad) {
            let of = match &self.source {
                Source::Files(_) => String::new(),
                Source::Cache(_) => format!("sample {index} (counted from 0): "),
                Source::Figure { .. } => format!("at {} s ", self.times[index]),
            };
            let message = format!(
                "{of}vertex {vertex} is at {}, which is no place; export it again, or leave it out",
                positions[vertex]
            );
            return Err(malformed(path, message));
        }
        Ok(positions)
    }

    fn read_file(&self, path: &Path) -> Result<Vec<DVec3>, MeshError> {
        let mesh = read_placed(path, None, &self.placement, &Wanted::default())?.mesh;
        let remedy = "every file of a sequence has the vertices and faces of the first, in the same order; export the sequence from \
                      one mesh, without changing it";
        same_faces(&mesh, &self.mesh.mesh, remedy).map_err(|message| malformed(path, message))?;
        Ok(mesh.positions)
    }

    fn read_cached(&self, cache: &PointCache, index: usize) -> Result<Vec<DVec3>, MeshError> {
        let of_file = cache.read(index)?;
        let positions = match &self.mesh.joined {
            None => of_file,
            Some(joined) => {
                // The first vertex of the file that became one stands for all.
                let mut positions = vec![DVec3::NAN; self.mesh.mesh.positions.len()];
                for (from, &to) in of_file.iter().zip(joined).rev() {
                    positions[to as usize] = *from;
                }
                positions
            }
        };
        let mut mesh = TriMesh {
            positions,
            triangles: Vec::new(),
        };
        place(&mut mesh, &self.placement, self.mesh.axes);
        Ok(mesh.positions)
    }
}

impl PointCache {
    /// Reads the header of a cache for a mesh of this number of vertices, and finds the times of
    /// its samples in s. `rate` is how many frames there are in a second.
    fn open(
        path: &Path,
        rate: Option<f64>,
        vertices: usize,
    ) -> Result<(Self, Vec<f64>), MeshError> {
        let unreadable = |reason| unreadable(path, reason);
        let mut file = open_regular(path).map_err(unreadable)?;
        let length = file.metadata().map_err(unreadable)?.len();
        let is_mdd = (path.extension()).is_some_and(|ending| ending.eq_ignore_ascii_case("mdd"));
        let early = |error: io::Error| match error.kind() {
            io::ErrorKind::UnexpectedEof => malformed(
                path,
                format!("it ends in its header, after {length} bytes; export it again"),
            ),
            _ => unreadable(error),
        };
        let (points, samples, first, times) = if is_mdd {
            let [samples, points] = words(&mut file).map_err(early)?.map(i32::from_be_bytes);
            let count = counted(path, samples, "samples")?;
            let mut times = Vec::new();
            for index in 0..count {
                let [time] = words(&mut file).map_err(early)?.map(f32::from_be_bytes);
                let time = f64::from(time);
                let is_later = times.last().is_none_or(|&before| time > before);
                if !(time.is_finite() && is_later) {
                    let message = format!(
                        "sample {index} (counted from 0) is at {time} s, and times have to ascend; export it again"
                    );
                    return Err(malformed(path, message));
                }
                times.push(time);
            }
            (points, count, 8 + 4 * count as u64, times)
        } else {
            let mut magic = [0; 12];
            file.read_exact(&mut magic).map_err(early)?;
            if &magic != b"POINTCACHE2\0" {
                let message = "it does not begin as a .pc2 does, with POINTCACHE2; export it again";
                return Err(malformed(path, message.to_owned()));
            }
            let [version, points] = words(&mut file).map_err(early)?.map(i32::from_le_bytes);
            let [_, spacing] = words(&mut file).map_err(early)?.map(f32::from_le_bytes);
            let [samples] = words(&mut file).map_err(early)?.map(i32::from_le_bytes);
            if version != 1 {
                let message = format!("it is of version {version}, and only version 1 is known");
                return Err(malformed(path, message));
            }
            let spacing = f64::from(spacing);
            if !(spacing.is_finite() && spacing > 0.0) {
                let message = format!("its samples are {spacing} frames apart; export it again");
                return Err(malformed(path, message));
            }
            let count = counted(path, samples, "samples")?;
            let rate = rate.unwrap_or(1.0);
            let times = (0..count).map(|index| index as f64 * spacing / rate);
            (points, count, 32, times.collect())
        };
        let points = counted(path, points, "points")?;
        if points != vertices {
            let message = format!(
                "it has {points} points, and the body's mesh has {vertices} vertices; export the mesh that the cache was made of, with \
                 its vertices in their order"
            );
            return Err(malformed(path, message));
        }
        let sample = 12 * points as u64;
        let whole = first + sample * samples as u64;
        if length < whole {
            let message = format!(
                "it ends early, in sample {} (counted from 0) of {samples}: it has {length} bytes of {whole}; export it again",
                length.saturating_sub(first) / sample
            );
            return Err(malformed(path, message));
        }
        if length > whole {
            let message = format!(
                "{samples} samples of {points} points take {whole} bytes, and it has {length}; export it again"
            );
            return Err(malformed(path, message));
        }
        let cache = Self {
            path: path.to_owned(),
            points,
            first,
            big_endian: is_mdd,
        };
        Ok((cache, times))
    }

    /// Reads the points of a sample as the file has them.
    fn read(&self, index: usize) -> Result<Vec<DVec3>, MeshError> {
        let size = 12 * self.points;
        let mut bytes = vec![0; size];
        let read = || -> io::Result<()> {
            let mut file = open_regular(&self.path)?;
            file.seek(SeekFrom::Start(self.first + size as u64 * index as u64))?;
            file.read_exact(&mut bytes)
        };
        let mut read = read;
        read().map_err(|reason| match reason.kind() {
            io::ErrorKind::UnexpectedEof => malformed(
                &self.path,
                format!("it ends early, in sample {index} (counted from 0); export it again"),
            ),
            _ => unreadable(&self.path, reason),
        })?;
        let number = |bytes: &[u8]| {
            let word = [bytes[0], bytes[1], bytes[2], bytes[3]];
            f64::from(match self.big_endian {
                true => f32::from_be_bytes(word),
                false => f32::from_le_bytes(word),
            })
        };
        let point = |bytes: &[u8]| {
            DVec3::new(
                number(&bytes[..4]),
                number(&bytes[4..8]),
                number(&bytes[8..]),
            )
        };
        Ok(bytes.chunks_exact(12).map(point).collect())
    }
}

/// Reads a figure, and finds the times of its samples in s: `rate` of them in a second, and the end
/// of its animation. `own` is the body's mesh, where it is placed.
fn open_figure(
    path: &Path,
    animation: Option<&str>,
    rate: f64,
    own: &TriMesh,
    placement: &Placement,
) -> Result<(Source, Vec<f64>), MeshError> {
    let (mut file, figure) = read_figure(path, animation)?;
    place(&mut file.mesh, placement, file.axes);
    let remedy = "the two files have to have one mesh, with the vertices and faces in the same order; leave out `mesh` to take that of \
                  the `sequence`";
    same_faces(&file.mesh, own, remedy).map_err(|message| malformed(path, message))?;
    let end = figure.end();
    let count = (end * rate).ceil();
    if count >= MOST_SAMPLES as f64 {
        return Err(malformed(
            path,
            format!(
                "its animation ends at {end} s, which is {count} samples at a rate of {rate} a second, and the most are {MOST_SAMPLES}; take \
                 a smaller `rate`"
            ),
        ));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "in 1..MOST_SAMPLES"
    )]
    let count = count as usize;
    let times = (0..count).map(|index| index as f64 / rate);
    let before_end = end - SAME_SAMPLE / rate;
    let mut times: Vec<f64> = times.take_while(|&time| time < before_end).collect();
    times.push(end);
    let source = Source::Figure {
        path: path.to_owned(),
        figure: Box::new(figure),
        axes: file.axes,
    };
    Ok((source, times))
}

/// Checks that a mesh has the vertices and faces of the body's own.
///
/// # Errors
/// A sentence: it has not; with the remedy.
fn same_faces(there: &TriMesh, own: &TriMesh, remedy: &str) -> Result<(), String> {
    let sizes = |mesh: &TriMesh| (mesh.positions.len(), mesh.triangles.len());
    let told = |(vertices, triangles): (usize, usize)| {
        format!("{vertices} vertices and {triangles} triangles")
    };
    if sizes(there) != sizes(own) {
        return Err(format!(
            "it has {}, and the body's mesh has {}: {remedy}",
            told(sizes(there)),
            told(sizes(own))
        ));
    }
    let both = there.triangles.iter().zip(&own.triangles);
    if let Some((number, (a, b))) = both.enumerate().find(|(_, (a, b))| a != b) {
        return Err(format!(
            "its triangle {number} has vertices {}, {}, {}, and that of the body's mesh {}, {}, {} (counted from 0): {remedy}",
            a[0], a[1], a[2], b[0], b[1], b[2]
        ));
    }
    Ok(())
}

/// The next words of 32 bits of a file.
fn words<const N: usize>(file: &mut File) -> io::Result<[[u8; 4]; N]> {
    let mut words = [[0; 4]; N];
    file.read_exact(words.as_flattened_mut())?;
    Ok(words)
}

/// A count that a file gives, if it is one.
fn counted(path: &Path, count: i32, what: &str) -> Result<usize, MeshError> {
    let (least, most) = if what == "samples" {
        (FEWEST_SAMPLES, MOST_SAMPLES)
    } else {
        (1, MAX_VERTICES)
    };
    let known = usize::try_from(count).ok();
    known
        .filter(|count| (least..=most).contains(count))
        .ok_or_else(|| {
            malformed(
                path,
                format!(
                    "it says that it has {count} {what}, and there are {least} to {most}; export it again"
                ),
            )
        })
}

fn unreadable(path: &Path, reason: io::Error) -> MeshError {
    MeshError::Unreadable {
        path: path.to_owned(),
        reason,
    }
}

fn malformed(path: &Path, message: String) -> MeshError {
    MeshError::Format {
        path: path.to_owned(),
        place: None,
        message,
    }
}

/// A numbered sequence of files of which one number is missing, or no sequence at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSequence(pub String);

/// Finds the files of a pattern, whose name has one `*` for a number: in the order of their
/// numbers, none of which is missing.
///
/// # Errors
/// A sentence without a subject, for the pattern.
pub fn files_of(pattern: &Path) -> Result<Vec<PathBuf>, NoSequence> {
    let name = pattern.file_name().and_then(|name| name.to_str());
    let parts = name.and_then(|name| name.split_once('*'));
    let Some((before, after)) = parts.filter(|(_, after)| !after.contains('*')) else {
        let message =
            "wants one `*` in the name of the file, for its number, such as \"body.*.obj\"";
        return Err(NoSequence(message.to_owned()));
    };
    let folder = match pattern.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let listed = std::fs::read_dir(folder)
        .map_err(|error| NoSequence(format!("cannot read {}: {error}", folder.shown())))?;
    let mut found: Vec<(u64, PathBuf)> = Vec::new();
    for entry in listed {
        let entry = entry
            .map_err(|error| NoSequence(format!("cannot read {}: {error}", folder.shown())))?;
        let name = entry.file_name();
        let number = name
            .to_str()
            .and_then(|name| name.strip_prefix(before)?.strip_suffix(after));
        let is_number = |text: &&str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let number = number.filter(is_number).and_then(|text| text.parse().ok());
        found.extend(number.map(|number| (number, pattern.with_file_name(&name))));
        if found.len() > MOST_SAMPLES {
            return Err(NoSequence(format!("has more than {MOST_SAMPLES} files")));
        }
    }
    found.sort_unstable();
    if found.is_empty() {
        let message = format!(
            "names no file: there is none in {} with a number in the place of `*`",
            folder.shown()
        );
        return Err(NoSequence(message));
    }
    if let [(_, only)] = &found[..] {
        let message = format!(
            "has one file, {}, and a sequence has at least {FEWEST_SAMPLES}; export the others, or name the file as `mesh`",
            only.shown()
        );
        return Err(NoSequence(message));
    }
    for [(a, one), (b, two)] in found.array_windows() {
        if a == b {
            let message = format!(
                "has two files of number {a}, {} and {}; take one away",
                one.shown(),
                two.shown()
            );
            return Err(NoSequence(message));
        }
        if *b != a + 1 {
            let message = format!(
                "has no file of number {}: {} is followed by {}; export what is missing, or number the files anew",
                a + 1,
                one.shown(),
                two.shown()
            );
            return Err(NoSequence(message));
        }
    }
    Ok(found.into_iter().map(|(_, path)| path).collect())
}
