#!/usr/bin/env bash
# Passes all tests, after installing what they lack. Needs Rust; as root on Debian it installs a C
# compiler (METIS is built from source) and an MPI if there is none. One build serves all of them:
# with MPI, which ranks of a run must ask for; `cargo test` alone tests the program without.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v cc >/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update
        apt-get install -y --no-install-recommends gcc libc6-dev
    else
        echo "tests/all.sh: no C compiler found; install one (Debian: apt-get install gcc libc6-dev)" >&2
        exit 1
    fi
fi

source tests/mpi-setup.sh
# The cases that property tests draw are the ones of one seed: what fails is then a change's doing.
# Another seed draws others; `PROPTEST_CASES` says how many.
export PROPTEST_RNG_SEED="${PROPTEST_RNG_SEED:-1}"
# Not the examples: tests/examples.sh builds and runs them. The tests of weft-mpi are programs for
# mpirun, those of the Python package are in Python (tests/python.sh).
cargo test --locked --workspace --exclude weft-mpi --exclude weftwork-python --features weftwork/mpi --lib --bins --tests
cargo test --locked --workspace --exclude weft-mpi --exclude weftwork-python --features weftwork/mpi --doc
tests/mpi.sh
