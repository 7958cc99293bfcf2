"""Containers that were there before the call as native ones: what they hold, and how they are made.

A list, dict, set or deque that a function is given, or finds outside, is an input: at each call a native
container is made of it, whatever its length, and its content goes back into the very object when the
call is over, where the function changes such ones. Objects of users' classes that hold each other, nodes
of trees and lists, are so as well: native records, as those that compiled code makes (`objects`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import numpy as np

from ...ir.ops.control import python_sets
from ...ir.ops.control.store_sets import Members
from ...ir.ops.control.stores import HANDLE, RUNS, Items, Table
from ..control.number_classes import FLAGS, code_of_class
from ..control.unions import Union
from ..core.tracers import Tracer
from ..messages import errors
from ..messages.errors import complain
from .elements.forms import Form
from .elements.varied import Unfit, is_constant
from .kinds import CLASSES, Again, Kind, current, kind_of, lies_as_in_python
from .objects import UNKNOWN, ClassKind, Field, Object
from .stand_ins import Container

Forms = tuple[Kind, Form | None, Form | None]
_NUMBERS = (bool, int, float, np.float64, np.int64)
_FAR = 1 << 62


class Entering:
    """Of one container: its kind, and what was in it, and in those in it, while tracing."""

    stands = True  # what it makes stands in the place of the container
    holds_arrays = False  # which are copied

    def __init__(self, kind: Kind, forms: list[Forms]) -> None:
        self.kind, self.forms = kind, forms

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Entering) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self.kind.cls)

    def __repr__(self) -> str:
        return f"native {self._content}"

    @property
    def _content(self) -> list[Any]:
        leaves = [[form and form.leaves for form in forms] for _, *forms in self.forms]
        kinds = [(kind.cls, kind.detail) for kind, *_ in self.forms]
        return [*zip(kinds, leaves, strict=True)]

    def __call__(self, handle: Tracer) -> Container:
        """What stands in for the container with this handle."""
        kinds = current()
        if kinds is None:
            complain(
                errors.CarryError,
                f"a {self.kind} that was there before the call cannot grow or be looked up here",
                "keep what is put into it, and what it is asked for, numbers of one class.",
            )
        made: Container = CLASSES[self.kind.cls](self.kind, handle)
        kinds.entered.append(made)
        kinds.numbers += self.forms
        return made


class Known(dict[int, Kind]):
    """The kinds of what was met already, by id. Objects of users' `classes` are native, too; of those
    that were met and not looked into `waiting` has each."""

    def __init__(self, classes: dict[type, ClassKind] | None = None) -> None:
        super().__init__()
        self.classes = classes or {}
        self.waiting: list[Any] = []
        self.holds_arrays = False


def entering(value: Any, known: Known) -> Entering | None:
    """How a container of Python's becomes a native one; None if it can't."""
    before = dict(known)
    try:
        kind = known.get(id(value)) or kind_of(value)
        forms: list[Forms] = []
        _learn(kind, value, known, forms)
    except Unfit:
        known.clear()
        known.update(before)
        return None
    return Entering(kind, forms)


def _learn(kind: Kind, value: Any, known: Known, forms: list[Forms]) -> None:
    """Let `kind` be what is in a container of Python's."""
    known[id(value)] = kind
    if kind.cls is not type(value) or kind.detail != kind_of(value).detail:
        raise Unfit
    if isinstance(value, dict):
        _learn_part(kind, "_key", value, known, forms)
        _learn_part(kind, "_value", value.values(), known, forms)
    else:
        _learn_part(kind, "_key" if kind.cls is set else "_value", value, known, forms)
    if kind.cls is set and not lies_as_in_python(kind):
        raise Unfit
    forms.append((kind, kind.key, kind.value))


def _learn_part(kind: Kind, name: str, items: Any, known: Known, forms: list[Forms]) -> None:
    for item in _different(list(items)):
        if type(item) in _FORMS and -_FAR <= item < _FAR:
            form = _FORMS[type(item)]
        else:
            form = Form.of(_placed(item, kind, name, known, forms))
        if form.is_varied:
            raise Unfit
        old = getattr(kind.root, name)
        if old is None:
            setattr(kind.root, name, form)
        elif old != form:
            raise Unfit
        if name == "_key" and any(w is None and d != np.int64 for d, w in form.leaves):
            raise Unfit


