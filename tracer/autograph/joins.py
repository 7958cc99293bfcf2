"""`np.r_[...]` and `np.c_[...]` of traced values."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..functions.common import array
from ..functions.table import FUNCTIONS

JOINS = {id(np.r_): False, id(np.c_): True}  # whether rows become columns


def join(joiner: Any, index: Any) -> Any:
    """`joiner[index]`; None for what only NumPy's own knows (directives such as `np.r_['0,2', a]`)."""
    columns = JOINS[id(joiner)]
    items = index if isinstance(index, tuple) else (index,)
    if any(isinstance(item, (str, np.matrix)) for item in items):
        return None
    parts = []
    for item in items:
        if isinstance(item, slice):
            item = np.r_[item]
        part = array(item)
        if part.ndim == 0:
            part = part.reshape(1)
        if columns and part.ndim == 1:
            part = part.reshape(-1, 1)
        parts.append(part)
    return FUNCTIONS["concatenate"](parts, axis=-1 if columns else 0)
