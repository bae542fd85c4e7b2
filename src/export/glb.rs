//! One frame as glTF Binary: a mesh for each cloth and body, in m and with y upwards, as the format
//! says. A vertex is there once for each texture coordinate that it has. Numbers have 32 bits.

use std::io::{self, Write};

use glam::{DVec3, Vec3};
use serde_json::{Value, json};

use super::{Axes, Job, Recorded};
use crate::mesh::FileMesh;
use crate::output::OutputError;

/// The file of a run.
pub(super) fn file(run: &Recorded) -> String {
    format!("{}.glb", run.name())
}

/// Writes the frame after this many steps, or the last one.
pub(super) fn write(job: &Job<'_>, step: Option<u64>) -> Result<(), OutputError> {
    let run = job.run;
    let frames = run.frames();
    let frame = match step {
        None => frames.len() - 1,
        Some(step) => frames
            .iter()
            .position(|frame| frame.step == step)
            .ok_or_else(|| {
                let nearest = frames.iter().min_by_key(|frame| frame.step.abs_diff(step));
                OutputError::Inconsistent {
                    path: file(run).into(),
                    what: format!(
                        "the run has no frame of step {step}; the nearest is of step {}",
                        nearest.map_or(0, |frame| frame.step)
                    ),
                }
            })?,
    };
    let mut gltf = Gltf::default();
    for cloth in run.cloths() {
        let positions = run.positions(cloth, frame)?;
        gltf.add(&cloth.name, &cloth.file, &positions);
    }
    for body in run.bodies() {
        let mesh = run.body(body, frame)?;
        gltf.add(&body.name, &mesh, &mesh.mesh.positions);
    }
    job.target.write(&file(run), |out| gltf.write(out))
}

/// A file that is being put together.
#[derive(Default)]
pub(super) struct Gltf {
    binary: Vec<u8>,
    views: Vec<Value>,
    accessors: Vec<Value>,
    meshes: Vec<Value>,
    nodes: Vec<Value>,
}

impl Gltf {
    /// Adds a mesh whose file's vertices are at these places in m, z upwards.
    pub(super) fn add(&mut self, name: &str, file: &FileMesh, positions: &[DVec3]) {
        let place = |v: u32| Axes::GLTF.of(positions[v as usize]).as_vec3();
        let mut points: Vec<Vec3> = Vec::new();
        let mut texture: Vec<[f32; 2]> = Vec::new();
        let mut indices: Vec<u32> = Vec::new();
        let corners = triangles(file);
        match &file.texture {
            None => {
                points.extend((0..positions.len() as u32).map(place));
                indices.extend(corners.iter().map(|&corner| file.faces.corners[corner]));
            }
            Some(of_file) => {
                // The first point of each vertex, and of each point its coordinate and the next
                // point of the vertex.
                let mut first = vec![NONE; positions.len()];
                let mut others: Vec<[u32; 2]> = Vec::new();
                for &corner in &corners {
                    let vertex = file.faces.corners[corner];
                    let coordinate = of_file.corners[corner];
                    let mut index = first[vertex as usize];
                    while index != NONE && others[index as usize][0] != coordinate {
                        index = others[index as usize][1];
                    }
                    if index == NONE {
                        points.push(place(vertex));
                        let [u, v] = of_file.coordinates[coordinate as usize];
                        // A picture's rows count downwards in glTF.
                        #[expect(clippy::cast_possible_truncation, reason = "glTF has 32 bits")]
                        texture.push([u as f32, (1.0 - v) as f32]);
                        index = others.len() as u32;
                        others.push([coordinate, first[vertex as usize]]);
                        first[vertex as usize] = index;
                    }
                    indices.push(index);
                }
            }
        }
        let low = points.iter().fold(Vec3::INFINITY, |low, &p| low.min(p));
        let high = points
            .iter()
            .fold(Vec3::NEG_INFINITY, |high, &p| high.max(p));
        let bytes: &[u8] = bytemuck::cast_slice(&points);
        let position = self.accessor(
            bytes,
            json!({"componentType": 5126, "count": points.len(), "type": "VEC3",
                "min": low.to_array(), "max": high.to_array()}),
        );
        let mut attributes = json!({"POSITION": position});
        if !texture.is_empty() {
            let coordinates = self.accessor(
                bytemuck::cast_slice(&texture),
                json!({"componentType": 5126, "count": texture.len(), "type": "VEC2"}),
            );
            attributes["TEXCOORD_0"] = json!(coordinates);
        }
        let indices = self.accessor(
            bytemuck::cast_slice(&indices),
            json!({"componentType": 5125, "count": indices.len(), "type": "SCALAR"}),
        );
        let mesh = self.meshes.len();
        self.meshes.push(json!({"name": name,
            "primitives": [{"attributes": attributes, "indices": indices, "material": 0}]}));
        self.nodes.push(json!({"name": name, "mesh": mesh}));
    }

