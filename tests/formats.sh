#!/usr/bin/env bash
# Exports a small run in every format, and has the programs that others use read it, vertex by
# vertex: usd-core, pyvista (VTK) and trimesh.
#
#   tests/formats.sh            all of it, some seconds beside downloads
#   tests/formats.sh --blender  has Blender itself import USD and OBJ and play the point caches,
#                               too: 400 MB are downloaded
#
# Needs Python with venv; as root on Debian it installs that. Packages lie in target/formats.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(usd-core==26.11 pyvista==0.49.1 trimesh==5.2.0 numpy==2.4.6)
# Blender as a module wants the Python that it was built for: this one has wheels for 3.11.
bpy=5.0.1
target=${CARGO_TARGET_DIR:-target}
profile=${PROFILE:-release}
folder=$target/formats

# Makes a virtual environment with some packages, if it is not there.
environment() {
    local place=$1 test=$2
    shift 2
    if "$place/bin/python" -c "$test" 2>/dev/null; then return; fi
    source tests/venv-setup.sh
    python3 -m venv "$place"
    "$place/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
}

mkdir -p "$folder"
environment "$folder/python" 'import pxr, pyvista, trimesh' "${packages[@]}"
if [ "$profile" = release ]; then
    cargo build --locked --release --bin weft
else
    cargo build --locked --bin weft
fi
weft=$target/$profile/weft

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp tests/formats/garment.toml "$work"
"$folder/python/bin/python" tests/formats/make_sheet.py "$work/sheet.obj"
"$weft" run "$work/garment.toml" --ranks 2 --quiet --out "$work/run" >/dev/null 2>"$work/notes"
grep -q '^note: pc2: the frame at 0.22 s' "$work/notes"
"$folder/python/bin/python" tests/formats/read.py "$work/run" "$work/run/exports" "$work/sheet.obj"
# The command writes what the run did, and refuses to do so twice.
"$weft" export "$work/run" --format usd,pc2,mdd,obj,ply,glb,apng --out "$work/film" >/dev/null 2>&1
diff -r "$work/run/exports" "$work/film"
code=0
"$weft" export "$work/run" --format usd --out "$work/film" 2>"$work/refusal" || code=$?
if [ "$code" != 5 ] || ! grep -q -e --overwrite "$work/refusal"; then
    echo "$0: exit code $code, where a file that is there has to be refused" >&2
    exit 1
fi
# Exported files can be simulated again.
for format in obj ply glb usd; do
    file=sheet.000005.$format
    [ $format != glb ] || file=garment.glb
    # The only one that says which mesh is meant.
    [ $format != usd ] || file='garment.usda"\nprim = "sheet'
    printf '[[cloth]]\nmesh = "%b"\nmaterial = { density = 0.15, stretch = 1000, bending = 1e-5 }\ncontact.certify = false\n' \
        "film/$file" >"$work/again.toml"
    sed -i 's/^contact.certify.*//; 1i contact = { certify = false, self_collision = false }' "$work/again.toml"
    "$weft" check "$work/again.toml" >/dev/null 2>&1
done

# Files of Pixar's library are read in every form, in their own units and axes.
"$folder/python/bin/python" tests/formats/make_usd.py "$work" >"$work/places"
for form in usda usdc usdz; do
    printf 'contact = { certify = false, self_collision = false }\n[[cloth]]\nmesh = "garment.%s"\nprim = "Dress"\nmaterial.fabric = "denim"\n' $form >"$work/usd.toml"
    "$weft" check "$work/usd.toml" --json >"$work/usd.json" 2>/dev/null
    "$folder/python/bin/python" - "$work/usd.json" "$work/places" <<'PYTHON'
import json
import sys

cloth = json.load(open(sys.argv[1]))["objects"][0]
places = [json.loads(line.rstrip(",\n")) for line in open(sys.argv[2])][:9]
extent = [0.01 * (max(axis) - min(axis)) for axis in zip(*places)]
known = [extent[0], extent[2], extent[1]]
assert cloth["vertices"] == 9 and cloth["quads_cut"] == 2 and cloth["polygons_cut"] == 1, cloth
assert all(abs(a - b) < 1e-9 for a, b in zip(cloth["extent_m"], known)), (cloth, known)
PYTHON
done

if [ "${1:-}" = --blender ]; then
    environment "$folder/blender" 'import bpy' "bpy==$bpy"
    "$weft" export "$work/run" --format usd,pc2,mdd,obj --units cm --up y --out "$work/maya" >/dev/null 2>&1
    "$folder/blender/bin/python" tests/formats/blender.py "$work/run" "$work/film" "$work/maya" "$work/sheet.obj"
fi
