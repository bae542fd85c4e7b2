//! The elements that touch each of a rank's runs of rows.
//!
//! They are found in one pass over all elements, however many runs there are.

use std::ops::Range;

use crate::physics::ClothModel;

/// The numbers of the elements that touch a run of rows, by kind, ascending. An element may touch
/// several runs.
#[derive(Debug, Default)]
pub(crate) struct Incidence {
    pub(crate) triangles: Vec<u32>,
    pub(crate) hinges: Vec<u32>,
    pub(crate) plates: Vec<u32>,
    pub(crate) folds: Vec<u32>,
    pub(crate) shells: Vec<u32>,
    pub(crate) springs: Vec<u32>,
    pub(crate) stitches: Vec<u32>,
}

/// A run of rows, with the elements that touch it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IncidentRun<'a> {
    /// The global numbers of the rows.
    pub(crate) rows: &'a Range<usize>,
    pub(crate) elements: &'a Incidence,
}

impl Incidence {
    /// Finds the elements of each of several runs that follow each other, given by global numbers.
    pub(crate) fn of_runs(model: &ClothModel, runs: &[Range<usize>]) -> Vec<Self> {
        let mut all: Vec<Self> = runs.iter().map(|_| Self::default()).collect();
        let mut take = |of_runs: Vec<Vec<u32>>, field: fn(&mut Self) -> &mut Vec<u32>| {
            for (incidence, elements) in all.iter_mut().zip(of_runs) {
                *field(incidence) = elements;
            }
        };
        let vertices = model.triangles().iter().copied();
        take(touching(vertices, runs), |all| &mut all.triangles);
        let quadratic = model.quadratic();
        let vertices = quadratic.hinges.iter().map(|hinge| hinge.vertices);
        take(touching(vertices, runs), |all| &mut all.hinges);
        let vertices = quadratic.plates.iter().map(|plate| plate.vertices);
        take(touching(vertices, runs), |all| &mut all.plates);
        let vertices = model.folds().iter().map(|fold| fold.vertices);
        take(touching(vertices, runs), |all| &mut all.folds);
        let vertices = model.shells().iter().map(|shell| shell.vertices);
        take(touching(vertices, runs), |all| &mut all.shells);
        let vertices = model.springs().iter().map(|spring| spring.vertices);
        take(touching(vertices, runs), |all| &mut all.springs);
        let vertices = model.stitches().iter().map(|stitch| stitch.vertices);
        take(touching(vertices, runs), |all| &mut all.stitches);
        all
    }
}

/// The numbers of the elements that have a row of each run among their vertices.
fn touching<const N: usize>(
    elements: impl Iterator<Item = [u32; N]>,
    runs: &[Range<usize>],
) -> Vec<Vec<u32>> {
    let mut of_runs = vec![Vec::new(); runs.len()];
    // The run that was found last: the next vertex is often in it too.
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
