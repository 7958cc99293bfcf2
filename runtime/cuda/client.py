"""What the tracer sees of a GPU: arrays put there and fetched, graphs compiled and run.

    client = client_of(Device("cuda", 0))
    x = client.put(np.arange(3.0))                 # a DeviceArray
    program = client.compile(graph)
    (y,) = program.run([x])                        # returns before y is there
    np.asarray(y)                                  # waits

A client has one stream, on which everything follows everything. What a program's checks find (an
index out of bounds) is known when it has run: it is raised by whoever waits for an array that
depends on it.
"""

from __future__ import annotations

import pickle
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...codegen.cuda.program import DeviceProgram
from ...codegen.cuda.target import CudaTarget
from ...codegen.cuda.tuning import Chooser
from ...codegen.device.compile import compile_device
from ...codegen.device.host_fallback import HostedOp
from ...codegen.module import KernelReport
from ...ir.forks import renewed
from ...ir.graph import Graph
from ...ir.record import replace
from ...ir.types import TensorType
from ..cache.disk import disk_cache
from ..cache.in_memory import SharedCode
from ..cache.installation import digest, installation
from ..compile import graph_key
from ..config import config
from ..devices import Device
from ..dlpack import CUDA
from ..options import CompileOptions
from ..recording import current, span
from .array import DeviceArray
from .assemble import architecture_number, ptx_for
from .cublas import BlasError, find_blas
from .driver import Context, DeviceInfo, survey
from .driver import devices as driver_devices
from .execute import DeviceExecutable, Run
from .foreign import Foreign, Holder
from .library import DeviceError
from .memory import DeviceMemory, Pool, context_pool
from .protocols import MANAGED, described, dlpack_device
from .tensor_maps import encode
from .transfers import download, upload
from .tuner import Tuner

Array = np.ndarray[Any, Any]
_NUMBERS = 1 << 10  # that are kept on a device
ALIGNMENT = 16  # what programs may rely on; foreign arrays that lie worse are copied


class LoadedProgram:
    """A compiled graph on a device; `name` is what profiles call it."""

    def __init__(self, client: Client, executable: DeviceExecutable, name: str) -> None:
        self.client = client
        self.name = name
        self.executable = executable
        program = executable.program
        self._results = [(k.shape, k.dtype) for k in program.outputs]
        self._in_place = program.in_place

    def run(self, arrays: Sequence[DeviceArray]) -> list[DeviceArray]:
        """Begin a run. Shapes, dtypes and the device of the arrays are those of the graph. Results may
        have the memory of arrays that were given to be overwritten. While that is recorded, each kernel
        is waited for."""
        if current() is None:
            return self._begin(arrays)
        name = f"program of {len(self.kernels)} kernels"
        with span("device", name, leaf=not self.kernels, function=self.name):
            results = self._begin(arrays, self.name)
            self.client.context.synchronize(self.client.stream)
        return results

    def _begin(
        self, arrays: Sequence[DeviceArray], watched: str | None = None
    ) -> list[DeviceArray]:
        client, executable = self.client, self.executable
        if client.holder:
            client.holder.sweep()
        addresses = []
        runs: tuple[Any, ...] = ()
        for array in arrays:
            memory = array.buffer
            addresses.append(memory.address)
            if memory.runs:
                runs += tuple(run for run in memory.pending() if run not in runs)
        outputs, status = executable.begin(addresses, client.stream, watched)
        if status is not None:
            runs += (Run(executable, [], status),)
        if runs:
            for buffer in outputs:
                buffer.runs = runs
        results = []
        kinds = iter(self._results)
        for buffer in outputs:
            results.append(DeviceArray(client, buffer, *next(kinds)))
        for output, number in self._in_place:
            donated = arrays[number]
            donated.buffer.runs = runs
            results.insert(
                output, DeviceArray(client, donated.buffer, donated.shape, donated.dtype)
            )
        return results

    @property
    def kernels(self) -> list[KernelReport]:
        return self.executable.program.reports

    @property
    def nbytes(self) -> int:
        return len(self.executable.program.ir)

    @property
    def module(self) -> DeviceProgram:
        return self.executable.program

    @property
    def llvm(self) -> str:
        """The LLVM IR of the kernels."""
        return self.executable.program.ir

    def asm(self) -> str:
        """The kernels as PTX for this device."""
        return self.client.context.ptx(self.executable.program.ir)


class _RefusedError(DeviceError):
    """The driver does not load what is for one architecture alone."""


