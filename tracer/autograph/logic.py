"""Truth, `and`, `or`, `not`, conditional expressions, comparisons and assertions of either kind."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, KeysView, Sequence, ValuesView
from functools import partial, reduce
from numbers import Number
from typing import Any

import numpy as np

from ..containers import folds
from ..containers.growing import look_up
from ..containers.mixed import form_among
from ..containers.packed import Packed, refuse_rows
from ..containers.stand_ins import Container
from ..containers.tables import View
from ..containers.walking import Numbered, walked
from ..control.unions import Facts, Union, assume, implied, imply, joined_facts
from ..core.effects import check
from ..core.tracers import Tracer, as_value, emit, wrap
from ..data import pytree
from ..indexing.bounded import Bounded
from ..indexing.masked import Masked
from ..messages import errors
from ..messages.errors import complain
from .branches import branch
from .calls.generators import Stream
from .raising import Raised
from .rolling import FEW
from .users.operators import NAMES, binary, is_negated, of_users, tuples_compare
from .users.operators import truth_of as truth_of_users
from .uses import is_same, truth_of, use
from .variables import is_traced, is_undecided, reached

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    **{symbol: partial(binary, name) for symbol, name in NAMES.items()},
    "is": lambda a, b: is_(a, b),
    "is not": lambda a, b: is_not(a, b),
}
_CONTAINERS = (list, tuple, range, set, frozenset, dict, deque, KeysView, ValuesView)


def asked(test: Any) -> Any:
    """What the truth is asked of: of a native container whether there is something in it; a union's is
    that of whichever option it is."""
    if type(test) is Union:
        return truth_of(test, truth)
    return test.truth() if isinstance(test, Container) else truth_of_users(test)


def truth(x: Any) -> Any:
    """`bool(x)`, which may be a traced bool."""
    x = asked(x)
    if not is_undecided(x) or x.size != 1:
        return bool(x)  # complains of arrays with several elements
    value = as_value(x)
    if value.shape:
        value = emit("reshape", value, shape=()).value
    if value.dtype.kind != "b":
        value = emit("ne", value, as_value(0, value.dtype)).value
    return wrap(value, "b")


def if_exp(test: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """`then() if test else otherwise()`"""
    test = asked(test)
    if not is_undecided(test):
        return then() if test else otherwise()
    return branch(
        truth(test), [otherwise, then], reached(then, otherwise), "conditional expression"
    )


def and_(left: Any, right: Callable[[], Any]) -> Any:
    """`left and right()`"""
    test = asked(left)
    if not is_undecided(test):
        return right() if test else left
    pred, told = truth(test), _Told(right)
    result = branch(pred, [lambda: left, told.run], reached(right), "and", ("left", "right"))
    imply(result, joined_facts(implied(pred)[1], told.facts[1]), {})
    return result


def or_(left: Any, right: Callable[[], Any]) -> Any:
    """`left or right()`"""
    test = asked(left)
    if not is_undecided(test):
        return left if test else right()
    pred, told = truth(test), _Told(right)
    result = branch(pred, [told.run, lambda: left], reached(right), "or", ("right", "left"))
    imply(result, {}, joined_facts(implied(pred)[0], told.facts[0]))
    return result


class _Told:
    """The right side of `and` or `or`, and what follows from it (see `control.unions`)."""

    def __init__(self, right: Callable[[], Any]) -> None:
        self.right = right
        self.facts: tuple[Facts, Facts] = {}, {}

    def run(self) -> Any:
        value = self.right()
        self.facts = implied(value)
        return value


def not_(x: Any) -> Any:
    """`not x`"""
    x = asked(x)
    if not is_undecided(x):
        return not x
    pred = truth(x)
    result = wrap(emit("invert", as_value(pred)).value, "b")
    imply(result, *implied(pred))
    return result


def none_of(*flags: Any) -> Any:
    """`not (a or b or ...)`, of flags that break, continue or return set."""
    any_flag: Any = False
    for flag in flags:
        if any_flag is False or flag is True:
            any_flag = flag
        elif flag is not False and any_flag is not True:
            any_flag = any_flag | flag
    return not_(any_flag)


def compare(left: Any, *rest: Any) -> Any:
    """`a < b <= c`: an operator and a function for the right side, in turn."""
    op, make = rest[:2]
    right = make()
    if op in ("in", "not in"):
        result = in_(left, right) if op == "in" else not_in(left, right)
    elif _are_sequences(left, right) and not op.startswith("is"):
        result = _in_turn(op, left, right)
    elif op == "!=" and is_negated(left, right):
        result = not_(_COMPARISONS["=="](left, right))
    else:
        result = _COMPARISONS[op](left, right)
    if len(rest) == 2:
        return result
    return and_(result, lambda: compare(right, *rest[2:]))


def _are_sequences(left: Any, right: Any) -> bool:
    """Whether both are lists, or tuples, that are compared element by element."""
    kind: Any = tuple if isinstance(left, tuple) else list
    if not isinstance(left, kind) or not isinstance(right, kind):
        return False
    return all(type(x) is kind or type(x).__eq__ is kind.__eq__ for x in (left, right))


def _in_turn(op: str, left: Sequence[Any], right: Sequence[Any]) -> Any:
    """Sequences compared as Python does: by the first elements that differ, else by their lengths."""
    if not any(map(_is_asked, pytree.flatten((left, right))[0])):
        return _COMPARISONS[op](left, right)
    if op in ("==", "!=") and len(left) != len(right):
        return op == "!="

    def from_(k: int) -> Any:
        if k == min(len(left), len(right)):
            return _COMPARISONS[op](len(left), len(right))
        a, b = left[k], right[k]
        same = a is b or truth(compare(a, "==", lambda: b))
        if op in ("==", "!="):
            differs = op == "!="
            return if_exp(same, lambda: from_(k + 1), lambda: differs)
        return if_exp(same, lambda: from_(k + 1), lambda: truth(compare(a, op, lambda: b)))

    return from_(0)


tuples_compare(lambda op, left, right: _in_turn(op, left, right))


def _is_asked(x: Any) -> bool:
    """Whether a comparison with `x` may be a traced one: of traced values, and objects of users'."""
    return is_traced(x) or of_users(x, "__eq__") is not None


