"""`jt.train.Trainer`: the loop is the loop by hand, and goes on where it stopped, to the bit."""

import os
import signal
import time

import numpy as np
import pytest

import jitney as jt
from jitney import nn, optim, train

X = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
T = X @ np.array([[1.0], [-2.0], [0.5], [0.0]], np.float32)
BATCHES = [(X[k : k + 12], T[k : k + 12]) for k in range(0, 60, 12)]


class Net(nn.Module):
    def __init__(self):
        self.first, self.rng = nn.Linear(1, rng=0), np.random.default_rng(3)

    def __call__(self, x):
        if self.training:
            x = x * (self.rng.random(x.shape, dtype=np.float32) > 0.1)
        return self.first(x)


def loss(y, target):
    return ((y - target) ** 2).mean()


def error(y, target):
    return abs(y - target).max()


def trainer(path=None, model=None, **options):
    options.setdefault("hooks", [train.SaveCheckpoints(steps=2)] if path is not None else [])
    return train.Trainer(model or Net(), optim.sgd(0.1, 0.9), loss, path=path, **options)


def bits(trainer):
    arrays = [array for _, array in train.arrays([trainer.params, trainer.optimiser.state])]
    return [trainer.step, trainer.params.rng.bit_generator.state, *(a.tobytes() for a in arrays)]


@pytest.fixture(scope="module")
def straight():
    """A training without a break."""
    return trainer().fit(BATCHES, steps=13)


def test_the_loop_is_the_loop_by_hand(straight):
    net = Net()
    net(X[:12]), net.rng.bit_generator.__setattr__("state", np.random.PCG64(3).state)
    opt = optim.Optimizer(net, optim.sgd(0.1, 0.9))

    @jt.jit
    def step(x, t):
        return opt.minimize(lambda net, x, t: loss(net(x), t), x, t)

    losses = [step(*BATCHES[k % 5]) for k in range(13)]
    assert losses[-1] == straight.loss_value and straight.epoch == 2
    assert (net.first.w == straight.model.first.w).all()


@pytest.mark.parametrize("stops", [[1], [4, 5], [5, 10, 12]])
def test_a_training_goes_on_to_the_same_bits(tmp_path, straight, stops):
    for stop in stops:
        trainer(tmp_path).fit(BATCHES, steps=stop)
    last = trainer(tmp_path).fit(lambda: BATCHES, steps=13)
    assert bits(last) == bits(straight) and last.loss_value == straight.loss_value
    assert trainer(tmp_path).fit(BATCHES, steps=13).step == 13


def test_it_goes_on_in_the_same_object(straight):
    last = trainer().fit(BATCHES, steps=4)
    last.fit(BATCHES, steps=6).fit(BATCHES, epochs=2).fit(BATCHES, steps=13)
    assert bits(last) == bits(straight)
    stream = iter(BATCHES * 4)
    net = Net().eval()
    net(X)
    last = trainer(model=net.train()).fit(stream, steps=4).fit(stream, steps=13)
    assert (last.model.first.w == straight.model.first.w).all()


def test_datasets_and_global_generators(tmp_path):
    noise = []

    def noisy(pair):
        return pair[0] + np.float32(pair[0].sum() * 0), pair[1]

    def batches():
        return jt.data.from_arrays((X, T)).shuffle(seed=5).map(noisy).batch(12)

    class Draws(train.Hook):
        def after_step(self, trainer):
            noise.append(np.random.random())

    np.random.seed(1)
    whole = trainer(hooks=[Draws()]).fit(batches(), steps=13)
    drawn, noise[:] = list(noise), []
    np.random.seed(1)
    trainer(tmp_path, hooks=[Draws()]).fit(batches(), steps=7)
    np.random.seed(2)
    parts = trainer(tmp_path, hooks=[Draws()]).fit(batches(), steps=13)
    assert bits(parts) == bits(whole) and noise == drawn


