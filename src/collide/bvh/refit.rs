//! The refit: the sweep that brings the volumes of a tree up to date, leaves and inner nodes apart.
//!
//! A processor cannot foresee whether the next node is a leaf, and loses as much time by a wrong
//! guess as a union takes. So in each stretch of nodes first the leaves are gone through, then the
//! inner nodes, by lists that are made with the tree. Stretches are so short that the volumes of
//! one stay in the fastest cache.
//!
//! A tree that is tested against few others need not be refitted whole. It is cut into small
//! *subtrees*, which hold all leaves between them, and the nodes above these. A subtree is refitted
//! once a test may look at it; what is above is read only by tests of the whole tree.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::archive::{Archive, ArchiveFault, Array, Loader, Saver, archives};
use crate::collide::bvh::quantised::{Quantised, Siblings};
use crate::collide::bvh::tree::{Below, Bvh, Node};
use crate::heap_bytes::{HeapBytes, counts_heap, owns_no_heap};
use crate::simd::{Kernel, Lanes, up_to_avx2};

/// The number of nodes of a stretch.
const STRETCH: u32 = 256;
/// The most triangles of a subtree, unless that makes too many subtrees.
const SUBTREE: usize = 24;
/// The most subtrees of a tree: a number has a bit for each.
const MOST_SUBTREES: usize = 64;

/// The lists by which trees with one number of triangles are refitted: all such trees have the same
/// nodes.
#[derive(Clone, Debug, Default)]
pub(in crate::collide) struct Shape {
    order: Order,
    ranks: LeafRanks,
    /// The number of nodes.
    nodes: u32,
    /// The ends of the leaves and of the inner nodes of each stretch, from the last on.
    stretches: Vec<[u32; 2]>,
    subtrees: Vec<Subtree>,
    /// The inner nodes above subtrees, from the last on.
    above: Vec<[u32; 2]>,
}

counts_heap!(Shape: order, ranks, stretches, subtrees, above; without nodes);
archives!(Shape: order, ranks, nodes, stretches, subtrees, above);

/// The nodes of a tree in the order in which they are refitted; short numbers for a patch.
#[derive(Clone, Debug)]
enum Order {
    Short(Lists<u16>),
    Long(Lists<u32>),
}

impl Default for Order {
    fn default() -> Self {
        Self::Short(Lists::default())
    }
}

impl HeapBytes for Order {
    fn heap_bytes(&self) -> usize {
        match self {
            Self::Short(lists) => lists.leaves.heap_bytes() + lists.inner.heap_bytes(),
            Self::Long(lists) => lists.leaves.heap_bytes() + lists.inner.heap_bytes(),
        }
    }
}

impl Archive for Order {
    fn save(&self, to: &mut Saver<'_>) -> io::Result<()> {
        matches!(self, Self::Short(_)).save(to)?;
        match self {
            Self::Short(lists) => lists.save(to),
            Self::Long(lists) => lists.save(to),
        }
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, ArchiveFault> {
        Ok(match bool::load(from)? {
            true => Self::Short(Lists::load(from)?),
            false => Self::Long(Lists::load(from)?),
        })
    }
}

/// The nodes of a tree, from the last on.
#[derive(Clone, Debug, Default)]
struct Lists<N: Clone + 'static> {
    leaves: Array<N>,
    /// The inner nodes, with what is below each as [`Below::of_inner`] takes it.
    inner: Array<[N; 2]>,
}

archives!(Lists<u16>: leaves, inner);
archives!(Lists<u32>: leaves, inner);

/// The most nodes of a tree whose lists are short.
const MOST_SHORT: usize = 1 << 15;

/// The numbers of leaves among all leaves, from the last on.
#[derive(Clone, Debug, Default)]
struct LeafRanks {
    /// The number of leaves before each 32 nodes, and which of these are leaves, a bit for each.
    blocks: Array<[u32; 2]>,
    /// The number of the first leaf.
    last: u32,
}

