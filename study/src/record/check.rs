//! Limits of the numbers of a record: a reader of one allocates for them, adds them up and counts
//! to them.
//!
//! The limits are those of scenes, or so far beyond any run that nobody meets them. Without them a
//! few bytes of a damaged record would take all memory, or a replay of it years.

use super::{Header, Step, Task};
use crate::shape::Kind;
use weft_balance::prices::{Prices, TestPrices};

/// Vertices of a record, and coarse unknowns: scenes have no more.
const MOST_VERTICES: u64 = 20_000_000;
/// Vertices and triangles that are counted more than once, by those that share them.
const MOST_SHARED: u64 = 1 << 28;
/// Work of a patch's vertices in the solve.
const MOST_WEIGHT: u64 = 1 << 40;
/// Bytes of one thing in a message.
const MOST_BYTES: u32 = 1 << 16;
/// Iterations, systems, rounds of a step.
const MOST_ROUNDS: u32 = 1 << 20;
/// Contacts of two leaves: their features make fifteen.
const MOST_OF_LEAVES: u32 = 256;
/// Bytes of all contacts of a step in messages.
const MOST_CONTACT_BYTES: u64 = 1 << 32;
/// A price in ns: a quarter of an hour.
const HIGHEST_PRICE: f64 = 1e12;
/// The longest time in ns that a step may take one rank: a day.
const LONGEST_STEP: f64 = 1e14;

/// Checks the numbers of a header, and says in a sentence if something is wrong with them.
pub(super) fn header(header: &Header) -> Result<(), String> {
    // Each is below 2³²: no sum of them that is in memory overflows.
    if header.vertices() > MOST_VERTICES || u64::from(header.aggregates) > MOST_VERTICES {
        return Err(format!("more than {MOST_VERTICES} vertices"));
    }
    if header.around() > MOST_SHARED || header.nodes() > MOST_SHARED {
        return Err("patches with more around them than can be".to_owned());
    }
    let tiles = header.tiles.iter().map(|tile| u64::from(tile.triangles));
    let borders = header
        .borders
        .iter()
        .map(|border| u64::from(border.vertices));
    if tiles.sum::<u64>() > MOST_SHARED || borders.sum::<u64>() > MOST_SHARED {
        return Err("tiles or borders with more in them than can be".to_owned());
    }
    if header
        .patches
        .iter()
        .any(|patch| patch.weight > MOST_WEIGHT)
    {
        return Err("a patch with more work than can be".to_owned());
    }
    let bytes = [
        header.aggregate_bytes,
        header.contact_bytes,
        header.state_bytes,
    ];
    if bytes.into_iter().any(|bytes| bytes > MOST_BYTES) {
        return Err("things of more bytes than can be".to_owned());
    }
    Ok(())
}

/// Checks the numbers of a step, and says in a sentence if something is wrong with them.
pub(super) fn step(step: &Step, header: &Header) -> Result<(), String> {
    let counts = [
        step.products,
        step.systems,
        step.rounds,
        step.looks,
        step.passes,
    ];
    if counts.into_iter().any(|count| count > MOST_ROUNDS) {
        return Err("a step with more iterations than can be".to_owned());
    }
    let rows = step.rows.iter().map(|border| u64::from(border.vertices));
    if rows.sum::<u64>() > MOST_SHARED {
        return Err("a step with more rows than can be".to_owned());
    }
    prices(&step.prices)?;
    let weight: u64 = header.patches.iter().map(|patch| patch.weight).sum();
    let (p, weight) = (&step.prices, weight as f64);
    let of_solve = p.product * weight + p.coarse_solve;
    let parts = [
        of_solve * f64::from(step.products),
        p.coarse_factor * f64::from(step.systems),
        (p.assemble + p.respond) * weight,
        p.share * header.vertices() as f64,
        (p.vertex + p.way + p.measure + p.touched + p.corner) * 64.0 * header.around() as f64,
        p.node * header.nodes() as f64,
        p.forecast * step.forecast.len() as f64,
        (p.begin + p.target) * (header.patches.len() as f64).powi(2),
    ];
    is_short(parts.into_iter().sum())
}

