"""Outside values: what a traced function reads is read at each call, or a change traces anew."""

from __future__ import annotations

import enum
import functools
import random
import types
import warnings
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from support import misses

import jitney as jt
from jitney.tracer.captures.free_variables import find_free_variables
from jitney.tracer.captures.guards import freeze

pytestmark = pytest.mark.usefixtures("calls")

X = np.arange(3.0)


# Globals of this module that the tests change.
factor: Any = 2.0
weights: Any = np.array([1.0, 2.0, 3.0])
table: Any = {"w": np.ones(3), "scale": 2.0}
counter = 0


class Mode(enum.Enum):
    ADD = 1
    MULTIPLY = 2


@dataclass
class Config:
    lr: float = 0.5
    w: Any = None
    unrelated: int = 0


config = Config()
module = types.ModuleType("a_users_module")
module.gain = 3.0  # type: ignore[attr-defined]
module.bias = np.zeros(3)  # type: ignore[attr-defined]


def helper(x: Any) -> Any:
    return x * factor


def deep_helper(x: Any) -> Any:
    return helper(x) + config.lr


@pytest.fixture(autouse=True)
def _restore():
    saved = {k: globals()[k] for k in ("factor", "weights", "table", "counter", "helper", "config")}
    copies = {k: globals()[k].copy() for k in ("weights",)}
    yield
    globals().update(saved)
    weights[:] = copies["weights"]
    config.__dict__.update(lr=0.5, w=None, unrelated=0)


def test_a_number_in_a_global() -> None:
    global factor
    f = jt.jit(lambda x: x * factor)
    np.testing.assert_array_equal(f(X), X * 2)
    np.testing.assert_array_equal(f(X), X * 2)
    assert misses(f) == 1
    factor = 3.0
    np.testing.assert_array_equal(f(X), X * 3)
    assert misses(f) == 2
    assert "`factor` changed from 2.0 to 3.0" in f.cache_info().entries[-1].reason
    factor = 2.0  # the first specialisation fits again
    np.testing.assert_array_equal(f(X), X * 2)
    assert misses(f) == 2


@pytest.mark.parametrize(
    "before, after",
    [
        (1, 1.0),
        (1, True),
        (0.0, -0.0),
        (2, 3),
        ("a", "b"),
        (None, 0),
        ([1, 2], [1, 3]),
        ((1, 2), [1, 2]),
        ({"a": 1}, {"b": 1}),
        (np.float32(1), np.float64(1)),
        (np.dtype("f4"), np.dtype("f8")),
        (Mode.ADD, Mode.MULTIPLY),
        ({1}, {1, 2}),
        (range(3), range(4)),
        (len, abs),
        (np.sin, np.cos),
    ],
    ids=repr,
)
def test_a_changed_value_traces_anew(before: Any, after: Any) -> None:
    global factor
    f = jt.jit(lambda x: x + (1 if factor else 2))
    factor = before
    f(X)
    f(X)
    assert misses(f) == 1
    factor = after
    f(X)
    assert misses(f) == 2


def test_what_is_not_read_is_not_guarded() -> None:
    f = jt.jit(lambda x: x * config.lr)
    f(X)
    config.unrelated = 7
    f(X)
    assert misses(f) == 1
    config.lr = 0.25
    np.testing.assert_array_equal(f(X), X * 0.25)
    assert misses(f) == 2


def test_containers_are_guarded_by_content() -> None:
    layers = [1.0, 2.0]
    options = {"on": True}

    @jt.jit
    def f(x):
        for c in layers:
            x = x * c
        return x + 1 if options["on"] else x

    np.testing.assert_array_equal(f(X), X * 2 + 1)
    layers.append(3.0)
    np.testing.assert_array_equal(f(X), X * 6 + 1)
    options["on"] = False
    np.testing.assert_array_equal(f(X), X * 6)
    assert misses(f) == 3


def test_through_functions() -> None:
    global factor, helper
    f = jt.jit(lambda x: deep_helper(x))
    np.testing.assert_array_equal(f(X), X * 2 + 0.5)
    factor = 5.0
    np.testing.assert_array_equal(f(X), X * 5 + 0.5)
    config.lr = 1.0
    np.testing.assert_array_equal(f(X), X * 5 + 1)
    old = helper
    helper = lambda x: -x  # noqa: E731
    np.testing.assert_array_equal(f(X), -X + 1)
    helper = old
    np.testing.assert_array_equal(f(X), X * 5 + 1)
    assert misses(f) == 4


def test_a_replaced_function_body() -> None:
    def inner(x):
        return x + 1

    f = jt.jit(lambda x: inner(x))
    np.testing.assert_array_equal(f(X), X + 1)
    inner.__code__ = (lambda x: x + 2).__code__
    np.testing.assert_array_equal(f(X), X + 2)


