"""Ops that compiled loops of libraries compute, and the algebra of matrices for their derivatives.

Decompositions and Fourier transforms are done by the loops of NumPy's own generalised ufuncs, which
native code calls by address on all items of a batch, so that results have NumPy's bits; elementwise
ufuncs of SciPy that have no formula here, in the same way. A record says which loop, and a
derivative of matrices, whose transpose serves for reverse mode. What is a composition but for its
derivative (QR, the pseudoinverse) is an op until `inline_calls`. Matrices of up to 4 x 4 go element
by element (`ir.passes.small_matrices`).
"""
