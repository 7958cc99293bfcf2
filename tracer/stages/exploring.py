"""`f.explore(x)`: source, loops and assembly side by side, and what belongs to what.

A page without a server: tables, and a short script that adds the lights. Where scripts do not run, as
in a preview, the tables are there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from ...codegen.listing.loops import Line
from ...ir.graph import Graph, SourceLine
from ...ir.record import record
from ...runtime.following import Followed
from ...runtime.native.line_tables import Instruction, assembly
from ..messages.source import shown_file
from .making import listing
from .pages import MOST_LINES, cut, fragment, save
from .sources import passages

_CALL = re.compile(r"\b(?:callq?|jmp|bl)\s+([\w.$]+)")
_STYLE = """
.jitney table.sides { border-collapse: collapse; width: 100%; table-layout: fixed; }
.jitney table.sides td, .jitney table.sides th { vertical-align: top; text-align: left;
  border: 1px solid var(--line); padding: 0; background: var(--bg); color: var(--fg); }
.jitney table.sides th { padding: .3em .6em; }
.jitney table.sides pre { border: 0; overflow: auto; max-height: 75vh; padding: .4em; }
.jitney .r { display: block; min-height: 1.45em; }
.jitney .r[data-k] { cursor: pointer; }
.jitney .r.on { background: var(--hit); }
@media (max-width: 800px) { .jitney table.sides, .jitney table.sides tbody,
  .jitney table.sides tr, .jitney table.sides td { display: block; width: auto; }
  .jitney table.sides thead { display: none; } .jitney table.sides pre { max-height: 40vh; } }
"""

# Rows have the numbers of source lines in `data-k`; `data-f` is the function that they are in.
_SCRIPT = """
<script>(function () {
  var root = document.currentScript.closest('.jitney');
  var rows = Array.prototype.slice.call(root.querySelectorAll('.r[data-k]'));
  var byKey = {};
  rows.forEach(function (row) { row.dataset.k.split(' ').forEach(function (k) {
    (byKey[k] = byKey[k] || []).push(row); }); });
  var lit = [];
  function light(row) {
    lit.forEach(function (r) { r.classList.remove('on'); }); lit = [];
    if (!row) return;
    row.dataset.k.split(' ').forEach(function (k) { byKey[k].forEach(function (r) {
      if (row.dataset.f && r.dataset.f && r.dataset.f !== row.dataset.f) return;
      r.classList.add('on'); lit.push(r); }); });
  }
  root.addEventListener('mouseover', function (e) {
    var row = e.target.closest && e.target.closest('.r[data-k]'); if (row) light(row); });
  root.addEventListener('click', function (e) {
    var row = e.target.closest && e.target.closest('.r[data-k]'); if (!row) return;
    light(row);
    root.querySelectorAll('.sides pre').forEach(function (side) {
      var first = side.querySelector('.r.on');
      if (first && !side.contains(row)) side.scrollTop = first.offsetTop - side.offsetTop - 40; });
  });
})();</script>
"""


@record
class Row:
    """A line of a side: its text, the numbers of the source lines that it is about, its function."""

    text: str
    lines: tuple[int, ...] = ()
    function: str = ""


class Exploration:
    """Three sides of a call: `source`, `loops` and `code`, lists of `Row`s whose numbers agree."""

    def __init__(self, title: str, graph: Graph, followed: Followed, code: str) -> None:
        self.title = title
        self._kind = "PTX" if code == "ptx" else "assembly"
        self._numbers: dict[tuple[str, int], int] = {}
        loops = [*listing(graph, followed)]
        self.loops = [Row(line.text, self._of(line.locs), line.function) for line in loops]
        self.code = [*self._code(followed, loops)]
        self.source = [*self._source(graph)]

    def _of(self, locs: Iterable[SourceLine]) -> tuple[int, ...]:
        """The numbers of lines of source, made as they are met."""
        numbers = self._numbers
        places = [(loc.file, loc.line) for loc in locs]
        return tuple(dict.fromkeys(numbers.setdefault(p, len(numbers) + 1) for p in places))

    def _code(self, followed: Followed, loops: Sequence[Line]) -> Iterator[Row]:
        """Instructions with their lines; functions that say none of their own, as those of products, are
        of their step's."""
        whole: dict[str, tuple[int, ...]] = {}
        for line in loops:
            whole[line.function] = (*whole.get(line.function, ()), *self._of(line.locs))
        instructions = [*assembly(followed.code())]
        told = {each.function for each in instructions if each.line}
        _inherit(whole, instructions)
        for each in instructions:
            own = self._of(followed.lines[each.line - 1 : each.line]) if each.line else ()
            if each.text.startswith(each.function + ":") or each.function not in told:
                own = tuple(dict.fromkeys(whole.get(each.function, ())))
            yield Row(each.text, own, each.function)

    def _source(self, graph: Graph) -> Iterator[Row]:
        for passage in passages(graph):
            yield Row(f"{shown_file(passage.file)}:")
            width = len(str(passage.first + len(passage.lines)))
            for number, text in enumerate(passage.lines, passage.first):
                known = self._numbers.get((passage.file, number))
                own = () if known is None else (known,)
                yield Row(f"{number:>{width}}  {text}".rstrip(), own)
            yield Row("")

    def __str__(self) -> str:
        sides = (("source", self.source), ("loops", self.loops), (self._kind, self.code))
        return "\n".join(
            "\n".join([f"== {name}", *(_marked(row) for row in rows)]) for name, rows in sides
        )

    def __repr__(self) -> str:
        sizes = f"{len(self.loops)} lines of loops, {len(self.code)} of {self._kind}"
        return f"<Exploration of {self.title}: {sizes}>"

    def _repr_html_(self) -> str:
        names = ("source", "loops", self._kind)
        heads = "".join(f"<th>{name}</th>" for name in names)
        cells = "".join(f"<td>{_side(rows)}</td>" for rows in (self.source, self.loops, self.code))
        table = (
            f"<table class='sides'><thead><tr>{heads}</tr></thead>"
            f"<tbody><tr>{cells}</tr></tbody></table>"
        )
        hint = (
            "<span class='dim'>point at a line to see what belongs to it; click to go there</span>"
        )
        return fragment([f"<b>{escape(self.title)}</b> {hint}", table, _SCRIPT], _STYLE)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file: a page if its name ends in .html, else text. Raises OSError."""
        save(path, self.title, f"{self}\n", self._repr_html_())


def _inherit(whole: dict[str, tuple[int, ...]], instructions: Iterable[Instruction]) -> None:
    """Functions that are no step, such as tiles of products, are there for their callers' lines."""
    steps = set(whole)
    for each in instructions:
        callee = _CALL.search(each.text)
        if callee is not None and each.function in steps and callee[1] not in steps:
            lines = (*whole.get(callee[1], ()), *whole[each.function])
            whole[callee[1]] = tuple(dict.fromkeys(lines))


def _marked(row: Row) -> str:
    numbers = ",".join(map(str, row.lines))
    return f"{numbers:>8}  {row.text}".rstrip()


def _side(rows: Sequence[Row]) -> str:
    shown = "".join(map(_row, rows[:MOST_LINES]))
    left = len(rows) - MOST_LINES
    more = f"<span class='r dim'>... and {left:,} more lines</span>" if left > 0 else ""
    return f"<pre>{shown}{more}</pre>"


def _row(row: Row) -> str:
    keys = f" data-k='{' '.join(map(str, row.lines))}'" if row.lines else ""
    function = f" data-f='{escape(row.function, quote=True)}'" if row.function and keys else ""
    return f"<span class='r'{keys}{function}>{escape(cut(row.text))}\n</span>"
