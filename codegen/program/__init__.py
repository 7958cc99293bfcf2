"""Programs for CPUs: from a graph to a module, and the entry function that calls the kernels.

calls       Calls of kernels: a few as code, many as a table that one small loop works through
compile     From a graph to a native module: lower, fuse, plan memory, emit
control     Branches and loops of a program, as branches and loops of the entry function
entry       The entry function: a program's steps as LLVM code that calls the kernels one after
library     Calls of NumPy's loops, as kernels whose units are the items of a batch
provenance  What checked code tells of its arrays: each pointer is made to point at one, by name
time_tiles  Time tiles as LLVM functions: some trips of a loop on blocks of rows
"""
