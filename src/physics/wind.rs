//! The velocity of the air at a place: the same everywhere, or from a table.
//!
//! A table has velocities at the points of a grid with axes along x, y and z, whose lines may be
//! unevenly apart. Between them the velocity is linear along each axis; beyond the first and the
//! last line of an axis it is that on the line. A table without lines along an axis does not depend
//! on that coordinate, so that a profile by height has lines along z alone.

use std::sync::Arc;

use glam::DVec3;

/// The velocity of the air at a time.
#[derive(Clone, Debug, PartialEq)]
pub enum Wind {
    /// This one in m/s everywhere.
    Uniform(DVec3),
    /// The velocities of a table, times a factor.
    Table {
        /// The velocities.
        table: Arc<WindTable>,
        /// The factor.
        strength: f64,
    },
}

/// Velocities at the points of a grid.
#[derive(Clone, Debug, PartialEq)]
pub struct WindTable {
    /// The coordinates in m of its lines along x, y and z, ascending; empty for an axis on which
    /// nothing depends.
    pub lines: [Vec<f64>; 3],
    /// The velocities in m/s at all points, along x first, then along y.
    pub velocities: Vec<DVec3>,
}

impl Wind {
    /// The velocity in m/s at a place in m.
    #[must_use]
    pub fn at(&self, place: DVec3) -> DVec3 {
        match self {
            Self::Uniform(velocity) => *velocity,
            Self::Table { table, strength } => table.at(place) * *strength,
        }
    }
}

impl WindTable {
    /// The number of points of a grid with such lines; `None` if that is no number of a memory.
    #[must_use]
    pub fn points(lines: &[Vec<f64>; 3]) -> Option<usize> {
        let [x, y, z] = lines.each_ref().map(|of_axis| of_axis.len().max(1));
        x.checked_mul(y)?.checked_mul(z)
    }

    /// The velocity in m/s at a place in m.
    ///
    /// # Panics
    /// If there are fewer velocities than points.
    #[must_use]
    pub fn at(&self, place: DVec3) -> DVec3 {
        let [x, y, z] = &self.lines;
        let (i, j, k) = (
            between(x, place.x),
            between(y, place.y),
            between(z, place.z),
        );
        let (along_x, along_y) = (x.len().max(1), y.len().max(1));
        let along = |j: usize, k: usize| {
            let row = along_x * (j + along_y * k);
            i.share(|i| self.velocities[row + i])
        };
        k.share(|k| j.share(|j| along(j, k)))
    }
}

/// A place between two lines.
#[derive(Clone, Copy)]
struct Between {
    lines: [usize; 2],
    /// The share of the way from the first to the second.
    share: f64,
}

impl Between {
    /// The value there of a function that is linear between the two.
    fn share(self, at: impl Fn(usize) -> DVec3) -> DVec3 {
        let [before, after] = self.lines;
        let from = at(before);
        if before == after {
            return from;
        }
        from + (at(after) - from) * self.share
    }
}

/// The lines around a coordinate.
fn between(lines: &[f64], coordinate: f64) -> Between {
    let after = lines.partition_point(|line| *line <= coordinate);
    let on = |line| Between {
        lines: [line; 2],
        share: 0.0,
    };
    match (after.checked_sub(1), lines.get(after)) {
        (None, _) => on(0),
        (Some(last), None) => on(last),
        (Some(before), Some(end)) => Between {
            lines: [before, after],
            share: (coordinate - lines[before]) / (end - lines[before]),
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn table(lines: [&[f64]; 3], velocity: impl Fn(DVec3) -> DVec3) -> WindTable {
        let lines = lines.map(<[f64]>::to_vec);
        let or_zero = |of: &[f64]| {
            if of.is_empty() {
                vec![0.0]
            } else {
                of.to_vec()
            }
        };
        let [x, y, z] = lines.each_ref().map(|of| or_zero(of));
        let mut velocities = Vec::new();
        for &z in &z {
            for &y in &y {
                velocities.extend(x.iter().map(|&x| velocity(DVec3::new(x, y, z))));
            }
        }
        WindTable { lines, velocities }
    }

    proptest! {
        /// Trilinear interpolation has every function that is linear along each axis.
        #[test]
        fn functions_that_are_linear_along_each_axis_are_had_exactly(
            x in -1.0..2.0_f64, y in -2.0..0.5_f64, z in 0.0..10.0_f64
        ) {
            let known = |p: DVec3| {
                DVec3::new(1.0 + p.x - p.y * p.z, p.x * p.y * p.z, 3.0 * p.z - 2.0 * p.x * p.y)
            };
            let table = table(
                [&[-1.0, 0.3, 0.4, 2.0], &[-2.0, 0.0, 0.5], &[0.0, 1.0, 10.0]],
                known,
            );
            let p = DVec3::new(x, y, z);
            prop_assert!(table.at(p).distance(known(p)) < 1e-12 * (1.0 + known(p).length()));
            // Beyond its lines the nearest place of the grid counts.
            let beyond = p + DVec3::new(5.0, -7.0, 20.0);
            let nearest = DVec3::new(beyond.x.min(2.0), -2.0, 10.0);
            prop_assert!(table.at(beyond).distance(known(nearest)) < 1e-12 * (1.0 + known(nearest).length()));
        }
    }

    #[test]
    fn a_profile_by_height_does_not_depend_on_other_coordinates() {
        let profile = table([&[], &[], &[0.0, 2.0, 10.0]], |p| DVec3::X * p.z * p.z);
        for (height, known) in [
            (-1.0, 0.0),
            (1.0, 2.0),
            (2.0, 4.0),
            (6.0, 52.0),
            (11.0, 100.0),
        ] {
            for side in [-1e6, 0.0, 3.0] {
                let velocity = profile.at(DVec3::new(side, -side, height));
                assert_eq!(velocity, DVec3::X * known);
            }
        }
        assert_eq!(WindTable::points(&profile.lines), Some(3));
        let wind = Wind::Table {
            table: Arc::new(profile),
            strength: 0.5,
        };
        assert_eq!(wind.at(DVec3::Z), DVec3::X);
    }
}
