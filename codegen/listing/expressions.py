"""Scalar expressions as lines of text: what is used twice, or is long, has a line and a name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ...ir.types import dtype_name
from ..loop_ir.index import Data, Index, Mod, Var
from ..loop_ir.kernel import Array
from ..scalar import Expr, LoopBody

_LONGEST = 72  # characters of an expression in a line
_ATOMS = frozenset(("const", "var", "result"))
_SHOWN_NUMBERS = 6  # of a table
_INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "rem": "%",
    "and": "&",
    "or": "|",
    "xor": "^",
    "shl": "<<",
    "lshr": ">>>",
    "ashr": ">>",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
}
_PREFIX = {"neg": "-", "not": "~"}


class Names:
    """What arrays, loop variables and values are called in one listing. `inputs` and `outputs` are the
    names of those, by position."""

    def __init__(self, inputs: Sequence[str] = (), outputs: Sequence[str] = ()) -> None:
        self._given = {"input": inputs, "output": outputs}
        self._names: dict[Any, str] = {}
        self._taken: set[str] = set()

    def array(self, array: Array) -> str:
        """The name of an array: an argument's, a value's, or one with a number."""
        return self._names.get(array) or self._new(array, self._array_hint(array))

    def var(self, var: Any) -> str:
        """The name of a loop variable, or of a variable of an expression."""
        if var in self._names:
            return self._names[var]
        hint = getattr(var, "name", None) or getattr(var, "hint", "") or "c"
        return self._new(var, hint if isinstance(hint, str) else "c")

    def call(self, what: Any, name: str) -> str:
        """Give `what` a name that something else may have, too."""
        self._names[what] = name
        return name

    def fresh(self, hint: str) -> str:
        """A name that nothing has."""
        return self._new(object(), hint, numbered=True)

    def _array_hint(self, array: Array) -> str:
        given = self._given.get(array.kind, ())
        if 0 <= array.position < len(given) and given[array.position]:
            part = "_im" if array.start else ""
            return given[array.position] + part
        if array.kind in ("input", "output"):
            return f"{array.kind}{array.position}"
        return array.name or array.kind

    def _new(self, what: Any, hint: str, numbered: bool = False) -> str:
        hint = "".join(c if c.isalnum() or c in "_/" else "_" for c in hint)
        name = f"{hint}0" if numbered else hint
        count = 0
        while name in self._taken:
            count += 1
            name = f"{hint}{count}"
        self._taken.add(name)
        self._names[what] = name
        return name


class Expressions:
    """The text of expressions; `lines` gets those that values with names need, all of those that are
    read from memory among them if `reads` is true."""

    def __init__(self, names: Names, reads: bool = False) -> None:
        self.names = names
        self._reads = reads
        self._texts: dict[Expr, str] = {}
        self._carries: dict[Expr, list[str]] = {}  # of loops

    def bind(self, expr: Expr, text: str) -> None:
        """What a value is called from here on."""
        self._texts[expr] = text

    def value(self, root: Expr, lines: list[str]) -> str:
        """The text of a value, without parentheses around it."""
        order = [*_operands_first(root, self._texts)]
        uses = Counter(a for node in order for a in node.args)
        for node in order:
            if node in self._texts:
                continue
            text = self._node(node, lines)
            named = uses[node] > 1 or len(text) > _LONGEST or (self._reads and node.op == "load")
            if named and node.op not in _ATOMS and node is not root:
                name = self.names.fresh("t")
                lines.append(f"{name} = {text}")
                text = name
            self._texts[node] = text
        return self._texts[root]

    def index(self, index: Index, lines: list[str]) -> str:
        """The text of a position."""
        parts = [
            self._atom(atom, lines) if factor == 1 else f"{factor}*{self._atom(atom, lines)}"
            for atom, factor in index.terms.items()
        ]
        if index.const or not parts:
            parts.append(str(index.const))
        return " + ".join(parts).replace("+ -", "- ")

    def access(self, array: Array, index: Sequence[Index], lines: list[str]) -> str:
        """`array[i, j]`; a number that is known, itself."""
        if array.data is not None and array.size == 1:
            return repr(array.data.item())
        if not index:
            return self.names.array(array)
        return f"{self.names.array(array)}[{', '.join(self.index(i, lines) for i in index)}]"

    def _atom(self, atom: Any, lines: list[str]) -> str:
        if isinstance(atom, Var):
            return self.names.var(atom)
        if isinstance(atom, Data):
            return _grouped(self.value(atom.expr, lines))
        sign = "%" if isinstance(atom, Mod) else "//"
        return f"({_grouped(self.index(atom.index, lines))} {sign} {atom.n})"

    def _node(self, node: Expr, lines: list[str]) -> str:
        args = [self._texts[a] for a in node.args]
        match node.op:
            case "const":
                return repr(node.attr)
            case "var":
                return self.names.var(node.attr)
            case "load":
                text = self.access(node.attr.array, node.attr.index, lines)
                return f"{text} if {args[0]} else 0" if args else text
            case "index":
                return self.index(node.attr, lines)
            case "call":
                return f"{node.attr.name}({', '.join(args)})"
            case "loop":
                return self._loop(node, args, lines)
            case "result":
                return self._carries[node.args[0]][node.attr]
            case "select":
                return f"{_grouped(args[1])} if {args[0]} else {_grouped(args[2])}"
            case "convert":
                return f"{dtype_name(node.dtype)}({args[0]})"
            case "bounded":
                check = "clamped to" if node.attr.clip else "checked against"
                return f"({args[0]}: {check} {node.attr.size})"
            case "demanded":
                otherwise = "an error" if node.attr.site else "it is told"
                return f"({args[0]}: if {args[1]}, else {otherwise})"
            case "table":
                shown = ", ".join(map(repr, node.attr[:_SHOWN_NUMBERS]))
                more = ", ..." if len(node.attr) > _SHOWN_NUMBERS else ""
                return f"[{shown}{more}][{args[0]}]"
        if node.op in _INFIX and len(args) == 2:
            return f"{_grouped(args[0])} {_INFIX[node.op]} {_grouped(args[1])}"
        if node.op in _PREFIX:
            return f"{_PREFIX[node.op]}{_grouped(args[0])}"
        return f"{node.op}({', '.join(args)})"

    def _loop(self, node: Expr, starts: list[str], lines: list[str]) -> str:
        body: LoopBody = node.attr
        carries = [self.names.fresh("c") for _ in body.params]
        self._carries[node] = carries
        lines.append(f"{', '.join(carries)} = {', '.join(starts)}")
        outside, self._texts = self._texts, dict(self._texts)
        for param, name in zip(body.params, carries, strict=True):
            self._texts[param] = name
        before: list[str] = []
        test = self.value(body.test, before)
        inside = [*before, f"if not ({test}): break"] if before else []
        new = ", ".join(self.value(value, inside) for value in body.new)
        lines.append("while True:" if before else f"while {test}:")
        lines += [f"  {line}" for line in (*inside, f"{', '.join(carries)} = {new}")]
        self._texts = outside
        return ", ".join(carries)


def _grouped(text: str) -> str:
    """In parentheses, unless it is one word, call or element."""
    depth = 0
    for c in text:
        depth += (c in "([") - (c in ")]")
        if c == " " and depth == 0:
            return f"({text})"
    return text


def _operands_first(root: Expr, known: dict[Expr, str]) -> Iterator[Expr]:
    seen: set[Expr] = set()
    stack = [(root, False)]
    while stack:
        node, done = stack.pop()
        if done:
            yield node
        elif node not in seen and node not in known:
            seen.add(node)
            stack.append((node, True))
            stack += [(a, False) for a in reversed(node.args)]
