//! Arrays of frames, and texture coordinates, on refined triangles.
//!
//! Values of vertices between two others are their mean; whole numbers, which name states, are the
//! lesser of the two; normals are those of the refined surface. Forces are left out, because they
//! are of the simulation's vertices and their sum would change. Values of triangles are those of
//! the triangle that they are a part of.

use super::levels::{Levels, middle};
use super::split::Split;
use crate::collide::Surface;
use crate::mesh::{Faces, FileMesh, Texture, TriMesh};
use crate::output::{ArrayValues, DataArray, FrameArrays, NamedArray, Values};
use crate::run::normals;

/// The arrays that are not carried over.
const LEFT_OUT: [&str; 2] = ["contact_force", SHARES];
/// The array of normals.
const NORMALS: &str = "normal";
/// The array of the shares of displacements that vertices went.
const SHARES: &str = "smoothed";

/// Arrays of a refined frame.
pub(super) struct Carried {
    of_vertices: Vec<Owned>,
    of_triangles: Vec<Owned>,
}

struct Owned {
    name: String,
    values: OwnedValues,
}

enum OwnedValues {
    Scalars(Vec<f64>),
    Vectors(Vec<glam::DVec3>),
    Integers(Vec<u32>),
}

impl Owned {
    fn borrow(&self) -> DataArray<'_> {
        DataArray {
            name: &self.name,
            values: match &self.values {
                OwnedValues::Scalars(values) => Values::Scalars(values),
                OwnedValues::Vectors(values) => Values::Vectors(values),
                OwnedValues::Integers(values) => Values::Integers(values),
            },
        }
    }
}

impl Carried {
    /// The arrays of a frame on the finest level, where its vertices are at `positions` (m) and
    /// went these shares. An error names an array that no frame has.
    pub(super) fn new(
        levels: &Levels,
        frame: &FrameArrays,
        positions: &[glam::DVec3],
        shares: &[f64],
    ) -> Result<Self, String> {
        let carried = |array: &&NamedArray| !LEFT_OUT.contains(&array.name.as_str());
        let of_vertex = |array: &NamedArray| {
            let values = match &array.values {
                _ if array.name == NORMALS => {
                    OwnedValues::Vectors(normals(positions, levels.triangles()))
                }
                ArrayValues::Scalars(values) => {
                    OwnedValues::Scalars(levels.between(values, |a, b| 0.5 * (a + b)))
                }
                ArrayValues::Vectors(values) => {
                    OwnedValues::Vectors(levels.between(values, middle))
                }
                ArrayValues::Integers(_) => {
                    OwnedValues::Integers(levels.between(&whole(array)?, Ord::min))
                }
            };
            let name = array.name.clone();
            Ok(Owned { name, values })
        };
        let of_vertices = frame.of_vertices.iter().filter(carried).map(of_vertex);
        let mut of_vertices = of_vertices.collect::<Result<Vec<_>, String>>()?;
        of_vertices.push(Owned {
            name: SHARES.to_owned(),
            values: OwnedValues::Scalars(shares.to_vec()),
        });
        let parts = levels.triangles().len() / frame.mesh.triangles.len().max(1);
        let of_triangle = |array: &NamedArray| {
            let values = match &array.values {
                ArrayValues::Scalars(values) => OwnedValues::Scalars(repeated(values, parts)),
                ArrayValues::Vectors(values) => OwnedValues::Vectors(repeated(values, parts)),
                ArrayValues::Integers(_) => OwnedValues::Integers(repeated(&whole(array)?, parts)),
            };
            let name = array.name.clone();
            Ok(Owned { name, values })
        };
        let of_triangles = frame.of_triangles.iter().map(of_triangle);
        Ok(Self {
            of_vertices,
            of_triangles: of_triangles.collect::<Result<Vec<_>, String>>()?,
        })
    }

    pub(super) fn of_vertices(&self) -> Vec<DataArray<'_>> {
        self.of_vertices.iter().map(Owned::borrow).collect()
    }

    pub(super) fn of_triangles(&self) -> Vec<DataArray<'_>> {
        self.of_triangles.iter().map(Owned::borrow).collect()
    }
}

