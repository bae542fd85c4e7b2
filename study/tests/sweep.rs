//! Sweeps over a made-up record in which one patch has nearly all collisions.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use weft_balance::cost::{Against, TestCost};
use weft_balance::preparation::PatchSizes;
use weft_balance::prices::{Counts, Prices, TestPrices};
use weft_balance::separation::Tile;
use weft_balance::work::work;
use weft_study::chart;
use weft_study::directory::DirectoryError;
use weft_study::layout::{Layout, LayoutError};
use weft_study::plan::{Plan, Point};
use weft_study::record::{
    Border, Column, Header, Patch, Record, RecordError, RecordWriter, Route, Step, Task,
};
use weft_study::shape::{Kind, Tree, Visit};
use weft_study::sweep::{Label, Measured, Progress, Replayed, Results, Source, SweepError, sweep};
use weft_study::synthetic::{CopiesError, MOST_PATCHES};
use weft_study::tables::{Row, csv, rows, text};

const PATCHES: u32 = 8;

/// A tree of about this many tests, and how many contacts it has.
fn tree(tests: u32, seed: u32) -> (Tree, u32) {
    let (mut visits, mut contacts) = (Vec::new(), 0);
    let mut random = seed.wrapping_mul(2_654_435_761) | 1;
    // Tests that are still to be made below each entry of the stack.
    let mut stack = vec![tests];
    while let Some(below) = stack.pop() {
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        let leaf = below < 4;
        let children = if leaf { 0 } else { 2 + random % 3 };
        // Some children have twice as many below them as others.
        stack.extend((0..children).map(|child| below * (1 + child % 2) / (2 * children)));
        contacts += if leaf { random % 2 } else { 0 };
        visits.push(Visit {
            kind: if leaf { Kind::Leaf } else { Kind::Inner },
            children,
            tests: if leaf { 1 } else { 4 },
            contacts: if leaf { random % 2 } else { 0 },
        });
    }
    (Tree::from_visits(visits).unwrap(), contacts)
}

fn prices() -> Prices {
    let tests = TestPrices {
        volumes: 40.0,
        leaf: 200.0,
        near: 20.0,
        contact: 50.0,
    };
    Prices {
        cloth: tests,
        body: tests,
        target: 20.0,
        corner: 4.0,
        begin: 400.0,
        vertex: 30.0,
        way: 20.0,
        measure: 50.0,
        node: 10.0,
        touched: 0.0,
        gradient: 40.0,
        separation: 4000.0,
        contact: 100.0,
        forecast: 20.0,
        shift: 70.0,
        assemble: 20.0,
        product: 2.0,
        coarse_factor: 1000.0,
        coarse_solve: 100.0,
        row: 30.0,
        respond: 10.0,
        share: 5.0,
    }
}

fn header() -> Header {
    let border = |owner: u32| Border {
        owner,
        readers: vec![(owner + 1) % PATCHES],
        vertices: 20,
    };
    let tile = |number: u32| Tile {
        triangles: 500,
        beside: (number + 1..5).take(1).collect(),
    };
    let column = |number: u32| Column {
        patch: number / 2,
        rows: (number + 1..16).take(2).collect(),
    };
    Header {
        program: "a test".into(),
        scene: "one-corner".into(),
        title: "All collisions in one corner".into(),
        bodies: 1,
        self_collision: true,
        patches: vec![
            Patch {
                vertices: 200,
                weight: 9000,
                sizes: PatchSizes {
                    around: 230,
                    nodes: 719,
                    pieces: vec![44; 16],
                    // A vertex in nine is one of two pieces.
                    vertices: (0..16)
                        .flat_map(|at| [(1 << at, 12), (3 << at & 0xFFFF, 2)])
                        .collect(),
                },
            };
            PATCHES as usize
        ],
        tiles: (0..5).map(tile).collect(),
        borders: (0..PATCHES).map(border).collect(),
        aggregates: 16,
        coarse: (0..16).map(column).collect(),
        aggregate_bytes: 24,
        contact_bytes: 129,
        state_bytes: 48,
    }
}

