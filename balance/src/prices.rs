//! What a unit of each kind of work costs, in ns, and how that is found out.
//!
//! The times of whole tasks are known, and how many tests of each kind they made; prices are what explains the times
//! best: least squares without negative prices. The other phases are measured as they are, and divided by what they
//! worked on. A virtual rank that charges these prices is a machine like the one that was measured, without its noise.

use serde::{Deserialize, Serialize};

/// Prices in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Prices {
    /// Of tests of cloth with cloth.
    pub cloth: TestPrices,
    /// Of tests of cloth with bodies.
    pub body: TestPrices,
    /// Looking whether two roots meet.
    pub target: f64,
    /// A vertex in the box around a piece of a patch's tree, for tests of two patches to begin with.
    pub corner: f64,
    /// Finding what a test of two patches begins with, from these boxes.
    pub begin: f64,
    /// A vertex in the volume around a patch, which its owner makes for all.
    pub vertex: f64,
    /// The part of it that a rank does which tests a patch of others: looking where the vertex goes.
    pub way: f64,
    /// The volume of a vertex of a patch that a rank tests.
    pub measure: f64,
    /// A node of a patch's tree.
    pub node: f64,
    /// What else a rank makes of a patch that it tests, whatever it tests of it, for each vertex: firmness where ranks do not share it. 0 in records.
    pub touched: f64,
    /// A triangle of a tile, where firmness is made.
    pub gradient: f64,
    /// The firmness of a tile, beside that.
    pub separation: f64,
    /// Putting a contact in its place among those of a rank.
    pub contact: f64,
    /// A top-level test in a forecast that tests are placed by.
    pub forecast: f64,
    /// Adding up what a rank done under a plan, and moving the boundaries of that, for each rank.
    pub shift: f64,
    /// Assembling the system, for each unit of a vertex's work in the solve.
    pub assemble: f64,
    /// An iteration of the solve, for each unit of work.
    pub product: f64,
    /// Factoring the coarse matrix of the solve, on every rank.
    pub coarse_factor: f64,
    /// Solving with it, in each product, on every rank.
    pub coarse_solve: f64,
    /// A row of impulses in a round.
    pub row: f64,
    /// What else responds, for each unit of work.
    pub respond: f64,
    /// Taking in a vertex of the new state.
    pub share: f64,
}

/// Prices of collision tests in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TestPrices {
    /// A test of two volumes.
    pub volumes: f64,
    /// A test of two leaves.
    pub leaf: f64,
    /// A test of a group of near pairs.
    pub near: f64,
    /// A contact found, and handed out to the owners of its vertices.
    pub contact: f64,
}

/// How many tests of each kind were made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Tests of two volumes.
    pub volumes: u64,
    /// Tests of two leaves.
    pub leaves: u64,
    /// Tests of groups of near pairs.
    pub near: u64,
    /// Contacts found.
    pub contacts: u64,
}

impl Counts {
    /// Adds others.
    pub fn add_all(&mut self, other: &Self) {
        self.volumes += other.volumes;
        self.leaves += other.leaves;
        self.near += other.near;
        self.contacts += other.contacts;
    }

    /// Tests of all kinds.
    #[must_use]
    pub fn tests(&self) -> u64 {
        self.volumes + self.leaves + self.near
    }

    fn features(&self) -> [f64; 4] {
        [self.volumes, self.leaves, self.near, self.contacts].map(|count| count as f64)
    }
}

impl TestPrices {
    /// What tests cost, in ns.
    #[must_use]
    #[inline]
    pub fn of(&self, counts: &Counts) -> f64 {
        let prices = [self.volumes, self.leaf, self.near, self.contact];
        let pairs = prices.iter().zip(counts.features());
        pairs.map(|(price, count)| price * count).sum()
    }

    /// So many times as much.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self {
            volumes: self.volumes * factor,
            leaf: self.leaf * factor,
            near: self.near * factor,
            contact: self.contact * factor,
        }
    }

    /// The prices that explain the measured times (ns) of tasks best; second, the share of the sum of times that they are off by.
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
            // All of the time is accounted for, whatever the single tasks say.
            let scale = total / explained;
            for price in [
                &mut prices.volumes,
                &mut prices.leaf,
                &mut prices.near,
                &mut prices.contact,
            ] {
                *price *= scale;
            }
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

