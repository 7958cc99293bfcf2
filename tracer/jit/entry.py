"""One compiled specialisation of a function, and the call of it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from itertools import chain
from types import FunctionType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.lib.array_utils import byte_bounds

from ...ir.graph import Graph
from ..captures.captured_variables import CapturedVariables
from ..core.finish import finisher
from ..core.specs import Spec, Static
from ..core.traced import Traced
from ..data.accept import to_array
from ..data.generators import GeneratorKind
from ..data.lists import ListKind
from .computed_numbers import inputs_of
from .dispatch import Call

if TYPE_CHECKING:
    from ...runtime.call.callable import NativeProgram
    from ..checks.traps import Trapped
    from .function import JitFunction

Array = np.ndarray[Any, Any]


class Runnable(Protocol):
    """Compiled code: an Executable of the runtime, or the interpreter."""

    def run(self, arrays: Sequence[Any]) -> list[Any]: ...


class Interpreted:
    """Runs a graph op by op with NumPy: the permanent `backend="interpreter"`."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        from ...ir.interpreter import evaluate, watching
        from ..checks.capture import recorder

        native = [np.asarray(a, p.dtype) for a, p in zip(arrays, self.graph.params, strict=True)]
        inputs = {id(a) for a in native}
        outputs: list[Array] = []
        watcher = recorder()
        with nullcontext() if watcher is None else watching(watcher):
            results = evaluate(self.graph, native)
        for array in results:
            # Fresh, writeable arrays that share memory with nothing, as compiled code returns.
            shared = id(array) in inputs or not array.flags.owndata or not array.flags.writeable
            shared = shared or any(array is other for other in outputs)
            outputs.append(array.copy() if shared else array)
        return outputs


_MOST_WORK: Any = 1000  # steps in which NumPy says whether two arrays share an element
_ATTEMPTS = 8  # at writing a program for an entry, and programs that it may have
_PATIENCE = 16  # calls that come through Python before one attempt more
NEVER = 1 << 30
STALE: Any = object()  # what `Entry.fast` gives when a guard does not hold


class Refused(Exception):
    """A specialisation cannot take these arguments. Nothing has run."""


class Overlap(Refused):
    """The arguments overlap in a way that only NumPy itself can do justice to."""


class SameArrays(Refused):
    """Two arguments are one array and one of them is written: trace them as one."""


class ReadOnly(Refused):
    """An argument that the function assigns to is read-only."""


