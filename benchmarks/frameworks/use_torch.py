"""PyTorch, eager (no C++ compiler is assumed for `torch.compile`)."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

ROWS: dict[str, Callable[..., Any]] = {}


def version() -> str:
    return str(torch.__version__)


def prepare(row: str, inputs: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    torch.set_grad_enabled(False)
    return ROWS[row], tuple(torch.from_numpy(a) for a in inputs)


def wait(result: Any) -> Any:
    return result


def row(function: Callable[..., Any]) -> Callable[..., Any]:
    ROWS[function.__name__] = function
    return function


@row
def call_1(x: Tensor) -> Tensor:
    return x + 1


@row
def call_3(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    return x * y + z


@row
def gelu(x: Tensor) -> Tensor:
    return F.gelu(x, approximate="tanh")


@row
def black_scholes(spot: Tensor, strike: Tensor, years: Tensor) -> tuple[Tensor, Tensor]:
    rate, sigma = 0.02, 0.3
    spread = sigma * torch.sqrt(years)
    d1 = (torch.log(spot / strike) + (rate + 0.5 * sigma * sigma) * years) / spread
    discounted = strike * torch.exp(-rate * years)

    def cdf(d: Tensor) -> Tensor:
        return 0.5 * (1 + torch.erf(d * 0.5**0.5))

    call = spot * cdf(d1) - discounted * cdf(d1 - spread)
    return call, call + discounted - spot


@row
def softmax(x: Tensor) -> Tensor:
    return F.softmax(x, dim=1)


@row
def layernorm(x: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
    return F.layer_norm(x, (x.shape[1],), gain, bias, 1e-5)


@row
def logsumexp(x: Tensor) -> Tensor:
    return torch.logsumexp(x, dim=1)


@row
def sum_rows(x: Tensor) -> Tensor:
    return x.sum(1)


@row
def sum_columns(x: Tensor) -> Tensor:
    return x.sum(0)


@row
def distances(x: Tensor) -> Tensor:
    d = x[:, None] - x[None]
    return torch.sqrt((d * d).sum(2))


@row
def heat(u: Tensor) -> Tensor:
    u = u.clone()
    for _ in range(20):
        middle = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        u[1:-1, 1:-1] = middle + 0.1 * (around - 4 * middle)
    return u


@row
def dense(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    return F.gelu(torch.addmm(c, a, b), approximate="tanh")
