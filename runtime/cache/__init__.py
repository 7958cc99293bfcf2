"""What was compiled before: in this process, and on disk for the next one.

An executable goes to disk as machine code with its calling data, under a hash of its graph, the
CPU, the options and what is installed. A process that finds everything there imports neither the
code generator nor LLVM: the CPU's description and the runtime's own code are kept in the same way;
where they are missing, LLVM makes them in haste, and well when the process ends.
"""
