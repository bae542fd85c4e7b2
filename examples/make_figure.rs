//! Writes a figure with a skin and bones that move it, and a dress for it, as binary glTF.
//!
//! `cargo run --example make_figure FOLDER` writes `figure.glb` and `dress.glb`, as they are in
//! `scenes/gallery`. The figure is made of closed parts that overlap: trunk, head, arms and legs.
//! It has y upwards, stands on y = 0 and looks along z. Sines are those of `libm`, so the files
//! have the same bits wherever they are made.

use std::error::Error;
use std::f64::consts::TAU;
use std::path::Path;

use glam::DVec3;
use serde_json::{Value, json};

/// The joints: their names, the joints above them, and their places at rest in m.
const JOINTS: [(&str, Option<usize>, [f64; 3]); 8] = [
    ("hips", None, [0.0, 0.95, 0.0]),
    ("chest", Some(0), [0.0, 1.10, 0.0]),
    ("head", Some(1), [0.0, 1.50, 0.0]),
    ("left arm", Some(1), [0.17, 1.37, 0.0]),
    ("left forearm", Some(3), [0.37, 1.20, 0.0]),
    ("right arm", Some(1), [-0.17, 1.37, 0.0]),
    ("right forearm", Some(5), [-0.37, 1.20, 0.0]),
    ("legs", None, [0.0, 0.0, 0.0]),
];

/// Heights of the trunk, with half of its width and depth there, in m.
const TRUNK: [[f64; 3]; 15] = [
    [0.80, 0.060, 0.050],
    [0.82, 0.120, 0.090],
    [0.86, 0.160, 0.115],
    [0.92, 0.175, 0.125],
    [1.00, 0.155, 0.112],
    [1.08, 0.130, 0.098],
    [1.16, 0.140, 0.105],
    [1.24, 0.155, 0.112],
    [1.32, 0.160, 0.105],
    [1.38, 0.155, 0.085],
    [1.42, 0.110, 0.065],
    [1.44, 0.065, 0.055],
    [1.48, 0.048, 0.050],
    [1.52, 0.045, 0.046],
    [1.55, 0.025, 0.025],
];

/// The height of the dress's upper border, of the hips from which it hangs freely, and of its hem.
const DRESS: [f64; 3] = [1.24, 0.92, 0.55];
/// By how much the dress is wider than the trunk, in m.
const EASE: f64 = 0.009;
/// Half of the width and of the depth of the hem.
const HEM: [f64; 2] = [0.30, 0.26];
/// Rows of vertices of the dress, and vertices of a row.
const DRESS_VERTICES: [usize; 2] = [37, 60];

/// A ring of vertices: its middle, and the ends of its two half axes from there.
struct Ring {
    middle: DVec3,
    axes: [DVec3; 2],
}

impl Ring {
    fn point(&self, index: usize, around: usize) -> DVec3 {
        let (sine, cosine) = libm::sincos(TAU * index as f64 / around as f64);
        self.middle + self.axes[0] * cosine + self.axes[1] * sine
    }
}

/// Up to two joints with their weights.
type Bound = [(usize, f64); 2];

#[derive(Default)]
struct Mesh {
    points: Vec<DVec3>,
    bound: Vec<Bound>,
    faces: Vec<[usize; 3]>,
}

impl Mesh {
    /// Adds a tube through rings, whose axes and way are right-handed, between two ends.
    fn tube(
        &mut self,
        rings: &[Ring],
        ends: [DVec3; 2],
        around: usize,
        bound: impl Fn(DVec3) -> Bound,
    ) {
        let first = self.points.len();
        let mut add = |point: DVec3, of: DVec3| {
            self.points.push(point);
            self.bound.push(bound(of));
        };
        for ring in rings {
            (0..around).for_each(|k| add(ring.point(k, around), ring.middle));
        }
        ends.iter().for_each(|&end| add(end, end));
        let at = |row: usize, k: usize| first + row * around + k % around;
        let bottom = first + rings.len() * around;
        for k in 0..around {
            for row in 0..rings.len() - 1 {
                let [a, b, c, d] = [
                    at(row, k),
                    at(row, k + 1),
                    at(row + 1, k + 1),
                    at(row + 1, k),
                ];
                self.faces.extend([[a, b, c], [a, c, d]]);
            }
            self.faces.push([bottom, at(0, k + 1), at(0, k)]);
            let last = rings.len() - 1;
            self.faces.push([bottom + 1, at(last, k), at(last, k + 1)]);
        }
    }

