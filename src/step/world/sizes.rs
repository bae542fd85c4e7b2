//! How large the things of a scene are, a line each, and which of them are hardly meant to be so.

use std::path::Path;
use std::{fmt, io};

use glam::DVec3;

use super::World;
use crate::archive::{Archive, ArchiveFault, Loader, Saver, archives};
use crate::collide::bodies::Sampling;
use crate::heap_bytes::{counts_heap, owns_no_heap};
use crate::mesh::{Pieces, Sizes, TriMesh, is_usd, is_y_up_format, mass};
use crate::scene::{ClothSource, Held, Placement, Shape, Surface};

/// Cloth that is longer is likely to be in other units, in m.
const LONG: f64 = 10.0;
/// And so is cloth that is shorter.
const SHORT: f64 = 0.01;
/// And so are bodies of files that are longer.
const HUGE: f64 = 100.0;
/// Lengths of clothes and of those who wear them, in m.
const CLOTHES: std::ops::Range<f64> = 0.1..3.5;

/// How large a cloth or a body of a scene is.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectSizes {
    /// Its name in the scene.
    pub name: String,
    /// Its sizes as a mesh.
    pub sizes: Sizes,
    /// The kind of object, with facts of that kind.
    pub kind: ObjectKind,
}

/// The facts about an object that are shown beside its sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ObjectKind {
    /// A cloth.
    Cloth {
        /// Its mass in kg.
        mass: f64,
        /// Vertices that lie where another one of it lies.
        coincident: usize,
        /// Faces of its file that were cut into triangles: quads, and those of more corners.
        polygons: [usize; 2],
        /// Vertices of its file that `weld` made one with others, if the scene has it.
        welded: Option<usize>,
    },
    /// A body. Cloth meets its formula if it is analytic; triangles are for pictures then.
    Body {
        /// Whether it is analytic.
        analytic: bool,
        /// How its distance is sampled, if cloth meets it by samples.
        distance: Option<Sampling>,
        /// The samples that it deforms by, and the time of the last one in s, if it deforms.
        deforms: Option<(usize, f64)>,
    },
}

impl fmt::Display for ObjectSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, sizes, kind } = self;
        match *kind {
            ObjectKind::Cloth {
                mass: kg,
                coincident,
                polygons,
                welded,
            } => {
                write!(
                    f,
                    "cloth `{name}`: {sizes}, {coincident} coincident vertices"
                )?;
                if let Some(welded) = welded {
                    write!(
                        f,
                        ", {welded} vertices of its file joined with others by `weld`"
                    )?;
                }
                match polygons {
                    [0, 0] => {}
                    [quads, 0] => write!(f, ", {quads} quads of its file cut")?,
                    [0, more] => {
                        write!(f, ", {more} faces of more than 4 corners of its file cut")?;
                    }
                    [quads, more] => write!(
                        f,
                        ", {quads} quads and {more} faces of more corners of its file cut"
                    )?,
                }
                write!(f, ", {}", mass(kg))
            }
            ObjectKind::Body {
                analytic,
                distance,
                deforms,
            } => {
                let formula = match analytic {
                    true => "; cloth meets its formula, triangles are for pictures",
                    false => "",
                };
                write!(f, "body `{name}`: {sizes}, without mass{formula}")?;
                if let Some(sampling) = distance {
                    write!(
                        f,
                        "; cloth meets its distance, sampled in cells of {:.3} mm ({} of {} blocks, {:.1} MB), off by up to {:.4} mm in cells \
                         at the surface and by less than {:.3} mm anywhere",
                        1e3 * sampling.cell_m,
                        sampling.sampled_blocks,
                        sampling.blocks,
                        1e-6 * sampling.bytes as f64,
                        1e3 * sampling.error_m,
                        1e3 * sampling.bound_m
                    )?;
                    if let Some(in_time) = sampling.in_time_m {
                        write!(
                            f,
                            ", and between its first samples by up to {:.3} mm more",
                            1e3 * in_time
                        )?;
                    }
                }
                if let Some((samples, last)) = deforms {
                    write!(f, "; deforms by {samples} samples, the last at {last} s")?;
                }
                Ok(())
            }
        }
    }
}

