"""Texts with traced values in them that leave the function: as results, in objects and containers."""

import numpy as np
import pytest

import jitney as jt

X = np.array([1.5, 2.5, -1.0])


def formatted(x):
    return f"mean {x.mean():.3f} of {x}", f"{x[0]:.2f} {x[1]}", "%5.1f|%s" % (x[0], x[1])  # noqa: UP031


def converted(x, n):
    return str(x.sum()), repr(x[2]), str(float(x[0])), str(n), f"{n:05d}", str(x[0]) + "x" * 3


def in_a_tree(x, n):
    return {"text": f"{n}", "items": [f"{v:.1f}" for v in x], "both": (f"{x.max()}",) * 2}


def of_texts(x, n):
    text = f"{x[0]:.1f}"
    wide = f"{text:>9}|{text!r}|{f'{n}%':<6}|{x[1]:{n % 5 + 6}.2f}"
    later = text.rjust(8), "%.1f".ljust(7) % x[1], text.replace(".", ",").strip(), text * 2
    return wide, later, f"{n:>3}".zfill(5).center(n % 3 + 9), f"{x[0]:.0f}: %s" % n


def perhaps_a_number(x):
    shown = f"{x[0]:9.3f}" if x[0] > 0 else f"{'-':>9}"
    return f"v {shown} | {shown:>12}", "{:>8}|{:<8}".format(f"{x[1]}", "up" if x[2] > 0 else "down")


def of_arrays(x):
    text = np.array2string(x, precision=3, separator=", ")
    return text, np.array_str(x), np.array_repr(x), np.format_float_positional(x[0], 2)


def joined(x):
    lines = []
    for i in range(40):
        lines.append(f"{i}: {x[i % 3]:.2f}")
    return "\n".join(lines)


def by_branch(x):
    return f"large {x.sum()}" if x.sum() > 1 else "small"


@pytest.mark.parametrize(
    "function",
    [formatted, converted, in_a_tree, joined, by_branch, of_texts, perhaps_a_number, of_arrays],
)
def test_the_text_is_made_when_the_function_has_run(function):
    compiled = jt.jit(function)
    for x, n in ((X, 7), (X - 2, -12)):
        args = (x, n)[: function.__code__.co_argcount]
        assert compiled(*args) == function(*args)
    assert len(compiled.cache_info().entries) == 1


class Model:
    def __init__(self):
        self.message, self.log, self.named = "", [], {}

    def run(self, x):
        self.message = f"sum={x.sum()}"
        self.log.append(f"max={x.max():.2f}")
        self.named["first"] = "%5.2f" % x[0]  # noqa: UP031
        return self.message


def test_texts_in_objects_and_containers():
    plain, model, run = Model(), Model(), jt.jit(Model.run)
    for x in (X, X * 2):
        assert run(model, x) == plain.run(x)
        assert vars(model) == vars(plain)


def test_characters_are_not_there_while_tracing():
    with pytest.raises(jt.errors.TracerConversionError, match="known only when"):
        jt.jit(lambda x: f"{x[0]}".split("."))(X)
