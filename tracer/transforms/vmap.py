"""`vmap`: a function of one example becomes a function of many, computed by `vmap_calls`.

A process with its programs on disk makes such functions, and never runs them: so nothing is loaded here
that batches or traces.
"""

from __future__ import annotations

from typing import Any

from ..data import pytree
from ..data.callables import Function, check_callable
from ..messages import errors
from ..messages.errors import complain, describe
from ..messages.tracebacks import shortened
from .wrapping import named


@shortened
def vmap(
    fun: Function,
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_size: int | None = None,
    axis_name: str | None = None,
) -> Function:
    """`fun` over an axis of its arguments, for all examples at once.

        pairwise = jt.vmap(jt.vmap(distance, (None, 0)), (0, None))

    in_axes    which axis of each positional argument counts the examples: an int for all of them,
               or a tuple with one entry per argument. An entry is an int, None (the same for all
               examples), or a tree of them like the argument, or like the upper part of it.
               Keyword arguments are taken along axis 0.
    out_axes   where the axis goes in the result, in the same way; None for a result that is the
               same for all examples.
    axis_size  the number of examples; only needed where no argument tells.
    axis_name  a name by which `jt.psum`, `jt.all_gather`, ... in the function reach all examples.

    Arguments with the axis None that are no arrays reach the function as they are. TransformError for a
    name that is no text.

    >>> jt.vmap(np.dot)(np.ones((4, 3)), np.ones((4, 3)))
    array([3., 3., 3., 3.])
    """
    check_callable(fun, "vmap")
    if axis_name is not None and not (isinstance(axis_name, str) and axis_name):
        complain(
            errors.TransformError,
            f"axis_name={axis_name!r}",
            'a name is a text, as in axis_name="batch".',
        )
    in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    _check_axes(in_axes, "in_axes")
    _check_axes(out_axes, "out_axes")

    @named("vmap", fun)
    def vmap_fun(*args: Any, **kwargs: Any) -> Any:
        # What batches is loaded when it first runs: that takes longer than a cached first call.
        from .vmap_calls import Axes, batched_call

        told = Axes(in_axes, out_axes, axis_size, axis_name)
        return batched_call(fun, told, args, kwargs)

    return vmap_fun


def _check_axes(axes: Any, what: str) -> None:
    """TransformError unless the tree's entries are ints."""
    for entry in pytree.flatten(axes)[0]:
        if type(entry) is not int:
            complain(
                errors.TransformError,
                f"an entry of {what} is an axis, an int, or None; not {describe(entry)}",
                f"write {what}=0, or one entry per argument: {what}=(0, None).",
            )
