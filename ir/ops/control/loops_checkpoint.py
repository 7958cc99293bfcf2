"""Reverse mode of `while` in bounded memory: checkpoints of the carry, from which iterations run again.

"sqrt"  Segments of 1, 2, 3, ... iterations, and a copy of the carry on a tape before each. The backward
        pass replays one segment after the other, the last one first, onto a second tape. For n
        iterations both tapes hold about sqrt(2 n) records, and each iteration runs twice.

K       K copies of the carry, in arrays of K slots. The number of iterations is not known beforehand, so
        copies are taken every s iterations; when all slots are full, every other one is dropped and s
        doubles (online checkpointing; P. Stumm and A. Walther, "New Algorithms for Optimal Online
        Checkpointing", SIAM J. Sci. Comput. 32 (2010); V. Heuveline and A. Walther, "Online
        Checkpointing for Parallel Adjoint Computation in PDEs", Euro-Par 2006). The backward pass
        runs forward again from the nearest copy, and puts copies into the slots that have become
        free as binomial checkpointing has it (A. Griewank, "Achieving logarithmic growth of
        temporal and spatial complexity in reverse automatic differentiation", Optimization Methods
        and Software 1 (1992); A. Griewank and A. Walther, "Algorithm 799: revolve", ACM TOMS 26 (2000)).

The result is that of "all", to the bit where the arithmetic is: the same backward parts get the same
values in the same order. Checks in the body are made again in a replay, as they were passed before.
Loops with other effects, and loops over tapes (derivatives of derivatives), keep everything.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...build import Builder
from ...graph import Op, Value
from ...record import record
from ...types import I64, TOKEN, TensorType
from .loops import invariant_carries
from .loops_backward import Plan, Residuals, run_loop, step_back, unwind


@record
class _Tape:
    segments: Value
    tape: Value


@record
class _Slots:
    used: Value
    spacing: Value
    slots: list[Value]


def forward(
    b: Builder, op: Op, plan: Plan, checkpoint: str | int
) -> tuple[Sequence[Value], Residuals]:
    """The loop's results, and what its backward part starts from."""
    run = _forward_sqrt if checkpoint == "sqrt" else _forward_slots
    return run(b, _Loop(op, plan), checkpoint)


def backward(
    b: Builder, op: Op, stored: Residuals, cts: Sequence[Value], sums: Sequence[Value]
) -> tuple[list[Value], list[Value]]:
    """The cotangents of the carries at the start, and the sums of those of constants."""
    run = _backward_sqrt if isinstance(stored.memory, _Tape) else _backward_slots
    return run(b, _Loop(op, stored.plan), stored, cts, sums)


class _Loop:
    """A `while` op taken apart: its consts, its carry, and the part of the carry that is stored."""

    def __init__(self, op: Op, plan: Plan) -> None:
        self.test, self.body = op.regions
        self.plan = plan
        count = op.attrs["consts"]
        self.consts = list(op.operands[:count])
        self.carry = list(op.operands[count:])
        still = invariant_carries(self.body, count, len(self.carry))
        self.stored = [
            i for i, v in enumerate(self.carry) if isinstance(v.type, TensorType) and i not in still
        ]
        self.initial = [self.carry[i] for i in self.stored]
        # What replays need beside the stored part: the consts, and the carries that stay.
        constant_carries = [i for i in still if isinstance(self.carry[i].type, TensorType)]
        self.still = dict(zip(constant_carries, range(len(constant_carries)), strict=True))
        self.fixed = self.consts + [self.carry[i] for i in constant_carries]

    def goes_on(self, b: Builder, consts: Sequence[Value], carry: Sequence[Value]) -> Value:
        return b.inline(self.test, [*consts, *carry])[0]

    def whole(
        self, b: Builder, fixed: Sequence[Value], stored: Sequence[Value]
    ) -> tuple[list[Value], list[Value]]:
        """Consts and carry as the body takes them, from `fixed` and the stored part."""
        n = len(self.consts)
        by_index = dict(zip(self.stored, stored, strict=True))
        carry = []
        for i, v in enumerate(self.carry):
            if i in by_index:
                carry.append(by_index[i])
            else:
                token = v.type == TOKEN
                carry.append(b.op("create_token") if token else fixed[n + self.still[i]])
        return list(fixed[:n]), carry

    def replay(
        self, b: Builder, fixed: Sequence[Value], stored: Sequence[Value]
    ) -> tuple[list[Value], list[Value]]:
        """One iteration: the stored part after it, and what the backward part of the iteration needs."""
        consts, carry = self.whole(b, fixed, stored)
        out = b.inline(self.plan.parts.forward, [*consts, *carry])
        return [out[i] for i in self.stored], out[len(carry) :]

    def free(self, fixed: Sequence[Value]) -> list[Value]:
        """The values at `plan.free`, out of `fixed`."""
        n = len(self.consts)
        return [fixed[i] if i < n else fixed[n + self.still[i - n]] for i in self.plan.free]


