"""NVIDIA GPUs: from `DeviceProgram`s to runs on a device, real or emulated.

    assemble      LLVM text -> PTX, refused in time if LLVM or a device could not take it
    ptxas         NVIDIA's assembler where it is installed, and what it says of kernels
    emulator/     the same LLVM text run on this CPU, thread by thread

Needs llvmlite and nothing of NVIDIA's but the driver, and that only to run on a GPU.
"""
