"""`raise` under a condition, in a `try` that has handlers, is a jump behind the body, to its handler.

    try:                                try:
        log.append(1)                       _jt_raised_1 = False
        if x < 0:                           log.append(1)
            raise ValueError("no")          if x < 0: _jt_raised_1 = True
        log.append(2)            ->     except ValueError as e: log.append(str(e))
    except ValueError as e:             else:
        log.append(str(e))                  if _jt_raised_1:
                                                try: raise ValueError("no")
                                                except ValueError as e: log.append(str(e))
                                            else:
                                                try: log.append(2)
                                                except ValueError as e: log.append(str(e))

So nothing has to be known before the body runs, and what it has done by then stays done, as in Python.
Which handler takes the exception is seen while tracing: where it is raised now no condition is around.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from .jumps import Leave, always
from .nodes import assign, constant, copied, load, placed


class Raises(ast.NodeTransformer):
    """Inner statements first; those of functions in the function, too."""

    def __init__(self) -> None:
        self.count = 0

    def visit_Try(self, node: ast.Try) -> ast.AST:
        self.generic_visit(node)
        return self._split(node) if node.handlers else node

    def _split(self, node: ast.Try) -> ast.Try:
        """The body ends behind the first statement that may jump. What follows it in the body is tried
        by itself: what may fail in it is a step of its own there (see `runtime.try_stmt`)."""
        for k, statement in enumerate(node.body):
            raising: list[tuple[str, ast.Raise]] = []
            (jumping,) = self._jumping([statement], raising, conditional=False)
            if not raising:
                continue
            rest = node.body[k + 1 :]
            starts = [assign(flag, constant(False, node), node) for flag, _ in raising]
            node.body = [*starts, *node.body[:k], jumping]
            node.left = {flag for flag, _ in raising}  # type: ignore[attr-defined]
            last = always(node.body) and not rest and not node.orelse
            if rest:
                node.orelse = [self._split(_tried(node, rest, node.orelse))]
            for flag, statement in reversed(raising):
                handled: list[ast.stmt] = [_tried(node, [statement], [])]
                if not last:  # who comes there has raised something
                    test = load(flag, statement)
                    handled = [placed(ast.If(test, handled, node.orelse), statement)]
                node.orelse, last = handled, False
            break
        return node

    def _jumping(
        self,
        body: Sequence[ast.stmt],
        raising: list[tuple[str, ast.Raise]],
        conditional: bool = True,
        early: bool = True,
    ) -> list[ast.stmt]:
        """What is raised under no condition stays; and, where a `finally` comes before the exception is
        made now instead of `early`, what might notice."""
        out: list[ast.stmt] = []
        for statement in body:
            if isinstance(statement, (ast.If, ast.For, ast.While)):
                statement.body = self._jumping(statement.body, raising, early=early)
                statement.orelse = self._jumping(statement.orelse, raising, early=early)
            elif isinstance(statement, ast.Try) and not statement.handlers:
                statement.body = self._jumping(statement.body, raising, conditional, early=False)
            elif isinstance(statement, ast.Raise) and conditional and _may_wait(statement, early):
                self.count += 1
                flag = f"_jt_raised_{self.count}"
                raising.append((flag, statement))
                statement = placed(Leave(flag), statement)
            out.append(statement)
        return out


def _may_wait(statement: ast.Raise, early: bool) -> bool:
    """Whether an exception may be made later: nothing but `finally` comes in between."""
    made = statement.exc
    if early or made is None:
        return made is not None
    if isinstance(made, ast.Call) and not made.keywords:
        return all(isinstance(argument, ast.Constant) for argument in made.args)
    return isinstance(made, ast.Name)


def _tried(node: ast.Try, body: list[ast.stmt], orelse: list[ast.stmt]) -> Any:
    """Statements under the same handlers; exceptions of `orelse` are nobody's."""
    return placed(ast.Try(body, copied(node.handlers), orelse, []), node)
