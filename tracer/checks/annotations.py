"""Annotations of shapes and dtypes, as the package jaxtyping writes them, checked while tracing.

    @jt.jit
    def f(x: Float[np.ndarray, "batch n"], w: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "batch k"]:

Whatever has `dtypes` and a `dim_str` is such an annotation; the package need not be there. Names of dims
are one size in all arguments and the result of a call. `*n` stands for any dims, `...` for any without a
name, `_` for one, `#n` for n or 1, and what is no name is computed from names: `n+1`.
"""

from __future__ import annotations

import ast
import inspect
import operator
import typing
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ir.types import dtype_name
from .shapes import fail

_OPERATORS: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


class Annotations:
    """The annotations of a function that can be checked, and the sizes that names have in one call."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name = getattr(function, "__name__", "the function")
        self.wanted = _annotations(function)
        self.signature = inspect.signature(function) if self.wanted else None
        self.sizes: dict[str, Any] = {}

    def arguments(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """FailedAssertion if an argument is not what its annotation says."""
        if self.signature is None:
            return
        self.sizes = {}
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError:
            return  # the call itself will say so
        for name, value in bound.arguments.items():
            if name in self.wanted:
                self._check(value, self.wanted[name], f"argument {name} of {self.name}")

    def result(self, value: Any) -> None:
        """The same of what it returns."""
        if "return" in self.wanted:
            self._check(value, self.wanted["return"], f"the result of {self.name}")

    def _check(self, value: Any, wanted: Any, what: str) -> None:
        if typing.get_origin(wanted) is tuple:
            parts = typing.get_args(wanted)
            if isinstance(value, tuple) and len(parts) == len(value):
                for k, (item, part) in enumerate(zip(value, parts, strict=True)):
                    self._check(item, part, f"item {k} of {what}")
        elif _is_array_type(wanted) and hasattr(
            np.asarray(value) if _plain(value) else value, "shape"
        ):
            self._check_array(value, wanted, what)

    def _check_array(self, value: Any, wanted: Any, what: str) -> None:
        shape, have = np.shape(value), getattr(value, "dtype", None) or np.asarray(value).dtype
        said = f"{getattr(wanted, '__name__', wanted)}"
        names = wanted.dtypes
        if isinstance(names, (tuple, list)) and not any(_is_of(have, one) for one in names):
            fail(f"{what} has dtype {have}, its annotation is {said}", {"value": value})
        if not self._fits(shape, wanted.dim_str.split()):
            known = {k: v for k, v in self.sizes.items() if k in wanted.dim_str and v != ()}
            where = f", where {', '.join(f'{k} is {v}' for k, v in known.items())}" if known else ""
            fail(
                f"{what} has shape {list(shape)}, its annotation is {said}{where}", {"value": value}
            )

    def _fits(self, shape: tuple[int, ...], dims: list[str]) -> bool:
        some = [k for k, dim in enumerate(dims) if dim == "..." or dim.startswith(("*", "#*"))]
        if some:
            at, more = some[0], len(shape) - len(dims) + 1
            if more < 0 or len(some) > 1:
                return False
            name, middle = dims[at].lstrip("#*"), shape[at : at + more]
            if name != "..." and self.sizes.setdefault(name, middle) != middle:
                return False
            dims = dims[:at] + dims[at + 1 :]
            shape = shape[:at] + shape[at + more :]
        return len(dims) == len(shape) and all(map(self._fits_one, shape, dims))

    def _fits_one(self, size: int, dim: str) -> bool:
        dim = dim.rpartition("=")[2]
        if dim.startswith("#"):
            if size == 1:
                return True
            dim = dim[1:]
        if dim.startswith("_"):
            return True
        if dim.isidentifier():
            known: int = self.sizes.setdefault(dim, size)
            return known == size
        wanted = self._computed(dim)
        return wanted is None or wanted == size

    def _computed(self, dim: str) -> int | None:
        """The size that an expression of names stands for; None where that is not known."""

        def value(node: ast.AST) -> int | None:
            if isinstance(node, ast.Constant) and isinstance(node.value, int):
                return node.value
            if isinstance(node, ast.Name):
                return self.sizes.get(node.id)
            if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
                left, right = value(node.left), value(node.right)
                if left is not None and right is not None:
                    return _OPERATORS[type(node.op)](left, right)
            return None

        try:
            return value(ast.parse(dim, mode="eval").body)
        except (SyntaxError, ZeroDivisionError):
            return None


def _annotations(function: Callable[..., Any]) -> dict[str, Any]:
    """Those that are, or have in them, types of arrays."""
    raw = getattr(function, "__annotations__", None)
    if not isinstance(raw, dict) or not raw:
        return {}
    if any(isinstance(annotation, str) for annotation in raw.values()):
        try:
            raw = inspect.get_annotations(function, eval_str=True)
        except Exception:  # names for type checkers alone
            return {}
    return {name: wanted for name, wanted in raw.items() if _mentions(wanted)}


def _mentions(wanted: Any) -> bool:
    parts = typing.get_args(wanted) if typing.get_origin(wanted) is tuple else (wanted,)
    return any(_is_array_type(part) for part in parts)


def _is_array_type(wanted: Any) -> bool:
    return isinstance(getattr(wanted, "dim_str", None), str) and hasattr(wanted, "dtypes")


def _plain(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex))


def _is_of(have: Any, wanted: Any) -> bool:
    """Whether a dtype has this name, or one that fits the pattern."""
    name = str(np.dtype(have)) if np.dtype(have).kind != "V" else dtype_name(have)
    match = getattr(wanted, "fullmatch", None)
    return bool(match(name)) if match else name == str(wanted)
