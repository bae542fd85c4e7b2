//! Sorting by rows: what belongs to vertices of meshes, in a fraction of a general sort's time.

/// Items in ascending order, of which `first` tells the number that decides first: they are sorted
/// into one row for each, and each row on its own, for rows of meshes are short.
///
/// `items` gives all of them, as often as it is asked, and the numbers are about as many as items.
pub(crate) fn sorted<T: Copy + Ord, I: Iterator<Item = T>>(
    items: impl Fn() -> I,
    first: impl Fn(&T) -> u32,
) -> Vec<T> {
    let Some(any) = items().next() else {
        return Vec::new();
    };
    let (highest, count) = items().fold((0, 0), |(highest, count), item| {
        (first(&item).max(highest), count + 1)
    });
    let mut starts = vec![0_usize; highest as usize + 2];
    items().for_each(|item| starts[first(&item) as usize + 1] += 1);
    for row in 1..starts.len() {
        starts[row] += starts[row - 1];
    }
    let mut next = starts.clone();
    let mut sorted = vec![any; count];
    for item in items() {
        let at = &mut next[first(&item) as usize];
        sorted[*at] = item;
        *at += 1;
    }
    drop(next);
    for row in starts.windows(2) {
        sorted[row[0]..row[1]].sort_unstable();
    }
    sorted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_come_out_as_sorting_all_at_once_puts_them(
            items in prop::collection::vec([0u32..9, 0u32..9, 0u32..9], 0..60)
        ) {
            let mut expected = items.clone();
            expected.sort_unstable();
            prop_assert_eq!(sorted(|| items.iter().copied(), |item| item[0]), expected);
        }
    }
}
