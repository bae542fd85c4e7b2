#!/usr/bin/env python3
"""Conjugate gradients of PETSc on a system that `cargo bench --bench petsc` wrote.

    mpirun -n P python3 petsc_cg.py DIRECTORY ITERATIONS

Prints a line `format milliseconds-per-iteration residual` for each matrix format: the best of
several solves of that number of iterations, preconditioned with 3x3 blocks on the diagonal where
the format has that (SBAIJ: the diagonal), stopped by nothing else. The natural norm is taken, which
needs the fewest sums. The residual is the Euclidean one over that of zero.

Debian: apt-get install python3-petsc4py python3-petsc4py-real python3-numpy python3-scipy
"""
import sys
import time

from petsc_system import PETSc, System

directory, iterations = sys.argv[1], int(sys.argv[2])
system = System(directory)
comm, b = system.comm, system.b
for kind in ("aij", "baij", "sbaij"):
    a = system.matrix(kind)
    ksp = PETSc.KSP().create(comm)
    ksp.setOperators(a)
    ksp.setType("cg")
    ksp.setNormType(PETSc.KSP.NormType.NATURAL)
    ksp.getPC().setType("jacobi" if kind == "sbaij" else "pbjacobi")
    ksp.setTolerances(rtol=1e-300, atol=0.0, max_it=iterations)
    ksp.setUp()
    x = a.createVecRight()
    best = float("inf")
    for _ in range(10):
        x.set(0.0)
        comm.barrier()
        start = time.perf_counter()
        ksp.solve(b, x)
        comm.barrier()
        best = min(best, time.perf_counter() - start)
    assert ksp.getIterationNumber() == iterations, ksp.getConvergedReason()
    residual = (b - a * x).norm() / b.norm()
    if comm.rank == 0:
        print(kind, 1e3 * best / iterations, residual)
