"""Indexing, assignment, views and masks against NumPy; indices that NumPy refuses are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support import check, check_raises, run

import jitney as jt

T = np.arange(2 * 3 * 4, dtype=np.float64).reshape(2, 3, 4) + 0.5
X = np.arange(12, dtype=np.float64).reshape(3, 4) - 4


# Any index: basic, advanced, mixed, with traced and static arrays


@st.composite
def index_arrays(draw: Any, size: int, shape: tuple[int, ...]) -> Any:
    values = st.integers(-size, size - 1)
    total = int(np.prod(shape))
    flat = draw(st.lists(values, min_size=total, max_size=total))
    array = np.array(flat, dtype=np.int64).reshape(shape)
    return draw(st.sampled_from([array, array.astype(np.int32), array.tolist()]))


@st.composite
def indices(draw: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """An index that fits an array of `shape`, with each kind of item."""
    batch = draw(st.sampled_from([(), (1,), (2,), (3,), (2, 1), (2, 3)]))
    items: list[Any] = []
    used = draw(st.integers(0, len(shape)))
    axis = 0
    while axis < used:
        n = shape[axis]
        kinds = ["slice", "new"] + (["int", "array", "mask"] if n else [])
        kind = draw(st.sampled_from(kinds))
        if kind == "new":
            items.append(None)
            continue
        if kind == "slice":
            bound = st.one_of(st.none(), st.integers(-n - 2, n + 2))
            step = draw(st.sampled_from([None, 1, 2, -1, -2, 3]))
            items.append(slice(draw(bound), draw(bound), step))
        elif kind == "int":
            i = draw(st.integers(-n, n - 1))
            items.append(draw(st.sampled_from([i, np.int64(i), np.array(i)])))
        elif kind == "mask":
            items.append(np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n))))
        else:
            part = draw(st.sampled_from([batch, batch[1:], (1,) * len(batch)]))
            items.append(draw(index_arrays(n, part)))
        axis += 1
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), Ellipsis)
    return tuple(items)


SHAPES = st.sampled_from([(), (4,), (3, 4), (2, 3, 4), (0, 3), (1, 2, 1, 3)])


@st.composite
def indexed(draw: Any) -> tuple[np.ndarray[Any, Any], tuple[Any, ...]]:
    shape = draw(SHAPES)
    flat = np.arange(1, np.prod(shape) + 1, dtype=np.float64)
    return flat.reshape(shape), draw(indices(shape))


def fits(x: Any, index: Any) -> bool:
    try:
        x[index]
    except IndexError:
        return False
    return True


@settings(max_examples=130)
@given(indexed())
def test_reading(case: Any) -> None:
    x, index = case
    if fits(x, index):
        check(lambda x: x[index], x)
    else:
        check_raises(lambda x: x[index], x, backend="interpreter")


@settings(max_examples=12)
@given(indexed())
def test_reading_with_traced_indices(case: Any) -> None:
    """The same with every index array an argument (boolean ones stay static)."""
    x, index = case
    assume(fits(x, index))
    spots = [i for i, item in enumerate(index) if _is_index_array(item)]
    arrays = [np.asarray(index[i]) for i in spots]

    def f(x: Any, *arrays: Any) -> Any:
        items = list(index)
        for spot, a in zip(spots, arrays, strict=True):
            items[spot] = a
        return x[tuple(items)]

    check(f, x, *arrays)


def _is_index_array(item: Any) -> bool:
    return isinstance(item, (np.ndarray, np.integer, list)) and np.asarray(item).dtype.kind == "i"


@settings(max_examples=130)
@given(indexed(), st.integers(0, 2), st.booleans())
def test_writing(case: Any, drop: int, augmented: bool) -> None:
    x, index = case
    assume(fits(x, index))
    shape = np.shape(x[index])
    value = -np.arange(np.prod(shape[drop:]), dtype=np.float64).reshape(shape[drop:]) - 1

    def f(x: Any, value: Any) -> Any:
        y = x.copy()
        if augmented:
            y[index] += value
            x[index] *= value
        else:
            y[index] = value
            x[index] = y[index] + value
        return y

    check(f, x, value)


# Views and aliasing


def test_views_share_storage() -> None:
    def f(x: Any, t: Any) -> Any:
        row = x[1]
        row += 10
        x[:, 0][...] = -1
        t.T[0] = 7
        corner = x[1:, ::-2]
        corner[0] *= 2
        flat = x.reshape(-1)
        flat[3] = 99
        x.T.reshape(-1)[0] = 1234  # a copy in NumPy
        copied = x.copy()
        copied[0] = 0
        squeezed = t[:, None].squeeze()
        squeezed[1, 2] = 3
        t.swapaxes(0, 1)[2][1][0] = 5
        return row, corner, flat, copied, x.ravel()[::3]

    check(f, X, T)


def test_assignments_overlap_as_if_copied() -> None:
    def f(x: Any) -> Any:
        x[1:] = x[:-1]
        x[:, ::-1] += x
        x[0], x[1] = x[1].copy(), x[0].copy()

    check(f, X)


def test_in_place_stencil() -> None:
    def f(u: Any) -> Any:
        for _ in range(3):
            u[1:-1, 1:-1] += 0.1 * (
                u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
            )
        return u

    check(f, np.random.default_rng(0).normal(size=(6, 7)))


def test_augmented_slices_store_once() -> None:
    from jitney.tracer.core.specs import spec_of
    from jitney.tracer.core.tracing import trace_function
    from jitney.tracer.data import pytree

    def f(x: Any) -> None:
        x[1:] += 1

    _, tree = pytree.flatten(((X,), {}))
    graph = trace_function(f, [spec_of(X)], tree).graph
    assert [op.name for op in graph.ops].count("update_slice") == 1


def test_traced_scalar_index_is_a_view() -> None:
    def f(x: Any, i: int, j: Any) -> Any:
        x[i][1] = 50
        row = x[j]
        row += 1
        x[i, j] -= 3
        x[..., i] = 0
        return x[i], x[i, j], x[j:][0] if isinstance(j, int) else row

    check(f, X, 1, np.int64(2))
    check(f, X, -1, np.int64(0))


def test_scalars_are_immutable_values() -> None:
    def f(x: Any) -> Any:
        s = x[0, 0]
        s += 1
        zero = x[0, 0, ...]
        zero += 5
        return s, zero, x[1, 1]

    check(f, X)
    with pytest.raises(TypeError, match="does not support item assignment"):
        run(lambda x: x.sum().__setitem__(..., 1), X)


def test_read_only_views() -> None:
    for f in (
        lambda x: np.broadcast_to(x, (2, 3, 4)).__setitem__(0, 1),
        lambda x: np.diagonal(x).__setitem__(0, 1),
    ):
        assert "read-only" in check_raises(f, X)


def test_assignment_casts_as_numpy_does() -> None:
    def f(i: Any, x: Any) -> None:
        i[0] = 2.9
        i[1:3] = x[:2]
        i[3] = True
        x[0] = i[1]
        x[1:] = [7, 8, 9]

    check(f, np.arange(5), np.arange(4.0) * 1.6)
    assert "out of bounds" in check_raises(lambda u: u.__setitem__(0, 300), np.zeros(2, np.uint8))
    message = check_raises(lambda x: x.__setitem__(slice(0, 2), np.ones(3)), np.arange(4.0))
    assert "(3,) into shape (2,)" in message


# Masks


def test_static_masks() -> None:
    mask = X > 0

    def f(x: Any) -> Any:
        x[mask] *= 3
        x[mask[:, 0]] += 1
        x[1, mask[1]] = 9
        return x[mask], x[:, [True, False, True, True]], x[mask].sum()

    check(f, X)


def test_traced_masks_in_assignments() -> None:
    def f(x: Any, y: Any) -> Any:
        x[x > 2] = 0
        x[x < -1] += 10
        x[y > 0] = y[y > 0] * 2 + 1
        m = x > 1
        x[m] = np.sqrt(x[m]) - y[m]
        x[m] *= 2
        y[y < 0] = -y[y < 0]
        y[~m] = np.float32(2)
        rows = x[:, 0] > 0
        x[rows] = np.arange(4.0)
        x[rows, 1:] += 5
        x[:, x[0] > 3] = -1
        return x

    check(f, X, np.random.default_rng(1).normal(size=(3, 4)))


def test_reductions_of_masked_elements() -> None:
    def f(x: Any) -> Any:
        m = x > 0
        part = x[m]
        return (
            *(part.sum(), part.mean(), np.std(x[m]), np.sum(part * 2), (part > 3).any()),
            *(np.all(part < 99), part.prod(), np.mean(x[x < 0] + 1)),
            part.max(initial=-1.0),
        )

    check(f, X)


def test_what_needs_the_number_of_masked_elements_is_refused() -> None:
    for f in (
        lambda x: x[x > 0].reshape(2, -1),
        lambda x: x[x[:, 0] > 0, [0]],
        lambda x: np.fft.fft(x[x > 0]),
    ):
        with pytest.raises((TypeError, ValueError), match="where"):
            run(f, X)


def test_masks_of_wrong_shape() -> None:
    for mask in (np.ones(4, bool), np.ones((3, 3), bool), np.ones((2, 4), bool)):
        message = check_raises(lambda x, m=mask: x[m], X)
        assert "boolean index did not match" in message
        assert "boolean index did not match" in check_raises(lambda x, m: x[m], X, mask)


# Windows, errors


def test_dynamic_windows() -> None:
    def f(x: Any, i: int, j: Any) -> Any:
        window = jt.dynamic_slice(x, (i, j), (2, 2))
        return window, jt.dynamic_update_slice(x, window * 2, (j, i)), x

    check(f, X, 1, np.int64(2))
    check(f, X, -1, np.int64(9))
    with pytest.raises(ValueError, match="does not fit"):
        run(lambda x: jt.dynamic_slice(x, (0, 0), (4, 1)), X)


def test_iteration_and_unpacking() -> None:
    def f(x: Any) -> Any:
        a, b, c = x
        return [row.sum() for row in x], a + c, b, list(x[0]), len(x)

    check(f, X)


BAD: dict[str, tuple[Any, str]] = {
    "int": (lambda x: x[3], "index 3 is out of bounds for axis 0 with size 3"),
    "negative": (lambda x: x[0, -5], "index -5 is out of bounds for axis 1 with size 4"),
    "list": (lambda x: x[[0, 7]], "index 7 is out of bounds for axis 0 with size 3"),
    "beside a slice": (lambda x: x[:, [4]], "index 4 is out of bounds for axis 1 with size 4"),
    "too many": (lambda x: x[0, 0, 0], "too many indices for array: array is 2-dimensional"),
    "float": (lambda x: x[1.0], "only integers, slices"),
    "float array": (lambda x: x[np.array([0.0])], "only integers|must be of integer"),
    "string": (lambda x: x["a"], "only integers, slices"),
    "two ellipses": (lambda x: x[..., ...], "single ellipsis"),
    "shapes": (lambda x: x[[0, 1], [0, 1, 2]], r"could not be broadcast together.*\(2,\) \(3,\)"),
    "write": (lambda x: x.__setitem__((0, 9), 1.0), "index 9 is out of bounds for axis 1"),
    "step": (lambda x: x[::0], "slice step cannot be zero"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_indices(name: str) -> None:
    f, text = BAD[name]
    message = check_raises(f, X, match=text)
    assert "test_indexing.py" in message


def test_index_arrays_are_checked_at_run_time() -> None:
    with pytest.raises(IndexError, match="index 5"):
        run(lambda x, k: x[k], X, np.array([0, 5]))
    with pytest.raises(IndexError):
        run(lambda x, k: x.__setitem__(k, 1.0), X, np.array([0, -4]))


def test_traced_slice_bounds_name_dynamic_slice() -> None:
    with pytest.raises(TypeError, match=r"jt.dynamic_slice"):
        run(lambda x, n: x[:n], X, 2)


def test_eager_traces_index_by_value() -> None:
    """In `jt.grad` outside of jit the values are known: slices and masks may depend on them."""

    def loss(x: Any) -> Any:
        n = (x > 0).sum()
        return (x[:n] ** 2).sum() + x[x > 1].sum() + x[x > 1].size

    x = np.array([0.5, 1.5, -1.0, 2.0])
    np.testing.assert_allclose(jt.grad(loss)(x), [1.0, 4.0, -2.0, 1.0])


def test_a_mask_that_is_refused_is_named_by_the_line_that_made_it() -> None:
    @jt.jit
    def positive(x):
        found = x[x > 0]  # this line
        return found.reshape(3, -1)

    with pytest.raises(jt.errors.DynamicShapeError) as info:
        positive.trace(jt.ShapeDtype(X.shape, X.dtype))
    assert "# this line" in str(info.value)


def row_written_in_a_loop(a, i):
    row = a[i % 5]
    while row.sum() < 100:
        row += i
    return a


def window_written_in_a_branch(a, i):
    window = a[i : i + 2]
    if a.sum() > 0:
        window[0] = 5
        while window.sum() < 1000:
            window *= 2
    return a


@pytest.mark.parametrize("function", (row_written_in_a_loop, window_written_in_a_branch))
def test_views_at_traced_places_are_written_in_regions(function):
    """The place is a value of the trace around."""
    got, want = (np.arange(20.0).reshape(5, 4) for _ in range(2))
    function(want, np.int64(2))
    jt.jit(function, autograph=True)(got, np.int64(2))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("shape", ((5, 3), (5, 1), (5, 1, 4)))
def test_what_indices_behind_an_axis_give_lies_as_numpys(shape):
    """The axes of the index come first in memory, so that a reshape is a copy."""

    def f(a):
        picked = a[:, np.array([0, 0])]
        flat = picked.reshape(-1)
        picked[0] = 7
        return flat

    a = np.arange(float(np.prod(shape))).reshape(shape)
    np.testing.assert_array_equal(jt.jit(f)(a), f(a))


LINES = (
    "[idx, 1:-1]", "[1:-1, idx]", "[idx, ::-2]", "[idx, 2, 1:]", "[1:, idx, 1]", "[idx, 1:, idx]",
    "[i, 1:-1, idx]", "[idx, i, 3:1:-1]", "[:, idx, 1:]",
    "[idx[:, None], 1:3, idx[None]]", "[-1, idx, 2:]",
)  # fmt: skip


@pytest.mark.parametrize("place", LINES)
def test_parts_of_lines_at_index_arrays(place: str) -> None:
    """Of a large array a few lines are taken out and put back, also where one is named twice."""
    body = f"    x{place} += 1\n    x{place} = x{place} * 2 - x[0, 0, 0]\n    return x\n"
    space: dict[str, Any] = {}
    exec(f"def f(x, idx, i):\n{body}", space)
    f = space["f"]
    x = np.arange(7.0 * 8 * 9).reshape(7, 8, 9)
    for idx in (np.array([2, 5, 2]), np.array([-1])):
        np.testing.assert_array_equal(jt.jit(f)(x.copy(), idx, np.int64(3)), f(x.copy(), idx, 3))

    def total(x: Any) -> Any:
        return (f(x.copy(), idx, 3) ** 2).sum()

    np.testing.assert_allclose(jt.jit(jt.grad(total))(x), jt.grad(total)(x))


def test_parts_of_lines_in_loops_copy_nothing_else() -> None:
    def f(x: Any, idx: Any) -> Any:
        for k in range(50):
            x[idx, 1:-1] += k
        return x

    text = str(jt.jit(f).trace(np.zeros((400, 300)), np.arange(3))).splitlines()
    updates = [line for line in text if " = scatter " in line or " = update_slice " in line]
    assert updates
    assert not [u for u in updates if "f64[400,298]" in u or ("update_slice" in u and "[400," in u)]


@pytest.mark.parametrize("index", [[[0, 0], [1, 1]], [[0, 1], [0, 1]], [[2, 2]]])
def test_updates_by_values_of_fewer_axes_than_the_index(index):
    """`np.add.at` itself reads what lies behind such values."""
    x, v = np.arange(5.0), np.array([10.0, 100.0])
    want = x.copy()
    for row in index:
        for k, one in zip(row, v, strict=True):
            want[k] += one
    for add in (lambda x: jt.at(x)[index].add(v), lambda x: jt.at(x)[np.array(index)].add(v)):
        np.testing.assert_array_equal(add(x), want)
        np.testing.assert_array_equal(jt.jit(add)(x), want)

    def by_numpy(x, v):
        y = x.copy()
        np.add.at(y, np.array(index), v)
        return y

    np.testing.assert_array_equal(jt.jit(by_numpy)(x, v), want)
