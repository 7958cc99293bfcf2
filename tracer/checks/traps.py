"""Code that is watched: `jit(check={"nan", "inf", "overflow"})`, and the errors that come of it.

Watched code gives one more result: whether something may have gone wrong (`ir.passes.watch`). If so, the
interpreter runs the call again, on the arguments as they were, until it is found (`ir.culprit`). What a
call does beside computing is not done twice: prints are left out, callbacks give again what they gave,
generators of random numbers are put back.
"""

from __future__ import annotations

import copy
import threading
from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ...ir.graph import Graph, Op, SourceLine
from ...ir.ops.control.callbacks import PythonFunction
from ...ir.ops.control.draws import object_at
from ...ir.passes.regions import map_regions, substituted
from ...ir.types import type_of
from ...runtime.config import config
from ..messages import errors
from ..messages.errors import complain
from ..messages.source import shown_file

if TYPE_CHECKING:
    from ...codegen.module import NativeModule
    from ...ir.culprit import Finding

Array = np.ndarray[Any, Any]
_MOST_TRIPS = 3  # loops that a message names


class Runs(Protocol):
    """Compiled code, or the interpreter."""

    def run(self, arrays: Sequence[Any]) -> list[Any]: ...


class Trapped:
    """Watched code of a graph. `run(arrays)` gives what the graph gives, or raises.

    graph       as it was traced
    executable  of the watched graph, whose last output tells
    generators  the parameters that are handles of generators
    """

    def __init__(
        self,
        graph: Graph,
        kinds: Collection[str],
        executable: Runs,
        log: CallbackLog,
        generators: Sequence[int] = (),
    ) -> None:
        self.graph = graph
        self.kinds = kinds
        self.executable = executable
        self.generators = generators
        self._log = log
        # Whether a call that is not through may be begun again.
        self.repeats = not any(op.definition.effect and op.name != "assert" for op in graph.walk())

    @property
    def trap(self) -> Trapped:
        """Itself: other code of an entry has none."""
        return self

    @property
    def module(self) -> NativeModule | None:
        return getattr(self.executable, "module", None)

    @property
    def nbytes(self) -> int:
        return getattr(self.executable, "nbytes", 0)

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        before = [_state(object_at(arrays[k])) for k in self.generators]
        self._log.begin()
        *outputs, told = self.executable.run(arrays)
        if told:
            self._look(arrays, before)
        return outputs

    def _look(self, arrays: Sequence[Array], before: list[Callable[[], None]]) -> None:
        from ...ir.culprit import culprit

        after = [_state(object_at(arrays[k])) for k in self.generators]
        for put_back in before:
            put_back()
        native = [np.asarray(a, p.dtype) for a, p in zip(arrays, self.graph.params, strict=True)]
        found = culprit(self.graph, native, self.kinds, self._log.stand_in, is_allowed)
        for put_back in before if found is not None else after:
            put_back()
        if found is not None:
            refuse(found)


def is_allowed(line: SourceLine) -> bool:
    """Whether `jt.config.allow` names a scope around a line."""
    scopes = config.allow
    return any(f"/{scope.strip('/')}/" in f"/{line.scope}/" for scope in scopes)


class CallbackLog:
    """What the callbacks of a program gave in the latest call of each thread."""

    def __init__(self) -> None:
        self._given = threading.local()

    def begin(self) -> None:
        self._given.results = {}

    def recording(self, graph: Graph) -> Graph:
        """`graph` with callbacks of which it is known what they gave."""

        def recorded(b: Any, op: Op, operands: Any) -> Any:
            if op.name != "io_callback" or not op.attrs["function"].results:
                return None
            own: PythonFunction = op.attrs["function"]
            kept = PythonFunction(self._recorder(own), own.results, own.name, own.each, own.raises)
            return b.append(op.definition, operands, {"function": kept}).results

        return map_regions(substituted(graph, recorded), self.recording)

    def _recorder(self, function: PythonFunction) -> Callable[..., Any]:
        def call(*arrays: Any) -> Any:
            results = function(*arrays)
            self._given.results.setdefault(function, deque()).append(results)
            return results

        return call

    def stand_in(self, op: Op) -> Callable[..., Any] | None:
        """What runs instead of an op that must not happen twice."""
        if op.name == "assert":
            return lambda *operands: (None,)  # it held
        if op.name != "io_callback":
            return None
        function = op.attrs["function"]
        if not function.results:
            return lambda *operands: (None,)
        return lambda *operands: (*self._given.results[function].popleft(), None)


def _state(generator: Any) -> Callable[[], None]:
    """Puts a generator back to where it is now."""
    if hasattr(generator, "getstate"):
        state = generator.getstate()
        return lambda: generator.setstate(state)
    bits = getattr(generator, "bit_generator", None)
    if bits is None:
        state = generator.get_state()
        return lambda: generator.set_state(state)
    state = copy.deepcopy(bits.state)
    return lambda: setattr(bits, "state", state)


def refuse(found: Finding) -> None:
    """Raise the error about what was found."""
    op, bad = found.op, found.bad
    line = op.loc
    place = tuple(int(i) for i in np.argwhere(bad)[0]) if bad.ndim else ()
    name = f"{line.role} ({op.name})" if line and line.role else op.name
    what = f"{name} made {_KINDS[found.kind]}"
    lanes = min(line.lanes if line else 0, bad.ndim)
    if lanes:
        examples = " of example ".join(map(str, reversed(place[:lanes])))
        what += f" for example {examples} of vmap"
    if bad.ndim > lanes:
        what += f" in {int(bad.sum())} of {bad.size} elements, first at {list(place[lanes:])}"
    details = [
        f"{_ORDINALS[k]} operand: {statistics(operand, place)}"
        for k, operand in enumerate(found.operands[: len(_ORDINALS)])
        if isinstance(operand, (np.ndarray, np.generic))
    ]
    for loop, trip in found.trips[-_MOST_TRIPS:]:
        at = f"{shown_file(loop.loc.file)}:{loop.loc.line}" if loop.loc else "an unknown line"
        details.append(f"iteration {trip} of the loop at {at}")
    kind = errors.IntegerOverflowError if found.kind == "overflow" else errors.NonFiniteError
    complain(kind, what, _REMEDIES[found.kind], details=details, line=line)


_KINDS = {"nan": "nan", "inf": "inf", "overflow": "integers that do not fit"}
_ORDINALS = ("first", "second", "third")

_REMEDIES = {
    "nan": "keep its operands where it is defined, or choose with np.where what is used.",
    "inf": "keep its operands where the result is finite, or choose with np.where what is used.",
    "overflow": "compute in a wider dtype (x.astype(np.int64)), or in floats.",
}


def statistics(value: Any, place: tuple[int, ...] = ()) -> str:
    """Type and range of an array, what of it is not finite, and one element."""
    array = np.asarray(value)
    text = str(type_of(array))
    if array.ndim == 0:
        return f"{text} {array.item()!r}"
    if array.size == 0:
        return f"{text}, no elements"
    if array.dtype.kind in "fiu":
        finite = array[np.isfinite(array)]
        if finite.size:
            text += f", {finite.min().item():.6g} to {finite.max().item():.6g}"
        for name, test in (("nan", np.isnan), ("inf", np.isinf)):
            count = int(test(array).sum())
            if count:
                text += f", {count} {name}"
    if place and len(place) == array.ndim and all(map(np.less, place, array.shape)):
        text += f"; there {array[place].item()!r}"
    return text
