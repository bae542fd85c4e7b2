#!/usr/bin/env bash
# The book's two pictures of a report's page, taken in a browser that nobody sees.
#
#   benches/study/screenshots.sh REPORT.html STEP FOLDER
#
# Leaves report-top.png, what the page says first, and report-step.png, its timeline zoomed to a
# step, in FOLDER. Needs what tests in a browser do (tests/browser.sh): chromium, chromedriver and
# curl.
set -euo pipefail
[ $# = 3 ] || { sed -n '4,4s/^# *//p' "$0" >&2; exit 2; }
page=$(realpath "$1") step=$2 folder=$(realpath "$3")
cd "$(dirname "$0")/../.."

. tests/browser.sh

open_browser

devtools() { # COMMAND PARAMETERS: of the browser's own protocol, which can take more of a page than its window shows.
    ask "/session/$session/goog/cdp/execute" -d "{\"cmd\":\"$1\",\"params\":$2}"
}
edge() { # SECTION SIDE: where it is on the page, in pixels.
    js "return Math.round(window.scrollY + document.getElementById('$1-0').getBoundingClientRect().$2)"
}
take() { # NAME TOP BOTTOM
    devtools Page.captureScreenshot "{\"captureBeyondViewport\":true,\"clip\":{\"x\":0,\"y\":$2,\"width\":1040,\"height\":$(($3 - $2)),\"scale\":1}}" |
        sed 's/^{"value":{"data":"//; s/"}}$//' | base64 -d >"$folder/$1.png"
}

devtools Emulation.setDeviceMetricsOverride '{"width":1040,"height":1000,"deviceScaleFactor":1,"mobile":false}' >/dev/null
devtools Emulation.setScrollbarsHidden '{"hidden":true}' >/dev/null
ask "/session/$session/url" -d "{\"url\":\"file://$page\"}" >/dev/null
for _ in $(seq 200); do
    if [ "$(js 'return weft.ready || weftErrors.length > 0')" = true ]; then break; fi
    sleep 0.1
done
expect "it is drawn" "return weft.ready && weftErrors.length === 0"
take report-top 0 $(($(edge next bottom) + 10))
expect "step $step is in the trace" "return weft.runs[0].showStep($step)"
# The page draws in the next frame.
sleep 0.5
take report-step $(($(edge timeline top) - 10)) $(($(edge idle bottom) + 10))
