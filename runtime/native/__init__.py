"""LLVM text to machine code in this process: engine, linker, loader, the CPU, code that programs
share.

The engine verifies and compiles; the linker makes position-independent *images* of LLVM's objects,
for x86-64 and AArch64, which `image` maps into any process without LLVM (what the linker does not
know, LLVM links; on AArch64 that would end the process, and is an error).
"""