    /// Adds a tube of changing thickness along a line, with round ends.
    fn limb(&mut self, ends: [DVec3; 2], radii: [f64; 2], bound: impl Fn(DVec3) -> Bound) {
        let along = (ends[1] - ends[0]).normalize();
        let side = along.cross(DVec3::Z).normalize();
        let ring = |middle: DVec3, radius: f64| Ring {
            middle,
            axes: [side * radius, along.cross(side) * radius],
        };
        let mut rings = Vec::new();
        let cap = [0.92, 0.7, 0.38];
        let rim = |height: f64| libm::sqrt(1.0 - height * height);
        for height in cap {
            rings.push(ring(
                ends[0] - along * (radii[0] * height),
                radii[0] * rim(height),
            ));
        }
        for row in 0..=8 {
            let share = f64::from(row) / 8.0;
            let radius = radii[0] + (radii[1] - radii[0]) * share;
            rings.push(ring(ends[0].lerp(ends[1], share), radius));
        }
        for height in cap.into_iter().rev() {
            rings.push(ring(
                ends[1] + along * (radii[1] * height),
                radii[1] * rim(height),
            ));
        }
        let tips = [ends[0] - along * radii[0], ends[1] + along * radii[1]];
        self.tube(&rings, tips, 12, bound);
    }
}

/// Half of the trunk's width and depth at a height: a curve through those that are given.
fn trunk_at(height: f64) -> [f64; 2] {
    let last = TRUNK.len() - 1;
    let above = TRUNK.iter().position(|row| row[0] > height);
    let k = above.unwrap_or(last).clamp(1, last);
    let row = |k: usize| TRUNK[k.min(last)];
    let (before, from, to, after) = (row(k.saturating_sub(2)), row(k - 1), row(k), row(k + 1));
    let t = ((height - from[0]) / (to[0] - from[0])).clamp(0.0, 1.0);
    [1, 2].map(|axis| {
        // Catmull and Rom's, for heights that are not evenly spaced.
        let length = to[0] - from[0];
        let slope = |a: [f64; 3], b: [f64; 3]| (b[axis] - a[axis]) / (b[0] - a[0]) * length;
        let (leaving, arriving) = (slope(before, to), slope(from, after));
        let (t2, t3) = (t * t, t * t * t);
        from[axis] * (2.0 * t3 - 3.0 * t2 + 1.0)
            + leaving * (t3 - 2.0 * t2 + t)
            + to[axis] * (3.0 * t2 - 2.0 * t3)
            + arriving * (t3 - t2)
    })
}

/// A horizontal ring.
fn level(height: f64, [width, depth]: [f64; 2]) -> Ring {
    Ring {
        middle: DVec3::new(0.0, height, 0.0),
        axes: [DVec3::X * width, -DVec3::Z * depth],
    }
}

/// Weights of two joints, from the first one to the second between two values.
fn from_to(joints: [usize; 2], value: f64, between: [f64; 2]) -> Bound {
    let share = ((value - between[0]) / (between[1] - between[0])).clamp(0.0, 1.0);
    let share = share * share * (3.0 - 2.0 * share);
    [(joints[0], 1.0 - share), (joints[1], share)]
}

fn figure() -> Mesh {
    let mut mesh = Mesh::default();
    let mut rings = Vec::new();
    for [from, to] in TRUNK.array_windows() {
        for height in [from[0], 0.5 * (from[0] + to[0])] {
            rings.push(level(height, trunk_at(height)));
        }
    }
    let [top, width, depth] = TRUNK[TRUNK.len() - 1];
    rings.push(level(top, [width, depth]));
    let ends = [0.79, 1.56].map(|height| DVec3::Y * height);
    mesh.tube(&rings, ends, 26, |p| from_to([0, 1], p.y, [0.98, 1.20]));
    let head: Vec<Ring> = (1..10)
        .map(|row| {
            let (sine, cosine) = libm::sincos(TAU / 20.0 * f64::from(row));
            level(1.64 - 0.115 * cosine, [0.080 * sine, 0.095 * sine])
        })
        .collect();
    let ends = [1.64 - 0.115, 1.64 + 0.115].map(|height| DVec3::Y * height);
    mesh.tube(&head, ends, 16, |_| [(2, 1.0), (2, 0.0)]);
    for (side, joints) in [(1.0, [3, 4]), (-1.0, [5, 6])] {
        let [shoulder, elbow] = joints.map(|joint| DVec3::from(JOINTS[joint].2));
        let hand = shoulder + (elbow - shoulder) * 2.0;
        mesh.limb([shoulder, hand], [0.045, 0.03], |p| {
            from_to(joints, side * (p.x - elbow.x), [-0.04, 0.04])
        });
        let (hip, foot) = (
            DVec3::new(0.085 * side, 0.84, 0.0),
            DVec3::new(0.095 * side, 0.05, 0.0),
        );
        mesh.limb([hip, foot], [0.075, 0.04], |_| [(7, 1.0), (7, 0.0)]);
    }
    mesh
}

