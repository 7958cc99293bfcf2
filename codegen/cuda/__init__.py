"""Kernels for NVIDIA GPUs: the loop IR scheduled over blocks and threads, emitted as LLVM text for
PTX.

The code of a thread is the CPU's emitter at width 1: several points of one thread are the same
scalar code several times, around accesses of 128 bits. A row kernel gives each row to a team of
threads, from one lane to a block, which keeps the row in registers; where columns are few, several
threads go down each. What is small and follows is done by a kernel's last block. Points that share
what they read, as those of stencils and windows, belong to one thread. What is read across the
order of what is written is turned over by squares in shared memory.

LLVM ends the process on what it cannot select, so kernels may call what the table `intrinsics`
lists, each row assembled in tests, and nothing else. Knows no driver and no assembler: what runs a
`DeviceProgram` is in `runtime.cuda`. Families of kernels stand in `codegen.kernels`, what makes
whole programs in `codegen.device`.
"""
