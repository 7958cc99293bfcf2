"""A stream of batches of many sizes: `python -m benchmarks.ragged`, total time, compilations included.

    jitney         jit(dynamic="auto"): two sizes for themselves, then one program for all
    static         jit: a program for each size
    jax            the same under jax.jit, which compiles each size
    torch          torch.compile(dynamic=True)

Each framework runs in a process of its own, on the sizes of one list, and prints its losses' sum,
which have to agree. `--framework=NAME` runs one of them here; `--python=PATH` is the interpreter of the
others.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

FEATURES, HIDDEN, CLASSES = 128, 256, 10


def stream(count: int) -> list[np.ndarray[Any, Any]]:
    """Batches of 2 to 256 rows."""
    r = np.random.default_rng(0)
    return [r.standard_normal((n, FEATURES), np.float32) for n in r.integers(2, 257, count)]


def weights() -> tuple[np.ndarray[Any, Any], ...]:
    """The network's: two layers without biases."""
    r = np.random.default_rng(1)
    shapes = (FEATURES, HIDDEN), (HIDDEN, CLASSES)
    return tuple(r.standard_normal(s, np.float32) / np.float32(s[0] ** 0.5) for s in shapes)


def in_jitney(dynamic: Any) -> Callable[[Any], float]:
    """The loss of a batch, after its gradients have been computed."""
    import jitney as jt

    def loss(w: Any, x: Any) -> Any:
        return ((np.maximum(x @ w[0], 0) @ w[1]) ** 2).mean()

    step, w = jt.jit(jt.value_and_grad(loss), dynamic=dynamic), weights()
    return lambda x: float(step(w, x)[0])


def in_jax() -> Callable[[Any], float]:
    """The same."""
    import jax
    import jax.numpy as jnp

    def loss(w: Any, x: Any) -> Any:
        return ((jnp.maximum(x @ w[0], 0) @ w[1]) ** 2).mean()

    step, w = jax.jit(jax.value_and_grad(loss)), weights()

    def run(x: Any) -> float:
        value, gradients = step(w, x)
        jax.block_until_ready(gradients)
        return float(value)

    return run


def in_torch() -> Callable[[Any], float]:
    """The same."""
    import torch

    w = [torch.tensor(a, requires_grad=True) for a in weights()]

    @torch.compile(dynamic=True)
    def loss(x: Any) -> Any:
        return ((torch.relu(x @ w[0]) @ w[1]) ** 2).mean()

    def run(x: Any) -> float:
        value = loss(torch.from_numpy(x))
        value.backward()
        return float(value)

    return run


FRAMEWORKS: dict[str, Callable[[], Callable[[Any], float]]] = {
    "jitney": lambda: in_jitney("auto"),
    "static": lambda: in_jitney(None),
    "jax": in_jax,
    "torch": in_torch,
}


def main() -> None:
    """Time one framework, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--framework", choices=[*FRAMEWORKS])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--batches", type=int, default=500)
    asked = parser.parse_args()
    if asked.framework is None:
        for name in FRAMEWORKS:
            python = sys.executable if name in ("jitney", "static") else asked.python
            own = [python, "-m", "benchmarks.ragged", f"--framework={name}"]
            subprocess.run([*own, f"--batches={asked.batches}"], check=False)
        return
    batches = stream(asked.batches)
    start = time.perf_counter()
    run = FRAMEWORKS[asked.framework]()
    total = sum(run(x) for x in batches)
    seconds = time.perf_counter() - start
    print(f"{asked.framework:8s} {seconds:8.2f} s for {len(batches)} batches, losses {total:.3f}")


if __name__ == "__main__":
    main()
