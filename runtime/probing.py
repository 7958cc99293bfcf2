"""Code with probes, run to see what each step of a call costs.

    executable = probed(graph, options, strides)
    costs = measure(executable, arrays)
    costs.steps[slot].seconds

    counting = probed(graph, options, strides, "trips")
    costs.with_runs(trips(counting, arrays)).steps[slot].runs      # of blocks of scalar code, too

The outline of such an executable's module says which slot is which step's (`codegen.program.probes`).
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..ir.graph import Graph
from ..ir.record import record, replace
from .call.program import native_dtype, overlaps
from .compile import Strides, compile, generate
from .executable import Executable, prepare, shortened
from .memory import arrays as memory
from .native.engine import engine_for
from .native.host import current_target
from .options import CompileOptions

if TYPE_CHECKING:
    from ..codegen.module import NativeModule

Array = np.ndarray[Any, Any]

_BUDGET = 0.2  # seconds that a measurement takes, if one call is not longer
_RUNS = 1000  # at most
_CLOCK_WORDS = 2  # before the counters; see `codegen.program.probes`


class StepCost(NamedTuple):
    """Of one step in one call: seconds, and how often it ran."""

    seconds: float
    runs: int


@record
class Costs:
    """What the fastest of `calls` calls cost: as a whole, and by slot."""

    calls: int
    steps: tuple[StepCost, ...]

    @property
    def seconds(self) -> float:
        return self.steps[0].seconds

    def with_runs(self, runs: Array) -> Costs:
        """The same times, with what was counted by other code of the program."""
        pairs = zip(self.steps, runs.tolist(), strict=True)
        return Costs(self.calls, tuple([StepCost(step.seconds, n) for step, n in pairs]))


def probed(
    graph: Graph, options: CompileOptions, input_strides: Strides, kind: str = "count"
) -> Executable:
    """The executable of a graph, with probes of a kind (`Target.probe`), for this CPU."""
    return compile(
        graph, options, input_strides, replace(current_target(), probe=kind, sanitize=False)
    )


def outlined(graph: Graph, options: CompileOptions, input_strides: Strides) -> NativeModule:
    """The program of a graph, with its outline, and no machine code of it."""
    target = replace(current_target(), probe="count", sanitize=False)
    return generate(graph, target, input_strides, options)[0]


def measure(executable: Executable, arrays: Sequence[Array]) -> Costs:
    """The costs of a call with these arrays, which stay as they are.

    Raises what the call raises.
    """
    run = _Runs(executable, arrays)
    run.once()  # pages, caches, threads
    first, began = run.once(), time.perf_counter()
    best, calls, last, ended = first, 1, first, began
    while calls < _RUNS and time.perf_counter() - began < _BUDGET:
        last, ended = run.once(), time.perf_counter()
        calls += 1
        if last.ticks[0] < best.ticks[0]:
            best = last
    if calls == 1:  # one of a long call: for the clock's rate
        last, ended = run.once(), time.perf_counter()
    period = (ended - began) / max(last.clock - first.clock, 1)
    steps = [
        StepCost(int(t) * period, int(n)) for t, n in zip(best.ticks, best.counts, strict=True)
    ]
    return Costs(calls, tuple(steps))


def trips(executable: Executable, arrays: Sequence[Array]) -> Array:
    """How often each step, and each block of scalar code, runs in a call; of code that counts these."""
    return _Runs(executable, arrays).once().counts


def vectorised(executable: Executable) -> set[str]:
    """Names of functions in the code that LLVM has made vectors of."""
    return engine_for(current_target()).vectorised(executable.module.text)


class _Counters(NamedTuple):
    clock: int
    ticks: Array
    counts: Array


class _Runs:
    """Calls of an executable on copies of its arrays."""

    def __init__(self, executable: Executable, arrays: Sequence[Array]) -> None:
        module = executable.module
        self._executable = executable
        count = executable.n_arguments
        lengths = executable.lengths_of(arrays[:count])
        self._given = [*arrays[:count], *executable.bound(lengths)]
        types = [shortened(type, lengths) for type in module.inputs]
        layouts = zip(self._given, types, module.input_strides, strict=True)
        self._inputs = [prepare(_copy(array), type, steps) for array, type, steps in layouts]
        types = [shortened(type, lengths) for type in module.outputs]
        self._outputs = [memory.empty(t.shape, native_dtype(t.dtype)) for t in types]
        self._scratch = memory.Scratch(module.arena_bytes)
        self._fresh = True

    def once(self) -> _Counters:
        module = self._executable.module
        if not self._fresh:
            for _, k in module.in_place:
                np.copyto(self._inputs[k], self._given[k])
        self._fresh = False
        address = self._scratch.address + module.probes_at
        nbytes = module.arena_bytes - module.probes_at
        ctypes.memset(address, 0, nbytes)
        self._executable._call_entry(self._inputs, self._outputs, self._scratch.address)
        words = np.frombuffer(ctypes.string_at(address, nbytes), np.int64)  # a copy
        counters = words[_CLOCK_WORDS:].reshape(-1, 2)
        return _Counters(int(words[0]), counters[:, 0], counters[:, 1])


def _copy(array: Array) -> Array:
    """Other memory of the same layout. One whose elements share memory is not written, and stays."""
    if overlaps(array.shape, array.strides, array.itemsize):
        return array
    return np.copy(array, order="K")
