//! How large the things of a scene are, a line each, and which of them are hardly meant to be so.

use std::fmt;

use super::World;
use crate::mesh::{Sizes, TriMesh, mass};
use crate::scene::{ClothSource, Held, Surface};

/// Cloth that is longer is likely to be in other units, in m.
const LONG: f64 = 10.0;
/// And so is cloth that is shorter.
const SHORT: f64 = 0.01;

/// How large a cloth or a body of a scene is.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectSizes {
    /// Its name in the scene.
    pub name: String,
    /// Its sizes as a mesh.
    pub sizes: Sizes,
    /// What it is beside that.
    pub kind: ObjectKind,
}

/// The facts that are told of an object beside its sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ObjectKind {
    /// A cloth.
    Cloth {
        /// Its mass in kg.
        mass: f64,
        /// Vertices that lie where another one of it lies.
        coincident: usize,
    },
    /// A body. Cloth meets its formula if it is analytic; triangles are for pictures then.
    Body {
        /// Whether it is analytic.
        analytic: bool,
    },
}

impl fmt::Display for ObjectSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, sizes, kind } = self;
        match *kind {
            ObjectKind::Cloth {
                mass: kg,
                coincident,
            } => write!(
                f,
                "cloth `{name}`: {sizes}, {coincident} coincident vertices, {}",
                mass(kg)
            ),
            ObjectKind::Body { analytic } => {
                let formula = match analytic {
                    true => "; cloth meets its formula, triangles are for pictures",
                    false => "",
                };
                write!(f, "body `{name}`: {sizes}, without mass{formula}")
            }
        }
    }
}

impl World {
    /// The sizes of each cloth, then those of each body.
    #[must_use]
    pub fn sizes(&self) -> Vec<ObjectSizes> {
        let scene = self.scene();
        let cloths = scene.cloths.iter().enumerate().zip(self.pieces());
        let cloths = cloths.map(|((index, cloth), pieces)| ObjectSizes {
            name: cloth.name.clone(),
            sizes: Sizes::of(&self.cloth_mesh(index)),
            kind: ObjectKind::Cloth {
                mass: self.of_cloth(index, self.model().masses()).sum(),
                coincident: pieces.coincident,
            },
        });
        let bodies = scene.bodies.iter().zip(self.body_meshes());
        let bodies = bodies.map(|(body, mesh)| ObjectSizes {
            name: body.name.clone(),
            sizes: Sizes::of(mesh),
            kind: ObjectKind::Body {
                analytic: matches!(body.surface, Surface::Analytic),
            },
        });
        cloths.chain(bodies).collect()
    }

    /// A sentence for each cloth that is very large or very small.
    pub(crate) fn odd_sizes(&self) -> Vec<String> {
        let cloths = self.scene().cloths.iter().enumerate();
        let told = cloths.filter_map(|(index, cloth)| {
            let length = Sizes::of(&self.cloth_mesh(index)).length();
            let (is, factor) = if length > LONG {
                ("more than 10 m", "0.01 if the file is in cm, 0.001 if it is in mm")
            } else if length < SHORT {
                ("less than 1 cm", "1000 if the file is in km, 0.0254 if it is in inches")
            } else {
                return None;
            };
            let mend = match &cloth.source {
                ClothSource::Grid { .. } => "give grid.size with the unit that is meant".to_owned(),
                ClothSource::Shirt { .. } => "give shirt.height with the unit that is meant".to_owned(),
                ClothSource::File { scale, .. } if length > LONG || *scale != 1.0 => format!(
                    "coordinates of files times scale, here {scale}, are in m; set scale to {factor}"
                ),
                ClothSource::File { .. } => {
                    "coordinates of files are taken in m; set scale to what brings them there".to_owned()
                }
            };
            let name = &cloth.name;
            Some(format!("cloth `{name}` is {length:.3e} m long, {is}: {mend}, unless that is meant"))
        });
        told.collect()
    }

    /// A sentence for each pin whose point is far from the cloth.
    pub(crate) fn far_pins(&self) -> Vec<String> {
        let mut told = Vec::new();
        for (index, cloth) in self.scene().cloths.iter().enumerate() {
            let points = cloth
                .pins
                .iter()
                .enumerate()
                .filter_map(|(pin, of)| match of.held {
                    Held::Nearest(point) => Some((pin, point)),
                    Held::Box { .. } => None,
                });
            let points: Vec<_> = points.collect();
            if points.is_empty() {
                continue;
            }
            let mesh = self.cloth_mesh(index);
            // The longest edge at each vertex.
            let mut longest = vec![0.0_f64; mesh.positions.len()];
            for [a, b] in mesh.edges() {
                let length = mesh.positions[a as usize].distance(mesh.positions[b as usize]);
                for end in [a, b] {
                    longest[end as usize] = longest[end as usize].max(length);
                }
            }
            for (pin, point) in points {
                let distances = mesh.positions.iter().map(|x| x.distance(point));
                let nearest = distances.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
                let Some((vertex, distance)) = nearest else {
                    continue;
                };
                if distance > longest[vertex] {
                    told.push(format!(
                        "pin {pin} of cloth `{}` is {:.1} mm from the nearest vertex, {vertex}, farther than edges are long there \
                         ({:.1} mm): give it a point of the cloth as it starts, as {}",
                        cloth.name,
                        1e3 * distance,
                        1e3 * longest[vertex],
                        Place(mesh.positions[vertex])
                    ));
                }
            }
        }
        told
    }

