//! Comparing two ways by turns on a machine that others use: bare MPI's turn, and what came of all.

use std::fmt;
use std::time::Instant;

use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator as _, Destination as _, Source as _};

/// Microseconds of a round trip between ranks 0 and 1 by blocking sends and receives of one buffer.
#[expect(clippy::disallowed_methods, reason = "a bench reads the clock")]
pub(crate) fn bare(bytes: &mut [u8], trips: u32) -> f64 {
    let world = SimpleCommunicator::world();
    let peer = world.process_at_rank(1 - world.rank());
    let begin = Instant::now();
    for _ in 0..trips {
        if world.rank() == 0 {
            peer.send_with_tag(&*bytes, 1);
            peer.receive_into_with_tag(&mut *bytes, 1);
        } else {
            peer.receive_into_with_tag(&mut *bytes, 1);
            peer.send_with_tag(&*bytes, 1);
        }
    }
    begin.elapsed().as_secs_f64() / f64::from(trips) * 1e6
}

/// Times of turns, in microseconds.
#[derive(Default)]
pub(crate) struct Turns {
    ours: Vec<f64>,
    bare: Vec<f64>,
}

impl Turns {
    pub(crate) fn add(&mut self, ours: f64, bare: f64) {
        self.ours.push(ours);
        self.bare.push(bare);
    }
}

/// Medians of both, and the quartiles of their ratio.
impl fmt::Display for Turns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = self.ours.iter().zip(&self.bare);
        let ratios: Vec<f64> = pairs.map(|(ours, bare)| ours / bare).collect();
        write!(
            f,
            "{:.3} {:.3} {:.2} {:.2} {:.2}",
            quantile(&self.ours, 0.5),
            quantile(&self.bare, 0.5),
            quantile(&ratios, 0.25),
            quantile(&ratios, 0.5),
            quantile(&ratios, 0.75),
        )
    }
}

fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (share * (sorted.len().max(1) - 1) as f64).round() as usize;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}
