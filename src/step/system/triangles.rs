//! The triangles that touch a run of rows, and the rows of the matrix that they and bending make.
//!
//! Triangles say how their corners are coupled, four or eight at a time ([`couple`]). An entry of
//! the matrix is written once. Beside the diagonal it is the sum of what the one or two triangles
//! of an edge say and of bending; on the diagonal it is mass, bending, and all that is coupled to
//! the vertex, with its sign changed, for elasticity does not resist moving as a whole. Columns of
//! a row are added up there in ascending global order.
//!
//! Rows are written one after the other, each from its first block to its last scalar, though two
//! rows of a run have the same coupling. Adding it up twice costs less than blocks written here and
//! there, for the matrix of a large mesh comes from memory and goes there again. Its blocks are
//! prefetched while triangles are computed, when the memory has nothing else to do.

use super::bending::Bending;
use super::incidence::IncidentRun;
use super::load::Collapsed;
use super::local_vertices::{CORNERS, LocalVertices};
use super::scratch::{RowFactors, Scratch};
use crate::heap_bytes::{counts_heap, owns_no_heap};
use crate::physics::ClothModel;
use crate::physics::element::Times;
use crate::physics::membrane::RestTriangle;
use crate::physics::membrane_lanes::{Coupled, Four, LaneTriangle, Law, Vertices, couple};
use crate::scene::Material;
use crate::simd::{Arithmetic, ByEight, InstructionSet, Kernel, Lanes, widest};
use crate::solve::{MatrixRows, Pattern};

/// The triangles, and the couplings that rows are made of.
#[derive(Debug)]
pub(crate) struct Triangles {
    /// The triangles by fours. Corners are in ascending order of their global numbers.
    fours: Vec<Four>,
    /// The global number of each triangle.
    names: Vec<u32>,
    /// The numbers of columns of each row.
    rows: Vec<Row>,
    /// The columns of the rows' blocks, but for the diagonal.
    columns: Vec<Column>,
}

counts_heap!(Triangles: fours, names, rows, columns);

/// The numbers of columns of a row: of blocks before the diagonal and behind it, and of scalars.
#[derive(Clone, Copy, Debug)]
struct Row {
    lower: u32,
    upper: u32,
    far: u32,
}

owns_no_heap!(Row);

/// A vertex that a row is coupled with.
#[derive(Clone, Copy, Debug)]
struct Column {
    /// The places at which the two triangles of the edge say how the two are coupled.
    parts: [u32; 2],
    /// Its place among [`LocalVertices`].
    other: u32,
}

owns_no_heap!(Column);

impl Triangles {
    /// Gathers the triangles of a run.
    pub(crate) fn new(
        model: &ClothModel,
        pattern: &Pattern,
        local_vertices: &LocalVertices,
        run: IncidentRun<'_>,
    ) -> Self {
        let rows = run.rows;
        let (mut fours, mut names, mut parts) = (Vec::<Four>::new(), Vec::new(), Vec::new());
        let shapes = model.shapes();
        let elements = run.elements.triangles.iter().copied();
        for index in elements.filter(|&index| model.is_element(index as usize)) {
            let corners = model.triangles()[index as usize];
            let mut order = [0, 1, 2];
            order.sort_unstable_by_key(|&corner| corners[corner]);
            let [a, b, c] = order.map(|corner| corners[corner]);
            let (at, lane) = (names.len(), names.len() % 4);
            if lane == 0 {
                fours.push(blank(local_vertices));
            }
            let triangle = LaneTriangle {
                rest: &model.membrane(index as usize, shapes[index as usize]),
                order,
                law: model.cloth_of_triangle()[index as usize],
                corners: [a, b, c].map(|v| local_vertices.index(v)),
            };
            fours[at / 4].set(lane, triangle);
            for (edge, pair) in (0_u32..).zip([[a, b], [a, c], [b, c]]) {
                parts.push((pair, (size_of::<Coupled>() / 8 * at) as u32 + 9 * edge));
            }
            names.push(index);
        }
        // In the order of the triangles.
        parts.sort_by_key(|&(pair, _)| pair);
        let none = (size_of::<Coupled>() / 8 * 4 * fours.len()) as u32;
        let of_pair = |pair: [u32; 2]| {
            let start = parts.partition_point(|part| part.0 < pair);
            let mut of_pair = parts[start..].iter().take_while(|part| part.0 == pair);
            let mut next = || of_pair.next().map_or(none, |part| part.1);
            let both = [next(), next()];
            assert!(of_pair.next().is_none(), "meshes are manifold");
            both
        };

        let first = pattern.first_row() as usize;
        let mut all = Self {
            fours,
            names,
            rows: Vec::with_capacity(rows.len()),
            columns: Vec::new(),
        };
        for row in rows.start as u32..rows.end as u32 {
            let local = row as usize - first;
            let (near, far) = (
                pattern.block_columns(local).1,
                pattern.scalar_columns(local).1,
            );
            let lower = near.partition_point(|&column| column < row);
            all.rows.push(Row {
                lower: lower as u32,
                upper: (near.len() - lower - 1) as u32,
                far: far.len() as u32,
            });
            let others = near.iter().filter(|&&column| column != row);
            all.columns.extend(others.map(|&column| Column {
                parts: of_pair([row.min(column), row.max(column)]),
                other: local_vertices.index(column),
            }));
        }
        // They stay as long as the run does.
        all.fours.shrink_to_fit();
        all.names.shrink_to_fit();
        all.columns.shrink_to_fit();
        all
    }

