//! Parts of the page that need no script: what stands out, tables, bars.

use std::io::{self, Write};

use super::{Escaped, prose};
use crate::digest::{Digest, Traced};
use crate::division::{Parts, Use};
use crate::findings::{Finding, Findings};
use crate::format::{bytes, count, percent, seconds, total};
use crate::memory::LargestParts;
use crate::record::{EFFICIENCY_OF, Efficiency, Phase};
use crate::table::{OTHER, left};
use crate::text::{efficiency, efficiency_of_traced};
use crate::work::Histogram;

/// Patches that are listed.
const LISTED: usize = 12;

/// The three answers, and what to do next.
pub(super) fn findings(out: &mut dyn Write, number: usize, said: &Findings) -> io::Result<()> {
    writeln!(out, "<section id=\"summary-{number}\" class=\"summary\">")?;
    let card = |out: &mut dyn Write, question: &str, finding: &Finding| {
        let (class, mark) = match (finding.at_fault, finding.unknown) {
            (true, _) => ("fault", "▲"),
            (false, true) => ("unknown", "?"),
            (false, false) => ("fine", "●"),
        };
        writeln!(
            out,
            "<div class=\"card {class}\"><h2>{question}</h2><p class=\"answer\"><span aria-hidden=\"true\">{mark}</span> \
             {}</p><p>{}</p></div>",
            prose(&finding.answer),
            prose(&finding.why)
        )
    };
    card(out, "Which phase?", &said.phase)?;
    card(out, "Which patches?", &said.patch)?;
    card(out, "Which policy?", &said.policy)?;
    writeln!(out, "</section>")?;
    if said.next.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "<section id=\"next-{number}\" class=\"next\"><h2>What to try</h2>"
    )?;
    for next in &said.next {
        writeln!(out, "<p>{}</p>", prose(&next.say))?;
        if let Some(command) = &next.command {
            writeln!(out, "<pre><code>{}</code></pre>", Escaped(command))?;
        }
    }
    writeln!(out, "</section>")
}

/// Efficiencies and counts.
pub(super) fn tiles(out: &mut dyn Write, digest: &Digest) -> io::Result<()> {
    writeln!(out, "<div class=\"tiles\">")?;
    let tile = |out: &mut dyn Write, name: &str, value: &str| {
        writeln!(
            out,
            "<div><span class=\"value\">{}</span> <span class=\"name\">{name}</span></div>",
            Escaped(value)
        )
    };
    // The efficiencies of traced steps stand below their table.
    if let Some(Efficiency {
        load_balance,
        communication,
        parallel,
    }) = digest.efficiency
    {
        tile(
            out,
            "load balance, all steps",
            &format!("{load_balance:.2}"),
        )?;
        tile(
            out,
            "communication, all steps",
            &format!("{communication:.2}"),
        )?;
        tile(out, "parallel, all steps", &format!("{parallel:.2}"))?;
    }
    let c = &digest.counts;
    if c.tasks == 0 {
        return writeln!(out, "</div>");
    }
    tile(out, "tests", &count(c.tests))?;
    tile(out, "tasks", &count(c.tasks))?;
    tile(out, "tasks moved", &count(c.moved))?;
    tile(out, "requests refused", &count(c.refused))?;
    if let Some(sent) = c.bytes {
        tile(out, "sent for that", &bytes(sent))?;
    }
    writeln!(out, "</div>")
}

