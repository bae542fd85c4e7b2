//! Bodies of a world at any time, also those that deform.

use std::sync::Arc;

use glam::DVec3;

use super::World;
use super::error::WorldError;
use crate::collide::bodies::collider::DistanceThen;
use crate::collide::bodies::{DeformedShape, Deforming, Pose, SampleError, SampleSource};
use crate::collide::{BodyMotion, Solid};
use crate::heap_bytes::HeapBytes;
use crate::mesh::{BodyMesh, MeshError, Samples, TriMesh};
use crate::scene::{Body, Shape, Surface};
use crate::step::error::StepError;

/// The samples of a body's mesh, of which it has the vertices of its file, or some of them more
/// than once.
#[derive(Debug)]
struct OfBody {
    samples: Samples,
    /// The vertex of the file that each vertex is, if its mesh was mended.
    of: Option<Vec<u32>>,
}

impl SampleSource for OfBody {
    fn times(&self) -> &[f64] {
        self.samples.times()
    }

    fn read(&self, index: usize) -> Result<Vec<DVec3>, SampleError> {
        let positions = self.samples.read(index)?;
        Ok(match &self.of {
            Some(of) => of.iter().map(|&v| positions[v as usize]).collect(),
            None => positions,
        })
    }

    fn heap_bytes(&self) -> usize {
        let Self { samples, of } = self;
        samples.heap_bytes() + of.heap_bytes()
    }
}

/// A body that deforms, made ready.
pub(super) struct Made {
    /// Its mesh as it is at time 0.
    pub(super) mesh: TriMesh,
    pub(super) motion: BodyMotion,
    /// The SHA-256 of its samples.
    pub(super) digest: [u8; 32],
}

/// Makes a body ready whose mesh deforms; `None` if it keeps its shape.
pub(super) fn make(
    body: &Body,
    BodyMesh { file, mended }: &BodyMesh,
) -> Result<Option<Made>, WorldError> {
    let (Some(deformation), Shape::Mesh { placement, .. }) = (&body.deformation, &body.shape)
    else {
        return Ok(None);
    };
    let of_body = |reason: MeshError| MeshError::Object {
        object: format!("body `{}`", body.name),
        reason: Box::new(reason),
    };
    let samples = Samples::open(deformation, file.clone(), placement).map_err(of_body)?;
    let digest = *samples.digest();
    let whole = BodyMotion::of(body.velocity, body.motion.as_ref());
    let triangles = match mended {
        Some(mended) => &mended.mesh.triangles,
        None => &file.mesh.triangles,
    };
    let samples = OfBody {
        samples,
        of: mended.as_ref().map(|mended| mended.of.clone()),
    };
    let deforming = Deforming::new(Box::new(samples), whole, triangles);
    let deforming = deforming.map_err(|source| WorldError::Sample {
        body: body.name.clone(),
        source,
    })?;
    let start = deforming.at(0.0);
    Ok(Some(Made {
        mesh: TriMesh {
            positions: start.positions.clone(),
            triangles: triangles.clone(),
        },
        motion: match body.surface {
            Surface::Distance { .. } => BodyMotion::deformed_within(Arc::new(deforming)),
            _ => BodyMotion::deformed(Arc::new(deforming)),
        },
        digest,
    }))
}

/// A body's mesh at a time in s.
pub(super) fn moved(motion: &BodyMotion, placed: &TriMesh, time: f64) -> TriMesh {
    let positions = match motion.deforming() {
        Some(deforming) => deforming.at(time).positions.clone(),
        None => {
            let pose = motion.at(time);
            placed.positions.iter().map(|&p| pose.apply(p)).collect()
        }
    };
    TriMesh {
        positions,
        triangles: placed.triangles.clone(),
    }
}

/// The space that a body encloses at one time.
pub(super) enum SolidThen<'w> {
    Rigid(&'w Solid, Pose),
    Deformed(Arc<DeformedShape>),
    /// A body that deforms, by its sampled distance, as its own axes see it.
    Sampled {
        distance: DistanceThen<'w>,
        pose: Pose,
        shape: Arc<DeformedShape>,
    },
}

