//! What a thread works on in rounds of impulses: some of the vertices, and all rows that touch them.
//!
//! Rows are relaxed once for each thread that has vertices of theirs, from the same velocities to the same bits, as
//! they are once for each rank. That is less work than handing results from thread to thread: vertices are shared in
//! the order in which rows name them, so few rows have vertices of two threads. A thread adds up all that the rows do
//! to its vertices, in the order of the rows.
//!
//! Most rows rest: they neither push nor have to, and looking at them again is nearly all the work. A row that is at
//! rest has some rate to spare, and cannot lack any before its vertices have changed their velocities by so much.
//! So each vertex adds up how far its velocity has gone, and a row at rest is looked at again only when one of
//! its vertices has gone further than the row allows. That leaves out no row that would do
//! anything: results have the same bits as those of looking at every row in every round.

use std::ops::Range;

use glam::DVec3;

use super::constraint::{Motion, Movers, Outcome, Push, ROUNDING, Row};
use crate::team::parts;

/// No row is due: it does not rest, or the leash has no end.
const NEVER: f64 = f64::INFINITY;

/// Rows, and which vertices they touch.
#[derive(Debug, Default)]
pub(crate) struct Web {
    pub(crate) rows: Vec<Row>,
    /// For each row, the slots of its vertices.
    pub(crate) slots: Vec<[u32; 4]>,
    /// The rows of each vertex, and where those of each start; one more than there are vertices.
    incident: Vec<u32>,
    starts: Vec<u32>,
    /// For each row, where it is among those of each of its vertices.
    places: Vec<[u32; 4]>,
}

impl Web {
    /// The slots of a row's vertices.
    pub(crate) fn slots(&self, row: usize) -> &[u32] {
        &self.slots[row][..usize::from(self.rows[row].count)]
    }

    /// The rows that touch a vertex, ascending.
    pub(crate) fn rows_of(&self, slot: usize) -> &[u32] {
        &self.incident[self.listed(slot..slot + 1)]
    }

    /// Where the rows of some vertices are in the list of the rows of all.
    pub(crate) fn listed(&self, slots: Range<usize>) -> Range<usize> {
        self.starts[slots.start] as usize..self.starts[slots.end] as usize
    }

    /// Lists the rows of each of so many vertices.
    pub(crate) fn list_incident(&mut self, vertices: usize) {
        let mut starts = std::mem::take(&mut self.starts);
        let mut incident = std::mem::take(&mut self.incident);
        // Counted one place further on, summed, and moved back by listing.
        starts.clear();
        starts.resize(vertices + 2, 0);
        for row in 0..self.rows.len() {
            for &slot in self.slots(row) {
                starts[slot as usize + 2] += 1;
            }
        }
        for vertex in 0..vertices {
            starts[vertex + 2] += starts[vertex + 1];
        }
        incident.clear();
        incident.resize(starts[vertices + 1] as usize, 0);
        let mut places = std::mem::take(&mut self.places);
        places.clear();
        places.resize(self.rows.len(), [0; 4]);
        for (row, places) in places.iter_mut().enumerate() {
            for (&slot, place) in self.slots(row).iter().zip(places) {
                let next = &mut starts[slot as usize + 1];
                incident[*next as usize] = row as u32;
                *place = *next;
                *next += 1;
            }
        }
        (self.starts, self.incident, self.places) = (starts, incident, places);
    }
}

/// How far the velocity of a vertex has gone, in m/s, and how far it may go before one of its rows at rest is due.
#[derive(Clone, Copy, Debug)]
struct Leash {
    path: f64,
    length: f64,
}

impl Leash {
    /// Of a vertex that is in no row at rest.
    const LOOSE: Self = Self {
        path: 0.0,
        length: NEVER,
    };

