"""Kernels for CPUs: the loop IR scheduled over vectors and cores, emitted as LLVM text.

Reductions over rows go by tiles of columns, light ones along rows a few rows at a time, arrays with
different fastest axes by squares that are turned over in registers. What a point computes is
emitted as it is for GPUs (`codegen.llvm`). Families of kernels stand in `codegen.kernels`, the entry
function in `codegen.program`.
"""
