"""Attention over an encoded sequence, and the cell that looks at it on each step."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import jitney as jt

from ..activations import softmax
from ..attention import LOW
from ..initializers import generator
from ..linear import check_features
from ..module import Module
from .cells import Array, RNNCore, State
from .loops import sequence_mask


class Memory(NamedTuple):
    """What is looked at: `keys` and `values` `(batch, places, ...)`, and which places there are."""

    keys: Array
    values: Array
    mask: Array | None


class Attention(Module):
    """`attention.memory(encoded, lengths)`, once for a sequence, and `attention(query, memory)` for
    each query `(batch, size)`: the mean of the values weighted by their scores, and the weights
    `(batch, places)`, 0 beyond a row's length. Subclasses say what keys and scores are.
    """

    w: Array = None  # what keys are made with
    query: int | None = None  # how many features a query has

    def __init__(self, rng: Any = None, dtype: Any = np.float32) -> None:
        self.rng, self.dtype = generator(rng), np.dtype(dtype)

    def memory(self, encoded: Array, lengths: Array | None = None) -> Memory:
        """`encoded` `(batch, places, features)`, of which `lengths` count in each row."""
        if self.w is not None:
            check_features(self, encoded, self.w.shape[0])
        mask = None if lengths is None else sequence_mask(lengths, encoded.shape[1])
        return Memory(self.keys(encoded), encoded, mask)

    def __call__(self, query: Array, memory: Memory) -> tuple[Array, Array]:
        if self.query is not None:
            check_features(self, query, self.query)
        scores = self.scores(query, memory.keys)
        seen = memory.mask
        weights = softmax(scores if seen is None else np.where(seen, scores, LOW))
        weights = weights if seen is None else np.where(seen, weights, np.zeros((), weights.dtype))
        return (weights[:, None, :] @ memory.values)[:, 0], weights

    def keys(self, encoded: Array) -> Array:
        raise NotImplementedError(f"{type(self).__name__} has no keys(encoded)")

    def scores(self, query: Array, keys: Array) -> Array:
        raise NotImplementedError(f"{type(self).__name__} has no scores(query, keys)")

    def _matrix(self, rows: int, columns: int) -> Array:
        most = np.sqrt(6 / (rows + columns))
        return self.rng.uniform(-most, most, (rows, columns)).astype(self.dtype)


class LuongAttention(Attention):
    """Scores query . (value w); `w` is `(features, query)`. Without w, `general=False`, values and
    query have one size (Luong, Pham, Manning).

    >>> attention = jt.nn.LuongAttention(4, 3, rng=0)
    >>> memory = attention.memory(np.ones((2, 5, 3), np.float32), np.array([5, 2]))
    >>> context, weights = attention(np.ones((2, 4), np.float32), memory)
    >>> context.shape, weights[1]
    ((2, 3), array([0.5, 0.5, 0. , 0. , 0. ], dtype=float32))
    """

    def __init__(
        self, query: int, features: int, *, general: bool = True, rng: Any = None, **options: Any
    ) -> None:
        super().__init__(rng, **options)
        self.query = query if general else features
        self.w = self._matrix(features, query) if general else None

    def keys(self, encoded: Array) -> Array:
        return encoded if self.w is None else encoded @ self.w

    def scores(self, query: Array, keys: Array) -> Array:
        return (keys @ query[:, :, None])[:, :, 0]


class BahdanauAttention(Attention):
    """Scores v . tanh(query w_query + value w + b), with `units` in between (Bahdanau, Cho, Bengio).

    >>> attention = jt.nn.BahdanauAttention(4, 3, units=8, rng=0)
    >>> memory = attention.memory(np.ones((2, 5, 3), np.float32))
    >>> attention(np.ones((2, 4), np.float32), memory)[1].sum(axis=1)
    array([1., 1.], dtype=float32)
    """

    def __init__(
        self, query: int, features: int, units: int, *, rng: Any = None, **options: Any
    ) -> None:
        super().__init__(rng, **options)
        self.query = query
        self.w_query, self.w = self._matrix(query, units), self._matrix(features, units)
        self.b, self.v = np.zeros(units, self.dtype), self._matrix(units, 1)

    def keys(self, encoded: Array) -> Array:
        return encoded @ self.w + self.b

    def scores(self, query: Array, keys: Array) -> Array:
        return (np.tanh((query @ self.w_query)[:, None] + keys) @ self.v)[:, :, 0]


class AttentionCell(RNNCore):
    """A cell that looks at a memory on each step: it takes its input beside what it saw the step
    before, looks with its output as the query, and gives `units` values, tanh([output, context] w);
    without units output and context side by side.

    `cell.looking_at(memory)` is what `rnn`, `generate` and `beam_search` run:

    >>> encoded = np.ones((2, 5, 3), np.float32)
    >>> cell = jt.nn.AttentionCell(jt.nn.GRUCell(4, rng=0), jt.nn.LuongAttention(4, 3, rng=1), 3, 6)
    >>> decoder = cell.looking_at(cell.attention.memory(encoded))
    >>> y, state = jt.nn.rnn(decoder, np.ones((2, 7, 2), np.float32))
    >>> y.shape
    (2, 7, 6)
    """

    def __init__(
        self,
        cell: RNNCore,
        attention: Attention,
        features: int,
        units: int | None = None,
        *,
        rng: Any = None,
        dtype: Any = np.float32,
    ) -> None:
        self.cell, self.attention, self.dtype = cell, attention, np.dtype(dtype)
        width = cell.output_size + features
        self.output_size = units or width
        self.state_size = (cell.state_size, self.output_size)
        most = np.sqrt(6 / (width + self.output_size))
        shape = (width, self.output_size)
        self.w = generator(rng).uniform(-most, most, shape).astype(dtype) if units else None

    def looking_at(self, memory: Memory) -> RNNCore:
        """The cell that looks at this memory."""
        return _Looking(self, memory)

    def __call__(  # type: ignore[override]
        self, x: Array, state: State, memory: Memory
    ) -> tuple[Array, State]:
        inner, seen = state
        output, inner = self.cell(np.concatenate([x, seen], axis=-1), inner)
        context, _ = self.attention(output, memory)
        y = np.concatenate([output, context], axis=-1)
        y = y if self.w is None else np.tanh(y @ self.w)
        return y, (inner, y)


class _Looking(RNNCore):
    """An AttentionCell with what it looks at."""

    def __init__(self, cell: AttentionCell, memory: Memory) -> None:
        self.cell, self.memory, self.dtype = cell, memory, cell.dtype
        self.state_size, self.output_size = cell.state_size, cell.output_size

    def prepare(self, x: Any) -> None:
        width = x.shape[-1] + self.output_size
        self.cell.cell.prepare(jt.ShapeDtype((*x.shape[:-1], width), x.dtype))

    def __call__(self, x: Array, state: State) -> tuple[Array, State]:
        return self.cell(x, state, self.memory)
