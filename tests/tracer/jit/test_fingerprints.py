"""Hashes of functions and of all that they reach: what differs has another, what has none is refused."""

from __future__ import annotations

import cmath
import importlib
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
from jitney.tracer.captures.paths import is_user_module
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


class Nameless:
    """Its module is no text, which code of Cython's has, and whoever writes such a property."""

    __module__ = property(lambda self: 3)  # type: ignore[assignment]

    def __init__(self) -> None:
        self.count = 2.0


def test_objects_whose_module_is_no_text() -> None:
    counter = Nameless()

    def grown(x: Any) -> Any:
        for i in range(3):
            if x[i] > 0:
                counter.count += 1
        return sorted(x)[0] * counter.count

    x = np.array([-1.0, 0.0, 1.0])
    assert jt.jit(grown)(x) == -3 and counter.count == 3
    assert jt.jit(grown)(x) == -4 and counter.count == 4


def test_packages_in_a_folder_of_their_own_are_no_users_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `pip install --target` lays them: their lists of files lie beside them."""
    (tmp_path / "apackage" / "inner").mkdir(parents=True)
    files = [
        "apackage/__init__.py",
        "apackage/inner/__init__.py",
        "apackage/inner/part.py",
        "one.py",
    ]
    for name in [*files, "users.py"]:
        (tmp_path / name).write_text("")
    (tmp_path / "apackage-1.0.dist-info").mkdir()
    record = tmp_path / "apackage-1.0.dist-info" / "RECORD"
    record.write_text("".join(f"{name},sha256=x,0\n" for name in files))
    monkeypatch.syspath_prepend(str(tmp_path))
    names = "apackage apackage.inner apackage.inner.part one".split()
    for name in [*names, "users"]:
        importlib.import_module(name)
    assert [is_user_module(name) for name in names] == [False] * 4 and is_user_module("users")
    for name in [*names, "users"]:
        del sys.modules[name]
