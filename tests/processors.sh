#!/usr/bin/env bash
# Runs the program as other processors would, and compares state hashes with those of this one: on
# an emulated Nehalem, which has no vectors of 256 bits and so takes the plain path of every kernel,
# and on an emulated Haswell, which takes that of AVX2. Takes a quarter of a minute.
#
#   tests/processors.sh
#   WEFT_AARCH64=… tests/processors.sh   also that build of the program, on an emulated Arm
#
# Needs target/release/weft, or WEFT, of x86-64. As root on Debian it installs QEMU if there is
# none.
set -euo pipefail
cd "$(dirname "$0")/.."

weft=${WEFT:-target/release/weft}
if [ "$(uname -m)" != x86_64 ]; then
    echo "NOT CHECKED: other processors, for this machine is no x86-64"
    exit
fi
emulator() { command -v "qemu-$1" || command -v "qemu-$1-static"; }
if ! emulator x86_64 >/dev/null; then
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "NOT CHECKED: other processors, for lack of QEMU (Debian: apt-get install qemu-user)"
        exit
    fi
    apt-get update
    apt-get install -y --no-install-recommends qemu-user
fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# hash_of PROGRAM...: the state hash of the run at hand by that program.
hash_of() {
    local line
    # shellcheck disable=SC2086
    line=$("$@" run $run --quiet --out "$out/run" --overwrite --set output.frames=false \
        --set output.pictures=false 2>"$out/said" | grep '^state hash') || { cat "$out/said" >&2; return 1; }
    echo "${line##* }"
}

# same NAME PROGRAM...: whether that program ends with the hash of this processor.
same() {
    local name=$1 hash
    shift
    hash=$(hash_of "$@")
    if [ "$hash" != "$expected" ]; then
        echo "$0: $run: $expected on this processor, $hash on $name" >&2
        exit 1
    fi
}

# Cloth on bodies, and certified cloth on cloth.
for run in 'scenes/quick.toml --until 0.05' 'scenes/certified/clash.toml --until 0.01'; do
    expected=$(hash_of "$weft")
    same "an emulated Nehalem" "$(emulator x86_64)" -cpu Nehalem "$weft"
    # The emulator lacks some of what a Haswell has, and says so.
    same "an emulated Haswell" "$(emulator x86_64)" -cpu Haswell "$weft"
    if [ -n "${WEFT_AARCH64:-}" ]; then
        same "an emulated Arm" "$(emulator aarch64)" -L /usr/aarch64-linux-gnu "$WEFT_AARCH64"
    fi
    echo "$expected $run"
done
