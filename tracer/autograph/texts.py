"""Text in which traced values stand: f-strings, `str`, `format`, `%`, `print`.

The characters are known only when the compiled function runs. Whoever prints such a text, raises or
asserts with it, gets them then; whoever asks for them while tracing is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import methodcaller
from typing import Any, NoReturn

from ...ir.record import record, replace
from ..arrays.table import LAZY
from ..captures.kept import ShownLater
from ..control.callbacks import called_for_effect
from ..control.unions import Union, with_exact
from ..core.tracers import DESCRIBED, Tracer
from ..data import pytree
from ..messages import errors
from ..messages.errors import complain
from .variables import in_graph, is_traced

_CONVERSIONS: dict[str, Callable[[Any], Any]] = {"": lambda x: x, "r": repr, "s": str, "a": ascii}
# Methods of texts that give a text, whatever the characters are.
_LATER = frozenset(
    "ljust rjust center zfill upper lower title capitalize swapcase casefold strip lstrip rstrip "
    "replace expandtabs removeprefix removesuffix translate".split()
)
_PYTHON = {"b": bool, "i": int, "f": float, "c": complex}


@record
class Field:
    """What `show` makes of a value, or of a tree with traced values in it."""

    value: Any
    show: Callable[[Any], str]
    template: str | None = None  # a field of `str.format` that does the same for a number


class Text(ShownLater):
    """Characters, and fields that become some."""

    __slots__ = ("parts",)
    as_result = (
        "a text with traced values in it as a result",
        "print it, raise or assert with it; or return the values, and format them outside",
    )

    def __init__(self, parts: Iterable[str | Field]) -> None:
        self.parts = tuple(parts)

    @property
    def template(self) -> str | None:
        """For `str.format`, with `values`: None if these are not just numbers."""
        out = ""
        for part in self.parts:
            if isinstance(part, str):
                out += part.replace("{", "{{").replace("}", "}}")
            elif part.template is None:
                return None
            else:
                out += part.template
        return out

    @property
    def values(self) -> tuple[Any, ...]:
        return tuple(part.value for part in self.parts if isinstance(part, Field))

    def shown(self, values: Iterable[Any]) -> str:
        """With values that are known."""
        known = iter(values)
        return "".join(
            part if isinstance(part, str) else part.show(next(known)) for part in self.parts
        )

    def __str__(self) -> str:
        if not has_traced(self):  # made again of values that are known
            return self.shown(self.values)
        # in the exception that stands for one that compiled code raises
        return "".join(part if isinstance(part, str) else "{...}" for part in self.parts)

    def __add__(self, other: Any) -> Any:
        return text(self, other) if isinstance(other, (str, Text)) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return text(other, self) if isinstance(other, str) else NotImplemented

    def _refuse(self, *_: Any) -> NoReturn:
        complain(
            errors.TracerConversionError,
            "this text has traced values in it: its characters are known only when the compiled "
            "function runs",
            "print it, raise or assert with it; or return the values, and format them outside.",
            operands={"value": next((x for x in self.values if is_traced(x)), None)},
        )

    def __format__(self, spec: str) -> str:
        if has_traced(self):
            self._refuse()
        return format(str(self), spec)  # made again of values that are known

    def __mul__(self, times: Any) -> Any:
        return self._later(lambda known: known * times)

    __rmul__ = __mul__

    def __mod__(self, values: Any) -> Any:
        return Text([Field((self, values), lambda known: str(known[0]) % known[1])])

    def _method(self, name: str, args: tuple[Any, ...]) -> Text:
        if not has_traced(args):
            return self._later(methodcaller(name, *args))
        return Text([Field((self, args), lambda both: getattr(str(both[0]), name)(*both[1]))])

    def _later(self, make: Callable[[str], str]) -> Text:
        """What is made of the text when its characters are known."""
        return Text([Field(self, lambda known: make(str(known)))])

    __len__ = __iter__ = __getitem__ = __contains__ = __bool__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __int__ = __float__ = __index__ = __complex__ = _refuse
    __eq__ = __ne__ = __hash__ = _refuse

    def __getattr__(self, name: str) -> Any:
        if name in _LATER:
            return lambda *args: self._method(name, args)
        if hasattr(str, name):
            self._refuse()
        raise AttributeError(f"'str' object has no attribute {name!r}")


def _parts(one: Text) -> tuple[tuple[Any, ...], tuple[str | Field, ...]]:
    return one.values, tuple(p if isinstance(p, str) else replace(p, value=None) for p in one.parts)


def _made(parts: tuple[str | Field, ...], values: Iterable[Any]) -> Text:
    given = iter(values)
    return Text(p if isinstance(p, str) else replace(p, value=next(given)) for p in parts)


pytree.register_pytree(Text, _parts, _made)


def text(*parts: Any) -> Any:
    """An f-string: literal parts, texts, and tuples of a value, a conversion and a format."""
    out: list[str | Field] = []
    for part in parts:
        if isinstance(part, tuple):
            part = _field(*part)
        if isinstance(part, Text):
            out += part.parts
        else:
            out.append(part)
    if any(isinstance(part, Field) for part in out):
        return Text(out)
    return "".join(out)  # type: ignore[arg-type]


def _field(value: Any, conversion: str, spec: Any) -> str | Field | Text:
    if isinstance(spec, Text):
        inner = conversion
        return Field(
            (value, spec), lambda known: format(_CONVERSIONS[inner](known[0]), str(known[1]))
        )
    if isinstance(value, Text):
        if not spec and conversion not in ("r", "a"):
            return value
        return value._later(lambda known: format(_CONVERSIONS[conversion](known), spec))
    value = with_exact(value) if in_graph() else value
    if not has_traced(value):
        return _of_python(lambda: format(_CONVERSIONS[conversion](value), spec))
    template = None
    if is_traced(value) and not value.shape and (conversion != "r" or value.weak):
        template = "{:" + spec + "}" if spec else "{}"
    return Field(value, lambda x: format(_CONVERSIONS[conversion](x), spec), template)


def _of_python(make: Callable[[], str]) -> Any:
    """A text of Python's own, as of an object; where traced values have described themselves in it, what
    they are stands there at run time."""
    outer, DESCRIBED.tracers = getattr(DESCRIBED, "tracers", None), []
    try:
        made, described = make(), DESCRIBED.tracers
    finally:
        DESCRIBED.tracers = outer
    if not described or not in_graph():
        return made
    parts: list[str | Field] = []
    for tracer in described:
        before, found, made = made.partition(repr(tracer))
        if not found:  # the object has made something else of it
            return Text([before, Field(tracer, repr)])
        parts += [before, Field(tracer, repr)]
    return Text([*parts, made])


def has_traced(x: Any) -> bool:
    """Whether a traced value of a graph, or a text with one, is in this tree."""
    if isinstance(x, Tracer):
        return is_traced(x)
    if not isinstance(x, (list, tuple, dict, Text)) and type(x) not in LAZY:
        return False
    return any(map(is_traced, pytree.flatten(x)[0]))


def call_with(
    values: tuple[Any, ...], function: Callable[..., None], raises: Exception | None = None
) -> None:
    """Call a function with the values, each time that the compiled function comes here. It `raises`
    this, whatever they are."""
    leaves, tree = pytree.flatten(values)
    kinds = [x.weak if isinstance(x, Tracer) else None for x in leaves]

    def call(*known: Any) -> None:
        pairs = zip(known, kinds, strict=True)
        function(*pytree.unflatten(tree, [x if k is None else _PYTHON[k](x) for x, k in pairs]))

    call.__name__ = call.__qualname__ = getattr(function, "__name__", "call")
    called_for_effect(call, (*leaves,), {}, raises=raises)


# What Python's own functions are in transformed code.


def str_(*args: Any, **options: Any) -> Any:
    """`str`"""
    if len(args) == 1 and not options and has_traced(args[0]):
        return text((args[0], "s", ""))
    return _of_python(lambda: str(*args, **options))


def repr_(x: Any) -> Any:
    """`repr`, and `ascii`"""
    return text((x, "r", "")) if has_traced(x) else _of_python(lambda: repr(x))


def of_array(function: Callable[..., str]) -> Callable[..., Any]:
    """`np.array2string`, and others that make a text of an array."""

    def call(x: Any, *args: Any, **options: Any) -> Any:
        if not has_traced(x):
            return function(x, *args, **options)
        return Text([Field(x, lambda known: function(known, *args, **options))])

    return call


def format_(x: Any, spec: str = "") -> Any:
    """`format`"""
    return text((x, "", spec))


def remainder(left: Any, right: Any) -> Any:
    """`left % right`, which may be a text."""
    if isinstance(left, str) and has_traced(right):
        right = with_exact(right)
        return Text([Field(right, lambda known: left % known)])
    return _of_python(lambda: left % right) if isinstance(left, str) else left % right


def method_of_text(method: Any) -> Any:
    """`"...".format` and `"...".join`, or None for other methods."""
    made: str = method.__self__
    if method.__name__ == "format":

        def format(*args: Any, **named: Any) -> Any:
            if not has_traced([args, named]):
                return _of_python(lambda: made.format(*args, **named))
            given = with_exact((args, named))
            return Text([Field(given, lambda known: made.format(*known[0], **known[1]))])

        return format
    if method.__name__ == "join":

        def join(items: Iterable[Any]) -> Any:
            every = list(items)
            if not any(isinstance(item, (Text, Union)) for item in every):
                return made.join(every)
            parts: list[Any] = []
            for item in every:
                item = (item, "", "") if isinstance(item, Union) else item
                parts += [item] if not parts else [made, item]
            return text(*parts)

        return join
    return None


def print_(*args: Any, sep: str | None = " ", **options: Any) -> None:
    """`print`, each time that the compiled function comes here."""
    if not in_graph():
        print(*args, sep=sep, **options)
        return
    between = " " if sep is None else sep
    parts: list[Any] = []
    for arg in args:
        parts += [(arg, "s", "")] if not parts else [between, (arg, "s", "")]
    line = text(*parts)
    line = line if isinstance(line, Text) else Text([line])

    def show(*known: Any) -> None:
        print(line.shown(known), **options)

    show.__name__ = "print"
    call_with(line.values, show)
