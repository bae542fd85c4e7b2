//! The memory that this process may have, as far as the system tells.
//!
//! | bound | Linux tells it in |
//! |---|---|
//! | memory that the machine has left | `/proc/meminfo`, `MemAvailable` (proc(5)) |
//! | the limit of a control group, version 2 | `memory.max`, `memory.high` (cgroups(7)) |
//! | the limit of a control group, version 1 | `memory.limit_in_bytes` |
//! | the limit of the address space | `/proc/self/limits`, which `ulimit -v` sets |
//!
//! Groups are that of the process and those around it. Pages of files that a group has not touched
//! lately are given back when memory is short, so they count as left. Ranks of one node that are
//! processes share what the machine and the group have. Other systems tell nothing, and then there
//! is no bound.

use std::fmt;
use std::fs::read_to_string;
use std::path::{Path, PathBuf};

use super::process::in_status;

/// The most memory that a process may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Allowed {
    /// The memory in bytes.
    pub(super) bytes: u64,
    /// The bound that allows no more.
    pub(super) bound: Bound,
}

/// A bound on memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    /// The memory that the machine has left.
    Machine,
    /// The limit of a control group.
    Group,
    /// The limit of the address space.
    AddressSpace,
    /// A number that the user gave.
    Asked,
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Machine => "that is what this machine has left",
            Self::Group => {
                "that is what its control group has left, as a container or a queue set it"
            }
            Self::AddressSpace => "that is the limit of its address space (ulimit -v)",
            Self::Asked => "that was asked for",
        })
    }
}

/// The most memory that this process may have all in all, if it shares the machine with this number
/// of processes of the run, itself among them. `None` where the system does not tell.
pub(super) fn allowed(processes: u64) -> Option<Allowed> {
    within(Path::new("/"), processes)
}

/// The memory that [`allowed`] tells, by the files below a folder.
fn within(root: &Path, processes: u64) -> Option<Allowed> {
    let read = |file: &str| read_to_string(root.join(file)).ok();
    let status = read("proc/self/status").unwrap_or_default();
    let own = in_status(&status, "VmRSS:").unwrap_or_default();
    // Processes of one run begin together, each with about as much as this one.
    let share = |left: u64| own + left / processes.max(1);
    let machine = read("proc/meminfo").and_then(|text| in_status(&text, "MemAvailable:"));
    let group = left_of_groups(root, &read("proc/self/cgroup").unwrap_or_default());
    let space = read("proc/self/limits").and_then(|text| address_space(&text));
    let reserved = in_status(&status, "VmSize:").unwrap_or_default();
    let bounds = [
        (Bound::Machine, machine.map(share)),
        (Bound::Group, group.map(share)),
        // Addresses that are reserved and not used count too.
        (
            Bound::AddressSpace,
            space.map(|limit| own + limit.saturating_sub(reserved)),
        ),
    ];
    let bounds = bounds.into_iter();
    let told = bounds.filter_map(|(bound, bytes)| {
        Some(Allowed {
            bytes: bytes?,
            bound,
        })
    });
    told.min_by_key(|allowed| allowed.bytes)
}

/// The soft limit of the address space in bytes, if there is one.
fn address_space(limits: &str) -> Option<u64> {
    let line = (limits.lines()).find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The files of a version of control groups.
struct Version {
    folder: &'static str,
    limits: &'static [&'static str],
    used: &'static str,
    /// The line of `memory.stat` with the bytes of files that were not touched lately.
    inactive: &'static str,
}

const FIRST: Version = Version {
    folder: "sys/fs/cgroup/memory",
    limits: &["memory.limit_in_bytes"],
    used: "memory.usage_in_bytes",
    inactive: "total_inactive_file",
};
const SECOND: Version = Version {
    folder: "sys/fs/cgroup",
    limits: &["memory.max", "memory.high"],
    used: "memory.current",
    inactive: "inactive_file",
};

/// The memory in bytes that the groups of this process have left, if one has a limit. `groups` is
/// the text of `/proc/self/cgroup`.
fn left_of_groups(root: &Path, groups: &str) -> Option<u64> {
    let of_line = |line: &str| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let version = match controllers {
            "" => &SECOND,
            _ if controllers.split(',').any(|one| one == "memory") => &FIRST,
            _ => return None,
        };
        let base = root.join(version.folder);
        // In a container the path may be that outside of it: then the group is the base itself.
        let inner = PathBuf::from(path.trim_start_matches('/'));
        let folders = inner.ancestors().map(|part| base.join(part));
        folders.filter_map(|folder| left_of(&folder, version)).min()
    };
    groups.lines().filter_map(of_line).min()
}

