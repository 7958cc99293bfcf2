"""Movement: ops that only say where elements go, composed with each other. All rules are exact.

Canonical forms that the rules aim at: as few movement ops as possible; a transpose or broadcast
that only moves or adds axes of size 1 is a reshape; slices and transposes act before broadcasts,
where there is less to move.
"""

from __future__ import annotations

from typing import Any

from ...graph import Op, Value
from .rewrite import Replacement, Rewriter, on, producer, uniform

Ints = tuple[int, ...]
MOST_PARTS = 32  # of a sum that is looked through


def _unchanged(b: Rewriter, op: Op) -> Replacement:
    """The only operand of an op that does nothing because the shapes are equal."""
    x = op.operands[0]
    return x if x.shape == op.results[0].shape else None


def _inner(op: Op) -> Op:
    """The op that produces operand 0, which the rule's anchor has made sure of."""
    inner = op.operands[0].op
    assert inner is not None
    return inner


# reshape


def _reshape_reshape(b: Rewriter, op: Op) -> Replacement:
    return b.reshape(_inner(op).operands[0], shape=op.attrs["shape"])


def _reshape_broadcast(b: Rewriter, op: Op) -> Replacement:
    (x,) = _inner(op).operands
    return b.broadcast(x, shape=op.attrs["shape"], dims=()) if x.shape == () else None


# strided


def _affine(op: Op) -> tuple[Ints, tuple[Ints, ...]]:
    """`start` and `steps` of a view that is one of `strided`'s kind."""
    attrs, shape, rank = op.attrs, op.operands[0].shape, len(op.results[0].shape)
    if op.name == "strided":
        return attrs["start"], attrs["steps"]
    start, factors = [0] * len(shape), [1] * len(shape)
    axes = list(range(len(shape)))  # of the result, for each of the operand's
    match op.name:
        case "transpose":
            axes = [attrs["perm"].index(d) for d in axes]
        case "broadcast":
            axes = list(attrs["dims"])
        case "slice":
            start, factors = list(attrs["start"]), list(attrs["step"])
        case "flip":
            start = [n - 1 if d in attrs["axes"] else 0 for d, n in enumerate(shape)]
            factors = [-1 if d in attrs["axes"] else 1 for d in axes]
    rows = [
        [f if d == axis else 0 for d in range(rank)] for axis, f in zip(axes, factors, strict=True)
    ]
    return tuple(start), tuple(map(tuple, rows))


def _strided_plain(b: Rewriter, op: Op) -> Replacement:
    (x,) = op.operands
    rank = len(x.shape)
    plain = tuple([tuple([int(i == d) for i in range(rank)]) for d in range(rank)])
    same = x.shape == op.results[0].shape and not any(op.attrs["start"])
    return x if same and op.attrs["steps"] == plain else None


def _strided_strided(b: Rewriter, op: Op) -> Replacement:
    """A view of a view, one of which is strided."""
    inner, shape = _inner(op), op.results[0].shape
    (first, between), (start, steps) = _affine(inner), _affine(op)
    rank = range(len(shape))
    rows, starts = [], []
    for at, row in zip(first, between, strict=True):
        starts.append(at + sum([x * a for x, a in zip(row, start, strict=True)]))
        rows.append(tuple([sum([x * m[d] for x, m in zip(row, steps, strict=True)]) for d in rank]))
    x = inner.operands[0]
    return b.strided(x, shape=shape, start=tuple(starts), steps=tuple(rows))


def _pad_broadcast(b: Rewriter, op: Op) -> Replacement:
    """Padded before it is repeated."""
    inner, attrs = _inner(op), op.attrs
    dims = inner.attrs["dims"]
    others = [d for d in range(len(op.results[0].shape)) if d not in dims]
    if any(attrs[name][d] for name in ("low", "high", "interior") for d in others):
        return None
    x, kept = inner.operands[0], {n: tuple([attrs[n][d] for d in dims]) for n in attrs}
    return b.broadcast(b.pad(x, op.operands[1], **kept), shape=op.results[0].shape, dims=dims)


# transpose


def _transpose_plain(b: Rewriter, op: Op) -> Replacement:
    (x,) = op.operands
    perm = op.attrs["perm"]
    moved = [d for d in perm if x.shape[d] != 1]
    if perm == tuple(range(len(perm))):
        return x
    return b.reshape(x, shape=op.results[0].shape) if moved == sorted(moved) else None


def _transpose_transpose(b: Rewriter, op: Op) -> Replacement:
    inner = _inner(op)
    perm = tuple([inner.attrs["perm"][p] for p in op.attrs["perm"]])
    return b.transpose(inner.operands[0], perm=perm)