/// The facts about the meshes of all cloths. They are found by going through all of these, so a
/// prepared world has them.
#[derive(Clone, Debug)]
pub(super) struct ToldOfCloths {
    of_cloths: Vec<MeshFacts>,
    /// Sentences on meshes of files that seem to have y upwards, also of bodies.
    lying: Vec<String>,
    /// Sentences on cloth that starts far from its shape at rest.
    far_from_rest: Vec<String>,
    /// Sentences on pins that are far from their cloth.
    far_pins: Vec<String>,
}

counts_heap!(ToldOfCloths: of_cloths, lying, far_from_rest, far_pins);
archives!(ToldOfCloths: of_cloths, lying, far_from_rest, far_pins);

/// The facts about the mesh of a cloth.
#[derive(Clone, Copy, Debug)]
struct MeshFacts {
    sizes: Sizes,
    /// Its mass in kg.
    mass: f64,
    pieces: Pieces,
}

owns_no_heap!(MeshFacts);

impl Archive for MeshFacts {
    fn save(&self, to: &mut Saver<'_>) -> io::Result<()> {
        let Self {
            sizes,
            mass,
            pieces,
        } = self;
        let Sizes {
            extent,
            vertices,
            triangles,
            shortest,
            longest,
            borders,
            pieces: parts,
        } = sizes;
        let Pieces {
            count,
            coincident,
            apart,
        } = pieces;
        extent.to_array().save(to)?;
        [*shortest, *longest, *mass].save(to)?;
        let counts = [
            vertices, triangles, borders, parts, count, coincident, apart,
        ];
        counts.map(|count| *count).save(to)
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, ArchiveFault> {
        let extent = DVec3::from_array(Archive::load(from)?);
        let [shortest, longest, mass] = Archive::load(from)?;
        let counts: [usize; 7] = Archive::load(from)?;
        let [
            vertices,
            triangles,
            borders,
            parts,
            count,
            coincident,
            apart,
        ] = counts;
        Ok(Self {
            sizes: Sizes {
                extent,
                vertices,
                triangles,
                shortest,
                longest,
                borders,
                pieces: parts,
            },
            mass,
            pieces: Pieces {
                count,
                coincident,
                apart,
            },
        })
    }
}

impl World {
    /// The facts about the meshes of all cloths.
    pub(super) fn told_of_cloths(&self) -> &ToldOfCloths {
        self.told_of_cloths.get_or_init(|| {
            let of_cloth = |(index, pieces)| MeshFacts {
                sizes: Sizes::of(&self.cloth_mesh(index)),
                mass: self.of_cloth(index, self.model().masses()).sum(),
                pieces,
            };
            ToldOfCloths {
                of_cloths: self
                    .pieces()
                    .into_iter()
                    .enumerate()
                    .map(of_cloth)
                    .collect(),
                lying: self.find_lying(),
                far_from_rest: self.find_far_from_rest().collect(),
                far_pins: self.find_far_pins(),
            }
        })
    }

    /// The pieces of each cloth.
    pub(super) fn pieces_of_cloths(&self) -> impl Iterator<Item = Pieces> + '_ {
        self.told_of_cloths().of_cloths.iter().map(|of| of.pieces)
    }

    /// A sentence for each mesh of a file that seems to have y upwards: it stands on the plane that
    /// is the ground where y points upwards, and half of it is below z = 0; or it is a flat sheet
    /// that would lie there, and stands on edge here with nothing to hold it.
    pub(crate) fn lying(&self) -> &[String] {
        let gravity = self.scene().gravity.at(0.0).abs();
        if gravity.z <= gravity.x.max(gravity.y) {
            return &[];
        }
        &self.told_of_cloths().lying
    }

