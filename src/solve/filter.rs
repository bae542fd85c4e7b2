//! Directions in which the velocity change of a vertex is prescribed.
//!
//! For each constrained vertex a projection S onto its free directions and the prescribed change z
//! in the others [BW98 §5]. The solve looks for Δv = z + S y, with S applied as the orthogonal
//! projection that \[AB03\] shows it to be. Vertices that are not mentioned are free and cost
//! nothing.
//!
//! The result is exact: where S only picks axes, or nothing is free, the prescribed components are
//! those of z to the bit. For slanted directions n, Δv·n is n·z up to the rounding of Δv.

use glam::{BVec3, DMat3, DVec3};

use crate::heap_bytes::{counts_heap, owns_no_heap};

/// The constrained directions of the owned vertices of one rank.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    constraints: Vec<Constraint>,
    /// The place of each owned vertex in `constraints`, or [`FREE`].
    place: Vec<u32>,
}

counts_heap!(Filter: constraints, place);

/// One constrained vertex.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Constraint {
    row: u32,
    /// S: symmetric, S S = S.
    free: DMat3,
    /// The prescribed change z in m/s; S z = 0.
    change: DVec3,
    /// The axes with zeros, which are copied and not computed, if S is diagonal with ones and
    /// zeros.
    copied: Option<BVec3>,
}

owns_no_heap!(Constraint);

impl Filter {
    /// A filter for this many owned vertices, all of them free.
    ///
    /// # Panics
    /// For 2^32 - 1 vertices or more.
    #[must_use]
    pub fn new(owned: usize) -> Self {
        assert!(
            owned < FREE as usize,
            "a rank owns fewer than 2^32 - 1 vertices"
        );
        Self {
            constraints: Vec::new(),
            place: vec![FREE; owned],
        }
    }

    /// Frees every vertex.
    pub fn clear(&mut self) {
        for constraint in self.constraints.drain(..) {
            self.place[constraint.row as usize] = FREE;
        }
    }

    /// Prescribes the whole change of a vertex (local index), in m/s.
    ///
    /// # Panics
    /// If there is no such vertex.
    pub fn fix(&mut self, row: usize, change: DVec3) {
        self.constrain(row, DMat3::ZERO, change);
    }

    /// Lets a vertex (local index) change only within the range of the projection `free`, and
    /// prescribes `change`, in m/s, in the other directions. Replaces what was said of the vertex
    /// before.
    ///
    /// `free` must be an orthogonal projection, such as I − n nᵀ with unit n; `change` is read only
    /// in the directions that it projects out.
    ///
    /// # Panics
    /// If there is no such vertex.
    pub fn constrain(&mut self, row: usize, free: DMat3, change: DVec3) {
        let copied = picked_axes(&free);
        let change = match copied {
            Some(copied) => DVec3::select(copied, change, DVec3::ZERO),
            None => change - free * change,
        };
        // Vertices are counted with 32 bits, see `new`; `place` answers for the range.
        let constraint = Constraint {
            row: row as u32,
            free,
            change,
            copied,
        };
        match self.place[row] {
            FREE => {
                self.place[row] = self.constraints.len() as u32;
                self.constraints.push(constraint);
            }
            place => self.constraints[place as usize] = constraint,
        }
    }

    /// Prescribes one more direction of a vertex (local index): Δv·normal = `change`, in m/s.
    ///
    /// `normal` is of unit length. Directions that were prescribed before stay. A direction that is
    /// nearly (to [`MIN_ANGLE`]) a combination of earlier ones is not taken, and the answer is
    /// `false`: the vertex would otherwise be thrown aside to satisfy both.
    ///
    /// # Panics
    /// If there is no such vertex.
    #[must_use = "the direction may not have been taken"]
    pub fn constrain_along(&mut self, row: usize, normal: DVec3, change: f64) -> bool {
        let (free, before) = (self.free(row), self.change(row));
        // The part of the normal that is still free; Δv·normal = z·normal + Δv·rest.
        let rest = free * normal;
        let length = rest.length();
        if length <= MIN_ANGLE {
            return false;
        }
        let along = rest / length;
        let change = before + along * ((change - before.dot(normal)) / length);
        let outer = DMat3::from_cols(along * along.x, along * along.y, along * along.z);
        let free = free - outer;
        // The trace of a projection is its rank.
        let rank = free.x_axis.x + free.y_axis.y + free.z_axis.z;
        if rank < 0.5 {
            self.fix(row, change);
        } else {
            self.constrain(row, free, change);
        }
        true
    }

