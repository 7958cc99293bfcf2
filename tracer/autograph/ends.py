"""What a branch leaves in a variable: an object, leaf by leaf, and which of them its region computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.record import record, replace
from ..containers.kinds import make_classes_native
from ..control.regions import Out
from ..control.unions import Union, class_of_leaf, kind_number, narrowed, possible
from ..core.trace import Trace
from ..core.tracers import Tracer, wrap
from ..data import pytree
from .identity.arrays import Link, links_of
from .identity.origins import are_followed, which_inside
from .joins import Side


@record
class Inside:
    """A leaf that a region computed: its result number `index`, and its `links` to arrays. `which` array
    from outside it is, if it is followed: a number, or another such leaf."""

    index: int
    links: Sequence[Link] = ()
    which: Any = 0
    exact: Side | None = None  # of a number of several classes


@record(frozen=False, eq=False)
class Content:
    """What is in a container; two of them never are the same."""

    container: Any


@record(frozen=False)
class End:
    """One object at the end of a branch."""

    value: Any
    tree: pytree.TreeDef
    leaves: list[Any]  # Inside, or the leaf itself if it comes from outside of the branch
    option: tuple[Any, ...] = ()  # the one that a union has to be there: these are its leaves
    shared: Sequence[Any] = ()  # the containers in it that are seen elsewhere, too

    @property
    def part(self) -> Part:
        value = self.option[0] if self.option else self.value
        return Part(
            self.tree, self.leaves, value.container if isinstance(value, Content) else value
        )


@record
class Part:
    """An object, or a part of one, at the end of a branch; the value is None where it is not at hand."""

    tree: pytree.TreeDef
    leaves: Sequence[Any]
    value: Any = None


def end_of(value: Any, trace: Trace | None, out: list[Any]) -> End:
    """The object `value` at the end of the region that `trace` traces, whose arrays in it are added to
    the results. Without a trace all of it comes from outside."""
    of = value.container if isinstance(value, Content) else narrowed(value)
    option = (of,) if type(value) is Union else ()
    is_content = isinstance(value, Content) and isinstance(of, set)
    leaves, tree = pytree.flatten(frozenset(of) if is_content else of)  # equal ones are one content
    if trace is not None:
        make_classes_native(leaves, inner=True)
    leaves_out: list[Any] = []
    for leaf in leaves:
        if isinstance(leaf, Tracer) and leaf._storage.trace is trace:
            index = len(out)
            inside = wrap(leaf.value, leaf.weak, scalar=leaf.scalar)
            inside._strides = leaf._strides
            out.append(inside)
            which = which_inside(leaf, trace) if trace is not None and are_followed() else 0
            if isinstance(which, Tracer) and which._storage.trace is trace:
                which = _computed(which, out)
            exact = None
            if leaf._storage.exact is not None:
                exact = _exact_side(leaf, trace, out)
            leaves_out.append(Inside(index, _links(leaf, trace, out), which, exact))
        else:
            leaves_out.append(leaf)
    return End(value, tree, leaves_out, option)


def _computed(x: Tracer, out: list[Any]) -> Inside:
    """A number that a region has computed, as one more of its results."""
    out.append(x)
    return Inside(len(out) - 1)


def _links(leaf: Tracer, trace: Trace | None, out: list[Any]) -> list[Link]:
    """The links of an array at the end of a region, whose results get what it has computed of them."""
    links = links_of(leaf)
    for i, link in enumerate(links):
        if isinstance(link.holds, Tracer) and link.holds._storage.trace is trace:
            links[i] = replace(link, holds=_computed(link.holds, out))
    return links


def number_side(leaf: Any, out: Out) -> Side:
    """Of which classes a number is that a branch leaves."""
    if isinstance(leaf, Inside) and leaf.exact is not None:
        return leaf.exact
    if isinstance(leaf, Tracer) and leaf._storage.exact is not None:
        return _exact_side(leaf, None, [])
    number = kind_number(out.weak, out.type.dtype)
    return Side(number, {number: (pytree.flatten(0)[1], [leaf], None)})


def _exact_side(leaf: Tracer, trace: Trace | None, out: list[Any]) -> Side:
    """Of which classes a number of several is, at the end of the region that `trace` traces."""
    union = leaf._storage.exact
    end = end_of(union, trace, out)
    if end.tree.type is not Union:
        number = possible(union)[0]
        return Side(number, {number: (end.tree, end.leaves, None)})
    return Side.of(end.tree, end.leaves, class_of_leaf, None)


def is_inside(leaf: Any) -> bool:
    """Whether the region computed a leaf."""
    return isinstance(leaf, Inside)


def links_at(leaf: Any) -> list[Link]:
    """What a leaf is to the arrays around."""
    return list(leaf.links) if isinstance(leaf, Inside) else links_of(leaf)
