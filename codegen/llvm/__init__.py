"""LLVM IR as text, for CPUs: the builder that all emitters share, and a schedule's kernels.

The builder has typed values with operators, blocks with parameters, and loops; its text has
explicit vectors and sees no pipeline of LLVM's passes, which costs more compile time than it gives
(docs/decisions/0001-no-llvm-pass-pipeline.md). Expressions are emitted at any width; what is the
same in all lanes stays scalar. Reductions over rows go by tiles of columns, light ones along rows a
few rows at a time, arrays with different fastest axes by squares that are turned over in registers.

Families of kernels stand in `codegen.kernels`, the entry function in `codegen.program`. Nothing
here imports llvmlite: the text is all there is, and the runtime compiles it.
"""
