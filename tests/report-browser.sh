#!/usr/bin/env bash
# Opens reports in a real browser and uses them as a person would: points, zooms, presses keys.
#
#   tests/report-browser.sh [FOLDER]
#
# The reports are of a real run, and of one that never was, with 64 ranks and a million events,
# whose drawing it times. Screenshots are kept in FOLDER if one is named. Needs chromium and
# chromedriver; as root on Debian it installs them.
set -euo pipefail
cd "$(dirname "$0")/.."

. tests/browser.sh

cargo build --locked --release
# Not optimised for release: what it needs besides was built for the tests.
cargo build --locked -p weft-report --example large
programs=${CARGO_TARGET_DIR:-target}
shots=${1:-}

open_browser

act() { # Actions of one input device.
    ask "/session/$session/actions" -d "{\"actions\":[$1]}" >/dev/null
}
point() { # X Y
    act "{\"type\":\"pointer\",\"id\":\"mouse\",\"parameters\":{\"pointerType\":\"mouse\"},\"actions\":[{\"type\":\"pointerMove\",\"duration\":0,\"x\":$1,\"y\":$2}]}"
}
wheel() { # X Y DELTA
    act "{\"type\":\"wheel\",\"id\":\"wheel\",\"actions\":[{\"type\":\"scroll\",\"duration\":0,\"x\":$1,\"y\":$2,\"deltaX\":0,\"deltaY\":$3}]}"
}
press() { # KEY
    act "{\"type\":\"key\",\"id\":\"keys\",\"actions\":[{\"type\":\"keyDown\",\"value\":\"$1\"},{\"type\":\"keyUp\",\"value\":\"$1\"}]}"
}

open_page() { # FILE
    page=$1
    ask "/session/$session/url" -d "{\"url\":\"file://$page\"}" >/dev/null
    for _ in $(seq 200); do
        if [ "$(js 'return weft.ready || weftErrors.length > 0')" = true ]; then break; fi
        sleep 0.1
    done
    expect "it is drawn" "return weft.ready"
    no_errors
    expect "it asks nobody for anything" "return performance.getEntriesByType('resource').filter(r => !r.name.startsWith('data:') && !r.name.startsWith('blob:')).length === 0"
}
no_errors() {
    local errors
    errors=$(js 'return weftErrors.join(` | `)')
    [ "$errors" = '""' ] || fail "$page: script errors: $errors"
}

# Whether a canvas of a section shows more than one colour.
painted() { # SECTION
    expect "$1 is painted" "const c = document.querySelector('#$1-0 canvas'); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; const seen = new Set(); for (let k = 0; k < d.length; k += 4) seen.add(d[k] * 65536 + d[k + 1] * 256 + d[k + 2]); return seen.size > 3"
}

# Brings the timeline into view and asks where it is: x, y, width, height in pixels of the window.
place_timeline() {
    js "weft.runs[0].canvas.scrollIntoView({ block: 'start' }); return 0" >/dev/null
    x=$(js "return Math.round(weft.runs[0].canvas.getBoundingClientRect().x)")
    y=$(js "return Math.round(weft.runs[0].canvas.getBoundingClientRect().y)")
    width=$(js "return Math.round(weft.runs[0].canvas.getBoundingClientRect().width)")
}
span() { js "const v = weft.runs[0].view(); return Math.round(v.t1 - v.t0)"; }

