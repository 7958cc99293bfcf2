"""What a loop carries: its structure, its leaves, and the types on which they settle.

A carry keeps structure, shapes and dtypes from iteration to iteration. A Python number in `init`
takes the type that the body makes of it: the body is traced until its types are a fixed point. A
Python bool is a NumPy bool from the start.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from ...ir.graph import Value
from ..core.specs import Spec, is_array
from ..core.trace import current_trace
from ..core.tracers import Tracer, as_value, weak_kind, wrap
from ..data import pytree
from ..data.accept import refuse
from ..messages import errors
from ..messages.errors import complain
from .regions import Out, TracedRegion, common_type, fits, show_tree
from .tensor_array import adopt_elements


def _instead(leaf: Any) -> str | None:
    """What to write instead of a random generator."""
    if "_jitney_state" not in vars(type(leaf)):
        return None
    return "leave it out: the body may draw from a generator that it finds by its name"


class LoopCarry:
    """The carry of a loop while its body is being traced. `what` names the loop in messages, and
    `variable` the carry: as the body calls it.

    A `counted` carry is `(i, carry)` of a fori_loop, and messages speak of its second part.
    """

    def __init__(
        self,
        init: Any,
        what: str,
        body_name: str,
        *,
        counted: bool = False,
        variable: str = "carry",
    ) -> None:
        self.what, self.body_name, self.counted = what, body_name, counted
        self.variable = variable
        self._take(init)

    def _take(self, init: Any) -> None:
        self.init = init
        self.leaves, self.tree = pytree.flatten(init)
        for leaf in self.leaves:
            if not isinstance(leaf, (Tracer, np.ndarray, np.generic, bool, int, float, complex)):
                what = f"a {type(leaf).__name__} in the carry of {self.what}"
                refuse(leaf, what, _instead(leaf))
        self.initial = [
            Out(as_value(leaf).tensor, _weak(leaf), _is_scalar(leaf)) for leaf in self.leaves
        ]
        self.outs = self.initial

    @property
    def specs(self) -> list[Spec]:
        return [Spec(out.type, out.weak, out.scalar) for out in self.outs]

    def settle(
        self, trace_body: Callable[[], TracedRegion], part: Callable[[TracedRegion], pytree.TreeDef]
    ) -> TracedRegion:
        """Trace the body until what it gives for the carry, the `part` of its result that comes
        first, has the types that it took. Returns that last tracing."""
        while True:
            body = trace_body()
            tree = part(body)
            if tree != self.tree:
                adopted = adopt_elements(self.init, tree)
                if adopted is None:
                    self._refuse_structure(tree)
                self._take(adopted)  # the body says what the elements of a TensorArray look like
                continue
            new = [
                settled(before, after) or self._refuse_type(i, after, body)
                for i, (before, after) in enumerate(zip(self.outs, body.outs, strict=False))
            ]
            before, self.outs = self.outs, new
            if [(o.type, o.weak) for o in new] == [(o.type, o.weak) for o in before]:
                return body  # types only grow stronger: Python int, Python float, array

    def start(self) -> list[Value]:
        """The initial values, with the types on which the carry settled."""
        return [
            as_value(leaf, out.type.dtype) for leaf, out in zip(self.leaves, self.outs, strict=True)
        ]

    def unflatten(self, results: Sequence[Value]) -> Any:
        """The carry again, of the first results of the loop."""
        leaves = [
            wrap(v, o.weak, scalar=o.scalar) for v, o in zip(results, self.outs, strict=False)
        ]
        return pytree.unflatten(self.tree, leaves)

    def _refuse_structure(self, after: pytree.TreeDef) -> NoReturn:
        before = self.tree
        if self.counted:
            before, after = before.child(1), after.child(1)
        returned = show_tree(after)
        complain(
            errors.CarryError,
            f"the carry of {self.what} changes its structure:\n"
            f"  it goes in as   {show_tree(before)}\n"
            f"  {self.body_name} returns {returned}",
            f"return the whole carry from {self.body_name}: has it no `return`?"
            if returned == "None"
            else "return the carry in the containers that it came in.",
        )

    def _refuse_type(self, index: int, after: Out, body: TracedRegion) -> NoReturn:
        before = self.initial[index]
        if self.counted:
            name = ["i", *pytree.leaf_names(self.init[1], self.variable)][index]
        else:
            name = pytree.leaf_names(self.init, self.variable)[index]
        remedy = (
            f"convert one of the two: init with the dtype {after.type.dtype}, or what "
            f"{self.body_name} returns with .astype({str(before.type.dtype)!r})."
        )
        if before.type.shape == () != after.type.shape:
            remedy = (
                "start with an array of the shape that it gets: "
                f"np.zeros({after.type.shape}, {str(after.type.dtype)!r})."
            )
        elif before.type.shape != after.type.shape:
            remedy = (
                f"a carry cannot grow or shrink. To collect results make {name} a "
                "jt.TensorArray(dtype, size) and return "
                f"{name}.write(i, value), or write into an array of the final size: "
                "buffer[i] = value."
            )
        complain(
            errors.CarryError,
            f"the carry of {self.what} changes its type at {name}:\n"
            f"  it goes in as   {before}\n"
            f"  {self.body_name} returns {after}{body.made_at(index)}",
            remedy,
        )


def parameter_name(function: Callable[..., Any], position: int) -> str:
    """What `function` calls its argument at `position`; "carry" if that cannot be known."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None or position >= code.co_argcount:
        return "carry"
    name: str = code.co_varnames[position]
    return name


