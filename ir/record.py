"""Records: classes that are their fields, as `dataclasses` makes them, in a fiftieth of the time.

    @record
    class Access:
        array: str
        strides: tuple[int, ...] = ()

    Access("x") == Access("x", ())                 # by value, and hashable
    replace(access, strides=(1,))                  # another one
    @record(frozen=False)                          # fields may be assigned to; not hashable
    @record(frozen=False, eq=False)                # and equal to itself only

A process that compiles makes more than a hundred such classes before its first result, and
`dataclasses` takes a millisecond for one, nearly all of it in Python's compiler. Here an `__init__` is
made when there are some instances, and the compiler runs once per number of fields: it is that code
under other names. That fields of frozen
records are not assigned to is left to the type checker.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from inspect import get_annotations
from operator import attrgetter
from types import CodeType, FunctionType
from typing import Any, TypeVar, dataclass_transform, overload

T = TypeVar("T")

_MISSING: Any = object()
_FEW = 8  # instances of a class, for which compiling its `__init__` takes longer than going without


class _Field:
    """What a class says of a field beyond its type."""

    __slots__ = ("default", "factory", "kw_only")

    def __init__(self, default: Any, factory: Any, kw_only: bool) -> None:
        self.default = default
        self.factory = factory
        self.kw_only = kw_only


def field(
    *, default: Any = _MISSING, default_factory: Any = _MISSING, kw_only: bool = False
) -> Any:
    """As `dataclasses.field`."""
    return _Field(default, default_factory, kw_only)


@overload
def record(cls: type[T]) -> type[T]: ...
@overload
def record(*, eq: bool = True, frozen: bool = True) -> Callable[[type[T]], type[T]]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: Any = None, *, eq: bool = True, frozen: bool = True) -> Any:
    """Give a class `__init__`, `__repr__`, `__eq__` and `__hash__` made from its annotated fields,
    where it does not define them. `__post_init__` is called if there is one."""
    if cls is None:
        return lambda cls: _build(cls, eq, frozen)
    return _build(cls, eq, frozen)


def fields(cls: Any) -> tuple[str, ...]:
    """The names of the fields of a record, or of its class."""
    return tuple(cls.__record_fields__)


def replace(old: T, /, **changes: Any) -> T:
    """A record as `old`, but for the fields that are given."""
    values = {name: getattr(old, name) for name in fields(old)}
    return type(old)(**{**values, **changes})


def _build(cls: Any, eq: bool, frozen: bool) -> Any:
    by_name = cls.__record_fields__ = _collect(cls)
    methods: dict[str, Any] = {
        "__init__": _init_when_used(cls, by_name),
        "__repr__": _repr,
        "__replace__": replace,
        "__match_args__": tuple(name for name, field in by_name.items() if not field.kw_only),
    }
    if eq:
        methods |= _comparison(tuple(by_name))
        if not frozen:
            methods["__hash__"] = None
    for name, method in methods.items():
        if name not in vars(cls):
            setattr(cls, name, method)
    return cls


def _collect(cls: Any) -> dict[str, _Field]:
    """The fields of the bases, then its own; the class keeps the defaults as attributes."""
    by_name: dict[str, _Field] = {}
    for base in reversed(cls.__mro__[1:]):
        by_name.update(vars(base).get("__record_fields__", {}))
    for name, kind in get_annotations(cls).items():
        if str(kind).startswith("ClassVar"):
            continue
        field = vars(cls).get(name, _MISSING)
        if not isinstance(field, _Field):
            field = _Field(field, _MISSING, False)
        elif field.default is _MISSING:
            delattr(cls, name)
        else:
            setattr(cls, name, field.default)
        by_name[name] = field
    return by_name


def _init_when_used(cls: Any, by_name: dict[str, _Field]) -> Callable[..., None]:
    """Many classes of a process have no instances, or a few, which want no code of their own."""
    instances = 0

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        nonlocal instances
        instances += 1
        if instances > _FEW or not _has_set(self, by_name, args, kwargs):
            cls.__init__ = _init(cls, by_name)
            cls.__init__(self, *args, **kwargs)

    return __init__


def _has_set(
    self: Any, by_name: dict[str, _Field], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> bool:
    """Set the fields of a new record; False if these are not its arguments: its code says what is
    wrong."""
    names = _in_order(by_name)
    values = dict(zip(names, args, strict=False))
    if len(args) > sum(not field.kw_only for field in by_name.values()):
        return False
    if kwargs.keys() & values.keys() or kwargs.keys() - by_name.keys():
        return False
    values |= kwargs
    for name in names:
        field = by_name[name]
        if name not in values:
            if field.factory is not _MISSING:
                values[name] = field.factory()
            elif field.default is not _MISSING:
                values[name] = field.default
            else:
                return False
    for name in names:
        setattr(self, name, values[name])
    if hasattr(self, "__post_init__"):
        self.__post_init__()
    return True


def _in_order(by_name: dict[str, _Field]) -> list[str]:
    """The names of the fields as arguments: first those that need no name."""
    return sorted(by_name, key=lambda name: by_name[name].kw_only)


def _init(cls: Any, by_name: dict[str, _Field]) -> FunctionType:
    names = _in_order(by_name)
    positional = sum(not field.kw_only for field in by_name.values())
    made = [i for i, name in enumerate(names) if by_name[name].factory is not _MISSING]
    code = _code(len(names), positional, tuple(made), hasattr(cls, "__post_init__"))
    called = {f"a{i}": name for i, name in enumerate(names)}
    code = code.replace(
        co_names=tuple(called.get(name, name) for name in code.co_names),
        co_varnames=tuple(called.get(name, name) for name in code.co_varnames),
        co_qualname=f"{cls.__qualname__}.__init__",
    )
    defaults = {
        name: _MISSING if field.factory is not _MISSING else field.default
        for name, field in by_name.items()
        if field.default is not _MISSING or field.factory is not _MISSING
    }
    scope = {"MISSING": _MISSING, **{f"make{i}": by_name[names[i]].factory for i in made}}
    positional_defaults = tuple(defaults[name] for name in names[:positional] if name in defaults)
    init = FunctionType(code, scope, "__init__", positional_defaults)
    init.__kwdefaults__ = {name: defaults[name] for name in names[positional:] if name in defaults}
    init.__module__ = cls.__module__
    return init


@cache
def _code(count: int, positional: int, made: tuple[int, ...], post_init: bool) -> CodeType:
    """The code of an `__init__` whose fields are a0, a1, ...; those of `made` are made by
    `make0()`, ... where they are not given."""
    names = [f"a{i}" for i in range(count)]
    header = names[:positional] + ["*"] * (positional < count) + names[positional:]
    lines = [f"def __init__({', '.join(['self', *header])}):"]
    for i, name in enumerate(names):
        value = f"make{i}() if {name} is MISSING else {name}" if i in made else name
        lines.append(f"    self.{name} = {value}")
    lines.append("    self.__post_init__()" if post_init else "    return")
    scope: dict[str, Any] = {}
    exec("\n".join(lines), scope)
    code: CodeType = scope["__init__"].__code__
    return code


def _comparison(names: tuple[str, ...]) -> dict[str, Any]:
    """`__eq__` and `__hash__` by the values of the fields."""
    if len(names) > 1:
        values: Callable[[Any], tuple[Any, ...]] = attrgetter(*names)
    elif names:
        only = attrgetter(*names)
        values = lambda self: (only(self),)  # noqa: E731
    else:
        values = lambda self: ()  # noqa: E731

    def __eq__(self: Any, other: Any) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return self is other or values(self) == values(other)

    def __hash__(self: Any) -> int:
        return hash(values(self))

    return {"__eq__": __eq__, "__hash__": __hash__}


def _repr(self: Any) -> str:
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in fields(self))
    return f"{type(self).__qualname__}({values})"
