//! Files that Pixar's library wrote (`tests/formats/make_usd.py`), damaged ones, and refusals.

use glam::DVec3;
use proptest::prelude::*;

use super::*;

const TEXT: &[u8] = include_bytes!("../../../tests/formats/usd/garment.usda");
const BINARY: &[u8] = include_bytes!("../../../tests/formats/usd/garment.usdc");
const PACKAGE: &[u8] = include_bytes!("../../../tests/formats/usd/garment.usdz");

/// The places of the points by Pixar's library.
const PLACES: [[f64; 3]; 12] = [
    [1.500000000, 2.000000000, 3.000000000],
    [2.724744871, 3.224744871, 4.000000000],
    [3.949489743, 4.449489743, 5.000000000],
    [0.792893219, 1.292893219, 4.732050808],
    [2.371191481, 2.164084700, 5.732050808],
    [3.242382962, 3.742382962, 6.732050808],
    [4.820681224, 5.320681224, 6.866025404],
    [3.760021052, 4.260021052, 9.464101615],
    [1.310531309, 1.810531309, 7.464101615],
    [7.863961031, -5.778174593, 3.000000000],
    [7.863961031, -5.778174593, 1.000000000],
    [9.278174593, -7.192388155, 3.000000000],
];

fn message(bytes: &[u8], prim: Option<&str>) -> String {
    let Problem { place, message } = read_file(bytes, &[], prim).unwrap_err();
    format!("{place:?} {message}")
}

/// A layer of a square, with this before its points.
fn square(head: &str, prim: &str, mesh: &str) -> String {
    format!(
        "#usda 1.0\n(\n{head}\n)\ndef Xform \"top\" (\n{prim}\n)\n{{\ndef Mesh \"square\"\n{{\n{mesh}\n\
         point3f[] points = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)]\n\
         int[] faceVertexCounts = [4]\nint[] faceVertexIndices = [0, 1, 2, 3]\n}}\n}}\n"
    )
}

fn read_square(head: &str, prim: &str, mesh: &str) -> FileMesh {
    read_file(square(head, prim, mesh).as_bytes(), &[], None).unwrap()
}

#[test]
fn every_form_is_read_as_the_library_reads_it() {
    let file = read_file(TEXT, &["hem", "Dress", "root"], None).unwrap();
    for (point, known) in file.mesh.positions.iter().zip(PLACES) {
        let known = DVec3::from_array(known);
        assert!((*point - known).length() < 1e-6, "{point} {known}");
    }
    assert_eq!(file.mesh.positions.len(), 12);
    assert_eq!(file.faces.counts, [4, 4, 3, 5, 3]);
    assert_eq!(
        file.faces.corners,
        [0, 1, 4, 3, 1, 2, 5, 4, 2, 6, 5, 4, 5, 6, 7, 8, 9, 10, 11],
        "left-handed and mirrored are two turns"
    );
    assert_eq!(file.mesh.triangles.len(), 2 + 2 + 1 + 3 + 1);
    let texture = file.texture.as_ref().unwrap();
    let of_corner = |corner: usize| texture.coordinates[texture.corners[corner] as usize];
    // The seam at point 4.
    assert_eq!(of_corner(2), [0.25, 0.25]);
    assert_eq!(of_corner(11), [0.875, 0.875]);
    assert_eq!(of_corner(18), [0.0, 0.0]);
    assert_eq!(texture.corners.len(), file.faces.corners.len());
    let groups: Vec<&[u32]> = file.groups.iter().map(|g| &g.vertices[..]).collect();
    let dress: Vec<u32> = (0..9).collect();
    let all: Vec<u32> = (0..12).collect();
    assert_eq!(groups, [&[1, 2, 4, 5, 6][..], &dress, &all]);
    assert_eq!(file.group_names, ["Dress", "root", "hem", "Button"]);
    assert_eq!(file.axes.up, Some(Up::Y));
    assert_eq!(file.axes.metres, Some(0.01));
    for other in [BINARY, PACKAGE] {
        assert_eq!(
            read_file(other, &["hem", "Dress", "root"], None).unwrap(),
            file
        );
    }
}

