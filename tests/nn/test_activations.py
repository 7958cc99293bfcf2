"""Activations: their formulas, their derivatives, and numbers where formulas overflow."""

from __future__ import annotations

import math

import numpy as np
import pytest

import jitney as jt
from jitney import nn

Array = np.ndarray
X = np.array([-7.0, -2.5, -1.0, -0.3, 0.2, 0.7, 1.5, 3.5, 8.0])
SIGMOID = 1 / (1 + np.exp(-X))
NORMAL = np.array([0.5 * math.erfc(-x / math.sqrt(2)) for x in X])
FORMULAS = {
    "identity": X,
    "relu": np.maximum(X, 0),
    "relu6": np.clip(X, 0, 6),
    "leaky_relu": np.where(X > 0, X, 0.01 * X),
    "elu": np.where(X > 0, X, np.exp(X) - 1),
    "celu": np.where(X > 0, X, np.exp(X) - 1),
    "selu": 1.0507009873554805
    * np.where(X > 0, X, 1.6732632423543772 * (np.exp(np.minimum(X, 0)) - 1)),
    "gelu": X * NORMAL,
    "sigmoid": SIGMOID,
    "log_sigmoid": np.log(SIGMOID),
    "silu": X * SIGMOID,
    "swish": X * SIGMOID,
    "softplus": np.log1p(np.exp(X)),
    "mish": X * np.tanh(np.log1p(np.exp(X))),
    "tanh": np.tanh(X),
    "softsign": X / (1 + np.abs(X)),
    "tanhshrink": X - np.tanh(X),
    "hardtanh": np.clip(X, -1, 1),
    "hard_sigmoid": np.clip(X / 6 + 0.5, 0, 1),
    "hard_swish": X * np.clip(X / 6 + 0.5, 0, 1),
    "hard_silu": X * np.clip(X / 6 + 0.5, 0, 1),
    "softshrink": np.sign(X) * np.maximum(np.abs(X) - 0.5, 0),
    "hardshrink": np.where(np.abs(X) > 0.5, X, 0),
    "softmax": np.exp(X) / np.exp(X).sum(),
    "softmin": np.exp(-X) / np.exp(-X).sum(),
    "log_softmax": X - np.log(np.exp(X).sum()),
}
SMOOTH = X[np.abs(X) != 1]  # no function has a kink there


def test_formulas() -> None:
    compiled = jt.jit(lambda x: {name: getattr(nn, name)(x) for name in FORMULAS})(X)
    for name, wanted in FORMULAS.items():
        np.testing.assert_allclose(getattr(nn, name)(X), wanted, 1e-12, 1e-15, err_msg=name)
        np.testing.assert_allclose(compiled[name], wanted, 1e-12, 1e-15, err_msg=name)


def test_every_activation_is_tested() -> None:
    others = {"glu", "threshold"}
    from jitney.nn import activations

    own = {
        n
        for n, f in vars(activations).items()
        if getattr(f, "__module__", "") == f"{activations.__name__}" and n[0] != "_"
    }
    assert own <= {*FORMULAS, *others}


def test_derivatives_are_those_of_central_differences() -> None:
    weights = np.cos(np.arange(SMOOTH.size))
    names = sorted(FORMULAS)

    def total(name, x):
        return (getattr(nn, name)(x) * weights).sum()

    found = jt.jit(lambda x: [jt.grad(lambda x, name=name: total(name, x))(x) for name in names])(
        SMOOTH
    )
    for name, gradient in zip(names, found, strict=True):
        for i, value in enumerate(gradient):
            step = np.zeros_like(SMOOTH)
            step[i] = 1e-6
            wanted = (total(name, SMOOTH + step) - total(name, SMOOTH - step)) / 2e-6
            assert abs(value - wanted) < 1e-7, (name, SMOOTH[i], value, wanted)


