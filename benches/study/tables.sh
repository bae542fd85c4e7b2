# Tables of the book out of what studies, runs and benches leave: to be sourced by a script with
# `set -euo pipefail`.
#
# In that script $out is the folder that all studies are in, one folder each, and $book is where
# pages are. A page has a table between the lines `<!-- table NAME -->` and `<!-- end -->`.
# shellcheck shell=bash disable=SC2016,SC2154

shopt -s inherit_errexit
export LC_ALL=C

policies=(static paper every-other forecast forecast-static)
# Shown where table rows and cells of studies are named.
declare -A shown=([collide]=collisions [step]="whole steps")

# A number of a study, as its table has it.
cell() { # STUDY SCENE NETWORK POLICY PHASE RANKS COLUMN
    awk -F, -v want="$2,$3,$4,$5,$6" -v column="$7" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $1 "," $2 "," $3 "," $4 "," $5 == want { print $at[column]; found = 1 }
        END { exit !found }' "$out/$1/study.csv" || {
        echo "$out/$1/study.csv: no $7 of $2, $3, $4, $5 on $6 ranks" >&2
        return 1
    }
}

# The value of an expression of numbers, in the format of printf; x, y and z stand for up to three
# numbers.
number() { # FORMAT EXPRESSION [X] [Y] [Z]
    awk -v x="${3:-0}" -v y="${4:-0}" -v z="${5:-0}" "BEGIN { printf \"$1\", $2 }"
}

percent() { # As cell: a share.
    local share
    share=$(cell "$@")
    number '%.0f %%' '100 * x' "$share"
}

grouped() { # NUMBER: with commas, if it is whole.
    sed ':a; s/^\([0-9]*[0-9]\)\([0-9]\{3\}\)\(,\|$\)/\1,\2\3/; ta' <<<"$1"
}

ms() { # As cell, but for the column: a time of a step, in three digits, or as many as stand before the point.
    local time
    time=$(cell "$@" time_ms)
    time=$(number '%.*f' 'x < 9.995 ? 2 : x < 99.95 ? 1 : 0, x' "$time")
    grouped "$time"
}

# The head of a table, columns of which are named.
head_of() { # NAME...
    local name line="|"
    printf '|'
    for name in "$@"; do
        printf ' %s |' "$name"
        line+="---|"
    done
    printf '\n%s\n' "$line"
}

# A row: what it is of, then an efficiency for each policy.
row() { # TEXT STUDY SCENE NETWORK PHASE RANKS POLICY...
    local policy text="| $1 |" value
    for policy in "${@:7}"; do
        value=$(percent "$2" "$3" "$4" "$policy" "$5" "$6" efficiency)
        text+=" $value |"
    done
    printf '%s\n' "$text"
}

# Puts what comes in between the markers of a table, on the page that has them.
fill() { # NAME
    local page text
    text=$(cat)
    [ -n "$text" ] || { echo "the table $1 is empty" >&2; return 1; }
    page=$(grep -lxF "<!-- table $1 -->" "$book"/*.md "$book"/*/*.md) || { echo "no page of $book has <!-- table $1 -->" >&2; return 1; }
    printf '%s\n' "$text" >"$out/table-$1.md"
    awk -v name="$1" -v file="$out/table-$1.md" '
        inside && $0 == "<!-- end -->" { print ""; inside = 0; ended = 1 }
        !inside { print }
        $0 == "<!-- table " name " -->" {
            inside = 1
            print ""
            while ((getline line < file) > 0) print line
        }
        END { exit !ended }' "$page" >"$out/page" || { echo "$page: <!-- table $1 --> has no <!-- end -->" >&2; return 1; }
    cat "$out/page" >"$page"
    rm "$out/page"
}

# --- the tables, each of what a stage leaves in $out ---

table_one_rank() {
    local phases=(collide assemble solve respond share step) scene phase text value
    head_of 'one rank, core of today, ms a step' collide assemble solve respond share 'whole step'
    for scene in drape-floor drape-free; do
        text="| \`$scene\` |"
        for phase in "${phases[@]}"; do
            value=$(ms today "$scene" myrinet-2000 static "$phase" 1)
            text+=" $value |"
        done
        printf '%s\n' "$text"
    done
}

