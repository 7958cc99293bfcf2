"""Scatters and updates, on CPUs and GPUs.

cuda_atomics   Atomic updates of one element: whatever the order of those that meet
cuda_places    What the lowerings of scatters share: places as numbers
cuda_scatter   Lowering of scatters for a GPU: straight where the order of updates does not show
cuda_sorted    Scatters of floats in an order that is always the same
cuda_updates   Kernels that scatter: every point by a thread of its own
lower_updates  Lowering of ops that write part of an array, or write it in pieces: concat
"""
