"""What becomes of an ordinary program that is compiled: values, types, effects, exceptions."""

from __future__ import annotations

import linecache
import sys
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import jitney as jt

from ..compare import Outcome, first_line

DIGITS = 1e-9
LARGEST = 2**63 - 1
CALLS = (0, 0, 1, 0, 2)  # which arguments, one call after the other
SAME = {"float64": "float", "int64": "int", "bool_": "bool", "bool": "bool"}  # numbers' kinds


class Call(NamedTuple):
    """What a call gave (a value, or the exception), and its arguments before and after, as text."""

    result: Any
    raised: BaseException | None
    before: list[tuple[str, Any]]
    after: list[tuple[str, Any]]


class Ordinary:
    """A program, as a case that judges itself."""

    def __init__(self, seed: int, text: str) -> None:
        self.text, self.file = text, f"<ordinary {seed}>"
        linecache.cache[self.file] = (len(text), None, text.splitlines(True), self.file)

    def space(self) -> dict[str, Any]:
        space: dict[str, Any] = {"__name__": "ordinary"}
        sys.modules["ordinary"] = type(sys)("ordinary")  # dataclasses look there
        exec(compile(self.text, self.file, "exec"), space)
        return space

    def judged(self) -> Outcome:
        plain, compiled = self.space(), self.space()
        function = jt.jit(compiled["main"])
        for number, n in enumerate(CALLS):
            want = called(plain["main"], plain["arguments"](n))
            try:
                got = called(function, compiled["arguments"](n))
            except jt.errors.JitneyError as error:
                if want.raised is not None and isinstance(error, type(want.raised)):
                    continue  # an index that is known to be out of bounds
                return Outcome(
                    "refused", f"call {number}: {type(error).__name__}: {first_line(error)}"
                )
            flaw = self._flaw(want, got, plain, n)
            if flaw:
                return Outcome(flaw[0], f"call {number} ({n}): {flaw[1]}")
        return Outcome("right")

    def _flaw(self, want: Call, got: Call, plain: dict[str, Any], n: int) -> tuple[str, str] | None:
        if isinstance(got.raised, OverflowError) and not isinstance(want.raised, OverflowError):
            return (
                ("overflow", "")
                if _large(plain["main"], plain["arguments"](n))
                else ("wrong", "OverflowError")
            )
        if isinstance(want.raised, IndexError) and got.raised is None:
            return "unclear", "an element beyond the end that nothing depends on is not read"
        if type(want.raised).__name__ != type(got.raised).__name__:
            return "wrong", f"raises {shown(got.raised)} instead of {shown(want.raised)}"
        if want.raised is not None:
            half = differing(want.before, got.after) and differing(want.after, got.after)
            return ("half", half) if half else None
        flaw = differing(
            list(walked([want.result])) + want.after, list(walked([got.result])) + got.after
        )
        if not flaw:
            return None
        kind = (
            "wrong"
            if differing(want.after + flat(want.result), got.after + flat(got.result), kinds=False)
            else "kind"
        )
        return kind, flaw


def called(function: Any, arguments: list[Any]) -> Call:
    before = list(walked(arguments))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            result, raised = function(*arguments), None
        except jt.errors.JitneyError:
            raise
        except Exception as error:
            result, raised = None, error
    # The result is walked with the arguments, so that it is seen whether they share objects and memory.
    return Call((result, arguments), raised, before, list(walked(arguments)))


def flat(result: Any) -> list[tuple[str, Any]]:
    return list(walked([result]))


def walked(values: Any) -> Iterator[tuple[str, Any]]:
    """Places and numbers of a structure; of what was met before, where."""
    return _Walk().all(values, "")


class _Walk:
    """What was met: objects by their ids, and arrays."""

    def __init__(self) -> None:
        self.known: dict[int, str] = {}
        self.arrays: list[tuple[str, np.ndarray[Any, Any]]] = []

    def all(self, values: Any, path: str) -> Iterator[tuple[str, Any]]:
        for k, value in enumerate(values):
            yield from self.one(value, f"{path}.{k}")

    def one(self, value: Any, path: str) -> Iterator[tuple[str, Any]]:
        if isinstance(value, (bool, int, float, complex, str, type(None), np.generic)):
            yield path, value
            return
        if id(value) in self.known:
            yield path, "the same as " + self.known[id(value)]
            return
        self.known[id(value)] = path
        if isinstance(value, np.ndarray):
            yield path, value.copy()
            for other, memory in self.arrays:
                if np.shares_memory(value, memory):
                    yield path, "shares memory with " + other
            self.arrays.append((path, value))
        elif isinstance(value, (tuple, list)):
            yield path, f"{type(value).__name__} of {len(value)}"
            yield from self.all(value, path)
        elif isinstance(value, dict):
            yield path, f"{type(value).__name__} of {len(value)}"
            yield from self.all([part for item in value.items() for part in item], path)
        elif isinstance(value, np.random.Generator):
            yield path, str(value.bit_generator.state)
        else:
            yield path, type(value).__name__
            yield from self.one(vars(value), path + f"({type(value).__name__})")


def differing(want: list[tuple[str, Any]], got: list[tuple[str, Any]], kinds: bool = True) -> str:
    """The first place that differs, or nothing. Without `kinds` a float may be NumPy's or Python's."""
    for (place, w), (there, g) in zip(want, got, strict=False):
        if place != there or (flaw := _different(w, g, kinds)):
            return f"{place}: {flaw if place == there else there}"
    return "" if len(want) == len(got) else f"{len(got)} places instead of {len(want)}"


def _different(w: Any, g: Any, kinds: bool) -> str:
    if isinstance(w, str) or isinstance(g, str) or w is None or g is None:
        return "" if type(w) is type(g) and w == g else f"{g!r} instead of {w!r}"
    a, b = type(w).__name__, type(g).__name__
    if a != b and (kinds or SAME.get(a, a) != SAME.get(b, b)):
        return f"{b} {g!r} instead of {a} {w!r}"
    x, y = np.asarray(w), np.asarray(g)
    if isinstance(w, int):
        return "" if w == g else f"{g!r} instead of {w!r}"
    if x.shape != y.shape or x.dtype != y.dtype:
        return f"{y.dtype}{list(y.shape)} instead of {x.dtype}{list(x.shape)}"
    if x.dtype.kind not in "fc":
        return "" if np.array_equal(x, y) else f"{g!r} instead of {w!r}"
    digits = DIGITS if x.dtype.itemsize > 4 else 1e-4
    with np.errstate(all="ignore"):
        near = (
            (x == y)
            | (np.isnan(x) & np.isnan(y))
            | (abs(x - y) <= digits * np.maximum(abs(x), 1e-3))
        )
    return "" if near.all() else f"{g!r} instead of {w!r}"


def shown(error: BaseException | None) -> str:
    return f"{type(error).__name__}: {first_line(error)}" if error is not None else "nothing"


def _large(function: Any, arguments: list[Any]) -> bool:
    """Whether an int beyond 64 bits is about while a plain function runs."""
    found = False

    def watch(frame: Any, event: str, arg: Any) -> Any:
        nonlocal found
        found = found or any(
            isinstance(v, int) and abs(v) > LARGEST for v in (*frame.f_locals.values(), arg)
        )
        return watch

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        called(function, arguments)
    finally:
        sys.settrace(before)
    return found
