"""A call of a new kind is traced: again and again, until what it takes to compile it is known."""

from __future__ import annotations

import sys
import threading
import traceback
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.record import replace
from ..captures.calling import call_with_stand_ins, refuse_random
from ..captures.captured_variables import CapturedVariables
from ..captures.effects.recipes import Effects
from ..captures.kept import ChangedArgument, Kept, Place, WantsHeap
from ..captures.natives import linked_classes
from ..captures.purity import random_states, watched_entropy
from ..captures.running import watched_code
from ..containers.kinds import Argument, Enters, Kinds, settled
from ..containers.leaving import leaving
from ..containers.packed import Packed
from ..control.unions import with_exact
from ..core.specs import Static
from ..core.stack import deep_stack
from ..core.trace import nesting, require_trace
from ..core.tracing import Traced, trace_function
from ..data import pytree
from ..host_random.interception import exchanged
from ..messages import errors
from ..messages.errors import complain
from ..messages.source import is_user_frame, raised_line
from .computed_numbers import Answers, inputs_of
from .dispatch import Call
from .options import annotated

if TYPE_CHECKING:
    from .function import JitFunction


_TRIES = 4
_FEW_NODES = 32  # that hold each other: a program of each of them is not too long
_NESTED = 48  # traces inside of each other, branches of branches, that a function may need
_DEEP_ONES = 1000  # traces far inside of others
_OFTEN = 8  # calls inside of each other of a function that may call itself without end


def trace_call(
    function: JitFunction,
    call: Call,
    captured: CapturedVariables | None = None,
    *,
    views: bool = True,
) -> tuple[Traced, CapturedVariables]:
    """Trace with tracers in place of closed-over arrays. Where Python needs their values
    (`if W[0] > 0`, `range(N[1])`), they stay arrays, and their content is guarded."""
    captured = captured or function._captured_variables(call)
    try:
        with deep_stack():
            return _trace_objects(function, call, captured, views)
    except ChangedArgument:
        raise
    except RecursionError as error:
        call.failure = _endless(error)
        raise call.failure from None
    except Exception as error:
        call.failure = error
        raise


def _trace_objects(
    function: JitFunction, call: Call, captured: CapturedVariables, views: bool
) -> tuple[Traced, CapturedVariables]:
    """Trace with objects of outside as they are, or, where these hold others of their class, as nodes of
    trees and lists, and are many, or the function cannot be traced otherwise, as native ones."""
    paths = [path for path, _ in captured.variables.values.values()]
    values = [path.base.find() for path in (*captured.objects, *paths)]
    classes, count = linked_classes(values) if captured.substitutes else (frozenset(), 0)
    linked = None
    if count > _FEW_NODES:
        linked = _trace_linked(function, call, captured, views, classes)
    if linked is not None:
        return linked
    try:
        return _trace_recursive(function, call, captured, views)
    except (errors.JitneyError, RecursionError):
        if 0 < count <= _FEW_NODES:
            linked = _trace_linked(function, call, captured, views, classes)
        if linked is None:
            raise
        return linked


def _trace_linked(
    function: JitFunction,
    call: Call,
    captured: CapturedVariables,
    views: bool,
    classes: frozenset[type],
) -> tuple[Traced, CapturedVariables] | None:
    """Trace with objects of these classes as native ones; None if the function cannot be traced so."""
    policy = replace(captured.policy, objects=True, classes=classes)
    again = function._captured_variables(call, policy=policy)
    if again.heap is None or again.heap.mentions.asks or again.heap.mentions.reflects:
        return None  # code may ask which attributes there are
    call.containers = Kinds()
    try:
        traced, found = _trace_recursive(function, call, again, views)
        heap = found.heap
        # Arrays that the function changes could be those of which native ones have copies.
        changes = heap is not None and heap.natives.holds_arrays and traced.mutated
        if heap is not None and not changes and heap.can_enter():
            return traced, found
    except (errors.JitneyError, RecursionError):
        pass
    call.containers = Kinds()
    return None


def _with_fixed(
    function: JitFunction, call: Call, captured: CapturedVariables, views: bool, first: Exception
) -> tuple[Traced, CapturedVariables] | None:
    """Trace with the numbers of the heap as they are, in case that Python asks for them; then with its
    arrays, too, which a function that does not change them may ask for. `first` is why it is
    tried."""
    if captured.heap is None:
        return None
    answered = None
    if captured.heap.has_numbers:
        try:
            policy = replace(captured.policy, fixed=True)
            again = function._captured_variables(call, policy=policy)
            return _trace_settled(function, call, again, views)
        except errors.JitneyError as error:
            answered = error if errors.is_answered(first, error) else None
    policy = replace(captured.policy, fixed=True, arrays=True)
    again = function._captured_variables(call, policy=policy)
    seen = [] if again.heap is None else again.heap.fixed_arrays()
    traced = _trace_without_changes(function, call, again, views, seen)
    if traced is None:
        if answered is not None:
            raise answered
        return None
    if traced[1].heap is not None:
        traced[1].heap.keeps_arrays = _gives_back(traced[0], traced[1].effects, seen)
    return traced