def _transpose_broadcast(b: Rewriter, op: Op) -> Replacement:
    inner = _inner(op)
    (x,) = inner.operands
    axis_of = {d: j for j, d in enumerate(op.attrs["perm"])}  # broadcast's axis -> result's axis
    axes = [axis_of[d] for d in inner.attrs["dims"]]
    order = tuple(sorted(range(len(axes)), key=axes.__getitem__))
    x = b.transpose(x, perm=order)
    return b.broadcast(x, shape=op.results[0].shape, dims=tuple(sorted(axes)))


# broadcast


def _broadcast_plain(b: Rewriter, op: Op) -> Replacement:
    (x,) = op.operands
    shape, dims = op.attrs["shape"], op.attrs["dims"]
    if x.shape == shape:
        return x
    if all(shape[d] == 1 for d in range(len(shape)) if d not in dims):
        return b.reshape(x, shape=shape)
    return None


def _broadcast_broadcast(b: Rewriter, op: Op) -> Replacement:
    inner = _inner(op)
    dims = tuple([op.attrs["dims"][d] for d in inner.attrs["dims"]])
    return b.broadcast(inner.operands[0], shape=op.attrs["shape"], dims=dims)


def _broadcast_reshape(b: Rewriter, op: Op) -> Replacement:
    """Axes of size 1 that a reshape added before a broadcast need not be there."""
    (x,) = _inner(op).operands
    y = op.operands[0]
    if len(x.shape) >= len(y.shape):
        return None
    axes = [i for i, n in enumerate(y.shape) if n != 1]
    if x.shape != tuple(y.shape[i] for i in axes):
        return None
    return b.broadcast(x, shape=op.attrs["shape"], dims=tuple(op.attrs["dims"][i] for i in axes))


# slice


def _region(op: Op) -> tuple[Ints, Ints, Ints]:
    return op.attrs["start"], op.attrs["stop"], op.attrs["step"]


def _slice_slice(b: Rewriter, op: Op) -> Replacement:
    inner = _inner(op)
    regions = []
    for n, a, s, a0, s0 in zip(
        op.results[0].shape,
        op.attrs["start"],
        op.attrs["step"],
        inner.attrs["start"],
        inner.attrs["step"],
        strict=True,
    ):
        if n == 0:
            regions.append((0, 0, 1))
        else:
            first, step = a0 + a * s0, s * s0
            regions.append((first, first + (n - 1) * step + 1, step))
    return _slice(b, inner.operands[0], regions)


def _slice(b: Rewriter, x: Value, regions: list[tuple[int, int, int]]) -> Value:
    start, stop, step = zip(*regions, strict=True) if regions else ((), (), ())
    value: Value = b.slice(x, start=start, stop=stop, step=step)
    return value


def _slice_broadcast(b: Rewriter, op: Op) -> Replacement:
    inner = _inner(op)
    regions = list(zip(*_region(op), strict=True))
    x = _slice(b, inner.operands[0], [regions[d] for d in inner.attrs["dims"]])
    return b.broadcast(x, shape=op.results[0].shape, dims=inner.attrs["dims"])


def _slice_concat(b: Rewriter, op: Op) -> Replacement:
    """A slice that lies within one of the joined parts."""
    inner = _inner(op)
    axis = inner.attrs["axis"]
    regions = list(zip(*_region(op), strict=True))
    start, stop, step = regions[axis]
    if op.results[0].shape[axis] == 0:
        return None
    offset = 0
    for part in inner.operands:
        size = part.shape[axis]
        if offset <= start < offset + size:
            if stop > offset + size:
                return None
            regions[axis] = (start - offset, stop - offset, step)
            return _slice(b, part, regions)
        offset += size
    return None


def _slice_update(b: Rewriter, op: Op) -> Replacement:
    """Reading exactly what was written, or something that no update of a chain has touched."""
    shape = op.results[0].shape
    start, stop, step = _region(op)
    x, (lo, hi) = _before_updates(b, op.operands[0])
    if any(
        n == 0 or c <= a or a + (n - 1) * s < k
        for n, a, s, k, c in zip(shape, start, step, lo, hi, strict=True)
    ):
        return b.slice(x, start=start, stop=stop, step=step)
    x = op.operands[0]
    last = [a + (n - 1) * s for a, n, s in zip(start, shape, step, strict=True)]
    for _ in range(_UPDATES_BACK):
        inner = producer(x, "update_slice")
        if inner is None:
            break
        u = inner.operands[1]
        at, by = inner.attrs["start"], inner.attrs["step"]
        if _meet(start, last, at, by, u.shape):
            exact = u.shape == shape and all(
                a == w and (n == 1 or s == t)
                for n, a, w, s, t in zip(shape, start, at, step, by, strict=True)
            )
            if exact:
                return u
            return (
                b.slice(x, start=start, stop=stop, step=step) if x is not op.operands[0] else None
            )
        x = inner.operands[0]
    return None  # it is too far to tell: as it stands, the reading comes after all of them


