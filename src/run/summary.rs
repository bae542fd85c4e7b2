//! The result of a run: the record that is written, and the summary that is printed.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sha2::{Digest as _, Sha256};
use weft_partition::{Ownership, RankQuality};
use weft_runtime::ScopeReport;
use weft_runtime::comm::{Collectives as _, Comm, CommError, Rank};
use weft_runtime::wire::hex;

use super::outputs::Start;
use super::result::{Last, RankTotals, UNCROSS_BODIES};
use super::resume::trajectory;
use super::timers::OUTPUTS;
use super::{RunError, RunOptions, RunSummary, TraceSummary};
use crate::diagnostics::{Balance, Phase, PhaseTable};
use crate::export::Exported;
use crate::output::{
    BodyRecord, MachineRecord, PartitionRecord, ProgramRecord, RankRecord, ResultRecord, RunRecord,
    SceneRecord, StartRecord, StateHash, TRACE, TraceRecord, this_host,
};
use crate::scene::Scene;
use crate::step::{PHASES, StepError, World};

/// Optional parts that were built in.
pub const FEATURES: &[&str] = match (cfg!(feature = "mpi"), cfg!(feature = "tracing")) {
    (true, true) => &["mpi", "tracing"],
    (true, false) => &["mpi"],
    (false, true) => &["tracing"],
    (false, false) => &[],
};
/// Strain beyond the limit that is warned of.
pub(super) const STRAIN_SLACK: f64 = 0.02;

/// The record of the partition of a world for ranks that are all of this process.
pub(super) fn partition_record(world: &World, ranks: usize) -> Result<PartitionRecord, RunError> {
    let ownership = Ownership::new(world.tree(), ranks).map_err(StepError::from)?;
    let of_ranks = (0..ranks).map(|rank| quality_of(world, &ownership, rank));
    Ok(partition_of(
        world,
        &of_ranks.collect::<Result<Vec<_>, _>>()?,
    ))
}

/// The record of the partition of a world, of which each rank counts its own part. Collective.
pub(super) fn shared_partition_record(
    world: &World,
    comm: &mut dyn Comm,
) -> Result<PartitionRecord, RunError> {
    let ownership = Ownership::new(world.tree(), comm.size()).map_err(StepError::from)?;
    let own = quality_of(world, &ownership, comm.rank().index())?;
    let RankQuality { cut, halo, weight } = own;
    let own = bytemuck::bytes_of(&[cut, halo, weight]).to_vec();
    let mut of_ranks = Vec::with_capacity(comm.size());
    for (from, bytes) in (0..).map(Rank).zip(comm.allgather(own)?) {
        let numbers = bytemuck::try_pod_read_unaligned(&bytes).map_err(|_| {
            let what = "not the part of a rank in the cut".to_owned();
            CommError::Malformed { from, what }
        })?;
        let [cut, halo, weight] = numbers;
        of_ranks.push(RankQuality { cut, halo, weight });
    }
    Ok(partition_of(world, &of_ranks))
}

fn quality_of(world: &World, ownership: &Ownership, rank: usize) -> Result<RankQuality, RunError> {
    let quality = RankQuality::new(&world.graphs().matrix, ownership, rank);
    Ok(quality.map_err(StepError::from)?)
}

fn partition_of(world: &World, of_ranks: &[RankQuality]) -> PartitionRecord {
    let sum = |of: fn(&RankQuality) -> u64| of_ranks.iter().map(of).sum::<u64>();
    let heaviest = of_ranks.iter().map(|of| of.weight).max().unwrap_or(0);
    let total = sum(|of| of.weight);
    PartitionRecord {
        patches: world.tree().patch_count() as u64,
        cut: sum(|of| of.cut) / 2,
        edges: world.graphs().matrix.edge_count() as u64,
        imbalance: heaviest as f64 * of_ranks.len() as f64 / total as f64,
        halo: sum(|of| of.halo),
    }
}

