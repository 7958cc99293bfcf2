"""Recurrent layers against PyTorch's with the same weights, in float64: outputs, gradients, training."""

import numpy as np
import pytest

import jitney as jt
from jitney import nn

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)
NAMES = {"w_x": "weight_ih", "w_h": "weight_hh", "b_x": "bias_ih", "b_h": "bias_hh"}
STEPS, BATCH, INPUTS, HIDDEN = 7, 4, 3, 5
LENGTHS = np.array([7, 3, 5, 1])


def theirs(layer, other, k, name):
    """PyTorch's parameter, and what makes it ours."""
    suffix = f"_l{k // layer.directions}" + "_reverse" * (k % layer.directions)
    return getattr(other, NAMES[name] + suffix)


def pair(kind, **options):
    other = getattr(torch.nn, kind)(INPUTS, HIDDEN, dtype=torch.float64, **options)
    layer = getattr(nn, kind)(INPUTS, HIDDEN, dtype=np.float64, **options)
    for k, cell in enumerate(layer.cells):
        for name in NAMES:
            setattr(cell, name, theirs(layer, other, k, name).detach().numpy().T.copy())
    return layer, other


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_outputs_and_gradients(kind, layers, bidirectional, packed):
    layer, other = pair(kind, num_layers=layers, bidirectional=bidirectional)
    x = RNG.normal(size=(STEPS, BATCH, INPUTS))
    lengths = LENGTHS if packed else None
    given = taken = torch.tensor(x, requires_grad=True)
    if packed:
        pack = torch.nn.utils.rnn.pack_padded_sequence
        taken = pack(given, torch.tensor(LENGTHS), enforce_sorted=False)
    output, state = other(taken)
    if packed:
        output, _ = torch.nn.utils.rnn.pad_packed_sequence(output)
    states = state if kind == "LSTM" else [state]
    weights = [RNG.normal(size=tuple(a.shape)) for a in (output, *states)]
    value = sum(
        (a * torch.tensor(w)).sum() for a, w in zip((output, *states), weights, strict=True)
    )
    value.backward()

    def loss(layer, x, lengths):
        y, last = layer(x, lengths=lengths)
        parts = zip((y, *jt.tree.leaves(last)), weights, strict=True)
        return sum((a * w).sum() for a, w in parts), y

    (found, y), (slope, dx) = jt.jit(jt.value_and_grad(loss, argnums=(0, 1), has_aux=True))(
        layer, x, lengths
    )
    close = {"rtol": 1e-9, "atol": 1e-12}
    np.testing.assert_allclose(found, value.item(), **close)
    np.testing.assert_allclose(y, output.detach().numpy(), **close)
    np.testing.assert_allclose(dx, given.grad.numpy(), **close)
    for k, cell in enumerate(slope.cells):
        for name in NAMES:
            expected = theirs(layer, other, k, name).grad.numpy().T
            np.testing.assert_allclose(getattr(cell, name), expected, **close)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_two_hundred_steps_of_training(kind):
    """Classes of sequences, by plain gradient descent: each step's loss is PyTorch's to 1e-9."""
    layer, other = pair(kind)
    w = np.linspace(-1, 1, HIDDEN * 3).reshape(HIDDEN, 3)
    xs = RNG.normal(size=(200, STEPS, BATCH, INPUTS))
    labels = RNG.integers(0, 3, (200, BATCH))

    def loss(layer, x, label):
        y, _ = layer(x)
        return -np.mean(nn.log_softmax(y[-1] @ w)[np.arange(BATCH), label])

    @jt.jit
    def step(layer, x, label):
        value, slope = jt.value_and_grad(loss)(layer, x, label)
        for name in NAMES:
            cell = layer.cells[0]
            setattr(cell, name, getattr(cell, name) - 0.3 * getattr(slope.cells[0], name))
        return value

    descent = torch.optim.SGD(other.parameters(), 0.3)
    for x, label in zip(xs, labels, strict=True):
        descent.zero_grad()
        logits = other(torch.tensor(x))[0][-1] @ torch.tensor(w)
        expected = torch.nn.functional.cross_entropy(logits, torch.tensor(label))
        expected.backward()
        descent.step()
        np.testing.assert_allclose(step(layer, x, label), expected.item(), rtol=1e-9)
