"""Operators of users' classes: their methods are transformed, as functions are that are called.

    a + b       ->   _jt_.binary("add", a, b)      the twins of a user's `__add__` and `__radd__`
    len(a)      ->   special(len, ...)(a)          that of `__len__`

Numbers, arrays and containers go Python's way at once.
"""

from __future__ import annotations

import dataclasses
import math
import operator
from collections import deque
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from ....ir.record import record
from ...arrays.python_operators import BINARY, COMPARISONS, UNARY
from ...captures.paths import is_user_module
from ...containers.elements.questions import serve_equality
from ...containers.objects import python_class
from ...core.tracers import Tracer
from ..texts import remainder

_ORDINARY = frozenset(
    {Tracer, bool, int, float, complex, str, bytes, tuple, list, dict, set, frozenset, deque, range}
    | {type(None), np.ndarray, np.float64, np.float32, np.int64, np.int32, np.bool_, FunctionType}
)


@record
class Operator:
    """An operator, the methods of its left and of its right operand, and how it is written."""

    function: Callable[[Any, Any], Any]
    forward: str
    backward: str
    symbol: str


_SYMBOLS = dict(
    zip(
        (*BINARY, "matmul", *COMPARISONS),
        "+ - * / // % ** & | ^ << >> @ < <= > >= == !=".split(),
        strict=True,
    )
)
_REFLECTED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
_OPERATORS = {
    name: Operator(
        remainder if name == "mod" else getattr(operator, f"__{name}__"),
        f"__{name}__",
        f"__{_REFLECTED.get(name, 'r' + name)}__",
        symbol,
    )
    for name, symbol in _SYMBOLS.items()
}
NAMES = {symbol: name for name, symbol in _SYMBOLS.items()}
BY_FUNCTION: dict[Any, str] = {getattr(operator, f"__{n}__"): n for n in (*_SYMBOLS, *UNARY)}
_twins: list[Callable[[FunctionType], Any]] = []


def serve(twin: Callable[[FunctionType], Any]) -> None:
    """What makes the twin of a function: it lies above."""
    _twins[:] = [twin]


def twin(function: Any) -> Any:
    """The twin of a method; what is no function of Python's stays as it is."""
    return _twins[0](function) if type(function) is FunctionType else function


def of_users(x: Any, name: str) -> Callable[..., Any] | None:
    """The twin of the special method `name` that a class of the user's defines."""
    kind = type(x)
    if kind in _ORDINARY:
        return None
    kind = python_class(x)
    found = getattr(kind, name, None)
    if type(found) is not FunctionType:
        return None
    module = found.__globals__.get("__name__")
    if module != "functools" and not is_user_module(module):
        return None
    if found.__code__.co_filename == "<string>" and dataclasses.is_dataclass(kind):
        return _of_dataclass(kind, name) or found
    return twin(found)


def _of_dataclass(kind: type, name: str) -> Callable[..., Any] | None:
    """A comparison that `dataclass` has written: of the fields as tuples."""
    if name[2:-2] not in COMPARISONS:
        return None
    where: Any = next(cls for cls in kind.__mro__ if name in cls.__dict__)
    fields = [f.name for f in dataclasses.fields(where) if f.compare]
    symbol = _SYMBOLS[name[2:-2]]

    def compare(x: Any, y: Any) -> Any:
        if python_class(x) is not python_class(y):
            return NotImplemented
        return _tuples[0](
            symbol, tuple(getattr(x, f) for f in fields), tuple(getattr(y, f) for f in fields)
        )

    return compare


_tuples: list[Callable[[str, Any, Any], Any]] = []


def tuples_compare(compare: Callable[[str, Any, Any], Any]) -> None:
    """What compares tuples whose elements may be traced: it lies above."""
    _tuples[:] = [compare]