#[test]
fn a_prim_is_chosen_by_its_path_or_its_name() {
    for (form, asked) in [
        (TEXT, "Button"),
        (BINARY, "/root/Button"),
        (PACKAGE, "Button"),
    ] {
        let file = read_file(form, &[], Some(asked)).unwrap();
        assert_eq!(file.mesh.triangles, [[0, 1, 2]]);
        assert!(file.texture.is_none());
    }
    let all = read_file(BINARY, &[], Some("root")).unwrap();
    assert_eq!(all, read_file(TEXT, &[], None).unwrap());
    for form in [TEXT, BINARY] {
        let none = message(form, Some("Shirt"));
        assert!(
            none.contains("no prim `Shirt`; its meshes are /root/Dress, /root/Button"),
            "{none}"
        );
        assert!(message(form, Some("hem")).contains("that prim has no meshes"));
    }
    let twice = String::from_utf8_lossy(TEXT).replace("\"Button\"", "\"hem\"");
    let twice = message(twice.as_bytes(), Some("hem"));
    assert!(
        twice.contains("several prims `hem`: /root/Dress/hem, /root/hem"),
        "{twice}"
    );
}

#[test]
fn references_to_other_layers_are_refused_and_unwanted_prims_are_skipped() {
    for (head, prim, what) in [
        ("subLayers = [@other.usda@]", "", "it has sublayers"),
        (
            "",
            "prepend references = @a.usda@</a> (offset = 1)",
            "/top has references",
        ),
        ("", "payload = [@a.usda@]", "/top has a payload"),
        ("", "inherits = </class>", "/top has inherits"),
        ("upAxis = \"X\"", "", "its upAxis is `X`"),
        ("metersPerUnit = 0", "", "its metersPerUnit is 0"),
    ] {
        let told = message(square(head, prim, "").as_bytes(), None);
        assert!(told.contains(what), "{told}");
    }
    let variants =
        square("", "", "").replace("def Mesh", "variantSet \"size\" = { \"s\" { } }\ndef Mesh");
    assert!(message(variants.as_bytes(), None).contains("/top has variants"));
    // A part that takes nothing from elsewhere is read.
    let other = square("", "", "") + "def Xform \"other\" (\nreferences = @a.usda@\n) { }\n";
    assert!(message(other.as_bytes(), None).contains("/other has references"));
    assert!(read_file(other.as_bytes(), &[], Some("top")).is_ok());
    let plain = read_square("", "", "");
    assert_eq!(
        plain.axes.metres,
        Some(0.01),
        "as USD says of layers that do not"
    );
    let skipped = "custom double3[] a.timeSamples = { 1: [(1, 2, 3)], -2.5: None, }\n\
                   prepend rel material:binding = </a/b> ( bindMaterialAs = \"x\" )\n\
                   asset b.connect = </a.b>\nuniform token subdivisionScheme = \"none\" # no more\n\
                   string c = \"\"\"two \\\" \nlines\"\"\" ( customData = { int d = 1 } )";
    let all = read_square(
        "\"\"\"A layer.\"\"\"\nmetersPerUnit = 1\nupAxis = \"Z\"\nsubLayers = []",
        "kind = \"component\"\nprepend apiSchemas = [\"A\"]\nassetInfo = { asset e = @f.usda@ }",
        skipped,
    );
    assert_eq!(all.mesh, plain.mesh);
    assert_eq!(
        all.axes,
        FileAxes {
            metres: Some(1.0),
            up: Some(Up::Z)
        }
    );
    let off = square("", "active = false", "");
    assert!(message(off.as_bytes(), None).contains("it has no meshes"));
    let over = square("", "", "").replace("def Mesh", "over Mesh");
    assert!(message(over.as_bytes(), None).contains("it has no meshes"));
}

