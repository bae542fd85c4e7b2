//! Which elements touch which of a rank's runs of rows, found in one pass over all elements, however many runs there are.

use std::ops::Range;

use crate::physics::ClothModel;

/// Of each run of rows the elements that touch it, by index, ascending; an element may touch several.
#[derive(Debug)]
pub(crate) struct Incidence {
    pub(crate) triangles: Vec<u32>,
    pub(crate) hinges: Vec<u32>,
    pub(crate) plates: Vec<u32>,
    pub(crate) folds: Vec<u32>,
    pub(crate) shells: Vec<u32>,
    pub(crate) springs: Vec<u32>,
}

impl Incidence {
    /// For runs that follow each other, as global numbers.
    pub(crate) fn of_runs(model: &ClothModel, runs: &[Range<usize>]) -> Vec<Self> {
        let triangles = touching(model.triangles().iter().copied(), runs);
        let hinges = touching(model.hinges().iter().map(|h| h.vertices), runs);
        let plates = touching(model.plates().iter().map(|p| p.vertices), runs);
        let folds = touching(model.folds().iter().map(|f| f.vertices), runs);
        let shells = touching(model.shells().iter().map(|s| s.vertices), runs);
        let springs = touching(model.springs().iter().map(|s| s.vertices), runs);
        let flat = triangles.into_iter().zip(hinges).zip(plates);
        let all = flat.zip(folds.into_iter().zip(shells).zip(springs));
        all.map(
            |(((triangles, hinges), plates), ((folds, shells), springs))| Self {
                triangles,
                hinges,
                plates,
                folds,
                shells,
                springs,
            },
        )
        .collect()
    }
}

/// Of each run the indices of elements that have one of its rows among their vertices.
fn touching<const N: usize>(
    elements: impl Iterator<Item = [u32; N]>,
    runs: &[Range<usize>],
) -> Vec<Vec<u32>> {
    let mut of_runs = vec![Vec::new(); runs.len()];
    // The last run that was found: the next vertex is often in it too.
    let mut last = 0;
    for (index, vertices) in (0_u32..).zip(elements) {
        for vertex in vertices {
            let vertex = vertex as usize;
            if runs.get(last).is_none_or(|run| !run.contains(&vertex)) {
                let run = runs.partition_point(|run| run.end <= vertex);
                if runs.get(run).is_none_or(|run| vertex < run.start) {
                    continue;
                }
                last = run;
            }
            let of_run: &mut Vec<u32> = &mut of_runs[last];
            if of_run.last() != Some(&index) {
                of_run.push(index);
            }
        }
    }
    of_runs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_run_has_the_elements_with_one_of_its_rows_and_each_once(
            elements in prop::collection::vec(prop::array::uniform3(0_u32..40), 0..60),
            first in 0_usize..10,
            lengths in prop::collection::vec(1_usize..8, 0..6),
        ) {
            let ends = lengths.iter().scan(first, |at, length| {
                *at += length;
                Some(*at - length..*at)
            });
            let runs: Vec<Range<usize>> = ends.collect();
            let found = touching(elements.iter().copied(), &runs);
            prop_assert_eq!(found.len(), runs.len());
            for (found, run) in found.iter().zip(&runs) {
                let touches = |&index: &u32| {
                    elements[index as usize].iter().any(|&v| run.contains(&(v as usize)))
                };
                let expected: Vec<u32> = (0..elements.len() as u32).filter(touches).collect();
                prop_assert_eq!(found, &expected);
            }
        }
    }
}
