"""The compiled functions of a training: a step, a batch's share of an evaluation, a prediction."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

import jitney as jt

from .position import pass_over, size_of, split


def _compiled(make: Callable[[Any], Callable[..., Any]]) -> Any:
    """An attribute: the function that a method makes, compiled, when it is first asked for."""
    return cached_property(lambda self: jt.jit(make(self)))


class Programs:
    """Made of a trainer's model, optimiser, loss and metrics; compiled when they are first asked
    for."""

    def __init__(self, trainer: Any, optimiser: Any, penalty: Any) -> None:
        self.params = trainer.params
        self._given = optimiser
        self._loss, self._metrics = trainer.loss, trainer.metrics
        self._train, self._apply = _calls(trainer.model, trainer.params, trainer.loss, penalty)

    def prepare(self, data: Any) -> None:
        """Have the parameters whose sizes the inputs say."""
        model = self.params
        if isinstance(model, jt.nn.Module) and jt.nn.unbuilt(model):
            batches = pass_over(data)
            if batches is data:
                missing = ", ".join(jt.nn.unbuilt(model))
                raise ValueError(
                    f"{missing} has no sizes yet, and looking into an iterator would use it up: "
                    "write nn.init(model, example) first, or give a Dataset"
                )
            for batch in batches:
                with self.mode(False):
                    model(split(batch)[0])
                break

    @cached_property
    def optimiser(self) -> Any:
        """The optimiser, made of a rule when the parameters are there."""
        if hasattr(self._given, "step"):
            theirs = jt.tree.leaves(getattr(self._given, "params", self.params))
            ours = jt.tree.leaves(self.params)
            if {id(x) for x in theirs}.isdisjoint(id(x) for x in ours):
                jt.errors.complain(
                    jt.errors.ArgumentError,
                    f"the optimiser is one of other parameters than this {type(self.params).__name__}'s",
                    "make it of the model that is trained: model = ...; optim.Adam(model, 1e-3).",
                )
            return self._given
        return jt.optim.Optimizer(self.params, self._given)

    def update(self, batches: list[Any]) -> Any:
        """One step; the mean loss of its batches."""
        if len(batches) == 1:
            return self._step(*split(batches[0]))
        total, grads = self._gradients(*split(batches[0]))
        for batch in batches[1:]:
            total, grads = self._add(total, grads, *split(batch))
        self._step_by_mean(grads, np.float64(len(batches)))
        return total / len(batches)

    def metrics(self) -> dict[str, Any]:
        """Metrics that have seen nothing yet."""
        mean = jt.train.metrics.Mean
        return {n: m if hasattr(m, "result") else mean() for n, m in self._metrics.items()}

    def judge(self, seen: dict[str, Any], batch: Any) -> tuple[Any, dict[str, Any]]:
        """The loss of a batch, and metrics that have seen it, too."""
        return self._judge(seen, *split(batch))

    def predict(self, inputs: Any) -> Any:
        """The outputs."""
        return self._predict(inputs)

    @contextmanager
    def mode(self, training: bool) -> Iterator[None]:
        """Modules in training or in evaluation, and afterwards as they were."""
        model = self.params
        modules = [m for _, m in jt.nn.modules(model)] if isinstance(model, jt.nn.Module) else []
        before = [module.training for module in modules]
        for module in modules:
            module.training = training
        try:
            yield
        finally:
            for module, mode in zip(modules, before, strict=True):
                module.training = mode

    # Compiled functions guard all that they reach, so they reach nothing that a loop changes.

    @_compiled
    def _step(self) -> Callable[..., Any]:
        optimiser, loss_of = self.optimiser, self._train

        def step(*batch: Any) -> Any:
            loss, grads = optimiser.compute_gradients(loss_of, *batch)
            optimiser.step(grads)
            return loss

        return step

    @_compiled
    def _gradients(self) -> Callable[..., Any]:
        optimiser, loss_of = self.optimiser, self._train
        return lambda *batch: optimiser.compute_gradients(loss_of, *batch)

    @_compiled
    def _add(self) -> Callable[..., Any]:
        optimiser, loss_of = self.optimiser, self._train

        def add(total: Any, grads: Any, *batch: Any) -> Any:
            loss, more = optimiser.compute_gradients(loss_of, *batch)
            return total + loss, jt.tree.map(lambda x, y: x + y, grads, more)

        return add

    @_compiled
    def _step_by_mean(self) -> Callable[..., Any]:
        optimiser = self.optimiser

        def step_by_mean(grads: Any, count: Any) -> None:
            optimiser.step(jt.tree.map(lambda g: g / count.astype(g.real.dtype), grads))

        return step_by_mean

    @_compiled
    def _judge(self) -> Callable[..., Any]:
        params, apply, loss, metrics = self.params, self._apply, self._loss, self._metrics

        def judge(seen: dict[str, Any], inputs: Any, *targets: Any) -> Any:
            outputs = apply(params, inputs)
            new = {}
            for name, metric in metrics.items():
                if hasattr(metric, "result"):
                    labels, *weights = targets
                    new[name] = seen[name].update(labels, outputs, *weights)
                else:
                    size = np.full(1, float(size_of(inputs)))
                    new[name] = seen[name].update(jt.reshape(metric(outputs, *targets), 1), size)
            return loss(outputs, *targets), new

        return judge

    @_compiled
    def _predict(self) -> Callable[..., Any]:
        params, apply = self.params, self._apply
        return lambda inputs: apply(params, inputs)


def check_arguments(model: Any, optimiser: Any, loss: Any, metrics: Any, hooks: Any) -> None:
    """What a Trainer is given are no names, classes or lists of other frameworks."""
    for name, function in {"model": model, "loss": loss}.items():
        if not callable(function):
            what = jt.errors.describe(function)
            raise TypeError(f"{name} is {what}: give a function, nn.losses.mse for instance")
    if not (hasattr(optimiser, "step") or hasattr(optimiser, "update")) or isinstance(
        optimiser, type
    ):
        raise TypeError(
            f"optimiser is {jt.errors.describe(optimiser)}: give optim.adam(1e-3), or "
            "optim.Adam(model, 1e-3)"
        )
    if metrics is not None and not isinstance(metrics, Mapping):
        raise TypeError(
            f"metrics are a dict by name, not {jt.errors.describe(metrics)}: "
            '{"accuracy": train.metrics.Accuracy()}'
        )
    for name, metric in (metrics or {}).items():
        if isinstance(metric, type) or not (hasattr(metric, "result") or callable(metric)):
            what = jt.errors.describe(metric)
            raise TypeError(
                f"metric {name!r} is {what}: give train.metrics.Accuracy(), or a function"
            )
    if not isinstance(hooks, Sequence) or not all(
        isinstance(hook, jt.train.Hook) for hook in hooks
    ):
        raise TypeError(
            f"hooks are a list of train.Hook, not {jt.errors.describe(hooks)}: [train.Log(100)]"
        )


def _calls(model: Any, params: Any, loss: Any, penalty: Any) -> tuple[Any, Any]:
    """`loss_of(params, inputs, *targets)` in training, and `apply(params, inputs)` in
    evaluation."""
    is_function = params is not model
    is_told = is_function and "training" in inspect.signature(model).parameters

    def outputs_of(params: Any, inputs: Any, training: bool) -> Any:
        if is_told:
            return model(params, inputs, training=training)
        return model(params, inputs) if is_function else params(inputs)

    def loss_of(params: Any, inputs: Any, *targets: Any) -> Any:
        value = loss(outputs_of(params, inputs, True), *targets)
        return value if penalty is None else value + penalty(params)

    def apply(params: Any, inputs: Any) -> Any:
        return outputs_of(params, inputs, False)

    return loss_of, apply
