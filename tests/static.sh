#!/usr/bin/env bash
# Builds the program as a static binary (musl) and for 64-bit Arm, and runs both: the first on one
# rank and on three, which must end with one state, the second on an emulated processor, with the
# hashes of this one. Takes some ten minutes, so CI does not run it; tests/nightly.sh does.
#
#   tests/static.sh
#
# Needs rustup and target/release/weft, or WEFT. As root on Debian it installs the rest.
set -euo pipefail
cd "$(dirname "$0")/.."

musl=x86_64-unknown-linux-musl
arm=aarch64-unknown-linux-gnu
if [ "$(uname -m)" != x86_64 ]; then
    echo "NOT CHECKED: a static binary and one for Arm, for this machine is no x86-64"
    exit
fi
missing=()
command -v musl-gcc >/dev/null || missing+=(musl-tools)
command -v aarch64-linux-gnu-gcc >/dev/null || missing+=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross)
command -v qemu-aarch64 >/dev/null || command -v qemu-aarch64-static >/dev/null || missing+=(qemu-user)
if [ ${#missing[@]} != 0 ]; then
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "$0: needs ${missing[*]} (Debian: apt-get install ${missing[*]})" >&2
        exit 1
    fi
    apt-get update
    apt-get install -y --no-install-recommends "${missing[@]}"
fi
rustup target add "$musl" "$arm"

export CARGO_PROFILE_RELEASE_DEBUG=false
target=${CARGO_TARGET_DIR:-target}
CC_x86_64_unknown_linux_musl=musl-gcc \
    cargo build --locked --release --target "$musl" --bin weft
static=$target/$musl/release/weft
if ldd "$static" 2>&1 | grep '=>'; then
    echo "$0: $static needs the libraries above" >&2
    exit 1
fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
hash_of() {
    "$static" run scenes/quick.toml --quiet --out "$out/run" --overwrite --ranks "$1" | grep '^state hash'
}
[ "$(hash_of 1)" = "$(hash_of 3)" ] || { echo "$0: the static binary breaks the promise" >&2; exit 1; }
echo "$static: $(hash_of 1), on one rank and on three"

CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
    cargo build --locked --release --target "$arm" --bin weft
WEFT_AARCH64=$target/$arm/release/weft tests/processors.sh
