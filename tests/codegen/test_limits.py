"""Tiny blocks and narrower targets: small programs walk the ways of large ones, and of other CPUs.

Code is checked by the sanitizer at the same time, and compared with the interpreter.
"""

from __future__ import annotations

import platform
import re
from typing import Any

import numpy as np
import pytest
from programs import PATTERNS, build, compiled, each, expected, fits, same, sample

import jitney as jt
from jitney.codegen.limits import DEFAULT, TINY, limited
from jitney.ir.record import fields, replace
from jitney.runtime.native.host import LEVELS, current_target, held_to, host_target

RNG = np.random.default_rng(1)


@pytest.fixture
def tiny() -> Any:
    with jt.config(sanitize=True), limited(TINY):
        yield


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


def check(f: Any, *arrays: Any) -> None:
    """`f` compiled here against the interpreter."""
    with jt.config(sanitize=False), limited(DEFAULT):
        want = jt.jit(f, backend="interpreter")(*arrays)
    got = jt.jit(f)(*arrays)
    for g, w in zip(jt.tree.leaves(got), jt.tree.leaves(want), strict=True):
        slack = 1e-4 if w.dtype.itemsize < 8 else 1e-9
        np.testing.assert_allclose(g, w, rtol=slack, atol=slack * (1 + np.abs(w).max(initial=0)))


def slopes(f: Any, *arrays: np.ndarray) -> None:
    check(jt.grad(lambda *a: np.sin(f(*a)).sum(), tuple(range(len(arrays)))), *arrays)


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.__name__)
def test_patterns(tiny, pattern):
    turn = PATTERNS.index(pattern)
    shapes = [s for s in [(1003,), (37, 65), (130, 9), (5, 7, 33)] if fits(pattern, s)]
    arrays = [sample(shape, ("f4", "f8")[(turn + k) % 2]) for k, shape in enumerate(shapes)]
    graph = build(each(pattern), *arrays)
    same(compiled(graph, arrays).run(arrays), expected(graph, arrays))


def layers(w, b, v, x):
    h = np.maximum(x @ w + b, 0)
    return np.maximum(h @ v + b, 0)


@pytest.mark.parametrize(("batch", "width"), [(24, 25), (100, 33), (7, 9), (16, 8)])
def test_networks(tiny, batch, width):
    arrays = normal(12, width), normal(width), normal(width, width), normal(batch, 12)
    slopes(layers, *arrays)
    slopes(layers, *(a.astype(np.float32) for a in arrays))


def attention(q, k, v):
    scores = q @ k.transpose(0, 2, 1) / 3
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True)) @ v


def heat(u):
    def step(_, u):
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        return jt.at(u)[1:-1, 1:-1].add(0.1 * (around - 4 * u[1:-1, 1:-1]))

    return jt.fori_loop(0, 12, step, u)


def test_products(tiny):
    slopes(lambda x, w: x.T @ (x @ w), normal(90, 9), normal(9))
    slopes(attention, normal(2, 20, 8), normal(2, 30, 8), normal(2, 30, 9))
    check(lambda x, p: np.einsum("cab,bd->adc", x, p), normal(10, 20, 35), normal(35, 24))
    check(lambda x: (x - x.mean(0)) / np.sqrt(x.var(0) + 0.1), normal(32, 8, 12))


def test_loops_and_updates(tiny):
    check(heat, normal(60, 50))
    places = RNG.integers(0, 20, 500)
    check(lambda x, i, w: jt.at(x)[i].add(w), normal(20, 9), places, normal(500, 9))
    check(lambda x: (np.cumsum(x), np.cumprod(1 + x[:99] / 50), x.argmax()), normal(1500))
    check(lambda *a: sum(np.sort(x).sum() for x in a), *(normal(20 + k) for k in range(9)))


def test_sorting(tiny):
    for x in (normal(2000), normal(2000).astype("f4"), RNG.integers(0, 90, 999).astype("u1")):
        check(lambda x: (np.sort(x), np.argsort(x, kind="stable")), x)
    check(lambda x: (np.sort(x, axis=1), np.partition(x, 30, axis=0)[30]), normal(70, 90))


