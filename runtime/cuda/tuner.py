"""The autotuner: ways of doing a step are run on the device, and the fastest is remembered.

    program = device_program(graph, target, options, Tuner(context, stream))

Each way is compiled and run alone, over buffers of its own: once to warm up, once to become a graph,
then several rounds in which the ways take turns, `REPEATS` times in a row between two events; the best
round counts. Caches are not flushed: what a step reads has most often just been written, and what is
larger than the cache comes from memory here too. Floats are random, integers are zeros (which are
indices that exist).

What was found is kept on disk under the device, the driver, the family of kernels and the code of the
first way, so another process measures nothing. Without a disk it is kept for this process.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from ...codegen.cuda.program import Buffer as Layout
from ...codegen.cuda.program import DeviceProgram
from ...codegen.cuda.tuning import Chooser
from ...ir.forks import renewed
from ...ir.record import replace
from ..cache.disk import disk_cache
from ..cache.installation import digest, installation
from ..config import config
from .cublas import BlasError, find_blas
from .driver import Context
from .execute import DeviceExecutable
from .library import OUT_OF_MEMORY, DeviceError
from .memory import DeviceBuffer, context_pool
from .transfers import upload_to

T = TypeVar("T")
WAYS = 8  # that are tried, at the most
EMULATED_WAYS = 3
REPEATS = 10  # of a step between two events
ROUNDS = 5
HOPELESS = 1.5  # times what the best one takes: such a way has no more rounds
_BLOCK_BYTES = 1 << 20  # of random numbers; larger buffers repeat them

_choices: dict[str, str] = {}  # names of ways by key, for processes without a disk
_measuring = renewed(threading.RLock())


class Tuner(Chooser):
    """Chooses by the clock of one device."""

    wants_all = True

    def __init__(self, context: Context, stream: int) -> None:
        self._context = context
        self._stream = stream
        self.emulated = context.info.emulated
        self.most = EMULATED_WAYS if self.emulated else WAYS
        self.measured = 0  # ways that were run: none, if all was remembered

    @property
    def identity(self) -> str:
        """What results are remembered under, besides the steps themselves."""
        info = self._context.info
        blas = find_blas(self._context) if config.cublas != "off" else None
        library = f" cuBLASLt {blas.version}" if blas else ""
        return f"{info.name} {info.arch} {info.sms} driver {info.driver}{library}"

    def choose(
        self,
        family: str,
        what: str,
        ways: Mapping[str, T],
        trial: Callable[[T], DeviceProgram],
    ) -> T:
        ways = dict(islice(ways.items(), self.most))
        default, *others = ways
        if not others:
            return ways[default]
        first = trial(ways[default])
        text = "\n".join([first.ir, repr(first.steps), *ways])
        key = digest("tuned", installation(), self.identity, family, what, text)
        name = _recall(key)
        if name not in ways:
            with _measuring:
                seconds = self._measure({n: _maker(trial, way) for n, way in ways.items()})
            name = min(seconds, key=seconds.__getitem__, default=default)
            if seconds:
                _remember(key, family, what, name, seconds)
        return ways[name]

    # Measuring

    def _measure(self, trials: Mapping[str, Callable[[], DeviceProgram]]) -> dict[str, float]:
        """Seconds of each way that runs; of none if there is no memory to run them."""
        rounds, repeats = (1, 1) if self.emulated else (ROUNDS, REPEATS)
        memory: dict[tuple[int, str], DeviceBuffer] = {}
        runs: dict[str, Callable[[], float]] = {}
        seconds: dict[str, float] = {}
        try:
            for name, make in trials.items():
                try:
                    run = self._timed(make(), memory, repeats)
                    seconds[name] = run()
                    self.measured += 1
                except BlasError:
                    continue
                except DeviceError as error:
                    if error.code not in _REFUSED:
                        raise
                    continue
                runs[name] = run
                if rounds > 1:
                    run()  # becomes a graph
                    seconds[name] = run()
            for _ in range(rounds - 1):
                best = min(seconds.values(), default=0.0)
                for name, run in runs.items():
                    if seconds[name] <= HOPELESS * best:
                        seconds[name] = min(seconds[name], run())
        except DeviceError as error:
            if error.code != OUT_OF_MEMORY:
                raise
            return {}
        return seconds

    def _timed(
        self, program: DeviceProgram, memory: dict[tuple[int, str], DeviceBuffer], repeats: int
    ) -> Callable[[], float]:
        """A function that runs a trial and gives the seconds of one time. Trials share `memory`."""
        context, stream = self._context, self._stream
        repeated = replace(program, steps=program.steps * repeats)
        executable = DeviceExecutable(repeated, context)
        addresses = []
        for number, layout in enumerate(program.inputs):
            key = number, repr(layout)
            if key not in memory:
                memory[key] = self._random(layout)
            addresses.append(memory[key].address)

        def run() -> float:
            begin, end = (context.create_event(timing=True) for _ in range(2))
            try:
                context.record_event(begin, stream)
                executable.run(addresses, stream)
                context.record_event(end, stream)
                context.synchronize_event(end)
                return context.elapsed(begin, end) / repeats
            finally:
                context.destroy_event(begin)
                context.destroy_event(end)

        return run

    def _random(self, layout: Layout) -> DeviceBuffer:
        """Memory full of numbers."""
        context, stream = self._context, self._stream
        buffer = context_pool(context).allocate(layout.nbytes, stream, "memory of the autotuner")
        if not layout.dtype.name.startswith(("float", "bfloat", "complex")):
            context.fill(buffer.address, layout.nbytes, 1, 0, stream)
            return buffer
        count = min(layout.nbytes, _BLOCK_BYTES) // layout.dtype.itemsize
        block = np.random.default_rng(0).uniform(-1, 1, count).astype(layout.dtype)
        upload_to(context, buffer.address, block, stream)
        done = block.nbytes
        while 0 < done < layout.nbytes:
            size = min(done, layout.nbytes - done)
            context.copy(buffer.address + done, buffer.address, size, stream)
            done += size
        return buffer


# Launches that ask for more than a multiprocessor has, and modules that the driver's compiler refuses.
_REFUSED = (1, 200, 209, 218, 701)


def _maker(trial: Callable[[T], DeviceProgram], way: T) -> Callable[[], DeviceProgram]:
    return lambda: trial(way)


# Remembering


def _recall(key: str) -> str | None:
    """The name of the way that was the fastest; None if nobody knows, or the entry is damaged."""
    choice = _choices.get(key)
    if choice is not None:
        return choice
    cache = disk_cache()
    data = cache.get(key)
    if data is None:
        return None
    try:
        record = json.loads(data)
        name = record["way"]
    except (ValueError, TypeError, KeyError):
        cache.discard(key)
        return None
    return name if isinstance(name, str) else None


def _remember(key: str, family: str, what: str, name: str, seconds: Mapping[str, float]) -> None:
    _choices[key] = name
    record: dict[str, Any] = {"family": family, "what": what, "way": name}
    record["seconds"] = {n: t for n, t in seconds.items() if math.isfinite(t)}
    disk_cache().put(key, json.dumps(record).encode())
