"""A few kills; `python tests/train/kill_trainings.py` does 200."""

from kill_trainings import main


def test_killed_trainings_end_with_the_same_bits():
    assert main(4, seed=7, width=64, say=lambda text: None) == 4
