"""`jt.train.save` and `restore`: any tree comes back, whole or in part, in place or new."""

import collections
import dataclasses
import os
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitney as jt
from jitney import train

DTYPES = [
    *("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()),
    *("float16 float32 float64 complex64 complex128 datetime64[us] timedelta64[D] >f8".split()),
    *("bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3 float8_e3m4 float8_e8m0fnu".split()),
    *("float8_e4m3fnuz float8_e5m2fnuz float8_e4m3b11fnuz int4".split()),
]
SHAPES = [(), (0,), (3,), (2, 0, 3), (2, 3)]
Pair = collections.namedtuple("Pair", "first second")


@dataclasses.dataclass
class State:
    m: object
    count: int = 0


@dataclasses.dataclass(frozen=True)
class Frozen:
    w: object
    rate: float = 0.5


class Layer:
    def __init__(self, n=3):
        self.w = np.arange(float(n))
        self.bias = None
        self.act = np.tanh
        self.rng = np.random.default_rng(n)


class Slots:
    __slots__ = ("inner", "w")

    def __init__(self):
        self.w, self.inner = np.ones(2), Layer()


class Counter:
    def __init__(self, at=0):
        self.at = at

    def state(self):
        return {"at": self.at, "seen": np.arange(self.at)}

    def restore(self, state):
        self.at = len(state["seen"])


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)


def bits(array):
    array = np.asarray(array)
    return array.astype(array.dtype.newbyteorder("=")).tobytes()


def same(x, y):
    """Whether two trees have the same values, to the bit, and the same classes."""
    if isinstance(x, (np.ndarray, np.generic)):
        return type(x) is type(y) and x.shape == y.shape and bits(x) == bits(y)
    if isinstance(x, dict):
        return list(x) == list(y) and all(same(x[k], y[k]) for k in x)
    if isinstance(x, (list, tuple)):
        return type(x) is type(y) and len(x) == len(y) and all(map(same, x, y))
    return type(x) is type(y) and repr(x) == repr(y)


def test_every_dtype_and_shape_comes_back(tmp_path):
    drawn = np.random.default_rng(0)
    tree = {}
    for name in DTYPES:
        dtype = dtype_of(name)
        for shape in SHAPES:
            size = int(np.prod(shape)) * dtype.itemsize
            raw = np.frombuffer(drawn.bytes(size) if name != "bool" else bytes(size), np.uint8)
            raw = raw % 8 if name == "int4" else raw
            tree[name, shape] = raw.view(dtype).reshape(shape)
        tree[name, "scalar"] = tree[name, (3,)][1]
    file = train.save(tmp_path / "all.safetensors", tree)
    found = train.restore(file)
    assert list(found) == list(tree)
    for key, value in tree.items():
        assert same(value, found[key]), key
        assert found[key].dtype == value.dtype.newbyteorder("="), key
    assert same(train.restore(file, like=tree), found)
    zeros = {key: np.zeros_like(value) for key, value in tree.items()}
    train.restore(file, into=zeros)
    assert all(bits(zeros[key]) == bits(value) for key, value in tree.items())


def test_orders_and_strides(tmp_path):
    base = np.arange(24.0).reshape(4, 6)
    tree = [base.T, base[::2, ::-3], np.broadcast_to(base[0], (2, 6)), np.asfortranarray(base)]
    file = train.save(tmp_path / "x", tree)
    for array, found in zip(tree, train.restore(file), strict=True):
        assert np.array_equal(array, found) and found.flags.c_contiguous


plain = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), st.complex_numbers()),
    *(st.text(), st.binary(), st.just(np.arange(3))),
)
keys = st.one_of(st.text(), st.integers(), st.tuples(st.integers(), st.text()))
trees = st.recursive(
    plain,
    lambda inner: st.lists(inner) | st.dictionaries(keys, inner) | st.lists(inner).map(tuple),
    max_leaves=12,
)


@settings(max_examples=10)
@given(trees)
def test_any_tree_comes_back(tmp_path_factory, tree):
    file = tmp_path_factory.getbasetemp() / "any.safetensors"
    train.save(file, tree)
    assert same(tree, train.restore(file))
    assert same(tree, train.restore(file, like=tree))


def everything():
    first, tied = Layer(), Slots()
    tied.inner.w = first.w
    return {
        "model": [first, tied],
        "opt": State(np.ones(2, np.float32), 7),
        "frozen": Frozen(np.full(2, 3.0), 0.25),
        "pair": Pair(np.int32(4), [5]),
        "queue": collections.deque([np.zeros(1)], maxlen=3),
        "ordered": collections.OrderedDict(b=1, a=2),
        "default": collections.defaultdict(list, x=[np.ones(1)]),
        "position": Counter(4),
        "legacy": np.random.RandomState(5),
        "bits": np.random.Philox(9),
    }


