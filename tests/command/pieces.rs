//! Output in pieces: each rank writes its patches of a checkpoint and its piece of a frame, and
//! both are what one rank would have written.

use std::fs;
use std::path::Path;

use sha2::{Digest as _, Sha256};
use weftwork::output::{ArrayValues, Checkpoint, FrameArrays, path_of_cloth, read_frame};

use crate::place::{Place, hash_of, record};

const RUN: &str = "run small.toml --quiet --set output.pictures=false";
const PIECES: &str = "--set output.pieces=rank";

/// The frame of a run after a step, without its owners, which depend on ranks.
fn frame(directory: &Path, step: u64) -> FrameArrays {
    let mut frame = read_frame(&path_of_cloth(directory, step)).unwrap();
    frame.of_triangles.retain(|array| array.name != "owner");
    frame
}

#[test]
fn checkpoints_of_any_ranks_hold_the_same_and_others_go_on_from_them() {
    let place = Place::new();
    let whole = hash_of(&place.weft(&format!("{RUN} --out whole")));
    let state = |directory: &str| {
        let path = place.path(directory).join("state.000017.ckpt");
        Checkpoint::read(&path).unwrap().state
    };
    let virtual_ranks = "--comm virtual --ranks 5";
    for (directory, ranks) in [
        ("of-1", "--ranks 1"),
        ("of-3", "--ranks 3"),
        ("of-4", "--ranks 4"),
        ("of-5", virtual_ranks),
    ] {
        hash_of(&place.weft(&format!("{RUN} {ranks} --steps 17 --out {directory}")));
        assert_eq!(state(directory), state("of-1"), "{ranks}");
    }
    for (directory, ranks) in [
        ("of-1", "--ranks 4"),
        ("of-3", "--ranks 1"),
        ("of-4", "--ranks 3"),
        ("of-5", virtual_ranks),
    ] {
        let output = place.weft(&format!("{RUN} {ranks} --resume --out {directory}"));
        assert_eq!(hash_of(&output), whole, "{directory} with {ranks}");
    }
}

/// The bytes of a checkpoint as earlier programs wrote it.
fn of_earlier_layout(checkpoint: &Checkpoint) -> Vec<u8> {
    let state = &checkpoint.state;
    assert!(state.past.is_none());
    let header = serde_json::to_vec(&checkpoint.header).unwrap();
    let mut bytes = b"WEFTCKPT\x05\0\0\0".to_vec();
    bytes.extend((header.len() as u32).to_le_bytes());
    bytes.extend(header);
    let friction: Vec<_> = state.contacts.iter().map(|c| c.friction).collect();
    let [last, before] = &state.changes;
    for (all, contacts) in [
        (&state.positions, false),
        (&state.velocities, false),
        (last, false),
        (before, false),
        (&friction, true),
    ] {
        if contacts {
            bytes.extend(state.contacts.iter().map(|contact| contact.bits()));
        }
        let numbers = all.iter().flat_map(|vector| vector.to_array());
        bytes.extend(numbers.flat_map(f64::to_le_bytes));
    }
    let sum = Sha256::digest(&bytes);
    bytes.extend(sum);
    bytes
}

/// Layout 5 is not written any more, but runs go on from it.
#[test]
fn a_checkpoint_of_an_earlier_program_is_gone_on_from() {
    let place = Place::new();
    let whole = hash_of(&place.weft(&format!("{RUN} --out whole")));
    hash_of(&place.weft(&format!("{RUN} --steps 17 --out part")));
    let path = place.path("part/state.000017.ckpt");
    let bytes = of_earlier_layout(&Checkpoint::read(&path).unwrap());
    fs::write(&path, bytes).unwrap();
    let output = place.weft(&format!("{RUN} --ranks 3 --resume --out part"));
    assert_eq!(hash_of(&output), whole);
}

/// The messages name the patch of a section that is damaged.
#[test]
fn a_damaged_section_is_named() {
    let place = Place::new();
    hash_of(&place.weft(&format!("{RUN} --steps 7 --out part")));
    let path = place.path("part/state.000007.ckpt");
    let good = fs::read(&path).unwrap();
    let number = |at: usize| u32::from_le_bytes(good[at..at + 4].try_into().unwrap()) as usize;
    let table = 20 + number(12);
    let patches = number(table - 4);
    assert!(patches > 1);
    let resume = format!("{RUN} --ranks 2 --resume --out part");
    for patch in [0, patches - 1] {
        let entry = table + 48 * patch;
        let at = u64::from_le_bytes(good[entry..entry + 8].try_into().unwrap()) as usize;
        let mut bytes = good.clone();
        bytes[at + 9] ^= 16;
        fs::write(&path, bytes).unwrap();
        let (code, message) = place.fails(&resume);
        assert_eq!(code, 5, "{message}");
        let named = format!("the section of patch {patch}: its sum is wrong");
        assert!(message.contains(&named), "{message}");
    }
    fs::write(&path, &good[..good.len() - 1]).unwrap();
    let (code, message) = place.fails(&resume);
    assert!(
        code == 5 && message.contains("its length is wrong"),
        "{message}"
    );
    fs::write(&path, good).unwrap();
    hash_of(&place.weft(&resume));
}

