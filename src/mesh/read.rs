//! Mesh files: which reader, and how much of a file is read at most.

use std::path::Path;

use weft_io::read_regular;

use super::file_problem::Problem;
use super::glb::AnimatedFigure;
use super::{FileMesh, MeshError, TriMesh, Wanted, glb, obj, ply, stl, usd};

/// Whether the name ends as that of a mesh that can be read.
pub fn is_readable_format(path: &Path) -> bool {
    format(path).is_some()
}

/// The endings of files that can be read, for messages.
pub const READABLE_FORMATS: &str = ".obj, .ply, .stl, .glb, .gltf, .usd, .usda, .usdc, .usdz";

/// Whether files of this name have y upwards and are in m, whichever program wrote them, as glTF
/// says.
#[must_use]
pub fn is_y_up_format(path: &Path) -> bool {
    matches!(format(path), Some(Format::Glb | Format::Gltf))
}

/// Whether files of this name say what their units are and which axis points upwards, and have
/// prims, one of which may be meant.
#[must_use]
pub(crate) fn is_usd(path: &Path) -> bool {
    matches!(format(path), Some(Format::Usd))
}

/// Whether vertices of files of this name that are at one place become one, and their numbers are
/// kept.
#[must_use]
pub(crate) fn joins_equal(path: &Path) -> bool {
    matches!(format(path), Some(Format::Glb | Format::Gltf))
}

/// Reads the triangles of a mesh from a file, by the ending of its name; see [`read_mesh_file`].
///
/// # Errors
/// As [`read_mesh_file`].
pub fn read_mesh(path: &Path) -> Result<TriMesh, MeshError> {
    read_mesh_file(path, None, &Wanted::default()).map(|file| file.mesh)
}

/// Reads a mesh from an OBJ, PLY, STL, glTF or USD file, by the ending of its name, and beside it
/// what is wanted. `prim` names the part of a USD file that is meant, if not all.
///
/// Faces with more than three corners are cut into triangles. Vertices keep the order of the file;
/// those of STL, which has no indices, are joined if they are equal, and so are those of glTF,
/// which has a vertex twice where texture coordinates differ. The mesh is not checked: see
/// [`super::check_cloth`] and [`super::check_body`].
///
/// # Errors
/// [`MeshError::Unreadable`], also of what is no regular file; [`MeshError::Format`] with the line
/// or byte.
pub fn read_mesh_file(
    path: &Path,
    prim: Option<&str>,
    wanted: &Wanted<'_>,
) -> Result<FileMesh, MeshError> {
    let unreadable = |reason| MeshError::Unreadable {
        path: path.to_owned(),
        reason,
    };
    let malformed = |problem: Problem| MeshError::Format {
        path: path.to_owned(),
        place: problem.place,
        message: problem.message,
    };
    let Some(format) = format(path) else {
        return Err(malformed(Problem::new(format!(
            "its name ends in none of {READABLE_FORMATS}{}",
            remedy(path)
        ))));
    };
    if wanted.velocities && !matches!(format, Format::Ply) {
        return Err(malformed(Problem::new(
            "start velocities are wanted of it, and only .ply files have them, as numbers vx, vy and vz of vertices; leave out \
             `velocities`, or export the mesh as PLY with them",
        )));
    }
    let bytes = read_regular(path, LARGEST_FILE).map_err(unreadable)?;
    let groups = wanted.groups;
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let beside = |name: &Path, most: u64| read_regular(&folder.join(name), most);
    match format {
        Format::Obj => obj::read_file(&bytes, groups),
        Format::Ply => ply::read_file(&bytes, wanted),
        Format::Stl => stl::read(&bytes).map(FileMesh::of_triangles),
        Format::Glb => glb::read_file(&bytes, groups, &beside),
        Format::Gltf => glb::read_text_file(&bytes, groups, &beside),
        Format::Usd => usd::read_file(&bytes, groups, prim),
    }
    .map_err(malformed)
}

/// Reads a figure from a glTF file, where the file has it, with the animation of this name that
/// moves it. Morph targets are refused.
///
/// # Errors
/// As [`read_mesh_file`]; also that the file has no such animation, or several and no name is
/// given.
pub(super) fn read_figure(
    path: &Path,
    animation: Option<&str>,
) -> Result<(FileMesh, AnimatedFigure), MeshError> {
    let bytes = read_regular(path, LARGEST_FILE).map_err(|reason| MeshError::Unreadable {
        path: path.to_owned(),
        reason,
    })?;
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let beside = |name: &Path, most: u64| read_regular(&folder.join(name), most);
    let is_text = matches!(format(path), Some(Format::Gltf));
    glb::read_animated(&bytes, is_text, animation, &beside).map_err(|problem| MeshError::Format {
        path: path.to_owned(),
        place: problem.place,
        message: problem.message,
    })
}

#[derive(Clone, Copy)]
enum Format {
    Obj,
    Ply,
    Stl,
    Glb,
    Gltf,
    Usd,
}

fn format(path: &Path) -> Option<Format> {
    let extension = path.extension()?.to_str()?;
    [
        ("obj", Format::Obj),
        ("ply", Format::Ply),
        ("stl", Format::Stl),
        ("glb", Format::Glb),
        ("gltf", Format::Gltf),
        ("usd", Format::Usd),
        ("usda", Format::Usd),
        ("usdc", Format::Usd),
        ("usdz", Format::Usd),
    ]
    .into_iter()
    .find(|(known, _)| extension.eq_ignore_ascii_case(known))
    .map(|(_, format)| format)
}

