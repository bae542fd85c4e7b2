//! Linear systems as MatrixMarket files, which other solvers read [Boisvert, Pozo and Remington
//! 1996].
//!
//! Reals are written with as many digits as they need to be read back exactly.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::OutputError;
use super::whole::write_whole;
use crate::solve::Prefiltered;

/// Writes `A.mtx` (symmetric, lower triangle) and `b.mtx` (a column) into a directory that exists.
///
/// # Errors
/// [`OutputError::Write`]; each file is complete or absent.
pub fn write_system(directory: &Path, system: &Prefiltered) -> Result<[PathBuf; 2], OutputError> {
    let paths = ["A.mtx", "b.mtx"].map(|name| directory.join(name));
    write_whole(&paths[0], |out| write_matrix(out, system))?;
    write_whole(&paths[1], |out| write_column(out, &system.rhs))?;
    Ok(paths)
}

fn write_matrix(out: &mut dyn Write, system: &Prefiltered) -> io::Result<()> {
    let (n, entries) = (system.rhs.len(), system.entries.len());
    writeln!(out, "%%MatrixMarket matrix coordinate real symmetric")?;
    writeln!(out, "% three rows for each vertex: x, y, z; kg")?;
    writeln!(out, "{n} {n} {entries}")?;
    for &(row, column, value) in &system.entries {
        writeln!(out, "{} {} {value:e}", row + 1, column + 1)?;
    }
    Ok(())
}

fn write_column(out: &mut dyn Write, column: &[f64]) -> io::Result<()> {
    writeln!(out, "%%MatrixMarket matrix array real general")?;
    writeln!(out, "% kg m/s")?;
    writeln!(out, "{} 1", column.len())?;
    for value in column {
        writeln!(out, "{value:e}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_have_the_form_that_others_read() {
        let folder = tempfile::tempdir().unwrap();
        let system = Prefiltered {
            entries: vec![(0, 0, 2.0), (1, 0, -1.0 / 3.0), (1, 1, 1e-300)],
            rhs: vec![0.5, -0.0],
        };
        let [a, b] = write_system(folder.path(), &system).unwrap();
        let text = fs::read_to_string(a).unwrap();
        assert_eq!(
            text,
            "%%MatrixMarket matrix coordinate real symmetric\n\
             % three rows for each vertex: x, y, z; kg\n2 2 3\n\
             1 1 2e0\n2 1 -3.333333333333333e-1\n2 2 1e-300\n"
        );
        let text = fs::read_to_string(b).unwrap();
        assert!(text.ends_with("2 1\n5e-1\n-0e0\n"), "{text}");
        let nowhere = folder.path().join("none");
        assert!(write_system(&nowhere, &system).is_err());
    }
}
