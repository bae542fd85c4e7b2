//! The bending elements of a cloth: elements of its material's model, of one kind for all of its
//! mesh.
//!
//! The quadratic model has two kinds of elements. Hinges are half the work, and nearly right on
//! many meshes once their prefactors are found from the mesh ([`rigidity`]); where cylinders about
//! some direction would yet be off by more than [`EVEN`], as on parallel diagonals, on meshes
//! without order and for most weaves, there are plates ([`super::plate`]), if they are nearer. In
//! the same way folds give way to shells ([`super::shell`]). Springs have none to give way to.
//!
//! Either way what relaxation softens ([`super::relaxation`]) is made up for, of hinges and folds
//! by one factor, of plates and shells by a changed law; on meshes with six triangles at every
//! vertex, all alike, there is nothing to make up for.

use std::{fmt, io};

use glam::{DMat3, DVec2, DVec3};

use super::PhysicsError;
use super::at_rest::{AtRest, Hinged};
use super::bending::Hinge;
use super::fold::Fold;
use super::membrane::in_plane;
use super::mesh_edges::{Side, interior_edges, ordered, sides};
use super::plate::{self, Compliance, Plate, Unfolded};
use super::relaxation::{Functionals, softening};
use super::rigidity::{self, DIRECTIONS, Fit, Known, Shape, on_cylinders, square};
use super::shell::Shell;
use super::spring::Spring;
use crate::archive::{Archive, ArchiveFault, Loader, Saver};
use crate::heap_bytes::owns_no_heap;
use crate::scene::{BendingModel, Material};

/// Share by which the stiffness of bending in some direction may be off without users being warned.
pub const UNEVEN: f64 = 0.1;

/// The share by which it may be off without hinges giving way to plates, and folds to shells.
const EVEN: f64 = 0.05;

/// The softening that is not worth making up for.
const ROUNDING: f64 = 1e-6;

/// Changes of a law at most, and how near it then is to the one wanted.
const ROUNDS: u32 = 6;
const NEAR: f64 = 0.01;

/// Elements of one kind.
#[derive(Debug, Default)]
pub(super) struct Bending {
    pub(super) hinges: Vec<Hinge>,
    pub(super) plates: Vec<Plate>,
    pub(super) folds: Vec<Fold>,
    pub(super) shells: Vec<Shell>,
    pub(super) springs: Vec<Spring>,
    /// The least and the largest energy of cylinders over that of the material; `None` where it was
    /// not looked for.
    pub(super) range: Option<[f64; 2]>,
}

/// The bending elements of a cloth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BendingInfo {
    /// The kind of its elements, in words.
    pub elements: &'static str,
    /// The least and the largest energy of the cloth when it is bent to cylinders in all
    /// directions, over that of its material, where elements were found from the mesh; borders left
    /// out.
    pub range: Option<[f64; 2]>,
}

owns_no_heap!(BendingInfo);

/// The kind of the elements of cloth that has none.
const NOTHING: &str = "nothing";
/// The kinds of elements, in words.
const KINDS: [&str; 6] = ["hinges", "plates", "folds", "shells", "springs", NOTHING];

impl Archive for BendingInfo {
    fn save(&self, to: &mut Saver<'_>) -> io::Result<()> {
        let kind = KINDS.iter().position(|kind| *kind == self.elements);
        kind.unwrap_or(KINDS.len() - 1).save(to)?;
        self.range.save(to)
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, ArchiveFault> {
        let kind = KINDS.get(usize::load(from)?);
        Ok(Self {
            elements: kind.ok_or(ArchiveFault::OtherLayout)?,
            range: Option::load(from)?,
        })
    }
}

impl fmt::Display for BendingInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bends by {}", self.elements)?;
        match self.range {
            Some([low, high]) => write!(
                f,
                ", {low:.2} to {high:.2} times as stiff as its material says, by direction"
            ),
            None => Ok(()),
        }
    }
}

impl Bending {
    /// A summary of them.
    pub(super) fn info(&self) -> BendingInfo {
        let none = [
            self.hinges.is_empty(),
            self.plates.is_empty(),
            self.folds.is_empty(),
            self.shells.is_empty(),
            self.springs.is_empty(),
            false,
        ];
        let kind = none.into_iter().zip(KINDS).find(|(none, _)| !none);
        BendingInfo {
            elements: kind.map_or(NOTHING, |(_, kind)| kind),
            range: self.range,
        }
    }
}

