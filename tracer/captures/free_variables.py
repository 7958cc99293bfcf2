"""Which outside values does a function read? Found in its bytecode, before it is traced.

A *path* is a name and attributes of it: `lr`, `config.model.width`, `self.w`. `find_free_variables`
walks the bytecode of a function, of the functions nested in it, and of the user's functions,
methods and classes that those reach, and lists the values at the ends of the paths.

What is seen: globals, the builtins that they could shadow, closure cells, defaults, attributes of
modules, classes, functions and objects, the code of functions, methods and properties, and, where a
value goes somewhere as a whole, all that it is made of (`frozen`). Functions inside of such values
and the methods of such objects may run or not: what they read counts if they did while the function
was traced (`doubtful`). Code of NumPy, jitney, the standard library and other installed packages is
not entered.

What is not seen: what code that comes out of calls of other packages reads, files and clocks. Such
values are those of the time of tracing. Writing outside state (`history.append(n)`, `count += 1`)
happens while tracing only.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import os
import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from ...ir.record import field, record
from ..data.generators import kind_of
from .frozen import Namespace, can_change, is_user_function, own_dictionary, walk
from .loads import attributes, instructions_of, loads
from .paths import ABSENT, Path, is_ours, is_user_module, state_of

_WRITERS: dict[type, tuple[str, ...]] = {
    list: ("append", "extend", "insert"),
    set: ("add", "update"),
}
_LIMIT = 2000  # functions entered: beyond that the rest is not tracked
_BUILTINS = vars(builtins)
_LOOKING = frozenset({"globals", "eval", "exec", "__import__"})
_METHODS = (FunctionType, classmethod, staticmethod)

Key = tuple[Any, ...]


@record(frozen=False)
class FreeVariables:
    """What `find_free_variables` gives.

    `values` are the ends of paths. A key that ends with "is" asks for the identity alone, with "code"
    for what a function does when it is called, with "absent" for there being nothing. `functions` are
    those that a copy can stand in for, each with the paths that lead to it. `fixed` are the paths that
    other code reads too, `written` those that the code assigns to, `added` lists and sets that it adds
    to, `stored` the names of globals that it assigns to, by the id of the module's dict, `codes` all
    code that was entered, `of_code` the attributes of classes and functions that are assigned to, with
    what they are now. `doubtful` are the keys, and `doubtfully_fixed` the paths, that only code
    reads of which nobody knows yet whether it will run: the code of each.
    """

    values: dict[Key, tuple[Path, Any]] = field(default_factory=dict)
    functions: dict[int, tuple[FunctionType, list[Path]]] = field(default_factory=dict)
    fixed: set[Key] = field(default_factory=set)
    written: dict[Key, Path] = field(default_factory=dict)
    added: dict[Key, Path] = field(default_factory=dict)
    stored: dict[int, set[str]] = field(default_factory=dict)
    doubtful: dict[Key, set[CodeType]] = field(default_factory=dict)
    doubtfully_fixed: dict[Key, set[CodeType]] = field(default_factory=dict)
    codes: dict[CodeType, None] = field(default_factory=dict)
    of_code: dict[tuple[int, str], tuple[Any, str, Any]] = field(default_factory=dict)


def find_free_variables(
    function: Any, objects: Sequence[Path] = (), static: Sequence[tuple[str, Any]] = ()
) -> FreeVariables:
    """The outside values that `function` reads. `objects` are paths to arguments that are objects, named
    as the parameters are where they are such by themselves; `static` are arguments that it gets as they
    are, with their names."""
    finder = _Finder()
    finder.objects = {path.name: path for path in objects}
    if isinstance(function, FunctionType):
        finder.function(function, None, True, None)
    else:
        finder.callable(function, None, False)
    for path in objects:
        if not _is_followed(path.name, function):
            finder.end(path, path.find(), False)
    for name, value in static:
        finder.end(finder.path_to(value, name), value, False)
    return finder.variables


def _is_followed(name: str, function: Any) -> bool:
    """Whether a name stands for one argument all through the code of a function."""
    code = function.__code__ if isinstance(function, FunctionType) else None
    if code is None or name not in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        return False
    stores = (op for op in instructions_of(code) if op.opname in ("STORE_FAST", "STORE_DEREF"))
    return all(op.argval != name for op in stores)


class _Finder:
    """A walk over functions, and what they call, that collects what their code reads."""

    def __init__(self) -> None:
        self.variables = FreeVariables()
        self._seen: set[Key] = set()
        self._paths: dict[int, Path] = {}
        self._namespaces: dict[int, Namespace] = {}
        self._reached: set[tuple[int, bool]] = set()
        self._doubt = False
        self._code: CodeType | None = None  # that is being walked
        self.objects: dict[str, Path] = {}  # parameters of the first function that are objects

    def path_to(self, value: Any, name: str | None = None) -> Path:
        """A path that starts at an object itself."""
        path = self._paths.get(id(value))
        if path is None:
            name = name or getattr(value, "__name__", type(value).__name__)
            path = self._paths[id(value)] = Path("value", value, str(name))
        return path

    @contextmanager
    def doubting(self) -> Iterator[None]:
        """What is entered meanwhile may run or not."""
        before, self._doubt = self._doubt, True
        yield
        self._doubt = before

    # Functions

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
            paths = self.variables.functions.setdefault(id(function), (function, []))[1]
            if path is not None and path.key not in (p.key for p in paths):
                paths.append(path)
        key = (id(function), owner.key if owner else None, free, owner_free)
        entered = (*key, self._doubt)
        if entered in self._seen or (*key, False) in self._seen or len(self._seen) > _LIMIT:
            return
        self._seen.add(entered)
        before, self._code = self._code, function.__code__
        self._enter(function, owner, free, owner_free)
        self._code = before

    def _enter(
        self, function: FunctionType, owner: Path | None, free: bool, owner_free: bool
    ) -> None:
        code = function.__code__
        cells = {
            name: (Path("cell", cell, name), free)
            for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True)
        }
        if not is_user_function(function):
            self.wrapper(function, [path for path, _ in cells.values()], free)
            return
        if self._doubt and code.co_filename == "<string>":
            return  # made by a dataclass or a named tuple: reads what is its own
        own_path = self.path_to(function)
        self.record(own_path, function, True, "code")
        for name in ("__defaults__", "__kwdefaults__"):
            held = getattr(function, name)
            if type(held) is tuple and self._are_arguments(code, held):
                self.record(own_path.get(name), held, free, "is")
            elif held:
                self.end(own_path.get(name), held, free)
        names = dict(cells)
        if owner is not None and code.co_argcount:
            names[code.co_varnames[0]] = (owner, owner_free)
        parameters, self.objects = self.objects, {}
        names |= {name: (path, True) for name, path in parameters.items()}
        self.code(code, function.__globals__, names, free)

    def _are_arguments(self, code: CodeType, defaults: tuple[Any, ...]) -> bool:
        """Whether defaults are all arguments of this call, as objects are that it leaves out, or what
        cannot change."""
        names = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
        pairs = zip(names, defaults, strict=True)
        return all(
            (name in self.objects and self.objects[name].find() is value)
            or (state_of(value) is None and not can_change(value))
            for name, value in pairs
        )

    def wrapper(self, function: FunctionType, cells: list[Path], free: bool) -> None:
        """A library's function around the user's (jt.grad(f), a decorator): enter what it wraps."""
        wrapped = getattr(function, "__wrapped__", None)
        for path in cells:
            value = path.find()
            if isinstance(value, FunctionType):
                self.function(value, None, free, path)
            elif isinstance(value, MethodType):
                self.callable(value, None, False)
            elif isinstance(value, tuple) and is_ours(function.__globals__.get("__name__")):
                for part in filter(callable, value):
                    self.callable(part, None, False)
            elif not is_ours(function.__globals__.get("__name__")) and value is not ABSENT:
                self.end(path, value, False)
        if wrapped is not None and not (free and id(wrapped) in self.variables.functions):
            self.callable(wrapped, None, False)

    def code(
        self,
        code: CodeType,
        module: dict[str, Any],
        names: dict[str, tuple[Path, bool]],
        free: bool,
    ) -> None:
        """Enter code. `names` are its variables that have paths, and whether they are free."""
        self.variables.codes[code] = None
        instructions = instructions_of(code)
        local = dict(names)
        for op in instructions:
            if op.opname == "STORE_GLOBAL":
                target = Path("global", module, op.argval)
                self.variables.written[target.key] = target
                self.variables.stored.setdefault(id(module), set()).add(op.argval)
            elif op.opname == "STORE_DEREF" and op.argval in local:
                target = local[op.argval][0]
                if target.kind == "cell":
                    self.variables.written[target.key] = target
            elif op.opname == "STORE_FAST":
                local.pop(op.argval, None)
            elif op.opname == "IMPORT_NAME":
                self.imported(op.argval)
        for position, name, is_global in loads(instructions):
            if is_global and name == "super":
                self.inherited(code, local)
            if is_global and name in _LOOKING:
                self.namespace(module)
            if is_global:
                path, path_free = self.named(module, name), free
            elif name in local:
                path, path_free = local[name]
            else:
                continue
            attrs, called, stored = attributes(instructions, position)
            if stored:
                self.assigned(path, instructions[position + 1].argval)
            else:
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

    def named(self, module: dict[str, Any], name: str) -> Path:
        """Where a global name leads: into the module, or to a builtin that the module may shadow."""
        path = Path("global", module, name)
        if name in module or name not in _BUILTINS or path.key in self.variables.written:
            return path
        self.record(path, ABSENT, True, "absent")
        return Path("global", _BUILTINS, name)

    def namespace(self, module: dict[str, Any]) -> None:
        """Code looks into its module at names that it makes up."""
        content = self._namespaces.setdefault(id(module), Namespace(module))
        self.end(self.path_to(content, "globals()"), content, False)

    def imported(self, name: str) -> None:
        """A module is imported while the code runs."""
        module = sys.modules.get(name, ABSENT)
        if module is ABSENT:
            self.record(Path("global", sys.modules, name), ABSENT, True, "absent")
        elif is_user_module(name):
            self.end(self.path_to(module), module, False)

    def inherited(self, code: CodeType, local: dict[str, tuple[Path, bool]]) -> None:
        """`super().name`: enter every base's method of a name that the code mentions."""
        if not code.co_argcount or code.co_varnames[0] not in local:
            return
        owner, free = local[code.co_varnames[0]]
        value = owner.find()
        for cls in type(value).__mro__[1:-1]:
            for name in code.co_names:
                attribute = vars(cls).get(name)
                if isinstance(attribute, FunctionType):
                    self.record(self.path_to(cls).get(name), attribute, True, "code")
                    self.function(attribute, owner, False, owner_free=free)

    # Paths

    def assigned(self, path: Path, attr: str) -> None:
        """An attribute of what a name leads to is assigned to."""
        value = path.find()
        if isinstance(value, ModuleType):
            target = Path("global", vars(value), attr)
            self.variables.written[target.key] = target
            self.variables.stored.setdefault(id(target.root), set()).add(attr)
        elif isinstance(value, (type, FunctionType)):
            key = (id(value), attr)
            self.variables.of_code.setdefault(key, (value, attr, vars(value).get(attr, ABSENT)))
        elif value is not ABSENT:
            self.record(path, value, True, "is")

    def follow(self, path: Path, attrs: list[str], called: bool, free: bool) -> None:
        """Walk down the attributes as far as they lead to plain values."""
        value, at_end = path.find(), False
        for position, attr in enumerate(attrs):
            if value is ABSENT or state_of(value) is not None or kind_of(value) is not None:
                break
            if isinstance(value, ModuleType):
                self.record(path, value, True, "is")
                if is_ours(value.__name__) or _makes_up(value, attr):
                    return
                path, value = Path("global", vars(value), attr), vars(value).get(attr, ABSENT)
                free = False  # the copy of a function sees the module itself
                continue
            member = _attribute(value, attr)
            if member is not None and member is not ABSENT:
                only_called = called and position == len(attrs) - 1
                self.member(member, path, attr, value, free, "is" if only_called else "")
                return
            if member is ABSENT:
                last = position == len(attrs) - 1
                if attr in _WRITERS.get(type(value), ()) and last and called:
                    self.variables.added[path.key] = path
                    return
                break
            if path.kind == "global" and not path.attrs and isinstance(value, type):
                free = False
            path, value = path.get(attr), path.get(attr).find()
        else:
            at_end = True
            if value is not ABSENT and called and self.call(path, value, free):
                return
        if value is os.getenv:  # a wrapper's function, which would not be entered
            self.end(self.path_to(os.environ, "os.environ"), os.environ, False)
        if value is not ABSENT:
            self.end(path, value, free, called and at_end)
        elif path.key not in self.variables.written:
            self.record(path, ABSENT, True, "absent")

    def member(self, what: Any, path: Path, attr: str, value: Any, free: bool, how: str) -> None:
        """A property, or a method: what it is now, and what its code reads."""
        member = path.get(attr)
        in_class = isinstance(value, type) and _found_in(value, attr) is what  # not in a metaclass
        of_class = member if in_class else path.get("__class__").get(attr)
        owner = None if in_class else path
        if isinstance(what, property):
            self.record(of_class, what, True, "is")
            if isinstance(what.fget, FunctionType):
                self.function(what.fget, path, False, owner_free=free)
            return
        if not isinstance(what, _METHODS):  # a jitted method, what lru_cache makes of one
            self.record(of_class, what, True)
            self.function(what.__wrapped__, owner, False, owner_free=free)
            return
        function = what if isinstance(what, FunctionType) else what.__func__
        if isinstance(what, classmethod):
            owner = path if in_class else path.get("__class__")
        elif isinstance(what, staticmethod):
            owner = None
        self.record(member if owner is None else member.get("__func__"), function, True, how)
        if isinstance(function, FunctionType):
            self.function(function, owner, False, owner_free=free)
        else:
            self.callable(function, owner, False)

    def call(self, path: Path, value: Any, free: bool) -> bool:
        """An object of a user's class is called: only what its `__call__` reads counts."""
        call = _found_in(type(value), "__call__")
        jitted = getattr(call, "__wrapped__", call)  # a jitted method
        if isinstance(value, (type, FunctionType, MethodType)) or not isinstance(
            jitted, FunctionType
        ):
            return False
        if not is_user_module(type(value).__module__):
            return False
        self.record(path, value, free, "is")
        self.record(path.get("__class__").get("__call__"), call, True, "is")
        if isinstance(call, FunctionType) and call is not jitted:
            self.function(call, path, False, owner_free=free)  # a decorator's
        self.function(jitted, path, False, owner_free=free)
        return True

    def end(self, path: Path, value: Any, free: bool, called: bool = False) -> None:
        """A value as a whole is read."""
        state = state_of(value)
        if state is not None:
            path, value = path.get(state), getattr(value, state)
        entered = (FunctionType, MethodType, functools.partial)  # what it holds is read by paths
        by_identity = isinstance(value, entered) and (called or not isinstance(value, FunctionType))
        self.record(path, value, free, "is" if by_identity else "")
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
            if isinstance(value.__func__, FunctionType):
                path_of_value = self.path_to(value.__self__, "self")
                self.function(value.__func__, path_of_value, False, owner_free=False)
        elif isinstance(value, functools.partial):
            path_of_value = self.path_to(value, "partial")
            self.end(path_of_value.get("args"), value.args, False)
            self.end(path_of_value.get("keywords"), value.keywords, False)
            self.callable(value.func, None, False)
        elif isinstance(inspect.getattr_static(value, "__wrapped__", None), FunctionType):
            wrapped = value.__wrapped__
            if hasattr(type(value), "__jitney_rules__"):
                self.rules(value)
            jitted = type(value).__name__ == "JitFunction"
            free = free and jitted and path is not None and not path.attrs
            self.function(wrapped, None, free, path if free else None)
        else:
            if is_user_module(type(value).__module__) and not isinstance(value, type):
                call = _found_in(type(value), "__call__")
                if isinstance(call, FunctionType):
                    path_of_value = path or self.path_to(value)
                    self.record(path_of_value.get("__class__").get("__call__"), call, True, "is")
                    self.function(call, path_of_value, False, owner_free=False)
            if path is not None:
                self.reach(value)
            elif isinstance(value, type):
                self.end(self.path_to(value), value, False)

    def rules(self, value: Any) -> None:
        """The rules of a function with derivatives of the user's own, which run beside it."""
        path = self.path_to(value)
        for name, rule in value.__jitney_rules__.items():
            self.record(path.get(name), rule, True, "is")
            self.callable(rule, None, False)

    def reach(self, value: Any) -> None:
        """Whatever code a value as a whole leads to: it may run."""
        if (id(value), self._doubt) in self._reached:
            return
        self._reached.add((id(value), self._doubt))
        with self.doubting():
            for part, _ in walk(value, arrays=False):
                if isinstance(part, FunctionType):
                    self.function(part, None, False)
                elif isinstance(part, type):
                    for function in _functions_of(part):
                        self.function(function, None, False)
                names = _names_of(part)
                for named in list(names.values()):
                    if isinstance(named, (FunctionType, type)):
                        self.reach(named)

    def record(self, path: Path, value: Any, free: bool, how: str = "") -> None:
        key = (*path.key, how) if how else path.key
        variables, doubtful = self.variables, self.variables.doubtful
        is_certain = key in variables.values and key not in doubtful
        variables.values.setdefault(key, (path, value))
        if not self._doubt:
            doubtful.pop(key, None)
        elif not is_certain and self._code is not None:
            doubtful.setdefault(key, set()).add(self._code)
        if free:
            return
        if self._doubt and self._code is not None:
            variables.doubtfully_fixed.setdefault(path.key, set()).add(self._code)
        else:
            variables.fixed.add(path.key)


