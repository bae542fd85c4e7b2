//! Animations of glTF: keyframes that move nodes of the scene, and with them vertices.
//!
//! Translations, rotations and scales of any nodes are animated, also of those above meshes and
//! joints. Before its first keyframe a value is that of the first, and after its last one that of
//! the last. Morph targets are refused where they would change the shape.

use glam::{DMat4, DQuat, DVec3, DVec4};
use gltf::accessor::Accessor;
use gltf::animation::{Interpolation, Property, Sampler};
use gltf::json::validation::Checked;
use gltf::scene::Transform;
use gltf::{Document, Node};

use super::super::file_problem::{Problem, short};
use super::container::Data;
use super::figure::{Figure, called, node_called};
use super::keyframes::{Between, Keyframes};
use crate::heap_bytes::counts_heap;

/// The movement of a node.
#[derive(Clone, Debug)]
struct Track {
    /// The number that the file gives the node.
    node: usize,
    /// Its own translation, rotation and scale, for those that are not animated.
    still: (DVec3, DQuat, DVec3),
    translation: Option<Keyframes>,
    rotation: Option<Keyframes>,
    scale: Option<Keyframes>,
}

counts_heap!(Track: translation, rotation, scale; without node, still);

impl Track {
    /// The node's own transform at a time in s.
    fn at(&self, time: f64) -> DMat4 {
        let (translation, rotation, scale) = &self.still;
        let vector = |keyframes: &Option<Keyframes>, still: &DVec3| {
            (keyframes.as_ref()).map_or(*still, |keyframes| keyframes.vector(time))
        };
        let rotation =
            (self.rotation.as_ref()).map_or(*rotation, |keyframes| keyframes.rotation(time));
        DMat4::from_scale_rotation_translation(
            vector(&self.scale, scale),
            rotation,
            vector(&self.translation, translation),
        )
    }
}

/// An animation of a file.
#[derive(Debug)]
pub(super) struct Animation {
    /// Its name in messages.
    called: String,
    /// The movements of nodes, each of which has one at most.
    tracks: Vec<Track>,
    /// The time of the last keyframe in s.
    end: f64,
}

impl Animation {
    /// Reads the animation of this name, or the only one.
    pub(super) fn read(
        document: &Document,
        data: &Data<'_>,
        wanted: Option<&str>,
    ) -> Result<Self, Problem> {
        let animation = chosen(document, wanted)?;
        let called = called("animation", animation.name(), animation.index());
        let mut read = Self {
            called,
            tracks: Vec::new(),
            end: 0.0,
        };
        let json = &document.as_json().animations[animation.index()];
        let nodes: Vec<Node<'_>> = document.nodes().collect();
        for (number, (channel, json)) in animation.channels().zip(&json.channels).enumerate() {
            // The crate does not check these.
            let Checked::Valid(property) = json.target.path else {
                return Err(Problem::new(format!(
                    "its {}, channel {number} (counted from 0), moves something that is neither translation nor rotation nor scale, as \
                     extensions do; export keyframes of nodes",
                    read.called
                )));
            };
            let Some(node) = nodes.get(json.target.node.value()) else {
                return Err(Problem::new(format!(
                    "its {}, channel {number} (counted from 0), moves node {}, and there are {} nodes; export it again",
                    read.called,
                    json.target.node.value(),
                    nodes.len()
                )));
            };
            read.channel(node, property, &channel.sampler(), data)?;
        }
        Ok(read)
    }

    fn channel(
        &mut self,
        node: &Node<'_>,
        property: Property,
        sampler: &Sampler<'_>,
        data: &Data<'_>,
    ) -> Result<(), Problem> {
        let what = match property {
            Property::Translation => "translation",
            Property::Rotation => "rotation",
            Property::Scale => "scale",
            Property::MorphTargetWeights => "weights",
        };
        let label = format!("its {}, {what} of {}", self.called, node_called(node));
        if property == Property::MorphTargetWeights {
            return refuse_weights(&label, &sampler.output(), data);
        }
        let keyframes = keyframes(&label, property, sampler, data)?;
        self.end = (keyframes.times.last()).map_or(self.end, |&last| self.end.max(last));
        let track = match self.tracks.iter().position(|t| t.node == node.index()) {
            Some(known) => &mut self.tracks[known],
            None => {
                let still = still(&label, node)?;
                self.tracks.push(Track {
                    node: node.index(),
                    still,
                    translation: None,
                    rotation: None,
                    scale: None,
                });
                // It was pushed just now.
                let last = self.tracks.len() - 1;
                &mut self.tracks[last]
            }
        };
        let slot = match property {
            Property::Translation => &mut track.translation,
            Property::Rotation => &mut track.rotation,
            Property::Scale | Property::MorphTargetWeights => &mut track.scale,
        };
        if slot.is_some() {
            return Err(Problem::new(format!(
                "{label} is animated twice; export it again"
            )));
        }
        *slot = Some(keyframes);
        Ok(())
    }
}

