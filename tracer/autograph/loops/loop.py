"""`while test(count): body(count)` as an op, or as its first iteration and an op.

Where an iteration changes a container that others see, and binds its name anew, the container is that of
the others in the first iteration only: that one is traced by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...arrays.late_checks import check_now
from ...control.regions import TracedRegion
from ...control.unions import assume, implied
from ...core.sharing import Doubt, settle_doubts
from ..branches import branch
from ..carried import OthersChangedError
from ..logic import truth
from ..raising import Raised
from ..variables import State
from .traced import TracedLoop


def loop(
    test: Callable[[Any], Any] | None,
    body: Callable[[Any], Any],
    state: State,
    what: str,
    *,
    counted: bool = False,
    length: int | None = None,
    accept: Callable[[TracedLoop, TracedRegion], None] = lambda built, region: None,
    independent: bool = False,
    ends: bool = False,
    peels: bool = False,
    is_rest: bool = False,
) -> None:
    """`while test(count): body(count)`, with what it does to the variables of `state`.

    `count` is 0, 1, ... if the loop is `counted`, else None. Without a test there are `length`
    iterations. `accept` may raise when it sees the body. `independent`: so `jt.prange` says.
    `ends`: nothing but the count ends it. `peels`: NoneCarriedError if a variable is None at first.
    Where each iteration raises, there is at most the first. Where one changes a container that others
    see and binds its name anew, the first is traced by itself: the others are the loop (`is_rest`).
    """

    def first_and_rest() -> None:
        body(0 if counted else None)
        if length is None or length > 1:
            loop(
                test and later(test),
                later(body),
                state,
                what,
                counted=counted,
                length=length and length - 1,
                accept=accept,
                ends=ends,
                is_rest=True,
            )

    def later(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda count: function(count + 1 if counted else None)

    def whole() -> list[Doubt]:
        built = TracedLoop(state, what, counted, length)
        built.ends, built.peels = ends, peels
        built.is_rest = is_rest or independent

        def iteration(count: Any) -> Any:
            if test is not None and built.has_unions:  # what the condition says of them holds in it
                assume(implied(test(count))[1])
            return body(count)

        try:
            region = built.body(iteration)
        except OthersChangedError as error:
            if built.is_rest:
                built.refuse_changes_of_others(str(error))
            if test is None:
                first_and_rest()
            else:
                first = truth(test(0 if counted else None))
                branch(first, [lambda: None, first_and_rest], state, what)
            return []
        except Exception as error:
            if test is None or Raised.of(error) is None:
                raise
            branch(truth(test(0)), [lambda: None, lambda: body(0)], state, what)
            return []
        accept(built, region)
        doubts = built.doubts
        built.emit(test, region, independent)
        if test is not None and built.has_unions and not counted:
            assume(implied(test(None))[0])
        check_now()
        return [*doubts, *built.doubts]

    settle_doubts(whole())
