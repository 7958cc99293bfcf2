"""Kernels on a device: what the driver is given of a module, and what it makes of that.

    text = ptx_of(program.ir, "sm_90", driver_version)
    module = load(context, text.encode(), program.kernels)
    module.function("softmax").attributes()

The driver assembles PTX as a whole program, and keeps what it made in a cache of its own; PTX is kept
here, so that a second process needs no LLVM.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...codegen.cuda.program import KernelShape
from ..cache.disk import disk_cache
from ..cache.installation import digest, installation
from .assemble import architecture_for, assemble, ptx_for
from .library import DeviceError

if TYPE_CHECKING:
    from .driver import Context

# CUfunction_attribute
_FUNCTION_ATTRIBUTES = {"max_threads": 0, "shared": 1, "local": 3, "registers": 4}
_MAX_DYNAMIC_SHARED = 8
_STATIC_SHARED_LIMIT = 48 << 10
# CUjit_option
_INFO_LOG, _INFO_SIZE, _ERROR_LOG, _ERROR_SIZE, _VERBOSE = 3, 4, 5, 6, 12
_LOG_BYTES = 16 << 10


def ptx_of(ir: str, arch: str, driver_version: int) -> str:
    """PTX of an LLVM text for a device of `arch`, with its own features if need be; kept on disk."""
    arch = architecture_for(ir, arch)
    version = ptx_for(arch, driver_version)
    cache = disk_cache()
    key = digest("ptx", installation(), arch, str(version), ir)
    stored = cache.get(key)
    if stored is not None:
        return stored.decode()
    text = assemble(ir, arch, version)
    cache.put(key, text.encode())
    return text


def load(
    context: Context, image: bytes, entries: Mapping[str, KernelShape], verbose: bool = False
) -> Module:
    """The kernels of a PTX text. What the driver's assembler says is `log`, or part of the error."""
    said, complaint = (ctypes.create_string_buffer(_LOG_BYTES) for _ in range(2))
    options = (ctypes.c_int * 5)(_INFO_LOG, _INFO_SIZE, _ERROR_LOG, _ERROR_SIZE, _VERBOSE)
    values = (ctypes.c_void_p * 5)(
        ctypes.addressof(said), len(said), ctypes.addressof(complaint), len(complaint), verbose
    )
    handle = ctypes.c_void_p()

    def log() -> str:
        texts = (x.value.decode(errors="replace").strip() for x in (complaint, said))
        return "\n".join(filter(None, texts))

    try:
        context.cuda.cuModuleLoadDataEx(ctypes.byref(handle), image + b"\0", 5, options, values)
    except DeviceError as error:
        why = f"{error}: {log()}" if log() else str(error)
        raise DeviceError(why, error.code) from error.__cause__
    return Module(context, handle.value or 0, entries, log())


class KernelFunction:
    """A kernel on a device: its handle."""

    __slots__ = ("handle", "name", "_context")

    def __init__(self, context: Context, name: str, handle: int) -> None:
        self._context = context
        self.name = name
        self.handle = handle

    def attributes(self) -> dict[str, int]:
        """What it needs: max_threads of a block, bytes of shared and local memory, registers."""
        values = {}
        with self._context as context:
            for name, number in _FUNCTION_ATTRIBUTES.items():
                value = ctypes.c_int()
                context.cuda.cuFuncGetAttribute(ctypes.byref(value), number, self.handle)
                values[name] = value.value
        return values


class Module:
    """Loaded kernels. They stay on the device while this lives."""

    def __init__(
        self, context: Context, handle: int, entries: Mapping[str, KernelShape], log: str = ""
    ) -> None:
        self._context = context
        self.handle = handle
        self.log = log  # of the driver's assembler
        self._functions: dict[str, KernelFunction] = {}
        cuda = context.cuda
        for name, entry in entries.items():
            function = ctypes.c_void_p()
            cuda.cuModuleGetFunction(ctypes.byref(function), handle, name.encode())
            self._functions[name] = KernelFunction(context, name, function.value or 0)
            own = self._functions[name].attributes()["shared"] if entry.shared_bytes else 0
            if own + entry.shared_bytes > _STATIC_SHARED_LIMIT:
                cuda.cuFuncSetAttribute(function, _MAX_DYNAMIC_SHARED, entry.shared_bytes)

    def function(self, name: str) -> KernelFunction:
        return self._functions[name]

    def __del__(self) -> None:
        context = getattr(self, "_context", None)
        if context is not None and self.handle:
            context._release("cuModuleUnload", self.handle)
