//! A cut that was made before, in a file: the patch tree and the aggregates of a scene.
//!
//! METIS works on one thread, and every process of a run would cut the same mesh. `weft prepare`
//! does it once, and a scene that names the file in `partition.file` takes the cut from there. A
//! cut is a function of the graph of the matrix and of what is wanted of it, so the file carries a
//! checksum of both: it is taken for this very graph or not at all, whatever else has changed in
//! the scene. METIS draws random numbers from the C library; runs of builds with different ones
//! have equal bits if they take one file.
//!
//! The file has numbers in little-endian order:
//!
//! | bytes | content |
//! |---|---|
//! | 12 | `weft cut 1` and two line feeds |
//! | 32 | SHA-256 of the graph and the options |
//! | 8 | vertices, n |
//! | 8 | patches, p |
//! | 8 | 1 if there are aggregates, otherwise 0 |
//! | 4 p | the number of vertices of each patch |
//! | 4 n | the vertices of the mesh, patch by patch |
//! | 8 n | the aggregate of each of these, then the group of each, if there are aggregates |
//! | 32 | SHA-256 of all before |

use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use thiserror::Error;
use weft_io::Show as _;
use weft_partition::{
    AggregateOptions, Aggregates, Graph, PartitionError, PatchOptions, PatchTree,
};

/// The first bytes of every prepared cut, whatever its version.
pub const PREPARED_CUT: &[u8; 9] = b"weft cut ";
/// The first bytes of a file of this version.
const MAGIC: [u8; 12] = *b"weft cut 1\n\n";
/// The bytes before the sizes of the patches.
const HEAD: usize = 12 + 32 + 3 * 8;
/// The bytes of a checksum.
const SUM: usize = 32;

/// The reason why a prepared cut is not taken.
#[derive(Debug, Error)]
pub enum PreparedError {
    /// The file cannot be read.
    #[error(
        "{}: {source}; make it with `weft prepare`, or leave out `partition.file`",
        path.shown()
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is no prepared cut, or not a whole one.
    #[error("{} {what}; make it anew with `weft prepare`", path.shown())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The fault.
        what: String,
    },
    /// The file is a cut of something else.
    #[error(
        "{} was made of another mesh or with other settings than this scene's ({what}); make it anew with `weft prepare`, or leave out \
         `partition.file`",
        path.shown()
    )]
    OfAnother {
        /// The file.
        path: PathBuf,
        /// The difference that shows.
        what: String,
    },
}

/// The wishes by which a graph is cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// How many patches.
    pub(super) patches: PatchOptions,
    /// How large aggregates are to be, if the solve has more than one level.
    pub(super) aggregates: Option<AggregateOptions>,
}

/// A cut that was read from a file.
#[derive(Debug)]
pub(super) struct Prepared<'a> {
    path: &'a Path,
    of: [u8; 32],
    sizes: Vec<u32>,
    new_to_old: Vec<u32>,
    /// The aggregate and the group of each vertex.
    aggregates: Option<[Vec<u32>; 2]>,
}

impl<'a> Prepared<'a> {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, or is not whole.
    pub(super) fn read(path: &'a Path) -> Result<Self, PreparedError> {
        let bytes =
            weft_io::read_regular(path, u64::MAX).map_err(|source| PreparedError::Read {
                path: path.to_owned(),
                source,
            })?;
        Self::decode(path, &bytes).map_err(|what| PreparedError::Damaged {
            path: path.to_owned(),
            what,
        })
    }

