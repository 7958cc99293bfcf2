"""Elementwise functions as units: `tanh` of a value is one node until a target emits it.

    call("tanh", [x])                 # Expr("call", (x,), dtype, Elementwise("tanh", ...))
    function.params, function.root    # its expansion over variables, made once per process

An emitter writes the expansion where it stands, or, where a kernel is full of the same function, once
as a function of its own that is called: a chain of a hundred sines is then one sine to compile.
Constant operands are part of the function, since expansions look at them (`pow(x, 2.5)`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ..scalar import FREE, DType, Expr, const, nodes_of, var
from . import EXPANSIONS


class Elementwise:
    """One elementwise op over given dtypes. Equal functions are the same object, while it is in use.

    `params` are the variables of the expansion `root`. `size` counts the nodes that are work, and
    `rare` says that a slow path is among them, which is a loop.
    """

    __slots__ = ("name", "params", "root", "size", "rare")

    def __init__(self, name: str, operands: tuple[tuple[DType, Any], ...]) -> None:
        self.name = name
        self.params: list[Expr] = []
        arguments = []
        for dtype, value in operands:
            if value is None:
                arguments.append(var((name, len(self.params)), dtype))
                self.params.append(arguments[-1])
            else:
                arguments.append(const(float.fromhex(value), dtype))
        self.root = EXPANSIONS[name](*arguments)
        nodes = nodes_of(self.root)
        self.size = sum(1 for node in nodes if node.op not in FREE)
        self.rare = any(node.op == "loop" for node in nodes)

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(str(p.dtype) for p in self.params)})"


_function = lru_cache(maxsize=1024)(Elementwise)


def call(name: str, operands: Sequence[Expr]) -> Expr:
    """The elementwise op `name` of floats as one node where that is possible."""
    arguments = tuple([(x.dtype, x.attr.hex() if x.op == "const" else None) for x in operands])
    args = tuple([x for x in operands if x.op != "const"])
    if not args:
        return EXPANSIONS[name](*operands)
    function = _function(name, arguments)
    return Expr("call", args, function.root.dtype, function)
