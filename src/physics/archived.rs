//! A model in an archive: everything but what follows from the materials of the scene.

use std::io;
use std::sync::Arc;

use super::membrane::Law;
use super::model::{ClothModel, Quadratic};
use crate::archive::{Archive as _, ArchiveFault, Array, Loader, Saver};
use crate::scene::Cloth;
use crate::set_up_only::SetUpOnly;

impl ClothModel {
    /// Keeps it in an archive.
    ///
    /// # Panics
    /// Rest shapes were [released](crate::step::World::release).
    pub(crate) fn save(&self, to: &mut Saver<'_>) -> io::Result<()> {
        let (all_shapes, all_quadratic) = (self.shapes(), self.quadratic());
        let Self {
            triangles,
            start,
            shapes: _,
            quadratic: _,
            folds,
            shells,
            springs,
            stitches,
            masses,
            materials: _,
            laws: _,
            pressures: _,
            bendings,
            added_stretches,
            cloth_of_vertex,
            cloth_of_triangle,
        } = self;
        triangles.save(to)?;
        start.save(to)?;
        all_shapes.save(to)?;
        all_quadratic.save(to)?;
        folds.save(to)?;
        shells.save(to)?;
        springs.save(to)?;
        stitches.save(to)?;
        masses.save(to)?;
        bendings.save(to)?;
        added_stretches.save(to)?;
        cloth_of_vertex.save(to)?;
        cloth_of_triangle.save(to)
    }

    /// Reads what [`save`](Self::save) has written, for these cloths.
    pub(crate) fn load(cloths: &[Cloth], from: &mut Loader<'_>) -> Result<Self, ArchiveFault> {
        let materials = cloths.iter().map(|cloth| cloth.material.clone());
        Ok(Self {
            triangles: Arc::new(Array::load(from)?),
            start: Arc::new(Array::load(from)?),
            shapes: SetUpOnly::new(Array::load(from)?),
            quadratic: SetUpOnly::new(Quadratic::load(from)?),
            folds: Array::load(from)?,
            shells: Array::load(from)?,
            springs: Array::load(from)?,
            stitches: Array::load(from)?,
            masses: Array::load(from)?,
            laws: cloths
                .iter()
                .map(|cloth| Law::new(&cloth.material))
                .collect(),
            pressures: cloths.iter().map(|cloth| cloth.pressure).collect(),
            materials: materials.collect(),
            bendings: Vec::load(from)?,
            added_stretches: Vec::load(from)?,
            cloth_of_vertex: Array::load(from)?,
            cloth_of_triangle: Array::load(from)?,
        })
    }
}
