#!/usr/bin/env bash
# Has an exact judge look at every scene that is known to be hard, at steps of 1, 2 and 5 ms, and
# prints a table. Fails if one is not accepted. Each run's output lies in target/nightly.
#
#   tests/nightly.sh                      all of it: hours
#   SCENES='slam-* layers' tests/nightly.sh   scenes by their names, and nothing else
#   STEPS='2 5' JOBS=1 tests/nightly.sh   other steps in ms; runs at a time [one per core]
#
# With SCENES unset it also runs the property tests of the judge and of truncation with a hundred
# times the cases and seeds of their own, asks the oracle of continuous collision detection about
# 10⁸ queries, has Blender read what is exported, compiles all packages as they would be published,
# builds the program for musl and for Arm, and makes both Debian packages.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
folder=$target/nightly
profile=${PROFILE:-release}
if [ "$profile" = release ]; then
    cargo build --locked --release --bin weft --example certified_scenes
else
    cargo build --locked --bin weft --example certified_scenes
fi
weft=$target/$profile/weft
mkdir -p "$folder"
"$target/$profile/examples/certified_scenes" "$folder"

# Judges one run, and prints its line of the table: a name, a step in ms, then what `weft certify`
# is given.
judge() {
    local name=$1 step=$2 code=0 began=$SECONDS
    shift 2
    local told=$folder/$name-$step.txt
    "$weft" certify "$@" --set time.step="${step}ms" >"$told" 2>&1 || code=$?
    local verdict
    case $code in
    0) verdict=accepted ;;
    7) verdict=refused ;;
    *) verdict="failed $code" ;;
    esac
    local within
    within=$(grep -q '^within cloth: clean' "$told" && echo clean || echo -)
    local cut
    cut=$(sed -n 's/.* (\(.*\) % of all)$/\1/p' "$told")
    printf '%-18s %3s ms  %-10s %-7s %8s %%  %5s s\n' "$name" "$step" "$verdict" "$within" "${cut:--}" $((SECONDS - began))
    [ "$code" = 0 ] || echo "$name $step" >>"$folder/not-accepted"
}
export -f judge
export weft folder

rm -f "$folder/not-accepted"
wanted=()
scenes=("$folder"/*.toml)
# Patterns are for the names of scenes, and not for files.
set -f
for step in ${STEPS:-1 2 5}; do
    for scene in "${scenes[@]}"; do
        name=$(basename "$scene" .toml)
        [ -n "${SCENES:-}" ] || wanted+=("$name $step $scene")
        for pattern in ${SCENES:-}; do
            # shellcheck disable=SC2254
            case $name in $pattern) wanted+=("$name $step $scene") ;; esac
        done
    done
done
if [ -z "${SCENES:-}" ]; then
    # The examples of Selle et al. 2009: small, and with a tenth of the paper's triangles.
    for sized in "twister 4" "leaves 5" "spinning-ball 6" "curtain 7" "wardrobe 7"; do
        read -r name detail <<<"$sized"
        wanted+=("2009-$name 2 scenes/2009/$name.toml" "2009-$name-tenth 2 scenes/2009/$name.toml --set detail=$detail")
    done
    # Panels that are sewn together round a figure.
    for step in 1 2 5; do
        wanted+=("sewn-shirt $step scenes/sewn-shirt.toml")
    done
    # All of them on ranks that are sent what their tests read.
    for scene in "${scenes[@]}"; do
        wanted+=("$(basename "$scene" .toml)-16 2 $scene --ranks 16 --set partition.patches=128 --set partition.state=subscribed")
    done
    # Scenes of the paper, with steps and solves that are far too coarse.
    for scene in drape-free drape-floor; do
        wanted+=("$scene-harsh 20 $scene --set solver.tolerance=0.9 --set solver.max_iterations=1")
    done
fi
if [ ${#wanted[@]} = 0 ]; then
    echo "$0: no scene is called ${SCENES}" >&2
    exit 2
fi
printf '%-18s %6s  %-10s %-7s %10s  %7s\n' scene step verdict cloth cut time
printf '%s\n' "${wanted[@]}" |
    xargs -P "${JOBS:-$(nproc)}" -I{} bash -c 'set -f; judge $1' _ {}

if [ -z "${SCENES:-}" ]; then
    PROPTEST_TIMES=100 cargo test --locked --release -p weft-judge
    PROPTEST_TIMES=100 cargo test --locked --release --lib certify::
    cargo test --locked --release --test ccd hundred_million -- --ignored --nocapture
    tests/formats.sh --blender
    cargo publish --dry-run --locked --workspace --exclude weftwork-python --allow-dirty
    tests/static.sh
    command -v cargo-deb >/dev/null || {
        cargo install --locked --root "$target/cargo-deb" cargo-deb
        PATH=$(realpath "$target/cargo-deb/bin"):$PATH
    }
    contrib/deb.sh
    contrib/deb.sh --mpi
fi
if [ -s "$folder/not-accepted" ]; then
    echo "$0: not accepted:" >&2
    sort "$folder/not-accepted" >&2
    exit 1
fi