counts_heap!(LeafRanks: blocks; without last);
archives!(LeafRanks: blocks, last);

impl LeafRanks {
    fn new(tree: &Bvh) -> Self {
        let mut blocks = vec![[0; 2]; tree.len().div_ceil(32)];
        let mut count = 0;
        for node in 0..tree.len() {
            let block = &mut blocks[node / 32];
            if node % 32 == 0 {
                block[0] = count;
            }
            if matches!(tree.node(node as u32), Node::Leaf(_)) {
                block[1] |= 1 << (node % 32);
                count += 1;
            }
        }
        Self {
            blocks: blocks.into(),
            last: count.saturating_sub(1),
        }
    }

    #[inline(always)]
    fn of(&self, leaf: u32) -> u32 {
        let [before, bits] = self.blocks[leaf as usize / 32];
        let below = bits & ((1 << (leaf % 32)) - 1);
        self.last - (before + below.count_ones())
    }
}

/// The lists by which a tree is refitted.
#[derive(Clone, Debug, Default)]
pub(in crate::collide) struct Refit {
    /// The part that trees with as many triangles share.
    shape: Arc<Shape>,
    /// The places of the corners of the leaves among the volumes of vertices.
    leaves: Corners,
    /// The places of the vertices of each subtree, each once, and where those of each begin.
    corners: Array<u32>,
    starts: Array<u32>,
    /// The subtrees that have each place, a bit for each.
    shared: Array<u64>,
}

counts_heap!(Refit: shape, leaves, corners, starts, shared);

/// The places of the corners of leaves; short numbers for a patch.
#[derive(Clone, Debug)]
enum Corners {
    Short(Array<[u16; 3]>),
    Long(Array<[u32; 3]>),
}

impl Default for Corners {
    fn default() -> Self {
        Self::Short(Array::default())
    }
}

impl HeapBytes for Corners {
    fn heap_bytes(&self) -> usize {
        match self {
            Self::Short(all) => all.heap_bytes(),
            Self::Long(all) => all.heap_bytes(),
        }
    }
}

impl Archive for Corners {
    fn save(&self, to: &mut Saver<'_>) -> io::Result<()> {
        matches!(self, Self::Short(_)).save(to)?;
        match self {
            Self::Short(all) => all.save(to),
            Self::Long(all) => all.save(to),
        }
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, ArchiveFault> {
        Ok(match bool::load(from)? {
            true => Self::Short(Array::load(from)?),
            false => Self::Long(Array::load(from)?),
        })
    }
}

impl Corners {
    fn new(all: Vec<[u32; 3]>) -> Self {
        let short = |corners: &[u32; 3]| {
            let [a, b, c] = corners.map(u16::try_from);
            Some([a.ok()?, b.ok()?, c.ok()?])
        };
        let short: Option<Vec<[u16; 3]>> = all.iter().map(short).collect();
        match short {
            Some(mut short) => {
                short.shrink_to_fit();
                Self::Short(short.into())
            }
            None => Self::Long(all.into()),
        }
    }

    #[inline(always)]
    fn of(&self, leaf: usize) -> [u32; 3] {
        match self {
            Self::Short(all) => {
                let [a, b, c] = all[leaf];
                [u32::from(a), u32::from(b), u32::from(c)]
            }
            Self::Long(all) => all[leaf],
        }
    }
}

/// A subtree.
#[derive(Clone, Debug)]
struct Subtree {
    root: u32,
    /// The nodes below its root, as [`Below::of_inner`] takes them, if it is no leaf.
    below: u32,
    /// All nodes below its root.
    nodes: Range<u32>,
    /// Its leaves among all, and the inner nodes below its root.
    leaves: Range<u32>,
    inner: Range<u32>,
}

owns_no_heap!(Subtree);

impl Archive for Subtree {
    fn save(&self, to: &mut Saver<'_>) -> io::Result<()> {
        let Self {
            root,
            below,
            nodes,
            leaves,
            inner,
        } = self;
        let ranges = [nodes, leaves, inner];
        [*root, *below].save(to)?;
        ranges.map(|of| [of.start, of.end]).save(to)
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, ArchiveFault> {
        let [root, below] = Archive::load(from)?;
        let ranges: [[u32; 2]; 3] = Archive::load(from)?;
        let [nodes, leaves, inner] = ranges.map(|[start, end]| start..end);
        Ok(Self {
            root,
            below,
            nodes,
            leaves,
            inner,
        })
    }
}

impl Shape {
    /// The number of nodes.
    pub(in crate::collide) fn len(&self) -> usize {
        self.nodes as usize
    }

