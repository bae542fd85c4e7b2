//! The shape of a cloth at rest where it is not the one that it starts with: another mesh of the
//! same faces, or its texture coordinates as the pattern that it was cut from.

use std::path::Path;

use glam::DVec2;

use super::build::{in_file, named, read_placed};
use super::weld::weld_alike;
use super::{FileMesh, MeshError, TriMesh, Wanted, check_cloth};
use crate::scene::{Cloth, ClothSource, RestSource};

/// The shape of a cloth at rest.
#[derive(Clone, Debug, PartialEq)]
pub enum RestShape {
    /// A mesh with the triangles of the cloth, in m.
    Mesh(TriMesh),
    /// The corners of each of its triangles in the plane, in m. A vertex on a seam is at several
    /// places.
    Pattern(Vec<[DVec2; 3]>),
}

/// The shape at rest of a cloth whose mesh is that of `file`; `None` if it is that mesh.
///
/// # Errors
/// [`MeshError::Object`] naming the cloth, and its file if it has one for this: it cannot be read,
/// has other vertices or triangles than the mesh, or triangles without area; or there are no
/// texture coordinates.
pub fn build_rest(cloth: &Cloth, file: &FileMesh) -> Result<Option<RestShape>, MeshError> {
    let ClothSource::File {
        path,
        placement,
        weld,
        ..
    } = &cloth.source
    else {
        return Ok(None);
    };
    let built = match &cloth.rest {
        None => return Ok(None),
        Some(RestSource::File(of_rest)) => {
            read_placed(of_rest, None, placement, &Wanted::default())
                .and_then(|at_rest| match (weld, &file.joined) {
                    (Some(distance), Some(joined)) => weld_alike(&at_rest, joined, *distance)
                        .map_err(|message| malformed(of_rest, message)),
                    _ => Ok(at_rest.mesh),
                })
                .and_then(|at_rest| same_faces(of_rest, at_rest, &file.mesh))
        }
        Some(RestSource::Texture(unit)) => pattern(path, file, DVec2::from_array(*unit)),
    };
    let built = built.map_err(|error| named("cloth", &cloth.name, error))?;
    Ok(Some(built))
}

fn malformed(path: &Path, message: String) -> MeshError {
    MeshError::Format {
        path: path.to_owned(),
        place: None,
        message,
    }
}

/// Refuses a mesh at rest that has not the vertices and triangles of the mesh at the start.
fn same_faces(path: &Path, at_rest: TriMesh, start: &TriMesh) -> Result<RestShape, MeshError> {
    let sizes = |mesh: &TriMesh| {
        let (vertices, triangles) = (mesh.positions.len(), mesh.triangles.len());
        (
            vertices,
            triangles,
            format!("{vertices} vertices and {triangles} triangles"),
        )
    };
    let remedy = "a rest shape has the vertices and faces of the cloth's mesh, in the same order; export both from one mesh, without \
                  changing it";
    let (there, expected) = (sizes(&at_rest), sizes(start));
    if there != expected {
        let message = format!(
            "it has {}, and the cloth's mesh has {}: {remedy}",
            there.2, expected.2
        );
        return Err(malformed(path, message));
    }
    let mut both = at_rest.triangles.iter().zip(&start.triangles).enumerate();
    if let Some((number, (a, b))) = both.find(|(_, (a, b))| a != b) {
        let message = format!(
            "its triangle {number} has vertices {}, {}, {}, and that of the cloth's mesh {}, {}, {} (counted from 0): {remedy}",
            a[0], a[1], a[2], b[0], b[1], b[2]
        );
        return Err(malformed(path, message));
    }
    check_cloth(&at_rest).map_err(|error| in_file(path, error))?;
    Ok(RestShape::Mesh(at_rest))
}

