"""A GPU on the CPU: the LLVM text of kernels, run thread by thread under CUDA's rules.

    layout        what the pieces share: one launch, one warp, one thread, as bytes
    coroutines    kernels rewritten for the CPU: a function that stops wherever threads wait for others
    instructions  how each intrinsic is rewritten
    scheduler     emitted code that runs the threads of a grid, in one of several orders
    barriers      emitted code by which threads wait, and are let go
    warps         emitted code of what a warp does together: shuffles, votes, matrices
    mbarriers     emitted code of barriers that are words of shared memory, and of registers passed on
    boxes         emitted code of the copy engine
    warpgroups    emitted code of products that four warps do together
    hopper        how the instructions of these three are rewritten
    memory        emitted code that checks addresses and lets asynchronous copies arrive late
    races         emitted code that finds accesses of shared memory with no barrier between them
    machine       loading a module and launching its kernels

Everything that a kernel may do wrong and that a GPU would not report is an `EmulationError` here: a
barrier that not all threads reach, lanes of a warp at different instructions, addresses outside of all
buffers, threads that wait for ever. Shared memory is poison when a block starts.
"""
