//! Checkpoints are written in sections and read back, and damage to them is named.

use glam::DVec3;
use proptest::prelude::*;
use sha2::{Digest as _, Sha256};

use super::numbers::{from_flags, push_vectors};
use super::*;
use crate::step::{Past, PatchState};

fn checkpoint(step: u64) -> Checkpoint {
    let vectors = |s: f64| vec![DVec3::new(s, -0.0, 1e-300), DVec3::splat(s / 3.0)];
    let contact = |flags| from_flags(flags, DVec3::splat(0.5)).unwrap();
    Checkpoint {
        header: Header {
            program: "0.1.0".to_owned(),
            commit: None,
            executable: Some("00ff".to_owned()),
            history: Some(HistoryMark {
                bytes: 7,
                sha256: "ff00".to_owned(),
                after: 0,
            }),
            step,
            time_s: 0.25,
            vertices: 2,
            scene: "gravity = [0, 0, -9.81]\n".to_owned(),
            world: "00ff".to_owned(),
            frames: 3,
            next_frame: 4,
            deepest_m: Some(-1e-4),
            strain: 0.01,
            beyond_limit: Some(0.0),
            substep: [2, 1],
            past_s: None,
            squeezed: vec![[1, 0]],
            kept: vec![[0, 3], [1, 0]],
        },
        state: SavedState {
            step,
            positions: vectors(1.0),
            velocities: vectors(2.0),
            changes: [vectors(3.0), vectors(3.5)],
            contacts: vec![contact(5), contact(2)],
            substep: [2, 1],
            past: None,
            squeezed: vec![[1, 0]],
            kept: vec![[0, 3], [1, 0]],
        },
    }
}

/// A checkpoint as an integrator that looks back leaves it.
fn with_past(mut of: Checkpoint) -> Checkpoint {
    of.header.past_s = Some(0.002);
    of.state.past = Some(Past {
        length: 0.002,
        positions: vec![DVec3::new(0.5, -0.0, 7.0), DVec3::ONE],
        velocities: vec![DVec3::splat(1.0 / 3.0), DVec3::NEG_X],
    });
    of
}

impl Checkpoint {
    /// The vertices of some numbers, as a patch.
    fn patch(&self, vertices: &[u32]) -> PatchState {
        let of = |all: &Vec<DVec3>| vertices.iter().map(|&v| all[v as usize]).collect();
        let state = &self.state;
        PatchState {
            vertices: vertices.to_vec(),
            positions: of(&state.positions),
            velocities: of(&state.velocities),
            changes: state.changes.each_ref().map(of),
            contacts: vertices
                .iter()
                .map(|&v| state.contacts[v as usize])
                .collect(),
            past: (state.past.as_ref()).map(|past| [of(&past.positions), of(&past.velocities)]),
        }
    }

    /// Writes it in two patches, as two ranks do, of which the second is faster.
    fn write(&self, run: &RunDirectory) -> Result<PathBuf, OutputError> {
        let patches = [self.patch(&[1]), self.patch(&[0])];
        let (new, place) = NewCheckpoint::begin(run, &self.header, [1, 1].into_iter())?;
        let second = place.write(1, [patches[1].view()].into_iter())?;
        let first = place.write(0, [patches[0].view()].into_iter())?;
        new.complete(first.into_iter().chain(second))
    }

    /// Its bytes in layout 5, or 6 if it has a past.
    fn bytes_of_earlier_layout(&self) -> Vec<u8> {
        let state = &self.state;
        let header = serde_json::to_vec(&self.header).unwrap();
        let mut bytes = MAGIC.to_vec();
        bytes.extend(earlier::VERSIONS[usize::from(state.past.is_some())].to_le_bytes());
        bytes.extend((header.len() as u32).to_le_bytes());
        bytes.extend(header);
        let [last, before] = &state.changes;
        for all in [&state.positions, &state.velocities, last, before] {
            push_vectors(&mut bytes, all.iter().copied());
        }
        bytes.extend(state.contacts.iter().map(|contact| contact.bits()));
        push_vectors(
            &mut bytes,
            state.contacts.iter().map(|contact| contact.friction),
        );
        if let Some(past) = &state.past {
            for all in [&past.positions, &past.velocities] {
                push_vectors(&mut bytes, all.iter().copied());
            }
        }
        let sum = Sha256::digest(&bytes);
        bytes.extend(sum);
        bytes
    }
}