def _add(b: Builder, x: Value, n: int) -> Value:
    return b.op("add", x, b.const(n, I64))


def _until(
    b: Builder, loop: _Loop, consts: list[Value], carry: list[Value], done: Value, end: Value
) -> tuple[list[Value], Value]:
    """Iterations while the loop goes on, from number `done` up to number `end`."""
    n = len(consts)

    def test(inner: Builder, fixed: list[Value], state: list[Value]) -> Value:
        left = inner.op("lt", state[-1], fixed[-1])
        return inner.op("bitwise_and", left, loop.goes_on(inner, fixed[:n], state[:-1]))

    def iteration(inner: Builder, fixed: list[Value], state: list[Value]) -> list[Value]:
        return [*inner.inline(loop.body, [*fixed[:n], *state[:-1]]), _add(inner, state[-1], 1)]

    *carry, done = run_loop(b, [*consts, end], [*carry, done], test, iteration, loop.body.name)
    return carry, done


# "sqrt"


def _forward_sqrt(b: Builder, loop: _Loop, _: str | int) -> tuple[Sequence[Value], Residuals]:
    def test(inner: Builder, consts: list[Value], state: list[Value]) -> Value:
        return loop.goes_on(inner, consts, state[:-3])

    def segment(inner: Builder, consts: list[Value], state: list[Value]) -> list[Value]:
        *carry, done, number, tape = state
        tape = inner.op("tape_push", tape, *(carry[i] for i in loop.stored))
        number = _add(inner, number, 1)
        carry, done = _until(inner, loop, consts, carry, done, inner.op("add", done, number))
        return [*carry, done, number, tape]

    zero = b.const(0, I64)
    state = [*loop.carry, zero, zero, b.op("tape_new")]
    *carry, done, number, tape = run_loop(b, loop.consts, state, test, segment, "segment")
    return carry, Residuals(loop.plan, done, _Tape(number, tape))


def _backward_sqrt(
    b: Builder, loop: _Loop, forward: Residuals, cts: Sequence[Value], sums: Sequence[Value]
) -> tuple[list[Value], list[Value]]:
    types = tuple(v.type for v in loop.initial)

    def test(inner: Builder, fixed: list[Value], state: list[Value]) -> Value:
        return inner.op("gt", state[1], inner.const(0, I64))

    def segment(inner: Builder, fixed: list[Value], state: list[Value]) -> list[Value]:
        done, number, tape, *rest = state
        tape, *stored = _listed(inner.op("tape_pop", tape, types=types))
        end = number
        # This segment starts after 1 + 2 + ... + number iterations.
        number = _add(inner, number, -1)
        start = inner.op("right_shift", inner.op("mul", number, end), inner.const(1, I64))
        iterations = inner.op("sub", done, start)
        records = _record(inner, loop, fixed, stored, iterations)
        cts_and_sums = rest[: len(cts)], rest[len(cts) :]
        new_cts, new_sums, _ = unwind(
            inner, loop.plan, loop.free(fixed), iterations, records, *cts_and_sums
        )
        return [start, number, tape, *new_cts, *new_sums]

    memory = forward.memory
    state = [forward.count, memory.segments, memory.tape, *cts, *sums]
    out = run_loop(b, loop.fixed, state, test, segment, "segment_vjp")[3:]
    return out[: len(cts)], out[len(cts) :]


def _record(
    b: Builder, loop: _Loop, fixed: list[Value], stored: list[Value], iterations: Value
) -> Value:
    """A tape with the records of `iterations` iterations from a stored carry on."""

    def test(inner: Builder, fixed: list[Value], state: list[Value]) -> Value:
        return inner.op("gt", state[-2], inner.const(0, I64))

    def iteration(inner: Builder, fixed: list[Value], state: list[Value]) -> list[Value]:
        *now, left, tape = state
        now, saved = loop.replay(inner, fixed, now)
        return [*now, _add(inner, left, -1), inner.op("tape_push", tape, *saved)]

    state = [*stored, iterations, b.op("tape_new")]
    return run_loop(b, fixed, state, test, iteration, loop.body.name)[-1]


def _listed(values: Value | Sequence[Value]) -> list[Value]:
    return [values] if isinstance(values, Value) else list(values)


# K slots


