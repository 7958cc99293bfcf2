"""Connectionist temporal classification: sequences of labels of which nobody knows when they occur.

Graves, Fernández, Gomez, Schmidhuber, "Connectionist Temporal Classification", ICML 2006, equations 6 to
8 in logarithms: a loop over steps carries, for each prefix of the labels with blanks between them, the
probability of all ways to have written it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import jitney as jt

from .activations import log_softmax
from .faults import Array, complain
from .reductions import array_of, reduced, wide

_NEVER = -1e30  # the logarithm of no way at all: finite, so that differences of two are no NaN


def ctc(
    logits: Array,
    labels: Array,
    lengths: Any = None,
    label_lengths: Any = None,
    blank: int = 0,
    *,
    weights: Any = None,
    mask: Any = None,
    reduction: str = "mean",
) -> Array:
    """Minus the logarithm of the probability of writing `labels` in any rhythm: one label in each step,
    or `blank`, where a label that is held counts once.

    `logits` have the shape `(..., steps, classes)`, `labels` are ints of shape `(..., labels)`.
    `lengths` and `label_lengths`, of shape `(...)`, are how many of them count; labels beyond may be
    any class. Labels that do not fit into the steps have an infinite loss, and no gradient. PyTorch's
    `reduction="mean"` divides each loss by the number of its labels first.

    Raises ShapeError for shapes that do not fit.

    >>> logits = np.zeros((2, 3))
    >>> float(jt.nn.losses.ctc(logits, np.array([1])).round(6))  # three ways of nine: a-, -a, aa
    1.098612
    """
    logits, labels = wide(logits), array_of(labels)
    rows = logits.shape[:-2]
    if logits.ndim < 2 or labels.shape[:-1] != rows or labels.dtype.kind not in "iu":
        complain(
            jt.errors.ShapeError,
            "ctc takes a row of labels for each matrix of logits",
            "give logits (..., steps, classes) and ints (..., labels).",
            logits=logits,
            labels=labels,
        )
    steps = _counts("lengths", lengths, rows, logits.shape[-2])
    count = _counts("label_lengths", label_lengths, rows, labels.shape[-1])
    between = np.full((*labels.shape, 1), blank, labels.dtype)
    # -a-b-: each label has blanks around it, which may be left out between two that differ.
    written = np.concatenate([between, labels[..., None]], axis=-1).reshape(
        *rows, 2 * labels.shape[-1]
    )
    written = np.concatenate([written, np.full((*rows, 1), blank, labels.dtype)], axis=-1)
    places = np.arange(written.shape[-1])
    skips = (written != blank) & (written != _earlier(written, 2, blank))
    emitted = np.take_along_axis(log_softmax(logits), written[..., None, :], axis=-1)

    def step(ways: Array, now: Any) -> Any:
        t, emission = now
        skipped = np.where(skips, _earlier(ways, 2, _NEVER), _NEVER)
        new = np.logaddexp(np.logaddexp(ways, _earlier(ways, 1, _NEVER)), skipped) + emission
        return np.where((t < steps)[..., None], np.maximum(new, _NEVER), ways), None

    # Before the first step nothing is written: as if there had been a blank, which no step has taken.
    start = np.where(places == 0, 0, _NEVER).astype(emitted.dtype)
    start = np.broadcast_to(start, written.shape)
    ways = jt.scan(step, start, (np.arange(logits.shape[-2]), np.moveaxis(emitted, -2, 0)))[0]
    ends = (places >= 2 * count[..., None] - 1) & (places <= 2 * count[..., None])
    total = jt.logsumexp(np.where(ends, ways, _NEVER), axis=-1)
    possible = total > _NEVER / 2
    losses = np.where(possible, -np.where(possible, total, 0), np.inf)
    return reduced(losses, weights, mask, reduction)


def _earlier(rows: Array, n: int, outside: Any) -> Array:
    """What stands `n` places earlier in each row."""
    edge = np.full((*rows.shape[:-1], n), outside, rows.dtype)
    return np.concatenate([edge, rows], axis=-1)[..., : rows.shape[-1]]


def _counts(name: str, given: Any, rows: tuple[int, ...], most: int) -> Array:
    counts = np.full(rows, most) if given is None else jt.asarray(given)
    if counts.shape != rows or counts.dtype.kind not in "iu":
        complain(
            jt.errors.ShapeError,
            f"{name} of ctc tells for each example how many count",
            f"give ints of the shape {rows}, at most {most}.",
            **{name: counts},
        )
    return counts
