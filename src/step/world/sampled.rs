//! Bodies that cloth meets by their sampled distance: their cells, what is refused, what they take.

use std::sync::Arc;

use super::World;
use super::error::WorldError;
use super::margin;
use crate::collide::bodies::distance_field::{DistanceField, Expected};
use crate::collide::bodies::{DistanceBody, Sampling};
use crate::collide::{BodyMotion, Solid};
use crate::mesh::{Mended, TriMesh};
use crate::scene::{Body, Scene, Surface};

/// Unless the scene says otherwise, a body is at most this many cells long.
const MOST_CELLS: f64 = 512.0;
/// And at least this many.
const LEAST_CELLS: f64 = 32.0;
/// A cell is at most this share of the shortest side of the box around a body: coarser samples
/// would miss the body.
const COARSEST: f64 = 0.5;

/// Samples that err by more than this share of the distance that cloth keeps give a warning.
const MOST_ERROR: f64 = 0.5;

/// The sides of cells of a body, and of the bodies around.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cells {
    /// The side of a cell, in m.
    pub(super) side: f64,
    /// The distance in m up to which contacts ask.
    reach: f64,
    /// The shortest and the longest side of the box around the mesh, in m.
    size: [f64; 2],
}

impl Cells {
    /// The cells of a body with this mesh; `None` if cloth does not meet it by samples.
    pub(super) fn new(scene: &Scene, body: &Body, mesh: &TriMesh) -> Option<Self> {
        let Surface::Distance { cell } = body.surface else {
            return None;
        };
        let [low, high] = mesh.bounds()?;
        let [shortest, longest] = [(high - low).min_element(), (high - low).max_element()];
        let of_cloth = scene
            .cloths
            .iter()
            .map(|cloth| scene.thickness(cloth.thickness));
        let half = 0.5 * scene.thickness(body.thickness);
        let kept = of_cloth.map(|thickness| 0.5 * thickness + half);
        let least = kept.clone().fold(f64::INFINITY, f64::min);
        let most = kept.fold(0.0, f64::max);
        let default = (least.max(longest / MOST_CELLS)).min(longest / LEAST_CELLS);
        Some(Self {
            side: cell.unwrap_or_else(|| default.min(COARSEST * shortest)),
            reach: most * (1.0 + margin(scene)),
            size: [shortest, longest],
        })
    }

    /// The size of the grid.
    pub(super) fn expected(&self, mesh: &TriMesh) -> Expected {
        DistanceField::expected(mesh, self.side, self.reach)
    }
}

impl World {
    /// How the distance from each body is sampled, for those that cloth meets by samples.
    pub(crate) fn samplings(&self) -> impl Iterator<Item = Option<Sampling>> {
        let samples = self.solids.iter().map(Solid::sampled);
        samples.map(|body| body?.sampling())
    }

    /// A sentence for each body whose samples err by much of the distance that cloth keeps from it.
    pub(crate) fn coarsely_sampled(&self) -> Vec<String> {
        let scene = self.scene();
        let of_cloth = (scene.cloths.iter()).map(|cloth| scene.thickness(cloth.thickness));
        let thinnest = of_cloth.fold(f64::INFINITY, f64::min);
        let bodies = scene.bodies.iter().zip(self.samplings());
        let told = bodies.filter_map(|(body, sampling)| {
            let sampling = sampling?;
            let kept = 0.5 * (thinnest + scene.thickness(body.thickness));
            (sampling.error_m > MOST_ERROR * kept).then(|| {
                format!(
                    "the sampled distance from body `{}` is off by up to {:.3} mm at its surface, and cloth keeps {:.3} mm from it: take \
                     a `cell` smaller than {:.3} mm, or surface = \"triangles\"",
                    body.name,
                    1e3 * sampling.error_m,
                    1e3 * kept,
                    1e3 * sampling.cell_m
                )
            })
        });
        told.collect()
    }
}

/// The space that a body encloses; with its sampled distance, if cloth meets it by that.
///
/// # Errors
/// A sample of a body that deforms cannot be read, or is too large for the cells.
pub(super) fn solid(
    scene: &Scene,
    body: &Body,
    (mesh, motion): (&TriMesh, &BodyMotion),
) -> Result<Solid, WorldError> {
    let cells = Cells::new(scene, body, mesh);
    if let (Some(cells), Some(deforming)) = (&cells, motion.deforming()) {
        let made = DistanceBody::deforming(deforming, cells.side, cells.reach);
        let made = made.map_err(|source| WorldError::Sample {
            body: body.name.clone(),
            source,
        })?;
        return Ok(Solid::Sampled(Arc::new(made)));
    }
    Ok(match (Solid::new(body, mesh), cells) {
        (Solid::Mesh(mesh), Some(cells)) => {
            Solid::Sampled(Arc::new(DistanceBody::new(*mesh, cells.side, cells.reach)))
        }
        (solid, _) => solid,
    })
}

/// Refuses a body that has no distance, or one that its cells cannot hold.
pub(super) fn check(
    scene: &Scene,
    body: &Body,
    mesh: &TriMesh,
    mended: Option<&Mended>,
) -> Result<(), WorldError> {
    let Some(cells) = Cells::new(scene, body, mesh) else {
        return Ok(());
    };
    if let Some(mended) = mended.filter(|m| (m.two_sided as usize) < m.mesh.triangles.len()) {
        return Err(WorldError::OpenDistance {
            body: body.name.clone(),
            found: mended.found.clone(),
        });
    }
    let [shortest, longest] = cells.size;
    if cells.side > COARSEST * shortest {
        return Err(WorldError::CoarseCells {
            body: body.name.clone(),
            cell: cells.side,
            shortest,
            most: COARSEST * shortest,
        });
    }
    if !cells.expected(mesh).can_be_numbered() {
        return Err(WorldError::FineCells {
            body: body.name.clone(),
            cell: cells.side,
            longest,
            usual: longest / MOST_CELLS,
        });
    }
    Ok(())
}
