"""Jitted functions as methods: bound methods, and telling that a first argument is `self`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

import numpy as np

from ..data import pytree
from ..data.foreign import is_borrowable
from ..messages.tracebacks import shorten
from .inspection import as_call

if TYPE_CHECKING:
    from ...ir.graph import Graph
    from ..explain.lowered import Lowered
    from .cache_info import CacheInfo
    from .function import JitFunction

P = ParamSpec("P")
R = TypeVar("R")
# They take the arguments of a call.
_OF_CALLS = frozenset({"trace", "lower", "explain", "stages", "explore", "draw", "ptx"})
_NEVER = frozenset({np.ndarray, bool, int, float, complex, str, dict, list, tuple, type(None)})


class BoundJitFunction(Generic[P, R]):  # noqa: D101  # a jitted method of one object; its docstring is the method's
    __doc__ = property(lambda self: self._child.__doc__)
    __slots__ = ("__self__", "_child")

    if TYPE_CHECKING:  # what it has of the child
        trace: Callable[..., Graph]
        lower: Callable[..., Lowered]
        explain: Callable[..., str]
        stages: Callable[..., Any]
        explore: Callable[..., Any]
        draw: Callable[..., Any]
        ptx: Callable[..., str]
        cache_info: Callable[[], CacheInfo]
        clear_cache: Callable[[], None]

    def __init__(self, child: JitFunction[..., R], obj: Any) -> None:
        self._child = child
        self.__self__ = obj

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return self._child(self.__self__, *args, **kwargs)
        except Exception as error:
            shorten(error)
            raise

    def compile(self, *signatures: Any, processes: int = 1) -> BoundJitFunction[P, R]:
        """See `JitFunction.compile`; signatures are without the object."""
        calls = [as_call(signature) for signature in signatures]
        bound = [((self.__self__, *args), kwargs) for args, kwargs in calls]
        self._child.compile(*bound, processes=processes)
        return self

    @property
    def __func__(self) -> JitFunction[..., R]:
        return self._child

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._child, name)
        return partial(value, self.__self__) if name in _OF_CALLS else value

    def __repr__(self) -> str:
        return f"<jitney.jit {self._child.__qualname__} of {self.__self__!r}>"


def is_owner(obj: Any, function: JitFunction) -> bool:
    """Whether `function` is a method of `obj`, which it may change: it stands in its class (or is a
    class method of it, or makes a property), which is no pytree of the user's or named tuple."""
    cls = type(obj)
    if cls in _NEVER or pytree.is_registered(cls) or hasattr(cls, "_fields"):
        return False
    if function.stands_for is not None:
        function = function.stands_for() or function
    if "." not in function.__qualname__.rpartition("<locals>.")[2] and is_borrowable(obj):
        return False  # an array: the large classes of array libraries are not looked through
    for base in (*(obj.__mro__ if isinstance(obj, type) else ()), *cls.__mro__):
        for value in tuple(vars(base).values()):
            if value is function:
                return True
            if isinstance(value, property) and value.fget is function:
                return True
            if isinstance(value, classmethod) and value.__func__ is function:
                return True
    return False
