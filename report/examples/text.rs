//! Prints the report of runs, without the command: `cargo run -p weft-report --example text -- DIR…`.

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::path::Path;

use weft_report::{Report, ReportError, Run};

fn main() -> Result<(), ReportError> {
    let runs: Result<Vec<Run>, _> = std::env::args()
        .skip(1)
        .map(|dir| Run::read(Path::new(&dir)))
        .collect();
    print!("{}", Report::new(runs?).text());
    Ok(())
}
