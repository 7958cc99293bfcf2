"""Values that are of one form on one way and of another form on another: None or a number, say.

    best = None
    for i in range(n):
        if best is None or x[i] < best:     # None before the first iteration, a number after it
            best = x[i]

A `Union` has one value of each form, its *options*, and a *tag*, a traced integer, which says whose turn
it is; the other options hold anything. Forms are numbered, so that equal forms have one number wherever
they turn up and nothing has to be renumbered where branches meet. It is a pytree of the tag and the
options: branches merge and loops carry it as they do tuples. When the compiled function has run, the tag
is a number, and the pytree is made again as the option that it names.

What is known of a tag in a part of the program, because the condition of a branch says so, is a *fact*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from ...ir.graph import Value
from ...ir.record import record
from ...ir.types import I64, TensorType
from ..core.constants import known_array
from ..core.effects import check
from ..core.trace import FORMS, Trace, current_trace, require_trace
from ..core.tracers import Tracer, as_value, emit, weak_kind, wrap
from ..data import pytree
from ..messages import errors
from ..messages.errors import complain
from .unbound import Undefined

NONE = 0  # the number of None's form
UNBOUND = -1  # that of a variable without a value
Facts = dict[Value, frozenset[int]]  # of tags: the numbers that they can be
_OF_NONE = pytree.flatten(None)[1]


class Union:
    """One of several values. The operators and methods of it are attached by `autograph.uses`."""

    __slots__ = ("tag", "options")
    __array_priority__ = 2000.0  # more than a tracer's
    _jitney_chooser: Callable[..., Any]  # `chooser`, for who finds one in the structure of a result
    tag: Any
    options: dict[int, Any]

    def __init__(self, tag: Any, options: dict[int, Any]) -> None:
        object.__setattr__(self, "tag", tag)
        object.__setattr__(self, "options", options)

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(self.options)

    def __repr__(self) -> str:
        return " | ".join(sorted(map(repr, self.options.values())))


@record
class Form:
    """What values of one form have in common: the structure, and of each leaf what makes it another."""

    structure: Any
    leaves: tuple[Any, ...]


@record(eq=False)
class Static:
    """A leaf that is no array: another one makes another form."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and _is_same(self.value, other.value)

    def __hash__(self) -> int:
        return hash(type(self.value))


def _is_same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    return type(a) is type(b) and isinstance(a, (str, bytes, range, slice, np.dtype)) and a == b


def class_of_array(type: TensorType, scalar: bool) -> Any:
    """Leaves of one class can be one leaf: arrays of a type, all numbers of Python's and NumPy's."""
    if scalar and not type.shape and type.dtype.kind in "bifc":
        return "bool" if type.dtype.kind == "b" else "number"
    return type.shape, type.dtype


def class_of_leaf(leaf: Any) -> Any:
    """The class of a leaf, whatever it is."""
    if isinstance(leaf, Tracer):
        return class_of_array(leaf.type, leaf.scalar)
    if isinstance(leaf, np.ndarray | np.generic):
        return class_of_array(TensorType(leaf.shape, leaf.dtype), not isinstance(leaf, np.ndarray))
    if (weak := weak_kind(leaf)) is not None:
        return "bool" if weak == "b" else "number"
    return Static(leaf)


def number_of_form(tree: pytree.TreeDef, classes: Iterable[Any]) -> int:
    """The number of the form of values with this structure, whose leaves are of these classes."""
    if not tree.num_leaves and tree == _OF_NONE:
        return NONE
    if tree.type is Undefined:
        return UNBOUND
    return _entered(Form(_structure(tree), tuple(classes)))


def number_of(value: Any) -> int:
    """The number of the form of a value, in the whole of the trace."""
    if value is None:
        return NONE
    leaves, tree = pytree.flatten(value)
    return number_of_form(tree, map(class_of_leaf, leaves))


@contextmanager
def numbering(forms: list[Form]) -> Iterator[None]:
    """Traces that begin here have the numbers of these forms, and enter new ones."""
    reset = FORMS.set(forms)
    try:
        yield
    finally:
        FORMS.reset(reset)


