"""Pictures: files to arrays (height, width, channels) by Pillow, cut, sized and mirrored.

The functions that draw take the generator that `map(f, seed=)` hands to f with each element.
"""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np

import jitney as jt

from .errors import DataError, describe
from .trees import Array

_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            f"pictures need the Pillow package ({error}): pip install 'jitney[data]'"
        ) from error
    return Image


@jt.errors.naming_lines
def decode_image(
    data: bytes | str | os.PathLike[str],
    channels: int | None = None,
    size: tuple[int, int] | None = None,
) -> Array:
    """A picture's pixels, uint8 `(height, width, channels)`, of its bytes or its path.

    `channels` is 1 (grey), 2 (grey, alpha), 3 (RGB) or 4 (RGBA); None leaves grey and colour as they
    are, without alpha. `size` is (height, width) to resize to. Raises DataError for bytes that are no
    picture, truncated ones and those too large to be true, with the path.

    >>> from io import BytesIO
    >>> from PIL import Image
    >>> Image.new("RGB", (4, 2), (255, 0, 0)).save(file := BytesIO(), "png")
    >>> jt.data.decode_image(file.getvalue()).shape
    (2, 4, 3)
    """
    if channels is not None and channels not in _MODES:
        raise ValueError(f"channels={channels!r}: give 1, 2, 3, 4 or None")
    image_module = _pillow()
    path = None if isinstance(data, (bytes, bytearray, memoryview)) else os.fspath(data)
    what = path or f"{len(data)} bytes"  # type: ignore[arg-type]
    file: Any = path or io.BytesIO(data)  # type: ignore[arg-type]
    try:
        with image_module.open(file) as picture:
            grey = picture.mode in ("1", "L", "LA", "I;16")
            mode = _MODES[channels or (1 if grey else 3)]
            if size is not None:
                picture.draft(mode, size[::-1])  # JPEG: decode at a scale not far above it
            picture = picture.convert(mode)
            if size is not None and picture.size != size[::-1]:
                picture = picture.resize(size[::-1], image_module.Resampling.BILINEAR)
            pixels = np.array(picture)
    except FileNotFoundError:
        raise
    except (OSError, SyntaxError, ValueError, image_module.DecompressionBombError) as error:
        said = str(error).replace(repr(file), "it")
        raise DataError(f"{what}: not a whole picture ({said})") from error
    return pixels if pixels.ndim == 3 else pixels[..., None]


@jt.errors.naming_lines
def encode_image(pixels: Array, format: str = "png") -> bytes:
    """uint8 pixels, `(height, width)` or `(height, width, 1 to 4)`, as a file's bytes.

    >>> jt.data.encode_image(np.zeros((2, 2, 3), np.uint8))[1:4]
    b'PNG'
    """
    pixels = _checked(pixels)
    if pixels.dtype != np.uint8:
        raise DataError(
            f"pixels of a file are uint8, not {pixels.dtype}: (255 * x).astype(np.uint8)"
        )
    out = io.BytesIO()
    grey = pixels.shape[-1] == 1
    _pillow().fromarray(pixels[..., 0] if grey else pixels).save(out, format)
    return out.getvalue()


def _sized(size: Any) -> tuple[int, int]:
    if not isinstance(size, (tuple, list)) or len(size) != 2:
        raise TypeError(f"the size of a picture is (height, width), not {size!r}")
    return size[0], size[1]


def _checked(pixels: Any) -> Array:
    pixels = np.asarray(pixels)
    if pixels.ndim == 2:
        pixels = pixels[..., None]
    if pixels.ndim != 3 or pixels.shape[-1] not in _MODES:
        raise DataError(
            f"a picture is (height, width, 1 to 4 channels), not {describe(pixels)}: map them one "
            "by one, before batch"
        )
    return pixels


@jt.errors.naming_lines
def resize_image(pixels: Array, size: tuple[int, int]) -> Array:
    """A picture in another size (height, width), bilinear, with all pixels counted when smaller.

    The dtype stays; floats are resized channel by channel, other dtypes than uint8 through float32.

    >>> jt.data.resize_image(np.full((4, 4, 3), 7, np.uint8), (2, 2))[0, 0].tolist()
    [7, 7, 7]
    """
    image_module = _pillow()
    pixels, size = _checked(pixels), _sized(size)
    as_float = pixels if pixels.dtype == np.uint8 else pixels.astype(np.float32)
    planes = [
        np.array(
            image_module.fromarray(np.ascontiguousarray(as_float[..., c])).resize(
                size[::-1], image_module.Resampling.BILINEAR
            )
        )
        for c in range(pixels.shape[-1])
    ]
    found = np.stack(planes, -1)
    return (np.rint(found) if pixels.dtype.kind in "iu" else found).astype(pixels.dtype)


@jt.errors.naming_lines
def crop(pixels: Array, size: tuple[int, int], rng: np.random.Generator | None = None) -> Array:
    """A part of that size (height, width): from the middle, or with a generator from anywhere.

    >>> jt.data.crop(np.arange(16).reshape(4, 4), (2, 2)).tolist()
    [[5, 6], [9, 10]]
    """
    size = _sized(size)
    room = pixels.shape[0] - size[0], pixels.shape[1] - size[1]
    if min(room) < 0:
        raise DataError(f"a part of {tuple(size)} is not in a picture of {pixels.shape[:2]}")
    if rng is None:
        top, left = room[0] // 2, room[1] // 2
    else:
        top, left = (int(rng.integers(n + 1)) for n in room)
    return pixels[top : top + size[0], left : left + size[1]]


def flip(pixels: Array, rng: np.random.Generator | None = None, *, axis: int = 1) -> Array:
    """The picture mirrored left to right (`axis=0`: upside down); with a generator, every second time.

    >>> jt.data.flip(np.array([[1, 2]])).tolist()
    [[2, 1]]
    """
    return pixels if rng is not None and rng.random() < 0.5 else np.flip(pixels, axis)
