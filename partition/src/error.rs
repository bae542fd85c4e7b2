//! Errors in a graph, a patch count or a rank count.

use thiserror::Error;

/// The reason why a graph could not be partitioned, or a partition could not be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartitionError {
    /// The graph has no vertex.
    #[error("a graph needs at least one vertex")]
    NoVertices,
    /// METIS counts with 32 bits.
    #[error(
        "the graph has {vertices} vertices and {entries} adjacency entries; METIS takes fewer than 2^31 of each"
    )]
    TooLarge {
        /// Vertices of the graph.
        vertices: usize,
        /// Adjacency entries, two for each edge.
        entries: usize,
    },
    /// An edge leads out of the graph.
    #[error("vertex {vertex} has neighbour {neighbour}, but there are only {vertices} vertices")]
    NoSuchVertex {
        /// The vertex at which the edge starts.
        vertex: u32,
        /// The vertex to which it leads.
        neighbour: u32,
        /// How many vertices there are.
        vertices: usize,
    },
    /// An edge leads from a vertex to itself.
    #[error("vertex {vertex} is its own neighbour")]
    SelfLoop {
        /// The vertex.
        vertex: u32,
    },
    /// An edge is known at one end only.
    #[error("vertex {vertex} lists neighbour {neighbour}, which does not list it back")]
    Asymmetric {
        /// The end that knows the edge.
        vertex: u32,
        /// The end that does not.
        neighbour: u32,
    },
    /// An array has the wrong length.
    #[error("{what}: {found} given, {expected} needed")]
    Length {
        /// The array.
        what: &'static str,
        /// How many entries it must have.
        expected: usize,
        /// How many it has.
        found: usize,
    },
    /// A vertex weighs nothing.
    #[error("vertex {vertex} has weight 0; weights must be at least 1")]
    ZeroWeight {
        /// The vertex.
        vertex: u32,
    },
    /// METIS adds weights in 32 bits.
    #[error("the vertex weights add up to {total}; METIS takes less than 2^31, so scale them down")]
    WeightsTooLarge {
        /// The sum of the weights.
        total: u64,
    },
    /// A patch count that the tree cannot have.
    #[error(
        "{patches} patches asked for {vertices} vertices: choose a power of two, at most one patch a vertex"
    )]
    PatchCount {
        /// Patches asked for.
        patches: usize,
        /// Vertices there are.
        vertices: usize,
    },
    /// The partition has fewer patches than ranks.
    #[error(
        "{ranks} ranks cannot share {patches} {}, each needs one: run at most {patches}, or ask for more patches (in a scene: partition.patches)",
        if *patches == 1 { "patch" } else { "patches" }
    )]
    TooFewPatches {
        /// Ranks asked for.
        ranks: usize,
        /// Patches of the tree.
        patches: usize,
    },
    /// Nobody owns anything.
    #[error("at least one rank must own the patches")]
    NoRanks,
    /// A rank that does not take part.
    #[error("there is no rank {rank} among {ranks}")]
    NoSuchRank {
        /// The rank asked for.
        rank: usize,
        /// How many there are.
        ranks: usize,
    },
    /// A coordinate is not a number.
    #[error("vertex {vertex} has a coordinate that is not finite")]
    NonFinite {
        /// The vertex.
        vertex: u32,
    },
    /// A numbering names a vertex twice and leaves another out.
    #[error("vertex {vertex} occurs more than once in the numbering")]
    NotAPermutation {
        /// The vertex named twice.
        vertex: u32,
    },
    /// A numbering with a patch that has no vertex.
    #[error("patch {patch} has no vertex")]
    EmptyPatch {
        /// The patch.
        patch: usize,
    },
    /// Pieces that are not numbered one whole after the other.
    #[error("{what} {number} has no vertex, is of two parts, or is numbered out of their order")]
    NotNested {
        /// The kind of piece.
        what: &'static str,
        /// Its number.
        number: u32,
    },
    /// METIS gave up.
    #[error("METIS could not bisect {vertices} vertices: {reason}")]
    Metis {
        /// Size of the graph it was given.
        vertices: usize,
        /// The message of METIS.
        reason: String,
    },
}
