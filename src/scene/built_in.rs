//! The scenes that are part of the program: each runs by its name, from any folder.
//!
//! They are the files of `scenes/`. None of them names another file.

use std::path::Path;

use super::nearest::nearest;
use super::{Scene, SceneError};

/// A scene that is part of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuiltIn {
    /// The name by which it is found.
    pub name: &'static str,
    /// The text of its file.
    pub text: &'static str,
}

/// Makes a list of the scenes with these names.
macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        [$(BuiltIn { name: $name, text: include_str!(concat!("../../scenes/", $name, ".toml")) }),*]
    };
}

/// All scenes that are part of the program, by name.
pub static BUILT_IN: [BuiltIn; 8] = built_in![
    "curtain",
    "drape-floor",
    "drape-free",
    "one-sided",
    "quick",
    "sewn-shirt",
    "shirt",
    "turntable",
];

impl Scene {
    /// Loads the scene file at `path`, or, if no file is there, the built-in scene of that name.
    ///
    /// # Errors
    /// [`SceneError`], as from [`Scene::load`]; the nearest name may be that of a built-in scene.
    pub fn find(path: &Path, overrides: &[(String, String)]) -> Result<Self, SceneError> {
        let name = path.to_str();
        let built_in = BUILT_IN.iter().find(|scene| Some(scene.name) == name);
        if let Some(scene) = built_in.filter(|_| !path.is_file()) {
            return Self::parse(scene.text, Some(path), overrides);
        }
        Self::load(path, overrides).map_err(|error| match (error, name) {
            (
                SceneError::Missing {
                    path,
                    nearest: None,
                },
                Some(name),
            ) => SceneError::Missing {
                nearest: nearest(name, BUILT_IN.iter().map(|scene| scene.name)).map(str::to_owned),
                path,
            },
            (error, _) => error,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_scene_of_the_folder_is_built_in_under_the_name_of_its_file() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes");
        let files: BTreeSet<String> = std::fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap())
            .filter(|entry| entry.file_type().unwrap().is_file())
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        let names: BTreeSet<String> =
            (BUILT_IN.iter().map(|scene| format!("{}.toml", scene.name))).collect();
        assert_eq!(names, files);
        for scene in BUILT_IN {
            let file = folder.join(scene.name).with_extension("toml");
            let (found, loaded) = (
                Scene::find(Path::new(scene.name), &[]).unwrap(),
                Scene::find(&file, &[]).unwrap(),
            );
            assert_eq!(found.name, scene.name);
            assert_eq!(found.echo(), loaded.echo());
            assert_eq!(found.sha256, loaded.sha256);
        }
    }

    #[test]
    fn a_name_that_is_nearly_one_is_answered_with_it() {
        let error = Scene::find(Path::new("quik"), &[]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no scene file at quik; did you mean `quick`?"
        );
        let error = Scene::find(Path::new("nowhere/quick"), &[]).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("no scene file at nowhere/quick")
        );
    }
}
