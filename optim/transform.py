"""What an optimiser is: a function that makes its state, and one that makes updates of gradients.

    init(params) -> state
    update(gradients, state, params) -> updates, state

Updates are what is added to the parameters. Transformations are chained: what one makes of the
gradients is what the next one is given. All are pure; `Optimizer` writes what they return into the
arrays that are there, so a rule is written once for both faces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

import jitney as jt

from .leaves import Numbers, applied, moved_all
from .trees import Tree, beside, check_each, check_some, is_trained, refuse

State = Any


class Transform(NamedTuple):
    """Two functions: `init(params)` gives the state, a tree of arrays, and `update(updates, state,
    params, **more)` gives `(updates, state)`; `more` is for those that ask for the loss (`value=`)."""

    init: Callable[[Tree], State]
    update: Callable[..., tuple[Tree, State]]


def chain(*transforms: Transform) -> Transform:
    """One transformation after the other; the state is the tuple of theirs.

    >>> opt = jt.optim.chain(jt.optim.clip_by_global_norm(1.0), jt.optim.sgd(0.1))
    >>> updates, state = opt.update([np.array([3.0, 4.0])], opt.init([np.zeros(2)]))
    >>> updates
    [array([-0.06, -0.08])]
    """
    check_transforms(transforms, "chain")

    def init(params: Tree) -> State:
        return tuple(transform.init(params) for transform in transforms)

    def update(updates: Tree, state: State, params: Tree = None, **more: Any) -> tuple[Tree, State]:
        states = []
        if not isinstance(state, tuple) or len(state) != len(transforms):
            ask_for_state(state)
        for transform, part in zip(transforms, state, strict=True):
            updates, part = transform.update(updates, part, params, **more)
            states.append(part)
        return updates, tuple(states)

    return Transform(init, update)


def identity() -> Transform:
    """Leaves the gradients as they are."""
    return Transform(
        lambda params: (), lambda updates, state, params=None, **more: (updates, state)
    )


def apply_updates(params: Tree, updates: Tree) -> Tree:
    """The parameters with the updates added, in the parameters' dtypes; where there is None they stay.

    >>> jt.optim.apply_updates({"b": np.zeros(1), "w": np.ones(2)}, {"b": None, "w": np.full(2, 0.5)})
    {'b': array([0.]), 'w': array([1.5, 1.5])}
    """
    leaves = jt.tree.leaves(params)
    deltas = beside(params, updates, "updates")
    check_some(deltas)
    check_each(params, deltas, leaves)
    return jt.tree.unflatten(jt.tree.structure(params), moved_all(leaves, deltas))


def by_leaf(
    rule: Callable[..., tuple[Any, ...]],
    slots: Mapping[str, Callable[[Any], Any]] | None = None,
    each_step: Callable[[Any], tuple[Any, ...]] | None = None,
    *,
    counted: bool = True,
    needs_params: str = "",
) -> Transform:
    """A transformation that treats each leaf by itself.

    `rule(g, p, *slots, *numbers)` gives the update of a leaf and the new content of its `slots`, which
    start as what their functions make of the parameter. `each_step(count)` gives the numbers, once for
    all leaves; `count` is 1 in the first step, or None where nothing is `counted`. A rule sees arrays of
    float32 where the leaves are smaller floats; slots have the dtype in which they start. Whoever
    `needs_params` gives its name, for the message that they are missing.
    """
    makers = tuple((slots or {}).items())  # a constant: see `Held`
    names = tuple(name for name, _ in makers)
    counted = counted and each_step is not None

    def init(params: Tree) -> State:
        state = {
            name: jt.tree.map(lambda p, make=make: make(p) if is_trained(p) else None, params)
            for name, make in makers
        }
        return {"count": np.int64(0), **state} if counted else state

    def update(updates: Tree, state: State, params: Tree = None, **more: Any) -> tuple[Tree, State]:
        if needs_params and params is None:
            ask_for_params(needs_params)
        if not isinstance(state, dict) or not state.keys() >= {*names}:
            ask_for_state(state)
        like = params
        if like is None:
            like = state[names[0]] if names else updates
        leaves = beside(like, updates, "gradients")
        given = jt.tree.leaves(params) if params is not None else [None] * len(leaves)
        check_each(like, leaves, given)
        columns = [beside(like, state[name], "state") for name in names]
        count = state["count"] + 1 if counted else None
        values = each_step(count) if each_step is not None else ()
        numbers = Numbers(tuple([x.of(more) if isinstance(x, Held) else x for x in values]))
        results = applied(rule, [leaves, given, *columns], numbers)
        structure = jt.tree.structure(like)
        new, *after = [jt.tree.unflatten(structure, column) for column in results]
        result = dict(zip(names, after, strict=True))
        return new, {"count": count, **result} if counted else result

    return Transform(init, update)


class Held(NamedTuple):
    """A number that the optimiser holds, in `rates[place]`, times `sign`. Transformations are made of
    constants, so that compiled functions know one again that is made anew: they hold no arrays."""

    place: int
    sign: int = 1

    def of(self, more: Mapping[str, Any]) -> Any:
        """Its value; `more` is what `update` was given."""
        return self.sign * more["rates"][self.place]


def check_transforms(transforms: Sequence[Any], name: str) -> None:
    """They are transformations, and no optimisers by name, classes or lists."""
    for transform in transforms:
        if not isinstance(transform, Transform):
            refuse(
                f"{name} takes transformations, and was given {jt.errors.describe(transform)}",
                "give what the functions of jt.optim return, optim.adam(1e-3) for instance; "
                "chain(*transforms) takes them one by one.",
                jt.errors.ArgumentError,
            )


def ask_for_state(state: Any) -> NoReturn:
    """Refuses a state of another transformation."""
    refuse(
        "the state is none that this optimiser made",
        "begin with state = opt.init(params); then updates, state = opt.update(grads, state, params).",
        jt.errors.ArgumentError,
        state=state,
    )


def ask_for_params(name: str) -> None:
    """Refuses to go on without them."""
    refuse(
        f"{name} needs the parameters, and update was called without",
        "write opt.update(grads, state, params).",
        jt.errors.ArgumentError,
    )
