//! Shaded pictures without a graphics card or a display.
//!
//! In: meshes with colours, a camera. Out: a PNG. A z-buffer at twice the size and a shadow map
//! make folds readable: smooth normals, a warm key light that casts shadows, a sky above and a
//! ground below. Equal input gives equal bytes.

mod animation;
mod camera;
pub mod look;
mod raster;

use std::io::{self, Write};
use std::path::Path;

use glam::{DVec3, Vec3};

pub use animation::{Animation, Playing};
pub use camera::Camera;

use self::raster::{Raster, Vertex};
use super::whole::write_whole;
use super::{OutputError, RunDirectory};

/// Samples per pixel along each side.
const OVERSAMPLE: usize = 2;
/// Rows of a band: short enough that shares of a picture cost the same.
const BAND: usize = 8;
/// Parts that a share is drawn in, one after the other: samples take more memory than all else of a
/// small cloth.
const PARTS: usize = 4;
/// Side of the shadow map in texels.
const SHADOW: usize = 2048;

/// A mesh in a picture.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    /// Vertex positions in m.
    pub positions: &'a [DVec3],
    /// Three indices each.
    pub triangles: &'a [[u32; 3]],
    /// Colour of the front, linear red, green, blue in [0, 1].
    pub front: [f32; 3],
    /// Colour of the back.
    pub back: [f32; 3],
    /// Whether neighbouring triangles share normals.
    pub smooth: bool,
    /// The checker on it, if any.
    pub checker: Option<Checker<'a>>,
}

/// A checker of cubes in the space of the shape with which cloth starts, of which every other one
/// is dark. It goes along with the cloth, so that cells show how far it is stretched and sheared.
#[derive(Clone, Copy, Debug)]
pub struct Checker<'a> {
    /// The places of vertices at the start, in m.
    pub start: &'a [DVec3],
    /// The middle of a cell, in m.
    pub origin: DVec3,
    /// The length of a cell, in m.
    pub cell: f64,
}

impl Checker<'_> {
    /// The place of a vertex in cells.
    fn place(&self, vertex: u32) -> Vec3 {
        let at = (self.start[vertex as usize] - self.origin) / self.cell;
        (at + 0.5).as_vec3()
    }
}

/// The share of its colour that a dark cell has.
const DARK: f32 = 0.35;

/// A finished picture: 8-bit red, green, blue, rows from the top.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    width: u32,
    height: u32,
    pixels: Vec<u8>,
}

/// A picture that is being drawn: its rows may be divided among those who draw it.
#[derive(Debug)]
pub struct Drawing<'a> {
    items: &'a [Item<'a>],
    camera: &'a Camera,
    width: usize,
    height: usize,
    faces: Vec<Face>,
    light: Light,
}

impl<'a> Drawing<'a> {
    /// Prepares to draw the items as the camera sees them, `size` pixels wide and high.
    #[must_use]
    pub fn new(items: &'a [Item<'a>], camera: &'a Camera, size: [u32; 2]) -> Self {
        let [width, height] = size.map(|s| s.max(1) as usize);
        let faces: Vec<Face> = (0..)
            .zip(items)
            .flat_map(|(i, item)| faces(i, item))
            .collect();
        Self {
            items,
            camera,
            width,
            height,
            light: Light::new(&faces, camera),
            faces,
        }
    }

    /// The pixels of one share of the rows, out of `shares`. Rows are dealt out in bands, for sky
    /// costs less than cloth.
    #[must_use]
    pub fn share(&self, share: usize, shares: usize) -> Vec<u8> {
        let parts: Vec<Vec<u8>> = (0..PARTS)
            .map(|part| self.part(share + part * shares, shares * PARTS))
            .collect();
        weave(&parts, self.width as u32).expect("parts are shares too")
    }

    /// A share that is drawn at once.
    fn part(&self, share: usize, shares: usize) -> Vec<u8> {
        let (w, h) = (self.width * OVERSAMPLE, self.height * OVERSAMPLE);
        let keeps = |row: usize| row / (OVERSAMPLE * BAND) % shares == share;
        let project = self.camera.projection(w as f32, h as f32);
        let mut raster = Raster::new(w, h, keeps);
        for (number, face) in (0..).zip(&self.faces) {
            raster.triangle(face.positions(), number, &project);
        }
        let behind = |row: usize| backdrop(row as f32 / h as f32);
        raster.resolve(OVERSAMPLE, behind, |hit| {
            let face = &self.faces[hit.triangle()];
            let point = hit.mix(&face.corners);
            (self.light).shade(&self.items[face.item], face, point, self.camera)
        })
    }
}

