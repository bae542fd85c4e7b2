//! The report as a page: one file with everything in it, that works from a disk, in any browser of
//! today.
//!
//! Findings, tables and bars need no script and are HTML. Everything to be zoomed, turned or
//! pointed at is drawn by `page.js` from arrays in the page.

mod data;
mod pack;
mod static_parts;

use std::fmt;
use std::io::{self, Write};

use weft_io::Printable;

use self::static_parts::{
    bars, findings, histograms, memory_table, patch_table, phase_table, tiles,
};
use crate::certification::certification;
use crate::digest::Digest;
use crate::findings::Findings;
use crate::memory::LargestParts;
use crate::run::Run;
use crate::text::{balance, comparison, heading};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Text with what HTML takes for its own marked, and what nobody would see as escapes.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in Printable(self.0).to_string().chars() {
            match letter {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                other => write!(f, "{other}")?,
            }
        }
        Ok(())
    }
}

/// Text whose words between backquotes are code.
fn prose(text: &str) -> String {
    let parts = text.split('`').enumerate();
    parts
        .map(|(k, part)| match k % 2 {
            0 => Escaped(part).to_string(),
            _ => format!("<code>{}</code>", Escaped(part)),
        })
        .collect()
}

/// Writes the page.
pub(crate) fn write(runs: &[(Run, Digest, Findings)], out: &mut dyn Write) -> io::Result<()> {
    let names: Vec<&str> = runs
        .iter()
        .map(|(_, digest, _)| digest.name.as_str())
        .collect();
    write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"generator\" content=\"weft report {version}\">\n<title>{title}: weft report</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <style>\n{STYLE}</style>\n\
         <script>window.weftErrors = []; addEventListener('error', e => weftErrors.push(String(e.message)));\n\
         addEventListener('unhandledrejection', e => weftErrors.push(String(e.reason)));</script>\n\
         </head>\n<body>\n<main>\n",
        version = env!("CARGO_PKG_VERSION"),
        title = Escaped(&names.join(", ")),
    )?;
    if runs.len() > 1 {
        side_by_side(runs, out)?;
    }
    for (number, run) in runs.iter().enumerate() {
        one(number, run, out)?;
    }
    write!(
        out,
        "</main>\n<div id=\"tip\" role=\"tooltip\" hidden></div>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    )
}

