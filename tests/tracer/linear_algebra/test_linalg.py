"""Linear algebra by LAPACK: compiled against NumPy, derivatives against finite differences."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import REAL_AND_COMPLEX, check_gradients, numbers

import jitney as jt

Array = np.ndarray[Any, Any]
L = np.linalg
DTYPES = (np.float32, np.float64, np.complex64, np.complex128)


def definite(shape: tuple[int, ...], dtype: Any = np.float64, seed: int = 0) -> Array:
    x = numbers(shape, dtype, seed)
    made = x @ np.swapaxes(x.conj(), -1, -2) + 3 * np.eye(shape[-1])
    return made.astype(dtype)


def tolerance(dtype: Any) -> float:
    return 1e-11 if np.dtype(dtype) in (np.float64, np.complex128) else 2e-4


def check_same(f: Callable[..., Any], *arrays: Array, exact: bool = False) -> None:
    """Compiled, `f` gives what it gives under NumPy: structure, dtypes, shapes, values."""
    compare(f(*arrays), jt.jit(f)(*arrays), exact)


def check_each(*calls: tuple[Any, ...]) -> None:
    """`check_same` of functions with their arrays, which are compiled as one program."""
    functions, arrays = zip(*((f, given) for f, *given in calls), strict=True)

    def program(arrays: Any) -> Any:
        return [f(*given) for f, given in zip(functions, arrays, strict=True)]

    for expected, got in zip(program(arrays), jt.jit(program)(arrays), strict=True):
        compare(expected, got)


def compare(expected: Any, got: Any, exact: bool = False) -> None:
    assert type(expected) is type(got) or not isinstance(expected, tuple)
    pairs = zip(expected, got, strict=True) if isinstance(expected, tuple) else [(expected, got)]
    for want, have in pairs:
        want, have = np.asarray(want), np.asarray(have)
        assert want.dtype == have.dtype
        assert want.shape == have.shape
        tol = 0 if exact else tolerance(want.dtype)
        np.testing.assert_allclose(have, want, rtol=tol, atol=tol)


OF_ANY = ("inv", "det", "slogdet", "svd", "svdvals", "qr", "pinv", "matrix_rank")
OF_HERMITIAN = ("cholesky", "eigh", "eigvalsh")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OF_ANY + OF_HERMITIAN)
def test_functions_give_what_numpy_gives(name: str, dtype: Any) -> None:
    make = definite if name in OF_HERMITIAN else numbers
    shapes = ((4, 4), (3, 5, 5), (2, 3, 2, 2), (1, 1), (0, 3, 3), (0, 0))
    check_each(*((lambda a: getattr(L, name)(a), make(shape, dtype)) for shape in shapes))


@pytest.mark.parametrize("name", ("svd", "svdvals", "qr", "pinv", "matrix_rank"))
def test_matrices_that_are_not_square(name: str) -> None:
    shapes = ((5, 3), (3, 5), (2, 4, 1), (1, 4), (3, 0), (0, 3))
    check_each(*((lambda a: getattr(L, name)(a), numbers(shape)) for shape in shapes))


def test_options() -> None:
    a, h, tall = numbers((4, 4)), definite((2, 4, 4), np.complex128), numbers((5, 3))
    z = numbers((4, 4), np.complex128)
    check_each(
        (lambda a: L.cholesky(a, upper=True), h),
        (lambda a: L.eigh(a, "U"), h),
        (lambda a: L.eigvalsh(a, UPLO="u"), h),
        (lambda a: L.svd(a, full_matrices=False), tall),
        (lambda a: L.svd(a, compute_uv=False), tall),
        (lambda a: L.svd(a, compute_uv=False, hermitian=True), h),
        (lambda a: L.qr(a, "complete"), tall),
        (lambda a: L.qr(a, "r"), tall.T),
        (lambda a: L.qr(a, "raw"), tall),
        (lambda a: L.pinv(a, rcond=0.2), tall),
        (lambda a: L.pinv(a, rtol=0.2), z),
        (lambda a: L.pinv(a, hermitian=True), h),
        (lambda a: L.matrix_rank(a, tol=0.9), a),
        (lambda a: L.matrix_rank(a, rtol=0.1), a),
        (lambda a: L.matrix_rank(a), np.ones(3)),
        (lambda a: L.matrix_power(a, -3), a),
        (lambda a: L.norm(a, 2), a),
        (lambda a: L.norm(a, -2, axis=(0, 2), keepdims=True), h),
        (lambda a: L.norm(a, "nuc"), tall),
        *((lambda a, p=p: L.cond(a, p), z) for p in (None, 2, -2, 1, -1, np.inf, "fro")),
        (lambda a: L.cond(a), tall),
        (lambda a: L.tensorinv(a.reshape(2, 2, 2, 2)), a),
        (lambda a, b: L.tensorsolve(a.reshape(2, 2, 4), b), a, numbers((2, 2))),
        (lambda a, b: L.tensorsolve(a.reshape(2, 4, 2), b, axes=(1,)), a, numbers((2, 2))),
    )


def test_hermitian_svd_multiplies_to_the_matrix() -> None:
    h = definite((3, 4, 4), np.complex128) - 4 * np.eye(4)
    u, s, vh = jt.jit(lambda a: L.svd(a, hermitian=True))(h)
    np.testing.assert_allclose((u * s[:, None, :]) @ vh, h, atol=1e-12)
    np.testing.assert_allclose(s, L.svd(h, compute_uv=False), atol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
def test_solve_broadcasts(dtype: Any) -> None:
    for a, b in (
        ((3, 3), (3,)),
        ((3, 3), (3, 2)),
        ((4, 3, 3), (3,)),
        ((4, 3, 3), (3, 2)),
        ((3, 3), (4, 3, 2)),
        ((2, 1, 3, 3), (4, 3, 0)),
        ((0, 0), (0, 2)),
    ):
        check_same(lambda a, b: L.solve(a, b), numbers(a, dtype), numbers(b, dtype, 1))
    check_same(lambda a, b: L.solve(a, b), np.array([[2, 1], [1, 3]]), np.array([1, 2]))


@pytest.mark.parametrize("dtype", REAL_AND_COMPLEX)
def test_eig(dtype: Any) -> None:
    for shape in ((3, 3), (2, 4, 4), (0, 0)):
        a = numbers(shape, dtype)
        w, v = jt.jit(lambda a: L.eig(a), autograph=False)(a)
        assert w.dtype == v.dtype == np.complex128
        w, v = jt.jit(lambda a: L.eig(a))(a)
        assert w.dtype == v.dtype == L.eig(a)[0].dtype
        np.testing.assert_allclose(a @ v, v * w[..., None, :], atol=1e-12)
        np.testing.assert_allclose(w, L.eig(a)[0], atol=1e-12)
        np.testing.assert_array_equal(jt.jit(lambda a: L.eigvals(a))(a), L.eigvals(a))
    bad = np.stack([np.eye(2), np.full((2, 2), np.nan)])
    w, v = jt.jit(lambda a: L.eig(a))(bad)
    assert np.isfinite(w[0]).all() and np.isnan(w[1]).all() and np.isnan(v[1]).all()


def test_least_squares() -> None:
    for m, n, k in ((5, 3, 2), (3, 5, 1), (4, 4, 3)):
        for dtype in DTYPES:
            a, b = numbers((m, n), dtype), numbers((m, k), dtype, 1)
            check_same(lambda a, b: L.lstsq(a, b), a, b)
    check_same(lambda a, b: L.lstsq(a, b, rcond=1e-3), numbers((5, 3)), numbers((5,)))
    for m, n, k in ((3, 2, 0), (3, 0, 2), (0, 2, 2), (2, 3, 0)):
        check_same(lambda a, b: L.lstsq(a, b), numbers((m, n)), numbers((m, k)))
    low = np.outer(np.arange(1.0, 5), np.ones(3))  # NumPy leaves the residuals away
    x, residuals, rank, _ = jt.jit(lambda a, b: L.lstsq(a, b))(low, numbers((4, 2)))
    np.testing.assert_allclose(x, L.lstsq(low, numbers((4, 2)))[0], atol=1e-12)
    assert rank == 1 and residuals.shape == (2,) and np.isnan(residuals).all()


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_layouts(data: st.DataObject) -> None:
    """Transposed, reversed, broadcast, read-only and sliced operands; by LAPACK, NumPy's bits."""
    base = numbers((5, 10, 10), data.draw(st.sampled_from(REAL_AND_COMPLEX)))
    views = (
        base.swapaxes(1, 2),
        base[::-1, ::-1],
        np.broadcast_to(base[0], (4, 10, 10)),
        base[:, ::2, 1::2],
        np.asfortranarray(base),
        base.transpose(2, 0, 1)[:3, :, :5],
    )
    view = data.draw(st.sampled_from(views))
    view.flags.writeable = False
    name = data.draw(st.sampled_from(("inv", "det", "svdvals")))
    by_lapack = name != "inv" or base.dtype.kind == "c"
    check_same(lambda a: getattr(L, name)(a), view, exact=by_lapack)