def _meet(start: Ints, last: list[int], at: Ints, by: Ints, sizes: Ints) -> bool:
    """Whether the box from `start` to `last` meets that of an update."""
    for a, z, w, t, k in zip(start, last, at, by, sizes, strict=True):
        if z < w or w + (k - 1) * t < a:
            return False
    return 0 not in sizes


_UPDATES_BACK = 32  # how far a chain of updates is followed, one by one
_Box = tuple[list[int], list[int]]  # lowest and highest position (not included) on each axis


def _before_updates(b: Rewriter, x: Value) -> tuple[Value, _Box]:
    """The value at the root of the chain of updates that made `x`, and a box around their regions."""
    origins: dict[Value, tuple[Value, _Box]] = b.notes.setdefault("updates", {})
    chain: list[Op] = []
    while x not in origins:
        inner = producer(x, "update_slice")
        if inner is None:
            origins[x] = x, (list(x.shape), [0] * len(x.shape))
            break
        chain.append(inner)
        x = inner.operands[0]
    root, (lo, hi) = origins[x]
    for inner in reversed(chain):
        start, step, shape = inner.attrs["start"], inner.attrs["step"], inner.operands[1].shape
        if 0 not in shape:
            lo = [min(k, a) for k, a in zip(lo, start, strict=True)]
            ends = [a + (n - 1) * s + 1 for a, n, s in zip(start, shape, step, strict=True)]
            hi = [max(k, c) for k, c in zip(hi, ends, strict=True)]
        x = inner.results[0]
        origins[x] = root, (lo, hi)
    return root, (lo, hi)


# flip, pad, concat, update_slice, dynamic slices


def _flip_plain(b: Rewriter, op: Op) -> Replacement:
    (x,) = op.operands
    axes = tuple([d for d in op.attrs["axes"] if x.shape[d] > 1])
    if not axes:
        return x
    return b.flip(x, axes=axes) if axes != op.attrs["axes"] else None


def _flip_flip(b: Rewriter, op: Op) -> Replacement:
    inner = _inner(op)
    axes = set(op.attrs["axes"]) ^ set(inner.attrs["axes"])
    return b.flip(inner.operands[0], axes=tuple(sorted(axes)))


def _concat_plain(b: Rewriter, op: Op) -> Replacement:
    """Without its empty parts; a single part stands for itself."""
    axis = op.attrs["axis"]
    parts = [x for x in op.operands if x.shape[axis] != 0] or list(op.operands[:1])
    if len(parts) == len(op.operands) > 1:
        return None
    return b.concat(*parts, axis=axis) if len(parts) > 1 else parts[0]


def _update_plain(b: Rewriter, op: Op) -> Replacement:
    """Writing all of x, or nothing."""
    x, u = op.operands
    if 0 in u.shape:
        return x
    return u if u.shape == x.shape else None


def _update_update(b: Rewriter, op: Op) -> Replacement:
    """Writing the same elements twice: the second wins."""
    inner = _inner(op)
    if inner.attrs != op.attrs or inner.operands[1].shape != op.operands[1].shape:
        return None
    return b.update_slice(inner.operands[0], op.operands[1], **op.attrs)


def _constant_starts(op: Op, starts: tuple[Value, ...], sizes: Ints) -> Ints | None:
    """Constant starts, clamped so that the window fits; None unless all are known or forced."""
    clamped = []
    for start, n, size in zip(starts, op.operands[0].shape, sizes, strict=True):
        constant = producer(start, "constant")
        if n == size:
            clamped.append(0)
        elif constant is None:
            return None
        else:
            clamped.append(min(max(int(constant.attrs["value"]), 0), n - size))
    return tuple(clamped)


def _dynamic_slice(b: Rewriter, op: Op) -> Replacement:
    sizes = op.attrs["sizes"]
    start = _constant_starts(op, op.operands[1:], sizes)
    if start is None:
        return None
    stop = tuple([a + n for a, n in zip(start, sizes, strict=True)])
    return b.slice(op.operands[0], start=start, stop=stop, step=(1,) * len(sizes))


def _dynamic_update_slice(b: Rewriter, op: Op) -> Replacement:
    x, u, *starts = op.operands
    start = _constant_starts(op, tuple(starts), u.shape)
    if start is None:
        return None
    return b.update_slice(x, u, start=start, step=(1,) * len(start))


# dot


