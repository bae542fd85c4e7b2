//! The machine that a step runs on, as far as its clock is modelled.
//!
//! In a run, ranks compute and the time that passes is what it is. In a study, virtual ranks
//! compute the same, but each piece of work moves the rank's clock by its price. [`CostModel`] is
//! that one difference: a step says what it has done, as an amount of [`Work`], and the model
//! charges it through [`Comm::compute`], or does nothing. Replays look up the same prices
//! ([`Prices::cost`]).

use std::time::Duration;

use weft_runtime::comm::Comm;

use crate::bound_owner::BoundOwners;
use crate::cost::Against;
use crate::preparation::{EarlyPreparation, PatchSizes, PreparedPieces, begin_cost};
use crate::prices::{Counts, Prices, ns};
use crate::separation::{Tile, prices_on};

/// An amount of work that a step does outside of its tests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Work {
    /// Gradients of triangles of tiles, from which separation bounds are made.
    Gradients {
        /// The number of triangles.
        triangles: u64,
    },
    /// Separation bounds of tiles, after the gradients.
    SeparationBounds {
        /// The number of tiles.
        tiles: u64,
    },
    /// Bounding volumes of patches, for all ranks.
    BoundingVolumes {
        /// The number of vertices in them.
        vertices: u64,
    },
    /// A forecast of the cost of tests, and their assignment.
    Assignment {
        /// The number of tests.
        tests: usize,
    },
    /// Moving the boundaries of an assignment.
    BoundaryMove {
        /// The number of ranks.
        ranks: usize,
    },
    /// Looking whether the roots of top-level tests meet.
    Targets {
        /// The number of tests.
        count: u64,
    },
    /// Putting contacts in order.
    Contacts {
        /// The number of contacts.
        new: usize,
        /// The number of contacts that are in order already.
        ordered: usize,
    },
    /// Assembling the linear system.
    Assembly {
        /// The work of the rank's vertices in the solve.
        weight: u64,
    },
    /// A product with the matrix, in an iteration of the solve.
    Product {
        /// The work of the rank's vertices in the solve.
        weight: u64,
    },
    /// Factoring the coarse matrix of the solve.
    CoarseFactor {
        /// The part of the work that the rank does.
        share: f64,
    },
    /// Solving with the coarse matrix once.
    CoarseSolve {
        /// The part of the solve that the rank does.
        share: f64,
    },
    /// A round of impulses.
    ImpulseRound {
        /// The number of contacts.
        contacts: u64,
    },
    /// The response to contacts without its rounds.
    Response {
        /// The work of the rank's vertices in the solve.
        weight: u64,
    },
    /// Taking in the new state of all vertices.
    NewState {
        /// The number of vertices.
        vertices: u64,
    },
}

impl Prices {
    /// The cost of an amount of work, in ns.
    #[must_use]
    pub fn cost(&self, work: Work) -> u64 {
        match work {
            Work::Gradients { triangles } => ns(self.gradient, triangles as f64),
            Work::SeparationBounds { tiles } => ns(self.separation, tiles as f64),
            Work::BoundingVolumes { vertices } => ns(self.vertex, vertices as f64),
            Work::Assignment { tests } => ns(self.forecast, tests as f64),
            Work::BoundaryMove { ranks } => ns(self.shift, ranks as f64),
            Work::Targets { count } => ns(self.target, count as f64),
            Work::Contacts { new, ordered } => ns(self.taking_in(new, ordered), 1.0),
            Work::Assembly { weight } => ns(self.assemble, weight as f64),
            Work::Product { weight } => ns(self.product, weight as f64),
            Work::CoarseFactor { share } => ns(self.coarse_factor, share),
            Work::CoarseSolve { share } => ns(self.coarse_solve, share),
            Work::ImpulseRound { contacts } => ns(self.row, contacts as f64),
            Work::Response { weight } => ns(self.respond, weight as f64),
            Work::NewState { vertices } => ns(self.share, vertices as f64),
        }
    }
}

/// A machine whose clock is real, or is modelled by prices.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CostModel {
    /// The prices of a modelled machine.
    prices: Option<Prices>,
}

/// The sizes of cloth on which the cost of tests depends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClothSizes {
    /// The sizes of what tests read of each patch.
    pub patches: Vec<PatchSizes>,
    /// The tiles whose separation bounds leave out tests.
    pub tiles: Vec<Tile>,
}

impl CostModel {
    /// A machine whose clock runs by itself: nothing is charged.
    pub const REAL: Self = Self { prices: None };

