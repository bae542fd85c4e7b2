//! Cloths and bodies of a scene as meshes.

use std::path::Path;

use glam::DVec3;
use weft_io::Show as _;

use super::check::LARGEST;
use super::weld::weld;
use super::{
    FileAxes, FileMesh, Mended, MeshError, Texture, TriMesh, Wanted, capsule, check_body,
    check_cloth, cuboid, grid, icosphere, mend_body, plane, read_mesh_file, rotation_matrix, shirt,
};
use crate::scene::{
    Body, Cloth, ClothSource, Held, Placement, RestSource, Shape, Surface, Units, Up, defaults,
};

/// A cloth at its place at time 0, in m, checked: its rest shape, unless it has another one.
///
/// # Errors
/// [`MeshError::Object`] naming the cloth, if its file cannot be read or does not hold a cloth.
pub fn build_cloth(cloth: &Cloth) -> Result<TriMesh, MeshError> {
    build_cloth_of_file(cloth).map(|file| file.mesh)
}

/// A cloth at its place at time 0, in m, checked, with the faces, texture coordinates and groups
/// that its file has. A grid has a texture from corner to corner.
///
/// # Errors
/// As [`build_cloth`].
pub fn build_cloth_of_file(cloth: &Cloth) -> Result<FileMesh, MeshError> {
    let build = || {
        let mesh = match &cloth.source {
            ClothSource::Grid {
                size,
                vertices,
                center,
                rotation,
            } => {
                let mut file = FileMesh::of_triangles(grid(*size, *vertices, *center, *rotation)?);
                file.texture = Some(texture_of_grid(*vertices, &file));
                file
            }
            ClothSource::Shirt {
                height,
                vertices,
                center,
                rotation,
            } => FileMesh::of_triangles(shirt(*height, *vertices, *center, *rotation)?),
            ClothSource::File {
                path,
                prim,
                placement,
                weld: distance,
            } => {
                let groups = cloth.pins.iter().filter_map(|pin| match &pin.held {
                    Held::Group(name) => Some(name.as_str()),
                    Held::Nearest(_) | Held::Box { .. } | Held::Vertices(_) | Held::Near { .. } => {
                        None
                    }
                });
                let sewn = cloth.sewn_groups.iter().map(String::as_str);
                let mut groups: Vec<&str> = groups.chain(sewn).collect();
                groups.sort_unstable();
                groups.dedup();
                let wanted = Wanted {
                    groups: &groups,
                    velocities: cloth.velocities == Some(true),
                };
                let mut file = read_placed(path, prim.as_deref(), placement, &wanted)?;
                if let Some(distance) = *distance {
                    weld(&mut file, distance).map_err(|message| MeshError::Format {
                        path: path.clone(),
                        place: None,
                        message,
                    })?;
                }
                check_cloth(&file.mesh).map_err(|error| match (file.welded, distance) {
                    (Some(1..), Some(distance)) => MeshError::Object {
                        object: format!(
                            "{}, with vertices nearer than {distance} m as one (`weld`)",
                            path.shown()
                        ),
                        reason: Box::new(error),
                    },
                    _ => in_file(path, error),
                })?;
                return Ok(file);
            }
        };
        check_cloth(&mesh.mesh)?;
        Ok(mesh)
    };
    build().map_err(|error| named("cloth", &cloth.name, error))
}

/// Reads a mesh, with what is wanted beside it, and puts it where its scene says.
pub(super) fn read_placed(
    path: &Path,
    prim: Option<&str>,
    placement: &Placement,
    wanted: &Wanted<'_>,
) -> Result<FileMesh, MeshError> {
    let mut file = read_mesh_file(path, prim, wanted)?;
    place(&mut file.mesh, placement, file.axes);
    if let Some(velocities) = &mut file.velocities {
        place_vectors(velocities, placement, file.axes);
        let is_bad = |v: &DVec3| !(v.is_finite() && v.abs().max_element() <= LARGEST);
        if let Some(vertex) = velocities.iter().position(is_bad) {
            return Err(MeshError::Format {
                path: path.to_owned(),
                place: None,
                message: format!(
                    "the velocity of vertex {vertex} (counted from 0) would be {} m/s, with which nothing can be computed; take smaller ones, \
                     or other `units` or `scale`",
                    velocities[vertex]
                ),
            });
        }
    }
    if placement.mirror.is_some() {
        file.turn_over();
    }
    Ok(file)
}

