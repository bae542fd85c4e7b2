//! Culling in a step: which tests of cloth against itself are left out, by the separation bounds of
//! the step's geometry.
//!
//! Gradients and bounds of a tile are made when a test first asks for them, or before by the rank
//! whose share of the tiles it is in; ranks that take them from others get the same bits.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::atomic::Ordering;

use crate::collide::bvh::traversal::{Asked, Cull};
use crate::collide::cloth::Culling;
use crate::collide::cull::charts::{self, BLOCKS, Together};
use crate::collide::cull::rest_adjacent::{RestAdjacent, RestAdjacentPairs};
use crate::collide::cull::separation_bound::{
    self, BESIDE, Beside, Ends, Gradients, SeparationBound,
};
use crate::collide::query::snapshot::{ROUNDING, Snapshot};
use crate::collide::query::volumes::{KEPT_APART, MAY_MEET, UNKNOWN};
use crate::simd::InstructionSet;

thread_local! {
    /// Room for the vertices of a tile.
    static ENDS: RefCell<Vec<Ends>> = const { RefCell::new(Vec::new()) };
}

/// Culling by separation bounds, for the nodes of two trees.
#[derive(Clone, Copy, Debug)]
pub(in crate::collide) struct BySeparation<'a> {
    snap: &'a Snapshot<'a>,
    culling: &'a Culling,
    enough: SeparationBound,
    together: Together<'a>,
}

impl Cull for BySeparation<'_> {
    #[inline(always)]
    fn prefetch(&self, set: impl InstructionSet, a: u32, b: u32) {
        self.together.prefetch(set, a, b);
    }

    /// Nodes that do not touch at rest are far: cloth with a separation bound keeps their volumes
    /// apart too.
    #[inline(always)]
    fn ask(&self, a: u32, b: u32) -> Asked {
        let around = self.together.around(a, b);
        let (tile, block) = around.block;
        // The processor cannot foresee whether a block covers both. There is one to look at in any
        // case.
        let known = &self.snap.volumes.kept_apart[tile as usize * BLOCKS + block as usize];
        let mut kept_apart = known.load(Ordering::Relaxed);
        if (kept_apart == UNKNOWN) & around.covers {
            kept_apart = self.snap.look(self.culling, around.block, self.enough);
        }
        Asked {
            far: around.far,
            apart: around.touch & around.covers & (kept_apart == KEPT_APART),
        }
    }
}

