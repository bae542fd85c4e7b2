//! Charts: the rest shape laid out in planes, under a grid of cells.
//!
//! A chart is a connected set of triangles whose rest normals differ little from the first one's,
//! projected along it: a flat cloth is one chart, a tube a few. Deformation gradients are taken
//! with respect to it. A cell is about as large as eight triangles. There are cells of several
//! *levels*, those of a level twice as wide as those of the level below. A *block* is two by two
//! cells of one level, so blocks overlap, and every rectangle is covered by a block that is hardly
//! more than twice as wide.
//!
//! A block is *whole* if the chart's triangles fill a convex part of it, and cover it only once:
//! any two points there are joined by a segment within the chart. That is all that
//! [`separation_bound`](crate::collide::cull::separation_bound) asks of the rest shape.

use std::io;

use bytemuck::{Pod, Zeroable};
use glam::{DVec2, DVec3};

use crate::archive::{Archive, ArchiveFault, Array, Loader, Saver, archives};
use crate::collide::bvh::tree::{Bvh, Node};
use crate::collide::surface::{NO_FACE, Surface};
use crate::heap_bytes::{HeapBytes, counts_heap, owns_no_heap};
use crate::parallel;
use crate::simd::InstructionSet;

/// The number of levels of cells; a block has from 2 to 16 of the smallest cells along a side.
pub(in crate::collide) const LEVELS: u32 = 4;
/// The number of cells along the side of a tile, the part of a chart that is computed at once: one
/// cell of the highest level.
pub(in crate::collide) const TILE: u32 = 1 << (LEVELS - 1);
/// The number of blocks, of all levels, whose lowest cell lies in a tile.
pub(in crate::collide) const BLOCKS: usize = first_of_level(LEVELS);
/// The number that stands for no chart, block or tile.
pub(in crate::collide) const NONE: u32 = u32::MAX;

/// The most cells along a side of a chart: with any margin their numbers have 15 bits.
const MOST_CELLS: f64 = 32_000.0;
/// The width of a cell for triangles of area 1. Smaller cells would hardly leave out more tests,
/// because the nodes that are compared are a few triangles wide at least.
const CELL: f64 = 2.828_427_124_746_190_3;
/// The cosine of the widest angle between normals of a chart.
const STEEP: f64 = 0.9;
/// The share of a cell's width or area that counts as nothing.
const NOTHING: f64 = 1e-9;

/// The place at which the cells and blocks of a level begin among those of a tile.
pub(in crate::collide) const fn first_of_level(level: u32) -> usize {
    let (mut first, mut k) = (0, 0);
    while k < level {
        first += ((TILE >> k) * (TILE >> k)) as usize;
        k += 1;
    }
    first
}

/// The place at which the blocks of each level begin among those of a tile; for a level that does
/// not exist, the last block.
const FIRST: [u32; 8] = {
    let mut first = [BLOCKS as u32 - 1; 8];
    let mut level = 0;
    while level < LEVELS {
        first[level as usize] = first_of_level(level) as u32;
        level += 1;
    }
    first
};

/// The lowest level whose cells are at least half as wide as a span, so that two of them may cover
/// it; [`LEVELS`], which is no level, for a span that is too wide for all.
const HALF: [u32; 2 * TILE as usize + 1] = {
    let mut half = [0; 2 * TILE as usize + 1];
    let mut span = 3;
    while span < 2 * TILE {
        half[span as usize] = (span - 1).ilog2();
        span += 1;
    }
    half[span as usize] = LEVELS;
    half
};

/// The cells of a chart that the bounding rectangle of something touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::collide) struct Place {
    chart: u32,
    low: [u16; 2],
    high: [u16; 2],
}

owns_no_heap!(Place);

impl Place {
    /// The place of what lies in no chart.
    pub(in crate::collide) const NOWHERE: Self = Self {
        chart: NONE,
        low: [u16::MAX; 2],
        high: [0; 2],
    };

    /// The cells that both touch together.
    #[inline(always)]
    pub(in crate::collide) fn join(self, other: Self) -> Self {
        if self.chart != other.chart {
            return Self::NOWHERE;
        }
        Self {
            chart: self.chart,
            low: [0, 1].map(|k| self.low[k].min(other.low[k])),
            high: [0, 1].map(|k| self.high[k].max(other.high[k])),
        }
    }

    /// The place grown by this many cells on all sides.
    fn grown(self, by: u16, chart: &Chart) -> Self {
        Self {
            chart: self.chart,
            low: self.low.map(|low| low.saturating_sub(by)),
            high: [0, 1].map(|k| {
                self.high[k]
                    .saturating_add(by)
                    .min((chart.cells[k] - 1) as u16)
            }),
        }
    }
}

/// A place but for its chart: the numbers of the lowest and of the highest cell, x before y, in 15
/// bits each with a bit between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
struct Spot(u64);

owns_no_heap!(Spot);

impl Spot {
    /// The spot of what touches no cell.
    const NOWHERE: Self = Self(0x7fff_7fff);
    /// The bits between the numbers.
    const BETWEEN: u64 = 0x8000_8000_8000_8000;

    fn new(place: Place) -> Self {
        let pair = |[x, y]: [u16; 2]| u64::from(x) | u64::from(y) << 16;
        if place.chart == NONE {
            Self::NOWHERE
        } else {
            Self(pair(place.low) | pair(place.high) << 32)
        }
    }

