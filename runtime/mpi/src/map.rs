//! Files that a process reads as memory.

#![expect(
    unsafe_code,
    reason = "a mapping of a file is only sound if nobody writes to it"
)]

use std::fs::File;
use std::io;

use memmap2::Mmap;

/// Maps a whole file to be read, for as long as the process runs. The system reads a page of it
/// when somebody first looks at it, and processes of one machine share pages.
///
/// The file must not be changed while the process runs: programs that write it put a new file into
/// its place. A process that reads what has been cut off a file is killed by the system (SIGBUS).
///
/// # Errors
/// The file cannot be mapped.
pub fn map_file(file: &File) -> io::Result<&'static [u8]> {
    // SAFETY: the mapping is private and read only, and the process never writes to the file. If
    // another process does, bytes of the slice may change while they are read. The documentation
    // asks users not to write to the files of a job that runs.
    let map = unsafe { Mmap::map(file)? };
    Ok(Box::leak(Box::new(map)))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_mapped_file_has_the_bytes_of_the_file() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"weft").unwrap();
        let mapped = map_file(file.as_file()).unwrap();
        assert_eq!(mapped, b"weft");
        // The mapping outlives the file.
        file.close().unwrap();
        assert_eq!(mapped, b"weft");
    }
}
