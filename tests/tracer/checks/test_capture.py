"""`jt.capture`: intermediates by name, line, pattern or content, of all iterations or some, bounded."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import jitney as jt

X = np.arange(6.0)


@jt.jit
def f(x: Any) -> Any:
    with jt.name_scope("hidden"):
        h = jt.name(np.maximum(x - 1, 0), "relu")

    def step(c: Any, r: Any) -> Any:
        c = jt.name(np.tanh(c + r), "state")
        return c, c

    return jt.scan(step, 0.0, h)[1].sum()


RELU = np.maximum(X - 1, 0)
STATES = []
for _r in RELU:
    STATES.append(np.tanh((STATES[-1] if STATES else 0.0) + _r))


def test_by_name() -> None:
    before = f(X)
    with jt.capture("hidden/relu") as seen:
        assert f(X) == before
    assert f(X) == before
    np.testing.assert_array_equal(seen["hidden/relu"], RELU)
    np.testing.assert_array_equal(seen["hidden/relu"][2:4], RELU[2:4])
    assert seen.names() == ["hidden/relu"] and len(seen) == 1 and "hidden/relu" in seen
    with pytest.raises(KeyError, match="nothing called 'relu' was kept; there are hidden/relu"):
        seen["relu"]


def test_iterations() -> None:
    with jt.capture("state") as seen:
        f(X)
    np.testing.assert_array_equal([r.value for r in seen.all("state")], STATES)
    assert [r.iterations for r in seen] == [(k,) for k in range(6)]
    assert seen["state", 2] == STATES[2] and seen["state"] == STATES[-1]
    np.testing.assert_array_equal(seen["state", 2:5], STATES[2:5])
    for some, kept in [
        (3, [3]),
        (slice(4, None), [4, 5]),
        ({1, 5}, [1, 5]),
        (slice(0, 6, 2), [0, 2, 4]),
    ]:
        with jt.capture("state", iterations=some) as seen:
            f(X)
        assert [r.iterations[0] for r in seen] == kept
    with pytest.raises(KeyError, match="state of iteration 1 was not kept"):
        seen["state", 1]


def test_nested_loops() -> None:
    @jt.jit
    def g(x: Any) -> Any:
        def outer(i: Any, x: Any) -> Any:
            return jt.fori_loop(0, i + 1, lambda j, y: jt.name(y + j, "y"), x)

        return jt.fori_loop(0, 3, outer, x)

    with jt.capture("y") as seen:
        g(1.0)
    assert [r.iterations for r in seen] == [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)]
    assert seen["y", [1, 1]] == 2.0


def test_by_line_pattern_and_content() -> None:
    code = f.__wrapped__.__code__
    line = code.co_firstlineno + 3
    for filter in (line, f"test_capture.py:{line}", f"{__file__}:{line}"):
        with jt.capture(filter) as seen:
            f(X)
        np.testing.assert_array_equal(seen["hidden/relu"], RELU)
        assert all(r.line is not None and r.line.line == line for r in seen)
    assert seen.at(line) == list(seen) and seen.at(line + 1) == []
    with jt.capture(re.compile("rel|stat")) as seen:
        f(X)
    assert seen.names() == ["hidden/relu", "state"]
    assert seen.search("^s") == ["state"]
    places, values = seen.find("hidden/relu", 1, 3)
    assert places.tolist() == [[2], [3], [4]] and values.tolist() == [1.0, 2.0, 3.0]
    g = jt.jit(lambda x: np.where(x > 0, np.log(x), 0.0))
    with jt.capture(jt.filters.has_inf_or_nan) as seen:
        g(X)
    assert seen.names() == ["log"]
    with jt.capture(["state", jt.filters.has_nan, "hidden/*"], iterations=0) as seen:
        f(X)
    assert "state" in seen and "hidden/sub" in seen


def test_derivatives_and_calls() -> None:
    g = jt.jit(jt.grad(lambda x: jt.name(np.sin(x), "s") * 2))
    with jt.capture() as seen:
        g(1.0)
        f(X)
    assert seen["s"] == np.sin(1.0)
    assert seen.search("^grad of sin") and "hidden/relu" in seen


def test_memory_is_bounded() -> None:
    with jt.capture(limit=100) as seen:
        f(X)
    assert seen.nbytes <= 100 and seen.dropped > 10
    assert f"{seen.dropped} more were dropped: they did not fit into 100 bytes" in repr(seen)


def test_what_is_kept_does_not_change() -> None:
    @jt.jit
    def g(x: Any) -> None:
        x += 1
        x *= 2

    x = np.ones(3)
    with jt.capture() as seen:
        g(x)
    assert x.tolist() == [4.0] * 3
    assert seen["add"].tolist() == [2.0] * 3
    with pytest.raises(ValueError, match="read-only"):
        seen["add"][0] = 3


def test_filters_that_are_none() -> None:
    with pytest.raises(TypeError, match="a filter of jt.capture is a name with"), jt.capture(3.5):  # type: ignore[arg-type]
        pass
    last = slice(-2, None)
    with pytest.raises(ValueError, match="counted from the first"), jt.capture(iterations=last):
        f(X)


def test_print_out() -> None:
    with jt.capture("hidden/*") as seen:
        f(X)
    assert repr(seen).splitlines()[0].endswith(" bytes")
    assert re.search(r"^  hidden/relu: f64\[6\] at test_capture.py:\d+$", repr(seen), re.M)
