//! Reads a frame in pieces as the one frame that it is: all vertices and triangles in the order
//! that a frame in one file has.
//!
//! Pieces are read one after the other. Sizes are those of the pieces, which are no larger than
//! their files, so that a damaged file asks for no more memory than there are bytes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use glam::DVec3;
use weft_io::read_regular;

use super::frame_arrays::{parse_whole, read_frame};
use super::pieces::{DUPLICATE, GHOST, TRIANGLE, VERTEX};
use super::{ArrayValues, FrameArrays, NamedArray, OutputError};
use crate::mesh::TriMesh;

/// The longest list of pieces that is read, in bytes.
const LONGEST: u64 = 64 << 20;

/// Whether a file names the pieces of a frame, by its own name.
pub(super) fn is_in_pieces(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "pvtp")
}

/// Reads a frame whose pieces a file names.
///
/// # Errors
/// [`OutputError::Read`]; [`OutputError::Malformed`], which says what is wrong and with which file.
pub(super) fn read_pieces(path: &Path) -> Result<FrameArrays, OutputError> {
    let malformed = |path: &Path, what: &str| OutputError::Malformed {
        path: path.to_owned(),
        what: what.to_owned(),
    };
    let text = read_regular(path, LONGEST).map_err(OutputError::read(path))?;
    let sources = sources(&text).map_err(|what| malformed(path, what))?;
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let mut pieces = Vec::with_capacity(sources.len());
    for source in sources {
        let file = folder.join(source);
        // A link would lead out of the run.
        if fs::symlink_metadata(&file).is_ok_and(|found| found.is_symlink()) {
            return Err(malformed(
                &file,
                "it is a link, where a run has a piece of a frame",
            ));
        }
        let bytes = read_regular(&file, u64::MAX).map_err(OutputError::read(&file))?;
        let piece = parse_whole(&bytes).map_err(|what| {
            let what =
                format!("it is no piece of a frame that weft wrote, or not all of it: {what}");
            malformed(&file, &what)
        })?;
        let piece = Piece::of(piece).map_err(|what| malformed(&file, what))?;
        pieces.push((file, piece));
    }
    put_together(pieces).map_err(|(file, what)| malformed(file.as_deref().unwrap_or(path), what))
}

/// The names of the pieces, plain ones in the same folder.
fn sources(text: &[u8]) -> Result<Vec<&str>, &'static str> {
    const BEGINNING: &str = "<?xml version=\"1.0\"?>\n<VTKFile type=\"PPolyData\"";
    let text = std::str::from_utf8(text).map_err(|_| "its text is not UTF-8")?;
    if !text.starts_with(BEGINNING) || !text.ends_with("</VTKFile>\n") {
        return Err("it is no list of pieces that weft wrote, or not all of it");
    }
    let (mut sources, mut known) = (Vec::new(), BTreeSet::new());
    for piece in text.split("<Piece ").skip(1) {
        let source = piece.strip_prefix("Source=\"");
        let source = source.and_then(|rest| rest.split_once('"'));
        let (source, _) = source.ok_or("a piece has no file")?;
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        if source.starts_with('.') || !source.chars().all(is_plain) || !source.ends_with(".vtp") {
            return Err("it names a piece that no run writes");
        }
        // Otherwise a short list could ask for any number of pieces.
        if !known.insert(source) {
            return Err("it names a piece twice");
        }
        sources.push(source);
    }
    if sources.is_empty() {
        return Err("it names no piece");
    }
    Ok(sources)
}

/// A piece of a frame.
struct Piece {
    /// The piece without the arrays below.
    frame: FrameArrays,
    /// The numbers of its vertices in the whole.
    vertices: Vec<u32>,
    /// The numbers of its triangles in the whole.
    triangles: Vec<u32>,
    /// Whether a vertex is another piece's own.
    ghosts: Vec<bool>,
}

impl Piece {
    fn of(mut frame: FrameArrays) -> Result<Self, &'static str> {
        let vertices = numbers(&mut frame.of_vertices, VERTEX);
        let triangles = numbers(&mut frame.of_triangles, TRIANGLE);
        let kinds = numbers(&mut frame.of_vertices, GHOST);
        let (Some(vertices), Some(triangles), Some(kinds)) = (vertices, triangles, kinds) else {
            return Err("it does not say which vertices and triangles of a frame it has");
        };
        let ghosts = kinds.iter().map(|&kind| kind == u32::from(DUPLICATE));
        Ok(Self {
            ghosts: ghosts.collect(),
            frame,
            vertices,
            triangles,
        })
    }

    /// Its own vertices: their places here, and their numbers in the whole.
    fn own(&self) -> impl Iterator<Item = (usize, usize)> {
        let all = self.vertices.iter().zip(&self.ghosts).enumerate();
        all.filter_map(|(place, (&vertex, ghost))| (!ghost).then_some((place, vertex as usize)))
    }

    /// Its triangles: their places here, and their numbers in the whole.
    fn own_triangles(&self) -> impl Iterator<Item = (usize, usize)> {
        let all = self.triangles.iter().enumerate();
        all.map(|(place, &triangle)| (place, triangle as usize))
    }
}

