"""What a traced function takes from outside: guards, and arrays that become hidden inputs.

A closed-over array must be read at call time, also where plain NumPy sees it alone (`np.sin(W)`,
`W[0]`), and an assignment into it must happen at call time too. So it is an input of the compiled code,
and while the function is traced a tracer stands in for it (`calling`). A process that finds its
programs on disk loads this, and nothing that traces.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.specs import Spec, Static
from ..data import pytree
from ..data.generators import behind, kind_of
from .free_variables import FreeVariables, Key, find_free_variables
from .frozen import IMMUTABLE, is_random_state, random_state, walk
from .guards import Guard, SourceText, write_guards
from .heap_nodes import Policy
from .heap_roots import find_heap, is_covered
from .hidden import (
    Hidden,
    array_checks,
    array_of,
    flatten_like,
    hidden_at,
    states_at,
)
from .paths import Path, is_user_module

if TYPE_CHECKING:
    from .effects.recipes import Effects
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
        self.random: list[tuple[Path, Any, str]] = []
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
                self.random += [(path, part, random_state(part)) for part in generators]
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

    def keep(self, value: Any, names: set[str]) -> Any:
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

    def is_guarded(self, generator: Any) -> bool:
        """Whether a guard notices when another generator takes the place of this one."""
        return any(
            part is generator
            for guard in self.guards
            if not guard.how and type(guard.value) not in IMMUTABLE
            for part, _ in walk(guard.value)
        )

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


def _operators_of(cls: type) -> Iterator[Guard]:
    """What operators on objects of a class find there (`x[i]`, `len(x)`), which no code names."""
    for base in cls.__mro__:
        if is_user_module(base.__module__):
            for name, member in list(vars(base).items()):
                operator = name[:2] == name[-2:] == "__" and name not in _NOT_OPERATORS
                if operator and isinstance(member, FunctionType):
                    path = Path("value", base, base.__name__).get(name)
                    yield Guard.of(path, member, "is")
