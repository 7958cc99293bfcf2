"""Products of matrices, decompositions, norms, Fourier transforms, polynomials.

contraction        Products that sum over axes: matmul, dot, inner, tensordot, kron, cross
contraction_order  In which order the operands of an einsum are multiplied, two at a time
einsum             einsum: any of NumPy's expressions, as diagonals, sums
factored           What SciPy, JAX and TensorFlow users call linear algebra
fourier            numpy.fft: transforms of one axis are one op
linalg             numpy.linalg: systems of equations and decompositions
matrix_functions   What SciPy calls linear algebra and NumPy does not have: triangular systems
norms              numpy.linalg.norm and its kin: the norms that need no decomposition
polynomials        NumPy's functions of polynomials, given by their coefficients
products           Products of matrices and vectors, batched: matmul, matvec, vecmat, vecdot
"""

from . import contraction, einsum, factored, fourier, linalg, matrix_functions, norms, polynomials  # noqa: F401  (each enters its functions)
