//! Figures that move: positions against closed forms, and files that are refused.

use std::path::Path;

use glam::{DAffine3, DQuat, DVec3};
use serde_json::{Value, json};

use super::made::{Arm, Moved, Numbers, about_z, moved_by};
use super::*;
use crate::heap_bytes::HeapBytes;

fn nothing(_: &Path, _: u64) -> std::io::Result<Vec<u8>> {
    Err(std::io::ErrorKind::NotFound.into())
}

fn read(bytes: &[u8]) -> (FileMesh, AnimatedFigure) {
    read_animated(bytes, false, None, &nothing).unwrap()
}

fn near(found: &[DVec3], known: &[DVec3], most: f64) {
    assert_eq!(found.len(), known.len());
    for (found, known) in found.iter().zip(known) {
        assert!(found.distance(*known) < most, "{found} {known}");
    }
}

/// The arm's vertices after its elbow was turned by an angle in rad about z.
fn bent(angle: f64) -> [DVec3; 4] {
    let elbow = DVec3::X;
    let turned = |p: DVec3| {
        let (r, (sine, cosine)) = (p - elbow, angle.sin_cos());
        elbow + DVec3::new(cosine * r.x - sine * r.y, sine * r.x + cosine * r.y, r.z)
    };
    let between = DVec3::new(1.25, 0.5, 0.0);
    [
        DVec3::new(0.5, 0.0, 0.0),
        turned(DVec3::new(2.0, 0.0, 0.0)),
        between * 0.25 + turned(between) * 0.75,
        turned(DVec3::new(1.5, 0.0, 1.0)),
    ]
}

#[test]
fn the_elbow_turns_at_an_even_pace_and_weights_blend() {
    let (file, figure) = read(&Arm::default().bytes());
    near(&file.mesh.positions, &bent(0.0), 1e-6);
    assert_eq!(figure.end(), 1.0);
    // Three nodes, two joints with matrices, four positions with six influences, two keyframes.
    let most = 3 * 176 + 2 * 200 + 4 * 60 + 6 * 16 + 2 * 40 + 500;
    let held = figure.heap_bytes();
    assert!((500..2 * most).contains(&held), "{held}");
    for time in [-1.0_f64, 0.0, 0.2, 0.5, 0.77, 1.0, 3.0] {
        let angle = time.clamp(0.0, 1.0) * std::f64::consts::FRAC_PI_2;
        // Keyframes have 32 bits.
        near(&figure.at(time), &bent(angle), 1e-6);
    }
}

#[test]
fn a_step_holds_until_the_next_keyframe() {
    let mut arm = Arm::default();
    arm.moved[0].between = "STEP";
    arm.moved[0].times = vec![0.25, 0.5, 1.0];
    arm.moved[0].values = [about_z(10.0), about_z(50.0), about_z(-30.0)].concat();
    let (_, figure) = read(&arm.bytes());
    for (time, degrees) in [
        (0.0, 10.0),
        (0.25, 10.0),
        (0.4999, 10.0),
        (0.5, 50.0),
        (0.9999, 50.0),
        (1.0, -30.0),
        (7.0, -30.0),
    ] {
        near(&figure.at(time), &bent(f64::to_radians(degrees)), 1e-6);
    }
}

