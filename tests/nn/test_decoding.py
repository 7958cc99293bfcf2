"""Attention, and what decoders say: against formulas, whole enumerations, and odds counted."""

import itertools

import numpy as np
import pytest

import jitney as jt
from jitney import nn

RNG = np.random.default_rng(0)
END = 3
ODDS = np.log(RNG.dirichlet(np.ones(4) * 0.5, size=4))  # of the next word after each of four


def follow(tokens, state):
    """What comes next depends on the word before, and on how many words there were."""
    return ODDS[tokens] * (1 + 0.3 * state[:, None]), state + 1


def score(words, power):
    """Of a sequence after word 0: its log-probability over its length penalty, and its length."""
    total, before, length = 0.0, 0, 0
    for t, word in enumerate(words):
        logits = ODDS[before] * (1 + 0.3 * t)
        total += logits[word] - np.log(np.exp(logits).sum())
        before, length = word, length + 1
        if word == END:
            break
    return total / ((5 + length) / 6) ** power, length


@pytest.mark.parametrize("power", [0.0, 1.0])
def test_beam_search_finds_the_best_of_all_sequences(power):
    """With as many beams as there are sequences nothing is lost, so that the best ones are found."""
    sequences = {
        (*words[: words.index(END)], *[END] * (4 - words.index(END))) if END in words else words
        for words in itertools.product(range(4), repeat=4)
    }
    best = sorted(sequences, key=lambda words: -score(words, power)[0])[:5]

    def search(start, state):
        return nn.beam_search(follow, start, state, 4, beams=121, end=END, length_penalty=power)

    start, state = np.array([0, 2]), np.zeros(2)
    tokens, scores, lengths = found = jt.jit(search)(start, state)
    for k, words in enumerate(best):
        assert tuple(tokens[0, k]) == words
        expected, length = score(words, power)
        np.testing.assert_allclose(scores[0, k], expected, rtol=1e-12)
        assert lengths[0, k] == length
    for compiled, plain in zip(found, search(start, state), strict=True):
        np.testing.assert_allclose(compiled[:, :50], plain[:, :50], rtol=1e-12)


@pytest.mark.filterwarnings("error")
def test_beam_search_takes_integers_for_logits():
    odds = np.array([[1, 8, 1], [1, 1, 8], [8, 1, 1]])
    ends = [
        nn.beam_search(lambda t, s, x=x: (x[t], s), np.array([0, 1]), (), 4, beams=2, end=2)
        for x in (odds, odds.astype(float))
    ]
    for got, want in zip(*ends, strict=True):
        assert np.array_equal(got, want)


def test_one_beam_is_greedy_and_rows_end():
    start, state = np.array([0, 1, 2, 3]), np.zeros(4)

    def both(start, state):
        return (
            nn.generate(follow, start, state, 6, end=END)[:2],
            nn.beam_search(follow, start, state, 6, beams=1, end=END),
        )

    for (tokens, lengths), (beam, _, beam_lengths) in (
        both(start, state),
        jt.jit(both)(start, state),
    ):
        np.testing.assert_array_equal(tokens, beam[:, 0])
        np.testing.assert_array_equal(lengths, beam_lengths[:, 0])
        for row, n in enumerate(lengths):
            word = start[row]
            for t in range(n):
                word = (ODDS[word] * (1 + 0.3 * t)).argmax()
                assert tokens[row, t] == word
            assert (n == 6 or tokens[row, n - 1] == END) and (tokens[row, n:] == END).all()
    tokens, lengths, state = nn.generate(follow, start, state, 6)  # never over: it can go on
    assert (lengths == 6).all() and (state == 6).all()


