//! Reads glTF Binary (`.glb`): the triangles of all meshes of the scene, where its nodes put them.
//!
//! The crate `gltf` reads and checks the JSON. The numbers are read here: the crate trusts the
//! sizes that the file gives, and panics if they are not true. A file has one vertex for each
//! texture coordinate and normal, so positions that are equal are joined: cloth would fall apart at
//! the seams of its texture. By the format lengths are in m and y is upwards.
//!
//! Not here: `.gltf` with other files beside it, compressed and sparse data, morph targets, skins.

use glam::{DMat4, DVec3};
use gltf::accessor::{DataType, Dimensions};
use gltf::buffer::Source;
use gltf::mesh::Mode;
use gltf::{Accessor, Document, Gltf, Node, Semantic};

use super::file_mesh::{FileMesh, Texture, join_equal};
use super::file_problem::{Problem, short};
use super::groups::{Groups, Kind};
use super::looks::no_glb;
use super::{MAX_TRIANGLES, MAX_VERTICES, TriMesh};

/// Reads the meshes of a file, and the groups of these names: meshes, nodes, and attributes of
/// vertices that begin with `_`, without that.
pub(super) fn read_file(bytes: &[u8], wanted: &[&str]) -> Result<FileMesh, Problem> {
    let (json, binary) = chunks(bytes)?;
    let invalid = |error: gltf::Error| {
        let message = format!("its JSON is no glTF that can be read: {error}");
        Problem::new(short(message.as_bytes()))
    };
    if json.starts_with(b"glTF") {
        return Err(Problem::at_byte(
            HEADER + 8,
            "a file within the file is no JSON",
        ));
    }
    let Gltf { document, .. } = Gltf::from_slice_without_validation(json).map_err(invalid)?;
    // The crate's own check looks these up before it knows that they are there.
    let root = document.as_json();
    let primitives = root.meshes.iter().flat_map(|mesh| &mesh.primitives);
    let mut attributes = primitives.flat_map(|primitive| primitive.attributes.values());
    if attributes.any(|index| index.value() >= root.accessors.len()) {
        return Err(Problem::new(
            "its JSON is no glTF that can be read: a mesh names an accessor that is not there",
        ));
    }
    let document = Document::from_json(document.into_json()).map_err(invalid)?;
    let mut reader = Reader {
        binary,
        positions: Vec::new(),
        corners: Vec::new(),
        coordinates: Vec::new(),
        has_texture: false,
        groups: Groups::new(wanted),
        visited: 0,
    };
    let scene = document.default_scene();
    match scene.or_else(|| document.scenes().next()) {
        Some(scene) => {
            for node in scene.nodes() {
                reader.node(&document, &node, DMat4::IDENTITY, 0)?;
            }
        }
        None => {
            return Err(Problem::new(
                "it has no scene: nothing says which meshes are meant",
            ));
        }
    }
    reader.finish()
}

/// The JSON of a file, and where its binary chunk lies, with its first byte.
fn chunks(bytes: &[u8]) -> Result<(&[u8], Binary<'_>), Problem> {
    if !bytes.starts_with(b"glTF") {
        return Err(no_glb(bytes));
    }
    let number = |at: usize| {
        let number = bytes.get(at..at + 4).and_then(<[u8]>::first_chunk);
        let number = number.map(|&number| u32::from_le_bytes(number));
        number.ok_or_else(|| Problem::at_byte(bytes.len(), "the file ends within its header"))
    };
    let version = number(4)?;
    if version != 2 {
        let message = if version.swap_bytes() == 2 {
            "its numbers have the wrong byte order: glTF has the lowest byte first".to_owned()
        } else {
            format!("it is of version {version} of glTF; only version 2 is read")
        };
        return Err(Problem::at_byte(4, message));
    }
    let length = number(8)? as usize;
    if length != bytes.len() {
        let message = format!(
            "it says that it has {length} bytes, and has {}",
            bytes.len()
        );
        return Err(Problem::at_byte(8, message));
    }
    let chunk = |at: usize| {
        let length = number(at)? as usize;
        let kind = bytes.get(at + 4..at + 8).unwrap_or_default();
        let end = (at + 8).checked_add(length);
        let chunk = end.and_then(|end| bytes.get(at + 8..end));
        let cut = || Problem::at_byte(at, "the file ends within a chunk that begins here");
        Ok((kind, chunk.ok_or_else(cut)?))
    };
    let (kind, json) = chunk(HEADER)?;
    if kind != b"JSON" {
        return Err(Problem::at_byte(
            HEADER + 4,
            "its first chunk is not `JSON`",
        ));
    }
    let mut at = HEADER + 8 + json.len();
    while at < bytes.len() {
        let (kind, chunk) = chunk(at)?;
        if kind == b"BIN\0" {
            let binary = Binary {
                bytes: chunk,
                first: at + 8,
            };
            return Ok((json, binary));
        }
        at += 8 + chunk.len();
    }
    let none = Binary {
        bytes: &[],
        first: bytes.len(),
    };
    Ok((json, none))
}

