"""From the arguments of a call to its signature: what is traced, what is static, what is the key.

Two calls share compiled code when they have the same structure (with the keys of dicts and of
`**kwargs` in the same order, which the function can see), static values, shapes, dtypes and layout
class. `Call` holds that; `Call.key` is hashable.
"""

from __future__ import annotations

import enum
import functools
import inspect
from collections import Counter, deque
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from itertools import accumulate
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.lib.array_utils import byte_bounds

from ...ir.record import record, replace
from ...ir.types import TensorType, dtype_name, is_supported
from ...runtime.cuda.array import DeviceArray
from ...runtime.devices import CPU, Device
from ..captures.frozen import can_change, is_random_state
from ..captures.hidden import array_of, array_spec, holder_of, is_generator
from ..captures.paths import is_user_module
from ..captures.subjects import Object, ObjectLeaf, is_object
from ..core.specs import WEAK_DTYPES, Same, Spec, Static
from ..data import pytree
from ..data.accept import check_dtype, plain_array, refuse
from ..data.exact import Exact
from ..data.foreign import borrow
from ..data.lists import ListKind, ListLeaf, has_many, with_leaves
from ..data.shapes import ShapeDtype
from ..devices.devices import CHOSEN, device_of, is_foreign, own_device, put, resolved
from ..messages import errors
from ..messages.errors import ChangedArgument, TracerBase, complain
from ..records.kinds import is_structured_array, owner_of

if TYPE_CHECKING:
    from ..captures.heap import Heap
    from ..captures.kept import Place
    from ..containers.kinds import Kinds

_WEAK = {bool: "b", int: "i", float: "f", complex: "c"}
_NUMBERS = (bool, int, float, complex, np.generic)
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_CONSTANTS = (str, bytes, enum.Enum, np.dtype, range, slice, type(Ellipsis), type(NotImplemented))
_FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodType, type(np.sum))
_ORDINARY = frozenset({np.ndarray, *_WEAK})
_NO_FOREIGN = _ORDINARY | {ListLeaf}
_MOST_NUMBERS = 2000  # in lists, of which each can be a value of the graph


class StaticLeaf:
    """A static argument on its way through the pytree functions."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


@record
class StaticNames:
    """Which parameters are static: positions and names, made consistent by the signature."""

    positions: frozenset[int]
    names: frozenset[str]

    @property
    def any(self) -> bool:
        return bool(self.positions or self.names)


def static_names(
    function: Callable[..., Any],
    numbers: Sequence[int],
    argnames: Sequence[str] = (),
    option: str = "static_argnums",
) -> StaticNames:
    """Resolve static_argnums (or what `option` is) and static_argnames. Raises StaticArgumentError for
    unknown ones."""
    names = set(argnames)
    signature = signature_of(function)
    if signature is None:
        return StaticNames(frozenset(numbers), frozenset(names))
    parameters = list(signature.parameters.values())
    positional = [
        p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    takes_more = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    takes_names = any(p.kind is p.VAR_KEYWORD for p in parameters)
    positions = set()
    for number in numbers:
        position = number + len(positional) if number < 0 else number
        if not 0 <= position < len(positional) and not (takes_more and position >= 0):
            complain(
                errors.StaticArgumentError,
                f"{option}={number}, but {_name(function)}{signature} has {len(positional)} "
                f"positional parameter{'s' * (len(positional) != 1)}",
                "name the parameter with static_argnames instead."
                if option == "static_argnums"
                else f"count the parameters from 0, or leave out {option}.",
            )
        positions.add(position)
        if position < len(positional):
            names.add(positional[position])
    for name in sorted(names):
        if name in positional:
            positions.add(positional.index(name))
        elif not takes_names and name not in signature.parameters:
            complain(
                errors.StaticArgumentError,
                f"static_argnames has {name!r}, which is no parameter of {_name(function)}{signature}",
                f"choose among {', '.join(signature.parameters)}.",
            )
    return StaticNames(frozenset(positions), frozenset(names))


def signature_of(function: Callable[..., Any]) -> inspect.Signature | None:
    """The signature, or None where Python knows none."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", type(function).__name__)


