//! Notes that a run prints where it starts, of things that are no mistakes.

/// The imbalance of ranks from which on another cut is proposed.
const UNEVEN: f64 = 1.25;
/// The imbalance that a proposed cut is expected to stay below: patches are not quite alike.
const BETTER: f64 = 1.2;

/// Says that ranks share the patches of the cloth unevenly, and which cut would do better.
#[must_use]
pub fn uneven(ranks: u64, vertices: usize, patches: u64, imbalance: f64) -> Option<String> {
    if imbalance <= UNEVEN {
        return None;
    }
    let told = format!("ranks share {patches} patches with an imbalance of {imbalance:.3}");
    let finer = |finer: &u64| *finer > patches && expected(*finer, ranks) <= BETTER;
    let wanted = (0..u64::BITS - 1).map(|level| 1 << level).find(finer)?;
    // Patches of fewer vertices are all border.
    const FEWEST: u64 = 16;
    Some(if wanted * FEWEST <= vertices as u64 {
        format!(
            "{told}: with partition.patches = {wanted} it is about {:.2}, and the state hash differs",
            expected(wanted, ranks)
        )
    } else {
        let fewer = (1..ranks).rev();
        let mut fewer = fewer.map(|fewer| (fewer, expected(patches, fewer)));
        let (fewer, imbalance) = fewer.find(|(_, imbalance)| *imbalance <= BETTER)?;
        format!(
            "{told}, and the cloth is too small for more patches: with {fewer} ranks it is about {imbalance:.2}"
        )
    })
}

/// The imbalance of ranks that own runs of patches of even weight.
fn expected(patches: u64, ranks: u64) -> f64 {
    (patches.div_ceil(ranks) * ranks) as f64 / patches as f64
}

#[cfg(test)]
mod tests {
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
        let quality = partition_record(&world, ranks).unwrap();
        let vertices = world.model().masses().len();
        uneven(ranks as u64, vertices, quality.patches, quality.imbalance)
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
        assert!(small.contains("with 4 ranks "), "{small}");
    }
}