pub(super) fn record(scene: &Scene, options: &RunOptions, quality: PartitionRecord) -> RunRecord {
    let ranks = options.ranks as u32;
    let machine = MachineRecord {
        ranks,
        threads: options.threads as u32,
        comm: options.driver.name().to_owned(),
        hosts: hosts(options),
        cores: std::thread::available_parallelism()
            .ok()
            .and_then(|cores| u32::try_from(cores.get()).ok()),
        mpi: options.mpi.clone(),
    };
    let scene_record = SceneRecord {
        name: scene.name.clone(),
        // Bytes that are no UTF-8 are lost: JSON is text.
        path: (scene.path.as_ref()).map(|path| path.to_string_lossy().into_owned()),
        sha256: scene.sha256.clone(),
        trajectory: Some(trajectory(scene)),
    };
    let command = options.command.clone();
    let seed = scene.balance.seed;
    let mut record = RunRecord::new(
        ProgramRecord::this(FEATURES),
        machine,
        command,
        scene_record,
        seed,
    );
    record.bodies = Some(scene.bodies.iter().map(BodyRecord::new).collect());
    record.partition = Some(quality);
    record.sharing = Some((&scene.balance.policy).into());
    record.run = identity(&record.command);
    record
}

/// The number of crossings of a start that are named one by one.
const TOLD: usize = 20;

/// The record of cloth that starts through cloth, if some does.
pub(super) fn start_record(world: &World) -> Option<StartRecord> {
    let crossings = world.start_crossings();
    let pairs = crossings.iter().take(TOLD);
    (!crossings.is_empty()).then(|| StartRecord {
        crossings: crossings.len() as u64,
        pairs: pairs.map(|&pair| world.name_crossing(pair)).collect(),
        vertices: world.kept_at_start().vertices() as u64,
        ..StartRecord::default()
    })
}

/// The identity of a run, which no other run has, for files that belong to one run only.
fn identity(command: &[String]) -> String {
    let time = SystemTime::now().duration_since(UNIX_EPOCH);
    let time = time.unwrap_or_default().as_nanos();
    let text = format!("{time} {} {command:?}", std::process::id());
    hex(&Sha256::digest(text.as_bytes())[..8])
}

/// The ranks of each host.
fn hosts(options: &RunOptions) -> BTreeMap<String, Vec<u32>> {
    let mut hosts = BTreeMap::<String, Vec<u32>>::new();
    for (rank, host) in (0..).zip(&options.hosts) {
        hosts.entry(host.clone()).or_default().push(rank);
    }
    if hosts.is_empty() {
        hosts.insert(this_host(), (0..options.ranks as u32).collect());
    }
    hosts
}

pub(super) fn summarise(
    world: &World,
    options: &RunOptions,
    start: &Start,
    ranks: &[RankTotals],
) -> RunSummary {
    let phase = |name: &'static str, time: &dyn Fn(&RankTotals) -> Duration| Phase {
        name,
        seconds: ranks.iter().map(|r| time(r).as_secs_f64()).collect(),
    };
    let phases = (PHASES.iter().enumerate()).map(|(k, name)| phase(name, &|r| r.times[k]));
    let between = (OUTPUTS.iter().enumerate()).map(|(k, name)| phase(name, &|r| r.outputs[k]));
    let useful = ranks
        .iter()
        .map(|r| useful(r, options.threads).as_secs_f64());
    let loop_time = ranks.iter().map(|r| r.loop_time).max().unwrap_or_default();
    let scopes: Vec<ScopeReport> = ranks.iter().map(|r| r.scope.clone()).collect();
    let last = ranks.iter().find_map(|r| r.last.clone());
    let last = last.expect("rank 0 came to its end, for no rank failed");
    let trace = ranks.iter().find_map(|r| r.trace.clone());
    // Every rank has seen the same.
    let cuts = ranks.first().map(|r| r.cuts.clone()).unwrap_or_default();
    let certified = (ranks.first()).map_or_else(Default::default, |r| r.certified.clone());
    let mut warnings = world.scene().idle_keys();
    warnings.extend_from_slice(&start.warnings);
    warnings.extend(self::warnings(world, &last));
    warnings.extend(cuts.warnings());
    warnings.extend(certified.warnings());
    warnings.extend(trace.as_ref().and_then(untraced));
    warnings.extend(ranks.iter().find_map(|r| r.unrecorded.clone()));
    RunSummary {
        hash: last.hash,
        steps: last.steps,
        vertices: world.model().masses().len(),
        loop_time,
        phases: PhaseTable::new(
            phases.collect(),
            useful.collect(),
            between.collect(),
            loop_time.as_secs_f64(),
        ),
        balance: Balance::new(&scopes, options.threads),
        ranks: rank_records(world, ranks, options.threads),
        world_memory: world.memory(),
        frames: last.frames,
        cuts,
        certified,
        stops: ranks.first().map(|r| r.stops).unwrap_or_default(),
        warnings,
        deepest: (!world.scene().bodies.is_empty()).then_some(last.deepest),
        strain: last.strain,
        crossings: last.crossings,
        pierced: last.pierced,
        audit: last.audit,
        resumed_from: start.checkpoint.as_ref().map(|c| c.header.step),
        stopped: ranks.iter().find_map(|rank| rank.stopped),
        trace,
        exported: Exported::default(),
        unwritten: None,
    }
}

