"""Where operands and results of attention lie, as matrices in arrays.

Floats of 16 bits are float32 to the graph, `widen`ed from their bits, and `narrow`ed to them: kernels
read and write the bits themselves.
"""

from __future__ import annotations

from ....ir.graph import Value
from ....ir.types import F32, F64, dtype_name
from ...loop_ir.index import Index, contiguous_strides, linear
from ...loop_ir.kernel import Array
from ...lowering.lower import Lowering, indices, variables
from ...lowering.pointwise import reshaped
from ..matmul.lower_contraction import strided_view
from .cuda_plan import SMALL, Matrices

ELEMENTS = {F32: "f32", F64: "f64"}
Window = tuple[Array, tuple[int, ...], int]


def element_of(value: Value) -> str:
    """What an operand's elements are in memory."""
    op = value.op
    if op is not None and op.name == "widen" and dtype_name(op.attrs["dtype"]) in SMALL:
        return dtype_name(op.attrs["dtype"])
    return ELEMENTS[value.dtype]


def matrices(low: Lowering, value: Value, element: str) -> Matrices:
    """Where matrices of `element`s lie: their own memory, however strided, or a copy."""
    array, (*batch, row, column), offset = _window(low, value, element)
    return Matrices(array, tuple(batch), row, column, offset)


def vectors(low: Lowering, value: Value) -> Matrices:
    """Where vectors [*batch, rows] lie, as matrices whose columns are all the same element."""
    array, (*batch, row), offset = _window(low, value, "")
    return Matrices(array, tuple(batch), row, 0, offset)


def rows_of(array: Array) -> Matrices:
    """A whole array of one element per row."""
    strides = contiguous_strides(array.shape)
    return Matrices(array, strides[:-1], 1, 0)


def _window(low: Lowering, value: Value, element: str) -> Window:
    if element in SMALL:
        assert value.op is not None, "what has such elements is widened"
        value = value.op.operands[0]
    strided = strided_view(low, value)
    if strided is None:
        low.materialise(value)
        strided = strided_view(low, value)
    assert strided is not None, "a view of what has memory is a window of it"
    return strided


def result(low: Lowering, value: Value, element: str) -> Matrices:
    """Memory for a result: of what it is narrowed to, if those are `element`s and all that reads it."""
    dims = variables(value.shape)
    narrow, position = _narrowed(low, value, indices(dims), element)
    if narrow is None:
        array, dims, index = low.destination(value)
        flat = linear(index, array.strides)
    else:
        array, own, index = low.destination(narrow)
        flat = linear(index, array.strides).substitute(dict(zip(own, position, strict=True)))
    *batch, row, column = (flat.coeff(v) for v in dims)
    return Matrices(array, tuple(batch), row, column, flat.const)


def _narrowed(
    low: Lowering, value: Value, position: tuple[Index, ...], element: str
) -> tuple[Value | None, tuple[Index, ...]]:
    """What becomes of a result's elements, and where an element is in it."""
    while element in SMALL and value not in low.outputs and len(low.users[value]) == 1:
        (op,) = low.users[value]
        match op.name:
            case "transpose":
                position = tuple(position[d] for d in op.attrs["perm"])
            case "reshape":
                position = reshaped(position, value.shape, op.result.shape)
            case "narrow" if dtype_name(op.attrs["dtype"]) == element:
                affine = all(i.affine for i in position)
                return (op.result if affine else None), position
            case _:
                break
        value = op.result
    return None, position
