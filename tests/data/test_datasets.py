"""What datasets give: lengths, batches, padding, windows, caches; and who ends what was begun."""

import collections
import gc
import multiprocessing
import threading
import time

import numpy as np
import pytest

import jitney as jt

data = jt.data


def workers():
    """Threads and processes that datasets have begun and not ended."""
    gc.collect()
    threads = [t.name for t in threading.enumerate() if t.name.startswith("jt.data")]
    return threads + multiprocessing.active_children()


def test_rows_of_trees():
    Point = collections.namedtuple("Point", "x y")
    points = data.from_arrays(Point(np.arange(3), [[1.0], [2.0], [3.0]]))
    assert next(iter(points)) == Point(0, [1.0])
    (batch,) = points.batch(3)
    assert isinstance(batch, Point) and batch.y.shape == (3, 1)
    rows = data.from_arrays({"x": np.zeros((4, 2)), "y": (["a"] * 4, None)})
    (batch,) = rows.batch(9)
    assert batch["y"][0].tolist() == ["a"] * 4 and batch["y"][1] is None
    with pytest.raises(ValueError, match="read-only"):
        next(iter(rows))["x"][0] = 1
    texts = data.from_arrays(np.array(["a", "bc"]))
    assert [b.dtype for b in (*texts.batch(2), *texts.map(str).batch(2))] == [object, object]
    batch["x"][0] = 1  # a copy
    assert next(iter(rows))["x"][0] == 0


@pytest.mark.parametrize(
    "dtype", [np.int8, np.float16, np.bool_, np.complex64, "M8[s]", jt.bfloat16]
)
def test_dtypes_stay(dtype):
    x = np.arange(6).reshape(3, 2).astype(dtype)
    one_by_one = data.from_arrays(x).map(lambda row: row)
    for dataset in (data.from_arrays(x), one_by_one, one_by_one.cache().shuffle(2, 0)):
        found = np.concatenate(list(dataset.batch(2)))
        assert found.dtype == x.dtype and sorted(map(str, found)) == sorted(map(str, x))


def test_lengths_are_known_or_refused():
    five, lines = data.range(5), data.from_generator(lambda: iter(range(5)))
    cases = [
        (five.batch(2), 3),
        (five.batch(2, drop_last=True), 2),
        (five.shard(2, 1), 2),
        (five.shard(7, 6), 0),
        (five.skip(9), 0),
        (five.skip(2).take(2).repeat(3), 6),
        (five.repeat().take(7), 7),
        (five.window(2, 1), 4),
        (five.window(6), 0),
        (five.window(2, 3, drop_last=False), 2),
        (five + five.map(abs), 10),
        (data.zip(five, five.take(3)), 3),
        (five.shuffle(2, 0).cache().prefetch(1).enumerate(), 5),
        (lines.take(0), 0),
    ]
    for dataset, length in cases:
        assert len(dataset) == length == sum(1 for _ in dataset), dataset
    for dataset in (lines, five.filter(bool), lines.batch(2), five.batch(2).unbatch()):
        with pytest.raises(TypeError, match="count them"):
            len(dataset)
    with pytest.raises(TypeError, match=r"take\(n\) ends it"):
        len(five.repeat())
    assert list(lines.take(0).repeat()) == [] and list(data.range(0).batch(3)) == []
    assert list(five.filter(lambda x: x > 9).repeat()) == []


def test_element_spec_is_of_the_first_element():
    dataset = data.from_arrays({"x": np.zeros((4, 3), np.float32), "name": [b"a"] * 4})
    assert dataset.element_spec == {"x": jt.ShapeDtype((3,), np.float32), "name": bytes}
    assert dataset.batch(2).element_spec["x"] == jt.ShapeDtype((2, 3), np.float32)
    with pytest.raises(ValueError, match="has no element"):
        assert data.range(0).element_spec


def test_rows_and_elements_agree():
    """Every selection by index gives what the same selection of elements gives."""
    for make in (
        lambda d: d.skip(2).take(9),
        lambda d: d.shard(3, 1).window(2, 1),
        lambda d: d.enumerate(5).skip(1),
        lambda d: (d + d.skip(3)).shard(2, 0),
        lambda d: data.zip({"a": d, "b": d.skip(1)}),
        lambda d: d.window(3, 2, 2),
    ):
        rows, elements = make(data.range(12)), make(data.from_generator(lambda: iter(range(12))))
        assert rows.rows is not None and elements.rows is None
        by_index = [str(jt.tree.map(np.asarray, x)) for x in rows.batch(4)]
        assert by_index == [str(jt.tree.map(np.asarray, x)) for x in elements.batch(4)]
        assert str(list(rows)) == str(list(elements)) and len(rows) == len(list(elements))
        order = [str(jt.tree.map(np.asarray, x)) for x in rows.shuffle(seed=0).batch(1)]
        straight = [str(jt.tree.map(np.asarray, x)) for x in elements.batch(1)]
        assert sorted(order) == sorted(straight) and order != straight


