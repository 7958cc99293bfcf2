"""`break`, `continue` and early `return` become flags, so that every statement has one way out.

    while c:                       _jt_break_1 = False
        if p:                      while [not _jt_break_1 and] c:
            break         ->           if p:
        rest                               _jt_break_1 = True
                                       else:
                                           rest

What follows a jump is moved into the other branch where that is possible, and guarded by `if not flag`
elsewhere. The flags are ordinary Python values as long as the conditions are.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .names import bound
from .nodes import assign, constant, placed

RETURNED = "_jt_returned"
RESULT = "_jt_result"
_OF_LOOPS = {"break", "continue"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class While(ast.While):
    """A loop that ends when one of `flags` is set.

    `filled` are variables that each `break` and the `else` of the loop give a value: nobody reads
    them in between.
    """

    flags: list[str]
    filled: set[str]


class For(ast.For):
    flags: list[str]
    filled: set[str]


class Guard(ast.If):
    """`if not any(flags): body`. The `skipped` variables are read by nobody where the body is."""

    flags: list[str]
    filled: set[str]
    skipped: set[str]


class Leave(ast.stmt):
    """A jump out of the body of a `try`, which says so by a flag: see `raises`."""

    def __init__(self, flag: str) -> None:
        super().__init__()
        self.flag = flag


def lower(body: list[ast.stmt]) -> tuple[list[ast.stmt], bool]:
    """The body of a function without jumps, and whether its result now is in `_jt_result`."""
    early = any(_escapes(s) for s in body[:-1]) or (
        body and not isinstance(body[-1], ast.Return) and bool(_escapes(body[-1]))
    )
    lowering = _Lowering()
    if not early:
        *rest, last = body
        if isinstance(last, ast.Return):
            return [*lowering.block(rest, None), last], False
        return lowering.block(body, None), False
    return lowering.block(body, None), True


def _escapes(node: ast.AST) -> set[str]:
    """The jumps that leave `node`: return, break, continue, and flags of `Leave`."""
    if isinstance(node, ast.Return):
        return {"return"}
    if isinstance(node, ast.Break):
        return {"break"}
    if isinstance(node, ast.Continue):
        return {"continue"}
    if isinstance(node, Leave):
        return {node.flag}
    if isinstance(node, (_FUNCTIONS, ast.expr)):
        return set()
    if isinstance(node, (ast.While, ast.For, ast.AsyncFor)):
        return (_escape_any(node.body) - _OF_LOOPS) | _escape_any(node.orelse)
    return _escape_any(ast.iter_child_nodes(node)) - _left(node)


def _left(node: ast.AST) -> set[str]:
    """The flags of the jumps that end behind the body of a `try`."""
    return getattr(node, "left", set())


def _escape_any(nodes: object) -> set[str]:
    kinds: set[str] = set()
    for node in nodes:  # type: ignore[attr-defined]
        kinds |= _escapes(node)
    return kinds


def _skipped(left: Sequence[ast.stmt], right: Sequence[ast.stmt]) -> set[str]:
    """What one side of an `if` assigns that the other one, which returns, cannot be asked for."""
    sides = [(left, right), (right, left)]
    names = [
        bound(other) for side, other in sides if always(side) and _escape_any(side) == {"return"}
    ]
    return set().union(*names)


def always(body: Sequence[ast.stmt]) -> bool:
    """Whether control never falls out of the end of `body`, because it jumps."""
    for statement in body:
        if isinstance(statement, (ast.Return, ast.Break, ast.Continue, Leave)):
            return True
        if isinstance(statement, ast.Try) and statement.handlers and not _left(statement):
            first = statement.body[0]
            ends = [handler.body for handler in statement.handlers]
            if (isinstance(first, ast.Raise) or always(statement.body)) and all(map(always, ends)):
                return True
        if isinstance(statement, ast.If) and always(statement.body) and always(statement.orelse):
            return True
        if isinstance(statement, (ast.With, ast.AsyncWith)) and always(statement.body):
            return True
    return False


def _goes_on(statement: ast.Try) -> bool:
    """Whether only what did not fail in a `try` comes to what follows: as good as its `else`."""
    handlers = statement.handlers
    leaves = bool(handlers) and all(always(handler.body) for handler in handlers)
    jumps = _escape_any(statement.body) - _left(statement)
    return leaves and not statement.finalbody and not jumps


class _Loop:
    def __init__(self, number: int) -> None:
        self.broken = f"_jt_break_{number}"
        self.continued = f"_jt_continue_{number}"


class _Lowering:
    def __init__(self) -> None:
        self.count = 0

    def block(self, body: Sequence[ast.stmt], loop: _Loop | None) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for i, statement in enumerate(body):
            rest = list(body[i + 1 :])
            if isinstance(statement, ast.Return):
                value = statement.value or constant(None, statement)
                out.append(assign(RESULT, value, statement))
                out.append(assign(RETURNED, constant(True, statement), statement))
                return out
            if isinstance(statement, Leave):
                out.append(assign(statement.flag, constant(True, statement), statement))
                return out
            if isinstance(statement, (ast.Break, ast.Continue)):
                assert loop is not None
                broken = isinstance(statement, ast.Break)
                name = loop.broken if broken else loop.continued
                out.append(assign(name, constant(True, statement), statement))
                return out
            if rest and isinstance(statement, ast.Try) and _goes_on(statement):
                statement.orelse = [*statement.orelse, *rest]
                rest = []
            kinds = _escapes(statement)
            if isinstance(statement, ast.If) and kinds:
                left, right = statement.body, statement.orelse
                if always(left) and not always(right):
                    right, rest, kinds = [*right, *rest], [], set()
                elif always(right) and not always(left):
                    left, rest, kinds = [*left, *rest], [], set()
                elif always(left):
                    rest = []
                new = ast.If(statement.test, self.block(left, loop), self.block(right, loop))
                new.skipped = _skipped(left, right)  # type: ignore[attr-defined]
                out.append(placed(new, statement))
            else:
                out += self.statement(statement, loop)
                if isinstance(statement, ast.While) and _endless(statement):
                    # Such a loop is left by `return` alone.
                    out.append(assign(RETURNED, constant(True, statement), statement))
                    return out
            if kinds:
                if rest:
                    out.append(self.guard(rest, kinds, loop))
                return out
            if not rest:
                return out
        return out

    def guard(self, body: Sequence[ast.stmt], kinds: set[str], loop: _Loop | None) -> ast.stmt:
        flags = self.flags(kinds, loop)
        otherwise: list[ast.stmt] = []
        if flags == [RETURNED]:  # so that it is known to be set after an `if` that sets it
            otherwise = [assign(RETURNED, constant(True, body[0]), body[0])]
        guard = Guard(constant(True, body[0]), self.block(body, loop), otherwise)
        guard.flags, guard.filled = flags, set()
        # After a `return` nobody reads what the rest of the block would have assigned.
        guard.skipped = bound(body) if flags == [RETURNED] else set()
        return placed(guard, body[0])

    def flags(self, kinds: set[str], loop: _Loop | None) -> list[str]:
        names = [RETURNED] if "return" in kinds else []
        if loop is not None and "break" in kinds:
            names.append(loop.broken)
        if loop is not None and "continue" in kinds:
            names.append(loop.continued)
        return names + sorted(kinds - _OF_LOOPS - {"return"})

    def statement(self, statement: ast.stmt, loop: _Loop | None) -> list[ast.stmt]:
        if isinstance(statement, (ast.While, ast.For)):
            return self.loop(statement, loop)
        if isinstance(statement, ast.If):
            statement.body = self.block(statement.body, loop)
            statement.orelse = self.block(statement.orelse, loop)
        elif isinstance(statement, ast.Try):
            if statement.orelse:
                kinds = _escape_any(statement.body) - _left(statement)
                orelse = self.block(statement.orelse, loop)
                if kinds:
                    orelse = [self.guard(statement.orelse, kinds, loop)]
                statement.orelse = orelse
            statement.body = self.block(statement.body, loop)
            for handler in statement.handlers:
                handler.body = self.block(handler.body, loop)
            statement.finalbody = self.block(statement.finalbody, loop)
        elif isinstance(statement, (ast.With, ast.AsyncWith)):
            statement.body = self.block(statement.body, loop)
        elif isinstance(statement, ast.Match):
            for case in statement.cases:
                case.body = self.block(case.body, loop)
        return [statement]

    def loop(self, statement: ast.While | ast.For, outer: _Loop | None) -> list[ast.stmt]:
        self.count += 1
        inner = _Loop(self.count)
        kinds = _escape_any(statement.body)
        flags = self.flags(kinds - {"continue"}, inner)
        filled = _given_at_breaks(statement) if "break" in kinds else set()
        body = self.block(statement.body, inner)
        if "continue" in kinds:
            body.insert(0, assign(inner.continued, constant(False, statement), statement))
        new: While | For
        if isinstance(statement, ast.While):
            new = While(statement.test, body, [])
        else:
            new = For(statement.target, statement.iter, body, [])
        new.flags, new.filled = flags, filled
        out: list[ast.stmt] = [placed(new, statement)]
        if "break" in kinds:
            out.insert(0, assign(inner.broken, constant(False, statement), statement))
        if statement.orelse:
            if flags:
                guard = Guard(constant(True, statement), self.block(statement.orelse, outer), [])
                guard.flags, guard.filled, guard.skipped = flags, filled, set()
                out.append(placed(guard, statement.orelse[0]))
            else:
                out += self.block(statement.orelse, outer)
        return out


def _given_at_breaks(loop: ast.While | ast.For) -> set[str]:
    """Variables that surely have been assigned at each `break`, and at the end of the `else`."""
    at_breaks: list[set[str]] = []
    target = bound([loop.target]) if isinstance(loop, ast.For) else set()
    _assigned(loop.body, target, at_breaks)
    last = _assigned(loop.orelse, set(), [])
    return set.intersection(*at_breaks, *([] if last is None else [last])) if loop.orelse else set()


def _assigned(
    body: Sequence[ast.stmt], names: set[str], at_breaks: list[set[str]]
) -> set[str] | None:
    """The variables surely assigned at the end of `body`; None if that is never reached."""
    for statement in body:
        if isinstance(statement, (ast.Continue, ast.Return, ast.Raise, Leave)):
            return None
        if isinstance(statement, ast.Break):
            at_breaks.append(names)
            return None
        if isinstance(statement, ast.If):
            ends = [_assigned(b, names, at_breaks) for b in (statement.body, statement.orelse)]
            reached = [end for end in ends if end is not None]
            if not reached:
                return None
            names = set.intersection(*reached)
        elif isinstance(statement, (ast.Assign, ast.FunctionDef)):
            names = names | bound([statement])
        elif "break" in _escapes(statement):
            at_breaks.append(names)
    return names


def _endless(statement: ast.While) -> bool:
    """Whether nothing but `return` ends the loop."""
    test, kinds = statement.test, _escape_any(statement.body)
    forever = isinstance(test, ast.Constant) and bool(test.value)
    return forever and kinds - {"continue"} == {"return"}
