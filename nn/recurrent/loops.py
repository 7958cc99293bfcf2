"""The loop over a sequence, `rnn` and `bidirectional`, and sequences of different lengths in one padded
array `(batch, steps, ...)`."""

from __future__ import annotations

from typing import Any

import numpy as np

import jitney as jt

from ..faults import check, complain
from ..reductions import array_of
from .cells import Array, RNNCore, State, Step
from .wrappers import MultiRNN


def rnn(
    cell: RNNCore,
    x: Any,
    lengths: Array | None = None,
    initial_state: State = None,
    *,
    time_major: bool = False,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, State]:
    """Run a cell over `x` `(batch, steps, features)`: the outputs `(batch, steps, ...)` and the
    last state.

    `lengths` `(batch,)`, integers known only at run time, say how many steps of each row count.
    Outputs after a row's end are zeros, and the last state is that at the row's end (for a length
    of 0 the initial one). `reverse` begins at the rows' ends, and the output of each step stands
    where its input does. The initial state left out is `cell.initial_state`, zeros. `time_major`: x
    and outputs are `(steps, batch, ...)`. `unroll` is that of `jt.scan`. x may be a tree of arrays
    if the cell takes one.

    Raises ShapeError for shapes that do not fit, ValueError for a length that x does not have.

    >>> cell = jt.nn.GRUCell(2, 3, rng=0)
    >>> y, state = jt.nn.rnn(cell, np.ones((2, 4, 2), np.float32), np.array([1, 4]))
    >>> y.shape, np.array_equal(y[0, 0], state[0]), y[0, 1:].any()
    ((2, 4, 3), True, np.False_)
    """
    steps, batch = _extent(x, time_major)
    xs = x if time_major else jt.tree.map(_swapped, x)
    alive = None if lengths is None else _alive(lengths, steps, batch)
    first = jt.tree.map(lambda a: a[0], xs) if steps else xs
    cell.prepare(first)
    if initial_state is None:
        initial_state = cell.initial_state(batch, _dtype(cell, xs))
    else:
        _check_state(cell, initial_state, batch)
    ys, last = _run(cell, xs, alive, initial_state, reverse, unroll)
    return (ys if time_major else jt.tree.map(_swapped, ys)), last


def bidirectional(
    forward: RNNCore,
    backward: RNNCore,
    x: Any,
    lengths: Array | None = None,
    initial_states: tuple[State, State] = (None, None),
    *,
    time_major: bool = False,
    unroll: int | bool = 1,
) -> tuple[Array, tuple[State, State]]:
    """`rnn` from both ends: the outputs of both side by side, `(batch, steps, forward + backward)`,
    and the two last states.

    >>> ends = jt.nn.RNNCell(2, 3, rng=0), jt.nn.RNNCell(2, 3, rng=1)
    >>> y, (one, other) = jt.nn.bidirectional(*ends, np.ones((1, 4, 2), np.float32))
    >>> np.array_equal(y[0, -1, :3], one[0]), np.array_equal(y[0, 0, 3:], other[0])
    (True, True)
    """
    options: dict[str, Any] = {"time_major": time_major, "unroll": unroll}
    ahead, first = rnn(forward, x, lengths, initial_states[0], **options)
    back, second = rnn(backward, x, lengths, initial_states[1], reverse=True, **options)
    return np.concatenate([ahead, back], axis=-1), (first, second)


def _run(
    cell: RNNCore, xs: Any, alive: Array | None, state: State, reverse: bool, unroll: int | bool
) -> tuple[Any, State]:
    """The loop, time first; the layers of a stack one after the other, each over all steps."""
    if isinstance(cell, MultiRNN):
        states = []
        for part, own in zip(cell.cells, state, strict=True):
            xs, last = _run(part, xs, alive, own, reverse, unroll)
            states.append(last)
        return xs, tuple(states)
    inputs, step = cell.over(xs)
    if alive is None:
        body = _plain(step)
    else:
        body, inputs = _masked(step), (inputs, alive)
    last, ys = jt.scan(body, state, inputs, reverse=reverse, unroll=unroll)
    return ys, last


def _plain(step: Step) -> Any:
    def body(state: State, inputs: Any) -> tuple[State, Any]:
        y, state = step(inputs, state)
        return state, y

    return body


def _masked(step: Step) -> Any:
    def body(state: State, both: Any) -> tuple[State, Any]:
        inputs, alive = both

        def chosen(new: Array, old: Array) -> Array:
            return np.where(alive.reshape((-1,) + (1,) * (new.ndim - 1)), new, old)

        y, after = step(inputs, state)
        zeros = jt.tree.map(lambda a: np.zeros((), a.dtype), y)
        return jt.tree.map(chosen, after, state), jt.tree.map(chosen, y, zeros)

    return body


def _swapped(x: Array) -> Array:
    return np.swapaxes(x, 0, 1)


def _dtype(cell: RNNCore, xs: Any) -> Any:
    own = getattr(cell, "dtype", None)
    dtypes = [a.dtype for a in jt.tree.leaves(xs)] + ([] if own is None else [own])
    return np.result_type(*dtypes)


