//! The two scenes of the 2006 paper, as benches of whole steps name and find them.

use std::path::{Path, PathBuf};

/// Their names, in the order of the paper.
const SCENES: [&str; 2] = ["drape-floor", "drape-free"];

/// The scenes that the command line names; both if it names none.
///
/// # Panics
/// For any other name.
pub(crate) fn wanted() -> Vec<&'static str> {
    let named: Vec<String> = (std::env::args().skip(1))
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    if let Some(unknown) = (named.iter()).find(|&name| !SCENES.contains(&name.as_str())) {
        panic!("no scene `{unknown}` here: {}", SCENES.join(", "));
    }
    let is_wanted = |scene: &&str| named.is_empty() || named.iter().any(|name| name == scene);
    SCENES.into_iter().filter(is_wanted).collect()
}

/// The file of a scene.
pub(crate) fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("scenes/{name}.toml"))
}