    /// Follows the velocity by so much. Appends the rows at rest that are to be looked at again, of `rows` and when they are due.
    fn follow(&mut self, change: DVec3, rows: &[u32], dues: &mut [f64], woken: &mut Vec<u32>) {
        self.path += change.length();
        if self.path <= self.length {
            return;
        }
        self.length = NEVER;
        for (&row, due) in rows.iter().zip(dues) {
            if self.path <= *due {
                self.length = self.length.min(*due);
            } else {
                *due = NEVER;
                woken.push(row);
            }
        }
    }

    /// Holds a vertex of a row that may lack something once its vertices have gone further by so much: when it is due.
    fn tie(&mut self, spare: f64) -> f64 {
        let due = self.path * (1.0 - ROUNDING) + spare;
        self.length = self.length.min(due);
        due
    }
}

/// What a round adds to the velocity of a vertex, and its load afterwards.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    change: DVec3,
    load: f64,
}

/// What is to be known of a vertex, beside numbers.
#[derive(Clone, Copy, Debug)]
struct Marks {
    owned: bool,
    /// A round is adding to it.
    touched: bool,
    /// Its velocity or load is no longer what other ranks have heard.
    changed: bool,
}

impl Marks {
    /// Of a vertex that nothing has happened to.
    fn new(owned: bool) -> Self {
        Self {
            owned,
            touched: false,
            changed: false,
        }
    }
}

/// What is kept of all vertices and only strands look at, beside their motion.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    leashes: Vec<Leash>,
    /// When the rows of each vertex are due, as they are listed.
    dues: Vec<f64>,
    sums: Vec<Sum>,
    marks: Vec<Marks>,
}

/// The same of the vertices of a strand.
#[derive(Debug)]
pub(crate) struct Keeping<'a> {
    leashes: &'a mut [Leash],
    dues: &'a mut [f64],
    sums: &'a mut [Sum],
    marks: &'a mut [Marks],
}

impl Kept {
    /// Begins with vertices that nothing has happened to, of which the rank owns those.
    pub(crate) fn begin(&mut self, web: &Web, owned: impl Iterator<Item = bool>) {
        self.marks.clear();
        self.marks.extend(owned.map(Marks::new));
        let count = self.marks.len();
        refill(&mut self.leashes, count, Leash::LOOSE);
        refill(&mut self.dues, web.incident.len(), NEVER);
        refill(&mut self.sums, count, Sum::default());
    }

    /// Cuts it into shares of the vertices, whose rows are listed there.
    pub(crate) fn cut<'a>(
        &'a mut self,
        (shares, listed): (&'a [Range<usize>], &'a [Range<usize>]),
    ) -> impl Iterator<Item = Keeping<'a>> {
        let kept = parts(&mut self.leashes, shares).zip(parts(&mut self.dues, listed));
        let kept = kept.zip(parts(&mut self.sums, shares).zip(parts(&mut self.marks, shares)));
        kept.map(|((leashes, dues), (sums, marks))| Keeping {
            leashes,
            dues,
            sums,
            marks,
        })
    }

    /// Follows the velocity of a vertex by so much. Appends the rows at rest for which it went too far to `woken`.
    pub(crate) fn follow(&mut self, web: &Web, slot: usize, change: DVec3, woken: &mut Vec<u32>) {
        let dues = &mut self.dues[web.listed(slot..slot + 1)];
        self.leashes[slot].follow(change, web.rows_of(slot), dues, woken);
    }

    /// Whether the velocity or load of a vertex changed since changes were last forgotten.
    pub(crate) fn has_changed(&self, slot: usize) -> bool {
        self.marks[slot].changed
    }

    /// Begins to note changes anew.
    pub(crate) fn forget_changes(&mut self) {
        let marks = self.marks.iter_mut();
        marks.for_each(|marks| marks.changed = false);
    }
}

