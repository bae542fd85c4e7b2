//! A world that was set up before, in a file.
//!
//! `weft prepare` sets a scene up once. A scene that names the file in `partition.file` takes from
//! it what is made of cloth: the cut, the model, trees, charts, graphs. Under MPI a process maps
//! the file, and the system reads a page of it when the process first looks at it. So a process
//! holds what its rank reads: vertices are numbered patch by patch, and nearly every array is in
//! their order. Bodies are set up anew, for they are small beside cloth.
//!
//! The file is for one scene. It has the keys of the scene on which it depends, and the checksums
//! of all meshes. It is for one version of the program, which it names, and one commit where that
//! is known. Most structs note their layout besides ([`crate::archive`]). All bytes are checked
//! against checksums before anything is taken; each of several processes of a machine checks a
//! share of them. Numbers are not checked beyond that, so a file must come from somebody who may
//! run programs here.
//!
//! | bytes | content |
//! |---|---|
//! | 4096 | `weft world 1` and a line feed, then zeros |
//! | d | the data: arrays, each from a multiple of 16 bytes on |
//! | i | checksums of each MiB of data, then the index: facts on the scene, all that is no array |
//! | 8 | d |
//! | 8 | i |
//! | 32 | SHA-256 of these checksums, the index and both lengths |

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use glam::DVec3;
use sha2::{Digest as _, Sha256};

use super::collisions::{BodiesAtRest, colliders};
use super::counts::MeshCounts;
use super::cutting::wanted;
use super::error::WorldError;
use super::friction::Friction;
use super::graphs::{load_graphs, load_tree, save_graphs, save_tree};
use super::patch_triangles::PatchTriangles;
use super::prepared::PreparedError;
use super::prescribed_motion::{Pinned, Pins};
use super::set_up::{Fits, SetBodies, SetUp, followed};
use super::sizes::ToldOfCloths;
use super::{World, margin};
use crate::archive::{Archive as _, ArchiveFault, Data, Loader, Saver, archives, read_at};
use crate::build_identity::BuildIdentity;
use crate::collide::certify::Scenery;
use crate::collide::tangles::{Kept, Member};
use crate::collide::{Bvh, ClothSurface, Distances, Extent};
use crate::equal_runs::EqualRuns;
use crate::mesh::{TriMesh, files_beside};
use crate::parallel;
use crate::physics::ClothModel;
use crate::scene::defaults::GRAVITY;
use crate::scene::{AirInTime, ClothSource, InTime, RestSource, Scene, Sequence, Solver, Time};
use crate::set_up_only::SetUpOnly;

/// The first bytes of every prepared world, whatever its version.
pub const PREPARED_WORLD: &[u8; 11] = b"weft world ";
/// The first bytes of a file of this version.
const MAGIC: &[u8; 13] = b"weft world 1\n";
/// Raised when what is kept has another meaning, although structs and arrays look the same.
const MEANING: u32 = 1;
/// The bytes before the data: a page, so that arrays are aligned in a mapping.
const HEAD: usize = 4096;
/// The bytes after the index.
const TAIL: usize = 8 + 8 + 32;
/// The bytes of data that have a checksum of their own.
const PART: usize = 1 << 20;

/// The way in which a process comes to the arrays of a prepared world.
#[derive(Clone, Copy, Debug)]
pub struct Mapping {
    /// Maps a file for as long as the process runs. Without it arrays are read.
    pub map: fn(&File) -> io::Result<&'static [u8]>,
    /// The number of this process among those that read the file on its machine.
    pub process: usize,
    /// The number of these processes. Each checks a share of the data.
    pub processes: usize,
}

