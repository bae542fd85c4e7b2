//! The triangles that touch a run of rows, and the rows of the matrix that they and hinges make.
//!
//! Triangles say how their corners are coupled, four or eight at a time ([`couple`]). An entry of the matrix is written once: beside the diagonal what the
//! one or two triangles of an edge say and what hinges add; on the diagonal mass, hinges, and all that is coupled to the vertex, with its sign
//! changed, for elasticity does not resist moving as a whole. Columns of a row are added up there in ascending global order.

use std::ops::Range;

use super::around::{Around, CORNERS};
use super::assembly::Collapsed;
use super::hinges::Hinges;
use crate::physics::ClothModel;
use crate::physics::membrane::RestTriangle;
use crate::physics::membrane_lanes::{Coupled, Four, Law, Times, couple};
use crate::scene::Material;
use crate::simd::{Arithmetic, ByEight, Lanes, Loop, widest};
use crate::solve::{MatrixRows, Pattern};

/// The triangles, and the couplings that rows are made of.
#[derive(Debug)]
pub(super) struct Triangles {
    /// Corners in ascending order of their global numbers, as [`Around`] counts.
    fours: Vec<Four>,
    /// Of each triangle its global number.
    names: Vec<u32>,
    /// Couplings of the rows with vertices before them, among each other, and with vertices behind them.
    before: Vec<Leading>,
    inside: Vec<Edge>,
    behind: Vec<Leading>,
    /// Where in the rows the diagonal block of each is.
    diagonals: Vec<u32>,
    /// Steps: how many of the fours are needed for the couplings among so many of the rows.
    steps: Vec<[usize; 2]>,
}

/// Rows of a step, whose triangles are in the nearest cache when blocks are made of them.
const STEP: usize = 64;

/// Two rows that are coupled, the former first.
#[derive(Clone, Copy, Debug)]
struct Edge {
    /// Where what its triangles say stands.
    parts: [u32; 2],
    rows: [u32; 2],
    /// Where its block is in each of the rows.
    places: [u32; 2],
}

/// A row that is coupled with a vertex outside the run.
#[derive(Clone, Copy, Debug)]
struct Leading {
    parts: [u32; 2],
    row: u32,
    /// As [`Around`] counts.
    other: u32,
    place: u32,
}

/// What a thread needs room for.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// Positions and velocities, and positions ahead by the time at which bending is looked at, as [`Around`] counts.
    pub(super) x: Vec<[f64; 4]>,
    pub(super) v: Vec<[f64; 4]>,
    pub(super) ahead: Vec<[f64; 4]>,
    /// The right-hand side, with a fourth number that stays zero; of other vertices than the rows it is of no use.
    pub(super) rhs: Vec<[f64; 4]>,
    /// Of each row the mass with drag on it, and what multiplies the sums of hinges.
    pub(super) rows: Vec<[f64; 2]>,
    /// What is coupled to each row, by columns.
    sums: Vec<[[f64; 4]; 3]>,
    coupled: Vec<Coupled>,
    /// How far each row is bent: the sum of what hinges say of it, as [`Around`] counts.
    bent: Vec<[f64; 4]>,
}

