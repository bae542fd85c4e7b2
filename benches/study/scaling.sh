#!/usr/bin/env bash
# How a scene's run time goes with the number of ranks: a line of CSV for each run, and means at the
# end.
#
#   benches/study/scaling.sh strong SCENE "1 2 4" [OPTIONS OF weft run]   one scene, more ranks
#   benches/study/scaling.sh weak   SCENE "1 2 4" [OPTIONS OF weft run]   as many vertices a rank
#
# Ranks are threads, or MPI processes with LAUNCH="mpirun -n". Further variables: WEFT (the
# program), REPEATS (3), OUT (scaling.csv), VERTICES (of a side of the grid on one rank, for weak;
# 48). The weak study wants a scene with one cloth that is a square grid. `ratio` is the time of the
# first run over that of this one: the speed-up of the strong study, the efficiency of the weak one.
set -euo pipefail
usage() { sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ $# -ge 3 ] || usage
kind=$1 scene=$2 list=$3
shift 3
[ "$kind" = strong ] || [ "$kind" = weak ] || usage
weft=${WEFT:-target/release/weft} repeats=${REPEATS:-3} csv=${OUT:-scaling.csv} side=${VERTICES:-48}
command -v "$weft" >/dev/null || { echo "$weft: build it (cargo build --release), or set WEFT" >&2; exit 2; }
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# field NAME: a number of the last run's record.
field() { sed -n "s/^ *\"$1\": \([0-9.e-]*\),\{0,1\}$/\1/p" "$out/run/run.json" | head -1; }

echo "kind,ranks,repeat,vertices,steps,loop_s,hash,ratio" >"$csv"
first=
for ranks in $list; do
    size=()
    if [ "$kind" = weak ]; then
        n=$(awk -v n="$side" -v p="$ranks" 'BEGIN { printf "%d", n * sqrt(p) + 0.5 }')
        size=(--set "cloth.grid.vertices=$n")
    fi
    times=()
    for repeat in $(seq "$repeats"); do
        rm -rf "$out/run"
        run=(run "$scene" --quiet --out "$out/run" --set output.frames=false --set output.pictures=false
            --set output.checkpoints=false "${size[@]}" "$@")
        if [ -n "${LAUNCH:-}" ]; then
            # shellcheck disable=SC2086
            hash=$($LAUNCH "$ranks" "$weft" "${run[@]}")
        else
            hash=$("$weft" "${run[@]}" --ranks "$ranks")
        fi
        loop=$(field loop_s) vertices=$(field vertices)
        first=${first:-$loop}
        ratio=$(awk -v a="$first" -v b="$loop" 'BEGIN { printf "%.3f", a / b }')
        echo "$kind,$ranks,$repeat,$vertices,$(field steps),$loop,${hash#state hash },$ratio" | tee -a "$csv"
        times+=("$loop")
    done
    printf '%s\n' "${times[@]}" | awk -v p="$ranks" -v v="$vertices" '
        { s += $1; if (NR == 1 || $1 < lo) lo = $1; if ($1 > hi) hi = $1 }
        END { printf "%d ranks, %d vertices: mean %.3f s, %.3f to %.3f\n", p, v, s / NR, lo, hi }' >>"$out/means"
done
cat "$out/means" >&2
