//! Scenes.

use std::path::PathBuf;

use pyo3::prelude::*;
use weftwork::memory::{self, Ranks};
use weftwork::scene::Scene;

use crate::errors;

/// A checked scene, as the simulator has it.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct NativeScene {
    pub(crate) scene: Scene,
}

#[pymethods]
impl NativeScene {
    #[getter]
    fn name(&self) -> &str {
        &self.scene.name
    }

    #[getter]
    fn title(&self) -> &str {
        &self.scene.title
    }

    #[getter]
    fn step(&self) -> f64 {
        self.scene.time.step
    }

    #[getter]
    fn end(&self) -> f64 {
        self.scene.time.end
    }

    #[getter]
    fn steps(&self) -> u64 {
        self.scene.time.steps()
    }

    /// The scene with all keys in force.
    fn echo(&self) -> String {
        self.scene.echo()
    }

    /// Builds everything that a simulation needs: the warnings, and a line on each object.
    fn check(&self, py: Python<'_>) -> PyResult<(Vec<String>, Vec<String>)> {
        let built = py.detach(|| {
            let world = memory::build_as_environment(&self.scene, 1, Ranks::none());
            world.map(|world| {
                let warnings = [self.scene.idle_keys(), world.warnings()].concat();
                let sizes = world.sizes().iter().map(ToString::to_string).collect();
                (warnings, sizes)
            })
        });
        built.map_err(|error| errors::world(py, &error))
    }
}

/// Reads a scene file, or a scene that is part of the program, by name.
#[pyfunction]
pub(crate) fn find_scene(
    py: Python<'_>,
    path: PathBuf,
    overrides: Vec<(String, String)>,
) -> PyResult<NativeScene> {
    match Scene::find(&path, &overrides) {
        Ok(scene) => Ok(NativeScene { scene }),
        Err(error) => Err(errors::scene(py, &error)),
    }
}

/// Reads a scene from a text. `path` is what names it, and where its files are looked for.
#[pyfunction]
pub(crate) fn parse_scene(
    py: Python<'_>,
    text: &str,
    path: Option<PathBuf>,
    overrides: Vec<(String, String)>,
) -> PyResult<NativeScene> {
    match Scene::parse(text, path.as_deref(), &overrides) {
        Ok(scene) => Ok(NativeScene { scene }),
        Err(error) => Err(errors::scene(py, &error)),
    }
}