    /// A sentence for each cloth that starts far from its own shape at rest.
    pub(super) fn far_from_rest(&self) -> &[String] {
        &self.told_of_cloths().far_from_rest
    }

    /// A sentence for each pin whose point is far from the cloth.
    pub(crate) fn far_pins(&self) -> &[String] {
        &self.told_of_cloths().far_pins
    }

    /// The sizes of each cloth, then those of each body.
    #[must_use]
    pub fn sizes(&self) -> Vec<ObjectSizes> {
        let scene = self.scene();
        let cloths = scene.cloths.iter().zip(&self.told_of_cloths().of_cloths);
        let cloths = cloths.enumerate().map(|(index, (cloth, of))| ObjectSizes {
            name: cloth.name.clone(),
            sizes: of.sizes,
            kind: ObjectKind::Cloth {
                mass: of.mass,
                coincident: of.pieces.coincident,
                polygons: self.polygons[index],
                welded: self.welded[index],
            },
        });
        let bodies = (scene.bodies.iter().zip(self.body_meshes())).zip(&self.body_motions);
        let bodies = bodies.zip(self.sizes_of_mended.iter().zip(self.samplings()));
        let bodies = bodies.map(|(((body, mesh), motion), (mended, distance))| ObjectSizes {
            name: body.name.clone(),
            sizes: mended.unwrap_or_else(|| Sizes::of(mesh)),
            kind: ObjectKind::Body {
                analytic: matches!(body.surface, Surface::Analytic),
                distance,
                deforms: motion.deforming().and_then(|deforming| {
                    let times = deforming.times();
                    Some((times.len(), *times.last()?))
                }),
            },
        });
        cloths.chain(bodies).collect()
    }

    /// A sentence for each cloth that is very large or very small.
    pub(crate) fn odd_sizes(&self) -> Vec<String> {
        let cloths = self.scene().cloths.iter();
        let told = cloths
            .zip(&self.told_of_cloths().of_cloths)
            .filter_map(|(cloth, of)| {
                let length = of.sizes.length();
                let is = if length > LONG {
                    "more than 10 m"
                } else if length < SHORT {
                    "less than 1 cm"
                } else {
                    return None;
                };
                let mend = match &cloth.source {
                    ClothSource::Grid { .. } => {
                        "give grid.size with the unit that is meant".to_owned()
                    }
                    ClothSource::Shirt { .. } => {
                        "give shirt.height with the unit that is meant".to_owned()
                    }
                    ClothSource::File {
                        path, placement, ..
                    } => remedy(length, path, placement),
                };
                let name = &cloth.name;
                Some(format!(
                    "cloth `{name}` is {length:.3e} m long, {is}: {mend}, unless that is meant"
                ))
            });
        told.collect()
    }

    /// A sentence for each body of a file that is as large as no person and no room is.
    pub(crate) fn odd_bodies(&self) -> Vec<String> {
        let bodies = self.scene().bodies.iter().zip(self.body_meshes());
        let told = bodies.filter_map(|(body, mesh)| {
            let Shape::Mesh {
                path, placement, ..
            } = &body.shape
            else {
                return None;
            };
            let length = Sizes::of(mesh).length();
            (length > HUGE).then(|| {
                format!(
                    "body `{}` is {length:.3e} m long: {}, unless that is meant",
                    body.name,
                    remedy(length, path, placement)
                )
            })
        });
        told.collect()
    }