def test_factorisations(tiny):
    check(np.linalg.solve, normal(37, 37), normal(37, 5))
    check(np.linalg.inv, normal(3, 25, 25))
    check(lambda x: np.linalg.cholesky(x @ x.T + 40 * np.eye(40)), normal(40, 40))


def test_limits_are_part_of_the_key():
    with limited(TINY):
        assert current_target().key() != host_target().key()
    assert all(getattr(TINY, n) != getattr(DEFAULT, n) for n in fields(TINY))


LEVELS_OF_BITS = {"avx2": 256, "sse": 128, "x86-64-v2": 128, "x86-64-v3": 256, "x86-64-v4": 512}


@pytest.mark.parametrize("cpu", LEVELS_OF_BITS)
def test_other_cpus(cpu):
    try:
        held_to(cpu, host_target())
    except ValueError:
        pytest.skip("this CPU has no such level")
    with jt.config(cpu=cpu):
        assert current_target().vector_bits == LEVELS_OF_BITS[cpu]
        assert LEVELS[cpu][0] in current_target().key()
        slopes(layers, normal(12, 25), normal(25), normal(25, 25), normal(24, 12))
        slopes(attention, normal(2, 20, 8), normal(2, 30, 8), normal(2, 30, 9))
        check(lambda x: (np.sort(x), np.cumsum(x), np.exp(x), x.astype("i4") // 3), normal(999))
        check(np.linalg.solve, normal(37, 37), normal(37, 5))
        with jt.config(sanitize=True):
            check(lambda x: np.tanh(x @ x.T).sum(0), normal(60, 50))


@pytest.mark.parametrize(
    ("cpu", "has", "lacks"),
    [("x86-64-v2", "xmm", r"ymm|zmm|\bv[a-z]+p[sd]\b"), ("x86-64-v3", "ymm", "zmm|%k[0-7]")],
)
def test_code_for_a_level_has_no_instruction_above_it(cpu, has, lacks):
    if "x86_64" not in host_target().triple or not host_target().has("avx2"):
        pytest.skip("this CPU has no such level")
    with jt.config(cpu=cpu):
        f = jt.jit(
            lambda x, i: (np.exp(np.sin(x) @ x.T), np.sort(x), x[i], np.where(x > 0, x, 1).sum())
        )
        text = f.lower(normal(70, 90), np.arange(9)).asm()
    assert re.search(has, text)
    assert not re.search(lacks, text)


levels = pytest.mark.skipif(platform.machine() != "x86_64", reason="levels are x86-64's")


@levels
def test_levels_are_said_by_name(monkeypatch):
    with pytest.raises(ValueError, match="cpu is 'native', 'host', .*'avx2' or 'sse', not 'mmx'"):
        jt.config.cpu = "mmx"
    monkeypatch.setenv("JITNEY_CPU", "x86-64-v9")
    with pytest.raises(ValueError, match="JITNEY_CPU is 'native', .* not 'x86-64-v9'"):
        jt.jit(lambda x: x + 1)(normal(3))
    monkeypatch.setenv("JITNEY_CPU", "HOST")
    assert current_target() == host_target()
    with pytest.raises(ValueError, match="this CPU lacks"):
        held_to("avx2", held_to("sse", host_target()))
    arm = replace(host_target(), triple="aarch64-unknown-linux-gnu", cpu="generic", vector_bits=128)
    with pytest.raises(ValueError, match="a level of x86-64's CPUs, and this is one of aarch64"):
        held_to("x86-64-v3", arm)


@levels
def test_a_level_that_the_cpu_lacks_is_an_error_at_the_call(monkeypatch):
    from jitney.runtime.native import host

    monkeypatch.setattr(host, "host_target", lambda: held_to("sse", host_target()))
    with (
        jt.config(cpu="x86-64-v3"),
        pytest.raises(ValueError, match=r"config.cpu is 'x86-64-v3', but this CPU lacks \+sse3"),
    ):
        jt.jit(lambda x: x + 1)(normal(3))
