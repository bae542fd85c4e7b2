//! The trees: what a node is, and how many children it has.

use serde::{Deserialize, Serialize};
use sha1::{Digest, Sha1};

/// Most children of a node that is not the root of a binomial tree.
const MOST_CHILDREN: u32 = 100;

/// The parameters of the tree.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Tree {
    /// Type: 0 binomial, 1 geometric, 2 hybrid.
    #[arg(short = 't', default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=2))]
    kind: u32,
    /// Shape of a geometric tree: 0 linear, 1 exponential, 2 cyclic, 3 fixed.
    #[arg(short = 'a', default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=3))]
    shape: u32,
    /// Depth of a geometric tree.
    #[arg(short = 'd', default_value_t = 6)]
    depth: u32,
    /// Branching at the root.
    #[arg(short = 'b', default_value_t = 4.0, value_parser = number)]
    branching: f64,
    /// Probability that a binomial node has children.
    #[arg(short = 'q', default_value_t = 15.0 / 64.0, value_parser = number)]
    probability: f64,
    /// How many it has then.
    #[arg(short = 'm', default_value_t = 4)]
    children: u32,
    /// Depth, as a share, where a hybrid tree becomes binomial.
    #[arg(short = 'f', default_value_t = 0.5, value_parser = number)]
    shift: f64,
    /// Seed.
    #[arg(short = 'r', default_value_t = 0)]
    root: u32,
}

fn number(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if (0.0..=1e9).contains(&number) => Ok(number),
        _ => Err("not a number from 0 on".to_owned()),
    }
}

/// A node: its state and depth.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Node {
    state: [u8; 20],
    depth: u32,
}

/// The counts of a tree.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Count {
    pub(crate) nodes: u64,
    pub(crate) leaves: u64,
    pub(crate) depth: u32,
    pub(crate) digest: [u8; 20],
}

impl Count {
    pub(crate) fn add(&mut self, other: &Self) {
        self.nodes += other.nodes;
        self.leaves += other.leaves;
        self.depth = self.depth.max(other.depth);
        for (mine, theirs) in self.digest.iter_mut().zip(other.digest) {
            *mine ^= theirs;
        }
    }
}

impl Tree {
    pub(crate) fn root(&self) -> Node {
        let mut hash = Sha1::new();
        hash.update([0; 16]);
        hash.update(self.root.to_be_bytes());
        Node {
            state: hash.finalize().into(),
            depth: 0,
        }
    }

    fn child(node: &Node, number: u32) -> Node {
        let mut hash = Sha1::new();
        hash.update(node.state);
        hash.update(number.to_be_bytes());
        Node {
            state: hash.finalize().into(),
            depth: node.depth + 1,
        }
    }

    /// How many children a node has.
    fn count_children(&self, node: &Node) -> u32 {
        let last = [
            node.state[16],
            node.state[17],
            node.state[18],
            node.state[19],
        ];
        let uniform = f64::from(u32::from_be_bytes(last) & 0x7fff_ffff) / 2_147_483_648.0;
        let geometric = match self.kind {
            0 => false,
            1 => true,
            _ => f64::from(node.depth) < self.shift * f64::from(self.depth),
        };
        if !geometric {
            if node.depth == 0 {
                return self.branching.floor() as u32;
            }
            return if uniform < self.probability {
                self.children.min(MOST_CHILDREN)
            } else {
                0
            };
        }
        let (depth, most) = (f64::from(node.depth), f64::from(self.depth));
        let mean = if node.depth == 0 {
            self.branching
        } else {
            match self.shape {
                0 => self.branching * (1.0 - depth / most),
                1 => self.branching * depth.powf(-self.branching.ln() / most.ln()),
                2 if node.depth > 5 * self.depth => 0.0,
                2 => self
                    .branching
                    .powf((2.0 * std::f64::consts::PI * depth / most).sin()),
                _ if node.depth < self.depth => self.branching,
                _ => 0.0,
            }
        };
        let p = 1.0 / (1.0 + mean);
        let children = ((1.0 - uniform).ln() / (1.0 - p).ln()).floor();
        (children as u32).min(MOST_CHILDREN)
    }

    /// Counts a node and puts its children on the stack.
    pub(crate) fn visit(&self, node: &Node, stack: &mut Vec<Node>, count: &mut Count) {
        let children = self.count_children(node);
        count.nodes += 1;
        count.leaves += u64::from(children == 0);
        count.depth = count.depth.max(node.depth);
        for (mine, theirs) in count.digest.iter_mut().zip(node.state) {
            *mine ^= theirs;
        }
        stack.extend((0..children).map(|number| Self::child(node, number)));
    }
}
