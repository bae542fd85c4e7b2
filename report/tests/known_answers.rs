//! Reports of runs whose every nanosecond is known.

#![allow(clippy::unwrap_used, reason = "a test without its files has failed")]

mod made;

use proptest::prelude::*;
use weft_report::{
    Digest, Division, Findings, Histogram, Phase, Report, Run, Tracks, Use, patches, sizes, steals,
    stolen,
};
use weft_runtime::Policy;
use weft_runtime::trace::{Sharing, Timeline, What};

use self::made::{ALLGATHER, COLLIDE, EXCHANGE, SOLVE, STEP, empty, scope, span, two_ranks};

fn digest(timelines: &[Timeline]) -> (Run, Digest) {
    let root = tempfile::tempdir().unwrap();
    made::directory(root.path(), timelines, "0");
    let run = Run::read(root.path()).unwrap();
    let digest = Digest::of(&run);
    (run, digest)
}

#[test]
fn every_nanosecond_has_its_cause() {
    let tracks = Tracks::of(&two_ranks(), 1);
    let division = Division::of(&tracks, 1);
    let of = |rank: usize| {
        let parts = division.rank(rank);
        let found = Use::ALL.into_iter().map(|what| (what, parts.of(what)));
        found.filter(|&(_, ns)| ns > 0).collect::<Vec<_>>()
    };
    assert_eq!(
        of(0),
        [
            (Use::Tasks, 400),
            (Use::Phase, 400),
            (Use::NoWork, 100),
            (Use::Reduction, 100)
        ]
    );
    assert_eq!(
        of(1),
        [
            (Use::Tasks, 100),
            (Use::Phase, 460),
            (Use::Held, 100),
            (Use::Running, 100),
            (Use::NoWork, 100),
            (Use::Answer, 100),
            (Use::Messages, 40),
        ]
    );
    assert_eq!(division.all().total(), 2000);
    let collide = tracks
        .phases
        .iter()
        .position(|name| name == "collide")
        .unwrap();
    assert_eq!(division.phase(collide).total(), 1200);
}

#[test]
fn blocks_and_the_runtime_are_told_apart() {
    let mut all = empty(0);
    span(&mut all, COLLIDE, 0, 100, 0);
    span(&mut all, STEP, 0, 100, 1);
    scope(
        &mut all,
        1,
        &[
            (0, What::ScopeBegin),
            (10, What::Fetch { from: 1 }),
            (10, What::JoinBegin),
            (30, What::Fetched { bytes: 5 }),
            (40, What::Pool { tasks: 1 }),
            (60, made::task([0, 0])),
            (60, What::Pool { tasks: 0 }),
            (90, made::end(1)),
            (100, What::ScopeEnd),
        ],
    );
    let tracks = Tracks::of(&[all], 1);
    let parts = Division::of(&tracks, 1).all();
    assert_eq!(parts.of(Use::Blocks), 20);
    // The body until it joins, and a task that was there but not taken up.
    assert_eq!(parts.of(Use::Runtime), 10 + 20);
    assert_eq!(parts.of(Use::NoWork), 10 + 10);
    assert_eq!((parts.of(Use::Tasks), parts.total()), (30, 100));
    assert_eq!(tracks.ranks[0].fetched, 5);
}

#[test]
fn efficiencies_leave_waits_out() {
    let (_, digest) = digest(&two_ranks());
    let traced = digest.traced.unwrap();
    // Useful are 800 and 560 ns of 1000.
    let e = traced.efficiency.unwrap();
    assert!((e.load_balance - 0.85).abs() < 1e-12, "{e:?}");
    assert!((e.communication - 0.8).abs() < 1e-12, "{e:?}");
    assert!((e.parallel - 0.68).abs() < 1e-12, "{e:?}");
    let collide = traced
        .work
        .iter()
        .find(|phase| phase.name == "collide")
        .unwrap();
    // 400 in tasks and 100 after; 100 in a task and 60 after.
    assert!((collide.max_s - 500e-9).abs() < 1e-15 && collide.max_rank == 0);
    assert!((collide.min_s - 160e-9).abs() < 1e-15 && collide.min_rank == 1);
    assert!((collide.imbalance() - (500.0 / 330.0 - 1.0)).abs() < 1e-9);
}

