//! The keys of `[partition]`.

use crate::scene::Partition;
use crate::scene::form::Count;
use crate::scene::key::{Key, Section, Value};
use crate::scene::reader::Table;

type Of<F> = Value<Partition, F>;

impl Section for Partition {
    const NAME: &'static str = "partition";

    const KEYS: &'static [Key<Self>] = &[Key::new(
        "patches",
        &Of {
            form: Count(1, MOST_PATCHES),
            get: |partition| partition.patches.map(|patches| patches as u64),
            set: |partition, patches| partition.patches = usize::try_from(patches).ok(),
        },
        "The number of patches, which is a power of two.",
    )
    .unset("from the mesh")];

    fn check(&self, table: &Table<'_>) {
        if let Some(patches) = self.patches.filter(|patches| !patches.is_power_of_two()) {
            let above = patches.next_power_of_two();
            let message = format!(
                "must be a power of two, such as {} or {above}, not {patches}",
                above / 2
            );
            table.note("patches", message);
        }
    }
}

/// Patches of a partition.
const MOST_PATCHES: u64 = 1 << 20;
