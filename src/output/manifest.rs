//! `run.files`: which files of a directory are a run's own.
//!
//! Each file is listed before it is made, and the list is synced before that: so what is not listed
//! is somebody else's, also after a run was killed. Only what is listed is ever replaced or
//! removed.
//!
//! | line | says |
//! |---|---|
//! | `weft run files 1` | the first line |
//! | `temporary .weft-XXXXXXXXXXXXXXXX-` | the first letters of the names of temporary files |
//! | `file NAME` | a file of the run, with `/` between folder and name |
//!
//! A last line without an end was not written completely, and the file that it was to name was not
//! made.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use weft_io::{PARTIAL, unpredictable};

use super::OutputError;
use super::names::{RECORD, step_of};
use super::plain::read_plain;
use super::whole::replace;

/// The folders in which a run has files.
pub(super) const FOLDERS: [&str; 5] = ["frames", "pictures", "trace", "meshes", "exports"];
/// The page that `weft report` writes beside a run's files; it belongs to them.
const PAGE: &str = "report.html";

const MAGIC: &str = "weft run files 1";

/// The entries of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Listed {
    /// The files, by their names relative to the directory.
    pub(super) files: BTreeSet<String>,
    /// How temporary files' names begin.
    pub(super) temporaries: BTreeSet<String>,
}

impl Listed {
    /// Reads the list in a directory; `None` if there is none.
    ///
    /// # Errors
    /// [`OutputError::Read`]; [`OutputError::Malformed`] if a line is none of a list or names what
    /// no run writes.
    pub(super) fn read(directory: &Path) -> Result<Option<Self>, OutputError> {
        let path = directory.join(Manifest::FILE);
        let Some(bytes) = read_plain(&path).map_err(OutputError::read(&path))? else {
            return Ok(None);
        };
        let malformed = |what: String| OutputError::Malformed {
            path: path.clone(),
            what,
        };
        let text = String::from_utf8(bytes).map_err(|_| malformed("it is no text".to_owned()))?;
        if !text.starts_with(&format!("{MAGIC}\n")) {
            return Err(malformed(format!("its first line is not `{MAGIC}`")));
        }
        let mut listed = Self::default();
        for (number, line) in text.split_inclusive('\n').enumerate() {
            let Some(line) = line.strip_suffix('\n') else {
                break;
            };
            match line.split_once(' ') {
                _ if number == 0 => {}
                Some(("file", name)) if is_own(name) => {
                    listed.files.insert(name.to_owned());
                }
                Some(("temporary", name)) if is_temporary(name) => {
                    listed.temporaries.insert(name.to_owned());
                }
                _ => {
                    return Err(malformed(format!(
                        "line {} is `{}`, which names no file that a run writes; find out who has changed this list; without it --resume goes on, but --overwrite cannot distinguish the run's files from others",
                        number + 1,
                        line.escape_debug()
                    )));
                }
            }
        }
        Ok(Some(listed))
    }

    /// The files that a version of the program without this list has left in a directory, known by
    /// their names.
    ///
    /// # Errors
    /// [`OutputError::Read`].
    pub(super) fn by_name(directory: &Path) -> Result<Self, OutputError> {
        let mut listed = Self::default();
        for folder in [None].into_iter().chain(FOLDERS.map(Some)) {
            for name in names(directory, folder)? {
                let name = folder.map_or_else(|| name.clone(), |folder| format!("{folder}/{name}"));
                let plain = fs::symlink_metadata(directory.join(&name));
                if is_own(&name) && plain.is_ok_and(|found| found.is_file()) {
                    listed.files.insert(name);
                }
            }
        }
        Ok(listed)
    }

    /// Whether a file of this name, in any folder of the run, is one of the temporary ones.
    pub(super) fn is_temporary(&self, file_name: &str) -> bool {
        file_name.ends_with(PARTIAL)
            && (self.temporaries.iter()).any(|prefix| file_name.starts_with(prefix.as_str()))
    }
}

/// The list of a run that is under way.
#[derive(Debug)]
pub(super) struct Manifest {
    listed: Listed,
    /// How this process begins the names of its temporary files.
    prefix: String,
    file: File,
    length: u64,
}

impl Manifest {
    /// Name of its file.
    pub(super) const FILE: &'static str = "run.files";

    /// Writes the list of a directory anew, with these files in it.
    ///
    /// # Errors
    /// [`OutputError::Write`].
    pub(super) fn start(directory: &Path, files: BTreeSet<String>) -> Result<Self, OutputError> {
        let path = directory.join(Self::FILE);
        let write = || -> io::Result<Self> {
            let prefix = format!(".weft-{}-", unpredictable()?);
            let mut text = format!("{MAGIC}\ntemporary {prefix}\n");
            for name in &files {
                text += &format!("file {name}\n");
            }
            let file = replace(&path, &prefix, |out| out.write_all(text.as_bytes()))?;
            Ok(Self {
                length: text.len() as u64,
                listed: Listed {
                    files,
                    temporaries: BTreeSet::from([prefix.clone()]),
                },
                prefix,
                file,
            })
        };
        let mut manifest = write().map_err(OutputError::write(&path))?;
        // `weft report` may write its page while it cannot add to this list, so the page is listed
        // from the start, unless there is already one of somebody else.
        let page = directory.join(PAGE);
        if fs::symlink_metadata(&page).is_err() {
            manifest.add(PAGE).map_err(OutputError::write(&page))?;
        }
        Ok(manifest)
    }

    /// How this process begins the names of its temporary files.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The entries of the list.
    pub(super) fn listed(&self) -> &Listed {
        &self.listed
    }

