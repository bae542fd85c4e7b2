//! The elements that touch each of a rank's runs of rows.
//!
//! They are found in one pass over the elements of the patches that a rank reads, however many runs
//! there are.

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
    /// `read` are ranges of vertices, ascending, that hold all vertices of these elements.
    pub(crate) fn of_runs(
        model: &ClothModel,
        runs: &[Range<usize>],
        read: &[Range<usize>],
    ) -> Vec<Self> {
        let mut all: Vec<Self> = runs.iter().map(|_| Self::default()).collect();
        let mut take = |of_runs: Vec<Vec<u32>>, field: fn(&mut Self) -> &mut Vec<u32>| {
            for (incidence, elements) in all.iter_mut().zip(of_runs) {
                *field(incidence) = elements;
            }
        };
        let among = Among { runs, read };
        let found = among.touching(model.triangles(), |corners| *corners);
        take(found, |all| &mut all.triangles);
        let quadratic = model.quadratic();
        let found = among.touching(&quadratic.hinges, |hinge| hinge.vertices);
        take(found, |all| &mut all.hinges);
        let found = among.touching(&quadratic.plates, |plate| plate.vertices);
        take(found, |all| &mut all.plates);
        let found = among.touching(model.folds(), |fold| fold.vertices);
        take(found, |all| &mut all.folds);
        let found = among.touching(model.shells(), |shell| shell.vertices);
        take(found, |all| &mut all.shells);
        let found = among.touching(model.springs(), |spring| spring.vertices);
        take(found, |all| &mut all.springs);
        let found = among.touching(model.stitches(), |stitch| stitch.vertices);
        take(found, |all| &mut all.stitches);
        all
    }
}

/// Runs of rows, and the ranges of vertices that hold all vertices of elements which touch them.
#[derive(Clone, Copy)]
struct Among<'a> {
    runs: &'a [Range<usize>],
    read: &'a [Range<usize>],
}

impl Among<'_> {
    /// The numbers of the elements that have a row of each run among their vertices. Elements are
    /// in the order of their lowest vertices.
    fn touching<E, const N: usize>(
        self,
        elements: &[E],
        vertices: impl Fn(&E) -> [u32; N],
    ) -> Vec<Vec<u32>> {
        let lowest = |element: &E| vertices(element).into_iter().fold(u32::MAX, u32::min) as usize;
        let before = |end: usize| elements.partition_point(|element| lowest(element) < end);
        let read = self.read.iter();
        let numbers = read.flat_map(|read| before(read.start)..before(read.end));
        let all = numbers.map(|number| (number as u32, vertices(&elements[number])));
        touching(all, self.runs)
    }
}

/// The numbers of the elements that have a row of each run among their vertices. Numbers ascend.
fn touching<const N: usize>(
    elements: impl Iterator<Item = (u32, [u32; N])>,
    runs: &[Range<usize>],
) -> Vec<Vec<u32>> {
    let mut of_runs = vec![Vec::new(); runs.len()];
    // The run that was found last: the next vertex is often in it too.
    let mut last = 0;
    for (index, vertices) in elements {
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
            let mut elements = elements;
            elements.sort_by_key(|of| of.iter().copied().min());
            // All vertices of elements that touch a run, and some more.
            let mut read: Vec<usize> = (elements.iter())
                .filter(|of| of.iter().any(|&v| runs.iter().any(|run| run.contains(&(v as usize)))))
                .flatten()
                .map(|&v| v as usize)
                .collect();
            read.sort_unstable();
            read.dedup();
            let read: Vec<Range<usize>> = read.into_iter().map(|v| v..v + 1).collect();
            let among = Among { runs: &runs, read: &read };
            let found = among.touching(&elements, |corners| *corners);
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
