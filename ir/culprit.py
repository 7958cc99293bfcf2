"""Which op made the first NaN, infinity, or integer that does not fit? Found by interpreting a graph.

    found = culprit(graph, arrays, {"nan"})
    found.op, found.trips, found.where

An op makes a NaN if there was none in its operands, element by element where it computes element by
element. What it made is a *suspect* that is followed: what a `select` drops, or nobody uses, does no
harm. Suspects that get into a result of the graph, or of which something else than a float is made,
are certain, and the earliest of these is the culprit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np

from .graph import Graph, Op, SourceLine
from .interpreter import evaluate, watching
from .passes.dead import eliminate_dead_code
from .passes.inline_calls import inline_calls
from .passes.watch import chooses, keeps, only_moves, wraps
from .record import field, record
from .types import is_complex, is_inexact
from .walker import Results, Walker

Array = np.ndarray[Any, Any]
StandIn = Callable[[Op], Callable[..., Any] | None]


@record(frozen=False, eq=False)
class Finding:
    """An op's result that has such elements.

    kind      "nan", "inf" or "overflow"
    bad       which elements of the result
    operands  of the op, when it happened
    trips     the loops around it, outermost first, with the number of the iteration
    """

    kind: str
    op: Op
    result: Array
    bad: Array
    operands: list[Any]
    trips: list[tuple[Op, int]] = field(default_factory=list)


class Found(Exception):
    """The culprit is certain: nothing that comes can be an earlier one."""


def culprit(
    graph: Graph,
    arrays: Sequence[Any],
    kinds: Collection[str],
    stand_in: StandIn = lambda op: None,
    allowed: Callable[[SourceLine], bool] = lambda line: False,
) -> Finding | None:
    """The first op that made a value of one of these kinds that matters; None if there is none.

    `stand_in` gives what runs instead of ops that must not happen twice; what is made in lines that are
    `allowed` counts as given. What the interpreter raises
    ends the search.
    """
    graph = eliminate_dead_code(inline_calls(graph))
    search = Search(kinds, stand_in, allowed)
    try:
        with watching(search):
            outputs = evaluate(graph, arrays)
    except Found:
        pass
    except Exception:  # the program itself has ended without: what is certain is certain
        pass
    else:
        search.given_back(outputs)
    return search.earliest


class Search(Walker):
    """The watcher. `made` are all suspects, in their order."""

    def __init__(
        self, kinds: Collection[str], stand_in: StandIn, allowed: Callable[[SourceLine], bool]
    ) -> None:
        super().__init__()
        self.kinds = [kind for kind in ("nan", "inf") if kind in kinds]
        self.overflow = "overflow" in kinds
        self.stand_in = stand_in
        self.allowed = allowed
        self.made: list[Finding] = []
        self.certain: list[Finding] = []
        # Of the ops whose regions run: whose NaN was among what they were given, by kind.
        self.given: list[dict[str, Finding | None]] = []
        self.first: list[int] = []  # how many suspects there were when they began
        # By kind and identity of an array, which is kept so long: whose NaN is in it.
        self.tainted: dict[tuple[str, int], tuple[Any, Finding]] = {}

    def results(self, op: Op, operands: Sequence[Any], compute: Callable[[], Results]) -> Results:
        instead = self.stand_in(op)
        if instead is not None:
            results: Results = instead(*operands)
            return results
        if op.regions:
            given = {kind: self._among(kind, operands) for kind in self.kinds}
            first = len(self.made)
            self.given.append(given)
            self.first.append(first)
            try:
                with self.inside(op):
                    results = compute()
            finally:
                self.given.pop()
                self.first.pop()
            self._left(given, first, results)
            return results
        results = compute()
        for kind in self.kinds:
            self._look(kind, op, operands, results)
        if self.overflow and wraps(op):
            self._look_at_integers(op, operands, results)
        return results

    def given_back(self, outputs: Sequence[Any]) -> None:
        """What gets into results is certain."""
        for kind in self.kinds:
            self.certain += [f for a in outputs if (f := self.suspect(kind, a)) is not None]

    def given_as_copies(self, outputs: Sequence[Any]) -> None:
        """The same of arrays that are known by their elements alone: whose are none that is known, are
        taken for those of the first suspect."""
        for kind in self.kinds:
            wrong = [a for a in outputs if _has(kind, a)]
            known = [(a, f) for (own, _), (a, f) in self.tainted.items() if own == kind]
            for output in wrong:
                alike = [f for a, f in known if _same(a, output)]
                self.certain += alike[-1:] or [f for f in self.made if f.kind == kind][:1]

    @property
    def earliest(self) -> Finding | None:
        """The culprit, as far as it has come."""
        return min(self.certain, key=self.made.index, default=None)

    def suspect(self, kind: str, array: Any) -> Finding | None:
        """Whose NaN (inf) an array has."""
        if not _has(kind, array):
            return None
        found = self.tainted.get((kind, id(array)))
        return None if found is None else found[1]

    def _among(self, kind: str, operands: Sequence[Any]) -> Finding | None:
        found = [f for a in operands if (f := self.suspect(kind, a)) is not None]
        if found:
            return min(found, key=self.made.index)
        if self.given and any(_has(kind, a) for a in operands):
            # A slice of what a loop goes over, say, is another array than that, and so is what lanes of
            # a loop that are done keep of what an iteration made.
            return self.given[-1][kind] or self._since(self.first[-1], kind)
        return None

    def _since(self, first: int, kind: str) -> Finding | None:
        return next((f for f in self.made[first:] if f.kind == kind), None)

    def _look(self, kind: str, op: Op, operands: Sequence[Any], results: Results) -> None:
        """What an op made of what it was given."""
        given = any(_has(kind, a) for a in operands)
        suspect = self._among(kind, _taken(kind, op, operands)) if given else None
        seen = False
        for result in results:
            bad = _bad(kind, result)
            if bad is None or not bad.any():
                continue
            seen = True
            if suspect is None and _computes(op):
                fresh = _fresh(kind, op, operands, bad) if given else bad
                if fresh.any():
                    self._note(kind, op, result, fresh, operands)
                    continue
            if suspect is not None:
                self.tainted[kind, id(result)] = result, suspect
        if suspect is not None and not seen and _loses(op, kind, results):
            self._convict(suspect)

    def _note(
        self, kind: str, op: Op, result: Any, bad: Array, operands: Sequence[Any]
    ) -> Finding | None:
        if op.loc is not None and self.allowed(op.loc):
            return None
        found = Finding(kind, op, np.array(result), bad, list(operands), self.trips())
        self.made.append(found)
        self.tainted[kind, id(result)] = result, found
        return found

    def _convict(self, finding: Finding) -> None:
        self.certain.append(finding)
        if finding is self.made[0]:
            raise Found

    def _left(self, given: dict[str, Finding | None], first: int, results: Results) -> None:
        """What an op with regions gives has what was in it, or was made in it."""
        for kind in self.kinds:
            suspect = given[kind] or self._since(first, kind)
            for result in results:
                known = (kind, id(result)) in self.tainted
                if suspect is not None and not known and _has(kind, result):
                    self.tainted[kind, id(result)] = result, suspect

    def _look_at_integers(self, op: Op, operands: Sequence[Any], results: Results) -> None:
        with np.errstate(all="ignore"):
            exact = op.definition.reference(
                *[np.asarray(a).astype(np.longdouble) for a in operands], **op.attrs
            )
            result = np.asarray(results[0])
            near = 2.0 ** (8 * result.dtype.itemsize - 2)
            bad = ~(np.abs(exact - result.astype(np.longdouble)) < near)
        if bad.any():
            found = self._note("overflow", op, result, np.asarray(bad), operands)
            if found is not None:
                self._convict(found)


def _taken(kind: str, op: Op, operands: Sequence[Any]) -> Sequence[Any]:
    """The operands of which there is such an element in the result: a `select` takes some of each."""
    if op.name != "select":
        return operands
    test, *sides = operands
    pairs = zip((np.asarray(test), ~np.asarray(test)), sides, strict=True)
    return [side for mask, side in pairs if _inexact(side) and (_bad(kind, side) & mask).any()]


def _computes(op: Op) -> bool:
    """Whether the elements of the result are an op's own doing."""
    return op.definition.family != "source" and not only_moves(op)


