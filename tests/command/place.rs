//! A folder with a scene in it, and the command run there.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// A napkin of 12 by 12 vertices over a ball on a floor: contacts of every kind within 40 steps.
pub(crate) const SCENE: &str = r#"
title = "small"

[time]
step = "4 ms"
end = "160 ms"

[[cloth]]
name = "napkin"
grid = { size = "0.3 m", vertices = 12 }
center = [0.03, 0.02, 0.165]
material = { density = "0.15 kg/m2", stretch = "300 N/m", bending = "1e-5 N m", damping_stiffness = "4 ms" }

[[body]]
name = "ball"
shape = "sphere"
center = [0, 0, 0.08]
radius = "8 cm"
surface = "triangles"
edge = "3 cm"

[[body]]
name = "floor"
shape = "plane"
extent = "1 m"

[contact]
thickness = "4 mm"

[partition]
patches = 8

[output]
interval = "40 ms"
size = [96, 64]
"#;

/// A folder with a scene in it.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self::with(SCENE)
    }

    pub(crate) fn with(scene: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("small.toml"), scene).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
        command
            .args(arguments.split_whitespace())
            .current_dir(self.folder.path());
        // The variables of a launcher must not reach these runs.
        for name in [
            "OMPI_COMM_WORLD_SIZE",
            "PMI_SIZE",
            "PMIX_RANK",
            "MPI_LOCALNRANKS",
            "MV2_COMM_WORLD_SIZE",
            "SLURM_STEP_NUM_TASKS",
        ] {
            command.env_remove(name);
        }
        command
    }

    pub(crate) fn weft(&self, arguments: &str) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs what must fail; its exit code and message.
    pub(crate) fn fails(&self, arguments: &str) -> (i32, String) {
        let output = self.weft(arguments);
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(!message.contains("panicked"), "{arguments}: {message}");
        (output.status.code().unwrap(), message)
    }

    /// Names that need not be text.
    pub(crate) fn names_of_bytes(&self, folder: &str) -> Vec<OsString> {
        let entries = fs::read_dir(self.path(folder)).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
    }

    pub(crate) fn names(&self, folder: &str) -> BTreeSet<String> {
        let entries = fs::read_dir(self.path(folder)).unwrap();
        let name = |e: fs::DirEntry| e.file_name().into_string().unwrap();
        entries.map(|e| name(e.unwrap())).collect()
    }
}

pub(crate) fn hash_of(output: &Output) -> String {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{message}");
    let line = text.lines().last().unwrap();
    line.strip_prefix("state hash ").unwrap().to_owned()
}

pub(crate) fn record(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path.join("run.json")).unwrap()).unwrap()
}
