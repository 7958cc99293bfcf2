"""Digits on several processes: the same losses as on one (scikit-learn's digits).

mpiexec -n 4 python examples/train_digits_mpi.py

Each process has all weights and a part of each batch; gradients are averaged. Process 0 writes
checkpoints, and any number of processes goes on from them: start it again with another number.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

import jitney as jt


def digits() -> tuple[Any, Any]:
    """Pictures of 64 pixels, and classes."""
    from sklearn.datasets import load_digits

    found = load_digits()
    return (found.data / 16).astype(np.float32), found.target


def network(seed: int) -> dict[str, Any]:
    """The weights of two layers; the same on all processes, as the seed is."""
    rng = np.random.default_rng(seed)
    return {
        "w1": (rng.normal(size=(64, 64)) / 8).astype(np.float32),
        "b1": np.zeros(64, np.float32),
        "w2": (rng.normal(size=(64, 10)) / 8).astype(np.float32),
        "b2": np.zeros(10, np.float32),
    }


def loss(params: dict[str, Any], x: Any, labels: Any) -> Any:
    """The mean cross entropy."""
    hidden = np.tanh(x @ params["w1"] + params["b1"])
    logits = hidden @ params["w2"] + params["b2"]
    return jt.nn.losses.sparse_softmax_cross_entropy(logits, labels)


def stepping(optimiser: Any, deterministic: bool) -> Callable[..., Any]:
    """One step: loss and gradients of the whole batch, new weights and state."""
    gradients = jt.distributed.data_parallel(jt.value_and_grad(loss), deterministic=deterministic)

    @jt.jit
    def step(params: Any, state: Any, x: Any, labels: Any) -> Any:
        value, grads = gradients(params, x, labels)
        updates, state = optimiser.update(grads, state, params)
        return jt.optim.apply_updates(params, updates), state, value

    return step


def main(
    steps: int = 100,
    batch: int = 64,
    deterministic: bool = False,
    folder: str | None = None,
    save_every: int = 20,
) -> list[float]:
    """The losses of the steps that were made, the same on all processes."""
    comm = jt.distributed.init()
    x, labels = digits()
    # All processes shuffle alike, and take turns at the elements.
    data = jt.data.from_arrays((x, labels)).shuffle(len(x), seed=0).repeat()
    optimiser = jt.optim.adam(1e-3)
    params = network(0)
    state = optimiser.init(params)
    done = 0
    if folder is not None and jt.train.steps(folder):
        saved = jt.train.restore(folder)
        params, state, done = saved["params"], saved["state"], saved["step"]
    # Whatever the number of processes was, that many elements of the data are done.
    batches = iter(data.skip(done * batch).shard(comm).batch(batch // comm.size))
    step = stepping(optimiser, deterministic)
    losses = []
    while done < steps:
        params, state, value = step(params, state, *next(batches))
        losses.append(float(value))
        done += 1
        if folder is not None and done % save_every == 0:
            if comm.rank == 0:
                jt.train.save(folder, {"params": params, "state": state, "step": done}, step=done)
            comm.barrier()
    return losses


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--deterministic", action="store_true")
    parser.add_argument("--folder")
    arguments = parser.parse_args()
    found = main(arguments.steps, 64, arguments.deterministic, arguments.folder)
    if jt.distributed.init().rank == 0:
        print(*(loss.hex() for loss in found), sep="\n")