def _loses(op: Op, kind: str, results: Results) -> bool:
    """Whether an op makes something else of a NaN (inf) that is none any more."""
    if op.definition.effect or op.definition.family == "tape" or chooses(op):
        return False
    if kind == "inf" and any(_has("nan", result) for result in results):
        return True
    floats = any(_inexact(result) for result in results)
    return not (floats and kind == "nan") and not (floats and keeps(op, kind))


def _fresh(kind: str, op: Op, operands: Sequence[Any], bad: Array) -> Array:
    """The elements of a result that are bad without that those of the operands are."""
    own: Iterator[Array] = (b for a in operands if (b := _bad(kind, a)) is not None)
    if op.definition.family != "elementwise":
        return np.zeros_like(bad)
    for of_operand in own:
        if of_operand.shape == bad.shape:
            bad = bad & ~of_operand
    return bad


def _same(a: Any, b: Any) -> bool:
    return np.shape(a) == np.shape(b) and bool(np.array_equal(a, b, equal_nan=True))


def _inexact(array: Any) -> bool:
    return isinstance(array, (np.ndarray, np.generic)) and is_inexact(array.dtype)


def _bad(kind: str, array: Any) -> Array | None:
    """Which elements are of a kind; None for what is no array of floats."""
    if not _inexact(array):
        return None
    test = np.isnan if kind == "nan" else np.isinf
    if is_complex(array.dtype):
        return np.asarray(test(array.real) | test(array.imag))
    return np.asarray(test(array))


def _has(kind: str, array: Any) -> bool:
    bad = _bad(kind, array)
    return bad is not None and bool(bad.any())
