#!/usr/bin/env bash
# Runs the sample runs in the headers of the runtime's examples, and of the simulator's that have
# some, and compares what they print.
#
#   tests/examples.sh [EXAMPLE...]
#
# A sample is a line `//! $ NAME ARGUMENTS` in the block after "Sample runs:", and below it the
# first lines of the output; of one that ends in `…` only what is before that. Nothing is quoted or
# expanded in it.
set -euo pipefail
cd "$(dirname "$0")/.."

# A sample that takes longer is said to hang.
seconds=300
limit=()
if command -v timeout >/dev/null; then
    limit=(timeout "$seconds")
fi

# Each of the runtime's examples is there to be run; most of the simulator's make files.
sources=(runtime/examples/*.rs runtime/examples/*/main.rs)
mapfile -t -O "${#sources[@]}" sources < <(grep -l '^//! Sample runs:' examples/*.rs)
builds=()
for source in "${sources[@]}"; do
    [[ $source == examples/* ]] && builds+=(--example "$(basename "$source" .rs)")
done
cargo build --locked --release -p weft-runtime --examples
[ ${#builds[@]} = 0 ] || cargo build --locked --release -p weftwork "${builds[@]}"
programs=$(cd "${CARGO_TARGET_DIR:-target}/release/examples" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "tests/examples.sh: example $name: $*" >&2
    exit 1
}

# The sample runs of a source file, without the comment signs.
samples() {
    awk '
        /^\/\/! Sample runs:/ { found = 1; next }
        found && /^\/\/! ```/ { if (inside) exit; inside = 1; next }
        !/^\/\/!/ { exit }
        inside { sub(/^\/\/! ?/, ""); print }
    ' "$1"
}

# Runs the sample at hand, if there is one.
check() {
    [ -n "$command" ] || return 0
    [ ${#expected[@]} -gt 0 ] || fail "\`$command\` says nothing of what it prints"
    local words arguments output status=0 line at=0
    read -ra words <<<"$command"
    [ "${words[0]}" = "$name" ] || fail "\`$command\` runs another program"
    arguments=("${words[@]:1}")
    (cd "$work" && "${limit[@]}" "$programs/$name" "${arguments[@]}") >"$work/out" 2>"$work/err" ||
        status=$?
    if [ "$status" != 0 ]; then
        cat "$work/err" >&2
        fail "\`$command\` ended with status $status"
    fi
    mapfile -t output <"$work/out"
    for line in "${expected[@]}"; do
        local got=${output[at]-(nothing)}
        case $line in
        *…) [[ $got == "${line%…}"* ]] ;;
        *) [[ $got == "$line" ]] ;;
        esac || fail "\`$command\`, line $((at + 1)): expected"$'\n'"  $line"$'\n'"got"$'\n'"  $got"
        at=$((at + 1))
    done
    echo "$command"
    runs=$((runs + 1))
}

seen=' '
for source in "${sources[@]}"; do
    [ -e "$source" ] || continue
    name=${source#*examples/}
    name=${name%/main.rs}
    name=${name%.rs}
    [ $# = 0 ] || [[ " $* " == *" $name "* ]] || continue
    seen+="$name "
    runs=0 command='' expected=()
    while IFS= read -r line; do
        case $line in
        '$ '*)
            check
            command=${line#'$ '} expected=()
            ;;
        *) expected+=("$line") ;;
        esac
    done < <(samples "$source")
    check
    [ "$runs" -gt 0 ] || fail "no sample runs in $source"
done
for name in "$@"; do
    [[ $seen == *" $name "* ]] || fail "there is none"
done
