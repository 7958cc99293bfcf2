"""Between which integers results lie, of operands that lie between some: arithmetic of intervals."""

from __future__ import annotations

from collections.abc import Callable

Interval = tuple[int, int]
Rule = Callable[..., "Interval | None"]

FALSE, TRUE = (0, 0), (1, 1)


def union(*parts: Interval) -> Interval:
    """From the least to the largest of some."""
    return min(lo for lo, _ in parts), max(hi for _, hi in parts)


def product(x: Interval, y: Interval) -> Interval:
    """Of one number from each."""
    ends = [a * b for a in x for b in y]
    return min(ends), max(ends)


def _masked(x: Interval, y: Interval) -> Interval | None:
    ends = [hi for lo, hi in (x, y) if lo >= 0]
    return (0, min(ends)) if ends else None


def _quotient(x: Interval, y: Interval) -> Interval | None:
    if y[0] <= 0:
        return None
    ends = [a // b for a in x for b in y]
    return min(ends), max(ends)


def _remainder(x: Interval, y: Interval) -> Interval | None:
    """With the divisor's sign."""
    if y[0] <= 0:
        return None
    return (0, min(x[1], y[1] - 1)) if x[0] >= 0 else (0, y[1] - 1)


def _not(x: Interval | None) -> Interval | None:
    return None if x is None else (1 - x[1], 1 - x[0])


def _less(x: Interval, y: Interval) -> Interval | None:
    return TRUE if x[1] < y[0] else FALSE if x[0] >= y[1] else None


def _equal(x: Interval, y: Interval) -> Interval | None:
    if x[1] < y[0] or y[1] < x[0]:
        return FALSE
    return TRUE if x == y and x[0] == x[1] else None


ARITHMETIC: dict[str, Rule] = {
    "add": lambda x, y: (x[0] + y[0], x[1] + y[1]),
    "sub": lambda x, y: (x[0] - y[1], x[1] - y[0]),
    "mul": product,
}
RULES: dict[str, Rule] = {
    **ARITHMETIC,
    "neg": lambda x: (-x[1], -x[0]),
    "abs": lambda x: (max(x[0], -x[1], 0), max(-x[0], x[1])),
    "minimum": lambda x, y: (min(x[0], y[0]), min(x[1], y[1])),
    "maximum": lambda x, y: (max(x[0], y[0]), max(x[1], y[1])),
    "bitwise_and": _masked,
    "floor_divide": _quotient,
    "remainder": _remainder,
    "right_shift": lambda x, y: (x[0] >> y[0], x[1] >> y[0]) if y[0] == y[1] >= 0 else None,
    "lt": _less,
    "gt": lambda x, y: _less(y, x),
    "ge": lambda x, y: _not(_less(x, y)),
    "le": lambda x, y: _not(_less(y, x)),
    "eq": _equal,
    "ne": lambda x, y: _not(_equal(x, y)),
}

# What a comparison that holds leaves of its operands.
LEAVES: dict[str, Callable[[Interval, Interval], tuple[Interval, Interval]]] = {
    "lt": lambda x, y: ((x[0], min(x[1], y[1] - 1)), (max(y[0], x[0] + 1), y[1])),
    "le": lambda x, y: ((x[0], min(x[1], y[1])), (max(y[0], x[0]), y[1])),
    "gt": lambda x, y: ((max(x[0], y[0] + 1), x[1]), (y[0], min(y[1], x[1] - 1))),
    "ge": lambda x, y: ((max(x[0], y[0]), x[1]), (y[0], min(y[1], x[1]))),
    "eq": lambda x, y: ((max(x[0], y[0]), min(x[1], y[1])),) * 2,
    "ne": lambda x, y: (_without(x, y), _without(y, x)),
}
OPPOSITE = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}


def _without(x: Interval, y: Interval) -> Interval:
    """What is left if `x` is not the number that `y` is."""
    if y[0] != y[1]:
        return x
    return x[0] + (x[0] == y[0]), x[1] - (x[1] == y[0])
