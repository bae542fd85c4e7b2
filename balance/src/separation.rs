//! Sharing the separation bounds of tiles among ranks.
//!
//! A separation bound proves that the cloth of a tile cannot touch itself, so that its tests are
//! left out. The cloth's charts are divided into tiles, and each rank makes the bounds of an even
//! share of them for all ranks.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use weft_partition::even_shares;

use crate::prices::Prices;

/// The largest number of ranks that share separation bounds. Every rank receives all of them, a
/// third of a byte for each vertex of the cloth, which takes 1.3 ns on myrinet-2000. Making them
/// takes some 40 ns for each vertex; without sharing, a rank makes those of its own part of the
/// cloth and once or twice as much around it. With more than some 60 ranks that is less than
/// receiving all.
pub const SEPARATION_SHARED_UP_TO: usize = 64;

/// A tile of the cloth's charts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tile {
    /// The number of triangles that touch it.
    pub triangles: u32,
    /// The tiles from which its separation bound needs cells as well: those to the right, above,
    /// and to the right above, or one of the first two, or none.
    pub beside: Vec<u32>,
}

/// The work of making the separation bounds of some tiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeparationWork {
    /// The number of triangles; one that touches two tiles counts twice.
    pub triangles: u64,
    /// The number of tiles.
    pub tiles: u64,
}

impl SeparationWork {
    /// The work for tiles with these numbers of triangles.
    #[must_use]
    pub fn of(triangles: &[u32]) -> Self {
        Self {
            triangles: triangles.iter().map(|&count| u64::from(count)).sum(),
            tiles: triangles.len() as u64,
        }
    }

    /// The work for all of these tiles.
    #[must_use]
    pub fn of_all(tiles: &[Tile]) -> Self {
        Self::of(&tiles.iter().map(|tile| tile.triangles).collect::<Vec<_>>())
    }

    /// The price in ns.
    #[must_use]
    pub fn cost(&self, prices: &Prices) -> f64 {
        prices.gradient * self.triangles as f64 + prices.separation * self.tiles as f64
    }
}

/// Cells of a tile that one rank needs for a separation bound and another rank has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beside {
    /// The rank that has them.
    pub from: usize,
    /// The rank that needs them.
    pub to: usize,
    /// The tile whose bound is made.
    pub tile: usize,
    /// The number of the tile with the cells among those beside that one.
    pub which: usize,
}

/// The cells that ranks send each other, by receiver and tile. `beside` has the tiles beside each
/// tile, and `shares` is made by [`separation_shares`].
pub fn cells_sent<'a>(
    beside: impl Fn(usize) -> &'a [u32],
    shares: &[Range<usize>],
) -> impl Iterator<Item = Beside> {
    let owner = |tile: u32| shares.partition_point(|share| share.end <= tile as usize);
    let tiles = (0..)
        .zip(shares)
        .flat_map(|(to, share)| share.clone().map(move |tile| (to, tile)));
    tiles.flat_map(move |(to, tile)| {
        let others = beside(tile).iter().enumerate();
        let needed = others.map(move |(which, &other)| Beside {
            from: owner(other),
            to,
            tile,
            which,
        });
        needed.filter(|cells| cells.from != cells.to)
    })
}

/// The tiles whose bounds each rank makes for all, from the number of triangles of each tile. All
/// are empty if every rank makes what it needs.
#[must_use]
pub fn separation_shares(triangles: &[u32], ranks: usize) -> Vec<Range<usize>> {
    /// The cost of a tile besides its triangles, as a number of triangles.
    const TILE: u32 = 110;
    let shared = ranks <= SEPARATION_SHARED_UP_TO;
    let costs = triangles
        .iter()
        .map(|&triangles| triangles.saturating_add(TILE));
    let costs: Vec<u32> = if shared { costs.collect() } else { Vec::new() };
    even_shares(&costs, ranks)
}

/// The prices on this many ranks. If separation bounds are not shared, each rank pays for those of
/// the patches that it tests, by vertices; `around` is the number of vertices of all patches.
#[must_use]
pub fn prices_on(tiles: &[Tile], around: u64, prices: &Prices, ranks: usize) -> Prices {
    let mut prices = *prices;
    if ranks > SEPARATION_SHARED_UP_TO && around > 0 {
        let all = SeparationWork::of_all(tiles);
        prices.touched += all.cost(&prices) / around as f64;
    }
    prices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_come_from_the_rank_that_makes_the_tile_beside() {
        // Four tiles in a square and one by itself; the second rank has none.
        let beside: [&[u32]; 5] = [&[1, 2, 3], &[3], &[3], &[], &[]];
        let shares = [0..1, 1..1, 1..3, 3..5];
        let sent: Vec<[usize; 4]> = cells_sent(|tile| beside[tile], &shares)
            .map(|cells| [cells.from, cells.to, cells.tile, cells.which])
            .collect();
        let expected = [
            [2, 0, 0, 0],
            [2, 0, 0, 1],
            [3, 0, 0, 2],
            [3, 2, 1, 0],
            [3, 2, 2, 0],
        ];
        assert_eq!(sent, expected);
        // Nothing is sent if every rank makes what it needs.
        let unshared = separation_shares(&[7; 5], SEPARATION_SHARED_UP_TO + 1);
        assert_eq!(cells_sent(|tile| beside[tile], &unshared).count(), 0);
    }
}
