//! The rounds of truncation: planes for hits, then for what the cuts of the round before may lead
//! to.

use std::collections::{BTreeMap, BTreeSet};

use glam::DVec3;

use super::bodies::Mover;
use super::common::{self, Components};
use super::half_spaces::HalfSpace;
use super::joined::{Positions, Triangles};
use super::meeting::{Meeting, Pair, Squeezed};
use super::near_pairs::Round;
use super::plane::{self, Advance, Limits, Motion};
use super::search;
use super::solids::{FaceAndRound, VertexAndField, VertexAndPlane};
use crate::collide::bvh::tree::Bvh;
use crate::collide::tangles::Kept;

/// A step that is to be truncated.
#[derive(Clone, Copy, Debug)]
pub struct Truncate<'a> {
    /// All triangles: of cloth, and after it of bodies.
    pub surface: Triangles<'a>,
    /// A tree over the triangles.
    pub tree: &'a Bvh,
    /// The position at which each vertex starts, in m.
    pub start: Positions<'a>,
    /// The position to which each vertex would go, in m.
    pub goal: Positions<'a>,
    /// The mass of each vertex of cloth in kg: common motion is a mean by mass.
    pub masses: &'a [f64],
    /// Vertices from this number on cannot be stopped: those of bodies. Their features are not
    /// tested against each other.
    pub movable: u32,
    /// The bodies.
    pub movers: &'a [Mover],
    /// The body of each vertex that cannot be stopped.
    pub body_of: &'a [u32],
    /// Whether no body may carry each vertex of cloth along: what pins hold.
    pub held: &'a [bool],
    /// Vertices, each with a body that it may cross, ascending.
    pub suspended: &'a [[u32; 2]],
    /// Vertices of cloth that started through cloth: the pairs that they let pass are not tested.
    pub kept: &'a Kept,
    /// Whether cloth is tested against cloth.
    pub self_collision: bool,
    /// The gap that features leave between them, in m, unless they start with less; far above the
    /// rounding of coordinates.
    pub least: f64,
}

/// The findings of truncation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Truncated {
    /// The share that each vertex goes, from 0 to 1, of its displacement beyond the base: to its
    /// goal, or to where it slides instead.
    pub kept: Vec<f64>,
    /// The displacement in m that each vertex goes in any case: what it has in common with all that
    /// is near, or that of the body that carries it.
    pub base: Vec<DVec3>,
    /// The position in m to which a vertex would go instead of its goal, for each that slides.
    pub slid: BTreeMap<u32, DVec3>,
    /// The displacement in m that each vertex of cloth lacks for momentum: velocities may have it,
    /// where positions must not. Empty where nothing is cut.
    pub restored: Vec<DVec3>,
    /// Vertices that bodies leave no room, with those bodies, beside the ones that were suspended
    /// before; ascending.
    pub squeezed: Vec<Squeezed>,
    /// How many rounds it took.
    pub rounds: u32,
    /// How many pairs were tested in all rounds.
    pub tests: u64,
    /// How many times a plane was imposed on a pair.
    pub planes: u64,
}

impl Truncated {
    /// The position at which a vertex ends, in m. A vertex that goes to its goal has the bits of
    /// its goal, and one that stays those of its start.
    #[must_use]
    #[inline]
    pub fn end(&self, step: &Truncate<'_>, vertex: u32) -> DVec3 {
        let at = vertex as usize;
        let (start, goal, kept) = (step.start[at], self.goal(step, vertex), self.kept[at]);
        if kept >= 1.0 {
            return goal;
        }
        let base = self.base[at];
        if kept > 0.0 {
            start + (base + (goal - start - base) * kept)
        } else if base == DVec3::ZERO {
            start
        } else {
            start + base
        }
    }

    /// The position to which a vertex would go with all of its share, in m.
    pub(super) fn goal(&self, step: &Truncate<'_>, vertex: u32) -> DVec3 {
        let slid = self.slid.get(&vertex).copied();
        slid.unwrap_or(step.goal[vertex as usize])
    }

