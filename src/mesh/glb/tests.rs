use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::container::MOST_BESIDE;
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
