"""A GPU on the CPU: the LLVM text of kernels, run thread by thread under CUDA's rules.

Each kernel becomes a coroutine that stops wherever threads wait for each other, and an emitted
scheduler runs the threads of a grid in several orders. Shared memory is poison when a block starts,
asynchronous copies arrive as late as they may, sums of warpgroups are no numbers before they are
waited for.

Everything that a kernel may do wrong and that a GPU would not report is an `EmulationError` here: a
barrier that not all threads reach, lanes of a warp at different instructions, addresses outside of
all buffers, races in shared memory, threads that wait for ever.
"""
