"""Losses and their gradients are PyTorch's."""

import numpy as np
import pytest

import jitney as jt
from jitney.nn import losses

torch = pytest.importorskip("torch")
F = torch.nn.functional
RNG = np.random.default_rng(0)
X, Y, Z = 3 * RNG.standard_normal((3, 6, 4))
P = np.exp(Y) / np.exp(Y).sum(axis=1, keepdims=True)
BITS, SIGNS = (Y > 0).astype(float), np.sign(Z[:, 0])
LABELS, WEIGHTS = np.array([0, 3, 1, 1, 2, 0]), np.array([1.0, 0.5, 2.0, 3.0])
t = torch.tensor
CASES = [
    (lambda x: losses.mse(x, Y), lambda x: F.mse_loss(x, t(Y))),
    (lambda x: losses.mae(x, Y, reduction="sum"), lambda x: F.l1_loss(x, t(Y), reduction="sum")),
    (lambda x: losses.huber(x, Y, 0.7), lambda x: F.huber_loss(x, t(Y), delta=0.7)),
    (
        lambda x: losses.log_loss(P * 0 + 1 / (1 + np.exp(-x)), BITS, eps=0.0),
        lambda x: F.binary_cross_entropy(torch.sigmoid(x), t(BITS)),
    ),
    (
        lambda x: losses.sigmoid_cross_entropy(x, BITS, WEIGHTS),
        lambda x: F.binary_cross_entropy_with_logits(x, t(BITS), pos_weight=t(WEIGHTS)),
    ),
    (
        lambda x: losses.softmax_cross_entropy(x, P, label_smoothing=0.2),
        lambda x: F.cross_entropy(x, t(P), label_smoothing=0.2),
    ),
    (
        lambda x: losses.sparse_softmax_cross_entropy(1e4 * x, LABELS, WEIGHTS),
        lambda x: F.cross_entropy(1e4 * x, t(LABELS), t(WEIGHTS)),
    ),
    (
        lambda x: losses.sparse_softmax_cross_entropy(x, LABELS, mask=LABELS != 1),
        lambda x: F.cross_entropy(x, t(LABELS), ignore_index=1),
    ),
    (
        lambda x: losses.sparse_softmax_cross_entropy(x, LABELS, label_smoothing=0.2),
        lambda x: F.cross_entropy(x, t(LABELS), label_smoothing=0.2),
    ),
    (
        lambda x: losses.kl_divergence(x, P * BITS),
        lambda x: F.kl_div(x, t(P * BITS), reduction="batchmean"),
    ),
    (
        lambda x: losses.cosine(x, Y),
        lambda x: F.cosine_embedding_loss(x, t(Y), torch.ones(6, dtype=torch.float64)),
    ),
    (
        lambda x: losses.triplet(x, Y, Z, 5.0),
        lambda x: F.triplet_margin_loss(x, t(Y), t(Z), 5.0, eps=0.0),
    ),
    (
        lambda x: losses.hinge(x[:, 0], SIGNS),
        lambda x: torch.clamp(1 - t(SIGNS) * x[:, 0], min=0).mean(),
    ),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_values_and_gradients(number):
    ours, theirs = CASES[number]
    x = torch.tensor(X, requires_grad=True)
    wanted = theirs(x)
    wanted.backward()
    value, gradient = jt.jit(jt.value_and_grad(ours))(X)
    np.testing.assert_allclose(value, wanted.item(), rtol=1e-11)
    np.testing.assert_allclose(gradient, x.grad.numpy(), rtol=1e-9, atol=1e-12)
