//! The audit of a frame: crossings of cloth with cloth and with bodies counted, and what crosses
//! written beside it.
//!
//! A body is judged by what cloth collides with. One made of triangles is where it is in the frame,
//! to the bit, and edges of cloth that pass through its triangles, or its edges through those of
//! cloth, are crossings. One given by a formula has no triangles: of it the vertices of cloth are
//! counted that are inside, and of a ball the faces that cut it between vertices outside.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::frames::{moving_file, path_of_cloth, step_of_cloth, still_file};
use super::vtp_read::read_time;
use super::{
    BodyRecord, DataArray, FramesRecord, OutputError, PolyData, RunDirectory, RunRecord, Values,
    read_triangles, write_vtp,
};
use crate::collide::audit::{Audited, Crossing, Met, Part, SampleError, Skin};
use crate::collide::bodies::{BodySurface, Pose};
use crate::collide::{Enclosed, Passing};
use crate::mesh::TriMesh;

/// The result of an audit of the frames of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameAudit {
    /// Frames looked at.
    pub frames: u64,
    /// How many bodies were looked at in each; none if it is not known of what they are.
    #[serde(default)]
    pub bodies: Option<u64>,
    /// The frames in which cloth crosses cloth or a body, or is inside one.
    pub crossing: Vec<CrossingFrame>,
}

/// A frame in which cloth crosses something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrossingFrame {
    /// Its step.
    pub step: u64,
    /// Pairs of an edge and a triangle that cross, both of cloth.
    pub pairs: u64,
    /// The bodies that take part, in the order of the scene.
    #[serde(default)]
    pub bodies: Vec<CrossedBody>,
    /// The triangles that take part, in this file of the run's directory.
    pub file: String,
}

/// A body that cloth crosses in a frame, or is inside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrossedBody {
    /// Its name.
    pub name: String,
    /// Pairs of an edge and a triangle that cross, one of cloth and one of the body.
    pub pairs: u64,
    /// Vertices of cloth inside a body that has no triangles.
    pub inside: u64,
    /// Faces of cloth that cut such a ball between vertices outside.
    #[serde(default)]
    pub faces: u64,
}

/// A frame as it is audited.
#[derive(Debug)]
pub struct AuditedFrame<'a> {
    /// Its step.
    pub step: u64,
    /// The cloth.
    pub cloth: Skin<'a>,
    /// The bodies with their names, in the order of the scene, if they are known.
    pub bodies: Option<Vec<(&'a str, Audited<'a>)>>,
}

/// The findings in a frame.
#[derive(Debug)]
struct Found {
    own: Vec<Crossing>,
    /// The findings of each body.
    bodies: Vec<Met>,
}

impl CrossingFrame {
    /// Pairs of cloth and bodies that cross.
    #[must_use]
    pub(crate) fn pairs_with_bodies(&self) -> u64 {
        self.bodies.iter().map(|body| body.pairs).sum()
    }

    /// Vertices inside bodies without triangles, and faces that cut these.
    #[must_use]
    pub fn inside(&self) -> u64 {
        let inside = self.bodies.iter().map(|body| body.inside + body.faces);
        inside.sum()
    }

    /// The weight by which it is compared with others.
    fn weight(&self) -> u64 {
        self.pairs + self.pairs_with_bodies() + self.inside()
    }
}

impl std::fmt::Display for CrossingFrame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut parts = Vec::new();
        if self.pairs > 0 {
            parts.push(format!("{} pairs of cloth and cloth", self.pairs));
        }
        for CrossedBody {
            name,
            pairs,
            inside,
            faces,
        } in &self.bodies
        {
            if *pairs > 0 {
                parts.push(format!("{pairs} pairs of cloth and body `{name}`"));
            }
            if *inside > 0 {
                parts.push(format!("{inside} vertices inside body `{name}`"));
            }
            if *faces > 0 {
                parts.push(format!("{faces} faces that cut body `{name}`"));
            }
        }
        write!(f, "{}", parts.join(", "))
    }
}

