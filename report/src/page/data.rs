//! The data that the page draws, as arrays: spans of all ranks in ticks of one clock, steps, the
//! cloth.
//!
//! A tick is as many ns as needed so that the whole trace fits into 32 bits. Begins are stored as
//! differences within a track, for those compress well.

use serde_json::{Value, json};

use super::pack::Pack;
use crate::digest::{Digest, Traced};
use crate::division::{Use, is_collective};
use crate::record::Row;
use crate::run::Run;
use crate::work::stolen;
use crate::{Cloth, Tracks};

/// Triangles beyond this number are not drawn: the picture is a small one, and the page travels.
const MOST_TRIANGLES: usize = 400_000;

/// The numbers of a run, and the arrays that go with them.
pub(super) fn of(run: &Run, digest: &Digest) -> (Value, Pack) {
    let mut pack = Pack::default();
    let mut meta = json!({
        "name": digest.name,
        "ranks": run.ranks(),
        "workers": run.workers(),
        "owners": run.owners(),
        "uses": Use::ALL.map(Use::name),
    });
    meta["history_phases"] = json!(history(&mut pack, run));
    if let Some(traced) = &digest.traced {
        meta["traced"] = spans(&mut pack, &traced.tracks);
        let stolen = stolen(&traced.tracks, &run.owners());
        let flags = stolen
            .iter()
            .flatten()
            .flatten()
            .map(|&stolen| u8::from(stolen));
        pack.u8("task_stolen", &flags.collect::<Vec<_>>());
        meta["traced"]["phases"] = json!(traced.tracks.phases);
        meta["traced"]["waits"] = json!(traced.tracks.waits);
        let collective: Vec<bool> = traced
            .tracks
            .waits
            .iter()
            .map(|w| is_collective(w))
            .collect();
        meta["traced"]["collective"] = json!(collective);
        let steals = traced.steals.iter();
        let steals: Vec<Value> = steals
            .map(|(&(thief, victim), s)| {
                json!([thief, victim, s.tasks, s.served, s.refused, s.latency])
            })
            .collect();
        meta["traced"]["steals"] = json!(steals);
        meta["traced"]["steps"] = json!(traced.count);
        meta["traced"]["patches"] = patches(traced);
        steps(&mut pack, traced);
    }
    if let Some(cloth) = &run.cloth {
        meta["cloth"] = draw(&mut pack, cloth);
    }
    meta["arrays"] = pack.index();
    (meta, pack)
}

/// Times of steps, and the phases that they are of: those that the history knows.
fn history(pack: &mut Pack, run: &Run) -> Vec<&'static str> {
    let steps: Vec<u32> = run.history.iter().map(|row| row.step).collect();
    pack.u32("h_step", &steps);
    let mut known = Vec::new();
    for (phase, name) in Row::PHASES.into_iter().enumerate() {
        let seconds = run.history.iter().map(|row| row.phases_s[phase] as f32);
        let seconds: Vec<f32> = seconds.collect();
        if seconds.iter().any(|&s| s > 0.0) {
            pack.f32(&format!("h_{name}"), &seconds);
            known.push(name);
        }
    }
    known
}

fn patches(traced: &Traced) -> Value {
    let patches = traced.patches.iter().map(|work| {
        json!([
            work.tests.round(),
            work.moved().round(),
            work.thief().map_or(-1, i64::from),
            work.triangles,
            work.stolen().round(),
            work.maker().map_or(-1, i64::from),
        ])
    });
    patches.collect()
}

/// Times in ticks.
#[derive(Clone, Copy)]
struct Ticks {
    origin: u64,
    tick: u64,
}

impl Ticks {
    fn at(self, ns: u64) -> u32 {
        u32::try_from(ns.saturating_sub(self.origin) / self.tick).unwrap_or(u32::MAX)
    }
}

/// A group of tracks of which each has spans: where each begins in the arrays, begins and lengths.
#[derive(Default)]
struct Group {
    first: Vec<u32>,
    begin: Vec<u32>,
    length: Vec<u32>,
}

