"""Whole layers as PyTorch's users know them: `RNN`, `LSTM`, `GRU`, of several layers, in both
directions."""

from __future__ import annotations

from typing import Any

import numpy as np

import jitney as jt

from ..faults import complain, refuse
from ..initializers import generator
from ..module import Module
from .cells import Array, Gated, GRUCell, LSTMCell, RNNCell, State
from .loops import bidirectional, rnn
from .wrappers import kept


class Layers(Module):
    """Layers of one kind of cell. `Layers(hidden)`, `(inputs, hidden)` or `(inputs, hidden,
    num_layers)`.

    Called with x `(steps, batch, features)`, or `(batch, steps, features)` with `batch_first`: the
    outputs of the last layer, and the last state, `(layers * directions, batch, hidden)`, of an
    LSTM a pair of these. `state` is the first state in that form, `lengths` `(batch,)` what packed
    sequences are in PyTorch. `dropout` is between the layers while training. `cells[layer *
    directions + direction]` has the parameters.
    """

    cell: type[Gated]

    def __init__(
        self,
        *sizes: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        rng: Any = None,
        dtype: Any = np.float32,
        **options: Any,
    ) -> None:
        if not 1 <= len(sizes) <= 3:
            complain(
                TypeError,
                f"{type(self).__name__} was given {sizes}",
                "it takes (hidden), (inputs, hidden) or (inputs, hidden, num_layers).",
            )
        inputs, hidden = (None, *sizes) if len(sizes) == 1 else sizes[:2]
        self.num_layers = sizes[2] if len(sizes) == 3 else num_layers
        self.directions, self.batch_first = 2 if bidirectional else 1, batch_first
        self.dropout, self.rng = dropout, generator(rng)
        options |= {"bias": bias, "rng": self.rng, "dtype": dtype}
        self.cells: list[Gated] = []
        for layer in range(self.num_layers):
            width = hidden * self.directions if layer else inputs
            known = (hidden,) if width is None else (width, hidden)
            self.cells += [self.cell(*known, **options) for _ in range(self.directions)]

    def __call__(
        self, x: Array, state: State = None, lengths: Array | None = None
    ) -> tuple[Array, State]:
        x = np.swapaxes(x, 0, 1) if self.batch_first else x
        first: list[State] = self._parts(state)
        last: list[State] = []
        for layer in range(self.num_layers):
            if layer and self.dropout and self.training:
                x = x * kept(self.dropout, self.rng, x.shape, x.dtype)
            at = layer * self.directions
            if self.directions == 2:
                ahead, back = self.cells[at : at + 2]
                states = first[at], first[at + 1]
                x, ends = bidirectional(ahead, back, x, lengths, states, time_major=True)
                last += ends
            else:
                x, end = rnn(self.cells[at], x, lengths, first[at], time_major=True)
                last.append(end)
        last = jt.tree.map(lambda *parts: np.stack(parts), *last)
        return (np.swapaxes(x, 0, 1) if self.batch_first else x), last

    def _parts(self, state: State) -> list[State]:
        """The first states of the cells."""
        count = len(self.cells)
        if state is None:
            return [None] * count
        for leaf in jt.tree.leaves(state):
            if leaf.ndim != 3 or leaf.shape[0] != count:
                refuse(
                    self,
                    f"has {count} cells, whose state is ({count}, batch, hidden), not {leaf.shape}",
                    "give it the shape of the last state that this layer returns.",
                    state=leaf,
                )
        return [jt.tree.map(lambda leaf: leaf[i], state) for i in range(count)]  # noqa: B023


class RNN(Layers):
    """Elman's network; options of `RNNCell`, such as `activation=`, too.

    >>> layer = jt.nn.RNN(2, 3, bidirectional=True, rng=0)
    >>> y, h = layer(np.ones((5, 4, 2), np.float32))
    >>> y.shape, h.shape
    ((5, 4, 6), (2, 4, 3))
    """

    cell = RNNCell


class LSTM(Layers):
    """Long short-term memory; options of `LSTMCell`, `peephole=` and `norm=`, too.

    >>> layer = jt.nn.LSTM(3, 2, batch_first=True, rng=0)
    >>> y, (h, c) = layer(np.ones((4, 5, 3), np.float32), lengths=np.array([5, 1, 2, 3]))
    >>> y.shape, h.shape
    ((4, 5, 2), (1, 4, 2))
    """

    cell = LSTMCell


class GRU(Layers):
    """Gated recurrent units.

    >>> y, h = jt.nn.GRU(2, 3, 2, rng=0)(np.ones((5, 4, 2), np.float32))
    >>> y.shape, h.shape
    ((5, 4, 3), (2, 4, 3))
    """

    cell = GRUCell
