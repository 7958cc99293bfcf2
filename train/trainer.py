"""`Trainer`: a loop over data, which goes on where it stopped.

`fit` is the loop. What runs compiled is in `programs`, where it is in the data in `position`, and
what else happens is done by `hooks`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import jitney as jt

from .checkpoints import latest, save
from .hooks import Hook, Progress, SaveCheckpoints, StopAtNaN, Validate
from .position import Position, groups, pass_over, said, size_of, split
from .programs import Programs, check_arguments
from .restoring import restore
from .signals import finishing_steps
from .writers import writing


class Trainer:
    """Trains a model on batches.

    - `model`: an `nn.Module`, or another object that is called with inputs and has arrays; or a
      function `model(params, inputs)` of the arrays `params=`. One with a parameter `training` is
      told.
    - `optimiser`: of `jt.optim`, a rule (`optim.adam(1e-3)`) or an object (`optim.Adam(model,
      1e-3)`).
    - `loss(outputs, targets)`: one number for a batch `(inputs, targets)`; what else is in the
      batch, weights for example, comes behind. A batch that is no tuple, a dict for example, goes
      to both: `loss(model(batch), batch)`.
    - `metrics`: by name, those of `jt.train.metrics`, or functions like the loss.
    - `penalty(params)`: a number that is added to the loss in training (regularisers).
    - `hooks`: what else happens. `StopAtNaN` always does, with a `path` also `SaveCheckpoints`.
    - `path`: a folder for checkpoints. `fit` goes on from the newest one, bit for bit.
    - `accumulate`: how many batches make one step, by the mean of their gradients.
    - `progress`: a bar on the terminal (by default if there is one).

    `step` counts steps, `epoch` whole passes over the data; `loss_value` is the last step's. Hooks
    read these, and call `stop(reason)`.

    >>> w = {"w": np.zeros(1)}
    >>> def model(params, x):
    ...     return params["w"] * x
    >>> def loss(y, target):
    ...     return jt.mean((y - target) ** 2)
    >>> trainer = jt.train.Trainer(model, jt.optim.sgd(0.1), loss, params=w)
    >>> _ = trainer.fit([(np.ones(4), np.full(4, 3.0))], steps=100)
    >>> trainer.step, w["w"].round(6)
    (100, array([3.]))
    """

    if not TYPE_CHECKING:
        __getattr__ = jt.errors.elsewhere.of_objects(
            compile="jt.train.Trainer(model, rule, loss, metrics), which takes all of it",
            train="trainer.fit(data, steps=100)",
        )

    @jt.errors.naming_lines
    def __init__(
        self,
        model: Callable[..., Any],
        optimiser: Any,
        loss: Callable[..., Any],
        metrics: Mapping[str, Any] | None = None,
        hooks: Sequence[Hook] = (),
        *,
        params: Any = None,
        penalty: Callable[[Any], Any] | None = None,
        path: str | os.PathLike[str] | None = None,
        accumulate: int = 1,
        progress: bool | None = None,
    ) -> None:
        if accumulate < 1:
            raise ValueError(f"accumulate={accumulate} batches make no step: give 1 or more")
        check_arguments(model, optimiser, loss, metrics, hooks)
        self.model, self.loss, self.metrics = model, loss, dict(metrics or {})
        self.params = model if params is None else params
        self.path = None if path is None else Path(path)
        self.accumulate = accumulate
        self.step = self.epoch = 0
        self.loss_value: Any = None
        self.stopping = ""
        self.position = Position()
        self.programs = Programs(self, optimiser, penalty)
        self.hooks = _with_defaults(list(hooks), self.path is not None, progress)
        self._fresh = True

    @jt.errors.naming_lines
    def fit(
        self,
        data: Any,
        steps: int | None = None,
        epochs: int | None = None,
        *,
        validate: Any = None,
        validate_every: int | None = None,
    ) -> Trainer:
        """Train until `steps` steps or `epochs` passes are done, those before the checkpoint
        counted.

        `data` gives batches each time that it is iterated: a `jt.data.Dataset`, a list, or a
        function that returns one. Checkpoints have the position in it: the iterator's `state()`, or
        else how many batches were taken. `validate`: data for `evaluate` after each pass, or every
        `validate_every` steps, and at the end.

        Ctrl-C and SIGTERM end it after the step, saved. Raises FloatingPointError where the loss is
        NaN, ValueError where a pass has no batch, BlockingIOError if another process trains in
        `path`.
        """
        if steps is None and epochs is None:
            raise TypeError("fit goes on until steps= or epochs=: give one, or both")
        for name, count in {"steps": steps, "epochs": epochs}.items():
            if count is not None and (not isinstance(count, (int, np.integer)) or count < 0):
                raise TypeError(
                    f"{name} is {jt.errors.describe(count)}: give a number, and data of batches "
                    "(inputs, targets), such as jt.data.from_arrays((x, y)).batch(32)"
                )
        hooks = list(self.hooks)
        if validate is not None:  # before what saves, which comes last
            savers = sum(isinstance(hook, SaveCheckpoints) for hook in hooks)
            hooks.insert(len(hooks) - savers, Validate(validate, validate_every))
        with self._running(hooks, data):
            for batches in groups(self, data, hooks, steps, epochs):
                self.loss_value = self.programs.update(batches)
                self.step += 1
                for hook in hooks:
                    hook.after_step(self)
        return self

    @jt.errors.naming_lines
    def evaluate(self, data: Any, steps: int | None = None) -> dict[str, float]:
        """The mean loss over all examples of the data, and the metrics, by name; the model is in
        evaluation. Raises ValueError if there is no batch."""
        with self._reading(data):
            total, count, seen = 0.0, 0, self.programs.metrics()
            for batch in islice(pass_over(data), steps):
                size = size_of(batch)
                loss, seen = self.programs.judge(seen, batch)
                total, count = total + float(loss) * size, count + size
        if not count:
            raise ValueError(f"there is nothing to evaluate: {said(data)} has no example")
        return {"loss": total / count, **{name: m.result() for name, m in seen.items()}}

    def predict(self, data: Any) -> Iterator[Any]:
        """The outputs of each batch, as they are asked for; of tuples the first part is the
        inputs."""
        for batch in pass_over(data):
            with self._reading(data):
                outputs = self.programs.predict(split(batch)[0])
            yield outputs

    def stop(self, reason: str) -> None:
        """Let `fit` end after this step."""
        self.stopping = reason

    @property
    def optimiser(self) -> Any:
        """The optimiser, an object of `jt.optim`."""
        return self.programs.optimiser

    @jt.errors.naming_lines
    def save(self, **options: Any) -> Path:
        """Write a checkpoint of everything that `fit` needs to go on. Options are those of
        `save`."""
        if self.path is None:
            raise ValueError("this Trainer has no path= for checkpoints: give it a folder")
        return save(self.path, self._tree(), step=self.step, **options)

    def resume(self) -> bool:
        """Go to the newest checkpoint, if there is one: everything as it was. Returns whether."""
        self._fresh = False
        newest = None if self.path is None else latest(self.path)
        if newest is not None:
            restore(newest, into=self._tree())
        return newest is not None

    def _tree(self) -> dict[str, Any]:
        return {
            "model": self.params,
            "optimiser": self.optimiser.state,
            "loop": self.position.of(self),
        }

    @contextmanager
    def _running(self, hooks: list[Any], data: Any) -> Iterator[None]:
        """Everything around the loop."""
        with ExitStack() as stack:
            if self.path is not None:
                stack.enter_context(writing(self.path, "trains"))
            self.programs.prepare(data)
            if self._fresh:
                self.resume()
            self.stopping = ""
            stack.enter_context(self.programs.mode(True))
            stack.enter_context(finishing_steps(self.stop))
            stack.callback(self.position.close)
            for hook in hooks:
                hook.begin(self)
                stack.push(lambda kind, error, trace, hook=hook: hook.end(self, error))
            yield

    @contextmanager
    def _reading(self, data: Any) -> Iterator[None]:
        """Around what only asks the model, which is the newest checkpoint's if nobody trained it
        here."""
        self.programs.prepare(data)
        if self._fresh and self.path is not None and (newest := latest(self.path)):
            restore(newest, into={"model": self.params}, only="model")
            self.step = jt.train.describe(newest)["step"]
        with self.programs.mode(False):
            yield


def _with_defaults(hooks: list[Any], saves: bool, progress: bool | None) -> list[Any]:
    """The hooks in their order: who looks for NaN first, who saves last."""

    def some(kind: type) -> bool:
        return any(isinstance(hook, kind) for hook in hooks)

    before = [] if some(StopAtNaN) else [StopAtNaN()]
    after = [SaveCheckpoints()] if saves and not some(SaveCheckpoints) else []
    bar = [] if some(Progress) else [Progress(progress)]
    savers = [hook for hook in hooks if isinstance(hook, SaveCheckpoints)]
    others = [hook for hook in hooks if not isinstance(hook, SaveCheckpoints)]
    return [*before, *others, *bar, *savers, *after]
