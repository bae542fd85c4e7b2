#!/usr/bin/env bash
# Builds the book with mdBook, and fails if it warns of anything.
#
#   tests/book-build.sh
#
# Links, anchors and paths are checked by `cargo test --test command book`, without mdBook. If there
# is no `mdbook` (or MDBOOK), it is built once into target/mdbook, which takes some minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.5.4
mdbook=${MDBOOK:-mdbook}
if ! command -v "$mdbook" >/dev/null; then
    mdbook=target/mdbook/bin/mdbook
    [ -x "$mdbook" ] || CARGO_TARGET_DIR=target/mdbook/build \
        cargo install --locked --no-default-features --version "$version" --root target/mdbook mdbook
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$mdbook" build --dest-dir "$work/book" docs >"$work/said" 2>&1 || {
    cat "$work/said" >&2
    exit 1
}
if grep -E 'WARN|ERROR' "$work/said" >&2; then
    echo "tests/book-build.sh: mdBook warns of the lines above" >&2
    exit 1
fi
# Each page of the summary has become one of the book.
pages=0
while IFS= read -r page; do
    [ -s "$work/book/${page%.md}.html" ] || {
        echo "tests/book-build.sh: no page of $page" >&2
        exit 1
    }
    pages=$((pages + 1))
done < <(sed -n 's/.*](\(.*\.md\))$/\1/p' docs/src/SUMMARY.md)
[ "$pages" -gt 40 ] || { echo "tests/book-build.sh: only $pages pages" >&2; exit 1; }
echo "the book has $pages pages"
