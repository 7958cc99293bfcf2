"""Families of ops: the rules that a record need not spell out because its family implies them.

- `elementwise`: partials give jvp and vjp. An elementwise Jacobian is diagonal, so one rule,
  "the tangent times the local derivative", serves both directions. A batch is one more dimension.
- `linear`: linear in some operands jointly. jvp applies the op to tangents; vjp calls `transpose`.
- `opaque`: an op that spells out its own rules.

Every record carries what a generic test needs: `extra["examples"]` are operands and attributes that
the type rule accepts, `extra["domain"]` bounds the float samples to where the op is smooth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Unpack

import numpy as np

from ..batching.transform import Rule, batch_elementwise
from ..build import Builder, Grads, Wanted
from ..cost import Cost
from ..graph import Graph, Op, Value
from ..opdef import Facts, GraphError, OpDef, register
from ..record import field, record
from ..types import DTYPE_NAMES, TensorType, dtype_kind, is_complex, real_dtype
from .masks import product
from .term import Term

Array = np.ndarray[Any, Any]
DType = np.dtype[Any]
Partial = Callable[..., Term]

FLOAT = "f"
INEXACT = "fc"
REAL = "iuf"
NUMBER = "iufc"
INTEGER = "iu"
BITS = "biu"
ANY = "biufc"


class _Identity:
    """The partial of an operand that passes through unchanged: the tangent itself."""

    def __call__(self, t: Term, z: Term, *operands: Term) -> Term:
        return t


IDENTITY = _Identity()


@record
class Arg:
    """One operand of an example. `dtype` "T" stands for the dtype that the test is at.

    Integer operands with `below` are sampled from 0..below-1. Float operands with `distinct` take
    values that differ from each other, so that ties do not blur a derivative.
    """

    shape: tuple[int, ...]
    dtype: str = "T"
    below: int | None = None
    distinct: bool = False


@record
class Example:
    """Operands and attributes that an op accepts, for the tests that walk all ops."""

    args: tuple[Arg, ...]
    attrs: dict[str, Any] = field(default_factory=dict)
    kinds: str = "biufc"  # dtypes that go with these attributes, if the op accepts them
    regions: Callable[[DType], tuple[Graph, ...]] | None = None  # for the dtype "T"


def examples(*shapes: Sequence[int], **attrs: Any) -> tuple[Example, ...]:
    """One example whose operands have `shapes` and the dtype under test."""
    return (Example(tuple(Arg(tuple(s)) for s in shapes), attrs),)


def check_kind(type: TensorType, kinds: str) -> None:
    """GraphError unless the type is a tensor's, of a dtype in `kinds` (NumPy's kind codes)."""
    if not isinstance(type, TensorType):
        raise GraphError(f"an operand is a {type}, not a tensor")
    if dtype_kind(type.dtype) not in kinds:
        names = [n for n, d in DTYPE_NAMES.items() if dtype_kind(d) in kinds]
        raise GraphError(f"operand of type {type}; accepted dtypes are {', '.join(names)}")


def check_dtype(type: TensorType, dtype: str, what: str) -> None:
    """GraphError unless the type is a tensor's of that dtype."""
    if not isinstance(type, TensorType) or type.dtype != DTYPE_NAMES[dtype]:
        raise GraphError(f"{what} has type {type}; it must be {dtype}")


def check_arity(types: Sequence[Any], count: int) -> None:
    """GraphError unless there are `count` operands."""
    if len(types) != count:
        raise GraphError(f"takes {count} operands, got {len(types)}")


def check_axes(axes: Any, rank: int) -> tuple[int, ...]:
    """`axes` as given: a tuple of increasing ints in 0..rank-1."""
    if not isinstance(axes, tuple) or list(axes) != sorted(set(axes)):
        raise GraphError(f"axes={axes!r} is not a tuple of increasing axes")
    if any(not 0 <= a < rank for a in axes):
        raise GraphError(f"axes={axes} out of range for rank {rank}")
    return axes


def check_axis(axis: int, rank: int) -> int:
    """The axis; GraphError unless it is in 0..rank-1."""
    if not 0 <= axis < rank:
        raise GraphError(f"axis={axis} out of range for rank {rank}")
    return axis


def check_same(types: Sequence[TensorType], dtypes_too: bool = True) -> None:
    """All shapes equal, and all dtypes."""
    first = types[0]
    for other in types[1:]:
        if other is first:
            continue
        if not isinstance(other, TensorType):
            raise GraphError(f"an operand is a {other}, not a tensor")
        if other.shape != first.shape:
            raise GraphError(f"operand shapes {first} and {other} differ; broadcast one of them")
        if dtypes_too and other.dtype != first.dtype:
            raise GraphError(f"operand dtypes {first} and {other} differ; convert one of them")


