#!/usr/bin/env bash
# Looks at runs with `weft view` in a real browser, as a person would: plays, turns, colours; and
# asks the server for what it must refuse.
#
#   tests/view-browser.sh [FOLDER]
#
# One run has cloth of 100,000 triangles: drawn in software it must play with at least RATE drawings
# a second, and never stand still for 200 ms. Screenshots are kept in FOLDER if one is named. Needs
# chromium and chromedriver; as root on Debian it installs them. Needs target/release/weft, or WEFT.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck disable=SC2034
browser_options=',"--use-gl=angle","--use-angle=swiftshader","--enable-unsafe-swiftshader"'
. tests/browser.sh

# Drawings a second that are demanded of two cores and no graphics card; one core draws some 10.
RATE=${RATE:-4}
weft=$(realpath "${WEFT:-target/release/weft}")
shots=${1:-}

open_browser

no_errors() {
    local errors
    errors=$(js 'return weftView.errors.join(` | `)')
    [ "$errors" = '""' ] || fail "$page: script errors: $errors"
}
open_page() { # URL
    page=$1
    ask "/session/$session/url" -d "{\"url\":\"$page\"}" >/dev/null
    await "it shows a frame" "return weftView.ready && weftView.frame >= 0 || weftView.errors.length > 0"
    no_errors
    expect "it says nothing else" "return document.getElementById('message').hidden"
}
await() { # WHAT SCRIPT: the script returns true soon.
    for _ in $(seq 300); do
        if [ "$(js "$2")" = true ]; then return 0; fi
        sleep 0.1
    done
    fail "$page: $1: $(js "return document.getElementById('message').textContent")"
}
serve() { # DIRECTORY: its server, whose place is then in $at.
    : >"$work/said"
    "$weft" view "$1" >"$work/said" &
    servers+=($!)
    for _ in $(seq 100); do
        at=$(sed -n 's|^Open \(http://127.0.0.1:[0-9]*/\) .*|\1|p' "$work/said")
        if [ -n "$at" ]; then return 0; fi
        sleep 0.1
    done
    fail "weft view $1 says nothing"
}
# How many colours the picture has that are not the background, and the share of it that is not.
seen="const p = weftView.pixels(); const all = new Map(); let other = 0; const b = p[0] * 65536 + p[1] * 256 + p[2]; for (let k = 0; k < p.length; k += 4) { const c = p[k] * 65536 + p[k + 1] * 256 + p[k + 2]; if (c !== b) { other++; all.set(c, 1); } }"
choose() { # COLOUR
    js "const s = document.getElementById('colour'); s.value = '$1'; s.dispatchEvent(new Event('change')); return 0" >/dev/null
    expect "$1 is a choice" "return document.getElementById('colour').value === '$1'"
}
act() { # Actions of one input device.
    ask "/session/$session/actions" -d "{\"actions\":[$1]}" >/dev/null
}
drag() { # X Y DX DY
    act "{\"type\":\"pointer\",\"id\":\"mouse\",\"parameters\":{\"pointerType\":\"mouse\"},\"actions\":[{\"type\":\"pointerMove\",\"duration\":0,\"x\":$1,\"y\":$2},{\"type\":\"pointerDown\",\"button\":0},{\"type\":\"pointerMove\",\"duration\":0,\"x\":$(($1 + $3)),\"y\":$(($2 + $4))},{\"type\":\"pointerUp\",\"button\":0}]}"
}
press() { # KEY
    act "{\"type\":\"key\",\"id\":\"keys\",\"actions\":[{\"type\":\"keyDown\",\"value\":\"$1\"},{\"type\":\"keyUp\",\"value\":\"$1\"}]}"
}

# --- a run, as it is looked at ---

"$weft" run quick --ranks 3 --quiet --set cloth.grid.vertices=20 --set output.pictures=false --set output.interval=20ms \
    --until 0.3 --out "$work/quick" >/dev/null
serve "$work/quick"
open_page "$at"
expect "it has all frames" "return weftView.frames === 16 && document.getElementById('scrub').max === '15'"
shoot view-start
expect "cloth and bodies are drawn" "$seen return (other > 0.05 * p.length / 4 && all.size > 30) || [other, p.length / 4, all.size].join()"
shoot view-start
with=$(js "$seen return other")
js "document.getElementById('bodies').click(); return 0" >/dev/null
without=$(js "$seen return other")
[ "$without" -lt "$with" ] && [ "$without" -gt 0 ] || fail "$page: bodies are not left out: $with, then $without"
js "document.getElementById('bodies').click(); return 0" >/dev/null

