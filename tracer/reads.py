"""Which outside values does a function read? Found in its bytecode, before it is traced.

A *path* is a name and attributes of it: `lr`, `config.model.width`, `self.w`. `find_reads` walks the
bytecode of a function, of the functions nested in it, and of the user's functions, methods and classes
that those reach by paths, and lists the values at the ends of the paths.

What is seen: globals, closure cells, attributes of modules, classes and objects (instance
dictionaries and slots, properties and methods, whose code is entered), and containers as a whole.
Code of NumPy, jitney, the standard library and other installed packages is not entered.

What is not seen: values behind computed names (`getattr(obj, name)`, `globals()[name]`), attributes
that `__getattr__` makes up, files, the environment, clocks and random numbers, and what functions
read that come out of containers or calls. Such values are those of the time of tracing. Writing
outside state (`history.append(n)`, `count += 1`) happens while tracing only.
"""

from __future__ import annotations

import builtins
import dis
import functools
import inspect
import sys
from collections.abc import Iterator
from types import (
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any

from ..ir.record import field, record

_ABSENT: Any = object()
_WRITERS: dict[type, tuple[str, ...]] = {
    list: ("append", "extend", "insert"),
    set: ("add", "update"),
}
_LIMIT = 2000  # functions entered: beyond that the rest is not tracked


@record
class Path:
    """A place to read from: a root and attribute names.

    `kind` is "global" (`root` is the module's dict), "cell" (the cell) or "object" (a callable that
    gives the object, or None when it is gone).
    """

    kind: str
    root: Any
    name: str
    attrs: tuple[str, ...] = ()

    def read(self) -> Any:
        """The current value. Raises what reading it in Python would raise."""
        if self.kind == "global":
            value = self.root[self.name]
        elif self.kind == "cell":
            value = self.root.cell_contents
        else:
            value = self.root()
        for attr in self.attrs:
            value = getattr(value, attr)
        return value

    def get(self, attr: str) -> Path:
        return Path(self.kind, self.root, self.name, (*self.attrs, attr))

    @property
    def key(self) -> tuple[Any, ...]:
        return (self.kind, id(self.root), self.name, self.attrs)

    def __str__(self) -> str:
        return ".".join((self.name, *self.attrs))


@record(frozen=False)
class Reads:
    """What `find_reads` found.

    `values` are the ends of paths (a key that ends with "is" asks for the identity alone).
    `functions` are those that a copy can stand in for, each with the paths that lead to it. `fixed`
    are the paths that other code reads too, `written` those that the code assigns to, `stored` the
    names of globals that it assigns to, by the id of the module's dict.
    """

    values: dict[tuple[Any, ...], tuple[Path, Any]] = field(default_factory=dict)
    functions: dict[int, tuple[FunctionType, list[Path]]] = field(default_factory=dict)
    fixed: set[tuple[Any, ...]] = field(default_factory=set)
    written: set[tuple[Any, ...]] = field(default_factory=set)
    stored: dict[int, set[str]] = field(default_factory=dict)


def find_reads(function: Any, owner: Any = None) -> Reads:
    """The outside values that `function` reads. `owner`, if given, is a `Path` to its `self`."""
    finder = _Finder()
    if isinstance(function, FunctionType):
        finder.function(function, owner, True, None)
    else:
        finder.callable(function, owner, False)
    return finder.reads


def is_user_module(name: Any) -> bool:
    """Whether code of the module is the user's: no stdlib, NumPy, jitney or installed package."""
    if not isinstance(name, str):
        return True
    top = name.partition(".")[0]
    if top == "__main__":
        return True
    if top in sys.stdlib_module_names or top in ("numpy", __name__.partition(".")[0]):
        return False
    file = getattr(sys.modules.get(name), "__file__", None) or ""
    return "site-packages" not in file and "dist-packages" not in file


class _Finder:
    """A walk over functions, and what they call, that collects what their code reads."""

    def __init__(self) -> None:
        self.reads = Reads()
        self._seen: set[tuple[Any, ...]] = set()

    def function(
        self,
        function: FunctionType,
        owner: Path | None,
        free: bool,
        path: Path | None = None,
        owner_free: bool = True,
    ) -> None:
        """Enter a function. `free` says that a copy of it can stand in for it while tracing, and
        `owner_free` that a copy of its `self` can."""
        if free:
            paths = self.reads.functions.setdefault(id(function), (function, []))[1]
            if path is not None and path.key not in (p.key for p in paths):
                paths.append(path)
        key = (id(function), owner.key if owner else None, free, owner_free)
        if key in self._seen or len(self._seen) > _LIMIT:
            return
        self._seen.add(key)
        code = function.__code__
        cells = {
            name: (Path("cell", cell, name), free)
            for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True)
        }
        if not is_user_module(function.__module__):
            self.wrapper(function, [path for path, _ in cells.values()], free)
            return
        names = dict(cells)
        if owner is not None and code.co_argcount:
            names[code.co_varnames[0]] = (owner, owner_free)
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            if isinstance(value, (FunctionType, MethodType)):
                self.callable(value, None, False)
        held = Path("object", lambda: function, function.__name__)
        for name in ("__defaults__", "__kwdefaults__"):
            if _holds_states(getattr(function, name)):
                self.end(held.get(name), getattr(function, name), False)
        self.code(code, function.__globals__, names, free)

    def wrapper(self, function: FunctionType, cells: list[Path], free: bool) -> None:
        """A library's function around the user's (jt.grad(f), a decorator): enter what it wraps."""
        wrapped = getattr(function, "__wrapped__", None)
        for path in cells:
            value = _read(path)
            if isinstance(value, FunctionType):
                self.function(value, None, free, path)
            elif isinstance(value, MethodType):
                self.callable(value, None, False)
            if value is wrapped:
                wrapped = None
        if wrapped is not None:
            self.callable(wrapped, None, False)

    def code(
        self,
        code: CodeType,
        module: dict[str, Any],
        names: dict[str, tuple[Path, bool]],
        free: bool,
    ) -> None:
        """Enter code. `names` are its variables that have paths, and whether they are free."""
        instructions = list(dis.get_instructions(code))
        local = dict(names)
        for op in instructions:
            if op.opname == "STORE_GLOBAL":
                self.reads.written.add(Path("global", module, op.argval).key)
                self.reads.stored.setdefault(id(module), set()).add(op.argval)
            elif op.opname == "STORE_DEREF" and op.argval in local:
                self.reads.written.add(local[op.argval][0].key)
            elif op.opname == "STORE_FAST":
                local.pop(op.argval, None)
        for position, name, is_global in _loads(instructions):
            if _is_own_counter(instructions, position, name):
                continue
            if is_global and name == "super":
                self.inherited(code, local)
            if is_global:
                if name not in module:
                    continue
                path, path_free = Path("global", module, name), free
            elif name in local:
                path, path_free = local[name]
            else:
                continue
            attrs, called, stored = _attributes(instructions, position)
            if not stored:
                self.follow(path, attrs, called, path_free)
        inner = {
            name: path
            for name, path in local.items()
            if name in code.co_cellvars or name in code.co_freevars
        }
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                visible = {n: p for n, p in inner.items() if n in constant.co_freevars}
                self.code(constant, module, visible, free)

    def inherited(self, code: CodeType, local: dict[str, tuple[Path, bool]]) -> None:
        """`super().name`: enter every base's method of a name that the code mentions."""
        if not code.co_argcount or code.co_varnames[0] not in local:
            return
        owner, free = local[code.co_varnames[0]]
        value = _read(owner)
        for cls in type(value).__mro__[1:-1]:
            for name in code.co_names:
                attribute = vars(cls).get(name)
                if isinstance(attribute, FunctionType):
                    self.function(attribute, owner, False, owner_free=free)

    def follow(self, path: Path, attrs: list[str], called: bool, free: bool) -> None:
        """Walk down the attributes as far as they lead to plain values."""
        value = _read(path)
        for position, attr in enumerate(attrs):
            if state_of(value) is not None:
                break
            last = position == len(attrs) - 1
            if value is _ABSENT:
                return
            if isinstance(value, ModuleType):
                if not is_user_module(value.__name__):
                    return
                path, value = Path("global", vars(value), attr), vars(value).get(attr, _ABSENT)
                free = False  # the copy of a function sees the module itself
                continue
            found = _attribute(value, attr)
            if isinstance(found, property):
                if isinstance(found.fget, FunctionType):
                    self.function(found.fget, path, False, owner_free=free)
                return
            if isinstance(found, (FunctionType, classmethod, staticmethod)):
                self.method(found, path, value, free)
                return
            if found is _ABSENT:
                if attr in _WRITERS.get(type(value), ()) and last and called:
                    return
                break
            if path.kind == "global" and not path.attrs and isinstance(value, type):
                free = False
            path, value = path.get(attr), _read(path.get(attr))
        else:
            if value is not _ABSENT and called and self.call(path, value, free):
                return
        if value is not _ABSENT:
            self.end(path, value, free)

    def method(self, found: Any, path: Path, value: Any, free: bool) -> None:
        function = found if isinstance(found, FunctionType) else found.__func__
        owner = path if isinstance(found, FunctionType) and not isinstance(value, type) else None
        if isinstance(function, FunctionType):
            self.function(function, owner, False, owner_free=free)
        else:
            self.callable(function, owner, False)

    def call(self, path: Path, value: Any, free: bool) -> bool:
        """An object of a user's class is called: only what its `__call__` reads counts."""
        call = inspect.getattr_static(type(value), "__call__", None)
        call = getattr(call, "__wrapped__", call)  # a jitted method
        if isinstance(value, (type, FunctionType, MethodType)) or not isinstance(
            call, FunctionType
        ):
            return False
        if not is_user_module(type(value).__module__):
            return False
        self.record(path, value, free, identity=True)
        self.function(call, path, False, owner_free=free)
        return True

    def end(self, path: Path, value: Any, free: bool) -> None:
        """A value as a whole is read."""
        if isinstance(value, ModuleType):
            return
        state = state_of(value)
        if state is not None:
            path, value = path.get(state), getattr(value, state)
        self.record(path, value, free)
        if isinstance(value, FunctionType):
            self.function(value, None, free and not path.attrs, path)
        else:
            self.callable(value, None, free, path)

    def callable(
        self, value: Any, owner: Path | None, free: bool, path: Path | None = None
    ) -> None:
        """Enter whatever code stands behind a callable."""
        if isinstance(value, FunctionType):
            self.function(value, owner, False, owner_free=False)
        elif isinstance(value, MethodType):
            target = value.__self__
            held = Path("object", lambda: target, "self")
            if isinstance(value.__func__, FunctionType):
                self.function(value.__func__, held, False, owner_free=False)
        elif isinstance(value, functools.partial):
            held = Path("object", lambda: value, "partial")
            self.end(held.get("args"), value.args, False)
            self.end(held.get("keywords"), value.keywords, False)
            self.callable(value.func, None, False)
        elif isinstance(value, type):
            if is_user_module(value.__module__):
                for attribute in vars(value).values():
                    if isinstance(attribute, FunctionType):
                        self.function(attribute, None, False)
        elif isinstance(inspect.getattr_static(value, "__wrapped__", None), FunctionType):
            wrapped = value.__wrapped__
            jitted = type(value).__name__ == "JitFunction"
            free = free and jitted and path is not None and not path.attrs
            self.function(wrapped, None, free, path if free else None)
        elif isinstance(value, (list, tuple, dict)):
            for item in value.values() if isinstance(value, dict) else value:
                if isinstance(item, (FunctionType, MethodType)):
                    self.callable(item, None, False)
                elif is_user_module(type(item).__module__):
                    self.callable(type(item), None, False)
        elif is_user_module(type(value).__module__):
            call = inspect.getattr_static(type(value), "__call__", None)
            if isinstance(call, FunctionType):
                held = path or Path("object", lambda: value, type(value).__name__)
                self.function(call, held, False, owner_free=False)

    def record(self, path: Path, value: Any, free: bool, identity: bool = False) -> None:
        key = path.key
        if identity:
            key = (*key, "is")
        self.reads.values.setdefault(key, (path, value))
        if not free:
            self.reads.fixed.add(path.key)


