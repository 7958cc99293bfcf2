"""Events of a differential equation: times at which a function of t and y is 0."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import jitney as jt

from .common import Function, elementwise_solve, function_of, refuse
from .ode_methods import polynomial
from .scalars import between

_EPS = float(np.finfo(np.float64).eps)


class Kind(NamedTuple):
    """What the attributes of an event's function say: after how many the integration ends (0: never),
    and which crossings count."""

    most: int
    direction: float


def kinds(events: tuple[Function, ...]) -> tuple[Kind, ...]:
    """What the functions' attributes say, as SciPy reads them."""
    found = []
    for event in events:
        function_of(event, "an event", "t and y")
        terminal = getattr(event, "terminal", False)
        if not isinstance(terminal, (bool, int, np.bool_, np.integer)) or terminal < 0:
            refuse(f"an event's terminal is {terminal!r}", "it is a bool or a number of events.")
        direction = getattr(event, "direction", 0) or 0
        if not isinstance(direction, (int, float, np.number)):
            refuse(f"an event's direction is {direction!r}", "it is 1 (rising), -1 (falling) or 0.")
        found.append(Kind(int(terminal or 0), float(direction)))
    return tuple(found)


def empty(count: int, size: int, t: Any, y: Any, values: Any) -> dict[str, Any]:
    """The record of no events: times and solutions, how many there are of each, and the functions'
    latest values."""
    return {
        "t": jt.zeros((count, size), t.dtype),
        "y": jt.zeros((count, size, y.shape[0]), y.dtype),
        "count": jt.zeros(count, np.int64),
        "values": values,
    }


def values_of(events: Any, t: Any, y: Any) -> Any:
    """The events' functions, as one vector."""
    values = [jt.asarray(event(t, y)) for event in events]
    for value in values:
        if value.size != 1:
            refuse(f"an event gives an array of shape {value.shape}", "let it give one number.")
    return jt.stack([jt.reshape(value, ()) for value in values])


def watch(
    events: Any, kinds: tuple[Kind, ...], record: Any, step: tuple[Any, ...], forward: Any
) -> tuple[Any, Any, Any]:
    """The record with the events in a step, whether one ends the integration, and when.

    A step is (t, y, t_new, y_new, dense).
    """
    t, y, t_new, y_new, dense = step
    before, after = record["values"], values_of(events, t_new, y_new)
    rises = (before <= 0) & (after >= 0)
    falls = (before >= 0) & (after <= 0)
    directions = np.array([kind.direction for kind in kinds])
    active = ((directions >= 0) & rises) | ((directions <= 0) & falls)
    count = record["count"] + active

    def root(i: int) -> Any:
        def value(at: Any) -> Any:
            x = (at - t) / (t_new - t)
            return jt.reshape(jt.asarray(events[i](at, polynomial(y, dense, x))), ())

        def search() -> Any:
            a, b = jt.stop_gradient((t, t_new))
            found = between(value, a, b, value(a), value(b), 4 * _EPS, 4 * _EPS, 100)[0]
            return jt.implicit(value, found, elementwise_solve) + 0 * t_new

        return jt.cond(active[i], search, lambda: t_new + 0 * t)

    def found() -> Any:
        at = jt.stack([root(i) for i in range(len(kinds))])
        most = np.array([kind.most for kind in kinds])
        ends = active & (most > 0) & (count >= most)
        stop = jt.any(ends)
        late = jt.where(ends, forward * at, np.inf)
        end = jt.where(stop, at[jt.argmin(late)], t_new)
        kept = active & (forward * at <= forward * end)
        times, solutions = record["t"] + 0, record["y"] + 0
        for i in range(len(kinds)):
            place = np.minimum(record["count"][i], times.shape[1] - 1)
            x = (at[i] - t) / (t_new - t)
            times[i, place] = jt.where(kept[i], at[i], times[i, place])
            solutions[i, place] = jt.where(kept[i], polynomial(y, dense, x), solutions[i, place])
        new = {"t": times, "y": solutions, "count": record["count"] + kept, "values": after}
        return new, stop, end

    def nothing() -> Any:
        return {**record, "values": after}, jt.any(active), t_new + 0 * t

    return jt.cond(jt.any(active), found, nothing)
