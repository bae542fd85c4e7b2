//! Disjoint sets of numbers that are united pair by pair (union-find).

/// Sets of the numbers from 0 on, each of which is in one set.
#[derive(Clone, Debug)]
pub(crate) struct DisjointSets {
    /// A smaller number of the same set for each number, or the number itself if it is the least.
    toward: Vec<u32>,
}

impl DisjointSets {
    /// Puts each of this many numbers into a set of its own.
    pub(crate) fn new(count: usize) -> Self {
        Self {
            toward: (0..).take(count).collect(),
        }
    }

    /// Finds the connected pieces of a mesh: vertices of a triangle are in one set.
    pub(crate) fn of_triangles(triangles: &[[u32; 3]], vertices: usize) -> Self {
        let mut sets = Self::new(vertices);
        for &[a, b, c] in triangles {
            sets.unite(a, b);
            sets.unite(a, c);
        }
        sets
    }

    /// Makes one set of those that two numbers are in.
    pub(crate) fn unite(&mut self, a: u32, b: u32) {
        let (a, b) = (self.least(a), self.least(b));
        self.toward[a.max(b) as usize] = a.min(b);
    }

    /// The least number of the set that a number is in. Ways to it get shorter with every call.
    pub(crate) fn least(&mut self, mut number: u32) -> u32 {
        while self.toward[number as usize] != number {
            let next = self.toward[self.toward[number as usize] as usize];
            self.toward[number as usize] = next;
            number = next;
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Two numbers have the same least one if and only if a chain of pairs leads from one to
        /// the other.
        #[test]
        fn numbers_are_together_that_pairs_connect(
            pairs in prop::collection::vec((0_u32..30, 0_u32..30), 0..40),
        ) {
            let mut sets = DisjointSets::new(30);
            pairs.iter().for_each(|&(a, b)| sets.unite(a, b));
            // The least number that is reached from each, found by going through all pairs again
            // and again.
            let mut least: Vec<u32> = (0..30).collect();
            for _ in 0..30 {
                for &(a, b) in &pairs {
                    let both = least[a as usize].min(least[b as usize]);
                    (least[a as usize], least[b as usize]) = (both, both);
                }
            }
            for number in 0..30 {
                prop_assert_eq!(sets.least(number), least[number as usize]);
            }
        }
    }
}
