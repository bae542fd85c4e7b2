//! The distances that pairs of cloths and bodies keep: the sum of half the thickness of each.

use std::io;

use crate::archive::{Archive, ArchiveFault, Array, Loader, Saver, archives};
use crate::heap_bytes::{HeapBytes, counts_heap};

/// The distance that each pair of a scene keeps, and how far beyond it contacts are looked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Distances {
    cloth: OfCloth,
    /// Half the thickness of each body, in m.
    bodies: Vec<f64>,
    /// Contacts are reported this much beyond their distance, as a share of it.
    margin: f64,
}

counts_heap!(Distances: cloth, bodies; without margin);
archives!(Distances: cloth, bodies, margin);

/// Half the thickness of cloth, in m.
#[derive(Clone, Debug, PartialEq)]
enum OfCloth {
    /// All cloth has the same.
    Alike(f64),
    /// Cloths differ.
    Unlike {
        vertices: Array<f64>,
        /// The largest of the vertices of each patch's triangles.
        patches: Vec<f64>,
        least: f64,
        largest: f64,
    },
}

impl Archive for OfCloth {
    fn save(&self, to: &mut Saver<'_>) -> io::Result<()> {
        match self {
            Self::Alike(half) => {
                true.save(to)?;
                half.save(to)
            }
            Self::Unlike {
                vertices,
                patches,
                least,
                largest,
            } => {
                false.save(to)?;
                vertices.save(to)?;
                patches.save(to)?;
                [*least, *largest].save(to)
            }
        }
    }

    fn load(from: &mut Loader<'_>) -> Result<Self, ArchiveFault> {
        if bool::load(from)? {
            return Ok(Self::Alike(f64::load(from)?));
        }
        let (vertices, patches) = (Array::load(from)?, Vec::load(from)?);
        let [least, largest] = Archive::load(from)?;
        Ok(Self::Unlike {
            vertices,
            patches,
            least,
            largest,
        })
    }
}

impl HeapBytes for OfCloth {
    fn heap_bytes(&self) -> usize {
        match self {
            Self::Alike(_) => 0,
            Self::Unlike {
                vertices, patches, ..
            } => vertices.heap_bytes() + patches.heap_bytes(),
        }
    }
}

impl Distances {
    /// All cloth and this many bodies have one thickness (m).
    #[must_use]
    pub fn alike(thickness: f64, margin: f64, bodies: usize) -> Self {
        Self {
            cloth: OfCloth::Alike(0.5 * thickness),
            bodies: vec![0.5 * thickness; bodies],
            margin,
        }
    }

    /// Each vertex of cloth and each body has its own thickness (m). `patch_vertices` are the
    /// vertices of the triangles of each patch.
    #[must_use]
    pub fn new(
        of_vertices: &[f64],
        patch_vertices: &[impl AsRef<[u32]>],
        of_bodies: &[f64],
        margin: f64,
    ) -> Self {
        let halves = |all: &[f64]| all.iter().map(|thickness| 0.5 * thickness).collect();
        let vertices: Vec<f64> = halves(of_vertices);
        let least = vertices.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = vertices.iter().copied().fold(0.0, f64::max);
        let cloth = if least >= largest {
            OfCloth::Alike(largest)
        } else {
            let largest_of = |patch: &_| {
                let of_patch = AsRef::<[u32]>::as_ref(patch)
                    .iter()
                    .map(|&v| vertices[v as usize]);
                of_patch.fold(0.0, f64::max)
            };
            OfCloth::Unlike {
                patches: patch_vertices.iter().map(largest_of).collect(),
                vertices: vertices.into(),
                least,
                largest,
            }
        };
        Self {
            cloth,
            bodies: halves(of_bodies),
            margin,
        }
    }

    /// The distance in m within which a contact is reported that keeps this one.
    #[inline(always)]
    #[must_use]
    pub fn reach(&self, distance: f64) -> f64 {
        distance * (1.0 + self.margin)
    }

    /// The distance in m that features at two vertices of cloth keep.
    #[inline(always)]
    #[must_use]
    pub fn between(&self, a: u32, b: u32) -> f64 {
        self.half(a) + self.half(b)
    }