def test_failures_are_numpys_and_name_the_line() -> None:
    singular, negative = np.zeros((3, 3)), -np.eye(3)
    stack = np.stack([np.eye(3), singular])
    for f, x, text in (
        (lambda a: L.inv(a), singular, "Singular matrix"),
        (lambda a: L.inv(a) + 1, stack, "Singular matrix"),
        (lambda a: L.solve(a, a), singular + 0j, "Singular matrix"),
        (lambda a: L.cholesky(a), negative, "not positive definite"),
    ):
        with pytest.raises(L.LinAlgError, match=text) as caught:
            jt.jit(f)(x)
        assert "test_linalg.py" in caught.value.__notes__[0]
        with pytest.raises(L.LinAlgError, match=text):
            jt.jit(f, backend="interpreter")(x)
    fine = jt.jit(lambda a: L.inv(a))
    with pytest.raises(L.LinAlgError):
        fine(singular)
    np.testing.assert_array_equal(fine(np.eye(3)), np.eye(3))  # the next call is not concerned


def test_what_was_undefined_before_is_no_failure() -> None:
    """The processor's flag "invalid" tells of failures; it may be set by what ran before."""

    def f(a: Any, x: Any) -> Any:
        return L.inv(a + 0 * np.nan_to_num(np.sqrt(x) - np.inf * (x < 0)).sum())

    x = np.array([-1.0, 4.0, np.inf, -np.inf] * 8)
    np.testing.assert_array_equal(jt.jit(f)(np.eye(3), x), np.eye(3))


