//! Reads glTF, binary (`.glb`) and as JSON with its data beside it or within (`.gltf`): the
//! triangles of all meshes of the scene, where its nodes and skins put them, and how its animations
//! move them.
//!
//! The crate `gltf` reads and checks the JSON. The numbers are read here: the crate trusts the
//! sizes that the file gives, and panics if they are not true. A file has one vertex for each
//! texture coordinate and normal, so positions that are equal are joined: cloth would fall apart at
//! the seams of its texture. By the format lengths are in m and y is upwards.
//!
//! Other files are read from the folder of the file that names them, and from folders in it.
//!
//! | file | what |
//! |---|---|
//! | `container` | the JSON, buffers, and numbers in them |
//! | `figure` | vertices that nodes and skins move |
//! | `keyframes` | values that change in time |
//! | `animation` | nodes that keyframes move |
//!
//! Not here: compressed and sparse data, morph targets.

mod animation;
mod container;
pub(crate) use container::files_beside;
mod figure;
mod keyframes;
#[cfg(test)]
pub(crate) mod made;
#[cfg(test)]
mod moving_tests;
#[cfg(test)]
mod tests;

use glam::{DMat4, DVec3};
use gltf::accessor::Dimensions;
use gltf::mesh::Mode;
use gltf::{Document, Gltf, Semantic};

use super::file_mesh::{FileMesh, Texture, join_equal};
use super::file_problem::{BYTE_ORDER_MARK, Problem, short};
use super::groups::{Groups, Kind};
use super::looks::no_gltf;
use super::{MAX_TRIANGLES, MAX_VERTICES, TriMesh};
use crate::scene::Up;

pub(super) use animation::AnimatedFigure;
use animation::{Animation, refuse_morphs};
pub(super) use container::Beside;
use container::{Binary, Data, HEADER, Within, chunks, other_buffers};
use figure::{Figure, MovedBy, called};

/// Reads the meshes of a binary file, and the groups of these names: meshes, nodes, and attributes
/// of vertices that begin with `_`, without that. `beside` reads the files that this one names.
pub(super) fn read_file(
    bytes: &[u8],
    wanted: &[&str],
    beside: &Beside<'_>,
) -> Result<FileMesh, Problem> {
    let (json, binary) = chunks(bytes)?;
    open(json, Some(binary), beside, |document, data| {
        Reader::read(document, data, wanted)?.finish()
    })
}

/// Reads the meshes of a file that is JSON, as [`read_file`] does.
pub(super) fn read_text_file(
    bytes: &[u8],
    wanted: &[&str],
    beside: &Beside<'_>,
) -> Result<FileMesh, Problem> {
    open(text(bytes)?, None, beside, |document, data| {
        Reader::read(document, data, wanted)?.finish()
    })
}

/// Reads the meshes of a binary file, or of one that is JSON, with the animation of this name that
/// moves them; a name is needed if there are several.
pub(super) fn read_animated(
    bytes: &[u8],
    is_text: bool,
    animation: Option<&str>,
    beside: &Beside<'_>,
) -> Result<(FileMesh, AnimatedFigure), Problem> {
    let (json, binary) = if is_text {
        (text(bytes)?, None)
    } else {
        let (json, binary) = chunks(bytes)?;
        (json, Some(binary))
    };
    open(json, binary, beside, |document, data| {
        let animation = Animation::read(document, &data, animation)?;
        Reader::read(document, data, &[])?.finish_animated(document, animation)
    })
}

/// The JSON of a file that is nothing else.
fn text(bytes: &[u8]) -> Result<&[u8], Problem> {
    let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    if text.trim_ascii_start().first() != Some(&b'{') {
        return Err(no_gltf(bytes));
    }
    Ok(text)
}

