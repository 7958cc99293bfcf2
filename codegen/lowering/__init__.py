"""Graphs to loop nests: which values get memory, and a stage for each; ops that are not pointwise.

Some values are *materialised*, given an `Array` and a `Stage` that fills it; all others are inlined
where they are used, as functions of an index. Ops that only move elements (reshape, transpose,
slice, broadcast, flip, pad) are index algebra and nothing else. Elementwise ops expand into the
primitives of `codegen.scalar` through `codegen.math`.

Control flow stays structured. A region is lowered to a program of its own, and the entry gets a
branch or a loop. Carries trade buffers, or stay where they are if the body updates them in place:
such a loop works in the memory of the first value, if nothing else reads that. Slices of a scan are
pointers that move. A loop over few numbers is not a loop of kernels but scalar code. A loop whose
iterations depend on the element (`lanes_while`, what a batched scalar `while` becomes) is an
expression inside of a kernel: each lane has its own number of iterations.

Reductions with few results are cut by shape, never by threads, so that results do not depend on how
many there are.
"""