def _forward_slots(
    b: Builder, loop: _Loop, checkpoint: str | int
) -> tuple[Sequence[Value], Residuals]:
    """Slot m holds the carry after (m + 1) * spacing iterations."""
    count = int(checkpoint)
    n = len(loop.carry)

    def test(inner: Builder, consts: list[Value], state: list[Value]) -> Value:
        return loop.goes_on(inner, consts, state[:n])

    def epoch(inner: Builder, consts: list[Value], state: list[Value]) -> list[Value]:
        """With all slots full every other one is dropped; then iterations, until they are full again."""
        carry, (done, used, spacing, *slots) = state[:n], state[n:]
        full = inner.op("eq", used, inner.const(count, I64))
        index = inner.op("iota", shape=(count,), dtype=I64, axis=0)
        other = _add_each(inner, inner.op("add", index, index), 1)
        source = _choose(inner, full, other, index)
        slots = [inner.op("gather", s, source, axes=(0,), mode="clip") for s in slots]
        used = _choose(inner, full, inner.const(count // 2, I64), used)
        spacing = _choose(inner, full, inner.op("add", spacing, spacing), spacing)
        out = run_loop(
            inner, [*consts, spacing], [*carry, done, used, *slots], has_room, fill, "fill"
        )
        return [*out[:n], out[n], out[n + 1], spacing, *out[n + 2 :]]

    def has_room(inner: Builder, fixed: list[Value], state: list[Value]) -> Value:
        room = inner.op("lt", state[n + 1], inner.const(count, I64))
        return inner.op("bitwise_and", room, loop.goes_on(inner, fixed[:-1], state[:n]))

    def fill(inner: Builder, fixed: list[Value], state: list[Value]) -> list[Value]:
        """To where the next copy is due, and the copy, which does not count if the loop ends before."""
        (*consts, spacing), carry, (done, used, *slots) = fixed, state[:n], state[n:]
        end = inner.op("mul", _add(inner, used, 1), spacing)
        carry, done = _until(inner, loop, consts, carry, done, end)
        values = [carry[i] for i in loop.stored]
        slots = [_put(inner, s, v, used) for s, v in zip(slots, values, strict=True)]
        due = inner.op("convert", inner.op("eq", done, end), dtype=I64)
        return [*carry, done, inner.op("add", used, due), *slots]

    zero = b.const(0, I64)
    slots = [b.zeros(v.tensor.with_shape((count, *v.shape))) for v in loop.initial]
    state = [*loop.carry, zero, zero, b.const(1, I64), *slots]
    out = run_loop(b, loop.consts, state, test, epoch, "epoch")
    done, used, spacing, *slots = out[n:]
    return out[:n], Residuals(loop.plan, done, _Slots(used, spacing, slots))


def _backward_slots(
    b: Builder, loop: _Loop, stored: Residuals, cts: Sequence[Value], sums: Sequence[Value]
) -> tuple[list[Value], list[Value]]:
    """Slot m holds the carry after counts[m] iterations, for m <= top; with top = -1 there is none."""
    memory = stored.memory
    count = memory.slots[0].shape[0] if memory.slots else 1
    m, f = len(loop.initial), len(loop.fixed)

    def more(inner: Builder, fixed: list[Value], state: list[Value]) -> Value:
        return inner.op("ge", state[0], inner.const(0, I64))

    def iteration(inner: Builder, fixed: list[Value], state: list[Value]) -> list[Value]:
        """Back over iteration number `at`: first forward to where it starts."""
        fixed, initial = fixed[:f], fixed[f:]
        (at, top, counts), slots, rest = state[:3], state[3 : 3 + m], state[3 + m :]
        none = inner.op("lt", top, inner.const(0, I64))
        done = _choose(inner, none, inner.const(0, I64), _get(inner, counts, top))
        now = [
            _choose(inner, none, v, _get(inner, s, top))
            for v, s in zip(initial, slots, strict=True)
        ]
        walk = [*now, done, top, counts, *slots]
        out = run_loop(inner, [*fixed, at], walk, not_there, advance, "advance")
        now, (_, top, counts, *slots) = out[:m], out[m:]
        _, saved = loop.replay(inner, fixed, now)
        values = [*loop.free(fixed), *saved]
        before = step_back(inner, loop.plan, values, rest[: len(cts)], rest[len(cts) :])
        used_up = inner.op("eq", _get(inner, counts, top), at)
        used_up = inner.op("bitwise_and", used_up, inner.op("ge", top, inner.const(0, I64)))
        top = inner.op("sub", top, inner.op("convert", used_up, dtype=I64))
        return [_add(inner, at, -1), top, counts, *slots, *before]

    def not_there(inner: Builder, fixed: list[Value], state: list[Value]) -> Value:
        return inner.op("lt", state[m], fixed[-1])

    def advance(inner: Builder, fixed: list[Value], state: list[Value]) -> list[Value]:
        """Forward to where one more copy belongs; to the end, if there is no free slot."""
        (*free, at), now, (done, top, counts, *slots) = fixed, state[:m], state[m:]
        vacant = inner.op("sub", inner.const(count - 1, I64), top)
        end = inner.op("add", done, _stride(inner, inner.op("sub", at, done), vacant))
        now = _again(inner, loop, free, now, inner.op("sub", end, done))
        copy = inner.op("lt", end, at)
        slot = inner.op("minimum", _add(inner, top, 1), inner.const(count - 1, I64))
        slots = [_put_if(inner, copy, s, v, slot) for s, v in zip(slots, now, strict=True)]
        counts = _put_if(inner, copy, counts, end, slot)
        top = inner.op("add", top, inner.op("convert", copy, dtype=I64))
        return [*now, end, top, counts, *slots]

    index = b.op("iota", shape=(count,), dtype=I64, axis=0)
    counts = b.op("mul", _add_each(b, index, 1), b.broadcast_to(memory.spacing, (count,)))
    # A copy that was made after the last iteration is of no use.
    last = b.op("eq", b.op("mul", memory.used, memory.spacing), stored.count)
    last = b.op("bitwise_and", last, b.op("gt", memory.used, b.const(0, I64)))
    top = b.op("sub", _add(b, memory.used, -1), b.op("convert", last, dtype=I64))
    state = [_add(b, stored.count, -1), top, counts, *memory.slots, *cts, *sums]
    out = run_loop(b, [*loop.fixed, *loop.initial], state, more, iteration, "iteration_vjp")[
        3 + m :
    ]
    return out[: len(cts)], out[len(cts) :]


def _stride(b: Builder, left: Value, vacant: Value) -> Value:
    """How far to go to the next copy, with `left` >= 1 iterations to go and `vacant` free slots.

    With c slots and each iteration run at most r + 1 times, binomial(c + r, c) iterations can be
    reversed. For the least r that is enough, the next copy divides them as c to r: the iterations
    before it will be run once more, those after it have one slot less.
    """

    def more(inner: Builder, fixed: list[Value], state: list[Value]) -> Value:
        return inner.op("lt", state[1], fixed[0])

    def grow(inner: Builder, fixed: list[Value], state: list[Value]) -> list[Value]:
        repeats, reach = state
        repeats = _add(inner, repeats, 1)
        grown = inner.op("mul", reach, inner.op("add", fixed[1], repeats))
        return [repeats, inner.op("floor_divide", grown, repeats)]

    one = b.const(1, I64)
    # Those to reverse: the last one starts where `left` iterations lead.
    iterations = _add(b, left, 1)
    slots = b.op("maximum", vacant, one)
    repeats, _ = run_loop(b, [iterations, slots], [b.const(0, I64), one], more, grow, "grow")
    part = b.op("floor_divide", b.op("mul", iterations, repeats), b.op("add", slots, repeats))
    part = b.op("minimum", b.op("maximum", part, one), left)
    return _choose(b, b.op("ge", vacant, one), part, left)


def _again(
    b: Builder, loop: _Loop, fixed: list[Value], stored: list[Value], iterations: Value
) -> list[Value]:
    """The stored part of the carry, `iterations` iterations later."""

    def test(inner: Builder, fixed: list[Value], state: list[Value]) -> Value:
        return inner.op("gt", state[-1], inner.const(0, I64))

    def iteration(inner: Builder, fixed: list[Value], state: list[Value]) -> list[Value]:
        *now, left = state
        consts, carry = loop.whole(inner, fixed, now)
        out = inner.inline(loop.body, [*consts, *carry])
        return [*(out[i] for i in loop.stored), _add(inner, left, -1)]

    return run_loop(b, fixed, [*stored, iterations], test, iteration, loop.body.name)[:-1]


# Slots of arrays


def _add_each(b: Builder, x: Value, n: int) -> Value:
    return b.op("add", x, b.full_like(x, n))


def _choose(b: Builder, condition: Value, x: Value, y: Value) -> Value:
    return b.op("select", b.broadcast_to(condition, x.shape), x, y)


def _starts(b: Builder, slots: Value, at: Value) -> list[Value]:
    return [at, *(b.const(0, I64) for _ in slots.shape[1:])]


def _get(b: Builder, slots: Value, at: Value) -> Value:
    """The value in slot `at`, clamped into range."""
    shape = slots.shape[1:]
    window = b.op("dynamic_slice", slots, *_starts(b, slots, at), sizes=(1, *shape))
    return b.op("reshape", window, shape=shape)


def _put(b: Builder, slots: Value, value: Value, at: Value) -> Value:
    row = b.op("reshape", value, shape=(1, *value.shape))
    return b.op("dynamic_update_slice", slots, row, *_starts(b, slots, at))


def _put_if(b: Builder, condition: Value, slots: Value, value: Value, at: Value) -> Value:
    return _put(b, slots, _choose(b, condition, value, _get(b, slots, at)), at)
