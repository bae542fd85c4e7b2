//! What came of a run: the record that is written, and the summary that is printed.

use std::collections::BTreeMap;
use std::time::Duration;

use weft_partition::{Ownership, Quality};
use weft_runtime::ScopeReport;

use super::resume::changed;
use super::{Last, RankTotals, RunError, RunOptions, RunSummary, Start, TraceSummary};
use crate::output::{
    MachineRecord, PartitionRecord, ProgramRecord, RankRecord, ResultRecord, RunRecord,
    SceneRecord, TRACE, TraceRecord,
};
use crate::report::{Balance, Phase, PhaseTable};
use crate::scene::Scene;
use crate::step::{PHASES, StepError, World};

/// Optional parts that were built in.
pub const FEATURES: &[&str] = if cfg!(feature = "mpi") { &["mpi"] } else { &[] };
/// Strain beyond the limit that is warned of.
const STRAIN_SLACK: f64 = 0.02;

pub(super) fn partition_record(world: &World, ranks: usize) -> Result<PartitionRecord, RunError> {
    let ownership = Ownership::new(world.tree(), ranks).map_err(StepError::from)?;
    let quality = Quality::of_ranks(world.graph(), &ownership).map_err(StepError::from)?;
    Ok(PartitionRecord {
        patches: world.tree().patch_count() as u64,
        cut: quality.edge_cut as u64,
        edges: world.graph().edge_count() as u64,
        imbalance: quality.imbalance,
        halo: quality.halo_total() as u64,
    })
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
        path: scene.path.as_ref().map(|p| p.display().to_string()),
        sha256: scene.sha256.clone(),
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
    record.partition = Some(quality);
    record.sharing = Some((&scene.balance.policy).into());
    record
}

/// Which ranks run where.
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

/// The name of the host that this process runs on.
pub(super) fn this_host() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
    host.map_or_else(|_| "localhost".to_owned(), |name| name.trim().to_owned())
}

pub(super) fn summarise(
    world: &World,
    options: &RunOptions,
    start: &Start,
    ranks: &[RankTotals],
) -> RunSummary {
    let seconds = |phase: usize| ranks.iter().map(|r| r.times[phase].as_secs_f64()).collect();
    let phases = PHASES
        .iter()
        .enumerate()
        .map(|(k, name)| Phase {
            name,
            seconds: seconds(k),
        })
        .collect();
    // Waiting is inside the phases that exchange: useful are tasks, assembly and the solve.
    let useful = ranks.iter().map(|r| {
        let tasks: Duration = r.scope.busy.iter().sum();
        (tasks / options.threads.max(1) as u32 + r.times[1] + r.times[2]).as_secs_f64()
    });
    let loop_time = ranks.iter().map(|r| r.loop_time).max().unwrap_or_default();
    let scopes: Vec<ScopeReport> = ranks.iter().map(|r| r.scope.clone()).collect();
    let last = ranks.iter().find_map(|r| r.last.clone());
    let last = last.expect("rank 0 came to its end, for no rank failed");
    let trace = ranks.iter().find_map(|r| r.trace.clone());
    // Every rank has seen the same.
    let cuts = ranks.first().map(|r| r.cuts.clone()).unwrap_or_default();
    let mut warnings = world.warnings();
    warnings.extend(self::warnings(world, &last));
    warnings.extend(cuts.warnings());
    let header = start
        .checkpoint
        .as_ref()
        .map(|checkpoint| &checkpoint.header);
    warnings.extend(header.and_then(|header| changed(header, world)));
    warnings.extend(trace.as_ref().and_then(untraced));
    RunSummary {
        hash: last.hash,
        steps: last.steps,
        vertices: world.model().masses().len(),
        loop_time,
        phases: PhaseTable::new(phases, useful.collect(), loop_time.as_secs_f64()),
        balance: Balance::new(&scopes, options.threads),
        ranks: rank_records(world, ranks, options.threads),
        frames: last.frames,
        cuts,
        stops: ranks.first().map(|r| r.stops).unwrap_or_default(),
        warnings,
        deepest: (!world.scene().bodies.is_empty()).then_some(last.deepest),
        strain: last.strain,
        crossings: last.crossings,
        audit: last.audit,
        resumed_from: start.checkpoint.as_ref().map(|c| c.header.step),
        stopped: ranks.iter().find_map(|rank| rank.stopped),
        trace,
    }
}

