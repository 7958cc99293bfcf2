"""Does a graph make NaN, infinity, or integers that do not fit? One more output tells.

    graph f(%x: f64[8]) -> f64[8] {          graph f(%x: f64[8]) -> (f64[8], bool[]) {
      %y = log %x                       ->     %y = log %x
      return %y                                %n = isnan %y
    }                                          %a = any %n axes=[0]
                                               return %y, %a
                                             }

NaN spreads: what any op makes of it is NaN again, until it leaves the graph, or something else than a
float is made of it (a comparison, an integer). It is looked for there only: tests of values that are
being written anyway cost little. Infinity may also get lost in a division or an exponential, so what
goes there is looked at, too. What a `select` does not take, or nobody uses, does not count. Integers are
looked at where they are computed.

That the answer is yes says no more than that it is worth looking (see `ir.culprit`): what was given may
have had NaN in it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ..build import Builder
from ..graph import Graph, Op, Value, uniform
from ..integers.interval_rules import Interval
from ..integers.intervals import fits, of_loop
from ..opdef import OPS
from ..ops.control.watching import WATCHED
from ..types import BOOL, F32, F64, TensorType, is_complex, is_inexact
from .attention import PLAIN, recognise_attention
from .dead import eliminate_dead_code
from .inline_calls import inline_calls

KINDS = ("inf", "nan", "overflow")
"""What can be looked for in the values of a graph."""

Kinds = Collection[str]


WATCHED_FROM = 256  # elements of an array that is looked at where it is computed


def watch(graph: Graph, kinds: Kinds, compiled: bool = True) -> Graph | None:
    """`graph` with one more output, a bool that may be true only if there is something to find. None if
    nothing in it can be of these kinds. Code that is not `compiled` has outputs alone to tell it."""
    graph = eliminate_dead_code(inline_calls(graph))
    if "inf" in kinds:
        graph = eliminate_dead_code(recognise_attention(graph))
    return _Watching(frozenset(kinds), compiled).outermost(graph)


def is_float(value: Value) -> bool:
    """Whether elements of a value can be NaN."""
    return isinstance(value.type, TensorType) and is_inexact(value.dtype)


def wraps(op: Op) -> bool:
    """Whether an op computes integers that may not fit."""
    kinds = {v.dtype.kind for v in op.results if isinstance(v.type, TensorType)}
    return op.definition.wraps and kinds <= {"i", "u"}


def only_moves(op: Op) -> bool:
    """Whether the elements of the result are elements of operands."""
    own = {v.type.dtype for v in op.results if isinstance(v.type, TensorType)}
    floats = {v.dtype for v in op.operands if is_float(v)}
    return op.definition.only_moves(op.attrs) and floats <= own


def chooses(op: Op) -> bool:
    """Whether it is as it should be that an element of an operand gets lost."""
    return only_moves(op) or op.definition.idempotent or op.definition.asks or _tests_nan(op)


def _tests_nan(op: Op) -> bool:
    """`x != x`, as some write it, or `x == np.inf`."""
    if len(op.operands) != 2 or any(map(is_float, op.results)):
        return False
    found = [uniform(v) for v in op.operands if is_float(v)]
    infinite = any(number is not None and not np.isfinite(number) for number in found)
    return op.operands[0] is op.operands[1] or infinite


def keeps(op: Op, kind: str) -> bool:
    """Whether what is of a kind in an operand is seen in the result, too."""
    if not any(map(is_float, op.results)):
        return False
    return kind == "nan" or op.definition.unbounded


class _Watching:
    def __init__(self, kinds: frozenset[str], compiled: bool) -> None:
        self.kinds = kinds
        self.compiled = compiled
        self.watched = False  # whether something is looked at where it is computed
        self.of_floats = kinds & {"nan", "inf"}
        self.written: set[Value] = set()  # infinite because the program says so
        self.intervals: dict[
            Value, Interval
        ] = {}  # between which integers values lie, if it is known

    def outermost(self, graph: Graph) -> Graph | None:
        new = Graph(graph.name)
        b = Builder(new)
        env = {v: new.add_param(v.type, v.name) for v in graph.params}
        flags, made = self.region(b, graph, env, set(), outermost=True)
        for v in dict.fromkeys(graph.outputs):
            kinds = self._kinds_of(v, self.of_floats)
            if v in made and kinds and not _is_watched(env[v]):
                flags.append(self._some(b, env[v], kinds))
        if not flags and not self.watched:
            return None
        new.outputs = [*(env[v] for v in graph.outputs), _either(b, flags or [b.const(False)])]
        return new

    def _kinds_of(self, v: Value, kinds: Collection[str]) -> frozenset[str]:
        """Those of `kinds` that are not as they should be in a value."""
        return frozenset(kinds) - ({"inf"} if v in self.written else set())

    def region(
        self,
        b: Builder,
        graph: Graph,
        env: dict[Value, Value],
        given: Collection[Value],
        outermost: bool = False,
    ) -> tuple[list[Value], set[Value]]:
        """Append the ops of `graph`. Gives what tells of them, and the floats that may not be numbers
        without that this was so from the start; `given` are those among the parameters."""
        flags: list[Value] = []
        made = {v for v in graph.params if v in given and is_float(v)}
        lost = self._lost(graph)
        users = graph.users()
        outputs = set(graph.outputs)

        def look(v: Value) -> None:
            kinds = self._kinds_of(v, lost.get(v, ()))
            at_once = self._is_watchable(v, users[v], v in outputs)
            if outermost and v in outputs and at_once:
                kinds = self._kinds_of(v, self.of_floats)
            if v not in made or not kinds:
                return
            if at_once:
                env[v] = self._watched(b, env[v], [env[v]], kinds)
            else:
                flags.append(self._some(b, env[v], kinds))

        for v in graph.params:
            look(v)
        for op in graph.ops:
            with b.at(op.loc):
                if op.regions:
                    flags += self._structured(b, op, env, made, users, outputs)
                else:
                    b.copy(op, env)
                if "inf" in self.kinds and op.name in PLAIN and op.operands[1].tensor.size:
                    flags.append(_is_large(b, [env[v] for v in op.operands[: PLAIN[op.name]]]))
                if "overflow" in self.kinds and wraps(op) and not fits(op.result, self.intervals):
                    flags += _overflows(b, op, env)
                if "inf" in self.kinds and _hands_on_written(op, self.written):
                    self.written.update(op.results)
                if op.definition.family == "source":
                    continue
                if only_moves(op) and not op.regions and made.isdisjoint(op.operands):
                    continue
                for v in filter(is_float, op.results):
                    made.add(v)
                    look(v)
        return flags, made

    def _lost(self, graph: Graph) -> dict[Value, frozenset[str]]:
        """The values of which something else is made, and the kinds of which nothing is seen then."""
        found: dict[Value, set[str]] = {}
        if not self.of_floats:
            return {}
        for op in graph.ops:
            if op.regions or op.definition.effect or op.definition.family == "tape":
                continue
            if chooses(op):
                continue
            kinds = {kind for kind in self.of_floats if not keeps(op, kind)}
            for v in op.operands:
                if kinds and is_float(v):
                    found.setdefault(v, set()).update(kinds)
        return {v: frozenset(kinds) for v, kinds in found.items()}

    def _is_watchable(self, v: Value, users: Sequence[Op], is_output: bool) -> bool:
        """Whether a value is looked at by what computes it, or goes over its elements; else there is a
        loop that only reads them."""
        if not self.compiled or not _is_long(v):
            return False
        if v.op is not None and (v.op.definition.family == "elementwise" or v.op.name == "dot"):
            return True
        return not is_output and any(u.definition.family == "elementwise" for u in users)

    def _watched(
        self, b: Builder, value: Value, looked: Sequence[Value], kinds: Collection[str]
    ) -> Value:
        """`value`, by a program that tells if `looked` are not as they should be."""
        self.watched = True
        return b.append(WATCHED, [value, *looked], {"kinds": " ".join(sorted(kinds))}).result

    def _some(self, b: Builder, value: Value, kinds: Collection[str]) -> Value:
        """Whether some element of a float value is of one of these kinds."""
        value = _last_of_running(b, value)
        if is_complex(value.dtype):
            parts = (b.op("real", value), b.op("imag", value))
            return _either(b, [self._some(b, part, kinds) for part in parts])
        if len(kinds) == 2:
            test = b.invert(b.op("isfinite", value))
        else:
            test = b.op("isnan" if "nan" in kinds else "isinf", value)
        return _any(b, test)

    # Ops with regions

    def _structured(
        self,
        b: Builder,
        op: Op,
        env: dict[Value, Value],
        made: set[Value],
        users: Mapping[Value, Sequence[Op]],
        outputs: Collection[Value],
    ) -> list[Value]:
        operands = [env[v] for v in op.operands]
        given = [v in made for v in op.operands]
        rebuilt = _REGIONS.get(op.name)
        flag = None if rebuilt is None else rebuilt(self, b, op, operands, given)
        if flag is None:
            b.copy(op, env)
            return []
        results, told = flag
        env.update(zip(op.results, results, strict=True))
        if isinstance(told, Value):
            return [told]
        return self._beside(b, [v for v in op.results if users[v] or v in outputs], env, told)

    def _beside(
        self, b: Builder, used: Sequence[Value], env: dict[Value, Value], looked: Sequence[Value]
    ) -> list[Value]:
        """Whether there is NaN in values of which nobody sees more than that: results of a loop, which
        are in memory for that alone unless another result of the loop is watched for them."""
        if not looked:
            return []
        likely = [v for v in used if env[v].shape == looked[0].shape]
        if likely and self.compiled and all(map(_is_long, looked)):
            env[likely[0]] = self._watched(b, env[likely[0]], looked, {"nan"})
            return []
        return [_either(b, [self._some(b, v, {"nan"}) for v in looked])]

    def _inner(
        self, graph: Graph, operands: Sequence[Value], given: Sequence[bool], extra: bool = False
    ) -> tuple[Graph, Value | None, Value | None]:
        """A region watched: its graph, what tells of it, and one more parameter, a bool, at the end."""
        new = Graph(graph.name)
        b = Builder(new)
        env = {v: new.add_param(v.type, v.name) for v in graph.params}
        more = new.add_param(TensorType((), BOOL)) if extra else None
        marked = {v for v, mark in zip(graph.params, given, strict=True) if mark}
        written = zip(graph.params, operands, strict=True)
        self.written.update(p for p, v in written if v in self.written)
        flags, _ = self.region(b, graph, env, marked)
        new.outputs = [env[v] for v in graph.outputs]
        return new, _either(b, flags) if flags else None, more

    def cond(
        self, b: Builder, op: Op, operands: list[Value], given: list[bool]
    ) -> tuple[Sequence[Value], Value] | None:
        inner = [self._inner(region, op.operands[1:], given[1:]) for region in op.regions]
        if all(flag is None for _, flag, _ in inner):
            return None
        for graph, flag, _ in inner:
            none = Builder(graph).const(False) if flag is None else flag
            graph.outputs.append(none)
        made = b.append(op.definition, operands, op.attrs, [graph for graph, _, _ in inner])
        return made.results[:-1], made.results[-1]

    def scan(
        self, b: Builder, op: Op, operands: list[Value], given: list[bool]
    ) -> tuple[Sequence[Value], Value] | None:
        consts, carries = op.attrs["consts"], op.attrs["carries"]
        self.intervals.update(of_loop(op, self.intervals).body)
        marks = [g or consts <= i < consts + carries for i, g in enumerate(given)]
        (body,) = op.regions
        new, flag, _ = self._inner(body, op.operands, marks)
        if flag is None:
            return None
        new.outputs.append(flag)
        made = b.append(op.definition, operands, op.attrs, [new])
        return made.results[:-1], _any(b, made.results[-1])

    def loop(
        self, b: Builder, op: Op, operands: list[Value], given: list[bool]
    ) -> tuple[Sequence[Value], Value | Sequence[Value]] | None:
        """The results, and what tells, or the values of which it is to be asked."""
        consts = op.attrs["consts"]
        test, body = op.regions
        self.intervals.update(of_loop(op, self.intervals).body)
        marks = [g or i >= consts for i, g in enumerate(given)]
        asked, asks, _ = self._inner(test, op.operands, marks)
        new, flag, before = self._inner(body, op.operands, marks, extra=True)
        # NaN that the condition is given is among what the loop ends with.
        last = asks is not None and self.kinds == {"nan"} and all(map(_is_polynomial, test.ops))
        if last:
            asks = None
        if flag is None and asks is None:
            if not last:
                return None
            made = b.append(op.definition, operands, op.attrs, op.regions)
            return made.results, _asked_for(test, consts, made.results)
        assert before is not None
        inner = Builder(new, op.loc)
        lanes = op.name == "lanes_while"
        start = b.const(False)
        flags = [before] if flag is None else [before, flag]
        if asks is not None:  # what the condition computes, of what it is asked next
            telling = asked.giving([asks])
            flags += inner.inline(telling, [*new.params[:consts], *new.outputs])
            if not lanes:
                start = b.inline(telling, operands)[0]
        new.outputs.append(_either(inner, flags))
        if lanes:
            start = b.broadcast_to(start, operands[0].shape)
        plain = Graph(test.name)
        params = [plain.add_param(v.type, v.name) for v in test.params]
        plain.add_param(TensorType((), BOOL))
        plain.outputs = Builder(plain).inline(test, params)
        attrs = {**op.attrs, "independent": False} if op.attrs.get("independent") else op.attrs
        made = b.append(op.definition, [*operands, start], attrs, [plain, new])
        told = _any(b, made.results[-1])
        if last:
            looked = _asked_for(test, consts, made.results)
            told = _either(b, [told, *(self._some(b, v, {"nan"}) for v in looked)])
        return made.results[:-1], told


_REGIONS: dict[str, Any] = {
    "cond": _Watching.cond,
    "scan": _Watching.scan,
    "while": _Watching.loop,
    "lanes_while": _Watching.loop,
}


def _asked_for(test: Graph, consts: int, results: Sequence[Value]) -> list[Value]:
    """The last carries that a loop's condition looks at, in which NaN may be."""
    users = test.users()
    pairs = zip(test.params[consts:], results, strict=False)
    return [r for p, r in pairs if users[p] and is_float(p)]


