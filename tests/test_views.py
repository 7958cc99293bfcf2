"""What is a view and what is a copy: every array function, on every layout, against NumPy.

What a function returns is written to and so is what it was given, each afterwards seen in the other;
returned from a compiled function, it shares memory with the argument where NumPy's shares it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import calls
import numpy as np
import pytest
from function_calls import CALLS

import jitney as jt
from jitney.tracer.core import Tracer

Array = np.ndarray[Any, Any]


def layouts() -> Iterator[tuple[str, Array]]:
    """Square matrices, so that most expressions below take them, and arrays with other ranks."""
    a = np.arange(1.0, 10).reshape(3, 3)
    wide = np.arange(1.0, 37).reshape(6, 6)
    yield "C", a
    yield "Fortran", np.asfortranarray(a)
    yield "steps", wide[::2, 1::2]
    yield "rows apart", wide[::2, :3]
    yield "backwards", a[::-1, ::-1]
    yield "one axis backwards", a[:, ::-1]
    yield "permuted", np.arange(1.0, 28).reshape(3, 3, 3).transpose(1, 2, 0)
    yield "axes of size 1", a[:, None, :1]
    yield "vector", np.arange(1.0, 4)
    yield "every second", np.arange(1.0, 7)[::2]
    yield "from the end", np.arange(1.0, 4)[::-1]
    yield "0-d", np.array(2.0)
    yield "empty", np.zeros((3, 0))
    yield "one element", np.ones((1, 1))


LAYOUTS = dict(layouts())

# Expressions of `a`. What NumPy refuses for a layout is left out there.
EXPRESSIONS = """
a
a[...]
a[()]
a[None]
a[0]
a[1:]
a[::-1]
a[:, 0]
a[..., None]
a[[0, 1]]
a[0, 0]
a[0:0]
a.T
a.mT
a.view()
a.view(np.uint8)
a.real
a.imag
a.conj()
a.copy()
a.copy("F")
a.copy("K")
a.flatten()
a.flatten("K")
a.transpose()
a.transpose(0, 1)
a.swapaxes(0, -1)
a.squeeze()
a.ravel()
a.ravel("F")
a.ravel("A")
a.ravel("K")
a.reshape(-1)
a.reshape(a.shape)
a.reshape(-1, order="F")
a.reshape(-1, order="A")
a.reshape(-1, copy=True)
a.reshape(-1, copy=False)
a.reshape(1, 3, -1)
a.reshape(-1, 1, order="F")
a.diagonal()
a.astype(float)
a.astype(float, copy=False)
a.astype(float, order="C", copy=False)
a.astype(float, order="F", copy=False)
a.astype(float, order="A", copy=False)
a.astype(np.float32, copy=False)
a.byteswap()
a.round()
a.repeat(1)
a.take([0])
a.clip(0, 100)
a.max(axis=())
abs(a)
+a
np.abs(a)
np.positive(a)
np.ravel(a)
np.ravel(np.flip(a))
np.reshape(np.flip(a), -1)
np.reshape(a.T, -1)
np.reshape(a, -1, order="F", copy=False)
np.transpose(a)
np.permute_dims(a)
np.matrix_transpose(a)
np.linalg.matrix_transpose(a)
np.swapaxes(a, 0, 0)
np.moveaxis(a, 0, -1)
np.moveaxis(a, (), ())
np.rollaxis(a, 0)
np.rollaxis(a, -1)
np.expand_dims(a, 0)
np.expand_dims(a, ())
np.squeeze(a)
np.squeeze(a, ())
np.squeeze(np.expand_dims(a, 1))
np.atleast_1d(a)
np.atleast_2d(a)
np.atleast_3d(a)
np.broadcast_to(a, a.shape)
np.broadcast_to(a, (2, *a.shape))
np.broadcast_arrays(a)[0]
np.flip(a)
np.flip(a, ())
np.fliplr(a)
np.flipud(a)
np.rot90(a)
np.rot90(a, 0)
np.rot90(a, 2)
np.roll(a, 0)
np.roll(a, 1, 0)
np.diag(a)
np.diag(a, 1)
np.diag(a, -2)
np.diag(a, 7)
np.diagonal(a)
np.diagonal(a, 1)
np.diagonal(a, 0, 1, 0)
np.diagonal(a, -1, 0, -1)
np.linalg.diagonal(a)
np.linalg.diagonal(a, offset=-1)
np.diagflat(a)
np.tril(a, 9)
np.split(a, 1)[0]
np.array_split(a, 2)[-1]
np.hsplit(a, 1)[0]
np.vsplit(a, [1])[1]
np.unstack(a)[0]
np.real(a)
np.imag(a)
np.conj(a)
np.real(a + 1j)
np.asarray(a)
np.asanyarray(a)
np.asarray(a, dtype=np.float32)
np.asarray(a, order="F")
np.asarray(a, copy=True)
np.array(a)
np.array(a, copy=None)
np.array(a, copy=None, order="F")
np.array(a, copy=None, ndmin=3)
np.array(a, copy=False)
np.array(a, copy=False, order="C")
np.ascontiguousarray(a)
np.asfortranarray(a)
np.require(a)
np.require(a, None, "C")
np.require(a, None, "FW")
np.require(a, None, ["A"])
np.copy(a)
np.copy(a, "F")
np.astype(a, float, copy=False)
np.zeros_like(a)
np.block(a)
np.block([a])
np.concatenate([a])
np.vstack([a])
np.stack([a])
np.tile(a, 1)
np.repeat(a, 1, axis=0)
np.pad(a, 0)
np.resize(a, a.shape)
np.take(a, [0])
np.append(a, [])
np.delete(a, 0, 0)
np.diff(a, 0)
np.meshgrid(a, a, copy=False, sparse=True)[0]
np.meshgrid(a)[0]
np.ix_(a.astype(int))[0]
np.where(a > 1, a, a)
np.select([a > 1], [a], a)
np.nan_to_num(a)
np.nan_to_num(a, copy=False)
np.round(a)
np.fix(a)
np.clip(a, 0, None)
np.sort(a)
np.cumsum(a, 0)
np.sum(a, axis=())
np.mean(a, axis=())
np.apply_over_axes(np.sum, a, [])
np.kron(1, a)
np.linalg.matrix_power(a, 1)
np.linalg.matrix_power(a, 0)
np.einsum("ij->ji", a)
np.einsum("ij", a)
np.einsum("ii->i", a)
np.einsum("iji->ij", a)
np.einsum("iii->i", a)
np.einsum("i...->...i", a)
np.einsum("...", a)
np.einsum("...", a, dtype=np.float32, casting="unsafe")
np.einsum("ij->ji", a, optimize=True)
np.einsum("ij->i", a)
np.einsum(a, [0, 1], [1, 0])
np.lib.stride_tricks.sliding_window_view(a, 2, 0)
np.lib.stride_tricks.sliding_window_view(a, (1,) * a.ndim)
""".split("\n")[1:-1]


def call_of(expression: str) -> Callable[[Any], Any]:
    space = {"np": NumPy(), "jt": jt}
    made: Callable[[Any], Any] = eval(f"lambda a: {expression}", space)
    return made


class NumPy:
    """numpy, but its functions that make arrays trace."""

    def __getattr__(self, name: str) -> Any:
        known = name in ("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray")
        return getattr(jt if known or name == "require" else np, name)


def steps(x: Any) -> tuple[int, ...]:
    """Strides in bytes where they mean something."""
    return (
        () if 0 in x.shape else tuple(s for n, s in zip(x.shape, x.strides, strict=True) if n > 1)
    )


def answers(call: Callable[[Any], Any], a: Any, scalar: bool) -> Any:
    """The kind and layout of what `call` gives, and each side after the other was written.

    With `scalar`, `a` is made a NumPy scalar first.
    """
    a = a.sum() if scalar else a
    v = call(a)
    if v.ndim == 0 and (v.scalar if isinstance(v, Tracer) else isinstance(v, np.generic)):
        return ("scalar",), (v, v, a + 0, v)
    how = "array", steps(v), v.flags.writeable, v.flags.c_contiguous, v.flags.f_contiguous
    if v.flags.writeable:
        v += 1
    seen = a + 0
    if not scalar and a.flags.writeable:
        a[...] *= 3
    return how, (v, v + 0, seen, a)


def fresh(a: Array) -> Array:
    """A copy that lies in memory as `a` does."""
    base = a
    while base.base is not None:
        base = base.base
    copy = base.copy("K")
    offset = a.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return np.ndarray(a.shape, a.dtype, copy, offset, a.strides)


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


REFUSALS = ValueError, IndexError, TypeError, AttributeError
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
    scalar = result.scalar if isinstance(result, Tracer) else not isinstance(result, np.ndarray)
    return [] if scalar else [result]


def about(x: Any, operands: Sequence[Any]) -> Any:
    """How an array lies, and of which operands it is a view."""
    if isinstance(x, Tracer):
        shared = [x._storage is a._storage for a in operands]
    else:
        shared = [np.may_share_memory(x, a) for a in operands]
    return steps(x), x.flags.writeable, shared


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("axes", [(1, 0), (1, 0, 2)])
def test_results_lie_in_memory_as_numpys_do(axes: tuple[int, ...]) -> None:
    """Each call of the table, with operands whose axes stand in another order in memory."""
    rank, tried, wrong = len(axes), 0, []
    for call in CALLS:
        name = call.expression.replace("linalg.", "").partition("(")[0].rpartition(".")[2]
        ours = "jt.special." in call.expression or name in ("erf", "erfinv", "adjoint")
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

    def lost(x: Any) -> Any:
        def body(i: Any, s: Any) -> Any:
            np.ravel(x)[0] = 5
            return s

        return jt.fori_loop(0, 3, body, x[0])

    with pytest.raises(jt.errors.OuterMutationError, match="lives outside"):
        jt.jit(lost)(np.zeros(3))


def test_who_owns_the_memory_of_an_argument_is_not_known() -> None:
    seen = []
    jt.jit(lambda x: seen.append((x[0].flags.owndata, (x + 1).flags["OWNDATA"])))(np.zeros((2, 2)))
    assert seen == [(False, True)]
    for call in (lambda x: x.flags.owndata, lambda x: jt.require(x, None, "O")):
        with pytest.raises(jt.errors.UnsupportedFunctionError, match="owns its memory"):
            jt.jit(call)(np.zeros(2))
