"""Elementwise functions that a module calls, instead of having them written out at every use.

    define internal fastcc <16 x float> @tanh.16.0(<16 x float> %x0) { ... }

LLVM's time grows with the instructions, and more than in proportion with those of one loop. So a
function that a kernel, or the kernels so far, have many times over is emitted once and called, on whole
vectors: what a call costs is little beside the work of one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, MutableMapping, MutableSet, Sequence

from ..math.functions import Elementwise
from .builder import symbol
from .instructions import type_text
from .scalars import ScalarEmitter
from .text import Operand, TargetLike, TextEmitter

WRITTEN_OUT = 300  # instructions of one function that a module has written out, about, at most
RARE = 4  # a function with a rare part is so much longer than the part that always runs


class FunctionTable:
    """The called functions of one module. `texts` are their definitions, in order of first use."""

    def __init__(
        self,
        target: TargetLike,
        declarations: MutableSet[str],
        definitions: MutableMapping[str, str],
    ) -> None:
        self.target = target
        self.declarations = declarations
        self.definitions = definitions
        self.texts: list[str] = []
        self._names: dict[tuple[Elementwise, int], str] = {}
        self._written: Counter[Elementwise] = Counter()

    def called(self, uses: Iterable[Elementwise]) -> frozenset[Elementwise]:
        """Which of a kernel's functions it should call; the others count as written out in it."""
        functions = set()
        for function, count in Counter(uses).items():
            length = count * function.size * (RARE if function.rare else 1)
            if self._written[function] + length > WRITTEN_OUT and len(function.params) < 4:
                functions.add(function)
            else:
                self._written[function] += length
        return frozenset(functions)

    def name(self, function: Elementwise, lanes: int) -> str:
        """The name of the function at this width, which is emitted when it is first asked for."""
        name = self._names.get((function, lanes))
        if name is None:
            name = f"{function.name}.{lanes}.{len(self._names)}"
            self._names[function, lanes] = name
            self.texts.append(self._emit(function, lanes, name))
        return name

    def _emit(self, function: Elementwise, lanes: int, name: str) -> str:
        b = TextEmitter(
            self.target, lanes, declarations=self.declarations, definitions=self.definitions
        )
        e = ScalarEmitter(b)
        params = b.takes(**{f"x{k}": e.type(p.dtype) for k, p in enumerate(function.params)})
        for param, value in zip(function.params, params, strict=True):
            e.bind(param, value)
        result = e.emit(function.root)
        b.ret(result)
        return f"define internal fastcc {result.type} @{name}{b.unnamed()}".rstrip()


class Calls:
    """The functions that one kernel calls."""

    def __init__(self, table: FunctionTable, called: frozenset[Elementwise]) -> None:
        self.table = table
        self.called = called

    def call(
        self, function: Elementwise, operands: Sequence[Operand], b: TextEmitter, wide: TextEmitter
    ) -> Operand:
        """Write a call into `b`, at the width of `wide`, which emits what stands there."""
        uniform = all(x.uniform for x in operands)
        lanes = 1 if uniform else wide.width
        arguments = [
            x.value if uniform else wide.spread(x, p.dtype)
            for p, x in zip(function.params, operands, strict=True)
        ]
        name = self.table.name(function, lanes)
        type = type_text(function.root.dtype, lanes)
        return Operand(b.evaluate(type, symbol(name), *arguments), uniform)
