"""Memory order of arrays: strides, counted in elements, as NumPy would choose them."""

from __future__ import annotations

from collections.abc import Sequence


def c_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides, in elements, of a C-contiguous array."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def k_order(
    shape: tuple[int, ...], operands: Sequence[tuple[tuple[int, ...], tuple[int, ...]]]
) -> tuple[int, ...]:
    """Strides, in elements, of a new array in the memory order of (shape, strides) operands.

    The axes are sorted as NumPy's iterator sorts them: inner axes have the smaller strides, and in
    a conflict between operands C order wins.
    """
    rank = len(shape)
    aligned = []
    for own, strides in operands:
        lead = rank - len(own)
        steps = [abs(s) if n != 1 else 0 for n, s in zip(own, strides, strict=True)]
        aligned.append([0] * lead + steps)
    axes: list[int] = []  # from the innermost
    for axis in reversed(range(rank)):
        place = len(axes)
        for i in reversed(range(len(axes))):
            pairs = [(s[axes[i]], s[axis]) for s in aligned if s[axes[i]] and s[axis]]
            if not pairs:
                continue
            if any(inner <= outer for inner, outer in pairs):
                break
            place = i
        axes.insert(place, axis)
    found, step = [0] * rank, 1
    for axis in axes:
        found[axis] = step
        step *= max(shape[axis], 1)
    return tuple(found)
