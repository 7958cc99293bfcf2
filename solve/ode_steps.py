"""The loop of steps of a differential equation: their sizes follow the error, and what is asked for is
written on the way."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import jitney as jt

from . import ode_events
from .common import Function
from .ode_methods import METHODS, polynomial

RUNNING, END, EVENT, TOO_SMALL, TOO_MANY = 9, 0, 1, -1, -2
SAFETY, LEAST, MOST = 0.9, 0.2, 10.0


class Plan(NamedTuple):
    """What is static of an integration: the method, whether every step is written and with its
    polynomial, how many fit, what is known of events, and how the gradient's memory is bounded."""

    method: str
    every: bool
    dense: bool
    steps: int
    events: tuple[ode_events.Kind, ...]
    checkpoint: str | int


class Limits(NamedTuple):
    """Tolerances and bounds of a step."""

    rtol: Any
    atol: Any
    first: Any
    most: Any


class Problem(NamedTuple):
    """What is integrated: f(t, y), its Jacobian and events, between two ends, with times to give."""

    f: Function
    jac: Any
    events: tuple[Function, ...]
    span: tuple[Any, Any]
    at: Any
    limits: Limits
    plan: Plan


def rms(x: Any) -> Any:
    """The root of the mean square."""
    return np.sqrt(jt.mean(np.real(x * np.conj(x))))


def first_step(
    f: Function, t0: Any, y0: Any, f0: Any, end: Any, forward: Any, order: int, limits: Limits
) -> Any:
    """A step that suits the first and second derivatives at the start, as SciPy chooses it."""
    length = np.abs(end - t0)
    scale = limits.atol + np.abs(y0) * limits.rtol
    d0, d1 = rms(y0 / scale), rms(f0 / scale)
    flat = (d0 < 1e-5) | (d1 < 1e-5)
    h0 = np.minimum(jt.where(flat, 1e-6, 0.01 * d0 / jt.where(flat, 1.0, d1)), length)
    safe = jt.where(h0 == 0, 1.0, h0)
    d2 = rms((f(t0 + h0 * forward, y0 + h0 * forward * f0) - f0) / scale) / safe
    largest = np.maximum(d1, d2)
    still = largest <= 1e-15
    h1 = (0.01 / jt.where(still, 1.0, largest)) ** (1 / (order + 1))
    h1 = jt.where(still, np.maximum(1e-6, h0 * 1e-3), h1)
    return np.minimum(np.minimum(100 * h0, h1), np.minimum(length, limits.most))


def integrate(problem: Problem, y0: Any) -> dict[str, Any]:
    """Everything that was written: of times `at` (if not None), of steps, of events."""
    f, _, events, (t0, end), at, limits, plan = problem
    method = METHODS[plan.method]
    forward = jt.where(end >= t0, 1.0, -1.0)
    f0 = f(t0, y0)
    h = limits.first
    if h is None:
        h = first_step(f, t0, y0, f0, end, forward, method.order, limits)
    carry: dict[str, Any] = {
        "t": t0,
        "y": y0,
        "f": f0,
        "h": jt.stop_gradient(h),
        "rejected": False,
        "steps": 0,
        "tries": 0,
        "status": jt.where(end == t0, END, RUNNING),
    }
    if at is not None:
        rows = jt.zeros((at.shape[0], y0.shape[0]), y0.dtype) + np.nan
        carry["rows"], carry["written"] = _written(rows, 0, at, (t0, y0, t0, y0, None), forward)
    if plan.every:
        carry["times"] = jt.zeros(plan.steps + 1, t0.dtype) + t0
        carry["all"] = jt.zeros((plan.steps + 1, y0.shape[0]), y0.dtype)
        carry["all"][0] = y0
    if plan.dense:
        powers = {"RK45": 4}.get(plan.method, 3)
        carry["dense"] = jt.zeros((plan.steps, powers, y0.shape[0]), y0.dtype)
    if events:
        values = ode_events.values_of(events, t0, y0)
        carry["events"] = ode_events.empty(len(events), plan.steps, t0, y0, values)

    def body(c: Any) -> Any:
        return _advanced(problem, forward, c)

    return jt.while_loop(lambda c: c["status"] == RUNNING, body, carry, checkpoint=plan.checkpoint)


