//! Seams: the point that each vertex is sewn to, and how strongly.
//!
//! A side of a seam is a part of the border of a cloth: vertices that follow each other along edges
//! with one triangle, from end to end or round. Two sides of as many vertices are sewn vertex by
//! vertex. Otherwise each vertex of the side with more is sewn to a point on an edge of the other,
//! at the same share of the length. Which end goes with which, and where a round side begins, is so
//! that the sum of squared distances at the start is least; of equal sums the first is taken.

use std::collections::BTreeMap;

use glam::DVec3;
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use weft_io::Show as _;

use super::error::{Names, WorldError};
use super::prescribed_motion::Pinned;
use crate::mesh::FileMesh;
use crate::physics::{ClothModel, Stitch};
use crate::scene::{Border, Cloth, ClothSource, GridEdge, Material, Pin, Scene, Seam, Slide};

/// How many times as stiff a stitch is as the stiffest of both cloths resists stretching, per
/// width: under a load that stretches cloth by 1 %, a seam opens by a thousandth of an edge.
const TIMES_STRETCH: f64 = 10.0;
/// Shares of an edge this close to an end of it are that end, and so are shares of cells of a grid.
const SNAP: f64 = 1e-6;

/// The reason why two borders cannot be sewn together.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SeamError {
    /// A group that is not in the file.
    #[error("group `{}` is not in the file of cloth `{cloth}`, which has {}", group.shown(), Names(there))]
    NoGroup {
        /// The cloth's name.
        cloth: String,
        /// The name that was asked for.
        group: String,
        /// The names of the groups that the file has.
        there: Vec<String>,
    },
    /// A vertex that is not there.
    #[error("cloth `{cloth}` has no vertex {vertex}; it has {there}, counted from 0")]
    NoVertex {
        /// The cloth's name.
        cloth: String,
        /// The number that was asked for.
        vertex: u64,
        /// Vertices of the cloth's file.
        there: usize,
    },
    /// Too few vertices.
    #[error(
        "the side on cloth `{cloth}` has {vertices} of its vertices, and needs 2 at least; name more of them"
    )]
    TooFew {
        /// The cloth's name.
        cloth: String,
        /// How many it has.
        vertices: usize,
    },
    /// Vertices that do not follow each other.
    #[error(
        "the vertices of the side on cloth `{cloth}` do not follow each other along its border: vertex {vertex} has {neighbours} of them \
         beside it there; name those of one piece of the border, from end to end or round"
    )]
    NoLine {
        /// The cloth's name.
        cloth: String,
        /// The number of a vertex in the cloth's mesh.
        vertex: u32,
        /// How many of the side are beside it.
        neighbours: usize,
    },
    /// Vertices in several pieces of a border.
    #[error(
        "the vertices of the side on cloth `{cloth}` are in several pieces of its border, and vertex {vertex} is not in that of vertex \
         {first}; make a seam of each piece"
    )]
    Pieces {
        /// The cloth's name.
        cloth: String,
        /// The number of a vertex of the first piece in the cloth's mesh.
        first: u32,
        /// The number of one of another piece.
        vertex: u32,
    },
    /// A side that goes round and one that does not.
    #[error(
        "one side goes round and the other has ends; name a piece of the one, or all of the other"
    )]
    RoundAndNot,
    /// Both sides are the same vertices.
    #[error("both sides are the same vertices; a seam sews different ones together")]
    Nothing,
    /// Two vertices that pins hold apart.
    #[error(
        "pins hold both vertex {} of cloth `{}` and vertex {} of cloth `{}`, {apart:.4} m apart, so that it cannot close; let go of one \
         by `until`, or leave it out of its pin",
        at[0].1, at[0].0, at[1].1, at[1].0
    )]
    Pinned {
        /// The cloths of both, and their numbers in the meshes of these.
        at: [(String, u32); 2],
        /// Their distance in m.
        apart: f64,
    },
}

/// Vertices that follow each other along the border of a cloth.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    /// Their numbers, each once.
    vertices: Vec<u32>,
    /// Whether the first follows the last.
    is_round: bool,
}

