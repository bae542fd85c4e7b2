//! A rank's piece of each frame: its own vertices, and the triangles whose lowest corner is its
//! own. Each triangle is in one piece.
//!
//! Corners that other ranks own come with the values that their owners tell. Both sides derive from
//! the triangles which vertices these are, so nobody asks.

use std::collections::BTreeMap;
use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use glam::DVec3;
use weft_runtime::comm::{Collectives as _, Comm, CommError, Rank};

use super::RunError;
use super::error::malformed;
use super::together::write_together;
use super::writer::Writer;
use crate::output::{DUPLICATE, DataArray, GHOST, PolyData, TRIANGLE, VERTEX, Values};
use crate::step::{Simulation, World};

/// The part of a frame that does not change from one to the next.
#[derive(Debug)]
pub(super) struct OwnPiece<'w> {
    world: &'w World,
    me: u32,
    owned: Range<usize>,
    /// The corners of its triangles that others own, ascending.
    ghosts: Vec<u32>,
    /// The ranks that it tells values to, and of which vertices, from the first that it owns.
    tells: Vec<(Rank, Vec<u32>)>,
    /// The number of every vertex in the order of the scene's own: owned ones, then ghosts.
    vertices: Vec<u32>,
    /// The ghosts, as VTK marks them.
    marks: Vec<u8>,
    /// The corners of each triangle among `vertices`, and its number.
    triangles: Vec<[u32; 3]>,
    numbers: Vec<u32>,
    /// The numbers of all triangles with a corner that it owns.
    around: Vec<u32>,
}

/// The values of a vertex.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
struct Point {
    position: DVec3,
    velocity: DVec3,
    normal: DVec3,
    force: DVec3,
    cut: f64,
    contact: u32,
    squeezed: u32,
}

impl<'w> OwnPiece<'w> {
    /// The piece of the rank that `comm` is.
    pub(super) fn new(world: &'w World, simulation: &Simulation<'_>, comm: &dyn Comm) -> Self {
        let ownership = simulation.ownership();
        let me = comm.rank().index();
        let owned = ownership.vertices(me);
        let is_own = |vertex: u32| owned.contains(&(vertex as usize));
        let mut ghosts = Vec::new();
        let mut tells: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        let (mut own, mut numbers, mut around) = (Vec::new(), Vec::new(), Vec::new());
        let patches = ownership.patches(me);
        let mut touching: Vec<u32> = patches
            .flat_map(|patch| world.patch_triangles().of(patch))
            .collect();
        touching.sort_unstable();
        touching.dedup();
        for number in touching {
            let triangle = &world.model().triangles()[number as usize];
            let others = triangle.iter().copied().filter(|&corner| !is_own(corner));
            around.push(number);
            let lowest = triangle.iter().copied().min().unwrap_or_default();
            if is_own(lowest) {
                numbers.push(number);
                own.push(*triangle);
                ghosts.extend(others);
            } else {
                let corners = triangle.iter().copied().filter(|&corner| is_own(corner));
                let rank = ownership.rank_of_vertex(lowest as usize);
                let told = tells.entry(rank).or_default();
                told.extend(corners.map(|corner| corner - owned.start as u32));
            }
        }
        ghosts.sort_unstable();
        ghosts.dedup();
        let tells = tells.into_iter().map(|(rank, mut vertices)| {
            vertices.sort_unstable();
            vertices.dedup();
            (Rank(rank as u32), vertices)
        });
        let place = |corner: u32| match ghosts.binary_search(&corner) {
            Ok(ghost) => (owned.len() + ghost) as u32,
            Err(_) => corner - owned.start as u32,
        };
        let old = world.tree().new_to_old();
        let mut vertices = old[owned.clone()].to_vec();
        vertices.extend(ghosts.iter().map(|&ghost| old[ghost as usize]));
        let mut marks = vec![0; owned.len()];
        marks.resize(vertices.len(), DUPLICATE);
        Self {
            world,
            me: me as u32,
            tells: tells.collect(),
            triangles: own.iter().map(|corners| corners.map(place)).collect(),
            owned,
            ghosts,
            vertices,
            marks,
            numbers,
            around,
        }
    }