def binary(name: str, left: Any, right: Any) -> Any:
    """`left + right`, or with another operator or comparison."""
    how = _OPERATORS[name]
    if type(left) in _ORDINARY and type(right) in _ORDINARY:
        return how.function(left, right)
    mine, others = of_users(left, how.forward), of_users(right, how.backward)
    if mine is None and others is None:
        return how.function(left, right)
    tries = [(left, right, how.forward, mine), (right, left, how.backward, others)]
    one, other = python_class(left), python_class(right)
    if one is other and name not in COMPARISONS:
        del tries[1]
    elif one is not other and issubclass(other, one):
        method = how.backward
        if name in COMPARISONS or getattr(other, method, None) is not getattr(one, method, None):
            tries.reverse()
    for x, y, method, own in tries:
        function = own or getattr(python_class(x), method, None)
        result = NotImplemented if function is None else function(x, y)
        if result is not NotImplemented:
            return result
    if name in ("eq", "ne"):
        return (left is right) == (name == "eq")
    raise TypeError(_unsupported(name, how.symbol, one.__name__, other.__name__))


serve_equality(partial(binary, "eq"))


def _unsupported(name: str, symbol: str, one: str, other: str) -> str:
    if name in COMPARISONS:
        return f"'{symbol}' not supported between instances of '{one}' and '{other}'"
    symbol = "** or pow()" if name == "pow" else symbol
    return f"unsupported operand type(s) for {symbol}: '{one}' and '{other}'"


def unary(name: str, x: Any) -> Any:
    """`-x`, `+x` and `~x`"""
    own = of_users(x, f"__{name}__")
    return _UNARY[name](x) if own is None else own(x)


_UNARY = {name: getattr(operator, name) for name in ("neg", "pos", "invert")}


def in_place(name: str, old: Any, value: Any) -> Any:
    """`old += value`: what `old` is afterwards. `name` is that of the operator without `=`."""
    own = of_users(old, f"__i{name}__")
    if own is not None:
        result = own(old, value)
        return binary(name, old, value) if result is NotImplemented else result
    function = getattr(type(old), f"__i{name}__", None)
    if function is None or type(value) not in _ORDINARY:
        reflected = type(value) not in _ORDINARY and of_users(value, f"__r{name}__")
        if function is None or (reflected and not isinstance(old, list)):
            return binary(name, old, value)
    return getattr(operator, f"i{name}")(old, value)


def is_negated(left: Any, right: Any) -> bool:
    """Whether `left != right` is the opposite of what `__eq__` of a user's class says."""
    if type(left) in _ORDINARY and type(right) in _ORDINARY:
        return False
    if any(of_users(x, "__ne__") for x in (left, right)):
        return False
    plain: Any = object.__ne__
    return any(python_class(x).__ne__ is plain and of_users(x, "__eq__") for x in (left, right))


def truth_of(x: Any) -> Any:
    """What is asked for the truth of `x`: what `__bool__` or `__len__` of a user's class gives."""
    if type(x) in _ORDINARY:
        return x
    own = of_users(x, "__bool__")
    if own is not None:
        return own(x)
    own = of_users(x, "__len__")
    return x if own is None else own(x) != 0


SPECIAL: dict[Any, tuple[str, ...]] = {
    len: ("__len__",),
    abs: ("__abs__",),
    hash: ("__hash__",),
    round: ("__round__",),
    int: ("__int__", "__index__", "__trunc__"),
    float: ("__float__", "__index__"),
    complex: ("__complex__", "__float__", "__index__"),
    str: ("__str__", "__repr__"),
    repr: ("__repr__",),
    format: ("__format__",),
    iter: ("__iter__",),
    next: ("__next__",),
    reversed: ("__reversed__",),
    math.floor: ("__floor__",),
    math.ceil: ("__ceil__",),
    math.trunc: ("__trunc__",),
}


def special(function: Any, names: tuple[str, ...], otherwise: Any) -> Callable[..., Any]:
    """A function of Python's that asks a special method of its argument."""

    def call(*args: Any, **options: Any) -> Any:
        if args and type(args[0]) not in _ORDINARY:
            for name in names:
                own = of_users(args[0], name)
                if own is not None:
                    if function is format and len(args) == 1:
                        return own(*args, "")
                    return own(*args, **options)
        return otherwise(*args, **options)

    return call
