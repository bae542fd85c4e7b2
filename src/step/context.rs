//! The data that every stage of a substep may read, and how a stage fails on all ranks alike.

use glam::DVec3;
use weft_runtime::comm::Comm;

use super::domain::Domain;
use super::error::StepError;
use super::substep::Substep;
use super::system::load::Collapsed;
use super::world::prescribed_motion::PrescribedMotion;
use super::world::{Friction, World};
use crate::solve::fault::{self, Fault};

/// The scene, the rank's domain, and the substep: what every stage may read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    pub(crate) world: &'a World,
    pub(crate) domain: &'a Domain,
    pub(crate) substep: &'a Substep,
}

/// An owned vertex that a pin holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnPinned<'a> {
    /// Its number.
    pub(crate) vertex: u32,
    /// Its index among the owned vertices.
    pub(crate) row: usize,
    /// The motion that the pin prescribes.
    pub(crate) motion: &'a PrescribedMotion,
}

impl<'a> Context<'a> {
    /// The acceleration of gravity in the substep, in m/s².
    pub(crate) fn gravity(self) -> DVec3 {
        let time = self.substep.load_time(self.world);
        self.world.scene().gravity.at(time)
    }

    /// The friction of each pair in the substep.
    pub(crate) fn friction(self) -> &'a Friction {
        let now = self.substep.friction.as_ref();
        now.unwrap_or_else(|| self.world.friction())
    }

    /// The masses of the owned vertices in kg.
    pub(crate) fn masses(self) -> &'a [f64] {
        &self.world.model().masses()[self.domain.owned()]
    }

    /// Whether pins hold each of the owned vertices.
    pub(crate) fn pinned(self) -> &'a [bool] {
        &self.substep.pinned(self.world)[self.domain.owned()]
    }

    /// The owned vertices that pins hold, ascending.
    pub(crate) fn own_pinned(self) -> impl Iterator<Item = OwnPinned<'a>> {
        let owned = self.domain.owned();
        let all = self.world.pins().of(&owned).iter();
        let all = all.map(move |pinned| OwnPinned {
            vertex: pinned.vertex,
            row: pinned.vertex as usize - owned.start,
            motion: &self.substep.prescribed[pinned.pin as usize],
        });
        all.filter(|pinned| pinned.motion.holds)
    }

    /// The velocity in m/s that a pin prescribes for a vertex that begins at `x` (m), zero in the
    /// directions that are free.
    pub(crate) fn prescribed_velocity(self, pinned: &OwnPinned<'_>, x: DVec3) -> DVec3 {
        let start = self.world.model().start()[pinned.vertex as usize];
        let dt = self.substep.dt;
        pinned.motion.velocity(pinned.vertex, start, x, dt)
    }

    /// The error of a triangle that has collapsed.
    pub(crate) fn collapsed_at(self, triangle: u32) -> StepError {
        StepError::Collapsed {
            step: self.substep.number(),
            at: self.world.name_of_triangle(triangle),
        }
    }

    /// Fails on all ranks if a triangle has collapsed on one. Collective.
    pub(crate) fn agree_on_collapse(
        self,
        comm: &mut dyn Comm,
        own: Result<(), Collapsed>,
    ) -> Result<(), StepError> {
        let named = fault::agree(comm, first_of(own))?;
        named.map_or(Ok(()), |fault| Err(self.collapsed_at(fault.vertex)))
    }
}

/// The fault of a triangle that has collapsed: the first of all triangles is named.
pub(crate) fn first_of(collapsed: Result<(), Collapsed>) -> Option<Fault> {
    let collapsed = collapsed.err();
    collapsed.map(|found| Fault::at(found.triangle, f64::from(found.triangle)))
}
