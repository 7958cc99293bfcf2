"""Losses of examples as one number: their mean or sum, with weights and a mask of those that count."""

from __future__ import annotations

from typing import Any

import numpy as np

import jitney as jt

from .faults import Array, complain


def reduced(losses: Array, weights: Any = None, mask: Any = None, reduction: str = "mean") -> Array:
    """Losses of examples as all losses here are reduced: for one's own.

    >>> losses = np.array([1.0, 3.0, np.nan])
    >>> float(jt.nn.losses.reduced(losses, weights=np.array([3.0, 1.0, 1.0]), mask=~np.isnan(losses)))
    1.5
    """
    if reduction not in ("mean", "sum", "none"):
        complain(
            jt.errors.SettingError,
            f"{reduction!r} is no reduction",
            'give "mean", "sum" or "none".',
        )
    if weights is not None:
        weights = _beside(losses, weights, "weights")
        losses = losses * weights
    if mask is not None:
        mask = _beside(losses, mask, "mask") != 0
        losses = np.where(mask, losses, np.zeros_like(losses))
    if reduction == "none":
        return losses
    total = losses.sum()
    if reduction == "sum":
        return total
    if weights is None and mask is None:
        return total / max(losses.size, 1)
    count = np.ones_like(losses) if weights is None else weights * np.ones_like(losses)
    count = (count if mask is None else np.where(mask, count, np.zeros_like(count))).sum()
    return total / np.where(count == 0, np.ones_like(count), count)


def array_of(x: Any) -> Array:
    """x, or of what is none an array."""
    return x if hasattr(x, "dtype") else np.asarray(x)


def wide(x: Array) -> Array:
    """An array of floats as float32, if they are smaller."""
    x = array_of(x)
    if x.dtype.kind in "biu":
        return x.astype(np.float64)
    return x.astype(np.float32) if x.dtype.itemsize < 4 else x


def _beside(losses: Array, part: Any, name: str) -> Array:
    """Weights or a mask, which are broadcast to the losses and do not broadcast them."""
    part = array_of(part)
    pairs = zip(reversed(part.shape), reversed(losses.shape), strict=False)
    if part.ndim > losses.ndim or any(n not in (1, m) for n, m in pairs):
        complain(
            jt.errors.ShapeError,
            f"{name} of shape {part.shape} cannot be for losses of shape {losses.shape}",
            f"give {name} for the losses of examples, or what is broadcast to them: {name}[:, None] is "
            "for rows.",
            **{name: part, "losses": losses},
        )
    return part if name == "mask" else part.astype(losses.dtype)
