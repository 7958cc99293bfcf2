"""Algebraic rules written as one line of text: `pattern("mul(x, 1) -> x")`.

    rule    = call "->" term
    term    = call | literal | name
    call    = op "(" pattern, ... ")"            ops without attributes
    name    = a variable, in the pattern optionally with a kind: x:int (signed or not), x:signed,
              x:uint, x:float, x:bool; a name that occurs twice must be the same value
    literal = 0, -1, 0.5, -0.0, true, false      a constant all of whose elements equal it

Literals are exact: `0` does not match -0.0, and numbers do not match bools. In the replacement a
literal has the type of the whole result. Operands of commutative ops match in both orders.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Hashable, Iterator
from typing import Any

from ...graph import Op, Value
from ...opdef import OPS
from ...record import record
from .rewrite import SAME, Replacement, Rewriter, Rule, literal_key, uniform

_KINDS = {"": "biuf", "int": "iu", "signed": "i", "uint": "u", "float": "f", "bool": "b"}
_WORD = re.compile(r"\s*(->|[(),:]|[a-z_]\w*|-?\d+(?:\.\d+)?)")


@record
class _Name:
    name: str
    kinds: str


@record
class _Literal:
    value: bool | int | float


@record
class _Call:
    op: str
    args: tuple[_Term, ...]


_Term = _Name | _Literal | _Call


def pattern(text: str) -> list[Rule]:
    """The rules that `text` stands for: one for each order of commutative operands."""
    words = _WORD.findall(text)
    if "".join(words) != text.replace(" ", ""):
        raise ValueError(f"not a rule: {text!r}")
    words.reverse()
    left = _term(words)
    if not isinstance(left, _Call) or words.pop() != "->":
        raise ValueError(f"not a rule: {text!r}")
    right = _term(words)
    if words:
        raise ValueError(f"not a rule: {text!r}")
    return [_rule(order, right) for order in dict.fromkeys(_orders(left))]


def _term(words: list[str]) -> _Term:
    word = words.pop()
    if word in ("true", "false"):
        return _Literal(word == "true")
    if word[0] in "-0123456789":
        return _Literal(float(word) if "." in word else int(word))
    if words and words[-1] == "(":
        words.pop()
        args = [_term(words)]
        while words.pop() == ",":
            args.append(_term(words))
        return _Call(word, tuple(args))
    if words and words[-1] == ":":
        words.pop()
        return _Name(word, _KINDS[words.pop()])
    return _Name(word, _KINDS[""])


def _orders(term: Any) -> Iterator[Any]:
    if not isinstance(term, _Call):
        yield term
        return
    for args in itertools.product(*(list(_orders(a)) for a in term.args)):
        yield _Call(term.op, args)
        if OPS[term.op].commutative:
            yield _Call(term.op, (args[1], args[0]))


def _rule(left: _Call, right: _Term) -> Rule:
    def apply(b: Rewriter, op: Op) -> Replacement:
        names: dict[str, Value] = {}
        for part, value in zip(left.args, op.operands, strict=True):
            if not _matches(part, value, names):
                return None
        return _build(b, right, op, names)

    return Rule(left.op, _anchor(left), apply)


def _anchor(call: _Call) -> tuple[int, Hashable] | None:
    for i, arg in enumerate(call.args):
        if isinstance(arg, _Call):
            return (i, arg.op)
        if isinstance(arg, _Literal):
            return (i, literal_key(arg.value))
    names = [arg.name for arg in call.args if isinstance(arg, _Name)]
    return (0, SAME) if len(names) == 2 and names[0] == names[1] else None


def _matches(term: _Term, value: Value, names: dict[str, Value]) -> bool:
    if isinstance(term, _Name):
        bound = names.setdefault(term.name, value)
        return bound is value and value.dtype.kind in term.kinds
    if isinstance(term, _Literal):
        element = uniform(value)
        return element is not None and literal_key(element.item()) == literal_key(term.value)
    op = value.op
    if op is None or op.definition.name != term.op:
        return False
    for part, operand in zip(term.args, op.operands, strict=True):
        if not _matches(part, operand, names):
            return False
    return True


def _build(b: Rewriter, term: _Term, op: Op, names: dict[str, Value]) -> Value:
    if isinstance(term, _Name):
        return names[term.name]
    if isinstance(term, _Literal):
        return b.full_like(op.results[0], term.value)
    value: Value = b.op(term.op, *(_build(b, arg, op, names) for arg in term.args))
    return value