def test_defaults_of_a_helper() -> None:
    def inner(x, by=1.0):
        return x + by

    f = jt.jit(lambda x: inner(x))
    np.testing.assert_array_equal(f(X), X + 1)
    inner.__defaults__ = (2.0,)
    np.testing.assert_array_equal(f(X), X + 2)


def test_closures_and_nested_functions() -> None:
    shift = 1.0

    def set_shift(value: float) -> None:
        nonlocal shift
        shift = value

    @jt.jit
    def f(x):
        def inner(y):
            return [(lambda z: z + shift * factor)(y) for _ in range(1)].pop()

        return inner(x)

    np.testing.assert_array_equal(f(X), X + 2)
    set_shift(2.0)
    np.testing.assert_array_equal(f(X), X + 4)
    assert misses(f) == 2


def test_attributes_of_a_users_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "bias", np.zeros(3))
    f = jt.jit(lambda x: x * module.gain + module.bias[0])
    np.testing.assert_array_equal(f(X), X * 3)
    monkeypatch.setattr(module, "gain", 4.0)
    np.testing.assert_array_equal(f(X), X * 4)
    module.bias[0] = 1.0  # type: ignore[attr-defined]
    np.testing.assert_array_equal(f(X), X * 4 + 1)


def test_a_jitted_helper() -> None:
    global factor
    inner = jt.jit(lambda x: x * factor + weights[0])
    f = jt.jit(lambda x: inner(x) + 1)
    np.testing.assert_array_equal(f(X), X * 2 + 2)
    factor = 3.0
    weights[0] = 10
    np.testing.assert_array_equal(f(X), X * 3 + 11)
    assert misses(f) == 2


# The function's own effects


def test_counting_and_logging_do_not_retrace() -> None:
    global counter
    counter = 0
    log = []

    @jt.jit
    def f(x):
        global counter
        counter += 1
        log.append("called")
        return x + 1

    for _ in range(3):
        f(X)
    assert counter == 3 and log == ["called"] * 3 and misses(f) == 1


def test_state_that_is_read_and_changed_is_not_frozen() -> None:
    state = {"n": 0}

    @jt.jit
    def f(x):
        state["n"] += 1
        return x * state["n"]

    for n in range(1, 12):
        np.testing.assert_array_equal(f(X), X * n)
    assert misses(f) == 1


def test_a_global_assigned_by_the_function_is_assigned_for_real() -> None:
    global counter

    @jt.jit
    def f(x):
        global counter
        counter = 42
        return x + weights

    f(X)
    assert counter == 42


@pytest.mark.parametrize("draw", ["rng.random()", "np.random.RandomState().rand()"])
def test_random_numbers_that_would_be_frozen_are_refused(draw: str) -> None:
    names = {"np": np, "rng": random.SystemRandom()}
    f = eval(f"lambda x: x + {draw}", names)
    with pytest.raises(jt.errors.ImpureFunctionError, match="the same numbers for ever"):
        jt.jit(f)(X)


def test_check_names_the_line_that_differs() -> None:
    numbers = iter(range(100))

    @functools.partial(jt.jit, check=True)
    def f(x):
        y = x + 1
        return y * float(next(numbers))

    with pytest.raises(jt.errors.ImpureFunctionError, match="test_guards.py:") as info:
        f(X)
    assert "next(numbers)" in str(info.value)
    g = jt.jit(lambda x: x * 2, check=True)
    np.testing.assert_array_equal(g(X), X * 2)


def test_no_warning_for_ordinary_changes() -> None:
    global factor
    f = jt.jit(lambda x: x * factor)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in range(12):
            factor = float(i)
            np.testing.assert_array_equal(f(X), X * i)


# The parts


def test_paths_found_in_bytecode() -> None:
    def f(x, y):
        z = np.sin(x) + config.lr
        return helper(z) * weights + (module.gain if y else Mode.ADD.value)

    found = {str(path) for path, _ in find_free_variables(f).values.values()}
    assert {"config.lr", "helper", "weights", "gain", "factor"} <= found
    assert not any(name.startswith(("np.", "x", "y")) for name in found)


def test_freeze_sees_changes_inside() -> None:
    value = {"a": [1, (2.0, {"b": np.zeros(2)})], "c": Config()}
    before = freeze(value)
    assert freeze(value) == before
    value["a"][1][1]["b"][0] = 1.0
    assert freeze(value) != before
    value["a"][1][1]["b"][0] = 0.0
    assert freeze(value) == before
    value["c"].lr = 9.0
    assert freeze(value) != before