def blank():
    tree = everything()
    tree["model"][0].w[:] = 9
    tree["model"][0].act = np.sin
    tree["opt"], tree["frozen"] = State(np.zeros(2, np.float32)), Frozen(np.zeros(2))
    tree["pair"] = Pair(np.int32(0), [0])
    tree["ordered"] = collections.OrderedDict(b=0, a=0)
    tree["position"], tree["legacy"] = Counter(), np.random.RandomState(0)
    tree["bits"] = np.random.Philox(0)
    return tree


def test_objects_in_place(tmp_path):
    tree, into = everything(), blank()
    tree["legacy"].normal()
    train.save(tmp_path, tree, step=1)
    first, slots = into["model"]
    w = first.w
    assert train.restore(tmp_path, into=into) is into
    assert first.w is slots.inner.w is w and list(w) == [0, 1, 2]
    assert first.act is np.sin and into["opt"].count == 7 and into["position"].at == 4
    assert into["frozen"].rate == 0.25 and list(into["frozen"].w) == [3, 3]
    assert into["pair"] == (4, [5]) and into["ordered"] == {"b": 1, "a": 2}
    assert first.rng.normal() == tree["model"][0].rng.normal()
    assert into["legacy"].normal() == tree["legacy"].normal()
    assert into["bits"].random_raw() == tree["bits"].random_raw()


def test_objects_in_a_new_tree(tmp_path):
    tree = everything()
    file = train.save(tmp_path, tree, step=1)
    drawn = tree["model"][0].rng.normal()
    first = tree["model"][0]
    like = {key: tree[key] for key in tree if key != "position"}
    first.w[:] = 8
    new = train.restore(file, like, only=lambda name: name != "position" and name[:8] != "position")
    assert list(first.w) == [8, 8, 8] and list(new["model"][0].w) == [0, 1, 2]
    assert new["model"][0].w is new["model"][1].inner.w
    assert new["model"][0].act is np.tanh and type(new["model"][1]) is Slots
    assert type(new["default"]) is collections.defaultdict and new["default"]["y"] == []
    assert new["queue"].maxlen == 3 and new["pair"].first == 4
    assert new["model"][0].rng.normal() == drawn and new["legacy"] is not like["legacy"]

    plain = train.restore(file)
    assert plain["model"][0]["w"] is plain["model"][1]["inner"]["w"]
    assert plain["pair"] == {"first": 4, "second": [5]} and plain["position"]["at"] == 4


def test_what_is_none_yet_is_filled(tmp_path):
    layer = Layer()
    layer.bias = np.ones(2)
    train.save(tmp_path, layer, step=0)
    assert list(train.restore(tmp_path, into=Layer()).bias) == [1, 1]
    assert list(train.restore(tmp_path, {"bias": None}, only="bias")["bias"]) == [1, 1]


class Dense(jt.nn.Module):
    def __init__(self, n):
        self.n, self.w, self.rate, self.sizes = n, None, 0.5, [n, n]
        self.scale = jt.Variable(np.ones(n), "scale")

    def build(self, x):
        self.w = np.zeros((len(x), self.n))

    def __call__(self, x):
        return x @ self.w * self.scale


def test_modules(tmp_path):
    first, second = Dense(2), Dense(2)
    first(np.ones(3))
    first.w[:] = 3
    first.scale.assign([1.0, 2.0])
    file = train.save(tmp_path, {"model": [first]}, step=0)
    assert list(train.restore(file)["model"][0]) == ["w", "scale"]  # no settings
    second.rate, scale = 0.1, second.scale.value
    train.restore(tmp_path, into={"model": [second]})
    assert second.rate == 0.1 and second.scale.value is scale
    assert list(second(np.ones(3))) == [9, 18]  # and is not built again
    new = train.restore(file, {"model": [Dense(2)]})["model"][0]
    assert list(new(np.ones(3))) == [9, 18] and new.rate == 0.5 and new.scale.name == "scale"
    assert list(train.restore(file, {"model": [second]})["model"][0].scale) == [1, 2]


def test_specs_stand_for_arrays(tmp_path):
    train.save(tmp_path, {"w": np.ones((2, 3))}, step=0)
    found = train.restore(tmp_path, {"w": jt.ShapeDtype((2, 3), np.float64)})
    assert np.array_equal(found["w"], np.ones((2, 3)))


