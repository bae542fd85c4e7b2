//! Repairs of body meshes: pieces that are not closed become surfaces with two sides.
//!
//! Triangles without area, and those that are there twice, are left out. The rest falls into pieces
//! that hang together over edges of two triangles. A piece all of whose edges are such, and that
//! has an inside and an outside, is closed: its triangles are turned to face one way, if they do
//! not, and outwards. Every other piece gets each of its triangles a second time, turned over, so
//! that the two lie back to back. A vertex within the piece is there once for each side, and both
//! sides share the vertices of its border. The result is closed, encloses nothing, and has an
//! outside on either side.
//!
//! A Möbius strip is cut along some edge, and edges of more than two triangles are borders of all
//! of them.

use std::collections::VecDeque;

use glam::DVec3;

use super::check::FLATTEST;
use super::{FaultKind, MeshError, TriMesh, check_body};
use crate::disjoint_sets::DisjointSets;

/// A body's mesh that collisions can be tested with, and what was done to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mended {
    /// Closed pieces, then those with two sides.
    pub mesh: TriMesh,
    /// The vertex of the file's mesh that each vertex is.
    pub of: Vec<u32>,
    /// The first triangle of the pieces with two sides.
    pub two_sided: u32,
    /// The triangles that were left, before some of them were doubled.
    pub left: Vec<[u32; 3]>,
    /// The defects, in words.
    pub found: String,
}

/// How many elements have a fault.
#[derive(Default)]
struct Found {
    flat: usize,
    duplicate: usize,
    open: usize,
    shared: usize,
    turned: usize,
    twisted: usize,
    inward: bool,
    pieces: [usize; 2],
}

/// Checks a mesh of a body, and mends it if it is not closed and facing outwards; `None` if it is.
///
/// # Errors
/// [`MeshError::Faulty`] for what cannot be mended: no triangles with an area, vertices that do not
/// exist, and coordinates that are no finite numbers.
pub fn mend_body(mesh: &TriMesh) -> Result<Option<Mended>, MeshError> {
    let faults = match check_body(mesh, true) {
        Ok(()) => return Ok(None),
        Err(MeshError::Faulty(faults)) => faults,
        Err(other) => return Err(other),
    };
    let is_hopeless = |kind| {
        matches!(
            kind,
            FaultKind::Empty | FaultKind::IndexOutOfRange | FaultKind::NotFinite
        )
    };
    if faults.iter().any(|fault| is_hopeless(fault.kind)) {
        return Err(MeshError::Faulty(faults));
    }
    let mut found = Found::default();
    let mut left = sound(mesh, &mut found);
    if left.is_empty() {
        return Err(MeshError::Faulty(faults));
    }
    let joints = joints(&left, &mut found);
    let mut pieces = Pieces::new(&left, &joints);
    pieces.close(mesh, &mut left, &mut found);
    let mended = pieces.doubled(mesh, &left, &joints);
    Ok(Some(Mended {
        found: found.told(),
        left,
        ..mended
    }))
}

/// The triangles with an area, each once.
fn sound(mesh: &TriMesh, found: &mut Found) -> Vec<[u32; 3]> {
    let has_area = |triangle: &[u32; 3]| {
        let [a, b, c] = mesh.corners(*triangle);
        let longest = [a.distance(b), b.distance(c), c.distance(a)]
            .into_iter()
            .fold(0.0, f64::max);
        (b - a).cross(c - a).length() > FLATTEST * longest * longest
    };
    let mut kept: Vec<(usize, [u32; 3])> = (mesh.triangles.iter().copied().enumerate())
        .filter(|(_, triangle)| has_area(triangle))
        .collect();
    found.flat = mesh.triangles.len() - kept.len();
    let corners = |&(_, mut triangle): &(usize, [u32; 3])| {
        triangle.sort_unstable();
        triangle
    };
    let before = kept.len();
    kept.sort_by_key(|one| (corners(one), one.0));
    kept.dedup_by_key(|one| corners(one));
    found.duplicate = before - kept.len();
    kept.sort_unstable_by_key(|one| one.0);
    kept.into_iter().map(|(_, triangle)| triangle).collect()
}

