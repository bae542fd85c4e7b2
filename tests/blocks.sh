#!/usr/bin/env bash
# Runs what users copy: the shell blocks of the README and of the book, and checks their scenes; so
# that nothing in them is stale.
#
#   tests/blocks.sh [PAGE...]
#
# Everything runs in a copy of the folders of scenes, and shortened: commands before the true ones
# take runs down to a few steps and studies to a few points, and say what launchers, package
# managers and cargo were asked for without doing it. All of it must be there: options, scenes,
# scripts, packages, features. A comment with "exit code N" behind a command says how it ends. A
# block behind a line `<!-- not run: WHY -->` is left out. Python is run by tests/python.sh; Rust
# must stand in a file of the project, line by line, except that of runtime/README.md, which
# `cargo test --doc` runs. Needs target/release/weft, or WEFT.
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD
weft=$(realpath "${WEFT:-target/release/weft}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pages=("$@")
[ $# -gt 0 ] || pages=(README.md python/README.md runtime/README.md runtime/PROTOCOL.md docs/src/*.md docs/src/*/*.md)

# --- commands before the true ones ---

mkdir "$work/bin" "$work/place"
shim() { # NAME: a command from standard input.
    { echo '#!/usr/bin/env bash'; echo 'set -euo pipefail'; cat; } >"$work/bin/$1"
    chmod +x "$work/bin/$1"
}
shim weft <<SHIM
weft='$weft'
SHIM
cat >>"$work/bin/weft" <<'SHIM'
command=${1:-}
shift || true
kept=()
has() { [[ " ${given[*]} " == *" $1 "* ]]; }
given=("$@")
short() { # OPTION VALUE: takes the place of what was given, which is read all the same.
    local at
    for at in "${!given[@]}"; do
        if [ "${given[$at]}" = "$1" ]; then given[at+1]=$2; return; fi
    done
    given+=("$1" "$2")
}
without() { # OPTION
    local at
    for at in "${!given[@]}"; do
        if [ "${given[$at]}" = "$1" ]; then unset "given[at]" "given[at+1]"; given=("${given[@]}"); return; fi
    done
}
case $command in
run)
    without --until
    short --steps 2
    given+=(--set output.pictures=false)
    has --quiet || has --json || given+=(--quiet)
    # Runs that blocks begin with may be there.
    if ! has --overwrite && [[ " ${given[*]} " != *" --resume"* ]]; then given+=(--overwrite); fi
    ;;
certify) has states || { without --until; short --steps 3; } ;;
study)
    short --steps 4
    if has --real; then without --record; else short --record 3..4; fi
    short --ranks 1,2
    short --repeat 1
    # Launchers are not here.
    without --launch
    has --quiet || has --json || given+=(--quiet)
    ;;
# A server would not end.
view) has --out || given+=(--out view.html) ;;
esac
exec "$weft" "$command" "${given[@]}"
SHIM
# Ranks that a launcher would start are threads.
shim mpirun <<'SHIM'
[ "$1" = -n ] || { echo "mpirun: not understood: $*" >&2; exit 2; }
ranks=$2
shift 2
exec "$@" --ranks "$ranks"
SHIM
shim srun <<'SHIM'
while [[ $1 == --* ]]; do shift; done
exec "$@"
SHIM
# Targets that cargo would build must be there.
shim cargo <<SHIM
root='$root'
SHIM
cat >>"$work/bin/cargo" <<'SHIM'
said=" $* "
if [[ $said =~ \ --example\ ([a-z_0-9]+)\  ]]; then
    example=${BASH_REMATCH[1]}
    compgen -G "$root/examples/$example*" >/dev/null || compgen -G "$root/*/examples/$example*" >/dev/null || { echo "cargo: no example $example" >&2; exit 101; }
    # tests/examples.sh runs it; what reads it gets nothing.
    exit 0
fi
if [[ $said =~ \ --features\ ([a-z]+)\  ]]; then
    grep -q "^${BASH_REMATCH[1]} = " "$root/Cargo.toml" || { echo "cargo: no feature ${BASH_REMATCH[1]}" >&2; exit 101; }