/// Checks the numbers of all tasks of a step, and says in a sentence if something is wrong with
/// them.
pub(super) fn tasks(step: &Step, header: &Header) -> Result<(), String> {
    let (mut contacts, mut time) = (0, 0.0);
    for task in &step.tasks {
        contacts += of_task(task)?;
        let p = &step.prices;
        let tests = |p: &TestPrices| p.volumes + p.leaf + p.near + p.contact;
        // A visit counts as some tests at most.
        time += 256.0 * (tests(&p.cloth) + tests(&p.body)) * task.tree.len() as f64;
    }
    if contacts * u64::from(header.contact_bytes.max(1)) > MOST_CONTACT_BYTES {
        return Err("a step with more contacts than can be".to_owned());
    }
    let p = &step.prices;
    let of_rows = p.row * f64::from(step.rounds) + 64.0 * p.contact;
    is_short(time + of_rows * contacts as f64)
}

/// The contacts of a task, by its tests or by their owners, whichever are more.
fn of_task(task: &Task) -> Result<u64, String> {
    let mut found = 0;
    for visit in task.tree.visits() {
        if visit.kind == Kind::Leaf && visit.contacts > MOST_OF_LEAVES {
            return Err("a test that finds more contacts than can be".to_owned());
        }
        found += u64::from(visit.contacts);
    }
    Ok(found.max(task.contacts()))
}

/// Checks prices, and says in a sentence if something is wrong with them.
pub(super) fn prices(prices: &Prices) -> Result<(), String> {
    let good = |price: &f64| (0.0..=HIGHEST_PRICE).contains(price);
    if prices.all().iter().all(good) {
        Ok(())
    } else {
        Err("a price that nothing can have".to_owned())
    }
}

fn is_short(ns: f64) -> Result<(), String> {
    if ns <= LONGEST_STEP {
        Ok(())
    } else {
        Err("a step that would take more than a day".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use weft_balance::cost::Against;
    use weft_balance::preparation::PatchSizes;

    use super::super::{Border, Patch, Route};
    use super::*;
    use crate::shape::{Tree, Visit};

    fn whole() -> (Header, Step) {
        let patch = Patch {
            vertices: 9,
            weight: 70,
            sizes: PatchSizes::default(),
        };
        let header_of_one = Header {
            patches: vec![patch],
            contact_bytes: 100,
            ..Header::default()
        };
        let leaf = Visit {
            kind: Kind::Leaf,
            children: 0,
            tests: 1,
            contacts: 3,
        };
        let task = Task {
            against: Against::Itself,
            tree: Tree::from_visits([leaf]).unwrap(),
            routes: vec![Route {
                patches: vec![0],
                contacts: 3,
            }],
            ..Task::default()
        };
        let step_of_one = Step {
            products: 20,
            tasks: vec![task],
            ..Step::default()
        };
        (header_of_one, step_of_one)
    }

    fn check((of, one): (Header, Step)) -> Result<(), String> {
        header(&of)?;
        step(&one, &of)?;
        tasks(&one, &of)
    }

    #[test]
    fn numbers_that_no_run_has_are_refused() {
        assert_eq!(check(whole()), Ok(()));
        let border = |vertices| Border {
            owner: 0,
            readers: vec![0],
            vertices,
        };
        type Change<'a> = &'a dyn Fn(&mut Header, &mut Step);
        let changes: [Change<'_>; 14] = [
            &|header, _| header.patches[0].vertices = u32::MAX,
            &|header, _| header.patches[0].weight = u64::MAX >> 1,
            &|header, _| header.patches[0].sizes.around = u32::MAX,
            &|header, _| header.patches[0].sizes.nodes = u32::MAX,
            &|header, _| header.aggregates = u32::MAX,
            &|header, _| header.contact_bytes = u32::MAX,
            &|header, _| header.borders = vec![border(u32::MAX)],
            &|_, step| step.products = u32::MAX,
            &|_, step| step.passes = u32::MAX,
            &|_, step| step.rows = vec![border(u32::MAX)],
            &|_, step| step.prices.product = f64::NAN,
            &|_, step| step.prices.cloth.leaf = -1.0,
            &|_, step| step.prices.share = 1e12,
            &|_, step| step.tasks[0].routes[0].contacts = u32::MAX,
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let (mut header, mut step) = whole();
            change(&mut header, &mut step);
            // One that is within its own limit may still be too much in all.
            let price = number == 12;
            if price {
                header.patches[0].vertices = 200;
            }
            assert!(check((header, step)).is_err(), "{number}");
        }
    }
}
