"""Arrays as pictures: `(n, height, width, channels)`, pixels of 8 bits, PNG."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def pictures(tag: str, array: Array) -> Array:
    """The array as `(n, height, width, channels)`. Raises ValueError for one that is no pictures."""
    shape = array.shape
    if array.ndim == 2:
        array = array[..., None]
    if array.ndim == 3:
        array = array[None]
    if array.ndim != 4 or array.shape[-1] not in (1, 3, 4) or 0 in array.shape[1:]:
        raise ValueError(
            f"jt.summary.image({tag!r}) takes pictures of shape (height, width), (height, width, "
            f"channels) or (n, height, width, channels) with 1, 3 or 4 channels, and got {shape}"
        )
    return array


def pixels(picture: Array, rescale: bool) -> Array:
    """One picture as uint8."""
    if picture.dtype == np.uint8 and not rescale:
        return picture
    values = picture.astype(np.float64)
    if rescale:
        top = np.abs(values, where=np.isfinite(values), out=np.zeros_like(values)).max()
        values = values / (top or 1.0)
        if (values < 0).any():
            values = values / 2 + 0.5
    elif picture.dtype.kind in "iu":
        values = values / 255
    return np.rint(np.clip(np.nan_to_num(values, nan=1.0), 0, 1) * 255).astype(np.uint8)


def png(pixels: Array) -> bytes:
    """Pixels of shape `(height, width, channels)`, encoded."""
    from PIL import Image

    out = io.BytesIO()
    grey = pixels.shape[-1] == 1
    Image.fromarray(pixels[..., 0] if grey else pixels).save(out, "png")
    return out.getvalue()