/// Earlier versions counted waits as useful and outputs as communication: their numbers are not
/// shown as if they were ours.
#[test]
fn efficiencies_of_earlier_versions_are_left_out() {
    let root = tempfile::tempdir().unwrap();
    made::directory(root.path(), &two_ranks(), "0");
    let path = root.path().join("run.json");
    let record = std::fs::read_to_string(&path).unwrap();
    let e =
        r#""efficiency": {"load_balance": 1.0, "communication": 0.05, "parallel": 0.05}, "ranks""#;
    let old = record.replace("\"ranks\": [", &format!("{e}: ["));
    std::fs::write(&path, &old).unwrap();
    let said = |root: &std::path::Path| Report::new(vec![Run::read(root).unwrap()]).text();
    assert!(!said(root.path()).contains("whole run, no wait"));
    std::fs::write(
        &path,
        old.replace("\"tasks_s\"", "\"useful_s\": 1.0, \"tasks_s\""),
    )
    .unwrap();
    assert!(
        said(root.path())
            .contains("parallel 0.05 (POP, steps of the whole run, no wait is useful)")
    );
}

/// Preparation before tests is work that a rank alone does within its tests.
#[test]
fn patches_made_ready_early_are_counted_with_tasks() {
    let (mut run, _) = digest(&two_ranks());
    run.record.ranks[1].early_s = 0.5;
    let digest = Digest::of(&run);
    let tasks = digest
        .phases
        .iter()
        .find(|phase| phase.name.trim() == "in tasks")
        .unwrap();
    assert_eq!((tasks.min_s, tasks.max_s, tasks.max_rank), (1.0, 1.5, 1));
}

