"""Makes a small garment in every form of USD, with Pixar's own library.

Usage: make_usd.py FOLDER. Faces of three, four and five corners, transforms of parents, a texture
with a seam, a subset, a mirrored mesh that is animated, units of cm, y upwards. It prints where the
points are in the file's units, as the library computes them.
"""

import sys
from pathlib import Path

from pxr import Gf, Sdf, Usd, UsdGeom, UsdUtils, Vt

folder = Path(sys.argv[1])
POINTS = [(0, 0, 0), (1, 0, 0), (2, 0, 0), (0, 1, 0), (1, 1, 0.25), (2, 1, 0), (3, 0.5, 0), (3, 2, 0), (1, 2, 0)]
COUNTS = [4, 4, 3, 5]
CORNERS = [0, 1, 4, 3, 1, 2, 5, 4, 2, 6, 5, 4, 5, 6, 7, 8]


def fill(stage):
    UsdGeom.SetStageMetersPerUnit(stage, 0.01)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    root = UsdGeom.Xform.Define(stage, "/root")
    root.AddTranslateOp().Set(Gf.Vec3d(1, 2, 3))
    root.AddTranslateOp(opSuffix="pivot").Set(Gf.Vec3d(0.5, 0, 0))
    root.AddRotateXYZOp().Set(Gf.Vec3f(90, 0, 45))
    root.AddScaleOp().Set(Gf.Vec3f(2, 2, 2))
    root.AddTranslateOp(opSuffix="pivot", isInverseOp=True)
    stage.SetDefaultPrim(root.GetPrim())

    dress = UsdGeom.Mesh.Define(stage, "/root/Dress")
    turned = Gf.Matrix4d().SetRotate(Gf.Rotation(Gf.Vec3d(0, 0, 1), 30))
    dress.AddTransformOp().Set(turned * Gf.Matrix4d().SetTranslate(Gf.Vec3d(0.5, 0, 0)))
    dress.CreatePointsAttr(POINTS)
    dress.CreateFaceVertexCountsAttr(COUNTS)
    dress.CreateFaceVertexIndicesAttr(CORNERS)
    dress.CreateSubdivisionSchemeAttr("none")
    texture = UsdGeom.PrimvarsAPI(dress).CreatePrimvar(
        "st", Sdf.ValueTypeNames.TexCoord2fArray, UsdGeom.Tokens.faceVarying
    )
    # One coordinate more than points: a seam at point 4.
    texture.Set([(x / 4, y / 4) for x, y, _ in POINTS] + [(0.875, 0.875)])
    texture.SetIndices(Vt.IntArray(CORNERS[:11] + [9] + CORNERS[12:]))
    hem = UsdGeom.Subset.Define(stage, "/root/Dress/hem")
    hem.CreateElementTypeAttr("face")
    hem.CreateIndicesAttr([1, 2])

    button = UsdGeom.Mesh.Define(stage, "/root/Button")
    button.AddTranslateOp().Set(Gf.Vec3d(0, 0, 5))
    button.AddOrientOp().Set(Gf.Quatf(0.5, 0.5, 0.5, 0.5))
    button.AddScaleOp().Set(Gf.Vec3f(-1, 1, 1))
    points = button.CreatePointsAttr()
    points.Set([(0, 0, 1), (1, 0, 1), (0, 1, 1)], 5.0)
    points.Set([(0, 0, 0), (1, 0, 0), (0, 1, 0)], 1.0)
    button.CreateFaceVertexCountsAttr([3])
    button.CreateFaceVertexIndicesAttr([0, 1, 2])
    button.CreateOrientationAttr("leftHanded")


for form in ("usda", "usdc"):
    stage = Usd.Stage.CreateNew(str(folder / f"garment.{form}"))
    fill(stage)
    stage.GetRootLayer().Save()
assert UsdUtils.CreateNewUsdzPackage(Sdf.AssetPath(str(folder / "garment.usdc")), str(folder / "garment.usdz"))

places = UsdGeom.XformCache(Usd.TimeCode.EarliestTime())
for path in ("/root/Dress", "/root/Button"):
    mesh = UsdGeom.Mesh.Get(stage, path)
    place = places.GetLocalToWorldTransform(mesh.GetPrim())
    for point in mesh.GetPointsAttr().Get(Usd.TimeCode.EarliestTime()):
        print("[" + ", ".join(f"{x:.9f}" for x in place.Transform(Gf.Vec3d(point))) + "],")