/// Against Hermite's cubic in another form: Bézier's, by De Casteljau.
#[test]
fn a_cubic_has_the_values_and_tangents_of_its_keyframes() {
    let (from, leaving) = (DVec3::new(1.0, 0.0, 0.0), DVec3::new(0.0, 3.0, -1.0));
    let (arriving, to) = (DVec3::new(-2.0, 0.5, 4.0), DVec3::new(2.0, 1.0, 0.0));
    let arm = Arm {
        moved: vec![Moved {
            node: 2,
            path: "translation",
            between: "CUBICSPLINE",
            times: vec![0.5, 2.5],
            values: [DVec3::splat(9.0), from, leaving, arriving, to, DVec3::ONE]
                .iter()
                .flat_map(|v| v.to_array().map(|x| x as f32))
                .collect(),
        }],
        ..Arm::default()
    };
    let (_, figure) = read(&arm.bytes());
    let length = 2.0;
    for time in [0.0_f64, 0.5, 0.9, 1.5, 2.1, 2.5, 4.0] {
        let share = ((time - 0.5) / length).clamp(0.0, 1.0);
        let mut points = vec![
            from,
            from + leaving * length / 3.0,
            to - arriving * length / 3.0,
            to,
        ];
        while points.len() > 1 {
            let both = points.array_windows().map(|[a, b]| a.lerp(*b, share));
            points = both.collect();
        }
        let elbow = points[0];
        let start = bent(0.0);
        let known = [
            start[0],
            start[1] + elbow - DVec3::X,
            start[2] + (elbow - DVec3::X) * 0.75,
            start[3] + elbow - DVec3::X,
        ];
        near(&figure.at(time), &known, 1e-12);
    }
}

#[test]
fn a_cubic_of_rotations_is_a_rotation() {
    let mut arm = Arm::default();
    let zero = [0.0; 4];
    arm.moved[0].between = "CUBICSPLINE";
    arm.moved[0].values = [zero, about_z(0.0), zero, zero, about_z(90.0), zero].concat();
    let (_, figure) = read(&arm.bytes());
    // With tangents of zero it is halfway in the middle, and behind an even pace before.
    near(&figure.at(0.5), &bent(45_f64.to_radians()), 1e-6);
    let share = 0.25_f64 * 0.25 * (3.0 - 0.5);
    let between = DQuat::from_rotation_z(0.0) * (1.0 - share)
        + DQuat::from_rotation_z(std::f64::consts::FRAC_PI_2) * share;
    let angle = 2.0 * (between.z / between.w).atan();
    near(&figure.at(0.25), &bent(angle), 1e-6);
}

/// The shorter way is taken whatever the signs of quaternions, and small angles are exact.
#[test]
fn rotations_take_the_shorter_way() {
    for degrees in [1e-7, 1e-3, 20.0, 100.0, 170.0] {
        let mut arm = Arm::default();
        let turned = about_z(degrees);
        arm.moved[0].values = [about_z(0.0), turned.map(|x| -x)].concat();
        let (_, figure) = read(&arm.bytes());
        let whole = 2.0 * f64::from(turned[2]).atan2(f64::from(turned[3]));
        for share in [0.1, 0.5, 0.8] {
            near(&figure.at(share), &bent(whole * share), 1e-14);
        }
    }
}

/// A mirror above would turn triangles over; here there are turns and scales above the joints, at
/// the mesh's own node (which do not count), and in the tree between.
#[test]
fn joints_go_where_their_tree_has_them() {
    let arm = Arm {
        moved: vec![
            Moved {
                node: 2,
                path: "scale",
                between: "LINEAR",
                times: vec![0.0, 2.0],
                values: vec![1.0, 1.0, 1.0, 3.0, 1.0, 2.0],
            },
            Moved {
                node: 3,
                path: "rotation",
                between: "LINEAR",
                times: vec![0.0, 1.0],
                values: [about_z(0.0), about_z(60.0)].concat(),
            },
        ],
        ..Arm::default()
    };
    let bytes = arm.changed(|json| {
        json["scenes"][0]["nodes"] = json!([0, 3]);
        json["nodes"][0]["scale"] = json!([5, 5, 5]);
        json["nodes"][0]["translation"] = json!([9, 9, 9]);
        json["nodes"][1]["translation"] = json!([0, 0.5, 0]);
        json["nodes"].as_array_mut().unwrap().push(json!({
            "name": "hips", "children": [1], "scale": [2, 1, 0.5], "translation": [0, 0, 3],
        }));
    });
    let (_, figure) = read(&bytes);
    let arm = Arm::default();
    for time in [0.0_f64, 0.3, 1.0, 1.5] {
        let turned = DQuat::from_rotation_z(time.min(1.0) * 60_f64.to_radians());
        let above = DAffine3::from_translation(DVec3::new(0.0, 0.0, 3.0))
            * DAffine3::from_quat(turned)
            * DAffine3::from_scale(DVec3::new(2.0, 1.0, 0.5));
        let shoulder = above * DAffine3::from_translation(DVec3::new(0.0, 0.5, 0.0));
        let grown = DVec3::new(1.0 + time, 1.0, 1.0 + 0.5 * time);
        let elbow = shoulder
            * DAffine3::from_translation(DVec3::X)
            * DAffine3::from_scale(grown)
            * DAffine3::from_translation(-DVec3::X);
        let known: Vec<DVec3> = (arm.positions.iter().enumerate())
            .map(|(vertex, p)| {
                let p = DVec3::from(p.map(f64::from));
                let share = [0.0, 1.0, 0.75, 1.0][vertex];
                shoulder.transform_point3(p) * (1.0 - share) + elbow.transform_point3(p) * share
            })
            .collect();
        near(&figure.at(time), &known, 1e-6);
    }
}

