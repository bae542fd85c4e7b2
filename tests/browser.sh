# A real browser for tests: to be sourced, from the project's folder, by a script with `set -euo
# pipefail`.
#
# Needs chromium, chromedriver and curl; as root on Debian it installs them. Makes the folder $work,
# which is gone at the end with the browser and with what $servers are; screenshots are kept in
# $shots, if that names a folder. Further options of the browser stand in $browser_options, each as
# ,"--option".

if ! command -v chromedriver >/dev/null || ! command -v chromium >/dev/null || ! command -v curl >/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update
        apt-get install -y --no-install-recommends chromium chromium-driver curl
    else
        echo "$0: no chromium with chromedriver found; install them (Debian: apt-get install" \
            "chromium chromium-driver curl)" >&2
        exit 1
    fi
fi

work=$(mktemp -d)
shots=
driver=
session=
servers=()
finish() {
    kill "${servers[@]}" 2>/dev/null || true
    if [ -n "$session" ]; then
        curl -s -X DELETE "$url/session/$session" >/dev/null || true
    fi
    if [ -n "$driver" ]; then
        kill "$driver" 2>/dev/null || true
        wait "$driver" 2>/dev/null || true
    fi
    rm -rf "$work" || true
}
trap finish EXIT

fail() {
    echo "$0: $*" >&2
    exit 1
}

open_browser() {
    local port answer options
    # Before the driver opens it, for it is read at once.
    : >"$work/driver.log"
    chromedriver --port=0 >"$work/driver.log" 2>&1 &
    driver=$!
    port=
    for _ in $(seq 100); do
        port=$(sed -n 's/.*started successfully on port \([0-9]*\).*/\1/p' "$work/driver.log")
        if [ -n "$port" ]; then break; fi
        sleep 0.1
    done
    [ -n "$port" ] || fail "chromedriver did not start: $(cat "$work/driver.log")"
    url=http://127.0.0.1:$port
    options="\"--headless\",\"--no-sandbox\",\"--disable-gpu\",\"--disable-quic\",\"--no-first-run\",\
    \"--disable-background-networking\",\"--disable-component-update\",\"--disable-sync\",\
    \"--user-data-dir=$work/profile\",\"--window-size=1280,1000\"${browser_options:-}"
    answer=$(ask /session -d "{\"capabilities\":{\"alwaysMatch\":{\"browserName\":\"chrome\",\"goog:chromeOptions\":{\"binary\":\"$(command -v chromium)\",\"args\":[$options]}}}}")
    session=$(sed -n 's/.*"sessionId":"\([^"]*\)".*/\1/p' <<<"$answer")
    [ -n "$session" ] || fail "no browser: $answer"
}

# Prints the answer to a command of the WebDriver protocol.
ask() {
    local answer
    answer=$(curl -s -H 'Content-Type: application/json' "${@:2}" "$url$1")
    case $answer in
        *'"error":'*) fail "$1: $answer" ;;
    esac
    printf '%s' "$answer"
}

# Runs a script in the page, without double quotes or backslashes in it; prints what it returns, as
# JSON.
js() {
    ask "/session/$session/execute/sync" -d "{\"script\":\"$1\",\"args\":[]}" | sed 's/^{"value"://; s/}$//'
}

expect() { # WHAT SCRIPT: the script must return true.
    local value
    value=$(js "$2")
    [ "$value" = true ] || fail "$page: $1: $value"
}

shoot() { # NAME: a screenshot, if they are to be kept.
    [ -n "$shots" ] || return 0
    mkdir -p "$shots"
    ask "/session/$session/screenshot" | sed 's/^{"value":"//; s/"}$//' | base64 -d >"$shots/$1.png"
}
