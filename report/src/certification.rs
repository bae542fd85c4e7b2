//! The paragraph on certification: how often cloth would have crossed, and what was given up.

use crate::format::{count, many};
use crate::record::{Certified, Row};

/// The paragraph of a run's steps; nothing if nothing would have crossed.
pub(crate) fn certification(steps: &[Row]) -> Option<String> {
    let peak = |of: fn(&Certified) -> u64| {
        let all = steps.iter().filter(|row| of(&row.certified) > 0);
        let (mut sum, mut number, mut most) = (0u64, 0u64, (0, 0));
        for row in all {
            let here = of(&row.certified);
            sum = sum.saturating_add(here);
            number += 1;
            if here > most.0 {
                most = (here, row.step);
            }
        }
        (sum, number, most)
    };
    let (hits, hit_steps, (most_hits, hit_step)) = peak(|c| c.hits);
    let (cuts, cut_steps, (most_cuts, cut_step)) = peak(|c| c.cut);
    let (_, _, (most_squeezed, squeezed_step)) = peak(|c| c.squeezed);
    if hits == 0 && cuts == 0 && most_squeezed == 0 {
        return None;
    }
    let mut text = format!(
        "Certification: {} of features would have crossed, in {}",
        many(hits, "pair"),
        many(hit_steps, "step")
    );
    if hits > 0 {
        text += &format!(", most of them in step {hit_step} ({})", count(most_hits));
    }
    text += &match cuts {
        0 => ". Impulses resolved all of them, and no displacement was cut.".to_owned(),
        _ => format!(
            ". {} cut, in {}, most of them in step {cut_step} ({}).",
            match cuts {
                1 => "1 displacement was".to_owned(),
                _ => format!("{} displacements were", count(cuts)),
            },
            many(cut_steps, "step"),
            count(most_cuts)
        ),
    };
    if most_squeezed > 0 {
        text += &format!(
            " Bodies left no room for {} after step {squeezed_step}.",
            match most_squeezed {
                1 => "1 vertex".to_owned(),
                _ => format!("{} vertices", count(most_squeezed)),
            }
        );
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(all: &[[u64; 3]]) -> Vec<Row> {
        let columns =
            "step,collide_s,physics_s,solve_s,response_s,tests,steals,hits,cut,squeezed\n";
        let line = |(k, [hits, cut, squeezed]): (usize, &[u64; 3])| {
            format!("{},0,0,0,0,0,0,{hits},{cut},{squeezed}\n", k + 1)
        };
        let lines: String = all.iter().enumerate().map(line).collect();
        Row::read_all(&format!("{columns}{lines}")).unwrap()
    }

    #[test]
    fn sums_and_the_worst_steps_are_told() {
        assert_eq!(certification(&rows(&[[0; 3]; 4])), None);
        assert_eq!(certification(&[]), None);
        let one = rows(&[[0, 0, 0], [2000, 0, 0], [12, 0, 0]]);
        assert_eq!(
            certification(&one).unwrap(),
            "Certification: 2,012 pairs of features would have crossed, in 2 steps, most of them in step 2 \
             (2,000). Impulses resolved all of them, and no displacement was cut."
        );
        let all = rows(&[[5, 1, 0], [7, 3, 2], [0, 0, 1]]);
        assert_eq!(
            certification(&all).unwrap(),
            "Certification: 12 pairs of features would have crossed, in 2 steps, most of them in step 2 (7). \
             4 displacements were cut, in 2 steps, most of them in step 2 (3). Bodies left no room for 2 vertices \
             after step 2."
        );
    }
}
