//! Files of a traced run: `trace.json`, which Perfetto opens, and what each rank recorded.
//!
//! A rank's file `trace/rank-NNNNN.bin` names its run and has a checksum ([`write_trace_file`]). It
//! holds the rank's [`Timeline`] in the runtime's wire format. Times are by the rank's own clock,
//! beside the known relation of that clock to others, so that the merged file can be made again.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use weft_io::read_regular;
use weft_report::{read_trace_file, write_trace_file};
use weft_runtime::comm::Rank;
use weft_runtime::trace::{Timeline, write_timelines};

use super::{OutputError, RunDirectory};

/// Name of the merged trace.
pub const TRACE: &str = "trace.json";

/// Writes what a rank of the run with this identity recorded: the bytes of its [`Timeline`] on the
/// wire.
///
/// # Errors
/// [`OutputError::Write`].
pub fn write_rank_trace(
    directory: &RunDirectory,
    run: &str,
    rank: Rank,
    bytes: &[u8],
) -> Result<PathBuf, OutputError> {
    directory.write(&format!("trace/rank-{:05}.bin", rank.0), |out| {
        write_trace_file(out, run, bytes)
    })
}

/// Reads what a rank recorded.
///
/// # Errors
/// [`OutputError::Read`]; [`OutputError::Malformed`] if it is no trace of a rank.
pub fn read_rank_trace(path: &Path) -> Result<Timeline, OutputError> {
    let bytes = read_regular(path, u64::MAX).map_err(OutputError::read(path))?;
    let malformed = |what: String| OutputError::Malformed {
        path: path.to_owned(),
        what,
    };
    let (_, timeline) = read_trace_file(&bytes).map_err(malformed)?;
    Ok(timeline)
}

/// Writes the merged trace; the timelines are aligned.
///
/// # Errors
/// [`OutputError::Write`].
pub fn write_trace(run: &RunDirectory, timelines: &[Timeline]) -> Result<PathBuf, OutputError> {
    run.write(TRACE, |mut out: &mut dyn Write| -> io::Result<()> {
        write_timelines(timelines, &mut out)
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use weft_runtime::wire;

    use super::*;

    #[test]
    fn rank_traces_are_read_again_and_others_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        let timeline = Timeline::new(Rank(3), Vec::new(), vec!["tests".to_owned()], 9);
        let bytes = wire::encode(&timeline).unwrap();
        let path = write_rank_trace(&run, "00ff", Rank(3), &bytes).unwrap();
        assert!(path.ends_with("trace/rank-00003.bin"));
        assert_eq!(read_rank_trace(&path).unwrap(), timeline);
        let whole = fs::read(&path).unwrap();
        for bytes in [&whole[..20], &whole[1..], b"", &[&whole[..], b"x"].concat()] {
            fs::write(&path, bytes).unwrap();
            let error = read_rank_trace(&path).unwrap_err();
            assert!(matches!(error, OutputError::Malformed { .. }), "{error}");
        }
        fs::remove_file(&path).unwrap();
        assert!(matches!(
            read_rank_trace(&path).unwrap_err(),
            OutputError::Read { .. }
        ));
    }
}
