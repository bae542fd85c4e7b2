#!/usr/bin/env bash
# Compares state hashes of short runs with those of earlier programs, so that no change alters what
# cloth does by accident. Each run is made twice, on one rank and on three. Takes half a minute.
#
#   tests/hashes.sh           compares with tests/hashes.txt
#   tests/hashes.sh --write   writes tests/hashes.txt anew; tell the change in CHANGELOG.md
#
# Needs target/release/weft, or WEFT.
set -euo pipefail
cd "$(dirname "$0")/.."

weft=${WEFT:-target/release/weft}
list=tests/hashes.txt
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

hash_of() { # OPTIONS...: the state hash of a run.
    local line
    line=$("$weft" run "$@" --quiet --out "$out/run" --overwrite --set output.frames=false \
        --set output.pictures=false 2>"$out/said" | grep '^state hash') || { cat "$out/said" >&2; return 1; }
    echo "${line##* }"
}

grep '^#' "$list" >"$out/new"
code=0
runs=0
while read -r known options; do
    runs=$((runs + 1))
    # shellcheck disable=SC2086
    hash=$(hash_of $options --ranks 1) || exit 1
    # shellcheck disable=SC2086
    several=$(hash_of $options --ranks 3 --seed 5) || exit 1
    if [ "$several" != "$hash" ]; then
        echo "$0: $options: $hash on one rank, $several on three" >&2
        exit 1
    fi
    echo "$hash $options" | tee -a "$out/new"
    if [ "${1:-}" != --write ] && [ "$hash" != "$known" ]; then
        echo "$0: $options: the state hash was $known; see the top of $list" >&2
        code=1
    fi
done < <(grep -v '^#' "$list")
[ "$runs" -ge 5 ] || { echo "$0: only $runs runs in $list" >&2; exit 1; }
[ "${1:-}" != --write ] || cp "$out/new" "$list"
exit "$code"
