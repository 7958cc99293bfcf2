"""The brachistochrone: a path by gradient

A bead slides down a wire without friction; along which curve is it quickest? The wire is a chain of
heights, its time a sum, and the gradient shapes it, by Newton's method with the Hessian. The answer
is known: a cycloid (Johann Bernoulli, 1696).

Method: Newton's, with the step halved until the time falls (L. Armijo, 1966).
"""

import numpy as np

import jitney as jt


def duration(inner, width, drop):
    """How long the bead takes from (0, 0) to (width, -drop)."""
    below = np.concatenate([inner, np.array([drop])])
    depth = np.concatenate([np.zeros(1), below])
    length = np.sqrt((width / len(below)) ** 2 + np.diff(depth) ** 2)
    speed = np.concatenate([np.zeros(1), np.sqrt(2 * 9.81 * below)])
    return np.sum(2 * length / (speed[1:] + speed[:-1]))


@jt.jit
def quickest(inner, width, drop, limit=100):
    time, slope = jt.value_and_grad(duration)(inner, width, drop)
    history = [time]
    for _ in range(limit):
        bend = jt.hessian(duration)(inner, width, drop)
        step = np.linalg.solve(bend + 1e-6 * np.eye(len(inner)), -slope)
        if slope @ step >= 0:
            step = -slope
        size = 1.0
        while (
            np.any(inner + size * step <= 0)
            or duration(inner + size * step, width, drop) > time + 1e-4 * size * slope @ step
        ):
            size /= 2
            if size < 1e-12:
                break
        inner = inner + size * step
        new, slope = jt.value_and_grad(duration)(inner, width, drop)
        history.append(new)
        if time - new < 1e-13:
            break
        time = new
    return inner, history


def cycloid(width, drop, points):
    """The exact curve, by bisection for its angle."""
    low, high = 1e-6, 2 * np.pi - 1e-6
    for _ in range(100):
        middle = (low + high) / 2
        if (middle - np.sin(middle)) / (1 - np.cos(middle)) < width / drop:
            low = middle
        else:
            high = middle
    radius = drop / (1 - np.cos(low))
    angle = np.linspace(0, low, points)
    return (
        radius * (angle - np.sin(angle)),
        radius * (1 - np.cos(angle)),
        low * np.sqrt(radius / 9.81),
    )


def main(points=120, width=2.0, drop=1.0):
    """The curve found, its time after each step, and the time of the cycloid."""
    straight = np.linspace(0, drop, points + 2)[1:-1]
    curve, history = quickest(straight, width, drop)
    return curve, np.array(history), cycloid(width, drop, 2)[2]


def picture(ax):
    curve, history, exact = main()
    x, depth, _ = cycloid(2.0, 1.0, 200)
    ax.plot(x, -depth, label=f"cycloid, {exact:.4f} s")
    ax.plot(
        np.linspace(0, 2, len(curve) + 2)[1:-1],
        -curve,
        ".",
        markersize=3,
        label=f"found, {history[-1]:.4f} s",
    )
    ax.plot([0, 2], [0, -1], "--", color="silver", label=f"straight, {history[0]:.4f} s")
    ax.legend()
