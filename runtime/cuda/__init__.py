"""NVIDIA GPUs: from `DeviceProgram`s to runs on a device, real or emulated.

LLVM text becomes PTX (`assemble`), refused in time if LLVM or a device could not take it, and is
loaded as whole programs. A driver is a table of libcuda's functions; the emulator is another such
table, whose streams do nothing before somebody waits. Launches in a row are one table for an
emitted interpreter, and programs are replayed as CUDA graphs, in which the device decides about
loops and branches. Memory frees itself in stream order. Every call leaves the context that was
current as it was. Arrays of other libraries are taken by DLPack first, and kept until our stream is
done with them; that stream and the legacy default one wait for each other. What was measured to be
fastest is remembered on disk.

Needs llvmlite and nothing of NVIDIA's but the driver, and that only to run on a GPU.
"""

from ...ir.surface import provides


@provides("emulated GPU")
def _emulation() -> None:
    from .emulator import cublas, driver  # noqa: F401
