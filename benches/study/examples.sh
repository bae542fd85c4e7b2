# Stages of book.sh about example scenes: the gallery, and the examples of Selle et al. 2009.

# Name, the scene, and which picture of its run is shown, in percent of the run.
gallery_scenes=(
    "many-curtains scenes/gallery/many-curtains.toml 62"
    "trampoline scenes/gallery/trampoline.toml 36"
    "sewn-shirt scenes/sewn-shirt.toml 100"
    "funnel hard/funnel.toml 64"
    "reef-knot hard/reef-knot.toml 66"
    "twisted-cylinder hard/twisted-cylinder.toml 100"
    "table-cloth hard/table-cloth-4.toml 62"
    "stack hard/stack-free.toml 50"
    "spinning-ball scenes/2009/spinning-ball.toml 100"
    "dress-on-figure scenes/gallery/dress-on-figure.toml 35"
)

# The keys of a scene for the gallery: what its pictures need.
gallery_keys=(--set output.pictures=true --set output.size='[480, 320]' --set output.colours='"checker"' --set output.frames=false
    --set output.checkpoints=false)

hard_scenes() {
    [ -e "$out/hard/twister.toml" ] || cargo run --quiet "${profile[@]}" --example certified_scenes -- "$out/hard"
}

scene_file() { # NAME IN A LIST: where it is.
    case $1 in
    hard/*) echo "$out/$1" ;;
    *) echo "$1" ;;
    esac
}

stage_gallery() {
    local lacking line name scene at pictures
    lacking=$(lacks cargo)
    if [ -n "$lacking" ]; then
        skip "images/gallery-*.png, table gallery" "no $lacking"
        return
    fi
    hard_scenes
    for line in "${gallery_scenes[@]}"; do
        read -r name scene at <<<"$line"
        if [ ! -e "$out/gallery-$name/run.json" ]; then
            cost "$out/gallery-$name.cost" "$weft" run "$(scene_file "$scene")" "${gallery_keys[@]}" "${gallery[@]}" --ranks 1 \
                --quiet --out "$out/gallery-$name.new" --overwrite >"$out/gallery-$name.txt"
            mv "$out/gallery-$name.new" "$out/gallery-$name"
        fi
        pictures=("$out/gallery-$name"/pictures/*.png)
        picture "${pictures[$(((${#pictures[@]} - 1) * at / 100))]}" "gallery-$name.png"
    done
    table_gallery | fill gallery
}

# A number or a text of a run, by the name of its key.
of_run() { # FOLDER KEY
    sed -n "s/^ *\"$2\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}$/\1/p" "$1/run.json" | head -n 1
}

table_gallery() {
    local line name scene at seconds
    echo "| scene | file | vertices | steps | processor time | state hash |"
    echo "|---|---|---|---|---|---|"
    for line in "${gallery_scenes[@]}"; do
        read -r name scene at <<<"$line"
        read -r seconds _ <"$out/gallery-$name.cost"
        printf '| ![%s](images/gallery-%s.png) | `%s` | %s | %s | %s s | `%s` |\n' "$name" "$name" "${scene/#hard/hard-scenes}" \
            "$(of_run "$out/gallery-$name" vertices)" "$(of_run "$out/gallery-$name" steps)" "$seconds" "$(of_run "$out/gallery-$name" hash)"
    done
}

# The examples of the paper: name, figure, the details of a tenth of its size and of all of it, and
# the minutes that a frame took there.
examples_2009=("twister 3 4 14" "leaves 9 5 16 5" "spinning-ball 11 6 20 20" "curtain 13 7 23 45" "wardrobe 15 7 23 6")

# Without its set-up; the work of a thread.
stage_examples() {
    local line name tenth whole size detail run until folder
    for line in "${examples_2009[@]}"; do
        read -r name _ tenth whole _ <<<"$line"
        for size in $example_sizes; do
            case $size in
            small) detail=1 until=("${example_small[@]}") ;;
            tenth) detail=$tenth until=("${example_tenth[@]}") ;;
            whole) detail=$whole until=("${example_whole[@]}") ;;
            esac
            run=("scenes/2009/$name.toml" --set detail="$detail" --ranks 1 --threads 1 --quiet --set output.pictures=false
                --set output.frames=false --set output.checkpoints=false)
            folder=$out/example-$name-$size
            if [ ! -e "$folder/run.json" ]; then
                cost "$folder.setup" "$weft" run "${run[@]}" --steps 0 --out "$folder.new" --overwrite >"$folder.txt"
                cost "$folder.cost" "$weft" run "${run[@]}" "${until[@]}" --out "$folder.new" --overwrite >"$folder.txt"
                mv "$folder.new" "$folder"
            fi
        done
    done
    table_examples | fill examples
}

# The examples in the paper's size, to their ends. A run that was stopped goes on from its newest
# checkpoint. Nothing else should run on its core: the table is of the time that steps have taken.
stage_whole() {
    local line name detail folder
    for line in "${examples_2009[@]}"; do
        read -r name _ _ detail _ <<<"$line"
        folder=$out/whole-$name
        [[ " ${WHOLE:-$name} " == *" $name "* ]] && [ ! -e "$folder/done" ] || continue
        "$weft" run "scenes/2009/$name.toml" --set detail="$detail" "${whole[@]}" --ranks 1 --threads 1 --quiet \
            --set output.pictures=false --set output.frames=false --resume=auto --out "$folder" >>"$folder.txt"
        if [ "$(of_run "$folder" stopped)" != null ]; then
            echo "$0: the run of $name was stopped before its end; give the command again, and it goes on" >&2
            exit 1
        fi
        touch "$folder/done"
    done
    table_whole | fill whole
}

# The mean time of a step in ms, and that of the costliest 0.2 s, by a run's history.
times_of_steps() { # FOLDER
    awk -F, '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        {
            simulated[++n] = $at["time_s"]
            sum[n] = sum[n - 1] + 1e3 * ($at["physics_s"] + $at["collide_s"] + $at["solve_s"] + $at["response_s"] + $at["share_s"])
        }
        END {
            for (last = 1; last <= n; last++) {
                while (simulated[last] - simulated[first] > 0.2001) first++
                if (last > first && (sum[last] - sum[first]) / (last - first) > most && (simulated[last] > 0.1999 || last == n))
                    most = (sum[last] - sum[first]) / (last - first)
            }
            printf "%f %f\n", sum[n] / n, most
        }' "$1/history.csv"
}

table_whole() {
    local line name figure detail paper folder mean most vertices
    head_of scene figure vertices steps 'µs a vertex and step' 'in the costliest 0.2 s' 'minutes of a core for 1/30 s of these' 'the paper, minutes a frame' memory
    for line in "${examples_2009[@]}"; do
        read -r name figure _ detail paper <<<"$line"
        folder=$out/whole-$name
        [ -e "$folder/done" ] || continue
        read -r mean most <<<"$(times_of_steps "$folder")"
        vertices=$(of_run "$folder" vertices)
        printf '| `%s` | %s | %s | %s | %s | %s | %s | %s | %s MB |\n' "$name" "$figure" "$vertices" \
            "$(of_run "$folder" steps)" "$(number '%.1f' '1e3 * x / y' "$mean" "$vertices")" "$(number '%.1f' '1e3 * x / y' "$most" "$vertices")" \
            "$(number '%.1f' 'x / 60000 / 30 / y' "$most" 0.002)" "${paper:-}" \
            "$(number '%.0f' 'x / 1e6' "$(of_run "$folder" peak_memory_bytes)")"
    done
}

table_examples() {
    local line name figure tenth whole size detail run setup seconds megabytes vertices steps
    echo "| scene | figure | \`detail\` | vertices | steps | µs a vertex and step | memory |"
    echo "|---|---|---|---|---|---|---|"
    for size in $example_sizes; do
        for line in "${examples_2009[@]}"; do
            read -r name figure tenth whole _ <<<"$line"
            case $size in
            small) detail=1 ;;
            tenth) detail=$tenth ;;
            whole) detail=$whole ;;
            esac
            run=$out/example-$name-$size
            read -r setup _ <"$run.setup"
            read -r seconds megabytes <"$run.cost"
            vertices=$(of_run "$run" vertices) steps=$(of_run "$run" steps)
            awk -v name="$name" -v figure="$figure" -v detail="$detail" -v n="$vertices" -v steps="$steps" -v s="$((seconds - setup))" \
                -v mb="$megabytes" \
                'BEGIN { printf "| `%s` | %s | %s | %d | %d | %.1f | %d MB |\n", name, figure, detail, n, steps, 1e6 * s / (n * steps), mb }'
        done
    done
}