/// The phase tables.
pub(super) fn phase_table(out: &mut dyn Write, digest: &Digest) -> io::Result<()> {
    let head = |out: &mut dyn Write, what: &str| {
        writeln!(
            out,
            "<div class=\"wide\"><table><caption>{what}</caption>\n<tr><th>phase</th><th>min</th><th>rank</th>\
             <th>avg</th><th>max</th><th>rank</th><th>imbalance</th><th>share</th></tr>"
        )
    };
    let line = |out: &mut dyn Write, phase: &Phase, whole: f64| {
        let part = if phase.name.starts_with(' ') {
            " class=\"part\""
        } else {
            ""
        };
        writeln!(
            out,
            "<tr><th scope=\"row\"{part}>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>\
             <td>{}</td></tr>",
            Escaped(phase.name.trim()),
            seconds(phase.min_s),
            phase.min_rank,
            seconds(phase.avg_s),
            seconds(phase.max_s),
            phase.max_rank,
            percent(phase.imbalance()),
            percent(phase.avg_s / whole.max(f64::MIN_POSITIVE)),
        )
    };
    let rest = |out: &mut dyn Write, name: &str, s: f64, whole: f64| {
        writeln!(
            out,
            "<tr><th scope=\"row\">{name}</th><td></td><td></td><td>{}</td><td></td><td></td><td></td><td>{}</td></tr>",
            seconds(s),
            percent(s / whole.max(f64::MIN_POSITIVE)),
        )
    };
    let end = |out: &mut dyn Write, e: Option<Efficiency>, of: &str| {
        let said = efficiency(e, of);
        writeln!(out, "</table>")?;
        if !said.is_empty() {
            writeln!(out, "<p class=\"about\">{}</p>", Escaped(said.trim_end()))?;
        }
        writeln!(out, "</div>")
    };
    writeln!(out, "<div class=\"tables\">")?;
    if !digest.phases.is_empty() {
        head(out, "The whole run, with waits")?;
        for phase in &digest.phases {
            line(out, phase, digest.loop_s)?;
        }
        rest(
            out,
            OTHER,
            left(&digest.phases, digest.loop_s),
            digest.loop_s,
        )?;
        for part in digest.between.iter().filter(|part| part.max_s > 0.0) {
            let name = format!("  {}", part.name);
            let part = Phase {
                name,
                ..part.clone()
            };
            line(out, &part, digest.loop_s)?;
        }
        end(out, digest.efficiency, EFFICIENCY_OF)?;
    }
    if let Some(traced) = &digest.traced {
        let (first, last) = traced.steps;
        head(
            out,
            &format!(
                "Work in the traced steps, {first} to {last}, without waits{}",
                traced.mark()
            ),
        )?;
        for phase in &traced.work {
            line(out, phase, traced.mean_s)?;
        }
        rest(
            out,
            "idle",
            left(&traced.work, traced.mean_s),
            traced.mean_s,
        )?;
        end(out, traced.efficiency, &efficiency_of_traced(traced))?;
    }
    writeln!(out, "</div>")
}

/// Each rank's time, divided up.
pub(super) fn bars(out: &mut dyn Write, traced: &Traced) -> io::Result<()> {
    let all = traced.division.all();
    let shown: Vec<Use> = Use::ALL
        .into_iter()
        .filter(|&what| all.of(what) > 0)
        .collect();
    writeln!(out, "<ul class=\"legend\">")?;
    for &what in &shown {
        writeln!(
            out,
            "<li><span class=\"swatch u{}\"></span>{} <b>{}</b>{}</li>",
            what as usize,
            what.name(),
            percent(traced.share(what)),
            traced.mark()
        )?;
    }
    writeln!(
        out,
        "</ul>\n<div class=\"bars{}\">",
        if traced.tracks.ranks.len() > 24 {
            " many"
        } else {
            ""
        }
    )?;
    let ranks: Vec<Parts> = (0..traced.tracks.ranks.len())
        .map(|r| traced.division.rank(r))
        .collect();
    let longest = ranks.iter().map(Parts::total).max().unwrap_or(1).max(1) as f64;
    for (rank, parts) in ranks.iter().enumerate() {
        write!(
            out,
            "<div class=\"bar\"><span class=\"rank\">{rank}</span><span class=\"whole\">"
        )?;
        for &what in shown.iter().filter(|&&what| parts.of(what) > 0) {
            let ns = parts.of(what) as f64;
            write!(
                out,
                "<i class=\"u{}\" style=\"width:{:.3}%\" title=\"rank {rank}: {} {}, {}\"></i>",
                what as usize,
                100.0 * ns / longest,
                what.name(),
                percent(ns / parts.total().max(1) as f64),
                seconds(ns * 1e-9),
            )?;
        }
        writeln!(out, "</span></div>")?;
    }
    writeln!(out, "</div>")
}

