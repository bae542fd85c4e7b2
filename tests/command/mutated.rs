//! Damaged and hostile files of every kind that is read: no panic, no hang, no exit code outside
//! the table, no memory beyond what a file's size gives reason for.
//!
//! Files are damaged at random, from seeds that are always the same, and read by the library in
//! this process; some hundred are given to the command. Where a file has a sum, most of the damage
//! is done below it: what is sealed is no less hostile.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};
use weft_report::{Report, Run};
use weft_study::plan::Plan;
use weft_study::record::Record;
use weft_study::sweep::{Replayed, Source as _};
use weftwork::diagnostics::{compare, last_frame};
use weftwork::mesh::{check_body, check_cloth, read_mesh};
use weftwork::output::{
    Checkpoint, RunRecord, read_frame, read_integers, read_points, read_triangles,
};
use weftwork::scene::Scene;

use super::inputs::acts_on_nothing;
use super::place::{Place, SCENE, hash_of};

/// Longest that a file may take to be read: the largest have some 20 MB.
const LONGEST: Duration = Duration::from_secs(20);
/// Most memory that this process may take while one is read, in kB.
const MOST_MEMORY: u64 = 2_000_000;

/// Numbers that are always the same (splitmix64).
struct Random(u64);

impl Random {
    /// One of several sequences: those of the seed in the environment, if there is one.
    fn new(sequence: u64) -> Self {
        let seed = std::env::var("WEFT_SEED").map_or(0, |seed| seed.parse().unwrap());
        Self(seed << 8 | sequence)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// The words that stand in hostile files in the place of a number or a name.
const WORDS: [&[u8]; 36] = [
    b"0",
    b"-1",
    b"1",
    b"127",
    b"128",
    b"255",
    b"65536",
    b"2147483647",
    b"2147483648",
    b"4294967295",
    b"4294967296",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"18446744073709551615",
    b"99999999999999999999999999",
    b"1e400",
    b"-1e400",
    b"1e308",
    b"1e-320",
    b"nan",
    b"inf",
    b"null",
    b"true",
    b"[]",
    b"{}",
    b"\"\"",
    b"\x1b[2J\x1b]0;x\x07",
    b"\xe2\x80\xae\xe2\x80\x8b",
    b"\xc2\x9b2J",
    b"\xff\xfe",
    b"\0",
    b"\n",
    b"\r",
    b"\\\n",
    b"#",
    b"../../../../tmp/x",
];

/// Damages some bytes in some way.
fn damaged(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len());
        let end = (at + 1 + random.below(24)).min(bytes.len());
        match random.below(12) {
            _ if bytes.is_empty() => bytes.push(random.next() as u8),
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.next() as u8,
            2 => bytes.insert(at, random.next() as u8),
            3 => drop(bytes.drain(at..end)),
            4 => bytes.truncate(at),
            5 => {
                let copy = bytes[at..end].to_vec();
                let to = random.below(bytes.len());
                bytes.splice(to..to, copy);
            }
            // A number of bytes becomes another.
            6 | 7 => {
                let size = random.of(&[1, 2, 4, 8]);
                let number = random.of(&[0, 1, 2, 3, 0x7f, 0xff, 0xffff, 0x7fff_ffff, 1 << 31])
                    | random.of(&[0, 0, 0, u64::MAX, 0x7ff0_0000_0000_0000]);
                for (byte, new) in bytes[at..].iter_mut().zip(&number.to_le_bytes()[..size]) {
                    *byte = *new;
                }
            }
            // A word becomes another.
            8..=10 => {
                let is_word = |b: &u8| b.is_ascii_alphanumeric() || b".-+_".contains(b);
                let before = bytes[..at].iter().rev().take_while(|b| is_word(b)).count();
                let after = bytes[at..].iter().take_while(|b| is_word(b)).count();
                bytes.splice(at - before..at + after, random.of(&WORDS).iter().copied());
            }
            // A line comes twice, or many times.
            _ => {
                let start = bytes[..at]
                    .iter()
                    .rposition(|&b| b == b'\n')
                    .map_or(0, |k| k + 1);
                let end = bytes[at..].iter().position(|&b| b == b'\n');
                let end = end.map_or(bytes.len(), |k| at + k + 1);
                let line = bytes[start..end].repeat(random.of(&[1, 1, 3, 500]));
                if line.len() < 1 << 20 {
                    bytes.splice(start..start, line);
                }
            }
        }
    }
    bytes
}

