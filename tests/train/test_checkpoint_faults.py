"""Damaged and hostile files, full disks, several writers, killed ones: an error that names the file, and
nothing that was saved is lost."""

import json
import os
import resource
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from golden_texts import Golden

from jitney import train
from jitney.train.checkpoint_file import write
from jitney.train.writers import writing

GOLDEN = Golden(Path(__file__).with_name("checkpoint_faults.txt"))


@pytest.fixture
def file(tmp_path):
    tree = {"w": np.arange(6, dtype=np.float32).reshape(2, 3), "z": np.ones(2) * 1j, "n": 3}
    return train.save(tmp_path / "one", {**tree, "rng": np.random.default_rng(0)})


def test_a_file_that_is_cut_off(file):
    whole = file.read_bytes()
    for length in [*range(40), *range(40, len(whole), 7), len(whole) - 1]:
        file.write_bytes(whole[:length])
        with pytest.raises(train.CheckpointError, match=str(file)):
            train.restore(file)
    file.write_bytes(whole + b"\0")
    with pytest.raises(train.CheckpointError, match="longer than it says"):
        train.restore(file)


def test_a_byte_that_changed(file):
    whole = bytearray(file.read_bytes())
    drawn = np.random.default_rng(1)
    where = set(drawn.integers(0, len(whole), 150).tolist()) | set(range(8))
    for at in sorted(where):
        old = whole[at]
        whole[at] ^= 1 << int(drawn.integers(8))
        file.write_bytes(whole)
        # What only other programs read, such as the order of keys and blanks, has no checksum.
        try:
            found = train.restore(file)
        except train.CheckpointError as error:
            assert str(file) in str(error)
        else:
            assert found["n"] == 3 and found["w"][1, 2] == 5 and found["w"].dtype == np.float32
            assert list(found["z"]) == [1j, 1j]
        whole[at] = old