def _is_long(v: Value) -> bool:
    type = v.type
    return isinstance(type, TensorType) and type.dtype in (F32, F64) and type.size >= WATCHED_FROM


def _is_watched(value: Value) -> bool:
    return value.op is not None and value.op.definition is WATCHED


def _hands_on_written(op: Op, written: Collection[Value]) -> bool:
    """Whether results are infinite because the program has such a constant: a mask of attention, say,
    or the start of a search for the least."""
    if op.definition.name == "constant":
        value = op.attrs["value"]
        return is_inexact(value.dtype) and bool(np.isinf(value).any())
    if op.regions or not any(v in written for v in op.operands):
        return False
    combiner = OPS.get(op.definition.combiner)
    keeping = chooses(op) or op.definition.unbounded
    return keeping or (combiner is not None and combiner.idempotent)


def _is_polynomial(op: Op) -> bool:
    """Whether no NaN comes of numbers that are finite: sums and products, and what is no arithmetic."""
    definition = op.definition
    if definition.family == "source" or chooses(op) or not any(map(is_float, op.results)):
        return not op.regions
    return definition.wraps and definition.unbounded


def _overflows(b: Builder, op: Op, env: dict[Value, Value]) -> list[Value]:
    """Whether results that are integers are not what the op is in mathematics.

    Floats tell, of what has no test of its own: a result that wrapped is off by a multiple of 2 to the
    number of its bits, and a float by a few parts in 10 to the 16.
    """
    operands = [env[v] for v in op.operands]
    fits = OPS.get(f"{op.name}_fits")
    if fits is not None:
        return [_any(b, b.invert(b.append(fits, operands).result))]
    result = env[op.result]
    floats = [b.op("convert", v, dtype=F64) for v in operands]
    exact = b.append(op.definition, floats, op.attrs).result
    error = b.abs(b.sub(exact, b.op("convert", result, dtype=F64)))
    near = b.full_like(error, 2.0 ** (8 * result.dtype.itemsize - 2))
    return [_any(b, b.gt(error, near))]


