"""`jt.ops`, against loops and formulas in NumPy, with derivatives. (The table of calls has them too.)"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden_texts import Golden

import jitney as jt

rng = np.random.default_rng(3)
X = rng.normal(size=(4, 6))
W = rng.normal(size=(6, 3))
IDS = np.array([2, 0, 2, 5])
NUMBERS = rng.integers(0, 6, (4, 3))
LENGTHS = np.array([0, 6, 2, 3])
ORDER = rng.permutation(6)


def segments(ufunc: np.ufunc, data: Any, ids: Any, n: int, start: float) -> Any:
    out = np.full((n, *data.shape[ids.ndim :]), float(start))
    ufunc.at(out, ids, data)
    return out


def reversed_rows(x: Any, lengths: Any) -> Any:
    return np.stack([np.concatenate([r[:n][::-1], r[n:]]) for r, n in zip(x, lengths, strict=True)])


def confusion(a: Any, b: Any, w: Any) -> Any:
    return np.array([[w[(a == i) & (b == j)].sum() for j in range(6)] for i in range(6)])


def normal_kl(m1: Any, v1: Any, m2: Any, v2: Any) -> Any:
    return np.sum(0.5 * (v2 - v1 + np.exp(v1 - v2) + (m1 - m2) ** 2 / np.exp(v2) - 1), -1)


def entropy(x: Any) -> Any:
    p = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    return -(p * np.log(p)).sum(-1)


O = jt.ops  # noqa: E741
SHARES = X[0] ** 2 * np.ones((4, 1))
MEAN = np.average(X, 1, SHARES)[:, None]
SPREAD = np.average((X - MEAN) ** 2, 1, SHARES)[:, None]
N = 0 * X[0]
OTHERS = NUMBERS.T.reshape(4, 3)
ROWS = np.stack([IDS % 4, IDS], -1)
CASES: list[tuple[Callable[[Any], Any], Any]] = [
    (lambda x: O.top_k(x, 3), (np.sort(X)[:, ::-1][:, :3], np.argsort(-X)[:, :3])),
    (lambda x: O.top_k(x, 2, 0)[0], -np.sort(-X, 0)[:2]),
    (lambda x: O.top_k(x), (X.max(1, keepdims=True), X.argmax(1)[:, None])),
    (lambda x: O.one_hot(IDS, 4, x[0, 0], -1), np.where(IDS[:, None] == np.arange(4), X[0, 0], -1)),
    (lambda x: O.gather_nd(x, ROWS), X[IDS % 4, IDS]),
    (lambda x: O.gather_nd(x, NUMBERS[..., None], 1), np.take_along_axis(X, NUMBERS, 1)),
    (lambda x: O.gather_nd(x, -ROWS[:, :1]), X[-(IDS % 4)]),
    (lambda x: O.scatter_nd(IDS[:, None], x, (6, 6)), segments(np.add, X, IDS, 6, 0)),
    (lambda x: O.batch_gather(x, NUMBERS), np.take_along_axis(X, NUMBERS, 1)),
    (lambda x: O.boolean_mask(x, X > 0, size=30), np.append(X[X > 0], np.zeros(30))[:30]),
    (lambda x: O.boolean_mask(x, IDS > 1), X[IDS > 1]),
    (lambda x: O.boolean_mask(x, ORDER > 2, 1, size=2), X[:, ORDER > 2][:, :2]),
    (lambda x: O.reverse_sequence(x, LENGTHS), reversed_rows(X, LENGTHS)),
    (lambda x: O.reverse_sequence(x.T, LENGTHS, 0, 1), reversed_rows(X, LENGTHS).T),
    (lambda x: x[:, O.invert_permutation(ORDER)], X[:, np.argsort(ORDER)]),
    (lambda x: O.segment_sum(x, IDS, 6), segments(np.add, X, IDS, 6, 0)),
    (lambda x: O.segment_sum(x, IDS - 1, 3, mode="drop"), segments(np.add, X, IDS, 7, 0)[1:4]),
    (lambda x: O.segment_mean(x, IDS, 6), np.stack([X[1], N, X[[0, 2]].mean(0), N, N, X[3]])),
    (lambda x: O.segment_max(x, IDS, 6), segments(np.maximum, X, IDS, 6, -np.inf)),
    (lambda x: O.segment_min(x[:, :3], NUMBERS, 6), segments(np.minimum, X[:, :3], NUMBERS, 6, np.inf)),
    (lambda x: O.segment_prod(x, IDS, 6), segments(np.multiply, X, IDS, 6, 1)),
    (lambda x: O.dynamic_partition(x, IDS, 3, size=2), (np.stack([X[1], N]), 0 * X[:2], X[[0, 2]])),
    (lambda x: O.dynamic_partition(x, IDS, 3), (X[1:2], X[:0], X[[0, 2]])),
    (lambda x: O.dynamic_stitch([[2, 0], [1, 2]], [x[:2], x[2:]], 4), np.stack([X[1], X[2], X[3], N])),
    (lambda x: O.confusion_matrix(NUMBERS, OTHERS, 6, x[:, :3]), confusion(NUMBERS, OTHERS, X[:, :3])),
    (lambda x: O.clip_by_value(x, -1, 0.5), np.clip(X, -1, 0.5)),
    (lambda x: O.clip_by_norm(x, 1), X / np.linalg.norm(X)),
    (lambda x: O.clip_by_norm(x, 2, 1), X * np.minimum(1, 2 / np.linalg.norm(X, axis=1))[:, None]),
    (lambda x: O.clip_by_norm(0 * x, 1), 0 * X),
    (lambda x: O.clip_by_global_norm({"b": x, "a": (2 * x, None)}, 2)[1], 5**0.5 * np.linalg.norm(X)),
    (lambda x: O.clip_by_global_norm([x], 2)[0], [2 * X / np.linalg.norm(X)]),
    (lambda x: O.clip_by_global_norm([x], 2, 4.0)[0], [X / 2]),
    (lambda x: O.l2_loss(x), (X**2).sum() / 2),
    (lambda x: O.moments(x, 0), (X.mean(0), X.var(0))),
    (lambda x: O.moments(x, 1, weights=x[0] ** 2, keepdims=True), (MEAN, SPREAD)),
    (lambda x: O.xw_plus_b(x, W, W[0]), X @ W + W[0]),
    (lambda x: O.bias_add(x, x[:, 0], axis=0), X + X[:, :1]),
    (lambda x: O.softmax_entropy(x * 3), entropy(X * 3)),
    (lambda x: O.gaussian_kl((x, x / 2), (x[0], x / 3)), normal_kl(X, X / 2, X[0], X / 3)),
    (lambda x: O.leaky_relu(x, 0.1), np.maximum(X, 0.1 * X)),
    (lambda x: O.grayscale_to_rgb(x[..., None]), np.repeat(X[..., None], 3, -1)),
    (lambda x: O.reshape_dims(x.reshape(2, 2, 6), [[0, 1], [], [2]]), X[:, None]),
]  # fmt: skip


def parts(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def test_values_and_derivatives() -> None:
    """All in one compiled function; eagerly one by one, with derivatives in both modes."""
    compiled = jt.jit(lambda x: [f(x) for f, _ in CASES])(X)
    for got, (f, want) in zip(compiled, CASES, strict=True):
        for result in (got, f(X)):
            leaves, wanted = parts(result), parts(want)
            assert [v.shape for v in leaves] == [np.shape(v) for v in wanted]
            for a, b in zip(leaves, wanted, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)

    def total(x: Any) -> Any:
        found = [p for f, _ in CASES for p in parts(f(x)) if p.dtype.kind == "f"]
        return [jt.where(jt.abs(p) < 1e9, p, 0) for p in found]

    jt.check_grads(total, (X,), order=1)


def test_dtypes_ties_and_extremes() -> None:
    ties = np.array([1.0, np.nan, 3.0, np.inf, 3.0, -np.inf])
    assert O.top_k(ties, 5).indices.tolist() == [1, 3, 2, 4, 0]
    assert O.top_k(np.array([0, 255, 7], np.uint8), 3).indices.tolist() == [1, 2, 0]
    assert O.top_k(np.array([-128, 127, 0], np.int8), 3).values.tolist() == [127, 0, -128]
    assert O.top_k(np.array([False, True]), 1).values.tolist() == [True]
    assert O.top_k(X.astype(np.float32), 0).values.shape == (4, 0)
    small = np.full(300, 100, np.int8)
    assert O.segment_sum(small, np.zeros(300, np.uint8)).tolist() == [
        30000
    ]  # as np.sum, no overflow
    assert O.segment_max(np.array([3], np.uint8), np.array([1])).tolist() == [0, 3]
    assert O.segment_max(X[:0], IDS[:0], 2).tolist() == np.full((2, 6), -np.inf).tolist()
    assert O.segment_mean([1, 2], [0, 0]).tolist() == [1.5]
    assert O.invert_permutation(np.arange(256)[::-1].astype(np.uint8)).dtype == np.uint8
    assert O.one_hot([[1], [2]], 2, True, False, axis=0).tolist() == [
        [[False], [False]],
        [[True], [False]],
    ]
    assert O.confusion_matrix([], [], 2).tolist() == [[0, 0], [0, 0]]
    assert O.confusion_matrix([1], [0], dtype=np.float32).dtype == np.float32
    assert O.zero_fraction(np.array([0.0, 1.0])) == 0.5
    huge = np.array([1000.0, 0.0, -np.inf])
    assert O.softmax_entropy(huge) == 0
    slope = jt.grad(lambda x: O.softmax_entropy(x))(np.array([0.0, 0.0, -np.inf]))
    np.testing.assert_allclose(slope, 0, atol=1e-15)
    assert np.isnan(O.clip_by_norm(np.array([np.inf, 1.0]), 1)).all()
    with np.errstate(over="ignore"):  # a norm that is none is not taken for a large one
        assert np.isnan(O.clip_by_global_norm([np.full(2, 1e30, np.float32)], 1)[0][0]).all()
    assert O.clip_by_global_norm([], 1) == ([], 0.0)


def test_trees_of_classes_are_clipped() -> None:
    @jt.register_pytree
    @dataclass
    class Layer:
        w: Any
        b: Any

    layer = Layer(np.array([3.0]), np.array([4.0]))
    for f in (O.clip_by_global_norm, jt.jit(O.clip_by_global_norm)):
        clipped, norm = f(layer, 2.5)
        assert type(clipped) is Layer and norm == 5 and (clipped.w, clipped.b) == ([1.5], [2.0])


def test_compiled_code_checks_what_it_is_told() -> None:
    @jt.jit
    def f(ids: Any, order: Any, lengths: Any) -> Any:
        return (
            O.segment_sum(X, ids, 6),
            O.invert_permutation(order),
            O.reverse_sequence(X, lengths),
        )

    f(IDS, ORDER, LENGTHS)
    for arguments, kind, words in (
        ((IDS + 1, ORDER, LENGTHS), IndexError, "6 is out of bounds"),
        ((IDS - 1, ORDER, LENGTHS), IndexError, "out of bounds"),
        ((IDS, ORDER * 0, LENGTHS), ValueError, "there twice"),
        ((IDS, ORDER, LENGTHS + 1), ValueError, "lengths are from 0 to 6"),
    ):
        with pytest.raises(kind, match=words) as caught:
            f(*arguments)
        assert any("test_named_ops.py" in note for note in caught.value.__notes__)


WRONG: dict[str, Callable[[Any], Any]] = {
    "more than there are": lambda x: O.top_k(x, 7),
    "no matrix": lambda x: O.xw_plus_b(x, W[0], W[0]),
    "ids of another length": lambda x: O.segment_sum(x, IDS[:2], 6),
    "ids of floats": lambda x: O.segment_sum(x, x[:, 0], 6),
    "how many": jt.vmap(lambda x: O.segment_sum(x, jt.argsort(x))),
    "ids that are known": lambda x: O.segment_max(x, [2, 0, 2, 5], 5),
    "a mask of numbers": lambda x: O.boolean_mask(x, IDS),
    "a length for each row": lambda x: O.reverse_sequence(x, LENGTHS[:3]),
    "too many numbers in a row": lambda x: O.gather_nd(x, NUMBERS),
    "other rows": lambda x: O.batch_gather(x, NUMBERS[:2]),
    "parts of two kinds": lambda x: O.dynamic_stitch([IDS[:2], IDS[2:]], [x[:2], x[2:, :1]], 6),
    "classes of other examples": lambda x: O.confusion_matrix(IDS, IDS[:3], 6),
    "a bias of another length": lambda x: O.bias_add(x, x[0, :4]),
    "three channels": lambda x: O.grayscale_to_rgb(x[:, :3]),
    "axes left out": lambda x: O.reshape_dims(x, [1, 0]),
}


def test_wrong_calls_say_what_and_where() -> None:
    golden = Golden(Path(__file__).with_name("wrong_ops.txt"))
    for name, f in WRONG.items():
        for run in (jt.jit(f, backend="interpreter"), f)[: 1 + (name != "how many")]:
            with pytest.raises(jt.errors.JitneyError) as caught:
                run(X)
            assert caught.value.line is not None and "test_named_ops.py" in str(caught.value.line)
            if run is f:
                break
            text = str(caught.value).split("\n")
            kept = [t for t in text if not t.startswith("  at ")]
            golden.check(name, "\n".join(t.partition(": ")[2] if ".py:" in t else t for t in kept))
