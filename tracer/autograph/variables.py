"""The variables that a branch or loop changes: reading them, restoring them, naming them in errors."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

import numpy as np

from ...ir.types import is_supported
from ..containers.kinds import changed
from ..control.regions import Out
from ..control.unbound import Undefined as Undefined
from ..control.unbound import unbound as unbound
from ..control.unions import Union, unasked
from ..core.constants import is_traced as is_traced
from ..core.constants import is_undecided as is_undecided
from ..core.constants import stays_traced as stays_traced
from ..core.sharing import Relation
from ..core.trace import current_trace, require_trace
from ..core.tracers import Tracer, as_value, weak_kind, wrap
from ..data import pytree
from ..messages import errors
from ..messages.errors import complain
from ..records.arrays import Records, records
from ..records.kinds import is_structured_array
from .syntax.jumps import RESULT

_NUMBERS = (bool, int, float, complex, np.generic)


def gone(name: str) -> Undefined:
    """For a variable that nobody reads any more, so that its array can be let go of."""
    return Undefined(name)


def no_result() -> Undefined:
    """What a function returns before it has come to a `return`."""
    return Undefined(RESULT)


def peek(name: str, read: Callable[[], Any]) -> Any:
    """The value of a variable or attribute, or Undefined."""
    try:
        return unasked(read)
    except (NameError, AttributeError, KeyError):
        return Undefined(name)


def put(base: Any, name: str, value: Any) -> None:
    """`base.name = value`, or its deletion. What is in the options of a union is seen to by itself (see
    `surroundings`)."""
    if type(base) is Union:
        return
    if getattr(base, name, None) is value:
        return
    if type(value) is not Undefined:
        setattr(base, name, value)
    elif hasattr(base, name):
        delattr(base, name)


class State:
    """The variables of one `if` or loop.

    `live` marks those that are read later, `rebound` those that a plain assignment binds (others
    are only updated, as by `x += 1`), `filled` those that may hold anything where they have no value
    yet, because a flag keeps them from being read there, `read` those that what follows a loop, or its
    next iteration, may read before it binds them. `contents` gives the objects that are changed inside,
    `roots` the names that are read, with their values.
    """

    def __init__(
        self,
        names: Sequence[str],
        get: Callable[[], tuple[Any, ...]],
        set: Callable[[Sequence[Any]], None],
        live: Sequence[bool],
        rebound: Sequence[bool],
        filled: Sequence[bool],
        read: Sequence[bool],
        inside: Sequence[str],
        contents: Callable[[], tuple[Any, ...]],
        roots: Callable[[], Sequence[tuple[str, Any]]],
    ) -> None:
        self.names, self.get, self.set = names, get, set
        self.live, self.rebound, self.filled, self.read = live, rebound, filled, read
        self.inside, self.contents = inside, contents
        self.roots = roots

    def joined(self, name: str, get: Callable[[], Any], set: Callable[[Any], None]) -> State:
        """The state with one more variable, which is always read."""

        def set_all(values: Sequence[Any]) -> None:
            self.set(values[:-1])
            set(values[-1])

        return State(
            (*self.names, name),
            lambda: (*self.get(), get()),
            set_all,
            (*self.live, True),
            (*self.rebound, True),
            (*self.filled, False),
            (*self.read, True),
            self.inside,
            self.contents,
            self.roots,
        )

    def beside(self, outer: State) -> State:
        """The state with the variables of a loop around it, whose body runs in this one."""
        here, around = self, outer.of_iteration()
        taken = {*here.names, *here.inside}
        called = {n: f"{n} of the loop" for n in (*around.names, *around.inside) if n in taken}
        count = len(here.names)

        def set_all(values: Sequence[Any]) -> None:
            here.set(values[:count])
            around.set(values[count:])

        return State(
            (*here.names, *(called.get(n, n) for n in around.names)),
            lambda: (*here.get(), *around.get()),
            set_all,
            (*here.live, *around.live),
            (*here.rebound, *around.rebound),
            (*here.filled, *around.filled),
            (*here.read, *around.read),
            (*here.inside, *(called.get(n, n) for n in around.inside)),
            lambda: (*here.contents(), *around.contents()),
            lambda: (*here.roots(), *around.roots()),
        )

    def of_iteration(self) -> State:
        """The state of a branch in a loop that has this one: the next iteration reads what it leaves."""
        return State(
            self.names,
            self.get,
            self.set,
            self.read,
            self.rebound,
            self.filled,
            self.read,
            self.inside,
            self.contents,
            self.roots,
        )

    def own_arrays(self) -> None:
        """NumPy arrays of the user's own that are assigned into become traced ones."""
        values = list(self.get())
        for i, name in enumerate(self.names):
            if name in self.inside and is_own_array(values[i]):
                old, made = values[i], taken_over(values[i])
                values = [made if x is old else x for x in values]
                self.set(values)
            elif name in self.inside and type(values[i]) is Union:
                leaves, tree = pytree.flatten(values[i])
                if any(map(is_own_array, leaves)):
                    new = [taken_over(x) if is_own_array(x) else x for x in leaves]
                    values[i] = pytree.unflatten(tree, new)
                    self.set(values)
        for container in self.containers().values():
            if not isinstance(container, set):
                leaves, tree = pytree.flatten(container)
                if any(map(is_own_array, leaves)):
                    new = [taken_over(x) if is_own_array(x) else x for x in leaves]
                    settle(container, pytree.unflatten(tree, new))

    def containers(self) -> dict[str, Any]:
        """The lists, dicts, sets and deques among the objects that are changed inside, by name."""
        pairs = zip(self.inside, self.contents(), strict=True)
        return {name: x for name, x in pairs if isinstance(x, (list, dict, set, deque))}


