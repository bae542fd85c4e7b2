#!/usr/bin/env python3
"""Conjugate gradients of PETSc on a system that `cargo bench --bench petsc` wrote.

    mpirun -n P python3 petsc_cg.py DIRECTORY ITERATIONS

Prints a line `format milliseconds-per-iteration residual` for each matrix format: the best of several solves of so many
iterations each, preconditioned with 3x3 blocks on the diagonal where the format has that (SBAIJ: the diagonal), stopped by
nothing else. The natural norm is taken, which needs the fewest sums. The residual is the Euclidean one over that of zero.

Debian: apt-get install python3-petsc4py python3-petsc4py-real python3-numpy python3-scipy
"""
import sys
import time

import petsc4py

petsc4py.init(sys.argv[:1])
import numpy as np
import scipy.sparse as sparse
from petsc4py import PETSc

directory, iterations = sys.argv[1], int(sys.argv[2])
comm = PETSc.COMM_WORLD
starts = np.fromfile(directory + "/starts.bin", "<i4")
columns = np.fromfile(directory + "/columns.bin", "<i4")
values = np.fromfile(directory + "/values.bin", "<f8")
rhs = np.fromfile(directory + "/rhs.bin", "<f8")
whole = sparse.csr_matrix((values, columns, starts))
vertices = whole.shape[0] // 3
first, last = (3 * (vertices * rank // comm.size) for rank in (comm.rank, comm.rank + 1))
local = whole[first:last]
size = ((last - first, 3 * vertices), (last - first, 3 * vertices))


def matrix(kind):
    if kind == "aij":
        made = PETSc.Mat().createAIJ(size, bsize=3, csr=(local.indptr, local.indices, local.data), comm=comm)
    else:
        blocks = sparse.bsr_matrix(local, blocksize=(3, 3))
        blocks.sort_indices()
        rows = np.repeat(np.arange(len(blocks.indptr) - 1), np.diff(blocks.indptr))
        indptr, indices, data = blocks.indptr, blocks.indices, blocks.data
        if kind == "sbaij":
            upper = indices >= rows + first // 3
            indptr = np.concatenate([[0], np.cumsum(np.bincount(rows[upper], minlength=len(indptr) - 1))])
            indices, data = indices[upper], data[upper]
        create = PETSc.Mat().createBAIJ if kind == "baij" else PETSc.Mat().createSBAIJ
        made = create(size, 3, csr=(indptr.astype("i4"), indices.astype("i4"), data), comm=comm)
    made.assemble()
    return made


b = PETSc.Vec().createWithArray(rhs[first:last], bsize=3, comm=comm)
for kind in ("aij", "baij", "sbaij"):
    a = matrix(kind)
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
