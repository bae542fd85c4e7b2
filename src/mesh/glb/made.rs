//! Figures for tests: an arm of two bones as a binary glTF file, made by code.

use serde_json::{Value, json};

use crate::mesh::TriMesh;

/// The numbers of a file.
#[derive(Default)]
pub(crate) struct Numbers {
    binary: Vec<u8>,
    views: Vec<Value>,
    accessors: Vec<Value>,
}

impl Numbers {
    /// Adds numbers of 32 bits, and gives the accessor of them.
    pub(crate) fn floats(&mut self, kind: &str, numbers: &[f32]) -> usize {
        let bytes = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.add(kind, 5126, numbers.len(), bytes)
    }

    /// Adds whole numbers of 16 bits.
    pub(crate) fn shorts(&mut self, kind: &str, numbers: &[u16]) -> usize {
        let bytes = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.add(kind, 5123, numbers.len(), bytes)
    }

    fn add(&mut self, kind: &str, component: u32, numbers: usize, bytes: Vec<u8>) -> usize {
        let per_element = match kind {
            "SCALAR" => 1,
            "VEC3" => 3,
            "VEC4" => 4,
            _ => 16,
        };
        self.views
            .push(json!({"buffer": 0, "byteOffset": self.binary.len(), "byteLength": bytes.len()}));
        self.accessors.push(json!({
            "bufferView": self.views.len() - 1, "componentType": component,
            "count": numbers / per_element, "type": kind,
            "min": vec![-1e3; per_element], "max": vec![1e3; per_element],
        }));
        self.binary.extend(bytes);
        self.binary.resize(self.binary.len().next_multiple_of(4), 0);
        self.accessors.len() - 1
    }

    /// The file of these numbers and this JSON, which lacks them.
    pub(crate) fn file(mut self, mut json: Value) -> Vec<u8> {
        json["asset"] = json!({"version": "2.0"});
        json["buffers"] = json!([{"byteLength": self.binary.len()}]);
        json["bufferViews"] = self.views.into();
        let changed = json.get("accessors").cloned().unwrap_or_default();
        json["accessors"] = self.accessors.into();
        // A test may say something else of an accessor: {"3": {"normalized": true}}.
        for (index, keys) in changed.as_object().into_iter().flatten() {
            let accessor = &mut json["accessors"][index.parse::<usize>().unwrap()];
            for (key, value) in keys.as_object().unwrap() {
                accessor[key] = value.clone();
            }
        }
        let mut json = json.to_string().into_bytes();
        json.resize(json.len().next_multiple_of(4), b' ');
        let length = 28 + json.len() + self.binary.len();
        let mut bytes = b"glTF".to_vec();
        for number in [2, length, json.len()] {
            bytes.extend((number as u32).to_le_bytes());
        }
        bytes.extend(b"JSON");
        bytes.extend(json);
        bytes.extend((self.binary.len() as u32).to_le_bytes());
        bytes.extend(b"BIN\0");
        bytes.append(&mut self.binary);
        bytes
    }
}

/// Keyframes of one node.
#[derive(Clone)]
pub(crate) struct Moved {
    pub(crate) node: usize,
    pub(crate) path: &'static str,
    pub(crate) between: &'static str,
    pub(crate) times: Vec<f32>,
    pub(crate) values: Vec<f32>,
}

/// An arm along x: the node `shoulder` (1) is at the origin, and `elbow` (2) below it at 1, 0, 0.
/// The node `figure` (0) has the mesh.
#[derive(Clone)]
pub(crate) struct Arm {
    pub(crate) positions: Vec<[f32; 3]>,
    pub(crate) corners: Vec<u16>,
    pub(crate) joints: Vec<[u16; 4]>,
    pub(crate) weights: Vec<[f32; 4]>,
    pub(crate) inverse_bind: Vec<[f32; 16]>,
    pub(crate) moved: Vec<Moved>,
}

