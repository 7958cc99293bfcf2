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
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....ir.forks import renewed
from ..assemble import AssembleError
from ..conditions import SETTERS, NodeParameters
from ..library import (
    EMULATED,
    INVALID_VALUE,
    NOT_READY,
    SIGNATURES,
    SUCCESS,
    DeviceError,
    DriverLibrary,
    function_type,
)
from . import tensor_maps
from .call_data import EmulatedKernel, Setters, SettingKernel, error_log, out, packed
from .device_memory import EmulatedMemory, RefusedCall
from .machine import FORWARDS, EmulatedModule, EmulationError, Order
from .streams import Condition, Event, Graph, GraphExec, Stream

_LAUNCH_FAILED = 719
_INVALID_DEVICE, _INVALID_CONTEXT, _INVALID_PTX = 101, 201, 218
_MAJOR, _MINOR, _SHARED_OPT_IN = 75, 76, 97  # CUdevice_attribute
_ATTRIBUTES = {16: 4, _SHARED_OPT_IN: 227 << 10, 38: 50 << 20, 39: 2048, 115: 1}
_NON_BLOCKING = 1  # CUstream_flags
_STATIC_SHARED_LIMIT = 48 << 10
_SECONDS_OF_A_BYTE = 1e-9  # of a copy or a fill