def arrange(
    args: Sequence[Any],
    kwargs: dict[str, Any],
    static: StaticNames,
    signature: inspect.Signature | None,
    whole: Collection[int | str] = (),
) -> tuple[Sequence[Any], dict[str, Any]]:
    """The arguments in their places, with the static ones wrapped, and those that the function may
    change, by position or name: objects whose method it is, containers of its caller's."""
    args, kwargs = _bound(args, kwargs, signature)
    if static.any:
        args = [
            _static(a, f"argument {i}") if i in static.positions else a for i, a in enumerate(args)
        ]
    if whole:
        args = [_whole(a) if i in whole else a for i, a in enumerate(args)]
        kwargs = {k: _whole(v) if k in whole else v for k, v in kwargs.items()}
    if static.any:
        kwargs = {k: _static(v, k) if k in static.names else v for k, v in kwargs.items()}
    return args, kwargs


def _bound(
    args: Sequence[Any], kwargs: dict[str, Any], signature: inspect.Signature | None
) -> tuple[Sequence[Any], dict[str, Any]]:
    """Keywords as positions, so that f(x, y) and f(x, y=y) share their code."""
    if not kwargs or signature is None:
        return args, kwargs
    bound = signature.bind(*args, **kwargs)
    return bound.args, bound.kwargs


def order_matters(names: Iterable[str], signature: inspect.Signature | None) -> bool:
    """Whether a function can see in which order keyword arguments are given."""
    return len(_unnamed(names, signature)) > 1