    fn decode(path: &'a Path, bytes: &[u8]) -> Result<Self, String> {
        if !bytes.starts_with(&MAGIC) {
            return Err("is no prepared cut of this version".to_owned());
        }
        let short = || "ends early".to_owned();
        if bytes.len() < HEAD + SUM {
            return Err(short());
        }
        let (content, sum) = bytes.split_at(bytes.len() - SUM);
        let number = |at: usize| {
            let at = MAGIC.len() + SUM + 8 * at;
            let bytes = content[at..at + 8].try_into().unwrap_or([0; 8]);
            usize::try_from(u64::from_le_bytes(bytes)).unwrap_or(usize::MAX)
        };
        let [vertices, patches, levels] = [number(0), number(1), number(2)];
        let has_aggregates = levels != 0;
        let numbers = if has_aggregates { 3 } else { 1 };
        let all = (vertices.checked_mul(numbers))
            .and_then(|all| all.checked_add(patches)?.checked_mul(4)?.checked_add(HEAD));
        match all {
            Some(all) if all == content.len() => {}
            Some(all) if all < content.len() => return Err("has too many bytes".to_owned()),
            _ => return Err(short()),
        }
        if Sha256::digest(content)[..] != *sum {
            return Err("is damaged: its checksum is another".to_owned());
        }
        let mut rest = content[HEAD..].chunks_exact(4);
        let mut take = |count: usize| -> Vec<u32> {
            let some = rest.by_ref().take(count);
            some.map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap_or([0; 4])))
                .collect()
        };
        Ok(Self {
            path,
            of: content[MAGIC.len()..MAGIC.len() + SUM]
                .try_into()
                .map_err(|_| short())?,
            sizes: take(patches),
            new_to_old: take(vertices),
            aggregates: has_aggregates.then(|| [take(vertices), take(vertices)]),
        })
    }

    /// The tree, if the file is the cut of this graph, in the numbering of the mesh.
    ///
    /// # Errors
    /// It is of another graph or of other wishes, or it is no cut of a graph of this size.
    pub(super) fn take_tree(
        &mut self,
        graph: &Graph,
        wanted: &Wanted,
    ) -> Result<PatchTree, PreparedError> {
        let of_another = |what: String| PreparedError::OfAnother {
            path: self.path.to_owned(),
            what,
        };
        let [here, there] = [graph.vertex_count(), self.new_to_old.len()];
        if here != there {
            return Err(of_another(format!(
                "it has {there} vertices, and not {here}"
            )));
        }
        if self.of != digest_of(graph, None, wanted) {
            return Err(of_another("its checksum says so".to_owned()));
        }
        let mut weights = vec![0; self.sizes.len()];
        let mut ordered = self.new_to_old.iter();
        for (weight, &size) in weights.iter_mut().zip(&self.sizes) {
            // A number that is no vertex is refused below.
            let own = ordered.by_ref().take(size as usize);
            let own = own.filter(|&&v| (v as usize) < here);
            *weight = own.map(|&v| u64::from(graph.weight(v))).sum();
        }
        let new_to_old = std::mem::take(&mut self.new_to_old);
        PatchTree::from_numbering(new_to_old, &self.sizes, weights).map_err(|e| self.damaged(&e))
    }

    /// The aggregates, if the file has some.
    ///
    /// # Errors
    /// They are no aggregates of the tree.
    pub(super) fn aggregates(self, tree: &PatchTree) -> Result<Option<Aggregates>, PreparedError> {
        let Some([of_vertex, group_of_vertex]) = self.aggregates else {
            return Ok(None);
        };
        let path = self.path;
        let taken = Aggregates::from_numbers(tree, of_vertex, group_of_vertex);
        taken.map(Some).map_err(|error| damaged(path, &error))
    }

    fn damaged(&self, error: &PartitionError) -> PreparedError {
        damaged(self.path, error)
    }
}

fn damaged(path: &Path, error: &PartitionError) -> PreparedError {
    PreparedError::Damaged {
        path: path.to_owned(),
        what: format!("is no cut: {error}"),
    }
}