/// A thread's share of the vertices, with their rows.
#[derive(Debug, Default)]
pub(crate) struct Strand {
    /// Slots.
    vertices: Range<usize>,
    /// A bit for each row that touches them.
    own: Vec<u64>,
    /// A bit for each of these that the next round looks at.
    active: Vec<u64>,
    /// The impulses of these, by the numbers of all rows.
    pushes: Vec<Push>,
    /// Vertices that a round adds to, counted from the first of the share.
    touched: Vec<u32>,
    /// How many rows the last round looked at, and the largest change of its rate in m/s that one asked for.
    looked_at: usize,
    asked: f64,
}

impl Strand {
    /// Begins with some of the vertices. Nothing has pushed, and all rows are to be looked at.
    pub(crate) fn begin(&mut self, web: &Web, vertices: Range<usize>) {
        let words = web.rows.len().div_ceil(64);
        for bits in [&mut self.own, &mut self.active] {
            bits.clear();
            bits.resize(words, 0);
        }
        self.pushes.clear();
        self.pushes.resize(web.rows.len(), Push::default());
        for slot in vertices.clone() {
            for &row in web.rows_of(slot) {
                set(&mut self.own, row as usize);
            }
        }
        self.active.copy_from_slice(&self.own);
        self.vertices = vertices;
    }

    /// How many rows the last round looked at.
    pub(crate) fn looked_at(&self) -> usize {
        self.looked_at
    }

    /// The largest change of its rate in m/s that a row asked for in the last round.
    pub(crate) fn asked(&self) -> f64 {
        self.asked
    }

    /// The impulse of a row, if it touches a vertex of this strand.
    pub(crate) fn push(&self, row: usize) -> Option<Push> {
        has(&self.own, row).then(|| self.pushes[row])
    }

    /// Rows that the next round looks at, ascending.
    pub(crate) fn active(&self) -> impl Iterator<Item = usize> + '_ {
        let words = self.active.iter().enumerate();
        words.flat_map(|(word, &bits)| ones(bits).map(move |bit| 64 * word + bit))
    }

    /// Has those of some rows looked at that are of this strand.
    pub(crate) fn wake(&mut self, rows: &[u32]) {
        for &row in rows {
            if has(&self.own, row as usize) {
                set(&mut self.active, row as usize);
            }
        }
    }

    /// Looks at all rows that are active, adds up what they do to the vertices of the strand that the rank owns, and
    /// leashes those of rows that rest. `look` looks at a row. What is kept is that of the vertices of the strand.
    pub(crate) fn look(
        &mut self,
        web: &Web,
        movers: Movers<'_>,
        keeping: Keeping<'_>,
        look: impl Fn(&Row, Movers<'_>, &[u32], &mut Push) -> Outcome,
    ) {
        let Keeping {
            leashes,
            dues,
            sums,
            marks,
        } = keeping;
        self.touched.clear();
        (self.looked_at, self.asked) = (0, 0.0);
        let start = self.vertices.start;
        let first = web.listed(self.vertices.clone()).start;
        for (word, active) in self.active.iter_mut().enumerate() {
            for bit in ones(*active) {
                let row = 64 * word + bit;
                let slots = web.slots(row);
                let outcome = look(&web.rows[row], movers, slots, &mut self.pushes[row]);
                self.looked_at += 1;
                self.asked = self.asked.max(outcome.asked);
                let own = |slot: u32| (slot as usize).wrapping_sub(start);
                if let Some(spare) = outcome.spare {
                    *active &= !(1 << bit);
                    for (&slot, &place) in slots.iter().zip(&web.places[row]) {
                        if let Some(leash) = leashes.get_mut(own(slot)) {
                            dues[place as usize - first] = leash.tie(spare);
                        }
                    }
                    continue;
                }
                for (&slot, &w) in slots.iter().zip(&web.rows[row].weights) {
                    let at = own(slot);
                    if !marks.get(at).is_some_and(|marks| marks.owned) {
                        continue;
                    }
                    let sum = &mut sums[at];
                    if !marks[at].touched {
                        marks[at].touched = true;
                        self.touched.push(at as u32);
                        *sum = Sum::default();
                    }
                    if outcome.counted {
                        sum.load += w.abs();
                    }
                    sum.change += movers.mobilities[slot as usize] * (outcome.impulse * w);
                }
            }
        }
    }

    /// Moves the vertices by what rows have done to them. Appends the rows at rest for which they went too far to
    /// `woken`: all strands have to wake those.
    pub(crate) fn settle(
        &self,
        web: &Web,
        motions: &mut [Motion],
        keeping: Keeping<'_>,
        woken: &mut Vec<u32>,
    ) {
        let Keeping {
            leashes,
            dues,
            sums,
            marks,
        } = keeping;
        let first = web.listed(self.vertices.clone()).start;
        for &at in &self.touched {
            let at = at as usize;
            let (motion, sum) = (&mut motions[at], sums[at]);
            marks[at].touched = false;
            marks[at].changed |= sum.load.to_bits() != motion.load.to_bits();
            motion.load = sum.load;
            // Which vertices rows without impulses touch depends on ranks: nothing may change for it.
            if sum.change != DVec3::ZERO {
                marks[at].changed = true;
                let before = motion.velocity;
                motion.velocity += sum.change;
                let slot = self.vertices.start + at;
                let listed = web.listed(slot..slot + 1);
                let dues = &mut dues[listed.start - first..listed.end - first];
                leashes[at].follow(motion.velocity - before, web.rows_of(slot), dues, woken);
            }
        }
    }
}