impl Default for Arm {
    /// Four vertices: the shoulder's, the elbow's, one between them, and the elbow's again.
    fn default() -> Self {
        Self {
            positions: vec![
                [0.5, 0.0, 0.0],
                [2.0, 0.0, 0.0],
                [1.25, 0.5, 0.0],
                [1.5, 0.0, 1.0],
            ],
            corners: vec![0, 1, 2, 0, 2, 3, 0, 3, 1, 1, 3, 2],
            joints: vec![[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0]],
            weights: vec![
                [1.0, 0.0, 0.0, 0.0],
                [1.0, 0.0, 0.0, 0.0],
                [0.25, 0.75, 0.0, 0.0],
                [1.0, 0.0, 0.0, 0.0],
            ],
            inverse_bind: vec![moved_by([0.0; 3]), moved_by([-1.0, 0.0, 0.0])],
            moved: vec![Moved {
                node: 2,
                path: "rotation",
                between: "LINEAR",
                times: vec![0.0, 1.0],
                values: [about_z(0.0), about_z(90.0)].concat(),
            }],
        }
    }
}

impl Arm {
    /// An arm whose skin is a mesh, with the weights of the elbow at each of its vertices.
    pub(crate) fn of(mesh: &TriMesh, elbow: impl Fn(f64) -> f64) -> Self {
        let of_elbow: Vec<f32> = (mesh.positions.iter()).map(|p| elbow(p.x) as f32).collect();
        Self {
            positions: (mesh.positions.iter())
                .map(|p| p.to_array().map(|x| x as f32))
                .collect(),
            corners: (mesh.triangles.as_flattened().iter())
                .map(|&v| v as u16)
                .collect(),
            joints: vec![[0, 1, 0, 0]; of_elbow.len()],
            weights: of_elbow.iter().map(|w| [1.0 - w, *w, 0.0, 0.0]).collect(),
            ..Self::default()
        }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.changed(|_| {})
    }

    /// The file with its JSON changed; accessors are 0 to 3 for positions, corners, joints and
    /// weights, 4 for matrices, then two for each movement.
    pub(crate) fn changed(&self, change: impl FnOnce(&mut Value)) -> Vec<u8> {
        let mut numbers = Numbers::default();
        numbers.floats("VEC3", self.positions.as_flattened());
        numbers.shorts("SCALAR", &self.corners);
        numbers.shorts("VEC4", self.joints.as_flattened());
        numbers.floats("VEC4", self.weights.as_flattened());
        numbers.floats("MAT4", self.inverse_bind.as_flattened());
        let (mut channels, mut samplers) = (Vec::new(), Vec::new());
        for moved in &self.moved {
            let input = numbers.floats("SCALAR", &moved.times);
            let kind = match moved.path {
                "rotation" => "VEC4",
                "weights" => "SCALAR",
                _ => "VEC3",
            };
            let output = numbers.floats(kind, &moved.values);
            channels.push(json!({
                "sampler": samplers.len(), "target": {"node": moved.node, "path": moved.path}
            }));
            samplers
                .push(json!({"input": input, "output": output, "interpolation": moved.between}));
        }
        let mut json = json!({
            "scene": 0, "scenes": [{"nodes": [0, 1]}],
            "nodes": [
                {"name": "figure", "mesh": 0, "skin": 0},
                {"name": "shoulder", "children": [2]},
                {"name": "elbow", "translation": [1, 0, 0]},
            ],
            "meshes": [{"name": "skin", "primitives": [
                {"attributes": {"POSITION": 0, "JOINTS_0": 2, "WEIGHTS_0": 3}, "indices": 1}
            ]}],
            "skins": [{"name": "bones", "joints": [1, 2], "inverseBindMatrices": 4}],
            "animations": [{"name": "lift", "channels": channels, "samplers": samplers}],
        });
        change(&mut json);
        numbers.file(json)
    }
}

/// A matrix that moves, by columns.
pub(crate) fn moved_by([x, y, z]: [f32; 3]) -> [f32; 16] {
    [
        1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, x, y, z, 1.0,
    ]
}

/// The quaternion of an angle in degrees about z.
pub(crate) fn about_z(degrees: f64) -> [f32; 4] {
    let (sine, cosine) = (0.5 * degrees.to_radians()).sin_cos();
    [0.0, 0.0, sine as f32, cosine as f32]
}
