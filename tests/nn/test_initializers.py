"""Initialisers: their moments, their bounds, what is drawn again from a seed."""

from __future__ import annotations

import math

import numpy as np
import pytest

import jitney as jt
from jitney import nn
from jitney.nn import initializers

SHAPE = (3, 3, 40, 60)
IN, OUT = 360, 540


def draw(init, shape=SHAPE, dtype=np.float64):
    return initializers.made(init, shape, dtype, rng=1)


@pytest.mark.parametrize(
    ("name", "variance", "reach"),
    [
        ("glorot_uniform", 2 / (IN + OUT), math.sqrt(3)),
        ("glorot_normal", 2 / (IN + OUT), 2 / 0.8796),
        ("he_uniform", 2 / IN, math.sqrt(3)),
        ("he_normal", 2 / IN, 2 / 0.8796),
        ("lecun_uniform", 1 / IN, math.sqrt(3)),
        ("lecun_normal", 1 / IN, 2 / 0.8796),
    ],
)
def test_variance_scaling(name: str, variance: float, reach: float) -> None:
    drawn = draw(getattr(initializers, name)())
    assert abs(drawn.var() / variance - 1) < 0.02
    assert 0.98 * reach < np.abs(drawn).max() / math.sqrt(variance) <= reach * 1.0001
    assert abs(drawn.mean()) < 0.02 * math.sqrt(variance)
    np.testing.assert_allclose(draw(getattr(initializers, name)(4.0)), 2 * drawn)


def test_simple_ones() -> None:
    assert (draw(initializers.zeros()) == 0).all() and (draw(initializers.ones()) == 1).all()
    assert (draw(initializers.constant(2.5), (3,), np.float32) == np.float32(2.5)).all()
    drawn = draw(initializers.normal(2.0, 1.0))
    assert abs(drawn.std() / 2 - 1) < 0.02 and abs(drawn.mean() - 1) < 0.05
    drawn = draw(initializers.truncated_normal(2.0, 1.0))
    assert 3.9 < np.abs(drawn - 1).max() <= 4 and abs(drawn.std() / (2 * 0.8796) - 1) < 0.02
    drawn = draw(initializers.uniform(2.0, 4.0))
    assert 2 <= drawn.min() < 2.01 and 3.99 < drawn.max() < 4
    assert abs(draw(initializers.variance_scaling(1.0, "fan_out", "normal")).var() * OUT - 1) < 0.02


def test_orthogonal_and_identity() -> None:
    for shape in ((5, 3), (3, 5), (2, 2, 3, 4)):
        w = draw(initializers.orthogonal(2.0), shape).reshape(-1, shape[-1])
        small = w.T @ w if w.shape[0] >= w.shape[1] else w @ w.T
        np.testing.assert_allclose(small, 4 * np.eye(len(small)), atol=1e-12)
    np.testing.assert_array_equal(draw(initializers.identity(3), (2, 3)), 3 * np.eye(2, 3))
    kernel = draw(initializers.identity(), (3, 3, 2, 2))
    assert (kernel[1, 1] == np.eye(2)).all() and kernel.sum() == 2


def test_from_other_values() -> None:
    other = np.arange(6.0).reshape(2, 3)
    for start in (other, other.tolist(), initializers.constant(other)):
        made = initializers.made(start, (2, 3))
        np.testing.assert_array_equal(made, other)
        assert made.dtype == np.float32
    made = initializers.made(other, (2, 3), np.float64)
    made[:] = 0
    assert other[1, 1] == 4, "it is a copy"
    own = initializers.made(
        lambda shape, dtype, rng: rng.integers(0, 9, shape), (4,), np.float32, 0
    )
    assert own.dtype == np.float32
    with pytest.raises(
        jt.errors.ShapeError, match=r"shape \(2, 2\) cannot begin .* shape \(2, 3\)"
    ):
        initializers.made(other, (2, 2))


def test_seeds() -> None:
    nn.seed(3)
    first = initializers.made(initializers.normal(), (4,))
    second = initializers.made(initializers.normal(), (4,))
    nn.seed(3)
    np.testing.assert_array_equal(initializers.made(initializers.normal(), (4,)), first)
    assert (first != second).all()
    rng = np.random.default_rng(3)
    np.testing.assert_array_equal(initializers.made(initializers.normal(), (4,), rng=rng), first)
    np.testing.assert_array_equal(initializers.made(initializers.normal(), (4,), rng=3), first)


def test_wrong_settings() -> None:
    for call in (
        lambda: initializers.variance_scaling(mode="fan"),
        lambda: initializers.variance_scaling(distribution="cauchy"),
        lambda: draw(initializers.orthogonal(), (3,)),
        lambda: draw(initializers.identity(), (3,)),
    ):
        with pytest.raises(ValueError, match="fan_in|truncated_normal|two dims"):
            call()
