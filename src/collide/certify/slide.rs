//! Sliding: vertices go along the planes between features instead of only a share of their way.
//!
//! Each pair that is not certified has a plane, and bounds how far its vertices may go towards it.
//! A vertex goes to the place nearest to its goal that all of its bounds allow, and keeps its
//! motion along the planes and away from them. It comes to new neighbours that way, and so there
//! are several rounds. Truncation judges all pairs with such a vertex afterwards.
//!
//! A vertex stays in the hull of its component, because components that see different common
//! motions must not meet (`common`).
//!
//! Vertices that pins hold do not slide, and neither do vertices that a body comes at for which
//! there is no room: the body carries them, or lets them through.

use glam::DVec3;

use super::half_spaces::{HalfSpace, nearest};
use super::meeting::Meeting;
use super::near_pairs::Round;
use super::plane::Limits;
use super::truncate::{Progress, Truncate};

/// The most rounds in which vertices slide along planes.
const SLIDES: u32 = 12;

impl Truncate<'_> {
    /// Has vertices slide along planes that keep hits apart, and then along those that keep apart
    /// what they come to that way. Returns what is to be judged now.
    pub(super) fn slide(
        &self,
        hits: &[Meeting],
        progress: &mut Progress,
        round: &mut Round,
    ) -> Vec<Meeting> {
        let mut changed = vec![false; self.start.len()];
        let mut meetings = hits.to_vec();
        for _ in 0..SLIDES {
            for meeting in &meetings {
                self.judge(meeting, progress);
            }
            let found = progress.found_planes.as_mut().map(std::mem::take);
            changed.fill(false);
            for (vertex, meeting, plane) in found.unwrap_or_default() {
                changed[vertex as usize] = !progress.pressed.contains(&vertex);
                let planes = progress.planes.entry(vertex).or_default();
                let present = planes.entry(meeting).or_insert(plane);
                present.most = present.most.min(plane.most);
            }
            for v in &progress.pressed {
                if progress.found.slid.remove(v).is_some() {
                    let at = *v as usize;
                    changed[at] = true;
                    progress.ends[at] = self.goal[at] - progress.common[at];
                }
            }
            if !changed.contains(&true) {
                break;
            }
            progress.found.rounds += 1;
            for v in (0..self.movable).filter(|&v| changed[v as usize]) {
                if progress.pressed.contains(&v) {
                    continue;
                }
                let at = v as usize;
                let stays = self.start[at] + progress.found.base[at];
                let planes: Vec<HalfSpace> = progress.planes[&v].values().copied().collect();
                if let Some(way) = nearest(self.goal[at] - stays, &planes) {
                    progress.found.slid.insert(v, stays + way);
                } else {
                    progress.found.slid.remove(&v);
                }
                progress.ends[at] = progress.found.goal(self, v) - progress.common[at];
            }
            meetings = self.meetings_of(&changed, progress, round);
        }
        progress.found_planes = None;
        for &v in progress.found.slid.keys() {
            changed[v as usize] = true;
        }
        let mut meetings = hits.to_vec();
        meetings.extend(self.meetings_of(&changed, progress, round));
        meetings.sort_unstable();
        meetings.dedup();
        meetings
    }

    /// Adds the planes that keep a meeting apart, with their unit normal vectors.
    pub(super) fn add_planes<const N: usize>(
        &self,
        meeting: Meeting,
        toward: impl Fn(usize) -> DVec3,
        limits: &Limits<N>,
        progress: &mut Progress,
    ) {
        let Some(planes) = progress.found_planes.as_mut() else {
            return;
        };
        if limits.squeezed {
            let cloth = meeting.vertices().iter().filter(|&&v| v < self.movable);
            progress.pressed.extend(cloth);
            return;
        }
        for (k, &v) in meeting.vertices().iter().enumerate() {
            // A vertex that pins hold may lag on its way, but not leave it.
            if v < self.movable && !self.held[v as usize] && limits.kept[k] < 1.0 {
                let plane = HalfSpace {
                    toward: toward(k),
                    most: limits.allowed[k],
                };
                planes.push((v, meeting, plane));
            }
        }
    }
}