/// The file of a cut. The graph is in the numbering of the tree.
pub(super) fn encode(
    graph: &Graph,
    tree: &PatchTree,
    aggregates: Option<&Aggregates>,
    wanted: &Wanted,
) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(digest_of(graph, Some(tree), wanted));
    let patches = tree.patch_count();
    let levels = usize::from(aggregates.is_some());
    for number in [tree.vertex_count(), patches, levels] {
        bytes.extend((number as u64).to_le_bytes());
    }
    let sizes = (0..patches).map(|patch| tree.patch_vertices(patch).len() as u32);
    let [of_vertex, groups] = aggregates.map_or([&[][..]; 2], |aggregates| {
        [aggregates.of_vertices(), aggregates.groups_of_vertices()]
    });
    let numbers = tree.new_to_old().iter().chain(of_vertex).chain(groups);
    bytes.extend(sizes.chain(numbers.copied()).flat_map(u32::to_le_bytes));
    let sum = Sha256::digest(&bytes);
    bytes.extend(sum);
    bytes
}

/// The SHA-256 of a graph in the numbering of the mesh, and of the wishes by which it is cut. The
/// graph may be given in the numbering of a tree.
fn digest_of(graph: &Graph, tree: Option<&PatchTree>, wanted: &Wanted) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(b"weft graph 1\n");
    let PatchOptions { patches, seed } = wanted.patches;
    // Zero is none, for which nobody can ask.
    let mut options = vec![
        patches.unwrap_or_default() as u64,
        u64::from(seed.cast_unsigned()),
    ];
    if let Some(AggregateOptions {
        size,
        share_of_root,
        group,
        seed,
    }) = wanted.aggregates
    {
        options.extend([
            1,
            size.unwrap_or_default() as u64,
            share_of_root.to_bits(),
            group as u64,
            u64::from(seed.cast_unsigned()),
        ]);
    }
    hasher.update((options.len() as u64).to_le_bytes());
    options
        .iter()
        .for_each(|option| hasher.update(option.to_le_bytes()));
    hasher.update((graph.vertex_count() as u64).to_le_bytes());
    let mut row: Vec<u32> = Vec::new();
    for vertex in graph.vertices() {
        let here = tree.map_or(vertex, |tree| tree.old_to_new()[vertex as usize]);
        row.clear();
        let neighbours = graph.neighbours(here);
        row.push(neighbours.len() as u32);
        row.push(graph.weight(here));
        match tree {
            Some(tree) => {
                let old = tree.new_to_old();
                row.extend(neighbours.iter().map(|&other| old[other as usize]));
                row[2..].sort_unstable();
            }
            None => row.extend(neighbours),
        }
        row.iter()
            .for_each(|number| hasher.update(number.to_le_bytes()));
    }
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Scene;
    use crate::step::World;
    use crate::step::world::WorldError;

    const SCENE: &str = "[[cloth]]\ngrid = { size = 1, vertices = 40 }\n\
        material = { density = 0.15, stretch = 1000, bending = 1e-5 }\n";

    fn scene(text: &str) -> Scene {
        Scene::parse(text, None, &[]).unwrap()
    }

    fn with_file(text: &str, path: &Path) -> Scene {
        let mut scene = scene(text);
        scene.partition.file = Some(path.to_owned());
        scene
    }

    /// A world whose cut comes from a file is the one that made it, with one level and with
    /// several.
    #[test]
    fn a_world_of_a_prepared_cut_is_the_world_that_was_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.cut");
        for more in ["", "[solver]\npreconditioner = \"block-jacobi\"\n"] {
            let text = format!("{more}{SCENE}");
            let made = World::build(&scene(&text)).unwrap();
            std::fs::write(&path, made.prepared_cut()).unwrap();
            let taken = World::build(&with_file(&text, &path)).unwrap();
            assert_eq!(taken.tree(), made.tree());
            assert_eq!(taken.graphs().aggregates, made.graphs().aggregates);
            assert_eq!(taken.digest(), made.digest());
            assert_eq!(taken.prepared_cut(), made.prepared_cut());
        }
    }

    /// The cut that a file holds is taken, and not made again.
    #[test]
    fn the_cut_of_the_file_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.cut");
        let made = World::build(&scene(SCENE)).unwrap();
        let mut bytes = made.prepared_cut();
        // Two vertices of one patch change places.
        let at = HEAD + 4 * made.tree().patch_count();
        let (first, second) = bytes[at..at + 8].split_at_mut(4);
        first.swap_with_slice(second);
        seal(&mut bytes);
        std::fs::write(&path, &bytes).unwrap();
        let taken = World::build(&with_file(SCENE, &path)).unwrap();
        let mut order = made.tree().new_to_old().to_vec();
        order.swap(0, 1);
        assert_eq!(taken.tree().new_to_old(), order);
    }

    #[test]
    fn cuts_of_other_scenes_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.cut");
        let made = World::build(&scene(SCENE)).unwrap();
        std::fs::write(&path, made.prepared_cut()).unwrap();
        for (other, told) in [
            (
                SCENE.replace("= 40", "= 41"),
                "it has 1600 vertices, and not 1681",
            ),
            // As many vertices, with other neighbours.
            (SCENE.replace("= 40", "= [20, 80]"), "its checksum says so"),
            (
                format!("partition.patches = 8\n{SCENE}"),
                "its checksum says so",
            ),
            (
                format!("solver.preconditioner = \"patch-ssor\"\n{SCENE}"),
                "its checksum says so",
            ),
        ] {
            let error = World::build(&with_file(&other, &path)).unwrap_err();
            assert!(
                matches!(
                    &error,
                    WorldError::Prepared(PreparedError::OfAnother { .. })
                ),
                "{error}"
            );
            assert!(error.to_string().contains(told), "{error}");
        }
        // Materials do not change the graph.
        let other = SCENE.replace("stretch = 1000", "stretch = 2000");
        World::build(&with_file(&other, &path)).unwrap();
    }

    #[test]
    fn files_that_are_missing_short_or_damaged_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.cut");
        let text = |bytes: Option<&[u8]>| {
            if let Some(bytes) = bytes {
                std::fs::write(&path, bytes).unwrap();
            }
            let error = World::build(&with_file(SCENE, &path)).unwrap_err();
            let text = error.to_string();
            assert!(
                text.contains("a.cut") && text.contains("weft prepare"),
                "{text}"
            );
            text
        };
        assert!(text(None).contains("No such file"));
        let made = World::build(&scene(SCENE)).unwrap();
        let whole = made.prepared_cut();
        assert!(text(Some(b"solid x")).contains("is no prepared cut"));
        for length in [20, HEAD, HEAD + SUM, whole.len() - 1] {
            assert!(
                text(Some(&whole[..length])).contains("ends early"),
                "{length}"
            );
        }
        let long = [&whole[..], &[0; 4]].concat();
        assert!(text(Some(&long)).contains("too many bytes"));
        let mut flipped = whole.clone();
        flipped[HEAD + 1000] ^= 1;
        assert!(text(Some(&flipped)).contains("checksum"));
        // Numbers that make no cut, in a file that is whole.
        let patches = made.tree().patch_count();
        for (at, told) in [
            (HEAD, "vertices of all patches"),
            (HEAD + 4 * patches, "is no cut"),
            (HEAD + 4 * (patches + 1600), "aggregate"),
            (HEAD + 4 * (patches + 3200), "group"),
        ] {
            let mut other = whole.clone();
            other[at..at + 4].copy_from_slice(&1599_u32.to_le_bytes());
            seal(&mut other);
            let found = text(Some(&other));
            assert!(found.contains(told), "{found}");
        }
        let mut huge = whole;
        huge[44..52].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(text(Some(&huge)).contains("ends early"));
    }

    /// Gives bytes that were changed their checksum.
    fn seal(bytes: &mut [u8]) {
        let (content, sum) = bytes.split_at_mut(bytes.len() - SUM);
        sum.copy_from_slice(&Sha256::digest(content));
    }
}
