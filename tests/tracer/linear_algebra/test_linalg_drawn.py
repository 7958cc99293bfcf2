"""Linear algebra and transforms on drawn shapes, dtypes and layouts: values, and derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import REAL_AND_COMPLEX, check_gradients, numbers

import jitney as jt

L, F = np.linalg, np.fft
Array = np.ndarray[Any, Any]


def hermitian(a: Any) -> Any:
    return a @ np.swapaxes(np.conj(a), -1, -2) + np.eye(a.shape[-1])


def squares(v: Any) -> Any:
    """What of vectors does not depend on their phase."""
    return abs(v) ** 2


SQUARE: dict[str, Callable[..., Any]] = {
    "inv": lambda a: L.inv(a),
    "det": lambda a: L.det(a),
    "slogdet": lambda a: L.slogdet(a)[1],
    "solve": lambda a: L.solve(a, a[..., :1] + 1),
    "cholesky": lambda a: L.cholesky(hermitian(a)),
    "eigvalsh": lambda a: L.eigvalsh(hermitian(a)),
    "eigh": lambda a: squares(L.eigh(hermitian(a))[1]),
    "matrix_power": lambda a: L.matrix_power(a, 3),
    "cond": lambda a: L.cond(a),
}
ANY_SHAPE: dict[str, Callable[..., Any]] = {
    "svd": lambda a: (lambda u, s, vh: (s, squares(u)))(*L.svd(a, full_matrices=False)),
    "svdvals": lambda a: L.svdvals(a),
    "pinv": lambda a: L.pinv(a),
    "qr": lambda a: squares(L.qr(a)[1]),
    "nuclear": lambda a: L.norm(a, "nuc", axis=(-2, -1)),
    "frobenius": lambda a: L.matrix_norm(a, keepdims=True),
    "one": lambda a: L.norm(a, 1, axis=(-2, -1)),
    "three": lambda a: L.vector_norm(a, ord=3, axis=-1),
    "fft": lambda a: F.fft(a, axis=-2, norm="ortho"),
    "rfft": lambda a: F.rfft(a.real, n=5),
    "irfft": lambda a: F.irfft(a, n=4, axis=-1),
    "hfft": lambda a: F.hfft(a, n=3),
    "fft2": lambda a: F.fft2(a, s=(3, 2)),
    "irfft2": lambda a: F.irfft2(a, s=(2, 5), norm="forward"),
}


@st.composite
def cases(draw: Any, most: int, batches: list[tuple[int, ...]]) -> tuple[str, Any, Array]:
    """A function's name, the function, and an operand in some layout."""
    name = draw(st.sampled_from([*SQUARE, *ANY_SHAPE]))
    rows = draw(st.integers(1, most))
    columns = rows if name in SQUARE else draw(st.integers(1, most))
    shape = (*draw(st.sampled_from(batches)), rows, columns)
    dtype = draw(st.sampled_from(REAL_AND_COMPLEX))
    a = numbers(shape, dtype, draw(st.integers(0, 99)))
    if name in SQUARE:
        a = a + 2 * np.eye(rows)
    layout = draw(st.sampled_from(["C", "F", "reversed", "sliced", "broadcast"]))
    if layout == "F":
        a = np.asfortranarray(a)
    elif layout == "reversed":
        a = np.ascontiguousarray(a[..., ::-1, ::-1])[..., ::-1, ::-1]
    elif layout == "sliced":
        wide = np.zeros((*shape[:-1], 2 * columns), dtype)
        wide[..., ::2] = a
        a = wide[..., ::2]
    elif layout == "broadcast":
        a = np.broadcast_to(a, (2, *shape))
    return name, SQUARE.get(name) or ANY_SHAPE[name], a


@settings(max_examples=12)
@given(cases(7, [(), (3,), (0,), (2, 2)]))
def test_values(case: tuple[str, Any, Array]) -> None:
    _, f, a = case
    expected, got = f(a), jt.jit(f)(a)
    pairs = zip(expected, got, strict=True) if isinstance(expected, tuple) else [(expected, got)]
    scale = L.cond(a).max(initial=1) ** 2 if a.size else 1
    for want, have in pairs:
        assert want.dtype == have.dtype and want.shape == have.shape
        size = abs(want).max(initial=1)
        np.testing.assert_allclose(have, want, atol=1e-13 * scale * size, rtol=0)


@settings(max_examples=12)
@given(cases(3, [(), (2,)]))
def test_derivatives(case: tuple[str, Any, Array]) -> None:
    """First and second ones, forward and reverse, against differences."""
    name, f, a = case
    well = L.cond(a).max() < 30
    values = L.svd(a, compute_uv=False)
    apart = values.shape[-1] == 1 or abs(np.diff(values, axis=-1)).min() > 0.2
    if well and apart and not (name == "qr" and a.shape[-2] < a.shape[-1]):
        check_gradients(f, np.array(a))