def test_far_out_everything_is_finite_and_dtypes_stay() -> None:
    x = np.array([-1e4, -100.0, 0.0, 100.0, 1e4], np.float32)
    names = sorted(FORMULAS)

    def total(x):
        parts = [getattr(nn, name)(x) for name in names]
        return sum(part.sum() for part in parts), parts

    for parts in (total(x)[1], jt.jit(lambda x: total(x)[1])(x)):
        for name, part in zip(names, parts, strict=True):
            assert part.dtype == np.float32 and np.isfinite(part).all(), (name, part)
    assert np.isfinite(jt.jit(lambda x: jt.grad(lambda x: total(x)[0])(x))(x)).all()
    for name in set(names) - {"softmax", "softmin", "log_softmax"}:
        assert np.isnan(getattr(nn, name)(np.array([np.nan]))).all(), name


def test_kinks_have_the_derivative_from_the_left() -> None:
    at = np.zeros(1)
    for name in ("relu", "relu6", "hard_swish"):
        assert (
            jt.grad(lambda x, name=name: getattr(nn, name)(x).sum())(at)
            == (name == "hard_swish") / 2
        )
    assert jt.grad(lambda x: nn.leaky_relu(x, 0.25).sum())(at) == 0.25


def test_relu_asks_for_its_result_only() -> None:
    """So it is computed where pooling reads it, forwards and backwards, and has no memory."""

    def loss(x: Array, b: Array, w: Array) -> Array:
        pooled = jt.max_pool(nn.relu(x * x + b), 2, 2, layout="NHWC")
        return np.tanh(pooled @ w).sum()

    x, b = np.random.default_rng(0).standard_normal((2, 8, 8, 16)), np.full(16, -0.5)
    step = jt.jit(jt.value_and_grad(loss)).lower(x, b, np.ones((16, 16)))
    assert [k.bytes_written for k in step.kernels].count(x.nbytes) == 1  # the gradient

    x, b = x[0, 0, 0, :4], b[:4]
    tangent = jt.jvp(lambda x: nn.relu(x * x + b), (x,), (np.ones_like(x),))[1]
    np.testing.assert_allclose(tangent, (x * x > 0.5) * 2 * x)
    twice = jt.hessian(lambda x: nn.relu(x * x + b).sum())(x)
    np.testing.assert_allclose(twice, np.diag(2.0 * (x * x > 0.5)))


def test_settings() -> None:
    np.testing.assert_allclose(nn.elu(X, 2.0), np.where(X > 0, X, 2 * np.expm1(X)))
    np.testing.assert_allclose(nn.celu(X, 2.0), np.where(X > 0, X, 2 * np.expm1(X / 2)))
    np.testing.assert_allclose(nn.softplus(X, 3.0), np.log1p(np.exp(3 * X)) / 3)
    cube = 0.7978845608028654 * (X + 0.044715 * X**3)
    np.testing.assert_allclose(nn.gelu(X, approximate=True), 0.5 * X * (1 + np.tanh(cube)), 1e-12)
    np.testing.assert_allclose(nn.threshold(X, 1.0, 5.0), np.where(X > 1, X, 5))
    rows = np.stack([X, X[::-1]])
    np.testing.assert_allclose(nn.softmax(rows, axis=0).sum(axis=0), 1)
    np.testing.assert_allclose(nn.glu(rows, axis=0)[0], X / (1 + np.exp(-X[::-1])))
    np.testing.assert_allclose(nn.glu(rows, 0, nn.silu)[0], X * X[::-1] / (1 + np.exp(-X[::-1])))
    slopes = np.array([0.1, 0.2])[:, None]
    np.testing.assert_allclose(nn.leaky_relu(rows, slopes), np.where(rows > 0, rows, slopes * rows))
    with pytest.raises(ValueError, match="approximate='erf'"):
        nn.gelu(X, approximate="erf")
    with pytest.raises(jt.errors.ShapeError, match="odd size, 9"):
        nn.glu(X)
