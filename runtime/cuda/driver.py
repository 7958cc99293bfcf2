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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache, wraps
from typing import Any, TypeVar

from ...codegen.cuda.program import KernelShape
from ...ir.forks import renewed
from ...ir.record import record
from ...ir.surface import ensure
from ..config import config
from .assemble import AssembleError, nearest_architecture, ptx_for
from .library import EMULATED, NOT_READY, SUCCESS, DeviceError, DriverLibrary, find_library
from .modules import KernelFunction, Module, load, ptx_of

Grid = tuple[int, int, int]
F = TypeVar("F", bound=Callable[..., Any])

# CUdevice_attribute
_SMS, _CAPABILITY_MAJOR, _CAPABILITY_MINOR, _SHARED_OPT_IN, _L2, _POOLS = 16, 75, 76, 97, 38, 115
_THREADS_PER_SM = 39
_NON_BLOCKING = 1  # CUstream_flags
_PORTABLE = 1  # CU_MEMHOSTALLOC_PORTABLE
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
    library: DriverLibrary

    def context(self) -> Context:
        """The device's primary context, the same one each time."""
        return _context(self)

    def __str__(self) -> str:
        kind = f"emulated, {self.arch}" if self.emulated else f"{self.name}, {self.arch}"
        return f"cuda:{self.ordinal} ({kind})"


def devices() -> list[DeviceInfo]:
    """The GPUs of this machine that can be used, or the emulated one where `config.cuda` asks for it.

    DeviceError, with the reason, if there are none.
    """
    gpus, reasons = survey()
    return list(_usable(gpus, reasons))


def survey() -> tuple[tuple[DeviceInfo, ...], tuple[str, ...]]:
    """As `devices`, and why others are left out. DeviceError if there is no driver."""
    return _survey(config.cuda, os.getpid())


@lru_cache(maxsize=4)
def _survey(kind: str, process: int) -> tuple[tuple[DeviceInfo, ...], tuple[str, ...]]:
    if kind == "off":
        raise DeviceError("jitney.config.cuda or JITNEY_CUDA switches GPUs off")
    if kind == "emulate":
        ensure("emulated GPU")
        return survey_of(EMULATED["driver"]())
    return survey_of(find_library())


def describe(library: DriverLibrary) -> tuple[DeviceInfo, ...]:
    """The devices of a driver that can be used. DeviceError, with the reasons, if there are none."""
    return _usable(*survey_of(library))


def _usable(gpus: tuple[DeviceInfo, ...], reasons: tuple[str, ...]) -> tuple[DeviceInfo, ...]:
    if not gpus:
        why = "; ".join(reasons)
        raise DeviceError(
            f"the NVIDIA driver finds no GPU{f' that can be used: {why}' * bool(why)}"
        )
    return gpus


def survey_of(library: DriverLibrary) -> tuple[tuple[DeviceInfo, ...], tuple[str, ...]]:
    """The devices of a driver, and why some are left out."""
    count, version = ctypes.c_int(), ctypes.c_int()
    library.cuDriverGetVersion(ctypes.byref(version))
    library.cuDeviceGetCount(ctypes.byref(count))
    gpus, reasons = [], []
    for ordinal in range(count.value):
        name = "a GPU"
        try:
            name = _name(library, ordinal)
            gpus.append(_describe(library, ordinal, name, version.value))
        except (AssembleError, DeviceError) as error:
            reasons.append(f"cuda:{ordinal} ({name}) is left out: {error}")
    return tuple(gpus), tuple(reasons)


def _name(library: DriverLibrary, ordinal: int) -> str:
    device, name = ctypes.c_int(), ctypes.create_string_buffer(256)
    library.cuDeviceGet(ctypes.byref(device), ordinal)
    library.cuDeviceGetName(name, len(name), device)
    return name.value.decode(errors="replace")


