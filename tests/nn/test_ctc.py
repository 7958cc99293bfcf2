"""Connectionist temporal classification is the sum over all rhythms, and PyTorch's."""

import itertools

import numpy as np
import pytest

import jitney as jt
from jitney.nn import losses

RNG = np.random.default_rng(0)


def written(path):
    return tuple(k for k, _ in itertools.groupby(path) if k)


def test_all_rhythms():
    """Of lengths that differ, with labels that repeat, without labels, and that do not fit."""
    logits = 2 * RNG.standard_normal((6, 4, 3))
    labels = np.array([[1, 2, 0], [1, 1, 2], [2, 2, 0], [2, 1, 1], [1, 1, 1], [2, 0, 0]])
    lengths, counts = np.array([4, 4, 3, 2, 4, 0]), np.array([2, 3, 2, 0, 3, 0])
    wanted = []
    for x, row, steps, n in zip(logits, labels, lengths, counts, strict=True):
        p = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
        paths = itertools.product(range(3), repeat=steps)
        fits = [path for path in paths if written(path) == tuple(row[:n])]
        with np.errstate(divide="ignore"):
            total = sum(np.prod([p[t, k] for t, k in enumerate(path)]) for path in fits)
            wanted.append(-np.log(float(total)))

    def each(x, labels, lengths, counts):
        return losses.ctc(x, labels, lengths, counts, reduction="none")

    given = labels, lengths, counts
    for found in (each(logits, *given), jt.jit(each)(logits, *given)):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
    assert np.isinf(wanted[4]) and wanted[5] == 0

    gradient = jt.jit(jt.grad(lambda x: each(x, *given).sum()))(logits)
    assert np.isfinite(gradient).all() and not gradient[4].any() and not gradient[2, 3].any()
    step = 1e-6 * RNG.standard_normal(logits.shape)
    finite = np.arange(6) != 4
    ends = [each(logits + s, *given)[finite].sum() for s in (step, -step)]
    assert (gradient * step).sum() == pytest.approx((ends[0] - ends[1]) / 2, rel=1e-6)


def test_empty():
    for n, steps, size in [(0, 4, 1), (2, 0, 1), (2, 4, 0), (2, 0, 0)]:
        found = losses.ctc(np.zeros((n, steps, 3)), np.ones((n, size), int), reduction="none")
        wanted = np.inf if steps < size else steps * np.log(3)
        np.testing.assert_allclose(found, np.full(n, wanted))


def test_float32_long_and_certain():
    logits = np.where(np.arange(5) == (np.arange(400) % 5)[:, None], 1e4, 0).astype(np.float32)
    labels = (np.arange(400) % 5)[np.arange(400) % 5 > 0]
    value, gradient = jt.jit(jt.value_and_grad(losses.ctc))(logits, labels)
    assert value.dtype == np.float32 and abs(value) < 1e-3 and np.isfinite(gradient).all()


def test_errors():
    logits = np.zeros((2, 4, 3))
    with pytest.raises(jt.errors.ShapeError, match=r"(?s)row of labels.*\(\.\.\., labels\)"):
        losses.ctc(logits, np.zeros((3, 2), int))
    with pytest.raises(jt.errors.ShapeError, match="ints"):
        losses.ctc(logits, np.zeros((2, 2)))
    with pytest.raises(jt.errors.ShapeError, match=r"(?s)label_lengths.*\(2,\)"):
        losses.ctc(logits, np.zeros((2, 2), int), label_lengths=np.array(2))


def test_pytorch():
    torch = pytest.importorskip("torch")
    for n, steps, classes, size in [(3, 9, 5, 3), (2, 12, 3, 4)]:
        x, labels = RNG.standard_normal((n, steps, classes)), RNG.integers(1, classes, (n, size))
        lengths, counts = RNG.integers(size * 2, steps + 1, n), RNG.integers(0, size + 1, n)
        mine = jt.value_and_grad(lambda x: losses.ctc(x, labels, lengths, counts, reduction="sum"))  # noqa: B023
        value, gradient = jt.jit(mine)(x)
        theirs = torch.tensor(x.transpose(1, 0, 2), requires_grad=True)
        given = map(torch.tensor, (labels, lengths, counts))
        loss = torch.nn.functional.ctc_loss(theirs.log_softmax(-1), *given, reduction="sum")
        loss.backward()
        assert value == pytest.approx(loss.item(), rel=1e-9)
        np.testing.assert_allclose(gradient, theirs.grad.numpy().transpose(1, 0, 2), atol=1e-9)