def header(entries, data=b"", metadata=None):
    said = {**({"__metadata__": metadata} if metadata is not None else {}), **entries}
    text = said if isinstance(entries, bytes) else json.dumps(said).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(shape, begin, end, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


HEADERS = {
    "nothing": b"",
    "a length beyond the file": (1 << 60).to_bytes(8, "little") + b"{}",
    "no JSON": (2).to_bytes(8, "little") + b"{x",
    "not UTF-8": (4).to_bytes(8, "little") + b'{"\xff"',
    "a list": (2).to_bytes(8, "little") + b"[]",
    "nested deeply": (200_000).to_bytes(8, "little") + b"[" * 200_000,
    "a huge number": (5014).to_bytes(8, "little") + b'{"a": {"b": ' + b"9" * 5000 + b"}}",
    "a name twice": (14).to_bytes(8, "little") + b'{"a":1, "a":2}',
    "no entry": header({"w": 3}),
    "another key": header({"w": {**entry([1], 0, 4), "code": "x"}}, bytes(4)),
    "an unknown dtype": header({"w": entry([1], 0, 4, "OBJECT")}, bytes(4)),
    "a dtype that is none": header({"w": entry([1], 0, 4, ["F32"])}, bytes(4)),
    "a negative size": header({"w": entry([-1, -1], 0, 4)}, bytes(4)),
    "a size that is no int": header({"w": entry([1.0], 0, 4)}, bytes(4)),
    "a flag as size": header({"w": entry([True], 0, 4)}, bytes(4)),
    "more than there is": header({"w": entry([1 << 40], 0, 1 << 42)}, bytes(4)),
    "sizes that overflow": header({"w": entry([1 << 62, 1 << 62], 0, 4)}, bytes(4)),
    "sizes around nothing": header({"w": entry([0, 1 << 70], 0, 0)}),
    "too many axes": header({"w": entry([1] * 100, 0, 4)}, bytes(4)),
    "bytes twice": header({"v": entry([1], 0, 4), "w": entry([1], 0, 4)}, bytes(4)),
    "bytes of nobody": header({"v": entry([1], 0, 4), "w": entry([1], 8, 12)}, bytes(12)),
    "backwards": header({"w": entry([1], 4, 0)}, bytes(4)),
    "metadata that are no texts": header({}, metadata={"a": 1}),
}


@pytest.mark.parametrize("name", HEADERS)
def test_hostile_headers(tmp_path, name):
    file = tmp_path / "hostile"
    file.write_bytes(HEADERS[name])
    with pytest.raises(train.CheckpointError) as error:
        train.restore(file)
    text = str(error.value).replace(str(tmp_path), "FOLDER")
    GOLDEN.check(name, text if name not in ("no JSON", "not UTF-8") else text.partition("(")[0])


W = {"array": "w"}
GENERATOR = {"dict": [["bit_generator", "PCG64"], ["state", 3]]}
TREES = {
    "no such array": {"array": "v"},
    "another dtype": {**W, "dtype": "|O"},
    "a dtype of records": {**W, "dtype": "i4,i4"},
    "a large dtype": {**W, "dtype": "V1000000000"},
    "a dtype that is no text": {**W, "dtype": 3},
    "pairs that are none": {**W, "dtype": "<c16"},
    "a scalar of two": {**W, "scalar": 1},
    "a list for a node": [1],
    "an unknown node": {"pickle": "gASV"},
    "two kinds in one": {"list": [], "dict": []},
    "a dict without pairs": {"dict": [["a"]]},
    "a key that is a list": {"dict": [[["a"], 1]]},
    "an odd generator": {"generator": {"dict": [["bit_generator", "os"]]}},
    "a generator of nothing": {"generator": GENERATOR},
    "bytes that are none": {"bytes": "é"},
    "a complex that is none": {"complex": "1"},
    "a float that is none": {"float": "x"},
}


@pytest.mark.parametrize("name", TREES)
def test_hostile_descriptions(tmp_path, name):
    file = tmp_path / "hostile"
    said = {"format": 1, "step": 1, "tree": TREES[name], "checksums": {"w": 0}}
    write(file, {"w": np.zeros(3)}, json.dumps(said))
    with pytest.raises(train.CheckpointError) as error:
        train.restore(file)
    GOLDEN.check(f"tree: {name}", str(error.value).replace(str(tmp_path), "FOLDER"))


@pytest.mark.parametrize(
    "said",
    [
        *("3", "[]", "{", '{"format": 9}', '{"format": 1}', "[" * 100_000),
        '{"format": 1, "step": "x", "tree": 1, "checksums": {}}',
        '{"format": 1, "step": 1, "tree": 1, "checksums": {"v": 1}}',
        '{"format": 1, "step": 1, "checksums": {}, "tree": '
        + '{"list":[' * 900
        + "1"
        + "]}" * 900
        + "}",
    ],
)
def test_descriptions_that_are_none(tmp_path, said):
    file = tmp_path / "hostile"
    write(file, {}, said)
    with pytest.raises(train.CheckpointError, match=str(file)):
        train.restore(file)


def in_a_child(action):
    """The exit status of a forked process."""
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 1
    try:
        status = action() or 0
    finally:
        os._exit(status)


@pytest.mark.parametrize("background", [False, True])
def test_a_full_disk(tmp_path, background):
    train.save(tmp_path, np.arange(3), step=1)

    def fill():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        try:
            train.save(tmp_path, np.zeros(100_000), step=2, keep=1, background=background)
            train.wait()
        except OSError as error:
            named = "step-00000002.safetensors" in str(error)
            return 7 if named and "are whole" in error.__notes__[0] else 8

    assert in_a_child(fill) == 7
    assert list(train.restore(tmp_path)) == [0, 1, 2]
    assert {path.name for path in tmp_path.iterdir()} == {".lock", "step-00000001.safetensors"}


def test_a_folder_that_cannot_be_written():
    with pytest.raises(OSError, match="/proc/none"):
        train.save("/proc/none", [1], step=1)
    with pytest.raises(OSError, match="/proc/none"):
        train.save("/proc/none", [1])


def test_a_folder_that_another_process_trains_in(tmp_path):
    ready, tell = os.pipe()
    if not (child := os.fork()):
        with writing(tmp_path, "trains"):
            os.write(tell, b".")
            time.sleep(60)
    os.read(ready, 1)
    try:
        with pytest.raises(BlockingIOError) as error:
            train.save(tmp_path, [1], step=1)
        text = str(error.value).replace(str(tmp_path), "RUN").replace(str(child), "PID")
        GOLDEN.check("two writers", text.replace(os.uname().nodename, "HOST"))
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    train.save(tmp_path, [1], step=1)  # the lock went with its process
    with writing(tmp_path, "trains"):
        train.save(tmp_path, [2], step=2)  # who trains saves, too
        assert in_a_child(lambda: train.restore(tmp_path) != [2]) == 0


def test_several_processes_save_at_once(tmp_path):
    children = []
    for k in range(3):
        if not (child := os.fork()):
            status = 1
            try:
                for step in range(12):
                    train.save(tmp_path, np.full(1000, k), step=step, keep=3)
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
    assert list(train.steps(tmp_path)) == [9, 10, 11]
    for file in train.steps(tmp_path).values():
        assert len(set(train.restore(file).tolist())) == 1
