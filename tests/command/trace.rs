//! Tests of the files that `--trace` writes: viewers can rely on them; they are read back and
//! checked.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;
use weft_runtime::trace::Timeline;
use weftwork::output::read_rank_trace;

use super::place::{Place, hash_of, record};

/// Every slice of a track: name, begin and end in ns, and how many slices it lies in.
type Slices = BTreeMap<(u64, u64), Vec<(String, u64, u64, usize)>>;

/// A trace that was found to be whole.
struct Checked {
    slices: Slices,
    /// Names of processes.
    processes: Vec<String>,
    counters: BTreeSet<String>,
    /// Arrows by name.
    arrows: BTreeMap<String, usize>,
}

fn ns(time: &Value) -> u64 {
    (time.as_f64().expect("a time") * 1000.0).round() as u64
}

/// Checks what a viewer relies on: on every track time goes on, begins have ends and slices nest;
/// arrows have two ends, the second not before the first by more than the clocks may be apart.
fn check(path: &Path) -> Checked {
    let json: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let errors = json["otherData"]["ranks"].as_array().unwrap().iter();
    let errors: Vec<u64> = errors
        .map(|r| r["clock_error_ns"].as_u64().unwrap())
        .collect();
    let mut found = Checked {
        slices: BTreeMap::new(),
        processes: Vec::new(),
        counters: BTreeSet::new(),
        arrows: BTreeMap::new(),
    };
    let mut open: BTreeMap<(u64, u64), Vec<(String, u64)>> = BTreeMap::new();
    let mut clocks: BTreeMap<(u64, u64, String), u64> = BTreeMap::new();
    let mut ends: BTreeMap<u64, Vec<(String, u64, u64)>> = BTreeMap::new();
    for event in json["traceEvents"].as_array().unwrap() {
        let phase = event["ph"].as_str().unwrap();
        let name = || event["name"].as_str().unwrap().to_owned();
        let pid = event["pid"].as_u64().unwrap();
        if phase == "M" {
            if name() == "process_name" {
                let process = event["args"]["name"].as_str().unwrap();
                found.processes.push(process.to_owned());
            }
            continue;
        }
        let at = ns(&event["ts"]);
        let track = (pid, event["tid"].as_u64().unwrap_or(0));
        let clock = match phase {
            "C" => (pid, 0, name()),
            _ => (track.0, track.1, String::new()),
        };
        let last = clocks.insert(clock, at).unwrap_or(0);
        assert!(last <= at, "after {last} ns: {event}");
        let stack = open.entry(track).or_default();
        match phase {
            "B" => stack.push((name(), at)),
            "E" => {
                let (name, begin) = stack.pop().unwrap_or_else(|| panic!("no begin: {event}"));
                let slices = found.slices.entry(track).or_default();
                slices.push((name, begin, at, stack.len()));
            }
            "X" => {
                let slices = found.slices.entry(track).or_default();
                slices.push((name(), at, at + ns(&event["dur"]), stack.len()));
            }
            "s" | "f" => {
                let id = event["id"].as_u64().unwrap();
                ends.entry(id).or_default().push((name(), pid, at));
                assert!(ends[&id].iter().all(|end| end.0 == name()), "{event}");
            }
            "C" => drop(found.counters.insert(name())),
            "i" => {}
            other => panic!("{other}"),
        }
    }
    let unended: Vec<_> = open.values().flatten().collect();
    assert!(unended.is_empty(), "{unended:?}");
    // Ranks are written one after the other: which end is which, the phases tell.
    let events = json["traceEvents"].as_array().unwrap().iter();
    let mut phases: BTreeMap<u64, BTreeMap<String, (u64, u64)>> = BTreeMap::new();
    for event in events.filter(|e| e["ph"] == "s" || e["ph"] == "f") {
        let id = event["id"].as_u64().unwrap();
        let phase = event["ph"].as_str().unwrap().to_owned();
        let end = (event["pid"].as_u64().unwrap(), ns(&event["ts"]));
        let other = phases.entry(id).or_default().insert(phase, end);
        assert_eq!(other, None, "two equal ends of arrow {id}");
    }
    for (id, both) in phases {
        let (sent, received) = (both.get("s"), both.get("f"));
        let (Some(&(from, sent)), Some(&(to, received))) = (sent, received) else {
            panic!("arrow {id} has one end: {both:?}");
        };
        let error: u64 = [from, to].iter().map(|&pid| errors[pid as usize - 1]).sum();
        assert!(
            received + error >= sent,
            "arrow {id} arrives {} ns early",
            sent - received
        );
        *found.arrows.entry(ends[&id][0].0.clone()).or_default() += 1;
    }
    found
}

/// The steps that a rank's main thread went through, with the phases in each.
fn steps(checked: &Checked, rank: u64) -> Vec<Vec<String>> {
    let mut main = checked.slices[&(rank + 1, 1)].clone();
    main.sort_by_key(|&(_, begin, _, depth)| (begin, depth));
    let mut steps: Vec<Vec<String>> = Vec::new();
    for (name, _, _, depth) in main {
        match (name.as_str(), depth) {
            ("step", 0) => steps.push(Vec::new()),
            ("outputs", 0) => {}
            (_, 1) => steps.last_mut().expect("a phase is in a step").push(name),
            (_, 0) => panic!("{name} is in no step"),
            _ => {}
        }
    }
    steps
}

