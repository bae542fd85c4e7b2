//! `run.json`: what ran, on what, and how it ended; for people, scripts and `weft report`.
//!
//! Written at the start with `"exit": null` and again at the end, so that a record without an exit
//! code is a run that was killed or still goes on. `"schema"` is 1; fields may be added under the
//! same schema, a changed meaning makes it 2. Numbers that are not finite are written as `null`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use glam::DVec3;
use serde::{Deserialize, Serialize};
use weft_io::{Show as _, read_regular};
use weft_report::{Efficiency, Phase as PhaseRecord};
use weft_runtime::trace::Sharing;

use super::{FrameAudit, HistoryMark, OutputError, RunDirectory, StateHash};
use crate::build_identity::BuildIdentity;
use crate::collide::BodyMotion;
use crate::collide::bodies::{Analytic, Sampling};
use crate::scene::{Body, Colours, Motion, Surface};
use crate::step::{MemoryPart, Stops};

/// Everything about a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Version of this layout: [`RunRecord::SCHEMA`].
    pub schema: u32,
    /// The program that ran.
    pub program: ProgramRecord,
    /// The identity of the run, which its trace has too. Runs of earlier programs have none.
    #[serde(default)]
    pub run: String,
    /// The machine that it ran on.
    pub machine: MachineRecord,
    /// The command line, program first.
    pub command: Vec<String>,
    /// The scene.
    pub scene: SceneRecord,
    /// Its bodies, in its order. Runs of earlier programs do not tell.
    #[serde(default)]
    pub bodies: Option<Vec<BodyRecord>>,
    /// The outline of its frames, if it writes any. Runs of earlier programs do not tell.
    #[serde(default)]
    pub frames: Option<FramesRecord>,
    /// The run that its frames were refined from, if it is no run but made by `weft refine`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refined: Option<RefinedRecord>,
    /// Seed of everything random.
    pub seed: u64,
    /// The cloth that started through cloth, if some did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<StartRecord>,
    /// Quality of the partition.
    pub partition: Option<PartitionRecord>,
    /// Wall time of the time loop in s, slowest rank.
    pub loop_s: Option<f64>,
    /// The times of the phases, in the order of the phase table.
    #[serde(default)]
    pub phases: Vec<PhaseRecord>,
    /// The activities of ranks between steps: the parts of `loop_s` that belong to no phase.
    #[serde(default)]
    pub between: Vec<PhaseRecord>,
    /// How well the ranks were used in steps: outputs are left out, and no wait is useful.
    pub efficiency: Option<Efficiency>,
    /// How the collision tests were shared.
    pub balance: Option<BalanceRecord>,
    /// The work of each rank, by rank.
    #[serde(default)]
    pub ranks: Vec<RankRecord>,
    /// The memory that each process holds for the world, by part; ranks that are threads share it.
    /// Runs of earlier programs do not say.
    #[serde(default)]
    pub world_memory: Vec<MemoryPart>,
    /// How ranks were to share work.
    #[serde(default)]
    pub sharing: Option<Sharing>,
    /// The last state.
    pub result: Option<ResultRecord>,
    /// The reason why its linear solves went no further; of those since it went on.
    #[serde(default)]
    pub solves: Option<Stops>,
    /// The keys of the scene that were changed when the run went on, in the order of steps; the
    /// scene is that of the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ChangeRecord>,
    /// The step of the checkpoint from which the run went on; what is measured is of the time
    /// since.
    #[serde(default)]
    pub resumed_from: Option<u64>,
    /// The crossings of its frames of cloth with cloth or bodies, if they were audited; of the
    /// frames since it went on.
    #[serde(default)]
    pub audit: Option<FrameAudit>,
    /// The trace, if there is one.
    #[serde(default)]
    pub trace: Option<TraceRecord>,
    /// The mark of the history when the record was written. It covers the steps that the run went
    /// on from where it starts, and all steps at its end. Runs of earlier programs do not say.
    #[serde(default)]
    pub history: Option<HistoryMark>,
    /// The reason why the run stopped, in order, before its end.
    #[serde(default)]
    pub stopped: Option<String>,
    /// Warnings that a reader of the result must know: limits that it breaks.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// The error that ended the run, if one did.
    pub error: Option<String>,
    /// Exit code; `None` while the run goes on, and for ever if it was killed.
    pub exit: Option<u8>,
}