def _gives_back(
    traced: Traced, effects: Effects | None, arrays: Sequence[np.ndarray[Any, Any]]
) -> bool:
    """Whether some of these arrays, or views of them, are returned or stored: a call gives those that
    were there when the function was traced."""
    leaves = [] if effects is None else effects.leaves
    outer = [*leaves, *(capture.outer for capture in traced.captures)]
    found = [x for x in outer if isinstance(x, np.ndarray)]
    return any(np.may_share_memory(x, array) for x in found for array in arrays)


def _trace_without_changes(
    function: JitFunction,
    call: Call,
    captured: CapturedVariables,
    views: bool,
    arrays: Sequence[np.ndarray[Any, Any]],
) -> tuple[Traced, CapturedVariables] | None:
    """Trace a function that sees these arrays themselves. None if it cannot be, or changes one of them:
    that would happen once, while it is traced, and is undone."""
    call.still = pairs = [(array, array.copy()) for array in arrays]
    changed = []
    try:
        traced = _trace_settled(function, call, captured, views)
    except errors.JitneyError:
        traced = None
    finally:
        call.still = ()
        changed = [(array, old) for array, old in pairs if array.tobytes() != old.tobytes()]
        for array, old in changed:
            np.copyto(array, old)
    return None if changed else traced


def _trace_either(
    function: JitFunction, call: Call, captured: CapturedVariables, views: bool
) -> tuple[Traced, CapturedVariables]:
    """Trace with stand-ins for what is closed over, or else without."""
    try:
        return _trace_settled(function, call, captured, views)
    except WantsHeap:
        captured = function._captured_variables(call, policy=replace(captured.policy, objects=True))
        return _trace_either(function, call, captured, views)
    except errors.JitneyError as first:
        fixed = _with_fixed(function, call, captured, views, first)
        if fixed is not None:
            return fixed
        if not captured.hidden or captured.heap is not None:  # which has been tried as it is
            raise
        plain = function._captured_variables(call, substitute=False)
        traced = _trace_without_changes(function, call, plain, views, plain.guarded_arrays())
        if traced is not None:
            return traced
        raise


def _trace_recursive(
    function: JitFunction, call: Call, captured: CapturedVariables, views: bool
) -> tuple[Traced, CapturedVariables]:
    """Trace. Functions that call themselves without end, or often, are traced as native ones that do so;
    if that cannot be, all of it is traced as deep as it goes, with the containers of outside as they
    are if that helps."""
    try:
        return _trace_natively(function, call, captured, views)
    except _Fruitless as fruitless:
        reason = fruitless.reason
        if captured.policy.classes:  # no depth is known of native objects
            raise reason or RecursionError from None
        call.containers = Kinds()
    if captured.heap is not None:  # containers of known length may say how deep it goes
        policy = replace(captured.policy, natives=frozenset(), barred=True)
        known = function._captured_variables(call, policy=policy)
        try:
            return _trace_either(function, call, known, views)
        except (errors.JitneyError, RecursionError):
            pass
    try:
        return _trace_either(function, call, captured, views)
    except (RecursionError, errors.JitneyError) as error:
        raise reason or error from None


class _Fruitless(Exception):
    """A function calls itself, and cannot be traced as a native one; `reason` says why, if known."""

    def __init__(self, reason: errors.JitneyError | None) -> None:
        self.reason = reason


def _trace_natively(
    function: JitFunction, call: Call, captured: CapturedVariables, views: bool
) -> tuple[Traced, CapturedVariables]:
    """Trace, and again for each function that turns out to call itself."""
    from ..autograph.recursion.recursive import CallsItself, natively

    before = nesting.most, nesting.many
    most, many = (8, 16) if captured.policy.classes else (_NESTED, _DEEP_ONES)
    names: set[tuple[str, str]] = set()
    reason = None
    for _ in range(_TRIES):
        try:
            nesting.most, nesting.many = min(before[0], most), min(before[1], many)
            with natively(names, look=True):
                return _trace_either(function, call, captured, views)
        except RecursionError as error:
            found = {error.name} if isinstance(error, CallsItself) else _endless_names(error)
            if found <= names:
                break
            names |= found
            call.containers = Kinds()
        except errors.JitneyError as error:
            if not names:
                raise
            reason = error
            break
        finally:
            nesting.most, nesting.many = before
    raise _Fruitless(reason) from None


def _endless_names(error: RecursionError) -> set[tuple[str, str]]:
    """The user's function, by file and name, that called itself the most often."""
    frames = (
        frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__) if is_user_frame(frame)
    )
    counts = Counter((code.co_filename, code.co_qualname) for code in frames)
    return {name for name, count in counts.most_common(1) if count > _OFTEN}


def _endless(error: RecursionError) -> Exception:
    """What is said of a function that calls itself until Python's stack is full."""
    try:
        complain(
            errors.EndlessRecursionError,
            "maximum recursion depth exceeded: a function calls itself, and while it is traced it "
            "does so without end, as the condition that ends it depends on traced values",
            "write a loop, or @jt.recursive around a function of numbers; or make what decides how deep "
            "it goes static (static_argnames).",
            line=raised_line(error),
        )
    except errors.EndlessRecursionError as endless:
        return endless