choose owner
expect "each rank has a colour" "return document.querySelectorAll('#legend .swatch').length === 3"
shoot view-owner
choose patch
expect "patches have colours in the legend" "return document.querySelectorAll('#legend .swatch').length > 3"
js "weftView.go(15); return 0" >/dev/null
await "the last frame is shown" "return weftView.frame === 15"
choose speed
expect "speed has a scale" "return document.querySelector('#legend .ramp') !== null && document.getElementById('legend').textContent.includes('m/s')"
choose "stretch since the first frame"
expect "stretch has a scale" "return document.getElementById('legend').textContent.includes('%')"
js "document.getElementById('edges').click(); return 0" >/dev/null
expect "edges are drawn" "$seen return all.size > 30"
shoot view-stretch
js "document.getElementById('edges').click(); return 0" >/dev/null

js "document.getElementById('canvas').focus(); return 0" >/dev/null
yaw=$(js "return Math.round(1000 * weftView.camera.yaw)")
drag 600 500 120 40
[ "$(js "return Math.round(1000 * weftView.camera.yaw)")" != "$yaw" ] || fail "$page: dragging does not turn"
press '\uE012'
await "the left arrow goes back" "return weftView.frame === 14"
press '\uE011'
press ' '
await "it plays to its end and stops" "return !weftView.playing && weftView.frame === 15"
no_errors

# --- what the server refuses ---

