#!/usr/bin/env bash
# Everything that needs a real mpirun: the driver's conformance, thread groups, ranks that fail, and
# the command on several ranks. On Debian as root it installs what it lacks. Every mpirun has a time
# limit.
#
#   tests/mpi.sh            all of it
#   MPI=mpich tests/mpi.sh  on MPICH instead of Open MPI: conformance and groups, in target/mpich
set -euo pipefail
cd "$(dirname "$0")/.."

source tests/mpi-setup.sh
say() { printf -- '-- %s\n' "$*"; }
fail() { echo "tests/mpi.sh: $*" >&2; exit 1; }

# As root, more ranks than cores, bound to none; Open MPI 4 and 5 (others do not mind). A host that
# does not know its own name starts ten seconds late.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe PRTE_MCA_hwloc_default_binding_policy=none
export RUST_BACKTRACE=0
if [ "$(id -u)" = 0 ] && ! getent hosts "$(hostname)" >/dev/null; then
    echo "127.0.0.1 $(hostname)" >>/etc/hosts
fi

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# run SECONDS RANKS PROGRAM...: its output is in $out/stdout and $out/stderr, its exit code in
# $code.
run() {
    local limit=$1 ranks=$2
    shift 2
    code=0
    timeout --kill-after=5 "$limit" "$launcher" -n "$ranks" "$@" >"$out/stdout" 2>"$out/stderr" || code=$?
    if [ "$code" = 124 ] || [ "$code" = 137 ]; then
        cat "$out/stdout" "$out/stderr" >&2
        fail "still running after $limit s: $launcher -n $ranks $*"
    fi
}

# passes SECONDS RANKS PROGRAM...
passes() {
    run "$@"
    if [ "$code" != 0 ]; then
        cat "$out/stdout" "$out/stderr" >&2
        fail "exit code $code: $*"
    fi
}

# fails CODE TEXT RANKS PROGRAM...: with that code, one message of ours with that text, rank and
# host, and within the limit although the other ranks would go on for a minute.
fails() {
    local expected=$1 text=$2
    shift 2
    run 20 "$@"
    local lines
    lines=$(cat "$out/stdout" "$out/stderr" | grep -c '^error: ' || true)
    if [ "$code" != "$expected" ] || [ "$lines" != 1 ] ||
        ! grep -Eq "^error: $text" "$out/stderr"; then
        cat "$out/stdout" "$out/stderr" >&2
        fail "exit code $code with $lines messages, not $expected with one that says '$text': $*"
    fi
    echo "  $expected  $(grep '^error: ' "$out/stderr")"
}

say "$("$launcher" --version | head -1): driver and thread groups"
# With Open MPI the build of tests/all.sh, which has everything.
what=(--workspace --exclude weftwork-python --features weftwork/mpi --lib --bins --tests)
[ "$mpi" = openmpi ] || what=(--target-dir "target/$mpi" -p weft-mpi)
built=$(cargo test --locked "${what[@]}" --no-run --message-format=json-render-diagnostics)
# Crates have tests of one name: those of weft-mpi are meant.
program() { sed -n "/weft-mpi@/s/.*\"executable\":\"\([^\"]*\/$1-[0-9a-f]*\)\".*/\1/p" <<<"$built"; }
conformance=$(program conformance)
failures=$(program failures)
long=$(program long)

ranks=(1 2 3 4 7)
[ "$mpi" = openmpi ] || ranks=(1 2)
for n in "${ranks[@]}"; do
    passes 120 "$n" "$conformance"
    echo "  $(tail -1 "$out/stdout")"
done
export WEFT_MPI_PIECE=1000 WEFT_MPI_IDLE=yield
passes 120 2 "$conformance"
echo "  $(tail -1 "$out/stdout"), in pieces of $WEFT_MPI_PIECE bytes"
unset WEFT_MPI_PIECE WEFT_MPI_IDLE

say "a message of more bytes than 31 bits can count"
bytes=$(((1 << 31) + 12345))
free_kib=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo)
if [ "${free_kib:-0}" -gt $((3 * bytes / 1024)) ]; then
    passes 120 2 "$long" "$bytes"
    echo "  $(tail -1 "$out/stdout")"
else
    echo "  SKIPPED: it needs $((3 * bytes >> 20)) MiB of free memory, and here are $((${free_kib:-0} / 1024))"
fi