fn run() -> (tempfile::TempDir, RunDirectory) {
    let root = tempfile::tempdir().unwrap();
    let run = RunDirectory::create(root.path()).unwrap();
    (root, run)
}

#[test]
fn a_checkpoint_comes_back_to_the_bit() {
    let (_root, run) = run();
    let written = checkpoint(7);
    let path = written.write(&run).unwrap();
    assert_eq!(path, run.file("state.000007.ckpt"));
    let read = Checkpoint::read(&path).unwrap();
    assert_eq!(read, written);
    let bits = |c: &Checkpoint| c.state.positions[0].to_array().map(f64::to_bits);
    assert_eq!(bits(&read), bits(&written));
    let written = with_past(checkpoint(8));
    let path = written.write(&run).unwrap();
    assert_eq!(Checkpoint::read(&path).unwrap(), written);
}

/// The layout is what the book says: read here without the reader.
#[test]
fn the_bytes_are_the_documented_ones() {
    let (_root, run) = run();
    for (past, each) in [(false, 125), (true, 173)] {
        let of = if past {
            with_past(checkpoint(7))
        } else {
            checkpoint(7)
        };
        let bytes = fs::read(of.write(&run).unwrap()).unwrap();
        assert_eq!(&bytes[..12], b"WEFTCKPT\x07\0\0\0");
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
        let h = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
        let header: serde_json::Value = serde_json::from_slice(&bytes[16..16 + h]).unwrap();
        assert_eq!(
            (&header["step"], &header["vertices"]),
            (&7.into(), &2.into())
        );
        assert_eq!(bytes[16 + h..][..4], 2_u32.to_le_bytes());
        let table = 20 + h;
        let end = table + 2 * 48;
        assert_eq!(bytes[end..][..32], Sha256::digest(&bytes[..end])[..]);
        assert_eq!(bytes.len(), end + 32 + 2 * each);
        for (patch, vertex) in [(0, 1_u32), (1, 0)] {
            let entry = table + 48 * patch;
            let at = end + 32 + each * patch;
            assert_eq!((long(entry), long(entry + 8)), (at, 1));
            let section = &bytes[at..at + each];
            assert_eq!(bytes[entry + 16..][..32], Sha256::digest(section)[..]);
            assert_eq!(section[..4], vertex.to_le_bytes());
            let x = of.state.positions[vertex as usize].x;
            assert_eq!(section[4..12], x.to_le_bytes());
            assert_eq!(section[100], [5, 2][vertex as usize]);
            assert_eq!(section[101..109], 0.5f64.to_le_bytes());
        }
    }
}

/// A rank reads the sections that it needs, and damage to others is nothing to it.
#[test]
fn a_section_that_is_damaged_is_named_and_the_others_are_read() {
    let (_root, run) = run();
    let written = checkpoint(7);
    let path = written.write(&run).unwrap();
    let good = fs::read(&path).unwrap();
    let open = || match Checkpoint::open(&path).unwrap() {
        OpenCheckpoint::InSections(open) => open,
        OpenCheckpoint::Whole(_) => panic!("it has sections"),
    };
    assert!(
        open()
            .check(|patch, vertices| vertices == [1 - patch as u32])
            .unwrap()
    );
    assert!(!open().check(|_, vertices| vertices == [0]).unwrap());
    assert_eq!(open().outline(), written.state.outline());
    for (patch, from_end) in [(0, 126), (0, 250), (1, 1), (1, 125)] {
        let mut bytes = good.clone();
        let at = bytes.len() - from_end;
        bytes[at] ^= 1;
        fs::write(&path, &bytes).unwrap();
        let mut open = open();
        let error = open.read_patch(patch).unwrap_err().to_string();
        assert!(
            error.contains(&format!("the section of patch {patch}: its sum is wrong")),
            "{error}"
        );
        let other = 1 - patch;
        let expected = written.patch(&[patch as u32]);
        assert_eq!(open.read_patch(other).unwrap(), expected);
        let whole = Checkpoint::read(&path).unwrap_err().to_string();
        assert_eq!(whole, error);
    }
}

