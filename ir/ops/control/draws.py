"""draw: numbers from a generator of NumPy's or of Python's, drawn in the generator's own state.

    %x, %t2 = draw %rng, %low, %high, %t1 law="integers" source="Generator:PCG64" ...

`%rng` says where the generator is: the address of the Python object, and that of its state (for native
code). The object outlives the call. A *law* names what is drawn; the reference asks the generator for
it, so that NumPy's numbers are the definition. `source` are the classes of the generator and, after a
colon, of its bit generator if native code knows the state.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from ...batching.structured import refuse_draws
from ...graph import Op
from ...opdef import GraphError, OpDef, register
from ...types import TOKEN, TensorType, TokenType, Type
from ..families import Array

HANDLE = TensorType((2,), np.dtype(np.uint64))

Options = tuple[tuple[str, Any], ...]


def object_at(handle: Array) -> Any:
    """The generator that a handle leads to."""
    return ctypes.cast(int(handle[0]), ctypes.py_object).value


def _number(x: Array) -> Any:
    """A parameter as the user gave it: a Python number, or an array."""
    return x.item() if x.ndim == 0 else x


def _size(shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """One number is drawn without a size: NumPy's ways for arrays of one differ in places."""
    return shape or None


def _method(name: str, core: int = 0) -> Callable[..., Any]:
    """The method of that name; `core` dims of the result are those of one draw."""

    def draw(g: Any, shape: Any, dtype: Any, options: Options, *params: Array) -> Any:
        size = _size(shape[: len(shape) - core])
        return getattr(g, name)(*map(_number, params), size=size, **dict(options))

    return draw


def _floats(name: str) -> Callable[..., Any]:
    """A method that takes a dtype, of generators that have dtypes."""

    def draw(g: Any, shape: Any, dtype: Any, options: Options, *params: Array) -> Any:
        given = {"dtype": dtype} if isinstance(g, np.random.Generator) else {}
        return getattr(g, name)(*map(_number, params), size=_size(shape), **given, **dict(options))

    return draw


def _random(g: Any, shape: Any, dtype: Any, options: Options) -> Any:
    if isinstance(g, np.random.Generator):
        return g.random(_size(shape), dtype=dtype)
    if isinstance(g, np.random.RandomState):
        return g.random_sample(_size(shape))
    return g.random()


def _integers(g: Any, shape: Any, dtype: Any, options: Options, low: Array, high: Array) -> Any:
    """From `low` to `high`, which may come."""
    if isinstance(g, np.random.Generator):
        return g.integers(_number(low), _number(high), _size(shape), dtype, endpoint=True)
    above = high.item() + 1 if high.ndim == 0 else high.astype(object) + 1
    return g.randint(_number(low), above, _size(shape), dtype)


def _permutation(g: Any, shape: Any, dtype: Any, options: Options) -> Any:
    """The numbers from 0 in the order into which `shuffle` brings them."""
    numbers = list(range(shape[0]))
    if isinstance(g, (np.random.Generator, np.random.RandomState)):
        return g.permutation(shape[0])
    g.shuffle(numbers)
    return numbers


def _below(g: Any, shape: Any, dtype: Any, options: Options, n: Array) -> Any:
    return g._randbelow(int(n))


def _bits(g: Any, shape: Any, dtype: Any, options: Options, k: Array) -> Any:
    return g.getrandbits(int(k))


def _plain(name: str) -> Callable[..., Any]:
    """A method of Python's generators, which draws one number."""

    def draw(g: Any, shape: Any, dtype: Any, options: Options, *params: Array) -> Any:
        return getattr(g, name)(*map(_number, params))

    return draw


def _sample(g: Any, shape: Any, dtype: Any, options: Options, n: Array) -> Any:
    """Places among `n`."""
    return g.sample(range(int(n)), shape[0])


def _choice(g: Any, shape: Any, dtype: Any, options: Options, n: Array, *p: Array) -> Any:
    """Places among `n`, none twice."""
    weights = {"p": p[0]} if p else {}
    return g.choice(int(n), _size(shape), replace=False, **weights, **dict(options))


