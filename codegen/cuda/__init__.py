"""Graphs to programs for NVIDIA GPUs: the loop IR scheduled over blocks and threads, emitted as LLVM
text for NVPTX. Knows no driver and no assembler: what runs a `DeviceProgram` is in `runtime/cuda`."""
