"""What loops carry lies between known numbers: checks that cannot fail are not made, others are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from nests import outcome, written

import jitney as jt

X = np.sort(np.random.default_rng(0).random(20))


def search(stop: str, test: str, middle: str, low: str, high: str) -> str:
    return f"""
def f(x, w):
    out = np.zeros(w.shape[0], np.int64)
    for i in range(w.shape[0]):
        lo = 0
        hi = {stop}
        while {test}:
            m = {middle}
            if x[m] < w[i]:
                lo = {low}
            else:
                hi = {high}
        out[i] = lo
    return out
"""


N = "x.shape[0]"
KNOWN = {
    "half open": search(N, "lo < hi", "(lo + hi) // 2", "m + 1", "m"),
    "closed": search(f"{N} - 1", "lo <= hi", "(lo + hi) // 2", "m + 1", "m - 1"),
    "by a shift": search(N, "lo < hi", "(lo + hi) >> 1", "m + 1", "m"),
    "without a test": search(N, "lo + 1 != hi", "(lo + hi) // 2", "m", "m"),
    "by the distance": search(N, "hi - lo > 1", "(hi + lo) // 2", "m", "m"),
}
# One too far at one of the ends, or at both: Python reads from the other end, or raises.
DOUBTFUL = {
    "too long": search(f"{N} + 1", "lo < hi", "(lo + hi) // 2", "m + 1", "m"),
    "too far": search(N, "lo <= hi", "(lo + hi) // 2", "m + 1", "m - 1"),
    "too low": search(N, "lo < hi", "(lo + hi) // 2 - 1", "m + 2", "m"),
    "from the end": search(N, "lo < hi", "hi - 1 - lo", "m + 1", "m - 1"),
}
WANTED = [np.linspace(-0.1, 0.9, 13), np.linspace(0.0, 1.1, 9), np.array([2.0])]


@pytest.mark.parametrize("name", [*KNOWN, *DOUBTFUL])
def test_searches_do_what_python_does(name: str) -> None:
    f = written({**KNOWN, **DOUBTFUL}[name])
    compiled = jt.jit(f)
    for w in WANTED:
        found, wanted = outcome(compiled, [X, w]), outcome(f, [X, w])
        np.testing.assert_equal(found, wanted)
    lines = compiled.lower(X, WANTED[0]).llvm().splitlines()
    jumps = [k for k, line in enumerate(lines) if "label %bad" in line]
    assert (name in DOUBTFUL) == any("@poll" not in lines[k - 1] for k in jumps)


COUNTS: dict[str, str] = {
    "halves": """
def f(x, n):
    t = 0
    for i in range(1, n):
        m = i
        while m != 1:
            m = m // 2 if m % 2 == 0 else 3 * m + 1
            t += 1
    return t
""",
    "falls": """
def f(x, n):
    m = 2**60 + n
    while m > 3:
        m = m - 2**60 if m % 2 == 0 else 3 * m + 1
    return m
""",
    "grows": """
def f(x, n):
    m = 1
    for i in range(n):
        if m < 2**61:
            m = 3 * m + i
    return m
""",
    "grows too far": """
def f(x, n):
    m = 1
    i = 0
    while i < n:
        m = 3 * m + i if m > 0 else 5
        i += 1
    return m
""",
    "two and a flag": """
def f(x, n):
    a = 0
    b = 19
    while a < 20 and b >= 0:
        if x[a] + x[b] > 1.0:
            b -= 1
        else:
            a += 1
    return a + x[min(max(b, 0), 19)]
""",
    "either": """
def f(x, n):
    a = 5
    while not (a > n or a < 0):
        a = a + 2 if x[a] > 0.5 else a - 1
    return a
""",
    "nested": """
def f(x, n):
    k = 3
    s = 0.0
    for i in range(n):
        j = k
        while j > 0 and j < 19:
            s += x[j]
            j = j + 2 if s > 5.0 else j - 1
        k = j if j > 2 else 7
        s += x[k]
    return s
""",
    "a remainder of negatives": """
def f(x, n):
    k = 0
    s = 0.0
    for i in range(n):
        k = (k * 7 - i) % 20
        s += x[k] - x[-k]
    return s
""",
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts_do_what_python_does(name: str) -> None:
    f = written(COUNTS[name])
    compiled = jt.jit(f)
    for n in (0, 1, 2, 5, 12, 18, 19, 33, 60):
        found: Any = outcome(compiled, [X, n])
        try:
            wanted = f(X, n)
        except IndexError:
            wanted = IndexError
        if isinstance(wanted, int) and wanted >= 1 << 63:
            wanted = OverflowError
        if isinstance(wanted, type):
            assert found[0] is wanted or isinstance(found[0], wanted), n
        else:
            np.testing.assert_allclose(found[0], wanted, err_msg=f"{name} {n}")