    /// Values of the vertices of a cloth, in the order of its own mesh, from those of all in the
    /// numbering of the patch tree.
    fn of_cloth<'v, T: Copy>(
        &'v self,
        cloth: usize,
        values: &'v [T],
    ) -> impl Iterator<Item = T> + 'v {
        let cloths = self.model().cloth_of_vertex();
        let vertices = self.tree().old_to_new().iter();
        vertices
            .filter(move |&&new| cloths[new as usize] as usize == cloth)
            .map(move |&new| values[new as usize])
    }

    /// The mesh of a cloth as it starts, in its own numbering.
    pub(crate) fn cloth_mesh(&self, cloth: usize) -> TriMesh {
        let model = self.model();
        let cloths = model.cloth_of_vertex();
        let before = cloths
            .iter()
            .filter(|&&other| (other as usize) < cloth)
            .count() as u32;
        let own = |t: &&[u32; 3]| cloths[t[0] as usize] as usize == cloth;
        let old = |v: u32| self.tree().new_to_old()[v as usize] - before;
        TriMesh {
            positions: self.of_cloth(cloth, model.rest()).collect(),
            triangles: (model.triangles().iter().filter(own))
                .map(|t| t.map(old))
                .collect(),
        }
    }
}

/// A point as scenes have it, to a tenth of a millimetre.
struct Place(glam::DVec3);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |x: f64| (1e4 * x).round() / 1e4 + 0.0;
        let [x, y, z] = self.0.to_array().map(short);
        write!(f, "[{x}, {y}, {z}]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Scene;

    fn world(cloth: &str, rest: &str) -> World {
        let text = format!(
            "contact = {{ thickness = \"0.1 mm\" }}\npartition.patches = 4\n[[cloth]]\n{cloth}\n\
             material = {{ density = 0.15, stretch = 1000, bending = 1e-5 }}\n{rest}"
        );
        World::build(&Scene::parse(&text, None, &[]).unwrap()).unwrap()
    }

    #[test]
    fn each_cloth_and_body_has_a_line() {
        let rest = "[[cloth]]\nname = \"other\"\ngrid = { size = [2, 4], vertices = [9, 17] }\ncenter = [0, 0, 3]\n\
                    material = { density = 1, stretch = 1000, bending = 1e-5 }\n\
                    [[body]]\nname = \"floor\"\nshape = \"plane\"\npoint = [0, 0, -1]\nedge = 1\n\
                    [[body]]\nname = \"box\"\nshape = \"box\"\ncenter = [0, 0, -3]\nsize = [1, 1, 1]\nsurface = \"analytic\"";
        let lines = world("grid = { size = 0.2, vertices = 11 }", rest).sizes();
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "cloth `cloth0`: 0.2 x 0.2 x 0 m, 121 vertices, 200 triangles, edges of 20 to 28.28 mm, 1 border, 1 piece, \
                 0 coincident vertices, 6 g",
                "cloth `other`: 2 x 4 x 0 m, 153 vertices, 256 triangles, edges of 250 to 353.6 mm, 1 border, 1 piece, \
                 0 coincident vertices, 8 kg",
                "body `floor`: 4 x 4 x 0 m, 25 vertices, 32 triangles, edges of 1 to 1.414 m, 1 border, 1 piece, without mass",
                "body `box`: 1 x 1 x 1 m, 386 vertices, 768 triangles, edges of 125 to 176.8 mm, closed, 1 piece, without mass; \
                 cloth meets its formula, triangles are for pictures",
            ]
        );
    }

    #[test]
    fn very_large_and_very_small_cloth_is_told_and_other_is_not() {
        for (size, told) in [
            ("9.9", ""),
            ("10.1", "more than 10 m"),
            ("\"1.01 cm\"", ""),
            ("\"9.9 mm\"", "less than 1 cm"),
        ] {
            let cloth = format!("grid = {{ size = {size}, vertices = 9 }}");
            let warnings = world(&cloth, "").warnings().concat();
            assert_eq!(warnings.is_empty(), told.is_empty(), "{size}: {warnings}");
            assert!(warnings.contains(told), "{warnings}");
            assert!(
                told.is_empty() || warnings.contains("grid.size"),
                "{warnings}"
            );
        }
    }

    #[test]
    fn a_pin_far_from_the_cloth_is_told_with_the_place_of_the_nearest_vertex() {
        let cloth = |x: f64| {
            format!(
                "grid = {{ size = 0.2, vertices = 11 }}\npins = [{{ nearest = [-0.1, -0.1, 0] }}, {{ nearest = [{x}, 0.1, 0] }}]"
            )
        };
        assert_eq!(world(&cloth(0.11), "").warnings(), Vec::<String>::new());
        let told = world(&cloth(0.15), "").warnings().concat();
        assert!(
            told.starts_with("pin 1 of cloth `cloth0` is 50.0 mm from the nearest vertex, 120,"),
            "{told}"
        );
        assert!(told.ends_with("as [0.1, 0.1, 0]"), "{told}");
    }
}
