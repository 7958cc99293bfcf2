"""Cells made of cells: stacks, dropout, residual connections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import jitney as jt

from ..faults import complain, refuse
from ..initializers import generator
from .cells import Array, RNNCore, State, Step


class MultiRNN(RNNCore):
    """Cells on top of each other: each takes the output of the one below. The state is a tuple of
    theirs.

    `rnn` runs one layer after the other over all steps, which gives the same and is faster.

    >>> deep = jt.nn.MultiRNN([jt.nn.LSTMCell(8, rng=0), jt.nn.GRUCell(5, rng=1)])
    >>> deep.state_size, deep.output_size
    (((8, 8), 5), 5)
    """

    def __init__(self, cells: Sequence[RNNCore]) -> None:
        self.cells = list(cells)
        if not self.cells:
            complain(ValueError, "MultiRNN was given no cells", "give a list of one or more.")
        self.state_size = tuple(cell.state_size for cell in self.cells)
        self.output_size = self.cells[-1].output_size

    @property
    def dtype(self) -> Any:
        return getattr(self.cells[0], "dtype", None)

    def prepare(self, x: Any) -> None:
        for cell in self.cells:
            cell.prepare(x)
            x = jt.ShapeDtype((*x.shape[:-1], cell.output_size), x.dtype)

    def initial_state(self, batch: int, dtype: Any = np.float32) -> State:
        return tuple(cell.initial_state(batch, dtype) for cell in self.cells)

    def __call__(self, x: Array, state: State) -> tuple[Array, State]:
        after = []
        for cell, own in zip(self.cells, state, strict=True):
            x, own = cell(x, own)
            after.append(own)
        return x, tuple(after)


def kept(rate: float, rng: Any, shape: Any, dtype: Any) -> Array:
    """0 for a share of `rate` of the elements, 1 / (1 - rate) for the others."""
    return (rng.random(shape) >= rate).astype(dtype) / np.asarray(1 - rate, dtype)


class Wrapper(RNNCore):
    """A cell around another: its sizes, its state."""

    def __init__(self, cell: RNNCore) -> None:
        self.cell = cell
        self.state_size, self.output_size = cell.state_size, cell.output_size

    @property
    def dtype(self) -> Any:
        return getattr(self.cell, "dtype", None)

    def prepare(self, x: Any) -> None:
        self.cell.prepare(x)

    def initial_state(self, batch: int, dtype: Any = np.float32) -> State:
        return self.cell.initial_state(batch, dtype)

    def __call__(self, x: Array, state: State) -> tuple[Array, State]:
        """One step is a sequence of one."""
        self.prepare(x)
        inputs, step = self.over(x[None])
        return step(jt.tree.map(lambda a: a[0], inputs), state)


class ResidualWrapper(Wrapper):
    """The output is the cell's plus its input, which has the same size."""

    def over(self, xs: Array) -> tuple[Any, Step]:
        if xs.shape[-1] != self.output_size:
            refuse(
                self,
                f"adds {xs.shape[-1]} inputs to {self.output_size} outputs",
                "make the cell as wide as its input.",
                x=xs,
            )
        inner, step = self.cell.over(xs)

        def advance(inputs: Any, state: State) -> tuple[Array, State]:
            x, inputs = inputs
            y, state = step(inputs, state)
            return x + y, state

        return (xs, inner), advance


class DropoutWrapper(Wrapper):
    """Dropout on the input, the output and the hidden state of a cell while `training`; each
    argument is the share that is dropped, and what is kept is divided by the share kept.

    `variational` draws one mask for all steps of a sequence (Gal and Ghahramani), and so it is the
    hidden state's that is most often dropped so. Of an LSTM's state h is dropped, c is not.
    Generators draw in compiled code as they do outside.

    >>> cell = jt.nn.DropoutWrapper(jt.nn.GRUCell(2, 64, rng=0), output=0.5, rng=1)
    >>> x = np.ones((1, 5, 2), np.float32)
    >>> bool((jt.nn.rnn(cell, x)[0] == 0).any()), bool((jt.nn.rnn(cell.eval(), x)[0] == 0).any())
    (True, False)
    """

    def __init__(
        self,
        cell: RNNCore,
        input: float = 0.0,
        state: float = 0.0,
        output: float = 0.0,
        *,
        variational: bool = False,
        rng: Any = None,
    ) -> None:
        super().__init__(cell)
        self.rates = {"input": input, "state": state, "output": output}
        for name, rate in self.rates.items():
            if not 0 <= rate < 1:
                complain(
                    ValueError,
                    f"DropoutWrapper: {name}={rate!r} is no share of what is dropped",
                    "choose one of at least 0 and less than 1; TensorFlow's keep_prob is 1 less it.",
                )
        self.variational, self.rng = variational, generator(rng)

    def over(self, xs: Array) -> tuple[Any, Step]:
        steps, batch = xs.shape[:2]
        if self.rates["input"] and self.training:
            xs = xs * self._mask("input", steps, batch, xs.shape[2], xs.dtype)
        inner, step = self.cell.over(xs)
        if not self.training:
            return inner, step
        hidden = jt.tree.leaves(self.state_size)[0]
        masks = {
            "state": self._mask("state", steps, batch, hidden, xs.dtype),
            "output": self._mask("output", steps, batch, self.output_size, xs.dtype),
        }
        fixed = {k: m[0] for k, m in masks.items() if m is not None and self.variational}
        drawn = {k: m for k, m in masks.items() if m is not None and not self.variational}

        def advance(inputs: Any, state: State) -> tuple[Array, State]:
            inner, masks = inputs
            masks = masks | fixed
            y, state = step(inner, state)
            if "state" in masks:
                leaves, tree = jt.tree.flatten(state)
                state = jt.tree.unflatten(tree, [leaves[0] * masks["state"], *leaves[1:]])
            return (y * masks["output"] if "output" in masks else y), state

        return (inner, drawn), advance

    def _mask(self, name: str, steps: int, batch: int, size: int, dtype: Any) -> Array | None:
        """What the values are multiplied by, for all steps; None where nothing is dropped."""
        rate = self.rates[name]
        if not rate:
            return None
        return kept(rate, self.rng, (1 if self.variational else steps, batch, size), dtype)