/// The program that ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramRecord {
    /// Name of the package.
    pub name: String,
    /// Its version.
    pub version: String,
    /// `debug` or `release`.
    pub profile: String,
    /// Optional parts that were built in.
    pub features: Vec<String>,
    /// The commit that it was built from; only release builds know theirs.
    #[serde(default)]
    pub commit: Option<String>,
    /// SHA-256 of the executable file. Runs of earlier programs do not say.
    #[serde(default)]
    pub executable: Option<String>,
}

impl ProgramRecord {
    /// This program, as it was built, with these optional parts.
    #[must_use]
    pub fn this(features: &[&str]) -> Self {
        let build = BuildIdentity::as_far_as_known();
        Self {
            name: env!("CARGO_PKG_NAME").to_owned(),
            version: build.version.clone(),
            profile: if cfg!(debug_assertions) {
                "debug"
            } else {
                "release"
            }
            .to_owned(),
            features: features.iter().map(ToString::to_string).collect(),
            commit: build.commit.clone(),
            executable: build.executable.clone(),
        }
    }
}

/// The cloth that started through cloth.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StartRecord {
    /// Pairs of an edge and a face that crossed at the start.
    pub crossings: u64,
    /// The first of them, by the names of cloths and the numbers of vertices in these.
    pub pairs: Vec<String>,
    /// Vertices that could pass through cloth at the start.
    pub vertices: u64,
    /// The number of vertices that could still pass at the end; `None` while the run goes on.
    pub kept: Option<u64>,
    /// The simulated time in s after which none could, if that was since the run went on.
    pub free_after_s: Option<f64>,
}

/// A key of the scene that has another value from a step on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangeRecord {
    /// The number of steps that were taken before.
    pub step: u64,
    /// The simulated time in s from which it holds.
    pub time_s: f64,
    /// Its dotted name, as `--set` takes it.
    pub key: String,
    /// Its value before, as scenes have it; `None` if it was not set.
    pub before: Option<String>,
    /// Its value from then on; `None` if it is not set.
    pub now: Option<String>,
}

impl fmt::Display for ChangeRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<String>| match value {
            Some(value) => value.shown().to_string(),
            None => "nothing".to_owned(),
        };
        let (key, now, before) = (self.key.shown(), shown(&self.now), shown(&self.before));
        write!(f, "{key} = {now} where it had {before} before")
    }
}

/// The machine that a run ran on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineRecord {
    /// Number of ranks.
    pub ranks: u32,
    /// Workers per rank.
    pub threads: u32,
    /// How ranks talk: `solo`, `threads`, `virtual`, `mpi`.
    pub comm: String,
    /// The ranks that ran on each host.
    pub hosts: BTreeMap<String, Vec<u32>>,
    /// Cores that the first rank's process may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
    /// The MPI library's own description, if there was one.
    pub mpi: Option<String>,
}

/// The scene that ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SceneRecord {
    /// Its name.
    pub name: String,
    /// The file, as it was given.
    pub path: Option<String>,
    /// SHA-256 of its text in hexadecimal.
    pub sha256: String,
    /// SHA-256 of all keys on which the trajectory depends, as they are in force. Runs of earlier
    /// programs do not say.
    #[serde(default)]
    pub trajectory: Option<String>,
}

/// A body, as far as audits of frames have to know it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BodyRecord {
    /// Its name.
    pub name: String,
    /// Its formula where it is placed, in m, if that is what cloth collides with; of others the
    /// triangles are in frames.
    pub formula: Option<Analytic>,
    /// How cloth meets it by samples of the distance from its mesh, if it does; the mesh is in
    /// frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance: Option<Sampling>,
    /// Its velocity in m/s; zero for a body at rest, or one with a motion.
    pub velocity: DVec3,
    /// Its path, if it does not keep its velocity.
    pub motion: Option<Motion>,
    /// Whether it deforms besides.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deforms: bool,
    /// Whether pictures show it with flat faces and the colour of floors.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub flat: bool,
}

impl BodyRecord {
    /// Makes the record of a body of the scene.
    #[must_use]
    pub fn new(body: &Body) -> Self {
        let formula = match body.surface {
            Surface::Analytic => Analytic::new(&body.shape),
            Surface::Triangles { .. } | Surface::Distance { .. } => None,
        };
        Self {
            name: body.name.clone(),
            formula,
            distance: None,
            velocity: body.velocity,
            motion: body.motion.clone(),
            deforms: body.deformation.is_some(),
            flat: body.shape.is_flat(),
        }
    }