impl Line {
    /// The line of a side of a seam on a cloth whose vertices are numbered from `first` on.
    pub(super) fn find(
        border: &Border,
        cloth: &Cloth,
        file: &FileMesh,
        first: u32,
    ) -> Result<Self, SeamError> {
        let name = || cloth.name.clone();
        let mut wanted = vertices_of(border, cloth, file)?;
        wanted.sort_unstable();
        wanted.dedup();
        if wanted.len() < 2 {
            return Err(SeamError::TooFew {
                cloth: name(),
                vertices: wanted.len(),
            });
        }
        let is_wanted = |v: u32| wanted.binary_search(&v).is_ok();
        let mut edges: BTreeMap<[u32; 2], u32> = BTreeMap::new();
        for &[a, b, c] in &file.mesh.triangles {
            for [v, w] in [[a, b], [b, c], [c, a]] {
                if is_wanted(v) && is_wanted(w) {
                    *edges.entry([v.min(w), v.max(w)]).or_default() += 1;
                }
            }
        }
        let mut beside: BTreeMap<u32, Vec<u32>> = wanted.iter().map(|&v| (v, Vec::new())).collect();
        for ([v, w], _) in edges.into_iter().filter(|(_, triangles)| *triangles == 1) {
            beside.entry(v).or_default().push(w);
            beside.entry(w).or_default().push(v);
        }
        let bad = beside.iter().find(|(_, of)| !(1..=2).contains(&of.len()));
        if let Some((&vertex, of)) = bad {
            return Err(SeamError::NoLine {
                cloth: name(),
                vertex,
                neighbours: of.len(),
            });
        }
        let ends = beside.iter().find(|(_, of)| of.len() == 1);
        let begin = ends.map_or(wanted[0], |(&v, _)| v);
        let mut vertices = vec![begin];
        let mut before = u32::MAX;
        let mut at = begin;
        while let Some(&next) = beside[&at].iter().find(|&&next| next != before) {
            if next == begin {
                break;
            }
            vertices.push(next);
            (before, at) = (at, next);
        }
        if vertices.len() < wanted.len() {
            let mut found = vertices.clone();
            found.sort_unstable();
            let other = wanted.iter().find(|v| found.binary_search(v).is_err());
            return Err(SeamError::Pieces {
                cloth: name(),
                first: begin,
                vertex: other.copied().unwrap_or(begin),
            });
        }
        Ok(Self {
            vertices: vertices.into_iter().map(|v| first + v).collect(),
            is_round: ends.is_none(),
        })
    }

    /// The line in the other direction.
    fn turned(&self) -> Self {
        let mut turned = self.clone();
        turned.vertices.reverse();
        turned
    }

    /// The lines of the same vertices: in both directions, and round ones from each vertex on.
    fn ways(&self) -> impl Iterator<Item = Self> {
        [self.clone(), self.turned()].into_iter().flat_map(|line| {
            let begins = if line.is_round {
                line.vertices.len()
            } else {
                1
            };
            (0..begins).map(move |begin| {
                let mut line = line.clone();
                line.vertices.rotate_left(begin);
                line
            })
        })
    }

    /// The share of its length at which each vertex is, and 1 behind them where it is round.
    fn shares(&self, x: &[DVec3]) -> Vec<f64> {
        let at = |v: &u32| x[*v as usize];
        let mut shares = vec![0.0];
        let mut length = 0.0;
        for pair in self.vertices.windows(2) {
            length += at(&pair[0]).distance(at(&pair[1]));
            shares.push(length);
        }
        if self.is_round
            && let (Some(first), Some(last)) = (self.vertices.first(), self.vertices.last())
        {
            length += at(first).distance(at(last));
            shares.push(length);
        }
        if length > 0.0 {
            shares.iter_mut().for_each(|share| *share /= length);
        }
        shares
    }

    /// The vertices in their order, and the first once more where it is round.
    fn along(&self, k: usize) -> u32 {
        self.vertices[k % self.vertices.len()]
    }
}

