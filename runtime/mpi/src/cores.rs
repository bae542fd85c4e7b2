//! How many cores the ranks of a node have between them.
//!
//! A rank that waits may spin only where nobody else wants its core. The launcher says so in the
//! set of cores that each process may use; a container, in its share of processor time.

use std::collections::BTreeSet;
use std::thread;

/// The cores that a process may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cores {
    /// The numbers of the cores that the process may use.
    allowed: BTreeSet<u32>,
    /// How many of them it may keep busy.
    busy: u32,
}

impl Cores {
    /// Returns the cores of this process.
    #[must_use]
    pub fn here() -> Self {
        let busy = thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        let allowed = affinity().unwrap_or_else(|| (0..busy).collect());
        Self { allowed, busy }
    }

    /// How many threads they can run at once.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.busy
    }

    /// A container gives less time than the cores it shows.
    fn rationed(&self) -> bool {
        (self.busy as usize) < self.allowed.len()
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let words = [self.busy].into_iter().chain(self.allowed.iter().copied());
        words.flat_map(u32::to_le_bytes).collect()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let (words, _) = bytes.as_chunks();
        let mut words = words.iter().map(|&word| u32::from_le_bytes(word));
        let busy = words.next().unwrap_or(1);
        Self {
            allowed: words.collect(),
            busy,
        }
    }
}

/// Whether this many workers of each rank on the node of `rank` find a core each. `nodes` and
/// `cores` are of all ranks.
#[must_use]
pub fn roomy(rank: usize, nodes: &[u32], cores: &[Cores], workers: u32) -> bool {
    let own = nodes.get(rank);
    let together = nodes
        .iter()
        .zip(cores)
        .filter(|(node, _)| Some(*node) == own);
    let together: Vec<&Cores> = together.map(|(_, cores)| cores).collect();
    let union: BTreeSet<u32> = together
        .iter()
        .flat_map(|c| c.allowed.iter().copied())
        .collect();
    let rations = together.iter().filter(|c| c.rationed()).map(|c| c.busy);
    let room = rations.fold(union.len() as u32, u32::min);
    together.iter().all(|c| c.busy >= workers) && together.len() as u32 * workers <= room
}

/// The numbers of the cores that this process may use, where the system says.
#[cfg(target_os = "linux")]
fn affinity() -> Option<BTreeSet<u32>> {
    let set = rustix::thread::sched_getaffinity(None).ok()?;
    let all = 0..rustix::thread::CpuSet::MAX_CPU;
    Some(
        all.filter(|&core| set.is_set(core))
            .map(|core| core as u32)
            .collect(),
    )
}

#[cfg(not(target_os = "linux"))]
fn affinity() -> Option<BTreeSet<u32>> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores(allowed: impl IntoIterator<Item = u32>, busy: u32) -> Cores {
        Cores {
            allowed: allowed.into_iter().collect(),
            busy,
        }
    }

    #[test]
    fn ranks_that_share_all_cores_of_a_node_may_be_as_many_as_those() {
        let four = vec![cores(0..4, 4); 6];
        assert!(roomy(0, &[0; 4], &four[..4], 1));
        assert!(roomy(0, &[0; 2], &four[..2], 2));
        assert!(!roomy(0, &[0; 5], &four[..5], 1));
        assert!(!roomy(0, &[0; 3], &four[..3], 2));
        // The first of two nodes has four of six ranks.
        let nodes = [0, 0, 0, 0, 1, 1];
        assert!(roomy(0, &nodes, &four, 1));
        assert!(!roomy(3, &nodes, &four, 2));
        assert!(roomy(4, &nodes, &four, 2));
    }

    #[test]
    fn ranks_bound_to_the_same_core_have_no_room() {
        assert!(roomy(0, &[0, 0], &[cores([0], 1), cores([1], 1)], 1));
        assert!(!roomy(0, &[0, 0], &[cores([1], 1), cores([1], 1)], 1));
        assert!(!roomy(1, &[0, 0], &[cores([0], 1), cores([1, 2], 2)], 2));
    }

    #[test]
    fn a_containers_ration_counts_for_all_its_ranks() {
        let rationed = vec![cores(0..64, 2); 4];
        assert!(roomy(0, &[0; 2], &rationed[..2], 1));
        assert!(!roomy(0, &[0; 4], &rationed, 1));
    }

    #[test]
    fn this_process_has_cores_and_says_so_in_bytes() {
        let here = Cores::here();
        assert!(here.count() >= 1 && here.allowed.len() as u32 >= here.count());
        assert_eq!(Cores::from_bytes(&here.to_bytes()), here);
        assert!(roomy(0, &[0], std::slice::from_ref(&here), here.count()));
        assert!(!roomy(
            0,
            &[0],
            std::slice::from_ref(&here),
            here.count() + 1
        ));
    }
}
