//! Simulations: stepping, and the state between steps.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use glam::DVec3;
use numpy::{PyArray1, PyArray2, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use weftwork::run::{hash_of, read_state};
use weftwork::step::{Ledger, PHASES, SavedState, Simulation, StepReport};

use crate::errors;
use crate::files::{triangles, vectors};
use crate::scene::NativeScene;
use crate::session::{Session, Stage, Unfit};

/// A state as Python keeps it.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct NativeState {
    state: SavedState,
}

#[pymethods]
impl NativeState {
    #[getter]
    fn step(&self) -> u64 {
        self.state.step
    }
}

/// A simulation of a scene on one rank.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct NativeSimulation {
    session: Session,
    vertices: usize,
}

/// Positions and velocities in the order of the scene.
type Kinematics = [Vec<DVec3>; 2];

/// The name of a body, its vertices and its triangles.
type NamedMesh<'py> = (String, Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<u32>>);

/// The reason why a job of stepping ended.
enum Ended {
    Done(Box<StepReport>),
    Failed(String),
    Interrupted,
}

#[pymethods]
impl NativeSimulation {
    #[new]
    fn new(py: Python<'_>, scene: &NativeScene, threads: usize) -> PyResult<Self> {
        if !(1..=256).contains(&threads) {
            return Err(errors::value(format!("threads={threads}: wants 1 to 256")));
        }
        let scene = scene.scene.clone();
        let begun = py.detach(|| Session::begin(scene, threads));
        let session = begun.map_err(|unfit| match unfit {
            Unfit::World(error) => errors::world(py, &error),
            Unfit::Step(error) => errors::step(py, &error),
            Unfit::Thread(error) => error.into(),
        })?;
        let vertices = session.ask(py, || {}, |stage| stage.simulation.positions().len())?;
        Ok(Self { session, vertices })
    }

    #[getter]
    fn vertices(&self) -> usize {
        self.vertices
    }