def forms_of(values: Iterable[Any]) -> list[Form]:
    """The forms of values, in their order."""
    flat = map(pytree.flatten, values)
    return [Form(_structure(tree), tuple(map(class_of_leaf, leaves))) for leaves, tree in flat]


def _structure(tree: pytree.TreeDef) -> Any:
    return pytree.as_written(pytree.unflatten(tree, [0] * tree.num_leaves))[1]


def _entered(form: Form) -> int:
    forms = require_trace().forms
    if form not in forms:
        forms.append(form)
    return forms.index(form) + 1


def numbers_in(tree: pytree.TreeDef) -> tuple[int, ...]:
    """The numbers of the options of a union of this structure."""
    union = pytree.unflatten(tree, [None] * tree.num_leaves)
    return tuple(union.options)


def options_of(value: Any) -> dict[int, Any]:
    """The values that a value may be, by the numbers of their forms."""
    if isinstance(value, Union):
        return {n: value.options[n] for n in possible(value)}
    return {number_of(value): value}


def kind_number(weak: str | None, dtype: np.dtype[Any]) -> int:
    """The number of the form of scalars of one class: Python's ints, or np.float64."""
    return _entered(Form("scalar", (weak or dtype.str,)))


def exact(x: Any) -> Any:
    """A number that is of several classes as the union of them; anything else as it is."""
    if isinstance(x, Tracer) and x._storage.exact is not None:
        return x._storage.exact
    return x


def with_exact(tree: Any) -> Any:
    """A result with numbers as what they are, exactly."""
    return pytree.tree_map(exact, tree) if require_trace().forms else tree


def constant_tag(number: int) -> Tracer:
    """A tag that is known."""
    return wrap(as_value(np.int64(number)), scalar=True)


def tag_of(value: Any) -> Any:
    """The tag, a known number if there is but one option."""
    if isinstance(value, Union):
        numbers = possible(value)
        return numbers[0] if len(numbers) == 1 else value.tag
    return number_of(value)


# Facts


def possible(union: Union) -> tuple[int, ...]:
    """The numbers of the options that it can be here."""
    known = known_array(union.tag)
    if known is not None:
        return (int(known),)
    numbers = frozenset(union.options)
    for trace in _traces():
        numbers &= trace.facts.get(union.tag.value, numbers)
    # Where none is left the program never comes.
    return tuple(n for n in union.options if n in numbers) or tuple(union.options)


def _traces() -> Iterator[Trace]:
    trace: Trace | None = require_trace()
    while trace is not None:
        yield trace
        trace = trace.parent


def is_one_of(union: Union, numbers: Sequence[int]) -> Any:
    """Whether the option is one of these: a bool, or a traced one."""
    can_be = possible(union)
    inside = [n for n in can_be if n in numbers]
    outside = [n for n in can_be if n not in numbers]
    if not inside or not outside:
        return bool(inside)
    few, name, also = (inside, "eq", "or")
    if len(outside) < len(inside):
        few, name, also = (outside, "ne", "and")
    tag = as_value(union.tag)
    result: Any = None
    for n in few:
        one = emit(name, tag, as_value(n, I64)).value
        result = one if result is None else emit(f"bitwise_{also}", result, one).value
    test = wrap(result, "b")
    imply(test, {union.tag.value: frozenset(inside)}, {union.tag.value: frozenset(outside)})
    return test


def imply(test: Any, if_true: Facts, if_false: Facts) -> None:
    """Note what follows from a traced bool."""
    if isinstance(test, Tracer) and (if_true or if_false):
        require_trace().implied[test.value] = if_true, if_false


def implied(test: Any) -> tuple[Facts, Facts]:
    """What follows if a traced bool does not hold, and if it does."""
    if isinstance(test, Tracer):
        for trace in _traces():
            if test.value in trace.implied:
                yes, no = trace.implied[test.value]
                return no, yes
    return {}, {}


