"""The user's code that a graph was made from: the functions around the lines of its ops."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterable, Iterator

from ...ir.graph import Graph, SourceLine
from ...ir.record import record
from ..messages.source import shown_file

_AROUND = 2  # lines that are shown around one that stands in no function
_LONGEST = 400  # lines of a function that are shown


@record
class Passage:
    """Lines of one file that follow one another; `lines` are their texts."""

    file: str
    first: int
    lines: tuple[str, ...]

    def __str__(self) -> str:
        width = len(str(self.first + len(self.lines) - 1))
        numbered = (f"{n:>{width}}  {text}" for n, text in enumerate(self.lines, self.first))
        return "\n".join([f"{shown_file(self.file)}:", *(line.rstrip() for line in numbered)])


def passages(graph: Graph) -> list[Passage]:
    """The functions whose lines ops come from, in the order in which they are met first."""
    by_file: dict[str, set[int]] = {}
    for loc in locs_of(graph):
        by_file.setdefault(loc.file, set()).add(loc.line)
    return [p for file, lines in by_file.items() for p in _passages(file, sorted(lines))]


def locs_of(graph: Graph) -> Iterable[SourceLine]:
    """Where the ops of a graph and of its regions come from, each line once."""
    return dict.fromkeys(op.loc for op in graph.walk() if op.loc is not None)


def _passages(file: str, wanted: list[int]) -> Iterator[Passage]:
    text = linecache.getlines(file)
    covered = 0
    for first, last in _merged(_functions(text, wanted)):
        last = min(last, len(text), first + _LONGEST)
        if last > covered:
            yield Passage(file, first, tuple(line.rstrip("\n") for line in text[first - 1 : last]))
            covered = last


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return merged


def _functions(text: list[str], wanted: list[int]) -> list[tuple[int, int]]:
    """For each line the outermost function that it stands in, from its first decorator on."""
    spans = []
    try:
        tree = ast.parse("".join(text))
    except (SyntaxError, ValueError):  # a cell with magics
        tree = ast.Module([], [])
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            spans.append((first, node.end_lineno or first))
    found = []
    for line in wanted:
        around = [span for span in spans if span[0] <= line <= span[1]]
        found.append(min(around, default=(max(line - _AROUND, 1), line + _AROUND)))
    return found
