"""The helpers that transformed code calls, under the name `_jt_`."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Sequence, Sized
from functools import partial
from typing import Any

from ...ir.record import replace
from ..captures.untraced import as_python as as_python
from ..containers.comprehensions import comprehended as comprehension
from ..containers.comprehensions import comprehended_parts as comprehension_of_parts
from ..containers.growing import made as made
from ..containers.growing import made_class as made_class
from ..containers.growing import made_dict as made_dict
from ..containers.growing import made_of_parts as of_parts
from ..containers.growing import made_set as made_set
from ..containers.growing import repeated as repeated
from ..containers.growing import site_of
from ..containers.kinds import Again
from ..containers.kinds import current as current_kinds
from ..control.regions import TracedRegion
from ..control.unions import Union, bound, is_one_of, only, possible
from ..core.threaded_state import draws
from ..core.trace import require_trace
from ..core.tracers import Tracer
from ..messages import errors
from ..messages.errors import complain
from . import listing  # noqa: F401  (it enters itself into `growing`)
from .beginnings import Beginning
from .branches import branch
from .calls.generators import Generated, Stream, taken
from .calls.iterators import nested
from .calls.modular import reduced as reduced
from .carried import NoneCarriedError
from .elements import delete_item as delete_item
from .elements import elements as elements
from .elements import hold as hold
from .elements import item as item
from .elements import own as own
from .elements import own_first as own_first
from .elements import own_viewed as own_viewed
from .elements import store as store
from .elements import unpacked as unpacked
from .elements import unpacked_around as unpacked_around
from .elements import update as update
from .elements import update_elements as update_elements
from .elements import writing as writing
from .iteration import Items, items_of, numbered
from .logic import and_ as and_
from .logic import asked
from .logic import assert_ as assert_
from .logic import compare as compare
from .logic import if_exp as if_exp
from .logic import in_ as in_
from .logic import is_ as is_
from .logic import is_not as is_not
from .logic import none_of as none_of
from .logic import not_ as not_
from .logic import not_in as not_in
from .logic import or_ as or_
from .logic import refuse as refuse
from .logic import truth as truth
from .loops.loop import loop
from .loops.traced import TracedLoop
from .plain_loops import Rest, rest_of, runs_as_python
from .raising import raised as raised
from .rolling import FEW, Watch, check_numbers, needs_numbers, refuse_growth, traced_test
from .texts import text as text
from .tries import Handler as Handler
from .tries import context as context
from .tries import try_stmt as try_stmt
from .twins import convert as convert
from .twins import provide_helpers
from .users.attributes import attribute as attribute
from .users.attributes import set_attribute as set_attribute
from .users.operators import binary as binary
from .users.operators import unary as unary
from .uses import use
from .variables import State as State
from .variables import in_graph, is_undecided
from .variables import no_result as no_result
from .variables import peek as peek
from .variables import put as put
from .variables import unbound as unbound

Refusal = (errors.Refusal, Again)  # what no handler of the user's takes
slice_ = slice
_LONG = 8  # iterations from which a loop may become an op with its first one
_NUMBERS = 8  # iterations of a loop that may ask for a number each, see `jit.computed_numbers`
_ENDLESS = 200  # iterations of a loop that only a traced condition ends
_UNROLLED = 1  # with no more iterations left, a loop with a traced `break` goes on one by one


def joint(consumer: Any, state: State) -> State:
    """The state of a branch or loop in a generator function, in which the loop over it runs."""
    return state.beside(consumer.state)


def if_stmt(test: Any, then: Callable[[], Any], otherwise: Callable[[], Any], state: State) -> None:
    test = asked(test)
    if not is_undecided(test):
        if test:
            then()
        else:
            otherwise()
        return
    branch(truth(test), [otherwise, then], state)


def while_stmt(test: Callable[[], Any], body: Callable[[], Any], state: State) -> None:
    """An ordinary loop for as long as the condition is an ordinary value."""
    watch = Watch(body) if in_graph() else None
    plain = Rest(body, test) if watch is not None else None
    count = 0
    while True:
        if plain is not None and count == plain.due and plain.runs():
            return
        before, effects = state.get(), _effects()
        go_on = asked(test())
        if is_undecided(go_on):
            break
        if not go_on:
            return
        del before  # the body may replace the arrays in it
        body()
        count += 1
        if (
            watch is not None and count % _ENDLESS == 0
        ):  # what is refused may be why it does not end
            for check in require_trace().checks:
                check()
        if (
            watch is not None
            and watch.many(1)
            and watch.roll(partial(_rest, test, body, state), state)
        ):
            return
    unchanged = all(a is b for a, b in zip(before, state.get(), strict=True))
    del before  # the arrays in it may be let go of
    if unchanged and effects == _effects() and not Beginning(state).changes(test):
        loop(lambda _: truth(test()), lambda _: body(), state, "while", accept=refuse_growth)
        return
    _judged(truth(go_on), test, body, state, refuse_growth)


def _judged(
    go_on: Any,
    test: Callable[[], Any],
    body: Callable[[], Any],
    state: State,
    accept: Callable[[TracedLoop, TracedRegion], None],
) -> None:
    """A loop whose condition does something: it has been evaluated once, and is at the end of each
    iteration."""
    latest = [go_on]

    def iteration(_: Any) -> None:
        body()
        latest[0] = truth(test())

    extended = state.joined("the condition", lambda: latest[0], partial(latest.__setitem__, 0))
    loop(lambda _: latest[0], iteration, extended, "while", accept=accept)


def _rest(test: Callable[[], Any], body: Callable[[], Any], state: State) -> None:
    if Beginning(state).changes(test):
        go_on = traced_test(truth(test()))
        _judged(go_on, lambda: traced_test(truth(test())), body, state, check_numbers)
        return
    loop(
        lambda _: traced_test(truth(test())),
        lambda _: body(),
        state,
        "while",
        accept=check_numbers,
    )


def _effects() -> Any:
    """What tells that something was done: the order of effects goes on, and random numbers."""
    from ..core.trace import current_trace

    trace = current_trace()
    return trace.token if trace is not None else None, draws()


def for_stmt(
    iterable: Any,
    body: Callable[[Any], Any],
    more: Callable[[], Any] | None,
    state: State,
    written: bool = True,
) -> None:
    """`more` tells whether no break or return has ended the loop. `written`: the user has written it as
    a loop, which may run as Python."""
    if type(iterable) is Union:
        iterable = only(iterable, message="'NoneType' object is not iterable")
    if type(iterable) is Union and all(map(_is_run_over, iterable.options.values())):
        _over_either(iterable, possible(iterable), body, more, state)
        return
    if isinstance(iterable, Stream) and iterable.is_new:
        iterable.over(for_stmt, if_stmt, body, more, state)
        return
    items = items_of(iterable) if in_graph() else None
    if items is not None:
        _over(items, body, more, state)
        return
    nest = nested(iterable)
    if nest is not None:
        if not written or not Rest(body, length=nest.length).runs_first(nest.python):
            nest.over(for_stmt, body, more, state)
        return
    rest = iter(iterable)
    plain = rest_of(iterable, body) if written and in_graph() else None
    if plain is not None and plain.runs_first(rest):
        return
    watch = Watch(body) if type(iterable) is range and in_graph() else None
    beginning = None
    if watch is not None and len(iterable) >= _LONG and watch.whole is not False:
        beginning = Beginning(state)
        if watch.whole == beginning.kinds() and _rolls(watch, iterable, body, more, state):
            return
    if watch is not None and _is_op(watch):
        numbers = numbered(iterable)
        error = watch.attempt(partial(_over, numbers, body, more, state, check_numbers), state)
        if error is None:
            return
        if len(iterable) > _NUMBERS:
            raise error
    for count, value in enumerate(rest, 1):
        try:
            body(value)
        except (errors.TracerIndexError, errors.DynamicShapeError) as error:
            if watch is not None and error.wanted:
                _make_op(watch)
            raise
        go_on = more is None or more()
        if is_undecided(go_on):
            _finish(iterable, rest, body, more, state)  # type: ignore[arg-type]
            return
        if not go_on:
            return
        if plain is not None and count == plain.due and plain.runs(rest):
            return
        left = len(iterable) - count if watch is not None else 0
        if watch is not None and not count & (count - 1) and watch.many(-(-left // count)):
            if count == 1 and beginning is not None and beginning.takes_back():
                kinds = beginning.kinds()
                if _rolls(watch, iterable, body, more, state):
                    watch.whole = kinds
                    return
                watch.whole = False
                watch.decided.pop(watch.code, None)
                body(value)  # once more, as it stands
                more is None or more()
            numbers = numbered(iterable[count:])
            if watch.roll(partial(_over, numbers, body, more, state, check_numbers), state):
                return


def _make_op(watch: Watch) -> None:
    """Trace again with a loop as an op. One that was written out needs the length of an array in each
    iteration; the op needs but a bound of them all."""
    kinds = current_kinds()
    if kinds is not None and watch.code not in kinds.loops:
        kinds.loops.add(watch.code)
        raise Again


def _is_run_over(x: Any) -> bool:
    known = x is None or isinstance(x, (list, tuple, range, Items))
    return known or (isinstance(x, Tracer) and x.ndim > 0)


def _over_either(
    union: Union,
    numbers: Sequence[int],
    body: Callable[[Any], Any],
    more: Callable[[], Any] | None,
    state: State,
) -> None:
    """A loop over one of several, as an array that has one row less on one way: a loop for each."""
    first, *rest = numbers
    one = partial(for_stmt, union.options[first], body, more, state, False)
    if not rest:
        one()
        return
    others = partial(_over_either, union, rest, body, more, state)
    branch(is_one_of(union, [first]), [others, one], state, "for", ("another", "one"))


def _is_op(watch: Watch) -> bool:
    kinds = current_kinds()
    return kinds is not None and watch.code in kinds.loops


def _rolls(
    watch: Watch,
    iterable: range,
    body: Callable[[Any], Any],
    more: Callable[[], Any] | None,
    state: State,
) -> bool:
    """Make one op of a whole loop."""
    build = partial(_over, numbered(iterable), body, more, state, check_numbers)
    return watch.roll(build, state)


def _over(
    items: Items,
    body: Callable[[Any], Any],
    more: Callable[[], Any] | None,
    state: State,
    accept: Callable[[TracedLoop, TracedRegion], None] = refuse_growth,
) -> None:
    """A loop op, or the iterations written out if they are few and the op cannot be."""
    if isinstance(items.length, int) and items.length <= 0 and items.going is None:
        return  # the body may ask for more than is known of the items of nothing
    if not isinstance(items.length, int) or not 0 < items.length <= FEW:
        _peeled(items, body, more, state, accept)
        return
    watch = Watch(body)
    error = None
    if not watch.refused:
        error = watch.attempt(partial(_peeled, items, body, more, state, accept), state)
        if error is None:
            return
        if not needs_numbers(error):
            raise error
    for k in range(items.length):
        go_on = more is None or more()
        if is_undecided(go_on):
            branch(truth(go_on), [lambda: None, partial(_iteration, items, body, k)], state, "for")
        elif go_on:
            _iteration(items, body, k)


def _iteration(items: Items, body: Callable[[Any], Any], count: Any) -> None:
    item = items.item(count)
    body(item)
    items.done(count, item)


def _peeled(
    items: Items,
    body: Callable[[Any], Any],
    more: Callable[[], Any] | None,
    state: State,
    accept: Callable[[TracedLoop, TracedRegion], None],
) -> None:
    """A loop op. Where a variable is None until the first iteration, that iteration is traced by itself
    if there surely is one: what comes after it need not ask."""
    peels = isinstance(items.length, int) and items.length > 1
    try:
        _loop_over(items, body, more, state, accept, peels)
        return
    except NoneCarriedError:
        pass
    _iteration(items, body, 0)
    rest = replace(
        items,
        length=items.length - 1,
        item=lambda i: items.item(i + 1),
        done=lambda i, item: items.done(i + 1, item),
    )
    go_on = more is None or more()
    if is_undecided(go_on):
        run = partial(_loop_over, rest, body, more, state, accept)
        branch(truth(go_on), [lambda: None, run], state, "for")
    elif go_on:
        _loop_over(rest, body, more, state, accept)


def _loop_over(
    items: Items,
    body: Callable[[Any], Any],
    more: Callable[[], Any] | None,
    state: State,
    accept: Callable[[TracedLoop, TracedRegion], None],
    peels: bool = False,
) -> None:
    iteration = partial(_iteration, items, body)
    length = items.length
    if more is None and isinstance(length, int):
        loop(
            None,
            iteration,
            state,
            "for",
            counted=True,
            length=length,
            accept=accept,
            independent=items.independent,
            ends=True,
            peels=peels,
        )
        return
    if items.independent and more is not None:
        complain(
            errors.TransformError,
            "`break` or `return` in a loop over jt.prange would leave out iterations that may have run",
            "loop over range(...), which keeps the order.",
        )

    def test(count: Any) -> Any:
        going = items.going or (lambda k: k < length)
        if more is not None and items.may_raise:
            return and_(truth(more()), lambda: truth(going(count)))
        left = truth(going(count))
        return left if more is None else and_(left, lambda: truth(more()))

    if more is not None and more() is False:
        return
    independent = items.independent
    ends = more is None
    loop(
        test,
        iteration,
        state,
        "for",
        counted=True,
        accept=accept,
        independent=independent,
        ends=ends,
        peels=peels,
    )


def _finish(
    iterable: Any,
    rest: Iterator[Any],
    body: Callable[[Any], Any],
    more: Callable[[], Any],
    state: State,
) -> None:
    """The iterations that are left of an ordinary loop which a traced condition may end."""
    left: Sequence[Any] = list(rest) if isinstance(iterable, range) else []
    numbers = iterable[-len(left) :] if left else range(0)
    if type(iterable) is itertools.count:
        numbers, rest = _counted(rest)
    if len(numbers) > _UNROLLED:
        try:
            _over(numbered(numbers), body, more, state)
            return
        except (errors.TracerIndexError, errors.TracerConversionError):
            pass  # the body needs the number itself, as a list's index or in a shape
    for count, value in enumerate(left or rest):
        if count >= _ENDLESS and not isinstance(iterable, Sized):
            complain(
                errors.TransformError,
                f"a loop over a {type(iterable).__name__}, which a traced condition ends, has no end "
                "while it is traced",
                "write `while`, or loop over a range or an array and `break`.",
            )
        branch(truth(more()), [lambda: None, partial(body, value)], state, "for")


def _counted(counter: Iterator[Any]) -> tuple[range, Iterator[Any]]:
    """The integers that `itertools.count` has left, as far as 64 bits go, and the counter itself."""
    first, second = next(counter), next(counter)
    numbers = range(0)
    if type(first) is type(second) is int and first != second:
        end = sys.maxsize if second > first else -sys.maxsize
        numbers = range(first, end, second - first)
    return numbers, itertools.chain((first, second), counter)


def searched(
    search: Any,
    items: Any,
    plain: Callable[[Any], Any],
    lazily: Callable[[Any], Any],
    by_loop: Callable[..., Any],
    shared: tuple[Any, ...],
    *default: Any,
) -> Any:
    """`any`, `all` or `next` of a generator expression over `items`, which `lazily` makes and `plain` as
    it was written; `by_loop` is the same search as a loop (see `syntax.searches`)."""
    if search not in (any, all, next) or not in_graph():
        return convert(search)(lazily(items), *default)
    if runs_as_python(plain, (items, shared, default)):
        return search(plain(items), *default)
    if isinstance(items, (range, list, tuple, dict, set, str)) and len(items) <= _LONG:
        return convert(search)(lazily(items), *default)
    return by_loop(items, *default, *shared)


def made_of_parts(name: str, stars: str, parts: tuple[Any, ...]) -> Any:
    """`[*a, b]` and `{*a, b}`: `stars` says which parts are run over."""
    pairs = zip(parts, stars, strict=True)
    return of_parts(
        name, stars, tuple(taken(x) if star == "*" else x for x, star in pairs), site_of()
    )


def comprehended(items: Any, *parts: Any) -> Any:
    """A comprehension, see `containers.comprehensions`."""
    site = site_of()
    return use(lambda items: comprehension(items, *parts, site=site), taken(items))


def comprehended_parts(items: Any, *parts: Any) -> Any:
    """A comprehension of several loops."""
    site = site_of()
    return use(lambda items: comprehension_of_parts(items, *parts, site=site), taken(items))


def generated(
    several: bool,
    items: Any,
    lazily: Callable[[Any], Any],
    listed: Callable[[Any], Any],
    when: Callable[[Any], Any] | None = None,
) -> Any:
    """A generator expression, see `calls.generators`."""
    if not in_graph():
        return lazily(items)
    return Generated(site_of(), items, lazily, listed, when, several)


def returned(done: Any, result: Any) -> Any:
    """What a function returns that may have come to a `return`: None if it has not."""
    if done is True:
        return result
    if done is False or result is None:
        return None
    return if_exp(done, lambda: result, lambda: None)


ld = bound  # where the variable may have no value
provide_helpers(sys.modules[__name__])
