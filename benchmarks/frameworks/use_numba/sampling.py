"""Random numbers: each of 64 parts seeds its thread's generator and goes on with it."""

import math

import numpy as np
from numba import prange

from ...rows.sampling import COUNT
from .table import parallel, row

PARTS = 64


@row
def mean_of_exp(f):
    @parallel
    def run(seed):
        sums = np.empty(PARTS)
        for part in prange(PARTS):
            np.random.seed(PARTS * seed[0] + part)
            total = 0.0
            for _ in range(COUNT // PARTS):
                total += math.exp(np.random.standard_normal())
            sums[part] = total
        return sums.sum() / COUNT

    return run


@row
def pi_by_chance(f):
    @parallel
    def run(seed):
        sums = np.empty(PARTS)
        for part in prange(PARTS):
            np.random.seed(PARTS * seed[0] + part)
            inside = 0
            for _ in range(COUNT // PARTS):
                x, y = np.random.random(), np.random.random()
                if x * x + y * y < 1:
                    inside += 1
            sums[part] = inside
        return sums.sum() / COUNT

    return run