    /// The part that trees share that have as many triangles as this one.
    pub(in crate::collide) fn new(tree: &Bvh) -> Self {
        let count = tree.len().div_ceil(2);
        let mut leaves = Vec::with_capacity(count);
        let mut inner = Vec::with_capacity(tree.len() - count);
        let mut all = Self {
            ranks: LeafRanks::new(tree),
            nodes: tree.len() as u32,
            ..Self::default()
        };
        for node in (0..tree.len() as u32).rev() {
            match tree.node(node) {
                Node::Leaf(_) => leaves.push(node),
                Node::Inner(_) => inner.push([node, tree.below(node).as_inner()]),
            }
            if node % STRETCH == 0 {
                all.stretches
                    .push([leaves.len() as u32, inner.len() as u32]);
            }
        }
        if !tree.is_empty() {
            all.cut(
                (tree, &leaves, &inner),
                (0, count),
                SUBTREE.max(count.div_ceil(MOST_SUBTREES)),
            );
            all.above.reverse();
        }
        all.order = if tree.len() <= MOST_SHORT {
            Order::Short(Lists {
                leaves: leaves.iter().map(|&node| node as u16).collect(),
                inner: inner.iter().map(|both| both.map(|of| of as u16)).collect(),
            })
        } else {
            Order::Long(Lists {
                leaves: leaves.into(),
                inner: inner.into(),
            })
        };
        all
    }

    /// Cuts what is below a node, which has this many triangles, into subtrees of no more than
    /// `most` triangles.
    fn cut(
        &mut self,
        of: (&Bvh, &[u32], &[[u32; 2]]),
        (root, triangles): (u32, usize),
        most: usize,
    ) {
        let (tree, all_leaves, all_inner) = of;
        if let Node::Inner(child) = tree.node(root)
            && triangles > most
        {
            self.above.push([root, tree.below(root).as_inner()]);
            // As trees are split.
            self.cut(of, (child, triangles / 2), most);
            self.cut(of, (child + 1, triangles.div_ceil(2)), most);
            return;
        }
        // The nodes below a node follow its first child.
        let nodes = match tree.node(root) {
            Node::Inner(child) => child..child + 2 * (triangles as u32 - 1),
            Node::Leaf(_) => 0..0,
        };
        let leaf = |node: u32| all_leaves.partition_point(|&leaf| leaf >= node) as u32;
        let inner = |node: u32| all_inner.partition_point(|inner| inner[0] >= node) as u32;
        let leaves = match tree.node(root) {
            Node::Inner(_) => leaf(nodes.end)..leaf(nodes.start),
            Node::Leaf(_) => leaf(root + 1)..leaf(root),
        };
        let inner = inner(nodes.end)..inner(nodes.start);
        self.subtrees.push(Subtree {
            root,
            below: tree.below(root).as_inner(),
            nodes,
            leaves,
            inner,
        });
    }
}

impl Refit {
    /// The refit of a tree over triangles with corners at these places.
    pub(in crate::collide) fn new(tree: &Bvh, places: impl Fn(u32) -> [u32; 3]) -> Self {
        Self::sharing(Arc::new(Shape::new(tree)), tree, places)
    }

