//! The values of a rank's own vertices that frames show.

use glam::DVec3;

use crate::step::certify::Certification;
use crate::step::simulation::Simulation;

/// The values of the vertices that a rank owns, one entry each, in the numbering of the patch tree.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct OwnValues {
    /// Positions in m.
    pub(crate) positions: Vec<DVec3>,
    /// Velocities in m/s.
    pub(crate) velocities: Vec<DVec3>,
    /// [`VertexState::bits`](crate::step::VertexState::bits) of the contacts with bodies.
    pub(crate) contacts: Vec<u32>,
    /// The forces of contacts in the last step in N.
    pub(crate) forces: Vec<DVec3>,
    /// The body that lets the vertex through, from 1; else 0.
    pub(crate) squeezed: Vec<u32>,
    /// The change of its velocity by certification in the last part of a step in m/s.
    pub(crate) cuts: Vec<f64>,
}

impl Simulation<'_> {
    /// The values of the vertices that this rank owns.
    #[must_use]
    pub(crate) fn own_values(&self) -> OwnValues {
        let owned = self.domain.owned();
        let place = |vertex: u32| {
            let vertex = vertex as usize;
            owned
                .contains(&vertex)
                .then(|| vertex.wrapping_sub(owned.start))
        };
        let certification = self.certification.as_ref();
        let mut squeezed = vec![0; owned.len()];
        for &[vertex, body] in certification.into_iter().flat_map(Certification::suspended) {
            if let Some(place) = place(vertex) {
                squeezed[place] = body + 1;
            }
        }
        let mut cuts = vec![0.0; owned.len()];
        for cut in certification.into_iter().flat_map(Certification::cuts) {
            if let Some(place) = place(cut.vertex) {
                cuts[place] = cut.change.length();
            }
        }
        let contacts = self.response.bodies.states().iter();
        OwnValues {
            positions: self.state.x[owned.clone()].to_vec(),
            velocities: self.state.v[owned].to_vec(),
            contacts: contacts.map(|state| state.bits().into()).collect(),
            forces: self.contact_forces().collect(),
            squeezed,
            cuts,
        }
    }

    /// The force in N with which contacts acted on each of this rank's vertices in the last step:
    /// the impulses of bodies, of other layers and of certification, over the length of the step.
    pub(crate) fn contact_forces(&self) -> impl Iterator<Item = DVec3> {
        let step = self.world.scene().time.step;
        self.contact_impulses
            .iter()
            .map(move |impulse| *impulse / step)
    }
}
