"""Graphs to loop nests, and those to the text of programs.

A graph is *lowered* to stages, each of which fills an array; stages are *scheduled* (fused,
blocked, laid in memory); each step is *emitted* as LLVM text, and a *program* calls them. Families
of kernels (products, sorts, ...) bring their own lowering and emitters, for CPUs and GPUs side by
side. The loop IR knows no target: kernels, indices and expressions are the same for both, and a
second target is a second schedule and a second emitter.

Nothing here compiles, allocates or runs anything: that is `runtime`.
"""