/// The part of a world that is small, and the facts by which it is known whether the file is one of
/// a scene.
#[derive(Debug)]
struct Facts {
    /// The program that has made it, see [`this_program`].
    program: String,
    /// The keys of the scene on which the world depends.
    keys: String,
    /// The files of cloth, with their checksums.
    files: Vec<(String, [u8; 32])>,
    /// The checksum of the meshes of bodies.
    bodies: [u8; 32],
    /// See [`World::digest`].
    digest: String,
    counts: [u64; 2],
    mass: f64,
    spans: Vec<f64>,
    polygons: Vec<[usize; 2]>,
    welded: Vec<Option<usize>>,
    disagreements: Vec<String>,
    checksums: Vec<[u8; 32]>,
    /// The vertices that pins hold, each with the number of its pin.
    pinned: Vec<[u32; 2]>,
    start_crossings: Vec<([u32; 2], u32)>,
    /// The members of the kept set, as numbers.
    kept_at_start: Vec<[u32; 2]>,
    /// The corners of the box around cloth at the start.
    extent: [[f64; 3]; 2],
    mean_edge: f64,
    near_at_rest: Vec<[u32; 2]>,
    told_of_cloths: ToldOfCloths,
}

archives!(Facts:
    program, keys, files, bodies, digest, counts, mass, spans, polygons, welded, disagreements, checksums,
    pinned, start_crossings, kept_at_start, extent, mean_edge, near_at_rest,
    told_of_cloths
);

/// Whether the file with this path begins as prepared worlds do.
#[must_use]
pub fn is_prepared_world(path: &Path) -> bool {
    weft_io::open_regular(path).is_ok_and(|file| begins_as_world(&file))
}

/// Whether a file begins as prepared worlds do.
pub(super) fn begins_as_world(file: &File) -> bool {
    let mut first = [0; PREPARED_WORLD.len()];
    read_at(file, 0, &mut first).is_ok() && first == *PREPARED_WORLD
}

impl World {
    /// Writes the file of this world, for its scene to name in `partition.file`.
    ///
    /// # Errors
    /// A file of cloth cannot be read again, or what is written to fails.
    ///
    /// # Panics
    /// Its graphs were [released](Self::release).
    pub fn write_prepared(&self, to: &mut dyn Write) -> io::Result<()> {
        let mut head = [0; HEAD];
        head[..MAGIC.len()].copy_from_slice(MAGIC);
        to.write_all(&head)?;
        let mut data = Summing::new(to);
        let mut saver = Saver::new(&mut data);
        self.save(&mut saver)?;
        let (index, length) = saver.finish();
        let sums = data.finish();
        let mut all = Vec::with_capacity(32 * sums.len() + index.len());
        all.extend(sums.as_flattened());
        all.extend(index);
        let lengths = [length, all.len() as u64].map(u64::to_le_bytes);
        let sum = sum_of_index(&all, &lengths);
        to.write_all(&all)?;
        to.write_all(lengths.as_flattened())?;
        to.write_all(&sum)
    }

    fn save(&self, to: &mut Saver<'_>) -> io::Result<()> {
        self.facts()?.save(to)?;
        save_tree(&self.tree, to)?;
        save_graphs(&self.graphs(), to)?;
        self.model.save(to)?;
        self.surface.save(to)?;
        self.distances.save(to)?;
        self.patch_triangles.save(to)?;
        self.velocities.save(to)?;
        let cloths: EqualRuns<u32> = self.model.cloth_of_vertex().iter().copied().collect();
        cloths.save(to)?;
        let tree = self.scenery.as_ref().map(|scenery| scenery.tree().clone());
        tree.save(to)
    }

    fn facts(&self) -> io::Result<Facts> {
        let pinned = self.pins.all().iter();
        let crossings = self.start_crossings.iter();
        let members = self.kept_at_start.members().iter();
        let counts = MeshCounts::of_world(self);
        Ok(Facts {
            program: this_program(),
            keys: keys_of(&self.scene),
            files: (files_of_cloth(&self.scene)?.iter())
                .map(|path| Ok((name_of(path), sum_of_file(path)?)))
                .collect::<io::Result<_>>()?,
            bodies: sum_of_bodies(&self.body_meshes),
            digest: self.digest(),
            counts: [counts.vertices, counts.triangles],
            mass: self.mass,
            spans: self.spans.clone(),
            polygons: self.polygons.clone(),
            welded: self.welded.clone(),
            disagreements: self.disagreements.clone(),
            checksums: self.checksums.clone(),
            pinned: pinned.map(|pinned| [pinned.vertex, pinned.pin]).collect(),
            start_crossings: crossings.map(|&(edge, face)| (edge, face)).collect(),
            kept_at_start: members.map(|member| member.to_numbers()).collect(),
            extent: [self.start_extent.low, self.start_extent.high].map(|of| of.to_array()),
            mean_edge: self.mean_edge,
            near_at_rest: self.patches_near_at_rest().to_vec(),
            told_of_cloths: self.told_of_cloths().clone(),
        })
    }