def test_wrong_shapes() -> None:
    for f, shape in (
        (lambda a: L.inv(a), (3, 4)),
        (lambda a: L.inv(a), (3,)),
        (lambda a: L.cholesky(a), (2, 3, 4)),
        (lambda a: L.svd(a), (3,)),
        (lambda a: L.cond(a), (0, 0)),
        (lambda a: L.lstsq(a, a[0]), (4, 3)),
        (lambda a: L.tensorsolve(a, a), (4, 3)),
    ):
        with pytest.raises(L.LinAlgError):
            f(np.ones(shape))
        with pytest.raises(L.LinAlgError):
            jt.jit(f)(np.ones(shape))
    with pytest.raises(ValueError, match="b has 2 rows"):
        jt.jit(lambda a, b: L.solve(a, b))(np.eye(3), np.ones((2, 2)))


def moduli(vectors: Any) -> Any:
    """What of eigenvectors does not depend on their phase."""
    return abs(vectors) ** 2


SQUARE: dict[str, Callable[..., Any]] = {
    "inv": lambda a: L.inv(a),
    "det": lambda a: L.det(a),
    "slogdet": lambda a: tuple(L.slogdet(a)),
    "eigvals": lambda a: L.eigvals(a),
    "eig": lambda a: tuple(L.eig(a)),
    "norm": lambda a: (L.norm(a, 2, axis=(-2, -1)), L.norm(a, "nuc", axis=(-2, -1))),
    "lu": lambda a: jt.linalg.lu(a)[1:],
    "expm": lambda a: jt.linalg.expm(0.4 * a),
}
HERMITIAN: dict[str, Callable[..., Any]] = {
    "cholesky": lambda a: L.cholesky(a),
    "cholesky_upper": lambda a: L.cholesky(a, upper=True),
    "eigvalsh": lambda a: L.eigvalsh(a),
    "eigh": lambda a: (lambda w, v: (w, moduli(v)))(*L.eigh(a)),
    "eigh_upper": lambda a: (lambda w, v: (w, moduli(v)))(*L.eigh(a, "U")),
}
ANY_SHAPE: dict[str, Callable[..., Any]] = {
    "svdvals": lambda a: L.svd(a, compute_uv=False),
    "svd": lambda a: (lambda u, s, v: (moduli(u), s, moduli(v), u @ v))(*L.svd(a, False)),
    "qr": lambda a: tuple(L.qr(a)),
    "r": lambda a: L.qr(a, "r"),
    "pinv": lambda a: L.pinv(a),
}