table_drape_today() {
    local network policy phase text value
    head_of "\`drape-floor\` on $most ranks, core of today" 'collisions: static' forecast-static 'whole steps: static' forecast-static 'ms a step'
    for network in myrinet-2000 gigabit hdr-infiniband; do
        text="| $network |"
        for phase in collide step; do
            for policy in static forecast-static; do
                value=$(percent today drape-floor "$network" "$policy" "$phase" "$most" efficiency)
                text+=" $value |"
            done
        done
        value=$(ms today drape-floor "$network" forecast-static step "$most")
        printf '%s %s |\n' "$text" "$value"
    done
}

# How a study of another core does on the network of 2006.
rows_2006() { # TEXT STUDY
    local scene phase before=$1
    for scene in drape-floor drape-free; do
        for phase in collide step; do
            row "$before\`$scene\`, ${shown[$phase]}" "$2" "$scene" myrinet-2000 "$phase" "$most" "${policies[@]}"
            before=
        done
    done
}

table_drape_2006() {
    head_of "$most ranks, myrinet-2000, core of 2006" "${policies[@]}"
    local scene
    for scene in drape-floor drape-free; do
        row "\`$scene\`, collisions by themselves" alone "$scene" myrinet-2000 collide "$most" "${policies[@]}"
    done
    rows_2006 '' 2006
}

table_drape_slower() {
    head_of "$most ranks, myrinet-2000" "${policies[@]}"
    rows_2006 'nine times: ' 9
    rows_2006 'five times: ' 5
}

# The phases of a step of drape-floor, and the efficiency that it would have if all that is computed
# were shared evenly.
table_drape_phases() {
    local phases=(collide assemble solve respond share step) ranks phase policy=forecast-static text value
    head_of '`drape-floor`, core of 2006, myrinet-2000, ms a step' collide assemble solve respond share 'whole step' 'if shared evenly'
    for ranks in 1 "$most"; do
        text="| $ranks rank$( ((ranks == 1)) || echo s) |"
        for phase in "${phases[@]}"; do
            value=$(ms 2006 drape-floor myrinet-2000 "$policy" "$phase" "$ranks")
            text+=" $value |"
        done
        value=$(cell 2006 drape-floor myrinet-2000 "$policy" step "$ranks" speedup_bound)
        value=$(number '%.0f %%' '100 * x / y' "$value" "$ranks")
        printf '%s %s |\n' "$text" "$value"
    done
}

# The work that all ranks together add to the collisions of one rank, as a share of that.
beyond() { # STUDY SCENE NETWORK POLICY RANKS
    local idle efficiency
    idle=$(cell "$1" "$2" "$3" "$4" collide "$5" not_computing)
    efficiency=$(cell "$1" "$2" "$3" "$4" collide "$5" efficiency)
    number '%.0f %%' '100 * ((1 - x) / y - 1)' "$idle" "$efficiency"
}

table_drape_ready() {
    local policy text value
    head_of "\`drape-floor\`, collisions by themselves, $most ranks, core of 2006" "${policies[@]}"
    row myrinet-2000 alone drape-floor myrinet-2000 collide "$most" "${policies[@]}"
    row 'myrinet-2000, ready at no cost' ready drape-floor myrinet-2000 collide "$most" "${policies[@]}"
    row hdr-infiniband alone drape-floor hdr-infiniband collide "$most" "${policies[@]}"
    row 'hdr-infiniband, ready at no cost' ready drape-floor hdr-infiniband collide "$most" "${policies[@]}"
    text='| computed beyond what one rank does, myrinet-2000 |'
    for policy in "${policies[@]}"; do
        value=$(beyond alone drape-floor myrinet-2000 "$policy" "$most")
        text+=" $value |"
    done
    printf '%s\n' "$text"
}

table_not_computing() {
    local network text today old
    head_of "\`drape-floor\` on $most ranks, \`forecast\`: not computing" 'core of 2006' 'core of today'
    for network in myrinet-2000 gigabit hdr-infiniband; do
        old=$(percent 2006 drape-floor "$network" forecast step "$most" not_computing)
        today=$(percent today drape-floor "$network" forecast step "$most" not_computing)
        printf '| %s | %s | %s |\n' "$network" "$old" "$today"
    done
}

