//! The cloth of a run's last frame, for `weft_report` to draw.

use std::fs;
use std::path::Path;

use weft_report::Cloth;

use crate::output::{OutputError, path_of_cloth, read_integers, read_triangles, step_of_cloth};

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
        let step = name.to_str().and_then(step_of_cloth);
        last = last.max(step.and_then(|step| u32::try_from(step).ok()));
    }
    let Some(step) = last else { return Ok(None) };
    let path = path_of_cloth(run, step.into());
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