def test_freeze_of_cycles_and_nan() -> None:
    cycle: list[Any] = [1]
    cycle.append(cycle)
    assert freeze(cycle) == freeze(cycle)
    assert freeze(float("nan")) == freeze(float("nan"))


def test_weak_proxies_may_outlive_what_they_stand_for() -> None:
    class Settings:
        def __init__(self, k: float) -> None:
            self.k = k

    gone, there = Settings(2.0), Settings(3.0)
    dead, alive = weakref.proxy(gone), weakref.proxy(there)
    del gone
    table = {"dead": dead, "alive": alive}

    def count(x: Any) -> Any:
        return x * len(table) * alive.k

    for function, times in ((count, 2), (lambda x: x * alive.k, 1)):
        compiled, there.k = jt.jit(function), 3.0
        assert compiled(2.0) == compiled(2.0) == 6.0 * times
        there.k = 5.0
        assert compiled(2.0) == 10.0 * times
    with pytest.raises(ReferenceError):
        jt.jit(lambda x: x * dead.k)(2.0)


def test_containers_hold_weak_proxies_of_what_is_gone() -> None:
    held = [weakref.proxy(type("Gone", (), {})())]

    def f(x: float) -> float:
        return x * len(held)

    assert jt.jit(f)(2.0) == 2.0


def test_rules_of_derivatives_read_the_outside_as_the_function_does() -> None:
    scale, table = 2.0, np.ones(3)

    @jt.custom_vjp
    def f(x: Any) -> Any:
        return x**2

    f.defvjp(lambda x: (f(x), x), lambda x, ct: (scale * x * ct + table.sum(),))

    @jt.custom_jvp
    def g(x: Any) -> Any:
        return x**2

    g.defjvps(lambda t, out, x: t * (scale * x + table.sum()))

    @jt.custom_jvp
    def h(x: Any) -> Any:
        return x**2

    @h.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        return h(*primals), tangents[0] * (scale * primals[0] + table.sum())

    for function in (f, g, h):
        scale, table = 2.0, np.ones(3)
        compiled = jt.jit(jt.grad(function))
        assert compiled(2.0) == 7.0
        scale = 5.0
        assert compiled(2.0) == 13.0
        table = table * 2
        assert compiled(2.0) == 16.0
        table = np.ones(4)
        assert compiled(2.0) == 14.0
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct,))
    assert jt.jit(jt.grad(f))(2.0) == 1.0


def test_a_rule_that_is_given_anew_is_traced_anew() -> None:
    @jt.custom_jvp
    def f(x: Any) -> Any:
        return x**2

    f.defjvps(lambda t, out, x: t * 3.0)
    compiled = jt.jit(jt.grad(f))
    assert compiled(2.0) == 3.0
    f.defjvps(lambda t, out, x: t * 4.0)
    assert compiled(2.0) == 4.0


def test_a_class_that_grows_while_it_is_looked_through() -> None:
    """By another thread, or by what looking at a member does."""

    class Grows:
        def __getattr__(self, name: str) -> Any:
            setattr(Holder, f"seen_{name}", 1)
            raise AttributeError(name)

    class Holder:
        part = Grows()

        def __call__(self, x: Any) -> Any:
            return x * 2

    twice = functools.partial(lambda kind, x: kind()(x), Holder)
    np.testing.assert_array_equal(jt.jit(lambda x: twice(x))(np.ones(3)), 2)


class Settings:
    """Its `__getattr__` raises what it likes: nothing of NumPy's or ours may be asked of it."""

    def __init__(self, **values: Any) -> None:
        self.values = values

    def __getattr__(self, name: str) -> Any:
        return self.values[name]

    def __rmul__(self, x: Any) -> Any:
        return x + self.values["scale"]

    __array_ufunc__ = None


SETTINGS = Settings(scale=2.0, inner=Settings(scale=5.0))


def test_objects_whose_getattr_raises_other_errors() -> None:
    def f(x: Any) -> Any:
        found = x * SETTINGS.scale + x * SETTINGS
        for i in range(len(x)):
            chosen = SETTINGS.inner if x[i] > 1 else SETTINGS
            found[i] += chosen.scale
        return found

    compiled, x = jt.jit(f), np.arange(4.0)
    np.testing.assert_array_equal(compiled(x), f(x))
    SETTINGS.values["scale"] = 3.0
    np.testing.assert_array_equal(compiled(x), f(x))
    given = jt.jit(lambda x, settings: x * settings.scale)
    np.testing.assert_array_equal(given(x, SETTINGS), x * 3)
    with pytest.raises(KeyError, match="other"):
        jt.jit(lambda x: x * SETTINGS.other)(x)