/// What each rank did.
fn rank_records(world: &World, ranks: &[RankTotals], workers: usize) -> Vec<RankRecord> {
    // It was made before, or there would be no totals.
    let ownership = Ownership::new(world.tree(), ranks.len()).ok();
    let record = |(rank, totals): (usize, &RankTotals)| {
        let scope = &totals.scope;
        let patches = ownership.as_ref().map_or(0..0, |all| all.patches(rank));
        let tasks: Duration = scope.busy.iter().sum();
        RankRecord {
            first_patch: patches.start as u64,
            end_patch: patches.end as u64,
            phases_s: totals.times.iter().map(Duration::as_secs_f64).collect(),
            tasks_s: tasks.as_secs_f64() / workers.max(1) as f64,
            tasks: scope.tasks,
            tests: scope.work,
            splits: scope.splits,
            steal_requests: scope.requests,
            steals: scope.served,
            refused: scope.refused,
            tasks_in: scope.tasks_in,
            tasks_out: scope.tasks_out,
            bytes: scope.bytes,
        }
    };
    ranks.iter().enumerate().map(record).collect()
}

/// What a trace lacks.
fn untraced(trace: &TraceSummary) -> Option<String> {
    let Some((first, last)) = trace.steps else {
        return Some(
            "no step was traced: the run took none of those that --trace asks for".to_owned(),
        );
    };
    (trace.dropped > 0).then(|| {
        let lost = format!(
            "{} events of the trace found no room, those of steps {first} to {last} that came last",
            trace.dropped
        );
        match trace.whole {
            Some((from, to)) => {
                // No two runs have as many events.
                let fits = (9 * (to - from + 1) / 10).max(1);
                format!(
                    "{lost}; steps {from} to {to} are whole: trace no more than finds room, as in --trace={from}..{}",
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

/// What a reader of the result must know.
fn warnings(world: &World, last: &Last) -> Vec<String> {
    let scene = world.scene();
    let mut warnings = Vec::new();
    let thickness = scene.contact.thickness;
    if last.deepest > thickness {
        warnings.push(format!(
            "a vertex was {:.2} mm inside a body, deeper than the contact thickness of {:.2} mm: take a \
             shorter time.step or a larger contact.thickness",
            1e3 * last.deepest,
            1e3 * thickness
        ));
    }
    let limit = scene.cloths.iter().map(|c| c.material.strain_limit);
    let limit = limit.fold(0.0, f64::max);
    if last.strain > limit + STRAIN_SLACK {
        warnings.push(format!(
            "strain reached {:.1} %, beyond its limit of {} %: take a shorter time.step",
            100.0 * last.strain,
            // As it was typed, but for what rounding adds.
            (1e5 * limit).round() / 1e3
        ));
    }
    if last.pierced > 0 {
        warnings.push(format!(
            "{} pairs of an edge and a triangle of cloth and bodies cross in the last state, so that one is through the other: take a \
             shorter time.step",
            last.pierced
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
    record.efficiency = summary.phases.efficiency();
    record.balance = Some(summary.balance.record());
    record.ranks.clone_from(&summary.ranks);
    record.result = Some(ResultRecord {
        hash: summary.hash,
        vertices: summary.vertices as u64,
        steps: summary.steps,
        max_penetration_m: summary.deepest.map(|d| d.max(0.0)),
        max_strain: Some(summary.strain),
        halvings: Some(summary.cuts.halvings),
        shortest_part_s: summary.cuts.shortest,
    });
    record.solves = Some(summary.stops);
    record.trace = summary.trace.as_ref().map(trace_record);
    record.stopped = summary.stopped.map(|cause| cause.to_string());
    record.warnings.clone_from(&summary.warnings);
    record.audit.clone_from(&summary.audit);
    record.exit = Some(0);
    if let Some(message) = summary.audit_failure(options) {
        record.fail(4, message);
    }
}
