"""What a program does with a value that is of one form or another (`control.unions`).

    y = x * 2           # x is None or a number: TypeError where it is None, as Python's, else a product

A use of such a value is a branch on its tag, with the option in its place. Where only one option is
left, because a condition around says so or None has no such operation, there is no branch.
"""

from __future__ import annotations

import inspect
import itertools
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import optree

from ...ir.record import record
from ..arrays.python_operators import BINARY, COMPARISONS, UNARY
from ..arrays.table import LAZY, ArrayFunction
from ..containers.growing import look_up, serve_use
from ..containers.objects import python_class
from ..containers.stand_ins import Container
from ..control.number_classes import sum_of_floats
from ..control.unions import (
    NONE,
    Union,
    exact,
    exclude,
    imply,
    is_one_of,
    only,
    possible,
)
from ..core.trace import require_trace
from ..core.tracers import Tracer
from ..data import pytree
from ..functions.operators import serve
from ..messages import errors
from ..messages.errors import complain
from .answers import class_of
from .beginnings import supposed
from .branches import branch
from .variables import reached

_NO_SUCH = (TypeError, AttributeError)


def use(function: Callable[..., Any], *operands: Any, given: tuple[Any, ...] = ()) -> Any:
    """`function(*operands)`, with unions among the operands. `given`: what else it may change."""
    at = next((i for i, x in enumerate(operands) if type(x) is Union), None)
    if at is None:
        return function(*operands)
    union = operands[at]

    def with_option(number: int) -> Any:
        known = *operands[:at], union.options[number], *operands[at + 1 :]
        return use(function, *known, given=given)

    numbers = list(possible(union))
    if NONE in numbers and len(numbers) > 1:
        error = _error_of_none(partial(with_option, NONE))
        if error is not None:
            exclude(union, NONE, type(error).__name__, _named(error, operands))
            numbers.remove(NONE)
    return _one_by_one(union, numbers, with_option, (*operands, *given))


def _one_by_one(
    union: Union, numbers: Sequence[int], with_option: Callable[[int], Any], parts: Sequence[Any]
) -> Any:
    """A branch for each option, which may change what is reached from `parts`."""
    first, *rest = numbers
    if not rest:
        return with_option(first)
    return branch(
        is_one_of(union, [first]),
        [
            lambda: _one_by_one(union, rest, with_option, parts),
            lambda: with_option(first),
        ],
        reached(*parts),
        "use of a value of several forms",
    )


def _error_of_none(operation: Callable[[], Any]) -> Exception | None:
    """What Python raises where None has no such operation. Operations of None have no effects."""
    try:
        operation()
    except errors.JitneyError as error:
        return TypeError(error.what or str(error))
    except _NO_SUCH as error:
        return error
    except Exception:
        return None  # as by a dict without that key: the branch for None raises it, if it is taken
    return None


def _named(error: Exception, operands: Sequence[Any]) -> str:
    """Its message, with the classes that traced values stand for."""
    text = str(error)
    for x in operands:
        if isinstance(x, Tracer):
            text = text.replace("'Tracer'", f"{class_of(x).__name__!r}", 1)
    return text


def over_unions(function: Callable[..., Any], by_class: bool = False) -> Callable[..., Any]:
    """A function of a library, whose arguments may be unions. What it gives may depend on the classes
    of numbers."""

    def call(*args: Any, **options: Any) -> Any:
        if by_class:
            args = tuple(map(exact, args))
        if not any(type(x) is Union for x in args):
            return function(*args, **options)
        return use(lambda *known: function(*known, **options), *args, given=(*options.values(),))

    return call


# Operators


def _install() -> None:
    for name in UNARY:
        _method(f"__{name}__", partial(use, getattr(operator, f"__{name}__")))
    for name in (*BINARY, "matmul"):
        function = getattr(operator, f"__{name}__")
        in_place = getattr(operator, f"__i{name}__")
        _method(f"__{name}__", partial(use, function))
        _method(f"__r{name}__", lambda x, y, function=function: use(function, y, x))
        _method(f"__i{name}__", partial(use, in_place))
    for name in COMPARISONS:
        _method(f"__{name}__", partial(_compared, getattr(operator, name)))
    for name in ("getitem", "contains"):
        _method(f"__{name}__", partial(use, getattr(operator, f"__{name}__")))


def _method(name: str, function: Callable[..., Any]) -> None:
    setattr(Union, name, lambda *operands: function(*operands))