/// Least squares in four unknowns that are not negative, by coordinate descent on the normal equations.
fn non_negative(rows: impl Iterator<Item = ([f64; 4], f64)>) -> [f64; 4] {
    let (mut a, mut b) = ([[0.0; 4]; 4], [0.0; 4]);
    for (row, value) in rows {
        // A task's time is uncertain by about a share of it: large ones must not be all that counts.
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
    /// On a machine that computes so many times slower.
    #[must_use]
    pub fn slower(mut self, times: f64) -> Self {
        self.cloth = self.cloth.times(times);
        self.body = self.body.times(times);
        for price in [
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
        ] {
            *price *= times;
        }
        self
    }

    /// Taking in so many contacts beside others that are in order, in ns.
    #[must_use]
    pub fn taking_in(&self, contacts: usize, others: usize) -> f64 {
        /// What merging takes of what sorting does.
        const MERGED: f64 = 0.2;
        let (contacts, others) = (contacts as f64, others as f64);
        if contacts > 0.0 && others > 0.0 {
            self.contact * (contacts + MERGED * (contacts + others))
        } else {
            self.contact * contacts
        }
    }

    /// The median of several, price by price: what a machine costs that was disturbed now and then.
    #[must_use]
    pub fn median(all: &[Self]) -> Self {
        let of = |price: fn(&Self) -> f64| {
            let mut values: Vec<f64> = all.iter().map(price).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or_default()
        };
        let tests = |kind: fn(&Self) -> TestPrices| {
            let of = |price: fn(&TestPrices) -> f64| {
                let mut values: Vec<f64> = all.iter().map(|p| price(&kind(p))).collect();
                values.sort_by(f64::total_cmp);
                values.get(values.len() / 2).copied().unwrap_or_default()
            };
            TestPrices {
                volumes: of(|p| p.volumes),
                leaf: of(|p| p.leaf),
                near: of(|p| p.near),
                contact: of(|p| p.contact),
            }
        };
        Self {
            cloth: tests(|p| p.cloth),
            body: tests(|p| p.body),
            target: of(|p| p.target),
            corner: of(|p| p.corner),
            begin: of(|p| p.begin),
            vertex: of(|p| p.vertex),
            way: of(|p| p.way),
            measure: of(|p| p.measure),
            node: of(|p| p.node),
            touched: of(|p| p.touched),
            gradient: of(|p| p.gradient),
            separation: of(|p| p.separation),
            contact: of(|p| p.contact),
            forecast: of(|p| p.forecast),
            shift: of(|p| p.shift),
            assemble: of(|p| p.assemble),
            product: of(|p| p.product),
            coarse_factor: of(|p| p.coarse_factor),
            coarse_solve: of(|p| p.coarse_solve),
            row: of(|p| p.row),
            respond: of(|p| p.respond),
            share: of(|p| p.share),
        }
    }
}

/// Whether so many contacts are worth taking in beside others that are in order, while more may come: that goes through all.
#[must_use]
pub fn worth_taking_in(contacts: usize, others: usize) -> bool {
    contacts > 0 && contacts.saturating_mul(4) >= others
}

/// A price times a number, as whole ns.
#[must_use]
pub fn ns(price: f64, count: f64) -> u64 {
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
        // As text, so that no price can be forgotten.
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
        // More leaves, less time: no price explains that.
        let tasks = [(counts(100, 0), 1000.0), (counts(100, 50), 500.0)];
        let (found, _) = TestPrices::fit(&tasks);
        assert!(found.leaf >= 0.0 && found.volumes >= 0.0);
        let total: f64 = tasks.iter().map(|(counts, _)| found.of(counts)).sum();
        assert!((total - 1500.0).abs() < 1e-6);
        assert_eq!(TestPrices::fit(&[]).0, TestPrices::default());
    }
}
