//! Fabrics by name, with measured values and where they are from.

use super::Material;

/// A fabric that scenes can name.
#[derive(Clone, Copy, Debug)]
pub struct Fabric {
    /// Its name in scenes.
    pub name: &'static str,
    /// What was measured, by whom.
    pub source: &'static str,
    /// Its properties.
    pub material: Material,
}

/// All there are.
pub const FABRICS: &[Fabric] = &[];
