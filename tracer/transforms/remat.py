"""`checkpoint`: values that the backward pass computes again instead of keeping them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar, overload

from ...ir.autodiff.remat import Policy
from ...ir.ops.control.custom import REMAT
from ...ir.types import TensorType, is_inexact
from ..control.regions import trace_region
from ..core.effects import advance, order_token
from ..core.specs import Static, is_array, spec_of
from ..core.threaded_state import BorrowedStates, settle
from ..core.trace import current_trace, require_trace
from ..core.tracers import Tracer, as_value, emit, wrap
from ..data import pytree
from ..data.callables import Function, check_callable, function_name
from ..data.opened import tree_map
from ..messages import errors
from ..messages.errors import complain
from ..messages.source import user_line
from ..messages.tracebacks import shortened
from .custom_call import pending_derivatives

P = ParamSpec("P")
R = TypeVar("R")


@overload
def checkpoint(
    fun: Callable[P, R], *, policy: str | Sequence[str] | None = None
) -> Callable[P, R]: ...
@overload
def checkpoint(
    fun: None = None, *, policy: str | Sequence[str] | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


@shortened
def checkpoint(
    fun: Callable[P, R] | None = None, *, policy: str | Sequence[str] | None = None
) -> Any:
    """`fun`, whose inner values are computed again in the backward pass, not kept from the forward.

    Results and derivatives are those of `fun`; memory is traded for time. Applied to each layer of a
    deep chain, the backward pass keeps one array per layer and one layer's inner values.

    `policy` tells what is kept nevertheless:

    - None or "nothing": the arguments alone;
    - "dots": the results of matrix products (what they are made of and what follows is cheap);
    - names: what `jt.checkpoint_name` gave one of these names, as in `policy=["attention"]`;
    - "everything": all values, as without checkpoint.

    It speaks of compiled code: outside of jit `fun` is just called. Callbacks and checks inside
    happen once, in the forward pass. Works as a decorator, with and without a policy.

    >>> jt.grad(jt.checkpoint(lambda x: np.sin(np.sin(x))))(0.0)
    1.0
    """
    if fun is None:
        return functools.partial(checkpoint, policy=policy)
    check_callable(fun, "checkpoint")
    chosen = _policy(policy)

    @shortened
    @functools.wraps(fun)
    def checkpointed(*args: P.args, **kwargs: P.kwargs) -> Any:
        trace = current_trace()
        if trace is None or trace.eager or chosen == "everything" or not pending_derivatives():
            return fun(*args, **kwargs)
        return _region(fun, chosen, args, kwargs)

    return checkpointed


def checkpoint_name(x: Any, name: str) -> Any:
    """`x`, a tree of arrays, by a name that the policies of `jt.checkpoint` know.

    >>> jt.checkpoint_name(2.0, "attention")
    2.0
    """
    if not isinstance(name, str):
        raise TypeError(f"the name is a string, not {name!r}")
    return tree_map(
        lambda leaf: (
            emit("checkpoint_name", as_value(leaf), weak=leaf.weak, label=name)
            if isinstance(leaf, Tracer) and is_inexact(leaf.dtype)
            else leaf
        ),
        x,
    )


def _policy(policy: str | Sequence[str] | None) -> Policy:
    if policy is None:
        return "nothing"
    if isinstance(policy, str):
        if policy not in ("nothing", "dots", "everything"):
            raise ValueError(
                f"policy={policy!r}: choose 'nothing', 'dots', 'everything' or a list of names"
            )
        return policy
    if not all(isinstance(name, str) for name in policy):
        raise TypeError(f"policy={policy!r} is no list of names")
    return tuple(policy)


def _region(fun: Function, policy: Policy, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    leaves, tree = pytree.flatten((args, kwargs))
    specs = [spec_of(leaf) if is_array(leaf) else Static(leaf) for leaf in leaves]
    inputs = [as_value(leaf) for leaf in leaves if is_array(leaf)]
    name = function_name(fun)
    region = trace_region(
        fun, specs, tree, f"checkpoint({name})", conditional=False, borrowed=BorrowedStates()
    )
    if region.mutated:
        complain(
            errors.OuterMutationError,
            f"{name}, under checkpoint, assigns to its argument, and would do it twice",
            "assign to a copy, and return it.",
        )
    captured = list(dict.fromkeys(region.captured))
    token = [] if region.token is None else [order_token()]
    advanced = region.traced.advanced
    states = [value for _, value in advanced]
    types: list[TensorType | None] = [out.type for out in region.outs]
    nothing = [None for _ in (*states, *token)]
    body = region.close(
        captured,
        [*region.values, *states, *(None for _ in token)],
        [*types, *nothing],
        token_at=len(inputs) if token else None,
    )
    builder = require_trace().builder
    with builder.at(user_line(2)):
        op = builder.append(REMAT, [*inputs, *token, *captured], {"policy": policy}, [body])
    advance(op.results)
    settle([storage for storage, _ in advanced], op.results[len(types) :][: len(states)])
    outs = zip(op.results, region.outs, strict=False)
    return pytree.unflatten(region.tree, [wrap(v, o.weak, scalar=o.scalar) for v, o in outs])