def _permuted(g: Any, shape: Any, dtype: Any, options: Options) -> Any:
    """Places along the last axis, each row by itself."""
    return g.permuted(np.broadcast_to(np.arange(shape[-1]), shape), axis=-1)


def _seed(g: Any, shape: Any, dtype: Any, options: Options, *seed: Array) -> Any:
    """Begin the stream of a seed, or of what the operating system gives. Gives nothing of interest."""
    words = [_number(s) for s in seed]
    if isinstance(g, np.random.Generator):
        g.bit_generator.state = np.random.default_rng(*words).bit_generator.state
    else:
        g.seed(*words)
    return 0


_SCALED = (
    *("standard_gamma", "gamma", "beta", "chisquare", "f", "noncentral_chisquare", "noncentral_f"),
    *("standard_cauchy", "standard_t", "vonmises", "pareto", "weibull", "power", "laplace"),
    *("gumbel", "logistic", "lognormal", "rayleigh", "wald", "triangular", "normal", "exponential"),
    *("poisson", "binomial", "negative_binomial", "geometric", "zipf", "logseries"),
    *("hypergeometric", "tomaxint"),
)
_VECTORS = ("multivariate_normal", "dirichlet", "multinomial", "multivariate_hypergeometric")
_PYTHONS = (
    *("gauss", "normalvariate", "expovariate", "betavariate", "gammavariate", "lognormvariate"),
    *("paretovariate", "triangular", "vonmisesvariate", "weibullvariate"),
)

LAWS: dict[str, Callable[..., Any]] = {
    "random": _random,
    "integers": _integers,
    "permutation": _permutation,
    "permuted": _permuted,
    "choice": _choice,
    "seed": _seed,
    "standard_normal": _floats("standard_normal"),
    "standard_exponential": _floats("standard_exponential"),
    "standard_gamma": _floats("standard_gamma"),
    **{name: _method(name) for name in _SCALED if name != "standard_gamma"},
    **{name: _method(name, core=1) for name in _VECTORS},
    "below": _below,
    "bits": _bits,
    "sample": _sample,
    **{f"python.{name}": _plain(name) for name in _PYTHONS},
}
"""What can be drawn: how a generator is asked, (generator, shape, dtype, options, parameters)."""


def _infer(
    handle: Type,
    *rest: Type,
    law: str,
    source: str,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    options: Options = (),
) -> tuple[TensorType, TokenType]:
    if handle != HANDLE:
        raise GraphError(f"a generator is {HANDLE}, not {handle}")
    if not rest or rest[-1] != TOKEN:
        raise GraphError("the last operand must be a token")
    if not all(isinstance(t, TensorType) for t in rest[:-1]):
        raise GraphError("parameters are tensors")
    if law not in LAWS:
        raise GraphError(f"no law {law!r}; there are {', '.join(LAWS)}")
    return TensorType(tuple(shape), dtype), TOKEN


def _draw(
    handle: Array,
    *rest: Any,
    law: str,
    source: str,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    options: Options = (),
) -> Any:
    drawn = LAWS[law](object_at(handle), shape, dtype, options, *rest[:-1])
    return np.asarray(drawn, dtype).reshape(shape), None


def _constant(b: Any, op: Op, tangents: Sequence[Any]) -> list[None]:
    return [None, None]


def _no_cotangents(b: Any, op: Op, cotangents: Any, wanted: Any) -> list[None]:
    return [None] * len(op.operands)


def _batch(b: Any, op: Op, operands: Any, batched: Any) -> NoReturn:
    refuse_draws(op)


DRAW = register(
    OpDef(
        "draw",
        "effect",
        _infer,
        _draw,
        _constant,
        _no_cotangents,
        total=False,
        batch=_batch,
        attrs=("law", "source", "shape", "dtype", "options"),
        effect=True,
        doc="numbers from a generator of NumPy's or Python's, which goes on in its own state; "
        "derivatives take them for constants",
    )
)