/// The memory in bytes that one group has left, if it has a limit.
fn left_of(folder: &Path, version: &Version) -> Option<u64> {
    let read = |file: &str| read_to_string(folder.join(file)).ok();
    let number = |file: &str| read(file)?.trim().parse::<u64>().ok();
    let limits = version.limits.iter().filter_map(|file| number(file));
    let limit = limits.min()?;
    let used = number(version.used)?;
    let inactive = read("memory.stat").and_then(|text| {
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        let (_, bytes) = { lines }.find(|(name, _)| *name == version.inactive)?;
        bytes.trim().parse::<u64>().ok()
    });
    Some(limit.saturating_sub(used.saturating_sub(inactive.unwrap_or_default())))
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, write};

    use tempfile::{TempDir, tempdir};

    use super::*;

    const MB: u64 = 1 << 20;

    /// A folder with these files of a system.
    fn system(files: &[(&str, &str)]) -> TempDir {
        let root = tempdir().unwrap();
        for (file, text) in files {
            let path = root.path().join(file);
            create_dir_all(path.parent().unwrap()).unwrap();
            write(path, text).unwrap();
        }
        root
    }

    const STATUS: (&str, &str) = (
        "proc/self/status",
        "VmSize:\t  51200 kB\nVmRSS:\t  10240 kB\n",
    );
    const MEMINFO: (&str, &str) = (
        "proc/meminfo",
        "MemTotal: 9999999 kB\nMemAvailable:  1048576 kB\n",
    );

    #[test]
    fn a_system_that_tells_nothing_sets_no_bound() {
        let none = system(&[]);
        assert_eq!(within(none.path(), 1), None);
        let unlimited = system(&[
            STATUS,
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/memory.max", "max\n"),
            ("sys/fs/cgroup/memory.current", "1000\n"),
            (
                "proc/self/limits",
                "Max address space   unlimited  unlimited  bytes\n",
            ),
        ]);
        assert_eq!(within(unlimited.path(), 1), None);
    }

    #[test]
    fn processes_of_a_node_share_what_the_machine_has_left() {
        let machine = system(&[STATUS, MEMINFO]);
        for processes in [0, 1, 4] {
            let bytes = 10 * MB + 1024 * MB / processes.max(1);
            let bound = Bound::Machine;
            assert_eq!(
                within(machine.path(), processes),
                Some(Allowed { bytes, bound })
            );
        }
    }

    #[test]
    fn the_tightest_of_nested_groups_counts_and_idle_pages_of_files_are_left() {
        let group = |levels: &[(&str, &str)]| {
            let mut files = vec![STATUS, MEMINFO, ("proc/self/cgroup", "0::/jobs/step\n")];
            files.extend(levels);
            within(system(&files).path(), 1).unwrap()
        };
        let outer = [
            ("sys/fs/cgroup/jobs/memory.max", "524288000"),
            ("sys/fs/cgroup/jobs/memory.high", "max"),
            ("sys/fs/cgroup/jobs/memory.current", "209715200"),
            (
                "sys/fs/cgroup/jobs/memory.stat",
                "anon 5\ninactive_file 104857600\n",
            ),
        ];
        let found = group(&outer);
        assert_eq!(found.bytes, (10 + 500 - (200 - 100)) * MB);
        assert_eq!(found.bound, Bound::Group);
        let inner = [
            ("sys/fs/cgroup/jobs/step/memory.max", "max"),
            ("sys/fs/cgroup/jobs/step/memory.high", "314572800"),
            ("sys/fs/cgroup/jobs/step/memory.current", "104857600"),
        ];
        let both: Vec<_> = outer.into_iter().chain(inner).collect();
        assert_eq!(group(&both).bytes, (10 + 200) * MB);
    }

    #[test]
    fn groups_of_the_first_version_are_read_also_from_inside_of_a_container() {
        let files = [
            STATUS,
            (
                "proc/self/cgroup",
                "3:cpu,cpuacct:/x\n7:memory:/docker/abc\n",
            ),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "209715200"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "157286400"),
            (
                "sys/fs/cgroup/memory/memory.stat",
                "inactive_file 1\ntotal_inactive_file 52428800\n",
            ),
        ];
        let found = within(system(&files).path(), 2).unwrap();
        assert_eq!(found.bytes, 10 * MB + 100 * MB / 2);
        assert_eq!(found.bound, Bound::Group);
    }

    #[test]
    fn the_limit_of_the_address_space_is_of_each_process() {
        let limits = (
            "proc/self/limits",
            "Limit  Soft Limit  Hard Limit  Units\nMax address space   104857600   unlimited   bytes\n",
        );
        let found = within(system(&[STATUS, MEMINFO, limits]).path(), 8).unwrap();
        assert_eq!(found.bytes, (10 + 100 - 50) * MB);
        assert_eq!(found.bound, Bound::AddressSpace);
    }
}
