"""Programs with state, run by Python and compiled: results and all that is reached compared.

    compare(Counter, Counter.step, [(1.0,), (2.0,)])

`portrait` says of an object and all that it leads to what it holds and who is whom, so that two heaps
are alike exactly if their portraits are equal: an array that was replaced, and should have been changed
in place, is seen from the one who still holds the old one.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType
from typing import Any

import numpy as np

import jitney as jt


def portrait(*roots: Any) -> list[Any]:
    """What is reached from the roots, in a form that can be compared."""
    numbers: dict[int, int] = {}
    alive: list[Any] = []
    shown: list[Any] = []
    waiting = list(roots)
    while waiting:
        x = waiting.pop(0)
        if isinstance(x, (bool, int, float, complex, str, type(None), np.generic)):
            shown.append((type(x).__name__, np.asarray(x).tolist()))
            continue
        if id(x) in numbers:
            shown.append(("again", numbers[id(x)]))
            continue
        numbers[id(x)] = len(alive)
        alive.append(x)
        if isinstance(x, np.ndarray):
            shown.append(("array", str(x.dtype), x.shape, np.round(x, 9).tolist()))
            if x.base is not None and isinstance(x.base, np.ndarray):
                waiting.append(x.base)
        elif isinstance(x, dict):
            shown.append((type(x).__name__, list(x), getattr(x, "default_factory", None)))
            waiting += x.values()
        elif isinstance(x, (list, tuple, deque)):
            shown.append((type(x).__name__, len(x), getattr(x, "maxlen", None)))
            waiting += x
        elif isinstance(x, (set, frozenset)):
            shown.append((type(x).__name__, sorted(map(repr, x))))
        elif isinstance(x, (type, FunctionType, MethodType)) or callable(x):
            shown.append(("code", getattr(x, "__name__", "")))
        else:
            attributes = _attributes(x)
            shown.append((type(x).__name__, list(attributes)))
            waiting += attributes.values()
    return shown


def close(a: Any, b: Any) -> bool:
    """Equal but for rounding, and equal in who is whom."""
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return bool(np.isclose(a, b, rtol=1e-9, atol=1e-9, equal_nan=True))
    return bool(a == b)


class Raised(str):
    """The name of what was raised."""


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    """What a call gives, or the class of what it raises. What jitney refuses is not caught."""
    try:
        return function(*args)
    except jt.errors.JitneyError as error:
        if not isinstance(error, IndexError):
            raise
        return Raised("IndexError")
    except Exception as error:
        return Raised(type(error).__name__)


def compare(
    make: Callable[[], Any],
    function: Callable[..., Any],
    calls: Sequence[tuple[Any, ...]],
    **options: Any,
) -> Any:
    """Call `function(obj, *args)` for one object after the other, plain and compiled; returns the
    compiled function."""
    compiled = jt.jit(function, autograph=True, **options)
    plain_object, other = make(), make()
    for args in calls:
        mine, yours, saved = copy.deepcopy((args, args, plain_object))
        held = _leaves(plain_object), _leaves(other)  # what an in-place change would be seen in
        before = portrait(other, yours, held[1])
        want = outcome(function, plain_object, *mine)
        got = outcome(compiled, other, *yours)
        if isinstance(want, Raised):  # then nothing has happened
            assert want == got and close(portrait(other, yours, held[1]), before), f"{args}: {got}"
            plain_object = saved
            continue
        a = portrait(plain_object, mine, held[0], want)
        b = portrait(other, yours, held[1], got)
        assert close(a, b), f"{args}:\n{a}\n{b}"
    return compiled


def _leaves(x: Any) -> list[Any]:
    return list(_attributes(x).values())


def _attributes(x: Any) -> dict[str, Any]:
    names = getattr(type(x), "__slots__", ())
    slots = {name: getattr(x, name) for name in names if hasattr(x, name)}
    return dict(sorted({**slots, **getattr(x, "__dict__", {})}.items()))
