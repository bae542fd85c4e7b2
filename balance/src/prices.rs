//! The price of each kind of work on a machine, in ns.
//!
//! Times of whole tasks are measured, with the number of tests of each kind that they made; prices
//! are found by least squares without negative prices. The other phases are measured as a whole and
//! divided by the amount of work. A virtual rank that charges these prices models the machine that
//! was measured, without its noise.

use serde::{Deserialize, Serialize};

/// The prices of a machine in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Prices {
    /// Prices of tests of cloth against cloth.
    pub cloth: TestPrices,
    /// Prices of tests of cloth against bodies.
    pub body: TestPrices,
    /// Looking whether the roots of two trees meet.
    pub target: f64,
    /// A vertex in the boxes around the pieces of a patch's tree, with which tests of two patches
    /// begin.
    pub corner: f64,
    /// Finding what a test of two patches begins with, from these boxes.
    pub begin: f64,
    /// A vertex in the bounding volume of a patch, which one rank makes for all.
    pub vertex: f64,
    /// Looking where a vertex goes, for a rank that does not own the patch's bounding volume. It is
    /// 0 in records, for the owner of the volume looks again too: `measure` has that.
    pub way: f64,
    /// The bounding volume of a vertex.
    pub measure: f64,
    /// The bounding volume of a node of a patch's tree.
    pub node: f64,
    /// The price, for each vertex, of the work that a rank does once for every patch that it tests:
    /// separation bounds, where ranks do not share them. It is 0 in records.
    pub touched: f64,
    /// The gradients of a triangle of a tile, from which separation bounds are made.
    pub gradient: f64,
    /// The separation bound of a tile, without the gradients.
    pub separation: f64,
    /// Putting a contact in its place among those of a rank.
    pub contact: f64,
    /// A top-level test in a forecast, including its assignment.
    pub forecast: f64,
    /// Adding up the work of a rank and moving its boundary.
    pub shift: f64,
    /// Assembling the linear system, for each unit of a vertex's work in the solve.
    pub assemble: f64,
    /// An iteration of the solve, for each unit of work.
    pub product: f64,
    /// Factoring the coarse matrix of the solve, all of it on one rank.
    pub coarse_factor: f64,
    /// Solving with the coarse matrix once in each product, all of it on one rank.
    pub coarse_solve: f64,
    /// A row of impulses in one round.
    pub row: f64,
    /// The rest of the response to contacts, for each unit of work.
    pub respond: f64,
    /// Taking in a vertex of the new state.
    pub share: f64,
}

/// The prices of collision tests in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TestPrices {
    /// A test of two volumes.
    pub volumes: f64,
    /// A test of two leaves.
    pub leaf: f64,
    /// A test of a group of near pairs.
    pub near: f64,
    /// A contact that is found and handed to the owners of its vertices.
    pub contact: f64,
}

/// The number of tests of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Tests of two volumes.
    pub volumes: u64,
    /// Tests of two leaves.
    pub leaves: u64,
    /// Tests of groups of near pairs.
    pub near: u64,
    /// Contacts that were found.
    pub contacts: u64,
}

impl Counts {
    /// Adds other tests.
    pub fn add_all(&mut self, other: &Self) {
        self.volumes += other.volumes;
        self.leaves += other.leaves;
        self.near += other.near;
        self.contacts += other.contacts;
    }

    /// The number of tests of all kinds.
    #[must_use]
    pub fn tests(&self) -> u64 {
        self.volumes + self.leaves + self.near
    }

    fn features(&self) -> [f64; 4] {
        [self.volumes, self.leaves, self.near, self.contacts].map(|count| count as f64)
    }
}

impl TestPrices {
    /// The price of these tests in ns.
    #[must_use]
    #[inline]
    pub fn of(&self, counts: &Counts) -> f64 {
        let prices = [self.volumes, self.leaf, self.near, self.contact];
        let pairs = prices.iter().zip(counts.features());
        pairs.map(|(price, count)| price * count).sum()
    }

