"""Reads a run in every format with the programs that others read it with, and holds it against the
frames.

    read.py RUN EXPORTS SHEET

EXPORTS was written in m with z upwards. SHEET is the OBJ that the cloth `sheet` came from.
"""

import sys
from pathlib import Path

import numpy as np
import pyvista
import trimesh
from pxr import Usd, UsdGeom

run, exports, sheet_file = map(Path, sys.argv[1:])
checks = 0


def expect(what, holds):
    global checks
    checks += 1
    if not holds:
        sys.exit(f"{exports}: {what}")


def near(a, b, tolerance):
    return np.shape(a) == np.shape(b) and np.max(np.abs(np.asarray(a) - np.asarray(b))) <= tolerance


# The frames are the truth. All their arrays are there.
paths = sorted((run / "frames").glob("cloth.*.vtp"))
frames = [pyvista.read(path) for path in paths]
times = [float(frame.field_data["TimeValue"][0]) for frame in frames]
expect("7 frames", len(frames) == 7 and times[-1] == 0.22)
vertices = {"sheet": 81, "other": 81}
spans = {"sheet": slice(0, 81), "other": slice(81, 162)}
truth = {name: np.array([frame.points[span] for frame in frames]) for name, span in spans.items()}
speeds = {name: np.array([f.point_data["velocity"][span] for f in frames]) for name, span in spans.items()}
expect("frames of 64 bits", frames[0].points.dtype == np.float64)
for frame in frames:
    normals = frame.compute_normals(cell_normals=False, split_vertices=False, auto_orient_normals=False,
                                    consistent_normals=False).point_data["Normals"]
    own = frame.point_data["normal"]
    expect("normals are unit vectors", near(np.linalg.norm(own, axis=1), np.ones(162), 1e-12))
    expect("normals are as VTK's, but for weights", np.min(np.sum(own * normals, axis=1)) > 0.98)
    cloth = frame.cell_data["cloth"]
    triangles = frame.faces.reshape(-1, 4)[:, 1:]
    expect("each triangle has its cloth", np.array_equal(cloth, (triangles[:, 0] >= 81).astype(cloth.dtype)))
    strain = frame.cell_data["strain"]
    expect("strain of each triangle", len(strain) == len(cloth) and np.max(np.abs(strain)) < 0.05)
    for name in ("contact", "squeezed", "cut"):
        expect(name, frame.point_data[name].shape == (162,))
    expect("contact_force", frame.point_data["contact_force"].shape == (162, 3))
expect("the sheet is strained by its pins", np.max(frames[-1].cell_data["strain"]) > 1e-5)

# The artist's own mesh.
lines = [line.split() for line in sheet_file.read_text().splitlines() if line]
rest = np.array([[float(x) for x in line[1:]] for line in lines if line[0] == "v"])
quads = [[int(corner.split("/")[0]) - 1 for corner in line[1:]] for line in lines if line[0] == "f"]
uv = np.array([[float(x) for x in line[1:]] for line in lines if line[0] == "vt"])
uv_corners = [int(corner.split("/")[1]) - 1 for line in lines if line[0] == "f" for corner in line[1:]]
placed = np.stack([rest[:, 0], -rest[:, 2], rest[:, 1]], axis=1) * 0.01
expect("cm with y upwards become m with z upwards, in the file's order", near(truth["sheet"][0], placed, 1e-15))

# USD, by its own library.
stage = Usd.Stage.Open(str(exports / "garment.usda"))
expect("units", UsdGeom.GetStageMetersPerUnit(stage) == 1.0)
expect("up", UsdGeom.GetStageUpAxis(stage) == UsdGeom.Tokens.z)
expect("rate", stage.GetTimeCodesPerSecond() == 25 and stage.GetFramesPerSecond() == 25)
expect("span", stage.GetStartTimeCode() == 0 and abs(stage.GetEndTimeCode() - 5.5) < 1e-9)
expect("default prim", stage.GetDefaultPrim().GetName() == "weft")
names = [prim.GetName() for prim in stage.Traverse() if prim.IsA(UsdGeom.Mesh)]
expect("a mesh for each cloth and body", names == ["sheet", "other", "ball", "floor"])
for name in names:
    mesh = UsdGeom.Mesh(stage.GetPrimAtPath(f"/weft/{name}"))
    expect("no subdivision", mesh.GetSubdivisionSchemeAttr().Get() == "none")
    counts, corners = mesh.GetFaceVertexCountsAttr().Get(), mesh.GetFaceVertexIndicesAttr().Get()
    size = len(mesh.GetPointsAttr().Get(Usd.TimeCode.EarliestTime()))
    expect("valid topology", all(UsdGeom.Mesh.ValidateTopology(corners, counts, size)[:1]))
    samples = mesh.GetPointsAttr().GetTimeSamples()
    if name == "floor":
        expect("the floor is at rest", len(samples) == 0 and size > 0)
        continue
    expect("a sample for each frame", near(samples, np.array(times) * 25, 1e-9))
    for index, code in enumerate(samples):
        points = np.array(mesh.GetPointsAttr().Get(code))
        low, high = np.array(mesh.GetExtentAttr().Get(code))
        expect("extent", near(low, points.min(0), 1e-6) and near(high, points.max(0), 1e-6))
        if name == "ball":
            own = pyvista.read(run / "frames" / f"moving-0-ball.{8 * index if index < 6 else 44:06}.vtp").points
            expect("the ball where it is", near(points, own.astype(np.float32), 0))
            continue
        expect("points to the last bit of 32", np.array_equal(points, truth[name][index].astype(np.float32)))
        velocities = np.array(mesh.GetVelocitiesAttr().Get(code))
        expect("velocities", np.array_equal(velocities, speeds[name][index].astype(np.float32)))
    if name == "sheet":
        expect("quads stay quads", list(counts) == [4] * 64 and np.array_equal(np.reshape(corners, (-1, 4)), quads))
        st = UsdGeom.PrimvarsAPI(mesh).GetPrimvar("st")
        expect("texture at corners", st.GetInterpolation() == "faceVarying")
        expect("texture as in the file", near(st.ComputeFlattened(), uv[uv_corners], 1e-7))