def _unnamed(names: Iterable[str], signature: inspect.Signature | None) -> list[str]:
    """The keyword arguments that no parameter is named after."""
    named = () if signature is None else signature.parameters.values()
    of_parameters = {p.name for p in named if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    return [name for name in names if name not in of_parameters]


class Call:
    """The arguments of one call, flattened: leaves, their specs, and the structure. With `packs` long
    lists of numbers are leaves, with 2 tables of them, too; with 3 what has many lists is not taken
    apart."""

    def __init__(
        self,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        static: StaticNames,
        signature: inspect.Signature | None,
        *,
        whole: frozenset[int | str] = frozenset(),
        device: Device | None = None,
        numbers: Callable[[Hashable], frozenset[int]] = lambda structure: frozenset(),
        packs: int = 0,
    ) -> None:
        args, kwargs = _bound(args, kwargs, signature)
        self._has_many = False
        if packs > 2:
            many: frozenset[int | str] = frozenset(i for i, a in enumerate(args) if has_many(a))
            many |= {name for name, value in kwargs.items() if has_many(value)}
            self._has_many, whole = bool(many - whole), whole | many
        args, kwargs = arrange(args, kwargs, static, signature, whole)
        self._given = args, kwargs
        if packs:
            args, kwargs = with_leaves((tuple(args), kwargs), tables=packs > 1)
        self.whole = whole
        self.args, self.kwargs = tuple(args), kwargs
        self._signature = signature
        self.leaves, self.tree = pytree.flatten((self.args, kwargs))
        self.structure = pytree.as_written((self.args, kwargs))[1]
        # Leaves that are static without being named: Python bools that are arguments by themselves,
        # and the numbers that tracing asked for.
        children = [c for tree in self.tree.children() for c in tree.children()]
        starts = accumulate((c.num_leaves for c in children), initial=0)
        bools = [
            i
            for i, child in zip(starts, children, strict=False)
            if child.is_leaf() and type(self.leaves[i]) is bool
        ]
        self._static = numbers(self.structure).union(bools)
        self.failure: Exception | None = None  # what became of tracing it
        # Those that tracing may ask for, and what it was given, see `computed_numbers`.
        self.computed: Mapping[str, Any] = {}
        self.guard: Any = None
        # Of first axes whose length each call binds, see `lengths`; else why there are none.
        self.lengths: Sequence[Any] = ()
        self.family: Any = None
        self.why_static = ""
        self.still: Sequence[tuple[Any, Any]] = ()  # see `Trace`
        self.names: list[str] = []
        # Where the call has to run; None: wherever what the function reads is, or by default.
        self.device = self._choose_device(device)
        self.specs = self._specs()
        self.has_lists = self.has_tables = False  # of numbers, each of which is one leaf
        for i, spec in enumerate(self.specs):
            if type(self.leaves[i]) is ListLeaf:
                self.has_tables = self.has_tables or self.leaves[i].kind.table
                self.leaves[i] = self.leaves[i].items
                self.has_lists = True
            elif isinstance(spec, Spec) and spec.holder is not None:
                self.leaves[i] = array_of(self.leaves[i])
            elif isinstance(self.leaves[i], ObjectLeaf):
                self.leaves[i] = self.leaves[i].value

    def packs_less(self) -> int | None:
        """What lists are to be arrays if it can't be traced as it is: None if nothing is to change."""
        if self.failure and self._has_many:
            return 2
        if not self.failure or not self.has_lists:
            return None
        if self.has_tables:
            return 1
        packed = [leaf for leaf in self.leaves if type(leaf) is list]
        return 0 if sum(map(len, packed)) <= _MOST_NUMBERS else None

    def _choose_device(self, device: Device | None) -> Device | None:
        """Where to run. Arrays in the memory of some GPU become DeviceArrays, or NumPy's on the CPU."""
        device = device and resolved(device)
        if device != CPU and not any(type(leaf) not in _ORDINARY for leaf in self.leaves):
            return device
        for i, leaf in enumerate(self.leaves):
            if device == CPU and isinstance(leaf, DeviceArray):
                self.leaves[i] = np.asarray(leaf)
            elif type(leaf) not in _NO_FOREIGN and not is_generator(leaf):
                if is_foreign(leaf):
                    self.leaves[i] = put(leaf, device or own_device(leaf))
                else:
                    array = borrow(leaf)
                    self.leaves[i] = leaf if array is None else array
        return device or device_of(self.leaves)

    @functools.cached_property
    def containers(self) -> Kinds:
        """Those that the function makes, and that grow."""
        from ..containers.kinds import Kinds  # when it is traced: a cached call starts without

        return Kinds()

    @property
    def ordered(self) -> list[str]:
        """The arguments by name whose order the function can see."""
        return _unnamed(self.kwargs, self._signature)

    @property
    def objects(self) -> list[tuple[int, Any]]:
        """The arguments that are objects, with their places among the leaves."""
        pairs = enumerate(zip(self.specs, self.leaves, strict=True))
        return [(i, leaf) for i, (spec, leaf) in pairs if isinstance(spec, Object)]

    def _specs(self) -> list[Spec | Static | Same | Object]:
        specs: list[Spec | Static | Same | Object] = []
        for i, leaf in enumerate(self.leaves):
            specs.append(self._spec(i, leaf))
        return specs

    def _spec(self, index: int, leaf: Any) -> Spec | Static | Object:
        cls = type(leaf)
        if cls is np.ndarray and is_supported(leaf.dtype):
            return array_spec(leaf)
        if index in self._static and isinstance(leaf, _NUMBERS):
            return Static(leaf)
        if cls is ListLeaf:
            return Spec(leaf.kind.type_of(leaf.items), holder=leaf.kind)
        if is_generator(leaf):
            return replace(array_spec(array_of(leaf)), holder=holder_of(leaf))
        if cls in _WEAK:
            kind = _WEAK[cls]
            if kind == "i" and not -(2**63) <= leaf < 2**63:
                return Static(leaf)  # no dtype has room for it
            return Spec(TensorType((), WEAK_DTYPES[kind]), kind, True)
        if cls is StaticLeaf:
            return Static(leaf.value)
        if cls is ObjectLeaf:
            return Object(type(leaf.value))
        if cls is DeviceArray:
            return array_spec(leaf)
        if cls is ShapeDtype:
            first = () if leaf.length is None else (2,)  # any length, see `lengths`
            return Spec(TensorType((*first, *leaf.inner), leaf.dtype))
        if isinstance(leaf, np.generic):
            return Spec(TensorType((), check_dtype(leaf, self.leaf_names()[index])), None, True)
        if isinstance(leaf, _CONSTANTS) or (callable(leaf) and not _is_object(leaf)):
            return Static(leaf)
        if isinstance(leaf, ModuleType) and not is_user_module(leaf.__name__):
            return Static(leaf)  # a user's may change
        if isinstance(leaf, TracerBase):
            from ..core import tracers  # which a trace has loaded

            tracers.refuse_leaked(cast("tracers.Tracer", leaf))
        if isinstance(leaf, np.ndarray):
            return array_spec(plain_array(leaf, self.leaf_names()[index]))
        if is_object(leaf) or cls in (set, Counter):
            return Object(cls)
        self._refuse_object(index, leaf)
        raise AssertionError("unreachable")

    def _refuse_object(self, index: int, leaf: Any) -> None:
        name = self.leaf_names()[index]
        kind = f"{name}, a value of type {type(leaf).__name__}"
        root = name.split("[")[0].split(".")[0]
        if is_random_state(leaf):
            self.refuse(
                index,
                kind,
                f"pass jitney's own generator, {root} = jt.random.default_rng(seed), whose state "
                "compiled functions advance",
            )
        self.refuse(
            index,
            kind,
            f"make it static (static_argnames={root!r}), or teach jitney the type with "
            "jt.register_pytree",
        )

    def refuse(self, index: int, what: str, remedy: str) -> None:
        refuse(self.leaves[index], what, remedy)

    def parts(self, args: Any, kwargs: Any) -> list[tuple[str, list[Any], Hashable]]:
        """Each argument: the name of its first leaf, its leaves and its structure as they are now."""
        positional, keywords = self.tree.children()
        trees = [*positional.children(), *keywords.children()]
        names = iter(self.leaf_names())
        parts = []
        for tree, argument in zip(
            trees, [*args, *(kwargs[k] for k in sorted(kwargs))], strict=True
        ):
            own = [next(names) for _ in range(tree.num_leaves)]
            root = own[0].split("[")[0].split(".")[0] if own else "an argument"
            parts.append((root, *pytree.as_written(argument)))
        return parts

    def refuse_changes(
        self,
        before: list[tuple[str, list[Any], Hashable]],
        after: list[tuple[str, list[Any], Hashable]],
    ) -> None:
        """A dict or list of the caller that the function changed would stay as it was: ChangedArgument,
        so that it is not taken apart the next time."""
        parameters = [*range(len(self.args)), *sorted(self.kwargs)]
        for parameter, (name, old, structure), (_, new, changed) in zip(
            parameters, before, after, strict=True
        ):
            if structure != changed or not all(map(_is, old, new)):
                if parameter not in self.whole:
                    raise ChangedArgument(parameter)
                complain(
                    errors.ImpureFunctionError,
                    f"the function replaces, adds or removes elements of {name}, a container that "
                    "it was given, and the caller's would stay as it was",
                    "copy the container first, with dict(d), list(l) or dataclasses.replace(d), and "
                    "return the copy; elements that are arrays may be assigned to in place.",
                )

    def refuse_shared(self, heap: Heap | None, hidden: Sequence[Any]) -> None:
        """ChangedArgument for one that was taken apart and is reached in another way, too: what happens
        to one happens to the other."""
        if heap is None:
            return
        args, kwargs = self._given
        places: list[tuple[Place, Any]] = [*enumerate(args), *kwargs.items()]
        for place, argument in places:
            found = () if place in self.whole else containers_in(argument)
            if found and heap.shares(hidden[-1], map(id, found)):
                raise ChangedArgument(place)

    def leaf_names(self) -> list[str]:
        """How the user would write each leaf: `x`, `params['w']`."""
        if not self.names:
            parameters = list(self._signature.parameters.values()) if self._signature else []
            named = [p.name for p in parameters if p.kind in _POSITIONAL]
            rest = [p.name for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL]
            for i, arg in enumerate(self.args):
                beyond = f"{rest[0] if rest else 'args'}[{i - len(named)}]"
                self.names += pytree.leaf_names(arg, named[i] if i < len(named) else beyond)
            by_name = {k: pytree.leaf_names(v, k) for k, v in self.kwargs.items()}
            self.names += [n for k in sorted(by_name) for n in by_name[k]]
        return self.names

    @property
    def has_static(self) -> bool:
        """Whether the value of a leaf decides, and not its type alone, which code runs."""
        return any(isinstance(spec, Static) for spec in self.specs)

    @property
    def on_cpu(self) -> bool:
        """Whether it runs on the CPU, as far as its arguments say."""
        return (self.device or CHOSEN.get() or CPU) == CPU

    @property
    def key(self) -> Hashable:
        """What calls must share to run the same code."""
        specs = tuple(Exact(s.value) if isinstance(s, Static) else s for s in self.specs)
        return (self.structure, specs, self.device, CHOSEN.get())

    def static_values(self) -> list[tuple[str, Any]]:
        """The static arguments that can change inside, with their names: equal ones may differ then."""
        if not self.has_static:
            return []
        pairs = zip(self.leaf_names(), self.specs, strict=True)
        named = [(name, spec.value) for name, spec in pairs if isinstance(spec, Static)]
        return [(name, value) for name, value in named if can_change(value)]

    def alias(self) -> None:
        """Leaves that are one and the same array become one traced array."""
        first: dict[int, int] = {}
        for i, leaf in enumerate(self.leaves):
            if isinstance(leaf, (np.ndarray, list)) and isinstance(self.specs[i], Spec):
                seen = first.setdefault(id(leaf), i)
                if seen != i:
                    self.specs[i] = Same(seen)

    def named_specs(self) -> list[Spec | Static | Same]:
        """The specs with the users' names for the leaves, and who may be written."""
        named: list[Spec | Static | Same] = []
        for leaf, spec, name in zip(self.leaves, self.specs, self.leaf_names(), strict=True):
            if isinstance(spec, Spec):
                writeable = spec.writeable
                if isinstance(leaf, np.ndarray):
                    writeable = leaf.flags.writeable
                spec = replace(spec, writeable=writeable, name=_identifier(name), device=None)
            elif isinstance(spec, Object):
                spec = Static(leaf)
            named.append(spec)
        return named

    def describe(self) -> str:
        """`x: f32[8], n: int (static 3)`."""
        parts = []
        for name, spec in zip(self.leaf_names(), self.specs, strict=True):
            if isinstance(spec, Spec):
                parts.append(f"{name}: {show_spec(spec)}")
            elif isinstance(spec, Static):
                parts.append(f"{name} = {spec.value!r}")
            elif isinstance(spec, Object):
                parts.append(f"{name}: {spec.cls.__name__}")
            else:
                parts.append(f"{name}: the same array as {self.leaf_names()[spec.leaf]}")
        return ", ".join(parts)


def show_spec(spec: Spec) -> str:
    """What a spec is called in messages."""
    kinds = {"b": "Python bool", "i": "Python int", "f": "Python float", "c": "Python complex"}
    if spec.weak:
        return kinds[spec.weak]
    if isinstance(spec.holder, ListKind):
        inner = f"lists of {spec.type.shape[1]} " if spec.holder.table else ""
        return f"list of {spec.type.shape[0]} {inner}{spec.holder.cls.__name__}s"
    layout = f" strides {list(spec.strides)}" if spec.strides is not None else ""
    name = getattr(spec.holder, "name", None)
    if isinstance(name, str):  # of the length of its first axis
        shape = ",".join(map(str, (name, *spec.type.shape[1:])))
        return f"{dtype_name(spec.type.dtype)}[{shape}]"
    return f"{spec.type}{layout}"


def _is_object(leaf: Any) -> bool:
    """Whether what can be called is an object of the user's, with a state."""
    return not isinstance(leaf, (type, np.ufunc, functools.partial, *_FUNCTIONS))


def _whole(value: Any) -> Any:
    """An argument that is not taken apart, if it has parts."""
    if isinstance(value, type):
        return StaticLeaf(value)
    return ObjectLeaf(value) if is_parted(value) else value


def _is(old: Any, new: Any) -> bool:
    """Whether two leaves are one; the fields of a structured array are views that are made anew."""
    if old is new or not isinstance(old, np.ndarray) or not isinstance(new, np.ndarray):
        return old is new
    owner = owner_of(old)
    return owner is not None and owner is owner_of(new) and byte_bounds(old) == byte_bounds(new)


def containers_in(value: Any) -> list[Any]:
    """The containers in an argument that can be changed."""
    if type(value) not in (list, dict, tuple, deque):
        return []
    parts = value.values() if type(value) is dict else value
    inner = [x for part in parts for x in containers_in(part)]
    return inner if type(value) is tuple else [value, *inner]


def is_parted(value: Any) -> bool:
    """Whether an argument could be changed inside, or is a class."""
    containers = (list, dict, tuple, deque, set, type)
    return isinstance(value, containers) or is_structured_array(value) or is_object(value)


def _static(value: Any, name: str) -> StaticLeaf:
    if isinstance(value, np.ndarray):
        complain(
            errors.StaticArgumentError,
            f"{name} is static and an array: static arguments are compared by value at each call",
            "trace the array (leave it out of static_argnums and static_argnames), or pass a tuple.",
            operands={name: value},
        )
    try:
        hash(value)
    except TypeError:
        complain(
            errors.StaticArgumentError,
            f"{name} is static and unhashable: static arguments are part of the cache's key",
            "pass a hashable value: a tuple instead of a list, a frozen dataclass instead of a dict.",
            operands={name: value},
        )
    return StaticLeaf(value)


def _identifier(name: str) -> str:
    return name if name.isidentifier() else ""
