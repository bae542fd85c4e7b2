//! The properties of cloth that change in time: drag coefficients, and factors of its stiffness.
//!
//! They are functions of the time alone. Assembly asks for them with the time of its loads, so that
//! a system that is assembled ahead, or after a restart, has the same numbers. A factor multiplies
//! the elastic energy and the damping in proportion to it: the law of a cloth, its Poisson's ratio,
//! its shape at rest and the fit of its bending to the mesh stay as they are.

use super::ClothModel;
use super::membrane_lanes::Law;
use crate::physics::element::Times;
use crate::scene::InTime;

/// The properties of a cloth at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AtTime {
    /// The drag coefficients of motion along the normal and in the plane.
    pub(crate) drag: [f64; 2],
    /// The factor of the resistance to stretching and shearing.
    pub(crate) stretch: f64,
    /// The factor of the resistance to bending.
    pub(crate) bending: f64,
}

impl ClothModel {
    /// The properties of each cloth at a time in s.
    pub(crate) fn at_time(&self, time: f64) -> Vec<AtTime> {
        let materials = self.materials().iter();
        let at_time = materials.map(|material| AtTime {
            drag: [material.drag[0].at(time), material.drag[1].at(time)],
            stretch: material.stretch_factor.at(time),
            bending: material.bending_factor.at(time),
        });
        at_time.collect()
    }

    /// The laws of the triangles of each cloth, with its properties at a time.
    pub(crate) fn laws_at(&self, cloths: &[AtTime], times: &Times) -> Vec<Law> {
        let laws = self.laws().zip(cloths);
        laws.map(|((moduli, damping), cloth)| {
            let moduli = moduli.scaled(cloth.stretch, cloth.stretch);
            Law::new(&moduli, damping, times)
        })
        .collect()
    }

    /// The largest factors of the resistance to stretching and to bending that each cloth has at
    /// any time.
    pub(super) fn largest_factors(&self) -> Vec<[f64; 2]> {
        let most = |factor: &InTime<f64>| factor.values().fold(0.0, f64::max);
        let materials = self.materials().iter();
        let factors = materials.map(|material| {
            [
                most(&material.stretch_factor),
                most(&material.bending_factor),
            ]
        });
        factors.collect()
    }

    /// The most that the ratio of the factors of bending to those of stretching of a cloth is at a
    /// keyframe of either.
    pub(super) fn most_bent(&self, cloth: usize) -> f64 {
        let material = &self.materials()[cloth];
        let (stretch, bending) = (&material.stretch_factor, &material.bending_factor);
        let times = stretch.times().chain(bending.times());
        let ratios = times.map(|time| bending.at(time) / stretch.at(time));
        ratios.fold(0.0, f64::max)
    }
}
