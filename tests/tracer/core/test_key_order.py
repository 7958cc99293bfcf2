"""The order of keywords and of the keys of dicts: a function sees its caller's, and keeps its own."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt
from jitney.tracer.data import pytree

X = np.arange(3.0)


def fold(values: Any) -> Any:
    """A number that depends on the order."""
    total: Any = 0.0
    for name in values:
        total = total * 2 + values[name]
    return total


@dataclasses.dataclass
class Holder:
    parts: Any


@pytest.mark.parametrize(
    "wrap",
    [
        lambda d: d,
        lambda d: [1.0, (d, None)],
        collections.OrderedDict,
        lambda d: collections.defaultdict(float, d),
        lambda d: {"inner": d, "before": 1.0},
        Holder,
        lambda d: collections.deque([d, d]),
        lambda d: {3 if k == "a" else 7: v for k, v in d.items()},
    ],
)
def test_dicts(wrap: Callable[[Any], Any], calls: str) -> None:
    def function(tree: Any) -> Any:
        d = tree
        while type(d) in (list, tuple, collections.deque) or isinstance(d, Holder) or "inner" in d:
            d = d.parts if isinstance(d, Holder) else d["inner"] if isinstance(d, dict) else d[-1]
            d = d[0] if isinstance(d, tuple) else d
        return fold(d)

    f = jt.jit(function)
    for _ in range(3):
        for d in ({"a": X, "b": X + 1}, {"b": X + 1, "a": X}):
            np.testing.assert_array_equal(f(wrap(d)), function(wrap(d)))
    assert len(f.cache_info().entries) == 2


def test_keywords(calls: str) -> None:
    def function(x: Any, /, scale: Any = 1.0, *, offset: Any = 0.0, **named: Any) -> Any:
        return x * scale + offset + fold(named)

    f = jt.jit(function)
    for _ in range(3):
        for named in ({"a": X, "b": 2.0}, {"b": 2.0, "a": X}, {"b": 2.0, "x": X}, {"x": X}, {}):
            np.testing.assert_array_equal(f(X, **named), function(X, **named))
            more = {"offset": 1.0, **named, "scale": 3.0}
            np.testing.assert_array_equal(f(X, **more), function(X, **more))
    # The order of keywords that name parameters cannot be seen.
    before = len(f.cache_info().entries)
    f(X, scale=3.0, offset=1.0, a=X, b=2.0)
    f(X, a=X, offset=1.0, b=2.0, scale=3.0)
    assert len(f.cache_info().entries) == before


def test_keys_that_are_equal_and_differ(calls: str) -> None:
    def function(d: Any) -> Any:
        return sum(value * name for name, value in d.items())

    f = jt.jit(function)
    for _ in range(3):
        for one in (1, True, 1.0, np.int8(1)):
            got, want = f({one: X.astype(np.int8)}), function({one: X.astype(np.int8)})
            assert got.dtype == want.dtype and (got == want).all()
            d = {"".join(["o", "ne"]): np.int8(3), one: np.int8(2)}
            g = jt.jit(lambda d, one=one: d[one] * next(k for k in d if k == one))
            assert type(g(d)) is type(d[one] * one)


def test_hidden_dicts(calls: str) -> None:
    params = {"a": X, "b": X + 1}

    @jt.jit
    def f(x: Any) -> Any:
        return x + fold(params)

    for _ in range(3):
        for params in ({"a": X, "b": X + 1}, {"b": X + 1, "a": X}):
            np.testing.assert_array_equal(f(X), X + fold(params))


@pytest.mark.parametrize(
    "make",
    [
        lambda x: {"z": x, "a": x + 1, "m": x.sum()},
        lambda x: {"z": {"b": x, "a": x + 1}, "a": [{"y": x, "x": 1.0}]},
        lambda x: collections.OrderedDict(z=x + 1, a=x),
        lambda x: collections.defaultdict(list, z=x + 1, a=x),
        lambda x: ({"b": x, "a": x}, {"a": x, "b": x}),
    ],
)
def test_results(make: Callable[[Any], Any], calls: str) -> None:
    f = jt.jit(make)
    for _ in range(3):
        got, want = f(X), make(X)
        assert repr(got) == repr(want)
        if isinstance(want, collections.defaultdict):
            assert got.default_factory is list


def test_a_result_has_the_order_of_an_argument(calls: str) -> None:
    f = jt.jit(lambda d: {k: v * 2 for k, v in d.items()})
    for _ in range(3):
        assert list(f({"a": X, "b": X})) == ["a", "b"]
        assert list(f({"b": X, "a": X})) == ["b", "a"]


def test_transformations(calls: str) -> None:
    def loss(d: Any) -> Any:
        return fold(d).sum()

    grads = [jt.grad(loss), jt.jit(jt.grad(loss)), lambda d: jt.vjp(loss, d)[1](1.0)[0]]
    mapped = [jt.vmap(fold), jt.jit(jt.vmap(fold)), jt.jit(lambda d: jt.checkpoint(fold)(d))]
    for _ in range(3):
        for d in ({"a": X, "b": X + 1}, {"b": X + 1, "a": X}):
            first, second = d
            for grad in grads:
                found = grad(d)
                assert list(found) == list(d)
                assert (found[first] == 2).all() and (found[second] == 1).all()
            for function in mapped:
                np.testing.assert_array_equal(function(d), fold(d))
            value, tangent = jt.jit(lambda d: jt.jvp(loss, (d,), (d,)))(d)
            assert value == tangent == loss(d)


@pytest.mark.parametrize("compiled", [False, True])
def test_loops_keep_the_order_of_init(compiled: bool) -> None:
    """What the body returns may be in another order; the carry has that of its start."""

    def step(c: Any) -> Any:
        first, second = c
        assert (first, second) == ("b", "a")
        return {"a": c["a"] + 1, "b": c["b"] + c["a"]}

    loops: list[Callable[[Any], Any]] = [
        lambda d: jt.fori_loop(0, 3, lambda i, c: step(c), d),
        lambda d: jt.while_loop(lambda c: c["a"].sum() < 9, step, d),
        lambda d: jt.scan(lambda c, x: (step(c), {"y": x, "x": x}), d, X)[0],
        lambda d: jt.foldl(lambda c, x: step(c), X, d),
    ]
    for loop in loops:
        got = (jt.jit(loop) if compiled else loop)({"b": X, "a": X + 1})
        assert list(got) == ["b", "a"]
    stacked = jt.jit(loops[2]) if compiled else loops[2]
    assert list(stacked({"b": X, "a": X})) == ["b", "a"]


def test_branches_return_one_order() -> None:
    """What `cond` makes has one order, whichever branch makes it, and so has what a loop hands on; what
    Python's own `if` leaves has the order of its branch."""
    swapped = jt.jit(
        lambda x: jt.cond(x.sum() > 0, lambda: {"a": x, "b": x}, lambda: {"b": x, "a": x})
    )
    with pytest.raises(jt.errors.CarryError, match=r"'b': \*, 'a': \*"):
        swapped(X)

    @jt.jit(autograph=True)
    def written(x: Any) -> Any:
        if x.sum() > 0:
            d = {"a": x, "b": x + 1}
        else:
            d = {"b": x, "a": x + 1}
        return d

    for x in (X, -X):
        assert list(written(x)) == list(written.__wrapped__(x))

    @jt.jit(autograph=True)
    def looped(x: Any) -> Any:
        d = {"a": x, "b": x + 1}
        while d["a"].sum() < 9:
            d = {"b": d["b"], "a": d["a"] + 1}
        return d

    with pytest.raises(jt.errors.CarryError, match="order"):
        looped(X)