/// A file with a skin and no `sequence` is where its nodes have it.
#[test]
fn a_mesh_with_a_skin_is_seen_through_it() {
    let bytes = Arm::default().changed(|json| {
        json["nodes"][0]["translation"] = json!([9, 9, 9]);
        json["nodes"][2]["rotation"] = json!(about_z(30.0));
        json.as_object_mut().unwrap().remove("animations");
    });
    let file = read_file(&bytes, &[], &nothing).unwrap();
    near(&file.mesh.positions, &bent(30_f64.to_radians()), 1e-6);
    assert_eq!(file.mesh.triangles[0], [0, 1, 2]);
    // Bones that mirror what they carry turn its triangles over.
    let mut mirrored = Arm {
        inverse_bind: vec![moved_by([0.0; 3]); 2],
        ..Arm::default()
    };
    mirrored.inverse_bind.iter_mut().for_each(|m| m[5] = -1.0);
    let file = read_file(&mirrored.bytes(), &[], &nothing).unwrap();
    assert_eq!(file.mesh.triangles[0], [0, 2, 1]);
}

/// The two sides of a seam are one vertex, also if one names its bones in another order and
/// weights are of another sum or kind.
#[test]
fn sides_of_a_seam_are_joined_and_weights_normalised() {
    let mut arm = Arm::default();
    arm.positions.push(arm.positions[2]);
    arm.joints.push([1, 0, 0, 0]);
    arm.weights.push([0.3, 0.1, 0.0, 0.0]);
    arm.corners[4] = 4;
    let (file, figure) = read(&arm.bytes());
    assert_eq!(file.joined.as_deref(), Some(&[0, 1, 2, 3, 2][..]));
    for time in [0.0, 0.4] {
        let angle = time * std::f64::consts::FRAC_PI_2;
        near(&figure.at(time), &bent(angle), 1e-6);
    }
    // A second set of joints takes a part of the weight.
    let mut numbers = arm.clone();
    numbers.weights[2] = [0.25, 0.25, 0.0, 0.0];
    numbers.weights[4] = [0.25, 0.25, 0.0, 0.0];
    let bytes = numbers.changed(|json| {
        let attributes = &mut json["meshes"][0]["primitives"][0]["attributes"];
        // Joint 1 once more, with the weights that WEIGHTS_0 has at each vertex.
        attributes["JOINTS_1"] = json!(2);
        attributes["WEIGHTS_1"] = json!(3);
    });
    let (_, figure) = read(&bytes);
    let half = DVec3::new(1.25, 0.5, 0.0);
    let turned = DVec3::X + DQuat::from_rotation_z(0.9) * (half - DVec3::X);
    let time = 0.9 / std::f64::consts::FRAC_PI_2;
    near(&figure.at(time)[2..3], &[(half + turned) / 2.0], 1e-6);
}

