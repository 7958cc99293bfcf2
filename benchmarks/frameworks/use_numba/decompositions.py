"""Linear algebra: NumPy's functions, by SciPy's LAPACK; small matrices by formula."""

import numpy as np
from numba import njit, prange

from .table import parallel, row


@row
def solve(f):
    return njit(lambda a, b: np.linalg.solve(a, b))


@row
def inverses(f):
    """Cofactors over the determinant."""

    @parallel
    def run(a):
        out = np.empty_like(a)
        for n in prange(a.shape[0]):
            m, o = a[n], out[n]
            for i in range(3):
                for j in range(3):
                    p, q, r, s = (j + 1) % 3, (j + 2) % 3, (i + 1) % 3, (i + 2) % 3
                    o[i, j] = m[p, r] * m[q, s] - m[p, s] * m[q, r]
            scale = 1 / (m[0, 0] * o[0, 0] + m[0, 1] * o[1, 0] + m[0, 2] * o[2, 0])
            for i in range(3):
                for j in range(3):
                    o[i, j] *= scale
        return out

    return run


@row
def cholesky(f):
    return njit(lambda a: np.linalg.cholesky(a))


@row
def eigenvalues(f):
    return njit(lambda a: np.linalg.eigvalsh(a))


@row
def singular_values(f):
    return njit(lambda a: np.linalg.svd(a)[1])
