"""Batching: from a graph over one example to a graph over `size` of them at once.

    graph f(%x: f32[3], %w: f32[3]) -> f32[]      batch_graph(f, [True, False], 8)
      %y = mul %x, %w                       ->    graph f_batch(%x: f32[8,3], %w: f32[3]) -> f32[8]
      %s = sum %y axes=(0,)                         %0 = broadcast %w shape=(8, 3) dims=(1,)
      return %s                                     %y = mul %x, %0
                                                    %s = sum %y axes=(1,)

Each value is *batched* (it has a leading dimension of `size`) or the same for all examples. Ops over
values that are not batched stay as they are; the others go through the `batch` rule of their record:

    batch(b, op, operands, batched) -> (results, batched_results)

`b` is a `BatchBuilder`; `operands` are values of its graph, those marked in `batched` with the
leading dimension. Tapes are always batched (see `batching/tapes.py`), tokens never are.

Where examples part (a branch that some take, a loop that some have left), ops run for all, and
`b.active` marks those whose results count. What can fail or run forever (checked indices, asserts,
loops) looks at it, so that an example never meets an error on a path that it does not take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Any

from ..build import Builder
from ..graph import Graph, Op, SourceLine, Value, in_lanes
from ..integers.intervals import interval
from ..opdef import GraphError
from ..types import BOOL, I32, I64, TAPE, TOKEN, TensorType, Type

Flags = list[bool]
Marks = Sequence[bool]  # which values have a dim of examples in front
Batched = tuple[Sequence[Value], Marks]
Rule = Callable[..., Batched]


class BatchingError(TypeError):
    """An op cannot run for many examples. A user's error: `op` knows their line."""

    op: Any = None


_AXIS: ContextVar[str | None] = ContextVar("jitney_batched_axis", default=None)


def batch_graph(
    graph: Graph, batched: Sequence[bool], size: int, axis: str | None = None
) -> tuple[Graph, Flags]:
    """`graph` over `size` examples, and which of its outputs are batched.

    A parameter marked in `batched` gets a leading dimension of `size`. Collectives along the named
    `axis` become ops over the examples. Raises BatchingError for an op that cannot run for many
    examples (a callback with effects).
    """
    reset = _AXIS.set(axis)  # for the regions, too
    try:
        return batch_region(graph, batched, size)
    finally:
        _AXIS.reset(reset)


def batch_region(
    graph: Graph, batched: Sequence[bool], size: int, *, masked: bool = False
) -> tuple[Graph, Flags]:
    """Like `batch_graph`. With `masked`, a first parameter of type bool[size] marks who counts."""
    new = Graph(f"{graph.name}_batch")
    active = new.add_param(TensorType((size,), BOOL), "active") if masked else None
    params = [
        new.add_param(batched_type(v.type, size) if flag else v.type, v.name)
        for v, flag in zip(graph.params, batched, strict=True)
    ]
    new.outputs, flags = BatchBuilder(new, size, active).walk(graph, params, batched)
    return new, flags


def batched_type(type: Type, size: int) -> Type:
    """The type with `size` examples in front; a token or tape stays."""
    return type.with_shape((size, *type.shape)) if isinstance(type, TensorType) else type


