"""LLVM text to machine code in this process: engine, linker, loader, the CPU, code that programs share.

engine       LLVM behind one small door: LLVM text in, machine code in this process out
host         The CPU of this process, described by LLVM once and remembered on disk
image        Loading an `Image` into this process: map, fill in the addresses
layout       Where NumPy keeps an array's pointer, shape and strides, checked on live arrays
linker       A small static linker
llvm         llvmlite's binding, and the lock around every use of it
llvm_text    Reading LLVM's own printing of a module: types, operands, calls, memory accesses
records      Executables as bytes: machine code with everything that a call
relocations  Machine by machine, what an object file leaves open
support      Machine code that is the same for every program: the pool, the memory handler
"""
