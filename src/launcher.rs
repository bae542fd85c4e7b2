//! How this process was started: alone, or by an MPI launcher as one of several. Known before MPI
//! starts, and to builds that have none.

use std::env;

/// The facts that a launcher passed to this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Launcher {
    /// The environment variable by which it was noticed.
    pub(crate) variable: &'static str,
    rank: Option<u32>,
    /// How many processes it started, if it says so.
    pub(crate) size: Option<usize>,
}

/// Variables that tell of a launcher, each with the one that has the rank and whether it holds the
/// size.
const SIGNS: [(&str, &str, bool); 5] = [
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", true),
    ("PMI_SIZE", "PMI_RANK", true),
    ("MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", true),
    ("PMIX_RANK", "PMIX_RANK", false),
    ("MPI_LOCALNRANKS", "PMI_RANK", false),
];
/// Slurm sets these in a batch script too, which is one process.
const SLURM: (&str, &str) = ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID");

impl Launcher {
    /// The launcher of this process, if there is one.
    pub(crate) fn detect() -> Option<Self> {
        Self::from_variables(|name| env::var(name).ok())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let slurm = variable(SLURM.0).and_then(|size| size.parse().ok());
        for (sign, rank, has_size) in SIGNS {
            if let Some(value) = variable(sign) {
                return Some(Self {
                    variable: sign,
                    rank: variable(rank).and_then(|rank| rank.parse().ok()),
                    size: value.parse().ok().filter(|_| has_size).or(slurm),
                });
            }
        }
        slurm.filter(|&size| size > 1).map(|size| Self {
            variable: SLURM.0,
            rank: variable(SLURM.1).and_then(|rank| rank.parse().ok()),
            size: Some(size),
        })
    }

    /// Whether this is the process that speaks for all.
    pub(crate) fn is_first(&self) -> bool {
        self.rank.is_none_or(|rank| rank == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launcher(variables: &[(&str, &str)]) -> Option<Launcher> {
        Launcher::from_variables(|name| {
            let found = variables.iter().find(|(n, _)| *n == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn launchers_are_known_by_what_they_set() {
        assert_eq!(launcher(&[]), None);
        let ompi = launcher(&[("OMPI_COMM_WORLD_SIZE", "4"), ("OMPI_COMM_WORLD_RANK", "3")]);
        let ompi = ompi.unwrap();
        assert_eq!((ompi.size, ompi.is_first()), (Some(4), false));
        let srun = [
            ("PMIX_RANK", "0"),
            ("SLURM_STEP_NUM_TASKS", "8"),
            ("SLURM_PROCID", "0"),
        ];
        let srun = launcher(&srun).unwrap();
        assert_eq!((srun.size, srun.is_first()), (Some(8), true));
        let bare = [("SLURM_STEP_NUM_TASKS", "8"), ("SLURM_PROCID", "2")];
        let bare = launcher(&bare).unwrap();
        assert_eq!((bare.size, bare.is_first()), (Some(8), false));
    }

    #[test]
    fn a_batch_script_is_no_launcher() {
        assert_eq!(
            launcher(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8")]),
            None
        );
        let step = [("SLURM_STEP_NUM_TASKS", "1"), ("SLURM_PROCID", "0")];
        assert_eq!(launcher(&step), None);
    }
}