fn dress() -> Mesh {
    let mut mesh = Mesh::default();
    let [rows, around] = DRESS_VERTICES;
    let [top, hips, hem] = DRESS;
    for row in 0..rows {
        let height = top + (hem - top) * row as f64 / (rows - 1) as f64;
        let share = ((hips - height) / (hips - hem)).max(0.0);
        let of_trunk = trunk_at(height.max(hips)).map(|half| half + EASE);
        let half = [0, 1].map(|k| of_trunk[k] + (HEM[k] - of_trunk[k]) * share);
        let ring = level(height, half);
        (0..around).for_each(|k| mesh.points.push(ring.point(k, around)));
    }
    let at = |row: usize, k: usize| row * around + k % around;
    for row in 0..rows - 1 {
        for k in 0..around {
            let [a, b, c, d] = [
                at(row, k),
                at(row + 1, k),
                at(row + 1, k + 1),
                at(row, k + 1),
            ];
            mesh.faces.extend(if (row + k) % 2 == 0 {
                [[a, b, c], [a, c, d]]
            } else {
                [[a, b, d], [b, c, d]]
            });
        }
    }
    mesh
}

/// The numbers of a file, as accessors.
#[derive(Default)]
struct Numbers {
    binary: Vec<u8>,
    views: Vec<Value>,
    accessors: Vec<Value>,
}

impl Numbers {
    /// Adds elements of a kind, by their bytes, with further keys of their accessor.
    fn add(
        &mut self,
        kind: &str,
        component: u32,
        count: usize,
        bytes: &[u8],
        more: Value,
    ) -> usize {
        self.views
            .push(json!({"buffer": 0, "byteOffset": self.binary.len(), "byteLength": bytes.len()}));
        let mut accessor = json!({"bufferView": self.views.len() - 1,
            "componentType": component, "count": count, "type": kind});
        if let (Some(accessor), Value::Object(more)) = (accessor.as_object_mut(), more) {
            accessor.extend(more);
        }
        self.accessors.push(accessor);
        self.binary.extend(bytes);
        self.binary.resize(self.binary.len().next_multiple_of(4), 0);
        self.accessors.len() - 1
    }

    /// Adds numbers of 32 bits; bounds are needed for positions and times.
    fn floats<const N: usize>(&mut self, kind: &str, elements: &[[f64; N]]) -> usize {
        let rounded: Vec<[f32; N]> = elements.iter().map(|e| e.map(|x| x as f32)).collect();
        let bytes: Vec<u8> = (rounded.as_flattened().iter())
            .flat_map(|x| x.to_le_bytes())
            .collect();
        let bound = |better: fn(f32, f32) -> f32| {
            let mut bound = rounded[0];
            for element in &rounded {
                (0..N).for_each(|k| bound[k] = better(bound[k], element[k]));
            }
            bound.to_vec()
        };
        let bounds = json!({"min": bound(f32::min), "max": bound(f32::max)});
        self.add(kind, FLOAT, elements.len(), &bytes, bounds)
    }

    fn mesh(&mut self, mesh: &Mesh) -> Value {
        let points: Vec<[f64; 3]> = mesh.points.iter().map(|p| p.to_array()).collect();
        let positions = self.floats("VEC3", &points);
        let corners = mesh.faces.as_flattened();
        let bytes: Vec<u8> = (corners.iter())
            .flat_map(|&v| (v as u16).to_le_bytes())
            .collect();
        let indices = self.add("SCALAR", SHORT, corners.len(), &bytes, json!({}));
        json!({"attributes": {"POSITION": positions}, "indices": indices})
    }

    fn write(self, path: &Path, mut json: Value) -> Result<(), Box<dyn Error>> {
        json["asset"] = json!({"version": "2.0", "generator": "examples/make_figure.rs"});
        json["buffers"] = json!([{"byteLength": self.binary.len()}]);
        json["bufferViews"] = self.views.into();
        json["accessors"] = self.accessors.into();
        let mut text = json.to_string().into_bytes();
        text.resize(text.len().next_multiple_of(4), b' ');
        let mut bytes = b"glTF".to_vec();
        let length = 28 + text.len() + self.binary.len();
        for number in [2, length, text.len()] {
            bytes.extend(u32::try_from(number)?.to_le_bytes());
        }
        bytes.extend(b"JSON");
        bytes.extend(text);
        bytes.extend(u32::try_from(self.binary.len())?.to_le_bytes());
        bytes.extend(b"BIN\0");
        bytes.extend(self.binary);
        Ok(std::fs::write(path, bytes)?)
    }
}