/// Takes an array of numbers out of others.
fn numbers(arrays: &mut Vec<NamedArray>, name: &str) -> Option<Vec<u32>> {
    let at = arrays.iter().position(|array| array.name == name)?;
    match arrays.remove(at).values {
        ArrayValues::Integers(values) => values
            .into_iter()
            .map(|value| u32::try_from(value).ok())
            .collect(),
        _ => None,
    }
}

/// The piece in which something is wrong, if it is not the list, and what.
type Fault = (Option<PathBuf>, &'static str);

fn put_together(pieces: Vec<(PathBuf, Piece)>) -> Result<FrameArrays, Fault> {
    let vertices: usize = pieces.iter().map(|(_, piece)| piece.own().count()).sum();
    let triangles: usize = (pieces.iter())
        .map(|(_, piece)| piece.triangles.len())
        .sum();
    let (mut seen, mut drawn) = (vec![false; vertices], vec![false; triangles]);
    let mut mesh = TriMesh {
        positions: vec![DVec3::ZERO; vertices],
        triangles: vec![[0; 3]; triangles],
    };
    let mut time = None;
    let mut of_vertices: Vec<NamedArray> = Vec::new();
    let mut of_triangles: Vec<NamedArray> = Vec::new();
    for (number, (file, piece)) in pieces.iter().enumerate() {
        let wrong = |what| (Some(file.clone()), what);
        let Piece { frame, .. } = piece;
        for (place, vertex) in piece.own() {
            match seen.get_mut(vertex) {
                Some(seen) if !*seen => *seen = true,
                _ => return Err(wrong("a vertex of it is in another piece, or in none")),
            }
            mesh.positions[vertex] = frame.mesh.positions[place];
        }
        for (place, triangle) in piece.own_triangles() {
            match drawn.get_mut(triangle) {
                Some(drawn) if !*drawn => *drawn = true,
                _ => return Err(wrong("a triangle of it is in another piece, or in none")),
            }
            let corners = frame.mesh.triangles[place];
            let corners = corners.map(|corner| piece.vertices[corner as usize]);
            if corners.iter().any(|&corner| corner as usize >= vertices) {
                return Err(wrong("a corner of it is in no piece"));
            }
            mesh.triangles[triangle] = corners;
        }
        if number == 0 {
            time = frame.time;
            of_vertices = frame
                .of_vertices
                .iter()
                .map(|all| all.zeros(vertices))
                .collect();
            of_triangles = frame
                .of_triangles
                .iter()
                .map(|all| all.zeros(triangles))
                .collect();
        } else if frame.time != time {
            return Err(wrong("it is of another time than the first piece"));
        }
        let (own, drawn): (Vec<_>, Vec<_>) =
            (piece.own().collect(), piece.own_triangles().collect());
        for (all, some, places) in [
            (&mut of_vertices, &frame.of_vertices, &own),
            (&mut of_triangles, &frame.of_triangles, &drawn),
        ] {
            let fits = all.len() == some.len()
                && (all.iter_mut().zip(some)).all(|(all, some)| all.take(some, places));
            if !fits {
                return Err(wrong("it has other arrays than the first piece"));
            }
        }
    }
    Ok(FrameArrays {
        time,
        mesh,
        of_vertices,
        of_triangles,
    })
}

impl NamedArray {
    /// An array of zeros that has this name and kind.
    fn zeros(&self, items: usize) -> Self {
        Self {
            name: self.name.clone(),
            values: match self.values {
                ArrayValues::Scalars(_) => ArrayValues::Scalars(vec![0.0; items]),
                ArrayValues::Vectors(_) => ArrayValues::Vectors(vec![DVec3::ZERO; items]),
                ArrayValues::Integers(_) => ArrayValues::Integers(vec![0; items]),
            },
        }
    }

    /// Takes values of another array of this name and kind, from their places there to those
    /// here; says whether it is one.
    fn take(&mut self, some: &Self, places: &[(usize, usize)]) -> bool {
        fn copy<T: Copy>(all: &mut [T], some: &[T], places: &[(usize, usize)]) -> bool {
            for &(from, to) in places {
                all[to] = some[from];
            }
            true
        }
        self.name == some.name
            && match (&mut self.values, &some.values) {
                (ArrayValues::Scalars(all), ArrayValues::Scalars(some)) => copy(all, some, places),
                (ArrayValues::Vectors(all), ArrayValues::Vectors(some)) => copy(all, some, places),
                (ArrayValues::Integers(all), ArrayValues::Integers(some)) => {
                    copy(all, some, places)
                }
                _ => false,
            }
    }
}

/// The values of an array on triangles of a frame in pieces that are numbers of 32 bits; `None` if
/// there is none of that name.
pub(super) fn integers_of_triangles(path: &Path, name: &str) -> Result<Vec<u32>, OutputError> {
    let mut frame = read_frame(path)?;
    numbers(&mut frame.of_triangles, name).ok_or_else(|| OutputError::Malformed {
        path: path.to_owned(),
        what: format!("it has no numbers `{name}`"),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::pieces::{PiecesPlace, write_pvtp};
    use super::super::{
        DataArray, FrameFile, PolyData, RunDirectory, Values, read_integers, read_points,
        read_time, read_triangles, write_vtp,
    };
    use super::*;

    const STEP: u64 = 7;

    fn array<'a>(name: &'a str, values: Values<'a>) -> DataArray<'a> {
        DataArray { name, values }
    }

    /// The positions of four vertices, which are their velocities too.
    const POINTS: [DVec3; 4] = [
        DVec3::new(0.1, -0.0, 1e-300),
        DVec3::X,
        DVec3::Y,
        DVec3::new(f64::MAX, 2.5, 0.3),
    ];

    /// Writes two pieces and the list of them: vertices 2 and 0, and vertices 3 and 1, of which
    /// each piece has those of the other that its triangle needs.
    fn write(run: &RunDirectory) -> PathBuf {
        let place = PiecesPlace::begin(run, STEP, 2).unwrap();
        let piece = |rank: u32, vertices: &[u32], marks: &[u8], triangle: u32| {
            let points: Vec<DVec3> = vertices.iter().map(|&v| POINTS[v as usize]).collect();
            let reals: Vec<f64> = points.iter().map(|point| -point.x).collect();
            let (owners, triangles) = ([rank], [triangle]);
            let data = PolyData {
                points: &points,
                triangles: &[[0, 1, 2]],
                point_arrays: vec![
                    array("velocity", Values::Vectors(&points)),
                    array("cut", Values::Scalars(&reals)),
                    array(VERTEX, Values::Integers(vertices)),
                    array(GHOST, Values::Bytes(marks)),
                ],
                cell_arrays: vec![
                    array("owner", Values::Integers(&owners)),
                    array(TRIANGLE, Values::Integers(&triangles)),
                ],
                time: Some(0.5),
            };
            place.write(rank, &data).unwrap()
        };
        let pieces = [
            piece(0, &[2, 0, 1], &[0, 0, 1], 1),
            piece(1, &[3, 1, 2], &[0, 0, 1], 0),
        ];
        let name = write_pvtp(run, STEP, &pieces).unwrap();
        assert_eq!(name, "frames/cloth.000007.pvtp");
        run.file(&name)
    }

    fn run() -> (tempfile::TempDir, RunDirectory) {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        (root, run)
    }

    /// The expected frame is read from a file of its own.
    #[test]
    fn pieces_read_as_the_frame_in_one_file() {
        let (_root, run) = run();
        let path = write(&run);
        let reals = POINTS.map(|point| -point.x);
        let whole = PolyData {
            points: &POINTS,
            triangles: &[[3, 1, 2], [2, 0, 1]],
            point_arrays: vec![
                array("velocity", Values::Vectors(&POINTS)),
                array("cut", Values::Scalars(&reals)),
            ],
            cell_arrays: vec![array("owner", Values::Integers(&[1, 0]))],
            time: Some(0.5),
        };
        write_vtp(&run, "frames/one.vtp", &whole).unwrap();
        let one = run.file("frames/one.vtp");
        let expected = read_frame(&one).unwrap();
        let frame = read_frame(&path).unwrap();
        assert_eq!(frame, expected);
        let bits = |frame: &FrameArrays| {
            let positions = frame.mesh.positions.iter();
            positions
                .map(|p| p.to_array().map(f64::to_bits))
                .collect::<Vec<_>>()
        };
        assert_eq!(bits(&frame), bits(&expected));
        assert_eq!(read_points(&path).unwrap(), POINTS);
        assert_eq!(
            read_triangles(&path).unwrap(),
            read_triangles(&one).unwrap()
        );
        assert_eq!(read_time(&path).unwrap(), 0.5);
        assert_eq!(read_integers(&path, "owner").unwrap(), [1, 0]);
        assert!(read_integers(&path, "velocity").is_err());
        let mut open = FrameFile::open(&path).unwrap();
        assert_eq!(open.points(), 4);
        assert_eq!(open.positions(1..3).unwrap(), POINTS[1..3]);
        assert_eq!(open.velocities(3..4).unwrap(), POINTS[3..]);
        assert_eq!(open.triangles().unwrap(), [[3, 1, 2], [2, 0, 1]]);
        assert!(open.positions(3..5).is_err());
    }

    /// The list is XML as VTK describes it, and names pieces from its own folder.
    #[test]
    fn the_list_of_pieces_has_the_form_paraview_reads() {
        let (_root, run) = run();
        let text = fs::read_to_string(write(&run)).unwrap();
        let expected = "<?xml version=\"1.0\"?>\n\
             <VTKFile type=\"PPolyData\" version=\"1.0\" byte_order=\"LittleEndian\" header_type=\"UInt64\">\n\
             <PPolyData GhostLevel=\"0\">\n\
             <PPointData>\n\
             <PDataArray type=\"Float64\" Name=\"velocity\" NumberOfComponents=\"3\"/>\n\
             <PDataArray type=\"Float64\" Name=\"cut\" NumberOfComponents=\"1\"/>\n\
             <PDataArray type=\"UInt32\" Name=\"vertex\" NumberOfComponents=\"1\"/>\n\
             <PDataArray type=\"UInt8\" Name=\"vtkGhostType\" NumberOfComponents=\"1\"/>\n\
             </PPointData>\n\
             <PCellData>\n\
             <PDataArray type=\"UInt32\" Name=\"owner\" NumberOfComponents=\"1\"/>\n\
             <PDataArray type=\"UInt32\" Name=\"triangle\" NumberOfComponents=\"1\"/>\n\
             </PCellData>\n\
             <PPoints>\n\
             <PDataArray type=\"Float64\" Name=\"Points\" NumberOfComponents=\"3\"/>\n\
             </PPoints>\n\
             <Piece Source=\"piece-00000.000007.vtp\"/>\n\
             <Piece Source=\"piece-00001.000007.vtp\"/>\n\
             </PPolyData>\n\
             </VTKFile>\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn lists_and_pieces_that_do_not_fit_are_refused_by_name() {
        let (root, run) = run();
        let path = write(&run);
        let list = fs::read_to_string(&path).unwrap();
        let first = "piece-00000.000007.vtp";
        for (name, word) in [
            ("../piece-00000.000007.vtp", "no run writes"),
            ("/etc/a.vtp", "no run writes"),
            (".a.vtp", "no run writes"),
            ("piece-00009.000007.vtp", "piece-00009.000007.vtp"),
            ("piece-00001.000007.vtp", "it names a piece twice"),
        ] {
            fs::write(&path, list.replace(first, name)).unwrap();
            let error = read_frame(&path).unwrap_err().to_string();
            assert!(error.contains(word), "{name}: {error}");
        }
        let without = list.replace("<Piece Source=\"piece-00001.000007.vtp\"/>\n", "");
        for (text, word) in [
            (without, "a vertex of it is in another piece, or in none"),
            (list[..list.len() - 12].to_owned(), "not all of it"),
            (list.replace("Source", "File"), "has no file"),
            (list.replace("<Piece ", "<Part "), "names no piece"),
        ] {
            fs::write(&path, text).unwrap();
            let error = read_frame(&path).unwrap_err().to_string();
            assert!(error.contains(word), "{word}: {error}");
        }
        fs::write(&path, &list).unwrap();
        let piece = root.path().join("frames").join(first);
        #[cfg(unix)]
        {
            let other = root.path().join("frames/piece-other.vtp");
            fs::rename(&piece, &other).unwrap();
            std::os::unix::fs::symlink(&other, &piece).unwrap();
            let error = read_frame(&path).unwrap_err().to_string();
            assert!(error.contains("it is a link"), "{error}");
            fs::remove_file(&piece).unwrap();
        }
        let alone = PolyData {
            points: &POINTS,
            triangles: &[],
            point_arrays: Vec::new(),
            cell_arrays: Vec::new(),
            time: None,
        };
        PiecesPlace::begin(&run, STEP, 1)
            .unwrap()
            .write(0, &alone)
            .unwrap();
        let error = read_frame(&path).unwrap_err().to_string();
        assert!(
            error.contains(first) && error.contains("does not say which"),
            "{error}"
        );
    }

    proptest! {
        /// Whatever the bytes are, the answer is an error or a frame, and no panic.
        #[test]
        fn damage_of_pieces_ends_in_an_error_or_a_frame(
            which in 0usize..3,
            at in 0usize..4000,
            bit in 0u8..8,
        ) {
            let (root, run) = run();
            let path = write(&run);
            let files = ["cloth.000007.pvtp", "piece-00000.000007.vtp", "piece-00001.000007.vtp"];
            let file = root.path().join("frames").join(files[which]);
            let mut bytes = fs::read(&file).unwrap();
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            fs::write(&file, bytes).unwrap();
            if let Ok(frame) = read_frame(&path) {
                prop_assert!(frame.mesh.triangles.iter().flatten().all(|&v| (v as usize) < 4));
            }
        }
    }
}