/// A triangle that cannot bend, by its index.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bad {
    Flat(usize),
    NoWarp(usize),
}

impl Bad {
    /// Names the cloth in an error.
    pub(super) fn of(self, cloth: &str) -> PhysicsError {
        let cloth = cloth.to_owned();
        match self {
            Self::Flat(triangle) => PhysicsError::FlatTriangle { cloth, triangle },
            Self::NoWarp(triangle) => PhysicsError::NoWarp { cloth, triangle },
        }
    }
}

/// An edge between two triangles: its ends and the corners opposite to it, and the triangles.
type Inner = ([u32; 4], [usize; 2]);

/// Makes the bending elements of a cloth of this shape `at_rest` whose vertices have these `areas`
/// (m²) and begin at `first`.
pub(super) fn bending_of(
    at_rest: AtRest<'_>,
    areas: Vec<f64>,
    material: &Material,
    warp: DVec3,
    first: u32,
) -> Result<Bending, Bad> {
    let warp = axis(at_rest, material, warp);
    let triangles = at_rest.triangles();
    let sides = sides(triangles);
    let inner = interior_edges(&sides);
    // Without a fit, hinges have the sheet's rigidity.
    let mut rigidities = vec![material.bending[0]; inner.len()];
    let mut range = None;
    if material.bending_fit {
        let mut inside = vec![true; areas.len()];
        for beside in sides.chunk_by(|a, b| a.0 == b.0) {
            if let [(border, ..)] = beside {
                border.iter().for_each(|v| inside[*v as usize] = false);
            }
        }
        let areas: Vec<_> = (areas.into_iter().zip(&inside))
            .map(|(area, inside)| inside.then_some(area))
            .collect();
        let fitted = Fitted::new(at_rest, &inner, &areas, material, warp)?;
        let mut factor = 1.0;
        if let Some(stiffness) = fitted.fit.stiffness {
            let calibrated = calibrate(
                &stiffness,
                &softening(&fitted, &movable(triangles, &inside)),
            );
            factor = calibrated.0;
            range = Some(calibrated.1);
        }
        let springs = material.bending_model == BendingModel::Springs;
        if let Some(range) = range.filter(|range| !springs && is_off(*range, EVEN)) {
            let stars = Stars::new(at_rest, &sides, material, warp)?;
            let bending = stars.calibrated(at_rest, material, &movable(triangles, &inside), first);
            if bending.range.is_some_and(|other| off(other) < off(range)) {
                return Ok(bending);
            }
        }
        rigidities = fitted.fit.rigidities;
        rigidities.iter_mut().for_each(|r| *r *= factor);
    }
    let mut bending = Bending {
        range,
        ..Bending::default()
    };
    for (&(vertices, sides), rigidity) in inner.iter().zip(rigidities) {
        let Hinged { points, .. } = at_rest.hinged(vertices, sides);
        let global = vertices.map(|v| first + v);
        let q = rigidity * slenderness(points);
        match material.bending_model {
            BendingModel::Quadratic => {
                let hinge = Hinge::new(global, points, rigidity);
                bending.hinges.push(hinge.ok_or(Bad::Flat(sides[0]))?);
            }
            BendingModel::Dihedral => {
                let fold = Fold::new(global, points, q, material.damping[2]);
                bending.folds.push(fold);
            }
            BendingModel::Springs => {
                let spring = Spring::across(global, points, q, material.bending_radius);
                bending.springs.push(spring.damped(material.damping[2]));
            }
        }
    }
    Ok(bending)
}

/// Whether cylinders, whose energies over those of the material are between these two, are too far
/// off in some direction.
#[must_use]
pub fn is_uneven(range: [f64; 2]) -> bool {
    is_off(range, UNEVEN)
}

fn is_off([low, high]: [f64; 2], by: f64) -> bool {
    low < 1.0 - by || high > 1.0 + by
}

/// The largest relative error of the directions.
fn off([low, high]: [f64; 2]) -> f64 {
    (1.0 - low).max(high - 1.0)
}

