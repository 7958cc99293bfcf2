"""Lowering of sort and argsort: elements are encoded as unsigned keys, sorted as such, and decoded.

Encoding and decoding are stages like any other, so they fuse with what makes and uses the elements:

    kind     element                                          key
    value    the number, order-preserving, unsigned           all of it
    float    as value; -0.0 and 0.0 have neighbouring codes   the same for both zeros
    packed   (key << 32) | position, for argsort              its upper half: 8, 16 or 32 bits of it
    indices  the number; sorted are indices (`cpu_payload`)   all of it, of 8 bytes
    pairs    position, key: two int64, where there is no such  the second
"""

from __future__ import annotations

import numpy as np

from ....ir.graph import Op
from ....ir.types import BOOL, I64
from ...loop_ir.index import ZERO, Index, Var, of_var
from ...loop_ir.kernel import Array, Stage
from ...loop_ir.steps import Sort, TrueIndices
from ...lowering.lower import Lowering, indices, lowering, variables
from ...lowering.pointwise import index_value
from ...scalar import DType, Expr, binary, bitcast, const, convert, ne, select
from ...schedule.sort_blocks import U32, index_bits

LONG = 1 << 14  # elements of a row from which a part of it is selected, not sorted
U8, U64 = np.dtype(np.uint8), np.dtype(np.uint64)


@lowering("sort", "argsort")
def _sort(low: Lowering, op: Op) -> None:
    source, axis = op.operands[0], op.attrs["axis"]
    order = [d for d in range(len(source.shape)) if d != axis] + [axis]
    shape = tuple(source.shape[d] for d in order)
    dims = variables(shape)
    where = dict(zip(order, indices(dims), strict=True))
    own = tuple(where[d] for d in range(len(order)))
    code = code_dtype(source.dtype)
    kind = "value" if source.dtype.kind != "f" else "float"
    if op.name == "argsort":
        long_kind = "indices" if low.context.packs_indices and shape[-1] > 1 else "pairs"
        kind = "packed" if code.itemsize <= 4 else long_kind
    element = U64 if op.name == "argsort" else code
    whole = (*shape, 2) if kind == "pairs" else shape
    keys, ordered = (Array(whole, element, name=name) for name in ("keys", "sorted"))
    at = indices(dims)
    p = low.point()
    value = p.at(source, own)
    if op.name == "argsort":
        key = encode(value + 0.0 if value.dtype.kind == "f" else value)
        position = convert(index_value(at[-1]), U64)
        if kind == "indices":
            low.emit(p, Stage(keys, dims, key, ops=[op.name], loc=op.loc))
        elif kind == "packed":
            key = (convert(key, U64) << 32) | position
            low.emit(p, Stage(keys, dims, key, ops=[op.name], loc=op.loc))
        else:
            for half, part in enumerate((position, key)):
                target_at = (*at, Index(half))
                stage = Stage(
                    keys, dims, part, index=target_at, ops=[op.name], loc=op.loc, whole=False
                )
                low.emit(p, stage)
    else:
        low.emit(p, Stage(keys, dims, encode(value), ops=[op.name], loc=op.loc))
    bits = 8 * code.itemsize
    window = None
    if kind in ("value", "float", "packed") or (kind == "pairs" and low.context.selects_pairs):
        window = _window(low, op)
    first = 0
    if keys.size:
        counts = Array((0,), U32, name="counts")
        step = Sort(keys, ordered, keys, counts, kind, bits, op.loc, window)
        steps, ordered, first = low.context.sort(step)
        low.items += steps
    array = low.array_for(op.result)
    p = low.point()
    if window is not None:  # decode no more than this
        dims = (*dims[:-1], Var("i", window[1] - window[0]))
        where[axis] = of_var(dims[-1]) + window[0]
        own = tuple(where[d] for d in range(len(order)))
        at = (*(where[d] for d in order[:-1]), where[axis] - first)
    if op.name == "sort":
        result = decode(p.load(ordered, at, None), source.dtype)
    elif kind in ("packed", "indices"):
        mask = 0xFFFFFFFF if kind == "packed" else (1 << index_bits(shape[-1])) - 1
        result = convert(binary("and", p.load(ordered, at, None), mask), I64)
    else:
        result = convert(p.load(ordered, (*at, ZERO), None), I64)
    stage = Stage(array, dims, result, index=own, ops=["copy"], loc=op.loc)
    stage.whole = window is None
    low.emit(p, stage)
    low.arrays[op.result] = array


def _window(low: Lowering, op: Op) -> tuple[int, int] | None:
    """The part of each sorted row that anything reads, if it is small: sort(x)[-k:], a median."""
    axis = op.attrs["axis"]
    n = op.result.shape[axis]
    users = low.users[op.result]
    if (
        n < LONG
        or op.operands[0].dtype.itemsize == 1
        or op.result in low.outputs
        or any(user.name != "slice" for user in users)
    ):
        return None
    start = min((user.attrs["start"][axis] for user in users), default=0)
    stop = max((user.attrs["stop"][axis] for user in users), default=0)
    return (start, stop) if 0 < 4 * (stop - start) <= n else None


@lowering("true_indices")
def _true_indices(low: Lowering, op: Op) -> None:
    (source,) = op.operands
    mask, target = Array(source.shape, source.dtype, name="mask"), low.array_for(op.result)
    if target.size:
        dims = variables(source.shape)
        p = low.point()
        low.emit(p, Stage(mask, dims, p.at(source, indices(dims)), ops=[op.name], loc=op.loc))
        low.items.append(TrueIndices(mask, target, op.attrs["classes"], op.loc))
    low.arrays[op.result] = target


def code_dtype(dtype: DType) -> DType:
    """The unsigned integers that elements are encoded as."""
    return U8 if dtype == BOOL else np.dtype(f"u{dtype.itemsize}")


def _sign(code: DType) -> int:
    return 1 << (8 * code.itemsize - 1)


def encode(x: Expr) -> Expr:
    """An unsigned integer that is larger the later `x` sorts; the largest of all for NaN."""
    code = code_dtype(x.dtype)
    if x.dtype.kind in "bu":
        return convert(x, code)
    bits = bitcast(x, code)
    sign = const(_sign(code), code)
    if x.dtype.kind == "i":
        return bits ^ sign
    ones = const(2 * _sign(code) - 1, code)
    key = bits ^ select(bits >= sign, ones, sign)
    return select(ne(x, x), ones, key)


def decode(key: Expr, dtype: DType) -> Expr:
    """The element of `dtype` that was encoded."""
    code = key.dtype
    if dtype.kind in "bu":
        return convert(key, dtype)
    sign = const(_sign(code), code)
    if dtype.kind == "i":
        return bitcast(key ^ sign, dtype)
    ones = const(2 * _sign(code) - 1, code)
    return bitcast(key ^ select(key >= sign, sign, ones), dtype)