impl<'w> SolidThen<'w> {
    fn new(solid: &'w Solid, motion: &BodyMotion, time: f64) -> Self {
        match motion.deforming() {
            Some(deforming) => match solid.sampled() {
                Some(body) => Self::Sampled {
                    distance: body.then(time),
                    pose: motion.at(time),
                    shape: deforming.at(time),
                },
                None => Self::Deformed(deforming.at(time)),
            },
            None => Self::Rigid(solid, motion.at(time)),
        }
    }

    /// How deep a point is inside, in m; negative outside.
    pub(super) fn depth(&self, p: DVec3) -> f64 {
        match self {
            Self::Rigid(solid, pose) => solid.depth(pose.undo(p)),
            Self::Deformed(shape) => shape.enclosed().depth(p),
            Self::Sampled { distance, pose, .. } => -distance.distance(pose.undo(p)),
        }
    }

    /// The distance of a point, in m; negative inside.
    pub(super) fn gap(&self, p: DVec3) -> f64 {
        match self {
            Self::Rigid(solid, pose) => solid.gap(pose.undo(p)),
            Self::Deformed(shape) | Self::Sampled { shape, .. } => shape.enclosed().gap(p),
        }
    }

    /// How deep a point is inside, in m, and the unit vector to where it is nearest to being out;
    /// `None` outside.
    pub(super) fn way_out(&self, p: DVec3) -> Option<(f64, DVec3)> {
        match self {
            Self::Rigid(solid, pose) => {
                let (depth, direction) = solid.way_out(pose.undo(p))?;
                Some((depth, pose.turned(direction)))
            }
            Self::Deformed(shape) => shape.enclosed().way_out(p),
            Self::Sampled { distance, pose, .. } => {
                let own = pose.undo(p);
                let depth = -distance.distance(own);
                (depth >= 0.0).then(|| (depth, pose.turned(distance.normal(own))))
            }
        }
    }
}

impl World {
    /// The spaces that bodies enclose at a time in s.
    pub(super) fn solids_at(&self, time: f64) -> impl Iterator<Item = SolidThen<'_>> {
        let bodies = self.solids.iter().zip(&self.body_motions);
        bodies.map(move |(solid, motion)| SolidThen::new(solid, motion, time))
    }

    /// The space that a body encloses at a time in s.
    pub(super) fn solid_at(&self, body: u32, time: f64) -> SolidThen<'_> {
        let body = body as usize;
        SolidThen::new(&self.solids[body], &self.body_motions[body], time)
    }

    /// The bodies that deform, with their numbers.
    fn deforming(&self) -> impl Iterator<Item = (usize, &Arc<Deforming>)> {
        let bodies = self.body_motions.iter().enumerate();
        bodies.filter_map(|(body, motion)| Some((body, motion.deforming()?)))
    }

    /// Reads what bodies that deform need in a part of a step between two times in s.
    ///
    /// # Errors
    /// A sample can no longer be read.
    pub(crate) fn prepare_bodies(&self, step: u64, times: [f64; 2]) -> Result<(), StepError> {
        for (body, deforming) in self.deforming() {
            let failed = |source: SampleError| self.lost(step, body, source.to_string());
            let sampled = self.solids[body].sampled();
            match sampled.and_then(|sampled| sampled.in_time()) {
                Some(distance) => distance.prepare(times).map_err(failed)?,
                None => deforming.prepare(times).map_err(failed)?,
            }
        }
        Ok(())
    }

    /// Fails if a sample could not be read since the world was made: what a step has found since is
    /// not right.
    ///
    /// # Errors
    /// That.
    pub(crate) fn check_bodies(&self, step: u64) -> Result<(), StepError> {
        for (body, deforming) in self.deforming() {
            if let Some(fault) = deforming.fault() {
                return Err(self.lost(step, body, fault.to_owned()));
            }
        }
        Ok(())
    }

    fn lost(&self, step: u64, body: usize, why: String) -> StepError {
        StepError::Body {
            step,
            body: self.scene.bodies[body].name.clone(),
            why,
        }
    }
}