def _add_pads(b: Rewriter, op: Op) -> Replacement:
    """A sum of arrays padded with zeros to where they belong: what the derivative of taking an array
    apart is. Adding the other zeros makes -0 to +0, and nothing else."""
    dtype = op.results[0].dtype
    if dtype.kind not in "iuf":
        return None
    parts = _padded(op)
    if parts is None:
        return None
    axis, pieces = parts
    at = 0
    for start, x in pieces:
        if start != at:
            return None
        at += x.shape[axis]
    if at != op.results[0].shape[axis]:
        return None
    xs = [x for _, x in pieces]
    if dtype.kind == "f":
        xs = [b.add(x, b.full_like(x, 0.0)) for x in xs]
    return b.concat(*xs, axis=axis)


def _padded(op: Op) -> tuple[int, list[tuple[int, Value]]] | None:
    """The axis along which the terms of a sum are padded, and each term and where it begins."""
    pending = list(op.operands)
    pieces: list[tuple[int, Value]] = []
    axes: set[int] = set()
    while pending:
        made = pending.pop().op
        if made is None or len(pieces) + len(pending) > MOST_PARTS:
            return None
        if made.name == "add":
            pending += made.operands
            continue
        if made.name != "pad" or any(made.attrs["interior"]) or uniform(made.operands[1]) != 0:
            return None
        x = made.operands[0]
        low, high = made.attrs["low"], made.attrs["high"]
        axes.update(d for d in range(len(low)) if low[d] or high[d])
        if len(axes) != 1 or 0 in x.shape:
            return None
        pieces.append((low[min(axes)], x))
    return min(axes), sorted(pieces, key=lambda piece: piece[0])


def _dot_transpose(side: int) -> Any:
    """dot(transpose(x), y) contracts x's own axes, where the order of the free axes stays."""

    def apply(b: Rewriter, op: Op) -> Replacement:
        inner = op.operands[side].op
        assert inner is not None
        perm = inner.attrs["perm"]
        contract, batch = (list(op.attrs[name]) for name in ("contract", "batch"))
        used = contract[side] + batch[side]
        free = [p for d, p in enumerate(perm) if d not in used]
        if free != sorted(free):
            return None
        contract[side] = tuple([perm[d] for d in contract[side]])
        batch[side] = tuple([perm[d] for d in batch[side]])
        operands = list(op.operands)
        operands[side] = inner.operands[0]
        return b.dot(*operands, contract=tuple(contract), batch=tuple(batch))

    return apply


_VIEWS = ("transpose", "slice", "flip")

MOVEMENT = [
    # Nothing moves: x.
    on("reshape", _unchanged),
    on("slice", _unchanged),
    on("pad", _unchanged),
    on("flip", _flip_plain),
    on("transpose", _transpose_plain),  # also: only axes of size 1 move, a reshape
    on("broadcast", _broadcast_plain),  # also: only axes of size 1 are new, a reshape
    # f(f(x)) = one f(x).
    on("reshape", _reshape_reshape, of="reshape"),
    on("transpose", _transpose_transpose, of="transpose"),
    on("broadcast", _broadcast_broadcast, of="broadcast"),
    on("slice", _slice_slice, of="slice"),
    on("flip", _flip_flip, of="flip"),
    # f(broadcast(x)) = broadcast(f(x)).
    on("reshape", _reshape_broadcast, of="broadcast"),  # of a scalar
    on("transpose", _transpose_broadcast, of="broadcast"),
    on("slice", _slice_broadcast, of="broadcast"),
    on("broadcast", _broadcast_reshape, of="reshape"),
    on("pad", _pad_broadcast, of="broadcast"),
    # Of two views, one of them strided: one that is.
    on("strided", _strided_plain),
    *(on("strided", _strided_strided, of=of) for of in ("strided", *_VIEWS, "broadcast")),
    *(on(name, _strided_strided, of="strided") for name in _VIEWS),
    # Parts put together and taken out again.
    on("slice", _slice_concat, of="concat"),
    on("slice", _slice_update, of="update_slice"),
    on("update_slice", _update_update, of="update_slice"),
    on("update_slice", _update_plain),
    on("concat", _concat_plain),
    # pad(x, after) + pad(y, before) = concat(x + 0, y + 0).
    on("add", _add_pads, of="pad", at=0),
    on("add", _add_pads, of="pad", at=1),
    # A window at a constant position.
    on("dynamic_slice", _dynamic_slice),
    on("dynamic_update_slice", _dynamic_update_slice),
    # The same products, whatever the order of the contracted axes.
    on("dot", _dot_transpose(0), of="transpose", at=0),
    on("dot", _dot_transpose(1), of="transpose", at=1),
]
