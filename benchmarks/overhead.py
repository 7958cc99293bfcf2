"""What calls of transformed functions cost beside those of plain ones: `jit(grad(f))` and its like.

    python -m benchmarks.overhead

Every function works on three numbers, so that what is timed is the call. The columns: the call of
`jit(transformed)` in microseconds, how much that is over the plain call, `jit(f)`, and the ratio to
the call of the same transformation under a lambda, `jit(lambda x: transformed(f)(x))`. The three are
timed in turns, and the fastest block of each counts.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import jitney as jt

CALLS = 500  # in a block
BLOCKS = 200


def energy(x: Any) -> Any:
    return (x * x).sum()


def double(x: Any) -> Any:
    return x * 2


def scaled(k: float, x: Any) -> Any:
    return (x * k).sum()


def ruled() -> Callable[[Any], Any]:
    """A function with a derivative of its own."""
    rule = jt.custom_vjp(double)
    rule.defvjp(lambda x: (x * 2, None), lambda _, g: (g * 2,))
    function: Callable[[Any], Any] = rule
    return function


TRANSFORMED: dict[str, Callable[[], Callable[[Any], Any]]] = {
    "grad": lambda: jt.grad(energy),
    "value_and_grad": lambda: jt.value_and_grad(energy),
    "jacrev": lambda: jt.jacrev(double),
    "jacfwd": lambda: jt.jacfwd(double),
    "hessian": lambda: jt.hessian(energy),
    "vmap": lambda: jt.vmap(double),
    "checkpoint": lambda: jt.checkpoint(energy),
    "grad of checkpoint": lambda: jt.grad(jt.checkpoint(energy)),
    "custom_vjp": ruled,
    "partial": lambda: functools.partial(scaled, 2.0),
    "jvp": lambda: lambda x: jt.jvp(energy, (x,), (x,)),
    "vjp": lambda: lambda x: jt.vjp(energy, x)[1](1.0),
    "linearize": lambda: lambda x: jt.linearize(energy, x)[1](x),
}


def fastest(calls: list[Callable[[Any], Any]], x: Any) -> list[float]:
    """Seconds of a call of each."""
    best = [float("inf")] * len(calls)
    for call in calls:
        for _ in range(3):
            call(x)
    for _ in range(BLOCKS):
        for k, call in enumerate(calls):
            start = time.perf_counter()
            for _ in range(CALLS):
                call(x)
            best[k] = min(best[k], (time.perf_counter() - start) / CALLS)
    return best


def main() -> None:
    x = np.arange(3.0)
    plain = jt.jit(energy)
    print(f"{'':20} {'us':>6} {'over plain':>11} {'to lambda':>10}")
    for name, make in TRANSFORMED.items():
        direct, under = jt.jit(make()), jt.jit(lambda x, make=make: make()(x))
        found, base, other = fastest([direct, plain, under], x)
        row = f"{found * 1e6:6.3f} {(found - base) * 1e6:11.3f} {found / other:10.2f}"
        print(f"{name:20} {row}")


if __name__ == "__main__":
    main()