/// Gives strands other vertices: each takes what it lacks to know of their rows from those that know.
pub(crate) fn share_anew(strands: &mut [Strand], web: &Web, shares: &[Range<usize>]) {
    let mut owns = Vec::with_capacity(strands.len());
    for (strand, vertices) in strands.iter().zip(shares) {
        let mut own = strand.own.clone();
        for slot in vertices.clone() {
            if !strand.vertices.contains(&slot) {
                web.rows_of(slot)
                    .iter()
                    .for_each(|&row| set(&mut own, row as usize));
            }
        }
        for slot in strand.vertices.clone() {
            if !vertices.contains(&slot) {
                for &row in web.rows_of(slot) {
                    let slots = web.slots(row as usize);
                    if !slots
                        .iter()
                        .any(|&slot| vertices.contains(&(slot as usize)))
                    {
                        clear(&mut own, row as usize);
                    }
                }
            }
        }
        owns.push(own);
    }
    let mut learnt = Vec::new();
    for (to, own) in owns.iter().enumerate() {
        for (word, &bits) in own.iter().enumerate() {
            for bit in ones(bits & !strands[to].own[word]) {
                let row = 64 * word + bit;
                if let Some(from) = strands.iter().find(|strand| has(&strand.own, row)) {
                    learnt.push((to, row, from.pushes[row], has(&from.active, row)));
                }
            }
        }
    }
    for ((strand, own), vertices) in strands.iter_mut().zip(owns).zip(shares) {
        strand.own = own;
        strand.vertices = vertices.clone();
        let active = strand.active.iter_mut().zip(&strand.own);
        active.for_each(|(active, own)| *active &= own);
    }
    for (to, row, push, active) in learnt {
        strands[to].pushes[row] = push;
        if active {
            set(&mut strands[to].active, row);
        }
    }
}

/// Fills a vector anew with so many values.
pub(crate) fn refill<T: Clone>(values: &mut Vec<T>, count: usize, value: T) {
    values.clear();
    values.resize(count, value);
}

/// The places of the bits that are set, ascending.
fn ones(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let at = bits.trailing_zeros() as usize;
        (bits != 0).then(|| {
            bits &= bits - 1;
            at
        })
    })
}

fn has(bits: &[u64], at: usize) -> bool {
    bits[at / 64] >> (at % 64) & 1 == 1
}

fn set(bits: &mut [u64], at: usize) {
    bits[at / 64] |= 1 << (at % 64);
}

fn clear(bits: &mut [u64], at: usize) {
    bits[at / 64] &= !(1 << (at % 64));
}
