"""What is a view and what is a copy: every array function, on every layout, against NumPy.

What a function returns is written to and so is what it was given, each afterwards seen in the other;
returned from a compiled function, it shares memory with the argument where NumPy's shares it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import calls
import numpy as np
import pytest
from function_calls import CALLS
from view_calls import EXPRESSIONS, LAYOUTS, REFUSALS, Array, call_of, fresh, is_scalar, steps

import jitney as jt
from jitney.tracer.core.tracers import Tracer


def answers(call: Callable[[Any], Any], a: Any, scalar: bool) -> Any:
    """The kind and layout of what `call` gives, and each side after the other was written.

    With `scalar`, `a` is made a NumPy scalar first.
    """
    a = a.sum() if scalar else a
    v = call(a)
    if is_scalar(v):
        return ("scalar",), (v, v, a + 0, v)
    how = "array", steps(v), v.flags.writeable, v.flags.c_contiguous, v.flags.f_contiguous
    if v.flags.writeable:
        v += 1
    seen = a + 0
    if not scalar and a.flags.writeable:
        a[...] *= 3
    return how, (v, v + 0, seen, a)


def all_answers(calls: list[Callable[[Any], Any]], arrays: list[Any], scalar: bool) -> Any:
    """The answers of each call to its own array, or the error that it raises."""
    how, found = [], []
    for call, a in zip(calls, arrays, strict=True):
        try:
            seen, values = answers(call, a, scalar)
        except REFUSALS as error:
            seen, values = ("refused", error), None
        how.append(seen)
        found.append(values)
    return how, found


# NumPy warns when what broadcast_arrays gives is written; here that is read-only.
READ_ONLY = {"np.broadcast_arrays(a)[0]"}


def differences(layout: Array, scalar: bool = False) -> Iterator[str]:
    """Run every expression in one compiled function, and by NumPy."""
    expressions = [e for e in EXPRESSIONS if e not in READ_ONLY]
    calls = [call_of(e) for e in expressions]
    given = [fresh(layout) for _ in calls]
    how, want = all_answers(calls, given, scalar)
    traced: list[Any] = []

    def program(*arrays: Any) -> Any:
        seen, found = all_answers(calls, list(arrays), scalar)
        traced[:] = seen
        return found

    taken = [fresh(layout) for _ in calls]
    got = jt.jit(program, autograph=False, backend="interpreter")(*taken)
    for e, h, t, w, g, a, b in zip(expressions, how, traced, want, got, given, taken, strict=True):
        if h[0] == "refused" or t[0] == "refused":
            if h[0] != t[0]:
                yield f"{e}: {t} and not {h}"
            continue
        if h != t:
            yield f"{e}: {t} and not {h}"
        if np.shares_memory(g[0], b) != np.shares_memory(w[0], a):
            yield f"{e}: shares memory: {np.shares_memory(g[0], b)}"
        for name, x, y in zip(("result", "later", "first", "operand"), g, w, strict=True):
            if np.shape(x) != np.shape(y) or x.dtype != y.dtype or not np.array_equal(x, y):
                yield f"{e}: {name} is {x!r} and not {y!r}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_writes_show_on_the_other_side_as_in_numpy(layout: str) -> None:
    assert list(differences(LAYOUTS[layout])) == []


@pytest.mark.filterwarnings("ignore")
def test_what_is_made_of_a_scalar_has_its_own_memory() -> None:
    assert list(differences(LAYOUTS["vector"], scalar=True)) == []


# Results that NumPy cuts out of larger arrays or computes with other axes in front: ours lie plainly.
CUT = "histogram2d histogramdd unravel_index nanpercentile median nanmedian vecdot".split()


def leaves(result: Any) -> list[Any]:
    """The arrays of a result that are not scalars."""
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in leaves(part)]
    return [] if is_scalar(result) else [result]


def about(x: Any, operands: Sequence[Any]) -> Any:
    """How an array lies, and of which operands it is a view."""
    if isinstance(x, Tracer):
        shared = [x._storage is a._storage for a in operands]
    else:
        shared = [np.may_share_memory(x, a) for a in operands]
    return steps(x), x.flags.writeable, shared


@pytest.mark.filterwarnings("ignore")
def test_results_lie_in_memory_as_numpys_do(all_cases: bool) -> None:
    """Each call of the table, with operands whose axes stand in another order in memory: two axes, or,
    where an operand can have any rank, three."""
    tried, wrong = 0, []
    pairs = itertools.product(CALLS, [(1, 0, 2), (1, 0)])
    done: set[str] = set()
    for call, axes in pairs:
        rank = len(axes)
        if str(call) in done and not all_cases:
            continue
        name = call.expression.replace("linalg.", "").partition("(")[0].rpartition(".")[2]
        ours = any(room in call.expression for room in ("jt.special.", "jt.ops."))
        ours = ours or name in ("erf", "erfinv", "adjoint")
        any_rank = any(operand.dims == "*" for operand in call.operands.values())
        if ours or name in CUT or not (any_rank or (rank == 2 and call.operands)):
            continue
        arrays = []
        for key, operand in call.operands.items():
            shape = (2, 3, 4)[-rank:] if operand.dims == "*" else calls.default_shape(operand)
            rng = np.random.default_rng(len(key))
            array = calls.values(operand, shape, operand.default(np.float64), rng)
            if array.ndim == rank:
                array = array.transpose(axes).copy().transpose(np.argsort(axes))
            arrays.append(array)
        function = call.function
        try:
            want = [about(x, arrays) for x in leaves(function(*arrays))]
        except (ValueError, IndexError, TypeError):
            continue  # takes no array of that rank
        done.add(str(call))
        got: list[Any] = []

        def program(*arrays: Any, function: Any = function, got: list[Any] = got) -> float:
            got[:] = [about(x, arrays) for x in leaves(function(*arrays))]
            return 0.0

        jt.jit(program, autograph=False).trace(*arrays)
        tried += 1
        if got != want and name != "broadcast_arrays":
            wrong.append(f"{call}: {got} and not {want}")
    assert wrong == []
    assert tried > 250


def views_in_a_branch(x: Any, y: Any) -> Any:
    for i in range(4):
        v = np.ravel(x)
        if y[i] > 0:
            v[i] = y[i]
            np.expand_dims(x, 0)[0, 0, 1] += 1
            np.einsum("ij->ji", x)[1, i % 2] = 7
            y[i] = np.diagonal(x)[1]
    return x


def test_views_of_what_lies_outside_of_a_region() -> None:
    """Functions, as methods and indices do, give views of an array of an enclosing trace."""
    given = np.zeros((2, 2)), np.array([1.0, -1, 2, 3])
    want, got = ([a.copy() for a in given] for _ in range(2))
    views_in_a_branch(*want)
    jt.jit(views_in_a_branch, autograph=True)(*got)
    for x, y in zip(got, want, strict=True):
        np.testing.assert_array_equal(x, y)

    def in_a_loop(x: Any) -> Any:
        def body(i: Any, s: Any) -> Any:
            np.ravel(x)[0] = 5 + i
            return s

        return jt.fori_loop(0, 3, body, x[0])

    x = np.zeros(3)
    assert jt.jit(in_a_loop)(x) == 0 and x.tolist() == [7, 0, 0]


def test_who_owns_the_memory_of_an_argument_is_not_known() -> None:
    seen = []
    jt.jit(lambda x: seen.append((x[0].flags.owndata, (x + 1).flags["OWNDATA"])))(np.zeros((2, 2)))
    assert seen == [(False, True)]
    for call in (lambda x: x.flags.owndata, lambda x: jt.require(x, None, "O")):
        with pytest.raises(jt.errors.UnsupportedFunctionError, match="owns its memory"):
            jt.jit(call)(np.zeros(2))


def flattened(x):
    rows, columns = np.mgrid[0:3, 0:4]
    c = rows + 1j * columns * x
    rows.shape = columns.shape = c.shape = 12
    other, part = c, c[2:5]
    c[0] = 7
    c.shape = 4, -1
    part[1] = 5
    return rows, columns, c, other is c, part, c.T


def with_views_made_before(x):
    c = x * np.ones((3, 4))
    row, turned = c[1:2], c.T
    c.shape = 12
    row[0, 1], turned[0, 0], c[11] = 9.0, 5.0, 3.0
    c.shape = 2, 6
    c[0] += 1.0
    return c, row, turned


def of_a_view(x):
    y = x[::2]
    y.shape = 2, 1
    y[1] = 8.0
    return y


@pytest.mark.parametrize("function", [flattened, with_views_made_before])
def test_a_shape_is_assigned_to(function):
    for got, wanted in zip(jt.jit(function)(2.0), function(2.0), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_a_shape_of_an_argument_is_assigned_to():
    x, y = np.arange(4.0), np.arange(4.0)
    np.testing.assert_array_equal(jt.jit(of_a_view)(x), of_a_view(y))
    np.testing.assert_array_equal(x, y)

    def own(x):
        x.shape = 2, 2

    def in_a_loop(x):
        y = x * 2
        for _ in range(int(x[0])):
            y.shape = 2, 2
        return y

    for function in (own, in_a_loop):
        with pytest.raises(jt.errors.TracerAttributeError, match="reshape"):
            jt.jit(function)(x + 1)

    def copied(x):
        y = (x * np.ones((2, 4))).T
        y.shape = 8

    for f in (copied, jt.jit(copied)):
        with pytest.raises(AttributeError, match="Incompatible shape"):
            f(2.0)