@pytest.mark.parametrize("dtype", REAL_AND_COMPLEX)
@pytest.mark.parametrize("name", [*SQUARE, *HERMITIAN])
def test_gradients(name: str, dtype: Any) -> None:
    f = SQUARE.get(name) or HERMITIAN[name]
    make = definite if name in HERMITIAN else numbers
    check_gradients(f, make((2, 3, 3), dtype, 5))


@pytest.mark.parametrize("dtype", REAL_AND_COMPLEX)
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 2, 3)])
@pytest.mark.parametrize("name", list(ANY_SHAPE))
def test_gradients_of_any_shape(name: str, shape: tuple[int, ...], dtype: Any) -> None:
    check_gradients(ANY_SHAPE[name], numbers(shape, dtype, 3))


@pytest.mark.parametrize("dtype", REAL_AND_COMPLEX)
def test_gradients_of_systems(dtype: Any) -> None:
    a, tall, wide = numbers((3, 3), dtype), numbers((4, 2), dtype), numbers((2, 4), dtype)
    check_gradients(lambda a, b: L.solve(a, b), a, numbers((2, 3, 1), dtype, 1))
    check_gradients(lambda a, b: L.lstsq(a, b)[0], tall, numbers((4, 2), dtype, 1))
    check_gradients(lambda a, b: L.lstsq(a, b)[1], tall, numbers((4, 2), dtype, 1))
    check_gradients(
        lambda a, b: (lambda r: (r[0], r[3]))(L.lstsq(a, b)), wide, numbers((2,), dtype)
    )
    check_gradients(lambda a, b: jt.linalg.solve_triangular(a, b, trans="C"), a, numbers((3, 2)))


def projector(q: Any) -> Any:
    """What of a basis does not depend on which one of its space it is."""
    return q @ np.swapaxes(q.conj(), -1, -2)


@pytest.mark.parametrize("dtype", REAL_AND_COMPLEX)
def test_gradients_of_completed_bases(dtype: Any) -> None:
    """Vectors that are any basis of what remains: what does not depend on the choice is right."""
    tall = numbers((5, 2), dtype)
    for f in (
        lambda a: (lambda u, s, vh: (projector(u[:, 2:]), s, u[:, :2] @ vh))(*L.svd(a)),
        lambda a: projector(L.svd(a.T)[2][2:].T),
        lambda a: (lambda q, r: (projector(q[:, 2:]), q[:, :2], r))(*L.qr(a, "complete")),
    ):
        check_gradients(f, tall)


def cofactors(a: Array) -> Array:
    n = len(a)
    minors = [
        [L.det(np.delete(np.delete(a, i, 0), j, 1)) * (-1) ** (i + j) for j in range(n)]
        for i in range(n)
    ]
    return np.array(minors)


@pytest.mark.parametrize(
    ("n", "dtype"),
    [(n, np.float64) for n in (1, 2, 4, 5)] + [(n, np.complex128) for n in (1, 3, 6)],
)
def test_gradients_of_determinants_of_singular_matrices(n: int, dtype: Any) -> None:
    """They are cofactors at matrices of every rank, and have derivatives there."""
    holomorphic = np.dtype(dtype).kind == "c"
    rng = np.random.default_rng(n)

    def gradient(a: Any) -> Any:
        return jt.grad(lambda a: L.det(a), holomorphic=holomorphic)(a)

    first, step = jt.jit(gradient), 1e-6
    direction = numbers((n, n), dtype, 1)
    forward = jt.jit(lambda a: jt.jvp(gradient, (a,), (direction,))[1])
    reverse = jt.jit(jt.grad(lambda a: (gradient(a) * direction).sum(), holomorphic=holomorphic))
    for rank in range(max(n - 3, 0), n + 1):
        mixed = np.triu(rng.integers(-2, 3, (n, n)), 1) + np.eye(n)
        core = np.diag(np.where(np.arange(n) < rank, rng.integers(1, 4, n), 0))
        a = ((mixed @ core @ mixed.T) * (1 + 2j if holomorphic else 1)).astype(dtype)
        assert rank == n or L.det(a) == 0
        np.testing.assert_allclose(first(a), cofactors(a), rtol=1e-9, atol=1e-8)
        change = cofactors(a + step * direction) - cofactors(a - step * direction)
        for found in (forward(a), reverse(a)):
            scale = max(abs(change).max() / step, 1)
            np.testing.assert_allclose(found, change / (2 * step), atol=1e-5 * scale)