def _found_in(cls: type, name: str) -> Any:
    """What an operation on objects of a class takes: an attribute of the class or of a base."""
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)


def _names_of(value: Any) -> dict[str, Any]:
    """What is in a user's module."""
    if isinstance(value, Namespace):
        return value.names
    user = isinstance(value, ModuleType) and is_user_module(value.__name__)
    return vars(value) if user else {}


def _makes_up(module: ModuleType, attr: str) -> bool:
    """Whether a module's `__getattr__` is asked for an attribute."""
    return attr not in vars(module) and "__getattr__" in vars(module)


def _functions_of(cls: type) -> Iterator[FunctionType]:
    """The functions that the methods and properties of a user's class are."""
    for base in cls.__mro__:
        if not is_user_module(base.__module__):
            continue
        for member in list(vars(base).values()):
            members = [getattr(member, n, None) for n in ("fget", "fset", "fdel", "func")]
            if isinstance(member, _METHODS) or hasattr(type(member), "__get__"):
                members += member, inspect.unwrap(member) if callable(member) else None
                members.append(getattr(member, "__func__", None))
            yield from (h for h in members if isinstance(h, FunctionType))


def _attribute(value: Any, attr: str) -> Any:
    """What `value.attr` is: a method or property whose code can be entered; None if it is data that
    is there for the reading; ABSENT if it takes other code to know."""
    if isinstance(value, FunctionType):
        return None
    cls = type(value)
    user = is_user_module(value.__module__ if isinstance(value, type) else cls.__module__)
    if isinstance(value, type):
        if not user:
            return ABSENT
    elif cls.__module__ == builtins.__name__ or isinstance(cls.__getattribute__, FunctionType):
        return ABSENT
    member = inspect.getattr_static(value, attr, ABSENT)
    if member is ABSENT or isinstance(member, types.MemberDescriptorType):
        return None if member is not ABSENT else ABSENT
    if member is own_dictionary(value).get(attr, ABSENT) and not isinstance(value, type):
        return None
    if not user:
        return ABSENT
    if isinstance(member, types.GetSetDescriptorType):
        return None
    if isinstance(member, (property, *_METHODS)):
        return member
    if not hasattr(type(member), "__get__"):
        return None
    return member if isinstance(getattr(member, "__wrapped__", None), FunctionType) else ABSENT