table_finer() {
    local size text study of policy one value
    head_of "\`drape-floor\`, $most ranks, myrinet-2000, core of 2006" 'one rank: collisions, step' 'collisions: static, paper, every-other, forecast-static' 'whole steps' 'computed in collisions beyond what one rank does'
    for size in 'fine-10000|10,000 vertices, 64 patches, 4 mm thick' 'fine-40000|40,000 vertices, 256 patches, 2 mm' 'fine-100000|100,000 vertices, 512 patches, 1.3 mm'; do
        study=${size%%|*}
        one=$(ms "$study" drape-floor myrinet-2000 static collide 1)
        value=$(ms "$study" drape-floor myrinet-2000 static step 1)
        text="| ${size#*|} | $one ms, $value ms |"
        for of in collide step beyond; do
            value=
            for policy in static paper every-other forecast-static; do
                if [ "$of" = beyond ]; then
                    one=$(beyond "$study" drape-floor myrinet-2000 "$policy" "$most")
                else
                    one=$(percent "$study" drape-floor myrinet-2000 "$policy" "$of" "$most" efficiency)
                fi
                value+="${value:+, }${one% %}"
            done
            text+=" $value % |"
        done
        printf '%s\n' "$text"
    done
}

# The least and the largest number of iterations in a record's last steps.
iterations() { # STUDY SCENE FIRST
    awk -F, -v first="$3" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["step"] >= first { n = $at["cg_iterations"] + 0; if (!seen++ || n < low) low = n; if (n > high) high = n }
        END { print low == high ? low : low " to " high }' "$out/$1/records/$2/history.csv"
}

table_sheet() {
    local kind text ranks value many
    head_of 'solve of a step, hdr-infiniband' '1 rank' 2 16 64 'not computing on 64'
    for kind in multilevel block-jacobi; do
        many=$(iterations "sheet-$kind" hanging "$sheet_first")
        text="| $kind, $many iterations |"
        for ranks in 1 2 16 64; do
            value=$(ms "sheet-$kind" hanging hdr-infiniband every-other solve "$ranks")
            text+=" $value ms |"
        done
        value=$(percent "sheet-$kind" hanging hdr-infiniband every-other solve 64 not_computing)
        printf '%s %s |\n' "$text" "$value"
    done
}

