"""Loops over ordinary ranges that would be long programs when written out become loop ops.

    for i in range(100_000):        # the first one is traced as it stands; how many ops it takes tells
        x = f(x, y[i])              # whether the others are worth a loop, in which `i` is traced

What an iteration does with a number in Python (an index of a list, a shape, a key) needs the number
itself, and then the loop is written out as before. So it is where a Python integer might outgrow 64
bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ...ir.graph import Graph, Op, Value
from ...ir.types import TensorType, is_integer
from ..control.regions import TracedRegion
from ..core.trace import require_trace
from ..messages import errors
from ..messages.errors import complain
from .beginnings import put_back, storages_of
from .surroundings import Surroundings
from .variables import Containers, State, is_traced, shown

if TYPE_CHECKING:
    from .loops.traced import TracedLoop

MUCH = 400  # ops that are not worth being written out
_BRANCH = 5
_ELEMENT = 12
FEW = 200  # iterations that are written out where they must be
_LEADS = frozenset(
    "add sub select convert minimum maximum remainder floor_divide negative abs".split()
)
_HELD = frozenset("remainder fmod bitwise_and lt le gt ge eq ne argmin argmax".split())


class Watch:
    """How many ops the iterations of an ordinary loop have taken. `body` tells which loop it is."""

    def __init__(self, body: Callable[..., Any]) -> None:
        self.trace = require_trace()
        self.start = len(self.trace.graph.ops)
        self.code = body.__code__
        root = self.trace
        while root.parent is not None:
            root = root.parent
        self.decided = root.rolled

    @property
    def whole(self) -> Any:
        """Of what kinds the values were when a loop of this body became an op with its first iteration;
        False: it could not. None: nobody has tried."""
        return self.decided.get(self._wholly)

    @whole.setter
    def whole(self, kinds: Any) -> None:
        self.decided[self._wholly] = kinds

    @property
    def _wholly(self) -> tuple[Any, str]:
        return self.code, "whole"

    def many(self, factor: int) -> bool:
        """Whether `factor` times the ops so far are many, and a loop has not been tried in vain."""
        if factor < 1 or self.trace is not require_trace():
            return False
        if self.code in self.decided:
            return self.decided[self.code]
        return _work(self.trace.graph.ops[self.start :]) * factor > MUCH

    def roll(self, build: Callable[[], None], state: State) -> bool:
        """Call `build`, which appends a loop. False if that cannot be; then nothing has changed."""
        if not Surroundings(state.roots()).complete:
            self.decided[self.code] = False
            return False
        return self.attempt(build, state) is None

    def attempt(self, build: Callable[[], None], state: State) -> Exception | None:
        """Call `build`. Where it raises nothing has changed, and the exception is returned."""
        trace = self.trace
        count, token, entry = len(trace.graph.ops), trace.token, state.get()
        containers = Containers(list(state.containers().values()))
        surroundings = Surroundings(state.roots())
        storages = storages_of(state, surroundings, containers)
        try:
            build()
        except (
            errors.UnboundedLengthError
        ):  # with a bound it can be a loop; written out it cannot be more
            raise
        except Exception as error:
            self.decided[self.code] = False
            put_back(storages)
            state.set(entry)
            containers.restore()
            surroundings.restore()
            trace.token = token
            trace.graph.ops[count:] = [op for op in trace.graph.ops[count:] if not op.regions]
            return error
        self.decided[self.code] = True
        return None

    @property
    def refused(self) -> bool:
        """Whether a loop of this body has been tried in vain."""
        return self.decided.get(self.code) is False


def needs_numbers(error: Exception) -> bool:
    """Whether a body failed as an op because it does in Python what needs the number of the
    iteration, or another value for each iteration: an index of a list, a key, a list that grows."""
    kinds = (errors.TracerIndexError, errors.TracerConversionError, errors.CarryError, KeyError)
    return isinstance(error, kinds) or (type(error) is TypeError and "unhashable" in str(error))


def _work(ops: Iterable[Op]) -> int:
    """How many ops there are; branches and loops take the compiler longer, and elements that are
    written one by one."""
    return sum(
        1
        + sum(_BRANCH + _work(region.ops) for region in op.regions)
        + (_ELEMENT if op.definition.updates and op.operands[1].tensor.size == 1 else 0)
        for op in ops
    )


def traced_test(go_on: Any) -> Any:
    """The condition of a loop that is to become an op: what does not change might never do."""
    if not is_traced(go_on):
        raise NotRolled
    return go_on


class NotRolled(Exception):
    """The loop is better written out."""


def check_numbers(loop: TracedLoop, region: TracedRegion) -> None:
    """Raise Refused where a Python integer might outgrow 64 bits, which written out it does not."""
    graph = region.traced.graph
    outs = [out for carried in loop.carried.values() for out in carried.types]
    numbers = {p for p, out in zip(graph.params, outs, strict=False) if out.weak == "i"}
    counters = {p for (key, carried), p in _parameters(loop, graph) if key == loop.counter}
    reached = _reached(graph.ops, numbers)
    for op in graph.ops:
        grows = op.name in ("power", "left_shift") and _number(op.results[0])
        if grows and any(v in reached for v in op.operands):
            raise NotRolled
    for value, out in zip(region.values, outs, strict=False):
        if out.weak == "i" and not _steps(value, _reached(graph.ops, numbers - counters)):
            raise NotRolled


def _parameters(loop: TracedLoop, graph: Graph) -> Iterable[tuple[Any, Value]]:
    entries = [(key, c) for key, c in loop.carried.items() for _ in c.types]
    return zip(entries, graph.params, strict=False)


def _number(value: Value) -> bool:
    return isinstance(value.type, TensorType) and not value.shape and is_integer(value.dtype)


def _reached(ops: Iterable[Op], start: set[Value]) -> set[Value]:
    """The values that are computed of those of `start`."""
    reached = set(start)
    for op in ops:
        if any(v in reached for v in op.operands):
            reached.update(op.results)
    return reached


def _steps(value: Value, carried: set[Value]) -> bool:
    """Whether a number changes, in an iteration, by what does not depend on carried numbers."""
    op = value.op
    if op is None or value not in carried or not _number(value) or value in require_trace().exact:
        return True
    if op.regions:
        operands = op.operands[1:] if op.name == "cond" else op.operands
        return all(_region_steps(region, operands, carried) for region in op.regions)
    if op.name in ("add", "sub") and all(v in carried for v in op.operands):
        return False
    return op.name in _LEADS and all(_steps(v, carried) for v in op.operands)


def _region_steps(region: Graph, operands: Iterable[Value], carried: set[Value]) -> bool:
    pairs = zip(region.params, operands, strict=False)
    inside = _reached(region.ops, {p for p, v in pairs if v in carried and _number(p)})
    return all(_steps(v, inside) for v in region.outputs)


def refuse_growth(loop: TracedLoop, region: TracedRegion) -> None:
    """TransformError where a Python integer grows exponentially, as in `a, b = b, a + b` or `n *= i`: it
    soon leaves the 64 bits that a traced one has, and with arguments compiled in the loop may be written
    out. Without any it raises then. What a remainder or a branch holds back may stay."""
    graph = region.traced.graph
    if not _has_numbers():
        return
    entries = list(_parameters(loop, graph))
    outs = [out for carried in loop.carried.values() for out in carried.types]
    numbers = [
        (param, value, carried.name)
        for ((key, carried), param), value, out in zip(entries, region.values, outs, strict=False)
        if out.weak == "i" and key != loop.counter
    ]
    sources = {param: _sources(value, {p for p, _, _ in numbers}) for param, value, _ in numbers}
    for param, value, name in numbers:
        circle = {
            p for p in sources if p in _closure(param, sources) and param in _closure(p, sources)
        }
        if _multiplies(value, circle):
            complain(
                errors.TransformError,
                f"{shown(name)} is a Python integer that may outgrow 64 bits in {loop.where}, and "
                "compiled code has no larger ones",
                "start it as np.int64(...), which wraps as NumPy's integers do, or as a float.",
                line=loop.line,
            )


def _has_numbers() -> bool:
    """Whether there are integers among the arguments that could be compiled in."""
    root = require_trace()
    while root.parent is not None:
        root = root.parent
    return any(_number(param) for param in root.graph.params)


def _sources(value: Value, of: set[Value]) -> set[Value]:
    """Those of some parameters that a value grows with: a remainder does not grow."""
    pending, seen = [value], {value}
    while pending:
        value = pending.pop()
        op = value.op
        if op is None or op.name in _HELD or value in require_trace().exact:
            continue
        operands = op.operands[:1] if op.name == "gather" else op.operands  # not with its index
        new = [v for v in operands if v not in seen]
        seen.update(new)
        pending += new
    return seen & of


def _closure(start: Value, sources: dict[Value, set[Value]]) -> set[Value]:
    """What a parameter depends on after any number of iterations."""
    pending, seen = [start], set[Value]()
    while pending:
        new = sources[pending.pop()] - seen
        seen |= new
        pending += new
    return seen


def _multiplies(value: Value, circle: set[Value]) -> bool:
    """Whether a number is one of `circle` times something, or the sum of two of them."""
    op = value.op
    if op is None or not _number(value) or value in require_trace().exact:
        return False
    inside = [v for v in op.operands if _sources(v, circle)]
    if op.name in ("mul", "power", "left_shift"):
        return bool(inside)
    if op.name in ("add", "sub"):
        return len(inside) > 1 or any(_multiplies(v, circle) for v in inside)
    return op.name in ("negative", "convert") and any(_multiplies(v, circle) for v in inside)