/// The binary chunk.
#[derive(Clone, Copy)]
struct Binary<'a> {
    bytes: &'a [u8],
    /// Where it begins in the file.
    first: usize,
}

struct Reader<'a> {
    binary: Binary<'a>,
    positions: Vec<DVec3>,
    corners: Vec<u32>,
    coordinates: Vec<[f64; 2]>,
    has_texture: bool,
    groups: Groups,
    /// Nodes so far.
    visited: usize,
}

impl Reader<'_> {
    /// Reads the mesh of a node and of those below it.
    fn node(
        &mut self,
        document: &Document,
        node: &Node<'_>,
        above: DMat4,
        depth: usize,
    ) -> Result<(), Problem> {
        self.visited += 1;
        if depth > DEEPEST || self.visited > document.nodes().len() {
            return Err(Problem::new("its nodes are below themselves, or too deep"));
        }
        let own = node.transform().matrix();
        let own = DMat4::from_cols_array_2d(&own.map(|column| column.map(f64::from)));
        let place = above * own;
        if let Some(mesh) = node.mesh() {
            let names = [node.name(), mesh.name()];
            for name in names.into_iter().flatten() {
                self.groups.begin_faces(Kind::Object, name);
            }
            for primitive in mesh.primitives() {
                self.primitive(&primitive, place)?;
            }
            self.groups.end_faces(Kind::Object);
        }
        for child in node.children() {
            self.node(document, &child, place, depth + 1)?;
        }
        Ok(())
    }

    fn primitive(&mut self, primitive: &gltf::Primitive<'_>, place: DMat4) -> Result<(), Problem> {
        match primitive.mode() {
            Mode::Triangles => {}
            Mode::TriangleStrip | Mode::TriangleFan => {
                return Err(Problem::new(
                    "it has strips or fans of triangles; export plain triangles",
                ));
            }
            _ => return Ok(()),
        }
        let Some(positions) = primitive.get(&Semantic::Positions) else {
            return Err(Problem::new("a mesh of it has no positions"));
        };
        let before = self.positions.len();
        let count = positions.count();
        if count > MAX_VERTICES - before {
            return Err(Problem::new(format!("more than {MAX_VERTICES} vertices")));
        }
        let is_moved = place != DMat4::IDENTITY;
        self.numbers(&positions, "a position", |reader, [x, y, z]: [f64; 3]| {
            let position = DVec3::new(x, y, z);
            reader.positions.push(if is_moved {
                place.transform_point3(position)
            } else {
                position
            });
        })?;
        match primitive.get(&Semantic::TexCoords(0)) {
            Some(coordinates) if coordinates.count() == count => {
                self.has_texture = true;
                // A picture's rows count downwards in glTF, and upwards everywhere else.
                self.numbers(&coordinates, "a texture coordinate", |reader, [u, v]| {
                    reader.coordinates.push([u, 1.0 - v]);
                })?;
            }
            Some(_) => {
                return Err(Problem::new(
                    "it has fewer texture coordinates than positions",
                ));
            }
            None => self.coordinates.resize(before + count, [0.0; 2]),
        }
        for (semantic, values) in primitive.attributes() {
            let Semantic::Extras(name) = semantic else {
                continue;
            };
            if let Some(group) = self.groups.name(&name)
                && values.count() == count
                && values.dimensions() == Dimensions::Scalar
            {
                let mut vertex = before as u32;
                self.numbers(&values, "an attribute", |reader, [value]| {
                    if value >= IN_GROUP {
                        reader.groups.add_to(group, vertex);
                    }
                    vertex += 1;
                })?;
            }
        }
        self.faces(primitive, before, count, place)
    }

    /// Reads the corners of triangles, of vertices that begin with this one.
    fn faces(
        &mut self,
        primitive: &gltf::Primitive<'_>,
        before: usize,
        count: usize,
        place: DMat4,
    ) -> Result<(), Problem> {
        let first = self.corners.len();
        if let Some(indices) = primitive.indices() {
            if indices.count() > 3 * MAX_TRIANGLES - first {
                return Err(Problem::new(format!("more than {MAX_TRIANGLES} triangles")));
            }
            let mut beyond = None;
            self.numbers(&indices, "an index", |reader, [index]: [f64; 1]| {
                // Whole numbers of 32 bits are exact.
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a whole number of at most 32 bits"
                )]
                let vertex = index as u32;
                if vertex as usize >= count {
                    beyond.get_or_insert(vertex);
                }
                reader.corners.push(vertex.saturating_add(before as u32));
            })?;
            if let Some(vertex) = beyond {
                return Err(Problem::new(format!(
                    "a triangle names vertex {vertex}, there are {count}"
                )));
            }
        } else {
            self.corners.extend(before as u32..(before + count) as u32);
        }
        let corners = &mut self.corners[first..];
        if !corners.len().is_multiple_of(3) {
            return Err(Problem::new("a triangle of it lacks corners"));
        }
        if place.determinant() < 0.0 {
            corners
                .as_chunks_mut::<3>()
                .0
                .iter_mut()
                .for_each(|t| t.swap(1, 2));
        }
        self.groups.add(corners.iter().copied());
        Ok(())
    }

    /// Reads the numbers of an accessor, `N` at a time.
    fn numbers<const N: usize>(
        &mut self,
        accessor: &Accessor<'_>,
        what: &str,
        mut each: impl FnMut(&mut Self, [f64; N]),
    ) -> Result<(), Problem> {
        let Binary { bytes, first } = self.binary;
        let bad = |message: &str| Problem::new(format!("{what}: {message}"));
        if accessor.sparse().is_some() {
            return Err(bad("sparse data are not read"));
        }
        if accessor.dimensions().multiplicity() != N {
            return Err(bad(
                "it has another number of components than the format says",
            ));
        }
        let Some(view) = accessor.view() else {
            return Err(bad("it has no data"));
        };
        if !matches!(view.buffer().source(), Source::Bin) {
            return Err(bad("its data are in another file; export it as one file"));
        }
        let kind = accessor.data_type();
        let size = kind.size() * N;
        let stride = view.stride().unwrap_or(size).max(1);
        let inside = |from: Option<usize>, length: usize| {
            let end = from?.checked_add(length)?;
            (end <= bytes.len()).then_some(from?)
        };
        let view_at = inside(Some(view.offset()), view.length());
        let length = (accessor.count().checked_sub(1))
            .map_or(Some(0), |last| last.checked_mul(stride)?.checked_add(size));
        let start = length.and_then(|length| {
            let start = view_at?.checked_add(accessor.offset());
            let fits = accessor.offset().checked_add(length)? <= view.length();
            inside(start, length).filter(|_| fits)
        });
        let Some(start) = start else {
            return Err(bad("its data go on behind the end of the file"));
        };
        for index in 0..accessor.count() {
            let at = start + index * stride;
            let mut values = [0.0; N];
            for (k, value) in values.iter_mut().enumerate() {
                let at = at + k * kind.size();
                *value = number(kind, accessor.normalized(), &bytes[at..]);
                if !value.is_finite() {
                    let message = format!("{what} {index} is {value}, no finite number");
                    return Err(Problem::at_byte(first + at, message));
                }
            }
            each(self, values);
        }
        Ok(())
    }

    fn finish(self) -> Result<FileMesh, Problem> {
        if self.corners.is_empty() {
            return Err(Problem::new("it has no triangles"));
        }
        let (left, joined) = join_equal(&self.positions);
        let (mut groups, group_names) = self.groups.finish();
        for group in &mut groups {
            for vertex in &mut group.vertices {
                *vertex = joined[*vertex as usize];
            }
            group.vertices.sort_unstable();
            group.vertices.dedup();
        }
        let mut file = FileMesh::of_triangles(TriMesh {
            positions: left,
            triangles: self.corners.as_chunks::<3>().0.to_vec(),
        });
        let triangles = file.mesh.triangles.as_flattened_mut();
        triangles.iter_mut().for_each(|v| *v = joined[*v as usize]);
        file.texture = self.has_texture.then_some(Texture {
            coordinates: self.coordinates,
            corners: self.corners,
        });
        // A file without doubled vertices is as it is.
        let doubled = file.mesh.positions.len() < joined.len();
        file.joined = doubled.then_some(joined);
        (file.groups, file.group_names) = (groups, group_names);
        Ok(file)
    }
}

