"""Contractions as users call them: einsum of any expression, NumPy's products, the dtype of sums."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import jitney as jt
from jitney.tracer.linear_algebra.contraction_order import EXACT, contraction_order, pairs_of_path

RNG = np.random.default_rng(0)


def same(f: Any, *arrays: Any, tolerance: float = 1e-12) -> None:
    """`f` compiled gives NumPy's result, or raises as NumPy does."""
    try:
        want = f(*arrays)
    except (ValueError, TypeError, IndexError) as error:
        with pytest.raises((ValueError, TypeError, IndexError)):
            jt.jit(f)(*arrays)
        assert "internal" not in str(error)
        return
    got = jt.jit(f)(*arrays)
    assert np.shape(got) == np.shape(want) and got.dtype == want.dtype
    if np.asarray(want).dtype.kind in "fc":
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(got, want)


def sample(shape: Any, dtype: Any = np.float64) -> Any:
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return RNG.random(shape) < 0.4
    if dtype.kind in "iu":
        return RNG.integers(0, 9, shape).astype(dtype)
    if dtype.kind == "c":
        return (RNG.normal(size=shape) + 1j * RNG.normal(size=shape)).astype(dtype)
    return RNG.normal(size=shape).astype(dtype)


# einsum


@st.composite
def einsums(draw: Any) -> tuple[str, list[Any]]:
    """An expression of up to five operands and arrays for it; now and then one that is wrong."""
    letters = draw(st.sampled_from(["ijk", "abcde", "iI"]))
    sizes = {c: draw(st.integers(0 if draw(st.integers(0, 9)) == 0 else 1, 3)) for c in letters}
    extra = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    kind = draw(st.sampled_from(["f8", "f8", "i8", "i1", "?", "c16", "f4"]))
    terms, arrays = [], []
    dotted = False
    for _ in range(draw(st.integers(1, 5))):
        axes = draw(st.text(st.sampled_from(letters), max_size=3))
        shape = [1 if draw(st.integers(0, 7)) == 0 else sizes[c] for c in axes]
        if draw(st.integers(0, 3)) == 0:
            at = draw(st.integers(0, len(axes)))
            axes = axes[:at] + "..." + axes[at:]
            own = extra[draw(st.integers(0, len(extra))) :]
            shape[at:at] = [1 if draw(st.integers(0, 4)) == 0 else n for n in own]
            dotted = True
        mixed = draw(st.sampled_from([kind, kind, "f8"]))
        terms.append(axes)
        arrays.append(sample(shape, mixed))
    text = ",".join(terms)
    if draw(st.booleans()):
        known = sorted(set("".join(terms)) - {"."})
        output = draw(st.permutations(known))[: draw(st.integers(0, len(known)))]
        text += "->" + ("..." if dotted else "") + "".join(output)
    return text, arrays


@given(einsums())
@settings(max_examples=50, deadline=None)
def test_einsum_of_any_expression(case: tuple[str, list[Any]]) -> None:
    text, arrays = case
    same(lambda *a: np.einsum(text, *a), *arrays, tolerance=2e-5)


@given(einsums())
@settings(max_examples=12, deadline=None)
def test_derivatives_of_any_expression(case: tuple[str, list[Any]]) -> None:
    text, arrays = case
    assume(all(a.dtype.kind == "f" for a in arrays))
    arrays = [a.astype(np.float64) for a in arrays]
    try:
        np.einsum(text, *arrays)
    except ValueError:
        assume(False)
    jt.check_grads(lambda *a: np.einsum(text, *a), tuple(arrays), order=2)


PATHS: list[Any] = [
    *(False, True, "greedy", "optimal", ("greedy", 10**6)),
    *(
        ["einsum_path", (1, 2), (0, 2), (0, 1)],
        ["einsum_path", (0, 1, 2), (0, 1)],
        [(0, 1), (0, 1)],
    ),
]


@pytest.mark.parametrize("how", PATHS, ids=str)
def test_einsum_follows_the_path(how: Any) -> None:
    shapes = [(3, 4), (4, 5), (5, 2), (2, 6)]
    arrays = [sample(s) for s in shapes]
    same(lambda *a: np.einsum("ij,jk,kl,lm->im", *a, optimize=how), *arrays)


