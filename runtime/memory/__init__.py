"""Scratch and results: arrays, and the pool that large ones come from.

arrays        Memory of a call: scratch for intermediate results, and the output arrays
recycling     Recycled memory for big output arrays
recycling_ir  The LLVM text of the recycling allocator
"""