/// The axis that a cloth's own frame is laid along: its warp, or, for cloth that bends alike in all
/// directions, of the warp and the axes of space the one that no triangle is nearly perpendicular
/// to, where all triangles hang together.
fn axis(at_rest: AtRest<'_>, material: &Material, warp: DVec3) -> DVec3 {
    if !material.bends_alike() {
        return warp;
    }
    let least = |axis: DVec3| {
        let in_plane = (0..at_rest.triangles().len()).map(|triangle| {
            let [a, b, c] = at_rest.joined_corners(triangle);
            let normal = (b - a).cross(c - a).normalize_or_zero();
            axis.reject_from(normal).length_squared() / axis.length_squared()
        });
        in_plane.fold(1.0, f64::min)
    };
    let mut best = (least(warp), warp);
    if best.0 < IN_PLANE {
        for axis in DVec3::AXES {
            let least = least(axis);
            if least > best.0 {
                best = (least, axis);
            }
        }
    }
    best.1
}

/// The axis of a bending law in a triangle at rest. Cloth that bends alike in all directions has it
/// going on over the seams of a pattern.
fn along_of(at_rest: AtRest<'_>, material: &Material, warp: DVec3, triangle: usize) -> DVec3 {
    if material.bends_alike() {
        at_rest.direction(triangle, warp)
    } else {
        warp
    }
}

/// The square of the part of an axis in a triangle's plane with which it is not nearly
/// perpendicular to it.
const IN_PLANE: f64 = 0.1;

/// The factor of energies with which cylinders have on average the energy that they have when their
/// vertices do not move, and the least and the largest energy then, over those of the material. It
/// is found from the energies without moving, and the share by which they fall.
fn calibrate(stiffness: &[f64; DIRECTIONS], yields: &[f64; DIRECTIONS]) -> (f64, [f64; 2]) {
    let left: Vec<f64> = (stiffness.iter().zip(yields))
        .map(|(stiffness, share)| stiffness * (1.0 - share))
        .collect();
    let factor = stiffness.iter().sum::<f64>() / left.iter().sum::<f64>();
    // On many meshes, rounding is all there is.
    let factor = if factor < 1.0 + ROUNDING { 1.0 } else { factor };
    let [low, high] = range_of(&left);
    (factor, [factor * low, factor * high])
}

/// The least and the largest.
fn range_of(shares: &[f64]) -> [f64; 2] {
    let begin = [f64::INFINITY, 0.0_f64];
    (shares.iter()).fold(begin, |[low, high], s| [low.min(*s), high.max(*s)])
}

/// Vertices that are not next to a border.
fn movable(triangles: &[[u32; 3]], inside: &[bool]) -> Vec<bool> {
    let mut movable = inside.to_vec();
    for t in triangles {
        if t.iter().any(|v| !inside[*v as usize]) {
            t.iter().for_each(|v| movable[*v as usize] = false);
        }
    }
    movable
}

/// Hinges with prefactors from the mesh.
struct Fitted {
    shapes: Vec<Shape>,
    fit: Fit,
}

impl Fitted {
    /// Begins a fit with the areas in m² of vertices that are not at a border.
    fn new(
        at_rest: AtRest<'_>,
        inner: &[Inner],
        areas: &[Option<f64>],
        material: &Material,
        warp: DVec3,
    ) -> Result<Self, Bad> {
        let mut shapes = Vec::with_capacity(inner.len());
        for &(vertices, sides) in inner {
            let Hinged { points, own } = at_rest.hinged(vertices, sides);
            let unit = Hinge::new(vertices, points, 1.0).ok_or(Bad::Flat(sides[0]))?;
            // Cloth that bends alike in all directions needs no warp where there is none.
            let alike = material.bends_alike();
            let along = own.map(|[x0, x1, _]| x1 - x0);
            let warps = sides.map(|triangle| along_of(at_rest, material, warp, triangle));
            let unfolded = unfolded(points, own, warps)
                .or_else(|| unfolded(points, own, along).filter(|_| alike));
            let unfolded = unfolded.ok_or(Bad::NoWarp(sides[0]))?;
            // Laid flat, the first triangle is left of its edge; seen from the front it may be
            // right of it.
            let [a, b, ..] = vertices;
            let [p, q, r] = at_rest.triangles()[sides[0]];
            let front = [[p, q], [q, r], [r, p]].contains(&[a, b]);
            let seen = unfolded.map(|p| if front { p } else { DVec2::new(p.x, -p.y) });
            shapes.push(Shape::new(vertices, unit.weights, seen));
        }
        let fit = rigidity::fit(&shapes, areas, material);
        Ok(Self { shapes, fit })
    }
}

impl Functionals for Fitted {
    fn each(&self, mut visit: impl FnMut(&[u32], &[f64], DVec3)) {
        for (shape, rigidity) in self.shapes.iter().zip(&self.fit.rigidities) {
            let root = rigidity.sqrt();
            let weights = shape.weights.map(|weight| weight * root);
            visit(&shape.vertices, &weights, shape.curved * root);
        }
    }
}