/// A function that makes the checksums of damaged bytes right again.
type Seal = fn(&[u8], &mut Random) -> Vec<u8>;

fn plain(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    damaged(bytes, random)
}

/// The last this many bytes are those of the sum of all before.
fn sealed<const N: usize>(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    if random.below(5) == 0 {
        return damaged(bytes, random);
    }
    let mut bytes = damaged(&bytes[..bytes.len() - N], random);
    let sum = Sha256::digest(&bytes);
    bytes.extend_from_slice(&sum[..N]);
    bytes
}

/// A checkpoint has a sum for its head, in which there is one for the section of each patch.
fn sealed_checkpoint(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    const ENTRY: usize = 48;
    if random.below(5) == 0 {
        return damaged(bytes, random);
    }
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let header = number(12);
    let table = 20 + header;
    let sections = table + ENTRY * number(16 + header) + 32;
    let mut parts = [
        bytes[16..16 + header].to_vec(),
        bytes[table..sections - 32].to_vec(),
        bytes[sections..].to_vec(),
    ];
    let which = random.below(3);
    parts[which] = damaged(&parts[which], random);
    let [header, mut table, sections] = parts;
    let patches = table.len() / ENTRY;
    let first = 16 + header.len() + 4 + table.len() + 32;
    let mut place = first;
    let (entries, _) = table.as_chunks_mut::<ENTRY>();
    for entry in entries {
        if which != 1 {
            entry[..8].copy_from_slice(&(place as u64).to_le_bytes());
        }
        let vertices = u64::from_le_bytes(entry[8..16].try_into().unwrap());
        // A vertex of this run has 125 bytes.
        let end = place.saturating_add((vertices as usize).saturating_mul(125));
        if let Some(section) = sections.get(place - first..end.saturating_sub(first)) {
            entry[16..].copy_from_slice(&Sha256::digest(section));
            place = end;
        }
    }
    let mut whole = bytes[..12].to_vec();
    whole.extend((header.len() as u32).to_le_bytes());
    whole.extend(header);
    whole.extend((patches as u32).to_le_bytes());
    whole.extend(table);
    whole.extend_from_slice(&Sha256::digest(&whole));
    whole.extend(sections);
    whole
}

/// A record is made of pieces, each with its sum.
fn sealed_piece(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    const START: usize = 8;
    if random.below(5) == 0 {
        return damaged(bytes, random);
    }
    let mut pieces = Vec::new();
    let mut rest = &bytes[START..];
    while let [letter, tail @ ..] = rest {
        let (length, tail) = tail.split_first_chunk().unwrap();
        let (payload, tail) = tail.split_at(u64::from_le_bytes(*length) as usize);
        pieces.push((*letter, payload.to_vec()));
        rest = &tail[8..];
    }
    let at = random.below(pieces.len());
    pieces[at].1 = damaged(&pieces[at].1, random);
    if random.below(20) == 0 {
        let again = pieces[random.below(pieces.len())].clone();
        pieces.insert(at, again);
    }
    let mut whole = bytes[..START].to_vec();
    for (letter, payload) in pieces {
        whole.push(letter);
        whole.extend((payload.len() as u64).to_le_bytes());
        whole.extend(&payload);
        whole.extend_from_slice(&Sha256::digest(&payload)[..8]);
    }
    whole
}

/// A kind of file, and who reads it.
struct Kind {
    /// The path of the file in the folder.
    file: &'static str,
    damage: Seal,
    /// How many are read in this process.
    many: usize,
    read: fn(&Path),
    /// Commands that read it too.
    commands: &'static [&'static str],
}

