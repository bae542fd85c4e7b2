//! The firmness of tiles, which ranks share: who makes that of which, and what that takes.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use weft_partition::even_shares;

use crate::prices::Prices;

/// Most ranks that share the firmness of tiles. Every rank takes all of it, a third of a byte for each vertex of the cloth, 1.3 ns of
/// myrinet-2000. Making it takes some 40 ns for each vertex, and without sharing a rank makes its own part of the cloth and
/// about as much again, or twice as much, around it: from some 60 ranks on that is less than taking all.
pub const SEPARATION_SHARED_UP_TO: usize = 64;

/// A tile of the cloth's charts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tile {
    /// Triangles that touch it.
    pub triangles: u32,
    /// The tiles of which its firmness needs cells too: to the right, above, and right above, or one of the first two, or none.
    pub beside: Vec<u32>,
}

/// What some tiles' firmness takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeparationWork {
    /// Triangles; one that touches two tiles counts twice.
    pub triangles: u64,
    /// Tiles.
    pub tiles: u64,
}

impl SeparationWork {
    /// That of tiles with so many triangles each.
    #[must_use]
    pub fn of(triangles: &[u32]) -> Self {
        Self {
            triangles: triangles.iter().map(|&count| u64::from(count)).sum(),
            tiles: triangles.len() as u64,
        }
    }

    /// That of all tiles of a record.
    #[must_use]
    pub fn of_all(tiles: &[Tile]) -> Self {
        Self::of(&tiles.iter().map(|tile| tile.triangles).collect::<Vec<_>>())
    }

    /// Of both parts, in ns: gradients, then, with cells of tiles beside these, firmness.
    #[must_use]
    pub fn parts(&self, prices: &Prices) -> [f64; 2] {
        [
            prices.gradient * self.triangles as f64,
            prices.separation * self.tiles as f64,
        ]
    }

    /// In ns.
    #[must_use]
    pub fn cost(&self, prices: &Prices) -> f64 {
        self.parts(prices).iter().sum()
    }
}

/// Cells that a rank needs to make firmness and another has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beside {
    /// The rank that has them.
    pub from: usize,
    /// The rank that needs them.
    pub to: usize,
    /// The tile whose firmness it makes.
    pub tile: usize,
    /// Which of the tiles beside that one they are of.
    pub which: usize,
}

/// The cells that ranks send each other, by receiver and tile, from the tiles beside each and [`separation_shares`].
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

/// The tiles that each rank makes for all, from how many triangles each has; none if every rank makes what it needs.
#[must_use]
pub fn separation_shares(triangles: &[u32], ranks: usize) -> Vec<Range<usize>> {
    /// What a tile costs besides its triangles, as so many of these.
    const TILE: u32 = 110;
    let shared = ranks <= SEPARATION_SHARED_UP_TO;
    let costs = triangles
        .iter()
        .map(|&triangles| triangles.saturating_add(TILE));
    let costs: Vec<u32> = if shared { costs.collect() } else { Vec::new() };
    even_shares(&costs, ranks)
}

/// Prices on so many ranks: where firmness is not shared, each pays for that of the patches that it tests, by
/// their vertices, of which there are so many `around` all patches.
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
    fn cells_come_from_whoever_makes_the_tile_beside() {
        // Two by two tiles and one by itself; a rank without any.
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
        // Nobody sends what nobody makes for others.
        let unshared = separation_shares(&[7; 5], SEPARATION_SHARED_UP_TO + 1);
        assert_eq!(cells_sent(|tile| beside[tile], &unshared).count(), 0);
    }
}