impl AuditedFrame<'_> {
    fn find(&self) -> Found {
        let bodies = self.bodies.iter().flatten();
        Found {
            own: self.cloth.crossings(),
            bodies: bodies.map(|(_, body)| body.meet(&self.cloth)).collect(),
        }
    }

    /// The finding for the record; nothing if nothing crosses.
    fn record(&self, found: &Found) -> Option<CrossingFrame> {
        let bodies = self.bodies.iter().flatten().zip(&found.bodies);
        let crossed = bodies.map(|((name, _), met)| {
            let (pairs, inside, faces) = match met {
                Met::Crossing(between) => (between.pairs(), 0, 0),
                Met::Inside(inside) => (0, inside.vertices.len(), inside.faces.len()),
            };
            CrossedBody {
                name: (*name).to_owned(),
                pairs: pairs as u64,
                inside: inside as u64,
                faces: faces as u64,
            }
        });
        let frame = CrossingFrame {
            step: self.step,
            pairs: found.own.len() as u64,
            bodies: crossed
                .filter(|body| body.pairs + body.inside + body.faces > 0)
                .collect(),
            file: file_of(self.step),
        };
        (frame.weight() > 0).then_some(frame)
    }

    /// Writes the triangles that take part, those of cloth first.
    fn write(&self, run: &RunDirectory, found: &Found) -> Result<(), OutputError> {
        let (mut with_cloth, mut with_bodies) = (Part::default(), Part::default());
        with_cloth.mark_own(&found.own);
        for met in &found.bodies {
            match met {
                Met::Crossing(between) => between.mark_first(&mut with_bodies),
                Met::Inside(inside) => with_bodies.mark_inside(inside),
            }
        }
        let mut rows = Rows::default();
        for (number, corners) in (0..).zip(self.cloth.triangles()) {
            let cloth = u32::from(with_cloth.has(number, corners));
            let bodies = u32::from(with_bodies.has(number, corners));
            rows.push(number, 0, WITH_CLOTH * cloth + WITH_BODY * bodies, *corners);
        }
        let mut points = self.cloth.positions().to_vec();
        let bodies = self.bodies.iter().flatten().zip(&found.bodies);
        for (body, ((_, audited), met)) in (1..).zip(bodies) {
            let (Audited::Triangles(skin), Met::Crossing(between)) = (audited, met) else {
                continue;
            };
            if between.pairs() == 0 {
                continue;
            }
            let mut part = Part::default();
            between.mark_second(&mut part);
            let first = points.len() as u32;
            points.extend_from_slice(skin.positions());
            for (number, corners) in (0..).zip(skin.triangles()) {
                let takes_part = u32::from(part.has(number, corners));
                rows.push(
                    number,
                    body,
                    WITH_CLOTH * takes_part,
                    corners.map(|v| v + first),
                );
            }
        }
        let array = |name, values| DataArray {
            name,
            values: Values::Integers(values),
        };
        let data = PolyData {
            points: &points,
            triangles: &rows.corners,
            point_arrays: Vec::new(),
            cell_arrays: vec![
                array("triangle", &rows.numbers),
                array("body", &rows.bodies),
                array("crosses", &rows.crosses),
            ],
            time: None,
        };
        write_vtp(run, &file_of(self.step), &data)
    }
}

/// The bits of the array `crosses` that say what a triangle crosses.
const WITH_CLOTH: u32 = 1;
const WITH_BODY: u32 = 2;

/// Triangles that take part.
#[derive(Default)]
struct Rows {
    numbers: Vec<u32>,
    /// Counted from 1; 0 is cloth.
    bodies: Vec<u32>,
    crosses: Vec<u32>,
    corners: Vec<[u32; 3]>,
}

impl Rows {
    /// Adds a triangle that crosses something.
    fn push(&mut self, number: u32, body: u32, crosses: u32, corners: [u32; 3]) {
        if crosses > 0 {
            self.numbers.push(number);
            self.bodies.push(body);
            self.crosses.push(crosses);
            self.corners.push(corners);
        }
    }
}

