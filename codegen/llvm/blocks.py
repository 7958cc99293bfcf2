"""The blocks of a function that is being written: their lines, the phis of their parameters, loops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from typing import TYPE_CHECKING

from .values import Number, Value, operand_text

if TYPE_CHECKING:
    from .builder import Builder


class Block:
    """A basic block. `params` are values inside it, given by each jump to it."""

    def __init__(self, label: str, params: list[Value]) -> None:
        self.label = label
        self.params = params
        self.incoming: list[tuple[str, list[str]]] = []
        self.lines: list[str] = []
        self.is_placed = False

    def enter(self, origin: str, values: Sequence[Value | Number]) -> None:
        """Note a jump from the block `origin`."""
        texts = [operand_text(p.type, v) for p, v in zip(self.params, values, strict=True)]
        self.incoming.append((origin, texts))

    def text(self) -> str:
        phis = [
            f"  {param.text} = phi {param.type} "
            + ", ".join([f"[ {values[k]}, %{label} ]" for label, values in self.incoming])
            for k, param in enumerate(self.params)
        ]
        return "\n".join([f"{self.label}:", *phis, *self.lines])


class Code:
    """The blocks of one function, which several builders may write, its parameters, and its counter
    of names."""

    def __init__(self) -> None:
        self.numbers = count()
        self.params: dict[str, Value] = {}
        self.start = Block("start", [])  # stands before all else: memory on the stack
        self.blocks: list[Block] = []
        self.here = Block("entry", [])
        self.place(self.here)

    def place(self, block: Block) -> None:
        block.is_placed = True
        self.blocks.append(block)

    def text(self) -> str:
        first, *others = self.blocks
        texts = [block.text() for block in others]
        return "\n".join(["entry:", *self.start.lines, *first.lines, *texts])


class OpenLoop:
    """A loop that is being written (`Builder.loop`). What it carries are its attributes."""

    def __init__(self, builder: Builder, head: Block, names: Iterable[str]) -> None:
        self._builder = builder
        self._head = head
        self._end = builder.later("end")
        self.__dict__.update(zip(names, head.params, strict=True))

    def __getattr__(self, name: str) -> Value:
        raise AttributeError(f"the loop carries no {name}")

    @property
    def values(self) -> list[Value]:
        return self._head.params

    def going(self, condition: Value) -> None:
        """Leave the loop here unless `condition` holds."""
        body = self._builder.later("body")
        self._builder.branch(condition, body, self._end)
        self._builder.at(body)

    def next(self, *values: Value | Number) -> None:
        """The end of an iteration, and what the next one has."""
        self._builder.jump(self._head, *values)

    def repeat(self, condition: Value, *values: Value | Number) -> None:
        """The end of an iteration: another one with these values if `condition` holds."""
        self._builder.fork(condition, self._head, values, self._end)
