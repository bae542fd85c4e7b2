//! ParaView's collection (`.pvd`): which file belongs to which time.
//!
//! The whole file is replaced after every frame, so that the run can be watched while it goes on
//! and an interrupted run has a collection that names exactly the frames that exist.

use std::path::Path;

use super::plain::read_plain;
use super::vtp::escape;
use super::{OutputError, RunDirectory};

/// The entries of a `.pvd` file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Collection {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    time: f64,
    part: usize,
    file: String,
}

impl Collection {
    /// Adds a file; `time` in s, `part` numbers the meshes of one time, `file` is relative to the
    /// collection.
    pub fn add(&mut self, time: f64, part: usize, file: impl Into<String>) {
        self.entries.push(Entry {
            time,
            part,
            file: file.into(),
        });
    }

    /// The entries: time in s, the number of the mesh at that time, and the file from the folder of
    /// the collection.
    pub fn entries(&self) -> impl Iterator<Item = (f64, usize, &str)> {
        let entries = self.entries.iter();
        entries.map(|entry| (entry.time, entry.part, entry.file.as_str()))
    }

    /// The times of all frames in s, ascending, each with the names of its files.
    pub(crate) fn files(&self) -> Vec<(f64, Vec<&str>)> {
        let mut frames: Vec<(f64, Vec<&str>)> = Vec::new();
        for Entry { time, file, .. } in &self.entries {
            match frames.last_mut() {
                Some((last, files)) if *last == *time => files.push(file),
                _ => frames.push((*time, vec![file])),
            }
        }
        frames
    }

    /// Number of different times.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.entries.iter().filter(|entry| entry.part == 0).count()
    }

    /// Forgets all entries after `time` (in s), of which a continued run makes its own.
    pub(crate) fn truncate_after(&mut self, time: f64) {
        self.entries.retain(|entry| entry.time <= time);
    }

    /// Forgets entries whose files are not there, of which a viewer would find nothing.
    pub(crate) fn keep_existing(&mut self, run: &RunDirectory) {
        self.entries.retain(|entry| run.file(&entry.file).is_file());
    }

    /// Writes the collection to the file `name` of the run.
    ///
    /// # Errors
    /// [`OutputError::Write`].
    pub fn write(&self, run: &RunDirectory, name: &str) -> Result<(), OutputError> {
        let mut xml = String::from(
            "<?xml version=\"1.0\"?>\n<VTKFile type=\"Collection\" version=\"1.0\" \
             byte_order=\"LittleEndian\">\n<Collection>\n",
        );
        for Entry { time, part, file } in &self.entries {
            let file = escape(file);
            xml += &format!("<DataSet timestep=\"{time:?}\" part=\"{part}\" file=\"{file}\"/>\n");
        }
        xml += "</Collection>\n</VTKFile>\n";
        run.write(name, |out| out.write_all(xml.as_bytes()))?;
        Ok(())
    }

    /// Reads a collection that [`Self::write`] wrote, to continue a run; `None` if there is no such
    /// file.
    ///
    /// # Errors
    /// [`OutputError::Read`]; [`OutputError::Malformed`] with the line if it is not one of ours.
    pub fn read(path: &Path) -> Result<Option<Self>, OutputError> {
        let Some(bytes) = read_plain(path).map_err(OutputError::read(path))? else {
            return Ok(None);
        };
        let text = String::from_utf8_lossy(&bytes);
        let mut collection = Self::default();
        for (number, line) in text.lines().enumerate() {
            if line.starts_with("<DataSet ") {
                let entry = parse_entry(line).ok_or_else(|| OutputError::Malformed {
                    path: path.to_owned(),
                    what: format!("line {} is not an entry of ours", number + 1),
                })?;
                collection.entries.push(entry);
            }
        }
        if !text.trim_end().ends_with("</VTKFile>") {
            return Err(OutputError::Malformed {
                path: path.to_owned(),
                what: "its end is missing".to_owned(),
            });
        }
        Ok(Some(collection))
    }
}

fn parse_entry(line: &str) -> Option<Entry> {
    let attribute = |name: &str| {
        let (_, rest) = line.split_once(&format!(" {name}=\""))?;
        Some(rest.split_once('"')?.0)
    };
    Some(Entry {
        time: attribute("timestep")?
            .parse()
            .ok()
            .filter(|time: &f64| time.is_finite())?,
        part: attribute("part")?.parse().ok()?,
        file: attribute("file")?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn collection_has_the_form_paraview_reads() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        let mut collection = Collection::default();
        collection.add(0.0, 0, "frames/a.vtp");
        collection.add(0.02, 0, "frames/b&c.vtp");
        collection.write(&run, "frames.pvd").unwrap();
        assert_eq!(
            fs::read_to_string(run.file("frames.pvd")).unwrap(),
            "<?xml version=\"1.0\"?>\n\
             <VTKFile type=\"Collection\" version=\"1.0\" byte_order=\"LittleEndian\">\n\
             <Collection>\n\
             <DataSet timestep=\"0.0\" part=\"0\" file=\"frames/a.vtp\"/>\n\
             <DataSet timestep=\"0.02\" part=\"0\" file=\"frames/b&amp;c.vtp\"/>\n\
             </Collection>\n\
             </VTKFile>\n"
        );
    }

    #[test]
    fn collection_reads_back_and_is_cut_at_a_time() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        let mut collection = Collection::default();
        for frame in 0..4 {
            collection.add(0.1 * f64::from(frame), 0, format!("frames/{frame}.vtp"));
            collection.add(0.1 * f64::from(frame), 1, "frames/body.vtp");
        }
        collection.write(&run, "frames.pvd").unwrap();
        let mut back = Collection::read(&run.file("frames.pvd")).unwrap().unwrap();
        assert_eq!(back, collection);
        back.truncate_after(0.15);
        assert_eq!(back.frames(), 2);
        run.write("frames/1.vtp", |_| Ok(())).unwrap();
        back.keep_existing(&run);
        assert_eq!(back.frames(), 1);
        assert_eq!(Collection::read(&run.file("none.pvd")).unwrap(), None);
    }

    #[test]
    fn broken_collection_is_refused_with_its_line() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        for (text, word) in [
            (
                "<VTKFile>\n<DataSet timestep=\"x\" part=\"0\" file=\"a\"/>\n</VTKFile>",
                "line 2",
            ),
            (
                "<VTKFile>\n<DataSet timestep=\"1\" part=\"0\" file=\"a\"/>\n",
                "end is missing",
            ),
        ] {
            fs::write(run.file("frames.pvd"), text).unwrap();
            let error = Collection::read(&run.file("frames.pvd")).unwrap_err();
            assert!(error.to_string().contains(word), "{error}");
        }
    }
}