def elementwise(
    name: str,
    cost: Cost,
    reference: Callable[..., Any],
    partials: Sequence[Partial | None] | None = None,
    *,
    kinds: str = FLOAT,
    operands: Sequence[str] = ("T",),
    result: str = "T",
    infer: Callable[..., TensorType] | None = None,
    samples: dict[str, Any] | None = None,
    domain: tuple[float, float] | Sequence[tuple[float, float]] = (-2.0, 2.0),
    of_complex: tuple[Partial, Partial] | None = None,
    **facts: Unpack[Facts],
) -> OpDef:
    """Define an op that works on each element by itself.

    `operands` and `result` name dtypes, "T" being the common dtype of the operands so marked, of a
    kind in `kinds`, and "real" as a result that of its parts. All operands have one shape.

    `partials` has one entry per operand: `None` (derivative zero), or a function of Terms
    `(t, z, *operands) -> Term` that gives the tangent `t` times the local derivative, `z` being the
    result. It must be linear in `t`. An op without float operands or result has no partials.
    At complex operands `t` and the local derivative p are complex, and so the op is analytic or, with
    the result "real", has the tangent Re(t p), of which ct p is the transpose. An op of one operand
    that is neither has `of_complex`: what to do with a tangent, and with a cotangent.
    """

    uniform = all(wanted == "T" for wanted in (*operands, result))

    def infer_types(*types: TensorType, **_: Any) -> TensorType:
        check_arity(types, len(operands))
        if uniform:
            first = types[0]
            check_kind(first, kinds)
            check_same(types)
            return first
        for type, wanted in zip(types, operands, strict=True):
            if wanted == "T":
                check_kind(type, kinds)
            else:
                check_dtype(type, wanted, "an operand")
        check_same([t for t, wanted in zip(types, operands, strict=True) if wanted == "T"])
        check_same(types, dtypes_too=False)
        if result in ("T", "real"):
            common = types[list(operands).index("T")]
            return common if result == "T" else common.with_dtype(real_dtype(common.dtype))
        return types[0].with_dtype(DTYPE_NAMES[result])

    def jvp(b: Builder, op: Op, tangents: Sequence[Value | None]) -> list[Value | None]:
        total: Value | None = None
        for i, t in enumerate(tangents):
            part = None if t is None else _apply(b, op, i, t, op.result.dtype, 0)
            if part is not None:
                total = part if total is None else b.op("add", total, part)
        return [total]

    def vjp(b: Builder, op: Op, cotangents: Sequence[Value], wanted: Wanted) -> Grads:
        (ct,) = cotangents
        return [
            _apply(b, op, i, ct, op.operands[i].dtype, 1) if want else None
            for i, want in enumerate(wanted)
        ]

    def _apply(b: Builder, op: Op, i: int, t: Value, dtype: DType, direction: int) -> Value | None:
        assert partials is not None
        partial = partials[i]
        if of_complex is not None and is_complex(op.operands[i].dtype):
            partial = of_complex[direction]
        if partial is None or partial is IDENTITY:
            return t if partial is IDENTITY else None
        own = op.operands[i].dtype
        if is_complex(own) and not is_complex(t.dtype):
            t = b.op("convert", t, dtype=own)
        tangent = product(b, t, partial, op.result, op.operands)
        return tangent if tangent.dtype == dtype else b.op("real", tangent)

    shapes = ((2, 3), (), (0, 2))
    facts.setdefault("pointwise", True)
    return opaque(
        name,
        infer or infer_types,
        reference,
        family="elementwise",
        jvp=jvp if partials is not None else None,
        vjp=vjp if partials is not None else None,
        batch=batch_elementwise,
        kinds=kinds,
        examples=tuple(
            Example(tuple(Arg(shape, d) for d in operands), dict(samples or {})) for shape in shapes
        ),
        cost=cost,
        extra={"partials": partials, "of_complex": of_complex, "domain": domain},
        **facts,
    )


def linear(
    name: str,
    infer: Callable[..., TensorType],
    reference: Callable[..., Any],
    transpose: Callable[[Builder, Op, Value, int], Value],
    *,
    batch: Rule,
    cost: Cost,
    linear_in: tuple[int, ...] | None = None,
    kinds: str = ANY,
    examples: tuple[Example, ...] = (),
    **facts: Unpack[Facts],
) -> OpDef:
    """Define an op that is linear, jointly, in the operands `linear_in` (None: in all of them).

    `transpose(b, op, ct, i)` gives the cotangent of operand `i`, one of `linear_in`.
    """

    def jvp(b: Builder, op: Op, tangents: Sequence[Value | None]) -> list[Value | None]:
        varying = range(len(op.operands)) if linear_in is None else linear_in
        operands = list(op.operands)
        for i in varying:
            t = tangents[i]
            operands[i] = b.zeros(operands[i].tensor) if t is None else t
        return [b.op(op.name, *operands, **op.attrs)]

    def vjp(b: Builder, op: Op, cotangents: Sequence[Value], wanted: Wanted) -> Grads:
        (ct,) = cotangents
        grads: list[Value | None] = [None] * len(op.operands)
        for i in reversed(range(len(wanted))):  # what reads a part of ct, then what updates it
            if wanted[i] and (linear_in is None or i in linear_in):
                grads[i] = transpose(b, op, ct, i)
        return grads

    facts.setdefault("moves", True)
    return opaque(
        name,
        infer,
        reference,
        family="linear",
        jvp=jvp,
        vjp=vjp,
        batch=batch,
        kinds=kinds,
        examples=examples,
        cost=cost,
        extra={"linear_in": linear_in, "transpose": transpose},
        **facts,
    )


def opaque(
    name: str,
    infer: Callable[..., Any],
    reference: Callable[..., Any],
    *,
    family: str = "opaque",
    jvp: Callable[..., Any] | None = None,
    vjp: Callable[..., Any] | None = None,
    batch: Rule | None = None,
    kinds: str = ANY,
    examples: tuple[Example, ...] = (),
    cost: Any = None,  # a Cost, or that of the family
    extra: dict[str, Any] | None = None,
    **facts: Unpack[Facts],
) -> OpDef:
    """Define an op that brings its own rules."""

    def evaluate(*arrays: Array, **attrs: Any) -> Array | tuple[Array, ...]:
        results = reference(*arrays, **attrs)
        return (
            tuple(map(np.asarray, results)) if isinstance(results, tuple) else np.asarray(results)
        )

    return register(
        OpDef(
            name,
            family,
            infer,
            evaluate,
            jvp,
            vjp,
            batch=batch,
            cost=cost,
            dtypes=kinds,
            **facts,
            extra={**(extra or {}), "examples": examples},
        )
    )
