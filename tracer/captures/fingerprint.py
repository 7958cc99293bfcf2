"""A hash of everything that tracing a function can depend on, the same in the next process.

    key = Fingerprint(hidden)
    key.value(function)
    key.digest()

The walk starts at the function and follows whatever its code can reach: bytecode, defaults, closure
cells, the globals that it loads, the functions and classes behind them, all attributes of objects. It
goes further than the guards (`free_variables`), which follow paths: what cannot be excluded is included.
Arrays that are inputs of the compiled code (`hidden`) count by type and layout, others by content;
generators of random numbers that are inputs by their class.

`Unkeyable` is raised for what has no content that lasts (open files, other generators, modules of
other people, objects of C extensions) and for code that does what a hash cannot see: it prints, reads
the clock, assigns to globals, looks names up at run time. Such functions are traced in each process.

File names are left out, since notebooks give each process new ones: `files` lists them in the order
of the walk, so that lines can be told with the names of today.
"""

from __future__ import annotations

import builtins
import enum
import inspect
import linecache
import os
from collections.abc import Iterable
from types import (
    BuiltinFunctionType,
    BuiltinMethodType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from ...runtime.cache.installation import digest
from .bytecode import NameUse, accesses
from .fingerprint_parts import WALKS, cell
from .frozen import ATOMS, PROXIES, attributes_of
from .paths import is_ours
from .purity_allow_list import (
    IMPURE,
    LOOKING,
    Unkeyable,
    impure_names,
    is_pure_builtin,
    is_pure_module,
    origin,
    whose_code,
)

_PLAIN = (bool, int, str, bytes, range, slice, type(None), type(Ellipsis), type(NotImplemented))
_CONSTANTS = (*_PLAIN, float, complex)
_REFLECTION = frozenset(
    "__globals__ __builtins__ __subclasses__ __annotations__ __module__ f_globals f_locals "
    "f_back gi_frame tb_frame".split()
)
_CODE_FIELDS = (
    *("co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_flags", "co_code", "co_names"),
    *("co_varnames", "co_freevars", "co_cellvars", "co_name", "co_firstlineno", "co_linetable"),
    "co_exceptiontable",
)
_BUILTIN_KINDS = (
    BuiltinFunctionType,
    BuiltinMethodType,
    MethodDescriptorType,
    MethodWrapperType,
    WrapperDescriptorType,
)
_CLASS_NOISE = frozenset(
    "__dict__ __weakref__ __module__ __qualname__ __dataclass_fields__ "
    "__dataclass_params__ __abstractmethods__ _abc_impl __firstlineno__ __static_attributes__ "
    "__parameters__ __orig_bases__ __match_args__ __annotate_func__ __annotations_cache__".split()
)
_ENUM_OWN = frozenset(
    "_generate_next_value_ _member_names_ _member_map_ _value2member_map_ _member_type_ "
    "_value_repr_ _use_args_ _new_member_ __new__ __new_member__ _hashable_values_ "
    "_unhashable_values_ _unhashable_values_map_ _boundary_ _flag_mask_ _singles_mask_ _all_bits_ "
    "_inverted_ __format__ __str__ __repr__ __reduce_ex__".split()
)
_FIELD = type(inspect.FullArgSpec.args)  # of a named tuple
_NAMEDTUPLE_OWN = frozenset(
    "__new__ _make _replace __replace__ __repr__ _asdict __getnewargs__".split()
)
_FUNCTION_NOISE = frozenset({"__wrapped__"})
_LIMIT = 20_000  # objects: whoever reaches more is traced


class Fingerprint:
    """A walk over values. `value` and `put` may be called many times."""

    def __init__(self, hidden: Iterable[Any] = (), trusted: Iterable[int] = ()) -> None:
        self.empty_caches: set[int] = set()  # of functions, by id
        self.trusted = frozenset(trusted)  # caches that were empty before this one filled them
        self.files: dict[str, int] = {}
        self._parts: list[str | bytes] = []
        self._seen: dict[int, int] = {}
        self._alive: list[Any] = []
        self._hidden = {id(one) for one in hidden}
        self._names: set[str] = set()  # that the user's code has for attributes and globals
        self._modules: dict[ModuleType, set[str]] = {}  # the user's, with the names walked so far
        self._listed_names: dict[ModuleType, set[str]] = {}
        self._escaped: list[ModuleType] = []  # modules that code passes on as values

    def digest(self, *more: str) -> str:
        self._attributes_of_modules()
        return digest(*self._parts, *more)

    def put(self, *parts: str | bytes) -> None:
        self._parts += parts

    def _again(self, value: Any) -> bool:
        """Whether an object was met before; then its number says which one it is."""
        number = self._seen.get(id(value))
        if number is not None:
            self.put("again", str(number))
            return True
        self._seen[id(value)] = len(self._alive)
        self._alive.append(value)
        if len(self._alive) > _LIMIT:
            raise Unkeyable("too many objects")
        return False

    def value(self, value: Any) -> None:
        """Any object."""
        cls = type(value)
        if cls in PROXIES:
            raise Unkeyable("a weak proxy, of an object that may be gone")
        if cls in _PLAIN:
            self.put(cls.__name__, repr(value))
        elif cls is float:
            self.put("float", value.hex())
        elif cls is complex:
            self.put("complex", value.real.hex(), value.imag.hex())
        elif isinstance(value, np.generic):
            self.put("scalar", repr(value.dtype), value.tobytes())
        elif isinstance(value, np.dtype):
            self.put("dtype", repr(value))
        elif not self._again(value):
            self._object(value, cls)

    def _object(self, value: Any, cls: type) -> None:
        walk = WALKS.get(cls)
        if walk is not None:
            walk(self, value)
        elif cls in ATOMS:
            self.put(cls.__name__, repr(ATOMS[cls](value)))
        elif cls is FunctionType:
            self._function(value)
        elif cls is np.ndarray:
            self._array(value)
        elif id(value) in self._hidden:
            self.put("input", cls.__name__)
        elif isinstance(value, enum.Enum):
            self.value(cls)
            self._member(value)  # flags together have no name at times
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, _BUILTIN_KINDS):
            self._builtin(value)
        elif str(cls.__module__).partition(".")[0] == "numpy":
            self._numpys(value)
        else:
            self._instance(value, cls)

    def _array(self, value: np.ndarray[Any, Any]) -> None:
        if value.dtype.hasobject:
            raise Unkeyable("an array of objects")
        layout = (repr(value.dtype), str(value.shape), str(value.strides), str(value.flags.num))
        self.put("array", *layout)
        self.put("input" if id(value) in self._hidden else value.tobytes())

    # Code

    def _function(self, value: FunctionType) -> None:
        module, whose = value.__globals__.get("__name__"), whose_code(value)
        names = (value.__name__, value.__qualname__)
        self.put("function", str(module) if whose == "listed" else "", *names)
        if whose == "unlisted" or (whose == "listed" and value.__code__.co_name in IMPURE):
            raise Unkeyable(f"{module}.{value.__qualname__}")
        for variable in value.__closure__ or ():
            cell(self, variable)
        if whose == "listed":  # a wrapper of jitney's, say: the version covers its code
            place = value.__code__  # lambdas of one function have one name
            self.put(str(place.co_firstlineno), place.co_linetable)
            return
        self.value(value.__doc__)
        self.value(value.__defaults__)
        self.value(value.__kwdefaults__)
        for name, attribute in list(value.__dict__.items()):
            if name not in _FUNCTION_NOISE:
                self.put(name)
                self.value(attribute)
        self.code(value.__code__, value.__globals__)

    def code(self, code: CodeType, module: dict[str, Any]) -> None:
        """Code of the user's, and the globals that it loads."""
        file = code.co_filename
        if (
            file not in self.files
        ):  # code without source is traced as it is, `if` and `try` untouched
            self.files[file] = len(self.files)
            self.put("source", str(file in linecache.cache or os.path.exists(file)))
        self.put("code", str(self.files[file]))
        for name in _CODE_FIELDS:
            field = getattr(code, name)
            self.put(name, field if isinstance(field, bytes) else repr(field))
        self._names.update(code.co_names)
        loaded: list[str] = []
        attributes: Any = None  # of the module that the code has just loaded
        for access, name in accesses(code):
            if access is NameUse.ATTRIBUTE:
                if name in _REFLECTION or (attributes and name == "__dict__"):
                    raise Unkeyable("a look at what functions and classes are made of")
                attributes = _module_at(vars(attributes).get(name)) if attributes else None
                continue
            if attributes is not None:
                self._escaped.append(attributes)
                attributes = None
            if access is NameUse.GLOBAL:
                loaded.append(name)
                attributes = _module_at(module.get(name))
            elif access is NameUse.GLOBAL_STORED:
                raise Unkeyable("an assignment to a global")
            elif access is NameUse.IMPORT:
                self._imported(name, code.co_names)
        for name in dict.fromkeys(loaded):
            self.put("global", name)
            if name in module:
                value = module[name]
                if isinstance(value, ModuleType):
                    self._module(value, code.co_names)
                else:
                    self.value(value)
            else:
                self._builtin_name(name)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self.code(constant, module)
            else:
                self.value(constant)

    def _imported(self, name: str, names: tuple[str, ...]) -> None:
        top = name.partition(".")[0]
        whose = "listed" if is_pure_module(top) else origin(name)
        if whose != "listed" or name.startswith(".") or IMPURE & set(names):
            raise Unkeyable(f"import {name} while tracing")

    def _module(self, module: ModuleType, names: tuple[str, ...]) -> None:
        """A module that code with these names loads."""
        name = module.__name__
        whose = origin(name)
        if whose == "unlisted":
            raise Unkeyable(f"the module {name}")
        self.put("module", name if whose == "listed" else "")
        content = vars(module)
        if whose == "listed":
            if impure := impure_names(module, names):
                raise Unkeyable(f"{name}.{impure[0]}")
            self._names_of_listed(module, names)
            return
        if "__getattr__" in content:
            raise Unkeyable(f"the module {name} makes up its names")
        if module not in self._modules:
            self._modules[module] = set()
        self.put(str(list(self._modules).index(module)))

    def _names_of_listed(self, module: ModuleType, names: tuple[str, ...]) -> None:
        """What is in a module on the list, in case that somebody has put or replaced it."""
        if not self._again(module):
            self._listed_names[module] = set()
        seen, ours = self._listed_names[module], is_ours(module.__name__)
        for attribute in names:
            if attribute in seen:
                continue
            seen.add(attribute)
            value = vars(module).get(attribute)
            if value is None and attribute in vars(module).get("__numpy_submodules__", ()):
                value = getattr(module, attribute, None)  # loaded when it is asked for
            if value is None or (ours and type(value) not in _CONSTANTS):
                continue
            self.put("name", attribute)
            if isinstance(value, ModuleType):
                if origin(value.__name__) == "listed":
                    self.put(value.__name__)
                    self._names_of_listed(value, names)
            elif isinstance(value, FunctionType) and whose_code(value) == "listed":
                self.put(str(value.__module__), value.__qualname__)
            elif origin(type(value).__module__) != "listed" or type(value).__module__ == "builtins":
                self.value(value)
            else:
                self.put(str(getattr(value, "__module__", "")), getattr(value, "__name__", ""))

    def _builtin_name(self, name: str) -> None:
        """A name of the builtins: what stands there, if somebody has put it there."""
        value = getattr(builtins, name, None)
        own = getattr(value, "__module__", "builtins") == "builtins"
        own = own and getattr(value, "__name__", name) == name
        pure = is_pure_builtin(name) or name in LOOKING
        if own and pure and not isinstance(value, FunctionType):
            return
        if not isinstance(value, FunctionType) or whose_code(value) != "user":
            raise Unkeyable(f"the builtin {name}")
        self.value(value)

    def _attributes_of_modules(self) -> None:
        """What code can reach in the user's modules. All names that any code has count for each
        module, since one function can load a module and another, given it, read an attribute."""
        before = -1
        while before != (before := len(self._alive) + len(self._names) + len(self._modules)):
            for number, (module, walked) in enumerate(list(self._modules.items())):
                content = vars(module)
                for attribute in sorted((self._names & content.keys()) - walked):
                    walked.add(attribute)
                    self.put("attribute", str(number), attribute)
                    value = content[attribute]
                    if isinstance(value, ModuleType):
                        self._module(value, ())
                        self._escaped.append(value)
                    else:
                        self.value(value)
        for module in self._escaped:
            if (LOOKING | {"__dict__"}) & self._names or impure_names(module, self._names):
                raise Unkeyable(f"attributes of the module {module.__name__} found at run time")

    def _builtin(self, value: Any) -> None:
        owner = getattr(value, "__self__", None)
        if owner is not None and not isinstance(owner, ModuleType):
            self.value(owner)
        elif hasattr(value, "__objclass__"):
            self.value(value.__objclass__)
        elif origin(value.__module__) != "listed" or value.__name__ in IMPURE:
            raise Unkeyable(f"{value.__module__}.{value.__name__}")
        elif value.__module__ == "builtins" and not is_pure_builtin(value.__name__):
            raise Unkeyable(f"the builtin {value.__name__}")
        module = getattr(value, "__module__", None) or ""  # math.sqrt is not cmath.sqrt
        self.put("builtin", module, value.__name__)

    def _numpys(self, value: Any) -> None:
        """A function of NumPy's that is no Python function: ufuncs, dispatchers."""
        name = getattr(value, "__name__", "")
        module = getattr(value, "__module__", None) or "numpy"
        trusted = name and name not in IMPURE and origin(module) == "listed"
        if not trusted or not callable(value) or type(value).__name__ == "vectorize":
            raise Unkeyable(f"an object of type {type(value).__name__}")
        if isinstance(value, np.ufunc) and getattr(np, name, None) is not value:
            raise Unkeyable(f"the ufunc {name}, not NumPy's")
        self.put("numpy", name)

    # Classes and objects

    def _class(self, cls: type) -> None:
        whose = origin(cls.__module__)
        if cls.__module__ == "builtins" and not is_pure_builtin(cls.__name__):
            whose = "listed" if cls.__name__ in ("NoneType", "function", "method") else "unlisted"
        names = cls.__name__, cls.__qualname__
        self.put("class", cls.__module__ if whose == "listed" else "", *names)
        if whose == "listed" and cls.__name__ not in IMPURE:
            return
        if whose != "user":
            raise Unkeyable(f"the class {cls.__module__}.{cls.__qualname__}")
        if type(cls) is not type:
            self.value(type(cls))
        for base in cls.__bases__:
            self.value(base)
        for name, member in list(vars(cls).items()):
            if name in _CLASS_NOISE or (name in _NAMEDTUPLE_OWN and hasattr(cls, "_fields")):
                continue
            if isinstance(cls, enum.EnumMeta) and name in _ENUM_OWN:
                continue
            self.put(name)
            if isinstance(member, (MemberDescriptorType, GetSetDescriptorType)):
                self.put("slot")
            elif type(member) is _FIELD:
                self.put("field")
            elif isinstance(member, enum.Enum) and type(member) is cls:
                self._member(member)
            else:
                self.value(member)

        if isinstance(cls, enum.EnumMeta):
            for member in cls._member_map_.values():
                self._member(member)

    def _member(self, member: enum.Enum) -> None:
        for name, attribute in list(vars(member).items()):
            if name not in ("__objclass__", "_sort_order_", "_inverted_"):
                self.put(name)
                self.value(attribute)

    def _instance(self, value: Any, cls: type) -> None:
        whose = origin(cls.__module__)
        if whose == "unlisted":
            raise Unkeyable(f"an object of type {cls.__module__}.{cls.__qualname__}")
        attributes = attributes_of(value)
        listed = whose == "listed"  # a user's `__getattr__` is asked for nothing of ours
        own = (
            getattr(value, "_fingerprint", None) if listed else None
        )  # ours hold more than they mean
        if callable(own):
            attributes = own()
        is_container = any(base in WALKS for base in cls.__mro__)
        if attributes is None and listed and not is_container:
            raise Unkeyable(f"an object of type {cls.__qualname__}")
        self.put("object")
        self.value(cls)
        if not callable(own):
            self._content(value, cls)
        for name, attribute in (attributes or {}).items():
            self.put(name)
            self.value(attribute)

    def _content(self, value: Any, cls: type) -> None:
        """What an object of a class derived from a builtin one has in that."""
        for base in cls.__mro__:
            if base in WALKS:
                WALKS[base](self, value)
                return
            if base in ATOMS:
                self.put(repr(ATOMS[base](value)))
                return
            if _has_inside(base):
                raise Unkeyable(f"an object of type {cls.__qualname__}")


def _has_inside(cls: type) -> bool:
    """Whether objects of a class keep something where Python does not see it."""
    base = cls.__base__
    if base is None or cls.__basicsize__ == base.__basicsize__:
        return False
    return not {"__dict__", "__weakref__", "__slots__"} & vars(cls).keys()


def _module_at(value: Any) -> ModuleType | None:
    return value if isinstance(value, ModuleType) else None
