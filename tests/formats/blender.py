"""Has Blender import what was exported, and holds every vertex of every frame against the run's
frames.

    blender.py RUN FILM MAYA SHEET

FILM was exported in m with z upwards, MAYA in cm with y upwards. SHEET is the OBJ that the cloth
`sheet` came from, which is in cm with y upwards: what an artist has in Blender before anything was
simulated.
"""

import re
import struct
import sys
from pathlib import Path

import bpy
import numpy as np

run, film, maya, sheet_file = map(Path, sys.argv[1:])
checks = 0


def expect(what, holds):
    global checks
    checks += 1
    if not holds:
        sys.exit(f"Blender: {what}")


def array(path, section, name):
    """An array of 64-bit vectors of a frame, without VTK, which this Python lacks."""
    data = path.read_bytes()
    at = data.index(b"<AppendedData encoding=\"raw\">\n_") + 31
    xml = data[:at].decode()
    inside = xml[xml.index(f"<{section}>"):]
    offset = int(re.search(rf'Name="{name}"[^>]*offset="(\d+)"', inside).group(1))
    (length,) = struct.unpack_from("<Q", data, at + offset)
    return np.frombuffer(data, "<f8", length // 8, at + offset + 8).reshape(-1, 3)


frames = sorted((run / "frames").glob("cloth.*.vtp"))
truth = [array(path, "Points", "Points") for path in frames]
spans = {"sheet": slice(0, 81), "other": slice(81, 162)}


def clear():
    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.context.scene.render.fps = 25


def vertices(thing, frame):
    """The vertices of an object in the world, as Blender would render them."""
    whole = int(frame)
    bpy.context.scene.frame_set(whole, subframe=frame - whole)
    thing = thing.evaluated_get(bpy.context.evaluated_depsgraph_get())
    mesh = thing.to_mesh()
    points = np.empty(3 * len(mesh.vertices), np.float32)
    mesh.vertices.foreach_get("co", points)
    points = points.reshape(-1, 3).astype(np.float64)
    thing.to_mesh_clear()
    matrix = np.array(thing.matrix_world)
    return points @ matrix[:3, :3].T + matrix[:3, 3]


def same(thing, known, frame, scale, what):
    found = vertices(thing, frame)
    expect(f"{what}: number of vertices in frame {frame}", found.shape == known.shape)
    off = np.max(np.abs(found - scale * known))
    expect(f"{what}: frame {frame} is off by {off}", off < 3e-7 * scale)


# USD: meshes that are animated, with their texture.
clear()
bpy.ops.wm.usd_import(filepath=str(film / "garment.usda"))
for name, span in spans.items():
    thing = bpy.data.objects[name]
    for index in [*range(6), 5.5]:
        same(thing, truth[-1 if index == 5.5 else index][span], index, 1.0, f"USD, {name}")
sheet = bpy.data.objects["sheet"].data
expect("USD: quads stay quads", len(sheet.polygons) == 64)
expect("USD: the texture is there", [layer.name for layer in sheet.uv_layers] == ["st"])
lines = [line.split() for line in sheet_file.read_text().splitlines()]
coordinates = [[float(x) for x in line[1:]] for line in lines if line[0] == "vt"]
corners = [int(corner.split("/")[1]) - 1 for line in lines if line[0] == "f" for corner in line[1:]]
texture = np.array([corner.uv[:] for corner in sheet.uv_layers[0].data])
expect("USD: the texture is the file's", np.max(np.abs(texture - np.array(coordinates)[corners])) < 1e-6)


# Point caches on the mesh that lies beside them, in the axes of scenes.
def cached(thing, path, kind):
    thing.modifiers.clear()
    modifier = thing.modifiers.new("cache", "MESH_CACHE")
    modifier.cache_format = kind
    modifier.filepath = str(path)
    modifier.frame_start = 0


for name, span in spans.items():
    for kind in ("PC2", "MDD"):
        clear()
        bpy.ops.wm.obj_import(filepath=str(film / f"{name}.obj"), forward_axis="Y", up_axis="Z")
        thing = bpy.data.objects[name]
        cached(thing, film / f"{name}.{kind.lower()}", kind)
        for index in range(6):
            same(thing, truth[index][span], index, 1.0, f"{kind}, {name}")

# And on the artist's own mesh, as Blender imports OBJ by default, which takes y as upwards.
for kind in ("PC2", "MDD"):
    clear()
    bpy.ops.wm.obj_import(filepath=str(sheet_file))
    thing = bpy.data.objects["sheet"]
    same(thing, truth[0][spans["sheet"]], 0, 100.0, "the artist's mesh at rest")
    cached(thing, maya / f"sheet.{kind.lower()}", kind)
    for index in range(6):
        same(thing, truth[index][spans["sheet"]], index, 100.0, f"{kind} in cm with y upwards")

# OBJ of each frame in the axes that Blender takes by default.
for index in range(7):
    clear()
    bpy.ops.wm.obj_import(filepath=str(maya / f"sheet.{index:06}.obj"))
    same(bpy.data.objects["sheet"], truth[index][spans["sheet"]], index, 100.0, "OBJ in cm with y upwards")

print(f"Blender {bpy.app.version_string} shows what was simulated: {checks} checks")