def test_reordering_an_argument_is_a_change_of_it() -> None:
    @jt.jit
    def f(d: Any) -> Any:
        d["a"] = d.pop("a")
        return d["a"] + d["b"]

    d = {"a": X, "b": X}
    f(d)
    assert list(d) == ["b", "a"]


def test_the_reason_is_told() -> None:
    f = jt.jit(fold)
    f({"a": X, "b": X})
    f({"b": X, "a": X})
    assert "order" in f.cache_info().entries[1].reason


def test_donated_dicts() -> None:
    f = jt.jit(lambda d, e: {k: v + e["a"] for k, v in d.items()}, donate_argnums=0)
    for _ in range(3):
        for names in ("ab", "ba"):
            d = {k: np.full(4, float(i)) for i, k in enumerate(names)}
            e = {k: np.full(4, 5.0) for k in reversed(names)}
            assert [v[0] for v in f(d, e).values()] == [5.0, 6.0]
            assert e["a"][0] == 5.0


def test_flatten_as_written() -> None:
    tree = {"b": [1, {"z": 2, "y": None}], "a": (3, collections.OrderedDict(q=4, p=5))}
    leaves, key = pytree.as_written(tree)
    assert leaves == [1, 2, 3, 4, 5]
    assert key == pytree.as_written({"b": [6, {"z": 7, "y": None}], "a": tree["a"]})[1]
    others: list[Any] = [
        {"a": tree["a"], "b": tree["b"]},
        {**tree, "b": [1, {"y": None, "z": 2}]},
        {**tree, "b": (1, {"z": 2, "y": None})},
        {**tree, "b": [1, {"z": None, "y": 2}]},
        {"b": [1, {"z": 2, "y": None}, 3, collections.OrderedDict(q=4, p=5)]},
    ]
    assert all(pytree.as_written(other)[1] != key for other in others)
    assert pytree.as_written([[], 1])[1] != pytree.as_written([[1]])[1]
    assert pytree.as_written({0.0: 1})[1] != pytree.as_written({-0.0: 1})[1]
    assert pytree.as_written(collections.deque([1], 2))[1] != pytree.as_written([1])[1]
