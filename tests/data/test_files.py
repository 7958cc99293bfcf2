"""Files: records and examples (TensorBoard's package has the format, too), tables, pictures, maps."""

import io
import zlib

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import feather, ipc, parquet

import jitney as jt

data = jt.data
IMAGE = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)


@pytest.mark.parametrize("kind", [None, "GZIP", "ZLIB"])
def test_records_come_back(tmp_path, kind):
    records = [b"", b"a", bytes(range(256)) * 2000, b"end"]
    for i in range(2):
        with data.RecordWriter(tmp_path / f"{i}.rec", kind) as writer:
            for record in records:
                writer.write(record)
    dataset = data.tfrecord(tmp_path / "*.rec", compression=kind)
    assert list(dataset) == records * 2
    assert list(dataset.skip(3)) == (records * 2)[3:]
    if kind != "ZLIB":
        assert list(data.tfrecord([tmp_path / "0.rec"])) == records  # seen by its first bytes


def test_tensorboard_reads_what_is_written_and_the_other_way(tmp_path):
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import PyRecordReader_New
    from tensorboard.summary.writer.record_writer import RecordWriter

    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    records = [b"", b"one", bytes(1000)]
    with data.RecordWriter(ours) as writer, theirs.open("wb") as file:
        other = RecordWriter(file)
        for record in records:
            writer.write(record)
            other.write(record)
        other.flush()
    assert ours.read_bytes() == theirs.read_bytes()
    reader = PyRecordReader_New(str(ours))
    found = []
    for _ in records:
        reader.GetNext()
        found.append(reader.record())
    assert found == records == list(data.tfrecord(theirs))


def test_messages_are_the_public_format():
    """By hand: field 1 of Example, field 1 (a map) of Features, and the list's number in Feature."""
    wanted = b"\n\x0c\n\n\n\x01x\x12\x05\x1a\x03\n\x01\x03"
    assert data.example({"x": 3}).SerializeToString() == wanted
    text = data.example({"b": "é", "f": [1.5, 2]}).SerializeToString(deterministic=True)
    assert b"\n\x04\n\x02\xc3\xa9" in text and b"\x12\n\n\x08\x00\x00\xc0?\x00\x00\x00@" in text
    sequence = data.sequence_example({"id": 1}, {"w": [[1], [2, 3]]}).SerializeToString()
    assert sequence.startswith(b"\n\r\n\x0b\n\x02id") and b"\x12\x16\n\x14\n\x01w" in sequence


def test_features_of_all_kinds():
    records = [
        data.example(
            {
                "image": IMAGE,
                "label": i,
                "words": ["a"] * i,
                "score": np.arange(i) / 2,
                "ok": [True],
            }
        ).SerializeToString()
        for i in range(3)
    ]
    wanted = {
        "image": data.FixedLen((4, 4, 3), np.uint8),
        "label": data.FixedLen((), np.int32),
        "words": data.VarLen(str),
        "score": data.VarLen(np.float64, "padded", -1),
        "sparse": data.VarLen(np.int64, "sparse"),
        "missing": data.FixedLen((2,), np.float32, 0.5),
        "ok": data.FixedLenSequence((1,), np.bool_),
    }
    batch = data.parse_examples(records, wanted)
    assert (batch["image"] == IMAGE).all() and batch["image"].shape == (3, 4, 4, 3)
    assert batch["label"].tolist() == [0, 1, 2] and batch["label"].dtype == np.int32
    assert [r.tolist() for r in batch["words"].rows()] == [[], ["a"], ["a", "a"]]
    assert batch["score"].tolist() == [[-1, -1], [0, -1], [0, 0.5]]
    assert batch["sparse"].shape == (3, 0) and batch["missing"].tolist() == [[0.5, 0.5]] * 3
    assert batch["ok"].tolist() == [[[True]]] * 3
    one = data.parse_example(records[2], wanted)
    assert one["words"].tolist() == ["a", "a"] and one["label"] == 2
    ragged = data.Ragged(np.array([5, 6, 7]), np.array([0, 2, 2, 3]))
    assert ragged.padded(-1).tolist() == [[5, 6], [-1, -1], [7, -1]]
    coordinates = ragged.sparse()
    assert coordinates.indices.tolist() == [[0, 0], [0, 1], [2, 0]] and coordinates.shape == (3, 2)


def test_sequences():
    record = data.sequence_example(
        {"id": "x"}, {"frames": [[1.0, 2.0], [3.0, 4.0]], "words": [[1], [], [2, 3]]}
    ).SerializeToString()
    context, sequences = data.parse_sequence_example(
        record,
        {"id": data.FixedLen((), str)},
        {
            "frames": data.FixedLenSequence((2,), np.float32),
            "words": data.VarLen(np.int64),
            "none": data.FixedLenSequence((3,), np.int64, missing=True),
        },
    )
    assert context == {"id": "x"} and sequences["frames"].tolist() == [[1, 2], [3, 4]]
    assert sequences["words"].lengths.tolist() == [1, 0, 2] and sequences["none"].shape == (0, 3)