const KINDS: &[Kind] = &[
    Kind {
        file: "small.toml",
        damage: plain,
        many: 20_000,
        read: |path| drop(Scene::load(path, &[])),
        commands: &[
            "check small.toml --set cloth.grid.vertices=12 --set body.ball.edge=3cm",
            "scenes .",
        ],
    },
    Kind {
        file: "m.obj",
        damage: plain,
        many: 20_000,
        read: mesh,
        commands: &["check obj.toml"],
    },
    Kind {
        file: "text.ply",
        damage: plain,
        many: 20_000,
        read: mesh,
        commands: &["check text.toml"],
    },
    Kind {
        file: "binary.ply",
        damage: plain,
        many: 20_000,
        read: mesh,
        commands: &["check binary.toml"],
    },
    Kind {
        file: "text.stl",
        damage: plain,
        many: 20_000,
        read: mesh,
        commands: &["check stl.toml"],
    },
    Kind {
        file: "binary.stl",
        damage: plain,
        many: 20_000,
        read: mesh,
        commands: &["check stlb.toml"],
    },
    Kind {
        file: "out/state.000010.ckpt",
        damage: sealed_checkpoint,
        many: 10_000,
        read: |path| drop(Checkpoint::read(path)),
        commands: &[
            "run small.toml --quiet --steps 12 --out new --resume=out/state.000010.ckpt",
            "partition small.toml --state out/state.000010.ckpt",
        ],
    },
    Kind {
        file: "out/frames/cloth.000010.vtp",
        damage: plain,
        many: 10_000,
        read: |path| {
            drop(read_points(path));
            drop(read_triangles(path));
            drop(read_integers(path, "owner"));
            drop(last_frame(path.parent().unwrap().parent().unwrap()));
        },
        commands: &["audit out", "compare out whole", "report out"],
    },
    Kind {
        file: "pieces/frames/cloth.000010.pvtp",
        damage: plain,
        many: 5000,
        read: |path| drop(read_frame(path)),
        commands: &["audit pieces", "compare pieces whole", "report pieces"],
    },
    Kind {
        file: "pieces/frames/piece-00001.000010.vtp",
        damage: plain,
        many: 5000,
        read: |path| drop(read_frame(&path.with_file_name("cloth.000010.pvtp"))),
        commands: &["audit pieces", "compare pieces whole"],
    },
    Kind {
        file: "out/run.json",
        damage: plain,
        many: 3000,
        read: |path| {
            let run = path.parent().unwrap();
            drop(RunRecord::read(run));
            report(run);
        },
        commands: &["report out", "compare out whole", "audit out"],
    },
    Kind {
        file: "out/history.csv",
        damage: plain,
        many: 3000,
        read: |path| {
            let run = path.parent().unwrap();
            drop(compare(run, &run.with_file_name("whole")));
            report(run);
        },
        commands: &[
            "report out",
            "compare whole out",
            "run small.toml --quiet --ranks 2 --steps 12 --out out --resume",
        ],
    },
    Kind {
        file: "out/frames.pvd",
        damage: plain,
        many: 0,
        read: |_| {},
        commands: &["run small.toml --quiet --ranks 2 --steps 12 --out out --resume"],
    },
    Kind {
        file: "out/trace/rank-00001.bin",
        damage: sealed::<8>,
        many: 5000,
        read: |path| report(path.parent().unwrap().parent().unwrap()),
        commands: &["report out"],
    },
    Kind {
        file: "rec/record.weftrec",
        damage: sealed_piece,
        many: 5000,
        read: record,
        commands: &[
            "study rec --ranks 1,2 --repeat 1 --policy static,every-other --quiet --out new",
        ],
    },
    Kind {
        file: "study/study.json",
        damage: plain,
        many: 0,
        read: |_| {},
        commands: &[STUDY],
    },
    Kind {
        file: "study/study.of",
        damage: plain,
        many: 0,
        read: |_| {},
        commands: &[STUDY],
    },
    Kind {
        file: "study/points/0.myrinet-2000.static.000002.0.json",
        damage: plain,
        many: 0,
        read: |_| {},
        commands: &[STUDY],
    },
];

const STUDY: &str = "study whole-rec --ranks 1,2 --repeat 1 --policy static --quiet --out study";

fn mesh(path: &Path) {
    if let Ok(mesh) = read_mesh(path) {
        drop(check_cloth(&mesh));
        drop(check_body(&mesh, true));
    }
}

fn report(run: &Path) {
    if let Ok(mut run) = Run::read(run) {
        run.cloth = last_frame(&run.path).ok().flatten();
        let report = Report::new(vec![run]);
        acts_on_nothing(report.text().as_bytes());
        report.write_page(&mut std::io::sink()).unwrap();
    }
}

fn record(path: &Path) {
    let Ok(mut record) = Record::open(path) else {
        return;
    };
    for index in 0..record.warm_up_steps() {
        drop(record.warm_up_step(index));
    }
    for index in 0..record.steps() {
        drop(record.step(index));
    }
    let plan = Plan {
        ranks: vec![1, 4],
        policies: vec!["forecast".to_owned()],
        networks: vec!["gigabit".to_owned()],
        repeat: 1,
        collide_only: false,
        slower: 1.0,
        ready_free: false,
        real: false,
    };
    let source = Replayed::open(path).unwrap();
    for point in plan.points(1) {
        drop(source.measure(&point, &plan));
    }
}

