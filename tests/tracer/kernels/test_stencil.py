"""`jt.stencil` beside its definition: the function called for each element, in Python."""

import itertools

import numpy as np
import pytest

import jitney as jt

rng = np.random.default_rng(0)


class Around:
    """An array whose index counts from one of its elements."""

    def __init__(self, array, place):
        self.array, self.place = array, place

    def __getitem__(self, index):
        offset = index if isinstance(index, tuple) else (index,)
        return self.array[tuple(p + k for p, k in zip(self.place, offset, strict=True))]


def defined(f, reach, args, mode="constant", cval=0, absolute=()):
    """What a stencil gives by definition; `reach` is how far it reads."""
    first = args[0]
    sides = [(-low, high) for low, high in reach]
    relative = [np.ndim(x) > 0 and k not in absolute for k, x in enumerate(args)]
    if mode != "constant":
        name = {"nearest": "edge"}.get(mode, mode)
        args = [
            np.pad(x, sides, mode=name) if r else x for x, r in zip(args, relative, strict=True)
        ]
        moved = [a for a, _ in sides]
    else:
        moved = [0] * first.ndim
    out = {}
    for place in np.ndindex(*first.shape):
        inside = all(a <= p < n - b for p, n, (a, b) in zip(place, first.shape, sides, strict=True))
        if mode == "constant" and not inside:
            out[place] = cval
            continue
        spot = tuple(p + m for p, m in zip(place, moved, strict=True))
        given = [Around(x, spot) if r else x for x, r in zip(args, relative, strict=True)]
        out[place] = f(*given)
    return np.array([out[p] for p in np.ndindex(*first.shape)]).reshape(first.shape)


def laplace(a):
    return a[-1, 0] + a[1, 0] + a[0, -1] + a[0, 1] - 4.0 * a[0, 0]


def ahead(a):
    return a[2] - a[1]


def median(a):
    low, high = min(a[-1], a[1]), max(a[-1], a[1])
    if a[0] < low:
        return low
    return high if a[0] > high else a[0]


def box(a):
    total = 0.0
    for i in range(-1, 2):
        for j in range(-1, 2):
            for k in range(2):
                total += a[i, j, k]
    return total / 18


def upwind(u, v, dt):
    return u[0] - dt * (v[0] * (u[0] - u[-1]) if v[0] > 0 else v[0] * (u[1] - u[0]))


