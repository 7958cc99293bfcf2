"""PyTorch, eager: its own kernels (oneDNN among them), which are hard to beat where they fit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ..rows import Row, learning, loops, map_arrays, sampling
from ..rows.indexing import BINS, EDGES, LARGEST

ROWS: dict[str, Callable[..., Any]] = {}
MAKERS: dict[str, Callable[..., Any]] = {}
"""Rows that prepare something first: inputs -> (callable, arguments)."""


def version() -> str:
    return str(torch.__version__)


def tensors(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    def convert(a: Any) -> Tensor:
        tensor = torch.from_numpy(np.array(a)).to(torch.get_default_device())
        # class labels and indices have to be int64; the scalars of a loop keep their dtype
        return tensor.long() if tensor.dtype == torch.int32 and tensor.ndim else tensor

    return tuple(map_arrays(convert, part) for part in inputs)


def prepare(row: Row, inputs: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    name, arguments = row.implementation, tensors(inputs)
    if name in MAKERS:
        return MAKERS[name](*arguments)
    return torch.no_grad()(ROWS[name]), arguments


def wait(result: Any) -> Any:
    if torch.get_default_device().type == "cuda":
        torch.cuda.synchronize()
    return result


def arrays(result: Any) -> Any:
    def convert(value: Any) -> Any:
        return value.detach().cpu().numpy() if isinstance(value, Tensor) else value

    return torch.utils._pytree.tree_map(convert, result)


def row(function: Callable[..., Any]) -> Callable[..., Any]:
    ROWS[function.__name__] = function
    return function


def maker(function: Callable[..., Any]) -> Callable[..., Any]:
    MAKERS[function.__name__] = function
    return function


# Calls, elementwise


@row
def call_1(x: Tensor) -> Tensor:
    return x + 1


@row
def call_3(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    return x * y + z


@row
def call_dict(tree: dict[str, Tensor]) -> dict[str, Tensor]:
    return {key: value * 2 for key, value in tree.items()}


@row
def slices_500(x: Tensor) -> Tensor:
    total = torch.zeros_like(x[0])
    for i in range(500):
        total = total + x[i]
    return total


@row
def axpb(x: Tensor) -> Tensor:
    return x * 2 + 1


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


# Matrices


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
def cross_entropy(x: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(x, labels)


@maker
def cross_entropy_grad(x: Tensor, labels: Tensor) -> Any:
    def step(x: Tensor, labels: Tensor) -> Any:
        loss = F.cross_entropy(x, labels)
        return loss, *torch.autograd.grad(loss, x)

    return step, (x.requires_grad_(), labels)


@row
def sum_rows(x: Tensor) -> Tensor:
    return x.sum(1)


@row
def sum_columns(x: Tensor) -> Tensor:
    return x.sum(0)


@row
def sum_all(x: Tensor) -> Tensor:
    return x.sum()


@row
def variance(x: Tensor) -> Tensor:
    return x.var(correction=0)


@row
def argmax(x: Tensor) -> Tensor:
    return x.argmax(1)


@row
def cumsum_columns(x: Tensor) -> Tensor:
    return x.cumsum(0)


@row
def cumsum_rows(x: Tensor) -> Tensor:
    return x.cumsum(1)


@row
def matmul_1024(a: Tensor, b: Tensor) -> Tensor:
    return a @ b


@row
def dense(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    return F.gelu(torch.addmm(c, a, b), approximate="tanh")


@row
def distances(x: Tensor) -> Tensor:
    return torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist")


@row
def n_body(x: Tensor, mass: Tensor) -> Tensor:
    d = x[None] - x[:, None]
    squares = (d * d).sum(2) + 1e-2
    return (d * (mass / (squares * torch.sqrt(squares)))[..., None]).sum(1)


# Loops


def heat_step(u: Tensor) -> Tensor:
    new = u.clone()
    middle = u[1:-1, 1:-1]
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    new[1:-1, 1:-1] = middle + 0.1 * (around - 4 * middle)
    return new


@row
def heat(u: Tensor, step: Callable[[Tensor], Tensor] = heat_step) -> Tensor:
    for _ in range(loops.HEAT_STEPS):
        u = step(u)
    return u


def mandelbrot_step(x: Tensor, y: Tensor, count: Tensor, cx: Tensor, cy: Tensor) -> Any:
    live = x * x + y * y <= 4
    new_x, new_y = x * x - y * y + cx, 2 * x * y + cy
    return torch.where(live, new_x, x), torch.where(live, new_y, y), count + live


@row
def mandelbrot(cx: Tensor, cy: Tensor, step: Callable[..., Any] = mandelbrot_step) -> Tensor:
    x, y = torch.zeros_like(cx), torch.zeros_like(cy)
    count = torch.zeros(cx.shape, dtype=torch.int32)
    for _ in range(loops.MANDELBROT_STEPS):
        x, y, count = step(x, y, count, cx, cy)
    return count


# Learning, networks


def regression_loss(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return F.binary_cross_entropy_with_logits(x @ w, y)


def regression_grad(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    w = w.detach().requires_grad_()
    return torch.autograd.grad(regression_loss(w, x, y), w)[0]


@maker
def logistic_grad(w: Tensor, x: Tensor, y: Tensor) -> Any:
    return regression_grad, (w, x, y)


def descent(gradient: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def run(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
        for _ in range(learning.DESCENT_STEPS):
            w = w - learning.RATE * gradient(w, x, y)
        return w

    return run


@maker
def logistic_descent(w: Tensor, x: Tensor, y: Tensor) -> Any:
    return descent(regression_grad), (w, x, y)


def mlp_loss(weights: list[Tensor], x: Tensor, labels: Tensor) -> Tensor:
    layers = len(weights) // 2
    for i in range(layers):
        x = torch.addmm(weights[2 * i + 1], x, weights[2 * i])
        x = torch.relu(x) if i < layers - 1 else x
    return F.cross_entropy(x, labels)


@maker
def mlp_adam(weights: Any, first: Any, second: Any, x: Tensor, labels: Tensor) -> Any:
    """The ordinary training loop: backward, then the fused optimiser, in place."""
    weights = [w.clone().requires_grad_() for w in weights]
    betas = (learning.BETA1, learning.BETA2)
    optimiser = torch.optim.Adam(
        weights, lr=learning.LEARNING_RATE, betas=betas, eps=learning.EPSILON, fused=True
    )
    for w, m, v in zip(weights, first, second, strict=True):
        step = torch.tensor(float(learning.STEP - 1))
        optimiser.state[w] = {"step": step, "exp_avg": m, "exp_avg_sq": v}

    def train() -> Any:
        optimiser.zero_grad()
        loss = mlp_loss(weights, x, labels)
        loss.backward()
        optimiser.step()
        return loss, weights, first, second

    return train, ()


def lstm_module(wx: Tensor, wh: Tensor, bias: Tensor) -> Any:
    module = torch.nn.LSTM(wx.shape[0], wh.shape[0])
    with torch.no_grad():
        module.weight_ih_l0.copy_(wx.T)
        module.weight_hh_l0.copy_(wh.T)
        module.bias_ih_l0.copy_(bias)
        module.bias_hh_l0.zero_()
    return module


@maker
def lstm(x: Tensor, wx: Tensor, wh: Tensor, bias: Tensor) -> Any:
    module = lstm_module(wx, wh, bias)
    return torch.no_grad()(lambda x: module(x)[0]), (x,)


@maker
def lstm_grad(x: Tensor, wx: Tensor, wh: Tensor, bias: Tensor) -> Any:
    module = lstm_module(wx, wh, bias)
    weights = [module.weight_ih_l0, module.weight_hh_l0, module.bias_ih_l0]

    def step(x: Tensor) -> Any:
        loss = (module(x)[0] ** 2).mean()
        dx, dh, db = torch.autograd.grad(loss, weights)
        return loss, dx.T, dh.T, db

    return step, (x,)


def nchw(x: Tensor) -> Tensor:
    """NHWC seen as NCHW: what PyTorch calls channels_last."""
    return x.permute(0, 3, 1, 2)


def oihw(w: Tensor) -> Tensor:
    return w.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)


def conv2d(x: Tensor, w: Tensor) -> Tensor:
    return F.conv2d(x, w, padding=1)


@maker
def conv(x: Tensor, w: Tensor) -> Any:
    return torch.no_grad()(lambda x, w: conv2d(x, w).permute(0, 2, 3, 1)), (nchw(x), oihw(w))


@maker
def conv_grad(x: Tensor, w: Tensor, cotangent: Tensor) -> Any:
    def step(x: Tensor, w: Tensor, cotangent: Tensor) -> Any:
        y = conv2d(x, w)
        dx, dw = torch.autograd.grad(y, (x, w), cotangent)
        return y.permute(0, 2, 3, 1), dx.permute(0, 2, 3, 1), dw.permute(2, 3, 1, 0)

    return step, (nchw(x).requires_grad_(), oihw(w).requires_grad_(), nchw(cotangent))


def conv_transpose2d(x: Tensor, w: Tensor) -> Tensor:
    return F.conv_transpose2d(x, w, stride=2, padding=2, output_padding=1).permute(0, 2, 3, 1)


@maker
def conv_transpose(x: Tensor, w: Tensor) -> Any:
    w = w.permute(2, 3, 0, 1).contiguous(memory_format=torch.channels_last)
    return torch.no_grad()(conv_transpose2d), (nchw(x), w)


@row
def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@maker
def attention_grad(q: Tensor, k: Tensor, v: Tensor, cotangent: Tensor) -> Any:
    def step(q: Tensor, k: Tensor, v: Tensor, cotangent: Tensor) -> Any:
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return out, *torch.autograd.grad(out, (q, k, v), cotangent)

    return step, (*(a.requires_grad_() for a in (q, k, v)), cotangent)


# Indices


@row
def sort(x: Tensor) -> Tensor:
    return torch.sort(x)[0]


@row
def top_100(x: Tensor) -> Tensor:
    return torch.topk(x, LARGEST)[0]


@row
def gather(x: Tensor, indices: Tensor) -> Tensor:
    return x[indices]


@row
def scatter_add(values: Tensor, bins: Tensor) -> Tensor:
    return torch.zeros(BINS, dtype=values.dtype).index_add(0, bins, values)


@row
def argsort(x: Tensor) -> Tensor:
    return torch.argsort(x)


@row
def searchsorted(table: Tensor, x: Tensor) -> Tensor:
    return torch.searchsorted(table, x)


@row
def unique(x: Tensor) -> Tensor:
    return torch.unique(x)


@row
def bincount(x: Tensor) -> Tensor:
    return torch.bincount(x, minlength=BINS)


@row
def histogram(x: Tensor) -> Tensor:
    return torch.histc(x, EDGES, -4, 4).long()


# Linear algebra, Fourier transforms


@row
def solve(a: Tensor, b: Tensor) -> Tensor:
    return torch.linalg.solve(a, b)


@row
def inverses(a: Tensor) -> Tensor:
    return torch.linalg.inv(a)


@row
def cholesky(a: Tensor) -> Tensor:
    return torch.linalg.cholesky(a)


@row
def eigenvalues(a: Tensor) -> Tensor:
    return torch.linalg.eigvalsh(a)


@row
def singular_values(a: Tensor) -> Tensor:
    return torch.linalg.svdvals(a)


@row
def spectra(x: Tensor) -> Tensor:
    z = torch.fft.rfft(x)
    return z.real**2 + z.imag**2


@row
def low_pass(image: Tensor) -> Tensor:
    z = torch.fft.rfft2(image)
    near = torch.abs(torch.fft.fftfreq(image.shape[0], device=image.device)) < 0.1
    return torch.fft.irfft2(torch.where(near[:, None], z, 0), image.shape)


# Random numbers


def generator(seed: Tensor) -> torch.Generator:
    return torch.Generator(seed.device).manual_seed(int(seed[0]))


@row
def mean_of_exp(seed: Tensor) -> Tensor:
    z = torch.randn(sampling.COUNT, generator=generator(seed), dtype=torch.float32)
    return torch.exp(z).mean()


@row
def pi_by_chance(seed: Tensor) -> Tensor:
    x, y = torch.rand(2, sampling.COUNT, generator=generator(seed), dtype=torch.float32)
    return (x * x + y * y < 1).float().mean()
