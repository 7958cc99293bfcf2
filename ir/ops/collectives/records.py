"""The collectives that have a derivative. All take one array and give one; members are counted by rank.

    all_reduce      x[...]    -> y[...]      the sum, max or min of all members' x
    all_gather      x[...]    -> y[n, ...]   y[i] is the x of member i
    reduce_scatter  x[n, ...] -> y[...]      member i gets the sum of all members' x[i]
    all_to_all      x[n, ...] -> y[n, ...]   y[j] of member i is x[i] of member j
    ppermute        x[...]    -> y[...]      for (i, j) in perm, j gets the x of i; others get zeros
    send_all        x[...]    -> y[...]      all get the x of member `root`
    reduce_to       x[...]    -> y[...]      member `root` gets the sum of all x, the others zeros

`together` of a record is its meaning: all members' operands to all members' results. Derivatives are
those of this one function of all members: the transpose of a sum over members is a sum over members, as
in JAX, so a gradient on each member is that of the sum of all members' results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...batching.transform import BatchBuilder, Batched, Marks, batching_error
from ...build import Builder
from ...cost import Cost
from ...graph import Op, Value
from ...groups import group as find_group
from ...opdef import GraphError, OpDef, register
from ...types import F32, I64, TOKEN, TensorType, Type, is_small
from ..families import ANY, NUMBER, Arg, Array, Example, check_kind, opaque

KINDS = {"sum": np.add, "max": np.maximum, "min": np.minimum}
Shards = Sequence[Array]
COLLECTIVES: dict[str, Collective] = {}


class Collective:
    """What the two records of a collective share.

    name:      of the op between processes
    named:     of the op along an axis
    together:  (operands of all members, **attrs) -> results of all members
    stacked:   (b, x with the members in front, attrs) -> the results, and whether they differ
    transpose: (b, op, cotangent) -> the operand's cotangent; None for an op that is not linear
    rows:      whether the operand, and the result, have a row for each member
    kinds:     of dtypes; of any dtype is what moves elements and computes nothing
    """

    def __init__(
        self,
        name: str,
        named: str,
        together: Callable[..., Shards],
        stacked: Callable[..., tuple[Value, bool]],
        transpose: Callable[[Builder, Op, Value], Value | None],
        rows: tuple[bool, bool] = (False, False),
        attrs: tuple[str, ...] = (),
        example: dict[str, Any] | None = None,
        kinds: str = ANY,
    ) -> None:
        self.name, self.named, self.together, self.stacked = name, named, together, stacked
        self.transpose, self.rows, self.attrs, self.kinds = transpose, rows, attrs, kinds
        COLLECTIVES[name] = COLLECTIVES[named] = self
        moves = kinds == ANY
        shape = (1, 3, 2) if rows[0] else (3, 2)
        own = {"group": "i", "size": 1, **(example or {})}
        opaque(
            named,
            _with_attrs(self._infer, self.attrs),
            self._alone,
            jvp=self._jvp,
            vjp=self._vjp,
            batch=self._batch,
            kinds=kinds,
            cost=Cost.DEAR,
            moves=moves,
            attrs=("group", "size", *attrs),
            examples=(Example((Arg(shape, distinct=True),), own),),
            doc=f"{name} along a named axis",
        )
        register(
            OpDef(
                name,
                "effect",
                _with_attrs(self._infer_ordered, self.attrs, ordered=True),
                self._between_processes,
                self._jvp,
                self._vjp,
                batch=self._batch,
                total=False,
                moves=moves,
                dtypes=kinds,
                attrs=("group", "size", *attrs),
                effect=True,
                doc=f"{name} between the processes of a group, in program order",
            )
        )

    def result(self, x: TensorType, size: int) -> TensorType:
        """The type of what each member gets."""
        shape = x.shape
        if self.rows[0]:
            if not shape or shape[0] != size:
                raise GraphError(f"takes a row for each of {size} members, got {x}")
            shape = shape[1:]
        return x.with_shape((size, *shape) if self.rows[1] else shape)

    def _infer(self, x: TensorType, *, group: str, size: int, **attrs: Any) -> TensorType:
        check_kind(x, self.kinds)
        if not isinstance(group, str) or size < 0:
            raise GraphError(f"group={group!r} of {size} members")
        if attrs.get("kind", "sum") not in KINDS:
            raise GraphError(f"kind={attrs['kind']!r}; there are {', '.join(KINDS)}")
        if size and not 0 <= attrs.get("root", 0) < size:
            raise GraphError(f"root={attrs['root']} of {size} members")
        if "perm" in attrs:
            check_perm(attrs["perm"], size)
        return self.result(x, size)

    def _infer_ordered(self, x: TensorType, token: Type, **attrs: Any) -> tuple[Type, ...]:
        if token is not TOKEN:
            raise GraphError("the last operand is the order token")
        return self._infer(x, **attrs), TOKEN

    def _alone(self, x: Array, *, group: str, size: int, **attrs: Any) -> Array:
        if size != 1:
            raise GraphError(f"the axis {group!r} is not one of a vmap around")
        return self.together([x], size=size, **attrs)[0]

    def _between_processes(self, x: Array, token: Any, **attrs: Any) -> tuple[Array, None]:
        return self.run(x, **attrs), None

    def run(self, x: Array, *, group: str, size: int, **attrs: Any) -> Array:
        """What this process gets for its `x`; `line=` is the user's, where it is known."""
        if is_small(x.dtype) and self.kinds != ANY:  # what is computed is computed in float32
            wide = self.run(x.astype(F32), group=group, size=size, **attrs)
            return wide.astype(x.dtype)
        type = self.result(TensorType(x.shape, x.dtype), size)
        out = np.empty(type.shape, type.dtype)
        find_group(group, size).collective(
            self.name, np.ascontiguousarray(x).reshape(x.shape), out, **attrs
        )
        return out

    def again(self, b: Builder, op: Op, x: Value, name: str = "", **attrs: Any) -> Value:
        """This collective, or another one, in the form and the group of `op`, of `x`.

        Between processes it begins a thread of effects, which goes on where it is put (`append`).
        """
        other = COLLECTIVES[name] if name else self
        attrs = {
            "group": op.attrs["group"],
            "size": op.attrs["size"],
            **({} if name else {k: op.attrs[k] for k in self.attrs}),
            **attrs,
        }
        if op.definition.effect:
            return b.op(other.name, x, b.op("create_token"), **attrs)[0]
        return b.op(other.named, x, **attrs)

    def _jvp(self, b: Builder, op: Op, tangents: Sequence[Value | None]) -> list[Value | None]:
        (tangent, *token) = tangents
        if op.attrs.get("kind", "sum") == "sum":
            assert tangent is not None
            return [self.again(b, op, tangent), *token]
        mask, count = self._winners(b, op)
        assert tangent is not None
        chosen = b.select(mask, tangent, b.full_like(tangent, 0))
        return [b.div(self.again(b, op, chosen, kind="sum"), count), *token]

    def _vjp(
        self, b: Builder, op: Op, cotangents: Sequence[Value | None], wanted: Sequence[bool]
    ) -> list[Value | None]:
        (ct, *token) = cotangents
        assert ct is not None
        if op.attrs.get("kind", "sum") == "sum":
            return [self.transpose(b, op, ct), *token]
        mask, count = self._winners(b, op)
        whole = b.div(self.again(b, op, ct, kind="sum"), count)
        return [b.select(mask, whole, b.full_like(whole, 0)), *token]

    def _winners(self, b: Builder, op: Op) -> tuple[Value, Value]:
        """Where this member has the extreme, and how many members have it: they share a derivative."""
        x, y = op.operands[0], op.results[0]
        mask = b.eq(x, y)
        return mask, self.again(b, op, b.convert(mask, dtype=x.dtype), kind="sum")

    def _batch(self, b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Marks) -> Batched:
        x, *token = operands
        end = [False] * len(token)
        attrs = op.attrs
        along = not token and attrs["group"] == b.axis
        if b.active is not None and (along or token):
            raise batching_error(
                op,
                "all members of a group take part in a collective, and this one is in a branch, or a "
                "loop, that some examples take and others do not; compute it before the branch",
            )
        if along:
            y, differs = self.stacked(b, b.spread(x, batched[0]), attrs)
            return [y], [differs]
        if batched[0] and self.rows[0]:
            x = b.moved(x, 1, 0)
        made = b.op(op.name, x, *token, **attrs)
        y, *end_token = made if token else (made,)
        if batched[0] and self.rows[1]:
            y = b.moved(y, 1, 0)
        return [y, *end_token], [batched[0], *end]