/// Puts a mesh where its scene says; `axes` are those of its file.
pub(super) fn place(mesh: &mut TriMesh, placement: &Placement, axes: FileAxes) {
    if let Some(across) = placement.mirror {
        mesh.mirror(across);
    }
    let up = up_of(placement, axes);
    if up != Up::Z {
        let positions = mesh.positions.iter_mut();
        positions.for_each(|p| *p = up.to_scene(*p));
    }
    mesh.transform(
        scale_of(placement, axes),
        placement.rotation,
        placement.translation,
    );
}

/// Turns and scales vectors as [`place`] does the mesh that they belong to, without moving them.
fn place_vectors(vectors: &mut Vec<DVec3>, placement: &Placement, axes: FileAxes) {
    let mut mesh = TriMesh {
        positions: std::mem::take(vectors),
        triangles: Vec::new(),
    };
    let unmoved = Placement {
        translation: DVec3::ZERO,
        ..*placement
    };
    place(&mut mesh, &unmoved, axes);
    *vectors = mesh.positions;
}

/// The length in m of a unit of a file's coordinates.
fn scale_of(placement: &Placement, axes: FileAxes) -> f64 {
    let units = placement.units.map(Units::metres).or(axes.metres);
    placement.scale * units.unwrap_or(1.0)
}

/// The axis of a file that points upwards.
fn up_of(placement: &Placement, axes: FileAxes) -> Up {
    placement.up.or(axes.up).unwrap_or(Up::Z)
}

/// The warning where a scene names other units or axes of a file than the file itself.
pub(crate) fn disagreement(placement: &Placement, axes: FileAxes) -> Option<String> {
    let mut told = Vec::new();
    if let (Some(units), Some(metres)) = (placement.units, axes.metres) {
        // Such as 0.01 that was kept in 32 bits.
        if (units.metres() - metres).abs() > 1e-6 * metres {
            told.push(format!(
                "units = \"{}\", and its file says metersPerUnit = {metres}",
                units.name()
            ));
        }
    }
    if let (Some(up), Some(of_file)) = (placement.up, axes.up)
        && up != of_file
    {
        told.push(format!(
            "up = \"{}\", and its file says that {} points upwards",
            up.name(),
            of_file.name()
        ));
    }
    (!told.is_empty()).then(|| told.join("; "))
}

/// The texture coordinates of a grid of this many vertices: from 0 to 1 along both sides.
fn texture_of_grid(vertices: [usize; 2], grid: &FileMesh) -> Texture {
    let [nx, ny] = vertices.map(|count| count.max(2));
    #[expect(clippy::cast_precision_loss, reason = "at most MAX_VERTICES")]
    let along = |index: usize, count: usize| index as f64 / (count - 1) as f64;
    let rows = (0..ny).flat_map(|j| (0..nx).map(move |i| [along(i, nx), along(j, ny)]));
    Texture {
        coordinates: rows.collect(),
        corners: grid.faces.corners.clone(),
    }
}

/// The direction of a cloth's warp at its place at time 0, a unit vector; each triangle takes the
/// part of it that is in its own plane.
///
/// As `weave` says in the mesh's own axes, mirrored as it is, or along x of a grid, upwards in a
/// shirt (from hem to shoulder, as garments are cut), along x of a mesh that was read. `axes` are
/// those of its file. Where texture coordinates are the rest shape, it is in their plane, and along
/// u if there is no `weave`.
pub fn warp(cloth: &Cloth, axes: FileAxes) -> DVec3 {
    if matches!(cloth.rest, Some(RestSource::Texture(_))) {
        return cloth.weave.unwrap_or(DVec3::X);
    }
    let (own, rotation, mirror, up) = match &cloth.source {
        ClothSource::Grid { rotation, .. } => (DVec3::X, rotation, None, Up::Z),
        ClothSource::File { placement, .. } => (
            DVec3::X,
            &placement.rotation,
            placement.mirror,
            up_of(placement, axes),
        ),
        ClothSource::Shirt { rotation, .. } => (DVec3::Z, rotation, None, Up::Z),
    };
    let mut weave = cloth.weave.unwrap_or(own);
    if let Some(across) = mirror {
        weave[across as usize] = -weave[across as usize];
    }
    rotation_matrix(*rotation) * up.to_scene(weave)
}