    /// The lowest and the highest cell.
    #[inline(always)]
    fn ends(self) -> [[u16; 2]; 2] {
        [0, 32].map(|at| [(self.0 >> at) as u16, (self.0 >> (at + 16)) as u16])
    }

    /// The spot of both together, if they lie in one chart.
    #[inline(always)]
    fn join(self, other: Self) -> Self {
        // All four numbers are compared at once: where this one's is not the lesser, the bit before
        // it stays, and becomes all bits of the number.
        let at_least = ((self.0 | Self::BETWEEN) - other.0) & Self::BETWEEN;
        let at_least = (at_least >> 15) * 0x7fff;
        let lesser = (other.0 & at_least) | (self.0 & !at_least);
        let greater = (self.0 & at_least) | (other.0 & !at_least);
        Self((lesser & 0xffff_ffff) | (greater & !0xffff_ffff))
    }
}

/// The number of cells by which things are grown to see whether they touch, in each of four
/// numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::collide) struct Margin(u64);

impl Margin {
    /// The most.
    const MOST: f64 = 255.0;
}

/// The places of the nodes of a tree.
#[derive(Clone, Debug, Default)]
pub(in crate::collide) struct Places {
    spots: Array<Spot>,
    /// The chart of all nodes, if all lie in one; otherwise those of each.
    chart: Option<u32>,
    charts: Array<u32>,
}

counts_heap!(Places: spots, charts, chart);
archives!(Places: spots, chart, charts);

impl Places {
    /// The chart of a node.
    fn chart_of(&self, node: u32) -> u32 {
        self.chart.unwrap_or_else(|| self.charts[node as usize])
    }
}

/// The places of nodes of two trees together.
#[derive(Clone, Copy, Debug)]
pub(in crate::collide) struct Together<'a> {
    charts: &'a Charts,
    /// The chart of all nodes, if all lie in one.
    chart: Option<&'a Chart>,
    one: &'a Places,
    two: &'a Places,
    margin: Margin,
}

/// The block around two nodes.
#[derive(Clone, Copy, Debug)]
pub(in crate::collide) struct Around {
    /// Whether they have a cell in common once one is grown. Nothing has one in common with a node
    /// that lies in several charts.
    pub(in crate::collide) touch: bool,
    /// Whether it is known that no node below one of the two touches one below the other. Nothing
    /// is known of nodes that lie in several charts.
    pub(in crate::collide) far: bool,
    /// The smallest block that covers both, as its tile and its number there.
    pub(in crate::collide) block: (u32, u32),
    /// Whether there is such a block; otherwise another stands for it.
    pub(in crate::collide) covers: bool,
}

impl<'a> Together<'a> {
    /// The places of two trees together. `None` if no node of one touches one of the other, or
    /// there is no chart. Nothing is known of trees over more than one chart.
    pub(in crate::collide) fn new(
        charts: &'a Charts,
        [one, two]: [&'a Places; 2],
        margin: Margin,
    ) -> Option<Self> {
        if one.spots.is_empty() || two.spots.is_empty() {
            return None;
        }
        let roots = [one, two].map(|of| of.chart_of(0));
        let chart = one.chart.filter(|_| one.chart == two.chart);
        let together = Self {
            charts,
            chart: chart.map(|chart| &charts.charts[chart as usize]),
            one,
            two,
            margin,
        };
        let may_touch =
            roots.contains(&NONE) || (roots[0] == roots[1] && together.around(0, 0).touch);
        (may_touch && !charts.tiles.is_empty()).then_some(together)
    }

    /// Asks memory for the places of a node of each.
    #[inline(always)]
    pub(in crate::collide) fn prefetch(&self, set: impl InstructionSet, node: u32, other: u32) {
        set.prefetch_value(&self.one.spots[node as usize]);
        set.prefetch_value(&self.two.spots[other as usize]);
    }

    /// The block around a node of each.
    ///
    /// # Panics
    /// There are fewer nodes than that.
    #[inline(always)]
    pub(in crate::collide) fn around(&self, node: u32, other: u32) -> Around {
        let (a, b) = (
            self.one.spots[node as usize],
            self.two.spots[other as usize],
        );
        let (low, high) = (
            (b.0 & 0xffff_ffff) | (a.0 << 32),
            (b.0 & !0xffff_ffff) | (a.0 >> 32),
        );
        // All four differences are taken at once: none borrows from the next.
        let touch = (high + self.margin.0 + Spot::BETWEEN - low) & Spot::BETWEEN == Spot::BETWEEN;
        let (block, covers) = match self.chart {
            Some(chart) => chart.block(a.join(b)),
            None => self.elsewhere(node, other),
        };
        Around {
            touch,
            far: !touch & (a != Spot::NOWHERE) & (b != Spot::NOWHERE),
            block,
            covers,
        }
    }

    /// The block around two nodes, and whether there is one, where charts have to be looked up.
    #[cold]
    fn elsewhere(&self, node: u32, other: u32) -> ((u32, u32), bool) {
        let place = |of: &Places, node: u32| {
            let [low, high] = of.spots[node as usize].ends();
            let chart = of.chart_of(node);
            Place { chart, low, high }
        };
        let block = (self.charts).block(place(self.one, node).join(place(self.two, other)));
        (block.unwrap_or((0, 0)), block.is_some())
    }
}

/// The triangles that touch each cell of a chart, ascending.
#[derive(Clone, Debug)]
struct InCells {
    starts: Vec<u32>,
    triangles: Vec<u32>,
}

counts_heap!(InCells: starts, triangles);

impl InCells {
    /// Sorts the members of a chart, ascending, by the cells of their places.
    fn new(chart: &Chart, members: &[u32], places: &[Place]) -> Self {
        let each = |take: &mut dyn FnMut(usize, u32)| {
            for &t in members {
                for_cells(places[t as usize], |x, y| {
                    take((y * chart.cells[0] + x) as usize, t);
                });
            }
        };
        let mut starts = vec![0_u32; (chart.cells[0] * chart.cells[1]) as usize + 1];
        each(&mut |cell, _| starts[cell + 1] += 1);
        for cell in 1..starts.len() {
            starts[cell] += starts[cell - 1];
        }
        let mut next = starts.clone();
        let mut triangles = vec![0; starts.last().map_or(0, |&all| all as usize)];
        each(&mut |cell, t| {
            triangles[next[cell] as usize] = t;
            next[cell] += 1;
        });
        Self { starts, triangles }
    }

