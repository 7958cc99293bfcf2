"""Products of matrices, on CPUs and GPUs.

On CPUs a contraction is micro-kernels that keep a tile of C in registers; tiles, panels and blocks
follow from shapes and the target alone, so results do not depend on threads. Operands that lie
badly are packed by ordinary stages. A tiny product, or one with a vector, is a reduction.

On GPUs a tile is chosen by a cost model; operands pass stages of shared memory and are multiplied
by ordinary arithmetic or by tensor cores (float64; TF32 when asked for; float16 and bfloat16 where
the result is rounded to them). An operand need not be in memory: it is an expression of row and
index in the sum, evaluated on the way, or an address where elements are only moved. What is done
element by element with the result is part of the kernel. On sm_90a large products go another way:
one warp has the copy engine bring boxes of the operands to a ring of stages, two warpgroups
multiply them from there, and as many blocks as there are multiprocessors take one tile after the
other. cuBLASLt is one more way, where it is installed.
"""
