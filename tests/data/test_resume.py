"""An iterator goes on exactly where its state was asked for: random pipelines, at random positions."""

import gzip
import json
import os
import signal
import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jitney as jt
from jitney.data.shuffling import shuffled

data = jt.data
N = 37


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Sources of the numbers 0 to 36, those of files among them; text as bytes of numbers."""
    folder = tmp_path_factory.mktemp("data")
    lines = [f"{i}\r\n" if i % 3 else f"{i}\n" for i in range(N)]
    (folder / "a.txt").write_text("".join(lines[:20]), newline="")
    with gzip.open(folder / "b.txt", "wt", newline="") as file:
        file.write("".join(lines[20:]))
    for kind, part in (("GZIP", range(20)), (None, range(20, N))):
        with data.RecordWriter(folder / f"{part[0]:02}.tfrecord", kind) as writer:
            for i in part:
                writer.write(b"%d" % i)
    (folder / "a.csv").write_text("x\n" + "".join(f"{i}\n" for i in range(N)))
    return {
        "arrays": data.from_arrays(np.arange(N)),
        "range": data.range(N),
        "generator": data.from_generator(lambda: iter(range(N))),
        "text": data.text_lines(folder / "?.txt").map(int),
        "tfrecord": data.tfrecord(folder / "*.tfrecord").map(int),
        "csv": data.csv(folder / "a.csv").map(lambda row: row["x"]),
        "flat": data.range(6).flat_map(lambda i: data.range(i * 7, min(i * 7 + 7, N))),
        "interleaved": data.range(5).interleave(lambda i: data.range(i, N, 5).shuffle(3, 0), 2, 3),
        "sum": data.range(20) + data.from_generator(lambda: iter(range(20, N))),
        "pairs": data.zip(data.range(N), data.range(N).shuffle(seed=1)).map(lambda p: p[0]),
    }


def noisy(x, rng):
    return x + int(rng.integers(100)) * 1000


STEPS = {
    "map": lambda d: d.map(lambda x: x * 2),
    "draw": lambda d: d.map(noisy, seed=3),
    "threads": lambda d: d.map(lambda x: x + 1, workers=2),
    "filter": lambda d: d.filter(lambda x: x % 5),
    "take": lambda d: d.take(23),
    "skip": lambda d: d.skip(3),
    "shard": lambda d: d.shard(2, 1),
    "repeat": lambda d: d.repeat(2),
    "shuffle": lambda d: d.shuffle(7, seed=5),
    "eager": lambda d: d.shuffle(9, seed=5, min_after=2),
    "batch": lambda d: d.batch(4).unbatch(),
    "padded": lambda d: d.map(lambda x: np.arange(x % 3)).padded_batch(3).map(np.sum),
    "window": lambda d: d.window(3, 2, 2).map(np.sum),
    "ragged window": lambda d: d.window(3, 4, drop_last=False).map(np.sum),
    "group": lambda d: d.group_by_window(lambda x: int(x) % 3, 2).unbatch(),
    "bucket": lambda d: (
        d.map(lambda x: np.full(x % 4, x)).bucket_by_length(len, [2], 3).map(np.sum)
    ),
    "enumerate": lambda d: d.enumerate(2).map(lambda p: p[0] * 10 + p[1]),
    "cache": lambda d: d.cache(),
    "prefetch": lambda d: d.prefetch(3),
}


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(random=st.data())
def test_restored_iterators_give_the_same_elements(files, random):
    check(drawn(files[random.draw(st.sampled_from(sorted(files)))], random, 4), random)


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(random=st.data())
def test_restored_iterators_with_processes(files, random):
    dataset = drawn(files[random.draw(st.sampled_from(sorted(files)))], random, 2)
    check(drawn(dataset.map(noisy, workers=2, processes="fork", seed=1), random, 2), random)


def drawn(dataset, random, most):
    """The dataset behind random steps."""
    for name in random.draw(st.lists(st.sampled_from(sorted(STEPS)), max_size=most)):
        dataset = STEPS[name](dataset)
    return dataset


def check(dataset, random):
    """From the state at a random position come the same elements, here and in other iterators."""
    epoch = random.draw(st.integers(0, 2))
    expected = list(map(int, dataset.iterator(epoch=epoch)))
    with dataset.iterator(epoch=epoch) as it:
        position = random.draw(st.integers(0, len(expected)))
        before = [int(next(it)) for _ in range(position)]
        state = json.loads(json.dumps(it.state()))
        assert before + list(map(int, it)) == expected
        it.restore(state)
        assert list(map(int, it)) == expected[position:]
        with pytest.raises(StopIteration):
            next(it)
    with dataset.iterator(state) as again:
        other = random.draw(st.integers(0, len(expected) - position))
        assert [int(next(again)) for _ in range(other)] == expected[position : position + other]
        assert list(map(int, dataset.iterator(again.state()))) == expected[position + other :]


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("processes", [False, "fork"])
def test_elements_of_workers_come_once(processes, deterministic):
    dataset = data.from_generator(lambda: iter(range(50))).map(
        noisy, workers=3, processes=processes, deterministic=deterministic, seed=1
    )
    dataset = dataset.repeat(2)
    expected = list(data.range(50).map(noisy, seed=1).repeat(2).iterator(epoch=0))
    with dataset.iterator(epoch=0) as it:
        for position in (0, 13, 50, 80):
            got = [next(it) for _ in range(position)]
            rest = list(dataset.iterator(json.loads(json.dumps(it.state()))))
            assert sorted(got + rest) == sorted(expected)
            assert not deterministic or got + rest == expected
            it = dataset.iterator(epoch=0)
    assert [t for t in threading.enumerate() if t.name.startswith("jt.data")] == []


def test_interrupts_lose_nothing():
    pulled = []

    def interrupted(x):
        pulled.append(x)
        if len(pulled) == 7:
            signal.raise_signal(signal.SIGINT)
        return x

    dataset = data.range(12).map(interrupted).shuffle(3, seed=0).batch(2)
    expected = [b.tolist() for b in data.range(12).map(int).shuffle(3, seed=0).batch(2)]
    it = dataset.iterator(epoch=0)
    found = []
    with pytest.raises(KeyboardInterrupt):
        for batch in it:
            found.append(batch.tolist())
    rest = [batch.tolist() for batch in dataset.iterator(it.state())]
    assert found + rest == found + [batch.tolist() for batch in it] == expected


def test_a_forked_child_reads_on_by_itself(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("".join(f"{i}\n" for i in range(3000)))
    it = iter(data.text_lines(path).map(int, workers=2).prefetch(2))
    assert next(it) == 0
    if (child := os.fork()) == 0:
        os._exit(0 if list(it) == list(range(1, 3000)) else 1)
    assert list(it) == list(range(1, 3000))
    assert os.waitpid(child, 0)[1] == 0


def test_windowed_order_of_rows():
    """The order is made at once, and is one that a buffer of elements could have given."""
    order = shuffled(1000, 50, np.random.default_rng(0))
    assert sorted(order) == list(range(1000)) and (order <= np.arange(1000) + 49).all()
    assert sorted(shuffled(5, 9, np.random.default_rng(0))) == list(range(5))
    counts = np.zeros((4, 4))
    for seed in range(2000):
        for place, element in enumerate(shuffled(4, 2, np.random.default_rng(seed))):
            counts[place, element] += 1
    assert np.abs(counts[0] / 2000 - [0.5, 0.5, 0, 0]).max() < 0.05
    assert np.abs(counts[1] / 2000 - [0.25, 0.25, 0.5, 0]).max() < 0.05


def test_passes_differ_and_repeat():
    dataset = data.range(50).shuffle(seed=4)
    first, second = list(dataset), list(dataset)
    assert first != second and sorted(first) == sorted(second)
    again = data.range(50).shuffle(seed=4)
    assert [list(again), list(again)] == [first, second]
    assert list(again.iterator(epoch=1)) == second
    assert list(dataset.iterator(dataset.iterator(epoch=0).state())) == first
    assert list(dataset) == second  # the pass after that of the state
    unseeded = data.range(50).shuffle()
    it = iter(unseeded)
    next(it)
    assert list(data.range(50).shuffle().iterator(it.state())) == list(it)


def test_states_of_other_datasets_are_refused():
    state = iter(data.range(5).batch(2)).state()
    with pytest.raises(data.DataError, match=r"range > batch, and this is range > take"):
        data.range(5).take(2).iterator(state)
    with pytest.raises(data.DataError, match="is no state of an iterator"):
        data.range(5).iterator({"at": 3})
    shorter = data.from_generator(lambda: iter(range(3)))
    it = data.from_generator(lambda: iter(range(9))).iterator()
    list(it)
    with pytest.raises(data.DataError, match=r"ended at element 3, before the position 9"):
        list(shorter.iterator(it.state()))


def test_a_large_buffer_has_a_small_state():
    it = iter(data.from_generator(lambda: iter(range(30_000))).shuffle(10_000, seed=0))
    for _ in range(5000):
        next(it)
    assert len(json.dumps(it.state())) < 60_000
    small = iter(data.range(10**6).shuffle(seed=0).batch(64))
    next(small)
    assert len(json.dumps(small.state())) < 200
