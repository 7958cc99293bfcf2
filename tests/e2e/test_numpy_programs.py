"""NumPy programs run unchanged: compiled they give what they give, and have derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy_programs_branching  # noqa: F401  (its programs are among them)
import pytest
from numpy_programs import PROGRAMS

import jitney as jt

NAMES = sorted(PROGRAMS)


def sample(name: str) -> tuple[Any, ...]:
    return PROGRAMS[name].arguments(np.random.default_rng(7))


def agree(got: Any, want: Any, tol: float) -> None:
    pairs = zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]
    for have, expected in pairs:
        have, expected = np.asarray(have), np.asarray(expected)
        assert have.dtype == expected.dtype
        assert have.shape == expected.shape
        np.testing.assert_allclose(have, expected, rtol=tol, atol=tol)


@pytest.mark.parametrize("name", NAMES)
def test_compiled(name: str) -> None:
    function, args = PROGRAMS[name].program, sample(name)
    before = [np.array(a) for a in args]
    agree(jt.jit(function, autograph=True)(*args), function(*args), 1e-10)
    for a, b in zip(args, before, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", [n for n in NAMES if PROGRAMS[n].smooth])
def test_in_single_precision(name: str) -> None:
    function = PROGRAMS[name].program
    args = tuple(np.float32(a) if np.ndim(a) else a for a in sample(name))
    agree(jt.jit(function, autograph=True)(*args), function(*args), 2e-3)


@pytest.mark.parametrize("name", [n for n in NAMES if PROGRAMS[n].smooth])
def test_derivatives(name: str) -> None:
    function, args = PROGRAMS[name].program, sample(name)
    jt.check_grads(
        jt.jit(function, autograph=True), args, order=1, modes=("fwd", "rev"), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("name", ["kalman_filter", "floyd_warshall", "viterbi"])
def test_batched(name: str) -> None:
    function = PROGRAMS[name].program
    makers = [PROGRAMS[name].arguments(np.random.default_rng(seed)) for seed in range(3)]
    stacked = [np.stack(parts) for parts in zip(*makers, strict=True)]
    got = jt.jit(jt.vmap(function), autograph=True)(*stacked)
    for i, args in enumerate(makers):
        one = tuple(g[i] for g in got) if isinstance(got, tuple) else got[i]
        agree(one, function(*args), 1e-10)


def test_there_are_twenty() -> None:
    assert len(PROGRAMS) >= 20
