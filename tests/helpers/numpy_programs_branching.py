"""Programs as NumPy users write them in which data decide what is done: loops that end when something
has converged, pivots, random choices, classes with state. They need `jit(autograph=True)`."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy_programs import _spd, program

Array = Any


@program(
    lambda r: (
        np.array([3.0, 5.0, 4.0]),
        np.array([[2.0, 3, 0], [0, 2, 5], [3, 2, 4]]),
        np.array([8.0, 10, 15]),
    )
)
def simplex(c: Array, A: Array, b: Array) -> Any:
    m, n = A.shape
    T = np.zeros((m + 1, n + m + 1))
    T[:m, :n] = A
    T[:m, n : n + m] = np.eye(m)
    T[:m, -1] = b
    T[-1, :n] = -c
    basis = list(range(n, n + m))
    basis = np.array(basis)
    while T[-1, :-1].min() < -1e-10:
        j = np.argmin(T[-1, :-1])
        col = T[:-1, j]
        ratios = np.where(col > 1e-10, T[:-1, -1] / np.where(col > 1e-10, col, 1), np.inf)
        i = np.argmin(ratios)
        if not np.isfinite(ratios[i]):
            raise ValueError("unbounded")
        T[i] /= T[i, j]
        for k in range(m + 1):
            if k != i:
                T[k] -= T[k, j] * T[i]
        basis[i] = j
    x = np.zeros(n + m)
    x[basis] = T[:-1, -1]
    return (x[:n], T[-1, -1])


@program(lambda r: (_spd(r, 10), r.normal(size=10)))
def gmres(A: Array, b: Array, m: Array = 10, tol: Array = 1e-10) -> Any:
    n = A.shape[0]
    x0 = np.zeros(n)
    r0 = b - np.dot(A, x0)
    beta = np.linalg.norm(r0)
    Q = np.zeros((n, m + 1))
    H = np.zeros((m + 1, m))
    Q[:, 0] = r0 / beta
    k = 0
    for j in range(m):
        v = A @ Q[:, j]
        for i in range(j + 1):
            H[i, j] = np.dot(Q[:, i], v)
            v = v - H[i, j] * Q[:, i]
        H[j + 1, j] = np.linalg.norm(v)
        k = j + 1
        if H[j + 1, j] < tol:
            break
        Q[:, j + 1] = v / H[j + 1, j]
    e1 = np.zeros(m + 1)
    e1[0] = beta
    y, *_ = np.linalg.lstsq(H, e1, rcond=None)
    return (x0 + Q[:, :m] @ y, k)


@program(lambda r: (np.array([1.0, 0.0]), 0.0, 3.0))
def rkf45(y0: Array, t0: Array, t1: Array) -> Any:

    def f(t, y):
        return np.array([y[1], -y[0] - 0.1 * y[1] + np.sin(t)])

    tol = 1e-08
    h = 0.1
    t, y = (t0, y0)
    n = 0
    while t < t1:
        if t + h > t1:
            h = t1 - t
        k1 = h * f(t, y)
        k2 = h * f(t + h / 4, y + k1 / 4)
        k3 = h * f(t + 3 * h / 8, y + 3 * k1 / 32 + 9 * k2 / 32)
        k4 = h * f(t + 12 * h / 13, y + 1932 * k1 / 2197 - 7200 * k2 / 2197 + 7296 * k3 / 2197)
        k5 = h * f(t + h, y + 439 * k1 / 216 - 8 * k2 + 3680 * k3 / 513 - 845 * k4 / 4104)
        k6 = h * f(
            t + h / 2, y - 8 * k1 / 27 + 2 * k2 - 3544 * k3 / 2565 + 1859 * k4 / 4104 - 11 * k5 / 40
        )
        err = np.max(np.abs(k1 / 360 - 128 * k3 / 4275 - 2197 * k4 / 75240 + k5 / 50 + 2 * k6 / 55))
        if err <= tol:
            t = t + h
            y = y + 25 * k1 / 216 + 1408 * k3 / 2565 + 2197 * k4 / 4104 - k5 / 5
            n += 1
        s = 0.84 * (tol / max(err, 1e-16)) ** 0.25
        h = h * min(max(s, 0.1), 4.0)
    return (y, n)


class System:
    def __init__(self, pos, vel, mass):
        self.pos = pos.copy()
        self.vel = vel.copy()
        self.mass = mass
        self.acc = self.forces()
        self.history = []

    def forces(self):
        d = self.pos[None, :, :] - self.pos[:, None, :]
        r2 = (d**2).sum(-1) + 0.01
        inv = r2 ** (-1.5)
        np.fill_diagonal(inv, 0.0)
        return (d * inv[..., None] * self.mass[None, :, None]).sum(axis=1)

    def energy(self):
        ke = 0.5 * np.sum(self.mass * np.sum(self.vel**2, axis=1))
        d = self.pos[None] - self.pos[:, None]
        r = np.sqrt((d**2).sum(-1) + 0.01)
        iu = np.triu_indices(len(self.mass), 1)
        pe = -np.sum((self.mass[:, None] * self.mass[None, :] / r)[iu])
        return ke + pe

    def step(self, dt):
        self.vel += 0.5 * dt * self.acc
        self.pos += dt * self.vel
        self.acc = self.forces()
        self.vel += 0.5 * dt * self.acc
        self.history.append(self.energy())


@program(lambda r: (r.normal(size=(6, 3)), r.normal(size=(6, 3)) * 0.1, np.ones(6)), smooth=True)
def nbody(pos: Array, vel: Array, mass: Array) -> Any:
    sim = System(pos, vel, mass)
    for _ in range(10):
        sim.step(0.01)
    return (sim.pos, sim.vel, np.array(sim.history))


@program(lambda r: (1 + 0.01 * r.normal(size=(9, 12, 10)), r.random((12, 10)) < 0.1))
def lattice_boltzmann(F: Array, cylinder: Array) -> Any:
    idxs = np.arange(9)
    cxs = np.array([0, 0, 1, 1, 1, 0, -1, -1, -1])
    cys = np.array([0, 1, 1, 0, -1, -1, -1, 0, 1])
    weights = np.array([4 / 9, 1 / 9, 1 / 36, 1 / 9, 1 / 36, 1 / 9, 1 / 36, 1 / 9, 1 / 36])
    F = F.copy()
    rho = np.sum(F, 0)
    for i in idxs:
        F[i] *= 100 / rho
    for _ in range(5):
        for i, cx, cy in zip(idxs, cxs, cys, strict=True):
            F[i, :, :] = np.roll(F[i], cx, axis=1)
            F[i, :, :] = np.roll(F[i], cy, axis=0)
        bndryF = F[:, cylinder]
        bndryF = bndryF[[0, 5, 6, 7, 8, 1, 2, 3, 4], :]
        rho = np.sum(F, 0)
        ux = np.sum(F * cxs[:, None, None], 0) / rho
        uy = np.sum(F * cys[:, None, None], 0) / rho
        Feq = np.zeros(F.shape)
        for i, cx, cy, w in zip(idxs, cxs, cys, weights, strict=True):
            Feq[i] = (
                rho
                * w
                * (
                    1
                    + 3 * (cx * ux + cy * uy)
                    + 9 * (cx * ux + cy * uy) ** 2 / 2
                    - 3 * (ux**2 + uy**2) / 2
                )
            )
        F += -(1.0 / 0.6) * (F - Feq)
        F[:, cylinder] = bndryF
        ux[cylinder] = 0
        uy[cylinder] = 0
    return (F, ux, uy)


class MLP:
    def __init__(self, sizes, seed=0):
        rng = np.random.default_rng(seed)
        self.W = [rng.normal(size=(a, b)) * np.sqrt(2 / a) for a, b in pairwise(sizes)]

        self.b = [np.zeros(b) for b in sizes[1:]]
        self.losses = []

    def forward(self, x):
        self.acts = [x]
        for i, (W, b) in enumerate(zip(self.W, self.b, strict=True)):
            z = self.acts[-1] @ W + b
            if i < len(self.W) - 1:
                z = np.maximum(z, 0)
            self.acts.append(z)
        e = np.exp(z - z.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    def train_step(self, x, y, lr=0.1):
        p = self.forward(x)
        n = len(x)
        self.losses.append(-np.log(p[np.arange(n), y] + 1e-08).mean())
        d = p.copy()
        d[np.arange(n), y] -= 1
        d /= n
        for i in reversed(range(len(self.W))):
            gW = self.acts[i].T @ d
            gb = d.sum(axis=0)
            if i > 0:
                d = d @ self.W[i].T
                d[self.acts[i] <= 0] = 0
            self.W[i] -= lr * gW
            self.b[i] -= lr * gb


@program(lambda r: (r.normal(size=(20, 4)), r.integers(0, 3, 20)))
def mlp_by_hand(x: Array, y: Array) -> Any:
    net = MLP([4, 8, 3])
    for _ in range(5):
        net.train_step(x, y)
    return (np.array(net.losses), net.W[0], net.b[1])


@program(lambda r: (r.random(300), r.integers(0, 4, 300)))
def q_learning(
    u: Array, explore: Array, eps: Array = 0.2, alpha: Array = 0.5, gamma: Array = 0.9
) -> Any:
    n = 4
    Q = np.zeros((n * n, 4))
    s = 0
    total = 0.0
    moves = np.array([[-1, 0], [1, 0], [0, -1], [0, 1]])
    for k in range(len(u)):
        if u[k] < eps:
            a = explore[k]
        else:
            a = np.argmax(Q[s])
        y, x = divmod(s, n)
        ny = min(max(y + moves[a, 0], 0), n - 1)
        nx = min(max(x + moves[a, 1], 0), n - 1)
        s2 = ny * n + nx
        r = 1.0 if s2 == n * n - 1 else -0.01
        total += r
        Q[s, a] += alpha * (r + gamma * Q[s2].max() - Q[s, a])
        s = 0 if s2 == n * n - 1 else s2
    return (Q, total)


@program(lambda r: (r.integers(0, 4, 9), r.integers(0, 4, 7)))
def needleman_wunsch(
    a: Array, b: Array, match: Array = 1, mismatch: Array = -1, gap: Array = -2
) -> Any:
    n, m = (len(a), len(b))
    S = np.zeros((n + 1, m + 1), dtype=int)
    S[:, 0] = np.arange(n + 1) * gap
    S[0, :] = np.arange(m + 1) * gap
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            d = S[i - 1, j - 1] + (match if a[i - 1] == b[j - 1] else mismatch)
            S[i, j] = max(d, S[i - 1, j] + gap, S[i, j - 1] + gap)
    i, j = (n, m)
    align = np.full((n + m, 2), -1)
    k = 0
    while i > 0 or j > 0:
        if (
            i > 0
            and j > 0
            and (S[i, j] == S[i - 1, j - 1] + (match if a[i - 1] == b[j - 1] else mismatch))
        ):
            align[k] = (a[i - 1], b[j - 1])
            i -= 1
            j -= 1
        elif i > 0 and S[i, j] == S[i - 1, j] + gap:
            align[k, 0] = a[i - 1]
            i -= 1
        else:
            align[k, 1] = b[j - 1]
            j -= 1
        k += 1
    return (S[n, m], align, k)


@program(lambda r: (np.array([-1.2, 1.0]),))
def nelder_mead(x0: Array, maxiter: Array = 200, tol: Array = 1e-08) -> Any:

    def f(x):
        return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2

    n = len(x0)
    sim = np.vstack([x0] + [x0 + 0.5 * np.eye(n)[i] for i in range(n)])
    fs = np.array([f(s) for s in sim])
    it = 0
    while it < maxiter:
        order = np.argsort(fs)
        sim, fs = (sim[order], fs[order])
        if np.abs(fs[-1] - fs[0]) < tol:
            break
        cen = sim[:-1].mean(axis=0)
        xr = cen + (cen - sim[-1])
        fr = f(xr)
        if fr < fs[0]:
            xe = cen + 2 * (cen - sim[-1])
            fe = f(xe)
            if fe < fr:
                sim[-1], fs[-1] = (xe, fe)
            else:
                sim[-1], fs[-1] = (xr, fr)
        elif fr < fs[-2]:
            sim[-1], fs[-1] = (xr, fr)
        else:
            xc = cen + 0.5 * (sim[-1] - cen)
            fc = f(xc)
            if fc < fs[-1]:
                sim[-1], fs[-1] = (xc, fc)
            else:
                for i in range(1, n + 1):
                    sim[i] = sim[0] + 0.5 * (sim[i] - sim[0])
                    fs[i] = f(sim[i])
        it += 1
    return (sim[0], fs[0], it)


@program(lambda r: (r.normal(size=128),), smooth=True)
def stft_denoise(x: Array, n: Array = 32, hop: Array = 16) -> Any:
    win = np.hanning(n + 1)[:-1]
    frames = np.array([x[i : i + n] * win for i in range(0, len(x) - n + 1, hop)])
    S = np.fft.rfft(frames, axis=1)
    mag, ph = (np.abs(S), np.angle(S))
    mag = np.where(mag > 0.5, mag, 0.1 * mag)
    y = np.zeros(len(x))
    for k, f in enumerate(np.fft.irfft(mag * np.exp(1j * ph), n, axis=1)):
        y[k * hop : k * hop + n] += f
    return y


@program(lambda r: (r.integers(0, 256, 30).astype(np.uint8),))
def crc32(data: Array) -> Any:
    crc = np.uint32(4294967295)
    for byte in data:
        crc ^= np.uint32(byte)
        for _ in range(8):
            if crc & np.uint32(1):
                crc = crc >> np.uint32(1) ^ np.uint32(3988292384)
            else:
                crc >>= np.uint32(1)
    return ~crc


@program(lambda r: (r.normal(size=(6, 6)),))
def lu_pivot_if(A: Array) -> Any:
    n = A.shape[0]
    U = A.copy()
    L = np.eye(n)
    P = np.eye(n)
    sign = 1
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(U[i, k]) > abs(U[pivot, k]):
                pivot = i
        if pivot != k:
            U[[k, pivot], k:] = U[[pivot, k], k:]
            L[[k, pivot], :k] = L[[pivot, k], :k]
            P[[k, pivot]] = P[[pivot, k]]
            sign = -sign
        if U[k, k] == 0:
            return (P, L, U, 0.0)
        for j in range(k + 1, n):
            L[j, k] = U[j, k] / U[k, k]
            U[j, k:] -= L[j, k] * U[k, k:]
    return (P, L, U, sign * np.prod(np.diag(U)))


@program(
    lambda r: (
        np.array(
            [
                [5, 3, 0, 0, 7, 0, 0, 0, 0],
                [6, 0, 0, 1, 9, 5, 0, 0, 0],
                [0, 9, 8, 0, 0, 0, 0, 6, 0],
                [8, 0, 0, 0, 6, 0, 0, 0, 3],
                [4, 0, 0, 8, 0, 3, 0, 0, 1],
                [7, 0, 0, 0, 2, 0, 0, 0, 6],
                [0, 6, 0, 0, 0, 0, 2, 8, 0],
                [0, 0, 0, 4, 1, 9, 0, 0, 5],
                [0, 0, 0, 0, 8, 0, 0, 7, 9],
            ]
        ),
    )
)
def sudoku(board: Array) -> Any:
    board = board.copy()
    progress = True
    while progress:
        progress = False
        for i in range(9):
            for j in range(9):
                if board[i, j] == 0:
                    used = np.zeros(10, dtype=bool)
                    used[board[i]] = True
                    used[board[:, j]] = True
                    bi, bj = (i // 3 * 3, j // 3 * 3)
                    used[board[bi : bi + 3, bj : bj + 3].ravel()] = True
                    free = ~used
                    free[0] = False
                    if free.sum() == 1:
                        board[i, j] = np.argmax(free)
                        progress = True
    return board


@program(lambda r: (np.array([-1.2, 1.0]),))
def bfgs(x: Array) -> Any:

    def f(x):
        return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2

    def g(x):
        return np.array(
            [-2 * (1 - x[0]) - 400 * x[0] * (x[1] - x[0] ** 2), 200 * (x[1] - x[0] ** 2)]
        )

    n = len(x)
    H = np.eye(n)
    grad = g(x)
    k = 0
    while np.linalg.norm(grad) > 1e-06:
        p = -H @ grad
        a = 1.0
        fx = f(x)
        while f(x + a * p) > fx + 0.0001 * a * (grad @ p):
            a *= 0.5
            if a < 1e-10:
                break
        s = a * p
        x_new = x + s
        g_new = g(x_new)
        yv = g_new - grad
        ys = yv @ s
        if ys > 1e-10:
            rho = 1 / ys
            eye = np.eye(n)
            H = (eye - rho * np.outer(s, yv)) @ H @ (eye - rho * np.outer(yv, s)) + rho * np.outer(
                s, s
            )
        x, grad = (x_new, g_new)
        k += 1
        if k > 100:
            break
    return (x, k)
