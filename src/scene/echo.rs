//! A scene back as text, every option written out.

use std::path::PathBuf;

use super::body::{self, write_body};
use super::cloth::{self, write_cloth};
use super::key::{Echo, Key, Section, Visitor};
use super::material;
use super::seam::{self, write_seam};
use super::sections::visit;
use super::{ClothSource, Scene, Shape};

impl Scene {
    /// Writes all options that are in force, defaults and overrides included, as TOML that parses
    /// back to an equal scene (but for `path`, `sha256` and `set_in_vain`, which tell of a text).
    /// Keys that have no effect are left out if they have their defaults.
    ///
    /// Mesh paths are written as they were resolved: a relative one is relative to the working
    /// directory, so parse it with no path or from there. A path that is not UTF-8 is written with
    /// replacement characters.
    pub fn echo(&self) -> String {
        written(self, false)
    }

    /// Writes the part of [`Self::echo`] on which the trajectory depends, with keys that have no
    /// effect. It is equal for scenes that differ in title, end, balance, output, culling and the
    /// folders of meshes only.
    pub fn echo_of_trajectory(&self) -> String {
        let mut scene = self.clone();
        let bare = |path: &mut PathBuf| {
            if let Some(name) = path.file_name() {
                *path = PathBuf::from(name);
            }
        };
        for cloth in &mut scene.cloths {
            if let ClothSource::File { path, .. } = &mut cloth.source {
                bare(path);
            }
        }
        for body in &mut scene.bodies {
            if let Shape::Mesh { path, .. } = &mut body.shape {
                bare(path);
            }
        }
        written(&scene, true)
    }

    /// Lists the keys on which the trajectory depends and which may change in a run that goes on,
    /// each with the header of its table in the echo, which is empty above all tables: those that
    /// say how exactly it is computed, and those that say which forces act.
    #[must_use]
    pub fn keys_of_later(&self) -> Vec<(String, &'static str)> {
        let mut later = Later(Vec::new());
        visit(self, &mut later);
        later.add("[[cloth]]", cloth::KEYS);
        later.add("[cloth.material]", material::KEYS);
        later.add("[[body]]", body::KEYS);
        later.add("[[seam]]", seam::KEYS);
        later.0
    }
}

fn written(scene: &Scene, of_trajectory: bool) -> String {
    let mut echo = Echo {
        out: String::new(),
        scene,
        of_trajectory,
        objects: |out: &mut String| {
            for cloth in &scene.cloths {
                write_cloth(out, cloth);
            }
            for body in &scene.bodies {
                write_body(out, body);
            }
            for seam in &scene.seams {
                write_seam(out, seam);
            }
        },
    };
    visit(scene, &mut echo);
    echo.out
}

/// Collects the keys that may change in a run that goes on.
struct Later(Vec<(String, &'static str)>);

impl Later {
    fn add<S>(&mut self, header: &str, keys: &[Key<S>]) {
        let keys = keys.iter().filter(|key| key.changes.may_differ_later());
        self.0.extend(keys.map(|key| (header.to_owned(), key.name)));
    }
}

impl Visitor for Later {
    fn section<S: Section>(&mut self, _: &S) {
        match S::NAME {
            "" => self.add("", S::KEYS),
            name => self.add(&format!("[{name}]"), S::KEYS),
        }
    }
}
