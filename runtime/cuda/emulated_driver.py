"""A driver without a GPU: the functions of `library.SIGNATURES`, with kernels run by `emulator/`.

`driver.py` runs on it unchanged, so what CI sees are the very calls that a GPU would get. One device,
"cuda:0"; its memory is a part of the process's, as much as is asked for. Modules are LLVM texts.

Time is what kernels and copies are said to cost (`seconds_of`), the same in each run; events note it.
Nothing happens before somebody waits for it: work stays in its stream until the stream or an event is
waited for, so a wait that is missing is seen. Memory is poison when it is allocated and when it was
freed, and kernels and copies that touch what is not allocated are errors.
"""

from __future__ import annotations

import ctypes
import inspect
import math
import struct
import threading
from bisect import bisect_right, insort
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...ir.forks import renewed
from .conditions import SETTERS, NodeParameters
from .emulator import tensor_maps
from .emulator.machine import FORWARDS, EmulatedModule, EmulationError, Order
from .library import (
    INVALID_VALUE,
    NOT_READY,
    OUT_OF_MEMORY,
    SIGNATURES,
    SUCCESS,
    DeviceError,
    Library,
    function_type,
)

_GRANULE = 256
_POISON = 0xFF
_NOT_SUPPORTED, _LAUNCH_FAILED = 801, 719
_ATTRIBUTES = {16: 4, 75: 9, 76: 0, 97: 227 << 10, 38: 50 << 20, 39: 2048, 115: 1}
_STATIC_SHARED_LIMIT = 48 << 10
_SECONDS_OF_A_BYTE = 1e-9  # of a copy or a fill
Operation = Callable[[], None]


class Refused(Exception):
    """A call that the driver answers with an error code."""

    def __init__(self, code: int, why: str = "") -> None:
        super().__init__(why)
        self.code = code


class Memory:
    """The device's memory: addresses of the process, with a gap of a granule after each allocation."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self._bytes = np.empty(nbytes + 2 * _GRANULE, np.uint8)
        self._start = self._bytes.ctypes.data + -self._bytes.ctypes.data % _GRANULE
        self._sizes: dict[int, int] = {}
        self._starts: list[int] = []

    def allocate(self, nbytes: int) -> int:
        """The first place that is large enough."""
        room = -(-nbytes // _GRANULE) * _GRANULE
        place = self._start
        for start in self._starts:
            if place + room + _GRANULE <= start:
                break
            place = start + -(-self._sizes[start] // _GRANULE) * _GRANULE + _GRANULE
        if place + room > self._start + self.nbytes:
            raise Refused(OUT_OF_MEMORY)
        insort(self._starts, place)
        self._sizes[place] = nbytes
        ctypes.memset(place, _POISON, nbytes)
        return place

    def free(self, address: int) -> None:
        if address not in self._sizes:
            raise Refused(INVALID_VALUE, f"{address:#x} is freed and was not allocated")
        ctypes.memset(address, _POISON, self._sizes.pop(address))
        self._starts.remove(address)

    def used(self) -> int:
        return sum(-(-n // _GRANULE) * _GRANULE + _GRANULE for n in self._sizes.values())

    def ranges(self) -> list[tuple[int, int]]:
        """(start, end) of what is allocated, sorted."""
        return [(start, start + self._sizes[start]) for start in self._starts]

    def check(self, address: int, nbytes: int) -> None:
        """Raise Refused unless all these bytes belong to one allocation."""
        at = bisect_right(self._starts, address) - 1
        if at < 0 or address + nbytes > self._starts[at] + self._sizes[self._starts[at]]:
            raise Refused(
                INVALID_VALUE, f"{nbytes} bytes at {address:#x} are not in what is allocated"
            )


class Kernel(NamedTuple):
    module: EmulatedModule
    name: str


class Condition:
    """What decides about a conditional node."""

    def __init__(self) -> None:
        self.value = 0


class Setters(NamedTuple):
    """The module of kernels that set conditions: the driver's own, for what they do is not in LLVM."""

    names: tuple[str, ...] = ("jitney_set_while", "jitney_set_branch")


class SettingKernel(NamedTuple):
    name: str


