"""`jt.guvectorize`: functions of small arrays, assigned to or returned, as generalised ufuncs."""

import numpy as np
import pytest

import jitney as jt

rng = np.random.default_rng(0)


def returned(x, y):
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i] * y[i]
    return s


def assigned(x, y, res):
    for i in range(x.shape[0]):
        res[0] += x[i] * y[i]


def whole(x, y):
    return (x * y).sum()


@pytest.fixture(params=[returned, assigned, whole], ids=lambda f: f.__name__)
def dot(request):
    return jt.guvectorize("(n),(n)->()", request.param)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (np.ones(3), np.arange(3.0)),
        (rng.random((4, 3)), rng.random(3)),
        (rng.random((4, 1, 3)), rng.random((1, 5, 3))),
        (rng.random((0, 3)), rng.random((0, 3))),
        (rng.random((2, 0)), rng.random((2, 0))),
        (rng.random((3, 6)).T, rng.random((6, 6))[::1, ::2]),
        (rng.random((2, 3)).astype(np.float32), np.ones(3, np.float32)),
    ],
)
def test_values_and_shapes_are_those_of_numpys_gufunc(dot, x, y):
    got = dot(x, y)
    np.testing.assert_allclose(got, np.vecdot(x, y), rtol=1e-6)
    assert np.shape(got) == np.vecdot(x, y).shape
    assert got.dtype == x.dtype
    inside = jt.jit(lambda x, y: dot(x, y) + 1)(x, y)
    np.testing.assert_allclose(inside, np.vecdot(x, y) + 1, rtol=1e-6)


def test_gradients_and_batches(dot):
    x, y = rng.random((2, 1, 3)), rng.random((4, 3))
    jt.check_grads(jt.jit(lambda x, y: dot(x, y)), (x, y))
    np.testing.assert_allclose(
        jt.grad(lambda x: dot(x, y).sum())(x), np.broadcast_to(y.sum(0), x.shape)
    )
    np.testing.assert_allclose(
        jt.jit(jt.vmap(dot, (0, None)))(x, y), np.vecdot(x, y[None]).reshape(2, 4)
    )


def test_axes_of_numpy(dot):
    x, y = rng.random((3, 4, 5)), rng.random((3, 1, 1))
    np.testing.assert_allclose(dot(x, y, axis=0), np.vecdot(x, y, axis=0))
    np.testing.assert_allclose(
        dot(x, y, axis=0, keepdims=True), np.vecdot(x, y, axis=0, keepdims=True)
    )
    np.testing.assert_allclose(
        dot(x, x[:, 0], axes=[0, 0, ()]), np.vecdot(x, x[:, 0], axes=[0, 0, ()])
    )
    out = np.zeros((4, 5))
    assert dot(x, y, axis=0, out=out) is out
    np.testing.assert_allclose(out, np.vecdot(x, y, axis=0))


@jt.guvectorize("(n),()->(n)")
def moving_sum(x, window, out):
    total = x[0] - x[0]
    for i in range(x.size):
        total += x[i]
        if i >= window:
            total -= x[i - window]
        out[i] = total


def test_axes_of_results():
    x, w = rng.integers(0, 9, (2, 3, 6)), np.array([1, 2, 6])
    expected = np.stack(
        [
            [
                [v[max(i - k + 1, 0) : i + 1].sum() for i in range(6)]
                for v, k in zip(row, w, strict=True)
            ]
            for row in x
        ]
    )
    got = moving_sum(x, w)
    np.testing.assert_array_equal(got, expected)
    assert got.dtype == np.int64
    swapped = moving_sum(np.moveaxis(x, -1, 0), w, axes=[0, (), 1])
    np.testing.assert_array_equal(swapped, np.moveaxis(expected, -1, 1))
    np.testing.assert_array_equal(
        moving_sum(np.moveaxis(x, -1, 0), w, axis=0), np.moveaxis(expected, -1, 0)
    )


