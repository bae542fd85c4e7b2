//! The judge of whole states: what is planted in them is found, and nothing else.

use proptest::prelude::*;
use weft_judge::{Judge, Kind, Piece, Position, State, Surface, Way, What, meet, pierces};

/// A sheet of n by n vertices at a height, in a square of side 1.
fn sheet(n: u32, height: f64, shift: f64) -> Vec<Position> {
    let at = |k: u32| f64::from(k) / f64::from(n - 1) + shift;
    // No vertex of one of two sheets is over an edge of the other.
    (0..n * n)
        .map(|v| [at(v / n), at(v % n) + 0.7 * shift, height])
        .collect()
}

fn triangles(n: u32, first: u32) -> Vec<[u32; 3]> {
    let corner = |i: u32, k: u32| first + i * n + k;
    let cells = (0..n - 1).flat_map(|i| (0..n - 1).map(move |k| (i, k)));
    let cell = |(i, k): (u32, u32)| {
        let (a, b, c, d) = (
            corner(i, k),
            corner(i + 1, k),
            corner(i + 1, k + 1),
            corner(i, k + 1),
        );
        [[a, b, c], [a, c, d]]
    };
    cells.flat_map(cell).collect()
}

/// Two sheets of n by n vertices.
fn two(n: u32, is_body: bool) -> Surface {
    let piece = |name: &str, is_body, first: u32| Piece {
        name: name.to_owned(),
        is_body,
        vertices: first..first + n * n,
        passes_itself: false,
        sewn: Vec::new(),
    };
    let pieces = vec![piece("lower", false, 0), piece("upper", is_body, n * n)];
    Surface::new(pieces, [triangles(n, 0), triangles(n, n * n)].concat()).unwrap()
}

fn state(time: f64, positions: Vec<Position>) -> State {
    State {
        time,
        positions,
        squeezed: Vec::new(),
        kept: Vec::new(),
    }
}

fn both(n: u32, height: f64) -> Vec<Position> {
    [sheet(n, 0.0, 0.0), sheet(n, height, 0.013)].concat()
}

#[test]
fn sheets_that_stay_apart_are_clean() {
    let mut judge = Judge::new(two(8, false));
    for step in 0..20 {
        judge
            .judge(state(
                f64::from(step),
                both(8, 0.5 - 0.02 * f64::from(step)),
            ))
            .unwrap();
    }
    let verdict = judge.verdict();
    assert!(verdict.is_clean() && verdict.states == 20, "{verdict:?}");
    assert_eq!(verdict.exact, 0, "the filter should do");
}

/// No state has a crossing, but the upper sheet is below the lower one in the end.
#[test]
fn sheets_that_tunnel_are_found_though_no_state_crosses() {
    for is_body in [false, true] {
        let mut judge = Judge::new(two(8, is_body));
        judge.judge(state(0.0, both(8, 0.1))).unwrap();
        judge.judge(state(0.1, both(8, -0.1))).unwrap();
        let verdict = judge.verdict();
        assert_eq!(verdict.crossings, 0);
        assert!(verdict.passages > 0 && !verdict.is_clean());
        assert_eq!(verdict.is_clean_within_cloth(), is_body);
        // All but the vertices that overhang have ended beyond: 7 by 7 of each sheet.
        let beyond: Vec<_> = verdict
            .ended_beyond
            .iter()
            .map(|p| (p.of, p.through, p.ended_beyond))
            .collect();
        assert_eq!(beyond, [(0, 1, 49), (1, 0, 49)]);
        // Back again, they have passed, but ended where they began.
        judge.judge(state(0.2, both(8, 0.1))).unwrap();
        let verdict = judge.verdict();
        assert!(verdict.ended_beyond.is_empty() && verdict.passages > 0);
    }
}

#[test]
fn a_vertex_pulled_through_crosses_in_the_state_and_on_the_way() {
    let mut judge = Judge::new(two(8, false));
    let mut pulled = both(8, 0.1);
    // An inner vertex of the upper sheet.
    let vertex = 64 + 3 * 8 + 4;
    judge.judge(state(0.0, pulled.clone())).unwrap();
    pulled[vertex][2] = -0.1;
    judge.judge(state(0.1, pulled)).unwrap();
    let verdict = judge.verdict();
    // Its six edges pierce the lower sheet, and some of that pierce what hangs through.
    let piercing = verdict.findings.iter().filter(|f| f.what == What::Crossing);
    let own = piercing.filter(|f| f.first.contains(&(vertex as u32)));
    assert_eq!(own.count(), 6);
    assert_eq!((verdict.crossing_states, verdict.most_in), (1, 1));
    assert_eq!(verdict.cloth_crossings, verdict.crossings);
    let passages = verdict.findings.iter().filter(|f| f.what == What::Passage);
    assert!(
        passages.clone().any(|f| f.first == [vertex as u32]),
        "{verdict:?}"
    );
    assert_eq!(verdict.ended_beyond[0].ended_beyond, 1);
}