fn step(number: u64) -> Step {
    let mut tasks = Vec::new();
    for patch in 0..PATCHES {
        // One patch has some hundred times the tests of the others.
        let tests = if patch == 0 { 400_000 } else { 1000 };
        let (tree, contacts) = tree(tests, patch + 10 * number as u32 + 1);
        let routes = vec![Route {
            patches: vec![patch],
            contacts,
        }];
        tasks.push(Task {
            patch,
            against: Against::Body(0),
            tree,
            routes,
            met: [0; 2],
        });
    }
    // The cost that the step before would have had.
    let test = |task: &Task| {
        let mut counts = Counts::default();
        task.tree
            .visits()
            .for_each(|visit| visit.add_to(&mut counts));
        TestCost {
            patch: task.patch,
            against: task.against,
            work: work(task.against, &counts) as u32,
        }
    };
    Step {
        number,
        forecast: tasks.iter().map(test).collect(),
        plans: number == 1,
        products: 10,
        systems: 1,
        rounds: 8,
        looks: 2,
        passes: 3,
        prices: prices(),
        tasks,
        ..Step::default()
    }
}

fn write(path: &Path, steps: u64) {
    let mut writer = RecordWriter::create(path, &header()).unwrap();
    for number in 1..=steps {
        writer.step(&step(number)).unwrap();
    }
    writer.finish().unwrap();
}

fn recorded(folder: &Path) -> PathBuf {
    let path = folder.join("made-up.weftrec");
    write(&path, 2);
    path
}

fn plan() -> Plan {
    Plan {
        ranks: vec![1, 2, 8],
        policies: ["static", "every-other", "forecast-static", "forecast"]
            .map(str::to_owned)
            .into(),
        networks: vec!["hdr-infiniband".into()],
        repeat: 2,
        collide_only: false,
        slower: 1.0,
        ready_free: false,
        real: false,
    }
}

fn swept(record: &Path, out: &Path, threads: usize) -> Result<Results, SweepError> {
    let source = Replayed::open(record)?;
    let sources: [&dyn Source; 1] = [&source];
    sweep(&plan(), &sources, out, threads, &|_| {
        ControlFlow::Continue(())
    })
}

fn find<'a>(rows: &'a [Row], policy: &str, phase: &str, ranks: usize) -> &'a Row {
    let is = |row: &&Row| row.policy == policy && row.phase == phase && row.ranks == ranks;
    rows.iter().find(is).unwrap()
}

#[test]
fn where_one_rank_has_all_collisions_stealing_mends_it_and_no_bound_is_broken() {
    let folder = tempfile::tempdir().unwrap();
    let record = recorded(folder.path());
    let results = swept(&record, &folder.path().join("out"), 2).unwrap();
    let rows = rows(&plan(), &results);
    let none = find(&rows, "static", "collide", 8);
    let best = find(&rows, "every-other", "collide", 8);
    assert!(
        none.speedup < 1.5 && none.longest_bound_ms.unwrap() > 0.6 * none.time_ms,
        "{none:?}"
    );
    assert!(best.speedup > 2.5 * none.speedup, "{best:?}");
    // A policy that foresees it needs no stealing, or less of it.
    let foreseen = find(&rows, "forecast-static", "collide", 8);
    assert!(foreseen.speedup > 2.5 * none.speedup, "{foreseen:?}");
    let both = find(&rows, "forecast", "collide", 8);
    assert!(both.time_ms < best.time_ms, "{both:?} {best:?}");
    for row in &rows {
        assert!(row.speedup <= 1.0001 * row.ranks as f64, "{row:?}");
        let least = [
            row.work_bound_ms,
            row.longest_bound_ms,
            row.latency_bound_ms,
        ];
        // Pieces and rounds of messages are those of collisions; of other phases they are not
        // known, which is not 0.
        let known = if row.phase == "collide" { 3 } else { 1 };
        assert_eq!(least.iter().flatten().count(), known, "{row:?}");
        let least = least.into_iter().flatten().fold(0.0, f64::max);
        assert!(row.time_ms >= 0.999 * least, "{row:?}");
        assert!(row.speedup <= 1.001 * row.bound.unwrap(), "{row:?}");
        let not_computing = row.not_computing.unwrap();
        assert!((0.0..1.0).contains(&not_computing), "{row:?}");
    }
    // Nothing is left to chance without stealing; seeds change who asks whom.
    assert_eq!(none.deviation_ms, 0.0);
    assert!(best.repeats == 2 && best.confidence_ms >= best.deviation_ms);
    for (_, drawing) in chart::plots(&rows) {
        assert!(drawing.svg().starts_with("<svg") && drawing.svg().ends_with("</svg>\n"));
        let png = drawing.png().unwrap();
        let reader = png::Decoder::new(std::io::Cursor::new(&png))
            .read_info()
            .unwrap();
        assert!(reader.info().width > 400);
    }
}

