"""In-place assignment: NumPy's aliasing, functionalised. Every program also runs under NumPy."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitney as jt
from jitney.tracer.core.views import reshaped_strides
from jitney.tracer.data.layout import k_order

interpreted = functools.partial(jt.jit, backend="interpreter")


def agree(f: Callable[..., Any], *arrays: np.ndarray, backend: str = "interpreter") -> None:
    """f changes and returns the same under NumPy and under jit, at the first and second call."""
    expected_arrays = [a.copy(order="K") for a in arrays]
    expected = f(*expected_arrays)
    jitted = jt.jit(f, backend=backend)
    for _ in range(2):
        given_arrays = [a.copy(order="K") for a in arrays]
        result = jitted(*given_arrays)
        for want, got in zip(expected_arrays, given_arrays, strict=True):
            np.testing.assert_array_equal(got, want)
            assert got.dtype == want.dtype
        if expected is None:
            assert result is None
            continue
        many = isinstance(expected, tuple)
        for want, got in zip(
            expected if many else (expected,), result if many else (result,), strict=True
        ):
            np.testing.assert_array_equal(got, want)
            assert np.asarray(got).dtype == np.asarray(want).dtype


def slices(x):
    x[1:3] = 7
    x[::-2] += 1
    x[-1] *= 2
    return x


def view_of_view(x):
    a = x[1:]
    b = a[::2]
    c = b[::-1]
    c[0] = 100
    a[1] = 5
    b += 1
    return a, b, c


def read_after_write(x):
    v = x[2:5]
    before = v + 0
    x[3] = -1
    return before, v + 0


def scalar_is_a_copy(x):
    s = x[0]
    t = s
    t += 5
    x[0] = 9
    return s, t


def zero_d_view(x):
    s = x[0, ...]
    s[...] = 3.0
    s += 1
    return s + 0


def transposed(x):
    t = x.T
    t[0] = 1
    t[:, 1] += t[:, 0]
    return t


def reshaped(x):
    r = x.reshape(-1)
    r[3] = 40
    r.reshape(x.shape)[0, 1] = 50
    return r


def ravel_of_transposed_is_a_copy(x):
    r = x.T.ravel()
    r[:] = 0
    return r


def ravel_is_a_view(x):
    r = x.ravel()
    r[:] = 0
    return r


def flatten_is_a_copy(x):
    r = x.flatten()
    r[:] = 0
    return r


def newaxis(x):
    x[None, :, None, ..., None][0, 1] = 8
    return x[:, None]


def swap(x):
    a, b = x[0].copy(), x[1].copy()
    x[0], x[1] = b, a
    return x


def overlapping_assignment(x):
    x[1:] = x[:-1]
    x[:-1] += x[1:]
    return x


def fancy(x):
    y = x[[0, 2]]
    y[:] = -1
    x[[1, 1, 0]] = np.array([5.0, 6.0, 7.0])[:, None] if x.ndim == 2 else [5.0, 6.0, 7.0]
    return y


def augmented_chain(x):
    v = x[1:, :2].T[::-1]
    v **= 2
    v -= 1
    v /= 2
    return v


def swapaxes(x):
    v = np.swapaxes(x, 0, 1)
    v[0, :] = np.arange(x.shape[0])
    return v


def squeeze_and_expand(x):
    v = np.squeeze(np.expand_dims(x, 0))
    v[0] = 3
    np.expand_dims(x, 1)[1] = 4
    return v


def through_function(x):
    def fill(v, c):
        v[:] = c

    fill(x[0], 1)
    fill(x.T[0], 2)
    return x


def new_array(x):
    out = np.zeros_like(x)
    out[1:-1] = x[2:] - x[:-2]
    return out


def out_argument(x):
    np.multiply(x, 2, out=x)
    np.add(x[1:], x[:-1], out=x[1:])
    return x


def masked(x):
    x[x > 2] = 0
    x[x == 0] += 1
    return x


def iteration(x):
    for row in x:
        row += row[0]
    return x


def empty_assignment(x):
    x[5:2] = 1
    x[0:0] += 3
    return x[5:2]


def casts_on_assignment(x):
    x[0] = 2.9
    x[1] = True
    return x


def real_part(x):
    x.real[0] = 5
    return x.real


VECTOR = [
    slices,
    view_of_view,
    read_after_write,
    scalar_is_a_copy,
    newaxis,
    overlapping_assignment,
    fancy,
    new_array,
    out_argument,
    masked,
    empty_assignment,
    casts_on_assignment,
    real_part,
]


MATRIX = [
    zero_d_view,
    transposed,
    reshaped,
    ravel_of_transposed_is_a_copy,
    ravel_is_a_view,
    flatten_is_a_copy,
    swap,
    fancy,
    augmented_chain,
    swapaxes,
    squeeze_and_expand,
    through_function,
    masked,
    iteration,
    slices,
    view_of_view,
]


@pytest.mark.parametrize("backend", ["interpreter", "native"])
@pytest.mark.parametrize("f", VECTOR, ids=lambda f: f.__name__)
def test_vector_programs(f, backend: str) -> None:
    agree(f, np.arange(8.0), backend=backend)


@pytest.mark.parametrize("backend", ["interpreter", "native"])
@pytest.mark.parametrize("f", MATRIX, ids=lambda f: f.__name__)
def test_matrix_programs(f, backend: str) -> None:
    agree(f, np.arange(20.0).reshape(5, 4), backend=backend)


@pytest.mark.parametrize("f", MATRIX, ids=lambda f: f.__name__)
def test_matrix_programs_in_fortran_order(f) -> None:
    agree(f, np.asfortranarray(np.arange(20.0).reshape(5, 4)))


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.float32])
@pytest.mark.parametrize("f", [slices, casts_on_assignment, transposed], ids=lambda f: f.__name__)
def test_other_dtypes(f, dtype: type) -> None:
    agree(f, np.arange(20).reshape(5, 4).astype(dtype))


@pytest.mark.parametrize(
    "layout",
    [
        lambda a: a[::2],
        lambda a: a[::-1],
        lambda a: a.reshape(2, -1)[1],
    ],
)
def test_the_callers_layout_is_written(layout) -> None:
    base = np.arange(16.0)
    want = base.copy()
    slices(layout(want))
    interpreted(slices)(layout(base))
    np.testing.assert_array_equal(base, want)


@pytest.mark.parametrize("dtype", ["f8", "i4", ">f8", "c16"])
def test_what_native_code_cannot_write_in_place_is_written_all_the_same(dtype: str) -> None:
    """Arrays that are not aligned, or of the other byte order."""
    for shape in ((3,), (40, 50)):
        plain = np.zeros(shape, dtype)
        room = np.zeros(plain.nbytes + 1, np.uint8)
        misaligned = room[1:].view(dtype).reshape(shape)

        @jt.jit
        def f(x, y):
            x[1:] = y[1:]
            x += 1
            return x

        for x in (plain, misaligned):
            for k in range(3):
                x[...] = 0
                assert f(x, np.full(shape, 5 + k, dtype)) is x
                assert (x[0] == 1).all() and (x[1:] == 6 + k).all()


def test_arguments_and_views_of_them_come_back_themselves() -> None:
    x = np.arange(6.0)

    @interpreted
    def f(x):
        x[0] = 10
        return x, x[1:], x.reshape(2, 3).T, x + 0

    same, tail, matrix, fresh = f(x)
    assert same is x
    assert np.shares_memory(tail, x) and tail[0] == 1
    assert matrix.base is x or np.shares_memory(matrix, x)
    assert not np.shares_memory(fresh, x)
    matrix[0, 0] = -1
    assert x[0] == -1


def test_nothing_is_written_when_the_call_fails() -> None:
    x = np.arange(3.0)

    @interpreted
    def f(x, i):
        x[0] = 99
        return x[i]

    with pytest.raises(IndexError):
        f(x, np.array([7]))
    assert x[0] == 0


def test_read_only_argument() -> None:
    x = np.arange(3.0)
    f = interpreted(lambda x: x.__setitem__(0, 1.0))
    f(x)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="assignment destination is read-only"):
        f(x)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: np.broadcast_to(x, (2, 3)),
        lambda x: np.diagonal(np.outer(x, x)),
        lambda x: x.astype(x.dtype).reshape(3, 1).diagonal(),
    ],
)
def test_read_only_views(view) -> None:
    def f(x):
        view(x)[0] = 1.0

    with pytest.raises(ValueError, match="read-only"):
        f(np.ones(3))
    with pytest.raises(ValueError, match="read-only"):
        interpreted(f)(np.ones(3))


def test_one_array_as_two_arguments() -> None:
    def f(a, b):
        a[0] = 5
        b[1] = a[0] + 1
        return a + b

    jitted = interpreted(f)
    for _ in range(2):
        x, want = np.zeros(3), np.zeros(3)
        np.testing.assert_array_equal(jitted(x, x), f(want, want))
        np.testing.assert_array_equal(x, want)
    y = [np.zeros(3), np.ones(3)]
    z = [np.zeros(3), np.ones(3)]
    np.testing.assert_array_equal(jitted(*y), f(*z))
    np.testing.assert_array_equal(y, z)


@pytest.mark.parametrize("shift", [0, 1, 2])
def test_overlapping_arguments(shift: int) -> None:
    def f(a, b):
        a[:] = b[::-1]
        b += a
        return a.sum()

    base, want = np.arange(10.0), np.arange(10.0)
    assert interpreted(f)(base[:8], base[shift : shift + 8]) == f(want[:8], want[shift : shift + 8])
    np.testing.assert_array_equal(base, want)


def test_an_argument_that_overlaps_itself() -> None:
    base, want = np.zeros(4), np.zeros(4)

    def windows(a):
        return np.lib.stride_tricks.as_strided(a, (3, 2), (8, 8))

    def f(w):
        w += 1

    f(windows(want))
    interpreted(f)(windows(base))
    np.testing.assert_array_equal(base, want)


def test_closed_over_array_is_written() -> None:
    total = np.zeros(2)

    @interpreted
    def f(x):
        total[0] += x.sum()
        total[1] = x[0]

    f(np.ones(3))
    f(np.full(3, 2.0))
    np.testing.assert_array_equal(total, [9.0, 2.0])


class Holder:
    def __init__(self, x: np.ndarray) -> None:
        self.x = x


def floats(holder: Holder, x: Any, y: Any) -> None:
    mine, part = holder.x, x[1:]
    mine += y
    mine *= y
    mine -= 1
    mine /= 3
    mine **= 2
    mine @= x
    mine %= y
    part //= y
    part %= 2


def integers(holder: Holder, x: Any, y: Any) -> None:
    mine, part = holder.x, x[1:]
    mine <<= y
    mine |= 17
    mine ^= y
    mine &= 29
    mine >>= 1
    mine %= y
    part %= 3


@pytest.mark.parametrize(("f", "dtype"), [(floats, float), (integers, int)])
def test_augmented_assignment_writes_through_every_name(f: Any, dtype: Any) -> None:
    results = []
    for run in (f, interpreted(f)):
        holder, x = Holder(np.arange(1, 10, dtype=dtype).reshape(3, 3)), np.full((3, 3), 8, dtype)
        run(holder, x, 5)
        results.append((holder.x, x))
    np.testing.assert_array_equal(*results)


def test_augmented_assignment_of_a_scalar_rebinds() -> None:
    def f(x):
        s = x.sum()
        t = s
        s += 1
        x[0] += s
        return s, t

    agree(f, np.arange(4.0))


@given(st.data())
def test_reshape_views_as_numpy_does(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    x = np.empty(shape).transpose(data.draw(st.permutations(range(len(shape)))))
    steps = data.draw(st.lists(st.sampled_from([1, 2, -1, -2]), min_size=x.ndim, max_size=x.ndim))
    x = x[tuple(slice(None, None, s) for s in steps)]
    dims, rest = [], x.size
    while rest > 1 and len(dims) < 4:
        d = data.draw(st.sampled_from([d for d in range(1, rest + 1) if rest % d == 0]))
        dims.append(d)
        rest //= d
    dims += [rest] if rest > 1 else []
    y = x.reshape(dims)
    got = reshaped_strides(x.shape, [s // 8 for s in x.strides], dims)
    assert (got is not None) == np.shares_memory(x, y)
    if got is not None:
        long = [i for i, n in enumerate(dims) if n > 1]
        assert [got[i] * 8 for i in long] == [y.strides[i] for i in long]


# Random programs: a list of views is built and written through, step by step.


@st.composite
def programs(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    steps: list[tuple[Any, ...]] = []
    for _ in range(draw(st.integers(2, 10))):
        which = draw(st.integers(0, 20))
        kind = draw(
            st.sampled_from(["slice", "T", "reshape", "newaxis", "set", "iadd", "imul", "copy"])
        )
        bounds = [
            (
                draw(st.none() | st.integers(-4, 4)),
                draw(st.none() | st.integers(-4, 4)),
                draw(st.sampled_from([1, 1, 2, -1, -2])),
            )
            for _ in range(2)
        ]
        steps.append((kind, which, bounds, draw(st.integers(0, 20)), draw(st.integers(-3, 3))))
    return steps


def run_program(steps: list[tuple[Any, ...]], x: Any) -> tuple[Any, ...]:
    views = [x]
    for kind, which, bounds, other, number in steps:
        v = views[which % len(views)]
        if kind == "slice":
            index = tuple(slice(*b) for b in bounds[: v.ndim])
            views.append(v[index])
        elif kind == "T":
            views.append(v.T)
        elif kind == "reshape":
            views.append(v.reshape(-1) if other % 2 else v.reshape((*v.shape[::-1],)))
        elif kind == "newaxis":
            views.append(v[None] if v.ndim < 4 else v[0:1])
        elif kind == "copy":
            views.append(v + number)
        else:
            w = views[other % len(views)]
            value = w if w.shape == v.shape else number
            if kind == "set":
                v[...] = value
            elif kind == "iadd":
                v += value
            else:
                v *= number
    return tuple(v + 0 for v in views)


@settings(max_examples=50)
@given(programs(), st.sampled_from([(6,), (3, 4), (4, 1, 2)]), st.booleans())
def test_random_programs(steps: list[tuple[Any, ...]], shape: tuple[int, ...], c: bool) -> None:
    order: Any = "C" if c else "F"
    x = np.arange(float(np.prod(shape))).reshape(shape, order=order)
    agree(functools.partial(run_program, steps), x)


@given(st.data())
def test_results_have_the_memory_order_of_numpy(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 4))
    shape = tuple(data.draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank)))
    operands = []
    for _ in range(data.draw(st.integers(1, 2))):
        own = [data.draw(st.sampled_from([n, 1])) if n > 1 else 1 for n in shape]
        own = own[data.draw(st.integers(0, rank - 1)) :]
        perm = data.draw(st.permutations(range(len(own))))
        x = np.empty([own[i] for i in perm]).transpose(np.argsort(perm))
        operands.append(x[::-1] if data.draw(st.booleans()) else x)
    broadcast = np.broadcast_shapes(*(x.shape for x in operands))
    result = functools.reduce(np.add, operands) if len(operands) > 1 else np.negative(*operands)
    got = k_order(broadcast, [(x.shape, tuple(s // 8 for s in x.strides)) for x in operands])
    long = [i for i, n in enumerate(broadcast) if n > 1]
    assert [got[i] * 8 for i in long] == [result.strides[i] for i in long]


@pytest.mark.parametrize("backend", ["interpreter", "native"])
def test_an_argument_that_is_also_read_or_written_from_outside(backend: str) -> None:
    c = np.zeros(3)

    def add(x: Any) -> Any:
        x += 1
        return c + x

    def bump(x: Any) -> Any:
        c[0] += 1
        return c + x

    for f in (jt.jit(add, backend=backend), jt.jit(bump, backend=backend)):
        for x in (c, np.zeros(3), c):
            before, c_before = x.copy(), c.copy()
            result, c_after, x_after = f(x), c.copy(), x.copy()
            c[:], x[:] = c_before, before
            expected = (add if f.__name__ == "add" else bump)(x)
            np.testing.assert_array_equal(result, expected)
            np.testing.assert_array_equal(c_after, c)
            np.testing.assert_array_equal(x_after, x)
