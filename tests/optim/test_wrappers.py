"""What stands around a rule: masks, groups, clipping, accumulation, steps left out, small floats."""

import numpy as np
import pytest

import jitney as jt
from jitney import optim

PARAMS = {"w": np.array([3.0, -4.0]), "b": np.array([12.0])}


def fresh():
    return {name: array.copy() for name, array in PARAMS.items()}


def once(opt, grads, params=PARAMS):
    return opt.update(grads, opt.init(params), params)[0]


def same(tree, other):
    jt.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12), tree, other)


def test_clipping():
    assert float(optim.global_norm(PARAMS)) == 13
    same(once(optim.clip(3.5), PARAMS), {"w": [3.0, -3.5], "b": [3.5]})
    same(once(optim.clip_by_norm(2.5), PARAMS), {"w": [1.5, -2.0], "b": [2.5]})
    same(once(optim.clip_by_global_norm(6.5), PARAMS), {"w": [1.5, -2.0], "b": [6.0]})
    same(once(optim.clip_by_global_norm(14.0), PARAMS), PARAMS)
    same(once(optim.clip_by_global_norm(13.0, eps=13.0), PARAMS), {"w": [1.5, -2.0], "b": [6.0]})
    assert float(optim.global_norm([np.full(4, 300.0, np.float16)])) == 600  # in float32
    zeros = {"w": np.zeros(2), "b": None}
    assert once(optim.clip_by_global_norm(1.0), zeros)["w"].tolist() == [0, 0]


def test_weights_are_clipped():
    params = fresh()
    opt = optim.Optimizer(params, optim.chain(optim.sgd(1.0), optim.clip_weights(-2.0, 2.0)))
    opt.step({"w": np.array([2.5, 1.0]), "b": np.array([-1.0])})
    same(params, {"w": [0.5, -2.0], "b": [2.0]})


def test_masks_and_groups():
    decay = optim.add_decayed_weights(0.5)
    grads = {"w": np.ones(2), "b": np.ones(1)}
    by_rank = lambda params: jt.tree.map(lambda p: p.size > 1, params)  # noqa: E731
    wanted = {"w": [2.5, -1.0], "b": [1.0]}
    same(once(optim.masked(decay, by_rank), grads), wanted)
    same(once(optim.masked(decay, {"w": True, "b": False}), grads), wanted)
    opt = optim.by_group(optim.sgd(1.0), (by_rank, optim.adam(0.1)))
    state = opt.init(PARAMS)
    updates, state = opt.update(grads, state, PARAMS)
    same(updates, {"w": np.full(2, -0.1 / (1 + 1e-8)), "b": [-1.0]})
    assert state[0][0]["mean"]["b"] is None
    updates, _ = opt.update({"w": None, "b": np.ones(1)}, state, PARAMS)
    assert updates["w"] is None


def test_gradients_may_be_missing():
    opt = optim.adam(0.1)
    state = opt.init({**PARAMS, "n": np.arange(3)})
    params, grads = {**PARAMS, "n": np.arange(3)}, {"w": np.ones(2), "b": None, "n": None}
    updates, state = opt.update(grads, state, params)
    moved = optim.apply_updates(params, updates)
    assert moved["b"] is PARAMS["b"] and moved["n"] is params["n"]
    assert state[0]["mean"]["b"].tolist() == [0] and state[0]["mean"]["n"] is None


def test_accumulated_gradients_are_one_of_their_mean():
    whole, parts = fresh(), fresh()
    grads = [{"w": np.array([1.0, i]), "b": np.array([i * i])} for i in (1.0, 2.0, 6.0)]
    mean = {"w": np.array([1.0, 3.0]), "b": np.array([41 / 3])}
    one = optim.Optimizer(whole, optim.adam(0.1))
    three = optim.Optimizer(parts, optim.accumulate(optim.adam(0.1), 3))
    step = jt.jit(three.step, inplace="require")
    for _ in range(2):
        one.step(mean)
        before = {k: p.copy() for k, p in parts.items()}
        step(grads[0])
        step(grads[1])
        same(parts, before)
        step(grads[2])
        same(parts, whole)
    same(three.slots["square"], one.slots["square"])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_steps_that_are_not_finite_are_left_out(bad):
    params, twin = fresh(), fresh()
    opt = optim.Optimizer(params, optim.apply_if_finite(optim.adam(0.1)))
    plain = optim.Optimizer(twin, optim.adam(0.1))
    step = jt.jit(opt.step, inplace="require")
    good = {"w": np.ones(2), "b": np.ones(1)}
    wrong = {"w": np.array([1.0, bad]), "b": np.ones(1)}
    for grads in (good, wrong, wrong, good):
        step(grads)
    for _ in range(2):
        plain.step(good)
    same(params, twin)
    assert (opt.state["skipped"], opt.state["in_a_row"]) == (2, 0)
    assert not optim.all_finite(wrong) and optim.all_finite(good)


def test_masters_add_up_what_small_floats_lose():
    for dtype in (np.float16, np.dtype(jt.bfloat16)):
        params = {"w": np.ones(3, dtype), "v": np.ones(2, np.float32)}
        opt = optim.Optimizer(params, optim.with_masters(optim.sgd(1.0)))
        grads = {"w": np.full(3, 1e-4, dtype), "v": np.full(2, 1e-4, np.float32)}
        step = jt.jit(opt.step)
        for _ in range(200):
            step(grads)
        assert opt.state["masters"]["w"].dtype == np.float32 and opt.state["masters"]["v"] is None
        np.testing.assert_allclose(params["w"].astype(float), 0.98, atol=4e-3)
        np.testing.assert_array_equal(params["w"], opt.state["masters"]["w"].astype(dtype))
        np.testing.assert_allclose(params["v"], 0.98, rtol=1e-5)


def test_losses_are_scaled_so_that_small_gradients_stay():
    params = {"w": np.full(2, 1.0, np.float16)}
    opt = optim.Optimizer(
        params, optim.scale_loss(optim.with_masters(optim.sgd(1000.0)), 2.0**20, interval=3)
    )
    step = jt.jit(
        lambda: opt.minimize(lambda p: (p["w"] * np.float16(2e-4)).sum() * np.float16(1e-4))
    )
    seen = []
    for _ in range(9):
        value = step()
        seen.append(float(opt.state["scale"]))
    assert float(value) == pytest.approx(4e-8, rel=0.5)  # the loss is not scaled
    assert seen[:5] == [2.0**k for k in (19, 18, 17, 16, 15)]  # gradients overflow
    assert seen[5:] == [2.0**15, 2.0**15, 2.0**16, 2.0**15]  # three good steps, and too large again
    np.testing.assert_allclose(opt.slots["masters"]["w"], 1 - 3 * 2e-5, rtol=1e-6)