def reached(*parts: Any) -> State:
    """The state of an expression: what its parts reach, as `xs.pop() if x > 0 else ys.pop()` does."""
    roots = [("the expression", part) for part in parts]
    nothing: tuple[Any, ...] = ()
    return State(
        (), lambda: (), lambda values: None, (), (), (), (), (), lambda: nothing, lambda: roots
    )


def shown(name: str) -> str:
    return "the returned value" if name == RESULT else f"the variable {name!r}"


def in_graph() -> bool:
    trace = current_trace()
    return trace is not None and not trace.eager


def is_traceable(x: Any) -> bool:
    if isinstance(x, (Tracer, bool, int, float, complex)):
        return True
    return isinstance(x, (np.ndarray, np.generic)) and is_supported(x.dtype)


def out_of(x: Any) -> Out:
    """The type of a traceable leaf."""
    scalar = x.scalar if isinstance(x, Tracer) else not isinstance(x, np.ndarray)
    strides = x._strides if isinstance(x, Tracer) else None
    return Out(as_value(x).tensor, weak_kind(x), scalar, strides)


def same(a: Any, b: Any) -> bool:
    """Whether two values of a variable are one: the same object, or equal constants. Lists and sets
    that are equal are two."""
    if a is b:
        return True
    if type(a) is not type(b) or isinstance(a, (Tracer, np.ndarray, Undefined)):
        return False
    if isinstance(a, (*_NUMBERS, str, bytes, complex)):
        return repr(a) == repr(b)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, (range, slice, np.dtype, frozenset)):
        return bool(a == b)
    return False


def is_array(value: Any) -> bool:
    """Whether a variable holds an array that is traced, or a structured one, all of whose fields are."""
    if isinstance(value, Records) and not value.scalar:
        return all(map(is_array, value.parts))
    return isinstance(value, Tracer) and not value.scalar


def is_own_array(x: Any) -> bool:
    return (type(x) is np.ndarray and is_supported(x.dtype)) or is_structured_array(x)


