"""`try` around traced code: its handlers run where the compiled function fails.

    try:                                 the body is traced to see what may fail in it (`failures`);
        y = np.linalg.inv(a)      ->     whether it will is computed first, and is the condition of a
    except np.linalg.LinAlgError:        branch: the body, or a handler
        y = np.linalg.pinv(a)

So the body is run again, in a sense; a handler runs after the statements before the one that fails,
which must not have done anything yet. What Python raises while the function is traced, it raises at
every call, and its handler is taken at once.
"""

from __future__ import annotations

import copy
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from ...ir.graph import Op
from ...ir.passes.failures import (
    changes_before,
    exception_of,
    failures,
    first_failure,
    message,
    tellable,
)
from ...ir.record import record, replace
from ..containers.kinds import Again
from ..core.effects import advance, order_token
from ..core.trace import require_trace
from ..core.tracers import wrap
from ..core.tracing import LEFT_REGION
from ..messages import errors
from ..messages.errors import complain
from .branches import Trial, branch, trial
from .logic import truth
from .raising import Raised, raised
from .users.operators import of_users
from .variables import State, in_graph

_UNTOLD = {
    "recurse": "the function is inside of its own call then, and what that raises is not known yet",
    "recursion": "how deep it is called is not known before",
}
_NOBODYS = -2  # not -1, which says that nothing fails


@record
class Handler:
    """One `except` clause: the classes it takes, and what it does with an exception. It looks at the
    exception if it `asks`."""

    kinds: Callable[[], Any]
    run: Callable[[BaseException], None]
    asks: bool

    def takes(self, kind: type[BaseException], exactly: bool) -> bool:
        """Whether it takes an exception of that class, or, if the class is not `exactly` that, may take
        one of which it is a base."""
        kinds = [one for one in _flat(self.kinds()) if isinstance(one, type)]
        return any(
            issubclass(kind, one) or (issubclass(one, kind) and not exactly) for one in kinds
        )


def _flat(kinds: Any) -> Iterator[Any]:
    if isinstance(kinds, tuple):
        for kind in kinds:
            yield from _flat(kind)
    else:
        yield kinds


@record
class Failure:
    """An op that may fail, the number of the handler that takes what it raises, or `_NOBODYS`, and that
    of the statement that it is in."""

    op: Op
    kind: type[BaseException]
    handler: int
    step: int = 0

    @property
    def is_told(self) -> bool:
        """Whether it is known what the exception says."""
        error = exception_of(self.op)
        if error is None:
            return message(self.op) is not None
        return not Raised(error).values and not hasattr(error, "__notes__")

    def exception(self) -> BaseException:
        """What is raised, with what it says if that is known."""
        error = exception_of(self.op)
        if error is not None:
            made = copy.copy(error)
            made.args = made.args if self.is_told else ()
            return made
        text = message(self.op)
        return self.kind() if text is None else self.kind(text)


def try_stmt(
    steps: Sequence[Callable[[], None]],
    otherwise: Callable[[], None],
    handlers: Sequence[Handler],
    kept: Sequence[Sequence[str] | None],
    state: State,
) -> None:
    """`steps` are the statements of the body, `otherwise` what `else` does. `kept` is None for one that
    has done nothing when it fails; else the variables that it binds which are read then."""
    starts: list[int] = []  # how many ops there are when a statement begins

    def body() -> None:
        starts.clear()
        for step in steps:
            starts.append(len(require_trace().graph.ops))
            step()

    if not in_graph():
        _plainly(lambda: _all(steps), otherwise, handlers)
        return
    one = trial(body, state, "the body of `try`")
    found = [] if one is None else _failures(one.ops, handlers, starts)
    if one is None or all(f.handler < 0 for f in found):
        _watched(lambda: _all(steps), otherwise, handlers)
        return
    _check(one, found, handlers, kept)
    token = [order_token()] if any(op.name == "create_token" for op in one.ops) else []
    outputs = [None for _ in token]
    graph = one.region.close(one.region.captured, outputs, outputs, token_at=0 if token else None)
    told = set(tellable(graph.ops))
    closed = zip(_failures(graph.ops, handlers), found, strict=True)
    found = [replace(f, step=before.step) for f, before in closed if f.op in told]
    handled = max((k for k, f in enumerate(found) if f.handler >= 0), default=-1)
    ways = sorted({(f.step, f.handler) for f in found if f.handler >= 0})
    numbers = {  # behind the last that is handled nothing is asked
        f.op: ways.index((f.step, f.handler)) if f.handler >= 0 else _NOBODYS
        for k, f in enumerate(found)
        if k <= handled or exception_of(f.op) is not None
    }
    failing = first_failure(graph, numbers)
    results = require_trace().builder.inline(failing, [*token, *one.region.captured])
    advance(tuple(results))
    chosen = wrap(results[-1], "i")
    said = {numbers[f.op]: f for f in reversed(found[: handled + 1])}

    def handle(numbers: Sequence[int]) -> None:
        first, *rest = numbers
        if rest:
            branch(
                truth(chosen == first),
                [lambda: handle(rest), lambda: handle([first])],
                state,
                "try",
                ("another handler", "a handler"),
            )
            return
        failure = said[first]
        step, handler = ways[first]
        _all(steps[:step])
        try:
            raise raised(failure.exception())
        except failure.kind as error:
            handlers[handler].run(error)

    def whole() -> None:
        _all(steps)
        otherwise()

    taken = sorted(set(numbers.values()) - {_NOBODYS})
    branch(truth(chosen < 0), [lambda: handle(taken), whole], state, "try", ("except", "try"))


def _all(steps: Sequence[Callable[[], None]]) -> None:
    for step in steps:
        step()