_FORMS = {cls: Form.of(cls(0)) for cls in (bool, int, float)}


def _different(items: list[Any]) -> list[Any]:
    """Some of the items, among which there are all forms that items have."""
    classes = set(map(type, items))
    if len(classes) > 1 or not items:
        return items
    cls = classes.pop()
    if cls in _NUMBERS:
        return [min(items), max(items)] if cls is int else items[:1]
    if cls is tuple and len(set(map(len, items))) == 1:
        columns = [_different([*column]) for column in zip(*items, strict=True)]
        if all(len({*map(type, c)}) == 1 and type(c[0]) in _NUMBERS for c in columns):
            return [tuple(c[0] for c in columns), tuple(c[-1] for c in columns)]
    return items


class EnteringObject(Entering):
    """Of an object of a user's class. What is in it, and in those that it leads to, is learned in each
    trace, as the numbers of their texts are those of the trace."""

    kind: ClassKind

    def __init__(
        self,
        value: Any,
        classes: frozenset[type],
        attributes: Callable[[Any], dict[str, Any] | None],
    ) -> None:
        self.value, self.cls = value, type(value)
        self.classes, self.attributes = classes, attributes

    @property
    def _content(self) -> list[Any]:
        return [self.cls]

    def __hash__(self) -> int:
        return hash(self.cls)

    def __call__(self, handle: Tracer) -> Container:
        kinds = current()
        if kinds is None:
            complain(
                errors.CarryError,
                f"objects of {self.cls.__name__} that were there before the call cannot be native here",
                "let each of their attributes be of one type.",
            )
        for cls in self.classes - kinds.classes.keys():
            kinds.classes[cls] = ClassKind(cls)
        known = Known({cls: kinds.classes[cls] for cls in self.classes})
        try:
            self.kind = _learn_objects(self, known, kinds.numbers)
        except Unfit as found:
            complain(
                errors.CarryError,
                f"objects of {self.cls.__name__} that were there before the call cannot be native in "
                f"compiled code: {found}",
                "let each of their attributes be of one type in all of them, or None.",
            )
        self.holds_arrays = known.holds_arrays
        made = Object(self.kind, handle)
        kinds.entered.append(made)
        return made


def _learn_objects(how: EnteringObject, known: Known, forms: list[Forms]) -> ClassKind:
    """Let the kinds of classes be what is in the objects that this one leads to."""
    first = _class_kind(how.value, known)
    seen = set[Any]()
    alone = {kind: ClassKind(cls) for cls, kind in known.classes.items()}
    while known.waiting:
        x = known.waiting.pop()
        kind, attributes = known[id(x)], how.attributes(x)
        assert isinstance(kind, ClassKind)
        if attributes is None:
            raise Unfit(f"{kind} has attributes of its own")
        if kind.sure is not None and not kind.sure <= attributes.keys():
            raise Unfit(f"not all of {kind} have the same attributes")
        if kind.sure is None or kind.entered is None:
            kind.sure, kind.entered = frozenset(attributes), {}
        if kind.sure != attributes.keys():
            raise Unfit(f"not all of {kind} have the same attributes")
        held = dict[str, Any]()
        for name, v in attributes.items():
            like = _like(v, known.classes)
            if like is None or (kind.cls, name, like) not in seen:
                held[name] = _placed(v, kind, name, known, forms)
                seen.add((kind.cls, name, like))
            elif type(v) in known.classes:
                _class_kind(v, known)
        if not held:
            continue
        own = alone[kind]
        own.is_used = False  # nothing was read of these
        own.see_all(held)
        kind.see_all(held)
    for kind in known.classes.values():
        if kind.entered is None:
            continue
        kind.entered = kind.entered | alone[kind].fields
        if (kind, None, None) not in forms:
            forms.append((kind, None, None))
        for name, field in kind.fields.items():
            if not _can_enter(field):
                raise Unfit(f"attribute {name!r} of {kind} is of several types")
    return first


