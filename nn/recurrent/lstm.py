"""Long short-term memory: the cell, with peepholes, layer or batch normalisation."""

from __future__ import annotations

from typing import Any

import numpy as np

import jitney as jt

from ..activations import sigmoid
from ..faults import complain
from .cells import Array, Gated, State, Step

_EPSILON = 1e-5
_MOMENTUM = 0.9


class LSTMCell(Gated):
    """Long short-term memory; the state is `(h, c)`, the gates i, f, g, o in PyTorch's order.

        i, f, g, o = x w_x + b_x + h w_h + b_h
        c = sigmoid(f) * c + sigmoid(i) * tanh(g)
        h = sigmoid(o) * tanh(c)

    `LSTMCell(hidden)` or `LSTMCell(inputs, hidden)`; `w_x` is `(inputs, 4 * hidden)`.

    `peephole=True`: the gates see the cell too, i and f the old one times `peep[0]` and `peep[1]`,
    o the new one times `peep[2]` (Gers and Schmidhuber).

    `norm="layer"` normalises x w_x, h w_h and the c inside of tanh, each by itself (Ba, Kiros, Hinton);
    `norm="batch"` does it over the batch (Cooijmans et al.), and for `eval` keeps running `means` and
    `variances`, which all steps share. `scales["x"]`, `["h"]` and `["c"]` multiply what is normalised,
    `shift` is added to c; the biases of the gates come after it.

    >>> cell = jt.nn.LSTMCell(3, 4, norm="layer", peephole=True, rng=0)
    >>> y, (h, c) = cell(np.ones((2, 3), np.float32), cell.initial_state(2))
    >>> y.shape, c.shape
    ((2, 4), (2, 4))
    """

    gates = 4
    buffers = ("means", "variances")

    def __init__(
        self, *sizes: int, peephole: bool = False, norm: str | None = None, **options: Any
    ) -> None:
        if norm not in (None, "layer", "batch"):
            complain(
                ValueError,
                f"LSTMCell: norm={norm!r} is not known",
                'choose "layer", "batch", or None.',
            )
        super().__init__(*sizes, **options)
        self.state_size, self.norm = (self.hidden, self.hidden), norm
        dtype, widths = self.dtype, {"x": 4 * self.hidden, "h": 4 * self.hidden, "c": self.hidden}
        self.peep: Array = np.zeros((3, self.hidden), dtype) if peephole else None
        self.scales = {k: np.ones(n, dtype) for k, n in widths.items() if norm}
        self.shift: Array = np.zeros(self.hidden, dtype) if norm else None
        running = norm == "batch"
        self.means = {k: np.zeros(n, dtype) for k, n in widths.items() if running}
        self.variances = {k: np.ones(n, dtype) for k, n in widths.items() if running}

    def over(self, xs: Array) -> tuple[Array, Step]:
        """With normalisation the biases are added after it, in the step."""
        return (self._projected(xs), self.advance) if self.norm else super().over(xs)

    def advance(self, inputs: Array, state: State) -> tuple[Array, State]:
        h, c = state
        gates = self._normalised("x", inputs) + self._normalised("h", h @ self.w_h)
        if self.norm and self.bias:
            gates = gates + (self.b_x + self.b_h)
        i, f, g, o = np.split(gates, 4, axis=-1)
        if self.peep is not None:
            i, f = i + self.peep[0] * c, f + self.peep[1] * c
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        if self.peep is not None:
            o = o + self.peep[2] * c
        seen = self._normalised("c", c)
        h = sigmoid(o) * np.tanh(seen + self.shift if self.norm else seen)
        return h, (h, c)

    def _normalised(self, name: str, x: Array) -> Array:
        if self.norm is None:
            return x
        if self.norm == "layer":
            mean, var = x.mean(axis=-1, keepdims=True), x.var(axis=-1, keepdims=True)
        elif self.training:
            mean, var = x.mean(axis=0), x.var(axis=0)
            self._note(self.means, name, mean)
            self._note(self.variances, name, var)
        else:
            mean, var = self.means[name], self.variances[name]
        return (x - mean) / np.sqrt(var + _EPSILON) * self.scales[name]

    @staticmethod
    def _note(running: dict[str, Array], name: str, value: Array) -> None:
        old, new = running[name], jt.stop_gradient(value)
        running[name] = (_MOMENTUM * old + (1 - _MOMENTUM) * new).astype(old.dtype)