class Executable(list[Operation]):
    """A graph that was instantiated."""


class Graph(list[Operation]):
    """What was captured. `loose`: a node that what comes next does not depend on."""

    loose: int = 0
    bodies: Any = None


class Stream:
    """What was asked for and has not happened yet; while it is captured, what the graph will do."""

    def __init__(self) -> None:
        self.queue: deque[Operation] = deque()
        self.captured: Graph | None = None
        self.graph = 0  # its handle

    def submit(self, operation: Operation) -> None:
        if self.captured is not None:
            if self.captured.loose:
                raise Refused(INVALID_VALUE, "what follows a conditional node does not wait for it")
            self.captured.append(operation)
        else:
            self.queue.append(operation)

    def step(self) -> None:
        self.queue.popleft()()

    def drain(self) -> None:
        if self.captured is not None:
            raise Refused(900, "a stream that is captured is waited for")
        while self.queue:
            self.step()


class Event:
    """Recorded `asked` times, of which `happened` have been reached, at `time`."""

    def __init__(self) -> None:
        self.asked = 0
        self.happened = 0
        self.stream: Stream | None = None
        self.time = 0.0

    def wait(self, number: int) -> None:
        while self.happened < number and self.stream is not None and self.stream.queue:
            self.stream.step()


def _out(type: Any, pointer: int, value: Any) -> None:
    type.from_address(pointer).value = value


