#!/usr/bin/env bash
# Round trips of Comm against bare MPI, and what a steal takes, between two ranks. On a machine that
# others use the figures to believe are the ratios of turns of some milliseconds, taken in one
# process; round_trip.c is the same bare ping-pong in C, run in between, to see that the bindings
# add nothing.
#
#   runtime/mpi/benches/compare.sh [TIMES]
set -euo pipefail
cd "$(dirname "$0")/../../.."
times=${1:-5}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpicc -O2 runtime/mpi/benches/round_trip.c -o "$out/bare"
built=$(cargo bench --locked -p weft-mpi --bench round_trip --bench steal --no-run --message-format=json-render-diagnostics)
program() { sed -n "s/.*\"executable\":\"\([^\"]*\/$1-[0-9a-f]*\)\".*/\1/p" <<<"$built"; }
for _ in $(seq "$times"); do
    timeout 120 mpirun -n 2 "$out/bare" >>"$out/c.txt"
    timeout 120 mpirun -n 2 "$(program round_trip)" >>"$out/comm.txt"
done
# median FILE COLUMN BYTES
median() { awk -v c="$2" -v n="$3" '$1 == n { print $c }' "$1" | sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
printf '%9s %10s %10s %10s   %s\n' bytes 'Comm us' 'bare us' 'in C us' 'Comm / bare: quartiles'
for bytes in $(awk '{ print $1 }' "$out/c.txt" | sort -gu); do
    printf '%9d %10.3f %10.3f %10.3f   %s %s %s\n' "$bytes" \
        "$(median "$out/comm.txt" 2 "$bytes")" "$(median "$out/comm.txt" 3 "$bytes")" \
        "$(median "$out/c.txt" 2 "$bytes")" "$(median "$out/comm.txt" 4 "$bytes")" \
        "$(median "$out/comm.txt" 5 "$bytes")" "$(median "$out/comm.txt" 6 "$bytes")"
done
timeout 120 mpirun -n 2 "$(program steal)"