def _holds_states(defaults: Any) -> bool:
    values = defaults.values() if isinstance(defaults, dict) else defaults or ()
    return any(state_of(value) is not None for value in values)


def state_of(value: Any) -> str | None:
    """The attribute with the array that is all that matters of an object of ours, if it has one."""
    found: str | None = vars(type(value)).get("_jitney_state")
    return found


def _read(path: Path) -> Any:
    try:
        return path.read()
    except (KeyError, ValueError, AttributeError):
        return _ABSENT


def _attribute(value: Any, attr: str) -> Any:
    """What `value.attr` is, without running code of the user: _ABSENT if it takes code to know."""
    if type(value).__module__ == builtins.__name__ and not isinstance(value, type):
        return _ABSENT
    if type(value) is SimpleNamespace:
        return None if attr in vars(value) else _ABSENT
    if not is_user_module(type(value).__module__) and not isinstance(value, type):
        return _ABSENT
    if isinstance(value, type) and not is_user_module(value.__module__):
        return _ABSENT
    found = inspect.getattr_static(value, attr, _ABSENT)
    if isinstance(found, (MemberDescriptorType, GetSetDescriptorType)):
        return None  # a slot: plain data
    known = (property, FunctionType, classmethod, staticmethod)
    if found is _ABSENT or isinstance(found, known):
        return found
    in_instance = attr in getattr(value, "__dict__", {})
    if not in_instance and hasattr(type(found), "__get__"):
        return found.__wrapped__ if hasattr(found, "__wrapped__") else _ABSENT
    return None