impl Picture {
    /// Renders the items as the camera sees them, `size` pixels wide and high.
    #[must_use]
    pub fn render(items: &[Item<'_>], camera: &Camera, size: [u32; 2]) -> Self {
        let drawing = Drawing::new(items, camera, size);
        Self {
            width: drawing.width as u32,
            height: drawing.height as u32,
            pixels: drawing.share(0, 1),
        }
    }

    /// Puts a picture of this size together from all shares of a [`Drawing`], in order; `None` if
    /// they are not of one.
    #[must_use]
    pub(crate) fn of_shares(shares: &[Vec<u8>], size: [u32; 2]) -> Option<Self> {
        let [width, height] = size.map(|s| s.max(1));
        let pixels = weave(shares, width)?;
        (pixels.len() == 3 * width as usize * height as usize).then_some(Self {
            width,
            height,
            pixels,
        })
    }

    /// Red, green and blue of a pixel.
    #[must_use]
    pub fn pixel(&self, x: u32, y: u32) -> Option<[u8; 3]> {
        let at = 3 * (y as usize * self.width as usize + x as usize);
        (x < self.width)
            .then(|| self.pixels.get(at..at + 3)?.try_into().ok())
            .flatten()
    }

    /// Writes the picture as PNG to a file of the run.
    ///
    /// # Errors
    /// [`OutputError::Write`].
    pub fn write(&self, run: &RunDirectory, name: &str) -> Result<(), OutputError> {
        run.write(name, |out| self.encode(out))?;
        Ok(())
    }

    /// Writes the picture as PNG to a file anywhere, complete or not at all.
    ///
    /// # Errors
    /// [`OutputError::Write`].
    pub fn write_to(&self, path: &Path) -> Result<(), OutputError> {
        write_whole(path, |out| self.encode(out))
    }

    fn encode(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut encoder = png::Encoder::new(out, self.width, self.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::Fast);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.pixels)?;
        writer.finish()?;
        Ok(())
    }
}

/// The bands of some shares of a picture, in order: of shares s, s + n, s + 2 n, … of m n shares,
/// share s of n shares. `None` if they cannot be.
#[must_use]
pub fn weave(shares: &[Vec<u8>], width: u32) -> Option<Vec<u8>> {
    let band = 3 * width as usize * BAND;
    let mut left: Vec<&[u8]> = shares.iter().map(Vec::as_slice).collect();
    let mut woven = Vec::with_capacity(left.iter().map(|rest| rest.len()).sum());
    for next in (0..left.len()).cycle() {
        let from = &mut left[next];
        if from.is_empty() {
            break;
        }
        let (here, behind) = from.split_at(band.min(from.len()));
        woven.extend_from_slice(here);
        *from = behind;
    }
    left.iter().all(|rest| rest.is_empty()).then_some(woven)
}

/// A triangle to draw.
#[derive(Debug)]
struct Face {
    item: usize,
    corners: [Vertex; 3],
    /// Unit normal of the front.
    normal: Vec3,
}

impl Face {
    fn positions(&self) -> [Vec3; 3] {
        self.corners.map(|c| c.position)
    }
}

/// An item's triangles, with the normals of vertices if it is smooth, else with their own.
fn faces(index: usize, item: &Item<'_>) -> Vec<Face> {
    let normal = |t: &[u32; 3]| {
        let [a, b, c] = t.map(|v| item.positions[v as usize]);
        (b - a).cross(c - a)
    };
    let mut sums = vec![DVec3::ZERO; if item.smooth { item.positions.len() } else { 0 }];
    if item.smooth {
        for t in item.triangles {
            let normal = normal(t);
            t.iter().for_each(|&v| sums[v as usize] += normal);
        }
    }
    let unit = |n: DVec3| n.normalize_or_zero().as_vec3();
    let smooth: Vec<Vec3> = sums.into_iter().map(unit).collect();
    let face = |t: &[u32; 3]| {
        let normal = unit(normal(t));
        let corner = |v: u32| Vertex {
            position: item.positions[v as usize].as_vec3(),
            normal: smooth.get(v as usize).copied().unwrap_or(normal),
            cell: item.checker.map_or(Vec3::ZERO, |checker| checker.place(v)),
        };
        Face {
            item: index,
            corners: t.map(corner),
            normal,
        }
    };
    item.triangles.iter().map(face).collect()
}

