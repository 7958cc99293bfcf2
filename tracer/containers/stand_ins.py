"""What stands in for a native container: its kind, and the handle that it is known by at run time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from ...ir.graph import Value
from ...ir.ops.control.stores import METHODS, STORE
from ...ir.types import BOOL, I64
from ..control.control import fori_loop
from ..control.number_classes import FLAGS, check_kept_exactly, flag_of, of_flag
from ..core.effects import advance, check, order_token
from ..core.trace import require_trace
from ..core.tracers import Tracer, as_value, wrap
from ..data import pytree
from ..data.containers import CONTAINERS
from ..messages import errors
from ..messages.errors import complain
from ..messages.source import user_line
from .elements import varied
from .elements.forms import Form
from .kinds import CLASSES, Kind, current, kind_of, root_of

DTypes = tuple[np.dtype[Any], ...]


def run(
    method: str, *operands: Value, key: DTypes = (), value: DTypes = (), form: str = ""
) -> tuple[Value, ...]:
    """Append a method of a native container; gives what it gives."""
    trace = require_trace()
    attrs: dict[str, Any] = {"method": method, "key": key, "value": value}
    if form:
        attrs["form"] = form
    with trace.builder.at(user_line(2)):
        op = trace.builder.append(STORE, [*operands, order_token()], attrs)
        advance(op.results)
    return op.results[:-1]


def root() -> Value:
    """Where the call's containers are kept, in the current trace."""
    kinds = current()
    assert kinds is not None
    trace = require_trace()
    if kinds.root is None:
        outermost = root_of(trace)
        token = outermost.builder.op("create_token")
        attrs: dict[str, Any] = {"method": "root", "key": (), "value": ()}
        kinds.root = outermost.builder.append(STORE, [token], attrs).results[0]
    return trace.lift(kinds.root, root_of(trace))