def test_einsum_refuses_paths_that_do_not_fit() -> None:
    arrays = [sample((3, 3)) for _ in range(3)]
    for path in ([(0, 1)], [(0, 5), (0, 1)], [(0, 1), (0, 1), (0, 1)], [()]):
        how = ["einsum_path", *path]
        with pytest.raises(ValueError, match="path"):
            jt.jit(lambda *a, p=how: np.einsum("ij,jk,kl", *a, optimize=p))(*arrays)


def test_einsum_path_tells_numpys() -> None:
    arrays = [sample((3, 4)), sample((4, 5)), sample((5, 2))]
    found: list[Any] = []
    jt.jit(lambda *a: found.append(np.einsum_path("ij,jk,kl", *a)[0]) or a[0])(*arrays)
    assert found[0] == np.einsum_path("ij,jk,kl", *arrays)[0]


def test_einsum_arguments() -> None:
    x, y = sample((3, 4)), sample((4, 5))
    same(lambda x, y: np.einsum(x, [0, 1], y, [1, 2]), x, y)
    same(lambda x, y: np.einsum(x, [0, 1], y, [1, 2], [2, 0]), x, y)
    same(lambda x, y: np.einsum(x, [..., 1], y, [1, ...]), x, y)
    same(lambda x, y: np.einsum("ij,jk", x, y, dtype=np.float32), x, y)  # refused: not safe
    same(
        lambda x, y: np.einsum("ij,jk", x, y, dtype="f4", casting="same_kind"), x, y, tolerance=1e-5
    )
    same(lambda x, y: np.einsum("ij,jk", x, y, dtype="c16"), x, y)

    def into(x: Any, y: Any) -> Any:
        out = np.zeros_like(x, shape=(5, 3))
        assert np.einsum("ij,jk->ki", x, y, out=out) is out
        return out

    same(into, x, y)


def best(terms: list[str], output: str, sizes: dict[str, int]) -> int:
    """The least multiplications of any order of pairs, by trying all."""
    if len(terms) == 1:
        return 0
    found = []
    for i, j in itertools.combinations(range(len(terms)), 2):
        rest = [t for k, t in enumerate(terms) if k not in (i, j)]
        both = set(terms[i]) | set(terms[j])
        kept = "".join(c for c in sorted(both) if c in output or any(c in t for t in rest))
        cost = math.prod(sizes[c] for c in both)
        found.append(cost + best([*rest, kept], output, sizes))
    return min(found)


@given(st.lists(st.text("abcdef", min_size=1, max_size=3), min_size=2, max_size=5), st.data())
@settings(max_examples=30, deadline=None)
def test_the_order_of_few_operands_is_the_best(terms: list[str], data: Any) -> None:
    letters = sorted(set("".join(terms)))
    sizes = {c: data.draw(st.integers(1, 9)) for c in letters}
    output = "".join(data.draw(st.lists(st.sampled_from(letters), unique=True, max_size=3)))
    # A letter that one operand alone has is summed before anything is multiplied.
    alone = {c for c in letters if sum(c in t for t in terms) == 1 and c not in output}
    terms = ["".join(sorted(set(t) - alone)) for t in terms]
    pairs = contraction_order(terms, output, sizes)
    assert spent(pairs, terms, output, sizes) == best(terms, output, sizes)


def spent(
    pairs: list[tuple[int, int]], terms: list[str], output: str, sizes: dict[str, int]
) -> int:
    left = dict(enumerate(terms))
    total = 0
    for made, (i, j) in enumerate(pairs, len(terms)):
        both = set(left.pop(i)) | set(left.pop(j))
        total += math.prod(sizes[c] for c in both)
        rest = "".join(left.values())
        left[made] = "".join(sorted(c for c in both if c in output or c in rest))
    assert len(left) == 1
    return total


