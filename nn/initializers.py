"""`nn.initializers`: what parameters begin as.

An initialiser is a function `(shape, dtype, rng) -> array`, made by one of the functions here, which
take its settings; a layer also takes a number (all elements are that), an array of the parameter's
shape, or a function of one's own. They run once, when the layer is made, as plain NumPy.

The fan-in of a weight is how many numbers each result is a sum of, the fan-out how many results each
number goes into. Weights have the shape `(*kernel, in, out)`, so these are the products of all dims but
the last, and of all but the last but one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import jitney as jt

Array = np.ndarray[Any, Any]
Shape = Sequence[int]
Init = Callable[[Shape, Any, np.random.Generator], Any]

_shared = [np.random.default_rng(0)]
# The standard deviation of a normal distribution that is cut off at two of them.
_TRUNCATED = 0.87962566103423978


class Grouped(tuple[int, ...]):
    """The shape of a convolution's weights, and its groups, which matter for the fan-out."""

    groups = 1


def seed(number: int) -> None:
    """Begin the generator anew that layers draw from which are given none (`rng=`).

    >>> jt.nn.seed(0)
    >>> int(jt.nn.initializers.generator().integers(10))
    8
    """
    _shared[0] = np.random.default_rng(number)


def generator(rng: Any = None) -> np.random.Generator:
    """What `rng=` stands for: a generator, NumPy's or `jt.random`'s, the seed of a new one, or None for
    the one of `nn.seed`."""
    if rng is None:
        return _shared[0]
    return rng if hasattr(rng, "random") else np.random.default_rng(rng)


def made(init: Any, shape: Shape, dtype: Any = np.float32, rng: Any = None) -> Array:
    """An array of a shape as `init` says: an initialiser, a number, or an array of that shape.

    Raises jt.errors.ShapeError if the array, or the function's result, has another shape.

    >>> jt.nn.initializers.made(0.5, (2,))
    array([0.5, 0.5], dtype=float32)
    """
    shape = shape if isinstance(shape, Grouped) else tuple(shape)
    if isinstance(init, str) or getattr(init, "__name__", "") in _UNCALLED:
        name = init if isinstance(init, str) else init.__name__
        jt.errors.complain(
            TypeError,
            f"a parameter cannot begin as {init!r}",
            f"give nn.initializers.{name if name in _UNCALLED else 'he_normal'}(), what it returns; a "
            "number; or an array.",
        )
    start = init(shape, dtype, generator(rng)) if callable(init) else getattr(init, "value", init)
    array = np.array(start, dtype)
    if array.ndim == 0:
        return np.full(shape, array, dtype)
    if array.shape != shape:
        jt.errors.complain(
            jt.errors.ShapeError,
            f"a parameter of shape {shape} cannot begin as an array of shape {array.shape}",
            "give an array of the parameter's shape, a number, or one of nn.initializers.",
            operands={"value": array},
        )
    return array


def starting(dtype: Any, rng: Any, **starts: Any) -> Callable[..., None]:
    """A function that makes a layer's parameters, once their shapes are known: `start(layer, w=shape)`.

    `starts` are what each parameter begins as, None for one that the layer does without.
    """
    kept = {
        name: constant(s) if not callable(s) else s for name, s in starts.items() if s is not None
    }
    source = generator(rng)
    if np.dtype(dtype).kind in "biu":
        jt.errors.complain(
            jt.errors.DTypeError,
            f"parameters of {np.dtype(dtype)} cannot be trained",
            "give a dtype of floats: np.float32, np.float64.",
        )

    def start(layer: Any, **shapes: Shape) -> None:
        for name, shape in shapes.items():
            if name in kept:
                setattr(layer, name, made(kept[name], shape, dtype, source))
        vars(layer).pop("start", None)
        layer.built = "by sizes"

    return start


def penalize(layer: Any, **penalties: Any) -> None:
    """Note what `nn.regularization` adds up of a layer's parameters: functions by name, or None."""
    given = {name: penalty for name, penalty in penalties.items() if penalty is not None}
    for name, penalty in given.items():
        if not callable(penalty):
            jt.errors.complain(
                TypeError,
                f"{name}_reg={penalty!r} is no function of a parameter",
                "give nn.L2(1e-4), nn.L1(1e-4), or a function of your own.",
            )
    if given:
        layer.regularizers = given


def zeros() -> Init:
    """All 0."""
    return constant(0)


def ones() -> Init:
    """All 1."""
    return constant(1)


def constant(value: Any) -> Init:
    """A number everywhere, or an array, another layer's parameter or a Variable: a copy of its value.

    >>> jt.nn.initializers.made(jt.nn.initializers.constant([1, 2]), (2,))
    array([1., 2.], dtype=float32)
    """
    return lambda shape, dtype, rng: made(value, shape, dtype)


def normal(stddev: float = 0.01, mean: float = 0.0) -> Init:
    """Drawn from a normal distribution."""
    return lambda shape, dtype, rng: (mean + stddev * rng.standard_normal(shape)).astype(dtype)


def truncated_normal(stddev: float = 0.01, mean: float = 0.0) -> Init:
    """Drawn from a normal distribution, again where they are further than `2 * stddev` from the mean."""

    def init(shape: Shape, dtype: Any, rng: np.random.Generator) -> Array:
        draws = rng.standard_normal(shape)
        while (beyond := np.abs(draws) > 2).any():
            draws[beyond] = rng.standard_normal(int(beyond.sum()))
        return (mean + stddev * draws).astype(dtype)

    return init