fn file_of(step: u64) -> String {
    format!("frames/crossings.{step:06}.vtp")
}

impl FrameAudit {
    /// Looks at a frame, and writes the triangles that take part in crossings to
    /// `frames/crossings.STEP.vtp`.
    ///
    /// # Errors
    /// As [`write_vtp`].
    pub fn look(
        &mut self,
        run: &RunDirectory,
        frame: &AuditedFrame<'_>,
    ) -> Result<(), OutputError> {
        let found = self.note(frame);
        self.write(run, frame, &found)
    }

    /// Looks at a frame.
    fn note(&mut self, frame: &AuditedFrame<'_>) -> Found {
        let found = frame.find();
        self.frames += 1;
        self.bodies = (frame.bodies.as_ref()).map(|bodies| bodies.len() as u64);
        self.crossing.extend(frame.record(&found));
        found
    }

    /// Writes what was found in a frame that was looked at.
    fn write(
        &self,
        run: &RunDirectory,
        frame: &AuditedFrame<'_>,
        found: &Found,
    ) -> Result<(), OutputError> {
        if self
            .crossing
            .iter()
            .any(|crossing| crossing.step == frame.step)
        {
            frame.write(run, found)
        } else {
            // One that an earlier look has left would be taken for this one's.
            run.remove(&file_of(frame.step))
        }
    }

    /// Looks at all frames in a run's directory. Nothing is written unless all of them can be read.
    ///
    /// # Errors [`OutputError::NothingToResume`] if it is no run's; as [`RunRecord::read`],
    /// [`read_triangles`] and [`Self::look`].
    pub fn of_run(directory: &Path) -> Result<Self, OutputError> {
        let run = RunDirectory::reopen(directory)?;
        let mut frames = Frames::open(&run)?;
        let mut audit = Self::default();
        for step in frames.steps()? {
            frames.read(step, |frame| drop(audit.note(frame)))?;
        }
        let steps: Vec<u64> = frames.steps()?;
        for step in steps {
            if audit.crossing.iter().any(|frame| frame.step == step) {
                frames.read(step, |frame| frame.write(&run, &frame.find()))??;
            } else {
                run.remove(&file_of(step))?;
            }
        }
        Ok(audit)
    }

    /// All pairs that cross, of cloth with cloth and with bodies.
    #[must_use]
    pub fn pairs(&self) -> u64 {
        let pairs = |frame: &CrossingFrame| frame.pairs + frame.pairs_with_bodies();
        self.crossing.iter().map(pairs).sum()
    }

    /// Whether bodies take part in any frame.
    #[must_use]
    pub fn has_crossed_bodies(&self) -> bool {
        self.crossing.iter().any(|frame| !frame.bodies.is_empty())
    }
}

impl std::fmt::Display for FrameAudit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some(worst) = self
            .crossing
            .iter()
            .rev()
            .max_by_key(|frame| frame.weight())
        else {
            return match self.bodies {
                None => write!(
                    f,
                    "Audit: no crossing of cloth with cloth in any of {} frames; the run does not say which bodies it has",
                    self.frames
                ),
                Some(0) => write!(f, "Audit: no crossing in any of {} frames", self.frames),
                Some(_) => write!(
                    f,
                    "Audit: no crossing of cloth with cloth or bodies in any of {} frames",
                    self.frames
                ),
            };
        };
        write!(
            f,
            "Audit: {} crossing pairs in {} of {} frames, most after step {} ({}, see {})",
            self.pairs(),
            self.crossing.len(),
            self.frames,
            worst.step,
            worst,
            worst.file
        )
    }
}

/// The frames in a run's directory.
struct Frames<'r> {
    run: &'r RunDirectory,
    bodies: Option<Vec<BodyRecord>>,
    /// The features of cloth that pass through each other.
    passing: Passing,
    /// Bodies made of triangles as they were read first, by their place in the scene: trees are
    /// built once.
    surfaces: BTreeMap<usize, BodySurface>,
}

