"""The memory plan, by playing programs on an arena whose bytes know whose they are.

A step that reads a temporary must find every byte of it still written by that temporary's own steps.
Branches are played one by one, loops for two trips; nothing is computed.
"""

from __future__ import annotations

import itertools
import math
import time
from typing import Any

import numpy as np
import pytest
from graphs import random_graphs
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import build, loop, region
from test_index import value
from updates import UPDATING

from jitney.codegen.loop_ir.index import Data, Div, Index
from jitney.codegen.loop_ir.kernel import Array, Kernel, Stage
from jitney.codegen.loop_ir.steps import (
    Branch,
    Carry,
    Loop,
    Program,
    Scan,
    direct,
    steps_within,
    touched,
)
from jitney.codegen.lowering.context import Context
from jitney.codegen.lowering.lower import lower
from jitney.codegen.schedule.memory import ALIGN, plan
from jitney.codegen.target import Target
from jitney.codegen.verify import check_program
from jitney.ir.graph import Graph
from jitney.ir.passes import optimise
from jitney.ir.types import F64, I32, TensorType


def lowered(graph: Graph) -> Program:
    def arrays(values: Any, kind: str) -> list[Array | None]:
        tensors = [v.type for v in values]
        return [
            Array(t.shape, t.dtype, kind) if isinstance(t, TensorType) else None for t in tensors
        ]

    context = Context(Target("x86_64-linux-gnu", "haswell", "+avx2,+fma", 256))
    return lower(graph, arrays(graph.params, "input"), arrays(graph.outputs, "output"), context)[0]


def temporaries(program: Program) -> set[Array]:
    found: set[Array] = set()
    for step in steps_within(program):
        hidden = step.local if isinstance(step, Kernel) else ()
        found.update(
            a for side in direct(step) for a in side if a.kind == "temp" and a not in hidden
        )
    return found


def computed(index: Index) -> bool:
    """Whether the program computes a part of an index."""
    return any(
        isinstance(atom, Data) or (isinstance(atom, Div) and computed(atom.index))
        for atom in index.terms
    )


class Arena:
    """The bytes of the arena, each labelled with the temporary that wrote it last."""

    def __init__(self, size: int, choices: Any) -> None:
        self.labels = np.zeros(size, np.int64)
        self.choices = choices  # which branch to take, by position of the decision
        self.names: dict[Array, int] = {}
        self.slots: dict[Array, tuple[Array, int]] = {}  # slot -> (array, offset in bytes)

    def place(self, array: Array) -> tuple[np.ndarray, int] | None:
        """The labels of an array's bytes and its own label; None if it is not in the arena."""
        shift, home = 0, array
        while home.kind == "slot":
            home, more = self.slots[home]
            shift += more
        if home.kind != "temp":
            return None
        assert home.offset >= 0 and home.offset % ALIGN == 0
        start = home.offset + shift
        assert start + array.nbytes <= self.labels.size, "past the end of the arena"
        name = self.names.setdefault(home, len(self.names) + 1)
        return self.labels[start : start + array.nbytes], name

    def write(self, array: Array, stage: Stage | None = None) -> None:
        place = self.place(array)
        if place is None:
            return
        labels, name = place
        if stage is None or stage.whole:
            labels[...] = name
            return
        if any(computed(i) for i in stage.index):  # then all of it must have been there before
            self.read(array)
            return
        points = itertools.product(*(range(n) for n in stage.extents))
        elements = [
            sum(
                value(i, dict(zip(stage.dims, p, strict=True))) * s
                for i, s in zip(stage.index, array.strides, strict=True)
            )
            for p in points
        ]
        labels.reshape(array.size, -1)[elements] = name

    def read(self, array: Array) -> None:
        place = self.place(array)
        if place is not None:
            labels, name = place
            assert (labels == name).all(), (
                f"{array!r} was overwritten, or read before it was written"
            )

    def run(self, program: Program) -> None:
        for step in program.steps:
            self.step(step)

    def step(self, step: Any) -> None:
        if isinstance(step, Kernel):
            made = {s.array for s in step.stages if s.whole}
            for access in (a for s in step.stages for a in s.reads):
                if access.array not in made and access.array not in step.local:
                    self.read(access.array)
            for stage in step.stages:
                if stage.array not in step.local:
                    self.write(stage.array, stage)
            for array in made - step.local:  # nothing in the kernel may have hit another's result
                self.read(array)
        elif isinstance(step, Branch):
            self.read(step.index)
            self.run(step.branches[next(self.choices) % len(step.branches)])
        elif isinstance(step, Loop):
            self.begin(step.carries)
            for trip in range(3):
                self.run(step.test)
                self.read(step.flag)
                if trip < 2:
                    self.run(step.body)
                    self.swap(step.carries)
            self.end(step.carries)
        elif isinstance(step, Scan):
            self.begin(step.carries)
            for trip in range(step.length):
                for part in [*step.xs, *step.ys]:
                    self.slots[part.slice] = part.whole, trip * part.slice.nbytes
                for part in step.xs:
                    self.read(part.slice)
                self.run(step.body)
                self.swap(step.carries)
            self.end(step.carries)
        else:
            reads, writes = direct(step)
            for array in reads:
                self.read(array)
            for array in writes:
                self.write(array)

    def begin(self, carries: list[Carry]) -> None:
        for c in carries:
            self.read(c.init)
            self.write(c.result)
            self.slots[c.now] = c.result, 0
            if c.spare is not None:
                self.slots[c.next] = c.spare, 0

    def swap(self, carries: list[Carry]) -> None:
        for c in carries:
            if c.spare is not None:
                self.slots[c.now], self.slots[c.next] = self.slots[c.next], self.slots[c.now]

    def end(self, carries: list[Carry]) -> None:
        for c in carries:
            self.read(c.now)
            self.write(c.result)


