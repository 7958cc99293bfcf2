"""Rows and columns of a matrix: softmax and its kin, reductions, scans."""

import math

import numpy as np
from numba import njit, prange

from .table import parallel, row


@row
def softmax(f):
    zero, one = f(0), f(1)

    @parallel
    def run(x):
        out = np.empty_like(x)
        for i in prange(x.shape[0]):
            largest = x[i, 0]
            for j in range(x.shape[1]):
                largest = max(largest, x[i, j])
            total = zero
            for j in range(x.shape[1]):
                e = math.exp(x[i, j] - largest)
                out[i, j] = e
                total += e
            scale = one / total
            for j in range(x.shape[1]):
                out[i, j] *= scale
        return out

    return run


@row
def layernorm(f):
    zero, one, epsilon = f(0), f(1), f(1e-5)

    @parallel
    def run(x, gain, bias):
        out = np.empty_like(x)
        n = f(x.shape[1])
        for i in prange(x.shape[0]):
            total = zero
            for j in range(x.shape[1]):
                total += x[i, j]
            mean = total / n
            squares = zero
            for j in range(x.shape[1]):
                squares += (x[i, j] - mean) ** 2
            scale = one / math.sqrt(squares / n + epsilon)
            for j in range(x.shape[1]):
                out[i, j] = (x[i, j] - mean) * scale * gain[j] + bias[j]
        return out

    return run


def row_logsumexp(f):
    zero = f(0)

    @njit(fastmath=True)
    def run(x, i):
        largest = x[i, 0]
        for j in range(x.shape[1]):
            largest = max(largest, x[i, j])
        total = zero
        for j in range(x.shape[1]):
            total += math.exp(x[i, j] - largest)
        return largest + math.log(total)

    return run


@row
def logsumexp(f):
    of_row = row_logsumexp(f)

    @parallel
    def run(x):
        out = np.empty(x.shape[0], x.dtype)
        for i in prange(x.shape[0]):
            out[i] = of_row(x, i)
        return out

    return run


@row
def cross_entropy(f):
    of_row = row_logsumexp(f)

    @parallel
    def run(x, labels):
        loss = 0.0
        for i in prange(x.shape[0]):
            loss += of_row(x, i) - x[i, labels[i]]
        return loss / x.shape[0]

    return run


@row
def cross_entropy_grad(f):
    zero, one = f(0), f(1)

    @parallel
    def run(x, labels):
        loss, gradient, n = 0.0, np.empty_like(x), f(x.shape[0])
        for i in prange(x.shape[0]):
            largest = x[i, 0]
            for j in range(x.shape[1]):
                largest = max(largest, x[i, j])
            total = zero
            for j in range(x.shape[1]):
                e = math.exp(x[i, j] - largest)
                gradient[i, j] = e
                total += e
            loss += largest + math.log(total) - x[i, labels[i]]
            scale = one / (total * n)
            for j in range(x.shape[1]):
                gradient[i, j] *= scale
            gradient[i, labels[i]] -= one / n
        return loss / x.shape[0], gradient

    return run


@row
def sum_rows(f):
    zero = f(0)

    @parallel
    def run(x):
        out = np.empty(x.shape[0], x.dtype)
        for i in prange(x.shape[0]):
            total = zero
            for j in range(x.shape[1]):
                total += x[i, j]
            out[i] = total
        return out

    return run


@row
def sum_columns(f):
    @parallel
    def run(x):
        parts = 16
        partial = np.zeros((parts, x.shape[1]), x.dtype)
        for t in prange(parts):
            into = partial[t]
            for i in range(t * x.shape[0] // parts, (t + 1) * x.shape[0] // parts):
                for j in range(x.shape[1]):
                    into[j] += x[i, j]
        return partial.sum(axis=0)

    return run


@row
def sum_all(f):
    zero = f(0)

    @parallel
    def run(x):
        total = 0.0
        for i in prange(x.shape[0]):
            part = zero
            for j in range(x.shape[1]):
                part += x[i, j]
            total += part
        return f(total)

    return run


@row
def variance(f):
    zero = f(0)
    sum_of = sum_all(f)

    @parallel
    def run(x):
        mean = f(sum_of(x) / x.size)
        total = 0.0
        for i in prange(x.shape[0]):
            part = zero
            for j in range(x.shape[1]):
                d = x[i, j] - mean
                part += d * d
            total += part
        return f(total / x.size)

    return run


@row
def argmax(f):
    @parallel
    def run(x):
        out = np.empty(x.shape[0], np.int64)
        for i in prange(x.shape[0]):
            largest, where = x[i, 0], 0
            for j in range(x.shape[1]):
                if x[i, j] > largest:
                    largest, where = x[i, j], j
            out[i] = where
        return out

    return run


@row
def cumsum_columns(f):
    @parallel
    def run(x):
        out = np.empty_like(x)
        width = 256
        for block in prange((x.shape[1] + width - 1) // width):
            low, high = block * width, min((block + 1) * width, x.shape[1])
            out[0, low:high] = x[0, low:high]
            for i in range(1, x.shape[0]):
                for j in range(low, high):
                    out[i, j] = out[i - 1, j] + x[i, j]
        return out

    return run


@row
def cumsum_rows(f):
    zero = f(0)

    @parallel
    def run(x):
        out = np.empty_like(x)
        for i in prange(x.shape[0]):
            total = zero
            for j in range(x.shape[1]):
                total += x[i, j]
                out[i, j] = total
        return out

    return run
