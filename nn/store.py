"""`Store`: variables by name, made where a function first asks for them.

    def layer(x, n):
        w = nn.get_variable("w", (x.shape[-1], n))
        b = nn.get_variable("b", (n,), init=0)
        return x @ w + b

    def model(x):
        with nn.variable_scope("first"):
            x = np.tanh(layer(x, 16))
        with nn.variable_scope("second"):
            return layer(x, 1)

    store = nn.Store()
    with store:
        model(x)                # makes first/w, first/b, second/w, second/b
    with store.reusing():
        model(x)                # finds them

For those who write functions and no classes. A store is an object like a module: compiled functions read
and change it, `jt.grad(loss)(store, x)` differentiates with respect to its variables, and two stores
are separate sets of values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

import jitney as jt

from .faults import complain
from .initializers import GLOROT, made
from .variable import Variable

AUTO_REUSE = "auto"  # variables that are there are found, others are made


class Scope:
    """Where names are made: a prefix, whether variables are found there, and what they begin as."""

    def __init__(self, name: str, reuse: Any, init: Any, regularizer: Any) -> None:
        self.name, self.reuse, self.init, self.regularizer = name, reuse, init, regularizer
        self.counts: dict[str, int] = {}  # of names that were made unique here

    def reuse_variables(self) -> None:
        """From here on variables are found, and no new ones are made."""
        self.reuse = True

    def unique(self, name: str) -> str:
        """A name that this scope has not given before: `name`, `name_1`, ..."""
        count = self.counts.get(name, 0)
        self.counts[name] = count + 1
        return f"{name}_{count}" if count else name


class Store:
    """Variables by name: `store["first/w"]`, `store.variables`. See the top of this page.

    As a context it is where `nn.get_variable` and its kin look; names begin anew inside.

    >>> store = jt.nn.Store()
    >>> with store, jt.nn.variable_scope("layer"):
    ...     w = jt.nn.get_variable("w", (2, 3))
    >>> store["layer/w"] is w, list(store.variables)
    (True, ['layer/w'])
    """

    def __init__(self, rng: Any = None) -> None:
        self.variables: dict[str, Variable] = {}
        self.regularizers: dict[str, Callable[[Any], Any]] = {}
        self.lines: dict[str, str] = {}  # where each was made
        self.scope = Scope("", None, None, None)
        self.outer: list[Scope] = []
        self.rng = rng

    def __getitem__(self, name: str) -> Any:
        if name not in self.variables:
            raise KeyError(f"{_line()}: there is no variable {name!r}; there are: {self._names()}")
        return self.variables[name]

    def __contains__(self, name: str) -> bool:
        return name in self.variables

    def __len__(self) -> int:
        return len(self.variables)

    def __enter__(self) -> Store:
        self._enter("", None, None, None)
        _stores.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _stores.pop()
        self._leave()

    def _enter(self, name: str, reuse: Any, init: Any, regularizer: Any) -> Scope:
        """A scope of that whole name, which is as the one around it where nothing else is said."""
        around = self.scope
        self.outer.append(around)
        settings = (reuse or around.reuse, init or around.init, regularizer or around.regularizer)
        self.scope = Scope(name, *settings)
        return self.scope

    def _leave(self) -> None:
        self.scope = self.outer.pop()

    @contextmanager
    def reusing(self, reuse: Any = True) -> Iterator[Store]:
        """A context in which this store's variables are found (with AUTO_REUSE made, too)."""
        with self:
            self.scope.reuse = reuse
            yield self

    def regularization(self) -> Any:
        """The sum of what the variables' regularizers give."""
        return sum(f(self.variables[name]) for name, f in self.regularizers.items())

    def get_variable(
        self,
        name: str,
        shape: Sequence[int] | None = None,
        init: Any = None,
        *,
        dtype: Any = np.float32,
        regularizer: Any = None,
        trainable: bool = True,
        tags: Sequence[str] = (),
    ) -> Variable:
        """As `nn.get_variable`, in this store."""
        full = f"{self.scope.name}/{name}" if self.scope.name else name
        init = self.scope.init if init is None else init
        found = self.variables.get(full)
        if found is not None:
            self._check(full, found, shape)
            return found
        if self.scope.reuse is True:
            complain(
                ValueError,
                f"there is no variable {full!r} to reuse; there are: {self._names()}",
                "let it be made first, or write reuse=nn.AUTO_REUSE.",
            )
        value = _start(full, shape, init, dtype, self.rng)
        variable = Variable(value, full, trainable, tags)
        self.variables[full] = variable
        self.lines[full] = _line()
        regularizer = regularizer or self.scope.regularizer
        if regularizer is not None:
            self.regularizers[full] = regularizer
        return variable

    def _check(self, full: str, found: Variable, shape: Sequence[int] | None) -> None:
        before = f"made at {self.lines.get(full, 'another place')}"
        if not self.scope.reuse:
            complain(
                ValueError,
                f"the variable {full!r} is there already, {before}",
                "to share it write variable_scope(..., reuse=True) or reuse=nn.AUTO_REUSE, or choose "
                "another name.",
            )
        if shape is not None and tuple(shape) != found.shape:
            complain(
                ValueError,
                f"the variable {full!r} has the shape {found.shape}, {before}, and is asked for with "
                f"the shape {tuple(shape)}",
                "ask for the shape that it has, or give another name.",
            )

    def _names(self) -> str:
        return ", ".join(self.variables) or "none"


