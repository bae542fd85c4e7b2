#!/usr/bin/env bash
# The peaks of MPI processes that share a sheet, with and without a prepared world, and which share
# of the peak of one process alone that is.
#
#   benches/study/processes.sh [SIDE [PROCESSES...]]     (500 vertices along a side; 4 16)
#
# More processes than cores take turns. Variables: WEFT (target/release/weft, built with --features
# mpi), MPIRUN (mpirun --oversubscribe --bind-to none).
set -euo pipefail
cd "$(dirname "$0")/../.."
weft=${WEFT:-target/release/weft}
read -ra mpirun <<<"${MPIRUN:-mpirun --oversubscribe --bind-to none}"
side=${1:-500}
[ $# -gt 1 ] && processes=("${@:2}") || processes=(4 16)
"$weft" info 2>/dev/null | grep -q '^features.*mpi' || { echo "$weft: build it with --features mpi, or set WEFT" >&2; exit 2; }
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

keys=(--set cloth.sheet.grid.vertices="$side" --set contact.thickness="$(awk "BEGIN { print 0.4 / ($side - 1) }")"
    --set output.pictures=false --set output.frames=false --set output.checkpoints=false)
"$weft" prepare drape-free "${keys[@]}" --out "$out/sheet.world" >/dev/null

# The least and the largest peak of the processes of a run, in bytes, and its hash.
peaks() { # PROCESSES SETTINGS...
    "${mpirun[@]}" -n "$1" "$weft" run drape-free --steps 2 --quiet --overwrite --out "$out/run" "${keys[@]}" "${@:2}" >"$out/said"
    grep -o '"peak_memory_bytes": [0-9]*' "$out/run/run.json" | awk '
        NR == 1 || $2 < least { least = $2 }
        $2 > most { most = $2 }
        END { printf "%.0f %.0f ", least, most }'
    sed -n 's/^state hash //p' "$out/said"
}

read -r _ alone hash <<<"$(peaks 1)"
echo "| vertices | processes | partition.state | prepared world | each, MB | the largest ÷ one process |"
echo "|---|---|---|---|---|---|"
printf '| %d | 1 | | no | %.0f | 1 |\n' $((side * side)) "$(awk "BEGIN { print $alone / 1e6 }")"
for count in "${processes[@]}"; do
    for line in "replicated no" "replicated yes" "subscribed yes"; do
        read -r state prepared <<<"$line"
        file=()
        [ "$prepared" = no ] || file=(--set partition.file="$out/sheet.world")
        read -r least most of <<<"$(peaks "$count" --set partition.state="$state" "${file[@]}")"
        [ "$of" = "$hash" ] || { echo "$0: $count processes, $line: state $of, and not $hash" >&2; exit 1; }
        awk -v n=$((side * side)) -v count="$count" -v state="$state" -v prepared="$prepared" \
            -v least="$least" -v most="$most" -v alone="$alone" 'BEGIN {
                printf "| %d | %d | %s | %s | %.0f to %.0f | %.2f |\n", n, count, state, prepared, least / 1e6, most / 1e6, most / alone
            }'
    done
done
