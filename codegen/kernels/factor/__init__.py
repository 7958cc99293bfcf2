"""Factorisations, triangular systems and inverses of real matrices, on CPUs.

Functions that halve a matrix down to leaves of eight columns, around the micro-kernels of products,
whose panels threads share. One text serves all sizes of a dtype. The matrix is copied first, by a
stage that what computes it is part of.
"""
