"""`jt.summary`: what is written is read back by TensorBoard's own reader, from compiled code too."""

import io
import subprocess
import sys
import textwrap
import wave

import numpy as np
import pytest

import jitney as jt

pytest.importorskip("tensorboard")

from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util import tensor_util


class Log:
    """What a folder's events say."""

    def __init__(self, folder):
        self._events = EventAccumulator(str(folder), size_guidance={"tensors": 0})
        self._events.Reload()

    @property
    def tags(self):
        return set(self._events.Tags()["tensors"])

    @property
    def nodes(self):
        return {node.name: node for node in self._events.Graph().node}

    def points(self, tag):
        return [
            (e.step, tensor_util.make_ndarray(e.tensor_proto)) for e in self._events.Tensors(tag)
        ]

    def only(self, tag):
        ((_, value),) = self.points(tag)
        return value

    def scalars(self, tag):
        return [(step, float(value)) for step, value in self.points(tag)]


@pytest.mark.parametrize(
    "value", [2, 2.5, True, np.float64(0.25), np.array([7.0]), np.float16(1.5)]
)
def test_scalars(tmp_path, value):
    with jt.summary.Writer(tmp_path):
        jt.summary.scalar("a/b", value, step=4)
    assert Log(tmp_path).scalars("a/b") == [(4, float(np.asarray(value).ravel()[0]))]


def test_compiled_code_writes_in_program_order(tmp_path):
    @jt.jit
    def run(w, threshold):
        for i in range(5):
            w = w * 1.5
            jt.summary.scalar("loop", w.sum(), i)
            if w.sum() > threshold:
                jt.summary.scalar("branch", w.max(), i)
        return w

    run(np.arange(4.0), 20.0)  # no writer: dropped
    expected = [(i, 6.0 * 1.5 ** (i + 1)) for i in range(5)]
    with jt.summary.Writer(tmp_path):
        run(np.arange(4.0), 20.0)
    log = Log(tmp_path)
    assert log.scalars("loop") == expected
    assert log.scalars("branch") == [(i, s / 2) for i, s in expected if s > 20]


def test_the_writer_is_that_of_the_time_of_the_call(tmp_path):
    step = jt.jit(lambda x: jt.summary.scalar("x", x, 0))
    with jt.summary.Writer(tmp_path / "outer"):
        step(1.0)
        with jt.summary.Writer(tmp_path / "inner"):
            step(2.0)
        step(3.0)
    assert Log(tmp_path / "outer").scalars("x") == [(0, 1.0), (0, 3.0)]
    assert Log(tmp_path / "inner").scalars("x") == [(0, 2.0)]


def test_a_writer_by_name(tmp_path):
    writer = jt.summary.Writer(tmp_path)

    @jt.jit
    def step(x, n):
        jt.summary.scalar("x", x, n, writer=writer)
        return x + 1

    with jt.summary.Writer(tmp_path / "other"):
        assert step(1.0, 7) == 2.0
    writer.flush()
    assert Log(tmp_path).scalars("x") == [(7, 1.0)]


def test_gradients_and_activations(tmp_path):
    x = np.array([[1.0, -2.0], [0.0, 3.0]])

    @jt.jit
    def step(w, n):
        def loss(w):
            hidden = np.maximum(x @ w, 0)
            jt.summary.add_activation_summary("hidden", hidden, n)
            return hidden.sum()

        value, gradient = jt.value_and_grad(loss)(w)
        jt.summary.add_gradient_summary("grads", {"w": gradient, "more": [2 * gradient]}, n)
        return value

    with jt.summary.Writer(tmp_path):
        step(np.array([1.0, 2.0]), 3)  # hidden: 0 (of -3), 6
    log = Log(tmp_path)
    assert log.scalars("hidden/sparsity") == [(3, 0.5)]
    assert log.only("hidden/activations")[:, 2].sum() == 2
    assert log.scalars("grads/w/sparsity") == [(3, 0.5)]  # gradient: 0, 3
    assert log.scalars("grads/norm") == [(3, pytest.approx(np.sqrt(9 + 36)))]
    assert log.only("grads/more/0/gradient")[-1].tolist() == [pytest.approx(5.8), 6.0, 1.0]


@pytest.mark.parametrize(
    "values, counts, nonfinite",
    [
        ([0.0, 1.0, 1.0, 4.0], [1, 2, 0, 1], None),
        ([], [0, 0, 0, 0], None),
        ([np.nan, 1.0, np.inf, 5.0], [1, 0, 0, 1], 0.5),
        ([np.nan], [0, 0, 0, 0], 1.0),
        ([[True, False]], [1, 0, 0, 1], None),
    ],
)
def test_histograms(tmp_path, values, counts, nonfinite):
    with jt.summary.Writer(tmp_path):
        jt.summary.histogram("h", np.array(values), bins=4)
    log = Log(tmp_path)
    buckets = log.only("h")
    assert buckets[:, 2].tolist() == counts
    assert (buckets[1:, 0] == buckets[:-1, 1]).all()
    assert ("h/nonfinite" in log.tags) == (nonfinite is not None)
    if nonfinite is not None:
        assert log.scalars("h/nonfinite") == [(0, nonfinite)]