    /// Takes this many steps. Returns the report of the last one, if there was one.
    fn advance<'py>(&self, py: Python<'py>, steps: u64) -> PyResult<Option<Bound<'py, PyDict>>> {
        if steps == 0 {
            return Ok(None);
        }
        let stop = Arc::new(AtomicBool::new(false));
        let interrupt = Arc::clone(&stop);
        let ended = self.session.ask(
            py,
            move || interrupt.store(true, Ordering::Relaxed),
            move |stage| take(stage, steps, &stop),
        )?;
        match ended {
            Ended::Done(report) => told(py, &report).map(Some),
            Ended::Failed(message) => Err(errors::failed(py, message)),
            // The exception of Ctrl-C is on its way.
            Ended::Interrupted => Ok(None),
        }
    }

    /// Steps taken and the time in s.
    fn now(&self, py: Python<'_>) -> PyResult<(u64, f64)> {
        let now = |stage: &mut Stage<'_>| (stage.simulation.step(), stage.simulation.time());
        self.session.ask(py, || {}, now)
    }

    fn positions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let [x, _] = self.session.ask(py, || {}, kinematics)?;
        vectors(py, x)
    }

    fn velocities<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let [_, v] = self.session.ask(py, || {}, kinematics)?;
        vectors(py, v)
    }

    /// Changes positions, velocities or both.
    fn change(
        &self,
        py: Python<'_>,
        positions: Option<PyReadonlyArray2<'_, f64>>,
        velocities: Option<PyReadonlyArray2<'_, f64>>,
    ) -> PyResult<()> {
        let positions = self.taken("positions", positions)?;
        let velocities = self.taken("velocities", velocities)?;
        self.session.ask(
            py,
            || {},
            move |stage| {
                let new_to_old = stage.world.tree().new_to_old();
                let (x, v) = stage.simulation.state_mut();
                for (own, given) in [(x, positions), (v, velocities)] {
                    let Some(given) = given else { continue };
                    for (value, &old) in own.iter_mut().zip(new_to_old) {
                        *value = given[old as usize];
                    }
                }
            },
        )
    }

    fn triangles<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u32>>> {
        let all = self.session.ask(
            py,
            || {},
            |stage| {
                let old = stage.world.tree().new_to_old();
                let all = stage.world.model().triangles().iter();
                all.map(|t| t.map(|v| old[v as usize])).collect::<Vec<_>>()
            },
        )?;
        triangles(py, all)
    }

    /// The number of the cloth of each vertex.
    fn cloths<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let all = self.session.ask(
            py,
            || {},
            |stage| {
                let cloths = stage.world.model().cloth_of_vertex();
                let new = stage.world.tree().old_to_new().iter();
                new.map(|&v| i64::from(cloths[v as usize]))
                    .collect::<Vec<_>>()
            },
        )?;
        Ok(PyArray1::from_vec(py, all))
    }

    fn masses<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let all = self.session.ask(
            py,
            || {},
            |stage| stage.world.original_order(stage.world.model().masses()),
        )?;
        Ok(PyArray1::from_vec(py, all))
    }

    /// The bodies as they are now: names, vertices and triangles.
    fn bodies<'py>(&self, py: Python<'py>) -> PyResult<Vec<NamedMesh<'py>>> {
        let all = self.session.ask(
            py,
            || {},
            |stage| {
                let world = stage.world;
                let mut meshes = world.body_meshes().to_vec();
                for (body, mesh) in world.moved_bodies(stage.simulation.time()) {
                    meshes[body] = mesh;
                }
                let names = world.scene().bodies.iter().map(|body| body.name.clone());
                names.zip(meshes).collect::<Vec<_>>()
            },
        )?;
        let convert = |(name, mesh): (String, weftwork::mesh::TriMesh)| {
            let (x, t) = (vectors(py, mesh.positions)?, triangles(py, mesh.triangles)?);
            Ok((name, x, t))
        };
        all.into_iter().map(convert).collect()
    }

    /// The largest principal strain of a triangle.
    fn strain(&self, py: Python<'_>) -> PyResult<f64> {
        let strain = |stage: &mut Stage<'_>| stage.simulation.strains().largest;
        self.session.ask(py, || {}, strain)
    }

    /// The state hash, as the command tells it.
    fn hash(&self, py: Python<'_>) -> PyResult<String> {
        let hash = |stage: &mut Stage<'_>| -> Result<String, String> {
            let hash = hash_of(&stage.simulation, &mut stage.comm);
            let hash = hash.map_err(|error| error.to_string())?;
            Ok(hash.to_string())
        };
        let hash = self.session.ask(py, || {}, hash)?;
        hash.map_err(|message| errors::failed(py, message))
    }

    /// All of the state, to go back to.
    fn save(&self, py: Python<'_>) -> PyResult<NativeState> {
        let saved = self.session.ask(
            py,
            || {},
            |stage| {
                if stage.failed {
                    return Err(FAILED.to_owned());
                }
                let state = stage.simulation.gather_state(&mut stage.comm);
                state.map_err(|error| error.to_string())
            },
        )?;
        match saved {
            Ok(Some(state)) => Ok(NativeState { state }),
            Ok(None) => Err(errors::internal(py)),
            Err(message) => Err(errors::failed(py, message)),
        }
    }

    /// Goes back to a state.
    fn restore(&self, py: Python<'_>, state: &NativeState) -> PyResult<()> {
        let state = state.state.clone();
        let restored = self.session.ask(
            py,
            || {},
            move |stage| {
                if stage.failed {
                    return Err(FAILED.to_owned());
                }
                let restored = stage.simulation.restore(&state);
                restored.map_err(|error| error.to_string())
            },
        )?;
        restored.map_err(errors::value)
    }

    /// Goes on from the state of a checkpoint, which must be one of the scene.
    fn restore_file(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let named = path.clone();
        let restored = self.session.ask(
            py,
            || {},
            move |stage| {
                if stage.failed {
                    return Err(FAILED.to_owned());
                }
                let checkpoint = read_state(&path, stage.world);
                let checkpoint = checkpoint.map_err(|error| error.to_string())?;
                let restored = stage.simulation.restore(&checkpoint.state);
                restored.map_err(|error| error.to_string())
            },
        )?;
        restored.map_err(|message| errors::of_file(py, &named, message))
    }
}