def test_gradients_of_determinants_in_batches() -> None:
    stack = np.stack([np.eye(6), np.zeros((6, 6)), np.diag([1.0, 2, 3, 4, 5, 0]), 2 * np.eye(6)])
    got = jt.jit(jt.grad(lambda a: L.det(a).sum()))(stack)
    np.testing.assert_allclose(got, [cofactors(a) for a in stack], atol=1e-9)
    each = jt.jit(jt.vmap(jt.grad(lambda a: L.det(a))))
    np.testing.assert_allclose(each(stack), got, atol=1e-12)
    third = jt.grad(jt.grad(jt.grad(lambda x: L.det(x * np.eye(6)))))
    assert third(2.0) == pytest.approx(6 * 5 * 4 * 8)
    assert jt.grad(lambda a: L.det(a))(np.zeros((0, 0))).shape == (0, 0)


def test_gradients_where_values_are_equal() -> None:
    """Vectors of equal values have no derivative; the values do."""
    one = np.eye(4)
    for f, want in (
        (lambda a: L.eigvalsh(a).sum(), one),
        (lambda a: L.norm(a, "nuc"), one),
        (lambda a: (L.svd(a, compute_uv=False) ** 2).sum(), 2 * one),
        (lambda a: L.eigh(a)[0].sum(), one),
    ):
        np.testing.assert_allclose(jt.jit(jt.grad(f))(one), want, atol=1e-12)
    turned = np.zeros((4, 4))
    turned[0, 1], turned[1, 0] = 0.5, -0.5
    got = jt.jit(jt.grad(lambda a: jt.linalg.polar(a)[0][0, 1]))(one)
    np.testing.assert_allclose(got, turned, atol=1e-12)
    assert np.isnan(jt.jit(jt.grad(lambda a: L.eigh(a)[1].sum()))(one)).any()


def test_batched_and_in_loops() -> None:
    a, b = numbers((3, 3)), numbers((7, 3, 2))
    many = jt.jit(jt.vmap(lambda a, b: L.solve(a, b), in_axes=(None, 0)))
    np.testing.assert_allclose(many(a, b), L.solve(a, b), atol=1e-12)
    each = jt.jit(jt.vmap(lambda a: L.svd(a, full_matrices=False)))
    check_same(lambda a: tuple(each(a)), b)

    def newton(x: Any) -> Any:
        return jt.fori_loop(0, 6, lambda i, x: 0.5 * (x + L.inv(x)), x)

    x = definite((4, 4))
    np.testing.assert_allclose(jt.jit(newton)(x), np.eye(4), atol=1e-3)
    assert jt.jit(jt.grad(lambda x: newton(x).sum()))(x).shape == (4, 4)


def test_examples_that_take_another_branch_do_not_fail() -> None:
    f = jt.jit(jt.vmap(lambda a: jt.cond(a[0, 0] > 0, lambda a: L.inv(a), lambda a: a, a)))
    stack = np.stack([np.eye(2), np.zeros((2, 2))])
    np.testing.assert_array_equal(f(stack), stack)


def test_results_do_not_depend_on_threads() -> None:
    stack = numbers((3000, 6, 6))
    f = jt.jit(lambda a: (L.inv(a), L.eigh(a)[1]))
    with jt.threads(1):
        alone = f(stack)
    with jt.threads(4):
        together = f(stack)
    for x, y in zip(alone, together, strict=True):
        np.testing.assert_array_equal(x, y)