def pixels(log, tag):
    width, height, *pictures = log.only(tag)
    decoded = [np.asarray(Image.open(io.BytesIO(p))) for p in pictures]
    assert all(d.shape[:2] == (int(height), int(width)) for d in decoded)
    return decoded


@pytest.mark.parametrize(
    "shape", [(5, 7), (5, 7, 1), (5, 7, 3), (5, 7, 4), (2, 5, 7, 3), (6, 5, 7, 1)]
)
def test_images(tmp_path, shape):
    image = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    with jt.summary.Writer(tmp_path):
        jt.summary.image("i", image, max_outputs=4)
    shown = image if image.ndim == 4 else image[None]
    found = pixels(Log(tmp_path), "i")
    assert len(found) == min(len(shown), 4)
    for picture, expected in zip(found, shown, strict=False):
        np.testing.assert_array_equal(picture, expected.reshape(picture.shape))


@pytest.mark.parametrize(
    "row, rescale, expected",
    [
        ([0.0, 0.5, 1.0, 2.0, -1.0, np.nan], False, [0, 128, 255, 255, 0, 255]),
        ([0.0, 2.0, 4.0], True, [0, 128, 255]),
        ([-4.0, 0.0, 2.0], True, [0, 128, 191]),
        ([0.0, 0.0], True, [0, 0]),
        ([True, False], False, [255, 0]),
        ([0, 255, 300], False, [0, 255, 255]),
    ],
)
def test_pixels(tmp_path, row, rescale, expected):
    with jt.summary.Writer(tmp_path):
        jt.summary.image("i", np.array([row]), rescale=rescale)
    (picture,) = pixels(Log(tmp_path), "i")
    assert picture.tolist() == [expected]