    fn accessor(&mut self, bytes: &[u8], mut accessor: Value) -> usize {
        let view = json!({"buffer": 0, "byteOffset": self.binary.len(), "byteLength": bytes.len()});
        self.binary.extend_from_slice(bytes);
        accessor["bufferView"] = json!(self.views.len());
        self.views.push(view);
        self.accessors.push(accessor);
        self.accessors.len() - 1
    }

    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let nodes: Vec<usize> = (0..self.nodes.len()).collect();
        let json = json!({
            "asset": {"version": "2.0", "generator": concat!("weft ", env!("CARGO_PKG_VERSION"))},
            "scene": 0,
            "scenes": [{"nodes": nodes}],
            "nodes": self.nodes,
            "meshes": self.meshes,
            // Cloth is seen from both sides, and programs drop textures of what has no material.
            "materials": [{"name": "cloth", "doubleSided": true}],
            "buffers": [{"byteLength": self.binary.len()}],
            "bufferViews": self.views,
            "accessors": self.accessors,
        });
        let mut json = serde_json::to_vec(&json)?;
        json.resize(json.len().next_multiple_of(4), b' ');
        // Everything in it is of 32 bits, so this needs no padding.
        let length = 12 + 8 + json.len() + 8 + self.binary.len();
        let number = |length: usize| {
            let length = u32::try_from(length).map_err(|_| {
                io::Error::other(
                    "a file of glTF Binary has at most 4 GiB; export fewer vertices, or usd",
                )
            });
            length.map(u32::to_le_bytes)
        };
        out.write_all(b"glTF")?;
        out.write_all(&2_u32.to_le_bytes())?;
        out.write_all(&number(length)?)?;
        out.write_all(&number(json.len())?)?;
        out.write_all(b"JSON")?;
        out.write_all(&json)?;
        out.write_all(&number(self.binary.len())?)?;
        out.write_all(b"BIN\0")?;
        out.write_all(&self.binary)
    }
}

/// No point.
const NONE: u32 = u32::MAX;

/// The corners of faces that are corners of the triangles, by their places in the list of all.
///
/// A face with more than three corners is cut as it was for the simulation.
fn triangles(file: &FileMesh) -> Vec<usize> {
    let mut corners = Vec::with_capacity(3 * file.mesh.triangles.len());
    let mut triangles = file.mesh.triangles.iter();
    let mut first = 0;
    let joined = |vertex: u32| match &file.joined {
        Some(joined) => joined[vertex as usize],
        None => vertex,
    };
    for face in file.faces.iter() {
        for triangle in triangles.by_ref().take(face.len().saturating_sub(2)) {
            corners.extend(triangle.iter().map(|&vertex| {
                let own = |&corner: &u32| joined(corner) == vertex;
                first + face.iter().position(own).unwrap_or_default()
            }));
        }
        first += face.len();
    }
    corners
}
