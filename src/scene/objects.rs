//! Reads `[[cloth]]` and `[[body]]`; the format is described in [`super::load`].

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use glam::DVec3;

use super::error::{did_you_mean, nearest_file};
use super::load::{LONGEST_NAME, MOST_VERTICES};
use super::material::material;
use super::motion::motion;
use super::quantity::{Dimension, Short};
use super::reader::{Range, Table};
use super::{
    Axis, Body, Cloth, ClothSource, Held, Keyframe, Material, Motion, Pin, Shape, Slide, Surface,
    defaults,
};
use weft_io::{Show as _, open_regular};

/// What the reading of one object needs to know of the rest of the scene.
#[derive(Debug)]
pub(super) struct Surroundings<'a> {
    /// Folder that mesh files are relative to.
    pub(super) folder: Option<&'a Path>,
    /// Contact thickness in m if cloth collides with itself.
    pub(super) thickness: Option<f64>,
    /// Length of a step in s.
    pub(super) step: f64,
    /// Names taken so far.
    pub(super) names: RefCell<BTreeSet<String>>,
}

/// Vertices of a cloth that is generated, or a little more; 0 for a file.
pub(super) fn generated_vertices(cloth: &Cloth) -> u64 {
    match &cloth.source {
        ClothSource::Grid {
            vertices: [x, y], ..
        } => (*x as u64).saturating_mul(*y as u64),
        ClothSource::Shirt { vertices, .. } => {
            let along = *vertices as u64;
            along.saturating_mul(along).saturating_mul(3)
        }
        ClothSource::File { .. } => 0,
    }
}

/// Reads one `[[cloth]]`.
pub(super) fn cloth(table: &Table<'_>, index: usize, surroundings: &Surroundings<'_>) -> Cloth {
    let name = name(table, &format!("cloth{index}"), surroundings);
    let rotation = rotation(table);
    let sources: Vec<&str> = (["grid", "shirt", "mesh"].into_iter())
        .filter(|key| table.has(key))
        .collect();
    if let [first, .., last] = sources[..] {
        table.note(last, format!("a cloth has `{first}` or `{last}`, not both"));
    }
    let source = match sources.last() {
        Some(&"grid") => grid(table, rotation, surroundings),
        Some(&"shirt") => shirt(table, rotation, surroundings),
        Some(_) => ClothSource::File {
            path: file(table, "mesh", surroundings.folder),
            scale: scale(table),
            mirror: mirror(table),
            rotation,
            translation: point_or_zero(table, "translation"),
        },
        None => {
            table.note_missing("grid", "grid = { size = \"1 m\", vertices = 100 }");
            // Asked for so that they are no unknown keys.
            let center = point_or_zero(table, "center");
            let translation = point_or_zero(table, "translation");
            let scale = scale(table);
            ClothSource::File {
                path: PathBuf::new(),
                scale,
                mirror: mirror(table),
                rotation: center,
                translation,
            }
        }
    };
    if !table.has("material") {
        table.note_missing(
            "material",
            "material = { density = \"0.15 kg/m2\", stretch = \"1000 N/m\", bending = \"1e-5 N m\" }",
        );
    }
    Cloth {
        name,
        source,
        material: if table.has("material") {
            table.table("material", material)
        } else {
            Material::COTTON
        },
        weave: direction(table, "weave", "[1, 0, 0]"),
        velocity: table
            .vector("velocity", Dimension::SPEED, Range::Any)
            .unwrap_or(DVec3::ZERO),
        pins: table.tables("pins", MOST_PINS, |_, table| pin(table, surroundings.step)),
    }
}

/// Reads one `[[body]]`; `None` if it has no known shape.
pub(super) fn body(
    table: &Table<'_>,
    index: usize,
    surroundings: &Surroundings<'_>,
) -> Option<Body> {
    let name = name(table, &format!("body{index}"), surroundings);
    let friction = table.quantity("friction", Dimension::NUMBER, Range::NonNegative);
    let kind = table.choice(
        "shape",
        &[
            ("sphere", Kind::Sphere),
            ("plane", Kind::Plane),
            ("box", Kind::Box),
            ("capsule", Kind::Capsule),
            ("mesh", Kind::Mesh),
        ],
    );
    let Some(kind) = kind else {
        if !table.has("shape") {
            table.note_missing("shape", "shape = \"sphere\"");
        }
        // Without a shape nothing is known of the other keys: they are not called unknown.
        table.ignore_rest();
        return None;
    };
    let (shape, edge) = shape(kind, table, surroundings);
    let (velocity, motion) = way(table, "body", middle(&shape), surroundings.step);
    Some(Body {
        name,
        surface: surface(kind, table, edge),
        shape,
        friction: friction.unwrap_or(defaults::BODY_FRICTION),
        velocity,
        motion,
    })
}

