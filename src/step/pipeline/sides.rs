//! On which side of each other two features are, and whether they have crossed.
//!
//! A vertex looks as if it had crossed a face where it is on the other side of the face's plane
//! than it was, and two edges where the shortest way from one to the other points backward [SSIF09
//! §5]. Neither is proof: a vertex may have gone around the face's border, and edges may have
//! turned. So what looks so is decided by what is certain, the number of times that the features
//! cross on the straight ways from where they were to where they are. At a crossing all four
//! vertices are in one plane, which is a root of a cubic; it is one if the features meet there.
//!
//! * \[SSIF09\] Selle, Su, Irving, Fedkiw: Robust high-resolution cloth using parallelism,
//!   history-based collisions, and accurate friction.

use glam::DVec3;

use crate::collide::certify::Kind;

/// The most halvings of an interval in which there is one root.
const HALVINGS: u32 = 60;

/// Six times the volume of the four vertices of two features, with the sign of the side on which
/// the first feature is.
pub(super) fn volume(kind: Kind, x: &[DVec3; 4]) -> f64 {
    let [a, b, c] = spanning(kind, x);
    a.cross(b).dot(c)
}

/// Three vectors that span the volume: two along the second feature, and one from it to the first;
/// of edges one along each, and one between them.
fn spanning(kind: Kind, [p, a, b, c]: &[DVec3; 4]) -> [DVec3; 3] {
    match kind {
        Kind::VertexFace => [*b - *a, *c - *a, *p - *a],
        Kind::EdgeEdge => [*a - *p, *c - *b, *p - *b],
    }
}

/// How often two features cross while their vertices go straight from `start` to `end`.
pub(super) fn crossings(kind: Kind, start: &[DVec3; 4], end: &[DVec3; 4]) -> usize {
    let roots = coplanar(spanning(kind, start), spanning(kind, end));
    let meets = |t: &f64| {
        let x = std::array::from_fn(|k| start[k].lerp(end[k], *t));
        meet(kind, &x)
    };
    roots.into_iter().flatten().filter(meets).count()
}

/// Whether two features meet whose vertices are in one plane.
fn meet(kind: Kind, x: &[DVec3; 4]) -> bool {
    let [a, b, c] = spanning(kind, x);
    match kind {
        Kind::VertexFace => {
            // The vertex is a + s (b − a) + t (c − a).
            let normal = a.cross(b);
            let square = normal.length_squared();
            let (s, t) = (c.cross(b).dot(normal), a.cross(c).dot(normal));
            square > 0.0 && s >= 0.0 && t >= 0.0 && s + t <= square
        }
        Kind::EdgeEdge => {
            // p + s (q − p) = r + t (s − r), with c = p − r.
            let normal = a.cross(b);
            let square = normal.length_squared();
            let within = |share: f64| (0.0..=square).contains(&share);
            square > 0.0 && within(b.cross(c).dot(normal)) && within(a.cross(c).dot(normal))
        }
    }
}