def uniform(low: float = -0.05, high: float = 0.05) -> Init:
    """Drawn evenly from `low` to `high`."""
    return lambda shape, dtype, rng: rng.uniform(low, high, shape).astype(dtype)


def variance_scaling(
    scale: float = 1.0, mode: str = "fan_in", distribution: str = "truncated_normal"
) -> Init:
    """Drawn with variance `scale / n`, where n is the "fan_in", "fan_out", or "fan_avg" of both.

    `distribution` is "truncated_normal", "normal" or "uniform". The next functions are this one.
    """
    _choose("mode", mode, "fan_in", "fan_out", "fan_avg")
    _choose("distribution", distribution, "truncated_normal", "normal", "uniform")

    def init(shape: Shape, dtype: Any, rng: np.random.Generator) -> Array:
        fan_in, fan_out = fans(shape)
        count = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[mode]
        deviation = math.sqrt(scale / max(count, 1))
        if distribution == "uniform":
            reach = math.sqrt(3) * deviation
            return uniform(-reach, reach)(shape, dtype, rng)
        if distribution == "normal":
            return normal(deviation)(shape, dtype, rng)
        return truncated_normal(deviation / _TRUNCATED)(shape, dtype, rng)

    return init


def fans(shape: Shape) -> tuple[int, int]:
    """The fan-in and fan-out of a weight of shape `(*kernel, in, out)`.

    >>> jt.nn.initializers.fans((3, 3, 16, 32))
    (144, 288)
    """
    if len(shape) < 2:
        return math.prod(shape), math.prod(shape)
    taps = math.prod(shape[:-2])
    return taps * shape[-2], taps * shape[-1] // getattr(shape, "groups", 1)


def glorot_uniform(scale: float = 1.0) -> Init:
    """Glorot's: variance `2 * scale / (fan_in + fan_out)`, drawn evenly. What layers begin with."""
    return variance_scaling(scale, "fan_avg", "uniform")


def glorot_normal(scale: float = 1.0) -> Init:
    """Glorot's: variance `2 * scale / (fan_in + fan_out)`, normal, truncated."""
    return variance_scaling(scale, "fan_avg")


def he_uniform(scale: float = 1.0) -> Init:
    """He's, for layers with ReLU: variance `2 * scale / fan_in`, drawn evenly."""
    return variance_scaling(2 * scale, "fan_in", "uniform")


def he_normal(scale: float = 1.0) -> Init:
    """He's, for layers with ReLU: variance `2 * scale / fan_in`, normal, truncated."""
    return variance_scaling(2 * scale)


def lecun_uniform(scale: float = 1.0) -> Init:
    """LeCun's: variance `scale / fan_in`, drawn evenly. PyTorch's layers have `scale=1/3`."""
    return variance_scaling(scale, "fan_in", "uniform")


def lecun_normal(scale: float = 1.0) -> Init:
    """LeCun's, for layers with SELU: variance `scale / fan_in`, normal, truncated."""
    return variance_scaling(scale)


def orthogonal(gain: float = 1.0) -> Init:
    """A matrix with orthogonal columns (or rows, where these are fewer), drawn evenly among them.

    Of more than two dims, all but the last are the rows.
    """

    def init(shape: Shape, dtype: Any, rng: np.random.Generator) -> Array:
        _check_matrix("orthogonal", shape)
        rows, columns = math.prod(shape[:-1]), shape[-1]
        drawn = rng.standard_normal((max(rows, columns), min(rows, columns)))
        q, r = np.linalg.qr(drawn)
        q *= np.sign(np.diagonal(r))
        return (gain * (q if rows >= columns else q.T)).reshape(shape).astype(dtype)

    return init


def identity(gain: float = 1.0) -> Init:
    """The identity between channels: a matrix, or a convolution's kernel with it in the middle."""

    def init(shape: Shape, dtype: Any, rng: np.random.Generator) -> Array:
        _check_matrix("identity", shape)
        start = np.zeros(shape, dtype)
        groups = getattr(shape, "groups", 1)
        eye = np.tile(np.eye(shape[-2], shape[-1] // groups), groups)
        start[tuple((n - 1) // 2 for n in shape[:-2])] = gain * eye
        return start

    return init


def _choose(name: str, given: str, *known: str) -> None:
    if given not in known:
        jt.errors.complain(
            ValueError,
            f"variance_scaling: {name}={given!r} is not known",
            f"choose one of {', '.join(known)}.",
        )


def _check_matrix(name: str, shape: Shape) -> None:
    if len(shape) < 2:
        jt.errors.complain(
            jt.errors.ShapeError,
            f"{name}: a parameter of shape {tuple(shape)} has fewer than two dims",
            "it is for weights; let biases begin as a number, or nn.initializers.normal().",
        )


# Functions that make initialisers, and are none themselves: they are mistaken for what they return.
_UNCALLED = frozenset(
    "zeros ones normal truncated_normal uniform variance_scaling glorot_uniform glorot_normal "
    "he_uniform he_normal lecun_uniform lecun_normal orthogonal identity".split()
)
GLOROT = glorot_uniform()
