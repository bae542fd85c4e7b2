//! The native part of the Python package `weftwork`: scenes, simulations and files as Python and
//! numpy have them.
//!
//! It is kept small: what needs no speed and no type of the simulator is written in Python, in
//! `python/weftwork`, which also has the documentation. Errors become exceptions of
//! `weftwork.errors`.

mod errors;
mod files;
mod scene;
mod session;
mod simulation;

use pyo3::prelude::*;

/// The native part of the package `weftwork`.
#[pymodule]
#[pyo3(name = "_weftwork")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<scene::NativeScene>()?;
    module.add_class::<simulation::NativeSimulation>()?;
    module.add_function(wrap_pyfunction!(scene::find_scene, module)?)?;
    module.add_function(wrap_pyfunction!(scene::parse_scene, module)?)?;
    module.add_function(wrap_pyfunction!(files::read_frame, module)?)?;
    module.add_function(wrap_pyfunction!(files::read_checkpoint, module)?)?;
    module.add_function(wrap_pyfunction!(files::read_collection, module)?)?;
    Ok(())
}