def _is_large(b: Builder, operands: Sequence[Value]) -> Value:
    """Whether attention may meet infinity on its way, of which nothing need be seen in what it gives.
    All that it computes is less than the product of the largest elements, and some lengths."""
    bound = b.const(4.0 * operands[0].shape[-1] * operands[1].tensor.size, F64)
    for v in operands:
        largest = b.op("max", b.abs(v), axes=tuple(range(len(v.shape))))
        bound = b.mul(
            bound, b.op("maximum", b.op("convert", largest, dtype=F64), b.const(1.0, F64))
        )
    limit = b.const(float(np.finfo(operands[0].dtype).max), F64)
    return b.invert(b.lt(bound, limit))


def _last_of_running(b: Builder, value: Value) -> Value:
    """Of running sums and products the last ones, in which all NaN before can be seen."""
    op = value.op
    if op is None or not op.definition.unbounded or "reverse" not in op.attrs:
        return value
    axis, size = op.attrs["axis"], value.shape[op.attrs["axis"]]
    if size < 2:
        return value
    at = 0 if op.attrs["reverse"] else size - 1
    start = tuple(at if k == axis else 0 for k in range(len(value.shape)))
    stop = tuple(at + 1 if k == axis else n for k, n in enumerate(value.shape))
    last: Value = b.op("slice", value, start=start, stop=stop, step=(1,) * len(start))
    return last


def _any(b: Builder, test: Value) -> Value:
    """Whether some element holds: row by row first, which kernels do while they have the row."""
    rank = len(test.shape)
    if rank > 1:
        test = b.op("any", test, axes=(rank - 1,))
    made: Value = b.op("any", test, axes=tuple(range(len(test.shape)))) if rank else test
    return made


def _either(b: Builder, tests: Sequence[Value]) -> Value:
    made = tests[0]
    for test in tests[1:]:
        made = b.op("bitwise_or", made, test)
    return made
