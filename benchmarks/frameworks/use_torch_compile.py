"""PyTorch under `torch.compile`, for the rows whose own kernels it does not just call again.

It needs a C++ compiler; without one each row says so.
"""

from typing import Any

import torch
from torch import Tensor

from ..rows import Row, learning
from . import use_torch as eager
from .use_torch import arrays, tensors, version, wait

__all__ = ["ROWS", "arrays", "prepare", "version", "wait"]

NAMES = """
call_1 call_3 call_dict slices_500 axpb gelu black_scholes softmax layernorm logsumexp cross_entropy
sum_rows sum_columns sum_all variance argmax cumsum_columns cumsum_rows matmul_1024 dense n_body
attention gather scatter_add
""".split()


def compiled(function: Any) -> Any:
    return torch.compile(function, dynamic=False)


def prepare(row: Row, inputs: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    torch._dynamo.reset()
    return ROWS[row.implementation](*tensors(inputs))


def _whole(name: str) -> Any:
    return lambda *inputs: (torch.no_grad()(compiled(eager.ROWS[name])), inputs)


def distances(x: Tensor) -> Any:
    def program(x: Tensor) -> Tensor:
        d = x[:, None] - x[None]
        return torch.sqrt((d * d).sum(2))

    return torch.no_grad()(compiled(program)), (x,)


def heat(u: Tensor) -> Any:
    step = compiled(eager.heat_step)
    return torch.no_grad()(lambda u: eager.heat(u, step)), (u,)


def mandelbrot(cx: Tensor, cy: Tensor) -> Any:
    step = compiled(eager.mandelbrot_step)
    return torch.no_grad()(lambda cx, cy: eager.mandelbrot(cx, cy, step)), (cx, cy)


def cross_entropy_grad(x: Tensor, labels: Tensor) -> Any:
    loss_of = compiled(eager.cross_entropy)

    def step(x: Tensor, labels: Tensor) -> Any:
        loss = loss_of(x, labels)
        return loss, *torch.autograd.grad(loss, x)

    return step, (x.requires_grad_(), labels)


def logistic_grad(w: Tensor, x: Tensor, y: Tensor) -> Any:
    return compiled(torch.func.grad(eager.regression_loss)), (w, x, y)


def logistic_descent(w: Tensor, x: Tensor, y: Tensor) -> Any:
    return eager.descent(compiled(torch.func.grad(eager.regression_loss))), (w, x, y)


def mlp_adam(*state: Any) -> Any:
    def train(weights: Any, first: Any, second: Any, x: Tensor, labels: Tensor) -> Any:
        gradients, loss = torch.func.grad_and_value(eager.mlp_loss)(weights, x, labels)
        return loss, *learning.adam(weights, first, second, gradients, torch.sqrt)

    return compiled(train), state


ROWS = {
    **{name: _whole(name) for name in NAMES},
    "distances": distances,
    "heat": heat,
    "mandelbrot": mandelbrot,
    "cross_entropy_grad": cross_entropy_grad,
    "logistic_grad": logistic_grad,
    "logistic_descent": logistic_descent,
    "mlp_adam": mlp_adam,
}