/// The animation of a name, or the only one. One without a name is called by its number.
fn chosen<'a>(
    document: &'a Document,
    wanted: Option<&str>,
) -> Result<gltf::Animation<'a>, Problem> {
    let name_of = |animation: &gltf::Animation<'_>| match animation.name() {
        Some(name) => name.to_owned(),
        None => animation.index().to_string(),
    };
    let mut animations: Vec<gltf::Animation<'_>> = document.animations().collect();
    let shown: Vec<String> = (animations.iter().take(MOST_SHOWN))
        .map(|animation| format!("`{}`", short(name_of(animation).as_bytes())))
        .collect();
    let more = animations.len().saturating_sub(shown.len());
    let mut listed = shown.join(", ");
    if more > 0 {
        listed.push_str(&format!(" and {more} more"));
    }
    if animations.is_empty() {
        return Err(Problem::new(
            "it has no animation; export it with one, or name the file as `mesh` and leave out `sequence`",
        ));
    }
    if let Some(wanted) = wanted {
        animations.retain(|animation| name_of(animation) == wanted);
        let wanted = short(wanted.as_bytes());
        if animations.is_empty() {
            return Err(Problem::new(format!(
                "it has no animation `{wanted}`; it has {listed}"
            )));
        }
        if animations.len() > 1 {
            return Err(Problem::new(format!(
                "{} of its animations are called `{wanted}`; name them apart and export it again",
                animations.len()
            )));
        }
    } else if animations.len() > 1 {
        return Err(Problem::new(format!(
            "it has several animations; name one of them by the key `animation`: {listed}"
        )));
    }
    Ok(animations.swap_remove(0))
}

/// The translation, rotation and scale that a node has of its own.
fn still(label: &str, node: &Node<'_>) -> Result<(DVec3, DQuat, DVec3), Problem> {
    let Transform::Decomposed {
        translation,
        rotation,
        scale,
    } = node.transform()
    else {
        return Err(Problem::new(format!(
            "{label}: the node has a matrix, which cannot be animated; export it with translation, rotation and scale"
        )));
    };
    let vector = |numbers: [f32; 3]| DVec3::from(numbers.map(f64::from));
    let rotation = unit(DVec4::from(rotation.map(f64::from))).ok_or_else(|| {
        Problem::new(format!(
            "{label}: the node's rotation is a quaternion of length 0; export it again"
        ))
    })?;
    Ok((
        vector(translation),
        DQuat::from_vec4(rotation),
        vector(scale),
    ))
}

/// A quaternion of length 1, if it has a length.
fn unit(quaternion: DVec4) -> Option<DVec4> {
    let length = quaternion.length();
    (length.is_finite() && length > LEAST_LENGTH).then(|| quaternion / length)
}

/// Reads the keyframes of a node.
fn keyframes(
    label: &str,
    property: Property,
    sampler: &Sampler<'_>,
    data: &Data<'_>,
) -> Result<Keyframes, Problem> {
    let between = match sampler.interpolation() {
        Interpolation::Step => Between::Step,
        Interpolation::Linear => Between::Linear,
        Interpolation::CubicSpline => Between::Cubic,
    };
    let mut times = Vec::new();
    let what = format!("{label}: time");
    data.numbers(&sampler.input(), &what, |[time]| times.push(time))?;
    if times.is_empty() {
        return Err(Problem::new(format!(
            "{label} has no keyframes; export it again"
        )));
    }
    if let Some(place) = times.array_windows().position(|[a, b]| a >= b) {
        return Err(Problem::new(format!(
            "{label}: keyframe {} (counted from 0) is at {} s, and the one before it at {} s; times have to ascend: export it again",
            place + 1,
            times[place + 1],
            times[place]
        )));
    }
    let per_time = Keyframes::per_time(between);
    let output = sampler.output();
    if output.count() != per_time * times.len() {
        return Err(Problem::new(format!(
            "{label} has {} values for {} keyframes, and there have to be {per_time} for each; export it again",
            output.count(),
            times.len()
        )));
    }
    let what = format!("{label}: value");
    let mut values = Vec::new();
    match property {
        Property::Rotation => {
            data.numbers(&output, &what, |numbers: [f64; 4]| {
                values.push(DVec4::from(numbers));
            })?;
        }
        Property::Translation | Property::Scale | Property::MorphTargetWeights => {
            data.numbers(&output, &what, |[x, y, z]: [f64; 3]| {
                values.push(DVec4::new(x, y, z, 0.0));
            })?;
        }
    }
    let mut keyframes = Keyframes {
        times,
        values,
        between,
    };
    if property == Property::Rotation {
        for index in 0..keyframes.times.len() {
            let Some(turned) = unit(keyframes.value(index)) else {
                return Err(Problem::new(format!(
                    "{label}: keyframe {index} (counted from 0) is a quaternion of length 0; export it again"
                )));
            };
            // A cubic goes through values as they are.
            if between != Between::Cubic {
                keyframes.values[index] = turned;
            }
        }
    }
    Ok(keyframes)
}

