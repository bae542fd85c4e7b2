//! The keys of `[partition]`.

use std::path::PathBuf;

use crate::scene::Partition;
use crate::scene::form::{Count, Text};
use crate::scene::key::{Changes, Key, Section, Value};
use crate::scene::reader::Table;

type Of<F> = Value<Partition, F>;

impl Section for Partition {
    const NAME: &'static str = "partition";

    const KEYS: &'static [Key<Self>] = &[
        Key::new(
            "patches",
            &Of {
                form: Count(1, MOST_PATCHES),
                get: |partition| partition.patches.map(|patches| patches as u64),
                set: |partition, patches| partition.patches = usize::try_from(patches).ok(),
            },
            "The number of patches, which is a power of two.",
        )
        .unset("from the mesh"),
        Key::new(
            "file",
            &Of {
                form: Text,
                get: |partition| {
                    let file = partition.file.as_ref();
                    file.map(|file| file.to_string_lossy().into_owned())
                },
                set: |partition, file| partition.file = Some(PathBuf::from(file)),
            },
            "A file that [`weft prepare`](commands.md#weft-prepare) has made of this scene, relative to the scene's file: the patches and \
             aggregates that METIS would cut. One file gives equal bits also in builds with different C libraries.",
        )
        .unset("METIS cuts the mesh in every process")
        .changes(Changes::Output),
    ];

    fn check(&self, table: &Table<'_>) {
        if self
            .file
            .as_ref()
            .is_some_and(|file| file.as_os_str().is_empty())
        {
            table.note("file", "is empty; name a file that `weft prepare` has made");
        }
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