/// The texture coordinates of all triangles, with lengths in m of a unit of u and of v.
fn pattern(path: &Path, file: &FileMesh, unit: DVec2) -> Result<RestShape, MeshError> {
    let corners = file.texture_of_triangles().ok_or_else(|| {
        let message = "texture coordinates are wanted of it as the rest shape (`rest_texture`), and not all of its faces have them; export it \
                       with them, or leave out `rest_texture`";
        malformed(path, message.to_owned())
    })?;
    let corners: Vec<[DVec2; 3]> = (corners.into_iter())
        .map(|corners| corners.map(|at| DVec2::from_array(at) * unit))
        .collect();
    for (number, [a, b, c]) in corners.iter().enumerate() {
        let (p, q) = (*b - *a, *c - *a);
        let longest = p.length_squared().max(q.length_squared());
        let doubled = p.perp_dot(q).abs();
        if !(doubled.is_finite() && doubled > LEAST_AREA * longest) {
            let v = file.mesh.triangles[number];
            let message = format!(
                "triangle {number} with vertices {}, {}, {} (counted from 0) spans no area in texture coordinates, which are to be the rest \
                 shape (`rest_texture`); lay it out in them, or remove it",
                v[0], v[1], v[2]
            );
            return Err(malformed(path, message));
        }
    }
    Ok(RestShape::Pattern(corners))
}

/// The least area of a triangle, over the square of an edge.
const LEAST_AREA: f64 = 1e-12;

impl FileMesh {
    /// The texture coordinates of the corners of each triangle; `None` if it has none, or not for
    /// all.
    #[must_use]
    pub fn texture_of_triangles(&self) -> Option<Vec<[[f64; 2]; 3]>> {
        let texture = self.texture.as_ref()?;
        let all = self.texture_indices()?;
        let at = |index: u32| texture.coordinates.get(index as usize).copied();
        all.into_iter()
            .map(|[a, b, c]| Some([at(a)?, at(b)?, at(c)?]))
            .collect()
    }

    /// The index of the texture coordinates at each corner of each triangle; `None` if it has none,
    /// or not for all.
    #[must_use]
    pub(crate) fn texture_indices(&self) -> Option<Vec<[u32; 3]>> {
        let texture = self.texture.as_ref()?;
        let vertex = |corner: u32| match &self.joined {
            Some(joined) => joined.get(corner as usize).copied(),
            None => Some(corner),
        };
        let mut all = Vec::with_capacity(self.mesh.triangles.len());
        let mut triangles = self.mesh.triangles.iter();
        let mut first = 0;
        for face in self.faces.iter() {
            // A face is cut into as many triangles.
            for triangle in triangles.by_ref().take(face.len().saturating_sub(2)) {
                let mut of = [0; 3];
                for (of, corner) in of.iter_mut().zip(triangle) {
                    let place = face.iter().position(|&v| vertex(v) == Some(*corner))?;
                    *of = *texture.corners.get(first + place)?;
                }
                all.push(of);
            }
            first += face.len();
        }
        (all.len() == self.mesh.triangles.len()).then_some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::super::obj;
    use super::*;

    /// Faces of four and five corners, with a seam, whose corners keep their coordinates through
    /// being cut.
    #[test]
    fn corners_of_cut_faces_have_the_texture_coordinates_of_the_file() {
        let text = "v 0 0 0\nv 2 0 0\nv 2 2 0\nv 1 3 0\nv 0 2 0\nv 3 0 0\nv 3 2 0\n\
                    vt 0 0\nvt .2 0\nvt .2 .2\nvt .1 .3\nvt 0 .2\nvt .5 0\nvt .6 0\nvt .6 .2\nvt .5 .2\n\
                    f 1/1 2/2 3/3 4/4 5/5\nf 2/6 6/7 7/8 3/9\n";
        let file = obj::read_file(text.as_bytes(), &[]).unwrap();
        let of = file.texture_of_triangles().unwrap();
        assert_eq!(of.len(), 5);
        let area = |[a, b, c]: [[f64; 2]; 3]| {
            let [a, b, c] = [a, b, c].map(DVec2::from_array);
            0.5 * (b - a).perp_dot(c - a)
        };
        for (triangle, (at, own)) in of.iter().zip(&file.mesh.triangles).enumerate() {
            let shift = if triangle < 3 { 0.0 } else { 0.3 };
            for ([u, v], vertex) in at.iter().zip(own) {
                let p = file.mesh.positions[*vertex as usize];
                assert!((p.x * 0.1 + shift - u).abs() < 1e-15 && (p.y * 0.1 - v).abs() < 1e-15);
            }
        }
        let areas: Vec<f64> = of.iter().map(|of| area(*of)).collect();
        assert!(
            (areas[..3].iter().sum::<f64>() - 0.05).abs() < 1e-15,
            "{areas:?}"
        );
        assert!(
            (areas[3..].iter().sum::<f64>() - 0.02).abs() < 1e-15,
            "{areas:?}"
        );
    }
}
