//! Reads glTF, binary (`.glb`) and as JSON with its data beside it or within (`.gltf`): the
//! triangles of all meshes of the scene, where its nodes put them.
//!
//! The crate `gltf` reads and checks the JSON. The numbers are read here: the crate trusts the
//! sizes that the file gives, and panics if they are not true. A file has one vertex for each
//! texture coordinate and normal, so positions that are equal are joined: cloth would fall apart at
//! the seams of its texture. By the format lengths are in m and y is upwards.
//!
//! Other files are read from the folder of the file that names them, and from folders in it.
//!
//! Not here: compressed and sparse data, morph targets, skins.

use std::path::{Component, Path};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use glam::{DMat4, DVec3};
use gltf::accessor::{DataType, Dimensions};
use gltf::buffer::Source;
use gltf::mesh::Mode;
use gltf::{Accessor, Document, Gltf, Node, Semantic};

use super::file_mesh::{FileMesh, Texture, join_equal};
use super::file_problem::{BYTE_ORDER_MARK, Problem, short};
use super::groups::{Groups, Kind};
use super::looks::{no_glb, no_gltf};
use super::{MAX_TRIANGLES, MAX_VERTICES, TriMesh};
use crate::scene::Up;

/// Reads the meshes of a binary file, and the groups of these names: meshes, nodes, and attributes
/// of vertices that begin with `_`, without that. `beside` reads the files that this one names.
pub(super) fn read_file(
    bytes: &[u8],
    wanted: &[&str],
    beside: &Beside<'_>,
) -> Result<FileMesh, Problem> {
    let (json, binary) = chunks(bytes)?;
    read_json(json, Some(binary), wanted, beside)
}

/// Reads the meshes of a file that is JSON, as [`read_file`] does.
pub(super) fn read_text_file(
    bytes: &[u8],
    wanted: &[&str],
    beside: &Beside<'_>,
) -> Result<FileMesh, Problem> {
    let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    if text.trim_ascii_start().first() != Some(&b'{') {
        return Err(no_gltf(bytes));
    }
    read_json(text, None, wanted, beside)
}

/// Reads a file beside the one that names it, up to a number of bytes.
pub(super) type Beside<'a> = dyn Fn(&Path, u64) -> std::io::Result<Vec<u8>> + 'a;

fn read_json(
    json: &[u8],
    binary: Option<Binary<'_>>,
    wanted: &[&str],
    beside: &Beside<'_>,
) -> Result<FileMesh, Problem> {
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
    let read = other_buffers(&document, beside)?;
    let buffers = document
        .buffers()
        .zip(&read)
        .map(|(buffer, read)| match read {
            Some((name, bytes)) => Some(Binary {
                bytes,
                within: Within::File(name),
            }),
            // The first one of a binary file is within it.
            None => binary.filter(|_| buffer.index() == 0),
        });
    let mut reader = Reader {
        buffers: buffers.collect(),
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
                within: Within::Here(at + 8),
            };
            return Ok((json, binary));
        }
        at += 8 + chunk.len();
    }
    let none = Binary {
        bytes: &[],
        within: Within::Here(bytes.len()),
    };
    Ok((json, none))
}

/// A buffer with what messages call it.
type Named = (String, Vec<u8>);

/// Reads the buffers that are no chunk.
fn other_buffers(document: &Document, beside: &Beside<'_>) -> Result<Vec<Option<Named>>, Problem> {
    let mut left = MOST_BESIDE;
    let mut read = Vec::new();
    for buffer in document.buffers() {
        let Source::Uri(uri) = buffer.source() else {
            read.push(None);
            continue;
        };
        let refused = |why: &str| {
            let uri = short(uri.as_bytes());
            Problem::new(format!("its buffer {} is `{uri}`: {why}", buffer.index()))
        };
        let (name, bytes) = match uri.strip_prefix("data:") {
            Some(data) => {
                let Some((_, data)) = data.split_once(";base64,") else {
                    return Err(refused("data must be in base64"));
                };
                let bytes = STANDARD.decode(data);
                let bytes = bytes.map_err(|error| refused(&error.to_string()))?;
                (format!("buffer {}", buffer.index()), bytes)
            }
            None => {
                let path = decoded(uri)
                    .filter(|path| is_within(Path::new(path)))
                    .ok_or_else(|| {
                        refused(
                            "only files in the folder of the one that names them, or in folders there, are read; export it as one \
                             file (.glb)",
                        )
                    })?;
                let bytes = beside(Path::new(&path), left);
                let bytes = bytes.map_err(|error| refused(&format!("cannot read it: {error}")))?;
                (short(path.as_bytes()), bytes)
            }
        };
        if bytes.len() < buffer.length() {
            return Err(refused(&format!(
                "it must have {} bytes, and has {}",
                buffer.length(),
                bytes.len()
            )));
        }
        left = left.saturating_sub(bytes.len() as u64);
        read.push(Some((name, bytes)));
    }
    Ok(read)
}

