"""Devices, and what one does with a device: memory, streams, events, modules, launches, graphs.

    context = devices()[0].context()
    stream = context.create_stream()
    address = context.allocate(nbytes, stream)
    module = context.load_module(program.ir, program.kernels)
    context.launch(module.function("softmax"), grid, block, 0, stream, arguments)
    context.synchronize(stream)

Everything is asynchronous on a stream but where it says otherwise. A context is the device's primary
one, which PyTorch, CuPy and JAX of the same process use too, so addresses and streams are theirs as
well. Handles are ints. Nothing is asked of the driver before the first device is asked for, so that a
process may fork until then.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from ...codegen.cuda.program import Entry
from ...ir.forks import renewed
from ...ir.record import record
from ..config import config
from ..disk import disk_cache
from ..installation import digest, installation
from .assemble import architecture_for, assemble, nearest_architecture, ptx_for
from .library import NOT_READY, SUCCESS, DeviceError, Library, find_library

Grid = tuple[int, int, int]

# CUdevice_attribute
_SMS, _CAPABILITY_MAJOR, _CAPABILITY_MINOR, _SHARED_OPT_IN, _L2, _POOLS = 16, 75, 76, 97, 38, 115
_THREADS_PER_SM = 39
# CUfunction_attribute
_FUNCTION_ATTRIBUTES = {"max_threads": 0, "shared": 1, "local": 3, "registers": 4}
_MAX_DYNAMIC_SHARED = 8
_STATIC_SHARED_LIMIT = 48 << 10
# CUjit_option, CUjitInputType
_INFO_LOG, _INFO_SIZE, _ERROR_LOG, _ERROR_SIZE = 3, 4, 5, 6
_INPUT_PTX = 1
_NON_BLOCKING = 1  # CUstream_flags, and CU_MEMHOSTALLOC_PORTABLE
_NO_TIMING = 2  # CUevent_flags
_RELEASE_THRESHOLD = 4  # CUmemPool_attribute
_RELAXED = 2  # CUstreamCaptureMode
_ARGUMENTS, _ARGUMENTS_SIZE, _END = 1, 2, 0  # CU_LAUNCH_PARAM_...


@record
class DeviceInfo:
    """A GPU: `arch` is the newest that it runs, `capability` its own, `memory` in bytes, `sms` how many
    multiprocessors; `shared_bytes` a block may have; `driver` the CUDA version of the driver (12040)."""

    ordinal: int
    name: str
    arch: str
    capability: tuple[int, int]
    memory: int
    sms: int
    shared_bytes: int
    l2_bytes: int
    threads_per_sm: int
    driver: int
    emulated: bool
    library: Library

    def context(self) -> Context:
        """The device's primary context, the same one each time."""
        return _context(self)

    def __str__(self) -> str:
        kind = f"emulated, {self.arch}" if self.emulated else f"{self.name}, {self.arch}"
        return f"cuda:{self.ordinal} ({kind})"


def devices() -> list[DeviceInfo]:
    """The GPUs of this machine, or the emulated one where `config.cuda` asks for it.

    DeviceError, with the reason, if there are none.
    """
    return list(_devices(config.cuda, os.getpid()))


@lru_cache(maxsize=4)
def _devices(kind: str, process: int) -> tuple[DeviceInfo, ...]:
    if kind == "off":
        raise DeviceError("jitney.config.cuda or JITNEY_CUDA switches GPUs off")
    if kind == "emulate":
        from .emulated_driver import EmulatedLibrary

        return describe(EmulatedLibrary())
    return describe(find_library())


def describe(library: Library) -> tuple[DeviceInfo, ...]:
    """All devices that a driver has."""
    count, version = ctypes.c_int(), ctypes.c_int()
    library.cuDriverGetVersion(ctypes.byref(version))
    library.cuDeviceGetCount(ctypes.byref(count))
    if not count.value:
        raise DeviceError("the NVIDIA driver finds no GPU")
    return tuple(_describe(library, ordinal, version.value) for ordinal in range(count.value))


def _describe(library: Library, ordinal: int, version: int) -> DeviceInfo:
    device, memory = ctypes.c_int(), ctypes.c_size_t()
    name = ctypes.create_string_buffer(256)
    library.cuDeviceGet(ctypes.byref(device), ordinal)
    library.cuDeviceGetName(name, len(name), device)
    library.cuDeviceTotalMem_v2(ctypes.byref(memory), device)

    def attribute(number: int) -> int:
        value = ctypes.c_int()
        library.cuDeviceGetAttribute(ctypes.byref(value), number, device)
        return value.value

    capability = attribute(_CAPABILITY_MAJOR), attribute(_CAPABILITY_MINOR)
    return DeviceInfo(
        ordinal=ordinal,
        name=name.value.decode(errors="replace"),
        arch=nearest_architecture(*capability),
        capability=capability,
        memory=memory.value,
        sms=attribute(_SMS),
        shared_bytes=attribute(_SHARED_OPT_IN),
        l2_bytes=attribute(_L2),
        threads_per_sm=attribute(_THREADS_PER_SM),
        driver=version,
        emulated=library.emulated,
        library=library,
    )


