//! The shortest tour of some cities by branch and bound, on whatever ranks there are.
//!
//! ```text
//! salesman CITIES threads RANKS
//! salesman CITIES virtual RANKS
//! mpirun -n RANKS salesman CITIES mpi        (built with --features mpi)
//! ```
//!
//! It prints the length of the shortest tour, and how many nodes all ranks have expanded. The
//! function `shortest` is the program. It knows nothing of what ranks are; `main` decides that.

use std::error::Error;

use serde::{Deserialize, Serialize};
use weft_runtime::comm::virtual_time::{self, VirtualOptions};
use weft_runtime::comm::{Collectives, Comm, Rank, threads};
use weft_runtime::{Bound, Context, Registry, ScopeError, ScopeOptions, Split, Step, Task, scope};

/// The length of the shortest tour that any rank has found so far.
const SHORTEST: Bound<u32> = Bound::least("shortest tour");
/// Most cities; a set of them is a number of 32 bits.
const MOST: usize = 32;

/// Distances between cities: the problem, of which each rank has a copy.
struct Map {
    cities: usize,
    distance: Vec<Vec<u32>>,
}

impl Map {
    fn new(cities: usize) -> Self {
        let place = |city: usize| ((37 * city % 101) as i32, (53 * city * city % 97) as i32);
        let between = |a, b| {
            let ((ax, ay), (bx, by)) = (place(a), place(b));
            ax.abs_diff(bx) + ay.abs_diff(by)
        };
        let row = |a| (0..cities).map(|b| between(a, b)).collect();
        let distance = (0..cities).map(row).collect();
        Self { cities, distance }
    }
}

/// A way that has begun in city 0: where it is, which cities it has seen, and how long it is.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Way {
    at: usize,
    seen: u32,
    length: u32,
}

/// Ways that are still to be followed, the newest first.
#[derive(Serialize, Deserialize)]
struct Search {
    stack: Vec<Way>,
}

impl Task<Map> for Search {
    const NAME: &'static str = "search";
    /// A tour that was the shortest when it was found.
    type Output = Option<u32>;

    fn run(&mut self, map: &Map, cx: &mut Context<'_, Map, Option<u32>>) -> Step<Option<u32>> {
        for _ in 0..cx.budget() {
            let Some(way) = self.stack.pop() else {
                return Step::Done(None);
            };
            cx.charge(1);
            if cx.best(SHORTEST).is_some_and(|best| way.length >= best) {
                continue; // The bound: it can only become longer.
            }
            if way.seen.count_ones() as usize == map.cities {
                let tour = way.length + map.distance[way.at][0];
                if cx.improve(SHORTEST, tour) {
                    cx.emit(Some(tour));
                }
                continue;
            }
            for next in (0..map.cities).filter(|next| way.seen & (1 << next) == 0) {
                self.stack.push(Way {
                    at: next,
                    seen: way.seen | (1 << next),
                    length: way.length + map.distance[way.at][next],
                });
            }
        }
        Step::More
    }

    fn split(&mut self, how: Split) -> Option<Self> {
        let stack = how.take_from(&mut self.stack)?;
        Some(Self { stack })
    }
}

/// The length of the shortest tour, on rank 0, and the nodes that this rank has expanded.
struct Found {
    tour: Option<u32>,
    nodes: u64,
}

/// The program, on each rank.
fn shortest(comm: &mut dyn Comm, map: &Map) -> Result<Found, ScopeError> {
    let registry = Registry::new().with::<Search>().with_bound(SHORTEST);
    let (tour, report) = scope(comm, &registry, map, &ScopeOptions::default(), |s| {
        let group = s.group();
        if s.rank() == Rank(0) {
            let start = Way {
                at: 0,
                seen: 1,
                length: 0,
            };
            s.fork(&group, Search { stack: vec![start] })?;
        }
        let mut shortest = None;
        while let Some(tour) = s.join(&group)? {
            shortest = shortest.into_iter().chain(tour?).min();
        }
        Ok(shortest)
    })?;
    let nodes = report.work;
    Ok(Found { tour, nodes })
}

/// The program, and then the sum of the nodes of all ranks.
fn shortest_and_sum(comm: &mut dyn Comm, map: &Map) -> Result<Found, ScopeError> {
    let mut found = shortest(comm, map)?;
    let all = comm.allgather(found.nodes.to_le_bytes().to_vec())?;
    let nodes = all.iter().filter_map(|bytes| bytes[..].try_into().ok());
    found.nodes = nodes.map(u64::from_le_bytes).sum();
    Ok(found)
}

/// How the program was called.
struct Arguments {
    cities: usize,
    driver: String,
    ranks: usize,
}

const USAGE: &str = "usage: salesman CITIES threads|virtual RANKS, or salesman CITIES mpi";

impl Arguments {
    fn read() -> Option<Self> {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let (cities, driver) = (words.first()?.parse().ok()?, words.get(1)?.clone());
        let ranks = match words.get(2) {
            Some(ranks) => ranks.parse().ok()?,
            None => 1,
        };
        ((2..=MOST).contains(&cities) && ranks > 0).then_some(Self {
            cities,
            driver,
            ranks,
        })
    }
}

fn say(ranks: usize, found: &Found) {
    match found.tour {
        Some(tour) => println!("shortest tour {tour}"),
        None => println!("no tour"),
    }
    println!("nodes {} on {ranks} ranks", found.nodes);
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::read().ok_or(USAGE)?;
    let (map, ranks) = (Map::new(arguments.cities), arguments.ranks);
    let program = |comm: &mut dyn Comm| shortest_and_sum(comm, &map);
    match &*arguments.driver {
        "threads" => {
            let found = threads::launch(ranks, program)?.remove(0)?;
            say(ranks, &found);
        }
        "virtual" => {
            let outcome = virtual_time::launch(ranks, &VirtualOptions::default(), program)?;
            let all = outcome.results.into_iter().collect::<Result<Vec<_>, _>>()?;
            say(ranks, &all[0]);
        }
        "mpi" => under_mpi(&map)?,
        _ => return Err(USAGE.into()),
    }
    Ok(())
}

#[cfg(feature = "mpi")]
fn under_mpi(map: &Map) -> Result<(), Box<dyn Error>> {
    use weft_mpi::{Failure, Mpi, Options};
    use weft_runtime::comm::CommError;

    let mut mpi = Mpi::start(Options::from_env()?)?;
    let ranks = mpi.size();
    let failure = |error: ScopeError| Failure {
        code: 1,
        message: error.to_string(),
        // The rank that failed tells why; others only hear that it did.
        echo: matches!(error, ScopeError::Comm(CommError::Aborted { .. })),
    };
    let found = mpi.job(|comm| shortest_and_sum(comm, map).map_err(failure), |_| ());
    if mpi.rank() == Rank(0) {
        say(ranks, &found);
    }
    Ok(())
}

#[cfg(not(feature = "mpi"))]
fn under_mpi(_map: &Map) -> Result<(), Box<dyn Error>> {
    Err("this program knows no MPI: build it with --features mpi".into())
}
