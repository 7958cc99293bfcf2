"""Numbers among the arguments that are compiled in because tracing asked for them.

    @jt.jit
    def f(x, n):
        return x.reshape(n, -1)     # a shape: `n` cannot be a traced number

The first call traces with `n` as a traced number, is asked for it, and traces again with its value.
Calls with arguments of the same structure begin there; a new value of `n` compiles anew.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ..core.specs import Spec
from ..messages.errors import Refusal, TraceAgain, is_answered
from .dispatch import Call

if TYPE_CHECKING:
    from .function import JitFunction

T = TypeVar("T")
_PATIENCE = 16  # three rounds give what was asked for and no more
_GUESSES = ((int, np.integer), (int, np.integer, float, np.floating))


class CompiledNumbers:
    """For each structure of the arguments, the leaves that are compiled in."""

    def __init__(self) -> None:
        self._leaves: dict[Hashable, frozenset[int]] = {}

    def of(self, structure: Hashable) -> frozenset[int]:
        """The leaves that are compiled in, by their positions."""
        return self._leaves.get(structure, frozenset())

    def settle(self, analyse: Callable[[], Call], work: Callable[[Call], T]) -> T:
        """What `work` gives for the call, once all numbers are compiled in that tracing asks for.

        If an error does not tell for which it asked, it may be due to any of them: with all integers
        compiled in, then with all numbers, it is tried again. If that does not help the error is the
        one before, unless Python itself fails for these numbers. What asks for one number after the
        other, of a list that is an argument, say, is given more and more of those beside.
        """
        guesses, first, sure, rounds = iter(_GUESSES), None, frozenset[int](), 0
        while True:
            call = analyse()
            try:
                return work(call)
            except Exception as error:
                if call.failure is not error:
                    raise  # of the compiled code
                failure = error
            asked = _asked(failure, call)
            if asked and first is None:
                rounds += 1
                sure = self._add(call, asked | _beside(call, asked, (1 << rounds) // _PATIENCE))
                continue
            first = first or failure
            new = frozenset[int]()
            while not new and (kinds := next(guesses, None)) is not None:
                new = _numbers(call, kinds)
            if not new:
                self._leaves[call.structure] = sure
                refused = isinstance(failure, Refusal) or isinstance(first, type(failure))
                raise first if refused and not is_answered(first, failure) else failure
            self._add(call, new)

    def _add(self, call: Call, leaves: frozenset[int]) -> frozenset[int]:
        numbers = self._leaves[call.structure] = self.of(call.structure) | leaves
        return numbers


def _numbers(call: Call, kinds: tuple[type, ...]) -> frozenset[int]:
    """The traced leaves that are numbers of these types."""
    pairs = enumerate(zip(call.leaves, call.specs, strict=True))
    return frozenset(
        i for i, (leaf, spec) in pairs if isinstance(spec, Spec) and isinstance(leaf, kinds)
    )


def _beside(call: Call, asked: frozenset[int], width: int) -> frozenset[int]:
    """The integers that stand in the same argument, and at most `width` places from those asked for."""
    if not width:
        return frozenset()
    owners = [name.partition("[")[0] for name in call.leaf_names()]
    near = {(i + k, owners[i]) for i in asked for k in range(-width, width + 1)}
    return frozenset(i for i in _numbers(call, (int,)) if (i, owners[i]) in near)


def _asked(error: Exception, call: Call) -> frozenset[int]:
    """The leaves of numbers that a value, which the error asked for, was computed of; none where it
    was computed of others, too."""
    explicit = [i for i, spec in enumerate(call.specs) if isinstance(spec, Spec)]
    numbers = _numbers(call, (bool, int, float, complex, np.generic))
    leaves = set()
    for parameters in getattr(error, "asked", ()):
        if parameters is None or any(p >= len(explicit) for p in parameters):
            return frozenset()
        leaves |= {explicit[p] for p in parameters}
    return frozenset(leaves) if leaves <= numbers else frozenset()


def settled(function: JitFunction, analyse: Callable[[], Call], work: Callable[[Call], T]) -> T:
    """What `work` makes of a call of the function, in the form in which it can be traced.

    Where that can't be with tables or lists of numbers that are arrays, their rows or numbers are values
    from now on; at last, numbers that shapes need are computed, see `computed_numbers`.
    """
    calls: list[Call] = []

    def analysed() -> Call:
        calls.append(analyse())
        return calls[-1]

    packs, failure = function._packs, None
    while True:
        try:
            return function._numbers.settle(analysed, work)
        except TraceAgain:
            raise
        except Exception as error:
            fewer = calls[-1].packs_less() if calls else None
            if fewer is None or function._packs == 0:
                function._packs, first = packs, failure or error
                if any(function._computed.add(call) for call in calls if call.failure is first):
                    failure = None
                    continue
                if failure is None:
                    raise
                raise error from failure.__cause__
            failure = failure or error
            function._packs = fewer
