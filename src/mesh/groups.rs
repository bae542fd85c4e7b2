//! Groups of vertices that a file names, gathered while it is read.

use std::collections::BTreeSet;

use super::file_mesh::Group;

/// The name of the faces that follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A statement `g`, which may give several names.
    Group,
    /// A statement `o`, or the name of a mesh.
    Object,
}

/// Gathers the groups that somebody asks for, and the names of all.
pub(super) struct Groups {
    wanted: Vec<Group>,
    /// The wanted ones that the next faces belong to.
    active: Vec<(Kind, usize)>,
    /// The wanted groups that the file has.
    found: BTreeSet<usize>,
    names: Vec<String>,
    known: BTreeSet<String>,
}

impl Groups {
    pub(super) fn new(wanted: &[&str]) -> Self {
        let group = |name: &&str| Group {
            name: (*name).to_owned(),
            vertices: Vec::new(),
        };
        Self {
            wanted: wanted.iter().map(group).collect(),
            active: Vec::new(),
            found: BTreeSet::new(),
            names: Vec::new(),
            known: BTreeSet::new(),
        }
    }

    /// Notes that the file has a group of this name. Which of the wanted ones it is, if any.
    pub(super) fn name(&mut self, name: &str) -> Option<usize> {
        if self.names.len() < MOST_NAMES && self.known.insert(name.to_owned()) {
            self.names.push(name.to_owned());
        }
        let index = self.wanted.iter().position(|group| group.name == name)?;
        self.found.insert(index);
        Some(index)
    }

    /// The faces that follow belong to no group of this kind.
    pub(super) fn end_faces(&mut self, kind: Kind) {
        self.active.retain(|&(of, _)| of != kind);
    }

    /// The faces that follow belong to a group of this name too.
    pub(super) fn begin_faces(&mut self, kind: Kind, name: &str) {
        if let Some(index) = self.name(name) {
            self.active.push((kind, index));
        }
    }

    /// Adds the corners of a face to the groups that it belongs to.
    pub(super) fn add(&mut self, corners: impl Iterator<Item = u32> + Clone) {
        for &(_, index) in &self.active {
            self.wanted[index].vertices.extend(corners.clone());
        }
    }

    /// Adds a vertex to a wanted group.
    pub(super) fn add_to(&mut self, index: usize, vertex: u32) {
        self.wanted[index].vertices.push(vertex);
    }

    /// The wanted groups that are there, and the names of all.
    pub(super) fn finish(self) -> (Vec<Group>, Vec<String>) {
        let found = self.found;
        let there = self.wanted.into_iter().enumerate();
        let there = there.filter(|(index, _)| found.contains(index));
        let groups = there.map(|(_, mut group)| {
            group.vertices.sort_unstable();
            group.vertices.dedup();
            group
        });
        (groups.collect(), self.names)
    }
}

/// Names that are remembered, to tell somebody who asks for one that there is not.
const MOST_NAMES: usize = 1000;