def _like(value: Any, classes: dict[type, ClassKind]) -> Any:
    """What has one form with whatever gives the same; None if that is not known."""
    cls = type(value)
    if cls is int:
        return cls, -(1 << 63) <= value < 1 << 63
    if cls is np.ndarray:
        return cls, id(value.dtype), value.shape
    if is_constant(value):
        return cls, value
    alike = cls in _NUMBERS or cls in classes or value is None or isinstance(value, np.generic)
    return cls if alike else None


def _class_kind(value: Any, known: Known) -> ClassKind:
    """The kind of an object that is met."""
    kind = known.classes[type(value)]
    if id(value) not in known:
        known[id(value)] = kind
        known.waiting.append(value)
    return kind


def _can_enter(field: Field) -> bool:
    """Whether native code can read an attribute."""
    form = field.form
    if form is None or field.static is not UNKNOWN:
        return not (field.optional and field.static is not UNKNOWN)
    if form.is_mixed:
        return form.tree.is_leaf()
    example = form.example
    return not form.is_varied or (
        type(example) is Union and all(map(is_constant, example.options.values()))
    )


def _placed(item: Any, kind: Kind, name: str, known: Known, forms: list[Forms]) -> Any:
    """An element, with stand-ins for containers and objects in it."""
    if type(item) in known.classes:
        return Object(_class_kind(item, known), np.uint64(0))
    if known.classes and type(item) is np.ndarray and item.ndim:
        if item.dtype is not np.dtype(item.dtype.type):
            raise Unfit(f"{name} is an array of {item.dtype}")
        known.holds_arrays = True
        return item
    if isinstance(kind, ClassKind) and type(item) not in (*CLASSES, tuple):
        return item
    if type(item) in CLASSES:
        inner = kind.derived(name, type(item), kind_of(item).detail)
        if id(item) in known:
            _unite(known[id(item)], inner)
        else:
            _learn(inner, item, known, forms)
        return CLASSES[type(item)](inner, np.uint64(0))
    if type(item) is tuple:
        return tuple(
            [_placed(part, kind, f"{name}{i}", known, forms) for i, part in enumerate(item)]
        )
    if type(item) in _NUMBERS or isinstance(item, np.generic) or item is None:
        return item
    raise Unfit


def _unite(a: Kind, b: Kind) -> None:
    try:
        a.unite(b)
    except Again:
        pass
    except errors.JitneyError:
        raise Unfit from None


def inner_of(value: Any) -> Iterable[Any]:
    """The containers in a container."""
    parts = [*value, *value.values()] if isinstance(value, dict) else value
    for part in parts:
        if type(part) in CLASSES:
            yield part
            yield from inner_of(part)
        elif type(part) is tuple:
            yield from inner_of(part)


class Entrance:
    """What makes the native containers of a call, all at once."""

    def __init__(self, kinds: Sequence[Kind]) -> None:
        from .native_plans import planned  # which needs the code generator

        self.kinds, self.words = kinds, planned(kinds)
        self.has_objects = any(isinstance(kind, ClassKind) for kind in kinds)
        self.nested = self.has_objects or any(
            form is not None and form.holds_containers
            for kind in kinds
            for form in (kind.key, kind.value)
        )

    def enter(self, values: Sequence[Any], interpreted: bool) -> tuple[Any, Any, Any] | None:
        """Handles, what keeps the containers, and the addresses of objects that several may hold; None
        if one is not as its kind says."""
        if interpreted:
            return _entered_in_python(values, self.kinds)
        from ...runtime.call import objects

        n = len(values)
        handles, items = np.empty(n, HANDLE.dtype), (ctypes.py_object * n)(*values)
        seen: Any = {} if self.nested else ctypes.py_object()
        at = ctypes.addressof(items), n, ctypes.addressof(self.words), handles.ctypes.data
        owner = objects.enter()(*at, seen)
        return None if owner is None else (handles, owner, seen if self.nested else ())


# Of the interpreter's runs


def _entered_in_python(values: Sequence[Any], kinds: Sequence[Kind]) -> tuple[Any, Any, Any] | None:
    """As `enter`, in the interpreter's own containers."""
    if any(isinstance(kind, ClassKind) for kind in kinds):
        return _with_objects(values, kinds)
    known = Known()
    found = [entering(value, known) for value in values]
    pairs = zip(found, kinds, strict=True)
    if len(set(map(id, values))) < len(values) or any(
        how is None or not _fits(how.kind, kind) for how, kind in pairs
    ):
        return None
    root, made = RUNS.begin(), dict[int, int]()
    handles = [_in_python(value, root, made) for value in values]
    return np.array(handles, HANDLE.dtype), (root, [*values]), made