/// Each vertex must be there once, whatever the sums say.
#[test]
fn a_vertex_that_is_there_twice_is_refused() {
    let (_root, run) = run();
    let whole = checkpoint(7);
    for vertices in [[0, 0], [0, 2]] {
        let (new, place) = NewCheckpoint::begin(&run, &whole.header, [2].into_iter()).unwrap();
        let mut patch = whole.patch(&[0, 1]);
        patch.vertices = vertices.to_vec();
        let sums = place.write(0, [patch.view()].into_iter()).unwrap();
        let path = new.complete(sums.into_iter()).unwrap();
        let error = Checkpoint::read(&path).unwrap_err();
        assert!(matches!(error, OutputError::Damaged { .. }), "{error}");
        let said = format!("patch 0: vertex {}", vertices[1]);
        assert!(error.to_string().contains(&said), "{error}");
    }
}

/// Runs of earlier programs can be gone on with.
#[test]
fn checkpoints_of_earlier_layouts_are_read() {
    let (_root, run) = run();
    let path = run.file("state.000007.ckpt");
    for of in [checkpoint(7), with_past(checkpoint(7))] {
        let bytes = of.bytes_of_earlier_layout();
        fs::write(&path, &bytes).unwrap();
        assert_eq!(Checkpoint::read(&path).unwrap(), of);
        for at in [9, 20, bytes.len() / 2, bytes.len() - 1] {
            let mut bytes = bytes.clone();
            bytes[at] ^= 4;
            fs::write(&path, &bytes).unwrap();
            let error = Checkpoint::read(&path).unwrap_err();
            assert!(
                matches!(error, OutputError::Damaged { .. }),
                "{at}: {error}"
            );
        }
    }
}

/// A checkpoint that is given up, as when a rank cannot write its sections, leaves no file and the
/// one before.
#[test]
fn one_that_is_not_completed_leaves_nothing() {
    let (_root, run) = run();
    let before = checkpoint(3).write(&run).unwrap();
    let header = checkpoint(7).header;
    let begin = || NewCheckpoint::begin(&run, &header, [1, 1].into_iter()).unwrap();
    let (new, place) = begin();
    drop(new);
    let error = place.write(0, [checkpoint(7).patch(&[1]).view()].into_iter());
    let error = error.unwrap_err();
    assert!(error.to_string().contains("state.000007.ckpt"), "{error}");
    let (new, _) = begin();
    assert!(new.complete([[0; SUM]].into_iter()).is_err());
    assert!(NewCheckpoint::begin(&run, &header, [1].into_iter()).is_err());
    let all = Checkpoint::all(run.path()).unwrap();
    assert_eq!(all, [(3, before)]);
    let names = fs::read_dir(run.path()).unwrap();
    let mut names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(!names.any(|name| name.contains("partial")));
}

#[test]
fn the_two_newest_are_kept() {
    let (_root, run) = run();
    assert_eq!(Checkpoint::all(run.path()).unwrap(), []);
    for step in [2, 999_999, 1_000_000] {
        checkpoint(step).write(&run).unwrap();
    }
    assert!(!run.file("state.000002.ckpt").exists());
    assert!(run.file("state.999999.ckpt").exists());
    let all = Checkpoint::all(run.path()).unwrap();
    let steps: Vec<u64> = all.iter().map(|(step, _)| *step).collect();
    assert_eq!(steps, [1_000_000, 999_999]);
    assert_eq!(all[0].1, run.file("state.1000000.ckpt"));
}

/// One that goes on from an earlier step has no use for later ones; a stranger's stay.
#[test]
fn later_ones_are_removed_and_a_stranger_s_are_kept() {
    let (_root, run) = run();
    fs::write(run.file("state.000001.ckpt"), "mine").unwrap();
    fs::write(run.file("state.+3.ckpt"), "mine").unwrap();
    for step in [2, 9] {
        checkpoint(step).write(&run).unwrap();
    }
    checkpoint(4).write(&run).unwrap();
    let steps = || {
        let all = Checkpoint::all(run.path()).unwrap();
        all.into_iter().map(|(step, _)| step).collect::<Vec<_>>()
    };
    assert_eq!(steps(), [4, 2, 1]);
    Checkpoint::remove_after(&run, 2).unwrap();
    assert_eq!(steps(), [2, 1]);
    let directory = run.path().to_owned();
    drop(run);
    Checkpoint::remove_all(&directory).unwrap();
    assert_eq!(Checkpoint::all(&directory).unwrap().len(), 1);
}

