//! Errors of the simulator as exceptions of `weftwork.errors`.

use std::path::{Path, PathBuf};

use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use weftwork::mesh::MeshError;
use weftwork::output::OutputError;
use weftwork::scene::{Location, SceneError};
use weftwork::step::{StepError, WorldError};

/// An exception of `weftwork.errors`, made with these arguments.
fn raised<'py>(py: Python<'py>, class: &str, arguments: impl PyCallArgs<'py>) -> PyErr {
    let errors = py.import("weftwork.errors");
    let class = errors.and_then(|errors| errors.getattr(class));
    match class.and_then(|class| class.call1(arguments)) {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// A problem as Python gets it: file, line, column, key, message.
type Problem = (
    Option<PathBuf>,
    Option<usize>,
    Option<usize>,
    Option<String>,
    String,
);

/// The exception of a scene whose text is not valid.
pub(crate) fn scene(py: Python<'_>, error: &SceneError) -> PyErr {
    let mut problems: Vec<Problem> = Vec::new();
    for problem in error.problems() {
        let (file, line, column) = match &problem.location {
            Location::Text { path, line, column } => (path.clone(), Some(*line), *column),
            Location::Override(_) => (None, None, None),
        };
        let key = Some(problem.key.clone()).filter(|key| !key.is_empty());
        problems.push((file, line, column, key, problem.message.clone()));
    }
    let message = error.to_string();
    if let SceneError::Missing { path, .. } | SceneError::Unreadable { path, .. } = error {
        problems.push((Some(path.clone()), None, None, None, message.clone()));
    }
    raised(py, "SceneError", (message, problems))
}

/// The exception of a scene whose meshes are not valid, or whose objects lie wrongly.
pub(crate) fn world(py: Python<'_>, error: &WorldError) -> PyErr {
    let file = match error {
        WorldError::Mesh(MeshError::Unreadable { path, .. } | MeshError::Format { path, .. }) => {
            Some(path.clone())
        }
        _ => None,
    };
    let message = error.to_string();
    let problem: Problem = (file, None, None, None, message.clone());
    raised(py, "SceneError", (message, vec![problem]))
}

/// The reason why a step could not be taken.
pub(crate) fn step(py: Python<'_>, error: &StepError) -> PyErr {
    raised(py, "SimulationError", (error.to_string(),))
}

/// The exception of a file of a run that cannot be read.
pub(crate) fn file(py: Python<'_>, path: &Path, error: &OutputError) -> PyErr {
    raised(py, "FileError", (error.to_string(), path))
}

/// A value that the simulator cannot take.
pub(crate) fn value(message: impl Into<String>) -> PyErr {
    pyo3::exceptions::PyValueError::new_err(message.into())
}

/// A fault of the simulator itself.
pub(crate) fn internal(py: Python<'_>) -> PyErr {
    let message =
        "the simulation ended with an internal fault (see standard error); make a new simulation";
    raised(py, "SimulationError", (message,))
}

/// The reason why a simulation cannot go on.
pub(crate) fn failed(py: Python<'_>, message: String) -> PyErr {
    raised(py, "SimulationError", (message,))
}

/// The exception of a file that is not what it should be, with a sentence on it.
pub(crate) fn of_file(py: Python<'_>, path: &Path, message: String) -> PyErr {
    raised(py, "FileError", (message, path))
}