def check_perm(perm: Any, size: int) -> None:
    """GraphError unless `perm` is pairs (from, to), with nobody twice on either side."""
    for side in (0, 1):
        ends = [pair[side] for pair in perm]
        if len(set(ends)) != len(ends) or any(not 0 <= r < size for r in ends):
            raise GraphError(f"perm={perm} is no partial permutation of {size} members")


def _with_attrs(
    infer: Callable[..., Any], attrs: tuple[str, ...], ordered: bool = False
) -> Callable[..., Any]:
    """The type rule with the attributes of its record in its signature, which tests read."""
    from inspect import Parameter, Signature

    def rule(*operands: Type, **given: Any) -> Any:
        missing = {"group", "size", *attrs} ^ given.keys()
        if missing or len(operands) != 1 + ordered:
            raise GraphError(f"takes {1 + ordered} operands and group, size, {', '.join(attrs)}")
        return infer(*operands, **given)

    kinds = Parameter.POSITIONAL_ONLY, Parameter.KEYWORD_ONLY
    parameters = [Parameter(n, kinds[0]) for n in ("x", "token")[: 1 + ordered]]
    parameters += [Parameter(n, kinds[1]) for n in ("group", "size", *attrs)]
    setattr(rule, "__signature__", Signature(parameters))  # noqa: B010
    return rule