fn side_by_side(runs: &[(Run, Digest, Findings)], out: &mut dyn Write) -> io::Result<()> {
    write!(
        out,
        "<section id=\"compare\">\n<h1>Runs side by side</h1>\n<div class=\"wide\"><table>\n<tr><th></th>"
    )?;
    for (number, (_, digest, _)) in runs.iter().enumerate() {
        write!(
            out,
            "<th><a href=\"#run-{number}\">{}</a></th>",
            Escaped(&digest.name)
        )?;
    }
    writeln!(out, "</tr>")?;
    let both: Vec<(&Run, &Digest)> = runs.iter().map(|(run, digest, _)| (run, digest)).collect();
    for (name, cells) in comparison(&both) {
        let class = if name.starts_with(' ') {
            " class=\"part\""
        } else {
            ""
        };
        write!(
            out,
            "<tr><th scope=\"row\"{class}>{}</th>",
            Escaped(name.trim())
        )?;
        for cell in cells {
            write!(out, "<td>{}</td>", Escaped(&cell))?;
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</table></div>\n</section>")
}

/// A section of a run: its name within the page, its heading, and what it is about.
fn begin(
    out: &mut dyn Write,
    number: usize,
    id: &str,
    heading: &str,
    about: &str,
) -> io::Result<()> {
    writeln!(
        out,
        "<section id=\"{id}-{number}\" class=\"{id}\">\n<h2>{heading}</h2>\n<p class=\"about\">{about}</p>"
    )
}

fn one(
    number: usize,
    (run, digest, said): &(Run, Digest, Findings),
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(
        out,
        "<article id=\"run-{number}\" data-run=\"{number}\">\n<header>\n<h1>{}</h1>\n<p>{}</p>\n</header>",
        Escaped(&digest.name),
        prose(&heading(run, digest).replacen(&format!("{}: ", digest.name), "", 1))
    )?;
    findings(out, number, said)?;
    for note in run.notes.iter().chain(&run.record.warnings) {
        writeln!(out, "<p class=\"note\">{}</p>", prose(note))?;
    }
    tiles(out, digest)?;
    begin(
        out,
        number,
        "phases",
        "Phases",
        "Each phase's fastest and slowest rank. Imbalance is max / avg − 1. All ranks leave <code>collide</code> \
         together, so only the part of it in tasks tells who had the work. Other is what goes by between steps: pictures \
         are drawn and written, frames and checkpoints written, and for the history ranks report to the first, which writes a line for \
         the step before. Idle is what ranks wait in steps.",
    )?;
    phase_table(out, digest)?;
    writeln!(
        out,
        "<p id=\"balance-{number}\">{}</p>",
        prose(&balance(digest))
    )?;
    if let Some(certification) = certification(&run.history) {
        writeln!(
            out,
            "<p id=\"certification-{number}\">{}</p>",
            prose(&certification)
        )?;
    }
    if let Some(memory) = run.memory() {
        writeln!(out, "<p id=\"memory-{number}\">{}</p>", prose(&memory))?;
    }
    if let Some(held) = LargestParts::of(&run.record) {
        memory_table(out, &held)?;
    }
    writeln!(out, "</section>")?;
    if let Some(traced) = &digest.traced {
        begin(
            out,
            number,
            "timeline",
            "The timeline of every rank",
            "Wheel zooms, dragging moves, double click shows all. Keys, once the picture is chosen: ← → move, + − zoom, \
             ↑ ↓ choose a rank, n p go from task to task, Home shows all. Point at anything to see what it is.",
        )?;
        writeln!(
            out,
            "<div class=\"canvas-place\" data-draws=\"timeline\"></div>\n</section>"
        )?;
        begin(
            out,
            number,
            "utilisation",
            "How many ranks are at work",
            "Work and idle time of all workers, over the same time as above.",
        )?;
        writeln!(
            out,
            "<div class=\"canvas-place\" data-draws=\"utilisation\"></div>\n</section>"
        )?;
        begin(
            out,
            number,
            "idle",
            "Where each rank’s time went",
            "In traced steps, every moment of a worker has one use or one cause of idleness. <em>Work waited at another \
             rank</em> and <em>work only inside running tasks</em> are what another policy can mend; <em>no work \
             anywhere</em> is not.",
        )?;
        bars(out, traced)?;
        writeln!(out, "</section>")?;
        begin(
            out,
            number,
            "steals",
            "Steals between ranks",
            "Tasks that went from a victim (column) to a thief (row).",
        )?;
        writeln!(
            out,
            "<div class=\"canvas-place\" data-draws=\"steals\"></div>\n</section>"
        )?;
        begin(
            out,
            number,
            "sizes",
            "How large tasks are",
            "Each bar is twice as large as the one before it. A task that was set down and taken up again counts \
             twice.",
        )?;
        histograms(out, traced)?;
        writeln!(out, "</section>")?;
    }
    if !run.history.is_empty() {
        begin(
            out,
            number,
            "steps",
            "Time of each phase, step by step",
            "The times are those of the slowest rank. Click on a step that was traced to see it in the timeline.",
        )?;
        writeln!(
            out,
            "<div class=\"canvas-place\" data-draws=\"steps\"></div>\n</section>"
        )?;
    }
    if let Some(traced) = &digest.traced {
        begin(
            out,
            number,
            "patches",
            "Which patches have the tests",
            "A test between two patches counts half for each. <em>Placed elsewhere</em>: begun on ranks that do not own the \
             patch, as a plan of costs puts them (forecast policies), or for the other patch of the two. <em>Stolen</em>: gone from \
             rank to rank because one had nothing to do, as far as traces tell, which say when tasks came, not which.",
        )?;
        patch_table(out, traced)?;
        if run.cloth.is_some() {
            writeln!(
                out,
                "<div class=\"canvas-place\" data-draws=\"cloth\"></div>"
            )?;
        }
        writeln!(out, "</section>")?;
    }
    let (meta, arrays) = data::of(run, digest);
    // Within a script nothing may look like the end of one.
    let meta = meta.to_string().replace('<', "\\u003c");
    writeln!(
        out,
        "<script type=\"application/json\" id=\"meta-{number}\">{meta}</script>"
    )?;
    write!(out, "<script type=\"text/plain\" id=\"blob-{number}\">")?;
    arrays.write(out)?;
    writeln!(out, "</script>\n</article>")
}
