"""Why code is not as one might wish: sentences from what passes noted where they decided.

Each says what was not done, where, why, and what would change it: steps that do not share loops, loops
without vectors or in scalar code, steps on one thread, copies, arrays that a scalar made float64.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from ...ir.graph import SourceLine
from .units import at, size_text

if TYPE_CHECKING:
    from ...codegen.module import CopySite, Reason
    from ...runtime.probing import Costs
    from ..core.trace import Cast

_NAMED = 3  # that a sentence names; of more it says how many there are

_ONE = {
    "lanes": "works on one element at a time",
    "threads": "runs on one thread",
    "scalar": "runs as scalar code",
    "vectors": "was not made a loop of vectors",
}
_MANY = {
    "lanes": "work on one element at a time",
    "threads": "run on one thread",
    "scalar": "run as scalar code",
    "vectors": "were not made loops of vectors",
}


def sentences(
    reasons: Sequence[Reason],
    copies: Sequence[CopySite],
    casts: Sequence[Cast],
    vectorised: Collection[str],
    costs: Costs | None,
) -> tuple[str, ...]:
    """What was not done and why, a sentence each. `vectorised`: functions that have vectors all the
    same; `costs` tell how often what is copied is."""
    kept = [r for r in reasons if r.kind != "vectors" or r.subject not in vectorised]
    found = [*_copies(copies, costs), *_casts(casts), *_fusions(kept), *_others(kept)]
    return tuple(dict.fromkeys(found))


def _fusions(reasons: Sequence[Reason]) -> Iterator[str]:
    for r in reasons:
        if r.kind == "fusion":
            yield _sentence(
                f"{_named(r.subject, r.loc)} does not share loops with {_named(r.other, r.other_loc)}",
                r,
            )


def _others(reasons: Sequence[Reason]) -> Iterator[str]:
    """One sentence for all that have the same reason."""
    groups: dict[tuple[str, str], list[Reason]] = {}
    for r in reasons:
        if r.kind != "fusion":
            groups.setdefault((r.kind, r.why), []).append(r)
    for (kind, _), alike in groups.items():
        told = [("the loop" if kind == "vectors" else r.subject, r.loc) for r in alike]
        names = list(dict.fromkeys(_named(*each) for each in told))
        subject = ", ".join(names[:_NAMED])
        if len(names) > _NAMED:
            subject += f" and {len(names) - _NAMED} more"
        verb = (_ONE if len(names) == 1 else _MANY)[kind]
        yield _sentence(f"{subject} {verb}", alike[0])


def _sentence(what: str, reason: Reason) -> str:
    return f"{what}: {reason.why}" + (f"; {reason.remedy}" if reason.remedy else "")


def _copies(copies: Sequence[CopySite], costs: Costs | None) -> Iterator[str]:
    for copy in copies:
        times = ""
        if costs is not None and copy.slot >= 0:
            runs = costs.steps[copy.slot].runs
            times = "" if runs == 1 else f", {runs:,} times a call"
        yield f"copies {size_text(copy.nbytes)}{at(copy.loc)}{times}: {copy.why}"


def _casts(casts: Sequence[Cast]) -> Iterator[str]:
    for cast in casts:
        kind = "the Python float" if cast.python else "the float64 scalar"
        scalar = "a float64 scalar" if cast.scalar == "a scalar" else f"{kind} {cast.scalar}"
        if cast.python:
            remedy = "convert to float32 first if that is exact enough: x.astype(np.float32)"
        else:
            remedy = "a Python float, float(s), leaves arrays of float32 as they are"
        yield f"{cast.dtype} becomes float64{at(cast.loc)}: for the sake of {scalar}; {remedy}"


def _named(name: str, loc: SourceLine | None) -> str:
    return f"{name}{at(loc)}"
