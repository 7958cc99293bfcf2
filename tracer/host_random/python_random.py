"""What stands in for a `random.Random`, and for the functions of `random`, which are one's."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ...ir.types import F64, I64
from ..arrays.common import array
from ..core.tracers import as_value
from ..messages import errors
from ..messages.errors import complain
from .drawing import StandIn, length_of, number, picked, require_that
from .random_states import begin

_FEW = 64  # weights that are added one after the other, as written


class TracedRandom(StandIn):
    """Python's `random.Random`. Its integers are int64."""

    def random(self) -> Any:
        return number(self._draw("random", (), F64), "f")

    def uniform(self, a: Any, b: Any) -> Any:
        return a + (b - a) * self.random()

    def getrandbits(self, k: int) -> Any:
        k = operator.index(k)
        if not 0 < k < 64:
            complain(
                errors.UnsupportedFunctionError,
                f"getrandbits({k}) does not fit into an int64",
                "draw up to 63 bits at a time.",
            )
        law = self._draw("bits", (), I64, as_value(k, I64))
        return number(law, "i")

    def _randbelow(self, n: Any) -> Any:
        return number(self._draw("below", (), I64, as_value(n, I64)), "i")

    def randrange(self, start: Any, stop: Any = None, step: Any = 1) -> Any:
        if stop is None:
            start, stop = 0, start
        if type(step) is int and step == 1:
            width = stop - start
            require_that(width > 0, "empty range for randrange()")
            return start + self._randbelow(_positive(width))
        if type(step) is not int or step == 0:
            complain(
                errors.UnsupportedFunctionError,
                "randrange with a traced step, or 0",
                "draw a number of steps: start + step * random.randrange(n).",
            )
        count = (stop - start + step - (1 if step > 0 else -1)) // step
        require_that(count > 0, "empty range for randrange()")
        return start + step * self._randbelow(_positive(count))

    def randint(self, a: Any, b: Any) -> Any:
        return self.randrange(a, b + 1)

    def choice(self, seq: Any) -> Any:
        n = length_of(seq)
        require_that(n > 0, "Cannot choose from an empty sequence", "IndexError")
        if isinstance(n, int) and not n:
            return 0
        (chosen,) = picked(seq, [self._randbelow(_positive(n))])
        return chosen

    def shuffle(self, x: Any) -> None:
        order = self._draw("permutation", (len(x),), I64)
        if isinstance(x, list):
            x[:] = picked(x, [order[i] for i in range(len(x))])
            return
        x[...] = x[order]

    def sample(self, population: Sequence[Any], k: int, *, counts: Any = None) -> Any:
        if counts is not None:
            complain(
                errors.UnsupportedFunctionError,
                "sample with counts",
                "repeat the elements in the population.",
            )
        n, k = length_of(population), operator.index(k)
        fits = (n >= k) & (k >= 0)
        require_that(fits, "Sample larger than population or is negative")
        if fits is False or k < 0:
            return []
        room = n if isinstance(n, int) else np.maximum(n, k)  # where it does not fit it has raised
        indices = self._draw("sample", (k,), I64, as_value(room, I64))
        return picked(population, [number(indices[i], "i") for i in range(k)])

    def choices(
        self, population: Any, weights: Any = None, *, cum_weights: Any = None, k: int = 1
    ) -> Any:
        n, k = len(population), operator.index(k)
        if weights is None and cum_weights is None:
            indices = [np.floor(self.random() * float(n)).astype(I64) for _ in range(k)]
        else:
            sums = _sums(weights, cum_weights, n)
            total = sums[-1]
            require_that(total > 0.0, "Total of weights must be greater than zero")
            require_that(np.isfinite(total), "Total of weights must be finite")
            indices = [np.searchsorted(sums[:-1], self.random() * total, "right") for _ in range(k)]
        return picked(population, [number(index, "i") for index in indices])

    def expovariate(self, lambd: Any = 1.0) -> Any:
        return self._asked("expovariate", 1.0) / lambd

    def gauss(self, mu: Any = 0.0, sigma: Any = 1.0) -> Any:
        return mu + self._asked("gauss", 0.0, 1.0) * sigma

    def normalvariate(self, mu: Any = 0.0, sigma: Any = 1.0) -> Any:
        return mu + self._asked("normalvariate", 0.0, 1.0) * sigma

    def lognormvariate(self, mu: Any = 0.0, sigma: Any = 1.0) -> Any:
        return self._asked("lognormvariate", mu, sigma)

    def betavariate(self, alpha: Any, beta: Any) -> Any:
        return self._asked("betavariate", alpha, beta)

    def gammavariate(self, alpha: Any, beta: Any) -> Any:
        return self._asked("gammavariate", alpha, beta)

    def paretovariate(self, alpha: Any) -> Any:
        return self._asked("paretovariate", alpha)

    def weibullvariate(self, alpha: Any, beta: Any) -> Any:
        return self._asked("weibullvariate", alpha, beta)

    def vonmisesvariate(self, mu: Any, kappa: Any) -> Any:
        return self._asked("vonmisesvariate", mu, kappa)

    def triangular(self, low: Any = 0.0, high: Any = 1.0, mode: Any = 0.5) -> Any:
        return self._asked("triangular", low, high, mode)

    def _asked(self, name: str, *params: Any) -> Any:
        values = [as_value(p, F64) for p in params]
        return number(self._draw(f"python.{name}", (), F64, *values), "f")

    def seed(self, a: Any = None, version: int = 2) -> None:
        if isinstance(a, (str, bytes, bytearray)):
            complain(
                errors.UnsupportedFunctionError,
                "random.seed of a text in a compiled function",
                "seed with a number.",
            )
        begin(self, a)


def _positive(n: Any) -> Any:
    """Where an empty range is an error, a number that can be drawn below."""
    return max(n, 1) if isinstance(n, int) else np.maximum(n, 1)


def _sums(weights: Any, cum_weights: Any, n: int) -> Any:
    """The sums of the first weights, in the order of Python's, as an array of floats."""
    if weights is not None and cum_weights is not None:
        raise TypeError("Cannot specify both weights and cumulative weights")
    if weights is not None and len(weights) <= _FEW:
        cum_weights = list(accumulate(weights[i] for i in range(len(weights))))
    sums = np.cumsum(array(weights)) if cum_weights is None else array(cum_weights)
    if len(sums) != n:
        raise ValueError("The number of weights does not match the population")
    return sums.astype(F64)
