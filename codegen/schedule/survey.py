"""What one look at a stage's expressions finds, for those who schedule and emit it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from ..loop_ir.index import Index, Var, data_of, of_var, variables
from ..loop_ir.kernel import Access, Stage
from ..math.functions import Elementwise
from ..scalar import FREE, Expr, LoopBody, nodes_of


class Survey(NamedTuple):
    """`indices`: every index that the stage uses, memory accesses as element offsets.
    `size`: nodes of its value that are work, those in bodies of loops and in computed indices apart.
    `loops`: nodes in bodies of loops that run as a rule. `checks`: whether it may report a failure.
    `calls`: the elementwise functions that it has as units, once per call. `results`: the loops
    whose results are read, and which of them.
    """

    indices: list[Index]
    size: int
    loops: int
    checks: bool
    calls: list[Elementwise]
    results: dict[Expr, set[int]]


def survey(stage: Stage) -> Survey:
    """What a stage computes and reads, found by one walk."""
    indices = [stage.write.flat] if stage.index else []
    if stage.chunks is not None:  # the loop over chunks says where a chunk begins: it stays apart
        indices.append(of_var(stage.dims[stage.chunks.axis]) * stage.chunks.length)
    inside: list[Index] = list(stage.index)
    calls: list[Elementwise] = []
    later: list[Expr] = []  # what computes indices, and bodies of loops
    seen: set[Expr] = set()
    loops, checks = 0, False
    results: dict[Expr, set[int]] = {}
    pending = [stage.value] if stage.where is None else [stage.value, stage.where]
    size = -1
    while pending:
        while pending:
            node = pending.pop()
            if node in seen:
                continue
            seen.add(node)
            pending += node.args
            op = node.op
            if op == "load":
                access: Access = node.attr
                indices.append(access.flat)
                inside += access.index
            elif op == "index":
                indices.append(node.attr)
                inside.append(node.attr)
            elif op == "demanded" or (op == "bounded" and node.attr.site):
                checks = True
            elif op == "call":
                calls.append(node.attr)
            elif op == "result":
                results.setdefault(node.args[0], set()).add(node.attr)
            elif op == "loop":
                loops += 0 if node.attr.rare else _work(node.attr)
                later += (node.attr.test, *node.attr.new)
        if size < 0:
            size = sum(1 for n in seen if n.op not in FREE) + sum(f.size - 1 for f in calls)
        while inside:
            later += (data.expr for data in data_of(inside.pop()))
        pending, later = later, []
    return Survey(indices, size, loops, checks, calls, results)


def updates_neighbours(stage: Stage) -> bool:
    """Whether an update's last loop runs over adjacent elements, so that its order is free."""
    if len(stage.dims) == stage.outer:
        return False
    return stage.write.flat.stride(stage.dims[-1]) in (1, -1)


def results_read(surveys: Iterable[Survey]) -> dict[Expr, set[int]]:
    """The loops whose results a kernel's stages read, and which of them."""
    read: dict[Expr, set[int]] = {}
    for stats in surveys:
        for loop, positions in stats.results.items():
            read.setdefault(loop, set()).update(positions)
    return read


def loops_work(surveys: Iterable[Survey]) -> int:
    """Nodes in the bodies of a kernel's loops, each once: stages share those whose results they read."""
    return sum(0 if loop.attr.rare else _work(loop.attr) for loop in results_read(surveys))


def _work(body: LoopBody) -> int:
    """Nodes in the body of a loop, of loops inside too."""
    seen: set[Expr] = set()
    pending = [body.test, *body.new]
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            pending += node.args
            if node.op == "loop":
                pending += (node.attr.test, *node.attr.new)
    return sum(1 for n in seen if n.op not in FREE)


def accesses(expr: Expr) -> list[Access]:
    """What an expression reads, computed indices included, bodies of loops apart."""
    accesses: list[Access] = []
    pending = [expr]
    while pending:
        for load in loads(pending.pop()):
            access: Access = load.attr
            accesses.append(access)
            pending += (data.expr for i in access.index for data in data_of(i))
    return accesses


def loads(expr: Expr) -> list[Expr]:
    """The loads in an expression, those in bodies of loops and in computed indices apart."""
    return [node for node in nodes_of(expr) if node.op == "load"]


def crossing(
    stages: Iterable[Stage],
    loops: Sequence[Var],
    env: Mapping[Var, Index],
    fits: Callable[[Expr, Var], bool],
) -> dict[Var, list[Expr]]:
    """Loads that are contiguous along another loop than the last, which goes further: by that loop.

    `env`: the stages' loops in terms of `loops`. Arrays that the stages write are left out, and what
    does not fit along the loop.
    """
    *others, last = loops
    written = {s.array for s in stages}
    by_loop: dict[Var, list[Expr]] = {}
    for stage in stages:
        for load in loads(stage.value):
            flat = load.attr.flat.substitute(env)
            stride = flat.stride(last)
            if load.attr.array in written or stride is None or abs(stride) <= 1:
                continue
            along = [v for v in others if flat.stride(v) == 1 and fits(load, v)]
            if along:
                by_loop.setdefault(along[-1], []).append(load)
    return by_loop


def invariants(stage: Stage, inner: set[Var]) -> list[Expr]:
    """The largest parts of a stage's value that do not depend on the loops `inner`, constants apart."""
    depends: dict[Expr, bool] = {}
    stack = [stage.value]
    while stack:  # operands before users
        node = stack[-1]
        missing = [a for a in node.args if a not in depends]
        if missing:
            stack += missing
            continue
        stack.pop()
        depends[node] = any(depends[a] for a in node.args) or _reads_position(node, inner)
    leaves: dict[Expr, None] = {}
    for node, varies in depends.items():
        if varies:
            leaves.update((a, None) for a in node.args if not depends[a] and a.op != "const")
    return list(leaves)


def _reads_position(node: Expr, inner: set[Var]) -> bool:
    if node.op == "load":
        return any(inner & variables(i) for i in node.attr.index)
    if node.op == "index":
        return bool(inner & variables(node.attr))
    return node.op in ("loop", "var")