#[test]
fn a_sweep_is_the_same_on_any_threads_and_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let record = recorded(folder.path());
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    let first = swept(&record, &one, 1).unwrap();
    let text = csv(&rows(&plan(), &first));
    assert_eq!(text, csv(&rows(&plan(), &swept(&record, &two, 3).unwrap())));
    // The time of one rank is among the points.
    let count = plan().points(1).len();
    let again = swept(&record, &one, 2).unwrap();
    assert_eq!((again.found, again.stale), (count, 0));
    // One file is lost, one is cut off.
    let mut files: Vec<_> = fs::read_dir(one.join("points"))
        .unwrap()
        .map(|f| f.unwrap().path())
        .collect();
    files.sort();
    fs::remove_file(&files[0]).unwrap();
    fs::write(&files[3], b"{\"format\":").unwrap();
    let mended = swept(&record, &one, 2).unwrap();
    assert!(mended.found < count && mended.stale == 0);
    assert_eq!(mended.damaged, 1);
    assert_eq!(text, csv(&rows(&plan(), &mended)));
    // Another record: nothing of the old one counts.
    write(&record, 3);
    let other = swept(&record, &one, 2).unwrap();
    assert_eq!((other.found, other.stale), (0, count));
}

#[test]
fn a_sweep_that_is_stopped_keeps_what_it_has_and_does_the_rest_the_next_time() {
    let folder = tempfile::tempdir().unwrap();
    let (record, out) = (recorded(folder.path()), folder.path().join("out"));
    let source = Replayed::open(&record).unwrap();
    let stop = |progress: &Progress<'_>| match progress.done {
        3.. => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    let stopped = sweep(&plan(), &[&source], &out, 1, &stop).unwrap_err();
    assert!(matches!(stopped, SweepError::Stopped), "{stopped}");
    let whole = swept(&record, &out, 2).unwrap();
    assert_eq!((whole.found, whole.stale, whole.damaged), (3, 0, 0));
    let other = swept(&record, &folder.path().join("other"), 2).unwrap();
    assert_eq!(csv(&rows(&plan(), &whole)), csv(&rows(&plan(), &other)));
    // A study may be asked to stop after its last point is done.
    let all = sweep(&plan(), &[&source], &out, 1, &|_| ControlFlow::Break(()));
    assert!(all.is_ok());
}

/// A source that knows times only, as runs on this machine do.
struct TimesOnly(Replayed);

impl Source for TimesOnly {
    fn label(&self) -> &Label {
        self.0.label()
    }

    fn digest(&self) -> String {
        "times only".to_owned()
    }

    fn measure(&self, point: &Point, plan: &Plan) -> Result<Measured, SweepError> {
        let all = self.0.measure(point, plan)?;
        Ok(Measured {
            steps: all.steps,
            phases: all.phases,
            whole: all.whole,
            ..Measured::default()
        })
    }
}

#[test]
fn unknown_values_are_no_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let source = TimesOnly(Replayed::open(&recorded(folder.path())).unwrap());
    let out = folder.path().join("out");
    let results = sweep(&plan(), &[&source], &out, 2, &|_| ControlFlow::Continue(())).unwrap();
    let rows = rows(&plan(), &results);
    for line in csv(&rows).lines().skip(1) {
        // Bounds, the best speed-up and what is not computed, before the number of patches.
        assert!(line.ends_with(",,,,,,8"), "{line}");
    }
    let json = serde_json::to_value(&rows[0]).unwrap();
    for name in [
        "work_bound_ms",
        "longest_bound_ms",
        "latency_bound_ms",
        "bound",
        "not_computing",
    ] {
        assert_eq!(json[name], serde_json::Value::Null, "{name}");
    }
    assert!(rows[0].speedup > 0.0);
    let table = text(&rows, "collide");
    assert!(table.contains("not known"), "{table}");
    for (_, drawing) in chart::plots(&rows) {
        assert!(!drawing.svg().contains("best possible"));
    }
}