# Uses all that every page of a traced run has.
use_page() {
    for section in summary phases timeline utilisation idle steals sizes steps patches; do
        expect "section $section is there" "return document.getElementById('$section-0') !== null"
    done
    for section in timeline utilisation steals steps patches; do painted "$section"; done
    expect "four pictures of the cloth" "return document.querySelectorAll('#patches-0 .cloths canvas').length === 4"
    # Borders of patches are darker; all else has the colours of the legend, in which every rank has
    # one of its own.
    expect "owners have the colours of the legend" "const f = document.querySelector('#patches-0 .cloths figure'), c = f.querySelector('canvas'); const of = [...f.querySelectorAll('.swatch')].map(s => s.style.background.replaceAll(' ', '')), legend = new Set(of); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let seen = 0, known = 0; for (let k = 0; k < d.length; k += 4) { if (!d[k + 3]) continue; seen++; known += legend.has('rgb(' + d[k] + ',' + d[k + 1] + ',' + d[k + 2] + ')'); } return seen > 0 && known > 0.5 * seen && legend.size === weft.runs[0].meta.ranks"
    expect "a bar for each rank" "return document.querySelectorAll('#idle-0 .bar').length === weft.runs[0].meta.ranks"

    place_timeline
    local all zoomed
    all=$(span)
    wheel $((x + width / 2)) $((y + 8)) -400
    zoomed=$(span)
    [ "$zoomed" -lt "$all" ] || fail "$page: the wheel does not zoom: $zoomed of $all"
    # The first task of rank 0, in the middle of the view; the pointer on it.
    js "const r = weft.runs[0], b = r.a.task_begin[0], l = Math.max(r.a.task_length[0], 10); r.setView(b - l, b + 2 * l); return 0" >/dev/null
    sleep 0.2
    point $((x + 56 + (width - 56) / 2)) $((y + 4))
    expect "pointing shows a task" "const t = document.getElementById('tip'); return !t.hidden && t.textContent.includes('task: ') && t.textContent.includes(' tests in ')"
    shoot "$1-task"

    js "weft.runs[0].canvas.focus({ preventScroll: true }); return 0" >/dev/null
    press '\uE011'
    [ "$(span)" = "$all" ] || fail "$page: Home does not show all"
    press '+'
    [ "$(span)" -lt "$all" ] || fail "$page: + does not zoom"
    local before after
    before=$(js "return Math.round(weft.runs[0].view().t0)")
    press '\uE014'
    after=$(js "return Math.round(weft.runs[0].view().t0)")
    [ "$after" -gt "$before" ] || fail "$page: the right arrow does not move on"
    press '\uE015'
    press n
    expect "a task is read out" "return [...document.querySelectorAll('#timeline-0 output')].some(o => o.value.includes('tests in'))"
    expect "a step can be chosen" "const n = weft.runs[0].a.step_number; return weft.runs[0].showStep(n[n.length >> 1])"
    sleep 0.2
    shoot "$1-step"
    press '\uE011'

    # The cloth turns, and tells of the patch that is pointed at.
    js "document.querySelector('#patches-0 .cloths canvas').scrollIntoView({ block: 'center' }); return 0" >/dev/null
    local cx cy
    cx=$(js "const b = document.querySelector('#patches-0 .cloths canvas').getBoundingClientRect(); return Math.round(b.x)")
    cy=$(js "const b = document.querySelector('#patches-0 .cloths canvas').getBoundingClientRect(); return Math.round(b.y)")
    local px py found=false
    for px in 60 120 180 240 300; do
        for py in 40 90 135 180 230; do
            point $((cx + px)) $((cy + py))
            if [ "$(js "const t = document.getElementById('tip'); return !t.hidden && t.textContent.startsWith('patch ')")" = true ]; then
                found=true
                break 2
            fi
        done
    done
    [ "$found" = true ] || fail "$page: no patch is found in the picture"
    shoot "$1-cloth"
    js "document.querySelector('#patches-0 .cloths canvas').focus(); return 0" >/dev/null
    press '\uE014'
    expect "the cloth turns" "return weft.runs[0].turn.yaw > -0.59"
    no_errors
}

# --- a real run ---

"$programs/release/weft" run scenes/one-sided.toml --ranks 4 --comm virtual --network hdr-infiniband --trace --steps 240 \
    --quiet --out "$work/one" >/dev/null
"$programs/release/weft" report "$work/one" >/dev/null
open_page "$work/one/report.html"
shoot one-top
expect "the phase is named" "return document.querySelector('#summary-0 .fault .answer').textContent.includes('collide')"
expect "the policy is named" "return document.querySelectorAll('#summary-0 .answer')[2].textContent.includes('static')"
use_page one

# --- two runs side by side ---

"$programs/release/weft" run scenes/one-sided.toml --ranks 4 --comm virtual --network hdr-infiniband --trace --steps 240 \
    --policy every-other --quiet --out "$work/mended" >/dev/null
"$programs/release/weft" report "$work/one" "$work/mended" --out "$work/both.html" >/dev/null
open_page "$work/both.html"
expect "both are in the table" "return document.querySelectorAll('#compare tr:first-child th').length === 3"
expect "both are drawn" "return weft.runs.length === 2 && weft.runs.every(r => r.frames.length > 0)"
shoot both-top
no_errors

# --- 64 ranks and a million events ---

"$programs/debug/examples/large" "$work/large" | tail -1
open_page "$work/large/report.html"
expect "it has that many" "const r = weft.runs[0]; return r.meta.ranks === 64 && r.spans > 400000"
use_page large
place_timeline
shoot large-timeline
echo "drawing $(js "return weft.runs[0].spans") spans of 64 ranks takes $(js "const r = weft.runs[0]; r.setView(0, 1e12); const times = []; for (let k = 0; k < 9; k++) { const began = performance.now(); r.paint(); times.push(performance.now() - began); } return Math.round(times.sort((a, b) => a - b)[4])") ms (median of 9, all in view)"
echo "the report draws, zooms and answers in $(chromium --version 2>/dev/null | head -1)"