def play(program: Program, size: int) -> None:
    for choice in range(3):
        Arena(size, itertools.cycle([choice, choice + 1] if choice == 2 else [choice])).run(program)


@settings(max_examples=60)
@given(random_graphs(max_ops=30), st.booleans())
def test_random_graphs(case, optimised):
    graph, _ = case
    program = lowered(optimise(graph) if optimised else graph)
    size = plan(program)
    play(program, size)


@pytest.mark.parametrize("f", UPDATING, ids=lambda f: f.__name__)
def test_updates_and_loops(f):
    program = lowered(build(f, np.zeros(8)))
    play(program, plan(program))


def test_what_a_later_step_overwrites_is_not_local():
    """Nobody asks for the update's result, but it is made, in memory."""

    def f(b, x):
        y = b.exp(x)
        update, at = b.const(np.ones(1)), b.const(np.zeros(1, np.int64))
        b.scatter(y, update, at, axes=(0,), mode="check", combine="set")
        return b.sum(y, axes=(0,))

    program = lowered(build(f, np.ones(8)))
    check_program(program)
    play(program, plan(program))


def branches_that_share(b, x):
    def side(b, x):
        total = b.broadcast(b.op("sum", b.exp(x), axes=(0,)), shape=x.shape, dims=())
        s = b.sort(b.mul(x, total), axis=0, stable=True)
        return b.add(b.sort(b.neg(s), axis=0, stable=True), s)

    def body(b, i, x):
        flag = b.convert(i, dtype=I32)
        regions = [region(side, x.type), region(lambda b, x: side(b, b.exp(x)), x.type)]
        y = b.op("cond", flag, x, regions=regions)
        return loop(b, 2, lambda b, j, y, x: b.add(side(b, x), y), x, consts=[side(b, y)])

    before = b.sort(x, axis=0, stable=True)
    return b.add(loop(b, 3, body, x), before)


def test_branches_within_loops_within_loops():
    program = lowered(build(branches_that_share, np.zeros(100)))
    size = plan(program)
    play(program, size)
    assert size < sum(a.nbytes for a in temporaries(program)), "nothing is shared"


def test_a_chain_needs_the_memory_of_two():
    def chain(b, x):
        for _ in range(20):
            x = b.sort(b.neg(x), axis=0, stable=True)  # nothing that fuses
        return x

    program = lowered(build(chain, np.zeros(1000)))
    size = plan(program)
    play(program, size)
    total = sum(a.nbytes for a in temporaries(program))
    assert size <= 4 * 8064 < total / 4


def test_a_value_of_long_life_keeps_its_place():
    def program_(b, x):
        kept = b.sort(x, axis=0, stable=True)
        y = kept
        for _ in range(6):
            y = b.sort(b.neg(y), axis=0, stable=True)
        return b.add(y, kept)

    program = lowered(build(program_, np.zeros(64)))
    play(program, plan(program))


def test_no_temporaries_no_arena():
    program = lowered(build(lambda b, x: b.exp(x), np.zeros(10)))
    assert plan(program) == 0


def test_playing_finds_a_bad_plan():
    """The tests above can fail: two values of one time in one place are noticed."""

    def three_at_once(b, x):
        sorts = [b.sort(b.mul(x, b.full_like(x, k)), axis=0, stable=True) for k in (1.0, 2.0, 3.0)]
        total = b.add(b.add(sorts[0], sorts[1]), sorts[2])
        again = [b.sort(b.mul(s, total), axis=0, stable=True) for s in sorts]
        return [b.add(s, t) for s, t in zip(sorts, again, strict=True)]

    program = lowered(build(three_at_once, np.zeros(32)))
    size = plan(program)
    kernels = [step for step in program.steps if isinstance(step, Kernel)]
    stages = [stage for kernel in kernels for stage in kernel.stages]
    decoded = [stage.array for stage in stages if stage.ops == ["copy"] and stage.array.offset >= 0]
    assert len(decoded) == 3
    for one, other in itertools.combinations(decoded, 2):
        place = one.offset
        one.offset = other.offset
        with pytest.raises(AssertionError):
            play(program, size)
        one.offset = place
    play(program, size)


def test_touched_sees_through_loops():
    def program(b, x):
        return loop(b, 2, lambda b, i, c, x: b.add(x, c), x, consts=[b.exp(x)])

    (first, step) = lowered(build(program, np.zeros(4000, F64))).steps[-2:]
    assert isinstance(step, Loop) and isinstance(first, Kernel)
    assert first.stages[0].array in touched(step)[0]


def test_many_values_at_once_are_planned_in_linear_time():
    """Ten times the values, far less than a hundred times the time."""

    def kept(n):
        def f(b, x):
            values = [x]
            for _ in range(n):
                values.append(b.sort(b.neg(values[-1]), axis=0, stable=True))
            for v in list(reversed(values)):
                values.append(b.sort(b.add(values[-1], v), axis=0, stable=True))
                if len(values) > 2 * n:
                    break
            return values[-1]

        program = lowered(build(f, np.zeros(3)))
        best = math.inf
        for _ in range(3):
            start = time.process_time()
            size = plan(program)
            best = min(best, time.process_time() - start)
        assert size >= n * ALIGN
        return best

    kept(10)
    assert kept(1000) < 40 * kept(100) + 0.05
