"""Programs for GPUs: from a graph to steps, kernels and launches; how ways of a step are timed.

A `DeviceProgram` is data: LLVM text, and launches, branches and loops as steps over named memory.
It pickles, and knows no driver. Its lowerings stand in for the CPU's (`DeviceContext.rules`), its
schedules lay loops over threads. What has no kernel of its own is composed of what has; the host
computes the rest. Where there are several ways of doing a step (tiles, parts of a long sum, threads
of a block or a row), the cost model's first is taken, or the one that a clock likes best: a
`Chooser` may run each way alone, as a program of its own.
"""