    /// How many vertices the filter speaks of.
    #[must_use]
    pub fn len(&self) -> usize {
        self.place.len()
    }

    /// Whether it speaks of none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.place.is_empty()
    }

    /// How many vertices are constrained.
    #[must_use]
    pub fn constrained(&self) -> usize {
        self.constraints.len()
    }

    /// The projection onto the free directions of a vertex (local index); identity if it is free.
    ///
    /// # Panics
    /// If there is no such vertex.
    #[must_use]
    pub fn free(&self, row: usize) -> DMat3 {
        self.constraint(row)
            .map_or(DMat3::IDENTITY, |constraint| constraint.free)
    }

    /// The prescribed change of a vertex (local index), in m/s, zero in its free directions.
    ///
    /// # Panics
    /// If there is no such vertex.
    #[must_use]
    pub fn change(&self, row: usize) -> DVec3 {
        self.constraint(row)
            .map_or(DVec3::ZERO, |constraint| constraint.change)
    }

    /// Whether a vertex (local index) is constrained in some direction.
    ///
    /// # Panics
    /// If there is no such vertex.
    #[must_use]
    pub(crate) fn is_constrained(&self, row: usize) -> bool {
        self.place[row] != FREE
    }

    /// Projects a vector onto the free directions: v ← S v.
    ///
    /// # Panics
    /// If the vector is not of the owned vertices.
    pub fn project(&self, vector: &mut [DVec3]) {
        assert_eq!(vector.len(), self.len(), "a vector of the owned vertices");
        for constraint in &self.constraints {
            let v = &mut vector[constraint.row as usize];
            *v = constraint.projected(*v);
        }
    }

    /// The constrained vertices (local indices), in no particular order.
    pub(super) fn rows(&self) -> impl Iterator<Item = u32> {
        self.constraints.iter().map(|constraint| constraint.row)
    }

    /// The projection, by [`Filter::project`], of the value of one vertex (local index).
    pub(super) fn projected(&self, row: usize, v: DVec3) -> DVec3 {
        self.constraint(row)
            .map_or(v, |constraint| constraint.projected(v))
    }

    /// Gives a vector the prescribed values: v ← z + S v, prescribed components as the module says.
    ///
    /// # Panics
    /// If the vector is not of the owned vertices.
    pub fn enforce(&self, vector: &mut [DVec3]) {
        assert_eq!(vector.len(), self.len(), "a vector of the owned vertices");
        for constraint in &self.constraints {
            let v = &mut vector[constraint.row as usize];
            *v = match constraint.copied {
                Some(copied) => DVec3::select(copied, constraint.change, *v),
                // Taking z away first leaves little to round in the constrained directions.
                None => constraint.change + constraint.free * (*v - constraint.change),
            };
        }
    }

    /// Writes the prescribed changes, zero for what is free: v ← z.
    ///
    /// # Panics
    /// If the vector is not of the owned vertices.
    pub fn write_changes(&self, vector: &mut [DVec3]) {
        assert_eq!(vector.len(), self.len(), "a vector of the owned vertices");
        vector.fill(DVec3::ZERO);
        for constraint in &self.constraints {
            vector[constraint.row as usize] = constraint.change;
        }
    }

    /// The first vertex (local index) whose projection or prescribed change is not finite.
    #[must_use]
    pub(crate) fn non_finite_row(&self) -> Option<usize> {
        let bad = self
            .constraints
            .iter()
            .filter(|c| !c.free.is_finite() || !c.change.is_finite());
        bad.map(|constraint| constraint.row as usize).min()
    }

    fn constraint(&self, row: usize) -> Option<&Constraint> {
        match self.place[row] {
            FREE => None,
            place => Some(&self.constraints[place as usize]),
        }
    }
}

impl Constraint {
    fn projected(&self, v: DVec3) -> DVec3 {
        match self.copied {
            Some(copied) => DVec3::select(copied, DVec3::ZERO, v),
            None => self.free * v,
        }
    }
}

/// The axes that a diagonal projection projects out; `None` if it is slanted.
fn picked_axes(free: &DMat3) -> Option<BVec3> {
    let diagonal = DVec3::new(free.x_axis.x, free.y_axis.y, free.z_axis.z);
    let plain = diagonal
        .to_array()
        .iter()
        .all(|&entry| entry == 0.0 || entry == 1.0);
    (plain && *free == DMat3::from_diagonal(diagonal)).then(|| diagonal.cmpeq(DVec3::ZERO))
}

