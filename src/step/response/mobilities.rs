//! How vertices give way to impulses: inverse masses times projections onto free directions.
//!
//! Nearly all vertices move alike in all directions, and their mobility is one number. It is read
//! at random in every round for every constraint that pushes, where nine numbers cost several times
//! as much to fetch and to multiply by. Results of finite numbers have the same bits both ways but
//! for signs of zeros, for all that the one number leaves out is products with zeros.

use glam::{DMat3, DVec3};

use super::wake_up::refill;
use crate::heap_bytes::counts_heap;

/// The mobilities of vertices, by their slots, in 1/kg.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mobilities {
    /// The mobility of a vertex that moves alike in all directions, and no number for others.
    alike: Vec<f64>,
    matrices: Vec<DMat3>,
}

counts_heap!(Mobilities: alike, matrices);

/// The sum of mobilities, each times a factor, in 1/kg.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Give {
    /// It is alike in all directions.
    Alike(f64),
    /// It differs by direction.
    Matrix(DMat3),
}

impl Mobilities {
    /// Has this number of vertices, which cannot be moved.
    pub(crate) fn refill(&mut self, count: usize) {
        refill(&mut self.alike, count, 0.0);
        refill(&mut self.matrices, count, DMat3::ZERO);
    }

    /// Has this number of vertices, of which new ones cannot be moved.
    pub(crate) fn resize(&mut self, count: usize) {
        self.alike.resize(count, 0.0);
        self.matrices.resize(count, DMat3::ZERO);
    }

    /// Sets the mobility of a vertex.
    pub(crate) fn set(&mut self, slot: usize, mobility: DMat3) {
        let first = mobility.x_axis.x;
        let alike = mobility == DMat3::from_diagonal(DVec3::splat(first));
        self.alike[slot] = if alike { first } else { f64::NAN };
        self.matrices[slot] = mobility;
    }

    /// The mobility of a vertex.
    pub(crate) fn matrix(&self, slot: usize) -> DMat3 {
        self.matrices[slot]
    }

    /// The number of vertices.
    pub(crate) fn len(&self) -> usize {
        self.alike.len()
    }

    /// Whether a vertex can be moved.
    pub(crate) fn moves(&self, slot: usize) -> bool {
        self.alike[slot] != 0.0
    }

    /// The velocity in m/s that an impulse (kg m/s) gives a vertex.
    #[inline]
    pub(crate) fn times(&self, slot: usize, impulse: DVec3) -> DVec3 {
        let alike = self.alike[slot];
        if alike.is_nan() {
            self.matrices[slot] * impulse
        } else {
            impulse * alike
        }
    }

    /// The component along a unit vector of the mobility along it, in 1/kg, and the trace.
    #[inline]
    pub(crate) fn along(&self, slot: usize, normal: DVec3) -> (f64, f64) {
        let alike = self.alike[slot];
        if alike.is_nan() {
            let m = &self.matrices[slot];
            let trace = m.x_axis.x + m.y_axis.y + m.z_axis.z;
            ((*m * normal).dot(normal), trace)
        } else {
            ((normal * alike).dot(normal), alike + alike + alike)
        }
    }

    /// The sum of the mobilities of vertices, each times a factor.
    #[inline]
    pub(crate) fn sum(&self, terms: impl Iterator<Item = (u32, f64)> + Clone) -> Give {
        let alike = |sum: f64, (slot, factor)| sum + self.alike[slot as usize] * factor;
        let sum = terms.clone().fold(0.0, alike);
        if !sum.is_nan() {
            return Give::Alike(sum);
        }
        let mut sum = DMat3::ZERO;
        for (slot, factor) in terms {
            sum += self.matrices[slot as usize] * factor;
        }
        Give::Matrix(sum)
    }
}

impl FromIterator<DMat3> for Mobilities {
    fn from_iter<I: IntoIterator<Item = DMat3>>(mobilities: I) -> Self {
        let all: Vec<DMat3> = mobilities.into_iter().collect();
        let mut made = Self::default();
        made.resize(all.len());
        for (slot, mobility) in all.into_iter().enumerate() {
            made.set(slot, mobility);
        }
        made
    }
}

impl Give {
    /// The component along a unit vector of what it gives along it, in 1/kg.
    #[inline]
    pub(crate) fn along(&self, normal: DVec3) -> f64 {
        match self {
            Self::Alike(all) => (normal * *all).dot(normal),
            Self::Matrix(m) => (*m * normal).dot(normal),
        }
    }

    /// A bound on its eigenvalues, the largest sum of the entries of a row; an eigenvalue itself
    /// where all directions are alike.
    #[inline]
    pub(crate) fn most(&self) -> f64 {
        match self {
            Self::Alike(all) => all.abs(),
            Self::Matrix(m) => {
                let row = |column: DVec3| column.abs().element_sum();
                row(m.x_axis).max(row(m.y_axis)).max(row(m.z_axis))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn vector() -> impl Strategy<Value = DVec3> {
        prop::array::uniform3(-9.0..9.0f64).prop_map(DVec3::from_array)
    }

    proptest! {
        /// One number gives the bits of the matrix, among vertices that have one and in sums with
        /// those that do not.
        #[test]
        fn one_number_has_the_bits_of_a_matrix(
            masses in prop::array::uniform4(1e-6..1e3f64),
            factors in prop::array::uniform4(0.0..5.0f64),
            free in prop::sample::select(vec![
                DMat3::IDENTITY,
                DMat3::from_diagonal(DVec3::new(1.0, 1.0, 0.0)),
                DMat3::ZERO,
            ]),
            (impulse, is_flat) in (vector(), any::<bool>()),
            normal in vector(),
        ) {
            let mut matrices = masses.map(|m| DMat3::from_diagonal(DVec3::splat(m.recip())));
            matrices[2] = free * masses[2].recip();
            let mobilities: Mobilities = matrices.into_iter().collect();
            let bits = |v: DVec3| v.to_array().map(|c| (c + 0.0).to_bits());
            let normal = normal.normalize_or(DVec3::Z);
            let impulse = if is_flat { impulse * DVec3::new(-0.0, 0.0, 1.0) } else { impulse };
            for (slot, m) in matrices.iter().enumerate() {
                prop_assert_eq!(bits(mobilities.times(slot, impulse)), bits(*m * impulse));
                let (along, trace) = mobilities.along(slot, normal);
                prop_assert_eq!(along.to_bits(), (*m * normal).dot(normal).to_bits());
                prop_assert_eq!(trace, m.x_axis.x + m.y_axis.y + m.z_axis.z);
                prop_assert_eq!(mobilities.moves(slot), *m != DMat3::ZERO);
            }
            let give = mobilities.sum((0..4).zip(factors));
            let mut sum = DMat3::ZERO;
            for (m, factor) in matrices.iter().zip(factors) {
                sum += *m * factor;
            }
            let matrix = Give::Matrix(sum);
            prop_assert_eq!(give.along(normal).to_bits(), matrix.along(normal).to_bits());
            prop_assert_eq!(give.most().to_bits(), matrix.most().to_bits());
        }
    }
}