@pytest.mark.parametrize(
    ("records", "wanted", "message"),
    [
        ([b"\xff\xff"], data.FixedLen((), np.int64), r"2 bytes are no Example"),
        ([{}], data.FixedLen((), np.int64), r"feature 'x' is missing; the record has \[\]"),
        (
            [{"x": [1, 2]}],
            data.FixedLen((3,), np.int64),
            r"'x' has 2 values, and is wanted in shape \(3,\)",
        ),
        (
            [{"x": 1.5}],
            data.FixedLen((), np.int64),
            r"'x' is a float_list, and was asked for as int64",
        ),
        ([{"x": 300}], data.FixedLen((), np.uint8), r"'x' has 300, too large for uint8"),
        ([{"x": b"\xff"}], data.VarLen(str), r"'x' is not UTF-8.*ask for bytes"),
        (
            [{"x": [1, 2, 3]}],
            data.FixedLenSequence((2,), np.int64),
            r"3 values, not a number of \(2,\)",
        ),
    ],
)
def test_wrong_features(records, wanted, message):
    messages = [r if isinstance(r, bytes) else data.example(r) for r in records]
    with pytest.raises(data.DataError, match=message):
        data.parse_examples(messages, {"x": wanted})


def test_unusable_values_are_refused_by_name():
    for value, message in [
        ({1}, "numbers, texts or bytes"),
        (2**64 - 1, "too large"),
        (1j, r"not array\("),
    ]:
        with pytest.raises((TypeError, OverflowError), match=message) as caught:
            data.example({"x": value if not isinstance(value, int) else np.uint64(value)})
        assert "feature 'x'" in str(caught.value.__notes__)


def test_csv(tmp_path):
    (tmp_path / "a.csv").write_text("x,y,t\n1,2.5,é\n2,,b\n")
    (tmp_path / "b.csv").write_text("x,y,t\n3,1,\n")
    rows = list(data.csv(tmp_path / "?.csv", missing={"y": 0.0}))
    assert rows[0] == {"x": 1, "y": 2.5, "t": "é"} and rows[1]["y"] == 0 and rows[2]["t"] == ""
    (batch,) = data.csv(tmp_path / "a.csv", columns=["y"], dtypes={"y": np.float32}).batch(9)
    assert batch["y"].dtype == np.float32 and np.isnan(batch["y"][1]) and list(batch) == ["y"]
    (tmp_path / "n.csv").write_text("1;2\n;4\n")
    rows = data.csv(tmp_path / "n.csv", names=["a", "b"], delimiter=";")
    with pytest.raises(
        data.DataError, match=r"n.csv, behind row 0: column 'a' has no value in row 1"
    ):
        list(rows)
    (tmp_path / "n.csv").write_bytes(b"t\n\xff\n")
    with pytest.raises(data.DataError, match=r"n.csv, behind row 0: column 't' is not utf-8"):
        list(data.csv(tmp_path / "n.csv"))
    (tmp_path / "n.csv").write_text("x,y\n1,2\n3\n")
    with pytest.raises(data.DataError, match=r"n.csv, behind row 0: .*Expected 2 columns"):
        list(data.csv(tmp_path / "n.csv"))


