"""The verifier of steps finds what a pass does wrong: faults are planted in passes, one at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt
from jitney.codegen.kernels.scatter import lower_updates
from jitney.codegen.loop_ir.kernel import Kernel
from jitney.codegen.loop_ir.steps import touched
from jitney.codegen.lowering import context, lower_loops
from jitney.codegen.program import compile as codegen
from jitney.codegen.schedule import fusion, rowblocks, time_tiles
from jitney.codegen.schedule.schedule import Schedule
from jitney.codegen.verify import StepError

Patch = Callable[[pytest.MonkeyPatch], None]


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def chain(x: Any) -> Any:
    y = np.sort(np.sin(x), axis=0)
    return np.sort(y + 1, axis=0) * y


def network(w: Any, b: Any, w2: Any, v: Any, x: Any) -> Any:
    h = np.maximum(x @ w + b, 0)
    h = np.maximum(h @ w2 + b, 0)
    return ((h @ v) ** 2).sum()


def heat(u: Any) -> Any:
    def step(_: Any, u: Any) -> Any:
        inner = u[1:-1, 1:-1] + 0.1 * (u[2:, 1:-1] - 2 * u[1:-1, 1:-1] + u[:-2, 1:-1])
        return jt.at(u)[1:-1, 1:-1].set(inner)

    return jt.fori_loop(0, 64, step, u)


def string(u: Any) -> Any:
    def step(_: Any, u: Any) -> Any:
        return jt.at(u)[1:-1].set(u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]))

    return jt.fori_loop(0, 64, step, u)


def mixture(x: Any, mean: Any, factor: Any) -> Any:
    return np.matmul(x - mean[:, None, :], factor)


def turned_over(x: Any, w: Any) -> Any:
    h = x @ w
    return h @ w + h[::-1]


def joined(x: Any) -> Any:
    return np.concatenate([x, x + 1])


def there_and_back(x: Any) -> Any:
    y = np.exp(np.sin(x))
    return y + y[::-1]


def counted(x: Any, i: Any) -> Any:
    return jt.at(x)[i].add(1.0)


def gradient(*arguments: Any) -> Any:
    return jt.grad(network, (0, 1, 2, 3))(*arguments)


def replaced(module: Any, name: str, make: Callable[[Any], Any]) -> Patch:
    return lambda patch: patch.setattr(module, name, make(getattr(module, name)))


def reversed_steps(rewrite: Any) -> Any:
    return lambda items, keep=(): rewrite(items, keep)[::-1]


def without_last(rewrite: Any) -> Any:
    return lambda items, keep=(): rewrite(items, keep)[:-1]


def one_place(plan: Any) -> Any:
    def planned(program: Any) -> int:
        top: int = plan(program)
        for step in program.steps:
            for array in (a for arrays in touched(step) for a in arrays):
                array.offset = min(array.offset, 0)
        return top

    return planned


def all_local(fuse: Any) -> Any:
    """Every temporary is said to live in the kernel that writes it."""

    def fused(items: Any, keep: Any = ()) -> Any:
        steps = fuse(items, keep)
        for step in steps:
            if isinstance(step, Kernel):
                step.local |= {s.array for s in step.stages if s.array.kind == "temp"}
        return steps

    return fused


def by_count(each: Any) -> Any:
    """What a number's being a multiple of another was once taken to say."""
    return lambda plan, rows: None if plan.range % rows else plan.range // rows


def stale(reuse: Any) -> Any:
    """Counts of what the steps touched before they were changed."""
    return lambda step, uses, keep: reuse(step, uses.copy(), keep)


def further(variables: Any) -> Any:
    """One trip more than there are elements."""
    return lambda shape: variables((*shape[:-1], shape[-1] + 1))