_contexts: dict[tuple[int, int], Context] = {}
_making = renewed(threading.RLock())


def _context(info: DeviceInfo) -> Context:
    key = (id(info.library), info.ordinal)
    with _making:
        if key not in _contexts:
            _contexts[key] = Context(info)
        return _contexts[key]


class Function:
    """A kernel on a device: its handle."""

    __slots__ = ("handle", "name", "_context")

    def __init__(self, context: Context, name: str, handle: int) -> None:
        self._context = context
        self.name = name
        self.handle = handle

    def attributes(self) -> dict[str, int]:
        """What it needs: max_threads of a block, bytes of shared and local memory, registers."""
        found = {}
        for name, number in _FUNCTION_ATTRIBUTES.items():
            value = ctypes.c_int()
            self._context.cuda.cuFuncGetAttribute(ctypes.byref(value), number, self.handle)
            found[name] = value.value
        return found


class Module:
    """Loaded kernels. They stay on the device while this lives."""

    def __init__(self, context: Context, handle: int, entries: Mapping[str, Entry]) -> None:
        self._context = context
        self.handle = handle
        self._functions: dict[str, Function] = {}
        cuda = context.cuda
        for name, entry in entries.items():
            function = ctypes.c_void_p()
            cuda.cuModuleGetFunction(ctypes.byref(function), handle, name.encode())
            self._functions[name] = Function(context, name, function.value or 0)
            if entry.shared_bytes > _STATIC_SHARED_LIMIT:
                cuda.cuFuncSetAttribute(function, _MAX_DYNAMIC_SHARED, entry.shared_bytes)

    def function(self, name: str) -> Function:
        return self._functions[name]

    def __del__(self) -> None:
        context = getattr(self, "_context", None)
        if context is not None and self.handle:
            context._release("cuModuleUnload", self.handle)


class _Held(threading.local):
    """The context that stays current on this thread, and how many `with` blocks want that."""

    context: Any = None
    depth = 0


_held = _Held()


