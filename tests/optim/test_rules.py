"""Each rule against its formula, and one face against the other: eager, compiled, in place."""

import numpy as np
import pytest

import jitney as jt
from jitney import optim

STEPS = 4
TREE = {"w": np.array([[0.5, -1.5], [2.0, 0.1]]), "b": np.array([0.3, -0.2])}


def fresh(dtype=np.float64):
    return {name: array.astype(dtype) for name, array in TREE.items()}


def loss(params):
    return ((params["w"] @ np.array([1.0, -2.0]) + params["b"] - 0.7) ** 2).sum()


def gradient(params):
    error = 2 * (params["w"] @ np.array([1.0, -2.0]) + params["b"] - 0.7)
    return {"w": np.outer(error, [1.0, -2.0]), "b": error}


# Each formula moves one leaf `p` by `g` at step `t`, counted from 1; `s` is kept from step to step.


def sgd(p, g, t, s):
    return -0.1 * g


def momentum(p, g, t, s):
    s["m"] = 0.9 * s.get("m", 0) + g
    return -0.1 * s["m"]


def nesterov(p, g, t, s):
    s["m"] = 0.9 * s.get("m", 0) + g
    return -0.1 * (g + 0.9 * s["m"])


def dampened(p, g, t, s):
    g = g + 0.1 * p
    s["m"] = 0.9 * s["m"] + 0.8 * g if t > 1 else g
    return -0.1 * s["m"]


def moments(g, t, s):
    s["m"] = 0.9 * s.get("m", 0) + 0.1 * g
    s["v"] = 0.99 * s.get("v", 0) + 0.01 * g**2
    return s["m"] / (1 - 0.9**t), s["v"] / (1 - 0.99**t)


def adam(p, g, t, s):
    m, v = moments(g, t, s)
    return -0.1 * m / (np.sqrt(v) + 1e-3)


def adam_l2(p, g, t, s):
    return adam(p, g + 0.1 * p, t, s)


def adamw(p, g, t, s):
    return adam(p, g, t, s) - 0.1 * 0.2 * p


def amsgrad(p, g, t, s):
    m, v = moments(g, t, s)
    s["top"] = np.maximum(s.get("top", 0), v)
    return -0.1 * m / (np.sqrt(s["top"]) + 1e-3)


def amsgrad_biased(p, g, t, s):
    m, _ = moments(g, t, s)
    s["top"] = np.maximum(s.get("top", 0), s["v"])
    return -0.1 * m / (np.sqrt(s["top"] / (1 - 0.99**t)) + 1e-3)


def adagrad(p, g, t, s):
    s["sum"] = s.get("sum", 0.1) + g**2
    return -0.1 * g / np.sqrt(s["sum"] + 1e-7)


def adagrad_falling(p, g, t, s):
    s["sum"] = s.get("sum", 0) + g**2
    return -0.1 / (1 + (t - 1) * 0.5) * g / (np.sqrt(s["sum"]) + 1e-10)


def adadelta(p, g, t, s):
    s["v"] = 0.8 * s.get("v", 0) + 0.2 * g**2
    delta = np.sqrt(s.get("d", 0) + 1e-2) / np.sqrt(s["v"] + 1e-2) * g
    s["d"] = 0.8 * s.get("d", 0) + 0.2 * delta**2
    return -0.5 * delta


def rmsprop(p, g, t, s):
    s["v"] = 0.9 * s.get("v", 0) + 0.1 * g**2
    return -0.1 * g / np.sqrt(s["v"] + 1e-8)


def rmsprop_centred(p, g, t, s):
    s["v"] = 0.9 * s.get("v", 0) + 0.1 * g**2
    s["m"] = 0.9 * s.get("m", 0) + 0.1 * g
    s["d"] = 0.5 * s.get("d", 0) + g / (np.sqrt(s["v"] - s["m"] ** 2) + 1e-8)
    return -0.1 * s["d"]


def lion(p, g, t, s):
    direction = np.sign(0.9 * s.get("m", 0) + 0.1 * g)
    s["m"] = 0.99 * s.get("m", 0) + 0.01 * g
    return -0.1 * (direction + 0.2 * p)


RULES = {
    sgd: lambda: optim.sgd(0.1),
    momentum: lambda: optim.sgd(optim.constant_schedule(0.1), 0.9),
    nesterov: lambda: optim.sgd(np.array(0.1), 0.9, nesterov=True),
    adam: lambda: optim.adam(0.1, 0.9, 0.99, 1e-3),
    adamw: lambda: optim.adamw(0.1, 0.9, 0.99, 1e-3, weight_decay=0.2),
    amsgrad: lambda: optim.amsgrad(0.1, 0.9, 0.99, 1e-3),
    adagrad: lambda: optim.adagrad(0.1),
    adadelta: lambda: optim.adadelta(0.5, 0.8, 1e-2),
    rmsprop: lambda: optim.rmsprop(0.1),
    lion: lambda: optim.lion(0.1, weight_decay=0.2),
}
CLASSES = {
    sgd: lambda p: optim.SGD(p, 0.1),
    dampened: lambda p: optim.SGD(p, 0.1, 0.9, dampening=0.2, weight_decay=0.1),
    nesterov: lambda p: optim.SGD(p, 0.1, 0.9, nesterov=True),
    adam: lambda p: optim.Adam(p, 0.1, (0.9, 0.99), 1e-3),
    adam_l2: lambda p: optim.Adam(p, 0.1, (0.9, 0.99), 1e-3, weight_decay=0.1),
    adamw: lambda p: optim.AdamW(p, 0.1, (0.9, 0.99), 1e-3, weight_decay=0.2),
    amsgrad_biased: lambda p: optim.Adam(p, 0.1, (0.9, 0.99), 1e-3, amsgrad=True),
    adagrad_falling: lambda p: optim.Adagrad(p, 0.1, lr_decay=0.5),
    adadelta: lambda p: optim.Adadelta(p, 0.5, 0.8, 1e-2),
    rmsprop_centred: lambda p: optim.RMSprop(p, 0.1, 0.9, momentum=0.5, centered=True),
    lion: lambda p: optim.Lion(p, 0.1, weight_decay=0.2),
}