    /// The triangles that touch a cell.
    fn of(&self, cell: usize) -> &[u32] {
        &self.triangles[self.starts[cell] as usize..self.starts[cell + 1] as usize]
    }
}

/// One chart's grid.
#[derive(Clone, Debug)]
struct Chart {
    origin: DVec2,
    /// Width of a cell in m.
    width: f64,
    cells: [u32; 2],
    /// Tiles in a row.
    row: u32,
    first_tile: u32,
}

owns_no_heap!(Chart);

impl Archive for Chart {
    fn save(&self, to: &mut Saver<'_>) -> io::Result<()> {
        let Self {
            origin,
            width,
            cells,
            row,
            first_tile,
        } = self;
        origin.to_array().save(to)?;
        width.save(to)?;
        cells.save(to)?;
        [*row, *first_tile].save(to)
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, ArchiveFault> {
        let (origin, width) = (DVec2::from_array(Archive::load(from)?), f64::load(from)?);
        let cells = Archive::load(from)?;
        let [row, first_tile] = Archive::load(from)?;
        Ok(Self {
            origin,
            width,
            cells,
            row,
            first_tile,
        })
    }
}

impl Chart {
    fn cell(&self, p: DVec2) -> [u16; 2] {
        let at = (p - self.origin) / self.width;
        [at.x as u16, at.y as u16]
    }

    /// The smallest block that covers a spot, as its tile and its number there, and whether there
    /// is one; otherwise another stands for it.
    #[inline(always)]
    fn block(&self, spot: Spot) -> ((u32, u32), bool) {
        let [low, high] = spot.ends().map(|cell| cell.map(u32::from));
        let span = high[0]
            .saturating_sub(low[0])
            .max(high[1].saturating_sub(low[1]));
        // The cells are half as wide as the span or more, or twice that if its ends lie across
        // three of them.
        let half = HALF[span.min(2 * TILE) as usize];
        let apart = |k: usize| (high[k] >> half).saturating_sub(low[k] >> half);
        let level = half + u32::from(apart(0).max(apart(1)) > 1);
        let tile = self.first_tile + low[1] / TILE * self.row + low[0] / TILE;
        let [x, y] = low.map(|low| (low % TILE) >> level);
        let row = (LEVELS - 1).saturating_sub(level);
        (
            (tile, FIRST[level as usize & 7] + (y << row) + x),
            level < LEVELS,
        )
    }

    fn corner(&self, cell: [u32; 2]) -> DVec2 {
        self.origin + DVec2::new(f64::from(cell[0]), f64::from(cell[1])) * self.width
    }
}

/// A square of cells of a chart.
#[derive(Clone, Debug)]
pub(in crate::collide) struct Tile {
    /// Corners of the triangles that touch it.
    pub(in crate::collide) vertices: Array<u32>,
    /// Triangles that touch it, by their cells.
    pub(in crate::collide) triangles: TileTriangles,
    /// The largest sum of magnitudes in a column of their inverses, in 1/m.
    pub(in crate::collide) steepest: f64,
    /// The flags that say which blocks are whole.
    pub(in crate::collide) whole: Vec<bool>,
    /// The tiles to the right, above, and right above.
    pub(in crate::collide) next: [u32; 3],
}

counts_heap!(Tile: vertices, triangles, whole, next; without steepest);
archives!(Tile: vertices, triangles, steepest, whole, next);

/// The triangles of a tile. Nearly all tiles have so few vertices that short numbers tell them.
#[derive(Clone, Debug)]
pub(in crate::collide) enum TileTriangles {
    /// Numbers of vertices have 16 bits.
    Few(Array<TileTriangle<u16>>),
    /// There are more vertices.
    Many(Array<TileTriangle<u32>>),
}

impl TileTriangles {
    fn new(triangles: Vec<TileTriangle<u32>>, vertices: usize) -> Self {
        let is_short = vertices <= usize::from(u16::MAX);
        if !is_short {
            return Self::Many(triangles.into());
        }
        let short = |of: &TileTriangle<u32>| TileTriangle {
            corners: of.corners.map(|corner| corner as u16),
            cells: of.cells,
            inverse: of.inverse,
        };
        Self::Few(triangles.iter().map(short).collect())
    }