/// The number that some bytes begin with; there are enough of them.
fn number(kind: DataType, normalized: bool, bytes: &[u8]) -> f64 {
    let two = bytes.first_chunk().copied().unwrap_or_default();
    let four = bytes.first_chunk().copied().unwrap_or_default();
    let one = bytes.first().copied().unwrap_or_default();
    let (value, largest) = match kind {
        DataType::I8 => (f64::from(one.cast_signed()), f64::from(i8::MAX)),
        DataType::U8 => (f64::from(one), f64::from(u8::MAX)),
        DataType::I16 => (f64::from(i16::from_le_bytes(two)), f64::from(i16::MAX)),
        DataType::U16 => (f64::from(u16::from_le_bytes(two)), f64::from(u16::MAX)),
        DataType::U32 => (f64::from(u32::from_le_bytes(four)), f64::from(u32::MAX)),
        DataType::F32 => return f64::from(f32::from_le_bytes(four)),
    };
    if normalized {
        (value / largest).max(-1.0)
    } else {
        value
    }
}

/// Bytes before the first chunk.
const HEADER: usize = 12;

/// Nodes above another one, at most.
const DEEPEST: usize = 64;

/// From this value of its attribute on a vertex is in a group.
const IN_GROUP: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of this JSON and binary chunk.
    fn glb(json: &str, binary: &[u8]) -> Vec<u8> {
        let mut json = json.as_bytes().to_vec();
        json.resize(json.len().next_multiple_of(4), b' ');
        let mut binary = binary.to_vec();
        binary.resize(binary.len().next_multiple_of(4), 0);
        let length = HEADER + 16 + json.len() + binary.len();
        let mut bytes = b"glTF".to_vec();
        for number in [2, length, json.len()] {
            bytes.extend((number as u32).to_le_bytes());
        }
        bytes.extend(b"JSON");
        bytes.extend(json);
        bytes.extend((binary.len() as u32).to_le_bytes());
        bytes.extend(b"BIN\0");
        bytes.extend(binary);
        bytes
    }

    /// Two triangles that share an edge, with each corner a vertex of its own, as a seam of a
    /// texture has it; mirrored and moved by their node.
    fn seam() -> Vec<u8> {
        let corners: [[f32; 3]; 6] = [
            [0.0, 0.0, 0.0],
            [1.0, 0.0, 0.0],
            [1.0, 1.0, 0.0],
            [0.0, 0.0, 0.0],
            [1.0, 1.0, 0.0],
            [0.0, 1.0, 0.0],
        ];
        let mut binary: Vec<u8> = corners
            .as_flattened()
            .iter()
            .flat_map(|x| x.to_le_bytes())
            .collect();
        for corner in corners {
            // As numbers from 0 to 1 of two bytes.
            binary.extend(
                [corner[0], corner[1]]
                    .iter()
                    .flat_map(|x| ((65535.0 * x) as u16).to_le_bytes()),
            );
        }
        binary.extend([0, 1, 2, 3, 4, 5]);
        binary.extend([0, 0]);
        binary.extend(
            [1.0_f32, 0.0, 0.2, 0.0, 0.0, 0.9]
                .iter()
                .flat_map(|x| x.to_le_bytes()),
        );
        let json = r#"{"asset":{"version":"2.0"},"scene":0,"scenes":[{"nodes":[0]}],
            "nodes":[{"name":"top","scale":[-1,1,1],"children":[1]},{"mesh":0,"translation":[0,0,2]}],
            "meshes":[{"name":"flag","primitives":[{"attributes":{"POSITION":0,"TEXCOORD_0":1,"_PIN":3},"indices":2}]}],
            "buffers":[{"byteLength":128}],
            "bufferViews":[{"buffer":0,"byteLength":72},{"buffer":0,"byteOffset":72,"byteLength":24},
            {"buffer":0,"byteOffset":96,"byteLength":6},{"buffer":0,"byteOffset":104,"byteLength":24}],
            "accessors":[{"bufferView":0,"componentType":5126,"count":6,"type":"VEC3","min":[0,0,0],"max":[1,1,0]},
            {"bufferView":1,"componentType":5123,"normalized":true,"count":6,"type":"VEC2"},
            {"bufferView":2,"componentType":5121,"count":6,"type":"SCALAR"},
            {"bufferView":3,"componentType":5126,"count":6,"type":"SCALAR"}]}"#;
        glb(json, &binary)
    }

    #[test]
    fn vertices_of_a_seam_are_joined_and_nodes_place_them() {
        let file = read_file(&seam(), &["PIN", "flag"]).unwrap();
        assert_eq!(file.joined, Some(vec![0, 1, 2, 0, 2, 3]));
        let x = |x: f64, y: f64| DVec3::new(-x, y, 2.0);
        assert_eq!(
            file.mesh.positions,
            [x(0.0, 0.0), x(1.0, 0.0), x(1.0, 1.0), x(0.0, 1.0)]
        );
        // Mirrored triangles are turned over.
        assert_eq!(file.mesh.triangles, [[0, 2, 1], [0, 3, 2]]);
        let texture = file.texture.unwrap();
        assert_eq!(texture.coordinates[2], [1.0, 0.0]);
        assert_eq!(texture.coordinates[5], [0.0, 0.0]);
        assert_eq!(texture.corners, file.faces.corners);
        let groups: Vec<&[u32]> = file.groups.iter().map(|g| &g.vertices[..]).collect();
        assert_eq!(groups, [&[0, 3][..], &[0, 1, 2, 3]]);
        assert_eq!(file.group_names, ["flag", "PIN"]);
    }

    /// A file whose JSON is a file.
    fn within(inner: &[u8]) -> Vec<u8> {
        let mut bytes = b"glTF".to_vec();
        for number in [2, HEADER + 8 + inner.len(), inner.len()] {
            bytes.extend((number as u32).to_le_bytes());
        }
        bytes.extend(b"JSON");
        bytes.extend(inner);
        bytes
    }

    #[test]
    fn damage_is_told_and_never_a_panic() {
        let good = seam();
        let message = |bytes: &[u8]| {
            let Problem { place, message } = read_file(bytes, &["PIN"]).unwrap_err();
            format!("{place:?} {message}")
        };
        assert!(message(b"").contains("it is empty"));
        assert!(message(b"glTF").contains("Byte(4)"));
        assert!(message(b"v 0 0 0\n").contains("its first line is `v 0 0 0`"));
        let mut swapped = good.clone();
        swapped[4..8].reverse();
        assert!(message(&swapped).contains("wrong byte order"));
        assert!(message(&good[..good.len() - 4]).contains("it says that it has"));
        let text = String::from_utf8_lossy(&good).into_owned();
        let changed = |from: &str, to: &str| {
            assert!(text.contains(from) && from.len() == to.len(), "{from}");
            let at = good
                .windows(from.len())
                .position(|w| w == from.as_bytes())
                .unwrap();
            let mut bytes = good.clone();
            bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
            message(&bytes)
        };
        assert!(changed("\"byteLength\":72", "\"byteLength\":71").contains("behind the end"));
        assert!(changed("\"byteOffset\":104", "\"byteOffset\":127").contains("behind the end"));
        assert!(changed("\"children\":[1]", "\"children\":[0]").contains("below themselves"));
        assert!(changed("\"indices\":2", "\"indices\":9").contains("no glTF"));
        assert!(changed("\"POSITION\":0", "\"POSITION\":7").contains("accessor that is not there"));
        assert!(changed("\"VEC2\"", "\"VEC4\"").contains("number of components"));
        let mut nan = good.clone();
        let at = nan
            .windows(8)
            .position(|w| w == [0, 0, 0x80, 0x3f, 0, 0, 0x80, 0x3f])
            .unwrap();
        nan[at + 3] = 0x7f;
        assert!(message(&nan).contains("no finite number"));
        let nested = within(&good);
        assert!(message(&nested).contains("within the file"));
        // Whatever byte is changed.
        for at in 0..good.len() {
            for byte in [0, 0xff, good[at] ^ 1] {
                let mut bytes = good.clone();
                bytes[at] = byte;
                drop(read_file(&bytes, &["PIN"]));
            }
            drop(read_file(&good[..at], &[]));
        }
    }
}