def expected(formula):
    params, kept = fresh(), {name: {} for name in TREE}
    for t in range(1, STEPS + 1):
        grads = gradient(params)
        params = {k: p + formula(p, grads[k], t, kept[k]) for k, p in params.items()}
    return params


def check(params, formula):
    wanted = expected(formula)
    for name, array in params.items():
        np.testing.assert_allclose(array, wanted[name], rtol=1e-12, err_msg=formula.__name__)


def test_functions_follow_their_formulas():
    for formula, make in RULES.items():
        opt, params = make(), fresh()
        state = opt.init(params)
        for _ in range(STEPS):
            updates, state = opt.update(gradient(params), state, params)
            params = optim.apply_updates(params, updates)
        check(params, formula)


def test_compiled_functions_do_too_and_compile_once():
    opts = [make() for make in RULES.values()]

    @jt.jit
    def step(all_params, states):
        results = []
        for opt, params, state in zip(opts, all_params, states, strict=True):
            updates, state = opt.update(jt.grad(loss)(params), state, params)
            results.append((optim.apply_updates(params, updates), state))
        return [p for p, _ in results], [s for _, s in results]

    all_params = [fresh() for _ in opts]
    states = [opt.init(p) for opt, p in zip(opts, all_params, strict=True)]
    for _ in range(STEPS):
        all_params, states = step(all_params, states)
    for params, formula in zip(all_params, RULES, strict=True):
        check(params, formula)
    assert step.cache_info().misses == 1


def test_classes_move_arrays_where_they_are():
    for formula, make in CLASSES.items():
        params = fresh()
        arrays = dict(params)
        opt = make(params)
        for _ in range(STEPS):
            opt.minimize(loss)
        check(params, formula)
        assert all(params[name] is array for name, array in arrays.items())


def test_compiled_classes_copy_nothing():
    trees = [fresh() for _ in CLASSES]
    opts = [make(params) for make, params in zip(CLASSES.values(), trees, strict=True)]

    @jt.jit(inplace="require")
    def step():
        for opt in opts:
            opt.minimize(loss)

    for _ in range(STEPS):
        step()
    for params, formula in zip(trees, CLASSES, strict=True):
        check(params, formula)
    assert step.cache_info().misses == 1


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_smaller_floats_keep_their_dtype(dtype):
    dtype = np.dtype(getattr(jt, dtype))
    params = fresh(dtype)
    opt = optim.Adam(params, 0.1)
    before = loss(fresh())
    for _ in range(20):
        opt.step({k: g.astype(dtype) for k, g in gradient(fresh_of(params)).items()})
    assert {p.dtype for p in params.values()} == {dtype}
    assert {leaf.dtype for leaf in opt.slots["mean"].values()} == {dtype}
    assert loss(fresh_of(params)) < 0.1 * before


def fresh_of(params):
    return {name: array.astype(np.float64) for name, array in params.items()}


def test_complex_parameters_fall_to_the_minimum():
    z = np.array([1 + 2j, -3j])
    opt = optim.SGD(z, 0.25)
    for _ in range(30):
        opt.minimize(lambda z: (abs(z - (1 - 1j)) ** 2).sum())
    np.testing.assert_allclose(z, 1 - 1j, atol=1e-6)
    adam = optim.adam(0.1)
    updates, state = adam.update(np.array([3 + 4j]), adam.init(np.array([1 + 1j])))
    np.testing.assert_allclose(updates, -0.1 * (0.6 + 0.8j), rtol=1e-6)
    assert state[0]["square"].dtype == np.float64


def test_groups_by_selection():
    """A selection, what `nn.select` makes of it, and a tree of bools are one mask."""
    x = np.ones((1, 2), np.float32)
    found = []
    for mask in (jt.nn.path("b"), lambda model: jt.nn.select(model, "b")):
        model = jt.nn.Linear(2, 1, w_init=1.0)
        opt = optim.SGD(model, 0.5, groups=[(mask, {"lr": 0.25})])
        opt.minimize(lambda model: model(x).sum())
        found.append((model.w.ravel().tolist(), model.b.tolist()))
    assert found == [([0.5, 0.5], [-0.25])] * 2
