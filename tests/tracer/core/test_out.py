"""`out=`: which destinations a function takes, and what it leaves in them, against NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import jitney as jt

Array = np.ndarray[Any, Any]

# Expressions of a 3 x 3 matrix `a`, an integer one `i`, a boolean one `m` and the destination `b`.
EXPRESSIONS = """
np.add(a, 1, out=b)
np.add(a, a, b)
np.sqrt(a, out=(b,))
np.maximum(i, 2, out=b)
np.less(a, i, out=b)
np.clip(a, 2, 5, out=b)
np.clip(i, 2, 5, out=b)
np.fix(a, out=b)
np.isposinf(a, out=b)
np.round(a, out=b)
np.round(a, 1, out=b)
np.round(i, 1, out=b)
np.sum(a, axis=1, out=b)
np.sum(i, axis=1, out=b)
np.sum(m, axis=1, out=b)
np.sum(a, out=b)
np.sum(a, axis=1, out=b, keepdims=True)
np.prod(i, axis=0, out=b)
np.mean(a, axis=1, out=b)
np.mean(i, axis=1, out=b)
np.var(a, axis=1, out=b)
np.std(a, axis=1, out=b)
np.max(a, axis=1, out=b)
np.min(i, axis=1, out=b)
np.any(m, axis=1, out=b)
np.all(m, out=b)
np.ptp(a, axis=1, out=b)
np.median(a, axis=1, out=b)
np.quantile(a, 0.5, axis=1, out=b)
np.percentile(a, [25, 50], axis=1, out=b)
np.nansum(a, axis=1, out=b)
np.nanmax(a, axis=1, out=b)
np.nanmean(a, axis=1, out=b)
np.nanvar(a, axis=1, out=b)
np.nanmedian(a, axis=1, out=b)
np.trace(a, out=b)
np.trace(i, out=b)
np.argmax(a, axis=1, out=b)
np.argmin(a, out=b)
np.nanargmax(a, axis=1, out=b)
np.cumsum(a, axis=1, out=b)
np.cumsum(a, out=b)
np.cumsum(i, axis=0, out=b)
np.cumprod(a, axis=1, out=b)
np.nancumsum(a, axis=1, out=b)
np.cumulative_sum(a, axis=1, out=b)
np.add.reduce(a, axis=1, out=b)
np.add.accumulate(a, axis=1, out=b)
np.add.reduceat(a, [0, 1], axis=1, out=b)
np.multiply.outer(a[0], a[1], out=b)
np.subtract.reduce(a, axis=1, out=b)
np.logical_xor.reduce(m, axis=1, out=b)
np.take(a, [0, 1], out=b)
np.take(a, [[0, 1]], axis=1, out=b)
np.take(i, [0, 1], axis=1, out=b, mode="clip")
np.choose(i % 2, [a, -a], out=b)
np.choose(i % 2, [i, -i], out=b)
np.compress([True, False, True], a, axis=1, out=b)
np.compress([True, False], i, out=b)
np.dot(a, a, out=b)
np.dot(a, a[0], out=b)
np.dot(a[0], a[0], out=b)
np.dot(i, i, b)
np.matmul(a, a, out=b)
np.matmul(a, a[0], out=b)
np.outer(a[0], a[1], out=b)
np.linalg.multi_dot([a, a, a], out=b)
np.einsum("ij->i", a, out=b)
np.einsum("ij->ji", a, out=b)
np.einsum("ij,jk", a, a, out=b)
np.einsum("ij,jk", i, i, out=b)
np.concatenate([a, a], out=b)
np.concatenate([i, i], axis=None, out=b)
np.concatenate([a, i], out=b, casting="unsafe")
np.concatenate([a, a], out=b, dtype="f8")
np.stack([a, a], out=b)
np.fft.fft(a, out=b)
np.fft.irfft(a, out=b)
np.fft.rfft(a, axis=0, out=b)
np.fft.fft2(a, out=b)
a.sum(1, None, b)
a.mean(1, None, b)
a.cumsum(1, None, b)
a.argmax(1, b)
a.clip(2, 5, b)
a.round(1, b)
a.take([0], 1, b)
a.dot(a, b)
a.trace(0, 0, 1, None, b)
a.conjugate(b)
(a + 1j).conjugate(b)
(i % 2).choose(a, -a, out=b)
a.compress([True], 1, b)
""".split("\n")[1:-1]

REFUSALS = ValueError, TypeError, IndexError
A = np.array([[1.5, 2.5, 4], [9, 1, 2], [7, 3, 3]])
OPERANDS = A, A.astype(np.int64), A > 2


def destinations(result: Any) -> Iterator[Array]:
    """Arrays that the result goes into, and arrays that are not like it."""
    shape, dtype = np.shape(result), np.asarray(result).dtype
    for other in ("f8", "f4", "c16", "i8", "u1", "?"):
        yield np.zeros(shape, other)
    for other in ((2, *shape), (1, *shape), shape[1:], tuple(n + 1 for n in shape), (*shape, 1)):
        yield np.zeros(other, dtype)
    if shape:
        yield np.zeros((1,) * len(shape), dtype)
        yield np.zeros(shape[:-1] + (2 * shape[-1],), dtype)[..., ::2]
        yield np.zeros(shape, dtype, order="F")


def plain(expression: str) -> Any:
    """What NumPy gives without a destination."""
    text = expression
    for out in (", out=(b,)", ", out=b", ", b", "(b)"):
        text = text.replace(out, "()" if out == "(b)" else "")
    return eval(text, {"np": np}, dict(zip("aim", OPERANDS, strict=True)))


def reckless(expression: str, result: Any, out: Array) -> bool:
    """NumPy's scans do not look at how many axes the destination has; it may crash of too few."""
    scans = "cum", "accumulate", "reduceat"
    leads = out.shape[: np.ndim(result)] == np.shape(result) or out.ndim < np.ndim(result)
    return any(s in expression for s in scans) and out.ndim != np.ndim(result) and leads


def outcomes(expression: str, operands: Any, destinations: Any) -> tuple[list[Any], list[Any]]:
    """For each destination what it holds afterwards, and the error if there is one."""
    call = eval(f"lambda a, i, m, b: {expression}", {"np": np})
    how, found = [], []
    for b in destinations:
        try:
            result = call(*operands, b)
            how.append("returns it" if result is b else "returns something else")
        except REFUSALS as error:
            how.append(next(c.__name__ for c in REFUSALS if isinstance(error, c)))
        found.append(b.copy())
    return how, found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(4))
def test_destinations_as_in_numpy(part: int) -> None:
    wrong = []
    for expression in EXPRESSIONS[part::4]:
        result = plain(expression)
        made = (destinations(result) for _ in range(2))
        given, taken = ([b for b in bs if not reckless(expression, result, b)] for bs in made)
        how, want = outcomes(expression, OPERANDS, given)
        seen: list[Any] = []

        def program(
            *arrays: Any, expression: str = expression, seen: list[Any] = seen
        ) -> list[Any]:
            seen[:], found = outcomes(expression, arrays[:3], arrays[3:])
            return found

        got = jt.jit(program, autograph=False, backend="interpreter")(*OPERANDS, *taken)
        for b, x, y, g, w in zip(given, seen, how, got, want, strict=True):
            about = f"{expression} into {b.dtype}{list(b.shape)}{list(b.strides)}"
            if x != y:
                wrong.append(f"{about}: {x} and not {y}")
            elif x.startswith("returns") and not np.allclose(g, w, rtol=1e-6, equal_nan=True):
                wrong.append(f"{about}: {g} and not {w}")
    assert wrong == []