def test_functions_of_parameters_and_penalties():
    told = set()

    def model(params, x, training):
        told.add(training)
        return x @ params["w"]

    params = {"w": np.zeros((4, 1))}
    rate = optim.sgd(0.2)
    fitted = train.Trainer(
        model, rate, loss, {"error": error, "mean": train.metrics.Mean()}, params=params
    )
    fitted.metrics.pop("mean")
    fitted.fit(BATCHES, epochs=60)
    assert np.allclose(params["w"][:, 0], [1, -2, 0.5, 0], atol=1e-3)
    results = fitted.evaluate(BATCHES)
    assert told == {True, False} and results["loss"] < 1e-5 and results["error"] < 0.01
    outputs = list(fitted.predict(BATCHES))
    assert len(outputs) == 5 and np.allclose(outputs[1], BATCHES[1][1], atol=0.01)
    assert np.allclose(next(fitted.predict([X])), T, atol=0.01)

    small = {"w": np.ones((4, 1))}
    shrunk = train.Trainer(
        model, rate, loss, params=small, penalty=lambda p: 100 * (p["w"] ** 2).sum() * 0.01
    )
    shrunk.fit(BATCHES, epochs=30)
    assert abs(small["w"]).max() < 1.2


def test_batches_that_are_dicts():
    params = {"w": np.zeros((4, 1))}
    batches = [{"x": x, "t": t} for x, t in BATCHES]
    fitted = train.Trainer(
        lambda p, batch: batch["x"] @ p["w"],
        optim.sgd(0.2),
        lambda y, batch: loss(y, batch["t"]),
        params=params,
    )
    fitted.fit(batches, epochs=20)
    assert fitted.evaluate(batches)["loss"] < 0.05


def test_accumulation_is_the_mean_of_gradients():
    def linear(p, x):
        return x @ p["w"]

    one, other = {"w": np.zeros((4, 1))}, {"w": np.zeros((4, 1))}
    whole = train.Trainer(linear, optim.adam(0.1), loss, params=one)
    parts = train.Trainer(linear, optim.adam(0.1), loss, params=other, accumulate=3)
    whole.fit([(X[:36], T[:36]), (X[36:], T[36:])], epochs=3)
    parts.fit(BATCHES, epochs=3)  # of each pass the last step has two batches
    assert parts.step == whole.step == 6
    assert np.allclose(one["w"], other["w"], rtol=1e-5)
    assert np.isclose(parts.loss_value, whole.loss_value, rtol=1e-4)


def test_metrics_and_weights_of_uneven_batches():
    scores = {"w": np.array([1.0])}
    batches = [(np.array([1.0, -1, 2]), np.array([1, 0, 0])), (np.array([3.0]), np.array([1]))]
    judged = train.Trainer(
        lambda p, x: p["w"] * x,
        optim.sgd(0.1),
        lambda y, t: (y * t).sum() / len(t),
        {"accuracy": train.metrics.Accuracy()},
        params=scores,
    )
    results = judged.evaluate(batches)
    assert results == {"loss": 1.0, "accuracy": 0.75}
    assert judged.evaluate(batches, steps=1)["accuracy"] == pytest.approx(2 / 3)


def test_modes_are_as_before(straight):
    model = Net().eval()
    seen = []

    class Look(train.Hook):
        def after_step(self, trainer):
            seen.append(trainer.params.training)

        def after_evaluate(self, trainer, results):
            seen.append(results["loss"])

    other = trainer(model=model, hooks=[Look()])
    other.fit(BATCHES, steps=13, validate=BATCHES, validate_every=6)
    assert seen == [True] * 6 + [seen[6]] + [True] * 6 + [seen[13], True, seen[15]]
    assert not model.training and np.isfinite(seen).all()
    assert (model.first.w == straight.model.first.w).all()  # evaluation draws nothing


def test_a_fresh_trainer_evaluates_the_newest_checkpoint(tmp_path):
    fitted = trainer(tmp_path).fit(BATCHES, steps=6)
    fresh = trainer(tmp_path)
    assert fresh.evaluate(BATCHES) == fitted.evaluate(BATCHES) and fresh.step == 6
    assert np.array_equal(next(trainer(tmp_path).predict(BATCHES)), next(fitted.predict(BATCHES)))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_wait_for_the_step_and_save(tmp_path, straight, number):
    class Send(train.Hook):
        def after_step(self, trainer):
            if trainer.step == 5:
                os.kill(os.getpid(), number)
                time.sleep(0.01)

    came = []
    before = signal.signal(number, lambda *_: came.append(number))
    try:
        stopped = trainer(tmp_path, hooks=[Send(), train.SaveCheckpoints()])
        stopped.fit(BATCHES, steps=13)
        assert came == [number] and stopped.step == 5 and stopped.stopping == number.name
    finally:
        signal.signal(number, before)
    assert bits(trainer(tmp_path).fit(BATCHES, steps=13)) == bits(straight)


def test_one_element():
    fitted = trainer().fit([(X[:1], T[:1])], steps=2)
    assert fitted.epoch == 1 and np.isfinite(fitted.loss_value)
