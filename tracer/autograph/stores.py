"""Assignments to elements: an array that NumPy made becomes a traced one when a traced value goes in.

    x[i] = f(a)     ->    _jt_value = f(a)
                          _jt_index0 = i
                          x = _jt_.own(x, (_jt_index0,), _jt_value)
                          x[_jt_index0] = _jt_value

`own` gives `x` itself back unless it has to be replaced. Containers on the way (`layers[k][i] = v`) and
attributes (`self.w[i] = v`) get the new array in its place.
"""

from __future__ import annotations

import ast
import copy
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays.common import array
from ..arrays.table import holds_tracer
from ..indexing.concatenators import c_, r_
from .names import dotted
from .nodes import assign, constant, expression, helper, load, located
from .variables import is_own_array, taken_over

if TYPE_CHECKING:
    from .transform import Transformer

_VALUE, _OLD, _INDEX = "_jt_value", "_jt_old", "_jt_index"
_IN_PLACE: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.iadd,
    ast.Sub: operator.isub,
    ast.Mult: operator.imul,
    ast.Div: operator.itruediv,
    ast.FloorDiv: operator.ifloordiv,
    ast.Mod: operator.imod,
    ast.Pow: operator.ipow,
    ast.MatMult: operator.imatmul,
    ast.BitAnd: operator.iand,
    ast.BitOr: operator.ior,
    ast.BitXor: operator.ixor,
    ast.LShift: operator.ilshift,
    ast.RShift: operator.irshift,
}
_BY_NAME = {f.__name__: f for f in _IN_PLACE.values()}


# What the rewritten code calls


def own(root: Any, indices: Sequence[Any], value: Any) -> Any:
    """What `root` has to be before `root[indices[0]][indices[1]]... = value`."""
    holder: Any = None
    key, inner = None, root
    for k, index in enumerate(indices):
        if is_own_array(inner) and holds_tracer((value, *indices[k:])):
            made = taken_over(inner)
            if holder is None:
                return made
            holder[key] = made
            return root
        if not isinstance(inner, (list, dict)) or k + 1 == len(indices):
            return root
        holder, key, inner = inner, index, inner[index]
    return root


def item(x: Any, index: Any) -> Any:
    """`x[index]`; an array of NumPy's that is indexed by traced values becomes a constant."""
    if x is np.r_ or x is np.c_:
        return (r_ if x is np.r_ else c_)[index]
    if type(x) is np.ndarray and holds_tracer(index if isinstance(index, tuple) else (index,)):
        return array(x)[index]
    return x[index]


def elements(root: Any, indices: Sequence[Any]) -> Any:
    """`root[indices[0]][indices[1]]...`, to be updated and put back: no view of an array of NumPy's,
    which `own` may replace."""
    for index in indices:
        part = item(root, index)
        copied = is_own_array(root) and isinstance(part, type(root))
        root = part.copy() if copied else part
    return root


def update(name: str, old: Any, value: Any) -> Any:
    """`old += value`, or with another operator: what the variable is afterwards."""
    if is_own_array(old) and holds_tracer((value,)):
        old = taken_over(old)
    return _BY_NAME[name](old, value)


def update_elements(name: str, old: Any, value: Any) -> Any:
    """`update` of what `elements` gave."""
    if is_own_array(old) and holds_tracer((value,)):
        old = array(old).copy()
    return _BY_NAME[name](old, value)


# How code is rewritten


