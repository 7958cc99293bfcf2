"""What goes wrong is said with file, element and line; nothing is lost, hangs, or stays behind."""

import gzip
import os
import signal
import struct
import subprocess
import sys
import textwrap
import time
import zlib

import pytest
from notebook_cells import notebook

import jitney as jt

data = jt.data
N = 40


@pytest.fixture
def records(tmp_path):
    """A file of the records "record 0" to "record 39", and where each begins."""
    path = tmp_path / "a.tfrecord"
    with data.RecordWriter(path) as writer:
        for i in range(N):
            writer.write(b"record %d" % i)
    begins, at = [], 0
    for i in range(N):
        begins.append(at)
        at += 16 + len(b"record %d" % i)
    return path, begins


def read(dataset):
    """The elements of a dataset up to its first error, and the error."""
    found = []
    try:
        for element in dataset:
            found.append(element)
    except data.DataError as error:
        return found, str(error)
    return found, None


def test_truncated_records(records):
    path, begins = records
    whole = path.read_bytes()
    for cut in (*range(1, 60), *range(len(whole) - 40, len(whole))):
        path.write_bytes(whole[:cut])
        found, error = read(data.tfrecord(path))
        number = sum(b < cut for b in begins) - 1
        if cut in begins:
            assert len(found) == number + 1 and error is None
        else:
            assert len(found) == number
            assert f"a.tfrecord, record {number} at byte {begins[number]}: it is truncated" in error
    path.write_bytes(gzip.compress(whole)[:-9])
    found, error = read(data.tfrecord(path))
    assert "a.tfrecord: GZIP data is truncated or corrupted" in error
    path.write_bytes(zlib.compress(whole)[:-9])
    found, error = read(data.tfrecord(path, compression="ZLIB"))
    assert "a.tfrecord: ZLIB data is truncated or corrupted" in error
    path.write_bytes(gzip.compress(whole)[:30] + b"garbage" * 99)
    assert "GZIP data is truncated or corrupted" in read(data.tfrecord(path))[1]


def test_every_flipped_byte_is_seen(records):
    path, begins = records
    whole = path.read_bytes()
    for at in range(begins[3], begins[5]):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1 :])
        it = iter(data.tfrecord(path))
        number = 3 + (at >= begins[4])
        assert [next(it) for _ in range(number)] == [b"record %d" % i for i in range(number)]
        with pytest.raises(data.DataError, match=rf"a.tfrecord, record {number} at byte") as caught:
            next(it)
        if "bytes have a wrong checksum" in str(
            caught.value
        ):  # its length is good: go on behind it
            assert next(it) == b"record %d" % (number + 1)
        assert len(list(data.tfrecord(path, verify=False).take(number))) == number


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_hostile_lengths_take_no_memory(tmp_path, compression):
    """A record that says it has 2**62 bytes."""
    path = tmp_path / "a.tfrecord"
    with data.RecordWriter(path, compression or None) as writer:
        writer._write(struct.pack("<Q", 1 << 62))
        writer._write(struct.pack("<I", 0xFFFFFFFF & 0) + b"abc")
    reader = data.tfrecord(path, verify=False)
    with pytest.raises(
        data.DataError, match=r"truncated: 3 bytes of a record of 4611686018427387904"
    ):
        list(reader)
    with pytest.raises(data.DataError, match="wrong checksum: no TFRecord file, or corrupted"):
        list(data.tfrecord(path))


def test_writers_leave_whole_files_or_none(tmp_path):
    path = tmp_path / "a.tfrecord"
    with pytest.raises(RuntimeError), data.RecordWriter(path) as writer:
        writer.write(b"a")
        raise RuntimeError
    del writer
    assert list(tmp_path.iterdir()) == []
    with data.RecordWriter(path) as one, data.RecordWriter(path) as other:
        one.write(b"one")
        other.write(b"other")
    assert list(data.tfrecord(path)) == [b"one"]  # which was closed last
    with (
        pytest.raises(TypeError, match="a record cannot be str"),
        data.RecordWriter(path) as w,
    ):
        w.write("text")
    with pytest.raises(FileNotFoundError, match="none/a'"):
        data.RecordWriter(tmp_path / "none" / "a")


def test_files_that_are_not_there(tmp_path):
    for source in (data.files, data.text_lines, data.tfrecord, data.csv, data.arrow):
        with pytest.raises(FileNotFoundError, match=r"no file is called .*\*\.txt"):
            source(tmp_path / "*.txt")
        with pytest.raises(FileNotFoundError, match=r"there is no .*a\.txt"):
            source([tmp_path / "a.txt"])


def failing(x):
    if x == 5:
        return x / 0
    return x