def _with_objects(values: Sequence[Any], kinds: Sequence[Kind]) -> tuple[Any, Any, Any] | None:
    root, made = RUNS.begin(), dict[int, int]()
    try:
        places = [_as(kind, value, root, made) for value, kind in zip(values, kinds, strict=True)]
    except Unfit:
        return None
    return np.array(places, HANDLE.dtype), (root, [*values]), made


def _fits(now: Kind, kind: Kind) -> bool:
    """Whether containers of one kind are of another, as they were when the function was traced."""
    forms = ((now.key, kind.key), (now.value, kind.value))
    return now.cls is kind.cls and all(
        a is None or (b is not None and a.leaves == b.leaves) for a, b in forms
    )


def _in_python(value: Any, root: int, made: dict[int, int]) -> int:
    """The handle of the interpreter's container for one of Python's."""
    handle = made.get(id(value))
    if handle is None:
        if isinstance(value, set):
            lies = python_sets.read(value)
            new: Any = Members(set(value) if lies is None else python_sets.made(lies))
        else:
            new = Table() if isinstance(value, dict) else Items()
        handle = made[id(value)] = RUNS.keep(root, new)
        new.made_of = value
        for item in () if isinstance(value, set) else value:
            key = _record(item, root, made)
            if isinstance(value, dict):
                new.put(key, _record(value[item], root, made))
            else:
                new.append(key)
    return handle


def _record(item: Any, root: int, made: dict[int, int]) -> tuple[Any, ...]:
    if type(item) in CLASSES:
        return (_in_python(item, root, made),)
    if type(item) is tuple:
        return tuple([x for part in item for x in _record(part, root, made)])
    return () if item is None else (item,)


def _as(kind: Kind, value: Any, root: int, made: dict[int, int]) -> int:
    """The handle of the interpreter's container for an object of a kind, or for what is in one."""
    if id(value) in made:
        return made[id(value)]
    if type(value) is not kind.cls or isinstance(value, dict | set):
        raise Unfit
    handle = made[id(value)] = RUNS.keep(root, new := Items())
    new.made_of = value
    if isinstance(kind, ClassKind):
        fields = [(field, getattr(value, name)) for name, field in kind.fields.items()]
        new.append(tuple([w for field, held in fields for w in _field(field, held, root, made)]))
    elif isinstance(value, np.ndarray):
        for x in value.flat:
            new.append((x,))
    else:
        form, items = kind.root.value, cast(Iterable[Any], value)
        for item in items:
            if form is None:
                raise Unfit
            new.append(_part(form.example, item, root, made))
    return handle


def _field(field: Field, held: Any, root: int, made: dict[int, int]) -> tuple[Any, ...]:
    if field.form is None:
        if held is not (None if field.static is UNKNOWN else field.static):
            raise Unfit
        return ()
    if held is None and field.optional:
        return tuple([dtype.type(0) for dtype in field.dtypes])
    flag = (True,) if field.optional else ()
    if field.form.is_mixed:
        dtype, weak = field.form.leaves[0]
        return (*flag, dtype.type(held), FLAGS[weak].type(code_of_class(type(held))))  # type: ignore[index]
    return (*flag, *_part(field.form.example, held, root, made))


def _part(example: Any, item: Any, root: int, made: dict[int, int]) -> tuple[Any, ...]:
    """The words of an item that is like the example."""
    if isinstance(example, Container):
        return (_as(example.kind.root, item, root, made),)
    if type(example) is Union:
        found = [n for n, option in example.options.items() if option == item]
        if len(found) != 1:
            raise Unfit
        return (np.int64(found[0]),)
    if isinstance(example, tuple):
        if type(item) is not tuple or len(item) != len(example):
            raise Unfit
        pairs = zip(example, item, strict=True)
        return tuple([w for part, own in pairs for w in _part(part, own, root, made)])
    dtype, weak = example.leaf
    if type(item) is not ({"b": bool, "i": int, "f": float}[weak] if weak else dtype.type):
        raise Unfit
    return (item,)
