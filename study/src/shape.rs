//! The shape of a task's tests: which test led to which, in the order in which one worker would
//! make them.
//!
//! A test is taken from a stack, and what it leads to is pushed there; so tests in the order in
//! which they are taken are a tree in pre-order, the child pushed last coming first. On disk a test
//! is a code of four bits, followed elsewhere by the number of contacts of a leaf that found some;
//! in memory it is four bytes, which know how large the subtree is, so that any part of it can be
//! walked without the rest: that is what a thief gets.

use thiserror::Error;
use weft_balance::prices::Counts;

/// The kinds of tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Two inner nodes: four tests of volumes.
    Inner,
    /// An inner node and a leaf, or a body without a tree: two tests of volumes.
    Half,
    /// A node against itself: one test of volumes.
    Itself,
    /// Two leaves, or a leaf and a body: their features are tested.
    Leaf,
    /// Groups of pairs that were close at rest already.
    Near,
}

/// One test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The kind of the test.
    pub kind: Kind,
    /// Tests that it led to.
    pub children: u32,
    /// Tests it counts as: of volumes, of a pair of leaves, or of groups.
    pub tests: u32,
    /// Contacts found.
    pub contacts: u32,
}

impl Visit {
    /// Adds this test to those that are counted.
    #[inline]
    pub fn add_to(&self, counts: &mut Counts) {
        let tests = u64::from(self.tests);
        match self.kind {
            Kind::Inner | Kind::Half | Kind::Itself => counts.volumes += tests,
            Kind::Leaf => counts.leaves += tests,
            Kind::Near => counts.near += tests,
        }
        counts.contacts += u64::from(self.contacts);
    }
}

/// The reason why bytes are no tree.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ShapeError {
    /// They end within it, or go on after it.
    #[error("a tree of tests that does not end where its bytes do")]
    Length,
    /// A code that means nothing.
    #[error("a test of a kind that does not exist")]
    Code,
    /// Numbers beyond what is kept.
    #[error("a tree of tests with more nodes or contacts than {}", Tree::MOST)]
    TooLarge,
}

/// The tests of one top-level task: those below each of the tests that it begins with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// Four bits of code, 28 of size: tests of the subtree, contacts of a leaf, or groups and
    /// contacts of near pairs.
    nodes: Vec<u32>,
    /// The end of the chain of near pairs, which comes first if there is one: there the next root
    /// stands.
    root: u32,
}

const CODE_BITS: u32 = 4;
const INNER: u32 = 0;
const HALF: u32 = 5;
const ITSELF: u32 = 8;
const LEAF: u32 = 12;
const LEAF_FOUND: u32 = 13;
const NEAR: u32 = 14;
/// Bits of a near test's contacts; its groups are above.
const NEAR_CONTACTS: u32 = 20;
/// Most groups of near pairs that are tested at once.
pub const MOST_GROUPS: u32 = 127;

impl Tree {
    /// Most tests and contacts of a tree.
    pub const MOST: u32 = (1 << (32 - CODE_BITS)) - 1;

    /// How many tests there are to take; each may count as several.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The first entries of the stack, oldest first.
    #[must_use]
    pub fn roots(&self) -> Vec<u32> {
        let mut roots = Vec::new();
        if self.root > 0 {
            roots.push(0);
        }
        let mut at = self.root;
        while (at as usize) < self.nodes.len() {
            roots.push(at);
            at += self.size(at);
        }
        // The newest is taken first.
        roots.reverse();
        roots
    }

    /// How many of the first tests are not of near pairs.
    pub(crate) fn trees(&self) -> usize {
        self.roots().len() - usize::from(self.root > 0)
    }

    /// The test at a place.
    #[must_use]
    #[inline]
    pub fn visit(&self, at: u32) -> Visit {
        let node = self.nodes[at as usize];
        let (code, size) = (node & ((1 << CODE_BITS) - 1), node >> CODE_BITS);
        let of = |kind, children, tests| Visit {
            kind,
            children,
            tests,
            contacts: 0,
        };
        match code {
            INNER..HALF => of(Kind::Inner, code - INNER, 4),
            HALF..ITSELF => of(Kind::Half, code - HALF, 2),
            ITSELF..LEAF => of(Kind::Itself, code - ITSELF, 1),
            LEAF | LEAF_FOUND => Visit {
                contacts: size,
                ..of(Kind::Leaf, 0, 1)
            },
            _ => {
                // A chain of near tests ends where the other root begins, or with the tree.
                let last = at + 1 == self.root || at as usize + 1 == self.nodes.len();
                Visit {
                    contacts: size & ((1 << NEAR_CONTACTS) - 1),
                    ..of(Kind::Near, u32::from(!last), size >> NEAR_CONTACTS)
                }
            }
        }
    }

