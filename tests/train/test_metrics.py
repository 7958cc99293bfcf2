"""Metrics against scikit-learn: whole sets, batches that add up, masks, compiled code."""

from __future__ import annotations

import doctest
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from public_names import public_names

import jitney as jt
from jitney.train import metrics as m

sk = pytest.importorskip("sklearn.metrics")
rng = np.random.default_rng(0)
N, C = 120, 5
TRUE = rng.integers(0, C - 1, N)  # the last class never is, but is predicted
SCORES = rng.normal(size=(N, C)) + 2 * (TRUE[:, None] == np.arange(C))
SAID = SCORES.argmax(1)
PAIR = (TRUE > 1).astype(np.int64)
CHANCE = (rng.random(N) * 0.7 + 0.3 * PAIR).round(2)  # with ties
VALUES, GUESSES = rng.normal(size=(2, N))
WEIGHTS = rng.uniform(0.1, 2, N)
LOSS = np.log(np.exp(SCORES).sum(1)) - SCORES[np.arange(N), TRUE]


def averaged(name: str, average: str | None) -> Callable[[Any], Any]:
    def wanted(w: Any) -> Any:
        labels = range(C) if average is None else None
        return getattr(sk, f"{name}_score")(
            TRUE, SAID, average=average, sample_weight=w, zero_division=0, labels=labels
        )

    return wanted


squared = functools.partial(sk.mean_squared_error, VALUES, GUESSES)
AVERAGES = ("macro", "micro", "weighted", None)
KINDS = {"precision": m.Precision, "recall": m.Recall, "f1": m.F1, "jaccard": m.MeanIoU}
CASES: list[tuple[Any, Any, Any, Callable[[Any], Any]]] = [
    (m.Accuracy(), TRUE, SCORES, lambda w: sk.accuracy_score(TRUE, SAID, sample_weight=w)),
    (m.Accuracy(), TRUE, SAID, lambda w: sk.accuracy_score(TRUE, SAID, sample_weight=w)),
    (m.Accuracy(0.6), PAIR, CHANCE, lambda w: np.average((CHANCE >= 0.6) == PAIR, weights=w)),
    (
        m.TopKAccuracy(2),
        TRUE,
        SCORES,
        lambda w: sk.top_k_accuracy_score(TRUE, SCORES, k=2, sample_weight=w, labels=range(C)),
    ),
    (m.MeanSquaredError(), VALUES, GUESSES, lambda w: squared(sample_weight=w)),
    (m.MeanSquaredError(True), VALUES, GUESSES, lambda w: np.sqrt(squared(sample_weight=w))),
    (m.Perplexity(), TRUE, SCORES, lambda w: np.exp(np.average(LOSS, weights=w))),
    (m.Confusion(C), TRUE, SCORES, lambda w: sk.confusion_matrix(TRUE, SAID, sample_weight=w)),
    *(
        (kind(C, average=a), TRUE, SCORES, averaged(name, a))
        for name, kind in KINDS.items()
        for a in AVERAGES
    ),
    (m.Precision(), PAIR, CHANCE, lambda w: sk.precision_score(PAIR, CHANCE >= 0.5, sample_weight=w)),
    (m.Recall(), PAIR > 0, CHANCE > 0.4, lambda w: sk.recall_score(PAIR, CHANCE > 0.4, sample_weight=w)),
    (m.F1(threshold=0.3), PAIR, CHANCE, lambda w: sk.f1_score(PAIR, CHANCE >= 0.3, sample_weight=w)),
    (m.AUC(), PAIR, CHANCE, lambda w: sk.roc_auc_score(PAIR, CHANCE, sample_weight=w)),
    (m.AUC("pr"), PAIR, CHANCE, lambda w: sk.average_precision_score(PAIR, CHANCE, sample_weight=w)),
]  # fmt: skip


def padded(x: Any, filler: Any) -> Any:
    """In batches of 50, the last one filled up."""
    return np.concatenate([x, np.full((30, *x.shape[1:]), filler, x.dtype)]).reshape(
        3, 50, *x.shape[1:]
    )


