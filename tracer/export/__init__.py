"""Functions that leave the process: exported to files and to C, and as addresses for other libraries.

`alone.py` is a call as a program that depends on nothing outside; `trees.py` how arguments and results
are nested, as plain data; `exported.py` is what `jt.export` gives, `loaded.py` what `jt.load_exported`
gives, which traces nothing and needs no LLVM; `c_functions.py` and `cfunc.py` are functions that C
calls. What is in the files, and how it becomes machine code of this process, is `runtime.portable`.
Nothing here knows `tracer.jit`: that hands calls over.
"""
