//! Cloth as collisions see it: one tree per patch, and what leaving out tests needs to know of the
//! rest shape.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use glam::DVec3;

use crate::archive::{Archive, ArchiveFault, Array, Loader, Saver};
use crate::collide::bvh::refit::{Refit, Shape};
use crate::collide::bvh::tree::{Bvh, Node};
use crate::collide::cull::charts::{Charts, Margin, Places, TileWork};
use crate::collide::cull::rest_adjacent::RestAdjacent;
use crate::collide::passing::Passing;
use crate::collide::surface::Surface;
use crate::disjoint_sets::DisjointSets;
use crate::equal_runs::EqualRuns;
use crate::heap_bytes::{HeapBytes, counts_heap};
use crate::parallel;

/// Cloth as collisions see it: one tree per patch.
#[derive(Clone, Debug)]
pub struct ClothSurface {
    surface: Arc<Surface>,
    rest: Arc<Array<DVec3>>,
    /// See [`Self::with_shortening`]; empty where it is 1 everywhere.
    shortening: Array<f64>,
    components: Components,
    patches: Vec<Bvh>,
    /// The vertices of the triangles of each patch, ascending.
    patch_vertices: Vec<Array<u32>>,
    /// The lists by which the trees are refitted, from volumes of these vertices, and the parts of
    /// them that trees with as many triangles share.
    refits: Vec<Refit>,
    shapes: Vec<Arc<Shape>>,
    /// A patch, and the place there, of each vertex of a triangle.
    slots: Slots,
    culling: Option<Culling>,
    /// The cloth that passes through itself to which each patch belongs; empty if there is none.
    passing: Vec<Option<u32>>,
}

/// The corners of triangles and the positions at rest are counted with the cloth's model.
impl HeapBytes for ClothSurface {
    fn heap_bytes(&self) -> usize {
        let Self {
            surface,
            rest: _,
            shortening,
            components,
            patches,
            patch_vertices,
            refits,
            shapes,
            slots,
            culling,
            passing,
        } = self;
        let lists = patch_vertices.heap_bytes() + slots.heap_bytes();
        let own_refits: usize = refits.iter().map(Refit::bytes_without_shape).sum();
        let of_vertices = shortening.heap_bytes() + components.heap_bytes() + passing.heap_bytes();
        surface.heap_bytes() - surface.bytes_of_triangles()
            + lists
            + of_vertices
            + patches.heap_bytes()
            + refits.capacity() * size_of::<Refit>()
            + own_refits
            + shapes.heap_bytes()
            + culling.heap_bytes()
    }
}

/// The parts of the rest shape that leaving out tests needs.
#[derive(Clone, Debug)]
pub(in crate::collide) struct Culling {
    pub(in crate::collide) charts: Charts,
    pub(in crate::collide) rest_adjacent: RestAdjacent,
    /// The places of the nodes of each patch's tree.
    pub(in crate::collide) places: Vec<Places>,
    /// The work that the separation bounds of each tile take, in the order in which ranks share
    /// them.
    tiles: Vec<TileWork>,
    /// The distance at rest, in m, beyond which pairs are not rest-adjacent.
    pub(in crate::collide) distance: f64,
    /// The distance at rest in cells of a chart.
    pub(in crate::collide) margin: Margin,
}

counts_heap!(Culling: charts, rest_adjacent, places, tiles; without distance, margin);

/// Pairs are rest-adjacent if they are closer at rest than this times the reach.
const ADJACENT: f64 = 1.5;

impl ClothSurface {
    /// Keeps it in an archive, but for the corners of triangles and the positions at rest.
    pub(crate) fn save(&self, to: &mut Saver<'_>) -> io::Result<()> {
        let Self {
            surface,
            rest: _,
            shortening,
            components,
            patches,
            patch_vertices,
            refits,
            shapes,
            slots,
            culling,
            passing,
        } = self;
        surface.save_features(to)?;
        shortening.save(to)?;
        components.0.save(to)?;
        patches.save(to)?;
        patch_vertices.save(to)?;
        shapes.save(to)?;
        for refit in refits {
            refit.save_without_shape(to)?;
        }
        slots.save(to)?;
        passing.save(to)?;
        culling.is_some().save(to)?;
        let Some(culling) = culling else {
            return Ok(());
        };
        culling.charts.save(to)?;
        culling.rest_adjacent.save(to)?;
        culling.places.save(to)?;
        culling.distance.save(to)
    }

