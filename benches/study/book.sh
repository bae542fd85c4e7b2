#!/usr/bin/env bash
# Every figure of the book: the tables and plots of its page on scaling, the pictures of all pages,
# and the tables that belong to these.
#
#   benches/study/book.sh [--quick] [STAGE...]     (all stages, unless some are named)
#
# Work that is done in OUT is not done again: give a stopped command again, and it goes on. A new
# program needs a new OUT. Tables are written between the marks that pages have for them, pictures
# to where pages look for them. A stage that this machine lacks something for is left out, with a
# message at once and at the end; the exit code is then 3.
#
# Variables: OUT (runs/book), WEFT (target/release/weft), STEPS (708: of the drapes' runs the last
# eight steps are recorded), REPEAT (3), MPIRUN (mpirun), BOOK (docs/src: where pages and pictures
# are). With --quick all is small, and nothing of it a figure: for a test, with an OUT and a BOOK of
# its own.
set -euo pipefail
usage() { sed -n '2,15s/^# \{0,1\}//p' "$0" >&2; exit 2; }
cd "$(dirname "$0")/../.."

# The last builds a program of its own, with MPI.
stages=(drape finer million sharing sheet replay validation pictures gallery examples whole outer report order cores mpirun)
declare -A takes=(
    [drape]="3 minutes: both scenes of the 2006 paper recorded, and studied on cores of today and of 2006"
    [finer]="5 minutes and 1 GB: drape-floor with 40,000 and 100,000 vertices (after drape)"
    [million]="1 minute and 1 GB: 128 drape-floors side by side on 4,096 ranks (after drape)"
    [sharing]="7 minutes and 1 GB: two scenes of 256 patches on 4 to 256 ranks under five ways to share work"
    [sheet]="half a minute: the solve of a sheet of 100,000 vertices"
    [replay]="1 minute: replays against runs that are simulated whole, and against runs in virtual time"
    [validation]="10 seconds, and some minutes for building: the pictures of all validation cases; needs cargo"
    [pictures]="1 minute: drape-floor to its end, sheets that clash, and the parts of a shirt"
    [gallery]="4 minutes: ten scenes to their ends; needs cargo"
    [examples]="1 minute, or an hour with SIZES='small tenth': the examples of Selle et al. 2009"
    [whole]="half a day on one core, and 5 GB: those examples in the paper's size to their ends; all of it, or some named in WHOLE"
    [outer]="15 minutes: the twister, certified after 1 to 16 substeps; needs cargo"
    [report]="half a minute: a scene under two policies, and its report; needs chromium, chromedriver and curl for pictures of it"
    [order]="6 minutes, and some more for building: what equal bits on any number of ranks cost; needs cargo"
    [cores]="5 minutes: drape-floor under mpirun on 1 to 16 cores; needs these, and WEFT built with --features mpi"
    [mpirun]="20 minutes, and some more for building: both scenes under mpirun; needs cargo, an MPI with mpirun, and libclang"
)

quick=
wanted=()
for word in "$@"; do
    case $word in
    --quick) quick=yes ;;
    -*) usage ;;
    *)
        [ -n "${takes[$word]-}" ] || { echo "$0: no stage \`$word\`; there are: ${stages[*]}" >&2; exit 2; }
        wanted+=("$word")
        ;;
    esac
