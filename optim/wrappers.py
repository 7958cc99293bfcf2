"""Transformations around another: for some of the parameters, or some of the steps, or small
floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import jitney as jt

from .leaves import cast, working
from .transform import State, Transform, ask_for_params, chain
from .trees import Tree, beside, dtype_of, is_trained, map_beside, refuse

# A tree of bools beside the parameters, or a function that makes one of them, or a selection.
Mask = Tree | Callable[[Tree], Tree]


def masked(inner: Transform, mask: Mask) -> Transform:
    """`inner` where `mask` is True; the other gradients pass as they are. A mask is a tree of bools
    with the places of the parameters, a function of them that gives one, or of a module a selection:
    `nn.path("head/*")`, or what `nn.select` makes of one.

    >>> decay = jt.optim.masked(jt.optim.add_decayed_weights(0.1), {"w": True, "b": False})
    >>> params, grads = {"w": np.ones(2), "b": np.ones(2)}, {"w": np.zeros(2), "b": np.zeros(2)}
    >>> decay.update(grads, decay.init(params), params)[0]
    {'w': array([0.1, 0.1]), 'b': array([0., 0.])}
    """

    def init(params: Tree) -> State:
        return inner.init(_only(params, params, mask))

    def update(updates: Tree, state: State, params: Tree = None, **more: Any) -> tuple[Tree, State]:
        like = params if params is not None else updates
        some = None if params is None else _only(params, like, mask)
        new, state = inner.update(_only(updates, like, mask), state, some, **more)
        flags = beside(like, _flags(like, mask), "mask")
        rows = zip(
            flags, beside(like, new, "updates"), beside(like, updates, "gradients"), strict=True
        )
        chosen = [inside if flag else outside for flag, inside, outside in rows]
        return jt.tree.unflatten(jt.tree.structure(like), chosen), state

    return Transform(init, update)


def by_group(default: Transform, *groups: tuple[Mask, Transform]) -> Transform:
    """To each parameter the transformation of the first group whose mask is True there, or
    `default`.

    >>> opt = jt.optim.by_group(jt.optim.sgd(0.1), ({"w": False, "b": True}, jt.optim.sgd(1.0)))
    >>> ones = {"w": np.ones(1), "b": np.ones(1)}
    >>> opt.update(ones, opt.init(ones), ones)[0]
    {'w': array([-0.1]), 'b': array([-1.])}
    """
    for group in groups:
        if not isinstance(group, (tuple, list)) or len(group) != 2:
            refuse(
                f"by_group was given {jt.errors.describe(group)}, and no pair",
                "write by_group(default, (mask, transformation), ...).",
                jt.errors.ArgumentError,
            )
    masks = tuple(mask for mask, _ in groups)

    def belongs(place: int) -> Callable[[Tree], Tree]:
        def mask(params: Tree) -> Tree:
            columns = [beside(params, _flags(params, m), "mask") for m in masks]
            first = [
                next((i for i, flag in enumerate(row) if flag), len(masks))
                for row in zip(*columns, strict=True)
            ]
            return jt.tree.unflatten(jt.tree.structure(params), [i == place for i in first])

        return mask

    parts = [*(transform for _, transform in groups), default]
    return chain(*[masked(part, belongs(i)) for i, part in enumerate(parts)]) if groups else default


def accumulate(inner: Transform, every: int) -> Transform:
    """The mean of the gradients of `every` calls is a gradient for `inner`; the updates between are
    0."""
    if not isinstance(every, (int, np.integer)) or every < 1:
        refuse(
            f"gradients of {every} calls have no mean",
            "give how many calls make one step: 1 or more.",
        )

    def init(params: Tree) -> State:
        zeros = jt.tree.map(lambda p: np.zeros_like(p) if is_trained(p) else None, params)
        return {"count": np.int64(0), "mean": zeros, "inner": inner.init(params)}

    def update(updates: Tree, state: State, params: Tree = None, **more: Any) -> tuple[Tree, State]:
        count = state["count"] + 1
        due = count == every
        mean = map_beside(lambda m, g: m if g is None else m + g / every, state["mean"], updates)
        given = map_beside(lambda m, g: None if g is None else m, mean, updates)
        new, kept = _when(due, inner, given, state["inner"], params, more)
        mean = jt.tree.map(lambda m: np.where(due, np.zeros_like(m), m), mean)
        return new, {"count": np.where(due, 0, count), "mean": mean, "inner": kept}

    return Transform(init, update)


def apply_if_finite(inner: Transform) -> Transform:
    """Leaves out the steps whose gradients have a NaN or an infinity: parameters and state stay as
    they are. The state's `skipped` counts all of them, `in_a_row` those since the last good
    step."""

    def init(params: Tree) -> State:
        return {"skipped": np.int64(0), "in_a_row": np.int64(0), "inner": inner.init(params)}

    def update(updates: Tree, state: State, params: Tree = None, **more: Any) -> tuple[Tree, State]:
        finite = all_finite(updates)
        new, kept = _when(finite, inner, updates, state["inner"], params, more)
        skipped = state["skipped"] + np.where(finite, 0, 1)
        in_a_row = np.where(finite, 0, state["in_a_row"] + 1)
        return new, {"skipped": skipped, "in_a_row": in_a_row, "inner": kept}

    return Transform(init, update)


def with_masters(inner: Transform, dtype: Any = np.float32) -> Transform:
    """Keeps a copy of each parameter that is a smaller float as `dtype`, which `inner` moves; the
    parameter is that copy, rounded. Small steps add up, which get lost in float16 and bfloat16."""
    dtype = np.dtype(dtype)

    def is_small(p: Any) -> bool:
        return is_trained(p) and dtype_of(p).itemsize < dtype.itemsize

    def init(params: Tree) -> State:
        masters = jt.tree.map(lambda p: p.astype(dtype) if is_small(p) else None, params)
        wide = map_beside(lambda p, m: p if m is None else m, params, masters)
        return {"masters": masters, "inner": inner.init(wide)}

    def update(updates: Tree, state: State, params: Tree = None, **more: Any) -> tuple[Tree, State]:
        if params is None:
            ask_for_params("with_masters")
        masters = state["masters"]
        wide = map_beside(lambda p, m: p if m is None else m, params, masters)
        grads = map_beside(
            lambda p, g: None if g is None else cast(g, working(dtype_of(p))), wide, updates
        )
        new, kept = inner.update(grads, state["inner"], wide, **more)
        moved = map_beside(
            lambda p, m, u: m if m is None or u is None else m + cast(u, dtype),
            params,
            masters,
            new,
        )
        deltas = map_beside(
            lambda p, m, u: u if m is None or u is None else m - cast(p, dtype), params, moved, new
        )
        return deltas, {"masters": moved, "inner": kept}

    return Transform(init, update)


def scale_loss(
    inner: Transform,
    initial: float = 2.0**15,
    growth: float = 2.0,
    backoff: float = 0.5,
    interval: int = 2000,
) -> Transform:
    """For float16: the loss is multiplied by `state["scale"]`, so that no gradient is too small;
    here they are divided by it. A step whose gradients are not finite is left out and the scale
    falls by `backoff`; after `interval` good ones it grows by `growth`. `Optimizer.minimize` does
    the multiplying."""

    if not (initial > 0 and growth >= 1 and 0 < backoff <= 1 and interval >= 1):
        refuse(
            f"scale_loss: {initial=}, {growth=}, {backoff=}, {interval=}",
            "the scale is above 0, grows by at least 1, and falls by a factor in (0, 1].",
        )

    def init(params: Tree) -> State:
        return {"scale": np.float32(initial), "good": np.int64(0), "inner": inner.init(params)}

    def update(updates: Tree, state: State, params: Tree = None, **more: Any) -> tuple[Tree, State]:
        scale = state["scale"]
        grads = jt.tree.map(lambda g: _divided(g, scale), updates)
        finite = all_finite(updates)
        new, kept = _when(finite, inner, grads, state["inner"], params, more)
        good = np.where(finite, state["good"] + 1, 0)
        grown = np.where(good == interval, growth, 1.0).astype(np.float32)
        factor = np.where(finite, grown, np.float32(backoff))
        scaled = np.maximum(scale * factor, np.float32(1))
        good = np.where(good == interval, 0, good)
        return new, {"scale": scaled, "good": good, "inner": kept}

    return Transform(init, update)


def all_finite(tree: Tree) -> Any:
    """Whether no element of any leaf is NaN or infinite.

    >>> bool(jt.optim.all_finite([np.ones(2), np.array([1.0, np.inf])]))
    False
    """
    finite: Any = np.bool_(True)
    for leaf in jt.tree.leaves(tree):
        finite = finite & np.all(np.isfinite(leaf))
    return finite


def _divided(g: Any, scale: Any) -> Any:
    wide = cast(g, working(dtype_of(g)))
    return wide * cast(1 / scale, np.finfo(dtype_of(wide)).dtype)


def _when(
    flag: Any, inner: Transform, updates: Tree, state: State, params: Tree, more: dict[str, Any]
) -> tuple[Tree, State]:
    """What `inner` makes of the updates where the flag is set; else updates of 0, and its state as
    it is."""
    new, kept = inner.update(updates, state, params, **more)
    kept = jt.tree.map(lambda after, before: np.where(flag, after, before), kept, state)
    return jt.tree.map(lambda u: np.where(flag, u, np.zeros_like(u)), new), kept


def _flags(params: Tree, mask: Mask) -> Tree:
    """A tree of bools beside the parameters."""
    if callable(mask) and not isinstance(mask, jt.nn.Mask):
        mask = mask(params)
    if isinstance(mask, jt.nn.Selection):
        mask = jt.nn.select(params, mask)
    if not isinstance(mask, jt.nn.Mask):
        return mask
    flags = [mask.get(path, False) for path, _ in jt.tree.leaves_with_path(params)]
    return jt.tree.unflatten(jt.tree.structure(params), flags)


def _only(tree: Tree, like: Tree, mask: Mask) -> Tree:
    """A tree with None where the mask is False; `like` has the parameters' places."""
    parts = beside(like, tree, "gradients")
    flags = beside(like, _flags(like, mask), "mask")
    kept = [part if flag else None for part, flag in zip(parts, flags, strict=True)]
    return jt.tree.unflatten(jt.tree.structure(like), kept)
