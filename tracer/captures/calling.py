"""A function is called to be traced, with stand-ins in the place of what it takes from outside.

    W = np.ones(3)                  # `captured_variables` finds it: a hidden input
    jt.jit(lambda x: x * W)(x)      # here a copy of the lambda is called, whose W is a tracer

The function, and the user's functions that it reaches by name, run as copies whose globals and closure
cells hold the stand-ins; objects whose attributes are arrays (`self.w`, `model.layer.w`) are replaced by
shallow copies with the attributes exchanged. What the copies assign to globals and attributes is carried
over to the originals afterwards. Where there is a heap, the stand-ins are in the very objects. Where no
copy can be, a random generator asks for what stands in for its state (`threaded_state.let_stand_in`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import CellType, FunctionType
from typing import Any, NoReturn

from ..core import threaded_state
from ..core.specs import Spec
from ..core.trace import require_trace
from ..core.tracing import refuse_lazy
from ..data import pytree
from ..data.generators import GeneratorKind, asking
from ..messages import errors
from ..messages.errors import complain
from .callbacks.conflicts import refuse_conflicts
from .callbacks.reads import CallbackReads
from .captured_variables import CapturedVariables
from .effects.finding import collect
from .frozen import attributes_of, is_user_function, random_state
from .heap import Heap
from .hidden import stand_in_for
from .kept import Kept
from .leaks import refuse_in_containers, refuse_leaked_attributes, refuse_leaks
from .paths import Path


def call_with_stand_ins(
    captured: CapturedVariables,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    stand_ins: Sequence[Any],
    kept: Kept,
) -> Any:
    """Call the function with stand-ins for the hidden values. Returns its result, or the leaves of its
    `effects`. What is `kept` of the caller's must not be in there."""
    require_trace().is_guarded = captured.is_guarded
    require_trace().own = _callback_reads(captured, kept)
    adapt, function = captured.adapt, captured.function
    if captured.heap is not None:
        result = _call_with_heap(captured, captured.heap, args, kwargs, stand_ins, kept)
    elif not captured.hidden:
        result = adapt(function)(*args, **kwargs)
        for path in captured.objects:
            refuse_leaked_attributes(path.find(), attributes_of(path.find()) or {})
    else:
        copies = _Copies(captured, stand_ins)
        require_trace().own = _callback_reads(captured, kept, copies)
        copy = copies.function(function)
        args = [copies.object(arg) for arg in args]
        kwargs = {name: copies.object(arg) for name, arg in kwargs.items()}
        threaded_state.let_stand_in(_standing(captured, stand_ins))
        result = adapt(copy)(*args, **kwargs)
        copies.carry_over()
    refuse_in_containers(captured.variables)
    refuse_leaks(captured.variables)
    for path, value, state in captured.random:
        if random_state(value) != state:
            refuse_random(str(path))
    if captured.heap is None and captured.substitutes:
        read = (value for _, value in captured.variables.values.values())
        # What stands in for objects among the arguments is the caller's own, too.
        kept.refuse_within(result, [*read, *stand_ins, *args, *kwargs.values()])
    return result


def _callback_reads(
    captured: CapturedVariables, kept: Kept, copies: _Copies | None = None
) -> CallbackReads:
    variables = captured.variables
    paths = [path for _, every in variables.functions.values() for path in every]
    paths += [path for path, _ in variables.values.values()]
    if captured.heap is not None:
        paths += [path for path, _ in captured.heap.roots]
    cells = {id(path.root): path.root for path in paths if path.kind == "cell"}

    def own(value: Any, names: set[str]) -> Any:
        kept.refuse(value)  # what was taken apart is not the caller's
        return captured.keep(value if copies is None else copies.original(value), names)

    if copies is None:
        return CallbackReads(own, {}, cells)
    return CallbackReads(own, copies.namespaces(), cells | copies.cells(cells))


def _call_with_heap(
    captured: CapturedVariables,
    heap: Heap,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    stand_ins: Sequence[Any],
    kept: Kept,
) -> Any:
    tracers, states = stand_ins[0], list(_standing(captured, stand_ins[1:]))
    with heap.entered(tracers, states) as before:
        others = heap.given(tracers)
        args = [others.get(id(arg), arg) for arg in args]
        kwargs = {name: others.get(id(arg), arg) for name, arg in kwargs.items()}
        result = captured.adapt(captured.function)(*args, **kwargs)
        refuse_lazy(result, captured.function)
        given = [*tracers, *pytree.flatten((list(args), kwargs))[0]]
        effects, captured.missed = collect(heap, before, given, result, kept)
        captured.effects = effects
        refuse_conflicts(heap, effects, tracers)
    return effects.leaves


def _standing(captured: CapturedVariables, stand_ins: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Arrays, and generators of others, with what stands in for each."""
    for hidden, value in zip(captured.hidden, stand_ins, strict=True):
        leaves = pytree.flatten(hidden.path.read())[0], pytree.flatten(value)[0]
        for leaf, inside, spec in zip(*leaves, hidden.specs, strict=True):
            if isinstance(spec, Spec):
                if isinstance(spec.holder, GeneratorKind) and hidden.tree.is_leaf():
                    object.__setattr__(inside, "_origin", hidden.path.read)
                yield stand_in_for(leaf, inside)


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
            # What is not the object's own is its class's: only the copy gets the stand-in.
            own = substituted[name] if name in substituted else getattr(value, name)
            substituted[name] = self._exchange(own, rest)
            object.__setattr__(copy, name, substituted[name])
        return copy
