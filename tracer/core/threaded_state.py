"""State that advances: arrays that a traced function reads and updates behind the scenes.

A random generator has one (`random.generator`). While a function is traced, its array is a tracer of the
trace that it came into, and drawing from it anywhere below advances it there, in program order:

- in the same trace, and in one that runs once for each time that its owner runs (a function under
  `jt.grad`, `jt.checkpoint`), by ops of the owner's graph;
- in a branch or the body of a loop, which may run never or often, through the op: the state becomes an
  operand of `cond` and a part of the carry of a loop. That a region draws is known when it does, and the
  region is then traced again (`threaded`). Where the op is a part of a function that is differentiated,
  the state is borrowed by that function's trace, and a result of it (`BorrowedStates`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

import numpy as np

from ...ir.graph import Value
from ..messages import errors
from ..messages.errors import complain
from ..messages.source import user_line
from .slots import SlotState, hand_on
from .trace import Trace, current_trace, require_trace
from .tracers import Storage, Tracer, as_value, refuse_leaked, wrap

_count = threading.local()


def let_stand_in(pairs: Iterable[tuple[Any, Any]]) -> None:
    """In the current trace the second of each pair stands in for the array that is the first."""
    require_trace().stand_ins = {id(array): tracer for array, tracer in pairs}


def stand_in(state: Any) -> Tracer | None:
    """What stands in for the state of a generator in the compiled function that is traced."""
    trace = current_trace()
    while trace is not None and trace.stand_ins is None:
        trace = trace.parent
    return None if trace is None else (trace.stand_ins or {}).get(id(state))


def count_draw() -> None:
    """A generator has drawn, in Python or in what is traced."""
    try:
        _count.draws += 1
    except AttributeError:
        _count.draws = 1


def draws() -> int:
    """How often generators have drawn in this thread."""
    count: int = getattr(_count, "draws", 0)
    return count


class Advanced(errors.OuterMutationError):
    """A region, traced by `trace`, advances the state in `storage` that is not a part of its op yet."""

    storage: Storage | SlotState
    trace: Trace


_DRAWS = "draws from a random generator that lives outside of it"
_ASSIGNS = "assigns to what lives outside of it"
_REMEDIES = {
    _DRAWS: "draw outside and pass the numbers in, or use keys: jt.random.split(rng.key()).",
    _ASSIGNS: "pass the array in as an operand or as part of the carry, and return it.",
}


def _refuse(storage: Storage | SlotState, trace: Trace, does: str) -> NoReturn:
    try:
        complain(Advanced, f"{trace.what} {does}", _REMEDIES[does])
    except Advanced as error:
        error.storage, error.trace = storage, trace
        raise


def advance(state: Tracer, step: np.ndarray[Any, Any]) -> Tracer:
    """The state as it is here; from now on it is `state + step`."""
    storage = state._storage
    _claim(storage)
    now, builder = storage.value, storage.trace.builder
    with builder.at(user_line(2)):
        storage.value = builder.add(now, builder.const(step, now.dtype))
    storage.version += 1
    return wrap(require_trace().lift(now, storage.trace), scalar=False)


def take_over(storage: Storage) -> bool:
    """Let an array of an enclosing trace be assigned to in the current one, and make sure that its value
    gets out again. False where nobody would take it back, WantsHeap where another trace would."""
    here = require_trace()
    if here.lacks_heap:
        raise errors.WantsHeap
    if here.watched is None:
        return False
    _claim(storage, _ASSIGNS)
    trace: Trace | None = here
    path: list[Trace] = []
    while trace is not storage.trace:
        assert trace is not None
        path.append(trace)
        trace = trace.parent
    for function in reversed(path):
        _borrow(storage, function)
    return True


def refuse_rebound(trace: Trace, before: Any) -> None:
    """Raise `Advanced` for the first slot that a region, which `trace` traces, has assigned to."""
    assert trace.watched is not None
    changed = trace.watched.changed(before, trace.what)
    if changed:
        with_now = changed[0]
        trace.watched.restore(before)
        _refuse(SlotState(with_now), trace, _ASSIGNS)


def refuse_written(trace: Trace) -> None:
    """Raise OuterMutationError if a region has assigned to an array of NumPy's that must stay: what
    another region does might undo it."""
    if any(array.tobytes() != before.tobytes() for array, before in trace.still):
        complain(errors.OuterMutationError, f"{trace.what} {_ASSIGNS}", _REMEDIES[_ASSIGNS])


def _claim(storage: Storage, does: str = _DRAWS) -> None:
    """Make sure that the trace that owns the state runs as often as the current one."""
    path: list[Trace] = []
    trace = current_trace()
    while trace is not storage.trace:
        if trace is None:
            refuse_leaked(Tracer(storage, storage.value.tensor))
        path.append(trace)
        trace = trace.parent
    once: list[Trace] = []  # inside of the owner, and run as often
    for trace in reversed(path):  # from the outside in
        if trace.what == "vmap" and does == _DRAWS:
            refuse_examples()
        if not trace.conditional:
            once.append(trace)
            continue
        for function in once:
            _borrow(storage, function)
        once = []
        if trace.adoption is None:
            _refuse(storage, trace, does)
        trace.adoption.adopt(storage)


def _borrow(storage: Storage, trace: Trace) -> None:
    if trace.borrowed is None:
        complain(
            errors.OuterMutationError,
            f"a loop or branch inside of {trace.what} draws from a random generator that lives "
            "outside of it",
            "make a generator of a key inside of that function: jt.random.default_rng(key), or "
            "draw before the loop or branch.",
        )
    trace.borrowed.take(storage, trace)


class BorrowedStates:
    """The states that a function, traced to run once where it stands, has taken over from outside.

    A context: at its end they go back to their owners as they were, and `advanced` says what the
    function makes of them, values of its trace, which the caller lets them be (`settle`).
    """

    def __init__(self) -> None:
        self.advanced: list[tuple[Storage, Value]] = []
        self._owners: list[tuple[Storage, Trace, Value]] = []

    def take(self, storage: Storage, trace: Trace) -> None:
        owner, outer = storage.trace, storage.value
        self._owners.append((storage, owner, outer))
        storage.trace, storage.value = trace, trace.lift(outer, owner)
        storage.version += 1

    def __enter__(self) -> None:
        trace = require_trace()
        self._before = None if trace.watched is None else trace.watched.snapshot()

    def __exit__(self, *error: object) -> None:
        trace = require_trace()
        if trace.watched is not None and error[0] is not None:
            trace.watched.restore(self._before)
        elif trace.watched is not None:
            once = trace.what != "vmap"
            changed = trace.watched.changed(self._before, trace.what, growth=once)
            hand_on(changed, trace, self.advanced)
        for storage, owner, outer in self._owners:
            self.advanced.append((storage, storage.value))
            storage.trace, storage.value = owner, outer
            storage.version += 1


def refuse_examples() -> NoReturn:
    """Raise OuterMutationError."""
    complain(
        errors.OuterMutationError,
        "a function under jt.vmap draws from a random generator that lives outside of it: all "
        "examples would get the same numbers",
        "make the generator inside, of a seed or key of each example: jt.vmap(lambda seed: "
        "f(np.random.default_rng(seed)))(seeds), or keys = jt.random.split(rng.key(), n).",
    )


def threaded(build: Callable[[list[Any]], Any], otherwise: Callable[[], Any] | None = None) -> Any:
    """`build(storages)`, which traces regions of one op, with all states that they advance.

    Where a region draws that cannot hand a state on (the condition of a loop): `otherwise()`.
    """
    storages: list[Storage | SlotState] = []
    while True:
        try:
            return build(storages)
        except Advanced as error:
            if error.trace.parent is not current_trace():
                raise  # another op's region
            storage, what = error.storage, error.trace.what
        if storage in storages:
            if otherwise is not None:
                return otherwise()
            complain(
                errors.OuterMutationError,
                f"{what} changes what lives outside of it (a random generator, an attribute, an array)",
                "change it in the body, and let the condition look at the carry.",
            )
        storages.append(storage)


def states(storages: Sequence[Storage | SlotState]) -> tuple[Tracer, ...]:
    """The states, as operands or initial carries."""
    return tuple(
        s.now() if isinstance(s, SlotState) else wrap(s.value, scalar=False) for s in storages
    )


def settle(storages: Sequence[Storage | SlotState], after: Sequence[Tracer | Value]) -> None:
    """Let the states be what the op has made of them."""
    for storage, value in zip(storages, after, strict=True):
        if isinstance(storage, SlotState):
            storage.settle(value)
            continue
        storage.value = value if isinstance(value, Value) else as_value(value)
        storage.version += 1


def inside(
    storages: Sequence[Storage | SlotState],
    now: Sequence[Tracer],
    function: Callable[..., Any],
    *args: Any,
) -> tuple[Any, tuple[Tracer, ...]]:
    """`function(*args)` in a region where the states are `now`, and what it leaves them at."""
    here = require_trace()
    slots = [s for s in storages if isinstance(s, SlotState)]
    held = [s.slot.get() for s in slots]
    before = [(s, s.trace, s.value) for s in storages if isinstance(s, Storage)]
    for storage, state in zip(storages, now, strict=True):
        if isinstance(storage, SlotState):
            storage.slot.put(state)
            continue
        storage.trace, storage.value = here, as_value(state)
        storage.version += 1
    try:
        result = function(*args)
        return result, states(storages)
    finally:
        for storage, trace, value in before:
            storage.trace, storage.value = trace, value
            storage.version += 1
        for slot, old in zip(slots, held, strict=True):
            slot.slot.put(old)
