"""What stands in for a `np.random.Generator`: its methods, as draws of the compiled function."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.types import F64, I64
from ..arrays.common import array, axis_index
from ..core.tracers import Tracer, as_value
from .distributions import Distributions, _times
from .drawing import dtype_of, floats, number, require, result, shape_of
from .integers import bounds


class TracedGenerator(Distributions):
    """NumPy's `Generator`."""

    def random(self, size: Any = None, dtype: Any = F64, out: Any = None) -> Any:
        return self._filled("random", size, dtype, out)

    def standard_normal(self, size: Any = None, dtype: Any = F64, out: Any = None) -> Any:
        return self._filled("standard_normal", size, dtype, out)

    def standard_exponential(
        self, size: Any = None, dtype: Any = F64, method: str = "zig", out: Any = None
    ) -> Any:
        options = () if method == "zig" else (("method", method),)
        return self._filled("standard_exponential", size, dtype, out, options=options)

    def standard_gamma(
        self, shape: Any, size: Any = None, dtype: Any = F64, out: Any = None
    ) -> Any:
        shape = floats(shape)
        require(shape, ">= 0", "shape < 0")
        dtype = dtype_of(dtype)
        return self._filled("standard_gamma", size, dtype, out, as_value(shape, dtype))

    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None) -> Any:
        shape, scale = floats(shape), floats(scale)
        require(shape, ">= 0", "shape < 0")
        require(scale, ">= 0", "scale < 0")
        full = shape_of(size, shape, scale)
        drawn = self._draw("standard_gamma", full, F64, as_value(shape, F64))
        return result(_times(drawn, scale), size, "f")

    def _filled(
        self, law: str, size: Any, dtype: Any, out: Any, *params: Any, options: Any = ()
    ) -> Any:
        dtype = dtype_of(dtype)
        if out is not None:
            if not isinstance(out, Tracer) or out.dtype != dtype:
                raise TypeError(f"Supplied output array has the wrong type. Expected {dtype}")
            if size is not None and shape_of(size) != out.shape:
                raise ValueError("size must match out.shape when used together")
            out[...] = self._draw(law, out.shape, dtype, *params, options=options)
            return out
        shape = shape_of(size, *(p for p in params if p.shape)) if size is None else shape_of(size)
        return result(self._draw(law, shape, dtype, *params, options=options), size, "f")

    def integers(
        self,
        low: Any,
        high: Any = None,
        size: Any = None,
        dtype: Any = I64,
        endpoint: bool = False,
    ) -> Any:
        first, last, dtype = bounds(low, high, dtype, endpoint)
        drawn = self._draw("integers", shape_of(size, first, last), dtype, first, last)
        return result(drawn, size, "b" if dtype == np.dtype(bool) else None)

    def choice(
        self,
        a: Any,
        size: Any = None,
        replace: bool = True,
        p: Any = None,
        axis: int = 0,
        shuffle: bool = True,
    ) -> Any:
        axis = int(axis)
        numbers = isinstance(a, (int, np.integer))
        if not numbers:
            a = array(a)
            moved = np.moveaxis(a, axis_index(axis, a.ndim, a), 0) if a.ndim else a
        else:
            moved = a
        population, count = self._population(moved)
        if replace and p is None:
            first, last, _ = bounds(0, count, I64, False)
            indices = self._draw("integers", shape_of(size), I64, first, last)
        elif replace:
            indices = self._places(size, count, p)
        else:
            options = () if shuffle else (("shuffle", False),)
            operands = [as_value(count, I64)] + ([] if p is None else [as_value(array(p, F64))])
            indices = self._draw("choice", shape_of(size), I64, *operands, options=options)
        if population is None:
            return number(indices, "i") if size is None else indices
        chosen: Any = np.take(a, indices, axis=axis)
        return number(chosen, None) if size is None and not chosen.shape else chosen

    def permuted(self, x: Any, *, axis: int | None = None, out: Any = None) -> Any:
        x = array(x)
        if axis is None:
            result = np.ravel(x)[self._draw("permuted", (x.size,), I64)].reshape(x.shape)
        else:
            axis = axis_index(axis, x.ndim, x)
            rows = np.moveaxis(x, axis, -1)
            order: Any = self._draw("permuted", rows.shape, I64)
            result = np.moveaxis(np.take_along_axis(rows, order, -1), -1, axis)
        if out is None:
            return result
        out[...] = result
        return out

    def multivariate_hypergeometric(
        self, colors: Any, nsample: Any, size: Any = None, method: str = "marginals"
    ) -> Any:
        colors = array(colors, I64)
        shape = (*shape_of(size), colors.shape[0])
        params = colors, as_value(nsample, I64)
        return self._vectors("multivariate_hypergeometric", shape, I64, {"method": method}, *params)
