"""Lowering of tapes. A tape lives behind an int64 handle, which a push changes only if it was null.

By themselves pushes and pops are steps that copy arrays. In scalar code their values are in registers:
a push then is a look whether there is room, stores, and a new top (`cpu_tapes` has the layout).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ....ir.graph import Op
from ....ir.graph import Value as GraphValue
from ....ir.types import BOOL, I64, TensorType
from ...llvm.builder import NULL, Value
from ...llvm.instructions import SCALAR_TYPES
from ...loop_ir.scalar_code import Require, Special
from ...loop_ir.steps import TapeNew, TapePop, TapePush
from ...lowering.lower import Lowering, lowering, memory_type
from ...lowering.lower_control import bind, contiguous, operand_array, result_array
from ...lowering.scalar_builder import SMALL, ScalarBuilder, Unfit, rule
from ...scalar import Expr, Unique, var
from . import cpu_tapes as layout


@lowering("tape_new")
def _tape_new(low: Lowering, op: Op) -> None:
    array = result_array(low, op.result)
    assert array is not None
    low.items.append(TapeNew(array, _no_memory(low, op)))
    low.arrays[op.result] = array


@lowering("tape_push")
def _tape_push(low: Lowering, op: Op) -> None:
    tape, *values = op.operands
    handle = low.arrays[tape]
    arrays = [contiguous(low, operand_array(low, v)) for v in values]
    low.items.append(TapePush(handle, [a for a in arrays if a is not None], _no_memory(low, op)))
    low.arrays[op.result] = handle


@lowering("tape_pop")
def _tape_pop(low: Lowering, op: Op) -> None:
    handle = low.arrays[op.operands[0]]
    tape, *values = op.results
    arrays = [result_array(low, v) for v in values]
    low.items.append(TapePop(handle, [a for a in arrays if a is not None]))
    low.arrays[tape] = handle
    bind(low, op, [None, *arrays])


def _no_memory(low: Lowering, op: Op) -> int:
    return low.context.site("memory", "no memory for what the backward pass of this loop needs", op)


# In scalar code


@rule("tape_new")
def _new_in_loop(c: ScalarBuilder, op: Op) -> None:
    made, handle = var(Unique("made"), BOOL), var(Unique("tape"), I64)

    def write(b: Any, values: Sequence[Value], pointers: Sequence[Value]) -> list[Value]:
        tape = b.run(layout.new_tape(), values[0].to("inttoptr", "ptr"))
        return [tape.ne(NULL), tape.to("ptrtoint", "i64")]

    _state(c, [made, handle], [c.tapes()], write)
    c.block.statements.append(Require(made, _no_memory(c.low, op), []))
    c.bind(op.result, _single(handle))


@rule("tape_push")
def _push_in_loop(c: ScalarBuilder, op: Op) -> None:
    tape, *values = op.operands
    _refuse_large(values)
    numbers = [(v, c.elements(v)) for v in values]
    offsets, nbytes = layout.places([_type(v).nbytes for v in values])
    room, handle = var(Unique("room"), BOOL), var(Unique("tape"), I64)

    def look(b: Any, x: Sequence[Value], pointers: Sequence[Value]) -> list[Value]:
        found = layout.with_room(b, x[0].to("inttoptr", "ptr"), nbytes, x[1].to("inttoptr", "ptr"))
        return [found.ne(NULL), found.to("ptrtoint", "i64")]

    def push(b: Any, x: Sequence[Value], pointers: Sequence[Value]) -> tuple[()]:
        record = layout.push_there(b, x[0].to("inttoptr", "ptr"), nbytes)
        for (dtype, offset), value in zip(_fields(values, offsets), x[1:], strict=True):
            word = b.convert("zext", value, "i8") if dtype == BOOL else value
            b.store(word, record, offset, align=dtype.itemsize)
        return ()

    _state(c, [room, handle], [c.scalar(tape), c.tapes()], look)
    c.block.statements.append(Require(room, _no_memory(c.low, op), []))
    _state(c, [], [handle, *(e for _, held in numbers for e in held.flat)], push)
    c.bind(op.result, _single(handle))


@rule("tape_pop")
def _pop_in_loop(c: ScalarBuilder, op: Op) -> None:
    tape, *values = op.results
    _refuse_large(values)
    offsets, nbytes = layout.places([_type(v).nbytes for v in values])
    fields = list(_fields(values, offsets))
    results = [var(Unique("popped"), dtype) for dtype, _ in fields]

    def pop(b: Any, x: Sequence[Value], pointers: Sequence[Value]) -> list[Value]:
        record = layout.pop_there(b, x[0].to("inttoptr", "ptr"), nbytes)
        words = []
        for dtype, offset in fields:
            if dtype == BOOL:
                words.append(b.load("i8", record, offset, align=1).ne(0))
            else:
                words.append(b.load(SCALAR_TYPES[dtype], record, offset, align=dtype.itemsize))
        return words

    handle = c.scalar(op.operands[0])
    _state(c, results, [handle], pop)
    c.bind(tape, _single(handle))
    taken = iter(results)
    for v in values:
        held = np.empty(_type(v).shape, object)
        for place in np.ndindex(*held.shape):
            held[place] = next(taken)
        c.bind(v, held)


def _state(c: ScalarBuilder, results: list[Expr], operands: list[Expr], write: Any) -> None:
    c.block.statements.append(
        Special(results, operands, [], write, helpers=layout.runtime(), keeps_gil=False)
    )


def _refuse_large(values: Sequence[GraphValue]) -> None:
    """Large arrays are copied by steps."""
    if any(_type(v).size > SMALL for v in values):
        raise Unfit


def _type(v: GraphValue) -> TensorType:
    """What a value of a record is in memory: of a tape its handle."""
    type = memory_type(v)
    assert type is not None
    return type


def _fields(values: Sequence[GraphValue], offsets: Sequence[int]) -> Iterator[tuple[Any, int]]:
    """The dtype of each number of a record, and where it is."""
    for v, offset in zip(values, offsets, strict=True):
        type = _type(v)
        for k in range(type.size):
            yield type.dtype, offset + k * type.dtype.itemsize


def _single(expr: Expr) -> Any:
    held = np.empty((), object)
    held[()] = expr
    return held
