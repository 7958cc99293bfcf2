"""Functions that draw from generators of the host: the same numbers, and the same states afterwards."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import numpy as np

import jitney as jt


def state(generator: Any) -> Any:
    if isinstance(generator, random.Random):
        return generator.getstate()
    bits = getattr(generator, "bit_generator", None)
    found = generator.get_state(legacy=False) if bits is None else bits.state
    return jt.tree.map(lambda x: x.tolist() if isinstance(x, np.ndarray) else x, found)


def globals_() -> list[Any]:
    return [np.random.mtrand._rand, random._inst]  # type: ignore[attr-defined]


def agree(want: Any, got: Any) -> None:
    assert jt.tree.structure(want) == jt.tree.structure(got)
    for a, b in zip(jt.tree.leaves(want), jt.tree.leaves(got), strict=True):
        assert type(a) is type(b), (a, b)
        np.testing.assert_array_equal(a, b)


def check(f: Callable[..., Any], *args: Any, times: int = 3, **options: Any) -> None:
    """As plain Python, call after call; the generators among the arguments, and the modules' ones."""
    compiled = jt.jit(f, **options)
    mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
    for k in range(times):
        results, states = [], []
        for function, given in ((f, mine), (compiled, theirs)):
            np.random.seed(k)
            random.seed(k)
            results.append(function(*given))
            used = [*jt.tree.leaves(given), *globals_()]
            states.append([state(g) for g in used if not np.isscalar(g) and hasattr(g, "__class__")
                           and isinstance(g, (np.random.Generator, np.random.RandomState,
                                              random.Random))])  # fmt: skip
        agree(*results)
        assert states[0] == states[1]


def pi(n: int) -> Any:
    inside = 0
    for _ in range(n):
        x, y = np.random.rand(), random.random()
        if x * x + y * y < 1.0:
            inside += 1
    return 4.0 * inside / n


def metropolis(r: Any, n: int) -> Any:
    x = total = 0.0
    accepted = 0
    for _ in range(n):
        y = x + r.uniform(-1.0, 1.0)
        if y * y < x * x or r.random() < 0.7:
            x = y
            accepted += 1
        total += x
    return total, accepted
