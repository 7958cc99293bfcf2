"""NVIDIA GPUs: from `DeviceProgram`s to runs on a device, real or emulated.

    assemble      LLVM text -> PTX, refused in time if LLVM or a device could not take it
    ptxas         NVIDIA's assembler where it is installed, and what it says of kernels
    library       libcuda's functions;  driver: devices, and what one does with a device
    modules       kernels loaded on a device
    memory        buffers that free themselves in stream order;  transfers: arrays in and out
    protocols     what arrays of other libraries say of themselves;  foreign: how long they are kept
    execute       a DeviceProgram on a stream;  launcher: its launches as one native call
    heaps         memory for tapes that the device keeps;  tapes: those that the host keeps
    plan          steps prepared for that;  walk: the host decides;  conditions: the device does
    emulator/     the LLVM text of kernels run on this CPU, thread by thread, and libcuda without a GPU

Needs llvmlite and nothing of NVIDIA's but the driver, and that only to run on a GPU.
"""

from ...ir.surface import provides


@provides("emulated GPU")
def _emulation() -> None:
    from .emulator import cublas, driver  # noqa: F401