/// The times in (0, 1] at which three vectors, which change evenly, are in one plane and leave it
/// on the other side; ascending.
fn coplanar([a, b, c]: [DVec3; 3], end: [DVec3; 3]) -> [Option<f64>; 3] {
    let [da, db, dc] = [end[0] - a, end[1] - b, end[2] - c];
    let det = |a: DVec3, b: DVec3, c: DVec3| a.cross(b).dot(c);
    let cubic = [
        det(a, b, c),
        det(da, b, c) + det(a, db, c) + det(a, b, dc),
        det(a, db, dc) + det(da, b, dc) + det(da, db, c),
        det(da, db, dc),
    ];
    let at = |t: f64| ((cubic[3] * t + cubic[2]) * t + cubic[1]) * t + cubic[0];
    let mut cuts = [0.0, 1.0, 1.0, 1.0];
    // Between places where the slope is zero there is one root at most.
    let (square, half, rest) = (3.0 * cubic[3], cubic[2], cubic[1]);
    let discriminant = half * half - square * rest;
    if discriminant > 0.0 {
        let root = -(half + discriminant.sqrt().copysign(half));
        for (place, flat) in cuts[1..3].iter_mut().zip([root / square, rest / root]) {
            if flat > 0.0 && flat < 1.0 {
                *place = flat;
            }
        }
        if cuts[1] > cuts[2] {
            cuts.swap(1, 2);
        }
    }
    let mut roots = [None; 3];
    for (root, interval) in roots.iter_mut().zip(cuts.windows(2)) {
        let (mut from, mut to) = (interval[0], interval[1]);
        let before = at(from);
        if before == 0.0 || (before > 0.0) == (at(to) > 0.0) {
            continue;
        }
        for _ in 0..HALVINGS {
            let middle = 0.5 * (from + to);
            if (at(middle) > 0.0) == (before > 0.0) {
                from = middle;
            } else {
                to = middle;
            }
        }
        *root = Some(to);
    }
    roots
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACE: [DVec3; 3] = [DVec3::ZERO, DVec3::X, DVec3::Y];

    fn face_and(vertex: DVec3) -> [DVec3; 4] {
        [vertex, FACE[0], FACE[1], FACE[2]]
    }

    #[test]
    fn a_vertex_crosses_a_face_where_it_goes_through_and_not_beside_it() {
        let above = face_and(DVec3::new(0.2, 0.3, 1.0));
        let below = face_and(DVec3::new(0.25, 0.2, -2.0));
        assert!(volume(Kind::VertexFace, &above) > 0.0);
        assert!(volume(Kind::VertexFace, &below) < 0.0);
        assert_eq!(crossings(Kind::VertexFace, &above, &below), 1);
        assert_eq!(crossings(Kind::VertexFace, &below, &above), 1);
        let beside = face_and(DVec3::new(3.0, 0.2, -1.0));
        assert_eq!(crossings(Kind::VertexFace, &above, &beside), 0);
        // A common motion changes nothing.
        let by = DVec3::new(7.0, -3.0, 11.0);
        assert_eq!(
            crossings(Kind::VertexFace, &above, &below.map(|x| x + by)),
            1
        );
    }

    #[test]
    fn edges_cross_where_they_meet_and_not_beyond_their_ends() {
        let edges = |height: f64, along: f64| {
            [
                DVec3::new(-1.0, 0.0, 0.0),
                DVec3::new(1.0, 0.0, 0.0),
                DVec3::new(along, -1.0, height),
                DVec3::new(along, 1.0, height),
            ]
        };
        let kind = Kind::EdgeEdge;
        assert_eq!(crossings(kind, &edges(1.0, 0.0), &edges(-1.0, 0.3)), 1);
        assert_eq!(crossings(kind, &edges(1.0, 0.0), &edges(0.1, 0.0)), 0);
        assert_eq!(crossings(kind, &edges(1.0, 3.0), &edges(-1.0, 3.0)), 0);
    }

    /// The number of roots is that of changes of sign along the way.
    #[test]
    fn crossings_are_all_found_where_ways_turn() {
        let mut seed = 1_u64;
        let mut random = || {
            seed = crate::collide::certify::mixed(seed);
            (seed >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
        };
        let mut several = 0;
        for round in 0..4000 {
            let kind = [Kind::VertexFace, Kind::EdgeEdge][round % 2];
            let mut any = || std::array::from_fn(|_| DVec3::new(random(), random(), random()));
            let (start, end): ([DVec3; 4], [DVec3; 4]) = (any(), any());
            let at = |t: f64| -> [DVec3; 4] { std::array::from_fn(|k| start[k].lerp(end[k], t)) };
            let steps = 2000;
            let mut seen = 0;
            for step in 0..steps {
                let [from, to] = [step, step + 1].map(|k| f64::from(k) / f64::from(steps));
                let changes = (volume(kind, &at(from)) > 0.0) != (volume(kind, &at(to)) > 0.0);
                seen += usize::from(changes && meet(kind, &at(0.5 * (from + to))));
            }
            let found = crossings(kind, &start, &end);
            // Sampling may miss what is between two samples.
            assert!(found.abs_diff(seen) <= 1, "{found} {seen}");
            assert!(found == seen || round > 0);
            several += usize::from(found > 1);
        }
        assert!(several > 0);
    }
}