    /// Writes every entry of the matrix, and adds the impulses of triangles and bending to the
    /// right-hand side in `scratch`.
    pub(crate) fn assemble(
        &self,
        bending: &Bending,
        laws: &[Law],
        times: &Times,
        matrix: &mut MatrixRows<'_>,
        scratch: &mut Scratch,
    ) -> Result<(), Collapsed> {
        widest(Assembling {
            of: self,
            bending,
            laws,
            times,
            matrix,
            scratch,
        })
    }
}

/// Four triangles of no cloth.
fn blank(local_vertices: &LocalVertices) -> Four {
    let rest = RestTriangle::new(CORNERS, &Material::COTTON, CORNERS[1]);
    let rest = rest.expect("it spans an area");
    let mut four = Four::default();
    for lane in 0..4 {
        let triangle = LaneTriangle {
            rest: &rest,
            order: [0, 1, 2],
            law: 0,
            corners: local_vertices.corners(),
        };
        four.set(lane, triangle);
    }
    four
}

struct Assembling<'a, 'm> {
    of: &'a Triangles,
    bending: &'a Bending,
    laws: &'a [Law],
    times: &'a Times,
    matrix: &'a mut MatrixRows<'m>,
    scratch: &'a mut Scratch,
}

impl Kernel for Assembling<'_, '_> {
    type Output = Result<(), Collapsed>;

    #[inline(always)]
    fn run<L: Lanes>(mut self, lanes: L) -> Result<(), Collapsed> {
        if self.times.stiff == self.times.shift {
            self.assemble::<L, true>(lanes)
        } else {
            self.assemble::<L, false>(lanes)
        }
    }
}

impl Assembling<'_, '_> {
    #[inline(always)]
    fn assemble<L: Lanes, const SAME: bool>(&mut self, lanes: L) -> Result<(), Collapsed> {
        let coupled = &mut self.scratch.coupled;
        // And one where there is no triangle.
        coupled.resize(4 * self.of.fours.len() + 1, [0.0; 28]);
        coupled[4 * self.of.fours.len()] = [0.0; 28];
        self.couple::<L, SAME>(lanes)?;
        self.write_rows(lanes);
        Ok(())
    }

    /// Computes couplings, and adds impulses.
    #[inline(always)]
    fn couple<L: Lanes, const SAME: bool>(&mut self, lanes: L) -> Result<(), Collapsed> {
        let mut fours = 0..self.of.fours.len();
        if L::IS_ONE {
            while fours.len() >= 2 {
                self.couple_at::<_, SAME>(ByEight(lanes), fours.start)?;
                fours.start += 2;
            }
        }
        for at in fours {
            self.couple_at::<_, SAME>(lanes, at)?;
        }
        Ok(())
    }

