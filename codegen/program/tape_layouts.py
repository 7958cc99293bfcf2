"""Which axis of what a loop keeps for its derivative lies in neighbours: that of the lanes.

    for i in range(n):  for k in range(m): tape[i, k] = v; v = f(v)          lanes do trips of i
    for i in range(n):  for k in reversed(range(m)): d *= g(tape[i, k])

What iterations keep is a row of each, and lanes that run side by side would write into as many rows. If
all that touches it are such loops, the rows are columns.
"""

from __future__ import annotations

import math

from ..llvm.scalar_code.lanes import lanes_of_trips, touches_far
from ..llvm.text import TextEmitter
from ..loop_ir.kernel import Array
from ..loop_ir.scalar_code import Repeat, accesses, blocks
from ..loop_ir.steps import Program, ScalarCode, touched
from ..target import Target


def lay_out_tapes(program: Program, target: Target) -> None:
    """Turn temporaries around that lanes of trips write and read."""
    users: dict[Array, list[object]] = {}
    for step in program.steps:
        for array in dict.fromkeys(a for part in touched(step) for a in part):
            if array.kind == "temp" and len(array.shape) > 1 and array.contiguous:
                users.setdefault(array, []).append(step)
    own = {array: [_loop(step, array) for step in steps] for array, steps in users.items()}
    turned = {array: loops for array, loops in own.items() if len(loops) > 1 and all(loops)}
    if not turned:
        return
    b = TextEmitter(target, 1)
    before = {loop: _is_good(b, loop) for loops in turned.values() for loop in loops if loop}
    for array in turned:
        _turn(array, True)
    while turned:
        worse = {
            array: loops
            for array, loops in turned.items()
            if all(before[loop] for loop in loops if loop)
            or not all(_is_good(b, loop) for loop in loops if loop)
        }
        if not worse:
            return
        for array in worse:
            _turn(array, False)
            del turned[array]


def _loop(step: object, array: Array) -> Repeat | None:
    """The loop that a step is, if each of its trips touches a row of the array."""
    if not isinstance(step, ScalarCode):
        return None
    loops = [s for s in step.body.statements if isinstance(s, Repeat)]
    if len(loops) != 1:
        return None
    (loop,) = loops
    counter = loop.counter
    if counter is None:
        return None
    inside = {id(block) for block in blocks(loop.body)}
    for block in blocks(step.body):
        for touched_array, index, _ in accesses(block):
            if touched_array is not array:
                continue
            first, *others = (i.stride(counter) for i in index)
            if id(block) not in inside or first not in (1, -1) or any(s != 0 for s in others):
                return None
    return loop


def _is_good(b: TextEmitter, loop: Repeat) -> bool:
    return lanes_of_trips(b, loop) > 0 and not touches_far(loop)


def _turn(array: Array, around: bool) -> None:
    first, *others = array.shape
    steps = [math.prod(others[k + 1 :]) for k in range(len(others))]
    array.strides = (1, *(first * s for s in steps)) if around else (math.prod(others), *steps)
