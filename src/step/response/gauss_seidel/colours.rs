//! Colours of constraints: a function of the set of constraints alone.
//!
//! Each constraint has a priority, a hash of its kind and vertices. Its colour is the smallest that
//! no constraint of its kind with a higher priority has at a vertex of both that can move. Vertices
//! that cannot move are no conflict: thousands of constraints of pinned cloth have one colour. A
//! hashed order makes few colours, hardly more than a vertex has constraints, and short chains of
//! constraints that wait for each other; the order of numbers makes chains as long as cloth.
//!
//! A rank has all constraints of its own vertices. Where a constraint has vertices of several
//! ranks, each of them tells the others which colours are taken at its own, once all constraints of
//! higher priority there have theirs. Then all of them find the same colour.

use std::collections::BTreeMap;
use std::ops::Range;

use weft_runtime::comm::{Comm, CommError, Rank, Tag, all_reduce};

use super::Owners;
use crate::collide::certify::mixed;
use crate::step::response::constraint_graph::ConstraintGraph;

/// The tag of the messages of colours and sweeps.
pub(crate) const TAG: Tag = Tag(0x48);
/// No colour yet.
const NONE: u32 = u32::MAX;
/// The bits of a stage's key that are its colour; the kind is above.
pub(super) const COLOUR_BITS: u32 = 28;

/// Constraints to be coloured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToColour<'a> {
    pub(crate) graph: &'a ConstraintGraph,
    /// The global numbers of the vertices that take part.
    pub(crate) vertices: &'a [u32],
    /// Whether they can move.
    pub(crate) moves: &'a [bool],
    /// The numbers of the constraints of each kind.
    pub(crate) kinds: &'a [Range<usize>],
    pub(crate) owners: Owners<'a>,
}

impl ToColour<'_> {
    /// The slots of a constraint's vertices that can move.
    pub(super) fn moving(&self, constraint: usize) -> impl Iterator<Item = usize> + '_ {
        let slots = self
            .graph
            .slots(constraint)
            .iter()
            .map(|&slot| slot as usize);
        slots.filter(|&slot| self.moves[slot])
    }

    /// The slots of those that are the rank's own.
    fn own(&self, constraint: usize) -> impl Iterator<Item = usize> + '_ {
        let me = self.owners.me as u32;
        self.moving(constraint)
            .filter(move |&slot| self.owners.of[slot] == me)
    }

    /// The other ranks that compute a constraint, ascending.
    pub(super) fn others(&self, constraint: usize) -> Vec<usize> {
        let slots = self.graph.slots(constraint).iter();
        let mut ranks: Vec<usize> = slots
            .map(|&slot| self.owners.of[slot as usize] as usize)
            .collect();
        ranks.retain(|&rank| rank != self.owners.me);
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }

    /// A hash of a constraint's kind and vertices.
    pub(super) fn priority(&self, kind: usize, constraint: usize) -> u64 {
        let slots = self.graph.slots(constraint).iter();
        let numbers = slots.map(|&slot| u64::from(self.vertices[slot as usize]));
        numbers.fold(mixed(kind as u64), |hash, number| mixed(hash ^ number))
    }

    /// The constraints, each with its kind, by kind and priority; ties by number, which has the
    /// same order on all ranks among those that share a vertex.
    fn in_order(&self) -> Vec<(usize, u32)> {
        let mut all = Vec::with_capacity(self.graph.constraints.len());
        for (kind, numbers) in self.kinds.iter().enumerate() {
            let priority = |number: usize| (self.priority(kind, number), number as u32);
            let mut ordered: Vec<(u64, u32)> = numbers.clone().map(priority).collect();
            ordered.sort_unstable();
            all.extend(ordered.into_iter().map(|(_, number)| (kind, number)));
        }
        all
    }
}

/// The colours that were found.
#[derive(Debug)]
pub(crate) struct Colours {
    /// The kind and colour of each constraint, in one number.
    pub(crate) of: Vec<u32>,
    /// The rounds of messages that it took.
    pub(crate) rounds: u32,
    /// The messages that this rank sent.
    pub(crate) messages: u64,
}

/// Sets of colours that are taken at vertices.
#[derive(Debug)]
struct Taken {
    words: usize,
    bits: Vec<u64>,
}

impl Taken {
    fn new(vertices: usize) -> Self {
        Self {
            words: 1,
            bits: vec![0; vertices],
        }
    }

    /// Adds those that are taken at a vertex to `all`.
    fn unite(&self, slot: usize, all: &mut Vec<u64>) {
        unite(&self.bits[slot * self.words..][..self.words], all);
    }

    fn take(&mut self, slot: usize, colour: u32) {
        let word = colour as usize / 64;
        if word >= self.words {
            let words = 2 * (word + 1);
            let mut bits = vec![0; self.bits.len() / self.words * words];
            let old = self.bits.chunks_exact(self.words);
            for (new, old) in bits.chunks_exact_mut(words).zip(old) {
                new[..self.words].copy_from_slice(old);
            }
            (self.words, self.bits) = (words, bits);
        }
        self.bits[slot * self.words + word] |= 1 << (colour % 64);
    }
}

