"""Every collective in every place, on each of several processes, against what its record says of all."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import jitney as jt
from jitney.ir.ops.collectives.records import COLLECTIVES

comm = jt.distributed.init(timeout=60, debug=True)
N, R = comm.size, comm.rank
rng = np.random.default_rng(0)
RING = [(i, (i + 1) % N) for i in range(N)]


def shards(*shape: int, dtype: Any = np.float64) -> Any:
    return np.round(rng.normal(size=(N, *shape)) * 4).astype(dtype)


def same(got: Any, want: Any, what: str) -> None:
    np.testing.assert_allclose(
        np.asarray(got), np.asarray(want), rtol=1e-12, err_msg=f"{R}: {what}"
    )
    assert np.asarray(got).dtype == np.asarray(want).dtype, (what, got, want)


FUNCTIONS = {
    "sum": (lambda x, i: jt.psum(x, i), (3, 2)),
    "mean": (lambda x, i: jt.pmean(x, i), (3,)),
    "max": (lambda x, i: jt.pmax(x, i), (3,)),
    "min": (lambda x, i: jt.pmin(x, i), ()),
    "gather": (lambda x, i: jt.all_gather(x, i, axis=1), (3, 2)),
    "gather tiled": (lambda x, i: jt.all_gather(x, i, tiled=True), (3, 2)),
    "scatter": (lambda x, i: jt.psum_scatter(x, i), (N, 3)),
    "scatter tiled": (
        lambda x, i: jt.psum_scatter(x, i, scatter_dimension=1, tiled=True),
        (3, 2 * N),
    ),
    "exchange": (lambda x, i: jt.all_to_all(x, i, 0, 1), (N, 3)),
    "exchange tiled": (lambda x, i: jt.all_to_all(x, i, 1, 0, tiled=True), (3, 2 * N)),
    "ring": (lambda x, i: jt.ppermute(x, i, RING), (3,)),
    "some": (lambda x, i: jt.ppermute(x, i, RING[:-1]), (3,)),
    "broadcast": (lambda x, i: jt.pbroadcast(x, i, N - 1), (3,)),
    "index": (lambda x, i: x * (2.0 + jt.axis_index(i)), (3,)),
    "empty": (lambda x, i: jt.psum(x, i), (0, 3)),
    "large": (lambda x, i: jt.psum(x, i), (9000,)),
    "large gather": (lambda x, i: jt.all_gather(x, i), (9000,)),
}

if sys.argv[1:] != ["all"]:
    FUNCTIONS = dict(list(FUNCTIONS.items())[::6])

# One process computes by vmap what all of them compute together.
for name, (function, shape) in FUNCTIONS.items():
    x = shards(*shape)
    along = lambda x: jt.vmap(lambda x: function(x, "i"), axis_name="i")(x)  # noqa: B023, E731
    here = lambda x: function(x, comm)  # noqa: B023, E731
    want = along(x)
    same(here(x[R]), want[R], name)
    same(jt.jit(here)(x[R]), want[R], f"jit {name}")
    same(
        jt.jit(here)(x[R][..., ::-1]), along(x[..., ::-1])[R], f"strided {name}"
    ) if shape else None
    more = np.stack([x, -x], axis=1)
    inside = jt.vmap(jt.vmap(lambda x: function(x, "i")), axis_name="i")(more)  # noqa: B023
    same(jt.jit(jt.vmap(here))(more[R]), inside[R], f"vmap {name}")
    loss = lambda x: np.sin(along(x)).sum()  # noqa: B023, E731
    own = lambda x: np.sin(here(x)).sum()  # noqa: B023, E731
    same(jt.jit(jt.grad(own))(x[R]), jt.grad(loss)(x)[R], f"grad {name}")
    same(jt.grad(own)(x[R]), jt.grad(loss)(x)[R], f"eager grad {name}")
    tangent = jt.jvp(along, (x,), (np.cos(x),))[1]
    same(jt.jit(lambda x: jt.jvp(here, (x,), (np.cos(x),))[1])(x[R]), tangent[R], f"jvp {name}")  # noqa: B023

for dtype in (
    bool,
    np.int8,
    np.uint16,
    np.int64,
    np.float16,
    jt.bfloat16,
    np.float32,
    np.complex64,
):
    x = shards(3, dtype=dtype)
    wide = x.astype(np.int64) if dtype is bool else x
    total = COLLECTIVES["all_reduce"].together(list(wide), size=N, kind="sum")[R]
    for how in (lambda f: f, jt.jit):
        got = how(lambda x: comm.all_reduce(x))(x[R])
        assert got.dtype == total.dtype and (got == total).all(), (dtype, got, total)
        moved = how(lambda x: comm.ppermute(x, RING))(x[R])
        assert moved.dtype == x.dtype and (moved == x[R - 1]).all(), dtype
        every = how(lambda x: comm.all_gather(x))(x[R])
        assert every.dtype == x.dtype and (every == x).all(), dtype


# Loops, branches that all take, scans, while with a derivative, checkpoint.
@jt.jit
def program(x: Any, n: int) -> Any:
    total = comm.all_reduce(x)
    for k in range(n):
        if total.sum() > k:
            total = comm.all_reduce(total) / N + x
        else:
            total = total + comm.ppermute(x, RING)
    carry, ys = jt.scan(lambda c, k: (comm.all_reduce(c, "mean") + k, c.sum()), total, np.ones(3))
    carry = jt.checkpoint(lambda c: np.sin(comm.all_reduce(np.cos(c))))(carry)
    return (carry * x).sum() + ys.sum()


def alone(x: Any, n: int) -> Any:
    """The same by one process: members along the first axis."""

    def one(x: Any) -> Any:
        total = jt.psum(x, "i")
        for k in range(n):

            def yes(t: Any) -> Any:
                return jt.psum(t, "i") / N + x

            def no(t: Any) -> Any:
                return t + jt.ppermute(x, "i", RING)

            total = yes(total) if way[k] else no(total)
        carry, ys = jt.scan(lambda c, k: (jt.pmean(c, "i") + k, c.sum()), total, np.ones(3))
        carry = np.sin(jt.psum(np.cos(carry), "i"))
        return (carry * x).sum() + ys.sum()

    return jt.vmap(one, axis_name="i")(x)


x = np.abs(shards(4)) + 1
way = [True] * 3
same(program(x[R], 3), alone(x, 3)[R], "program")
np.testing.assert_allclose(
    jt.jit(jt.grad(program))(x[R], 3), jt.grad(lambda x: alone(x, 3).sum())(x)[R], rtol=1e-10
)

# Messages, in order, tags, both ways; a barrier; parts of the group.
if N > 1:
    if R == 0:
        comm.send(x[0], 1, tag=3)
        jt.jit(lambda x: comm.send(x * 2j, 1))(x[0])
        same(comm.receive(np.float32(0), 1), np.float32(7), "receive")
    elif R == 1:
        same(comm.receive(x[0], 0, tag=3), x[0], "receive")
        got = jt.jit(lambda: comm.receive(jt.ShapeDtype((4,), np.complex128), 0) + 1)()
        same(got, x[0] * 2j + 1, "receive in jit")
        comm.send(np.float32(7), 0)
    comm.barrier()
    jt.jit(lambda x: (comm.barrier(), x + 1)[1])(x[R])
    part = comm.split(R % 2, -R)
    assert part.size == len(range(R % 2, N, 2)), part
    same(jt.jit(part.all_reduce)(np.float64(R)), np.float64(sum(range(R % 2, N, 2))), "split")
    try:
        jt.grad(lambda x: (comm.send(x, (R + 1) % N), x.sum())[1])(x[R])
        raise AssertionError("a derivative of send")
    except jt.errors.JitneyError as error:
        assert "does not follow" in str(error), error
print("right", R)