/// A vertex and the point on an edge that it is sewn to.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sewn {
    vertices: [u32; 3],
    share: f64,
}

impl Sewn {
    fn between(&self, x: &[DVec3]) -> DVec3 {
        let [v, a, b] = self.vertices.map(|v| x[v as usize]);
        (a * (1.0 - self.share) + b * self.share) - v
    }
}

/// Finds the point that each vertex is sewn to, for two lines of vertices at `x` (m).
fn matched(one: &Line, other: &Line, x: &[DVec3]) -> Result<Vec<Sewn>, SeamError> {
    if one.is_round != other.is_round {
        return Err(SeamError::RoundAndNot);
    }
    // Each vertex of the one with more.
    let (fine, coarse) = match one.vertices.len() < other.vertices.len() {
        true => (other, one),
        false => (one, other),
    };
    let shares = fine.shares(x);
    let mut best: Option<(f64, Vec<Sewn>)> = None;
    for way in coarse.ways() {
        let sewn: Vec<Sewn> = if fine.vertices.len() == way.vertices.len() {
            one_by_one(fine, &way)
        } else {
            by_length(fine, &shares, &way, x)
        };
        let sum = sewn
            .iter()
            .map(|sewn| sewn.between(x).length_squared())
            .sum();
        if best.as_ref().is_none_or(|(least, _)| sum < *least) {
            best = Some((sum, sewn));
        }
    }
    let mut sewn = best.map_or_else(Vec::new, |(_, sewn)| sewn);
    // Ends that both sides share are together.
    sewn.retain(
        |Sewn {
             vertices: [v, a, b],
             share,
         }| { !(*v == *a && *share < 1.0 || *v == *b && *share > 0.0) },
    );
    // An end that does not count only has to be another vertex.
    for sewn in &mut sewn {
        let [v, a, b] = &mut sewn.vertices;
        if *v == *a {
            *a = beside(&coarse.vertices, *b, *v);
        } else if *v == *b {
            *b = beside(&coarse.vertices, *a, *v);
        }
    }
    let is_whole = |Sewn {
                        vertices: [v, a, b],
                        ..
                    }: &Sewn| v != a && v != b && a != b;
    match sewn.is_empty() || !sewn.iter().all(is_whole) {
        true => Err(SeamError::Nothing),
        false => Ok(sewn),
    }
}

/// A vertex of a line that is neither of two, or the first of these.
fn beside(line: &[u32], one: u32, other: u32) -> u32 {
    let mut line = line.iter().copied();
    line.find(|&v| v != one && v != other).unwrap_or(one)
}

fn one_by_one(fine: &Line, coarse: &Line) -> Vec<Sewn> {
    let pairs = fine.vertices.iter().zip(&coarse.vertices).enumerate();
    let sewn = pairs.map(|(k, (&v, &a))| {
        let last = k + 1 == coarse.vertices.len() && !coarse.is_round;
        let b = if last {
            coarse.along(k - 1)
        } else {
            coarse.along(k + 1)
        };
        Sewn {
            vertices: [v, a, b],
            share: 0.0,
        }
    });
    sewn.collect()
}

fn by_length(fine: &Line, shares: &[f64], coarse: &Line, x: &[DVec3]) -> Vec<Sewn> {
    let of_coarse = coarse.shares(x);
    let last = of_coarse.len() - 2;
    let sewn = fine.vertices.iter().zip(shares).map(|(&v, &at)| {
        let k = of_coarse.partition_point(|&share| share <= at);
        let k = k.saturating_sub(1).min(last);
        let (begin, end) = (of_coarse[k], of_coarse[k + 1]);
        let share = if end > begin {
            (at - begin) / (end - begin)
        } else {
            0.0
        };
        let share = match share {
            share if share < SNAP => 0.0,
            share if share > 1.0 - SNAP => 1.0,
            share => share,
        };
        Sewn {
            vertices: [v, coarse.along(k), coarse.along(k + 1)],
            share,
        }
    });
    sewn.collect()
}