/// Most of the loop lies between steps: that is said first, of what it consists, and shares add up,
/// in text and on the page.
#[test]
fn time_between_steps_is_named_and_explained() {
    let (mut run, _) = digest(&two_ranks());
    let between = |name: &str, s: f64| Phase::of(name, &[s, s]);
    run.record.loop_s = Some(20.0);
    run.record.between = vec![
        between("pictures", 12.0),
        between("frames", 4.0),
        between("checkpoints", 0.0),
    ];
    let digest = Digest::of(&run);
    let findings = Findings::of(&run, &digest);
    assert_eq!(findings.phase.answer, "other, between steps");
    for words in [
        "92 % of the loop",
        "pictures 60 % and frames 20 %",
        "In the steps alone it is `collide`",
    ] {
        assert!(
            findings.phase.why.contains(words),
            "no {words:?}: {findings:?}"
        );
    }
    assert!(
        findings.next[0].say.contains("output.pictures=false"),
        "{findings:?}"
    );
    let report = Report::new(vec![run]);
    let text = report.text();
    let shares = |text: &str| -> Vec<f64> {
        let table = text.split("Phase ").nth(1).unwrap();
        let rows = table.lines().skip(1).take_while(|line| line.contains('|'));
        let whole = rows.filter(|line| !line.starts_with(' '));
        whole
            .map(|row| row.rsplit('|').next().unwrap().trim().parse().unwrap())
            .collect()
    };
    assert!(
        (shares(&text).iter().sum::<f64>() - 100.0).abs() < 0.3,
        "{text}"
    );
    assert!(
        text.contains("\n  pictures ") && text.contains("\n  frames "),
        "{text}"
    );
    // Nothing is said of what took no time.
    assert!(!text.contains("\n  checkpoints "), "{text}");
    assert!(text.contains("other: between steps. Pictures"), "{text}");
    let mut page = Vec::new();
    report.write_page(&mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    for row in ["other</th>", "pictures</th>", "frames</th>", "idle</th>"] {
        assert!(page.contains(row), "no {row}");
    }
    assert!(page.contains("other, between steps</p>"));
    let tables = page.split("<div class=\"tables\">").nth(1).unwrap();
    for table in tables.split("<table>").skip(1).take(2) {
        let rows = table.split("<tr>").filter(|row| row.contains("\"row\">"));
        let share = |row: &str| -> f64 {
            let cell = row.rsplit("<td>").next().unwrap();
            cell.split_once(" %").unwrap().0.parse().unwrap()
        };
        let sum: f64 = rows.map(share).sum();
        assert!((sum - 100.0).abs() < 1.0, "{sum}: {table}");
    }
}

/// A step is drawn with all of its phases; one of an earlier version with those that it knew.
#[test]
fn charts_of_steps_have_every_phase_that_is_known() {
    let meta = |share: f64| {
        let (mut run, _) = digest(&two_ranks());
        run.history[0].phases_s[4] = share;
        let mut page = Vec::new();
        Report::new(vec![run]).write_page(&mut page).unwrap();
        String::from_utf8(page).unwrap()
    };
    let known = r#""history_phases":["collide","assemble","solve","respond""#;
    assert!(meta(0.1).contains(&format!("{known},\"share\"]")));
    assert!(meta(0.0).contains(&format!("{known}]")));
}

#[test]
fn steals_are_counted_by_thief_victim_and_owner_of_the_tests() {
    let tracks = Tracks::of(&two_ranks(), 1);
    let steals = steals(&tracks);
    assert_eq!(steals.keys().collect::<Vec<_>>(), [&(1, 0)]);
    let pair = steals[&(1, 0)];
    assert_eq!(
        (pair.served, pair.refused, pair.tasks, pair.latency),
        (1, 1, 1, 100)
    );

    let patches = patches(&tracks, &[0, 1], &[4, 2]);
    assert_eq!(
        (patches[0].tests, patches[1].tests),
        (10.0 + 3.0 + 8.0, 3.0)
    );
    assert_eq!((patches[0].moved(), patches[0].thief()), (8.0, Some(1)));
    // The test of both was forked by the owner of the other one: nobody stole it.
    assert_eq!((patches[1].moved(), patches[1].stolen()), (3.0, 0.0));
    assert_eq!((patches[1].thief(), patches[1].maker()), (None, Some(0)));
    assert_eq!((patches[0].stolen(), patches[0].maker()), (8.0, Some(0)));
    assert_eq!(patches[0].per_triangle(), Some(21.0 / 4.0));
    let [tests, us] = sizes(&tracks);
    assert_eq!((tests.total(), us.counts), (3, vec![3]));
    // 10 and 8 lie from 8 to 15, 6 from 4 to 7.
    assert_eq!(tests.counts, [0, 0, 0, 1, 2]);
}

/// Rank 1 begins with tests of rank 0's patches, where a plan has put them; one more comes later,
/// in two pieces; and in the next step none.
#[test]
fn tests_placed_by_a_plan_are_distinguished_from_stolen_ones() {
    let mut timelines: Vec<Timeline> = (0..2).map(empty).collect();
    let of_1 = |t: u64, steals: bool| {
        let mut events = vec![(t, What::ScopeBegin), (t, What::JoinBegin)];
        let mut task = |at: u64, patch: u32, tests: u32| {
            events.push((t + at, made::task([patch, patch])));
            events.push((t + at + 50, made::end(tests)));
        };
        task(0, 0, 10);
        task(50, 1, 20);
        task(200, 2, 5);
        task(250, 2, 7);
        task(300, 1, 3);
        if steals {
            events.push((t + 110, What::Asked { victim: 0 }));
            events.push((
                t + 150,
                What::Answered {
                    victim: 0,
                    tasks: 1,
                },
            ));
        }
        events.push((t + 400, What::ScopeEnd));
        events.sort_by_key(|event| event.0);
        events
    };
    for (step, steals) in [(1, true), (2, false)] {
        let t = 1000 * step;
        for timeline in &mut timelines {
            span(timeline, COLLIDE, t, t + 400, 0);
            span(timeline, STEP, t, t + 400, step as u32);
        }
        scope(
            &mut timelines[0],
            step,
            &[(t, What::ScopeBegin), (t + 400, What::ScopeEnd)],
        );
        scope(&mut timelines[1], step, &of_1(t, steals));
    }
    let tracks = Tracks::of(&timelines, 1);
    assert_eq!(
        stolen(&tracks, &[0, 0, 0, 1])[1][0],
        [
            false, false, true, true, false, false, false, false, false, false
        ]
    );
    let patches = patches(&tracks, &[0, 0, 0, 1], &[]);
    let told = |patch: usize| {
        (
            patches[patch].moved(),
            patches[patch].stolen(),
            patches[patch].thief(),
        )
    };
    assert_eq!(told(0), (20.0, 0.0, None));
    assert_eq!(told(1), (46.0, 0.0, None));
    assert_eq!(told(2), (24.0, 12.0, Some(1)));
}

#[test]
fn bins_hold_what_they_say() {
    let mut histogram = Histogram::default();
    for size in [0, 1, 2, 3, 4, 7, 8] {
        histogram.add(size);
    }
    assert_eq!(histogram.counts, [1, 1, 2, 2, 1]);
    assert_eq!(histogram.sums, [0, 1, 5, 11, 8]);
    let mut largest = Histogram::default();
    largest.add(u64::MAX);
    assert_eq!(largest.counts.len(), 65);
}

/// Rank 0 has all tasks and gives none away: phase, patch and policy are named, and what to try.
#[test]
fn the_one_that_is_to_blame_is_named() {
    let mut timelines: Vec<Timeline> = (0..4).map(empty).collect();
    for (rank, timeline) in timelines.iter_mut().enumerate() {
        for step in 0..10 {
            let t = step * 10_000;
            span(timeline, COLLIDE, t, t + 8_000, 0);
            span(timeline, SOLVE, t + 8_000, t + 10_000, 0);
            span(timeline, STEP, t, t + 10_000, step as u32 + 1);
            let mut events = vec![(t, What::ScopeBegin), (t, What::JoinBegin)];
            if rank == 0 {
                events.push((t, What::Pool { tasks: 3 }));
                for k in 0..4 {
                    events.push((t + 1900 * k, made::task([0, 0])));
                    events.push((t + 1900 * (k + 1), made::end(50)));
                }
                events.push((t + 5700, What::Pool { tasks: 0 }));
                events.sort_by_key(|event| event.0);
            }
            events.push((t + 8_000, What::ScopeEnd));
            scope(timeline, step + 1, &events);
        }
    }
    let (run, digest) = digest(&timelines);
    let findings = Findings::of(&run, &digest);
    assert_eq!(findings.phase.answer, "collide");
    assert!(findings.phase.at_fault && findings.phase.why.contains("rank 0 works there"));
    assert!(
        findings.patch.answer.starts_with("those of rank 0"),
        "{findings:?}"
    );
    assert!(
        findings.patch.why.contains("1 of the 4 patches and 100 %"),
        "{findings:?}"
    );
    assert_eq!(findings.policy.answer, "paper");
    assert!(findings.policy.at_fault, "{findings:?}");
    assert_eq!(
        command(&findings),
        Some(
            "weft study made.toml --set 'time.end=1 s' --record 1..10 --steps 10 --ranks 4 \
             --policy paper,static,every-other,forecast,forecast-static --network hdr-infiniband"
        )
    );
    // A run on threads has no network that is known: what stands for it is said.
    let next = said(&findings);
    assert!(next.contains("`hdr-infiniband` stands for it"), "{next}");
    assert!(next.ends_with("only times change:"), "{next}");
}

/// The suggestions of what to do next, in words.
fn said(findings: &Findings) -> String {
    let said = findings.next.iter().map(|next| next.say.as_str());
    said.collect::<Vec<_>>().join(" ")
}

/// The last command that is suggested.
fn command(findings: &Findings) -> Option<&str> {
    findings.next.last()?.command.as_deref()
}

/// Rank 0 owns all tests in each of these, which take a tenth of a step; that is said, but patches
/// are to blame only where others lack work for it.
#[test]
fn patches_are_named_only_where_something_is_wrong_with_them() {
    let steps = |collide: u64, wait: u64| {
        let mut timelines: Vec<Timeline> = (0..4).map(empty).collect();
        for timeline in &mut timelines {
            span(timeline, COLLIDE, 0, collide, 0);
            span(timeline, SOLVE, collide, 10_000, 0);
            span(timeline, STEP, 0, 10_000, 1);
            if wait > 0 {
                span(timeline, EXCHANGE, 10_000 - wait, 10_000, 0);
            }
            let mut events = vec![(0, What::ScopeBegin), (0, What::JoinBegin)];
            if timeline.rank.0 == 0 {
                events.push((0, made::task([0, 0])));
                events.push((collide, made::end(50)));
            }
            events.push((collide, What::ScopeEnd));
            scope(timeline, 1, &events);
        }
        let (run, digest) = digest(&timelines);
        Findings::of(&run, &digest)
    };
    // The solve is at fault; nobody is; the collisions are.
    let waits = steps(1_000, 8_000);
    assert_eq!(waits.phase.answer, "solve");
    assert_eq!(
        (&*waits.patch.answer, waits.patch.at_fault),
        ("none", false)
    );
    assert!(
        waits.patch.why.contains("1 of the 4 patches and 100 %"),
        "{waits:?}"
    );
    assert!(
        waits.patch.why.ends_with("Ranks do not wait for that."),
        "{waits:?}"
    );
    let fine = steps(1_000, 0);
    assert_eq!((&*fine.phase.answer, &*fine.patch.answer), ("none", "none"));
    assert!(
        fine.patch.why.ends_with("Nobody waits for that."),
        "{fine:?}"
    );
    let bad = steps(8_000, 0);
    assert_eq!((&*bad.phase.answer, bad.patch.at_fault), ("collide", true));
    assert!(bad.patch.answer.starts_with("those of rank 0"), "{bad:?}");
}

/// Ranks that share cores wait in everything that they do together. Rank 0 owns all tests, for
/// which the others wait two fifths of what they wait in that phase: patches are named where they
/// wait for nothing else as long, or would if each had a core.
#[test]
fn patches_are_named_where_ranks_wait_for_their_tests_more_than_for_anything_else() {
    let steps = |gather: u64, exchange: u64, tests: u64, joins: u64| {
        let mut timelines: Vec<Timeline> = (0..4).map(empty).collect();
        let begin = gather + exchange;
        for timeline in &mut timelines {
            span(timeline, COLLIDE, 0, begin + tests, 0);
            span(timeline, SOLVE, begin + tests, 10_000, 0);
            span(timeline, STEP, 0, 10_000, 1);
            span(timeline, ALLGATHER, 0, gather, 0);
            span(timeline, EXCHANGE, gather, begin, 0);
            let mut events = vec![(begin, What::ScopeBegin)];
            if timeline.rank.0 == 0 {
                events.push((begin, What::JoinBegin));
                events.push((begin, made::task([0, 0])));
                events.push((begin + tests, made::end(50)));
            } else {
                events.push((begin + joins, What::JoinBegin));
            }
            events.push((begin + tests, What::ScopeEnd));
            scope(timeline, 1, &events);
        }
        let (run, digest) = digest(&timelines);
        Findings::of(&run, &digest)
    };
    let most = steps(1_500, 1_000, 2_500, 0);
    assert_eq!(most.phase.answer, "collide");
    assert!(
        most.phase.why.contains("inside tasks that other ranks ran"),
        "{most:?}"
    );
    assert_eq!(
        (&*most.patch.answer, most.patch.at_fault),
        ("those of rank 0, most of all patch 0", true),
        "{most:?}"
    );
    // Without a core a rank seems to be in the runtime.
    let without = steps(200, 200, 4_000, 2_500);
    assert!(
        without.phase.why.contains("in the runtime itself"),
        "{without:?}"
    );
    assert!(without.patch.at_fault, "{without:?}");
    let other = steps(2_500, 500, 2_000, 0);
    assert_eq!(
        (&*other.phase.answer, &*other.patch.answer),
        ("collide", "none")
    );
    assert!(
        other.patch.why.ends_with("Ranks do not wait for that."),
        "{other:?}"
    );
}

/// A rank that owns all tests and one that owns 70 % of them get different findings.
#[test]
fn large_shares_are_told_as_such() {
    let of = |ranks: u32, tests: [u32; 2]| {
        let mut timelines: Vec<Timeline> = (0..ranks).map(empty).collect();
        for timeline in &mut timelines {
            span(timeline, COLLIDE, 0, 100, 0);
            span(timeline, STEP, 0, 100, 1);
            let mut events = vec![(0, What::ScopeBegin), (0, What::JoinBegin)];
            if timeline.rank.0 == 0 {
                for (patch, tests) in (0..).zip(tests) {
                    events.push((u64::from(patch) * 50, made::task([patch, patch])));
                    events.push((u64::from(patch) * 50 + 50, made::end(tests)));
                }
            }
            events.push((100, What::ScopeEnd));
            scope(timeline, 1, &events);
        }
        let (run, digest) = digest(&timelines);
        Findings::of(&run, &digest).patch
    };
    let one = of(1, [74, 26]);
    assert_eq!(one.answer, "none");
    assert!(
        one.why
            .starts_with("One rank owns all patches. Most tests belong to patch 0 74 %"),
        "{one:?}"
    );
    let uneven = of(2, [30, 70]);
    assert!(
        uneven
            .why
            .starts_with("Rank 1 owns 1 of the 2 patches and 70 % of all tests"),
        "{uneven:?}"
    );
    let even = of(2, [52, 48]);
    assert!(
        even.why.contains("though patch 0 alone has 52 %"),
        "{even:?}"
    );
}

/// A quantity that is not known is not marked as fine.
#[test]
fn unknown_findings_are_neither_fine_nor_at_fault() {
    let (mut run, _) = digest(&two_ranks());
    run.timelines.clear();
    let findings = Findings::of(&run, &Digest::of(&run));
    assert!(findings.patch.unknown && !findings.patch.at_fault);
    let mut page = Vec::new();
    Report::new(vec![run]).write_page(&mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    let card = page
        .split("<div class=\"card ")
        .find(|card| card.contains("Which patches?"));
    assert!(card.unwrap().starts_with("unknown\""), "{card:?}");
}

/// Ranks that are busy alike have nothing to mend, and are not told to.
#[test]
fn nobody_is_blamed_without_cause() {
    let mut timelines: Vec<Timeline> = (0..2).map(empty).collect();
    for timeline in &mut timelines {
        span(timeline, COLLIDE, 0, 500, 0);
        span(timeline, SOLVE, 500, 1000, 0);
        span(timeline, STEP, 0, 1000, 1);
        let of = timeline.rank.0;
        scope(
            timeline,
            1,
            &[
                (0, What::ScopeBegin),
                (0, What::JoinBegin),
                (0, made::task([of, of])),
                (490, made::end(9)),
                (500, What::ScopeEnd),
            ],
        );
    }
    let (run, digest) = digest(&timelines);
    let findings = Findings::of(&run, &digest);
    for finding in [&findings.phase, &findings.patch, &findings.policy] {
        assert!(!finding.at_fault, "{finding:?}");
    }
    assert_eq!(command(&findings), None);
}

/// The report of a run on one rank advises as many ranks as there are cores and patches for, or as
/// many as one likes in virtual time.
#[test]
fn one_rank_is_told_of_as_many_as_there_are_cores() {
    let (mut run, digest) = digest(&two_ranks()[..1]);
    let mut next = |cores, patches| {
        run.record.machine.cores = cores;
        run.record.partition = patches;
        said(&Findings::of(&run, &digest))
    };
    let patches = |patches| Some(weft_report::Partition { patches });
    let two = next(Some(2), patches(8));
    assert!(
        two.contains("`--ranks 2`, or `--comm virtual --ranks 4`"),
        "{two}"
    );
    let many = next(Some(64), patches(8));
    assert!(many.contains("`--ranks 8`, or "), "{many}");
    let one = next(Some(1), patches(2));
    assert!(one.contains("run with `--comm virtual --ranks 2`"), "{one}");
    assert!(next(Some(8), patches(1)).contains("partition.patches"));
    assert!(next(None, None).contains("`--comm virtual --ranks 4`"));
}

/// Where it is not tasks that ranks wait for most, ranks beyond those of the run are tried too, as
/// far as there are patches.
#[test]
fn a_study_of_ranks_goes_beyond_those_of_the_run() {
    let mut timelines: Vec<Timeline> = (0..2).map(empty).collect();
    for timeline in &mut timelines {
        span(timeline, COLLIDE, 0, 100, 0);
        span(timeline, SOLVE, 100, 1000, 0);
        span(timeline, EXCHANGE, 200, 900, 0);
        span(timeline, STEP, 0, 1000, 7);
        scope(timeline, 7, &[(0, What::ScopeBegin), (100, What::ScopeEnd)]);
    }
    let (mut run, digest) = digest(&timelines);
    for (patches, ranks) in [(Some(32), "1..8"), (Some(3), "1..3"), (None, "1..8")] {
        run.record.partition = patches.map(|patches| weft_report::Partition { patches });
        let findings = Findings::of(&run, &digest);
        assert_eq!(findings.phase.answer, "solve");
        let command = command(&findings).unwrap();
        assert!(
            command.contains(&format!(
                " --record 7..7 --steps 7 --ranks {ranks} --policy "
            )),
            "{command}"
        );
        // Policies share tests, of which this phase has none.
        let next = said(&findings);
        assert!(
            next.contains("another one will not make `solve` faster"),
            "{next}"
        );
    }
}

/// Anything that a worker can report, in any order.
fn what() -> impl Strategy<Value = What> {
    let rank = 0..3_u32;
    prop_oneof![
        (0..4_u32).prop_map(|p| made::task([p, p + 1])),
        (0..99_u32).prop_map(made::end),
        Just(What::WaitBegin { worker: 0 }),
        Just(What::WaitEnd { worker: 0 }),
        rank.clone().prop_map(|victim| What::Asked { victim }),
        (rank, 0..3_u32).prop_map(|(victim, tasks)| What::Answered { victim, tasks }),
        (0..3_u32).prop_map(|tasks| What::Pool { tasks }),
        Just(What::Fetch { from: 1 }),
        (0..9_u32).prop_map(|bytes| What::Fetched { bytes }),
        Just(What::JoinBegin),
        Just(What::JoinEnd),
    ]
}

/// Pauses before a scope, after it, of a wait, after that, in the next phase; and what happens in
/// the scope, with the pause before each.
type RandomStep = ([u64; 5], Vec<(u64, What)>);

/// The steps of a rank.
fn rank() -> impl Strategy<Value = Vec<RandomStep>> {
    let pauses = prop::array::uniform5(0..50_u64);
    let events = prop::collection::vec((0..20_u64, what()), 0..30);
    prop::collection::vec((pauses, events), 1..4)
}

proptest! {
    /// Whatever happens, every moment of a step is charged once.
    #[test]
    fn parts_of_a_steps_time_add_up_to_the_whole(ranks in prop::collection::vec(rank(), 1..4)) {
        let mut timelines = Vec::new();
        let mut lengths = Vec::new();
        for (number, steps) in (0..).zip(ranks) {
            let mut timeline = empty(number);
            let (mut at, mut length) = (0, 0);
            for (step, ([before, between, wait, after, solve], happens)) in (1..).zip(steps) {
                let begin = at;
                at += before;
                let mut events = vec![(at, What::ScopeBegin)];
                for (pause, what) in happens {
                    at += pause;
                    events.push((at, what));
                }
                events.push((at, What::ScopeEnd));
                scope(&mut timeline, step, &events);
                at += between;
                span(&mut timeline, EXCHANGE, at, at + wait, 0);
                at += wait + after;
                span(&mut timeline, COLLIDE, begin, at, 0);
                span(&mut timeline, SOLVE, at, at + solve, 0);
                at += solve;
                span(&mut timeline, STEP, begin, at, step as u32);
                length += at - begin;
                at += 7;
            }
            timelines.push(timeline);
            lengths.push(length);
        }
        let division = Division::of(&Tracks::of(&timelines, 1), 1);
        for (rank, length) in lengths.into_iter().enumerate() {
            prop_assert_eq!(division.rank(rank).total(), length);
        }
    }

    /// Traces may come from anywhere: nothing in them makes the program stop.
    #[test]
    fn any_trace_is_counted(
        spans in prop::collection::vec((0..9_u16, moment(), moment(), 0..5_u32), 0..20),
        scopes in prop::collection::vec(prop::collection::vec((moment(), any_what()), 0..20), 0..4),
    ) {
        let mut timeline = empty(0);
        for (kind, begin, end, detail) in spans {
            span(&mut timeline, kind, begin, end, detail);
        }
        for (step, events) in (0..).zip(scopes) {
            scope(&mut timeline, step, &events);
        }
        let (run, digest) = digest(&[timeline]);
        let findings = Findings::of(&run, &digest);
        prop_assert!(!findings.phase.answer.is_empty());
        let mut page = Vec::new();
        Report::new(vec![run]).write_page(&mut page).unwrap();
        prop_assert!(page.ends_with(b"</html>\n"));
    }
}

fn moment() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..200_u64, 1 => 0..=1_u64 << 60]
}

