//! One key for the size of a scene: `detail` divides cells and thicknesses.
//!
//! Scenes of papers have up to two million triangles. One file serves for all sizes of them: with
//! `detail = k` each cell of a grid is cut into k by k, and all thicknesses are k times smaller, so
//! that layers lie as many cells apart as before. A scene that was read has these numbers, as if
//! they had been written out; nothing else knows of the key.

use super::reader::Table;
use super::{Body, Cloth, ClothSource, ContactParameters};

/// The parts of a scene that have cells or a thickness.
pub(super) struct Scaled<'a> {
    pub(super) cloths: &'a mut [Cloth],
    pub(super) bodies: &'a mut [Body],
    pub(super) contact: &'a mut ContactParameters,
}

impl Scaled<'_> {
    /// Divides cells and thicknesses. Cloth of a file is noted, for it has the cells that it has.
    pub(super) fn divide(self, detail: u64, root: &Table<'_>) {
        if detail == 1 {
            return;
        }
        let cells = |vertices: usize| {
            let cells = vertices.saturating_sub(1) as u64;
            let cells = cells.saturating_mul(detail).saturating_add(1);
            usize::try_from(cells).unwrap_or(usize::MAX)
        };
        let by = detail as f64;
        for cloth in self.cloths {
            match &mut cloth.source {
                ClothSource::Grid { vertices, .. } => *vertices = vertices.map(cells),
                ClothSource::Shirt { vertices, .. } => *vertices = cells(*vertices),
                ClothSource::File { .. } => {
                    let message = format!(
                        "divides the cells of grids and shirts, and cloth `{}` is of a file; leave it out, or give that cloth a grid",
                        cloth.name
                    );
                    root.note("detail", message);
                }
            }
            cloth.thickness = cloth.thickness.map(|thickness| thickness / by);
        }
        for body in self.bodies {
            body.thickness = body.thickness.map(|thickness| thickness / by);
        }
        self.contact.thickness /= by;
    }
}

#[cfg(test)]
mod tests {
    use crate::scene::{ClothSource, Scene};

    const SCENE: &str = "detail = 3\n\
        [contact]\nthickness = \"6 mm\"\n\
        [[cloth]]\ngrid = { size = [1, 2], vertices = [5, 9] }\nthickness = 0.003\n\
        material = { density = 0.15, stretch = 1000, bending = 1e-5 }\n\
        [[cloth]]\nshirt = { height = \"70 cm\", vertices = 13 }\ncenter = [0, 0, 3]\n\
        material = { density = 0.15, stretch = 1000, bending = 1e-5 }\n\
        [[body]]\nshape = \"sphere\"\ncenter = [0, 0, -2]\nradius = 1\nedge = 0.2\nthickness = 0.009\n";

    #[test]
    fn cells_and_thicknesses_are_as_many_times_smaller() {
        let scene = Scene::parse(SCENE, None, &[]).unwrap();
        let [grid, shirt] = &scene.cloths[..] else {
            panic!("{:?}", scene.cloths)
        };
        assert!(matches!(
            grid.source,
            ClothSource::Grid {
                vertices: [13, 25],
                size: [1.0, 2.0],
                ..
            }
        ));
        assert!(matches!(
            shirt.source,
            ClothSource::Shirt { vertices: 37, .. }
        ));
        let near = |a: f64, b: f64| (a - b).abs() < 1e-15;
        assert!(near(scene.contact.thickness, 0.002) && near(grid.thickness.unwrap(), 0.001));
        assert!(near(scene.bodies[0].thickness.unwrap(), 0.003));
    }

    /// A scene that is written out has its numbers as they are, and is not divided once more.
    #[test]
    fn a_scene_that_is_written_out_is_not_divided_again() {
        let scene = Scene::parse(SCENE, None, &[]).unwrap();
        let echo = scene.echo();
        assert!(!echo.contains("detail"), "{echo}");
        let again = Scene::parse(&echo, None, &[]).unwrap();
        assert_eq!(again.cloths, scene.cloths);
        assert_eq!(again.contact, scene.contact);
    }

    #[test]
    fn too_many_vertices_and_no_detail_are_refused() {
        for (detail, told) in [("0", "detail"), ("65", "detail"), ("1.5", "detail")] {
            let text = SCENE.replace("detail = 3", &format!("detail = {detail}"));
            let error = Scene::parse(&text, None, &[]).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
        let text = SCENE
            .replace("detail = 3", "detail = 64")
            .replace("[5, 9]", "[500, 900]");
        let error = Scene::parse(&text, None, &[]).unwrap_err().to_string();
        assert!(error.contains("the most are"), "{error}");
    }
}
