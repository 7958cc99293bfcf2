"""Updates of a part of a value, put back into the value: one update of the value. Rules are exact.

    before: p = part(x); q = update p ...; y = x with q instead of p
    after:  y = update x ...

A part is what a view is: a slice, a window, the element of some axes, or all of it in another order or
shape. What is updated is a window of it: what the update costs does not depend on the size of the part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...graph import Op, Value
from ...opdef import OPS
from ...types import I64
from .rewrite import Replacement, Rewriter, Rule, on

Ints = tuple[int, ...]
_UPDATES = tuple(name for name, definition in OPS.items() if definition.updates)


class _UpdateWindow(NamedTuple):
    """`new` is written where it begins, at `starts`: it fits there."""

    new: Value
    starts: tuple[Value, ...]


def _window(b: Rewriter, op: Op) -> _UpdateWindow | None:
    """What an update writes, if it is a window."""
    x, new, *starts = op.operands
    if 0 in (*x.shape, *new.shape):
        return None
    if op.name == "update_slice":
        if any(s != 1 and n != 1 for s, n in zip(op.attrs["step"], new.shape, strict=True)):
            return None
        return _UpdateWindow(new, tuple([b.const(k, I64) for k in op.attrs["start"]]))
    if op.name == "dynamic_update_slice":
        sizes = zip(starts, x.shape, new.shape, strict=True)
        return _UpdateWindow(new, tuple([_clamped(b, at, n - size) for at, n, size in sizes]))
    if op.attrs["combine"] != "set" or starts[0].shape or _forced(op, x):
        return None
    return _UpdateWindow(b.reshape(new, shape=_cut(x.shape, op)), _starts(b, op, x, starts))


def _forced(op: Op, x: Value) -> bool:
    """Whether an index is of an axis of size 1: windows have one position there, none is checked."""
    return op.attrs["mode"] == "check" and any(x.shape[d] == 1 for d in op.attrs["axes"])


def _clamped(b: Rewriter, at: Value, last: int) -> Value:
    return b.minimum(b.maximum(at, b.const(0, I64)), b.const(last, I64))


def _cut(shape: Ints, op: Op) -> Ints:
    """The part of x that a gather or scatter with 0-d indices names, with axes of size 1."""
    return tuple([1 if d in op.attrs["axes"] else n for d, n in enumerate(shape)])


def _starts(b: Rewriter, op: Op, x: Value, indices: Sequence[Value]) -> tuple[Value, ...]:
    """Where that part begins: an index names one of 0, 1, ... n - 1, by the rules of its mode."""
    axes, mode, names = op.attrs["axes"], op.attrs["mode"], op.attrs.get("names", ())
    starts = [b.const(0, I64)] * len(x.shape)
    for k, (axis, index) in enumerate(zip(axes, indices, strict=True)):
        named = names[k - len(axes) :][:1] if k >= len(axes) - len(names) else ()
        options = {"mode": mode, "names": named} if mode == "check" else {"mode": mode}
        numbers = b.iota(shape=(x.shape[axis],), dtype=I64, axis=0)
        starts[axis] = b.gather(numbers, index, axes=(0,), **options)
    return tuple(starts)


def _whole(b: Rewriter, op: Op) -> Replacement:
    """`op` puts a part of x, updated, back where it was."""
    at = 1 if op.definition.updates else 0
    updated = op.operands[at].op
    if updated is None or not updated.definition.updates:
        return None
    part = updated.operands[0].op
    if part is None or not part.operands or part.operands[0].type != op.results[0].type:
        return None
    x = part.operands[0]
    if at and x is not op.operands[0]:
        return None
    how = _PARTS.get((op.name, part.name))
    if how is None or not _belong(op, part):
        return None
    window = _window(b, updated)
    update = how(b, part, x, window) if window is not None else None
    return None if update is None else b.dynamic_update_slice(x, update.new, *update.starts)


def _belong(op: Op, part: Op) -> bool:
    """Whether `op` puts back what `part` takes."""
    if op.name == "transpose":
        return all(part.attrs["perm"][p] == d for d, p in enumerate(op.attrs["perm"]))
    if op.name == "flip":
        return bool(op.attrs["axes"] == part.attrs["axes"])
    if op.name == "update_slice":
        attrs = op.attrs["start"], op.attrs["step"]
        same = attrs == (part.attrs["start"], part.attrs["step"])
        return same and op.operands[1].shape == part.results[0].shape
    if op.name == "reshape":
        return True
    if op.operands[2:] != part.operands[1:]:
        return False
    if op.name == "dynamic_update_slice":
        return op.operands[1].shape == part.results[0].shape
    same = op.attrs["axes"] == part.attrs["axes"] and op.attrs["mode"] == part.attrs["mode"]
    return same and op.attrs["combine"] == "set" and not op.operands[2].shape


# What a window of a part is in x.


def _of_transpose(b: Rewriter, part: Op, x: Value, w: _UpdateWindow) -> _UpdateWindow | None:
    perm = part.attrs["perm"]
    back = tuple(sorted(range(len(perm)), key=perm.__getitem__))
    return _UpdateWindow(b.transpose(w.new, perm=back), tuple([w.starts[d] for d in back]))


def _of_flip(b: Rewriter, part: Op, x: Value, w: _UpdateWindow) -> _UpdateWindow | None:
    starts = list(w.starts)
    for d in part.attrs["axes"]:
        starts[d] = b.sub(b.const(x.shape[d] - w.new.shape[d], I64), starts[d])
    return _UpdateWindow(b.flip(w.new, axes=part.attrs["axes"]), tuple(starts))


def _of_slice(b: Rewriter, part: Op, x: Value, w: _UpdateWindow) -> _UpdateWindow | None:
    start, step = part.attrs["start"], part.attrs["step"]
    if any(s != 1 and n != 1 for s, n in zip(step, w.new.shape, strict=True)):
        return None
    triples = zip(w.starts, start, step, strict=True)
    return _UpdateWindow(
        w.new,
        tuple([b.add(b.mul(at, b.const(s, I64)), b.const(a, I64)) for at, a, s in triples]),
    )


def _of_window(b: Rewriter, part: Op, x: Value, w: _UpdateWindow) -> _UpdateWindow | None:
    _, *corner = part.operands
    sizes = zip(corner, x.shape, part.attrs["sizes"], strict=True)
    first = [_clamped(b, at, n - size) for at, n, size in sizes]
    return _UpdateWindow(w.new, tuple([b.add(a, c) for a, c in zip(w.starts, first, strict=True)]))


def _of_element(b: Rewriter, part: Op, x: Value, w: _UpdateWindow) -> _UpdateWindow | None:
    _, *indices = part.operands
    if _forced(part, x):
        return None
    starts = list(_starts(b, part, x, indices))
    rest = [d for d in range(len(x.shape)) if d not in part.attrs["axes"]]
    sizes = [1] * len(x.shape)
    for d, at, size in zip(rest, w.starts, w.new.shape, strict=True):
        starts[d], sizes[d] = at, size
    return _UpdateWindow(b.reshape(w.new, shape=tuple(sizes)), tuple(starts))


def _of_reshape(b: Rewriter, part: Op, x: Value, w: _UpdateWindow) -> _UpdateWindow | None:
    """One element has a position in every shape; axes of size 1 change no other position."""
    shape = part.results[0].shape
    if math.prod(w.new.shape) == 1:
        flat = b.const(0, I64)
        for at, n in zip(w.starts, shape, strict=True):
            flat = b.add(b.mul(flat, b.const(n, I64)), at)
        starts = []
        for n in reversed(x.shape):
            starts.append(b.remainder(flat, b.const(n, I64)))
            flat = b.floor_divide(flat, b.const(n, I64))
        return _UpdateWindow(b.reshape(w.new, shape=(1,) * len(x.shape)), tuple(reversed(starts)))
    if [n for n in shape if n != 1] != [n for n in x.shape if n != 1]:
        return None
    moved = iter([(a, s) for a, s, n in zip(w.starts, w.new.shape, shape, strict=True) if n != 1])
    dims = [(b.const(0, I64), 1) if n == 1 else next(moved) for n in x.shape]
    sizes = tuple([size for _, size in dims])
    return _UpdateWindow(b.reshape(w.new, shape=sizes), tuple([at for at, _ in dims]))


_PARTS: dict[
    tuple[str, str], Callable[[Rewriter, Op, Value, _UpdateWindow], _UpdateWindow | None]
] = {
    ("transpose", "transpose"): _of_transpose,
    ("flip", "flip"): _of_flip,
    ("reshape", "reshape"): _of_reshape,
    ("update_slice", "slice"): _of_slice,
    ("dynamic_update_slice", "dynamic_slice"): _of_window,
    ("scatter", "gather"): _of_element,
}


def _itself(b: Rewriter, op: Op) -> Replacement:
    """`op` puts a part of x back as it is. An index that may have to be checked has been,
    if it is where x was updated last."""
    x, part = op.operands[0], op.operands[1].op
    if part is None or part.operands[0] is not x or not _belong(op, part):
        return None
    same_operands = not op.operands[2:] or (
        x.op is not None and x.op.operands[2:] == op.operands[2:]
    )
    return x if same_operands else None


def _again(b: Rewriter, op: Op) -> Replacement:
    """The same is written to the same elements twice, as by `x[i] += 1`, whose view is assigned, too."""
    before = op.operands[0].op
    assert before is not None
    same = before.operands[1:] == op.operands[1:] and before.attrs == op.attrs
    return op.operands[0] if same and op.attrs.get("combine", "set") == "set" else None


PARTS: list[Rule] = [
    *(on(op, _whole, of=update) for op in ("transpose", "flip", "reshape") for update in _UPDATES),
    *(on(op, _whole, of=update, at=1) for op in _UPDATES for update in _UPDATES),
    *(on(op, _itself, of=part, at=1) for op, part in _PARTS if op in _UPDATES),
    *(on(op, _again, of=op) for op in _UPDATES),
]
