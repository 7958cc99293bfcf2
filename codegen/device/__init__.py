"""Programs for GPUs: from a graph to steps, kernels and launches; how ways of a step are timed.

build         A lowered program as steps of a `DeviceProgram`: kernels emitted
compile       From a graph to a program for a GPU: lower, fuse, plan memory, emit
emitters      What emits the kernels of a schedule
hosted        What a GPU leaves to the host: decompositions of matrices, by NumPy's LAPACK
library_pass  Which products of matrices NVIDIA's library does, with what follows them
lowering      Lowering for a GPU: what it does otherwise than the CPU
tails         Small kernels that follow another one, done by its last block in the same launch
trials        Programs that do one step of another program alone
variants      Other schedules of a kernel than the model's
"""
