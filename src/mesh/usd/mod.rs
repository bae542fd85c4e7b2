//! Reads USD: text (`.usda`), binary (`.usdc`), either of them (`.usd`), and packages (`.usdz`).
//!
//! The meshes of one layer are read, where their prims and those above put them, with what the
//! layer says of units and of the axis upwards. Animated attributes have the value that stands
//! without a time, or the one of the earliest time. A layer that takes parts from elsewhere, or
//! chooses them by variants, is refused: they would be missing.
//!
//! A crate for USD was tried (`openusd` 0.6): one byte in ten of a damaged binary file makes it ask
//! for so much memory that the process is aborted, which no caller can keep from happening. So the
//! layers are read here, and only LZ4 is left to a crate.
//!
//! Not here: subdivision (the control mesh is taken as it is), skins, instances, other kinds of
//! geometry.

mod binary;
mod layer;
mod text;

use std::collections::HashSet;

use glam::{DMat3, DMat4, DQuat, DVec3};

use self::layer::{Layer, Prim, Value};
use super::file_mesh::{FileAxes, FileMesh, Texture};
use super::file_problem::{Problem, short};
use super::groups::{Groups, Kind};
use super::looks::no_usd;
use super::polygon::triangulate;
use super::{MAX_TRIANGLES, MAX_VERTICES, rotation_matrix};
use crate::scene::Up;

/// Reads the meshes of a file, or those at and below one prim, and the groups of these names: prims
/// that are or have meshes, and subsets of faces.
pub(super) fn read_file(
    bytes: &[u8],
    wanted: &[&str],
    prim: Option<&str>,
) -> Result<FileMesh, Problem> {
    let bytes = unpacked(bytes)?;
    let layer = if text::is_text(bytes) {
        text::read(bytes)?
    } else if binary::is_binary(bytes) {
        binary::read(bytes)?
    } else {
        return Err(no_usd(bytes));
    };
    Stage::of(layer, prim)?.read(wanted)
}

/// The first layer of a package, or the file itself. Files of a package are not compressed.
fn unpacked(bytes: &[u8]) -> Result<&[u8], Problem> {
    if !bytes.starts_with(b"PK\x03\x04") {
        return Ok(bytes);
    }
    let short = || Problem::new("the package ends within its first file");
    let two = |at: usize| {
        let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk);
        bytes.map(|&two| usize::from(u16::from_le_bytes(two)))
    };
    let four = |at: usize| {
        let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk);
        bytes.map(|&four| u32::from_le_bytes(four) as usize)
    };
    let (flags, method) = (two(6).ok_or_else(short)?, two(8).ok_or_else(short)?);
    let (packed, size) = (four(18).ok_or_else(short)?, four(22).ok_or_else(short)?);
    if method != 0 || packed != size || flags & 0b1001 != 0 {
        return Err(Problem::at_byte(
            6,
            "the first file of the package is compressed, encrypted or of unknown length, which USD does not allow",
        ));
    }
    let [name, extra] = [26, 28].map(two);
    let start = 30 + name.ok_or_else(short)? + extra.ok_or_else(short)?;
    bytes
        .get(start..start.saturating_add(size))
        .ok_or_else(short)
}

/// The meshes that are read of a layer.
struct Stage {
    layer: Layer,
    /// The prims of the meshes.
    meshes: Vec<usize>,
}

