"""Which op is the first that compiled code, or a pass, gets wrong: programs of a few ops are tried.

The interpreter runs the graph and every operand and result is kept, those inside of loops and branches,
too. Then each op alone, and with some of what it depends on, goes the way that is suspected, in the
order in which they ran. What differs first, with the fewest ops, is the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...ir import passes
from ...ir.graph import Graph, Op, SourceLine, Value
from ...ir.interpreter import evaluate, watching
from ...ir.record import record
from ...ir.subgraphs import extract
from ...ir.types import TensorType, is_complex, is_inexact, is_small
from .values import Difference, differences

Arrays = Sequence[Any]
Way = Callable[[Graph, Arrays], Arrays]  # what runs a graph, and may be wrong

_DEPTHS = (0, 1, 2, 4, 8)  # how much of what an op depends on is tried with it
_MOST = 400  # programs that are tried


@record
class Culprit:
    """The op that is first to differ, where; `stage` is what makes it differ; and a program of it."""

    op: str
    loc: SourceLine | None
    stage: str
    graph: Graph
    arrays: tuple[Any, ...]
    difference: Difference

    @property
    def program(self) -> str:
        """Python that shows it: a graph as text, and the arrays that it takes."""
        lines = ["import numpy as np", "import jitney as jt", "", 'graph = jt.parse_graph("""']
        lines += [str(self.graph).strip(), '""")']
        arrays = ", ".join(map(_literal, self.arrays))
        lines += [f"arrays = [{arrays}]", "from jitney.ir.interpreter import evaluate"]
        lines += ["from jitney.runtime.compile import compile"]
        lines += ["print(compile(graph).run(arrays), evaluate(graph, arrays))"]
        return "\n".join(lines)


def natively(graph: Graph, arrays: Arrays) -> Arrays:
    """By compiled code."""
    from ...runtime.compile import compile

    copies = [np.array(a, order="C") if isinstance(a, np.ndarray) else a for a in arrays]
    return compile(graph).run(copies)


def after(pass_: Callable[[Graph], Graph]) -> Way:
    """By the interpreter, after a pass."""
    return lambda graph, arrays: evaluate(pass_(graph), arrays)


def suspects(graph: Graph) -> Iterator[tuple[str, Way]]:
    """The passes that a graph goes through, then machine code, each by its name."""
    types = (*graph.input_types, *graph.output_types)
    plain = not any(isinstance(t, TensorType) and _is_packed(t) for t in types)
    if plain:  # else passes change what the graph takes
        yield "write_out_matrices", after(passes.write_out_matrices)
        yield "storable", after(passes.storable)
        for run in passes.PIPELINE:
            yield run.__name__, after(run)
    yield "", natively


def _is_packed(type_: TensorType) -> bool:
    return is_complex(type_.dtype) or is_small(type_.dtype)


def search(graph: Graph, arrays: Arrays, tolerance: float | None) -> Culprit | None:
    """The first op that goes wrong on the way of a graph to machine code; None if none does."""
    kept = run_and_keep(graph, arrays)
    if kept is None:
        return None
    wanted = evaluate(graph, arrays)
    for name, way in suspects(graph):
        stage = f"the pass {name}" if name else "code generation"
        try:
            got = way(graph, arrays)
        except Exception as error:  # a pass or a compiler that falls over is a fault as well
            got = [f"{type(error).__name__}: {error}"] * len(wanted)
        tensors = _tensors(graph, got), _tensors(graph, wanted)
        if not differences(*tensors, tolerance, given=_tensors(graph, arrays)):
            continue
        found = _first(kept, way, stage, tolerance)
        return found or _prefix(graph, arrays, way, stage, tolerance)
    return None


class Kept:
    """What the interpreter computed: the value of each result, at its first and its latest run."""

    def __init__(self) -> None:
        self.values: list[dict[Value, Any]] = [{}, {}]
        self.ops: dict[Op, Graph] = {}  # in the order in which they ran first, and where they stand
        self._inside: list[Graph] = []

    def enter(self, graph: Graph) -> None:
        self._graph = graph

    def evaluate(
        self, op: Op, operands: Sequence[Any], compute: Callable[[], tuple[Any, ...]]
    ) -> tuple[Any, ...]:
        home = self._graph
        results = compute()
        self._graph = home
        self.ops.setdefault(op, home)
        first, latest = self.values
        for value, array in (
            *zip(op.operands, operands, strict=True),
            *zip(op.results, results, strict=True),
        ):
            first.setdefault(value, array)
            latest[value] = array
        return results


