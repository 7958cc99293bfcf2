"""Programs with while loops of all kinds, for tests of reverse mode; each takes their attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from loops import cond, integer, program, repeat, scan, while_loop

from jitney.ir.graph import Graph
from jitney.ir.ops.term import Term, where
from jitney.ir.types import I64


def mixed(n: Term, c: Term, x: Term, y: Term, **attrs: Any) -> list[Term]:
    """A float loop invariant, an integer carry beside the floats, expensive and cheap ops."""

    def body(i: Term, c: Term, x: Term, y: Term, k: Term) -> list[Term]:
        return [x.sin() * c + y * 0.5, x * y, k * 2 + 1]

    return repeat(n, body, [c], [x, y, integer(n, 1)], **attrs)


def permuted(n: Term, c: Term, x: Term, y: Term, **attrs: Any) -> list[Term]:
    """Carries that trade places, and one that the body leaves alone but reads."""

    def body(i: Term, x: Term, y: Term, z: Term, still: Term) -> list[Term]:
        return [y, z, x * still, still]

    return repeat(n, body, [], [x, y, x * y, c], **attrs)


def growing(n: Term, c: Term, x: Term, y: Term, **attrs: Any) -> list[Term]:
    """The trip count depends on the data, and a bool carry on the floats."""

    def test(limit: Term, i: Term, flag: Term, x: Term, y: Term) -> list[Term]:
        total = Term(x.b, x.b.sum(x.abs().value, axes=(0,)))
        return [(total < 50.0) & (i < limit)]

    def body(limit: Term, i: Term, flag: Term, x: Term, y: Term) -> list[Term]:
        return [i + 1, x < y, where(flag, x * 1.5, x + y), y * x.tanh()]

    out = while_loop(test, body, [n], [integer(n, 0), x < 0.0, x, y], **attrs)
    return [out[2], out[3] * c, out[1]]


def rows(n: Term, c: Term, x: Term, y: Term, **attrs: Any) -> list[Term]:
    """Each trip reads one row of a table and writes one."""

    def body(i: Term, table: Term, x: Term, out: Term) -> list[Any]:
        b = i.b
        at = b.remainder(i.value, b.const(2, I64))
        zero = b.const(0, I64)
        row = Term(b, b.reshape(b.dynamic_slice(table.value, at, zero, sizes=(1, 2)), shape=(2,)))
        x = (x * row).sin()
        spot = b.dynamic_update_slice(out.value, b.reshape(x.value, shape=(1, 2)), at, zero)
        return [x, spot]

    b = c.b
    table = Term(b, b.concat(*(b.reshape(v.value, shape=(1, 2)) for v in (c, y)), axis=0))
    return repeat(n, body, [table], [x, table * 0.5], **attrs)


def twice(n: Term, c: Term, x: Term, y: Term, **attrs: Any) -> list[Term]:
    """A loop in a loop, whose trip count is the outer loop's counter."""

    def inner(i: Term, c: Term, x: Term) -> list[Term]:
        return [(x * c).sin() + x * 0.5]

    def outer(i: Term, c: Term, x: Term, y: Term) -> list[Term]:
        (z,) = repeat(i, inner, [c], [x], **attrs)
        return [z * y, y.tanh() + z * 0.1]

    return repeat(n, outer, [c], [x, y], **attrs)


def everything(n: Term, c: Term, x: Term, y: Term, **attrs: Any) -> list[Term]:
    """while in scan in cond in while."""

    def leaf(i: Term, c: Term, x: Term) -> list[Term]:
        return [x.sin() * c]

    def step(count: Term, c: Term, x: Term, row: Term) -> list[Term]:
        (z,) = repeat(count, leaf, [c], [x + row], **attrs)
        return [z, z * row]

    def taken(count: Term, c: Term, x: Term, y: Term) -> list[Term]:
        b = c.b
        pairs = Term(b, b.concat(*(b.reshape(v.value, shape=(1, 2)) for v in (x, y, c)), axis=0))
        z, zs = scan(step, [count, c], [x], [pairs], 3)
        return [z, Term(b, b.sum(zs.value, axes=(0,)))]

    def other(count: Term, c: Term, x: Term, y: Term) -> list[Term]:
        return [x * y, y]

    def body(i: Term, c: Term, x: Term, y: Term) -> list[Term]:
        parity = Term(i.b, i.b.remainder(i.value, i.b.const(2, I64)))
        return cond(parity, [taken, other], [i, c, x, y])

    return repeat(n, body, [c], [x, y], **attrs)


PROGRAMS: list[Callable[..., list[Term]]] = [*[mixed, permuted, growing, rows, twice, everything]]


def instance(f: Callable[..., list[Term]], trips: int, **attrs: Any) -> tuple[Graph, list[Any]]:
    local = np.random.default_rng(trips)
    arrays = [np.int64(trips), *(local.normal(size=2) for _ in range(3))]
    return program(lambda *a: f(*a, **attrs), *arrays), arrays
