"""One training step of a network of three layers, by each of those who are compared, on this process."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

SIZES = (256, 512, 512, 10)
RATE = np.float32(0.05)
Step = Callable[[Any, Any], float]


def weights() -> list[Any]:
    """Matrices and offsets, layer by layer, float32."""
    rng = np.random.default_rng(0)
    made = []
    for rows, columns in itertools.pairwise(SIZES):
        made += [rng.normal(size=(rows, columns)) / np.sqrt(rows), np.zeros(columns)]
    return [np.asarray(w, np.float32) for w in made]


def batch(total: int, rank: int, size: int) -> tuple[Any, Any]:
    """This process's part of a batch."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(total, SIZES[0])).astype(np.float32)
    return x[rank::size].copy(), rng.integers(0, 10, total)[rank::size].copy()


def of_jitney() -> tuple[int, int, Step]:
    """`data_parallel` in a compiled step."""
    import jitney as jt

    comm = jt.distributed.init()

    def loss(params: list[Any], x: Any, labels: Any) -> Any:
        for k in range(0, 4, 2):
            x = np.tanh(x @ params[k] + params[k + 1])
        logits = x @ params[4] + params[5]
        return jt.nn.losses.sparse_softmax_cross_entropy(logits, labels)

    gradients = jt.distributed.data_parallel(jt.value_and_grad(loss))

    @jt.jit
    def step(params: list[Any], x: Any, labels: Any) -> Any:
        value, grads = gradients(params, x, labels)
        return [p - RATE * g for p, g in zip(params, grads, strict=True)], value

    params = weights()

    def one(x: Any, labels: Any) -> float:
        nonlocal params
        params, value = step(params, x, labels)
        return float(value)

    return comm.rank, comm.size, one


def of_numpy() -> tuple[int, int, Step]:
    """The gradient written out, and one Allreduce of all of it."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    shapes = [w.shape for w in weights()]
    ends = np.cumsum([int(np.prod(s)) for s in shapes])
    flat = np.concatenate([w.ravel() for w in weights()])
    params = [flat[e - int(np.prod(s)) : e].reshape(s) for e, s in zip(ends, shapes, strict=True)]
    own, total = np.empty(flat.size + 1, np.float32), np.empty(flat.size + 1, np.float32)
    grads = [own[e - int(np.prod(s)) : e].reshape(s) for e, s in zip(ends, shapes, strict=True)]

    def one(x: Any, labels: Any) -> float:
        w1, b1, w2, b2, w3, b3 = params
        first = np.tanh(x @ w1 + b1)
        second = np.tanh(first @ w2 + b2)
        logits = second @ w3 + b3
        logits -= logits.max(axis=1, keepdims=True)
        p = np.exp(logits)
        p /= p.sum(axis=1, keepdims=True)
        rows = np.arange(len(x))
        own[-1] = -np.log(p[rows, labels]).mean()
        p[rows, labels] -= 1
        p /= np.float32(len(x))
        np.matmul(second.T, p, out=grads[4])
        p.sum(axis=0, out=grads[5])
        back = (p @ w3.T) * (1 - second**2)
        np.matmul(first.T, back, out=grads[2])
        back.sum(axis=0, out=grads[3])
        back = (back @ w2.T) * (1 - first**2)
        np.matmul(x.T, back, out=grads[0])
        back.sum(axis=0, out=grads[1])
        comm.Allreduce(own, total)
        np.subtract(flat, total[:-1] * (RATE / comm.size), out=flat)
        return float(total[-1]) / comm.size

    return comm.rank, comm.size, one


def of_torch() -> tuple[int, int, Step]:
    """DistributedDataParallel over gloo, plain SGD."""
    import torch
    from torch import distributed, nn

    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    layers: list[Any] = []
    for rows, columns in itertools.pairwise(SIZES):
        layers += [nn.Linear(rows, columns), nn.Tanh()]
    model = nn.Sequential(*layers[:-1])
    with torch.no_grad():
        for p, w in zip(model.parameters(), weights(), strict=True):
            p.copy_(torch.from_numpy(w.T if w.ndim == 2 else w))
    parallel = nn.parallel.DistributedDataParallel(model)
    optimiser = torch.optim.SGD(model.parameters(), lr=float(RATE))
    size = distributed.get_world_size()

    def one(x: Any, labels: Any) -> float:
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(parallel(torch.from_numpy(x)), torch.from_numpy(labels))
        loss.backward()
        optimiser.step()
        with torch.no_grad():
            total = loss.detach().clone()
            distributed.all_reduce(total)
        return float(total) / size

    return distributed.get_rank(), size, one


WHO = {"jitney": of_jitney, "mpi4py": of_numpy, "torch": of_torch}


def measured(who: str, total: int, steps: int) -> None:
    """Make steps; rank 0 prints the first loss, the eighth, the least time of a step and the median."""
    rank, size, one = WHO[who]()
    x, labels = batch(total, rank, size)
    losses = [one(x, labels) for _ in range(8)]
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        one(x, labels)
        times.append(time.perf_counter() - start)
    if rank == 0:
        print(losses[0], losses[-1], min(times), float(np.median(times)), flush=True)
