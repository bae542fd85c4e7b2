#!/usr/bin/env python3
"""The sheet, ball and floor of `scenes/drape-floor.toml`, simulated by MuJoCo on one core.

    python3 mujoco_drape.py [VERTICES_A_SIDE [SECONDS [OUT.obj]]]

Prints the processor time for a simulated second, without set-up, and the most memory. The mesh at
the end goes to OUT.obj; `weft check` of a scene with it counts the edges and triangles that cross.
The membrane has the stiffness of the scene in tension, 1000 N/m, as a modulus times a thickness.

Needs: pip install mujoco numpy (MuJoCo 4.0 or later, for the flag `ipc`).
"""
import resource
import sys
import time
import xml.etree.ElementTree as xml

import mujoco

STEP, SIDE, RADIUS, THICKNESS, FRICTION = 0.002, 1.0, 0.2, 0.002, 0.5
MODULUS, MATERIAL = 2.9e6, 3.5e-4  # Pa and m: together 1000 N/m


def model(side):
    """The model of a sheet with this many vertices a side."""
    root = xml.Element("mujoco")
    option = xml.SubElement(root, "option", timestep=str(STEP), solver="CG", iterations="50",
                            tolerance="1e-6", jacobian="sparse", integrator="discrete")
    xml.SubElement(option, "flag", ipc="enable")
    xml.SubElement(root, "size", memory="8G")
    world = xml.SubElement(root, "worldbody")
    xml.SubElement(world, "geom", type="plane", size="3 3 0.1", friction=str(FRICTION))
    xml.SubElement(world, "geom", type="sphere", size=str(RADIUS), pos=f"0 0 {RADIUS}",
                   friction=str(FRICTION))
    cell = SIDE / (side - 1)
    sheet = xml.SubElement(world, "flexcomp", name="sheet", type="grid", dim="2",
                           count=f"{side} {side} 1", spacing=f"{cell} {cell} {cell}",
                           pos="0.1 0.05 0.42", radius=str(THICKNESS / 2),
                           mass=str(0.15 * SIDE * SIDE))
    xml.SubElement(sheet, "contact", selfcollide="auto", solref="0.004 1",
                   friction=str(FRICTION))
    xml.SubElement(sheet, "elasticity", young=str(MODULUS), poisson="0.3",
                   thickness=str(MATERIAL), elastic2d="both")
    return mujoco.MjModel.from_xml_string(xml.tostring(root, encoding="unicode"))


def main():
    """Simulates and prints."""
    side = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
    sheet = model(side)
    data = mujoco.MjData(sheet)
    mujoco.mj_forward(sheet, data)
    steps = max(1, round(seconds / STEP))
    start = time.process_time()
    for _ in range(steps):
        mujoco.mj_step(sheet, data)
    spent = time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"mujoco {mujoco.__version__}: {side}x{side} vertices, {steps} steps of {STEP} s: "
          f"{spent / (steps * STEP):.1f} s of processor time a simulated second, "
          f"{memory / 1024:.0f} MB")
    if len(sys.argv) > 3:
        with open(sys.argv[3], "w", encoding="ascii") as out:
            for point in data.flexvert_xpos:
                out.write("v {} {} {}\n".format(*point))
            for corners in sheet.flex_elem.reshape(-1, 3) + 1:
                out.write("f {} {} {}\n".format(*corners))


if __name__ == "__main__":
    main()