impl Stage {
    fn of(layer: Layer, prim: Option<&str>) -> Result<Self, Problem> {
        if layer.has_sublayers {
            return Err(Problem::new(format!("it has sublayers, {FLATTEN}")));
        }
        let mut all = Vec::new();
        // Whether a prim is in the part that is asked for, and that part.
        let mut is_in = vec![prim.is_none(); layer.prims.len()];
        let mut parts = Vec::new();
        for (index, found) in layer.prims.iter().enumerate() {
            let is_asked = prim.is_some_and(|asked| {
                found.name == asked || asked.starts_with('/') && layer.path(index) == asked
            });
            if is_asked {
                parts.push(index);
            }
            is_in[index] |= is_asked || found.parent.is_some_and(|parent| is_in[parent]);
            if found.is_defined && found.kind == "Mesh" {
                all.push(index);
            }
        }
        all.sort_by_cached_key(|&mesh| layer.places(mesh));
        let paths = |of: &[usize]| {
            let some: Vec<_> = of
                .iter()
                .take(SHOWN)
                .map(|&prim| layer.path(prim))
                .collect();
            let more = if of.len() > SHOWN { ", ..." } else { "" };
            format!("{}{more}", short(some.join(", ").as_bytes()))
        };
        if let Some(asked) = prim {
            let asked = short(asked.as_bytes());
            // A prim within one of the same name is of the same part.
            parts.retain(|&part| layer.prims[part].parent.is_none_or(|parent| !is_in[parent]));
            match parts.len() {
                1 => {}
                0 => {
                    return Err(Problem::new(format!(
                        "it has no prim `{asked}`; its meshes are {}",
                        paths(&all)
                    )));
                }
                _ => {
                    return Err(Problem::new(format!(
                        "it has several prims `{asked}`: {}; give the path of one",
                        paths(&parts)
                    )));
                }
            }
        }
        // Nothing of the part, nor of what is above it, may be taken from elsewhere.
        let mut above = parts.first().and_then(|&part| layer.prims[part].parent);
        let mut part: Vec<usize> = (0..layer.prims.len()).filter(|&prim| is_in[prim]).collect();
        while let Some(prim) = above {
            part.push(prim);
            above = layer.prims[prim].parent;
        }
        for prim in part {
            let Prim {
                arc, is_defined, ..
            } = layer.prims[prim];
            if let Some(arc) = arc.filter(|_| is_defined) {
                return Err(Problem::new(format!(
                    "its prim {} has {arc}, {FLATTEN}",
                    short(layer.path(prim).as_bytes())
                )));
            }
        }
        let meshes: Vec<usize> = all.iter().copied().filter(|&mesh| is_in[mesh]).collect();
        if meshes.is_empty() {
            return Err(Problem::new(match prim {
                Some(_) => format!(
                    "that prim has no meshes; those of the file are {}",
                    paths(&all)
                ),
                None => "it has no meshes".to_owned(),
            }));
        }
        Ok(Self { layer, meshes })
    }

    fn read(&self, wanted: &[&str]) -> Result<FileMesh, Problem> {
        let mut reader = Reader {
            file: FileMesh::default(),
            texture: Texture::default(),
            has_texture: false,
            groups: Groups::new(wanted),
        };
        let mut subsets: Vec<Vec<usize>> = vec![Vec::new(); self.layer.prims.len()];
        for (index, prim) in self.layer.prims.iter().enumerate() {
            if let Some(parent) = prim.parent.filter(|_| prim.kind == "GeomSubset") {
                subsets[parent].push(index);
            }
        }
        for &mesh in &self.meshes {
            let path = self.layer.path(mesh);
            let in_mesh = |problem: Problem| Problem {
                message: format!("{}: {}", short(path.as_bytes()), problem.message),
                ..problem
            };
            let place = self.place(mesh).map_err(in_mesh)?;
            let mut above = Some(mesh);
            while let Some(prim) = above {
                reader
                    .groups
                    .begin_faces(Kind::Object, &self.layer.prims[prim].name);
                above = self.layer.prims[prim].parent;
            }
            let prim = &self.layer.prims[mesh];
            let subsets = subsets[mesh]
                .iter()
                .map(|&subset| &self.layer.prims[subset]);
            reader.mesh(prim, place, subsets).map_err(in_mesh)?;
            reader.groups.end_faces(Kind::Object);
        }
        let mut file = reader.file;
        if file.mesh.triangles.is_empty() {
            return Err(Problem::new("its meshes have no faces"));
        }
        file.texture = reader.has_texture.then_some(reader.texture);
        (file.groups, file.group_names) = reader.groups.finish();
        file.axes = self.axes()?;
        Ok(file)
    }

    /// The units and axes of the layer, or USD's where it names none.
    fn axes(&self) -> Result<FileAxes, Problem> {
        let metres = self.layer.metres.unwrap_or(0.01);
        if !(metres.is_finite() && metres > 0.0) {
            return Err(Problem::new(format!("its metersPerUnit is {metres}")));
        }
        let up = match self.layer.up.as_deref() {
            None | Some("Y") => Up::Y,
            Some("Z") => Up::Z,
            Some(other) => {
                return Err(Problem::new(format!(
                    "its upAxis is `{}`; it must be Y or Z",
                    short(other.as_bytes())
                )));
            }
        };
        Ok(FileAxes {
            metres: Some(metres),
            up: Some(up),
        })
    }