/// Any event, also those that frame a scope, and those of workers that are not there.
fn any_what() -> impl Strategy<Value = What> {
    prop_oneof![
        4 => what(),
        1 => Just(What::ScopeBegin),
        1 => Just(What::ScopeEnd),
        1 => any::<u16>().prop_map(|worker| What::TaskBegin { worker, kind: 7, depth: 1, of: [u32::MAX; 2] }),
        1 => any::<u16>().prop_map(|worker| What::TaskEnd { worker, units: u32::MAX }),
        1 => (0..3_u32, any::<u32>()).prop_map(|(victim, tasks)| What::Got { victim, tasks }),
    ]
}

/// Whatever a record says, what a report suggests are words that a shell takes as they were, and
/// what it shows acts on nothing.
#[test]
fn a_hostile_record_reaches_neither_shell_nor_terminal() {
    let (mut run, _) = digest(&two_ranks());
    run.timelines.clear();
    let path = "-a b'$(id)\n\u{1b}[2J\u{202e}.toml";
    run.record.scene.path = Some(path.to_owned());
    let words = [
        "weft",
        "run",
        "--set",
        "title=\"`id`\"",
        "--out",
        "x",
        "--",
        path,
    ];
    run.record.command = words.map(str::to_owned).to_vec();
    run.path = "runs/-it's\u{9b}".into();
    let findings = Findings::of(&run, &Digest::of(&run));
    let again = findings.next[0].command.as_deref().unwrap();
    let output = std::process::Command::new("sh")
        .args([
            "-c",
            &format!("weft() {{ printf '<%s>' \"$@\"; }}; {again}"),
        ])
        .output()
        .unwrap();
    let expected = [
        "run",
        "--set",
        "title=\"`id`\"",
        "--ranks",
        "2",
        "--trace=1..7",
        "--out",
        "runs/-it's\u{9b}-traced",
        "--",
        path,
    ];
    let expected: String = expected.iter().map(|word| format!("<{word}>")).collect();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        expected,
        "{again}"
    );

    run.record.machine.comm = "virtual".to_owned();
    run.record.command = ["weft", "run", "--network", "a;b", "--set=-x=1", path]
        .map(str::to_owned)
        .to_vec();
    run.record.sharing = Some(Sharing {
        policy: Some("$(reboot)".to_owned()),
        ..Sharing::from(&Policy::PAPER)
    });
    run.record.ranks[0].tasks_s = 9.0;
    let findings = Findings::of(&run, &Digest::of(&run));
    assert!(findings.policy.at_fault, "{findings:?}");
    let study = command(&findings).unwrap();
    let output = std::process::Command::new("sh")
        .args([
            "-c",
            &format!("weft() {{ printf '<%s>' \"$@\"; }}; {study}"),
        ])
        .output()
        .unwrap();
    let words = String::from_utf8(output.stdout).unwrap();
    let begin = format!("<study><./{path}><--set=-x=1><--record>");
    assert!(words.starts_with(&begin), "{study}: {words}");
    let policies = "<--policy><$(reboot),static,every-other,forecast,forecast-static>";
    assert!(
        words.ends_with(&format!("{policies}<--network><a;b>")),
        "{study}: {words}"
    );
    let text = Report::new(vec![run.clone()]).text();
    for letter in ['\u{1b}', '\u{202e}', '\u{9b}'] {
        assert!(!text.contains(letter), "{text}");
        let mut page = Vec::new();
        Report::new(vec![run.clone()])
            .write_page(&mut page)
            .unwrap();
        assert!(!String::from_utf8(page).unwrap().contains(letter));
    }
    // A path of which the record has not all is not made up.
    run.record.scene.path = Some("a\u{fffd}.toml".to_owned());
    run.record.command[5] = "a\u{fffd}.toml".to_owned();
    let findings = Findings::of(&run, &Digest::of(&run));
    let again = &findings.next[0];
    assert!(again.say.contains("in the place of `SCENE`"), "{again:?}");
    assert!(
        again.command.as_deref().unwrap().contains(" SCENE "),
        "{again:?}"
    );
}

