#!/usr/bin/env bash
# Passes all tests, after installing what they lack. Needs Rust; as root on Debian it installs a C
# compiler (METIS is built from source) and an MPI if there is none.
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

# Not the examples: tests/examples.sh builds and runs them.
cargo test --locked --lib --bins --tests
cargo test --locked --doc
tests/mpi.sh
