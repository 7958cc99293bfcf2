"""Which code can be trusted to depend on nothing but what it is given.

A trace that is remembered from one process to the next must not depend on files, clocks, random
numbers or anything else that a hash of the program does not see. Code of the user's is looked into;
of everybody else's, what stands here is known to be pure.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from types import FunctionType, ModuleType

from .paths import is_ours, is_user_module

BUILTINS = frozenset(
    "abs all any bool bytes bytearray callable chr classmethod complex dict divmod enumerate "
    "filter float format frozenset int isinstance issubclass iter len list map max min next "
    "object ord pow property range repr reversed round set slice sorted staticmethod str sum "
    "super tuple type zip None True False NotImplemented Ellipsis __debug__ __build_class__ "
    "__name__".split()
)
# Pure where the object that they look into is known, which a module is not.
LOOKING = frozenset({"getattr", "hasattr"})

PURE_MODULES = frozenset(
    "math cmath functools itertools operator typing collections dataclasses enum numbers abc types "
    "fractions string copy bisect heapq statistics contextlib re __future__ typing_extensions "
    "collections.abc builtins reprlib".split()
)

# What reads files or settings, draws random numbers, or looks into any object.
IMPURE = frozenset(
    "random load loadtxt genfromtxt fromfile memmap fromregex save savez savez_compressed savetxt "
    "open_memmap DataSource ctypeslib testing test f2py lib rec geterr getbufsize "
    "get_printoptions printoptions config io_callback py_func pure_callback debug_print "
    "attrgetter methodcaller".split()
)


class Unkeyable(Exception):
    """There is something that a hash cannot stand for."""


def is_pure_builtin(name: str) -> bool:
    """Whether a builtin of this name may be called while tracing: it has no effect."""
    if name in BUILTINS:
        return True
    value = getattr(builtins, name, None)
    return isinstance(value, type) and issubclass(value, BaseException)


def is_pure_module(name: str) -> bool:
    """Whether a module is on the list, and no user's that has the name of one that is."""
    if name not in PURE_MODULES and name.lstrip("_") not in PURE_MODULES:
        return False
    return not is_user_module(name)


def origin(module: object) -> str:
    """Whose code a module holds: "user", "listed" (pure), or "unlisted"."""
    if not isinstance(module, str):
        return "user"
    top = module.partition(".")[0]
    if top == "numpy" or is_ours(top):
        impure = any(_is_impure(module, part) for part in module.split(".")[1:])
        return "unlisted" if impure else "listed"
    if is_pure_module(module):
        return "listed"
    return "user" if is_user_module(module) else "unlisted"


def whose_code(function: FunctionType) -> str:
    """The `origin` of a function: a wrapper has the name of what it wraps, but globals of its own."""
    return origin(function.__globals__.get("__name__"))


def impure_names(module: ModuleType, names: Iterable[str]) -> list[str]:
    """The names that stand for something impure in a module on the list."""
    if origin(module.__name__) != "listed":
        return []
    content = vars(module)
    return [
        n
        for n in names
        if _is_impure(module.__name__, n) and (n in content or "__getattr__" in content)
    ]


def _is_impure(module: str, name: str) -> bool:
    """Our own random numbers are functions of their keys."""
    ours = name == "random" and is_ours(module)
    return name in IMPURE and not ours
