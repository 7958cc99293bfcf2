"""LLVM IR as text, for CPUs: the builder that all emitters share, and a schedule's kernels.

Families of kernels stand in `codegen.kernels`, the entry function in `codegen.program`.

    accesses      What an expression's leaves read and where results go: loads, stores, gathers
    builder       LLVM IR written from Python: typed values with operators
    checks        Checks that a kernel makes on the way: indices in bounds
    counted       Loops of scalar code whose trips are counted before the first of them
    functions     Elementwise functions that a module calls
    indices       Indices as integers: of lane 0 (`value`)
    instructions  Scalar primitives spelled as LLVM instructions
    kernels       A kernel as an LLVM function: `void @name(ptr %ctx, i64 %lo, i64 %hi)`
    lanes         Loops in which every lane has its own trip count, as vector loops under a mask
    leaves        The leaves of a kernel's expressions: elements of arrays, indices
    loops         Loops around what is emitted
    nests         The nests of a kernel at one outer point: loops around stages
    packing       Equal operations on several numbers of scalar code as one operation on a vector
    reductions    Reductions inside a kernel: how accumulators start, take in a value
    row_groups    Light reductions and scans over rows, a few rows at a time
    scalar_code   Scalar code as an LLVM function: carries are phis
    scalars       Expressions to LLVM IR text, one value or one explicit vector of values at a time
    stages        Stages of a kernel at one point: what is walked, folded, remembered, stored
    streams       Reductions and scans over an axis that is not contiguous
    text          The builder that emitters hold: numbering of equal instructions, lanes
    transposes    Map kernels whose arrays have different fastest axes
    types         Types of LLVM values, which are LLVM's own texts
    units         Row blocks as an LLVM function: parts of several functions' ranges
    whole         Arithmetic on i64 values, folded where both sides are constants

Nothing here imports llvmlite: the text is all there is, and the runtime compiles it.
"""
