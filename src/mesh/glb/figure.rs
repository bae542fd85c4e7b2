//! Figures: where vertices are that nodes carry, or that a skin moves with several nodes at once.
//!
//! A vertex with a skin is at the mean of the places to which its joints carry it, by its weights
//! (linear blend skinning): joint j carries a position p of the file to G(j) B(j) p, with the
//! transform G(j) of the joint's node in the scene and the inverse bind matrix B(j) of the skin.
//! The transform of the node that has the mesh does not act on it. (Khronos, *glTF 2.0
//! Specification*, 3.7.3, "Skins"; weights are normalised here.)
//!
//! The nodes of the scene are held as a list, in which each comes after the one above it.

use std::collections::HashMap;

use glam::{DMat4, DVec3};
use gltf::accessor::DataType;
use gltf::{Accessor, Document, Node, Primitive, Scene, Semantic};

use super::super::file_problem::{Problem, short};
use super::container::Data;
use crate::heap_bytes::{counts_heap, owns_no_heap};

/// A node of the scene.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    /// The number that the file gives it.
    pub(super) number: usize,
    /// The node above it, by its place in the list.
    pub(super) above: Option<u32>,
    /// Its own transform.
    pub(super) own: DMat4,
}

/// Nodes that together move vertices.
#[derive(Clone, Debug)]
struct Skin {
    /// The joints, by their places in the list of nodes.
    joints: Vec<u32>,
    inverse_bind: Vec<DMat4>,
}

/// A joint that moves a vertex, by its number in the skin.
#[derive(Clone, Copy, Debug)]
struct Influence {
    joint: u32,
    weight: f64,
}

/// The thing that moves a vertex, by its place among its like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MovedBy {
    Node(u32),
    Skin(u32),
}

/// Vertices that are moved alike, one behind the other.
#[derive(Clone, Copy, Debug)]
struct Part {
    by: MovedBy,
    /// The first vertex behind it.
    end: usize,
}

owns_no_heap!(Placed, Influence, Part);
counts_heap!(Skin: joints, inverse_bind);

/// Vertices with what moves them.
#[derive(Clone, Debug, Default)]
pub(super) struct Figure {
    pub(super) nodes: Vec<Placed>,
    skins: Vec<Skin>,
    /// The skins by their numbers in the file.
    numbers: Vec<usize>,
    /// Positions as the file has them.
    pub(super) positions: Vec<DVec3>,
    parts: Vec<Part>,
    /// The influences on the vertices that have a skin, one vertex after the other.
    influences: Vec<Influence>,
    /// Behind the last influence on each vertex that has a skin.
    ends: Vec<usize>,
}

counts_heap!(Figure: nodes, skins, numbers, positions, parts, influences, ends);

