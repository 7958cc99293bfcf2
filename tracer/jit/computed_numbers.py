"""Numbers computed of the arguments' elements that are compiled in because tracing asked for them.

    @jt.jit
    def f(labels):
        return np.zeros(labels.max() + 1)     # a shape: no traced number can stand there

The first call is traced, asked for the number, computes it, and is traced again with it. The next ones
compute it first, and trace anew if another one comes out. It is the last resort: what can be compiled
for any number is.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...ir.graph import SourceLine, Value
from ...runtime.options import CompileOptions
from ..core.specs import Spec
from ..data.accept import to_array
from ..data.lists import ListKind
from ..data.shapes import ShapeDtype
from .dispatch import Call

if TYPE_CHECKING:
    from ..core.computations import Computation
    from ..core.trace import Trace

Array = np.ndarray[Any, Any]
_ROUNDS = 8  # in which tracing may ask for one more
_SIGNATURES = 1024  # kept per function; beyond that the oldest is asked for again


class Input(NamedTuple):
    """What a call has for a parameter of the graph."""

    value: Any
    holder: Any = None

    def array(self) -> Array:
        """As compiled code takes it."""
        packs = isinstance(self.holder, ListKind)
        return self.holder.pack(self.value) if packs else to_array(self.value)


def inputs_of(specs: Sequence[Any], leaves: Sequence[Any], hidden: Sequence[Any]) -> list[Input]:
    """The inputs of a function's graph: of the leaves those that are traced, then what it captures."""
    pairs = zip(specs, leaves, strict=True)
    traced = [Input(leaf, spec.holder) for spec, leaf in pairs if isinstance(spec, Spec)]
    return [*traced, *map(Input, hidden)]


class Number:
    """A number that is asked for, and the native code that computes it."""

    def __init__(self, computed: Computation) -> None:
        from ...runtime.compile import compile

        self.computed = computed
        self._runnable = compile(computed.graph, CompileOptions())

    @property
    def line(self) -> SourceLine | None:
        return self.computed.line

    def of(self, inputs: Sequence[Input]) -> Array:
        """The number for these inputs of the function."""
        (number,) = self._runnable.run([inputs[i].array() for i in self.computed.inputs])
        return np.asarray(number)


class ComputedNumbers:
    """For each signature of the arguments, the numbers that are compiled in, by their keys."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, dict[str, Number]] = {}
        self._rounds: dict[Hashable, int] = {}

    def of(self, call: Call) -> dict[str, Number]:
        """The numbers that tracing such a call has asked for."""
        return self._numbers.get(call.key, {}) if self._numbers else {}

    def add(self, call: Call) -> bool:
        """Note what the error asks for, for which the call could not be traced. False if that is nothing
        new, or cannot be computed."""
        rounds = self._rounds.get(call.key, 0)
        if not call.on_cpu or call.lengths or rounds == _ROUNDS:
            return False
        if any(isinstance(leaf, ShapeDtype) for leaf in call.leaves):
            return False
        known = self.of(call)
        new = {c.key: Number(c) for c in getattr(call.failure, "wanted", ()) if c.key not in known}
        if not new:
            return False
        self._rounds[call.key] = rounds + 1
        self._numbers[call.key] = {**known, **new}
        if len(self._numbers) > _SIGNATURES:
            oldest = next(iter(list(self._numbers)))
            self._numbers.pop(oldest, None)
            self._rounds.pop(oldest, None)
        return True


class Answers:
    """What tracing a call is told of the numbers that it asks for."""

    def __init__(self, numbers: Mapping[str, Number], inputs: Sequence[Input]) -> None:
        self._numbers = numbers
        self._inputs = inputs
        # By which ops, of how many values: most values are not even looked at.
        self._most = max(number.computed.size for number in numbers.values())
        self._ops = {_op(number.computed.graph.outputs[0]) for number in numbers.values()}
        self.given: dict[str, Array] = {}

    def known(self, value: Value, trace: Trace) -> Array | None:
        """The number that a value of a trace is; None if nothing has asked for it."""
        if _op(value) not in self._ops:
            return None
        from ..core.computations import computation  # a trace has loaded it

        computed = computation(value, trace, self._most)
        number = None if computed is None else self._numbers.get(computed.key)
        if computed is None or number is None:
            return None
        if computed.key not in self.given:
            self.given[computed.key] = number.of(self._inputs)
        return self.given[computed.key]

    def guard(self) -> Guard | None:
        """What has to hold for the trace to be right."""
        pairs = [(self._numbers[key], number) for key, number in self.given.items()]
        return Guard(tuple(pairs)) if pairs else None


def _op(value: Value) -> str:
    return "" if value.op is None else value.op.name


class Guard(NamedTuple):
    """Numbers that were compiled in, and what they were."""

    numbers: tuple[tuple[Number, Array], ...]

    def holds(self, inputs: Sequence[Input]) -> bool:
        """Whether they come out so again, in the order in which they were asked for: what was computed
        with one that is another now means nothing."""
        try:
            return all(np.array_equal(n.of(inputs), known) for n, known in self.numbers)
        except Exception:  # the trace that follows says what is wrong
            return False
