"""Values of a graph by name, and the part of a graph that leads from some values to others.

graph["encoder/h"]
graph.between(["x", "encoder/h"], ["loss"])      a graph with these parameters and these outputs
graph.run("loss", {"encoder/h": array})          what that gives
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np

from .graph import Graph, Value, serve
from .interpreter import evaluate
from .opdef import GraphError
from .subgraphs import extract, reached
from .text import printed_names
from .types import TensorType

Name = str | Value


def find(graph: Graph, name: str) -> Value:
    """The value that `jt.name`, or the text of the graph, calls so: one of the graph itself, else of
    its regions. Raises KeyError."""
    wanted = name.removeprefix("%")
    named: dict[str, Value] = {}
    for value, text in _names(graph):
        named.setdefault(text, value)
        if value.name:
            named.setdefault(value.name, value)
    if wanted not in named:
        near = get_close_matches(wanted, named, n=3)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise KeyError(f"{graph.name} has no value {name!r}{hint}")
    return named[wanted]


def _names(graph: Graph) -> Iterable[tuple[Value, str]]:
    for value, text in printed_names(graph).items():
        yield value, text.removeprefix("%")
    for op in graph.ops:
        for region in op.regions:
            yield from _names(region)


def between(graph: Graph, sources: Iterable[Name], targets: Iterable[Name]) -> Graph:
    """The graph that computes `targets` from `sources` alone, by the ops that this needs.

    Raises KeyError for a name that there is not, GraphError for a value inside of a region, and where
    a parameter is needed that is none of the sources.
    """
    given = _values(graph, sources)
    wanted = _values(graph, targets)
    if len(set(given)) != len(given):
        raise GraphError("a value is given twice")
    needed, _ = reached(graph.ops, wanted, given)
    read = {v for op in needed for v in op.operands}.union(wanted)
    missing = [v for v in graph.params if v in read and v not in given]
    if missing:
        names = printed_names(graph)
        texts = ", ".join(f"{names[v]} ({v.type})" for v in missing)
        raise GraphError(f"{texts} must be given, too: what is asked for depends on it")
    return extract(graph.name, given, graph.ops, needed, wanted)


def run(graph: Graph, fetches: Any, feeds: Mapping[Name, Any]) -> Any:
    """The values of `fetches` (a name, a `Value`, or lists, tuples and dicts of them), where those of
    `feeds` are given. They are computed by the interpreter."""
    part = between(graph, feeds, targets := [*_leaves(fetches)])
    arrays = [
        _array(value, given) for value, given in zip(part.params, feeds.values(), strict=True)
    ]
    results = dict(zip(map(id, targets), evaluate(part, arrays), strict=True))
    return _filled(fetches, results)


def _values(graph: Graph, names: Iterable[Name]) -> list[Value]:
    own = set(graph.values())
    values = [find(graph, v) if isinstance(v, str) else v for v in names]
    for value in values:
        if value not in own:
            raise GraphError(
                f"{value!r} is not of {graph.name} itself: of a region, run the graph that the region "
                "is (`op.regions`)"
            )
        if not isinstance(value.type, TensorType):
            raise GraphError(f"{value!r} is no array: it can be neither given nor asked for")
    return values


def _leaves(fetches: Any) -> Iterable[Name]:
    if isinstance(fetches, (str, Value)):
        yield fetches
    elif isinstance(fetches, (list, tuple, Mapping)):
        for part in fetches.values() if isinstance(fetches, Mapping) else fetches:
            yield from _leaves(part)
    else:
        raise TypeError(f"{fetches!r} is no name and no value of a graph")


def _filled(fetches: Any, results: Mapping[int, Any]) -> Any:
    if isinstance(fetches, Mapping):
        return {key: _filled(part, results) for key, part in fetches.items()}
    if isinstance(fetches, (list, tuple)):
        return type(fetches)([_filled(part, results) for part in fetches])
    return results[id(fetches)]


def _array(value: Value, given: Any) -> np.ndarray[Any, Any]:
    """An array of the value's type. Raises TypeError for one that is not of it."""
    array = np.asarray(given)
    if array.shape != value.shape or not np.can_cast(array.dtype, value.dtype, "same_kind"):
        text = f"{array.dtype}{list(array.shape)}"
        raise TypeError(
            f"{value.name or repr(value)} is {value.type}; what is given for it is {text}"
        )
    return array.astype(value.dtype, copy=False)


serve(find=find, between=between, run=run)
