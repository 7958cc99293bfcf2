"""Products of matrices, decompositions, norms, Fourier transforms, polynomials."""

from . import contraction, einsum, factored, fourier, linalg, matrix_functions, norms, polynomials  # noqa: F401  (each enters its functions)
