"""Building graphs: `Builder` appends ops to a graph and infers their types.

    b = Builder(Graph("f"))
    x = b.graph.add_param(TensorType((8,), F32), "x")
    y = b.mul(x, b.exp(x))
    b.graph.outputs = [y]

`b.<op name>(*operands, **attrs)` adds that op. Operands of elementwise ops must have equal shapes:
`b.broadcast_to` and `b.full_like` make that short. Derivative rules are written with a Builder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .graph import Graph, Op, SourceLine, Value
from .opdef import OPS, GraphError, OpDef
from .types import TensorType, Type

# Of a rule for reverse mode: which operands' cotangents are asked for, and these, None for zero.
Wanted = Sequence[bool]
Grads = list[Value | None]


class Builder:
    """Appends ops to `graph`; `loc` is the source line that new ops carry."""

    def __init__(self, graph: Graph, loc: SourceLine | None = None) -> None:
        self.graph = graph
        self.loc = loc
        self.supports: dict[Value, Value | None] = {}  # masks of tangents; see ops/masks.py

    def append(
        self,
        definition: OpDef,
        operands: Sequence[Value],
        attrs: dict[str, Any] | None = None,
        regions: Sequence[Graph] = (),
    ) -> Op:
        """Append one op and return it; its results carry the inferred types."""
        op = self.make(definition, operands, attrs, regions)
        self.put(op)
        return op

    def put(self, op: Op) -> tuple[Value, ...]:
        """Append an op that is made already; its results."""
        self.graph.ops.append(op)
        self.appended(op)
        return op.results

    def make(
        self,
        definition: OpDef,
        operands: Sequence[Value],
        attrs: dict[str, Any] | None = None,
        regions: Sequence[Graph] = (),
    ) -> Op:
        """The op that `append` would append."""
        attrs = attrs or {}
        op = Op(definition, tuple(operands), attrs, tuple(regions), self.loc)
        types = [v.type for v in op.operands]
        try:
            if definition.regions:
                inferred = definition.infer(*types, regions=op.regions, **attrs)
            else:
                inferred = definition.infer(*types, **attrs)
        except GraphError as error:
            raise GraphError(f"{definition.name}: {error}") from None
        if isinstance(inferred, tuple):
            op.results = tuple([Value(t, op, i) for i, t in enumerate(inferred)])
        else:
            op.results = (Value(inferred, op, 0),)
        return op

    def appended(self, op: Op) -> None:
        """Called after each op: a subclass that evaluates while building overrides this."""

    def op(self, name: str, *operands: Value, regions: Sequence[Graph] = (), **attrs: Any) -> Any:
        """Append the op called `name`; returns its result, or a tuple if it has several."""
        op = self.append(OPS[name], operands, attrs, regions)
        return op.results[0] if len(op.results) == 1 else op.results

    def __getattr__(self, name: str) -> Any:
        if name not in OPS:
            raise AttributeError(f"there is no op {name!r}")
        return lambda *operands, **attrs: self.op(name, *operands, **attrs)

    @contextmanager
    def at(self, loc: SourceLine | None) -> Iterator[None]:
        """Ops built inside carry `loc`."""
        previous, self.loc = self.loc, loc
        try:
            yield
        finally:
            self.loc = previous

    # Short forms that derivative rules and the tracer share.

    def const(self, value: Any, dtype: Any = None) -> Value:
        """A constant from an array or scalar. The array is copied, so that it cannot change."""
        array = np.array(value, dtype=dtype, copy=True)
        array.setflags(write=False)
        return self.op("constant", value=array)

    def full(self, shape: Sequence[int], value: Any, dtype: Any) -> Value:
        scalar = self.const(value, dtype)
        return scalar if len(shape) == 0 else self.broadcast(scalar, shape=tuple(shape), dims=())

    def full_like(self, x: Value, value: Any) -> Value:
        return self.full(x.shape, value, x.dtype)

    def zeros(self, type: Type) -> Value:
        """Zeros; an empty tape, which is as good as any number of records of zeros."""
        if not isinstance(type, TensorType):
            return self.op("tape_new")
        return self.full(type.shape, 0, type.dtype)

    def broadcast_to(self, x: Value, shape: Sequence[int]) -> Value:
        """NumPy's broadcast: trailing dims aligned, size-1 dims stretched. No-op if equal."""
        if x.shape == shape:
            return x
        shape = tuple(shape)
        if not x.shape:
            return self.broadcast(x, shape=shape, dims=()) if shape else x
        lead = len(shape) - len(x.shape)
        equal = [i for i, n in enumerate(x.shape) if n == shape[lead + i]]
        if len(equal) != len(x.shape):
            x = self.reshape(x, shape=tuple(x.shape[i] for i in equal))
        return self.broadcast(x, shape=shape, dims=tuple(lead + i for i in equal))

    def inline(self, graph: Graph, arguments: Sequence[Value]) -> list[Value]:
        """Append a copy of `graph` applied to `arguments`; returns its outputs here."""
        return self.replay(graph, dict(zip(graph.params, arguments, strict=True)))

    def replay(self, graph: Graph, env: dict[Value, Value]) -> list[Value]:
        """Append copies of the ops of `graph`; `env` has what stands for its parameters."""
        for op in graph.ops:
            self.copy(op, env)
        return [env[v] for v in graph.outputs]

    def again(self, op: Op, operands: Sequence[Value]) -> Op:
        """Append `op` with other operands, at its own line. Of the same types they give the same types:
        the type rule is asked only about others."""
        for a, b in zip(operands, op.operands, strict=True):
            if a.type is not b.type and a.type != b.type:
                with self.at(op.loc):
                    new = self.append(op.definition, operands, op.attrs, op.regions)
                for value, old in zip(new.results, op.results, strict=True):
                    value.name = old.name
                return new
        new = op.with_operands(operands)
        self.put(new)
        return new

    def copy(self, op: Op, env: dict[Value, Value]) -> Op:
        """Append a copy of `op` with operands looked up in `env`, and record its results there."""
        new = self.again(op, [env[v] for v in op.operands])
        if len(op.results) == 1:
            env[op.results[0]] = new.results[0]
        else:
            env.update(zip(op.results, new.results, strict=True))
        return new
