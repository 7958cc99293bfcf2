"""Whether functions compute the same thing: only those that do are compared by time."""

from __future__ import annotations

from typing import Any

import numpy as np

import jitney as jt


def difference(one: Any, other: Any, tolerance: float | None) -> str:
    """How two results differ, in words; "" if only by rounding.

    `tolerance` is relative to the largest element; None: what the coarser dtype of the two allows.
    """
    a, b = jt.tree.leaves(one), jt.tree.leaves(other)
    if len(a) != len(b):
        return f"one returns {len(a)} arrays, the other {len(b)}"
    for number, (x, y) in enumerate(zip(a, b, strict=True)):
        words = _difference(x, y, tolerance)
        if words:
            return words if len(a) == 1 else f"in array {number} of the results, {words}"
    return ""


def _difference(x: Any, y: Any, tolerance: float | None) -> str:
    try:
        a, b = np.asarray(x), np.asarray(y)
    except (TypeError, ValueError):
        return "" if x is y or x == y else f"{x!r} is not {y!r}"
    if a.shape != b.shape:
        return f"the shapes are {a.shape} and {b.shape}"
    numeric = all(d.kind in "biufcV" and d.names is None for d in (a.dtype, b.dtype))
    if not numeric:
        return "" if np.array_equal(a, b) else f"{x!r} is not {y!r}"
    if not a.size:
        return ""
    exact = a.dtype.kind in "biu" and b.dtype.kind in "biu"
    a, b = (v.astype(complex if v.dtype.kind == "c" else float) for v in (a, b))
    scale = float(np.max(np.abs(b), where=np.isfinite(b), initial=0.0))
    near = 0.0 if exact else _rounding(x, y) if tolerance is None else tolerance
    same = np.isclose(a, b, rtol=near, atol=near * scale, equal_nan=True)
    if same.all():
        return ""
    at = np.unravel_index(int(np.argmin(same)), a.shape)
    place = f" at {list(map(int, at))}" if at else ""
    return f"{np.asarray(x)[at]} is not {np.asarray(y)[at]}{place}"


def _rounding(x: Any, y: Any) -> float:
    """What sums in another order may come to, relative to the largest element."""
    kinds = [np.asarray(v).dtype for v in (x, y)]
    eps = [float(jt.finfo(k).eps) for k in kinds if k.kind in "fcV"]
    return 1000 * max(eps, default=float(np.finfo(np.float64).eps))
