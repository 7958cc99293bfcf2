"""Cells: one step of a recurrent network, `y, state = cell(x, state)`.

`x` is `(batch, features)`. The state is a tree of arrays `(batch, size)`, and `state_size` the same
tree of sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import jitney as jt

from ..activations import sigmoid
from ..faults import Array, complain, refuse
from ..initializers import starting, uniform
from ..linear import sizes as sizes_of
from ..module import Module

State = Any
Step = Callable[[Any, State], tuple[Array, State]]
_EPSILON, _MOMENTUM = 1e-5, 0.9  # of normalised LSTM cells


class RNNCore(Module):
    """What can be run over a sequence: `state_size`, `output_size` and `__call__(x, state)`.

    Of one's own cell that is all that is needed:

    >>> class Decay(jt.nn.RNNCore):
    ...     state_size = output_size = 2
    ...
    ...     def __call__(self, x, state):
    ...         state = 0.5 * state + x
    ...         return state, state
    >>> y, last = jt.nn.rnn(Decay(), np.ones((1, 3, 2)))
    >>> y[0, :, 0], last
    (array([1.  , 1.5 , 1.75]), array([[1.75, 1.75]]))
    """

    state_size: Any
    output_size: int

    def __call__(self, x: Array, state: State) -> tuple[Array, State]:
        """The output `(batch, output_size)` and the next state."""
        raise NotImplementedError(f"{type(self).__name__} has no __call__(x, state)")

    def initial_state(self, batch: int, dtype: Any = np.float32) -> State:
        """Zeros `(batch, size)` for each size of `state_size`."""
        return jt.tree.map(lambda size: np.zeros((batch, size), dtype), self.state_size)

    def prepare(self, x: Any) -> None:
        """Make the parameters whose sizes wait for the input's: `x` is that of a step, or its shape."""
        if hasattr(self, "build") and self.built is None:
            self.build(x)

    def over(self, xs: Array) -> tuple[Any, Step]:
        """What `rnn` asks for `xs` `(steps, batch, features)`: the inputs of its steps, a tree of
        arrays over which it goes, and the step. What does not depend on the state is best done
        here, for all steps at once."""
        return xs, self


class Gated(RNNCore):
    """A cell of one hidden size: `w_x`, `b_x` for the input and `w_h`, `b_h` for the hidden state,
    with `gates` blocks of columns. All start uniform within 1/sqrt(hidden), as PyTorch's do."""

    gates = 1

    def __init__(
        self, *sizes: int, bias: bool = True, rng: Any = None, dtype: Any = np.float32
    ) -> None:
        given, self.hidden = sizes_of(self, sizes, "(hidden) or (inputs, hidden)")
        self.output_size = self.state_size = self.hidden
        self.bias, self.dtype = bias, np.dtype(dtype)
        self.w_x: Array = None
        self.w_h: Array = None
        self.b_x: Array = None
        self.b_h: Array = None
        start = uniform(-(self.hidden**-0.5), self.hidden**-0.5)
        self.start: Any = starting(dtype, rng, w_x=start, w_h=start, b_x=start, b_h=start)
        if given is not None:
            self.build(jt.ShapeDtype((1, given), dtype))

    def build(self, x: Any, *state: State) -> None:
        width = self.gates * self.hidden
        biases = {"b_x": (width,), "b_h": (width,)} if self.bias else {}
        self.start(self, w_x=(self._features(x), width), w_h=(self.hidden, width), **biases)

    def __call__(self, x: Array, state: State) -> tuple[Array, State]:
        inputs, step = self.over(x)
        return step(inputs, state)

    def over(self, xs: Array) -> tuple[Array, Step]:
        projected = self._projected(xs)
        return (projected + self.b_x + self.b_h if self.bias else projected), self.advance

    def _projected(self, xs: Array) -> Array:
        if self._features(xs) != self.w_x.shape[0]:
            refuse(
                self,
                f"takes {self.w_x.shape[0]} features, not {xs.shape[-1]}",
                "the last axis of x is the features; make the cell for as many as x has.",
                x=xs,
                w_x=self.w_x,
            )
        return xs @ self.w_x

    def _features(self, x: Any) -> int:
        if not hasattr(x, "shape") or len(x.shape) < 2:
            refuse(
                self,
                "takes an array (batch, features) in each step",
                "give rnn an array (batch, steps, features): x[..., None] makes each number of a "
                "sequence a step, np.stack(x, axis=1) an array of a list of steps.",
                x=x,
            )
        return int(x.shape[-1])

    def advance(self, inputs: Array, state: State) -> tuple[Array, State]:
        """The step, given the input's share of the gates."""
        raise NotImplementedError


class RNNCell(Gated):
    """h = activation(x w_x + b_x + h w_h + b_h), Elman's cell.

    `RNNCell(hidden)` or `RNNCell(inputs, hidden)`; `w_x` is `(inputs, hidden)`.

    >>> cell = jt.nn.RNNCell(3, 4, rng=0)
    >>> y, state = cell(np.ones((2, 3), np.float32), cell.initial_state(2))
    >>> y.shape, y is state
    ((2, 4), True)
    """

    def __init__(
        self, *sizes: int, activation: Callable[[Array], Array] = np.tanh, **options: Any
    ) -> None:
        super().__init__(*sizes, **options)
        self.activation = activation

    def advance(self, inputs: Array, state: Array) -> tuple[Array, Array]:
        h = self.activation(inputs + state @ self.w_h)
        return h, h


class GRUCell(Gated):
    """A gated recurrent unit as PyTorch has it: the reset gate acts on h w_h + b_h.

        r, z = sigmoid(x w_x + b_x + h w_h + b_h)          # the first two of three blocks
        n = tanh(x w_x + b_x + r * (h w_h + b_h))          # the third
        h = (1 - z) * n + z * h

    `GRUCell(hidden)` or `GRUCell(inputs, hidden)`; `w_x` is `(inputs, 3 * hidden)`.
    """

    gates = 3

    def over(self, xs: Array) -> tuple[Array, Step]:
        projected = self._projected(xs)
        return (projected + self.b_x if self.bias else projected), self.advance

    def advance(self, inputs: Array, state: Array) -> tuple[Array, Array]:
        hidden = state @ self.w_h
        if self.bias:
            hidden = hidden + self.b_h
        r, z, n = np.split(inputs, 3, axis=-1)
        hr, hz, hn = np.split(hidden, 3, axis=-1)
        n = np.tanh(n + sigmoid(r + hr) * hn)
        h = n + sigmoid(z + hz) * (state - n)
        return h, h


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
