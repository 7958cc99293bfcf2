"""Areas under curves: how well scores tell two classes apart."""

from __future__ import annotations

from typing import Any

import numpy as np

import jitney as jt

from .state import Metric, counted, metric, no_negative, refuse, share, weights_of


@metric("curve", "bins")
class AUC(Metric):
    """The area under the ROC curve, or with `curve="pr"` the average precision, of scores in 0..1.

    Scores are counted in `bins` of equal width; those in one bin count as equal. So the state is small
    and adds up, and the result is exact where no bin has scores of both classes. `roc_auc` and
    `average_precision` are exact for a whole set. NaN where a class is missing, a score is NaN, or, in
    compiled code, outside of 0..1, which is an error elsewhere.

    >>> labels, scores = np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8])
    >>> jt.train.metrics.AUC().update(labels, scores).result()
    np.float64(0.75)
    """

    curve: str = "roc"
    bins: int = 4096
    counts: Any = None

    def __post_init__(self) -> None:
        if self.curve not in ("roc", "pr"):
            what = f"curve={self.curve!r} is not known"
            jt.errors.complain(ValueError, what, "it is 'roc' or 'pr'.")
        if self.counts is None:
            object.__setattr__(self, "counts", np.zeros((2, self.bins)))

    def update(self, labels: Any, scores: Any, weights: Any = None) -> AUC:
        true, score, w = _scored(labels, scores, weights)
        outside = (w > 0) & ((score < 0) | (score > 1))
        if jt.is_traced(outside):
            w = jt.where(outside, np.nan, w)
        elif outside.any():
            jt.errors.complain(
                ValueError,
                "AUC counts scores from 0 to 1, and there are others",
                "nn.sigmoid makes them of logits; metrics.roc_auc takes any, of a whole set.",
                operands={"scores": scores},
            )
        place = jt.clip(jt.where(jt.isnan(score), 0.0, score) * self.bins, 0, self.bins - 1)
        index = jt.stack([true, place.astype(np.int64)], axis=-1)
        return self._with(counts=jt.ops.scatter_nd(index, w, (2, self.bins)))

    def result(self) -> Any:
        return _area(self.counts, self.curve)


def _scored(labels: Any, scores: Any, weights: Any) -> tuple[Any, Any, Any]:
    """Labels 0 and 1, scores and weights, flat; a score that is NaN weighs NaN."""
    true, score = jt.asarray(labels), jt.asarray(scores)
    if true.shape != score.shape:
        refuse(f"labels have the shape {true.shape}, and scores {score.shape}", "scores", score)
    w = weights_of(true.shape, weights, "labels")
    true = no_negative(counted(true, w), 2)
    score = counted(score.astype(np.float64), w)
    return true.ravel(), score.ravel(), jt.where(jt.isnan(score), np.nan, w).ravel()


def _area(counts: Any, curve: str) -> Any:
    """Of the weights of both classes at rising scores: how well the scores tell them apart."""
    negative, positive = counts
    below, up_to = jt.cumsum(negative) - negative, jt.cumsum(negative)
    all_positive, all_negative = jt.sum(positive), up_to[-1]
    if curve == "roc":
        ordered = jt.sum(positive * (below + up_to))
        return share(ordered, 2 * all_positive * all_negative)
    from_here = jt.flip(jt.cumsum(jt.flip(positive)))  # as many as a threshold here lets through
    precision = share(from_here, from_here + all_negative - below, 0.0)
    return share(jt.sum(positive * precision), all_positive)


def _whole(curve: str, labels: Any, scores: Any, weights: Any) -> Any:
    true, score, w = _scored(labels, scores, weights)
    if not true.size:
        return np.float64(np.nan)
    order = jt.argsort(score)
    rising = score[order]
    step = jt.concatenate([np.zeros(1, bool), rising[1:] != rising[:-1]])
    index = jt.stack([true[order], jt.cumsum(step)], axis=-1)
    sums = jt.ops.scatter_nd(index, w[order], (2, true.size))
    return jt.where(jt.isnan(jt.sum(w)), np.nan, _area(sums, curve))[()]


def roc_auc(labels: Any, scores: Any, weights: Any = None) -> Any:
    """The area under the ROC curve, exact, of a whole set at once; scores may be any numbers.

    >>> jt.train.metrics.roc_auc(np.array([0, 0, 1, 1]), np.array([1.0, 4.0, 3.5, 8.0]))
    np.float64(0.75)
    """
    return _whole("roc", labels, scores, weights)


def average_precision(labels: Any, scores: Any, weights: Any = None) -> Any:
    """The area under the precision-recall curve, as steps, exact, of a whole set at once.

    >>> jt.train.metrics.average_precision(np.array([0, 1]), np.array([2.0, 1.0]))
    np.float64(0.5)
    """
    return _whole("pr", labels, scores, weights)
