//! A mesh file for each cloth and body of each frame, numbered by frames from 0. A body at rest has
//! one file. Positions have all their digits.

use std::io::{self, Write};
use std::path::Path;

use bytemuck::NoUninit;
use glam::DVec3;
use rayon::prelude::*;

use super::{Job, Recorded, reading, text};
use crate::mesh::FileMesh;
use crate::output::OutputError;
use crate::scene::Format;

/// The files of a run in a format.
pub(super) fn files(run: &Recorded, format: Format) -> Vec<String> {
    let mut files = Vec::new();
    for frame in 0..run.frames().len() {
        let cloths = run.cloths().iter().map(|cloth| &cloth.name);
        let moving = run.bodies().iter().filter(|body| body.moves);
        let names = cloths.chain(moving.map(|body| &body.name));
        files.extend(names.map(|name| numbered(name, frame, format)));
    }
    let still = run.bodies().iter().filter(|body| !body.moves);
    files.extend(still.map(|body| format!("{}.{}", body.name, format.name())));
    files
}

fn numbered(name: &str, frame: usize, format: Format) -> String {
    format!("{name}.{frame:06}.{}", format.name())
}

/// Writes them, some frames at a time: what a frame waits for is mostly the disk.
pub(super) fn write(job: &Job<'_>, format: Format) -> Result<(), OutputError> {
    let run = job.run;
    let cloths: Result<Vec<Unchanging>, OutputError> = (run.cloths().iter())
        .map(|cloth| {
            let unchanging = Unchanging::of(&cloth.name, &cloth.file, format);
            unchanging.map_err(OutputError::write(Path::new(&cloth.name)))
        })
        .collect();
    let cloths = cloths?;
    (0..run.frames().len())
        .into_par_iter()
        .try_for_each(|frame| {
            for (cloth, unchanging) in run.cloths().iter().zip(&cloths) {
                let name = numbered(&cloth.name, frame, format);
                job.target.write(&name, |out| {
                    let mut positions = reading(run.positions(cloth, frame))?;
                    job.axes.all(&mut positions);
                    unchanging.write(&positions, out)
                })?;
            }
            for body in run.bodies() {
                let file = match body.moves {
                    true => numbered(&body.name, frame, format),
                    false if frame == 0 => format!("{}.{}", body.name, format.name()),
                    false => continue,
                };
                job.target.write(&file, |out| {
                    let mut file = reading(run.body(body, frame))?;
                    let mut positions = std::mem::take(&mut file.mesh.positions);
                    job.axes.all(&mut positions);
                    Unchanging::of(&body.name, &file, format)?.write(&positions, out)
                })?;
            }
            Ok(())
        })
}

/// The parts of a cloth's files that are the same in all frames, as they stand there.
pub(super) struct Unchanging {
    format: Format,
    /// The bytes before the positions.
    head: Vec<u8>,
    /// The texture coordinates of vertices, where the format has them beside positions.
    texture: Option<Vec<[f64; 2]>>,
    /// The bytes behind the positions.
    tail: Vec<u8>,
}

impl Unchanging {
    pub(super) fn of(name: &str, file: &FileMesh, format: Format) -> io::Result<Self> {
        let mut unchanging = Self {
            format,
            head: Vec::new(),
            texture: None,
            tail: Vec::new(),
        };
        let Self {
            head,
            texture,
            tail,
            ..
        } = &mut unchanging;
        if format == Format::Ply {
            *texture = texture_of_vertices(file);
            ply_header(name, file, texture.is_some(), head)?;
            for face in file.faces.iter() {
                // Faces have 128 corners at most.
                tail.push(u8::try_from(face.len()).unwrap_or(u8::MAX));
                tail.extend(face.iter().flat_map(|vertex| vertex.to_le_bytes()));
            }
        } else {
            writeln!(head, "o {name}")?;
            crate::mesh::write_obj_faces(file, tail)?;
        }
        Ok(unchanging)
    }

    /// Writes the file of a frame.
    pub(super) fn write(&self, positions: &[DVec3], out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&self.head)?;
        match (self.format, &self.texture) {
            (Format::Ply, None) => write_doubles(positions, out)?,
            (Format::Ply, Some(texture)) => {
                let mut rows = Vec::with_capacity(5 * CHUNK);
                for (places, texture) in positions.chunks(CHUNK).zip(texture.chunks(CHUNK)) {
                    rows.clear();
                    for (p, [s, t]) in places.iter().zip(texture) {
                        rows.extend_from_slice(&[p.x, p.y, p.z, *s, *t]);
                    }
                    write_doubles(&rows, out)?;
                }
            }
            _ => text::each(positions, out, |p, text, digits| {
                text.push('v');
                for x in p.to_array() {
                    text.push(' ');
                    text.push_str(digits.format(x));
                }
                text.push('\n');
            })?,
        }
        out.write_all(&self.tail)
    }
}

/// Vectors of which bytes are made at a time.
const CHUNK: usize = 4096;

/// Writes the numbers of vectors with the lowest byte first.
fn write_doubles<T: NoUninit>(values: &[T], out: &mut dyn Write) -> io::Result<()> {
    let bytes: &[u8] = bytemuck::cast_slice(values);
    if cfg!(target_endian = "little") {
        return out.write_all(bytes);
    }
    let mut turned = bytes.to_vec();
    turned
        .as_chunks_mut::<8>()
        .0
        .iter_mut()
        .for_each(|x| x.reverse());
    out.write_all(&turned)
}

/// Writes what a binary PLY with coordinates of 64 bits begins with. Texture coordinates are there
/// if each vertex has one alone, for the format has them at vertices.
fn ply_header(
    name: &str,
    file: &FileMesh,
    has_texture: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    write!(
        out,
        "ply\nformat binary_little_endian 1.0\ncomment {name}\nelement vertex {}\n\
         property double x\nproperty double y\nproperty double z\n{}element face {}\n\
         property list uchar int vertex_indices\nend_header\n",
        file.vertices(),
        if has_texture {
            "property double s\nproperty double t\n"
        } else {
            ""
        },
        file.faces.counts.len()
    )
}

/// The texture coordinates of vertices, if each has one alone.
fn texture_of_vertices(file: &FileMesh) -> Option<Vec<[f64; 2]>> {
    let texture = file.texture.as_ref()?;
    let mut of_vertices = vec![None; file.vertices()];
    for (&vertex, &corner) in file.faces.corners.iter().zip(&texture.corners) {
        let own = texture.coordinates[corner as usize];
        let first = of_vertices[vertex as usize].get_or_insert(own);
        if *first != own {
            return None;
        }
    }
    Some(
        of_vertices
            .into_iter()
            .map(Option::unwrap_or_default)
            .collect(),
    )
}
