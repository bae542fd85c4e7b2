//! Whether all ranks of a run were given the same: options, scene and meshes.
//!
//! Ranks that are to take different numbers of steps would wait for each other for ever; so before
//! the first step each makes a list of named values, and they compare the digests of their lists.
//! Where these differ, the lists travel, one of each kind, and every rank comes to the same error:
//! what differs, and on which ranks. That the ranks run one program is known before
//! ([`BuildIdentity`](crate::build_identity::BuildIdentity)).

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use weft_io::Show as _;
use weft_runtime::comm::{Collectives as _, Comm, CommError, Rank, name_ranks};
use weft_runtime::wire;

use super::error::malformed;
use super::{Audit, Resume, RunError, RunOptions};
use crate::step::World;

/// The most kinds of lists that are looked at; ranks with others are only said to differ.
const MOST_KINDS: usize = 8;
/// The most values that are named.
const MOST_NAMED: usize = 3;
/// Letters of a value that are shown.
const SHOWN: usize = 120;

/// A value that all ranks of a run must have been given alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    source: Source,
    name: String,
    /// Name and value as they are shown.
    said: String,
}

/// The origin of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Source {
    Options,
    Scene,
}

impl Given {
    /// An option with a value, if it was given.
    pub fn option(name: &str, value: Option<impl Display>) -> Self {
        let said = value.map(|value| format!("{name} {value}"));
        Self::said(name, said)
    }

    /// An option without a value, or with one behind an equals sign, as it was given, if it was.
    pub fn said(name: &str, said: Option<String>) -> Self {
        Self::from(Source::Options, name.to_owned(), said)
    }

    /// An option without a value.
    #[must_use]
    pub fn flag(name: &str, given: bool) -> Self {
        Self::said(name, given.then(|| name.to_owned()))
    }

    fn from(source: Source, name: String, said: Option<String>) -> Self {
        let said = said.map_or_else(|| absent(&name), |said| shortened(&said));
        Self { source, name, said }
    }
}

/// How a value that is not there is shown.
fn absent(name: &str) -> String {
    format!("no {name}")
}

/// A value of which not all is shown still differs from others.
fn shortened(text: &str) -> String {
    let Some((end, _)) = text.char_indices().nth(SHOWN) else {
        return text.to_owned();
    };
    format!("{}… (digest {})", &text[..end], digits(text.as_bytes(), 4))
}

/// The first this many bytes of the digest, in hexadecimal.
fn digits(bytes: &[u8], count: usize) -> String {
    let digest = Sha256::digest(bytes);
    let mut text = String::new();
    for byte in digest.iter().take(count) {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// An error in which ranks of one run were given different things; the same on all of them.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("ranks do not run the same: {told}; {}", if *.options {
    "give every rank the same options"
} else {
    "give every rank the same scene, and put the files that it names where all hosts see the same"
})]
pub struct Differences {
    told: String,
    options: bool,
}

impl Differences {
    /// Whether options alone differ, and neither scenes nor the files that they name.
    #[must_use]
    pub(crate) fn of_options(&self) -> bool {
        self.options
    }