def _describe(library: DriverLibrary, ordinal: int, name: str, version: int) -> DeviceInfo:
    device, memory = ctypes.c_int(), ctypes.c_size_t()
    library.cuDeviceGet(ctypes.byref(device), ordinal)
    library.cuDeviceTotalMem_v2(ctypes.byref(memory), device)

    def attribute(number: int) -> int:
        value = ctypes.c_int()
        library.cuDeviceGetAttribute(ctypes.byref(value), number, device)
        return value.value

    capability = attribute(_CAPABILITY_MAJOR), attribute(_CAPABILITY_MINOR)
    arch = nearest_architecture(*capability)
    ptx_for(arch, version)  # raises where the driver is too old
    return DeviceInfo(
        ordinal=ordinal,
        name=name,
        arch=arch,
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


class _Held(threading.local):
    """The contexts that this thread has entered, innermost last; None where one was let go."""

    def __init__(self) -> None:
        self.entered: list[Context | None] = [None]


_held = _Held()


def _current(method: F) -> F:
    """A method of a context that is current meanwhile: nobody's other context is lost by it."""

    @wraps(method)
    def inside(self: Context, *args: Any, **options: Any) -> Any:
        if _held.entered[-1] is self:
            return method(self, *args, **options)
        with self:
            return method(self, *args, **options)

    return inside  # type: ignore[return-value]


class Context:
    """One device's primary context. Methods may be called from any thread.

    Each makes the context current on its thread, and then the one that was so before. `with context:`
    does so once for all inside.
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
        self.stream_ordered = self._keep_freed_memory()

    def __enter__(self) -> Context:
        entered = _held.entered
        if entered[-1] is not self:
            self._push()
        entered.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        entered = _held.entered
        entered.pop()
        if entered[-1] is not self:
            self._pop()

    def _push(self) -> None:
        if os.getpid() != self._process:
            raise DeviceError("a GPU cannot be used after fork: start the process with 'spawn'")
        self.cuda.cuCtxPushCurrent_v2(self.handle)

    def _pop(self) -> None:
        self.cuda.functions["cuCtxPopCurrent_v2"](ctypes.byref(ctypes.c_void_p()))

    @contextmanager
    def let_go(self) -> Iterator[None]:
        """For calls of somebody else's code inside of `with context`: it finds, and may change, the
        context that was current outside."""
        entered = _held.entered
        is_current = entered[-1] is self
        if is_current:
            self._pop()
        entered.append(None)
        try:
            yield
        finally:
            entered.pop()
            if is_current:
                self._push()

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

    @_current
    def memory(self) -> tuple[int, int]:
        """(free, total) bytes of the device."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    @_current
    def allocate(self, nbytes: int, stream: int) -> int:
        """Memory of at least one byte, for work on `stream` and what waits for it."""
        address = ctypes.c_uint64()
        if self.stream_ordered:
            self.cuda.cuMemAllocAsync(ctypes.byref(address), max(nbytes, 1), stream)
        else:
            self.cuda.cuMemAlloc_v2(ctypes.byref(address), max(nbytes, 1))
        return address.value

    @_current
    def free(self, address: int, stream: int) -> None:
        """Give memory back when `stream` has come this far."""
        if self.stream_ordered:
            self.cuda.cuMemFreeAsync(address, stream)
        else:
            self.cuda.cuStreamSynchronize(stream)
            self.cuda.cuMemFree_v2(address)

    @_current
    def trim(self) -> None:
        """Give what the driver's pool keeps back to the system."""
        self.synchronize_all()
        if self.stream_ordered and self.cuda.has("cuMemPoolTrimTo"):
            self.cuda.cuMemPoolTrimTo(self._pool, 0)

    @_current
    def allocate_pinned(self, nbytes: int) -> int:
        """Memory of the host that the device reads and writes by itself."""
        address = ctypes.c_void_p()
        self.cuda.cuMemHostAlloc(ctypes.byref(address), max(nbytes, 1), _PORTABLE)
        return address.value or 0

    @_current
    def copy_in(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """From the host. Memory that is not pinned is read before this returns."""
        if nbytes:
            self.cuda.cuMemcpyHtoDAsync_v2(target, source, nbytes, stream)

    @_current
    def copy_out(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """To the host. Memory that is not pinned is written before this returns."""
        if nbytes:
            self.cuda.cuMemcpyDtoHAsync_v2(target, source, nbytes, stream)

    @_current
    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """On the device; the places do not overlap."""
        if nbytes:
            self.cuda.cuMemcpyDtoDAsync_v2(target, source, nbytes, stream)

    @_current
    def fill(self, target: int, count: int, width: int, value: int, stream: int) -> None:
        """`count` elements of 1, 2 or 4 bytes become the bit pattern `value`."""
        if count:
            getattr(self.cuda, f"cuMemsetD{8 * width}Async")(target, value, count, stream)

    # Streams and events

    @_current
    def create_stream(self, ordered: bool = False) -> int:
        """A stream; `ordered`: it and the legacy default stream, which other libraries work on unless
        they are told otherwise, wait for each other."""
        stream = ctypes.c_void_p()
        self.cuda.cuStreamCreate(ctypes.byref(stream), 0 if ordered else _NON_BLOCKING)
        return stream.value or 0

    def destroy_stream(self, stream: int) -> None:
        self._release("cuStreamDestroy_v2", stream)

    @_current
    def synchronize(self, stream: int) -> None:
        """Wait until the stream has done everything. Errors of its kernels are raised here."""
        self.cuda.cuStreamSynchronize(stream)

    @_current
    def synchronize_all(self) -> None:
        """Wait until all streams of the device, also those of other libraries, have done everything."""
        self.cuda.cuCtxSynchronize()

    @_current
    def is_idle(self, stream: int) -> bool:
        return self._answer("cuStreamQuery", stream)

    @_current
    def create_event(self, timing: bool = False) -> int:
        event = ctypes.c_void_p()
        self.cuda.cuEventCreate(ctypes.byref(event), 0 if timing else _NO_TIMING)
        return event.value or 0

    def destroy_event(self, event: int) -> None:
        self._release("cuEventDestroy_v2", event)

    @_current
    def record_event(self, event: int, stream: int) -> None:
        self.cuda.cuEventRecord(event, stream)

    @_current
    def wait_event(self, stream: int, event: int) -> None:
        """What comes next on the stream waits for what came before the event was recorded."""
        self.cuda.cuStreamWaitEvent(stream, event, 0)

    @_current
    def recorded_event(self, stream: int) -> int:
        """A new event that happens when the stream has come this far."""
        event = self.create_event()
        try:
            self.record_event(event, stream)
        except DeviceError:
            self.destroy_event(event)
            raise
        return event

    @_current
    def order(self, first: int, then: int) -> None:
        """What comes next on a stream waits for what another one has to do by now."""
        event = self.recorded_event(first)
        self.wait_event(then, event)
        self.destroy_event(event)

    @_current
    def has_happened(self, event: int) -> bool:
        return self._answer("cuEventQuery", event)

    @_current
    def synchronize_event(self, event: int) -> None:
        self.cuda.cuEventSynchronize(event)

    @_current
    def elapsed(self, start: int, end: int) -> float:
        """Seconds between two events with timing that have happened."""
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
                with self:
                    self.cuda.functions[name](handle)
        except Exception:
            pass

    # Kernels

    def load_module(self, ir: str, entries: Mapping[str, KernelShape]) -> Module:
        """The kernels of an LLVM text without `target` lines."""
        if not entries:  # copies, or products of a library
            return Module(self, 0, {})
        return self.load_image((ir if self.cuda.emulated else self.ptx(ir)).encode(), entries)

    @_current
    def load_image(
        self, image: bytes, entries: Mapping[str, KernelShape], verbose: bool = False
    ) -> Module:
        """The kernels of a PTX text; `verbose`: `Module.log` says what each needs."""
        return load(self, image, entries, verbose)

    def ptx(self, ir: str) -> str:
        """What the driver is given of a module."""
        return ptx_of(ir, self.info.arch, self.info.driver)

    @_current
    def launch(
        self,
        function: KernelFunction,
        grid: Grid,
        block: Grid,
        shared_bytes: int,
        stream: int,
        arguments: bytes,
    ) -> None:
        """Launch a kernel; `arguments` are its packed parameters, each naturally aligned."""
        packed = ctypes.create_string_buffer(arguments, max(len(arguments), 1))
        size = ctypes.c_size_t(len(arguments))
        extra = (ctypes.c_void_p * 5)(
            _ARGUMENTS, ctypes.addressof(packed), _ARGUMENTS_SIZE, ctypes.addressof(size), _END
        )
        self.cuda.cuLaunchKernel(function.handle, *grid, *block, shared_bytes, stream, None, extra)

    # Graphs

    @_current
    def begin_capture(self, stream: int) -> None:
        """What is asked of the stream from now on becomes a graph and does not run."""
        self.cuda.cuStreamBeginCapture_v2(stream, _RELAXED)

    @_current
    def end_capture(self, stream: int) -> int:
        """A graph that can be launched, again and again."""
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        self.cuda.cuStreamEndCapture(stream, ctypes.byref(graph))
        try:
            self.cuda.cuGraphInstantiateWithFlags(ctypes.byref(executable), graph, 0)
        finally:
            self._release("cuGraphDestroy", graph.value or 0)
        return executable.value or 0

    @_current
    def abandon_capture(self, stream: int) -> None:
        """End a capture that went wrong."""
        graph = ctypes.c_void_p()
        self.cuda.functions["cuStreamEndCapture"](stream, ctypes.byref(graph))
        if graph.value:
            self._release("cuGraphDestroy", graph.value)

    @_current
    def launch_graph(self, executable: int, stream: int) -> None:
        self.cuda.cuGraphLaunch(executable, stream)

    def destroy_graph(self, executable: int) -> None:
        self._release("cuGraphExecDestroy", executable)
