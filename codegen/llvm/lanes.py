"""Loops in which every lane has its own trip count, as vector loops under a mask.

    loop:  carries, the lanes that are on          (phis)
           on = on and test; leave if none is
    body:  new carries; once more: on = on and test, new carries; back

A lane that is off stays off, as do those beyond the array's end. Carries whose last values are read
keep them in lanes that are off; the others run on, to values that nobody reads: only plain arithmetic
may do that, no inner loop.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from ...ir.types import BOOL
from ..scalar import Expr, LoopBody, nodes_of
from .builder import Block, Value, as_condition, element_of, lanes_of, poison, vector
from .instructions import INSTRUCTIONS, type_text
from .text import Operand

if TYPE_CHECKING:
    from .scalars import ScalarEmitter

COPIES = 2  # iterations between two looks at whether all lanes are done


def is_plain(body: LoopBody) -> bool:
    """Whether the body is arithmetic and nothing else, not even a call or a rare part."""
    return not any(
        node.op not in INSTRUCTIONS and node.op not in ("const", "var") and node.free
        for node in nodes_of(body.test, *body.new)
    )


def emit_lanes(
    e: ScalarEmitter, node: Expr, body: LoopBody, read: Collection[int]
) -> list[Operand]:
    """Emit the loop `node`; `read` are the positions of the results that are read.

    A vector wider than a register goes in parts of one register each, with a mask for each part: masks
    of several registers are costly to put together.
    """
    dtypes = [p.dtype for p in body.params]
    floats = [d.itemsize for d in dtypes if d.kind == "f"]
    lanes = min(
        e.b.target.vector_bits // (8 * max(floats or [d.itemsize for d in dtypes])), e.b.width
    )
    parts = [_Part(e, node, body, k, lanes) for k in range(0, e.b.width, lanes)]
    head, inside, leave = (e.b.later(hint) for hint in ("lanes", "body", "done"))
    for part in parts:
        part.begin(head)
    e.b.jump(head, *(value for part in parts for value in (*part.start, part.at_first)))
    e.b.at(head)
    for copy in range(COPIES):
        for part in parts:
            part.test()
        if not copy:
            words = [e.b.convert("bitcast", p.still, f"i{lanes}") for p in parts]
            some = words[0]
            for word in words[1:]:
                some = some | word
            going = e.b.compare("ne", some, 0)
            e.b.branch(going, inside, leave)
            e.b.at(inside)
        for part in parts:
            part.step(read)
    if e.turn is not None:
        e.turn(leave)
    e.b.jump(head, *(value for part in parts for value in (*part.now, part.still)))
    e.b.at(leave)
    return [Operand(_joined(e, [p.names[k] for p in parts]), False) for k in range(len(dtypes))]


class _Part:
    """The lanes `first`.. of the loop, as many as a register has: an emitter of that width."""

    def __init__(
        self, e: ScalarEmitter, node: Expr, body: LoopBody, first: int, lanes: int
    ) -> None:
        self.e = e.narrower(lanes)
        self.body, self.lanes = body, lanes
        self.bits = type_text(BOOL, lanes)
        self.types = [type_text(p.dtype, lanes) for p in body.params]
        for outside in e.invariants(body):
            operand = e.operand(outside)
            value = operand.value
            if not operand.uniform:
                value = _taken(e, value, first, lanes)
            self.e.remember(outside, Operand(value, operand.uniform))
        self.start = [_taken(e, e.emit(a), first, lanes) for a in node.args]
        self.at_first = as_condition(True, lanes)
        if e.b.mask is not None:
            self.at_first = _taken(e, e.b.mask, first, lanes)

    def begin(self, head: Block) -> None:
        """The carries as parameters of the loop's head, and the mask."""
        count = len(self.types) + 1
        self.names = self.e.b.parameters(head, *self.types, self.bits)[-count:-1]
        self.now = [*self.names]
        self.still = head.params[-1]

    def test(self) -> None:
        """Which lanes are still on."""
        e = self.e
        for param, name in zip(self.body.params, self.now, strict=True):
            e.bind(param, name, uniform=False)
        with e.b.scope():
            test = e.b.spread(e.operand(self.body.test), BOOL)
        self.still = e.b.binary("and", self.still, test)

    def step(self, read: Collection[int]) -> None:
        """The new carries; those that are read keep their values in lanes that are off."""
        e = self.e
        with e.b.scope():
            new = [e.b.spread(e.operand(x), x.dtype) for x in self.body.new]
        self.now = [
            e.b.select(self.still, after, name) if position in read and after != name else after
            for position, (after, name) in enumerate(zip(new, self.now, strict=True))
        ]


def _taken(e: ScalarEmitter, value: Value, first: int, lanes: int) -> Value:
    """Some neighbouring lanes of a vector."""
    if lanes == e.b.width:
        return value
    if value.text[0] not in "%<":  # a constant, the same in all lanes
        return Value(vector(lanes, element_of(value.type)), value.text, e.b)
    return e.b.shuffle(value, poison(value.type), range(first, first + lanes))


def _joined(e: ScalarEmitter, vectors: Sequence[Value]) -> Value:
    """Vectors put together two by two."""
    while len(vectors) > 1:
        lanes = 2 * lanes_of(vectors[0].type)
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [e.b.shuffle(a, b, range(lanes)) for a, b in pairs]
    return vectors[0]