def arranger(init: Any) -> Callable[[Any], Any]:
    """A function that gives later carries what compiled loops give them: the order that dicts have in
    `init`, and bools that are NumPy's."""
    definition = pytree.flatten(init)[1]
    ordered = pytree.has_dicts(init)

    def arranged(carry: Any) -> Any:
        leaves, structure = pytree.flatten(carry)
        entered = [_entered(leaf) for leaf in leaves]
        reordered = ordered and structure == definition
        same = all(new is leaf for new, leaf in zip(entered, leaves, strict=True))
        if same and not reordered:
            return carry
        return pytree.unflatten(definition if reordered else structure, entered)

    return arranged


def own(tree: Any) -> Any:
    """A tree of arrays that a loop may write to, for loops that run in Python."""

    def copy(leaf: Any) -> Any:
        if current_trace() is not None and is_array(leaf):
            return wrap(as_value(leaf), _weak(leaf), scalar=getattr(leaf, "scalar", False))
        return leaf.copy() if isinstance(leaf, np.ndarray) else _entered(leaf)

    return pytree.tree_map(copy, tree)


def _entered(leaf: Any) -> Any:
    """A leaf as it enters a loop: a bool as NumPy's, of which `~` is the other bool."""
    if isinstance(leaf, bool):
        return np.bool_(leaf)
    if isinstance(leaf, Tracer) and leaf.weak == "b":
        return wrap(as_value(leaf), scalar=leaf.scalar)
    return leaf


def _weak(leaf: Any) -> str | None:
    """How a leaf of a carry promotes. No other type holds a bool, so it is no Python number."""
    weak = weak_kind(leaf)
    return None if weak == "b" else weak


def settled(before: Out, after: Out) -> Out | None:
    """The type of what goes into a loop as `before` and comes out as `after`; None if none.

    An array keeps its type. A Python number takes the type that the body makes of it.
    """
    if before.weak is not None:
        return common_type([before, after])
    if before.type == after.type and after.weak is None:
        return common_type([before, after])
    if before.type.shape == after.type.shape and after.weak and fits(after.weak, before.type.dtype):
        return Out(before.type, None, True)
    return None


def _is_scalar(leaf: Any) -> bool:
    return leaf.scalar if isinstance(leaf, Tracer) else not hasattr(leaf, "setflags")
