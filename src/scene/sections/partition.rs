//! The keys of `[partition]`.

use std::path::PathBuf;

use crate::scene::form::{Count, OneOf, Text, words};
use crate::scene::key::{Changes, Key, Section, Value};
use crate::scene::reader::Table;
use crate::scene::{Partition, Pipeline, RankState, Scene};

type Of<F> = Value<Partition, F>;

words!(RankState);

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
            "A file that [`weft prepare`](commands.md#weft-prepare) has made of this scene, relative to the scene's file: all that is \
             made of its cloth, or the patches and aggregates that METIS would cut. One file gives equal bits also in builds with different C libraries.",
        )
        .unset("every process sets the scene up")
        .changes(Changes::Output),
        Key::new(
            "state",
            &Of {
                form: OneOf::<RankState>::NEW,
                get: |partition| Some(partition.state),
                set: |partition, state| partition.state = state,
            },
            "The positions and velocities that a rank has and is sent in each step. `\"replicated\"`: those of all vertices. \
             `\"subscribed\"`: its own, and those of [patches that meet its patches](understand/state.md); then tests begin at the owners of \
             patches, also with a policy that forecasts, and thieves fetch what they read. `\"auto\"`: `\"subscribed\"` from 16 ranks and \
             500,000 vertices on. The trajectory is the same to the bit.",
        )
        .changes(Changes::Output)
        .idle(always_whole),
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

/// The reason why ranks have the whole state all the same, if so.
fn always_whole(scene: &Scene) -> Option<&'static str> {
    if scene.partition.state != RankState::Subscribed {
        None
    } else if scene.contact.pipeline == Pipeline::History {
        Some("contact.pipeline = \"2009\" reads the whole state: leave this out")
    } else {
        (!scene.seams.is_empty()).then_some("seams read the whole state: leave this out")
    }
}

/// Patches of a partition.
const MOST_PATCHES: u64 = 1 << 20;
