"""Losses: values, gradients, extreme logits, reductions, weights and masks; compiled once for all."""

import numpy as np
import pytest

import jitney as jt
from jitney.nn import losses

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((2, 6, 4))
P = np.exp(Y) / np.exp(Y).sum(axis=1, keepdims=True)
BITS = (Y > 0).astype(float)
LABELS = np.array([0, 3, 1, 1, 2, 0])
CASES = {
    "mse": lambda x: losses.mse(x, Y, reduction="none"),
    "mae": lambda x: losses.mae(x, Y, reduction="none"),
    "huber": lambda x: losses.huber(x, Y, 0.5, reduction="none"),
    "hinge": lambda x: losses.hinge(x, 2 * BITS - 1, reduction="none"),
    "log_loss": lambda x: losses.log_loss(1 / (1 + np.exp(-x)), BITS, reduction="none"),
    "sigmoid": lambda x: losses.sigmoid_cross_entropy(x, BITS, reduction="none"),
    "weighted": lambda x: losses.sigmoid_cross_entropy(
        x, BITS, 3.0, label_smoothing=0.2, reduction="none"
    ),
    "softmax": lambda x: losses.softmax_cross_entropy(x, P, label_smoothing=0.1, reduction="none"),
    "sparse": lambda x: losses.sparse_softmax_cross_entropy(
        x, LABELS, label_smoothing=0.1, reduction="none"
    ),
    "kl": lambda x: losses.kl_divergence(x, P * BITS, reduction="none"),
    "cosine": lambda x: losses.cosine(x, Y, reduction="none"),
    "triplet": lambda x: losses.triplet(x, Y, P, reduction="none"),
    "contrastive": lambda x: losses.contrastive(x, Y, BITS[:, 0], 3.0, reduction="none"),
}


def log_softmax(x):
    return x - np.log(np.exp(x).sum(axis=1, keepdims=True))


def distance(a, b):
    return np.sqrt(((a - b) ** 2).sum(axis=1))


def expected():
    d, p = X - Y, 1 / (1 + np.exp(-X))
    smooth = 0.8 * BITS + 0.1
    nll = -log_softmax(X)[np.arange(6), LABELS]
    t, same = P * BITS, BITS[:, 0]
    far = np.maximum(3 - distance(X, Y), 0)
    return {
        "mse": d**2,
        "mae": abs(d),
        "huber": np.where(abs(d) < 0.5, d**2 / 2, 0.5 * (abs(d) - 0.25)),
        "hinge": np.maximum(1 - (2 * BITS - 1) * X, 0),
        "log_loss": -BITS * np.log(p + 1e-7) - (1 - BITS) * np.log(1 - p + 1e-7),
        "sigmoid": -BITS * np.log(p) - (1 - BITS) * np.log(1 - p),
        "weighted": -3 * smooth * np.log(p) - (1 - smooth) * np.log(1 - p),
        "softmax": -((0.9 * P + 0.025) * log_softmax(X)).sum(axis=1),
        "sparse": 0.9 * nll - 0.1 * log_softmax(X).mean(axis=1),
        "kl": (t * (np.log(np.where(t > 0, t, 1)) - X)).sum(axis=1),
        "cosine": 1 - (X * Y).sum(axis=1) / distance(X, 0) / distance(Y, 0),
        "triplet": np.maximum(distance(X, Y) - distance(X, P) + 1, 0),
        "contrastive": same * distance(X, Y) ** 2 + (1 - same) * far**2,
    }


def test_values_eager_and_compiled():
    compiled = jt.jit(lambda x: {name: case(x) for name, case in CASES.items()})(X)
    for name, wanted in expected().items():
        np.testing.assert_allclose(CASES[name](X), wanted, rtol=1e-9, err_msg=name)
        np.testing.assert_allclose(compiled[name], wanted, rtol=1e-9, err_msg=name)


def test_gradients():
    gradients = jt.jit(
        lambda x: {n: jt.grad(lambda x, c=c: c(x).sum())(x) for n, c in CASES.items()}
    )
    direction = RNG.standard_normal(X.shape)
    for name, gradient in gradients(X).items():
        ends = [CASES[name](X + h * direction).sum() for h in (-1e-6, 1e-6)]
        slope = (ends[1] - ends[0]) / 2e-6
        assert (gradient * direction).sum() == pytest.approx(slope, rel=1e-5, abs=1e-8), name


