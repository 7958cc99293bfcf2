"""Loops in which every lane has its own trip count, as vector loops under a mask.

    loop:  carries, the lanes that are on          (phis)
           on = on and test; leave if none is
    body:  new carries; once more: on = on and test, new carries; back

A lane that is off stays off, as do those beyond the array's end. Carries whose last values are read
keep them in lanes that are off; the others run on, to values that nobody reads: only plain arithmetic
may do that, no inner loop.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from ...ir.types import BOOL
from ..scalar import DType, Expr, LoopBody
from .instructions import INSTRUCTIONS, type_text
from .text import Operand

if TYPE_CHECKING:
    from .scalars import ScalarEmitter

COPIES = 2  # trips between two looks at whether all lanes are done


def is_plain(body: LoopBody) -> bool:
    """Whether the body is arithmetic and nothing else, not even a call or a rare part."""
    seen: set[Expr] = set()
    pending = [body.test, *body.new]
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.op not in INSTRUCTIONS and node.op not in ("const", "var") and node.free:
            return False
        pending += node.args
    return True


def emit_lanes(
    e: ScalarEmitter, node: Expr, body: LoopBody, read: Collection[int]
) -> list[Operand]:
    """Emit the loop `node`; `read` are the positions of the results that are read.

    A vector wider than a register goes in parts of one register each, with a mask for each part: masks
    of several registers are costly to put together.
    """
    dtypes = [p.dtype for p in body.params]
    floats = [d.itemsize for d in dtypes if d.kind == "f"]
    lanes = min(e.target.vector_bits // (8 * max(floats or [d.itemsize for d in dtypes])), e.width)
    parts = [_Part(e, node, body, k, lanes) for k in range(0, e.width, lanes)]
    head, inside, leave = (e.new_label(hint) for hint in ("lanes", "body", "done"))
    before = e.block
    e.lines.append(f"  br label %{head}")
    e.start_block(head)
    phis_at = len(e.lines)
    for copy in range(COPIES):
        for part in parts:
            part.test()
        if not copy:
            words = [e.fresh(f"bitcast <{lanes} x i1> {p.still} to i{lanes}") for p in parts]
            some = words[0]
            for word in words[1:]:
                some = e.fresh(f"or i{lanes} {some}, {word}")
            going = e.fresh(f"icmp ne i{lanes} {some}, 0")
            e.lines.append(f"  br i1 {going}, label %{inside}, label %{leave}")
            e.start_block(inside)
        for part in parts:
            part.step(read)
    e.turn(leave)
    e.lines.append(f"  br label %{head}")
    e.lines[phis_at:phis_at] = [line for p in parts for line in p.phis(before, e.block)]
    e.start_block(leave)
    return [
        Operand(_joined(e, [p.names[k] for p in parts], dtype, lanes), False)
        for k, dtype in enumerate(dtypes)
    ]


class _Part:
    """The lanes `first`.. of the loop, as many as a register has: an emitter of that width."""

    def __init__(
        self, e: ScalarEmitter, node: Expr, body: LoopBody, first: int, lanes: int
    ) -> None:
        self.e = e.narrower(lanes)
        self.body, self.lanes = body, lanes
        self.bits = type_text(BOOL, lanes)
        self.types = [type_text(p.dtype, lanes) for p in body.params]
        for outside in e._invariants(body):
            operand = e.operand(outside)
            text = operand.text
            if not operand.uniform:
                text = _taken(e, text, outside.dtype, first, lanes)
            self.e._memo[outside] = Operand(text, operand.uniform)
        self.start = [
            _taken(e, e.spread(e._memo[a], a.dtype), a.dtype, first, lanes) for a in node.args
        ]
        self.names = [f"%v{next(e.names)}" for _ in self.start]
        self.at_first = "splat (i1 true)" if lanes > 1 else "true"
        if e.mask:
            self.at_first = _taken(e, e.mask, BOOL, first, lanes)
        self.on = f"%v{next(e.names)}"
        self.now, self.still = list(self.names), self.on

    def test(self) -> None:
        """Which lanes are still on."""
        e = self.e
        for param, name in zip(self.body.params, self.now, strict=True):
            e._bound[param.attr] = Operand(name, False)
        with e.scope():
            test = e.spread(e.operand(self.body.test), BOOL)
        self.still = e.fresh(f"and {self.bits} {self.still}, {test}")

    def step(self, read: Collection[int]) -> None:
        """The new carries; those that are read keep their values in lanes that are off."""
        e = self.e
        with e.scope():
            new = [e.spread(e.operand(x), x.dtype) for x in self.body.new]
        self.now = [
            e.fresh(f"select {self.bits} {self.still}, {ty} {after}, {ty} {name}")
            if position in read and after != name
            else after
            for position, (ty, after, name) in enumerate(
                zip(self.types, new, self.now, strict=True)
            )
        ]

    def phis(self, before: str, end: str) -> list[str]:
        return [
            f"  {name} = phi {ty} [ {init}, %{before} ], [ {back}, %{end} ]"
            for name, ty, init, back in zip(
                [*self.names, self.on],
                [*self.types, self.bits],
                [*self.start, self.at_first],
                [*self.now, self.still],
                strict=True,
            )
        ]


def _taken(e: ScalarEmitter, text: str, dtype: DType, first: int, lanes: int) -> str:
    """Some neighbouring lanes of a vector."""
    if lanes == e.width or text[0] not in "%<":  # a constant, the same in all lanes
        return text
    ty = type_text(dtype, e.width)
    places = ", ".join(f"i32 {k}" for k in range(first, first + lanes))
    return e.value_of(f"shufflevector {ty} {text}, {ty} poison, <{lanes} x i32> <{places}>")


def _joined(e: ScalarEmitter, texts: list[str], dtype: DType, lanes: int) -> str:
    """Vectors of `lanes` each, put together two by two."""
    while len(texts) > 1:
        ty = type_text(dtype, lanes)
        lanes *= 2
        places = ", ".join(f"i32 {k}" for k in range(lanes))
        texts = [
            e.value_of(f"shufflevector {ty} {a}, {ty} {b}, <{lanes} x i32> <{places}>")
            for a, b in zip(texts[::2], texts[1::2], strict=True)
        ]
    return texts[0]
