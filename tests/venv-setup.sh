# Sourced by scripts that need Python packages: sees to it that Python can make virtual
# environments. As root on Debian it installs what that needs.

if ! python3 -c 'import ensurepip' 2>/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update
        apt-get install -y --no-install-recommends python3-venv
    else
        echo "$0: no Python with venv found; install it (Debian: apt-get install python3-venv)" >&2
        exit 1
    fi
fi