    pub(in crate::collide) fn len(&self) -> usize {
        match self {
            Self::Few(all) => all.len(),
            Self::Many(all) => all.len(),
        }
    }
}

impl Archive for TileTriangles {
    fn save(&self, to: &mut Saver<'_>) -> io::Result<()> {
        matches!(self, Self::Few(_)).save(to)?;
        match self {
            Self::Few(all) => all.save(to),
            Self::Many(all) => all.save(to),
        }
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, ArchiveFault> {
        Ok(match bool::load(from)? {
            true => Self::Few(Array::load(from)?),
            false => Self::Many(Array::load(from)?),
        })
    }
}

impl HeapBytes for TileTriangles {
    fn heap_bytes(&self) -> usize {
        match self {
            Self::Few(all) => all.heap_bytes(),
            Self::Many(all) => all.heap_bytes(),
        }
    }
}

/// The lowest and the highest cell of a triangle within a tile, three bits for each of x, y, x, y.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub(in crate::collide) struct CellRange(u16);

impl CellRange {
    pub(in crate::collide) fn new([x0, y0, x1, y1]: [u8; 4]) -> Self {
        let [x0, y0, x1, y1] = [x0, y0, x1, y1].map(u16::from);
        Self(x0 | y0 << 3 | x1 << 6 | y1 << 9)
    }

    /// The cells: x, y, x, y.
    #[inline(always)]
    pub(in crate::collide) fn ends(self) -> [usize; 4] {
        let bits = usize::from(self.0);
        [bits & 7, bits >> 3 & 7, bits >> 6 & 7, bits >> 9 & 7]
    }
}

/// A triangle of a tile. It has no padding, so that it can be kept in archives.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, packed)]
pub(in crate::collide) struct TileTriangle<V> {
    /// Its corners among the vertices of the tile.
    pub(in crate::collide) corners: [V; 3],
    /// Its lowest and its highest cell.
    pub(in crate::collide) cells: CellRange,
    /// The inverse of the matrix whose columns are its edges from the first corner, by columns, in
    /// 1/m.
    pub(in crate::collide) inverse: [f32; 4],
}

owns_no_heap!(TileTriangle<u16>, TileTriangle<u32>);

/// The work that the separation bounds of a tile take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TileWork {
    /// Triangles that touch it.
    pub(crate) triangles: u32,
    /// The tiles whose cells are read too, to the right, above, and right above, as numbers in the
    /// order in which tiles are shared. Tiles of a chart fill a rectangle: there are all three, one
    /// of the first two, or none.
    pub(crate) beside: Vec<u32>,
}

counts_heap!(TileWork: beside; without triangles);

/// All charts of a surface.
#[derive(Clone, Debug, Default)]
pub(in crate::collide) struct Charts {
    charts: Vec<Chart>,
    tiles: Vec<Tile>,
    /// All tiles, in an order in which those that lie close together are also close.
    order: Vec<u32>,
    /// The place of each triangle, and its corners in the chart in m.
    places: Vec<Place>,
    corners: Vec<[DVec2; 3]>,
    /// The triangles that touch each cell of each chart.
    in_cells: Vec<InCells>,
}

counts_heap!(Charts: charts, tiles, order, places, corners, in_cells);
archives!(Charts: charts, tiles, order; without places, corners, in_cells);

impl Charts {
    /// Lays out the triangles of a surface.
    pub(in crate::collide) fn new(surface: &Surface, rest: &[DVec3]) -> Self {
        let n = surface.triangles().len();
        let mut charts = Self {
            places: vec![Place::NOWHERE; n],
            corners: vec![[DVec2::ZERO; 3]; n],
            ..Self::default()
        };
        let mut seen = vec![false; n];
        for seed in 0..n as u32 {
            if !seen[seed as usize] {
                let members = charts.flatten(surface, rest, seed, &mut seen);
                charts.add(surface, &members);
            }
        }
        charts
    }

    /// Finds the triangles of the chart of a triangle, ascending, and computes their corners.
    fn flatten(
        &mut self,
        surface: &Surface,
        rest: &[DVec3],
        seed: u32,
        seen: &mut [bool],
    ) -> Vec<u32> {
        let corners = |t: u32| surface.triangles()[t as usize].map(|v| rest[v as usize]);
        let normal = |[a, b, c]: [DVec3; 3]| (b - a).cross(c - a).normalize_or_zero();
        let [from, to, _] = corners(seed);
        let up = normal(corners(seed));
        let along = (to - from).normalize_or_zero();
        let across = up.cross(along);
        seen[seed as usize] = true;
        let mut members = vec![seed];
        let mut at = 0;
        while let Some(&t) = members.get(at) {
            at += 1;
            self.corners[t as usize] =
                corners(t).map(|p| DVec2::new((p - from).dot(along), (p - from).dot(across)));
            for edge in surface.edges_of(t) {
                let other = surface.beyond(edge, t);
                if other == NO_FACE {
                    continue;
                }
                if !seen[other as usize] && normal(corners(other)).dot(up) >= STEEP {
                    seen[other as usize] = true;
                    members.push(other);
                }
            }
        }
        members.sort_unstable();
        members
    }

