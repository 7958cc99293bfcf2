"""The programs in `examples/` run, for a few steps; uncompiled, which takes less time than compiling."""

import importlib

import pytest
from folders import ROOT

import jitney as jt


@pytest.fixture(autouse=True)
def examples(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    with jt.disable_jit():
        yield


def test_digits_are_classified():
    pytest.importorskip("sklearn")
    assert 0 <= importlib.import_module("digits").main(steps=1, batch=8, width=2) <= 1


def test_digits_are_drawn(capsys):
    pytest.importorskip("sklearn")
    gan = importlib.import_module("gan")
    assert gan.main(steps=2, batch=8, width=8, judged=20, judge={"steps": 1, "width": 2}) <= 10
    assert "digits to the classifier" in capsys.readouterr().out


def test_photographs_are_told_apart(capsys):
    pytest.importorskip("sklearn")
    pytest.importorskip("PIL")
    importlib.import_module("photographs").main(steps=1, batch=8, width=2)
    said = capsys.readouterr().out
    assert "16 places fit" in said and "4 arrays are as they were" in said


def test_tumours_are_classified():
    pytest.importorskip("sklearn")
    accuracy, area = importlib.import_module("breast_cancer").main(steps=10)
    assert accuracy > 0.8 and area > 0.9


def test_ridge_regression_is_the_closed_form():
    pytest.importorskip("sklearn")
    assert importlib.import_module("diabetes").main() < 1e-6


def test_digits_on_processes_fall_in_loss():
    pytest.importorskip("sklearn")
    losses = importlib.import_module("train_digits_mpi").main(steps=12, batch=32)
    assert losses[-1] < losses[0]


def test_digits_are_read_row_by_row():
    pytest.importorskip("sklearn")
    assert 0 <= importlib.import_module("digits_by_row").main(steps=1) <= 1


def test_dates_are_translated(capsys):
    dates = importlib.import_module("dates")
    assert dates.main(steps=1, batch=4, tried=4) < 1
    assert "4 dates" in capsys.readouterr().out


@pytest.mark.parametrize("make", ["Recurrent", "Attentive"])
def test_characters_are_written(make, capsys):
    characters = importlib.import_module("characters")
    sizes = {"batch": 4, "length": 8, "hidden": 16}
    bits = characters.main(getattr(characters, make), steps=1, wanted=10, **sizes)
    assert 4 < bits < 11, "of about 100 letters"
    assert "The " in capsys.readouterr().out
