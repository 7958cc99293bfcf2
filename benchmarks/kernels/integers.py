"""Integer arithmetic."""

import numpy as np

from .kernel import kernel


@kernel(lambda r, n: (n,), 100, 3000, 100_000)
def collatz(n):
    best = 0
    for i in range(1, n):
        count = 0
        m = i
        while m != 1:
            if m % 2 == 0:
                m = m // 2
            else:
                m = 3 * m + 1
            count += 1
        if count > best:
            best = count
    return best


@kernel(lambda r, n: (r.integers(0, 1 << 40, n),), 1000, 30_000, 1_000_000, parallel="i")
def bit_counts(x):
    out = np.zeros(x.shape[0], np.int64)
    for i in range(x.shape[0]):
        v = x[i]
        v = v - ((v >> 1) & 0x5555555555555555)
        v = (v & 0x3333333333333333) + ((v >> 2) & 0x3333333333333333)
        v = (v + (v >> 4)) & 0x0F0F0F0F0F0F0F0F
        v = v + (v >> 8)
        v = v + (v >> 16)
        v = v + (v >> 32)
        out[i] = v & 127
    return out


@kernel(lambda r, n: (n,), 1000, 30_000, 1_000_000, static=(0,))
def random_walk(n):
    out = np.zeros(n, np.int64)
    state = np.int64(12345)
    place = 0
    for i in range(n):
        state = (state * 1103515245 + 12345) % 2147483648
        if state > 1073741824:
            place += 1
        else:
            place -= 1
        out[i] = place
    return out


@kernel(lambda r, n: (r.integers(0, 256, n).astype(np.uint8),), 1000, 30_000, 1_000_000)
def checksum(data):
    h = np.int64(5381)
    for i in range(data.shape[0]):
        h = (h * 33 + data[i]) % 4294967296
    return h


@kernel(
    lambda r, n: (r.integers(1, 1000, n), r.integers(1, 1000, n)), 100, 3000, 100_000, parallel="i"
)
def divisors(a, b):
    out = np.zeros(a.shape[0], np.int64)
    for i in range(a.shape[0]):
        x = a[i]
        y = b[i]
        while y != 0:
            t = x % y
            x = y
            y = t
        out[i] = x
    return out