def in_(x: Any, container: Any) -> Any:
    """`x in container`"""
    if isinstance(container, (Container, View)):
        return container.contains(x)
    if isinstance(container, Stream):
        return container.has(x)
    if type(container) is Union or type(x) is Union:
        return use(in_, x, container)
    if isinstance(x, tuple):
        look_up(container, x)
    if is_traced(container):
        return truth((container == x).any())
    own = of_users(container, "__contains__")
    if own is not None:
        return truth(own(container, x))
    is_sequence = isinstance(container, (list, tuple, deque))
    holds = is_sequence and any(map(is_traced, container))
    is_number = isinstance(x, (Tracer, Number))
    if is_sequence and (any(map(_asks, (x, *container))) or (holds and not is_number)):
        return any_of([partial(_is_or_equals, item, x) for item in container])
    if holds or (is_traced(x) and isinstance(container, _CONTAINERS)):
        is_in: Any = False
        for item in container:
            if isinstance(item, (Tracer, Number, np.ndarray)):
                is_in = is_in | truth(x == item)
        return is_in
    return x in container


def _asks(x: Any) -> bool:
    """Whether comparing `x` takes code: of users' objects, and of values of several forms."""
    return _is_users(x) or type(x) is Union or (isinstance(x, tuple) and any(map(_asks, x)))


def _is_users(x: Any) -> bool:
    return of_users(x, "__eq__") is not None


def _is_or_equals(item: Any, x: Any) -> Any:
    return item is x or truth(compare(item, "==", lambda: x))