    /// A machine whose clock moves by the price of each piece of work. Its ranks are virtual ones
    /// with [modelled](weft_runtime::comm::virtual_time::Computation::Modelled) computation of 1 ns
    /// a unit.
    #[must_use]
    pub fn modelled(prices: &Prices) -> Self {
        Self {
            prices: Some(*prices),
        }
    }

    /// Charges work to the clock of the rank. Returns the time that it takes, which is 0 on a real
    /// machine.
    pub fn charge(&self, comm: &mut dyn Comm, work: Work) -> Duration {
        let cost = self.cost(work);
        charge(comm, cost)
    }

    /// The cost of work in ns, which is 0 on a real machine.
    #[must_use]
    pub fn cost(&self, work: Work) -> u64 {
        self.prices.map_or(0, |prices| prices.cost(work))
    }

    /// Begins to count what the tests of the rank that `comm` is cost in a step. `cloth` is called
    /// only if the machine is modelled.
    #[must_use]
    pub fn meter(
        &self,
        comm: &dyn Comm,
        bound_owners: &BoundOwners,
        cloth: impl FnOnce() -> ClothSizes,
    ) -> TestMeter {
        let Some(prices) = &self.prices else {
            return TestMeter(None);
        };
        let rank = comm.rank().index();
        let ClothSizes { patches, tiles } = cloth();
        let around = patches.iter().map(|of| u64::from(of.around)).sum();
        let owns = (0..patches.len()).map(|patch| bound_owners.owns(rank, patch));
        TestMeter(Some(Metered {
            prices: prices_on(&tiles, around, prices, comm.size()),
            owns: owns.collect(),
            prepared: PreparedPieces::new(patches.len()),
            sizes: patches,
        }))
    }
}

/// The cost of a rank's tests in a step, with the pieces of patches that it prepares for them.
#[derive(Debug)]
pub struct TestMeter(Option<Metered>);

/// The state of a meter on a modelled machine.
#[derive(Debug)]
struct Metered {
    prices: Prices,
    /// The sizes of what tests read of each patch.
    sizes: Vec<PatchSizes>,
    /// Whether this rank makes the bounding volume of each patch.
    owns: Vec<bool>,
    /// The pieces that this rank has prepared and paid for.
    prepared: PreparedPieces,
}

impl TestMeter {
    /// Prices the patches that the rank prepares while messages are under way. Its tests then do
    /// not pay for them.
    ///
    /// # Panics
    /// There is no such patch.
    #[must_use]
    pub fn early(&mut self, patches: Vec<usize>) -> EarlyPreparation {
        let Some(metered) = &mut self.0 else {
            return EarlyPreparation {
                patches,
                costs: Vec::new(),
            };
        };
        let sizes = |patch: usize| &metered.sizes[patch];
        let owns = |patch: usize| metered.owns[patch];
        let early = EarlyPreparation::new(patches, owns, sizes, &metered.prices);
        metered.prepared = early.ready(metered.sizes.len(), sizes);
        early
    }

    /// Charges finding where the tests of a rank begin: it has looked at `targets`, and at the
    /// boxes of these pairs of patches. Returns the time that the pairs take, which is 0 on a real
    /// machine.
    pub fn charge_begin(
        &self,
        comm: &mut dyn Comm,
        targets: usize,
        pairs: impl Iterator<Item = (usize, usize)>,
    ) -> Duration {
        let Some(metered) = &self.0 else {
            return Duration::ZERO;
        };
        let count = targets as u64;
        charge(comm, metered.prices.cost(Work::Targets { count }));
        let sizes = |patch: usize| &metered.sizes[patch];
        charge(comm, begin_cost(pairs, sizes, &metered.prices))
    }

    /// The charge of a task for some tests of a patch. On a real machine it is their number. On a
    /// modelled one it is their price in ns, with that of the pieces that had to be prepared for
    /// them. `opened` gives the pieces that the rank has opened of a patch in this step.
    ///
    /// # Panics
    /// There is no such patch.
    #[must_use]
    pub fn charge_of(
        &self,
        (patch, against): (u32, Against),
        tests: &TestsMade,
        opened: impl Fn(usize) -> Option<u64>,
    ) -> u64 {
        let Some(metered) = &self.0 else {
            return tests.own.tests();
        };
        let (other, prices) = match against {
            Against::Itself => (None, &metered.prices.cloth),
            Against::Patch(other) => (Some(other), &metered.prices.cloth),
            Against::Body(_) => (None, &metered.prices.body),
        };
        let prepare = |patch: u32| {
            let patch = patch as usize;
            opened(patch).map_or(0.0, |pieces| {
                let change = metered.prepared.open(patch, pieces);
                metered.sizes[patch].cost(change, metered.owns[patch], &metered.prices)
            })
        };
        let mut cost = prepare(patch);
        if let Some(other) = other {
            cost += prepare(other);
        }
        let mut counts = tests.repeated;
        counts.add_all(&tests.own);
        (prices.of(&counts) + cost).round() as u64
    }
}

