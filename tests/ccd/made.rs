//! A generator of queries: hits and near misses of all sorts.

use glam::DVec3;
use weftwork::collide::ccd::Motion;

use crate::oracle::Kind;

/// Random numbers, the same for the same seed (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A whole number from 0 up to a count, which is left out.
    pub(crate) fn below(&mut self, count: u64) -> u64 {
        self.bits() % count
    }

    /// A number from 0 to 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn signed(&mut self) -> f64 {
        2.0 * self.unit() - 1.0
    }

    pub(crate) fn vector(&mut self) -> DVec3 {
        DVec3::new(self.signed(), self.signed(), self.signed())
    }

    /// A vector with coordinates from −1 to 1 by quarters: many are in a line or in a plane.
    fn coarse(&mut self) -> DVec3 {
        let mut number = || self.below(9) as f64 / 4.0 - 1.0;
        DVec3::new(number(), number(), number())
    }

    /// A number of any order of magnitude, from `least` to 1; one of eight is zero.
    fn small(&mut self, least: f64) -> f64 {
        if self.below(8) == 0 {
            return 0.0;
        }
        least.powf(self.unit())
    }
}

/// How queries are made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Sort {
    /// Vertices are anywhere at both ends.
    Random,
    /// The features meet at some time, inside of both, or pass each other at any distance.
    Meeting,
    /// They meet at corners and borders, or pass these at any distance.
    Grazing,
    /// They stay in one plane.
    Coplanar,
    /// Edges stay parallel, and vertices slide along faces, at any distance.
    Parallel,
    /// Coordinates are coarse, so that all that is degenerate happens.
    Coarse,
    /// Nothing moves.
    Still,
    /// Faces and edges have no extent, or hardly any.
    Degenerate,
    /// Features move little and near each other, as in cloth.
    Cloth,
}

pub(crate) const SORTS: [Sort; 9] = [
    Sort::Random,
    Sort::Meeting,
    Sort::Grazing,
    Sort::Coplanar,
    Sort::Parallel,
    Sort::Coarse,
    Sort::Still,
    Sort::Degenerate,
    Sort::Cloth,
];

/// A change of a query after it is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Change {
    None,
    /// Some coordinates go to the next number up or down.
    Ulp,
    /// Both features are moved away from the origin, by up to 10⁶.
    Far,
    /// All lengths are multiplied by 10⁻⁹.
    Tiny,
    /// All lengths are multiplied by 10⁹.
    Huge,
    /// All lengths are multiplied by a power of two, of up to ±900.
    Extreme,
    /// Both features move along by the same way, of any length up to 1000.
    Carried,
}

pub(crate) const CHANGES: [Change; 7] = [
    Change::None,
    Change::Ulp,
    Change::Far,
    Change::Tiny,
    Change::Huge,
    Change::Extreme,
    Change::Carried,
];

pub(crate) fn kind(random: &mut Random) -> Kind {
    if random.below(2) == 0 {
        Kind::VertexFace
    } else {
        Kind::EdgeEdge
    }
}

/// A query of a sort.
pub(crate) fn made(random: &mut Random, kind: Kind, sort: Sort) -> [Motion; 4] {
    match sort {
        Sort::Random => free(random),
        Sort::Meeting => meeting(random, kind, false, 1.0),
        Sort::Grazing => meeting(random, kind, true, 1.0),
        Sort::Cloth => meeting(random, kind, false, 0.1),
        Sort::Coplanar => {
            let mut x = if random.below(2) == 0 {
                meeting(random, kind, true, 1.0)
            } else {
                free(random)
            };
            let height = random.signed();
            for x in &mut x {
                (x.start.z, x.end.z) = (height, height);
            }
            // In a plane that no axis is normal to, the coordinates are only nearly coplanar.
            if random.below(2) == 0 {
                let lean = |x: &mut DVec3| x.z += x.x * 0.5 + x.y * 0.25;
                for x in &mut x {
                    lean(&mut x.start);
                    lean(&mut x.end);
                }
            }
            x
        }
        Sort::Parallel => parallel(random, kind),
        Sort::Coarse => [(); 4].map(|()| Motion {
            start: random.coarse(),
            end: random.coarse(),
        }),
        Sort::Still => {
            let mut x = meeting(random, kind, false, 0.0);
            for x in &mut x {
                x.end = x.start;
            }
            x
        }
        Sort::Degenerate => degenerate(random, kind),
    }
}

fn free(random: &mut Random) -> [Motion; 4] {
    [(); 4].map(|()| Motion {
        start: random.vector(),
        end: random.vector(),
    })
}

/// Weights of the vertices of a pair of features in the difference of two points.
fn weights(random: &mut Random, kind: Kind, at_border: bool) -> [f64; 4] {
    let mut part = |border: bool| {
        let inside = random.unit();
        if border {
            random.below(2) as f64
        } else {
            inside
        }
    };
    match kind {
        Kind::VertexFace => {
            let (u, v) = (part(at_border), part(false));
            let (b, c) = (u * (1.0 - v), u * v);
            [1.0, b + c - 1.0, -b, -c]
        }
        Kind::EdgeEdge => {
            let (s, t) = (part(at_border), part(false));
            [1.0 - s, s, t - 1.0, -t]
        }
    }
}

/// How many of the four vertices are the first feature's.
pub(crate) fn firsts(kind: Kind) -> usize {
    match kind {
        Kind::VertexFace => 1,
        Kind::EdgeEdge => 2,
    }
}

/// Features that meet inside of both at a known time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadOn {
    pub(crate) motions: [Motion; 4],
    pub(crate) time: f64,
    /// How fast they approach each other along their normal when they meet.
    pub(crate) speed: f64,
}

