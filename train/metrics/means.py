"""Metrics that are the mean of a number for each example."""

from __future__ import annotations

from typing import Any

import numpy as np

import jitney as jt

from . import state
from .state import M, Metric


@state.metric()
class _MeanOf(Metric):
    """A metric that is the mean of a number for each example, `_each(labels, predictions, weights)`."""

    total: Any = state.sums()
    weight: Any = state.sums()

    def update(self: M, labels: Any, predictions: Any, weights: Any = None) -> M:
        values, w = self._each(labels, predictions, weights)  # type: ignore[attr-defined]
        return self._with(total=jt.sum(w * state.counted(values, w)), weight=jt.sum(w))

    def result(self) -> Any:
        return state.share(self.total, self.weight)


@state.metric()
class Mean(_MeanOf):
    """The weighted mean of values: losses, norms, whatever a step gives.

    >>> Mean = jt.train.metrics.Mean
    >>> (Mean().update(np.array([1.0, 2.0])) + Mean().update(6.0)).result()
    np.float64(3.0)
    """

    def update(self, values: Any, weights: Any = None) -> Mean:  # type: ignore[override]
        x = jt.asarray(values).astype(np.float64)
        w = state.weights_of(x.shape, weights, "values")
        return self._with(total=jt.sum(w * state.counted(x, w)), weight=jt.sum(w))


@state.metric("threshold")
class Accuracy(_MeanOf):
    """The share of labels that are predicted.

    Predictions are classes, or scores of classes along an axis more, of which the largest counts; or
    scores of class 1, which count from `threshold` on.

    >>> labels, scores = np.array([0, 1]), np.array([[0.9, 0.1], [0.6, 0.4]])
    >>> jt.train.metrics.Accuracy().update(labels, scores).result()
    np.float64(0.5)
    """

    threshold: float = 0.5

    def _each(self, labels: Any, predictions: Any, weights: Any) -> tuple[Any, Any]:
        true, said = state.classes_of(labels, predictions, self.threshold)
        return true == said, state.weights_of(true.shape, weights, "labels")


@state.metric("k")
class TopKAccuracy(_MeanOf):
    """The share of labels with fewer than `k` scores above their own.

    >>> metric = jt.train.metrics.TopKAccuracy(2)
    >>> metric.update(np.array([0, 2]), np.array([[0.3, 0.6, 0.1]] * 2)).result()
    np.float64(0.5)
    """

    k: int = 5

    def _each(self, labels: Any, scores: Any, weights: Any) -> tuple[Any, Any]:
        rows, own, w = state.own_scores(labels, scores, weights)
        return jt.sum(~(rows <= own[..., None]), axis=-1) < self.k, w


@state.metric("root")
class MeanSquaredError(_MeanOf):
    """The mean of the squares of `labels - predictions`; its root with `root=True`.

    >>> jt.train.metrics.MeanSquaredError().update(np.array([1.0, 2.0]), np.array([1.0, 4.0])).result()
    np.float64(2.0)
    """

    root: bool = False

    def _each(self, labels: Any, predictions: Any, weights: Any) -> tuple[Any, Any]:
        true, said = (jt.asarray(x).astype(np.float64) for x in (labels, predictions))
        if true.shape != said.shape:
            what = f"labels have the shape {true.shape}, and predictions {said.shape}"
            state.refuse(what, "predictions", said)
        return (true - said) ** 2, state.weights_of(true.shape, weights, "labels")

    def result(self) -> Any:
        mean = super().result()
        return jt.sqrt(mean) if self.root else mean


@state.metric()
class Perplexity(_MeanOf):
    """exp of the mean cross entropy between labels (classes) and `logits`, which have an axis more.

    >>> jt.train.metrics.Perplexity().update(np.array([0, 3]), np.zeros((2, 8))).result().round(6)
    np.float64(8.0)
    """

    def _each(self, labels: Any, logits: Any, weights: Any) -> tuple[Any, Any]:
        rows, own, w = state.own_scores(labels, logits, weights)
        return (jt.logsumexp(rows, axis=-1) - own).astype(np.float64), w

    def result(self) -> Any:
        return jt.exp(super().result())
