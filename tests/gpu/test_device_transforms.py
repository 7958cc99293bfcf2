"""Transformations, control flow and updates called with DeviceArrays outside of jit: on the device."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import jitney as jt
from jitney.runtime.cuda.client import Client

A = np.linspace(0.1, 1, 6)
B = np.arange(12.0).reshape(3, 4)
PLACES = np.array([0, 2])


@pytest.fixture(autouse=True)
def on_gpu() -> Iterator[None]:
    with jt.config(cuda="emulate"):
        yield


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shapes of what is copied to the host."""
    shapes: list[tuple[int, ...]] = []
    fetch = Client.fetch

    def watched(self: Client, memory: Any, array: np.ndarray) -> None:
        shapes.append(array.shape)
        fetch(self, memory, array)

    monkeypatch.setattr(Client, "fetch", watched)
    return shapes


def put(x: Any) -> Any:
    return jt.device_put(np.asarray(x), "cuda")


def loss(x: Any) -> Any:
    return (np.sin(x) ** 2).sum()


def back(f: Any, *args: Any, times: Any = (1.0, 2.0)) -> Any:
    out, vjp_fn = jt.vjp(f, *args)
    return out, [vjp_fn(jt.tree.map(lambda y, t=t: y * t, out)) for t in times]


def slowed(x: Any) -> Any:
    """A loop of unknown length, whose backward part reads a tape."""
    return jt.while_loop(lambda c: (c * c).sum() > 1, lambda c: np.sin(c) * 0.9, x)


CASES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "grad": lambda x, m, i: jt.grad(loss)(x),
    "value_and_grad": lambda x, m, i: jt.value_and_grad(loss)(x),
    "vjp": lambda x, m, i: back(np.sin, x),
    "vjp of trees": lambda x, m, i: back(lambda d, s: {"y": d["x"] * s, "z": (d["x"].sum(), s)},
                                         {"x": x}, 2.0),
    "vjp of a loop": lambda x, m, i: back(slowed, x, times=(1.0,)),
    "vjp with aux": lambda x, m, i: jt.vjp(lambda x: (x * 2, x.sum()), x, has_aux=True)[::2],
    "vjp of integers": lambda x, m, i: jt.vjp(lambda x, i: x[i], x, i)[1](m[0][:2]),
    "jvp": lambda x, m, i: jt.jvp(np.sin, (x,), (x,)),
    "linearize": lambda x, m, i: (lambda out, lin: (out, lin(x), lin(x * 3)))(
        *jt.linearize(lambda x: np.sin(x) * x.sum(), x)),
    "linear_transpose": lambda x, m, i: jt.linear_transpose(lambda x: x * 2 + x[::-1], x)(x),
    "hvp": lambda x, m, i: jt.hvp(loss, (x,), (x,)),
    "jacfwd": lambda x, m, i: jt.jacfwd(np.sin)(x),
    "jacrev": lambda x, m, i: jt.jacrev(np.sin)(x),
    "hessian": lambda x, m, i: jt.hessian(loss)(x),
    "vmap": lambda x, m, i: jt.vmap(lambda r: r * r.sum())(m),
    "vectorize": lambda x, m, i: jt.vectorize(lambda a, b: a * b + 1)(x, m[0, 0]),
    "checkpoint": lambda x, m, i: jt.grad(lambda x: jt.checkpoint(loss)(x))(x),
    "cond": lambda x, m, i: jt.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, x),
    "cond that closes over arrays": lambda x, m, i: jt.cond(x[0] > 9, lambda: x + 1, lambda: x * 2),
    "switch": lambda x, m, i: jt.switch(i[1], [np.sin, np.cos, np.tan], x),
    "case": lambda x, m, i: jt.case([(x.sum() < 0, lambda: x), (x.sum() > 0, lambda: -x)],
                                    default=lambda: x * 2),
    "while_loop": lambda x, m, i: jt.while_loop(lambda c: c.sum() < 100, lambda c: c * 2, x),
    "while_loop of a tree": lambda x, m, i: jt.while_loop(
        lambda c: c["n"] < 3, lambda c: {"n": c["n"] + 1, "x": c["x"] + x}, {"n": 0, "x": x}),
    "fori_loop": lambda x, m, i: jt.fori_loop(0, 3, lambda k, c: c * 2 + k, x),
    "fori_loop up to a DeviceArray": lambda x, m, i: jt.fori_loop(0, i[1], lambda k, c: c * 2, x),
    "scan": lambda x, m, i: jt.scan(lambda c, r: (c + r, c.sum()), m[0], m),
    "scan that closes over arrays": lambda x, m, i: jt.scan(
        lambda c, _: (c + x, c * x), np.zeros(6), None, length=3),
    "map_fn": lambda x, m, i: jt.map_fn(lambda r: r.sum(), m),
    "foldl": lambda x, m, i: jt.foldl(lambda a, b: a * 2 + b, m),
    "foldr": lambda x, m, i: jt.foldr(lambda a, b: a * 2 + b, m),
    "associative_scan": lambda x, m, i: jt.associative_scan(
        lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (m, m)),
    "at set": lambda x, m, i: jt.at(x)[i].set(5.0),
    "at add": lambda x, m, i: jt.at(x)[i].add(m[0][:2]),
    "at multiply": lambda x, m, i: jt.at(x)[1:3].multiply(2),
    "at min": lambda x, m, i: jt.at(m)[1, i].min(4.5),
    "at max": lambda x, m, i: jt.at(m)[..., 0].max(4.5),
    "at a mask": lambda x, m, i: jt.at(x)[x > 0.5].set(0.0),
    "at get": lambda x, m, i: jt.at(m)[i].get(),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_it_stays_on_the_device(name: str, fetched: list[tuple[int, ...]]) -> None:
    case = CASES[name]
    want = case(A, B, PLACES)
    got = case(put(A), put(B), put(PLACES))
    assert not fetched
    assert jt.tree.structure(got) == jt.tree.structure(want)
    for g, w in zip(jt.tree.leaves(got), jt.tree.leaves(want), strict=True):
        assert type(g) is jt.DeviceArray, name
        assert g.shape == np.shape(w) and g.dtype == np.asarray(w).dtype
        np.testing.assert_allclose(np.asarray(g), w, rtol=1e-12)


