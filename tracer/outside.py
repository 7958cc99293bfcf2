"""What a traced function takes from outside: guards, and arrays that become hidden inputs.

A closed-over array must be read at call time, also where plain NumPy sees it alone (`np.sin(W)`,
`W[0]`), and an assignment into it must happen at call time too. So while the function is traced,
tracers stand in for the arrays: the function, and the user's functions that it reaches by name, run
as copies whose globals and closure cells hold the stand-ins; objects whose attributes are arrays
(`self.w`, `model.layer.w`) are replaced by shallow copies with the attributes exchanged. What the
copies assign to globals and attributes is carried over to the originals afterwards. Where no copy can
be, a random generator asks for what stands in for its state (`streams.standing_in`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any, NoReturn

import numpy as np

from ..ir.record import record, replace
from ..ir.types import TensorType, is_supported, type_of
from ..runtime.cuda.array import DeviceArray
from . import errors, pytree, streams
from .core import Tracer
from .errors import complain
from .frozen import attributes_of, freeze, is_random_state, is_user_function, random_state
from .guards import Guard, Source, write_guards
from .paths import Path, state_of
from .reads import Key, Reads, find_reads
from .running import Ran
from .tracing import Spec, Static

_CONTAINERS = (list, tuple, dict)


@record
class Hidden:
    """An outside value that is an array or a container with arrays. Read at each call.

    What is not `placed` are states of generators, which find what stands in for them.
    """

    path: Path
    tree: pytree.TreeDef
    structure: Hashable  # with the order of dicts
    specs: tuple[Spec | Static, ...]
    placed: bool = True  # the stand-in is put at the path, in copies of what leads there

    @property
    def n_arrays(self) -> int:
        return sum(isinstance(spec, Spec) for spec in self.specs)


class Outside:
    """Everything that `function` takes from outside, as it is now.

    `owner` is a path to `self`. Without `substitute`, arrays are guarded by content as other values.
    `adapt` makes of the function, or of its copy, the one that is called (autograph's). With `wary`,
    code that may run or not counts as if it did when it is decided where stand-ins can be. `static` are
    static arguments that can change inside, with their names.
    """

    def __init__(
        self,
        function: Any,
        owner: Path | None,
        substitute: bool = True,
        adapt: Callable[[Any], Any] = lambda function: function,
        wary: bool = False,
        static: Sequence[tuple[str, Any]] = (),
    ) -> None:
        self.function = function
        self.adapt = adapt
        self.owner = owner
        self.substitutes = substitute
        self.reads: Reads = find_reads(function, owner, static)
        self.hidden: list[Hidden] = []
        self.guards: list[Guard] = []
        self.dropped: frozenset[Hashable] = frozenset()
        self._doubtful: dict[int, Key] = {}  # of guards, by their ids
        self._random: list[tuple[Path, Any, str]] = []
        if wary:
            self.reads.fixed.update(self.reads.doubtfully_fixed)
        free = substitute and not any(
            path.key in self.reads.written
            for _, paths in self.reads.functions.values()
            for path in paths
        )
        for key, (path, value) in self.reads.values.items():
            unbound = key in self.reads.fixed or key in self.reads.written
            hidden = None
            how = key[-1] if isinstance(key[-1], str) else ""
            if free and not how:
                hidden = (None if unbound else _hidden(path, value)) or _states(path, value)
            if hidden is not None:
                self.hidden.append(hidden)
            else:
                guard = Guard.of(path, value, how)
                self.guards.append(guard)
                if key in self.reads.doubtful:
                    self._doubtful[id(guard)] = key
            if not how and is_random_state(value):
                self._random.append((path, value, random_state(value)))

    @property
    def doubtful(self) -> bool:
        """Whether it matters which code runs."""
        return bool(self._doubtful or self.reads.doubtfully_fixed)

    def settle(self, ran: Ran) -> bool:
        """Drop what only code reads that has not run. False if code has run that sees arrays themselves
        where stand-ins were put: then a wary outside is wanted."""
        fixed = self.reads.doubtfully_fixed
        if any(h.placed and ran.any(fixed.get(h.path.key, set())) for h in self.hidden):
            return False
        doubtful = self._doubtful
        idle = {i for i, key in doubtful.items() if not ran.any(self.reads.doubtful[key])}
        kept = {self._name(i) for i in doubtful.keys() - idle}
        self._drop(frozenset(self._name(i) for i in idle) - kept)
        return True

    def settle_as(self, dropped: frozenset[Hashable]) -> None:
        """As it was settled in another process."""
        self._drop(dropped)

    def _drop(self, names: frozenset[Hashable]) -> None:
        self.dropped = names
        self.guards = [
            g for g in self.guards if id(g) not in self._doubtful or self._name(id(g)) not in names
        ]

    def _name(self, guard: int) -> Hashable:
        """A doubtful guard's name, the same in each process."""
        key = self._doubtful[guard]
        codes = sorted((c.co_qualname, c.co_firstlineno) for c in self.reads.doubtful[key])
        how = key[-1] if isinstance(key[-1], str) else ""
        return (str(self.reads.values[key][0]), how, tuple(codes))

    @property
    def specs(self) -> list[Spec | Static]:
        return [spec for hidden in self.hidden for spec in hidden.specs]

    def values(self) -> list[Any]:
        """The current values at the hidden paths, one tree each."""
        return [hidden.path.read() for hidden in self.hidden]

    def arrays(self) -> list[Any]:
        """The traced leaves of `values`, in the order of the graph's parameters."""
        found = []
        for hidden in self.hidden:
            leaves = pytree.flatten(hidden.path.read())[0]
            pairs = zip(leaves, hidden.specs, strict=True)
            found += [_array_of(leaf) for leaf, spec in pairs if isinstance(spec, Spec)]
        return found

    def call(self, args: Sequence[Any], kwargs: dict[str, Any], stand_ins: Sequence[Any]) -> Any:
        """Call the function with stand-ins for the hidden values."""
        target = self.owner.read() if self.owner else None
        if not self.hidden:
            function = self.function if target is None else MethodType(self.function, target)
            result = self.adapt(function)(*args, **kwargs)
            if target is not None:
                _refuse_leaks(target, attributes_of(target) or {})
        else:
            copies = _Copies(self, stand_ins)
            function = copies.function(self.function)
            if target is not None:
                function = MethodType(function, copies.object(target))
            with streams.standing_in(zip(self.arrays(), self._tracers(stand_ins), strict=True)):
                result = self.adapt(function)(*args, **kwargs)
            copies.carry_over()
        for path, value, state in self._random:
            if random_state(value) != state:
                refuse_random(str(path))
        return result

    def _tracers(self, stand_ins: Sequence[Any]) -> list[Any]:
        """What stands in for `arrays`."""
        found = []
        for hidden, value in zip(self.hidden, stand_ins, strict=True):
            pairs = zip(pytree.flatten(value)[0], hidden.specs, strict=True)
            found += [_array_of(leaf) for leaf, spec in pairs if isinstance(spec, Spec)]
        return found

    def compile(self, extra: tuple[Any, ...]) -> Callable[[], tuple[Any, ...] | None]:
        """A function that gives the hidden arrays and then `extra`; None if a guard fails."""
        return compile_check(self.guards, self.hidden, extra)

    def changes(self) -> list[str]:
        """Which guards and hidden inputs do not fit any more, in words."""
        found = [guard.change() for guard in self.guards if not guard.holds()]
        for hidden in self.hidden:
            try:
                fits = _flatten_like(hidden, hidden.path.read()) is not None
            except (KeyError, AttributeError, ValueError):
                fits = False
            if not fits:
                found.append(f"`{hidden.path}` changed its shape, dtype, layout or structure")
        return found


def compile_check(
    guards: Sequence[Guard], hiddens: Sequence[Hidden], extra: tuple[Any, ...]
) -> Callable[[], tuple[Any, ...] | None]:
    """A function that gives the hidden arrays and then `extra`; None if a guard fails."""
    if not hiddens and not guards:
        return lambda: extra
    source = Source()
    source.lines = ["def check():", "    try:"]
    write_guards(source, guards, "        ")
    arrays = []
    for i, hidden in enumerate(hiddens):
        source.lines.append(f"        h{i} = {source.read(hidden.path)}")
        spec = hidden.specs[0]
        if hidden.tree.is_leaf() and isinstance(spec, Spec):
            source.lines += _array_checks(source, f"h{i}", spec)
            arrays.append(f"h{i}")
        else:
            flat = source.name(_flatten_like)
            source.lines += [
                f"        h{i} = {flat}({source.name(hidden)}, h{i})",
                f"        if h{i} is None: return None",
            ]
            arrays.append(f"*h{i}")
    arrays += [source.name(array) for array in extra]
    failed = "KeyError, AttributeError, ValueError, TypeError, NameError"
    source.lines += [
        f"    except ({failed}): return None",
        f"    return ({''.join(a + ', ' for a in arrays)})",
    ]
    return source.compile("check")


def refuse_random(name: str) -> NoReturn:
    complain(
        errors.ImpureFunctionError,
        f"{name} was asked for random numbers while the function was traced: the compiled function "
        "would return the same numbers for ever",
        "draw from jitney's own generator, rng = jt.random.default_rng(seed), whose state compiled "
        "functions advance; or draw the numbers outside and pass them as an argument.",
    )


def _hidden(path: Path, value: Any, placed: bool = True) -> Hidden | None:
    if not isinstance(value, (np.ndarray, DeviceArray)) and type(value) not in _CONTAINERS:
        return None
    if placed and not all(
        _is_copyable(Path(path.kind, path.root, path.name, path.attrs[:i]).read())
        for i in range(len(path.attrs))
    ):
        return None
    leaves, tree = _flattened(value)
    if tree is None or not any(_is_traceable(leaf) for leaf in leaves):
        return None
    names = pytree.leaf_names(value, str(path))
    specs = tuple(
        _spec(leaf, name) if _is_traceable(leaf) else Static(freeze(leaf))
        for leaf, name in zip(leaves, names, strict=True)
    )
    return Hidden(path, tree, pytree.as_written(value)[1], specs, placed)


def _flattened(value: Any) -> tuple[list[Any], pytree.TreeDef | None]:
    """The leaves of a container, and how it is built; nothing of one that is nested too deeply."""
    try:
        return pytree.flatten(value)
    except RecursionError:
        return [], None


def _spec(leaf: Any, name: str) -> Spec:
    array = _array_of(leaf)
    spec = array_spec(array, name)
    return spec if array is leaf else replace(spec, holder=type(leaf))


def _array_of(leaf: Any) -> Any:
    """A traced leaf, or the state of one that is a generator."""
    state = state_of(leaf)
    return leaf if state is None else getattr(leaf, state)


def _is_state(path: Path) -> bool:
    """Whether a path leads to the state of a generator."""
    if not path.attrs:
        return False
    *above, last = path.attrs
    return state_of(Path(path.kind, path.root, path.name, tuple(above)).read()) == last


def _states(path: Path, value: Any) -> Hidden | None:
    """A value in whose place nothing can be put, if its arrays are the states of generators."""
    if type(value) in _CONTAINERS:
        arrays = [leaf for leaf in _flattened(value)[0] if _is_traceable(leaf)]
        known = all(state_of(leaf) is not None for leaf in arrays)
    else:
        known = isinstance(value, np.ndarray) and _is_state(path)
    return _hidden(path, value, placed=False) if known else None


def _is_copyable(value: Any) -> bool:
    """Whether a shallow copy with other attributes can stand in for an object."""
    if isinstance(value, (type, ModuleType)) or attributes_of(value) is None:
        return False
    try:
        object.__new__(type(value))
    except TypeError:
        return False
    return True


def _is_traceable(leaf: Any) -> bool:
    if state_of(leaf) is not None:
        return True
    return type(leaf) is DeviceArray or (type(leaf) is np.ndarray and is_supported(leaf.dtype))


def array_spec(array: Any, name: str = "") -> Spec:
    """The Spec of an ndarray or a DeviceArray; its layout class is None for C order, else strides
    in elements."""
    strides = None
    if type(array) is DeviceArray:
        type_ = TensorType(array.shape, array.dtype)
        return Spec(type_, None, False, False, None, name, device=array.device)
    if not array.flags.c_contiguous:
        size = array.itemsize
        if all(s % size == 0 for s, n in zip(array.strides, array.shape, strict=True) if n > 1):
            strides = tuple(
                s // size if n > 1 else 0 for s, n in zip(array.strides, array.shape, strict=True)
            )
    return Spec(type_of(array), None, False, True, strides, name)


def _array_checks(source: Source, name: str, spec: Spec) -> list[str]:
    dtype = source.name(spec.type.dtype)
    shape = source.name(spec.type.shape)
    kind = DeviceArray if spec.device else np.ndarray
    lines = [
        f"        if {name}.__class__ is not {source.name(kind)} or {name}.shape != {shape} "
        f"or {name}.dtype != {dtype}: return None"
    ]
    if spec.device:
        lines.append(f"        if {name}.device != {source.name(spec.device)}: return None")
    elif spec.strides is None:
        lines.append(f"        if not {name}.flags.c_contiguous: return None")
    else:
        same = source.name(_same_layout)
        lines.append(f"        if not {same}({name}, {source.name(spec)}): return None")
    return lines


def _same_layout(array: Any, spec: Spec) -> bool:
    found = array_spec(array)
    return (found.strides, found.device) == (spec.strides, spec.device)


def _flatten_like(hidden: Hidden, value: Any) -> list[Any] | None:
    if pytree.as_written(value)[1] != hidden.structure:
        return None
    leaves = pytree.flatten(value)[0]
    arrays = []
    for leaf, spec in zip(leaves, hidden.specs, strict=True):
        if isinstance(spec, Static):
            if freeze(leaf) != spec.value:
                return None
            continue
        if spec.holder is not None:
            if type(leaf) is not spec.holder:
                return None
            leaf = _array_of(leaf)
        if not _is_traceable(leaf) or (leaf.shape, leaf.dtype) != (
            spec.type.shape,
            spec.type.dtype,
        ):
            return None
        if not _same_layout(leaf, spec):
            return None
        arrays.append(leaf)
    return arrays


def _refuse_leaks(target: Any, attributes: dict[str, Any]) -> None:
    for name, value in attributes.items():
        if isinstance(value, Tracer) and value._storage.trace.parent is None:
            delattr(target, name)
            complain(
                errors.LeakedTracerError,
                f"the attribute {name!r} of a {type(target).__name__} was assigned a traced value, "
                "which means nothing after the call has been traced",
                f"return the new value of {name!r} from the function and assign it outside, or "
                "make the class a pytree with jt.register_pytree and return the new object.",
                operands={name: value},
            )


class _Copies:
    """Copies of functions, globals, cells and objects with the stand-ins in place."""

    def __init__(self, outside: Outside, stand_ins: Sequence[Any]) -> None:
        self.reads = outside.reads
        self._globals: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}
        self._cells: dict[int, CellType] = {}
        self._functions: dict[int, FunctionType] = {}
        self._objects: dict[int, tuple[Any, Any, dict[str, Any]]] = {}
        roots: dict[tuple[Any, ...], tuple[Path, dict[tuple[str, ...], Any]]] = {}
        for hidden, value in zip(outside.hidden, stand_ins, strict=True):
            if not hidden.placed:
                continue
            path = hidden.path
            base = Path(path.kind, path.root, path.name)
            roots.setdefault(base.key, (base, {}))[1][path.attrs] = value
        placed = [(base, self._exchange(base.read(), attrs)) for base, attrs in roots.values()]
        for _, paths in self.reads.functions.values():
            for path in paths:
                if path.kind == "cell":  # before any function that closes over it is copied
                    self._cells.setdefault(id(path.root), CellType())
        for base, value in placed:
            self._place(base, value)
        for function, paths in self.reads.functions.values():
            for path in paths:
                if not path.attrs:
                    self._place(path, None, function)

    def function(self, function: Any) -> Any:
        """The copy of a function."""
        if not isinstance(function, FunctionType) or id(function) not in self.reads.functions:
            return function
        found = self._functions.get(id(function))
        if found is None:
            closure = function.__closure__
            cells = None
            if closure is not None:
                cells = tuple(self._cells.get(id(cell), cell) for cell in closure)
            user = is_user_function(function)
            found = FunctionType(
                function.__code__,
                self._namespace(function.__globals__) if user else function.__globals__,
                function.__name__,
                function.__defaults__,
                cells,
            )
            found.__kwdefaults__ = function.__kwdefaults__
            found.__dict__.update(function.__dict__)
            found.__qualname__ = function.__qualname__
            found.__module__ = function.__module__
            self._functions[id(function)] = found
        return found

    def object(self, value: Any) -> Any:
        """The copy of an object, or itself if none of its attributes was exchanged."""
        found = self._objects.get(id(value))
        return found[1] if found else value

    def carry_over(self) -> None:
        """What the traced code assigned to globals and attributes is assigned for real."""
        for original, copy in self._globals.values():
            for name in self.reads.stored.get(id(original), ()):
                if name in copy and copy[name] is not original.get(name):
                    original[name] = copy[name]
        for original, copy, placed in self._objects.values():
            now = attributes_of(copy) or {}
            changed = {k: v for k, v in now.items() if k not in placed or v is not placed[k]}
            _refuse_leaks(copy, changed)
            for name, value in changed.items():
                object.__setattr__(original, name, value)
            for name in placed.keys() - now.keys():
                object.__delattr__(original, name)

    def _namespace(self, module: dict[str, Any]) -> dict[str, Any]:
        if id(module) not in self._globals:
            self._globals[id(module)] = (module, dict(module))
        return self._globals[id(module)][1]

    def _place(self, path: Path, value: Any, function: FunctionType | None = None) -> None:
        """Put a stand-in, or the copy of a function (made later, cells first), at `path`."""
        if path.kind == "global":
            if function is not None:
                value = self.function(function)
            self._namespace(path.root)[path.name] = value
        elif path.kind == "cell":
            cell = self._cells.setdefault(id(path.root), CellType())
            cell.cell_contents = self.function(function) if function is not None else value

    def _exchange(self, value: Any, attrs: dict[tuple[str, ...], Any]) -> Any:
        """`value` with the attributes at those paths exchanged, in shallow copies of the objects."""
        if () in attrs:
            return attrs[()]
        known = self._objects.get(id(value))
        if known is None:
            copy = object.__new__(type(value))
            placed = attributes_of(value) or {}
            for name, attribute in placed.items():
                object.__setattr__(copy, name, attribute)
            self._objects[id(value)] = (value, copy, placed)
        _, copy, placed = self._objects[id(value)]
        inner: dict[str, dict[tuple[str, ...], Any]] = {}
        for path, stand_in in attrs.items():
            inner.setdefault(path[0], {})[path[1:]] = stand_in
        for name, rest in inner.items():
            placed[name] = self._exchange(placed[name], rest)
            object.__setattr__(copy, name, placed[name])
        return copy