#[test]
fn only_vertices_marked_as_squeezed_are_excused() {
    for (marked, clean) in [((28, 1), true), ((27, 1), false), ((28, 0), false)] {
        let mut judge = Judge::new(two(8, true));
        let mut pushed = both(8, 0.1);
        judge.judge(state(0.0, pushed.clone())).unwrap();
        pushed[28][2] = 0.2;
        let mut squeezed = state(0.1, pushed);
        squeezed.squeezed.push(marked);
        judge.judge(squeezed).unwrap();
        let verdict = judge.verdict();
        // A marked neighbour excuses only some of the pairs of the vertex that is pushed.
        assert_eq!(verdict.is_clean(), clean, "{marked:?}: {verdict:?}");
        assert_eq!(verdict.excused > 0, marked.1 == 1);
    }
}

/// A vertex of the upper sheet that starts below the lower one is drawn out. Its faces and what it
/// is drawn through are listed.
#[test]
fn cloth_that_starts_through_cloth_may_leave_it_and_no_other_may_enter() {
    let vertex = 64 + 3 * 8 + 4;
    let mut through = both(8, 0.1);
    through[vertex][2] = -0.05;
    let near = |v: usize, first: usize| {
        let at = |v: usize| [(v - first) / 8, (v - first) % 8];
        let ([i, k], [a, b]) = (at(v), at(vertex - 64 + first));
        i.abs_diff(a) <= 2 && k.abs_diff(b) <= 2
    };
    let listed = |through: bool| -> Vec<(u32, u32)> {
        let lower = (0..64).filter(|&v| near(v, 0)).map(|v| (v as u32, 0));
        let upper = (64..128).filter(|&v| near(v, 64));
        let upper = upper.map(|v| (v as u32, 1));
        lower.chain(upper).filter(|_| through).collect()
    };
    let of = |time: f64, positions: &[Position], kept: Vec<(u32, u32)>| State {
        kept,
        ..state(time, positions.to_vec())
    };
    let mut out = through.clone();
    out[vertex][2] = 0.1;
    let judged = |states: &[State]| {
        let mut judge = Judge::new(two(8, false));
        states.iter().for_each(|s| judge.judge(s.clone()).unwrap());
        judge.verdict()
    };
    let begins = of(0.0, &through, listed(true));
    let verdict = judged(&[begins.clone(), of(0.1, &out, Vec::new())]);
    assert!(verdict.is_clean() && verdict.kept > 6, "{verdict:?}");
    assert_eq!(verdict.kept_vertices, [50, 0]);
    assert_eq!(verdict.free_since, Some(0.1));
    // Without the list, or with one that misses a side, it crosses.
    let unlisted = of(0.0, &through, Vec::new());
    assert!(judged(&[unlisted]).crossings > 0);
    let one_side = listed(true).into_iter().filter(|(_, group)| *group == 1);
    assert!(judged(&[of(0.0, &through, one_side.collect())]).crossings > 0);
    // A list that grows, or that begins with what does not cross, is held against the run.
    let mut more = listed(true);
    more.push((0, 0));
    let verdict = judged(&[begins.clone(), of(0.1, &through, more)]);
    assert_eq!((verdict.grown, verdict.is_clean()), (1, false));
    let verdict = judged(&[of(0.0, &out, listed(true))]);
    assert_eq!((verdict.grown, verdict.is_clean()), (1, false));
    // Pairs that are not listed any more must not come back, nor what is far away come through.
    let free = of(0.1, &out, Vec::new());
    let back = judged(&[begins.clone(), free, of(0.2, &through, Vec::new())]);
    assert!(back.crossings > 0 && back.passages > 0);
    let mut elsewhere = through.clone();
    elsewhere[64 + 49][2] = -0.05;
    let far = judged(&[begins, of(0.1, &elsewhere, listed(true))]);
    assert!(far.passages > 0 || far.crossings > 0, "{far:?}");
}