def _advanced(problem: Problem, forward: Any, c: dict[str, Any]) -> dict[str, Any]:
    """What one try of a step makes of the carry."""
    f, jac, events, (_, end), at, limits, plan = problem
    method = METHODS[plan.method]
    t, y, h = c["t"], c["y"], c["h"]
    least = jt.stop_gradient(10 * np.abs(np.nextafter(t, forward * np.inf) - t))
    lost = c["rejected"] & (h < least)
    h = jt.where(c["rejected"], h, np.clip(h, least, limits.most))
    last = forward * (t + forward * h - end) > 0
    t_new = jt.where(last, end, t + forward * h)
    h = t_new - t
    y_new, f_new, error, dense = method.step(f, t, y, c["f"], h, jac)
    size = np.maximum(np.abs(y), np.abs(y_new))
    size = jt.stop_gradient(rms(error / (limits.atol + size * limits.rtol)))
    accepted = (size < 1) & ~lost
    lost = lost | ~np.isfinite(h)
    size = jt.where(np.isfinite(size), size, np.inf)
    factor = SAFETY * jt.where(size > 0, size, 1e-30) ** (-1 / (method.order + 1))
    most = jt.where(c["rejected"], 1.0, MOST)
    factor = jt.where(accepted, np.minimum(factor, most), np.maximum(factor, LEAST))
    new = dict(c)
    new["h"] = jt.stop_gradient(np.abs(h)) * factor
    new["rejected"] = ~accepted
    new["tries"] = c["tries"] + 1
    steps = c["steps"] + accepted
    status = jt.where(accepted & (forward * (t_new - end) >= 0), END, RUNNING)
    step = (t, y, t_new, y_new, dense)
    if events:
        record, stop, stopped_at = jt.cond(
            accepted,
            lambda: ode_events.watch(events, plan.events, c["events"], step, forward),
            lambda: (c["events"], jt.any(False & (c["events"]["count"] > 0)), t_new + 0 * t),
        )
        y_new = jt.where(stop, polynomial(y, dense, (stopped_at - t) / h), y_new)
        t_new = stopped_at
        step = (t, y, t_new, y_new, dense)
        status = jt.where(stop, EVENT, status)
        new["events"] = record
    if at is not None:
        until = (t, y, jt.where(accepted, t_new, t), y_new, dense)
        rows, written = _written(c["rows"], c["written"], at, until, forward, h)
        new["rows"], new["written"] = rows, written
    if plan.every:
        new["times"][c["steps"] + 1], new["all"][c["steps"] + 1] = t_new, y_new
    if plan.dense:
        part = (t_new - t) / h  # an event may have cut the step
        powers = part ** (1 + np.arange(dense.shape[0]))
        new["dense"][c["steps"]] = dense * powers[:, None]
    if plan.every or events:
        full = accepted & (steps >= plan.steps) & (status == RUNNING)
        status = jt.where(full, TOO_MANY, status)
    new["t"], new["y"] = jt.where(accepted, t_new, t), jt.where(accepted, y_new, y)
    new["f"] = jt.where(accepted, f_new, c["f"])
    new["steps"], new["status"] = steps, jt.where(lost, TOO_SMALL, status)
    return new


def _written(
    rows: Any, count: Any, at: Any, step: tuple[Any, ...], forward: Any, h: Any = None
) -> tuple[Any, Any]:
    """The rows with those times that the step reaches."""
    t, y, t_new, _, dense = step
    size = at.shape[0]

    def due(carry: Any) -> Any:
        _, k = carry
        return (k < size) & (forward * (at[np.minimum(k, size - 1)] - t_new) <= 0)

    def write(carry: Any) -> Any:
        rows, k = carry
        rows[k] = y if dense is None else polynomial(y, dense, (at[k] - t) / h)
        return rows, k + 1

    return jt.while_loop(due, write, (rows, count + 0))
