"""Products of matrices, decompositions, norms, Fourier transforms, polynomials."""

from . import (  # noqa: F401  (each enters its functions)
    bounded_einsum,
    contraction,
    einsum,
    factored,
    fourier,
    linalg,
    matrix_functions,
    norms,
    polynomials,
)