    /// Whether it stays where it is placed: its triangles are written once.
    #[must_use]
    pub(crate) fn is_still(&self) -> bool {
        self.velocity == DVec3::ZERO && self.motion.is_none() && !self.deforms
    }

    /// How it moves.
    #[must_use]
    pub fn way(&self) -> BodyMotion {
        BodyMotion::of(self.velocity, self.motion.as_ref())
    }
}

/// The outline of frames.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FramesRecord {
    /// The time between frames in s, as the scene wants it.
    pub interval_s: f64,
    /// The length of a step in s; frames are written where steps end.
    pub step_s: f64,
    /// The cloths, whose vertices follow each other in frames.
    pub cloths: Vec<ClothRecord>,
    /// How frames are drawn; earlier programs do not say.
    #[serde(default)]
    pub view: Option<ViewRecord>,
    /// Pairs of vertices that seams sew together: their features are neighbours.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sewn: Vec<[u32; 2]>,
}

/// How pictures of a run look.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ViewRecord {
    /// The position of the camera at the start, in m.
    pub eye: DVec3,
    /// The point at which it looks at the start, in m.
    pub target: DVec3,
    /// Whether it goes along with the mean of all cloth.
    pub follows: bool,
    /// The size of pictures in pixels.
    pub size: [u32; 2],
    /// The colours of cloth.
    pub colours: Colours,
}

/// A cloth in frames.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClothRecord {
    /// Its name.
    pub name: String,
    /// Its vertices in frames.
    pub vertices: usize,
    /// The file in the run's directory with its mesh as it came: faces, texture, vertices.
    pub mesh: String,
    /// Whether vertices of that mesh that are at one place are one vertex in frames.
    pub joined: bool,
    /// Whether it passes through itself: audits look at no pairs within it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passes_itself: bool,
}

/// Frames that were refined.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefinedRecord {
    /// The directory of the run that they are from, as it was given.
    pub from: String,
    /// How many times its triangles were split into four.
    pub levels: u32,
    /// How many frames there are.
    pub frames: u64,
    /// The vertices that they have beside those of the run's frames, all frames together.
    pub new: u64,
    /// How many of these were to leave the surface of triangles, all frames together.
    pub moved: u64,
    /// How many of these were cut, because features would have come too close.
    pub cut: u64,
}

/// Quality of the partition.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartitionRecord {
    /// Number of patches.
    pub patches: u64,
    /// Edges of the matrix graph between vertices of different ranks.
    pub cut: u64,
    /// All edges of that graph.
    pub edges: u64,
    /// Largest weight of a rank over the average.
    pub imbalance: f64,
    /// Halo vertices of all ranks.
    pub halo: u64,
}

/// How the collision tests were shared, all ranks together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BalanceRecord {
    /// Tasks the steps began with.
    pub top_level: u64,
    /// Tasks that ran.
    pub tasks: u64,
    /// Tests (pairs of BVH nodes).
    pub tests: u64,
    /// Times a running task gave part of its stack away.
    pub splits: u64,
    /// Requests for work that were sent.
    pub steal_requests: u64,
    /// Requests that brought work.
    pub steals: u64,
    /// Share of the ranks' time in the loop spent without work, in [0, 1].
    pub idle: f64,
}

/// The work of one rank.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankRecord {
    /// The first patch that it owns.
    pub first_patch: u64,
    /// The patch after the last one that it owns.
    pub end_patch: u64,
    /// Time in each phase in s, in the order of the phase table.
    pub phases_s: Vec<f64>,
    /// Time that its workers spent in tasks in s, over their number.
    pub tasks_s: f64,
    /// Time in which it made patches ready for tests outside of tasks, in s.
    #[serde(default)]
    pub early_s: f64,
    /// Time that it waited for messages in its steps, outside of the sharing of tasks, in s.
    #[serde(default)]
    pub waited_s: f64,
    /// Time of its steps in which it was at work, in s: what efficiencies are of. Runs of earlier
    /// programs do not say.
    #[serde(default)]
    pub useful_s: Option<f64>,
    /// Tasks that ran here.
    pub tasks: u64,
    /// Tests made here.
    pub tests: u64,
    /// Times a task that ran here gave part of its stack away.
    pub splits: u64,
    /// Requests for work that it sent.
    pub steal_requests: u64,
    /// Requests among them that brought work.
    pub steals: u64,
    /// Requests among them that brought none.
    pub refused: u64,
    /// Tasks that came from other ranks.
    pub tasks_in: u64,
    /// Tasks that went to other ranks.
    pub tasks_out: u64,
    /// Bytes it sent in collision phases, for all that.
    pub bytes: u64,
    /// Bytes of positions and velocities that other ranks sent to it in steps. Runs of earlier
    /// programs do not say.
    #[serde(default)]
    pub state_bytes: u64,
    /// The most vertices of other ranks whose state it was sent in a step.
    #[serde(default)]
    pub ghosts: u64,
    /// Parts of steps in which ranks that know only some vertices sent each other the state of all.
    #[serde(default)]
    pub gathered: u64,
    /// The most memory that its process has had, in bytes: ranks that are threads share one. Runs
    /// of earlier programs do not say, nor do systems other than Linux.
    #[serde(default)]
    pub peak_memory_bytes: Option<u64>,
    /// The memory that it held at the end beside the world, by part. Runs of earlier programs do
    /// not say.
    #[serde(default)]
    pub memory: Vec<MemoryPart>,
}

