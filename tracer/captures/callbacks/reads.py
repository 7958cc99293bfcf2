"""What a callback has of outside: the user's own things, never what stands in for them.

    jt.io_callback(self.log.append, None, x)
    jt.io_callback(lambda value: plot(value, W), None, x)

While a function is traced, stand-ins are in globals, cells, attributes and containers. A callback is
made then and runs later, when they mean nothing. So it is made anew with the caller's own globals and
cells, which it reads when it runs, and bound to the caller's own objects. Those are a part of the
compiled code, so they are *kept*: a call that finds others in their place is compiled anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from types import BuiltinMethodType, CellType, FunctionType, MethodType
from typing import Any

from ...containers.stand_ins import Container
from ...core.tracers import Tracer
from ...messages import errors
from ...messages.errors import complain
from ..frozen import IMMUTABLE
from .conflicts import names_in, refuse


class CallbackReads:
    """Finds the user's own things.

    own_object   gives what a value stands for, and keeps it; a value that is not of outside as it is.
                 It is told which names the callback mentions
    namespaces   the modules' own globals, by the id of what stands in for them
    cells        the functions' own cells, by the id of what stands in for them, or of themselves
    """

    def __init__(
        self,
        own_object: Callable[[Any, set[str]], Any],
        namespaces: dict[int, dict[str, Any]],
        cells: dict[int, CellType],
    ) -> None:
        self._own_object = own_object
        self._namespaces = namespaces
        self._cells = cells
        self._seen: dict[int, Any] = {}
        self._names: set[str] = set()  # that the functions on the way mention

    def __call__(self, value: Any) -> Any:
        """The user's own form of a callback, or of what is given to one. Raises LeakedTracerError
        for one that reads a traced value."""
        if isinstance(value, IMMUTABLE):
            return value
        if id(value) in self._seen:
            return self._seen[id(value)]
        self._seen[id(value)] = value  # a function may close over itself
        own = self._seen[id(value)] = self._made(value)
        return own

    def _made(self, value: Any) -> Any:
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, MethodType):
            function = self(value.__func__)
            if isinstance(function, FunctionType):
                self._names |= names_in(function, value.__self__)
            owner = self(value.__self__)
            same = function is value.__func__ and owner is value.__self__
            return value if same else MethodType(function, owner)
        if isinstance(value, BuiltinMethodType):
            owner = self(value.__self__)
            return value if owner is value.__self__ else getattr(owner, value.__name__)
        if isinstance(value, partial):
            args = tuple(map(self, value.args))
            keywords = {name: self(arg) for name, arg in value.keywords.items()}
            return partial(self(value.func), *args, **keywords)
        if isinstance(value, Container):
            refuse(str(value.kind))
        return self._own_object(value, self._names)

    def _function(self, function: FunctionType) -> FunctionType:
        self._names |= names_in(function, None)
        names = function.__code__.co_freevars
        cells = tuple(map(self._cell, names, function.__closure__ or ()))
        namespace = self._namespaces.get(id(function.__globals__), function.__globals__)
        defaults = (
            None if function.__defaults__ is None else tuple(map(self, function.__defaults__))
        )
        kept = namespace is function.__globals__ and _same(cells, function.__closure__ or ())
        if kept and _same(defaults or (), function.__defaults__ or ()):
            return function
        code, name = function.__code__, function.__name__
        own = FunctionType(code, namespace, name, defaults, cells if names else None)
        own.__kwdefaults__ = function.__kwdefaults__
        own.__dict__.update(function.__dict__)
        own.__qualname__, own.__module__ = function.__qualname__, function.__module__
        return own

    def _cell(self, name: str, cell: CellType) -> CellType:
        if id(cell) in self._cells:
            return self._cells[id(cell)]
        try:
            value = cell.cell_contents
        except ValueError:
            return cell
        if isinstance(value, Tracer):
            complain(
                errors.LeakedTracerError,
                f"a callback reads the traced value `{name}` of the function around it, which has no "
                "number that Python could see when the callback runs",
                f"give it to the callback as an argument: jt.io_callback(function, None, {name}).",
            )
        own = self(value)
        return cell if own is value else CellType(own)


def _same(a: Iterable[Any], b: Iterable[Any]) -> bool:
    return all(x is y for x, y in zip(a, b, strict=True))