/// The tests that a task has made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TestsMade {
    /// The tests that count as this task's.
    pub own: Counts,
    /// The tests that every rank with a part of the top-level test makes, and that count as
    /// another's.
    pub repeated: Counts,
}

/// Moves the clock of a rank, unless that is for nothing.
fn charge(comm: &mut dyn Comm, cost: u64) -> Duration {
    if cost > 0 {
        comm.compute(cost, Duration::ZERO);
    }
    Duration::from_nanos(cost)
}

#[cfg(test)]
mod tests {
    use weft_runtime::comm::solo::Solo;

    use super::*;
    use crate::bound_owner::tests::four_patches;
    use crate::prices::TestPrices;

    fn prices() -> Prices {
        Prices {
            cloth: TestPrices {
                volumes: 10.0,
                ..TestPrices::default()
            },
            body: TestPrices {
                volumes: 7.0,
                ..TestPrices::default()
            },
            target: 3.0,
            begin: 100.0,
            corner: 1.0,
            measure: 1000.0,
            assemble: 2.5,
            ..Prices::default()
        }
    }

    /// The meter of a rank that tests four patches, each with one piece that has all ten vertices.
    fn meter(machine: &CostModel) -> TestMeter {
        let sizes = PatchSizes {
            around: 10,
            nodes: 1,
            pieces: vec![1],
            vertices: vec![(1, 10)],
        };
        let cloth = || ClothSizes {
            patches: vec![sizes; 4],
            tiles: Vec::new(),
        };
        machine.meter(
            &Solo::new(),
            &BoundOwners::new(&four_patches(), None),
            cloth,
        )
    }

    fn made(own: u64, repeated: u64) -> TestsMade {
        let counts = |volumes| Counts {
            volumes,
            ..Counts::default()
        };
        TestsMade {
            own: counts(own),
            repeated: counts(repeated),
        }
    }

    #[test]
    fn work_costs_nothing_on_a_real_machine_and_its_price_on_a_modelled_one() {
        let work = Work::Assembly { weight: 3 };
        assert_eq!(CostModel::REAL.cost(work), 0);
        let modelled = CostModel::modelled(&prices());
        assert_eq!(modelled.cost(work), 8);
        let took = modelled.charge(&mut Solo::new(), work);
        assert_eq!(took, Duration::from_nanos(8));
    }

    #[test]
    fn tests_are_counted_on_a_real_machine() {
        let mut meter = meter(&CostModel::REAL);
        let cost = meter.charge_of((0, Against::Patch(2)), &made(5, 4), |_| Some(1));
        assert_eq!(cost, 5);
        let early = meter.early(vec![1, 3]);
        assert_eq!((early.patches, early.costs), (vec![1, 3], Vec::new()));
        let begin = meter.charge_begin(&mut Solo::new(), 9, [(0, 1)].into_iter());
        assert_eq!(begin, Duration::ZERO);
    }

    #[test]
    fn tests_and_what_they_read_first_are_paid_on_a_modelled_machine() {
        let mut meter = meter(&CostModel::modelled(&prices()));
        let early = meter.early(vec![1]);
        assert_eq!(early.costs, [10_000]);
        // Both patches are read, of which one has been prepared early.
        let pair =
            |meter: &TestMeter| meter.charge_of((0, Against::Patch(1)), &made(5, 4), |_| Some(1));
        assert_eq!(pair(&meter), 90 + 10_000);
        assert_eq!(pair(&meter), 90);
        // Nothing of the body's patch was opened.
        assert_eq!(
            meter.charge_of((2, Against::Body(0)), &made(3, 0), |_| None),
            21
        );
        let begin = meter.charge_begin(&mut Solo::new(), 9, [(0, 1), (0, 2)].into_iter());
        assert_eq!(begin, Duration::from_nanos(200 + 30));
    }
}
