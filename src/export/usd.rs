//! USD as text (`.usda`): one mesh for each cloth and body, its points over time.
//!
//! A time code is a frame: frame 0 is time 0, and as many come in a second as the scene writes. The
//! last frame of a run may lie between two time codes. Cloth has velocities, for motion blur, and
//! texture coordinates at the corners of faces. Numbers have 32 bits, as USD's points do.

use std::io::{self, Write};

use glam::DVec3;

use super::{Job, Recorded, RecordedCloth, reading, text};
use crate::mesh::FileMesh;
use crate::output::OutputError;
use crate::scene::Up;

/// The file of a run.
pub(super) fn file(run: &Recorded) -> String {
    format!("{}.usda", run.name())
}

/// Writes it.
pub(super) fn write(job: &Job<'_>) -> Result<(), OutputError> {
    job.target.write(&file(job.run), |out| {
        header(job, out)?;
        let mut names = Names::default();
        for cloth in job.run.cloths() {
            write_cloth(job, cloth, &names.of(&cloth.name), out)?;
        }
        for body in job.run.bodies() {
            let mut file = reading(job.run.body(body, 0))?;
            begin_mesh(&names.of(&body.name), &file, out)?;
            if body.moves {
                let points = |frame| {
                    let mesh = job.run.body(body, frame)?;
                    let same = mesh.faces == file.faces;
                    same.then_some(mesh.mesh.positions).ok_or_else(|| {
                        let path = job.run.name().into();
                        let what = format!("body `{}` has other triangles in a frame", body.name);
                        OutputError::Malformed { path, what }
                    })
                };
                let boxes = samples(job, "point3f[] points", points, out)?;
                extents(job, &boxes, out)?;
            } else {
                job.axes.all(&mut file.mesh.positions);
                write!(out, "        point3f[] points = [")?;
                list(&file.mesh.positions, out)?;
                let [low, high] = bounds(&file.mesh.positions);
                writeln!(
                    out,
                    "]\n        float3[] extent = [{}, {}]",
                    Tuple(low),
                    Tuple(high)
                )?;
            }
            out.write_all(b"    }\n")?;
        }
        out.write_all(b"}\n")
    })
}

fn header(job: &Job<'_>, out: &mut dyn Write) -> io::Result<()> {
    let run = job.run;
    let last = run
        .frames()
        .last()
        .map_or(0.0, |frame| code(run, frame.time));
    write!(
        out,
        "#usda 1.0\n(\n    defaultPrim = \"weft\"\n    doc = \"weft {}\"\n    endTimeCode = {last}\n    framesPerSecond = {rate}\n    \
         metersPerUnit = {}\n    startTimeCode = {}\n    timeCodesPerSecond = {rate}\n    upAxis = \"{}\"\n)\n\ndef Xform \"weft\"\n{{\n",
        env!("CARGO_PKG_VERSION"),
        job.units.metres(),
        code(run, run.frames()[0].time),
        match job.axes.up {
            Up::Y => "Y",
            Up::Z => "Z",
        },
        rate = rate(run),
    )
}

/// Frames in a second, whole where only rounding keeps it from that.
fn rate(run: &Recorded) -> f64 {
    nearly_whole(1.0 / run.spacing())
}

/// The time code of a time in s.
fn code(run: &Recorded, time: f64) -> f64 {
    nearly_whole(time * rate(run))
}

fn nearly_whole(x: f64) -> f64 {
    let whole = x.round();
    if (x - whole).abs() < 1e-6 * x.abs().max(1.0) {
        whole
    } else {
        x
    }
}