/// Time of a rank's steps in which it was at work: all of its phases, but for waits for messages
/// and, while tasks are shared, what its workers are without one, unless it puts contacts in order
/// then.
fn useful(totals: &RankTotals, workers: usize) -> Duration {
    let phases: Duration = totals.times.iter().sum();
    let idle = totals
        .scope
        .elapsed
        .saturating_sub(in_tasks(totals, workers) + totals.scope.meanwhile);
    phases.saturating_sub(totals.waited + idle)
}

/// Time of a rank's workers in tasks, over their number.
fn in_tasks(totals: &RankTotals, workers: usize) -> Duration {
    let tasks: Duration = totals.scope.busy.iter().sum();
    tasks / u32::try_from(workers.max(1)).unwrap_or(u32::MAX)
}

/// The records of the work of each rank.
fn rank_records(world: &World, ranks: &[RankTotals], workers: usize) -> Vec<RankRecord> {
    // It was made before, or there would be no totals.
    let ownership = Ownership::new(world.tree(), ranks.len()).ok();
    let record = |(rank, totals): (usize, &RankTotals)| {
        let scope = &totals.scope;
        let patches = ownership.as_ref().map_or(0..0, |all| all.patches(rank));
        RankRecord {
            first_patch: patches.start as u64,
            end_patch: patches.end as u64,
            phases_s: totals.times.iter().map(Duration::as_secs_f64).collect(),
            tasks_s: in_tasks(totals, workers).as_secs_f64(),
            early_s: totals.early.as_secs_f64(),
            waited_s: totals.waited.as_secs_f64(),
            useful_s: Some(useful(totals, workers).as_secs_f64()),
            tasks: scope.tasks,
            tests: scope.work,
            splits: scope.splits,
            steal_requests: scope.requests,
            steals: scope.served,
            refused: scope.refused,
            tasks_in: scope.tasks_in,
            tasks_out: scope.tasks_out,
            bytes: scope.bytes,
            state_bytes: totals.states.bytes,
            ghosts: totals.states.ghosts,
            gathered: totals.states.gathered,
            peak_memory_bytes: totals.peak_memory,
            memory: totals.memory.clone(),
        }
    };
    ranks.iter().enumerate().map(record).collect()
}

/// The reason why a trace is incomplete, if it is.
fn untraced(trace: &TraceSummary) -> Option<String> {
    let Some((first, last)) = trace.steps else {
        return Some(
            "no step was traced: the run took none of the steps that --trace asks for".to_owned(),
        );
    };
    (trace.dropped > 0).then(|| {
        let lost = format!(
            "{} events of the trace found no room: the last ones of steps {first} to {last}",
            trace.dropped
        );
        match trace.whole {
            Some((from, to)) => {
                // No two runs have as many events.
                let fits = (9 * (to - from + 1) / 10).max(1);
                format!(
                    "{lost}; steps {from} to {to} are whole: trace only as many steps as find room, as in --trace={from}..{}",
                    from + fits - 1
                )
            }
            None => format!(
                "{lost}, and no step is whole: trace one, as in --trace={first}, or fewer ranks, each of which has more \
                 room then"
            ),
        }
    })
}

/// Whether cloth is pulled along.
fn pins_move(scene: &Scene) -> bool {
    let mut pins = scene.cloths.iter().flat_map(|cloth| &cloth.pins);
    pins.any(|pin| !pin.is_still())
}