def in_pairs(index: Any) -> Any:
    return lambda dims: tuple(i // 2 for i in index(dims))


def all_of_it(stage: Any) -> Any:
    return lambda *a, **k: stage(*a, **{**k, "whole": True})


def halved(of_var: Any) -> Any:
    return lambda v: of_var(v) // 2


def careless(join_map: Any) -> Any:
    """Whatever it reads, a stage joins a kernel of its loops."""

    def join(group: Any, stage: Any) -> Any:
        if stage.extents != group.extents:
            return join_map(group, stage)
        group.nests[0].stages.append(stage)
        fusion._add(group, stage)
        return None

    return join


def displaced(part: Any) -> Any:
    return lambda *a: None if (found := part(*a)) is None else found._replace(first=found.first + 1)


def nearer(reach: Any) -> Any:
    return lambda *a: max((reach(*a) or 0) - 1, 0)


NETWORK = [ones(64, 512), ones(512), ones(512, 512), ones(512, 10), ones(128, 64)]
MIXTURE = [ones(100, 10), ones(25, 10), ones(25, 10, 10)]
FAULTS: dict[str, tuple[Callable[..., Any], list[np.ndarray], Patch, str]] = {
    "steps in another order": (
        chain, [ones(70, 5)], replaced(context, "fuse", reversed_steps), "another step has written",
    ),
    "a step is lost": (chain, [ones(70, 5)], replaced(context, "fuse", without_last), "is lost"),
    "local to two kernels": (
        chain, [ones(70, 5)], replaced(context, "fuse", all_local), "which lives in",
    ),
    "a place for all": (
        chain, [ones(70, 5)], replaced(codegen, "plan", one_place), "another array has taken",
    ),
    "stale counts": (gradient, NETWORK, replaced(rowblocks, "_reuse", stale), "which lives in"),
    "squares across units": (
        mixture, MIXTURE, replaced(Schedule, "each", by_count), "does not go by the rows",
    ),
    "units that overlap": (
        turned_over,
        [ones(512, 256), ones(256, 256)],
        replaced(rowblocks, "_fits", lambda fits: lambda *a: True),
        "meet in",
    ),
    "a loop goes too far": (
        joined, [ones(5)], replaced(lower_updates, "variables", further), "leaves its array",
    ),
    "an element written twice": (
        joined, [ones(6)], replaced(lower_updates, "indices", in_pairs), "twice",
    ),
    "parts that say they are all": (
        joined, [ones(5)], replaced(lower_updates, "Stage", all_of_it), "5 of its 10 elements",
    ),
    "threads that meet": (
        counted,
        [ones(8), np.ones(1 << 17, np.int64)],
        replaced(lower_updates, "of_var", halved),
        "in two threads",
    ),
    "values that are not there yet": (
        there_and_back, [ones(64)], replaced(fusion, "_join_map", careless), "at other points",
    ),
    "a stencil reaches further": (
        heat, [ones(600, 600)], replaced(time_tiles, "_reach", nearer), "time tiles",
    ),
    "edges of a few points": (
        string,
        [ones(1 << 19)],
        replaced(time_tiles, "_margin", lambda _: lambda part: 0),
        "vectors longer than a block",
    ),
    "rows that lie elsewhere": (
        heat, [ones(600, 600)], replaced(time_tiles, "_part", displaced), "other rows",
    ),
    "part of a loop is taken out of it": (
        heat,
        [ones(600, 600)],
        replaced(lower_loops, "_invariants", lambda _: lambda body, __: body.steps.clear() or []),
        "does not write",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, arguments, plant, message = FAULTS[name]
    plant(monkeypatch)
    with jt.config(cache=False), pytest.raises(StepError, match=message):
        jt.jit(lambda *a: function(*a)).lower(*arguments)


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    with jt.config(cache=False):
        for function, arguments in {id(f): (f, a) for f, a, _, _ in FAULTS.values()}.values():
            jt.jit(lambda *a, function=function: function(*a)).lower(*arguments)


@pytest.mark.parametrize("shape", [(784, 128), (100, 1000), (3, 100_003), (99, 7, 301)])
def test_the_last_chunk_of_a_reduction_is_shorter(shape: tuple[int, ...]) -> None:
    with jt.config(cache=False):
        jt.jit(lambda x: (x.sum(), np.cumsum(x), x.argmax(), x.T.sum(0))).lower(ones(*shape))
        jt.jit(lambda x: (np.cumsum(x, -1), np.cumprod(x[..., ::-1], -1))).lower(ones(*shape))


def test_the_verifier_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    replaced(context, "fuse", without_last)(monkeypatch)
    with jt.config(cache=False, verify=False):
        jt.jit(lambda x: chain(x)).lower(ones(70, 5))
    with jt.config(cache=False, verify=True), pytest.raises(StepError):
        jt.jit(lambda x: chain(x)).lower(ones(70, 5))