#[test]
fn faces_texture_and_transforms_are_as_their_attributes_say() {
    let plain = read_square("", "", "");
    let turned = read_square("", "", "uniform token orientation = \"leftHanded\"");
    assert_eq!(turned.faces.corners, [0, 3, 2, 1]);
    let mirrored =
        "double3 xformOp:scale = (1, 1, -1)\nuniform token[] xformOpOrder = [\"xformOp:scale\"]";
    let mirrored = read_square("", "", mirrored);
    assert_eq!(mirrored.faces.corners, turned.faces.corners);
    let holed = read_file(
        square("", "", "int[] holeIndices = [0]").as_bytes(),
        &[],
        None,
    );
    assert!(holed.unwrap_err().message.contains("no faces"));
    // A texture by points goes through the corners of faces.
    let by_points = read_square(
        "",
        "",
        "texCoord2f[] primvars:st = [(0, 0), (1, 0), (1, 1), (0, 1)] ( interpolation = \"vertex\" )",
    );
    assert_eq!(by_points.texture.unwrap().corners, plain.faces.corners);
    let moved = |keys: &str, order: &str| {
        let mesh = format!("{keys}\nuniform token[] xformOpOrder = [{order}]");
        read_square("", "", &mesh).mesh.positions[1]
    };
    // A turn about x first, then y, then z; the other way round in the other order.
    let at = |keys: &str, order: &str, known: [f64; 3]| {
        let place = moved(keys, order);
        assert!(
            (place - DVec3::from_array(known)).length() < 1e-12,
            "{keys}: {place}"
        );
    };
    at(
        "float3 xformOp:rotateXYZ = (90, 0, 90)",
        "\"xformOp:rotateXYZ\"",
        [0.0, 1.0, 0.0],
    );
    at(
        "float3 xformOp:rotateZYX = (90, 0, 90)",
        "\"xformOp:rotateZYX\"",
        [0.0, 0.0, 1.0],
    );
    at(
        "float xformOp:rotateY = 90",
        "\"xformOp:rotateY\"",
        [0.0, 0.0, -1.0],
    );
    at(
        "float xformOp:rotateY = 90",
        "\"!invert!xformOp:rotateY\"",
        [0.0, 0.0, 1.0],
    );
    at(
        "double3 xformOp:translate.timeSamples = { 3: (9, 9, 9), 1: (1, 2, 3) }",
        "\"xformOp:translate\"",
        [2.0, 2.0, 3.0],
    );
    // Transforms above a reset do not count.
    let above = |order: &str| {
        let mesh = format!(
            "double3 xformOp:translate = (0, 0, 7)\nuniform token[] xformOpOrder = [{order}\"xformOp:translate\"]"
        );
        let text = square("", "", &mesh).replacen(
            "def Mesh",
            "double3 xformOp:translate = (5, 0, 0)\nuniform token[] xformOpOrder = [\"xformOp:translate\"]\ndef Mesh",
            1,
        );
        read_file(text.as_bytes(), &[], None)
            .unwrap()
            .mesh
            .positions[0]
    };
    assert_eq!(above(""), DVec3::new(5.0, 0.0, 7.0));
    assert_eq!(above("\"!resetXformStack!\", "), DVec3::new(0.0, 0.0, 7.0));
}

