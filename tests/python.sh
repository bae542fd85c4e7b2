#!/usr/bin/env bash
# Builds the wheel of the Python package, installs it into an environment of its own, and tests it:
# its types, its tests, the notebooks, the blocks of Python in the book, and all scenes against
# their schema.
#
#   tests/python.sh [ARGUMENT OF PYTEST...]
#
# Needs Rust, Python 3.10 or later with venv, and target/release/weft (or WEFT), whose state hashes
# are compared. Not optimised unless CARGO_PROFILE_DEV_OPT_LEVEL says so: building would take longer
# than running.
set -euo pipefail
cd "$(dirname "$0")/.."

source tests/venv-setup.sh
unset PYO3_NO_PYTHON PYO3_BUILD_EXTENSION_MODULE
export CARGO_PROFILE_DEV_OPT_LEVEL="${CARGO_PROFILE_DEV_OPT_LEVEL:-0}" PIP_DISABLE_PIP_VERSION_CHECK=1
# Workers of a build that is not optimised need more than the 2 MiB that threads have by default.
export RUST_MIN_STACK="${RUST_MIN_STACK:-8388608}"
target=$(realpath "${CARGO_TARGET_DIR:-target}")
export WEFT="${WEFT:-$target/release/weft}"
work=$target/python
venv=$work/venv
mkdir -p "$work"
if ! cmp -s python/requirements-test.txt "$work/installed.txt"; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --requirement python/requirements-test.txt
    cp python/requirements-test.txt "$work/installed.txt"
fi
rm -rf "$work/wheels"
# A wheel holds binaries, so the licences of what is linked come along.
contrib/licences.sh python/THIRD-PARTY-LICENSES.txt weftwork-python
"$venv/bin/maturin" build --quiet --locked --manifest-path python/Cargo.toml --profile dev --compatibility linux \
    --interpreter "$venv/bin/python" --out "$work/wheels"
packed=$(python3 -m zipfile --list "$(ls "$work"/wheels/*.whl)")
if ! grep -q 'licenses/THIRD-PARTY-LICENSES.txt' <<<"$packed"; then
    echo "$0: the wheel lacks the licences of others" >&2
    exit 1
fi
"$venv/bin/pip" install --quiet --no-deps --force-reinstall "$work"/wheels/*.whl
# From elsewhere, so that it is the wheel that is imported.
cd "$work"
"$venv/bin/mypy" --strict --package weftwork
exec "$venv/bin/python" -m pytest -q -p no:cacheprovider "$OLDPWD/python/tests" "$@"
