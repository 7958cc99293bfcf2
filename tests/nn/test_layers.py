"""Layers: what sizes they find, what they hold, what the running state does, in plain and compiled code.

Values and gradients are compared with PyTorch's in `test_parity_layers.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitney as jt
from jitney import nn

R = np.random.default_rng(0)


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def image(channels: int, *sizes: int) -> Any:
    return R.normal(size=(2, channels, *sizes)).astype(np.float32)


@pytest.mark.parametrize(
    ("layer", "x", "shape", "parameters"),
    [
        (nn.Linear(5), ones(2, 3), (2, 5), {"w": (3, 5), "b": (5,)}),
        (nn.Linear(5, bias=False), ones(3), (5,), {"w": (3, 5)}),
        (nn.Conv1d(4, 3), ones(2, 3, 8), (2, 4, 6), {"w": (3, 3, 4), "b": (4,)}),
        (nn.Conv1d(4, 3, padding="CAUSAL"), ones(2, 3, 8), (2, 4, 8), {"w": (3, 3, 4), "b": (4,)}),
        (
            nn.Conv2d(4, (3, 1), stride=2, groups=2),
            ones(2, 6, 7, 8),
            (2, 4, 3, 4),
            {"w": (3, 1, 3, 4), "b": (4,)},
        ),
        (nn.Conv3d(4, 2, channels_last=True), ones(2, 3, 4, 5, 6), (2, 2, 3, 4, 4), None),
        (nn.ConvTranspose1d(4, 3, stride=2, padding="SAME"), ones(2, 3, 5), (2, 4, 10), None),
        (
            nn.ConvTranspose1d(4, 3, stride=2, padding="SAME", output_shape=9),
            ones(2, 3, 5),
            (2, 4, 9),
            None,
        ),
        (
            nn.ConvTranspose2d(4, 3, stride=2, padding="VALID", output_shape=(11, 12)),
            ones(2, 3, 5, 5),
            (2, 4, 11, 12),
            None,
        ),
        (
            nn.ConvTranspose3d(4, 2, groups=2, bias=False),
            ones(2, 6, 3, 3, 3),
            (2, 4, 4, 4, 4),
            {"w": (2, 2, 2, 3, 4)},
        ),
        (
            nn.DepthwiseConv2d(3, multiplier=2),
            ones(2, 5, 6, 6),
            (2, 10, 4, 4),
            {"w": (3, 3, 1, 10), "b": (10,)},
        ),
        (
            nn.SeparableConv1d(7, 3),
            ones(2, 5, 6),
            (2, 7, 4),
            {"depthwise.w": (3, 1, 5), "pointwise.w": (1, 5, 7), "pointwise.b": (7,)},
        ),
        (nn.MaxPool1d(2), ones(2, 3, 7), (2, 3, 3), {}),
        (nn.MaxPool3d(2, channels_last=True), ones(2, 4, 4, 4, 3), (2, 2, 2, 2, 3), {}),
        (nn.AvgPool2d(3, 1, "SAME"), ones(2, 3, 4, 4), (2, 3, 4, 4), {}),
        (nn.GlobalAvgPool(), ones(2, 3, 4, 4), (2, 3), {}),
        (nn.GlobalMaxPool(channels_last=True, keepdims=True), ones(2, 4, 4, 3), (2, 1, 1, 3), {}),
        (nn.AdaptiveMaxPool(2, 3), ones(2, 3, 5, 6), (2, 3, 2, 3), {}),
        (nn.Flatten(), ones(2, 3, 4), (2, 12), {}),
        (nn.Flatten(0, 1), ones(2, 3, 4), (6, 4), {}),
        (nn.LayerNorm(), ones(2, 3), (2, 3), {"scale": (3,), "shift": (3,)}),
        (nn.LayerNorm((2, 3), affine=False), ones(4, 2, 3), (4, 2, 3), {}),
        (nn.RMSNorm(3), ones(2, 3), (2, 3), {"scale": (3,)}),
        (nn.GroupNorm(2), ones(2, 4, 3), (2, 4, 3), {"scale": (4,), "shift": (4,)}),
        (nn.InstanceNorm(), ones(2, 4, 3), (2, 4, 3), {}),
        (
            nn.BatchNorm(),
            ones(2, 4, 3),
            (2, 4, 3),
            {"scale": (4,), "shift": (4,), "mean": (4,), "var": (4,)},
        ),
        (
            nn.Residual(nn.Conv2d(3, 3, padding=1)),
            ones(2, 3, 4, 4),
            (2, 3, 4, 4),
            {"body.w": (3, 3, 3, 3), "body.b": (3,)},
        ),
        (nn.MultiHeadAttention(2, kv_heads=1, head_features=3), ones(2, 5, 4), (2, 5, 4), None),
        (
            nn.TransformerBlock(2, gated=True, hidden=3, norm=nn.RMSNorm, bias=False),
            ones(2, 5, 4),
            (2, 5, 4),
            None,
        ),
        (nn.TransformerEncoder(2, 2), ones(2, 5, 4), (2, 5, 4), None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_shapes(layer: Any, x: Any, shape: Any, parameters: Any) -> None:
    y = layer(x)
    assert y.shape == shape and y.dtype == np.float32
    if parameters is not None:
        assert {path: a.shape for path, a in jt.tree.leaves_with_path(layer)} == parameters
    assert not nn.unbuilt(layer)


def test_sizes_that_are_given_are_built_at_once() -> None:
    for layer in (
        nn.Linear(3, 5),
        nn.Conv2d(3, 5, 2),
        nn.ConvTranspose1d(3, 5, 2),
        nn.DepthwiseConv1d(3, 2),
        nn.SeparableConv2d(3, 5, 2),
        nn.BatchNorm(3),
        nn.LayerNorm(3),
        nn.GroupNorm(1, 3),
        nn.MultiHeadAttention(2, 4),
        nn.TransformerDecoder(2, 2, 4),
        nn.Embedding(3, 4),
    ):
        assert not nn.unbuilt(layer), layer
        assert jt.tree.leaves(layer)


def test_parameters_begin_as_they_are_told() -> None:
    start = np.arange(6.0).reshape(2, 3)
    layer = nn.Linear(2, 3, w_init=start, b_init=nn.initializers.ones(), dtype=np.float64)
    np.testing.assert_array_equal(layer(np.eye(2)), start + 1)
    nn.seed(1)
    first = [nn.Conv2d(3, 4, 3).w, nn.Linear(3, 4, rng=5).w]
    nn.seed(1)
    again = [nn.Conv2d(3, 4, 3).w, nn.Linear(3, 4, rng=np.random.default_rng(5)).w]
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    kernel = nn.DepthwiseConv2d(64, 3, rng=0, dtype=np.float64).w
    assert abs(kernel.var() * 9 - 1) < 0.15, "each channel is its own group"


def test_batch_norm_state() -> None:
    """The running state and the results are the same in plain, compiled and differentiated code."""
    x = R.normal(size=(6, 3)) * 2 + 1
    steps = [x + i for i in range(4)]

    def run(norm: Any, call: Any) -> list[Any]:
        found = [call(norm, x) for x in steps]
        norm.eval()
        return [*found, call(norm, x), norm.mean.copy(), norm.var.copy()]

    def graded(norm: Any, x: Any) -> Any:
        return jt.value_and_grad(lambda norm: (norm(x) ** 3).sum())(norm)[0]

    plain = run(nn.BatchNorm(3, dtype=np.float64), lambda norm, x: norm(x))
    mean, var = np.zeros(3), np.ones(3)
    for step in steps:
        mean, var = 0.9 * mean + 0.1 * step.mean(0), 0.9 * var + 0.1 * step.var(0, ddof=1)
    np.testing.assert_allclose(plain[-2], mean)
    np.testing.assert_allclose(plain[-1], var)
    np.testing.assert_allclose(plain[-3], (x - mean) / np.sqrt(var + 1e-5))
    compiled = nn.BatchNorm(3, dtype=np.float64)
    call = jt.jit(lambda x: compiled(x))
    for a, b in zip(run(compiled, lambda norm, x: call(x)), plain, strict=True):
        np.testing.assert_allclose(a, b, 1e-12)
    trained = nn.BatchNorm(3, dtype=np.float64)
    step = jt.jit(lambda x: graded(trained, x))
    found = run(trained, lambda norm, x: step(x))
    np.testing.assert_allclose(found[-2:], plain[-2:])
    np.testing.assert_allclose(found[0], (plain[0] ** 3).sum(), 1e-9)
    eager = run(nn.BatchNorm(3, dtype=np.float64), graded)
    for a, b in zip(eager, found, strict=True):
        np.testing.assert_allclose(a, b, 1e-9)


def test_batch_norm_by_a_traced_flag() -> None:
    x = R.normal(size=(6, 3))
    norm, other = nn.BatchNorm(3, dtype=np.float64), nn.BatchNorm(3, dtype=np.float64)
    call = jt.jit(lambda x, training: norm(x, training))
    for training in (True, False, True, True, False):
        np.testing.assert_allclose(call(x, np.bool_(training)), other(x, training), 1e-12)
        np.testing.assert_allclose(norm.mean, other.mean, 1e-12)
        np.testing.assert_allclose(norm.var, other.var, 1e-12)
    gradient = jt.grad(lambda x: (norm(x, True) ** 3).sum())(x)
    step = 1e-6 * np.cos(np.arange(18.0)).reshape(6, 3)
    up, down = ((norm(x + s, True) ** 3).sum() for s in (step, -step))
    assert abs((gradient * step).sum() - (up - down) / 2) < 1e-12
    assert norm(x.astype(np.float16)).dtype == np.float16


def test_dropout() -> None:
    x = np.ones((200, 50))
    drop = nn.Dropout(0.3, rng=1)
    first, second = drop(x), drop(x)
    assert set(np.unique(first)) == {0.0, 1 / 0.7} and (first != second).any()
    assert abs((first == 0).mean() - 0.3) < 0.02
    np.testing.assert_array_equal(nn.Dropout(0.3, rng=1)(x), first)
    other = nn.Dropout(0.3, rng=1)
    compiled = jt.jit(lambda x: other(x))
    np.testing.assert_allclose(compiled(x), first)
    np.testing.assert_allclose(compiled(x), second)
    gradient = jt.grad(lambda x: nn.Dropout(0.3, rng=1)(x).sum())(x)
    np.testing.assert_allclose(gradient, first)
    state = drop.rng.bit_generator.state
    assert drop.eval()(x) is x and drop(x, training=False) is x and nn.Dropout(0.0)(x) is x
    assert drop.rng.bit_generator.state == state
    whole = nn.Dropout(0.5, shared=(2, 3), rng=0)(ones(4, 8, 3, 3))
    assert (whole == whole[:, :, :1, :1]).all() and whole.min() == 0 and whole.dtype == np.float32
    nn.seed(0)
    a, b = nn.Dropout(0.5), nn.Dropout(0.5)
    assert (a(x) != b(x)).any(), "each has a generator of its own"


def test_attention_masks_and_caches() -> None:
    """Masks of all shapes say the same, and places that come one by one see what they would at once."""
    x = R.normal(size=(2, 5, 8)).astype(np.float32)
    attend = nn.MultiHeadAttention(2, 8, kv_heads=1, causal=True, rng=0)
    wanted = attend(x)
    seen = np.tri(5, dtype=bool)
    for mask in (seen, np.stack([seen, seen]), np.broadcast_to(seen, (2, 2, 5, 5))):
        np.testing.assert_allclose(attend(x, mask=mask, causal=False), wanted, 1e-5, 1e-6)
    memory = R.normal(size=(2, 4, 6)).astype(np.float32)
    cross = nn.MultiHeadAttention(2, 8, key_features=6, rng=0)
    np.testing.assert_allclose(cross(x, cross.remember(memory)), cross(x, memory), 1e-6)

    decoder = nn.TransformerDecoder(2, 2, 8, rng=0)
    kept = decoder.cache(2, 6)
    remembered = decoder.remember(memory := R.normal(size=(2, 4, 8)).astype(np.float32))
    step = jt.jit(lambda x: decoder(x, remembered, cache=kept))
    parts = [step(x[:, :2]), *(step(x[:, i : i + 1]) for i in range(2, 5))]
    np.testing.assert_allclose(np.concatenate(parts, 1), decoder(x, memory), 1e-4, 1e-5)
    assert [cache.used for cache in kept] == [5, 5]
    step(x[:, :1])
    with pytest.raises(IndexError):
        step(x[:, :1])
    eager = decoder.cache(2, 1)
    decoder(x[:, :1], memory, cache=eager)
    with pytest.raises(IndexError, match="the cache has 1 places, and place 1 is asked for"):
        decoder(x[:, :1], memory, cache=eager)


def test_attention_that_drops() -> None:
    x = R.normal(size=(2, 5, 8)).astype(np.float32)
    attend = nn.MultiHeadAttention(4, 8, kv_heads=2, causal=True, dropout=0.5, rng=0)
    assert (attend(x) != attend(x)).any()
    wanted = attend.eval()(x)
    attend.train().dropout.rate = 0.0
    np.testing.assert_allclose(attend(x), wanted, 1e-5, 1e-6)
    np.testing.assert_allclose(attend(x, mask=np.ones((5, 5), bool)), wanted, 1e-5, 1e-6)
    block = nn.TransformerBlock(2, 8, dropout=0.5, rng=0)
    assert (block(x) != block(x)).any()
    np.testing.assert_array_equal(block.eval()(x), block(x))


def test_attentive_read() -> None:
    memory, query = R.normal(size=(2, 5, 3)), R.normal(size=(2, 4))
    mask = np.arange(5) < np.array([[5], [2]])
    read = nn.AttentiveRead(nn.Linear(1, dtype=np.float64))
    found, weights = read(memory, query, mask)
    pairs = np.concatenate([memory, np.repeat(query[:, None], 5, 1)], -1)
    scores = np.where(mask, read.scores(pairs)[..., 0], -np.inf)
    wanted = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    np.testing.assert_allclose(weights, wanted)
    np.testing.assert_allclose(found, np.einsum("bs,bsf->bf", wanted, memory))


def test_combining() -> None:
    x = ones(2, 3)
    model = nn.Sequential(nn.Linear(3, 4), nn.relu, nn.Linear(4, 2))
    assert len(model) == 3 and list(model)[1] is nn.relu and model[0].w.shape == (3, 4)
    np.testing.assert_array_equal(model[1:](model[0](x)), model(x))
    assert nn.Sequential(np.add, nn.relu)(x, -2 * x).sum() == 0
    merge = nn.Merge(4, nn.tanh, rng=0)
    wanted = np.tanh(
        merge(x, ones(2, 5)) * 0
        + sum(b(v) for b, v in zip(merge.branches, (x, ones(2, 5)), strict=True))
    )
    np.testing.assert_allclose(merge(x, ones(2, 5)), wanted)
    assert [b.b is None for b in merge.branches] == [False, True]
    assert nn.SelectInput((0, (2, 1)))(1, 2, 3) == (1, (3, 2))


def test_spectral_norm() -> None:
    x = R.normal(size=(4, 6))
    layer = nn.SpectralNorm(nn.Linear(5, dtype=np.float64), steps=60, rng=0)
    y = layer(x)
    w = layer.layer.w
    np.testing.assert_allclose(y, x @ w / np.linalg.norm(w, 2), 1e-5)
    layer.eval()

    def total(w: Any) -> Any:
        layer.layer.w = w
        return (layer(x) ** 2).sum()

    gradient, step = jt.grad(total)(w), 1e-6 * np.cos(np.arange(30.0)).reshape(6, 5)
    singular = np.linalg.norm(w + step, 2), np.linalg.norm(w - step, 2)
    up, down = (
        ((x @ (w + s) / n) ** 2).sum() for s, n in zip((step, -step), singular, strict=True)
    )
    assert abs((gradient * step).sum() - (up - down) / 2) < 1e-5 * abs(up - down)


def test_regularizers_are_collected_over_the_tree() -> None:
    model = nn.Sequential(
        nn.Linear(2, 3, w_init=2, w_reg=nn.L2(0.5), b_init=-1, b_reg=nn.L1(0.1)),
        nn.Residual(nn.Conv1d(3, 1, w_reg=nn.L1L2(1.0, 2.0), w_init=1)),
        nn.Embedding(2, 2, w_init=3, w_reg=lambda w: w.max()),
    )
    model[1].body.build(ones(1, 3, 2))
    assert abs(nn.regularization(model) - (12 + 0.3 + 9 + 18 + 3)) < 1e-5
    gradient = jt.grad(nn.regularization)(model)
    np.testing.assert_allclose(gradient.layers[0].w, 2.0)
    np.testing.assert_allclose(gradient.layers[0].b, -0.1)
    assert nn.regularization(nn.Linear(2, 3)) == 0