    /// Takes the world of a scene from a prepared file.
    pub(super) fn take_prepared(
        scene: &Scene,
        fits: Fits<'_>,
        (path, file): (&Path, &File),
        mapping: Option<Mapping>,
    ) -> Result<Self, WorldError> {
        let fault = |fault| of_file(path, fault);
        let of_another = |what: String| PreparedError::OfAnother {
            path: path.to_owned(),
            what,
        };
        let Index {
            bytes: index,
            data: length,
            sum,
        } = Index::read(file).map_err(fault)?;
        let parts = length.div_ceil(PART as u64) as usize;
        let sums = index
            .get(..32 * parts)
            .ok_or_else(|| fault(ArchiveFault::Short.into()))?;
        check(file, length, sums, mapping).map_err(fault)?;
        let data = match mapping {
            None => Data::File(file, HEAD as u64, length),
            Some(mapping) => {
                let mapped = (mapping.map)(file).map_err(|error| fault(error.into()))?;
                let data = mapped.get(HEAD..HEAD + length as usize);
                Data::Mapped(data.ok_or_else(|| fault(ArchiveFault::Short.into()))?)
            }
        };
        let mut from = Loader::new(&index[32 * parts..], data);
        let facts = Facts::load(&mut from).map_err(|error| fault(error.into()))?;
        if facts.program != this_program() {
            return Err(fault(ArchiveFault::OtherLayout.into()).into());
        }
        let [before, now] = [&facts.keys, &keys_of(scene)];
        if let Some(what) = first_difference(before, now) {
            return Err(of_another(what).into());
        }
        let files = files_of_cloth(scene).map_err(|error| fault(error.into()))?;
        if files.len() != facts.files.len() {
            return Err(of_another("its meshes are in other files".to_owned()).into());
        }
        for (file, (name, sum)) in share(files.iter().zip(&facts.files), mapping) {
            if sum_of_file(file).map_err(|error| fault(error.into()))? != *sum {
                return Err(of_another(format!("the mesh {name} has changed")).into());
            }
        }
        let mut set_up = SetUp::new(scene, fits);
        let [vertices, triangles] = facts.counts;
        set_up.counts = MeshCounts {
            vertices,
            triangles,
            mapped: mapping.is_some(),
            ..MeshCounts::default()
        };
        let set_bodies = set_up.bodies()?;
        set_up.check_fit()?;
        if sum_of_bodies(&set_bodies.meshes) != facts.bodies
            || !facts.checksums.starts_with(&set_up.checksums)
        {
            return Err(of_another("the mesh of a body has changed".to_owned()).into());
        }
        let parts = Parts::load(scene, &mut from).map_err(|error| fault(error.into()))?;
        if !from.is_at_end() {
            return Err(fault(ArchiveFault::OtherLayout.into()).into());
        }
        Ok(Self::of_parts(scene, (facts, sum), parts, set_bodies))
    }