/// Over each edge of each triangle, from a corner to the next, the one other triangle and its edge.
type Joints = Vec<[Option<(usize, usize)>; 3]>;

fn joints(triangles: &[[u32; 3]], found: &mut Found) -> Joints {
    let mut sides: Vec<([u32; 2], usize, usize)> = Vec::with_capacity(3 * triangles.len());
    for (number, t) in triangles.iter().enumerate() {
        for k in 0..3 {
            let (a, b) = (t[k], t[(k + 1) % 3]);
            sides.push(([a.min(b), a.max(b)], number, k));
        }
    }
    sides.sort_unstable();
    let mut joints = vec![[None; 3]; triangles.len()];
    for beside in sides.chunk_by(|a, b| a.0 == b.0) {
        match *beside {
            [_] => found.open += 1,
            [(_, one, i), (_, two, j)] => {
                joints[one][i] = Some((two, j));
                joints[two][j] = Some((one, i));
            }
            _ => found.shared += 1,
        }
    }
    joints
}

/// Triangles that hang together.
struct Pieces {
    /// The piece of each triangle.
    of: Vec<usize>,
    /// Whether a triangle is to be turned over, so that its piece faces one way.
    turned: Vec<bool>,
    is_closed: Vec<bool>,
    /// Whether each piece faces one way as it is.
    is_even: Vec<bool>,
    /// Edges over which a piece that has but one side would go on, of triangles and corners.
    cut: Vec<[bool; 3]>,
    twisted: usize,
}

impl Pieces {
    fn new(triangles: &[[u32; 3]], joints: &Joints) -> Self {
        let count = triangles.len();
        let mut pieces = Self {
            of: vec![usize::MAX; count],
            turned: vec![false; count],
            is_closed: Vec::new(),
            is_even: Vec::new(),
            cut: vec![[false; 3]; count],
            twisted: 0,
        };
        for first in 0..count {
            if pieces.of[first] == usize::MAX {
                pieces.follow(first, triangles, joints);
            }
        }
        pieces
    }

    /// Finds all that hangs together with a triangle.
    fn follow(&mut self, first: usize, triangles: &[[u32; 3]], joints: &Joints) {
        let piece = self.is_closed.len();
        let (mut is_closed, mut is_even) = (true, true);
        let mut next = VecDeque::from([first]);
        self.of[first] = piece;
        while let Some(one) = next.pop_front() {
            for k in 0..3 {
                let Some((two, j)) = joints[one][k] else {
                    is_closed = false;
                    continue;
                };
                // Neighbours run along their edge in opposite directions, if they face one way.
                let differs = triangles[one][k] == triangles[two][j];
                let turned = self.turned[one] != differs;
                if self.of[two] == usize::MAX {
                    self.of[two] = piece;
                    self.turned[two] = turned;
                    is_even &= !turned;
                    next.push_back(two);
                } else if self.turned[two] != turned {
                    is_closed = false;
                    self.twisted += usize::from(!self.cut[one][k]);
                    self.cut[one][k] = true;
                    self.cut[two][j] = true;
                }
            }
        }
        self.is_closed.push(is_closed);
        self.is_even.push(is_even);
    }

    /// Turns the triangles of closed pieces: where they do not face one way, so that they enclose a
    /// volume, and all of them if together they enclose less than nothing.
    fn close(&mut self, mesh: &TriMesh, triangles: &mut [[u32; 3]], found: &mut Found) {
        found.twisted = self.twisted;
        let mut volumes = vec![0.0; self.is_closed.len()];
        let origin = mesh.positions.first().copied().unwrap_or(DVec3::ZERO);
        for (t, triangle) in triangles.iter_mut().enumerate() {
            let piece = self.of[t];
            if self.is_closed[piece] && self.turned[t] {
                triangle.swap(1, 2);
            }
            let [a, b, c] = mesh.corners(*triangle).map(|corner| corner - origin);
            volumes[piece] += a.dot(b.cross(c)) / 6.0;
        }
        let mut turn = vec![false; volumes.len()];
        for (piece, volume) in volumes.iter_mut().enumerate() {
            turn[piece] = !self.is_even[piece] && *volume < 0.0;
            if turn[piece] {
                *volume = -*volume;
            }
        }
        let closed = |piece: &usize| self.is_closed[*piece];
        let whole: f64 = (0..volumes.len())
            .filter(closed)
            .map(|piece| volumes[piece])
            .sum();
        found.inward = whole < 0.0;
        for (t, triangle) in triangles.iter_mut().enumerate() {
            let piece = self.of[t];
            if !self.is_closed[piece] {
                continue;
            }
            if turn[piece] != found.inward {
                triangle.swap(1, 2);
            }
            found.turned += usize::from(!self.is_even[piece] && self.turned[t] != turn[piece]);
        }
        // A piece that encloses nothing has no inside.
        if whole == 0.0 {
            self.is_closed.fill(false);
        }
        for is_closed in &self.is_closed {
            found.pieces[usize::from(!is_closed)] += 1;
        }
    }

