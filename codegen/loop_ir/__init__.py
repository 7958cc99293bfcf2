"""The loop IR: indices, arrays, stages, kernels and the steps of programs, scalar code.

footprints   Footprints: which elements of which arrays a step touches, row by row
index        Index algebra: integer expressions over loop variables, kept in a normal form
kernel       The loop IR: kernels as loop nests over index spaces
scalar_code  Scalar code: statements over single numbers, with loops and branches around them
steps        The steps of a program: kernels and what stands beside them
"""