    /// Does as [`Self::new`] with the shape of a tree with as many triangles.
    pub(in crate::collide) fn sharing(
        shape: Arc<Shape>,
        tree: &Bvh,
        places: impl Fn(u32) -> [u32; 3],
    ) -> Self {
        debug_assert_eq!(shape.nodes as usize, tree.len());
        let leaves = (0..shape.nodes)
            .rev()
            .filter_map(|node| match tree.node(node) {
                Node::Leaf(triangle) => Some(places(triangle)),
                Node::Inner(_) => None,
            });
        let leaves: Vec<[u32; 3]> = leaves.collect();
        let (mut corners, mut starts) = (Vec::new(), Vec::with_capacity(shape.subtrees.len() + 1));
        starts.push(0);
        let mut own = Vec::new();
        for subtree in &shape.subtrees {
            own.clear();
            own.extend(part(&leaves, &subtree.leaves).as_flattened());
            own.sort_unstable();
            own.dedup();
            corners.extend_from_slice(&own);
            starts.push(corners.len() as u32);
        }
        corners.shrink_to_fit();
        let places = corners.iter().max().map_or(0, |&last| last + 1);
        let mut shared = vec![0_u64; places as usize];
        for at in 0..shape.subtrees.len() {
            for &place in &corners[starts[at] as usize..starts[at + 1] as usize] {
                shared[place as usize] |= 1 << at;
            }
        }
        Self {
            shape,
            leaves: Corners::new(leaves),
            corners: corners.into(),
            starts: starts.into(),
            shared: shared.into(),
        }
    }

    /// Keeps it in an archive, but for the shape.
    pub(in crate::collide) fn save_without_shape(&self, to: &mut Saver<'_>) -> io::Result<()> {
        let Self {
            shape: _,
            leaves,
            corners,
            starts,
            shared,
        } = self;
        leaves.save(to)?;
        corners.save(to)?;
        starts.save(to)?;
        shared.save(to)
    }

    /// Reads what [`save_without_shape`](Self::save_without_shape) has written.
    pub(in crate::collide) fn load_with(
        shape: Arc<Shape>,
        from: &mut Loader<'_>,
    ) -> Result<Self, ArchiveFault> {
        Ok(Self {
            shape,
            leaves: Corners::load(from)?,
            corners: Array::load(from)?,
            starts: Array::load(from)?,
            shared: Array::load(from)?,
        })
    }

    /// The bytes on the heap but for the shape.
    pub(in crate::collide) fn bytes_without_shape(&self) -> usize {
        self.heap_bytes() - self.shape.heap_bytes()
    }

    /// The places of the corners of a leaf's triangle.
    #[inline(always)]
    pub(in crate::collide) fn places_of(&self, leaf: u32) -> [u32; 3] {
        self.leaves.of(self.shape.ranks.of(leaf) as usize)
    }

    /// The places of the vertices of a subtree.
    #[inline]
    fn corners_of(&self, subtree: usize) -> &[u32] {
        &self.corners[self.starts[subtree] as usize..self.starts[subtree + 1] as usize]
    }

    /// The number of nodes of each subtree.
    pub(in crate::collide) fn subtrees(&self) -> impl ExactSizeIterator<Item = u32> {
        let nodes = |subtree: &Subtree| 1 + subtree.nodes.len() as u32;
        self.shape.subtrees.iter().map(nodes)
    }

    /// All subtrees, a bit for each.
    pub(in crate::collide) fn whole(&self) -> u64 {
        match self.shape.subtrees.len() {
            0 => 0,
            count => u64::MAX >> (MOST_SUBTREES - count),
        }
    }

    /// The root of a subtree.
    pub(in crate::collide) fn root(&self, subtree: u32) -> u32 {
        self.shape.subtrees[subtree as usize].root
    }