def joined_facts(one: Facts, other: Facts) -> Facts:
    """What holds if both do."""
    return one | {tag: one.get(tag, numbers) & numbers for tag, numbers in other.items()}


def assume(facts: Facts) -> None:
    """From here to the end of the trace these hold."""
    here = require_trace().facts
    here.update(joined_facts(here, facts))


def given(facts: Facts, function: Callable[[], Any]) -> Callable[[], Any]:
    """The function of a region in which these facts hold."""
    if not facts:
        return function

    def run() -> Any:
        assume(facts)
        return function()

    return run


def unasked(read: Callable[[], Any]) -> Any:
    """What `read` gives, for which unions have no attributes: what state there is, is looked at in their
    options."""
    trace = current_trace()
    if trace is None or not trace.forms:
        return read()
    trace.unasked = True
    try:
        return read()
    finally:
        trace.unasked = False


# Values of one form


def only(union: Any, error: str = "TypeError", message: str = "") -> Any:
    """The value, or the union without None: TypeError where it is None."""
    if type(union) is not Union:
        return union
    numbers = possible(union)
    if NONE in numbers and len(numbers) > 1:
        exclude(union, NONE, error, message or "a value is needed here, and it is None")
        numbers = possible(union)
    return union.options[numbers[0]] if len(numbers) == 1 else union


def exclude(union: Union, number: int, error: str, message: str) -> None:
    """The error, when the program comes here, if it is that option; from here on it is not."""
    others = [n for n in union.options if n != number]
    check(is_one_of(union, others), message.replace("{", "{{").replace("}", "}}"), error=error)
    assume({union.tag.value: frozenset(others)})


def bound(x: Any) -> Any:
    """The value of a variable that is read: UnboundLocalError where it has none."""
    if type(x) is Union and UNBOUND in x.options:
        numbers = possible(x)
        if numbers == (UNBOUND,):
            x.options[UNBOUND].refuse()
        if UNBOUND in numbers:
            exclude(x, UNBOUND, "UnboundLocalError", x.options[UNBOUND].message)
        others = {n: option for n, option in x.options.items() if n != UNBOUND}
        return Union(x.tag, others) if len(others) > 1 else next(iter(others.values()))
    if type(x) is Undefined:
        x.refuse()
    return x


def narrowed(value: Any) -> Any:
    """A union that can be but one of its options here is that option."""
    if type(value) is Union:
        numbers = possible(value)
        if len(numbers) == 1:
            return value.options[numbers[0]]
    return value


def one_value(x: Any) -> Any:
    """What is no union; else an error."""
    if type(x) is Union:
        complain(
            errors.CarryError,
            "a value that is of one form on one way and of another on another is needed as one here",
            "ask which one it is with `if x is None` or isinstance, and use it in that branch.",
        )
    return x


# As a pytree


def _parts(union: Union) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    return (union.tag, *union.options.values()), tuple(union.options)


def _made(numbers: tuple[int, ...], parts: Sequence[Any]) -> Any:
    """The union; what it is, once the compiled function has run."""
    tag, *options = parts
    if isinstance(tag, np.ndarray | np.integer):
        if tag.shape:
            refuse_batched()
        return options[numbers.index(int(tag))]
    if isinstance(tag, Tracer) and tag.shape:
        refuse_batched()
    return Union(tag, dict(zip(numbers, options, strict=True)))


def chooser(numbers: tuple[int, ...]) -> Callable[..., Any]:
    """What gives, of a tag and options of these numbers, the option whose turn it is."""
    if len(numbers) == 2:
        first = numbers[0]
        return lambda tag, one, other: one if tag == first else other
    return lambda tag, *options: options[numbers.index(tag)]


def refuse_batched() -> NoReturn:
    """A tag of many examples: which option it is would differ."""
    complain(
        errors.CarryError,
        "under vmap a value is None, or of another structure, for some examples and not for others",
        "return a number or an array for every example, such as np.nan or -1 where there is none.",
    )


Union._jitney_chooser = staticmethod(chooser)
pytree.register_pytree(Union, _parts, _made)
