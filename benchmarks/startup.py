"""What a fresh process pays: the import, and the first call of a small function.

    python -m benchmarks.startup jax      one measurement: the seconds of import and first call

No cache of compiled code takes part, but Python's bytecode is there, as after an installation. The
inputs are ready, and NumPy is imported, before the clock starts.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

FRAMEWORKS = ("jitney", "numba", "jax", "torch")


def measure(framework: str) -> tuple[float, float]:
    """Seconds to import `framework`, then of the first call of x * 2 + 1 on 1000 float32."""
    import numpy as np

    x = np.linspace(0, 1, 1000, dtype=np.float32)
    compiler: Any
    argument: Any = x
    start = time.perf_counter()
    if framework == "jitney":
        import jitney

        compiler = jitney.jit
    elif framework == "numba":
        import numba

        compiler = numba.njit
    elif framework == "jax":
        import jax

        compiler = jax.jit
    else:
        import torch

        compiler = None
    imported = time.perf_counter() - start

    if framework == "jax":
        argument = jax.device_put(x)
    elif framework == "torch":
        argument = torch.from_numpy(x)

    def affine(x: Any) -> Any:
        return x * 2 + 1

    start = time.perf_counter()
    result = (compiler(affine) if compiler else affine)(argument)
    if framework == "jax":
        result.block_until_ready()
    first = time.perf_counter() - start
    np.testing.assert_allclose(np.asarray(result), x * 2 + 1, rtol=1e-6)
    return imported, first


def compare(frameworks: list[str], repeats: int) -> dict[str, dict[str, float] | str]:
    """Medians of `repeats` fresh processes each, in alternation; or why there are none."""
    collected: dict[str, list[tuple[float, float]]] = {f: [] for f in frameworks}
    failed: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="jitney-bytecode-") as folder:
        environment = {**os.environ, "JITNEY_CACHE": "0", "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for round in range(repeats + 1):
            for framework in frameworks:
                if framework in failed:
                    continue
                done = subprocess.run(
                    [sys.executable, "-m", "benchmarks.startup", framework],
                    capture_output=True,
                    text=True,
                    env=environment,
                )
                if done.returncode:
                    failed[framework] = (done.stderr.strip().splitlines() or ["failed"])[-1]
                elif round:  # the first one wrote the bytecode
                    imported, first = map(float, done.stdout.split())
                    collected[framework].append((imported, first))
    medians: dict[str, dict[str, float] | str] = dict(failed)
    for framework, pairs in collected.items():
        if framework not in failed:
            imports, firsts = zip(*pairs, strict=True)
            medians[framework] = {
                "import": statistics.median(imports),
                "first_call": statistics.median(firsts),
            }
    return medians


if __name__ == "__main__":
    print(*measure(sys.argv[1]))