    /// The distance in m that a feature at a vertex of cloth keeps from a body.
    #[inline(always)]
    #[must_use]
    pub fn from_body(&self, vertex: u32, body: u32) -> f64 {
        self.half(vertex) + self.bodies[body as usize]
    }

    /// Half the thickness at a vertex of cloth, in m.
    #[inline(always)]
    fn half(&self, vertex: u32) -> f64 {
        match &self.cloth {
            OfCloth::Alike(half) => *half,
            OfCloth::Unlike { vertices, .. } => vertices[vertex as usize],
        }
    }

    /// The length in m by which the volumes of a patch are inflated. Volumes of two patches, and of
    /// a patch and a body, then overlap where contacts are.
    #[must_use]
    pub(in crate::collide) fn patch_radius(&self, patch: u32) -> f64 {
        let half = match &self.cloth {
            OfCloth::Alike(half) => *half,
            OfCloth::Unlike { patches, .. } => patches[patch as usize],
        };
        0.5 * self.reach(half + half)
    }

    /// The distance in m within which a contact of any cloth with any is reported.
    #[must_use]
    pub(crate) fn cloth_reach(&self) -> f64 {
        let (_, largest) = self.of_cloth();
        self.reach(largest + largest)
    }

    /// The distance in m within which a contact of any cloth with a body is reported.
    #[must_use]
    pub(in crate::collide) fn body_reach(&self, body: u32) -> f64 {
        let (_, largest) = self.of_cloth();
        self.reach(largest + self.bodies[body as usize])
    }

    /// The least distance in m that any two cloths keep.
    #[must_use]
    pub(crate) fn least_of_cloth(&self) -> f64 {
        let (least, _) = self.of_cloth();
        least + least
    }

    /// The least distance in m that any cloth keeps from a body; that between cloths without any.
    #[must_use]
    pub(crate) fn least_from_bodies(&self) -> f64 {
        let (least, _) = self.of_cloth();
        let bodies = self.bodies.iter().copied();
        least + bodies.reduce(f64::min).unwrap_or(least)
    }

    /// The least distance in m that any pair keeps.
    #[must_use]
    pub fn least(&self) -> f64 {
        self.least_of_cloth().min(self.least_from_bodies())
    }

    /// The least and the largest half of a thickness of cloth, in m.
    fn of_cloth(&self) -> (f64, f64) {
        match self.cloth {
            OfCloth::Alike(half) => (half, half),
            OfCloth::Unlike { least, largest, .. } => (least, largest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thickness_is_the_distance_of_all_pairs_to_the_bit() {
        for thickness in [0.004, 0.1 + 0.2, 1.0 / 3.0, 7e-5] {
            let alike = Distances::alike(thickness, 0.5, 2);
            let told = Distances::new(
                &[thickness; 5],
                &[vec![0, 1], vec![4]],
                &[thickness; 2],
                0.5,
            );
            assert_eq!(alike, told);
            let pairs = [alike.between(0, 4), alike.from_body(3, 1), alike.least()];
            assert_eq!(pairs, [thickness; 3]);
            assert_eq!(alike.cloth_reach(), thickness * (1.0 + 0.5));
            assert_eq!(alike.patch_radius(1), 0.5 * (thickness * (1.0 + 0.5)));
        }
    }

    #[test]
    fn a_pair_keeps_half_of_each() {
        let of_patches = [vec![0, 1], vec![1, 2]];
        let distances = Distances::new(&[0.002, 0.002, 0.006], &of_patches, &[0.01, 0.001], 0.5);
        let between = [distances.between(0, 1), distances.between(2, 0)];
        assert_eq!(between, [0.002, 0.004]);
        assert_eq!(distances.from_body(2, 0), 0.008);
        assert_eq!(distances.least_of_cloth(), 0.002);
        assert_eq!(distances.least_from_bodies(), 0.0015);
        assert_eq!(distances.least(), 0.0015);
        let radii = [0, 1].map(|patch| distances.patch_radius(patch));
        assert!((radii[0] - 0.0015).abs() < 1e-16 && (radii[1] - 0.0045).abs() < 1e-16);
        assert!((distances.cloth_reach() - 0.009).abs() < 1e-16);
        assert!((distances.body_reach(0) - 0.012).abs() < 1e-16);
    }
}