/// The highest number that a worker can have is one that a damaged trace may well name.
#[test]
fn the_last_worker_is_one_like_others() {
    let mut timelines: Vec<Timeline> = (0..2).map(empty).collect();
    let begin = What::TaskBegin {
        worker: u16::MAX,
        kind: 0,
        depth: 0,
        of: [0, 0],
    };
    for timeline in &mut timelines {
        span(timeline, COLLIDE, 0, 500, 0);
        span(timeline, STEP, 0, 1000, 1);
        let events = [(0, What::ScopeBegin), (1, begin), (500, What::ScopeEnd)];
        scope(timeline, 1, &events);
    }
    let (run, digest) = digest(&timelines);
    assert_eq!(digest.traced.as_ref().unwrap().steps, (1, 1));
    Report::new(vec![run]).write_page(&mut Vec::new()).unwrap();
}

/// Counts of a damaged record are added up without an overflow.
#[test]
fn counts_beyond_all_numbers_are_the_largest() {
    let (mut run, _) = digest(&two_ranks());
    run.timelines.clear();
    for rank in &mut run.record.ranks {
        (rank.tests, rank.tasks_in, rank.refused) = (u64::MAX, u64::MAX, u64::MAX);
        rank.bytes = u64::MAX;
    }
    let balance = run.record.balance.as_mut().unwrap();
    (balance.steal_requests, balance.steals) = (u64::MAX, u64::MAX);
    for row in &mut run.history {
        (row.step, row.tests, row.steals) = (u32::MAX, u64::MAX, u64::MAX);
    }
    let shown = "18,446,744,073,709,551,615";
    assert!(Report::new(vec![run.clone()]).text().contains(shown));
    run.record.balance = None;
    run.record.ranks.clear();
    assert_eq!(Digest::of(&run).counts.tests, u64::MAX);
    Report::new(vec![run]).write_page(&mut Vec::new()).unwrap();
}
