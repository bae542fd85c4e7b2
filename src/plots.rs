//! The plots of a study in its directory: which of them this plan has made, and which an earlier
//! one.
//!
//! `study.json` has the name and the SHA-256 of each. So a plot that an earlier plan has left can
//! be told from one that somebody put there or has changed, which is not touched.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use weft_io::{Show as _, read_regular};
use weft_runtime::wire::hex;
use weft_study::chart;
use weft_study::tables::Row;
use weftwork::output::write_whole;

use crate::Failure;

/// Files of plots, by name, with the SHA-256 of each in hexadecimal.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Plots(BTreeMap<String, String>);

impl Plots {
    /// The plots that the study in a directory says it has written; none if it does not say.
    pub(crate) fn of(out: &Path) -> Self {
        #[derive(Deserialize)]
        struct Study {
            #[serde(default)]
            plots: Plots,
        }
        let study = read_regular(&out.join("study.json"), u64::MAX).ok();
        let study = study.and_then(|bytes| serde_json::from_slice::<Study>(&bytes).ok());
        study.map(|study| study.plots).unwrap_or_default()
    }

    /// Draws the plots of these rows, as SVG and PNG.
    pub(crate) fn write(out: &Path, rows: &[Row]) -> Result<Self, Failure> {
        let mut plots = Self::default();
        for (name, drawing) in chart::plots(rows) {
            let png = drawing.png().map_err(|source| {
                let path = out.join(format!("{name}.png"));
                Failure {
                    code: 5,
                    message: format!("{}: {source}", path.shown()),
                }
            })?;
            let svg = drawing.svg().into_bytes();
            for (file, bytes) in [(format!("{name}.svg"), svg), (format!("{name}.png"), png)] {
                let path = out.join(&file);
                let written = write_whole(&path, |out| out.write_all(&bytes));
                written.map_err(|error| Failure {
                    code: 5,
                    message: error.to_string(),
                })?;
                plots.0.insert(file, sha256(&bytes));
            }
        }
        Ok(plots)
    }

    /// How many plots there are, in two files each.
    pub(crate) fn count(&self) -> usize {
        self.0.len() / 2
    }

    /// Removes those of earlier plots that are not among these and are still what was written; how
    /// many files that were.
    pub(crate) fn remove_others(&self, out: &Path, earlier: &Self) -> usize {
        let mut gone = 0;
        for (name, hash) in &earlier.0 {
            let is_plain = Path::new(name)
                .file_name()
                .is_some_and(|file| file == name.as_str());
            let is_plot = name.ends_with(".svg") || name.ends_with(".png");
            if self.0.contains_key(name) || !is_plain || !is_plot {
                continue;
            }
            let path = out.join(name);
            let is_ours = read_regular(&path, u64::MAX).is_ok_and(|bytes| sha256(&bytes) == *hash);
            // A file that cannot be removed stays: it does no more harm than before.
            gone += usize::from(is_ours && fs::remove_file(&path).is_ok());
        }
        gone
    }
}

fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