/// How to bring a mesh of another format here, if that is known.
#[must_use]
pub fn remedy(path: &Path) -> &'static str {
    let extension = path
        .extension()
        .and_then(|e| e.to_str())
        .unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "abc" | "fbx" | "blend" | "zprj" => "; export it as OBJ or USD where it was made",
        _ => "",
    }
}

/// Largest file in bytes: about as many triangles as a mesh may have.
const LARGEST_FILE: u64 = 2 << 30;

#[cfg(test)]
mod tests {
    use glam::DVec3;
    use proptest::prelude::*;
    use weft_io::Show as _;

    use super::super::{icosphere, write_obj};
    use super::*;

    #[test]
    fn files_are_read_by_their_ending_and_errors_name_them() {
        let folder = tempfile::tempdir().unwrap();
        let mesh = icosphere(DVec3::ONE, 0.3, 0.1).unwrap();
        let path = folder.path().join("ball.OBJ");
        let mut text = Vec::new();
        write_obj(&mesh, &mut text).unwrap();
        std::fs::write(&path, text).unwrap();
        assert_eq!(read_mesh(&path).unwrap(), mesh);

        std::fs::write(&path, "v 0 0 0\nf 1 2 3\n").unwrap();
        let error = read_mesh(&path).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("{}:2: `2` names no vertex, there are 1", path.shown())
        );
        let missing = folder.path().join("none.stl");
        let error = read_mesh(&missing).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("cannot read {}: ", missing.shown())),
            "{error}"
        );
        let error = read_mesh(Path::new("a.fbx")).unwrap_err().to_string();
        assert_eq!(
            error,
            "a.fbx: its name ends in none of .obj, .ply, .stl, .glb, .gltf, .usd, .usda, .usdc, .usdz; export it as OBJ or USD where it \
             was made"
        );
    }

    /// A valid file of each kind, small enough to be damaged everywhere.
    fn seeds() -> Vec<Vec<u8>> {
        let obj = b"v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1 2 3 4\nf -4/1/1 -3//2 -2\n".to_vec();
        let ascii =
            b"ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty double y\n\
            property float z\nelement face 1\nproperty list uchar int vertex_indices\nend_header\n\
            0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n"
                .to_vec();
        let mut binary =
            b"ply\nformat binary_little_endian 1.0\nelement vertex 3\nproperty float x\n\
            property float y\nproperty float z\nelement face 1\n\
            property list uint uint vertex_indices\nend_header\n"
                .to_vec();
        for value in [0f32, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0] {
            binary.extend(value.to_le_bytes());
        }
        for value in [3u32, 0, 1, 2] {
            binary.extend(value.to_le_bytes());
        }
        let stl = b"solid a\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\n\
            vertex 0 1 0\nendloop\nendfacet\nendsolid a\n"
            .to_vec();
        let mut binary_stl = vec![0; 80];
        binary_stl.extend(1u32.to_le_bytes());
        binary_stl.extend([0; 50]);
        vec![obj, ascii, binary, stl, binary_stl]
    }

    fn read_all(bytes: &[u8]) -> usize {
        let results = [obj::read(bytes), ply::read(bytes), stl::read(bytes)];
        results.iter().filter(|result| result.is_ok()).count()
    }

    #[test]
    fn the_undamaged_files_are_read() {
        let seeds = seeds();
        assert!(obj::read(&seeds[0]).unwrap().triangles.len() == 3);
        assert!(ply::read(&seeds[1]).unwrap().triangles == [[0, 1, 2]]);
        assert_eq!(ply::read(&seeds[1]), ply::read(&seeds[2]));
        assert!(stl::read(&seeds[3]).unwrap().triangles == [[0, 1, 2]]);
        assert!(stl::read(&seeds[4]).unwrap().positions.len() == 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn damaged_files_never_panic(
            which in 0usize..5,
            damage in proptest::collection::vec((0usize..300, any::<u8>(), 0u8..3), 1..8),
        ) {
            let mut bytes = seeds().swap_remove(which);
            for (place, byte, how) in damage {
                let place = place % bytes.len();
                match how {
                    0 => bytes[place] = byte,
                    1 => bytes.insert(place, byte),
                    _ if bytes.len() > 1 => drop(bytes.remove(place)),
                    _ => {}
                }
            }
            read_all(&bytes);
        }

        #[test]
        fn hostile_numbers_never_panic(
            which in 0usize..4,
            token in 0usize..80,
            number in prop_oneof![
                Just("18446744073709551615"), Just("-9223372036854775808"), Just("4294967295"),
                Just("2000000000"), Just("1e999"), Just("nan"), Just("-1"), Just("0"), Just(""),
            ],
        ) {
            let seed = seeds().swap_remove(which);
            let text = String::from_utf8_lossy(&seed).into_owned();
            let mut tokens: Vec<&str> = text.split_inclusive([' ', '\n']).collect();
            let place = token % tokens.len();
            let ending = if tokens[place].ends_with('\n') { "\n" } else { " " };
            let hostile = format!("{number}{ending}");
            tokens[place] = &hostile;
            read_all(tokens.concat().as_bytes());
        }

        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            read_all(&bytes);
        }
    }
}