def test_threads_of_the_blas_are_given_back() -> None:
    """Batches run with one thread of OpenBLAS per thread of ours; afterwards it has its own again."""
    from jitney.runtime.library_loops import _SHARED, _blas

    get = _blas("get")
    if get.__name__ == "abs":
        pytest.skip("NumPy has another BLAS")
    before = get()
    f = jt.jit(lambda a: L.eigvalsh(a))
    stack = definite((40, 24, 24))
    workers = [threading.Thread(target=lambda: [f(stack) for _ in range(5)]) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    with pytest.raises(L.LinAlgError):
        f(stack * np.nan)
    assert get() == before
    assert list(_SHARED[:2]) == [0, 0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_matrix_exponential(dtype: Any) -> None:
    for scale in (1e-9, 1.0, 40.0):
        a = (numbers((5, 5)) * scale).astype(dtype)
        expected = scipy.linalg.expm(a.astype(np.result_type(dtype, np.float64)))
        for f in (jt.linalg.expm, jt.jit(jt.linalg.expm)):
            got = f(a)
            assert got.dtype == dtype
            limit = 1e-12 if np.finfo(dtype).bits == 64 else 1e-5
            assert abs(got - expected).max() <= limit * abs(expected).max()
    stack = numbers((2, 3, 4, 4))
    one_by_one = np.array([[scipy.linalg.expm(x) for x in row] for row in stack])
    np.testing.assert_allclose(jt.jit(jt.linalg.expm)(stack), one_by_one, rtol=1e-9)
    assert jt.linalg.expm(np.zeros((0, 0))).shape == (0, 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_lu(dtype: Any) -> None:
    for shape in ((4, 4), (3, 5), (5, 3), (2, 4, 4), (1, 1)):
        a = numbers(shape, dtype)
        for f in (jt.linalg.lu, jt.jit(jt.linalg.lu)):
            p, lower, upper = f(a)
            assert lower.dtype == upper.dtype == dtype
            np.testing.assert_allclose(p @ lower @ upper, a, atol=tolerance(dtype))
            assert abs(lower).max() <= 1 + 1e-6
            np.testing.assert_array_equal(upper, np.triu(upper))
    p, lower, upper = jt.jit(jt.linalg.lu)(np.zeros((3, 3)))
    np.testing.assert_array_equal(lower, np.eye(3))
    expected = scipy.linalg.lu(numbers((6, 6)))
    for want, have in zip(expected, jt.jit(jt.linalg.lu)(numbers((6, 6))), strict=True):
        np.testing.assert_allclose(have, want, atol=1e-12)


@pytest.mark.parametrize("dtype", REAL_AND_COMPLEX)
def test_triangular_systems(dtype: Any) -> None:
    a = numbers((5, 5), dtype) + 4 * np.eye(5)
    for options in (
        {},
        {"lower": True},
        {"lower": True, "trans": 1},
        {"trans": "C", "unit_diagonal": True},
    ):
        for b in (numbers((5,), dtype), numbers((5, 2), dtype)):
            expected = scipy.linalg.solve_triangular(a, b, **options)
            f = jt.jit(lambda a, b, o=options: jt.linalg.solve_triangular(a, b, **o))
            np.testing.assert_allclose(f(a, b), expected, atol=1e-10)
            np.testing.assert_allclose(jt.linalg.solve_triangular(a, b, **options), expected)
    with pytest.raises(ValueError, match="trans"):
        jt.linalg.solve_triangular(a, a, trans="X")


def test_all_of_numpy_linalg_is_there() -> None:
    missing = [n for n in L.__all__ if not hasattr(jt.linalg, n)]
    assert missing == ["LinAlgError"]


def test_edges_are_numpys() -> None:
    """Empty matrices, shapes that do not fit, and what has no dims."""
    cases: list[tuple[Callable[..., Any], tuple[int, ...]]] = [
        *((lambda a, o=o: L.norm(a, o), s) for o in (1, np.inf) for s in ((0, 3), (3, 0), (0, 0))),
        (lambda a: L.norm(a, np.inf), (0,)),
        (lambda a: L.norm(a, np.inf, axis=-1), (3, 0)),
        (lambda a: L.norm(a, 2, axis=-1), ()),
        (lambda a: L.matrix_norm(a), (3,)),
        (lambda a: L.matrix_power(a, 2), (4, 2)),
        (lambda a: L.multi_dot([a, a]), (2, 3, 3)),
        (lambda a: L.multi_dot([a, a, a]), (2, 3, 3)),
        (lambda a: L.outer(a, a), (2, 2)),
        (lambda a: L.cross(a, a), (4, 2)),
        (lambda a: L.cross(a, a), (4, 3)),
        (lambda a: L.pinv(a), (0, 3)),
        (lambda a: L.det(a), (3, 3)),
        (lambda a: L.cond(a), (3, 3)),
    ]
    for f, shape in cases:
        for dtype in (np.float64, np.float32, np.int32):
            x = numbers(shape).astype(dtype)
            try:
                expected = f(x)
            except Exception as error:
                with pytest.raises(type(error)):
                    jt.jit(f)(x)
            else:
                got = jt.jit(f)(x)
                assert type(got) is type(expected)
                check_same(f, x)
    with pytest.raises(L.LinAlgError, match="SVD did not converge"):
        jt.jit(lambda a: L.pinv(a))(np.full((3, 3), np.nan))
    for f in (L.inv, L.svd, L.pinv, L.qr, L.eigh):
        with pytest.raises(TypeError, match="float16"):
            jt.jit(lambda a, f=f: f(a))(np.eye(3, dtype=np.float16))