impl Figure {
    /// Lists the nodes of a scene, each with itself as the crate `gltf` knows it.
    pub(super) fn of_scene<'a>(
        document: &'a Document,
        scene: &Scene<'a>,
    ) -> Result<(Self, Vec<Node<'a>>), Problem> {
        let mut figure = Self::default();
        let mut nodes = Vec::new();
        let most = document.nodes().len();
        for node in scene.nodes() {
            figure.list(node, None, 0, most, &mut nodes)?;
        }
        Ok((figure, nodes))
    }

    fn list<'a>(
        &mut self,
        node: Node<'a>,
        above: Option<u32>,
        depth: usize,
        most: usize,
        nodes: &mut Vec<Node<'a>>,
    ) -> Result<(), Problem> {
        if depth > DEEPEST || nodes.len() >= most {
            return Err(Problem::new(
                "its nodes contain themselves, or are nested too deep",
            ));
        }
        let own = node.transform().matrix();
        let place = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
        self.nodes.push(Placed {
            number: node.index(),
            above,
            own: DMat4::from_cols_array_2d(&own.map(|column| column.map(f64::from))),
        });
        nodes.push(node.clone());
        for child in node.children() {
            self.list(child, Some(place), depth + 1, most, nodes)?;
        }
        Ok(())
    }

    /// The transforms of all nodes in the scene, from their own ones.
    pub(super) fn places(&self, own: impl Fn(usize, &Placed) -> DMat4) -> Vec<DMat4> {
        let mut places: Vec<DMat4> = Vec::with_capacity(self.nodes.len());
        for (place, node) in self.nodes.iter().enumerate() {
            let above = node.above.map_or(DMat4::IDENTITY, |a| places[a as usize]);
            places.push(above * own(place, node));
        }
        places
    }

    /// Reads a skin, unless it is known.
    pub(super) fn skin(
        &mut self,
        skin: &gltf::Skin<'_>,
        data: &Data<'_>,
    ) -> Result<MovedBy, Problem> {
        let by = |place: usize| MovedBy::Skin(u32::try_from(place).unwrap_or(u32::MAX));
        if let Some(known) = self.numbers.iter().position(|&n| n == skin.index()) {
            return Ok(by(known));
        }
        let called = called("skin", skin.name(), skin.index());
        let mut listed = HashMap::new();
        for (place, node) in self.nodes.iter().enumerate().rev() {
            listed.insert(node.number, u32::try_from(place).unwrap_or(u32::MAX));
        }
        let mut joints = Vec::new();
        for joint in skin.joints() {
            let Some(&place) = listed.get(&joint.index()) else {
                return Err(Problem::new(format!(
                    "its {called} has {} as a joint, which is not in the scene; export the skeleton with the figure",
                    node_called(&joint)
                )));
            };
            joints.push(place);
        }
        if joints.is_empty() {
            return Err(Problem::new(format!(
                "its {called} has no joints; export it with its skeleton, or without the skin"
            )));
        }
        let mut inverse_bind = Vec::new();
        if let Some(matrices) = skin.inverse_bind_matrices() {
            if matrices.count() < joints.len() {
                return Err(Problem::new(format!(
                    "its {called} has {} inverse bind matrices for {} joints; export it again",
                    matrices.count(),
                    joints.len()
                )));
            }
            let what = format!("{called}, inverse bind matrix");
            data.numbers(&matrices, &what, |numbers: [f64; 16]| {
                inverse_bind.push(DMat4::from_cols_array(&numbers));
            })?;
            inverse_bind.truncate(joints.len());
            let below = |matrix: &DMat4| matrix.row(3) - glam::DVec4::W;
            if let Some(bad) = inverse_bind
                .iter()
                .position(|matrix| below(matrix).abs().max_element() > UNLIKE_AFFINE)
            {
                return Err(Problem::new(format!(
                    "its {called}, inverse bind matrix {bad}: its last row is not 0, 0, 0, 1; export it again"
                )));
            }
        } else {
            inverse_bind.resize(joints.len(), DMat4::IDENTITY);
        }
        self.numbers.push(skin.index());
        self.skins.push(Skin {
            joints,
            inverse_bind,
        });
        Ok(by(self.skins.len() - 1))
    }

    /// Ends a part: the vertices since the last one are moved by this.
    pub(super) fn end_part(&mut self, by: MovedBy) {
        let end = self.positions.len();
        match self.parts.last_mut() {
            Some(last) if last.by == by => last.end = end,
            _ => self.parts.push(Part { by, end }),
        }
    }

    /// Reads which joints of a skin move each of `count` vertices, and by which weights.
    pub(super) fn influences(
        &mut self,
        primitive: &Primitive<'_>,
        skin: u32,
        count: usize,
        data: &Data<'_>,
    ) -> Result<(), Problem> {
        let joints = self.skins[skin as usize].joints.len();
        let mut sets = Vec::new();
        for set in 0.. {
            let of = (
                primitive.get(&Semantic::Joints(set)),
                primitive.get(&Semantic::Weights(set)),
            );
            match of {
                (None, None) => break,
                (Some(numbers), Some(weights)) => {
                    sets.push(one_set(&numbers, &weights, set, count, data)?);
                }
                (numbers, _) => {
                    let (there, not) = match numbers {
                        Some(_) => ("JOINTS", "WEIGHTS"),
                        None => ("WEIGHTS", "JOINTS"),
                    };
                    return Err(Problem::new(format!(
                        "a mesh with a skin has {there}_{set} and no {not}_{set}; export it again with its weights"
                    )));
                }
            }
        }
        if sets.is_empty() {
            return Err(Problem::new(
                "a mesh with a skin has no JOINTS_0 and WEIGHTS_0; export it with its weights, or without the skin",
            ));
        }
        for vertex in 0..count {
            let first = self.influences.len();
            let mut sum = 0.0;
            for (numbers, weights) in &sets {
                for (&joint, &weight) in numbers[vertex].iter().zip(&weights[vertex]) {
                    if weight < 0.0 {
                        return Err(Problem::new(format!(
                            "vertex {vertex} of a mesh with a skin has a weight of {weight}; export it with weights that are not negative"
                        )));
                    }
                    if weight == 0.0 {
                        continue;
                    }
                    if joint as usize >= joints {
                        return Err(Problem::new(format!(
                            "vertex {vertex} of a mesh with a skin is moved by joint {joint}, and its skin has {joints} (counted from 0); \
                             export it again"
                        )));
                    }
                    sum += weight;
                    self.influences.push(Influence { joint, weight });
                }
            }
            if sum <= 0.0 {
                return Err(Problem::new(format!(
                    "the weights of vertex {vertex} of a mesh with a skin are all 0; assign it to a bone and export it again"
                )));
            }
            let of_vertex = &mut self.influences[first..];
            of_vertex.iter_mut().for_each(|i| i.weight /= sum);
            self.ends.push(self.influences.len());
        }
        Ok(())
    }

    /// Whether a skin turns a part over whose last vertices were read, judged by the first of this
    /// many.
    pub(super) fn mirrors(&self, skin: u32, count: usize, places: &[DMat4]) -> bool {
        let Some(vertex) = self.ends.len().checked_sub(count.max(1)) else {
            return false;
        };
        let Skin {
            joints,
            inverse_bind,
        } = &self.skins[skin as usize];
        let sum = self.of_vertex(vertex).iter().map(|i| {
            let joint = i.joint as usize;
            places[joints[joint] as usize] * inverse_bind[joint] * i.weight
        });
        let sum = sum.fold(DMat4::ZERO, |sum, matrix| sum + matrix);
        glam::DMat3::from_mat4(sum).determinant() < 0.0
    }

    /// The influences on a vertex, counted among those with a skin.
    fn of_vertex(&self, vertex: usize) -> &[Influence] {
        let first = (vertex.checked_sub(1)).map_or(0, |before| self.ends[before]);
        &self.influences[first..self.ends[vertex]]
    }

    /// Moves positions of the file to where they are for these transforms of the nodes.
    pub(super) fn place(&self, positions: &mut [DVec3], places: &[DMat4]) {
        let matrices = self.skins.iter().map(|skin| {
            let joints = skin.joints.iter().zip(&skin.inverse_bind);
            let carried = joints.map(|(&joint, &bind)| places[joint as usize] * bind);
            carried.collect::<Vec<DMat4>>()
        });
        let matrices: Vec<Vec<DMat4>> = matrices.collect();
        let (mut start, mut with_skin) = (0, 0);
        for part in &self.parts {
            let of_part = &mut positions[start..part.end];
            match part.by {
                MovedBy::Node(node) => {
                    let place = places[node as usize];
                    if place != DMat4::IDENTITY {
                        (of_part.iter_mut()).for_each(|p| *p = place.transform_point3(*p));
                    }
                }
                MovedBy::Skin(skin) => {
                    let matrices = &matrices[skin as usize];
                    for position in of_part {
                        let moved = self.of_vertex(with_skin).iter().map(|influence| {
                            let matrix = &matrices[influence.joint as usize];
                            matrix.transform_point3(*position) * influence.weight
                        });
                        *position = moved.fold(DVec3::ZERO, |sum, p| sum + p);
                        with_skin += 1;
                    }
                }
            }
            start = part.end;
        }
    }

    /// Gives vertices of one skin that are at one place in the file the first one's of `placed`,
    /// where they are in the scene: weights of a seam may be given in another order.
    pub(super) fn close_seams(&self, placed: &mut [DVec3]) {
        let mut first: HashMap<(u32, [u64; 3]), DVec3> = HashMap::new();
        let mut start = 0;
        for part in &self.parts {
            if let MovedBy::Skin(skin) = part.by {
                let both = self.positions[start..part.end].iter();
                for (of_file, placed) in both.zip(&mut placed[start..part.end]) {
                    let key = of_file.to_array().map(|x| (x + 0.0).to_bits());
                    *placed = *first.entry((skin, key)).or_insert(*placed);
                }
            }
            start = part.end;
        }
    }

    /// Whether any vertex has a skin.
    pub(super) fn has_skins(&self) -> bool {
        !self.skins.is_empty()
    }

    /// Joins vertices: `joined` says which one each becomes, and the first of them stands for all.
    ///
    /// # Errors
    /// Vertices of nodes become one that go separate ways; `mover` tells for the places of nodes
    /// which one above or at them is moved.
    pub(super) fn join(
        self,
        joined: &[u32],
        mover: impl Fn(u32) -> Option<u32>,
    ) -> Result<Self, Problem> {
        let mut left = Self {
            nodes: self.nodes.clone(),
            skins: self.skins.clone(),
            numbers: self.numbers.clone(),
            ..Self::default()
        };
        // The node or skin that moves the first vertex of each.
        let mut movers: Vec<MovedBy> = Vec::new();
        let (mut start, mut with_skin) = (0, 0);
        for part in &self.parts {
            let of_part = joined.iter().enumerate().take(part.end).skip(start);
            for (vertex, &becomes) in of_part {
                let becomes = becomes as usize;
                if becomes == movers.len() {
                    movers.push(part.by);
                    left.positions.push(self.positions[vertex]);
                    if let MovedBy::Skin(_) = part.by {
                        left.influences.extend(self.of_vertex(with_skin));
                        left.ends.push(left.influences.len());
                    }
                    left.end_part(part.by);
                } else if let (MovedBy::Node(a), MovedBy::Node(b)) = (movers[becomes], part.by)
                    && mover(a) != mover(b)
                {
                    return Err(Problem::new(format!(
                        "vertices of two of its nodes, {} and {} (counted from 0), are at one place, {}, and so become one, and the \
                         animation moves the nodes apart; move one of the two meshes a little, or join them and give them a skin",
                        self.nodes[a as usize].number,
                        self.nodes[b as usize].number,
                        self.positions[vertex]
                    )));
                }
                with_skin += usize::from(matches!(part.by, MovedBy::Skin(_)));
            }
            start = part.end;
        }
        Ok(left)
    }
}

