"""Scans on GPUs: along rows and down columns.

cuda_lowering  Lowering of scans for a GPU: rows and columns as they lie
cuda_scans     Kernels of scans: threads scan what they hold, then the totals of each other
"""
