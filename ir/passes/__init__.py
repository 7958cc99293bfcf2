"""The passes: functions from graph to graph, run in the order of `PIPELINE`.

A pass gives back a new graph that shares what it did not change, or its argument if it changed
nothing. It never edits. Its docstring shows before and after, which is also its first test.
`storable` runs before them all; it alone changes what a graph takes and gives: complex values become
pairs of real ones (`split_complex`), floats of 16 and 8 bits integers (`pack_floats`).

What does not live here: derivatives (`ir.autodiff`), and anything that knows kernels or machines.
The rules of `simplify` stand in `rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..graph import Graph
from .accumulate import gather_sums
from .attention import recognise_attention
from .cse import eliminate_common_subexpressions
from .dead import eliminate_dead_code
from .factors import share_factors
from .hoist import hoist_invariants
from .inline_calls import inline_calls
from .pack_floats import pack_floats
from .read_back import read_back
from .rules.fold import fold_constants
from .rules.hash import canonical_key
from .simplify import exact_rules, simplify, simplify_fast
from .sink import sink_views
from .small_matrices import write_out_matrices
from .split_complex import split_complex

__all__ = [
    "PIPELINE",
    "canonical_key",
    "eliminate_common_subexpressions",
    "eliminate_dead_code",
    "fold_constants",
    "gather_sums",
    "hoist_invariants",
    "inline_calls",
    "optimise",
    "pack_floats",
    "read_back",
    "recognise_attention",
    "share_factors",
    "simplify",
    "simplify_fast",
    "sink_views",
    "split_complex",
    "storable",
    "write_out_matrices",
]

Pass = Callable[[Graph], Graph]

STORABLE: tuple[Pass, ...] = (write_out_matrices, split_complex, pack_floats)

PIPELINE: tuple[Pass, ...] = (
    inline_calls,  # what only speaks of derivatives has done its work
    eliminate_dead_code,
    recognise_attention,
    simplify,  # folds constants and merges common subexpressions in the same walk
    eliminate_dead_code,
    share_factors,
    hoist_invariants,
    gather_sums,
    read_back,
    sink_views,
)


def storable(graph: Graph) -> Graph:
    """`graph` over the dtypes that code generation knows: bools, integers, float32 and float64. Small
    matrices are written out, while complex numbers still are numbers."""
    for run in STORABLE:
        graph = run(graph)
    return graph


def prepare() -> None:
    """Make the table of rules, so that the first `optimise` finds it."""
    exact_rules()


def optimise(graph: Graph, *, verify: bool = False, fastmath: bool = False) -> Graph:
    """Run the pipeline. `verify` checks the graph after each pass; `fastmath` admits the rules that
    are not exact."""
    for run in pipeline(fastmath):
        graph = run(graph)
        if verify:
            from ..verify import verify as check

            check(graph)
    return graph


def pipeline(fastmath: bool = False) -> Sequence[Pass]:
    """The passes of `optimise`."""
    if not fastmath:
        return PIPELINE
    return [simplify_fast if run is simplify else run for run in PIPELINE]


def followed(graph: Graph, passes: Sequence[Pass]) -> Iterator[tuple[str, Graph]]:
    """The graph after each of `passes`, by the name of the pass; one that runs again is `name_2`."""
    seen: dict[str, int] = {}
    for run in passes:
        graph = run(graph)
        name = run.__name__
        seen[name] = seen.get(name, 0) + 1
        yield (name if seen[name] == 1 else f"{name}_{seen[name]}"), graph