    /// Reads what [`save`](Self::save) has written, for these triangles and positions at rest.
    pub(crate) fn load(
        (triangles, rest): (Arc<Array<[u32; 3]>>, Arc<Array<DVec3>>),
        from: &mut Loader<'_>,
    ) -> Result<Self, ArchiveFault> {
        let surface = Surface::load_features(triangles, from)?;
        let (shortening, components) = (Array::load(from)?, Components(EqualRuns::load(from)?));
        let (patches, patch_vertices) = (Vec::<Bvh>::load(from)?, Vec::load(from)?);
        let shapes: Vec<Arc<Shape>> = Vec::load(from)?;
        // Ascending by the number of nodes.
        let shape_of = |tree: &Bvh| {
            let found = shapes.binary_search_by_key(&tree.len(), |shape| shape.len());
            let found = found.map_err(|_| ArchiveFault::OtherLayout)?;
            Ok::<_, ArchiveFault>(Arc::clone(&shapes[found]))
        };
        let refits = patches
            .iter()
            .map(|tree| Refit::load_with(shape_of(tree)?, from));
        let refits = refits.collect::<Result<Vec<_>, _>>()?;
        let (slots, passing) = (Slots::load(from)?, Vec::load(from)?);
        let culling = if bool::load(from)? {
            let charts = Charts::load(from)?;
            let (rest_adjacent, places) = (RestAdjacent::load(from)?, Vec::load(from)?);
            let distance = f64::load(from)?;
            Some(Culling {
                places,
                tiles: charts.work(),
                margin: charts.margin(distance),
                charts,
                rest_adjacent,
                distance,
            })
        } else {
            None
        };
        Ok(Self {
            surface: Arc::new(surface),
            rest,
            shortening,
            components,
            patches,
            patch_vertices,
            refits,
            shapes,
            slots,
            culling,
            passing,
        })
    }

    /// The bytes on the heap of the charts by which tests are left out.
    pub(crate) fn bytes_of_charts(&self) -> usize {
        self.culling.heap_bytes()
    }

    /// Sorts triangles into patches and builds a tree over each patch's.
    ///
    /// A triangle belongs to the patch of its lowest vertex. `rest` gives the position of each
    /// vertex in m in a shape that crosses nothing: that at rest, or, where this is another one
    /// ([`Self::with_shortening`]), that at the start; vertices in no triangle never collide.
    #[must_use]
    pub fn new(
        triangles: &[[u32; 3]],
        rest: &[DVec3],
        patches: usize,
        patch_of: impl Fn(u32) -> usize,
    ) -> Self {
        let (triangles, rest) = (triangles.to_vec(), rest.to_vec());
        let shared = (Arc::new(triangles.into()), Arc::new(rest.into()));
        Self::sharing(shared, patches, patch_of)
    }

    /// Does as [`Self::new`] for triangles and positions that are not copied.
    #[must_use]
    pub(crate) fn sharing(
        (triangles, rest): (Arc<Array<[u32; 3]>>, Arc<Array<DVec3>>),
        patches: usize,
        patch_of: impl Fn(u32) -> usize,
    ) -> Self {
        let mut own: Vec<Vec<u32>> = vec![Vec::new(); patches];
        for (index, t) in (0..).zip(triangles.iter()) {
            own[patch_of(t[0].min(t[1]).min(t[2]))].push(index);
        }
        let of_patch = |patch: usize| {
            let corners = own[patch].iter().flat_map(|&t| triangles[t as usize]);
            let mut vertices: Vec<u32> = corners.collect();
            vertices.sort_unstable();
            vertices.dedup();
            vertices.shrink_to_fit();
            let center = |t: u32| {
                let corners = triangles[t as usize].iter();
                corners.map(|&v| rest[v as usize]).sum::<DVec3>() / 3.0
            };
            let items = own[patch].iter().map(|&t| (t, center(t)));
            (vertices.into(), Bvh::build(items.collect()))
        };
        let (patch_vertices, patches): (Vec<Array<u32>>, Vec<Bvh>) =
            parallel::map(own.len(), of_patch).into_iter().unzip();
        drop(own);
        let mut slots = Slots::new(rest.len(), &patch_vertices);
        for (patch, vertices) in (0..).zip(&patch_vertices) {
            for (place, &vertex) in (0..).zip(vertices.iter()) {
                slots.put(vertex, (patch, place));
            }
        }
        let mut shapes = BTreeMap::new();
        for tree in &patches {
            let shape = shapes.entry(tree.len());
            shape.or_insert_with(|| Arc::new(Shape::new(tree)));
        }
        let refit = |patch: usize| {
            let (tree, vertices) = (&patches[patch], &patch_vertices[patch]);
            let place = |v: u32| vertices.partition_point(|&w| w < v) as u32;
            let places = |t: u32| triangles[t as usize].map(place);
            Refit::sharing(Arc::clone(&shapes[&tree.len()]), tree, places)
        };
        let (refits, (surface, components)) = parallel::join(
            || parallel::map(patches.len(), refit),
            || {
                let surface = || Surface::sharing(Arc::clone(&triangles), rest.len());
                parallel::join(surface, || Components::new(&triangles, rest.len()))
            },
        );
        Self {
            refits,
            shapes: shapes.into_values().collect(),
            patches,
            patch_vertices,
            slots,
            surface: Arc::new(surface),
            rest,
            components,
            shortening: Array::default(),
            culling: None,
            passing: Vec::new(),
        }
    }