impl Group {
    fn track(&mut self, ticks: Ticks, spans: impl Iterator<Item = (u64, u64)>) {
        self.first.push(self.begin.len() as u32);
        let mut last = 0;
        for (begin, end) in spans {
            // Within a track they ascend.
            let (begin, end) = (ticks.at(begin).max(last), ticks.at(end));
            self.begin.push(begin - last);
            self.length.push(end.saturating_sub(begin));
            last = begin;
        }
    }

    fn pack(mut self, pack: &mut Pack, name: &str) {
        self.first.push(self.begin.len() as u32);
        pack.u32(&format!("{name}_first"), &self.first);
        pack.u32(&format!("{name}_begin"), &self.begin);
        pack.u32(&format!("{name}_length"), &self.length);
    }
}

fn spans(pack: &mut Pack, tracks: &Tracks) -> Value {
    let begins = tracks.ranks.iter().flat_map(|rank| {
        let steps = rank.steps.iter().map(|&(_, begin, _)| begin);
        steps.chain(rank.scopes.iter().map(|scope| scope.begin))
    });
    let ends = tracks.ranks.iter().flat_map(|rank| {
        let steps = rank.steps.iter().map(|&(.., end)| end);
        steps.chain(rank.scopes.iter().map(|scope| scope.end))
    });
    let (origin, end) = (begins.min().unwrap_or(0), ends.max().unwrap_or(1));
    let length = end.saturating_sub(origin).max(1);
    let ticks = Ticks {
        origin,
        tick: length.div_ceil(u64::from(u32::MAX)),
    };

    let lanes = tracks.ranks.iter().flat_map(|rank| &rank.tasks);
    let mut group = Group::default();
    lanes
        .clone()
        .for_each(|lane| group.track(ticks, lane.iter().map(|t| (t.begin, t.end))));
    group.pack(pack, "task");
    let tasks: Vec<&crate::TaskSpan> = lanes.flatten().collect();
    pack.u32("task_p", &tasks.iter().map(|t| t.of[0]).collect::<Vec<_>>());
    pack.u32("task_q", &tasks.iter().map(|t| t.of[1]).collect::<Vec<_>>());
    pack.u32(
        "task_tests",
        &tasks.iter().map(|t| t.tests).collect::<Vec<_>>(),
    );
    pack.u16(
        "task_depth",
        &tasks.iter().map(|t| t.depth).collect::<Vec<_>>(),
    );

    let ranks = &tracks.ranks;
    let mut group = Group::default();
    ranks
        .iter()
        .for_each(|rank| group.track(ticks, rank.phases.iter().map(|p| (p.begin, p.end))));
    group.pack(pack, "phase");
    let phases = ranks.iter().flat_map(|rank| &rank.phases);
    pack.u8(
        "phase_kind",
        &phases.clone().map(|p| p.phase).collect::<Vec<_>>(),
    );
    pack.u32("phase_step", &phases.map(|p| p.step).collect::<Vec<_>>());

    let mut group = Group::default();
    ranks
        .iter()
        .for_each(|rank| group.track(ticks, rank.waits.iter().map(|w| (w.begin, w.end))));
    group.pack(pack, "wait");
    let waits = ranks.iter().flat_map(|rank| &rank.waits);
    pack.u8(
        "wait_kind",
        &waits.clone().map(|w| w.kind).collect::<Vec<_>>(),
    );
    pack.u32("wait_from", &waits.map(|w| w.from).collect::<Vec<_>>());

    let mut group = Group::default();
    ranks
        .iter()
        .for_each(|rank| group.track(ticks, rank.scopes.iter().map(|s| (s.begin, s.end))));
    group.pack(pack, "scope");
    let mut group = Group::default();
    ranks
        .iter()
        .for_each(|rank| group.track(ticks, rank.outputs.iter().copied()));
    group.pack(pack, "output");

    // Answers that brought tasks, by thief.
    let mut group = Group::default();
    let (mut victims, mut counts) = (Vec::new(), Vec::new());
    for rank in ranks {
        let mut served: Vec<&crate::Request> =
            rank.requests.iter().filter(|r| r.tasks > 0).collect();
        served.sort_by_key(|request| request.asked);
        victims.extend(served.iter().map(|request| request.victim));
        counts.extend(served.iter().map(|request| request.tasks));
        group.track(ticks, served.iter().map(|r| (r.asked, r.answered)));
    }
    group.pack(pack, "steal");
    pack.u32("steal_victim", &victims);
    pack.u32("steal_tasks", &counts);
    json!({
        "tick_ns": ticks.tick,
        "ticks": ticks.at(end),
        "lanes": ranks.iter().map(|rank| rank.tasks.len()).collect::<Vec<_>>(),
    })
}

