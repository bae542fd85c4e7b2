#!/usr/bin/env python3
"""Candidates and contacts of IPC Toolkit, on cloth that `cargo bench --bench peers_collide` wrote.

    python3 ipctk_broad.py DIRECTORY RUNS H [check]

Prints lines `WHAT PEER MILLISECONDS COUNT` on one thread, of each the shortest of several runs:

    candidates  vertex-face and edge-edge pairs whose boxes meet during the step
    queries     continuous collision detection of the pairs that `crumpled.pairs` lists, of which
                none meets: additive and tight inclusion
    queries-jitter  that of `jittered.pairs`: the earliest impact, behind which no pair is looked at
    contacts    those whose boxes, at the start, are within H m, and the exact distances of these

With `check` it leaves `candidates.bin` instead: the former pairs of boxes a millionth of H larger,
as kind (0: vertex and face, 1: edges), first and second number, 4 bytes each. It then prints a line
`close ipctk 0 COUNT` of pairs no farther apart than H at the start.

    python3 -m venv VENV && VENV/bin/pip install numpy ipctk; IPCTK_PYTHON=VENV/bin/python
"""
import sys
import time

import ipctk
import numpy as np

directory, runs, h = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])


def read(name, kind, columns):
    return np.fromfile(f"{directory}/{name}", kind).reshape(-1, columns)


x = np.asfortranarray(read("crumpled.x", "<f8", 3))
end = np.asfortranarray(read("crumpled.end", "<f8", 3))
faces = np.asfortranarray(read("crumpled.triangles", "<u4", 3).astype("i4"))
edges = np.asfortranarray(read("crumpled.edges", "<u4", 2).astype("i4"))
ipctk.set_num_threads(1)
mesh = ipctk.CollisionMesh(x, edges, faces)


def candidates(radius, *positions):
    found = ipctk.Candidates()
    found.build(mesh, *positions, inflation_radius=radius, broad_phase=ipctk.LBVH())
    return found


def queries(name):
    listed = read(name, "<u4", 3)
    found = ipctk.Candidates()
    found.fv_candidates = [ipctk.FaceVertexCandidate(int(b), int(a)) for kind, a, b in listed if kind == 0]
    found.ee_candidates = [ipctk.EdgeEdgeCandidate(int(a), int(b)) for kind, a, b in listed if kind == 1]
    assert len(found) == len(listed)
    return found


def contacts():
    found = ipctk.NormalCollisions()
    found.build(candidates(h / 2, x), mesh, x, h)
    return found


def report(what, run, whose="ipctk"):
    best, all_of_them, count = float("inf"), 0.0, 0
    while count < runs or all_of_them < 0.25:
        start = time.perf_counter()
        found = run()
        took = time.perf_counter() - start
        best, all_of_them, count = min(best, took), all_of_them + took, count + 1
    print(what, whose, 1e3 * best, len(found), flush=True)


if sys.argv[4:] == ["check"]:
    found = candidates(1e-6 * h, x, end)
    pairs = [(0, c.vertex_id, c.face_id) for c in found.fv_candidates]
    pairs += [(1, c.edge0_id, c.edge1_id) for c in found.ee_candidates]
    np.array(pairs, "<u4").tofile(f"{directory}/candidates.bin")
    found = candidates(h / 2, x)
    close = 0
    for kind in (found.fv_candidates, found.ee_candidates):
        for pair in kind:
            close += pair.compute_distance(pair.dof(x, edges, faces)) <= h * h
    print("close ipctk 0", close)
else:
    report("candidates", lambda: candidates(0.0, x, end))
    report("contacts", contacts)
    for what, name, to in [
        ("queries", "crumpled.pairs", end),
        ("queries-jitter", "jittered.pairs", np.asfortranarray(read("jittered.end", "<f8", 3))),
    ]:
        pairs = queries(name)
        for whose, narrow in [("additive", ipctk.AdditiveCCD()), ("tight", ipctk.TightInclusionCCD())]:
            report(what, lambda: (pairs.compute_collision_free_stepsize(mesh, x, to, 0.0, narrow), pairs)[1], whose)
