//! The values that a scene has where it says nothing.
//!
//! Only a cloth's shape and its density, stretch and bending (or its fabric) have no default. These
//! values are what the documentation of the format ([`super::load`]) refers to.

use glam::DVec3;
use weft_runtime::Policy;

use super::{
    AirInTime, Balance, BendingModel, Colours, ContactPairs, ContactParameters, Crossings, Culling,
    Format, InTime, Integrator, Material, MembraneModel, Output, Partition, Pieces, Pipeline,
    Preconditioner, RankState, Response, Sides, Solver, Squeezed, Start, Substeps, Time,
    WindInTime,
};

/// Acceleration of gravity in m/s², z up.
pub const GRAVITY: DVec3 = DVec3::new(0.0, 0.0, -9.81);

/// Fewest vertices of a shirt from hem to shoulder.
pub const LEAST_SHIRT: usize = 12;

/// Coulomb's coefficient of a body's friction with cloth.
pub const BODY_FRICTION: f64 = 0.5;
/// Time by which a seam is closed, in s.
pub const SEAM_CLOSE: f64 = 0.5;

/// Samples in a second of a figure that an animation moves. Keyframes at 24, 30 and 60 a second are
/// at samples.
pub const FIGURE_RATE: f64 = 120.0;

/// Side of the square that stands for a plane as triangles, in m.
pub const PLANE_EXTENT: f64 = 4.0;

/// Triangles along a radius of a sphere or capsule, or along the longest side of a box: the default
/// edge length is that length divided by this.
pub const EDGES_PER_RADIUS: f64 = 8.0;

/// Triangles along the side of a plane.
pub const EDGES_PER_PLANE: f64 = 32.0;

/// Steps of 5 ms for 2 s, never cut. Where they are cut, the rule of thumb of a tenth holds
/// [Bridson 2003 §1.3].
impl Default for Time {
    fn default() -> Self {
        Self {
            step: 0.005,
            end: 2.0,
            shortest: None,
            strain_change: 0.1,
        }
    }
}

impl Material {
    /// Light cotton: 0.15 kg/m², 1000 N/m, 1e-5 N m; a measured areal density, a stretch stiffness
    /// far below that of cotton (at which gravity strains a square metre by less than a percent), a
    /// bending rigidity of the order of soft cotton, and the usual limit of strain [Bridson 2003
    /// §1.3].
    pub const COTTON: Self = Self {
        density: 0.15,
        membrane: MembraneModel::FiniteElements,
        stretch: [1000.0; 2],
        shear: None,
        poisson: 0.3,
        bending_model: BendingModel::Quadratic,
        bending: [1e-5; 2],
        bending_bias: None,
        bending_fit: true,
        bending_radius: 0.05,
        damping_mass: 0.0,
        damping: [0.001; 3],
        strain_limit: 0.1,
        compression_limit: f64::INFINITY,
        drag: [InTime::constant(0.0), InTime::constant(0.0)],
        stretch_factor: InTime::constant(1.0),
        bending_factor: InTime::constant(1.0),
    };
}

/// No wind; the density of the standard atmosphere at 20 °C, 1.204 kg/m³.
impl Default for AirInTime {
    fn default() -> Self {
        Self {
            wind: WindInTime::Uniform(InTime::constant(DVec3::ZERO)),
            density: InTime::constant(1.204),
        }
    }
}

/// Nothing starts through anything.
impl Default for Start {
    fn default() -> Self {
        Self {
            crossings: Crossings::Refuse,
        }
    }
}

/// A thickness of 4 mm, self collision with friction 0.3, and at most 100 rounds.
impl Default for ContactParameters {
    fn default() -> Self {
        Self {
            thickness: 0.004,
            self_collision: true,
            self_friction: 0.3,
            culling: Culling::Smooth,
            pairs: ContactPairs::Closest,
            response: Response::Jacobi,
            tolerance: 0.005,
            iterations: 100,
            strain_change: None,
            certify: true,
            squeezed: Squeezed::Give,
            pipeline: Pipeline::Search,
            substeps: Substeps::Fixed(8),
            repulsion: 30.0,
            sides: Sides::Parity,
        }
    }
}

/// A tolerance of 1e-6 within 1000 iterations, a preconditioner of several levels, and implicit
/// Euler, linearised once.
impl Default for Solver {
    fn default() -> Self {
        Self {
            tolerance: 1e-6,
            velocity_tolerance: None,
            max_iterations: 1000,
            preconditioner: Preconditioner::Multilevel,
            integrator: Integrator::Euler,
            newton: 1,
            newton_tolerance: 1e-4,
        }
    }
}

/// Patches chosen from the mesh.
impl Default for Partition {
    fn default() -> Self {
        Self {
            patches: None,
            file: None,
            state: RankState::Auto,
        }
    }
}

/// The runtime's own policy, with tasks forked by what earlier steps cost.
impl Default for Balance {
    fn default() -> Self {
        Self {
            ranks: None,
            seed: 1,
            policy: Policy::FORECAST,
        }
    }
}

/// Frames and pictures of 960 x 640 every 1/25 s, checkpoints every ten minutes.
impl Default for Output {
    fn default() -> Self {
        Self {
            interval: 0.04,
            frames: true,
            pieces: Pieces::One,
            formats: vec![Format::Vtp],
            checkpoints: true,
            checkpoint_interval: 600.0,
            pictures: true,
            picture_size: [960, 640],
            camera: None,
            look_at: None,
            camera_follows: false,
            colours: Colours::Plain,
        }
    }
}
