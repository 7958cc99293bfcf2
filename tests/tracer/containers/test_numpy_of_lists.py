"""Native lists that NumPy reduces to numbers, as lists and as arrays of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitney as jt

X = np.array([-1.0, 3.0, 2.0, -4.0, 1.0, 7.0, 1e-3])
NAMES = "sum prod mean max min any all argmax argmin std var".split()


def lists(x: Any) -> Any:
    parts, integers, truths = [], [], []
    for v in x:
        if v > 0:
            parts.append(v * 1.5)
            integers.append(int(v))
            truths.append(v > 2)
    return parts, integers, truths


def reduced(x: Any) -> Any:
    return [getattr(np, name)(items) for items in lists(x) for name in NAMES[:9]]


def spread(x: Any) -> Any:
    parts, integers, _ = lists(x)
    whole, single = np.array(parts), np.array(integers, dtype=np.float32)
    options = np.std(parts, ddof=1), np.var(integers, axis=0), whole.std(ddof=1), whole.max(axis=0)
    return *options, np.mean(whole), single.sum(), single.mean(), np.sum([w for w in x if w > 9])


@pytest.mark.parametrize("function", [reduced, spread])
def test_reductions_are_numpys(function: Any) -> None:
    for wanted, found in zip(function(X), jt.jit(function)(X), strict=True):
        assert type(found) is type(wanted)
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_lists_are_reduced_before_anything_is_in_them() -> None:
    def until(x: Any) -> Any:
        losses, i, seen = [], 0, 0.0
        while i < len(x):
            seen += np.sum(losses)
            if len(losses) > 2 and np.mean(losses) > 1:
                break
            losses.append(x[i])
            i += 1
        return losses, seen, i

    assert jt.jit(until)(X) == until(X)


def test_arrays_of_lists_are_run_over() -> None:
    def chosen(x: Any) -> Any:
        places = np.array([i for i in range(len(x)) if x[i] > 0])
        total, doubled = 0.0, []
        for i in places:
            total += x[i]
            doubled.append(i * 2)
        return total, doubled, [i for i in places if i > 2], len(places)

    wanted, found = chosen(X), jt.jit(chosen)(X)
    assert found == wanted
    assert type(found[1][0]) is type(wanted[1][0])


def test_nothing_has_no_extreme() -> None:
    @jt.jit
    def largest(x: Any) -> Any:
        return np.max([v for v in x if v > 9])

    with pytest.raises(ValueError, match="zero-size array to reduction operation maximum"):
        largest(X)
    assert largest(2 * X) == 14.0


def test_nans_are_extremes() -> None:
    @jt.jit
    def places(x: Any) -> Any:
        some = [v for v in x if v != 0]
        return np.argmax(some), np.argmin(some), np.max(some)

    first, second, most = places(np.array([0.0, 1.0, np.nan, 2.0, np.nan]))
    assert (first, second) == (1, 1)
    assert np.isnan(most)
