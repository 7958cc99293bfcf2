"""docs/repomap.md has a line for every module, and the modules have one to give."""

from repomap import MAP, first_sentence, modules, repomap


def test_the_map_is_of_this_tree() -> None:
    assert MAP.read_text() == repomap(), "run `python tests/helpers/repomap.py`"


def test_every_module_says_what_it_is() -> None:
    silent = [str(path) for path in modules() if not first_sentence(path)]
    assert not silent
