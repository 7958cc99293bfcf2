"""libcuda, the part of NVIDIA's driver that programs call: found, bound, and asked with checked answers.

    cuda = find_library()                         # DeviceError if there is no driver
    cuda.cuMemAllocAsync(byref(address), nbytes, stream)

Functions are called by their exported, versioned names; each is a row of `SIGNATURES`. One that an old
driver lacks is `None` in `cuda.has(...)`: what needs it is switched off. A library is a table of C
functions, so another one can stand in for it: `emulator/driver.py`.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping
from typing import Any

# P pointer or handle, I int, U unsigned int, Z size_t, D address on the device, Q 64 bits, B byte
_TYPES = {
    "P": ctypes.c_void_p,
    "I": ctypes.c_int,
    "U": ctypes.c_uint,
    "Z": ctypes.c_size_t,
    "D": ctypes.c_uint64,
    "Q": ctypes.c_uint64,
    "B": ctypes.c_ubyte,
    "H": ctypes.c_ushort,
}

SIGNATURES = {
    "cuInit": "U",
    "cuDriverGetVersion": "P",
    "cuGetErrorName": "IP",
    # Devices and their primary contexts
    "cuDeviceGetCount": "P",
    "cuDeviceGet": "PI",
    "cuDeviceGetName": "PII",
    "cuDeviceGetAttribute": "PII",
    "cuDeviceTotalMem_v2": "PI",
    "cuDevicePrimaryCtxRetain": "PI",
    "cuCtxPushCurrent_v2": "P",
    "cuCtxPopCurrent_v2": "P",
    "cuCtxSynchronize": "",
    # Modules
    "cuModuleLoadDataEx": "PPUPP",
    "cuModuleUnload": "P",
    "cuModuleGetFunction": "PPP",
    "cuFuncGetAttribute": "PIP",
    "cuFuncSetAttribute": "PII",
    "cuLaunchKernel": "PUUUUUUUPPP",
    # Memory
    "cuMemGetInfo_v2": "PP",
    "cuMemAlloc_v2": "PZ",
    "cuMemFree_v2": "D",
    "cuMemAllocAsync": "PZP",
    "cuMemFreeAsync": "DP",
    "cuDeviceGetDefaultMemPool": "PI",
    "cuMemPoolSetAttribute": "PIP",
    "cuMemPoolTrimTo": "PZ",
    "cuMemHostAlloc": "PZU",
    "cuMemFreeHost": "P",
    "cuMemcpyHtoDAsync_v2": "DPZP",
    "cuMemcpyDtoHAsync_v2": "PDZP",
    "cuMemcpyDtoDAsync_v2": "DDZP",
    "cuMemsetD8Async": "DBZP",
    "cuMemsetD16Async": "DHZP",
    "cuMemsetD32Async": "DUZP",
    "cuTensorMapEncodeTiled": "PIUPPPPPIIII",
    # Streams and events
    "cuStreamCreate": "PU",
    "cuStreamDestroy_v2": "P",
    "cuStreamSynchronize": "P",
    "cuStreamQuery": "P",
    "cuStreamWaitEvent": "PPU",
    "cuEventCreate": "PU",
    "cuEventRecord": "PP",
    "cuEventSynchronize": "P",
    "cuEventQuery": "P",
    "cuEventElapsedTime": "PPP",
    "cuEventDestroy_v2": "P",
    # Graphs
    "cuStreamBeginCapture_v2": "PI",
    "cuStreamEndCapture": "PP",
    "cuGraphInstantiateWithFlags": "PPQ",
    "cuGraphLaunch": "PP",
    "cuGraphExecDestroy": "P",
    "cuGraphDestroy": "P",
    "cuGraphConditionalHandleCreate": "PPPUU",
    "cuGraphAddNode_v2": "PPPPZP",
    "cuStreamBeginCaptureToGraph": "PPPPZI",
    "cuStreamGetCaptureInfo_v3": "PPPPPPP",
    "cuStreamUpdateCaptureDependencies_v2": "PPPZU",
}

SUCCESS, INVALID_VALUE, OUT_OF_MEMORY, NOT_READY = 0, 1, 2, 600
_NAMES = {
    1: "CUDA_ERROR_INVALID_VALUE",
    2: "CUDA_ERROR_OUT_OF_MEMORY",
    100: "CUDA_ERROR_NO_DEVICE",
    201: "CUDA_ERROR_INVALID_CONTEXT",
    209: "CUDA_ERROR_NO_BINARY_FOR_GPU",
    218: "CUDA_ERROR_INVALID_PTX",
    222: "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
    600: "CUDA_ERROR_NOT_READY",
    700: "CUDA_ERROR_ILLEGAL_ADDRESS",
    719: "CUDA_ERROR_LAUNCH_FAILED",
    803: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
}


class DeviceError(RuntimeError):
    """No usable GPU, or the driver reports an error. `code` is the driver's, 0 if it has none."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