def test_many_operands_are_ordered_fast_and_well() -> None:
    n = 60  # a chain of matrices whose sizes differ: far more letters than the alphabet has
    letters = [chr(0x4E00 + k) for k in range(n + 1)]
    sizes = {c: 2 + 7 * k % 13 for k, c in enumerate(letters)}
    terms = [a + b for a, b in itertools.pairwise(letters)]
    pairs = contraction_order(terms, letters[0] + letters[-1], sizes)
    left_to_right = pairs_of_path([(0, 1)] + [(0, n - 2 - k) for k in range(n - 2)], n)
    output = letters[0] + letters[-1]
    assert spent(pairs, terms, output, sizes) <= spent(left_to_right, terms, output, sizes)
    assert n > EXACT


def test_long_chains_compile_to_few_products() -> None:
    n = 12
    arrays = [sample((4, 4)) * 0.3 for _ in range(n)]
    text = ",".join(chr(97 + k) + chr(98 + k) for k in range(n)) + "->" + "a" + chr(97 + n)
    f = jt.jit(lambda *a: np.einsum(text, *a))
    assert str(f.trace(*arrays)).count(" dot ") == n - 1
    np.testing.assert_allclose(f(*arrays), np.linalg.multi_dot(arrays), rtol=1e-10)


# The dtype of products and sums


PREFERENCES = [
    ("i1", "i4"),
    ("u1", "i4"),
    ("i1", "f4"),
    ("f2", "f4"),
    ("f2", "f8"),
    ("bfloat16", "f4"),
    ("float8_e4m3fn", "f4"),
    ("float8_e5m2", "bfloat16"),
    ("f4", "f8"),
    ("?", "i4"),
    ("f4", "c8"),
]
CONTRACTIONS = {
    "matmul": lambda a, b, **p: jt.matmul(a, b, **p),
    "linalg.matmul": lambda a, b, **p: jt.linalg.matmul(a, b, **p),
    "dot": lambda a, b, **p: jt.dot(a, b, **p),
    "inner": lambda a, b, **p: jt.inner(a, b.T, **p),
    "vdot": lambda a, b, **p: jt.vdot(a, b.T, **p),
    "vecdot": lambda a, b, **p: jt.vecdot(a, b.T, **p),
    "matvec": lambda a, b, **p: jt.matvec(a, b[:, 0], **p),
    "vecmat": lambda a, b, **p: jt.vecmat(a[0], b, **p),
    "tensordot": lambda a, b, **p: jt.tensordot(a, b, 1, **p),
    "einsum": lambda a, b, **p: jt.einsum("ij,jk->ki", a, b, **p),
    "einsum of three": lambda a, b, **p: jt.einsum("ij,jk,ki->i", a, b, a, **p),
    "dot with a number": lambda a, b, **p: jt.dot(a, b[0, 0], **p),
}


def named(dtype: str) -> Any:
    return np.dtype(getattr(jt, dtype) if hasattr(jt, dtype) else dtype)


@pytest.mark.parametrize("name", CONTRACTIONS)
@pytest.mark.parametrize(("given_dtype", "wanted"), PREFERENCES)
def test_preferred_dtypes(name: str, given_dtype: str, wanted: str) -> None:
    f = CONTRACTIONS[name]
    dtype, preferred = named(given_dtype), named(wanted)
    a, b = (np.abs(sample((17, 17), "f8")) * 9 for _ in range(2))
    a, b = (a > 8, b > 8) if dtype.kind == "b" else (a.astype(dtype), b.astype(dtype))
    exact = f(*(x.astype(np.float64) for x in (a, b)))
    for call in (f, jt.jit(f, static_argnames="preferred_element_type")):
        got = call(a, b, preferred_element_type=preferred)
        assert got.dtype == preferred
        tolerance = 0 if preferred.kind in "iu" else 3e-2 if wanted == "bfloat16" else 1e-5
        np.testing.assert_allclose(got.astype(complex), exact, rtol=tolerance)


def test_preferences_that_lose_values_are_refused() -> None:
    a = sample((3, 3))
    for call in (jt.matmul, jt.jit(jt.matmul, static_argnames="preferred_element_type")):
        with pytest.raises(TypeError, match=r"does not hold all values of float64"):
            call(a, a, preferred_element_type=np.float32)