def test_names_subsets_and_casts(tmp_path):
    tree = {"enc": [{"w": np.ones(2)}, {"w": np.full(2, 2.0)}], "my_v2": np.zeros(3), "step": 4}
    train.save(tmp_path, tree, step=4)
    zeros = {"dec": [np.zeros(2), np.zeros(2)], "v2": np.ones(3), "step": 0}
    train.restore(tmp_path, into=zeros, rename={"enc[*].w": "dec[*]", "my_v2": "v2"})
    assert zeros["dec"][1][0] == 2 and zeros["v2"][0] == 0 and zeros["step"] == 4
    part = {"enc": [{"w": np.zeros(2)}], "other": np.ones(1)}
    train.restore(tmp_path, into=part, only="enc[0]")
    assert list(part["enc"][0]["w"]) == [1, 1] and part["other"][0] == 1
    small = {"my_v2": np.ones(3, np.float16), "step": 0.0}
    train.restore(tmp_path, into=small, only=["my_v2", "step"], cast=True)
    assert small["my_v2"][0] == 0 and small["my_v2"].dtype == np.float16
    bf16 = {"my_v2": np.ones(3, jt.bfloat16)}
    assert train.restore(tmp_path, bf16, only="my_v2", cast=True)["my_v2"].dtype == jt.bfloat16
    ints = {"my_v2": np.ones(3, np.int32)}
    report = train.restore_partial(tmp_path, into=ints, cast=True)[1]
    assert "my_v2" in report.misshapen and ints["my_v2"][0] == 1  # no fractions are lost


def test_a_partial_restore_reports(tmp_path):
    train.save(tmp_path, {"a": np.ones(2), "b": np.ones(3), "c": 1}, step=0)
    into = {"a": np.zeros(2), "b": np.zeros(4), "d": np.full(1, 7.0)}
    tree, report = train.restore_partial(tmp_path, into=into)
    assert tree is into and list(into["a"]) == [1, 1] and list(into["b"]) == [0, 0, 0, 0]
    assert report.loaded == ["a"] and report.missing == ["d"] and report.extra == ["c"]
    assert str(report).splitlines()[1:] == [
        "  misshapen  b: float64[3] in the file, float64[4] here",
        *("  missing    d", "  extra      c"),
    ]


def test_steps_and_what_is_kept(tmp_path):
    for step in range(12):
        train.save(tmp_path, [step], step=step, keep=2, keep_every=5)
    assert list(train.steps(tmp_path)) == [0, 5, 10, 11]
    assert train.restore(tmp_path) == [11]
    (tmp_path / "step-00000099.safetensors").write_bytes(b"short")
    with pytest.warns(UserWarning, match=r"left out.*step-00000099.*5 bytes"):
        assert train.latest(tmp_path).name == "step-00000011.safetensors"
    for file in train.steps(tmp_path).values():
        file.write_bytes(b"short")
    with pytest.raises(train.CheckpointError, match="00000099"), pytest.warns(UserWarning):
        train.latest(tmp_path)
    assert train.latest(tmp_path / "none") is None and train.steps(tmp_path / "none") == {}


def test_in_the_background(tmp_path):
    w = np.zeros(1000)
    for step in range(3):
        w[:] = step
        file = train.save(tmp_path, w, step=step, background=True)
        w[:] = -1
    train.wait()
    assert list(train.steps(tmp_path)) == [0, 1, 2] and (train.restore(file) == 2).all()
    blocked = tmp_path / "file"
    blocked.write_text("")
    train.save(blocked / "x", w, background=True)
    with pytest.raises(OSError, match="file"):
        train.wait()
    train.wait()
    train.save(tmp_path, w, step=3, background=True)
    if not (child := os.fork()):
        train.wait()  # for no thread of the parent's
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    train.wait(tmp_path)


def test_the_package_reads_and_writes_the_same_files(tmp_path):
    package = pytest.importorskip("safetensors.numpy")
    tree = {"layers": [{"w": np.eye(2, dtype=np.float32)}], "b": np.arange(3), "f": True}
    file = train.save(tmp_path / "ours", tree)
    found = package.load_file(file)
    assert set(found) == {"layers[0].w", "b"} and np.array_equal(found["layers[0].w"], np.eye(2))
    package.save_file({"layers.0.weight": np.ones((2, 2), np.float32)}, tmp_path / "theirs")
    assert list(train.restore(tmp_path / "theirs")) == ["layers.0.weight"]
    tree["layers"][0]["w"][:] = 0
    renamed = {"layers.*.weight": "layers[*].w"}
    train.restore(tmp_path / "theirs", into=tree, rename=renamed, only="layers")
    assert tree["layers"][0]["w"].all() and train.describe(tmp_path / "theirs") == {}


def test_one_array_here_and_two_in_the_file(tmp_path):
    train.save(tmp_path / "one", {"a": np.zeros(2), "b": np.ones(2)})
    w = np.full(2, 5.0)
    with pytest.raises(train.CheckpointError, match="a and b are one array in the tree"):
        train.restore(tmp_path / "one", into={"a": w, "b": w})
    assert list(w) == [5, 5]


def test_who_never_waits_is_told():
    program = "import jitney as jt; jt.train.save('/dev/null/x', [1], background=True)"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "the last checkpoint in '/dev/null/x'" in said.stderr, said
