"""What happens in a training beside steps: a class each, all of them small enough to write one's
own."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

import jitney as jt


class Hook:
    """Called by `Trainer.fit`. Write those methods that you need; `trainer` has `step`, `epoch`,
    `loss_value`, `params`, `optimiser`, `path` and `stop(reason)`.

    One that remembers something that the training depends on has `state()` and `restore(state)`,
    for checkpoints.

    >>> class Halve(jt.train.Hook):
    ...     def after_epoch(self, trainer):
    ...         trainer.optimiser.lr = trainer.optimiser.lr / 2
    """

    def begin(self, trainer: Any) -> None:
        """Before the first step, after a checkpoint was restored."""

    def after_step(self, trainer: Any) -> None:
        """After each step, counted already."""

    def after_epoch(self, trainer: Any) -> None:
        """After each whole pass over the data, counted already."""

    def after_evaluate(self, trainer: Any, results: dict[str, float]) -> None:
        """After an evaluation in between."""

    def end(self, trainer: Any, error: BaseException | None) -> None:
        """After the last step, or when something failed."""


def _refuse(what: str, remedy: str, kind: type[Exception] = ValueError) -> NoReturn:
    jt.errors.complain(kind, what, remedy)


class Every:
    """Says when it is time: each so many steps, or seconds, or neither."""

    def __init__(self, steps: int | None, seconds: float | None = None) -> None:
        if steps is not None and steps < 1:
            _refuse(f"something happens every {steps} steps", "give 1 or more, or None.")
        self._steps, self._seconds = steps, seconds
        self._last = time.monotonic()

    def due(self, step: int) -> bool:
        """Whether it is time after this step."""
        if self._steps is not None and step % self._steps == 0:
            return True
        if self._seconds is None or time.monotonic() - self._last < self._seconds:
            return False
        self._last = time.monotonic()
        return True


class StopAtNaN(Hook):
    """FloatingPointError where the loss is NaN or infinite, looked at every `every` steps: before a
    checkpoint is written that has it. None: not at all."""

    def __init__(self, every: int | None = 1) -> None:
        self._every = Every(every)

    def after_step(self, trainer: Any) -> None:
        if not self._every.due(trainer.step) or np.isfinite(trainer.loss_value):
            return
        broken = [
            f"{place} {list(np.shape(leaf))}"
            for place, leaf in jt.train.arrays(trainer.params)
            if not np.isfinite(np.asarray(leaf)).all()
        ]
        last = trainer.path and jt.train.latest(trainer.path)
        _refuse(
            f"the loss of step {trainer.step} is {float(trainer.loss_value)}; parameters with NaN or "
            f"infinities after it: {', '.join(broken) or 'none'}; the last checkpoint: "
            f"{str(last) if last else 'none'}",
            "against growth there are smaller rates, and optim.clip_by_global_norm; "
            "jt.config.check = ('nan',) finds the operation.",
            FloatingPointError,
        )


class Validate(Hook):
    """`trainer.evaluate(data)` every `every` steps or after each pass, and at the end; the last ones
    are `results`."""

    def __init__(self, data: Any, every: int | None = None, steps: int | None = None) -> None:
        self._data, self._steps = data, steps
        self._every, self._passes = Every(every), every is None
        self.results: dict[str, float] = {}
        self._step = -1

    def after_step(self, trainer: Any) -> None:
        if self._every.due(trainer.step):
            self._evaluate(trainer)

    def after_epoch(self, trainer: Any) -> None:
        if self._passes:
            self._evaluate(trainer)

    def end(self, trainer: Any, error: BaseException | None) -> None:
        if error is None and not trainer.stopping and self._step != trainer.step:
            self._evaluate(trainer)

    def _evaluate(self, trainer: Any) -> None:
        self._step = trainer.step
        self.results = trainer.evaluate(self._data, self._steps)
        for hook in trainer.hooks:
            hook.after_evaluate(trainer, self.results)


class SaveCheckpoints(Hook):
    """A checkpoint every `steps` steps, every `seconds` seconds, and at the end; those of them that
    `keep` and `keep_every` of `train.save` say are kept. In the `background`, where memory for
    copies is there."""

    def __init__(
        self,
        steps: int | None = None,
        seconds: float | None = 600,
        *,
        keep: int | None = 5,
        keep_every: int | None = None,
        background: bool = False,
    ) -> None:
        self._every = Every(steps, seconds)
        self._options = {"keep": keep, "keep_every": keep_every, "background": background}

    def after_step(self, trainer: Any) -> None:
        if self._every.due(trainer.step):
            self._save(trainer)

    def end(self, trainer: Any, error: BaseException | None) -> None:
        if error is None:
            self._save(trainer)
        jt.train.wait(trainer.path)

    def _save(self, trainer: Any) -> None:
        trainer.save(**self._options)


class Log(Hook):
    """A line with the step, the loss and steps per second every `every` steps, and one for each
    evaluation, to `to`: `print`, or a logger's `info`."""

    def __init__(self, every: int = 100, to: Callable[[str], Any] = print) -> None:
        self._every, self._to = Every(every), to
        self._pace = _Pace()

    def begin(self, trainer: Any) -> None:
        self._pace = _Pace(trainer.step)

    def after_step(self, trainer: Any) -> None:
        if self._every.due(trainer.step):
            pace = self._pace.since(trainer.step)
            loss = f"loss {float(trainer.loss_value):.6g}"
            self._to(f"step {trainer.step}  pass {trainer.epoch + 1}  {loss}  {pace:.4g} steps/s")

    def after_evaluate(self, trainer: Any, results: dict[str, float]) -> None:
        said = "  ".join(f"{name} {_number(value)}" for name, value in results.items())
        self._to(f"step {trainer.step}  evaluated  {said}")