    /// Makes a chart of triangles that have corners. Makes none if they have no area, or lie too
    /// far apart for a grid.
    fn add(&mut self, surface: &Surface, members: &[u32]) {
        let (mut low, mut high) = (DVec2::INFINITY, DVec2::NEG_INFINITY);
        let mut area = 0.0;
        for &t in members {
            let corners = self.corners[t as usize];
            area += area_of(&corners);
            low = corners.iter().fold(low, |low, &p| low.min(p));
            high = corners.iter().fold(high, |high, &p| high.max(p));
        }
        let width = CELL * (area / members.len() as f64).sqrt();
        let cells = (high - low) / width + 2.0;
        let most = 64.0 * members.len() as f64 + 1024.0;
        let fits = cells.max_element() < MOST_CELLS && cells.x * cells.y <= most;
        if !(fits && members.len() > 1 && width > 0.0) {
            return;
        }
        let number = self.charts.len() as u32;
        let cells = [cells.x as u32, cells.y as u32];
        let chart = Chart {
            // A mesh that is a regular grid would otherwise have edges on the borders of cells, and
            // its triangles would touch more cells than others do.
            origin: low - 0.5 * width,
            width,
            cells,
            row: cells[0].div_ceil(TILE),
            first_tile: self.tiles.len() as u32,
        };
        for &t in members {
            self.places[t as usize] = place(&chart, number, &self.corners[t as usize]);
        }
        let in_cells = InCells::new(&chart, members, &self.places);
        // Edges with nothing of the chart on their other side, as seen by their triangle.
        let mut borders: Vec<Vec<[DVec2; 2]>> = vec![Vec::new(); (cells[0] * cells[1]) as usize];
        for &t in members {
            for (k, &edge) in surface.edges_of(t).iter().enumerate() {
                let beyond = surface.beyond(edge, t);
                let inside = self.places.get(beyond as usize);
                if inside.is_none_or(|place| place.chart != number) {
                    let ends = [0, 1].map(|i| self.corners[t as usize][(k + i) % 3]);
                    for_cells(place(&chart, number, &ends), |x, y| {
                        borders[(y * cells[0] + x) as usize].push(ends);
                    });
                }
            }
        }
        self.charts.push(chart);
        self.in_cells.push(in_cells);
        self.add_tiles(surface, number, &borders);
    }

    fn add_tiles(&mut self, surface: &Surface, number: u32, borders: &[Vec<[DVec2; 2]>]) {
        let chart = &self.charts[number as usize];
        let (in_cells, cells) = (&self.in_cells[number as usize], chart.cells);
        let (columns, rows) = (chart.row, cells[1].div_ceil(TILE));
        let index = |x: u32, y: u32| (y * cells[0] + x) as usize;
        // The share of each cell that triangles cover.
        let covered = parallel::map((cells[0] * cells[1]) as usize, |cell| {
            let at = cell as u32;
            let low = chart.corner([at % cells[0], at / cells[0]]);
            let parts = (in_cells.of(cell).iter())
                .map(|&t| area_of(&clip(&self.corners[t as usize], low, low + chart.width)));
            parts.sum::<f64>() / (chart.width * chart.width)
        });
        let tile = |tile: usize| {
            let tile = tile as u32;
            let (column, row) = (tile % columns, tile / columns);
            let next = |x: u32, y: u32| {
                let exists = x < columns && y < rows;
                if exists {
                    chart.first_tile + y * columns + x
                } else {
                    NONE
                }
            };
            let [left, bottom] = [column * TILE, row * TILE];
            let ends = [0, 1].map(|k| ([left, bottom][k] + TILE).min(cells[k]));
            let mut triangles: Vec<u32> = (bottom..ends[1])
                .flat_map(|y| (left..ends[0]).map(move |x| (x, y)))
                .flat_map(|(x, y)| in_cells.of(index(x, y)).iter().copied())
                .collect();
            triangles.sort_unstable();
            triangles.dedup();
            let corners = |t: u32| surface.triangles()[t as usize];
            let mut vertices: Vec<u32> = triangles.iter().flat_map(|&t| corners(t)).collect();
            vertices.sort_unstable();
            vertices.dedup();
            let mut steepest = 0.0_f64;
            let mut part = |t: u32| {
                let Place { low, high, .. } = self.places[t as usize];
                let cell =
                    |c: u16, start: u32| u32::from(c).saturating_sub(start).min(TILE - 1) as u8;
                let [x, y] = [left, bottom];
                let inverse = inverse(&self.corners[t as usize]);
                for column in inverse {
                    steepest = steepest.max(column.abs().element_sum());
                }
                let [u, v] = inverse.map(|column| column.as_vec2());
                TileTriangle {
                    corners: corners(t).map(|v| {
                        let at = vertices.binary_search(&v);
                        at.expect("a vertex of the tile") as u32
                    }),
                    cells: CellRange::new([
                        cell(low[0], x),
                        cell(low[1], y),
                        cell(high[0], x),
                        cell(high[1], y),
                    ]),
                    inverse: [u.x, u.y, v.x, v.y],
                }
            };
            let mut parts: Vec<TileTriangle<u32>> = triangles.into_iter().map(&mut part).collect();
            // Triangles in the same cells are taken together.
            parts.sort_by_key(|part| part.cells.ends());
            vertices.shrink_to_fit();
            let parts = TileTriangles::new(parts, vertices.len());
            let mut whole = Vec::with_capacity(BLOCKS);
            for level in 0..LEVELS {
                let side = TILE >> level;
                for block in 0..side * side {
                    let low = [
                        left + ((block % side) << level),
                        bottom + ((block / side) << level),
                    ];
                    let high = low.map(|low| low + (2 << level));
                    let cut = [0, 1].map(|k| high[k].min(cells[k]));
                    let all = (low[1]..cut[1]).flat_map(|y| (low[0]..cut[0]).map(move |x| (x, y)));
                    let border = all.clone().any(|(x, y)| !borders[index(x, y)].is_empty());
                    whole.push(if border {
                        let mut triangles: Vec<u32> = all
                            .clone()
                            .flat_map(|(x, y)| in_cells.of(index(x, y)).iter().copied())
                            .collect();
                        triangles.sort_unstable();
                        triangles.dedup();
                        let borders = all.flat_map(|(x, y)| &borders[index(x, y)]);
                        let corners = triangles.iter().map(|&t| &self.corners[t as usize]);
                        is_convex(
                            corners,
                            borders,
                            [chart.corner(low), chart.corner(high)],
                            chart.width,
                        )
                    } else {
                        // There is no border within, so it is filled or empty.
                        cut == high
                            && all
                                .map(|(x, y)| (covered[index(x, y)] - 1.0).abs())
                                .all(|d| d < NOTHING)
                    });
                }
            }
            Tile {
                vertices: vertices.into(),
                triangles: parts,
                steepest,
                whole,
                next: [
                    next(column + 1, row),
                    next(column, row + 1),
                    next(column + 1, row + 1),
                ],
            }
        };
        let tiles = parallel::map((columns * rows) as usize, tile);
        // The order follows a Z-shaped curve through the chart, so that a run of tiles is about as
        // wide as it is high.
        let mut order: Vec<u32> = (0..columns * rows).collect();
        order.sort_by_key(|tile| interleaved(tile % columns, tile / columns));
        let first = chart.first_tile;
        self.tiles.extend(tiles);
        self.order.extend(order.iter().map(|tile| first + tile));
    }