    /// Takes the test at a place, and pushes those that it leads to, oldest first.
    #[inline]
    pub fn expand(&self, at: u32, push: &mut impl FnMut(u32)) -> Visit {
        let visit = self.visit(at);
        let mut places = [0; 4];
        let mut next = at + 1;
        for place in &mut places[..visit.children as usize] {
            *place = next;
            next += self.size(next);
        }
        for &place in places[..visit.children as usize].iter().rev() {
            push(place);
        }
        visit
    }

    /// Tests in the subtree at a place.
    #[inline]
    fn size(&self, at: u32) -> u32 {
        let node = self.nodes[at as usize];
        match node & ((1 << CODE_BITS) - 1) {
            INNER..LEAF => node >> CODE_BITS,
            _ => 1,
        }
    }

    /// All tests, in order.
    pub fn visits(&self) -> impl Iterator<Item = Visit> + '_ {
        (0..self.nodes.len() as u32).map(|at| self.visit(at))
    }

    /// A tree of tests in the order in which they were taken.
    ///
    /// # Errors
    /// They are no tree, or too many.
    pub fn from_visits(visits: impl IntoIterator<Item = Visit>) -> Result<Self, ShapeError> {
        let mut tree = Self::default();
        for visit in visits {
            tree.push(visit)?;
        }
        tree.finish()?;
        Ok(tree)
    }

    fn push(&mut self, visit: Visit) -> Result<(), ShapeError> {
        if self.nodes.len() as u32 >= Self::MOST || visit.contacts > Self::MOST {
            return Err(ShapeError::TooLarge);
        }
        let (code, size) = match visit.kind {
            Kind::Inner if visit.children <= 4 => (INNER + visit.children, 0),
            Kind::Half if visit.children <= 2 => (HALF + visit.children, 0),
            Kind::Itself if visit.children <= 3 => (ITSELF + visit.children, 0),
            Kind::Leaf if visit.children == 0 => {
                (LEAF + u32::from(visit.contacts > 0), visit.contacts)
            }
            Kind::Near if visit.children <= 1 => {
                if visit.tests > MOST_GROUPS || visit.contacts >> NEAR_CONTACTS > 0 {
                    return Err(ShapeError::TooLarge);
                }
                if visit.children == 0 {
                    self.root = self.nodes.len() as u32 + 1;
                }
                (NEAR, visit.tests << NEAR_CONTACTS | visit.contacts)
            }
            _ => return Err(ShapeError::Code),
        };
        self.nodes.push(size << CODE_BITS | code);
        Ok(())
    }

    /// Fills in sizes; fails unless the tests are whole trees, after at most one chain of near
    /// tests.
    fn finish(&mut self) -> Result<(), ShapeError> {
        let n = self.nodes.len();
        let root = self.root as usize;
        if root > n {
            return Err(ShapeError::Length);
        }
        let is_near = |node: u32| node & ((1 << CODE_BITS) - 1) == NEAR;
        if self.nodes[..root].iter().any(|&node| !is_near(node))
            || self.nodes[root..].iter().any(|&node| is_near(node))
        {
            return Err(ShapeError::Code);
        }
        for at in (root..n).rev() {
            let children = self.visit(at as u32).children;
            let mut next = at + 1;
            for _ in 0..children {
                if next >= n {
                    return Err(ShapeError::Length);
                }
                next += self.size(next as u32) as usize;
            }
            if next > n {
                return Err(ShapeError::Length);
            }
            let code = self.nodes[at] & ((1 << CODE_BITS) - 1);
            if code < LEAF {
                self.nodes[at] = ((next - at) as u32) << CODE_BITS | code;
            }
        }
        Ok(())
    }

    /// Writes the tree as bytes: a code for each test, two in a byte, and behind them the numbers
    /// that go with some.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_number(out, self.nodes.len() as u64);
        let code = |node: u32| (node & ((1 << CODE_BITS) - 1)) as u8;
        for pair in self.nodes.chunks(2) {
            let high = pair.get(1).map_or(0, |&node| code(node));
            out.push(code(pair[0]) | high << CODE_BITS);
        }
        for &node in &self.nodes {
            if matches!(u32::from(code(node)), LEAF_FOUND | NEAR) {
                write_number(out, u64::from(node >> CODE_BITS));
            }
        }
        write_number(out, u64::from(self.root));
    }

    /// The tree whose bytes these begin with; what follows is left in `bytes`.
    ///
    /// # Errors
    /// They are no tree.
    pub fn read(bytes: &mut &[u8]) -> Result<Self, ShapeError> {
        let count = read_number(bytes)?;
        if count > u64::from(Self::MOST) {
            return Err(ShapeError::TooLarge);
        }
        let count = count as usize;
        let codes = bytes
            .split_at_checked(count.div_ceil(2))
            .ok_or(ShapeError::Length)?;
        *bytes = codes.1;
        let mut nodes = Vec::with_capacity(count);
        for at in 0..count {
            let code = codes.0[at / 2] >> (CODE_BITS as usize * (at % 2)) & 15;
            nodes.push(u32::from(code));
        }
        for node in &mut nodes {
            match *node {
                LEAF_FOUND | NEAR => {
                    let number = read_number(bytes)?;
                    if number > u64::from(Self::MOST) {
                        return Err(ShapeError::TooLarge);
                    }
                    *node |= (number as u32) << CODE_BITS;
                }
                code if code > NEAR => return Err(ShapeError::Code),
                _ => {}
            }
        }
        let root = u32::try_from(read_number(bytes)?).map_err(|_| ShapeError::Length)?;
        let mut tree = Self { nodes, root };
        tree.finish()?;
        Ok(tree)
    }
}