    /// Lets features of some cloth pass through each other.
    #[must_use]
    pub fn letting(mut self, passing: Passing) -> Self {
        let all = |vertices: &Array<u32>| passing.cloth_of_all(vertices);
        self.passing = self.patch_vertices.iter().map(all).collect();
        self.surface = Arc::new(Arc::unwrap_or_clone(self.surface).letting(passing));
        self
    }

    /// Whether two patches, or a patch and itself, are of one cloth that passes through itself.
    pub(in crate::collide) fn lets(&self, one: usize, other: usize) -> bool {
        let of = |patch: usize| self.passing.get(patch).copied().flatten();
        of(one).is_some() && of(one) == of(other)
    }

    /// Makes distances at rest those in the positions that are known times the share of at most 1
    /// that each vertex has: by how much what is around it is shorter at rest than there.
    #[must_use]
    pub fn with_shortening(mut self, shortening: Vec<f64>) -> Self {
        debug_assert_eq!(shortening.len(), self.rest.len());
        self.shortening = shortening.into();
        self
    }

    /// The share by which the distance of features with these vertices is smaller at rest than in
    /// [`Self::rest`].
    pub(in crate::collide) fn shortening(&self, vertices: [u32; 4]) -> f64 {
        let share = |v: u32| self.shortening.get(v as usize).copied().unwrap_or(1.0);
        vertices.into_iter().map(share).fold(1.0, f64::min)
    }

    /// Prepares for leaving out tests of cloth that is smooth, for contacts within `reach` (m). The
    /// contacts are the same. Does nothing to a mesh with too many features that are as close at
    /// rest.
    #[must_use]
    pub fn with_culling(mut self, reach: f64) -> Self {
        let triangles_of = |tree: &Bvh| -> Vec<u32> {
            let mut triangles: Vec<u32> = leaves(tree).collect();
            triangles.sort_unstable();
            triangles
        };
        let triangles: Vec<Vec<u32>> = self.patches.iter().map(triangles_of).collect();
        let distance = ADJACENT * reach;
        let charts = Charts::new(&self.surface, &self.rest);
        let found = RestAdjacent::find(&self.surface, &charts, distance, &triangles);
        drop(triangles);
        let Some(found) = found else {
            return self;
        };
        let places = parallel::map(self.patches.len(), |patch| {
            charts.places(&self.patches[patch])
        });
        // Before the pairs are joined, which takes memory.
        let charts = charts.without_cells();
        self.culling = found.joined().map(|rest_adjacent| Culling {
            places,
            tiles: charts.work(),
            margin: charts.margin(distance),
            charts,
            rest_adjacent,
            distance,
        });
        self
    }

    /// The result of [`Self::with_culling`].
    pub(in crate::collide) fn culling(&self) -> Option<&Culling> {
        self.culling.as_ref()
    }

    /// The tiles of the cloth whose separation bounds leave out tests, in the order in which ranks
    /// share them; none without [`Self::with_culling`].
    pub(crate) fn tiles(&self) -> &[TileWork] {
        self.culling.as_ref().map_or(&[], |culling| &culling.tiles)
    }

    /// The pairs of patches with features that are so close at rest that they are always tested.
    /// The lower number is first, and each pair is there once.
    pub(crate) fn patches_near_at_rest(&self) -> Vec<[u32; 2]> {
        let Some(culling) = &self.culling else {
            return Vec::new();
        };
        let mut patch_of = vec![0; self.surface.triangles().len()];
        for (patch, tree) in (0..).zip(&self.patches) {
            leaves(tree).for_each(|triangle| patch_of[triangle as usize] = patch);
        }
        let mut all = Vec::new();
        for patch in 0..self.patches.len() as u32 {
            let others = culling.rest_adjacent.others(patch, &self.surface);
            let pairs = others.map(|triangle| patch_of[triangle as usize]);
            all.extend(pairs.map(|other: u32| [patch.min(other), patch.max(other)]));
            all.sort_unstable();
            all.dedup();
        }
        all.retain(|[one, other]| one != other);
        all
    }

    /// Triangles and features.
    #[must_use]
    pub fn surface(&self) -> &Surface {
        &self.surface
    }

    /// Triangles and features, to be shared.
    pub(crate) fn shared_surface(&self) -> Arc<Surface> {
        Arc::clone(&self.surface)
    }

    /// Rest positions in m.
    #[must_use]
    pub fn rest(&self) -> &[DVec3] {
        &self.rest
    }

