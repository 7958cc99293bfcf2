"""Private names as Python has them inside of a class: its twin is compiled outside of one.

class Filter:
    def step(self, x):
        __gain = self.__gain     ->     _Filter__gain = self._Filter__gain
"""

from __future__ import annotations

import ast
from typing import Any

from .nodes import copied

_FIELDS = frozenset({"id", "attr", "arg", "name", "asname", "rest", "names", "kwd_attrs"})


def mangled(node: Any, class_name: str | None) -> Any:
    """A function of the class with private names as Python has them, but for its own. Python sees to
    those of a class inside."""
    if class_name is None or not class_name.strip("_"):
        return node
    node = copied(node)
    prefix = f"_{class_name.lstrip('_')}"

    def private(value: Any) -> Any:
        if isinstance(value, list):
            return [private(item) for item in value]
        is_private = isinstance(value, str) and value[:2] == "__" and value[-2:] != "__"
        return f"{prefix}{value}" if is_private and "." not in value else value

    waiting = list(ast.iter_child_nodes(node))
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, ast.alias) and inner.asname is None:
            if private(inner.name) != inner.name:
                inner.asname = private(inner.name)
        else:
            for field in _FIELDS.intersection(inner._fields):
                if not isinstance(inner, ast.alias) or field == "asname":
                    setattr(inner, field, private(getattr(inner, field)))
        if isinstance(inner, ast.ClassDef):
            waiting += [*inner.decorator_list, *inner.bases, *inner.keywords]
        else:
            waiting += ast.iter_child_nodes(inner)
    return node