say "ranks that fail end the job together"
fails 3 'rank 1 on .*: cannot read scene.toml' 3 "$failures" no-file 1
fails 4 'rank 1 on .*: step 7' 3 "$failures" error 1
grep -q '^recorded 4: step 7' "$out/stdout" || fail "rank 0 did not record the failure"
fails 4 'rank 0 on .*: step 7' 3 "$failures" error 0
fails 4 'rank [0-2] on .*: step 7' 3 "$failures" error-on-all 0
fails 5 'rank 2 on .*: the disk is full' 3 "$failures" error-while-others-compute 2
fails 101 'rank 1 on .*panicked.*lost the thread' 3 "$failures" panic 1
fails 101 'rank 0 on .*panicked.*lost the thread' 3 "$failures" panic 0
fails 101 'rank 2 on .*panicked.*lost the thread' 3 "$failures" panic-on-a-thread 2
fails 101 'rank 1 on .*panicked.*lost the thread' 3 "$failures" panic-on-a-thread-of-a-busy-rank 1
fails 4 'rank [02] on .*rank 1 (returned without taking part|ended while)' 3 "$failures" absent-from-a-scope 1
passes 20 3 "$failures" program here
[ "$(grep -c '^met 3' "$out/stdout")" = 3 ] || fail "ranks of one program did not meet"
fails 3 '3 ranks: ranks do not run the same build: ranks 1 and 2 run there where rank 0 runs here' \
    1 "$failures" program here : -n 2 "$failures" program there
fails 5 '3 ranks: rank 1 on .*: cannot read the program' \
    1 "$failures" program here : -n 1 "$failures" unable 0 : -n 1 "$failures" program there
fails 5 '3 ranks: rank 0 on .*: cannot read the program' 3 "$failures" unable 0
run 20 3 "$failures" left-without-a-word 1
[ "$code" = 9 ] || fail "exit code $code of a rank that left without a word, not 9"
[ "$mpi" = openmpi ] || exit 0

say "the command on MPI ranks"
mkdir -p target/mpi
cp target/debug/weft target/mpi/weft
weft=target/mpi/weft
grep -q '^mpi  .*thread level funneled' <<<"$("$weft" info)" || fail "weft info does not tell the thread level"
grep -q '^features mpi' <("$weft" info) || fail "weft info does not tell its features"

hash_of() { sed -n 's/^state hash //p' "$1"; }
quiet=(--quiet --set output.frames=false --set output.pictures=false)

# It is the same binary, because the promise is one about a binary.
same_state() {
    local scene=$1 hash
    shift
    "$weft" run "$scene" --ranks 2 --out "$out/threads" --overwrite "${quiet[@]}" "$@" >"$out/alone"
    hash=$(hash_of "$out/alone")
    [ -n "$hash" ] || fail "no state hash from $scene"
    while read -r n options; do
        # shellcheck disable=SC2086
        passes 300 "$n" "$weft" run "$scene" --out "$out/mpi" --overwrite "${quiet[@]}" "$@" $options
        if [ "$(cat "$out/stdout")" != "state hash $hash" ]; then
            cat "$out/stdout" "$out/stderr" >&2
            fail "$scene on $n ranks $options: not the hash $hash of the threads driver, or not one line"
        fi
    done <<'RUNS'
1
2
2 --threads 2 --seed 99
2 --progress-thread
3 --policy paper
4 --no-steal
RUNS
    echo "  $hash  $scene"
}
same_state scenes/quick.toml
same_state scenes/drape-floor.toml --set time.end=0.06
same_state scenes/drape-free.toml --set time.end=0.06
"$weft" prepare scenes/quick.toml --out "$out/quick.world" >"$out/stdout"
same_state scenes/quick.toml --set partition.file="$out/quick.world"
same_state scenes/quick.toml --set partition.file="$out/quick.world" --set partition.state=subscribed
grep -q '"comm": "mpi"' "$out/mpi/run.json" || fail "run.json does not tell of MPI"
grep -q '"exit": 0' "$out/mpi/run.json" || fail "run.json does not tell the end"

