"""Scalar code: statements over single numbers, with loops and branches around them.

What a loop over few numbers becomes (see `lower_scalars`): its carries are variables that live in
registers, where a `Loop` of kernels would write them to memory and read them back at each trip. A
statement happens where it stands, so reads and writes of one array keep their order: a `Let` reads what
its expressions load at that place.

Variables are `Expr`s of op "var"; every statement that makes some lists them, and they may be read in
all that follows in its block and in the blocks inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from ...ir.graph import SourceLine
from ...ir.record import field, record
from ..math.functions import Elementwise
from ..scalar import FREE, Expr, nodes_of
from .index import Index, Var, data_of
from .kernel import Array


@record(frozen=False, eq=False)
class Let:
    """Compute these now."""

    values: list[Expr]


@record(frozen=False, eq=False)
class Write:
    """Store `value` at a position of an array."""

    array: Array
    index: tuple[Index, ...]
    value: Expr


@record(frozen=False, eq=False)
class Require:
    """Stop with error site `site` unless `flag` holds; `values` go into its message. `taken`: it only
    matters where this holds too, which need not be asked as long as all is well."""

    flag: Expr
    site: int
    values: list[Expr]
    taken: Expr | None = None


@record(frozen=False, eq=False)
class Repeat:
    """`for counter in range(length)`, or `while condition`; `test` computes the condition.

    `trips` is the length, an int64 of at least 0, of a `for` whose counter's extent only bounds it.
    With a counter and a condition it ends where the first of the two ends it: the condition is only
    asked where trips are left.
    The variables `carries` start as `start` and become `new` at the end of each trip; after the loop
    they hold the last values. `independent`: the user's word that trips may be made in any order.
    `loc`: the line of a loop that the user wrote.
    """

    carries: list[Expr]
    start: list[Expr]
    body: Body
    new: list[Expr]
    counter: Var | None = None
    test: Body | None = None
    condition: Expr | None = None
    trips: Expr | None = None
    independent: bool = False
    loc: SourceLine | None = None

    @property
    def length(self) -> int:
        assert self.counter is not None
        return self.counter.extent


@record(frozen=False, eq=False)
class Choose:
    """Run one block, chosen by the int32 `index` (clamped into range); `results` become its values."""

    index: Expr
    blocks: list[Body]
    values: list[list[Expr]]
    results: list[Expr]


@record(frozen=False, eq=False)
class Special:
    """The variables `results` become what `write(b, values, pointers)` writes instructions for.

    `values` are those of `operands`, `pointers` those of contiguous `arrays`. It may read and write
    memory that no array stands for, and call symbols of the runtime, `imports`, and `helpers`,
    functions that the module then has.
    """

    results: list[Expr]
    operands: list[Expr]
    arrays: list[Array]
    write: Callable[[Any, Sequence[Any], Sequence[Any]], Sequence[Any]]
    imports: frozenset[str] = frozenset()
    helpers: tuple[Any, ...] = ()
    keeps_gil: bool = True  # what it touches belongs to Python


@record(frozen=False, eq=False)
class Routine:
    """A function of numbers, `params` to `outs`, that may call itself. It reads and writes the memory of
    the step; each call has `locals` of its own, and sees those of the call of `outer` that it is in.

    Calls that are more than `depth` deep stop with error site `site`, and with `full` where their
    memory is more than the stack has.
    """

    name: str
    params: list[Expr]
    outs: list[Expr]
    body: Body
    depth: int
    site: int
    full: int
    outer: Routine | None = None
    locals: list[Array] = field(default_factory=list)

    @property
    def around(self) -> list[Array]:
        """The local memory of functions around this one."""
        outer = self.outer
        return [] if outer is None else [*outer.around, *outer.locals]


@record(frozen=False, eq=False)
class Invoke:
    """The variables `results` become what `routine` gives for `operands`. One of its calls, outside
    of its own body, `defines` it."""

    routine: Routine
    operands: list[Expr]
    results: list[Expr]
    defines: bool


Statement = Let | Write | Require | Repeat | Choose | Special | Invoke


@record(frozen=False, eq=False)
class Body:
    """Statements in execution order."""

    statements: list[Statement] = field(default_factory=list)

    def inner(self) -> Iterator[Body]:
        """The blocks directly inside this one."""
        for s in self.statements:
            if isinstance(s, Repeat):
                yield from (b for b in (s.test, s.body) if b is not None)
            elif isinstance(s, Choose):
                yield from s.blocks
            elif isinstance(s, Invoke) and s.defines:
                yield s.routine.body


def roots(block: Body) -> list[Expr]:
    """What the statements of a block compute, not those of blocks inside."""
    found: list[Expr] = []
    for s in block.statements:
        match s:
            case Let():
                found += s.values
            case Write():
                found.append(s.value)
            case Require():
                found += (s.flag, *s.values, *(() if s.taken is None else (s.taken,)))
            case Repeat():
                found += (*s.start, *s.new, *(e for e in (s.condition, s.trips) if e is not None))
            case Choose():
                found += (s.index, *(v for values in s.values for v in values))
            case Special() | Invoke():
                found += s.operands
    return found


def nodes(block: Body) -> list[Expr]:
    """The expressions of a block's own statements, not of blocks inside."""
    return nodes_of(*roots(block))


