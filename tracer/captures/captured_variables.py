"""What a traced function takes from outside: guards, and arrays that become hidden inputs.

A closed-over array must be read at call time, also where plain NumPy sees it alone (`np.sin(W)`,
`W[0]`), and an assignment into it must happen at call time too. So while the function is traced,
tracers stand in for the arrays: the function, and the user's functions that it reaches by name, run
as copies whose globals and closure cells hold the stand-ins; objects whose attributes are arrays
(`self.w`, `model.layer.w`) are replaced by shallow copies with the attributes exchanged. What the
copies assign to globals and attributes is carried over to the originals afterwards. Where no copy can
be, a random generator asks for what stands in for its state (`threaded_state.let_stand_in`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from types import CellType, FunctionType
from typing import Any, NoReturn

import numpy as np

from ..core import threaded_state
from ..core.specs import Spec, Static
from ..core.trace import require_trace
from ..core.tracing import refuse_lazy
from ..data import pytree
from ..data.generators import GeneratorKind, asking, behind, kind_of
from ..messages import errors
from ..messages.errors import complain
from .callbacks.conflicts import refuse_conflicts
from .callbacks.reads import CallbackReads
from .effects import Effects, collect
from .free_variables import FreeVariables, Key, find_free_variables
from .frozen import IMMUTABLE, attributes_of, is_random_state, is_user_function, random_state, walk
from .guards import Guard, SourceText, write_guards
from .heap import Heap, Policy
from .heap_roots import find_heap, is_covered
from .hidden import (
    Hidden,
    array_checks,
    array_of,
    flatten_like,
    hidden_at,
    stand_in_for,
    states_at,
)
from .kept import Kept
from .leaks import refuse_leaked_attributes, refuse_leaks
from .paths import Path, is_user_module
from .running import Ran

_NOT_OPERATORS = frozenset("__init__ __new__ __post_init__ __repr__ __init_subclass__".split())


class CapturedVariables:
    """Everything that `function` takes from outside, as it is now.

    `objects` are paths to arguments that are objects. Without `substitute`, arrays are guarded by
    content as other values. `adapt` makes of the function, or of its copy, the one that is called
    (autograph's). With `wary`, code that may run or not counts as if it did when it is decided where
    stand-ins can be. `static` are static arguments that can change inside, with their names.

    A function that may change objects or containers outside, or assigns to globals and closure cells,
    has a `heap`, which then holds all arrays, and when it has been traced, `effects`.
    """

    def __init__(
        self,
        function: Any,
        objects: Sequence[Path] = (),
        substitute: bool = True,
        adapt: Callable[[Any], Any] = lambda function: function,
        wary: bool = False,
        static: Sequence[tuple[str, Any]] = (),
        policy: Policy | None = None,
    ) -> None:
        self.function = function
        self.objects = list(objects)
        self.adapt = adapt
        self.substitutes, self.wary = substitute, wary
        self.policy = policy or Policy()
        self.variables: FreeVariables = find_free_variables(function, objects, static)
        self.heap = find_heap(self.variables, objects, self.policy) if substitute else None
        self.effects: Effects | None = None
        self.missed: set[tuple[int, Any]] = set()  # numbers that it changes and that are no inputs
        covered = set() if self.heap is None else {path.key for path, _ in self.heap.roots}
        self.hidden: list[Hidden] = []
        self.guards: list[Guard] = []
        self.dropped: frozenset[Hashable] = frozenset()
        self._doubtful: dict[int, Key] = {}  # of guards, by their ids
        self._random: list[tuple[Path, Any, str]] = []
        # What compiled code has of outside: it has to be found where it was.
        self.kept: list[tuple[Path, Any]] = []
        self.drawing: list[tuple[Path, Any]] = []  # functions that draw, by names of their own
        if wary:
            self.variables.fixed.update(self.variables.doubtfully_fixed)
        free = substitute and not any(
            path.key in self.variables.written
            for _, paths in self.variables.functions.values()
            for path in paths
        )
        for key, (path, value) in self.variables.values.items():
            if path.base.key in covered and is_covered(path, value, key):
                continue
            unbound = key in self.variables.fixed or key in self.variables.written
            hidden = None
            how = key[-1] if isinstance(key[-1], str) else ""
            if free and not how:
                if not unbound and self.heap is None:
                    hidden = hidden_at(path, value)
                hidden = hidden or states_at(path, value)
            if hidden is not None:
                self.hidden.append(hidden)
            else:
                guard = Guard.of(path, value, how)
                self.guards.append(guard)
                if key in self.variables.doubtful:
                    self._doubtful[id(guard)] = key
            if not how and type(value) not in IMMUTABLE:
                parts = (part for part, _ in walk(value, arrays=False))
                generators = [part for part in parts if is_random_state(part)]
                self._random += [(path, part, random_state(part)) for part in generators]
            if behind(value) is not None:
                self._draws_by(value, path, unbound)
        if self.heap is not None:
            classes = dict.fromkeys(node.cls for node in self.heap.nodes if node.is_object)
            self.guards += (guard for cls in classes for guard in _operators_of(cls))

    def _draws_by(self, function: Any, path: Path, unbound: bool) -> None:
        """The generator behind a function such as `np.random.rand` is an input."""
        if not self.substitutes:
            return
        generator = behind(function)
        if all(hidden.path.root is not generator for hidden in self.hidden):
            hidden = states_at(Path("value", generator, str(path)), generator)
            if hidden is not None:
                self.hidden.append(hidden)
        of_user = path.kind == "global" and is_user_module(path.root.get("__name__"))
        if not path.attrs and not unbound and (of_user or path.kind == "cell"):
            self.drawing.append((path, function))

    @property
    def doubtful(self) -> bool:
        """Whether it matters which code runs."""
        return bool(self._doubtful or self.variables.doubtfully_fixed)

    def settle(self, ran: Ran) -> bool:
        """Drop what only code reads that has not run. False if code has run that sees arrays themselves
        where stand-ins were put: then wary ones are wanted."""
        fixed = self.variables.doubtfully_fixed
        if any(h.substituted and ran.any(fixed.get(h.path.key, set())) for h in self.hidden):
            return False
        doubtful = self._doubtful
        idle = {i for i, key in doubtful.items() if not ran.any(self.variables.doubtful[key])}
        still_read = {self._name(i) for i in doubtful.keys() - idle}
        self._drop(frozenset(self._name(i) for i in idle) - still_read)
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
        codes = sorted((c.co_qualname, c.co_firstlineno) for c in self.variables.doubtful[key])
        how = key[-1] if isinstance(key[-1], str) else ""
        return (str(self.variables.values[key][0]), how, tuple(codes))

    @property
    def specs(self) -> list[Spec | Static]:
        heap = [] if self.heap is None else self.heap.specs
        return [*heap, *(spec for hidden in self.hidden for spec in hidden.specs)]

    def values(self) -> list[Any]:
        """The inputs of the heap, and the current values at the hidden paths, one tree each."""
        heap = [] if self.heap is None else [self.heap.arrays()]
        return [*heap, *(hidden.path.read() for hidden in self.hidden)]

    def arrays(self) -> list[Any]:
        """The traced leaves of `values`, in the order of the graph's parameters."""
        return [*([] if self.heap is None else self.heap.arrays()), *self.hidden_arrays()]

    def hidden_arrays(self) -> list[Any]:
        """Of those, the ones that are no part of the heap."""
        return [array_of(leaf) for leaf in self._hidden_leaves()]

    def _hidden_leaves(self) -> Iterator[Any]:
        for hidden in self.hidden:
            leaves = pytree.flatten(hidden.path.read())[0]
            pairs = zip(leaves, hidden.specs, strict=True)
            yield from (leaf for leaf, spec in pairs if isinstance(spec, Spec))

    def generators(self) -> list[Any]:
        """NumPy's and Python's generators of random numbers whose states are inputs."""
        inputs = [] if self.heap is None else [one.value for one in self.heap.inputs]
        return [x for x in (*inputs, *self._hidden_leaves()) if kind_of(x) is not None]

    def guarded_arrays(self) -> list[np.ndarray[Any, Any]]:
        """The arrays that the function sees themselves."""
        values = [g.value for g in self.guards if not g.how and type(g.value) not in IMMUTABLE]
        parts = [part for value in values for part, _ in walk(value)]
        return [x for x in parts if isinstance(x, np.ndarray) and not x.dtype.hasobject]

    @property
    def keeps_objects(self) -> bool:
        """Whether compiled code has objects of outside, which are compared by identity."""
        return bool(self.kept or (self.heap is not None and self.heap.kept))

    def forget(self) -> None:
        """Let go of the objects that were there when the function was traced."""
        if self.heap is not None:
            self.heap.forget()

    def call(
        self, args: Sequence[Any], kwargs: dict[str, Any], stand_ins: Sequence[Any], kept: Kept
    ) -> Any:
        """Call the function with stand-ins for the hidden values. Returns its result, or the leaves of
        its `effects`. What is `kept` of the caller's must not be in there."""
        require_trace().is_guarded = self._is_guarded
        require_trace().own = self._callback_reads(kept)
        if self.heap is not None:
            states = list(self._stand_ins(stand_ins[1:]))
            result = self._call_with_heap(self.heap, args, kwargs, stand_ins[0], states, kept)
        elif not self.hidden:
            result = self.adapt(self.function)(*args, **kwargs)
            for path in self.objects:
                refuse_leaked_attributes(path.find(), attributes_of(path.find()) or {})
        else:
            copies = _Copies(self, stand_ins)
            require_trace().own = self._callback_reads(kept, copies)
            function = copies.function(self.function)
            args = [copies.object(arg) for arg in args]
            kwargs = {name: copies.object(arg) for name, arg in kwargs.items()}
            threaded_state.let_stand_in(self._stand_ins(stand_ins))
            result = self.adapt(function)(*args, **kwargs)
            copies.carry_over()
        refuse_leaks(self.variables)
        for path, value, state in self._random:
            if random_state(value) != state:
                refuse_random(str(path))
        if self.heap is None and self.substitutes:
            read = (value for _, value in self.variables.values.values())
            # What stands in for objects among the arguments is the caller's own, too.
            kept.refuse_within(result, [*read, *stand_ins, *args, *kwargs.values()])
        return result

    def _callback_reads(self, kept: Kept, copies: _Copies | None = None) -> CallbackReads:
        paths = [path for _, every in self.variables.functions.values() for path in every]
        paths += [path for path, _ in self.variables.values.values()]
        if self.heap is not None:
            paths += [path for path, _ in self.heap.roots]
        cells = {id(path.root): path.root for path in paths if path.kind == "cell"}

        def own(value: Any, names: set[str]) -> Any:
            kept.refuse(value)  # what was taken apart is not the caller's
            return self._kept(value if copies is None else copies.original(value), names)

        if copies is None:
            return CallbackReads(own, {}, cells)
        return CallbackReads(own, copies.namespaces(), cells | copies.cells(cells))

    def _kept(self, value: Any, names: set[str]) -> Any:
        """The object of outside that this one stands for, or is; each call has to find it there."""
        if self.heap is not None:
            own = self.heap.keep(value, names)
            if own is not None:
                return own
        known = {path.key for path, _ in self.kept}
        paths = [*self.objects, *(above for h in self.hidden for above in h.path.prefixes)]
        values = [*((path, path.find()) for path in paths), *self.variables.values.values()]
        for path, found in values:
            if found is value and path.key not in known:
                self.kept.append((path, value))
                break
        return value

    def _is_guarded(self, generator: Any) -> bool:
        """Whether a guard notices when another generator takes the place of this one."""
        return any(
            part is generator
            for guard in self.guards
            if not guard.how and type(guard.value) not in IMMUTABLE
            for part, _ in walk(guard.value)
        )

    def _call_with_heap(
        self,
        heap: Heap,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        tracers: Sequence[Any],
        states: Iterable[tuple[Any, Any]],
        kept: Kept,
    ) -> Any:
        with heap.entered(tracers, states) as before:
            others = heap.given(tracers)
            args = [others.get(id(arg), arg) for arg in args]
            kwargs = {name: others.get(id(arg), arg) for name, arg in kwargs.items()}
            result = self.adapt(self.function)(*args, **kwargs)
            refuse_lazy(result, self.function)
            given = [*tracers, *pytree.flatten((list(args), kwargs))[0]]
            self.effects, self.missed = collect(heap, before, given, result, kept)
            refuse_conflicts(heap, self.effects, tracers)
        return self.effects.leaves

    def _stand_ins(self, stand_ins: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        """Arrays, and generators of others, with what stands in for each."""
        for hidden, value in zip(self.hidden, stand_ins, strict=True):
            leaves = pytree.flatten(hidden.path.read())[0], pytree.flatten(value)[0]
            for leaf, inside, spec in zip(*leaves, hidden.specs, strict=True):
                if isinstance(spec, Spec):
                    if isinstance(spec.holder, GeneratorKind) and hidden.tree.is_leaf():
                        object.__setattr__(inside, "_origin", hidden.path.read)
                    yield stand_in_for(leaf, inside)

    def compile(self, extra: tuple[Any, ...]) -> Callable[[], tuple[Any, ...] | None]:
        """A function that gives the hidden arrays and then `extra`, and then the nodes of a heap in a
        list; None if a guard fails."""
        check, heap, kept = compile_check(self.guards, self.hidden, extra), self.heap, self.kept
        if heap is None:
            if not kept:
                return check

            def check_kept() -> tuple[Any, ...] | None:
                return check() if all(path.find() is value for path, value in kept) else None

            return check_kept

        def check_all() -> tuple[Any, ...] | None:
            others = check() if all(path.find() is value for path, value in kept) else None
            slots = None if others is None else heap.read()
            return None if others is None or slots is None else (*slots[0], *others, slots[1])

        return check_all

    def changes(self) -> list[str]:
        """Which guards and hidden inputs do not fit any more, in words."""
        changes = [guard.change() for guard in self.guards if not guard.holds()]
        for hidden in self.hidden:
            try:
                fits = flatten_like(hidden, hidden.path.read()) is not None
            except (KeyError, AttributeError, ValueError):
                fits = False
            if not fits:
                changes.append(f"`{hidden.path}` changed its shape, dtype, layout or structure")
        return changes + ([] if self.heap is None else self.heap.changes())


def compile_check(
    guards: Sequence[Guard], hiddens: Sequence[Hidden], extra: tuple[Any, ...]
) -> Callable[[], tuple[Any, ...] | None]:
    """A function that gives the hidden arrays and then `extra`; None if a guard fails."""
    if not hiddens and not guards:
        return lambda: extra
    source = SourceText()
    source.lines = ["def check():", "    try:"]
    write_guards(source, guards, "        ")
    arrays = []
    for i, hidden in enumerate(hiddens):
        source.lines.append(f"        h{i} = {source.read(hidden.path)}")
        spec = hidden.specs[0]
        if hidden.tree.is_leaf() and isinstance(spec, Spec) and spec.holder is None:
            source.lines += array_checks(source, f"h{i}", spec)
            arrays.append(f"h{i}")
        else:
            flat = source.name(flatten_like)
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
    """Raise ImpureFunctionError."""
    complain(
        errors.ImpureFunctionError,
        f"{name} was asked for random numbers while the function was traced: the compiled function "
        "would return the same numbers for ever",
        "pass the generator as an argument, or compile without autograph=False, which sees fewer calls; "
        "or draw the numbers outside and pass them as an argument.",
    )


class _Copies:
    """Copies of functions, globals, cells and objects with the stand-ins in place."""

    def __init__(self, captured: CapturedVariables, stand_ins: Sequence[Any]) -> None:
        self.variables = captured.variables
        self._globals: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}
        self._cells: dict[int, CellType] = {}
        self._functions: dict[int, FunctionType] = {}
        self._objects: dict[int, tuple[Any, Any, dict[str, Any]]] = {}
        roots: dict[tuple[Any, ...], tuple[Path, dict[tuple[str, ...], Any]]] = {}
        for hidden, value in zip(captured.hidden, stand_ins, strict=True):
            if not hidden.substituted:
                continue
            path = hidden.path
            base = path.base
            roots.setdefault(base.key, (base, {}))[1][path.attrs] = value
        substituted = [(base, self._exchange(base.read(), attrs)) for base, attrs in roots.values()]
        for _, paths in self.variables.functions.values():
            for path in paths:
                if path.kind == "cell":  # before any function that closes over it is copied
                    self._cells.setdefault(id(path.root), CellType())
        for base, value in substituted:
            self._put(base, value)
        for path, function in captured.drawing:
            self._put(path, asking(function))
        for function, paths in self.variables.functions.values():
            for path in paths:
                if not path.attrs:
                    self._put(path, None, function)

    def function(self, function: Any) -> Any:
        """The copy of a function."""
        if not isinstance(function, FunctionType) or id(function) not in self.variables.functions:
            return function
        copy = self._functions.get(id(function))
        if copy is None:
            closure = function.__closure__
            cells = None
            if closure is not None:
                cells = tuple(self._cells.get(id(cell), cell) for cell in closure)
            user = is_user_function(function)
            copy = FunctionType(
                function.__code__,
                self._namespace(function.__globals__) if user else function.__globals__,
                function.__name__,
                function.__defaults__,
                cells,
            )
            copy.__kwdefaults__ = function.__kwdefaults__
            copy.__dict__.update(function.__dict__)
            copy.__qualname__ = function.__qualname__
            copy.__module__ = function.__module__
            self._functions[id(function)] = copy
        return copy

    def object(self, value: Any) -> Any:
        """The copy of an object, or itself if none of its attributes was exchanged."""
        entry = self._objects.get(id(value))
        return entry[1] if entry else value

    def original(self, value: Any) -> Any:
        """The object that this is a copy of, or itself."""
        return next((own for own, copy, _ in self._objects.values() if copy is value), value)

    def namespaces(self) -> dict[int, dict[str, Any]]:
        """The modules' own globals, by the ids of their copies."""
        return {id(copy): own for own, copy in self._globals.values()}

    def cells(self, own: dict[int, CellType]) -> dict[int, CellType]:
        """The functions' own cells, by the ids of their copies."""
        return {id(copy): own[key] for key, copy in self._cells.items() if key in own}

    def carry_over(self) -> None:
        """What the traced code assigned to globals and attributes is assigned for real."""
        for original, copy in self._globals.values():
            for name in self.variables.stored.get(id(original), ()):
                if name in copy and copy[name] is not original.get(name):
                    original[name] = copy[name]
        for original, copy, substituted in self._objects.values():
            now = attributes_of(copy) or {}
            changed = {
                k: v for k, v in now.items() if k not in substituted or v is not substituted[k]
            }
            refuse_leaked_attributes(copy, changed)
            for name, value in changed.items():
                object.__setattr__(original, name, value)
            for name in substituted.keys() - now.keys():
                object.__delattr__(original, name)

    def _namespace(self, module: dict[str, Any]) -> dict[str, Any]:
        if id(module) not in self._globals:
            self._globals[id(module)] = (module, dict(module))
        return self._globals[id(module)][1]

    def _put(self, path: Path, value: Any, function: FunctionType | None = None) -> None:
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
        entry = self._objects.get(id(value))
        if entry is None:
            copy = object.__new__(type(value))
            substituted = attributes_of(value) or {}
            for name, attribute in substituted.items():
                object.__setattr__(copy, name, attribute)
            self._objects[id(value)] = (value, copy, substituted)
        _, copy, substituted = self._objects[id(value)]
        inner: dict[str, dict[tuple[str, ...], Any]] = {}
        for path, stand_in in attrs.items():
            inner.setdefault(path[0], {})[path[1:]] = stand_in
        for name, rest in inner.items():
            substituted[name] = self._exchange(substituted[name], rest)
            object.__setattr__(copy, name, substituted[name])
        return copy


def _operators_of(cls: type) -> Iterator[Guard]:
    """What operators on objects of a class find there (`x[i]`, `len(x)`), which no code names."""
    for base in cls.__mro__:
        if is_user_module(base.__module__):
            for name, member in vars(base).items():
                operator = name[:2] == name[-2:] == "__" and name not in _NOT_OPERATORS
                if operator and isinstance(member, FunctionType):
                    path = Path("value", base, base.__name__).get(name)
                    yield Guard.of(path, member, "is")
