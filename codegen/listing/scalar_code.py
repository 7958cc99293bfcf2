"""Scalar code as lines of text: statements over single numbers, loops and branches around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..loop_ir.scalar_code import Body, Choose, Invoke, Let, Repeat, Require, Special, Write
from ..scalar import Expr
from .expressions import Expressions


def statements(body: Body, e: Expressions) -> Iterator[str]:
    """The statements of a block, those of blocks inside indented."""
    for s in body.statements:
        lines: list[str] = []
        match s:
            case Let():
                for each in s.values:
                    text = e.value(each, lines)
                    if not text.isidentifier():
                        name = e.names.fresh("t")
                        lines.append(f"{name} = {text}")
                        e.bind(each, name)
            case Write():
                value = e.value(s.value, lines)
                lines.append(f"{e.access(s.array, s.index, lines)} = {value}")
            case Require():
                lines.append(f"check {e.value(s.flag, lines)}")
            case Repeat():
                lines += _repeat(s, e)
            case Choose():
                lines += _choose(s, e)
            case Special():
                lines.append(_assigned(s.results, f"special({_values(s.operands, e, lines)})", e))
            case Invoke():
                text = f"{s.routine.name}({_values(s.operands, e, lines)})"
                lines.append(_assigned(s.results, text, e))
                if s.defines:
                    lines += _routine(s, e)
        yield from lines


def _values(values: Sequence[Expr], e: Expressions, lines: list[str]) -> str:
    return ", ".join(e.value(value, lines) for value in values)


def _assigned(variables: Sequence[Expr], text: str, e: Expressions) -> str:
    names = ", ".join(e.names.var(v.attr) for v in variables)
    return f"{names} = {text}" if names else text


def _repeat(s: Repeat, e: Expressions) -> Iterator[str]:
    lines: list[str] = []
    if s.carries:
        lines.append(_assigned(s.carries, _values(s.start, e, lines), e))
    inside: list[str] = []
    if s.counter is not None:
        trips = str(s.length) if s.trips is None else e.value(s.trips, lines)
        head = f"for {e.names.var(s.counter)} in range({trips}):"
    else:
        head = "while True:"
    yield from (*lines, head)
    if s.test is not None:
        inside += statements(s.test, e)
    if s.condition is not None:
        inside.append(f"if not ({e.value(s.condition, inside)}): break")
    inside += statements(s.body, e)
    if s.carries:
        inside.append(_assigned(s.carries, _values(s.new, e, inside), e))
    yield from (f"  {line}" for line in inside or ["pass"])


def _choose(s: Choose, e: Expressions) -> Iterator[str]:
    lines: list[str] = []
    index = e.value(s.index, lines)
    yield from (*lines, f"switch {index}:")
    for number, (block, values) in enumerate(zip(s.blocks, s.values, strict=True)):
        yield f"  case {number}:"
        inside = [*statements(block, e)]
        if s.results:
            inside.append(_assigned(s.results, _values(values, e, inside), e))
        yield from (f"    {line}" for line in inside or ["pass"])


def _routine(s: Invoke, e: Expressions) -> Iterator[str]:
    routine = s.routine
    params = ", ".join(e.names.var(p.attr) for p in routine.params)
    yield f"where {routine.name}({params}):"
    inside = [*statements(routine.body, e)]
    inside.append(f"return {_values(routine.outs, e, inside)}")
    yield from (f"  {line}" for line in inside)