def test_derivatives_have_the_dtypes_of_operands() -> None:
    a, b = sample((8, 8), np.float16), sample((8, 8), np.float16)

    def f(a: Any, b: Any) -> Any:
        return (jt.matmul(a, b, preferred_element_type=np.float32) ** 2).sum()

    da, db = jt.jit(jt.grad(f, argnums=(0, 1)))(a, b)
    assert da.dtype == db.dtype == np.float16
    a8, b8 = a.astype(np.float64), b.astype(np.float64)
    want = 2 * (a8 @ b8) @ b8.T
    np.testing.assert_allclose(da, want, rtol=2e-3, atol=2e-2)
    mixed = jt.grad(lambda a: jt.einsum("ij,jk->", a, b, preferred_element_type=np.float64))(a)
    assert mixed.dtype == np.float16


def test_large_products_of_small_numbers() -> None:
    a, b = (RNG.integers(-128, 128, (130, 300)).astype(np.int8) for _ in range(2))
    f = jt.jit(lambda a, b: jt.matmul(a, b.T, preferred_element_type=np.int32))
    np.testing.assert_array_equal(f(a, b), a.astype(np.int32) @ b.T.astype(np.int32))


@pytest.mark.parametrize("k", [1, 300, 1024, 1025, 3000])
@pytest.mark.parametrize(("left", "right"), [("i1", "i1"), ("u1", "u1"), ("u1", "i1"), ("?", "i1")])
def test_small_numbers_at_their_extremes(k: int, left: str, right: str) -> None:
    """Around the length from which sums of products are no integers that float32 holds."""
    info = {"i1": -128, "u1": 255, "?": 1}
    a, b = np.full((20, k), info[left], left), np.full((k, 20), info[right], right)
    a[::2], b[:, ::3] = 1, 1
    b[::2, 1] = 0
    for wide in (np.int32, np.int64):
        f = jt.jit(lambda a, b, wide=wide: jt.matmul(a, b, preferred_element_type=wide))
        np.testing.assert_array_equal(f(a, b), a.astype(wide) @ b.astype(wide))
        g = jt.jit(lambda a, b, wide=wide: a.astype(wide) @ b.astype(wide))
        np.testing.assert_array_equal(g(a, b), a.astype(wide) @ b.astype(wide))
    same(np.matmul, a > 0, b > 0)


# NumPy's products


DTYPES = ["?", "i1", "u4", "i8", "f2", "f4", "f8", "c8", "c16"]
SHAPES: list[tuple[Any, Any]] = [
    *(((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4))),
    *(((5, 2, 3), (5, 3, 4)), ((5, 1, 2, 3), (1, 6, 3, 4)), ((2, 3), (5, 3, 4)), ((3,), (5, 3, 4))),
    *(((), (3,)), ((3,), ()), ((), ()), ((2, 0), (0, 3)), ((0, 3), (3, 2)), ((2, 3), (3, 0))),
    *(((2, 3), (4, 5)), ((5, 2, 3), (4, 3, 2)), ((0, 2, 3), (0, 3, 2)), ((1, 1), (1, 1))),
]
FUNCTIONS: dict[str, Any] = {
    "matmul": np.matmul,
    "dot": np.dot,
    "vdot": np.vdot,
    "inner": np.inner,
    "outer": np.outer,
    "kron": np.kron,
    "vecdot": np.vecdot,
    "matvec": np.matvec,
    "vecmat": np.vecmat,
    "tensordot": np.tensordot,
    "tensordot 0": lambda a, b: np.tensordot(a, b, 0),
    "tensordot 1": lambda a, b: np.tensordot(a, b, 1),
    "tensordot axes": lambda a, b: np.tensordot(a, b, (-1, 0)),
    "tensordot lists": lambda a, b: np.tensordot(a, b, ([0, -1], [-1, 0])),
    "tensordot twice": lambda a, b: np.tensordot(a, b, ([0, 0], [0, 0])),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_products_of_all_shapes(name: str, shapes: Any) -> None:
    same(FUNCTIONS[name], *(sample(s) for s in shapes))


@pytest.mark.parametrize("name", ["matmul", "dot", "inner", "vdot", "vecdot", "outer", "kron"])
@pytest.mark.parametrize("left", DTYPES)
def test_products_of_mixed_dtypes(name: str, left: str) -> None:
    f, a, pairs = FUNCTIONS[name], sample((3, 3), left), []
    for right in DTYPES:
        b = sample((3, 3), right)
        try:
            pairs.append((right, b, f(a, b)))
        except TypeError:
            same(f, a, b)
    found = jt.jit(lambda a, *others: [f(a, b) for b in others])(a, *(b for _, b, _ in pairs))
    for got, (right, _, want) in zip(found, pairs, strict=True):
        tolerance = 0 if np.asarray(want).dtype.kind in "biu" else 1e-5
        tolerance = 3e-2 if "f2" in (left, right) else tolerance
        assert np.shape(got) == np.shape(want) and got.dtype == want.dtype, right
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, err_msg=right)