    /// The world that was prepared, with bodies that are set up anew.
    fn of_parts(
        scene: &Scene,
        (facts, sum): (Facts, [u8; 32]),
        parts: Parts,
        set_bodies: SetBodies,
    ) -> Self {
        let Parts {
            tree,
            graphs,
            model,
            surface,
            distances,
            patch_triangles,
            velocities,
            cloths,
            scenery_tree,
        } = parts;
        let at_rest = BodiesAtRest {
            meshes: &set_bodies.meshes,
            two_sided: &set_bodies.two_sided,
            solids: &set_bodies.solids,
        };
        let bodies = colliders(scene, &distances, &at_rest, &facts.spans);
        let scenery = scene.contact.certify.then(|| {
            let cloth = surface.shared_surface();
            let tree = scenery_tree;
            Arc::new(Scenery::with_tree(cloth, model.start(), &bodies, tree))
        });
        let [low, high] = facts.extent.map(DVec3::from_array);
        let mut pinned = vec![false; tree.vertex_count()];
        for &[vertex, _] in &facts.pinned {
            pinned[vertex as usize] = true;
        }
        let held = facts.pinned.iter();
        let held = held.map(|&[vertex, pin]| Pinned { vertex, pin }).collect();
        let SetBodies {
            meshes,
            motions,
            solids,
            defects,
            sizes_of_mended,
            ..
        } = set_bodies;
        let all_pins = scene.cloths.iter().flat_map(|cloth| &cloth.pins);
        let follow = |pin: &_| followed(scene, &motions, pin);
        Self {
            pins: Pins::new(all_pins, held, follow, model.start()),
            bodies,
            scenery,
            kept_at_start: Kept::new(facts.kept_at_start.into_iter().map(Member::of_numbers)),
            start_crossings: facts.start_crossings,
            body_motions: motions,
            friction: Friction::of_cloths(scene, || cloths),
            distances,
            pinned,
            checksums: facts.checksums,
            patch_triangles,
            velocities,
            graphs: SetUpOnly::new(graphs),
            scene: scene.clone(),
            body_meshes: meshes,
            solids,
            surface,
            mass: facts.mass,
            spans: facts.spans,
            polygons: facts.polygons,
            welded: facts.welded,
            disagreements: facts.disagreements,
            defects,
            sizes_of_mended,
            model,
            tree,
            start_extent: Extent { low, high },
            mean_edge: facts.mean_edge,
            near_at_rest: OnceLock::from(facts.near_at_rest),
            told_of_cloths: OnceLock::from(facts.told_of_cloths),
            prepared: Some((facts.digest, sum)),
        }
    }
}

/// The large part of a world, in the order of the file.
struct Parts {
    tree: weft_partition::PatchTree,
    graphs: super::Graphs,
    model: ClothModel,
    surface: ClothSurface,
    distances: Distances,
    patch_triangles: PatchTriangles,
    velocities: EqualRuns<DVec3>,
    cloths: EqualRuns<u32>,
    scenery_tree: Option<Bvh>,
}

impl Parts {
    fn load(scene: &Scene, from: &mut Loader<'_>) -> Result<Self, ArchiveFault> {
        let tree = load_tree(from)?;
        let graphs = load_graphs(&tree, from)?;
        let model = ClothModel::load(&scene.cloths, from)?;
        let surface = ClothSurface::load(model.shared(), from)?;
        Ok(Self {
            tree,
            graphs,
            model,
            surface,
            distances: Distances::load(from)?,
            patch_triangles: PatchTriangles::load(from)?,
            velocities: EqualRuns::load(from)?,
            cloths: EqualRuns::load(from)?,
            scenery_tree: Option::load(from)?,
        })
    }
}

/// The fault of a file.
enum FileFault {
    Archive(ArchiveFault),
    Damaged(String),
}

impl From<ArchiveFault> for FileFault {
    fn from(fault: ArchiveFault) -> Self {
        Self::Archive(fault)
    }
}

impl From<io::Error> for FileFault {
    fn from(error: io::Error) -> Self {
        Self::Archive(error.into())
    }
}

fn of_file(path: &Path, fault: FileFault) -> PreparedError {
    let path = path.to_owned();
    match fault {
        FileFault::Archive(ArchiveFault::Read(source)) => PreparedError::Read { path, source },
        FileFault::Archive(fault) => PreparedError::Damaged {
            path,
            what: fault.to_string(),
        },
        FileFault::Damaged(what) => PreparedError::Damaged { path, what },
    }
}

