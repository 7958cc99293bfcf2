"""Data parallelism: every process has all parameters and a part of each batch; gradients are averaged.

gradients = jt.distributed.data_parallel(jt.value_and_grad(loss))

@jt.jit
def step(params, x, y):                           # x, y: this process's part of the batch
    value, grads = gradients(params, x, y)        # of the whole batch
    return value, update(params, grads)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import jitney as jt

from .communicator import Communicator
from .starting import init

BUCKET = 4 << 20  # bytes: 25 of these take a gigabit line a second


def data_parallel(
    gradients: Callable[..., Any],
    comm: Communicator | None = None,
    *,
    bucket: int = BUCKET,
    deterministic: bool = False,
    shards: int | None = None,
) -> Callable[..., Any]:
    """`gradients(params, *batch)`, a tree of means over a batch, for the batches of all processes.

    gradients      such as `jt.value_and_grad(loss)`, where the loss is a mean over examples
    comm           all processes of the job by default
    bucket         bytes of a message: arrays are packed until they are as large
    deterministic  the result has the same bits whatever the number of processes, one included. The
                   batch is dealt into `shards` parts, example i to part i % shards, as
                   `dataset.shard(comm)` deals it to processes; each part is computed alone, and parts
                   are added in order.
    shards         a multiple of the number of processes (16, if it is), with deterministic=True

    Every process has a batch of the same size. Integers among the results are averaged to floats.
    ShapeError where a batch is no multiple of the parts that it is dealt into.

    >>> f = jt.distributed.data_parallel(jt.value_and_grad(lambda w, x: (w * x).mean()))
    >>> value, gradient = f(2.0, np.array([1.0, 3.0]))
    >>> value, gradient
    (np.float64(4.0), np.float64(2.0))
    """
    comm = init() if comm is None else comm
    group: Communicator = comm
    if not deterministic:
        if shards is not None:
            _refuse("shards without deterministic=True", "say that, too.")
        return lambda params, *batch: _averaged(gradients(params, *batch), group, bucket)
    count = 16 if shards is None else shards
    if type(count) is not int or count < 1 or count % comm.size:
        _refuse(
            f"{count} shards for {comm.size} processes",
            "give a multiple of the number of processes, the same one for every job.",
        )

    def in_parts(params: Any, *batch: Any) -> Any:
        own = count // group.size
        leaves, tree = jt.tree.flatten(batch)
        stacked = [_dealt(x, own) for x in leaves]

        def part(_: Any, number: Any) -> tuple[Any, Any]:
            some = jt.tree.unflatten(tree, [np.take(x, number, axis=0) for x in stacked])
            return _, gradients(params, *some)

        _, parts = jt.scan(part, np.float32(0), np.arange(own))
        return jt.tree.map(lambda p: _summed(p, group) / count, parts)

    return in_parts


def _refuse(what: str, remedy: str) -> None:
    jt.errors.complain(jt.errors.SettingError, f"data_parallel with {what}", remedy)


def _dealt(x: Any, parts: int) -> Any:
    """[B, ...] as [parts, B / parts, ...]: example i to part i % parts."""
    shape = np.shape(x)
    if not shape or shape[0] % parts:
        jt.errors.complain(
            jt.errors.ShapeError,
            f"a batch {jt.errors.describe(x)} is dealt into {parts} parts",
            "give batches whose size is a multiple of the shards, or fewer shards.",
        )
    return np.swapaxes(np.reshape(x, (shape[0] // parts, parts, *shape[1:])), 0, 1)


def _summed(parts: Any, comm: Communicator) -> Any:
    """The sum of all processes' parts, in the order of their numbers: part k of process r is number
    k * size + r."""
    every = jt.all_gather(parts, comm, axis=1, tiled=False)
    shape = np.shape(every)
    rows = np.reshape(every, (shape[0] * shape[1], *shape[2:]))
    total = rows[0]
    for k in range(1, len(rows)):
        total = total + rows[k]
    return total


def _averaged(tree: Any, comm: Communicator, bucket: int) -> Any:
    """The mean over processes of all arrays of a tree, some messages of `bucket` bytes."""
    if comm.size == 1:
        return tree
    leaves, structure = jt.tree.flatten(tree)
    results: list[Any] = [None] * len(leaves)
    # The backward pass comes to the last parameters first.
    for chosen in _buckets(leaves, bucket):
        flat = [np.reshape(leaves[i], -1) for i in chosen]
        mean = comm.all_reduce(flat[0] if len(flat) == 1 else np.concatenate(flat), "mean")
        at = 0
        for i, part in zip(chosen, flat, strict=True):
            length = np.shape(part)[0]
            results[i] = np.reshape(mean[at : at + length], np.shape(leaves[i]))
            at += length
    return jt.tree.unflatten(structure, results)


def _buckets(leaves: list[Any], bucket: int) -> list[list[int]]:
    """The leaves from the last to the first, those of a dtype together until they fill a bucket."""
    found: list[list[int]] = []
    open_ones: dict[Any, tuple[list[int], int]] = {}
    for i in reversed(range(len(leaves))):
        dtype = np.dtype(getattr(leaves[i], "dtype", np.float64))
        nbytes = int(np.prod(np.shape(leaves[i]), dtype=np.int64)) * dtype.itemsize
        chosen, filled = open_ones.get(dtype, ([], 0))
        if chosen and filled + nbytes > bucket:
            chosen, filled = [], 0
        if not chosen:
            found.append(chosen)
        chosen.append(i)
        open_ones[dtype] = chosen, filled + nbytes
    return found