table_million() {
    local ranks tests seconds memory
    head_of "collisions of ${million_vertices}, hdr-infiniband" static every-other
    for ranks in "${million_ranks[@]}"; do
        row "$(grouped "$ranks") ranks" million "drape-floor-x$copies" hdr-infiniband collide "$ranks" static every-other
    done
    tests=$(awk -F, -v first=$((steps - 7)) -v copies="$copies" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["step"] >= first { sum += $at["tests"]; n++ }
        END { printf "%.0f", copies * sum / n / 1e6 }' "$out/today/records/drape-floor/history.csv")
    read -r seconds memory <"$out/cost-4096.txt"
    printf '\n%s million tests a step; eight steps on %s ranks under `every-other` are replayed in %s s of processor time' "$tests" \
        "$(grouped "${million_ranks[-1]}")" "$seconds"
    [ "$memory" = 0 ] || printf ' and %s MB' "$memory"
    printf '.\n'
}

# The ways of sharing work that are compared: none, objects that migrate, stealing, plans that
# divide tests, and both.
shared_policies=(static migration every-other forecast-static forecast)

table_sharing() {
    local scene ranks phase
    head_of 'efficiency, hdr-infiniband' "${shared_policies[@]}"
    for scene in drape-floor one-sided; do
        for phase in collide step; do
            for ranks in ${shared_ranks//,/ }; do
                row "\`$scene\`, ${shown[$phase]}, $ranks ranks" "sharing-$scene" "$scene" hdr-infiniband "$phase" "$ranks" \
                    "${shared_policies[@]}"
            done
        done
    done
}

# How far replays are from runs that are simulated whole, on the same record: in percent of the time
# that these take.
table_replay() {
    local scene ranks policy phase text replayed whole value
    head_of 'replay against simulation' static every-other forecast forecast-static
    for scene in quick one-sided; do
        for ranks in ${replayed_on[$scene]}; do
            for phase in collide step; do
                text="| \`$scene\` on $ranks ranks, ${shown[$phase]} |"
                for policy in static every-other forecast forecast-static; do
                    if [ "$scene" = one-sided ] && [ "$policy" != forecast-static ]; then
                        text+=' |'
                        continue
                    fi
                    replayed=$(cell "replay-$scene" "$scene" myrinet-2000 "$policy" "$phase" "$ranks" time_ms)
                    whole=$(cell "full-$scene" "$scene" myrinet-2000 "$policy" "$phase" "$ranks" time_ms)
                    value=$(number '%+.1f %%' '100 * (x / y - 1)' "$replayed" "$whole")
                    text+=" $value |"
                done
                printf '%s\n' "$text"
            done
        done
    done
}

# How many times as fast as one rank others are, by runs in virtual time, steps from the one given
# on and the best of three, and by replays.
table_virtual() { # FIRST STEP
    local phase policy columns text run replayed one
    head_of '`one-sided` on 4 ranks, hdr-infiniband, times as fast as one' 'static: run' replay 'every-other: run' replay
    for phase in collide step; do
        columns=collide_s
        [ "$phase" = collide ] || columns=physics_s,collide_s,solve_s,response_s,share_s
        one=$(virtual_ms alone "$1" "$columns")
        text="| ${shown[$phase]} |"
        for policy in static every-other; do
            run=$(virtual_ms "$policy" "$1" "$columns")
            replayed=$(cell virtual-replay one-sided hdr-infiniband "$policy" "$phase" 4 speedup)
            text+=" $(number '%.2f' x/y "$one" "$run") | $(number '%.2f' x "$replayed") |"
        done
        printf '%s\n' "$text"
    done
}

virtual_ms() { # POLICY FIRST STEP COLUMNS: of the best of three runs, a step.
    awk -F, -v from="$2" -v columns=",$3," '
        FNR == 1 { run++; for (i = 1; i <= NF; i++) if (index(columns, "," $i ",")) of[i]; next }
        $1 >= from { for (i in of) sum[run] += $i; count[run]++ }
        END { for (k in sum) { mean = 1e3 * sum[k] / count[k]; if (!best || mean < best) best = mean }; print best }' \
        "$out/virtual-$1"-[123]/history.csv
}

# The table of what `weft partition` prints.
table_partition() {
    awk -F' *[|] *' '
        /^cut by/ { print "| `weft partition scenes/shirt.toml --parts 12` | edge cut | halo | largest halo | imbalance | most pieces |"; print "|---|---|---|---|---|---|"; on = 1; next }
        on && NF == 7 { gsub(/ +/, "", $7); print "| " $1 " | " $2 " | " $4 " | " $5 " | " $6 " | " $7 " |" }' "$out/partition.txt" |
        sed "s/^| patch tree |/| patch tree ($(sed -n 's/.*matrix, \([0-9]* patches\);.*/\1/p' "$out/partition.txt")) |/"
}

# The table of what `weft report` prints of two runs.
table_mended() {
    awk -F' *[|] *' '
        BEGIN {
            n = split("loop|collide, max (rank)|in tasks, max (rank)|in tasks, imbalance|load balance, all steps|work waited at another rank|tasks moved|bytes for that|state", want, "|")
            split("loop|`collide`, slowest rank|in tasks, slowest rank|in tasks, imbalance|load balance, all steps|idle while work waited at another rank|tasks moved|bytes for that|state", name, "|")
        }
        NF == 3 {
            for (i = 2; i <= 3; i++) { sub(/^ +/, "", $i); sub(/ \([0-9]+\)$/, "", $i); }
            sub(/^ +/, "", $1)
            if (!($1 in first)) { first[$1] = $2; second[$1] = $3 }
        }
        END {
            print "| | `static` | `every-other` |"
            print "|---|---|---|"
            for (i = 1; i <= n; i++) {
                if (!(want[i] in first)) exit 1
                mark = want[i] == "state" ? "`" : ""
                print "| " name[i] " | " mark first[want[i]] mark " | " mark second[want[i]] mark " |"
            }
        }' "$out/mended.txt"
}

table_mending() {
    local mended=(static every-other forecast forecast-static)
    head_of '`one-sided` on 4 ranks' "${mended[@]}"
    row collisions mending one-sided hdr-infiniband collide 4 "${mended[@]}"
    row 'whole steps' mending one-sided hdr-infiniband step 4 "${mended[@]}"
}

# The table of a study of real ranks, beside runs that know nothing of each other.
table_cores() {
    local counts=(1 2 4 8 "$most") tried=(static every-other forecast forecast-static) policy phase count text alone beside value
    declare -A gives
    alone=$(awk '$1 == 1 && (!best || $2 < best) { best = $2 } END { print best }' "$out"/cores-beside-*.txt)
    head_of '`drape-floor` under `mpirun`' '1 rank' "${counts[@]:1}"
    text='| one run on each core, how fast each is beside one alone |'
    for count in "${counts[@]}"; do
        beside=$(awk -v n="$count" '$1 == n && (!best || $2 < best) { best = $2 } END { print best }' "$out"/cores-beside-*.txt)
        gives[$count]=$(number '%.6f' 'x / y' "$alone" "$beside")
        text+=" $(number '%.0f %%' '100 * x' "${gives[$count]}") |"
    done
    printf '%s\n' "$text"
    for phase in collide step; do
        # One rank has nobody to share with: what differs between policies there is the machine.
        alone=$(for policy in "${tried[@]}"; do cell cores drape-floor this-machine "$policy" "$phase" 1 time_ms; done | sort -g | head -1)
        for policy in "${tried[@]}"; do
            text="| ${shown[$phase]}, $policy |"
            for count in "${counts[@]}"; do
                value=$(cell cores drape-floor this-machine "$policy" "$phase" "$count" time_ms)
                if [ "$count" = 1 ]; then
                    text+=" $(number '%.1f ms' x "$value") |"
                else
                    text+=" $(number '%.0f %% (%.0f)' '100 * x / y, 100 * x / y / z' "$alone" "$(number '%.9f' 'x * y' "$value" "$count")" "${gives[$count]}") |"
                fi
            done
            printf '%s\n' "$text"
        done
    done
}

# The table that `cargo bench --bench order` prints, with the sign of the book.
table_order() {
    sed -n '/^|/{ /^|--/!s/\([ (]\)-\([0-9]\)/\1−\2/g; p; }' "$out/order.txt"
}

# The table of what `cargo bench --bench mpirun` prints.
table_mpirun() {
    awk '
        BEGIN {
            print "| two cores, `mpirun`, ms a step | 1 rank | 2 ranks | | 1 rank of 2 workers | |"
            print "|---|---|---|---|---|---|"
        }
        / ranks x workers / { scene = $1; phases = NF - 5; for (i = 1; i <= phases; i++) phase[i] = $(i + 5); turn = 0; next }
        $2 == "x" && NF == phases + 4 { turn++; for (i = 0; i <= phases; i++) time[turn, i] = $(i + 4); next }
        / are .* times as fast as one: / {
            of = $2 == "ranks" ? 2 : 3
            gain[of, 0] = $4
            line = $0
            sub(/.*as one: /, "", line)
            split(line, part, ", ")
            for (i = 1; i <= phases; i++) { split(part[i], pair, " "); gain[of, i] = pair[2] }
            next
        }
        / side by side are / {
            beside = beside (beside == "" ? "" : " and ") $7
            for (i = 0; i <= phases; i++) {
                name = i == 0 ? "`" scene "`" : phase[i]
                if (name !~ /^(`.*`|collide|assemble|solve|respond)$/) continue
                digits = i == 0 ? "%.1f" : "%.2f"
                printf "| %s | " digits " | " digits " | %s | " digits " | %s |\n", name, time[1, i], time[2, i], gain[2, i], time[3, i], gain[3, i]
            }
            scenes++
        }
        END {
            if (!scenes) exit 1
            print ""
            print "Two runs of one rank, side by side, were " beside " times as fast as one after the other there: that is what the machine has to give."
        }' "$out/mpirun.txt"
}

# The times of runs of the twister that are certified after different numbers of substeps.
table_outer() {
    local k
    head_of "certified after" "took" "pairs kept in a step" "looked at" "pushes" "search and bodies" "hits" "cut" "largest strain"
    for k in search 1 4 8 16 adaptive newmark; do
        awk -F, -v k="$k" '
            NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
            {
                steps++; substeps += $at["substeps"]; parts += $at["parts"]; pairs += $at["pairs"]; looked += $at["looked"]
                took += $at["collide_s"] + $at["physics_s"] + $at["solve_s"] + $at["response_s"] + $at["share_s"]
                repel += $at["repel_s"]; collide += $at["collide_s"]; hits += $at["hits"]; cut += $at["cut"]
                kept += $at["pairs"] * $at["substeps"] / $at["parts"]
                if ($at["max_strain"] > strain) strain = $at["max_strain"]
            }
            END {
                name = k
                if (k == "search") name = "1, and searched for"
                if (k == "newmark") name = "16 of 0.1 ms, Newmark, for 0.9 s"
                if (k == "adaptive") name = sprintf("%.1f, adaptive", substeps / parts)
                printf "| %s | %.0f s | %s | %s | %s | %.0f %% | %d | %d | %.0f %% |\n", name, took,
                    k == "search" ? "" : sprintf("%.0f", pairs / steps), k == "search" ? "" : sprintf("%.0f %%", kept ? 100 * looked / kept : 0),
                    k == "search" ? "" : sprintf("%.1f %%", 100 * repel / took), 100 * collide / took, hits, cut, 100 * strain
            }' "$out/twister-$k/history.csv"
    done
}