class BatchBuilder(Builder):
    """A builder for `size` examples, and the short forms that batch rules share."""

    def __init__(
        self,
        graph: Graph,
        size: int,
        active: Value | None = None,
        loc: SourceLine | None = None,
    ) -> None:
        super().__init__(graph, loc)
        self.size = size
        self.active = active  # bool[size], or None where all examples count
        self.axis = _AXIS.get()  # the name of the axis of examples, for collectives along it

    # Walking a graph

    def walk(
        self, graph: Graph, arguments: Sequence[Value], batched: Sequence[bool]
    ) -> tuple[list[Value], Flags]:
        """Append the batched ops of `graph` applied to `arguments`; its outputs and their flags."""
        flagged = zip(arguments, map(bool, batched), strict=True)
        env = dict(zip(graph.params, flagged, strict=True))
        for op in graph.ops:
            with self.at(in_lanes(op.loc)):
                self._one(op, env)
        outputs = [env[v] for v in graph.outputs]
        return [v for v, _ in outputs], [flag for _, flag in outputs]

    def _one(self, op: Op, env: dict[Value, tuple[Value, bool]]) -> None:
        operands = [env[v][0] for v in op.operands]
        batched = [env[v][1] for v in op.operands]
        if any(batched) or self._concerns(op):
            if op.definition.batch is None:
                raise batching_error(op, "has no batching rule")
            results, flags = op.definition.batch(self, op, operands, batched)
        else:
            results = self.again(op, operands).results
            flags = [False] * len(results)
        for old, new, flag in zip(op.results, results, flags, strict=True):
            self._check(op, old, new, flag)
            new.name = new.name or old.name
            env[old] = new, flag

    def _concerns(self, op: Op) -> bool:
        """Whether a rule has to see `op` although none of its operands is batched."""
        if op.has_effect or any(v.type is TAPE for v in op.results):
            return True
        if self.axis is not None and talks_along(op, self.axis):
            return True
        return self.active is not None and needs_mask(op)

    def _check(self, op: Op, old: Value, new: Value, flag: bool) -> None:
        wanted = batched_type(old.type, self.size) if flag else old.type
        if new.type != wanted:
            raise GraphError(
                f"the batch rule of {op.name} gave {new.type} for a value of type {old.type} and "
                f"{self.size} examples; this is a bug in jitney, please report it"
            )

    # Values

    def spread(self, value: Value, batched: bool) -> Value:
        """`value` with the leading dimension, repeated if it is the same for all examples."""
        if batched or not isinstance(value.type, TensorType):
            return value
        dims = tuple(range(1, len(value.shape) + 1))
        return self.broadcast(value, shape=(self.size, *value.shape), dims=dims)

    def spread_all(self, values: Iterable[Value], batched: Iterable[bool]) -> list[Value]:
        return [self.spread(v, flag) for v, flag in zip(values, batched, strict=True)]

    def spread_where(
        self, values: Iterable[Value], batched: Iterable[bool], wanted: Iterable[bool]
    ) -> list[Value]:
        """`values` with the leading dimension where it is wanted."""
        triples = zip(values, batched, wanted, strict=True)
        return [self.spread(v, flag) if want else v for v, flag, want in triples]

    def examples(self, shape: Sequence[int]) -> Value:
        """The number of the example, i64 of that `shape`, whose first dimension counts examples."""
        return self.iota(shape=tuple(shape), dtype=I64, axis=0)

    def moved(self, value: Value, source: int, target: int) -> Value:
        """The dimension `source` becomes dimension `target`; the others keep their order."""
        if source == target:
            return value
        perm = [d for d in range(len(value.shape)) if d != source]
        perm.insert(target, source)
        return self.transpose(value, perm=tuple(perm))

    def per_example(self, mask: Value, like: Value) -> Value:
        """A mask bool[size] as a mask for each element of the batched value `like`."""
        return (
            self.broadcast(mask, shape=like.shape, dims=(0,)) if like.shape != mask.shape else mask
        )

    def choose(self, mask: Value, chosen: Value, other: Value) -> Value:
        """For each example `chosen` or `other`, batched values. Tokens and tapes: `chosen`."""
        if not isinstance(chosen.type, TensorType) or chosen is other:
            return chosen
        return self.select(self.per_example(mask, chosen), chosen, other)

    # Masks

    def masked_by(self, mask: Value) -> Value:
        """`mask`, restricted to the examples that count here."""
        return mask if self.active is None else self.bitwise_and(self.active, mask)

    def any_active(self) -> Value:
        """Whether any example counts here; 0-d."""
        assert self.active is not None
        return self.op("any", self.active, axes=(0,))

    def safe_index(self, index: Value, batched: bool, n: int) -> Value:
        """An index that is 0 where it does not count, and cannot fail there."""
        if self.active is None or _is_inside(index, n):
            return index
        if batched:
            return self.choose(self.active, index, self.full_like(index, 0))
        go = self.any_active()
        mask = self.broadcast(go, shape=index.shape, dims=()) if index.shape else go
        return self.select(mask, index, self.full_like(index, 0))

    # One example after the other

    def one_by_one(
        self, graph: Graph, operands: Sequence[Value], batched: Sequence[bool]
    ) -> list[Value]:
        """`graph` applied to each example in turn, by a scan; every result is batched.

        Right for whatever a graph may hold. Neither operands nor results may be tapes.
        """
        if self.active is not None:
            graph = _if_active(graph)
            operands, batched = [self.active, *operands], [True, *batched]
        tokens = [i for i, v in enumerate(operands) if v.type is TOKEN]
        fixed = [i for i, flag in enumerate(batched) if not flag and i not in tokens]
        order = fixed + tokens + [i for i, flag in enumerate(batched) if flag]
        outputs = sorted(
            range(len(graph.outputs)), key=lambda k: graph.outputs[k].type is not TOKEN
        )
        body = Graph(graph.name)
        params = {i: body.add_param(graph.params[i].type, graph.params[i].name) for i in order}
        of_one = Builder(body, self.loc).inline(graph, [params[i] for i in range(len(operands))])
        body.outputs = [of_one[k] for k in outputs]
        results = self.op(
            "scan",
            *(operands[i] for i in order),
            regions=[body],
            consts=len(fixed),
            carries=len(tokens),
            length=self.size,
            reverse=False,
        )
        results = results if isinstance(results, tuple) else (results,)
        return [results[outputs.index(k)] for k in range(len(outputs))]