class Summaries(Hook):
    """The loss and steps per second every `every` steps for TensorBoard, evaluations' results in
    `eval` beside them; every `histograms` steps the distributions of parameters."""

    def __init__(
        self,
        folder: str | os.PathLike[str] | None = None,
        every: int = 100,
        histograms: int | None = None,
    ) -> None:
        self._folder = folder
        self._every, self._histograms = Every(every), Every(histograms)
        self._writer: Any = None
        self._evaluated: Any = None
        self._pace = _Pace()

    def begin(self, trainer: Any) -> None:
        self._writer = jt.summary.Writer(self._place(trainer))
        self._pace = _Pace(trainer.step)

    def _place(self, trainer: Any) -> Path:
        folder = self._folder or trainer.path
        if folder is None:
            _refuse("Summaries need a folder", "give one, or the Trainer a path=.")
        return Path(folder)

    def after_step(self, trainer: Any) -> None:
        step, to = trainer.step, self._writer
        if self._every.due(step):
            jt.summary.scalar("loss", float(trainer.loss_value), step, writer=to)
            jt.summary.scalar("steps_per_second", self._pace.since(step), step, writer=to)
            rate = getattr(trainer.optimiser, "lr", None)
            if rate is not None:
                rate = rate(step) if callable(rate) else rate
                jt.summary.scalar("learning_rate", rate, step, writer=to)
        if self._histograms.due(step):
            for place, array in jt.train.arrays(trainer.params):
                jt.summary.histogram(place, array, step, writer=to)

    def after_evaluate(self, trainer: Any, results: dict[str, float]) -> None:
        if self._evaluated is None:
            self._evaluated = jt.summary.Writer(self._place(trainer) / "eval")
        for name, value in results.items():
            if np.size(value) == 1:
                jt.summary.scalar(name, value, trainer.step, writer=self._evaluated)

    def end(self, trainer: Any, error: BaseException | None) -> None:
        for writer in filter(None, (self._writer, self._evaluated)):
            writer.close()
        self._writer = self._evaluated = None


class Profile(Hook):
    """`jt.profile` of the steps `first` to `last`; the file is for Perfetto. Not the very first: it
    compiles."""

    def __init__(self, first: int, last: int, file: str | os.PathLike[str]) -> None:
        if not 0 < first <= last:
            _refuse(f"steps {first} to {last} can't be profiled", "let 0 < first <= last.")
        self._first, self._last, self._file = first, last, file
        self._open: Any = None

    def begin(self, trainer: Any) -> None:
        self.after_step(trainer)

    def after_step(self, trainer: Any) -> None:
        if self._open is None and trainer.step + 1 == self._first:
            self._open = jt.profile(self._file)
            self._open.__enter__()
        elif self._open is not None and trainer.step == self._last:
            self.end(trainer, None)

    def end(self, trainer: Any, error: BaseException | None) -> None:
        if self._open is not None:
            self._open.__exit__(None, None, None)
            self._open = None