/// Triangles with others beside them.
struct Stars {
    /// Vertices of the cloth, and what they are at rest.
    all: Vec<([u32; 6], Unfolded)>,
    /// Plates of some law, and what they see of curvature.
    plates: Vec<(Plate, [DVec3; 3])>,
}

impl Stars {
    fn new(
        at_rest: AtRest<'_>,
        sides: &[Side],
        material: &Material,
        warp: DVec3,
    ) -> Result<Self, Bad> {
        // The triangle beyond an edge of another, and its corner there.
        let beyond = |triangle: usize, [a, b]: [u32; 2]| {
            let edge = ordered(a, b);
            let start = sides.partition_point(|side| side.0 < edge);
            let mut others = sides[start..].iter().take_while(|side| side.0 == edge);
            let other = others.find(|side| side.2 as usize != triangle);
            other.map(|side| (side.2 as usize, side.1))
        };
        let mut all = Vec::with_capacity(at_rest.triangles().len());
        for (index, &triangle) in at_rest.triangles().iter().enumerate() {
            let [a, b, c] = triangle;
            let edges = [[a, b], [b, c], [c, a]];
            let others = edges.map(|edge| beyond(index, edge));
            if others.iter().all(Option::is_none) {
                continue;
            }
            let points = at_rest.corners(index);
            let along = in_plane(points, along_of(at_rest, material, warp, index));
            let along = along.or_else(|| material.bends_alike().then_some(DVec2::X));
            let along = along.ok_or(Bad::NoWarp(index))?;
            let place = |i: usize| others[i].map(|other| at_rest.beyond(index, edges[i], other));
            let positions = [0, 1, 2].map(place);
            let unfolded = Unfolded::new(points, positions, along).ok_or(Bad::Flat(index))?;
            let [d, e, f] = [0, 1, 2].map(|i| others[i].map_or(triangle[i], |(_, v)| v));
            all.push(([a, b, c, d, e, f], unfolded));
        }
        Ok(Self {
            all,
            plates: Vec::new(),
        })
    }

    /// Makes plates or shells that are as stiff as they should be where vertices move freely: of a
    /// law that is changed until the remaining one is nearest to that of the material.
    fn calibrated(
        mut self,
        at_rest: AtRest<'_>,
        material: &Material,
        movable: &[bool],
        first: u32,
    ) -> Bending {
        let wanted = rigidity::law(material);
        let (mut law, mut best, mut range) = (wanted, wanted, None);
        if let Some(known) = rigidity::targets(material, plate::LEAST) {
            for _ in 0..ROUNDS {
                self.take(law);
                let Some(mut left) = self.stiffness(&known) else {
                    break;
                };
                for (left, share) in left.iter_mut().zip(softening(&self, movable)) {
                    *left *= 1.0 - share;
                }
                let now = range_of(&left);
                if range.is_none_or(|range| off(now) < off(range)) {
                    (best, range) = (law, Some(now));
                }
                if off(now) < NEAR {
                    break;
                }
                let found = rigidity::nearest_law(&known, &left);
                let mean = left.iter().sum::<f64>() / DIRECTIONS as f64;
                for (law, (wanted, found)) in law.iter_mut().zip(wanted.into_iter().zip(found)) {
                    *law += (wanted - found) / mean;
                }
                // Not less than some of what is wanted along warp and weft.
                law[0] = law[0].max(0.5 * wanted[0]);
                law[1] = law[1].max(0.5 * wanted[1]);
            }
        }
        self.plates = Vec::new();
        let compliance = Compliance::new(best);
        let mut bending = Bending {
            range,
            ..Bending::default()
        };
        for (of, unfolded) in self.all {
            let vertices = of.map(|v| first + v);
            if material.bending_model == BendingModel::Dihedral {
                let shell = unfolded.shell(vertices, &compliance);
                let shell = match at_rest {
                    AtRest::Mesh(mesh) => shell.at_rest(of.map(|v| mesh.positions[v as usize])),
                    AtRest::Pattern { .. } => shell,
                };
                bending.shells.push(Shell {
                    damping: material.damping[2],
                    ..shell
                });
            } else {
                bending.plates.push(unfolded.plate(vertices, &compliance).0);
            }
        }
        bending
    }
}

