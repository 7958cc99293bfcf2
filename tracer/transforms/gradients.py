"""`grad` and `value_and_grad`: what they give is made here, and computed by `derivatives`.

A process with its programs on disk makes such functions, and never runs them: so nothing is loaded here
that differentiates or traces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from ..data.callables import check_callable
from ..messages.tracebacks import shortened
from .wrapping import named, normal_positions

P = ParamSpec("P")
R = TypeVar("R")


@shortened
def grad(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, Any]:
    """The gradient of a scalar function.

    `grad(f)(*args, **kwargs)` has the structure of the argument `argnums` (a tuple of such for a
    tuple of positions), with an array like it in place of each float leaf. With `has_aux` the
    function returns `(value, aux)` and the gradient `(gradient, aux)`.

    Of a real function of z = x + iy it is df/dx - i df/dy, as in JAX: 2 conj(z) of |z|**2. With
    `holomorphic` the function maps complex numbers to complex numbers, and the gradient is its
    complex derivative.

    >>> grad(lambda x: x**3)(2.0)
    12.0
    """
    both = value_and_grad(fun, argnums, has_aux, holomorphic)

    @named("grad", fun)
    def grad_fun(*args: P.args, **kwargs: P.kwargs) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return grad_fun


@shortened
def value_and_grad(
    fun: Callable[P, R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, tuple[R, Any]]:
    """Like `grad`, but the function returned gives `(value, gradient)`, computed together.

    With `has_aux` it gives `((value, aux), gradient)`.

    >>> jt.value_and_grad(lambda x: x**3)(2.0)
    (8.0, 12.0)
    """
    check_callable(fun, "grad")
    positions = normal_positions(argnums)

    @named("value_and_grad", fun)
    def value_and_grad_fun(*args: Any, **kwargs: Any) -> Any:
        # What differentiates is loaded when it first runs: that takes longer than a cached first call.
        from .derivatives import gradient_of_call

        value, gradients = gradient_of_call(fun, positions, has_aux, holomorphic, args, kwargs)
        return value, gradients[0] if isinstance(argnums, int) else gradients

    return value_and_grad_fun
