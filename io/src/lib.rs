//! What goes into weftwork and what comes out of it: files that are opened with care, and text that is safe to show.
//!
//! | file | what |
//! |---|---|
//! | `file` | opens and reads regular files, and refuses pipes, devices and directories without waiting for them |
//! | `printable` | shows text from outside without characters that control a terminal or deceive a reader |
//! | `shell` | quotes words for a POSIX shell |
//!
//! This is a crate of its own because the simulator, the reports and the studies need all of it, and the crate that these
//! three share otherwise is `weft-runtime`, which opens no files, shows nothing to users, and is used without the rest.
//!
//! The crate knows nothing of cloth, of runs and of their files' formats.

mod file;
mod printable;
mod shell;

pub use file::{NotRegular, open_regular, read_regular, read_text};
pub use printable::{Printable, Show, Shown};
pub use shell::{shell_path, shell_word};
