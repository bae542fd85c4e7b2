//! `weft completions`: what shells and `man` want to know of the command, made from its own
//! description.

use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::{Shell, generate};
use clap_mangen::Man;
use weft_io::Show as _;
use weftwork::output::write_whole;

use crate::cli::Arguments;
use crate::commands::make_folder;
use crate::{Failure, say};

/// The name of the command.
const NAME: &str = "weft";

/// Prints completions for a shell, or writes man pages into a folder.
pub(crate) fn write(shell: Option<Shell>, man: Option<&Path>) -> Result<(), Failure> {
    if let Some(folder) = man {
        return write_pages(folder);
    }
    let Some(shell) = shell else {
        // The command line wants one of both.
        return Ok(());
    };
    let mut script = Vec::new();
    generate(shell, &mut Arguments::command(), NAME, &mut script);
    say(String::from_utf8_lossy(&script))
}

/// Writes `weft.1`, and `weft-run.1` and so on for the commands.
fn write_pages(folder: &Path) -> Result<(), Failure> {
    make_folder(folder)?;
    let mut command = Arguments::command().name(NAME);
    command.build();
    let mut pages = vec![(NAME.to_owned(), command.clone())];
    for page in command
        .get_subcommands()
        .filter(|page| page.get_name() != "help")
    {
        let name = format!("{NAME}-{}", page.get_name());
        let shown: &'static str = name.clone().leak();
        pages.push((name, page.clone().name(shown)));
    }
    let mut told = String::new();
    for (name, page) in pages {
        let file = folder.join(format!("{name}.1"));
        let man = Man::new(page);
        write_whole(&file, |mut out| man.render(&mut out)).map_err(|error| Failure {
            code: 5,
            message: error.to_string(),
        })?;
        told += &format!("Wrote {}\n", file.shown());
    }
    say(told)
}