/// The joints and the weights of vertices.
type Set = (Vec<[u32; 4]>, Vec<[f64; 4]>);

/// Reads four joints and weights of each vertex.
fn one_set(
    numbers: &Accessor<'_>,
    weights: &Accessor<'_>,
    set: u32,
    count: usize,
    data: &Data<'_>,
) -> Result<Set, Problem> {
    if numbers.count() != count || weights.count() != count {
        return Err(Problem::new(format!(
            "a mesh with a skin has {count} vertices, {} elements of JOINTS_{set} and {} of WEIGHTS_{set}; export it again",
            numbers.count(),
            weights.count()
        )));
    }
    if !matches!(numbers.data_type(), DataType::U8 | DataType::U16) || numbers.normalized() {
        return Err(Problem::new(format!(
            "JOINTS_{set} of a mesh with a skin are no whole numbers of 8 or 16 bits; export it again"
        )));
    }
    let mut set = (Vec::with_capacity(count), Vec::with_capacity(count));
    data.numbers(numbers, "joints of a vertex", |joints: [f64; 4]| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole numbers of at most 16 bits"
        )]
        set.0.push(joints.map(|joint| joint as u32));
    })?;
    data.numbers(weights, "weights of a vertex", |weights: [f64; 4]| {
        set.1.push(weights);
    })?;
    Ok(set)
}

/// A thing of the file in messages: by its name, or by its number from 0.
pub(super) fn called(what: &str, name: Option<&str>, number: usize) -> String {
    match name {
        Some(name) => format!("{what} `{}`", short(name.as_bytes())),
        None => format!("{what} {number} (counted from 0)"),
    }
}

/// A node in messages.
pub(super) fn node_called(node: &Node<'_>) -> String {
    called("node", node.name(), node.index())
}

/// Nodes above another one, at most.
const DEEPEST: usize = 256;

/// By how much the last row of a matrix that moves and turns may differ from 0, 0, 0, 1.
const UNLIKE_AFFINE: f64 = 1e-3;
