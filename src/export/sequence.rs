//! A mesh file for each cloth and body of each frame, numbered by frames from 0. A body at rest has
//! one file. Positions have all their digits.

use std::io::{self, Write};

use glam::DVec3;

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

/// Writes them.
pub(super) fn write(job: &Job<'_>, format: Format) -> Result<(), OutputError> {
    let run = job.run;
    let mesh = match format {
        Format::Ply => write_ply,
        _ => write_obj,
    };
    for frame in 0..run.frames().len() {
        for cloth in run.cloths() {
            job.target
                .write(&numbered(&cloth.name, frame, format), |out| {
                    let mut positions = reading(run.positions(cloth, frame))?;
                    job.axes.all(&mut positions);
                    mesh(&cloth.name, &cloth.file, &positions, out)
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
                mesh(&body.name, &file, &positions, out)
            })?;
        }
    }
    Ok(())
}

/// Writes an OBJ, as [`crate::mesh::write_obj_of_file`] does, by all cores.
fn write_obj(
    name: &str,
    file: &FileMesh,
    positions: &[DVec3],
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "o {name}")?;
    text::each(positions, out, |p, text, digits| {
        text.push('v');
        for x in p.to_array() {
            text.push(' ');
            text.push_str(digits.format(x));
        }
        text.push('\n');
    })?;
    crate::mesh::write_obj_faces(file, out)
}

/// Writes a binary PLY with coordinates of 64 bits. Texture coordinates are there if each vertex
/// has one alone, for the format has them at vertices.
pub(super) fn write_ply(
    name: &str,
    file: &FileMesh,
    positions: &[DVec3],
    out: &mut dyn Write,
) -> io::Result<()> {
    let texture = texture_of_vertices(file);
    write!(
        out,
        "ply\nformat binary_little_endian 1.0\ncomment {name}\nelement vertex {}\n\
         property double x\nproperty double y\nproperty double z\n{}element face {}\n\
         property list uchar int vertex_indices\nend_header\n",
        positions.len(),
        if texture.is_some() {
            "property double s\nproperty double t\n"
        } else {
            ""
        },
        file.faces.counts.len()
    )?;
    let mut buffer = Vec::new();
    for (vertex, position) in positions.iter().enumerate() {
        buffer.extend(position.to_array().iter().flat_map(|x| x.to_le_bytes()));
        if let Some(texture) = &texture {
            buffer.extend(texture[vertex].iter().flat_map(|x| x.to_le_bytes()));
        }
        spill(&mut buffer, out)?;
    }
    for face in file.faces.iter() {
        // Faces have 128 corners at most.
        buffer.push(u8::try_from(face.len()).unwrap_or(u8::MAX));
        buffer.extend(face.iter().flat_map(|vertex| vertex.to_le_bytes()));
        spill(&mut buffer, out)?;
    }
    out.write_all(&buffer)
}

fn spill(buffer: &mut Vec<u8>, out: &mut dyn Write) -> io::Result<()> {
    if buffer.len() > 1 << 16 {
        out.write_all(buffer)?;
        buffer.clear();
    }
    Ok(())
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