    /// See [`Self::lying`].
    fn find_lying(&self) -> Vec<String> {
        let scene = self.scene();
        let mut told = Vec::new();
        let is_unsaid = |path: &Path, placement: &Placement| {
            // A mesh that was placed by hand has been looked at.
            let untouched = placement.up.is_none()
                && placement.rotation == DVec3::ZERO
                && placement.translation == DVec3::ZERO;
            // Other formats know which axis points upwards.
            untouched && !is_y_up_format(path) && !is_usd(path)
        };
        let mut look = |what: &str,
                        name: &str,
                        path: &Path,
                        placement: &Placement,
                        mesh: &TriMesh| {
            if is_unsaid(path, placement) && stands_along_y(mesh) {
                told.push(format!(
                    "{what} `{name}` is longest along y, stands on y = 0 and goes through z = 0, as meshes do in whose files y points \
                     upwards (the default of Blender, CLO, Maya and Houdini), and gravity pulls along z: set up = \"y\", or up = \"z\" \
                     if it is meant so"
                ));
            }
        };
        let mut on_edge = Vec::new();
        for (index, cloth) in scene.cloths.iter().enumerate() {
            if let ClothSource::File {
                path, placement, ..
            } = &cloth.source
            {
                let mesh = self.cloth_mesh(index);
                look("cloth", &cloth.name, path, placement, &mesh);
                if cloth.pins.is_empty() && is_unsaid(path, placement) && is_flat_across_y(&mesh) {
                    on_edge.push(format!(
                        "cloth `{}` is flat across y, so it stands on edge, and no pin holds it: set up = \"y\" if y points upwards \
                         in its file (the default of Blender, CLO, Maya and Houdini), or up = \"z\" if it is meant so",
                        cloth.name
                    ));
                }
            }
        }
        for (body, mesh) in scene.bodies.iter().zip(self.body_meshes()) {
            if let Shape::Mesh {
                path, placement, ..
            } = &body.shape
            {
                look("body", &body.name, path, placement, mesh);
            }
        }
        told.extend(on_edge);
        told
    }

    /// See [`Self::far_pins`].
    fn find_far_pins(&self) -> Vec<String> {
        let mut told = Vec::new();
        for (index, cloth) in self.scene().cloths.iter().enumerate() {
            let points = cloth
                .pins
                .iter()
                .enumerate()
                .filter_map(|(pin, of)| match of.held {
                    Held::Nearest(point) => Some((pin, point)),
                    Held::Box { .. } | Held::Group(_) | Held::Vertices(_) | Held::Near { .. } => {
                        None
                    }
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
            positions: self.of_cloth(cloth, model.start()).collect(),
            triangles: (model.triangles().iter().filter(own))
                .map(|t| t.map(old))
                .collect(),
        }
    }
}

/// The remedy for a mesh of a file that has this length in m: the keys that bring it to the size
/// that it is likely to have.
fn remedy(length: f64, path: &Path, placement: &Placement) -> String {
    if placement.units.is_some() || placement.scale != 1.0 {
        return "look at its units and scale, by which coordinates of its file become m".to_owned();
    }
    if is_usd(path) {
        return "look at metersPerUnit of its file, or set units or scale".to_owned();
    }
    // Its length in either unit, as CLO and Maya export by default.
    let likely = [("cm", 0.01 * length), ("mm", 0.001 * length)];
    let likely: Vec<String> = (likely.into_iter())
        .filter(|(_, long)| CLOTHES.contains(long))
        .map(|(units, long)| format!("units = \"{units}\" if it is {} m long", Short(long)))
        .collect();
    let mend = match &likely[..] {
        [] if length < SHORT => "set scale to what brings its file there".to_owned(),
        [] => "set units or scale to what brings its file there".to_owned(),
        likely => format!("set {}", likely.join(", ")),
    };
    format!("coordinates are taken in m; {mend}")
}

/// A length with three digits.
struct Short(f64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", format!("{:.2e}", self.0).parse().unwrap_or(self.0))
    }
}

/// Whether a mesh stands on the plane y = 0 and is longest along y, has a depth, and has z = 0 in
/// its middle. Flat sheets and what lies around the origin do not.
fn stands_along_y(mesh: &TriMesh) -> bool {
    let Some([low, high]) = mesh.bounds() else {
        return false;
    };
    let size = high - low;
    let middle = 0.5 * (low + high);
    size.y > 1.3 * size.z
        && size.y >= size.x
        && size.z > 0.05 * size.y
        && low.y > -0.02 * size.y
        && middle.z.abs() < 0.3 * size.z
}

/// Whether a mesh is a sheet in a plane y = const, with a size in both directions of it.
fn is_flat_across_y(mesh: &TriMesh) -> bool {
    let Some([low, high]) = mesh.bounds() else {
        return false;
    };
    let size = high - low;
    size.y < 1e-3 * size.x.min(size.z)
}

/// A point as scenes have it, to a tenth of a millimetre.
struct Place(DVec3);

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

