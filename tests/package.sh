#!/usr/bin/env bash
# Packs each crate as `cargo publish` would send it, and looks into the packages: metadata, README,
# licences, nothing that does not belong there; then publishes all of them in a dry run. Compiles
# nothing: `tests/nightly.sh` and a step of RELEASING.md compile the packages too.
#
#   tests/package.sh
#
# Needs the registry's index, as any build does that has to download crates.
set -euo pipefail
cd "$(dirname "$0")/.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}/packed")
rm -rf "$target"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    echo "$0: $*" >&2
    exit 1
}

# A change that is tested before it is committed is packed as it is.
if ! cargo package --locked --workspace --exclude weftwork-python --no-verify --allow-dirty \
    --target-dir "$target" >"$work/said" 2>&1; then
    cat "$work/said" >&2
    fail "a crate cannot be packed"
fi
if ! cargo publish --dry-run --locked --workspace --exclude weftwork-python --no-verify --allow-dirty \
    --target-dir "$work/published" >"$work/said" 2>&1; then
    cat "$work/said" >&2
    fail "a crate cannot be published"
fi

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
grep -qx "version: $version" CITATION.cff || fail "CITATION.cff is not of version $version"
grep -q '^## \[Unreleased\]$' CHANGELOG.md || fail "CHANGELOG.md has no section for what is to come"
grep -q "^## \[${version//./\\.}\] - 20[0-9-]*\$" CHANGELOG.md || fail "CHANGELOG.md has no section of version $version"

names=()
for package in "$target"/package/*.crate; do
    name=$(basename "$package" "-$version.crate")
    names+=("$name")
    tar -xzf "$package" -C "$work"
    folder=$work/$name-$version
    [ -d "$folder" ] || fail "$package is not of version $version"

    for file in README.md LICENSE-MIT LICENSE-APACHE Cargo.lock; do
        [ -s "$folder/$file" ] || fail "$name: no $file"
    done
    for file in LICENSE-MIT LICENSE-APACHE; do
        cmp -s "$file" "$folder/$file" || fail "$name: $file is not the project's"
    done
    grep -q "^# $name" <<<"$(head -n 1 "$folder/README.md")" || fail "$name: README.md is that of another crate"
    # Not in a pipe: it fails where grep has found the line before all is written.
    head=$(sed '/^\[dep/q' "$folder/Cargo.toml")
    for key in description keywords categories license rust-version readme authors; do
        grep -q "^$key = " <<<"$head" || fail "$name: no $key"
    done
    words=$(sed -n 's/^description = //p' "$folder/Cargo.toml")
    [ "${#words}" -le 200 ] || fail "$name: a description is at most 200 characters long"
    foreign=$(cd "$folder" && find . \( -name target -o -name runs -o -name __pycache__ -o -name '*.orig' \
        -o -name '*.rej' -o -name '*.log' -o -name '*.ckpt' -o -name '*.vtp' -o -name '.git' -o -name '.ci' \
        -o -name '.github' -o -type l \) ! -path ./Cargo.toml.orig)
    [ -z "$foreign" ] || fail "$name: does not belong into the package: $foreign"
    size=$(stat -c %s "$package")
    [ "$size" -lt 10000000 ] || fail "$name: $size bytes, and a registry takes 10 MB"
    printf '%8d bytes  %4d files  %s %s\n' "$size" "$(find "$folder" -type f | wc -l)" "$name" "$version"
done

[ -s "$work/weftwork-$version/THIRD-PARTY.md" ] || fail "the licences of others are not in the program's package"
# A file that the program takes in while it is compiled has to be in its package.
while IFS=: read -r file text; do
    included=$(sed -E 's/.*include_(str|bytes)!\("([^"]*)"\).*/\2/' <<<"$text")
    [ -e "$(dirname "$file")/$included" ] || fail "$file: takes in $included, which is not packed"
done < <(grep -rE --include='*.rs' 'include_(str|bytes)!\("' "$work"/*/src | sed 's/:[[:space:]]*/:/')

# Binaries come with the licences of others.
contrib/licences.sh "$work/licences.txt"
for words in 'metis-sys ' 'Permission is hereby granted' 'Apache License'; do
    grep -q "$words" "$work/licences.txt" || fail "contrib/licences.sh: no \"$words\" in what it writes"
done

# The order in which they are published is written down, for all of them.
listed=$(sed -n 's/^[0-9]*\. `\(weft[a-z-]*\)`.*/\1/p' RELEASING.md)
diff <(printf '%s\n' "${names[@]}" | LC_ALL=C sort) <(LC_ALL=C sort <<<"$listed") >&2 ||
    fail "RELEASING.md does not list the crates that are packed"
for name in $listed; do
    # A crate stands behind all that it needs.
    needs=$(sed -n 's/^\[\(dependencies\|target.*\.dependencies\)\.\(weft[a-z-]*\)\]$/\2/p' "$work/$name-$version/Cargo.toml")
    for need in $needs; do
        grep -qx -- "$need" <<<"${before:-}" || fail "RELEASING.md: $name is published before $need"
    done
    before=${before:-}$'\n'$name
done
echo "${#names[@]} crates are packed as they should be"