/// Weights and rotations may be whole numbers that stand for shares of 1.
#[test]
fn numbers_may_be_packed() {
    let mut numbers = Numbers::default();
    let position = numbers.floats("VEC3", &[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
    let joints = numbers.shorts("VEC4", &[0; 12]);
    let weights = numbers.shorts("VEC4", &[65535, 0, 0, 0].repeat(3));
    let input = numbers.floats("SCALAR", &[0.0, 1.0]);
    // Sixteen bits with a sign.
    let half = (32767.0 * std::f64::consts::FRAC_1_SQRT_2).round() as u16;
    let output = numbers.shorts("VEC4", &[0, 0, 0, 32767, 0, 0, half, half]);
    let mut json = json!({
        "scene": 0, "scenes": [{"nodes": [0, 1]}],
        "nodes": [{"mesh": 0, "skin": 0}, {}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": position, "JOINTS_0": joints, "WEIGHTS_0": weights}}]}],
        "skins": [{"joints": [1]}],
        "animations": [{"channels": [{"sampler": 0, "target": {"node": 1, "path": "rotation"}}],
            "samplers": [{"input": input, "output": output}]}],
    });
    json["accessors"] = json!({
        weights.to_string(): {"normalized": true},
        output.to_string(): {"normalized": true, "componentType": 5122},
    });
    let (_, figure) = read(&numbers.file(json));
    let turned = DQuat::from_rotation_z(std::f64::consts::FRAC_PI_4);
    near(
        &figure.at(0.5),
        &[DVec3::ZERO, turned * DVec3::X, turned * DVec3::Y],
        1e-4,
    );
}

/// A file of two triangles without skins, each on a node of its own.
fn two_nodes(apart: f32, moved: &[usize]) -> Vec<u8> {
    let mut numbers = Numbers::default();
    let position = numbers.floats("VEC3", &[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
    let input = numbers.floats("SCALAR", &[0.0, 2.0]);
    let output = numbers.floats("VEC3", &[0.0, 0.0, 0.0, 0.0, 0.0, 4.0]);
    let channels = moved
        .iter()
        .map(|node| json!({"sampler": 0, "target": {"node": node, "path": "translation"}}));
    let channels: Vec<Value> = channels.collect();
    let json = json!({
        "scene": 0, "scenes": [{"nodes": [0]}],
        "nodes": [{"children": [1, 2]}, {"mesh": 0}, {"mesh": 0, "translation": [apart, 0, 0]}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": position}}]}],
        "animations": [{"channels": channels, "samplers": [{"input": input, "output": output}]}],
    });
    numbers.file(json)
}

#[test]
fn meshes_without_skins_move_with_their_nodes() {
    let (_, figure) = read(&two_nodes(5.0, &[1]));
    let at = figure.at(1.0);
    assert_eq!((at[0].z, at[5].z), (2.0, 0.0));
    // A node above carries both; they share a vertex, which stays one.
    let (file, figure) = read(&two_nodes(1.0, &[0]));
    assert_eq!(file.mesh.positions.len(), 5);
    assert!(figure.at(0.5).iter().all(|p| p.z == 1.0));
    let told = read_animated(&two_nodes(1.0, &[1]), false, None, &nothing).unwrap_err();
    assert!(
        told.message.contains("moves the nodes apart"),
        "{}",
        told.message
    );
}

/// The message about a file.
fn told(bytes: &[u8]) -> String {
    told_of(bytes, None)
}

fn told_of(bytes: &[u8], animation: Option<&str>) -> String {
    let problem = read_animated(bytes, false, animation, &nothing).unwrap_err();
    format!("{:?} {}", problem.place, problem.message)
}

fn has(told: &str, parts: &[&str]) {
    for part in parts {
        assert!(told.contains(part), "{part} in {told}");
    }
}

#[test]
fn skins_that_are_wrong_are_named() {
    let changed = |change: &dyn Fn(&mut Value)| told(&Arm::default().changed(change));
    let altered = |alter: &dyn Fn(&mut Arm)| {
        let mut arm = Arm::default();
        alter(&mut arm);
        told(&arm.bytes())
    };
    for (found, parts) in [
        (
            changed(&|json| json["skins"][0]["joints"] = json!([1, 7])),
            &["skin `bones`", "node 7", "3 nodes", "export"][..],
        ),
        (
            changed(&|json| json["scenes"][0]["nodes"] = json!([0])),
            &["skin `bones`", "node `shoulder`", "not in the scene"],
        ),
        (
            changed(&|json| json["skins"][0]["joints"] = json!([])),
            &["skin `bones`", "no joints"],
        ),
        (
            altered(&|arm| arm.inverse_bind.truncate(1)),
            &["1 inverse bind matrices for 2 joints"],
        ),
        (
            altered(&|arm| arm.inverse_bind[1][7] = 0.5),
            &["inverse bind matrix 1", "last row"],
        ),
        (
            altered(&|arm| arm.inverse_bind[1][12] = f32::NAN),
            &["inverse bind matrix 1 is NaN"],
        ),
        (
            altered(&|arm| arm.joints[2][1] = 2),
            &["vertex 2", "joint 2", "its skin has 2"],
        ),
        (
            altered(&|arm| arm.weights[3] = [0.0; 4]),
            &["weights of vertex 3", "all 0", "bone"],
        ),
        (
            altered(&|arm| arm.weights[1][0] = f32::NAN),
            &["weights of a vertex 1 is NaN"],
        ),
        (
            altered(&|arm| arm.weights[2][0] = -0.25),
            &["vertex 2", "weight of -0.25"],
        ),
        (
            altered(&|arm| arm.weights.truncate(3)),
            &["4 vertices", "3 of WEIGHTS_0"],
        ),
        (
            changed(&|json| {
                let attributes = &mut json["meshes"][0]["primitives"][0]["attributes"];
                attributes.as_object_mut().unwrap().remove("WEIGHTS_0");
            }),
            &["JOINTS_0 and no WEIGHTS_0"],
        ),
        (
            changed(&|json| {
                json["meshes"][0]["primitives"][0]["attributes"] = json!({"POSITION": 0});
            }),
            &["no JOINTS_0 and WEIGHTS_0"],
        ),
        (
            changed(&|json| {
                json["meshes"][0]["primitives"][0]["attributes"]["JOINTS_0"] = json!(3);
            }),
            &["JOINTS_0", "no whole numbers"],
        ),
    ] {
        has(&found, parts);
    }
    // A joint that is not there and has no weight does nothing.
    let mut arm = Arm::default();
    arm.joints[0][3] = 999;
    read(&arm.bytes());
}

#[test]
fn animations_that_are_wrong_are_named() {
    let changed = |change: &dyn Fn(&mut Value)| told(&Arm::default().changed(change));
    let altered = |alter: &dyn Fn(&mut Moved)| {
        let mut arm = Arm::default();
        alter(&mut arm.moved[0]);
        told(&arm.bytes())
    };
    let label = "its animation `lift`, rotation of node `elbow`";
    for (found, parts) in [
        (
            altered(&|moved| moved.times = vec![1.0, 1.0]),
            &[label, "keyframe 1", "ascend"][..],
        ),
        (
            altered(&|moved| moved.times[1] = f32::NAN),
            &[label, "time 1 is NaN"],
        ),
        (
            altered(&|moved| moved.times.push(2.0)),
            &[label, "2 values for 3 keyframes", "1 for each"],
        ),
        (
            altered(&|moved| moved.between = "CUBICSPLINE"),
            &[label, "2 values for 2 keyframes", "3 for each"],
        ),
        (
            altered(&|moved| moved.values[4..].fill(0.0)),
            &[label, "keyframe 1", "length 0"],
        ),
        (
            altered(&|moved| moved.values[0] = f32::INFINITY),
            &[label, "value 0 is inf"],
        ),
        (
            altered(&|moved| {
                (moved.path, moved.values) = ("scale", vec![1.0; 3]);
            }),
            &["scale of node `elbow`", "1 values for 2"],
        ),
        (
            altered(&|moved| moved.node = 9),
            &["channel 0", "node 9", "3 nodes"],
        ),
        (
            altered(&|moved| moved.times = vec![-1.0, 0.0]),
            &["`lift`", "no keyframe later than 0 s"],
        ),
        (
            altered(&|moved| (moved.times, moved.values) = (vec![], vec![])),
            &["no keyframes"],
        ),
        (
            altered(&|moved| {
                (moved.path, moved.values) = ("weights", vec![0.0, 1.0]);
            }),
            &["weights of node `elbow`", "morph targets"],
        ),
        (
            changed(&|json| json["animations"] = json!([])),
            &["no animation", "`mesh`"],
        ),
        (
            changed(&|json| {
                json["animations"][0]["channels"][0]["target"] = json!({"path": "pointer",
                    "extensions": {"KHR_animation_pointer": {"pointer": "/nodes/2/rotation"}}});
            }),
            &["KHR_animation_pointer", "keyframes of nodes"],
        ),
        (
            changed(&|json| json["animations"][0]["channels"][0]["target"]["path"] = json!("hue")),
            &["channel 0", "extensions"],
        ),
        (
            changed(&|json| {
                let first = json["animations"][0]["channels"][0].clone();
                json["animations"][0]["channels"] = json!([first, first]);
            }),
            &[label, "animated twice"],
        ),
        (
            changed(&|json| {
                json["nodes"][2] = json!({"name": "elbow", "matrix": moved_by([1.0, 0.0, 0.0])});
            }),
            &[label, "has a matrix"],
        ),
        (
            changed(&|json| json["nodes"][2]["rotation"] = json!([0, 0, 0, 0])),
            &[label, "node's rotation", "length 0"],
        ),
        (
            changed(&|json| {
                json["nodes"]
                    .as_array_mut()
                    .unwrap()
                    .push(json!({"name": "lamp"}));
                json["animations"][0]["channels"][0]["target"]["node"] = json!(3);
            }),
            &["`lift` moves no node of the scene"],
        ),
        (
            changed(&|json| {
                json["meshes"][0]["weights"] = json!([0.5]);
                json["meshes"][0]["primitives"][0]["targets"] = json!([{"POSITION": 0}]);
            }),
            &["node `figure`", "morph targets"],
        ),
    ] {
        has(&found, parts);
    }
    // Weights of morph targets that stay 0 do nothing.
    let mut arm = Arm::default();
    let mut still = arm.moved[0].clone();
    (still.path, still.values) = ("weights", vec![0.0; 2]);
    arm.moved.push(still);
    read(&arm.bytes());
}

#[test]
fn one_of_several_animations_is_chosen_by_its_name() {
    let several = |names: [Value; 3]| {
        Arm::default().changed(|json| {
            let one = json["animations"][0].clone();
            let of = names.map(|name| {
                let mut animation = one.clone();
                animation["name"] = name;
                animation
            });
            json["animations"] = of.to_vec().into();
        })
    };
    let bytes = several([json!("lift"), json!("wave"), Value::Null]);
    has(&told(&bytes), &["`animation`", "`lift`, `wave`, `2`"]);
    has(
        &told_of(&bytes, Some("walk")),
        &["no animation `walk`", "`lift`, `wave`, `2`"],
    );
    for name in ["lift", "wave", "2"] {
        read_animated(&bytes, false, Some(name), &nothing).unwrap();
    }
    let twice = several([json!("lift"), json!("lift"), json!("c")]);
    has(&told_of(&twice, Some("lift")), &["2 of its animations"]);
}

#[test]
fn damaged_figures_are_never_a_panic() {
    let good = Arm::default().bytes();
    for at in 0..good.len() {
        for byte in [0, 0xff, b'9', good[at] ^ 1] {
            let mut bytes = good.clone();
            bytes[at] = byte;
            if let Ok((_, figure)) = read_animated(&bytes, false, None, &nothing) {
                drop(figure.at(0.3));
            }
            drop(read_file(&bytes, &[], &nothing));
        }
        let cut = read_animated(&good[..at], false, None, &nothing);
        assert!(cut.is_err(), "{at}");
    }
}
