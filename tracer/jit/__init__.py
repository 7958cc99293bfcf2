"""`jit`: a call's signature, its specialisations, how they are made, remembered and called.

A jitted function's vectorcall is native code: it tries a chain of call programs, one per form of
arguments, and a program that takes the call checks arguments and guards, runs the entry and builds
the result without Python. A miss comes to `JitFunction.__call__`, which is the whole call once more
in Python: there a known signature gets a program, and a new one is traced and compiled, or recalled
from disk.
"""