/// Features that meet head on: faster than anything else moves.
pub(crate) fn head_on(random: &mut Random, kind: Kind) -> HeadOn {
    let w = weights(random, kind, false);
    let mut x = [(); 4].map(|()| random.vector());
    let v = [(); 4].map(|()| random.vector() * 0.2);
    let normal = match kind {
        Kind::VertexFace => (x[2] - x[1]).cross(x[3] - x[1]),
        Kind::EdgeEdge => (x[1] - x[0]).cross(x[3] - x[2]),
    };
    let normal = normal.normalize_or(DVec3::X);
    let combined = |x: &[DVec3; 4]| x[0] * w[0] + x[1] * w[1] + x[2] * w[2] + x[3] * w[3];
    let difference = combined(&x);
    for x in &mut x[..firsts(kind)] {
        *x -= difference;
    }
    let time = 0.1 + 0.8 * random.unit();
    let mut v = v;
    for v in &mut v[..firsts(kind)] {
        *v -= normal;
    }
    HeadOn {
        motions: [0, 1, 2, 3].map(|k| Motion {
            start: x[k] - v[k] * time,
            end: x[k] + v[k] * (1.0 - time),
        }),
        time,
        speed: -combined(&v).dot(normal),
    }
}

/// Features that at some time have two points at one place, or at any distance from each other.
fn meeting(random: &mut Random, kind: Kind, at_border: bool, speed: f64) -> [Motion; 4] {
    let w = weights(random, kind, at_border);
    let (mut x, v) = (
        [(); 4].map(|()| random.vector()),
        [(); 4].map(|()| random.vector() * speed),
    );
    let normal = (x[1] - x[3]).cross(x[2] - x[3]).normalize_or_zero();
    let apart = normal * (random.small(1e-16) * if random.below(2) == 0 { 1.0 } else { -1.0 });
    let difference = x[0] * w[0] + x[1] * w[1] + x[2] * w[2] + x[3] * w[3] - apart;
    for x in &mut x[..firsts(kind)] {
        *x -= difference;
    }
    let time = random.unit() * 1.2 - 0.1;
    [0, 1, 2, 3].map(|k| Motion {
        start: x[k] - v[k] * time,
        end: x[k] + v[k] * (1.0 - time),
    })
}

fn parallel(random: &mut Random, kind: Kind) -> [Motion; 4] {
    let mut x = meeting(random, kind, false, 1.0);
    let apart = random.vector() * random.small(1e-16);
    let common = random.vector() * random.signed();
    match kind {
        Kind::EdgeEdge => {
            // The second edge is the first one, shifted along itself and apart.
            let edge = x[1].start - x[0].start;
            let (shift, length) = (random.signed(), 0.5 + random.unit());
            for (k, along) in [(2, shift), (3, shift + length)] {
                x[k].start = x[0].start + edge * along + apart;
            }
            let slide = edge * random.signed();
            let turn = random.vector() * random.small(1e-9) * random.below(2) as f64;
            x[0].end = x[0].start + common;
            x[1].end = x[1].start + common;
            x[2].end = x[2].start + common + slide;
            x[3].end = x[3].start + common + slide + turn;
        }
        Kind::VertexFace => {
            let (a, b, c) = (x[1].start, x[2].start, x[3].start);
            let mut on_plane =
                || a + (b - a) * (1.5 * random.signed()) + (c - a) * (1.5 * random.signed());
            let (start, end) = (on_plane(), on_plane());
            x[0].start = start + apart;
            for x in &mut x[1..] {
                x.end = x.start + common;
            }
            x[0].end = end + apart + common;
        }
    }
    x
}

fn degenerate(random: &mut Random, kind: Kind) -> [Motion; 4] {
    let border = random.below(2) == 0;
    let mut x = meeting(random, kind, border, 1.0);
    // Some vertex is drawn to another: into the same place, or nearly, or they stay in a line.
    for _ in 0..1 + random.below(2) {
        let (i, j) = (random.below(4) as usize, random.below(4) as usize);
        let near = random.small(1e-16);
        let from = x[j];
        x[i].start = from.start + (x[i].start - from.start) * near;
        if random.below(2) == 0 {
            x[i].end = from.end + (x[i].end - from.end) * near;
        }
    }
    if random.below(3) == 0 {
        let (s, t) = (random.signed(), random.signed());
        x[2].start = x[1].start + (x[3].start - x[1].start) * s;
        x[2].end = x[1].end + (x[3].end - x[1].end) * t;
    }
    x
}

/// Changes a query; the second number is what lengths are multiplied by.
pub(crate) fn changed(random: &mut Random, x: &mut [Motion; 4], change: Change) -> f64 {
    let each = |x: &mut [Motion; 4], f: &mut dyn FnMut(DVec3) -> DVec3| {
        for x in x {
            x.start = f(x.start);
            x.end = f(x.end);
        }
    };
    match change {
        Change::None => 1.0,
        Change::Ulp => {
            let mut step = |c: f64| match random.below(3) {
                0 => c.next_up(),
                1 => c.next_down(),
                _ => c,
            };
            each(x, &mut |v| DVec3::new(step(v.x), step(v.y), step(v.z)));
            1.0
        }
        Change::Far => {
            let to = random.vector() * 1e6;
            each(x, &mut |v| v + to);
            1.0
        }
        Change::Tiny | Change::Huge | Change::Extreme => {
            let factor = match change {
                Change::Tiny => 1e-9,
                Change::Huge => 1e9,
                _ => 2_f64.powi(random.below(1801) as i32 - 900),
            };
            each(x, &mut |v| v * factor);
            factor
        }
        Change::Carried => {
            let by = random.vector() * 1000_f64.powf(random.unit());
            for x in x {
                x.end += by;
            }
            1.0
        }
    }
}
