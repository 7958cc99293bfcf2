"""What a `for` loop may run over: traced ranges and arrays, and pairs of them, by number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from ...ir.record import record, replace
from ...ir.types import C128, F64, I64, is_integer, is_supported
from ..arrays.common import array
from ..arrays.python_errors import check_int
from ..arrays.python_integers import as_python_integer
from ..arrays.table import FUNCTIONS
from ..containers.arrays import GrownArray
from ..containers.kinds import changed
from ..containers.packed import Packed
from ..containers.sequences import List
from ..containers.stand_ins import Container
from ..containers.tables import View
from ..control.unions import Union, only, possible
from ..core.effects import check
from ..core.tracers import Tracer, as_value, emit, wrap
from ..indexing.bounded import Bounded
from ..indexing.masked import Masked
from ..messages import errors
from ..messages.errors import complain, describe
from ..records.arrays import Records
from .logic import and_, choose
from .variables import in_graph, is_traced, is_undecided, stays_traced

_LONG = 8  # items from which what is known beside traced ones is gone through by places


@record(frozen=False)
class Items:
    """A sequence of `length` items, an int or traced. `item(i)` gives one, `done(i, item)` is called
    when the body has run on it."""

    length: Any
    item: Callable[[Any], Any]
    done: Callable[[Any, Any], None] = lambda i, item: None
    text: str = "range of a traced value"
    as_result = (
        "a range whose end is traced as a result",
        "return its ends, and make the range outside",
    )
    # Whether there is an item of a number, if that may change while it is run over:
    going: Callable[[Any], Any] | None = None
    may_raise: bool = False  # what `going` asks: not to be asked without need
    independent: bool = False  # whether iterations over them are said to be, by `jt.prange`
    packed: bool = False  # lists of numbers: a comprehension over them is one loop

    def __iter__(self) -> Iterator[Any]:
        if is_undecided(self.length):
            self._only_loops()
        return map(self.item, range(int(self.length)))

    def walked(self) -> tuple[Any, Callable[[Any], Any]]:
        """What `containers.walking` asks, for comprehensions."""
        return self.length, self.item

    def _only_loops(self, *_: Any) -> NoReturn:
        complain(
            errors.TracerIndexError,
            f"{self.text}: its length is known only when the compiled function runs, and only a "
            "`for` statement can run over it",
            "write a `for` statement, and assign the results into an array; or compute with the "
            "numbers that the range is made of.",
            asks=[self.length],
        )

    __len__ = __getitem__ = __contains__ = __reversed__ = _only_loops
    start = stop = step = count = index = property(_only_loops)


def items_of(x: Any) -> Items | None:
    """The items of `x` by number; None if `x` is to be iterated in Python."""
    if isinstance(x, Items):
        return x
    if (is_traced(x) or isinstance(x, (Bounded, Masked, Records))) and x.ndim:
        return _rows(x.materialised() if isinstance(x, Masked) else x)
    if isinstance(x, (Container, View)):
        return _of_container(x)
    if isinstance(x, GrownArray):
        return Items(*x.walked(), text="a container that grows")
    return None


def _of_container(x: Any) -> Items:
    """It is asked each time whether it goes on, as it may change while it is run over."""
    going = x.going() if x.is_known else None
    length, item = x.walked()
    may_raise = going is not None and not isinstance(x, List)
    text, packed = "a container that grows", isinstance(x, Packed) and x.packed
    return Items(length, item, text=text, going=going, may_raise=may_raise, packed=packed)


def _rows(x: Any) -> Items:
    versions: dict[int, int] = {}

    def item(i: Any) -> Any:
        row = x[i]
        if row.ndim and isinstance(row, Tracer):
            versions[id(row)] = row._storage.version
        return row

    def done(i: Any, row: Any) -> None:
        # In NumPy the row is a view, and an assignment into it reaches the array.
        if (
            row.ndim
            and isinstance(row, Tracer)
            and row._storage.version != versions.pop(id(row), row._storage.version)
        ):
            x[i] = row

    return Items(x.shape[0], item, done)


def at_places(pool: Any) -> Callable[[Any], Any] | None:
    """What gives an element by its place, which may be traced."""
    if isinstance(pool, range):
        return lambda i: pool.start + i * pool.step
    if isinstance(pool, Packed) or (is_traced(pool) and pool.ndim):
        return lambda i: pool[i]
    if type(pool) is np.ndarray and pool.ndim == 1 and is_supported(pool.dtype):
        constant = wrap(as_value(pool.copy()), scalar=False)
        return lambda i: (constant if isinstance(i, Tracer) else pool)[i]
    return None


def prange_(*args: Any) -> Any:
    """`jt.prange`, of integers that may be traced."""
    numbers = range_(*args)
    if not in_graph():
        return numbers
    if isinstance(numbers, range):
        items = numbered(numbers)
        return replace(items, independent=True, text="jt.prange")
    return replace(numbers, independent=True)


def numbered(numbers: range) -> Items:
    """The numbers of an ordinary range by their places."""
    first, step = (numbers[0], numbers.step) if numbers else (0, 1)
    return Items(len(numbers), lambda i: i * step + first)


def ndenumerate_(x: Any) -> Any:
    """`np.ndenumerate`: indices and elements, the last axis first."""
    if not is_traced(x):
        return np.ndenumerate(x)
    return Items(x.size, lambda i: ((at := _place(i, x.shape)), x[at]), text="np.ndenumerate")


def nditer_(x: Any, *args: Any, **options: Any) -> Any:
    """`np.nditer` of arrays that are read in the order of their memory: one, or several broadcast."""
    several = isinstance(x, (tuple, list))
    operands = list(x) if several else [x]
    if not any(map(is_traced, operands)):
        return np.nditer(x, *args, **options)
    arrays = [array(part) for part in operands]
    if args or options or any(part._strides is not None for part in arrays):
        complain(
            errors.TransformError,
            "np.nditer of traced arrays is for reading arrays in order C, without options",
            "loop over np.ndenumerate(x), which gives indices too, or over np.ndindex(x.shape).",
            operands={"x": next(filter(is_traced, operands))},
        )
    together = FUNCTIONS["broadcast_arrays"].traced(*arrays) if several else arrays
    shape = together[0].shape
    if not together[0].size:
        raise ValueError("Iteration of zero-sized operands is not enabled")

    def item(i: Any) -> Any:
        place = _place(i, shape)
        elements = tuple(part[place] for part in together)
        return elements if several else elements[0]

    return Items(together[0].size, item, text="np.nditer")


def _place(number: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Where the element of a number stands, if they are counted the last axis first."""
    place: list[Any] = []
    for length in reversed(shape):
        place.insert(0, number % length if len(place) + 1 < len(shape) else number)
        number = number // length
    return tuple(place)


