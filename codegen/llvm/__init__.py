"""LLVM IR as text, for CPUs.

    entry           the one function that calls the kernels;  calls: many calls as a table
      provenance    which array a pointer is for, where that is checked
      control       the program's branches and loops;  tapes;  units: row blocks
    kernels         a kernel as a function;  nests: its loops around stages;  loops
      reductions    accumulators;  streams, row_groups, transposes: other orders of the same loops
    scalars         expressions;  lanes: loops per lane;  accesses: loads and stores;  indices;  checks
      instructions  each scalar primitive;  text: names, numbering of equal lines;  whole
      functions     what is called instead of being written out
    scalar_code     loops over few numbers;  counted: those whose trips are known;  packing
    time_tiles      some trips of a loop on a block of rows
    tiles           micro-kernels;  gemm, convolution, long_convolution: the loops around them
    attention       and attention_grad
    sorting         rows of keys;  quicksort, sorting_network, radix, selection: its ways;  row_parts

Nothing here imports llvmlite: the text is all there is, and the runtime compiles it.
"""