class Container:
    """Base of the stand-ins. `_name` is what Python calls the class."""

    __slots__ = ("handle", "kind")
    __array_ufunc__ = None
    _jitney_native = True  # see `data.containers`
    _new = "new"

    def __init__(self, kind: Kind, handle: Any = None) -> None:
        self.kind = kind
        if handle is None:
            (made,) = run(self._new, root())
            handle = wrap(made, scalar=True)
        self.handle = handle

    @property
    def _at(self) -> Value:
        return as_value(self.handle)

    def _run(self, method: str, *operands: Value, **dtypes: Any) -> tuple[Value, ...]:
        """Append a method of this container."""
        if METHODS[method].changes:
            self.kind.note_change()
        return run(method, self._at, *operands, **dtypes)

    @property
    def is_known(self) -> bool:
        """Whether something is known of what it holds; if not it has been empty so far."""
        return self.kind.is_known

    def fresh(self) -> Any:
        """An empty one of the same kind."""
        return type(self)(self.kind)

    def __repr__(self) -> str:
        if not isinstance(self.handle, Tracer):  # the structure of a result, shown in an error
            return f"a {self.kind} that grows"
        self._asked(
            "a text is made of", "print or format its elements, in a `for` statement over it."
        )

    def length(self) -> Any:
        """`len`"""
        if not self.is_known:
            return 0
        (n,) = self._run("length")
        return wrap(n, "i")

    def truth(self) -> Any:
        """`bool`"""
        return self.length() != 0 if self.is_known else False

    def _asked(self, what: str, remedy: str) -> NoReturn:
        complain(
            errors.TransformError,
            f"{what} a {self.kind!r} that grows in compiled code: it is known at run time only",
            remedy,
        )

    def __iter__(self) -> NoReturn:
        self._asked(
            "Python code that is not compiled runs over", "write a `for` statement over it."
        )

    def __bool__(self) -> NoReturn:
        self._asked("Python code that is not compiled asks for the truth of", "ask for its len().")

    def __len__(self) -> NoReturn:
        self._asked("Python code that is not compiled asks for the length of", "use len() itself.")

    def __array__(self, *args: Any, **options: Any) -> NoReturn:
        self._asked(
            "NumPy is given",
            "write its elements into an array of a known size, in a `for` statement.",
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(self.kind.cls, name):
            fail(AttributeError(f"{str(self.kind)!r} object has no attribute {name!r}"))
        complain(
            errors.UnsupportedFunctionError,
            f"{self.kind}.{name} of a {self.kind} that grows in compiled code",
            "write it with the other methods, or do it outside of the compiled function.",
        )

    def __eq__(self, other: object) -> Any:
        if self is other:
            return True
        if type(other) in CLASSES:
            other = native(other)
        if not isinstance(other, Container) or not self.is_comparable(other):
            return False
        if not self.is_known or not other.is_known:
            return self.length() == other.length()
        return self.is_equal(other)

    def __ne__(self, other: object) -> Any:
        return (self == other) ^ True

    def is_comparable(self, other: Container) -> bool:
        """Whether the two may be equal by their classes."""
        return self.kind.cls is other.kind.cls

    def is_equal(self, other: Any) -> Any:
        """Whether there is the same in both."""
        self._asked("a comparison of", "compare element by element.")

    __hash__ = None  # type: ignore[assignment]


def register(cls: type, stand_in: type[Container]) -> None:
    """Let `stand_in` stand in for native containers of a class of Python's."""
    assert cls in CONTAINERS
    CLASSES[cls] = stand_in


def _refuse(_: Any) -> NoReturn:
    raise AttributeError  # `__getattr__` says which


without = property(_refuse)
"""What a frozen container has in the place of a method that changes others."""


def enlist(stand_in: type[Container]) -> None:
    """Make the stand-ins of a class pytrees of their handles, so that branches and loops merge them."""
    pytree.register_pytree(
        stand_in,
        lambda x: ((x.handle,), x.kind),
        lambda kind, children: stand_in(kind, children[0]),
    )


def native(container: Any, kind: Kind | None = None) -> Container:
    """A native container with what one of Python's holds."""
    kind = kind or kind_of(container)
    made: Container = CLASSES[type(container)](kind)
    made.fill_from(container)
    return made


def leaves_of(form: Form, value: Any) -> list[Value]:
    """The words of an element of this form."""
    value = varied.narrowed(value)
    if form.holds_arrays:
        value = _boxes[0](value)
    leaves = varied.words_of(form.example, value) if form.is_varied else pytree.flatten(value)[0]
    for x, dtype in zip(leaves, form.numbers, strict=True):
        check_kept_exactly(x, dtype)
    numbers = [as_value(x, dtype) for x, dtype in zip(leaves, form.numbers, strict=True)]
    pairs = zip(leaves, form.leaves, strict=True)
    return [*numbers, *(flag_of(x, weak) for x, (_, weak) in pairs if weak in FLAGS)]


def element(form: Form, values: Sequence[Value]) -> Any:
    """The element of this form that these words are."""
    flags = iter(values[len(form.leaves) :])
    made = pytree.unflatten(
        form.tree,
        [
            of_flag(v, next(flags), weak) if weak in FLAGS else wrap(v, weak, scalar=True)
            for v, (_, weak) in zip(values, form.leaves, strict=False)
        ],
    )
    made = varied.settled(made) if form.is_varied else made
    return _boxes[1](made) if form.holds_arrays else made


_boxes: list[Callable[[Any], Any]] = []  # `boxes`, which lies above, puts them here


def serve_boxes(into: Callable[[Any], Any], out_of: Callable[[Any], Any]) -> None:
    """Let `into` put the arrays of an element into containers, and `out_of` take them out again."""
    _boxes[:] = [into, out_of]


def index_value(i: Any, what: str) -> Value:
    """A position as a value; TypeError for what is none."""
    is_integer = isinstance(i, Tracer) and i.dtype.kind in "iub" and not i.shape
    if not is_integer and not isinstance(i, (int, np.integer)):
        cls = "float" if isinstance(i, Tracer) else type(i).__name__
        raise TypeError(f"{what} indices must be integers or slices, not {cls}")
    return as_value(i, I64)


def require(ok: Value, message: str, error: str, *values: Any) -> None:
    """The error of Python's when the program comes here, unless `ok`."""
    check(wrap(ok, "b"), message, *values, error=error)


def is_tried() -> bool:
    """Whether a `try` looks for what may fail: that is asked before anything is changed then."""
    return require_trace().counts is False


def shown(value: Any) -> tuple[str, list[Any]]:
    """What `repr` makes of an element, as a format string and the traced values in it."""
    if isinstance(value, tuple):
        parts = [shown(part) for part in value]
        text = ", ".join(text for text, _ in parts) + ("," if len(parts) == 1 else "")
        return f"({text})", [v for _, values in parts for v in values]
    if isinstance(value, Container):
        return f"the {value.kind}", []
    if not isinstance(value, Tracer):
        return repr(value).replace("{", "{{").replace("}", "}}"), []
    if value.weak is not None:
        return "{!r}", [value]
    return ("np.{!r}_" if value.dtype.kind == "b" else f"np.{value.dtype}({{!r}})"), [value]


def require_found(ok: Any, value: Any, text: str) -> None:
    """ValueError unless an element was found; `text` may have a place for it."""
    name, values = shown(value)
    message = text.format(name if values else name.format())
    require(as_value(ok, BOOL), message, "ValueError", *values)


def fail(error: Exception) -> NoReturn:
    """What Python raises here for an empty container: in a branch it is raised at run time."""
    setattr(error, errors.RAISED, True)
    try:
        raise error
    finally:
        del error  # in a circle with its traceback it would keep the callers' arrays


def for_each(length: Any, function: Callable[[Any], None]) -> None:
    """`for i in range(length): function(i)`"""

    def body(i: Any, nothing: Any) -> Any:
        function(i)
        return nothing

    fori_loop(0, length, body, 0)
