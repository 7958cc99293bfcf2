"""Graphs to loop nests, and those to the text of programs.

    compile         all of it: graph -> module
    context         what the lowerings share: the machine, error sites, constants
    lower           which values get memory, and a stage for each;  lower_*: ops that are not pointwise
      pointwise     values as functions of an index;  folds: many values as one;  one_hot: few updates
      index         index algebra
      scalar        expressions at one point;  math/: elementwise ops in them;  functions: calls
    kernel          the loop IR: arrays, stages, kernels;  steps: what stands beside kernels;  tiled
    scalar_code     loops over few numbers;  scalar_builder, scalar_rules, elements: how they are made
    fusion          stages that share loops become kernels
    rowblocks       steps that go block by block of rows;  time_tiles: trips of a loop that do
    giving          inputs that may be overwritten;  in_place: values that may be, in loops and branches
    memory          places for temporaries
    blocking        how products are cut;  conv_plan: convolutions;  sort_blocks: long rows
    schedule        how the loops of a kernel run;  survey: what it looks at
    signature       which kernels are the same code
    module          the result: text, and what the runtime must know to call it
    verify/         what every rewriting of steps has to keep
    target          what code is generated for;  limits: sizes of blocks, tiles and units
    llvm/           a schedule's kernels as LLVM text for CPUs;  cuda/: for NVIDIA GPUs

Nothing here compiles, allocates or runs anything: that is `runtime`.
"""
