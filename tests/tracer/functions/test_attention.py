"""jt.dot_product_attention and its kernels against plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native import avx2_target, has_avx2

import jitney as jt
from jitney.codegen.limits import DEFAULT, limited
from jitney.codegen.program.compile import compile_graph
from jitney.ir.autodiff.transform import vjp_graph
from jitney.ir.build import Builder
from jitney.ir.graph import Graph
from jitney.ir.interpreter import evaluate
from jitney.ir.passes import optimise
from jitney.ir.record import replace
from jitney.ir.types import F32, F64, TensorType
from jitney.runtime.executable import Executable
from jitney.runtime.native.host import current_target
from jitney.runtime.threads.pool import get_threads, set_threads

rng = np.random.default_rng(0)


def array(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    return rng.standard_normal(shape).astype(dtype)


def plain(
    q: Any, k: Any, v: Any, bias: Any = None, *, causal: bool = False, scale: float | None = None
) -> Any:
    """Written out, for (batch, place, head, feature); heads of keys are repeated."""
    k, v = (jt.repeat(x, q.shape[2] // x.shape[2], axis=2) for x in (k, v))
    s = jt.einsum("btnh,bsnh->bnts", q, k) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        s = s + bias
    if causal:
        s = jt.where(np.tril(np.ones(s.shape[-2:], bool)), s, -np.inf)
    e = jt.exp(s - s.max(axis=-1, keepdims=True))
    return jt.einsum("bnts,bsne->btne", e / e.sum(axis=-1, keepdims=True), v)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("heads", [(4, 4), (4, 2), (4, 1)])
def test_values_and_gradients(causal: bool, heads: tuple[int, int]) -> None:
    n, m = heads
    q, k, v = array(2, 70, n, 12), array(2, 110, m, 12), array(2, 110, m, 7)
    ct = array(2, 70, n, 7)

    def ours(q: Any, k: Any, v: Any) -> Any:
        return jt.dot_product_attention(q, k, v, is_causal=causal)

    want = plain(q, k, v, causal=causal)
    for f in (ours, jt.jit(ours)):
        np.testing.assert_allclose(f(q, k, v), want, rtol=1e-10, atol=1e-12)
    pull = lambda f: lambda *a: jt.vjp(f, *a[:3])[1](a[3])  # noqa: E731
    wanted = pull(lambda *a: plain(*a, causal=causal))(q, k, v, ct)
    for f in (pull(ours), jt.jit(pull(ours))):
        for got, want in zip(f(q, k, v, ct), wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 3, 20, 30), (3, 20, 30), (20, 1), (1, 30)])
def test_bias_and_mask(shape: tuple[int, ...]) -> None:
    q, k, v = array(2, 20, 3, 5), array(2, 30, 3, 5), array(2, 30, 3, 4)
    bias, mask = array(*shape), rng.random(shape) > 0.3
    want = plain(q, k, v, bias)
    f = jt.jit(lambda *a: jt.dot_product_attention(*a))
    np.testing.assert_allclose(f(q, k, v, bias), want, rtol=1e-10, atol=1e-12)
    g = jt.jit(lambda q, k, v, b, m: jt.dot_product_attention(q, k, v, b, m))
    low = 0.7 * np.finfo(np.float64).min
    masked = plain(q, k, v, np.where(mask, bias, low))
    np.testing.assert_allclose(g(q, k, v, bias, mask), masked, rtol=1e-10, atol=1e-12)
    grad = jt.jit(jt.grad(lambda b: (jt.dot_product_attention(q, k, v, b) ** 2).sum()))
    want = jt.grad(lambda b: (plain(q, k, v, b) ** 2).sum())(bias)
    np.testing.assert_allclose(grad(bias), want, rtol=1e-8, atol=1e-10)


def test_rows_that_see_little() -> None:
    q, k, v = array(1, 70, 1, 4), array(1, 200, 1, 4), array(1, 200, 1, 4)
    mask = np.zeros((70, 200), bool)
    mask[1, 150] = True  # the first blocks of keys hold nothing for this row
    y = jt.jit(lambda q, k, v: jt.dot_product_attention(q, k, v, mask=mask))(q, k, v)
    np.testing.assert_allclose(y[0, 1, 0], v[0, 150, 0])
    np.testing.assert_allclose(y[0, 0, 0], v[0, :, 0].mean(0))  # nothing visible: the mean
    bias = np.where(mask, 0, -np.inf)
    y = jt.jit(lambda q, k, v: jt.dot_product_attention(q, k, v, bias))(q, k, v)
    np.testing.assert_allclose(y[0, 1, 0], v[0, 150, 0])
    assert np.isnan(y[0, 0, 0]).all()  # as 0 / 0


def test_more_derivatives() -> None:
    args = array(1, 3, 2, 2), array(1, 4, 1, 2), array(1, 4, 1, 2)
    f = lambda *a: jt.dot_product_attention(*a, is_causal=True, scale=0.3)  # noqa: E731
    jt.check_grads(f, args, order=2)
    jt.check_grads(jt.jit(f), args, order=1)
    hessian = jt.jit(jt.hessian(lambda q: (f(q, *args[1:]) ** 2).sum()))(args[0])
    want = jt.hessian(lambda q: (plain(q, *args[1:], causal=True, scale=0.3) ** 2).sum())(args[0])
    np.testing.assert_allclose(hessian, want, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("over", [(0, 0, 0), (0, None, None), (None, 0, 0)])
def test_vmap(over: tuple[Any, ...]) -> None:
    q, k, v = array(3, 2, 9, 2, 4), array(3, 2, 7, 2, 4), array(3, 2, 7, 2, 4)
    args = [x if o == 0 else x[0] for x, o in zip((q, k, v), over, strict=True)]
    f = lambda *a: jt.dot_product_attention(*a)  # noqa: E731
    pick = lambda i: [x[i] if o == 0 else x for x, o in zip(args, over, strict=True)]  # noqa: E731
    want = np.stack([f(*pick(i)) for i in range(3)])
    np.testing.assert_allclose(jt.jit(jt.vmap(f, in_axes=over))(*args), want, rtol=1e-10)
    loss = jt.grad(lambda q, k, v: (f(q, k, v) ** 2).sum())
    want = np.stack([loss(*pick(i)) for i in range(3)])
    got = jt.jit(jt.vmap(loss, in_axes=over))(*args)
    np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-10)


def test_empty() -> None:
    f = jt.jit(lambda *a: jt.dot_product_attention(*a))
    for shape in ((0, 4, 2, 3), (2, 0, 2, 3), (2, 4, 0, 3)):
        if shape[2]:
            k = array(shape[0], 5, 2, 3)
            assert f(array(*shape), k, k).shape == shape
            dq, dk = jt.jit(jt.grad(lambda q, k: f(q, k, k).sum(), argnums=(0, 1)))(
                array(*shape), k
            )
            assert dq.shape == shape and not dk.any()


WRONG = [
    (((4, 3),) * 3, "dims"),
    (((2, 4, 2, 3), (2, 4, 2, 3), (2, 5, 2, 3)), "same places"),
    (((2, 4, 2, 3), (2, 4, 2, 5), (2, 4, 2, 3)), "same features"),
    (((2, 4, 2, 3), (2, 4, 3, 3), (2, 4, 3, 3)), "divide"),
    (((2, 4, 2, 3), (2, 0, 2, 3), (2, 0, 2, 3)), "at least one"),
]


@pytest.mark.parametrize("shapes, words", WRONG)
def test_errors(shapes: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        jt.dot_product_attention(*(array(*s) for s in shapes))
    assert "query: " in str(caught.value)


def test_errors_of_bias_and_mask() -> None:
    x = array(2, 4, 2, 3)
    with pytest.raises(ValueError, match=r"\(2, 2, 4, 4\)"):
        jt.dot_product_attention(x, x, x, array(3, 4))
    with pytest.raises(TypeError, match="bool"):
        jt.dot_product_attention(x, x, x, mask=array(4, 4))


# Kernels


@st.composite
def graphs(draw: Any) -> Graph:
    batch = draw(st.sampled_from([(), (2,), (1, 3)]))
    rows, columns = draw(st.integers(1, 90)), draw(st.integers(1, 60))
    depth, width = draw(st.sampled_from([1, 3, 16, 40])), draw(st.sampled_from([1, 5, 16, 70]))
    dtype = draw(st.sampled_from([F32, F32, F64]))
    shapes = [(*batch, rows, depth), (*batch, columns, depth), (*batch, columns, width)]
    if draw(st.booleans()):
        shared = [draw(st.sampled_from([1, n])) for n in batch]
        shapes.append((*shared, rows, columns))
    graph = Graph("f")
    params = [graph.add_param(TensorType(s, dtype)) for s in shapes]
    found = Builder(graph).op("attention", *params, scale=0.5, causal=draw(st.booleans()))
    graph.outputs = [found[0]]
    return graph


def sizes(q: Any, k: Any, v: Any, bias: Any, ct: Any, scale: float, causal: bool) -> Any:
    """The largest score; what value and, with a cotangent, gradients are sums of, by size."""
    scores = scale * q @ k.swapaxes(-1, -2) + bias
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    q, k, v, ct = np.abs(q), np.abs(k), np.abs(v), None if ct is None else np.abs(ct)
    largest = (scale * q @ k.swapaxes(-1, -2) + np.abs(bias)).max()
    value = weights @ v
    if ct is None:
        return largest, [value]
    slopes = ct @ v.swapaxes(-1, -2)
    slopes = weights * (slopes + (weights * slopes).sum(axis=-1, keepdims=True))
    turned = slopes.swapaxes(-1, -2)
    sums = [value, scale * slopes @ k, scale * turned @ q, weights.swapaxes(-1, -2) @ ct]
    return largest, sums


def slacks(graph: Graph, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """How far apart two ways of computing the graph may be, to first order, for each element.

    A score errs by a rounding of its size for each of its products, its bias and its difference to
    the largest; a weight, relatively, by that of its own score and of those in the total. What is
    summed with weights adds one rounding for each term. Nothing is taken to cancel.
    """
    op = next(op for op in graph.walk() if op.name == "attention")
    q, k, v, *more = (x.astype(np.float64) for x in arrays)
    bias = more[0] if len(op.operands) == 4 else 0.0
    ct = more[-1] if len(graph.outputs) > 1 else None
    largest, found = sizes(q, k, v, bias, ct, **op.attrs)
    terms = q.shape[-1] + k.shape[-2] + q.shape[-2] + v.shape[-1]
    roundings = 2 * (q.shape[-1] + 4) * largest + terms + 16
    by = np.finfo(arrays[0].dtype).eps * roundings  # half an eps for each of the two ways
    return [by * size for size in found[:1]] + [2 * by * size for size in found[1:]]


def check(graph: Graph, target: Any) -> None:
    arrays = [array(*v.shape, dtype=v.dtype) for v in graph.params]
    got = Executable(compile_graph(optimise(graph), target)).run(arrays)
    want = evaluate(graph, arrays)
    for g, w, slack in zip(got, want, slacks(graph, arrays), strict=True):
        assert g.shape == w.shape and g.dtype == w.dtype
        assert (np.abs(g - w) <= slack).all()


@pytest.mark.parametrize("keys", [8, 96])
@settings(max_examples=4, deadline=None)
@given(graph=graphs())
def test_kernels(keys: int, graph: Graph) -> None:
    with limited(replace(DEFAULT, attention_keys=keys)):
        check(graph, current_target())
        check(vjp_graph(graph, [0, 1, 2]), current_target())


@pytest.mark.skipif(not has_avx2(), reason="needs AVX2")
@settings(max_examples=4, deadline=None)
@given(graphs())
def test_avx2(graph: Graph) -> None:
    check(vjp_graph(graph, [0, 1, 2]), avx2_target())


def test_scores_do_not_stand_in_memory() -> None:
    graph = Graph("f")
    shape = (4, 512, 32)
    params = [graph.add_param(TensorType(shape, F32)) for _ in range(3)]
    graph.outputs = [Builder(graph).op("attention", *params, scale=0.2, causal=True)[0]]
    whole = 4 * 512 * 512 * 4
    for g in (graph, vjp_graph(graph, [0, 1, 2])):
        assert compile_graph(optimise(g), current_target()).arena_bytes < whole / 3


def test_results_do_not_depend_on_threads() -> None:
    q, k, v = (array(3, 300, 2, 16, dtype=np.float32) for _ in range(3))
    f = jt.jit(jt.grad(lambda q, k, v: (jt.dot_product_attention(q, k, v) ** 2).sum(), (0, 1, 2)))
    before = get_threads()
    try:
        set_threads(1)
        alone = f(q, k, v)
        set_threads(2)
        for _ in range(3):
            for a, b in zip(alone, f(q, k, v), strict=True):
                np.testing.assert_array_equal(a, b)
    finally:
        set_threads(before)


# Attention that is written out


def ops(f: Any, *args: Any) -> list[str]:
    return [op.name for op in optimise(jt.jit(f).trace(*args)).walk()]


def written(q: Any, k: Any, v: Any, mask: Any = None, bias: Any = None) -> Any:
    scores = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ v


TRIL = np.tril(np.ones((40, 40), bool))


@pytest.mark.parametrize("lead", [(), (2,), (2, 3)])
@pytest.mark.parametrize("mask", [None, TRIL, TRIL.T, rng.random((40, 40)) > 0.2])
def test_written_out(lead: tuple[int, ...], mask: Any) -> None:
    q, k, v, ct = (array(*lead, 40, 8) for _ in range(4))

    def both(q: Any, k: Any, v: Any, ct: Any) -> Any:
        y, pull = jt.vjp(lambda *a: written(*a, mask), q, k, v)
        return y, *pull(ct)

    names = ops(both, q, k, v, ct)
    assert names.count("attention") == names.count("attention_grad") == 1 and "exp" not in names
    y = written(q, k, v, mask)
    p = written(q, k, np.broadcast_to(np.eye(40), (*lead, 40, 40)), mask)
    dp = ct @ v.swapaxes(-1, -2)
    ds = p * (dp - (ct * y).sum(-1, keepdims=True)) * 8**-0.5
    wanted = y, ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ ct
    for f in (both, jt.jit(both)):
        for got, want in zip(f(q, k, v, ct), wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-11)


def test_written_out_otherwise() -> None:
    q, k, v = array(2, 40, 3, 8), array(2, 50, 3, 8), array(2, 50, 3, 5)
    f = lambda *a: plain(*a)  # noqa: E731
    assert "attention" in ops(f, q, k, v)
    want = jt.dot_product_attention(q, k, v)
    np.testing.assert_allclose(jt.jit(f)(q, k, v), want, rtol=1e-10, atol=1e-12)
    bias = array(3, 40, 50)
    assert "attention" in ops(plain, q, k, v, bias)
    want = jt.dot_product_attention(q, k, v, bias)
    np.testing.assert_allclose(jt.jit(plain)(q, k, v, bias), want, rtol=1e-10, atol=1e-12)
    loss = lambda *a: (plain(*a) ** 2).sum()  # noqa: E731
    wanted = jt.grad(lambda *a: (jt.dot_product_attention(*a) ** 2).sum(), (0, 3))(q, k, v, bias)
    for got, want in zip(jt.jit(jt.grad(loss, (0, 3)))(q, k, v, bias), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-10)
    hessian = jt.jit(jt.hessian(lambda s: loss(q * s, k, v)))(1.0)
    step = 1e-4
    slope = jt.grad(lambda s: loss(q * s, k, v))
    np.testing.assert_allclose(hessian, (slope(1 + step) - slope(1 - step)) / (2 * step), rtol=1e-5)


def test_a_large_causal_mask_is_seen() -> None:
    q = array(300, 4, dtype=np.float32)
    causal = lambda q: written(q, q, q, np.tril(np.ones((300, 300), bool)))  # noqa: E731
    (op,) = [o for o in optimise(jt.jit(causal).trace(q)).ops if o.name == "attention"]
    assert op.attrs["causal"] and len(op.operands) == 3
    want = jt.dot_product_attention(q[:, None], q[:, None], q[:, None], is_causal=True)[:, 0]
    np.testing.assert_allclose(jt.jit(causal)(q), want, rtol=1e-4, atol=1e-5)


def test_what_is_no_attention() -> None:
    q = array(2, 40, 8)

    def with_weights(q: Any) -> Any:
        s = q @ q.swapaxes(-1, -2)
        e = np.exp(s - s.max(axis=-1, keepdims=True))
        p = e / e.sum(axis=-1, keepdims=True)
        return p @ q, p

    def over_queries(q: Any) -> Any:
        s = q @ q.swapaxes(-1, -2)
        e = np.exp(s - s.max(axis=-2, keepdims=True))
        return e / e.sum(axis=-2, keepdims=True) @ q

    def high(q: Any) -> Any:
        s = np.where(TRIL, q @ q.swapaxes(-1, -2), -1.0)
        e = np.exp(s - s.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True) @ q

    for f in (with_weights, over_queries, high):
        assert "attention" not in ops(f, q)
        got, want = jt.jit(f)(q), f(q)
        first = isinstance(want, tuple)
        got, want = (got[0], want[0]) if first else (got, want)
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


def test_written_out_in_a_scan() -> None:
    x, layers = array(2, 40, 8), array(3, 8, 8)
    step = lambda x, w: (x + written(x @ w, x, x, TRIL), None)  # noqa: E731
    f = lambda x, layers: (jt.scan(step, x, layers)[0] ** 2).sum()  # noqa: E731
    assert "attention" in ops(f, x, layers)
    assert "attention_grad" in ops(jt.grad(f), x, layers)
    got, want = jt.jit(jt.grad(f))(x, layers), jt.grad(f)(x, layers)
    np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-9)