def test_padding():
    rows = [np.arange(n, dtype=np.int16) for n in (1, 0, 3)]
    ragged = data.from_generator(lambda: [{"x": r, "y": (r[:1], "t")} for r in rows])
    (batch,) = ragged.padded_batch(3, {"x": (4,), "y": (None, None)}, {"x": -1, "y": 7})
    assert batch["x"].tolist() == [[0, -1, -1, -1], [-1, -1, -1, -1], [0, 1, 2, -1]]
    assert batch["x"].dtype == np.int16
    assert batch["y"][0].tolist() == [[0], [7], [0]] and batch["y"][1].tolist() == ["t"] * 3
    (batch,) = ragged.batch(3, pad=0)
    assert batch["x"].shape == (3, 3)
    (flags,) = data.from_generator(lambda: [np.array([True]), np.zeros(2, bool)]).padded_batch(2)
    assert flags.tolist() == [[True, False], [False, False]]


def test_generators_may_fill_one_array():
    def generate():
        x = np.zeros(2)
        for i in range(4):
            x[:] = i
            yield x

    dataset = data.from_generator(generate)
    assert [b[:, 0].tolist() for b in dataset.batch(2)] == [[0, 1], [2, 3]]
    assert sorted(x[0] for x in dataset.shuffle(3, 0)) == [0, 1, 2, 3]


def test_interleave_takes_turns():
    def words(i):
        return data.from_arrays(["abc"[i]] * (i + 1))

    dataset = data.range(3).interleave(words, cycle=2)
    assert "".join(dataset) == "abcbcc"
    assert "".join(data.range(3).interleave(words, cycle=3, block=2)) == "abbccc"
    nested = data.range(2).flat_map(lambda i: data.range(8).shuffle(seed=0))
    first, second = np.array(list(nested)).reshape(2, 8).tolist()
    assert first != second and sorted(first) == sorted(second)  # each its own draws


def test_draws_belong_to_elements():
    """The same with any number of workers, after a resume, and whatever else is drawn."""

    def draw(x, rng):
        return x + rng.random()

    expected = list(data.range(9).map(draw, seed=2).iterator(epoch=1))
    for how in ({"workers": 3}, {"workers": 2, "processes": True}):
        assert list(data.range(9).map(draw, seed=2, **how).iterator(epoch=1)) == expected
    assert list(data.range(9).map(draw, seed=2).iterator(epoch=0)) != expected
    assert len(set(expected)) == 9


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_caches_are_filled_by_a_whole_pass(tmp_path, kind):
    made = []

    def make(x):
        made.append(x)
        return {"x": np.full(2, x, np.float16), "t": ("ä", b"\0", None, 2.5, [x])}

    path = None if kind == "memory" else tmp_path / "cache"
    dataset = data.range(4).shuffle(seed=0).map(make).cache(path)
    next(iter(dataset))  # no whole pass
    assert kind == "memory" or not list(tmp_path.iterdir())
    first = [str(x) for x in dataset]
    assert [str(x) for x in dataset] == first == [str(x) for x in dataset.skip(0)]
    assert len(made) == 5
    it = iter(dataset)
    next(it)
    assert [str(x) for x in dataset.iterator(it.state())] == first[1:]
    if kind == "file":
        assert [p.name for p in tmp_path.iterdir()] == ["cache"]
        with pytest.raises(
            data.DataError, match=r"caches the dataset range > shuffle > map, and this"
        ):
            list(data.range(4).cache(path))
        with pytest.raises(TypeError, match=r"cannot write \{1, 2\}.*cache\(\)"):
            list(data.from_generator(lambda: [{1, 2}]).cache(tmp_path / "other"))


def test_prefetch_runs_ahead_and_onto_devices():
    made = []
    it = iter(data.range(100).map(lambda x: made.append(x) or x).prefetch(3))
    assert next(it) == 0
    while len(made) < 4:
        time.sleep(0.01)
    time.sleep(0.05)
    assert 4 <= len(made) <= 5
    it.close()
    with pytest.raises(ValueError, match="closed"):
        next(it)
    assert [x.tolist() for x in data.range(4).batch(2).prefetch(1, device="cpu")] == [
        [0, 1],
        [2, 3],
    ]


@pytest.mark.parametrize("processes", [False, "fork"])
def test_breaking_off_leaves_nobody(processes):
    dataset = data.range(1000).map(lambda x: x, workers=2, processes=processes).prefetch(2)
    for x in dataset:
        if x == 3:
            break
    assert workers() == []
    with dataset.iterator() as it:
        next(it)
        assert workers()
    assert workers() == []
    dataset = data.range(4).map(lambda x: x, workers=2, processes=processes)
    it = iter(dataset.repeat(3))
    assert list(it) == [0, 1, 2, 3] * 3
    assert workers() == [] and list(it) == []
    assert list(dataset.repeat(3).iterator(it.state())) == []


def test_workers_of_threads_run_beside_each_other():
    barrier = threading.Barrier(3, timeout=30)
    assert list(data.range(6).map(lambda x: barrier.wait() * 0 + x, workers=3)) == list(range(6))


def test_a_slow_element_holds_up_only_the_order():
    slow = threading.Event()

    def work(x):
        if x == 0:
            slow.wait(30)
        return x

    it = iter(data.range(8).map(work, workers=2, deterministic=False))
    first = [next(it) for _ in range(3)]
    assert 0 not in first
    slow.set()
    assert sorted(first + list(it)) == list(range(8))