    /// All tiles.
    pub(in crate::collide) fn tiles(&self) -> &[Tile] {
        &self.tiles
    }

    /// The numbers of tiles in the order in which ranks share them: a run of neighbours reads few
    /// others.
    pub(in crate::collide) fn order(&self) -> &[u32] {
        &self.order
    }

    /// The work that each tile takes, in that order.
    pub(in crate::collide) fn work(&self) -> Vec<TileWork> {
        let mut place = vec![0; self.tiles.len()];
        for (at, &tile) in (0..).zip(&self.order) {
            place[tile as usize] = at;
        }
        let work = |&tile: &u32| {
            let tile = &self.tiles[tile as usize];
            let beside = tile.next.iter().filter(|&&next| next != NONE);
            TileWork {
                triangles: tile.triangles.len() as u32,
                beside: beside.map(|&next| place[next as usize]).collect(),
            }
        };
        self.order.iter().map(work).collect()
    }

    /// The number of the tile at a place in that order, and the side of it on which one of those
    /// beside it lies.
    ///
    /// # Panics
    /// There are fewer beside it than that.
    pub(in crate::collide) fn side(&self, place: usize, which: usize) -> (u32, usize) {
        let tile = self.order[place];
        let next = self.tiles[tile as usize].next.iter().enumerate();
        let (side, _) = next
            .filter(|&(_, &next)| next != NONE)
            .nth(which)
            .expect("a tile there");
        (tile, side)
    }

    /// The number of cells that a distance (m) is, rounded down.
    pub(in crate::collide) fn margin(&self, distance: f64) -> Margin {
        let cells = self.charts.iter().map(|chart| distance / chart.width);
        let cells = cells.fold(0.0, f64::max).min(Margin::MOST) as u64;
        Margin(cells << 32 | cells << 48 | cells | cells << 16)
    }

    /// A triangle's corners in its chart, in m.
    pub(in crate::collide) fn corners(&self, triangle: u32) -> [DVec2; 3] {
        self.corners[triangle as usize]
    }

    /// The rectangle around a triangle in its chart.
    pub(in crate::collide) fn rectangle(&self, triangle: u32) -> Box2 {
        Box2::around(&self.corners[triangle as usize])
    }

    /// The place of a triangle.
    pub(in crate::collide) fn place(&self, triangle: u32) -> Place {
        self.places[triangle as usize]
    }

    /// The place of some points of a triangle's chart.
    pub(in crate::collide) fn place_of(&self, triangle: u32, points: &[DVec2]) -> Place {
        let chart = self.places[triangle as usize].chart;
        self.charts
            .get(chart as usize)
            .map_or(Place::NOWHERE, |grid| place(grid, chart, points))
    }

    /// The places of the nodes of a tree.
    pub(in crate::collide) fn places(&self, tree: &Bvh) -> Places {
        let mut places = vec![Place::NOWHERE; tree.len()];
        for index in (0..tree.len()).rev() {
            places[index] = match tree.node(index as u32) {
                Node::Inner(child) => {
                    let child = child as usize;
                    places[child].join(places[child + 1])
                }
                Node::Leaf(triangle) => self.place(triangle),
            };
        }
        let charts: Vec<u32> = places.iter().map(|place| place.chart).collect();
        let first = charts.first().copied().filter(|&chart| chart != NONE);
        let chart = first.filter(|first| charts.iter().all(|chart| chart == first));
        Places {
            spots: places.into_iter().map(Spot::new).collect(),
            charts: chart.map_or_else(|| charts.into(), |_| Array::default()),
            chart,
        }
    }