fn unite(some: &[u64], all: &mut Vec<u64>) {
    if all.len() < some.len() {
        all.resize(some.len(), 0);
    }
    for (all, some) in all.iter_mut().zip(some) {
        *all |= some;
    }
}

/// The smallest number that is not in a set.
fn smallest_free(set: &[u64]) -> u32 {
    let word = set.iter().position(|word| *word != u64::MAX);
    word.map_or(64 * set.len() as u32, |at| {
        64 * at as u32 + set[at].trailing_ones()
    })
}

/// A constraint that other ranks compute, too.
#[derive(Debug, Default)]
struct Shared {
    /// These ranks, and the place of the constraint among those that are shared with each.
    with: Vec<(usize, u32)>,
    /// Whether they were told what is taken at the rank's own vertices.
    told: bool,
    /// How many have told what is taken at theirs, and all of that.
    heard: usize,
    taken: Vec<u64>,
}

/// Colours constraints. Collective.
pub(crate) fn find(comm: &mut dyn Comm, of: &ToColour<'_>) -> Result<Colours, CommError> {
    let mut shared: BTreeMap<u32, Shared> = BTreeMap::new();
    // For each neighbour, the constraints that are shared with it.
    let mut neighbours: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    if of.owners.ranks > 1 {
        for number in 0..of.graph.constraints.len() as u32 {
            for rank in of.others(number as usize) {
                let list = neighbours.entry(rank).or_default();
                let with = &mut shared.entry(number).or_default().with;
                with.push((rank, list.len() as u32));
                list.push(number);
            }
        }
    }
    let slots = of.vertices.len();
    let mut taken: Vec<Taken> = of.kinds.iter().map(|_| Taken::new(slots)).collect();
    let mut colours = vec![NONE; of.graph.constraints.len()];
    let mut pending = of.in_order();
    let mut blocked = vec![vec![false; slots]; of.kinds.len()];
    let mut rounds = 0;
    let mut free = Vec::new();
    loop {
        let mut letters: BTreeMap<usize, Vec<u64>> =
            neighbours.keys().map(|&rank| (rank, Vec::new())).collect();
        blocked.iter_mut().for_each(|blocked| blocked.fill(false));
        pending.retain(|&(kind, number)| {
            let constraint = number as usize;
            let waits = of.own(constraint).any(|slot| blocked[kind][slot]);
            free.clear();
            if !waits {
                of.own(constraint)
                    .for_each(|slot| taken[kind].unite(slot, &mut free));
                let Some(shared) = shared.get_mut(&number) else {
                    settle(of, constraint, kind, &free, &mut taken, &mut colours);
                    return false;
                };
                if !std::mem::replace(&mut shared.told, true) {
                    for (rank, place) in &shared.with {
                        let letter = letters.entry(*rank).or_default();
                        letter.extend([u64::from(*place), free.len() as u64]);
                        letter.extend(&free);
                    }
                }
                if shared.heard == shared.with.len() {
                    unite(&shared.taken, &mut free);
                    settle(of, constraint, kind, &free, &mut taken, &mut colours);
                    return false;
                }
            }
            of.own(constraint)
                .for_each(|slot| blocked[kind][slot] = true);
            true
        });
        if of.owners.ranks == 1 {
            break;
        }
        rounds += 1;
        for (&rank, letter) in &letters {
            comm.send(
                Rank(rank as u32),
                TAG,
                bytemuck::cast_slice(letter).to_vec(),
            )?;
        }
        for (&rank, list) in &neighbours {
            let from = Rank(rank as u32);
            let bytes = comm.recv_from(from, TAG)?;
            hear(&bytes, list, &mut shared).ok_or_else(|| CommError::Malformed {
                from,
                what: format!("{} bytes that are no colours of constraints", bytes.len()),
            })?;
        }
        if all_reduce(comm, pending.len() as f64, f64::max)? == 0.0 {
            break;
        }
    }
    Ok(Colours {
        of: colours,
        rounds,
        messages: u64::from(rounds) * neighbours.len() as u64,
    })
}

/// Gives a constraint the smallest colour that is free.
fn settle(
    of: &ToColour<'_>,
    constraint: usize,
    kind: usize,
    free: &[u64],
    taken: &mut [Taken],
    colours: &mut [u32],
) {
    let colour = smallest_free(free);
    of.own(constraint)
        .for_each(|slot| taken[kind].take(slot, colour));
    colours[constraint] = (kind as u32) << COLOUR_BITS | colour;
}

/// Takes in what a rank tells of colours at its vertices; none if it is malformed.
fn hear(bytes: &[u8], list: &[u32], shared: &mut BTreeMap<u32, Shared>) -> Option<()> {
    let (words, []) = bytes.as_chunks() else {
        return None;
    };
    let mut words = words.iter().copied().map(u64::from_ne_bytes);
    while let Some(place) = words.next() {
        let number = list.get(usize::try_from(place).ok()?)?;
        let count = usize::try_from(words.next()?).ok()?;
        let told: Vec<u64> = words.by_ref().take(count).collect();
        if told.len() != count {
            return None;
        }
        let shared = shared.get_mut(number)?;
        shared.heard += 1;
        unite(&told, &mut shared.taken);
    }
    Some(())
}