    /// Whether a node belongs to one of some subtrees, a bit for each.
    pub(in crate::collide) fn is_in(&self, node: u32, subtrees: u64) -> bool {
        // The nodes below the root of a subtree precede those below the root of the next.
        let below = (self.shape.subtrees).partition_point(|subtree| subtree.nodes.end <= node);
        let is_below = self
            .shape
            .subtrees
            .get(below)
            .is_some_and(|p| p.nodes.contains(&node));
        let root = || {
            self.shape
                .subtrees
                .iter()
                .position(|subtree| subtree.root == node)
        };
        let subtree = if is_below { Some(below) } else { root() };
        subtree.is_some_and(|subtree| subtrees >> subtree & 1 != 0)
    }

    /// The places of the vertices of each subtree.
    pub(in crate::collide) fn corners(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.shape.subtrees.len()).map(|subtree| self.corners_of(subtree))
    }

    /// The subtrees that have each place that any of them has, a bit for each.
    pub(in crate::collide) fn shared(&self) -> &[u64] {
        &self.shared
    }

    /// Puts on a list the places that some subtrees have and some others do not, each once.
    pub(in crate::collide) fn places(&self, of: u64, but: u64, out: &mut Vec<u32>) {
        let mut had = but;
        for at in 0..self.shape.subtrees.len() {
            if of >> at & 1 != 0 {
                let corners = self.corners_of(at).iter().copied();
                out.extend(corners.filter(|&place| self.shared[place as usize] & had == 0));
                had |= 1 << at;
            }
        }
    }

    /// Fills in the volumes of all nodes, in the order of
    /// [`Nodes`](crate::collide::bvh::quantised::Nodes), from those of vertices.
    ///
    /// # Panics
    /// If there are fewer of these than places.
    pub(in crate::collide) fn run(&self, vertices: &[Quantised], volumes: &mut Vec<Siblings>) {
        self.make_room(volumes);
        up_to_avx2(Refitting {
            of: self,
            wanted: Wanted::All,
            vertices,
            volumes,
        });
        end(volumes);
    }

    /// Fills in the volumes of some subtrees. The others stay as they were, perhaps in an earlier
    /// step.
    ///
    /// # Panics
    /// If there are fewer vertices than places.
    pub(in crate::collide) fn open(
        &self,
        which: u64,
        vertices: &[Quantised],
        volumes: &mut Vec<Siblings>,
    ) {
        self.make_room(volumes);
        up_to_avx2(Refitting {
            of: self,
            wanted: Wanted::Subtrees(which),
            vertices,
            volumes,
        });
        if self.shape.subtrees.len() == 1 {
            end(volumes);
        }
    }

    /// Fills in the volumes of the nodes above subtrees, from those of all their roots.
    ///
    /// # Panics
    /// If there are fewer volumes than nodes.
    pub(in crate::collide) fn join(&self, volumes: &mut [Siblings]) {
        sweep_inner(&self.shape.above, volumes);
        end(volumes);
    }

    fn make_room(&self, volumes: &mut Vec<Siblings>) {
        let nodes = self.shape.nodes as usize;
        volumes.resize(nodes.div_ceil(2), Siblings::NOTHING);
    }
}

/// The root stands for both of two siblings.
fn end(volumes: &mut [Siblings]) {
    if let Some(root) = volumes.first_mut() {
        let whole = root.one(1);
        root.put(0, &whole);
    }
}

#[inline(always)]
fn sweep_leaves<N: Copy + Into<u32>, P: Copy + Into<u32>>(
    leaves: (&[N], &[[P; 3]]),
    vertices: &[Quantised],
    volumes: &mut [Siblings],
) {
    for (&node, &[a, b, c]) in leaves.0.iter().zip(leaves.1) {
        // There is no `map` here, because what it calls may be compiled for any processor.
        let (node, [a, b, c]): (u32, [u32; 3]) = (node.into(), [a.into(), b.into(), c.into()]);
        let (a, b) = (&vertices[a as usize], &vertices[b as usize]);
        put(
            volumes,
            (node, Below::leaf(node)),
            &a.union(b).union(&vertices[c as usize]),
        );
    }
}

#[inline(always)]
fn sweep_inner<N: Copy + Into<u32>>(inner: &[[N; 2]], volumes: &mut [Siblings]) {
    for &[node, below] in inner {
        let (node, below) = (node.into(), Below::of_inner(below.into()));
        let volume = volumes[below.siblings() as usize].union();
        put(volumes, (node, below), &volume);
    }
}

#[inline(always)]
fn put(volumes: &mut [Siblings], (node, below): (u32, Below), volume: &Quantised) {
    let (at, side) = place(node);
    let siblings = &mut volumes[at];
    siblings.put(side, volume);
    siblings.below[side] = below;
}

/// A part of a list.
#[inline(always)]
fn part<'a, T>(list: &'a [T], range: &Range<u32>) -> &'a [T] {
    &list[range.start as usize..range.end as usize]
}