/// A trace that was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceRecord {
    /// Its name in the directory.
    pub file: String,
    /// The first step in it.
    pub first_step: Option<u64>,
    /// The last.
    pub last_step: Option<u64>,
    /// Events in it.
    pub events: u64,
    /// Events that found no room.
    pub dropped: u64,
    /// How far the aligned clocks of two ranks may be apart in s.
    pub clock_error_s: f64,
}

/// The version of the hash in records that do not tell it.
fn first_version() -> u32 {
    1
}

/// The last state.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultRecord {
    /// Its hash, see [`StateHash`].
    pub hash: StateHash,
    /// [`StateHash::VERSION`]; earlier programs do not say.
    #[serde(default = "first_version")]
    pub hash_version: u32,
    /// Cloth vertices.
    pub vertices: u64,
    /// Steps done.
    pub steps: u64,
    /// Greatest depth of a vertex inside a body in m, if it was audited.
    pub max_penetration_m: Option<f64>,
    /// Greatest principal strain of a triangle: elongation relative to its rest length.
    pub max_strain: Option<f64>,
    /// Parts of steps that failed and were halved.
    #[serde(default)]
    pub halvings: Option<u64>,
    /// The shortest part of a step in s, if any step was cut.
    #[serde(default)]
    pub shortest_part_s: Option<f64>,
}

impl RunRecord {
    /// The layout written by this version.
    pub const SCHEMA: u32 = 1;
    /// Largest file that is read, in bytes: a rank takes some 600, and scenes have at most 65,536.
    const LARGEST: u64 = 256 << 20;

    /// The record of a run that starts.
    #[must_use]
    pub fn new(
        program: ProgramRecord,
        machine: MachineRecord,
        command: Vec<String>,
        scene: SceneRecord,
        seed: u64,
    ) -> Self {
        Self {
            schema: Self::SCHEMA,
            program,
            run: String::new(),
            machine,
            command,
            scene,
            bodies: None,
            frames: None,
            refined: None,
            seed,
            start: None,
            partition: None,
            loop_s: None,
            phases: Vec::new(),
            between: Vec::new(),
            efficiency: None,
            balance: None,
            ranks: Vec::new(),
            world_memory: Vec::new(),
            sharing: None,
            result: None,
            solves: None,
            changes: Vec::new(),
            resumed_from: None,
            audit: None,
            trace: None,
            history: None,
            stopped: None,
            warnings: Vec::new(),
            error: None,
            exit: None,
        }
    }

    /// Notes that the run failed.
    pub fn fail(&mut self, exit: u8, error: impl Into<String>) {
        self.exit = Some(exit);
        self.error = Some(error.into());
    }

    /// Writes the record, replacing the one that is there.
    ///
    /// # Errors
    /// [`OutputError::Write`].
    pub fn write(&self, run: &RunDirectory) -> Result<(), OutputError> {
        run.write(RunDirectory::RECORD, |out| {
            serde_json::to_writer_pretty(&mut *out, self)?;
            out.write_all(b"\n")
        })?;
        Ok(())
    }