def test_arrays_that_are_closed_over_stay_there(fetched: list[tuple[int, ...]]) -> None:
    w = put(A)
    f = jt.jit(lambda x: x * w + w.sum())
    np.testing.assert_allclose(np.asarray(f(put(A))), A * A + A.sum())
    assert fetched == [(6,)]
    fetched.clear()
    out = jt.fori_loop(0, 2, lambda k, c: c + w, put(A))
    assert not fetched
    np.testing.assert_allclose(np.asarray(out), 3 * A)
    np.testing.assert_allclose(jt.jit(lambda x: x + w, device="cpu")(A), 2 * A)


def test_a_pull_back_inside_of_a_traced_function() -> None:
    out, vjp_fn = jt.vjp(np.sin, put(A))
    (got,) = jt.jit(lambda ct: vjp_fn(ct * 2))(out)
    np.testing.assert_allclose(np.asarray(got), 2 * np.sin(A) * np.cos(A))


def test_what_the_backward_part_reads_is_computed_once() -> None:
    """The forward part runs by itself, and gives what the other one needs."""
    calls: list[float] = []

    def counted(x: Any) -> Any:
        y = np.sin(x)
        jt.io_callback(lambda s: calls.append(float(s)), None, y.sum())
        return y * y

    out, vjp_fn = jt.vjp(counted, put(A))
    for _ in range(2):
        (got,) = vjp_fn(out)
        np.testing.assert_allclose(np.asarray(got), 2 * np.sin(A) ** 3 * np.cos(A))
    assert len(calls) == 1


def test_loops_that_are_called_again_are_compiled_once() -> None:
    def go_on(c: Any) -> Any:
        return c.sum() < 100

    def double(c: Any) -> Any:
        traced.put(type(c))
        return c * 2

    traced: queue.SimpleQueue[Any] = queue.SimpleQueue()  # out of sight of what is carried
    for _ in range(3):
        jt.while_loop(go_on, double, put(A))
    count = traced.qsize()
    jt.while_loop(go_on, double, put(A))
    assert count == traced.qsize()
    assert jt.DeviceArray not in [traced.get() for _ in range(count)]


def test_mistakes_are_named() -> None:
    out, vjp_fn = jt.vjp(np.sin, put(A))
    with pytest.raises(jt.errors.ShapeError, match=r"the cotangent has shape \(2,\)"):
        vjp_fn(out[:2])
    with pytest.raises(jt.errors.TransformError, match="must be a scalar bool"):
        jt.cond(put(A), lambda: 1, lambda: 2)
    with pytest.raises(jt.errors.TransformError, match="must be an integer scalar"):
        jt.switch(put(A), [np.sin], put(A))