class Stores:
    """The assignment statements of a transformer."""

    def __init__(self, transformer: Transformer) -> None:
        self.transformer = transformer

    def assignment(self, node: ast.Assign) -> list[ast.stmt] | None:
        """The statements in place of `node`; None if none of its targets are elements."""
        if not any(map(_has_path, node.targets)):
            return None
        out = [assign(_VALUE, self.transformer.visit(node.value), node)]
        for target in node.targets:
            out += self._store(target, _VALUE)
        return [*out, assign(_VALUE, constant(None, node), node)]

    def update(self, node: ast.AugAssign) -> list[ast.stmt] | None:
        """`x[i] += v`, `x += v` and `self.x += v`. None for what is no name and no path of names."""
        target, visit = node.target, self.transformer.visit
        operation = constant(_IN_PLACE[type(node.op)].__name__, node)
        if not isinstance(target, ast.Subscript):
            if dotted(target) is None:
                return None
            call = helper("update", [operation, visit(_loaded(target)), visit(node.value)], node)
            return [ast.copy_location(ast.Assign([visit(target)], call), node)]
        path = _path(target)
        if path is None:
            return None
        root, levels = path
        out, indices = self._indices(levels)
        elements = helper("elements", [visit(_loaded(root)), _tuple(indices, target)], target)
        out += [assign(_OLD, elements, target), assign(_VALUE, visit(node.value), node)]
        out += self._own(root, indices, _VALUE, target)
        parts = [operation, load(_OLD, target), load(_VALUE, target)]
        call = helper("update_elements", parts, node)
        out.append(ast.copy_location(ast.Assign([self._target(root, indices, target)], call), node))
        nothing = constant(None, node)
        return [*out, assign(_VALUE, nothing, node), assign(_OLD, nothing, node)]

    def _store(self, target: ast.expr, value: str) -> list[ast.stmt]:
        """Assign the variable `value` to a target."""
        if isinstance(target, (ast.Tuple, ast.List)):
            names = [f"{value}_{i}" for i in range(len(target.elts))]
            parts: list[ast.expr] = [ast.Name(n, ast.Store()) for n in names]
            for i, element in enumerate(target.elts):
                if isinstance(element, ast.Starred):
                    parts[i] = ast.Starred(parts[i], ast.Store())
            unpacked = located(ast.Tuple(parts, ast.Store()), target)
            out: list[ast.stmt] = [
                ast.copy_location(ast.Assign([unpacked], load(value, target)), target)
            ]
            for element, name in zip(target.elts, names, strict=True):
                inner = element.value if isinstance(element, ast.Starred) else element
                out += self._store(inner, name)
                out.append(assign(name, constant(None, element), element))
            return out
        path = _path(target)
        if path is None:
            new = ast.Assign([self.transformer.visit(target)], load(value, target))
            return [ast.copy_location(new, target)]
        root, levels = path
        out, indices = self._indices(levels)
        out += self._own(root, indices, value, target)
        new = ast.Assign([self._target(root, indices, target)], load(value, target))
        return [*out, ast.copy_location(new, target)]

    def _indices(self, levels: Sequence[ast.expr]) -> tuple[list[ast.stmt], list[str]]:
        names = [f"{_INDEX}{i}" for i in range(len(levels))]
        pairs = zip(names, levels, strict=True)
        return [assign(n, self.transformer.index(e), e) for n, e in pairs], names

    def _own(
        self, root: ast.expr, indices: Sequence[str], value: str, at: ast.AST
    ) -> list[ast.stmt]:
        """`root = own(root, indices, value)`."""
        transformer = self.transformer
        parts = [transformer.visit(_loaded(root)), _tuple(indices, at), load(value, at)]
        call = helper("own", parts, at)
        if isinstance(root, ast.Name):
            if root.id in transformer.scope.bound:
                return [assign(transformer.mangle(root.id), call, at)]
            return [expression(call)]
        assert isinstance(root, ast.Attribute)
        base = transformer.visit(_loaded(root.value))
        name = constant(transformer.mangle(root.attr), at)
        return [expression(helper("put", [base, name, call], at))]

    def _target(self, root: ast.expr, indices: Sequence[str], at: ast.AST) -> ast.expr:
        target: ast.expr = self.transformer.visit(_loaded(root))
        for i, name in enumerate(indices):
            context = ast.Store() if i + 1 == len(indices) else ast.Load()
            target = ast.copy_location(ast.Subscript(target, load(name, at), context), at)
        return target


def _path(target: ast.expr) -> tuple[ast.expr, list[ast.expr]] | None:
    """`a.b[i][j]` as the expression `a.b` and the indices; None for what else may be assigned to."""
    levels: list[ast.expr] = []
    while isinstance(target, ast.Subscript):
        levels.insert(0, target.slice)
        target = target.value
    return (target, levels) if levels and dotted(target) is not None else None


def _has_path(target: ast.expr) -> bool:
    if isinstance(target, (ast.Tuple, ast.List)):
        return any(map(_has_path, target.elts))
    if isinstance(target, ast.Starred):
        return _has_path(target.value)
    return _path(target) is not None


def _loaded(node: ast.expr) -> ast.expr:
    """The expression that reads what `node` assigns to."""
    new = copy.deepcopy(node)
    if isinstance(new, (ast.Name, ast.Attribute)):
        new.ctx = ast.Load()
    return new


def _tuple(names: Sequence[str], at: ast.AST) -> ast.expr:
    return ast.copy_location(ast.Tuple([load(n, at) for n in names], ast.Load()), at)