say "the command stops and goes on"
# stops SIGNAL TARGET CODE: a run without an end is sent a signal after ten steps.
stops() {
    local name=$1 target=$2 expected=$3
    rm -rf "$out/long"
    # The process that started this script may have set it to outlive a terminal.
    timeout --kill-after=5 60 "$launcher" -n 3 env --default-signal=HUP "$weft" run scenes/quick.toml --out "$out/long" "${quiet[@]}" \
        --until 1000 --set output.checkpoint_interval=0 >"$out/stdout" 2>"$out/stderr" &
    local job=$!
    until compgen -G "$out/long/state.*1[0-9].ckpt" >/dev/null; do
        kill -0 $job 2>/dev/null || fail "the run ended before it was stopped: $(cat "$out/stderr")"
        read -rt 0.02 <> <(:) || true
    done
    # shellcheck disable=SC2046
    kill "-$name" $("$target" $job)
    code=0
    wait $job || code=$?
    if [ "$code" != "$expected" ] || ! grep -q '^stopped by SIG' "$out/stderr" ||
        ! grep -q '"stopped": "SIG' "$out/long/run.json"; then
        cat "$out/stdout" "$out/stderr" >&2
        fail "SIG$name for $target: exit code $code, not $expected, or not stopped in order"
    fi
    echo "  SIG$name for $target: $(grep '^stopped' "$out/stderr")"
}
# The launcher is what timeout started; ranks are what the launcher started.
the_launcher() { pgrep -P "$1"; }
one_rank() { pgrep -P "$(pgrep -P "$1")" | tail -1; }
stops USR1 the_launcher 0
stops HUP one_rank 0
stops TERM one_rank 0
# Open MPI ends the ranks with SIGTERM and returns 1 whatever they do.
stops TERM the_launcher 1
last=$(cd "$out/long" && ls state.*.ckpt | tail -1 | tr -dc 0-9)
target_step=$((10#$last + 30))
"$weft" run scenes/quick.toml --ranks 1 --out "$out/whole" "${quiet[@]}" --steps "$target_step" >"$out/alone"
passes 60 5 "$weft" run scenes/quick.toml --out "$out/long" "${quiet[@]}" --steps "$target_step" --resume
diff "$out/alone" "$out/stdout" || fail "a run that went on after step $last has another state"
passes 60 2 "$weft" run scenes/quick.toml --out "$out/short" "${quiet[@]}" --until 1000 --max-hours 0.0005
grep -q '^stopped by the time limit' "$out/stderr" || fail "--max-hours did not stop the run"

# One script for the first job and for all that follow.
for steps in 20 40; do
    passes 60 3 "$weft" run scenes/quick.toml --out "$out/auto" "${quiet[@]}" --steps "$steps" --resume=auto
done
diff <("$weft" run scenes/quick.toml --ranks 1 --out "$out/whole" --overwrite "${quiet[@]}" --steps 40) "$out/stdout" ||
    fail "a run with --resume=auto has another state"
grep -q '"resumed_from": 20' "$out/auto/run.json" || fail "--resume=auto did not go on"

say "traces of MPI ranks, by one clock"
passes 120 3 "$weft" run scenes/quick.toml --out "$out/traced" "${quiet[@]}" --steps 40 --trace
diff <(echo "state hash $(hash_of "$out/stdout")") \
    <("$weft" run scenes/quick.toml --ranks 1 --out "$out/whole" --overwrite "${quiet[@]}" --steps 40) || fail "a traced run has another state"
[ "$(grep -c '"process_name"' "$out/traced/trace.json")" = 3 ] || fail "not three processes in the trace"
WEFT_TRACED_RUN=$out/traced cargo test --locked --test command -q from_elsewhere
grep -o '"clock_[a-z_]*":[^"{}]*' "$out/traced/trace.json" | head -9 | tail -3 | sed 's/^/  rank 2: /'

say "the command fails as a whole"
# Each of these is one program on some ranks and another on the rest.
quick=(run scenes/quick.toml --quiet)
fails 3 'rank 1 on .*: no scene file at .*missing.toml' \
    1 "$weft" "${quick[@]}" --out "$out/f" : -n 2 "$weft" run "$out/missing.toml" --quiet --out "$out/f"
[ ! -e "$out/f" ] || fail "a run that did not begin left files"
echo 'tilte = "no title"' >"$out/bad.toml"
fails 3 'rank 0 on .*bad.toml:1: cloth: missing' 3 "$weft" run "$out/bad.toml" --out "$out/f"
fails 4 'rank [0-2] on .*step 1: no convergence' \
    3 "$weft" "${quick[@]}" --out "$out/f" --set solver.max_iterations=1 --set solver.tolerance=1e-12
grep -q '"exit": 4' "$out/f/run.json" || fail "run.json does not tell of the failure"
# Each value is one that a scene may have; together they are more than a double holds.
fails 4 'rank [0-2] on .*step 1: .*NaN.* vertex [0-9]+ of patch [0-9]+' \
    3 "$weft" "${quick[@]}" --out "$out/f" --overwrite --set cloth.material.stretch=1e12 --set 'cloth.velocity=[0,0,-1e12]' \
    --set cloth.material.damping_stiffness=1e12 --set time.step=1e12 --set time.end=1e12
fails 5 'rank 0 on .*no checkpoint' 3 "$weft" "${quick[@]}" --out "$out/none" --resume
# A directory of another run is refused, and that run's record stays as it was.
cp "$out/long/run.json" "$out/before.json"
fails 3 'rank 0 on .*another scene' \
    3 "$weft" "${quick[@]}" --out "$out/long" --resume --set time.step=3ms
fails 5 'rank 0 on .*holds a run of scene .quick., [0-9]+ steps.*--overwrite' 3 "$weft" "${quick[@]}" --out "$out/long"
cmp "$out/before.json" "$out/long/run.json" || fail "a run that was refused has changed the record of another"
touch "$out/file"
fails 5 'rank 0 on .*file' 3 "$weft" "${quick[@]}" --out "$out/file"
fails 2 'rank 0 on .*--ranks 5, but the launcher started 3' 3 "$weft" "${quick[@]}" --ranks 5
fails 2 'started by an MPI launcher' 3 "$weft" "${quick[@]}" --comm threads
fails 2 'unexpected argument' 3 "$weft" run --no-such-option
fails 2 'rank 0 on .*--network applies only to ranks in virtual time' 3 "$weft" "${quick[@]}" --network gigabit
code=0
PMI_SIZE=3 PMI_RANK=0 timeout 20 "$weft" "${quick[@]}" --out "$out/f" 2>"$out/stderr" || code=$?
[ "$code" = 2 ] && grep -q 'do not find each other' "$out/stderr" ||
    fail "a launcher of another MPI was not noticed: $code $(cat "$out/stderr")"

say "ranks that differ say so"
# differ CODE TEXT [OPTION...]: ranks 1 and 2 are given these, or $more, and rank 0 is not. Neither
# begins.
differ() {
    local expected=$1 text=$2
    shift 2
    fails "$expected" "$text" 1 "$weft" "${quick[@]}" --out "$out/d" : -n 2 "$weft" "${quick[@]}" --out "$out/d" "$@"
    [ ! -e "$out/d" ] || fail "ranks that differ left files"
}
both='ranks 1 and 2 have'
differ 2 "ranks do not run the same: $both --steps 30 where rank 0 has no --steps; give every rank" --steps 30
differ 2 ".*$both --until 0.1 where rank 0 has no --until" --until 0.1
differ 2 ".*$both --resume where rank 0 has no --resume" --resume
differ 2 ".*$both --resume=$out/long where" --resume="$out/long"
differ 2 ".*$both --trace=1\.\. where rank 0 has no --trace" --trace
differ 2 ".*$both --trace=3\.\.5 where" --trace=3..5
differ 2 ".*$both --audit where rank 0 has no --audit" --audit
differ 2 ".*$both --audit=strict where" --audit=strict
differ 2 ".*$both --record where" --record
differ 2 ".*$both --threads 2 where rank 0 has --threads 1" --threads 2
differ 2 ".*$both --progress-thread where" --progress-thread
differ 2 ".*$both --max-hours 2 where" --max-hours 2
differ 2 ".*$both --seed 5 where" --seed 5
differ 2 ".*$both --policy paper where" --policy paper
differ 2 ".*$both --no-steal where" --no-steal
differ 2 ".*$both --set time.step=3ms where rank 0 has no --set time.step" --set time.step=3ms
differ 2 ".*$both --steps 3 where rank 0 has no --steps; $both --seed 5 where" --steps 3 --seed 5
fails 2 '.*rank 1 has --out .*/d2 where ranks 0 and 2 have --out .*/d;' 1 "$weft" "${quick[@]}" --out "$out/d" : \
    -n 1 "$weft" "${quick[@]}" --out "$out/d2" : -n 1 "$weft" "${quick[@]}" --out "$out/d"
fails 2 '.*rank 1 has --steps 4 and rank 2 has --steps 5 where rank 0 has --steps 3;' 1 "$weft" "${quick[@]}" --steps 3 : \
    -n 1 "$weft" "${quick[@]}" --steps 4 : -n 1 "$weft" "${quick[@]}" --steps 5
# Arguments that a rank cannot even read, before it starts MPI.
differ 2 'rank 1 on .*unexpected argument' --no-such-option
differ 2 'rank 1 on .*started by an MPI launcher' --comm threads
differ 2 'rank 1 on .*--ranks 2, but the launcher started 3' --ranks 2
fails 2 'rank 2 on .*WEFT_MPI_PIECE' 2 "$weft" "${quick[@]}" --out "$out/d" : -n 1 \
    env WEFT_MPI_PIECE=none "$weft" "${quick[@]}" --out "$out/d"
fails 2 'WEFT_MPI_PIECE' 3 env WEFT_MPI_PIECE=none "$weft" "${quick[@]}"
# Other scenes, and other meshes behind the same words.
mkdir "$out/a" "$out/b"
sed 's/^step = .*/step = "3 ms"/' scenes/quick.toml >"$out/b/quick.toml"
cmp -s scenes/quick.toml "$out/b/quick.toml" && fail "scenes/quick.toml has no line for its step"
fails 3 ".*$both .step = .*3.* in \[time\] where rank 0 has .step = " \
    1 "$weft" "${quick[@]}" --out "$out/d" : -n 2 "$weft" run "$out/b/quick.toml" --quiet --out "$out/d"
for side in a b; do
    cat >"$out/$side/mesh.toml" <<'SCENE'
[[cloth]]
mesh = "sheet.obj"
material = { density = 0.15, stretch = 1000, bending = 1e-5 }
SCENE
done
printf 'v 0 0 0\nv 1 0 0\nv 0 1 0\nv 1 1 0\nf 1 2 3\nf 2 4 3\n' >"$out/a/sheet.obj"
sed 's/^v 1 1 0/v 1 1 0.1/' "$out/a/sheet.obj" >"$out/b/sheet.obj"
# One path holds another mesh for each, as where hosts have disks of their own.
mesh_of() { echo "cd '$out/$1' && exec '$PWD/$weft' run mesh.toml --quiet --out '$out/d'"; }
fails 3 ".*rank 1 has meshes with the digest [0-9a-f]* where rank 0 has meshes with" \
    1 sh -c "$(mesh_of a)" : -n 1 sh -c "$(mesh_of b)"
[ ! -e "$out/d" ] || fail "ranks that differ left files"
# One process finds a fault in its share of a prepared world, and all end.
cp "$out/quick.world" "$out/bad.world"
printf 'x' | dd of="$out/bad.world" bs=1 seek=5000 conv=notrunc status=none
fails 3 'rank 0 on .*bad.world is damaged: the checksum of the bytes from 4096 on' \
    3 "$weft" "${quick[@]}" --out "$out/d" --set partition.file="$out/bad.world"
# One path holds another prepared world for each.
cp -r "$out/a" "$out/c"
(cd "$out/a" && "$OLDPWD/$weft" prepare mesh.toml) >"$out/stdout"
(cd "$out/c" && "$OLDPWD/$weft" prepare mesh.toml --set contact.thickness=0.003) >"$out/stdout"
world_of() { echo "cd '$out/$1' && exec '$PWD/$weft' run mesh.toml --quiet --out '$out/d' --set partition.file=mesh.world"; }
fails 3 'rank 1 on .*mesh.world was made of another mesh or with other settings' 1 sh -c "$(world_of a)" : -n 1 sh -c "$(world_of c)"
[ ! -e "$out/d" ] || fail "a prepared world that was refused left files"
# Another build: a byte more at the end of the file, which the system does not look at.
cp "$weft" "$out/other-weft"
printf 'x' >>"$out/other-weft"
other='weft [0-9.]*, (commit [0-9a-f]*, )?executable [0-9a-f]{16}'
fails 3 "ranks do not run the same build: ranks 1 and 2 run $other where rank 0 runs $other; start the same file" \
    1 "$weft" "${quick[@]}" --out "$out/d" : -n 2 "$out/other-weft" "${quick[@]}" --out "$out/d"
[ ! -e "$out/d" ] || fail "ranks of other builds left files"
# Some options may differ: how ranks wait, how long their messages may be at once, and who is quiet.
passes 60 1 "$weft" "${quick[@]}" --out "$out/d" --steps 3 --ranks 3 : -n 1 "$weft" run scenes/quick.toml --out "$out/d" --steps 3 \
    --idle sleep : -n 1 env WEFT_MPI_PIECE=1000 "$weft" "${quick[@]}" --out "$out/d" --steps 3 --comm mpi

# The file system goes away under a run.
(
    until [ -e "$out/lost/frames.pvd" ]; do read -rt 0.05 <> <(:) || true; done
    rm -rf "$out/lost"
) &
fails 5 'rank 0 on .*lost' 3 "$weft" run scenes/drape-floor.toml --quiet --out "$out/lost" --set output.interval=10ms
wait

say "several hosts"
tests/mpi-hosts.sh "$conformance"
echo "all passed under $launcher"
