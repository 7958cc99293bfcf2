"""Values that are looked at where they are computed, by code that is watched (`passes.watch`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...batching.transform import batch_elementwise
from ...cost import Cost
from ...opdef import GraphError, OpDef, register
from ...types import TensorType, is_inexact
from ..families import examples

Array = np.ndarray[Any, Any]


def _infer(value: TensorType, *looked: TensorType, kinds: str) -> TensorType:
    if not looked or any(t.shape != value.shape or not is_inexact(t.dtype) for t in looked):
        raise GraphError("needs values to look at, floats of the shape of the first operand")
    if kinds not in ("nan", "inf", "inf nan"):
        raise GraphError(f"kinds={kinds!r}: 'nan', 'inf' or 'inf nan'")
    return value


WATCHED = register(
    OpDef(
        "watched",
        "opaque",
        _infer,
        lambda value, *looked, kinds: value,
        cost=Cost.FREE,
        pointwise=True,
        total=False,
        batch=batch_elementwise,
        dtypes="f",
        attrs=("kinds",),
        doc="the first operand; the program tells where an element of the others is of these kinds",
        extra={"examples": examples((2, 3), (2, 3), kinds="nan")},
    )
)