@pytest.mark.parametrize("how", [{}, {"workers": 2}, {"workers": 2, "processes": True}], ids=str)
def test_exceptions_name_element_and_line_and_pass_one_over(how):
    it = iter(data.range(8).map(failing, **how).prefetch(2))
    found = [next(it) for _ in range(5)]
    with pytest.raises(ZeroDivisionError) as caught:
        next(it)
    note = "\n".join(caught.value.__notes__)
    line = failing.__code__.co_firstlineno
    assert f"map(failing at {__file__}:{line}), element 5: 5" in note
    assert f"{__file__}:{line + 2}, in failing: return x / 0" in note
    assert "in the dataset range > map > prefetch" in note
    state = it.state()
    assert found + list(it) == [0, 1, 2, 3, 4, 6, 7]
    assert list(data.range(8).map(failing, **how).prefetch(2).iterator(state)) == [6, 7]


def test_cells_of_notebooks_are_named_as_notebooks_show_them(monkeypatch):
    cell = notebook(monkeypatch)
    cell.run_cell("def inverse(i):\n    return 6 // i\n")
    with pytest.raises(ZeroDivisionError) as caught:
        next(iter(data.range(2).map(cell.user_ns["inverse"])))
    note = "\n".join(caught.value.__notes__)
    assert "map(inverse at In[1]:1), element 0: 0" in note
    assert "\n  In[1]:2, in inverse: return 6 // i" in note


def test_a_failing_element_fails_its_batch_only():
    it = iter(data.range(12).map(failing).batch(3))
    assert next(it).tolist() == [0, 1, 2]
    with pytest.raises(ZeroDivisionError):
        next(it)
    state = it.state()
    assert [b.tolist() for b in it] == [[6, 7, 8], [9, 10, 11]]
    assert next(data.range(12).map(failing).batch(3).iterator(state)).tolist() == [6, 7, 8]


def test_errors_that_do_not_travel():
    class Local(Exception):
        def __init__(self, a, b):
            super().__init__(a)

    def work(x):
        if x == 1:
            raise Local("text", 2)
        return (lambda: x) if x == 2 else x

    it = iter(data.range(4).map(work, workers=1, processes="fork"))
    assert next(it) == 0
    with pytest.raises(RuntimeError, match="Local: text"):
        next(it)
    with pytest.raises(TypeError, match="cannot send back <function"):
        next(it)
    assert next(it) == 3
    with pytest.raises(TypeError, match=r"sends .*work at .* to its workers.*top of a module"):
        next(iter(data.range(4).map(work, workers=1, processes="spawn")))
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(data.range(4).map(lambda x: next(iter(()))))


def test_a_worker_that_dies_is_an_error_and_loses_nothing(tmp_path):
    """`os._exit` and kill -9, in the middle of batches; who goes on has every element."""
    mark = tmp_path / "died"

    def deadly(x):
        if x in (7, 21) and not (mark / str(x)).exists():
            (mark / str(x)).mkdir(parents=True)
            os._exit(3) if x == 7 else os.kill(os.getpid(), signal.SIGKILL)
        return x

    it = iter(data.range(30).map(deadly, workers=1, processes="fork").batch(4).prefetch(2))
    found, errors = [], []
    while True:
        try:
            found += next(it).tolist()
        except StopIteration:
            break
        except data.WorkerError as error:
            errors.append(str(error))
    assert found == list(range(30))
    assert len(errors) == 2 and "by exit code 3 at element 7: 7" in errors[0]
    assert "by SIGKILL at element 21: 21" in errors[1] and "deadly at" in errors[1]


PROGRAM = """
    import os, sys, time
    import jitney as jt

    def work(x):
        time.sleep(0.01)
        return x

    def main(start):
        dataset = jt.data.range(10**6).map(work, workers=2, processes=start).batch(2).prefetch(2)
        for batch in dataset:
            print(batch[0], flush=True)

    if __name__ == "__main__":
        main(sys.argv[1])
"""


def children_of(pid):
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as file:
                    if int(file.read().rsplit(")", 1)[1].split()[1]) == pid:
                        found.append(int(name))
            except OSError:
                pass
    return found


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not os.path.exists("/proc"), reason="asks /proc who is alive")
@pytest.mark.parametrize(
    ("start", "sent"), [("fork", signal.SIGINT), ("fork", signal.SIGKILL), ("spawn", signal.SIGINT)]
)
def test_ended_programs_leave_no_process(tmp_path, start, sent):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    process = subprocess.Popen(
        [sys.executable, program, start],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout.readline() == "0\n"
    children = children_of(process.pid)
    assert len(children) >= 2
    os.killpg(process.pid, sent) if sent == signal.SIGINT else process.kill()
    _, errors = process.communicate(timeout=30)
    assert sent == signal.SIGKILL or (
        errors.count("Traceback") == 1 and "KeyboardInterrupt" in errors
    )
    deadline = time.monotonic() + 20
    while any(map(alive, children)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(alive, children))
