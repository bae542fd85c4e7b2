#!/usr/bin/env bash
# The promise: the state hash does not depend on ranks, workers, seeds, or on whether ranks steal.
#
#   tests/promise.sh scenes/drape-floor.toml [more options of `weft run`]
set -euo pipefail
cd "$(dirname "$0")/.."

weft=${WEFT:-target/release/weft}
scene=$1
shift
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

first=
while read -r options; do
    # shellcheck disable=SC2086
    line=$("$weft" run "$scene" --quiet --out "$out/run" --overwrite --set output.frames=false \
        --set output.pictures=false "$@" $options | grep '^state hash')
    hash=${line##* }
    echo "$hash  $scene $options"
    first=${first:-$hash}
    if [ "$hash" != "$first" ]; then
        echo "the promise is broken: $options gave $hash, not $first" >&2
        exit 1
    fi
done <<'RUNS'
--ranks 1
--ranks 1 --threads 3
--ranks 2
--ranks 2 --threads 2 --seed 99
--ranks 3 --seed 7
--ranks 3 --no-steal
--ranks 7 --split oldest
--ranks 7 --seed 12345 --split every-other
RUNS
echo "the same state on every one of them: $first"