impl Stars {
    /// Takes plates of a law.
    fn take(&mut self, law: [f64; 3]) {
        let compliance = Compliance::new(law);
        let all = self.all.iter();
        self.plates = all.map(|(v, of)| of.plate(*v, &compliance)).collect();
    }

    /// Energies of cylinders along all directions over those `known`, of what is not at a border;
    /// `None` if all is.
    fn stiffness(&self, known: &[Known; DIRECTIONS]) -> Option<[f64; DIRECTIONS]> {
        let (mut area, mut form) = (0.0, DMat3::ZERO);
        let inside = self.all.iter().zip(&self.plates);
        for ((_, of), (_, felt)) in inside.filter(|((_, of), _)| of.is_inside()) {
            area += of.area;
            form += felt.map(square).into_iter().sum::<DMat3>();
        }
        let stored = on_cylinders(&form);
        let share = |k: usize| stored[k] / (area * known[k].rigidity);
        (area > 0.0).then(|| std::array::from_fn(share))
    }
}

impl Functionals for Stars {
    fn each(&self, mut visit: impl FnMut(&[u32], &[f64], DVec3)) {
        for (plate, felt) in &self.plates {
            for (weights, q) in plate.weights.iter().zip(*felt) {
                visit(&plate.vertices, weights, q);
            }
        }
    }
}

/// `|e|²/(A₁ + A₂)` of an inner edge and the corners opposite: by how much the moment of a fold
/// exceeds rigidity.
fn slenderness([x0, x1, x2, x3]: [DVec3; 4]) -> f64 {
    let edge = x1 - x0;
    let areas = 0.5 * (edge.cross(x2 - x0).length() + edge.cross(x3 - x0).length());
    edge.length_squared() / areas
}

/// The corners of a hinge laid flat, in axes of warp and weft; `None` if the warp is perpendicular
/// to one of the triangles. Either triangle has its warp where it is its own, see [`Hinged`]. The
/// warp is an axis, not an arrow: where panels are sewn together head to head it runs to the seam
/// from both sides, and laid flat goes straight on.
fn unfolded(
    [x0, x1, x2, x3]: [DVec3; 4],
    own: [[DVec3; 3]; 2],
    warps: [DVec3; 2],
) -> Option<[DVec2; 4]> {
    let edge = x1 - x0;
    let length = edge.length();
    let beside = |p: DVec3, sign: f64| {
        let height = edge.cross(p - x0).length();
        DVec2::new(edge.dot(p - x0), sign * height) / length
    };
    let flat = [
        DVec2::ZERO,
        DVec2::new(length, 0.0),
        beside(x2, 1.0),
        beside(x3, -1.0),
    ];
    // The axis that `in_plane` calls across points to the third corner.
    let upper = in_plane(own[0], warps[0])?;
    let lower = in_plane(own[1], warps[1])?;
    let lower = DVec2::new(lower.x, -lower.y);
    let lower = if upper.dot(lower) < 0.0 {
        -lower
    } else {
        lower
    };
    let along = (upper + lower).try_normalize()?;
    Some(flat.map(|p| DVec2::new(p.dot(along), along.perp_dot(p))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two triangles whose warp runs to their common edge from both sides are, laid flat, as two
    /// with one warp.
    #[test]
    fn the_warp_goes_on_over_a_seam() {
        let ends = [DVec3::ZERO, DVec3::X];
        let corners = |heights: [DVec3; 2]| {
            let [c, d] = heights.map(|height| DVec3::X * 0.5 + height);
            [ends[0], ends[1], c, d]
        };
        let unfolded = |points: [DVec3; 4], warp| {
            let [x0, x1, x2, x3] = points;
            unfolded(points, [[x0, x1, x2], [x0, x1, x3]], [warp; 2])
        };
        let flat = unfolded(corners([DVec3::Y, -DVec3::Y]), DVec3::Y).unwrap();
        let slope = DVec3::new(0.0, 0.6, -0.8);
        let tent = [slope, DVec3::new(0.0, -0.6, -0.8)];
        let sewn = unfolded(corners(tent), DVec3::Z).unwrap();
        // Which way the warp points tells nothing.
        let turned = if sewn[1].dot(flat[1]) < 0.0 {
            -1.0
        } else {
            1.0
        };
        for (sewn, flat) in sewn.iter().zip(flat) {
            assert!((*sewn * turned - flat).length() < 1e-12, "{sewn} {flat}");
        }
        assert_eq!(unfolded(corners(tent), DVec3::X).unwrap()[1].x.abs(), 1.0);
    }
}
