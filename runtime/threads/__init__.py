"""The thread pool behind `jitney_parallel_for`.

pool     The thread pool that generated kernels run on: a fork-join pool written in LLVM IR
pool_ir  The LLVM text of the thread pool: `jitney_parallel_for` and its workers
"""