/// The nodes whose volumes are made.
#[derive(Clone, Copy)]
enum Wanted {
    /// All of them.
    All,
    /// Nodes of the subtrees whose bits are set.
    Subtrees(u64),
}

/// The arguments of [`Refit::run`] and [`Refit::open`].
struct Refitting<'a> {
    of: &'a Refit,
    wanted: Wanted,
    vertices: &'a [Quantised],
    volumes: &'a mut [Siblings],
}

impl Kernel for Refitting<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Lanes>(self, _: S) {
        let of = self.of;
        match (&of.shape.order, &of.leaves) {
            (Order::Short(lists), Corners::Short(corners)) => self.sweep(lists, corners),
            (Order::Short(lists), Corners::Long(corners)) => self.sweep(lists, corners),
            (Order::Long(lists), Corners::Short(corners)) => self.sweep(lists, corners),
            (Order::Long(lists), Corners::Long(corners)) => self.sweep(lists, corners),
        }
    }
}

impl Refitting<'_> {
    #[inline(always)]
    fn sweep<N: Copy + Into<u32> + 'static, P: Copy + Into<u32>>(
        self,
        lists: &Lists<N>,
        corners: &[[P; 3]],
    ) {
        match self.wanted {
            Wanted::All => self.sweep_all(lists, corners),
            Wanted::Subtrees(which) => self.sweep_subtrees(which, lists, corners),
        }
    }

    #[inline(always)]
    fn sweep_all<N: Copy + Into<u32>, P: Copy + Into<u32>>(
        self,
        lists: &Lists<N>,
        corners: &[[P; 3]],
    ) {
        let mut from = [0; 2];
        for &ends in &self.of.shape.stretches {
            let range = from[0]..ends[0];
            let leaves = (part(&lists.leaves, &range), part(corners, &range));
            sweep_leaves(leaves, self.vertices, self.volumes);
            let inner = part(&lists.inner, &(from[1]..ends[1]));
            sweep_inner(inner, self.volumes);
            from = ends;
        }
    }

    #[inline(always)]
    fn sweep_subtrees<N: Copy + Into<u32>, P: Copy + Into<u32>>(
        self,
        which: u64,
        lists: &Lists<N>,
        corners: &[[P; 3]],
    ) {
        for (at, subtree) in self.of.shape.subtrees.iter().enumerate() {
            if which >> at & 1 != 0 {
                let range = &subtree.leaves;
                let leaves = (part(&lists.leaves, range), part(corners, range));
                sweep_leaves(leaves, self.vertices, self.volumes);
                sweep_inner(part(&lists.inner, &subtree.inner), self.volumes);
                if !subtree.nodes.is_empty() {
                    sweep_inner(&[[subtree.root, subtree.below]], self.volumes);
                }
            }
        }
    }
}

