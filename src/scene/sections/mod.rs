//! The tables of a scene that are there once, each with its list of keys.

mod air;
mod balance;
mod contact;
mod output;
mod partition;
mod root;
mod solver;
mod start;
mod time;

use super::Scene;
use super::key::{Changes, Section, Visitor};
use super::reader::Table;

pub(super) use root::{LONGEST_NAME, Root, suits_name};

/// Shows all sections of a scene to a visitor.
pub(super) fn visit(scene: &Scene, visitor: &mut impl Visitor) {
    visitor.section(&Root::of(scene));
    visitor.section(&scene.air);
    visitor.section(&scene.time);
    visitor.objects();
    visitor.section(&scene.start);
    visitor.section(&scene.contact);
    visitor.section(&scene.solver);
    visitor.section(&scene.partition);
    visitor.section(&scene.balance);
    visitor.section(&scene.output);
}

/// Reads the section under its name.
pub(super) fn section<S: Section>(root: &Table<'_>) -> S {
    root.table(S::NAME, super::key::read_section)
}

/// The keys of a section on which this depends.
pub(super) fn keys_that_change<S: Section>(what: Changes) -> impl Iterator<Item = &'static str> {
    let keys = S::KEYS.iter().filter(move |key| key.changes == what);
    keys.map(|key| key.name)
}