#[test]
fn errors_name_the_mesh_or_the_line_of_the_layer() {
    let changed = |from: &str, to: &str| {
        let text = square("", "", "");
        assert!(text.contains(from), "{from}");
        message(text.replacen(from, to, 1).as_bytes(), None)
    };
    assert!(
        changed("[0, 1, 2, 3]", "[0, 1, 2, 4]")
            .contains("/top/square: face 0 names point 4, there are 4")
    );
    assert!(changed("[0, 1, 2, 3]", "[0, 1, 2]").contains("face 0 has 4 corners, and 3 are left"));
    assert!(changed("[0, 1, 2, 3]", "[0, 1, 2, -3]").contains("names point -3"));
    assert!(
        changed("[0, 1, 2, 3]", "[0, 1, 2, 1]").contains("face 0: a face that has point 1 twice")
    );
    assert!(changed("[4]", "[-4]").contains("face 0 has -4 corners"));
    assert!(changed("(1, 1, 0)", "(1, nan, 0)").contains("point 2 is"));
    assert!(
        changed("(1, 1, 0)", "(1, 1)").contains("Line(12)) a value of 2 numbers where 3 belong")
    );
    assert!(changed("(1, 1, 0)", "(1, one, 0)").contains("`one` is no number"));
    assert!(changed("point3f[] points", "float2[] points").contains("3 numbers where 2 belong"));
    assert!(
        changed("int[] faceVertexIndices", "float[] faceVertexIndices")
            .contains("no whole numbers")
    );
    assert!(
        changed("\ndef Mesh \"square\"", "\n}\ndef Mesh \"square\"").contains("closes nothing")
    );
    assert!(changed("}\n}\n", "}\n").contains("ends within a prim"));
    assert!(changed("\"square\"", "\"square").contains("is not closed"));
    for (key, why) in [
        (
            "\"xformOp:turn\"",
            "`xformOp:turn` is missing, or of an unknown kind",
        ),
        ("\"xformOp:scale\"", "`xformOp:scale` is missing"),
        ("\"!invert!xformOp:scale:flat\"", "cannot be inverted"),
    ] {
        let mesh = format!(
            "float3 xformOp:scale:flat = (1, 0, 1)\nuniform token[] xformOpOrder = [{key}]"
        );
        let told = message(square("", "", &mesh).as_bytes(), None);
        assert!(told.contains(why), "{told}");
    }
    assert!(message(b"", None).contains("it is empty"));
    assert!(message(b"v 0 0 0\n", None).contains("its first line is `v 0 0 0`"));
    let mut old = BINARY.to_vec();
    old[9] = 3;
    assert!(message(&old, None).contains("Byte(8)) it is of version 0.3 of binary USD"));
    let mut packed = PACKAGE.to_vec();
    packed[8] = 8;
    assert!(message(&packed, None).contains("compressed"));
}

#[test]
fn depth_is_bounded_and_costs_no_stack() {
    let deep = |count: usize| {
        let open = "def Xform \"a\" {\n".repeat(count);
        let mesh = square("", "", "");
        let (head, body) = mesh.split_once(")\n").unwrap();
        format!("{head})\n{open}{body}{}", "}\n".repeat(count))
    };
    assert!(read_file(deep(200).as_bytes(), &[], None).is_ok());
    assert!(message(deep(100_000).as_bytes(), None).contains("deep within each other"));
    let brackets = square("", &format!("a = {}", "[".repeat(1_000_000)), "");
    assert!(message(brackets.as_bytes(), None).contains("a closing bracket belongs"));
}

/// Whatever byte is changed, and wherever a file ends.
#[test]
fn damage_is_never_a_panic() {
    for good in [TEXT, BINARY, PACKAGE] {
        for at in 0..good.len() {
            for byte in [0, 0xff, 0x7f, good[at] ^ 1, good[at] ^ 0x80] {
                let mut bytes = good.to_vec();
                bytes[at] = byte;
                drop(read_file(&bytes, &["hem"], Some("Dress")));
            }
            drop(read_file(&good[..at], &[], None));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn heavy_damage_is_never_a_panic(
        which in 0usize..3,
        damage in proptest::collection::vec((any::<usize>(), any::<u8>(), 0u8..4), 1..12),
    ) {
        let mut bytes = [TEXT, BINARY, PACKAGE][which].to_vec();
        for (place, byte, how) in damage {
            let place = place % bytes.len();
            match how {
                0 => bytes[place] = byte,
                1 => bytes.insert(place, byte),
                // A byte of which counts are made.
                2 => {
                    let end = bytes.len().min(place + 8);
                    bytes[place..end].fill(byte);
                }
                _ if bytes.len() > 1 => drop(bytes.remove(place)),
                _ => {}
            }
        }
        drop(read_file(&bytes, &["hem"], None));
    }
}
