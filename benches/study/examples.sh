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

# The examples of the paper: name, figure, and the details of a tenth of its size and of all of it.
examples_2009=("twister 3 4 14" "leaves 9 5 16" "spinning-ball 11 6 20" "curtain 13 7 23" "wardrobe 15 7 23")

# Without its set-up; the work of a thread.
stage_examples() {
    local line name tenth whole size detail run until folder
    for line in "${examples_2009[@]}"; do
        read -r name _ tenth whole <<<"$line"
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

table_examples() {
    local line name figure tenth whole size detail run setup seconds megabytes vertices steps
    echo "| scene | figure | \`detail\` | vertices | steps | µs a vertex and step | memory |"
    echo "|---|---|---|---|---|---|---|"
    for size in $example_sizes; do
        for line in "${examples_2009[@]}"; do
            read -r name figure tenth whole <<<"$line"
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