/// Reads and checks the JSON and the buffers of a file.
fn open<T>(
    json: &[u8],
    binary: Option<Binary<'_>>,
    beside: &Beside<'_>,
    then: impl FnOnce(&Document, Data<'_>) -> Result<T, Problem>,
) -> Result<T, Problem> {
    let invalid = |error: gltf::Error| {
        let by_extension = json
            .windows(ANIMATES_MORE.len())
            .any(|window| window == ANIMATES_MORE.as_bytes());
        let remedy = if by_extension {
            "; animations by the extension KHR_animation_pointer are not read: export keyframes of nodes instead"
        } else {
            ""
        };
        let message = format!("its JSON is no glTF that can be read: {error}");
        Problem::new(format!("{}{remedy}", short(message.as_bytes())))
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
    let nodes = root.nodes.len();
    for (number, skin) in root.skins.iter().enumerate() {
        if let Some(joint) = skin.joints.iter().find(|joint| joint.value() >= nodes) {
            return Err(Problem::new(format!(
                "its {} has node {} as a joint, and it has {nodes} nodes (counted from 0); export the skeleton with the figure",
                called("skin", skin.name.as_deref(), number),
                joint.value()
            )));
        }
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
    then(&document, Data(buffers.collect()))
}

struct Reader<'a> {
    data: Data<'a>,
    figure: Figure,
    /// Where its nodes are.
    places: Vec<DMat4>,
    corners: Vec<u32>,
    coordinates: Vec<[f64; 2]>,
    has_texture: bool,
    groups: Groups,
}

impl<'a> Reader<'a> {
    /// Reads the meshes of all nodes of the scene.
    fn read(document: &Document, data: Data<'a>, wanted: &[&str]) -> Result<Self, Problem> {
        let scene = document.default_scene();
        let Some(scene) = scene.or_else(|| document.scenes().next()) else {
            return Err(Problem::new(
                "it has no scene: nothing says which meshes are meant",
            ));
        };
        let (figure, nodes) = Figure::of_scene(document, &scene)?;
        let mut reader = Self {
            data,
            places: figure.places(|_, node| node.own),
            figure,
            corners: Vec::new(),
            coordinates: Vec::new(),
            has_texture: false,
            groups: Groups::new(wanted),
        };
        for (place, node) in nodes.iter().enumerate() {
            let Some(mesh) = node.mesh() else {
                continue;
            };
            let by = match node.skin() {
                Some(skin) => reader.figure.skin(&skin, &reader.data)?,
                None => MovedBy::Node(u32::try_from(place).unwrap_or(u32::MAX)),
            };
            let names = [node.name(), mesh.name()];
            for name in names.into_iter().flatten() {
                reader.groups.begin_faces(Kind::Object, name);
            }
            for primitive in mesh.primitives() {
                reader.primitive(&primitive, by)?;
            }
            reader.groups.end_faces(Kind::Object);
        }
        Ok(reader)
    }

    fn primitive(&mut self, primitive: &gltf::Primitive<'_>, by: MovedBy) -> Result<(), Problem> {
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
        let before = self.figure.positions.len();
        let count = positions.count();
        if count > MAX_VERTICES - before {
            return Err(Problem::new(format!("more than {MAX_VERTICES} vertices")));
        }
        let read = &mut self.figure.positions;
        self.data
            .numbers(&positions, "a position", |position: [f64; 3]| {
                read.push(DVec3::from(position));
            })?;
        let is_mirrored = match by {
            MovedBy::Node(node) => self.places[node as usize].determinant() < 0.0,
            MovedBy::Skin(skin) => {
                let figure = &mut self.figure;
                figure.influences(primitive, skin, count, &self.data)?;
                figure.mirrors(skin, count, &self.places)
            }
        };
        self.figure.end_part(by);
        match primitive.get(&Semantic::TexCoords(0)) {
            Some(coordinates) if coordinates.count() == count => {
                self.has_texture = true;
                // A picture's rows count downwards in glTF, and upwards everywhere else.
                let read = &mut self.coordinates;
                self.data
                    .numbers(&coordinates, "a texture coordinate", |[u, v]| {
                        read.push([u, 1.0 - v]);
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
                let groups = &mut self.groups;
                self.data.numbers(&values, "an attribute", |[value]| {
                    if value >= IN_GROUP {
                        groups.add_to(group, vertex);
                    }
                    vertex += 1;
                })?;
            }
        }
        self.faces(primitive, before, count, is_mirrored)
    }

    /// Reads the corners of triangles, of vertices that begin with this one.
    fn faces(
        &mut self,
        primitive: &gltf::Primitive<'_>,
        before: usize,
        count: usize,
        is_mirrored: bool,
    ) -> Result<(), Problem> {
        let first = self.corners.len();
        if let Some(indices) = primitive.indices() {
            if indices.count() > 3 * MAX_TRIANGLES - first {
                return Err(Problem::new(format!("more than {MAX_TRIANGLES} triangles")));
            }
            let mut beyond = None;
            let corners = &mut self.corners;
            self.data
                .numbers(&indices, "an index", |[index]: [f64; 1]| {
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
                    corners.push(vertex.saturating_add(before as u32));
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
        if is_mirrored {
            corners
                .as_chunks_mut::<3>()
                .0
                .iter_mut()
                .for_each(|t| t.swap(1, 2));
        }
        self.groups.add(corners.iter().copied());
        Ok(())
    }

    /// The mesh, where the nodes are as the file has them.
    fn finish(mut self) -> Result<FileMesh, Problem> {
        let mut placed = if self.figure.has_skins() {
            self.figure.positions.clone()
        } else {
            std::mem::take(&mut self.figure.positions)
        };
        self.put(&mut placed);
        self.mesh(&placed).map(|(file, _)| file)
    }

    /// The mesh as [`Self::finish`] has it, with an animation that moves it.
    fn finish_animated(
        mut self,
        document: &Document,
        animation: Animation,
    ) -> Result<(FileMesh, AnimatedFigure), Problem> {
        refuse_morphs(document, &self.figure)?;
        let mut placed = self.figure.positions.clone();
        self.put(&mut placed);
        let figure = std::mem::take(&mut self.figure);
        let (file, joined) = self.mesh(&placed)?;
        let figure = AnimatedFigure::new(figure, animation, &joined)?;
        Ok((file, figure))
    }

    /// Moves positions of the file to where its nodes and skins have them.
    fn put(&self, positions: &mut [DVec3]) {
        self.figure.place(positions, &self.places);
        if self.figure.has_skins() {
            self.figure.close_seams(positions);
        }
    }

    /// The mesh of vertices that are here, and which of its vertices each became.
    fn mesh(self, placed: &[DVec3]) -> Result<(FileMesh, Vec<u32>), Problem> {
        if self.corners.is_empty() {
            return Err(Problem::new("it has no triangles"));
        }
        let (left, joined) = join_equal(placed);
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
        file.joined = doubled.then(|| joined.clone());
        (file.groups, file.group_names) = (groups, group_names);
        file.axes.up = Some(Up::Y);
        Ok((file, joined))
    }
}

/// The value of its attribute from which on a vertex is in a group.
const IN_GROUP: f64 = 0.5;

/// The extension by which files animate more than nodes.
const ANIMATES_MORE: &str = "KHR_animation_pointer";
