#!/usr/bin/env bash
# Makes a Debian package of the program, with man pages and completions, and looks into it.
#
#   contrib/deb.sh [--mpi] [FOLDER]     default target/packaging; prints the package's path
#
# With --mpi it makes weftwork-mpi, for the MPI of Debian whose mpicc is found (Open MPI or MPICH);
# the package depends on that one, for programs of the one do not run under the other.
#
# Needs cargo-deb (cargo install --locked cargo-deb) and dpkg-dev, and with --mpi what a build with
# the feature mpi needs. Without it, it takes target/release/weft as it is, and builds it where it
# is missing. The package depends on the C library of the machine that builds it, or a later one, so
# build it on the oldest Debian that it is for.
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
built=target features='' variant=()
if [ "${1:-}" = --mpi ]; then
    shift
    # The default build stays as it is.
    built=target/with-mpi features=mpi variant=(--variant mpi)
    CARGO_TARGET_DIR=$built cargo build --locked --release --features mpi --bin weft
fi
folder=${1:-$made}
weft=$built/release/weft
[ -x "$weft" ] || CARGO_TARGET_DIR=target cargo build --locked --release
rm -rf "$made"
mkdir -p "$made/man" "$folder"
"$weft" completions bash >"$made/weft.bash"
"$weft" completions zsh >"$made/_weft"
"$weft" completions fish >"$made/weft.fish"
"$weft" completions --man "$made/man" >/dev/null
contrib/licences.sh "$made/THIRD-PARTY-LICENSES.txt" weftwork "$features"
package=$(CARGO_TARGET_DIR=$built cargo deb --no-build --locked --strip --package weftwork "${variant[@]}" \
    --output "$folder/")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
dpkg-deb --extract "$package" "$work"
"$work/usr/bin/weft" info >/dev/null || fail "the packed program does not run"
documents=doc/$(dpkg-deb --field "$package" Package)
for file in man/man1/weft.1.gz man/man1/weft-run.1.gz "$documents/copyright" doc/weftwork/THIRD-PARTY.md \
    doc/weftwork/THIRD-PARTY-LICENSES.txt doc/weftwork/LICENSE-APACHE bash-completion/completions/weft; do
    [ -s "$work/usr/share/$file" ] || fail "$package lacks usr/share/$file"
done
grep -q 'MIT OR Apache-2.0\|Permission is hereby granted' "$work/usr/share/$documents/copyright" ||
    fail "the file copyright has no licence"
echo "$package"
