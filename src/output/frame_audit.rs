//! The audit of a frame: crossings counted, and what crosses written beside it.

use std::path::Path;

use glam::DVec3;
use serde::{Deserialize, Serialize};

use super::{DataArray, OutputError, PolyData, RunDirectory, Values, read_triangles, write_vtp};
use crate::collide::audit::{crossings, offenders};

/// What the frames of a run are audited for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameAudit {
    /// Frames looked at.
    pub frames: u64,
    /// Those in which cloth crosses cloth.
    pub crossing: Vec<CrossingFrame>,
}

/// A frame in which cloth crosses cloth.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrossingFrame {
    /// Its step.
    pub step: u64,
    /// Pairs of an edge and a triangle that cross.
    pub pairs: u64,
    /// The triangles that take part, in this file of the run's directory.
    pub file: String,
}

impl FrameAudit {
    /// Looks at a frame, and writes the triangles that take part in crossings to `frames/crossings.STEP.vtp`.
    ///
    /// # Errors
    /// As [`write_vtp`].
    pub fn look(
        &mut self,
        run: &RunDirectory,
        step: u64,
        x: &[DVec3],
        triangles: &[[u32; 3]],
    ) -> Result<(), OutputError> {
        let file = format!("frames/crossings.{step:06}.vtp");
        let found = crossings(x, triangles);
        self.frames += 1;
        if found.is_empty() {
            // One that an earlier look has left would be taken for this one's.
            return run.remove(&file);
        }
        let numbers = offenders(triangles, &found);
        let part: Vec<[u32; 3]> = numbers.iter().map(|&t| triangles[t as usize]).collect();
        let data = PolyData {
            points: x,
            triangles: &part,
            point_arrays: Vec::new(),
            cell_arrays: vec![DataArray {
                name: "triangle",
                values: Values::Integers(&numbers),
            }],
            time: None,
        };
        write_vtp(run, &file, &data)?;
        self.crossing.push(CrossingFrame {
            step,
            pairs: found.len() as u64,
            file,
        });
        Ok(())
    }

    /// Looks at all frames in a run's directory.
    ///
    /// # Errors
    /// [`OutputError::NothingToResume`] if it is no run's; as [`read_triangles`] and [`Self::look`].
    pub fn of_run(directory: &Path) -> Result<Self, OutputError> {
        let run = RunDirectory::reopen(directory)?;
        let frames = run.file("frames");
        let mut steps = Vec::new();
        for entry in std::fs::read_dir(&frames).map_err(OutputError::read(&frames))? {
            let name = entry.map_err(OutputError::read(&frames))?.file_name();
            let step = name.to_str().and_then(|name| {
                let digits = name.strip_prefix("cloth.")?.strip_suffix(".vtp")?;
                digits.parse::<u64>().ok()
            });
            steps.extend(step);
        }
        steps.sort_unstable();
        let mut audit = Self::default();
        for step in steps {
            let mesh = read_triangles(&run.file(&format!("frames/cloth.{step:06}.vtp")))?;
            audit.look(&run, step, &mesh.positions, &mesh.triangles)?;
        }
        Ok(audit)
    }

    /// All pairs that cross.
    #[must_use]
    pub fn pairs(&self) -> u64 {
        self.crossing.iter().map(|frame| frame.pairs).sum()
    }
}

impl std::fmt::Display for FrameAudit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some(worst) = self.crossing.iter().max_by_key(|frame| frame.pairs) else {
            return write!(f, "Audit: no crossing in any of {} frames", self.frames);
        };
        write!(
            f,
            "Audit: {} crossing pairs in {} of {} frames, most after step {} ({}, see {})",
            self.pairs(),
            self.crossing.len(),
            self.frames,
            worst.step,
            worst.pairs,
            worst.file
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_crosses_is_written_and_a_later_look_finds_the_same() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        let triangles = [[0, 1, 2], [3, 4, 5], [6, 7, 8]];
        let mut x = vec![DVec3::ZERO, DVec3::X, DVec3::Y];
        x.extend([-0.5, 0.5].map(|z| DVec3::new(0.2, 0.2, z)));
        x.push(DVec3::new(5.0, 5.0, 0.5));
        x.extend([DVec3::ZERO, DVec3::X, DVec3::Y].map(|p| p + 9.0 * DVec3::Z));
        let mut audit = FrameAudit::default();
        for step in [3, 7] {
            let data = PolyData {
                points: &x,
                triangles: &triangles,
                point_arrays: Vec::new(),
                cell_arrays: Vec::new(),
                time: Some(0.5),
            };
            write_vtp(&run, &format!("frames/cloth.{step:06}.vtp"), &data).unwrap();
            audit.look(&run, step, &x, &triangles).unwrap();
            for p in &mut x[3..6] {
                p.x += 3.0;
            }
        }
        assert_eq!((audit.frames, audit.pairs()), (2, 2));
        let part = read_triangles(&run.file(&audit.crossing[0].file)).unwrap();
        assert_eq!(part.triangles, triangles[..2]);
        run.write("frames/crossings.000007.vtp", |out| out.write_all(b"old"))
            .unwrap();
        let busy = FrameAudit::of_run(root.path()).unwrap_err();
        assert!(matches!(busy, OutputError::Busy { .. }), "{busy}");
        drop(run);
        assert_eq!(FrameAudit::of_run(root.path()).unwrap(), audit);
        let old = root.path().join("frames/crossings.000007.vtp");
        assert!(!old.exists());
        let said = "2 crossing pairs in 1 of 2 frames, most after step 3";
        assert!(audit.to_string().contains(said), "{audit}");
    }
}
