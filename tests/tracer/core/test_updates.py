"""Arrays that are updated in place: what overlaps, what is folded meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt


def test_a_long_chain_of_unrolled_updates() -> None:
    """Reading through hundreds of updates recurses nowhere and gives what NumPy gives."""

    def sweep(x: Any, y: Any) -> Any:
        x = x.copy()
        for i in range(600):
            x[i % 200] += y[i % 50]
            x[(i + 1) % 200] = x[i % 200] * 0.5 + x[(i + 7) % 200]
        return x

    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((200, 3)), rng.standard_normal((50, 3))
    np.testing.assert_allclose(jt.jit(sweep)(x, y), sweep(x, y), rtol=1e-12)


@pytest.mark.parametrize("n", [2, 6, 9, 17, 1000])
def test_what_an_overlapping_assignment_leaves_alone_stays(n: int) -> None:
    """The argument is read beside where it is written, so the result has memory of its own, which
    starts with whatever was there."""

    def f(u: np.ndarray) -> None:
        u[1:] += u[:-1]

    compiled = jt.jit(f)
    for native_calls in (True, False):
        with jt.config(native_calls=native_calls):
            for _ in range(4):
                junk = [np.full(n, 7.5) for _ in range(3)]
                del junk
                got, want = np.arange(float(n)) + 3, np.arange(float(n)) + 3
                compiled(got)
                f(want)
                np.testing.assert_array_equal(got, want)


FOLDS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda a: a.sum(),
    "rows": lambda a: a.sum(axis=-1),
    "columns": lambda a: a.max(axis=0),
    "place": lambda a: a.argmin(),
    "moments": lambda a: (a.sum(axis=-1), (a - a.max()).min(axis=-1)),
    "running": lambda a: np.cumsum(a, axis=-1),
}


SIZES = [(1,), (7,), (13,), (100,), (1003,), (3, 5), (4, 40), (7, 33), (100, 65), (2, 3, 19)]


@pytest.mark.parametrize("donate", [False, True])
@pytest.mark.parametrize("fold", FOLDS)
def test_what_is_updated_in_place_is_folded(fold: str, donate: bool) -> None:
    """Sizes with and without tails, each a kernel of its own in one program."""
    dtypes = ("f8", "f4", "i1", "u2")

    def body(arrays: list[Any]) -> Any:
        results = []
        for k, a in enumerate(arrays):
            if donate:
                a = a + a.dtype.type(1)
            elif k % 2:
                a += 1
            else:
                np.add(a, 1, out=a)
            results.append((a if donate else None, FOLDS[fold](a)))
        return results

    draw = np.random.default_rng(0)
    arrays = [draw.integers(0, 9, s).astype(d) for s in SIZES for d in dtypes]
    theirs, ours = [a.copy() for a in arrays], [a.copy() for a in arrays]
    want = body(theirs)
    got = jt.jit(body, donate_argnums=0 if donate else None)(ours)
    for (same, folded), (updated, mine), given_, kept in zip(want, got, ours, theirs, strict=True):
        if donate:
            assert updated is given_ or fold == "running"
            np.testing.assert_array_equal(updated, same)
        else:
            np.testing.assert_array_equal(given_, kept)
        for x, y in zip(folded, mine, strict=True) if type(folded) is tuple else [(folded, mine)]:
            np.testing.assert_array_equal(x, y)
            assert np.asarray(x).dtype == np.asarray(y).dtype