    /// The placement of a prim, by its transform and those above.
    fn place(&self, prim: usize) -> Result<DMat4, Problem> {
        let mut place = DMat4::IDENTITY;
        let mut at = Some(prim);
        while let Some(prim) = at {
            let prim = &self.layer.prims[prim];
            let (own, ends) = transform(prim)?;
            place = own * place;
            at = prim.parent.filter(|_| !ends);
        }
        if !place.is_finite() {
            return Err(Problem::new("its transform is not finite"));
        }
        Ok(place)
    }
}

/// The transform of a prim, and whether those above do not count.
fn transform(prim: &Prim) -> Result<(DMat4, bool), Problem> {
    let mut place = DMat4::IDENTITY;
    let mut ends = false;
    let order = prim
        .attributes
        .get("xformOpOrder")
        .map(|order| &order.value);
    let Some(Value::Words(order)) = order else {
        return Ok((place, ends));
    };
    for word in order {
        if word == "!resetXformStack!" {
            (place, ends) = (DMat4::IDENTITY, true);
            continue;
        }
        let (name, inverted) = match word.strip_prefix("!invert!") {
            Some(name) => (name, true),
            None => (word.as_str(), false),
        };
        let value = prim.attributes.get(name).map(|attribute| &attribute.value);
        let numbers: &[f64] = match value {
            Some(Value::Numbers { numbers, .. }) => numbers,
            _ => &[],
        };
        let own = operation(name, numbers).ok_or_else(|| {
            Problem::new(format!(
                "its transform `{}` is missing, or of an unknown kind",
                short(name.as_bytes())
            ))
        })?;
        if inverted && (own.determinant() == 0.0 || !own.determinant().is_finite()) {
            return Err(Problem::new(format!(
                "its transform `{}` cannot be inverted",
                short(word.as_bytes())
            )));
        }
        place *= if inverted { own.inverse() } else { own };
    }
    Ok((place, ends))
}

/// The matrix of an operation of a transform.
fn operation(name: &str, numbers: &[f64]) -> Option<DMat4> {
    let kind = name.strip_prefix("xformOp:")?;
    let kind = kind.split(':').next().unwrap_or_default();
    let axes = |names: &str| {
        let axis = |letter: char| match letter {
            'X' => Some(DVec3::X),
            'Y' => Some(DVec3::Y),
            'Z' => Some(DVec3::Z),
            _ => None,
        };
        names.chars().map(axis).collect::<Option<Vec<DVec3>>>()
    };
    let turned = |matrix: DMat3| Some(DMat4::from_mat3(matrix));
    match (kind, numbers) {
        ("translate", &[x, y, z]) => Some(DMat4::from_translation(DVec3::new(x, y, z))),
        ("scale", &[x, y, z]) => Some(DMat4::from_scale(DVec3::new(x, y, z))),
        ("orient", &[w, x, y, z]) => {
            let length = (w * w + x * x + y * y + z * z).sqrt();
            let is_turn = length.is_finite() && length > 0.0;
            let quaternion = DQuat::from_xyzw(x, y, z, w) / length;
            is_turn.then(|| DMat4::from_quat(quaternion))
        }
        // Vectors are rows in USD and columns here, and the order in memory is that of both.
        ("transform", numbers) => {
            let numbers: &[f64; 16] = numbers.try_into().ok()?;
            Some(DMat4::from_cols_array(numbers))
        }
        (kind, angles) => {
            if let Some(axis) = kind.strip_prefix("translate") {
                let [axis] = axes(axis)?[..] else { return None };
                return Some(DMat4::from_translation(axis * *angles.first()?));
            }
            if let Some(axis) = kind.strip_prefix("scale") {
                let [axis] = axes(axis)?[..] else { return None };
                return Some(DMat4::from_scale(
                    DVec3::ONE + axis * (angles.first()? - 1.0),
                ));
            }
            let axes = axes(kind.strip_prefix("rotate")?)?;
            let is_known = matches!((axes.len(), angles.len()), (1, 1) | (3, 3));
            if !is_known || angles.iter().any(|angle| !angle.is_finite()) {
                return None;
            }
            // Three angles are about x, y, z, whatever the order of the turns.
            let angle = |axis: DVec3| match *angles {
                [one] => one,
                _ => axis.dot(DVec3::from_slice(angles)),
            };
            let turns = axes.iter().map(|&axis| axis * angle(axis).to_radians());
            turned(turns.fold(DMat3::IDENTITY, |before, turn| {
                rotation_matrix(turn) * before
            }))
        }
    }
}