# Point caches, by their layouts.
for name in vertices:
    bytes = (exports / f"{name}.pc2").read_bytes()
    expect("pc2", bytes[:12] == b"POINTCACHE2\0")
    version, points, samples = np.frombuffer(bytes, "<i4", 5, 12)[[0, 1, 4]]
    start, rate = np.frombuffer(bytes, "<f4", 2, 20)
    expect("head of pc2", (version, points, start, rate, samples) == (1, 81, 0, 1, 6))
    cache = np.frombuffer(bytes, "<f4", -1, 32).reshape(6, 81, 3)
    expect("points of pc2", np.array_equal(cache, truth[name][:6].astype(np.float32)))
    bytes = (exports / f"{name}.mdd").read_bytes()
    expect("head of mdd", list(np.frombuffer(bytes, ">i4", 2)) == [7, 81])
    expect("times of mdd", near(np.frombuffer(bytes, ">f4", 7, 8), np.array(times, np.float32), 0))
    cache = np.frombuffer(bytes, ">f4", -1, 36).reshape(7, 81, 3)
    expect("points of mdd", np.array_equal(cache, truth[name].astype(np.float32)))
    mesh = trimesh.load(exports / f"{name}.obj", process=False, maintain_order=True)
    expect("the mesh of the cache", len(mesh.vertices) >= 81 and len(mesh.faces) == 128)

# OBJ and PLY, by trimesh and VTK.
for index in range(7):
    for name in vertices:
        lines = [line.split() for line in (exports / f"{name}.{index:06}.obj").read_text().splitlines()]
        points = np.array([[float(x) for x in line[1:]] for line in lines if line[0] == "v"])
        expect("OBJ to the last bit", np.array_equal(points, truth[name][index]))
        mesh = pyvista.read(exports / f"{name}.{index:06}.obj")
        expect("VTK reads the OBJ", mesh.n_cells == (64 if name == "sheet" else 128))
        mesh = trimesh.load(exports / f"{name}.{index:06}.ply", process=False)
        expect("PLY to the last bit", np.array_equal(mesh.vertices, truth[name][index]))
        expect("VTK reads the PLY", near(pyvista.read(exports / f"{name}.{index:06}.ply").points,
                                         truth[name][index], 1e-6))

# glTF: m, y upwards, the last frame.
scene = trimesh.load(exports / "garment.glb", process=False)
expect("a mesh for each", set(scene.geometry) == {"sheet", "other", "ball", "floor"})
for name in vertices:
    mesh = scene.geometry[name]
    points = truth[name][-1].astype(np.float32)
    turned = np.stack([points[:, 0], points[:, 2], -points[:, 1]], axis=1)
    expected = {tuple(point) for point in turned}
    expect("glTF has the points", {tuple(p) for p in np.asarray(mesh.vertices, np.float32)} == expected)
    expect("glTF has the triangles", len(mesh.faces) == 128)
    expect("a vertex for each texture coordinate", len(mesh.vertices) == (82 if name == "sheet" else 81))
    if name == "sheet":
        pairs = {(tuple(turned[v]), tuple(np.float32(uv[t]))) for v, t in zip(np.ravel(quads), uv_corners)}
        read = zip(np.asarray(mesh.vertices, np.float32), np.float32(mesh.visual.uv))
        read = {(tuple(p), tuple(np.round(np.float64(t), 6))) for p, t in read}
        pairs = {(p, tuple(np.round(np.float64(t), 6))) for p, t in pairs}
        expect("glTF has the texture", read == pairs)

print(f"usd-core, pyvista and trimesh read what was written: {checks} checks")
