"""Fills that a loop overwrites are left out where nothing reads them: against Python, with every access
checked, which finds what is read before it was written."""

from __future__ import annotations

import linecache
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitney as jt
from jitney.codegen.limits import TINY, limited

N = 9


def written(text: str) -> Callable[..., Any]:
    name = f"<fill {zlib.crc32(text.encode())}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, Any] = {"np": np, "__name__": "fills"}
    exec(compile(text, name, "exec"), space)
    function: Callable[..., Any] = space["f"]
    return function


FILLS = ("np.zeros((9, 9))", "np.full((9, 9), x[0, 0])", "np.ones((9, 9)) * 2.5")
RANGES = (
    "range(9)",
    "range(1, 9)",
    "range(1, 8)",
    "range(8, 0, -1)",
    "range(7, -1, -1)",
    "range(3)",
)
BEFORE = (
    "out[0, :] = 1.5",
    "out[2, 3] = 1.5",
    "for i in range(9):\n        out[i, 0] = i",
    "for i in range(9):\n        out[i, i] = out[0, i] + 1",
    "s = out.sum()",
)
STATEMENTS = (
    "out[i, j] = x[i, j] + out[i + {p}, j + {q}] * 0.5",
    "out[i, j] = x[i, j]",
    "out[j, i] = x[i, j] + out[j + {q}, i + {p}] * 0.5",
    "out[i, 3] = x[i, j] + out[i + {p}, 2]",
    "if x[i, j] > 0:\n                out[i, j] = x[i, j]",
    "if x[i, j] > 0:\n                out[i, j] = 1.0\n            else:\n                out[i, j] = s",
    "out[i, j] += x[i, j]",
    "out[i, j] = x[i, j]; s = s + out[i + {p}, j + {q}]",
    "s = s + out[i + {p}, j + {q}]; out[i, j] = s",
    "out[i, (i + j) % 9] = x[i, j]",
)


@st.composite
def programs(draw: st.DrawFn) -> str:
    def pick(choices: tuple[str, ...]) -> str:
        return draw(st.sampled_from(choices))

    steps = (-1, 0, 1)
    p, q = draw(st.sampled_from(steps)), draw(st.sampled_from(steps))
    rows, columns = pick(RANGES), pick(RANGES)
    if p > 0 or q > 0:  # stay within the array
        rows = columns = "range(1, 8)"
    lines = ["def f(x):", "    s = 0.25", f"    out = {pick(FILLS)}"]
    if draw(st.booleans()):
        lines.append("    " + pick(BEFORE))
    lines += [f"    for i in {rows}:", f"        for j in {columns}:"]
    lines.append("            " + pick(STATEMENTS).format(p=p, q=q))
    if draw(st.booleans()):
        lines.append("    out[4, 4] += 1")
    return "\n".join([*lines, "    return out, s", ""])


def check(program: str) -> None:
    function = written(program)
    x = np.random.default_rng(1).standard_normal((N, N))
    for wanted, found in zip(function(x), jt.jit(function)(x), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


@settings(max_examples=12, deadline=None)
@given(programs())
def test_fills_and_loops(program: str) -> None:
    with jt.config(sanitize=True, verify=True), limited(TINY):
        check(program)


def copied(function: Callable[..., Any], *args: Any) -> list[tuple[int, ...]]:
    """The extents of the kernels that fill."""
    kernels = jt.jit(function).lower(*args).kernels
    return [k.extents for k in kernels if k.ops and k.ops[-1] == "broadcast"]


def whole(x: Any) -> Any:
    out = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        out[i] = x[i] * 2 if x[i] > 0 else 0.5
    return out


def recurrence(x: Any) -> Any:
    out = np.zeros(x.shape[0])
    for i in range(1, x.shape[0]):
        out[i] = out[i - 1] * 0.5 + x[i]
    return out


def ahead(x: Any) -> Any:
    out = np.zeros(x.shape[0])
    for i in range(x.shape[0] - 1):
        out[i] = out[i + 1] * 0.5 + x[i]
    return out


def left(x: Any) -> Any:
    out = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        if x[i] < 0:
            break
        out[i] = x[i]
    return out


@pytest.mark.parametrize(
    ("function", "extents"),
    [(whole, []), (recurrence, [(1,)]), (ahead, [(200,)]), (left, [(200,)])],
)
def test_what_is_left_to_fill(function: Callable[..., Any], extents: list[tuple[int, ...]]) -> None:
    x = np.linspace(1.0, 2.0, 200)
    assert copied(function, x) == extents
    np.testing.assert_allclose(jt.jit(function)(x), function(x), rtol=1e-12)
