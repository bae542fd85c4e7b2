#!/usr/bin/env bash
# Has an exact judge look at scenes in which cloth meets cloth fast: certified steps must be
# accepted, and the judge must refuse what is not certified and crosses. Takes a minute on two
# cores, with a build for debugging.
#
#   tests/certified.sh
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --locked --bin weft --example certified_scenes
target=${CARGO_TARGET_DIR:-target}
weft=$target/debug/weft
folder=$target/certified
rm -rf "$folder"
"$target/debug/examples/certified_scenes" "$folder"

# Judges a run: the exit code that is wanted, then what `weft certify` is given.
judge() {
    local wanted=$1 code=0
    shift
    "$weft" certify "$@" >"$folder/told" 2>&1 || code=$?
    if [ "$code" != "$wanted" ]; then
        cat "$folder/told" >&2
        echo "$0: weft certify $*: exit code $code, not $wanted" >&2
        exit 1
    fi
    printf '%-12s %s\n' "$([ "$code" = 0 ] && echo accepted || echo refused)" "$*"
}

judge 7 scenes/certified/clash.toml --set contact.certify=false
judge 7 "$folder/slam-20.toml" --set contact.certify=false --set time.step=5ms
for step in 1ms 2ms 5ms; do
    judge 0 scenes/certified/clash.toml --set time.step="$step"
    judge 0 "$folder/slam-20.toml" --set time.step="$step"
done
judge 0 scenes/certified/clash.toml --ranks 3
judge 0 scenes/certified/through.toml --once
judge 3 scenes/certified/through.toml --once --set start.crossings='"refuse"'
# On 16 ranks that are sent what their tests read, the state is that of one rank that has all.
for scene in scenes/certified/clash.toml "$folder/slam-20.toml"; do
    judge 0 "$scene" --set partition.patches=128
    alone=$(grep '^state hash' "$folder/told")
    judge 0 "$scene" --set partition.patches=128 --ranks 16 --set 'partition.state="subscribed"'
    if [ "$(grep '^state hash' "$folder/told")" != "$alone" ]; then
        echo "$0: $scene: another state on 16 ranks" >&2
        exit 1
    fi
done
for integrator in bdf2 newmark central; do
    judge 0 scenes/certified/clash.toml --once --set solver.integrator="\"$integrator\""
done
for substeps in 1 4 8 '"adaptive"'; do
    judge 0 scenes/certified/clash.toml --once --set contact.pipeline='"2009"' --set contact.substeps="$substeps"
    judge 0 "$folder/slam-20.toml" --once --set contact.pipeline='"2009"' --set contact.substeps="$substeps"
done
judge 0 scenes/certified/clash.toml --ranks 3 --set contact.pipeline='"2009"' --set solver.integrator='"newmark"'
judge 0 "$folder/twister.toml" --until 0.1 --once --set contact.pipeline='"2009"' --set time.step=8ms
judge 0 "$folder/slam-100.toml"
judge 0 "$folder/ribbons-20.toml"
judge 0 "$folder/layers.toml" --until 0.008
judge 0 "$folder/layers-moving.toml" --until 0.008
judge 0 "$folder/flaps-20.toml" --set time.step=5ms
judge 0 quick
judge 0 scenes/sewn-shirt.toml --once --until 0.7
for scene in scenes/2009/*.toml; do
    judge 0 "$scene" --once --until 0.1
done
