"""jt.conv and jt.conv_transpose: against their definition, natively, differentiated, batched."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitney as jt

rng = np.random.default_rng(0)
LETTERS = {1: "W", 2: "HW", 3: "DHW"}


def array(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0, 9, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def defined(
    x: np.ndarray,
    w: np.ndarray,
    strides: tuple[int, ...],
    pads: list[tuple[int, int]],
    dilation: tuple[int, ...],
    groups: int,
) -> np.ndarray:
    """The sum that the documentation gives, place by place. x: N, *S, C; w: *K, I, O."""
    rank = x.ndim - 2
    padded = np.pad(x, [(0, 0), *pads, (0, 0)])
    reach = [(k - 1) * d for k, d in zip(w.shape, dilation, strict=False)]
    places = [
        max((n - r - 1) // s + 1, 0)
        for n, r, s in zip(padded.shape[1:-1], reach, strides, strict=True)
    ]
    per_group, features = w.shape[-2], w.shape[-1] // groups
    y = np.zeros((x.shape[0], *places, w.shape[-1]), x.dtype)
    for p in product(*map(range, places)):
        for k in product(*map(range, w.shape[:rank])):
            at = tuple(a * s + b * d for a, s, b, d in zip(p, strides, k, dilation, strict=True))
            pixels = padded[(slice(None), *at)]
            for g in range(groups):
                ins = slice(g * per_group, (g + 1) * per_group)
                outs = slice(g * features, (g + 1) * features)
                y[(slice(None), *p, outs)] += pixels[:, ins] @ w[k][:, outs]
    return y


def tolerance(dtype: Any) -> float:
    return 1e-4 if np.dtype(dtype) == np.float32 else 1e-9


@st.composite
def problems(draw: Any, most: int = 6) -> tuple[Any, ...]:
    """Operands in a drawn layout, arguments of jt.conv, and the result by definition."""
    rank = draw(st.integers(1, 3))
    size = st.integers(1, most if rank < 3 else 4)
    groups = draw(st.sampled_from([1, 1, 1, 2, 3]))
    per_group, features = draw(st.integers(1, 4)), draw(st.integers(1, 3)) * groups
    taps = [draw(st.integers(1, 3)) for _ in range(rank)]
    strides = tuple(draw(st.integers(1, 3)) for _ in range(rank))
    dilation = tuple(draw(st.integers(1, 2)) for _ in range(rank))
    pads = [(draw(st.integers(-1, 3)), draw(st.integers(0, 3))) for _ in range(rank)]
    pads = [(max(a, 0), b) for a, b in pads]
    dtype = draw(st.sampled_from([np.float32, np.float64, np.int32]))
    x = array(
        draw(st.integers(0, 2)), *(draw(size) for _ in range(rank)), per_group * groups, dtype=dtype
    )
    w = array(*taps, per_group, features, dtype=dtype)
    y = defined(x, w, strides, pads, dilation, groups)
    names = f"N{LETTERS[rank]}C"
    layout = "".join(draw(st.permutations(names)))
    kernel_layout = "".join(draw(st.permutations(f"{LETTERS[rank]}IO")))
    spatial = [c for c in layout if c not in "NC"]  # named in any order: the pairs follow x

    def per_letter(values: Any) -> list[Any]:
        return [values[LETTERS[rank].index(c)] for c in spatial]

    given_x = x.transpose([names.index(c) for c in layout])
    given_w = w.transpose([f"{LETTERS[rank]}IO".index(c) for c in kernel_layout])
    wanted = y.transpose([names.index(c) for c in layout])
    options = {
        "strides": per_letter(strides),
        "padding": per_letter(pads),
        "dilation": per_letter(dilation),
        "groups": groups,
        "layout": layout,
        "kernel_layout": kernel_layout,
    }
    return given_x, given_w, options, wanted


@settings(max_examples=30, deadline=None)
@given(problems())
def test_definition(problem: tuple[Any, ...]) -> None:
    x, w, options, wanted = problem
    got = jt.conv(x, w, **options)
    assert got.dtype == wanted.dtype
    np.testing.assert_allclose(got, wanted, rtol=tolerance(x.dtype), atol=tolerance(x.dtype))


@settings(max_examples=20, deadline=None)
@given(problems())
def test_native(problem: tuple[Any, ...]) -> None:
    x, w, options, wanted = problem
    got = jt.jit(lambda x, w: jt.conv(x, w, **options))(x, w)
    assert got.dtype == wanted.dtype and got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=tolerance(x.dtype), atol=tolerance(x.dtype))


@settings(max_examples=15, deadline=None)
@given(problems())
def test_native_gradients(problem: tuple[Any, ...]) -> None:
    x, w, options, wanted = problem
    if x.dtype.kind != "f":
        x, w, wanted = (a.astype(np.float64) for a in (x, w, wanted))
    ct = array(*wanted.shape, dtype=x.dtype)

    def both(x: Any, w: Any, ct: Any) -> Any:
        return jt.vjp(lambda x, w: jt.conv(x, w, **options), x, w)[1](ct)

    for got, want, like in zip(jt.jit(both)(x, w, ct), both(x, w, ct), (x, w), strict=True):
        assert got.dtype == like.dtype and got.shape == like.shape
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=tolerance(x.dtype) * 10)
    # The derivative along w of a function that is linear in w is the function itself.
    dx, dw = both(x, w, ct)
    total = float(np.sum(wanted.astype(np.float64) * ct))
    slack = 1e-3 * (1 + np.abs(wanted).sum()) if x.dtype == np.float32 else 1e-6
    assert abs(np.sum(dw.astype(np.float64) * w) - total) <= slack
    assert abs(np.sum(dx.astype(np.float64) * x) - total) <= slack


@settings(max_examples=12, deadline=None)
@given(problems(most=4))
def test_finite_differences(problem: tuple[Any, ...]) -> None:
    x, w, options, _ = problem
    if x.size and x.dtype.kind == "f":
        args = (x.astype(np.float64), w.astype(np.float64))
        jt.check_grads(lambda x, w: jt.conv(x, w, **options), args, order=2)


def test_scipy() -> None:
    signal = pytest.importorskip("scipy.signal")
    x, w = array(9, 8), array(3, 4)
    for mode, padding in (("valid", "VALID"), ("full", [(2, 2), (3, 3)])):
        want = signal.correlate(x, w, mode)
        got = jt.conv(x[None, :, :, None], w[:, :, None, None], padding=padding)
        np.testing.assert_allclose(got[0, :, :, 0], want, rtol=1e-12)
    line, kernel = array(50), array(7)
    want = signal.correlate(line, kernel, "same")
    got = jt.conv(line[None, :, None], kernel[:, None, None], padding="SAME")
    np.testing.assert_allclose(got[0, :, 0], want, rtol=1e-10)


def test_named_padding() -> None:
    x, w = array(2, 7, 8, 3), array(3, 4, 3, 5)
    for strides in (1, 2, 3, (2, 1)):
        y = jt.conv(x, w, strides, "SAME")
        sh, sw = (strides, strides) if isinstance(strides, int) else strides
        assert y.shape == (2, -(-7 // sh), -(-8 // sw), 5)
    pair = [(1, 1), (1, 2)]
    np.testing.assert_array_equal(jt.conv(x, w, 1, "SAME"), jt.conv(x, w, 1, pair))
    lower = [(1, 1), (2, 1)]
    np.testing.assert_array_equal(jt.conv(x, w, 1, "SAME_LOWER"), jt.conv(x, w, 1, lower))
    np.testing.assert_array_equal(jt.conv(x, w, 1, 2), jt.conv(x, w, 1, [(2, 2), 2]))
    line, kernel = array(1, 6, 2), array(3, 2, 2)
    causal = jt.conv(line, kernel, padding="CAUSAL", dilation=2)
    changed = line.copy()
    changed[:, 4] += 1
    assert (jt.conv(changed, kernel, padding="CAUSAL", dilation=2)[:, :4] == causal[:, :4]).all()


def scattered(
    x: np.ndarray, w: np.ndarray, strides: tuple[int, ...], dilation: tuple[int, ...]
) -> np.ndarray:
    """Every place of x adds its kernel; nothing cropped. x: N, *S, C; w: *K, I, O."""
    rank = x.ndim - 2
    shape = [
        (n - 1) * s + (k - 1) * d + 1
        for n, s, k, d in zip(x.shape[1:], strides, w.shape, dilation, strict=False)
    ]
    y = np.zeros((x.shape[0], *shape, w.shape[-1]), x.dtype)
    for p in product(*map(range, x.shape[1:-1])):
        for k in product(*map(range, w.shape[:rank])):
            at = tuple(a * s + b * d for a, s, b, d in zip(p, strides, k, dilation, strict=True))
            y[(slice(None), *at)] += x[(slice(None), *p)] @ w[k]
    return y


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_transposed(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 2))
    sizes = [data.draw(st.integers(1, 5)) for _ in range(rank)]
    taps = [data.draw(st.integers(1, 4)) for _ in range(rank)]
    strides = tuple(data.draw(st.integers(1, 3)) for _ in range(rank))
    dilation = tuple(data.draw(st.integers(1, 2)) for _ in range(rank))
    x, w = array(2, *sizes, 3), array(*taps, 3, 2)
    whole = scattered(x, w, strides, dilation)
    pads = [(data.draw(st.integers(0, 1)), data.draw(st.integers(-2, 1))) for _ in range(rank)]
    wide = np.pad(whole, [(0, 0), *((0, 2) for _ in pads), (0, 0)])
    crop = tuple(
        slice(low, max(n - high, low))
        for (low, high), n in zip(pads, whole.shape[1:], strict=False)
    )
    want = wide[(slice(None), *crop)]
    f = lambda x, w: jt.conv_transpose(x, w, strides, pads, dilation=dilation)  # noqa: E731
    for g in (f, jt.jit(f)):
        np.testing.assert_allclose(g(x, w), want, rtol=1e-9, atol=1e-9)
    # It is what pulls a cotangent of the convolution back to its input.
    reach = [(k - 1) * d + 1 for k, d in zip(taps, dilation, strict=True)]
    if want.size and all(high >= 0 for _, high in pads):
        swapped = w.swapaxes(-1, -2)
        forward = lambda y: jt.conv(y, swapped, strides, pads, dilation=dilation)  # noqa: E731
        if all(
            n + low + high >= r
            for (low, high), n, r in zip(pads, want.shape[1:], reach, strict=False)
        ):
            result, pull = jt.vjp(forward, want)
            if result.shape == x.shape:
                np.testing.assert_allclose(pull(x)[0], want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "size, taps, strides, padding, result",
    [
        (7, 5, 1, "SAME", 7),  # a generator of digits: 7 to 7 to 14 to 28
        (7, 5, 2, "SAME", 14),
        (14, 5, 2, "SAME", 28),
        (4, 4, 2, "SAME", 8),  # image to image
        (1, 2, 2, "SAME", 2),
        (7, 3, 2, "VALID", 15),
        (7, 2, 3, "VALID", 21),
        (28, 5, 2, ((2, 1), (2, 1)), 56),
    ],
)
def test_shapes_of_tutorials(size: int, taps: int, strides: int, padding: Any, result: int) -> None:
    x, w = array(1, size, size, 2), array(taps, taps, 3, 2)
    y = jt.conv_transpose(x, w, strides, padding, kernel_layout="HWOI")
    assert y.shape == (1, result, result, 3)


def test_depthwise() -> None:
    x, w = array(2, 12, 11, 40, dtype=np.float32), array(3, 3, 1, 40, dtype=np.float32)
    f = lambda x, w: jt.conv(x, w, 1, "SAME", groups=40)  # noqa: E731
    want = defined(x, w, (1, 1), [(1, 1), (1, 1)], (1, 1), 40)
    np.testing.assert_allclose(jt.jit(f)(x, w), want, rtol=1e-4, atol=1e-4)
    ct = array(*want.shape, dtype=np.float32)
    pull = lambda x, w, ct: jt.vjp(f, x, w)[1](ct)  # noqa: E731
    for got, want in zip(jt.jit(pull)(x, w, ct), pull(x, w, ct), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("over", [(0, None), (None, 0), (0, 0)])
@pytest.mark.parametrize("groups", [1, 2])
def test_vmap(over: tuple[Any, Any], groups: int) -> None:
    x, w = array(3, 2, 5, 6, 4), array(3, 3, 2, 4 // groups, 6)
    args = (x if over[0] == 0 else x[0], w if over[1] == 0 else w[0])
    f = lambda x, w: jt.conv(x, w, (2, 1), "SAME", groups=groups)  # noqa: E731
    want = np.stack(
        [f(*(a[i] if o == 0 else a for a, o in zip(args, over, strict=True))) for i in range(3)]
    )
    batched = jt.vmap(f, in_axes=over)
    for g in (batched, jt.jit(batched)):
        np.testing.assert_allclose(g(*args), want, rtol=1e-9, atol=1e-9)
    per_example = jt.vmap(jt.grad(lambda x, w: (f(x, w) ** 2).sum(), argnums=1), in_axes=over)
    pull = jt.grad(lambda x, w: (f(x, w) ** 2).sum(), argnums=1)
    want = np.stack(
        [pull(x[i if over[0] == 0 else 0], w[i if over[1] == 0 else 0]) for i in range(3)]
    )
    np.testing.assert_allclose(jt.jit(per_example)(*args), want, rtol=1e-8, atol=1e-8)


def test_integers_wrap() -> None:
    x, w = np.full((1, 4, 1), 100, np.int8), np.full((2, 1, 1), 2, np.int8)
    for f in (jt.conv, jt.jit(jt.conv)):
        y = f(x, w)
        assert y.dtype == np.int8 and y.ravel().tolist() == [-112] * 3
    mixed = jt.conv(x, w.astype(np.float32))
    assert mixed.dtype == np.float32


@pytest.mark.parametrize(
    "shape, kernel, result",
    [
        ((0, 5, 3), (3, 3, 2), (0, 3, 2)),
        ((2, 5, 0), (3, 0, 2), (2, 3, 2)),
        ((2, 5, 3), (3, 3, 0), (2, 3, 0)),
        ((2, 2, 3), (3, 3, 4), (2, 0, 4)),
        ((2, 0, 3), (1, 3, 4), (2, 0, 4)),
    ],
)
def test_empty(shape: Any, kernel: Any, result: Any) -> None:
    x, w = array(*shape), array(*kernel)
    for f in (jt.conv, jt.jit(jt.conv)):
        y = f(x, w)
        assert y.shape == result and not y.any()
    dx, dw = jt.jit(jt.grad(lambda x, w: jt.conv(x, w).sum(), argnums=(0, 1)))(x, w)
    assert dx.shape == shape and dw.shape == kernel and not dx.any()


def test_memory_of_any_kind() -> None:
    """Reversed, strided, broadcast and read-only operands."""
    x, w = array(4, 12, 14, 6), array(6, 6, 6, 10)
    for a, k in (
        (x[::-1, ::2, ::-1], w[::2, ::-1]),
        (np.broadcast_to(x[:1, :, :, :1], (4, 12, 14, 6)), np.broadcast_to(w[:1, :1], w.shape)),
        (np.asfortranarray(x), np.asfortranarray(w)),
    ):
        f = lambda x, w: jt.conv(x, w, 1, "SAME")  # noqa: E731
        np.testing.assert_allclose(jt.jit(f)(a, k), f(a, k), rtol=1e-9, atol=1e-9)


def test_inside_a_program() -> None:
    """What comes before and after a convolution, its operands made on the way."""
    x, w, bias = array(2, 9, 9, 8), array(3, 3, 8, 16), array(16)

    def f(x: Any, w: Any, bias: Any) -> Any:
        hidden = jt.maximum(jt.conv(jt.tanh(x), w * 2, 2, "SAME") + bias, 0)
        return jt.conv(hidden[:, ::-1], w.swapaxes(2, 3), padding="SAME") + x[:, :5, :5]

    np.testing.assert_allclose(jt.jit(f)(x, w, bias), f(x, w, bias), rtol=1e-8, atol=1e-8)
    loss = jt.grad(lambda *a: (f(*a) ** 2).sum(), argnums=(0, 1, 2))
    for got, want in zip(jt.jit(loss)(x, w, bias), loss(x, w, bias), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-7)


def test_in_a_scan() -> None:
    x, w = array(5, 1, 8, 8, 4), array(3, 3, 4, 4)
    step = lambda h, x: (jt.tanh(jt.conv(h, w, padding="SAME") + x),) * 2  # noqa: E731
    f = lambda x: jt.scan(step, np.zeros((1, 8, 8, 4)), x)[1]  # noqa: E731
    np.testing.assert_allclose(jt.jit(f)(x), f(x), rtol=1e-9, atol=1e-9)


WRONG = [
    (lambda: jt.conv(array(1, 4, 4, 3), array(3, 3, 2, 5)), ValueError, "3 channels.*2 input"),
    (lambda: jt.conv(array(1, 4, 4, 4), array(3, 3, 2, 5), groups=2), ValueError, "divide"),
    (lambda: jt.conv(array(4, 4), array(3, 3)), ValueError, "spatial dims"),
    (lambda: jt.conv(array(1, 4, 4, 3), array(3, 3, 5)), ValueError, "kernel has 3 dims"),
    (lambda: jt.conv(array(1, 4, 3), array(0, 3, 5)), ValueError, "no elements"),
    (lambda: jt.conv(array(1, 4, 3), array(2, 3, 5), padding="SOME"), ValueError, "SOME"),
    (lambda: jt.conv(array(1, 4, 3), array(2, 3, 5), padding=[1, 2]), ValueError, "padding"),
    (lambda: jt.conv(array(1, 4, 3), array(2, 3, 5), strides=0), ValueError, "at least 1"),
    (lambda: jt.conv(array(1, 4, 3), array(2, 3, 5), strides=(1, 1)), ValueError, "strides"),
    (lambda: jt.conv(array(1, 4, 3), array(2, 3, 5), layout="NHW"), ValueError, "layout"),
    (lambda: jt.conv(array(1, 4, 3), array(2, 3, 5), kernel_layout="XIO"), ValueError, "XIO"),
    (lambda: jt.conv(array(1, 4, 3) > 0, array(2, 3, 5) > 0), TypeError, "booleans"),
]


@pytest.mark.parametrize("call, kind, words", WRONG)
def test_errors(call: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        call()


def test_error_names_shapes_and_line() -> None:
    f = jt.jit(lambda x, w: jt.conv(x, w))
    with pytest.raises(
        ValueError, match=r"(?s)f64\[1,4,4,3\].*f64\[3,3,2,5\].*test_convolution.py"
    ):
        f(array(1, 4, 4, 3), array(3, 3, 2, 5))


@pytest.mark.parametrize("stride", [1, 2])
def test_few_features_are_computed_in_vectors(stride: int) -> None:
    """As for many: the gradient by an image of three channels, whose kernel lies across."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 3, 24, 24)).astype(np.float32)
    w = rng.standard_normal((32, 3, 5, 5)).astype(np.float32)

    def total(x: Any, w: Any) -> Any:
        return (jt.conv(x, w, stride, 2, layout="NCHW") ** 2).sum()

    gradient = jt.jit(jt.grad(total))
    notes = [k.note for k in gradient.lower(x, w).kernels if k.ops == ("conv",)]
    assert len(notes) >= 2 and all(note.startswith("tiles") for note in notes)
    with jt.disable_jit():
        np.testing.assert_allclose(gradient(x, w), jt.grad(total)(x, w), 1e-4, 1e-3)
