//! The profile of a step: what it tests, costs and sends, for a record that is replayed without
//! physics.
//!
//! On one rank, before a step is taken, its top-level tests are made three times for the time that
//! they take, and once more, test by test, for their shape. The state does not change by that. The
//! costs of the other phases are taken from the step's report and divided by the amount of work.

use std::collections::{BTreeMap, BTreeSet};
use std::hint;
use std::iter::repeat_n;
use std::time::Duration;

use glam::DVec3;
use weft_balance::cost::{Against, CostReport, PartCost, RankWork};
use weft_balance::forecast::Forecast;
use weft_balance::prices::{Counts, Prices, TestPrices};
use weft_balance::separation::SeparationWork;
use weft_partition::Ownership;
use weft_study::record::{Border, Column, Header, Patch, Route, Step, Task};
use weft_study::shape::{Kind, ShapeError, Tree, Visit};

use crate::collide::{Contact, Single, Snapshot, Target, TestRun, Volumes};
use crate::scene::Integrator;
use crate::solve::{coarse_columns, is_rounded};
use crate::step::{CONTACT_BYTES, Simulation, StepReport, World, patch_sizes, tiles};

/// The largest factor by which the runtime prolongs tests; a larger one is a disturbance from
/// outside.
const MOST_RUNTIME: f64 = 1.5;
/// The number of times that tests are made for their time; the least time counts.
const REPEATS: usize = 3;
/// The number of ranks for which assignments are made for their time.
const PLANNED_RANKS: usize = 16;
/// Bytes of a vector in a message.
const VECTOR_BYTES: u32 = 24;
/// Bytes of an unknown of the coarse level of the solve, unless rounded.
const SIX_BYTES: u32 = 48;

/// Makes the part of a record that does not change from step to step.
#[must_use]
pub(super) fn header(world: &World) -> Header {
    let (tree, geometry) = (world.tree(), world.geometry());
    let patch = |p: usize| Patch {
        vertices: tree.patch_vertices(p).len() as u32,
        weight: tree.patch_weight(p),
        sizes: patch_sizes(&geometry, p),
    };
    let graphs = world.graphs();
    let (graph, aggregates) = (&graphs.matrix, graphs.aggregates.as_ref());
    let readers = graph.vertices().map(|vertex| {
        let others = graph.neighbours(vertex).iter();
        (
            vertex,
            others.map(|&other| tree.patch_of(other) as u32).collect(),
        )
    });
    Header {
        program: format!("weft {}", env!("CARGO_PKG_VERSION")),
        scene: world.scene().name.clone(),
        title: world.scene().title.clone(),
        bodies: geometry.bodies.len() as u32,
        self_collision: geometry.self_collision,
        patches: (0..tree.patch_count()).map(patch).collect(),
        tiles: tiles(&geometry),
        borders: borders(world, readers),
        aggregates: aggregates.map_or(0, |aggregates| aggregates.count() as u32),
        coarse: aggregates.map_or_else(Vec::new, |aggregates| {
            let patches = (0..tree.patch_count()).map(|patch| aggregates.in_patch(patch).len());
            let patch_of: Vec<u32> = (0..)
                .zip(patches)
                .flat_map(|(p, n)| repeat_n(p, n))
                .collect();
            let column = |(aggregate, rows): (u32, Vec<u32>)| Column {
                patch: patch_of[aggregate as usize],
                rows,
            };
            let columns = coarse_columns(aggregates, graph, tree);
            columns.into_iter().map(column).collect()
        }),
        aggregate_bytes: if is_rounded(tree) {
            SIX_BYTES / 2
        } else {
            SIX_BYTES
        },
        contact_bytes: CONTACT_BYTES as u32,
        // The velocity with which a vertex moves, and the one that it ends with if that is another.
        state_bytes: match world.scene().solver.integrator {
            Integrator::Euler => VECTOR_BYTES,
            _ => 2 * VECTOR_BYTES,
        },
    }
}

/// The vertices that other patches read, by patch and readers.
fn borders(world: &World, readers: impl Iterator<Item = (u32, BTreeSet<u32>)>) -> Vec<Border> {
    let mut classes: BTreeMap<(u32, Vec<u32>), u32> = BTreeMap::new();
    for (vertex, readers) in readers {
        let owner = world.tree().patch_of(vertex) as u32;
        let others: Vec<u32> = readers.into_iter().filter(|&p| p != owner).collect();
        if !others.is_empty() {
            *classes.entry((owner, others)).or_default() += 1;
        }
    }
    let border = |((owner, readers), vertices)| Border {
        owner,
        readers,
        vertices,
    };
    classes.into_iter().map(border).collect()
}

/// The tests of a step that is still to be taken.
#[derive(Debug)]
pub(super) struct Profile {
    step: Step,
    /// The time of the tests with what they prepared and handed out, and the time of the rest of
    /// the phase, in ns.
    cold: f64,
    other: f64,
    contacts: usize,
}

