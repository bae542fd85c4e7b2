//! The part of the cloth that a rank computes: what it owns, what it reads, what that costs.

use std::ops::Range;

use weft_balance::cost_model::{CostModel, Work};
use weft_partition::{HaloPlan, Ownership, PartitionError};
use weft_runtime::comm::Comm;

use super::world::World;

use crate::heap_bytes::counts_heap;

/// The part of the cloth that a rank computes.
#[derive(Debug)]
pub(crate) struct Domain {
    /// The owners of patches and vertices.
    pub(crate) ownership: Ownership,
    /// The vertices that the rank owns, and those of others that its elements read.
    pub(crate) plan: HaloPlan,
    /// The work of the owned vertices in the solve.
    pub(crate) weight: u64,
    /// The price of computing, where the machine is modelled.
    pub(crate) cost_model: CostModel,
}

counts_heap!(Domain: ownership, plan; without weight, cost_model);

/// The number of a rank, and how many there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) rank: usize,
    pub(crate) size: usize,
}

impl Domain {
    /// The domain of a rank.
    ///
    /// # Errors
    /// More ranks than patches.
    pub(crate) fn new(world: &World, place: Place) -> Result<Self, PartitionError> {
        let ownership = Ownership::new(world.tree(), place.size)?;
        let plan = HaloPlan::new(&world.graphs().matrix, &ownership, place.rank)?;
        let patches = ownership.patches(plan.rank());
        let weights = patches.map(|patch| world.tree().patch_weight(patch));
        Ok(Self {
            weight: weights.sum(),
            ownership,
            plan,
            cost_model: CostModel::REAL,
        })
    }

    /// The numbers of the owned vertices.
    pub(crate) fn owned(&self) -> Range<usize> {
        self.plan.owned()
    }

    /// The numbers of the owned patches.
    pub(crate) fn patches(&self) -> Range<usize> {
        self.ownership.patches(self.plan.rank())
    }

    /// Charges the assembly of a system, where the machine is modelled.
    pub(crate) fn charge_assembly(&self, comm: &mut dyn Comm) {
        let weight = self.weight;
        self.cost_model.charge(comm, Work::Assembly { weight });
    }
}
