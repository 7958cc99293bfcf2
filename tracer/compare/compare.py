"""`jt.compare`: a compiled function beside what it should compute, and the op that is at fault."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import numpy as np

from ...ir.interpreter import evaluate
from ...ir.record import record, replace
from ...runtime.cuda.array import DeviceArray
from ..data import pytree
from ..explain.units import at
from ..jit.decorator import jit, unbound
from ..jit.function import JitFunction
from ..messages.tracebacks import shortened
from ..transforms.derivatives import vjp
from .gradients import by_differences, is_float, wrong_rule
from .numpy_calls import wrong_call
from .search import Culprit, run_and_keep, search
from .values import Difference, differences

_NEAR = 1e-3  # relative: what differences of functions are good for


@record
class Fault:
    """An op or a call of NumPy that is wrong: its line, at which stage, a program that shows it."""

    op: str
    line: str
    stage: str
    program: str

    def __str__(self) -> str:
        return f"{self.op}{self.line}, in {self.stage}"


class Comparison(str):
    """What `jt.compare` found, as text.

    same         whether values and gradients agree
    values       a `Difference` for each array of the result that differs
    gradients    "agree", "differ", or why they were not compared
    fault        the first op that is wrong, a `Fault`; None if all is well, or none was found
    """

    same: bool
    values: tuple[Difference, ...]
    gradients: str
    fault: Fault | None

    def __bool__(self) -> bool:
        return self.same

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


@shortened
def compare(
    function: Callable[..., Any],
    *args: Any,
    against: Callable[..., Any] | str | None = None,
    gradients: bool = True,
    tolerance: float | None = None,
) -> Comparison:
    """Whether `function`, compiled, gives for `args` what it should, and which op is wrong if not.

    >>> compare(lambda x: np.tanh(x).sum(), np.linspace(-1, 1, 9))
    the same as in plain Python: 1 array, gradients agree

    against     None: the function as it stands, run by Python and NumPy; "interpreter": its traced
                graph, run op by op; or another function, compiled or not
    gradients   compare derivatives too, of float32 and float64 arrays: compiled ones along a random
                direction with differences of what `against` gives, and with the interpreter's
    tolerance   by which results may differ, relative to the largest element. None: by rounding

    If they differ, the way from the function to machine code is searched: each call of NumPy, each op
    with what it depends on, each pass, each derivative rule, those of loops and branches included. The
    first that is wrong is named, with its line and a program of a few lines that shows it. The result
    is a string, false if something differs. Functions are called some times, with copies of arguments.

    Raises what the functions raise, and ValueError for another `against`.
    """
    if against is not None and against != "interpreter" and not callable(against):
        raise ValueError(f"against={against!r}: give a function, 'interpreter' or None")
    compiled, args = unbound(function, args)
    plain = compiled.__wrapped__
    reference, name = plain, "in plain Python"
    if against == "interpreter":
        reference, name = _interpreted(compiled), "interpreted"
    elif callable(against):
        reference, name = against, "in the other"
    got, wanted = compiled(*_copies(args)), reference(*_copies(args))
    leaves, expected = pytree.flatten(got)[0], pytree.flatten(wanted)[0]
    paths = pytree.leaf_names(got, "result")
    given = pytree.flatten(tuple(args))[0]
    found = tuple(differences(leaves, expected, tolerance, paths, given))
    fault = _fault(compiled, plain, args, tolerance) if found else None
    derivatives = "not compared"
    if gradients and not found:
        derivatives, fault = _gradients(compiled, reference, args, leaves, tolerance)
    return _shown(name, len(leaves), found, derivatives, fault)


def _shown(
    name: str, count: int, found: tuple[Difference, ...], derivatives: str, fault: Fault | None
) -> Comparison:
    same = not found and derivatives != "differ"
    arrays = f"{count} array{'s' * (count != 1)}"
    if same:
        text = f"the same as {name}: {arrays}, gradients {derivatives}"
    else:
        lines = [
            f"not the same as {name}: of {arrays} {len(found)} differ, gradients {derivatives}"
        ]
        lines += [f"  {difference}" for difference in found[:8]]
        if fault is None:
            lines.append("  no op is wrong by itself: the functions may differ")
        else:
            lines += [f"  first to differ: {fault}", "  a program that shows it:"]
            lines += [f"    {line}" for line in fault.program.splitlines()]
        text = "\n".join(lines)
    made = Comparison(text)
    made.same, made.values, made.gradients, made.fault = same, found, derivatives, fault
    return made


def _interpreted(function: JitFunction[..., Any]) -> JitFunction[..., Any]:
    return JitFunction(function._function, replace(function._options, backend="interpreter"))


def _copies(args: Sequence[Any]) -> Any:
    """Arguments that may be changed, objects with what they hold."""
    return tuple([x if isinstance(x, DeviceArray) else copy.deepcopy(x) for x in args])


def _fault(
    function: JitFunction[..., Any],
    plain: Callable[..., Any],
    args: Sequence[Any],
    near: float | None,
) -> Fault | None:
    """What is wrong on the way of a call to machine code: from the graph on, or before it."""
    lowered = function.lower(*_copies(args))
    if lowered.arguments is not None:
        culprit = search(lowered.graph, lowered.arguments, near)
        if culprit is not None:
            return _of(culprit)
    interpreting = lambda call: JitFunction(call, replace(function._options, backend="interpreter"))  # noqa: E731
    wrong = wrong_call(plain, _copies(args), interpreting, near)
    if wrong is None:
        return None
    call, difference = wrong
    lines = [f"# np.{call.name} of these arguments: {difference}"]
    lines += [f"# {np.asarray(a)!r}" for a in pytree.flatten(call.args)[0][:4]]
    return Fault(call.name, at(call.loc), "tracing, or the op's reference", "\n".join(lines))


def _of(culprit: Culprit) -> Fault:
    return Fault(culprit.op, at(culprit.loc), culprit.stage, culprit.program)


def _gradients(
    function: JitFunction[..., Any],
    reference: Callable[..., Any],
    args: Sequence[Any],
    outs: Sequence[Any],
    tolerance: float | None,
) -> tuple[str, Fault | None]:
    """Whether derivatives agree, and what is at fault if not."""
    leaves, tree = pytree.flatten(tuple(args))
    active = [k for k, leaf in enumerate(leaves) if is_float(leaf)]
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=np.shape(y)) if is_float(y) else None for y in outs]
    if not active or all(w is None for w in weights):
        return "are none", None

    def weighed(moving: list[Any]) -> list[Any]:
        own = list(leaves)
        for k, leaf in zip(active, moving, strict=True):
            own[k] = leaf
        result = function(*_copies(pytree.unflatten(tree, own)))
        return [y for y, w in zip(pytree.flatten(result)[0], weights, strict=True) if w is not None]

    pairs = zip(weights, outs, strict=True)
    seeds = [np.asarray(w, np.asarray(y).dtype) for w, y in pairs if w is not None]

    def pulled(moving: list[Any], seeds: list[Any]) -> Any:
        return vjp(weighed, moving)[1](seeds)[0]

    backward = jit(pulled)
    moving = [np.asarray(leaves[k]) for k in active]
    try:
        gradients = [np.asarray(g) for g in backward(moving, seeds)]
        lowered = backward.lower(moving, seeds)
        interpreted = evaluate(lowered.graph, lowered.arguments or [])
    except Exception as error:
        return f"are not there: {type(error).__name__}", None
    if differences(gradients, interpreted[: len(gradients)], tolerance):
        culprit = search(lowered.graph, lowered.arguments or [], tolerance)
        return "differ", None if culprit is None else _of(culprit)
    along: list[Any] = [
        rng.normal(size=np.shape(leaf)) if k in active else None for k, leaf in enumerate(leaves)
    ]
    moved_by = zip(gradients, (along[k] for k in active), strict=True)
    told = float(sum(np.sum(g.astype(np.float64) * u) for g, u in moved_by))

    def outputs(*moved: Any) -> Sequence[Any]:
        return pytree.flatten(reference(*_copies(pytree.unflatten(tree, list(moved)))))[0]

    measured = by_differences(outputs, leaves, along, weights)
    if not np.isfinite(measured) or abs(told - measured) <= _NEAR * max(1.0, abs(measured)):
        return "agree", None
    forward = function.lower(*_copies(args))
    kept = run_and_keep(forward.graph, forward.arguments or [])
    culprit = None if kept is None else wrong_rule(kept)
    return "differ", None if culprit is None else _of(culprit)
