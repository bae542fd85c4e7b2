//! Reading files with care, making temporary ones, and showing text so that it is safe.
//!
//! | file | what |
//! |---|---|
//! | `file` | opens and reads regular files, and refuses all others at once |
//! | `printable` | shows text from outside without control characters |
//! | `shell` | quotes words for a POSIX shell |
//! | `temporary` | makes temporary files beside those that they are to become |
//!
//! This is a crate of its own because the simulator, the reports and the studies need all of it,
//! and the crate that these three share otherwise is `weft-runtime`, which opens no files, shows
//! nothing to users, and is used without the rest.
//!
//! The crate knows nothing of cloth, of runs and of their files' formats.

mod file;
mod printable;
mod shell;
mod temporary;

pub use file::{NotRegular, open_regular, read_regular, read_text};
pub use printable::{Printable, Show, Shown};
pub use shell::{shell_path, shell_word};
pub use temporary::{PARTIAL, folder_of, temporary, temporary_beside, unpredictable};
