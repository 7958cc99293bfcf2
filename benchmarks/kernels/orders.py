"""Sorting, searching, sieving."""

import numpy as np

from .kernel import kernel


@kernel(lambda r, n: (r.random(n),), 50, 400, 3000)
def insertion_sort(x):
    a = x.copy()
    for i in range(1, a.shape[0]):
        v = a[i]
        j = i - 1
        while j >= 0 and a[j] > v:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = v
    return a


@kernel(lambda r, n: (r.random(n),), 50, 300, 1500)
def bubble_sort(x):
    a = x.copy()
    n = a.shape[0]
    for i in range(n):
        for j in range(n - 1 - i):
            if a[j] > a[j + 1]:
                t = a[j]
                a[j] = a[j + 1]
                a[j + 1] = t
    return a


@kernel(lambda r, n: (np.sort(r.random(n)), r.random(n)), 100, 3000, 100_000, parallel="i")
def binary_search(a, wanted):
    out = np.zeros(wanted.shape[0], np.int64)
    for i in range(wanted.shape[0]):
        lo = 0
        hi = a.shape[0]
        while lo < hi:
            middle = (lo + hi) // 2
            if a[middle] < wanted[i]:
                lo = middle + 1
            else:
                hi = middle
        out[i] = lo
    return out


@kernel(lambda r, n: (n,), 1000, 30_000, 1_000_000, static=(0,))
def sieve(n):
    prime = np.ones(n, np.bool_)
    prime[0] = prime[1] = False
    for i in range(2, int(n**0.5) + 1):
        if prime[i]:
            for j in range(i * i, n, i):
                prime[j] = False
    return prime