CASES = [
    (laplace, [(-1, 1), (-1, 1)], (rng.random((6, 7)),)),
    (ahead, [(0, 2)], (rng.integers(0, 99, 9),)),
    (median, [(-1, 1)], (rng.random(12),)),
    (box, [(-1, 1), (-1, 1), (0, 1)], (rng.random((4, 5, 3)),)),
    (upwind, [(-1, 1)], (rng.random(8), rng.random(8) - 0.5, 0.25)),
    (lambda a: 2 * a[0], [(0, 0)], (rng.random(5).astype(np.float32),)),
]
MODES = ["constant", "wrap", "reflect", "symmetric", "edge", "nearest"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("f", "reach", "args"), CASES)
def test_every_mode_is_the_function_for_each_element(f, reach, args, mode):
    got = jt.stencil(mode)(f)(*args)
    expected = defined(f, reach, args, mode)
    assert got.dtype == (np.float32 if args[0].dtype == np.float32 else expected.dtype)
    np.testing.assert_allclose(got, expected, rtol=1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_large_arrays_whose_edges_are_computed_apart(mode):
    for shape in ((40_000,), (150, 160)):
        x = rng.random(shape)
        f = (lambda a: a[-2] * a[1] + a[0]) if len(shape) == 1 else laplace
        reach = [(-2, 1)] if len(shape) == 1 else [(-1, 1), (-1, 1)]
        widths = [(-low, high) for low, high in reach]
        got = jt.stencil(mode)(f)(x)
        if mode == "constant":
            inner = tuple(slice(a, n - b) for n, (a, b) in zip(shape, widths, strict=True))
            assert np.count_nonzero(got) == np.count_nonzero(got[inner])
            got = got[inner]
            y = x
        else:
            y = np.pad(x, widths, mode={"nearest": "edge"}.get(mode, mode))

        def shifted(offset, y=y, n=got.shape, widths=widths):
            starts = [a + k for k, (a, _) in zip(offset, widths, strict=True)]
            return y[tuple(slice(s, s + m) for s, m in zip(starts, n, strict=True))]

        class All:
            def __getitem__(self, index, shifted=shifted):
                return shifted(index if isinstance(index, tuple) else (index,))

        np.testing.assert_allclose(got, f(All()), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("shape", [(0,), (1,), (2,)])
@pytest.mark.parametrize("mode", ["constant", "wrap", "edge"])
def test_arrays_that_are_smaller_than_the_neighbourhood(shape, mode):
    if shape == (0,) and mode != "constant":
        return  # there is nothing that could go on
    x = np.ones(shape)
    got = jt.stencil(mode)(lambda a: a[-2] + a[2])(x)
    np.testing.assert_array_equal(got, np.full(shape, 0.0 if mode == "constant" else 2.0))


def test_neighbourhoods_and_arrays_that_are_indexed_as_ever():
    @jt.stencil(neighborhood=((-2, 2),), standard_indexing=("w",), cval=np.nan)
    def blur(a, w):
        total = 0.0
        for k in range(-2, 3):
            total += w[k + 2] * a[k]
        return total

    x, w = rng.random(9), np.array([1.0, 4, 6, 4, 1]) / 16
    expected = np.concatenate([[np.nan] * 2, np.convolve(x, w, "valid"), [np.nan] * 2])
    np.testing.assert_allclose(blur(x, w), expected)
    wide = jt.stencil("constant", neighborhood=((-3, 3),))(lambda a: a[0])
    np.testing.assert_array_equal(wide(np.ones(8)), [0, 0, 0, 1, 1, 0, 0, 0])


def test_results_go_where_they_are_wanted():
    x, out = np.arange(5.0), np.full(5, 7.0)
    mean = jt.stencil(lambda a: (a[-1] + a[1]) / 2)
    assert mean(x, out=out) is out
    np.testing.assert_array_equal(out, [7, 1, 2, 3, 7])  # as Numba's: edges are left as they are
    jt.stencil("constant", cval=-1)(lambda a: (a[-1] + a[1]) / 2)(x, out=out)
    np.testing.assert_array_equal(out, [-1, 1, 2, 3, -1])

    @jt.jit
    def steps(u, n):
        for _ in range(n):
            mean(u.copy(), out=u)
        return u

    expected = x**2
    for _ in range(20):
        expected[1:-1] = (expected[:-2] + expected[2:]) / 2
    np.testing.assert_allclose(steps(x**2, np.int64(20)), expected)


def test_layouts_and_lists():
    x = rng.random((9, 8))
    for view in (x.T, x[::-1], x[::2, 1:], np.asfortranarray(x)):
        np.testing.assert_allclose(jt.stencil(laplace)(view), jt.stencil(laplace)(view.copy()))
    np.testing.assert_array_equal(jt.stencil("wrap")(lambda a: a[1])([1, 2, 3]), [2, 3, 1])


@pytest.mark.parametrize("mode", ["constant", "wrap", "reflect"])
def test_derivatives_are_stencils(mode):
    f = jt.stencil(mode)(lambda a: a[-1, 0] * a[0, 1] + np.sin(a[1, 1]))
    x = rng.random((5, 6))
    jt.check_grads(jt.jit(f), (x,))
    loss = jt.grad(lambda x: (jt.stencil(laplace)(x) ** 2).sum())
    ops = {op.name for op in jt.jit(loss).trace(x).walk()}
    assert not ops & {"scatter", "scan", "while"}


def test_batches():
    xs = rng.random((3, 5, 6))
    f = jt.stencil(laplace)
    np.testing.assert_allclose(jt.jit(jt.vmap(f))(xs), np.stack([f(x) for x in xs]))


# What does not fit.


def bad(f, *args, **options):
    with pytest.raises(jt.errors.JitneyError) as error:
        jt.stencil(**options)(f)(*(args or (np.ones(5),)))
    return str(error.value)


def test_what_does_not_fit_says_so():
    x = np.ones(5)
    assert "indexed by slice" in bad(lambda a: a[1:2])
    assert "write 1 known integers" in bad(lambda a: a[0, 0])
    assert "assigns to its array" in bad(_assigns)
    assert "returned tuple" in bad(lambda a: (a[0], a[1]))
    assert "reads the neighbour [2]" in bad(lambda a: a[2], neighborhood=((-1, 1),))
    assert "does not fit an array of 1 axes" in bad(lambda a: a[0], neighborhood=((-1, 1),) * 2)
    assert "standard_indexing=('b',)" in bad(lambda a, b: a[0] + b[0], x, np.ones(3))
    assert "cannot hold cval=nan" in bad(lambda a: a[0], np.arange(5), cval=np.nan)
    assert "first argument" in bad(lambda a: a, 3.0)
    with pytest.raises(jt.errors.TransformError, match="'periodic' is no way"):
        jt.stencil("periodic")
    with pytest.raises(jt.errors.TransformError, match="cval=1 is the result at the edges"):
        jt.stencil("wrap", cval=1)
    with pytest.raises(jt.errors.ShapeError, match="does not fit into out="):
        jt.stencil(lambda a: a[0])(x, out=np.ones(4))


def test_a_number_that_is_an_index_is_compiled_in():
    f = jt.stencil(lambda a, k: a[k])
    np.testing.assert_array_equal(f(np.arange(4.0), 1), [1, 2, 3, 0])
    np.testing.assert_array_equal(f(np.arange(4.0), np.int64(-1)), [0, 0, 1, 2])


def _assigns(a):
    a[0] = 1
    return a[0]


def test_modes_are_numpys_pads():
    x = rng.random(7)
    for mode, (low, high) in itertools.product(["wrap", "reflect", "symmetric", "edge"], [(-3, 2)]):
        got = jt.stencil(mode)(lambda a: a[-3] + 10 * a[2])(x)
        padded = np.pad(x, (-low, high), mode=mode)
        np.testing.assert_allclose(got, padded[:7] + 10 * padded[5:12])
