#!/usr/bin/env bash
# Builds contrib/salesman as somebody else would, outside the workspace, and runs it on threads,
# virtual ranks and under mpirun: the same tour everywhere, and on 64 virtual ranks at most 1.3
# times the nodes of one.
#
#   tests/salesman.sh
#
# As root on Debian it installs an MPI if there is none.
set -euo pipefail
cd "$(dirname "$0")/.."

source tests/mpi-setup.sh
here=contrib/salesman
fail() {
    echo "$0: $*" >&2
    exit 1
}

cargo fmt --check --manifest-path $here/Cargo.toml
# Its crates are of the versions that the workspace has, which CI has looked at.
versions() { sed -n '/^name = /{N;s/name = "\(.*\)"\nversion = "\(.*\)"/\1 \2/p}' "$1" | LC_ALL=C sort; }
strange=$(LC_ALL=C comm -23 <(versions $here/Cargo.lock | grep -v '^salesman ') <(versions Cargo.lock))
[ -z "$strange" ] || fail "$here/Cargo.lock has versions that Cargo.lock has not: $strange"

# The target directory and the profile of the workspace, so that nothing is compiled twice.
CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR
export CARGO_PROFILE_DEV_OPT_LEVEL="${CARGO_PROFILE_DEV_OPT_LEVEL:-2}"
export CARGO_PROFILE_DEV_DEBUG=false CARGO_PROFILE_DEV_LTO=off
program=$CARGO_TARGET_DIR/debug/salesman

cargo build --locked --manifest-path $here/Cargo.toml
said=$("$program" 9 mpi 2>&1) && fail "a program without MPI runs under it: $said"
grep -q -e '--features mpi' <<<"$said" || fail "it does not say how to build it with MPI: $said"
cargo build --locked --manifest-path $here/Cargo.toml --features mpi

# As root, more ranks than cores, bound to none; see tests/mpi.sh.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe PRTE_MCA_hwloc_default_binding_policy=none

# nodes COMMAND...: runs it, looks at the tour, and prints the number of nodes.
nodes() {
    local output
    output=$(timeout --kill-after=5 120 "$@") || fail "exit code $?: $*"
    grep -qx 'shortest tour 476' <<<"$output" || fail "not the shortest tour: $*"$'\n'"$output"
    sed -n 's/^nodes \([0-9]*\) on .*/\1/p' <<<"$output"
}
one=$(nodes "$program" 11 virtual 1)
many=$(nodes "$program" 11 virtual 64)
echo "nodes on 1 and on 64 virtual ranks: $one and $many"
[ $((10 * many)) -le $((13 * one)) ] || fail "64 ranks expand more than 1.3 times the nodes of one"
echo "nodes on 3 ranks that are threads: $(nodes "$program" 11 threads 3)"
echo "nodes on 3 ranks of $("$launcher" --version | head -1): $(nodes "$launcher" -n 3 "$program" 11 mpi)"