def any_of(tests: Sequence[Callable[[], Any]]) -> Any:
    """Whether one of the tests holds, which are asked in turn."""
    if not tests:
        return False
    return or_(tests[0](), partial(any_of, tests[1:]))


def is_(a: Any, b: Any) -> Any:
    """`a is b`: of Python's bools there is one each."""
    if type(a) is Union or type(b) is Union:
        return a is b or (is_same(a, b) if type(a) is Union else is_same(b, a))
    packed = isinstance(a, Packed) or isinstance(b, Packed)
    if isinstance(a, Packed) and isinstance(b, Packed) and "row" in (a.site[0], b.site[0]):
        refuse_rows()
    if isinstance(a, Container) and isinstance(b, Container) and a is not b and not packed:
        return truth(a.handle == b.handle)
    if _is_bool(a) and _is_bool(b) and (is_traced(a) or is_traced(b)):
        return truth(a == b)
    return a is b


def _is_bool(x: Any) -> bool:
    return type(x) is bool or (is_traced(x) and x.weak == "b")


def is_not(a: Any, b: Any) -> Any:
    return not_(is_(a, b))


def not_in(x: Any, container: Any) -> Any:
    return not_(in_(x, container))


def assert_(test: Any, text: str, message: Callable[[], Any] | None = None) -> Any:
    """What an `assert` statement asserts: a traced condition is checked at run time."""
    test = asked(test)
    if not is_undecided(test):
        return test
    error = AssertionError(text if message is None else message())
    pred = truth(test)
    Raised(error).emit(pred)
    assume(implied(pred)[1])
    return True


def refuse(test: Any, what: str) -> Any:
    """A condition that cannot depend on traced values."""
    if is_undecided(test):
        complain(
            errors.TransformError,
            f"the condition depends on a traced value, in {what}, which autograph does not "
            "transform",
            "move it to a plain function with `if` and `for` statements, or use jt.where.",
            operands={"condition": test},
        )
    return test


def choose(test: Tracer, then: Any, otherwise: Any) -> Any:
    return if_exp(test, lambda: then, lambda: otherwise)


def truth_(*args: Any) -> Any:
    """`bool`"""
    return truth(args[0]) if len(args) == 1 else bool(*args)


def _of_container(x: Any) -> bool:
    return isinstance(x, (Container, View))


def min_(*args: Any, **options: Any) -> Any:
    return _extreme(min, "lt", args, options)


def max_(*args: Any, **options: Any) -> Any:
    return _extreme(max, "gt", args, options)


def _extreme(builtin: Any, better: Any, args: Any, options: Any) -> Any:
    if len(args) == 1 and isinstance(args[0], Packed) and args[0].length() and not options:
        if args[0].is_table:
            refuse_rows()
        return args[0].element(_extreme_element(builtin, args[0].materialise()))
    if len(args) == 1 and (_of_container(args[0]) or _is_of_any_length(args[0])):
        return _extreme_of_container(builtin, args[0], **options)
    if len(args) == 1 and is_traced(args[0]) and args[0].ndim and len(args[0]) and options:
        return _extreme_by(builtin, args[0], **options)
    if len(args) == 1 and isinstance(args[0], (Bounded, Masked)) and not options:
        return _extreme_element(builtin, _elements(args[0]))
    if len(args) == 1 and is_traced(args[0]) and args[0].ndim == 1 and args[0].size and not options:
        return _extreme_element(builtin, args[0])
    if len(args) == 1 and (is_traced(args[0]) or not isinstance(args[0], Iterable)):
        return builtin(*args, **options)
    items = list(args[0]) if len(args) == 1 else args
    key = options.get("key")
    keys = items if key is None else [key(item) for item in items]
    if len(items) < 2 or not any(map(_is_ordered, keys)):
        return builtin(items, **options)
    best, least = items[0], keys[0]
    for item, one in zip(items[1:], keys[1:], strict=True):
        if isinstance(one, tuple) and isinstance(least, tuple):
            is_better = truth(_in_turn("<" if better == "lt" else ">", one, least))
        else:
            is_better = truth(binary(better, one, least))
        best = if_exp(is_better, partial(_same, item), partial(_same, best))
        if key is not None:
            least = if_exp(is_better, partial(_same, one), partial(_same, least))
        else:
            least = best
    return best