/// The movement of a joint: angles in degrees about an axis, at times in s. Between them it speeds
/// up and slows down.
type Moved = (usize, DVec3, &'static [(f64, f64)]);

const MOVED: [Moved; 7] = [
    (
        0,
        DVec3::Y,
        &[(0.0, 0.0), (0.55, 30.0), (1.1, -30.0), (1.6, 0.0)],
    ),
    (
        1,
        DVec3::Y,
        &[(0.0, 0.0), (0.5, 20.0), (1.05, -20.0), (1.6, 0.0)],
    ),
    (
        2,
        DVec3::Y,
        &[(0.0, 0.0), (0.6, -25.0), (1.2, 25.0), (1.6, 0.0)],
    ),
    (3, DVec3::Z, &[(0.0, 0.0), (0.8, 75.0), (1.6, 20.0)]),
    (4, DVec3::Z, &[(0.0, 0.0), (0.8, 40.0), (1.6, 10.0)]),
    (5, DVec3::Z, &[(0.0, 0.0), (0.8, -75.0), (1.6, -20.0)]),
    (6, DVec3::Z, &[(0.0, 0.0), (0.8, -40.0), (1.6, -10.0)]),
];

fn write_figure(path: &Path) -> Result<(), Box<dyn Error>> {
    let mesh = figure();
    let mut numbers = Numbers::default();
    let mut primitive = numbers.mesh(&mesh);
    let joints: Vec<u8> = (mesh.bound.iter())
        .flat_map(|[a, b]| [a.0 as u8, b.0 as u8, 0, 0])
        .collect();
    let weights: Vec<u8> = (mesh.bound.iter())
        .flat_map(|[_, b]| {
            let second = (255.0 * b.1).round() as u8;
            [255 - second, second, 0, 0]
        })
        .collect();
    let count = mesh.points.len();
    let joints = numbers.add("VEC4", BYTE, count, &joints, json!({}));
    let weights = numbers.add("VEC4", BYTE, count, &weights, json!({"normalized": true}));
    primitive["attributes"]["JOINTS_0"] = json!(joints);
    primitive["attributes"]["WEIGHTS_0"] = json!(weights);
    let inverse_bind = JOINTS.map(|(_, _, [x, y, z])| {
        [
            1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, -x, -y, -z, 1.0,
        ]
    });
    let inverse_bind = numbers.floats("MAT4", &inverse_bind);
    let (mut channels, mut samplers) = (Vec::new(), Vec::new());
    for (joint, axis, angles) in MOVED {
        let times: Vec<[f64; 1]> = angles.iter().map(|&(time, _)| [time]).collect();
        let values: Vec<[f64; 4]> = (angles.iter())
            .flat_map(|(_, degrees)| {
                let (sine, cosine) = libm::sincos(0.5 * degrees.to_radians());
                let [x, y, z] = (axis * sine).to_array();
                [[0.0; 4], [x, y, z, cosine], [0.0; 4]]
            })
            .collect();
        channels.push(json!({"sampler": samplers.len(),
            "target": {"node": joint + 1, "path": "rotation"}}));
        samplers.push(json!({"input": numbers.floats("SCALAR", &times),
            "output": numbers.floats("VEC4", &values), "interpolation": "CUBICSPLINE"}));
    }
    let nodes = JOINTS.iter().enumerate().map(|(joint, (name, above, at))| {
        let of = above.map_or(DVec3::ZERO, |above| DVec3::from(JOINTS[above].2));
        let children: Vec<usize> = (0..JOINTS.len())
            .filter(|&other| JOINTS[other].1 == Some(joint))
            .map(|other| other + 1)
            .collect();
        let moved = (DVec3::from(*at) - of).to_array().map(|x| x as f32);
        let mut node = json!({"name": name, "translation": moved});
        if !children.is_empty() {
            node["children"] = json!(children);
        }
        node
    });
    let mut all = vec![json!({"name": "figure", "mesh": 0, "skin": 0})];
    all.extend(nodes);
    let joints: Vec<usize> = (1..=JOINTS.len()).collect();
    let json = json!({
        "scene": 0, "scenes": [{"nodes": [0, 1, 8]}], "nodes": all,
        "meshes": [{"name": "figure", "primitives": [primitive]}],
        "skins": [{"joints": joints, "inverseBindMatrices": inverse_bind}],
        "animations": [{"name": "turn", "channels": channels, "samplers": samplers}],
    });
    numbers.write(path, json)
}

fn write_dress(path: &Path) -> Result<(), Box<dyn Error>> {
    let mut numbers = Numbers::default();
    let primitive = numbers.mesh(&dress());
    let json = json!({
        "scene": 0, "scenes": [{"nodes": [0]}], "nodes": [{"name": "dress", "mesh": 0}],
        "meshes": [{"name": "dress", "primitives": [primitive]}],
    });
    numbers.write(path, json)
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("which folder?")?;
    write_figure(&Path::new(&folder).join("figure.glb"))?;
    write_dress(&Path::new(&folder).join("dress.glb"))
}

/// The types of numbers in the format.
const FLOAT: u32 = 5126;
const SHORT: u32 = 5123;
const BYTE: u32 = 5121;
