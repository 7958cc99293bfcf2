"""Points in many dimensions, for the embedding projector.

The projector reads files beside the events: `projector_config.pbtxt` lists the embeddings, each with its
`tensors.tsv`, `metadata.tsv` and, where points have pictures, the sheet of them, `sprite.png`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .pictures import pictures, pixels, png
from .writer import Writer, current, tensorboard

_LARGEST_SHEET = 8192  # pixels of a side that a browser takes


def embedding(
    tag: str,
    points: Any,
    labels: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None,
    *,
    images: Any = None,
    rescale: bool = False,
    writer: Writer | None = None,
) -> None:
    """`points` of shape `(n, dimensions)`; of each point a label, or several in named columns, and a
    picture: `images` of shape `(n, height, width)` or `(n, height, width, channels)`, as for
    `jt.summary.image`. They are shown in their own size, so give thumbnails.

        jt.summary.embedding("words", matrix, {"word": words, "count": counts})

    It is written at once, and an embedding of the same tag is replaced. Raises ValueError where lengths
    differ or the pictures' sheet would be larger than 8192 pixels.
    """
    to = writer or current()
    if to is None:
        return
    matrix = np.asarray(points)
    if matrix.ndim != 2:
        raise ValueError(f"points of an embedding have shape (n, dimensions), not {matrix.shape}")
    columns = _columns(labels)
    for name, column in columns.items():
        _same_length(len(matrix), f"labels {name!r}", len(column))
    folder = to.logdir / "projector" / _file_name(tag)
    folder.mkdir(parents=True, exist_ok=True)
    np.savetxt(folder / "tensors.tsv", matrix, fmt="%.8g", delimiter="\t")
    info = tensorboard("plugins.projector").EmbeddingInfo(tensor_name=tag)
    info.tensor_shape.extend(matrix.shape)
    info.tensor_path = _relative(folder / "tensors.tsv", to)
    if columns:
        _write_metadata(folder / "metadata.tsv", columns)
        info.metadata_path = _relative(folder / "metadata.tsv", to)
    if images is not None:
        given = np.asarray(images)
        _same_length(len(matrix), "images", len(given))
        shown = pictures(tag, given[..., None] if given.ndim == 3 else given)
        (folder / "sprite.png").write_bytes(_sheet(shown, rescale))
        info.sprite.image_path = _relative(folder / "sprite.png", to)
        info.sprite.single_image_dim.extend([shown.shape[2], shown.shape[1]])
    _add_to_config(info, to)


def _columns(labels: Any) -> dict[str, Sequence[Any]]:
    if labels is None:
        return {}
    return dict(labels) if isinstance(labels, Mapping) else {"label": labels}


def _same_length(n: int, what: str, length: int) -> None:
    if length != n:
        raise ValueError(f"an embedding of {n} points has {length} {what}: one of each is needed")


def _write_metadata(path: Any, columns: dict[str, Sequence[Any]]) -> None:
    """One row a point. A single column has no head: so the projector wants it."""
    rows = [list(columns)] if len(columns) > 1 else []
    rows += [list(row) for row in zip(*columns.values(), strict=True)]
    lines = ["\t".join(" ".join(str(cell).split()) for cell in row) for row in rows]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _sheet(shown: Any, rescale: bool) -> bytes:
    """All pictures in rows of a square sheet."""
    n, height, width, channels = shown.shape
    side = max(math.isqrt(n - 1) + 1 if n else 1, 1)
    if side * max(height, width) > _LARGEST_SHEET:
        raise ValueError(
            f"{n} pictures of {height} x {width} make a sheet of {side * height} x {side * width} "
            f"pixels, more than the {_LARGEST_SHEET} that browsers take: give smaller ones"
        )
    sheet = np.full((side * height, side * width, channels), 255, np.uint8)
    for k, picture in enumerate(shown):
        row, column = k // side * height, k % side * width
        sheet[row : row + height, column : column + width] = pixels(picture, rescale)
    return png(sheet)


def _file_name(tag: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in tag) or "_"


def _relative(path: Any, writer: Writer) -> str:
    return str(path.relative_to(writer.logdir))


def _add_to_config(info: Any, writer: Writer) -> None:
    from google.protobuf import text_format

    path = writer.logdir / "projector_config.pbtxt"
    config = tensorboard("plugins.projector").ProjectorConfig()
    if path.exists():
        text_format.Parse(path.read_text(encoding="utf-8"), config)
    others = [e for e in config.embeddings if e.tensor_name != info.tensor_name]
    del config.embeddings[:]
    config.embeddings.extend([*others, info])
    path.write_text(text_format.MessageToString(config), encoding="utf-8")
