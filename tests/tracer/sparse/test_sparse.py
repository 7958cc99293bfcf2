"""`jt.sparse` against SciPy and finite differences."""

from __future__ import annotations

import doctest
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as ss
from golden_texts import Golden

import jitney as jt
from jitney.ir.interpreter import evaluate
from jitney.ir.passes.compositions import compose

rng = np.random.default_rng(1)
A = ss.random_array((6, 9), density=0.4, format="csr", rng=rng)
X, Y = rng.normal(size=9), rng.normal(size=6)
WIDE, TALL = rng.normal(size=(9, 11)), rng.normal(size=(6, 19))
B = jt.sparse.from_scipy(A)
FORMATS = ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")


def products(a: Any, x: Any, y: Any, wide: Any, tall: Any) -> Any:
    return (
        a @ x,
        a.T @ y,
        y @ a,
        a @ wide,
        a.T @ tall,
        tall.T @ a,
        (2 * a).dot(x) / 2,
        a.sum(axis=1),
    )


def close(got: Any, want: Any) -> None:
    for a, b in zip(got, want, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-5 if a.dtype == np.float32 else 1e-12, atol=1e-12)


def test_products_are_scipys() -> None:
    operands = (X, Y, WIDE, TALL)
    compiled = jt.jit(products)
    for form in FORMATS:
        a = A.asformat(form)
        close(compiled(a, *operands), products(A, *operands))
        close(products(jt.sparse.from_scipy(a), *operands), products(A, *operands))
    close(interpreted(products, ss.csr_matrix(A), *operands), products(A, *operands))
    for dtype in (np.float32, np.complex128, np.int64, bool):
        a, *others = ((10 * v).astype(dtype) for v in (A, *operands))
        for form in ("csr", "coo"):
            m = jt.sparse.from_scipy(a.asformat(form))
            f = lambda m, x, y: (m @ x, y @ m, m.to_dense())  # noqa: E731
            close(interpreted(f, m, *others[:2]), (a @ others[0], others[1] @ a, a.toarray()))
    close([B @ X.astype(np.float32)], [A @ X.astype(np.float32)])


def interpreted(f: Callable[..., Any], *args: Any) -> Any:
    return jt.jit(f, backend="interpreter")(*args)


def test_gpus_get_scatters() -> None:
    f = jt.jit(lambda m, wide, tall: (m @ wide, m.T @ tall))
    graph = compose(f.trace(B, WIDE, TALL))
    assert not any(op.name in ("scan", "while", "sparse_dot") for op in graph.walk())
    close(evaluate(graph, [B.data, B.indices, B.indptr, WIDE, TALL]), (A @ WIDE, A.T @ TALL))


def test_derivatives_of_elements_and_operands() -> None:
    for a in (B, B.T, B.tocoo()):
        x, wide = rng.normal(size=a.shape[1]), rng.normal(size=(a.shape[1], 3))

        def f(data: Any, x: Any, wide: Any, a: Any = a) -> Any:
            m = a.with_data(data)
            return m @ x, (m @ wide) ** 2, m.to_dense()

        jt.check_grads(f, (a.data, x, wide), order=2)
        loss = lambda d, x, a=a: ((a.with_data(d) @ x) ** 2).sum()  # noqa: E731
        got = interpreted(jt.grad(loss, (0, 1)), a.data, x)
        np.testing.assert_allclose(got[1], 2 * a.T.to_dense() @ (a.to_dense() @ x), rtol=1e-9)
        rows, columns = a.tocoo().row, a.tocoo().col
        np.testing.assert_allclose(got[0], 2 * (a @ x)[rows] * x[columns], rtol=1e-9)


def test_batches() -> None:
    data, xs = np.stack([B.data, 2 * B.data]), np.stack([X, 3 * X])
    both = np.stack([A @ X, 6 * (A @ X)])
    for f, args, want in (
        (lambda x: B @ x, (xs,), np.stack([A @ X, 3 * (A @ X)])),
        (lambda d: B.with_data(d) @ X, (data,), np.stack([A @ X, 2 * (A @ X)])),
        (lambda d, x: B.with_data(d) @ x, (data, xs), both),
        (lambda d, x: x @ B.T.with_data(d), (data, xs), both),
        (lambda m, x: m @ x, (jt.tree.map(lambda v: np.stack([v, v]), B), xs), both / [[1], [2]]),
        (lambda d, x: B.tocoo().with_data(d) @ x, (data, xs), both),
    ):
        np.testing.assert_allclose(interpreted(jt.vmap(f), *args), want, rtol=1e-12)


