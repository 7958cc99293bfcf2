"""What a fresh process pays: the import, and the first result of a function.

    python -m benchmarks.latency jax softmax      one measurement, in this process

`first` is the time from a Python function to its first result with no cache of compiled code,
`cached` the same in a process that finds the cache of an earlier one, and `second` the first result of
x * 3 + 2 after it. Importing the framework is not counted in these, but in `import`; what it loads only
when it first compiles is. The inputs are ready, and Python's bytecode is there, as after an
installation.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

FRAMEWORKS = ("jitney", "numba", "jax", "torch_compile")
MODULES = {"torch_compile": "torch"}
CASES = ("affine", "softmax", "mlp_grad", "chain_500", "slices_500")
UNABLE = {("numba", "mlp_grad"): "no automatic differentiation"}
TIMEOUT = 180

Prepared = tuple[Callable[..., Any], tuple[Any, ...], Callable[..., Any], Any]
"""The function, its arguments, a second function and its argument."""


def inputs(case: str) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return (rng.standard_normal(shape) * 0.1).astype(np.float32)

    if case == "softmax":
        return (normal(128, 256),)
    if case == "slices_500":
        return (normal(500, 10),)
    if case == "mlp_grad":
        widths = (64, 64, 64, 64, 10)
        pairs = itertools.pairwise(widths)
        weights = [array for a, b in pairs for array in (normal(a, b), normal(b))]
        return weights, normal(32, 64), rng.integers(0, 10, 32)
    return (normal(1000),)


def affine(x: Any) -> Any:
    return x * 2 + 1


def another(x: Any) -> Any:
    return x * 3 + 2


def chain(x: Any, tanh: Callable[[Any], Any]) -> Any:
    for _ in range(125):
        x = tanh(x * 1.01 + 0.1) - 0.05
    return x


def slices(x: Any) -> Any:
    total = x[0]
    for i in range(1, 500):
        total = total + x[i]
    return total


def prepare_jitney(case: str, cache: str) -> Prepared:
    import jitney as jt

    def softmax(x: Any) -> Any:
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    def loss(weights: Any, x: Any, labels: Any) -> Any:
        for i in range(4):
            x = x @ weights[2 * i] + weights[2 * i + 1]
            x = np.maximum(x, 0) if i < 3 else x
        m = x.max(axis=1)
        total = m + np.log(np.exp(x - m[:, None]).sum(axis=1))
        return (total - x[np.arange(len(labels)), labels]).mean()

    def chain_500(x: Any) -> Any:
        return chain(x, np.tanh)

    functions = {
        "affine": affine,
        "softmax": softmax,
        "mlp_grad": jt.value_and_grad(loss),
        "chain_500": chain_500,
        "slices_500": slices,
    }
    return _lazily(jt.jit, functions[case]), inputs(case), _lazily(jt.jit, another), _vector()


def prepare_jax(case: str, cache: str) -> Prepared:
    import jax
    import jax.numpy as jnp

    if cache:
        jax.config.update("jax_compilation_cache_dir", cache)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

    def loss(weights: Any, x: Any, labels: Any) -> Any:
        for i in range(4):
            x = x @ weights[2 * i] + weights[2 * i + 1]
            x = jax.nn.relu(x) if i < 3 else x
        chosen = jnp.take_along_axis(x, labels[:, None], axis=1)[:, 0]
        return (jax.nn.logsumexp(x, axis=1) - chosen).mean()

    functions = {
        "affine": affine,
        "softmax": lambda x: jax.nn.softmax(x, axis=1),
        "mlp_grad": jax.value_and_grad(loss),
        "chain_500": lambda x: chain(x, jnp.tanh),
        "slices_500": slices,
    }

    def compiled(function: Any) -> Any:
        jitted = jax.jit(function)
        return lambda *arguments: jax.block_until_ready(jitted(*arguments))

    arguments = jax.block_until_ready(jax.tree.map(jax.device_put, inputs(case)))
    vector = jax.block_until_ready(jax.device_put(_vector()))
    return _lazily(compiled, functions[case]), arguments, _lazily(compiled, another), vector


def prepare_torch_compile(case: str, cache: str) -> Prepared:
    import torch
    import torch.nn.functional as F

    def compiled(function: Any) -> Any:
        return torch.compile(function, dynamic=False)

    def loss(weights: Any, x: Any, labels: Any) -> Any:
        for i in range(4):
            x = torch.addmm(weights[2 * i + 1], x, weights[2 * i])
            x = torch.relu(x) if i < 3 else x
        return F.cross_entropy(x, labels)

    def mlp_grad(weights: Any, x: Any, labels: Any) -> Any:
        value = compiled(loss)(weights, x, labels)
        return value, torch.autograd.grad(value, weights)

    arguments = torch.utils._pytree.tree_map(torch.from_numpy, inputs(case))
    vector = torch.from_numpy(_vector())
    if case == "mlp_grad":
        for weight in arguments[0]:
            weight.requires_grad_()
        return mlp_grad, arguments, _lazily(compiled, another), vector
    functions = {
        "affine": affine,
        "softmax": lambda x: torch.softmax(x, dim=1),
        "chain_500": lambda x: chain(x, torch.tanh),
        "slices_500": slices,
    }
    return _lazily(compiled, functions[case]), arguments, _lazily(compiled, another), vector


NUMBA = """
import math
import numpy as np
from numba import njit, prange

