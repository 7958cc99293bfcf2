"""LLVM IR as text.

`instructions` spells each scalar primitive as LLVM instructions, for one value or for a vector of
them; `text` names values and numbers equal ones; `scalars` walks expressions and emits them; the kernel
emitter puts loops and memory around.
Nothing here imports llvmlite: the text is all there is, and the runtime compiles it.
"""
