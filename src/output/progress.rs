//! The progress of a run as users see it: a bar on a terminal, plain lines otherwise; or lines of
//! JSON, for scripts.
//!
//! A plain line is made of pairs, key and value, always the same ones in the same order, so that
//! `awk '/^step / { print $4, $8 }'` plots the residual. The time that has passed is handed in;
//! only the bar (`indicatif`) reads a clock of its own, to tell the time that is left.

use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::HistoryRow;
use super::events::{Event, step_line};

/// Shows how far the run is.
pub struct Progress {
    total: u64,
    /// Steps that an earlier run took.
    before: u64,
    every: u64,
    sink: Sink,
}

enum Sink {
    Bar(ProgressBar),
    Lines(Box<dyn Write + Send>),
    Json(Box<dyn Write + Send>),
    Nothing,
}

impl Progress {
    /// Shows a bar on stderr where that is a terminal; otherwise about twenty plain lines on
    /// stdout.
    #[must_use]
    pub fn new(total_steps: u64, terminal: bool) -> Self {
        if terminal {
            let bar = ProgressBar::new(total_steps);
            let template = "step {pos}/{len} {bar:30} {eta} left  {msg}";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            Self {
                total: total_steps,
                before: 0,
                every: 1,
                sink: Sink::Bar(bar),
            }
        } else {
            Self::lines(
                total_steps,
                (total_steps / 20).max(1),
                Box::new(io::stdout()),
            )
        }
    }

    /// Plain lines to `out`: every `every` steps, and the last one.
    #[must_use]
    pub fn lines(total_steps: u64, every: u64, out: Box<dyn Write + Send>) -> Self {
        Self {
            total: total_steps,
            before: 0,
            every: every.max(1),
            sink: Sink::Lines(out),
        }
    }

    /// A line of JSON on stdout for each step, and for all else that happens.
    #[must_use]
    pub fn json(total_steps: u64) -> Self {
        Self {
            total: total_steps,
            before: 0,
            every: 1,
            sink: Sink::Json(Box::new(io::stdout())),
        }
    }

    /// Shows nothing (`--quiet`).
    #[must_use]
    pub fn quiet() -> Self {
        Self {
            total: 0,
            before: 0,
            every: 1,
            sink: Sink::Nothing,
        }
    }

    /// Continues after this number of steps, which took none of the run's time.
    #[must_use]
    pub fn after(mut self, steps: u64) -> Self {
        self.before = steps;
        if let Sink::Bar(bar) = &self.sink {
            bar.set_position(steps);
            bar.reset_eta();
        }
        self
    }

    /// Tells that a step has ended, `elapsed` after the loop began.
    ///
    /// # Errors
    /// If a line cannot be written, for instance because the reader of a pipe has gone. A run need
    /// not end because nobody watches: the caller decides.
    pub fn step(&mut self, row: &HistoryRow, elapsed: Duration) -> io::Result<()> {
        match &mut self.sink {
            Sink::Bar(bar) => {
                bar.set_message(format!(
                    "cg {}  contacts {}",
                    row.cg_iterations, row.contacts
                ));
                bar.set_position(row.step);
                Ok(())
            }
            Sink::Lines(out) if row.step.is_multiple_of(self.every) || row.step == self.total => {
                let left = left(self.total, self.before, row.step, elapsed);
                out.write_all(line(row, elapsed, left).as_bytes())?;
                out.flush()
            }
            Sink::Json(out) => {
                let left = left(self.total, self.before, row.step, elapsed);
                let line = step_line(row, elapsed.as_secs_f64(), left);
                out.write_all(line.as_bytes())?;
                out.flush()
            }
            Sink::Lines(_) | Sink::Nothing => Ok(()),
        }
    }

    /// Tells at once, on stderr, what cannot wait for the end.
    pub fn warn(&mut self, warning: &str) {
        let tell = || drop(writeln!(io::stderr(), "warning: {warning}"));
        match &mut self.sink {
            Sink::Bar(bar) => bar.suspend(tell),
            // There is nobody else to tell.
            Sink::Lines(_) => tell(),
            Sink::Json(_) => self.happened(&Event::Warning {
                message: warning.to_owned(),
            }),
            Sink::Nothing => {}
        }
    }

    /// Tells a script what has happened beside steps; people see it where it is.
    pub fn happened(&mut self, event: &Event) {
        if let Sink::Json(out) = &mut self.sink {
            // Nobody need watch for the run to go on.
            drop(
                out.write_all(event.line().as_bytes())
                    .and_then(|()| out.flush()),
            );
        }
    }

    /// Takes the bar away, before anything else is printed.
    pub fn finish(&mut self) {
        if let Sink::Bar(bar) = &self.sink {
            bar.finish_and_clear();
        }
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sink = match &self.sink {
            Sink::Bar(_) => "bar",
            Sink::Lines(_) => "lines",
            Sink::Json(_) => "json",
            Sink::Nothing => "nothing",
        };
        f.debug_struct("Progress")
            .field("total", &self.total)
            .field("every", &self.every)
            .field("sink", &sink)
            .finish()
    }
}

/// The time in s that is left if steps go on as they did since the run began, which was after
/// `before` of them.
fn left(total: u64, before: u64, step: u64, elapsed: Duration) -> f64 {
    let steps_left = total.saturating_sub(step) as f64;
    let taken = step.saturating_sub(before).max(1) as f64;
    elapsed.as_secs_f64() / taken * steps_left
}

fn line(row: &HistoryRow, elapsed: Duration, left: f64) -> String {
    format!(
        "step {} time_s {:.3} cg_it {} cg_res {:.1e} contacts {} constraints {} impulses {} \
         tasks {} steals {} physics_s {:.4} collide_s {:.4} solve_s {:.4} response_s {:.4} \
         wall_s {:.2} left_s {left:.0}\n",
        row.step,
        row.time_s,
        row.cg_iterations,
        row.cg_residual,
        row.contacts,
        row.constraints,
        row.impulses,
        row.tasks,
        row.steals,
        row.physics_s,
        row.collide_s,
        row.solve_s,
        row.response_s,
        elapsed.as_secs_f64(),
    )
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn plain_lines_are_pairs_every_n_steps_and_at_the_end() {
        let out = Shared::default();
        let mut progress = Progress::lines(7, 3, Box::new(out.clone()));
        for step in 1..=7 {
            let row = HistoryRow {
                step,
                time_s: 0.5,
                cg_residual: 8.25e-7,
                ..Default::default()
            };
            progress
                .step(&row, Duration::from_millis(100 * step))
                .unwrap();
        }
        let text = String::from_utf8(out.0.lock().unwrap().clone()).unwrap();
        assert_eq!(
            text.lines().next().unwrap(),
            "step 3 time_s 0.500 cg_it 0 cg_res 8.3e-7 contacts 0 constraints 0 impulses 0 tasks 0 \
             steals 0 physics_s 0.0000 collide_s 0.0000 solve_s 0.0000 response_s 0.0000 \
             wall_s 0.30 left_s 0"
        );
        let steps: Vec<_> = text
            .lines()
            .map(|line| line.split(' ').nth(1).unwrap().to_owned())
            .collect();
        assert_eq!(steps, ["3", "6", "7"]);
    }

    #[test]
    fn reader_that_has_gone_is_an_error_not_a_panic() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut progress = Progress::lines(1, 1, Box::new(Gone));
        let row = HistoryRow {
            step: 1,
            ..Default::default()
        };
        let error = progress.step(&row, Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
