"""What formulas for SciPy's functions share: what they leave to SciPy, its checks, and its switch for
arrays of other libraries."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ....ir.surface import ensure
from ...arrays.common import array, check_values
from ...arrays.table import FUNCTIONS
from ..iteration import float_

FINITE = "array must not contain infs or NaNs"
Formula = Callable[..., Any]


class Unfit(Exception):
    """SciPy's own function has to be asked."""


def unless(*options: Any) -> None:
    """The formula does not know what any of these asks for."""
    if any(options):
        raise Unfit


def ours(name: str) -> Formula:
    def call(*args: Any, **kwargs: Any) -> Any:
        ensure(name.split(".")[0])
        return FUNCTIONS[name](*args, **kwargs)

    return call


def finite(a: Any, check: bool = True) -> Any:
    """As SciPy's checks, at the call."""
    a = array(a)
    if a.dtype.kind not in "fc":
        a = a.astype(np.float64)
    if check:
        check_values(np.isfinite(a).all(), FINITE, ValueError)
    return a


def blas_norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """`scipy.linalg.norm`: that of a vector is a float of Python's, as BLAS gives it."""
    norm = np.linalg.norm(a, ord, axis, keepdims)
    by_blas = a.ndim == 1 and a.size and axis is None and not keepdims and ord in (None, 2)
    return float_(norm) if by_blas and a.dtype.kind in "fc" else norm


class _Switch:
    """What SciPy asks whether arrays need be NumPy's, once its modules are there: what it was set to; in
    calls with traced values, of the thread that traces, they need not."""

    def __init__(self, outside: Any) -> None:
        self.outside = outside
        self.thread = threading.local()

    def __bool__(self) -> bool:
        return bool(self.outside) or getattr(self.thread, "on", False)


@contextlib.contextmanager
def any_arrays() -> Iterator[None]:
    """SciPy's functions take arrays of any library, as with SCIPY_ARRAY_API=1, if it has that switch."""
    module = sys.modules.get("scipy._lib._array_api")
    asking = getattr(getattr(module, "array_namespace", None), "__globals__", {})
    switch = asking.get("SCIPY_ARRAY_API")
    if switch is None:
        yield
        return
    if not isinstance(switch, _Switch):
        switch = asking["SCIPY_ARRAY_API"] = _Switch(switch)
    _let_nans_through(switch)
    before, switch.thread.on = getattr(switch.thread, "on", False), True
    try:
        yield
    finally:
        switch.thread.on = before


def _let_nans_through(switch: _Switch) -> None:
    """SciPy 1.18 looks for NaN in what its statistics are given, in JAX's arrays excepted, whose values
    are not known: so it goes with traced values (before, with all arrays but NumPy's)."""
    policy: Any = sys.modules.get("scipy.stats._axis_nan_policy")
    is_jax = getattr(policy, "is_jax", None)
    if is_jax is not None and not hasattr(is_jax, "switch"):

        def is_lazy(xp: Any) -> bool:
            return getattr(switch.thread, "on", False) or is_jax(xp)

        setattr(is_lazy, "switch", switch)  # noqa: B010
        policy.is_jax = is_lazy