jt.tree.register_object(Store)
_stores: list[Store] = [Store()]


def _start(name: str, shape: Sequence[int] | None, init: Any, dtype: Any, rng: Any) -> Any:
    init = GLOROT if init is None else init
    init = init.value if isinstance(init, Variable) else init
    if shape is not None:
        return made(init, tuple(shape), dtype, rng)
    if callable(init):
        what = f"the new variable {name!r} has no shape"
        complain(ValueError, what, f'write get_variable("{name}", shape), or init=array.')
    return init


def current_store() -> Store:
    """The store of the innermost `with` block; without one, the store that all functions share."""
    return _stores[-1]


def variable_scope(
    name: Any = None,
    default_name: str | None = None,
    *,
    reuse: Any = None,
    init: Any = None,
    regularizer: Any = None,
) -> AbstractContextManager[Scope]:
    """A context in which names of variables begin with `name/`, inside of those around it.

    `name` is a text, or a scope that was entered before. Without it `default_name` is made unique among
    the names in the scope around. `reuse`: True finds variables and makes none, AUTO_REUSE makes those
    that are not there; None or False does as the scope around does. `init` and `regularizer` are for
    variables that give none.

    >>> with jt.nn.Store(), jt.nn.variable_scope("a"), jt.nn.variable_scope("b") as scope:
    ...     scope.name
    'a/b'
    """
    if name is None:
        if default_name is None:
            complain(
                ValueError,
                "variable_scope was given no name",
                'write variable_scope("layer"), or default_name="layer" for layer, layer_1, ...',
            )
        name = current_store().scope.unique(default_name)
    return _entered(name, reuse, init, regularizer)


@contextmanager
def _entered(name: str | Scope, *settings: Any) -> Iterator[Scope]:
    store = current_store()
    around = store.scope.name
    if isinstance(name, Scope):  # one that was entered before is where it was
        name = name.name
    elif around:
        name = f"{around}/{name}"
    try:
        yield store._enter(name, *settings)
    finally:
        store._leave()


def get_variable_scope() -> Scope:
    """The scope that names are made in now.

    >>> with jt.nn.Store():
    ...     jt.nn.get_variable_scope().name
    ''
    """
    return current_store().scope


def get_variable(
    name: str, shape: Sequence[int] | None = None, init: Any = None, **options: Any
) -> Variable:
    """The variable of a name in the current scope and store: a new one, or where that reuses its own.

    `init` is an initialiser (`nn.initializers`; Glorot's if it is left out), a number, an array or
    another variable. Options are `dtype` (float32), `regularizer`, a function of the variable for
    `store.regularization()`, `trainable` and `tags`.

    Raises ValueError, with both lines, for a name that is taken, or has another shape, and where reuse
    finds nothing.

    >>> with jt.nn.Store():
    ...     jt.nn.get_variable("b", (2,), init=0)
    Variable('b', array([0., 0.], dtype=float32))
    """
    return current_store().get_variable(name, shape, init, **options)


def make_template(name: str, function: Callable[..., Any], **bound: Any) -> Callable[..., Any]:
    """A function whose calls share their variables, made by the first call in a store, in a scope of
    its own, whose name is made unique.

    >>> scale = jt.nn.make_template("scale", lambda x: x * jt.nn.get_variable("by", (), init=2.0))
    >>> with jt.nn.Store() as store:
    ...     scale(1.0), scale(3.0), list(store.variables)
    (np.float32(2.0), np.float32(6.0), ['scale/by'])
    """
    own = current_store().scope.unique(name)

    def template(*args: Any, **kwargs: Any) -> Any:
        store = current_store()
        around = f"{store.scope.name}/{own}/" if store.scope.name else f"{own}/"
        there = any(full.startswith(around) for full in store.variables)
        with variable_scope(own, reuse=True if there else None):
            return function(*args, **bound, **kwargs)

    return template


def _line() -> str:
    """Where the user's code is."""
    line = jt.errors.user_line()
    return "another place" if line is None else f"{jt.errors.shown_file(line.file)}:{line.line}"