def test_samples_have_the_odds_that_are_asked_for():
    p = np.array([0.4, 0.3, 0.2, 0.1])
    logits = np.log(np.tile(p, (20_000, 1)))
    rng = jt.random.default_rng(0)
    cases = {
        (): p,
        (("temperature", 0.5),): p**2,
        (("top_k", 2),): p * [1, 1, 0, 0],
        (("top_p", 0.6),): p * [1, 1, 0, 0],
        (("top_p", 0.71),): p * [1, 1, 1, 0],
        (("top_p", 0.3),): p * [1, 0, 0, 0],
        (("top_k", 3), ("top_p", 0.7)): p * [1, 1, 0, 0],
    }
    drawn = jt.jit(lambda logits: [nn.sample(logits, rng, **dict(case)) for case in cases])(logits)
    for odds, tokens in zip(cases.values(), drawn, strict=True):
        share = np.bincount(tokens, minlength=4) / len(tokens)
        np.testing.assert_allclose(share, odds / odds.sum(), atol=0.015)
        assert not share[odds == 0].any()
    assert nn.sample(logits[0], np.random.default_rng(0)).shape == ()
    for wrong in ({"top_k": 5}, {"top_k": 0}, {"top_p": 0.0}, {"temperature": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            nn.sample(logits, rng, **wrong)


def attended(scores, values, mask):
    weights = np.exp(scores) * mask
    weights = weights / np.maximum(weights.sum(1, keepdims=True), 1e-300)
    return np.einsum("bp,bpf->bf", weights, values), weights


def test_attention():
    encoded, query = RNG.normal(size=(3, 5, 4)), RNG.normal(size=(3, 6))
    lengths, mask = np.array([5, 2, 0]), np.arange(5) < np.array([[5], [2], [0]])
    luong = nn.LuongAttention(6, 4, rng=0, dtype=np.float64)
    scores = np.einsum("bq,bpf,fq->bp", query, encoded, luong.w)
    for found, expected in zip(
        luong(query, luong.memory(encoded, lengths)), attended(scores, encoded, mask), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-300)
    bahdanau = nn.BahdanauAttention(6, 4, 7, rng=0, dtype=np.float64)
    bahdanau.b = RNG.normal(size=7)
    inner = (query @ bahdanau.w_query)[:, None] + encoded @ bahdanau.w + bahdanau.b
    expected = attended((np.tanh(inner) @ bahdanau.v)[..., 0], encoded, 1)[0]
    np.testing.assert_allclose(bahdanau(query, bahdanau.memory(encoded))[0], expected, rtol=1e-12)
    dot = nn.LuongAttention(4, 4, general=False)
    expected = attended(np.einsum("bf,bpf->bp", query[:, :4], encoded), encoded, 1)[0]
    np.testing.assert_allclose(dot(query[:, :4], dot.memory(encoded))[0], expected, rtol=1e-12)

    def loss(encoded, query):
        context, _ = luong(query, luong.memory(encoded, lengths))
        return (context**2).sum()

    d_encoded, _ = jt.jit(jt.grad(loss, argnums=(0, 1)))(encoded, query)
    assert not d_encoded[1, 2:].any() and not d_encoded[2].any(), "an empty row has no gradient"
    jt.check_grads(loss, (encoded, query), order=1, modes=["rev"])


def test_a_decoder_is_taught_and_decodes_step_by_step():
    """What `rnn` gives for known words is what a step at a time gives, whatever runs the steps."""
    f64 = {"rng": 0, "dtype": np.float64}
    encoded, words = RNG.normal(size=(2, 5, 3)), RNG.normal(size=(2, 4, 2))
    for attention in (nn.LuongAttention(6, 3, **f64), nn.BahdanauAttention(6, 3, 8, **f64)):
        decoder = nn.AttentionCell(nn.LSTMCell(7, 6, **f64), attention, 3, 5, **f64)

        def teach(encoded, words, decoder=decoder):
            memory = decoder.attention.memory(encoded, np.array([5, 2]))
            return nn.rnn(decoder.looking_at(memory), words)

        ys, last = jt.jit(teach)(encoded, words)
        cell = decoder.looking_at(attention.memory(encoded, np.array([5, 2])))
        state = cell.initial_state(2, np.float64)
        for t in range(4):
            y, state = cell(words[:, t], state)
            np.testing.assert_allclose(ys[:, t], y, rtol=1e-12)
        for a, b in zip(jt.tree.leaves(last), jt.tree.leaves(state), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
