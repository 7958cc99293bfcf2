"""Images (`native.image`) as a file has them, and back, with each of their numbers looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..native.image import PAGE, Image
from .format import Field, Pieces

_MOST_BYTES = 1 << 31  # of an image: its parts lie within 2 GiB of each other
_MOST_ROOM = 1 << 17  # behind code: a page, of the largest that there are


def packed_image(image: Image, exports: Sequence[str], pieces: Pieces) -> dict[str, Any]:
    """The image as plain data, with the symbols that others need."""
    return {
        "code": pieces.add(image.code),
        "data": pieces.add(image.data),
        "sizes": [image.code_size, image.data_size],
        "exports": [[name, image.exports[name]] for name in exports if name in image.exports],
        "imports": list(image.imports),
        "own": pieces.add(np.array(image.own, "<i8").reshape(-1, 2).tobytes()),
        "outer": pieces.add(np.array(image.outer, "<i8").reshape(-1, 3).tobytes()),
    }


def read_image(field: Field) -> Image:
    """The image again. Raises FormatError."""
    code, data = field["code"].piece(), field["data"].piece()
    sizes = [item.number(0, _MOST_BYTES) for item in field["sizes"].items()]
    if len(sizes) != 2:
        raise field["sizes"].wrong("are not two")
    code_size, data_size = sizes
    fits = len(code) <= code_size <= len(code) + _MOST_ROOM and len(data) <= data_size
    if code_size % PAGE or not code or not fits:
        raise field["sizes"].wrong("do not fit the code")
    exports = {}
    for item in field["exports"].items():
        pair = list(item.items())
        if len(pair) != 2:
            raise item.wrong("is no name with its place")
        exports[pair[0].of(str)] = pair[1].number(0, code_size + data_size - 1)
    symbols = tuple(field["imports"].items_of(str))
    if not all(name and "\0" not in name for name in symbols):
        raise field["imports"].wrong("has what is no name")
    own = _table(field["own"], 2, code_size, code_size + data_size)
    outer = _table(field["outer"], 3, code_size, code_size + data_size)
    if any(not 0 <= target <= code_size + data_size for _, target in own):
        raise field["own"].wrong("points out of the code")
    if any(not 0 <= k < len(symbols) or abs(addend) > 1 << 40 for _, k, addend in outer):
        raise field["outer"].wrong("names no symbol")
    return Image(code, data, code_size, data_size, exports, symbols, own, outer)


def _table(field: Field, width: int, start: int, end: int) -> Any:
    """Rows, the first of each being the place of a word in the data."""
    content = field.piece()
    if len(content) % (8 * width):
        raise field.wrong("is no table")
    rows = np.frombuffer(content, "<i8").reshape(-1, width).tolist()
    if any(not start <= row[0] <= end - 8 or row[0] % 8 for row in rows):
        raise field.wrong("points out of the data")
    return tuple(map(tuple, rows))