/// Text in which `%20` and the like are the bytes that they stand for.
fn decoded(uri: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(uri.len());
    let mut rest = uri.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        rest = behind;
        bytes.push(if first == b'%' {
            let digits;
            (digits, rest) = rest.split_at_checked(2)?;
            u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?
        } else {
            first
        });
    }
    String::from_utf8(bytes).ok()
}

/// Whether a path stays in the folder that it begins in.
fn is_within(path: &Path) -> bool {
    let mut parts = path.components();
    // On every system, what others take for a root or a scheme.
    let text = path.as_os_str().to_string_lossy();
    !text.is_empty()
        && !text.contains(['\\', ':', '\0'])
        && parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// Bytes that accessors lie in.
#[derive(Clone, Copy)]
struct Binary<'a> {
    bytes: &'a [u8],
    within: Within<'a>,
}

/// A place of bytes.
#[derive(Clone, Copy)]
enum Within<'a> {
    /// The file itself, from this byte on.
    Here(usize),
    /// Another file.
    File(&'a str),
}

impl Binary<'_> {
    /// A problem with a byte.
    fn problem(self, at: usize, message: String) -> Problem {
        match self.within {
            Within::Here(first) => Problem::at_byte(first + at, message),
            Within::File(name) => Problem::new(format!("{name}, byte {at}: {message}")),
        }
    }
}