/// How a body or a pin moves, which turns about `middle` (m) unless it says otherwise: its velocity in m/s, or its motion.
fn way(table: &Table<'_>, what: &str, middle: DVec3, step: f64) -> (DVec3, Option<Motion>) {
    let velocity = table.vector("velocity", Dimension::SPEED, Range::Any);
    let motion = table.has("motion").then(|| {
        if velocity.is_some() {
            table.note(
                "motion",
                format!(
                    "a {what} has `velocity` or `motion`, not both; a motion with two keyframes has a constant velocity between them"
                ),
            );
        }
        table.table("motion", |table| motion(table, middle, step))
    });
    (velocity.unwrap_or(DVec3::ZERO), motion)
}

/// The point about which a body turns unless its motion says otherwise.
fn middle(shape: &Shape) -> DVec3 {
    match shape {
        Shape::Sphere { center, .. } | Shape::Box { center, .. } => *center,
        Shape::Plane { point, .. } => *point,
        Shape::Capsule { from, to, .. } => from.midpoint(*to),
        Shape::Mesh { translation, .. } => *translation,
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Sphere,
    Plane,
    Box,
    Capsule,
    Mesh,
}

fn grid(table: &Table<'_>, rotation: DVec3, surroundings: &Surroundings<'_>) -> ClothSource {
    let (size, vertices) = table.table("grid", |grid| {
        let size = grid.pair("size", Dimension::LENGTH, Range::Positive);
        let vertices = grid.count_pair("vertices", 2, MOST_VERTICES);
        if size.is_none() {
            grid.note_missing("size", "size = [\"1 m\", \"1 m\"]");
        }
        if vertices.is_none() {
            grid.note_missing("vertices", "vertices = [100, 100]");
        }
        let (Some(size), Some(vertices)) = (size, vertices) else {
            return ([f64::NAN; 2], [2; 2]);
        };
        let total = vertices[0].saturating_mul(vertices[1]);
        if total > MOST_VERTICES {
            grid.note(
                "vertices",
                format!("{total} vertices; the most are {MOST_VERTICES}"),
            );
        } else if let Some(thickness) = surroundings.thickness {
            too_fine(grid, size, vertices, thickness);
        }
        (
            size,
            vertices.map(|count| usize::try_from(count).unwrap_or(usize::MAX)),
        )
    });
    ClothSource::Grid {
        size,
        vertices,
        center: point_or_zero(table, "center"),
        rotation,
    }
}

fn shirt(table: &Table<'_>, rotation: DVec3, surroundings: &Surroundings<'_>) -> ClothSource {
    let least = defaults::LEAST_SHIRT as u64;
    let (height, vertices) = table.table("shirt", |shirt| {
        let height = shirt.required(
            "height",
            Dimension::LENGTH,
            Range::Positive,
            "height = \"0.7 m\"",
        );
        // As many in all as a grid may have.
        let most = (MOST_VERTICES / 3).isqrt();
        let vertices = shirt.count("vertices", least, most);
        if !shirt.has("vertices") {
            shirt.note_missing("vertices", "vertices = 80");
        }
        let vertices = vertices.unwrap_or(least);
        if let Some(thickness) = surroundings.thickness.filter(|_| shirt.has("height")) {
            too_fine(shirt, [height; 2], [vertices; 2], thickness);
        }
        (height, vertices)
    });
    ClothSource::Shirt {
        height,
        vertices: usize::try_from(vertices).unwrap_or(usize::MAX),
        center: point_or_zero(table, "center"),
        rotation,
    }
}

/// Notes cells that are not larger than the contact thickness: neighbours would push each other.
fn too_fine(grid: &Table<'_>, size: [f64; 2], vertices: [u64; 2], thickness: f64) {
    for axis in 0..2 {
        #[expect(clippy::cast_precision_loss, reason = "at most MOST_VERTICES")]
        let cells = (vertices[axis] - 1) as f64;
        let cell = size[axis] / cells;
        if cell <= thickness {
            let message = format!(
                "cells of {:.3} mm {}are not larger than contact.thickness, {:.3} mm, so \
                 that neighbours would push each other; take fewer vertices, a smaller \
                 contact.thickness, or contact.self_collision = false",
                cell * 1e3,
                if size[0] == size[1] {
                    ""
                } else {
                    ["along x ", "along y "][axis]
                },
                thickness * 1e3,
            );
            grid.note("vertices", message);
            return;
        }
    }
}

/// Reads a pin, in steps of `step` seconds.
fn pin(table: &Table<'_>, step: f64) -> Pin {
    let held = held(table);
    let rail = direction(table, "rail", "[1, 0, 0]");
    let plane = direction(table, "plane", "[0, 0, 1]");
    let slide = match (rail, plane) {
        (None, None) => Slide::Nowhere,
        (Some(direction), None) => Slide::Rail(direction),
        (None, Some(normal)) => Slide::Plane(normal),
        (Some(_), Some(_)) => {
            table.note(
                "plane",
                "a pin slides along a `rail` or in a `plane`, not both",
            );
            Slide::Nowhere
        }
    };
    let (velocity, motion) = way(table, "pin", held.middle(), step);
    let first = motion.as_ref().and_then(|motion| motion.keyframes.first());
    if first.is_some_and(Keyframe::is_away) {
        let message = "the first keyframe of a pin is where the cloth starts: it takes neither translation nor rotation nor turn";
        table.note("motion", message);
    }
    Pin {
        held,
        slide,
        velocity,
        motion,
    }
}

fn held(table: &Table<'_>) -> Held {
    let point = |key| table.vector(key, Dimension::LENGTH, Range::Any);
    match (point("nearest"), point("min"), point("max")) {
        (Some(nearest), None, None) => Held::Nearest(nearest),
        (None, Some(min), Some(max)) => {
            if min.cmpgt(max).any() {
                table.note("min", "must not be greater than `max` along any axis");
            }
            Held::Box { min, max }
        }
        _ => {
            let message = "wants either `nearest = [x, y, z]` or both `min` and `max`";
            table.note("", message);
            Held::Nearest(DVec3::NAN)
        }
    }
}

/// The shape and the default length of its triangles' edges.
fn shape(kind: Kind, table: &Table<'_>, surroundings: &Surroundings<'_>) -> (Shape, f64) {
    let point = |key, example| table.required_vector(key, Dimension::LENGTH, Range::Any, example);
    let radius = || {
        table.required(
            "radius",
            Dimension::LENGTH,
            Range::Positive,
            "radius = \"0.2 m\"",
        )
    };
    match kind {
        Kind::Sphere => {
            let center = point("center", "center = [0, 0, 0.2]");
            let radius = radius();
            (
                Shape::Sphere { center, radius },
                radius / defaults::EDGES_PER_RADIUS,
            )
        }
        Kind::Plane => {
            let extent = table
                .quantity("extent", Dimension::LENGTH, Range::Positive)
                .unwrap_or(defaults::PLANE_EXTENT);
            let shape = Shape::Plane {
                point: point_or_zero(table, "point"),
                normal: direction(table, "normal", "[0, 0, 1]").unwrap_or(DVec3::Z),
                extent,
            };
            (shape, extent / defaults::EDGES_PER_PLANE)
        }
        Kind::Box => {
            let center = point("center", "center = [0, 0, 0.1]");
            let size = table.required_vector(
                "size",
                Dimension::LENGTH,
                Range::Positive,
                "size = [0.2, 0.2, 0.2]",
            );
            (
                Shape::Box {
                    center,
                    size,
                    rotation: rotation(table),
                },
                size.max_element() / defaults::EDGES_PER_RADIUS,
            )
        }
        Kind::Capsule => {
            let from = point("from", "from = [0, 0, 0.2]");
            let to = point("to", "to = [0.5, 0, 0.2]");
            let radius = radius();
            if from.distance(to) < radius * LEAST_CAPSULE {
                table.note(
                    "to",
                    "is where `from` is; a capsule without length is a sphere",
                );
            }
            (
                Shape::Capsule { from, to, radius },
                radius / defaults::EDGES_PER_RADIUS,
            )
        }
        Kind::Mesh => {
            let shape = Shape::Mesh {
                path: file(table, "mesh", surroundings.folder),
                scale: scale(table),
                mirror: mirror(table),
                rotation: rotation(table),
                translation: point_or_zero(table, "translation"),
            };
            (shape, 0.0)
        }
    }
}

fn surface(kind: Kind, table: &Table<'_>, default_edge: f64) -> Surface {
    let words = [("triangles", false), ("analytic", true)];
    let analytic = table.choice("surface", &words).unwrap_or(false);
    if kind == Kind::Mesh {
        if analytic {
            table.note(
                "surface",
                "a mesh has no analytic surface; take \"triangles\"",
            );
        }
        return Surface::Triangles { edge: 0.0 };
    }
    let edge = table.quantity("edge", Dimension::LENGTH, Range::Positive);
    if analytic {
        if edge.is_some() {
            table.note(
                "edge",
                "an analytic surface has no edges; take surface = \"triangles\"",
            );
        }
        return Surface::Analytic;
    }
    Surface::Triangles {
        edge: edge.unwrap_or(default_edge),
    }
}

/// A unit vector, or `None` if absent; one that is a unit vector already keeps its bits.
fn direction(table: &Table<'_>, key: &'static str, example: &str) -> Option<DVec3> {
    let vector = table.vector(key, Dimension::NUMBER, Range::Any)?;
    let length = vector.length();
    if length < LEAST_NORMAL {
        table.note(
            key,
            format!("has no direction; it wants a vector such as {example}"),
        );
    }
    Some(if (length - 1.0).abs() <= 4.0 * f64::EPSILON {
        vector
    } else {
        vector / length
    })
}

fn point_or_zero(table: &Table<'_>, key: &'static str) -> DVec3 {
    table
        .vector(key, Dimension::LENGTH, Range::Any)
        .unwrap_or(DVec3::ZERO)
}

fn rotation(table: &Table<'_>) -> DVec3 {
    table
        .vector("rotation", Dimension::ANGLE, Range::Any)
        .unwrap_or(DVec3::ZERO)
}

fn mirror(table: &Table<'_>) -> Option<Axis> {
    table.choice("mirror", &Axis::ALL.map(|axis| (axis.name(), axis)))
}

fn scale(table: &Table<'_>) -> f64 {
    table
        .quantity("scale", Dimension::NUMBER, Range::Positive)
        .unwrap_or(1.0)
}

/// A mesh file that exists, with its path resolved against the folder of the scene.
fn file(table: &Table<'_>, key: &'static str, folder: Option<&Path>) -> PathBuf {
    let Some(text) = table.text(key) else {
        if !table.has(key) {
            table.note_missing(key, "mesh = \"shirt.obj\"");
        }
        return PathBuf::new();
    };
    // An override is typed on a command line, and yet relative to the scene: one rule for both.
    let path = folder.map_or_else(|| PathBuf::from(text), |folder| folder.join(text));
    if !crate::mesh::is_readable_format(&path) {
        table.note(
            key,
            format!("`{}` is no .obj, .ply or .stl file", Short(text)),
        );
    } else if path.is_dir() {
        table.note(key, format!("{} is a directory, not a file", path.shown()));
    } else if let Err(error) = open_regular(&path) {
        let is_absent = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
        let message = if is_absent {
            let hint = did_you_mean(nearest_file(&path).as_deref());
            format!("no file at {}{hint}", path.shown())
        } else {
            format!("cannot read {}: {error}", path.shown())
        };
        table.note(key, message);
    }
    path
}

/// The key `name`, or a default; no two objects have the same.
fn name(table: &Table<'_>, default: &str, surroundings: &Surroundings<'_>) -> String {
    let name = table.text("name").unwrap_or(default);
    let suits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let letter_first = name.starts_with(|c: char| c.is_ascii_alphabetic());
    if !letter_first || name.len() > LONGEST_NAME || !name.chars().all(suits) {
        let message = format!(
            "`{}` is no name; it wants 1 to {LONGEST_NAME} letters, digits, `-` or `_`, a letter \
             first",
            Short(name)
        );
        table.note("name", message);
    } else if !surroundings.names.borrow_mut().insert(name.to_owned()) {
        table.note(
            "name",
            format!("`{name}` is the name of another cloth or body"),
        );
    }
    name.to_owned()
}

/// Pins of one cloth.
const MOST_PINS: usize = 100_000;

/// Length of a capsule's segment in radii below which it is a sphere.
const LEAST_CAPSULE: f64 = 1e-6;

/// Length of a vector that still has a direction.
const LEAST_NORMAL: f64 = 1e-9;