/// The index of a file.
struct Index {
    /// The checksums of the data, and what follows them.
    bytes: Vec<u8>,
    /// The length of the data.
    data: u64,
    /// The checksum of the index.
    sum: [u8; 32],
}

impl Index {
    fn read(file: &File) -> Result<Self, FileFault> {
        let short = || FileFault::from(ArchiveFault::Short);
        let mut magic = [0; MAGIC.len()];
        read_at(file, 0, &mut magic)?;
        if magic != *MAGIC {
            let what = "is no prepared world of this version";
            return Err(FileFault::Damaged(what.to_owned()));
        }
        let size = file.metadata()?.len();
        let lengths = size.checked_sub(TAIL as u64).ok_or_else(short)?;
        let mut tail = [0; TAIL];
        read_at(file, lengths, &mut tail)?;
        let number = |at: usize| {
            let bytes = tail[8 * at..8 * at + 8].try_into().unwrap_or([0; 8]);
            u64::from_le_bytes(bytes)
        };
        let [data, index] = [number(0), number(1)];
        let all = data.checked_add(index);
        if all.and_then(|all| all.checked_add((HEAD + TAIL) as u64)) != Some(size) {
            return Err(short());
        }
        let mut bytes = vec![0; index as usize];
        read_at(file, HEAD as u64 + data, &mut bytes)?;
        let (said, sum) = tail.split_at(16);
        let found = sum_of_index(&bytes, &[said.try_into().unwrap_or([0; 16])]);
        if found != *sum {
            let what = "is damaged: the checksum of its index is another";
            return Err(FileFault::Damaged(what.to_owned()));
        }
        Ok(Self {
            bytes,
            data,
            sum: found,
        })
    }
}

/// Checks the data of a file, or the share of this process, against the checksums of its parts.
fn check(file: &File, length: u64, sums: &[u8], mapping: Option<Mapping>) -> Result<(), FileFault> {
    let (sums, _) = sums.as_chunks::<32>();
    let own: Vec<usize> = share(0..sums.len(), mapping).collect();
    let faults = parallel::map(own.len(), |k| {
        let part = own[k];
        let from = part as u64 * PART as u64;
        let mut bytes = vec![0; (length - from).min(PART as u64) as usize];
        read_at(file, HEAD as u64 + from, &mut bytes)?;
        if Sha256::digest(&bytes)[..] == sums[part] {
            return Ok(());
        }
        let at = HEAD as u64 + from;
        let what = format!("is damaged: the checksum of the bytes from {at} on is another");
        Err(FileFault::Damaged(what))
    });
    faults.into_iter().collect()
}

fn sum_of_index<const N: usize>(index: &[u8], lengths: &[[u8; N]]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(index);
    hasher.update(lengths.as_flattened());
    hasher.finalize().into()
}

/// Passes bytes on, and makes the checksum of each part of them.
struct Summing<'a> {
    to: &'a mut dyn Write,
    hasher: Sha256,
    in_part: usize,
    sums: Vec<[u8; 32]>,
}

impl<'a> Summing<'a> {
    fn new(to: &'a mut dyn Write) -> Self {
        Self {
            to,
            hasher: Sha256::new(),
            in_part: 0,
            sums: Vec::new(),
        }
    }

    fn finish(mut self) -> Vec<[u8; 32]> {
        if self.in_part > 0 {
            self.sums.push(self.hasher.finalize().into());
        }
        self.sums
    }
}