    /// Lists a file, before it is made. A file that is added twice is listed once.
    pub(super) fn add(&mut self, name: &str) -> io::Result<()> {
        if self.listed.files.contains(name) {
            return Ok(());
        }
        self.add_all(&[name])
    }

    /// Lists files that are not listed, before they are made.
    pub(super) fn add_all(&mut self, names: &[&str]) -> io::Result<()> {
        let lines = names.iter().map(|name| format!("file {name}\n"));
        let line: String = lines.collect();
        if line.is_empty() {
            return Ok(());
        }
        let written = (self.file.write_all(line.as_bytes())).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // The part that was written is cut off. The file appends, so the next line
            // follows the last whole one. If this fails too, the first error says why.
            drop(self.file.set_len(self.length));
            return Err(error);
        }
        self.length += line.len() as u64;
        let names = names.iter().map(|name| (*name).to_owned());
        self.listed.files.extend(names);
        Ok(())
    }
}

/// The names in a folder of a run's directory; none if there is no such folder, or a link in its
/// place.
pub(super) fn names(directory: &Path, folder: Option<&str>) -> Result<Vec<String>, OutputError> {
    let path: PathBuf = folder.map_or_else(|| directory.to_owned(), |name| directory.join(name));
    if folder.is_some() && !fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir()) {
        return Ok(Vec::new());
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(&path).map_err(OutputError::read(&path))? {
        let entry = entry.map_err(OutputError::read(&path))?;
        // A run gives no names that are no text.
        names.extend(entry.file_name().into_string());
    }
    Ok(names)
}

/// Whether a run writes files of this name: plain, and at most one known folder down.
pub(crate) fn is_own(name: &str) -> bool {
    let (folder, file) = match name.split_once('/') {
        Some((folder, file)) => (Some(folder), file),
        None => (None, name),
    };
    let plain = |letter: char| letter.is_ascii_graphic() && !matches!(letter, '/' | '\\');
    if file.starts_with('.') || !file.chars().all(plain) {
        return false;
    }
    match folder {
        None => {
            let fixed = [
                RECORD,
                "history.csv",
                "frames.pvd",
                "trace.json",
                "record.weftrec",
                PAGE,
            ];
            fixed.contains(&file) || step_of(file).is_some()
        }
        Some("frames") => file.ends_with(".vtp") || file.ends_with(".pvtp"),
        Some("pictures") => file.ends_with(".png"),
        Some("meshes") => file.ends_with(".obj"),
        Some("exports") => {
            let endings = [".usda", ".pc2", ".mdd", ".obj", ".ply", ".glb", ".png"];
            endings.iter().any(|ending| file.ends_with(ending))
        }
        Some("trace") => file.starts_with("rank-") && file.ends_with(".bin"),
        Some(_) => false,
    }
}

fn is_temporary(prefix: &str) -> bool {
    let digits = prefix
        .strip_prefix(".weft-")
        .and_then(|rest| rest.strip_suffix('-'));
    digits.is_some_and(|digits| {
        digits.len() == 16 && digits.chars().all(|digit| digit.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn added_files_are_read_back_and_a_line_without_end_is_dropped() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(Listed::read(root.path()).unwrap(), None);
        let mut manifest = Manifest::start(root.path(), files(&["history.csv"])).unwrap();
        for _ in 0..2 {
            manifest.add("frames/cloth.000001.vtp").unwrap();
        }
        let listed = Listed::read(root.path()).unwrap().unwrap();
        assert_eq!(&listed, manifest.listed());
        let all = files(&["history.csv", "frames/cloth.000001.vtp", "report.html"]);
        assert_eq!(listed.files, all);
        assert!(listed.is_temporary(&format!("{}abc{PARTIAL}", manifest.prefix())));
        assert!(!listed.is_temporary(".weft-abc.partial"));
        manifest.file.write_all(b"file frames/cloth.00").unwrap();
        assert_eq!(Listed::read(root.path()).unwrap().unwrap().files, all);
    }

    /// A page that somebody had there before is not the run's.
    #[test]
    fn a_stranger_s_page_is_not_listed() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join(PAGE), "mine").unwrap();
        let manifest = Manifest::start(root.path(), BTreeSet::new()).unwrap();
        assert_eq!(manifest.listed().files, BTreeSet::new());
    }

    #[test]
    fn lists_that_name_what_no_run_writes_are_refused_with_the_line() {
        let root = tempfile::tempdir().unwrap();
        for line in [
            "file ../thesis.tex",
            "file frames/../../thesis.vtp",
            "file /etc/passwd",
            "file //etc/x.vtp",
            "file ./history.csv",
            "file frames",
            "file frames/",
            "file frames/a/b.vtp",
            "file frames\\a.vtp",
            "file frames/.vtp",
            "file thesis.tex",
            "file state.x.ckpt",
            "file pictures/a.vtp",
            "file ",
            "temporary ",
            "temporary .weft-",
            "temporary .weft-0123456789abcde/-",
            "other",
            "",
        ] {
            let path = root.path().join(Manifest::FILE);
            fs::write(&path, format!("{MAGIC}\nfile history.csv\n{line}\n")).unwrap();
            let error = Listed::read(root.path()).unwrap_err();
            assert!(matches!(error, OutputError::Malformed { .. }), "{error}");
            let said = error.to_string();
            assert!(
                said.contains("run.files") && said.contains("line 3"),
                "{said}"
            );
        }
        fs::write(root.path().join(Manifest::FILE), "mine\n").unwrap();
        assert!(Listed::read(root.path()).is_err());
    }
}
