#!/usr/bin/env bash
# Round trips of Comm against bare MPI in C, in one run, by turns; prints medians and their ratio.
#
#   runtime/mpi/benches/compare.sh [TURNS]
set -euo pipefail
cd "$(dirname "$0")/../../.."
turns=${1:-5}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpicc -O2 runtime/mpi/benches/round_trip.c -o "$out/bare"
built=$(cargo bench --locked -p weft-mpi --bench round_trip --no-run --message-format=json-render-diagnostics)
ours=$(sed -n 's/.*"executable":"\([^"]*\/round_trip-[0-9a-f]*\)".*/\1/p' <<<"$built")
for _ in $(seq "$turns"); do
    timeout 120 mpirun -n 2 "$out/bare" >>"$out/bare.txt"
    timeout 120 mpirun -n 2 "$ours" >>"$out/ours.txt"
done
median() { awk -v n="$1" '$1 == n { print $2 }' "$2" | sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
printf '%9s %12s %12s %7s\n' bytes 'bare us' 'Comm us' ratio
for bytes in 8 1024 65536 1048576; do
    bare=$(median $bytes "$out/bare.txt")
    comm=$(median $bytes "$out/ours.txt")
    awk -v b="$bytes" -v x="$bare" -v y="$comm" 'BEGIN { printf "%9d %12.3f %12.3f %7.2f\n", b, x, y, y / x }'
done