def test_several_results_and_dtypes_of_their_own():
    @jt.guvectorize("(n),()->(),(n),()", otypes=[np.float64, np.bool_, np.int64])
    def above(x, limit, mean, mask, count):
        for i in range(x.size):
            mean[0] += x[i] / x.size
            mask[i] = x[i] > limit
            count[0] += mask[i]

    x = rng.integers(0, 9, (3, 5))
    mean, mask, count = above(x, 4)
    np.testing.assert_allclose(mean, x.mean(axis=1))
    np.testing.assert_array_equal(mask, x > 4)
    np.testing.assert_array_equal(count, (x > 4).sum(axis=1))
    assert (mean.dtype, mask.dtype, count.dtype) == (np.float64, np.bool_, np.int64)


def test_matrices():
    @jt.guvectorize("(m,k),(k,n)->(m,n)")
    def matmul(a, b, c):
        for i in range(a.shape[0]):
            for j in range(b.shape[1]):
                for p in range(a.shape[1]):
                    c[i, j] += a[i, p] * b[p, j]

    a, b = rng.random((5, 2, 3)), rng.random((3, 4))
    np.testing.assert_allclose(matmul(a, b), a @ b)
    np.testing.assert_allclose(jt.jit(jt.grad(lambda a: matmul(a, b).sum()))(a)[1, 0], b.sum(1))


def test_branches_that_each_example_takes_for_itself():
    @jt.guvectorize("()->()")
    def steps(n):
        count = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            count += 1
        return count

    np.testing.assert_array_equal(steps(np.array([[1, 6], [27, 2]])), [[0, 8], [111, 1]])


# What does not fit.


def test_numba_users_are_told_what_to_write():
    with pytest.raises(
        jt.errors.TransformError, match="(?s)no list of types.*write @jt.guvectorize"
    ):
        jt.guvectorize(["void(float64[:], float64[:])"], "(n)->(n)")


@pytest.mark.parametrize(
    ("signature", "f", "args", "message"),
    [
        ("(n)->(n", lambda x: x, (np.ones(3),), "is no signature"),
        (
            "(n)->(n)",
            lambda x, y, z: x,
            (np.ones(3),),
            "3 parameters, and the signature 1 arg.*2, and",
        ),
        ("(n)->(m)", lambda x, out: None, (np.ones(3),), "m of the signature .* is in no argument"),
        ("(n)->(n)", lambda x: x, (np.ones(3), 2), "was called with 2"),
        ("(n)->(n)", lambda x, out: x, (np.ones(3),), "assigns to its results, and returns"),
    ],
)
def test_what_does_not_fit(signature, f, args, message):
    with pytest.raises(jt.errors.TransformError, match=f"(?s){message}"):
        jt.guvectorize(signature, f)(*args)


def test_floats_do_not_become_integers_silently():
    def mean(x, out):
        for i in range(x.size):
            out[0] += x[i] / x.size

    with pytest.raises(jt.errors.DTypeError, match=r"(?s)float64 .* int64.*otypes=\[np.float64\]"):
        jt.guvectorize("(n)->()", mean)(np.arange(4))
    assert jt.guvectorize("(n)->()", mean, otypes=[float])(np.arange(4)) == 1.5
    assert jt.guvectorize("(n)->()", mean, otypes=[int])(np.arange(4)) == 0


def test_out_is_checked(dot):
    with pytest.raises(jt.errors.ShapeError, match=r"does not fit into out= of shape \(3,\)"):
        dot(np.ones((2, 3)), np.ones(3), out=np.zeros(3))
    with pytest.raises(TypeError, match="Cannot cast"):
        dot(np.ones((2, 3)), np.ones(3), out=np.zeros(2, int))


def test_axes_are_checked(dot):
    with pytest.raises(jt.errors.TransformError, match="axes=.* does not fit"):
        dot(np.ones(3), np.ones(3), axes=[0])
    with pytest.raises(jt.errors.TransformError, match="keepdims does not go"):
        moving_sum(np.ones(3), 1, keepdims=True)
