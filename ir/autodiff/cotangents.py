"""How cotangents add up: parts of which most elements are zeros touch only the others."""

from __future__ import annotations

from collections.abc import Sequence

from ..build import Builder
from ..graph import Op, Value, unspread

FEW = 16  # the part of an array from which its elements are not few


def is_zero(v: Value) -> bool:
    """Whether `v` is visibly a constant of zeros."""
    op = unspread(v).op
    return op is not None and op.name == "constant" and not op.attrs["value"].any()


def total(b: Builder, parts: Sequence[Value]) -> Value | None:
    """The sum of all parts of one cotangent, None if there are none.

    Beside whole ones, those of few elements come last, and touch only these: the derivative of elements
    that are assigned one by one costs an element each. (Others are padded: such sums are fused.)
    """
    few = {part for part in parts if _few_elements(part) is not None}
    if few.issuperset(parts):
        few = set()
    result: Value | None = None
    for part in sorted(parts, key=few.__contains__):
        if result is None:
            result = part
        else:
            result = accumulate(b, result, part) if part in few else b.add(result, part)
    return result


def accumulate(b: Builder, total: Value, part: Value) -> Value:
    """`total + part`, where a `part` that is zeros but for some elements touches only these.

    So the gradient of an array of which each iteration reads one row costs a row per iteration. A
    total that starts from 0.0 is never -0.0, so adding zeros to it changes nothing.
    """
    op = part.op
    if op is None:
        return b.op("add", total, part)
    if is_zero(part):
        return total
    if op.name == "add":
        return accumulate(b, accumulate(b, total, op.operands[0]), op.operands[1])
    if op.name == "dynamic_update_slice" and is_zero(op.operands[0]):
        _, u, *starts = op.operands
        old = b.op("dynamic_slice", total, *starts, sizes=u.shape)
        return b.op("dynamic_update_slice", total, b.op("add", old, u), *starts)
    if op.name == "scatter" and op.attrs["combine"] == "add" and is_zero(op.operands[0]):
        return b.op("scatter", total, *op.operands[1:], **op.attrs)
    pad = _few_elements(part)
    if pad is not None:
        u, low = pad.operands[0], pad.attrs["low"]
        step = tuple([gap + 1 for gap in pad.attrs["interior"]])
        ends = zip(low, u.shape, step, strict=True)
        stop = tuple([first + (n - 1) * by + 1 for first, n, by in ends])
        old = b.op("slice", total, start=low, stop=stop, step=step)
        return b.op("update_slice", total, b.op("add", old, u), start=low, step=step)
    return b.op("add", total, part)


def _few_elements(part: Value) -> Op | None:
    """The op that puts a few elements among zeros, if that is what a part is."""
    op = part.op
    if op is None or op.name != "pad" or not is_zero(op.operands[1]):
        return None
    inside = all(n >= 0 for n in (*op.attrs["low"], *op.attrs["high"]))
    return op if inside and 0 < FEW * op.operands[0].tensor.size <= part.tensor.size else None