    /// Closed pieces as they are, then all others with their two sides.
    fn doubled(&self, mesh: &TriMesh, triangles: &[[u32; 3]], joints: &Joints) -> Mended {
        let mut made = Mended::default();
        let add = |made: &mut Mended, vertex: u32| {
            made.mesh.positions.push(mesh.positions[vertex as usize]);
            made.of.push(vertex);
            made.of.len() as u32 - 1
        };
        let mut of_closed = vec![u32::MAX; mesh.positions.len()];
        for (t, triangle) in triangles.iter().enumerate() {
            if self.is_closed[self.of[t]] {
                let corners = triangle.map(|vertex| {
                    let known = &mut of_closed[vertex as usize];
                    if *known == u32::MAX {
                        *known = add(&mut made, vertex);
                    }
                    *known
                });
                made.mesh.triangles.push(corners);
            }
        }
        made.two_sided = made.mesh.triangles.len() as u32;
        // The number of a corner of a triangle as seen from its front or from its back. The front
        // is where the triangle faces once its piece faces one way.
        let corner = |t: usize, k: usize, back: usize| (6 * t + 2 * k + back) as u32;
        let mut same = DisjointSets::new(6 * triangles.len());
        for (t, triangle) in triangles.iter().enumerate() {
            for (k, joint) in joints[t].iter().enumerate() {
                let ends = [k, (k + 1) % 3];
                match joint.filter(|_| !self.cut[t][k]) {
                    Some((other, j)) => {
                        for end in ends {
                            let at = [j, (j + 1) % 3];
                            let there = at
                                .into_iter()
                                .find(|&at| triangles[other][at] == triangle[end]);
                            for back in 0..2 {
                                if let Some(there) = there {
                                    same.unite(corner(t, end, back), corner(other, there, back));
                                }
                            }
                        }
                    }
                    // The two sides hang together at a border.
                    None => {
                        for end in ends {
                            same.unite(corner(t, end, 0), corner(t, end, 1));
                        }
                    }
                }
            }
        }
        let mut number = vec![u32::MAX; 6 * triangles.len()];
        for back in 0..2 {
            for (t, triangle) in triangles.iter().enumerate() {
                if self.is_closed[self.of[t]] {
                    continue;
                }
                let mut corners = [0, 1, 2].map(|k| {
                    let least = same.least(corner(t, k, back)) as usize;
                    if number[least] == u32::MAX {
                        number[least] = add(&mut made, triangle[k]);
                    }
                    number[least]
                });
                if self.turned[t] != (back == 1) {
                    corners.swap(1, 2);
                }
                made.mesh.triangles.push(corners);
            }
        }
        made
    }
}

