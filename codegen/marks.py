"""Marks in LLVM text that say which line of the user's an instruction computes, for who asks.

A mark is a comment, `; at 3`: what follows it in its block is of line number 3. With
`Target.lines` expressions know the line that they were lowered from, and emitters leave a mark
where the line changes; without, there are none, and nothing is remembered.
"""

from __future__ import annotations

from collections.abc import Hashable

from ..ir.graph import SourceLine
from .scalar import Expr

MARK = "  ; at "


class Marks:
    """The lines of one program. `lines` are those that marks number, from 1 on."""

    def __init__(self) -> None:
        self.lines: dict[SourceLine, int] = {}
        self._origins: dict[Expr, SourceLine] = {}
        self._last: tuple[Hashable, int] = (None, 0)

    def tag(self, root: Expr, line: SourceLine | None) -> None:
        """What an expression is made of, and what nothing else has claimed, is of this line."""
        pending = [root] if line is not None else []
        while pending:
            node = pending.pop()
            if node not in self._origins and line is not None:
                self._origins[node] = line
                pending += node.args

    def note(self, block: list[str], node: Expr) -> None:
        """The instruction of a node comes next, in the block with these lines."""
        self.at(block, self._origins.get(node))

    def at(self, block: list[str], line: SourceLine | None) -> None:
        """What is of this line comes next."""
        if line is None:
            return
        number = self.lines.setdefault(line, len(self.lines) + 1)
        if self._last != (id(block), number):
            self._last = id(block), number
            block.append(f"{MARK}{number}")
