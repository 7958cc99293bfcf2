"""Memory order of arrays: strides, counted in elements, as NumPy would choose them."""

from __future__ import annotations

from collections.abc import Sequence

Shape = tuple[int, ...]
Strides = tuple[int, ...]
Layout = tuple[Shape, Strides]


def c_strides(shape: Sequence[int]) -> Strides:
    """Strides, in elements, of a C-contiguous array."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def f_strides(shape: Sequence[int]) -> Strides:
    """Strides, in elements, of a Fortran-contiguous array."""
    return c_strides(shape[::-1])[::-1]


def is_contiguous(shape: Shape, strides: Strides, order: str) -> bool:
    """Whether an array lies in memory without gaps, in order "C" or "F"."""
    wanted = c_strides(shape) if order == "C" else f_strides(shape)
    return 0 in shape or all(
        s == w for n, s, w in zip(shape, strides, wanted, strict=True) if n > 1
    )


def order_of(order: object, default: str = "C") -> str:
    """The order that an argument names, as NumPy reads it: "C", "F", "A" or "K"."""
    if order is None:
        return default
    if isinstance(order, bytes):
        order = order.decode()
    if not isinstance(order, str):
        raise TypeError(f"order must be str, not {type(order).__name__}")
    if order.upper() not in ("C", "F", "A", "K"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    return order.upper()


def plain_order(order: object) -> str:
    """The order of an array that is made from none: "C" or "F"."""
    plain = order_of(order)
    if plain not in "CF":
        raise ValueError("only 'C' or 'F' order is permitted")
    return plain


def resolved_order(order: str, layout: Layout) -> str:
    """Order "A" is "F" for an array that is contiguous in that order alone, else "C"."""
    if order != "A":
        return order
    return "F" if is_contiguous(*layout, "F") and not is_contiguous(*layout, "C") else "C"


def new_strides(shape: Shape, layouts: Sequence[Layout], order: str, copy: bool) -> Strides:
    """Strides of a new array that is made from arrays of these layouts, in the order that is asked for.

    NumPy's iterator (ufuncs) leaves axes along which an array was broadcast aside; a `copy` sorts them
    to the inside, as their strides are 0.
    """
    if order == "A":
        order = "F" if layouts and all(resolved_order("A", x) == "F" for x in layouts) else "C"
    if order == "F":
        return f_strides(shape)
    return k_order(shape, layouts, copy) if order == "K" else c_strides(shape)


def k_order(shape: Shape, operands: Sequence[Layout], copy: bool = False) -> Strides:
    """Strides, in elements, of a new array in the memory order of (shape, strides) operands."""
    strides, step = [0] * len(shape), 1
    for axis in inner_axes_first(len(shape), operands, copy):
        strides[axis] = step
        step *= max(shape[axis], 1)
    return tuple(strides)


def inner_axes_first(rank: int, operands: Sequence[Layout], copy: bool = False) -> list[int]:
    """The axes of arrays, sorted as NumPy's iterator sorts them: inner axes have the smaller strides,
    and in a conflict between operands C order wins. (`copy`: see `new_strides`.)"""
    aligned: list[list[int | None]] = []
    for own, strides in operands:
        lead: list[int | None] = [None] * (rank - len(own))
        pairs = zip(own, strides, strict=True)
        aligned.append(lead + [abs(s) if n != 1 and (s or copy) else None for n, s in pairs])
    axes: list[int] = []  # from the innermost
    for axis in reversed(range(rank)):
        position = len(axes)
        for i in reversed(range(len(axes))):
            both = [(s[axes[i]], s[axis]) for s in aligned]
            both_known = [(x, y) for x, y in both if x is not None and y is not None]
            if not both_known:
                continue
            if any(inner <= outer for inner, outer in both_known):
                break
            position = i
        axes.insert(position, axis)
    return axes