def test_arrow_in_all_files(tmp_path):
    table = pa.table({"x": [1, 2, 3], "l": [[1.0], [], [2.0, 3.0]], "t": ["a", "b", "c"]})
    feather.write_feather(table, tmp_path / "a.feather")
    parquet.write_table(table, tmp_path / "b.parquet", row_group_size=2)
    with ipc.new_stream(tmp_path / "c.arrows", table.schema) as stream:
        stream.write_table(table, 2)
    for name in ("a.feather", "b.parquet", "c.arrows"):
        dataset = data.arrow(tmp_path / name)
        rows = list(dataset)
        assert [r["x"] for r in rows] == [1, 2, 3] and rows[2]["l"].tolist() == [2, 3]
        it = iter(dataset)
        next(it), next(it)
        assert [r["t"] for r in dataset.iterator(it.state())] == ["c"]
        assert [list(r) for r in data.arrow(tmp_path / name, columns=["x"])] == [["x"]] * 3
    whole = (tmp_path / "b.parquet").read_bytes()
    (tmp_path / "b.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(data.DataError, match=r"b.parquet, behind row 0: "):
        list(data.arrow(tmp_path / "b.parquet"))


def test_text_of_any_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\n\r\n\xff\nlast")
    lines = data.text_lines(path, errors="replace")
    assert list(lines) == ["one", "", "\ufffd", "last"]
    assert list(data.text_lines(path, encoding="latin-1"))[2] == "ÿ"
    assert list(data.text_lines(path, encoding=None))[3] == b"last"
    it = iter(data.text_lines(path))
    assert [next(it), next(it)] == ["one", ""]
    with pytest.raises(
        data.DataError, match=r"a.txt, line 3: byte 0 of the line is not utf-8 \(0xff"
    ):
        next(it)
    assert next(it) == "last"
    with pytest.raises(ValueError, match="utf-16"):
        data.text_lines(path, encoding="utf-16")
    path.write_bytes(b"")
    assert list(data.text_lines(path)) == []
    long = "x" * 600_000
    path.write_text(f"{long}\n{long}y")
    assert [len(line) for line in data.text_lines(path)] == [600_000, 600_001]


def test_pictures(tmp_path):
    for format in ("png", "bmp"):
        assert (data.decode_image(data.encode_image(IMAGE, format)) == IMAGE).all()
    grey = data.encode_image(IMAGE[..., 0])
    assert data.decode_image(grey).shape == (4, 4, 1)
    assert data.decode_image(grey, channels=3).shape == (4, 4, 3)
    big = data.encode_image(np.full((64, 64, 3), 9, np.uint8), "jpeg")
    assert data.decode_image(big, size=(8, 5)).shape == (8, 5, 3)
    (tmp_path / "a.png").write_bytes(data.encode_image(IMAGE))
    (picture,) = data.files(tmp_path / "*.png").map(data.decode_image)
    assert (picture == IMAGE).all()
    floats = data.resize_image(IMAGE / 10, (2, 2))
    assert floats.dtype == np.float64 and abs(floats.mean() - IMAGE.mean() / 10) < 1e-5
    rng = np.random.default_rng(0)
    crops = {data.crop(IMAGE, (2, 2), rng)[0, 0, 0].item() for _ in range(99)}
    assert len(crops) == 9 and {data.flip(IMAGE, rng)[0, 0, 0].item() for _ in range(9)} == {0, 9}
    path = tmp_path / "short.png"
    path.write_bytes(
        data.encode_image(np.random.default_rng(0).integers(0, 9, (9, 9), np.uint8))[:60]
    )
    for wrong in (path, b"abc"):
        with pytest.raises(data.DataError, match=r"(short.png|3 bytes): not a whole picture"):
            data.decode_image(wrong)
    header = io.BytesIO()
    Image.new("1", (1, 1)).save(header, "png")
    size = b"IHDR" + (10**5).to_bytes(4, "big") * 2 + header.getvalue()[24:29]
    bomb = (
        header.getvalue()[:12] + size + zlib.crc32(size).to_bytes(4, "big") + header.getvalue()[33:]
    )
    with pytest.raises(data.DataError, match="not a whole picture .*pixels"):
        data.decode_image(bomb)
    with pytest.raises(data.DataError, match=r"\(5, 2\) is not in a picture of \(4, 4\)"):
        data.crop(IMAGE, (5, 2))


def test_memory_maps(tmp_path):
    x = np.arange(12, dtype=np.float32).reshape(6, 2)
    np.save(tmp_path / "a.npy", x)
    x.tofile(tmp_path / "a.bin")
    for dataset in (
        data.memmap(tmp_path / "a.npy"),
        data.memmap(tmp_path / "a.bin", np.float32, (2,)),
    ):
        assert (np.concatenate(list(dataset.batch(4))) == x).all()
        assert sorted(b[0, 0] for b in dataset.shuffle(seed=0).batch(1)) == list(x[:, 0])
    whole = (tmp_path / "a.npy").read_bytes()
    for wrong in (whole[:-4], whole[:20], b"", b"text"):
        (tmp_path / "a.npy").write_bytes(wrong)
        with pytest.raises(data.DataError, match=r"a.npy: not an array"):
            data.memmap(tmp_path / "a.npy")
    with pytest.raises(data.DataError, match=r"a.bin: .*16 bytes more than 1 rows of 32 bytes"):
        data.memmap(tmp_path / "a.bin", np.float64, (4,))


def test_strings(tmp_path):
    with pytest.raises(data.DataError, match=r"text 1, 'x', is no int64"):
        data.to_numbers(["1", "x"], np.int64)
    with pytest.raises(data.DataError, match=r"text 0, '300', is no uint8"):
        data.to_numbers(["300"], np.uint8)
    assert data.to_numbers([["1", "2"]], np.int8).tolist() == [[1, 2]]
    assert data.split(["a,b", ""], ",").padded("").tolist() == [["a", "b"], ["", ""]]
    vocabulary = data.Vocabulary.of(["b a b", "c"], size=3, special=["<pad>"])
    assert data.Vocabulary.of([["b", "a", "b"], "c"]).tokens == ["<unk>", "b", "a", "c"]
    assert vocabulary.tokens == ["<pad>", "<unk>", "b"] and "a" not in vocabulary
    vocabulary.save(tmp_path / "words")
    assert data.Vocabulary.load(tmp_path / "words", "<unk>").ids(["b", "z"]).tolist() == [2, 1]
    with pytest.raises(KeyError, match="'z' is not in the vocabulary"):
        data.Vocabulary(["a"]).ids(["z"])
    with pytest.raises(IndexError, match="number -1"):
        vocabulary.words([-1])
    with pytest.raises(ValueError, match="'a' is in it twice"):
        data.Vocabulary(["a", "b", "a"])


def test_messages_can_be_elements():
    records = [data.example({"x": i}) for i in range(3)]
    found = data.from_generator(lambda: records).map(
        lambda record: data.parse_example(record, {"x": data.FixedLen((), np.int64)})["x"]
    )
    assert [int(x) for x in found] == [0, 1, 2]
