//! Scripts that run PETSc: `benches/peers/petsc_*.py`, on a system that a bench wrote.

use std::path::Path;
use std::process::Command;

/// The packages that the scripts need.
pub(crate) const NEEDS: &str = "apt-get install python3-petsc4py python3-petsc4py-real python3-numpy python3-scipy \
     openmpi-bin; PETSC_PYTHON names another interpreter that has petsc4py";

/// Runs a script, and returns its output, or its error message.
pub(crate) fn run(
    script: &str,
    directory: &Path,
    ranks: usize,
    arguments: &[String],
) -> Result<String, String> {
    let python = std::env::var("PETSC_PYTHON").unwrap_or_else(|_| "/usr/bin/python3".to_owned());
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers");
    let mut command = Command::new("mpirun");
    command.args(["-n", &ranks.to_string()]);
    for (name, value) in [
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("OMP_NUM_THREADS", "1"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
    ] {
        command.env(name, value);
    }
    if let Ok(library) = std::env::var("PETSC_PRELOAD") {
        command.args(["-x", &format!("LD_PRELOAD={library}")]);
    }
    command
        .arg(python)
        .arg(scripts.join(script))
        .arg(directory)
        .args(arguments);
    let output = command.output().map_err(|e| format!("mpirun: {e}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
