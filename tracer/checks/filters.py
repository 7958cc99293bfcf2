"""`jt.filters`: which values `jt.capture` keeps, by what is in them.

>>> has_inf_or_nan(np.array([1.0, np.inf]))
True
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.types import is_inexact


def has_nan(value: Any) -> bool:
    """Whether an element is NaN.

    >>> has_nan(np.array([1.0, np.nan]))
    True
    """
    array = np.asarray(value)
    return is_inexact(array.dtype) and bool(np.isnan(array).any())


def has_inf(value: Any) -> bool:
    """Whether an element is infinite.

    >>> has_inf(np.array([1.0, np.nan]))
    False
    """
    array = np.asarray(value)
    return is_inexact(array.dtype) and bool(np.isinf(array).any())


def has_inf_or_nan(value: Any) -> bool:
    """Whether an element is no finite number.

    >>> has_inf_or_nan(np.array([1, 2]))
    False
    """
    return has_nan(value) or has_inf(value)
