"""A Kalman filter

A point moves in the plane; its position is measured with noise. The filter is a class whose methods
change its estimate, one measurement at a time.

Method: R. E. Kalman (1960); the covariance is updated in P. D. Joseph's form.
"""

import numpy as np

import jitney as jt


class Kalman:
    def __init__(self, dt, push, noise):
        self.x = np.zeros(4)
        self.p = np.eye(4) * 100.0
        self.f = np.eye(4) + dt * np.eye(4, k=2)
        self.h = np.eye(2, 4)
        side = np.vstack([0.5 * dt**2 * np.eye(2), dt * np.eye(2)])
        self.q = push**2 * side @ side.T
        self.r = noise**2 * np.eye(2)

    def predict(self):
        self.x = self.f @ self.x
        self.p = self.f @ self.p @ self.f.T + self.q

    def update(self, z):
        s = self.h @ self.p @ self.h.T + self.r
        gain = np.linalg.solve(s, self.h @ self.p).T
        self.x = self.x + gain @ (z - self.h @ self.x)
        keep = np.eye(4) - gain @ self.h
        self.p = keep @ self.p @ keep.T + gain @ self.r @ gain.T

    @jt.jit
    def follow(self, measured):
        track = np.empty((len(measured), 4))
        for n, z in enumerate(measured):
            self.predict()
            self.update(z)
            track[n] = self.x
        return track


def main(steps=20_000):
    """Where the point was, what was measured, and the filter's estimates."""
    rng = np.random.default_rng(2)
    dt, push, noise = 0.1, 1.0, 1.0
    speed = np.cumsum(push * dt * rng.normal(size=(steps, 2)), axis=0)
    truth = np.cumsum(dt * speed, axis=0)
    measured = truth + noise * rng.normal(size=(steps, 2))
    return truth, measured, Kalman(dt, push, noise).follow(measured)


def picture(ax):
    truth, measured, track = main(300)
    ax.plot(*measured.T, ".", markersize=3, color="silver", label="measured")
    ax.plot(*truth.T, "k", linewidth=1, label="truth")
    ax.plot(*track[:, :2].T, "r", linewidth=1, label="filter")
    ax.legend()