    /// Whether a vertex does not go to its goal.
    #[must_use]
    pub fn is_cut(&self, vertex: u32) -> bool {
        self.kept[vertex as usize] < 1.0 || self.slid.contains_key(&vertex)
    }
}

/// The treatment of a vertex whose pair has no room; in the order in which treatments are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Remedy {
    /// It may cross the body from now on.
    Suspend(Squeezed),
    /// The body carries it along.
    Carry { vertex: u32, body: u32 },
}

/// The state of truncation between rounds.
pub(super) struct Progress {
    pub(super) found: Truncated,
    /// Displacements that all vertices of a component have in common.
    pub(super) common: Vec<DVec3>,
    /// The positions at which vertices end, as seen from the frame that moves with the common
    /// displacement.
    pub(super) ends: Vec<DVec3>,
    /// Shares that a round's planes allow, apart from those by which it judges.
    next: Vec<f64>,
    /// The body that carries each vertex of cloth.
    carrier: Vec<Option<u32>>,
    suspended: BTreeSet<[u32; 2]>,
    /// Vertices whose shares a round has lowered.
    cut: Vec<u32>,
    remedies: Vec<Remedy>,
    /// The planes along which vertices slide, each under what it keeps apart.
    pub(super) planes: BTreeMap<u32, BTreeMap<Meeting, HalfSpace>>,
    /// The planes that a round has found; `None` if vertices slide no more.
    pub(super) found_planes: Option<Vec<(u32, Meeting, HalfSpace)>>,
    /// Vertices that do not slide, because a body that comes at them leaves no room wherever they
    /// go.
    pub(super) pressed: BTreeSet<u32>,
}

impl Progress {
    fn is_suspended(&self, vertices: &[u32], body: u32) -> bool {
        !self.suspended.is_empty()
            && vertices
                .iter()
                .any(|&v| self.suspended.contains(&[v, body]))
    }

    /// Whether vertices still slide: then planes are collected, and nothing is cut.
    fn slides(&self) -> bool {
        self.found_planes.is_some()
    }

    fn lower(&mut self, vertex: u32, share: f64) {
        if share < self.next[vertex as usize] {
            self.next[vertex as usize] = share;
            self.cut.push(vertex);
        }
    }

    fn lower_all(&mut self, vertices: &[u32]) {
        vertices.iter().for_each(|&v| self.lower(v, 0.0));
    }
}