    /// The prices on a machine that is slower by this factor.
    #[must_use]
    pub fn times(mut self, factor: f64) -> Self {
        for price in self.all_mut() {
            *price *= factor;
        }
        self
    }

    /// All prices, in the order of [`Counts`].
    fn all_mut(&mut self) -> [&mut f64; size_of::<Self>() / size_of::<f64>()] {
        let Self {
            volumes,
            leaf,
            near,
            contact,
        } = self;
        [volumes, leaf, near, contact]
    }

    /// Finds the prices that explain the measured times (ns) of tasks best. The second result is
    /// the part of all time by which single tasks differ from their prices.
    #[must_use]
    pub fn fit(tasks: &[(Counts, f64)]) -> (Self, f64) {
        let found = non_negative(
            tasks
                .iter()
                .map(|(counts, time)| (counts.features(), *time)),
        );
        let [volumes, leaf, near, contact] = found;
        let mut prices = Self {
            volumes,
            leaf,
            near,
            contact,
        };
        let total: f64 = tasks.iter().map(|(_, time)| time).sum();
        let explained: f64 = tasks.iter().map(|(counts, _)| prices.of(counts)).sum();
        if explained > 0.0 {
            // The sum of all times is kept, however much single tasks differ.
            let scale = total / explained;
            prices = prices.times(scale);
        }
        let off = tasks
            .iter()
            .map(|(counts, time)| (prices.of(counts) - time).abs());
        let off = if total > 0.0 {
            off.sum::<f64>() / total
        } else {
            0.0
        };
        (prices, off)
    }
}

/// Solves a least-squares problem in four unknowns that are not negative, by coordinate descent on
/// the normal equations.
fn non_negative(rows: impl Iterator<Item = ([f64; 4], f64)>) -> [f64; 4] {
    let (mut a, mut b) = ([[0.0; 4]; 4], [0.0; 4]);
    for (row, value) in rows {
        // The time of a task is uncertain by about a fraction of it, and large tasks shall not
        // dominate.
        let weight = 1.0 / (value + 1e3);
        for i in 0..4 {
            b[i] += weight * row[i] * value;
            for j in 0..4 {
                a[i][j] += weight * row[i] * row[j];
            }
        }
    }
    let mut x = [0.0_f64; 4];
    for _ in 0..10_000 {
        for i in 0..4 {
            if a[i][i] > 0.0 {
                let others: f64 = (0..4).filter(|&j| j != i).map(|j| a[i][j] * x[j]).sum();
                x[i] = ((b[i] - others) / a[i][i]).max(0.0);
            }
        }
    }
    x
}

impl Prices {
    /// The prices on a machine that computes slower by this factor.
    #[must_use]
    pub fn slower(mut self, times: f64) -> Self {
        for price in self.all_mut() {
            *price *= times;
        }
        self
    }

    /// All prices, in ns.
    #[must_use]
    pub fn all(mut self) -> Vec<f64> {
        self.all_mut().map(|price| *price).to_vec()
    }

    /// All prices. Their number is that of the numbers in the structure, so none can be forgotten.
    fn all_mut(&mut self) -> [&mut f64; size_of::<Self>() / size_of::<f64>()] {
        let [cloth_volumes, cloth_leaf, cloth_near, cloth_contact] = self.cloth.all_mut();
        let [body_volumes, body_leaf, body_near, body_contact] = self.body.all_mut();
        [
            cloth_volumes,
            cloth_leaf,
            cloth_near,
            cloth_contact,
            body_volumes,
            body_leaf,
            body_near,
            body_contact,
            &mut self.target,
            &mut self.corner,
            &mut self.begin,
            &mut self.vertex,
            &mut self.way,
            &mut self.measure,
            &mut self.node,
            &mut self.touched,
            &mut self.gradient,
            &mut self.separation,
            &mut self.contact,
            &mut self.forecast,
            &mut self.shift,
            &mut self.assemble,
            &mut self.product,
            &mut self.coarse_factor,
            &mut self.coarse_solve,
            &mut self.row,
            &mut self.respond,
            &mut self.share,
        ]
    }

