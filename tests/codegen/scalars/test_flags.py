"""Loops that carry nothing but whether a check has failed: threads share them, with the check."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import jitney as jt
from jitney.codegen.limits import TINY, limited


def logarithms(x, out):
    for i in range(x.shape[0]):
        out[i] = math.log(x[i]) * 2.0


def quotients(x, out):
    for i in range(x.shape[0]):
        out[i] = 3.0 / float(x[i])


def whole(x, out):
    for i in range(x.shape[0]):
        out[i] = int(x[i] * 100.0)


def two_kinds(x, out):
    for i in range(x.shape[0]):
        out[i] = math.sqrt(x[i]) + 1.0 / float(x[i])


def nested(x, out):
    for i in range(x.shape[0] // 8):
        s = 0.0
        for j in range(8):
            s += math.sqrt(x[8 * i + j])
            out[8 * i + j] = s


def in_a_branch(x, out):
    for i in range(x.shape[0]):
        if out[i] > 0.5:
            out[i] = math.log(x[i])
        else:
            out[i] = 1.0


def asserted(x, out):
    bad = False
    for i in range(x.shape[0]):
        bad = bad | (x[i] <= 0)
        out[i] = x[i]
    assert not bad, "not above 0"


CASES = [logarithms, quotients, whole, two_kinds, nested, in_a_branch, asserted]
N = 400


@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_threads_share_them(f: Callable[..., Any]) -> None:
    x = np.random.default_rng(0).random(N) + 0.5
    want, got = np.ones(N), np.ones(N)
    with limited(TINY), jt.threads(3):
        compiled = jt.jit(f)
        assert "iterations on several threads" in str(compiled.explain(x, got))
        f(x, want)
        got = np.ones(N)
        compiled(x, got)
        np.testing.assert_allclose(got, want, rtol=1e-15)
        for place, wrong in product((0, 177, N - 1), (0.0, -1.0, math.nan)):
            y = x.copy()
            y[place] = wrong
            want, got = np.ones(N), np.ones(N)
            try:
                f(y, want)
            except Exception as error:
                with pytest.raises(type(error)):
                    compiled(y, got)
                assert np.array_equal(got, np.ones(N))
            else:
                compiled(y, got)
                np.testing.assert_allclose(got, want, rtol=1e-15)


def found(x):
    """What is handed out is no check."""
    large = False
    for i in range(x.shape[0]):
        large = large | (x[i] > 1.4)
    return large


def asked(x):
    large, count = False, 0
    for i in range(x.shape[0]):
        large = large | (x[i] > 1.4)
        if large:
            count += 1
    return count


def forgotten(x):
    bad = False
    for i in range(x.shape[0]):
        bad = (bad | (x[i] > 1.4)) & (i < N - 5)
    assert not bad
    return 1.0


@pytest.mark.parametrize("f", [found, asked, forgotten], ids=lambda f: f.__name__)
def test_what_is_asked_otherwise_stays_as_it_is(f: Callable[..., Any]) -> None:
    x = np.random.default_rng(0).random(N) + 0.5
    assert jt.jit(f)(x) == f(x)
