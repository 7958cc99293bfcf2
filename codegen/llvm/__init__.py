"""LLVM IR as text: the builder that all emitters share, and what both targets emit alike.

The builder has typed values with operators, blocks with parameters, and loops; its text has
explicit vectors and sees no pipeline of LLVM's passes, which costs more compile time than it gives
(docs/decisions/0001-no-llvm-pass-pipeline.md). Expressions are emitted at any width; what is the
same in all lanes stays scalar.

How a schedule's loops become kernels stands in `codegen.cpu` and `codegen.cuda`. Nothing here imports
llvmlite: the text is all there is, and the runtime compiles it.
"""
