#!/usr/bin/env bash
# The positions and velocities that reach a rank in a step, replicated and subscribed
# (docs/src/understand/state.md). Ranks are threads that wait for each other: bytes are counted,
# times mean nothing.
#
#   benches/study/state.sh [SCENE VERTICES PATCHES STEPS RANKS]
#
# VERTICES are those along a side of the scene's sheet. Variables: WEFT (target/release/weft).
set -euo pipefail
cd "$(dirname "$0")/../.."
weft=${WEFT:-target/release/weft}
command -v "$weft" >/dev/null || { echo "$weft: build it (cargo build --release), or set WEFT" >&2; exit 2; }
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# The largest number that a key of a JSON file has.
most() { grep -o "\"$2\": [0-9]*" "$1" | awk '$2 > most { most = $2 } END { printf "%.0f", most }'; }

echo "| scene | vertices | ranks | state | steps | ghosts, at most | bytes to a rank in a step, at most | parts of steps that were gathered | state hash |"
echo "|---|---|---|---|---|---|---|---|---|"
measure() { # SCENE SIDE PATCHES STEPS RANKS
    local state
    for state in replicated subscribed; do
        "$weft" run "$1" --steps "$4" --ranks "$5" --quiet --overwrite --out "$out/run" \
            --set output.pictures=false --set cloth.sheet.grid.vertices="$2" \
            --set contact.thickness="$(awk "BEGIN { print 0.4 / ($2 - 1) }")" \
            --set partition.patches="$3" --set "partition.state=\"$state\"" >/dev/null 2>"$out/told" ||
            { cat "$out/told" >&2; exit 1; }
        awk -v name="${1##*/}" -v n=$(($2 * $2)) -v ranks="$5" -v state="$state" -v steps="$4" \
            -v ghosts="$(most "$out/run/run.json" ghosts)" -v bytes="$(most "$out/run/run.json" state_bytes)" \
            -v gathered="$(most "$out/run/run.json" gathered)" \
            -v hash="$(grep -o '"hash": "[0-9a-f]*"' "$out/run/run.json" | head -n 1 | cut -d'"' -f4)" 'BEGIN {
            printf "| %s | %d | %d | %s | %d | %d | %.0f | %d | %s |\n", name, n, ranks, state, steps, ghosts, bytes / steps, gathered, hash
        }'
    done
}
if [ $# -gt 0 ]; then
    measure "$@"
else
    measure drape-free 200 64 40 4
    measure drape-free 200 64 40 16
fi