def function_type(name: str) -> Any:
    """The C type of a function of the driver."""
    return ctypes.CFUNCTYPE(ctypes.c_int, *(_TYPES[letter] for letter in SIGNATURES[name]))


class DriverLibrary:
    """The driver's functions as methods that raise DeviceError. `functions`: C functions by name."""

    emulated = False

    def __init__(self, functions: Mapping[str, Any], where: str) -> None:
        self.where = where
        self.functions = dict(functions)
        for name, function in self.functions.items():
            setattr(self, name, self._checked(name, function))

    def has(self, *names: str) -> bool:
        """Whether the driver has these functions."""
        return all(name in self.functions for name in names)

    def address(self, name: str) -> int:
        """Where native code finds a function."""
        return ctypes.cast(self.functions[name], ctypes.c_void_p).value or 0

    def error(self, name: str, code: int) -> DeviceError:
        what = _NAMES.get(code, f"error {code}")
        name_of = self.functions.get("cuGetErrorName")
        if name_of is not None and code not in _NAMES:
            text = ctypes.c_char_p()
            if name_of(code, ctypes.byref(text)) == 0 and text.value:
                what = text.value.decode()
        return DeviceError(f"{name}: {what}", code)

    def _checked(self, name: str, function: Any) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            code = function(*arguments)
            if code:
                raise self.error(name, code)

        return call

    def __getattr__(self, name: str) -> Any:
        # Only what `__init__` did not set comes here.
        if name in SIGNATURES:
            raise DeviceError(f"this NVIDIA driver has no {name}: install a newer one")
        raise AttributeError(name)


def library_names() -> list[str]:
    """Where the driver's library may be."""
    if os.name == "nt":
        return ["nvcuda.dll"]
    folders = ("/usr/lib/wsl/lib", "/usr/local/nvidia/lib64", "/usr/lib/x86_64-linux-gnu")
    names = [f"{folder}/libcuda.so.1" for folder in folders]
    return ["libcuda.so.1", "libcuda.so", *names]


def find_library() -> DriverLibrary:
    """The driver of this machine, initialised."""
    for name in library_names():
        try:
            loaded = ctypes.CDLL(name)
            break
        except OSError:
            continue
    else:
        raise DeviceError("there is no NVIDIA driver here (no libcuda.so.1 is found)")
    functions = {}
    for function_name, letters in SIGNATURES.items():
        try:
            function = getattr(loaded, function_name)
        except AttributeError:
            continue
        function.argtypes = [_TYPES[letter] for letter in letters]
        function.restype = ctypes.c_int
        functions[function_name] = function
    library = DriverLibrary(functions, loaded._name)
    try:
        library.cuInit(0)
    except DeviceError as error:
        raise DeviceError(f"the NVIDIA driver finds no usable GPU ({error})", error.code) from None
    return library


EMULATED: dict[str, Callable[..., Any]] = {}
"""What makes NVIDIA's libraries where no GPU is; the emulation, which knows them, enters itself."""
