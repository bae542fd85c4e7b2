#!/usr/bin/env bash
# Round trips of Comm against bare MPI in C, in one run, by turns: each turn gives a time, the median of short rounds.
# Printed are the least times of all turns, which others on the machine have disturbed least, with their ratio, and
# how the ratios of single turns spread.
#
#   runtime/mpi/benches/compare.sh [TURNS]
set -euo pipefail
cd "$(dirname "$0")/../../.."
turns=${1:-11}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpicc -O2 runtime/mpi/benches/round_trip.c -o "$out/bare"
built=$(cargo bench --locked -p weft-mpi --bench round_trip --no-run --message-format=json-render-diagnostics)
ours=$(sed -n 's/.*"executable":"\([^"]*\/round_trip-[0-9a-f]*\)".*/\1/p' <<<"$built")
for turn in $(seq "$turns"); do
    timeout 120 mpirun -n 2 "$out/bare" >"$out/bare.txt"
    timeout 120 mpirun -n 2 "$ours" >"$out/ours.txt"
    # A line for each length: BYTES MICROSECONDS of both, beside each other.
    paste -d' ' "$out/bare.txt" "$out/ours.txt" >"$out/$turn"
done
printf '%9s %12s %12s %7s   %s\n' bytes 'bare us' 'Comm us' ratio 'ratio of each turn: median, least, largest'
for bytes in $(awk '{ print $1 }' "$out/1"); do
    awk -v n="$bytes" '$1 == n && $3 == n { print $2, $4, $4 / $2 }' "$out"/[0-9]* >"$out/turns"
    column() { cut -d' ' -f"$1" "$out/turns" | sort -g; }
    median() { column "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
    bare=$(column 1 | head -1)
    comm=$(column 2 | head -1)
    awk -v b="$bytes" -v x="$bare" -v y="$comm" -v m="$(median 3)" -v l="$(column 3 | head -1)" \
        -v h="$(column 3 | tail -1)" \
        'BEGIN { printf "%9d %12.3f %12.3f %7.2f   %.2f, %.2f, %.2f\n", b, x, y, y / x, m, l, h }'
done