/// A folder with a file of every kind, none of them damaged.
fn folder() -> Place {
    let place = Place::new();
    let square =
        "v 0 0 1\nv 1 0 1\nv 1 1 1\nv 0 1 1\nv 2 0 1\nf 1/1 2//1 3/1/1 -2\nf 2 5 \\\n 3 # a\n";
    fs::write(place.path("m.obj"), square).unwrap();
    let head = |format: &str| {
        format!(
            "ply\nformat {format} 1.0\ncomment x\nelement vertex 3\nproperty float x\nproperty double y\nproperty float z\n\
             property list uchar short w\nelement face 1\nproperty list uchar int vertex_indices\nelement edge 1\n\
             property int a\nend_header\n"
        )
    };
    let text = head("ascii") + "0 0 1 0\n1 0 1 2 3 4\n0 1 1 0\n3 0 1 2\n7\n";
    fs::write(place.path("text.ply"), text).unwrap();
    let mut binary = head("binary_little_endian").into_bytes();
    for [x, y] in [[0_f32, 0.0], [1.0, 0.0], [0.0, 1.0]] {
        binary.extend(x.to_le_bytes());
        binary.extend(f64::from(y).to_le_bytes());
        binary.extend(1_f32.to_le_bytes());
        binary.extend([1, 5, 0]);
    }
    binary.extend([3, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 9, 0, 0, 0]);
    fs::write(place.path("binary.ply"), binary).unwrap();
    let facet = "facet normal 0 0 1\nouter loop\nvertex 0 0 1\nvertex 1 0 1\nvertex 0 1 1\nendloop\nendfacet\n";
    fs::write(
        place.path("text.stl"),
        format!("solid a\n{facet}endsolid a\n"),
    )
    .unwrap();
    let mut stl = vec![b' '; 80];
    stl.extend(1_u32.to_le_bytes());
    for x in [0_f32, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0] {
        stl.extend(x.to_le_bytes());
    }
    stl.extend([0, 0]);
    fs::write(place.path("binary.stl"), stl).unwrap();
    let grid = "grid = { size = \"0.3 m\", vertices = 12 }\ncenter = [0.03, 0.02, 0.165]";
    for (scene, mesh) in [
        ("obj", "m.obj"),
        ("text", "text.ply"),
        ("binary", "binary.ply"),
        ("stl", "text.stl"),
        ("stlb", "binary.stl"),
    ] {
        let scene_text = SCENE
            .replace(grid, &format!("mesh = \"{mesh}\""))
            .replace("patches = 8", "patches = 1");
        fs::write(place.path(scene).with_extension("toml"), scene_text).unwrap();
        assert!(place.weft(&format!("check {scene}.toml")).status.success());
    }
    let run = "run small.toml --quiet --set output.pictures=false --steps 10";
    for out in ["out", "whole"] {
        hash_of(&place.weft(&format!("{run} --ranks 2 --trace=8..10 --out {out}")));
    }
    hash_of(&place.weft(&format!(
        "{run} --ranks 2 --set output.pieces=rank --out pieces"
    )));
    for out in ["rec", "whole-rec"] {
        hash_of(&place.weft(&format!("{run} --ranks 1 --record=8..10 --out {out}")));
    }
    assert!(place.weft(STUDY).status.success());
    place
}

/// Forgets how much memory this process has had so far.
fn forget_memory() {
    fs::write("/proc/self/clear_refs", "5").unwrap();
}

/// The most memory that this process has had since, in kB.
fn memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Reads a file in this process, and says what was wrong with how it was read.
#[expect(
    clippy::disallowed_methods,
    reason = "whether something hangs a clock tells"
)]
fn look(read: fn(&Path), path: &Path) -> Option<String> {
    forget_memory();
    let began = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(|| read(path)));
    let took = began.elapsed();
    match outcome {
        Err(_) => Some("it panicked".to_owned()),
        Ok(()) if took > LONGEST => Some(format!("it took {took:?}")),
        Ok(()) if memory() > MOST_MEMORY => Some(format!("it took {} kB", memory())),
        Ok(()) => None,
    }
}

