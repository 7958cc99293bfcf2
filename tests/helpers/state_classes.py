"""Classes as people write them, whose methods change their state."""

from __future__ import annotations

from typing import Any

import numpy as np


class Counter:
    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0

    def step(self, x: float) -> float:
        self.count += 1
        self.total += x
        return self.total / self.count


class Kalman:
    """A filter of positions with velocities."""

    def __init__(self, dt: float = 0.1) -> None:
        self.F = np.array([[1.0, dt], [0.0, 1.0]])
        self.H = np.array([[1.0, 0.0]])
        self.Q = 0.01 * np.eye(2)
        self.R = np.array([[0.5]])
        self.x = np.zeros((2, 1))
        self.P = np.eye(2)
        self.n = 0

    def predict(self) -> None:
        self.x = self.F @ self.x
        self.P = self.F @ self.P @ self.F.T + self.Q

    def update(self, z: float) -> float:
        y = z - self.H @ self.x
        S = self.H @ self.P @ self.H.T + self.R
        K = self.P @ self.H.T @ np.linalg.inv(S)
        self.x = self.x + K @ y
        self.P = (np.eye(2) - K @ self.H) @ self.P
        self.n += 1
        return float(y[0, 0])

    def step(self, z: float) -> float:
        self.predict()
        return self.update(z)


class Adam:
    def __init__(self, params: list[Any], lr: float = 1e-2) -> None:
        self.params = params
        self.lr, self.b1, self.b2, self.eps = lr, 0.9, 0.999, 1e-8
        self.m = [np.zeros_like(p) for p in params]
        self.v = [np.zeros_like(p) for p in params]
        self.t = 0

    def step(self, grads: list[Any]) -> None:
        self.t += 1
        for i, (p, g) in enumerate(zip(self.params, grads, strict=True)):
            self.m[i] = self.b1 * self.m[i] + (1 - self.b1) * g
            self.v[i] = self.b2 * self.v[i] + (1 - self.b2) * g**2
            m_hat = self.m[i] / (1 - self.b1**self.t)
            v_hat = self.v[i] / (1 - self.b2**self.t)
            p -= self.lr * m_hat / (np.sqrt(v_hat) + self.eps)


class Network:
    """Two layers, with the derivative written by hand."""

    def __init__(self) -> None:
        rng = np.random.RandomState(0)
        self.W1, self.b1 = rng.randn(4, 8) * 0.5, np.zeros(8)
        self.W2, self.b2 = rng.randn(8, 2) * 0.5, np.zeros(2)
        self.losses: list[Any] = []

    def forward(self, x: Any) -> Any:
        self.x = x
        self.h = np.tanh(x @ self.W1 + self.b1)
        self.out = self.h @ self.W2 + self.b2
        return self.out

    def backward(self, y: Any, lr: float) -> None:
        n = len(y)
        d_out = 2 * (self.out - y) / n
        d_h = (d_out @ self.W2.T) * (1 - self.h**2)
        self.W2 -= lr * self.h.T @ d_out
        self.b2 -= lr * d_out.sum(axis=0)
        self.W1 -= lr * self.x.T @ d_h
        self.b1 -= lr * d_h.sum(axis=0)

    def train(self, x: Any, y: Any, lr: float) -> Any:
        out = self.forward(x)
        loss = ((out - y) ** 2).mean()
        self.backward(y, lr)
        self.losses.append(loss)
        return loss


class Life:
    def __init__(self, n: int = 12) -> None:
        self.grid = (np.random.RandomState(1).rand(n, n) < 0.4).astype(int)
        self.generation = 0

    def neighbours(self) -> Any:
        g = self.grid
        total = np.zeros_like(g)
        for dy in (-1, 0, 1):
            for dx in (-1, 0, 1):
                if dy or dx:
                    total += np.roll(np.roll(g, dy, axis=0), dx, axis=1)
        return total

    def step(self) -> int:
        count = self.neighbours()
        self.grid = ((count == 3) | ((self.grid == 1) & (count == 2))).astype(int)
        self.generation += 1
        return self.generation

    def run(self, steps: int) -> Any:
        for _ in range(steps):
            self.step()
        return self.grid.sum()


class Ema:
    def __init__(self, alpha: float = 0.1) -> None:
        self.alpha = alpha
        self.value: Any = None
        self.count = 0

    def update(self, x: float) -> Any:
        if self.value is None:
            self.value = x
        else:
            self.value = self.alpha * x + (1 - self.alpha) * self.value
        self.count += 1
        return self.value


class RunningStats:
    """Welford's mean and variance."""

    def __init__(self, n: int) -> None:
        self.mean, self.m2, self.n = np.zeros(n), np.zeros(n), 0

    def add(self, x: Any) -> None:
        self.n += 1
        delta = x - self.mean
        self.mean += delta / self.n
        self.m2 += delta * (x - self.mean)

    def variance(self) -> Any:
        return self.m2 / max(self.n - 1, 1)


class CartPole:
    def __init__(self) -> None:
        self.state = np.array([0.01, -0.02, 0.03, 0.04])
        self.steps = 0
        self.done = False

    def step(self, action: int) -> Any:
        x, v, angle, w = self.state
        force = 10.0 if action == 1 else -10.0
        cos, sin = np.cos(angle), np.sin(angle)
        temp = (force + 0.05 * w**2 * sin) / 1.1
        acc = (9.8 * sin - cos * temp) / (0.5 * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
        push = temp - 0.05 * acc * cos / 1.1
        self.state = np.array([x + 0.02 * v, v + 0.02 * push, angle + 0.02 * w, w + 0.02 * acc])
        self.steps += 1
        reward = 1.0
        if abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21:
            self.done = True
            reward = 0.0
        return self.state, reward, self.done


class Queue:
    """A ring buffer."""

    def __init__(self, size: int) -> None:
        self.buffer = np.zeros(size)
        self.head = 0
        self.size = size

    def push(self, x: float) -> float:
        old = self.buffer[self.head]
        self.buffer[self.head] = x
        self.head = (self.head + 1) % self.size
        return old


class Checked:
    """Raises after it has changed something."""

    def __init__(self) -> None:
        self.w = np.ones(4)
        self.calls = 0

    def step(self, i: int) -> Any:
        self.calls += 1
        self.w = self.w * 2
        self.w[i] = 0.0
        return self.w.sum()