impl<'r> Frames<'r> {
    fn open(run: &'r RunDirectory) -> Result<Self, OutputError> {
        let record = RunRecord::read(run.path())?;
        let FramesRecord { cloths, sewn, .. } = record.frames.unwrap_or_default();
        let of_vertices: Vec<u32> = (0..)
            .zip(&cloths)
            .flat_map(|(number, cloth)| std::iter::repeat_n(number, cloth.vertices))
            .collect();
        let passes = |cloth: u32| cloths[cloth as usize].passes_itself;
        Ok(Self {
            run,
            bodies: record.bodies,
            passing: Passing::new(&of_vertices, passes).sewn(sewn),
            surfaces: BTreeMap::new(),
        })
    }

    /// The steps of the frames, ascending.
    fn steps(&self) -> Result<Vec<u64>, OutputError> {
        let frames = self.run.file("frames");
        let mut steps = Vec::new();
        for entry in std::fs::read_dir(&frames).map_err(OutputError::read(&frames))? {
            let name = entry.map_err(OutputError::read(&frames))?.file_name();
            steps.extend(name.to_str().and_then(step_of_cloth));
        }
        steps.sort_unstable();
        steps.dedup();
        Ok(steps)
    }

    /// Reads a frame, with the bodies in it.
    fn read<T>(
        &mut self,
        step: u64,
        see: impl FnOnce(&AuditedFrame<'_>) -> T,
    ) -> Result<T, OutputError> {
        let path = path_of_cloth(self.run.path(), step);
        let cloth = read_triangles(&path)?;
        let meshes = self.meshes(step)?;
        let time = match &self.bodies {
            Some(bodies) if bodies.iter().any(|body| body.formula.is_some()) => read_time(&path)?,
            _ => 0.0,
        };
        let audited =
            |(index, body): (usize, &'_ BodyRecord)| match (body.formula, meshes.get(&index)) {
                (Some(formula), _) => Some(Audited::Formula(formula, body.way().at(time))),
                (None, Some(mesh)) => {
                    if let Some(samples) = &body.distance {
                        return Some(Audited::Sampled {
                            enclosed: Cow::Owned(Enclosed::new(mesh)),
                            pose: Pose::STILL,
                            error: SampleError::Everywhere(samples.largest_m()),
                        });
                    }
                    let surface = self.surfaces.get(&index)?;
                    Some(Audited::Triangles(Skin::of_body_at(
                        surface,
                        &mesh.positions,
                    )))
                }
                (None, None) => None,
            };
        let bodies = self.bodies.as_ref().map(|bodies| {
            let all = bodies.iter().enumerate();
            let known =
                all.filter_map(|(index, body)| Some((body.name.as_str(), audited((index, body))?)));
            known.collect()
        });
        Ok(see(&AuditedFrame {
            step,
            cloth: Skin::new(&cloth.positions, &cloth.triangles).letting(self.passing.clone()),
            bodies,
        }))
    }

    /// The triangles of bodies in a frame, by their place in the scene.
    fn meshes(&mut self, step: u64) -> Result<BTreeMap<usize, TriMesh>, OutputError> {
        let (mut still, mut moving) = (0, 0);
        let mut meshes = BTreeMap::new();
        for (index, body) in self.bodies.iter().flatten().enumerate() {
            // Frames hold those with formulas too, for pictures.
            let file = if body.is_still() {
                still += 1;
                still_file(still - 1, &body.name)
            } else {
                moving += 1;
                moving_file(moving - 1, &body.name, step)
            };
            if body.formula.is_some() {
                continue;
            }
            let path = self.run.file(&file);
            let mesh = read_triangles(&path)?;
            let surface =
                (self.surfaces.entry(index)).or_insert_with(|| BodySurface::new(&mesh, 0.0, &[]));
            if !surface.is_of(&mesh.triangles) {
                return Err(OutputError::Malformed {
                    path,
                    what: format!(
                        "its triangles are not those that body `{}` has in the first frame",
                        body.name
                    ),
                });
            }
            meshes.insert(index, mesh);
        }
        Ok(meshes)
    }
}

#[cfg(test)]
mod tests {
    use glam::DVec3;