    /// The price in ns of putting contacts in order beside `others` that are in order already.
    #[must_use]
    pub(crate) fn taking_in(&self, contacts: usize, others: usize) -> f64 {
        /// The price of merging a contact, as a fraction of the price of sorting it.
        const MERGED: f64 = 0.2;
        let (contacts, others) = (contacts as f64, others as f64);
        if contacts > 0.0 && others > 0.0 {
            self.contact * (contacts + MERGED * (contacts + others))
        } else {
            self.contact * contacts
        }
    }

    /// The median of several, price by price: a machine without its occasional disturbances.
    #[must_use]
    pub fn median(all: &[Self]) -> Self {
        let mut median = Self::default();
        for (index, price) in median.all_mut().into_iter().enumerate() {
            let mut values: Vec<f64> = all.iter().map(|prices| prices.all()[index]).collect();
            values.sort_by(f64::total_cmp);
            *price = values.get(values.len() / 2).copied().unwrap_or_default();
        }
        median
    }
}

/// Whether this many contacts are worth putting in order beside others that are, while more may
/// come: merging goes through all of them.
#[must_use]
pub fn worth_taking_in(contacts: usize, others: usize) -> bool {
    contacts > 0 && contacts.saturating_mul(4) >= others
}

/// A price times an amount, in whole ns.
#[must_use]
pub(crate) fn ns(price: f64, count: f64) -> u64 {
    (price * count).round().max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_found_again() {
        let truth = TestPrices {
            volumes: 12.0,
            leaf: 300.0,
            near: 0.0,
            contact: 80.0,
        };
        let tasks: Vec<_> = (1..60_u64)
            .map(|i| {
                let counts = Counts {
                    volumes: i * 37 % 101 * 10,
                    leaves: i * 13 % 29,
                    near: 0,
                    contacts: i * 5 % 11,
                };
                (counts, truth.of(&counts))
            })
            .collect();
        let (found, off) = TestPrices::fit(&tasks);
        assert!(off < 1e-6, "{found:?}, off by {off}");
        assert!((found.leaf - truth.leaf).abs() < 1e-3);
        assert_eq!(found.near, 0.0);
    }

    #[test]
    fn a_slower_machine_asks_more_for_everything() {
        let one = TestPrices {
            volumes: 1.0,
            leaf: 1.0,
            near: 1.0,
            contact: 1.0,
        };
        let all = Prices {
            cloth: one,
            body: one,
            target: 1.0,
            corner: 1.0,
            begin: 1.0,
            vertex: 1.0,
            way: 1.0,
            measure: 1.0,
            node: 1.0,
            touched: 1.0,
            gradient: 1.0,
            separation: 1.0,
            contact: 1.0,
            forecast: 1.0,
            shift: 1.0,
            assemble: 1.0,
            product: 1.0,
            coarse_factor: 1.0,
            coarse_solve: 1.0,
            row: 1.0,
            respond: 1.0,
            share: 1.0,
        };
        // The comparison is made of texts, so that no price can be forgotten.
        let ones = serde_json::to_string(&all).unwrap();
        let fives = serde_json::to_string(&all.slower(5.0)).unwrap();
        assert_eq!(ones.replace("1.0", "5.0"), fives);
    }

    #[test]
    fn no_price_is_negative_and_all_time_is_accounted_for() {
        let counts = |volumes, leaves| Counts {
            volumes,
            leaves,
            ..Counts::default()
        };
        // More leaves take less time here, which no price explains.
        let tasks = [(counts(100, 0), 1000.0), (counts(100, 50), 500.0)];
        let (found, _) = TestPrices::fit(&tasks);
        assert!(found.leaf >= 0.0 && found.volumes >= 0.0);
        let total: f64 = tasks.iter().map(|(counts, _)| found.of(counts)).sum();
        assert!((total - 1500.0).abs() < 1e-6);
        assert_eq!(TestPrices::fit(&[]).0, TestPrices::default());
    }
}
