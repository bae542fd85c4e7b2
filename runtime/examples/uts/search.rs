//! The search: a task is a stack of nodes, and a piece of it is some of them.

use serde::{Deserialize, Serialize};
use weft_runtime::comm::Comm;
use weft_runtime::{
    Context, Registry, ScopeError, ScopeOptions, ScopeReport, Split, Step, Task, scope,
};

use super::tree::{Count, Node, Tree};

/// Units that a node charges: it takes some hundred nanoseconds.
pub(crate) const UNITS: u64 = 5;

/// Nodes whose subtrees are still to be counted, the oldest first.
#[derive(Serialize, Deserialize)]
struct Search {
    stack: Vec<Node>,
    count: Count,
}

impl Task<Tree> for Search {
    const NAME: &'static str = "search";
    type Output = Count;

    fn run(&mut self, tree: &Tree, cx: &mut Context<'_, Tree, Count>) -> Step<Count> {
        let budget = (u64::from(cx.budget()) / UNITS).max(1);
        let mut visited = 0;
        while visited < budget
            && let Some(node) = self.stack.pop()
        {
            tree.visit(&node, &mut self.stack, &mut self.count);
            visited += 1;
        }
        cx.charge(visited * UNITS);
        if self.stack.is_empty() {
            Step::Done(self.count)
        } else {
            Step::More
        }
    }

    fn split(&mut self, how: Split) -> Option<Self> {
        let stack = how.take_from(&mut self.stack)?;
        let count = Count::default();
        Some(Self { stack, count })
    }
}

/// One rank's part; the whole count on rank 0.
pub(crate) fn count(
    comm: &mut dyn Comm,
    tree: &Tree,
    options: &ScopeOptions,
) -> Result<(Count, ScopeReport), ScopeError> {
    let registry = Registry::new().with::<Search>();
    scope(comm, &registry, tree, options, |s| {
        let group = s.group();
        if s.rank().index() == 0 {
            let count = Count::default();
            let stack = vec![tree.root()];
            s.fork(&group, Search { stack, count })?;
        }
        let mut sum = Count::default();
        while let Some(count) = s.join(&group)? {
            sum.add(&count?);
        }
        Ok(sum)
    })
}

/// Walks the tree without the runtime.
pub(crate) fn walk(tree: &Tree) -> Count {
    let (mut stack, mut count) = (vec![tree.root()], Count::default());
    while let Some(node) = stack.pop() {
        tree.visit(&node, &mut stack, &mut count);
    }
    count
}