fn write_cloth(
    job: &Job<'_>,
    cloth: &RecordedCloth,
    name: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    begin_mesh(name, &cloth.file, out)?;
    if let Some(texture) = &cloth.file.texture {
        out.write_all(b"        texCoord2f[] primvars:st = [")?;
        #[expect(clippy::cast_possible_truncation, reason = "USD has 32 bits here")]
        text::each(&texture.coordinates, out, |[u, v], text, digits| {
            text.push('(');
            text.push_str(digits.format(*u as f32));
            text.push_str(", ");
            text.push_str(digits.format(*v as f32));
            text.push_str("), ");
        })?;
        out.write_all(b"] (\n            interpolation = \"faceVarying\"\n        )\n")?;
        out.write_all(b"        int[] primvars:st:indices = [")?;
        whole(&texture.corners, out)?;
        out.write_all(b"]\n")?;
    }
    let points = |frame| job.run.positions(cloth, frame);
    let boxes = samples(job, "point3f[] points", points, out)?;
    let velocities = |frame| job.run.velocities(cloth, frame);
    samples(job, "vector3f[] velocities", velocities, out)?;
    extents(job, &boxes, out)?;
    out.write_all(b"    }\n")
}

/// The beginning of a mesh, with its faces.
fn begin_mesh(name: &str, file: &FileMesh, out: &mut dyn Write) -> io::Result<()> {
    write!(
        out,
        "    def Mesh \"{name}\"\n    {{\n        uniform bool doubleSided = 1\n        uniform token orientation = \"rightHanded\"\n        \
         uniform token subdivisionScheme = \"none\"\n        int[] faceVertexCounts = ["
    )?;
    whole(&file.faces.counts, out)?;
    out.write_all(b"]\n        int[] faceVertexIndices = [")?;
    whole(&file.faces.corners, out)?;
    out.write_all(b"]\n")
}

/// Writes vectors of each frame. The boxes around them.
fn samples(
    job: &Job<'_>,
    attribute: &str,
    vectors: impl Fn(usize) -> Result<Vec<DVec3>, OutputError>,
    out: &mut dyn Write,
) -> io::Result<Vec<[DVec3; 2]>> {
    let mut boxes = Vec::new();
    writeln!(out, "        {attribute}.timeSamples = {{")?;
    for (index, frame) in job.run.frames().iter().enumerate() {
        let mut vectors = reading(vectors(index))?;
        job.axes.all(&mut vectors);
        write!(out, "            {}: [", code(job.run, frame.time))?;
        list(&vectors, out)?;
        out.write_all(b"],\n")?;
        boxes.push(bounds(&vectors));
    }
    out.write_all(b"        }\n")?;
    Ok(boxes)
}

/// Writes the box around the points of each frame.
fn extents(job: &Job<'_>, boxes: &[[DVec3; 2]], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "        float3[] extent.timeSamples = {{")?;
    for (&[low, high], frame) in boxes.iter().zip(job.run.frames()) {
        let code = code(job.run, frame.time);
        writeln!(
            out,
            "            {code}: [{}, {}],",
            Tuple(low),
            Tuple(high)
        )?;
    }
    out.write_all(b"        }\n")
}

fn bounds(points: &[DVec3]) -> [DVec3; 2] {
    let none = [DVec3::ZERO; 2];
    let Some(&first) = points.first() else {
        return none;
    };
    let all = points.iter();
    all.fold([first; 2], |[low, high], &p| [low.min(p), high.max(p)])
}

/// Vectors with commas; USD takes one behind the last.
fn list(vectors: &[DVec3], out: &mut dyn Write) -> io::Result<()> {
    text::tuples(vectors, out)
}

fn whole(numbers: &[u32], out: &mut dyn Write) -> io::Result<()> {
    use std::fmt::Write as _;

    text::each(numbers, out, |number, text, _| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{number}, ");
    })
}

/// A vector in parentheses, in 32 bits.
struct Tuple(DVec3);

impl std::fmt::Display for Tuple {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [x, y, z] = self.0.as_vec3().to_array();
        write!(f, "({x:?}, {y:?}, {z:?})")
    }
}

/// Names of prims that are taken.
#[derive(Default)]
struct Names(std::collections::BTreeSet<String>);

impl Names {
    /// The name of a prim: letters, digits and `_`, no digit first, and no other's.
    fn of(&mut self, name: &str) -> String {
        let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let mut plain: String = name.chars().map(letter).collect();
        if !plain.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            plain.insert(0, '_');
        }
        while !self.0.insert(plain.clone()) {
            plain.push('_');
        }
        plain
    }
}