/// The message about a simulation in which a step has failed.
const FAILED: &str = "a step has failed, so this simulation cannot go on; make a new simulation";

impl NativeSimulation {
    /// The vectors of an array that was given, one for each vertex.
    fn taken(
        &self,
        what: &str,
        given: Option<PyReadonlyArray2<'_, f64>>,
    ) -> PyResult<Option<Vec<DVec3>>> {
        let Some(given) = given else { return Ok(None) };
        let given = given.as_array();
        if given.shape() != [self.vertices, 3] {
            return Err(errors::value(format!(
                "{what}: wants an array of shape ({}, 3), not {:?}",
                self.vertices,
                given.shape()
            )));
        }
        let rows = given.rows().into_iter();
        let vectors: Vec<_> = rows.map(|row| DVec3::new(row[0], row[1], row[2])).collect();
        match vectors.iter().position(|vector| !vector.is_finite()) {
            Some(vertex) => Err(errors::value(format!(
                "{what}: the value of vertex {vertex} is not finite"
            ))),
            None => Ok(Some(vectors)),
        }
    }
}

fn take(stage: &mut Stage<'_>, steps: u64, stop: &AtomicBool) -> Ended {
    if stage.failed {
        return Ended::Failed(FAILED.to_owned());
    }
    let mut last = None;
    for _ in 0..steps {
        if stop.load(Ordering::Relaxed) {
            return Ended::Interrupted;
        }
        match stage.simulation.advance(&mut stage.comm) {
            Ok(report) => last = Some(report),
            Err(error) => {
                stage.failed = true;
                return Ended::Failed(error.to_string());
            }
        }
    }
    last.map_or(Ended::Interrupted, |report| Ended::Done(Box::new(report)))
}

fn kinematics(stage: &mut Stage<'_>) -> Kinematics {
    let simulation: &Simulation<'_> = &stage.simulation;
    [simulation.positions(), simulation.velocities()].map(|all| stage.world.original_order(all))
}

/// The facts about a step, by names that `weftwork.StepReport` has too.
fn told<'py>(py: Python<'py>, report: &StepReport) -> PyResult<Bound<'py, PyDict>> {
    let told = PyDict::new(py);
    let mut ledger = Ledger::default();
    for patch in &report.ledger {
        ledger.add_vertices(patch);
    }
    told.set_item("cg_iterations", report.iterations)?;
    told.set_item("systems", report.systems)?;
    told.set_item("parts", report.substeps)?;
    told.set_item("halvings", report.halvings)?;
    told.set_item("contacts", report.contacts)?;
    told.set_item("constraints", report.constraints)?;
    told.set_item("impulses", report.impulses)?;
    told.set_item("tests", report.scope.work)?;
    told.set_item("passes", report.passes)?;
    told.set_item("rounds", report.rounds)?;
    told.set_item("unsettled", report.unsettled)?;
    told.set_item("clamped", report.clamped)?;
    told.set_item("hits", report.certified.hits)?;
    told.set_item("cut", report.certified.cut)?;
    told.set_item("zones", report.certified.zones)?;
    told.set_item("squeezed", report.certified.squeezed)?;
    told.set_item("lagging", report.certified.lagging)?;
    let seconds = PyDict::new(py);
    for (phase, time) in PHASES.iter().zip(report.times) {
        seconds.set_item(*phase, time.as_secs_f64())?;
    }
    told.set_item("seconds", seconds)?;
    told.set_item("momentum", ledger.momentum.to_array())?;
    let given = PyDict::new(py);
    for (name, entry) in [
        ("gravity", &ledger.gravity),
        ("pins", &ledger.pins),
        ("bodies", &ledger.bodies),
        ("contact", &ledger.contact),
        ("cut", &ledger.cut),
    ] {
        given.set_item(name, entry.momentum.to_array())?;
    }
    told.set_item("given", given)?;
    Ok(told)
}