def _is_of_any_length(items: Any) -> bool:
    """Whether they are known by number, and how many there are is a value: a zip of lists that grow."""
    found = None if is_traced(items) or isinstance(items, (Bounded, Masked)) else walked(items)
    return found is not None and not isinstance(found[0], int)


def _extreme_of_container(builtin: Any, items: Any, key: Any = None, **options: Any) -> Any:
    """The default stays what it is where there is nothing."""
    found = walked(items)
    if found is None or isinstance(found[0], int) or "default" not in options:
        return folds.extreme(items, builtin, key=key, **options)
    default = options["default"]
    if form_among(items, default) is not None:
        return folds.extreme(items, builtin, key=key, default=default)
    some = partial(folds.extreme, items, builtin, key=key)
    return if_exp(found[0] > 0, some, partial(_same, default))


def _extreme_by(builtin: Any, x: Any, key: Any = None, default: Any = None) -> Any:
    """Of an array that is not empty the first element for which `key` is least, or greatest."""
    if key is None:
        return _extreme(builtin, None, (x,), {})
    places = Numbered(len(x), lambda i: i)
    return x[folds.extreme(places, builtin, key=lambda i: key(x[i]))]


def _is_ordered(x: Any) -> bool:
    if isinstance(x, tuple):
        return any(map(_is_ordered, x))
    return is_traced(x) or any(of_users(x, name) for name in ("__lt__", "__gt__"))


def _elements(x: Any) -> Any:
    return x.materialised() if isinstance(x, Masked) else x


def _extreme_element(builtin: Any, x: Any) -> Any:
    """`min(x)` of an array: comparisons with NaN are false, so that only a NaN in front stays."""
    if isinstance(x, Bounded):
        check(
            x.shape[0] > 0, f"{builtin.__name__}() iterable argument is empty", error="ValueError"
        )
        without_nan: Any = (np.nanmin if builtin is min else np.nanmax)(x)
    else:
        without_nan = (np.fmin if builtin is min else np.fmax).reduce(x)
    return np.where(np.isnan(x[0]), x[0], without_nan)[()]


def sum_(items: Any, /, start: Any = 0) -> Any:
    """`sum`; of a long array by a reduction."""
    if _of_container(items):
        return folds.total(items, start)
    if isinstance(items, (Bounded, Masked)) or (
        is_traced(items) and items.ndim and len(items) > FEW
    ):
        items = _elements(items)
        dtype = np.int64 if items.dtype.kind == "b" else items.dtype
        return start + np.add.reduce(items, axis=0, dtype=dtype)
    if isinstance(items, Iterable) and not is_traced(items):
        items = [*items]
        if any(of_users(x, name) for x in (start, *items) for name in ("__add__", "__radd__")):
            return reduce(partial(binary, "add"), items, start)
    return sum(items, start)


def _same(value: Any) -> Any:
    return value


def any_(items: Any) -> Any:
    return _until(items, True)


def all_(items: Any) -> Any:
    return _until(items, False)


def _until(items: Any, end: bool) -> Any:
    """The truth of the items: `end` if any of them has it."""
    if _of_container(items):
        return folds.some(items, truth, end)
    if isinstance(items, (Bounded, Masked)):
        return truth((np.any if end else np.all)(items))
    joined = or_ if end else and_
    result: Any = not end
    for item in items:
        result = joined(result, partial(truth, item)) if is_traced(result) else truth(item)
        if result is end:
            return end
    return result
