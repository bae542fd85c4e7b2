#!/usr/bin/env bash
# The peaks of short runs of a sheet of several sizes, beside what is counted part by part and what
# is estimated before the set-up: the coefficients of src/memory/estimate.rs come from this table.
#
#   benches/study/memory.sh [VERTICES...]     (along a side; 100 200 316 500 unless said)
#
# Variables: WEFT (target/release/weft).
set -euo pipefail
cd "$(dirname "$0")/../.."
weft=${WEFT:-target/release/weft}
command -v "$weft" >/dev/null || { echo "$weft: build it (cargo build --release), or set WEFT" >&2; exit 2; }
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# The bytes of all parts that a run has told: each follows the name of its part.
counted() { awk -F': ' '/"bytes"/ && part { sum += $2 } { part = /"part"/ } END { printf "%.0f", sum }' "$1"; }
# The largest number that a key of a JSON file has.
most() { grep -o "\"$2\": [0-9]*" "$1" | awk '$2 > most { most = $2 } END { printf "%.0f", most }'; }

echo "| vertices | ranks | settings | peak, MB | counted, MB | estimated, MB | peak, B a vertex | set-up, B a vertex |"
echo "|---|---|---|---|---|---|---|---|"
measure() { # SIDE RANKS NAME SETTINGS...
    local side=$1 ranks=$2 name=$3 thickness
    shift 3
    thickness=$(awk "BEGIN { print 0.4 / ($side - 1) }")
    local keys=(--set cloth.sheet.grid.vertices="$side" --set contact.thickness="$thickness" "$@")
    "$weft" check drape-free --json --ranks "$ranks" "${keys[@]}" >"$out/check" 2>/dev/null
    "$weft" run drape-free --steps 1 --ranks "$ranks" --quiet --overwrite --out "$out/run" "${keys[@]}" >/dev/null 2>&1
    awk -v n=$((side * side)) -v peak="$(most "$out/run/run.json" peak_memory_bytes)" \
        -v counted="$(counted "$out/run/run.json")" \
        -v estimated="$(most "$out/check" estimated_peak_bytes)" -v setup="$(most "$out/check" set_up_peak_bytes)" \
        -v ranks="$ranks" -v name="$name" 'BEGIN {
            printf "| %d | %d | %s | %.0f | %.0f | %.0f | %.0f | %.0f |\n", n, ranks, name,
                peak / 1e6, counted / 1e6, estimated / 1e6, peak / n, setup / n
        }'
}

sides=("$@")
[ ${#sides[@]} -gt 0 ] || sides=(100 200 316 500)
plain=(--set output.pictures=false)
for side in "${sides[@]}"; do
    measure "$side" 1 "pictures" --set output.pictures=true
    measure "$side" 1 "no pictures" "${plain[@]}"
    measure "$side" 4 "no pictures" "${plain[@]}"
    measure "$side" 1 "no pictures, certify = false" "${plain[@]}" --set contact.certify=false
    measure "$side" 1 "no pictures, self_collision = false" "${plain[@]}" --set contact.self_collision=false
    measure "$side" 1 "no pictures, block-jacobi" "${plain[@]}" --set 'solver.preconditioner="block-jacobi"'
done