impl Truncate<'_> {
    /// Cuts displacements until every pair is certified that is a hit or has a cut vertex.
    ///
    /// # Panics
    /// If arrays have other lengths than the surface has vertices.
    #[must_use]
    pub fn run(&self, hits: &[Meeting]) -> Truncated {
        let mut found = Truncated {
            kept: vec![1.0; self.start.len()],
            ..Truncated::default()
        };
        if hits.is_empty() {
            return found;
        }
        let components = common::components(self);
        let common = components.common.clone();
        let ends = self.goal.iter().zip(&common).map(|(x, w)| *x - *w);
        found.base.clone_from(&common);
        let mut progress = Progress {
            ends: ends.collect(),
            next: found.kept.clone(),
            carrier: vec![None; self.movable as usize],
            suspended: self.suspended.iter().copied().collect(),
            cut: Vec::new(),
            remedies: Vec::new(),
            planes: BTreeMap::new(),
            found_planes: Some(Vec::new()),
            pressed: BTreeSet::new(),
            common,
            found,
        };
        let mut round = Round::default();
        let mut meetings = self.slide(hits, &mut progress, &mut round);
        let mut changed = vec![false; self.start.len()];
        loop {
            for meeting in &meetings {
                self.judge(meeting, &mut progress);
            }
            if progress.cut.is_empty() && progress.remedies.is_empty() {
                break;
            }
            progress.found.rounds += 1;
            changed.fill(false);
            self.apply(&mut progress, &mut changed);
            meetings = self.meetings_of(&changed, &progress, &mut round);
        }
        let mut found = progress.found;
        found.squeezed.sort_unstable();
        found
            .squeezed
            .dedup_by_key(|squeezed| (squeezed.vertex, squeezed.body));
        found.restored = self.restored(&found, &components);
        found
    }

    /// The meetings of changed vertices, which end where they do now.
    pub(super) fn meetings_of(
        &self,
        changed: &[bool],
        progress: &Progress,
        round: &mut Round,
    ) -> Vec<Meeting> {
        let ends = Positions::from(&progress.ends);
        let mut meetings = Vec::new();
        self.refit(ends, changed, round);
        self.search(ends, changed, round, |pair| {
            meetings.push(Meeting::Features(pair));
        });
        self.search_solids(ends, Some(&progress.common), changed, |meeting| {
            meetings.push(meeting);
        });
        meetings
    }

    /// The displacement for each vertex of cloth by which cuts have fallen short on the mean of its
    /// component, by mass; zero for components that bodies or pins have a part in, which take up
    /// the difference.
    fn restored(&self, found: &Truncated, components: &Components) -> Vec<DVec3> {
        let cloth = 0..self.movable as usize;
        let mut sums = vec![(0.0, DVec3::ZERO, true); self.movable as usize];
        for v in cloth.clone() {
            let (mass, lost, free) = &mut sums[components.least[v] as usize];
            *mass += self.masses[v];
            *free &= !self.held[v];
            if found.is_cut(v as u32) {
                *lost += (self.goal[v] - found.end(self, v as u32)) * self.masses[v];
            }
        }
        let of = |v: usize| {
            let least = components.least[v] as usize;
            match sums[least] {
                (mass, lost, true) if !components.grounded[least] => lost / mass,
                _ => DVec3::ZERO,
            }
        };
        cloth.map(of).collect()
    }

    /// Does what a round has found: takes lower shares, and remedies. Marks the vertices that
    /// change.
    fn apply(&self, progress: &mut Progress, changed: &mut [bool]) {
        let mut remedies = std::mem::take(&mut progress.remedies);
        remedies.sort_unstable();
        remedies.dedup();
        for remedy in remedies {
            match remedy {
                Remedy::Suspend(squeezed) => {
                    let Squeezed { vertex, body, .. } = squeezed;
                    if progress.suspended.insert([vertex, body]) {
                        progress.found.squeezed.push(squeezed);
                    }
                    let at = vertex as usize;
                    if progress.carrier[at] == Some(body) {
                        progress.carrier[at] = None;
                        progress.found.base[at] = progress.common[at];
                    }
                    changed[at] = true;
                }
                Remedy::Carry { vertex, body } => {
                    let at = vertex as usize;
                    if !progress.suspended.contains(&[vertex, body])
                        && progress.carrier[at].is_none_or(|present| body < present)
                    {
                        progress.carrier[at] = Some(body);
                        let mover = &self.movers[body as usize];
                        progress.found.base[at] = mover.displacement(self.start[at]);
                        changed[at] = true;
                    }
                }
            }
        }
        let cut = std::mem::take(&mut progress.cut);
        for &vertex in &cut {
            let at = vertex as usize;
            if progress.next[at] < progress.found.kept[at] {
                progress.found.kept[at] = progress.next[at];
                changed[at] = true;
            }
        }
        for (at, _) in changed.iter().enumerate().filter(|(_, changed)| **changed) {
            progress.ends[at] = progress.found.end(self, at as u32) - progress.common[at];
        }
    }

    /// The body of a vertex that cannot be stopped.
    pub(super) fn body(&self, vertex: u32) -> Option<u32> {
        let at = vertex.checked_sub(self.movable)?;
        self.body_of.get(at as usize).copied()
    }

    /// Tests what may cross, and lowers the shares of its vertices, or finds another remedy, unless
    /// it is certified.
    pub(super) fn judge(&self, meeting: &Meeting, progress: &mut Progress) {
        progress.found.tests += 1;
        match *meeting {
            Meeting::Features(pair) => self.judge_features(&pair, progress),
            Meeting::Round { face, body } => self.judge_round(face, body, progress),
            Meeting::Vertex { vertex, body } => match self.movers[body as usize].field() {
                None => self.judge_plane(vertex, body, progress),
                Some(_) => self.judge_field(vertex, body, progress),
            },
        }
    }

    fn judge_features(&self, pair: &Pair, progress: &mut Progress) {
        let at = pair.vertices.map(|v| v as usize);
        let own_body = pair.vertices.iter().find_map(|&v| self.body(v));
        let cloth: Cloth = pair
            .vertices
            .iter()
            .filter(|&&v| v < self.movable)
            .collect();
        if own_body.is_some_and(|body| progress.is_suspended(cloth.vertices(), body)) {
            return;
        }
        let displacements = Motion {
            start: at.map(|v| self.start[v]),
            end: at.map(|v| progress.ends[v]),
        };
        let Some(plane) = plane::separating(pair.kind, &displacements.start) else {
            // They touch or cross at the start.
            if progress.slides() {
                return;
            }
            progress.found.planes += 1;
            match own_body {
                Some(body) => self.suspend(cloth.vertices(), body, None, progress),
                None => progress.lower_all(cloth.vertices()),
            }
            return;
        };
        if plane::keeps_apart(pair.kind, &plane, &displacements, self.least) {
            return;
        }
        if self.goes_with_one(&cloth, own_body, progress) {
            let carrier = self.carrier_of(&cloth, own_body, progress);
            let affine = carrier.is_none_or(|body| self.movers[body as usize].is_affine());
            // A body that deforms does not carry all alike: the pair is certified by itself, at one
            // rate.
            if affine || search::is_certified(pair.kind, &displacements, self.least) {
                return;
            }
        }
        progress.found.planes += 1;
        let margin = displacements.margin();
        let (low, high) = plane::sides(pair.kind, &plane.heights);
        let is_first = |k: usize| k < pair.kind.first();
        let toward = |k: usize| plane.normal * if is_first(k) { -1.0 } else { 1.0 };
        let points: [Advance; 4] = std::array::from_fn(|k| {
            let first = is_first(k);
            let behind = if first {
                plane.heights[k] - low
            } else {
                high - plane.heights[k]
            };
            self.advance(pair.vertices[k], toward(k), first, behind, progress)
        });
        let limits = plane::limits(&points, plane.gap - self.least, margin);
        if progress.slides() {
            let meeting = Meeting::Features(*pair);
            self.add_planes(meeting, toward, &limits, progress);
        } else {
            self.impose(&cloth, own_body, &pair.vertices, &limits, progress);
        }
    }

    /// A face and a round body, for a face that ends at these places (m); `None` if they touch or
    /// cross at the start.
    pub(super) fn seen_by_round(
        &self,
        face: [u32; 3],
        body: u32,
        end: [DVec3; 3],
    ) -> Option<FaceAndRound> {
        let start = face.map(|v| self.start[v as usize]);
        FaceAndRound::new(&self.movers[body as usize], [start, end])
    }

    /// A vertex and a half space, for a vertex that ends at a place (m); `None` if it is not above
    /// it at the start.
    pub(super) fn seen_by_plane(
        &self,
        vertex: u32,
        body: u32,
        end: DVec3,
    ) -> Option<VertexAndPlane> {
        let start = self.start[vertex as usize];
        VertexAndPlane::new(&self.movers[body as usize], [start, end])
    }

    /// A vertex and a body by its sampled distance, for a vertex that ends at a place (m); `None`
    /// if it is not outside at the start.
    pub(super) fn seen_by_field(
        &self,
        vertex: u32,
        body: u32,
        end: DVec3,
    ) -> Option<VertexAndField<'_>> {
        let start = self.start[vertex as usize];
        VertexAndField::new(&self.movers[body as usize], [start, end])
    }

    /// Whether a vertex that ends at a place (m) keeps out of a half space or of a body by its
    /// sampled distance; `None` if it is not outside at the start.
    pub(super) fn is_vertex_apart(&self, vertex: u32, body: u32, end: DVec3) -> Option<bool> {
        match self.movers[body as usize].field() {
            None => (self.seen_by_plane(vertex, body, end)).map(|seen| seen.is_apart(self.least)),
            Some(_) => {
                (self.seen_by_field(vertex, body, end)).map(|seen| seen.is_apart(self.least))
            }
        }
    }

    /// Whether the kept set lets a pair pass.
    pub(super) fn lets_pass(&self, pair: &Pair) -> bool {
        let (first, second) = pair.vertices.split_at(pair.kind.first());
        self.kept.lets_pass(first, second)
    }

    /// Whether the body of a meeting lets a vertex of it through, or the kept set a pair.
    pub(super) fn is_suspended(&self, meeting: &Meeting) -> bool {
        let any = |vertices: &[u32], body: u32| {
            let is = |&v: &u32| self.suspended.binary_search(&[v, body]).is_ok();
            vertices.iter().any(is)
        };
        match meeting {
            Meeting::Features(pair) => {
                let body = pair.vertices.iter().find_map(|&v| self.body(v));
                body.is_some_and(|body| any(&pair.vertices, body)) || self.lets_pass(pair)
            }
            Meeting::Round { face, body } => any(face, *body),
            Meeting::Vertex { vertex, body } => any(&[*vertex], *body),
        }
    }

    fn judge_round(&self, face: [u32; 3], body: u32, progress: &mut Progress) {
        if progress.is_suspended(&face, body) {
            return;
        }
        let cloth: Cloth = face.iter().collect();
        let end = face.map(|v| progress.ends[v as usize] + progress.common[v as usize]);
        let Some(seen) = self.seen_by_round(face, body, end) else {
            if progress.slides() {
                return;
            }
            progress.found.planes += 1;
            self.suspend(&face, body, None, progress);
            return;
        };
        if seen.is_apart(self.least) || self.goes_with_one(&cloth, Some(body), progress) {
            return;
        }
        progress.found.planes += 1;
        let displacements = face.map(|v| {
            let at = v as usize;
            let base = progress.found.base[at];
            [base, progress.found.goal(self, v) - self.start[at] - base]
        });
        let points = seen.points(displacements);
        let limits = plane::limits(&points, seen.gap - self.least, seen.margin);
        if progress.slides() {
            let meeting = Meeting::Round { face, body };
            self.add_planes(meeting, |_| -seen.normal, &limits, progress);
            return;
        }
        self.impose(&cloth, Some(body), &face, &limits, progress);
    }

    fn judge_plane(&self, vertex: u32, body: u32, progress: &mut Progress) {
        if progress.is_suspended(&[vertex], body) {
            return;
        }
        let at = vertex as usize;
        let end = progress.ends[at] + progress.common[at];
        let Some(seen) = self.seen_by_plane(vertex, body, end) else {
            if progress.slides() {
                return;
            }
            progress.found.planes += 1;
            self.suspend(&[vertex], body, None, progress);
            return;
        };
        let cloth: Cloth = [vertex].iter().collect();
        if seen.is_apart(self.least) || self.goes_with_one(&cloth, Some(body), progress) {
            return;
        }
        progress.found.planes += 1;
        let mover = &self.movers[body as usize];
        let [height, _] = seen.heights;
        let over = |end: DVec3| {
            let heights = mover.heights([self.start[at], end]);
            heights.map_or(height, |heights| heights[1])
        };
        let base = over(self.start[at] + progress.found.base[at]);
        // As the half space sees it, which stands still.
        let points = [
            Advance {
                first: true,
                behind: 0.0,
                base: height - base,
                own: base - over(progress.found.goal(self, vertex)),
            },
            Advance {
                first: false,
                behind: 0.0,
                base: 0.0,
                own: 0.0,
            },
        ];
        let limits = plane::limits(&points, height - self.least, seen.margin);
        if progress.slides() {
            let down = mover.plane_normal().map_or(DVec3::ZERO, |normal| -normal);
            let meeting = Meeting::Vertex { vertex, body };
            self.add_planes(meeting, |_| down, &limits, progress);
            return;
        }
        self.impose(&cloth, Some(body), &[vertex], &limits, progress);
    }

    fn judge_field(&self, vertex: u32, body: u32, progress: &mut Progress) {
        // No plane says where the way out of a sampled distance is.
        if progress.slides() || progress.is_suspended(&[vertex], body) {
            return;
        }
        let at = vertex as usize;
        let end = progress.ends[at] + progress.common[at];
        let Some(seen) = self.seen_by_field(vertex, body, end) else {
            progress.found.planes += 1;
            self.suspend(&[vertex], body, None, progress);
            return;
        };
        let cloth: Cloth = [vertex].iter().collect();
        let mover = &self.movers[body as usize];
        // A body that deforms does not carry a vertex at the same distance.
        let carries = |progress: &Progress| self.goes_with_one(&cloth, Some(body), progress);
        if seen.is_apart(self.least) || mover.is_affine() && carries(progress) {
            return;
        }
        progress.found.planes += 1;
        let (start, base) = (self.start[at], progress.found.base[at]);
        let own = progress.found.goal(self, vertex) - start - base;
        let end = |share: f64| mover.to.undo(start + (base + own * share));
        let share = seen.share(self.least, progress.found.kept[at], end);
        let limits = Limits {
            kept: [share.unwrap_or(0.0)],
            allowed: [0.0],
            squeezed: share.is_none(),
        };
        self.impose(&cloth, Some(body), &[vertex], &limits, progress);
    }

    /// How far a vertex comes along a direction.
    fn advance(
        &self,
        vertex: u32,
        toward: DVec3,
        first: bool,
        behind: f64,
        progress: &Progress,
    ) -> Advance {
        let at = vertex as usize;
        let whole = progress.found.goal(self, vertex) - self.start[at];
        let (base, own) = if vertex < self.movable {
            let base = progress.found.base[at];
            (base - progress.common[at], whole - base)
        } else {
            (whole - progress.common[at], DVec3::ZERO)
        };
        Advance {
            first,
            behind,
            base: toward.dot(base),
            own: toward.dot(own),
        }
    }

    /// The body of a pair, or else the one that carries its first vertex.
    fn carrier_of(&self, cloth: &Cloth, body: Option<u32>, progress: &Progress) -> Option<u32> {
        body.or_else(|| progress.carrier[cloth.vertices()[0] as usize])
    }

    /// Whether all vertices go along with one body, or with what is common to all: then they do not
    /// cross, whatever the body does, unless it deforms.
    fn goes_with_one(&self, cloth: &Cloth, body: Option<u32>, progress: &Progress) -> bool {
        let first = self.carrier_of(cloth, body, progress);
        let stays = |&v: &u32| {
            progress.found.kept[v as usize] == 0.0 && progress.carrier[v as usize] == first
        };
        cloth.vertices().iter().all(stays)
    }

    /// Lowers shares to the limits of a plane, or finds another remedy where these do not help.
    fn impose<const N: usize>(
        &self,
        cloth: &Cloth,
        body: Option<u32>,
        vertices: &[u32],
        limits: &Limits<N>,
        progress: &mut Progress,
    ) {
        let movable = || {
            let numbered = vertices.iter().zip(limits.kept);
            numbered.filter(|(v, _)| **v < self.movable)
        };
        if limits.squeezed {
            self.make_room(cloth.vertices(), body, progress);
            return;
        }
        let lowers = movable().any(|(&v, kept)| kept < progress.found.kept[v as usize]);
        movable().for_each(|(&v, kept)| progress.lower(v, kept));
        if lowers {
            return;
        }
        // The limits hold already, and rounding leaves a doubt all the same.
        let kept = |&v: &u32| progress.found.kept[v as usize] > 0.0;
        if cloth.vertices().iter().any(kept) {
            progress.lower_all(cloth.vertices());
            return;
        }
        self.make_room(cloth.vertices(), body, progress);
    }

    /// Finds a remedy for vertices of cloth whose pair, with a feature of a body or without, leaves
    /// no room although all stay with their base.
    fn make_room(&self, cloth: &[u32], body: Option<u32>, progress: &mut Progress) {
        let carrier = |v: u32| progress.carrier[v as usize];
        let carriers = cloth.iter().filter_map(|&v| carrier(v));
        let bodies: BTreeSet<u32> = carriers.chain(body).collect();
        let Some(&low) = bodies.first() else {
            progress.lower_all(cloth);
            return;
        };
        let may_carry = |v: u32| !self.held[v as usize] && !progress.suspended.contains(&[v, low]);
        let mut remedies = Vec::new();
        let against = Some(low);
        for &v in cloth {
            match carrier(v) {
                Some(high) if high > low => {
                    remedies.push(Remedy::Suspend(Squeezed {
                        vertex: v,
                        body: high,
                        against,
                    }));
                    if may_carry(v) {
                        remedies.push(Remedy::Carry {
                            vertex: v,
                            body: low,
                        });
                    }
                }
                Some(_) => {}
                None if may_carry(v) => remedies.push(Remedy::Carry {
                    vertex: v,
                    body: low,
                }),
                // It cannot go along: so the body lets it through, and what the body carries.
                None => remedies.extend(
                    cloth
                        .iter()
                        .filter(|&&u| u == v && body == Some(low) || carrier(u) == Some(low))
                        .map(|&vertex| {
                            Remedy::Suspend(Squeezed {
                                vertex,
                                body: low,
                                against: None,
                            })
                        }),
                ),
            }
        }
        if let Some(body) = body.filter(|&body| body > low) {
            remedies.extend(cloth.iter().map(|&vertex| {
                Remedy::Suspend(Squeezed {
                    vertex,
                    body,
                    against,
                })
            }));
        }
        if remedies.is_empty() {
            let stays = |&v: &u32| progress.found.kept[v as usize] == 0.0;
            if cloth.iter().all(stays) && !self.movers[low as usize].is_affine() {
                // It carries them all, and brings them together as it deforms.
                self.suspend(cloth, low, None, progress);
            } else {
                progress.lower_all(cloth);
            }
        }
        progress.remedies.extend(remedies);
    }

    /// Has a body let vertices through.
    fn suspend(&self, cloth: &[u32], body: u32, against: Option<u32>, progress: &mut Progress) {
        let squeezed = cloth.iter().map(|&vertex| Squeezed {
            vertex,
            body,
            against,
        });
        progress.remedies.extend(squeezed.map(Remedy::Suspend));
    }
}

/// The vertices of cloth in a pair: at most four.
#[derive(Clone, Copy, Debug, Default)]
struct Cloth {
    all: [u32; 4],
    count: usize,
}

impl Cloth {
    fn vertices(&self) -> &[u32] {
        &self.all[..self.count]
    }
}

impl<'a> FromIterator<&'a u32> for Cloth {
    fn from_iter<I: IntoIterator<Item = &'a u32>>(vertices: I) -> Self {
        let mut cloth = Self::default();
        for &v in vertices {
            cloth.all[cloth.count] = v;
            cloth.count += 1;
        }
        cloth
    }
}
