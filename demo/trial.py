"""A dozen functions whose results are known: do they give the same compiled?

    python -m jitney.demo.trial     # says "right", or which is wrong

What a platform could get wrong: vectors and their last lanes, calls of libraries, threads, loops,
branches, memory that grows, errors, derivatives.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import jitney as jt

_X = np.linspace(-2, 3, 37 * 11).reshape(37, 11)
_I = np.arange(37)[::-3].copy()


def _collatz(n: int) -> int:
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def _sieve(n: int) -> Any:
    prime = np.ones(n, bool)
    prime[:2] = False
    for p in range(2, n):
        if prime[p]:
            for k in range(p * p, n, p):
                prime[k] = False
    return np.flatnonzero(prime)


def _words(x: Any) -> Any:
    counts: dict[int, int] = {}
    for v in x:
        counts[v % 7] = counts.get(v % 7, 0) + 1
    return sorted(counts.items())


def _outside(x: Any, k: int) -> Any:
    try:
        return x[k]
    except IndexError:
        return -1.0


TRIALS: tuple[tuple[str, Callable[..., Any], tuple[Any, ...]], ...] = (
    ("elements and sums", lambda x: (np.exp(-x) * np.where(x > 0, x, 1)).sum(axis=1), (_X,)),
    ("small floats", lambda x: np.tanh(x.astype(np.float32)), (_X,)),
    ("products", lambda x: x.T @ x, (_X,)),
    ("sorts", lambda x: (np.sort(x, axis=0), np.argsort(-x, axis=1, kind="stable")), (_X,)),
    ("indices", lambda x, i: x[i] + np.bincount(i, minlength=37)[i][:, None], (_X, _I)),
    ("linear algebra", lambda x: np.linalg.solve(x.T @ x + np.eye(11), x[0]), (_X,)),
    ("threads", lambda n: np.sqrt(np.arange(1 << 19) * 0.5).sum() + n, (1,)),
    ("whole numbers", _collatz, (27,)),
    ("arrays in loops", _sieve, (200,)),
    ("containers", _words, (np.arange(100) ** 2,)),
    ("errors", _outside, (_X[0], 50)),
)


def wrong() -> str:
    """What gives something else compiled than as Python; "" if nothing does."""
    for name, function, args in TRIALS:
        expected, compiled = function(*args), jt.jit(function)
        for _ in range(2):
            if not _agree(compiled(*args), expected):
                return name
    x = _X[0]
    if not _agree(jt.jit(jt.grad(lambda x: (np.sin(x) * x).sum()))(x), np.cos(x) * x + np.sin(x)):
        return "derivatives"
    return ""


def _agree(result: Any, expected: Any) -> bool:
    if isinstance(expected, (tuple, list)):
        return len(result) == len(expected) and all(map(_agree, result, expected))
    return bool(np.allclose(result, expected, rtol=1e-5))


def main() -> int:
    """Say how it went. The exit status is 0 if all is right."""
    name = wrong()
    print(f"wrong results: {name}" if name else "right")
    return bool(name)


if __name__ == "__main__":
    sys.exit(main())