fi
case $1 in
run) [[ $said == *" -- "* ]] && exec weft ${said##* -- } ;;
build | install | test | bench) exit 0 ;;
esac
echo "cargo: not understood: $*" >&2
exit 2
SHIM
shim pip <<SHIM
for word in "\${@:2}"; do
    case \$word in ./*) [ -f "$root/\$word/pyproject.toml" ] || { echo "pip: no package in \$word" >&2; exit 1; } ;; esac
done
SHIM
for name in apt-get module llvm-config; do echo "echo $name" | shim "$name"; done
# A search for events that nobody made finds none, and that is no fault.
printf 'cat >/dev/null\n' | shim grep

# --- the place where blocks run ---

cd "$work/place"
cp -r "$root/scenes" .
mkdir -p target/release tests benches
cp -r "$root/benches/study" benches/
ln -s "$work/bin/weft" target/release/weft
# Scripts that take long are only looked for.
for script in "$root"/tests/*.sh "$root"/benches/study/*.sh; do
    name=${script#"$root/"}
    mkdir -p "$(dirname "$name")"
    rm -f "$name"
    { echo '#!/bin/sh'; echo "test -x '$script'"; } >"$name"
    chmod +x "$name"
done
square() { # CENTIMETRES HEIGHT: a square of 11 x 11 vertices.
    awk -v side="$1" -v z="$2" 'BEGIN {
        for (y = 0; y <= 10; y++) for (x = 0; x <= 10; x++) print "v", side * x / 10, side * y / 10, z
        for (y = 0; y < 10; y++) for (x = 1; x <= 10; x++) { a = 11 * y + x; print "f", a, a + 1, a + 12, a + 11 }
    }'
}
square 60 0 >coat.obj
square 0.6 0 | awk '$1 == "v" { print "v", $2, $4, -$3; next } { print }' >sheet.obj
square 0.6 1.5 | awk '/^f/ { if (++faces == 1) print "g collar"; if (faces == 11) print "g body" } { print }' >dress.obj
printf '%s\n' 'v 0 0 0' 'v 0.5 0 0' 'v 0 0.5 0' 'v 0 0 0.5' 'f 1 3 2' 'f 1 2 4' 'f 2 3 4' 'f 1 4 3' |
    tee mannequin.obj figure.obj figure.0001.obj figure.0002.obj >paddle.obj
cp "$root/scenes/gallery/figure.glb" figure.glb
PATH=$work/bin:$PATH weft run quick >/dev/null 2>&1
# A scene for many ranks, and what is prepared of it.
cp scenes/quick.toml big.toml
"$weft" prepare big.toml --out big.world >/dev/null

# --- blocks ---

fail() {
    echo "tests/blocks.sh: $*" >&2
    exit 1
}
runs=0
left=0
run_shell() { # PLACE FILE
    # The end of a command is what its comment says.
    awk '
        /# .*exit code [1-9]/ { match($0, /exit code [0-9]+/); code = substr($0, RSTART + 10, RLENGTH - 10)
            sub(/ +# .*/, ""); print "code=0; { " $0 "; } >said 2>&1 || code=$?; [ \"$code\" = " code " ] || { cat said; echo \"exit code $code\"; exit 1; }"; next }
        { print }' "$2" >"$work/script"
    (export PATH="$work/bin:$PATH" SLURM_CPUS_PER_TASK=1 SLURM_JOB_ID=7
        bash -euo pipefail "$work/script") >"$work/said" 2>&1 </dev/null ||
        fail "$1 does not run:"$'\n'"$(cat "$2")"$'\n'"$(tail -n 20 "$work/said")"
}
check_scene() { # PLACE FILE
    local scene=$work/place/block.toml cloth='grid = { size = 1, vertices = 11 }
        rotation = ["90 deg", 0, 0]
        material = { density = 0.15, stretch = 1000, bending = 1e-5 }'
    if grep -q '^\[\[cloth\]\]' "$2"; then
        cp "$2" "$scene"
    elif grep -q '^pins' "$2"; then
        { printf '[[cloth]]\ncenter = [0, 0, 0.5]\n%s\n' "$cloth"; cat "$2"; } >"$scene"
    else
        { cat "$2"; printf '[[cloth]]\ncenter = [0, 5, 0.5]\n%s\n' "$cloth"; } >"$scene"
    fi
    "$weft" check "$scene" >"$work/said" 2>&1 || fail "$1 is no scene:"$'\n'"$(cat "$2")"$'\n'"$(tail -n 5 "$work/said")"
}
squeezed() { sed 's|//.*||' | tr -d ' ,\n'; }
find_rust() { # PLACE FILE
    local line
    # Lines may be broken elsewhere in the files.
    [ -e "$work/rust" ] || find "$root"/{src,runtime,balance,study,report,examples} -name '*.rs' -exec cat {} + | squeezed >"$work/rust"
    while IFS= read -r line; do
        line=$(squeezed <<<"$line")
        [ -z "$line" ] || command grep -qF -- "$line" "$work/rust" || fail "$1: in no file of the project: $line"
    done <"$2"
}
for page in "${pages[@]}"; do
    awk -v out="$work/block" '
        /^```/ && on { on = 0; close(file); print file, start, kind; next }
        /^```/ { kind = substr($0, 4); start = NR; on = 1; n++; file = out "." n; printf "" >file; if (last ~ /^<!-- not run: /) kind = "left"; next }
        on { print >file; next }
        { if ($0 != "") last = $0 }' "$root/$page" >"$work/blocks"
    while read -r file start kind; do
        place="$page:$start"
        case $kind in
        sh) run_shell "$place" "$file" ;;
        toml) check_scene "$place" "$file" ;;
        # The programs of this page are tests of the crate's documentation.
        rust) [ "$page" = runtime/README.md ] || find_rust "$place" "$file" ;;
        left) left=$((left + 1)); continue ;;
        *) continue ;;
        esac
        runs=$((runs + 1))
    done <"$work/blocks"
done
[ $# -gt 0 ] || [ "$runs" -ge 30 ] || fail "only $runs blocks"
echo "$runs blocks are as they should be; $left say why they are not run"
