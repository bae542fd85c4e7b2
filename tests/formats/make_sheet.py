"""Writes an OBJ as an artist has it: quads, a texture with a seam, groups, in cm and with y
upwards.
"""

import sys

SIDE = 9
with open(sys.argv[1], "w") as out:
    out.write("# A sheet\no sheet\n")
    for j in range(SIDE):
        for i in range(SIDE):
            out.write(f"v {i * 5 - 20} 0 {20 - j * 5}\n")
    for j in range(SIDE):
        for i in range(SIDE):
            out.write(f"vt {i / (SIDE - 1)} {j / (SIDE - 1)}\n")
    out.write("vt 0.25 0.125\n")
    seam = SIDE * SIDE + 1
    for j in range(SIDE - 1):
        out.write("g hem\n" if j == 0 else "g rest\n")
        for i in range(SIDE - 1):
            corners = [j * SIDE + i, j * SIDE + i + 1, (j + 1) * SIDE + i + 1, (j + 1) * SIDE + i]
            texture = [seam if (i, j) == (3, 4) and k == 0 else v + 1 for k, v in enumerate(corners)]
            out.write("f " + " ".join(f"{v + 1}/{t}" for v, t in zip(corners, texture)) + "\n")
