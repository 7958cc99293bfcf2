"""`jit(fallback="python")`: what cannot be compiled runs as Python, with a warning that says why."""

from __future__ import annotations

import datetime
import io
import pickle
import warnings

import numpy as np
import pytest

import jitney as jt


def dated(x):
    return x + 1, datetime.date(2000, 1, 1) if datetime.date.today().year else None


@jt.jit(fallback="python")
def ordered_texts(x):
    return sorted(f"{v:.1f}" for v in x)


def test_one_warning_with_the_reason_then_python():
    f = jt.jit(dated, fallback="python")
    with pytest.warns(
        jt.errors.FallbackWarning, match=r"(?s)dated .* outside of the program"
    ) as seen:
        assert f(1.0) == dated(1.0)
    assert len(seen) == 1 and seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert f(2.0) == dated(2.0)


def test_by_default_it_is_an_error():
    with pytest.raises(jt.errors.ImpureFunctionError):
        jt.jit(dated)(1.0)


def test_each_signature_by_itself():
    @jt.jit(fallback="python")
    def f(x):
        return {datetime.date.today(): x} if isinstance(x, float) else x.sum()

    with pytest.warns(jt.errors.FallbackWarning):
        assert list(f(2.5).values()) == [2.5]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert f(np.ones(3)) == 3.0 and list(f(4.5).values()) == [4.5]
    assert f.cache_info().misses == 1


def test_arguments_that_nothing_is_compiled_for():
    f = jt.jit(lambda text, x: float(text.getvalue()) * x, fallback="python")
    with pytest.warns(jt.errors.FallbackWarning, match="StringIO"):
        assert f(io.StringIO("2"), 3.0) == 6.0


def test_state_is_as_in_python():
    class Log:
        def __init__(self):
            self.days, self.count = [], 0

        def add(self, x):
            self.count += 1
            self.days.append(datetime.date.today().year + x)
            return self.count * x

    ours, python = Log(), Log()
    add = jt.jit(Log.add, fallback="python")
    with pytest.warns(jt.errors.FallbackWarning):
        results = [add(ours, float(k)) for k in range(3)]
    assert results == [python.add(float(k)) for k in range(3)]
    assert (ours.days, ours.count) == (python.days, python.count)


def test_errors_of_the_program_are_errors():
    calls = []

    @jt.jit(fallback="python")
    def f(x, i):
        calls.append(1)
        return x[i]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(IndexError):
            f(np.ones(3), np.int64(7))

        @jt.jit(fallback="python")
        def g(x):
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            g(1.0)


def test_options():
    with pytest.raises(ValueError, match="choose None or 'python'"):
        jt.jit(dated, fallback="numpy")
    with pytest.warns(jt.errors.FallbackWarning):
        assert pickle.loads(pickle.dumps(ordered_texts))(np.array([2.0, 1.0])) == ["1.0", "2.0"]
