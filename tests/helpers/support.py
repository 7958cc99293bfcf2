"""`check(f, *args)`: a function computes under jitney what it computes in plain NumPy.

Results are compared in structure, dtype, shape and values; so are the arguments afterwards, because
in-place assignments must reach the caller's arrays. JITNEY_TEST_BACKEND chooses what runs the traced
function: `interpreter` (default, tracing and the NumPy interpreter alone) or `native` (`jt.jit`).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import jitney as jt
from jitney.ir.interpreter import evaluate
from jitney.ir.types import finfo, is_inexact, is_small
from jitney.ir.verify import verify
from jitney.tracer.core.specs import Static, spec_of
from jitney.tracer.core.tracing import trace_function
from jitney.tracer.data import pytree

BACKEND = os.environ.get("JITNEY_TEST_BACKEND", "interpreter")


def interpret(f: Callable[..., Any], *args: Any) -> Any:
    """Trace `f`, verify the graph, run it by the interpreter, write mutated arguments back."""
    import jitney.tracer.functions  # noqa: F401  (gives tracers their operators)

    leaves, tree = pytree.flatten((args, {}))
    traced_leaves = [x for x in leaves if not isinstance(x, (str, type(None), slice))]
    specs = [spec_of(x) if any(x is t for t in traced_leaves) else Static(x) for x in leaves]
    traced = trace_function(f, specs, tree)
    verify(traced.graph)
    arrays = [np.asarray(x) for x in traced_leaves] + [c.outer for c in traced.captures]
    outputs = [np.array(o) for o in evaluate(traced.graph, arrays)]  # no windows on arguments
    results = []
    for result in traced.results:
        if result.output is None:
            results.append(result.static)
            continue
        value = np.asarray(outputs[result.output])
        if result.weak is not None:
            results.append(value.item())
        else:
            results.append(value[()] if result.scalar else value)
    count = len(outputs) - len(traced.mutated)
    for parameter, new in zip(traced.mutated, outputs[count:], strict=True):
        arrays[parameter][...] = new
    return pytree.unflatten(traced.out_tree, results)


def run(f: Callable[..., Any], *args: Any, backend: str | None = None) -> Any:
    if (backend or BACKEND) == "native":
        return jt.jit(f)(*args)
    return interpret(f, *args)


def _copy(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return x.copy(order="K")
    if isinstance(x, (list, tuple)):
        return type(x)(_copy(i) for i in x)
    return x


def same(got: Any, want: Any, rtol: float | None = None, where: str = "result") -> None:
    """Assert equal structure, dtype, shape and, within rounding, values."""
    if isinstance(want, (list, tuple)):
        assert isinstance(got, (list, tuple)) and len(got) == len(want), f"{where}: {got} {want}"
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            same(g, w, rtol, f"{where}[{i}]")
        return
    if want is None:
        assert got is None, where
        return
    g, w = np.asarray(got), np.asarray(want)
    assert g.dtype == w.dtype, f"{where}: dtype {g.dtype}, NumPy has {w.dtype}"
    assert g.shape == w.shape, f"{where}: shape {g.shape}, NumPy has {w.shape}"
    if isinstance(want, (np.generic, bool, int, float, complex)):
        assert not isinstance(got, np.ndarray), f"{where}: an array, NumPy has a scalar"
    if is_inexact(w.dtype):
        if is_small(w.dtype):
            rtol = max(rtol or 0.0, 2 * float(finfo(w.dtype).eps))
            g, w = g.astype(np.float64), w.astype(np.float64)
        elif rtol is None:
            rtol = 2e-5 if w.dtype in (np.float32, np.complex64) else 1e-10
        scale = np.max(np.abs(w[np.isfinite(w)]), initial=0)
        np.testing.assert_allclose(g, w, rtol=rtol, atol=rtol * scale, err_msg=where)
    else:
        np.testing.assert_array_equal(g, w, err_msg=where)


def check(
    f: Callable[..., Any], *args: Any, backend: str | None = None, rtol: float | None = None
) -> Any:
    """Run `f` in NumPy and in jitney on copies of `args`; compare results and arguments."""
    mine, theirs = _copy(args), _copy(args)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        want = f(*theirs)
        got = run(f, *mine, backend=backend)
    same(got, want, rtol)
    same(mine, theirs, rtol, "argument")
    return got


def check_raises(
    f: Callable[..., Any], *args: Any, match: str | None = None, backend: str | None = None
) -> str:
    """NumPy raises, and jitney raises an exception that the same `except` catches."""
    import pytest

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        with pytest.raises(Exception) as theirs:
            f(*_copy(args))
        kinds = tuple(
            k
            for k in (OverflowError, IndexError, TypeError, ValueError, ZeroDivisionError)
            if isinstance(theirs.value, k)
        )
        assert kinds, f"NumPy raised {theirs.value!r}"
        with pytest.raises(kinds, match=match) as mine:
            run(f, *_copy(args), backend=backend)
    return str(mine.value)


def misses(f: Any) -> int:
    return f.cache_info().misses