    /// The triangles of the same chart that may be within `distance` (m) of one, itself included,
    /// ascending. Others may be among them.
    pub(in crate::collide) fn around(&self, triangle: u32, distance: f64, out: &mut Vec<u32>) {
        out.clear();
        let place = self.place(triangle);
        let Some(chart) = self.charts.get(place.chart as usize) else {
            return;
        };
        let by = (distance / chart.width).ceil().min(f64::from(u16::MAX)) as u16;
        let in_cells = &self.in_cells[place.chart as usize];
        let own = self.rectangle(triangle);
        for_cells(place.grown(by, chart), |x, y| {
            let there = in_cells.of((y * chart.cells[0] + x) as usize).iter();
            let near = |t: &&u32| own.is_near(&self.rectangle(**t), distance);
            out.extend(there.filter(near));
        });
        out.sort_unstable();
        out.dedup();
    }

    /// Forgets the parts that only finding pairs needs.
    pub(in crate::collide) fn without_cells(mut self) -> Self {
        self.in_cells = Vec::new();
        self.places = Vec::new();
        self.corners = Vec::new();
        self
    }

    /// The smallest block that covers a place, as its tile and its number there. The tile says
    /// whether it is whole.
    pub(in crate::collide) fn block(&self, place: Place) -> Option<(u32, u32)> {
        let chart = self.charts.get(place.chart as usize)?;
        let (block, covers) = chart.block(Spot::new(place));
        covers.then_some(block)
    }
}

/// A rectangle of a chart, along its axes.
#[derive(Clone, Copy, Debug)]
pub(in crate::collide) struct Box2 {
    low: DVec2,
    high: DVec2,
}

owns_no_heap!(Box2);

impl Box2 {
    /// The rectangle around points.
    pub(in crate::collide) fn around(points: &[DVec2]) -> Self {
        Self {
            low: points.iter().fold(DVec2::INFINITY, |low, &p| low.min(p)),
            high: (points.iter()).fold(DVec2::NEG_INFINITY, |high, &p| high.max(p)),
        }
    }