def batching_error(op: Op, reason: str) -> BatchingError:
    """The error to raise, which knows its op."""
    error = BatchingError(f"{op.name}: {reason}")
    error.op = op
    return error


# Rules for ops that run over one more dimension as they are. What changes are attributes:


def shift(axes: Any) -> Any:
    """An axis, or axes, behind a new first one."""
    return tuple(a + 1 for a in axes) if isinstance(axes, tuple) else axes + 1


def first(value: int) -> Callable[[tuple[int, ...]], tuple[int, ...]]:
    """An entry for the new first axis of an attribute with one entry per axis."""
    return lambda entries: (value, *entries)


class Size:
    """The entry for the new first axis is the number of examples."""


SIZE = Size()


def leading(**changes: Any) -> Rule:
    """The rule of an op whose operands all get the leading dimension.

    `changes` tells for attributes how they are made: a function, or SIZE for `(size, *entries)`.
    """

    def batch(b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Marks) -> Batched:
        attrs = dict(op.attrs)
        for name, change in changes.items():
            attrs[name] = (b.size, *attrs[name]) if change is SIZE else change(attrs[name])
        new = b.append(op.definition, b.spread_all(operands, batched), attrs, op.regions)
        return new.results, [True] * len(new.results)

    return batch


batch_elementwise = leading()


def batch_each(b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Marks) -> Batched:
    """The rule of an op that is run for one example after the other."""
    graph = Graph(op.name)
    params = [graph.add_param(v.type) for v in op.operands]
    graph.outputs = list(
        Builder(graph, op.loc).append(op.definition, params, op.attrs, op.regions).results
    )
    return b.one_by_one(graph, operands, batched), [True] * len(op.results)


def needs_mask(op: Op) -> bool:
    """Whether `op` has to know which examples count: it may fail for others, or never end."""
    if not op.definition.total or op.attrs.get("mode") == "check":
        return True
    return regions_need_mask(op)


def regions_need_mask(op: Op) -> bool:
    """Whether the regions of `op` hold an op that needs the mask of their examples."""
    return any(needs_mask(inner) for region in op.regions for inner in region.ops)


def talks_along(op: Op, axis: str) -> bool:
    """Whether `op` is a collective along the named axis, or has one in its regions."""
    if op.attrs.get("group") == axis:
        return True
    return any(talks_along(inner, axis) for region in op.regions for inner in region.ops)


def _is_inside(index: Value, n: int) -> bool:
    """Whether an index is known to be in range for a dimension of size n."""
    low, high = interval(index)
    return -n <= low and high < n


def _if_active(graph: Graph) -> Graph:
    """`graph` with a first parameter, a bool, without which it gives zeros."""
    idle = Graph(f"{graph.name}_idle")
    params = [idle.add_param(v.type, v.name) for v in graph.params]
    tokens = [v for v in params if v.type is TOKEN]
    b = Builder(idle)
    idle.outputs = [tokens[0] if v.type is TOKEN else b.zeros(v.tensor) for v in graph.outputs]
    new = Graph(graph.name)
    active = new.add_param(TensorType((), BOOL), "active")
    operands = [new.add_param(v.type, v.name) for v in graph.params]
    b = Builder(new)
    results = b.op("cond", b.convert(active, dtype=I32), *operands, regions=[idle, graph])
    new.outputs = list(results) if isinstance(results, tuple) else [results]
    return new