    /// Compares lists, each with the ranks that have it in ascending order, those with the first
    /// rank first. `others` are ranks with further lists.
    fn of(lists: &[(Vec<Given>, Vec<u32>)], others: &[u32]) -> Self {
        let mut names: Vec<(Source, &str)> = Vec::new();
        let by_name: Vec<BTreeMap<&str, &str>> = lists
            .iter()
            .map(|(list, _)| {
                for given in list {
                    let name = (given.source, &given.name[..]);
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
                let pairs = list.iter().map(|given| (&given.name[..], &given.said[..]));
                pairs.collect()
            })
            .collect();
        let mut told = Vec::new();
        let (mut options, mut unnamed) = (true, 0);
        for (source, name) in names {
            let mut by_value: Vec<(String, Vec<u32>)> = Vec::new();
            for (values, (_, ranks)) in by_name.iter().zip(lists) {
                let value = values.get(name);
                let value = value.map_or_else(|| absent(name), |value| (*value).to_owned());
                match by_value.iter_mut().find(|(other, _)| *other == value) {
                    Some((_, all)) => all.extend(ranks),
                    None => by_value.push((value, ranks.clone())),
                }
            }
            let [(usual, here), different @ ..] = &by_value[..] else {
                continue;
            };
            if different.is_empty() {
                continue;
            }
            options &= source == Source::Options;
            if told.len() == MOST_NAMED {
                unnamed += 1;
                continue;
            }
            let have = |(value, ranks): &(String, Vec<u32>)| holders(value, ranks);
            let different: Vec<String> = different.iter().map(have).collect();
            let different = different.join(" and ");
            told.push(format!("{different} where {}", holders(usual, here)));
        }
        if unnamed > 0 {
            told.push(format!("{unnamed} more values differ"));
        }
        if !others.is_empty() {
            told.push(format!("{} differ in other ways", named(others)));
        }
        Self {
            told: told.join("; "),
            options,
        }
    }
}

/// The ranks that have a value.
fn holders(value: &str, ranks: &[u32]) -> String {
    let have = if ranks.len() == 1 { "has" } else { "have" };
    format!("{} {have} {value}", named(ranks))
}

fn named(ranks: &[u32]) -> String {
    let mut ranks: Vec<Rank> = ranks.iter().copied().map(Rank).collect();
    ranks.sort_unstable();
    name_ranks(&ranks)
}

/// Makes sure that all ranks were given the same. Collective: the outcome is the same on all of
/// them.
///
/// # Errors
/// [`RunError::Differ`]: what they were given differently. Or messages failed.
pub fn compare(given: &[Given], comm: &mut dyn Comm) -> Result<(), RunError> {
    let me = comm.rank();
    let unsendable = || CommError::unsendable(me, "what it was given");
    let own = wire::encode(&given).map_err(unsendable())?;
    let digests = comm.allgather(Sha256::digest(&own).to_vec())?;
    let mut kinds: Vec<(&[u8], Vec<u32>)> = Vec::new();
    let mut others = Vec::new();
    for (rank, digest) in (0..).zip(&digests) {
        match kinds.iter().position(|(other, _)| *other == &digest[..]) {
            Some(at) => kinds[at].1.push(rank),
            None if kinds.len() < MOST_KINDS => kinds.push((digest, vec![rank])),
            None => others.push(rank),
        }
    }
    if kinds.len() == 1 {
        return Ok(());
    }
    let mut lists = Vec::new();
    for (_, ranks) in kinds {
        let first = Rank(ranks[0]);
        let list = if me == first { own.clone() } else { Vec::new() };
        let list = comm.broadcast(first, list)?;
        lists.push((wire::decode(&list).map_err(malformed(first))?, ranks));
    }
    Err(Differences::of(&lists, &others).into())
}

/// The options that must be alike on all ranks, beside the scene. The number of workers is one of
/// them: the record has one number, and pictures are shared out by it.
pub(super) fn of_options(options: &RunOptions) -> Vec<Given> {
    let RunOptions {
        ranks,
        threads,
        progress_thread,
        driver,
        steps,
        out,
        resume,
        trace,
        record,
        audit,
        // Each process has its own memory.
        memory: _,
        // A rank that is asked to stop says so to the others.
        stop: _,
        overwrite,
        // Rank 0 alone shows, writes and keeps these.
        begun: _,
        progress: _,
        command: _,
        hosts: _,
        mpi: _,
    } = options;
    vec![
        Given::option("--comm", Some(driver.name())),
        Given::option("--ranks", Some(ranks)),
        Given::option("--threads", Some(threads)),
        Given::flag("--progress-thread", *progress_thread),
        Given::option("--steps", steps.as_ref()),
        Given::option("--out", Some(out.shown())),
        resume_given(resume.as_ref()),
        Given::flag("--overwrite", *overwrite),
        Given::said("--trace", trace.map(|steps| format!("--trace={steps}"))),
        Given::said(
            "--record",
            record.map(|steps| match steps {
                Some(steps) => format!("--record={steps}"),
                None => "--record".to_owned(),
            }),
        ),
        Given::said(
            "--audit",
            audit.map(|audit| match audit {
                Audit::Count => "--audit".to_owned(),
                Audit::Strict => "--audit=strict".to_owned(),
            }),
        ),
    ]
}

/// The state that a run is to go on from.
fn resume_given(resume: Option<&Resume>) -> Given {
    Given::said(
        "--resume",
        resume.map(|resume| match resume {
            Resume::Newest => "--resume".to_owned(),
            Resume::Auto => "--resume=auto".to_owned(),
            Resume::From(path) => format!("--resume={}", path.shown()),
        }),
    )
}

/// The keys of a world's scene, and its meshes.
pub(super) fn of_world(world: &World) -> Vec<Given> {
    let mut all = of_scene(&world.scene().echo());
    all.push(Given::from(
        Source::Scene,
        "meshes".to_owned(),
        Some(format!(
            "meshes with the digest {}",
            digits(world.digest().as_bytes(), 8)
        )),
    ));
    if let Some(file) = &world.scene().partition.file {
        let cut = match world.prepared_digest() {
            Some(digest) => digits(digest, 8),
            None => digits(bytemuck::cast_slice(world.tree().new_to_old()), 8),
        };
        let said = format!("a prepared cut with the digest {cut} in {}", file.shown());
        let name = "prepared cut".to_owned();
        all.push(Given::from(Source::Scene, name, Some(said)));
    }
    all
}

/// The lines of a scene that is written out, by key and table.
fn of_scene(echo: &str) -> Vec<Given> {
    let mut tables: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut table, mut key) = (String::new(), "");
    // Lines of a list belong to its key.
    let mut of_list = 0;
    let mut all = Vec::new();
    for line in echo.lines().filter(|line| !line.trim().is_empty()) {
        if line.starts_with('[') {
            let count = tables.entry(line).or_default();
            *count += 1;
            table = match *count {
                1 => format!(" in {line}"),
                count => format!(" in {line} number {count}"),
            };
            key = "";
            continue;
        }
        let assigned = line
            .split_once('=')
            .filter(|_| !line.starts_with([' ', ']', '}']));
        let name = match assigned {
            Some((name, _)) => {
                (key, of_list) = (name.trim(), 0);
                format!("`{key}`{table}")
            }
            None => {
                of_list += 1;
                format!("line {of_list} of `{key}`{table}")
            }
        };
        let said = match of_list {
            0 => format!("`{line}`{table}"),
            _ => format!("`{}` of `{key}`{table}", line.trim()),
        };
        all.push(Given::from(Source::Scene, name, Some(said)));
    }
    all
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use weft_runtime::comm::threads::launch;
    use weft_runtime::comm::virtual_time::{self, VirtualOptions};

