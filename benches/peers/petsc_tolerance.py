#!/usr/bin/env python3
"""Preconditioned conjugate gradients of PETSc to a tolerance, on a system that `cargo bench --bench
tolerance` wrote.

    mpirun -n 1 python3 petsc_tolerance.py DIRECTORY RESIDUAL [NAME...]

Prints a line `format/preconditioner setup-milliseconds solve-milliseconds iterations` for each way
to solve it (or those named), the best of a few, and leaves the solution in
`format-preconditioner.bin`. Ways that fail say `FAILED` and why.

How many iterations the Euclidean residual takes to fall to RESIDUAL is found first. Then a solve of
just as many is timed, without norms. The coarse levels of GAMG and hypre get the three
translations, or (`-rigid`) the rigid motions. A way that takes three times as long as the fastest
before it is given up. `TOLERANCE_SECONDS` bounds how long one is repeated.
"""
import os
import sys
import time

import numpy as np
from petsc_system import PETSc, System

SOR = {"pc_sor_symmetric": None}
SHIFT = {"sub_pc_factor_shift_type": "positive_definite"}
ILU = {"sub_pc_type": "ilu"}
# The first ones were the fastest where this was written: others are not waited for long.
WAYS = {
    "baij/ilu1": ("bjacobi", {**ILU, "sub_pc_factor_levels": 1}),
    "baij/ilu2": ("bjacobi", {**ILU, "sub_pc_factor_levels": 2}),
    "baij/ilu3": ("bjacobi", {**ILU, "sub_pc_factor_levels": 3}),
    "baij/ilu4": ("bjacobi", {**ILU, "sub_pc_factor_levels": 4}),
    "baij/ilu0": ("bjacobi", ILU),
    "aij/hypre": ("hypre", {}),
    "aij/hypre-rigid": ("hypre", {}),
    "aij/gamg": ("gamg", {}),
    "aij/gamg-rigid": ("gamg", {}),
    "baij/sor": ("sor", SOR),
    "aij/sor": ("sor", SOR),
    "baij/pbjacobi": ("pbjacobi", {}),
    "aij/pbjacobi": ("pbjacobi", {}),
    "sbaij/jacobi": ("jacobi", {}),
    "baij/jacobi": ("jacobi", {}),
    "aij/jacobi": ("jacobi", {}),
    "aij/icc0": ("bjacobi", {"sub_pc_type": "icc", **SHIFT}),
    "aij/icc1": ("bjacobi", {"sub_pc_type": "icc", "sub_pc_factor_levels": 1, **SHIFT}),
    "aij/ilu0": ("bjacobi", ILU),
}
MOST = 20_000
directory, goal = sys.argv[1], float(sys.argv[2])
patience = float(os.environ.get("TOLERANCE_SECONDS", "3"))
system = System(directory)
b = system.b
options = PETSc.Options()


def translations(a):
    vectors = []
    for axis in range(3):
        v = a.createVecRight()
        v.set(0.0)
        v.array[axis::3] = 1.0
        v.normalize()
        vectors.append(v)
    return PETSc.NullSpace().create(vectors=vectors, comm=system.comm)


def rigid():
    points = np.fromfile(directory + "/positions.bin", "<f8")
    points = PETSc.Vec().createWithArray(points, bsize=3, comm=system.comm)
    return PETSc.NullSpace().createRigidBody(points)


fastest = float("inf")


def solver(name, a, norm, atol, most):
    kind, more = WAYS[name]
    ksp = PETSc.KSP().create(system.comm)
    ksp.setOperators(a)
    ksp.setType("cg")
    ksp.setNormType(norm)
    ksp.getPC().setType(kind)
    ksp.setTolerances(rtol=1e-300, atol=atol, divtol=1e300, max_it=most)
    prefix = name.replace("/", "_") + "_"
    ksp.setOptionsPrefix(prefix)
    for option, value in more.items():
        options[prefix + option] = value
    ksp.setFromOptions()
    start = time.perf_counter()
    ksp.setUp()
    ksp.setUpOnBlocks()
    return ksp, time.perf_counter() - start


def solve(ksp, x):
    x.set(0.0)
    start = time.perf_counter()
    ksp.solve(b, x)
    return time.perf_counter() - start


def measure(name, a):
    none, euclidean = PETSc.KSP.NormType.NONE, PETSc.KSP.NormType.UNPRECONDITIONED
    global fastest
    x = a.createVecRight()
    started = time.perf_counter()
    ksp, _ = solver(name, a, euclidean, goal, MOST)

    def test(ksp, iterations, norm):
        if time.perf_counter() - started > max(1.0, 3.0 * fastest):
            return PETSc.KSP.ConvergedReason.DIVERGED_MAX_IT
        return PETSc.KSP.ConvergedReason.CONVERGED_ATOL if norm <= goal else None

    ksp.setConvergenceTest(test)
    solve(ksp, x)
    iterations = ksp.getIterationNumber()
    reason = ksp.getConvergedReason()
    if reason == PETSc.KSP.ConvergedReason.DIVERGED_MAX_IT:
        raise RuntimeError(f"given up after {iterations} iterations, {time.perf_counter() - started:.1f} s")
    if reason < 0:
        raise RuntimeError(f"reason {reason} after {iterations} iterations")
    ksp.destroy()
    best = [float("inf")] * 2
    while True:
        ksp, setup = solver(name, a, none, 0.0, iterations)
        now = solve(ksp, x)
        ksp.destroy()
        residual = (b - a * x).norm()
        if residual > goal:
            # The recurrence's residual is not quite the true one.
            iterations, best = iterations + 1, [float("inf")] * 2
            continue
        if setup + now < sum(best):
            best = [setup, now]
        if time.perf_counter() - started > patience:
            break
    fastest = min(fastest, sum(best))
    x.array.astype("<f8").tofile(f"{directory}/{name.replace('/', '-')}.bin")
    print(name, 1e3 * best[0], 1e3 * best[1], iterations, flush=True)


matrices = {}
for name in sys.argv[3:] or WAYS:
    kind = name.split("/")[0]
    if kind not in matrices:
        matrices[kind] = system.matrix(kind)
    a = matrices[kind]
    try:
        if "gamg" in name or "hypre" in name:
            a.setNearNullSpace(rigid() if name.endswith("rigid") else translations(a))
        measure(name, a)
    except Exception as error:
        print("FAILED", name, str(error).replace("\n", " "), flush=True)
