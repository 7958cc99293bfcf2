"""Loops over elements, as compiled and as Python runs them: results, errors, and what they write."""

from __future__ import annotations

import linecache
import math
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

import jitney as jt

N = 7


def written(text: str) -> Callable[..., Any]:
    """The function `f` of a program that has source."""
    name = f"<nest {zlib.crc32(text.encode())}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, Any] = {"np": np, "math": math, "__name__": "nests"}
    exec(compile(text, name, "exec"), space)
    function: Callable[..., Any] = space["f"]
    return function


def arguments() -> list[Any]:
    rng = np.random.default_rng(3)
    return [
        rng.standard_normal((N, N)),
        rng.standard_normal(N),
        rng.integers(-3, N, N),
        rng.standard_normal(4 * N).astype(np.float32),
        np.int64(N),
    ]


def outcome(function: Callable[..., Any], args: list[Any]) -> tuple[Any, list[Any]]:
    """What a call gives, or the kind of its error, and its arguments after it."""
    try:
        with np.errstate(all="ignore"):
            result = function(*args)
    except (IndexError, ValueError, ZeroDivisionError, OverflowError) as error:
        return type(error), []
    return result, args


def check(function: Callable[..., Any], arguments: Callable[[], list[Any]] = arguments) -> None:
    wanted, after = outcome(function, arguments())
    compiled = jt.jit(function, autograph=True)
    found, there = outcome(compiled, arguments())
    if isinstance(wanted, type):
        assert isinstance(found, type) and issubclass(found, wanted), (found, wanted)
        return
    assert not isinstance(found, type), found
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-12)
    for a, b in zip(there, after, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
