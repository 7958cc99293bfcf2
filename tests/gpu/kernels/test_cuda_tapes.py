"""Tapes on the emulated GPU: records on a heap that the device keeps, or on the host's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from emulated import TARGET, assembled
from emulated import run as plainly
from loop_programs import PROGRAMS, instance
from loops import gradient, run

import jitney as jt
from jitney.codegen.device.compile import compile_device
from jitney.ir.passes import optimise
from jitney.runtime.cuda import execute, heaps
from jitney.runtime.cuda.client import client_of
from jitney.runtime.cuda.driver import Context
from jitney.runtime.cuda.emulator.machine import ORDERS
from jitney.runtime.devices import Device

rng = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def on_gpu() -> Iterator[None]:
    with jt.config(cuda="emulate"):
        yield


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Every wait of the host for the device."""
    found: list[int] = []
    synchronize = Context.synchronize

    def counted(self: Context, stream: int) -> None:
        found.append(stream)
        synchronize(self, stream)

    monkeypatch.setattr(Context, "synchronize", counted)
    return found


def settled(x: Any) -> Any:
    """Ends by its values."""

    def body(c: Any) -> Any:
        return np.sin(c[0]) * c[0] * 1.5, c[1] + 1

    return jt.while_loop(lambda c: (np.abs(c[0]).sum() > 1e-3) & (c[1] < 20), body, (x, 0))[0].sum()


def nested(x: Any) -> Any:
    """A tape for each trip of the outer loop, on the outer tape."""

    def inner(c: Any) -> Any:
        return np.sin(c[0]) * 0.9, c[1] + 1

    def outer(c: Any) -> Any:
        y, _ = jt.while_loop(lambda d: (d[0].sum() > 0.5) & (d[1] < 4), inner, (c[0], 0))
        return y * x + c[0], c[1] + 1

    return jt.while_loop(lambda c: c[1] < 5, outer, (x, 0))[0].sum()


def chosen(x: Any) -> Any:
    """Branches in a scan, whose length is known."""

    def body(c: Any, row: Any) -> Any:
        c = jt.cond(row.sum() > 0, lambda c: np.tanh(c + row), lambda c: np.sin(c) * 0.5, c)
        return c, c.max()

    last, tops = jt.scan(body, x[0], x)
    return last.sum() + tops.sum()


def often(checkpoint: Any) -> Callable[[Any], Any]:
    def body(c: Any) -> Any:
        return np.sin(c[0]) * 1.1, c[1] + 1

    def f(x: Any) -> Any:
        return jt.while_loop(lambda c: c[1] < 40, body, (x, 0), checkpoint=checkpoint)[0].sum()

    return f


@pytest.mark.parametrize(
    ("f", "looks"), [(settled, 1), (nested, 1), (chosen, 0), (often("sqrt"), 1), (often(3), 0)]
)
def test_gradients_go_without_the_host(f: Any, looks: int, waits: list[int]) -> None:
    """One look at how much was wanted, at the end, where trips are not known; else none."""
    x = rng.normal(size=(6, 40))
    want = jt.jit(jt.grad(f))(x)
    g, d = jt.jit(jt.grad(f)), jt.device_put(x, "cuda")
    g(d)  # constants are sent
    for _ in range(3):
        waits.clear()
        got = g(d)
        assert len(waits) == looks
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-10, atol=1e-12)


def test_a_heap_grows_to_what_was_wanted(monkeypatch: pytest.MonkeyPatch, waits: list[int]) -> None:
    monkeypatch.setattr(execute, "FIRST_BYTES", 1 << 10)
    x = rng.normal(size=(3, 41))
    f = jt.jit(jt.grad(lambda x: nested(x) + 1))
    d = jt.device_put(x, "cuda")
    np.testing.assert_allclose(np.asarray(f(d)), jt.jit(jt.grad(nested))(x), rtol=1e-10)
    waits.clear()
    got = f(d)
    assert len(waits) == 1  # it was remembered
    np.testing.assert_allclose(np.asarray(got), jt.jit(jt.grad(nested))(x), rtol=1e-10)


def test_checkpoints_bound_the_heap() -> None:
    x = jt.device_put(rng.normal(size=(50, 100)), "cuda")
    client = client_of(Device("cuda", 0))

    def wanted(checkpoint: Any) -> int:
        client.pool._release_everything()
        f = jt.jit(jt.grad(often(checkpoint)))
        np.asarray(f(x))
        return max(b.nbytes for b in client.pool.live() if b.label == "tapes")

    everything, few = wanted("all"), wanted("sqrt")
    assert few <= heaps.FIRST_BYTES < everything
    client.pool._release_everything()
    assert not [b for b in client.pool.live() if b.label == "tapes"]


def test_what_leaves_something_behind_has_its_tapes_on_the_host() -> None:
    """It cannot run again: a callback would be called twice, and an update made twice."""
    seen: list[float] = []

    def told(x: Any) -> Any:
        jt.io_callback(lambda s: seen.append(float(s)), None, x.sum())
        return settled(x)

    x = rng.normal(size=(6, 40))
    want = jt.jit(jt.grad(settled))(x)
    np.testing.assert_allclose(np.asarray(jt.jit(jt.grad(told), device="cuda")(x)), want, rtol=1e-9)
    assert len(seen) == 1

    step = jt.jit(lambda x: x - jt.grad(settled)(x), donate_argnums=0)
    d = jt.device_put(x, "cuda")
    where = d.buffer.address
    for k in range(2):
        d = step(d)
        assert d.buffer.address == where
        x = x - jt.jit(jt.grad(settled))(x)
        np.testing.assert_allclose(np.asarray(d), x, rtol=1e-9, err_msg=str(k))


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_threads_in_any_order(order: Any) -> None:
    f = PROGRAMS[0]
    graph, _ = instance(f, 1, checkpoint="all")
    backward = gradient(graph)
    program = compile_device(optimise(backward), TARGET)
    _, arrays = instance(f, 4)
    arrays += [rng.normal(size=v.shape) for v in backward.params[len(arrays) :]]
    arrays = [np.asarray(a) for a in arrays]
    for got, want in zip(plainly(program, arrays, order), run(backward, *arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
def test_kernels_of_tapes_are_assembled(arch: str) -> None:
    text = jt.jit(jt.grad(settled), device="cuda").lower(np.ones((50, 100))).llvm()
    assert "tape_push_large" in text and "tape_pop" in text
    assembled(text, arch)