/// The surface of a body at time 0 as triangles, in m, checked.
///
/// Closed and facing outwards, but for a plane, which is a square facing along its normal; what is
/// open in a file has two sides ([`mend_body`]). A body with an analytic surface gets triangles of
/// the default size, for pictures and tests.
///
/// # Errors
/// [`MeshError::Object`] naming the body, if it would have too many vertices, or if its file cannot
/// be read or does not hold triangles.
pub fn build_body(body: &Body) -> Result<TriMesh, MeshError> {
    build_body_of_file(body).map(|body| match body.mended {
        Some(mended) => mended.mesh,
        None => body.file.mesh,
    })
}

/// The surface of a body as its file has it, and what it becomes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BodyMesh {
    /// The mesh of the file, placed, with what the file says beside it.
    pub file: FileMesh,
    /// The mesh with which collisions are tested, if it is not that one.
    pub mended: Option<Mended>,
}

/// The surface of a body, as [`build_body`] has it, with what its file says beside it.
///
/// # Errors
/// As [`build_body`].
pub fn build_body_of_file(body: &Body) -> Result<BodyMesh, MeshError> {
    let edge = |default: f64| match body.surface {
        Surface::Triangles { edge } => edge,
        Surface::Analytic | Surface::Distance { .. } => default,
    };
    let build = || {
        let mesh = match &body.shape {
            Shape::Sphere { center, radius } => {
                icosphere(*center, *radius, edge(radius / defaults::EDGES_PER_RADIUS))?
            }
            Shape::Plane {
                point,
                normal,
                extent,
            } => plane(
                *point,
                *normal,
                *extent,
                edge(extent / defaults::EDGES_PER_PLANE),
            )?,
            Shape::Box {
                center,
                size,
                rotation,
            } => {
                let edge = edge(size.max_element() / defaults::EDGES_PER_RADIUS);
                let mut mesh = cuboid(*center, *size, edge)?;
                if *rotation != DVec3::ZERO {
                    let turned = rotation_matrix(*rotation);
                    let positions = mesh.positions.iter_mut();
                    positions.for_each(|p| *p = *center + turned * (*p - *center));
                }
                mesh
            }
            Shape::Capsule { from, to, radius } => capsule(
                *from,
                *to,
                *radius,
                edge(radius / defaults::EDGES_PER_RADIUS),
            )?,
            Shape::Mesh {
                path,
                prim,
                placement,
            } => {
                let file = read_placed(path, prim.as_deref(), placement, &Wanted::default())?;
                let mended = mend_body(&file.mesh).map_err(|error| in_file(path, error))?;
                return Ok(BodyMesh { file, mended });
            }
        };
        check_body(&mesh, !matches!(body.shape, Shape::Plane { .. }))?;
        Ok(BodyMesh {
            file: FileMesh::of_triangles(mesh),
            mended: None,
        })
    };
    build().map_err(|error| named("body", &body.name, error))
}

pub(super) fn in_file(path: &Path, reason: MeshError) -> MeshError {
    MeshError::Object {
        object: path.shown().to_string(),
        reason: Box::new(reason),
    }
}