def _compared(function: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """A comparison; `==` with None, or a text, tells the forms apart."""
    if isinstance(x, Union) and function in (operator.eq, operator.ne):
        return _told_apart(function, x, y) if not isinstance(y, Union) else use(function, x, y)
    return use(function, x, y)


_OPERATORS = {u: getattr(operator, f"__{name}__") for name, u in {**UNARY, **BINARY}.items()}


def by_class(ufunc: np.ufunc, *operands: Any) -> Any:
    """An operator of numbers that are of several classes, if its result is so too; else NotImplemented,
    for it can be had of the numbers that stand for them."""
    function = _OPERATORS.get(ufunc)
    if function is None:
        return NotImplemented
    results = set()
    for samples in itertools.product(*map(_samples, operands)):
        with np.errstate(all="ignore"):
            result = function(*samples)
        results.add((type(result), getattr(result, "dtype", None)))
    if len(results) == 1:
        return NotImplemented
    if ufunc in _OF_FLOATS and {cls for cls, _ in results} == {float, np.float64}:
        return sum_of_floats(function, operands)
    return use(function, *map(exact, operands))


_OF_FLOATS = {np.add, np.subtract, np.multiply, np.negative, np.positive, np.absolute}
"""What gives the same float of Python's floats and of NumPy's, with no error."""


def _samples(x: Any) -> list[Any]:
    """A number of each class that an operand may be of, or an array like it."""
    x = exact(x)
    if type(x) is Union:
        return [_sample(x.options[n]) for n in possible(x)]
    return [_sample(x)]


def _sample(x: Any) -> Any:
    if not isinstance(x, Tracer):
        return x
    one = np.ones(x.shape if x.ndim < 2 else (1,) * x.ndim, x.dtype)
    return one.item() if x.weak else one[()] if x.scalar else one


def _told_apart(function: Callable[[Any, Any], Any], union: Union, y: Any) -> Any:
    answers = {}
    for n in possible(union):
        with supposed():
            answers[n] = function(union.options[n], y)
        if not isinstance(answers[n], bool):
            return use(function, union, y)
    return is_one_of(union, [n for n, answer in answers.items() if answer])


def truth_of(union: Union, truth: Callable[[Any], Any]) -> Any:
    """`bool(union)`: a bool, or a traced one."""
    numbers = possible(union)
    with supposed():
        answers = {n: truth(union.options[n]) for n in numbers}
    known = {n for n, answer in answers.items() if isinstance(answer, (bool, np.bool_))}
    true = [n for n in numbers if n in known and answers[n]]
    false = [n for n in numbers if n in known and not answers[n]]
    if len(known) == len(numbers):
        return is_one_of(union, true)
    result = use(truth, union)
    tag = union.tag.value
    imply(
        result,
        {tag: frozenset(n for n in numbers if n not in false)},
        {tag: frozenset(n for n in numbers if n not in true)},
    )
    return result


def is_same(union: Union, other: Any) -> Any:
    """`union is other`"""
    if other is None:
        return is_one_of(union, [NONE])
    if isinstance(other, Union):
        return use(_is, union, other)
    if isinstance(other, Container):
        return use(_is, union, other)
    return is_one_of(union, [n for n in possible(union) if union.options[n] is other])


def _is(a: Any, b: Any) -> Any:
    if isinstance(a, Container) and isinstance(b, Container) and a is not b:
        return a.handle == b.handle
    return a is b


# Parts


def _attribute(union: Union, name: str) -> Any:
    if require_trace().unasked or (
        name.startswith("__") and name.endswith("__")
    ):  # which Python and NumPy ask for
        raise AttributeError(name)
    numbers = list(possible(union))
    if NONE in numbers and len(numbers) > 1 and not hasattr(None, name):
        message = f"'NoneType' object has no attribute {name!r}"
        exclude(union, NONE, "AttributeError", message)
        numbers.remove(NONE)
    if len(numbers) == 1:
        return getattr(union.options[numbers[0]], name)
    if all(_is_method(union.options[n], name) for n in numbers):
        return Method(union, name)
    return use(lambda x: getattr(x, name), union)


def _is_method(x: Any, name: str) -> bool:
    """Whether an attribute of an option is to be called. Properties are not asked: those do things."""
    if isinstance(inspect.getattr_static(python_class(x), name, None), property):
        return False
    with supposed():
        part = getattr(x, name)
    return callable(part) and not isinstance(part, (Tracer, Union))


@record
class Method:
    """A method of whichever option it is."""

    union: Union
    name: str

    def call(self, convert: Callable[[Any], Any], *args: Any, **options: Any) -> Any:
        """Call it; `convert` makes twins of functions."""
        return use(lambda x: convert(getattr(x, self.name))(*args, **options), self.union)


def _set_attribute(union: Union, name: str, value: Any) -> None:
    message = f"'NoneType' object has no attribute {name!r}"
    use(lambda x: setattr(x, name, value), only(union, "AttributeError", message))


def _set_item(union: Union, index: Any, value: Any) -> None:
    message = "'NoneType' object does not support item assignment"

    def store(x: Any) -> None:
        look_up(x, index)
        x[index] = value

    use(store, only(union, message=message))


def _iterated(union: Union) -> Any:
    one = only(union, message="cannot unpack non-iterable NoneType object")
    if type(one) is not Union:
        return iter(one)
    options = [one.options[n] for n in possible(one)]
    if all(isinstance(x, (tuple, list)) or (isinstance(x, Tracer) and x.ndim) for x in options):
        with supposed():
            lengths = {len(x) for x in options}
        if len(lengths) == 1:
            return iter([use(operator.itemgetter(i), one) for i in range(*lengths)])
    _refuse(one, "run over or unpacked")


def _length(union: Union) -> Any:
    one = only(union, message="object of type 'NoneType' has no len()")
    if type(one) is not Union:
        return len(one)
    with supposed():
        lengths = {len(one.options[n]) for n in possible(one)}
    if len(lengths) == 1:
        return lengths.pop()
    _refuse(one, "asked for its length")


def _refuse(union: Union, what: str, *_: Any) -> Any:
    complain(
        errors.CarryError,
        f"a value that is {_forms(union)} is {what}, and which one it is, is known only when the "
        "compiled function runs",
        "ask which one it is with `if x is None` or isinstance, and use it in that branch.",
    )


def _forms(union: Union) -> str:
    names = [
        repr(x) if isinstance(x, str) or x is None else f"a {class_of(x).__name__}"
        for x in (union.options[n] for n in possible(union))
    ]
    return " or ".join(dict.fromkeys(names))


def _call(union: Union, *args: Any, **options: Any) -> Any:
    return use(
        lambda f: f(*args, **options),
        only(union, message="'NoneType' object is not callable"),
        given=(*args, *options.values()),
    )


def _converted(name: str) -> Callable[[Union], Any]:
    return lambda union: _refuse(union, f"made a number or a text ({name})")


def _of_table(
    union: Union, entry: ArrayFunction, args: tuple[Any, ...], options: Mapping[str, Any]
) -> Any:
    """A function of the table of which this is an argument, or a part of one."""

    def function(*leaves: Any) -> Any:
        new = pytree.unflatten(tree, leaves)
        return entry.trace(new, options)

    given: Any = args
    leaves, tree = optree.tree_flatten(
        given, is_leaf=lambda x: type(x) is Union, none_is_leaf=True, namespace=pytree.NAMESPACE
    )
    return use(function, *leaves)


def _ufunc(union: Union, ufunc: Any, how: str, *inputs: Any, **options: Any) -> Any:
    out = options.pop("out", ())
    count = len(inputs)

    def function(*known: Any) -> Any:
        into = {"out": known[count:]} if out else {}
        return getattr(ufunc, how)(*known[:count], **into, **options)

    return use(function, *inputs, *out)


def _function(union: Union, function: Any, types: Any, args: Any, options: Any) -> Any:
    return use(lambda *known: function(*known, **options), *args)


_install()
serve(by_class)
serve_use(use)
LAZY.add(Union)
_attached: dict[str, Any] = {
    "__getattr__": _attribute,
    "__setattr__": _set_attribute,
    "__setitem__": _set_item,
    "__iter__": _iterated,
    "__len__": _length,
    "__call__": _call,
    "__hash__": lambda union: _refuse(union, "a key"),
    "__bool__": _converted("bool"),
    "__int__": _converted("int"),
    "__float__": _converted("float"),
    "__index__": _converted("an index"),
    "__array__": _converted("np.asarray"),
    "__array_ufunc__": _ufunc,
    "__array_function__": _function,
    "_jitney_lazy": True,
    "_call": _of_table,
}
for _name, _what in _attached.items():
    setattr(Union, _name, _what)