#[test]
fn a_directory_of_somebody_else_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let record = recorded(folder.path());
    let out = folder.path().join("letters");
    fs::create_dir(&out).unwrap();
    fs::write(out.join("to-a-friend"), "hello").unwrap();
    assert!(matches!(
        swept(&record, &out, 1),
        Err(SweepError::Directory(DirectoryError::Foreign { .. }))
    ));
}

#[test]
fn more_ranks_than_patches_are_refused_and_none_too() {
    let error = Layout::new(&header(), 9).unwrap_err();
    assert_eq!(
        error,
        LayoutError::TooManyRanks {
            ranks: 9,
            patches: 8,
            more: 16
        }
    );
    assert!(error.to_string().contains("partition.patches=16"));
    assert_eq!(Layout::new(&header(), 0).unwrap_err(), LayoutError::NoRanks);
    // Before anything is measured.
    let folder = tempfile::tempdir().unwrap();
    let (record, out) = (recorded(folder.path()), folder.path().join("out"));
    let mut plan = plan();
    plan.ranks.push(9);
    let source = Replayed::open(&record).unwrap();
    let all = |_: &Progress<'_>| -> ControlFlow<()> { panic!("nothing is to be measured") };
    let refused = sweep(&plan, &[&source], &out, 1, &all).unwrap_err();
    assert!(matches!(refused, SweepError::Layout(_)), "{refused}");
    assert!(!out.exists());
    // Two copies have patches for them.
    assert_eq!(source.copied(2).unwrap().label().patches, 16);
}

#[test]
fn broken_records_are_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let record = recorded(folder.path());
    let good = fs::read(&record).unwrap();
    let path = folder.path().join("bad.weftrec");
    let open = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        Record::open(&path).and_then(|mut record| {
            (0..record.steps()).try_for_each(|index| record.step(index).map(drop))
        })
    };
    assert!(open(&good).is_ok());
    assert!(matches!(open(b""), Err(RecordError::Foreign { .. })));
    assert!(matches!(
        open(b"no record at all"),
        Err(RecordError::Foreign { .. })
    ));
    let mut bytes = good.clone();
    for other in [6, 99] {
        bytes[7] = other;
        assert!(matches!(
            open(&bytes),
            Err(RecordError::Version { found, .. }) if found == other
        ));
    }
    let mut previous = 0;
    for length in (8..good.len()).step_by(good.len() / 37) {
        assert!(open(&good[..length]).is_err(), "cut off after {length}");
        previous = length;
    }
    assert!(previous > 8);
    // Cut off within its last piece, before that, and in the head of a piece.
    for less in [1, 9, good.len() / 2, good.len() - 12] {
        let cut = open(&good[..good.len() - less]);
        assert!(
            matches!(cut, Err(RecordError::Truncated { .. })),
            "{less}: {cut:?}"
        );
    }
    // The bytes behind it may be shorter than the head of a piece, or no piece, or another record.
    for more in [&b"x"[..], b"junk at the end of it", &[0; 64], &good] {
        let longer = open(&[&good, more].concat());
        assert!(
            matches!(longer, Err(RecordError::Longer { bytes, .. }) if bytes == more.len() as u64),
            "{longer:?}"
        );
    }
    // Whichever byte is changed, it is noticed or was in a length, which then fits nothing.
    for at in (8..good.len()).step_by(good.len() / 211) {
        let mut bytes = good.clone();
        bytes[at] ^= 0x40;
        assert!(open(&bytes).is_err(), "byte {at} changed");
    }
    let none = folder.path().join("none.weftrec");
    assert!(matches!(Record::open(&none), Err(RecordError::Io { .. })));
    RecordWriter::create(&none, &header())
        .unwrap()
        .finish()
        .unwrap();
    assert!(matches!(
        Record::open(&none),
        Err(RecordError::Empty { .. })
    ));
}

