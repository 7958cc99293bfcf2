"""The branch not taken contributes nothing: how derivatives carry the masks of `select`.

For `where(x > 0, sqrt(x), 0)` the cotangent that reaches `sqrt` is `select(x > 0, ct, 0)`. Times
the local derivative it would be 0 * inf = NaN at x = 0. The exact rule, for both directions:

    A tangent or cotangent `t` has a *support*: a mask outside of which it is known to be exactly 0.

      support(select(m, a, 0))        =  m and support(a)
      support(select(m, 0, a))        =  not m and support(a)
      support(a + b), support(a - b)  =  support(a) or support(b)
      support(-a), support(convert a) =  support(a), as those of conj, real and imag
      support(movement or gather(a))  =  the same movement of support(a)
      support(pad, concat, update)    =  the same op on the supports of its parts
      support(scatter-add(a, u))      =  where support(a) or a position that support(u) goes to
      support(sum(a, axes))           =  any(support(a), axes)
      anything else                   :  unknown, nothing is masked

    The product of `t` with a local derivative `p` is `select(support(t), t * p, 0)` where the
    support is known, and `t * p` where it is not.

A `cond` says, as results, which branches give zeros: a `select` behind it (`control/structured.py`).

So a gradient through `where(m, f(x), y)` equals that of the double-where form
`where(m, f(where(m, x, safe)), y)`, whatever elementwise and movement ops `f` is made of, nested
`where`s included. Products inside a contraction (`dot`) are not masked. In the product `t` stands
without its own mask, so that a chain of n elementwise ops ends with one select, not n.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..autodiff.cotangents import is_zero, unspread
from ..build import Builder
from ..graph import Op, Value
from ..types import I32
from .term import Term


def product(
    b: Builder, t: Value, partial: Callable[..., Term], z: Value, operands: Sequence[Value]
) -> Value:
    """The tangent or cotangent `t` times a local derivative, exactly 0 outside of t's support."""
    mask = support(b, t)
    inner = t if mask is None else _unmasked(t)
    out = partial(Term(b, inner), Term(b, z), *(Term(b, v) for v in operands)).value
    return out if mask is None else b.op("select", mask, out, b.full_like(out, 0))


def support(b: Builder, t: Value) -> Value | None:
    """A bool mask outside of which `t` is exactly 0, or None if none is known."""
    supports = b.supports
    pending = [t]
    while pending:  # a stack, because chains of sums may be longer than Python's own
        v = pending[-1]
        parts = [] if v in supports else [p for p in _parts(v) if p not in supports]
        if parts:
            pending.extend(parts)
            continue
        if v not in supports:
            supports[v] = _combine(b, v)
        pending.pop()
    return supports[t]


def alive(b: Builder, t: Value) -> Value | None:
    """A 0-d bool: where it is false, all of `t` is exactly 0. None if nothing is known."""
    if is_zero(t):
        return b.full((), False, bool)
    mask = support(b, t)
    if mask is None:
        return None
    mask = unspread(mask)
    return None if mask.shape else mask


def _unmasked(t: Value) -> Value:
    """`a` of `select(m, a, 0)` or `select(m, 0, a)`."""
    if t.op is not None and t.op.name == "select":
        _, x, y = t.op.operands
        if is_zero(y):
            return x
        if is_zero(x):
            return y
    return t


_SAME = ("neg", "convert", "conj", "real", "imag")
_SUMS = ("add", "sub")
# How many operands are values, of what moves these.
_MOVED = {"gather": 1, "dynamic_slice": 1, "pad": 2, "update_slice": 2, "dynamic_update_slice": 2}


def _parts(v: Value) -> Sequence[Value]:
    """The values whose supports decide about v's."""
    op = v.op
    if op is None or is_zero(v):
        return ()
    if op.name == "select":
        _, x, y = op.operands
        return (x,) if is_zero(y) else (y,) if is_zero(x) else ()
    if op.name in _SAME or op.definition.view or op.name == "sum":
        return op.operands[:1]
    if op.name in _SUMS or op.name == "concat":
        return op.operands
    if op.name == "scatter" and op.attrs["combine"] == "add":
        return op.operands[:2]
    return op.operands[: _MOVED.get(op.name, 0)]


def _combine(b: Builder, v: Value) -> Value | None:
    parts = _parts(v)
    if not parts:
        return None
    op = v.op
    assert op is not None
    masks = [b.supports[p] for p in parts]
    if op.name == "select":
        return _of_select(b, op, masks[0])
    if op.name in _SUMS:
        left, right = masks
        if left is None or right is None:
            return None
        return left if left is right else b.op("bitwise_or", left, right)
    if all(m is None for m in masks):
        return None
    if op.name in _SAME:
        return masks[0]
    joined = [_support(b, p, m) for p, m in zip(parts, masks, strict=True)]
    if op.name == "sum":
        return b.op("any", *joined, **op.attrs)
    if op.name == "scatter":  # counts, because bools do not add
        joined = [b.op("convert", m, dtype=I32) for m in joined]
        counts = b.op("scatter", *joined, *op.operands[2:], **op.attrs)
        return b.op("ne", counts, b.full_like(counts, 0))
    return b.op(op.name, *joined, *op.operands[len(parts) :], **op.attrs)


def _of_select(b: Builder, op: Op, inner: Value | None) -> Value:
    mask, _, y = op.operands
    if not is_zero(y):
        mask = b.op("invert", mask)
    return mask if inner is None else b.op("bitwise_and", mask, inner)


def _support(b: Builder, part: Value, mask: Value | None) -> Value:
    """The mask of one part of a joint: nowhere if it is zero, everywhere if nothing is known."""
    return mask if mask is not None else b.full(part.shape, not is_zero(part), bool)