def within(roots: Iterable[Expr]) -> Iterator[Expr]:
    """All that expressions are made of, positions in arrays too; each once."""
    pending, seen = [*roots], set[Expr]()
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        yield node
        pending += node.args
        if node.op == "load":
            pending += data_at(node.attr.index)
        elif node.op == "index":
            pending += data_at((node.attr,))


def computed(block: Body) -> Iterator[Expr]:
    """All that the statements of a block compute, positions in arrays too; each once."""
    places = (data_at(s.index) for s in block.statements if isinstance(s, Write))
    return within([*roots(block), *chain.from_iterable(places)])


def data_at(position: Iterable[Index]) -> Iterator[Expr]:
    """What the program computes of a position."""
    return (data.expr for index in position for data in data_of(index))


def blocks(block: Body) -> Iterator[Body]:
    """A block and all blocks inside it."""
    yield block
    for inner in block.inner():
        yield from blocks(inner)


def accesses(block: Body) -> Iterator[tuple[Array, Sequence[Index], bool]]:
    """The accesses of a block, not of those inside; whether they write."""
    for node in computed(block):
        if node.op == "load":
            yield node.attr.array, node.attr.index, False
    for s in block.statements:
        if isinstance(s, Write):
            yield s.array, s.index, True


def written(block: Body) -> dict[Array, None]:
    """The arrays that a block writes, and those inside it, but for functions that are defined there."""
    found: dict[Array, None] = {}
    for s in block.statements:
        if isinstance(s, Write):
            found[s.array] = None
        elif isinstance(s, Special):
            found.update(dict.fromkeys(s.arrays))
    for s in block.statements:
        if not isinstance(s, Invoke):
            for inner in Body([s]).inner():
                found.update(written(inner))
    return found


def may_fail(block: Body) -> bool:
    """Whether a check in a block, or in blocks inside, may end the program."""
    return any(
        any(isinstance(s, Require) for s in b.statements)
        or any(node.op in ("bounded", "demanded") for node in computed(b))
        for b in blocks(block)
    )


def calls(block: Body) -> list[Elementwise]:
    """The elementwise functions that it has as units, once per call, inner blocks included."""
    called = [node.attr for node in nodes(block) if node.op == "call"]
    for inner in block.inner():
        called += calls(inner)
    return called


def specials(block: Body) -> Iterator[Special]:
    """The special statements of a block, those of blocks inside included."""
    for s in block.statements:
        if isinstance(s, Special):
            yield s
    for inner in block.inner():
        yield from specials(inner)


def has_routines(block: Body) -> bool:
    """Whether a block, or one inside, calls routines."""
    own = any(isinstance(s, Invoke) for s in block.statements)
    return own or any(map(has_routines, block.inner()))


def operations(block: Body, work: int) -> int | None:
    """Scalar operations of one run if a trip takes `work` of them; None if a trip count is unknown."""
    total = work
    for s in block.statements:
        if isinstance(s, Invoke):
            return None
        if isinstance(s, Repeat):
            trip = None if s.counter is None or s.trips is not None else operations(s.body, work)
            if trip is None:
                return None
            total += s.length * trip
        elif isinstance(s, Choose):
            for inner in s.blocks:
                branch = operations(inner, work)
                if branch is None:
                    return None
                total += branch
    return total


def flops(block: Body) -> int:
    """Scalar operations of a block's own statements, not of blocks inside."""
    computed = nodes(block)
    called = sum(node.attr.size - 1 for node in computed if node.op == "call")
    return sum(node.op not in FREE for node in computed) + called
