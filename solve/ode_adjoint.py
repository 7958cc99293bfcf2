"""The adjoint of a differential equation: gradients by an equation that is solved backwards in time.

Where y' = f(t, y, p) and a loss has the gradients g_i with respect to y(t_i), the adjoint a(t) starts
with g at the last time, jumps by g_i at t_i, and between follows a' = -a df/dy. The gradient with
respect to p is the integral of a df/dp, and that with respect to y0 is a at the start. y is solved
backwards with it, from its known value at each t_i.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import jitney as jt

from .common import Function
from .ode_steps import Limits, Plan, Problem, integrate


def with_adjoint(
    f: Function, span: Any, y0: Any, at: Any, args: Any, limits: Limits, plan: Plan
) -> dict[str, Any]:
    """What `integrate` writes at times `at`, with that gradient for y0, `at` and floats of `args`."""

    def forward(y0: Any, at: Any, args: Any, span: Any, limits: Any) -> dict[str, Any]:
        written = integrate(
            Problem(lambda t, y: f(t, y, *args), None, (), span, at, Limits(*limits), plan), y0
        )
        names = ("rows", "written", "status", "steps", "tries")
        return {name: written[name] for name in names}

    solve = jt.custom_vjp(forward)

    def kept(y0: Any, at: Any, args: Any, span: Any, limits: Any) -> Any:
        out = forward(y0, at, args, span, limits)
        return out, (out["rows"], y0, at, args, span, limits)

    def backward(residuals: Any, cotangent: Any) -> Any:
        span, limits = residuals[-2:]
        grads = _backwards(f, plan, residuals, cotangent["rows"])
        nothing = jt.tree.map(lambda _: None, (span, tuple(limits)))
        return (*grads, *nothing)

    solve.defvjp(kept, backward)
    return solve(y0, at, args, span, tuple(limits))


def _backwards(f: Function, plan: Plan, residuals: Any, cotangents: Any) -> tuple[Any, Any, Any]:
    rows, y0, at, args, span, limits = residuals
    n, size = y0.shape[0], at.shape[0]
    parts, tree = jt.tree.flatten(args)
    moving = [i for i, p in enumerate(parts) if getattr(p, "dtype", np.dtype(int)).kind == "f"]
    weights = [parts[i] for i in moving]
    count = sum(int(np.prod(w.shape)) for w in weights)

    def slope(t: Any, y: Any, weights: Any) -> Any:
        full = list(parts)
        for i, w in zip(moving, weights, strict=True):
            full[i] = w
        return f(t, y, *jt.tree.unflatten(tree, full))

    def both(t: Any, state: Any) -> Any:
        y, a = state[:n], state[n : 2 * n]
        dy, pull = jt.vjp(lambda y, w: slope(t, y, w), y, weights)
        to_y, to_weights = pull(a)
        flat = [jt.reshape(g, (-1,)) for g in to_weights]
        return -jt.concatenate([-dy, to_y, *flat])

    def earlier(t_from: Any, t_to: Any, y: Any, a: Any, sums: Any) -> Any:
        start = jt.concatenate([y, a, sums])
        plain = Plan(plan.method, False, False, 1, (), "all")
        problem = Problem(both, None, (), (t_from, t_to), None, Limits(*limits), plain)
        written = integrate(problem, start)
        return written["y"][n : 2 * n], written["y"][2 * n :]

    def body(k: Any, carry: Any) -> Any:
        a, sums, times = carry
        i = size - 1 - k
        a = a + cotangents[i]
        times[i] = cotangents[i] @ slope(at[i], rows[i], weights)
        before = np.maximum(i - 1, 0)
        t_to = jt.where(i > 0, at[before], span[0])
        a, sums = earlier(at[i], t_to, rows[i], a, sums)
        return a, sums, times

    zeros = (jt.zeros_like(y0), jt.zeros(count, y0.dtype), jt.zeros_like(at))
    a, sums, times = jt.fori_loop(0, size, body, zeros)
    found: list[Any] = [None] * len(parts)
    first = 0
    for i, w in zip(moving, weights, strict=True):
        length = int(np.prod(w.shape))
        found[i] = jt.reshape(sums[first : first + length], w.shape).astype(w.dtype)
        first += length
    return a, times, jt.tree.unflatten(tree, found)
