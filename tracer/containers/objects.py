"""Objects of users' classes that compiled branches and loops make: native records behind handles.

    while k < n:
        node = Node(x[k])       # a new object in each iteration, of which lists, variables and
        node.next = head        # attributes of others hold handles, as references
        head = node

A class becomes native when an object of it that was made in a branch or loop is left there; the function
is traced again then. Attributes are fields of the record: numbers, tuples of them, containers, objects,
each perhaps None; what is the same for all objects, a text or a function, is no field but known.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from types import FunctionType, MethodType
from typing import Any, NoReturn

import numpy as np

from ...ir.graph import Value
from ...ir.record import record
from ...ir.types import BOOL
from ..control.unions import NONE, Union, constant_tag, number_of, possible
from ..core.trace import Trace, require_trace
from ..core.tracers import as_value, emit, wrap
from ..messages import errors
from ..messages.errors import complain
from .elements.forms import Form
from .elements.varied import is_constant
from .kinds import OBJECTS, Again, Kind, Kinds, current, form_of
from .stand_ins import Container, element, enlist, leaves_of, root, run

_STATIC = (str, bytes, type, FunctionType, MethodType, Enum, np.dtype)
UNKNOWN: Any = object()


@record
class Field:
    """What an attribute holds: values of a form, perhaps None, or one value that all objects have."""

    form: Form | None = None
    optional: bool = False
    static: Any = UNKNOWN

    @property
    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        flag = (BOOL,) if self.optional and self.form is not None else ()
        return (*flag, *(() if self.form is None else self.form.dtypes))


class ClassKind(Kind):
    """What is known of the objects of one class."""

    def __init__(self, cls: type) -> None:
        super().__init__(cls)
        self.fields: dict[str, Field] = {}
        self.sure: frozenset[str] | None = None  # attributes that every __init__ sets
        self.is_used = False  # records have been read or written
        # Of one of which objects were there before the call: what was in these.
        self.entered: dict[str, Field] | None = None

    def __hash__(self) -> int:
        return hash(self.cls.__qualname__)  # the class of a name may be made anew, see `Kinds.meet`

    @property
    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        return tuple(d for field in self.fields.values() for d in field.dtypes)

    def see_all(self, values: dict[str, Any]) -> None:
        """Take in what attributes hold; Again if records are other ones then."""
        new = dict(self.fields)
        for name, value in values.items():
            new[name] = self._joined(name, new.get(name, Field()), value)
        if new != self.fields:
            self.fields = new
            if self.is_used:
                raise Again
        self.is_used = True

    def _joined(self, name: str, field: Field, value: Any) -> Field:
        option, optional = _parts(value)
        if optional or option is None:
            field = Field(field.form, True, field.static)
        if option is None:
            return field
        if is_constant(field.static) and (is_constant(option) or type(option) is Union):
            if option is field.static or (type(option) is str and option == field.static):
                return field
            field = Field(form_of(field.static, self, ""), field.optional)
        elif (isinstance(option, _STATIC) or _is_constant(option)) and field.form is None:
            if (field.static is not UNKNOWN and field.static is option) or field == Field():
                return Field(static=option)
            if field.static is UNKNOWN or field.static != option:
                self._refuse(name)
            return field
        if field.static is not UNKNOWN:
            self._refuse(name)
        form = form_of(option, self, f"attribute {name!r}")
        joined = form if field.form is None else field.form.joined(form)
        if joined is None:
            self._refuse(name, f": {field.form} and {form}")
        return Field(joined, field.optional)

    def _refuse(self, name: str, which: str = "") -> NoReturn:
        complain(
            errors.CarryError,
            f"objects of {self.cls.__name__} that are made in a branch or loop that runs compiled have "
            f"an attribute {name!r} of several types{which}",
            "let it be of one type in all of them, or None; texts and functions are to be the same.",
        )


def _is_constant(value: Any) -> bool:
    """An object of Python's that is no element."""
    kinds = current()
    known = kinds is not None and id(value) in kinds.born
    return hasattr(value, "__dict__") and not isinstance(value, Container) and not known


def _parts(value: Any) -> tuple[Any, bool]:
    """A value that is not None, or None where there is none, and whether it may be None."""
    if type(value) is not Union:
        return value, value is None
    numbers = possible(value)
    others = [n for n in numbers if n != NONE]
    if len(others) > 1 and all(is_constant(value.options[n]) for n in others):
        return Union(value.tag, {n: value.options[n] for n in others}), NONE in numbers
    if len(others) > 1:
        complain(
            errors.CarryError,
            "an attribute of an object that is made in compiled code is given a value that may be of "
            "several forms",
            "give it values of one form, or None.",
        )
    return (value.options[others[0]] if others else None), NONE in numbers