    /// Writes a frame, of which each rank has a piece; rank 0 has a writer. `deepest` is how deep
    /// the deepest vertex of all cloth is in a body, in m. Collective.
    ///
    /// # Errors
    /// A rank cannot write its piece, or messages failed. All ranks return the same error.
    pub(super) fn write(
        &self,
        simulation: &Simulation<'_>,
        (writer, deepest): (Option<&mut Writer<'_>>, f64),
        comm: &mut dyn Comm,
    ) -> Result<(), RunError> {
        let points = self.points(simulation, comm)?;
        let mut writer = writer;
        let ranks = comm.size() as u32;
        let begun = writer.as_deref_mut().map(|writer| {
            let place = writer.begin_pieces(simulation, ranks)?;
            Ok(((), place))
        });
        write_together(
            comm,
            begun,
            |place| self.with_data(&points, simulation, |data| place.write(self.me, data)),
            |(), pieces| match writer {
                Some(writer) => writer.complete_pieces(simulation, &pieces, deepest),
                None => Ok(()),
            },
        )?;
        Ok(())
    }

    /// The values of all vertices of the piece. Collective.
    fn points(
        &self,
        simulation: &Simulation<'_>,
        comm: &mut dyn Comm,
    ) -> Result<Vec<Point>, CommError> {
        let own = simulation.own_values();
        let normals = self.normals(simulation);
        let mut points: Vec<Point> = (0..self.owned.len())
            .map(|local| Point {
                position: own.positions[local],
                velocity: own.velocities[local],
                normal: normals[local],
                force: own.forces[local],
                cut: own.cuts[local],
                contact: own.contacts[local],
                squeezed: own.squeezed[local],
            })
            .collect();
        let told = self.tells.iter().map(|(rank, vertices)| {
            let values: Vec<Point> = vertices.iter().map(|&v| points[v as usize]).collect();
            (*rank, bytemuck::cast_slice(&values).to_vec())
        });
        let heard = comm.exchange(told.collect())?;
        // Ranks own ascending ranges of vertices.
        let mut rest = &self.ghosts[..];
        for (from, bytes) in heard {
            let theirs = simulation.ownership().vertices(from.index());
            let count = rest.partition_point(|&ghost| (ghost as usize) < theirs.end);
            let values = bytes.chunks(size_of::<Point>());
            let values = values.map(bytemuck::try_pod_read_unaligned::<Point>);
            let values: Result<Vec<Point>, _> = values.collect();
            let values = values.ok().filter(|values| values.len() == count);
            let what = || format!("not the values of {count} vertices");
            points.extend(values.ok_or_else(|| malformed(from)(what()))?);
            rest = &rest[count..];
        }
        match rest.first() {
            None => Ok(points),
            Some(ghost) => {
                let from = simulation.ownership().rank_of_vertex(*ghost as usize);
                let what = format!("nothing of vertex {ghost}");
                Err(malformed(Rank(from as u32))(what))
            }
        }
    }

    /// The unit normals of owned vertices, added up in the order in which
    /// [`normals`](super::normals) adds those of the whole, so that they have the same bits.
    fn normals(&self, simulation: &Simulation<'_>) -> Vec<DVec3> {
        let (x, triangles) = (simulation.positions(), self.world.model().triangles());
        let mut sums = vec![DVec3::ZERO; self.owned.len()];
        for &number in &self.around {
            let triangle = &triangles[number as usize];
            let [a, b, c] = triangle.map(|v| x[v as usize]);
            let across = (b - a).cross(c - a);
            for &vertex in triangle {
                if self.owned.contains(&(vertex as usize)) {
                    sums[vertex as usize - self.owned.start] += across;
                }
            }
        }
        sums.iter_mut()
            .for_each(|sum| *sum = sum.normalize_or_zero());
        sums
    }

    /// Gives the piece away as it is written, with the arrays of a frame in one file and those that
    /// say which part of it this is.
    fn with_data<T>(
        &self,
        points: &[Point],
        simulation: &Simulation<'_>,
        see: impl FnOnce(&PolyData<'_>) -> T,
    ) -> T {
        let vectors = |of: fn(&Point) -> DVec3| points.iter().map(of).collect::<Vec<_>>();
        let integers = |of: fn(&Point) -> u32| points.iter().map(of).collect::<Vec<_>>();
        let positions = vectors(|point| point.position);
        let velocities = vectors(|point| point.velocity);
        let normals = vectors(|point| point.normal);
        let forces = vectors(|point| point.force);
        let contacts = integers(|point| point.contact);
        let squeezed = integers(|point| point.squeezed);
        let cuts: Vec<f64> = points.iter().map(|point| point.cut).collect();
        let (model, tree) = (self.world.model(), self.world.tree());
        let of_triangles = self.numbers.iter().map(|&number| number as usize);
        let corners = of_triangles.map(|number| model.triangles()[number]);
        let patches = corners.clone().map(|corners| {
            let lowest = corners.into_iter().min().unwrap_or_default();
            tree.patch_of(lowest) as u32
        });
        let patches: Vec<u32> = patches.collect();
        let cloths = corners.map(|corners| model.cloth_of_vertex()[corners[0] as usize]);
        let cloths: Vec<u32> = cloths.collect();
        let owners = vec![self.me; self.numbers.len()];
        let strains = simulation.own_strains();
        let array = |name, values| DataArray { name, values };
        see(&PolyData {
            points: &positions,
            triangles: &self.triangles,
            point_arrays: vec![
                array("velocity", Values::Vectors(&velocities)),
                array("normal", Values::Vectors(&normals)),
                array("contact", Values::Integers(&contacts)),
                array("contact_force", Values::Vectors(&forces)),
                array("squeezed", Values::Integers(&squeezed)),
                array("cut", Values::Scalars(&cuts)),
                array(VERTEX, Values::Integers(&self.vertices)),
                array(GHOST, Values::Bytes(&self.marks)),
            ],
            cell_arrays: vec![
                array("cloth", Values::Integers(&cloths)),
                array("strain", Values::Scalars(&strains)),
                array("owner", Values::Integers(&owners)),
                array("patch", Values::Integers(&patches)),
                array(TRIANGLE, Values::Integers(&self.numbers)),
            ],
            time: Some(simulation.time()),
        })
    }
}