def test_vectors_of_complex_numbers_are_conjugated_where_numpy_does() -> None:
    a, m = sample((4, 3), "c16"), sample((4, 3, 5), "c16")
    same(np.vecmat, a, m)
    same(np.vecdot, a, a)
    same(np.matvec, m.swapaxes(1, 2), a)
    same(np.vecmat, a.real, m)
    same(np.vdot, a, a)


@pytest.mark.parametrize(
    "call",
    [
        lambda a, b: np.matmul(a, b, axes=[(0, 1), (-1, 0), (1, 0)]),
        lambda a, b: np.matmul(a, b, axes=[(0, 1), (-1, 0), (0, 2)]),
        lambda a, b: np.matmul(a, b, axes=[(-1, -2), (0, 1), (-1, -2)]),
        lambda a, b: np.matmul(a[0, 0], b, axes=[(0,), (0, 1), (0,)]),
        lambda a, b: np.vecdot(a, b, axis=0),
        lambda a, b: np.vecdot(a, b, axis=1, keepdims=True),
        lambda a, b: np.vecdot(a, b, axes=[0, 1]),
        lambda a, b: np.vecdot(a, b, axes=[0, 1, ()]),
        lambda a, b: np.vecdot(a, b, keepdims=True, axes=[0, 1, 2]),
        lambda a, b: np.vecdot(a, b, axis=5),
        lambda a, b: np.vecdot(a, b, axis=0, axes=[0, 0]),
        lambda a, b: np.matmul(a, b, axis=0),
        lambda a, b: np.matmul(a, b, keepdims=True),
        lambda a, b: np.matvec(a, b, axes=[(1, 0), 2, 0]),
        lambda a, b: np.vecmat(a, b, axes=[1, (1, 0), 0]),
        lambda a, b: np.matmul(a, b, axes=[(0, 1)]),
        lambda a, b: np.matmul(a, b, dtype=np.float32),
        lambda a, b: np.matmul(a, b, dtype=np.int32),
        lambda a, b: np.matmul(a, b, dtype=np.int64, casting="unsafe"),
        lambda a, b: np.vecdot(a, b, dtype="c16"),
        lambda a, b: np.linalg.vecdot(a, b, axis=1),
    ],
)
def test_arguments_of_ufuncs_with_signatures(call: Any) -> None:
    a, b = (np.rint(sample((3, 3, 3)) * 4) for _ in range(2))
    same(call, a, b)


def test_out_of_products() -> None:
    def f(a: Any, b: Any) -> Any:
        out = np.zeros_like(a)
        np.matmul(a, b, out=out)
        vector = np.zeros_like(a[0])
        np.matvec(a, b[0], out=(vector,))
        return out, vector

    a, b = sample((3, 3)), sample((3, 3))
    for got, want in zip(jt.jit(f)(a, b), f(a, b), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("name", ["matvec", "vecmat", "vecdot", "kron", "tensordot 1", "inner"])
def test_derivatives_of_products(name: str) -> None:
    for shapes in [((3, 3, 3), (3, 3)), ((3, 3), (3, 3, 3))]:
        jt.check_grads(FUNCTIONS[name], tuple(sample(s) for s in shapes), order=2)
