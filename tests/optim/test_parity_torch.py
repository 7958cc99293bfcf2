"""200 steps of each class end where PyTorch's do, and its schedules give the same rates."""

import numpy as np
import pytest

import jitney as jt
from jitney import optim

torch = pytest.importorskip("torch")
pytest.importorskip("torch.optim.lr_scheduler")
STEPS = 200
X, Y = np.random.default_rng(0).standard_normal((2, 20, 5))
OPTIMISERS = [
    ("SGD", {"lr": 0.05}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True}),
    ("Adam", {"lr": 0.01, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.01, "amsgrad": True}),
    ("AdamW", {"lr": 0.01, "weight_decay": 0.1}),
    ("AdamW", {"lr": 0.01, "amsgrad": True, "betas": (0.8, 0.99), "eps": 1e-6}),
    ("Adagrad", {"lr": 0.1}),
    ("Adagrad", {"lr_decay": 0.01, "weight_decay": 0.01, "initial_accumulator_value": 0.1}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.8, "weight_decay": 0.1}),
    ("RMSprop", {"lr": 0.001}),
    ("RMSprop", {"lr": 0.001, "centered": True, "momentum": 0.9, "weight_decay": 0.01}),
]


def fresh():
    r = np.random.default_rng(1)
    return {"w": r.standard_normal((5, 4)), "v": r.standard_normal(4), "b": r.standard_normal(1)}


def loss(p, sinh=np.tanh, x=X, y=Y[:, 0]):
    return ((sinh(x @ p["w"]) @ p["v"] + p["b"] - y) ** 2).mean()


def of_torch(name, options, schedule=None):
    params = {k: torch.tensor(v, requires_grad=True) for k, v in fresh().items()}
    opt = getattr(torch.optim, name)(list(params.values()), **options)
    rates = schedule(opt) if schedule else None

    def closure():
        opt.zero_grad()
        value = loss(params, torch.tanh, torch.tensor(X), torch.tensor(Y[:, 0]))
        value.backward()
        return value

    for _ in range(STEPS):
        opt.step(closure)
        if rates:
            rates.step()
    return {k: p.detach().numpy() for k, p in params.items()}


def of_ours(name, options):
    params = fresh()
    opt = getattr(optim, name)(params, **options)
    step = jt.jit(lambda: opt.minimize(loss), inplace="require")
    for _ in range(STEPS):
        step()
    return params


def check(ours, theirs):
    for name, array in ours.items():
        np.testing.assert_allclose(array, theirs[name], rtol=1e-9)


@pytest.mark.parametrize(("name", "options"), OPTIMISERS)
def test_optimisers(name, options):
    check(of_ours(name, options), of_torch(name, options))


def schedules():
    made = torch.optim.lr_scheduler
    return [
        (lambda o: made.StepLR(o, 20, 0.5), optim.exponential_decay(0.1, 20, 0.5, staircase=True)),
        (
            lambda o: made.MultiStepLR(o, [10, 50], 0.1),
            optim.piecewise_constant_schedule(0.1, {10: 0.1, 50: 0.1}),
        ),
        (lambda o: made.ExponentialLR(o, 0.97), optim.exponential_decay(0.1, 1, 0.97)),
        (lambda o: made.LinearLR(o, 0.1, 1.0, 30), optim.linear_schedule(0.01, 0.1, 30)),
        (lambda o: made.PolynomialLR(o, 50, 2.0), optim.polynomial_schedule(0.1, 0.0, 2, 50)),
        (
            lambda o: made.OneCycleLR(o, 0.1, STEPS + 1, cycle_momentum=False),
            optim.one_cycle(0.1, STEPS + 1),
        ),
        (
            lambda o: made.OneCycleLR(
                o, 0.1, STEPS + 1, pct_start=0.4, anneal_strategy="linear", cycle_momentum=False
            ),
            optim.one_cycle(0.1, STEPS + 1, 0.4, "linear"),
        ),
    ]


@pytest.mark.parametrize("number", range(7))
def test_schedules(number):
    theirs, ours = schedules()[number]
    check(of_ours("SGD", {"lr": ours}), of_torch("SGD", {"lr": 0.1}, theirs))
