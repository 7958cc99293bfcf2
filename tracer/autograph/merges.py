"""What branches leave in variables, leaf by leaf: what they agree on, and the results of the op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn, Protocol

from ...ir.build import Builder
from ...ir.graph import Graph, Value
from ...ir.opdef import OPS
from ...ir.types import BOOL, I32, TensorType
from ..containers.elements.forms import same_tree
from ..containers.kinds import changed, current, inherit
from ..control.regions import (
    Out,
    TracedRegion,
    common_type,
    have_effects,
    promoted,
    show_tree,
)
from ..control.regions import union as captures
from ..control.unions import (
    class_of_array,
    class_of_leaf,
)
from ..core.effects import advance, order_token
from ..core.sharing import is_following, relate
from ..core.trace import require_trace
from ..core.tracers import Storage, Tracer, as_value, emit, wrap
from ..data import pytree
from ..messages import errors
from ..messages.errors import complain, describe
from ..messages.source import user_line
from .ends import Content, End, Inside, Part, is_inside, links_at, number_side
from .identity.arrays import Link, Merged, between, confuse, is_outside, links_of, storage_of
from .identity.containers import CONTAINERS
from .identity.origins import are_followed, which_outside
from .joins import Side, are_alike, changed_in, joined_sides, parts_of
from .syntax.jumps import RESULT
from .variables import (
    Undefined,
    is_own_array,
    is_traceable,
    made_of,
    same,
    shown,
)

_CHEAP = frozenset({"elementwise", "source"})
_FEW = 12


class Branch(Protocol):
    """A branch that has been traced."""

    region: TracedRegion
    storages: dict[Storage, Value]

    def out(self, leaf: Any) -> Out: ...

    def made_at(self, leaf: Any) -> str: ...


def _place(link: Link, other: Merged | None) -> tuple[Any, ...]:
    return (link.other if other is None else None, link.steps, link.from_other)


class Merge:
    """Finds for each leaf whether the branches agree on it, or which result of the op it is."""

    def __init__(
        self,
        pred: Tracer,
        branches: Sequence[Branch],
        what: str,
        names: Sequence[str],
        where: str,
        owners: dict[int, str],
        outer: set[int],
    ) -> None:
        self.pred = pred
        self.outer = outer  # see `containers.outer_ids`
        self.owners = owners  # see `containers.belonging`
        self.branches, self.what, self.names, self.where = branches, what, names, where
        self.outs: list[Out] = []
        self.sources: list[list[Any]] = []  # per result, per branch: a leaf, or None for zeros
        self.made: list[Merged] = []
        self.chosen: list[tuple[str, Any, list[Any]]] = []  # containers, each with those it may be

    def object(
        self, label: str, ends_or_none: list[End | None], fill: bool, is_content: bool = False
    ) -> Callable[[Sequence[Value]], Any]:
        """How to make the object called `label` of the op's results. A branch that raises gives None."""
        if None in ends_or_none:
            return self._only(label, ends_or_none)
        ends: list[End] = ends_or_none  # type: ignore[assignment]
        if same(ends[0].value, ends[1].value):
            return lambda results: ends[0].value
        is_content = is_content or any(isinstance(end.value, Content) for end in ends)
        missing = [isinstance(end.value, Undefined) for end in ends]
        if all(missing):
            first = next((e.value for e in ends if e.value.why), ends[0].value)
            return lambda results: first
        if any(missing) and not fill:
            absent = ends[missing.index(True)].value
            joined = self._union(label, [e.part for e in ends]) if absent.is_form else None
            return joined or self._undefined(label, ends, missing)
        if any(missing):
            end = ends[missing.index(False)]
            if self._is_outer(end):
                return lambda results: end.value
            ends = [end, end]
        if not pytree.same_as_written(ends[0].tree, ends[1].tree):
            values = [end.part.value for end in ends]
            if all(isinstance(value, CONTAINERS) for value in values):
                changed_in(values, [end.part.tree for end in ends])
        whole = self._whole(label, [end.part for end in ends], missing, not is_content)
        among = [x for end in ends for x in end.shared if self.owners.get(id(x)) != label]

        def make(results: Sequence[Value]) -> Any:
            made = whole(results)
            if among:
                self.chosen.append((label, made, among))
            return made

        return make

    def _whole(
        self, label: str, parts: Sequence[Part], missing: list[bool], joined: bool = True
    ) -> Callable[[Sequence[Value]], Any]:
        """How to make an object of its leaves: in one structure, or where there are several, and they
        may be `joined`, as a union."""
        one, other = (part.tree for part in parts)
        if not pytree.same_as_written(one, other):
            if are_alike(one, other):
                return self._by_parts(label, parts, missing)
            made = self._union(label, parts) if joined else None
            return made or self._refuse_structure(label, parts)
        mark = len(self.outs), len(self.made)
        sets = [part.value for part in parts if isinstance(part.value, set)]
        contents = [leaf for part in parts for leaf in part.leaves if isinstance(leaf, frozenset)]
        if sets and len(set(contents)) > 1:
            changed(sets)  # native ones may be of any content
        try:
            leaves = [
                self._leaf(label, i, pair, missing, one)
                for i, pair in enumerate(zip(*(part.leaves for part in parts), strict=True))
            ]
        except errors.CarryError as error:
            del self.outs[mark[0] :], self.sources[mark[0] :], self.made[mark[1] :]
            if one.num_children:
                try:
                    return self._by_parts(label, parts, missing)
                except errors.CarryError:
                    raise error from None
            if not joined:
                raise
            made = self._union(label, parts)
            if made is None:
                raise
            return made

        def make(results: Sequence[Value]) -> Any:
            made = pytree.unflatten(one, [leaf(results) for leaf in leaves])
            inherit(parts[0].value, made)
            return made

        return make

    def _by_parts(
        self, label: str, parts: Sequence[Part], missing: list[bool]
    ) -> Callable[[Sequence[Value]], Any]:
        """Of containers of one kind what is in them is joined one by one."""
        trees = [part.tree.children() for part in parts]
        leaves = [parts_of(part.tree, part.leaves) for part in parts]
        makers = [
            self._whole(label, [Part(*each) for each in zip(*pair, strict=True)], missing)
            for pair in zip(zip(*trees, strict=True), zip(*leaves, strict=True), strict=True)
        ]
        level = parts[0].tree.one_level()
        assert level is not None
        return lambda results: pytree.unflatten(level, [make(results) for make in makers])

    def _union(self, label: str, parts: Sequence[Part]) -> Callable[[Sequence[Value]], Any] | None:
        """The values of the branches are of different forms: which one it is becomes a value, too."""
        same_tree(
            parts[0].tree, parts[1].tree
        )  # native containers of two sites are of one kind then
        sides = [
            Side.of(part.tree, part.leaves, partial(self._class, k), part.value)
            for k, part in enumerate(parts)
        ]
        return joined_sides(label, sides, is_inside, self._leaf, self.pred)

    def _class(self, branch: int, leaf: Any) -> Any:
        if isinstance(leaf, Inside) or is_traceable(leaf):
            out = self.branches[branch].out(leaf)
            return class_of_array(out.type, out.scalar)
        return class_of_leaf(leaf)

    def _only(self, label: str, ends: list[End | None]) -> Callable[[Sequence[Value]], Any]:
        """The object of the branch that does not raise."""
        (end,) = [end for end in ends if end is not None]
        if self._is_outer(end):
            return lambda results: end.value
        if not any(isinstance(leaf, Inside) for leaf in end.leaves):
            if isinstance(end.value, Content):
                return lambda results: pytree.unflatten(end.tree, end.leaves)
            return lambda results: end.value
        missing = [one is None for one in ends]
        parts = [
            self._leaf(label, i, (leaf, leaf), missing, end.tree)
            if isinstance(leaf, Inside)
            else lambda results, leaf=leaf: leaf
            for i, leaf in enumerate(end.leaves)
        ]

        def make(results: Sequence[Value]) -> Any:
            made = pytree.unflatten(end.tree, [part(results) for part in parts])
            inherit(end.value, made)
            return made

        return make

    def _is_outer(self, end: End) -> bool:
        """Whether it is a container that is there outside of the branch, or could be."""
        inside = any(isinstance(leaf, Inside) for leaf in end.leaves)
        return id(end.value) in self.outer or (isinstance(end.value, CONTAINERS) and not inside)

    def _undefined(
        self, label: str, ends: list[End], missing: list[bool]
    ) -> Callable[[Sequence[Value]], Any]:
        index = missing.index(True)
        why = ends[index].value.why or (
            f"the `{self.what}` at {self.where} gives it one in only one of its branches"
        )
        gone = Undefined(label, why)
        return lambda results: gone

    def _leaf(
        self, label: str, position: int, pair: Sequence[Any], missing: list[bool], tree: Any
    ) -> Callable[[Sequence[Value]], Any]:
        inside = [isinstance(leaf, Inside) for leaf in pair]
        if not any(inside) and same(*pair):
            one = pair[0]
            if any(missing) and storage_of(one) is not None:
                one = wrap(as_value(one), scalar=False)
                self.made.append(Merged(label, [links_of(pair[0])] * 2, one))
            return lambda results: one
        if not all(i or is_traceable(leaf) for i, leaf in zip(inside, pair, strict=True)):
            self._refuse(label, position, pair, tree)
        outs = [
            b.out(leaf)
            for b, leaf, gone in zip(self.branches, pair, missing, strict=True)
            if not gone
        ]
        common = common_type(outs) or promoted(outs)
        if common is None:
            self._refuse(label, position, pair, tree)
        exact = self._exact(label, pair, outs, missing) if common.scalar else None
        number = len(self.outs)
        self.outs.append(common)
        self.sources.append(
            [None if gone else leaf for leaf, gone in zip(pair, missing, strict=True)]
        )

        made = None
        if not common.scalar:
            gives = zip(pair, missing, strict=True)
            links = [[] if gone else links_at(leaf) for leaf, gone in gives]
            self.made.append(made := Merged(label, links))
        which: Any = None
        if not common.scalar and are_followed() and not any(missing):
            numbers = [x.which if isinstance(x, Inside) else which_outside(x) for x in pair]
            if any(not isinstance(n, int) or n for n in numbers):
                which = self._leaf(label, position, numbers, missing, tree)

        def make(results: Sequence[Value]) -> Tracer:
            result = common.wrap(results[number])
            if made is not None:
                made.result = result
                for array in filter(is_own_array, pair):
                    made_of(result, array)
                result._storage.which = which and which(results)
            elif exact is not None:
                result._storage.exact = exact(results)
            return result

        return make

    def _exact(
        self, label: str, pair: Sequence[Any], outs: Sequence[Out], missing: Sequence[bool]
    ) -> Callable[[Sequence[Value]], Any] | None:
        """How to make the union of the classes of a number; None if it is of one."""
        outs_left = iter(outs)
        sides = [
            None if gone else number_side(leaf, next(outs_left))
            for leaf, gone in zip(pair, missing, strict=True)
        ]
        found = [side for side in sides if side is not None]
        if len({n for side in found for n in side.options}) < 2:
            return None
        nothing = Side(next(iter(found[0].options)), {})
        both = [nothing if side is None else side for side in sides]
        return joined_sides(label, both, is_inside, self._leaf, self.pred)

    def relations(self) -> Callable[[Sequence[Value]], None]:
        """How to note of the arrays that come out which of them, and of those outside, are one, when the
        op's results are there."""
        if not is_following():
            return lambda results: confuse(self.made)
        found: list[tuple[Merged, Any, Link, Callable[[Sequence[Value]], Any]]] = []
        rows = [m for m in self.made if m.name != RESULT]
        for k, one in enumerate(rows):
            pairs = [(x, list(map(between, one.links, x.links))) for x in rows[:k]]
            outer = [[x for x in links if is_outside(x.other)] for links in one.links]
            for other, links in [*pairs, (None, outer)]:
                by = [{_place(x, other): x for x in some} for some in links]
                for place in dict.fromkeys([*by[0], *by[1]]):
                    sides = [side.get(place) for side in by]
                    link = next(x for x in sides if x is not None)
                    holds = [False if x is None else x.holds for x in sides]
                    found.append((one, other, link, self._holds(holds)))

        def note(results: Sequence[Value]) -> None:
            for one, other, link, holds in found:
                if one.result is None or (other is not None and other.result is None):
                    continue
                to = link.other if other is None else other.result._storage
                relate(one.result._storage, to, holds(results), link.steps, link.from_other)

        return note

    def _holds(self, pair: Sequence[Any]) -> Callable[[Sequence[Value]], Any]:
        """Whether two arrays are one, of what holds in each branch."""
        if None in pair or pair[0] is pair[1]:
            return lambda results: None if None in pair else pair[0]
        if any(not isinstance(x, bool) for x in pair):
            return self._leaf("", 0, pair, [False, False], pytree.flatten(0)[1])
        return lambda results: self.pred if pair[1] else emit("invert", as_value(self.pred))

    def emit(self, pred: Tracer, storages: Sequence[Storage]) -> Sequence[Value]:
        """Append the op. Its results are those leaves, then the storages."""
        trace = require_trace()
        regions = [b.region for b in self.branches]
        token = [order_token()] if have_effects(regions) else []
        if not self.outs and not storages and not token:
            return ()
        now = {s: trace.lift(s.value, s.trace) for s in storages}
        outer: list[list[Value | None]] = []  # per branch: results that come from outside
        for k, b in enumerate(self.branches):
            operands: list[Value | None] = []
            for out, source in zip(self.outs, self.sources, strict=True):
                leaf = source[k]
                fresh = leaf is None or isinstance(leaf, Inside)
                operands.append(None if fresh else as_value(leaf, out.type.dtype))
            operands += [None if s in b.storages else now[s] for s in storages]
            outer.append(operands)
        extra = [v for operands in outer for v in operands if v is not None]
        captured = list(dict.fromkeys([*captures(regions), *extra]))
        types = [*(out.type for out in self.outs), *(now[s].tensor for s in storages)]
        graphs = [
            self._close(k, captured, outer[k], types, storages, bool(token))
            for k in range(len(self.branches))
        ]
        simple = None if token else self._logic(as_value(pred), graphs, captured, storages)
        if simple is not None:
            return simple
        index = emit("convert", as_value(pred), dtype=I32)
        with trace.builder.at(user_line(2)):
            op = trace.builder.append(OPS["cond"], [index.value, *token, *captured], {}, graphs)
        advance(op.results)
        return op.results

    def _logic(
        self,
        pred: Value,
        graphs: Sequence[Graph],
        captured: Sequence[Value],
        storages: Sequence[Storage],
    ) -> Sequence[Value] | None:
        """Branches that only compare a few numbers are computed both, without a branch."""
        count = sum(len(graph.ops) for graph in graphs)
        if storages or count > _FEW or any(out.type != TensorType((), BOOL) for out in self.outs):
            return None
        if any(op.definition.family not in _CHEAP for graph in graphs for op in graph.ops):
            return None
        builder = require_trace().builder
        with builder.at(user_line(3)):
            no, yes = (builder.inline(graph, captured) for graph in graphs)
            return [builder.select(pred, a, b) for a, b in zip(yes, no, strict=True)]

    def _close(
        self,
        k: int,
        captured: Sequence[Value],
        outer: Sequence[Value | None],
        types: Sequence[TensorType],
        storages: Sequence[Storage],
        token: bool,
    ) -> Graph:
        b = self.branches[k]
        wanted: list[Value | None] = []
        kinds: list[TensorType | None] = []
        for source, type in zip(self.sources, types, strict=False):
            if isinstance(source[k], Inside):
                wanted.append(b.region.values[source[k].index])
                kinds.append(type)
        mine = [b.storages[s] for s in storages if s in b.storages]
        wanted += mine
        kinds += [v.tensor for v in mine]
        if token:
            wanted.append(None)
            kinds.append(None)
        graph = b.region.close(captured, wanted, kinds, token_at=0 if token else None)
        made = iter(graph.outputs)
        position = {v: graph.params[i + token] for i, v in enumerate(captured)}
        builder = Builder(graph)
        outputs = []
        for i, (type, operands) in enumerate(zip(types, outer, strict=True)):
            if operands is not None:
                outputs.append(position[operands])
            elif i < len(self.sources) and self.sources[i][k] is None:
                outputs.append(builder.zeros(type))
            else:
                outputs.append(next(made))
        graph.outputs = [*outputs, *made]
        return graph

    def _refuse_structure(self, label: str, parts: Sequence[Part]) -> NoReturn:
        values = [part.value for part in parts]
        changed_in(values, [part.tree for part in parts])
        same_tree(parts[0].tree, parts[1].tree)
        lines = [f"  {n}: {show_tree(e.tree)}" for n, e in zip(self.names, parts, strict=True)]
        remedy = "give it the same containers, of the same lengths, in both branches."
        if parts[0].tree == parts[1].tree:
            remedy = "give its dicts their keys in the same order in both branches."
        elif current() is None and all(isinstance(v, (list, dict, set)) for v in values):
            remedy = (
                f"a {type(values[0]).__name__} grows in functions under jt.jit, not under jt.vmap, "
                "jt.grad and their kin: count in an array of the final size (out[n] = value; "
                "n += 1), or call the compiled function for each example, [f(x) for x in xs]."
            )
        complain(
            errors.CarryError,
            f"{self._what(label)} has another structure in each branch of the `{self.what}`:\n"
            + "\n".join(reversed(lines)),
            remedy,
        )

    def _refuse(self, label: str, position: int, pair: Sequence[Any], tree: Any) -> NoReturn:
        part = pytree.leaf_names(pytree.unflatten(tree, range(tree.num_leaves)), "")[position]
        lines = []
        for name, b, leaf in zip(self.names, self.branches, pair, strict=True):
            if isinstance(leaf, Inside) or is_traceable(leaf):
                lines.append(f"  {name}: {b.out(leaf)}{b.made_at(leaf)}")
            else:
                lines.append(f"  {name}: {describe(leaf)}")
        at = f" at {part}" if part else ""
        complain(
            errors.CarryError,
            f"{self._what(label)} has another type{at} in each branch of the `{self.what}`:\n"
            + "\n".join(reversed(lines)),
            "make shapes and dtypes equal in both branches, with np.broadcast_to, reshape or "
            ".astype; objects that are no arrays must be the same.",
        )

    def _what(self, label: str) -> str:
        return shown(label) if label else "the value"
