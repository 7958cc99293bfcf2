"""`TensorArray`: results of a loop, each element written once, as in TensorFlow."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import optree

from ..arrays.common import array as as_tracer
from ..core.trace import Array, current_trace
from ..core.tracers import Tracer, as_value, weak_kind, wrap
from ..data import pytree
from ..data.promotion import canonical
from ..messages import errors
from ..messages.errors import complain
from .element_states import (
    CLEARED,
    TWICE,
    UNREAD,
    UNWRITTEN,
    WRITTEN,
    marked,
    require_all,
    require_range,
    require_state,
)
from .elements import (
    in_graph,
    index_of,
    indices_of,
    known,
    put_at,
    static_shape,
    static_size,
    take,
    tracing_now,
)
from .regions import fits


class TensorArray:
    """`size` elements of one dtype and shape, each of which is written once and then read.

        ta = jt.TensorArray(np.float64, n)
        ta = jt.fori_loop(0, n, lambda i, ta: ta.write(i, x[i] ** 2), ta)
        squares = ta.stack()

    A TensorArray never changes: `write`, `unstack`, `scatter` and `split` return a new one. It is a
    pytree, so it can be the carry of a loop, pass through `cond`, `jit` and `grad`; there it is a
    buffer and a state per element, and compiled loops write into the buffer in place.

    A second write to an element, and reading one that was not written, are errors: at once where the
    index is known, otherwise when compiled code gets there (AssertionError, as is
    `errors.TensorArrayError`). Indices count from 0 up; there are no negative ones.

    element_shape: may be left out; the first write tells it, also inside of a loop body
    dynamic_size: a write beyond the end makes the array longer. Not under jit, where sizes are fixed
    clear_after_read: an element can be read only once. (Here a handle remembers what was read.)
    """

    __slots__ = (
        "dtype", "element_shape", "dynamic_size", "clear_after_read",
        "_size", "_buffer", "_state", "_claimed",
    )  # fmt: skip
    # _buffer: (size, *element_shape), or None while the element shape is not known
    # _state: int8 per element, see `element_states`
    # _claimed: outside of tracing, the elements of an ndarray _buffer that some handle has written;
    #           handles share a buffer as long as each writes to elements of its own

    def __init__(
        self,
        dtype: Any,
        size: Any = 0,
        element_shape: Sequence[int] | int | None = None,
        dynamic_size: bool = False,
        clear_after_read: bool = False,
    ) -> None:
        self.dtype = canonical(dtype)
        self._size = static_size(size)
        if dynamic_size and in_graph():
            _refuse_growth()
        self.dynamic_size = bool(dynamic_size)
        self.clear_after_read = bool(clear_after_read)
        self.element_shape: tuple[int, ...] | None = None
        self._buffer: Any = None
        self._state: Any = np.zeros(self._size, np.int8)
        self._claimed: Array | None = None
        if element_shape is not None:
            _shape_elements(self, static_shape(element_shape))

    def size(self) -> int:
        """The number of elements, written or not."""
        return self._size

    def __repr__(self) -> str:
        shape = "" if self.element_shape is None else f", element_shape={self.element_shape}"
        dynamic = ", dynamic_size=True" if self.dynamic_size else ""
        return f"TensorArray({self.dtype}, size={self._size}{shape}{dynamic})"

    # One element.

    def write(self, index: Any, value: Any) -> TensorArray:
        """A TensorArray with `value` as element `index`, which was not written before."""
        value = self._fitting(value, "value")
        shape = np.shape(value) if not isinstance(value, Tracer) else value.shape
        new = self._copy()
        new._expect(shape, "value")
        at = index_of(index)
        if isinstance(at, int):
            new._reach(at + 1)
        require_range(at, new._size, new)
        require_state(new._state, at, UNWRITTEN, TWICE)
        new._state = marked(new._state, at, WRITTEN)
        new._put(at, value)
        return new

    def read(self, index: Any) -> Any:
        """Element `index`, which was written."""
        self._require_elements()
        at = index_of(index)
        require_range(at, self._size, self)
        require_state(self._state, at, WRITTEN, UNREAD)
        value = self._get(at)
        if self.clear_after_read:
            self._state = marked(self._state, at, CLEARED)
        return value

    # All elements, or several.

    def stack(self, fill_value: Any = None) -> Any:
        """All elements along a new axis 0. Unwritten ones are `fill_value`, or without it an error."""
        self._require_elements()
        missing = known(self._state) != WRITTEN
        if fill_value is None:
            require_all(~missing, self._state, UNREAD)
        result = (
            wrap(as_value(self._buffer), scalar=False) if tracing_now() else self._buffer.copy()
        )
        if fill_value is not None:
            fill = self._fitting(fill_value, "fill_value")
            missing = missing.reshape((-1,) + (1,) * (result.ndim - 1))
            result = np.where(missing, fill, result)
        if self.clear_after_read:
            self._state = np.full(self._size, CLEARED, np.int8)
        return result

    def concat(self) -> Any:
        """All elements, joined along their axis 0."""
        self._require_elements()
        assert self.element_shape is not None
        if not self.element_shape:
            complain(
                errors.ShapeError,
                "concat joins the elements of a TensorArray along their first axis; these are 0-d",
                "use stack() for scalars.",
            )
        first, *rest = self.element_shape
        return self.stack().reshape((self._size * first, *rest))

    def unstack(self, value: Any) -> TensorArray:
        """A TensorArray with the slices `value[i]` as its elements, all of them unwritten before."""
        value = self._fitting(value, "value")
        if value.ndim == 0 or (value.shape[0] != self._size and not self.dynamic_size):
            complain(
                errors.ShapeError,
                f"unstack needs one slice for each of the {self._size} elements",
                f"make the TensorArray as long as the value: size={value.shape[0]}."
                if value.ndim
                else "give it an array with at least one axis.",
                operands={"value": value},
            )
        return self.scatter(range(value.shape[0]), value)

    def gather(self, indices: Any) -> Any:
        """The elements with these indices (a sequence or 1-d array), along a new axis 0."""
        self._require_elements()
        at = indices_of(indices)
        require_range(at, self._size, self)
        state = known(self._state)
        traced = isinstance(at, Tracer) or isinstance(state, Tracer)
        state = take(state, at) if traced else state[at]
        require_all(state == WRITTEN, self._state, UNREAD, at)
        result = take(self._buffer, at) if tracing_now() else self._buffer[at]
        if self.clear_after_read:
            self._state = marked(self._state, at, CLEARED)
        return result

    def scatter(self, indices: Any, value: Any) -> TensorArray:
        """A TensorArray with `value[k]` as element `indices[k]`; none of them was written before."""
        value = self._fitting(value, "value")
        at = indices_of(indices)
        if value.ndim == 0 or value.shape[0] != at.shape[0]:
            complain(
                errors.ShapeError,
                f"scatter needs one slice of the value for each of the {at.shape[0]} indices",
                "give value[k] for indices[k].",
                operands={"value": value},
            )
        new = self._copy()
        new._expect(value.shape[1:], "value[k]")
        if isinstance(at, np.ndarray) and at.size:
            new._reach(int(at.max()) + 1)
        require_range(at, new._size, new)
        before = (known(new._state) != UNWRITTEN).astype(np.int64)
        if isinstance(at, Tracer) or isinstance(before, Tracer):
            times = put_at(before, at, np.ones(at.shape, np.int64), "add")
        else:
            times = before + np.bincount(at, minlength=new._size)
        require_all(times <= 1, new._state, TWICE)
        new._state = marked(new._state, at, WRITTEN)
        new._put(at, value)
        return new

    def split(self, value: Any, lengths: Any) -> TensorArray:
        """A TensorArray with consecutive parts of `value` as elements; all have the same length."""
        value = self._fitting(value, "value")
        sizes = [operator.index(n) for n in np.asarray(lengths).reshape(-1).tolist()]
        total = value.shape[0] if value.ndim else 0
        if not sizes or len(set(sizes)) > 1 or sum(sizes) != total:
            complain(
                errors.ShapeError,
                f"split needs equal lengths that add up to {total}, not {sizes}",
                "the elements of a TensorArray have one shape; pad the parts to the longest.",
                operands={"value": value},
            )
        return self.unstack(value.reshape((len(sizes), sizes[0], *value.shape[1:])))

    # The pieces.

    def _copy(self) -> TensorArray:
        new = object.__new__(TensorArray)
        for name in TensorArray.__slots__:
            setattr(new, name, getattr(self, name))
        return new

    def _fitting(self, value: Any, name: str) -> Any:
        """`value` as an array, tracer or Python number that becomes the dtype without loss."""
        weak = weak_kind(value)
        if weak is not None and fits(weak, self.dtype):
            return wrap(as_value(value, self.dtype)) if tracing_now() else self.dtype.type(value)
        if not isinstance(value, (Tracer, np.ndarray, np.generic)):
            value = as_tracer(value) if tracing_now() else np.asarray(value)
        if value.dtype != self.dtype:
            complain(
                errors.DTypeError,
                f"the elements of this TensorArray are {self.dtype}, the {name} is {value.dtype}",
                f"convert it with .astype({str(self.dtype)!r}), or make a "
                f"TensorArray of {value.dtype}.",
                operands={name: value},
            )
        return value

    def _expect(self, shape: tuple[int, ...], name: str) -> None:
        """The elements have this shape; the first one decides."""
        if self.element_shape is None:
            _shape_elements(self, shape)
        elif self.element_shape != shape:
            complain(
                errors.ShapeError,
                f"the elements of this TensorArray have shape {self.element_shape}, "
                f"the {name} has shape {shape}",
                "all elements have one shape: reshape or pad what is written.",
            )

    def _require_elements(self) -> None:
        if self.element_shape is None and self._size:
            complain(
                errors.TensorArrayError,
                "nothing has been written to this TensorArray, and its element_shape is not known",
                "write to it first.",
                operands={"TensorArray": self},
            )
        if self.element_shape is None:
            _shape_elements(self, ())

    def _reach(self, size: int) -> None:
        """With dynamic_size, make room for `size` elements."""
        if size <= self._size or not self.dynamic_size:
            return
        if in_graph():
            _refuse_growth()
        more = size - self._size
        self._state = np.concatenate([self._state, np.zeros(more, np.int8)])
        assert self.element_shape is not None
        self._buffer = np.concatenate(
            [self._buffer, np.zeros((more, *self.element_shape), self.dtype)]
        )
        self._size, self._claimed = size, None

    def _put(self, at: Any, value: Any) -> None:
        if tracing_now():
            self._buffer = put_at(self._buffer, at, value, "set")
            self._claimed = None
            return
        if self._claimed is None or np.any(self._claimed[at]):
            self._buffer = self._buffer.copy()
            self._claimed = self._state != UNWRITTEN
        self._buffer[at] = value
        self._claimed[at] = True

    def _get(self, at: Any) -> Any:
        if not tracing_now():
            element = self._buffer[at]
            return element.copy() if isinstance(element, np.ndarray) else element
        return take(self._buffer, at)


def adopt_elements(init: Any, tree: pytree.TreeDef) -> Any:
    """`init` with the element shapes that its TensorArrays have in the structure `tree`.

    None unless that is all in which the two structures differ.
    """
    outline = pytree.unflatten(tree, [None] * tree.num_leaves)
    old, old_tree = _outer(init)
    new, new_tree = _outer(outline)
    if old_tree != new_tree:
        return None
    adopted = []
    for a, b in zip(old, new, strict=True):
        unknown = isinstance(a, TensorArray) and a.element_shape is None
        if unknown and isinstance(b, TensorArray) and b.element_shape is not None:
            a = a._copy()
            _shape_elements(a, b.element_shape)
        adopted.append(a)
    adopted_tree = pytree.unflatten(old_tree, adopted)
    return adopted_tree if pytree.flatten(adopted_tree)[1] == tree else None


def _outer(tree: Any) -> tuple[list[Any], pytree.TreeDef]:
    """Flattened down to TensorArrays."""
    return optree.tree_flatten(
        tree,
        is_leaf=lambda x: x is None or isinstance(x, TensorArray),
        namespace=pytree.NAMESPACE,
    )


def _shape_elements(ta: TensorArray, shape: tuple[int, ...]) -> None:
    ta.element_shape = shape
    whole = (ta._size, *shape)
    trace = current_trace()
    if trace is not None and not trace.eager:
        ta._buffer = wrap(trace.builder.full(whole, 0, ta.dtype), scalar=False)
    else:
        ta._buffer = np.zeros(whole, ta.dtype)
    ta._claimed = None


def _refuse_growth() -> NoReturn:
    complain(
        errors.DynamicShapeError,
        "a TensorArray with dynamic_size=True grows, which it cannot do under jit: shapes are fixed "
        "when a function is compiled",
        "give the largest size that can occur, jt.TensorArray(dtype, size=n); what stays unwritten "
        "can be filled: ta.stack(fill_value=0).",
    )


def _flatten(ta: TensorArray) -> tuple[tuple[Any, ...], Any, tuple[str, ...]]:
    static = (ta.dtype, ta._size, ta.element_shape, ta.dynamic_size, ta.clear_after_read)
    if ta.element_shape is None:
        return (), static, ()  # nothing is written as long as the shape is not known
    return (ta._buffer, ta._state), static, ("buffer", "state")


def _unflatten(static: Any, children: Any) -> TensorArray:
    ta = object.__new__(TensorArray)
    ta.dtype, ta._size, ta.element_shape, ta.dynamic_size, ta.clear_after_read = static
    children = tuple(children)
    ta._buffer, ta._state = children or (None, np.zeros(ta._size, np.int8))
    ta._claimed = None
    return ta


_register: Any = optree.register_pytree_node  # its hint asks for a collection; any object will do
_register(
    TensorArray,
    _flatten,
    _unflatten,
    path_entry_type=optree.GetAttrEntry,
    namespace=pytree.NAMESPACE,
)
