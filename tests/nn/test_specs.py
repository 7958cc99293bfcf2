"""`nn.init` and `nn.summary`; models that compiled functions close over."""

from typing import Any

import numpy as np
import pytest

import jitney as jt
from jitney import nn


def model() -> Any:
    return nn.Sequential(nn.Linear(4), nn.BatchNorm(), nn.relu, nn.Linear(2))


def test_init_makes_parameters_and_leaves_state() -> None:
    made = nn.init(model(), (3, 5))
    assert nn.unbuilt(made) == [] and made.layers[0].w.shape == (5, 4) and made.layers[1].training
    made.layers[1].mean[...] = 7
    nn.init(made, jt.ShapeDtype((3, 5), np.float32))
    assert (made.layers[1].mean == 7).all() and (made.layers[1].var == 1).all()

    class Idle(nn.Module):
        def __init__(self) -> None:
            self.used, self.idle = nn.Linear(2), [nn.Linear(3)]

        def __call__(self, pair: Any) -> Any:
            return self.used(pair["x"] + pair["y"][0])

    with pytest.raises(jt.errors.ArgumentError, match=r"of this Idle nothing has built idle\[0\]"):
        nn.init(Idle(), {"x": (3, 2), "y": [(3, 2)]})


def test_summary_shows_what_is_there() -> None:
    shown = nn.summary(model(), (3, 5), flops=True)
    assert [row.path for row in shown.rows] == ["", "layers[0]", "layers[1]", "layers[3]"]
    assert (shown.trained, shown.fixed, shown.bytes) == (24 + 8 + 10, 8, 4 * 50)
    assert shown.rows[1].shapes == "float32[3, 4]" and shown.rows[1].flops == 3 * 4 * 11
    made = nn.freeze(nn.init(model(), (3, 5)), "layers/0")
    held = nn.summary(made)
    assert (held.trained, held.fixed) == (18, 32) and type(made.layers[0]) is nn.Linear
    assert str(held).splitlines()[0].split() == ["path", "module", "trained", "other", "bytes"]


def test_a_model_that_is_closed_over_is_one_that_is_given() -> None:
    x = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)
    one, two = nn.init(model(), (6, 5)), nn.init(model(), (6, 5))
    two = jt.tree.map(np.copy, one)
    closed, given = jt.jit(lambda x: one(x)), jt.jit(lambda m, x: m(x))
    for _ in range(2):
        np.testing.assert_allclose(closed(x), given(two, x), rtol=1e-6)
    np.testing.assert_allclose(one.layers[1].mean, two.layers[1].mean, rtol=1e-6)
    assert (one.layers[1].mean != 0).any()


def test_moving_averages_of_weights() -> None:
    made = nn.init(model(), (3, 5))
    ema = nn.EMA(made, decay=0.9, warm_up=True)
    arrays = [array.copy() for array in jt.tree.leaves(made)]

    @jt.jit
    def step(ema: Any, x: Any) -> Any:
        ema.model(x)
        for array in jt.tree.leaves(jt.tree.trained(ema.model)):
            array += 1
        ema.update()

    x = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)
    held = jt.tree.leaves(ema.average)
    for n in range(3):
        decay = min(0.9, (1 + n) / (10 + n))
        step(ema, x)
        for array, now, moves in zip(arrays, jt.tree.leaves(made), ema.moving, strict=True):
            array[...] = decay * array + (1 - decay) * now if moves else now
    for array, average, before in zip(arrays, jt.tree.leaves(ema.average), held, strict=True):
        np.testing.assert_allclose(average, array, rtol=1e-5)
        assert average is before
    assert ema.updates == 3 and jt.tree.leaves(jt.tree.trained(ema)) == []
    np.testing.assert_array_equal(ema.eval()(x), ema.average(x))
    with pytest.raises(ValueError, match="from 0 to 1"):
        nn.EMA(made, decay=2)