    /// Computes the couplings of as many fours as vectors have, and adds impulses.
    #[inline(always)]
    fn couple_at<A: Arithmetic, const SAME: bool>(
        &mut self,
        numbers: A,
        at: usize,
    ) -> Result<(), Collapsed> {
        let (scratch, lanes) = (&mut *self.scratch, numbers.lanes());
        let coupled = &mut scratch.coupled.as_chunks_mut().0[at..at + A::FOURS];
        let of = &self.of.fours[at..at + A::FOURS];
        // Blocks that are written once all is coupled are prefetched, a few with each impulse: many
        // at once would be waited for.
        let (blocks, _) = self.matrix.numbers_mut();
        let (lines, _) = blocks.as_flattened().as_chunks::<LINE>();
        let asked = lines.get(at * IMPULSES * ASKED..).unwrap_or_default();
        let mut asked = asked.as_chunks::<ASKED>().0.iter();
        let rhs = &mut scratch.rhs;
        let vertices = Vertices {
            x: &scratch.x,
            v: &scratch.v,
        };
        couple::<A, SAME>(
            numbers,
            of,
            self.laws,
            vertices,
            self.times,
            coupled,
            |corner, impulse| {
                if let Some([one, two]) = asked.next() {
                    lanes.prefetch_late(one, 0);
                    lanes.prefetch_late(two, 0);
                }
                let sum = &mut rhs[corner as usize];
                *sum = lanes.store(lanes.add(lanes.load(sum), impulse));
            },
        )
        .map_err(|nth| Collapsed {
            triangle: self.of.names[4 * at + nth],
        })
    }

    /// Writes the rows, and adds what bending pushes them with.
    #[inline(always)]
    fn write_rows<L: Lanes>(&mut self, lanes: L) {
        let scratch = &mut *self.scratch;
        let (coupled, ahead) = (scratch.coupled.as_flattened(), &scratch.ahead[..]);
        let (mut blocks, mut scalars) = self.matrix.numbers_mut();
        let (mut near, mut far) = (&self.bending.near[..], &self.bending.far[..]);
        let mut far_others = &self.bending.far_others[..];
        let mut columns = &self.of.columns[..];
        let identity = identity(lanes);
        let of_rows = self.of.rows.iter().zip(&scratch.rows);
        for ((of, factors), (own, rhs)) in of_rows.zip(ahead.iter().zip(&mut scratch.rhs)) {
            let RowFactors {
                mass,
                bending,
                bent: against,
            } = *factors;
            let against = lanes.splat(-against);
            let (lower, upper) = (of.lower as usize, of.upper as usize);
            let zero = lanes.splat(0.0);
            let (mut sums, mut bent) = ([zero; 3], zero);
            let of_row = take(&mut near, lower + 1 + upper);
            let blocks = take_mut(&mut blocks, lower + 1 + upper);
            let before = take(&mut columns, lower).iter();
            for ((column, block), &number) in before.zip(&mut *blocks).zip(of_row) {
                let part = transposed(lanes, coupling(lanes, coupled, column.parts));
                sums = added(lanes, sums, part);
                write(lanes, block, times(lanes, identity, number * bending), part);
                let other = lanes.load(&ahead[column.other as usize]);
                bent = lanes.fused(bent, lanes.splat(number), other);
            }
            let behind = take(&mut columns, upper).iter();
            for ((column, block), &number) in behind
                .zip(&mut blocks[lower + 1..])
                .zip(&of_row[lower + 1..])
            {
                let part = coupling(lanes, coupled, column.parts);
                sums = added(lanes, sums, part);
                write(lanes, block, times(lanes, identity, number * bending), part);
                let other = lanes.load(&ahead[column.other as usize]);
                bent = lanes.fused(bent, lanes.splat(number), other);
            }
            let count = of.far as usize;
            let numbers = take(&mut far, count)
                .iter()
                .zip(take(&mut far_others, count));
            for (scalar, (&number, &other)) in take_mut(&mut scalars, count).iter_mut().zip(numbers)
            {
                *scalar = number * bending;
                let other = lanes.load(&ahead[other as usize]);
                bent = lanes.fused(bent, lanes.splat(number), other);
            }
            let number = of_row[lower];
            let beside = mass + number * bending;
            let [p, q, r] = sums;
            let [p, q, r] = [lanes.store(p), lanes.store(q), lanes.store(r)];
            // The upper triangle, for the sums are symmetric but for rounding.
            blocks[lower] = [
                p[0] + beside,
                q[0],
                r[0],
                q[0],
                q[1] + beside,
                r[1],
                r[0],
                r[1],
                r[2] + beside,
            ];
            let bent = lanes.fused(bent, lanes.splat(number), lanes.load(own));
            *rhs = lanes.store(lanes.fused(lanes.load(rhs), against, bent));
        }
    }
}