# Sums and extremes


def _reduced(shards: Shards, *, size: int, kind: str) -> Shards:
    total = KINDS[kind].reduce(np.stack(shards), axis=0, dtype=shards[0].dtype)
    return [total] * size


def _reduce_stacked(b: Builder, x: Value, attrs: dict[str, Any]) -> tuple[Value, bool]:
    kind = (
        attrs["kind"] if attrs["size"] else "sum"
    )  # of none: nobody gets it, and no extreme is asked
    return b.op(kind, x, axes=(0,)), False


Collective(
    "all_reduce",
    "axis_reduce",
    _reduced,
    _reduce_stacked,
    lambda b, op, ct: COLLECTIVES["all_reduce"].again(b, op, ct),
    attrs=("kind",),
    example={"kind": "sum"},
    kinds=NUMBER,
)

# Rows of all members

Collective(
    "all_gather",
    "axis_gather",
    lambda shards, *, size: [np.stack(shards)] * size,
    lambda b, x, attrs: (x, False),
    lambda b, op, ct: COLLECTIVES["all_gather"].again(b, op, ct, "reduce_scatter"),
    rows=(False, True),
)
Collective(
    "reduce_scatter",
    "axis_scatter",
    lambda shards, *, size: list(np.add.reduce(np.stack(shards), axis=0, dtype=shards[0].dtype)),
    lambda b, x, attrs: (b.op("sum", x, axes=(0,)), True),
    lambda b, op, ct: COLLECTIVES["reduce_scatter"].again(b, op, ct, "all_gather"),
    rows=(True, False),
    kinds=NUMBER,
)
Collective(
    "all_to_all",
    "axis_exchange",
    lambda shards, *, size: list(np.stack(shards).swapaxes(0, 1)),
    lambda b, x, attrs: (b.moved(x, 1, 0), True),
    lambda b, op, ct: COLLECTIVES["all_to_all"].again(b, op, ct),
    rows=(True, True),
)

# From member to member