struct Reader<'a> {
    /// The buffers that there are.
    buffers: Vec<Option<Binary<'a>>>,
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
            return Err(Problem::new(
                "its nodes contain themselves, or are nested too deep",
            ));
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
        let Some(&Some(buffer)) = self.buffers.get(view.buffer().index()) else {
            return Err(bad("its buffer is not there"));
        };
        let bytes = buffer.bytes;
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
            return Err(bad("its data go on behind the end of its file"));
        };
        for index in 0..accessor.count() {
            let at = start + index * stride;
            let mut values = [0.0; N];
            for (k, value) in values.iter_mut().enumerate() {
                let at = at + k * kind.size();
                *value = number(kind, accessor.normalized(), &bytes[at..]);
                if !value.is_finite() {
                    let message = format!("{what} {index} is {value}, no finite number");
                    return Err(buffer.problem(at, message));
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
        file.axes.up = Some(Up::Y);
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

/// Bytes of other files, at most.
const MOST_BESIDE: u64 = 2 << 30;

/// Nodes above another one, at most.
const DEEPEST: usize = 64;

/// The value of its attribute from which on a vertex is in a group.
const IN_GROUP: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader of other files, of which there are none.
    fn nothing(_: &Path, _: u64) -> std::io::Result<Vec<u8>> {
        Err(std::io::ErrorKind::NotFound.into())
    }

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
        let file = read_file(&seam(), &["PIN", "flag"], &nothing).unwrap();
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

    /// The seam as JSON whose buffer is at this place, and the buffer.
    fn seam_as_text(uri: &str) -> (String, Vec<u8>) {
        let seam = seam();
        let (json, binary) = chunks(&seam).unwrap();
        let buffer = format!("\"buffers\":[{{\"uri\":\"{uri}\",");
        let json = String::from_utf8_lossy(json).replace("\"buffers\":[{", &buffer);
        (json, binary.bytes.to_vec())
    }

    #[test]
    fn buffers_are_read_from_the_folder_and_from_the_text_itself() {
        let binary = read_file(&seam(), &["PIN", "flag"], &nothing).unwrap();
        let (text, data) = seam_as_text("parts/sheet%20one.bin");
        let beside = |path: &Path, most: u64| {
            assert_eq!(
                (path, most),
                (Path::new("parts/sheet one.bin"), MOST_BESIDE)
            );
            Ok(data.clone())
        };
        let read = |text: &str| read_text_file(text.as_bytes(), &["PIN", "flag"], &beside);
        assert_eq!(read(&text).unwrap(), binary);
        let uri = format!(
            "data:application/octet-stream;base64,{}",
            STANDARD.encode(&data)
        );
        let within = seam_as_text(&uri).0;
        assert_eq!(read(&format!("\u{feff}{within}")).unwrap(), binary);
        // A buffer of a binary file may lie in another one, too.
        let mixed = glb(&text, &[]);
        assert_eq!(
            read_file(&mixed, &["PIN", "flag"], &beside).unwrap(),
            binary
        );
        let mut bad = data.clone();
        bad[3] = 0x7f;
        bad[2] = 0xff;
        let beside = |_: &Path, _: u64| Ok(bad.clone());
        let told = read_text_file(text.as_bytes(), &[], &beside).unwrap_err();
        assert!(
            told.message
                .starts_with("parts/sheet one.bin, byte 0: a position 0 is NaN"),
            "{}",
            told.message
        );
    }

    #[test]
    fn buffers_elsewhere_and_of_too_few_bytes_are_refused() {
        let told = |uri: &str| {
            let text = seam_as_text(uri).0;
            let beside = |_: &Path, _: u64| Ok(vec![0; 127]);
            let problem = read_text_file(text.as_bytes(), &[], &beside).unwrap_err();
            problem.message
        };
        for elsewhere in [
            "../sheet.bin",
            "a/../../sheet.bin",
            "/etc/passwd",
            "file:///etc/passwd",
            "C:/a.bin",
            "..%2fsheet.bin",
            "%2e%2e/sheet.bin",
            "a\\\\b.bin",
            "http://x/y.bin",
            "a%00.bin",
            "%zz",
            "",
        ] {
            let told = told(elsewhere);
            assert!(
                told.contains("only files in the folder"),
                "{elsewhere}: {told}"
            );
        }
        assert!(told("sheet.bin").contains("must have 128 bytes, and has 127"));
        assert!(told("data:;base64,AAAA").contains("must have 128 bytes, and has 3"));
        assert!(told("data:;base64,A*A").contains("its buffer 0 is"));
        assert!(told("data:text/plain,abc").contains("in base64"));
        let text = seam_as_text("none.bin").0;
        let problem = read_text_file(text.as_bytes(), &[], &nothing).unwrap_err();
        assert!(
            problem.message.contains("`none.bin`: cannot read it: "),
            "{}",
            problem.message
        );
        let problem = read_text_file(&seam(), &[], &nothing).unwrap_err();
        assert!(
            problem.message.contains("call it .glb"),
            "{}",
            problem.message
        );
        // A buffer that no file has, and none that is within JSON.
        let text = text.replace("\"uri\":\"none.bin\",", "");
        let problem = read_text_file(text.as_bytes(), &[], &nothing).unwrap_err();
        assert!(
            problem.message.contains("its buffer is not there"),
            "{}",
            problem.message
        );
    }

    #[test]
    fn damaged_text_is_never_a_panic() {
        let (_, data) = seam_as_text("a.bin");
        let good = seam_as_text(&format!("data:;base64,{}", STANDARD.encode(data))).0;
        let good = good.into_bytes();
        for at in 0..good.len() {
            for byte in [0, b'"', b'9', good[at] ^ 1] {
                let mut bytes = good.clone();
                bytes[at] = byte;
                drop(read_text_file(&bytes, &["PIN"], &nothing));
            }
            drop(read_text_file(&good[..at], &[], &nothing));
        }
    }

    #[test]
    fn damage_is_told_and_never_a_panic() {
        let good = seam();
        let message = |bytes: &[u8]| {
            let Problem { place, message } = read_file(bytes, &["PIN"], &nothing).unwrap_err();
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
        assert!(changed("\"children\":[1]", "\"children\":[0]").contains("contain themselves"));
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
                drop(read_file(&bytes, &["PIN"], &nothing));
            }
            drop(read_file(&good[..at], &[], &nothing));
        }
    }
}