    /// Reads the record in a directory.
    ///
    /// # Errors
    /// [`OutputError::Read`]; [`OutputError::Malformed`] if it is not a record, or one of a later
    /// schema.
    pub fn read(directory: &Path) -> Result<Self, OutputError> {
        let path = directory.join(RunDirectory::RECORD);
        let bytes = read_regular(&path, Self::LARGEST).map_err(OutputError::read(&path))?;
        let malformed = |what: String| OutputError::Malformed {
            path: path.clone(),
            what,
        };
        // The rest may mean something else in a later schema.
        #[derive(Deserialize)]
        struct Head {
            #[serde(default)]
            schema: Option<u64>,
        }
        let head: Head = match serde_json::from_slice(&bytes) {
            Err(error) if error.is_data() => return Err(malformed("no \"schema\"".to_owned())),
            head => head.map_err(|error| malformed(error.to_string()))?,
        };
        match head.schema {
            Some(schema) if schema == u64::from(Self::SCHEMA) => {}
            Some(schema) => {
                let known = Self::SCHEMA;
                return Err(malformed(format!(
                    "schema {schema}, this program knows {known}"
                )));
            }
            None => return Err(malformed("no \"schema\"".to_owned())),
        }
        serde_json::from_slice(&bytes).map_err(|error| malformed(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn started() -> RunRecord {
        let machine = MachineRecord {
            ranks: 2,
            threads: 1,
            comm: "threads".to_owned(),
            hosts: BTreeMap::from([("n01".to_owned(), vec![0, 1])]),
            cores: None,
            mpi: None,
        };
        let scene = SceneRecord {
            name: "drape".to_owned(),
            path: Some("scenes/drape.toml".to_owned()),
            sha256: "5f2c".to_owned(),
            trajectory: None,
        };
        let command = vec![
            "weft".to_owned(),
            "run".to_owned(),
            "scenes/drape.toml".to_owned(),
        ];
        RunRecord::new(ProgramRecord::this(&["mpi"]), machine, command, scene, 42)
    }

    #[test]
    fn record_of_a_run_that_goes_on_has_a_null_exit() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        started().write(&run).unwrap();
        let json: serde_json::Value =
            serde_json::from_slice(&fs::read(run.file("run.json")).unwrap()).unwrap();
        assert_eq!(json["schema"], 1);
        assert!(json.as_object().unwrap().contains_key("exit") && json["exit"].is_null());
        assert_eq!(json["program"]["name"], "weftwork");
        assert_eq!(json["machine"]["hosts"]["n01"][1], 1);
        assert_eq!(json["scene"]["sha256"], "5f2c");
        // Which is what makes the directory ours.
        drop(run);
        RunDirectory::reopen(root.path()).unwrap();
    }

    #[test]
    fn finished_record_reads_back() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        let mut record = started();
        record.partition = Some(PartitionRecord {
            patches: 32,
            cut: 199,
            edges: 29601,
            imbalance: 1.5,
            halo: 9,
        });
        record.phases = vec![PhaseRecord {
            name: "collide".to_owned(),
            min_s: 3.5,
            min_rank: 1,
            avg_s: 3.75,
            max_s: 4.0,
            max_rank: 0,
        }];
        record.result = Some(ResultRecord {
            hash: StateHash(0x9d0e),
            hash_version: StateHash::VERSION,
            vertices: 10_000,
            steps: 200,
            max_penetration_m: None,
            max_strain: Some(0.1),
            halvings: Some(3),
            shortest_part_s: Some(5e-4),
        });
        record.exit = Some(0);
        record.write(&run).unwrap();
        assert_eq!(RunRecord::read(root.path()).unwrap(), record);
        let text = fs::read_to_string(run.file("run.json")).unwrap();
        assert!(text.contains("\"hash\": \"0000000000009d0e\""), "{text}");
    }

    #[test]
    fn failure_is_recorded_with_code_and_text() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        let mut record = started();
        record.fail(4, "step 17: patch 3, vertex 12 is not finite");
        record.write(&run).unwrap();
        let back = RunRecord::read(root.path()).unwrap();
        assert_eq!(back.exit, Some(4));
        assert!(back.error.unwrap().contains("vertex 12"));
    }

    #[test]
    fn rubbish_and_later_schemas_are_refused() {
        let root = tempfile::tempdir().unwrap();
        for (text, word) in [
            ("{", "EOF"),
            ("[]", "schema"),
            (r#"{"schema": 2}"#, "schema 2"),
            (r#"{"schema": 1}"#, "missing field"),
        ] {
            fs::write(root.path().join("run.json"), text).unwrap();
            let error = RunRecord::read(root.path()).unwrap_err();
            assert!(error.to_string().contains(word), "{error}");
        }
    }
}
