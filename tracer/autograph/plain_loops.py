"""Loops that nothing traced reaches, in functions in which something is traced, run as Python.

They are made anew from the source (`syntax.plain`), and work on the variables of the twin, which are
cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import length_hint
from types import CellType, CodeType, FunctionType
from typing import Any

from ..captures.closed import ClosedCode
from ..captures.running import without_watching
from ..captures.untraced import closed_code
from .syntax.plain import plain_loop
from .twins import plain_code
from .variables import Undefined

_ROOM = 1 << 20  # elements of containers looked at before a loop
_LONG = 12  # iterations from which a loop is worth to be compiled as Python
_TRIES = 3  # for a loop that something traced reaches
_EMPTY = CellType()
_loops: dict[int, CodeType | None] = {}  # by the id of the code of a body, which twins keep


class Rest:
    """What is left of a loop with a body, and a condition where it is no `for` loop."""

    def __init__(self, body: Any, test: Any = None, length: int = 0) -> None:
        self.parts: list[Any] = [body] if test is None else [test, body]
        self.code: CodeType = body.__code__
        # The iteration before which to try: at once where it is known to pay.
        self.due = 0 if length >= _LONG or _loops.get(id(self.code)) else _LONG

    def runs_first(self, *given: Iterator[Any]) -> bool:
        """Run it as Python if it pays from the first iteration on."""
        return not self.due and self.runs(*given)

    def runs(self, *given: Iterator[Any]) -> bool:
        """Run it as Python, over what a `for` loop has left. False if something traced is about."""
        code, conditional = closed_code()
        if code.tries.get(self.code, 0) >= _TRIES:
            return False
        cells: dict[str, CellType] = {}
        for part in self.parts:
            cells |= zip(part.__code__.co_freevars, part.__closure__ or (), strict=True)
        unbound = {
            name: (cell, cell.cell_contents)
            for name, cell in cells.items()
            if type(cell.cell_contents) is Undefined
        }
        for cell, _ in unbound.values():
            del cell.cell_contents
        try:
            loop = self._loop(code, conditional, cells, given)
            if loop is None:
                code.tries[self.code] = code.tries.get(self.code, 0) + 1
                return False
            loop(*given)
        except NameError as error:
            if type(error) is NameError and error.name in unbound:
                unbound[error.name][1].refuse()
            raise
        finally:
            for name, cell in cells.items():
                if cell == _EMPTY:
                    cell.cell_contents = unbound[name][1] if name in unbound else Undefined(name)
        return True

    def _loop(
        self,
        code: ClosedCode,
        conditional: bool,
        cells: dict[str, CellType],
        given: tuple[Any, ...],
    ) -> Any:
        if not code.consists_of_data(given, _ROOM):
            return None
        codes: set[CodeType] = set()
        for part in self.parts:
            key = (id(part.__code__), *map(id, part.__closure__ or ()))
            known = code.closed(part, _ROOM, key)
            if known is None or (known.raises and conditional):
                return None
            codes |= known.codes
        if id(self.code) not in _loops:
            first = self.parts[0].__code__.co_firstlineno
            _loops[id(self.code)] = plain_code(
                self.code, cells, lambda definition: plain_loop(definition, first, cells)
            )
        plain = _loops[id(self.code)]
        if plain is None:
            return None
        own = tuple(cells[name] for name in plain.co_freevars)
        loop = FunctionType(plain, self.parts[0].__globals__, plain.co_name, None, own)
        return without_watching(codes, loop)


def rest_of(iterable: Any, body: Any) -> Rest:
    return Rest(body, length=length_hint(iterable, 0))


def runs_as_python(function: Any, given: tuple[Any, ...]) -> bool:
    """Whether nothing traced is reached by a function that was written in the middle of another one."""
    code, conditional = closed_code()
    if not code.consists_of_data(given, _ROOM):
        return False
    key = (id(function.__code__), *map(id, function.__closure__ or ()))
    known = code.closed(function, _ROOM, key)
    return known is not None and not (known.raises and conditional)