impl Triangles {
    /// Of rows that are given by global numbers, and the triangles that touch these.
    pub(super) fn new(
        model: &ClothModel,
        pattern: &Pattern,
        around: &Around,
        (rows, touching): (&Range<usize>, &[u32]),
    ) -> Self {
        let mine = |v: &u32| rows.contains(&(*v as usize));
        let (mut fours, mut names, mut parts) = (Vec::<Four>::new(), Vec::new(), Vec::new());
        let elements = touching.iter().copied();
        for index in elements.filter(|&index| model.is_element(index as usize)) {
            let corners = model.triangles()[index as usize];
            let mut order = [0, 1, 2];
            order.sort_unstable_by_key(|&corner| corners[corner]);
            let [a, b, c] = order.map(|corner| corners[corner]);
            let (at, lane) = (names.len(), names.len() % 4);
            if lane == 0 {
                fours.push(nobodys(around));
            }
            let rest = &model.membranes()[index as usize];
            let law = model.cloth_of_triangle()[index as usize];
            let corners = [a, b, c].map(|v| around.index(v));
            fours[at / 4].set(lane, (rest, order), law, corners);
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
        let start = pattern.block_columns(rows.start - first).0.start;
        let place = |row: u32, column: u32| {
            let (at, columns) = pattern.block_columns(row as usize - first);
            let place = columns.binary_search(&column);
            (at.start - start + place.expect("the pattern is symmetric")) as u32
        };
        let mut all = Self {
            fours,
            names,
            before: Vec::new(),
            inside: Vec::new(),
            behind: Vec::new(),
            diagonals: Vec::new(),
            steps: Vec::new(),
        };
        for row in rows.start as u32..rows.end as u32 {
            all.diagonals.push(place(row, row));
            for &column in pattern.block_columns(row as usize - first).1 {
                let parts = of_pair([row.min(column), row.max(column)]);
                let (own, place_here) = (row - rows.start as u32, place(row, column));
                let leading = Leading {
                    parts,
                    row: own,
                    other: around.index(column),
                    place: place_here,
                };
                if !mine(&column) {
                    let side = if column < row {
                        &mut all.before
                    } else {
                        &mut all.behind
                    };
                    side.push(leading);
                } else if column > row {
                    all.inside.push(Edge {
                        parts,
                        rows: [own, column - rows.start as u32],
                        places: [place_here, place(column, row)],
                    });
                }
            }
        }
        all.lay_out_steps(none, rows.len());
        all
    }

    /// Finds the steps; `none` is where no triangle stands.
    fn lay_out_steps(&mut self, none: u32, rows: usize) {
        let four_of = |part: u32| part as usize / (size_of::<Coupled>() / 8) / 4 + 1;
        let needed = |parts: [u32; 2]| {
            let fours = parts.into_iter().filter(|&part| part < none).map(four_of);
            fours.max().unwrap_or(0)
        };
        let before = self.before.iter().map(|edge| needed(edge.parts)).max();
        let (mut fours, mut edges) = (before.unwrap_or(0), 0);
        for end in (0..rows).step_by(STEP).map(|start| start + STEP) {
            let rest = self.inside[edges..].iter();
            let of_step = rest.take_while(|edge| (edge.rows[0] as usize) < end);
            for edge in of_step {
                fours = fours.max(needed(edge.parts));
                edges += 1;
            }
            self.steps.push([fours, edges]);
        }
        self.steps.push([self.fours.len(), edges]);
    }

    /// Writes every entry of the matrix, and adds what triangles and hinges push with to the right-hand side in `room`.
    pub(super) fn assemble(
        &self,
        hinges: &Hinges,
        laws: &[Law],
        times: &Times,
        matrix: &mut MatrixRows<'_>,
        room: &mut Room,
    ) -> Result<(), Collapsed> {
        widest(Assembling {
            of: self,
            hinges,
            laws,
            times,
            matrix,
            room,
        })
    }
}

/// Four triangles that are nobody's.
fn nobodys(around: &Around) -> Four {
    let rest = RestTriangle::new(CORNERS, &Material::COTTON, CORNERS[1]);
    let rest = rest.expect("it spans an area");
    let mut four = Four::default();
    for lane in 0..4 {
        four.set(lane, (&rest, [0, 1, 2]), 0, around.corners());
    }
    four
}

struct Assembling<'a, 'm> {
    of: &'a Triangles,
    hinges: &'a Hinges,
    laws: &'a [Law],
    times: &'a Times,
    matrix: &'a mut MatrixRows<'m>,
    room: &'a mut Room,
}

impl Loop for Assembling<'_, '_> {
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
        let Room {
            rows,
            sums,
            coupled,
            bent,
            rhs,
            ..
        } = &mut *self.room;
        // And one where there is no triangle.
        coupled.resize(4 * self.of.fours.len() + 1, [0.0; 28]);
        coupled[4 * self.of.fours.len()] = [0.0; 28];
        sums.clear();
        sums.resize(rows.len(), [[0.0; 4]; 3]);
        bent.clear();
        bent.resize(rhs.len(), [0.0; 4]);
        let (mut fours, mut edges) = (0, 0);
        for (nth, &[fours_end, edges_end]) in self.of.steps.iter().enumerate() {
            self.couple::<L, SAME>(lanes, fours..fours_end)?;
            if nth == 0 {
                self.write_leading(lanes, &self.of.before, true);
            }
            self.write_inside(lanes, edges..edges_end);
            (fours, edges) = (fours_end, edges_end);
        }
        self.write_leading(lanes, &self.of.behind, false);
        self.push_pairs(lanes);
        self.write_diagonals(lanes);
        self.write_scalars();
        Ok(())
    }