#[test]
fn states_that_are_none_are_refused() {
    let mut judge = Judge::new(two(3, false));
    assert!(judge.judge(state(0.0, vec![[0.0; 3]; 17])).is_err());
    let mut lost = both(3, 0.1);
    lost[4][1] = f64::NAN;
    assert!(judge.judge(state(0.0, lost)).is_err());
    assert_eq!(judge.verdict().states, 0);
}

/// Two bodies that pass through each other are nobody's concern.
#[test]
fn bodies_are_not_judged_against_bodies() {
    let piece = |name: &str, first: u32| Piece {
        name: name.to_owned(),
        is_body: true,
        vertices: first..first + 9,
        passes_itself: false,
        sewn: Vec::new(),
    };
    let all = [triangles(3, 0), triangles(3, 9)].concat();
    let surface = Surface::new(vec![piece("a", 0), piece("b", 9)], all).unwrap();
    let mut judge = Judge::new(surface);
    judge.judge(state(0.0, both(3, 0.1))).unwrap();
    judge.judge(state(0.1, both(3, -0.1))).unwrap();
    assert!(judge.verdict().is_clean() && judge.verdict().pairs == 0);
}

fn points(count: usize) -> impl Strategy<Value = Vec<Position>> {
    // Few values, so that features touch and lie in one plane often.
    let number = || (-4i32..=4).prop_map(|k| f64::from(k) / 4.0);
    prop::collection::vec([number(), number(), number()], count)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        64 * std::env::var("PROPTEST_TIMES").ok().and_then(|n| n.parse().ok()).unwrap_or(1)
    ))]

    /// The judge finds in small sets what a look at all pairs finds, by exact arithmetic alone.
    #[test]
    fn sets_are_judged_as_all_pairs_are(states in prop::collection::vec(points(15), 2..4)) {
        let piece = |name: &str, is_body, vertices| Piece { name: name.to_owned(), is_body, vertices, passes_itself: false, sewn: Vec::new() };
        let pieces = vec![piece("cloth", false, 0..9), piece("body", true, 9..15)];
        let faces = vec![[0, 1, 2], [2, 1, 3], [3, 4, 5], [6, 7, 8], [9, 10, 11], [12, 13, 14]];
        let surface = Surface::new(pieces, faces.clone()).unwrap();
        let mut judge = Judge::new(surface);
        for (step, x) in states.iter().enumerate() {
            judge.judge(state(step as f64, x.clone())).unwrap();
        }
        let verdict = judge.verdict();
        let is_body = |v: u32| v >= 9;
        let mut edges: Vec<[u32; 2]> = faces.iter().flat_map(|&[a, b, c]| [[a, b], [b, c], [c, a]]).collect();
        edges.iter_mut().for_each(|e| e.sort_unstable());
        edges.sort_unstable();
        edges.dedup();
        let (mut crossings, mut passages, mut touches) = (0, 0, 0);
        let mut start = &states[0];
        for end in &states {
            let mut pair = |kind, v: [u32; 4]| {
                let at = |x: &[Position]| v.map(|v| x[v as usize]);
                let meetings = meet(&Way { kind, start: at(start), end: at(end) }).unwrap();
                let through = meetings.iter().filter(|m| m.passes.is_some()).count() as u64;
                passages += through;
                touches += u64::from(!meetings.is_empty() && through == 0);
            };
            for face in &faces {
                for vertex in (0..15).filter(|v| !face.contains(v)) {
                    if !(is_body(vertex) && is_body(face[0])) {
                        pair(Kind::VertexFace, [vertex, face[0], face[1], face[2]]);
                    }
                }
                for edge in edges.iter().filter(|e| !face.contains(&e[0]) && !face.contains(&e[1])) {
                    let at = |v: u32| end[v as usize];
                    let may = !(is_body(edge[0]) && is_body(face[0]));
                    crossings += u64::from(may && pierces(edge.map(at), face.map(at)));
                }
            }
            for (k, e) in edges.iter().enumerate() {
                for f in &edges[..k] {
                    let may = !(is_body(e[0]) && is_body(f[0]));
                    if may && !e.contains(&f[0]) && !e.contains(&f[1]) {
                        pair(Kind::EdgeEdge, [f[0], f[1], e[0], e[1]]);
                    }
                }
            }
            start = end;
        }
        prop_assert_eq!((verdict.crossings, verdict.passages, verdict.touches), (crossings, passages, touches));
    }
}
