"""Hashes of functions and of all that they reach: what differs has another, what has none is refused."""

from __future__ import annotations

import cmath
import math
import os
import sys
import types
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitney as jt
from jitney.tracer.captures.fingerprint import Fingerprint
from jitney.tracer.captures.purity_allow_list import Unkeyable


def key_of(value: Any) -> str:
    key = Fingerprint()
    key.value(value)
    return key.digest()


class Referent:
    pass


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        ("a", b"a"),
        ((1, 2), [1, 2]),
        ([1, [2]], [[1], 2]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (np.ones(2), np.ones(2, np.float32)),
        (np.ones((2, 3)), np.ones((3, 2))),
        (np.float32(1), np.float64(1)),
        (np.dtype("f4"), np.dtype(">f4")),
        (np.sin, np.cos),
        (math.sqrt, cmath.sqrt),
        (lambda x: x, lambda x: -x),
        (list, tuple),
        (range(3), range(4)),
        (list.__repr__, list.__eq__),
    ],
)
def test_fingerprints_tell_apart(one: Any, other: Any) -> None:
    assert key_of(one) != key_of(other) and key_of(one) == key_of(one)


def test_code_without_source_is_another_program(tmp_path: Path) -> None:
    text = (
        "def f(n):\n    try:\n        return [1, 2][n]\n    except Exception:\n        return 0\n"
    )
    path = tmp_path / "program.py"
    path.write_text(text)
    keys = []
    for name in (str(path), "<stdin>"):
        scope: dict[str, Any] = {}
        exec(compile(text, name, "exec"), scope)
        keys.append(key_of(scope["f"]))
    assert keys[0] != keys[1]


def test_values_by_default_count() -> None:
    def f(x: Any, a: float = 1.0, *, b: float = 2.0) -> Any:
        return x * a * b

    def with_defaults(*positional: float, **by_name: float) -> Any:
        g = types.FunctionType(f.__code__, f.__globals__, "f", positional)
        g.__kwdefaults__ = by_name
        return g

    keys = {key_of(with_defaults(a, b=b)) for a in (1.0, 2.0) for b in (1.0, 2.0)}
    assert len(keys) == 4


def test_cycles_end() -> None:
    loop: list[Any] = [1]
    loop.append(loop)
    assert key_of(loop) == key_of(loop)

    def f(n: int) -> int:
        return f(n - 1) if n else 0

    assert key_of(f)


def test_sharing_counts() -> None:
    a, b = [1], [1]
    assert key_of((a, a)) != key_of((a, b))


@pytest.mark.parametrize(
    "value",
    [np.random.default_rng(0), sys, os, open, print, Path("x"), iter([1]), np.vectorize(abs)],
    ids=lambda value: type(value).__name__,
)
def test_unkeyable(value: Any) -> None:
    with pytest.raises(Unkeyable):
        key_of([value])


def test_weak_proxies_are_unkeyable_whether_their_objects_are_there_or_gone() -> None:
    there = Referent()
    for proxy in (weakref.proxy(there), weakref.proxy(Referent())):
        with pytest.raises(Unkeyable, match="weak proxy"):
            key_of([proxy])


def test_jitted_functions_are_followed() -> None:
    def made(k: int) -> Any:
        inner = jt.jit(lambda x: x * k)
        return lambda x: inner(x) + 1

    assert key_of(made(1)) != key_of(made(2))
    assert key_of(jt.jit(abs)) != key_of(jt.jit(abs, fastmath=True))