place=${at#http://}
place=${place%/}
status() { curl -s -o "$work/body" -w '%{http_code}' --path-as-is "$@"; }
refused() { # STATUS ARGUMENTS OF CURL...
    local got
    got=$(status "${@:2}")
    [ "$got" = "$1" ] || fail "curl ${*:2}: $got instead of $1: $(cat "$work/body")"
    ! grep -q 'root:' "$work/body" || fail "curl ${*:2}: a file of the system"
}
echo 'root: secret' >"$work/secret"
cp "$work/secret" "$work/quick/secret.vtp"
refused 200 "$at"
refused 200 "${at}run"
refused 200 "${at}frame/0"
for path in frame/16 frame/-1 frame/ frame/0x1 frame/99999999999999999999 frame/0/../../secret ../secret ..%2fsecret %2e%2e/secret \
    run.json frames.pvd secret.vtp frames/secret.vtp /etc/passwd //etc/passwd favicon.ico 'frame/0?x' ; do
    refused 404 "$at$path"
done
for method in POST PUT DELETE HEAD OPTIONS; do
    got=$(curl -s -o /dev/null -w '%{http_code}' -m 10 -X "$method" "$at" || true)
    [ "$got" = 405 ] || fail "$method: $got"
done
refused 403 -H 'Host: evil.example' "$at"
refused 403 -H "Host: evil.example:${place#*:}" "${at}run"
refused 403 -H 'Host:' "$at"
refused 431 -H "X-Long: $(head -c 20000 /dev/zero | tr '\0' a)" "$at"
# A list that names what is not of the run is not followed.
cp "$work/quick/frames.pvd" "$work/frames.pvd"
sed -i 's|file="frames/cloth.000000.vtp"|file="../secret"|' "$work/quick/frames.pvd"
refused 500 "${at}run"
refused 200 "${at}frame/0"
cp "$work/frames.pvd" "$work/quick/frames.pvd"
# A frame that is damaged is named.
cp "$work/quick/frames/cloth.000010.vtp" "$work/good.vtp"
for bytes in '' 'root: secret' "$(head -c 4000 "$work/good.vtp" | tr -d '\0')"; do
    printf '%s' "$bytes" >"$work/quick/frames/cloth.000010.vtp"
    refused 500 "${at}frame/1"
    grep -q 'cloth.000010.vtp' "$work/body" || fail "the damaged frame is not named: $(cat "$work/body")"
done
# Nor is a link out of the run followed.
rm "$work/quick/frames/cloth.000010.vtp"
ln -s "$work/good.vtp" "$work/quick/frames/cloth.000010.vtp"
refused 500 "${at}frame/1"
rm "$work/quick/frames/cloth.000010.vtp"
cp "$work/good.vtp" "$work/quick/frames/cloth.000010.vtp"
refused 200 "${at}frame/1"
# It listens on loopback alone.
if command -v ss >/dev/null; then
    others=$(ss -Hltn "sport = :${place#*:}" | awk '{ print $4 }' | grep -v '^127\.0\.0\.1:' || true)
    [ -z "$others" ] || fail "it listens on $others"
fi
if "$weft" view "$work/quick" --port "${place#*:}" >"$work/taken" 2>&1; then fail "a port is taken twice"; fi
grep -q -e '--port' "$work/taken" || fail "no word of another port: $(cat "$work/taken")"
# It ends with its command.
kill "${servers[0]}"
wait "${servers[0]}" 2>/dev/null || true
servers=()
if curl -s -m 5 "$at" >/dev/null; then fail "the server outlives its command"; fi
for what in "$work" "$work/secret" "$work/nothing"; do
    code=0
    "$weft" view "$what" >/dev/null 2>"$work/told" || code=$?
    [ "$code" = 5 ] || fail "weft view $what ends with $code: $(cat "$work/told")"
done

# --- a page that is one file ---

"$weft" view "$work/quick" --out "$work/page.html" >/dev/null
open_page "file://$work/page.html"
expect "it has all frames" "return weftView.frames === 16"
expect "it is drawn" "$seen return (other > 0.05 * p.length / 4 && all.size > 30) || [other, p.length / 4, all.size].join()"
expect "it asks nobody for anything" "return performance.getEntriesByType('resource').filter(r => !r.name.startsWith('data:')).length === 0"
no_errors

# --- a run that goes on ---

cp -r "$work/quick" "$work/on"
sed -i 's/"exit": 0/"exit": null/' "$work/on/run.json"
grep -v -E 'timestep="0\.(2[4-9]|3)' "$work/frames.pvd" >"$work/on/frames.pvd"
serve "$work/on"
open_page "$at"
few=$(js "return weftView.frames")
[ "$few" -lt 16 ] || fail "$page: nothing is left to come"
expect "it says that it goes on" "return document.getElementById('where').value.includes('goes on')"
js "weftView.go(weftView.frames - 1); return 0" >/dev/null
await "the newest frame is shown" "return weftView.frame === weftView.frames - 1"
cp "$work/frames.pvd" "$work/on/frames.pvd"
await "it follows" "return weftView.frames === 16 && weftView.frame === 15"
sed -i 's/"exit": null/"exit": 0/' "$work/on/run.json"
await "it sees the end" "return !document.getElementById('where').value.includes('goes on') || (weftView.go(15), false)"
no_errors

# --- 100,000 triangles ---

"$weft" run drape-floor --ranks 2 --quiet --set cloth.grid.vertices=225 --set contact.thickness=2mm --set output.pictures=false \
    --set output.checkpoints=false --set output.interval=5ms --steps "${STEPS:-20}" --out "$work/large" >/dev/null
serve "$work/large"
open_page "$at"
js "document.getElementById('speed').value = '0'; document.getElementById('speed').dispatchEvent(new Event('change')); weftView.play(true); return 0" >/dev/null
await "it plays once" "return !weftView.playing"
# Again, with all frames at hand, while it turns; a few times, for the machine may be busy with
# something else in one of them.
for _ in 1 2 3 4 5; do
    js "window.took = 0; window.began = performance.now(); weftView.play(true); window.turned = setInterval(() => { weftView.camera.yaw += 0.02; if (!weftView.playing) { clearInterval(window.turned); window.took = performance.now() - window.began; } }, 10); return 0" >/dev/null
    await "it plays again" "return window.took > 0"
    rate=$(js "return Math.round(10 * 1000 * weftView.drawn / window.took) / 10")
    stall=$(js "return Math.round(weftView.stall)")
    if [ "$stall" -lt 200 ] && awk -v rate="$rate" -v least="$RATE" 'BEGIN { exit !(rate >= least) }'; then break; fi
done
shoot view-large
no_errors
echo "100,352 triangles play with $rate drawings a second, the longest pause is $stall ms"
[ "$stall" -lt 200 ] || fail "$page: it stands still for $stall ms"
awk -v rate="$rate" -v least="$RATE" 'BEGIN { exit !(rate >= least) }' || fail "$page: $rate drawings a second"
echo "weft view plays, turns, colours, follows and refuses in $(chromium --version 2>/dev/null | head -1)"