def _failures(
    ops: Sequence[Op], handlers: Sequence[Handler], starts: Sequence[int] = (0,)
) -> list[Failure]:
    """`starts` are the places among the ops where statements begin."""
    found = []
    for place, outer in enumerate(ops):
        step = max(bisect_right(starts, place) - 1, 0)
        for op, kind in failures([outer]):
            exactly = exception_of(op) is not None
            numbers = [k for k, handler in enumerate(handlers) if handler.takes(kind, exactly)]
            found.append(Failure(op, kind, numbers[0] if numbers else _NOBODYS, step))
    return found


def _plainly(
    body: Callable[[], None], otherwise: Callable[[], None], handlers: Sequence[Handler]
) -> None:
    try:
        body()
    except errors.Refusal:  # no exception of the program's
        raise
    except BaseException as error:
        handler = _handler_of(error, handlers)
        if handler is None:
            raise
        handler.run(error)
    else:
        otherwise()


def _handler_of(error: BaseException, handlers: Sequence[Handler]) -> Handler | None:
    for handler in handlers:
        try:
            raise error
        except handler.kinds():
            return handler
        except BaseException as other:
            if other is not error:  # the class to catch is none
                raise
    return None


def _watched(
    body: Callable[[], None], otherwise: Callable[[], None], handlers: Sequence[Handler]
) -> None:
    """As Python does it. What compiled code may raise, and a handler would take, is refused."""
    trace = require_trace()
    ops = trace.graph.ops
    start = len(ops)

    def at_once() -> None:
        """The body, whose checks do not wait for the end of a loop around the `try`."""
        counts, trace.counts = trace.counts, False
        try:
            body()
        finally:
            trace.counts = counts

    def check() -> None:
        for failure in _failures(ops[start:], handlers):
            if failure.handler >= 0:
                _refuse(failure, "it is not known whether it fails before the body has run")

    def finished() -> None:
        check()
        otherwise()

    def checked(handler: Handler) -> Handler:
        def run(error: BaseException) -> None:
            check()
            if getattr(error, LEFT_REGION, False):
                complain(
                    errors.TransformError,
                    f"{type(error).__name__} is raised in a branch or loop inside of the `try`, which "
                    "is traced whether it is taken or not: nobody knows yet whether the handler runs",
                    "test for the failure with `if`, or move the `try` into the branch.",
                )
            handler.run(error)

        return Handler(handler.kinds, run, handler.asks)

    _plainly(at_once, finished, [checked(handler) for handler in handlers])


def _check(
    one: Trial,
    found: Sequence[Failure],
    handlers: Sequence[Handler],
    kept: Sequence[Sequence[str] | None],
) -> None:
    """The body has to be one that can be run again, and has done nothing when it fails."""
    told = set(tellable(one.ops))
    changing = changes_before(one.ops, [f.op for f in found if f.handler >= 0])
    for failure in found:
        if failure.handler < 0:
            continue
        if failure.op not in told:
            _refuse(failure, _UNTOLD.get(failure.op.name, "Python does it"))
        if handlers[failure.handler].asks and not failure.is_told:
            _refuse(
                failure, "what the exception says depends on values, and the handler asks for it"
            )
        if changing is not None:
            _refuse(failure, f"`{changing.name}` happens in the body, too")
        names = kept[failure.step]
        changes = one.changed or (one.written and names is not None)
        if changes and one.is_late(failure.op):
            _refuse(failure, "the body changes arrays or objects, perhaps before that")
        if names:
            _refuse(
                failure,
                f"the statement gives {', '.join(names)} a value, perhaps before that, which is read "
                "later",
            )


def _refuse(failure: Failure, why: str) -> NoReturn:
    op = failure.op
    name = failure.kind.__name__ if failure.kind is not Exception else "whatever the call raises"
    where = f", at line {op.loc.line}" if op.loc is not None else ""
    complain(
        errors.TransformError,
        f"a handler is there for {name}, which `{op.name}`{where} raises when the compiled function "
        f"runs, and cannot be called: {why}",
        "put what may fail into a `try` of its own, one statement; or test for the failure with `if`.",
        line=op.loc,
    )


def context(manager: Any) -> Any:
    """What a `with` statement enters: `contextlib.suppress` is a handler, too."""
    if in_graph():
        if type(manager) is suppress:
            return _Suppressing(manager)
        if of_users(manager, "__enter__") or of_users(manager, "__exit__"):
            return _Users(manager)
    return manager


class _Users:
    """A context manager of a user's class."""

    def __init__(self, manager: Any) -> None:
        self.manager = manager

    def __enter__(self) -> Any:
        return self._method("__enter__")(self.manager)

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        if isinstance(error, (errors.Refusal, Again)):  # no exception of the program's
            return False
        result = self._method("__exit__")(self.manager, kind, error, traceback)
        return bool(kind is not None and result)

    def _method(self, name: str) -> Any:
        return of_users(self.manager, name) or getattr(type(self.manager), name)


class _Suppressing:
    """`suppress` where a function is traced: what would be suppressed at run time is refused."""

    def __init__(self, manager: suppress) -> None:
        kinds = manager._exceptions  # type: ignore[attr-defined]
        self.manager, self.handler = manager, Handler(lambda: kinds, lambda error: None, False)

    def __enter__(self) -> None:
        self.trace = require_trace()
        self.start, self.counts = len(self.trace.graph.ops), self.trace.counts
        self.trace.counts = False

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        self.trace.counts = self.counts
        if isinstance(error, errors.Refusal):  # no exception of the program's
            return False
        for failure in _failures(self.trace.graph.ops[self.start :], [self.handler]):
            if failure.handler >= 0:
                _refuse(failure, "contextlib.suppress has no second way: write `try` and `except`")
        return bool(self.manager.__exit__(kind, error, traceback))
