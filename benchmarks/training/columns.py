"""Who is compared, and what each does in a process of its own."""

from __future__ import annotations

import importlib
import time
from typing import Any

from ..worker import peak_of
from .steps import STEPS

COLUMNS = {
    "jitney": "modules",
    "by hand": "by_hand",
    "torch": "in_torch",
    "torch.compile": "in_torch_compile",
    "jax": "in_jax",
}
LOSSES = 5  # of the first steps, which have to agree


def load(column: str) -> Any:
    return importlib.import_module(f".{COLUMNS[column]}", __package__)


def prepare(module: Any, name: str, small: bool) -> tuple[dict[str, Any], Any]:
    """In the child: the losses of the first steps, and a call that makes one more."""
    row = STEPS[name]
    weights, batch = row.inputs(small)
    step, wait = module.start(row.network, weights, batch), module.wait

    def call() -> float:
        loss: float = wait(step())
        return loss

    begin = time.perf_counter()
    losses = [call()]
    first = time.perf_counter() - begin
    losses += [call() for _ in range(LOSSES - 1)]
    return {"first": first, "losses": losses, "memory": peak_of(call)}, call