/// Keeps a file that something is wrong with, to be looked at.
fn keep(bytes: &[u8], name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join("weft-mutated");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
#[ignore = "reads some 150,000 damaged files, which takes minutes; CONTRIBUTING.md has the command"]
fn damaged_files_are_refused_or_read_and_nothing_else() {
    let place = folder();
    let mut faults = Vec::new();
    for kind in KINDS {
        let path = place.path(kind.file);
        let whole = fs::read(&path).unwrap();
        assert_eq!(look(kind.read, &path), None, "{}", kind.file);
        let mut random = Random::new(7);
        for number in 0..kind.many {
            let bytes = (kind.damage)(&whole, &mut random);
            fs::write(&path, &bytes).unwrap();
            // It stays there if this process ends with it.
            let last = keep(&bytes, &format!("last-{}", kind.file.replace('/', "-")));
            let fault = look(kind.read, &path);
            fs::remove_file(last).unwrap();
            if let Some(fault) = fault {
                let name = format!("{number}-{}", kind.file.replace('/', "-"));
                faults.push(format!(
                    "{fault}: {}",
                    keep(&bytes, &name).to_string_lossy()
                ));
            }
        }
        fs::write(&path, whole).unwrap();
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
#[ignore = "starts the command some hundred times with damaged files; CONTRIBUTING.md has the command"]
fn the_command_ends_by_its_table_whatever_it_reads() {
    const MANY: usize = 25;
    let place = folder();
    let copy = tempfile::tempdir().unwrap();
    let restore = |from: &Path, to: &Path| {
        drop(fs::remove_dir_all(to.join("new")));
        let copied = Command::new("cp")
            .arg("-a")
            .arg(from.join("."))
            .arg(to)
            .status();
        assert!(copied.unwrap().success());
    };
    restore(&place.path("."), copy.path());
    let mut faults = Vec::new();
    for kind in KINDS {
        let path = place.path(kind.file);
        let whole = fs::read(&path).unwrap();
        let mut random = Random::new(11);
        for number in 0..MANY {
            let bytes = (kind.damage)(&whole, &mut random);
            for arguments in kind.commands {
                fs::write(&path, &bytes).unwrap();
                // Time in s, memory in kB.
                let shell = "ulimit -v 4000000; exec timeout 60 \"$0\" \"$@\"";
                let output = Command::new("sh")
                    .args(["-c", shell, env!("CARGO_BIN_EXE_weft")])
                    .args(arguments.split_whitespace())
                    .current_dir(place.path("."))
                    .output()
                    .unwrap();
                let code = output.status.code();
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                let one = said
                    .lines()
                    .filter(|line| line.starts_with("error: "))
                    .count();
                let calm = catch_unwind(|| {
                    acts_on_nothing(&output.stdout);
                    acts_on_nothing(&output.stderr);
                });
                let good = match code {
                    Some(0) => one == 0,
                    Some(2..=6) => one == 1,
                    _ => false,
                };
                if !good || calm.is_err() || said.contains("panicked") {
                    let name = format!("command-{number}-{}", kind.file.replace('/', "-"));
                    let kept = keep(&bytes, &name);
                    let kept = kept.to_string_lossy();
                    faults.push(format!("{arguments}: {code:?} with {kept}: {said}"));
                }
                restore(copy.path(), &place.path("."));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

/// The files are as large as such files may be, and made so that time or memory that grows faster
/// than the file shows.
#[test]
#[ignore = "reads large files, which takes a minute; CONTRIBUTING.md has the command"]
fn large_hostile_files_take_no_longer_than_large_ones() {
    let place = folder();
    let run_json = fs::read_to_string(place.path("out/run.json")).unwrap();
    let history = fs::read_to_string(place.path("out/history.csv")).unwrap();
    let first = history.lines().next().unwrap().to_owned() + "\n";
    let row = history.lines().nth(1).unwrap().to_owned() + "\n";
    const M: usize = 1 << 20;
    let numbered =
        |many: usize, one: &dyn Fn(usize) -> String| (0..many).map(one).collect::<String>();
    let ring: String = (1..=128).map(|k| format!(" {k}")).collect();
    let circle = numbered(128, &|k| {
        let angle = k as f64 / 128.0 * std::f64::consts::TAU;
        format!("v {} {} 0\n", angle.cos(), angle.sin())
    });
    let scenes = [
        "a.".repeat(2 * M - 8) + "a = 1",
        format!("[{}a]", "a.".repeat(2 * M - 8)),
        "a = ".to_owned() + &"[".repeat(4 * M - 8),
        "a = ".to_owned() + &"{a=".repeat(M),
        "[a]\n".repeat(M - 1),
        "[[cloth]]\n".repeat(400_000),
        "[[cloth.pins]]\n".repeat(200_000),
        numbered(300_000, &|k| format!("k{k} = 1\n")),
        format!("{} = 1", "k".repeat(4 * M - 8)),
        format!("title = \"{}\"", "x\\u202e".repeat(M / 2)),
        format!("[time]\nstep = \"{} s\"", "9".repeat(4 * M - 32)),
        format!("[time]\nstep = \"1 {}\"", "s/".repeat(2 * M - 32)),
        format!("[time]\nstep = \"{}\"", "1/".repeat(2 * M - 32)),
        "[[body]]\nshape = \"spher\"\n".repeat(150_000),
        "\n".repeat(4 * M - 1) + "x",
        "#".repeat(4 * M),
    ];
    let objs = [
        "f".to_owned() + &" 1".repeat(10 * M),
        "v".to_owned() + &" 1".repeat(10 * M),
        "f \\\n".repeat(5 * M),
        "\\ ".repeat(10 * M),
        "f ".to_owned() + &"\\\n".repeat(10 * M),
        " ".repeat(20 * M),
        "9".repeat(20 * M),
        "f ".to_owned() + &"9".repeat(20 * M),
        circle.clone() + &format!("f{ring}\n").repeat(4 * M / ring.len()),
        circle.replace(" 0\n", " 1e300\n") + &format!("f{ring}\n").repeat(1000),
        "v 0 0 0\n".repeat(2 * M),
    ];
    let plys = [
        "ply\n".to_owned() + &"comment\n".repeat(2 * M),
        "ply\nformat ascii 1.0\n".to_owned() + &"element a 0\n".repeat(M),
        "ply\nformat ascii 1.0\n".to_owned() + &numbered(M, &|k| format!("element a{k} 0\n")),
        "ply\nformat ascii 1.0\nelement a 1\n".to_owned()
            + &numbered(M, &|k| format!("property int p{k}\n")),
        "ply\n".to_owned() + &"x".repeat(20 * M),
        "ply\nformat ascii 1.0\nelement a 9\nproperty list int int x\nelement vertex 0\nproperty float x\nproperty float y\n\
         property float z\nelement face 1\nproperty list int int vertex_index\nend_header\n"
            .to_owned()
            + &("2000000000".to_owned() + &" 1".repeat(M) + "\n").repeat(9),
    ];
    let stls = [
        "solid\n".to_owned() + &"x".repeat(20 * M),
        "solid\nendsolid\n".repeat(M),
        "solid ".to_owned() + &"facet ".repeat(3 * M),
        "solid\n".to_owned() + &"\n".repeat(20 * M),
        "solid\n".to_owned() + &"\r".repeat(20 * M),
    ];
    let jsons = [
        "[".repeat(20 * M),
        "{\"a\":".repeat(4 * M),
        format!(
            "{{\"schema\":1,\"x\":{}1{}}}",
            "[".repeat(8 * M),
            "]".repeat(8 * M)
        ),
        run_json.replace("\"ranks\": 2", "\"ranks\": 1048576"),
        run_json.replace("\"end_patch\": 8", "\"end_patch\": 1048575"),
        run_json.replace("\"threads\": 1", "\"threads\": 4294967295"),
        run_json.replace(
            "\"warnings\": [",
            &format!("\"warnings\": [{}", "\"\\u001b\",".repeat(M)),
        ),
    ];
    let histories = [
        first.clone() + &row.repeat(20 * M / row.len()),
        first.clone() + &",".repeat(20 * M) + "\n",
        ",".repeat(20 * M) + "\n",
        "#\n".repeat(10 * M),
        first + &"9".repeat(20 * M) + "\n",
    ];
    let mut faults = Vec::new();
    let mut look_at = |file: &str, texts: &[String]| {
        let kind = KINDS.iter().find(|kind| kind.file == file).unwrap();
        let path = place.path(file);
        let whole = fs::read(&path).unwrap();
        for (number, text) in texts.iter().enumerate() {
            fs::write(&path, text).unwrap();
            if let Some(fault) = look(kind.read, &path) {
                faults.push(format!("{fault}: {file} {number}"));
            }
        }
        fs::write(&path, whole).unwrap();
    };
    look_at("small.toml", &scenes);
    look_at("m.obj", &objs);
    look_at("text.ply", &plys);
    look_at("text.stl", &stls);
    look_at("out/run.json", &jsons);
    look_at("out/history.csv", &histories);
    assert!(faults.is_empty(), "{faults:#?}");
}
