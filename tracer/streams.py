"""State that advances: arrays that a traced function reads and updates behind the scenes.

A random generator has one (`random.generator`). While a function is traced, its array is a tracer of the
trace that it came into, and drawing from it anywhere below advances it there, in program order:

- in the same trace, and in one that runs once for each time that its owner runs (a function under
  `jt.grad`, `jt.checkpoint`), by ops of the owner's graph;
- in a branch or the body of a loop, which may run never or often, through the op: the state becomes an
  operand of `cond` and a part of the carry of a loop. That a region draws is known when it does, and the
  region is then traced again (`threaded`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from . import errors
from .core import Storage, Tracer, as_value, refuse_leaked, wrap
from .errors import complain
from .source import user_line
from .trace import Trace, current_trace, require_trace


class Advanced(errors.OuterMutationError):
    """A region, traced by `trace`, advances the state in `storage` that is not a part of its op yet."""

    storage: Storage
    trace: Trace


def _refuse(storage: Storage, trace: Trace) -> NoReturn:
    try:
        complain(
            Advanced,
            f"{trace.what} draws from a random generator that lives outside of it",
            "draw outside and pass the numbers in, or use keys: jt.random.split(rng.key()).",
        )
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


def _claim(storage: Storage) -> None:
    """Make sure that the trace that owns the state runs as often as the current one."""
    path: list[Trace] = []
    trace = current_trace()
    while trace is not storage.trace:
        if trace is None:
            refuse_leaked(Tracer(storage, storage.value.tensor))
        path.append(trace)
        trace = trace.parent
    for trace in reversed(path):  # from the outside in
        if trace.what == "vmap":
            refuse_examples()
        if trace.conditional:
            if trace.adoption is None:
                _refuse(storage, trace)
            trace.adoption.adopt(storage)


def refuse_examples() -> NoReturn:
    complain(
        errors.OuterMutationError,
        "a function under jt.vmap draws from a random generator that lives outside of it: all "
        "examples would get the same numbers",
        "give each example a key of its own: keys = jt.random.split(rng.key(), n), and jt.vmap over "
        "keys.",
    )


def threaded(build: Callable[[list[Storage]], Any]) -> Any:
    """`build(storages)`, which traces regions of one op, with all states that they advance."""
    storages: list[Storage] = []
    while True:
        try:
            return build(storages)
        except Advanced as error:
            if error.trace.parent is not current_trace():
                raise  # another op's region
            storage, what = error.storage, error.trace.what
        if storage in storages:
            complain(
                errors.OuterMutationError,
                f"{what} draws from a random generator",
                "draw in the body, and let the condition look at the carry.",
            )
        if storage.trace is not current_trace():
            complain(
                errors.OuterMutationError,
                f"{what}, inside of a function that is differentiated, draws from a random generator "
                "that lives outside of both",
                "make a generator of a key inside of that function: jt.random.default_rng(key), or "
                "draw before the loop or branch.",
            )
        storages.append(storage)


def states(storages: Sequence[Storage]) -> tuple[Tracer, ...]:
    """The states, as operands or initial carries."""
    return tuple(wrap(s.value, scalar=False) for s in storages)


def settle(storages: Sequence[Storage], after: Sequence[Any]) -> None:
    """Let the states be what the op has made of them."""
    for storage, value in zip(storages, after, strict=True):
        storage.value = as_value(value)
        storage.version += 1


def inside(
    storages: Sequence[Storage], given: Sequence[Tracer], function: Callable[..., Any], *args: Any
) -> tuple[Any, tuple[Tracer, ...]]:
    """`function(*args)` in a region that is `given` the states, and what it leaves them at."""
    here = require_trace()
    before = [(s.trace, s.value) for s in storages]
    for storage, state in zip(storages, given, strict=True):
        storage.trace, storage.value = here, as_value(state)
        storage.version += 1
    try:
        result = function(*args)
        return result, states(storages)
    finally:
        for storage, (trace, value) in zip(storages, before, strict=True):
            storage.trace, storage.value = trace, value
            storage.version += 1
