"""Hooks of `jt.train.Trainer`, and experiments from the command line."""

import json
import os
import threading
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from golden_texts import Golden

from jitney import optim, train

GOLDEN = Golden(Path(__file__).with_name("trainer_errors.txt"))
X = np.linspace(-1, 1, 12).reshape(6, 2)
BATCHES = [(X[:3], X[:3].sum(1)), (X[3:], X[3:].sum(1))]


def model(params, x):
    return x @ params["w"]


def loss(y, target):
    return ((y - target) ** 2).mean()


def trainer(*hooks, path=None, rate=0.1, optimiser=None, **options):
    params = {"w": np.zeros(2)}
    opt = optim.Adam(params, rate) if optimiser is None else optimiser
    return train.Trainer(model, opt, loss, hooks=hooks, params=params, path=path, **options)


class Scripted:
    """Evaluations whose results are known: a trainer's `evaluate`."""

    def __init__(self, trainer, results):
        self.results = iter(results)
        trainer.evaluate = lambda data, steps: {"loss": next(self.results)}


def test_nan_is_found_before_it_is_saved(tmp_path):
    batches = [*BATCHES, (X[:3] * np.nan, X[:3].sum(1))]
    broken = trainer(train.SaveCheckpoints(steps=1), path=tmp_path)
    with pytest.raises(FloatingPointError) as error:
        broken.fit(batches, steps=9)
    assert "step-00000002" in str(error.value)
    assert list(train.steps(tmp_path)) == [1, 2]
    assert np.isfinite(train.restore(tmp_path)["model"]["w"]).all()
    careless = trainer(train.StopAtNaN(None)).fit(batches, steps=4)
    assert np.isnan(careless.loss_value)


def test_checkpoints_by_steps_and_time(tmp_path):
    by_steps = train.SaveCheckpoints(steps=3, keep=2, background=True)
    trainer(by_steps, path=tmp_path).fit(BATCHES, steps=8)
    assert list(train.steps(tmp_path)) == [6, 8]
    for seconds, steps in {0: [1, 2, 3], 1e9: [3]}.items():
        folder = tmp_path / str(seconds)
        trainer(train.SaveCheckpoints(seconds=seconds), path=folder).fit(BATCHES, steps=3)
        assert list(train.steps(folder)) == steps


def test_lines_and_progress(capsys):
    said = []
    logged = trainer(train.Log(2, said.append), progress=True)
    logged.fit(BATCHES, steps=4, validate=BATCHES)
    assert said[0].startswith("step 2  pass 1  loss ")
    assert len(said) == 4 and said[1].startswith("step 2  evaluated  loss ")
    assert "step/s" in capsys.readouterr().err
    trainer().fit(BATCHES, steps=2)
    assert capsys.readouterr() == ("", "")  # where there is no terminal


def test_early_stop_and_rates_that_fall():
    stop = train.EarlyStop(patience=2, least=0.1)
    stopped = trainer(stop)
    Scripted(stopped, [5, 4, 3.95, 3.92, 1])
    stopped.fit(BATCHES, epochs=9, validate=BATCHES)
    assert stopped.epoch == 4 and stopped.stopping == "loss got no better than 4"
    reduced = trainer(train.ReduceRate(patience=1, factor=0.5), rate=0.4)
    Scripted(reduced, [2, 3, 1, 1, 1])
    reduced.fit(BATCHES, epochs=5, validate=BATCHES)
    assert float(reduced.optimiser.lr) == pytest.approx(0.05)
    larger = trainer(train.EarlyStop("score", 1, larger=True))
    larger.evaluate = lambda data, steps: {"score": 1.0}
    assert larger.fit(BATCHES, epochs=9, validate=BATCHES).epoch == 2
    with pytest.raises(ValueError, match="no result is called 'auc': there are loss"):
        trainer(train.EarlyStop("auc")).fit(BATCHES, epochs=1, validate=BATCHES)


def test_what_hooks_remember_is_in_checkpoints(tmp_path):
    def run(epochs, results):
        hooks = train.ReduceRate(patience=2, factor=0.5), train.SaveCheckpoints(steps=2)
        going = trainer(*hooks, path=tmp_path, rate=0.4)
        Scripted(going, results)
        return going.fit(BATCHES, epochs=epochs, validate=BATCHES)

    first = run(3, [1, 2, 3, 4])
    assert float(first.optimiser.lr) == pytest.approx(0.2)
    second = run(5, [3, 3, 3, 3])
    assert second.hooks[1].best == 1 and float(second.optimiser.lr) == pytest.approx(0.1)


def test_learning_rates_by_step():
    seen = []

    class Look(train.Hook):
        def after_step(self, trainer):
            seen.append(float(trainer.optimiser.lr))

    trainer(Look(), train.LearningRate(lambda step: 0.1 / (step + 1))).fit(BATCHES, steps=3)
    assert seen == pytest.approx([0.1, 0.05, 0.1 / 3])