    /// The lowest vertex of the connected component that a vertex belongs to.
    pub(crate) fn component(&self, vertex: u32) -> u32 {
        self.components.of(vertex)
    }

    /// Whether two vertices belong to one connected component: only then their distance at rest
    /// means anything.
    #[must_use]
    pub(in crate::collide) fn in_one_component(&self, a: u32, b: u32) -> bool {
        self.components.are_one(a, b)
    }

    /// One tree per patch.
    #[must_use]
    pub fn patches(&self) -> &[Bvh] {
        &self.patches
    }

    /// The vertices of the triangles of each patch, ascending.
    pub(crate) fn patch_vertices(&self) -> &[Array<u32>] {
        &self.patch_vertices
    }

    /// The lists by which a patch's tree is refitted, from volumes of the vertices of the patch.
    #[inline]
    pub(in crate::collide) fn refit(&self, patch: u32) -> &Refit {
        &self.refits[patch as usize]
    }

    /// A patch that has a triangle at the vertex, and the vertex's place among the vertices there.
    #[inline]
    pub(crate) fn slot(&self, vertex: u32) -> (u32, u32) {
        self.slots.of(vertex)
    }
}

/// A patch, and a place there, for each vertex. Both have one short number unless there are too
/// many.
#[derive(Clone, Debug)]
enum Slots {
    /// The place has this number of bits, and the patch the others.
    Short(u32, Array<u32>),
    Long(Array<[u32; 2]>),
}

impl HeapBytes for Slots {
    fn heap_bytes(&self) -> usize {
        match self {
            Self::Short(_, all) => all.heap_bytes(),
            Self::Long(all) => all.heap_bytes(),
        }
    }
}

impl Archive for Slots {
    fn save(&self, to: &mut Saver<'_>) -> io::Result<()> {
        match self {
            Self::Short(bits, all) => {
                bits.save(to)?;
                all.save(to)
            }
            Self::Long(all) => {
                u32::MAX.save(to)?;
                all.save(to)
            }
        }
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, ArchiveFault> {
        Ok(match u32::load(from)? {
            u32::MAX => Self::Long(Array::load(from)?),
            bits => Self::Short(bits, Array::load(from)?),
        })
    }
}

impl Slots {
    fn new(vertices: usize, patches: &[Array<u32>]) -> Self {
        let most = patches.iter().map(|patch| patch.len()).max().unwrap_or(0);
        let bits = usize::BITS - most.leading_zeros();
        if bits < u32::BITS && patches.len() <= 1 << (u32::BITS - bits) {
            Self::Short(bits, vec![0; vertices].into())
        } else {
            Self::Long(vec![[0; 2]; vertices].into())
        }
    }

    fn put(&mut self, vertex: u32, (patch, place): (u32, u32)) {
        match self {
            Self::Short(bits, all) => all.to_mut()[vertex as usize] = patch << *bits | place,
            Self::Long(all) => all.to_mut()[vertex as usize] = [patch, place],
        }
    }

    #[inline]
    fn of(&self, vertex: u32) -> (u32, u32) {
        match self {
            Self::Short(bits, all) => {
                let both = all[vertex as usize];
                (both >> bits, both & ((1 << bits) - 1))
            }
            Self::Long(all) => all[vertex as usize].into(),
        }
    }
}

/// The triangles of a tree.
fn leaves(tree: &Bvh) -> impl Iterator<Item = u32> + '_ {
    (0..tree.len() as u32).filter_map(|node| match tree.node(node) {
        Node::Leaf(triangle) => Some(triangle),
        Node::Inner(_) => None,
    })
}

/// The connected components of cloth: the lowest vertex of that of each vertex.
#[derive(Clone, Debug)]
struct Components(EqualRuns<u32>);

impl HeapBytes for Components {
    fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }
}

impl Components {
    fn new(triangles: &[[u32; 3]], vertices: usize) -> Self {
        let mut sets = DisjointSets::of_triangles(triangles, vertices);
        Self((0..vertices as u32).map(|v| sets.least(v)).collect())
    }

    /// The lowest vertex of the component of a vertex.
    fn of(&self, vertex: u32) -> u32 {
        self.0.at(vertex)
    }

    #[inline]
    fn are_one(&self, a: u32, b: u32) -> bool {
        self.0.is_one() || self.of(a) == self.of(b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_told_apart() {
        let two = ClothSurface::new(
            &[[0, 1, 2], [5, 4, 3], [4, 5, 6]],
            &[DVec3::ZERO; 7],
            1,
            |_| 0,
        );
        assert!(two.in_one_component(0, 2) && two.in_one_component(3, 6));
        assert!(!two.in_one_component(2, 3));
        let all: Vec<u32> = (0..7).map(|v| two.component(v)).collect();
        assert_eq!(all, [0, 0, 0, 3, 3, 3, 3]);
    }
}
