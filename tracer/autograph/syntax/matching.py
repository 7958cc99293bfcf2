"""`match` as `if`: its patterns become conditions, which may be traced.

match n:                  _jt_subject = n
    case 0 | 1:     ->    if _jt_subject == 0 or _jt_subject == 1:
        y = 1                 y = 1
    case int(k):          elif isinstance(_jt_subject, int):
        y = k                 k = _jt_subject; y = k

Patterns of mappings and with stars stay with Python; their guards must not be traced.
"""

from __future__ import annotations

import ast
from typing import Any

from .nodes import constant, copied, located

_OF_THEMSELVES = ("bool", "bytearray", "bytes", "complex", "dict", "float", "frozenset", "int") + (
    *("list", "set", "str", "tuple"),
)


class Matching(ast.NodeTransformer):
    def __init__(self) -> None:
        self.count = 0

    def visit_Match(self, node: ast.Match) -> Any:
        node = self.generic_visit(node)  # type: ignore[assignment]
        subject = ast.Name(f"_jt_subject{self.count}", ast.Load())
        self.count += 1
        chain: list[ast.stmt] = []
        for case in reversed(node.cases):
            pattern = _Pattern()
            try:
                conditions = pattern.conditions(case.pattern, subject)
            except _Unsupported:
                return node
            if case.guard is not None:
                conditions.append(_Substitute(pattern.names).visit(copied(case.guard)))
            names = [
                ast.Assign([ast.Name(name, ast.Store())], copied(value))
                for name, value in pattern.names.items()
            ]
            if not conditions:
                chain = [*names, *case.body]
                continue
            test = conditions[0] if len(conditions) == 1 else ast.BoolOp(ast.And(), conditions)
            chain = [located(ast.If(test, [*names, *case.body], chain), case.pattern)]
        start = ast.Assign([ast.Name(subject.id, ast.Store())], node.subject)
        return [located(part, node) for part in (start, *chain)]


class _Unsupported(Exception):
    pass


class _Substitute(ast.NodeTransformer):
    """In a guard, names that the pattern has bound."""

    def __init__(self, names: dict[str, ast.expr]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return copied(self.names.get(node.id, node))


class _Pattern:
    """What a pattern asks, and the names that it gives to parts of the subject."""

    def __init__(self) -> None:
        self.names: dict[str, ast.expr] = {}

    def conditions(self, pattern: ast.pattern, subject: ast.expr) -> list[ast.expr]:
        found: list[ast.expr] = getattr(self, type(pattern).__name__, self._none)(pattern, subject)
        return [located(condition, pattern) for condition in found]

    def _none(self, pattern: ast.pattern, subject: ast.expr) -> list[ast.expr]:
        raise _Unsupported

    def MatchValue(self, pattern: ast.MatchValue, subject: ast.expr) -> list[ast.expr]:
        return [ast.Compare(subject, [ast.Eq()], [pattern.value])]

    def MatchSingleton(self, pattern: ast.MatchSingleton, subject: ast.expr) -> list[ast.expr]:
        return [ast.Compare(subject, [ast.Is()], [ast.Constant(pattern.value)])]

    def MatchAs(self, pattern: ast.MatchAs, subject: ast.expr) -> list[ast.expr]:
        conditions = [] if pattern.pattern is None else self.conditions(pattern.pattern, subject)
        if pattern.name is not None:
            self.names[pattern.name] = subject
        return conditions

    def MatchOr(self, pattern: ast.MatchOr, subject: ast.expr) -> list[ast.expr]:
        before = len(self.names)
        ways = [self.conditions(part, subject) for part in pattern.patterns]
        if len(self.names) > before:
            raise _Unsupported  # each way would bind them to something else
        if not all(ways):
            return []
        parts = [way[0] if len(way) == 1 else ast.BoolOp(ast.And(), way) for way in ways]
        return [ast.BoolOp(ast.Or(), parts)]

    def MatchClass(self, pattern: ast.MatchClass, subject: ast.expr) -> list[ast.expr]:
        call = ast.Call(ast.Name("isinstance", ast.Load()), [subject, pattern.cls], [])
        conditions: list[ast.expr] = [call]
        if pattern.patterns:
            own = isinstance(pattern.cls, ast.Name) and pattern.cls.id in _OF_THEMSELVES
            if not own or len(pattern.patterns) > 1:
                raise _Unsupported  # the class says in __match_args__ which attributes these are
            conditions += self.conditions(pattern.patterns[0], subject)
        for name, part in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
            has = ast.Call(ast.Name("hasattr", ast.Load()), [subject, ast.Constant(name)], [])
            attribute = ast.Attribute(subject, name, ast.Load())
            conditions += [has, *self.conditions(part, attribute)]
        return conditions

    def MatchSequence(self, pattern: ast.MatchSequence, subject: ast.expr) -> list[ast.expr]:
        kinds = ast.Tuple([ast.Name("list", ast.Load()), ast.Name("tuple", ast.Load())], ast.Load())
        is_sequence = ast.Call(ast.Name("isinstance", ast.Load()), [subject, kinds], [])
        length = ast.Call(ast.Name("len", ast.Load()), [subject], [])
        count = constant(len(pattern.patterns), pattern)
        conditions: list[ast.expr] = [is_sequence, ast.Compare(length, [ast.Eq()], [count])]
        for i, part in enumerate(pattern.patterns):
            element = ast.Subscript(subject, constant(i, pattern), ast.Load())
            conditions += self.conditions(part, element)
        return conditions
