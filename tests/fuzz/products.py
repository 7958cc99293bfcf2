"""Batched programs of three and four axes, of real sizes: products with their batches in any order of
axes, and what is done around them."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

import jitney as jt

from .compare import Case

SIZES = [1, 2, 3, 8, 10, 16, 24, 25, 32, 48, 50, 64, 75, 96, 100, 128, 200]
MOST = 200_000  # elements of a value
WORK = 40_000_000  # products of numbers in one contraction


class Step:
    """A step: its text, and what it does with the value and the program's arguments."""

    def __init__(self, text: str, run: Callable[[Any, Any], Any]) -> None:
        self.text = text
        self.run = run


ELEMENTWISE: dict[str, Callable[[Any], Any]] = {
    "sin(y)": np.sin,
    "exp(y / 9)": lambda y: np.exp(y / 9),
    "y * y": lambda y: y * y,
    "tanh(y)": np.tanh,
    "maximum(y, 0)": lambda y: np.maximum(y, 0),
    "where(y > 0.1, y, 2 - y)": lambda y: np.where(y > 0.1, y, 2 - y),
    "1 / (1 + y * y)": lambda y: 1 / (1 + y * y),
}


def _softmax(y: Any, axis: int) -> Any:
    e = np.exp(y - y.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def products(seed: int) -> Case:
    """Two to six steps, one product at least, and the derivative of all arguments or the values."""
    draw = random.Random(seed)
    rng = np.random.default_rng(seed)
    dtype = draw.choice([np.float64, np.float64, np.float32])
    rank = draw.choice([2, 3, 3, 3, 4])
    shape = tuple(draw.choice(SIZES) for _ in range(rank))
    while prod(shape) > MOST:
        shape = tuple(draw.choice(SIZES) for _ in range(rank))
    arguments = [rng.normal(size=shape).astype(dtype)]
    y = arguments[0]
    steps: list[Step] = []
    count = draw.randint(2, 6)
    product_at = draw.randrange(count)
    with np.errstate(all="ignore"):
        for k in range(count):
            step = (
                _product(draw, y, len(arguments)) if k == product_at else _any(draw, y, arguments)
            )
            text, run, operand = step
            if operand is not None:
                scale = np.sqrt(max(operand[-1] if len(operand) else 1, 1))
                arguments.append((rng.normal(size=operand) / scale).astype(dtype))
            y = run(y, arguments)
            steps.append(Step(text, run))

    def f(*arguments: Any) -> Any:
        y = arguments[0]
        for step in steps:
            y = step.run(y, arguments)
        return y

    def total(*arguments: Any) -> Any:
        return np.sin(f(*arguments)).sum()

    values = draw.random() < 0.4
    plain = f if values else jt.grad(total, tuple(range(len(arguments))))
    text = f"{'values' if values else 'gradients'}, {np.dtype(dtype)}: {[a.shape for a in arguments]}; "
    text += "; ".join(s.text for s in steps)
    scale = max(1.0, float(np.abs(y).max(initial=0)))
    digits = 1e-8 if dtype == np.float64 else 2e-3
    return Case(plain, jt.jit(lambda *a: plain(*a)), arguments, text, digits, scale)


Drawn = tuple[str, Callable[[Any, Any], Any], tuple[int, ...] | None]


def _product(draw: random.Random, y: Any, position: int) -> Drawn:
    """A contraction with a new argument, by einsum, matmul or tensordot."""
    if y.ndim >= 2 and draw.random() < 0.3:
        columns = draw.choice(SIZES)
        batch = y.shape[:-2] if draw.random() < 0.7 else ()
        while y.size * columns > WORK or prod(y.shape[:-1]) * columns > MOST:
            columns = draw.choice(SIZES[:6])
            if columns == 1:
                break
        return (
            "matmul(y, p)",
            lambda y, a: np.matmul(y, a[position]),
            (*batch, y.shape[-1], columns),
        )
    letters = "abcdefgh"
    left = letters[: y.ndim]
    size = dict(zip(left, y.shape, strict=True))
    shared = [c for c in left if draw.random() < 0.5]
    summed = [c for c in shared if draw.random() < 0.6]
    fresh = list(letters[y.ndim : y.ndim + draw.randint(0, 1 if y.ndim > 2 else 2)])
    for c in fresh:
        size[c] = draw.choice(SIZES)
    out = [c for c in left if c not in summed] + fresh
    while (
        prod(size[c] for c in out) > MOST
        or prod(size[c] for c in {*left, *fresh}) > WORK
        or prod(size[c] for c in [*shared, *fresh]) > MOST
    ) and fresh:
        gone = fresh.pop()
        out.remove(gone)
    right = [*shared, *fresh]
    draw.shuffle(right)
    draw.shuffle(out)
    expression = f"{left},{''.join(right)}->{''.join(out)}"
    operand = tuple(size[c] for c in right)
    return (
        f"einsum({expression!r})",
        lambda y, a: np.einsum(expression, y, a[position]),
        operand,
    )


def _any(draw: random.Random, y: Any, arguments: list[Any]) -> Drawn:
    position = len(arguments)
    kind = draw.choice(
        ["elementwise"] * 3
        + ["product"] * 3
        + ["broadcast"] * 3
        + ["transpose", "reduce", "softmax", "cumsum", "gather", "slice", "norm"]
    )
    if y.ndim == 0 or kind == "elementwise":
        text = draw.choice(list(ELEMENTWISE))
        return text, lambda y, a: ELEMENTWISE[text](y), None
    axis = draw.randrange(y.ndim)
    if kind == "product":
        return _product(draw, y, position)
    if kind == "broadcast":
        shape = [n if draw.random() < 0.6 else 1 for n in y.shape]
        sign = draw.choice("+-*")
        if y.ndim < 4 and draw.random() < 0.3 and y.size * 24 < MOST:
            where, n = draw.randrange(y.ndim + 1), draw.choice([8, 10, 24])
            shape.insert(where, n)
            table = {"+": np.add, "-": np.subtract, "*": np.multiply}[sign]
            return (
                f"expand_dims(y, {where}) {sign} p",
                lambda y, a: table(np.expand_dims(y, where), a[position]),
                tuple(shape),
            )
        table = {"+": np.add, "-": np.subtract, "*": np.multiply}[sign]
        return f"y {sign} p", lambda y, a: table(y, a[position]), tuple(shape)
    if kind == "transpose":
        order = draw.sample(range(y.ndim), y.ndim)
        return f"transpose(y, {order})", lambda y, a: np.transpose(y, order), None
    if kind == "reduce":
        axes = tuple(sorted(draw.sample(range(y.ndim), draw.randint(1, max(y.ndim - 1, 1)))))
        name = draw.choice(["sum", "mean", "max", "var"])
        keep = draw.random() < 0.5
        reduce = getattr(np, name)
        text = f"{name}(y, {axes}, keepdims={keep})"
        return text, lambda y, a: reduce(y, axis=axes, keepdims=keep) * 1.0, None
    if kind == "softmax":
        return f"softmax(y, {axis})", lambda y, a: _softmax(y, axis), None
    if kind == "cumsum":
        return f"cumsum(y, {axis})", lambda y, a: np.cumsum(y, axis) / y.shape[axis], None
    if kind == "gather":
        n = draw.choice([k for k in SIZES if y.size // y.shape[axis] * k <= MOST])
        places = np.random.default_rng(draw.randrange(1 << 30)).integers(0, y.shape[axis], n)
        return f"take(y, {n} places, {axis})", lambda y, a: np.take(y, places, axis), None
    if kind == "slice":
        step = draw.choice([1, 2, -1])
        low = draw.randrange(max(y.shape[axis] // 3, 1))
        index = (*[slice(None)] * axis, slice(low, None) if step > 0 else slice(None, None, step))
        return f"y[{index}]", lambda y, a: y[index], None
    return (
        f"normalise(y, {axis})",
        lambda y, a: (y - y.mean(axis, keepdims=True)) / np.sqrt(y.var(axis, keepdims=True) + 0.1),
        None,
    )
