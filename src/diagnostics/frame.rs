//! The cloth of a run's last frame, for `weft_report` to draw.

use std::fs;
use std::path::Path;

use weft_report::Cloth;

use crate::output::{OutputError, read_integers, read_triangles};

/// The cloth as the last frame in a run's directory has it; `None` if the run wrote no frames.
///
/// # Errors
/// [`OutputError`] if the frame cannot be read or understood.
pub fn last_frame(run: &Path) -> Result<Option<Cloth>, OutputError> {
    let folder = run.join("frames");
    if !folder.is_dir() {
        return Ok(None);
    }
    let mut last = None;
    for entry in fs::read_dir(&folder).map_err(OutputError::read(&folder))? {
        let name = entry.map_err(OutputError::read(&folder))?.file_name();
        let step = name.to_str().and_then(|name| {
            let digits = name.strip_prefix("cloth.")?.strip_suffix(".vtp")?;
            digits.parse::<u32>().ok()
        });
        last = last.max(step);
    }
    let Some(step) = last else { return Ok(None) };
    let path = folder.join(format!("cloth.{step:06}.vtp"));
    let mesh = read_triangles(&path)?;
    Ok(Some(Cloth {
        step,
        positions: mesh
            .positions
            .iter()
            .map(|p| p.as_vec3().to_array())
            .collect(),
        triangles: mesh.triangles,
        patches: read_integers(&path, "patch")?,
        owners: read_integers(&path, "owner")?,
    }))
}
