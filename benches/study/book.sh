#!/usr/bin/env bash
# Every figure and table of the book's page on scaling: records both drape scenes in 64 patches, studies the records, and puts
# plots and numbers where the book takes them from.
#
#   benches/study/book.sh [OUT]     (OUT: runs/book; what is done there is not done again)
#
# Variables: WEFT (target/release/weft), STEPS (708: the last eight are recorded), REPEAT (3). From nothing it takes some minutes
# on two cores, nearly all of them for the two runs that are recorded.
set -euo pipefail
cd "$(dirname "$0")/../.."
weft=${WEFT:-target/release/weft} steps=${STEPS:-708} repeat=${REPEAT:-3} out=${1:-runs/book}
command -v "$weft" >/dev/null || { echo "$weft: build it (cargo build --release), or set WEFT" >&2; exit 2; }
scenes=(scenes/drape-floor.toml scenes/drape-free.toml)
sweep=(--ranks 1..64 --policy static,paper,every-other,forecast,forecast-static --network myrinet-2000,gigabit,hdr-infiniband --repeat "$repeat")
# A core of today; then one of 2006, on the network of 2006.
"$weft" study "${scenes[@]}" --set partition.patches=64 --steps "$steps" "${sweep[@]}" --out "$out" >"$out.today.txt"
records=("$out/records/drape-floor" "$out/records/drape-free")
"$weft" study "${records[@]}" "${sweep[@]}" --slower 10 --out "$out-2006" >"$out.2006.txt"
# How much slower is a guess: two others, for the table.
for slower in 9 5; do
    "$weft" study "${records[@]}" --ranks 1,16 --policy static,paper,every-other,forecast,forecast-static \
        --network myrinet-2000 --repeat "$repeat" --slower "$slower" --out "$out-$slower" >"$out.$slower.txt"
done
# The same, if no rank had to make ready again what another has made ready.
"$weft" study "$out/records/drape-floor" "${sweep[@]}" --slower 10 --ready-free --collide --out "$out-ready" >"$out.ready.txt"
# A million vertices on thousands of ranks: 128 drape-floors side by side.
"$weft" study "$out/records/drape-floor" --copies 128 --ranks 256,1024,4096 --policy static,every-other --collide \
    --repeat 1 --network hdr-infiniband --out "$out-million" >"$out.million.txt"
images=docs/src/images
for scene in drape-floor drape-free; do
    cp "$out/$scene.efficiency.svg" "$images/study-$scene.svg"
    cp "$out-2006/$scene.efficiency.svg" "$images/study-$scene-2006.svg"
done
cp "$out-2006/drape-floor.myrinet-2000.speedup.svg" "$images/study-drape-floor-phases.svg"
cp "$out-million/drape-floor-x128.efficiency.svg" "$images/study-million.svg"
cp "$out-ready/drape-floor.efficiency.svg" "$images/study-drape-floor-ready.svg"
cat "$out.today.txt" "$out.ready.txt" "$out".{2006,9,5,million}.txt