    use super::super::read_integers;
    use super::*;
    use crate::collide::BodyMotion;
    use crate::collide::bodies::Analytic;

    /// Two triangles, of which a needle goes through one, and one far away.
    const TRIANGLES: [[u32; 3]; 3] = [[0, 1, 2], [3, 4, 5], [6, 7, 8]];

    fn cloth() -> Vec<DVec3> {
        let mut x = vec![DVec3::ZERO, DVec3::X, DVec3::Y];
        x.extend([-0.5, 0.5].map(|z| DVec3::new(0.2, 0.2, z)));
        x.push(DVec3::new(5.0, 5.0, 0.5));
        x.extend([DVec3::ZERO, DVec3::X, DVec3::Y].map(|p| p + 9.0 * DVec3::Z));
        x
    }

    fn write_frame(run: &RunDirectory, step: u64, name: &str, mesh: &TriMesh) {
        let data = PolyData {
            points: &mesh.positions,
            triangles: &mesh.triangles,
            point_arrays: Vec::new(),
            cell_arrays: Vec::new(),
            time: Some(step as f64 * 0.5),
        };
        write_vtp(run, &format!("frames/{name}"), &data).unwrap();
    }

    fn write_record(run: &RunDirectory, bodies: Option<Vec<BodyRecord>>) {
        let mut record = RunRecord::new(
            super::super::ProgramRecord::this(&[]),
            super::super::MachineRecord::default(),
            Vec::new(),
            super::super::SceneRecord::default(),
            1,
        );
        record.bodies = bodies;
        record.write(run).unwrap();
    }

    #[test]
    fn crossings_are_recorded_and_a_later_audit_finds_the_same_ones() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        let mut x = cloth();
        let mut audit = FrameAudit::default();
        for step in [3, 7] {
            let mesh = TriMesh {
                positions: x.clone(),
                triangles: TRIANGLES.to_vec(),
            };
            write_frame(&run, step, &format!("cloth.{step:06}.vtp"), &mesh);
            let frame = AuditedFrame {
                step,
                cloth: Skin::new(&x, &TRIANGLES),
                bodies: None,
            };
            audit.look(&run, &frame).unwrap();
            for p in &mut x[3..6] {
                p.x += 3.0;
            }
        }
        assert_eq!((audit.frames, audit.pairs()), (2, 2));
        let path = run.file(&audit.crossing[0].file);
        let part = read_triangles(&path).unwrap();
        assert_eq!(part.triangles, TRIANGLES[..2]);
        assert_eq!(read_integers(&path, "crosses").unwrap(), [1, 1]);
        run.write("frames/crossings.000007.vtp", |out| out.write_all(b"old"))
            .unwrap();
        let busy = FrameAudit::of_run(root.path()).unwrap_err();
        assert!(matches!(busy, OutputError::Busy { .. }), "{busy}");
        // As an earlier program has left it.
        write_record(&run, None);
        drop(run);
        assert_eq!(FrameAudit::of_run(root.path()).unwrap(), audit);
        let old = root.path().join("frames/crossings.000007.vtp");
        assert!(!old.exists());
        let said = "2 crossing pairs in 1 of 2 frames, most after step 3";
        assert!(audit.to_string().contains(said), "{audit}");
    }

