"""Items of Python's sequences and dicts at places that only the running program knows."""

import random
from collections import namedtuple
from enum import Enum

import numpy as np
import pytest

import jitney as jt

LABELS = ["cat", "dog", "fishes"]
NAMES = {0: "zero", 1: "one", 2: "two"}
Named = namedtuple("Named", "number name")
W = np.array([0.0, 3.0, 1.0])


class Colour(Enum):
    RED = 1
    BLUE = 2


def of_texts(w):
    i = int(w.argmax())
    return LABELS[i], LABELS[np.argmax(w)], LABELS[-1 - i], "abc"[i], [LABELS[int(k)] for k in w]


def of_a_dict(w):
    i = int(w.argmax())
    return NAMES[i], NAMES.get(i), NAMES.get(i + 5), NAMES.get(i + 5, "none"), NAMES.get(i, 1.5)


def of_tuples(w):
    i = int(w.argmax())
    pairs = [(1, "a", None), (2, "b", None), (3, "c", None)]
    return pairs[i], [Named(1, "x"), Named(2, "y"), Named(3, "z")][i], ((1, 2.5), (3, 4.5))[i]


def of_forms(w):
    i = int(w.argmax())
    return (
        [None, 1, 2][i],
        ["x", (1, 2.5), None][i],
        [Colour.RED, Colour.BLUE][i],
        [W.dtype, int][i],
    )


def asked(w):
    label = LABELS[int(w.argmax())]
    code = 1 if label == "dog" else 2 if label == "cat" else 3
    return code, label in ("dog", "cow"), (label, "x") in [("cat", "x"), ("dog", "x")], len(label)


def used(w):
    label = LABELS[int(w.argmax())]
    best = "none"
    for i in range(3):
        if w[i] > 0.5:
            best = LABELS[i]
    return label.upper(), f"{label}: {w.max():.2f}", "-".join([label, "x", label]), best


def called(w):
    return [np.sum, np.max, np.min][int(w.argmax())](w)


def in_a_loop(w):
    count = 0
    for i in range(60):
        a, b = LABELS[i % 3], LABELS[int(w[i % 3])]
        if a == b:
            count += 1
    return count


FUNCTIONS = [of_texts, of_a_dict, of_tuples, of_forms, asked, used, called, in_a_loop]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_item_is_pythons(function):
    compiled = jt.jit(function)
    for w in (np.array([0.0, 2.0, 1.0]), np.array([2.0, 1.0, 0.0])):
        if function is of_forms and not w[0]:
            w = w[[1, 0, 2]]
        result = compiled(w)
        assert result == function(w) and type(result) is type(function(w))
    assert len(compiled.cache_info().entries) == 1


@pytest.mark.parametrize("items", [LABELS, ("a", None), "abc", [1, 2], [(1, 2), (3, 4)], NAMES])
def test_there_is_no_item(items):
    def at(w, offset=5):
        return items[int(w.argmax()) + offset]

    with pytest.raises((IndexError, KeyError)) as plain:
        at(W)
    with pytest.raises(type(plain.value)) as compiled:
        jt.jit(at)(W)
    assert str(compiled.value).partition("\n")[0] == str(plain.value)


@pytest.mark.parametrize("items", [[[1, 2], [3, 4]], [1, 2.5], [np.zeros(2), np.ones(2)]])
def test_what_can_be_changed_is_not_drawn(items):
    with pytest.raises(jt.errors.UnsupportedFunctionError, match="draw an index"):
        jt.jit(lambda: random.choice(items))()


def play():
    score = 0
    for _ in range(30):
        a, b = random.choice(LABELS), random.choice(LABELS)
        if a == b:
            score += 1
        elif (a, b) in (("cat", "dog"), ("dog", "fishes")):
            score += 100
    return score


def walk():
    x = y = 0
    steps = {"N": (0, 1), "S": (0, -1), "E": (1, 0)}
    for _ in range(20):
        dx, dy = steps[random.choice(list(steps))]
        u, v = random.choice([(0, 1), (2, 0)])
        x, y = x + dx + u, y + dy + v
    return x, y


def draws():
    shuffled, pairs = list(LABELS), [(1, "a", 0.5), (2, "b", 1.5), (3, None, 2.5)]
    random.shuffle(shuffled)
    chosen = random.choice(("x", None)), random.choice("hello"), random.choice(pairs)
    return shuffled, random.sample(pairs, 2), random.choices(LABELS, k=3), chosen


def sequence():
    return "".join(random.choice("ACGT") for _ in range(12))


@pytest.mark.parametrize("function", [play, walk, draws, sequence])
def test_draws_among_texts_and_tuples(function):
    random.seed(3)
    wanted = [function(), function(), random.random()]
    random.seed(3)
    compiled = jt.jit(function)
    assert repr([compiled(), compiled(), random.random()]) == repr(wanted)