/// The vertices of a part of a cloth's border, by their numbers in its mesh.
fn vertices_of(border: &Border, cloth: &Cloth, file: &FileMesh) -> Result<Vec<u32>, SeamError> {
    match border {
        Border::Edge(edge, [from, to]) => {
            let [x, y] = match cloth.source {
                ClothSource::Grid { vertices, .. } => vertices.map(|count| count.max(2)),
                ClothSource::Shirt { .. } | ClothSource::File { .. } => [0, 0],
            };
            let (count, first, step) = match edge {
                GridEdge::Left => (y, 0, x),
                GridEdge::Right => (y, x.saturating_sub(1), x),
                GridEdge::Bottom => (x, 0, 1),
                GridEdge::Top => (x, y.saturating_sub(1) * x, 1),
            };
            let cells = count.saturating_sub(1) as f64;
            let is_in = |k: &usize| {
                let at = *k as f64;
                at >= cells * from - SNAP && at <= cells * to + SNAP
            };
            let vertices = (0..count).filter(is_in).map(|k| first + k * step);
            Ok(vertices.map(|v| v as u32).collect())
        }
        Border::Group(name) => {
            let group = file.groups.iter().find(|group| group.name == *name);
            let group = group.ok_or_else(|| SeamError::NoGroup {
                cloth: cloth.name.clone(),
                group: name.clone(),
                there: file.group_names.clone(),
            })?;
            Ok(group.vertices.clone())
        }
        Border::Vertices(numbers) => {
            let there = file.vertices();
            let one = |&number: &u64| {
                file.vertex(number).ok_or_else(|| SeamError::NoVertex {
                    cloth: cloth.name.clone(),
                    vertex: number,
                    there,
                })
            };
            numbers.iter().map(one).collect()
        }
    }
}

/// Adds the stitches of all seams to a model, whose vertices follow each other as in the scene.
pub(super) fn sew(
    scene: &Scene,
    model: &mut ClothModel,
    pinned: &[Pinned],
    lines: Vec<[Option<Line>; 2]>,
) -> Result<(), WorldError> {
    if lines.is_empty() {
        return Ok(());
    }
    let pins: Vec<&Pin> = scene.cloths.iter().flat_map(|cloth| &cloth.pins).collect();
    let mut still = vec![false; model.start().len()];
    for pinned in pinned {
        let pin = pins[pinned.pin as usize];
        let always = pin.from.is_none() && pin.until.is_none() && pin.follow.is_none();
        still[pinned.vertex as usize] = always && pin.is_still() && pin.slide == Slide::Nowhere;
    }
    let mut all = Vec::new();
    let pieces = Pieces {
        scene,
        start: model.start(),
        cloth_of_vertex: model.cloth_of_vertex(),
        still: &still,
    };
    for (number, (seam, lines)) in scene.seams.iter().zip(lines).enumerate() {
        // Both sides name cloths of the scene.
        if let [Some(one), Some(other)] = lines {
            let stitches = pieces.stitches(number, seam, &[one, other]);
            all.extend(stitches.map_err(|source| in_seam(seam, source))?);
        }
    }
    model.sew(all);
    Ok(())
}

/// The error of a seam.
pub(super) fn in_seam(seam: &Seam, source: SeamError) -> WorldError {
    let seam = seam.name.clone();
    WorldError::Seam { seam, source }
}

/// The SHA-256 of what seams sew together, if there are any.
pub(super) fn checksum_of_stitches(model: &ClothModel) -> Option<[u8; 32]> {
    let stitches = model.stitches();
    let mut hasher = Sha256::new();
    hasher.update(b"stitches");
    for stitch in stitches {
        hasher.update(bytemuck::cast_slice(&stitch.vertices));
        hasher.update(stitch.share.to_le_bytes());
    }
    (!stitches.is_empty()).then(|| hasher.finalize().into())
}

/// The cloth that seams are made of: vertices of all cloths, one cloth after the other.
struct Pieces<'a> {
    scene: &'a Scene,
    /// Positions at the start in m.
    start: &'a [DVec3],
    /// The cloth of each vertex.
    cloth_of_vertex: &'a [u32],
    /// Whether a pin holds each vertex where it starts, always.
    still: &'a [bool],
}

