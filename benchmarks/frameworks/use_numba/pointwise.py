"""Elementwise programs."""

import math

import numpy as np
from numba import njit, prange

from .table import parallel, row


@row
def axpb(f):
    one, two = f(1), f(2)

    @parallel
    def run(x):
        out = np.empty_like(x)
        for i in prange(x.size):
            out[i] = x[i] * two + one
        return out

    return run


def gelu_of(f):
    half, one, root, cube = f(0.5), f(1), f(0.79788456), f(0.044715)
    return njit(fastmath=True)(
        lambda v: half * v * (one + math.tanh(root * (v + cube * v * v * v)))
    )


@row
def gelu(f):
    function = gelu_of(f)

    @parallel
    def run(x):
        out = np.empty_like(x)
        for i in prange(x.size):
            out[i] = function(x[i])
        return out

    return run


@row
def black_scholes(f):
    half, one, root_half = f(0.5), f(1), f(0.5**0.5)
    rate, sigma, drift = f(0.02), f(0.3), f(0.02 + 0.5 * 0.3 * 0.3)

    @parallel
    def run(spot, strike, years):
        call, put = np.empty_like(spot), np.empty_like(spot)
        for i in prange(spot.size):
            spread = sigma * math.sqrt(years[i])
            d1 = (math.log(spot[i] / strike[i]) + drift * years[i]) / spread
            d2 = d1 - spread
            discounted = strike[i] * math.exp(-rate * years[i])
            price = spot[i] * (half * (one + math.erf(d1 * root_half))) - discounted * (
                half * (one + math.erf(d2 * root_half))
            )
            call[i] = price
            put[i] = price + discounted - spot[i]
        return call, put

    return run
