"""Tapes: memory that grows while a loop runs, on CPUs and GPUs.

cpu_tapes   Tapes: growable stacks in native memory
cuda_tapes  Tapes that the device keeps by itself: kernels that put records on a heap
"""
