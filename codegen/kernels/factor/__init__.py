"""Factorisations, triangular systems and inverses of matrices, on CPUs.

cpu_blocks     Products of blocks of one matrix with strides and sizes that are arguments
cpu_factors    Factorisations of matrices in place
cpu_leaves     What functions of matrices are emitted with: rows of a few columns as vectors
cpu_units      The units of a `Factorisation`: matrices of a batch, one after the other
lower_factors  Lowering of systems of equations, inverses, and factors of real matrices
"""