def run_and_keep(graph: Graph, arrays: Arrays) -> Kept | None:
    """Interpret a graph and keep all values; None if it cannot be run."""
    kept = Kept()
    try:
        with watching(kept):
            evaluate(graph, arrays)
    except Exception:  # it raises what the function raises: there is nothing to search
        return None
    return kept


def _first(kept: Kept, way: Way, stage: str, tolerance: float | None) -> Culprit | None:
    """The first op that differs, with as little as possible of what it depends on."""
    tried = 0
    for depth in _DEPTHS:
        for op, home in kept.ops.items():
            if tried >= _MOST or not is_tried(op):
                continue
            part = window(home, op, depth)
            if part is None:
                continue
            graph, params = part
            tried += 1
            for values in kept.values:
                found = _wrong(graph, [values.get(p) for p in params], way, tolerance)
                if found is not None:
                    arrays = tuple(values[p] for p in params)
                    return Culprit(op.name, op.loc, stage, graph, arrays, found)
    return None


def is_tried(op: Op) -> bool:
    """Whether an op can stand in a program of its own."""
    tensors = all(isinstance(v.type, TensorType) for v in (*op.operands, *op.results))
    return tensors and not op.has_effect and op.name != "constant"


def window(graph: Graph, op: Op, depth: int) -> tuple[Graph, list[Value]] | None:
    """An op with `depth` of what it depends on, as a graph, and the values that this takes; None if
    there is no more than with less depth."""
    chosen, edge = {op}, [op]
    for _ in range(depth):
        new = [v.op for o in edge for v in o.operands if v.op is not None and v.op not in chosen]
        edge = [o for o in dict.fromkeys(new) if is_tried(o) or o.name == "constant"]
        chosen.update(edge)
    if depth and not edge:
        return None
    constants = {v.op for o in chosen for v in o.operands if v.op and v.op.name == "constant"}
    chosen |= constants
    made = {v for o in chosen for v in o.results}
    read = (v for o in graph.ops if o in chosen for v in o.operands if v not in made)
    params = list(dict.fromkeys(read))
    return extract(op.name, params, graph.ops, chosen, op.results), params


def _wrong(graph: Graph, arrays: Arrays, way: Way, tolerance: float | None) -> Difference | None:
    """How a graph differs, if it does."""
    if any(a is None for a in arrays):
        return None
    try:
        wanted = evaluate(graph, arrays)
    except Exception:
        return None
    try:
        got = way(graph, arrays)
    except Exception as error:
        got = [f"{type(error).__name__}: {error}"] * len(wanted)
    found = differences(got, wanted, tolerance, given=arrays)
    return found[0] if found else None


def _prefix(
    graph: Graph, arrays: Arrays, way: Way, stage: str, tolerance: float | None
) -> Culprit | None:
    """The first op whose value differs with all that comes before it."""
    for op in graph.ops[:_MOST]:
        if not is_tried(op) or not any(is_inexact(v.dtype) or v.dtype for v in op.results):
            continue
        part = graph.giving(op.results)
        found = _wrong(part, arrays, way, tolerance)
        if found is not None:
            return Culprit(op.name, op.loc, stage, part, tuple(arrays), found)
    return None


def _tensors(graph: Graph, arrays: Arrays) -> list[Any]:
    """Those that are no tokens or tapes: compiled code gives no others."""
    if len(graph.outputs) != len(arrays):
        return [a for a in arrays if a is not None]
    pairs = zip(graph.outputs, arrays, strict=True)
    return [a for v, a in pairs if isinstance(v.type, TensorType)]


def _literal(array: Any) -> str:
    """An array as Python writes it, with all of its digits; of a large one how to make its like."""
    if not isinstance(array, np.ndarray):
        array = np.asarray(array)
    if array.size > 64:
        some = array.ravel()[:16].tolist()
        return f"np.resize(np.array({some!r}, {array.dtype.name!r}), {array.shape})"
    return f"np.array({array.tolist()!r}, {array.dtype.name!r})"