def taken_over(array: np.ndarray[Any, Any]) -> Any:
    """A traced array in place of one that NumPy made while the function was traced. Assigning into it
    is refused if others can see the original."""
    if is_structured_array(array):
        return records(array).mapped(taken_over)
    tracer = wrap(as_value(array.copy()), scalar=False)
    made_of(tracer, array)
    tracer._storage.writeable = array.flags.writeable
    return tracer


def made_of(x: Tracer, array: np.ndarray[Any, Any]) -> None:
    """Note that `x` perhaps is an array that NumPy made: if others see that, it is not assigned into."""
    require_trace().let_go(array)
    shared = (array, *(a for a in (array.base,) if isinstance(a, np.ndarray)))
    x._storage.perhaps = (*x._storage.perhaps, *(Relation(ref(a)) for a in shared))


class Containers:
    """A snapshot of lists and dicts (and of those in them) that a branch or loop may change."""

    def __init__(self, objects: Sequence[Any]) -> None:
        self.saved: list[tuple[Any, Any]] = []
        seen: set[int] = set()

        def visit(x: Any) -> None:
            if type(x) is Union:
                for option in x.options.values():
                    visit(option)
            if id(x) in seen or not isinstance(x, (list, dict, set, tuple, deque)):
                return
            seen.add(id(x))
            if not isinstance(x, tuple):
                self.saved.append((x, x.copy()))
            for child in x.values() if isinstance(x, dict) else x:
                visit(child)

        for x in objects:
            visit(x)

    def restore(self) -> None:
        for container, copy in self.saved:
            refill(container, copy)

    def unseen(self, sets: bool = True) -> list[Any]:
        """Those that have changed in a way that their leaves do not show."""
        return [
            now
            for now, before in self.saved
            if _is_unseen(now, before) and (sets or not isinstance(now, set))
        ]

    def changed(self) -> bool:
        """Whether one of them holds other objects now."""
        return not all(_same_objects(container, copy) for container, copy in self.saved)


def refuse_unseen(containers: list[Any], where: str) -> None:
    """Refuse changes of sets, Counters and the order of dicts, which no leaf of theirs shows; if they
    can be native ones the function is traced again."""
    if not containers:
        return
    changed(containers)
    name = type(containers[0]).__name__
    complain(
        errors.CarryError,
        f"a {name} is changed in {where}, which runs compiled: what is in it is known at run time only",
        f"make the {name} inside of the compiled function, of numbers; or change it outside.",
    )


def _is_unseen(now: Any, before: Any) -> bool:
    """Whether a container has changed in a way that its leaves do not show."""
    if isinstance(now, set):
        return bool(now != before)
    if isinstance(now, Counter):
        return not _same_objects(now, before) or [*now] != [*before]
    return isinstance(now, OrderedDict) and len(now) == len(before) and [*now] != [*before]


def _same_objects(a: Any, b: Any) -> bool:
    if len(a) != len(b):
        return False
    if isinstance(a, dict):
        return all(k in b and a[k] is b[k] for k in a)
    return a == b if isinstance(a, set) else all(x is y for x, y in zip(a, b, strict=True))


def refill(container: Any, content: Any) -> None:
    """Give a list, dict, set or deque the content of another, in place."""
    if isinstance(container, list):
        container[:] = content
        return
    container.clear()
    if isinstance(container, deque):
        container.extend(content)
    else:
        container.update(content)


def settle(container: Any, content: Any) -> None:
    """Put merged leaves into a container that was changed inside, and into those in it."""
    if container is content:
        return
    if isinstance(container, (list, deque)):
        pairs = list(zip(container, content, strict=False))
    elif isinstance(container, dict):
        pairs = [(container.get(k), v) for k, v in content.items()]
    else:
        return refill(container, content)
    merged = []
    for old, new in pairs:
        if isinstance(old, (list, dict, deque)) and type(old) is type(new):
            settle(old, new)
            new = old
        merged.append(new)
    if isinstance(container, (list, deque)):
        return refill(container, [*merged, *list(content)[len(merged) :]])
    return refill(container, dict(zip(content, merged, strict=True)))
