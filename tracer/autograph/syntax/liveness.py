"""Which variables are read later: only those are merged after a branch and carried by a loop.

Runs backwards over a function without jumps (see `jumps`) and leaves on every `if`, `try` and loop
the set `live`: what is read after it, for a loop also by its next iteration. The body of a `try`
gives values to `kept` before its last statement, which are read after that has failed.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .jumps import For, Guard, While
from .names import bound, escaping, own_nodes, reads


def mark(body: Sequence[ast.stmt], always: set[str]) -> None:
    """`always` are variables that others may read at any time: they are live everywhere."""
    _Liveness(always | escaping(body)).block(body, set())


def live(node: ast.stmt) -> set[str]:
    names: set[str] = node.live  # type: ignore[attr-defined]
    return names


class _Liveness:
    def __init__(self, always: set[str]) -> None:
        self.always = always

    def block(self, body: Sequence[ast.stmt], out: set[str]) -> set[str]:
        for statement in reversed(body):
            out = self.statement(statement, out)
        return out

    def statement(self, node: ast.stmt, out: set[str]) -> set[str]:
        """What is live before `node` if `out` is live after it."""
        if isinstance(node, ast.If):
            node.live = out | self.always  # type: ignore[attr-defined]
            tests = set(node.flags) if isinstance(node, Guard) else reads([node.test])
            return tests | self.block(node.body, out) | self.block(node.orelse, out)
        if isinstance(node, While):
            return self.loop(node, node.body, reads([node.test]) | set(node.flags) | out)
        if isinstance(node, For):
            names = bound([node.target])
            entry = self.loop(node, node.body, set(node.flags) | out, names)
            return entry | reads([node.iter, node.target])
        if isinstance(node, ast.Try) and node.handlers:
            after = out | reads(node.finalbody)
            node.live = after | self.always  # type: ignore[attr-defined]
            ends = [self.block(handler.body, after) for handler in node.handlers]
            before = set[str]().union(*ends)
            node.kept = bound(node.body[:-1]) & (before | self.always)  # type: ignore[attr-defined]
        if isinstance(node, (ast.Try, ast.With, ast.AsyncWith, ast.Match)):
            inside = out | reads([node])  # an exception may lead from anywhere to anywhere
            for child in own_nodes([node]):
                if isinstance(child, (ast.Try, ast.With, ast.AsyncWith)):
                    self.block(child.body, inside)
                if isinstance(child, ast.Try):
                    self.block(child.orelse, inside)
                    self.block(child.finalbody, inside)
                if isinstance(child, (ast.ExceptHandler, ast.match_case)):
                    self.block(child.body, inside)
            return inside
        return (out - self.overwritten(node)) | reads([node])

    def loop(
        self,
        node: While | For,
        body: Sequence[ast.stmt],
        head: set[str],
        first: set[str] = frozenset(),  # type: ignore[assignment]
    ) -> set[str]:
        """`first` are the names that each iteration binds before its body."""
        while True:
            larger = head | (self.block(body, head) - first)
            if larger == head:
                node.live = head | self.always  # type: ignore[union-attr]
                return head
            head = larger

    def overwritten(self, node: ast.stmt) -> set[str]:
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets = [node.target]
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)):
            return bound([node])
        else:
            return set()
        names = set()
        for target in targets:
            for child in ast.walk(target):
                if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                    names.add(child.id)
        return names
