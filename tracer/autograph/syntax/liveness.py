"""Which variables are read later: only those are merged after a branch and carried by a loop.

Runs backwards over a function without jumps (see `jumps`) and leaves on every `if`, `try` and loop
the set `live`: what is read after it, for a loop also by its next iteration. What is read after
the body of a `try` has failed is `failed`. Of loops, what
the statements that follow read is `read`, too: not what functions and handlers may.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .jumps import RETURNED, For, Guard, While
from .names import bound, escaping, reads
from .nodes import walk


def mark(body: Sequence[ast.stmt], always: set[str]) -> None:
    """`always` are variables that others may read at any time: they are live everywhere."""
    _Liveness(always | escaping(body)).block(body, set())


def live(node: ast.stmt) -> set[str]:
    names: set[str] = node.live  # type: ignore[attr-defined]
    return names


def read(node: ast.stmt) -> set[str]:
    names: set[str] = getattr(node, "read", set())
    return names


class _Liveness:
    def __init__(self, always: set[str]) -> None:
        self.always = always
        self.plain: dict[ast.stmt, tuple[set[str], set[str]]] = {}  # loops are gone through again

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
        if isinstance(node, ast.Try):
            return self.attempt(node, out)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            # It may take an exception: what follows comes after any statement of the body.
            return self.fallible(node.body, out, out) | out | reads(node.items)
        if isinstance(node, ast.Match):
            parts = [part for case in node.cases for part in (case.pattern, case.guard)]
            ends = [self.block(case.body, out) for case in node.cases]
            return out.union(reads([node.subject, *parts]), *ends)
        if isinstance(node, ast.Raise):
            return reads([node])
        known = self.plain.get(node)
        if known is None:
            known = self.plain[node] = self.overwritten(node), reads([node])
        overwritten, read = known
        if RETURNED in overwritten:  # nothing but flags and the result is read after it
            out = {n for n in out if n.startswith("_jt_")}
        return (out - overwritten) | read

    def attempt(self, node: ast.Try, out: set[str]) -> set[str]:
        self.block(node.finalbody, out)
        after = out | reads(node.finalbody)
        node.live = after | self.always  # type: ignore[attr-defined]
        kinds = reads(handler.type for handler in node.handlers)
        ends = [self.fallible(handler.body, after, after) for handler in node.handlers]
        failed = kinds.union(*ends) if node.handlers else after
        node.failed = failed | self.always  # type: ignore[attr-defined]
        body = self.fallible(node.body, self.fallible(node.orelse, after, after), failed)
        return body | failed | after

    def fallible(self, body: Sequence[ast.stmt], out: set[str], failed: set[str]) -> set[str]:
        """What is live before a block from any place of which the program may come to where `failed`
        are read."""
        always, self.always = self.always, self.always | failed
        before = self.block(body, out)
        self.always = always
        return before

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
                node.read = head  # type: ignore[union-attr]
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
            for child in walk(target):
                if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                    names.add(child.id)
        return names
