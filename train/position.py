"""Where a training is: in its data, and in all that draws."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

import jitney as jt


class Position:
    """The pass that runs: its iterator, and how many batches were taken of it.

    As a leaf of a checkpoint (`of(trainer)`) it has a state: counts, the iterator's own state if it
    has one, the global generators' and the hooks'.
    """

    def __init__(self) -> None:
        self.batch = 0
        self.data: Any = None  # the state that the next iterator begins with
        self._iterator: Any = None
        self._users: Any = None  # an iterator that is the user's own, which goes on by itself

    def open(self, data: Any, epoch: int) -> Iterator[Any]:
        """The batches of a pass, from where it is."""
        self._iterator = iterator = pass_over(data, epoch)
        goes_on, self._users = iterator is self._users, iterator if iterator is data else None
        if self.data is not None:
            if not hasattr(iterator, "restore"):
                raise ValueError(
                    f"the checkpoint has the state of an iterator, and {type(iterator).__name__} has no "
                    "restore(state): give the data that it was saved with"
                )
            iterator.restore(self.data)
            self.data = None
        elif self.batch and not goes_on:
            passed = sum(1 for _ in islice(iterator, self.batch))
            if passed < self.batch:
                raise ValueError(
                    f"{self.batch} batches of this pass are done, and the data have {passed}: "
                    "give those that it was saved with"
                )
        for batch in iterator:
            self.batch += 1
            yield batch

    def next_pass(self) -> None:
        """At the end of one."""
        self.close()
        self.batch, self.data, self._users = 0, None, None

    def close(self) -> None:
        """End the iterator; another `open` goes on from there."""
        self.data = self._state()
        if self._users is None and hasattr(self._iterator, "close"):
            self._iterator.close()
        self._iterator = None

    def _state(self) -> Any:
        if self._iterator is None:
            return self.data
        return self._iterator.state() if hasattr(self._iterator, "state") else None

    def of(self, trainer: Any) -> _Loop:
        """This position as a leaf of a checkpoint."""
        return _Loop(self, trainer)


class _Loop:
    """What a checkpoint has beside arrays."""

    def __init__(self, position: Position, trainer: Any) -> None:
        self._position, self._trainer = position, trainer

    def state(self) -> dict[str, Any]:
        version, words, gauss = random.getstate()
        return {
            "step": self._trainer.step,
            "epoch": self._trainer.epoch,
            "batch": self._position.batch,
            "data": self._position._state(),
            "hooks": {name: hook.state() for name, hook in _with_state(self._trainer.hooks)},
            "random": [version, np.array(words, np.int64), gauss],
            "np.random": np.random.get_state(legacy=False),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._trainer.step, self._trainer.epoch = state["step"], state["epoch"]
        self._position.batch, self._position.data = state["batch"], state["data"]
        for name, hook in _with_state(self._trainer.hooks):
            if name in state["hooks"]:
                hook.restore(state["hooks"][name])
        version, words, gauss = state["random"]
        random.setstate((version, tuple(words.tolist()), gauss))
        np.random.set_state(state["np.random"])


def _with_state(hooks: list[Any]) -> Iterator[tuple[str, Any]]:
    """Hooks that have a state, by class and by which one of them it is."""
    seen: dict[str, int] = {}
    for hook in hooks:
        if hasattr(hook, "state"):
            name = type(hook).__name__
            seen[name] = seen.get(name, 0) + 1
            yield f"{name} {seen[name]}", hook


def groups(
    trainer: Any, data: Any, hooks: list[Any], steps: int | None, epochs: int | None
) -> Iterator[list[Any]]:
    """The batches of each step, pass after pass. The last step of a pass may have fewer."""

    def going() -> bool:
        left = steps is None or trainer.step < steps
        return left and not trainer.stopping and (epochs is None or trainer.epoch < epochs)

    position = trainer.position
    while going():
        group: list[Any] = []
        for batch in position.open(data, trainer.epoch):
            group.append(batch)
            if len(group) == trainer.accumulate:
                yield group
                group = []
                if not going():
                    return
        if group:
            yield group
        if not position.batch:
            raise ValueError(
                f"pass {trainer.epoch + 1} over {said(data)} has no batch"
                + ("; an iterator is used up by the first pass" if trainer.epoch else "")
                + ": give data that can be iterated again, with a batch at least"
            )
        position.next_pass()
        trainer.epoch += 1
        for hook in hooks:
            hook.after_epoch(trainer)


def split(batch: Any) -> tuple[Any, ...]:
    """Inputs, and what the loss gets beside the outputs."""
    return tuple(batch) if isinstance(batch, (tuple, list)) else (batch, batch)


def size_of(batch: Any) -> int:
    """How many examples a batch has: the first axis of its first array."""
    shape = np.shape(next(iter(jt.tree.leaves(batch)), 0.0))
    return shape[0] if shape else 1


def pass_over(data: Any, epoch: int = 0) -> Any:
    """An iterator over the data: that pass of them, where they know passes."""
    if callable(data) and not hasattr(data, "__iter__"):
        data = data()
    if not hasattr(data, "__iter__"):
        raise TypeError(
            f"{said(data)} gives no batches: give a jt.data.Dataset, a list of batches, or a function "
            "that returns one"
        )
    return data.iterator(epoch=epoch) if hasattr(data, "iterator") else iter(data)


def said(data: Any) -> str:
    """Data in a few words."""
    text = repr(data)
    return text if len(text) < 60 else f"a {type(data).__name__}"