/// A number in as many bytes as it needs, seven bits in each.
pub(crate) fn write_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 128 {
        out.push(number as u8 | 128);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(crate) fn read_number(bytes: &mut &[u8]) -> Result<u64, ShapeError> {
    let mut number = 0_u64;
    for shift in (0..63).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or(ShapeError::Length)?;
        *bytes = rest;
        number |= u64::from(byte & 127) << shift;
        if byte < 128 {
            return Ok(number);
        }
    }
    Err(ShapeError::TooLarge)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Takes tests from a stack that a sequence of numbers decides about.
    fn grown(choices: &[u8], near: u32, roots: u32) -> Vec<Visit> {
        let mut visits = Vec::new();
        for chunk in 0..near {
            visits.push(Visit {
                kind: Kind::Near,
                children: u32::from(chunk + 1 < near),
                tests: 64,
                contacts: chunk,
            });
        }
        let mut open = roots;
        let mut choices = choices.iter();
        while open > 0 {
            let choice = u32::from(choices.next().copied().unwrap_or(250));
            let (kind, children, tests, contacts) = match choice % 8 {
                0..=2 => (Kind::Inner, choice / 8 % 5, 4, 0),
                3 => (Kind::Half, choice / 8 % 3, 2, 0),
                4 => (Kind::Itself, choice / 8 % 4, 1, 0),
                _ => (Kind::Leaf, 0, 1, choice / 50),
            };
            let children = if choice == 250 { 0 } else { children };
            open = open - 1 + children;
            visits.push(Visit {
                kind,
                children,
                tests,
                contacts,
            });
        }
        visits
    }

    fn taken(tree: &Tree) -> Vec<Visit> {
        let mut stack = tree.roots();
        let mut visits = Vec::new();
        while let Some(at) = stack.pop() {
            visits.push(tree.expand(at, &mut |child| stack.push(child)));
        }
        visits
    }

    proptest! {
        #[test]
        fn tests_taken_from_a_tree_are_those_recorded(
            choices in prop::collection::vec(any::<u8>(), 0..400), near in 0_u32..4, roots in 0_u32..5,
        ) {
            let visits = grown(&choices, near, roots);
            let tree = Tree::from_visits(visits.iter().copied()).unwrap();
            prop_assert_eq!(tree.roots().len() as u32, roots + u32::from(near > 0));
            prop_assert_eq!(tree.trees() as u32, roots);
            prop_assert_eq!(&taken(&tree), &visits);
            let mut bytes = Vec::new();
            tree.write(&mut bytes);
            let mut rest = &bytes[..];
            prop_assert_eq!(Tree::read(&mut rest), Ok(tree));
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(tree) = Tree::read(&mut &bytes[..]) {
                prop_assert_eq!(taken(&tree).len(), tree.len());
            }
        }

        #[test]
        fn a_tree_that_ends_early_is_refused(choices in prop::collection::vec(any::<u8>(), 0..100)) {
            let mut visits = grown(&choices, 0, 1);
            visits.pop();
            prop_assert!(visits.is_empty() || Tree::from_visits(visits).is_err());
        }
    }
}