/// Warnings that a reader of the result must know.
fn warnings(world: &World, last: &Last) -> Vec<String> {
    let scene = world.scene();
    let mut warnings = Vec::new();
    let thickness = world.distances().least_from_bodies();
    if last.deepest > thickness {
        warnings.push(format!(
            "a vertex was {:.2} mm inside a body, deeper than the contact thickness of {:.2} mm: take a \
             shorter time.step or a larger contact.thickness{}",
            1e3 * last.deepest,
            1e3 * thickness,
            if pins_move(scene) {
                ", unless pins take it there"
            } else {
                ""
            }
        ));
    }
    if last.beyond_limit > STRAIN_SLACK {
        let mut limits = scene.cloths.iter().map(|c| c.material.strain_limit);
        let limit = limits.next().unwrap_or_default();
        let reached = if limits.all(|other| other == limit) {
            format!(
                "strain reached {:.1} %, beyond its limit of {} %",
                100.0 * last.strain,
                // As it was typed, but for what rounding adds.
                (1e5 * limit).round() / 1e3
            )
        } else {
            let beyond = 100.0 * last.beyond_limit;
            format!("a cloth was stretched by {beyond:.1} % beyond its limit")
        };
        warnings.push(match &last.breach {
            Some(told) => format!("{reached}: {told}"),
            None => {
                let mend = match scene.time.shortest {
                    None => {
                        "take a shorter time.step, or a time.shortest to which steps may be cut"
                    }
                    Some(_) => "take a shorter time.shortest",
                };
                let pins = pins_move(scene).then_some(
                    ", unless its pins go farther than it reaches or faster than it can follow",
                );
                format!("{reached}: {mend}{}", pins.unwrap_or_default())
            }
        });
    }
    if last.pierced > 0 {
        warnings.push(format!(
            "{} pairs of an edge and a triangle of cloth and bodies cross in the last state, so that one is through the other: {}",
            last.pierced,
            UNCROSS_BODIES
        ));
    }
    if last.crossings > 0 {
        let advice = if scene.contact.self_collision {
            "take a shorter time.step or a larger contact.thickness"
        } else {
            "contact.self_collision is off"
        };
        warnings.push(format!(
            "{} pairs of an edge and a triangle of the cloth cross in the last state: {advice}",
            last.crossings
        ));
    }
    warnings
}

fn trace_record(trace: &TraceSummary) -> TraceRecord {
    TraceRecord {
        file: TRACE.to_owned(),
        first_step: trace.steps.map(|(first, _)| first),
        last_step: trace.steps.map(|(_, last)| last),
        events: trace.events,
        dropped: trace.dropped,
        clock_error_s: trace.clock_error.as_secs_f64(),
    }
}

pub(super) fn complete(record: &mut RunRecord, summary: &RunSummary, options: &RunOptions) {
    record.loop_s = Some(summary.loop_time.as_secs_f64());
    record.phases = summary.phases.records();
    record.between = summary.phases.between();
    record.efficiency = summary.phases.efficiency();
    record.balance = Some(summary.balance.record());
    record.ranks.clone_from(&summary.ranks);
    record.world_memory.clone_from(&summary.world_memory);
    record.result = Some(ResultRecord {
        hash: summary.hash,
        hash_version: StateHash::VERSION,
        vertices: summary.vertices as u64,
        steps: summary.steps,
        max_penetration_m: summary.deepest.map(|d| d.max(0.0)),
        max_strain: Some(summary.strain),
        halvings: Some(summary.cuts.halvings),
        shortest_part_s: summary.cuts.shortest,
    });
    if let Some(start) = &mut record.start {
        start.kept = Some(summary.certified.kept);
        start.free_after_s = summary.certified.free_after;
    }
    record.solves = Some(summary.stops);
    record.trace = summary.trace.as_ref().map(trace_record);
    record.stopped = summary.stopped.map(|cause| cause.to_string());
    // The gaps of the trace are in `trace`: reports tell it in their own words, once.
    let untraced = summary.trace.as_ref().and_then(untraced);
    let warnings = summary
        .warnings
        .iter()
        .filter(|&w| Some(w) != untraced.as_ref());
    record.warnings = warnings.cloned().collect();
    record.audit.clone_from(&summary.audit);
    record.exit = Some(0);
    if let Some(message) = summary.audit_failure(options) {
        record.fail(4, message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two workers, in tasks for 3 s and 1 s of a scope of 4 s, are at work for half of it; what
    /// was made ready before is work too.
    #[test]
    fn waits_for_messages_and_for_tasks_are_not_useful_and_all_else_is() {
        let s = Duration::from_secs;
        let totals = RankTotals {
            times: [6, 1, 5, 2, 1].map(s),
            outputs: [20; OUTPUTS.len()].map(s),
            scope: ScopeReport {
                busy: vec![s(3), s(1)],
                elapsed: s(4),
                ..ScopeReport::default()
            },
            early: s(1),
            waited: s(3),
            loop_time: s(100),
            ..RankTotals::default()
        };
        assert_eq!(useful(&totals, 2), s(15 - 2 - 3));
        // Without waits all of it.
        let alone = RankTotals {
            waited: Duration::ZERO,
            scope: ScopeReport::default(),
            ..totals
        };
        assert_eq!(useful(&alone, 1), s(15));
    }
}
