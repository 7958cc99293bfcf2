"""PyTorch with the loss, and with it the gradients, under `torch.compile`; Adam is the fused one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from . import in_torch
from .in_torch import version as version
from .in_torch import wait as wait
from .steps import Array, Weights


def start(network: str, weights: Weights, batch: tuple[Array, ...]) -> Callable[[], Any]:
    """As `modules.start`; there is nothing to compile for Adam alone."""
    if network == "leaves":
        raise NotImplementedError("there is no loss to compile")
    torch._dynamo.reset()
    return in_torch.start(network, weights, batch, lambda loss: torch.compile(loss, dynamic=False))
