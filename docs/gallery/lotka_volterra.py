"""Foxes and rabbits: a differential equation is fitted

Populations were counted with errors; the four rates of Lotka and Volterra's equations are found by
Gauss and Newton's method. The derivatives of the whole simulation by the rates come from the
compiler.

Method: Runge and Kutta's fourth order; K. Levenberg (1944) and D. Marquardt (1963).
"""

import numpy as np

import jitney as jt


def flow(state, rates):
    prey, predator = state
    a, b, c, d = rates
    return np.array([a * prey - b * prey * predator, c * prey * predator - d * predator])


def simulate(rates, start, dt, samples, between):
    """The populations at each sample, with `between` steps from one to the next."""
    states = np.empty((samples, 2))
    state = start
    for n in range(samples):
        states[n] = state
        for _ in range(between):
            k1 = flow(state, rates)
            k2 = flow(state + 0.5 * dt * k1, rates)
            k3 = flow(state + 0.5 * dt * k2, rates)
            k4 = flow(state + dt * k3, rates)
            state = state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return states


@jt.jit
def fit(rates, counted, start, dt, between, limit=50):
    def residuals(log_rates):
        return (
            np.log(simulate(np.exp(log_rates), start, dt, len(counted), between)) - np.log(counted)
        ).ravel()

    log_rates, trust = np.log(rates), 1e-2
    error = np.sum(residuals(log_rates) ** 2)
    for turn in range(limit):  # noqa: B007
        r, j = residuals(log_rates), jt.jacfwd(residuals)(log_rates)
        normal = j.T @ j
        step = np.linalg.solve(normal + trust * np.diag(np.diag(normal)), -j.T @ r)
        new_error = np.sum(residuals(log_rates + step) ** 2)
        if new_error < error:
            done = error - new_error < 1e-10 * error
            log_rates, error, trust = log_rates + step, new_error, trust / 10
            if done:
                break
        else:
            trust *= 10
    return np.exp(log_rates), error, turn


def main(samples=200, between=40, limit=50):
    """The counts, the fitted rates, the error, the turns, and the fitted populations."""
    truth, start = np.array([1.0, 0.1, 0.075, 1.5]), np.array([10.0, 5.0])
    dt = 20.0 / samples / between
    rng = np.random.default_rng(5)
    counted = jt.jit(simulate)(truth, start, dt, samples, between)
    counted = counted * np.exp(0.1 * rng.normal(size=counted.shape))
    guess = np.array([0.9, 0.12, 0.06, 1.3])
    rates, error, turns = fit(guess, counted, start, dt, between, limit)
    return counted, rates, error, turns, jt.jit(simulate)(rates, start, dt, samples, between)


def picture(ax):
    counted, rates, _, _, fitted = main()
    time = np.linspace(0, 20, len(counted), endpoint=False)
    for column, (name, colour) in enumerate((("rabbits", "C0"), ("foxes", "C3"))):
        ax.plot(time, counted[:, column], ".", color=colour, markersize=3)
        ax.plot(time, fitted[:, column], color=colour, label=name)
    ax.legend()
    ax.set_title("rates " + ", ".join(f"{r:.3f}" for r in rates))