const PHASES: [&str; 5] = ["collide", "assemble", "solve", "respond", "share"];
/// The phases on several ranks: the next system is assembled while the state travels, and ranks
/// agree beforehand that nothing has collapsed in the step's own.
const PHASES_OF_SEVERAL: [&str; 6] = [
    "collide", "assemble", "solve", "respond", "assemble", "share",
];

/// Checks the properties that every traced run of `small.toml` must have.
fn check_run(run: &Path, ranks: usize, count: usize) -> Checked {
    let checked = check(&run.join("trace.json"));
    assert_eq!(checked.processes.len(), ranks, "{:?}", checked.processes);
    for (rank, name) in checked.processes.iter().enumerate() {
        assert!(name.starts_with(&format!("rank {rank} on ")), "{name}");
        let steps = steps(&checked, rank as u64);
        assert_eq!(steps.len(), count, "rank {rank}");
        let expected: &[&str] = if ranks > 1 {
            &PHASES_OF_SEVERAL
        } else {
            &PHASES
        };
        assert!(steps.iter().all(|phases| *phases == expected), "{steps:?}");
    }
    let slices = || checked.slices.values().flatten();
    for name in ["scope", "join", "collide", "outputs"] {
        assert!(slices().any(|slice| slice.0 == name), "no {name}");
    }
    for name in [
        "tests",
        "CG iterations",
        "contacts",
        "rounds",
        "colours",
        "colouring rounds",
        "response messages",
        "hits",
        "busy workers",
    ] {
        assert!(checked.counters.contains(name), "no counter of {name}");
    }
    let trace = &record(run)["trace"];
    assert_eq!(trace["dropped"], 0);
    let timelines: Vec<Timeline> = (0..ranks)
        .map(|rank| read_rank_trace(&run.join(format!("trace/rank-{rank:05}.bin"))).unwrap())
        .collect();
    let events: u64 = timelines.iter().map(Timeline::events).sum();
    assert_eq!(trace["events"], events);
    // The files of the ranks are all that the merged one is made of.
    let mut again = timelines;
    again.iter_mut().for_each(Timeline::align);
    let mut bytes = Vec::new();
    weft_runtime::trace::write_timelines(&again, &mut bytes).unwrap();
    assert!(bytes == fs::read(run.join("trace.json")).unwrap());
    checked
}

#[test]
fn traces_hold_the_whole_run_and_leave_the_result_alone() {
    let place = Place::new();
    let hash = hash_of(&place.weft("run small.toml --quiet --out plain"));
    assert!(!place.path("plain/trace.json").exists());
    let steps = 40;
    for (options, ranks) in [
        ("--ranks 3", 3),
        ("--ranks 2 --threads 2 --policy lifelines", 2),
        ("--ranks 3 --comm virtual", 3),
        ("--ranks 1", 1),
    ] {
        let run = format!("run small.toml --quiet --out out --overwrite --trace {options}");
        assert_eq!(hash_of(&place.weft(&run)), hash, "{options}");
        let checked = check_run(&place.path("out"), ranks, steps);
        let waits = checked.slices.values().flatten();
        let waits = waits.filter(|slice| slice.0.starts_with("wait: ")).count();
        assert_eq!(waits > 0, ranks > 1, "{options}: {waits} waits");
        let asked = checked.arrows.get("request").copied().unwrap_or(0);
        assert_eq!(asked > 0, ranks > 1, "{options}: {:?}", checked.arrows);
    }
}

#[test]
fn chosen_steps_are_traced_and_others_are_not() {
    let place = Place::new();
    let run = "run small.toml --ranks 3 --out out";
    let output = place.weft(&format!("{run} --trace=11..15"));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("Trace of steps 11 to 15: "), "{text}");
    assert!(
        text.contains("The longest collision phase, of step 1"),
        "{text}"
    );
    check_run(&place.path("out"), 3, 5);
    let trace = &record(&place.path("out"))["trace"];
    assert_eq!(
        (&trace["first_step"], &trace["last_step"]),
        (&11.into(), &15.into())
    );
    // A run without takes the earlier run's files away, if it may.
    hash_of(&place.weft(&format!("{run} --quiet --steps 3 --overwrite")));
    assert!(!place.path("out/trace.json").exists());
    assert_eq!(place.names("out/trace"), BTreeSet::new());
    assert_eq!(record(&place.path("out"))["trace"], Value::Null);
}

#[test]
fn steps_that_are_none_are_wrong_usage() {
    let place = Place::new();
    for steps in ["0..3", "5..4", "x", "3,4", "41..50"] {
        let run = format!("run small.toml --quiet --out out --trace={steps}");
        let (status, message) = place.fails(&run);
        assert_eq!(status, 2, "{steps}: {message}");
        assert!(message.contains("step"), "{message}");
        assert!(!place.path("out").exists(), "{steps}");
    }
}

/// A check of runs that only others can start, as mpirun: `WEFT_TRACED_RUN` names the output
/// directory.
#[test]
fn a_run_from_elsewhere_is_whole() {
    let Some(run) = std::env::var_os("WEFT_TRACED_RUN") else {
        return;
    };
    let run = Path::new(&run);
    let record = record(run);
    let number = |value: &Value| value.as_u64().unwrap() as usize;
    let ranks = number(&record["machine"]["ranks"]);
    let checked = check_run(run, ranks, number(&record["result"]["steps"]));
    assert!(checked.arrows["request"] > 0);
}
