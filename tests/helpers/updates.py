"""Programs that update arrays: in loops, branches, overlapping, of values that are read later."""

from __future__ import annotations

from programs import loop, region

from jitney.ir.types import F64, I32, I64


def put(b, x, u, at, step=1):
    """x[at : at + step * len(u) : step] = u"""
    return b.update_slice(x, u, start=(at,), step=(step,))


def part(b, x, start, stop):
    return b.slice(x, start=(start,), stop=(stop,), step=(1,))


def ones(b, n, value=1.0):
    return b.full((n,), value, F64)


def total(b, x):
    return b.broadcast(b.op("sum", x, axes=(0,)), shape=x.shape, dims=())


def chain_of_updates(b, x):
    y = b.exp(x)
    for k in range(6):
        y = put(b, y, part(b, b.neg(x), k, k + 2), 5 - k)
    return y


def old_value_read_later(b, x):
    y = b.exp(x)
    z = put(b, y, ones(b, 3), 2)
    return b.add(z, y), put(b, z, ones(b, 2, 5.0), 0)


def old_value_inlined_later(b, x):
    """`half` has no memory of its own when y is updated: it must still see the old y."""
    y = b.exp(x)
    half = b.neg(part(b, y, 0, 4))
    z = put(b, y, ones(b, 4), 1)
    return put(b, z, half, 3)


def update_reads_its_base(b, x):
    y = b.exp(x)
    y = put(b, y, b.flip(part(b, y, 0, 6), axes=(0,)), 2)
    return put(b, y, part(b, y, 1, 5), 0)


def update_with_itself(b, x):
    y = b.exp(x)
    return b.update_slice(
        b.update_slice(y, y, start=(0,), step=(1,)), b.neg(y), start=(0,), step=(1,)
    )


def strided_update(b, x):
    y = b.exp(x)
    y = put(b, y, ones(b, 4), 0, step=2)
    return put(b, y, part(b, x, 0, 3), 1, step=3)


def two_outputs_from_one_base(b, x):
    y = b.exp(x)
    return put(b, y, ones(b, 2), 0), put(b, y, ones(b, 2), 4), y


def same_output_twice(b, x):
    y = put(b, b.exp(x), ones(b, 2), 0)
    return y, y, x, x


def scattered_twice(b, x):
    index = b.const([3, 0, 3, -1, 3], I64)
    y = b.scatter(b.exp(x), part(b, x, 0, 5), index, axes=(0,), mode="check", combine="set")
    return b.scatter(y, part(b, y, 0, 5), index, axes=(0,), mode="check", combine="add")


def in_a_loop(b, x):
    def body(b, i, x):
        moved = b.dynamic_slice(x, i, sizes=(3,))
        return b.dynamic_update_slice(x, b.add(moved, ones(b, 3)), b.sub(b.const(5, I64), i))

    return loop(b, 5, body, x)


def swapped_carries(b, x):
    return loop(b, 5, lambda b, i, x, y: (y, put(b, x, ones(b, 2), 1)), x, b.exp(x))


def both_updated_and_swapped(b, x):
    def body(b, i, x, y):
        return put(b, put(b, y, part(b, x, 0, 2), 0), ones(b, 1), 3), put(b, x, part(b, y, 2, 4), 4)

    return loop(b, 4, body, x, b.exp(x))


def carry_given_twice(b, x):
    def body(b, i, x, y):
        z = put(b, x, b.add(part(b, y, 0, 2), ones(b, 2)), 4)
        return z, z

    return loop(b, 3, body, x, x)


def old_carry_kept_too(b, x):
    return loop(b, 4, lambda b, i, x, y: (put(b, x, part(b, y, 0, 3), 2), x), x, b.exp(x))


def chain_through_another_output(b, x):
    """The last update of the chain goes to another carry than the one in the middle."""

    def body(b, i, x, y, z):
        middle = put(b, z, part(b, x, 5, 6), 0)
        last = put(b, middle, part(b, z, 5, 6), 0)
        return last, last, middle

    return loop(b, 3, body, x, b.exp(x), b.neg(x))


def carry_read_after_its_update(b, x):
    def body(b, i, x, s):
        y = put(b, x, ones(b, 2, 3.0), 0)
        return b.add(y, ones(b, 8)), b.add(s, total(b, x))

    return loop(b, 3, body, x, b.exp(x))


def constant_of_loop_updated(b, x):
    def body(b, i, c, x):
        c = put(b, c, b.add(part(b, c, 0, 1), ones(b, 1)), 0)
        return b.add(x, total(b, put(b, c, ones(b, 1), 1)))

    return loop(b, 3, body, x, consts=[b.exp(x)])


def region_updates_its_carry(b, x):
    types = [x.type]

    def going(b, x):
        index = b.const([0, 1], I64)
        y = b.scatter(x, ones(b, 2), index, axes=(0,), mode="check", combine="add")
        return b.lt(b.op("sum", y, axes=(0,)), b.const(40.0, F64))

    body = region(lambda b, x: b.add(x, ones(b, 8)), *types)
    return b.op("while", x, regions=(region(going, *types), body), consts=0)


def branch_updates_what_is_read_later(b, x):
    y = b.exp(x)
    no = region(lambda b, y: put(b, put(b, y, ones(b, 1, 5.0), 0), ones(b, 1, 6.0), 1), y.type)
    yes = region(lambda b, y: b.neg(y), y.type)
    flag = b.convert(b.op("lt", b.op("sum", x, axes=(0,)), b.const(1e9, F64)), dtype=I32)
    out = [b.op("cond", f, y, regions=(no, yes)) for f in (flag, b.sub(b.const(1, I32), flag))]
    return (*out, y)


def nested_control(b, x):
    def inner(b, i, c, x):
        return put(b, x, b.add(part(b, c, 0, 3), part(b, x, 1, 4)), 2)

    def taken(b, i, c, x):
        return loop(b, 3, lambda b, j, c, x: inner(b, j, c, x), x, consts=[c])

    def body(b, i, c, x):
        types = [i.type, c.type, x.type]
        regions = (region(lambda b, i, c, x: c, *types), region(taken, *types))
        flag = b.convert(b.op("bitwise_and", i, b.const(1, I64)), dtype=I32)
        y = b.op("cond", flag, i, c, x, regions=regions)
        return b.add(scaled_half(b, y), x)

    return loop(b, 5, body, x, consts=[b.exp(x)])


def scaled_half(b, x):
    return b.mul(x, b.full_like(x, 0.5))


UPDATING = [
    chain_of_updates, old_value_read_later, old_value_inlined_later, update_reads_its_base,
    update_with_itself, strided_update, two_outputs_from_one_base, same_output_twice,
    scattered_twice, in_a_loop, swapped_carries, both_updated_and_swapped, carry_given_twice,
    old_carry_kept_too, chain_through_another_output, carry_read_after_its_update,
    constant_of_loop_updated, region_updates_its_carry, branch_updates_what_is_read_later,
    nested_control,
]  # fmt: skip
