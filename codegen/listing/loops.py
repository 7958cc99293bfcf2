"""The steps of a program as readable loops, as they run: what is fused stands in one loop.

kernel sum_exp_0: 1 nest, 8 lanes over the inner loop
  for i in range(4096):
    total0 = 0.0
    for j in range(64):
      total0 += exp(x[i, j])  # exp, sum at model.py:12
    out[i] = total0
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ...ir.graph import Op, SourceLine
from ...ir.ops.folds.reductions import identity
from ...ir.record import record
from ..loop_ir.kernel import Kernel, Nest, Stage
from ..loop_ir.steps import (
    Branch,
    Carry,
    Check,
    Copy,
    Loop,
    Matmul,
    Program,
    RowBlocks,
    ScalarCode,
    Scan,
    Step,
    direct,
)
from .expressions import Expressions, Names
from .scalar_code import statements

_FOLDS = {"sum": "{0} += {1}", "prod": "{0} *= {1}", "any": "{0} |= {1}", "all": "{0} &= {1}"}
_UPDATES = {"set": "=", "add": "+=", "multiply": "*="}


@record
class Line:
    """A line of a listing: its text, the function that it is part of, and the ops that it computes."""

    text: str
    function: str = ""
    locs: tuple[SourceLine, ...] = ()


class Listing:
    """A program as lines. `notes` says of a function how it runs; `place` names a line of source."""

    def __init__(
        self,
        names: Names,
        notes: Mapping[str, str],
        place: Callable[[SourceLine], str],
    ) -> None:
        self.names = names
        self._notes = notes
        self._place = place

    def lines(self, program: Program, depth: int = 0) -> Iterator[Line]:
        """The steps one after the other."""
        for step in program.steps:
            for line in self._step(step):
                yield Line("  " * depth + line.text, line.function, line.locs)

    def _step(self, step: Step) -> Iterator[Line]:
        match step:
            case Kernel():
                yield from self._kernel(step)
            case RowBlocks():
                yield Line(f"for each of {step.units} blocks of rows:")
                for part in step.parts:
                    yield from _deeper(self._step(part.step))
            case Matmul():
                a, b, c = (self.names.array(x) for x in (step.a, step.b, step.c))
                batch = "batch, " if step.batch > 1 else ""
                sizes = f"m={step.m} n={step.n} k={step.k}"
                sizes += f" batch={step.batch}" if step.batch > 1 else ""
                text = f"{c}[{batch}m, n] = {a}[{batch}m, k] @ {b}[{batch}k, n]  # {sizes}"
                yield self._plain(step, text)
            case Branch():
                yield Line(f"switch {self.names.array(step.index)}:{self._at(step.loc)}")
                for number, branch in enumerate(step.branches):
                    yield Line(f"  case {number}:")
                    yield from self.lines(branch, 2)
            case Loop():
                yield from self._carries(step.carries)
                yield Line(f"while True:{self._at(step.loc)}")
                yield from self.lines(step.test, 1)
                yield Line(f"  if not {self.names.array(step.flag)}: break")
                yield from self.lines(step.body, 1)
                yield from _deeper(self._exchanges(step.carries))
            case Scan():
                yield from self._carries(step.carries)
                order = f"{step.length - 1}, -1, -1" if step.reverse else f"{step.length}"
                k = self.names.fresh("k")
                yield Line(f"for {k} in range({order}):{self._at(step.loc)}")
                for moving in (*step.xs, *step.ys):
                    row, whole = (self.names.array(a) for a in (moving.slice, moving.whole))
                    yield Line(f"  {row} = view of {whole}[{k}]")
                yield from self.lines(step.body, 1)
                yield from _deeper(self._exchanges(step.carries))
            case ScalarCode():
                yield Line(f"scalar code {step.name}:{self._at(step.loc)}".replace(" :", ":"))
                locs = () if step.loc is None else (step.loc,)
                for text in statements(step.body, Expressions(self.names, reads=True)):
                    yield Line(f"  {text}", step.name, locs)
            case Copy():
                source, target = (self.names.array(a) for a in (step.source, step.target))
                yield Line(f"{target}[...] = {source}")
            case Check():
                yield Line(f"check {self.names.array(step.flag)}")
            case _:
                yield self._plain(step, self._generic(step))

    def _plain(self, step: Step, text: str) -> Line:
        loc = getattr(step, "loc", None)
        name = getattr(step, "name", "")
        locs = () if loc is None else (loc,)
        return Line(f"{text}{self._at(loc)}", name, locs)

    def _generic(self, step: Step) -> str:
        """A step with kernels of its own: what it is called, reads and writes."""
        name = type(step).__name__
        words = "".join(f" {c.lower()}" if c.isupper() else c for c in name).strip()
        reads, writes = direct(step)
        gives, takes = (
            ", ".join(dict.fromkeys(map(self.names.array, arrays))) for arrays in (writes, reads)
        )
        return f"{gives} = {words}({takes})" if gives else f"{words}({takes})"

    def _at(self, loc: SourceLine | None) -> str:
        return "" if loc is None else f"  # {self._place(loc)}"

    def _carries(self, carries: Sequence[Carry]) -> Iterator[Line]:
        for carry in carries:
            now, init = self.names.array(carry.now), self.names.array(carry.init)
            yield Line(f"{now} = {init}")

    def _exchanges(self, carries: Sequence[Carry]) -> Iterator[Line]:
        for carry in carries:
            if carry.spare is not None:
                now, following = (self.names.array(a) for a in (carry.now, carry.next))
                yield Line(f"{now}, {following} = {following}, {now}")

    # Kernels.

    def _kernel(self, kernel: Kernel) -> Iterator[Line]:
        note = self._notes.get(kernel.name, "")
        head = " ".join(word for word in ("kernel", kernel.name) if word)
        name = kernel.name
        yield Line(f"{head}: {note}" if note else f"{head}:", name, kernel.locs)
        outer = len(kernel.extents)
        loops = [self.names.fresh("i") for _ in range(outer)]
        for depth, (loop, extent) in enumerate(zip(loops, kernel.extents, strict=True)):
            yield Line(f"{'  ' * (depth + 1)}for {loop} in range({extent}):", name)
        for nest in kernel.nests:
            for line in self._nest(kernel, nest, loops, outer + 1):
                yield Line(line.text, name, line.locs)

    def _nest(self, kernel: Kernel, nest: Nest, loops: list[str], depth: int) -> Iterator[Line]:
        first = nest.stages[0]
        inner = [self.names.fresh("j") for _ in first.dims[len(loops) :]]
        for stage in nest.stages:
            for var, name in zip(stage.dims, (*loops, *inner), strict=False):
                self.names.call(var, name)
        expressions = Expressions(self.names)
        totals = {id(s): self.names.fresh("total") for s in nest.stages if _folds(s)}
        for level in range(len(loops), len(loops) + len(inner) + 1):
            margin = "  " * (depth + level - len(loops))
            for stage in nest.stages:
                if _folds(stage) and stage.outer == level:
                    start = identity(stage.op, stage.array.dtype)
                    yield Line(f"{margin}{totals[id(stage)]} = {_number(start)}")
            if level < len(loops) + len(inner):
                extent = first.dims[level].extent
                last = ""
                if first.chunks is not None and level == first.outer:
                    last = "  # the last chunk may be shorter"
                name = inner[level - len(loops)]
                yield Line(f"{margin}for {name} in range({extent}):{last}")
        for stage in nest.stages:
            lines: list[str] = []
            text = self._stage(kernel, stage, expressions, totals, lines)
            own = (loc for loc in (*(op.loc for op in stage.sources), stage.loc) if loc is not None)
            locs = tuple(dict.fromkeys(own))
            yield from (Line(margin + line, "", locs) for line in lines)
            yield Line(f"{margin}{text}{self._comment(stage)}", "", locs)
        for level in range(len(loops) + len(inner) - 1, len(loops) - 1, -1):
            margin = "  " * (depth + level - len(loops))
            for stage in nest.stages:
                if stage.action == "reduce" and stage.outer == level:
                    target = expressions.access(stage.array, stage.index, [])
                    locs = () if stage.loc is None else (stage.loc,)
                    yield Line(f"{margin}{target} = {totals[id(stage)]}", "", locs)

    def _stage(
        self,
        kernel: Kernel,
        stage: Stage,
        expressions: Expressions,
        totals: Mapping[int, str],
        lines: list[str],
    ) -> str:
        value = expressions.value(stage.value, lines)
        if _folds(stage):
            total = totals[id(stage)]
            text = _FOLDS.get(stage.op, "{0} = " + stage.op + "({0}, {1})").format(total, value)
            if stage.action == "scan":
                lines.append(text)
                return f"{expressions.access(stage.array, stage.index, lines)} = {total}"
            return text
        target = expressions.access(stage.array, stage.index, lines)
        if stage.where is not None:
            target = f"if {expressions.value(stage.where, lines)}: {target}"
        if stage.op in _UPDATES or not stage.op:
            return f"{target} {_UPDATES.get(stage.op, '=')} {value}"
        return f"{target} = {stage.op}({target}, {value})"

    def _comment(self, stage: Stage) -> str:
        """The ops that a line computes, and where they stand."""
        words = [op.name for op in reversed(stage.sources) if _computes(op)] or stage.ops
        locs = [op.loc for op in stage.sources if _computes(op)]
        known = [loc for loc in (locs or [stage.loc]) if loc is not None]
        places = dict.fromkeys(map(self._place, known))
        at = f" at {', '.join(places)}" if places else ""
        return f"  # {', '.join(dict.fromkeys(words))}{at}" if words or at else ""


def _computes(op: Op) -> bool:
    """Whether an op is worth a word: it is no constant, and no index arithmetic."""
    return op.name not in ("constant", "broadcast", "reshape")


def _folds(stage: Stage) -> bool:
    return stage.action in ("reduce", "scan")


def _number(value: object) -> str:
    return repr(value.item()) if hasattr(value, "item") else repr(value)


def _deeper(lines: Iterator[Line]) -> Iterator[Line]:
    for line in lines:
        yield Line(f"  {line.text}", line.function, line.locs)
