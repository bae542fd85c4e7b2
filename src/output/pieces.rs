//! Frames in pieces: a `.vtp` of each rank, and a `.pvtp` (VTK XML PPolyData) that names them.
//!
//! Rank 0 lists the files of all pieces and tells ranks where they lie; each writes its own. The
//! `.pvtp` comes last, so that it never names a missing piece. It holds no numbers but says which
//! arrays the pieces have ("Parallel File Formats" in VTK's description of its XML formats).
//!
//! A piece has the vertices of a rank, then those of others that its triangles have as corners,
//! marked as VTK marks ghosts. Arrays with the numbers of vertices and triangles in the whole frame
//! say how pieces are put together ([`read_pieces`](super::pieces_read::read_pieces)).

use serde::{Deserialize, Serialize};

use super::frames::{piece_file, pieces_file};
use super::shared_directory::SharedDirectory;
use super::vtp::{encode, escape, inconsistency};
use super::whole::replace;
use super::{DataArray, OutputError, PolyData, RunDirectory, Values};

/// The array with the number of each vertex in the whole frame.
pub(crate) const VERTEX: &str = "vertex";
/// The array with the number of each triangle in the whole frame.
pub(crate) const TRIANGLE: &str = "triangle";
/// The array by which VTK knows ghosts.
pub(crate) const GHOST: &str = "vtkGhostType";
/// The value of a vertex that another piece has as its own.
pub(crate) const DUPLICATE: u8 = 1;

/// The place into which ranks write their pieces of a frame, as rank 0 tells it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PiecesPlace {
    run: SharedDirectory,
    step: u64,
}

/// The arrays that a piece has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PieceArrays {
    of_points: Vec<Declared>,
    of_cells: Vec<Declared>,
}

/// The name of an array, the type of its numbers, and how many there are for each item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Declared(String, String, u32);

impl PieceArrays {
    fn of(data: &PolyData<'_>) -> Self {
        let all = |arrays: &[DataArray<'_>]| {
            let declared = arrays.iter().map(|array| {
                let (kind, components) = array.values.kind();
                Declared(array.name.to_owned(), kind.to_owned(), components)
            });
            declared.collect()
        };
        Self {
            of_points: all(&data.point_arrays),
            of_cells: all(&data.cell_arrays),
        }
    }
}

impl PiecesPlace {
    /// Lists the files of a frame's pieces as the run's own, and makes their folder.
    ///
    /// # Errors
    /// [`OutputError::Write`]; [`OutputError::InTheWay`].
    pub(crate) fn begin(run: &RunDirectory, step: u64, ranks: u32) -> Result<Self, OutputError> {
        let names: Vec<String> = (0..ranks).map(|rank| piece_file(rank, step)).collect();
        run.list(&names)?;
        Ok(Self {
            run: SharedDirectory::of(run)?,
            step,
        })
    }

    /// Writes the piece of a rank, complete or not at all. The result says which arrays it has.
    ///
    /// # Errors
    /// As [`write_vtp`](super::write_vtp).
    pub(crate) fn write(
        &self,
        rank: u32,
        piece: &PolyData<'_>,
    ) -> Result<PieceArrays, OutputError> {
        let name = piece_file(rank, self.step);
        let shown = self.run.shown(&name);
        if let Some(what) = inconsistency(piece) {
            return Err(OutputError::Inconsistent { path: shown, what });
        }
        let path = self.run.file(&name);
        replace(&path, self.run.prefix(), |out| encode(piece, out))
            .map_err(OutputError::write(&shown))?;
        Ok(PieceArrays::of(piece))
    }
}

/// Writes the file that names the pieces of a frame, which are there; by rank, their arrays. The
/// result is its name.
///
/// # Errors
/// [`OutputError::Inconsistent`] if the pieces have different arrays; [`OutputError::Write`].
pub(super) fn write_pvtp(
    run: &RunDirectory,
    step: u64,
    pieces: &[PieceArrays],
) -> Result<String, OutputError> {
    let name = pieces_file(step);
    let Some(arrays) = pieces
        .first()
        .filter(|first| pieces.iter().all(|all| all == *first))
    else {
        return Err(OutputError::Inconsistent {
            path: run.file(&name),
            what: "its pieces have different arrays".to_owned(),
        });
    };
    let mut xml = String::from(
        "<?xml version=\"1.0\"?>\n<VTKFile type=\"PPolyData\" version=\"1.0\" \
         byte_order=\"LittleEndian\" header_type=\"UInt64\">\n<PPolyData GhostLevel=\"0\">\n",
    );
    let (points, components) = Values::Vectors(&[]).kind();
    let points = vec![Declared("Points".to_owned(), points.to_owned(), components)];
    for (element, declared) in [
        ("PPointData", &arrays.of_points),
        ("PCellData", &arrays.of_cells),
        ("PPoints", &points),
    ] {
        xml += &format!("<{element}>\n");
        for Declared(name, kind, components) in declared {
            let name = escape(name);
            xml += &format!(
                "<PDataArray type=\"{kind}\" Name=\"{name}\" NumberOfComponents=\"{components}\"/>\n"
            );
        }
        xml += &format!("</{element}>\n");
    }
    for rank in 0..pieces.len() as u32 {
        let file = piece_file(rank, step);
        // Sources are named from the folder of this file.
        let source = file.rsplit('/').next().unwrap_or(&file);
        xml += &format!("<Piece Source=\"{source}\"/>\n");
    }
    xml += "</PPolyData>\n</VTKFile>\n";
    run.write(&name, |out| out.write_all(xml.as_bytes()))?;
    Ok(name)
}