    /// The world of a cloth and a body of files, an upright tube and a closed box. The tube has the
    /// axis upwards that is asked for, and begins at `low`.
    fn of_files(y_up: bool, low: f64, size: f64, keys: &str, body: &str) -> World {
        let folder = tempfile::tempdir().unwrap();
        let mut tube = String::new();
        for ring in 0..9 {
            for k in 0..12 {
                let (sine, cosine) = (f64::from(k) * std::f64::consts::TAU / 12.0).sin_cos();
                let up = low + size * f64::from(ring) / 8.0;
                let [a, b] = [0.2 * size * cosine, 0.2 * size * sine];
                tube += &match y_up {
                    true => format!("v {a} {up} {}\n", -b),
                    false => format!("v {a} {b} {up}\n"),
                };
            }
        }
        for ring in 0..8 {
            for k in 0..12 {
                let v = |ring: usize, k: usize| 12 * ring + k % 12 + 1;
                let [a, b, c, d] = [
                    v(ring, k),
                    v(ring, k + 1),
                    v(ring + 1, k + 1),
                    v(ring + 1, k),
                ];
                tube += &format!("f {a} {b} {c} {d}\n");
            }
        }
        std::fs::write(folder.path().join("tube.obj"), tube).unwrap();
        let mut text = Vec::new();
        let corner = DVec3::new(0.1, 0.1, 0.1) * size;
        let far = DVec3::X * 3.0 * size;
        let cube = crate::mesh::cuboid(far, 2.0 * corner, 1e9).unwrap();
        crate::mesh::write_obj(&cube, &mut text).unwrap();
        std::fs::write(folder.path().join("cube.obj"), text).unwrap();
        let text = format!(
            "contact = {{ thickness = \"0.1 mm\" }}\npartition.patches = 4\n[[cloth]]\nmesh = \"tube.obj\"\n{keys}\n\
             material = {{ density = 0.15, stretch = 1000, bending = 1e-5 }}\n\
             [[body]]\nshape = \"mesh\"\nmesh = \"cube.obj\"\n{body}"
        );
        let at = folder.path().join("x.toml");
        World::build(&Scene::parse(&text, Some(&at), &[]).unwrap()).unwrap()
    }

