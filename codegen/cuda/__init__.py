"""Kernels for NVIDIA GPUs: the loop IR scheduled over blocks and threads, emitted as LLVM text for PTX.

Knows no driver and no assembler: what runs a `DeviceProgram` is in `runtime.cuda`. Families of kernels
stand in `codegen.kernels`, what makes whole programs in `codegen.device`.

    columns      Column kernels: reductions of many rows into few columns
    emitter      The builder of one thread's code: the kernel around it, intrinsics, shared memory
    intrinsics   The intrinsics that kernels may call, and what each needs: a closed table
    lanes        Several neighbouring points of one thread: the same scalar code once per point
    neighbours   Points of one thread that share what they read
    points       Kernels whose outer points are shared out among threads
    program      A compiled graph for a GPU before it is machine code: LLVM text, launches
    rows         Row kernels: a team of threads for each row, the nests of which follow one another
    scalar_code  Scalar code as a kernel of one thread
    scan_plan    How the kernel of a scan is laid over threads: along rows, or down columns
    schedule     Schedules: how the loops of a kernel are laid over the threads of a GPU
    target       What code is generated for: a family of GPUs, described by plain data
    teams        Teams of threads that work on one row: values passed between them
    transposes   Map kernels that read some arrays across the order in which they write
    tuning       Choices among ways of doing one step: what a cost model likes best
    warps        What the lanes of a warp do together: values that go from lane to lane
"""
