"""What comes of a program: right, wrong, refused, or unclear because rounding decides it."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import jitney as jt

Function = Callable[..., Any]


class Outcome(NamedTuple):
    kind: str  # right, wrong, refused, unclear
    detail: str = ""


class Case(NamedTuple):
    """`plain` is the law, `compiled` is what is tested; both may change their arguments."""

    plain: Function
    compiled: Function
    arguments: list[Any]
    text: str
    digits: float = 1e-9  # relative to the largest number in sight
    scale: float = 1.0  # that number

    def judged(self) -> Outcome:
        return judge(self)


def judge(case: Case) -> Outcome:
    """Run both, on arguments of their own, and compare results and what became of the arguments."""
    try:
        want, wanted = _called(case.plain, case.arguments)
        got, gotten = _called(case.compiled, case.arguments)
    except jt.errors.JitneyError as error:
        return Outcome("refused", f"{type(error).__name__}: {first_line(error)}")
    except Exception as error:
        return Outcome("wrong", f"raises {type(error).__name__}: {first_line(error)}")
    flaw = difference([want, wanted], [got, gotten], case)
    if not flaw:
        return Outcome("right")
    return Outcome("unclear" if _shaky(case, [want, wanted]) else "wrong", flaw)


def _called(function: Function, arguments: Sequence[Any]) -> tuple[Any, list[Any]]:
    own = [copied(a) for a in arguments]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return function(*own), own


def copied(argument: Any) -> Any:
    """A copy with the same layout in memory, read-only if the original is."""
    if not isinstance(argument, np.ndarray):
        return argument
    low, high = np.lib.array_utils.byte_bounds(argument)
    memory = np.zeros(max(high - low, 1), np.uint8)
    start = argument.__array_interface__["data"][0] - low if argument.size else 0
    fresh = np.ndarray(argument.shape, argument.dtype, memory.data, start, argument.strides)
    fresh[...] = argument
    fresh.flags.writeable = argument.flags.writeable
    return fresh


def difference(want: Any, got: Any, case: Case) -> str:
    """What differs first, classes and orders of keys included; empty if nothing does."""
    if isinstance(want, str):
        lines = zip(want.split("\n"), got.split("\n"), strict=True)
        return next((f"{g} instead of {w}" for w, g in lines if w != g), "")
    if type(want) is not type(got):
        return f"{_kind(got)} {got!r} instead of {_kind(want)} {want!r}"
    if isinstance(want, dict):  # in order
        return difference(list(want.items()), list(got.items()), case)
    if isinstance(want, (set, frozenset)):
        return difference(_ordered(want), _ordered(got), case)
    if isinstance(want, (tuple, list, deque)):
        if len(want) != len(got):
            return f"{len(got)} elements instead of {len(want)}"
        flaws = (
            f"{k}: {flaw}"
            for k, (w, g) in enumerate(zip(want, got, strict=True))
            if (flaw := difference(w, g, case))
        )
        return next(flaws, "")
    w, g = np.asarray(want), np.asarray(got)
    if (w.dtype, w.shape) != (g.dtype, g.shape):
        return f"{g.dtype}{list(g.shape)} instead of {w.dtype}{list(w.shape)}"
    if w.dtype.kind not in "fcV":
        return "" if np.array_equal(w, g) else f"other values at {np.argwhere(w != g)[:3].tolist()}"
    bad = _apart(w, g, case)
    if not bad.any():
        return ""
    place = tuple(int(i) for i in np.argwhere(bad)[0])
    return f"{g[place]!r} instead of {w[place]!r} at {place}, {int(bad.sum())} of {w.size}"


def _kind(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__name__}"


def _ordered(values: Any) -> list[Any]:
    """Elements of a set, whose order says nothing."""
    return sorted(values, key=lambda v: (repr(v), _kind(v)))


def _apart(w: np.ndarray, g: np.ndarray, case: Case) -> np.ndarray:
    if w.dtype.kind == "c":
        return _apart(w.real, g.real, case) | _apart(w.imag, g.imag, case)
    with np.errstate(all="ignore"):
        w, g = w.astype(np.float64), g.astype(np.float64)
        same = (w == g) | (np.isnan(w) & np.isnan(g))
        return ~(same | (np.abs(w - g) <= case.digits * np.maximum(case.scale, np.abs(w))))


def _shaky(case: Case, want: Any) -> bool:
    """Whether changes of the arguments in their last digits show in the results by themselves."""
    rng = np.random.default_rng(0)
    for _ in range(4):
        moved = [_moved(copied(a), rng, case.digits / 10) for a in case.arguments]
        try:
            other = list(_called(case.plain, moved))
        except Exception:
            return True
        if difference(want[0], other[0], case):
            return True
    return False


def _moved(argument: Any, rng: np.random.Generator, by: float) -> Any:
    if isinstance(argument, float):
        return argument * (1 + by * rng.uniform(-1, 1))
    if (
        isinstance(argument, np.ndarray)
        and argument.dtype.kind in "fc"
        and argument.dtype.itemsize > 2
    ):
        with np.errstate(all="ignore"):
            return (argument * (1 + by * rng.uniform(-1, 1, argument.shape))).astype(argument.dtype)
    return argument


def first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0][:300]