def _trace_settled(
    function: JitFunction, call: Call, captured: CapturedVariables, views: bool
) -> tuple[Traced, CapturedVariables]:
    """Trace, and drop the guards of what only code reads that has not run. Containers that turn out to
    have to be native are that, unless the function cannot be traced so."""
    failure: Exception | None = None
    while True:
        policy = captured.policy
        try:
            with watched_code(captured.doubtful) as ran:
                traced = _trace_with(function, call, captured, views)
            if not captured.missed or policy.fixed:
                break
            policy = replace(policy, more=policy.more | captured.missed)
        except Enters as found:
            policy = replace(policy, natives=policy.natives | found.places)
        except errors.TraceAgain:
            raise
        except Exception as error:
            if failure is not None:
                raise failure from None
            if captured.heap is None or not captured.heap.natives:
                raise
            failure = error
            call.containers = Kinds()
            policy = replace(policy, natives=frozenset(), barred=True)
        captured = function._captured_variables(call, policy=policy)
    if captured.settle(ran):
        return traced, captured
    captured = function._captured_variables(call, wary=True, policy=captured.policy)
    with watched_code(captured.doubtful) as ran:
        traced = _trace_with(function, call, captured, views)
    captured.settle(ran)
    return traced, captured


def _trace_with(
    function: JitFunction, call: Call, captured: CapturedVariables, views: bool
) -> Traced:
    """Trace, and refuse what draws random numbers meanwhile. If it may have been another thread that
    drew them, the function is traced again: one that draws does so each time."""
    for _ in range(_TRIES):
        before, loaded = random_states(), _has_numpys()
        try:
            with watched_entropy() as requests, exchanged():
                traced = _trace_once(function, call, captured, views)
        except Exception:
            if _has_numpys() and not loaded:
                continue
            raise
        if requests:
            refuse_random("the operating system (by a generator without a seed, secrets, a UUID)")
        if _has_numpys() and not loaded:
            continue  # its functions were not yet ours, which know that this is a trace
        after = random_states().items()
        drawn = [n for n, s in after if s != before.get(n, "unused" if n == "np.random" else s)]
        if not drawn:
            return traced
        if threading.active_count() == 1:
            break
    refuse_random(drawn[0])


def _has_numpys() -> bool:
    """Whether NumPy has loaded its generators, as it does when somebody asks for them."""
    return "numpy.random" in sys.modules


def _trace_once(
    function: JitFunction, call: Call, captured: CapturedVariables, views: bool
) -> Traced:
    stand_ins = captured.values()
    named = call.named_specs()
    leaves = [*named, *captured.specs]
    tree = pytree.flatten(((call.args, call.kwargs, stand_ins), {}))[1]

    answers = None
    if call.computed:
        answers = Answers(call.computed, inputs_of(call.specs, call.leaves, captured.arrays()))

    def run(args: Any, kwargs: Any, hidden: Any) -> Any:
        before = call.parts(args, kwargs)
        # The containers of the caller's, or those that the function has in the place of them.
        kept = Kept([*enumerate(args), *kwargs.items()], call.whole)
        here = require_trace()
        here.lacks_heap, here.still = captured.heap is None and captured.substitutes, call.still
        here.answers, here.times = answers, function.times
        for container, place in (*kept.taken_apart, *_packed(args, kwargs)):
            call.containers.births[container] = Argument(place)
        work = partial(call_with_stand_ins, captured, args, kwargs, hidden, kept)
        result = annotated(function._function, args, kwargs, work)
        call.refuse_changes(before, call.parts(args, kwargs))
        result = leaving(with_exact(result))
        if here.lengths:
            from ..lengths.sized import whole_results

            return whole_results(result, here, {n.name: n.capacity for n in call.lengths})
        return result

    # Static leaves of hidden containers are handed on as they are.
    hidden_leaves = iter(pytree.flatten(stand_ins)[0])
    for i in range(len(call.specs), len(leaves)):
        value = next(hidden_leaves)
        if isinstance(leaves[i], Static):
            leaves[i] = Static(value)

    def trace() -> Traced:
        return trace_function(
            run,
            leaves,
            tree,
            name=function.__name__,
            values_only=False,
            views=views,
            refuse_as=function._function,
            options=function._options.trace(call.on_cpu),
            sharing=captured.heap is not None,
            adapted=True,
        )

    traced = settled(trace, call.containers)
    call.guard = None if answers is None else answers.guard()
    return traced


def _packed(args: Sequence[Any], kwargs: dict[str, Any]) -> Iterable[tuple[Hashable, Place]]:
    """The sites of the lists that are arrays, with the places where they were given."""
    places: list[tuple[Place, Any]] = [*enumerate(args), *kwargs.items()]
    for place, argument in places:
        for leaf in pytree.flatten(argument)[0]:
            if isinstance(leaf, Packed):
                yield leaf.site, place