impl Profile {
    /// Makes the tests of the next step. `clock` tells the time. The rank is alone.
    ///
    /// # Errors
    /// There are more tests than a record has room for.
    pub(super) fn of_next(
        simulation: &mut Simulation<'_>,
        clock: &dyn Fn() -> Duration,
    ) -> Result<Self, ShapeError> {
        simulation.foresee_next();
        simulation.note_costs();
        let world = simulation.world();
        let geometry = world.geometry();
        let patches = world.tree().patch_count();
        let around: usize = (geometry.cloth.patch_vertices().iter())
            .map(|vertices| vertices.len())
            .sum();
        let nodes_of_patches: Vec<u32> = (geometry.cloth.patches().iter())
            .map(|tree| tree.len() as u32)
            .collect();
        let nodes: u32 = nodes_of_patches.iter().sum();

        let all_patches: Vec<usize> = (0..patches).collect();
        let tiles = tiles(&geometry);
        let (mut least, mut warm) = ([f64::INFINITY; 9], Vec::new());
        let mut runs: Vec<TestRun> = Vec::new();
        let mut volumes = Volumes::default();
        let mut counted = Vec::new();
        let reading = reading(clock);
        let snap = simulation.next_snapshot(&geometry, &mut volumes);
        let (pairs, others): (Vec<Target>, Vec<Target>) =
            (snap.targets()).partition(|target| matches!(target, Target::Patches(..)));
        let targets = snap.count_targets(0..patches, Ownership::pairs_at);
        let missed = pairs.iter().filter_map(|&target| match target {
            Target::Patches(p, q) if TestRun::new(target, &snap).is_none() => Some((p, q)),
            _ => None,
        });
        let missed: Vec<(u32, u32)> = missed.collect();
        let boxed = pairs.iter().flat_map(|target| match *target {
            Target::Patches(p, q) => [p as usize, q as usize],
            Target::Patch(p) | Target::PatchBody(p, _) => [p as usize; 2],
        });
        let boxed: BTreeSet<usize> = boxed.collect();
        let corners: u64 = (boxed.iter())
            .map(|&patch| patch_sizes(&geometry, patch).corners())
            .sum();
        for _ in 0..REPEATS {
            // Positions have just been taken in where a step begins.
            hint::black_box(simulation.positions().iter().sum::<DVec3>());
            simulation.foresee_next();
            let snap = simulation.next_snapshot(&geometry, &mut volumes);
            let lap = |began: Duration| ((clock() - began).as_nanos() as f64 - reading).max(0.0);
            let mut mark = clock();
            drop(snap.roots(&all_patches));
            least[0] = least[0].min(lap(mark));
            mark = clock();
            snap.make_gradients(0..tiles.len());
            least[1] = least[1].min(lap(mark));
            mark = clock();
            drop(snap.separation_bounds_of(0..tiles.len()));
            least[2] = least[2].min(lap(mark));
            mark = clock();
            for &patch in &boxed {
                snap.make_boxes(patch);
            }
            least[7] = least[7].min(lap(mark));
            mark = clock();
            let look = |targets: &[Target]| {
                for &target in targets {
                    hint::black_box(TestRun::new(target, &snap));
                }
            };
            look(&pairs);
            least[8] = least[8].min(lap(mark));
            mark = clock();
            let all = snap.targets();
            look(&others);
            least[3] = least[3].min(lap(mark));
            runs = all
                .filter_map(|target| TestRun::new(target, &snap))
                .collect();
            // One patch is done after the other: the second half reads what is still in the cache,
            // as in a run.
            let mut made = [0.0; 2];
            for patch in 0..patches {
                let marks = [
                    clock(),
                    (snap.make_vertex_volumes(patch), clock()).1,
                    (snap.make_tree_volumes(patch), clock()).1,
                ];
                for (k, time) in made.iter_mut().enumerate() {
                    *time += ((marks[k + 1] - marks[k]).as_nanos() as f64 - reading).max(0.0);
                }
            }
            for (least, made) in least[4..6].iter_mut().zip(made) {
                *least = least.min(made);
            }
            warm.resize(runs.len(), f64::INFINITY);
            let mut found = Vec::new();
            let mut once = |least: &mut [f64]| {
                let mut sum = 0.0;
                counted.clear();
                for (run, least) in runs.iter().zip(least) {
                    let mut run = run.clone();
                    found.clear();
                    mark = clock();
                    let (made, _) = run.advance_counting(&snap, u32::MAX, &mut found);
                    let took = lap(mark);
                    *least = least.min(took);
                    sum += took;
                    counted.push(Counts {
                        volumes: u64::from(made.tests - made.leaves - made.rest_adjacent),
                        leaves: u64::from(made.leaves),
                        near: u64::from(made.rest_adjacent),
                        contacts: found.len() as u64,
                    });
                }
                sum
            };
            // The first pass makes what bodies need once; patches are prepared at a price of their
            // own.
            once(&mut vec![f64::INFINITY; runs.len()]);
            least[6] = least[6].min(once(&mut warm));
        }
        let [
            roots,
            gradients,
            bounds,
            looked,
            measured,
            trees,
            tests,
            boxes,
            begun,
        ] = least;
        let work = SeparationWork::of_all(&tiles);
        // The least times of single tasks add up to less than any of the passes took.
        let scale = tests / warm.iter().sum::<f64>().max(1.0);
        warm.iter_mut().for_each(|time| *time *= scale);

        let snap = simulation.next_snapshot(&geometry, &mut volumes);
        let mut all: Vec<Vec<Contact>> = Vec::new();
        let mut step = Step {
            number: simulation.step() + 1,
            forecast: simulation.known_costs().to_vec(),
            plans: simulation.assigns_next(),
            missed,
            ..Step::default()
        };
        let mut needed: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for run in runs {
            let (task, found) = shape(world, run, &snap)?;
            for contact in &found {
                let vertices = &contact.vertices[..usize::from(contact.count)];
                let patches = vertices.iter().map(|&v| world.tree().patch_of(v) as u32);
                let patches: Vec<u32> = patches.collect();
                for &vertex in vertices {
                    needed.entry(vertex).or_default().extend(&patches);
                }
            }
            all.push(found);
            step.tasks.push(task);
        }
        step.rows = borders(world, needed.into_iter());
        let contacts = all.iter().map(Vec::len).sum::<usize>();
        let (mut handed_out, mut sort) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..REPEATS {
            let times = simulation.time_contacts(all.clone(), clock);
            sort = sort.min(times.sorting.as_nanos() as f64);
            handed_out = handed_out.min(times.handing_out.as_nanos() as f64);
        }
        let handed_out_each = handed_out / contacts.max(1) as f64;
        let (mut planned, mut shifted) = (f64::INFINITY, f64::INFINITY);
        let mut cost_report = CostReport::default();
        let of_one = step.forecast.iter().step_by(PLANNED_RANKS);
        cost_report.add(of_one.copied().map(PartCost::from).collect(), 0, 0);
        for _ in 0..REPEATS {
            let began = clock();
            let forecast = Forecast::from_tests(&step.forecast);
            let mut assignment = forecast.assigned(&nodes_of_patches, &[0; PLANNED_RANKS]);
            let made = clock();
            let done = (0..PLANNED_RANKS as u32).map(|rank| RankWork { rank, work: 1 });
            drop(assignment.work_done(&forecast, (0, &cost_report), false));
            assignment.move_boundaries(done);
            shifted = shifted.min((clock() - made).as_nanos() as f64);
            planned = planned.min((made - began).as_nanos() as f64);
            drop(assignment);
        }
        let is_body = |task: &&Task| matches!(task.against, Against::Body(_));
        let timed = |body: bool| {
            let all = step.tasks.iter().zip(counted.iter().zip(&warm));
            let of = all.filter(|(task, _)| is_body(task) == body);
            of.map(|(_, (counts, time))| (*counts, *time))
                .collect::<Vec<_>>()
        };
        let (cloth, cloth_off) = TestPrices::fit(&timed(false));
        let (body, body_off) = TestPrices::fit(&timed(true));
        let of_cloth: f64 = timed(false).iter().map(|(_, time)| time).sum();
        let share = if tests > 0.0 { of_cloth / tests } else { 1.0 };
        step.price_error = cloth_off * share + body_off * (1.0 - share);
        let with_handing_out = |prices: TestPrices| TestPrices {
            contact: prices.contact + handed_out_each,
            ..prices
        };
        step.prices = Prices {
            cloth: with_handing_out(cloth),
            body: with_handing_out(body),
            // Which roots meet is found for all targets at once.
            target: looked / targets.max(1) as f64,
            corner: boxes / corners.max(1) as f64,
            begin: begun / pairs.len().max(1) as f64,
            vertex: roots / around.max(1) as f64,
            // Volumes of vertices are made from positions, wherever roots come from.
            way: 0.0,
            measure: measured / around.max(1) as f64,
            node: trees / f64::from(nodes.max(1)),
            gradient: gradients / work.triangles.max(1) as f64,
            separation: bounds / work.tiles.max(1) as f64,
            contact: sort / contacts.max(1) as f64,
            forecast: planned / step.forecast.len().max(1) as f64,
            shift: shifted / PLANNED_RANKS as f64,
            ..Prices::default()
        };
        let other = roots + gradients + bounds + boxes + looked + begun + sort;
        Ok(Self {
            step,
            cold: measured + trees + tests + handed_out,
            other,
            contacts,
        })
    }
}

