"""Calls without Python: objects whose vectorcall is emitted code, and the programs that it interprets.

arrays_ir      Allocating arrays, and scratch memory in arrays, as LLVM
call_fields    What native callables and the code of their calls agree on: fields
call_ir        LLVM text of the vectorcall function that runs call programs
callable       Python objects whose call is native code: a type with a vectorcall
guard_opcodes  The opcodes that look at arguments and at the outside, as LLVM
opcodes_ir     The frame in which each opcode of a call program is written as LLVM: fetch
program        Call programs: what native code does between a Python call and the compiled entry
ranges_ir      Sorting ranges of memory, as LLVM
work_opcodes   The opcodes that allocate, run the entry and build what is returned, as LLVM
"""