def range_(*args: Any) -> Any:
    """`range`, of integers that may be traced."""
    if not any(is_undecided(a) for a in args):
        return range(*args)
    if not 1 <= len(args) <= 3:
        return range(*args)  # says what is wrong
    for a in args:
        if is_traced(a) and not (is_integer(a.dtype) and a.shape == ()):
            complain(
                errors.TracerIndexError,
                f"range() needs integers, not {describe(a)}",
                "convert it with .astype(np.int64).",
                operands={"argument": a},
            )
    args = tuple(wrap(as_value(a, I64), "i") if is_traced(a) else a for a in args)
    start, stop, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
    if is_traced(step):
        check(step != 0, "range() arg 3 must not be zero")
        last = choose(step > 0, -1, 1)
    elif step == 0:
        return range(0, 0, 0)
    else:
        last = -1 if step > 0 else 1
    if isinstance(step, int) and step == 1:
        length = stop if isinstance(start, int) and start == 0 else stop - start
    else:
        length = (stop - start + step + last) // step
    return Items(length, lambda i: i * step + start if not _is_one(step) else _plus(i, start))


def _is_one(x: Any) -> bool:
    return isinstance(x, int) and x == 1


def _plus(i: Any, start: Any) -> Any:
    return i if isinstance(start, int) and start == 0 else i + start


def enumerate_(iterable: Any, start: Any = 0) -> Any:
    if type(iterable) is Union:
        iterable = only(iterable, message="'NoneType' object is not iterable")
    if type(iterable) is Union:
        made = {n: enumerate_(iterable.options[n], start) for n in possible(iterable)}
        again = {n: [*x] if isinstance(x, enumerate) else x for n, x in made.items()}
        return Union(iterable.tag, again)
    items = items_of(iterable)
    if items is None:
        return enumerate(iterable, start)
    return Items(
        items.length,
        lambda i: (_plus(i, start), items.item(i)),
        lambda i, pair: items.done(i, pair[1]),
        "enumerate of a traced value",
        items.going,
        items.may_raise,
        packed=items.packed,
    )


