"""The stages of a call, made of what the compiler does with its graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ...codegen.listing.expressions import Names
from ...codegen.listing.loops import Line, Listing
from ...codegen.listing.memory import memory_plan
from ...codegen.loop_ir.kernel import Kernel
from ...codegen.loop_ir.steps import steps_within
from ...ir.graph import Graph, Op, SourceLine
from ...runtime.following import Followed
from ..messages.source import shown_file
from .drawing import Drawing, draw_kernels
from .fates import fates_text
from .sources import passages
from .stages import Stage, Stages

_PASSES = {
    "write_out_matrices": "small matrices are written out",
    "split_complex": "complex numbers are pairs",
    "pack_floats": "small floats are bits",
    "compose": "compositions that a GPU has another way for",
    "inline_calls": "what only speaks of derivatives is gone",
    "eliminate_dead_code": "what nobody reads is gone",
    "recognise_attention": "attention is one op",
    "simplify": "rewritten by exact rules, equal ops merged",
    "simplify_fast": "rewritten by rules, equal ops merged",
    "hoist_invariants": "what does not change in loops is before them",
    "share_factors": "systems with one matrix share its factors",
    "gather_sums": "sums of loops are gathered",
    "read_back": "what was written into an array is read there",
    "sink_views": "views are where they are read",
}


def make_stages(title: str, graph: Graph, followed: Followed, code: str) -> Stages:
    """The stages of a graph as traced; `code` names the last one, "asm" or "ptx"."""
    stages = [
        Stage("source", "the lines that were traced", lambda: source_text(graph)),
        Stage("trace", "the graph as traced", lambda: graph, graph),
    ]
    before = graph
    for name, after in followed.passes:
        what = _PASSES.get(name.rstrip("_2345"), "a pass")
        stages.append(Stage(name, what, lambda after=after: after, after, after is not before))
        before = after
    names = names_of(graph)
    llvm = "the text that LLVM gets"
    last = "PTX" if code == "ptx" else "assembly"
    program, arena = followed.program, followed.module.arena_bytes
    if any(value.name for op in graph.walk() for value in op.results):
        words = "what became of the values that have names"
        stages.append(Stage("names", words, lambda: fates_text(graph, before)))
    stages += [
        Stage("fuse", "loops, as they are fused", lambda: listing_text(graph, followed)),
        Stage(
            "memory",
            "where temporaries are in memory",
            lambda: "\n".join(memory_plan(program, names, arena)),
        ),
        Stage("llvm", llvm, lambda: followed.llvm),
        Stage(code, last, followed.code),
    ]
    return Stages(title, stages)


def names_of(graph: Graph) -> Names:
    """Names for a listing: arguments and results are called as in the graph."""
    return Names([v.name for v in graph.params], [v.name for v in graph.outputs])


def listing(graph: Graph, followed: Followed) -> Iterable[Line]:
    """The program as loops."""
    notes = {report.name: _note(report) for report in followed.kernels}
    return Listing(names_of(graph), notes, _place).lines(followed.program)


def listing_text(graph: Graph, followed: Followed) -> str:
    """The same as one text."""
    return "\n".join(line.text for line in listing(graph, followed)) or "nothing is computed"


def drawing(graph: Graph, followed: Followed, code: str) -> Drawing:
    """The graph that is compiled, with its kernels as boxes; a function that runs in several places is
    as many of them."""
    del graph, code
    inside: dict[Op, str] = {}
    seen: Counter[str] = Counter()
    for step in steps_within(followed.program):
        if isinstance(step, Kernel):
            seen[step.name] += 1
            again = f" ({seen[step.name]})" if seen[step.name] > 1 else ""
            inside.update((op, step.name + again) for s in step.stages for op in s.sources)
    return draw_kernels(followed.passes[-1][1], inside)


def _note(report: object) -> str:
    words = [getattr(report, "note", "")]
    if getattr(report, "parallel", False):
        words.append("shared among threads")
    return ", ".join(word for word in words if word)


def _place(loc: SourceLine) -> str:
    role = f" ({loc.role})" if loc.role else ""
    return f"{shown_file(loc.file)}:{loc.line}{role}"


def source_text(graph: Graph) -> str:
    """The functions that were traced."""
    found: Sequence[object] = passages(graph)
    return "\n\n".join(map(str, found)) or "no line of Python is known"
