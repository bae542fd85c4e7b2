#!/usr/bin/env bash
# Writes the licences of the software that is linked into a program, with their texts, for those who
# hand out binaries: THIRD-PARTY.md names licences, and most of these want their text to come along.
#
#   contrib/licences.sh FILE [CRATE [FEATURES]]     default the crate weftwork, without features
#
# Equal texts are written once, under the names of all crates that have them. Needs Python.
set -euo pipefail
cd "$(dirname "$0")/.."

file=${1:?a file to write}
crate=${2:-weftwork}
features=${3:-}
linked=$(cargo tree --locked --package "$crate" --features "$features" --edges normal,no-proc-macro --prefix none \
    --format '{p}' | sed 's/ (\*)$//' | LC_ALL=C sort -u)
cargo metadata --locked --format-version 1 --features "$features" --manifest-path Cargo.toml |
    LINKED=$linked FILE=$file python3 -c '
import json, os, pathlib, sys

NAMES = ("licen", "copying", "notice", "copyright", "unlicense")
linked = {tuple(line.split()[:2]) for line in os.environ["LINKED"].splitlines() if line}
texts, without = {}, []
for package in json.load(sys.stdin)["packages"]:
    if package["source"] is None or (package["name"], "v" + package["version"]) not in linked:
        continue
    name = "{name} {version} ({license})".format(**package)
    root = pathlib.Path(package["manifest_path"]).parent
    found = sorted(
        path for path in root.rglob("*")
        if path.is_file() and path.name.lower().startswith(NAMES) and path.suffix not in (".rs", ".toml")
    )
    if not found:
        without.append(name)
    for path in found:
        text = path.read_text(encoding="utf-8", errors="replace").strip()
        texts.setdefault(text, []).append(name)
if not texts:
    sys.exit("no licence was found")
with open(os.environ["FILE"], "w", encoding="utf-8") as out:
    out.write("Licences of software that this program contains.\n")
    if without:
        out.write("\nThese crates are packed without a text of their licence:\n\n")
        out.writelines(f"  {name}\n" for name in without)
    for text, names in texts.items():
        out.write("\n" + "=" * 80 + "\n")
        out.writelines(f"{name}\n" for name in sorted(set(names)))
        out.write("-" * 80 + "\n" + text + "\n")
'
