"""Traced values that depend on constants only are known while tracing."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import jitney as jt

X = np.arange(6.0)
plain = partial(jt.jit, autograph=False)


def test_branches_on_constants() -> None:
    @jt.jit
    def f(x: Any) -> Any:
        n = jt.asarray([len(x), 3])
        half = jt.where(n > 4, n / 2, 0.0)
        if jt.any(half == 3.0) and not jt.all(n > 4):
            x = x * float(half[0])
        return x[: int(n[1])] + range(int(half.sum()))[-1]

    np.testing.assert_array_equal(f(X), X[:3] * 3 + 2)


def test_shapes_of_constants() -> None:
    @jt.jit
    def f(x: Any) -> Any:
        mask = jt.arange(6) % 2 == 0
        counts = jt.asarray([1, 2, 0])
        return x[mask], jt.repeat(x[:3], counts), jt.arange(counts.sum()), x[jt.nonzero(mask)[0]]

    for got, want in zip(f(X), (X[::2], X[[0, 1, 1]], np.arange(3), X[::2]), strict=True):
        np.testing.assert_array_equal(got, want)


def test_constants_meet_numpy() -> None:
    @plain
    def f(x: Any) -> Any:
        k = np.asarray(jt.asarray([1.0, 2.0]) * 2)
        assert type(k) is np.ndarray and not k.flags.writeable
        return x[:2] * np.polyval(k, 2.0) + k

    np.testing.assert_array_equal(f(X), X[:2] * 8 + [2, 4])


def test_constants_inside_of_loops_and_derivatives() -> None:
    def f(x: Any) -> Any:
        scale = jt.asarray(2.0)

        def body(i: Any, s: Any) -> Any:
            return s * (scale if scale > 1 else 1) if float(scale) == 2 else s

        return jt.fori_loop(0, 3, body, x).sum()

    np.testing.assert_array_equal(jt.jit(jt.grad(f))(X), np.full(6, 8.0))
    np.testing.assert_array_equal(jt.grad(f)(X), np.full(6, 8.0))


def test_arguments_and_closed_over_arrays_are_not_known() -> None:
    table = np.array([1.0, 2.0])
    with pytest.raises(jt.errors.TracerBoolError):
        plain(lambda x: 1 if x[0] > 0 else 2)(X)
    with pytest.raises(jt.errors.TracerBoolError):
        plain(lambda x: 1 if (x * 0 + 1)[0] > 0 else 2)(X)
    with pytest.raises(jt.errors.TracerBoolError):
        plain(lambda x: x + 1 if jt.asarray(table)[0] > 1 else x)(X)


def test_what_is_large_is_not_computed_while_tracing() -> None:
    with pytest.raises(jt.errors.TracerBoolError):
        plain(lambda x: x if jt.ones(10**6).sum() > 1 else -x)(X)


def test_effects_and_loops_are_not_run_while_tracing() -> None:
    ran = []

    @plain
    def f(x: Any) -> Any:
        y = jt.pure_callback(lambda: ran.append(1) or np.float64(1), jt.ShapeDtype((), np.float64))
        return x if y > 0 else -x

    with pytest.raises(jt.errors.TracerBoolError):
        f(X)
    assert not ran


def test_the_namespace_says_what_traced_arrays_cannot() -> None:
    def capabilities(x: Any) -> dict[str, Any]:
        found: dict[str, Any] = x.__array_namespace__().__array_namespace_info__().capabilities()
        return found

    seen: list[Any] = []
    jt.jit(lambda x: seen.append(capabilities(x)) or x)(X)
    jt.grad(lambda x: seen.append(capabilities(x)) or x.sum())(X)
    assert [c["boolean indexing"] for c in seen] == [False, True]
    assert jt.__array_namespace_info__().capabilities()["data-dependent shapes"]


@pytest.mark.usefixtures("traced_numbers")
def test_masked_assignment_to_a_computed_scalar() -> None:
    """As array libraries' code does: `at(x, mask).set(v)`."""

    @jt.jit
    def f(x: Any) -> Any:
        s = x.sum()
        s[x[0] > 1] = -1.0
        return s

    assert f(X) == 15 and f(X + 2) == -1
    with pytest.raises(TypeError, match="does not support item assignment"):
        jt.jit(lambda s: s.__setitem__(s > 0, 1.0))(np.float64(2))