    use super::*;
    use crate::memory::Limit;
    use crate::run::{Begun, Driver, Show, Stop, run_rank};
    use crate::scene::Scene;

    fn steps(count: Option<u64>) -> Given {
        Given::option("--steps", count)
    }

    /// The findings of ranks that were given these lists, on several drivers: the same on each.
    fn found(lists: &[Vec<Given>]) -> Option<String> {
        let body = |comm: &mut dyn Comm| {
            let outcome = compare(&lists[comm.rank().index()], comm);
            outcome
                .err()
                .map(|error| (error.to_string(), error.exit_code()))
        };
        let machine = VirtualOptions::default();
        let mut all = virtual_time::launch(lists.len(), &machine, body)
            .unwrap()
            .results;
        all.extend(launch(lists.len(), body).unwrap());
        let first = all[0].clone();
        assert!(all.iter().all(|one| *one == first), "{all:?}");
        first.map(|(text, code)| {
            assert_eq!(code, if text.contains("options") { 2 } else { 3 });
            text
        })
    }

    #[test]
    fn ranks_that_were_given_the_same_go_on() {
        let given = vec![steps(Some(3)), Given::flag("--quiet", false)];
        for ranks in [1, 2, 7] {
            assert_eq!(found(&vec![given.clone(); ranks]), None);
        }
    }

