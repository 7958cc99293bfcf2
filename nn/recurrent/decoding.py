"""What a network says next, one token after the other: greedy, drawn, or by beam search.

`step(tokens, state)` gives the logits `(batch, words)` for what follows `tokens` `(batch,)`, and
the next state, a tree of arrays `(batch, ...)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import jitney as jt

from ..activations import log_softmax
from ..faults import Array, complain
from ..reductions import array_of

State = Any
Predict = Callable[[Array, State], tuple[Array, State]]


def greedy(logits: Array) -> Array:
    """The likeliest token of each row of `(..., words)`."""
    return np.argmax(logits, axis=-1)


def sample(
    logits: Array,
    rng: Any,
    temperature: Any = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Array:
    """A token for each row of `(..., words)`, drawn with the probabilities softmax(logits /
    temperature).

    `top_k` leaves the k likeliest; `top_p` then the likeliest whose probabilities reach p together
    (the nucleus), the last one included, never none.

    >>> logits = np.log(np.array([[0.1, 0.6, 0.3]]))
    >>> jt.nn.sample(logits, np.random.default_rng(0), top_p=0.5)
    array([1])
    """
    words = logits.shape[-1]
    if top_k is not None and not 1 <= top_k <= words:
        complain(
            ValueError, f"sample: top_k={top_k} of {words} words", f"give one from 1 to {words}."
        )
    if top_p is not None and not 0 < top_p <= 1:
        complain(ValueError, f"sample: top_p={top_p} is no probability", "give one in (0, 1].")
    if isinstance(temperature, (int, float)) and temperature <= 0:
        what = f"sample: temperature={temperature} is not above 0"
        complain(ValueError, what, "nn.greedy takes the likeliest, which is the limit of 0.")
    if not hasattr(rng, "random"):
        what = f"sample: rng={rng!r} is no generator"
        complain(TypeError, what, "make it once, np.random.default_rng(0), and give it each time.")
    logits = logits / np.asarray(temperature, logits.dtype)
    if top_k is not None:
        logits = _above(logits, np.sort(logits, axis=-1)[..., -top_k, None])
    if top_p is not None:
        logits = _above(logits, _nucleus(logits, top_p))
    # The greatest of logits with Gumbel's noise is a draw of their softmax.
    noise = -np.log(-np.log(rng.random(logits.shape)))
    return np.argmax(logits + noise, axis=-1)


def _above(logits: Array, least: Array) -> Array:
    return np.where(logits >= least, logits, np.asarray(-np.inf, logits.dtype))


def _nucleus(logits: Array, p: float) -> Array:
    """The least logit within the nucleus of each row."""
    ordered = np.flip(np.sort(logits, axis=-1), axis=-1)
    odds = np.exp(ordered - ordered[..., :1])
    before = np.cumsum(odds, axis=-1) - odds
    inside = before < p * odds.sum(axis=-1, keepdims=True)
    return np.min(np.where(inside, ordered, ordered[..., :1]), axis=-1, keepdims=True)


def generate(
    step: Predict,
    start: Array,
    state: State,
    steps: int,
    *,
    choose: Callable[[Array], Array] = greedy,
    end: int | None = None,
) -> tuple[Array, Array, State]:
    """Up to `steps` tokens for each row, each chosen of the logits after the one before.

    `start` `(batch,)` are the tokens to begin after. Gives the tokens `(batch, steps)`, how many
    each row has, and the state at the end, with which it can go on. With `end` a row is over with
    that token, which counts, and is filled up with it; nothing runs after the last row is over.

    >>> counting = lambda tokens, state: (np.eye(5)[(tokens + 1) % 5], state)
    >>> jt.nn.generate(counting, np.array([0, 2]), (), 6, end=4)[:2]
    (array([[1, 2, 3, 4, 4, 4],
           [3, 4, 4, 4, 4, 4]]), array([4, 2]))
    """
    start = _tokens("generate", start)
    batch = start.shape[0]
    fill = 0 if end is None else end
    tokens = np.full((batch, steps), fill, np.int64)

    def going(carry: Any) -> Any:
        t, _, _, _, over, _ = carry
        return (t < steps) & ~over.all() if end is not None else t < steps

    def more(carry: Any) -> Any:
        t, token, tokens, lengths, over, state = carry
        logits, state = step(token, state)
        token = np.where(over, fill, choose(logits)).astype(np.int64)
        tokens[:, t] = token
        lengths = lengths + ~over
        if end is not None:
            over = over | (token == end)
        return t + 1, token, tokens, lengths, over, state

    lengths, over = np.zeros(batch, np.int64), np.zeros(batch, bool)
    begin = (0, start, tokens, lengths, over, state)
    _, _, tokens, lengths, _, state = jt.while_loop(going, more, begin)
    return tokens, lengths, state


def beam_search(
    step: Predict,
    start: Array,
    state: State,
    steps: int,
    *,
    beams: int = 4,
    end: int,
    length_penalty: float = 0.6,
) -> tuple[Array, Array, Array]:
    """The likeliest sequences of up to `steps` tokens, of `beams` kept at each step, the best first.

    Gives the tokens `(batch, beams, steps)`, the scores `(batch, beams)`, and the lengths, `end`
    counted; what comes after `end` is `end`. The score of a sequence of n tokens is its
    log-probability divided by ((5 + n) / 6) ** length_penalty. `step` is called with all beams of
    all rows, `(batch * beams,)`: the state is repeated here, what else belongs to the rows, such as
    an encoded sequence, by `repeat_rows(encoded, beams)`.

    >>> odds = np.log(np.array([[0.1, 0.5, 0.4], [0.6, 0.2, 0.2], [0.05, 0.05, 0.9]]))
    >>> follow = lambda tokens, state: (odds[tokens], state)
    >>> tokens, scores, lengths = jt.nn.beam_search(follow, np.array([0]), (), 3, beams=2, end=2)
    >>> tokens[0, 0], lengths[0, 0], np.exp(scores[0, 0]).round(6)
    (array([2, 2, 2]), np.int64(1), np.float64(0.4))
    """
    start = _tokens("beam_search", start)
    batch = start.shape[0]
    first = np.arange(batch)[:, None] * beams  # where the beams of a row begin

    def penalty(lengths: Array) -> Array:
        return ((5 + lengths) / 6) ** length_penalty

    def going(carry: Any) -> Any:
        return (carry[0] < steps) & ~carry[5].all()

    def more(carry: Any) -> Any:
        t, last, tokens, total, lengths, over, state = carry
        logits, state = step(last.reshape(-1), state)
        words = logits.shape[-1]
        known = _continued(logits, over.reshape(-1), end).reshape(batch, beams, words)
        total = total[..., None] + known
        lengths = lengths + ~over
        rank = (total / penalty(lengths)[..., None]).reshape(batch, beams * words)
        best = np.argsort(-rank, axis=1, kind="stable")[:, :beams]
        parent, last = best // words, best % words
        tokens, lengths, over = (
            np.take_along_axis(tokens, parent[..., None], axis=1),
            np.take_along_axis(lengths, parent, axis=1),
            np.take_along_axis(over, parent, axis=1),
        )
        tokens[:, :, t] = last
        total = np.take_along_axis(total.reshape(batch, -1), best, axis=1)
        rows = (first + parent).reshape(-1)
        state = jt.tree.map(lambda x: x[rows], state)
        return t + 1, last, tokens, total, lengths, over | (last == end), state

    # At first all beams of a row are the same one: only the first counts.
    total = np.where(np.arange(beams) == 0, 0.0, -np.inf) + np.zeros((batch, 1))
    tokens = np.full((batch, beams, steps), end, np.int64)
    lengths, over = np.zeros((batch, beams), np.int64), np.zeros((batch, beams), bool)
    last = repeat_rows(start, beams).reshape(batch, beams)
    begin = (0, last, tokens, total, lengths, over, repeat_rows(state, beams))
    _, _, tokens, total, lengths, *_ = jt.while_loop(going, more, begin)
    return tokens, total / penalty(lengths), lengths


def _tokens(name: str, start: Any) -> Array:
    """The tokens to begin after, one for each row."""
    start = array_of(start)
    if start.ndim != 1 or start.dtype.kind not in "iu":
        complain(
            jt.errors.ShapeError,
            f"{name} begins after a token for each row",
            "give ints (batch,): np.array([2]) for one row.",
            start=start,
        )
    return start.astype(np.int64)


def repeat_rows(tree: Any, times: int) -> Any:
    """Each row of each array of a tree `times` times: row i becomes the rows i * times and following.

    >>> jt.nn.repeat_rows(np.array([[1, 2], [3, 4]]), 2)[:, 0]
    array([1, 1, 3, 3])
    """
    return jt.tree.map(lambda x: np.repeat(x, times, axis=0), tree)


def _continued(logits: Array, over: Array, end: int) -> Array:
    """Log-probabilities of the next token; sequences that are over go on with `end`, for certain."""
    known = log_softmax(logits)
    only = np.where(np.arange(logits.shape[-1]) == end, 0.0, -np.inf).astype(known.dtype)
    return np.where(over[..., None], only, known)