class Entry:
    """A traced and compiled call. `entry(leaves, hidden)` runs it.

    `check()` gives the hidden arrays if everything that the trace assumed about the outside still
    holds, and None otherwise.
    """

    on_device = False

    def __init__(
        self,
        call: Call,
        traced: Traced,
        captured: CapturedVariables,
        runnable: Runnable,
        reason: str,
        seconds: dict[str, float],
        donated: frozenset[int] = frozenset(),
    ) -> None:
        self.traced = traced
        self.captured = captured
        self.runnable = runnable
        self.trap: Trapped | None = getattr(runnable, "trap", None)
        self.reason = reason
        self.seconds = seconds
        self.signature = call.describe()
        self.specs = tuple(call.specs)
        self.names = tuple(call.leaf_names())
        self.structure = call.structure
        self._hits = 0  # of the calls that came through Python
        self.programs: list[NativeProgram] = []
        # At writing a program; those ask no computed numbers. And of how many calls the next one is.
        self.attempts = 0 if call.guard is None else NEVER
        self.attempt_at = 0
        self.owner: weakref.ref[JitFunction] | None = None
        captures = tuple(capture.outer for capture in traced.captures)
        self.check: Callable[[], tuple[Any, ...] | None] = captured.compile(captures)
        explicit = [i for i, spec in enumerate(call.specs) if isinstance(spec, Spec)]
        self.explicit = explicit
        self.all_explicit = len(explicit) == len(call.specs)
        inputs = (*call.specs, *captured.specs)
        self.scalars = any(isinstance(s, Spec) and s.scalar for s in inputs)
        # Of the inputs that are lists of numbers: the kinds.
        holders = [(k, getattr(call.specs[i], "holder", None)) for k, i in enumerate(explicit)]
        self.lists = {k: kind for k, kind in holders if isinstance(kind, ListKind)}
        self.effects = captured.effects
        self.whole = call.whole
        pairs = zip(call.objects, captured.objects, strict=True)
        self.subjects = {i: path.root for (i, _), path in pairs}
        self.mutated = traced.mutated
        self.overwritten = traced.overwritten
        self.written = [*self.mutated, *self.overwritten]
        self.changed_lists = [k for k in self.lists if k in self.written]
        self.donated = donated
        self.guard = call.guard
        # Functions among the arguments that are returned, or may be stored: no others like them.
        returned = [result.static for result in traced.results]
        stores = self.effects is not None and not self.effects.is_plain
        self.given = [
            (i, spec.value)
            for i, spec in enumerate(call.specs)
            if isinstance(spec, Static) and type(spec.value) is FunctionType
            if stores or any(spec.value is x for x in returned)
        ]
        self._run = runnable.run
        self.finish = self._finisher(traced)
        plain = self.all_explicit and self.effects is None
        self._direct = plain and not (self.written or self.scalars or self.lists)

    def _finisher(self, traced: Traced) -> Callable[[list[Any], Sequence[Any]], Any]:
        return finisher(traced)

    def when_traced(self) -> tuple[Any, ...]:
        """What `check` would have given when the function was traced."""
        captures = [capture.outer for capture in self.traced.captures]
        heap = self.captured.heap
        if heap is None:
            return (*self.captured.arrays(), *captures)
        inputs, nodes = heap.when_traced()
        return (*inputs, *self.captured.hidden_arrays(), *captures, nodes)

    @property
    def code(self) -> Runnable:
        return self.runnable

    def evict(self) -> bool:
        """Leave the function that this belongs to; False if it is busy."""
        function = self.owner() if self.owner else None
        return function is None or function._evict(self)

    @property
    def repeats(self) -> bool:
        """Whether a call that failed at a check can be made again, with the same end, to be told more of
        it: in which iterations that was."""
        ops = [*self.traced.graph.walk()]
        if ops and not any("consts" in op.attrs for op in ops):
            return False
        specs = (*self.specs, *self.captured.specs)
        drawn = any(isinstance(getattr(s, "holder", None), GeneratorKind) for s in specs)
        return not (drawn or self.donated or self.captured.heap or self.effects)

    @property
    def hits(self) -> int:
        return self._hits + sum(program.hits for program in self.programs)

    @property
    def wants_program(self) -> bool:
        """Whether calls come through Python for which a program might be written."""
        if self.attempts < _ATTEMPTS:
            return True
        return self.attempts < NEVER and self._hits >= self.attempt_at

    def begin_attempt(self) -> None:
        self.attempts += 1
        self.attempt_at = self._hits + _PATIENCE

    def add_program(self, program: NativeProgram) -> None:
        """One more; where there are many the oldest goes."""
        self.programs.append(program)
        if len(self.programs) > _ATTEMPTS:
            self._hits += self.programs.pop(0).hits

    def fast(self, leaves: Sequence[Any]) -> Any:
        """The result; STALE, and nothing done, if a guard does not hold."""
        hidden = self.check()
        if hidden is None or not self.admits(leaves, hidden):
            return STALE
        if not self._direct:
            return self(leaves, hidden)
        self._hits += 1
        inputs = [*leaves, *hidden]
        return self.finish(self._run(inputs), inputs)

    def admits(self, leaves: Sequence[Any], hidden: tuple[Any, ...]) -> bool:
        """Whether numbers that were compiled in are those of these leaves, and functions that are given
        back."""
        if any(
            getattr(leaves[i], "value", leaves[i]) is not function for i, function in self.given
        ):
            return False
        return self.guard is None or self.guard.holds(inputs_of(self.specs, leaves, hidden))

    def __call__(self, leaves: Sequence[Any], hidden: tuple[Any, ...]) -> Any:
        heap, effects = self.captured.heap, self.effects
        if heap is None or effects is None:
            return self._compute(leaves, hidden)
        *arrays, nodes = hidden
        return effects.finish(heap, self._compute(leaves, tuple(arrays)), nodes)

    def _compute(self, leaves: Sequence[Any], hidden: tuple[Any, ...]) -> Any:
        """What the function returns, or the leaves of its effects."""
        self._hits += 1
        if not self.all_explicit:
            leaves = [leaves[i] for i in self.explicit]
        inputs = [*leaves, *hidden]
        if self.scalars or self.lists:
            lists = self.lists
            try:
                arrays = [
                    lists[k].pack(leaf) if k in lists else to_array(leaf)
                    for k, leaf in enumerate(inputs)
                ]
            except OverflowError:
                raise Refused from None  # a Python int beyond int64: the dispatcher says so
        else:
            arrays = inputs
        if self.lists:
            self._check_lists(inputs)
        if self.written:
            self.check_overlap(arrays)
            lent = self._lent(arrays) if self.overwritten else arrays
            outputs = self._run(lent)
            finals = outputs[len(outputs) - len(self.mutated) :]
            for index, value in zip(self.mutated, finals, strict=True):
                np.copyto(arrays[index], value)
            for index in self.overwritten:
                if lent[index] is arrays[index]:
                    continue
                if index in self.donated:
                    inputs[index] = lent[index]
                else:
                    np.copyto(arrays[index], lent[index])
            for index in self.lists.keys() & self.written:
                self.lists[index].unpack(inputs[index], arrays[index])
            return self.finish(outputs, inputs)
        return self.finish(self._run(arrays), inputs)

    def _check_lists(self, inputs: Sequence[Any]) -> None:
        """A list that is written is given once, or traced as one: else raises SameArrays."""
        given = [id(inputs[k]) for k in self.lists]
        if any(given.count(id(inputs[k])) > 1 for k in self.changed_lists):
            raise SameArrays

    def _lent(self, arrays: Sequence[Array]) -> list[Array]:
        """The arrays, with copies for those that native code is to overwrite and cannot where they
        are: in the other byte order, or at addresses or with steps that do not fit their dtype."""
        from ...runtime.executable import Executable, prepare, shortened

        lent = list(arrays)
        if isinstance(self.runnable, Executable):
            module = self.runnable.module
            lengths = self.runnable.lengths_of(arrays)
            for index in self.overwritten:
                array, type = lent[index], shortened(module.inputs[index], lengths)
                prepared = prepare(array, type, module.input_strides[index])
                if prepared is not array and not np.may_share_memory(prepared, array):
                    lent[index] = prepared
        return lent

    def check_overlap(self, arrays: Sequence[Array]) -> None:
        """Writing to arrays needs them apart: raises SameArrays, Overlap or ReadOnly.

        One array in two places can be traced as one, unless it is donated in one of them."""
        from ...runtime.call.program import overlaps, written_apart

        for index in self.written:
            target = arrays[index]
            if not target.flags.writeable:
                raise Overlap if index in self.donated else ReadOnly
            if overlaps(target.shape, target.strides, target.itemsize):
                raise Overlap
        if len(arrays) == 1:
            return
        by_id: dict[int, list[int]] = {}
        for index, array in enumerate(arrays):
            if array.size:
                by_id.setdefault(id(array), []).append(index)
        written = {id(arrays[index]) for index in self.written}
        twice = [indices for key, indices in by_id.items() if key in written and len(indices) > 1]
        given = [(arrays[indices[0]], key in written) for key, indices in by_id.items()]
        ranges = [(*byte_bounds(array), is_written) for array, is_written in given]
        if not self.donated.isdisjoint(chain(*twice)) or not (
            written_apart(ranges) or _interleaved(given)
        ):
            raise Overlap
        if twice:
            raise SameArrays


def _interleaved(arrays: Sequence[tuple[Array, bool]]) -> bool:
    """Whether no array has a byte of one that is written, though the memory of one may begin before
    that of another ends: fields of a structured array, columns of a matrix."""
    for k, (array, written) in enumerate(arrays):
        for other, other_written in arrays[:k]:
            if written or other_written:
                try:
                    if np.shares_memory(array, other, max_work=_MOST_WORK):
                        return False
                except np.exceptions.TooHardError:
                    return False
    return True
