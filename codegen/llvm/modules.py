"""Functions under construction, and the text of a module of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from .builder import LIKELY, Builder, Value, symbol


class Function(Builder):
    """One function under construction. Its parameters are `f.args`, or `f.NAME`."""

    def __init__(
        self,
        result: str,
        name: str,
        *,
        internal: bool = False,
        attributes: str = "nounwind",
        noalias: str = "",
        **params: str,
    ) -> None:
        super().__init__()
        self.noalias = noalias  # the parameter that nothing else leads to what is behind it
        self.callees: dict[str, str] = {}  # names and declarations
        self.name = name
        self.result = result
        self.args = self.takes(**params)
        self.internal = internal
        self.attributes = attributes
        self.address = symbol(name)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["code"].params[name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no {name}") from None

    def declare(self, name: str, declaration: str) -> None:
        self.callees[name] = declaration

    def text(self) -> str:
        """The whole definition."""
        linkage = "internal " if self.internal else ""
        text = self.unnamed(noalias=(self.noalias,), attributes=self.attributes)
        return f"define {linkage}{self.result} {self.address.text}{text}"


class Defined(NamedTuple):
    """A function of the module whose text is there: what calls of it must know."""

    name: str
    types: Sequence[str]
    result: str = "void"

    @property
    def address(self) -> Value:
        return symbol(self.name)


class Variable(NamedTuple):
    """A variable of a module, all zeros when the code is loaded, or a constant with this `content`."""

    name: str
    type: str
    internal: bool = True
    align: int = 0
    content: str = ""

    @property
    def address(self) -> Value:
        return symbol(self.name)

    def text(self) -> str:
        linkage = "internal " if self.internal else ""
        start = f"constant {self.type} {self.content}"
        if not self.content:
            start = f"global {self.type} zeroinitializer"
        aligned = f", align {self.align}" if self.align else ""
        return f"{self.address.text} = {linkage}{start}{aligned}"


def declarations(functions: Iterable[Function]) -> dict[str, str]:
    """What functions call that none of them is: names and declarations."""
    functions = list(functions)
    defined = {function.name for function in functions}
    return {
        name: line
        for function in functions
        for name, line in function.callees.items()
        if name not in defined
    }


def module_ir(
    functions: Sequence[Function], objects: Sequence[str] = (), variables: Iterable[Variable] = ()
) -> str:
    """The LLVM text of functions that call each other; `objects` are external symbols."""
    declared = declarations(functions)
    lines = [variable.text() for variable in variables]
    lines += [f"@{name} = external global i8" for name in objects]
    lines += [declared[name] for name in sorted(declared)]
    lines += [function.text() for function in functions]
    return "\n".join([*lines, f"!0 = {LIKELY}", ""])