class Client:
    """One device of this process."""

    def __init__(self, info: DeviceInfo) -> None:
        self.info = info
        self.device = Device("cuda", info.ordinal)
        self.emulated = info.emulated
        self.context: Context = info.context()
        self.pool: Pool = context_pool(self.context)
        self.stream = self.context.create_stream(ordered=True)
        self.holder = Holder(self.context, self.stream)
        self.pool.reclaimable(self.holder)
        self.target = target_of(info)
        self._numbers: dict[tuple[Any, bytes], DeviceArray] = {}
        self._executables: SharedCode[DeviceExecutable] = SharedCode()

    # Arrays

    def put(self, array: Array) -> DeviceArray:
        """A copy of an array of any layout. The array may change when this returns."""
        label = f"{array.dtype.name}{list(array.shape)}"
        buffer = upload(self.pool, array, self.stream, label)
        return DeviceArray(self, buffer, array.shape, array.dtype)

    def number(self, array: Array) -> DeviceArray:
        """As `put`, of a number; those that come again are there already."""
        key = array.dtype, array.tobytes()
        array_of_number = self._numbers.get(key)
        if array_of_number is None:
            if len(self._numbers) >= _NUMBERS:
                self._numbers.clear()
            array_of_number = self._numbers[key] = self.put(array)
        return array_of_number

    def copy(self, array: DeviceArray) -> DeviceArray:
        """The same elements in memory of their own."""
        label = f"{array.dtype.name}{list(array.shape)}"
        buffer = self.pool.allocate(array.nbytes, self.stream, label)
        self.context.copy(buffer.address, array.buffer.address, array.nbytes, self.stream)
        buffer.runs = array.buffer.runs
        return DeviceArray(self, buffer, array.shape, array.dtype)

    def fetch(self, memory: DeviceMemory, array: Array) -> None:
        """Fill a C-contiguous array with the elements."""
        memory.check()
        download(self.context, memory.address, array, self.stream)
        self.holder.sweep()

    def wait(self, memory: DeviceMemory) -> None:
        memory.check()
        self.context.synchronize(self.stream)
        self.holder.sweep()

    def adopt(self, array: Any) -> DeviceArray:
        """Another library's array in this device's memory, by DLPack or `__cuda_array_interface__`.

        Its memory is used as it is; if it is badly aligned, a copy is. Our stream waits for what its
        owner's stream does until now, and its owner gets it back when our stream is done with it.
        DeviceError if it is not on this device, or not C-contiguous.
        """
        self.holder.sweep()
        where = dlpack_device(array)
        if where is not None and where not in ((CUDA, self.device.index), (MANAGED, where[1])):
            raise DeviceError(f"the array is not on {self.device}: copy it there first")
        source = described(array, self.stream)
        if source.wait_for is not None:
            self.context.order(source.wait_for, self.stream)
        memory: DeviceMemory = Foreign(source.address, 0, source.owner, self.holder)
        adopted = DeviceArray(self, memory, source.shape, source.dtype)
        memory.nbytes = adopted.nbytes
        if adopted.nbytes and not source.contiguous:
            raise DeviceError(
                f"the array of strides {source.strides} is not C-contiguous: make it so first, with "
                "its own library's contiguous() or ascontiguousarray()"
            )
        if adopted.nbytes and source.address % ALIGNMENT:
            return self.copy(adopted)
        return adopted

    def let_wait(self, stream: int) -> None:
        """What is put on another stream from now on comes after our work so far."""
        self.context.order(self.stream, stream)

    # Programs

    def compile(self, graph: Graph, options: CompileOptions | None = None) -> LoadedProgram:
        """A program for the graph, whose inputs are C-contiguous; kept here and on disk."""
        options = options or CompileOptions()
        if options.autotune is None:
            options = replace(options, autotune=config.autotune)
        tuner = Tuner(self.context, self.stream) if options.autotune else None
        try:
            with_blas = replace(self.target, blas=self._blas(tuner))
            return self._compile(graph, with_blas, options, tuner)
        except BlasError as error:  # only the library itself knows what it can do
            if config.cublas == "on":
                warnings.warn(f"cuBLASLt is not used: {error}", RuntimeWarning, stacklevel=2)
            return self._compile(graph, self.target, options, tuner)

    def _blas(self, tuner: Tuner | None) -> str:
        """Which products are cuBLASLt's, as `CudaTarget.blas` says it."""
        if config.cublas == "on":
            return "on"
        wanted = tuner is not None and config.cublas == "auto"
        return "measured" if wanted and find_blas(self.context) is not None else ""

    def _compile(
        self, graph: Graph, target: CudaTarget, options: CompileOptions, tuner: Tuner | None
    ) -> LoadedProgram:
        key = program_key(graph_key(graph), target, options, tuner.identity if tuner else "")

        def make() -> DeviceProgram:
            return device_program(graph, target, options, tuner)

        try:
            executable = self._executables.get_or_make(
                key, lambda: self._load(self._from_disk(key, make))
            )
        except _RefusedError as error:
            self.target = replace(self.target, exact=False)
            warnings.warn(f"products do without warpgroups: {error}", RuntimeWarning, stacklevel=4)
            return self._compile(graph, replace(target, exact=False), options, tuner)
        return LoadedProgram(self, executable, graph.name)

    def _load(self, program: DeviceProgram) -> DeviceExecutable:
        if not program.arch.endswith("a"):
            return DeviceExecutable(program, self.context)
        try:
            executable = DeviceExecutable(program, self.context)
            if executable.described:
                trial = self.pool.allocate(1, self.stream, "a trial")
                for map in executable.described:
                    encode(self.context.cuda, map, trial.address)
            return executable
        except BlasError:
            raise
        except DeviceError as error:
            raise _RefusedError(f"the driver refuses {program.arch}, {error}") from error

    def _from_disk(self, key: str, make: Callable[[], DeviceProgram]) -> DeviceProgram:
        """A program from disk; made, and kept there, if there is none yet."""
        cache = disk_cache()
        data = cache.get(key)
        if data is not None:
            try:
                stored = pickle.loads(data)
            except Exception:  # whatever a pickle of another making may raise
                cache.discard(key)
            else:
                if isinstance(stored, DeviceProgram):
                    return stored
        program = make()
        # Functions of the user's are of this process.
        if all(isinstance(site.function, HostedOp) for site in program.callbacks):
            cache.put(key, pickle.dumps(program, pickle.HIGHEST_PROTOCOL))
        return program


