"""Expressions that may give views, and layouts of arrays that they are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import jitney as jt
from jitney.tracer.core.tracers import Tracer

Array = np.ndarray[Any, Any]
REFUSALS = ValueError, IndexError, TypeError, AttributeError


def layouts() -> Iterator[tuple[str, Array]]:
    """Square matrices, so that most expressions below take them, and arrays with other ranks."""
    a = np.arange(1.0, 10).reshape(3, 3)
    wide = np.arange(1.0, 37).reshape(6, 6)
    yield "C", a
    yield "Fortran", np.asfortranarray(a)
    yield "steps", wide[::2, 1::2]
    yield "rows apart", wide[::2, :3]
    yield "backwards", a[::-1, ::-1]
    yield "one axis backwards", a[:, ::-1]
    yield "permuted", np.arange(1.0, 28).reshape(3, 3, 3).transpose(1, 2, 0)
    yield "axes of size 1", a[:, None, :1]
    yield "vector", np.arange(1.0, 4)
    yield "every second", np.arange(1.0, 7)[::2]
    yield "from the end", np.arange(1.0, 4)[::-1]
    yield "0-d", np.array(2.0)
    yield "empty", np.zeros((3, 0))
    yield "one element", np.ones((1, 1))


LAYOUTS = dict(layouts())

# Expressions of `a`. What NumPy refuses for a layout is left out there.
EXPRESSIONS = """
a
a[...]
a[()]
a[None]
a[0]
a[1:]
a[::-1]
a[:, 0]
a[..., None]
a[[0, 1]]
a[0, 0]
a[0:0]
a.T
a.mT
a.view()
a.view(np.uint8)
a.real
a.imag
a.conj()
a.copy()
a.copy("F")
a.copy("K")
a.flatten()
a.flatten("K")
a.transpose()
a.transpose(0, 1)
a.swapaxes(0, -1)
a.squeeze()
a.ravel()
a.ravel("F")
a.ravel("A")
a.ravel("K")
a.reshape(-1)
a.reshape(a.shape)
a.reshape(-1, order="F")
a.reshape(-1, order="A")
a.reshape(-1, copy=True)
a.reshape(-1, copy=False)
a.reshape(1, 3, -1)
a.reshape(-1, 1, order="F")
a.diagonal()
a.astype(float)
a.astype(float, copy=False)
a.astype(float, order="C", copy=False)
a.astype(float, order="F", copy=False)
a.astype(float, order="A", copy=False)
a.astype(np.float32, copy=False)
a.byteswap()
a.round()
a.repeat(1)
a.take([0])
a.clip(0, 100)
a.max(axis=())
abs(a)
+a
np.abs(a)
np.positive(a)
np.ravel(a)
np.ravel(np.flip(a))
np.reshape(np.flip(a), -1)
np.reshape(a.T, -1)
np.reshape(a, -1, order="F", copy=False)
np.transpose(a)
np.permute_dims(a)
np.matrix_transpose(a)
np.linalg.matrix_transpose(a)
np.swapaxes(a, 0, 0)
np.moveaxis(a, 0, -1)
np.moveaxis(a, (), ())
np.rollaxis(a, 0)
np.rollaxis(a, -1)
np.expand_dims(a, 0)
np.expand_dims(a, ())
np.squeeze(a)
np.squeeze(a, ())
np.squeeze(np.expand_dims(a, 1))
np.atleast_1d(a)
np.atleast_2d(a)
np.atleast_3d(a)
np.broadcast_to(a, a.shape)
np.broadcast_to(a, (2, *a.shape))
np.broadcast_arrays(a)[0]
np.flip(a)
np.flip(a, ())
np.fliplr(a)
np.flipud(a)
np.rot90(a)
np.rot90(a, 0)
np.rot90(a, 2)
np.roll(a, 0)
np.roll(a, 1, 0)
np.diag(a)
np.diag(a, 1)
np.diag(a, -2)
np.diag(a, 7)
np.diagonal(a)
np.diagonal(a, 1)
np.diagonal(a, 0, 1, 0)
np.diagonal(a, -1, 0, -1)
np.linalg.diagonal(a)
np.linalg.diagonal(a, offset=-1)
np.diagflat(a)
np.tril(a, 9)
np.split(a, 1)[0]
np.array_split(a, 2)[-1]
np.hsplit(a, 1)[0]
np.vsplit(a, [1])[1]
np.unstack(a)[0]
np.real(a)
np.imag(a)
np.conj(a)
np.real(a + 1j)
np.asarray(a)
np.asanyarray(a)
np.asarray(a, dtype=np.float32)
np.asarray(a, order="F")
np.asarray(a, copy=True)
np.array(a)
np.array(a, copy=None)
np.array(a, copy=None, order="F")
np.array(a, copy=None, ndmin=3)
np.array(a, copy=False)
np.array(a, copy=False, order="C")
np.ascontiguousarray(a)
np.asfortranarray(a)
np.require(a)
np.require(a, None, "C")
np.require(a, None, "FW")
np.require(a, None, ["A"])
np.copy(a)
np.copy(a, "F")
np.astype(a, float, copy=False)
np.zeros_like(a)
np.block(a)
np.block([a])
np.concatenate([a])
np.vstack([a])
np.stack([a])
np.tile(a, 1)
np.repeat(a, 1, axis=0)
np.pad(a, 0)
np.resize(a, a.shape)
np.take(a, [0])
np.append(a, [])
np.delete(a, 0, 0)
np.diff(a, 0)
np.meshgrid(a, a, copy=False, sparse=True)[0]
np.meshgrid(a)[0]
np.ix_(a.astype(int))[0]
np.where(a > 1, a, a)
np.select([a > 1], [a], a)
np.nan_to_num(a)
np.nan_to_num(a, copy=False)
np.round(a)
np.fix(a)
np.clip(a, 0, None)
np.sort(a)
np.cumsum(a, 0)
np.sum(a, axis=())
np.mean(a, axis=())
np.apply_over_axes(np.sum, a, [])
np.kron(1, a)
np.linalg.matrix_power(a, 1)
np.linalg.matrix_power(a, 0)
np.einsum("ij->ji", a)
np.einsum("ij", a)
np.einsum("ii->i", a)
np.einsum("iji->ij", a)
np.einsum("iii->i", a)
np.einsum("i...->...i", a)
np.einsum("...", a)
np.einsum("...", a, dtype=np.float32, casting="unsafe")
np.einsum("ij->ji", a, optimize=True)
np.einsum("ij->i", a)
np.einsum(a, [0, 1], [1, 0])
np.lib.stride_tricks.sliding_window_view(a, 2, 0)
np.lib.stride_tricks.sliding_window_view(a, (1,) * a.ndim)
""".split("\n")[1:-1]


def call_of(expression: str) -> Callable[[Any], Any]:
    space = {"np": NumPy(), "jt": jt}
    made: Callable[[Any], Any] = eval(f"lambda a: {expression}", space)
    return made


class NumPy:
    """numpy, but its functions that make arrays trace."""

    def __getattr__(self, name: str) -> Any:
        known = name in ("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray")
        return getattr(jt if known or name == "require" else np, name)


def steps(x: Any) -> tuple[int, ...]:
    """Strides in bytes where they mean something."""
    return (
        () if 0 in x.shape else tuple(s for n, s in zip(x.shape, x.strides, strict=True) if n > 1)
    )


def is_scalar(x: Any) -> bool:
    """Whether it is a NumPy scalar and no array."""
    return x.scalar if isinstance(x, Tracer) else not isinstance(x, np.ndarray)


def fresh(a: Array) -> Array:
    """A copy that lies in memory as `a` does."""
    base = a
    while base.base is not None:
        base = base.base
    copy = base.copy("K")
    offset = a.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return np.ndarray(a.shape, a.dtype, copy, offset, a.strides)