impl Pieces<'_> {
    /// The stitches of a seam with this number.
    fn stitches(
        &self,
        number: usize,
        seam: &Seam,
        [one, other]: &[Line; 2],
    ) -> Result<Vec<Stitch>, SeamError> {
        let sewn = matched(one, other, self.start)?;
        let gap = self.scene.gap_of(seam);
        let materials = seam.sides.each_ref().map(|side| self.material(&side.cloth));
        let materials = || materials.iter().flatten();
        let stiffest = materials().flat_map(|of| of.stretch).fold(0.0, f64::max);
        let damping = materials().map(|of| of.damping[0]).fold(0.0, f64::max);
        let stitch = |Sewn { vertices, share }: Sewn| {
            let mut stitch = Stitch {
                vertices,
                share,
                start: 0.0,
                stiffness: TIMES_STRETCH * stiffest,
                damping,
                close: seam.close,
                seam: number as u32,
            };
            let apart = stitch
                .between(vertices.map(|v| self.start[v as usize]))
                .length();
            stitch.start = apart;
            let is_still = |v: u32| self.still[v as usize];
            if apart > gap && is_still(vertices[0]) && stitch.held().all(is_still) {
                let held = stitch.held().next().unwrap_or(vertices[1]);
                return Err(SeamError::Pinned {
                    at: [vertices[0], held].map(|v| self.name(v)),
                    apart,
                });
            }
            Ok(stitch)
        };
        sewn.into_iter().map(stitch).collect()
    }

    fn material(&self, cloth: &str) -> Option<&Material> {
        let cloth = self.scene.cloths.iter().find(|of| of.name == cloth);
        cloth.map(|cloth| &cloth.material)
    }

    /// The name of a vertex's cloth, and its number there.
    fn name(&self, vertex: u32) -> (String, u32) {
        let cloth = self.cloth_of_vertex[vertex as usize];
        let first = self.cloth_of_vertex.partition_point(|&of| of < cloth);
        let name = self.scene.cloths[cloth as usize].name.clone();
        (name, vertex - first as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::TriMesh;

    fn line(vertices: &[u32], is_round: bool) -> Line {
        Line {
            vertices: vertices.to_vec(),
            is_round,
        }
    }

    /// A strip of `n` times two vertices, numbered along x first.
    fn strip(n: u32) -> FileMesh {
        let positions = (0..2 * n).map(|v| DVec3::new(f64::from(v % n), f64::from(v / n), 0.0));
        let cells = (0..n - 1).flat_map(|i| [[i, i + 1, i + n], [i + 1, i + n + 1, i + n]]);
        FileMesh::of_triangles(TriMesh {
            positions: positions.collect(),
            triangles: cells.collect(),
        })
    }

    fn find(vertices: &[u64], file: &FileMesh) -> Result<Line, SeamError> {
        let text =
            "[[cloth]]\ngrid = { size = 1, vertices = 4 }\nmaterial = { fabric = \"denim\" }";
        let scene = Scene::parse(text, None, &[]).unwrap();
        Line::find(
            &Border::Vertices(vertices.to_vec()),
            &scene.cloths[0],
            file,
            100,
        )
    }

    #[test]
    fn a_side_is_a_line_along_the_border_in_whatever_order_it_is_named() {
        let strip = strip(4);
        let found = find(&[2, 0, 1, 1], &strip).unwrap();
        assert_eq!(found, line(&[100, 101, 102], false));
        let round = find(&[0, 1, 2, 3, 4, 5, 6, 7], &strip).unwrap();
        assert_eq!(round, line(&[100, 101, 102, 103, 107, 106, 105, 104], true));
    }

    #[test]
    fn vertices_that_are_no_line_are_refused_by_number() {
        let strip = strip(4);
        assert!(matches!(
            find(&[1], &strip),
            Err(SeamError::TooFew { vertices: 1, .. })
        ));
        assert!(matches!(
            find(&[8], &strip),
            Err(SeamError::NoVertex {
                vertex: 8,
                there: 8,
                ..
            })
        ));
        // Vertices 1 and 5 are joined by an inner edge.
        let error = find(&[1, 5], &strip).unwrap_err();
        assert!(
            matches!(
                error,
                SeamError::NoLine {
                    vertex: 1,
                    neighbours: 0,
                    ..
                }
            ),
            "{error}"
        );
        let error = find(&[0, 1, 6, 7], &strip).unwrap_err();
        assert!(
            matches!(
                error,
                SeamError::Pieces {
                    first: 0,
                    vertex: 6,
                    ..
                }
            ),
            "{error}"
        );
    }

    #[test]
    fn sides_of_as_many_vertices_are_sewn_vertex_by_vertex_the_nearer_way_round() {
        let x: Vec<DVec3> = [0.0, 1.0, 2.0, 0.1, 1.1, 2.3]
            .map(|at| DVec3::new(at, 0.0, 0.0))
            .into();
        let sewn = matched(&line(&[0, 1, 2], false), &line(&[5, 4, 3], false), &x).unwrap();
        let pairs: Vec<[u32; 2]> = sewn
            .iter()
            .map(|s| [s.vertices[0], s.vertices[1]])
            .collect();
        assert_eq!(pairs, [[0, 3], [1, 4], [2, 5]]);
        assert!(sewn.iter().all(|s| s.share == 0.0));
        // Round: the square that is turned by a quarter.
        let corners = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]];
        let at = |z: f64| corners.map(|[x, y]| DVec3::new(x, y, z));
        let x = [at(0.0), at(1.0)].concat();
        let sewn = matched(&line(&[0, 1, 2, 3], true), &line(&[6, 5, 4, 7], true), &x).unwrap();
        let pairs: Vec<[u32; 2]> = sewn
            .iter()
            .map(|s| [s.vertices[0], s.vertices[1]])
            .collect();
        assert_eq!(pairs, [[0, 4], [1, 5], [2, 6], [3, 7]]);
        let error = matched(&line(&[0, 1], false), &line(&[4, 5, 6, 7], true), &x).unwrap_err();
        assert_eq!(error, SeamError::RoundAndNot);
    }

    #[test]
    fn each_vertex_of_the_finer_side_is_sewn_at_its_share_of_the_length() {
        // Shares 0, 0.1, 0.5, 1 on the one, and 0, 0.5, 1 on the other.
        let x: Vec<DVec3> = [0.0, 0.2, 1.0, 2.0, 0.0, 1.5, 3.0]
            .map(|at| DVec3::new(at, 0.0, 0.0))
            .into();
        let sewn = matched(&line(&[4, 5, 6], false), &line(&[0, 1, 2, 3], false), &x).unwrap();
        let expected = [
            ([0, 4, 5], 0.0),
            ([1, 4, 5], 0.2),
            ([2, 5, 6], 0.0),
            ([3, 5, 6], 1.0),
        ];
        assert_eq!(sewn.len(), expected.len());
        for (sewn, (vertices, share)) in sewn.iter().zip(expected) {
            assert_eq!(sewn.vertices, vertices);
            assert!((sewn.share - share).abs() < 1e-12, "{sewn:?}");
        }
    }

    #[test]
    fn a_dart_whose_sides_share_their_end_is_sewn_but_for_that() {
        let x: Vec<DVec3> = [[0.0, 0.0], [1.0, 0.1], [2.0, 0.2], [1.0, -0.1], [2.0, -0.2]]
            .map(|[x, y]| DVec3::new(x, y, 0.0))
            .into();
        let sewn = matched(&line(&[0, 1, 2], false), &line(&[0, 3, 4], false), &x).unwrap();
        let pairs: Vec<[u32; 2]> = sewn
            .iter()
            .map(|s| [s.vertices[0], s.vertices[1]])
            .collect();
        assert_eq!(pairs, [[1, 3], [2, 4]]);
        let same = line(&[0, 1, 2], false);
        assert_eq!(matched(&same, &same, &x).unwrap_err(), SeamError::Nothing);
    }
}
