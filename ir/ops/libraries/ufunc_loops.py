"""ufunc_loop: an elementwise ufunc of another package, computed by its own compiled loop.

    ufunc_loop(x, y; ufunc="scipy.special._ufuncs:jv", types="dd->d")

Operands have one shape and the dtypes that the loop takes; so have the results. There is no derivative:
nobody here knows the function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...opdef import GraphError, OpDef, register
from ...types import TensorType
from ..families import Array, check_arity
from .library import LibraryLoop, batch_checked


def _loop(types: Sequence[TensorType], attributes: Mapping[str, Any]) -> LibraryLoop:
    module, name = attributes["ufunc"].split(":")
    codes = attributes["types"]
    return LibraryLoop(module, name, codes, (), ((),) * (len(codes) - 2))


def _infer(*operands: TensorType, ufunc: str, types: str) -> Any:
    operand_codes, made = types.split("->")
    check_arity(operands, len(operand_codes))
    for operand, code in zip(operands, operand_codes, strict=True):
        if operand.shape != operands[0].shape or operand.dtype != np.dtype(code):
            raise GraphError(f"operand {operand} where {ufunc} takes {types} of one shape")
    results = tuple(TensorType(operands[0].shape, np.dtype(code)) for code in made)
    return results if len(results) > 1 else results[0]


def _evaluate(*arrays: Array, ufunc: str, types: str) -> Any:
    operand_types = [TensorType(a.shape, a.dtype) for a in arrays]
    made = _infer(*operand_types, ufunc=ufunc, types=types)
    results = made if isinstance(made, tuple) else (made,)
    outputs = _loop(operand_types, {"ufunc": ufunc, "types": types}).evaluate(arrays, results)
    return outputs if len(outputs) > 1 else outputs[0]


register(
    OpDef(
        "ufunc_loop",
        "library",
        _infer,
        _evaluate,
        batch=batch_checked,
        dtypes="biuf",
        attrs=("ufunc", "types"),
        doc="a ufunc of another package, by its own loop",
        extra={"loop": _loop, "examples": ()},
    )
)