def _permuted(shards: Shards, *, size: int, perm: tuple[tuple[int, int], ...]) -> Shards:
    results = [np.zeros_like(x) for x in shards]
    for source, target in perm:
        results[target] = shards[source]
    return results


def _permute_stacked(b: Builder, x: Value, attrs: dict[str, Any]) -> tuple[Value, bool]:
    size, givers = attrs["size"], {target: source for source, target in attrs["perm"]}
    index = b.const(np.array([givers.get(j, 0) for j in range(size)]), I64)
    y = b.gather(x, index, axes=(0,), mode="clip")
    if len(givers) == size:
        return y, True
    mask = b.const(np.array([j in givers for j in range(size)]), "bool")
    mask = b.broadcast(mask, shape=y.shape, dims=(0,)) if y.shape != mask.shape else mask
    return b.select(mask, y, b.full_like(y, 0)), True


Collective(
    "ppermute",
    "axis_permute",
    _permuted,
    _permute_stacked,
    lambda b, op, ct: COLLECTIVES["ppermute"].again(
        b, op, ct, perm=tuple((target, source) for source, target in op.attrs["perm"])
    ),
    attrs=("perm",),
    example={"perm": ((0, 0),)},
)


def _spread_stacked(b: Builder, x: Value, attrs: dict[str, Any]) -> tuple[Value, bool]:
    root, rest = attrs["root"], x.shape[1:]
    zeros = (0,) * len(rest)
    row = b.slice(x, start=(root, *zeros), stop=(root + 1, *rest), step=(1,) * len(x.shape))
    return b.reshape(row, shape=rest), False


def _collected(shards: Shards, *, size: int, root: int) -> Shards:
    total = np.add.reduce(np.stack(shards), axis=0, dtype=shards[0].dtype)
    return [total if i == root else np.zeros_like(total) for i in range(size)]


def _collect_stacked(b: Builder, x: Value, attrs: dict[str, Any]) -> tuple[Value, bool]:
    total = b.op("sum", x, axes=(0,))
    here = b.const(np.arange(attrs["size"]) == attrs["root"], "bool")
    y = b.broadcast(total, shape=x.shape, dims=tuple(range(1, len(x.shape))))
    mask = b.broadcast(here, shape=x.shape, dims=(0,)) if y.shape != here.shape else here
    return b.select(mask, y, b.full_like(y, 0)), True


Collective(
    "reduce_to",
    "axis_collect",
    _collected,
    _collect_stacked,
    lambda b, op, ct: COLLECTIVES["reduce_to"].again(b, op, ct, "send_all", root=op.attrs["root"]),
    attrs=("root",),
    example={"root": 0},
    kinds=NUMBER,
)
Collective(
    "send_all",
    "axis_spread",
    lambda shards, *, size, root: [shards[root]] * size,
    _spread_stacked,
    lambda b, op, ct: COLLECTIVES["send_all"].again(b, op, ct, "reduce_to", root=op.attrs["root"]),
    attrs=("root",),
    example={"root": 0},
)

# Who am I?


def _infer_index(*, group: str, size: int) -> TensorType:
    if not isinstance(group, str) or size < 0:
        raise GraphError(f"group={group!r} of {size} members")
    return TensorType((), I64)


def _batch_index(b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Marks) -> Batched:
    if op.attrs["group"] == b.axis:
        return [b.iota(shape=(b.size,), dtype=I64, axis=0)], [True]
    return [b.again(op, operands).result], [False]


def _axis_index(*, group: str, size: int) -> Array:
    if size != 1:
        raise GraphError(f"the axis {group!r} is not one of a vmap around")
    return np.asarray(0, I64)


opaque(
    "axis_index",
    _infer_index,
    _axis_index,
    family="source",
    batch=_batch_index,
    cost=Cost.FREE,
    attrs=("group", "size"),
    examples=(Example((), {"group": "i", "size": 1}),),
    doc="which example of the vmap over a named axis this is",
)

ALONG_AXES = frozenset({"axis_index", *(c.named for c in COLLECTIVES.values())})
"""The ops of named axes: `vmap` makes others of them, and no code is made of these."""