impl Profile {
    /// Completes the record of the step after this simulation has taken it; `clock` tells the time.
    /// The least of a few times counts.
    #[must_use]
    pub(super) fn complete(
        self,
        report: &StepReport,
        simulation: &mut Simulation<'_>,
        clock: &dyn Fn() -> Duration,
    ) -> Step {
        let world = simulation.world();
        let mut step = self.step;
        let mut coarse = [0.0; 2];
        for repeat in 0..REPEATS {
            if let Some(times) = simulation.time_coarse(clock) {
                let times = times.map(|time| time.as_nanos() as f64);
                coarse = if repeat == 0 {
                    times
                } else {
                    [0, 1].map(|k| times[k].min(coarse[k]))
                };
            }
        }
        let ns = |time: Duration| time.as_nanos() as f64;
        let [collide, assemble, solve, respond, share] = report.times.map(ns);
        let vertices = world.model().masses().len() as f64;
        let weight: u64 = (0..world.tree().patch_count())
            .map(|p| world.tree().patch_weight(p))
            .sum();
        let weight = weight as f64;
        let contacts = self.contacts as f64;
        let rounds = if contacts > 0.0 {
            ns(report.rounds_time)
        } else {
            0.0
        };
        let per = |time: f64, count: f64| if count > 0.0 { time / count } else { 0.0 };
        step.measured = report.times.map(ns);
        step.products = report.products;
        step.systems = report.systems;
        let products = f64::from(report.products);
        let coarse_time = coarse[0] * f64::from(report.systems) + coarse[1] * products;
        step.rounds = report.rounds;
        step.looks = report.looks;
        step.passes = report.passes;
        // The phase takes longer than its tests alone, because tasks are forked, taken up, and
        // stopped for messages.
        let runtime = ((collide - self.other) / self.cold.max(1.0)).clamp(1.0, MOST_RUNTIME);
        step.prices = Prices {
            cloth: step.prices.cloth.times(runtime),
            body: step.prices.body.times(runtime),
            measure: step.prices.measure * runtime,
            node: step.prices.node * runtime,
            assemble: per(assemble, weight),
            product: per((solve - coarse_time).max(0.0), weight * products),
            coarse_factor: coarse[0],
            coarse_solve: coarse[1],
            row: per(rounds, contacts * f64::from(report.rounds)),
            respond: per(respond - rounds, weight),
            share: per(share, vertices),
            ..step.prices
        };
        step
    }
}