f = np.float32
zero, one, two, three, a, b, c = f(0), f(1), f(2), f(3), f(1.01), f(0.1), f(0.05)
options = dict(parallel=True, fastmath=True, cache={cache})


@njit(**options)
def affine(x):
    return x * two + one


@njit(**options)
def another(x):
    return x * three + two


@njit(**options)
def softmax(x):
    out = np.empty_like(x)
    for i in prange(x.shape[0]):
        largest = x[i].max()
        total = zero
        for j in range(x.shape[1]):
            e = math.exp(x[i, j] - largest)
            out[i, j] = e
            total += e
        for j in range(x.shape[1]):
            out[i, j] /= total
    return out


@njit(**options)
def chain_500(x):
    out = np.empty_like(x)
    for i in prange(x.size):
        v = x[i]
{steps}
        out[i] = v
    return out


@njit(fastmath=True, cache={cache})
def slices_500(x):
    total = x[0]
{slices}
    return total
"""


def prepare_numba(case: str, cache: str) -> Prepared:
    """From a file of its own, as its cache wants; decorating compiles nothing yet."""
    path = Path(cache or tempfile.mkdtemp(prefix="jitney-numba-")) / "numba_latency.py"
    if not path.exists():
        steps = "        v = math.tanh(v * a + b) - c\n" * 125
        added = "\n".join(f"    total = total + x[{i}]" for i in range(1, 500))
        path.write_text(NUMBA.format(cache=bool(cache), steps=steps, slices=added))
    spec = importlib.util.spec_from_file_location("numba_latency", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["numba_latency"] = module
    sys.path.insert(0, str(path.parent))
    spec.loader.exec_module(module)
    return getattr(module, case), inputs(case), module.another, _vector()


def _vector() -> Any:
    return inputs("affine")[0]


def _lazily(compiler: Callable[[Any], Any], function: Any) -> Callable[..., Any]:
    """Decorate within the call, so that it is timed."""
    return lambda *arguments: compiler(function)(*arguments)


PREPARE = {
    "jitney": prepare_jitney,
    "numba": prepare_numba,
    "jax": prepare_jax,
    "torch_compile": prepare_torch_compile,
}


def measure(framework: str, case: str, cache: str) -> dict[str, float]:
    """Seconds of import, first and second, in this process."""
    start = time.perf_counter()
    importlib.import_module(MODULES.get(framework, framework))
    imported = time.perf_counter() - start
    function, arguments, second, vector = PREPARE[framework](case, cache)
    start = time.perf_counter()
    function(*arguments)
    first = time.perf_counter() - start
    start = time.perf_counter()
    second(vector)
    return {"import": imported, "first": first, "second": time.perf_counter() - start}


def compare(frameworks: list[str], repeats: int, realtime: bool = False) -> dict[str, Any]:
    """Medians of fresh processes: {framework: {"cases": {case: {first, cached, second}}, "import",
    "installed"}}, or the reason why there are none."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="jitney-bytecode-") as bytecode:
        for framework in frameworks:
            cases: dict[str, Any] = {}
            imports: list[float] = []
            _fresh(framework, "affine", "", bytecode, realtime)  # writes the bytecode
            for case in CASES:
                times, reason = _case(framework, case, bytecode, repeats, realtime)
                if reason:
                    cases[case] = {"reason": reason}
                    continue
                imports += [t["import"] for t in times["first"]]
                cases[case] = {
                    "first": statistics.median(t["first"] for t in times["first"]),
                    "cached": statistics.median(t["first"] for t in times["cached"]),
                    "second": statistics.median(t["second"] for t in times["first"]),
                }
                shown = "   ".join(f"{kind} {1e3 * t:.1f} ms" for kind, t in cases[case].items())
                print(f"  {framework:14} {case:12} {shown}", flush=True)
            found[framework] = {"cases": cases, "installed": installed(framework)}
            if imports:
                found[framework]["import"] = statistics.median(imports)
    return found