class EmulatedLibrary(Library):
    """`memory`: bytes that the device has. `order`: in which order threads run from now on."""

    emulated = True

    def __init__(self, memory: int = 1 << 30, order: Order = FORWARDS) -> None:
        self.memory = Memory(memory)
        self.order = order
        self.failure: BaseException | None = None
        self.launches = 0
        self.now = 0.0  # seconds on the device's clock
        self._lock = renewed(threading.RLock())
        self._objects: dict[int, Any] = {0: Stream()}
        self._pinned: dict[int, Any] = {}
        self._dynamic: dict[int, int] = {}
        functions = {}
        for name in SIGNATURES:
            method = getattr(type(self), f"_{name}", None)
            if method is not None:
                functions[name] = function_type(name)(self._guarded(name, method))
        super().__init__(functions, "emulated")

    def _guarded(self, name: str, method: Callable[..., None]) -> Callable[..., int]:
        count = len(inspect.signature(method).parameters) - 1
        assert count == len(SIGNATURES[name]), name

        def call(*arguments: Any) -> int:
            with self._lock:
                try:
                    method(self, *(a or 0 for a in arguments))
                except Refused as error:
                    self.failure = error if str(error) else None
                    return error.code
                except EmulationError as error:
                    self.failure = error
                    return _LAUNCH_FAILED
                except BaseException as error:
                    self.failure = error
                    return 999
                return SUCCESS

        return call

    def error(self, name: str, code: int) -> DeviceError:
        error = super().error(name, code)
        failure, self.failure = self.failure, None
        if failure is None:
            return error
        error = DeviceError(f"{error}: {failure}", code)
        error.__cause__ = failure
        return error

    def seconds_of(
        self, kernel: str, grid: tuple[int, int, int], block: tuple[int, int, int]
    ) -> float:
        """What a launch of a kernel is said to take. Tests put another clock here."""
        return 1e-6 + 1e-9 * math.prod(grid) * math.prod(block)

    def _new(self, thing: Any, pointer: int) -> None:
        handle = 0x1000 + 16 * len(self._objects)
        while handle in self._objects:
            handle += 16
        self._objects[handle] = thing
        _out(ctypes.c_void_p, pointer, handle)

    def _get(self, handle: int, kind: type) -> Any:
        thing = self._objects.get(handle)
        if not isinstance(thing, kind):
            raise Refused(400, f"{handle:#x} is no {kind.__name__}")
        return thing

    def _remove(self, handle: int, kind: type) -> Any:
        thing = self._get(handle, kind)
        del self._objects[handle]
        return thing

    def _stream(self, handle: int) -> Stream:
        stream: Stream = self._get(handle, Stream)
        return stream

    # Devices

    def _cuInit(self, flags: int) -> None:
        return None

    def _cuDriverGetVersion(self, version: int) -> None:
        _out(ctypes.c_int, version, 13000)

    def _cuDeviceGetCount(self, count: int) -> None:
        _out(ctypes.c_int, count, 1)

    def _cuDeviceGet(self, device: int, ordinal: int) -> None:
        if ordinal:
            raise Refused(101)
        _out(ctypes.c_int, device, 0)

    def _cuDeviceGetName(self, name: int, size: int, device: int) -> None:
        ctypes.memmove(name, b"jitney's emulator\0", 18)

    def _cuDeviceGetAttribute(self, value: int, number: int, device: int) -> None:
        _out(ctypes.c_int, value, _ATTRIBUTES[number])

    def _cuDeviceTotalMem_v2(self, nbytes: int, device: int) -> None:
        _out(ctypes.c_size_t, nbytes, self.memory.nbytes)

    def _cuDevicePrimaryCtxRetain(self, context: int, device: int) -> None:
        _out(ctypes.c_void_p, context, 1)

    def _cuCtxSetCurrent(self, context: int) -> None:
        if context != 1:
            raise Refused(201)

    def _cuCtxSynchronize(self) -> None:
        for stream in [s for s in self._objects.values() if isinstance(s, Stream)]:
            stream.drain()

    # Modules

    def _cuModuleLoadDataEx(
        self, module: int, image: int, count: int, options: int, values: int
    ) -> None:
        text = ctypes.string_at(image).decode()
        if text == SETTERS:
            self._new(Setters(), module)
        else:
            self._new(EmulatedModule(text), module)

    def _cuModuleUnload(self, module: int) -> None:
        self._cuCtxSynchronize()
        if not isinstance(self._objects.get(module), Setters):
            self._remove(module, EmulatedModule)

    def _cuModuleGetFunction(self, function: int, module: int, name: int) -> None:
        kernel = ctypes.string_at(name).decode()
        if isinstance(self._objects.get(module), Setters):
            self._new(SettingKernel(kernel), function)
            return
        loaded = self._get(module, EmulatedModule)
        if kernel not in loaded.kernels:
            raise Refused(500, f"the module has no kernel {kernel}")
        self._new(Kernel(loaded, kernel), function)

    def _cuFuncGetAttribute(self, value: int, number: int, function: int) -> None:
        loaded, kernel = self._get(function, Kernel)
        known = {0: 1024, 1: loaded.host.static_shared[kernel], 3: 0, 4: 0}
        _out(ctypes.c_int, value, known[number])

    def _cuFuncSetAttribute(self, function: int, number: int, value: int) -> None:
        self._get(function, Kernel)
        if number != 8 or value > _ATTRIBUTES[97]:
            raise Refused(INVALID_VALUE, f"{value} bytes of shared memory are too many")
        self._dynamic[function] = value

    def _cuLaunchKernel(
        self, function: int, gx: int, gy: int, gz: int, bx: int, by: int, bz: int,
        shared: int, stream: int, parameters: int, extra: int,
    ) -> None:  # fmt: skip
        setter = self._objects.get(function)
        if isinstance(setter, SettingKernel):
            self._set_condition(setter.name, _packed(parameters, extra), stream)
            return
        loaded, kernel = self._get(function, Kernel)
        if not (0 < gx < 2**31 and 0 < gy < 2**16 and 0 < gz < 2**16):
            raise Refused(INVALID_VALUE, f"a grid of {gx, gy, gz} blocks")
        if not (0 < bx * by * bz <= 1024 and bx and by and 0 < bz <= 64):
            raise Refused(INVALID_VALUE, f"a block of {bx, by, bz} threads")
        limit = max(self._dynamic.get(function, 0), _STATIC_SHARED_LIMIT)
        if shared > limit or loaded.host.static_shared[kernel] > _STATIC_SHARED_LIMIT:
            raise Refused(INVALID_VALUE, f"{shared} bytes of shared memory were not asked for")
        arguments = _packed(parameters, extra)

        def run() -> None:
            self.launches += 1
            self.now += self.seconds_of(kernel, (gx, gy, gz), (bx, by, bz))
            loaded.launch(
                kernel,
                (gx, gy, gz),
                (bx, by, bz),
                arguments,
                shared,
                self.memory.ranges(),
                self.order,
            )

        self._stream(stream).submit(run)

    def _set_condition(self, kernel: str, arguments: bytes, stream: int) -> None:
        """What the kernels of `conditions.SETTERS` do."""

        def run_while() -> None:
            handle, flag, failure = struct.unpack("<QQQ", arguments)
            self.memory.check(flag, 1)
            holds = bool(ctypes.c_uint8.from_address(flag).value)
            if failure:
                self.memory.check(failure, 8)
                holds = holds and not ctypes.c_int64.from_address(failure).value
            self._get(handle, Condition).value = int(holds)

        def run_branch() -> None:
            handle, index, last, way = struct.unpack("<QQii", arguments)
            self.memory.check(index, 4)
            chosen = min(max(ctypes.c_int32.from_address(index).value, 0), last)
            self._get(handle, Condition).value = int(chosen == way)

        self._stream(stream).submit(run_while if kernel == "jitney_set_while" else run_branch)

    # Memory

    def _cuMemGetInfo_v2(self, free: int, total: int) -> None:
        _out(ctypes.c_size_t, free, self.memory.nbytes - self.memory.used())
        _out(ctypes.c_size_t, total, self.memory.nbytes)

    def _cuMemAllocAsync(self, address: int, nbytes: int, stream: int) -> None:
        self._stream(stream)
        try:
            place = self.memory.allocate(nbytes)
        except Refused:  # what this stream will have freed can be had
            self._stream(stream).drain()
            place = self.memory.allocate(nbytes)
        _out(ctypes.c_uint64, address, place)

    def _cuMemFreeAsync(self, address: int, stream: int) -> None:
        self.memory.check(address, 1)
        self._stream(stream).submit(lambda: self.memory.free(address))

    def _cuMemAlloc_v2(self, address: int, nbytes: int) -> None:
        _out(ctypes.c_uint64, address, self.memory.allocate(nbytes))

    def _cuMemFree_v2(self, address: int) -> None:
        self._cuCtxSynchronize()
        self.memory.free(address)

    def _cuDeviceGetDefaultMemPool(self, pool: int, device: int) -> None:
        _out(ctypes.c_void_p, pool, 2)

    def _cuMemPoolSetAttribute(self, pool: int, number: int, value: int) -> None:
        return None

    def _cuMemPoolTrimTo(self, pool: int, keep: int) -> None:
        return None

    def _cuMemHostAlloc(self, address: int, nbytes: int, flags: int) -> None:
        block = (ctypes.c_ubyte * nbytes)()
        place = ctypes.addressof(block)
        self._pinned[place] = block
        _out(ctypes.c_void_p, address, place)

    def _cuMemFreeHost(self, address: int) -> None:
        self._cuCtxSynchronize()
        del self._pinned[address]

    def _is_pinned(self, address: int) -> bool:
        return any(start <= address < start + len(b) for start, b in self._pinned.items())

    def _cuMemcpyHtoDAsync_v2(self, target: int, source: int, nbytes: int, stream: int) -> None:
        self.memory.check(target, nbytes)
        data = None if self._is_pinned(source) else ctypes.string_at(source, nbytes)

        def run() -> None:
            self.memory.check(target, nbytes)
            ctypes.memmove(target, source if data is None else data, nbytes)

        self._stream(stream).submit(run)

    def _cuMemcpyDtoHAsync_v2(self, target: int, source: int, nbytes: int, stream: int) -> None:
        self.memory.check(source, nbytes)

        def run() -> None:
            self.memory.check(source, nbytes)
            ctypes.memmove(target, source, nbytes)

        self._stream(stream).submit(run)
        if not self._is_pinned(target):
            self._stream(stream).drain()

    def _cuMemcpyDtoDAsync_v2(self, target: int, source: int, nbytes: int, stream: int) -> None:
        def run() -> None:
            self.memory.check(target, nbytes)
            self.memory.check(source, nbytes)
            if max(target, source) < min(target, source) + nbytes:
                raise Refused(INVALID_VALUE, "a copy between places that overlap")
            self.now += nbytes * _SECONDS_OF_A_BYTE
            ctypes.memmove(target, source, nbytes)

        self._stream(stream).submit(run)

    def _fill(self, target: int, type: Any, value: int, count: int, stream: int) -> None:
        nbytes = count * ctypes.sizeof(type)

        def run() -> None:
            self.memory.check(target, nbytes)
            if target % ctypes.sizeof(type):
                raise Refused(INVALID_VALUE, "a place to fill is misaligned")
            self.now += nbytes * _SECONDS_OF_A_BYTE
            np.ctypeslib.as_array((type * count).from_address(target))[:] = value

        self._stream(stream).submit(run)

    def _cuMemsetD8Async(self, target: int, value: int, count: int, stream: int) -> None:
        self._fill(target, ctypes.c_uint8, value, count, stream)

    def _cuMemsetD16Async(self, target: int, value: int, count: int, stream: int) -> None:
        self._fill(target, ctypes.c_uint16, value, count, stream)

    def _cuMemsetD32Async(self, target: int, value: int, count: int, stream: int) -> None:
        self._fill(target, ctypes.c_uint32, value, count, stream)

    def _cuTensorMapEncodeTiled(
        self, map: int, kind: int, rank: int, address: int, sizes: int, strides: int, box: int,
        steps: int, interleave: int, swizzle: int, promotion: int, fill: int,
    ) -> None:  # fmt: skip
        if map % 64 or not 0 < rank <= 5:
            raise Refused(INVALID_VALUE, f"a tensor map of {rank} dims at {map:#x}")
        wide, narrow = ctypes.c_uint64 * rank, ctypes.c_uint32 * rank
        asked = tensor_maps.Asked(
            kind,
            address,
            list(wide.from_address(sizes)),
            list(wide.from_address(strides))[: rank - 1],
            list(narrow.from_address(box)),
            list(narrow.from_address(steps)),
            *(interleave, swizzle, promotion, fill),
        )
        if why := tensor_maps.complaint(asked):
            raise Refused(INVALID_VALUE, f"{why}: {asked}")
        tensor_maps.write(asked, map)

    # Streams and events

    def _cuStreamCreate(self, stream: int, flags: int) -> None:
        self._new(Stream(), stream)

    def _cuStreamDestroy_v2(self, stream: int) -> None:
        self._stream(stream).drain()
        self._remove(stream, Stream)

    def _cuStreamSynchronize(self, stream: int) -> None:
        self._stream(stream).drain()

    def _cuStreamQuery(self, stream: int) -> None:
        queue = self._stream(stream).queue
        if queue:
            self._stream(stream).step()
            raise Refused(NOT_READY)

    def _cuStreamWaitEvent(self, stream: int, event: int, flags: int) -> None:
        waited: Event = self._get(event, Event)
        number = waited.asked
        self._stream(stream).submit(lambda: waited.wait(number))

    def _cuEventCreate(self, event: int, flags: int) -> None:
        self._new(Event(), event)

    def _cuEventDestroy_v2(self, event: int) -> None:
        self._remove(event, Event)

    def _cuEventRecord(self, event: int, stream: int) -> None:
        recorded: Event = self._get(event, Event)
        recorded.asked += 1
        recorded.stream = self._stream(stream)
        number = recorded.asked

        def run() -> None:
            recorded.happened = number
            recorded.time = self.now

        self._stream(stream).submit(run)

    def _cuEventSynchronize(self, event: int) -> None:
        waited: Event = self._get(event, Event)
        waited.wait(waited.asked)

    def _cuEventQuery(self, event: int) -> None:
        asked: Event = self._get(event, Event)
        if asked.happened < asked.asked:
            assert asked.stream is not None
            asked.stream.step()
            raise Refused(NOT_READY)

    def _cuEventElapsedTime(self, milliseconds: int, start: int, end: int) -> None:
        first, last = self._get(start, Event), self._get(end, Event)
        if first.happened < first.asked or last.happened < last.asked:
            raise Refused(NOT_READY)
        _out(ctypes.c_float, milliseconds, (last.time - first.time) * 1e3)

    # Graphs

    def _cuStreamBeginCapture_v2(self, stream: int, mode: int) -> None:
        graph = ctypes.c_void_p()
        self._new(Graph(), ctypes.addressof(graph))
        self._cuStreamBeginCaptureToGraph(stream, graph.value or 0, 0, 0, 0, mode)

    def _cuStreamBeginCaptureToGraph(
        self, stream: int, graph: int, nodes: int, edges: int, count: int, mode: int
    ) -> None:
        captured = self._stream(stream)
        if captured.captured is not None:
            raise Refused(900, "a stream is captured twice")
        captured.captured, captured.graph = self._get(graph, Graph), graph

    def _cuStreamEndCapture(self, stream: int, graph: int) -> None:
        captured = self._stream(stream)
        if captured.captured is None:
            raise Refused(900, "a stream is not being captured")
        captured.captured = None
        _out(ctypes.c_void_p, graph, captured.graph)

    def _cuStreamGetCaptureInfo_v3(
        self, stream: int, status: int, number: int, graph: int, nodes: int, edges: int, count: int
    ) -> None:
        captured = self._stream(stream)
        if captured.captured is None:
            raise Refused(INVALID_VALUE, "a stream is not being captured")
        _out(ctypes.c_int, status, 1)
        _out(ctypes.c_void_p, graph, captured.graph)
        _out(ctypes.c_size_t, count, len(captured.captured))

    def _cuGraphConditionalHandleCreate(
        self, handle: int, graph: int, context: int, default: int, flags: int
    ) -> None:
        self._get(graph, Graph)
        condition = Condition()
        self._new(condition, handle)

        def reset() -> None:
            condition.value = default

        self._get(graph, Graph).append(reset)

    def _cuGraphAddNode_v2(
        self, node: int, graph: int, nodes: int, edges: int, count: int, parameters: int
    ) -> None:
        outer = self._get(graph, Graph)
        if count != len(outer):
            raise Refused(INVALID_VALUE, "a node does not wait for what came before it")
        given = NodeParameters.from_address(parameters)
        if (given.type, given.size, given.context) != (13, 1, 1) or given.kind not in (0, 1):
            raise Refused(INVALID_VALUE, "this is no conditional node")
        condition: Condition = self._get(given.handle, Condition)
        body, place = Graph(), (ctypes.c_void_p * 1)()
        body.bodies = place
        self._new(body, ctypes.addressof(place))
        given.bodies = ctypes.addressof(place)
        loops = given.kind == 1

        def run() -> None:
            while condition.value:
                for operation in body:
                    operation()
                if not loops:
                    break

        outer.append(run)
        self._new(run, node)
        outer.loose = ctypes.c_void_p.from_address(node).value or 0

    def _cuStreamUpdateCaptureDependencies_v2(
        self, stream: int, nodes: int, edges: int, count: int, flags: int
    ) -> None:
        captured = self._stream(stream).captured
        if captured is None or count != 1 or flags != 1:
            raise Refused(INVALID_VALUE)
        if ctypes.c_void_p.from_address(nodes).value != captured.loose:
            raise Refused(INVALID_VALUE, "another node than the last one")
        captured.loose = 0

    def _cuGraphInstantiateWithFlags(self, executable: int, graph: int, flags: int) -> None:
        self._new(Executable(self._get(graph, Graph)), executable)

    def _cuGraphLaunch(self, executable: int, stream: int) -> None:
        for operation in self._get(executable, Executable):
            self._stream(stream).submit(operation)

    def _cuGraphExecDestroy(self, executable: int) -> None:
        self._remove(executable, Executable)

    def _cuGraphDestroy(self, graph: int) -> None:
        self._remove(graph, Graph)


def _packed(parameters: int, extra: int) -> bytes:
    """The packed arguments of a launch, from `extra` as cuLaunchKernel has it."""
    if parameters or not extra:
        raise Refused(_NOT_SUPPORTED, "the emulated driver takes packed arguments only")
    words = (ctypes.c_uint64 * 5).from_address(extra)
    if list(words[::2]) != [1, 2, 0]:
        raise Refused(INVALID_VALUE, "launch arguments are not packed as they should be")
    size = ctypes.c_size_t.from_address(words[3]).value
    return ctypes.string_at(words[1], size)