/// Steps before those that count are in no time and no count; forecasts are made of what they cost,
/// and nothing else is.
#[test]
fn steps_that_lead_to_others_do_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let (alone, led) = (recorded(folder.path()), folder.path().join("led.weftrec"));
    let mut writer = RecordWriter::create(&led, &header()).unwrap();
    for number in 3..=6 {
        let mut lead = step(number);
        lead.plans = number % 2 == 0;
        // In these another patch has nearly all tests.
        lead.tasks.swap(0, 5);
        for (patch, task) in (0..).zip(&mut lead.tasks) {
            task.patch = patch;
        }
        lead.prices = lead.prices.slower(7.0);
        writer.warm_up_step(&lead).unwrap();
    }
    for number in 1..=2 {
        writer
            .step(&Step {
                plans: false,
                ..step(number)
            })
            .unwrap();
    }
    writer.finish().unwrap();
    let mut record = Record::open(&led).unwrap();
    assert_eq!((record.warm_up_steps(), record.steps()), (4, 2));
    assert_eq!(
        (
            record.warm_up_step(3).unwrap().number,
            record.step(0).unwrap().number
        ),
        (6, 1)
    );
    assert_eq!(record.end().prices, prices());
    let of = |path: &Path, out: &str| {
        let results = swept(path, &folder.path().join(out), 2).unwrap();
        rows(&plan(), &results)
    };
    let (alone, led) = (of(&alone, "alone"), of(&led, "led"));
    for policy in ["static", "every-other"] {
        let at = |rows: &[Row]| find(rows, policy, "collide", 8).time_ms;
        assert_eq!(at(&alone), at(&led), "{policy}");
    }
    // A forecast of other steps is none.
    let at = |rows: &[Row]| find(rows, "forecast-static", "collide", 8).speedup;
    assert!(at(&led) < 0.7 * at(&alone), "{} {}", at(&led), at(&alone));
}

/// A study with more copies than numbers of patches, tiles or coarse unknowns reach is refused
/// before any copy is made.
#[test]
fn more_copies_than_a_study_has_room_for_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let record = recorded(folder.path());
    let copied = |copies: u32| {
        let source = Replayed::open(&record).unwrap().copied(copies);
        source.map(|source| source.label().patches)
    };
    let most = MOST_PATCHES / PATCHES as usize;
    assert_eq!(copied(4096), Ok(4096 * PATCHES as usize));
    assert_eq!(copied(most as u32), Ok(MOST_PATCHES));
    for copies in [2 * most as u32, 1 << 29, 1 << 31] {
        let patches = PATCHES as usize;
        let error = CopiesError::Patches {
            copies,
            patches,
            most,
        };
        assert_eq!(copied(copies), Err(error));
    }
    for copies in [0, 3, u32::MAX] {
        assert_eq!(copied(copies), Err(CopiesError::NoPower(copies)));
    }
    // A cloth with more patches than all copies of another may have is studied as it is.
    assert_eq!(CopiesError::check(4 * MOST_PATCHES, 1), Ok(()));
    assert_eq!(CopiesError::check_vertices(100_000, 2048), Ok(()));
    let error = CopiesError::check_vertices(100_000, 4096).unwrap_err();
    assert!(error.to_string().contains("at most 2684 fit"), "{error}");
    assert_eq!(CopiesError::check_vertices(1 << 30, 1), Ok(()));
    assert_eq!(CopiesError::check_numbers(1 << 16, 1 << 15), Ok(()));
    let error = CopiesError::check_numbers(1 << 16, 1 << 16).unwrap_err();
    assert!(error.to_string().contains("at most 65535"), "{error}");
}

#[test]
fn copies_have_copied_work_and_run_on_as_many_more_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let record = recorded(folder.path());
    let source = Replayed::open(&record).unwrap().copied(16).unwrap();
    assert_eq!(source.label().name, "one-corner-x16");
    let plan = Plan {
        ranks: vec![128],
        policies: vec!["every-other".into()],
        collide_only: true,
        repeat: 1,
        ..plan()
    };
    let sources: [&dyn Source; 1] = [&source];
    let results = sweep(&plan, &sources, &folder.path().join("out"), 2, &|_| {
        ControlFlow::Continue(())
    })
    .unwrap();
    let mut single = Record::open(&record).unwrap();
    let tests: u64 = (0..2)
        .map(|index| single.step(index).unwrap().counts().tests())
        .sum();
    assert_eq!(results.alone[0][0].tests, Some(16 * tests));
    assert_eq!(results.points[0].measured.tests, Some(16 * tests));
}