const FREE: u32 = u32::MAX;

/// Sine of the angle below which a direction counts as one that is already prescribed.
pub const MIN_ANGLE: f64 = 1e-2;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bits(v: DVec3) -> [u64; 3] {
        v.to_array().map(f64::to_bits)
    }

    #[test]
    fn fixed_vertices_come_out_to_the_bit() {
        let mut filter = Filter::new(3);
        let change = DVec3::new(0.1, -0.0, 1e-300);
        filter.fix(1, change);
        let mut v = vec![DVec3::splat(7.0); 3];
        filter.enforce(&mut v);
        assert_eq!(bits(v[1]), bits(change));
        assert_eq!((v[0], v[2]), (DVec3::splat(7.0), DVec3::splat(7.0)));
    }

    #[test]
    fn directions_along_axes_come_out_to_the_bit_and_leave_the_others_alone() {
        let mut filter = Filter::new(1);
        assert!(filter.constrain_along(0, DVec3::NEG_Y, 0.3));
        let free = DVec3::new(0.7, 5.0, -0.0);
        let mut v = [free];
        filter.enforce(&mut v);
        assert_eq!(bits(v[0]), bits(DVec3::new(free.x, -0.3, free.z)));
        assert!(filter.constrain_along(0, DVec3::X, -0.2));
        filter.enforce(&mut v);
        assert_eq!(bits(v[0]), bits(DVec3::new(-0.2, -0.3, free.z)));
        filter.project(&mut v);
        assert_eq!(v[0], DVec3::new(0.0, 0.0, free.z));
    }

    #[test]
    fn a_direction_already_prescribed_is_not_taken_twice() {
        let mut filter = Filter::new(1);
        assert!(filter.constrain_along(0, DVec3::Z, 1.0));
        assert!(!filter.constrain_along(0, DVec3::new(1e-3, 0.0, 1.0).normalize(), 2.0));
        assert_eq!(filter.change(0), DVec3::Z);
    }

    #[test]
    fn clearing_frees_and_a_later_word_replaces_an_earlier_one() {
        let mut filter = Filter::new(2);
        filter.fix(0, DVec3::X);
        filter.constrain(
            0,
            DMat3::from_diagonal(DVec3::new(1.0, 0.0, 1.0)),
            DVec3::ONE,
        );
        assert_eq!(filter.constrained(), 1);
        assert_eq!(
            filter.change(0),
            DVec3::Y,
            "a change in a free direction is not read"
        );
        filter.clear();
        assert_eq!((filter.constrained(), filter.is_constrained(0)), (0, false));
        assert_eq!(filter, Filter::new(2));
    }

    fn unit() -> impl Strategy<Value = DVec3> {
        (-1.0_f64..1.0, -1.0_f64..1.0, -1.0_f64..1.0)
            .prop_map(|(x, y, z)| DVec3::new(x, y, z))
            .prop_filter("a direction", |v| v.length() > 0.1)
            .prop_map(DVec3::normalize)
    }

    proptest! {
        #[test]
        fn slanted_directions_are_kept_to_rounding(
            normals in prop::collection::vec((unit(), -1.0_f64..1.0), 1..4),
            start in unit(),
        ) {
            let mut filter = Filter::new(1);
            let mut taken = Vec::new();
            for (normal, change) in normals {
                if (filter.free(0) * normal).length() > 0.2 {
                    prop_assert!(filter.constrain_along(0, normal, change));
                    taken.push((normal, change));
                }
            }
            let mut v = [start];
            filter.enforce(&mut v);
            for (normal, change) in &taken {
                prop_assert!((v[0].dot(*normal) - change).abs() < 1e-13);
            }
            // S is a symmetric projection of the rank that is left.
            let free = filter.free(0);
            prop_assert!((free * free - free).abs_diff_eq(DMat3::ZERO, 1e-14));
            prop_assert!((free - free.transpose()).abs_diff_eq(DMat3::ZERO, 0.0));
            let trace = free.x_axis.x + free.y_axis.y + free.z_axis.z;
            prop_assert!((trace - (3 - taken.len()) as f64).abs() < 1e-13);
            // Free directions were not touched.
            prop_assert!((free * (v[0] - start)).length() < 1e-13);
        }
    }
}