class Object(Container):
    """An object of a user's class. While its `__init__` runs what it sets is kept in `attrs`."""

    __slots__ = ("attrs", "born")
    kind: ClassKind
    attrs: dict[str, Any] | None
    born: Trace | None

    def __init__(self, kind: ClassKind, handle: Any = None) -> None:
        put = object.__setattr__
        put(self, "attrs", {} if handle is None else None)
        put(self, "born", require_trace() if handle is None else None)
        if handle is None:
            (made,) = run(self._new, root())
            handle = wrap(made, scalar=True)
        put(self, "kind", kind)
        put(self, "handle", handle)

    def settle(self) -> None:
        """`__init__` has run, or goes on in a branch or loop: the record is made."""
        attrs, kind = self.attrs, self.kind
        if attrs is None:
            return
        object.__setattr__(self, "attrs", None)
        sure = frozenset(attrs)
        if kind.sure is None:
            kind.sure = sure
        elif not kind.sure <= sure:  # what was read may not have been there
            kind.sure &= sure
            raise Again
        kind.see_all(attrs)
        values = [v for name, field in kind.fields.items() for v in _values(field, attrs.get(name))]
        self._run("append", *values, value=kind.dtypes)

    def _record(self) -> list[Value]:
        self.kind.is_used = True
        handle, arrived = self._at, require_trace().arrived
        if self.kind.entered is not None and handle not in arrived:
            arrived.add(handle)
            run("arrive", handle)
        _, *values = self._run("get", as_value(0), value=self.kind.dtypes)
        return values

    def _settled_elsewhere(self) -> None:
        if self.attrs is not None and self.born is not require_trace():
            self.settle()

    def __setattr__(self, name: str, value: Any) -> None:
        self._settled_elsewhere()
        if self.attrs is not None:
            self.attrs[name] = value
            return
        kind = self.kind
        if kind.sure is not None and name not in kind.sure:
            self._refuse_unsure(name)
        kind.see_all({name: value})
        if not kind.fields[name].dtypes:
            return
        values = self._record()
        start, stop = self._place(name)
        values[start:stop] = _values(kind.fields[name], value)
        self._run("set", as_value(0), *values, value=kind.dtypes)

    def _place(self, name: str) -> tuple[int, int]:
        start = 0
        for other, field in self.kind.fields.items():
            if other == name:
                return start, start + len(field.dtypes)
            start += len(field.dtypes)
        raise AssertionError(name)

    def __getattr__(self, name: str) -> Any:
        self._settled_elsewhere()
        attrs, kind = self.attrs, self.kind
        if attrs is not None and name in attrs:
            return attrs[name]
        if name in ("__dict__", "__weakref__"):
            raise AttributeError(name)
        if attrs is None and name in kind.fields:
            if name not in (kind.sure or ()):
                self._refuse_unsure(name)
            return self._read(kind.fields[name], name)
        return self._of_class(name)

    def _read(self, field: Field, name: str) -> Any:
        if field.form is None:
            return None if field.static is UNKNOWN else field.static
        start, stop = self._place(name)
        values = self._record()[start:stop]
        if not field.optional:
            return element(field.form, values)
        there, *rest = values
        option = element(field.form, rest)
        if type(option) is Union:
            tag = wrap(
                emit("select", there, option.tag.value, constant_tag(NONE).value).value, scalar=True
            )
            return Union(tag, {NONE: None, **option.options})
        number = number_of(option)
        none, some = (constant_tag(n).value for n in (NONE, number))
        tag = wrap(emit("select", there, some, none).value, scalar=True)
        return Union(tag, {NONE: None, number: option})

    def _of_class(self, name: str) -> Any:
        cls = self.kind.cls
        for base in cls.__mro__:
            if name in base.__dict__:
                found = base.__dict__[name]
                get = getattr(type(found), "__get__", None)
                return found if get is None else get(found, self, cls)
        raise AttributeError(f"{cls.__name__!r} object has no attribute {name!r}")

    def _refuse_unsure(self, name: str) -> NoReturn:
        cls = self.kind.cls.__name__
        complain(
            errors.CarryError,
            f"objects of {cls} that are made in a branch or loop that runs compiled have an attribute "
            f"{name!r} that {cls}.__init__ does not always set",
            f"set self.{name} in __init__, to None for instance.",
        )

    def truth(self) -> Any:
        return True

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, Object) or other.kind is not self.kind:
            return False
        return self.handle == other.handle

    __hash__ = None

    def length(self) -> Any:
        raise TypeError(f"object of type {self.kind.cls.__name__!r} has no len()")


def _values(field: Field, value: Any) -> list[Value]:
    """The words of a field."""
    if field.form is None:
        return []
    option, optional = _parts(value)
    flag: Any = option is not None
    if optional and option is not None:
        flag = emit("ne", as_value(value.tag), constant_tag(NONE).value)
    if option is None:
        rest = [as_value(0, dtype) for dtype in field.form.dtypes]
    else:
        rest = leaves_of(field.form, option)
    return [*([as_value(flag, BOOL)] if field.optional else []), *rest]


def made(cls: type, kinds: Kinds | None, start: Callable[[Any], None]) -> Any:
    """A native object of a class, if it is native; `start` is its `__init__`."""
    if kinds is None or cls not in kinds.classes:
        return None
    new = Object(kinds.classes[cls])
    start(new)
    new.settle()
    return new


def born(x: Any) -> None:
    """An object of a user's class was made by Python."""
    kinds = current()
    if kinds is not None:
        kinds.born[id(x)] = x
        if require_trace().parent is not None:
            kinds.inner.add(id(x))


def python_class(x: Any) -> type:
    """The class that a value has in Python."""
    return x.kind.cls if type(x) is Object else type(x)


enlist(Object)
OBJECTS.append(ClassKind)