def test_summaries(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    trainer(train.Summaries(every=2, histograms=4), path=tmp_path).fit(
        BATCHES, steps=4, validate=BATCHES
    )
    events = EventAccumulator(str(tmp_path), size_guidance={"tensors": 0})
    events.Reload()
    tags = set(events.Tags()["tensors"])
    assert {"loss", "steps_per_second", "learning_rate", "w"} <= tags
    assert [e.step for e in events.Tensors("loss")] == [2, 4]
    assert list((tmp_path / "eval").glob("events*"))
    with pytest.raises(ValueError, match="need a folder"):
        trainer(train.Summaries()).fit(BATCHES, steps=1)


def test_profile_of_some_steps(tmp_path):
    trainer(train.Profile(2, 3, tmp_path / "trace.json")).fit(BATCHES, steps=4)
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    with pytest.raises(ValueError, match="steps 3 to 2"):
        train.Profile(3, 2, "x")


def test_own_hooks_see_everything(tmp_path):
    calls = []

    class Own(train.Hook):
        def begin(self, trainer):
            calls.append("begin")

        def after_step(self, trainer):
            calls.append(trainer.step)
            if trainer.step == 3:
                raise KeyError("mine")

        def after_epoch(self, trainer):
            calls.append(f"pass {trainer.epoch}")

        def end(self, trainer, error):
            calls.append(type(error))

    with pytest.raises(KeyError, match="mine"):
        trainer(Own(), path=tmp_path).fit(BATCHES, steps=5)
    assert calls == ["begin", 1, 2, "pass 1", 3, KeyError]
    assert train.latest(tmp_path) is None  # what failed in a step is not saved
    train.save(tmp_path, [1], step=1)  # and the folder is free


class Kind(Enum):
    small = 1
    large = 2


@dataclass
class Inner:
    width: int = 8
    act: Literal["relu", "tanh"] = "relu"


@dataclass
class Settings:
    """Of a run."""

    path: Path = Path("none")
    rate: float = 0.1
    steps: int = 4
    layers: tuple[int, ...] = (64, 32)
    pair: tuple[int, str] = (1, "a")
    kind: Kind = Kind.small
    name: str | None = None
    fast: bool = False
    inner: Inner = field(default_factory=Inner)


def parse(text, saved=None):
    from jitney.train.settings import _by_argparse

    return _by_argparse(Settings, text.split(), saved or {}, "run")


def test_settings_from_the_command_line(capsys):
    assert parse("") == Settings()
    found = parse(
        "--rate 3e-4 --layers 1 2 3 --kind large --fast --inner.width 9 --inner.act tanh "
        "--name x --path a/b --pair 2 b"
    )
    assert found == Settings(
        *(Path("a/b"), 3e-4, 4, (1, 2, 3), (2, "b"), Kind.large, "x", True, Inner(9, "tanh"))
    )
    assert parse("--fast no --name None --layers") == Settings(layers=())
    plain = train.settings.to_plain(found)
    assert json.loads(json.dumps(plain)) == plain and parse("", plain) == found
    assert parse("--rate 1", plain).rate == 1 and parse("--rate 1", plain).inner.width == 9
    for wrong in ("--rates 1", "--steps x", "--kind huge", "--inner.act sin", "--pair 1"):
        with pytest.raises(SystemExit):
            parse(wrong)
        GOLDEN.check(f"settings {wrong}", capsys.readouterr().err.splitlines()[-1])
    with pytest.raises(SystemExit):
        parse("", {"depth": 3})
    GOLDEN.check("settings that are gone", capsys.readouterr().err.splitlines()[-1])


def experiment(settings):
    made = trainer(
        train.SaveCheckpoints(steps=2, keep=None), path=settings.path, rate=settings.rate
    )
    return train.Experiment(made, BATCHES, steps=settings.steps, validate=BATCHES)


def test_schedules_by_name(tmp_path, capsys):
    run = [f"--path={tmp_path / 'run'}"]
    fitted = train.main(experiment, Settings, ["train", *run, "--rate", "0.3"])
    assert fitted.step == 4
    assert train.load_settings(tmp_path / "run")["rate"] == 0.3
    results = train.main(experiment, Settings, ["evaluate", *run])
    assert results["loss"] > 0 and "loss" in capsys.readouterr().out
    going = train.main(experiment, Settings, ["train_and_evaluate", *run, "--steps", "6"])
    assert going.step == 6 and float(going.optimiser.lr) == 0.3  # the run's own
    assert train.load_settings(tmp_path / "run")["steps"] == 6
    for wrong in (["fly"], []):
        with pytest.raises(SystemExit):
            train.main(experiment, Settings, wrong)
    (tmp_path / "run" / "settings.json").write_text("{")
    with pytest.raises(ValueError, match="settings.json.*no JSON"):
        train.main(experiment, Settings, ["train", *run])


def test_evaluation_beside_a_training(tmp_path):
    settings = Settings(tmp_path, steps=8)
    results = {}
    beside = experiment(settings)

    def judge():
        results.update(beside.continuous_eval(patience=30, poll=0.001))

    thread = threading.Thread(target=judge)
    thread.start()
    experiment(settings).train()
    thread.join(30)
    assert not thread.is_alive() and 8 in results and set(results) <= {2, 4, 6, 8}
    empty = train.Experiment(trainer(path=tmp_path / "none"), validate=BATCHES)
    assert empty.continuous_eval(patience=0.02, poll=0.001) == {}
    with pytest.raises(ValueError, match="path="):
        train.Experiment(trainer()).continuous_eval()


def test_two_trainings_in_one_folder(tmp_path):
    class Second(train.Hook):
        def after_step(self, trainer_):
            ready, tell = os.pipe()
            if not (child := os.fork()):
                try:
                    trainer(path=tmp_path).fit(BATCHES, steps=1)
                except BlockingIOError as error:
                    os.write(tell, str(error).encode())
                os._exit(0)
            os.waitpid(child, 0)
            os.close(tell)
            said = os.read(ready, 1000).decode()
            assert f"belongs to process {os.getpid()}" in said and "which trains there" in said

    trainer(Second(), path=tmp_path).fit(BATCHES, steps=1)
    assert train.restore(tmp_path)["loop"]["step"] == 1