def _extent(x: Any, time_major: bool) -> tuple[int, int]:
    """Steps and batch, on which all arrays of `x` agree."""
    leaves = jt.tree.leaves(x)
    axes = "(steps, batch, features)" if time_major else "(batch, steps, features)"
    for leaf in leaves:
        if leaf.ndim < 2 or leaf.shape[:2] != leaves[0].shape[:2]:
            complain(
                jt.errors.ShapeError,
                f"rnn goes over arrays {axes}, and x has the shape {list(leaf.shape)}",
                "give x its axes of batch and of steps: x[None] is a batch of one sequence.",
                x=leaf,
            )
    steps, batch = leaves[0].shape[:2] if time_major else leaves[0].shape[1::-1]
    return steps, batch


def _alive(lengths: Any, steps: int, batch: int) -> Array:
    """Which rows go on at which step, `(steps, batch)`."""
    lengths = array_of(lengths)
    if lengths.shape != (batch,) or lengths.dtype.kind not in "iu":
        complain(
            jt.errors.ShapeError,
            f"lengths is an integer for each of the {batch} rows",
            f"give it the shape ({batch},) and an integer dtype.",
            lengths=lengths,
        )
    fits = (lengths >= 0) & (lengths <= steps)
    check(
        fits,
        ValueError,
        f"rnn: a length is below 0, or above the {steps} steps of x",
        "give lengths of these sequences: nn.length_of(x) finds those of padded ones.",
        lengths=lengths,
    )
    return np.arange(steps)[:, None] < lengths


def _check_state(cell: RNNCore, state: State, batch: int) -> None:
    sizes, wanted = jt.tree.flatten(cell.state_size)
    given = jt.tree.structure(state)
    shapes = [np.shape(leaf) for leaf in jt.tree.leaves(state)]
    expected = [(batch, *np.atleast_1d(size).tolist()) for size in sizes]
    if given != wanted or shapes != expected:
        complain(
            jt.errors.ShapeError,
            f"the initial state of {type(cell).__name__} is {shapes}, not {expected}",
            f"give it the structure of cell.initial_state({batch}), or leave it out for zeros.",
        )


def sequence_mask(lengths: Array, steps: int | None = None, dtype: Any = bool) -> Array:
    """True in the first `lengths[i]` places of row i: shape `(*lengths.shape, steps)`.

    `steps` left out is the greatest length, which compiled code does not know: give it there.

    >>> jt.nn.sequence_mask(np.array([1, 3]), dtype=int)
    array([[1, 0, 0],
           [1, 1, 1]])
    """
    lengths = jt.asarray(lengths)
    if steps is None:
        steps = int(lengths.max(initial=0))
    return (np.arange(steps) < lengths[..., None]).astype(dtype)


def length_of(padded: Array, padding: Any = 0) -> Array:
    """The length of each row of `(batch, steps)` or `(batch, steps, ...)`: up to and including the
    last step where anything is not `padding`.

    >>> jt.nn.length_of(np.array([[7, 0, 4, 0], [0, 0, 0, 0]]))
    array([3, 0])
    """
    padded = jt.asarray(padded)
    used = padded != padding
    if padded.ndim > 2:
        used = used.any(axis=tuple(range(2, padded.ndim)))
    places = np.arange(1, padded.shape[1] + 1)
    return np.max(np.where(used, places, 0), axis=1, initial=0)


def last_relevant(outputs: Array, lengths: Array) -> Array:
    """The output at the end of each row, `(batch, ...)`; zeros for a row of length 0.

    >>> jt.nn.last_relevant(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), np.array([2, 3]))
    array([2., 6.])
    """
    lengths, steps = array_of(lengths), outputs.shape[1]
    check(
        (lengths >= 0) & (lengths <= steps),
        ValueError,
        f"last_relevant: a length is below 0, or above the {steps} steps",
        "give the lengths of these sequences.",
        outputs=outputs,
        lengths=lengths,
    )
    rows = np.arange(outputs.shape[0])
    last = outputs[rows, np.maximum(lengths - 1, 0)]
    empty = np.reshape(lengths == 0, (-1,) + (1,) * (last.ndim - 1))
    return np.where(empty, np.zeros((), last.dtype), last)


def masked_mean(values: Array, mask: Array, axis: Any = None) -> Array:
    """The mean of the values where `mask` is true, 0 where it is nowhere: a loss per step `(batch,
    steps)` becomes the loss of a batch. What stands elsewhere, NaN included, counts neither in it
    nor in the gradient.

    >>> loss = np.array([[1.0, 2.0, np.nan], [6.0, np.nan, np.nan]])
    >>> jt.nn.masked_mean(loss, jt.nn.sequence_mask(np.array([2, 1]), 3))
    np.float64(3.0)
    """
    kept = np.where(mask, values, np.zeros((), values.dtype))
    count = np.sum(np.broadcast_to(mask, values.shape), axis=axis, dtype=values.dtype)
    return np.sum(kept, axis=axis) / np.maximum(count, 1)