/// Sizes of tasks.
pub(super) fn histograms(out: &mut dyn Write, traced: &Traced) -> io::Result<()> {
    let [tests, times] = &traced.sizes;
    writeln!(out, "<div class=\"pair\">")?;
    histogram(out, tests, "tests in a task", of_tests, |bin| {
        count(lowest(bin) as u64)
    })?;
    histogram(out, times, "time in a task", of_times, |bin| match bin {
        0 => "0".to_owned(),
        _ => micros(lowest(bin)),
    })?;
    writeln!(out, "</div>")
}

/// The least size that a bin holds.
fn lowest(bin: usize) -> f64 {
    match bin {
        0 => 0.0,
        _ => 2_f64.powi(bin as i32 - 1),
    }
}

/// The numbers of tests that a bin holds.
fn of_tests(bin: usize) -> String {
    let (low, high) = (lowest(bin) as u64, (lowest(bin + 1) - 1.0) as u64);
    match low == high {
        true => count(low),
        false => format!("{} to {}", count(low), count(high)),
    }
}

/// The times that a bin holds, which are counted in whole µs.
fn of_times(bin: usize) -> String {
    match bin {
        0 => "less than 1 µs".to_owned(),
        _ => format!("{} to {}", micros(lowest(bin)), micros(lowest(bin + 1))),
    }
}

/// A power of two of µs, in few letters.
fn micros(us: f64) -> String {
    let (unit, name) = match us {
        us if us < 1e3 => (1.0, "µs"),
        us if us < 1e6 => (1e3, "ms"),
        _ => (1e6, "s"),
    };
    format!("{:.0} {name}", us / unit)
}

/// Bars for the tasks of each size; in the darker part of the axis below, the sizes.
fn histogram(
    out: &mut dyn Write,
    histogram: &Histogram,
    what: &str,
    range: impl Fn(usize) -> String,
    size: impl Fn(usize) -> String,
) -> io::Result<()> {
    /// Width of a letter of the axis.
    const LETTER: f64 = 6.0;
    const WIDTH: usize = 480;
    const HEIGHT: usize = 150;
    let bins = histogram.counts.len().max(1);
    let step = WIDTH as f64 / bins as f64;
    // Names of sizes stand apart.
    let longest = (0..bins).map(|bin| size(bin).chars().count() + 1).max();
    let every = (LETTER * longest.unwrap_or(1) as f64 / step)
        .ceil()
        .max(1.0) as usize;
    let most = histogram.counts.iter().copied().max().unwrap_or(0).max(1) as f64;
    let all = total(histogram.sums.iter().copied()).max(1) as f64;
    writeln!(
        out,
        "<figure><svg viewBox=\"-4 -14 {} {}\" role=\"img\" aria-label=\"Histogram: {what}\">",
        WIDTH + 8,
        HEIGHT + 40
    )?;
    for (bin, (&tasks, &sum)) in histogram.counts.iter().zip(&histogram.sums).enumerate() {
        let height = tasks as f64 / most * HEIGHT as f64;
        let x = bin as f64 * step;
        writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\"><title>{}: {} tasks, {} of the \
             total</title></rect>",
            HEIGHT as f64 - height,
            (step - 2.0).max(1.0),
            range(bin),
            count(tasks),
            percent(sum as f64 / all),
        )?;
        if tasks > 0 {
            writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" class=\"count\">{}</text>",
                x + step / 2.0 - 1.0,
                HEIGHT as f64 - height - 3.0,
                short(tasks)
            )?;
        }
        if bin % every == 0 {
            writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{}\">{}</text>",
                x + step / 2.0 - 1.0,
                HEIGHT + 12,
                size(bin)
            )?;
        }
    }
    writeln!(
        out,
        "<line x1=\"0\" x2=\"{WIDTH}\" y1=\"{HEIGHT}\" y2=\"{HEIGHT}\"/></svg><figcaption>{what}, {} tasks</figcaption></figure>",
        count(histogram.total())
    )
}

/// A number with few digits.
fn short(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..10_000_000 => format!("{}k", number / 1000),
        _ => format!("{}M", number / 1_000_000),
    }
}

