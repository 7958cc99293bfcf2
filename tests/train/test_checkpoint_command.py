"""`python -m jitney checkpoint`: lists, shows, compares, renames."""

from pathlib import Path

import numpy as np
import pytest
from golden_texts import Golden

import jitney as jt
from jitney import train
from jitney.__main__ import main

GOLDEN = Golden(Path(__file__).with_name("checkpoint_command.txt"))


@pytest.fixture
def run(tmp_path, capsys):
    def run(*arguments):
        status = main(["checkpoint", *map(str, arguments)])
        said = capsys.readouterr()
        return status, (said.out + said.err).replace(str(tmp_path), "RUN").rstrip()

    return run


@pytest.fixture
def files(tmp_path):
    tree = {"my_v2": np.ones(3), "enc": [{"w": np.eye(2) * 1j}], "n": 4, "x": (np.float32(1),)}
    first = train.save(tmp_path, {**tree, "rng": np.random.default_rng(0)}, step=3)
    second = train.save(tmp_path, {**tree, "my_v2": np.array([1, 1, 3.5]), "n": 5}, step=4)
    return first, second


def test_listing_and_showing(tmp_path, run, files):
    first, _ = files
    status, said = run("ls", tmp_path)
    assert status == 0 and len(said.splitlines()) == 2 and " 3 arrays       92 B  2" in said
    status, said = run("show", first)
    assert status == 0 and "step 3, 2" in said and "numpy" in said
    GOLDEN.check("show", said.split("\n", 1)[1])
    GOLDEN.check("show values", run("show", tmp_path, "enc")[1])


def test_comparing(run, files):
    status, said = run("diff", *files)
    GOLDEN.check("diff", said)
    assert status == 1
    assert run("diff", files[0], files[0])[0] == 0


def test_states_are_compared_place_by_place(tmp_path, run):
    data = jt.data.from_arrays(np.arange(8)).shuffle(seed=0).batch(2)
    it, rng = iter(data), np.random.default_rng(0)
    files = []
    for step in range(2):
        next(it), rng.random()
        files.append(train.save(tmp_path, {"data": it, "rng": rng, "w": np.ones(2)}, step=step))
    GOLDEN.check("diff of states", run("diff", *files)[1])


def test_renaming(tmp_path, run, files):
    first, _ = files
    output = tmp_path / "renamed.safetensors"
    assert run("rename", first, "my_v2=v2", "enc=dec.blocks", "-o", output)[0] == 0
    found = train.restore(output)
    assert list(found) == ["v2", "dec", "n", "x", "rng"] and found["x"] == [1]
    assert np.array_equal(found["dec"]["blocks"][0]["w"], np.eye(2) * 1j)
    assert train.describe(output)["step"] == 3
    assert train.describe(tmp_path)["step"] == 4  # a folder: its newest one
    assert run("rename", first, "my_v2=['a.b'][2]")[0] == 0
    assert list(train.restore(first)["a.b"][2]) == [1, 1, 1]


def test_what_is_refused(tmp_path, run, files):
    _, second = files
    (tmp_path / "step-00000005.safetensors").write_bytes(b"x" * 100)
    for name, arguments in {
        "ls damaged": ("ls", tmp_path),
        "ls nothing": ("ls", tmp_path / "none"),
        "show nothing": ("show", second, "nobody"),
        "rename nobody": ("rename", second, "my_v3=v3"),
        "rename without =": ("rename", second, "my_v3"),
        "rename into another": ("rename", second, "n=my_v2.n"),
    }.items():
        status, said = run(*arguments)
        assert status, name
        GOLDEN.check(name, said.splitlines()[-1])