class EmulatedLibrary(DriverLibrary):
    """`memory`: bytes that the device has. `order`: in which order threads run from now on.
    `capabilities`: those of the devices, which share the memory.

    `contexts` are a thread's, the current one last; of those that are not the devices' own, as another
    library may have made them, `known_contexts` has to be told.
    """

    emulated = True
    # What is answered without a current context, besides what is asked of devices.
    anywhere = frozenset(
        """cuInit cuDriverGetVersion cuGetErrorName cuCtxPushCurrent_v2 cuCtxPopCurrent_v2
        cuMemPoolSetAttribute cuMemPoolTrimTo cuTensorMapEncodeTiled""".split()
    )

    def __init__(
        self,
        memory: int = 1 << 30,
        order: Order = FORWARDS,
        capabilities: Sequence[tuple[int, int]] = ((9, 0),),
    ) -> None:
        self.memory = EmulatedMemory(memory)
        self.order = order
        self.capabilities = capabilities
        self.known_contexts = set(range(1, len(capabilities) + 1))
        self._thread = threading.local()
        self.failure: BaseException | None = None
        self.launches = 0
        self.now = 0.0  # seconds on the device's clock
        self._lock = renewed(threading.RLock())
        legacy, per_thread = Stream(), Stream()
        self._objects: dict[int, Any] = {0: legacy, 1: legacy, 2: per_thread}
        self._meet(per_thread)
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
                    self._check_context(name)
                    method(self, *(a or 0 for a in arguments))
                except RefusedCall as error:
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

    @property
    def contexts(self) -> list[int]:
        if not hasattr(self._thread, "contexts"):
            self._thread.contexts = []
        contexts: list[int] = self._thread.contexts
        return contexts

    def _check_context(self, name: str) -> None:
        if name in self.anywhere or name.startswith("cuDevice"):
            return
        if not self.contexts or self.contexts[-1] > len(self.capabilities):
            raise RefusedCall(_INVALID_CONTEXT, "no context of the device is current")

    def _meet(self, stream: Stream) -> None:
        """It and the legacy default stream wait for each other."""
        legacy = self._objects[0]
        stream.peers.append(legacy)
        legacy.peers.append(stream)

    def _new(self, thing: Any, pointer: int) -> None:
        handle = 0x1000 + 16 * len(self._objects)
        while handle in self._objects:
            handle += 16
        self._objects[handle] = thing
        out(ctypes.c_void_p, pointer, handle)

    def _get(self, handle: int, kind: type) -> Any:
        thing = self._objects.get(handle)
        if not isinstance(thing, kind):
            raise RefusedCall(400, f"{handle:#x} is no {kind.__name__}")
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
        out(ctypes.c_int, version, 13000)

    def _cuDeviceGetCount(self, count: int) -> None:
        out(ctypes.c_int, count, len(self.capabilities))

    def _cuDeviceGet(self, device: int, ordinal: int) -> None:
        if ordinal >= len(self.capabilities):
            raise RefusedCall(_INVALID_DEVICE)
        out(ctypes.c_int, device, ordinal)

    def _cuDeviceGetName(self, name: int, size: int, device: int) -> None:
        ctypes.memmove(name, b"jitney's emulator\0", 18)

    def _cuDeviceGetAttribute(self, value: int, number: int, device: int) -> None:
        major, minor = self.capabilities[device]
        out(ctypes.c_int, value, {**_ATTRIBUTES, _MAJOR: major, _MINOR: minor}[number])

    def _cuDeviceTotalMem_v2(self, nbytes: int, device: int) -> None:
        out(ctypes.c_size_t, nbytes, self.memory.nbytes)

    def _cuDevicePrimaryCtxRetain(self, context: int, device: int) -> None:
        out(ctypes.c_void_p, context, 1 + device)

    def _cuCtxPushCurrent_v2(self, context: int) -> None:
        if context not in self.known_contexts:
            raise RefusedCall(_INVALID_CONTEXT)
        self.contexts.append(context)

    def _cuCtxPopCurrent_v2(self, context: int) -> None:
        if not self.contexts:
            raise RefusedCall(_INVALID_CONTEXT)
        out(ctypes.c_void_p, context, self.contexts.pop())

    def _cuCtxSynchronize(self) -> None:
        for stream in [s for s in self._objects.values() if isinstance(s, Stream)]:
            stream.drain()

    # Modules

    def _cuModuleLoadDataEx(
        self, module: int, image: int, count: int, options: int, values: int
    ) -> None:
        say = error_log(count, options, values)
        text = ctypes.string_at(image).decode()
        if text == SETTERS:
            self._new(Setters(), module)
            return
        try:
            loaded = EmulatedModule(text)
        except AssembleError as error:
            say(str(error))
            raise RefusedCall(_INVALID_PTX) from error
        for kernel, nbytes in loaded.host.static_shared.items():
            if nbytes > _STATIC_SHARED_LIMIT:
                say(f"{kernel} uses too much shared data ({nbytes} bytes)")
                raise RefusedCall(_INVALID_PTX)
        self._new(loaded, module)

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
            raise RefusedCall(500, f"the module has no kernel {kernel}")
        self._new(EmulatedKernel(loaded, kernel), function)

    def _cuFuncGetAttribute(self, value: int, number: int, function: int) -> None:
        loaded, kernel = self._get(function, EmulatedKernel)
        attributes = {0: 1024, 1: loaded.host.static_shared[kernel], 3: 0, 4: 0}
        out(ctypes.c_int, value, attributes[number])

    def _cuFuncSetAttribute(self, function: int, number: int, value: int) -> None:
        loaded, kernel = self._get(function, EmulatedKernel)
        most = _ATTRIBUTES[_SHARED_OPT_IN] - loaded.host.static_shared[kernel]
        if number != 8 or value > most:
            raise RefusedCall(INVALID_VALUE, f"{value} bytes of shared memory are too many")
        self._dynamic[function] = value

    def _cuLaunchKernel(
        self, function: int, gx: int, gy: int, gz: int, bx: int, by: int, bz: int,
        shared: int, stream: int, parameters: int, extra: int,
    ) -> None:  # fmt: skip
        setter = self._objects.get(function)
        if isinstance(setter, SettingKernel):
            self._set_condition(setter.name, packed(parameters, extra), stream)
            return
        loaded, kernel = self._get(function, EmulatedKernel)
        if not (0 < gx < 2**31 and 0 < gy < 2**16 and 0 < gz < 2**16):
            raise RefusedCall(INVALID_VALUE, f"a grid of {gx, gy, gz} blocks")
        if not (0 < bx * by * bz <= 1024 and bx and by and 0 < bz <= 64):
            raise RefusedCall(INVALID_VALUE, f"a block of {bx, by, bz} threads")
        limit = _STATIC_SHARED_LIMIT - loaded.host.static_shared[kernel]
        if shared > max(self._dynamic.get(function, 0), limit):
            raise RefusedCall(INVALID_VALUE, f"{shared} bytes of shared memory were not asked for")
        arguments = packed(parameters, extra)

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
        out(ctypes.c_size_t, free, self.memory.nbytes - self.memory.used())
        out(ctypes.c_size_t, total, self.memory.nbytes)

    def _cuMemAllocAsync(self, address: int, nbytes: int, stream: int) -> None:
        self._stream(stream)
        try:
            allocated = self.memory.allocate(nbytes)
        except RefusedCall:  # what this stream will have freed can be had
            self._stream(stream).drain()
            allocated = self.memory.allocate(nbytes)
        out(ctypes.c_uint64, address, allocated)

    def _cuMemFreeAsync(self, address: int, stream: int) -> None:
        self.memory.check(address, 1)
        self._stream(stream).submit(lambda: self.memory.free(address))

    def _cuMemAlloc_v2(self, address: int, nbytes: int) -> None:
        out(ctypes.c_uint64, address, self.memory.allocate(nbytes))

    def _cuMemFree_v2(self, address: int) -> None:
        self._cuCtxSynchronize()
        self.memory.free(address)

    def _cuDeviceGetDefaultMemPool(self, pool: int, device: int) -> None:
        out(ctypes.c_void_p, pool, 2)

    def _cuMemPoolSetAttribute(self, pool: int, number: int, value: int) -> None:
        return None

    def _cuMemPoolTrimTo(self, pool: int, keep: int) -> None:
        return None

    def _cuMemHostAlloc(self, address: int, nbytes: int, flags: int) -> None:
        block = (ctypes.c_ubyte * nbytes)()
        start = ctypes.addressof(block)
        self._pinned[start] = block
        out(ctypes.c_void_p, address, start)

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
                raise RefusedCall(INVALID_VALUE, "a copy between places that overlap")
            self.now += nbytes * _SECONDS_OF_A_BYTE
            ctypes.memmove(target, source, nbytes)

        self._stream(stream).submit(run)

    def _fill(self, target: int, type: Any, value: int, count: int, stream: int) -> None:
        nbytes = count * ctypes.sizeof(type)

        def run() -> None:
            self.memory.check(target, nbytes)
            if target % ctypes.sizeof(type):
                raise RefusedCall(INVALID_VALUE, "a place to fill is misaligned")
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
            raise RefusedCall(INVALID_VALUE, f"a tensor map of {rank} dims at {map:#x}")
        wide, narrow = ctypes.c_uint64 * rank, ctypes.c_uint32 * rank
        request = tensor_maps.Asked(
            kind,
            address,
            list(wide.from_address(sizes)),
            list(wide.from_address(strides))[: rank - 1],
            list(narrow.from_address(box)),
            list(narrow.from_address(steps)),
            *(interleave, swizzle, promotion, fill),
        )
        if why := tensor_maps.complaint(request):
            raise RefusedCall(INVALID_VALUE, f"{why}: {request}")
        tensor_maps.write(request, map)

    # Streams and events

    def _cuStreamCreate(self, stream: int, flags: int) -> None:
        created = Stream()
        if not flags & _NON_BLOCKING:
            self._meet(created)
        self._new(created, stream)

    def _cuStreamDestroy_v2(self, stream: int) -> None:
        gone = self._remove(stream, Stream)
        gone.drain()
        for peer in gone.peers:
            peer.peers.remove(gone)

    def _cuStreamSynchronize(self, stream: int) -> None:
        self._stream(stream).drain()

    def _cuStreamQuery(self, stream: int) -> None:
        queue = self._stream(stream).queue
        if queue:
            self._stream(stream).step()
            raise RefusedCall(NOT_READY)

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
        queried: Event = self._get(event, Event)
        if queried.happened < queried.asked:
            assert queried.stream is not None
            queried.stream.step()
            raise RefusedCall(NOT_READY)

    def _cuEventElapsedTime(self, milliseconds: int, start: int, end: int) -> None:
        first, last = self._get(start, Event), self._get(end, Event)
        if first.happened < first.asked or last.happened < last.asked:
            raise RefusedCall(NOT_READY)
        out(ctypes.c_float, milliseconds, (last.time - first.time) * 1e3)

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
            raise RefusedCall(900, "a stream is captured twice")
        captured.captured, captured.graph = self._get(graph, Graph), graph

    def _cuStreamEndCapture(self, stream: int, graph: int) -> None:
        captured = self._stream(stream)
        if captured.captured is None:
            raise RefusedCall(900, "a stream is not being captured")
        captured.captured = None
        out(ctypes.c_void_p, graph, captured.graph)

    def _cuStreamGetCaptureInfo_v3(
        self, stream: int, status: int, number: int, graph: int, nodes: int, edges: int, count: int
    ) -> None:
        captured = self._stream(stream)
        if captured.captured is None:
            raise RefusedCall(INVALID_VALUE, "a stream is not being captured")
        out(ctypes.c_int, status, 1)
        out(ctypes.c_void_p, graph, captured.graph)
        out(ctypes.c_size_t, count, len(captured.captured))

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
            raise RefusedCall(INVALID_VALUE, "a node does not wait for what came before it")
        description = NodeParameters.from_address(parameters)
        if (description.type, description.size, description.context) != (
            13,
            1,
            1,
        ) or description.kind not in (0, 1):
            raise RefusedCall(INVALID_VALUE, "this is no conditional node")
        condition: Condition = self._get(description.handle, Condition)
        body, bodies = Graph(), (ctypes.c_void_p * 1)()
        body.bodies = bodies
        self._new(body, ctypes.addressof(bodies))
        description.bodies = ctypes.addressof(bodies)
        loops = description.kind == 1

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
            raise RefusedCall(INVALID_VALUE)
        if ctypes.c_void_p.from_address(nodes).value != captured.loose:
            raise RefusedCall(INVALID_VALUE, "another node than the last one")
        captured.loose = 0

    def _cuGraphInstantiateWithFlags(self, executable: int, graph: int, flags: int) -> None:
        self._new(GraphExec(self._get(graph, Graph)), executable)

    def _cuGraphLaunch(self, executable: int, stream: int) -> None:
        for operation in self._get(executable, GraphExec):
            self._stream(stream).submit(operation)

    def _cuGraphExecDestroy(self, executable: int) -> None:
        self._remove(executable, GraphExec)

    def _cuGraphDestroy(self, graph: int) -> None:
        self._remove(graph, Graph)


EMULATED["driver"] = EmulatedLibrary
