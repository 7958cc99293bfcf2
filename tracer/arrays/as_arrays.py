"""Functions that make an array of what they are given, with the dtype and the memory order asked for:
`array`, `asarray` and its kin, `copy`, `require`. They copy where NumPy does, and only there."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.types import is_inexact
from ..core.tracers import Tracer, as_value, weak_kind, wrap_like
from ..data.foreign import borrow, is_foreign, offers
from ..data.layout import order_of
from ..data.promotion import DType, canonical
from ..devices.devices import own_device, put
from ..records import functions  # noqa: F401  (those of structured arrays)
from ..records.arrays import Records, of_items
from ..records.kinds import has_fields
from . import ufuncs
from .common import array, check_device, check_values, lies_in
from .python_integers import check_stored
from .table import LAZY, function

LAZY.add(Records)


@function("array", creates=True)
def array_(
    object: Any,
    dtype: Any = None,
    *,
    copy: bool | None = True,
    order: str = "K",
    subok: bool = False,
    ndmin: int = 0,
    ndmax: int = 0,
    like: Any = None,
) -> Tracer:
    x = _in_order(object, dtype, order_of(order, "K"), copy)
    return x.reshape((1,) * (ndmin - x.ndim) + x.shape) if ndmin > x.ndim else x


def _in_order(a: Any, dtype: Any, order: str, copy: bool | None) -> Any:
    """`a` as an array: itself, if it is one of that dtype and lies in that order, or a copy."""
    if dtype is not None and has_fields(np.dtype(dtype)):
        return of_items(a, np.dtype(dtype))
    if dtype is not None:
        _check_fits(a, canonical(dtype))
    x = array(a, dtype)
    if dtype is not None:
        x = x.astype(dtype, copy=False)
    lies = order == "A" or lies_in(x, order)  # only `astype` asks more of order A
    if copy or x is not a or x.scalar or not lies:
        if copy is False:
            raise ValueError("Unable to avoid copy while creating an array as requested.")
        return wrap_like(as_value(x), (x,), scalar=False, order=order, copy=True)
    return x


def _check_fits(a: Any, dtype: DType) -> None:
    """Have the compiled function raise where a number, or one in a list, does not fit into `dtype`. A
    scalar of NumPy's that is in no list is cast."""
    if isinstance(a, (list, tuple)):
        for item in a:
            if isinstance(item, (list, tuple)):
                _check_fits(item, dtype)
            else:
                check_stored(item, dtype)
    elif weak_kind(a) is not None:
        check_stored(a, dtype)


def _asarray(
    a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None
) -> Any:
    if is_foreign(a):
        there = put(a, own_device(a))
        there = there if dtype is None else there.astype(dtype)
        return there.client.copy(there) if copy else there
    if offers(a, "__dlpack__"):  # of a library that may know nothing of NumPy
        borrowed = borrow(a)
        a = a if borrowed is None else borrowed
    return np.asarray(a, dtype, order, device=device, copy=copy)


_asarray.__doc__ = np.asarray.__doc__


@function("asarray", reference=_asarray, creates=True)
def asarray(
    a: Any,
    dtype: Any = None,
    order: Any = None,
    *,
    device: Any = None,
    copy: Any = None,
    like: Any = None,
) -> Tracer:
    check_device("asarray", device)
    return _in_order(a, dtype, order_of(order, "K"), copy)


function("asanyarray", creates=True)(asarray)


@function("asarray_chkfinite", creates=True)
def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Tracer:
    x = asarray(a, dtype, order)
    if is_inexact(x.dtype):
        finite = ufuncs.apply(np.isfinite, x).all()
        check_values(finite, "array must not contain infs or NaNs")
    return x


def _contiguous(name: str, order: str) -> None:
    def traced(a: Any, dtype: Any = None, *, like: Any = None) -> Tracer:
        """Never without a dim."""
        x = _in_order(a, dtype, order, None)
        return x if x.ndim else x.reshape(1)

    function(name, creates=True)(traced)


_contiguous("ascontiguousarray", "C")
_contiguous("asfortranarray", "F")


_FLAGS = {
    **{
        name: name[0]
        for name in ("C", "C_CONTIGUOUS", "CONTIGUOUS", "F", "F_CONTIGUOUS", "FORTRAN")
    },
    **{name: name[0] for name in ("A", "ALIGNED", "W", "WRITEABLE", "O", "OWNDATA")},
    **dict.fromkeys(("E", "ENSUREARRAY"), "E"),
}


@function("require", creates=True)
def require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> Tracer:
    wanted = {_FLAGS[str(flag).upper()] for flag in requirements or ()}
    if wanted >= {"C", "F"}:
        raise ValueError('Cannot specify both "C" and "F" order')
    order = next(iter(wanted & {"C", "F"}), "A" if wanted else "K")
    x = _in_order(a, dtype, order, None)
    lacks = ("O" in wanted and not x.flags.owndata) or ("W" in wanted and not x.writeable)
    return x.copy(order) if lacks else x


@function("copy")
def copy(a: Any, order: str = "K", subok: bool = False) -> Tracer:
    return _in_order(a, None, order_of(order, "K"), True)


@function("astype")
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tracer:
    return array(x).astype(dtype, copy=copy)
