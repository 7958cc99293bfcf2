"""A hidden Markov model: the occasionally dishonest casino

A die is now fair and now loaded; only its rolls are seen. The forward and backward passes give the
chance that it is loaded at each roll, Viterbi's algorithm the likeliest history.

Method: L. R. Rabiner, "A tutorial on hidden Markov models" (1989); the casino is from Durbin, Eddy,
Krogh and Mitchison (1998).
"""

import numpy as np

import jitney as jt


@jt.jit
def forward_backward(rolls, start, move, emit):
    n, states = len(rolls), len(start)
    alpha, beta, scale = np.zeros((n, states)), np.ones((n, states)), np.zeros(n)
    alpha[0] = start * emit[:, rolls[0]]
    scale[0] = alpha[0].sum()
    alpha[0] /= scale[0]
    for t in range(1, n):
        alpha[t] = (alpha[t - 1] @ move) * emit[:, rolls[t]]
        scale[t] = alpha[t].sum()
        alpha[t] /= scale[t]
    for t in range(n - 2, -1, -1):
        beta[t] = move @ (emit[:, rolls[t + 1]] * beta[t + 1]) / scale[t + 1]
    return alpha * beta, np.log(scale).sum()


@jt.jit
def viterbi(rolls, start, move, emit):
    n, states = len(rolls), len(start)
    best = np.log(start) + np.log(emit[:, rolls[0]])
    came_from = np.zeros((n, states), dtype=np.int64)
    for t in range(1, n):
        scores = best[:, None] + np.log(move)
        came_from[t] = scores.argmax(axis=0)
        best = scores.max(axis=0) + np.log(emit[:, rolls[t]])
    path = np.zeros(n, dtype=np.int64)
    path[-1] = best.argmax()
    for t in range(n - 1, 0, -1):
        path[t - 1] = came_from[t, path[t]]
    return path


@jt.jit
def throw(n, move, emit, rng):
    states, rolls = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    state = 0
    for t in range(n):
        state = 1 - state if rng.random() < move[state, 1 - state] else state
        states[t] = state
        rolls[t] = np.searchsorted(np.cumsum(emit[state]), rng.random())
    return states, rolls


def main(n=200_000):
    """The states that were, the chance of the loaded die, the likeliest path, and the log-likelihood."""
    start = np.array([0.5, 0.5])
    move = np.array([[0.95, 0.05], [0.10, 0.90]])
    emit = np.array([np.full(6, 1 / 6), [0.1, 0.1, 0.1, 0.1, 0.1, 0.5]])
    states, rolls = throw(n, move, emit, np.random.default_rng(1))
    chance, likelihood = forward_backward(rolls, start, move, emit)
    return states, chance[:, 1], viterbi(rolls, start, move, emit), likelihood


def picture(ax):
    states, chance, path, _ = main(300)
    ax.fill_between(np.arange(300), states, step="mid", alpha=0.3, label="loaded")
    ax.plot(chance, label="chance of loaded")
    ax.step(np.arange(300), path * 0.1 - 0.15, where="mid", label="Viterbi")
    ax.legend(loc="upper right", fontsize="small")
