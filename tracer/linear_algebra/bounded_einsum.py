"""einsum of arrays whose length is a value: zeros stand where they have no elements.

np.einsum("i,ij->j", w[mask], x[mask])      sums over as many rows as the mask chooses
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..arrays.common import array
from ..arrays.table import ArrayFunction
from ..core.tracers import Tracer
from ..indexing.bounded import Bounded, bounded, filled, refuse, require_equal, resized, rule
from ..indexing.masked import Masked
from .einsum import parse

_MISMATCH = (
    "operands could not be broadcast together with remapped shapes: an axis has {0} elements in one, "
    "and {1} in another"
)


@rule("einsum")
def _einsum(entry: ArrayFunction, *operands: Any, **options: Any) -> Any:
    given = [x.materialised() if isinstance(x, Masked) else x for x in operands]
    padded = [x.padded if isinstance(x, Bounded) else x for x in given]
    inputs, output, _ = parse(padded)
    parts = _operands(given)
    counts = {
        letter: part.counts[axis]
        for letters, part in zip(inputs, parts, strict=True)
        if isinstance(part, Bounded)
        for axis, letter in enumerate(letters)
        if axis in part.counts
    }
    sizes = {letter: _size(letter, inputs, parts, count) for letter, count in counts.items()}
    for letter, (_, is_counted) in sizes.items():
        if is_counted and (options.get("out") is not None or _meets_others(letter, inputs, output)):
            refuse(next(x for x in parts if isinstance(x, Bounded)), "such an einsum")
    whole = [_whole(x, letters, sizes) for x, letters in zip(parts, inputs, strict=True)]
    result = entry.traced(",".join(inputs) + "->" + output, *whole, **options)
    left = {k: counts[letter] for k, letter in enumerate(output) if sizes.get(letter, (0, 0))[1]}
    return bounded(result, left)


def _operands(given: Sequence[Any]) -> list[Any]:
    """The arrays among the arguments, of either way to call einsum."""
    if isinstance(given[0], str):
        arrays = given[1:]
    else:
        arrays = given[: len(given) // 2 * 2 : 2]
    return [x if isinstance(x, Bounded) else array(x) for x in arrays]


def _meets_others(letter: str, inputs: Sequence[str], output: str) -> bool:
    """Whether zeros that are summed over are multiplied by elements that may be infinite."""
    return letter not in output and any(letter not in letters for letters in inputs)


def _size(letter: str, inputs: Sequence[str], parts: Sequence[Any], count: Any) -> tuple[int, bool]:
    """The size that an axis has in all operands, and whether it is counted in all: else the count is
    that size, which is checked when the function runs."""
    bounds: list[int] = []
    known: list[int] = []
    for letters, part in zip(inputs, parts, strict=True):
        for axis in (k for k, other in enumerate(letters) if other == letter):
            own = part.counts.get(axis) if isinstance(part, Bounded) else None
            shape = part.padded.shape if isinstance(part, Bounded) else part.shape
            if own is not None:
                bounds.append(shape[axis])
                require_equal(count, own, _MISMATCH)
            elif shape[axis] != 1:
                known.append(shape[axis])
                require_equal(count, shape[axis], _MISMATCH)
    return (known[0], False) if known else (min(bounds), True)


def _whole(x: Any, letters: str, sizes: dict[str, tuple[int, bool]]) -> Tracer:
    """An operand of these sizes, with zeros behind its elements."""
    if not isinstance(x, Bounded):
        return array(x)
    padded = filled(x, 0)
    for axis in x.counts:
        padded = resized(padded, axis, sizes[letters[axis]][0])
    return padded
