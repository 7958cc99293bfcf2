"""Choices among ways of doing one step: what a cost model likes best, or what a clock does.

    way = chooser.choose("product", "f32[1,512,512,512]", ways, trial)

`ways` are in the cost model's order, under names that say all about them. `trial(way)` is a program that
does the step alone (see `trials.py`): who wants to know runs it. A `Chooser` takes the first way; the
one that measures is `runtime/cuda/tuner.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from .program import DeviceProgram

T = TypeVar("T")


class Chooser:
    """Takes what the cost model likes best."""

    wants_all = False  # whether more ways than the first need be thought of

    def choose(
        self,
        family: str,
        what: str,
        ways: Mapping[str, T],
        trial: Callable[[T], DeviceProgram],
    ) -> T:
        """One of the values of `ways`. `family` and `what` name the step for people; that two steps are
        the same is seen by their trials."""
        return next(iter(ways.values()))


class Fixed(Chooser):
    """Takes the way of a certain name in some families, and the first one in all others."""

    wants_all = True

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def choose(
        self,
        family: str,
        what: str,
        ways: Mapping[str, T],
        trial: Callable[[T], DeviceProgram],
    ) -> T:
        name = self._names.get(family, "")
        return ways[name] if name in ways else super().choose(family, what, ways, trial)
