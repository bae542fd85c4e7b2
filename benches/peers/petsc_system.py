"""A system that a bench wrote, as a matrix of PETSc: of scalars (aij), of 3x3 blocks
(baij), and half of them (sbaij).
"""
import sys

import petsc4py

petsc4py.init(sys.argv[:1])
import numpy as np
import scipy.sparse as sparse
from petsc4py import PETSc


class System:
    """The rows of this rank, and the right-hand side."""

    def __init__(self, directory):
        read = lambda name, kind: np.fromfile(f"{directory}/{name}.bin", kind)
        self.comm = comm = PETSc.COMM_WORLD
        whole = sparse.csr_matrix((read("values", "<f8"), read("columns", "<i4"), read("starts", "<i4")))
        vertices = whole.shape[0] // 3
        self.first, last = (3 * (vertices * rank // comm.size) for rank in (comm.rank, comm.rank + 1))
        self.local = whole[self.first:last]
        self.size = ((last - self.first, 3 * vertices), (last - self.first, 3 * vertices))
        self.b = PETSc.Vec().createWithArray(read("rhs", "<f8")[self.first:last], bsize=3, comm=comm)

    def matrix(self, kind):
        if kind == "aij":
            rows = (self.local.indptr, self.local.indices, self.local.data)
            made = PETSc.Mat().createAIJ(self.size, bsize=3, csr=rows, comm=self.comm)
        else:
            blocks = sparse.bsr_matrix(self.local, blocksize=(3, 3))
            blocks.sort_indices()
            rows = np.repeat(np.arange(len(blocks.indptr) - 1), np.diff(blocks.indptr))
            indptr, indices, data = blocks.indptr, blocks.indices, blocks.data
            if kind == "sbaij":
                upper = indices >= rows + self.first // 3
                indptr = np.concatenate([[0], np.cumsum(np.bincount(rows[upper], minlength=len(indptr) - 1))])
                indices, data = indices[upper], data[upper]
            create = PETSc.Mat().createBAIJ if kind == "baij" else PETSc.Mat().createSBAIJ
            made = create(self.size, 3, csr=(indptr.astype("i4"), indices.astype("i4"), data), comm=self.comm)
        made.assemble()
        return made