def test_extremes_stay_finite():
    huge = np.array([[1e4, -1e4, 0.0], [-1e4, 1e4, 1e4]])
    labels = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])

    def total(x):
        return (
            losses.sigmoid_cross_entropy(x, labels)
            + losses.sigmoid_cross_entropy(x, labels, 2.0)
            + losses.softmax_cross_entropy(x, labels)
            + losses.sparse_softmax_cross_entropy(x, np.array([1, 0]))
            + losses.log_loss(np.maximum(np.minimum(x, 1), 0), labels)
        )

    value, gradient = jt.jit(jt.value_and_grad(total))(huge)
    assert value == pytest.approx(5e4 / 6 + 7e4 / 6 + 2e4 + 2e4, rel=1e-3)
    assert np.all(np.isfinite(gradient))
    meeting = jt.grad(lambda x: losses.contrastive(x, X, np.ones(6)) + losses.triplet(x, X, Y))
    assert np.all(np.isfinite(meeting(X)))
    assert np.all(np.isfinite(jt.grad(lambda x: losses.cosine(x, Y))(np.zeros_like(X))))
    zeros = np.array([[1.0, 0.0]])
    assert losses.kl_divergence(np.array([[0.0, -50.0]]), zeros) == 0


def test_reductions_weights_and_masks():
    x, y = np.array([[1.0, 2.0], [3.0, np.nan]]), np.zeros((2, 2))
    mask = ~np.isnan(x)
    assert losses.mse(x[:1], y[:1]) == 2.5
    assert losses.mse(x[:1], y[:1], reduction="sum") == 5
    assert losses.mse(x, y, mask=mask) == pytest.approx(14 / 3)
    assert losses.mse(x, y, mask=mask, weights=[[2.0], [1.0]]) == pytest.approx(19 / 5)
    assert losses.mse(x, y, mask=np.zeros((2, 2), bool)) == 0
    assert losses.mse(x, y, mask=mask, reduction="none").tolist() == [[1, 4], [9, 0]]
    gradient = jt.jit(jt.grad(lambda x: losses.mse(x, y, mask=mask)))(x)
    np.testing.assert_allclose(gradient, [[2 / 3, 4 / 3], [2, 0]])
    logits = np.log(np.array([[0.5, 0.5], [0.25, 0.75], [0.1, 0.9]]))
    weighted = losses.sparse_softmax_cross_entropy(
        logits, np.array([0, 1, -100]), np.array([1.0, 3.0]), mask=np.array([True, True, False])
    )
    assert weighted == pytest.approx(-(np.log(0.5) + 3 * np.log(0.75)) / 4)


def test_labels_that_are_no_class_are_errors():
    for call in (losses.sparse_softmax_cross_entropy, jt.jit(losses.sparse_softmax_cross_entropy)):
        with pytest.raises(IndexError):
            call(X, np.full(6, 4))


def test_small_floats_are_summed_in_float32():
    for dtype in (np.float16, np.dtype(jt.bfloat16)):
        logits = np.full((2000, 3), 4.0).astype(dtype)
        value = losses.sparse_softmax_cross_entropy(logits, np.zeros(2000, int), reduction="sum")
        assert value.dtype == np.float32 and value == pytest.approx(2000 * np.log(3), rel=1e-5)
        assert losses.mse(logits, np.zeros((2000, 3)), reduction="sum") == 96000


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: losses.mse(np.ones((3, 1)), np.ones(3)), "one shape.*drops an axis"),
        (lambda: losses.sparse_softmax_cross_entropy(X, BITS), "a class for each row"),
        (lambda: losses.sparse_softmax_cross_entropy(X, LABELS[:5]), "a class for each row"),
        (lambda: losses.mse(X, Y, mask=np.ones(6, bool)), "mask of shape.*do not fit"),
        (lambda: losses.mse(X, Y, weights=np.ones((2, 6, 4))), "weights of shape.*do not fit"),
        (lambda: losses.mse(X, Y, reduction="average"), "'average' is no reduction"),
        (lambda: jt.jit(losses.huber)(X, Y[0]), "huber takes predictions and targets of one shape"),
    ],
)
def test_wrong_programs(wrong, says):
    with pytest.raises(ValueError, match=f"(?s)test_losses.py:[0-9]+: .*{says}"):
        wrong()