struct Reader {
    file: FileMesh,
    texture: Texture,
    has_texture: bool,
    groups: Groups,
}

impl Reader {
    /// Reads a mesh.
    fn mesh<'a>(
        &mut self,
        prim: &Prim,
        place: DMat4,
        subsets: impl Iterator<Item = &'a Prim>,
    ) -> Result<(), Problem> {
        let points = numbers(prim, "points", 3)?.ok_or_else(|| Problem::new("it has no points"))?;
        let counts = whole(prim, "faceVertexCounts")?;
        let corners = whole(prim, "faceVertexIndices")?;
        let first = self.file.mesh.positions.len();
        let points = points.as_chunks::<3>().0;
        if points.len() > MAX_VERTICES - first {
            return Err(Problem::new(format!("more than {MAX_VERTICES} vertices")));
        }
        for (index, &point) in points.iter().enumerate() {
            let point = DVec3::from_array(point);
            if !point.is_finite() {
                return Err(Problem::new(format!(
                    "point {index} is {point}, not finite"
                )));
            }
            self.file.mesh.positions.push(if place == DMat4::IDENTITY {
                point
            } else {
                place.transform_point3(point)
            });
        }
        let is_left = matches!(
            prim.attributes.get("orientation").map(|a| &a.value),
            Some(Value::Words(words)) if words.first().is_some_and(|word| word == "leftHanded")
        );
        // A mirror turns left to right.
        let turn = is_left != (place.determinant() < 0.0);
        let holes: HashSet<i32> = whole(prim, "holeIndices")?.iter().copied().collect();
        let texture = self.coordinates(prim, corners)?;
        let mut starts = Vec::with_capacity(counts.len() + 1);
        let mut start = 0_usize;
        let mut face = Vec::new();
        for (index, &count) in counts.iter().enumerate() {
            starts.push(start);
            let end = usize::try_from(count)
                .ok()
                .and_then(|count| start.checked_add(count));
            let Some(own) = end.and_then(|end| corners.get(start..end)) else {
                return Err(Problem::new(format!(
                    "face {index} has {count} corners, and {} are left",
                    corners.len() - start
                )));
            };
            let of_texture = start..start + own.len();
            start += own.len();
            if i32::try_from(index).is_ok_and(|index| holes.contains(&index)) {
                continue;
            }
            face.clear();
            for &corner in own {
                let vertex = usize::try_from(corner).ok().filter(|&v| v < points.len());
                let Some(vertex) = vertex else {
                    return Err(Problem::new(format!(
                        "face {index} names point {corner}, there are {}",
                        points.len()
                    )));
                };
                face.push((first + vertex) as u32);
            }
            self.texture.corners.extend_from_slice(&texture[of_texture]);
            if turn && !face.is_empty() {
                let added = self.texture.corners.len() - face.len();
                face[1..].reverse();
                self.texture.corners[added + 1..].reverse();
            }
            let name = |vertex: u32| format!("point {}", vertex as usize - first);
            triangulate(
                &face,
                &self.file.mesh.positions,
                name,
                &mut self.file.mesh.triangles,
            )
            .map_err(|message| Problem::new(format!("face {index}: {message}")))?;
            if self.file.mesh.triangles.len() > MAX_TRIANGLES {
                return Err(Problem::new(format!("more than {MAX_TRIANGLES} triangles")));
            }
            self.file.faces.push(&face);
            self.groups.add(face.iter().copied());
        }
        for subset in subsets {
            self.subset(subset, &starts, counts, corners, first)?;
        }
        Ok(())
    }

    /// Adds the texture coordinates of a mesh. Which of them each corner has.
    fn coordinates(&mut self, prim: &Prim, corners: &[i32]) -> Result<Vec<u32>, Problem> {
        let first = self.texture.coordinates.len();
        let names = ["primvars:st", "primvars:UVMap"];
        let found = names.into_iter().find_map(|name| {
            let attribute = prim.attributes.get(name)?;
            let by_vertex = match attribute.interpolation.as_deref()? {
                "faceVarying" => false,
                "vertex" | "varying" => true,
                _ => return None,
            };
            Some((name, by_vertex))
        });
        let Some((name, by_vertex)) = found else {
            // Corners without a coordinate share one at the origin.
            self.texture.coordinates.push([0.0; 2]);
            return Ok(vec![first as u32; corners.len()]);
        };
        let values = numbers(prim, name, 2)?
            .unwrap_or_default()
            .as_chunks::<2>()
            .0;
        if let Some(bad) = values
            .iter()
            .find(|[u, v]| !(u.is_finite() && v.is_finite()))
        {
            return Err(Problem::new(format!(
                "a texture coordinate is {bad:?}, not finite"
            )));
        }
        if values.len() > 3 * MAX_TRIANGLES - first {
            return Err(Problem::new("it has too many texture coordinates"));
        }
        let indices = whole(prim, &format!("{name}:indices"))?;
        let of_corner = |(number, &corner): (usize, &i32)| {
            let number = if by_vertex {
                usize::try_from(corner).ok()?
            } else {
                number
            };
            let index = match indices {
                [] => number,
                indices => usize::try_from(*indices.get(number)?).ok()?,
            };
            (index < values.len()).then_some((first + index) as u32)
        };
        let found: Option<Vec<u32>> = corners.iter().enumerate().map(of_corner).collect();
        let found = found.ok_or_else(|| {
            Problem::new(format!("its {name} has fewer values than its faces name"))
        })?;
        self.texture.coordinates.extend_from_slice(values);
        self.has_texture = true;
        Ok(found)
    }

    /// Adds the vertices of a subset of faces to the group of its name.
    fn subset(
        &mut self,
        subset: &Prim,
        starts: &[usize],
        counts: &[i32],
        corners: &[i32],
        first: usize,
    ) -> Result<(), Problem> {
        let Some(group) = self.groups.name(&subset.name) else {
            return Ok(());
        };
        let kind = subset.attributes.get("elementType").map(|a| &a.value);
        if kind.is_some_and(|kind| *kind != Value::Words(vec!["face".to_owned()])) {
            return Err(Problem::new(format!(
                "its subset {} is none of faces",
                short(subset.name.as_bytes())
            )));
        }
        for &face in whole(subset, "indices")? {
            let index = usize::try_from(face).ok();
            let start = index.and_then(|face| Some((*starts.get(face)?, *counts.get(face)?)));
            let Some((start, count)) = start else {
                return Err(Problem::new(format!(
                    "its subset {} names face {face}, there are {}",
                    short(subset.name.as_bytes()),
                    counts.len()
                )));
            };
            let end = start + usize::try_from(count).unwrap_or_default();
            for &corner in &corners[start..end] {
                let vertex = usize::try_from(corner).unwrap_or_default();
                self.groups.add_to(group, (first + vertex) as u32);
            }
        }
        Ok(())
    }
}

