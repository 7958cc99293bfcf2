"""What tests of batches share: arrays, loops in Python to compare with, orders of transformations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import jitney as jt

RNG = np.random.default_rng(3)
X = RNG.normal(size=(4, 3))
Y = RNG.normal(size=(4, 3))
W = RNG.normal(size=(3, 2))


def close(got: Any, want: Any, rtol: float = 1e-10) -> None:
    """Equal structure, dtypes and shapes, and values within rounding."""
    got_leaves, got_tree = jt.tree.flatten(got)
    want_leaves, want_tree = jt.tree.flatten(want)
    assert got_tree == want_tree
    for g, w in zip(got_leaves, want_leaves, strict=True):
        assert np.asarray(g).dtype == np.asarray(w).dtype
        np.testing.assert_allclose(g, w, rtol=rtol, atol=rtol)
        assert np.shape(g) == np.shape(w)


def looped(f: Callable[..., Any], *args: Any) -> Any:
    """f over axis 0 of all arguments, by a Python loop."""
    rows = [f(*row) for row in zip(*args, strict=True)]
    return jt.tree.map(lambda *leaves: np.stack(leaves), *rows)


ORDERS: dict[str, Callable[[Any], Any]] = {
    "vmap": lambda f: jt.vmap(f),
    "jit(vmap)": lambda f: jt.jit(jt.vmap(f)),
    "vmap(jit)": lambda f: jt.vmap(jt.jit(f)),
    "jit(vmap(jit))": lambda f: jt.jit(jt.vmap(jt.jit(f))),
    "interpreted": lambda f: jt.jit(jt.vmap(f), backend="interpreter"),
}


# Control flow for each example


def newton(a: Any) -> Any:
    return jt.while_loop(
        lambda x: np.abs(x * x - a) > 1e-12 * a, lambda x: 0.5 * (x + a / x), a + 1.0
    )


A = np.linspace(0.1, 50, 37)
GRADIENT_ORDERS: dict[str, Callable[[Any], Any]] = {
    "vmap(grad)": lambda f: jt.vmap(jt.grad(f)),
    "jit(vmap(grad))": lambda f: jt.jit(jt.vmap(jt.grad(f))),
    "grad(vmap)": lambda f: jt.grad(lambda *a: np.sum(jt.vmap(f)(*a))),
    "jit(grad(vmap))": lambda f: jt.jit(jt.grad(lambda *a: np.sum(jt.vmap(f)(*a)))),
    "forward": lambda f: (
        lambda *a: jt.vmap(lambda x, *rest: jt.jvp(lambda x: f(x, *rest), (x,), (1.0,))[1])(*a)
    ),
}
