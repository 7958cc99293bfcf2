"""What convolution and pooling share: layouts, one setting per spatial dim, padding."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from ...ir.ops.products.convolution import spread
from ..core.tracers import Tracer
from ..messages import errors
from ..messages.errors import complain

Ints = tuple[int, ...]
_SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


class Layout:
    """Where the batch, spatial and channel dims of an operand are.

    `order` lists its axes as batch, spatial dims, channels; `letters` names the spatial dims.
    """

    def __init__(self, name: str, x: Tracer, layout: str | None) -> None:
        if layout is None:
            if x.ndim - 2 not in _SPATIAL:
                _wrong_rank(name, x)
            layout = f"N{_SPATIAL[x.ndim - 2]}C"
        if len(set(layout)) != len(layout) or not {"N", "C"} <= set(layout) or len(layout) < 3:
            raise ValueError(
                f"layout={layout!r} must name the batch dim N, spatial dims and channels C, each "
                'once, as in "NHWC"'
            )
        if len(layout) != x.ndim:
            _wrong_rank(name, x, layout)
        self.letters = "".join(c for c in layout if c not in "NC")
        self.order: Ints = tuple(layout.index(c) for c in f"N{self.letters}C")
        self.channels_last = layout.index("C") > max(map(layout.index, self.letters))

    @property
    def rank(self) -> int:
        return len(self.letters)

    def kernel_order(self, name: str, kernel: Tracer, layout: str | None) -> Ints:
        """The axes of a kernel as spatial dims, input channels, output channels."""
        if layout is None:
            layout = f"{self.letters}IO" if self.channels_last else f"OI{self.letters}"
        if sorted(layout) != sorted(f"{self.letters}IO"):
            raise ValueError(
                f"kernel_layout={layout!r} must name the spatial dims {self.letters}, input channels "
                f'I and output channels O, each once, as in "{self.letters}IO"'
            )
        if kernel.ndim != len(layout):
            complain(
                errors.ShapeError,
                f"{name}: the kernel has {kernel.ndim} dims, and its layout {layout!r} names "
                f"{len(layout)}",
                f"give it the dims {', '.join(layout)}.",
                operands={"kernel": kernel},
            )
        return tuple(layout.index(c) for c in f"{self.letters}IO")

    def everywhere(self, values: Sequence[int], rest: int) -> Ints:
        """One value per spatial dim as one per axis, `rest` for the other axes."""
        entries = [rest] * len(self.order)
        for axis, value in zip(self.order[1:-1], values, strict=True):
            entries[axis] = value
        return tuple(entries)


def _wrong_rank(name: str, x: Tracer, layout: str = "") -> NoReturn:
    wanted = "a batch dim, one to three spatial dims, and channels"
    if layout:
        wanted = f"the dims {', '.join(layout)}, as layout={layout!r} says"
    complain(
        errors.ShapeError,
        f"{name} of an array with {x.ndim} dims",
        f"give x {wanted}.",
        operands={"x": x},
    )


def per_dim(what: str, value: Any, rank: int, least: int = 1) -> Ints:
    """A setting given once, or once per dim."""
    entries = list(value) if isinstance(value, Iterable) else [value] * rank
    numbers = tuple(operator.index(v) for v in entries)
    if len(numbers) != rank:
        raise ValueError(f"{what}={value!r} must be one number, or one for each of {rank} dims")
    if any(v < least for v in numbers):
        raise ValueError(f"{what}={value!r} must be at least {least}")
    return numbers


def pads(
    name: str, padding: Any, sizes: Ints, taps: Ints, strides: Ints, dilation: Ints
) -> list[tuple[int, int]]:
    """(low, high) for each spatial dim."""
    if isinstance(padding, str):
        dims = zip(sizes, taps, strides, dilation, strict=True)
        return [_named(name, padding, len(sizes), *dim) for dim in dims]
    entries = list(padding) if isinstance(padding, Iterable) else [padding] * len(sizes)
    if len(entries) != len(sizes):
        raise ValueError(
            f"{name}: padding={padding!r} must be a name, one number, or for each of {len(sizes)} "
            "dims a number or a pair (low, high)"
        )
    pairs: list[tuple[int, int]] = []
    for entry in entries:
        low, high = tuple(entry) if isinstance(entry, Iterable) else (entry, entry)
        pairs.append((operator.index(low), operator.index(high)))
    return pairs


def _named(
    name: str, padding: str, rank: int, size: int, taps: int, stride: int, dilation: int
) -> tuple[int, int]:
    extent = spread(taps, dilation)
    match padding.upper():
        case "VALID":
            return 0, 0
        case "SAME" | "SAME_LOWER":
            total = max((-(-size // stride) - 1) * stride + extent - size, 0)
            low = total // 2 if padding.upper() == "SAME" else -(-total // 2)
            return low, total - low
        case "CAUSAL" if rank == 1:
            return extent - 1, 0
    raise ValueError(
        f'{name}: padding={padding!r} is not "VALID", "SAME", "SAME_LOWER", or "CAUSAL" (one spatial '
        "dim)"
    )