/// The time in ns that reading the clock takes: for processor time it is as long as a few dozen
/// tests.
fn reading(clock: &dyn Fn() -> Duration) -> f64 {
    let times = (0..100).map(|_| {
        let began = clock();
        (clock() - began).as_nanos() as f64
    });
    times.fold(f64::INFINITY, f64::min)
}

/// Makes the tests of a task one by one; returns the task and its contacts.
fn shape(
    world: &World,
    mut run: TestRun,
    snap: &Snapshot<'_>,
) -> Result<(Task, Vec<Contact>), ShapeError> {
    let target = run.target();
    let met = match target {
        // Records tell those of two patches of cloth.
        Target::PatchBody(..) => [0; 2],
        Target::Patch(_) | Target::Patches(..) => run.subtrees(),
    };
    let (mut visits, mut found) = (Vec::new(), Vec::new());
    let mut contacts = 0;
    while let Some((made, children, single)) = run.make_one(snap, &mut found) {
        let kind = match single {
            Single::RestAdjacent => Kind::Near,
            Single::Itself => Kind::Itself,
            Single::Pair if made.leaves > 0 => Kind::Leaf,
            Single::Pair if made.tests > 2 => Kind::Inner,
            Single::Pair => Kind::Half,
        };
        visits.push(Visit {
            kind,
            children: children as u32,
            tests: made.tests,
            contacts: (found.len() - contacts) as u32,
        });
        contacts = found.len();
    }
    let mut routes: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
    for contact in &found {
        let vertices = contact.vertices[..usize::from(contact.count)].iter();
        let patches: BTreeSet<u32> = vertices.map(|&v| world.tree().patch_of(v) as u32).collect();
        *routes.entry(patches.into_iter().collect()).or_default() += 1;
    }
    let route = |(patches, contacts)| Route { patches, contacts };
    let (patch, against) = match target {
        Target::Patch(p) => (p, Against::Itself),
        Target::Patches(p, q) => (p, Against::Patch(q)),
        Target::PatchBody(p, body) => (p, Against::Body(body)),
    };
    let task = Task {
        patch,
        against,
        tree: Tree::from_visits(visits)?,
        routes: routes.into_iter().map(route).collect(),
        met,
    };
    Ok((task, found))
}