/// Takes this number of elements off the front of a slice.
#[inline(always)]
fn take<'a, T>(rest: &mut &'a [T], count: usize) -> &'a [T] {
    rest.split_off(..count)
        .expect("the rows have this many columns")
}

#[inline(always)]
fn take_mut<'a, T>(rest: &mut &'a mut [T], count: usize) -> &'a mut [T] {
    rest.split_off_mut(..count)
        .expect("the rows have this many columns")
}

/// The numbers in a line of the cache.
const LINE: usize = 8;

/// The impulses of four triangles.
const IMPULSES: usize = 12;
/// The lines of blocks that are prefetched with each impulse. These are all lines, for a row has
/// some eight blocks, and two triangles.
const ASKED: usize = 2;

/// The axes, with a fourth number that is zero.
#[inline(always)]
fn identity<L: Lanes>(lanes: L) -> [L::Four; 3] {
    [
        lanes.load(&[1.0, 0.0, 0.0, 0.0]),
        lanes.load(&[0.0, 1.0, 0.0, 0.0]),
        lanes.load(&[0.0, 0.0, 1.0, 0.0]),
    ]
}

#[inline(always)]
fn times<L: Lanes>(lanes: L, [p, q, r]: [L::Four; 3], number: f64) -> [L::Four; 3] {
    let number = lanes.splat(number);
    [
        lanes.multiply(p, number),
        lanes.multiply(q, number),
        lanes.multiply(r, number),
    ]
}

/// The coupling of an edge that one or two triangles make, by columns, with fourth numbers of no
/// use.
#[inline(always)]
fn coupling<L: Lanes>(lanes: L, coupled: &[f64], [one, other]: [u32; 2]) -> [L::Four; 3] {
    let ([a, b, c], [d, e, f]) = (
        columns_at(lanes, coupled, one),
        columns_at(lanes, coupled, other),
    );
    [lanes.add(a, d), lanes.add(b, e), lanes.add(c, f)]
}

#[inline(always)]
fn columns_at<L: Lanes>(lanes: L, coupled: &[f64], at: u32) -> [L::Four; 3] {
    let numbers: &[f64; 10] = (coupled[at as usize..].first_chunk())
        .expect("a number of no use behind the last of a triangle");
    let [p @ .., _, _, _, _, _, _] = numbers;
    let [_, _, _, q @ .., _, _, _] = numbers;
    let [_, _, _, _, _, _, r @ ..] = numbers;
    [lanes.load(p), lanes.load(q), lanes.load(r)]
}

#[inline(always)]
fn transposed<L: Lanes>(lanes: L, [a, b, c]: [L::Four; 3]) -> [L::Four; 3] {
    let [a, b, c, _] = lanes.transposed([a, b, c, lanes.splat(0.0)]);
    [a, b, c]
}

#[inline(always)]
fn added<L: Lanes>(lanes: L, [a, b, c]: [L::Four; 3], [p, q, r]: [L::Four; 3]) -> [L::Four; 3] {
    [lanes.add(a, p), lanes.add(b, q), lanes.add(c, r)]
}

/// Sets a block to one less another, given by columns.
#[inline(always)]
fn write<L: Lanes>(
    lanes: L,
    block: &mut [f64; 9],
    [a, b, c]: [L::Four; 3],
    [p, q, r]: [L::Four; 3],
) {
    let last = lanes.store(lanes.subtract(c, r));
    let [first @ .., _, _, _, _, _] = block;
    *first = lanes.store(lanes.subtract(a, p));
    let [_, _, _, second @ .., _, _] = block;
    *second = lanes.store(lanes.subtract(b, q));
    let [_, _, _, _, _, _, third @ ..] = block;
    *third = [last[0], last[1], last[2]];
}
