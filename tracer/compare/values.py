"""How results differ: by how much, in units of the last place, and where first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.record import record
from ...ir.types import is_complex, is_extended

_ROUNDING = (
    1000  # units of rounding, of the largest element, that sums in another order may come to
)
_CANCELLED = 16  # of what it was computed of, that what cancels out may leave


@record
class Difference:
    """How one array of a result differs from what it should be.

    path     which, among the leaves of the result; "" if it is the only one
    count    of elements that differ by more than rounding, of `size`
    most     the largest difference; inf where one of the two is no number
    ulps     the same in units of the last place of what should be there
    at       the first place, with what is there (`got`) and what should be (`wanted`)
    """

    path: str
    count: int
    size: int
    most: float
    ulps: float
    at: tuple[int, ...]
    got: Any
    wanted: Any

    def __str__(self) -> str:
        where = f" at {list(self.at)}" if self.at else ""
        name = f"{self.path}: " if self.path else ""
        if not self.size:
            return f"{name}{self.got} instead of {self.wanted}"
        return (
            f"{name}{self.count:,} of {self.size:,} elements differ by up to {self.most:.3g} "
            f"({self.ulps:.3g} ULP), first{where}: {self.got} instead of {self.wanted}"
        )


def differences(
    got: Sequence[Any],
    wanted: Sequence[Any],
    tolerance: float | None,
    paths: Sequence[str] = (),
    given: Sequence[Any] = (),
) -> list[Difference]:
    """How leaves differ beyond rounding, or beyond `tolerance` relative to the largest element.

    They were computed of `given`: what cancels out may leave some of the rounding of that.
    """
    if len(got) != len(wanted):
        return [_kinds("", f"{len(got)} arrays", f"{len(wanted)} arrays")]
    names = paths if len(paths) == len(got) > 1 else [""] * len(got)
    floor = max(map(_largest, given), default=0.0)
    found = (_one(*each, tolerance, floor) for each in zip(names, got, wanted, strict=True))
    return [difference for difference in found if difference is not None]


def _kinds(path: str, got: Any, wanted: Any) -> Difference:
    return Difference(path, 1, 0, np.inf, np.inf, (), got, wanted)


def _largest(array: Any) -> float:
    """The largest finite number in an array of floats, 0 without one."""
    x = np.asarray(array)
    if not (x.dtype.kind in "fc" or is_extended(x.dtype)):
        return 0.0
    wide = np.abs(_wide(x))
    return float(np.max(wide, where=np.isfinite(wide), initial=0.0))


def _one(
    path: str, got: Any, wanted: Any, tolerance: float | None, floor: float
) -> Difference | None:
    try:
        a, b = np.asarray(got), np.asarray(wanted)
    except (TypeError, ValueError):
        return None if got is wanted or got == wanted else _kinds(path, got, wanted)
    if a.shape != b.shape:
        return _kinds(path, f"shape {a.shape}", f"shape {b.shape}")
    if not all(d.kind in "biufc" or is_extended(d) for d in (a.dtype, b.dtype)):
        return None if np.array_equal(a, b) else _kinds(path, got, wanted)
    near = _nearness(a, b) if tolerance is None else tolerance
    x, y = _wide(a), _wide(b)
    scale = _largest(b) if b.dtype.kind not in "biu" else 0.0
    left = 0.0 if tolerance is not None else near * floor * _CANCELLED / _ROUNDING
    with np.errstate(all="ignore"):
        same = np.isclose(x, y, rtol=near, atol=near * scale + left, equal_nan=True)
        if same.all():
            return None
        gap = np.where(x == y, 0, np.abs(x - y))
    gap = np.where(np.isnan(gap), np.inf, gap)
    gap[same] = 0
    at = np.unravel_index(int(np.argmin(same)), a.shape)
    with np.errstate(all="ignore"):
        ulps = np.max(gap / _spacing(b, y), initial=0.0, where=~same)
    place = tuple(map(int, at))
    count = int((~same).sum())
    return Difference(path, count, a.size, float(gap.max()), float(ulps), place, a[at], b[at])


def _wide(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return a.astype(np.complex128 if is_complex(a.dtype) else np.float64)


def _nearness(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    """What rounding may come to: of the coarser of two dtypes."""
    eps = [_eps(x.dtype) for x in (a, b) if x.dtype.kind not in "biu"]
    return _ROUNDING * max(eps) if eps else 0.0


def _eps(dtype: np.dtype[Any]) -> float:
    if (
        is_extended(dtype) or dtype == np.float16
    ):  # few bits: what is large is no rounding of theirs
        return (2.0**-10 if dtype == np.float16 else 2.0**-7) / _ROUNDING * 8
    return float(np.finfo(dtype).eps)


def _spacing(b: np.ndarray[Any, Any], wide: np.ndarray[Any, Any]) -> Any:
    """A unit of the last place."""
    if b.dtype.kind in "biu":
        return 1.0
    eps = 2.0**-8 if is_extended(b.dtype) else float(np.finfo(b.dtype).eps)
    return np.maximum(np.abs(wide) * eps, np.finfo(np.float64).tiny)
