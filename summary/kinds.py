"""The kinds of summaries: numbers, distributions, pictures, sounds, words."""

from __future__ import annotations

import io
import wave
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import jitney as jt

from .pictures import pictures, pixels, png
from .writer import Writer, record, tensorboard

Array = np.ndarray[Any, Any]


def scalar(tag: str, value: Any, step: Any = 0, *, writer: Writer | None = None) -> None:
    """One number: a Python number or an array of one element. `tag` is its name, slashes make groups.

    >>> jt.summary.scalar("loss", 0.25, step=3)  # no writer: dropped
    """

    def build(value: Any) -> Any:
        number = np.asarray(value)
        if number.size != 1:
            raise ValueError(
                f"jt.summary.scalar({tag!r}) takes one number, and got an array of shape "
                f"{number.shape}: reduce it, or write jt.summary.histogram"
            )
        if number.dtype.kind in "cmMOSU":
            raise TypeError(
                f"jt.summary.scalar({tag!r}) takes a real number, and got {number.dtype}: write its "
                "magnitude, or its parts"
            )
        return _number(tag, float(number.reshape(())))

    record(writer, step, build, value)


def histogram(
    tag: str, values: Any, step: Any = 0, *, bins: int = 30, writer: Writer | None = None
) -> None:
    """How the elements of an array of any shape are distributed over `bins` intervals of one width.

    NaNs and infinities are in no interval; where there are any, their share is the scalar
    `tag/nonfinite`.
    """
    if bins < 1:
        raise ValueError(f"jt.summary.histogram takes at least one bin, and got {bins}")

    def build(values: Any) -> Any:
        data = np.asarray(values, np.float64).ravel()
        finite = data[np.isfinite(data)]
        buckets = np.zeros((bins, 3))
        if finite.size:
            counts, edges = np.histogram(finite, bins)
            buckets = np.stack([edges[:-1], edges[1:], counts], axis=1)
        metadata = tensorboard("plugins.histogram.metadata").create_summary_metadata(None, None)
        result = _tensor(tag, metadata, buckets)
        if finite.size < data.size:
            share = 1 - finite.size / data.size
            result.MergeFrom(_number(f"{tag}/nonfinite", share))
        return result

    record(writer, step, build, values)


def image(
    tag: str,
    images: Any,
    step: Any = 0,
    *,
    max_outputs: int = 3,
    rescale: bool = False,
    writer: Writer | None = None,
) -> None:
    """Pictures of shape `(height, width)`, `(height, width, channels)` or `(n, height, width, channels)`
    with 1 (grey), 3 (RGB) or 4 (RGBA) channels, of which the first `max_outputs` are shown.

    uint8 is shown as it is, bools black and white; floats from 0 (black) to 1, clipped. With `rescale`
    the range of each picture's numbers is stretched to that: where none is negative, the largest is
    white; else 0 is mid-grey, and the largest magnitude black or white. NaN is white.

    Raises ValueError for other shapes.
    """

    def build(images: Any) -> Any:
        shown = pictures(tag, np.asarray(images))[:max_outputs]
        height, width = shown.shape[1:3]
        encoded = [png(pixels(picture, rescale)) for picture in shown]
        return _images(tag, width, height, encoded)

    record(writer, step, build, images)


def figure(
    tag: str,
    figure: Any,
    step: Any = 0,
    *values: Any,
    close: bool = True,
    writer: Writer | None = None,
) -> None:
    """A matplotlib figure, or `figure(*values)`, which draws one: that may stand in compiled code.

        def curve(y):
            fig, ax = plt.subplots()
            ax.plot(y)
            return fig

        jt.summary.figure("curve", curve, step, y)

    The figure is closed afterwards, so that a loop does not collect them, unless `close=False`.
    """

    def build(*values: Any) -> Any:
        drawn = figure(*values) if callable(figure) else figure
        out = io.BytesIO()
        drawn.savefig(out, format="png")
        if close:
            from matplotlib import pyplot

            pyplot.close(drawn)
        drawing = out.getvalue()
        width, height = (
            int.from_bytes(drawing[at : at + 4], "big") for at in (16, 20)
        )  # the header's
        return _images(tag, width, height, [drawing])

    record(writer, step, build, *values)


def audio(
    tag: str,
    samples: Any,
    step: Any = 0,
    *,
    rate: int,
    max_outputs: int = 3,
    writer: Writer | None = None,
) -> None:
    """Sounds of shape `(frames,)`, `(frames, channels)` or `(n, frames, channels)`, of which the first
    `max_outputs` can be heard: floats from -1 to 1 (clipped), or int16. `rate`: frames a second.

    Raises ValueError for other shapes, TypeError for other dtypes.
    """

    def build(samples: Any) -> Any:
        plugin = tensorboard("plugins.audio.metadata")
        metadata = plugin.create_summary_metadata(None, None, plugin.Encoding.Value("WAV"))
        sounds = [_wav(s, rate) for s in _sounds(tag, np.asarray(samples))[:max_outputs]]
        return _tensor(tag, metadata, np.array([[sound, b""] for sound in sounds], object))

    record(writer, step, build, samples)