/// The whole numbers of an array, as frames have them.
fn whole(array: &NamedArray) -> Result<Vec<u32>, String> {
    let ArrayValues::Integers(values) = &array.values else {
        return Ok(Vec::new());
    };
    let numbers = values.iter().map(|&value| u32::try_from(value));
    numbers
        .collect::<Result<_, _>>()
        .map_err(|_| format!("its array `{}` has numbers that no frame has", array.name))
}

/// Each value, repeated this many times.
fn repeated<T: Copy>(values: &[T], times: usize) -> Vec<T> {
    let all = values.iter();
    all.flat_map(|&value| std::iter::repeat_n(value, times))
        .collect()
}

/// The mesh of a cloth on a finer level: where vertices are at the middles of edges. Corners of
/// faces keep their texture coordinates, also along seams.
pub(super) fn mesh(file: &FileMesh, levels: u32) -> FileMesh {
    let (positions, triangles) = split(
        file.mesh.positions.clone(),
        file.mesh.triangles.clone(),
        levels,
        middle,
    );
    // Texture coordinates are the vertices of a mesh of their own.
    let texture = file.texture.as_ref().zip(file.texture_indices());
    let texture = texture.map(|(texture, indices)| {
        let mean = |[a, b]: [f64; 2], [c, d]: [f64; 2]| [0.5 * (a + c), 0.5 * (b + d)];
        let (coordinates, corners) = split(texture.coordinates.clone(), indices, levels, mean);
        Texture {
            coordinates,
            corners: corners.into_flattened(),
        }
    });
    FileMesh {
        faces: Faces::of_triangles(&triangles),
        mesh: TriMesh {
            positions,
            triangles,
        },
        texture,
        ..FileMesh::default()
    }
}

/// Splits triangles and the values of their vertices.
fn split<T: Copy>(
    mut values: Vec<T>,
    mut triangles: Vec<[u32; 3]>,
    levels: u32,
    mean: impl Fn(T, T) -> T,
) -> (Vec<T>, Vec<[u32; 3]>) {
    for _ in 0..levels {
        let surface = Surface::new(&triangles, values.len());
        let split = Split::new(&surface, triangles.len(), &[values.len()]);
        values = split.between(&values, &mean);
        triangles = split.triangles().to_vec();
    }
    (values, triangles)
}

#[cfg(test)]
mod tests {
    use glam::DVec3;

    use super::*;

    /// Two triangles whose common edge is a seam of the texture.
    #[test]
    fn texture_coordinates_are_halved_on_both_sides_of_a_seam() {
        let file = FileMesh {
            texture: Some(Texture {
                coordinates: vec![
                    [0.0, 0.0],
                    [0.4, 0.0],
                    [0.0, 0.4],
                    [0.9, 0.9],
                    [0.5, 0.9],
                    [0.9, 0.5],
                ],
                corners: vec![0, 1, 2, 3, 4, 5],
            }),
            ..FileMesh::of_triangles(TriMesh {
                positions: vec![DVec3::ZERO, DVec3::X, DVec3::Y, DVec3::new(1.0, 1.0, 0.0)],
                triangles: vec![[0, 1, 2], [3, 2, 1]],
            })
        };
        let fine = mesh(&file, 2);
        assert_eq!(fine.mesh.positions.len(), 25);
        assert_eq!(fine.mesh.triangles.len(), 32);
        let corners = fine.texture_of_triangles().unwrap();
        for (t, (corners, of)) in fine.mesh.triangles.iter().zip(&corners).enumerate() {
            for (&v, [s, t_]) in corners.iter().zip(of) {
                let p = fine.mesh.positions[v as usize];
                let known = match t < 16 {
                    true => [0.4 * p.x, 0.4 * p.y],
                    false => [0.5 + 0.4 * p.x, 0.5 + 0.4 * p.y],
                };
                assert!((s - known[0]).abs() + (t_ - known[1]).abs() < 1e-15);
            }
        }
        // No coordinates are there twice.
        let texture = fine.texture.unwrap();
        assert_eq!(texture.coordinates.len(), 30);
    }
}
