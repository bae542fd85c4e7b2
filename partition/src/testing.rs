//! Graphs that tests cut.

use crate::Graph;

/// A square of `side` by `side` vertices, each joined to those right of it and below it.
pub(crate) fn grid(side: u32) -> Graph {
    let edges = (0..side * side).flat_map(|v| {
        let right = (v % side + 1 < side).then_some((v, v + 1));
        let down = (v + side < side * side).then_some((v, v + side));
        right.into_iter().chain(down)
    });
    Graph::from_edges((side * side) as usize, edges).unwrap()
}