    /// Computes couplings, and adds impulses.
    #[inline(always)]
    fn couple<L: Lanes, const SAME: bool>(
        &mut self,
        lanes: L,
        mut fours: Range<usize>,
    ) -> Result<(), Collapsed> {
        self.ask_for_blocks(lanes, fours.clone());
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

    /// Asks for blocks that are written soon: of all of them as large a share as fours are of all fours.
    #[inline(always)]
    fn ask_for_blocks<L: Lanes>(&mut self, lanes: L, fours: Range<usize>) {
        let (blocks, _) = self.matrix.numbers_mut();
        let (count, all) = (blocks.len(), self.of.fours.len());
        let [from, to] = [fours.start, fours.end].map(|at| count * at / all.max(1));
        // Nearly one in each line of the cache.
        for block in &blocks[from..to] {
            lanes.prefetch(block, AHEAD);
        }
    }

    /// Computes the couplings of as many fours as vectors have, and adds impulses.
    #[inline(always)]
    fn couple_at<A: Arithmetic, const SAME: bool>(
        &mut self,
        numbers: A,
        at: usize,
    ) -> Result<(), Collapsed> {
        let (room, lanes) = (&mut *self.room, numbers.lanes());
        let coupled = &mut room.coupled.as_chunks_mut().0[at..at + A::FOURS];
        let of = &self.of.fours[at..at + A::FOURS];
        let (state, rhs) = ((&room.x[..], &room.v[..]), &mut room.rhs);
        couple::<A, SAME>(
            numbers,
            of,
            self.laws,
            state,
            self.times,
            coupled,
            |corner, impulse| {
                let sum = &mut rhs[corner as usize];
                *sum = lanes.store(lanes.add(lanes.load(sum), impulse));
            },
        )
        .map_err(|nth| Collapsed {
            triangle: self.of.names[4 * at + nth],
        })
    }

    /// Writes blocks of rows and columns that are in the run.
    #[inline(always)]
    fn write_inside<L: Lanes>(&mut self, lanes: L, edges: Range<usize>) {
        let Room {
            sums,
            coupled,
            rows,
            ahead,
            bent,
            ..
        } = &mut *self.room;
        let (coupled, near) = (coupled.as_flattened(), &self.hinges.near[..]);
        let (blocks, _) = self.matrix.numbers_mut();
        let identity = identity(lanes);
        for edge in &self.of.inside[edges] {
            let [row, other] = edge.rows.map(|row| row as usize);
            let [place, place_across] = edge.places.map(|place| place as usize);
            let part = columns(lanes, coupled, edge.parts);
            let across = transposed(lanes, part);
            add_columns(lanes, &mut sums[row], part);
            add_columns(lanes, &mut sums[other], across);
            let number = near[place];
            let beside = times(lanes, identity, number * rows[row][1]);
            write(lanes, &mut blocks[place], beside, part);
            write(lanes, &mut blocks[place_across], beside, across);
            let number = lanes.splat(number);
            let [of_row, of_other] = [row, other].map(|row| &ahead[row]);
            add_product(lanes, &mut bent[row], number, of_other);
            add_product(lanes, &mut bent[other], number, of_row);
        }
    }

    /// Writes blocks that lead out of the run: to vertices before it, or behind.
    #[inline(always)]
    fn write_leading<L: Lanes>(&mut self, lanes: L, edges: &[Leading], before: bool) {
        let Room {
            sums,
            coupled,
            rows,
            ahead,
            bent,
            ..
        } = &mut *self.room;
        let (coupled, near) = (coupled.as_flattened(), &self.hinges.near[..]);
        let (blocks, _) = self.matrix.numbers_mut();
        let identity = identity(lanes);
        for edge in edges {
            let (row, place) = (edge.row as usize, edge.place as usize);
            let mut part = columns(lanes, coupled, edge.parts);
            if before {
                part = transposed(lanes, part);
            }
            add_columns(lanes, &mut sums[row], part);
            let number = near[place];
            let beside = times(lanes, identity, number * rows[row][1]);
            write(lanes, &mut blocks[place], beside, part);
            let number = lanes.splat(number);
            add_product(lanes, &mut bent[row], number, &ahead[edge.other as usize]);
        }
    }

    /// Adds what hinges push with by the scalars.
    #[inline(always)]
    fn push_pairs<L: Lanes>(&mut self, lanes: L) {
        let Room { ahead, bent, .. } = &mut *self.room;
        for pair in &self.hinges.pairs {
            let number = lanes.splat(pair.number);
            let [one, other] = pair.vertices.map(|vertex| vertex as usize);
            add_product(lanes, &mut bent[one], number, &ahead[other]);
            add_product(lanes, &mut bent[other], number, &ahead[one]);
        }
    }

    /// Writes the diagonal, and adds all that hinges push with.
    #[inline(always)]
    fn write_diagonals<L: Lanes>(&mut self, lanes: L) {
        let room = &mut *self.room;
        let (blocks, _) = self.matrix.numbers_mut();
        let against = lanes.splat(-self.times.tau);
        let of_rows = self.of.diagonals.iter().zip(&room.sums).zip(&room.rows);
        let bending = room.ahead.iter().zip(&room.bent);
        let pushed = room.rhs.iter_mut().zip(bending);
        for (((&place, [p, q, r]), [mass, bending]), (rhs, (ahead, bent))) in of_rows.zip(pushed) {
            let number = self.hinges.near[place as usize];
            let own = mass + number * bending;
            // The upper triangle, for the sums are symmetric but for rounding.
            blocks[place as usize] = [
                p[0] + own,
                q[0],
                r[0],
                q[0],
                q[1] + own,
                r[1],
                r[0],
                r[1],
                r[2] + own,
            ];
            let bent = lanes.fused(lanes.load(bent), lanes.splat(number), lanes.load(ahead));
            *rhs = lanes.store(lanes.fused(lanes.load(rhs), against, bent));
        }
    }

    fn write_scalars(&mut self) {
        let (_, scalars) = self.matrix.numbers_mut();
        let mut start = 0;
        for &(end, row) in &self.hinges.cloths {
            let bending = self.room.rows[row][1];
            let numbers = self.hinges.far[start..end].iter();
            for (scalar, number) in scalars[start..end].iter_mut().zip(numbers) {
                *scalar = number * bending;
            }
            start = end;
        }
    }
}

/// How many bytes ahead blocks are asked for.
const AHEAD: usize = 8192;

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

/// Adds a vector times a number to a sum.
#[inline(always)]
fn add_product<L: Lanes>(lanes: L, sum: &mut [f64; 4], number: L::Four, vector: &[f64; 4]) {
    *sum = lanes.store(lanes.fused(lanes.load(sum), number, lanes.load(vector)));
}

/// What one or two triangles say of an edge, by columns, with fourth numbers of no use.
#[inline(always)]
fn columns<L: Lanes>(lanes: L, coupled: &[f64], [one, other]: [u32; 2]) -> [L::Four; 3] {
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
fn add_columns<L: Lanes>(lanes: L, sums: &mut [[f64; 4]; 3], columns: [L::Four; 3]) {
    let ([a, b, c], [p, q, r]) = (sums, columns);
    *a = lanes.store(lanes.add(lanes.load(a), p));
    *b = lanes.store(lanes.add(lanes.load(b), q));
    *c = lanes.store(lanes.add(lanes.load(c), r));
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
