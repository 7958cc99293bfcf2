"""What stands in for a `np.random.RandomState`, whose methods the functions of `np.random` are, too."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.types import F64, I64
from ..arrays.common import array
from ..core.tracers import Tracer, as_value
from .distributions import Distributions
from .drawing import floats, number, require, result, shape_of
from .integers import bounds


class TracedRandomState(Distributions):
    """NumPy's `RandomState`."""

    def random_sample(self, size: Any = None) -> Any:
        return result(self._draw("random", shape_of(size), F64), size, "f")

    def random(self, size: Any = None) -> Any:
        return self.random_sample(size)

    def rand(self, *shape: int) -> Any:
        return self.random_sample(shape or None)

    def standard_normal(self, size: Any = None) -> Any:
        return result(self._draw("standard_normal", shape_of(size), F64), size, "f")

    def randn(self, *shape: int) -> Any:
        return self.standard_normal(shape or None)

    def standard_exponential(self, size: Any = None) -> Any:
        return result(self._draw("standard_exponential", shape_of(size), F64), size, "f")

    def standard_gamma(self, shape: Any, size: Any = None) -> Any:
        shape = floats(shape)
        require(shape, ">= 0", "shape < 0")
        drawn = self._draw("standard_gamma", shape_of(size, shape), F64, as_value(shape, F64))
        return result(drawn, size, "f")

    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None) -> Any:
        shape, scale = floats(shape), floats(scale)
        require(shape, ">= 0", "shape < 0")
        require(scale, ">= 0", "scale < 0")
        params = as_value(shape, F64), as_value(scale, F64)
        return result(self._draw("gamma", shape_of(size, shape, scale), F64, *params), size, "f")

    def randint(self, low: Any, high: Any = None, size: Any = None, dtype: Any = int) -> Any:
        plain = dtype in (int, bool)
        first, last, dtype = bounds(low, high, dtype, False)
        drawn = self._draw("integers", shape_of(size, first, last), dtype, first, last)
        kind = ("b" if dtype.kind == "b" else "i") if plain else None
        return result(drawn, size, kind)

    def random_integers(self, low: Any, high: Any = None, size: Any = None) -> Any:
        if high is None:
            low, high = 1, low
        first, last, dtype = bounds(low, high, I64, True)
        return result(self._draw("integers", shape_of(size), dtype, first, last), size, "i")

    def tomaxint(self, size: Any = None) -> Any:
        return result(self._draw("tomaxint", shape_of(size), I64), size, "i")

    def choice(self, a: Any, size: Any = None, replace: bool = True, p: Any = None) -> Any:
        population, count = self._population(a)
        if replace and p is None:
            first, last, _ = bounds(0, count, I64, False)
            indices = self._draw("integers", shape_of(size), I64, first, last)
        elif replace:
            indices = self._places(size, count, p)
        elif p is None:
            shape = shape_of(size)
            total = int(np.prod(shape))
            if total > count:
                raise ValueError("Cannot take a larger sample than population when 'replace=False'")
            indices = self._draw("permutation", (count,), I64)[:total].reshape(shape)
        else:
            operands = as_value(count, I64), as_value(array(p, F64))
            indices = self._draw("choice", shape_of(size), I64, *operands)
        if population is None:
            return number(indices, "i") if size is None else indices
        if population.ndim != 1:
            raise ValueError("a must be 1-dimensional")
        chosen = population[indices]
        return number(chosen, None) if size is None else chosen

    def seed(self, seed: Any = None) -> None:
        begin(self, seed)


def begin(generator: Any, seed: Any) -> None:
    """Begin the stream of a seed, when the program comes here."""
    if seed is None:
        generator._draw("seed", (), I64)
    elif isinstance(seed, Tracer):
        generator._draw("seed", (), I64, seed)
    else:
        value = np.asarray(seed)
        generator._draw("seed", (), I64, as_value(array(value)))