#[test]
fn frames_in_pieces_are_those_in_one_file() {
    let place = Place::new();
    let whole = hash_of(&place.weft(&format!("{RUN} --ranks 3 --out whole")));
    for ranks in [1, 3, 4] {
        let directory = format!("of-{ranks}");
        let run = format!("{RUN} {PIECES} --ranks {ranks} --out {directory}");
        assert_eq!(hash_of(&place.weft(&run)), whole);
        let directory = place.path(&directory);
        let names = fs::read_dir(directory.join("frames")).unwrap();
        let names: Vec<_> = names
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let pieces = names.iter().filter(|name| name.starts_with("piece-"));
        assert_eq!(pieces.count(), 5 * ranks, "{names:?}");
        for step in [0, 10, 20, 30, 40] {
            assert!(
                names.contains(&format!("cloth.{step:06}.pvtp")),
                "{names:?}"
            );
            let (one, other) = (frame(&place.path("whole"), step), frame(&directory, step));
            assert_eq!(one, other, "step {step} of {ranks} ranks");
        }
    }
    // With as many ranks owners are the same too.
    let last = |directory: &str| read_frame(&path_of_cloth(&place.path(directory), 40)).unwrap();
    assert_eq!(last("whole"), last("of-3"));
    assert!(
        last("whole")
            .of_vertices
            .iter()
            .any(|array| match &array.values {
                ArrayValues::Vectors(forces) => {
                    array.name == "contact_force" && forces.iter().any(|force| force.length() > 0.0)
                }
                _ => false,
            })
    );
}

/// All commands that look at frames take those in pieces.
#[test]
fn commands_read_frames_in_pieces() {
    let place = Place::new();
    hash_of(&place.weft(&format!("{RUN} --ranks 2 --out whole")));
    hash_of(&place.weft(&format!("{RUN} {PIECES} --ranks 3 --out pieces")));
    for (command, said) in [
        (
            "compare whole pieces",
            "same     frames: positions in all 5 of both",
        ),
        (
            "audit pieces",
            "no crossing of cloth with cloth or bodies in any of 5 frames",
        ),
        ("report pieces", "report.html"),
    ] {
        let output = place.weft(command);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{command}: {text}");
        assert!(text.contains(said), "{command}: {text}");
    }
    for (command, names) in [
        ("export --format obj", ["whole-obj", "pieces-obj"]),
        ("refine", ["whole-fine", "pieces-fine"]),
    ] {
        for (of, out) in [("whole", names[0]), ("pieces", names[1])] {
            let output = place.weft(&format!("{command} {of} --out {out}"));
            assert_eq!(output.status.code(), Some(0), "{command} {of}");
        }
    }
    for name in place.names("whole-obj") {
        let bytes = |folder: &str| fs::read(place.path(folder).join(&name)).unwrap();
        assert_eq!(bytes("whole-obj"), bytes("pieces-obj"), "{name}");
    }
    let fine = |directory: &str| frame(&place.path(directory), 40);
    assert_eq!(fine("whole-fine"), fine("pieces-fine"));
    // A frame that lacks a piece is no frame.
    fs::remove_file(place.path("pieces/frames/piece-00001.000020.vtp")).unwrap();
    for command in [
        "compare whole pieces",
        "audit pieces",
        "export pieces --format obj --out new",
    ] {
        let (code, message) = place.fails(command);
        assert_eq!(code, 5, "{command}: {message}");
        assert!(
            message.contains("piece-00001.000020.vtp"),
            "{command}: {message}"
        );
    }
}

/// A run may go on with frames of the other kind and on other ranks. Each step has one frame.
#[test]
fn a_run_goes_on_with_frames_of_the_other_kind() {
    let place = Place::new();
    let whole = hash_of(&place.weft(&format!("{RUN} --ranks 2 --out whole")));
    let often = "--set output.checkpoint_interval=0";
    for (directory, first, second) in [("to-one", PIECES, ""), ("to-pieces", "", PIECES)] {
        hash_of(&place.weft(&format!(
            "{RUN} {often} {first} --ranks 4 --steps 20 --out {directory}"
        )));
        let again = format!(
            "{RUN} {second} --ranks 3 --resume={directory}/state.000019.ckpt --out {directory}"
        );
        assert_eq!(hash_of(&place.weft(&again)), whole);
        let names = place.names(&format!("{directory}/frames"));
        let cloth = names.iter().filter(|name| name.starts_with("cloth."));
        let in_pieces = |name: &&String| name.ends_with(".pvtp");
        let (pieces, one): (Vec<_>, Vec<_>) = cloth.partition(in_pieces);
        let counts = if first.is_empty() { (3, 2) } else { (2, 3) };
        assert_eq!((pieces.len(), one.len()), counts, "{names:?}");
        let compared = place.weft(&format!("compare whole {directory}"));
        assert_eq!(compared.status.code(), Some(0));
        // The run knows all of its files.
        let replaced = format!("{RUN} --steps 1 --overwrite --out {directory}");
        hash_of(&place.weft(&replaced));
        let names = place.names(&format!("{directory}/frames"));
        assert!(
            !names.iter().any(|name| name.contains("piece")),
            "{names:?}"
        );
        assert_eq!(record(&place.path(directory))["exit"], 0);
    }
}
