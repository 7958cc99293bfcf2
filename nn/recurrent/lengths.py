"""Sequences of different lengths in one padded array `(batch, steps, ...)`."""

from __future__ import annotations

from typing import Any

import numpy as np

import jitney as jt

from ..faults import Array, check
from ..reductions import array_of


def sequence_mask(lengths: Array, steps: int | None = None, dtype: Any = bool) -> Array:
    """True in the first `lengths[i]` places of row i: shape `(*lengths.shape, steps)`.

    `steps` left out is the greatest length, which compiled code does not know: give it there.

    >>> jt.nn.sequence_mask(np.array([1, 3]), dtype=int)
    array([[1, 0, 0],
           [1, 1, 1]])
    """
    lengths = jt.asarray(lengths)
    if steps is None:
        steps = int(lengths.max(initial=0))
    return (np.arange(steps) < lengths[..., None]).astype(dtype)


def length_of(padded: Array, padding: Any = 0) -> Array:
    """The length of each row of `(batch, steps)` or `(batch, steps, ...)`: up to and including the
    last step where anything is not `padding`.

    >>> jt.nn.length_of(np.array([[7, 0, 4, 0], [0, 0, 0, 0]]))
    array([3, 0])
    """
    padded = jt.asarray(padded)
    used = padded != padding
    if padded.ndim > 2:
        used = used.any(axis=tuple(range(2, padded.ndim)))
    places = np.arange(1, padded.shape[1] + 1)
    return np.max(np.where(used, places, 0), axis=1, initial=0)


def last_relevant(outputs: Array, lengths: Array) -> Array:
    """The output at the end of each row, `(batch, ...)`; zeros for a row of length 0.

    >>> jt.nn.last_relevant(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), np.array([2, 3]))
    array([2., 6.])
    """
    lengths, steps = array_of(lengths), outputs.shape[1]
    check(
        (lengths >= 0) & (lengths <= steps),
        ValueError,
        f"last_relevant: a length is below 0, or above the {steps} steps",
        "give the lengths of these sequences.",
        outputs=outputs,
        lengths=lengths,
    )
    rows = np.arange(outputs.shape[0])
    last = outputs[rows, np.maximum(lengths - 1, 0)]
    empty = np.reshape(lengths == 0, (-1,) + (1,) * (last.ndim - 1))
    return np.where(empty, np.zeros((), last.dtype), last)


def masked_mean(values: Array, mask: Array, axis: Any = None) -> Array:
    """The mean of the values where `mask` is true, 0 where it is nowhere: a loss per step `(batch,
    steps)` becomes the loss of a batch. What stands elsewhere, NaN included, counts neither in it
    nor in the gradient.

    >>> loss = np.array([[1.0, 2.0, np.nan], [6.0, np.nan, np.nan]])
    >>> jt.nn.masked_mean(loss, jt.nn.sequence_mask(np.array([2, 1]), 3))
    np.float64(3.0)
    """
    kept = np.where(mask, values, np.zeros((), values.dtype))
    count = np.sum(np.broadcast_to(mask, values.shape), axis=axis, dtype=values.dtype)
    return np.sum(kept, axis=axis) / np.maximum(count, 1)
