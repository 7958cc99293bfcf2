"""What a function returns twice, unchanged, or without need of its argument, under each transformation.

The reference is the same transformation of the same function whose every result is a value of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gradients import interpreted
from samples import chosen

import jitney as jt
from jitney.tracer.data import pytree

Function = Callable[[Any], Any]

X = np.array([0.3, -1.2, 2.0])
T = np.array([1.0, 0.5, -2.0])
C = np.array([1.0, 2.0, 3.0])


def twice(x: Any) -> Any:
    y = np.sin(x)
    return {"a": y, "b": [y, (y, x, y)], "c": x}


FUNCTIONS: dict[str, Function] = {
    "an argument": lambda x: x,
    "an argument twice": lambda x: (x, x),
    "a value many times": twice,
    "a scalar twice": lambda x: (np.sum(x),) * 2,
    "an element twice": lambda x: (x[0], x[0], x),
    "views": lambda x: (x[::-1], x[1:], x[:], x, x),
    "nothing of it": lambda x: np.ones(3),
    "constants beside it": lambda x: (x, C, C, np.ones(3), 3.0),
    "integers twice": lambda x: (np.argmax(x), np.argmax(x), x.sum()),
    "no elements": lambda x: (x[:0], x[:0]),
    "nothing": lambda x: (),
    "None": lambda x: (None, x, x),
    "a constant of derivatives": lambda x: (jt.stop_gradient(x), x),
}


def untied(f: Function) -> Function:
    """`f` with no result that is an argument, or another result."""
    return lambda x: pytree.tree_map(lambda leaf: leaf + 0, f(x + 0))


def ones_up(out: Any) -> Any:
    """A cotangent of `out`: 1 for the first leaf, 2 for the second, ...; None for integers."""
    leaves, tree = pytree.flatten(out)
    found = [
        np.full(np.shape(leaf), k + 1.0)[()] if np.result_type(leaf).kind == "f" else None
        for k, leaf in enumerate(leaves)
    ]
    return pytree.unflatten(tree, found)


def total(f: Function) -> Function:
    def loss(x: Any) -> Any:
        leaves = pytree.flatten(f(x))[0]
        return sum((np.sum(leaf) * float(k) for k, leaf in enumerate(leaves, 1)), np.sum(x * x))

    return loss


def pulled(f: Function) -> Function:
    def run(x: Any) -> Any:
        out, vjp_fn = jt.vjp(f, x)
        return out, vjp_fn(ones_up(f(X))), vjp_fn(ones_up(f(X)))

    return run


def pushed(f: Function) -> Function:
    return lambda x: jt.jvp(f, (x,), (T,))


def linearized(f: Function) -> Function:
    def run(x: Any) -> Any:
        out, f_lin = jt.linearize(f, x)
        return out, f_lin(T), f_lin(2 * T)

    return run


def with_jvp(f: Function) -> Function:
    custom = jt.custom_jvp(f)
    custom.defjvp(lambda primals, tangents: jt.jvp(f, primals, tangents))
    return custom


def with_vjp(f: Function) -> Function:
    custom = jt.custom_vjp(f)
    custom.defvjp(lambda x: (f(x), x), lambda x, ct: jt.vjp(f, x)[1](ct))
    return custom


TRANSFORMATIONS: dict[str, Callable[[Function], Function]] = {
    "jvp": pushed,
    "vjp": pulled,
    "linearize": linearized,
    "linear_transpose": lambda f: lambda x: jt.linear_transpose(f, x)(ones_up(f(X))),
    "jacfwd": jt.jacfwd,
    "jacrev": jt.jacrev,
    "hessian": lambda f: jt.jacfwd(jt.jacrev(f)),
    "jacrev of jacfwd": lambda f: jt.jacrev(jt.jacfwd(f)),
    "jvp of jvp": lambda f: pushed(pushed(f)),
    "jvp of linearize": lambda f: pushed(linearized(f)),
    "grad": lambda f: jt.grad(total(f)),
    "value_and_grad": lambda f: jt.value_and_grad(lambda x: (x.sum(), f(x)), has_aux=True),
    "checkpoint": lambda f: jt.grad(total(jt.checkpoint(f))),
    "vjp of checkpoint": lambda f: pulled(jt.checkpoint(f)),
    "vjp of jit": lambda f: pulled(jt.jit(f)),
    "vmap": lambda f: lambda x: jt.vmap(f)(np.stack([x, 2 * x])),
    "vmap of jvp": lambda f: lambda x: jt.vmap(pushed(f))(np.stack([x, 2 * x])),
    "jacrev of vmap": lambda f: lambda x: jt.jacrev(jt.vmap(f))(np.stack([x, 2 * x])),
    "jvp of custom_jvp": lambda f: pushed(with_jvp(f)),
    "jacrev of custom_jvp": lambda f: jt.jacrev(with_jvp(f)),
    "vjp of custom_vjp": lambda f: pulled(with_vjp(f)),
    "cond": lambda f: lambda x: pushed(lambda x: jt.cond(x[0] > 0, f, f, x))(x),
    "map_fn": lambda f: lambda x: pushed(lambda x: jt.map_fn(f, np.stack([x, 2 * x])))(x),
    "scan": lambda f: pulled(lambda x: jt.scan(lambda c, y: (c, f(x)), (x, x), C)[0]),
}


def outcome(f: Function) -> tuple[str, Any]:
    try:
        return "", f(X.copy())
    except TypeError as error:  # integers and bools have no derivative
        return type(error).__name__, None


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_results_that_share_a_value(name: str, all_cases: bool) -> None:
    """Outside of jit; a quarter, or all, inside, too."""
    transform = TRANSFORMATIONS[name]
    for what, f in FUNCTIONS.items():
        error, want = outcome(transform(untied(f)))
        inside = all_cases or chosen(f"{name} {what}")
        for wrap in (lambda g: g, interpreted) if inside else (lambda g: g,):
            found_error, found = outcome(wrap(transform(f)))
            assert found_error == error, what
            leaves, tree = pytree.flatten(found)
            expected, structure = pytree.flatten(want)
            assert tree == structure, what
            for a, b in zip(leaves, expected, strict=True):
                assert np.result_type(a) == np.result_type(b), what
                np.testing.assert_allclose(a, b, rtol=1e-12, err_msg=what, strict=True)


def test_results_that_share_a_value_natively() -> None:
    for name in ("vjp", "jvp", "linearize", "jacrev", "hessian"):
        for found, want in zip(
            pytree.flatten(jt.jit(TRANSFORMATIONS[name](twice))(X))[0],
            pytree.flatten(TRANSFORMATIONS[name](untied(twice))(X))[0],
            strict=True,
        ):
            np.testing.assert_allclose(found, want, rtol=1e-12, err_msg=name)
    jt.check_grads(twice, (X,), order=2)