pub(super) fn named(what: &str, name: &str, reason: MeshError) -> MeshError {
    MeshError::Object {
        object: format!("{what} `{name}`"),
        reason: Box::new(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::super::write_obj;
    use super::*;
    use crate::scene::Scene;

    const MATERIAL: &str = "material = { density = 0.15, stretch = 1000, bending = 1e-5 }";

    #[test]
    fn the_scenes_of_the_project_can_be_built() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes");
        for (name, vertices) in [
            ("drape-floor", 10_000),
            ("drape-free", 10_000),
            ("quick", 576),
        ] {
            let scene = Scene::load(&folder.join(name).with_extension("toml"), &[]).unwrap();
            let cloth = build_cloth(&scene.cloths[0]).unwrap();
            assert_eq!(cloth.positions.len(), vertices);
            let [low, high] = cloth.bounds().unwrap();
            assert_eq!(low.z, high.z);
            for body in &scene.bodies {
                let mesh = build_body(body).unwrap();
                let [_, top] = mesh.bounds().unwrap();
                // Free fall begins clear of everything.
                assert!(
                    low.z > top.z + scene.contact.thickness,
                    "{name}: {}",
                    body.name
                );
                // The floor reaches further than the cloth.
                if matches!(body.shape, Shape::Plane { .. }) {
                    assert!(top.x > high.x && top.y > high.y, "{name}");
                }
            }
        }
    }

    #[test]
    fn files_are_scaled_turned_and_moved_and_faults_name_the_object() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sheet.obj");
        let flat = grid([1.0, 1.0], [3, 3], DVec3::ZERO, DVec3::ZERO).unwrap();
        let mut text = Vec::new();
        write_obj(&flat, &mut text).unwrap();
        std::fs::write(&path, &text).unwrap();
        let scene = format!(
            "[[cloth]]\nname = \"sheet\"\nmesh = \"sheet.obj\"\nscale = 2\n\
             rotation = [\"90 deg\", 0, 0]\ntranslation = [0, 0, 5]\n{MATERIAL}"
        );
        let at = folder.path().join("x.toml");
        let cloth = Scene::parse(&scene, Some(&at), &[])
            .unwrap()
            .cloths
            .remove(0);
        let [low, high] = build_cloth(&cloth).unwrap().bounds().unwrap();
        assert!(low.abs_diff_eq(DVec3::new(-1.0, 0.0, 4.0), 1e-12), "{low}");
        assert!(high.abs_diff_eq(DVec3::new(1.0, 0.0, 6.0), 1e-12), "{high}");

        text.extend(b"f 1 2 9\n");
        std::fs::write(&path, &text).unwrap();
        let error = build_cloth(&cloth).unwrap_err().to_string();
        assert!(
            error.starts_with("cloth `sheet`: ")
                && error.contains(
                    ": the mesh cannot be used (vertices and triangles are counted from 0):\n"
                ),
            "{error}"
        );

        // A sheet is a body with two sides.
        let scene = format!("{scene}\n[[body]]\nshape = \"mesh\"\nmesh = \"sheet.obj\"");
        let body = Scene::parse(&scene, Some(&at), &[])
            .unwrap()
            .bodies
            .remove(0);
        let mesh = build_body(&body).unwrap();
        assert_eq!((mesh.triangles.len(), mesh.volume()), (18, 0.0));
        std::fs::write(&path, "v 0 0 0\nv 1 0 0\nv 2 0 0\nf 1 2 3\n").unwrap();
        let error = build_body(&body).unwrap_err().to_string();
        assert!(
            error.starts_with("body `body0`: ") && error.contains("1 triangles without area: "),
            "{error}"
        );
    }

    #[test]
    fn bodies_are_mirrored_turned_and_face_outwards_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let mut text = Vec::new();
        let wedge = cuboid(DVec3::ZERO, DVec3::new(1.0, 2.0, 3.0), 4.0).unwrap();
        let wedge = TriMesh {
            positions: wedge
                .positions
                .iter()
                .map(|&p| p + DVec3::X * (2.0 + p.y))
                .collect(),
            ..wedge
        };
        write_obj(&wedge, &mut text).unwrap();
        std::fs::write(folder.path().join("wedge.obj"), &text).unwrap();
        let at = folder.path().join("x.toml");
        let build = |body: &str| {
            let scene = format!(
                "[[cloth]]\ngrid = {{ size = 1, vertices = 9 }}\n{MATERIAL}\n[[body]]\n{body}"
            );
            let scene = Scene::parse(&scene, Some(&at), &[]).unwrap();
            build_body(&scene.bodies[0]).unwrap()
        };
        let mesh = build(
            "shape = \"mesh\"\nmesh = \"wedge.obj\"\nmirror = \"x\"\nscale = 2\nrotation = [0, 0, \"90 deg\"]\n\
             translation = [0, 0, 5]",
        );
        assert!((mesh.volume() - 48.0).abs() < 1e-12);
        for (placed, own) in mesh.positions.iter().zip(&wedge.positions) {
            // x to -x, which then is -y.
            let known = DVec3::new(-own.y, -own.x, own.z) * 2.0 + DVec3::Z * 5.0;
            assert!((*placed - known).length() < 1e-12);
        }
        let turned = build(
            "shape = \"box\"\ncenter = [1, 2, 3]\nsize = [1, 2, 4]\nrotation = [0, \"90 deg\", 0]\nedge = 9",
        );
        let [low, high] = turned.bounds().unwrap();
        assert!(low.abs_diff_eq(DVec3::new(-1.0, 1.0, 2.5), 1e-12), "{low}");
        assert!(high.abs_diff_eq(DVec3::new(3.0, 3.0, 3.5), 1e-12), "{high}");
    }

    /// A weave is that of the mesh before it is mirrored.
    #[test]
    fn a_mirrored_cloth_has_its_warp_mirrored() {
        let source = |mirror| ClothSource::File {
            path: "x.obj".into(),
            prim: None,
            weld: None,
            placement: Placement {
                mirror,
                ..Placement::default()
            },
        };
        let text = format!(
            "[[cloth]]\ngrid = {{ size = 1, vertices = 9 }}\nweave = [3, 4, 0]\n{MATERIAL}"
        );
        let mut cloth = Scene::parse(&text, None, &[]).unwrap().cloths.remove(0);
        cloth.source = source(Some(crate::scene::Axis::X));
        assert!(warp(&cloth, FileAxes::default()).abs_diff_eq(DVec3::new(-0.6, 0.8, 0.0), 1e-15));
        cloth.source = source(None);
        assert!(warp(&cloth, FileAxes::default()).abs_diff_eq(DVec3::new(0.6, 0.8, 0.0), 1e-15));
    }

    /// A garment in cm with y upwards comes to stand, in m, and so does its weave.
    #[test]
    fn units_and_the_axis_upwards_are_those_that_the_scene_says() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("x.toml");
        let obj = "v 0 100 0\nv 0 100 50\nv 30 100 50\nv 30 140 0\nf 1 2 3 4\n";
        std::fs::write(folder.path().join("a.obj"), obj).unwrap();
        let read = |keys: &str| {
            let text =
                format!("[[cloth]]\nmesh = \"a.obj\"\n{keys}\nweave = [0, 1, 0]\n{MATERIAL}");
            let scene = Scene::parse(&text, Some(&at), &[]).unwrap();
            let echo = Scene::parse(&scene.echo(), None, &[]).unwrap();
            assert_eq!(echo.cloths, scene.cloths);
            let cloth = &scene.cloths[0];
            let file = build_cloth_of_file(cloth).unwrap();
            let weave = warp(cloth, file.axes);
            (file, weave)
        };
        let (file, weave) = read("units = \"cm\"\nup = \"y\"");
        let known = [
            [0.0, 0.0, 1.0],
            [0.0, -0.5, 1.0],
            [0.3, -0.5, 1.0],
            [0.3, 0.0, 1.4],
        ];
        for (position, known) in file.mesh.positions.iter().zip(known) {
            assert!(
                position.abs_diff_eq(DVec3::from(known), 1e-15),
                "{position}"
            );
        }
        assert_eq!(file.faces.polygons(), [1, 0]);
        assert_eq!(weave, DVec3::Z);
        // As they always were.
        let (file, weave) = read("scale = 0.5\nmirror = \"y\"");
        assert_eq!(file.mesh.positions[3], DVec3::new(15.0, -70.0, 0.0));
        assert_eq!((file.faces.corners, weave), (vec![0, 3, 2, 1], -DVec3::Y));
    }

    #[test]
    fn a_body_with_absurdly_short_edges_is_refused() {
        let scene = format!(
            "[[cloth]]\ngrid = {{ size = 1, vertices = 9 }}\n{MATERIAL}\n[[body]]\nshape = \
             \"sphere\"\ncenter = [0, 0, 0]\nradius = 1\nedge = \"1 um\""
        );
        let body = Scene::parse(&scene, None, &[]).unwrap().bodies.remove(0);
        let error = build_body(&body).unwrap_err().to_string();
        assert!(
            error.starts_with("body `body0`: the sphere would have "),
            "{error}"
        );
    }

    #[test]
    fn analytic_bodies_have_triangles_for_pictures() {
        let scene = format!(
            "[[cloth]]\ngrid = {{ size = 1, vertices = 9 }}\n{MATERIAL}\n[[body]]\nshape = \
             \"capsule\"\nfrom = [0, 0, 0]\nto = [1, 0, 0]\nradius = 0.1\nsurface = \"analytic\""
        );
        let body = Scene::parse(&scene, None, &[]).unwrap().bodies.remove(0);
        assert!(build_body(&body).unwrap().volume() > 0.9 * 0.0356);
    }
}
