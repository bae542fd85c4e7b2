//! What is worth a line where a run starts, and is nobody's mistake.

use super::RunOptions;
use crate::output::PartitionRecord;

/// Ranks share the cloth so unevenly that another cut is proposed.
const UNEVEN: f64 = 1.25;
/// A cut that is proposed is to have less, for patches are not quite alike.
const BETTER: f64 = 1.2;

/// That ranks share the cloth unevenly, and what would do better.
pub(super) fn uneven(
    options: &RunOptions,
    vertices: usize,
    quality: &PartitionRecord,
) -> Option<String> {
    let ranks = options.ranks as u64;
    if quality.imbalance <= UNEVEN {
        return None;
    }
    let told = format!(
        "ranks share {} patches with an imbalance of {:.3}",
        quality.patches, quality.imbalance
    );
    let finer = |patches: &u64| *patches > quality.patches && expected(*patches, ranks) <= BETTER;
    let wanted = (0..u64::BITS - 1).map(|level| 1 << level).find(finer)?;
    // Patches of fewer vertices are all border.
    const FEWEST: u64 = 16;
    Some(if wanted * FEWEST <= vertices as u64 {
        format!(
            "{told}: with partition.patches = {wanted} it is some {:.2}, and the state hash another",
            expected(wanted, ranks)
        )
    } else {
        let fewer = (1..ranks).rev();
        let mut fewer = fewer.map(|fewer| (fewer, expected(quality.patches, fewer)));
        let (fewer, imbalance) = fewer.find(|(_, imbalance)| *imbalance <= BETTER)?;
        format!(
            "{told}, and the cloth is too small for more patches: with --ranks {fewer} it is some {imbalance:.2}"
        )
    })
}

/// The imbalance of ranks that own runs of patches of even weight.
fn expected(patches: u64, ranks: u64) -> f64 {
    (patches.div_ceil(ranks) * ranks) as f64 / patches as f64
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::{Driver, Show, Stop};
    use super::*;
    use crate::run::summary::partition_record;
    use crate::scene::Scene;
    use crate::step::World;

    fn told(cloth: &str, patches: u64, ranks: usize) -> Option<String> {
        let text = format!(
            "partition.patches = {patches}\n[[cloth]]\n{cloth}\n\
             material = {{ density = 0.15, stretch = 1000, bending = 1e-5 }}\n"
        );
        let world = World::build(&Scene::parse(&text, None, &[]).unwrap()).unwrap();
        let options = RunOptions {
            ranks,
            threads: 1,
            progress_thread: false,
            driver: Driver::Threads,
            steps: None,
            out: PathBuf::new(),
            resume: None,
            stop: Stop::before(None),
            trace: None,
            record: None,
            audit: None,
            progress: Show::Nothing,
            command: Vec::new(),
            hosts: Vec::new(),
            mpi: None,
        };
        let quality = partition_record(&world, ranks).unwrap();
        uneven(&options, world.model().masses().len(), &quality)
    }

    #[test]
    fn uneven_ranks_are_told_with_patches_that_do_better() {
        let cloth = "grid = { size = 1, vertices = 40 }";
        assert_eq!(told(cloth, 8, 8), None);
        let uneven = told(cloth, 8, 7).unwrap();
        let proposed = uneven.split("partition.patches = ").nth(1).unwrap();
        let proposed = proposed.split(' ').next().unwrap().parse().unwrap();
        assert_eq!(proposed, 32, "{uneven}");
        assert_eq!(told(cloth, proposed, 7), None);
        // 144 vertices are few for 32 patches.
        let small = told("grid = { size = 1, vertices = 12 }", 8, 7).unwrap();
        assert!(small.contains("--ranks 4 "), "{small}");
    }
}
