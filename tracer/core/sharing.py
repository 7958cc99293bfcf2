"""Assigning into an array that perhaps is another one.

    z = y = x + 1
    if p:
        y = y * 2
    y[0] = 5        # is z[0] 5 now? only if p is false

Which arrays one perhaps is (`Storage.perhaps`) the ops of branches and loops say. A function in which
that matters is traced once more, and its ops then tell at run time, too, whether two arrays are one (a
`Relation`): where one is assigned into, the other takes the same elements if it is the same array.

What cannot be told so is refused if the other array is read later, or can still be seen. That is judged
when the outermost branch or loop is complete: until then its own bookkeeping refers to arrays that the
program has let go of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any
from weakref import ReferenceType, ref

from ...ir.build import Builder
from ...ir.graph import Graph, Op, SourceLine, Value
from ...ir.opdef import OPS
from ...ir.record import record
from ...ir.types import I32
from ..messages import errors
from ..messages.errors import complain
from ..messages.source import user_line
from .trace import require_trace
from .tracers import Storage, Tracer, ViewStep, as_value

Steps = tuple[ViewStep, ...]


class Again(BaseException):
    """The function has to be traced again. No handler of the user's is for it."""


@record(frozen=False, eq=False)
class Following:
    """Whether a function is traced so that its ops tell which arrays are one."""

    is_on: bool = False


_FOLLOWING: ContextVar[Following | None] = ContextVar("jitney_following", default=None)


@contextmanager
def following(how: Following) -> Iterator[None]:
    """Inside, a function is traced that can be traced again."""
    reset = _FOLLOWING.set(how)
    try:
        yield
    finally:
        _FOLLOWING.reset(reset)


def is_following() -> bool:
    """Whether ops are to tell which arrays are one."""
    how = _FOLLOWING.get()
    return how is not None and how.is_on


@record(eq=False)
class Relation:
    """What one storage perhaps is to another: the same array, or a view of it that `steps` lead to
    (`from_other`; else they lead from this one to the other). Whether it is, `holds` tells: True, a
    traced bool, or None where the program does not tell."""

    other: ReferenceType[Any]  # a storage, or an array that NumPy made
    holds: Any = None
    steps: Steps = ()
    from_other: bool = True
    base: Storage | None = None  # of a view: what others of its views are updated by

    @property
    def is_alive(self) -> bool:
        other = self.other()
        return other is not None and not (isinstance(other, Storage) and other.trace.done)


def relate(
    one: Storage, other: Storage, holds: Any, steps: Steps = (), from_other: bool = True
) -> None:
    """Note that an array perhaps is another one, or a view of it (or the other of this one)."""
    one_base = other if steps and from_other else None
    other_base = one if steps and not from_other else None
    new = Relation(ref(other), holds, steps, from_other, one_base)
    back = Relation(ref(one), holds, steps, not from_other, other_base)
    one.perhaps = (*filter(_is_alive, one.perhaps), new)
    other.perhaps = (*filter(_is_alive, other.perhaps), back)


def _is_alive(relation: Relation) -> bool:
    return relation.is_alive


def steps_of(x: Tracer) -> Steps | None:
    """The way from a storage to one of its views; None where it depends on traced values."""
    steps = []
    step = x._view
    while step is not None:
        if step.numpy is None or step.inverse is None:
            return None
        steps.append(step)
        step = step.base._view
    return tuple(reversed(steps))


def write_to_others(storage: Storage, before: Value, x: Tracer, new: Value) -> None:
    """`x`, a view of `storage` (or all of it), was overwritten with `new`: so are the same elements of
    the arrays that `storage` perhaps is. It held `before`."""
    steps = steps_of(x)
    if steps is None:
        steps, new = (), storage.value
    updates = _updates(storage.value, before)
    doubts = []
    for relation in [r for r in storage.perhaps if r.is_alive]:
        other = relation.other()
        if relation.holds is None:
            doubts.append(relation.other)
        elif not relation.from_other:
            _read_again(relation, storage)
        elif updates and not relation.steps:
            _write(other, partial(_updated, updates, relation.holds))
        else:
            _write(other, partial(_overwritten, (*relation.steps, *steps), relation.holds, new))
        if isinstance(other, Storage) and relation.base is other:
            for view in other.perhaps:
                if view.steps and not view.from_other and view.is_alive and view.holds is not None:
                    _read_again(view, other)
    if doubts:
        doubt = Doubt(tuple(doubts), user_line(3), "")
        for other in (one() for one in doubts):
            if isinstance(other, Storage):
                other.missed = [*(other.missed or ()), doubt]
        settle_doubts([doubt])