/// The place of a node's volume: which siblings, and which of the two.
#[inline(always)]
fn place(node: u32) -> (usize, usize) {
    let at = node as usize + 1;
    (at / 2, at % 2)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use glam::DVec3;

    use super::*;
    use crate::collide::bvh::displacements::Displacements;
    use crate::collide::bvh::extent::Extent;
    use crate::collide::bvh::grid::Grid;
    use crate::collide::bvh::quantised::Nodes;
    use crate::collide::bvh::traversal::NodeVolumes;

    #[test]
    fn every_node_has_what_holds_its_triangles_and_no_more() {
        for count in [0_u32, 1, 2, 3, 17, 300, 1000] {
            let x = |v: u32| {
                let of = |p: u32| f64::from(v * 7919 % p) / f64::from(p);
                DVec3::new(of(101), of(57), of(1013))
            };
            let corners = |t: u32| [t, t * 31 % (count + 2), t * 17 % (count + 2)];
            let tree = Bvh::build((0..count).map(|t| (t, x(t))).collect());
            let points: Vec<DVec3> = (0..count + 2).map(x).collect();
            let grid = Grid::over(Extent::of(&points));
            let (mut displacements, mut vertices) = (Vec::new(), Vec::new());
            Displacements::of(
                &points,
                |&p| [p, p + 0.01 * p],
                points[0],
                &mut displacements,
            );
            grid.measure(&displacements, points[0], 0.01, &mut vertices);

            let mut volumes = Vec::new();
            let refit = Refit::new(&tree, corners);
            // The earlier contents do not matter.
            refit.run(&vec![vertices[0]; vertices.len()], &mut volumes);
            refit.run(&vertices, &mut volumes);
            let nodes = Nodes(&volumes);
            assert_eq!(nodes.count(), tree.len());
            for node in 0..tree.len() as u32 {
                let expected = match tree.node(node) {
                    Node::Inner(first) => nodes.of(first).union(&nodes.of(first + 1)),
                    Node::Leaf(t) => {
                        let [a, b, c] = corners(t).map(|v| vertices[v as usize]);
                        a.union(&b).union(&c)
                    }
                };
                assert_eq!(nodes.of(node), expected, "node {node} of {count} triangles");
                let below = NodeVolumes::below(nodes, &tree, node);
                assert_eq!(below, tree.below(node));
            }
            if let Some(first) = volumes.first() {
                assert_eq!(first.one(0), first.one(1));
            }

            // Subtree by subtree it is the same, whatever there was before.
            let mut pieced = Vec::new();
            let others = vec![vertices[0]; vertices.len()];
            refit.run(&others, &mut pieced);
            assert!(refit.shape.subtrees.len() <= MOST_SUBTREES);
            let (mut made, mut places, mut known) = (0, Vec::new(), others);
            for (at, inside) in refit.subtrees().enumerate() {
                let (which, before) = (1 << at, (1 << at) - 1);
                assert_eq!(refit.whole() & which, which);
                assert!(inside <= 2 * SUBTREE as u32);
                made += inside as usize;
                // Its vertices are all that is read, and those that others have are there.
                places.clear();
                refit.places(which, before, &mut places);
                for &place in &places {
                    known[place as usize] = vertices[place as usize];
                    assert_eq!(refit.shared()[place as usize] & before, 0);
                }
                refit.open(which, &known, &mut pieced);
                let mut nodes_in = 0;
                for node in (0..tree.len() as u32).filter(|&node| refit.is_in(node, which)) {
                    nodes_in += 1;
                    assert_eq!(Nodes(&pieced).of(node), nodes.of(node), "{node} of {count}");
                    let below = NodeVolumes::below(Nodes(&pieced), &tree, node);
                    assert_eq!(below, tree.below(node));
                }
                assert_eq!(nodes_in, inside);
                assert!(refit.is_in(refit.root(at as u32), which));
            }
            assert_eq!(made + refit.shape.above.len(), tree.len());
            if count > 300 {
                assert!(volumes != pieced);
            }
            let mut all = Vec::new();
            refit.places(refit.whole(), 0, &mut all);
            all.sort_unstable();
            let distinct: BTreeSet<u32> = (0..count).flat_map(corners).collect();
            assert!(all.into_iter().eq(distinct));
            refit.join(&mut pieced);
            assert_eq!(
                refit.whole().count_ones() as usize,
                refit.shape.subtrees.len()
            );
            assert_eq!(volumes, pieced);
        }
    }
}
