"""What called functions change, inside of traced branches and loops, is merged and carried."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import jitney as jt

pytestmark = pytest.mark.usefixtures("traced_numbers")


class Model:
    def __init__(self, x):
        self.x = x
        self.n = 0
        self.settings = {"rate": 0.5, "trace": [0.0, 0.0]}

    def step(self):
        self.x = self.x * self.settings["rate"]
        self.n += 1
        self.settings["trace"][1] = self.x[0]

    def error(self):
        return self.x.sum()


class Slots:
    __slots__ = ("n", "x")

    def __init__(self, x):
        self.x, self.n = x, 0

    def step(self):
        self.x = self.x * 0.5
        self.n += 2


class Momentum(Model):
    def __init__(self, x):
        super().__init__(x)
        self.velocity = np.zeros(3)

    def step(self):
        self.velocity += 0.1 * self.x
        self.velocity[0] *= 0.5
        super().step()
        if self.x[0] > 0.2:
            self.finish(3)

    def finish(self, k):
        self.n += k


def methods_in_a_loop(x):
    model = Model(x)
    while model.error() > 0.1:
        model.step()
    return model.x, model.n, model.settings["trace"][1]


def methods_in_a_branch(x):
    model, other = Model(x), Slots(x)
    if x.sum() > 0.1:
        model.step()
    else:
        other.step()
    if x.sum() > 100:
        model.step()
    return model.x, model.n, other.n, other.x


def nested(x):
    model = Momentum(x)
    for row in np.ones((4, 1)) * x:
        if row[0] > 0:
            model.step()
    return model.x, model.n, model.velocity


def slots(x):
    models = [Slots(x), Slots(x * 2)]
    while models[1].x.sum() > 0.1:
        for model in models:
            model.step()
    return models[0].x, models[1].n


def closures(x):
    n, seen = 0, {"max": 0.0}

    def step(x):
        nonlocal n
        n += 1
        seen["max"] = np.maximum(seen["max"], x[0] + n)
        return x * 0.5

    while x.sum() > 0.1:
        x = step(x)
    if x[0] > 0:
        step(x)
    return x, n, seen["max"]


def halve(state):
    state["x"] = state["x"] * 0.5
    state["n"] += 1


def containers(x):
    state = {"x": x, "n": 0}
    again = functools.partial(halve, state)
    while state["x"].sum() > 0.1:
        again()
    if state["n"] > 3:
        halve(state)
    if state["n"] > 300:
        halve(state)
    return state["x"], state["n"]


def new_objects(x):
    found = []

    def keep(value):
        found[:] = [value, value * 2]

    keep(x)
    if x.sum() > 1:
        keep(x + 1)
    return found[0], found[1]


@pytest.mark.parametrize(
    "function",
    [methods_in_a_loop, methods_in_a_branch, nested, slots, closures, containers, new_objects],
)
def test_state_that_called_functions_change(function: Any) -> None:
    for x in (np.array([0.5, 1.0, 2.0]), np.array([0.01, 0.02, 0.01]), np.ones(3) * 90):
        want, got = function(x.copy()), jt.jit(function, autograph=True)(x.copy())
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_derivatives_through_objects() -> None:
    def f(x):
        model = Momentum(x)
        while model.error() > 0.1:
            model.step()
        return (model.x**2).sum() + model.velocity.sum()

    jt.check_grads(jt.jit(f, autograph=True), (np.array([0.5, 1.0, 2.0]),), order=1)


def test_lists_in_dicts_of_objects_grow() -> None:
    class Log(Model):
        def step(self):
            super().step()
            self.settings["trace"].append(self.x)

    def grows(x):
        log = Log(x)
        while log.error() > 0.1:
            log.step()
        return log.x, log.settings["trace"]

    def grows_in_a_branch(x):
        log = Log(x)
        if x[0] > 0.1:
            log.step()
        return log.x, log.settings["trace"]

    for f in (grows, grows_in_a_branch):
        for (x, trace), (wanted, steps) in (
            (jt.jit(f)(v), f(v)) for v in (np.ones(3), np.zeros(3))
        ):
            np.testing.assert_array_equal(x, wanted)
            assert len(trace) == len(steps)
            assert all(map(np.array_equal, trace, steps))


class Clipped:
    """Its operators have branches of their own."""

    def __init__(self, values: Any) -> None:
        self.values, self.refused = values, 0

    def __setitem__(self, k: Any, v: Any) -> None:
        if v > 0:
            self.values[k] = v
        else:
            self.refused += 1

    def __getitem__(self, k: Any) -> Any:
        return self.values[k]

    def __iadd__(self, v: Any) -> Any:
        if v > 0:
            self.values += v
        return self

    def __mul__(self, v: Any) -> Any:
        if v > 0:
            return self.values[0] * v
        return self.values[1]

    def __sub__(self, other: Any) -> Any:
        return NotImplemented

    def __rsub__(self, v: Any) -> Any:
        return v * 3


def test_operators_of_users_that_assign() -> None:
    def f(x, k):
        made, held = Clipped(x.copy()), [Clipped(x + 1)]
        for v in (x[k], -x[k]):
            made[1] = v
            made[0] += v
            made += v
            held[0] += v
        held[0][2] = made.values.sum()
        first = made.values.copy(), made.refused, held[0].values
        other = x[k]
        other -= made
        made *= x[k]
        return (*first, other, made)

    for k in (0, 1, 2):
        x = np.array([1.0, -2.0, 3.0])
        for got, want in zip(jt.jit(f)(x, np.int64(k)), f(x, k), strict=True):
            np.testing.assert_array_equal(got, want)
