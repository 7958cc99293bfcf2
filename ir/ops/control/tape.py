"""Tapes: stacks that grow while a program runs, for what the backward pass of a loop needs.

    tape_new() -> tape                              an empty tape
    tape_push(tape, *values) -> tape                with one more record on top
    tape_pop(tape; types) -> (tape, *values)        without its top record, and that record

A tape lives in one call of one graph. Its values are used linearly, so compiled code pushes in
place. A record holds any number of tensors, and tapes, which move into it. `tape_new` is never
merged with another.

**An empty tape gives zeros**: popping it yields zeros (and empty tapes) and leaves it empty. So
a new tape stands for any number of records of zeros, which makes it the zero of derivatives.

Push and pop are linear, and transposes of each other. Beside a tape runs its tangent, a tape with
the tangents of the floats and tapes in each record; the cotangent of a tape is a tape with
their cotangents. Records of integers alone have no counterpart there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...autodiff.transform import is_differentiable
from ...batching.tapes import batch_new, batch_pop, batch_push
from ...build import Builder, Grads, Wanted
from ...cost import Cost
from ...graph import Op, Value
from ...opdef import GraphError, OpDef, register
from ...types import TAPE, TOKEN, TapeType, TensorType, Type, type_of

Tape = tuple[Any, ...]  # () or (the tape below, the top record): immutable, so views may be shared
EMPTY: Tape = ()


def _infer_push(tape: Type, *values: Type) -> TapeType:
    _check_tape(tape)
    if TOKEN in values:
        raise GraphError("a token cannot be put on a tape")
    return TAPE


def _infer_pop(tape: Type, *, types: tuple[Type, ...]) -> tuple[Type, ...]:
    _check_tape(tape)
    if not isinstance(types, tuple) or not all(isinstance(t, TensorType | TapeType) for t in types):
        raise GraphError(f"types={types!r} is not a tuple of types of tensors and tapes")
    return (TAPE, *types)


def _check_tape(tape: Type) -> None:
    if tape != TAPE:
        raise GraphError(f"the first operand is a {tape}, not a tape")


def _pop(tape: Tape, types: Sequence[Type]) -> tuple[Any, ...]:
    if not tape:
        return (EMPTY, *(_zero(t) for t in types))
    below, record = tape
    record_types = tuple(TAPE if isinstance(v, tuple) else type_of(v) for v in record)
    if record_types != tuple(types):
        raise GraphError(f"the top of the tape holds {record_types}, not {types}")
    return (below, *record)


def _zero(type: Type) -> Any:
    return np.zeros(type.shape, type.dtype) if isinstance(type, TensorType) else EMPTY


# Derivatives


def _active(types: Sequence[Type]) -> list[int]:
    return [i for i, t in enumerate(types) if is_differentiable(t)]


def _push(
    b: Builder, tape: Value | None, values: Sequence[Value | None], types: Sequence[Type]
) -> list[Value | None]:
    """`tape` with a record of the derivatives `values` of a record of `types`; None is zero."""
    pairs = [(values[i], types[i]) for i in _active(types)]
    if not pairs:
        return [tape]
    filled = [b.zeros(t) if v is None else v for v, t in pairs]
    return [b.op("tape_push", b.op("tape_new") if tape is None else tape, *filled)]


def _jvp_push(b: Builder, op: Op, tangents: Sequence[Value | None]) -> list[Value | None]:
    tape, *values = tangents
    return _push(b, tape, values, [v.type for v in op.operands[1:]])


def _vjp_push(b: Builder, op: Op, cotangents: Sequence[Value | None], wanted: Wanted) -> Grads:
    (tape,) = cotangents
    return _taken(b, tape, [v.type for v in op.operands[1:]])


def _taken(b: Builder, tape: Value | None, types: Sequence[Type]) -> list[Value | None]:
    """The derivative tape `tape` below its top record, and that record, for a record of `types`."""
    out: list[Value | None] = [None] * len(types)
    active = _active(types)
    if tape is not None and active:
        tape, *popped = b.op("tape_pop", tape, types=tuple(types[i] for i in active))
        for i, value in zip(active, popped, strict=True):
            out[i] = value
    return [tape, *out]


def _jvp_pop(b: Builder, op: Op, tangents: Sequence[Value | None]) -> list[Value | None]:
    return _taken(b, tangents[0], op.attrs["types"])


def _vjp_pop(b: Builder, op: Op, cotangents: Sequence[Value | None], wanted: Wanted) -> Grads:
    tape, *values = cotangents
    return _push(b, tape, values, op.attrs["types"])


register(
    OpDef(
        "tape_new",
        "source",
        lambda: TAPE,
        lambda: (EMPTY,),
        cost=Cost.FREE,
        batch=batch_new,
        doc="an empty tape",
    )
)
register(
    OpDef(
        "tape_push",
        "tape",
        _infer_push,
        lambda tape, *values: ((tape, values),),
        _jvp_push,
        _vjp_push,
        total=False,
        batch=batch_push,
        doc="the tape with a record of these values on top",
    )
)
register(
    OpDef(
        "tape_pop",
        "tape",
        _infer_pop,
        _pop,
        _jvp_pop,
        _vjp_pop,
        total=False,
        batch=batch_pop,
        attrs=("types",),
        doc="the tape without its top record, and the values of that record; zeros if it is empty",
    )
)