impl Found {
    /// All of it in words.
    fn told(&self) -> String {
        let count = |count: usize, one: &str, more: &str| {
            (count > 0).then(|| format!("{count} {}", if count == 1 { one } else { more }))
        };
        let mut wrong: Vec<String> = [
            count(self.open, "open edge", "open edges"),
            count(
                self.shared,
                "edge of more than two triangles",
                "edges of more than two triangles",
            ),
            count(
                self.twisted,
                "edge over which it has but one side",
                "edges over which it has but one side",
            ),
            count(
                self.flat,
                "triangle without area, which is left out",
                "triangles without area, which are left out",
            ),
            count(
                self.duplicate,
                "triangle that is there twice, which counts once",
                "triangles that are there more than once, which count once",
            ),
            count(
                self.turned,
                "triangle that faces another way than those beside it, which is turned",
                "triangles that face another way than those beside them, which are turned",
            ),
        ]
        .into_iter()
        .flatten()
        .collect();
        if self.inward {
            wrong.push("triangles that face inwards, all of which are turned".to_owned());
        }
        let [closed, open] = self.pieces;
        let becomes = match (closed, open) {
            (_, 0) => "it is closed, and has an inside".to_owned(),
            (0, _) => "it is a surface with two sides, and has no inside".to_owned(),
            _ => format!(
                "{closed} of its pieces are closed and have an inside, {open} are surfaces with two sides"
            ),
        };
        if wrong.is_empty() {
            // Such as two sheets back to back.
            wrong.push("no volume".to_owned());
        }
        format!("{}: {becomes}", wrong.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{cuboid, grid, icosphere};
    use super::*;

    fn mended(mesh: &TriMesh) -> Mended {
        let mended = mend_body(mesh).unwrap().unwrap();
        // It is closed, or encloses nothing.
        for (vertex, of) in mended.of.iter().enumerate() {
            assert_eq!(mended.mesh.positions[vertex], mesh.positions[*of as usize]);
        }
        mended
    }

    /// How often each edge has a triangle running along it, and back.
    fn is_balanced(triangles: &[[u32; 3]]) -> bool {
        let mut sides: Vec<[u32; 2]> = triangles
            .iter()
            .flat_map(|&[a, b, c]| [[a, b], [b, c], [c, a]])
            .collect();
        sides.sort_unstable();
        let count = |side: [u32; 2]| sides.iter().filter(|of| **of == side).count();
        sides.iter().all(|&[a, b]| count([a, b]) == count([b, a]))
    }

    #[test]
    fn closed_meshes_that_face_outwards_stay_and_others_are_turned() {
        let ball = icosphere(DVec3::ONE, 0.3, 0.2).unwrap();
        assert_eq!(mend_body(&ball).unwrap(), None);
        let mut inward = ball.clone();
        inward.triangles.iter_mut().for_each(|t| t.swap(1, 2));
        let made = mended(&inward);
        assert_eq!(made.two_sided as usize, made.mesh.triangles.len());
        assert!((made.mesh.volume() - ball.volume()).abs() < 1e-12);
        assert_eq!(
            made.found,
            "triangles that face inwards, all of which are turned: it is closed, and has an inside"
        );
        // Some of them, and some twice.
        let mut mixed = ball.clone();
        for t in [3, 8, 9] {
            mixed.triangles[t].swap(1, 2);
        }
        let [a, b, c] = ball.triangles[5];
        mixed.triangles.extend([[b, a, c], [a, a, b]]);
        let made = mended(&mixed);
        assert!((made.mesh.volume() - ball.volume()).abs() < 1e-12);
        assert_eq!(made.mesh.triangles.len(), ball.triangles.len());
        assert_eq!(
            made.found,
            "1 triangle without area, which is left out, 1 triangle that is there twice, which counts once, 3 triangles that face another \
             way than those beside them, which are turned: it is closed, and has an inside"
        );
        // A cavity faces into itself, as it should.
        let mut hollow = cuboid(DVec3::ZERO, DVec3::splat(2.0), 3.0).unwrap();
        let hole = cuboid(DVec3::ZERO, DVec3::ONE, 3.0).unwrap();
        let first = hollow.positions.len() as u32;
        hollow.positions.extend(&hole.positions);
        hollow.triangles.extend(
            hole.triangles
                .iter()
                .map(|&[a, b, c]| [a, c, b].map(|v| v + first)),
        );
        assert_eq!(mend_body(&hollow).unwrap(), None);
    }

    #[test]
    fn open_meshes_get_a_second_side() {
        let sheet = grid([1.0, 1.0], [4, 5], DVec3::ZERO, DVec3::ZERO).unwrap();
        let made = mended(&sheet);
        assert_eq!(made.two_sided, 0);
        assert_eq!(made.mesh.triangles.len(), 2 * sheet.triangles.len());
        // Six vertices are not at the border.
        assert_eq!(made.mesh.positions.len(), 20 + 6);
        assert!(is_balanced(&made.mesh.triangles));
        assert_eq!(made.mesh.volume(), 0.0);
        assert_eq!(
            made.found,
            "14 open edges: it is a surface with two sides, and has no inside"
        );
        // Beside a closed piece, with one triangle turned over.
        let mut both = cuboid(DVec3::X * 5.0, DVec3::ONE, 2.0).unwrap();
        let first = both.positions.len() as u32;
        both.positions.extend(&sheet.positions);
        both.triangles
            .extend(sheet.triangles.iter().map(|t| t.map(|v| v + first)));
        both.triangles[14].swap(0, 1);
        let made = mended(&both);
        assert_eq!(made.two_sided, 12);
        assert!((made.mesh.volume() - 1.0).abs() < 1e-12);
        assert!(is_balanced(&made.mesh.triangles));
        assert!(made.found.ends_with(
            "1 of its pieces are closed and have an inside, 1 are surfaces with two sides"
        ));
        // Every front has neighbours that face its way.
        let normals = made.mesh.triangles[12..].iter().map(|t| {
            let [a, b, c] = made.mesh.corners(*t);
            (b - a).cross(c - a).z.signum()
        });
        let normals: Vec<f64> = normals.collect();
        let count = sheet.triangles.len();
        assert!(normals[..count].iter().all(|n| *n == normals[0]));
        assert!(normals[count..].iter().all(|n| *n == -normals[0]));
    }

    /// Three sheets that meet at an edge, and a strip with a half turn.
    #[test]
    fn edges_of_three_triangles_and_twists_are_borders() {
        let fins = TriMesh {
            positions: vec![
                DVec3::ZERO,
                DVec3::X,
                DVec3::Y,
                DVec3::Z,
                DVec3::new(0.0, -1.0, -1.0),
            ],
            triangles: vec![[0, 1, 2], [0, 1, 3], [0, 1, 4]],
        };
        let made = mended(&fins);
        assert!(
            made.found
                .starts_with("6 open edges, 1 edge of more than two triangles: ")
        );
        // Each is a triangle of its own with two sides.
        assert_eq!(
            (made.mesh.triangles.len(), made.mesh.positions.len()),
            (6, 9)
        );
        let around = 9_u32;
        let mut strip = TriMesh::default();
        for i in 0..around {
            let angle = std::f64::consts::TAU * f64::from(i) / f64::from(around);
            let out = DVec3::new(angle.cos(), angle.sin(), 0.0);
            let across = out * (0.5 * angle).cos() + DVec3::Z * (0.5 * angle).sin();
            strip
                .positions
                .extend([out - across * 0.2, out + across * 0.2]);
            let (a, b) = (2 * i, 2 * i + 1);
            let (c, d) = if i + 1 < around {
                (a + 2, b + 2)
            } else {
                (1, 0)
            };
            strip.triangles.extend([[a, c, b], [b, c, d]]);
        }
        let made = mended(&strip);
        assert!(is_balanced(&made.mesh.triangles));
        assert!(
            made.found.contains("1 edge over which it has but one side"),
            "{}",
            made.found
        );
        assert_eq!(made.mesh.triangles.len(), 2 * strip.triangles.len());
    }

    #[test]
    fn meshes_of_nothing_and_of_no_numbers_are_refused() {
        let sheet = grid([1.0, 1.0], [3, 3], DVec3::ZERO, DVec3::ZERO).unwrap();
        let refused = |mesh: &TriMesh| mend_body(mesh).unwrap_err().to_string();
        let mut bad = sheet.clone();
        bad.positions[4].x = f64::NAN;
        assert!(refused(&bad).contains("not finite numbers"));
        let mut bad = sheet.clone();
        bad.triangles[0][0] = 99;
        assert!(refused(&bad).contains("a vertex that does not exist"));
        assert!(refused(&TriMesh::default()).contains("no triangles"));
        let mut flat = sheet;
        flat.positions.fill(DVec3::ONE);
        assert!(refused(&flat).contains("triangles without area"));
    }
}