def test_figures_are_drawn_from_values_of_compiled_code(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    drawn = []

    def curve(y):
        drawn.append(y.tolist())
        fig, ax = plt.subplots(figsize=(2, 1), dpi=50)
        ax.plot(y)
        return fig

    @jt.jit
    def step(x):
        jt.summary.figure("curve", curve, 2, x * 2)

    with jt.summary.Writer(tmp_path):
        step(np.arange(3.0))
    assert drawn == [[0.0, 2.0, 4.0]]
    (picture,) = pixels(Log(tmp_path), "curve")
    assert picture.ndim == 3
    assert not plt.get_fignums()


@pytest.mark.parametrize("dtype", ["f8", "f4", "i2"])
def test_sounds(tmp_path, dtype):
    samples = np.array([[0.0, 0.5, -1.0, 1.0]]).T
    given = (samples * 32767).astype("i2") if dtype == "i2" else samples.astype(dtype)
    with jt.summary.Writer(tmp_path):
        jt.summary.audio("s", given, rate=8000)
    ((sound, _),) = Log(tmp_path).only("s")
    with wave.open(io.BytesIO(sound)) as file:
        assert (file.getframerate(), file.getnchannels()) == (8000, 1)
        frames = np.frombuffer(file.readframes(9), "<i2")
    np.testing.assert_allclose(frames, samples[:, 0] * 32767, atol=0.5)


@pytest.mark.parametrize("text", ["*words*", ["a", "b"], [["a", 1], ["c", 2]]])
def test_texts(tmp_path, text):
    with jt.summary.Writer(tmp_path):
        jt.jit(lambda x: jt.summary.text("t\nn/m", text, x))(5)
    ((step, value),) = Log(tmp_path).points("t\nn/m")
    assert step == 5
    assert np.vectorize(bytes.decode)(value).tolist() == np.array(text).astype(str).tolist()


def test_hparams(tmp_path):
    from tensorboard.plugins.hparams import metadata

    with jt.summary.Writer(tmp_path):
        jt.summary.hparams({"lr": 0.5, "name": "x", "on": True}, ["loss"])
    events = EventAccumulator(str(tmp_path)).Reload()
    data = events.SummaryMetadata(metadata.SESSION_START_INFO_TAG).plugin_data.content
    started = metadata.parse_session_start_info_plugin_data(data)
    assert started.hparams["lr"].number_value == 0.5
    assert started.hparams["name"].string_value == "x"
    with pytest.raises(TypeError, match="'lr' is a object"):
        jt.summary.hparams({"lr": object()})


def test_graphs(tmp_path):
    def f(x):
        def body(i, c):
            return np.sin(c)

        return jt.fori_loop(0, 3, body, x) @ x

    graph = jt.jit(f).trace(np.ones(4))
    with jt.summary.Writer(tmp_path):
        jt.summary.graph(graph)
    nodes = Log(tmp_path).nodes
    assert {"x", "dot"} <= nodes.keys()
    assert any(name.startswith("scan/") and name.endswith("/sin") for name in nodes)
    for node in nodes.values():
        assert all(source.split(":")[0] in nodes for source in node.input)
    assert nodes["dot"].attr["types"].s == b"f64[]"
    with pytest.raises(TypeError, match="traced graph"):
        jt.summary.graph(f)


def test_embeddings(tmp_path):
    from google.protobuf import text_format
    from tensorboard.plugins.projector import ProjectorConfig

    points = np.arange(10.0).reshape(5, 2)
    pictures = np.arange(5, dtype=np.uint8)[:, None, None] * np.ones((1, 2, 3), np.uint8)
    with jt.summary.Writer(tmp_path):
        for _ in range(2):  # the second replaces the first
            jt.summary.embedding(
                "a/b", points, {"w": list("vwxyz"), "n": range(5)}, images=pictures
            )
        jt.summary.embedding("c", points, ["one\ttwo", *"wxyz"])
    config = text_format.Parse((tmp_path / "projector_config.pbtxt").read_text(), ProjectorConfig())
    first, second = config.embeddings
    assert list(first.sprite.single_image_dim) == [3, 2]  # width, height
    np.testing.assert_array_equal(np.loadtxt(tmp_path / first.tensor_path), points)
    assert (tmp_path / first.metadata_path).read_text().split("\n")[:2] == ["w\tn", "v\t0"]
    assert (tmp_path / second.metadata_path).read_text().split("\n")[0] == "one two"
    sheet = np.asarray(Image.open(tmp_path / first.sprite.image_path))
    assert sheet.shape == (3 * 2, 3 * 3)
    assert sheet[2:4, 3:6].tolist() == [[4] * 3] * 2  # the fifth picture


@pytest.mark.parametrize(
    "write, message",
    [
        (
            lambda s: s.scalar("x", np.ones(3)),
            r"takes one number, and got an array of shape \(3,\)",
        ),
        (lambda s: s.scalar("x", 1j), "takes a real number, and got complex128"),
        (lambda s: s.histogram("x", np.ones(3), bins=0), "at least one bin"),
        (
            lambda s: s.image("x", np.ones((4, 4, 2))),
            r"with 1, 3 or 4 channels, and got \(4, 4, 2\)",
        ),
        (lambda s: s.image("x", np.ones(4)), r"and got \(4,\)"),
        (lambda s: s.audio("x", np.float64(3), rate=8), r"takes sounds of shape"),
        (
            lambda s: s.audio("x", np.arange(3), rate=8),
            "floats from -1 to 1 or int16, and got int64",
        ),
        (lambda s: s.embedding("x", np.ones((3, 2)), ["a"]), "3 points has 1 labels 'label'"),
        (lambda s: s.embedding("x", np.ones(3)), r"\(n, dimensions\), not \(3,\)"),
    ],
)
def test_errors(tmp_path, write, message):
    with jt.summary.Writer(tmp_path), pytest.raises((ValueError, TypeError), match=message):
        write(jt.summary)


def test_an_error_in_compiled_code_reaches_the_caller(tmp_path):
    step = jt.jit(lambda x: jt.summary.scalar("x", x, 0))
    with jt.summary.Writer(tmp_path), pytest.raises(ValueError, match="takes one number"):
        step(np.ones(3))


def test_a_closed_writer(tmp_path):
    writer = jt.summary.Writer(tmp_path)
    writer.close()
    writer.close()
    with writer, pytest.raises(ValueError, match="is closed"):
        jt.summary.scalar("x", 1.0)


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        jt.summary.Writer(tmp_path / "file" / "log")


SCRIPTS = {
    # the end of the program writes what is pending
    "end": """
        jt.summary.scalar("x", 1.0, 1, writer=jt.summary.Writer(folder))
    """,
    # a child has no thread of its parent's, and writes all the same
    "fork": """
        with jt.summary.Writer(folder):
            jt.summary.scalar("x", 1.0, 1)
            pid = os.fork()
            if not pid:
                for step in range(2, 40):
                    jt.summary.scalar("x", 1.0, step)
            else:
                os.waitpid(pid, 0)
    """,
    # a disk that is full: an OSError at the latest when the block ends
    "full": """
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        threading.excepthook = lambda args: None
        try:
            with jt.summary.Writer(folder):
                for step in range(100):
                    jt.summary.text("x", "y" * 1000, step)
        except OSError as error:
            print(type(error).__name__)
            os._exit(0)
    """,
    # no TensorBoard: says what to install
    "missing": """
        sys.modules["tensorboard"] = None
        try:
            jt.summary.Writer(folder)
        except ImportError as error:
            print("jitney[summary]" in str(error))
    """,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_processes(tmp_path, name):
    head = "import os, resource, sys, threading\nimport jitney as jt\nfolder = sys.argv[1]\n"
    script = head + textwrap.dedent(SCRIPTS[name])
    command = [sys.executable, "-c", script, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    if name == "full":
        assert done.stdout == "OSError\n"
    elif name == "missing":
        assert done.stdout == "True\n"
    else:
        steps = set(range(1, 40)) if name == "fork" else {1}
        assert {step for step, _ in Log(tmp_path).scalars("x")} == steps