/// Headers of earlier programs know nothing of builds and histories.
#[test]
fn a_header_of_an_earlier_program_is_read() {
    let mut header = serde_json::to_value(checkpoint(1).header).unwrap();
    let fields = header.as_object_mut().unwrap();
    for name in ["commit", "executable", "history"] {
        assert!(fields.remove(name).is_some());
    }
    let header: Header = serde_json::from_value(header).unwrap();
    assert_eq!((header.executable.as_ref(), &header.history), (None, &None));
    assert!(!header.build().is(&header.build()));
}

/// The test checks that only a whole file is said to have another layout: the present head with
/// another version, or the one sum of the earliest ones.
#[test]
fn another_layout_is_told_from_damage() {
    let (_root, run) = run();
    let path = checkpoint(7).write(&run).unwrap();
    let present = fs::read(&path).unwrap();
    let h = u32::from_le_bytes(present[12..16].try_into().unwrap()) as usize;
    let earlier = checkpoint(7).bytes_of_earlier_layout();
    let end_of_head = 20 + h + 2 * 48;
    let end = earlier.len() - SUM;
    for (mut bytes, version, end) in [(present, 9, end_of_head), (earlier, 4, end)] {
        bytes[8] = version;
        fs::write(&path, &bytes).unwrap();
        let error = Checkpoint::read(&path).unwrap_err();
        assert!(matches!(error, OutputError::Damaged { .. }), "{error}");
        let sum = Sha256::digest(&bytes[..end]);
        bytes[end..end + SUM].copy_from_slice(&sum);
        fs::write(&path, &bytes).unwrap();
        let error = Checkpoint::read(&path).unwrap_err();
        assert!(matches!(error, OutputError::Malformed { .. }), "{error}");
        let said = error.to_string();
        assert!(said.contains(&format!("layout {version},")), "{error}");
        assert!(said.contains("with the weft that wrote it"), "{error}");
    }
}

#[test]
fn a_state_with_gaps_is_not_written() {
    let (_root, run) = run();
    let mut bad = checkpoint(1);
    let mut patch = bad.patch(&[0, 1]);
    patch.changes[1].pop();
    let (_new, place) = NewCheckpoint::begin(&run, &bad.header, [2].into_iter()).unwrap();
    assert!(place.write(0, [patch.view()].into_iter()).is_err());
    bad.header.past_s = Some(0.5);
    let (_new, place) = NewCheckpoint::begin(&run, &bad.header, [2].into_iter()).unwrap();
    let without_past = bad.patch(&[0, 1]);
    assert!(place.write(0, [without_past.view()].into_iter()).is_err());
}

/// The sum of the file is right, so it is the numbers that are refused.
#[test]
fn numbers_that_are_not_finite_are_refused() {
    let (_root, run) = run();
    let mut bad = checkpoint(1);
    bad.state.velocities[1].y = f64::NAN;
    let error = Checkpoint::read(&bad.write(&run).unwrap()).unwrap_err();
    assert!(error.to_string().contains("not finite"), "{error}");
}

proptest! {
    /// Neither a flipped bit, nor a lost end, nor more of it, nor rubbish is taken for a
    /// checkpoint.
    #[test]
    fn damage_of_a_checkpoint_is_noticed(
        at in 0usize..900,
        bit in 0u8..8,
        cut in 0usize..900,
        more in 1usize..40,
        past in any::<bool>(),
    ) {
        let (_root, run) = run();
        let whole = if past { with_past(checkpoint(7)) } else { checkpoint(7) };
        let path = whole.write(&run).unwrap();
        let good = fs::read(&path).unwrap();
        let mut flipped = good.clone();
        let at = at % good.len();
        flipped[at] ^= 1 << bit;
        let cut = good[..cut % good.len()].to_vec();
        let longer = [&good[..], &vec![0; more]].concat();
        for bytes in [flipped, cut, longer] {
            fs::write(&path, bytes).unwrap();
            let error = Checkpoint::read(&path).unwrap_err();
            prop_assert!(error.to_string().contains("state.000007.ckpt"), "{error}");
        }
    }

    #[test]
    fn files_that_are_no_checkpoint_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), ours in 0usize..4) {
        let (_root, run) = run();
        let path = run.file("state.000001.ckpt");
        let ours = [&b""[..], b"WEFTCKPT\x05\0\0\0", b"WEFTCKPT\x06\0\0\0", b"WEFTCKPT\x07\0\0\0"][ours];
        fs::write(&path, [ours, &bytes].concat()).unwrap();
        prop_assert!(Checkpoint::read(&path).is_err());
    }
}