    #[test]
    fn differences_are_named_with_the_ranks_that_have_them() {
        let list = |count| vec![Given::flag("--audit", true), steps(count)];
        assert_eq!(
            found(&[list(Some(40)), list(Some(30)), list(Some(30))]).unwrap(),
            "ranks do not run the same: ranks 1 and 2 have --steps 30 where rank 0 has --steps 40; give every rank the \
             same options"
        );
        assert_eq!(
            found(&[
                list(None),
                list(None),
                list(Some(7)),
                list(None),
                list(Some(9))
            ])
            .unwrap(),
            "ranks do not run the same: rank 2 has --steps 7 and rank 4 has --steps 9 where ranks 0, 1 and 3 have no --steps; \
             give every rank the same options"
        );
    }

    #[test]
    fn a_value_that_one_list_lacks_differs() {
        let short = vec![steps(Some(4))];
        let set = Given::said("--set time.step", Some("--set time.step=3ms".to_owned()));
        let long = vec![steps(Some(4)), set];
        let text = found(&[short.clone(), long.clone()]).unwrap();
        assert!(
            text.contains("rank 1 has --set time.step=3ms where rank 0 has no --set time.step"),
            "{text}"
        );
        let text = found(&[long, short]).unwrap();
        assert!(
            text.contains("rank 1 has no --set time.step where"),
            "{text}"
        );
    }

    #[test]
    fn much_that_differs_is_told_in_few_words() {
        let list = |rank: usize| {
            let value = |at: usize| {
                let value = "long ".repeat(100 * at) + &rank.to_string();
                Given::option(&format!("--option-{at}"), Some(value))
            };
            (0..9).map(value).collect::<Vec<_>>()
        };
        let lists: Vec<_> = (0..20).map(list).collect();
        let text = found(&lists).unwrap();
        assert!(
            text.contains("rank 1 has --option-0 1 and rank 2"),
            "{text}"
        );
        assert!(text.contains("6 more values differ"), "{text}");
        assert!(
            text.contains("ranks 8 to 19 differ in other ways"),
            "{text}"
        );
        assert!(text.len() < 4500, "{}", text.len());
        // Values of which not all is shown differ all the same.
        let long = |end: &str| vec![Given::option("--out", Some("x".repeat(500) + end))];
        assert!(found(&[long("a"), long("b")]).is_some());
    }

    fn options(out: &Path) -> RunOptions {
        RunOptions {
            ranks: 3,
            threads: 1,
            progress_thread: false,
            driver: Driver::Threads,
            memory: Limit::Left,
            steps: Some(2),
            out: out.to_owned(),
            resume: None,
            overwrite: false,
            begun: Begun::default(),
            stop: Stop::default(),
            trace: None,
            record: None,
            audit: None,
            progress: Show::Nothing,
            command: Vec::new(),
            hosts: Vec::new(),
            mpi: None,
        }
    }

    const SCENE: &str = "partition.patches = 4
        output = { pictures = false, frames = false }
        [[cloth]]
        grid = { size = 1, vertices = 8 }
        material = { density = 0.15, stretch = 1000, bending = 1e-5 }\n";