/// The numbers of an attribute, `wanted` at a time, if it has any.
fn numbers<'a>(prim: &'a Prim, name: &str, wanted: usize) -> Result<Option<&'a [f64]>, Problem> {
    match prim.attributes.get(name).map(|attribute| &attribute.value) {
        None | Some(Value::None) => Ok(None),
        Some(Value::Numbers { each, numbers })
            if *each == wanted && numbers.len().is_multiple_of(wanted) =>
        {
            Ok(Some(numbers))
        }
        Some(_) => Err(Problem::new(format!(
            "its {name} are of another type than USD says"
        ))),
    }
}

/// The whole numbers of an attribute, none if it has no value.
fn whole<'a>(prim: &'a Prim, name: &str) -> Result<&'a [i32], Problem> {
    match prim.attributes.get(name).map(|attribute| &attribute.value) {
        None | Some(Value::None) => Ok(&[]),
        Some(Value::Whole(whole)) => Ok(whole),
        Some(_) => Err(Problem::new(format!("its {name} are no whole numbers"))),
    }
}

/// The advice for a layer that refers to others.
const FLATTEN: &str = "which are not followed: make one layer of it with `usdcat --flatten`, or export what is meant alone";

/// Prims that a message names.
const SHOWN: usize = 8;

#[cfg(test)]
mod tests;
