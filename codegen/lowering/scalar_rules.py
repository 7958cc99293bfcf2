"""What each op of a loop body becomes in scalar code: reductions, products, writes, checks."""

from __future__ import annotations

import math

import numpy as np

from ...ir.graph import Op
from ...ir.opdef import OPS
from ..loop_ir.index import Index
from ..loop_ir.scalar_code import Require
from ..math import EXPANSIONS
from ..math.combiners import COMBINE, FOLDS, fold
from ..scalar import const, select
from . import elements
from .elements import RUNNING, Elements, along_last, at, reached
from .pointwise import IndexTuple, gathered, window_starts
from .scalar_builder import SMALL, ScalarBuilder, Stored, Unfit, rule


@rule("constant")
def _constant(c: ScalarBuilder, op: Op) -> None:
    value = op.attrs["value"]
    if value.size > SMALL:
        c.bind(op.result, Stored(c.low.context.constant(value)))
        return
    found = np.empty(value.shape, object)
    for place in np.ndindex(*value.shape):
        found[place] = const(value[place].item(), value.dtype)
    c.bind(op.result, found)


@rule("assert")
def _check(c: ScalarBuilder, op: Op) -> None:
    flag, *values, _ = op.operands
    site = c.low.context.assertion(op, values)
    found = [c.scalar(v) for v in values]
    c.block.statements.append(Require(c.scalar(flag), site, found))


@rule("create_token")
def _token(c: ScalarBuilder, op: Op) -> None:
    """Statements are in order."""


@rule(*FOLDS)
def _fold(c: ScalarBuilder, op: Op) -> None:
    source, axes = c.elements(op.operands[0]), op.attrs["axes"]
    kept = [d for d in range(source.ndim) if d not in axes]
    length = math.prod(source.shape[d] for d in axes)
    rows = source.transpose([*kept, *axes]).reshape(*(source.shape[d] for d in kept), length)
    c.result(op, along_last(lambda row: fold(op.name, row, op.result.dtype), rows))


@rule("argmax", "argmin")
def _place_of_best(c: ScalarBuilder, op: Op) -> None:
    rows = np.moveaxis(c.elements(op.operands[0]), op.attrs["axis"], -1)
    c.result(op, along_last(lambda row: elements.index_of_best(op.name, row), rows))


@rule(*RUNNING)
def _running(c: ScalarBuilder, op: Op) -> None:
    source = c.elements(op.operands[0])
    found = elements.running(op.name, source, op.attrs["axis"], op.attrs["reverse"])
    c.result(op, found)


@rule("dot")
def _dot(c: ScalarBuilder, op: Op) -> None:
    a, b = (c.elements(v) for v in op.operands)
    found = elements.products(a, b, op.attrs["contract"], op.attrs["batch"], op.result.dtype)
    c.result(op, found)


@rule("concat")
def _concat(c: ScalarBuilder, op: Op) -> None:
    parts = [c.elements(v) for v in op.operands]
    c.result(op, np.concatenate(parts, axis=op.attrs["axis"]))


@rule(*(name for name, definition in OPS.items() if definition.updates))
def _write(c: ScalarBuilder, op: Op) -> None:
    base, update = op.operands[:2]
    held, new = c.get(base), c.elements(update)
    if not isinstance(held, Stored):
        assert held is not None
        c.result(op, _replaced(c, op, held, new))
        return
    if not held.owned:
        raise Unfit
    combine = COMBINE.get(op.attrs.get("combine", "set"))
    for place in np.ndindex(*new.shape):
        index = _target(c, op, place)
        value = new.item(place)
        if combine is not None:
            value = EXPANSIONS[combine](c.p.load(held.array, index, None), value)
        c.put(held.array, index, value)
        held = c.renew(held)
    c.bind(op.result, held)


def _target(c: ScalarBuilder, op: Op, place: tuple[int, ...]) -> IndexTuple:
    """Where in the base an op writes the element `place` of its update."""
    base, update, *where = op.operands
    if op.name == "update_slice":
        start, step = op.attrs["start"], op.attrs["step"]
        return tuple(Index(i * s + a) for i, s, a in zip(place, step, start, strict=True))
    if op.name == "scatter":
        return gathered(c.p, op, base, where, at(place), None)
    corner = window_starts(c.p, tuple(where), base.shape, update.shape)
    return tuple(c + i for c, i in zip(corner, place, strict=True))


def _replaced(c: ScalarBuilder, op: Op, old: Elements, new: Elements) -> Elements:
    """The elements of a small array after an update of some."""
    if op.name != "update_slice" and old.size * new.size > 8 * SMALL:
        raise Unfit
    found = old.copy()
    combine = COMBINE.get(op.attrs.get("combine", "set"))
    for place in np.ndindex(*new.shape):
        index = _target(c, op, place)
        for spot, here in reached(index, found.shape):
            value = new.item(place)
            if combine is not None:
                value = EXPANSIONS[combine](found[spot], value)
            found[spot] = value if here is None else select(here, value, found[spot])
    return found