class Context:
    """One device's primary context. Methods may be called from any thread.

    Each makes the context current on its thread. `with context:` does so once for all inside.
    """

    def __init__(self, info: DeviceInfo) -> None:
        self.info = info
        self.cuda = info.library
        self._process = os.getpid()
        device, handle = ctypes.c_int(), ctypes.c_void_p()
        self.cuda.cuDeviceGet(ctypes.byref(device), info.ordinal)
        self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(handle), device)
        self.handle = handle.value or 0
        self._device = device.value
        self.activate()
        self.stream_ordered = self._keep_freed_memory()

    def activate(self) -> None:
        """Make the context current on this thread. All methods do it first."""
        if _held.context is self:
            return
        _held.context = None  # another one that was held: who works with it asks again
        if os.getpid() != self._process:
            raise DeviceError("a GPU cannot be used after fork: start the process with 'spawn'")
        self.cuda.cuCtxSetCurrent(self.handle)

    def __enter__(self) -> Context:
        self.activate()
        _held.context = self
        _held.depth += 1
        return self

    def __exit__(self, *error: object) -> None:
        _held.depth -= 1
        if not _held.depth:
            _held.context = None

    @contextmanager
    def let_go(self) -> Iterator[None]:
        """For calls of somebody else's code, which may make another context current."""
        _held.context = None
        try:
            yield
        finally:
            self.activate()

    # Memory

    def _keep_freed_memory(self) -> bool:
        """Whether memory comes from the driver's stream-ordered pool, which then keeps what is freed."""
        supported, pool = ctypes.c_int(), ctypes.c_void_p()
        self.cuda.cuDeviceGetAttribute(ctypes.byref(supported), _POOLS, self._device)
        if not supported.value or not self.cuda.has("cuMemAllocAsync", "cuDeviceGetDefaultMemPool"):
            return False
        self.cuda.cuDeviceGetDefaultMemPool(ctypes.byref(pool), self._device)
        everything = ctypes.c_uint64(2**64 - 1)
        self.cuda.cuMemPoolSetAttribute(pool, _RELEASE_THRESHOLD, ctypes.byref(everything))
        self._pool = pool.value
        return True

    def memory(self) -> tuple[int, int]:
        """(free, total) bytes of the device."""
        self.activate()
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def allocate(self, nbytes: int, stream: int) -> int:
        """Memory of at least one byte, for work on `stream` and what waits for it."""
        self.activate()
        address = ctypes.c_uint64()
        if self.stream_ordered:
            self.cuda.cuMemAllocAsync(ctypes.byref(address), max(nbytes, 1), stream)
        else:
            self.cuda.cuMemAlloc_v2(ctypes.byref(address), max(nbytes, 1))
        return address.value

    def free(self, address: int, stream: int) -> None:
        """Give memory back when `stream` has come this far."""
        self.activate()
        if self.stream_ordered:
            self.cuda.cuMemFreeAsync(address, stream)
        else:
            self.cuda.cuStreamSynchronize(stream)
            self.cuda.cuMemFree_v2(address)

    def trim(self) -> None:
        """Give what the driver's pool keeps back to the system."""
        self.activate()
        self.cuda.cuCtxSynchronize()
        if self.stream_ordered and self.cuda.has("cuMemPoolTrimTo"):
            self.cuda.cuMemPoolTrimTo(self._pool, 0)

    def allocate_pinned(self, nbytes: int) -> int:
        """Memory of the host that the device reads and writes by itself."""
        self.activate()
        address = ctypes.c_void_p()
        self.cuda.cuMemHostAlloc(ctypes.byref(address), max(nbytes, 1), _NON_BLOCKING)
        return address.value or 0

    def free_pinned(self, address: int) -> None:
        self.activate()
        self.cuda.cuMemFreeHost(address)

    def copy_in(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """From the host. Memory that is not pinned is read before this returns."""
        if nbytes:
            self.activate()
            self.cuda.cuMemcpyHtoDAsync_v2(target, source, nbytes, stream)

    def copy_out(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """To the host. Memory that is not pinned is written before this returns."""
        if nbytes:
            self.activate()
            self.cuda.cuMemcpyDtoHAsync_v2(target, source, nbytes, stream)

    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """On the device; the places do not overlap."""
        if nbytes:
            self.activate()
            self.cuda.cuMemcpyDtoDAsync_v2(target, source, nbytes, stream)

    def fill(self, target: int, count: int, width: int, value: int, stream: int) -> None:
        """`count` elements of 1, 2 or 4 bytes become the bit pattern `value`."""
        if count:
            self.activate()
            getattr(self.cuda, f"cuMemsetD{8 * width}Async")(target, value, count, stream)

    # Streams and events

    def create_stream(self) -> int:
        """A stream that does not wait for the legacy default stream."""
        self.activate()
        stream = ctypes.c_void_p()
        self.cuda.cuStreamCreate(ctypes.byref(stream), _NON_BLOCKING)
        return stream.value or 0

    def destroy_stream(self, stream: int) -> None:
        self._release("cuStreamDestroy_v2", stream)

    def synchronize(self, stream: int) -> None:
        """Wait until the stream has done everything. Errors of its kernels are raised here."""
        self.activate()
        self.cuda.cuStreamSynchronize(stream)

    def is_idle(self, stream: int) -> bool:
        self.activate()
        return self._answer("cuStreamQuery", stream)

    def create_event(self, timing: bool = False) -> int:
        self.activate()
        event = ctypes.c_void_p()
        self.cuda.cuEventCreate(ctypes.byref(event), 0 if timing else _NO_TIMING)
        return event.value or 0

    def destroy_event(self, event: int) -> None:
        self._release("cuEventDestroy_v2", event)

    def record_event(self, event: int, stream: int) -> None:
        self.activate()
        self.cuda.cuEventRecord(event, stream)

    def wait_event(self, stream: int, event: int) -> None:
        """What comes next on the stream waits for what came before the event was recorded."""
        self.activate()
        self.cuda.cuStreamWaitEvent(stream, event, 0)

    def has_happened(self, event: int) -> bool:
        self.activate()
        return self._answer("cuEventQuery", event)

    def synchronize_event(self, event: int) -> None:
        self.activate()
        self.cuda.cuEventSynchronize(event)

    def elapsed(self, start: int, end: int) -> float:
        """Seconds between two events with timing that have happened."""
        self.activate()
        milliseconds = ctypes.c_float()
        self.cuda.cuEventElapsedTime(ctypes.byref(milliseconds), start, end)
        return milliseconds.value / 1e3

    def _answer(self, name: str, handle: int) -> bool:
        code = self.cuda.functions[name](handle)
        if code not in (SUCCESS, NOT_READY):
            raise self.cuda.error(name, code)
        return bool(code == SUCCESS)

    def _release(self, name: str, handle: int) -> None:
        """Destroy something, also from `__del__` when the interpreter ends: never raises."""
        try:
            if os.getpid() == self._process and not sys.is_finalizing():
                self.activate()
                self.cuda.functions[name](handle)
        except Exception:
            pass

    # Kernels

    def load_module(self, ir: str, entries: Mapping[str, Entry]) -> Module:
        """The kernels of an LLVM text without `target` lines."""
        self.activate()
        if not entries:  # copies, or products of a library
            return Module(self, 0, {})
        if self.cuda.emulated:
            image = ir.encode()
        else:
            image = self._machine_code(ir)
        return self.load_image(image, entries)

    def load_image(self, image: bytes, entries: Mapping[str, Entry]) -> Module:
        """The kernels of a PTX text or of machine code."""
        self.activate()
        log = ctypes.create_string_buffer(8192)
        options = (ctypes.c_int * 2)(_ERROR_LOG, _ERROR_SIZE)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
        handle = ctypes.c_void_p()
        try:
            self.cuda.cuModuleLoadDataEx(ctypes.byref(handle), image + b"\0", 2, options, values)
        except DeviceError as error:
            said = log.value.decode(errors="replace").strip()
            raise DeviceError(f"{error}: {said}" if said else str(error), error.code) from None
        return Module(self, handle.value or 0, entries)

    def _machine_code(self, ir: str) -> bytes:
        """What the driver makes of a module, kept on disk for the next process."""
        arch = architecture_for(ir, self.info.arch)
        version = ptx_for(arch, self.info.driver)
        cache = disk_cache()
        driver = f"{self.info.driver} {version}"
        key = digest("cubin", installation(), arch, str(self.info.capability), driver, ir)
        found = cache.get(key)
        if found is not None:
            return found
        code = self._link(assemble(ir, arch, version).encode())
        cache.put(key, code)
        return code

    def _link(self, ptx: bytes) -> bytes:
        """PTX to machine code by the driver; the PTX itself if the driver cannot give that away."""
        cuda = self.cuda
        if not cuda.has("cuLinkCreate_v2", "cuLinkAddData_v2", "cuLinkComplete", "cuLinkDestroy"):
            return ptx
        log = ctypes.create_string_buffer(8192)
        options = (ctypes.c_int * 2)(_ERROR_LOG, _ERROR_SIZE)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
        state = ctypes.c_void_p()
        cuda.cuLinkCreate_v2(2, options, values, ctypes.byref(state))
        try:
            text = ptx + b"\0"
            cuda.cuLinkAddData_v2(state, _INPUT_PTX, text, len(text), b"jitney", 0, None, None)
            code, size = ctypes.c_void_p(), ctypes.c_size_t()
            cuda.cuLinkComplete(state, ctypes.byref(code), ctypes.byref(size))
            return ctypes.string_at(code.value or 0, size.value)
        except DeviceError as error:
            said = log.value.decode(errors="replace").strip()
            raise DeviceError(f"{error}: {said}" if said else str(error), error.code) from None
        finally:
            cuda.cuLinkDestroy(state)

    def launch(
        self,
        function: Function,
        grid: Grid,
        block: Grid,
        shared_bytes: int,
        stream: int,
        arguments: bytes,
    ) -> None:
        """Launch a kernel; `arguments` are its packed parameters, each naturally aligned."""
        self.activate()
        packed = ctypes.create_string_buffer(arguments, max(len(arguments), 1))
        size = ctypes.c_size_t(len(arguments))
        extra = (ctypes.c_void_p * 5)(
            _ARGUMENTS, ctypes.addressof(packed), _ARGUMENTS_SIZE, ctypes.addressof(size), _END
        )
        self.cuda.cuLaunchKernel(function.handle, *grid, *block, shared_bytes, stream, None, extra)

    # Graphs

    def begin_capture(self, stream: int) -> None:
        """What is asked of the stream from now on becomes a graph and does not run."""
        self.activate()
        self.cuda.cuStreamBeginCapture_v2(stream, _RELAXED)

    def end_capture(self, stream: int) -> int:
        """A graph that can be launched, again and again."""
        self.activate()
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        self.cuda.cuStreamEndCapture(stream, ctypes.byref(graph))
        try:
            self.cuda.cuGraphInstantiateWithFlags(ctypes.byref(executable), graph, 0)
        finally:
            self._release("cuGraphDestroy", graph.value or 0)
        return executable.value or 0

    def abandon_capture(self, stream: int) -> None:
        """End a capture that went wrong."""
        self.activate()
        graph = ctypes.c_void_p()
        self.cuda.functions["cuStreamEndCapture"](stream, ctypes.byref(graph))
        if graph.value:
            self._release("cuGraphDestroy", graph.value)

    def launch_graph(self, executable: int, stream: int) -> None:
        self.activate()
        self.cuda.cuGraphLaunch(executable, stream)

    def destroy_graph(self, executable: int) -> None:
        self._release("cuGraphExecDestroy", executable)