def _write(storage: Any, change: Callable[[Builder, Value], Value]) -> None:
    trace = require_trace()
    if storage.trace is not trace and not trace.adopt(storage):
        complain(
            errors.OuterMutationError,
            f"assignment, inside {trace.what}, to an array that may be one that lives outside of it",
            "pass the array in as an operand or as part of the carry, and return it.",
        )
    with trace.builder.at(user_line(4)):
        storage.value = change(trace.builder, storage.value)
    storage.version += 1


def _read_again(relation: Relation, base: Storage) -> None:
    """What perhaps is a view of an array that was overwritten."""

    def read(b: Builder, old: Value) -> Value:
        value = as_value(Tracer(base, base.value.tensor))
        for step in relation.steps:
            value = step.forward(b, value)
        return _chosen(b, relation.holds, value, old)

    _write(relation.other(), read)


def _overwritten(steps: Steps, holds: Any, new: Value, b: Builder, whole: Value) -> Value:
    """`whole` with `new` in the place of its view, if that `holds`."""
    values = [whole]
    for step in steps:
        values.append(step.forward(b, values[-1]))
    result = _chosen(b, holds, new, values.pop())
    for step, value in zip(reversed(steps), reversed(values), strict=True):
        assert step.inverse is not None
        result = step.inverse(b, value, result)
    return result


def _chosen(b: Builder, holds: Any, new: Value, old: Value) -> Value:
    if holds is True:
        return new
    chosen: Value = b.select(b.broadcast_to(as_value(holds), new.shape), new, old)
    return chosen


def _updates(value: Value, before: Value) -> list[Op]:
    """The ops that have updated a few elements of `before`, which made it `value`; none if there is more
    to it."""
    ops: list[Op] = []
    while value is not before:
        if value.op is None or not value.op.definition.updates:
            return []
        ops.append(value.op)
        value = value.op.operands[0]
    return ops[::-1]


def _updated(ops: Sequence[Op], holds: Any, b: Builder, whole: Value) -> Value:
    """`whole` with the same updates, if that `holds`: a branch, which costs no more than they do."""
    first = ops[0].operands[0]
    if holds is True:
        return _copied(b, ops, {v: v for op in ops for v in op.operands} | {first: whole})
    captured = list(dict.fromkeys(v for op in ops for v in op.operands[1:]))
    graphs = []
    for replayed in ((), ops):
        graph = Graph("update")
        old, *inside = (graph.add_param(v.type) for v in (whole, *captured))
        env = dict(zip(captured, inside, strict=True)) | {first: old}
        graph.outputs = [_copied(Builder(graph), replayed, env) if replayed else old]
        graphs.append(graph)
    index = b.convert(as_value(holds), dtype=I32)
    return b.append(OPS["cond"], [index, whole, *captured], {}, graphs).results[0]


def _copied(b: Builder, ops: Sequence[Op], env: dict[Value, Value]) -> Value:
    for op in ops:
        b.copy(op, env)
    return env[ops[-1].result]


@record(frozen=False, eq=False)
class Doubt:
    """An assignment into an array that perhaps is one of others. It matters if those are read after it,
    or can be seen when the outermost branch or loop is complete."""

    others: tuple[ReferenceType[Any], ...]
    line: SourceLine | None
    name: str  # of the variable, where that is known
    is_read: bool = False

    def settle(self) -> None:
        if not self.is_read and all(other() is None for other in self.others):
            return
        trace_again()
        name = self.name or "x"
        complain(
            errors.OuterMutationError,
            f"this assigns into an array{' of ' + repr(self.name) if self.name else ''} that may be "
            "the same as another one that is still in use, or not, as conditions decide that are known "
            "only when the compiled function runs",
            f"assign to a copy: {name} = {name}.copy() where they part.",
            line=self.line,
        )


def trace_again() -> None:
    """Trace the function again with traced arrays in the place of those that NumPy makes, unless that is
    done already, or cannot be."""
    how = _FOLLOWING.get()
    if how is not None and not how.is_on:
        how.is_on = True
        raise Again


def settle_doubts(doubts: Sequence[Doubt]) -> None:
    """Judge doubts, or leave that to the branch or loop around."""
    adoption = require_trace().adoption
    if adoption is not None:
        adoption.doubts += doubts
        return
    for one in doubts:
        one.settle()
