"""The code that hands a helper the variables of the user's function."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import liveness
from .jumps import RESULT
from .names import Own, attributes, bound, changed, own_nodes, reads
from .nodes import constant, expression, helper, load, located, thunk

if TYPE_CHECKING:
    from .transform import Transformer


class StateCode:
    """The code that reads and writes the variables that some statements change."""

    def __init__(
        self, transformer: Transformer, nodes: Sequence[ast.AST], owner: ast.stmt, at: ast.AST
    ) -> None:
        scope = transformer.scope
        own = Own(own_nodes(nodes))
        inside = sorted(changed(own))
        updated = {n for n in inside if n in scope.bound}
        names = sorted(bound(own) & (scope.bound | scope.globals | scope.outer) | updated)
        rebound = bound(own, augmented=False)
        visible = scope.bound | scope.outer | scope.globals
        # Attributes of other objects in each iteration are not tracked.
        stable = visible - set(names)
        assigned = attributes(own)
        members = sorted(
            n for n in assigned | {n for n in inside if "." in n} if n.partition(".")[0] in stable
        )
        values: list[ast.expr] = []
        for name in names:
            if name in scope.bound:
                values.append(load(name, at))
            else:
                values.append(helper("peek", [constant(name, at), thunk(load(name, at))], at))
        for name in members:
            values.append(helper("peek", [constant(name, at), thunk(self.path(name, at))], at))
        get = ast.FunctionDef(
            name="_jt_get",
            args=ast.arguments([], [], None, [], [], None, []),
            body=[ast.Return(ast.Tuple(values, ast.Load()))],
            decorator_list=[],
        )
        targets: list[ast.expr] = [ast.Name(n, ast.Store()) for n in names]
        setters: list[ast.stmt] = []
        for i, name in enumerate(members):
            base, _, attr = name.rpartition(".")
            item = ast.Subscript(
                ast.Name("_jt_v", ast.Load()), ast.Constant(len(names) + i), ast.Load()
            )
            setters.append(
                expression(
                    located(
                        helper(
                            "put",
                            [
                                self.path(base, at),
                                constant(attr, at),
                                item,
                            ],
                            at,
                        ),
                        at,
                    )
                )
            )
        body: list[ast.stmt] = [*transformer.declarations(set(names), at)]
        if targets:
            state = ast.Subscript(
                ast.Name("_jt_v", ast.Load()),
                ast.Slice(None, ast.Constant(len(names))),
                ast.Load(),
            )
            body.append(ast.Assign([ast.Tuple(targets, ast.Store())], state))
        body += setters
        put = ast.FunctionDef(
            name="_jt_set",
            args=ast.arguments([], [ast.arg("_jt_v")], None, [], [], None, []),
            body=[*body, ast.Pass()],
            decorator_list=[],
        )
        paths: list[ast.expr] = []
        for name in inside:
            paths.append(helper("peek", [constant(name, at), thunk(self.path(name, at))], at))
        self.functions: list[ast.stmt] = [located(get, at), located(put, at)]
        live, read = liveness.live(owner), liveness.read(owner)
        live_mask = tuple(n in live for n in names) + tuple(True for _ in members)
        read_mask = tuple(n in read for n in (*names, *members))
        filled = {RESULT}.union(*transformer.filled)
        filled_mask = tuple(n in filled for n in names) + tuple(False for _ in members)
        rebound |= assigned
        rebound_mask = tuple(n in rebound for n in (*names, *members))
        about = helper(
            "State",
            [
                constant((*names, *members), at),
                load("_jt_get", at),
                load("_jt_set", at),
                constant(live_mask, at),
                constant(rebound_mask, at),
                constant(filled_mask, at),
                constant(read_mask, at),
                constant(tuple(inside), at),
                thunk(ast.Tuple(paths, ast.Load())),
                thunk(self.roots(nodes, at)),
            ],
            at,
        )
        self.arguments: list[ast.expr] = [located(about, at)]

    @staticmethod
    def roots(nodes: Sequence[ast.AST], at: ast.AST) -> ast.expr:
        """Pairs of the names that are read and their values."""
        pairs: list[ast.expr] = []
        for name in sorted(n for n in reads(nodes) if not n.startswith("_jt_")):
            value = thunk(load(name, at))
            peeked = helper("peek", [constant(name, at), value], at)
            pairs.append(ast.Tuple([constant(name, at), peeked], ast.Load()))
        return located(ast.Tuple(pairs, ast.Load()), at)

    @staticmethod
    def path(name: str, at: ast.AST) -> ast.expr:
        first, *attrs = name.split(".")
        node = load(first, at)
        for attr in attrs:
            node = ast.Attribute(node, attr, ast.Load())
        return located(node, at)