def target_of(info: DeviceInfo) -> CudaTarget:
    """What code for a device is generated for."""
    version = 80 if info.emulated else ptx_for(info.arch, info.driver)
    exact = info.capability == (9, 0) and version >= 80 and config.cuda_warpgroups
    exact = exact and info.library.has("cuTensorMapEncodeTiled")
    return CudaTarget(architecture_number(info.arch), version, info.sms, exact=exact)


def program_key(graph: str, target: CudaTarget, options: CompileOptions, tuner: str) -> str:
    """The name of a program, in memory and on disk: a hash of all that makes it what it is."""
    return digest("device program", installation(), graph, target.key(), options.key(), tuner)


def device_program(
    graph: Graph,
    target: CudaTarget,
    options: CompileOptions | None = None,
    chooser: Chooser | None = None,
) -> DeviceProgram:
    """Optimised and compiled for a GPU that need not be here. Inputs are C-contiguous.

    `fastmath` admits the rules that are not exact, and TF32 in products of float32. `chooser`: see
    `compile_device`.
    """
    from ...ir.passes import optimise, storable
    from ...ir.passes.compositions import compose

    signature = graph.input_types, graph.output_types
    types = [t for t in graph.input_types if isinstance(t, TensorType)]
    options, verify = options or CompileOptions(), config.verify
    graph = optimise(storable(compose(graph)), verify=verify, fastmath=options.fastmath)
    target = replace(target, tf32=options.fastmath, deterministic=options.deterministic)
    alignment = [ALIGNMENT] * len(types)
    donations = options.donations
    return compile_device(graph, target, None, alignment, signature, donations, chooser, verify)


_clients: dict[tuple[int, int], Client] = {}
_making = renewed(threading.RLock())


def cuda_devices() -> list[Device]:
    """The GPUs of this machine that can be used; none if there is no driver."""
    try:
        return [Device("cuda", info.ordinal) for info in driver_devices()]
    except DeviceError:
        return []


def client_of(device: Device) -> Client:
    """The one client of a device. DeviceError, with the reason, if there is no such device."""
    gpus, left_out = survey()
    info = next((info for info in driver_devices() if info.ordinal == device.index), None)
    if info is None:
        names = ", ".join(f"cuda:{info.ordinal}" for info in gpus)
        why = "".join(f"; {reason}" for reason in left_out)
        raise DeviceError(f"there is no {device}; this machine has {names}{why}")
    key = (id(info.library), info.ordinal)
    with _making:
        if key not in _clients:
            _clients[key] = Client(info)
        return _clients[key]