impl Write for Summing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let some = &bytes[..bytes.len().min(PART - self.in_part)];
        let count = self.to.write(some)?;
        self.hasher.update(&some[..count]);
        self.in_part += count;
        if self.in_part == PART {
            self.sums.push(self.hasher.finalize_reset().into());
            self.in_part = 0;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// The keys of a scene on which its world depends, a line each. Steps, loads and the solve may be
/// others.
fn keys_of(scene: &Scene) -> String {
    let mut bound = scene.clone();
    bound.time = Time::default();
    bound.gravity = InTime::constant(GRAVITY);
    bound.air = AirInTime::default();
    bound.solver = Solver {
        preconditioner: scene.solver.preconditioner,
        ..Solver::default()
    };
    // Checksums tell of the files that these name.
    let bare = |path: &mut PathBuf| *path = PathBuf::from(name_of(path));
    for cloth in &mut bound.cloths {
        if let Some(RestSource::File(path)) = &mut cloth.rest {
            bare(path);
        }
    }
    for deformation in bound
        .bodies
        .iter_mut()
        .filter_map(|body| body.deformation.as_mut())
    {
        match &mut deformation.sequence {
            Sequence::Files { pattern: path, .. } | Sequence::Cache(path) => bare(path),
            Sequence::Figure { path, .. } => bare(path),
        }
    }
    // Certification has a part of the world of its own, which is made if it is not there.
    bound.contact.certify = true;
    format!(
        "{}culling = {:?}\nmargin = {:?}\n{:?}\n",
        bound.echo_of_trajectory(),
        scene.contact.culling,
        margin(scene),
        wanted(scene),
    )
}

/// The first line in which two texts differ, in words.
fn first_difference(before: &str, now: &str) -> Option<String> {
    let (mut before, mut now) = (before.lines(), now.lines());
    loop {
        match (before.next(), now.next()) {
            (None, None) => return None,
            (Some(a), Some(b)) if a == b => {}
            (a, b) => {
                let shown = |line: Option<&str>| {
                    line.map_or_else(|| "nothing".to_owned(), |line| format!("`{line}`"))
                };
                return Some(format!("it was made for {}, not {}", shown(a), shown(b)));
            }
        }
    }
}

/// The program, as files name it that another one may not read.
fn this_program() -> String {
    let BuildIdentity {
        version, commit, ..
    } = BuildIdentity::as_far_as_known();
    let commit = commit.unwrap_or_default();
    format!("weft {version} {commit} {MEANING}")
}

/// The share of a process of things that several look at together.
fn share<T>(all: impl Iterator<Item = T>, mapping: Option<Mapping>) -> impl Iterator<Item = T> {
    let (first, step) = mapping.map_or((0, 1), |mapping| {
        (mapping.process, mapping.processes.max(1))
    });
    all.skip(first).step_by(step)
}

/// The files from which cloths are read: meshes, shapes at rest, and the files in which a glTF
/// keeps its data.
fn files_of_cloth(scene: &Scene) -> io::Result<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for cloth in &scene.cloths {
        if let ClothSource::File { path, .. } = &cloth.source {
            paths.push(path.clone());
        }
        if let Some(RestSource::File(path)) = &cloth.rest {
            paths.push(path.clone());
        }
    }
    let mut beside = Vec::new();
    for path in &paths {
        let is_gltf = path
            .extension()
            .is_some_and(|of| of.eq_ignore_ascii_case("gltf"));
        if is_gltf {
            let text = weft_io::read_regular(path, u64::MAX)?;
            let folder = weft_io::folder_of(path);
            beside.extend(
                files_beside(&text)
                    .into_iter()
                    .map(|name| folder.join(name)),
            );
        }
    }
    paths.extend(beside);
    Ok(paths)
}

/// The name of a file, for people.
fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

fn sum_of_file(path: &Path) -> io::Result<[u8; 32]> {
    let of_path = |error: io::Error| {
        io::Error::new(error.kind(), format!("the mesh {}: {error}", name_of(path)))
    };
    let mut file = weft_io::open_regular(path).map_err(of_path)?;
    let mut hasher = Sha256::new();
    let mut bytes = vec![0; PART];
    loop {
        match io::Read::read(&mut file, &mut bytes).map_err(of_path)? {
            0 => return Ok(hasher.finalize().into()),
            count => hasher.update(&bytes[..count]),
        }
    }
}

fn sum_of_bodies(meshes: &[TriMesh]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for mesh in meshes {
        for bytes in [
            bytemuck::cast_slice::<_, u8>(&mesh.positions),
            bytemuck::cast_slice(&mesh.triangles),
        ] {
            hasher.update((bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        }
    }
    hasher.finalize().into()
}

#[cfg(test)]
mod tests;
