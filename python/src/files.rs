//! Files of runs as arrays.

use std::path::PathBuf;

use glam::DVec3;
use numpy::{PyArray1, PyArray2, PyArrayMethods as _};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use weftwork::output::{ArrayValues, Checkpoint, Collection, NamedArray};

use crate::errors;

/// Vectors as the rows of an array.
pub(crate) fn vectors(py: Python<'_>, all: Vec<DVec3>) -> PyResult<Bound<'_, PyArray2<f64>>> {
    let rows = all.len();
    PyArray1::from_vec(py, bytemuck::cast_vec(all)).reshape([rows, 3])
}

/// Triangles as the rows of an array.
pub(crate) fn triangles(py: Python<'_>, all: Vec<[u32; 3]>) -> PyResult<Bound<'_, PyArray2<u32>>> {
    let rows = all.len();
    PyArray1::from_vec(py, bytemuck::cast_vec(all)).reshape([rows, 3])
}

/// Reads a frame: its time, vertices, triangles, and the arrays of both by name.
#[pyfunction]
pub(crate) fn read_frame(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let read = py.detach(|| weftwork::output::read_frame(&path));
    let frame = read.map_err(|error| errors::file(py, &path, &error))?;
    let told = PyDict::new(py);
    told.set_item("time", frame.time)?;
    told.set_item("positions", vectors(py, frame.mesh.positions)?)?;
    told.set_item("triangles", triangles(py, frame.mesh.triangles)?)?;
    told.set_item("of_vertices", arrays(py, frame.of_vertices)?)?;
    told.set_item("of_triangles", arrays(py, frame.of_triangles)?)?;
    Ok(told)
}

fn arrays(py: Python<'_>, all: Vec<NamedArray>) -> PyResult<Bound<'_, PyDict>> {
    let told = PyDict::new(py);
    for NamedArray { name, values } in all {
        match values {
            ArrayValues::Scalars(values) => told.set_item(name, PyArray1::from_vec(py, values))?,
            ArrayValues::Integers(values) => told.set_item(name, PyArray1::from_vec(py, values))?,
            ArrayValues::Vectors(values) => told.set_item(name, vectors(py, values)?)?,
        }
    }
    Ok(told)
}

/// Reads a checkpoint: its header as JSON, and its arrays by name.
#[pyfunction]
pub(crate) fn read_checkpoint(
    py: Python<'_>,
    path: PathBuf,
) -> PyResult<(String, Bound<'_, PyDict>)> {
    let read = py.detach(|| Checkpoint::read(&path));
    let Checkpoint { header, state } = read.map_err(|error| errors::file(py, &path, &error))?;
    let header =
        serde_json::to_string(&header).map_err(|error| errors::value(error.to_string()))?;
    let told = PyDict::new(py);
    told.set_item("positions", vectors(py, state.positions)?)?;
    told.set_item("velocities", vectors(py, state.velocities)?)?;
    let held = state.contacts.iter().map(|contact| contact.held).collect();
    told.set_item("held", PyArray1::<bool>::from_vec(py, held))?;
    Ok((header, told))
}

/// Reads the list of frames of a run: time, part and file of each mesh. `None` if there is none.
#[pyfunction]
pub(crate) fn read_collection(
    py: Python<'_>,
    path: PathBuf,
) -> PyResult<Option<Vec<(f64, usize, String)>>> {
    let read = Collection::read(&path).map_err(|error| errors::file(py, &path, &error))?;
    let entries = |collection: Collection| {
        let entries = collection.entries();
        entries
            .map(|(time, part, file)| (time, part, file.to_owned()))
            .collect()
    };
    Ok(read.map(entries))
}
