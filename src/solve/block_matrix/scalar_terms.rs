//! Sums of scalars times identity, entry by entry of the matrix.
//!
//! What hinges add to the matrix is five numbers in most entries and eighteen on the diagonal, and it is the same in every step of one
//! length. So these are summed up once, and a matrix begins with the sums instead of zeros.

use std::ops::Range;

use super::{BlockSlot, Columns, MatrixRows, Pattern, ScalarPlace, ScalarSlot};

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

/// What was added up, for each entry of rows that follow each other.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScalarSums {
    of_blocks: Vec<f64>,
    of_scalars: Vec<f64>,
}

impl ScalarSums {
    /// Sums up of each entry its terms: the numbers of `values` that the places say, in their order.
    ///
    /// # Panics
    /// If there are fewer values than the places say.
    pub(crate) fn sum(&mut self, places: &ScalarTerms, values: &[f64]) {
        let ScalarTerms {
            block_ends,
            block_terms,
            scalar_ends,
            scalar_terms,
        } = places;
        sum_up(block_ends, block_terms, values, &mut self.of_blocks);
        sum_up(scalar_ends, scalar_terms, values, &mut self.of_scalars);
    }
}

fn sum_up(ends: &[u32], terms: &[u32], values: &[f64], sums: &mut Vec<f64>) {
    sums.clear();
    let mut at = 0;
    sums.extend(ends.iter().map(|&end| {
        let terms = &terms[at..end as usize];
        at = end as usize;
        terms
            .iter()
            .fold(0.0, |sum, &term| sum + values[term as usize])
    }));
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
    /// Sets every entry to its sum, times identity where it is a block.
    ///
    /// # Panics
    /// If the sums are of other rows.
    pub(crate) fn begin_with(&mut self, sums: &ScalarSums) {
        let (blocks, _) = self.blocks.as_chunks_mut::<9>();
        assert_eq!(blocks.len(), sums.of_blocks.len(), "sums are of these rows");
        for (block, &sum) in blocks.iter_mut().zip(&sums.of_blocks) {
            *block = [sum, 0.0, 0.0, 0.0, sum, 0.0, 0.0, 0.0, sum];
        }
        self.scalars.copy_from_slice(&sums.of_scalars);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::testing::{Noise, Sheet};

    #[test]
    fn entries_begin_with_the_sums_of_their_terms() {
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
        let runs = [0..20, rows.clone(), 61..81];
        expected.rows_mut(&runs)[1].clear();
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
        let mut sums = ScalarSums::default();
        // Sums of another time are forgotten.
        sums.sum(&terms, &[1.0; 400]);
        sums.sum(&terms, &values);
        matrix.rows_mut(&runs)[1].begin_with(&sums);
        assert_eq!(&*matrix.blocks, &*expected.blocks);
        assert_eq!(&*matrix.scalars, &*expected.scalars);
    }
}
