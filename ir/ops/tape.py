"""Tapes: stacks that grow while a program runs, for what the backward pass of a loop needs.

    tape_new() -> tape                              an empty tape
    tape_push(tape, *values) -> tape                with one more record on top
    tape_pop(tape; types) -> (tape, *values)        without its top record, and that record

A tape lives in one call of one graph. Its values are used linearly, so compiled code pushes in
place. A record holds any number of tensors, and tapes, which move into it. `tape_new` is never
merged with another.

**An empty tape gives zeros**: popping it yields zeros (and empty tapes) and leaves it empty. So
a new tape stands for any number of records of zeros, which makes it the zero of derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..opdef import GraphError, OpDef, register
from ..types import TAPE, TOKEN, TapeType, TensorType, Type, type_of

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
    found = tuple(TAPE if isinstance(v, tuple) else type_of(v) for v in record)
    if found != tuple(types):
        raise GraphError(f"the top of the tape holds {found}, not {types}")
    return (below, *record)


def _zero(type: Type) -> Any:
    return np.zeros(type.shape, type.dtype) if isinstance(type, TensorType) else EMPTY


register(
    OpDef(
        "tape_new",
        "source",
        lambda: TAPE,
        lambda: (EMPTY,),
        doc="an empty tape",
        extra={"examples": ()},
    )
)
register(
    OpDef(
        "tape_push",
        "tape",
        _infer_push,
        lambda tape, *values: ((tape, values),),
        doc="the tape with a record of these values on top",
        extra={"examples": ()},
    )
)
register(
    OpDef(
        "tape_pop",
        "tape",
        _infer_pop,
        lambda tape, types: _pop(tape, types),
        attrs=("types",),
        doc="the tape without its top record, and the values of that record; zeros if it is empty",
        extra={"examples": ()},
    )
)