    #[test]
    fn units_and_axes_of_usd_hold_unless_the_scene_says_others() {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/formats/usd/garment.usdc"
        );
        let of = |keys: &str| {
            let text = format!(
                "contact = {{ certify = false, self_collision = false }}\n[[cloth]]\nmesh = \"{file}\"\n\
                 prim = \"Dress\"\n{keys}\nmaterial = {{ density = 0.15, stretch = 1000, bending = 1e-5 }}\n"
            );
            World::build(&Scene::parse(&text, None, &[]).unwrap()).unwrap()
        };
        let bounds = |world: &World| world.cloth_mesh(0).bounds().unwrap();
        let plain = of("");
        // In the file x is 0.79 to 4.82, y 1.29 to 5.32, z 3 to 9.46.
        let [low, high] = bounds(&plain);
        assert!((low.x - 0.00792893219).abs() < 1e-9, "{low}");
        assert!((high.y + 0.03).abs() < 1e-9, "{high}");
        assert!((high.z - 0.05320681224).abs() < 1e-9, "{high}");
        let told = |world: &World| world.warnings().join("\n");
        assert!(
            !told(&plain).contains("metersPerUnit = "),
            "{}",
            told(&plain)
        );
        let same = of("units = \"cm\"\nup = \"y\"");
        assert_eq!(bounds(&same), [low, high]);
        assert!(
            !told(&same).contains("the scene prevails"),
            "{}",
            told(&same)
        );
        let other = of("units = \"m\"\nup = \"z\"");
        let [_, high] = bounds(&other);
        assert!((high.z - 9.464101615).abs() < 1e-8, "{high}");
        assert!(
            told(&other).contains(
                "cloth `cloth0` has units = \"m\", and its file says metersPerUnit = 0.01; up = \"z\", and its file says \
                 that y points upwards; the scene prevails"
            ),
            "{}",
            told(&other)
        );
    }

    #[test]
    fn wrong_units_and_axes_are_told_with_their_remedy_and_right_ones_are_not() {
        let none = Vec::<String>::new();
        let told = |world: &World| {
            let mut told = world.odd_sizes();
            told.extend(world.odd_bodies());
            told.extend_from_slice(world.lying());
            told
        };
        // Sensible: upright, hanging in the air, around the origin, or said to be so.
        for (y_up, low, keys) in [
            (false, 0.0, ""),
            (false, 0.8, ""),
            (true, -0.8, ""),
            (true, 0.0, "up = \"y\""),
            (true, 0.0, "up = \"z\""),
            (true, 0.0, "rotation = [\"90 deg\", 0, 0]"),
        ] {
            assert_eq!(
                told(&of_files(y_up, low, 1.6, keys, "")),
                none,
                "{y_up} {low} {keys}"
            );
        }
        let lying = told(&of_files(true, 0.0, 1.6, "", "")).concat();
        assert!(
            lying.starts_with("cloth `cloth0` is longest along y"),
            "{lying}"
        );
        assert!(lying.contains("set up = \"y\""), "{lying}");
        // A flat sheet that stands on edge falls over, unless pins hold it.
        let sheet = |keys: &str| {
            let folder = tempfile::tempdir().unwrap();
            let mut text = Vec::new();
            let mut sheet = crate::mesh::grid([0.4; 2], [9; 2], DVec3::ZERO, DVec3::ZERO).unwrap();
            for p in &mut sheet.positions {
                *p = crate::scene::Up::Y.to_file(*p);
            }
            crate::mesh::write_obj(&sheet, &mut text).unwrap();
            std::fs::write(folder.path().join("sheet.obj"), text).unwrap();
            let text = format!(
                "[[cloth]]\nmesh = \"sheet.obj\"\n{keys}\nmaterial = {{ density = 0.15, stretch = 1000, bending = 1e-5 }}\n"
            );
            let at = folder.path().join("x.toml");
            told(&World::build(&Scene::parse(&text, Some(&at), &[]).unwrap()).unwrap())
        };
        let on_edge = sheet("").concat();
        assert!(
            on_edge.starts_with("cloth `cloth0` is flat across y"),
            "{on_edge}"
        );
        for keys in [
            "up = \"y\"",
            "up = \"z\"",
            "pins = [{ nearest = [0, 0, 0.2] }]",
        ] {
            assert_eq!(sheet(keys), none, "{keys}");
        }
        for (size, units) in [(170.0, "cm"), (1700.0, "mm")] {
            let world = of_files(false, 0.0, size, "", "");
            let told = world.odd_sizes().concat();
            assert!(told.contains(&format!("set units = \"{units}\"")), "{told}");
            let keys = format!("units = \"{units}\"");
            assert_eq!(
                World::odd_sizes(&of_files(false, 0.0, size, &keys, &keys)),
                none
            );
        }
        let body = of_files(false, 0.0, 1700.0, "units = \"mm\"", "")
            .odd_bodies()
            .concat();
        assert!(body.starts_with("body `body0` is 3.400e2 m long"), "{body}");
        // A file of quads is counted.
        let line = of_files(false, 0.0, 1.6, "", "").sizes()[0].to_string();
        assert!(line.contains(", 96 quads of its file cut, "), "{line}");
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