impl<'a> Snapshot<'a> {
    /// The culling for nodes of two patches' trees, or of one and the same. It says whether all
    /// below two nodes stays out of reach but for rest-adjacent pairs. There is none if it never
    /// does.
    pub(in crate::collide) fn by_separation(&self, p: u32, q: u32) -> Option<BySeparation<'_>> {
        let (culling, enough) = self.culling?;
        let places = [p, q].map(|p| &culling.places[p as usize]);
        let together = Together::new(&culling.charts, places, culling.margin)?;
        Some(BySeparation {
            snap: self,
            culling,
            enough,
            together,
        })
    }

    /// Notes for all blocks of a tile whether their bounds are large enough, and answers it for
    /// one.
    #[cold]
    fn look(&self, culling: &Culling, (tile, block): (u32, u32), enough: SeparationBound) -> u8 {
        let kept_apart =
            |bound: SeparationBound| if bound > enough { KEPT_APART } else { MAY_MEET };
        let all = self.tile_bounds(culling, tile);
        let known = &self.volumes.kept_apart[tile as usize * BLOCKS..];
        for (known, &bound) in known.iter().zip(all) {
            known.store(kept_apart(bound), Ordering::Relaxed);
        }
        kept_apart(all[block as usize])
    }

    /// The features that are close at rest already, of a cloth with culling.
    pub(in crate::collide) fn rest_adjacent(&self) -> Option<&'a RestAdjacent> {
        self.culling.map(|(culling, _)| &culling.rest_adjacent)
    }

    /// The rest-adjacent pairs of a patch.
    pub(in crate::collide) fn rest_adjacent_pairs(
        &self,
        patch: u32,
    ) -> Option<RestAdjacentPairs<'a>> {
        self.rest_adjacent()
            .map(|rest_adjacent| rest_adjacent.of_patch(patch))
    }

    /// The square of the distance at rest, in m², from which on features in a block stay out of
    /// reach.
    pub(in crate::collide) fn apart_from(&self, block: (u32, u32)) -> f32 {
        let Some((culling, _)) = self.culling.filter(|_| block.0 != charts::NONE) else {
            return f32::INFINITY;
        };
        let bound = separation_bound::square(self.separation_bound(culling, block));
        if bound > 0.0 {
            (self.reach * self.reach * (1.0 + ROUNDING) / bound) as f32
        } else {
            f32::INFINITY
        }
    }

    /// The separation bound of a block.
    #[inline]
    fn separation_bound(&self, culling: &Culling, (tile, block): (u32, u32)) -> SeparationBound {
        self.tile_bounds(culling, tile)[block as usize]
    }

    /// The separation bounds of all blocks of a tile.
    #[inline]
    fn tile_bounds(&self, culling: &Culling, tile: u32) -> &[SeparationBound] {
        self.volumes.separation_bounds[tile as usize].of(|out| {
            let tiles = culling.charts.tiles();
            let own = &tiles[tile as usize];
            let all = [tile, own.next[0], own.next[1], own.next[2]];
            let mut all = all.into_iter().filter(|&tile| tile != charts::NONE);
            if !all.all(|tile| self.knows(&tiles[tile as usize].vertices)) {
                out.clear();
                out.resize(BLOCKS, separation_bound::NO_BOUND);
                return;
            }
            let next = [0, 1, 2].map(|side| {
                (own.next[side] != charts::NONE).then(|| self.beside(culling, tile, side))
            });
            separation_bound::bounds_of_tile(own, self.gradients(culling, tile), next, out);
        })
    }

    /// The gradients of the cells beside a tile, on a side on which there is another.
    fn beside(&self, culling: &Culling, tile: u32, side: usize) -> Beside<'_> {
        match self.volumes.beside[tile as usize][side].made() {
            Some(cells) => Beside::Picked(cells),
            None => {
                let next = culling.charts.tiles()[tile as usize].next[side];
                Beside::Tile(self.gradients(culling, next))
            }
        }
    }

    /// The bounds of gradients beside some of the [tiles](crate::collide::ClothSurface::tiles), as
    /// numbers. Each is given by the tile and by which of [those beside
    /// it](charts::TileWork::beside) it is.
    pub(crate) fn cells_beside(&self, all: impl Iterator<Item = (usize, usize)>) -> Vec<f32> {
        let Some((culling, _)) = self.culling else {
            return Vec::new();
        };
        let (mut numbers, mut room) = (Vec::new(), Vec::new());
        for (tile, which) in all {
            let (tile, side) = culling.charts.side(tile, which);
            let cells = self.beside(culling, tile, side).picked(side, &mut room);
            numbers.extend(cells.iter().flat_map(Gradients::numbers));
        }
        numbers
    }

    /// Takes bounds of gradients beside some of the tiles from the rank that has made them of the
    /// same positions. Returns whether there are as many as these tiles have.
    pub(crate) fn take_cells_beside(
        &self,
        all: impl Iterator<Item = (usize, usize)>,
        numbers: &[f32],
    ) -> bool {
        let (numbers, rest) = numbers.as_chunks();
        let mut cells = numbers
            .iter()
            .map(|&numbers| Gradients::from_numbers(numbers));
        let Some((culling, _)) = self.culling else {
            return numbers.is_empty() && rest.is_empty();
        };
        for (tile, which) in all {
            let (tile, side) = culling.charts.side(tile, which);
            if cells.len() < BESIDE[side] {
                return false;
            }
            self.volumes.beside[tile as usize][side].of(|out| {
                out.clear();
                out.extend(cells.by_ref().take(BESIDE[side]));
            });
        }
        cells.len() == 0 && rest.is_empty()
    }

    /// Makes the gradients of some of the tiles, without those beside them.
    pub(crate) fn make_gradients(&self, tiles: Range<usize>) {
        if let Some((culling, _)) = self.culling {
            for &tile in &culling.charts.order()[tiles] {
                self.gradients(culling, tile);
            }
        }
    }

    /// Makes the separation bounds of some of the tiles, which tests ask for later.
    pub(crate) fn make_separation_bounds(&self, tiles: Range<usize>) {
        if let Some((culling, _)) = self.culling {
            for &tile in &culling.charts.order()[tiles] {
                self.tile_bounds(culling, tile);
            }
        }
    }

    /// The separation bounds of some of the [tiles](crate::collide::ClothSurface::tiles), one after
    /// the other.
    pub(crate) fn separation_bounds_of(&self, tiles: Range<usize>) -> Vec<SeparationBound> {
        let Some((culling, _)) = self.culling else {
            return Vec::new();
        };
        let of = |&tile: &u32| self.tile_bounds(culling, tile);
        let all = culling.charts.order()[tiles].iter().flat_map(of);
        all.copied().collect()
    }

    /// The number of bytes of the separation bounds of some of the tiles.
    pub(crate) fn separation_bound_bytes(&self, tiles: Range<usize>) -> usize {
        self.culling
            .map_or(0, |_| tiles.len() * BLOCKS * size_of::<SeparationBound>())
    }

    /// Takes the separation bounds of some of the tiles from the rank that has made them of the
    /// same positions. Returns whether there are as many as these tiles have.
    pub(crate) fn take_separation_bounds(
        &self,
        tiles: Range<usize>,
        bounds: &[SeparationBound],
    ) -> bool {
        let Some((culling, _)) = self.culling else {
            return bounds.is_empty();
        };
        let tiles = &culling.charts.order()[tiles];
        if bounds.len() != tiles.len() * BLOCKS {
            return false;
        }
        for (&tile, blocks) in tiles.iter().zip(bounds.chunks_exact(BLOCKS)) {
            self.volumes.separation_bounds[tile as usize].of(|out| {
                out.clear();
                out.extend_from_slice(blocks);
            });
        }
        true
    }

    /// The number of tiles whose gradients have been made.
    #[cfg(test)]
    pub(in crate::collide) fn gradients_made(&self) -> usize {
        self.volumes
            .gradients
            .iter()
            .filter(|made| made.is_made())
            .count()
    }

    fn gradients(&self, culling: &Culling, tile: u32) -> &[Gradients] {
        self.volumes.gradients[tile as usize].of(|out| {
            let of = &culling.charts.tiles()[tile as usize];
            let motion = (self.x, self.v, self.dt);
            ENDS.with_borrow_mut(|ends| separation_bound::gradients(of, motion, ends, out));
        })
    }
}
