"""Metrics that are made of how often each class was called each other."""

from __future__ import annotations

from typing import Any

import numpy as np

import jitney as jt

from .state import C, M, Metric, classes_of, counted, metric, share, weights_of


@metric("classes", "threshold")
class Confusion(Metric):
    """How often class i (rows) was called class j (columns); predictions as in `Accuracy`.

    >>> jt.train.metrics.Confusion(2).update(np.array([0, 1, 1]), np.array([0, 1, 0])).result()
    array([[1., 0.],
           [1., 1.]])
    """

    classes: int = 2
    threshold: float = 0.5
    matrix: Any = None

    def __post_init__(self) -> None:
        _begin(self)

    def update(self, labels: Any, predictions: Any, weights: Any = None) -> Confusion:
        return self._with(matrix=_counts(self, labels, predictions, weights))

    def result(self) -> Any:
        return self.matrix


def _begin(metric: Any) -> None:
    """Zeros, where no counts are given."""
    if metric.matrix is None:
        object.__setattr__(metric, "matrix", np.zeros((metric.classes, metric.classes)))


def _counts(metric: Any, labels: Any, predictions: Any, weights: Any) -> Any:
    """How often class i was called class j in a batch."""
    true, said = classes_of(labels, predictions, metric.threshold)
    w = weights_of(true.shape, weights, "labels")
    true, said = (counted(x, w).astype(np.int64) for x in (true, said))
    return jt.ops.confusion_matrix(true, said, metric.classes, w)


@metric("classes", "threshold", "average")
class _Averaged(Metric):
    """A quotient for each class, `_ratio(right, labels, predictions)`; how they become one."""

    classes: int = 2
    threshold: float = 0.5
    matrix: Any = None
    average: str | None = "binary"

    def __post_init__(self) -> None:
        _begin(self)
        if self.average not in ("binary", "macro", "micro", "weighted", None):
            jt.errors.complain(
                ValueError,
                f"average={self.average!r} is not known",
                "it is 'binary', 'macro', 'micro', 'weighted' or None.",
            )
        if self.average == "binary" and self.classes != 2:
            jt.errors.complain(
                ValueError,
                f"average='binary' is for 2 classes, not {self.classes}",
                "say another: average='macro', for instance.",
            )

    def update(self: M, labels: Any, predictions: Any, weights: Any = None) -> M:
        return self._with(matrix=_counts(self, labels, predictions, weights))

    def _ratio(self, right: Any, labels: Any, predictions: Any) -> tuple[Any, Any]:
        raise NotImplementedError

    def result(self) -> Any:
        right = jt.diagonal(self.matrix)
        labels, predictions = (jt.sum(self.matrix, axis=axis) for axis in (1, 0))
        if self.average == "micro":
            sums = (jt.sum(x) for x in (right, labels, predictions))
            return share(*self._ratio(*sums), 0.0)
        each = share(*self._ratio(right, labels, predictions), 0.0)
        if self.average is None:
            return each
        if self.average == "binary":
            return each[1]
        there = labels if self.average == "weighted" else (labels + predictions > 0).astype(float)
        return share(jt.sum(each * there), jt.sum(there), 0.0)


_AVERAGE = """With two classes (the default) it is that of class 1. For more say how those of the classes
    become one: `average="macro"` (their mean; classes that neither are nor are predicted do not count),
    "weighted" (by how often they are), "micro" (all counts together), or None (an array). Predictions
    are as in `Accuracy`; a quotient of nothings is 0.
"""


def _averaged(cls: C) -> C:
    cls.__doc__ = f"{cls.__doc__ or ''}".replace("AVERAGE", _AVERAGE.rstrip())
    return metric("classes", "threshold", "average")(cls)


@_averaged
class Precision(_Averaged):
    """How many of those that are called a class are of it.

    AVERAGE

    >>> labels, said = np.array([0, 1, 1]), np.array([1, 1, 0])
    >>> jt.train.metrics.Precision().update(labels, said).result()
    np.float64(0.5)
    """

    average: str | None = "binary"

    def _ratio(self, right: Any, labels: Any, predictions: Any) -> tuple[Any, Any]:
        return right, predictions


@_averaged
class Recall(_Averaged):
    """How many of a class are called it.

    AVERAGE

    >>> labels, said = np.array([0, 1, 1, 1]), np.array([1, 1, 0, 0])
    >>> jt.train.metrics.Recall().update(labels, said).result().round(3)
    np.float64(0.333)
    """

    average: str | None = "binary"

    def _ratio(self, right: Any, labels: Any, predictions: Any) -> tuple[Any, Any]:
        return right, labels


@_averaged
class F1(_Averaged):
    """The harmonic mean of precision and recall.

    AVERAGE

    >>> labels, said = np.array([0, 1, 1, 1]), np.array([1, 1, 0, 0])
    >>> jt.train.metrics.F1().update(labels, said).result()
    np.float64(0.4)
    """

    average: str | None = "binary"

    def _ratio(self, right: Any, labels: Any, predictions: Any) -> tuple[Any, Any]:
        return 2 * right, labels + predictions


@_averaged
class MeanIoU(_Averaged):
    """Of each class, the share of those that are it and are called it among those that are or are called
    it; of the classes their mean.

    AVERAGE

    >>> labels, said = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    >>> jt.train.metrics.MeanIoU(2).update(labels, said).result().round(3)
    np.float64(0.333)
    """

    average: str | None = "macro"

    def _ratio(self, right: Any, labels: Any, predictions: Any) -> tuple[Any, Any]:
        return right, labels + predictions - right