    /// A rank that gets something else of the run, each in turn, and the message about it.
    #[test]
    fn ranks_that_take_part_in_other_runs_end_before_anything_is_written() {
        type Change = fn(&mut RunOptions);
        let changes: [(Change, &str); 11] = [
            (
                |o| o.steps = Some(3),
                "--steps 3 where ranks 0 and 2 have --steps 2",
            ),
            (|o| o.steps = None, "no --steps where"),
            (
                |o| o.threads = 2,
                "--threads 2 where ranks 0 and 2 have --threads 1",
            ),
            (
                |o| o.progress_thread = true,
                "--progress-thread where ranks 0 and 2 have no --progress-thread",
            ),
            (|o| o.out.push("other"), "other where"),
            (
                |o| o.resume = Some(Resume::Newest),
                "--resume where ranks 0 and 2 have no --resume",
            ),
            (|o| o.resume = Some(Resume::Auto), "--resume=auto where"),
            (|o| o.overwrite = true, "--overwrite where"),
            (|o| o.trace = "1..".parse().ok(), "--trace=1.. where"),
            (|o| o.audit = Some(Audit::Strict), "--audit=strict where"),
            (|o| o.record = Some(None), "--record where"),
        ];
        let world = World::build(&Scene::parse(SCENE, None, &[]).unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        for (change, told) in changes {
            let outcomes = launch(3, |comm| {
                let mut options = options(&out);
                if comm.rank() == Rank(1) {
                    change(&mut options);
                }
                run_rank(&world, &options, comm).map(|_| ()).unwrap_err()
            });
            for error in outcomes.unwrap() {
                assert_eq!(error.exit_code(), 2);
                let text = error.to_string();
                assert!(
                    text.contains(told) && text.contains(": rank 1 has "),
                    "{text}"
                );
            }
            assert!(!out.exists());
        }
        let outcomes = launch(3, |comm| run_rank(&world, &options(&out), comm).map(|_| ()));
        assert!(outcomes.unwrap().iter().all(Result::is_ok));
    }

    #[test]
    fn ranks_that_have_read_other_scenes_or_meshes_do_not_begin() {
        let folder = tempfile::tempdir().unwrap();
        let world = |scene: &str| World::build(&Scene::parse(scene, None, &[]).unwrap()).unwrap();
        let usual = world(SCENE);
        let longer = world(&SCENE.replace("size = 1,", "size = 1.5,"));
        let out = folder.path().join("out");
        let outcomes = launch(4, |comm| {
            let world = if comm.rank().0 < 2 { &usual } else { &longer };
            run_rank(world, &options(&out), comm)
                .map(|_| ())
                .unwrap_err()
        });
        for error in outcomes.unwrap() {
            assert_eq!(error.exit_code(), 3);
            let text = error.to_string();
            assert!(text.contains("\"1.5 m\""), "{text}");
            assert!(
                text.contains("; ranks 2 and 3 have meshes with the digest "),
                "{text}"
            );
            assert!(text.contains("where ranks 0 and 1 have"), "{text}");
        }
        assert!(!out.exists());
    }

    #[test]
    fn keys_of_a_scene_are_told_with_their_tables() {
        let scene = "title = \"a\"\n\n[time]\nstep = \"0.01 s\"\n\n[[cloth]]\nname = \"a\"\npins = [ # m\n    { nearest = [0, 0, 0] },\n]\n\
                     [[cloth]]\nname = \"b\"\n";
        let other = scene
            .replace("0.01", "0.02")
            .replace("\"b\"", "\"c\"")
            .replace("[0, 0, 0]", "[0, 1, 0]");
        let text = found(&[of_scene(scene), of_scene(&other)]).unwrap();
        for told in [
            "rank 1 has `step = \"0.02 s\"` in [time] where rank 0 has `step = \"0.01 s\"` in [time]",
            "rank 1 has `name = \"c\"` in [[cloth]] number 2 where",
            "rank 1 has `{ nearest = [0, 1, 0] },` of `pins` in [[cloth]] where",
        ] {
            assert!(text.contains(told), "{text}");
        }
    }
}