/// Packs, for each traced step, its number, begin and end in ns since the first, and for each phase
/// the mean and the greatest time of a rank.
fn steps(pack: &mut Pack, traced: &Traced) {
    let tracks = &traced.tracks;
    let phases = tracks.phases.len();
    let mut steps: std::collections::BTreeMap<u32, Vec<[f32; 2]>> =
        std::collections::BTreeMap::new();
    let share = 1.0 / tracks.ranks.len().max(1) as f32;
    for rank in &tracks.ranks {
        for span in &rank.phases {
            let times = steps
                .entry(span.step)
                .or_insert_with(|| vec![[0.0; 2]; phases]);
            let seconds = (span.end - span.begin) as f32 * 1e-9;
            if let Some([mean, most]) = times.get_mut(usize::from(span.phase)) {
                *mean += share * seconds;
                *most = most.max(seconds);
            }
        }
    }
    pack.u32("step_number", &steps.keys().copied().collect::<Vec<_>>());
    for (k, what) in ["mean", "most"].iter().enumerate() {
        let times = steps.values().flatten().map(|times| times[k]);
        pack.f32(&format!("step_{what}"), &times.collect::<Vec<f32>>());
    }
}

/// Positions in 16 bits of a cube, triangles and their patches.
fn draw(pack: &mut Pack, cloth: &Cloth) -> Value {
    let (mut low, mut high) = ([f32::INFINITY; 3], [f32::NEG_INFINITY; 3]);
    for position in cloth
        .positions
        .iter()
        .filter(|p| p.iter().all(|x| x.is_finite()))
    {
        for axis in 0..3 {
            low[axis] = low[axis].min(position[axis]);
            high[axis] = high[axis].max(position[axis]);
        }
    }
    let size = (0..3)
        .map(|axis| high[axis] - low[axis])
        .fold(1e-9, f32::max);
    let place = |position: &[f32; 3]| -> [u16; 3] {
        std::array::from_fn(|axis| ((position[axis] - low[axis]) / size * 65535.0) as u16)
    };
    let positions: Vec<u16> = cloth.positions.iter().flat_map(place).collect();
    let stride = cloth.triangles.len().div_ceil(MOST_TRIANGLES).max(1);
    let exists = |t: &[u32; 3]| t.iter().all(|&v| (v as usize) < cloth.positions.len());
    let kept: Vec<(&[u32; 3], u32)> = (cloth.triangles.iter())
        .zip(cloth.patches.iter().copied())
        .filter(|(t, _)| exists(t))
        .step_by(stride)
        .collect();
    pack.u16("cloth_positions", &positions);
    let corners: Vec<u32> = kept.iter().flat_map(|(t, _)| t.iter().copied()).collect();
    pack.u32("cloth_triangles", &corners);
    pack.u32(
        "cloth_patches",
        &kept.iter().map(|&(_, p)| p).collect::<Vec<_>>(),
    );
    let extent: Vec<f32> = (0..3).map(|axis| (high[axis] - low[axis]) / size).collect();
    json!({"step": cloth.step, "extent": extent, "left_out": cloth.triangles.len() - kept.len()})
}