/// Refuses weights of morph targets, unless all are 0.
fn refuse_weights(label: &str, output: &Accessor<'_>, data: &Data<'_>) -> Result<(), Problem> {
    let mut any = false;
    let what = format!("{label}: value");
    data.numbers(output, &what, |[weight]| any |= weight != 0.0)?;
    if any {
        return Err(Problem::new(format!(
            "{label}: morph targets (shape keys) are not read; apply them, or move the figure by bones alone"
        )));
    }
    Ok(())
}

/// Refuses meshes of a figure that morph targets shape.
pub(super) fn refuse_morphs(document: &Document, figure: &Figure) -> Result<(), Problem> {
    let nodes: Vec<Node<'_>> = document.nodes().collect();
    for placed in &figure.nodes {
        let node = &nodes[placed.number];
        let Some(mesh) = node.mesh() else {
            continue;
        };
        let has_targets = mesh.primitives().any(|p| p.morph_targets().len() > 0);
        let weights = node.weights().or_else(|| mesh.weights());
        let is_shaped = weights.is_some_and(|weights| weights.iter().any(|&weight| weight != 0.0));
        if has_targets && is_shaped {
            return Err(Problem::new(format!(
                "the mesh of its {} is shaped by morph targets (shape keys), which are not read; apply them, or set their weights to 0",
                node_called(node)
            )));
        }
    }
    Ok(())
}

/// A figure that an animation moves.
#[derive(Clone, Debug)]
pub(in crate::mesh) struct AnimatedFigure {
    figure: Figure,
    tracks: Vec<Track>,
    /// The movement of each node of the figure, if it has one.
    track_of: Vec<Option<u32>>,
    end: f64,
}

counts_heap!(AnimatedFigure: figure, tracks, track_of; without end);

impl AnimatedFigure {
    /// Joins vertices: `joined` says which one each of the file's becomes.
    pub(super) fn new(
        figure: Figure,
        animation: Animation,
        joined: &[u32],
    ) -> Result<Self, Problem> {
        let Animation {
            called,
            tracks,
            end,
        } = animation;
        let of = figure.nodes.iter().map(|placed| {
            let track = tracks.iter().position(|track| track.node == placed.number);
            track.and_then(|track| u32::try_from(track).ok())
        });
        let track_of: Vec<Option<u32>> = of.collect();
        if track_of.iter().all(Option::is_none) {
            return Err(Problem::new(format!(
                "its {called} moves no node of the scene; name another one by the key `animation`, or leave out `sequence`"
            )));
        }
        if end <= 0.0 {
            return Err(Problem::new(format!(
                "its {called} has no keyframe later than 0 s; export it with all of its keyframes, or leave out `sequence`"
            )));
        }
        // The nearest node that is moved, at a node or above it.
        let mut movers: Vec<Option<u32>> = Vec::with_capacity(track_of.len());
        for (place, node) in (0..).zip(&figure.nodes) {
            let above = node.above.and_then(|above| movers[above as usize]);
            movers.push(match track_of[place as usize] {
                Some(_) => Some(place),
                None => above,
            });
        }
        Ok(Self {
            figure: figure.join(joined, |node| movers[node as usize])?,
            tracks,
            track_of,
            end,
        })
    }

    /// The time of the last keyframe in s, greater than 0.
    pub(in crate::mesh) fn end(&self) -> f64 {
        self.end
    }

    /// Where the vertices are at a time in s, in the axes of the file.
    pub(in crate::mesh) fn at(&self, time: f64) -> Vec<DVec3> {
        let places = self.figure.places(|place, node| {
            let track = self.track_of[place];
            track.map_or(node.own, |track| self.tracks[track as usize].at(time))
        });
        let mut positions = self.figure.positions.clone();
        self.figure.place(&mut positions, &places);
        positions
    }
}

/// A length of a quaternion below which it is none.
const LEAST_LENGTH: f64 = 1e-6;

/// The names of animations that a message lists at most.
const MOST_SHOWN: usize = 20;