def text(
    tag: str, text: str | Sequence[Any], step: Any = 0, *, writer: Writer | None = None
) -> None:
    """Words, in Markdown; a list of them is shown as a table's column, a list of lists as a table."""

    def build() -> Any:
        metadata = tensorboard("plugins.text.metadata").create_summary_metadata(None, None)
        words = np.array(text, object)
        encoded = [str(word).encode() for word in words.ravel()]
        return _tensor(tag, metadata, np.array(encoded, object).reshape(words.shape))

    record(writer, step, build)


def hparams(
    values: Mapping[str, Any], metrics: Iterable[str] = (), *, writer: Writer | None = None
) -> None:
    """The settings of this run (bools, numbers, strings), for the table in which runs are compared;
    `metrics`: tags of the scalars that are shown beside them.

    Raises TypeError for values of another class.
    """
    for name, value in values.items():
        if not isinstance(value, (bool, int, float, str, np.generic)):
            raise TypeError(
                f"jt.summary.hparams takes bools, numbers and strings, and {name!r} is a "
                f"{type(value).__name__}: give what describes it, str(...) for instance"
            )
    plugin = tensorboard("plugins.hparams.summary_v2")
    start = plugin.hparams_pb(dict(values))
    columns = [plugin.HParam(name) for name in values]
    config = plugin.hparams_config_pb(columns, [plugin.Metric(tag) for tag in metrics])
    record(writer, 0, lambda: config)
    record(writer, 0, lambda: start)


def add_activation_summary(
    tag: str, value: Any, step: Any = 0, *, writer: Writer | None = None
) -> None:
    """Of what a layer gives: the histogram `tag/activations` and the share of zeros, `tag/sparsity`."""
    histogram(f"{tag}/activations", value, step, writer=writer)
    scalar(f"{tag}/sparsity", jt.mean(value == 0), step, writer=writer)


def add_gradient_summary(
    tag: str, gradients: Any, step: Any = 0, *, writer: Writer | None = None
) -> None:
    """Of a tree of gradients: of each leaf the histogram `tag/path/gradient` and the share of zeros,
    `tag/path/sparsity`; of all together the Euclidean norm, `tag/norm`."""
    import optree  # a dependency of the core, which knows the paths of leaves

    paths, leaves, _ = optree.tree_flatten_with_path(gradients)
    for path, leaf in zip(paths, leaves, strict=True):
        name = "/".join([tag, *map(str, path)])
        histogram(f"{name}/gradient", leaf, step, writer=writer)
        scalar(f"{name}/sparsity", jt.mean(leaf == 0), step, writer=writer)
    squares = [jt.sum(jt.abs(leaf) ** 2) for leaf in leaves]
    scalar(f"{tag}/norm", jt.sqrt(sum(squares)), step, writer=writer)


def _tensor(tag: str, metadata: Any, value: Any) -> Any:
    summary = tensorboard("compat.proto.summary_pb2").Summary()
    tensor = tensorboard("util.tensor_util").make_tensor_proto(value)
    summary.value.add(tag=tag, metadata=metadata, tensor=tensor)
    return summary


def _number(tag: str, value: float) -> Any:
    metadata = tensorboard("plugins.scalar.metadata").create_summary_metadata(None, None)
    return _tensor(tag, metadata, np.float32(value))


def _images(tag: str, width: int, height: int, encoded: list[bytes]) -> Any:
    metadata = tensorboard("plugins.image.metadata").create_summary_metadata(None, None)
    strings = [str(width).encode(), str(height).encode(), *encoded]
    return _tensor(tag, metadata, np.array(strings, object))


def _sounds(tag: str, array: Array) -> Array:
    shape = array.shape
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim == 2:
        array = array[None]
    if array.ndim != 3 or array.shape[2] == 0:
        raise ValueError(
            f"jt.summary.audio({tag!r}) takes sounds of shape (frames,), (frames, channels) or "
            f"(n, frames, channels), and got {shape}"
        )
    if array.dtype.kind != "f" and array.dtype != np.int16:
        raise TypeError(
            f"jt.summary.audio({tag!r}) takes floats from -1 to 1 or int16, and got {array.dtype}"
        )
    return array


def _wav(sound: Array, rate: int) -> bytes:
    if sound.dtype != np.int16:
        sound = np.rint(np.clip(np.nan_to_num(sound), -1, 1) * 32767).astype(np.int16)
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(sound.shape[1])
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(sound.astype("<i2").tobytes())
    return out.getvalue()
