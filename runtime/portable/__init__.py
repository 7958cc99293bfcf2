"""Compiled code that leaves the process: files that other processes load, functions that C calls.

`format.py` is the file and its reader, which trusts nothing that it reads; `programs.py` compiled
functions as such files have them; `levels.py` CPUs by the levels of their instruction sets.
`c_entry.py` is the function that C calls, as LLVM text around a module's entry, and `shared_object.py`
an ELF shared object of images, written without a linker. Machine code gets into a process by
`native.image`, as all does.
"""
