"""Graphs to loop nests, and those to the text of programs.

    scalar          expressions at one point;  math/: elementwise ops in them, and functions
    loop_ir/        indices, arrays, stages, kernels, steps: what programs are made of
    lowering/       which values get memory, and a stage for each;  ops that are not pointwise
    schedule/       what shares loops, runs block by block, overwrites, lies where; how loops run
    verify/         what every rewriting of steps has to keep
    llvm/           LLVM text: the builder, and a schedule's kernels for CPUs
    cuda/           the same for NVIDIA GPUs
    kernels/        families of kernels, on CPUs and GPUs: products, attention, sorts, ...
    program/        programs for CPUs: all of it, graph -> module
    device/         programs for GPUs
    module          the result: text, and what the runtime must know to call it
    target          what code is generated for;  limits: sizes of blocks, tiles and units

Nothing here compiles, allocates or runs anything: that is `runtime`.
"""
