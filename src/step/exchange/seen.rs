//! The facts about the motion of a substep that ranks find of their own vertices and agree on,
//! where none of them looks at all vertices.

use glam::DVec3;
use weft_runtime::comm::{Collectives, Comm, CommError, Rank};

use crate::collide::Extent;

/// The facts about the motion of some vertices, or of all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seen {
    /// Whether a position is no number, or a velocity is none or faster than any cloth.
    pub(crate) bad: bool,
    /// Whether a vertex ends so far from where it was foreseen that what it may cross is searched
    /// for anew.
    pub(crate) exceeds: bool,
    /// The box around the positions at the end.
    pub(crate) extent: Extent,
    /// The box around the displacements.
    pub(crate) displacements: Extent,
}

impl Seen {
    /// The facts about no vertices.
    pub(crate) const NOTHING: Self = Self {
        bad: false,
        exceeds: false,
        extent: Extent::EMPTY,
        displacements: Extent::EMPTY,
    };

    /// The facts about the vertices of both.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            bad: self.bad | other.bad,
            exceeds: self.exceeds | other.exceeds,
            extent: self.extent.union(other.extent),
            displacements: self.displacements.union(other.displacements),
        }
    }

    /// The facts about the vertices of all ranks. Collective.
    ///
    /// # Errors
    /// Messages failed.
    pub(crate) fn of_all(self, comm: &mut dyn Comm) -> Result<Self, CommError> {
        let own = bytemuck::bytes_of(&self.numbers()).to_vec();
        let mut all = Self::NOTHING;
        for (from, bytes) in (0..).map(Rank).zip(comm.allgather(own)?) {
            let numbers = bytemuck::try_pod_read_unaligned(&bytes);
            let what = || format!("{} bytes about the motion of its vertices", bytes.len());
            let numbers = numbers.map_err(|_| CommError::Malformed { from, what: what() })?;
            all = all.and(Self::of_numbers(numbers));
        }
        Ok(all)
    }

    fn numbers(self) -> [f64; 14] {
        let flag = |flag: bool| f64::from(u8::from(flag));
        let mut numbers = [0.0; 14];
        numbers[0] = flag(self.bad);
        numbers[1] = flag(self.exceeds);
        let corners = [self.extent, self.displacements].map(|of| [of.low, of.high]);
        for (to, corner) in numbers[2..].chunks_exact_mut(3).zip(corners.as_flattened()) {
            corner.write_to_slice(to);
        }
        numbers
    }

    fn of_numbers(numbers: [f64; 14]) -> Self {
        let corner = |at: usize| DVec3::from_slice(&numbers[at..at + 3]);
        let extent = |at: usize| Extent {
            low: corner(at),
            high: corner(at + 3),
        };
        Self {
            bad: numbers[0] != 0.0,
            exceeds: numbers[1] != 0.0,
            extent: extent(2),
            displacements: extent(8),
        }
    }
}

#[cfg(test)]
mod tests {
    use weft_runtime::comm::threads;

    use super::*;

    #[test]
    fn ranks_agree_on_the_facts_about_all_vertices() {
        let of = |rank: u32| Seen {
            bad: rank == 1,
            exceeds: rank == 2,
            extent: Extent::of(&[DVec3::splat(f64::from(rank)), DVec3::new(0.5, 0.1, -0.2)]),
            displacements: Extent::of(&[DVec3::X * f64::from(rank)]),
        };
        for ranks in [1, 2, 3] {
            let all = threads::launch(ranks, |comm| of(comm.rank().0).of_all(comm).unwrap());
            let last = (ranks - 1) as f64;
            let expected = Seen {
                bad: ranks > 1,
                exceeds: ranks > 2,
                extent: Extent {
                    low: DVec3::new(0.0, 0.0, -0.2),
                    high: DVec3::splat(last).max(DVec3::new(0.5, 0.1, -0.2)),
                },
                displacements: Extent {
                    low: DVec3::ZERO,
                    high: DVec3::X * last,
                },
            };
            assert_eq!(all.unwrap(), vec![expected; ranks]);
        }
    }
}