def test_whole_sets_and_masked_batches_are_scikit_learns() -> None:
    """All metrics in one compiled function, called for each batch; labels and scores that are masked out
    are no labels and no scores."""
    mask = padded(np.ones(N, bool), False)
    fillers = {"f": np.nan, "i": -1, "b": False}
    batches = [
        [(padded(x, fillers[x.dtype.kind])) for x in (labels, said)] for _, labels, said, _ in CASES
    ]
    weights = padded(WEIGHTS, np.inf) * 1.0

    @jt.jit
    def step(states: Any, batch: Any, mask: Any, w: Any) -> Any:
        weighted = jt.where(mask, w, 0)
        pairs = zip(states, batch, strict=True)
        return [state.update(*pair, weighted) for state, pair in pairs]

    states = [metric for metric, *_ in CASES]
    for k in range(3):
        states = step(states, [[x[k] for x in pair] for pair in batches], mask[k], weights[k])
    for state, pair, (metric, labels, said, wanted) in zip(states, batches, CASES, strict=True):
        whole, masked = metric.update(labels, said), metric.update(*pair, mask)
        for seen, w in ((whole, None), (masked, None), (state, WEIGHTS)):
            np.testing.assert_allclose(seen.result(), wanted(w), rtol=1e-12, err_msg=repr(metric))
        parts = [metric.update(labels[k::2], said[k::2]) for k in range(2)]
        for seen in (parts[0] + parts[1], sum(parts, metric), jt.tree.map(np.add, *parts)):
            np.testing.assert_allclose(seen.result(), whole.result(), rtol=1e-12)
        assert all(leaf.dtype == np.float64 for leaf in jt.tree.leaves(seen))
    results = jt.jit(lambda states: [state.result() for state in states])(states)
    for got, state in zip(results, states, strict=True):
        np.testing.assert_allclose(got, state.result(), rtol=1e-12)


def test_areas_of_whole_sets() -> None:
    scores = (np.exp(GUESSES) * 20).round(0) + 5 * PAIR  # any numbers, with ties
    for ours, theirs in (
        (m.roc_auc, sk.roc_auc_score),
        (m.average_precision, sk.average_precision_score),
    ):
        for f in (ours, jt.jit(ours)):
            assert f(PAIR, scores) == pytest.approx(theirs(PAIR, scores), rel=1e-12)
            wanted = theirs(PAIR, scores, sample_weight=WEIGHTS)
            assert f(PAIR, scores, WEIGHTS) == pytest.approx(wanted, rel=1e-12)
        holes = np.where(np.arange(N) == 3, np.nan, scores)
        assert np.isnan(ours(PAIR, holes)) and np.isnan(ours(PAIR[:0], scores[:0]))
        without = ours(np.delete(PAIR, 3), np.delete(scores, 3))
        assert ours(PAIR, holes, np.arange(N) != 3) == pytest.approx(without, rel=1e-12)
    assert np.isnan(m.roc_auc(np.ones(3), np.arange(3.0)))  # one class alone
    holes = np.where(np.arange(N) == 3, np.nan, CHANCE)
    assert np.isnan(m.AUC().update(PAIR, holes).result())
    beyond = jt.jit(lambda scores: m.AUC().update(np.array([0, 1]), scores).result())
    assert np.isnan(beyond(np.array([-3.0, 7.0]))) and beyond(np.array([0.0, 1.0])) == 1


def test_means_and_what_is_empty() -> None:
    mean = m.Mean().update(VALUES.astype(np.float32), WEIGHTS).update(2.0)
    assert mean.result() == pytest.approx(
        ((VALUES * WEIGHTS).sum() + 2) / (WEIGHTS.sum() + 1), rel=1e-6
    )
    assert m.Mean().update(np.ones((2, 3)), [1, 0]).weight == 3  # one weight for each sequence
    for metric in (m.Mean(), m.Accuracy(), m.MeanSquaredError(), m.Perplexity(), m.AUC()):
        assert np.isnan(metric.result())
    assert m.Precision().result() == 0 and m.MeanIoU(3).result() == 0
    assert not m.Confusion(3).result().any()
    huge = m.Perplexity().update([0], [[1000.0, 999.0]])
    assert huge.result() == pytest.approx(1 + np.exp(-1))
    nan = m.TopKAccuracy(1).update([0, 1], [[np.nan, 1.0], [0.0, 1.0]])
    assert nan.result() == 0.5  # a score that is NaN is above nothing
    image = m.MeanIoU(2).update(np.zeros((2, 4, 4), int), np.zeros((2, 4, 4), int))
    assert image.result() == 1


def test_in_loops() -> None:
    def body(seen: Any, batch: Any) -> Any:
        return seen.update(*batch), None

    halves = (TRUE.reshape(2, -1), SCORES.reshape(2, -1, C))
    seen, _ = jt.jit(lambda b: jt.scan(body, m.Accuracy(), b))(halves)
    assert seen.result() == m.Accuracy().update(TRUE, SCORES).result()


def test_examples() -> None:
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner()
    for name in set(public_names(m)) - {"Metric"}:
        (example,) = finder.find(getattr(m, name), name, globs={"jt": jt, "np": np})
        assert example.examples and not runner.run(example).failed, name