/// The largest parts of the memory of a rank.
pub(super) fn memory_table(out: &mut dyn Write, held: &LargestParts) -> io::Result<()> {
    writeln!(
        out,
        "<div class=\"wide\"><table><caption>{}</caption>\n<tr><th>part</th><th>memory</th><th>share</th></tr>",
        Escaped(&held.heading())
    )?;
    for (name, size) in &held.parts {
        writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td></tr>",
            Escaped(name),
            bytes(*size),
            percent(held.share(*size))
        )?;
    }
    writeln!(out, "</table></div>")
}

/// The patches with the most tests.
pub(super) fn patch_table(out: &mut dyn Write, traced: &Traced) -> io::Result<()> {
    let all: f64 = traced.patches.iter().map(|work| work.tests).sum();
    let mut ranked: Vec<usize> = (0..traced.patches.len()).collect();
    // A patch whose share would be shown as 0.0 % is left out.
    ranked.retain(|&patch| traced.patches[patch].tests > 5e-4 * all);
    ranked.sort_by(|&a, &b| {
        traced.patches[b]
            .tests
            .total_cmp(&traced.patches[a].tests)
            .then(a.cmp(&b))
    });
    writeln!(
        out,
        "<div class=\"wide\"><table>\n<tr><th>patch</th><th>owner</th><th>share of tests</th>\
         <th>tests for a triangle in a step</th><th>placed elsewhere</th><th>stolen</th><th>most of that by rank</th></tr>"
    )?;
    let or_dash = |number: Option<u32>| number.map_or_else(|| "–".to_owned(), |n| n.to_string());
    for &patch in ranked.iter().take(LISTED) {
        let work = &traced.patches[patch];
        let per_triangle = work.per_triangle().map_or_else(
            || "–".to_owned(),
            |tests| format!("{:.1}", tests / traced.count.max(1) as f64),
        );
        writeln!(
            out,
            "<tr><th scope=\"row\">{patch}</th><td>{}</td><td>{}</td><td>{per_triangle}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            or_dash(work.owner),
            percent(work.tests / all.max(1.0)),
            percent((work.moved() - work.stolen()).max(0.0) / work.tests.max(1.0)),
            percent(work.stolen() / work.tests.max(1.0)),
            or_dash(work.thief()),
        )?;
    }
    writeln!(out, "</table></div>")?;
    if ranked.len() > LISTED {
        writeln!(
            out,
            "<p class=\"about\">{} more have their share.</p>",
            ranked.len() - LISTED
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_named_by_what_they_hold() {
        assert_eq!([0, 1, 2, 3].map(of_tests), ["0", "1", "2 to 3", "4 to 7"]);
        assert_eq!(
            [0, 1, 2].map(of_times),
            ["less than 1 µs", "1 µs to 2 µs", "2 µs to 4 µs"]
        );
        assert_eq!(of_times(11), "1 ms to 2 ms");
        // No two of them have one name.
        let names: std::collections::BTreeSet<String> = (0..40).map(of_times).collect();
        assert_eq!(names.len(), 40);
        assert!(!of_tests(64).is_empty() && !of_times(64).is_empty());
    }

    /// Names below bars do not stand on each other, of any number of bins.
    #[test]
    fn names_of_sizes_stand_apart() {
        for bins in 1..=30 {
            let mut all = Histogram::default();
            (0..bins).for_each(|bin| all.add(lowest(bin) as u64));
            let mut page = Vec::new();
            histogram(&mut page, &all, "time", of_times, |bin| micros(lowest(bin))).unwrap();
            let page = String::from_utf8(page).unwrap();
            let names = page
                .split("<text x=\"")
                .skip(1)
                .filter(|text| text.contains("y=\"162\""));
            let places: Vec<(f64, usize)> = names
                .map(|text| {
                    let (x, rest) = text.split_once('"').unwrap();
                    let name = rest.split('>').nth(1).unwrap().split('<').next().unwrap();
                    (x.parse().unwrap(), name.chars().count())
                })
                .collect();
            assert!(!places.is_empty());
            for pair in places.windows(2) {
                let half = 2.75 * (pair[0].1 + pair[1].1) as f64;
                assert!(pair[1].0 - pair[0].0 > half, "{bins}: {pair:?}");
            }
        }
    }
}