/// The light of a studio: a key with shadows, a fill from the camera's side, sky and ground.
#[derive(Debug)]
struct Light {
    toward: Vec3,
    map: Raster,
    view: camera::Projection,
}

impl Light {
    fn new(faces: &[Face], camera: &Camera) -> Self {
        let toward = camera.key_light();
        let view = camera.shadow_projection(toward, SHADOW as f32);
        let mut map = Raster::depth_only(SHADOW, SHADOW);
        for face in faces {
            map.triangle(face.positions(), 0, &view);
        }
        Self { toward, map, view }
    }

    /// Linear colour of a point of an item.
    fn shade(&self, item: &Item<'_>, face: &Face, hit: Vertex, camera: &Camera) -> Vec3 {
        let eye = (camera.eye() - hit.position).normalize_or_zero();
        let facing = hit.normal.dot(eye) >= 0.0;
        let normal = if facing { hit.normal } else { -hit.normal }.normalize_or_zero();
        let front = face.normal.dot(camera.eye() - face.corners[0].position) >= 0.0;
        let color = Vec3::from(if front { item.front } else { item.back });
        let cell = hit.cell.floor().element_sum();
        let dark = item.checker.is_some() && cell.rem_euclid(2.0) >= 1.0;
        let color = if dark { color * DARK } else { color };
        let slope = normal.dot(self.toward);
        let lit = if slope > 0.0 {
            self.visible(hit.position + normal * self.bias(slope))
        } else {
            0.0
        };
        let key = Vec3::new(1.0, 0.95, 0.86) * (0.92 * slope.max(0.0) * lit);
        let sky = 0.5 + 0.5 * normal.z;
        let ambient = Vec3::new(0.30, 0.34, 0.42) * sky + Vec3::new(0.17, 0.15, 0.13) * (1.0 - sky);
        let fill = Vec3::splat(0.10 * normal.dot(eye).max(0.0));
        let half = (self.toward + eye).normalize_or_zero();
        let gloss = 0.05 * normal.dot(half).max(0.0).powi(24) * lit;
        let shaded = color * (key + ambient + fill) + Vec3::splat(gloss);
        // Far parts of the floor fade into the backdrop.
        let far = camera.fade(hit.position);
        shaded.lerp(HORIZON, far)
    }

    /// How far to step off a surface before asking whether light reaches it, in m.
    fn bias(&self, slope: f32) -> f32 {
        self.view.texel() * (4.0 + 6.0 * (1.0 - slope))
    }

    /// Share of the light that reaches a point: nine texels of the shadow map.
    fn visible(&self, p: Vec3) -> f32 {
        let q = self.view.place(p);
        let mut lit = 0.0;
        for dy in -1..=1 {
            for dx in -1..=1 {
                let depth = self.map.depth(q.x as i64 + 2 * dx, q.y as i64 + 2 * dy);
                lit += if q.z <= depth.unwrap_or(f32::INFINITY) {
                    1.0
                } else {
                    0.0
                };
            }
        }
        lit / 9.0
    }
}

const HORIZON: Vec3 = Vec3::new(0.80, 0.83, 0.87);