def _case(
    framework: str, case: str, bytecode: str, repeats: int, realtime: bool
) -> tuple[dict[str, list[dict[str, float]]], str]:
    times: dict[str, list[dict[str, float]]] = {"first": [], "cached": []}
    if (framework, case) in UNABLE:
        return times, UNABLE[framework, case]
    for _ in range(repeats):
        result = _fresh(framework, case, "", bytecode, realtime)
        if isinstance(result, str):
            return times, result
        times["first"].append(result)
    with tempfile.TemporaryDirectory(prefix="jitney-cache-") as cache:
        for i in range(repeats + 1):
            result = _fresh(framework, case, cache, bytecode, realtime)
            if isinstance(result, str):
                return times, result
            if i:
                times["cached"].append(result)
    return times, ""


def _fresh(
    framework: str, case: str, cache: str, bytecode: str, realtime: bool
) -> dict[str, float] | str:
    """`measure` in a new process; a string says why not."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode, "TF_CPP_MIN_LOG_LEVEL": "2"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="jitney-empty-") as empty:
        environment["JITNEY_CACHE"] = "1" if cache else "0"
        environment["JITNEY_CACHE_DIR"] = cache or empty
        environment["TORCHINDUCTOR_CACHE_DIR"] = cache or empty

        def schedule() -> None:
            if realtime:
                os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))

        try:
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.latency", framework, case, cache],
                capture_output=True,
                text=True,
                env=environment,
                timeout=TIMEOUT,
                preexec_fn=schedule,
            )
        except subprocess.TimeoutExpired:
            return f"longer than {TIMEOUT} s"
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["failed"])[-1]
    result: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def installed(framework: str) -> int | None:
    """Bytes on disk of the package and of all that it requires; None for a checkout."""
    from importlib import metadata

    seen: dict[str, int] = {}

    def add(name: str) -> None:
        if name in seen:
            return
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            return
        paths = [Path(str(found.locate_file(f))) for f in found.files or []]
        seen[name] = sum(p.stat().st_size for p in paths if p.is_file())
        for requirement in found.requires or []:
            if "extra ==" not in requirement:
                add(_name(requirement))

    add(MODULES.get(framework, framework))
    return sum(seen.values()) or None


def _name(requirement: str) -> str:
    end = next((i for i, c in enumerate(requirement) if not (c.isalnum() or c in "-_.")), None)
    return requirement[:end].lower()


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "")))