def zip_(*iterables: Any, **options: Any) -> Any:
    traced = [items_of(x) for x in iterables]
    if any(f is not None for f in traced):
        traced = [_by_places(x) if f is None else f for f, x in zip(traced, iterables, strict=True)]
    if not any(f is not None for f in traced) or not all(
        f is not None or hasattr(x, "__len__") for f, x in zip(traced, iterables, strict=True)
    ):
        return zip(*iterables, **options)  # noqa: B905  (strictness is the user's)
    lengths = [
        f.length if f is not None else len(x) for f, x in zip(traced, iterables, strict=True)
    ]
    parts = [f for f in traced if f is not None]
    if options == {"strict": False} or (_all_equal(lengths) and options == {"strict": True}):
        options = {}
    if len(parts) < len(traced) or options:
        if all(isinstance(n, int) for n in lengths):
            # Some are Python's: item by item.
            pairs = zip(iterables, traced, strict=True)
            each = (f if isinstance(x, (Container, View)) else x for x, f in pairs)
            return zip(*each, **options)  # noqa: B905
        if not options:
            changed([*iterables])
        complain(
            errors.TransformError,
            "zip of a range of traced length and an ordinary sequence",
            "make an array of the sequence with jt.asarray.",
        )
    length = lengths[0]
    for other in lengths[1:]:
        length = _smaller(length, other)

    def done(i: Any, items: Any) -> None:
        for part, item in zip(parts, items, strict=True):
            part.done(i, item)

    def going(i: Any) -> Any:
        return _all_go_on(parts, i)

    return Items(
        length,
        lambda i: tuple(p.item(i) for p in parts),
        done,
        "zip of a traced value",
        going if any(p.going for p in parts) and not isinstance(length, int) else None,
        any(p.may_raise for p in parts),
        packed=all(p.packed for p in parts),
    )


def _all_equal(lengths: list[Any]) -> bool:
    """Whether all are known, and one."""
    return all(isinstance(n, int) for n in lengths) and len(set(lengths)) == 1


def _by_places(x: Any) -> Items | None:
    """The items of a long range, or of an array that NumPy made, among traced ones."""
    at = at_places(x) if isinstance(x, (range, np.ndarray)) and len(x) > _LONG else None
    return None if at is None else Items(len(x), at)


def _all_go_on(parts: Sequence[Items], i: Any) -> Any:
    """Whether all have an item of a number: who comes after one that has not is not asked."""
    first, *others = parts
    goes_on = i < first.length if first.going is None else first.going(i)
    if not others:
        return goes_on
    if any(p.may_raise for p in others):
        return and_(goes_on, lambda: _all_go_on(others, i))
    return goes_on & _all_go_on(others, i)


def _smaller(a: Any, b: Any) -> Any:
    known = [n for n in (a, b) if isinstance(n, int)]
    if len(known) == 2 or 0 in known:
        return min(known)
    return choose(b < a, b, a)


def reversed_(x: Any) -> Any:
    if type(x) is range:
        return x[::-1]
    items = items_of(x)
    if items is None:
        return reversed(x)
    last = items.length - 1
    return Items(
        items.length,
        lambda i: items.item(last - i),
        lambda i, item: items.done(last - i, item),
        "reversed of a traced value",
        _while_there(x, items.length) if items.going and isinstance(x, List) else items.going,
        items.may_raise,
        packed=items.packed,
    )


def _while_there(x: List, length: Any) -> Callable[[Any], Any]:
    """Whether a list, run over from behind, still has an element there: it may have become shorter."""
    return lambda i: (i < length) & (length - 1 - i < x.length())


def int_(*args: Any, **options: Any) -> Any:
    if len(args) == 1 and is_undecided(args[0]) and args[0].size == 1:
        check_int(args[0])
        return _scalar(args[0], "i")
    return int(*args, **options)


def float_(*args: Any) -> Any:
    if len(args) == 1 and stays_traced(args[0]) and args[0].size == 1:
        return _scalar(args[0], "f")
    return float(*args)


def complex_(*args: Any, **options: Any) -> Any:
    parts = [*args, *options.values()]
    if any(stays_traced(x) and x.size == 1 for x in parts) and not any(
        isinstance(x, str) for x in parts
    ):
        value: Any = 0j
        for name, factor, x in zip(("real", "imag"), (1, 1j), (*args, 0, 0), strict=False):
            value = value + factor * options.get(name, x)
        return wrap(as_value(value.reshape(()), C128), "c")
    return complex(*args, **options)


def _scalar(x: Tracer, weak: str) -> Tracer:
    value = as_python_integer(x.reshape(())) if weak == "i" else as_value(x * 1.0)
    if value.shape:
        value = emit("reshape", value, shape=()).value
    return wrap(value if weak == "i" else emit("convert", value, dtype=F64).value, weak)
