"""Layers of neural networks."""

import math

import numpy as np
from numba import prange

from .table import parallel, row


@row
def lstm(f):
    one = f(1)

    @parallel
    def run(x, wx, wh, bias):
        steps, batch, features = x.shape
        hidden = wh.shape[0]
        projected = np.dot(x.reshape(steps * batch, features), wx)
        h, c = np.zeros((batch, hidden), x.dtype), np.zeros((batch, hidden), x.dtype)
        outputs = np.empty((steps, batch, hidden), x.dtype)
        for t in range(steps):
            z = np.dot(h, wh)
            for i in prange(batch):
                p = projected[t * batch + i]
                for j in range(hidden):
                    zi = z[i, j] + p[j] + bias[j]
                    zf = z[i, j + hidden] + p[j + hidden] + bias[j + hidden]
                    zg = z[i, j + 2 * hidden] + p[j + 2 * hidden] + bias[j + 2 * hidden]
                    zo = z[i, j + 3 * hidden] + p[j + 3 * hidden] + bias[j + 3 * hidden]
                    cell = c[i, j] / (one + math.exp(-zf))
                    cell += math.tanh(zg) / (one + math.exp(-zi))
                    c[i, j] = cell
                    out = math.tanh(cell) / (one + math.exp(-zo))
                    h[i, j] = out
                    outputs[t, i, j] = out
        return outputs

    return run


@row
def conv(f):
    """The neighbourhoods of an image as rows of a matrix, then one product per image."""

    @parallel
    def run(x, w):
        n, height, width, channels = x.shape
        filters = w.shape[3]
        flat = w.reshape(9 * channels, filters)
        out = np.empty((n, height, width, filters), x.dtype)
        for t in prange(n):
            seen = np.zeros((height * width, 9 * channels), x.dtype)
            for r in range(height):
                for c in range(width):
                    for i in range(3):
                        for j in range(3):
                            rr, cc = r + i - 1, c + j - 1
                            if 0 <= rr < height and 0 <= cc < width:
                                at = (i * 3 + j) * channels
                                seen[r * width + c, at : at + channels] = x[t, rr, cc]
            out[t] = np.dot(seen, flat).reshape(height, width, filters)
        return out

    return run
