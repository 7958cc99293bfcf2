"""What iterations keep for their derivative lies as lanes touch it: in neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitney as jt
from jitney.codegen.loop_ir.steps import touched
from jitney.codegen.program import compile
from jitney.codegen.program.tape_layouts import lay_out_tapes


def maps(x):
    x = x.copy()
    for i in range(x.shape[0]):
        v = x[i]
        for _ in range(100):
            v = 3.7 * v * (1.0 - v)
        x[i] = v
    return x


def pendulums(x):
    out = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        a, b = x[i], 0.0
        for _ in range(100):
            b = b - 0.01 * np.sin(a)
            a = a + 0.01 * b
        out[i] = a
    return out


def by_rows(x):
    """Lanes do not run over what waits for the row before."""
    y = x.copy()
    for i in range(1, x.shape[0]):
        v = y[i - 1]
        for _ in range(100):
            v = 2.7 * v * (1.0 - v)
        y[i] = 0.5 * y[i] + 0.01 * v
    return y


@pytest.mark.parametrize("f", [maps, pendulums, by_rows])
def test_derivatives_are_right(f: Any) -> None:
    x = np.random.default_rng(0).random(163)
    g = jt.jit(jt.grad(lambda x: f(x).sum()))
    one = jt.jit(lambda x, t: jt.jvp(f, (x,), (t,))[1])
    t = np.random.default_rng(1).random(163)
    assert np.isclose((g(x) * t).sum(), one(x, t).sum(), rtol=1e-9)


@pytest.mark.parametrize(("f", "turned"), [(maps, True), (pendulums, True), (by_rows, False)])
def test_lanes_write_neighbours(f: Any, turned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[bool] = []
    lanes = False

    def watched(program: Any, target: Any) -> None:
        nonlocal lanes
        lanes = lanes or "+avx512vl" in target.features
        lay_out_tapes(program, target)
        arrays = {a for step in program.steps for part in touched(step) for a in part}
        found.extend(a.kind == "temp" and not a.contiguous for a in arrays)

    monkeypatch.setattr(compile, "lay_out_tapes", watched)
    jt.jit(jt.grad(lambda x: f(x).sum())).lower(np.ones(1003)).llvm()
    assert found and any(found) is (turned and lanes)