    /// Whether things in the two may be closer than `distance` (m), with room for what their own
    /// distance is rounded by.
    pub(in crate::collide) fn is_near(&self, other: &Self, distance: f64) -> bool {
        let gap = (other.low - self.high).max(self.low - other.high);
        gap.max_element() < distance * (1.0 + ROUNDED)
    }
}

/// The share of a distance by which it may have been rounded: no thickness is less than 1e-8 times
/// the coordinates.
const ROUNDED: f64 = 1e-6;

/// The cells around points.
fn place(chart: &Chart, number: u32, points: &[DVec2]) -> Place {
    let low = points.iter().fold(DVec2::INFINITY, |low, &p| low.min(p));
    let high = points
        .iter()
        .fold(DVec2::NEG_INFINITY, |high, &p| high.max(p));
    Place {
        chart: number,
        low: chart.cell(low),
        high: chart.cell(high),
    }
}

/// The columns of the inverse of the matrix whose columns are a triangle's edges from its first
/// corner.
fn inverse([a, b, c]: &[DVec2; 3]) -> [DVec2; 2] {
    let (e, f) = (b - a, c - a);
    let inverse = [DVec2::new(f.y, -e.y), DVec2::new(-f.x, e.x)];
    inverse.map(|column| column / e.perp_dot(f))
}

/// The bits of two numbers below 2¹⁶ in turn.
fn interleaved(x: u32, y: u32) -> u32 {
    let bit = |of: u32, k: u32| (of >> k & 1) << (2 * k);
    (0..16).fold(0, |all, k| all | bit(x, k) | bit(y, k) << 1)
}

fn for_cells(place: Place, mut each: impl FnMut(u32, u32)) {
    for y in place.low[1]..=place.high[1] {
        for x in place.low[0]..=place.high[0] {
            each(u32::from(x), u32::from(y));
        }
    }
}

/// Signed area of a polygon, positive counter-clockwise.
fn area_of(corners: &[DVec2]) -> f64 {
    let Some(&first) = corners.first() else {
        return 0.0;
    };
    let fans = corners
        .windows(2)
        .map(|w| (w[0] - first).perp_dot(w[1] - first));
    0.5 * fans.sum::<f64>()
}

/// The part of a convex polygon within a rectangle [Sutherland & Hodgman 1974].
fn clip(corners: &[DVec2], low: DVec2, high: DVec2) -> Vec<DVec2> {
    let mut polygon = corners.to_vec();
    for side in 0..4 {
        // How far inside of a side a point is.
        let inside = |p: DVec2| match side {
            0 => p.x - low.x,
            1 => high.x - p.x,
            2 => p.y - low.y,
            _ => high.y - p.y,
        };
        let mut cut = Vec::with_capacity(polygon.len() + 1);
        for (i, &p) in polygon.iter().enumerate() {
            let q = polygon[(i + 1) % polygon.len()];
            let (a, b) = (inside(p), inside(q));
            if a >= 0.0 {
                cut.push(p);
            }
            if (a > 0.0 && b < 0.0) || (a < 0.0 && b > 0.0) {
                cut.push(p.lerp(q, a / (a - b)));
            }
        }
        polygon = cut;
    }
    polygon
}

/// Whether triangles fill a convex part of a rectangle once: all parts of them that lie there are
/// on the inner side of all borders, and their areas sum to that of their convex hull.
fn is_convex<'a>(
    triangles: impl Iterator<Item = &'a [DVec2; 3]>,
    borders: impl Iterator<Item = &'a [DVec2; 2]>,
    [low, high]: [DVec2; 2],
    width: f64,
) -> bool {
    let mut points = Vec::new();
    let mut area = 0.0;
    for corners in triangles {
        let part = clip(corners, low, high);
        area += area_of(&part);
        points.extend(part);
    }
    let hull = hull(&mut points);
    let whole = area_of(&hull);
    let tolerance = NOTHING * width;
    let mut sound = true;
    for [p, q] in borders {
        let along = (*q - *p).normalize_or_zero();
        let met = |r: &DVec2| along.perp_dot(*r - *p) >= -tolerance;
        sound = sound && hull.iter().all(met);
    }
    sound && whole > tolerance * width && (area - whole).abs() <= NOTHING * whole.max(width * width)
}

/// The convex hull of points, counter-clockwise, by Andrew's monotone chain.
fn hull(points: &mut [DVec2]) -> Vec<DVec2> {
    points.sort_unstable_by(|a, b| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y)));
    let mut hull: Vec<DVec2> = Vec::new();
    let mut chain = |points: &mut dyn Iterator<Item = DVec2>| {
        let start = hull.len();
        for p in points {
            while hull.len() >= start + 2 {
                let (a, b) = (hull[hull.len() - 2], hull[hull.len() - 1]);
                if (b - a).perp_dot(p - a) > 0.0 {
                    break;
                }
                hull.pop();
            }
            hull.push(p);
        }
        // The last point begins the other half.
        hull.pop();
    };
    chain(&mut points.iter().copied());
    chain(&mut points.iter().rev().copied());
    hull
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collide::tests::culling::rest_shape;
    use crate::mesh::TriMesh;

    fn charts(mesh: &TriMesh) -> Charts {
        let surface = Surface::new(&mesh.triangles, mesh.positions.len());
        Charts::new(&surface, &mesh.positions)
    }

    /// Whether the block around what lies between two corners of the square that shapes are made
    /// from is whole.
    fn is_whole(charts: &Charts, from: DVec2, to: DVec2) -> bool {
        // The first triangle's first corner is the chart's origin, and the square's.
        let place = charts.place_of(0, &[from, to]);
        let (tile, block) = charts.block(place).unwrap();
        charts.tiles()[tile as usize].whole[block as usize]
    }

    #[test]
    fn only_convex_blocks_are_whole() {
        let p = DVec2::new;
        let corner = [p(0.02, 0.02), p(0.10, 0.08)];
        let (border, middle) = (
            [p(0.46, 0.02), p(0.54, 0.08)],
            [p(0.46, 0.46), p(0.54, 0.50)],
        );
        for (shape, [from, to], expected) in [
            (0, corner, true),
            (0, border, true),
            (0, middle, true),
            // A hole has a rim.
            (1, corner, true),
            (1, [p(0.28, 0.45), p(0.40, 0.50)], false),
            // A slit from the border to the middle, of no width.
            (2, corner, true),
            (2, border, false),
            (2, middle, false),
            // An L: the inner corner, and the end of an arm.
            (3, corner, true),
            (3, [p(0.36, 0.36), p(0.42, 0.42)], false),
            (3, [p(0.02, 0.90), p(0.08, 0.95)], true),
        ] {
            let charts = charts(&rest_shape(shape));
            assert_eq!(charts.charts.len(), 1);
            let found = is_whole(&charts, from, to);
            assert_eq!(found, expected, "shape {shape} from {from} to {to}");
        }
    }

    #[test]
    fn layers_in_one_plane_are_charts_of_their_own_and_a_tube_is_several() {
        assert_eq!(charts(&rest_shape(6)).charts.len(), 2);
        assert!(charts(&rest_shape(4)).charts.len() > 3);
    }

    /// A ramp that turns once and a half around itself covers its plane twice in part, seen from
    /// above.
    #[test]
    fn blocks_that_are_covered_twice_are_not_whole() {
        let turns = 36;
        let at = |k: u32, radius: f64| {
            let angle = f64::from(k) * 0.25;
            DVec3::new(radius * angle.cos(), radius * angle.sin(), 1e-3 * angle)
        };
        let mut mesh = TriMesh::default();
        for k in 0..=turns {
            mesh.positions.extend([at(k, 1.0), at(k, 2.0), at(k, 3.0)]);
        }
        for k in 0..turns {
            let v = 3 * k;
            for side in [0, 1] {
                mesh.triangles.extend([
                    [v + side, v + side + 1, v + side + 4],
                    [v + side, v + side + 4, v + side + 3],
                ]);
            }
        }
        let charts = charts(&mesh);
        assert_eq!(charts.charts.len(), 1);
        // All corners in the ring's first quarter are covered again by the second turn.
        let corners = charts.corners[0];
        let place = charts.place_of(0, &corners);
        let (tile, block) = charts.block(place).unwrap();
        assert!(!charts.tiles()[tile as usize].whole[block as usize]);
    }
}