    /// A ball that moves up to a sheet whose vertices it does not touch is reported once the face
    /// cuts it.
    #[test]
    fn faces_that_cut_a_ball_are_counted() {
        let sheet = [DVec3::ZERO, 3.0 * DVec3::X, 3.0 * DVec3::Y];
        let triangles = [[0, 1, 2]];
        for (z, cut, inside) in [(-0.6, 0, 0), (-0.4, 1, 0), (0.4, 1, 0)] {
            let ball = Analytic::Sphere {
                center: DVec3::ONE.with_z(z - 1.0),
                radius: 0.5,
            };
            let motion = BodyMotion::constant(DVec3::Z);
            let frame = AuditedFrame {
                step: 3,
                cloth: Skin::new(&sheet, &triangles),
                bodies: Some(vec![("ball", Audited::Formula(ball, motion.at(1.0)))]),
            };
            let found = frame.find();
            let record = frame.record(&found);
            assert_eq!(record.is_some(), cut > 0, "{z}");
            let Some(record) = record else { continue };
            let CrossedBody { faces, pairs, .. } = record.bodies[0];
            assert_eq!((faces, pairs, record.bodies[0].inside), (cut, 0, inside));
            assert_eq!(record.inside(), 1);
            assert_eq!(record.to_string(), "1 faces that cut body `ball`");
        }
    }

    /// A body of triangles that moves into the cloth, one at rest beside it, and one with a formula
    /// that passes through.
    #[test]
    fn bodies_are_looked_at_where_they_are_in_the_frame() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        let sheet = TriMesh {
            positions: vec![DVec3::ZERO, 3.0 * DVec3::X, 3.0 * DVec3::Y],
            triangles: vec![[0, 1, 2]],
        };
        let body = |name: &str, formula, velocity| BodyRecord {
            flat: false,
            name: name.to_owned(),
            formula,
            distance: None,
            velocity,
            motion: None,
            deforms: false,
        };
        let ball = Analytic::Sphere {
            center: DVec3::new(0.0, 0.0, 1.0),
            radius: 0.5,
        };
        write_record(
            &run,
            Some(vec![
                body("stone", None, DVec3::ZERO),
                body("ball", Some(ball), -0.5 * DVec3::Z),
                body("box", None, -0.25 * DVec3::Z),
            ]),
        );
        let cube = |z: f64| crate::mesh::cuboid(DVec3::new(1.0, 1.0, z), DVec3::ONE, 1.0).unwrap();
        write_frame(&run, 0, "still-0-stone.vtp", &cube(9.0));
        for step in [0, 4] {
            write_frame(&run, step, &format!("cloth.{step:06}.vtp"), &sheet);
            // It was placed at 0.75, and comes to the middle of the cloth in two seconds.
            let mesh = cube(0.75 - 0.125 * step as f64);
            write_frame(&run, step, &format!("moving-1-box.{step:06}.vtp"), &mesh);
        }
        drop(run);
        let audit = FrameAudit::of_run(root.path()).unwrap();
        assert_eq!((audit.frames, audit.bodies), (2, Some(3)));
        let [frame] = &audit.crossing[..] else {
            panic!("{audit:?}")
        };
        let names: Vec<&str> = frame.bodies.iter().map(|body| body.name.as_str()).collect();
        assert_eq!(
            (frame.step, frame.pairs, &names[..]),
            (4, 0, &["ball", "box"][..])
        );
        assert_eq!((frame.bodies[0].pairs, frame.bodies[0].inside), (0, 1));
        // Four edges of the box, one of them with the diagonals of its sides, pass through the
        // triangle.
        assert!(frame.bodies[1].pairs >= 4, "{frame:?}");
        let path = root.path().join(&frame.file);
        let [crosses, bodies] = ["crosses", "body"].map(|name| read_integers(&path, name).unwrap());
        assert_eq!((crosses[0], bodies[0]), (2, 0));
        assert!(bodies.len() > 4 && bodies[1..].iter().all(|body| *body == 3));
        assert!(crosses[1..].iter().all(|crosses| *crosses == 1));
        assert!(
            audit.to_string().contains("pairs of cloth and body `box`"),
            "{audit}"
        );

        // A frame that cannot be read leaves everything as it was.
        std::fs::write(
            root.path().join("frames/moving-1-box.000000.vtp"),
            "no frame",
        )
        .unwrap();
        std::fs::write(&path, "kept").unwrap();
        let error = FrameAudit::of_run(root.path()).unwrap_err().to_string();
        assert!(error.contains("moving-1-box.000000.vtp"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "kept");
    }
}
