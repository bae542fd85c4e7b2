#!/usr/bin/env bash
# Makes a Debian package of the program, with man pages and completions, and looks into it.
#
#   contrib/deb.sh [FOLDER]      default target/packaging; prints the package's path
#
# Needs cargo-deb (cargo install --locked cargo-deb) and dpkg-dev. Takes target/release/weft
# as it is, and builds it where it is missing. The package depends on the C library of the machine
# that builds it, or a later one, so build it on the oldest Debian that it is for.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
    echo "$0: $*" >&2
    exit 1
}
command -v cargo-deb >/dev/null || fail "needs cargo-deb: cargo install --locked cargo-deb"
command -v dpkg-shlibdeps >/dev/null || fail "needs dpkg-dev: apt-get install dpkg-dev"

# [package.metadata.deb] in Cargo.toml names these folders.
made=target/packaging
folder=${1:-$made}
[ -x target/release/weft ] || CARGO_TARGET_DIR=target cargo build --locked --release
rm -rf "$made"
mkdir -p "$made/man" "$folder"
target/release/weft completions bash >"$made/weft.bash"
target/release/weft completions zsh >"$made/_weft"
target/release/weft completions fish >"$made/weft.fish"
target/release/weft completions --man "$made/man" >/dev/null
package=$(CARGO_TARGET_DIR=target cargo deb --no-build --locked --strip --package weftwork --output "$folder/")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
dpkg-deb --extract "$package" "$work"
"$work/usr/bin/weft" info >/dev/null || fail "the packed program does not run"
for file in man/man1/weft.1.gz man/man1/weft-run.1.gz doc/weftwork/copyright doc/weftwork/THIRD-PARTY.md \
    doc/weftwork/LICENSE-APACHE bash-completion/completions/weft; do
    [ -s "$work/usr/share/$file" ] || fail "$package lacks usr/share/$file"
done
grep -q 'MIT OR Apache-2.0\|Permission is hereby granted' "$work/usr/share/doc/weftwork/copyright" ||
    fail "the file copyright has no licence"
echo "$package"