class Best(Hook):
    """Watches a result of evaluations: calls `worse(trainer)` after `patience` in a row that are
    not better than the best by more than `least`. Smaller is better, unless `larger`."""

    def __init__(
        self, name: str = "loss", patience: int = 3, *, larger: bool = False, least: float = 0.0
    ) -> None:
        self._name, self._patience, self._least = name, patience, least
        self._sign = -1.0 if larger else 1.0
        self.best: float | None = None
        self.waited = 0

    def after_evaluate(self, trainer: Any, results: dict[str, float]) -> None:
        if self._name not in results:
            what = f"no result is called {self._name!r}: there are {', '.join(results)}"
            _refuse(what, "give one of these, or the Trainer a metric of that name.")
        value = float(results[self._name])
        if self.best is None or self._sign * (self.best - value) > self._least:
            self.best, self.waited = value, 0
            return
        self.waited += 1
        if self.waited >= self._patience:
            self.waited = 0
            self.worse(trainer)

    def end(self, trainer: Any, error: BaseException | None) -> None:
        if error is None and self.best is None:
            name = type(self).__name__
            warnings.warn(f"{name} saw no evaluation: fit(..., validate=data)", stacklevel=2)

    def worse(self, trainer: Any) -> None:
        """What to do then."""

    def state(self) -> dict[str, Any]:
        """The best result, and how long ago it was."""
        return {"best": self.best, "waited": self.waited}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        self.best, self.waited = state["best"], state["waited"]


class EarlyStop(Best):
    """Ends the training when a result of evaluations gets no better (`Best` has the options)."""

    def worse(self, trainer: Any) -> None:
        trainer.stop(f"{self._name} got no better than {self.best:.6g}")


class ReduceRate(Best):
    """Multiplies the learning rate with `factor` when a result gets no better (`Best` has the
    options)."""

    def __init__(
        self, name: str = "loss", patience: int = 3, *, factor: float = 0.1, **options: Any
    ):
        super().__init__(name, patience, **options)
        self._factor = factor
        self._rate: float | None = None

    def begin(self, trainer: Any) -> None:
        if self._rate is not None:
            _set_rate(trainer, self._rate)

    def worse(self, trainer: Any) -> None:
        self._rate = _set_rate(trainer, lambda rate: float(rate) * self._factor)

    def state(self) -> dict[str, Any]:
        return {**super().state(), "rate": self._rate}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._rate = state["rate"]


class LearningRate(Hook):
    """Sets the optimiser's rate before each step to `schedule(step)`: one of `jt.optim` or your
    own, in plain Python. (A schedule given to the optimiser itself is compiled.)"""

    def __init__(self, schedule: Callable[[int], Any]) -> None:
        self._schedule = schedule

    def begin(self, trainer: Any) -> None:
        _set_rate(trainer, float(self._schedule(trainer.step)))

    after_step = begin


def _set_rate(trainer: Any, new: Any) -> float:
    """Set the optimiser's rate, to a number or to what a function makes of it; it has to have one."""
    optimiser = trainer.optimiser
    if not hasattr(optimiser, "lr") or callable(optimiser.lr):
        _refuse(
            f"the rate of this {type(optimiser).__name__} is fixed, and a hook is to change it",
            "give the Trainer an optimiser with an lr that is a number: optim.SGD(model, 1e-3).",
        )
    optimiser.lr = rate = float(new(optimiser.lr) if callable(new) else new)
    return rate


class Progress(Hook):
    """A bar on the terminal, by tqdm: by default where stderr is one and tqdm is there."""

    def __init__(self, show: bool | None = None) -> None:
        self._show = sys.stderr.isatty() if show is None else show
        self._must = show is True
        self._bar: Any = None

    def begin(self, trainer: Any) -> None:
        if not self._show:
            return
        try:
            from tqdm.auto import tqdm
        except ImportError as error:
            if self._must:
                raise ImportError(
                    f'progress needs tqdm ({error}): pip install "jitney[train]", or progress=False'
                ) from error
            return
        self._bar = tqdm(initial=trainer.step, unit="step", dynamic_ncols=True)

    def after_step(self, trainer: Any) -> None:
        if self._bar is not None:
            self._bar.set_postfix(loss=f"{float(trainer.loss_value):.4g}", refresh=False)
            self._bar.update()

    def end(self, trainer: Any, error: BaseException | None) -> None:
        if self._bar is not None:
            self._bar.close()


class _Pace:
    """Steps per second since it was asked last."""

    def __init__(self, step: int = 0) -> None:
        self._step, self._time = step, time.perf_counter()

    def since(self, step: int) -> float:
        now = time.perf_counter()
        pace = (step - self._step) / max(now - self._time, 1e-9)
        self._step, self._time = step, now
        return pace


def _number(value: Any) -> str:
    return f"{float(value):.6g}" if np.size(value) == 1 else str(value)