done
[ ${#wanted[@]} -gt 0 ] || wanted=("${stages[@]}")

out=${OUT:-runs/book} weft=${WEFT:-target/release/weft} steps=${STEPS:-708} repeat=${REPEAT:-3} book=${BOOK:-docs/src}
if [ -n "$quick" ] && { [ -z "${OUT:-}" ] || [ "$(realpath "$book")" = "$(realpath docs/src)" ]; }; then
    echo "$0: --quick wants an OUT and a BOOK of its own: an empty folder and a copy of docs/src" >&2
    exit 2
fi
command -v "$weft" >/dev/null || { echo "$weft: build it (cargo build --release), or set WEFT" >&2; exit 2; }
mkdir -p "$out"

# All cloths, and on how many ranks.
cut=(--set partition.patches=64)
declare -A shared
fine=(--set cloth.grid.vertices=200 --set contact.thickness="2 mm" --set partition.patches=256)
finest=(--set cloth.grid.vertices=316 --set contact.thickness="1.3 mm" --set partition.patches=512)
sweep_ranks=1..64 most=16 copies=128 million_ranks=(256 1024 4096) million_vertices="1,280,000 vertices"
sheet=(--steps 30 --record 27..30) sheet_first=27
shared=([drape-floor]="--set cloth.grid.vertices=200 --set contact.thickness=2mm --steps $steps" [one-sided]="--steps 150")
shared_ranks=4,16,64,256 shared_patches=256
declare -A replayed_on=([quick]="2 4 8" [one-sided]="8 16 32") replayed_steps=([quick]=160..175 [one-sided]=105..120)
floor=(--set output.interval="2 s") shown_step=140 twister=(--until "1.6 s") wound=(--until "0.9 s") twister_substep=0.001 report=() mending=(--record 101..150 --steps 150) profile=(--release)
gallery=() example_sizes=${SIZES:-small} example_small=() example_tenth=(--until "${TENTH_UNTIL:-0.2}") example_whole=(--until "${WHOLE_UNTIL:-0.01}") whole=()
if [ -n "$quick" ]; then
    steps=${STEPS:-4} repeat=${REPEAT:-1}
    cut=(--set cloth.grid.vertices=24 --set partition.patches=16)
    fine=(--set cloth.grid.vertices=26 --set partition.patches=16)
    finest=(--set cloth.grid.vertices=28 --set partition.patches=16)
    sweep_ranks=1,16 copies=2 million_ranks=(16 32) million_vertices="two small cloths"
    shared=([drape-floor]="--set cloth.grid.vertices=24 --steps 4" [one-sided]="--steps 4") shared_ranks=4,16 shared_patches=16
    sheet=(--steps 4 --record 3..4 --set cloth.grid.vertices=40 --set partition.patches=64) sheet_first=3
    replayed_on=([quick]=2 [one-sided]=8) replayed_steps=([quick]=3..4 [one-sided]=3..4)
    floor=(--set time.end="10 ms" --set output.interval="10 ms") shown_step=10 twister=(--until "0.032 s") wound=(--until "0.0032 s") twister_substep=0.001 report=(--steps 20) mending=(--record 3..4 --steps 4) profile=()
    gallery=(--steps 2) example_sizes=small example_small=(--steps 2) whole=(--steps 2 --set detail=1)
fi

. benches/study/tables.sh
. benches/study/examples.sh

all_policies=$(IFS=, && echo "${policies[*]}")
sweep=(--ranks "$sweep_ranks" --policy "$all_policies" --network "myrinet-2000,gigabit,hdr-infiniband" --repeat "$repeat")
some=(--ranks "1,$most" --network myrinet-2000 --repeat "$repeat")

# Its data are in the folder $out/NAME, and its text is in $out/NAME.txt.
study() { # NAME ARGUMENTS OF weft study
    "$weft" study "${@:2}" --out "$out/$1" >"$out/$1.txt"
}

picture() { # FILE NAME: to where the book looks for it.
    cp "$1" "$book/images/$2"
}

not_made=()
skip() { # WHAT WHY
    not_made+=("$1")
    printf '\n!! NOT MADE: %s: %s\n\n' "$1" "$2" >&2
}

lacks() { # COMMAND...: the first that there is not.
    local command
    for command in "$@"; do
        command -v "$command" >/dev/null || { echo "$command"; return; }
    done
}

# A core of today; all that is of the drapes begins with these two records.
today() {
    study today scenes/drape-floor.toml scenes/drape-free.toml "${cut[@]}" --steps "$steps" "${sweep[@]}"
}

stage_drape() {
    local records=("$out/today/records/drape-floor" "$out/today/records/drape-free") scene slower
    today
    # One of 2006, on the network of 2006.
    study 2006 "${records[@]}" "${sweep[@]}" --slower 10
    # Collisions by themselves, which all ranks begin at once.
    study alone "${records[@]}" "${sweep[@]}" --slower 10 --collide
    # How much slower is an estimate: two others.
    for slower in 9 5; do
        study "$slower" "${records[@]}" "${some[@]}" --policy "$all_policies" --slower "$slower"
    done
    # It is repeated as if no rank had to make ready again what another has made ready.
    study ready "${records[0]}" "${sweep[@]}" --slower 10 --ready-free --collide
    for scene in drape-floor drape-free; do
        picture "$out/today/$scene.efficiency.svg" "study-$scene.svg"
        picture "$out/2006/$scene.efficiency.svg" "study-$scene-2006.svg"
    done
    picture "$out/2006/drape-floor.myrinet-2000.speedup.svg" study-drape-floor-phases.svg
    picture "$out/ready/drape-floor.efficiency.svg" study-drape-floor-ready.svg
    table_one_rank | fill one-rank
    table_drape_today | fill drape-today
    table_drape_2006 | fill drape-2006
    table_drape_slower | fill drape-slower
    table_drape_phases | fill drape-phases
    table_drape_ready | fill drape-ready
    table_not_computing | fill not-computing
}

stage_finer() {
    local plan=("${some[@]}" --policy "static,paper,every-other,forecast-static" --slower 10)
    today
    study fine-10000 "$out/today/records/drape-floor" "${plan[@]}"
    study fine-40000 scenes/drape-floor.toml "${fine[@]}" --steps "$steps" "${plan[@]}"
    study fine-100000 scenes/drape-floor.toml "${finest[@]}" --steps "$steps" "${plan[@]}"
    table_finer | fill finer
}

# Runs a command, and leaves in a file its seconds of processor time and the megabytes that it took
# at most: 0 where no /proc tells.
cost() { # FILE COMMAND...
    (
        peak=0
        "${@:2}" &
        while now=$(sed -n 's/^VmHWM:[[:space:]]*\([0-9]*\) kB$/\1/p' "/proc/$!/status" 2>/dev/null) && [ -n "$now" ]; do
            peak=$now
            sleep 0.5
        done
        wait $!
        # Not through a pipe, whose shells have run nothing. The second of the two lines is about
        # the programs that this shell has run.
        times >"$1.new"
        awk -v peak="$peak" 'NR == 2 { split($1, t, /[ms]/); printf "%.0f %.0f\n", 60 * t[1] + t[2], peak / 1024 }' "$1.new" >"$1"
    )
    rm "$1.new"
}

stage_million() {
    local last=${million_ranks[-1]} plan
    plan=("$out/today/records/drape-floor" --copies "$copies" --collide --repeat 1 --network hdr-infiniband)
    today
    # A point that is not there yet shows what one costs.
    if [ ! -e "$out/cost-4096.txt" ]; then
        rm -rf "$out/million"
        cost "$out/cost-4096.txt" "$weft" study "${plan[@]}" --ranks "$last" --policy every-other --out "$out/million" >"$out/million.txt"
    fi
    study million "${plan[@]}" --ranks "$(IFS=, && echo "${million_ranks[*]}")" --policy static,every-other
    picture "$out/million/drape-floor-x$copies.efficiency.svg" study-million.svg
    table_million | fill million
}

stage_sheet() {
    local kind
    for kind in multilevel block-jacobi; do
        study "sheet-$kind" benches/study/hanging.toml "${sheet[@]}" --set solver.preconditioner="$kind" \
            --ranks 1,2,16,64 --policy every-other --network hdr-infiniband --repeat "$repeat"
    done
    table_sheet | fill sheet
}

stage_sharing() {
    local scene plan
    plan=(--ranks "$shared_ranks" --policy "$(IFS=, && echo "${shared_policies[*]}")" --network hdr-infiniband --repeat "$repeat")
    for scene in drape-floor one-sided; do
        # shellcheck disable=SC2086  # These are several words.
        study "sharing-$scene" "scenes/$scene.toml" ${shared[$scene]} --set partition.patches="$shared_patches" "${plan[@]}"
    done
    table_sharing | fill sharing
}

stage_replay() {
    local scene at plan policy turn run
    for scene in quick one-sided; do
        at=${replayed_steps[$scene]} plan=(--ranks "${replayed_on[$scene]// /,}" --repeat 4 --policy forecast-static)
        [ "$scene" = one-sided ] || plan[-1]=static,every-other,forecast,forecast-static
        study "full-$scene" "scenes/$scene.toml" --full --record "$at" --steps "${at#*..}" "${plan[@]}"
        study "replay-$scene" "$out/full-$scene/records/$scene" "${plan[@]}"
    done
    table_replay | fill replay
    # And from what is measured where ranks are in virtual time.
    # In turns, for few machines are quiet for long.
    for turn in 1 2 3; do
        for policy in alone static every-other; do
            run=(scenes/one-sided.toml --ranks 4 --policy "$policy")
            [ "$policy" != alone ] || run=(scenes/one-sided.toml --ranks 1)
            [ -e "$out/virtual-$policy-$turn/run.json" ] || {
                rm -rf "${out:?}/virtual-$policy-$turn"
                "$weft" run "${run[@]}" --comm virtual --network hdr-infiniband --steps "${at#*..}" --quiet --set output.frames=false \
                    --set output.pictures=false --set output.checkpoints=false --out "$out/virtual.new" --overwrite >/dev/null
                mv "$out/virtual.new" "$out/virtual-$policy-$turn"
            }
        done
    done
    study virtual-replay "$out/full-one-sided/records/one-sided" --ranks 4 --repeat 4 --policy static,every-other --network hdr-infiniband
    table_virtual "${at%..*}" | fill virtual
}

stage_validation() {
    local lacking
    lacking=$(lacks cargo)
    if [ -n "$lacking" ]; then
        skip "validation/*" "no $lacking"
        return
    fi
    # The table is written last.
    [ -e "$out/validation/found.md" ] || cargo run --quiet "${profile[@]}" --example validation -- "$out/validation"
    mkdir -p "$book/validation"
    cp "$out/validation/"* "$book/validation"
}

stage_pictures() {
    local last
    if [ ! -e "$out/floor/run.json" ]; then
        "$weft" run scenes/drape-floor.toml "${floor[@]}" --set output.frames=false --set output.checkpoints=false --out "$out/floor.new" --overwrite >"$out/floor.txt"
        mv "$out/floor.new" "$out/floor"
    fi
    last=("$out"/floor/pictures/*.png)
    picture "${last[-1]}" drape-floor.png
    "$weft" partition scenes/shirt.toml --parts 12 --set output.size='[720, 480]' --picture="$out/shirt-parts.png" >"$out/partition.txt"
    picture "$out/shirt-parts.png" shirt-parts.png
    table_partition | fill partition
    local name
    for name in crosses certified; do
        rm -rf "$out/clash"
        "$weft" run scenes/certified/clash.toml --set time.step=5ms --until 0.02 --set output.pictures=true --set output.size='[480, 320]' \
            --set output.camera='["0.26 m", "0.3 m", "0.02 m"]' --set output.look_at='["0 m", "0 m", "0.06 m"]' \
            --set contact.certify="$([ "$name" = certified ] && echo true || echo false)" --quiet --out "$out/clash" >/dev/null
        last=("$out"/clash/pictures/*.png)
        picture "${last[-1]}" "clash-$name.png"
    done
}

# Figure 14 of Selle et al. 2009, in the processor's time, which virtual ranks measure; a step has
# as many substeps as cloth is certified after.
stage_outer() {
    local lacking k step name runs=() keys
    lacking=$(lacks cargo)
    if [ -n "$lacking" ]; then
        skip "images/outer-loop.svg, table outer" "no $lacking"
        return
    fi
    hard_scenes
    for k in search 1 4 8 16 adaptive newmark; do
        name=$out/twister-$k
        step=$(awk -v k="$k" -v dt="$twister_substep" 'BEGIN { print k == "newmark" ? 0.0016 : dt * (k == "adaptive" ? 16 : k == "search" ? 1 : k) }')
        keys=(--set contact.pipeline='"2009"' "${twister[@]}")
        case $k in
        search) keys=("${twister[@]}") ;;
        newmark) keys=(--set contact.pipeline='"2009"' "${wound[@]}" --set contact.substeps=16 --set solver.integrator='"newmark"') ;;
        adaptive) keys+=(--set contact.substeps='"adaptive"') ;;
        *) keys+=(--set "contact.substeps=$k") ;;
        esac
        [ -e "$name/run.json" ] || {
            "$weft" run "$out/hard/twister.toml" --comm virtual "${keys[@]}" --set "time.step=$step" \
                --set output.checkpoints=false --quiet --out "$name.new" --overwrite 2>"$name.txt"
            mv "$name.new" "$name"
        }
        case $k in
        search) runs+=("a search in each=$name") ;;
        newmark) ;;
        adaptive) runs+=("adaptive=$name") ;;
        *) runs+=("k = $k=$name") ;;
        esac
    done
    cargo run --quiet "${profile[@]}" --example outer_loop -- "$out/outer-loop.svg" 0.016666666666666666 "${runs[@]}"
    picture "$out/outer-loop.svg" outer-loop.svg
    table_outer | fill outer
}

stage_report() {
    local policy lacking
    for policy in static every-other; do
        [ -e "$out/$policy/one-sided/run.json" ] || {
            rm -rf "${out:?}/$policy"
            "$weft" run scenes/one-sided.toml --ranks 4 --comm virtual --network hdr-infiniband --trace "${report[@]}" \
                --policy "$policy" --quiet --out "$out/$policy.new/one-sided" --overwrite
            mv "$out/$policy.new" "$out/$policy"
        }
    done
    "$weft" report "$out/static/one-sided" >"$out/report.txt"
    "$weft" report "$out/static/one-sided" "$out/every-other/one-sided" --out "$out/mended.html" >"$out/mended.txt"
    study mending scenes/one-sided.toml "${mending[@]}" --ranks 1,4 --policy static,every-other,forecast,forecast-static \
        --network hdr-infiniband
    table_mended | fill mended
    table_mending | fill mending
    lacking=$(lacks chromium chromedriver curl)
    if [ -n "$lacking" ]; then
        skip "images/report-top.png images/report-step.png" "no $lacking (Debian: apt-get install chromium chromium-driver curl)"
        return
    fi
    benches/study/screenshots.sh "$out/static/one-sided/report.html" "$shown_step" "$out"
    picture "$out/report-top.png" report-top.png
    picture "$out/report-step.png" report-step.png
}

# Runs that know nothing of each other, each on a core of its own: the seconds of the slowest, by
# which policies are to be judged there.
side_by_side() { # COUNT
    local core run runs=()
    for ((core = 0; core < $1; core++)); do
        # A turn that was interrupted may have left one.
        rm -rf "$out/cores-$core"
        "${MPIRUN:-mpirun}" --bind-to none -n 1 taskset -c "$core" "$weft" run scenes/drape-floor.toml "${on_cores[@]}" --quiet --out "$out/cores-$core" >/dev/null &
        runs+=($!)
    done
    for run in "${runs[@]}"; do wait "$run"; done
    for ((core = 0; core < $1; core++)); do
        sed -n 's/^ *"loop_s": \([0-9.]*\),$/\1/p' "$out/cores-$core/run.json"
        rm -r "$out/cores-$core"
    done | sort -g | tail -1
}

stage_cores() {
    local lacking
    if [ ! -e "$out/cores/study.csv" ]; then
        lacking=$(lacks "${MPIRUN:-mpirun}" taskset)
        grep -q '^features.*mpi' <<<"$("$weft" info)" || lacking="MPI in $weft (cargo build --release --features mpi)"
        [ "$(nproc)" -ge "$most" ] || lacking="$most cores"
        if [ -n "$lacking" ] || [ -n "$quick" ]; then
            skip "table cores" "no ${lacking:-time for it}"
            return
        fi
        measure_cores
    fi
    table_cores | fill cores
}

measure_cores() {
    local count turn slowest start=$out/cores-start
    local plain=(--set output.frames=false --set output.pictures=false) on_cores
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    if [ ! -e "$start/run.json" ]; then
        "$weft" run scenes/drape-floor.toml "${cut[@]}" "${plain[@]}" --steps 600 --quiet --out "$start.new" --overwrite >/dev/null
        mv "$start.new" "$start"
    fi
    on_cores=("${cut[@]}" "${plain[@]}" --set output.checkpoints=false --resume="$start/state.000600.ckpt" --steps 700)
    # In turns, for few machines are quiet for long.
    for turn in 1 2 3; do
        [ ! -e "$out/cores-beside-$turn.txt" ] || continue
        for count in 1 2 4 8 "$most"; do
            slowest=$(side_by_side "$count")
            echo "$count $slowest"
        done >"$out/cores-beside.new"
        mv "$out/cores-beside.new" "$out/cores-beside-$turn.txt"
    done
    study cores scenes/drape-floor.toml "${cut[@]}" --resume "$start/state.000600.ckpt" --steps 700 --repeat 3 --real \
        --launch "${MPIRUN:-mpirun} --bind-to core -n {}" --ranks "1,2,4,8,$most" --policy static,every-other,forecast,forecast-static
}

stage_order() {
    local lacking
    if [ ! -e "$out/order.txt" ]; then
        lacking=$(lacks cargo)
        if [ -n "$lacking" ] || [ -n "$quick" ]; then
            skip "table order" "no ${lacking:-time for it}"
            return
        fi
        cargo bench --quiet --bench order >"$out/order.new"
        mv "$out/order.new" "$out/order.txt"
    fi
    table_order | fill order
}

stage_mpirun() {
    local lacking
    if [ ! -e "$out/mpirun.txt" ]; then
        lacking=$(lacks cargo "${MPIRUN:-mpirun}" mpicc)
        if [ -n "$lacking" ] || [ -n "$quick" ]; then
            skip "table mpirun" "no ${lacking:-time for it} (Debian: apt-get install libopenmpi-dev openmpi-bin libclang-dev)"
            return
        fi
        if ! cargo bench --quiet --features mpi --bench mpirun --no-run; then
            skip "table mpirun" "its bench is not built (Debian: apt-get install libopenmpi-dev openmpi-bin libclang-dev)"
            return
        fi
        cargo bench --quiet --features mpi --bench mpirun >"$out/mpirun.new"
        mv "$out/mpirun.new" "$out/mpirun.txt"
    fi
    table_mpirun | fill mpirun
}

echo "Figures of the book, in $out; on two cores, where nothing is done yet:"
for stage in "${wanted[@]}"; do printf '  %-9s %s\n' "$stage" "${takes[$stage]}"; done
for stage in "${wanted[@]}"; do
    printf '\n== %s\n' "$stage"
    began=$SECONDS
    # Not where a condition asks how it ended: then nothing in it would end it.
    "stage_$stage"
    printf '== %s: done in %d s\n' "$stage" $((SECONDS - began))
done
# Every table of the pages.
for table in "$out"/table-*.md; do
    [ -e "$table" ] || continue
    printf '\n'
    cat "$table"
done
if [ ${#not_made[@]} -gt 0 ]; then
    printf '\nNOT MADE, and left as it was:\n' >&2
    printf '  %s\n' "${not_made[@]}" >&2
    exit 3
fi
