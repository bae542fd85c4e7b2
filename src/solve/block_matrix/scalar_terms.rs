//! Sums of scalars times identity, entry by entry of the matrix.
//!
//! What hinges add to the matrix is five numbers in most entries and eighteen on the diagonal. Gathered, an entry is read and written
//! once, and not once for each of them.

use std::ops::Range;

use super::{BlockSlot, Columns, MatrixRows, Pattern, ScalarPlace, ScalarSlot};
use crate::simd::Lanes;

/// What is added up of scalars, entry by entry, in rows that follow each other: where each of the terms stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScalarTerms {
    /// For each block of the rows where its terms end; those of the next one follow.
    block_ends: Vec<u32>,
    block_terms: Vec<u32>,
    scalar_ends: Vec<u32>,
    scalar_terms: Vec<u32>,
}

impl ScalarTerms {
    /// For some owned rows (local indices); an entry's terms keep the order in which they come.
    ///
    /// # Panics
    /// If a slot is of another row.
    pub(crate) fn new(
        pattern: &Pattern,
        rows: &Range<usize>,
        terms: impl IntoIterator<Item = (ScalarSlot, u32)>,
    ) -> Self {
        let of = |columns: &Columns| {
            columns.starts[rows.start] as usize..columns.starts[rows.end] as usize
        };
        let (blocks, scalars) = (of(&pattern.blocks), of(&pattern.scalars));
        let (mut of_blocks, mut of_scalars) = (Vec::new(), Vec::new());
        for (slot, term) in terms {
            match slot.0 {
                ScalarPlace::Block(BlockSlot(at)) => of_blocks.push((at as usize, term)),
                ScalarPlace::Scalar(at) => of_scalars.push((at as usize, term)),
            }
        }
        let (block_ends, block_terms) = by_place(&blocks, of_blocks);
        let (scalar_ends, scalar_terms) = by_place(&scalars, of_scalars);
        Self {
            block_ends,
            block_terms,
            scalar_ends,
            scalar_terms,
        }
    }
}

/// Terms ordered by their places, and where those of each place end.
fn by_place(places: &Range<usize>, mut terms: Vec<(usize, u32)>) -> (Vec<u32>, Vec<u32>) {
    terms.sort_by_key(|&(at, _)| at);
    let end = |at| terms.partition_point(|&(other, _)| other <= at) as u32;
    let ends: Vec<u32> = places.clone().map(end).collect();
    let of_places = terms.first().is_none_or(|first| first.0 >= places.start)
        && terms.last().is_none_or(|last| last.0 < places.end);
    assert!(of_places, "terms are of these rows");
    (ends, terms.into_iter().map(|(_, term)| term).collect())
}

impl MatrixRows<'_> {
    /// Adds to each entry its terms: the numbers of `values` that the places say, in their order.
    ///
    /// # Panics
    /// If the places are of other rows.
    #[inline(always)]
    pub(crate) fn add_terms(&mut self, lanes: impl Lanes, places: &ScalarTerms, values: &[f64]) {
        let mut at = 0;
        let (blocks, _) = self.blocks.as_chunks_mut::<9>();
        for (block, &end) in blocks.iter_mut().zip(&places.block_ends) {
            let terms = &places.block_terms[at..end as usize];
            let mut sums = lanes.load(&[block[0], block[4], block[8], 0.0]);
            for &term in terms {
                sums = lanes.add(sums, lanes.splat(values[term as usize]));
            }
            [block[0], block[4], block[8], _] = lanes.store(sums);
            at = end as usize;
        }
        at = 0;
        for (scalar, &end) in self.scalars.iter_mut().zip(&places.scalar_ends) {
            for &term in &places.scalar_terms[at..end as usize] {
                *scalar += values[term as usize];
            }
            at = end as usize;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{Loop, widest};
    use crate::solve::testing::{Noise, Sheet};

    #[test]
    fn terms_are_added_in_their_order_where_they_belong() {
        struct Terms<'a, 'm>(&'a mut MatrixRows<'m>, &'a ScalarTerms, &'a [f64]);
        impl Loop for Terms<'_, '_> {
            type Output = ();
            #[inline(always)]
            fn run<L: Lanes>(self, lanes: L) {
                self.0.add_terms(lanes, self.1, self.2);
            }
        }
        let sheet = Sheet::new(9, 4);
        let mut matrix = sheet.system(1, 0, 11).matrix;
        let mut expected = matrix.clone();
        let mut noise = Noise::new(5);
        let values: Vec<f64> = (0..400).map(|_| noise.vector().x).collect();
        let rows = 20..61;
        let pattern = matrix.pattern().clone();
        let columns = |row: usize| {
            let (near, far) = (pattern.block_columns(row).1, pattern.scalar_columns(row).1);
            [near, far].concat()
        };
        // Terms of all rows in turn, some of them twice.
        let mut terms = Vec::new();
        for (term, row) in (0_u32..).zip(rows.clone().cycle()).take(values.len()) {
            let columns = columns(row);
            let column = columns[term as usize / 3 % columns.len()];
            let slot = pattern.scalar_slot(row, column).unwrap();
            expected.add_scalar(slot, values[term as usize]);
            terms.push((slot, term));
        }
        let terms = ScalarTerms::new(&pattern, &rows, terms);
        let mut parts = matrix.rows_mut(&[0..20, 20..61, 61..81]);
        widest(Terms(&mut parts[1], &terms, &values));
        assert_eq!(&*matrix.blocks, &*expected.blocks);
        assert_eq!(&*matrix.scalars, &*expected.scalars);
    }
}
