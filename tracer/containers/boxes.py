"""Arrays among the elements of native containers: each a container of its own, of a known length.

    path.append(pos)        # an array of a fixed shape: its numbers are copied
    path[-1]                # an array of these numbers

In Python what is appended and what is read are the array itself. So nobody may change it afterwards:
assignments into an array that is, or may be, in a container, or came out of one, are refused.
"""

from __future__ import annotations

import math
from functools import partial
from sys import getrefcount
from typing import Any, NoReturn

import numpy as np

from ..arrays.common import array
from ..control.control import cond, fori_loop
from ..control.unions import Union
from ..core.kept import apart, check_unwritten, keep, refuse_seen
from ..core.tracers import Tracer, as_value, emit, wrap
from ..messages import errors
from ..messages.errors import complain
from .elements import varied
from .elements.varied import Unfit
from .kinds import Again, Kind, current
from .stand_ins import Container, enlist, for_each, root, run, serve_boxes


def _ours() -> int:
    x: list[Any] = []
    return 1 + getrefcount(x)  # which counts its argument, if Python does not lend that (3.14)


_OURS = (
    _ours()
)  # references to an array that nobody else has: in `Kinds.still`, here, as an argument
_FEW = 16  # numbers that are written and read one by one


class BoxKind(Kind):
    """The kind of arrays of one shape and dtype."""

    def __init__(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        super().__init__(np.ndarray)
        self.dtype, self.shape = dtype, shape

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BoxKind) and (self.dtype, self.shape) == (other.dtype, other.shape)

    def __hash__(self) -> int:
        return hash((self.dtype, self.shape))

    def __repr__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"

    def can_be_one(self, other: Any) -> bool:
        """Arrays of other shapes are other elements."""
        return self == other

    def unite(self, other: Any) -> None:
        """They are one."""

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return math.prod(self.shape)

    @property
    def empty(self) -> Any:
        """What makes an array for the numbers."""
        return partial(np.empty, self.shape, self.dtype)


class Box(Container):
    """An array in an element."""

    __slots__ = ()

    def write(self, x: Any) -> None:
        """Put the numbers of an array into it."""
        kind: Any = self.kind
        kinds = current()
        if kinds is not None and kind in kinds.in_arrays and not kinds.copies_rows:
            kinds.copies_rows = True  # arrays of lists of such arrays have numbers of their own
            raise Again
        for known, _ in kinds.still if kinds is not None else ():
            if (known.dtype, known.shape) == (kind.dtype, kind.shape) and getrefcount(
                known
            ) > _OURS:
                refuse_seen()
        flat, dtypes = x.reshape(kind.size), (kind.dtype,)
        if kind.size <= _FEW:
            for i in range(kind.size):
                place = as_value(np.int64(i))
                run("set", as_value(self.handle), place, as_value(flat[i]), value=dtypes)
            return
        handle = self.handle

        def put(i: Any) -> None:
            place = as_value(i, np.dtype(np.int64))
            run("set", as_value(handle), place, as_value(flat[i]), value=dtypes)

        with apart():
            for_each(kind.size, put)

    def __repr__(self) -> str:
        return repr(self.kind)


enlist(Box)


def _kind_of(x: Any) -> BoxKind:
    if x.dtype.kind not in "biuf" or x.dtype.itemsize not in (1, 2, 4, 8):
        raise Unfit
    if x.dtype.kind == "f" and x.dtype.itemsize < 4:
        raise Unfit
    return BoxKind(np.dtype(x.dtype), tuple(x.shape))


def placed(x: Any) -> Box:
    """What stands for an array where only the form of an element matters."""
    return Box(_kind_of(x), np.uint64(0))


def into(x: Any) -> Any:
    """An element with its arrays in boxes."""
    if varied.is_array(x):
        return _boxed(x)
    if type(x) is Union:
        return Union(x.tag, {n: into(option) for n, option in x.options.items()})
    return varied.mapped(into, x) if isinstance(x, tuple) else x


def _boxed(x: Any) -> Box:
    kind = _kind_of(x)
    if isinstance(x, Tracer) and x._view is None and x._storage.box is not None:
        return x._storage.box
    (made,) = run("new", root())
    box = Box(kind, wrap(made, scalar=True))
    if isinstance(x, Tracer):
        keep(x, box)
    else:
        kinds = current()
        assert kinds is not None
        kinds.still.append((x, x.copy()))
        x = array(kinds.still[-1][1])
        check_unwritten(x.type)
    flat = x.reshape(kind.size)
    if kind.size <= _FEW:
        for i in range(kind.size):
            run("append", made, as_value(flat[i]), value=(kind.dtype,))
    else:
        handle = wrap(made, scalar=True)

        def add(i: Any) -> None:
            run("append", as_value(handle), as_value(flat[i]), value=(kind.dtype,))

        with apart():
            for_each(kind.size, add)
    return box


def out_of(x: Any, perhaps: bool = False) -> Any:
    """An element with arrays in the place of boxes. Is there `perhaps` none?"""
    if isinstance(x, Box):
        return _unboxed(x, perhaps)
    if type(x) is Union:
        return Union(x.tag, {n: out_of(option, True) for n, option in x.options.items()})
    return varied.mapped(lambda y: out_of(y, perhaps), x) if isinstance(x, tuple) else x


def _unboxed(box: Box, perhaps: bool) -> Any:
    kind: Any = box.kind
    if perhaps:
        nothing = np.zeros(kind.shape, kind.dtype)
        found = cond(box.handle != 0, lambda: _read(kind, box.handle), lambda: array(nothing))
    else:
        found = _read(kind, box.handle)
    keep(found, None if perhaps or _any_of_outside() else box)
    return found


def _any_of_outside() -> bool:
    """Whether containers came from outside, whose arrays are others' as well."""
    kinds = current()
    return kinds is None or bool(kinds.entered)


def _read(kind: BoxKind, handle: Any) -> Any:
    def number(i: Any) -> Any:
        return run("get", as_value(handle), as_value(i, np.dtype(np.int64)), value=(kind.dtype,))[1]

    if not kind.size:
        return array(np.zeros(kind.shape, kind.dtype))
    if kind.size <= _FEW:
        parts = [emit("reshape", number(i), shape=(1,)).value for i in range(kind.size)]
        flat = emit("concat", *parts, axis=0)
    else:

        def step(i: Any, numbers: Any) -> Any:
            numbers[i] = wrap(number(i), scalar=True)
            return numbers

        with apart():
            flat = fori_loop(0, kind.size, step, array(np.zeros(kind.size, kind.dtype)))
    return wrap(emit("reshape", as_value(flat), shape=kind.shape).value)


# Who may change arrays


def _refuse(what: str) -> NoReturn:
    complain(
        errors.OuterMutationError,
        f"{what} into a list, dict or deque that grows in compiled code, which would see that",
        "put a copy into it (x.copy()), or make a new array: x = x + y in the place of x += y.",
    )


def check_still() -> None:
    """Arrays of NumPy's that were put into containers are as they were."""
    kinds = current()
    if kinds is not None and any(x.tobytes() != copy.tobytes() for x, copy in kinds.still):
        _refuse("an array that is changed afterwards is put")


def is_box(form: Any) -> bool:
    """Whether elements of a form are arrays."""
    return form is not None and isinstance(form.example, Box)


varied.serve_arrays(placed)
serve_boxes(into, out_of)