def _loads(instructions: list[dis.Instruction]) -> Iterator[tuple[int, str, bool]]:
    """(position, name, is it global) of each load of a name; of a pair of loads both."""
    for i, op in enumerate(instructions):
        if op.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield i, op.argval, True
        elif op.opname in ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"):
            yield i, op.argval, False
        elif op.opname == "STORE_FAST_LOAD_FAST":
            yield i, op.argval[1], False
        elif op.opname.startswith("LOAD_FAST"):
            if isinstance(op.argval, tuple):
                yield -1, op.argval[0], False
                yield i, op.argval[1], False
            else:
                yield i, op.argval, False


def _attributes(ops: list[dis.Instruction], position: int) -> tuple[list[str], bool, bool]:
    """The attributes read from the name loaded at `position`; is it called; is it only stored to."""
    if position < 0:
        return [], False, False
    op = ops[position]
    called = op.opname == "LOAD_GLOBAL" and bool((op.arg or 0) & 1)
    if position and ops[position - 1].opname == "PUSH_NULL":
        called = True
    attrs: list[str] = []
    i = position + 1
    while i < len(ops):
        op = ops[i]
        if op.opname == "LOAD_METHOD":
            attrs.append(op.argval)
            return attrs, True, False
        if op.opname == "LOAD_ATTR":
            attrs.append(op.argval)
            if sys.version_info >= (3, 12) and (op.arg or 0) & 1:
                return attrs, True, False
        elif op.opname in ("STORE_ATTR", "DELETE_ATTR") and not attrs:
            return attrs, False, True
        elif op.opname == "PUSH_NULL":
            return attrs, True, False
        elif op.opname != "COPY":
            break
        i += 1
    return attrs, called, False


def _is_own_counter(ops: list[dis.Instruction], position: int, name: str) -> bool:
    """`count += 1`: the value goes nowhere but back into the name."""
    following = ops[position + 1 : position + 4]
    return (
        position >= 0
        and len(following) == 3
        and following[0].opname.startswith(("LOAD_CONST", "LOAD_SMALL_INT"))
        and following[1].opname == "BINARY_OP"
        and following[2].opname in ("STORE_GLOBAL", "STORE_DEREF")
        and following[2].argval == name
    )