class Model:
    def __init__(self) -> None:
        self.matrix: Any = A.copy()
        self.calls = np.zeros(())

    def apply(self, x: Any) -> Any:
        return self.matrix @ x

    def count(self, x: Any) -> Any:
        self.calls += 1
        return x @ self.matrix.T


def test_scipys_matrices_in_trees_closed_over_and_in_objects() -> None:
    compiled = jt.jit(lambda t: t["a"][0] @ t["a"][1][0] + t["b"] @ t["a"][1][0])
    for scale in (1, 1, 2):
        tree = {"a": [A * scale, (X,)], "b": A.tocoo()}
        np.testing.assert_allclose(compiled(tree), (1 + scale) * (A @ X), rtol=1e-12)
    matrix = A.copy()
    model = Model()

    def loop(x: Any) -> Any:
        for _ in range(2):
            x = matrix.T @ (matrix @ x)
        return x

    plain = lambda x: (matrix @ x, matrix.T @ (matrix.dot(x)), loop(x))  # noqa: E731
    functions = [plain, lambda x: (model.apply(x),), lambda x: (model.count(x),)]
    jitted = [jt.jit(f) for f in functions]  # each call in native code, from the second on

    def agree() -> None:
        for f, g in zip(2 * functions, 2 * jitted, strict=True):
            close(g(X), f(X))

    agree()
    matrix.data *= 2  # each call sees what the matrices are now
    model.matrix.data[0] = 7
    agree()
    matrix, model.matrix = ss.csc_array(A * 3), A.tocoo()
    agree()
    parts = (A.data, A.indices, A.indptr)  # equal arrays, of matrices of two shapes and formats
    wider = jt.jit(lambda m: m.to_dense())
    for a in (A, ss.csr_array(parts, shape=(6, 11)), ss.csc_array(parts, shape=(9, 6)), A):
        np.testing.assert_array_equal(wider(a), a.toarray())
    slope = jt.grad(lambda x: (matrix @ x).sum())(X)  # eagerly, of SciPy's own
    np.testing.assert_allclose(slope, matrix.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(jt.vmap(lambda x: matrix @ x)(np.stack([X, X]))[1], matrix @ X)


def test_results_and_changes() -> None:
    own = A.copy()

    @jt.jit(backend="interpreter")
    def scale(m: Any) -> Any:
        m.data *= 2
        return m, m.T

    same, turned = scale(own)
    assert type(same) is jt.sparse.CSR and type(turned) is jt.sparse.CSC
    np.testing.assert_array_equal(own.toarray(), 2 * A.toarray())  # where the caller has it
    for made, form in ((same, "csr"), (turned, "csc"), (same.tocoo(), "coo")):
        back = made.to_scipy()
        assert back.format == form
        whole = own.toarray() if form != "csc" else own.toarray().T
        np.testing.assert_array_equal(back.toarray(), whole)
    assert np.shares_memory(jt.sparse.from_scipy(own).data, own.data)
    twice = jt.sparse.COO([1.0, 2.0], [1, 1], [0, 0], (3, 2))
    assert twice.to_dense().tolist() == [[0, 0], [3, 0], [0, 0]] and twice.sum() == 3
    assert twice.T.sum(axis=0).tolist() == [0, 3, 0] and (-twice).sum(axis=0).tolist() == [-3, 0]
    assert repr(twice) == "COO(3 x 2, 2 of float64)" and twice.nnz == 2


def test_empty_matrices() -> None:
    f = jt.jit(lambda m, x: (m @ x, m.T @ (m @ x), m.to_dense()), backend="interpreter")
    for shape in ((0, 4), (4, 0), (3, 3)):
        for form in ("csr", "csc", "coo"):
            a = ss.coo_array(shape).asformat(form)
            x = np.ones(shape[1])
            close(f(a, x), (a @ x, a.T @ (a @ x), a.toarray()))


def bagged(ids: Any, offsets: Any, how: str, table: Any, w: Any = None) -> Any:
    return jt.sparse.embedding_bag(table, ids, offsets, w, how)


def test_bags() -> None:
    table, ids = rng.normal(size=(5, 3)), np.array([4, 0, 0, 2, 1])
    offsets, weights = np.array([0, 2, 2, 5]), rng.uniform(0.5, 2, 5)
    parts = [slice(0, 2), slice(2, 2), slice(2, 5)]
    for how in ("sum", "mean", "sqrtn", "max"):
        for w in (None, weights)[: 1 + (how != "max")]:
            u = np.ones(5) if w is None else w
            want = []
            for part in parts:
                rows, v = table[ids[part]], u[part]
                if not len(rows):
                    want.append(np.zeros(3))
                elif how == "max":
                    want.append(rows.max(0))
                else:
                    below = {"sum": 1, "mean": v.sum(), "sqrtn": np.sqrt((v**2).sum())}[how]
                    want.append((rows * v[:, None]).sum(0) / below)
            arguments = (table,) if w is None else (table, w)
            f = functools.partial(bagged, ids, offsets, how)
            np.testing.assert_allclose(f(*arguments), want, rtol=1e-12)
            np.testing.assert_allclose(interpreted(f, *arguments), want, rtol=1e-12)
            jt.check_grads(f, arguments)
    assert jt.sparse.embedding_bag([[1, 2]], [0, 0], [0, 2]).tolist() == [[2, 4]]


def test_ragged_rows() -> None:
    values, lengths = rng.normal(size=(7, 2)), np.array([3, 0, 4])

    def there_and_back(values: Any, lengths: Any) -> Any:
        padded = jt.sparse.ragged_to_padded(values, lengths, 5, fill_value=-1)
        cut = jt.sparse.ragged_to_padded(values, lengths, 2)
        back = jt.sparse.padded_to_ragged(padded, lengths)
        return padded, cut, back, jt.sparse.padded_to_ragged(padded, lengths, size=9, fill_value=8)

    whole = np.full((3, 5, 2), -1.0)
    whole[0, :3], whole[2, :4] = values[:3], values[3:]
    short = np.zeros((3, 2, 2))
    short[0], short[2] = values[:2], values[3:5]
    filled = np.concatenate([values, np.full((2, 2), 8.0)])
    for f in (there_and_back, jt.jit(there_and_back, backend="interpreter")):
        close(f(values, lengths), (whole, short, values, filled))
    assert jt.sparse.ragged_to_padded(values, lengths).shape == (3, 4, 2)
    assert not jt.sparse.ragged_to_padded(values[:0], lengths * 0, 2).any()
    jt.check_grads(lambda v: jt.sparse.ragged_to_padded(v, lengths, 4), (values,))


WRONG: dict[str, Callable[[Any], Any]] = {
    "sizes that differ": lambda x: B @ x[:5],
    "a row too long": lambda x: x @ B,
    "two sparse matrices": lambda x: B @ B.T,
    "elements for other places": lambda x: B.with_data(x[:3]),
    "a place that is not there": lambda x: jt.sparse.COO([1.0], [6], [0], (6, 9)),
    "pointers that fall": lambda x: jt.sparse.CSR([1.0, 2.0], [0, 0], [0, 2, 1], (2, 2)),
    "pointers of other rows": lambda x: jt.sparse.CSR([1.0, 2.0], [0, 0], [0, 1], (2, 2)),
    "places of floats": lambda x: jt.sparse.COO([1.0], [0.0], [0], (6, 9)),
    "no matrix of SciPy's": lambda x: jt.sparse.from_scipy(np.ones((2, 2))),
    "bags without an end": lambda x: jt.sparse.embedding_bag(x, [0], [0]),
    "rows of other lengths": lambda x: jt.sparse.padded_to_ragged(x[None], [1, 2]),
    "the longest row": lambda x: jt.sparse.ragged_to_padded(x, jt.argsort(x)),
}


def test_wrong_uses_say_what_and_where() -> None:
    golden = Golden(Path(__file__).with_name("wrong_sparse.txt"))
    for name, f in WRONG.items():
        with pytest.raises(jt.errors.JitneyError) as caught:
            interpreted(f, X)
        assert caught.value.line is not None and "test_sparse.py" in str(caught.value.line)
        text = [t for t in str(caught.value).split("\n") if not t.startswith("  at ")]
        golden.check(name, "\n".join(t.partition(": ")[2] if ".py:" in t else t for t in text))
    f = jt.jit(lambda places, x: jt.sparse.CSR(B.data, places, B.indptr, B.shape) @ x)
    with pytest.raises(IndexError, match="9 is out of bounds"):  # what compiled code is given
        f(B.indices * 0 + 9, X)
    with pytest.raises(TypeError, match="float"):
        jt.grad(lambda m: m.sum())(B)  # of its elements: with_data


def test_examples() -> None:
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner()
    for name in jt.sparse.__all__:
        (example,) = finder.find(getattr(jt.sparse, name), name, globs={"jt": jt, "np": np})
        assert example.examples and not runner.run(example).failed, name