/// The background, from the top of the picture to its bottom.
fn backdrop(t: f32) -> Vec3 {
    Vec3::new(0.60, 0.68, 0.78).lerp(HORIZON, (1.6 * t).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::{icosphere, plane};

    fn camera() -> Camera {
        Camera::new(DVec3::new(0.0, -5.0, 0.0), DVec3::ZERO)
    }

    fn item(mesh: &crate::mesh::TriMesh) -> Item<'_> {
        Item {
            positions: &mesh.positions,
            triangles: &mesh.triangles,
            front: [0.8, 0.1, 0.1],
            back: [0.1, 0.1, 0.8],
            smooth: true,
            checker: None,
        }
    }

    fn is_red(p: [u8; 3]) -> bool {
        p[0] > p[2].saturating_add(20)
    }

    /// The silhouette of a sphere of radius r at distance d covers a disc of tan α = r / √(d² −
    /// r²).
    #[test]
    fn a_sphere_covers_what_it_should() {
        let ball = icosphere(DVec3::ZERO, 1.0, 0.05).unwrap();
        let picture = Picture::render(&[item(&ball)], &camera(), [200, 200]);
        let covered = (0..200)
            .flat_map(|y| (0..200).map(move |x| (x, y)))
            .filter(|&(x, y)| is_red(picture.pixel(x, y).unwrap()))
            .count() as f64;
        let scale = camera().focal() * 100.0;
        let radius = scale / (25.0f64 - 1.0).sqrt();
        let expected = std::f64::consts::PI * radius * radius;
        assert!(
            (covered / expected - 1.0).abs() < 0.03,
            "{covered} pixels, not {expected}"
        );
    }

    #[test]
    fn near_surfaces_hide_far_ones_and_backs_have_their_own_colour() {
        let near = plane(DVec3::new(0.0, -1.0, 0.0), DVec3::NEG_Y, 1.0, 1.0).unwrap();
        let far = plane(DVec3::ZERO, DVec3::Y, 4.0, 1.0).unwrap();
        let picture = Picture::render(&[item(&far), item(&near)], &camera(), [101, 101]);
        assert!(is_red(picture.pixel(50, 50).unwrap()));
        let [red, _, blue] = picture.pixel(25, 50).unwrap();
        assert!(blue > red, "the far one is seen from behind");
        assert_eq!(picture.pixel(101, 0), None);
    }

    #[test]
    fn a_floor_that_passes_under_the_camera_is_drawn_to_the_bottom_edge() {
        let floor = plane(DVec3::new(0.0, 0.0, -1.0), DVec3::Z, 100.0, 100.0).unwrap();
        let mut floor = item(&floor);
        floor.smooth = false;
        let picture = Picture::render(&[floor], &camera(), [60, 60]);
        assert!((0..60).all(|x| is_red(picture.pixel(x, 59).unwrap())));
        assert!(!is_red(picture.pixel(30, 5).unwrap()));
    }

    #[test]
    fn a_picture_drawn_in_shares_is_the_picture() {
        let ball = icosphere(DVec3::ZERO, 1.0, 0.2).unwrap();
        let (items, camera, size) = ([item(&ball)], camera(), [50, 61]);
        let whole = Picture::render(&items, &camera, size);
        let drawing = Drawing::new(&items, &camera, size);
        // More shares than bands too.
        for count in [1, 2, 3, 20] {
            let mut shares: Vec<_> = (0..count).map(|k| drawing.share(k, count)).collect();
            assert_eq!(Picture::of_shares(&shares, size).as_ref(), Some(&whole));
            shares[0].pop();
            assert_eq!(Picture::of_shares(&shares, size), None);
        }
        assert_eq!(Picture::of_shares(&[], size), None);
        let woven = [0, 1].map(|k| {
            let some = [0, 2, 4].map(|t| drawing.share(k + t, 6));
            weave(&some, size[0]).unwrap()
        });
        assert_eq!(Picture::of_shares(&woven, size), Some(whole));
    }

    #[test]
    fn a_ball_shades_the_floor_and_bytes_repeat() {
        let floor = plane(DVec3::new(0.0, 0.0, -1.0), DVec3::Z, 8.0, 8.0).unwrap();
        let ball = icosphere(DVec3::ZERO, 1.0, 0.1).unwrap();
        let camera = Camera::new(DVec3::new(0.0, -8.0, 8.0), DVec3::ZERO);
        let alone = Picture::render(&[item(&floor)], &camera, [120, 80]);
        let both = Picture::render(&[item(&floor), item(&ball)], &camera, [120, 80]);
        let darker = alone
            .pixels
            .iter()
            .zip(&both.pixels)
            .filter(|(a, b)| b.saturating_add(25) < **a)
            .count();
        assert!(darker > 300, "{darker}");
        assert_eq!(
            both,
            Picture::render(&[item(&floor), item(&ball)], &camera, [120, 80])
        );
    }
}
